/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Listing files. Directories are read in the order of readdir(3), some thousand entries at a time.
 * The remaining entries of a directory wait on a stack, above the entries of its parent
 * directories; so the memory depends on the depth of the tree, not on the length of directories.
 *
 * The listing is a sequence of steps: a file, entering a directory, leaving it. Callers get a batch
 * of them at once. Before that, the inodes of its files are read in the order of their numbers, if
 * anyone needs them, and the selection decides about them.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/human.h"
#include "base/search.h"
#include "base/vector.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/walk.h"
#include "fs/fs.h"
#include "owners/file_list.h"

enum {
    BATCH = 1 << 16, /* steps */
    BATCH_WITH_INODES = 1 << 14,
    MOST_WAITING = 1 << 15, /* entries of all directories on the stack, as far as possible */
    LEAST_WAITING = 1 << 4, /* and of each of them */
    INODES_AT_ONCE = 4096,
};

/* An entry that waits. */
struct waiting {
    struct bw_place place;
    size_t name;
    uint32_t name_length;
};

/* A directory that is being listed. */
struct level {
    struct bw_place place;
    uint64_t position;  /* where to continue reading */
    size_t first, next; /* entries that wait: the first that was read last, and the next one */
    size_t names;       /* where their names begin */
    size_t path_length; /* of the directory above it */
    bool reads;         /* there may be more to read */
};

BW_VECTOR(waiting_list, struct waiting);

BW_VECTOR(levels, struct level);

struct bw_file_list {
    struct bw_fs *fs;
    struct bw_file_list_options options;
    struct bw_directory *directory; /* one handle for all */
    struct levels levels;
    struct waiting_list waiting; /* what waits of the outermost directory comes first */
    struct bw_buffer waiting_names;
    struct bw_buffer path;              /* of the directory that is listed; only with a selection */
    struct bw_pair_set entered, listed; /* directories and files, by subvolume and inode */
    struct bw_key_map left;             /* subvolumes that are listed to their end */

    /* The batch. */
    struct bw_listed_file *files;
    struct bw_wanted_file *wanted;
    struct bw_wanted_inode *inodes;
    size_t count, room, wanted_count;
    struct bw_buffer names;
    struct bw_file_batch batch;
    struct bw_file_place place; /* where selecting by inodes is */
};

/* Adds a name to a path; a path without any becomes the name. */
static struct bw_error *append_name(struct bw_buffer *path, const char *name, size_t length)
{
    if (path->length && path->data[path->length - 1] != '/')
        bw_buffer_append_byte(path, '/');
    bw_buffer_append(path, name, length);
    return bw_buffer_end_text(path);
}

/* Where a reader of batches is. */

struct bw_error *bw_file_place_step(struct bw_file_place *place, const struct bw_file_batch *batch,
                                    const struct bw_listed_file *file)
{
    if (file->kind == BW_LISTED_LEAVE) {
        /* The path becomes the directory's path; the next step truncates it before its name. */
        place->path.length = place->length;
        place->length = place->above.items[--place->above.count];
        place->depth = place->above.count;
        return bw_buffer_end_text(&place->path);
    }
    place->path.length = place->length;
    place->depth = place->above.count;
    BW_TRY(append_name(&place->path, batch->names + file->name, file->name_length));
    if (file->kind == BW_LISTED_FILE)
        return NULL;
    BW_TRY(bw_sizes_push(&place->above, place->length));
    place->length = place->path.length;
    return NULL;
}

void bw_file_place_free(struct bw_file_place *place)
{
    bw_buffer_free(&place->path);
    bw_sizes_free(&place->above);
    *place = (struct bw_file_place){0};
}

/* Batches. */

static int by_inode(const void *a, const void *b)
{
    const struct bw_wanted_file *one = a, *other = b;
    return BW_COMPARE_ALL(((uint64_t[]){one->tree->id, one->inode, one->number}),
                          ((uint64_t[]){other->tree->id, other->inode, other->number}));
}

static bool selects_by_inode(const struct bw_file_list_options *options)
{
    return options->selection && (bw_selection_needs_inode(options->selection) ||
                                  bw_selection_needs_xattrs(options->selection));
}

