/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Extended attributes. Each XATTR_ITEM contains all attributes whose names have the same hash. A
 * reader copies the attributes of one inode after another. It keeps the leaf of the last inode, so
 * inodes in ascending order are usually found without a search. Damage is reported, and the other
 * attributes are read.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/vector.h"
#include "fs/fs.h"
#include "fs/inode.h"
#include "ondisk/acl.h"
#include "ondisk/capability.h"
#include "ondisk/items.h"

static void report_damage(struct bw_fs *fs, uint64_t tree, uint64_t inode, const char *problem)
{
    bw_fs_report_text(fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                      "subvolume %" PRIu64 ": inode %" PRIu64 ": %s", tree, inode, problem);
}

struct bw_xattrs {
    struct bw_fs_items items;
    uint64_t tree;
    const struct bw_item *item; /* the current one; NULL: none */
    struct bw_cursor rest;      /* its attributes that are still to be read */
    struct bw_xattr xattr;
};

struct bw_error *bw_xattrs_open(struct bw_fs *fs, const struct bw_place *place,
                                struct bw_xattrs **result)
{
    const struct bw_tree *tree = &place->subvolume->tree;
    struct bw_xattrs *xattrs = *result = calloc(1, sizeof *xattrs);
    if (!xattrs)
        return bw_error_no_memory();
    xattrs->tree = tree->id;
    bw_fs_items_begin(&xattrs->items, fs, tree, (struct bw_key){place->inode, BW_XATTR_ITEM, 0},
                      (struct bw_key){place->inode, BW_XATTR_ITEM, UINT64_MAX});
    return NULL;
}

const struct bw_xattr *bw_xattrs_next(struct bw_xattrs *xattrs)
{
    do {
        while (!xattrs->item || !bw_xattr_next(&xattrs->rest, &xattrs->xattr)) {
            if (bw_cursor_bad(&xattrs->rest))
                report_damage(xattrs->items.fs, xattrs->tree, xattrs->item->key.objectid,
                              "an extended attribute is cut off");
            xattrs->rest = (struct bw_cursor){.bad = false};
            xattrs->item = bw_fs_items_next(&xattrs->items);
            if (!xattrs->item)
                return NULL;
            xattrs->rest = bw_cursor_of(xattrs->item);
        }
    } while (!xattrs->xattr.name_length);
    return &xattrs->xattr;
}

struct bw_error *bw_xattrs_close(struct bw_xattrs *xattrs)
{
    if (!xattrs)
        return NULL;
    struct bw_error *error = bw_fs_items_error(&xattrs->items);
    bw_fs_items_free(&xattrs->items);
    free(xattrs);
    return error;
}

struct bw_error *bw_inode_xattrs(struct bw_fs *fs, const struct bw_place *place,
                                 bw_xattr_visitor *visit, void *context)
{
    struct bw_xattrs *xattrs;
    struct bw_error *error = bw_xattrs_open(fs, place, &xattrs);
    for (const struct bw_xattr *xattr; !error && (xattr = bw_xattrs_next(xattrs));)
        error = visit(context, xattr);
    return bw_error_first(error, bw_xattrs_close(xattrs));
}

struct bw_error *bw_acl_text(const struct bw_xattr *xattr, char **text)
{
    struct bw_buffer buffer = {0};
    bool is_default;
    *text = NULL;
    if (!bw_xattr_is_acl(xattr, &is_default) ||
        !bw_acl_append_text(xattr->value, xattr->value_length, "", &buffer))
        return NULL;
    return bw_give_text(&buffer, NULL, text, NULL);
}

struct bw_error *bw_capability_text(const struct bw_xattr *xattr, char **text)
{
    struct bw_buffer buffer = {0};
    *text = NULL;
    if (!bw_capability_append_text(xattr, &buffer))
        return NULL;
    return bw_give_text(&buffer, NULL, text, NULL);
}

