/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The paths of what findings touch. First the files are found: an inode is known, a leaf is read
 * for its inodes, and what else there is to know takes a search through whole trees, one for all
 * findings together (path_search.c). Then their names are looked up, all hard links of each.
 */
#include "check/paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "btree/scan.h"
#include "format/items.h"
#include "fs/lookup.h"

enum {
    MOST_COMPARED = 1 << 20, /* looks into other subvolumes whether they share a block */
};

struct bw_error *bw_naming_add(struct bw_naming *naming, const struct bw_touched *file)
{
    if (naming->last_inode == file->inode && !file->name_length)
        return NULL;
    naming->last_inode = file->inode;
    if (naming->count == BW_PATHS_LISTED) {
        naming->more++;
        return NULL;
    }
    if (!naming->touched)
        naming->touched = malloc(BW_PATHS_LISTED * sizeof *naming->touched);
    if (!naming->touched)
        return bw_error_no_memory();
    naming->touched[naming->count++] = *file;
    return NULL;
}

/* Whether a part of a file goes on from another one, and is stored behind it or in the same
 * compressed extent. */
static bool goes_on(const struct bw_touched *last, const struct bw_touched *part)
{
    return last->inode == part->inode && last->subvolume == part->subvolume &&
           last->offset + last->length == part->offset &&
           (last->logical + last->stored == part->logical ||
            (last->logical == part->logical && last->stored == part->stored));
}

struct bw_error *bw_naming_add_part(struct bw_naming *naming, const struct bw_touched *part)
{
    struct bw_touched *last = naming->count ? &naming->touched[naming->count - 1] : NULL;
    if (!last || !goes_on(last, part)) {
        naming->last_inode = 0;
        return bw_naming_add(naming, part);
    }
    last->length += part->length;
    last->stored = part->logical + part->stored - last->logical;
    return NULL;
}

/* Finding the files. */

static const struct bw_subvolume *subvolume_of(const struct bw_namings *namings,
                                               const struct bw_naming *naming)
{
    const struct bw_finding *finding = &naming->held->subject.finding;
    const struct bw_subvolume *subvolume =
        finding->known & BW_KNOWN_TREE ? bw_subvolume_by_id(namings->check->fs, finding->tree)
                                       : NULL;
    return subvolume && !subvolume->deleted ? subvolume : NULL;
}

/* The inodes of a leaf that can be read. */
struct leaf_inodes {
    struct bw_naming *naming;
    const struct bw_subvolume *subvolume;
    uint64_t logical;
    bool read;
};

/* Down to the block of the finding, and no further if it is a node. */
static bool leads_to_leaf(void *context, const struct bw_block_pointer *pointer)
{
    const struct leaf_inodes *inodes = context;
    return pointer->expectation.level || pointer->bytenr == inodes->logical;
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    struct leaf_inodes *inodes = context;
    uint64_t last = 0;
    inodes->read = true;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        const uint64_t inode = bw_leaf_key(leaf, slot).objectid;
        if (inode == last || inode > BW_LAST_SUBVOLUME)
            continue;
        const struct bw_touched file = {.subvolume = inodes->subvolume, .inode = inode};
        BW_TRY(bw_naming_add(inodes->naming, &file));
        last = inode;
    }
    return NULL;
}

/* The inodes with items in a block; if it is not a leaf that can be read, those that could have
 * some are to be searched for. */
static struct bw_error *find_keys(struct bw_namings *namings, struct bw_naming *naming)
{
    const struct bw_subject *subject = &naming->held->subject;
    const struct bw_key *first = &subject->finding.key, *end = &subject->end_key;
    struct leaf_inodes inodes = {naming, subvolume_of(namings, naming), subject->finding.logical,
                                 false};
    const struct bw_scan scan = {.first = *first,
                                 .last = *first,
                                 .wants = leads_to_leaf,
                                 .leaf = take_leaf,
                                 .lost = bw_scan_ignore_lost,
                                 .context = &inodes};
    BW_TRY(bw_tree_scan(&namings->check->fs->reader, &inodes.subvolume->tree, &scan));
    if (inodes.read)
        return NULL;
    naming->first_wanted =
        first->objectid < BW_SUBVOLUME_ROOT_INODE ? BW_SUBVOLUME_ROOT_INODE : first->objectid;
    naming->last_wanted = end->objectid - (end->type <= BW_INODE_ITEM && !end->offset);
    if (naming->last_wanted > BW_LAST_SUBVOLUME)
        naming->last_wanted = BW_LAST_SUBVOLUME;
    return NULL;
}

