/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sorting a listing. Times and sizes begin with the newest and the largest, as ls has them; equal
 * ones are sorted by name. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/inspect/ls.h"

struct sorting {
    const struct ls_listing *listing;
    const struct ls_state *options;
};

const struct timespec *ls_time_of(const struct bw_inode *inode, enum ls_time time)
{
    return time == LS_ATIME   ? &inode->atime
           : time == LS_CTIME ? &inode->ctime
           : time == LS_OTIME ? &inode->otime
                              : &inode->mtime;
}

static int compare_bytes(const char *left, size_t left_length, const char *right,
                         size_t right_length)
{
    const size_t length = left_length < right_length ? left_length : right_length;
    const int order = memcmp(left, right, length);
    return order ? order : (left_length > right_length) - (left_length < right_length);
}

/* From the last dot on. */
static int compare_extensions(const char *left, size_t left_length, const char *right,
                              size_t right_length)
{
    const char *one = memrchr(left, '.', left_length), *other = memrchr(right, '.', right_length);
    return compare_bytes(one ? one : "", one ? (size_t)(left + left_length - one) : 0,
                         other ? other : "", other ? (size_t)(right + right_length - other) : 0);
}

static int compare_times(const struct timespec *left, const struct timespec *right)
{
    return left->tv_sec != right->tv_sec
               ? (left->tv_sec > right->tv_sec ? -1 : 1)
               : (left->tv_nsec < right->tv_nsec) - (left->tv_nsec > right->tv_nsec);
}

/* An inode that is lost comes last: it is all zeros. */
static int compare_inodes(const struct ls_state *options, const struct bw_inode *left,
                          const struct bw_inode *right)
{
    return options->order == LS_BY_SIZE ? (left->size < right->size) - (left->size > right->size)
           : options->order == LS_BY_TIME
               ? compare_times(ls_time_of(left, options->time), ls_time_of(right, options->time))
               : 0;
}

static int compare(const void *a, const void *b, void *context)
{
    const struct sorting *sorting = context;
    const struct ls_entry *left = a, *right = b;
    const char *bytes = sorting->listing->bytes.data;
    const char *one = bytes + left->name, *other = bytes + right->name;
    int order = compare_inodes(sorting->options, &left->inode, &right->inode);
    if (!order && sorting->options->order == LS_BY_EXTENSION)
        order = compare_extensions(one, left->name_length, other, right->name_length);
    if (!order)
        order = compare_bytes(one, left->name_length, other, right->name_length);
    return sorting->options->reverse ? -order : order;
}

struct bw_error *ls_listing_sort(struct ls_listing *listing, struct cmd_paths *paths,
                                 const struct ls_state *options)
{
    struct sorting sorting = {listing, options};
    if (options->order == LS_BY_SIZE || options->order == LS_BY_TIME)
        BW_TRY(ls_listing_fill(listing, paths, false));
    if (listing->count && options->order != LS_UNSORTED)
        qsort_r(listing->entries, listing->count, sizeof *listing->entries, compare, &sorting);
    return NULL;
}
