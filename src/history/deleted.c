/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deleted files: inodes that one generation has and the next one lacks. A subvolume that both have
 * is compared block by block; shared blocks are not read. Each inode becomes an entry with its name
 * and contents in the last generation that had it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/pair_set.h"
#include "base/path.h"
#include "base/struct_size.h"
#include "base/vector.h"
#include "btrfs-walk/history.h"
#include "diff/diff.h"
#include "fs/fs.h"
#include "fs/inode.h"
#include "fs/inode_paths.h"
#include "history/history.h"
#include "history/older_generations.h"
#include "history/request_blocks.h"
#include "ondisk/disk_items.h"

/* An inode that was deleted. */
struct bw_deleted_inode {
    const struct bw_subvolume *subvolume; /**< in the generation that has the inode */
    uint64_t number;
};

BW_VECTOR(bw_deleted_inodes, struct bw_deleted_inode);

/* A generation that was examined. */
struct examined {
    struct bw_deleted_state description;
    struct bw_fs *fs;
    struct bw_deleted_inodes inodes;
    uint64_t announced; /* bytes of data that were requested from servers */
};

/* How far the search may be ahead of the generation that was returned. */
enum {
    AHEAD = 16,             /* generations */
    AHEAD_BYTES = 32 << 20, /* of data that were requested */
    AHEAD_ENTRIES = 4096,   /* of a generation whose data are requested */
    AHEAD_MEMORY = 1 << 16, /* inodes and subvolumes, and for each image */
    IMAGE_MEMORY = 1 << 8,  /* as many; a local one needs a file descriptor */
};

struct bw_deleted {
    struct bw_fs *present;
    struct bw_deleted_options options;
    struct bw_older older;
    struct bw_buffer path; /**< options.path with a '/' before it and none after it */
    struct bw_fs *newer;   /**< the generation examined last; may be the current one */
    struct examined examined[AHEAD + 1]; /**< a ring, beginning with the last one returned */
    size_t first, count;                 /**< of the ring */
    bool returned;                       /**< the first was returned */
    bool at_end;                         /**< the current generation has been examined */
    bool reads_ahead;                    /**< data of several generations are requested together */
    struct bw_data_requests data;
    struct bw_pair_set known; /**< inodes that were returned: subvolume, number and generation */
    struct bw_key_map gone;   /**< deleted subvolumes that were returned */
};

/* From deleted inodes to entries, with their contents and names in the last generation that had
 * them. */

static bool is_selected(const struct bw_deleted *deleted, const struct bw_entry *entry)
{
    const struct bw_deleted_options *options = &deleted->options;
    const struct bw_selection *selection = options->selection;
    const struct bw_buffer *top = &deleted->path;
    const char *path = entry->path;
    const size_t length = entry->path_length;
    if (top->length && (length < top->length || memcmp(path, top->data, top->length) != 0 ||
                        (length > top->length && path[top->length] != '/')))
        return false;
    const unsigned depth = bw_path_names(path, length) - bw_path_names(top->data, top->length);
    if (depth < options->mindepth || (options->has_maxdepth && depth > options->maxdepth))
        return false;
    return !selection || (!bw_selection_excludes_entry(selection, entry) &&
                          bw_selection_accepts_name(selection, entry) &&
                          bw_selection_accepts_inode(selection, entry));
}

/* Visits all inodes, ordered by their tree. One without a name gets its number as one. */
static struct bw_error *visit_examined(const struct bw_deleted *deleted,
                                       const struct examined *examined, unsigned types,
                                       bw_entry_visitor *visit, void *context)
{
    const struct bw_selection *selection = deleted->options.selection;
    BW_SCOPED(bw_inode_paths)
    struct bw_inode_paths paths = {.fs = examined->fs, .with_deleted = true};
    types = types ? types : BW_WALK_ALL;
    for (size_t i = 0; i < examined->inodes.count; i++) {
        const struct bw_deleted_inode *deleted_inode = &examined->inodes.items[i];
        const struct bw_subvolume *subvolume = deleted_inode->subvolume;
        const uint64_t number = deleted_inode->number;
        struct bw_inode inode;
        BW_AUTO_ERROR struct bw_error *lost =
            bw_inode_read(examined->fs, &subvolume->tree, number, &inode);
        if (lost && lost->code == BW_ERROR_NO_MEMORY)
            return BW_TAKE(lost);
        const enum bw_file_type type = lost ? 0 : bw_file_type_of_mode(inode.mode);
        if (lost || !(types >> type & 1))
            continue;

        struct bw_bytes path = {0};
        if (inode.link_count || number == BW_SUBVOLUME_ROOT_INODE)
            bw_inode_paths_begin(&paths, subvolume, number);
        if (!bw_inode_paths_next(&paths, &path)) {
            char name[24];
            const int length = snprintf(name, sizeof name, "#%" PRIu64, number);
            BW_TRY(bw_inode_paths_error(&paths));
            BW_TRY(bw_inode_paths_join(&paths, subvolume, BW_SUBVOLUME_ROOT_INODE, name,
                                       (size_t)length, &path));
        }
        for (; path.data; bw_inode_paths_next(&paths, &path)) {
            const struct bw_entry entry = {
                .path = path.data,
                .path_length = path.length,
                .place = {.subvolume = subvolume, .inode = number, .type = (uint8_t)type},
                .inode = &inode};
            bool selected = is_selected(deleted, &entry);
            if (selected && selection)
                BW_TRY(bw_selection_accepts_xattrs(selection, examined->fs, &entry, &selected));
            if (selected)
                BW_TRY(visit(context, &entry));
        }
        BW_TRY(bw_inode_paths_error(&paths));
    }
    return NULL;
}

