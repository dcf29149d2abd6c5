/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From differing inodes to differing names. A file is the same in both trees if its number and its
 * generation are. Then its names are compared: names missing in one tree and names missing in the
 * other are paired as renames, and the rest are hard links that were removed or added.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "diff/diff.h"

/* The inode at hand, in both trees. */
struct pair {
    struct bw_diff *diff;
    const struct bw_touched *touched;
    struct bw_diff_file files[2];
    struct bw_diff_names own[2];          /* names that were read */
    const struct bw_diff_names *names[2]; /* the same; of both if they do not differ */
};

static struct bw_error *path_of(const struct pair *pair, unsigned side, size_t i,
                                struct bw_diff_text *path)
{
    const struct bw_diff_names *names = pair->names[side];
    const struct bw_diff_name *name = &names->list.items[i];
    return bw_diff_path(pair->diff, side, name->parent, names->bytes.data + name->bytes,
                        name->length, path);
}

static struct bw_error *top_path(struct bw_diff *diff, struct bw_diff_text *path)
{
    *path = (struct bw_diff_text){diff->texts.length, 1};
    bw_buffer_append_byte(&diff->texts, '/');
    return bw_buffer_error(&diff->texts);
}

static struct bw_error *add_row(const struct pair *pair, struct bw_diff_row row,
                                struct bw_diff_text path)
{
    row.path = path.at;
    row.path_length = path.length;
    return path.length ? bw_diff_rows_add(pair->diff, &row) : NULL;
}

/* A name that one tree has, and the other one lacks, if that is known. `changes` is that of links,
 * if the file is in both. */
static struct bw_error *report_only(const struct pair *pair, unsigned side, size_t i,
                                    unsigned changes)
{
    struct bw_diff_text path;
    bool unknown = pair->files[!side].lost || pair->names[!side]->lost;
    enum bw_difference_status status = side ? BW_DIFFERENCE_ADDED : BW_DIFFERENCE_DELETED;
    if (unknown)
        status = BW_DIFFERENCE_UNKNOWN;
    const struct bw_diff_file *const files[2] = {&pair->files[0], &pair->files[1]};
    struct bw_diff_row row =
        side ? bw_diff_row_of(status, NULL, files[1]) : bw_diff_row_of(status, files[0], NULL);
    row.directory = pair->names[side]->list.items[i].parent;
    row.changes = (uint16_t)changes;
    if (unknown || changes)
        row.bytes = 0;
    BW_TRY(path_of(pair, side, i, &path));
    return add_row(pair, row, path);
}

/* Reports the other differences in a file, under one of its names. */
static struct bw_error *report_changes(const struct pair *pair, struct bw_diff_text path,
                                       const struct bw_diff_result *result)
{
    struct bw_diff_row row =
        bw_diff_row_of(result->changes ? BW_DIFFERENCE_MODIFIED : BW_DIFFERENCE_UNKNOWN,
                       &pair->files[0], &pair->files[1]);
    row.changes = (uint16_t)result->changes;
    row.unknown = (uint16_t)result->unknown;
    row.bytes = result->bytes;
    return result->changes || result->unknown ? add_row(pair, row, path) : NULL;
}

/* The next name from `*i` on that the other tree lacks; the count at the end. */
static size_t next_only(const struct pair *pair, unsigned side, const bool *common, size_t i)
{
    while (i < pair->names[side]->list.count && common[i])
        i++;
    return i;
}

/* Compares the names. Those in both trees are reported with the differences in the file; the others
 * are paired as renames, and the rest are hard links that came or went. */
static struct bw_error *compare_lists(const struct pair *pair, const struct bw_diff_result *result)
{
    const size_t ends[2] = {pair->names[0]->list.count, pair->names[1]->list.count};
    const bool lost = pair->names[0]->lost || pair->names[1]->lost;
    BW_AUTO_FREE bool *common = calloc(ends[0] + ends[1] + 1, sizeof *common);
    if (!common)
        return bw_error_no_memory();
    bool *const commons[2] = {common, common + ends[0]};
    for (size_t i = 0, j = 0; i < ends[0] && j < ends[1];) {
        struct bw_diff_text path;
        const int order =
            bw_diff_names_compare(&pair->diff->touched, pair->names[0], i, pair->names[1], j);
        if (!order) {
            commons[0][i] = commons[1][j] = true;
            if (result->changes || result->unknown) {
                BW_TRY(path_of(pair, 1, j, &path));
                BW_TRY(report_changes(pair, path, result));
            }
        }
        i += order <= 0;
        j += order >= 0;
    }