/* The selection's decision about the inodes and attributes of the files of a batch. */
static struct bw_error *select_by_inode(struct bw_file_list *lister,
                                        const struct bw_file_batch *batch)
{
    const struct bw_selection *selection = lister->options.selection;
    for (size_t i = 0; i < lister->count; i++) {
        struct bw_listed_file *file = &lister->files[i];
        BW_TRY(bw_file_place_step(&lister->place, batch, file));
        if (!file->wanted)
            continue;
        const struct bw_wanted_inode *inode = &batch->inodes[file->inode_at];
        const struct bw_entry entry = {
            .path = lister->place.path.data,
            .path_length = lister->place.path.length,
            .place = {.subvolume = file->subvolume, .inode = file->inode, .type = BW_FILE_REGULAR},
            .inode = inode->found ? &inode->inode : NULL};
        bool accepts = bw_selection_accepts_inode(selection, &entry);
        if (accepts)
            BW_TRY(bw_selection_accepts_xattrs(selection, lister->fs, &entry, &accepts));
        file->wanted = accepts;
    }
    size_t kept = 0;
    for (size_t i = 0; i < lister->wanted_count; i++)
        if (lister->files[lister->wanted[i].number].wanted)
            lister->wanted[kept++] = lister->wanted[i];
    lister->wanted_count = kept;
    return NULL;
}

/* Completes the batch of the steps so far: reads inodes, selects, and sorts the wanted files. */
static struct bw_error *make_batch(struct bw_file_list *lister)
{
    struct bw_file_batch *batch = &lister->batch;
    *batch = (struct bw_file_batch){
        .files = lister->files, .count = lister->count, .names = lister->names.data};

    /* The wanted files in the order of their inodes. Most file systems list most inodes in
     * ascending order: sorting would take time, and as much memory again. */
    struct bw_wanted_file *wanted = lister->wanted;
    bool sorted = true;
    size_t count = 0;
    for (uint32_t i = 0; i < lister->count; i++) {
        const struct bw_listed_file *file = &lister->files[i];
        if (!file->wanted)
            continue;
        wanted[count] = (struct bw_wanted_file){&file->subvolume->tree, file->inode, i, 1};
        sorted &= !count || by_inode(&wanted[count - 1], &wanted[count]) < 0;
        count++;
    }
    lister->wanted_count = count;
    if (!sorted)
        qsort(wanted, count, sizeof *wanted, by_inode);

    if (lister->options.inodes || selects_by_inode(&lister->options)) {
        free(lister->inodes);
        batch->inodes = lister->inodes = calloc(lister->wanted_count + 1, sizeof *lister->inodes);
        if (!lister->inodes)
            return bw_error_no_memory();

        /* Each is read once, many of a tree at a time. The steps note where it is. */
        size_t numbers = 0, begun = 0;
        for (size_t i = 0; i < count; i++) {
            const struct bw_wanted_file *file = &wanted[i];
            struct bw_listed_file *step = &lister->files[file->number];
            if (!i || file[-1].tree != file->tree || file[-1].inode != file->inode)
                lister->inodes[numbers++].number = file->inode;
            step->inode_at = (uint32_t)numbers - 1;
            const bool is_last = i + 1 == count || file[1].tree != file->tree;
            if (begun == numbers || !(is_last || numbers - begun == INODES_AT_ONCE))
                continue;
            BW_TRY(bw_inodes_get(lister->fs, step->subvolume, lister->inodes + begun,
                                 numbers - begun, false));
            begun = numbers;
        }
    }
    if (selects_by_inode(&lister->options))
        BW_TRY(select_by_inode(lister, batch));

    /* Hard links become one file with several names. */
    for (size_t i = 0; i < lister->wanted_count; i++) {
        const struct bw_wanted_file next = wanted[i];
        struct bw_wanted_file *last = batch->wanted_count ? &wanted[batch->wanted_count - 1] : NULL;
        if (last && last->tree == next.tree && last->inode == next.inode)
            last->names++;
        else
            wanted[batch->wanted_count++] = next;
    }
    batch->wanted = wanted;
    return NULL;
}

/* Adds a step, for which there is room; `name` is empty where a directory ends. */
static struct bw_error *add_step(struct bw_file_list *lister, enum bw_listed_kind kind,
                                 const struct bw_place *place, const char *name, size_t length,
                                 bool wanted)
{
    bool is_new = true;
    if (wanted && lister->options.once)
        BW_TRY(bw_pair_set_insert(&lister->listed, bw_subvolume_id(place->subvolume), place->inode,
                                  &is_new));
    lister->files[lister->count++] = (struct bw_listed_file){.subvolume = place->subvolume,
                                                             .inode = place->inode,
                                                             .name = (uint32_t)lister->names.length,
                                                             .name_length = (uint32_t)length,
                                                             .kind = (uint8_t)kind,
                                                             .wanted = wanted && is_new};
    bw_buffer_append(&lister->names, name, length);
    return bw_buffer_error(&lister->names);
}