struct bw_error *bw_deleted_visit(struct bw_deleted *deleted, unsigned types,
                                  bw_entry_visitor *visit, void *context)
{
    return visit_examined(deleted, &deleted->examined[deleted->first], types, visit, context);
}

/*
 * Finding the inodes that were deleted between two generations. A subvolume that both have is
 * compared block by block; shared blocks are not read. If the newer generation lacks an inode
 * because a block is lost, it is looked up in the current generation. If that block is lost, too,
 * the inode does not count as deleted.
 */

/* The last ordinary inode number; larger ones have special meanings, such as BW_ORPHAN. */
#define LAST_INODE ((uint64_t)-257)

static struct bw_error *add_inode(struct examined *examined, const struct bw_subvolume *subvolume,
                                  uint64_t number)
{
    return bw_deleted_inodes_push(&examined->inodes, (struct bw_deleted_inode){subvolume, number});
}

/* Adds all inodes of a subvolume, unless a newer generation had it. */
static struct bw_error *add_all(struct bw_deleted *deleted, struct examined *examined,
                                const struct bw_subvolume *subvolume)
{
    if (bw_key_map_has(&deleted->gone, subvolume->tree.id))
        return NULL;
    BW_TRY(bw_key_map_put(&deleted->gone, subvolume->tree.id, 0));
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, examined->fs, &subvolume->tree,
                      (struct bw_key){BW_SUBVOLUME_ROOT_INODE, 0, 0},
                      (struct bw_key){LAST_INODE, UINT8_MAX, UINT64_MAX});
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));)
        if (item->key.type == BW_INODE_ITEM)
            BW_TRY(add_inode(examined, subvolume, item->key.objectid));
    return bw_fs_items_error(&items);
}

/* The same subvolume in another generation, unless it is being deleted there; or NULL. */
static const struct bw_subvolume *same_in(const struct bw_fs *fs,
                                          const struct bw_subvolume *subvolume)
{
    const struct bw_subvolume *found = bw_subvolume_by_id(fs, subvolume->tree.id);
    return found && !found->deleted ? found : NULL;
}

/* Compares a subvolume with the newer generation; if that has lost the subvolume, with the current
 * one. Adds the inodes that the newer one lacks, if the current one lacks them, too: because they
 * were deleted or, with options.lost, because their block is lost. An inode without a name, which
 * was open when it was deleted, is a different entry from the same inode with a name. */
