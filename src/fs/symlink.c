/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the target of a symbolic link, which the format keeps in an inline extent. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "format/compression.h"
#include "fs/fs.h"
#include "fs/inode.h"

/* The target fits into one sector, and no sector is larger. */
enum { TARGET_MAX = 65536 };

static struct bw_error *decompress(uint32_t sectorsize, const struct bw_file_extent *extent,
                                   char *output)
{
    struct bw_decompressor *decompressor;
    BW_TRY(bw_decompressor_create(sectorsize, &decompressor));
    struct bw_error *error =
        bw_decompress(decompressor, extent->compression, extent->inline_data, extent->inline_length,
                      (uint8_t *)output, (size_t)extent->num_bytes);
    bw_decompressor_destroy(decompressor);
    return error;
}

static struct bw_error *append(const struct bw_item *item, uint32_t sectorsize,
                               struct bw_buffer *target)
{
    struct bw_file_extent extent;
    BW_TRY(bw_file_extent_decode(item, sectorsize, &extent));
    if (extent.type != BW_FILE_EXTENT_INLINE || extent.num_bytes > TARGET_MAX)
        return bw_error_create(BW_ERROR_CORRUPT, "the target of inode %" PRIu64 " is not inline",
                               item->key.objectid);
    if (!bw_buffer_reserve(target, (size_t)extent.num_bytes))
        return bw_error_no_memory();
    char *text = target->data + target->length;
    if (extent.compression != BW_COMPRESS_NONE)
        BW_TRY(decompress(sectorsize, &extent, text));
    else
        memcpy(text, extent.inline_data, (size_t)extent.num_bytes);
    target->length += strnlen(text, (size_t)extent.num_bytes);
    return NULL;
}

struct bw_error *bw_symlink_read(const struct bw_fs *fs, const struct bw_tree *tree, uint64_t inode,
                                 struct bw_buffer *target)
{
    const struct bw_key key = {inode, BW_EXTENT_DATA, 0};
    struct bw_item_range range;
    bw_item_range_begin(&range, &fs->reader, tree, key, key);
    bool found = bw_item_range_next(&range);
    struct bw_error *error = found && range.error ? BW_TAKE(range.error) : NULL;
    if (found && !error)
        error = append(&range.item, fs->superblock.sectorsize, target);
    error = bw_item_range_end(&range, error);
    if (error)
        return bw_error_prefix(error, "symbolic link of tree %" PRIu64, tree->id);
    if (found)
        return NULL;
    return bw_error_create(BW_ERROR_NOT_FOUND, "tree %" PRIu64 ": inode %" PRIu64 " has no target",
                           tree->id, inode);
}