static struct bw_error *take_any_name(void *context, const struct bw_inode_name *name)
{
    (void)name;
    *(bool *)context = true;
    return NULL;
}

static struct bw_error *find_inode(struct bw_namings *namings, struct bw_naming *naming)
{
    const struct bw_finding *finding = &naming->held->subject.finding;
    const struct bw_touched file = {.subvolume = subvolume_of(namings, naming),
                                    .inode = finding->inode};
    const struct bw_place place = {.subvolume = file.subvolume, .inode = finding->inode};
    bool has_name = finding->inode == BW_SUBVOLUME_ROOT_INODE;
    if (finding->inode > BW_LAST_SUBVOLUME)
        return NULL;
    if (!has_name)
        BW_TRY(bw_inode_names(namings->check->fs, &place, take_any_name, &has_name));
    if (has_name)
        return bw_naming_add(naming, &file);
    naming->first_wanted = naming->last_wanted = finding->inode;
    return NULL;
}

/* The name of an inode in a certain item. */
struct named_item {
    struct bw_namings *namings;
    struct bw_naming *naming;
};

static struct bw_error *add_name(const struct named_item *named, uint64_t directory,
                                 const uint8_t *name, uint16_t length)
{
    struct bw_buffer *names = &named->namings->names;
    const struct bw_touched file = {.subvolume = subvolume_of(named->namings, named->naming),
                                    .inode = named->naming->held->subject.finding.inode,
                                    .directory = directory,
                                    .name = names->length,
                                    .name_length = length};
    bw_buffer_append(names, name, length);
    return names->failed ? bw_error_no_memory() : bw_naming_add(named->naming, &file);
}

static struct bw_error *take_named_item(void *context, const struct bw_item *item)
{
    const struct named_item *named = context;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    struct bw_inode_ref ref;
    if (item->key.type == BW_INODE_REF)
        while (bw_inode_ref_next(&cursor, &item->key, &ref))
            BW_TRY(add_name(named, ref.parent, ref.name, ref.name_length));
    else
        while (bw_dir_entry_next(&cursor, &entry))
            if (entry.location.objectid == named->naming->held->subject.finding.inode)
                BW_TRY(add_name(named, item->key.objectid, entry.name, entry.name_length));
    return NULL;
}

static struct bw_error *find_name(struct bw_namings *namings, struct bw_naming *naming)
{
    struct named_item named = {namings, naming};
    const struct bw_key key = naming->held->subject.end_key;
    BW_TRY(bw_fs_items(namings->check->fs, &subvolume_of(namings, naming)->tree, key, key,
                       take_named_item, &named));
    return naming->count ? NULL : find_inode(namings, naming);
}

static struct bw_error *find_files(struct bw_namings *namings)
{
    for (size_t i = 0; i < namings->count; i++) {
        struct bw_naming *naming = &namings->items[i];
        naming->first_wanted = 1;
        if (!subvolume_of(namings, naming))
            continue;
        if (naming->held->subject.touches == BW_TOUCHES_INODE)
            BW_TRY(find_inode(namings, naming));
        else if (naming->held->subject.touches == BW_TOUCHES_NAME)
            BW_TRY(find_name(namings, naming));
        else if (naming->held->subject.touches == BW_TOUCHES_KEYS)
            BW_TRY(find_keys(namings, naming));
    }
    return NULL;
}

/* Other subvolumes that share a block. */

