/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What differs in a file that is in both trees: attributes, extended attributes, contents. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "diff/diff.h"

const char *bw_difference_change_name(unsigned bit)
{
    static const char *const names[BW_DIFFERENCE_CHANGES] = {"content", "size",   "mode", "owner",
                                                             "times",   "xattrs", "links"};
    return bit < BW_DIFFERENCE_CHANGES ? names[bit] : NULL;
}

/* Extended attributes. An item also tells when it was written: their values are compared. */

struct attribute {
    size_t at, length; /* in the bytes: the length of the name, the name, the value */
};

struct attributes {
    struct attribute *items;
    size_t count, capacity;
    struct bw_buffer bytes;
};

static struct bw_error *take_attributes(void *context, const struct bw_item *item)
{
    struct attributes *attributes = context;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_buffer *bytes = &attributes->bytes;
    struct bw_xattr xattr;
    while (bw_xattr_next(&cursor, &xattr)) {
        if (!BW_ARRAY_RESERVE(attributes->items, attributes->count, attributes->capacity))
            return bw_error_no_memory();
        const size_t at = bytes->length;
        bw_buffer_append(bytes, &xattr.name_length, sizeof xattr.name_length);
        bw_buffer_append(bytes, xattr.name, xattr.name_length);
        bw_buffer_append(bytes, xattr.value, xattr.value_length);
        attributes->items[attributes->count++] = (struct attribute){at, bytes->length - at};
    }
    return bytes->failed ? bw_error_no_memory() : NULL;
}

static int by_bytes(const void *a, const void *b, void *bytes)
{
    const struct attribute *left = a, *right = b;
    const char *text = bytes;
    size_t length = left->length < right->length ? left->length : right->length;
    int order = memcmp(text + left->at, text + right->at, length);
    return order ? order : (left->length > right->length) - (left->length < right->length);
}

static struct bw_error *read_attributes(const struct bw_diff_file *file,
                                        struct attributes *attributes, bool *lost)
{
    BW_TRY(bw_diff_items(file->tree, &file->tree->finder,
                         (struct bw_key){file->number, BW_XATTR_ITEM, 0},
                         (struct bw_key){file->number, BW_XATTR_ITEM, UINT64_MAX}, take_attributes,
                         attributes, lost));
    if (attributes->count)
        qsort_r(attributes->items, attributes->count, sizeof *attributes->items, by_bytes,
                attributes->bytes.data);
    return NULL;
}

static bool are_equal(const struct attributes *a, const struct attributes *b)
{
    if (a->count != b->count || a->bytes.length != b->bytes.length)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->items[i].length != b->items[i].length ||
            memcmp(a->bytes.data + a->items[i].at, b->bytes.data + b->items[i].at,
                   a->items[i].length) != 0)
            return false;
    return true;
}

static struct bw_error *compare_xattrs(const struct bw_diff_file files[2],
                                       struct bw_diff_result *result)
{
    struct attributes attributes[2] = {{0}};
    bool lost = false;
    struct bw_error *error = read_attributes(&files[0], &attributes[0], &lost);
    if (!error)
        error = read_attributes(&files[1], &attributes[1], &lost);
    if (!error && lost)
        result->unknown |= BW_CHANGE_XATTRS;
    else if (!error && !are_equal(&attributes[0], &attributes[1]))
        result->changes |= BW_CHANGE_XATTRS;
    for (unsigned side = 0; side < 2; side++) {
        free(attributes[side].items);
        bw_buffer_free(&attributes[side].bytes);
    }
    return error;
}

/* Attributes. */

static unsigned compare_inodes(const struct bw_inode *a, const struct bw_inode *b)
{
    const uint32_t type = b->mode & S_IFMT;
    unsigned changes = 0;
    if ((a->mode ^ b->mode) & ~(uint32_t)S_IFMT)
        changes |= BW_CHANGE_MODE;
    if (a->uid != b->uid || a->gid != b->gid)
        changes |= BW_CHANGE_OWNER;
    if (a->mtime.tv_sec != b->mtime.tv_sec || a->mtime.tv_nsec != b->mtime.tv_nsec)
        changes |= BW_CHANGE_TIMES;
    if (type != S_IFDIR && a->link_count != b->link_count)
        changes |= BW_CHANGE_LINKS;
    if ((type == S_IFCHR || type == S_IFBLK) && a->device != b->device)
        changes |= BW_CHANGE_CONTENT;
    if ((type == S_IFREG || type == S_IFLNK) && a->size != b->size)
        changes |= BW_CHANGE_SIZE | BW_CHANGE_CONTENT;
    return changes;
}

static struct bw_error *compare_contents(struct bw_diff *diff, const struct bw_diff_file files[2],
                                         const struct bw_touched *touched,
                                         struct bw_diff_result *result)
{
    const struct bw_touched_list *list = &diff->touched;
    const struct bw_diff_range all = {0, UINT64_MAX};
    const uint64_t before = files[0].inode.size, after = files[1].inode.size;
    if (!S_ISREG(files[0].inode.mode) && !S_ISLNK(files[0].inode.mode))
        return NULL;
    result->bytes = before > after ? before - after : after - before;
    if (!touched)
        return bw_diff_contents(diff, files, &all, 1, result);
    bool is_last = touched == &list->items[list->count - 1];
    size_t end = is_last ? list->range_count : touched[1].range;
    return bw_diff_contents(diff, files, list->ranges + touched->range, end - touched->range,
                            result);
}

struct bw_error *bw_diff_compare(struct bw_diff *diff, const struct bw_diff_file files[2],
                                 const struct bw_touched *touched, struct bw_diff_result *result)
{
    *result = (struct bw_diff_result){
        .changes = compare_inodes(&files[0].inode, &files[1].inode),
    };
    if (!touched || touched->flags & BW_TOUCHED_XATTRS)
        BW_TRY(compare_xattrs(files, result));
    BW_TRY(compare_contents(diff, files, touched, result));
    if (result->changes & BW_CHANGE_CONTENT)
        result->unknown &= ~(unsigned)BW_CHANGE_CONTENT;
    if (S_ISLNK(files[1].inode.mode))
        result->bytes = 0;
    return NULL;
}