static struct bw_error *find_in(struct bw_deleted *deleted, struct examined *examined,
                                const struct bw_subvolume *subvolume)
{
    const bool wants_lost = deleted->options.lost;
    const struct bw_subvolume *newer = same_in(deleted->newer, subvolume);
    const struct bw_subvolume *present = same_in(deleted->present, subvolume);
    const struct bw_subvolume *other = newer ? newer : present;
    if (!other)
        return wants_lost ? NULL : add_all(deleted, examined, subvolume);
    const struct bw_diff_side side = {.fs = deleted->present, .subvolume = present};
    BW_SCOPED(bw_diff_tree) struct bw_diff_tree tree = {0};
    if (present)
        bw_diff_tree_init(&tree, &side);
    struct bw_error *error = NULL;
    struct bw_pairs pairs = {
        .readers = {examined->fs->reader, (newer ? deleted->newer : deleted->present)->reader},
        .trees = {subvolume->tree, other->tree},
        .shared = true};
    while (!error && bw_pairs_next(&pairs)) {
        if (pairs.error) {
            bw_fs_report_lost(pairs.side ? deleted->newer : examined->fs, pairs.lost.bytenr,
                              BW_TAKE(pairs.error));
            continue;
        }
        const struct bw_item *const *items = pairs.pair.items;
        const uint64_t number = pairs.pair.key.objectid;
        struct bw_inode before, after = {.link_count = 0};
        if (pairs.pair.key.type != BW_INODE_ITEM || number <= BW_SUBVOLUME_ROOT_INODE ||
            number > LAST_INODE || !items[0] || !bw_inode_decode(items[0], &before))
            continue;
        const uint64_t generation = before.generation;
        const bool has =
            items[1] && bw_inode_decode(items[1], &after) && after.generation == generation;
        if (has && (after.link_count || !before.link_count))
            continue;

        bool lacking = !wants_lost, is_new = false;
        if (present) {
            struct bw_diff_file file;
            error = bw_diff_file_read(&tree, number, &file);
            const bool is_present = file.exists && file.inode.generation == generation;
            lacking = wants_lost ? file.lost : !file.lost && !is_present;
        }
        /* inode numbers are hardly ever reused, and few generations are involved */
        const uint64_t identity =
            number ^ generation << 40 ^ generation >> 24 ^ (uint64_t)!before.link_count << 63;
        if (!error && lacking)
            error = bw_pair_set_insert(&deleted->known, subvolume->tree.id, identity, &is_new);
        if (!error && is_new)
            error = add_inode(examined, subvolume, number);
    }
    return bw_pairs_end(&pairs, error);
}

/*
 * Requesting data. If the images are on servers, the data of several generations are requested
 * together before the first of these generations is returned.
 */

/* A generation whose data are being requested. */
struct announcing {
    struct bw_deleted *deleted;
    struct examined *examined;
    struct bw_extent_cursor cursor;
    uint64_t room; /* bytes */
    unsigned entries;
};

static struct bw_error *announce_entry(void *context, const struct bw_entry *entry)
{
    struct announcing *announcing = context;
    struct examined *examined = announcing->examined;
    const struct bw_data_file file = bw_data_file_of(&entry->place, entry->inode);
    if (announcing->entries++ == AHEAD_ENTRIES || examined->announced >= announcing->room)
        return bw_error_create(BW_ERROR_STOPPED, "enough data were requested");
    return bw_data_requests_add(&announcing->deleted->data, announcing->deleted->present,
                                &announcing->cursor, &file, announcing->room - examined->announced,
                                &examined->announced);
}

/* Bytes that were requested for generations that were not returned yet. */
static uint64_t announced_bytes(const struct bw_deleted *deleted)
{
    uint64_t bytes = 0;
    for (size_t i = deleted->returned; i < deleted->count; i++)
        bytes += deleted->examined[(deleted->first + i) % (AHEAD + 1)].announced;
    return bytes;
}

/* Iterating over the generations. Unless data are requested ahead, at most two older ones are open,
 * in addition to the current one. */

struct bw_error *bw_deleted_open(struct bw_fs *present, const struct bw_deleted_options *options,
                                 struct bw_deleted **result)
{
    struct bw_deleted *deleted = calloc(1, sizeof *deleted);
    if (!deleted)
        return bw_error_no_memory();
    struct bw_deleted_options *ours = &deleted->options;
    deleted->present = deleted->newer = present;
    ours->struct_size = sizeof *ours;
    struct bw_error *error = BW_TAKE_OPTIONS(ours, options);
    if (!error)
        error =
            bw_older_init(&deleted->older, present, ours->images, ours->states, ours->state_count);
    if (!error)
        error = bw_diff_set_filter(ours->path, &deleted->path);
    if (error) {
        bw_deleted_close(deleted);
        return error;
    }
    deleted->older.since = ours->since;
    deleted->older.progress = ours->progress;
    deleted->older.context = ours->context;
    deleted->reads_ahead = ours->reads_data && bw_history_is_served(present);
    *result = deleted;
    return NULL;
}

/* Removes the first generation of the ring. */
static void drop_first(struct bw_deleted *deleted)
{
    struct examined *examined = &deleted->examined[deleted->first];
    if (examined->fs != deleted->present)
        bw_fs_close(examined->fs);
    bw_deleted_inodes_free(&examined->inodes);
    *examined = (struct examined){0};
    deleted->first = (deleted->first + 1) % (AHEAD + 1);
    deleted->count--;
}

