/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gathering the extended attributes of one inode, from the leaf that the inode before was in if
 * possible. */
#include "export/details.h"

#include <inttypes.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "fs/fs.h"
#include "fs/inode.h"

/* Of one inode. The kernel lists no more than 64 KiB of names, and no value is longer than a leaf.
 */
enum { MOST_BYTES = 8 << 20 };

void bw_details_init(struct bw_details *details, struct bw_fs *fs)
{
    *details = (struct bw_details){.fs = fs};
    bw_leaf_finder_init(&details->finder, &fs->reader, &(struct bw_tree){0});
}

void bw_details_free(struct bw_details *details)
{
    bw_leaf_finder_free(&details->finder);
    bw_buffer_free(&details->bytes);
    free(details->xattrs);
}

static void lose(struct bw_details *details, uint64_t inode, const char *what)
{
    bw_fs_report(details->fs, BW_DAMAGE,
                 bw_error_create(BW_ERROR_CORRUPT, "tree %" PRIu64 ": inode %" PRIu64 ": %s",
                                 details->finder.tree.id, inode, what));
}

/* Copies one; its pointers are set when no more are coming. */
static struct bw_error *add(void *context, const struct bw_xattr *xattr)
{
    struct bw_details *details = context;
    if (details->bytes.length >= MOST_BYTES)
        return NULL;
    if (memchr(xattr->name, '\0', xattr->name_length)) {
        /* Neither a system call nor an archive can name it: they would make another one of it. */
        lose(details, details->inode,
             "an extended attribute whose name has a NUL byte is left out");
        return NULL;
    }
    bw_buffer_append(&details->bytes, xattr->name, xattr->name_length);
    bw_buffer_append_byte(&details->bytes, '\0');
    bw_buffer_append(&details->bytes, xattr->value, xattr->value_length);
    if (details->bytes.failed ||
        !BW_ARRAY_RESERVE(details->xattrs, details->count, details->capacity))
        return bw_error_no_memory();
    details->xattrs[details->count++] = *xattr;
    return NULL;
}

static struct bw_error *add_item(struct bw_details *details, uint32_t slot)
{
    struct bw_item item;
    if (!bw_leaf_item(&details->finder.leaf, slot, &item)) {
        lose(details, details->inode, "an extended attribute is cut off");
        return NULL;
    }
    return bw_xattrs_of_item(details->fs, details->finder.tree.id, &item, add, details);
}

/* Adds what the leaf has in which `*at` belongs, of what is behind `*before`; goes on to the next
 * leaf. */
static struct bw_error *add_leaf(struct bw_details *details, struct bw_key *at,
                                 struct bw_key *before)
{
    struct bw_leaf_finder *finder = &details->finder;
    const struct bw_key last = {at->objectid, BW_XATTR_ITEM, UINT64_MAX};
    BW_TRY(bw_find_leaf(finder, at));
    if (finder->error)
        bw_fs_report_lost(details->fs, finder->bytenr, BW_TAKE(finder->error));
    *at = finder->end;
    for (int64_t slot; !finder->lost && (slot = bw_leaf_first_behind(finder, before)) >= 0;) {
        const struct bw_key key = bw_leaf_key(&finder->leaf, (uint32_t)slot);
        if (bw_key_compare(&key, &last) > 0)
            break;
        BW_TRY(add_item(details, (uint32_t)slot));
        *before = key;
    }
    return NULL;
}

static void set_pointers(struct bw_details *details)
{
    const uint8_t *next = (const uint8_t *)details->bytes.data;
    for (size_t i = 0; i < details->count; i++) {
        struct bw_xattr *xattr = &details->xattrs[i];
        xattr->name = next;
        xattr->value = next + xattr->name_length + 1;
        next = xattr->value + xattr->value_length;
    }
}

struct bw_error *bw_details_read(struct bw_details *details, const struct bw_tree *tree,
                                 uint64_t inode)
{
    struct bw_key at = {inode, BW_XATTR_ITEM, 0}, before = {inode, BW_XATTR_ITEM - 1, UINT64_MAX};
    const struct bw_key last = {inode, BW_XATTR_ITEM, UINT64_MAX};
    details->count = details->bytes.length = 0;
    details->inode = inode;
    bw_leaf_finder_set_tree(&details->finder, tree);
    while (bw_key_compare(&at, &last) <= 0)
        BW_TRY(add_leaf(details, &at, &before));
    if (details->bytes.length >= MOST_BYTES)
        lose(details, inode, "too many extended attributes");
    set_pointers(details);
    return NULL;
}
