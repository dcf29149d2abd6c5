/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A directory of an image as one side of a comparison, with the subvolumes nested in it if these
 * are requested. Inodes are read by load(), so that a caller can load many of them in the order of
 * the tree. Each directory is entered once, so directories that contain themselves do no harm.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/pair_set.h"
#include "diff/diff.h"
#include "diff/entries.h"
#include "fs/lookup.h"

struct image_side {
    struct bw_entries entries; /* the first member */
    struct bw_descent descent;
    struct bw_pair_set entered;
    struct bw_directory *directory;
    struct bw_place top;
    bool nested, no_snapshots, has_begun;
    struct bw_diff_tree tree; /* of the entry loaded last */
    bool has_tree;
};

/* Reads the names in the current directory. */
static struct bw_error *list_directory(struct image_side *side)
{
    struct bw_side_entry *entry = &side->entries.entry;
    struct bw_fs *fs = side->entries.fs;
    const struct bw_place *place = &entry->place;
    bool is_new;
    BW_TRY(bw_pair_set_insert(&side->entered, bw_subvolume_id(place->subvolume), place->inode,
                              &is_new));
    const char *problem = is_new ? NULL : "has several names; it is compared once";
    if (side->descent.path.length > BW_DESCENT_LONGEST)
        problem = "is not compared: its path is too long";
    if (problem) {
        bw_fs_report_text(fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                          "subvolume %" PRIu64 ": directory %" PRIu64 " %s",
                          bw_subvolume_id(place->subvolume), place->inode, problem);
        entry->may_have_more = true;
        return NULL;
    }
    struct bw_level *level;
    BW_TRY(bw_descent_enter(&side->descent, &level));
    if (side->directory)
        BW_TRY(bw_directory_reopen(side->directory, place, BW_DIRECTORY_START));
    else
        BW_TRY(bw_directory_open(fs, place, BW_DIRECTORY_START, &side->directory));
    const struct bw_directory_entry *found;
    for (;;) {
        BW_TRY(bw_directory_next(side->directory, &found));
        if (!found)
            break;
        BW_TRY(bw_level_add(level, found->name, found->name_length, &found->place));
    }
    bw_level_sort(level);
    /* after an error in a stream, entries of any directory may be missing */
    entry->may_have_more = !bw_directory_is_complete(side->directory) || fs->stream_errors;
    return NULL;
}

static struct bw_error *next_entry(struct bw_entries *entries)
{
    struct image_side *side = (struct image_side *)entries;
    struct bw_side_entry *entry = &entries->entry;
    const struct bw_level_item *item = NULL;
    const bool is_top = !side->has_begun;
    if (!is_top)
        item = bw_descent_next(&side->descent);
    BW_TRY(bw_buffer_error(&side->descent.path));
    entries->ended = !is_top && !item;
    if (entries->ended)
        return NULL;
    side->has_begun = true;
    *entry = (struct bw_side_entry){.path = "", .place = side->top};
    if (!is_top)
        *entry = (struct bw_side_entry){.path = side->descent.path.data,
                                        .path_length = side->descent.path.length,
                                        .place = item->place};
    struct bw_place *place = &entry->place;
    const bool is_subvolume = !is_top && place->inode == BW_SUBVOLUME_ROOT_INODE;
    entry->is_nested = is_subvolume || bw_place_is_empty(place);
    entry->is_empty = bw_place_is_empty(place) || (is_subvolume && !side->nested);
    entry->is_excluded =
        is_subvolume && (!side->nested || (side->no_snapshots && place->subvolume->is_snapshot));
    uint64_t subvolume = bw_subvolume_id(place->subvolume);
    if (entry->is_empty && is_subvolume)
        subvolume = place->subvolume->parent;
    if (entry->is_empty)
        place->inode = BW_EMPTY_DIRECTORY;
    entry->facts = (struct bw_diff_entry){
        .known = BW_KNOWS_TYPE, .type = place->type, .subvolume = subvolume, .inode = place->inode};
    if (place->type != BW_FILE_DIRECTORY || entry->is_empty || entry->is_excluded)
        return NULL;
    return list_directory(side);
}

