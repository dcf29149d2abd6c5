/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collected differences: all of them are kept, so that they can be passed on in the order of their
 * paths, and so that a replacement is reported in one row. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "diff/diff.h"
#include "diff/entries.h"

static const char *text_of(const struct bw_diff *diff, size_t at)
{
    return diff->texts.data + at;
}

bool bw_diff_selects(const struct bw_diff *diff, const char *path, size_t length)
{
    const struct bw_buffer *filter = &diff->filter;
    if (!filter->length)
        return true;
    return length >= filter->length && memcmp(path, filter->data, filter->length) == 0 &&
           (length == filter->length || path[filter->length] == '/');
}

struct bw_error *bw_diff_rows_add(struct bw_diff *diff, const struct bw_diff_row *row)
{
    if (!bw_diff_selects(diff, text_of(diff, row->path), row->path_length) &&
        !(row->old_path_length &&
          bw_diff_selects(diff, text_of(diff, row->old_path), row->old_path_length)))
        return NULL;
    return bw_diff_rows_push(&diff->rows, *row);
}

struct bw_diff_row bw_diff_row_of(enum bw_difference_status status,
                                  const struct bw_diff_file *before,
                                  const struct bw_diff_file *after)
{
    struct bw_diff_row row = {.status = (uint8_t)status};
    if (before) {
        row.old_inode = before->number;
        row.old_type = bw_file_type_of_mode(before->inode.mode);
        row.old_size = S_ISDIR(before->inode.mode) ? 0 : before->inode.size;
    }
    if (after) {
        row.inode = after->number;
        row.type = bw_file_type_of_mode(after->inode.mode);
        row.size = S_ISDIR(after->inode.mode) ? 0 : after->inode.size;
    }
    if (!before && row.type == BW_FILE_REGULAR)
        row.bytes = row.size;
    if (!after && row.old_type == BW_FILE_REGULAR)
        row.bytes = row.old_size;
    return row;
}

static int by_path(const void *a, const void *b, void *texts)
{
    const struct bw_diff_row *left = a, *right = b;
    const char *text = texts;
    int order = bw_compare_paths(text + left->path, left->path_length, text + right->path,
                                 right->path_length);
    /* A deleted object comes before the object that replaces it. */
    if (!order)
        order = (right->status == BW_DIFFERENCE_DELETED) - (left->status == BW_DIFFERENCE_DELETED);
    if (!order)
        order =
            (left->status == BW_DIFFERENCE_MODIFIED) - (right->status == BW_DIFFERENCE_MODIFIED);
    return order ? order : bw_compare(left->inode, right->inode);
}

/* Whether a directory is still what it was, or has taken the place of that. */
static bool is_same_directory(const struct bw_diff *diff, uint64_t old, uint64_t new)
{
    const uint32_t row = bw_key_map_get(&diff->replaced, new, UINT32_MAX);
    if (row != UINT32_MAX)
        return diff->rows.items[row].old_inode == old;
    const struct bw_touched *touched = bw_touched_get(&diff->touched, new);
    return old == new && !(touched && touched->flags & BW_TOUCHED_REPLACED);
}

static bool have_same_path(const struct bw_diff *diff, const struct bw_diff_row *a,
                           const struct bw_diff_row *b)
{
    return a->path_length == b->path_length &&
           memcmp(text_of(diff, a->path), text_of(diff, b->path), a->path_length) == 0;
}

/* Whether a row is about a file that may be in the other tree, too. */
static bool is_unknown(const struct bw_diff_row *row)
{
    return row->status == BW_DIFFERENCE_UNKNOWN && !row->unknown;
}

/* Whether a path has one file before and another one after, and of one of them it is not known
 * whether the other tree has it. */
static bool is_doubtful(const struct bw_diff *diff, const struct bw_diff_row *a,
                        const struct bw_diff_row *b)
{
    bool only[2] = {a->status == BW_DIFFERENCE_DELETED || is_unknown(a),
                    b->status == BW_DIFFERENCE_ADDED || is_unknown(b)};
    return only[0] && only[1] && (is_unknown(a) || is_unknown(b)) && have_same_path(diff, a, b);
}

/* Makes one row of an old and a new file with the same path: of another type, or compared, since
 * both have been read before. `*reported`: there is something to be reported. */
static struct bw_error *merge_rows(struct bw_diff *diff, const struct bw_diff_row *old,
                                   const struct bw_diff_row *new, struct bw_diff_row *row,
                                   bool *reported)
{
    struct bw_diff_file files[2];
    struct bw_diff_result result;
    *row = *new;
    row->old_inode = old->old_inode;
    row->old_size = old->old_size;
    row->old_type = old->old_type;
    row->changes = row->unknown = 0;
    if (row->type != row->old_type) {
        row->status = BW_DIFFERENCE_TYPE;
        row->bytes = bw_max(old->bytes, new->bytes);
        *reported = true;
        return NULL;
    }
    *reported = row->inode != BW_EMPTY_DIRECTORY && row->old_inode != BW_EMPTY_DIRECTORY;
    if (!*reported)
        return NULL;
    BW_TRY(bw_diff_file_read(&diff->trees[0], row->old_inode, &files[0]));
    BW_TRY(bw_diff_file_read(&diff->trees[1], row->inode, &files[1]));
    BW_TRY(bw_diff_compare(diff, files, NULL, &result));
    row->changes = (uint16_t)result.changes;
    row->unknown = (uint16_t)result.unknown;
    row->bytes = result.bytes;
    row->status = result.changes ? BW_DIFFERENCE_MODIFIED : BW_DIFFERENCE_UNKNOWN;
    *reported = result.changes || result.unknown;
    return NULL;
}