/* Directories. */

static bool is_inside_subvolume(const struct bw_file_list *lister, uint64_t subvolume)
{
    for (size_t i = 0; i < lister->levels.count; i++)
        if (bw_subvolume_id(lister->levels.items[i].place.subvolume) == subvolume)
            return true;
    return false;
}

/* Begins with a directory, whose name is the last one of the path. */
static struct bw_error *enter_directory(struct bw_file_list *lister, const struct bw_place *place,
                                        size_t path_length)
{
    const struct bw_file_list_options *options = &lister->options;
    const uint64_t tree = bw_subvolume_id(place->subvolume);
    struct level level = {.place = *place,
                          .position = BW_DIRECTORY_START,
                          .first = lister->waiting.count,
                          .next = lister->waiting.count,
                          .names = lister->waiting_names.length,
                          .path_length = path_length};

    /* Not entered: what the options exclude, and an empty one without an inode. */
    const bool is_nested =
        lister->levels.count && place->subvolume != lister->levels.items[0].place.subvolume;
    if ((is_nested && !bw_nested_enters(options->nested, options->subvolume)) ||
        (options->has_maxdepth && lister->levels.count >= options->maxdepth) ||
        place->inode == BW_EMPTY_DIRECTORY)
        return levels_push(&lister->levels, level);

    /* A directory has one entry; an image in which it has two could keep a listing busy for ever.
     */
    if (!bw_key_map_has(&lister->left, tree) || is_inside_subvolume(lister, tree))
        BW_TRY(bw_pair_set_insert(&lister->entered, tree, place->inode, &level.reads));
    if (!level.reads)
        bw_fs_report_text(lister->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                          "directory inode %" PRIu64 " of subvolume %" PRIu64 " has a second entry",
                          place->inode, tree);
    return levels_push(&lister->levels, level);
}

static bool is_listed(const struct bw_place *place)
{
    return place->type == BW_FILE_REGULAR || place->type == BW_FILE_DIRECTORY;
}

/* Reads more entries of the innermost directory, none of which wait any more. */
static struct bw_error *read_more(struct bw_file_list *lister, struct level *level)
{
    const struct bw_directory_entry *entry;
    lister->waiting.count = level->next = level->first;
    lister->waiting_names.length = level->names;
    if (lister->directory)
        BW_TRY(bw_directory_reopen(lister->directory, &level->place, level->position));
    else
        BW_TRY(bw_directory_open(lister->fs, &level->place, level->position, &lister->directory));
    while (lister->waiting.count < MOST_WAITING ||
           lister->waiting.count - level->first < LEAST_WAITING) {
        BW_TRY(bw_directory_next(lister->directory, &entry));
        level->reads = entry;
        if (!entry)
            return NULL;
        level->position = entry->position;
        const struct bw_subvolume *subvolume = entry->place.subvolume;
        const bool is_snapshot = subvolume != level->place.subvolume && subvolume->is_snapshot;
        if (!is_listed(&entry->place) || (is_snapshot && lister->options.no_snapshots))
            continue;
        BW_TRY(waiting_list_push(&lister->waiting,
                                 (struct waiting){entry->place, lister->waiting_names.length,
                                                  (uint32_t)entry->name_length}));
        bw_buffer_append(&lister->waiting_names, entry->name, entry->name_length);
        BW_TRY(bw_buffer_error(&lister->waiting_names));
    }
    return NULL;
}

/* The selection's decision about the name of an entry: whether it is wanted, and whether it exists
 * at all. */
static bool select_by_name(const struct bw_file_list *lister, const struct bw_place *place,
                           bool *wanted)
{
    const struct bw_entry entry = {
        .path = lister->path.data, .path_length = lister->path.length, .place = *place};
    *wanted = *wanted && bw_selection_accepts_name(lister->options.selection, &entry);
    return !bw_selection_excludes_entry(lister->options.selection, &entry);
}