struct block_search {
    uint64_t logical;
    bool found;
};

static bool leads_to_block(void *context, const struct bw_block_pointer *pointer)
{
    struct block_search *search = context;
    search->found |= pointer->bytenr == search->logical;
    return !search->found && pointer->expectation.level;
}

static struct bw_error *ignore_leaf(void *context, const struct bw_node *leaf)
{
    (void)context;
    (void)leaf;
    return NULL;
}

static struct bw_error *count_sharing(struct bw_check *check, struct bw_finding *finding)
{
    const struct bw_subvolume *other = NULL;
    while ((other = bw_subvolume_next(check->fs, other))) {
        struct block_search search = {finding->logical, false};
        const struct bw_scan scan = {.first = finding->key,
                                     .last = finding->key,
                                     .wants = leads_to_block,
                                     .leaf = ignore_leaf,
                                     .lost = bw_scan_ignore_lost,
                                     .context = &search};
        if (other->tree.id == finding->tree || other->deleted)
            continue;
        BW_TRY(bw_tree_scan(&check->fs->reader, &other->tree, &scan));
        finding->more_subvolumes += search.found;
    }
    return NULL;
}

static struct bw_error *count_subvolumes(struct bw_namings *namings)
{
    const unsigned needed = BW_KNOWN_KEY | BW_KNOWN_LOGICAL;
    size_t compared = 0;
    for (size_t i = 0; i < namings->count && compared < MOST_COMPARED; i++) {
        struct bw_subject *subject = &namings->items[i].held->subject;
        if ((subject->touches != BW_TOUCHES_INODE && subject->touches != BW_TOUCHES_KEYS) ||
            (subject->finding.known & needed) != needed ||
            !subvolume_of(namings, &namings->items[i]))
            continue;
        BW_TRY(count_sharing(namings->check, &subject->finding));
        compared += namings->check->fs->subvolumes.count;
    }
    return NULL;
}

/* Names. */

/* The paths of a finding, as they come. */
struct listing {
    struct bw_fs *fs;
    struct bw_naming *naming;
    const struct bw_touched *file;
    struct bw_buffer *directory; /* the path of the last one */
    const struct bw_subvolume *subvolume;
    uint64_t number;             /* of the directory; 0: none is known */
    bool has_path;               /* of that directory */
    size_t first_path, capacity; /* of the present file; of the paths */
};

static struct bw_error *find_directory(struct listing *listing, uint64_t number)
{
    if (listing->subvolume == listing->file->subvolume && listing->number == number)
        return NULL;
    BW_AUTO_ERROR struct bw_error *error =
        bw_directory_path(listing->fs, listing->file->subvolume, number, listing->directory);
    listing->subvolume = listing->file->subvolume;
    listing->number = number;
    listing->has_path = !error;
    return error && error->code == BW_ERROR_NO_MEMORY ? BW_TAKE(error) : NULL;
}

static struct bw_error *add_path(struct listing *listing, uint64_t directory, const char *name,
                                 size_t length)
{
    struct bw_held_finding *held = listing->naming->held;
    struct bw_finding *finding = &held->subject.finding;
    BW_TRY(find_directory(listing, directory));
    if (!listing->has_path)
        return NULL;
    if (finding->path_count - listing->first_path == BW_PATHS_LISTED) {
        finding->more_paths++;
        return NULL;
    }
    const struct bw_buffer *above = listing->directory;
    const size_t before = !length && above->length > 1 ? above->length - 1 : above->length;
    char *path = malloc(before + length + 1);
    if (!path || !BW_ARRAY_RESERVE(held->paths, finding->path_count, listing->capacity)) {
        free(path);
        return bw_error_no_memory();
    }
    memcpy(path, above->data, before);
    memcpy(path + before, name, length);
    path[before + length] = 0;
    held->paths[finding->path_count++] = (struct bw_bytes){path, before + length};
    finding->paths = held->paths;
    return NULL;
}

static struct bw_error *take_name(void *context, const struct bw_inode_name *name)
{
    return add_path(context, name->directory, name->name, name->name_length);
}