static void skip_directory(struct bw_entries *entries)
{
    bw_descent_skip(&((struct image_side *)entries)->descent);
}

/* Facts. */

static struct bw_error *load_inode(struct bw_entries *entries, struct bw_side_entry *entry)
{
    struct image_side *side = (struct image_side *)entries;
    const struct bw_place *place = &entry->place;
    struct bw_diff_entry *facts = &entry->facts;
    struct bw_diff_file file;
    if (entry->is_empty)
        return NULL;
    if (side->has_tree)
        bw_diff_tree_set(&side->tree, place->subvolume);
    else
        bw_diff_tree_init(&side->tree,
                          &(struct bw_diff_side){.fs = entries->fs, .subvolume = place->subvolume});
    side->has_tree = true;
    BW_TRY(bw_diff_file_read(&side->tree, place->inode, &file));
    entry->is_lost = !file.exists;
    if (entry->is_lost && !file.lost)
        bw_fs_report_text(entries->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                          "subvolume %" PRIu64 ": inode %" PRIu64 " is missing",
                          bw_subvolume_id(place->subvolume), place->inode);
    if (entry->is_lost)
        return NULL;
    const struct bw_inode *inode = &file.inode;
    entry->inode = *inode;
    bw_entry_set_facts(facts, inode);
    if (S_ISDIR(inode->mode))
        return NULL;
    facts->known |= BW_KNOWS_LINKS;
    facts->links = inode->link_count;
    return NULL;
}

struct bw_diff_file bw_entries_image_file(struct bw_entries *entries,
                                          const struct bw_side_entry *entry)
{
    struct image_side *side = (struct image_side *)entries;
    return (struct bw_diff_file){
        .tree = &side->tree, .number = entry->place.inode, .exists = true, .inode = entry->inode};
}

static struct bw_error *read_target(struct bw_entries *entries, const struct bw_side_entry *entry,
                                    struct bw_buffer *target, bool *lost)
{
    struct bw_error *error =
        bw_symlink_read(entries->fs, &entry->place.subvolume->tree, entry->place.inode, target);
    *lost = error;
    return bw_fs_report_damage(entries->fs, error);
}

static struct bw_error *read_xattrs(struct bw_entries *entries, const struct bw_side_entry *entry,
                                    struct bw_xattr_list *list, bool *lost)
{
    const struct bw_diff_file file = bw_entries_image_file(entries, entry);
    return bw_diff_xattrs_read(&file, list, lost);
}

static void close_image(struct bw_entries *entries)
{
    struct image_side *side = (struct image_side *)entries;
    bw_descent_free(&side->descent);
    bw_pair_set_free(&side->entered);
    bw_directory_close(side->directory);
    if (side->has_tree)
        bw_diff_tree_free(&side->tree);
    free(side);
}

static const struct bw_entries_class image_class = {
    .next = next_entry,
    .skip = skip_directory,
    .load = load_inode,
    .target = read_target,
    .xattrs = read_xattrs,
    .close = close_image,
};

struct bw_error *bw_entries_open_image(const struct bw_diff_side *from,
                                       const struct bw_diff_options *options,
                                       struct bw_entries **result)
{
    struct image_side *side = calloc(1, sizeof *side);
    if (!side)
        return bw_error_no_memory();
    side->entries = (struct bw_entries){
        .class = &image_class,
        .fs = from->fs,
        .knows = (BW_KNOWS_BYTES << 1) - 1,
        .types = BW_ENTRIES_ALL_TYPES,
        .tells_nested = true,
        .lacks_nested = from->fs->is_stream,
    };
    side->top = bw_place_top(from->subvolume);
    if (from->directory)
        side->top.inode = from->directory;
    side->nested = options->nested;
    side->no_snapshots = options->no_snapshots;
    *result = &side->entries;
    return NULL;
}