/* Finds the start, and makes the first step. */
struct bw_error *bw_file_list_open(struct bw_fs *fs, const struct bw_file_list_options *options,
                                   struct bw_file_list **list)
{
    struct bw_file_list *lister = *list = calloc(1, sizeof *lister);
    if (!lister)
        return bw_error_no_memory();
    lister->fs = fs;
    lister->options = *options;
    options = &lister->options;
    const struct bw_walk_options where = {
        .struct_size = sizeof where, .subvolume = options->subvolume, .start = options->start};
    const struct bw_subvolume *from = bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME);
    if (options->subvolume)
        BW_TRY(bw_subvolume_by_name(fs, options->subvolume, &from));
    if (!from)
        return bw_error_create(BW_ERROR_NOT_FOUND, "there is no top-level subvolume");
    const char *start = options->start ? options->start : "/";
    BW_AUTO_FREE char *path = NULL;
    struct bw_place place;
    size_t length;
    BW_TRY(bw_lookup(fs, from, start, false, &place));
    if (!is_listed(&place))
        return NULL;
    BW_TRY(bw_walk_start_path(fs, &where, &path, &length));

    const bool reads_inodes = options->inodes || selects_by_inode(options);
    lister->room = reads_inodes ? BATCH_WITH_INODES : BATCH;
    lister->files = malloc(lister->room * sizeof *lister->files);
    lister->wanted = malloc(lister->room * sizeof *lister->wanted);
    if (!lister->files || !lister->wanted)
        return bw_error_no_memory();

    const bool is_file = place.type == BW_FILE_REGULAR;
    bool wanted = is_file && !options->mindepth;
    if (options->selection) {
        BW_TRY(append_name(&lister->path, path, length));
        if (is_file && !select_by_name(lister, &place, &wanted))
            wanted = false;
    }
    const enum bw_listed_kind kind = is_file ? BW_LISTED_FILE : BW_LISTED_ENTER;
    BW_TRY(add_step(lister, kind, &place, path, length, wanted));
    return is_file ? NULL : enter_directory(lister, &place, 0);
}

struct bw_error *bw_file_list_next(struct bw_file_list *lister, const struct bw_file_batch **batch)
{
    const struct bw_file_list_options *options = &lister->options;
    *batch = NULL;
    if (lister->batch.files) /* only the first step was made by bw_file_list_open() */
        lister->count = lister->names.length = 0;

    /* The innermost directory: some of its entries, then those that wait. At its end, it is left.
     */
    while (lister->levels.count && lister->count < lister->room) {
        struct level *level = &lister->levels.items[lister->levels.count - 1];
        if (level->next == lister->waiting.count) {
            if (level->reads) {
                BW_TRY(read_more(lister, level));
                continue;
            }
            lister->levels.count--;
            const struct level *outer = lister->levels.count ? level - 1 : NULL;
            const uint64_t subvolume = bw_subvolume_id(level->place.subvolume);
            lister->path.length = level->path_length;
            lister->waiting.count = level->first;
            lister->waiting_names.length = level->names;
            /* After a subvolume, only its number is kept. */
            if (outer && outer->place.subvolume != level->place.subvolume &&
                !is_inside_subvolume(lister, subvolume)) {
                bw_pair_set_forget(&lister->entered, subvolume);
                bw_pair_set_forget(&lister->listed, subvolume);
                BW_TRY(bw_key_map_put(&lister->left, subvolume, 1));
            }
            BW_TRY(add_step(lister, BW_LISTED_LEAVE, &level->place, "", 0, false));
            continue;
        }
        const struct waiting entry = lister->waiting.items[level->next++];
        const char *name = lister->waiting_names.data + entry.name;
        const size_t above = lister->path.length;
        const bool is_file = entry.place.type == BW_FILE_REGULAR;
        bool wanted = is_file && lister->levels.count >= options->mindepth;
        if (options->selection) {
            BW_TRY(append_name(&lister->path, name, entry.name_length));
            if (!select_by_name(lister, &entry.place, &wanted)) {
                lister->path.length = above;
                continue;
            }
        }
        BW_TRY(add_step(lister, is_file ? BW_LISTED_FILE : BW_LISTED_ENTER, &entry.place, name,
                        entry.name_length, wanted));
        if (is_file)
            lister->path.length = above;
        else
            BW_TRY(enter_directory(lister, &entry.place, above));
    }
    if (!lister->count)
        return NULL;
    BW_TRY(make_batch(lister));
    *batch = &lister->batch;
    return NULL;
}

void bw_file_list_close(struct bw_file_list *lister)
{
    if (!lister)
        return;
    bw_directory_close(lister->directory);
    levels_free(&lister->levels);
    waiting_list_free(&lister->waiting);
    bw_buffer_free(&lister->waiting_names);
    bw_buffer_free(&lister->path);
    bw_pair_set_free(&lister->entered);
    bw_pair_set_free(&lister->listed);
    bw_key_map_free(&lister->left);
    free(lister->files);
    free(lister->wanted);
    free(lister->inodes);
    bw_buffer_free(&lister->names);
    bw_file_place_free(&lister->place);
    free(lister);
}