static struct bw_error *list_file(struct bw_namings *namings, struct listing *listing,
                                  const struct bw_touched *file)
{
    const struct bw_place place = {.subvolume = file->subvolume, .inode = file->inode};
    listing->file = file;
    if (file->name_length)
        return add_path(listing, file->directory, namings->names.data + file->name,
                        file->name_length);
    if (file->inode == BW_SUBVOLUME_ROOT_INODE)
        return add_path(listing, file->inode, "", 0);
    return bw_inode_names(listing->fs, &place, take_name, listing);
}

/* The same as a finding of its own, with the paths that only this file has. */
static struct bw_error *list_part(struct bw_namings *namings, struct listing *listing,
                                  const struct bw_touched *file)
{
    struct bw_held_finding *held = listing->naming->held;
    struct bw_finding *finding = &held->subject.finding;
    listing->first_path = finding->path_count;
    BW_TRY(list_file(namings, listing, file));
    held->parts[held->part_count++] =
        (struct bw_file_part){.tree = file->subvolume->tree.id,
                              .inode = file->inode,
                              .file_offset = file->offset,
                              .file_length = file->length,
                              .logical = file->logical,
                              .length = file->stored,
                              .first_path = listing->first_path,
                              .path_count = finding->path_count - listing->first_path,
                              .more_paths = finding->more_paths,
                              .more_subvolumes = file->more_subvolumes};
    finding->more_paths = 0;
    return NULL;
}

static struct bw_error *list_parts(struct bw_namings *namings, struct listing *listing)
{
    struct bw_naming *naming = listing->naming;
    struct bw_held_finding *held = naming->held;
    if (!naming->count)
        return NULL;
    held->parts = calloc(naming->count, sizeof *held->parts);
    if (!held->parts)
        return bw_error_no_memory();
    for (size_t k = 0; k < naming->count; k++)
        BW_TRY(list_part(namings, listing, &naming->touched[k]));
    held->parts[held->part_count - 1].more_paths += naming->more;
    return NULL;
}

static struct bw_error *list_files(struct bw_namings *namings, struct listing *listing)
{
    struct bw_naming *naming = listing->naming;
    struct bw_finding *finding = &naming->held->subject.finding;
    uint64_t most = 0;
    for (size_t k = 0; k < naming->count; k++) {
        const struct bw_touched *file = &naming->touched[k];
        BW_TRY(list_file(namings, listing, file));
        most = file->more_subvolumes > most ? file->more_subvolumes : most;
    }
    finding->more_paths += naming->more;
    finding->more_subvolumes += most;
    return NULL;
}

static struct bw_error *list_paths(struct bw_namings *namings)
{
    BW_AUTO_BUFFER struct bw_buffer directory = {0};
    struct listing listing = {.fs = namings->check->fs, .directory = &directory};
    for (size_t i = 0; i < namings->count; i++) {
        listing.naming = &namings->items[i];
        listing.first_path = listing.capacity = 0;
        BW_TRY(listing.naming->held->subject.touches == BW_TOUCHES_EACH
                   ? list_parts(namings, &listing)
                   : list_files(namings, &listing));
    }
    return NULL;
}

static struct bw_error *name_all(struct bw_namings *namings)
{
    BW_TRY(find_files(namings));
    BW_TRY(bw_path_search(namings));
    BW_TRY(count_subvolumes(namings));
    return list_paths(namings);
}

struct bw_error *bw_check_name(struct bw_check *check, struct bw_held_finding *findings,
                               size_t count)
{
    struct bw_namings namings = {.check = check, .count = count};
    namings.items = calloc(count, sizeof *namings.items);
    if (!namings.items)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++)
        namings.items[i].held = &findings[i];
    struct bw_error *error = name_all(&namings);
    for (size_t i = 0; i < count; i++)
        free(namings.items[i].touched);
    free(namings.items);
    bw_buffer_free(&namings.names);
    return error;
}
