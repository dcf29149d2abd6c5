/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Listing files. Directories are read in the order in which they were found, so that what is in one
 * lies together in the list. The order of readdir(3) comes from walking through the list.
 */
#include "owners/file_list.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "btrfs-walk/directory.h"
#include "btrfs-walk/selection.h"
#include "fs/fs.h"

enum { INODES_AT_ONCE = 4096 };

void bw_file_list_free(struct bw_file_list *list)
{
    free(list->files);
    free(list->wanted);
    bw_buffer_free(&list->names);
    bw_buffer_free(&list->path);
    bw_pair_set_free(&list->entered);
}

static struct bw_error *end_text(struct bw_buffer *text)
{
    bw_buffer_append_byte(text, '\0');
    text->length -= !text->failed;
    return text->failed ? bw_error_no_memory() : NULL;
}

struct bw_error *bw_file_list_path(const struct bw_file_list *list, uint32_t number,
                                   struct bw_buffer *path)
{
    size_t length = 0;
    for (uint32_t at = number; at != BW_NO_FILE; at = list->files[at].parent)
        length += strlen(list->names.data + list->files[at].name) + 1;
    path->length = 0;
    if (!bw_buffer_reserve(path, length + 1))
        return bw_error_no_memory();
    char *to = path->data + length, *end = to;
    for (uint32_t at = number; at != BW_NO_FILE; at = list->files[at].parent) {
        const char *name = list->names.data + list->files[at].name;
        const size_t bytes = strlen(name);
        if (to != end && !(bytes && name[bytes - 1] == '/')) /* only the top one ends with it */
            *--to = '/';
        to -= bytes;
        memcpy(to, name, bytes);
    }
    path->length = (size_t)(end - to);
    memmove(path->data, to, path->length);
    return end_text(path);
}

/* Reading directories. */

static struct bw_error *append(struct bw_file_list *list, const struct bw_place *place,
                               const char *name, size_t length, uint32_t parent)
{
    if (list->count >= BW_NO_FILE || !BW_ARRAY_RESERVE(list->files, list->count, list->capacity))
        return bw_error_no_memory();
    list->files[list->count++] = (struct bw_listed_file){
        .subvolume = place->subvolume,
        .inode = place->inode,
        .name = list->names.length,
        .parent = parent,
        .is_directory = place->type == BW_FILE_DIRECTORY,
        .wanted = place->type == BW_FILE_REGULAR && !list->too_high,
    };
    bw_buffer_append(&list->names, name, length);
    bw_buffer_append_byte(&list->names, '\0');
    return list->names.failed ? bw_error_no_memory() : NULL;
}

/* What the selection says of the file that was appended last, if its path is in list->path. */
static bool select_by_name(struct bw_file_list *list, const struct bw_place *place)
{
    const struct bw_entry entry = {
        .path = list->path.data, .path_length = list->path.length, .place = *place};
    struct bw_listed_file *file = &list->files[list->count - 1];
    file->wanted = file->wanted && bw_selection_accepts_name(list->selection, &entry);
    return !bw_selection_excludes_entry(list->selection, &entry);
}

/* Adds an entry of a directory, which has the first `above` bytes of list->path. */
static struct bw_error *append_entry(struct bw_file_list *list, size_t above, uint32_t parent,
                                     const struct bw_directory_entry *entry)
{
    const size_t names = list->names.length;
    if (entry->place.type != BW_FILE_REGULAR && entry->place.type != BW_FILE_DIRECTORY)
        return NULL;
    BW_TRY(append(list, &entry->place, entry->name, entry->name_length, parent));
    if (!list->selection)
        return NULL;
    list->path.length = above;
    if (above != 1)
        bw_buffer_append_byte(&list->path, '/');
    bw_buffer_append(&list->path, entry->name, entry->name_length);
    BW_TRY(end_text(&list->path));
    if (!select_by_name(list, &entry->place)) {
        list->count--;
        list->names.length = names;
    }
    return NULL;
}

static struct bw_error *append_entries(struct bw_file_list *list, uint32_t parent,
                                       struct bw_directory *directory)
{
    const struct bw_directory_entry *entry;
    const size_t above = list->path.length;
    for (;;) {
        BW_TRY(bw_directory_next(directory, &entry));
        if (!entry)
            return NULL;
        BW_TRY(append_entry(list, above, parent, entry));
    }
}