struct bw_error *bw_xattr_texts(const struct bw_xattr *xattrs, size_t count, char **acl,
                                char **capabilities)
{
    struct bw_buffer line = {0};
    struct bw_error *error = NULL;
    *acl = *capabilities = NULL;
    for (unsigned pass = 0; pass < 2; pass++) /* the access list, then the default list */
        for (size_t i = 0; i < count; i++) {
            bool is_default;
            if (bw_xattr_is_acl(&xattrs[i], &is_default) && is_default == pass)
                bw_acl_append_text(xattrs[i].value, xattrs[i].value_length,
                                   is_default ? "default:" : "", &line);
        }
    for (size_t i = 0; i < count && !error && !*capabilities; i++)
        error = bw_capability_text(&xattrs[i], capabilities);
    for (size_t i = 0; i < line.length; i++)
        if (line.data[i] == '\n')
            line.data[i] = ',';
    line.length -= line.length > 0; /* the last comma */
    if (line.length || line.failed || error)
        error = bw_give_text(&line, error, acl, NULL);
    if (error)
        free(BW_TAKE(*capabilities));
    return error;
}

/* Maximum size of an inode's attributes. The kernel lists at most 64 KiB of names, and no value is
 * longer than a leaf. */
enum { MOST_BYTES = 8 << 20 };

BW_VECTOR(bw_xattr_copies, struct bw_xattr);

struct bw_xattr_reader {
    struct bw_fs *fs;
    struct bw_leaf_finder finder;
    uint64_t inode; /* the inode of these attributes */
    struct bw_xattr_copies xattrs;
    struct bw_buffer bytes; /* names and values that `xattrs` points to */
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
    bw_xattr_copies_free(&reader->xattrs);
    free(reader);
}

static void report_lost(const struct bw_xattr_reader *reader, const char *problem)
{
    report_damage(reader->fs, reader->finder.tree.id, reader->inode, problem);
}

struct bw_error *bw_xattr_reader_read(struct bw_xattr_reader *reader, const struct bw_place *place,
                                      const struct bw_xattr **xattrs, size_t *count)
{
    struct bw_leaf_finder *finder = &reader->finder;
    const uint64_t inode = place->inode;
    struct bw_key at = {inode, BW_XATTR_ITEM, 0}, before = {inode, BW_XATTR_ITEM - 1, UINT64_MAX};
    const struct bw_key last = {inode, BW_XATTR_ITEM, UINT64_MAX};
    reader->xattrs.count = reader->bytes.length = 0;
    reader->inode = inode;
    bw_leaf_finder_set_tree(&reader->finder, &place->subvolume->tree);
    /* Leaf by leaf: `at` is where the next leaf begins, `before` the last item that was read. */
    while (bw_key_compare(&at, &last) <= 0) {
        BW_TRY(bw_fs_find_leaf(reader->fs, finder, &at));
        at = finder->end;
        for (int64_t slot; !finder->lost && (slot = bw_leaf_first_behind(finder, &before)) >= 0;) {
            const struct bw_key key = bw_leaf_key(&finder->leaf, (uint32_t)slot);
            struct bw_item item;
            struct bw_cursor rest = {.bad = true};
            struct bw_xattr xattr;
            if (bw_key_compare(&key, &last) > 0)
                break;
            if (bw_leaf_item(&finder->leaf, (uint32_t)slot, &item))
                rest = bw_cursor_of(&item);
            while (bw_xattr_next(&rest, &xattr)) {
                if (!xattr.name_length || reader->bytes.length >= MOST_BYTES)
                    continue;
                if (memchr(xattr.name, '\0', xattr.name_length)) {
                    /* system calls and archives would truncate the name, and so change it */
                    report_lost(reader, "skipped an extended attribute whose name has a NUL byte");
                    continue;
                }
                bw_buffer_append(&reader->bytes, xattr.name, xattr.name_length);
                bw_buffer_append_byte(&reader->bytes, '\0');
                bw_buffer_append(&reader->bytes, xattr.value, xattr.value_length);
                BW_TRY(bw_buffer_error(&reader->bytes));
                BW_TRY(bw_xattr_copies_push(&reader->xattrs, xattr));
            }
            if (bw_cursor_bad(&rest))
                report_lost(reader, "an extended attribute is cut off");
            before = key;
        }
    }
    if (reader->bytes.length >= MOST_BYTES)
        report_lost(reader, "too many extended attributes");

    /* The pointers are set after all bytes have been copied, because the buffer may have moved. */
    const uint8_t *next = (const uint8_t *)reader->bytes.data;
    for (size_t i = 0; i < reader->xattrs.count; i++) {
        struct bw_xattr *xattr = &reader->xattrs.items[i];
        xattr->name = next;
        xattr->value = next + xattr->name_length + 1;
        next = xattr->value + xattr->value_length;
    }
    *xattrs = reader->xattrs.items;
    *count = reader->xattrs.count;
    return NULL;
}