    size_t i = next_only(pair, 0, commons[0], 0), j = next_only(pair, 1, commons[1], 0);
    while (!lost && i < ends[0] && j < ends[1]) {
        struct bw_diff_text old, new;
        struct bw_diff_row row =
            bw_diff_row_of(BW_DIFFERENCE_RENAMED, &pair->files[0], &pair->files[1]);
        BW_TRY(path_of(pair, 0, i, &old));
        BW_TRY(path_of(pair, 1, j, &new));
        row.old_path = old.at;
        row.old_path_length = old.length;
        if (old.length) {
            BW_TRY(add_row(pair, row, new));
            BW_TRY(report_changes(pair, new, result));
        }
        i = next_only(pair, 0, commons[0], i + 1);
        j = next_only(pair, 1, commons[1], j + 1);
    }
    for (; i < ends[0]; i = next_only(pair, 0, commons[0], i + 1))
        BW_TRY(report_only(pair, 0, i, BW_CHANGE_LINKS));
    for (; j < ends[1]; j = next_only(pair, 1, commons[1], j + 1))
        BW_TRY(report_only(pair, 1, j, BW_CHANGE_LINKS));
    return NULL;
}

/* Handles a file whose older inode is lost, which makes a comparison impossible. Its own
 * generations prove whether a later transaction created or changed it. If none did, it is the same.
 */
static struct bw_error *report_newer(struct pair *pair)
{
    const struct bw_diff_options *options = &pair->diff->options;
    const struct bw_diff_file *file = &pair->files[1];
    const bool added = file->inode.generation > options->since &&
                       !bw_is_earlier(&file->inode.otime, &options->since_time);
    const struct bw_touched_list *list = &pair->diff->touched;
    const struct bw_touched *next = pair->touched + 1;
    struct bw_diff_row row =
        bw_diff_row_of(added ? BW_DIFFERENCE_ADDED : BW_DIFFERENCE_MODIFIED, NULL, file);
    if (file->inode.transid <= options->since ||
        bw_is_earlier(&file->inode.ctime, &options->since_time))
        return NULL;
    pair->diff->summary.entries[1]++;
    row.proven = true;
    if (!added) {
        const size_t end =
            next < list->inodes.items + list->inodes.count ? next->range : list->ranges.count;
        row.old_inode = row.inode;
        row.bytes = 0;
        for (size_t i = pair->touched->range; i < end && S_ISREG(file->inode.mode); i++)
            if (list->ranges.items[i].start < row.size)
                row.bytes +=
                    (list->ranges.items[i].end < row.size ? list->ranges.items[i].end : row.size) -
                    list->ranges.items[i].start;
        row.changes = row.bytes ? BW_CHANGE_CONTENT : 0;
        row.unknown = (uint16_t)(((1U << BW_DIFFERENCE_CHANGES) - 1) & ~row.changes);
        if (S_ISDIR(file->inode.mode))
            row.unknown &= (uint16_t) ~(BW_CHANGE_CONTENT | BW_CHANGE_SIZE);
    }
    if (file->number == BW_SUBVOLUME_ROOT_INODE) {
        struct bw_diff_text top;
        BW_TRY(top_path(pair->diff, &top));
        return added ? NULL : add_row(pair, row, top);
    }
    BW_TRY(bw_diff_names_read(&pair->diff->trees[1], file->number, &pair->own[1]));
    pair->names[1] = &pair->own[1];
    for (size_t i = 0; i < pair->names[1]->list.count; i++) {
        struct bw_diff_text path;
        BW_TRY(path_of(pair, 1, i, &path));
        row.directory = pair->names[1]->list.items[i].parent;
        BW_TRY(add_row(pair, row, path));
    }
    return NULL;
}

static struct bw_error *compare_inode(struct pair *pair)
{
    struct bw_diff *diff = pair->diff;
    const uint64_t number = pair->touched->number;
    struct bw_diff_file *files = pair->files;
    for (unsigned side = 0; side < 2; side++)
        BW_TRY(bw_diff_file_read(&diff->trees[side], number, &files[side]));
    if (diff->options.since && files[0].lost && files[1].exists)
        return report_newer(pair);

    /* The names. If both sides have the same, one side is read. */
    const bool same = files[0].exists && files[1].exists &&
                      !(pair->touched->flags & (BW_TOUCHED_NAMES | BW_TOUCHED_REPLACED));
    for (unsigned side = 0; side < 2; side++) {
        struct bw_diff_names *own = &pair->own[side];
        diff->summary.entries[side] += files[side].exists;
        own->list.count = own->bytes.length = 0;
        own->lost = false;
        pair->names[side] = same ? &pair->own[1] : own;
        if (files[side].exists && (side || !same))
            BW_TRY(bw_diff_names_read(&diff->trees[side], number, own));
    }