/* A directory has one entry; an image in which it has two could keep a listing busy for ever. */
static struct bw_error *enter_once(struct bw_file_list *list, const struct bw_listed_file *file,
                                   bool *enters)
{
    *enters = file->inode != BW_EMPTY_DIRECTORY;
    const uint64_t tree = bw_subvolume_id(file->subvolume);
    if (!*enters)
        return NULL;
    if (!bw_pair_set_add(&list->entered, tree, file->inode, enters))
        return bw_error_no_memory();
    if (!*enters)
        bw_fs_report(list->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "directory inode %" PRIu64 " of tree %" PRIu64
                                     " has a second entry",
                                     file->inode, tree));
    return NULL;
}

uint64_t bw_file_list_depth(const struct bw_file_list *list, uint32_t number)
{
    uint64_t depth = 0;
    while ((number = list->files[number].parent) != BW_NO_FILE)
        depth++;
    return depth;
}

/* Whether what is in a directory may be wanted. */
static bool goes_down(const struct bw_file_list *list, uint32_t number)
{
    return !list->has_maxdepth || bw_file_list_depth(list, number) < list->maxdepth;
}

static struct bw_error *read_directory(struct bw_file_list *list, uint32_t number)
{
    const struct bw_listed_file file = list->files[number];
    const struct bw_place place = {
        .subvolume = file.subvolume, .inode = file.inode, .type = BW_FILE_DIRECTORY};
    struct bw_directory *directory;
    bool enters;
    BW_TRY(enter_once(list, &file, &enters));
    if (!enters)
        return NULL;
    if (list->selection)
        BW_TRY(bw_file_list_path(list, number, &list->path));
    const size_t first = list->count;
    list->too_high = list->mindepth && bw_file_list_depth(list, number) + 1 < list->mindepth;
    BW_TRY(bw_directory_open(list->fs, &place, BW_DIRECTORY_START, &directory));
    struct bw_error *error = append_entries(list, number, directory);
    bw_directory_close(directory);
    list->files[number].first = (uint32_t)first;
    list->files[number].count = (uint32_t)(list->count - first);
    return error;
}

static struct bw_error *find_start(const struct bw_file_list *list, const char *subvolume,
                                   const char *start, struct bw_place *place)
{
    const struct bw_subvolume *from = bw_subvolume_by_id(list->fs, BW_TOP_SUBVOLUME);
    if (subvolume)
        BW_TRY(bw_subvolume_by_name(list->fs, subvolume, &from));
    if (!from)
        return bw_error_create(BW_ERROR_NOT_FOUND, "there is no top-level subvolume");
    return bw_lookup(list->fs, from, start ? start : "/", false, place);
}

struct bw_error *bw_file_list_add(struct bw_file_list *list, const char *subvolume,
                                  const char *start)
{
    const struct bw_walk_options where = {
        .struct_size = sizeof where, .subvolume = subvolume, .start = start};
    const size_t first = list->count;
    BW_AUTO_FREE char *path = NULL;
    struct bw_place place;
    size_t length;
    BW_TRY(find_start(list, subvolume, start, &place));
    if (place.type != BW_FILE_REGULAR && place.type != BW_FILE_DIRECTORY)
        return NULL;
    BW_TRY(bw_walk_start_path(list->fs, &where, &path, &length));
    list->too_high = list->mindepth;
    BW_TRY(append(list, &place, path, length, BW_NO_FILE));
    if (list->selection) {
        BW_TRY(bw_file_list_path(list, (uint32_t)first, &list->path));
        if (place.type == BW_FILE_REGULAR && !select_by_name(list, &place))
            list->files[first].wanted = false;
    }
    bw_pair_set_free(&list->entered);
    for (size_t i = first; i < list->count; i++)
        if (list->files[i].is_directory && goes_down(list, (uint32_t)i))
            BW_TRY(read_directory(list, (uint32_t)i));
    return NULL;
}

/* The order of readdir(3). */

static uint32_t first_below(const struct bw_file_list *list, uint32_t number)
{
    while (list->files[number].count)
        number = list->files[number].first;
    return number;
}

uint32_t bw_file_list_begin(const struct bw_file_list *list, uint32_t start)
{
    return first_below(list, start);
}

uint32_t bw_file_list_next(const struct bw_file_list *list, uint32_t number)
{
    const uint32_t above = list->files[number].parent;
    if (above == BW_NO_FILE)
        return BW_NO_FILE;
    const struct bw_listed_file *parent = &list->files[above];
    return number + 1 < parent->first + parent->count ? first_below(list, number + 1) : above;
}

/* Sorting, and what the selection says of inodes. */

