/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search through trees for the files that findings touch: by the addresses of their data, and
 * by the directory entries of inodes whose own items are lost. A block that subvolumes share is
 * read for the first of them; if it has something that is searched for, also for the others, which
 * are counted.
 *
 * It takes a bit for each tree block, 12 bytes for each shared block with a hit, and 48 bytes
 * for each finding.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "btree/scan.h"
#include "check/blocks.h"
#include "check/paths.h"
#include "format/disk.h"
#include "format/file_extent.h"

/* What is searched for, for a finding: addresses of data, or numbers of inodes. */
struct sought {
    uint64_t start, length;
    struct bw_naming *naming;
};

struct sought_list {
    struct sought *items; /* by start */
    size_t count;
    uint64_t longest;
};

struct search {
    struct bw_namings *namings;
    struct sought_list data, inodes; /* the inodes are those of the present subvolume */
    struct bw_visited *seen;
    struct bw_map hits; /* blocks that have, or lead to, data that are searched for */
    const struct bw_subvolume *subvolume;
    uint64_t path[BW_MAX_LEVEL]; /* addresses of the nodes on the way down */
};

static const struct bw_finding *finding_of(const struct bw_naming *naming)
{
    return &naming->held->subject.finding;
}

static void add_sought(struct sought_list *list, uint64_t start, uint64_t length,
                       struct bw_naming *naming)
{
    list->items[list->count++] = (struct sought){start, length, naming};
    list->longest = length > list->longest ? length : list->longest;
}

static int by_start(const void *first, const void *second)
{
    const struct sought *a = first, *b = second;
    return a->start < b->start ? -1 : a->start > b->start;
}

static void sort_sought(struct sought_list *list)
{
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, by_start);
}

/* The next thing from number `*next` on that meets a range; NULL if there is none. Begin with 0. */
static const struct sought *next_sought(const struct sought_list *list, size_t *next,
                                        uint64_t start, uint64_t length)
{
    const uint64_t from = start > list->longest ? start - list->longest : 0;
    if (!*next)
        *next = BW_FIRST_INDEX(i, list->count, list->items[i].start >= from);
    while (*next < list->count && list->items[*next].start < start + length) {
        const struct sought *sought = &list->items[(*next)++];
        if (sought->start + sought->length > start)
            return sought;
    }
    return NULL;
}

/* Data. */

/* That file in the first subvolume in which it was found, so that this is only another subvolume
 * with it; NULL: it is new. */
static struct bw_touched *find_elsewhere(const struct bw_naming *naming,
                                         const struct bw_touched *file)
{
    const bool any = naming->held->subject.touches != BW_TOUCHES_EACH;
    for (size_t i = 0; i < naming->count; i++) {
        struct bw_touched *known = &naming->touched[i];
        if (known->inode == file->inode && known->subvolume != file->subvolume &&
            (any || file->offset - known->offset < known->length))
            return known;
    }
    return NULL;
}

static struct bw_error *take_hit(struct bw_naming *naming, const struct bw_touched *file)
{
    struct bw_touched *known = find_elsewhere(naming, file);
    if (known) {
        const bool is_new = known->in_subvolume != file->subvolume->tree.id;
        known->more_subvolumes += is_new;
        known->in_subvolume = file->subvolume->tree.id;
        return NULL;
    }
    return naming->held->subject.touches == BW_TOUCHES_EACH ? bw_naming_add_part(naming, file)
                                                            : bw_naming_add(naming, file);
}

/* What a file shows of what is searched for: in the file, and as it is stored. */
static struct bw_touched overlap_of(const struct bw_subvolume *subvolume,
                                    const struct bw_item *item, const struct sought *sought,
                                    uint64_t start, uint64_t length)
{
    const struct bw_disk_file_extent *disk = (const void *)item->data;
    const uint64_t end = start + length, wanted = sought->start + sought->length;
    const uint64_t first = sought->start > start ? sought->start : start;
    struct bw_touched part = {.subvolume = subvolume,
                              .inode = item->key.objectid,
                              .offset = item->key.offset,
                              .length = bw_get64(disk->num_bytes),
                              .logical = first,
                              .stored = (wanted < end ? wanted : end) - first};
    if (!disk->compression) {
        part.offset += first - start;
        part.length = part.stored;
    }
    return part;
}

/* The part of an extent that the file shows; of a compressed one, all of it. */
static bool stored_part(const struct bw_item *item, uint64_t *start, uint64_t *length)
{
    const struct bw_disk_file_extent *disk = (const void *)item->data;
    if (item->size < sizeof *disk || disk->type == BW_FILE_EXTENT_INLINE)
        return false;
    *start = bw_get64(disk->disk_bytenr);
    *length = bw_get64(disk->disk_num_bytes);
    if (!*start || *length > UINT64_MAX - *start)
        return false;
    if (disk->compression)
        return true;
    const uint64_t offset = bw_get64(disk->offset), shown = bw_get64(disk->num_bytes);
    if (offset > *length || shown > *length - offset)
        return false;
    *start += offset;
    *length = shown;
    return true;
}

static struct bw_error *take_file_extent(struct search *search, const struct bw_item *item,
                                         bool *hit)
{
    uint64_t start, length;
    if (!stored_part(item, &start, &length))
        return NULL;
    const struct sought *sought;
    for (size_t next = 0; (sought = next_sought(&search->data, &next, start, length));) {
        const struct bw_touched part = overlap_of(search->subvolume, item, sought, start, length);
        *hit = true;
        BW_TRY(take_hit(sought->naming, &part));
    }
    return NULL;
}

/* Names. */