    /* Another file: all names of both. */
    const bool is_top = number == BW_SUBVOLUME_ROOT_INODE;
    if (!files[0].exists || !files[1].exists ||
        (!is_top && (files[0].inode.generation != files[1].inode.generation ||
                     (files[0].inode.mode ^ files[1].inode.mode) & S_IFMT))) {
        for (unsigned side = 0; side < 2; side++)
            for (size_t i = 0; i < pair->names[side]->list.count; i++)
                BW_TRY(report_only(pair, side, i, 0));
        return NULL;
    }

    struct bw_diff_result result;
    BW_TRY(bw_diff_compare(diff, files, pair->touched, &result));
    if (!is_top)
        return compare_lists(pair, &result);
    struct bw_diff_text top;
    BW_TRY(top_path(diff, &top));
    return report_changes(pair, top, &result);
}

/* Nested subvolumes. */

static int by_id(const void *a, const void *b)
{
    const struct bw_nested_entry *left = a, *right = b;
    return BW_COMPARE_ALL(((uint64_t[]){left->id, left->side}),
                          ((uint64_t[]){right->id, right->side}));
}

static struct bw_error *nested_path(struct bw_diff *diff, const struct bw_nested_entry *entry,
                                    struct bw_diff_text *path)
{
    return bw_diff_path(diff, entry->side, entry->directory, diff->touched.names.data + entry->name,
                        entry->name_length, path);
}

/* Tells of an entry; `before`: the same subvolume had that one. */
static struct bw_error *report_nested(struct bw_diff *diff, const struct bw_nested_entry *before,
                                      const struct bw_nested_entry *entry)
{
    struct bw_diff_text path, old = {0};
    bool proven = false;
    if (entry->unknown && entry->side && diff->options.since) {
        struct bw_fs *fs = diff->trees[1].fs;
        const struct bw_subvolume *subvolume = bw_subvolume_by_id(fs, entry->id);
        struct bw_subvolume_info info;
        struct bw_error *error = subvolume ? bw_subvolume_get(fs, subvolume, &info) : NULL;
        proven = subvolume && !error && info.otransid > diff->options.since;
        if (subvolume && !error && !proven)
            return NULL;
        BW_TRY(bw_fs_report_damage(fs, error));
    }
    BW_TRY(nested_path(diff, entry, &path));
    if (before)
        BW_TRY(nested_path(diff, before, &old));
    if (!path.length || (before && !old.length))
        return NULL;
    struct bw_diff_row row = {
        .status = BW_DIFFERENCE_DELETED,
        .proven = proven,
        .path = path.at,
        .path_length = path.length,
        .old_path = old.at,
        .old_path_length = old.length,
        .directory = entry->directory,
    };
    if (entry->side) {
        row.status = before ? BW_DIFFERENCE_RENAMED : BW_DIFFERENCE_ADDED;
        row.inode = BW_EMPTY_DIRECTORY;
        row.type = BW_FILE_DIRECTORY;
    }
    if (before || !entry->side) {
        row.old_inode = BW_EMPTY_DIRECTORY;
        row.old_type = BW_FILE_DIRECTORY;
    }
    if (entry->unknown && !proven)
        row.status = BW_DIFFERENCE_UNKNOWN;
    return bw_diff_rows_add(diff, &row);
}

struct bw_error *bw_diff_by_inode(struct bw_diff *diff)
{
    struct pair pair = {.diff = diff};
    struct bw_error *error = bw_touched_find(diff);
    for (size_t i = 0; i < diff->touched.inodes.count && !error; i++) {
        pair.touched = &diff->touched.inodes.items[i];
        error = compare_inode(&pair);
    }
    bw_diff_names_free(&pair.own[0]);
    bw_diff_names_free(&pair.own[1]);
    if (error)
        return error;

    /* Nested subvolumes, whose entries only the trees of their parents have. */
    struct bw_nested_entries *nested = &diff->touched.nested;
    const char *names = diff->touched.names.data;
    bw_nested_entries_sort(nested, by_id);
    for (size_t i = 0; i < nested->count; i++) {
        const struct bw_nested_entry *entry = &nested->items[i];
        const struct bw_nested_entry *other = entry + 1;
        if (i + 1 == nested->count || other->id != entry->id || entry->side || !other->side) {
            BW_TRY(report_nested(diff, NULL, entry));
            continue;
        }
        /* Both sides have it. With one name in one directory, another index is no difference. */
        const struct bw_touched *parent = bw_touched_get(&diff->touched, entry->directory);
        const bool is_same =
            entry->directory == other->directory && entry->name_length == other->name_length &&
            memcmp(names + entry->name, names + other->name, entry->name_length) == 0 &&
            !(parent && parent->flags & BW_TOUCHED_REPLACED);
        if (!is_same)
            BW_TRY(report_nested(diff, entry, other));
        i++;
    }
    return NULL;
}