static int by_inode(const void *a, const void *b)
{
    const struct bw_wanted_file *one = a, *other = b;
    const uint64_t tree = bw_subvolume_id(one->subvolume);
    const uint64_t other_tree = bw_subvolume_id(other->subvolume);
    if (tree != other_tree)
        return tree < other_tree ? -1 : 1;
    if (one->inode != other->inode)
        return one->inode < other->inode ? -1 : 1;
    return one->order < other->order ? -1 : one->order > other->order;
}

static void gather(struct bw_file_list *list)
{
    uint32_t order = 0;
    for (uint32_t start = 0; start < list->count; start++) {
        if (list->files[start].parent != BW_NO_FILE)
            continue;
        uint32_t at = bw_file_list_begin(list, start);
        for (; at != BW_NO_FILE; at = bw_file_list_next(list, at)) {
            const struct bw_listed_file *file = &list->files[at];
            if (file->wanted)
                list->wanted[list->wanted_count++] =
                    (struct bw_wanted_file){file->subvolume, file->inode, at, order++, 1};
        }
    }
}

/* Most file systems list most inodes in ascending order: sorting would take time, and as much
 * memory again. */
static void sort(struct bw_file_list *list)
{
    const struct bw_wanted_file *wanted = list->wanted;
    size_t i = 1;
    while (i < list->wanted_count && by_inode(&wanted[i - 1], &wanted[i]) < 0)
        i++;
    if (i < list->wanted_count)
        qsort(list->wanted, list->wanted_count, sizeof *list->wanted, by_inode);
}

/* Makes one of those that are names of the same inode. */
static void unite(struct bw_file_list *list)
{
    size_t count = 0;
    for (size_t i = 0; i < list->wanted_count; i++) {
        struct bw_wanted_file *last = count ? &list->wanted[count - 1] : NULL;
        const struct bw_wanted_file next = list->wanted[i];
        if (!last || last->subvolume != next.subvolume || last->inode != next.inode) {
            list->wanted[count++] = next;
            continue;
        }
        last->names++;
        list->files[next.number].again = true;
    }
    list->wanted_count = count;
}

static struct bw_error *select_file(struct bw_file_list *list, const struct bw_wanted_file *file,
                                    const struct bw_wanted_inode *inode, bool *takes)
{
    BW_TRY(bw_file_list_path(list, file->number, &list->path));
    const struct bw_entry entry = {
        .path = list->path.data,
        .path_length = list->path.length,
        .place = {.subvolume = file->subvolume, .inode = file->inode, .type = BW_FILE_REGULAR},
        .inode = inode->found ? &inode->inode : NULL};
    *takes = bw_selection_accepts_inode(list->selection, &entry);
    return NULL;
}

/* Keeps those of `count` inodes of one subvolume that the selection takes, from `*kept` on. */
static struct bw_error *select_some(struct bw_file_list *list, size_t first, size_t count,
                                    struct bw_wanted_inode *inodes, size_t *kept)
{
    bool takes;
    for (size_t i = 0; i < count; i++)
        inodes[i].number = list->wanted[first + i].inode;
    BW_TRY(bw_inodes_get(list->fs, list->wanted[first].subvolume, inodes, count, false));
    for (size_t i = 0; i < count; i++) {
        const struct bw_wanted_file file = list->wanted[first + i];
        BW_TRY(select_file(list, &file, &inodes[i], &takes));
        list->files[file.number].wanted = takes;
        if (takes)
            list->wanted[(*kept)++] = file;
    }
    return NULL;
}

static struct bw_error *select_by_inode(struct bw_file_list *list)
{
    size_t kept = 0, end;
    BW_AUTO_FREE struct bw_wanted_inode *inodes = calloc(INODES_AT_ONCE, sizeof *inodes);
    if (!inodes)
        return bw_error_no_memory();
    for (size_t i = 0; i < list->wanted_count; i = end) {
        const struct bw_subvolume *subvolume = list->wanted[i].subvolume;
        for (end = i + 1; end < list->wanted_count && end - i < INODES_AT_ONCE &&
                          list->wanted[end].subvolume == subvolume;)
            end++;
        BW_TRY(select_some(list, i, end - i, inodes, &kept));
    }
    list->wanted_count = kept;
    return NULL;
}

struct bw_error *bw_file_list_sort(struct bw_file_list *list)
{
    list->wanted = calloc(list->count + 1, sizeof *list->wanted);
    if (!list->wanted)
        return bw_error_no_memory();
    gather(list);
    sort(list);
    unite(list);
    return list->selection && bw_selection_needs_inode(list->selection) ? select_by_inode(list)
                                                                        : NULL;
}