static struct bw_error *take_entry(struct search *search, uint64_t directory,
                                   const struct bw_dir_entry *entry)
{
    struct bw_buffer *names = &search->namings->names;
    const struct bw_touched file = {.subvolume = search->subvolume,
                                    .inode = entry->location.objectid,
                                    .directory = directory,
                                    .name = names->length,
                                    .name_length = entry->name_length};
    const struct sought *sought;
    for (size_t next = 0; (sought = next_sought(&search->inodes, &next, file.inode, 1));) {
        if (names->length == file.name)
            bw_buffer_append(names, entry->name, entry->name_length);
        BW_TRY(bw_naming_add(sought->naming, &file));
    }
    return names->failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *take_entries(struct search *search, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry))
        if (entry.location.type == BW_INODE_ITEM)
            BW_TRY(take_entry(search, item->key.objectid, &entry));
    return NULL;
}

/* Reading trees. */

static bool wants(void *context, const struct bw_block_pointer *pointer)
{
    struct search *search = context;
    struct bw_inode_sums sums;
    const bool new = bw_visit(search->seen, pointer->bytenr, &sums) == BW_VISIT_FIRST;
    search->path[pointer->expectation.level] = pointer->bytenr;
    return new || search->inodes.count || bw_map_get(&search->hits, pointer->bytenr) != UINT32_MAX;
}

/* Marks the leaf and the nodes above it. */
static struct bw_error *mark_hit(struct search *search, const struct bw_node *leaf)
{
    const struct bw_disk_header *header = (const void *)leaf->block;
    search->path[0] = bw_get64(header->bytenr);
    for (unsigned level = 0; level <= search->subvolume->tree.root.level; level++)
        if (!bw_map_put(&search->hits, search->path[level], 1))
            return bw_error_no_memory();
    return NULL;
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    struct search *search = context;
    struct bw_item item;
    bool hit = false;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);)
        if (item.key.type == BW_EXTENT_DATA && search->data.count)
            BW_TRY(take_file_extent(search, &item, &hit));
        else if (item.key.type == BW_DIR_INDEX && search->inodes.count)
            BW_TRY(take_entries(search, &item));
    return hit ? mark_hit(search, leaf) : NULL;
}

static void take_wanted_inodes(struct search *search)
{
    search->inodes.count = search->inodes.longest = 0;
    for (size_t i = 0; i < search->namings->count; i++) {
        struct bw_naming *naming = &search->namings->items[i];
        if (naming->first_wanted <= naming->last_wanted &&
            finding_of(naming)->tree == search->subvolume->tree.id)
            add_sought(&search->inodes, naming->first_wanted,
                       naming->last_wanted - naming->first_wanted + 1, naming);
    }
    sort_sought(&search->inodes);
}

/* The first and the last inode of a lost range may have names beside it. */
static struct bw_error *add_ends(struct search *search, struct bw_naming *naming)
{
    const uint64_t ends[] = {naming->first_wanted, naming->last_wanted};
    for (unsigned i = 0; i < 1 + (ends[0] != ends[1]); i++) {
        const struct bw_touched file = {.subvolume = search->subvolume, .inode = ends[i]};
        bool known = false;
        for (size_t k = 0; k < naming->count; k++)
            known |= naming->touched[k].inode == ends[i];
        if (!known)
            BW_TRY(bw_naming_add(naming, &file));
    }
    return NULL;
}

static struct bw_error *search_subvolume(struct search *search)
{
    const struct bw_scan scan = {BW_SCAN_ALL,       .wants = wants,
                                 .leaf = take_leaf, .lost = bw_scan_ignore_lost,
                                 .adopt = true,     .context = search};
    take_wanted_inodes(search);
    if (!search->inodes.count && !search->data.count)
        return NULL;
    BW_TRY(bw_tree_scan(&search->namings->check->fs->reader, &search->subvolume->tree, &scan));
    for (size_t i = 0; i < search->inodes.count; i++)
        BW_TRY(add_ends(search, search->inodes.items[i].naming));
    return NULL;
}

static struct bw_error *begin(struct search *search)
{
    struct bw_namings *namings = search->namings;
    search->data.items = calloc(namings->count + 1, sizeof *search->data.items);
    search->inodes.items = calloc(namings->count + 1, sizeof *search->inodes.items);
    search->seen = bw_visited_create();
    if (!search->data.items || !search->inodes.items || !search->seen)
        return bw_error_no_memory();
    for (size_t i = 0; i < namings->count; i++) {
        struct bw_naming *naming = &namings->items[i];
        const struct bw_finding *finding = finding_of(naming);
        const enum bw_touch touches = naming->held->subject.touches;
        if ((touches == BW_TOUCHES_DATA || touches == BW_TOUCHES_EACH) &&
            finding->length <= UINT64_MAX - finding->logical)
            add_sought(&search->data, finding->logical, finding->length, naming);
    }
    sort_sought(&search->data);
    return NULL;
}

static struct bw_error *search_all(struct search *search)
{
    BW_TRY(begin(search));
    while ((search->subvolume = bw_subvolume_next(search->namings->check->fs, search->subvolume)))
        if (!search->subvolume->deleted && bw_check_goes_on(search->namings->check, 0))
            BW_TRY(search_subvolume(search));
    return NULL;
}

struct bw_error *bw_path_search(struct bw_namings *namings)
{
    struct search search = {.namings = namings};
    struct bw_error *error = search_all(&search);
    free(search.data.items);
    free(search.inodes.items);
    bw_visited_destroy(search.seen);
    bw_map_free(&search.hits);
    return error;
}
