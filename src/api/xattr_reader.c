/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The extended attributes of many inodes. The leaf that the last inode was in is kept, so inodes in
 * ascending order are found without a search each.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "format/items.h"
#include "fs/fs.h"
#include "fs/inode.h"

/* Of one inode. The kernel lists at most 64 KiB of names, and no value is longer than a leaf. */
enum { MOST_BYTES = 8 << 20 };

struct bw_xattr_reader {
    struct bw_fs *fs;
    struct bw_leaf_finder finder;
    uint64_t inode; /* whose attributes these are */
    struct bw_xattr *xattrs;
    size_t count, capacity;
    struct bw_buffer bytes; /* names and values, which the array points into */
};

struct bw_error *bw_xattr_reader_create(struct bw_fs *fs, struct bw_xattr_reader **reader)
{
    *reader = calloc(1, sizeof **reader);
    if (!*reader)
        return bw_error_no_memory();
    (*reader)->fs = fs;
    bw_leaf_finder_init(&(*reader)->finder, &fs->reader, &(struct bw_tree){0});
    return NULL;
}

void bw_xattr_reader_destroy(struct bw_xattr_reader *reader)
{
    if (!reader)
        return;
    bw_leaf_finder_free(&reader->finder);
    bw_buffer_free(&reader->bytes);
    free(reader->xattrs);
    free(reader);
}

static void lose(struct bw_xattr_reader *reader, uint64_t inode, const char *what)
{
    bw_fs_report(reader->fs, BW_DAMAGE,
                 bw_error_create(BW_ERROR_CORRUPT, "tree %" PRIu64 ": inode %" PRIu64 ": %s",
                                 reader->finder.tree.id, inode, what));
}

/* Copies one; its pointers are set when no more are coming. */
static struct bw_error *add(void *context, const struct bw_xattr *xattr)
{
    struct bw_xattr_reader *reader = context;
    if (reader->bytes.length >= MOST_BYTES)
        return NULL;
    if (memchr(xattr->name, '\0', xattr->name_length)) {
        /* Neither a system call nor an archive can name it: they would make another one of it. */
        lose(reader, reader->inode, "an extended attribute whose name has a NUL byte is left out");
        return NULL;
    }
    bw_buffer_append(&reader->bytes, xattr->name, xattr->name_length);
    bw_buffer_append_byte(&reader->bytes, '\0');
    bw_buffer_append(&reader->bytes, xattr->value, xattr->value_length);
    if (reader->bytes.failed || !BW_ARRAY_RESERVE(reader->xattrs, reader->count, reader->capacity))
        return bw_error_no_memory();
    reader->xattrs[reader->count++] = *xattr;
    return NULL;
}

static struct bw_error *add_item(struct bw_xattr_reader *reader, uint32_t slot)
{
    struct bw_item item;
    if (!bw_leaf_item(&reader->finder.leaf, slot, &item)) {
        lose(reader, reader->inode, "an extended attribute is cut off");
        return NULL;
    }
    return bw_xattrs_of_item(reader->fs, reader->finder.tree.id, &item, add, reader);
}

/* Adds what the leaf has in which `*at` belongs, of what is behind `*before`; goes on to the next
 * leaf. */
static struct bw_error *add_leaf(struct bw_xattr_reader *reader, struct bw_key *at,
                                 struct bw_key *before)
{
    struct bw_leaf_finder *finder = &reader->finder;
    const struct bw_key last = {at->objectid, BW_XATTR_ITEM, UINT64_MAX};
    BW_TRY(bw_find_leaf(finder, at));
    if (finder->error)
        bw_fs_report_lost(reader->fs, finder->bytenr, BW_TAKE(finder->error));
    *at = finder->end;
    for (int64_t slot; !finder->lost && (slot = bw_leaf_first_behind(finder, before)) >= 0;) {
        const struct bw_key key = bw_leaf_key(&finder->leaf, (uint32_t)slot);
        if (bw_key_compare(&key, &last) > 0)
            break;
        BW_TRY(add_item(reader, (uint32_t)slot));
        *before = key;
    }
    return NULL;
}

static void set_pointers(struct bw_xattr_reader *reader)
{
    const uint8_t *next = (const uint8_t *)reader->bytes.data;
    for (size_t i = 0; i < reader->count; i++) {
        struct bw_xattr *xattr = &reader->xattrs[i];
        xattr->name = next;
        xattr->value = next + xattr->name_length + 1;
        next = xattr->value + xattr->value_length;
    }
}

struct bw_error *bw_xattr_reader_read(struct bw_xattr_reader *reader, const struct bw_place *place,
                                      const struct bw_xattr **xattrs, size_t *count)
{
    const uint64_t inode = place->inode;
    struct bw_key at = {inode, BW_XATTR_ITEM, 0}, before = {inode, BW_XATTR_ITEM - 1, UINT64_MAX};
    const struct bw_key last = {inode, BW_XATTR_ITEM, UINT64_MAX};
    reader->count = reader->bytes.length = 0;
    reader->inode = inode;
    bw_leaf_finder_set_tree(&reader->finder, &place->subvolume->tree);
    while (bw_key_compare(&at, &last) <= 0)
        BW_TRY(add_leaf(reader, &at, &before));
    if (reader->bytes.length >= MOST_BYTES)
        lose(reader, inode, "too many extended attributes");
    set_pointers(reader);
    *xattrs = reader->xattrs;
    *count = reader->count;
    return NULL;
}