void bw_deleted_close(struct bw_deleted *deleted)
{
    if (!deleted)
        return;
    while (deleted->count)
        drop_first(deleted);
    bw_older_end(&deleted->older);
    bw_buffer_free(&deleted->path);
    bw_data_requests_free(&deleted->data);
    bw_pair_set_free(&deleted->known);
    bw_key_map_free(&deleted->gone);
    free(deleted);
}

/* Opens and examines the next generation, adds it to the ring, and requests its data from servers.
 */
static struct bw_error *examine_next(struct bw_deleted *deleted)
{
    struct examined *examined = &deleted->examined[(deleted->first + deleted->count) % (AHEAD + 1)];
    struct bw_fs *older;
    BW_TRY(bw_older_next(&deleted->older, &older));
    deleted->at_end = !older;
    struct bw_fs *fs = older ? older : deleted->present;
    *examined = (struct examined){.fs = fs};
    deleted->count++;
    if (older) {
        const struct bw_subvolume_table *table = &fs->subvolumes;
        for (size_t i = 0; i < table->count; i++)
            if (!table->items[i].deleted)
                BW_TRY(find_in(deleted, examined, &table->items[i]));
    } else {
        /* In the current generation, the deletion of some has begun, but not ended: of subvolumes
         * that no older generation has, and of files without a name, which have an orphan item. */
        const struct bw_subvolume_table *table = &deleted->present->subvolumes;
        for (size_t i = 0; i < table->count && !deleted->options.lost; i++) {
            const struct bw_diff_side side = {.fs = fs, .subvolume = &table->items[i]};
            if (side.subvolume->deleted) {
                BW_TRY(add_all(deleted, examined, side.subvolume));
                continue;
            }
            BW_SCOPED(bw_diff_tree) struct bw_diff_tree tree;
            bw_diff_tree_init(&tree, &side);
            BW_SCOPED(bw_fs_items) struct bw_fs_items items;
            bw_fs_items_begin(&items, fs, &side.subvolume->tree,
                              (struct bw_key){BW_ORPHAN, BW_ORPHAN_ITEM, 0},
                              (struct bw_key){BW_ORPHAN, BW_ORPHAN_ITEM, UINT64_MAX});
            for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
                struct bw_diff_file file;
                BW_TRY(bw_diff_file_read(&tree, item->key.offset, &file));
                if (file.inode.mode && !file.exists)
                    BW_TRY(add_inode(examined, side.subvolume, item->key.offset));
            }
            BW_TRY(bw_fs_items_error(&items));
        }
    }

    struct bw_deleted_state *state = &examined->description;
    *state = (struct bw_deleted_state){
        .fs = fs,
        .generation = fs->root_tree.root.generation,
        .tree_root = bw_fs_root_tree(fs)->root.bytenr,
        .is_present = fs == deleted->present,
    };
    BW_TRY(bw_older_time(fs, &state->time));
    state->lost = bw_fs_status(fs).damages;
    deleted->newer = fs;
    if (!deleted->reads_ahead || !older)
        return NULL;

    struct announcing announcing = {.deleted = deleted, .examined = examined};
    announcing.room = AHEAD_BYTES - announced_bytes(deleted);
    bw_extents_init(&announcing.cursor, fs);
    struct bw_error *error =
        visit_examined(deleted, examined, 1u << BW_FILE_REGULAR, announce_entry, &announcing);
    bw_extents_free(&announcing.cursor);
    if (error && error->code == BW_ERROR_STOPPED)
        bw_error_free(BW_TAKE(error));
    return error;
}

/* Whether another generation is to be examined before the next one is returned. */
static bool continues_ahead(const struct bw_deleted *deleted)
{
    size_t memory = 0;
    if (deleted->at_end || deleted->count == deleted->returned)
        return !deleted->at_end;
    for (size_t i = 0; i < deleted->count; i++) {
        const struct examined *examined = &deleted->examined[(deleted->first + i) % (AHEAD + 1)];
        memory += examined->inodes.count + examined->fs->subvolumes.count +
                  IMAGE_MEMORY * examined->fs->image_count;
    }
    return deleted->reads_ahead && deleted->count <= AHEAD && memory < AHEAD_MEMORY &&
           announced_bytes(deleted) < AHEAD_BYTES;
}

struct bw_error *bw_deleted_next(struct bw_deleted *deleted, const struct bw_deleted_state **state)
{
    *state = NULL;
    while (continues_ahead(deleted))
        BW_TRY(examine_next(deleted));
    bw_data_requests_send(&deleted->data);
    if (deleted->returned)
        drop_first(deleted);
    deleted->returned = deleted->count > 0;
    if (deleted->returned)
        *state = &deleted->examined[deleted->first].description;
    return NULL;
}
