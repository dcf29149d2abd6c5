/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Contents of files in a subvolume that is made from a stream: extents that begin and end at any
 * byte. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "stream/stream_tree.h"

/* A regular file whose contents change. */
struct file {
    struct bw_stream_tree *tree;
    uint64_t inode;
    struct bw_disk_inode_item item;
};

/* An extent of a file. */
struct piece {
    uint64_t start, end; /* in the file */
    struct bw_disk_file_extent disk;
};

static struct bw_error *open_file(struct bw_stream_tree *tree, struct bw_bytes path,
                                  struct file *file)
{
    file->tree = tree;
    BW_TRY(bw_stream_find(tree, path, &file->inode, &file->item));
    return S_ISREG(bw_get32(file->item.mode))
               ? NULL
               : bw_error_create(BW_ERROR_CORRUPT, "%.*s: not a regular file", (int)path.length,
                                 path.data);
}

static struct bw_error *close_file(struct file *file)
{
    return bw_edit_set_inode(&file->tree->editor, file->inode, &file->item);
}

/* No file is larger than the kernel's offsets. */
static struct bw_error *check_range(const struct bw_stream_range *range)
{
    return range->offset > INT64_MAX || range->length > INT64_MAX - range->offset
               ? bw_error_create(BW_ERROR_CORRUPT,
                                 "%" PRIu64 " bytes at %" PRIu64 " exceed the largest file size",
                                 range->length, range->offset)
               : NULL;
}

static void grow_file(struct file *file, uint64_t size)
{
    if (size > bw_get64(file->item.size))
        file->item.size = bw_put64(size);
}

static void count_bytes(struct file *file, uint64_t added, uint64_t removed)
{
    file->item.bytes = bw_put64(bw_get64(file->item.bytes) + added - removed);
}

/* Extents. */

/* Decodes an item if it is an extent of the file; false otherwise. */
static bool is_piece(const struct file *file, const struct bw_item *item, struct piece *piece)
{
    if (!item->data || item->key.objectid != file->inode || item->key.type != BW_EXTENT_DATA ||
        item->size != sizeof piece->disk)
        return false;
    memcpy(&piece->disk, item->data, sizeof piece->disk);
    piece->start = item->key.offset;
    piece->end = piece->start + bw_get64(piece->disk.num_bytes);
    return true;
}

/* Finds the first extent that ends after an offset. */
static struct bw_error *find_piece(const struct file *file, uint64_t offset, struct piece *piece,
                                   bool *found)
{
    const struct bw_key key = {file->inode, BW_EXTENT_DATA, offset};
    struct bw_item item;
    BW_TRY(bw_edit_last(&file->tree->editor, &key, &item));
    *found = is_piece(file, &item, piece) && piece->end > offset;
    if (*found)
        return NULL;
    BW_TRY(bw_edit_first(&file->tree->editor, &key, &item));
    *found = is_piece(file, &item, piece);
    return NULL;
}

/* Adds the part of an extent from `start` to `end`, at the offset `at` of the file. */
static struct bw_error *put_part(struct file *file, const struct piece *piece, uint64_t start,
                                 uint64_t end, uint64_t at)
{
    const struct bw_key key = {file->inode, BW_EXTENT_DATA, at};
    struct bw_disk_file_extent disk = piece->disk;
    if (start >= end)
        return NULL;
    disk.offset = bw_put64(bw_get64(disk.offset) + (start - piece->start));
    disk.num_bytes = bw_put64(end - start);
    count_bytes(file, end - start, 0);
    return bw_edit_put(&file->tree->editor, &key, &disk, sizeof disk);
}

/* Makes a hole. */
static struct bw_error *drop_range(struct file *file, uint64_t start, uint64_t end)
{
    struct piece piece;
    bool found;
    while (start < end) {
        BW_TRY(find_piece(file, start, &piece, &found));
        if (!found || piece.start >= end)
            return NULL;
        const struct bw_key key = {file->inode, BW_EXTENT_DATA, piece.start};
        BW_TRY(bw_stream_spend(file->tree));
        count_bytes(file, 0, piece.end - piece.start);
        if (piece.start < start)
            BW_TRY(put_part(file, &piece, piece.start, start, piece.start));
        else
            BW_TRY(bw_edit_remove(&file->tree->editor, &key));
        BW_TRY(put_part(file, &piece, end, piece.end, end));
        start = piece.end;
    }
    return NULL;
}

/* The operations. */

struct bw_error *bw_stream_write(struct bw_stream_tree *tree, struct bw_bytes path,
                                 const struct bw_stream_range *range,
                                 const struct bw_disk_file_extent *extent)
{
    const uint64_t end = range->offset + range->length;
    const struct piece piece = {range->offset, end, *extent};
    struct file file;
    BW_TRY(check_range(range));
    BW_TRY(open_file(tree, path, &file));
    if (!range->length)
        return NULL;
    BW_TRY(drop_range(&file, range->offset, end));
    BW_TRY(put_part(&file, &piece, range->offset, end, range->offset));
    grow_file(&file, end);
    return close_file(&file);
}

struct bw_error *bw_stream_punch(struct bw_stream_tree *tree, struct bw_bytes path,
                                 const struct bw_stream_range *range, bool grows)
{
    struct file file;
    BW_TRY(check_range(range));
    BW_TRY(open_file(tree, path, &file));
    BW_TRY(drop_range(&file, range->offset, range->offset + range->length));
    if (grows)
        grow_file(&file, range->offset + range->length);
    return close_file(&file);
}

struct bw_error *bw_stream_truncate(struct bw_stream_tree *tree, struct bw_bytes path,
                                    uint64_t size)
{
    struct file file;
    BW_TRY(check_range(&(struct bw_stream_range){size, 0}));
    BW_TRY(open_file(tree, path, &file));
    BW_TRY(drop_range(&file, size, UINT64_MAX));
    file.item.size = bw_put64(size);
    return close_file(&file);
}

/* Clones the extents of a range of a file to another file, or to another range of it. */
struct bw_error *bw_stream_clone(struct bw_stream_tree *tree, struct bw_bytes path,
                                 const struct bw_stream_range *range,
                                 const struct bw_stream_clone *source)
{
    const uint64_t offset = source->offset, end = source->offset + range->length;
    struct file from, to;
    BW_TRY(check_range(range));
    BW_TRY(check_range(&(struct bw_stream_range){offset, range->length}));
    BW_TRY(open_file(source->tree, source->path, &from));
    BW_TRY(open_file(tree, path, &to));
    const uint64_t size = bw_get64(from.item.size);
    if (end > size)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the source has %" PRIu64 " bytes; %" PRIu64 " bytes at %" PRIu64
                               " cannot be cloned",
                               size, range->length, offset);
    if (from.tree == to.tree && from.inode == to.inode && offset < range->offset + range->length &&
        range->offset < end)
        return bw_error_create(BW_ERROR_CORRUPT, "a range cannot be cloned to itself");

    BW_TRY(drop_range(&to, range->offset, range->offset + range->length));
    for (uint64_t next = offset; next < end;) {
        struct piece piece;
        bool found;
        BW_TRY(find_piece(&from, next, &piece, &found));
        if (!found || piece.start >= end)
            break;
        BW_TRY(bw_stream_spend(tree));
        const uint64_t start = piece.start > next ? piece.start : next;
        next = piece.end < end ? piece.end : end;
        BW_TRY(put_part(&to, &piece, start, next, range->offset + (start - offset)));
    }
    grow_file(&to, range->offset + range->length);
    return close_file(&to);
}
