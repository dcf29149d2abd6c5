/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading the target of a symbolic link, which the format keeps in an inline extent. */
#include "fs/symlink.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "btree/item_range.h"
#include "format/compression.h"
#include "format/file_extent.h"
#include "fs/fs.h"

/* No sector is larger, and the data of a link fit one. */
enum { TARGET_MAX = 65536 };

struct search {
    uint32_t sectorsize;
    struct bw_buffer *target;
    bool found;
};

static struct bw_error *decompress(const struct search *search, const struct bw_file_extent *extent,
                                   char *output)
{
    struct bw_decompressor *decompressor;
    BW_TRY(bw_decompressor_create(search->sectorsize, &decompressor));
    struct bw_error *error =
        bw_decompress(decompressor, extent->compression, extent->inline_data, extent->inline_length,
                      (uint8_t *)output, (size_t)extent->num_bytes);
    bw_decompressor_destroy(decompressor);
    return error;
}

static struct bw_error *append(const struct search *search, const struct bw_file_extent *extent)
{
    struct bw_buffer *target = search->target;
    if (!bw_buffer_reserve(target, (size_t)extent->num_bytes))
        return bw_error_no_memory();
    char *text = target->data + target->length;
    if (extent->compression != BW_COMPRESS_NONE)
        BW_TRY(decompress(search, extent, text));
    else
        memcpy(text, extent->inline_data, (size_t)extent->num_bytes);
    target->length += strnlen(text, (size_t)extent->num_bytes);
    return NULL;
}

static struct bw_error *take(void *context, const struct bw_item *item)
{
    struct search *search = context;
    struct bw_file_extent extent;
    if (search->found)
        return NULL;
    BW_TRY(bw_file_extent_decode(item, search->sectorsize, &extent));
    if (extent.type != BW_FILE_EXTENT_INLINE || extent.num_bytes > TARGET_MAX)
        return bw_error_create(BW_ERROR_CORRUPT, "the target of inode %" PRIu64 " is not inline",
                               item->key.objectid);
    BW_TRY(append(search, &extent));
    search->found = true;
    return NULL;
}

struct bw_error *bw_symlink_read(const struct bw_fs *fs, const struct bw_tree *tree, uint64_t inode,
                                 struct bw_buffer *target)
{
    const struct bw_key key = {inode, BW_EXTENT_DATA, 0};
    struct search search = {fs->superblock.sectorsize, target, false};
    const struct bw_item_range range = {
        .first = key, .last = key, .item = take, .context = &search};
    struct bw_error *error = bw_item_range_read(&fs->reader, tree, &range);
    if (error)
        return bw_error_prefix(error, "symbolic link of tree %" PRIu64, tree->id);
    if (search.found)
        return NULL;
    return bw_error_create(BW_ERROR_NOT_FOUND, "tree %" PRIu64 ": inode %" PRIu64 " has no target",
                           tree->id, inode);
}