static void make_unknown(struct bw_diff_row *row)
{
    row->status = BW_DIFFERENCE_UNKNOWN;
    row->changes = 0;
    row->bytes = 0;
}

void bw_diff_count(struct bw_diff_summary *summary, const struct bw_difference *difference)
{
    const struct {
        enum bw_difference_status status;
        uint64_t *count;
    } counts[] = {
        {BW_DIFFERENCE_ADDED, &summary->added},       {BW_DIFFERENCE_DELETED, &summary->deleted},
        {BW_DIFFERENCE_MODIFIED, &summary->modified}, {BW_DIFFERENCE_RENAMED, &summary->renamed},
        {BW_DIFFERENCE_TYPE, &summary->types},        {BW_DIFFERENCE_UNKNOWN, &summary->unknown},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        *counts[i].count += counts[i].status == difference->status;
    summary->bytes += difference->bytes;
}

/* The path of a row from the top of the compared subvolumes. The top of a nested one has no '/'. */
static struct bw_error *whole_path(struct bw_diff *diff, bool is_old, struct bw_diff_text text,
                                   const char **path, size_t *length)
{
    const size_t prefix = strlen(diff->prefix);
    *path = text.length ? text_of(diff, text.at) : NULL;
    *length = text.length;
    if (!prefix || !text.length)
        return NULL;
    struct bw_buffer *whole = &diff->paths[is_old];
    whole->length = 0;
    bw_buffer_append(whole, diff->prefix, prefix);
    bw_buffer_append(whole, *path, *length > 1 ? *length : 0);
    *path = whole->data;
    *length = whole->length;
    return bw_buffer_error(whole);
}

static struct bw_error *visit_difference(struct bw_diff *diff, const struct bw_diff_row *row)
{
    const struct bw_diff_text path = {row->path, row->path_length},
                              old_path = {row->old_path, row->old_path_length};
    struct bw_difference difference = {
        .status = row->status,
        .changes = row->changes,
        .unknown = row->unknown,
        .type = row->type,
        .old_type = row->old_type,
        .old_inode = row->old_inode,
        .inode = row->inode,
        .old_size = row->old_size,
        .size = row->size,
        .bytes = row->bytes,
    };
    if (diff->exists[0])
        difference.old_subvolume = diff->trees[0].subvolume->tree.id;
    if (diff->exists[1])
        difference.subvolume = diff->trees[1].subvolume->tree.id;
    BW_TRY(whole_path(diff, false, path, &difference.path, &difference.path_length));
    BW_TRY(whole_path(diff, true, old_path, &difference.old_path, &difference.old_path_length));
    bw_diff_count(&diff->summary, &difference);
    return diff->options.visit(diff->options.context, &difference);
}

struct bw_error *bw_diff_rows_visit(struct bw_diff *diff)
{
    struct bw_diff_rows *rows = &diff->rows;
    if (rows->count)
        qsort_r(rows->items, rows->count, sizeof *rows->items, by_path, diff->texts.data);
    for (size_t i = 0; i < rows->count; i++) {
        const struct bw_diff_row *old = &rows->items[i],
                                 *new = i + 1 < rows->count ? old + 1 : NULL;
        struct bw_diff_row row = *old;
        bool reported = true;
        /* A name that was taken from one file and given to another. A directory that was renamed,
         * and another one that got its path, are reported apart: then names in them are not the
         * same. */
        if (new && old->status == BW_DIFFERENCE_DELETED &&new->status == BW_DIFFERENCE_ADDED &&
            is_same_directory(diff, old->directory, new->directory) &&
            have_same_path(diff, old, new)) {
            BW_TRY(merge_rows(diff, old, new, &row, &reported));
            BW_TRY(bw_key_map_put(&diff->replaced, row.inode, (uint32_t)i++));
        } else if (new &&is_doubtful(diff, old, new)) {
            make_unknown(&row);
            i++;
        }
        /* A path known in one tree only may also be in the other one, if that has losses: a file
         * that has taken the place may be lost. */
        struct bw_diff_tree *other = &diff->trees[row.status == BW_DIFFERENCE_DELETED];
        bool possible = false;
        if (other->lost && !row.proven &&
            (row.status == BW_DIFFERENCE_DELETED || row.status == BW_DIFFERENCE_ADDED))
            BW_TRY(bw_diff_may_have(other, text_of(diff, row.path), row.path_length, &possible));
        if (possible)
            make_unknown(&row);
        if (reported)
            BW_TRY(visit_difference(diff, &row));
    }
    return NULL;
}
