/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tree of a subvolume holds of one inode: its item, its names, the target of a symbolic
 * link, the number of its extents. */
#include "fs/inode.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "ondisk/compression.h"
#include "fs/fs.h"

static struct bw_error *decode(const struct bw_item *item, uint64_t tree, struct bw_inode *inode)
{
    if (bw_inode_decode(item, inode))
        return NULL;
    bool is_short = item->size < sizeof(struct bw_disk_inode_item);
    return bw_error_create(
        BW_ERROR_CORRUPT, "tree %" PRIu64 ": inode %" PRIu64 ": invalid %s %" PRIu64, tree,
        item->key.objectid, is_short ? "item size" : "size", is_short ? item->size : inode->size);
}

struct bw_error *bw_inode_read(const struct bw_fs *fs, const struct bw_tree *tree, uint64_t number,
                               struct bw_inode *inode)
{
    const struct bw_key key = {number, BW_INODE_ITEM, 0};
    struct bw_item_range range;
    struct bw_error *error = NULL;
    bw_item_range_begin(&range, &fs->reader, tree, key, key);
    if (!bw_item_range_next(&range))
        error = bw_error_create(BW_ERROR_NOT_FOUND, "tree %" PRIu64 ": there is no inode %" PRIu64,
                                tree->id, number);
    else if (range.error)
        error = BW_TAKE(range.error);
    else
        error = decode(&range.item, tree->id, inode);
    return bw_item_range_end(&range, error);
}

struct bw_error *bw_lookup_number(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                  uint64_t number, struct bw_place *place)
{
    struct bw_inode inode = {0};
    BW_TRY(bw_inode_read(fs, &subvolume->tree, number, &inode));
    *place = (struct bw_place){subvolume, number, bw_file_type_of_mode(inode.mode), 0};
    return NULL;
}

/* Names. */

/* An iteration over the names of an inode. */
struct names {
    struct bw_fs *fs;
    bw_inode_name_taker *take;
    void *context;
};

static struct bw_error *take_names(void *context, const struct bw_item *item)
{
    const struct names *names = context;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    if (item->key.type != BW_INODE_REF && item->key.type != BW_INODE_EXTREF)
        return NULL;
    while (bw_inode_ref_next(&cursor, &item->key, &ref))
        BW_TRY(names->take(names->context,
                           &(struct bw_inode_name){ref.parent, ref.index, (const char *)ref.name,
                                                   ref.name_length}));
    if (bw_cursor_bad(&cursor))
        bw_fs_report(names->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT, "inode %llu: a name is cut off",
                                     (unsigned long long)item->key.objectid));
    return NULL;
}

struct bw_error *bw_inode_names(struct bw_fs *fs, const struct bw_place *place,
                                bw_inode_name_taker *take, void *context)
{
    const struct bw_tree_reader reader = bw_fs_name_reader(fs);
    struct names names = {fs, take, context};
    struct bw_item_range range;
    struct bw_error *error = NULL;
    bw_item_range_begin(&range, &reader, &place->subvolume->tree,
                        (struct bw_key){place->inode, BW_INODE_REF, 0},
                        (struct bw_key){place->inode, BW_INODE_EXTREF, UINT64_MAX});
    while (!error && bw_item_range_next(&range)) {
        if (range.error)
            bw_fs_report_range(fs, &range);
        else
            error = take_names(&names, &range.item);
    }
    return bw_item_range_end(&range, error);
}

/* Symbolic links, whose target the format keeps in an inline extent. */

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
    bw_buffer_has_data(target); /* no inline extent is empty */
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
    if (fs->no_data)
        return bw_error_create(BW_ERROR_NOT_FOUND,
                               "a dump of btrfs-image has no targets of symbolic links");
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

struct bw_error *bw_inode_readlink(struct bw_fs *fs, const struct bw_place *place, char **target,
                                   size_t *length)
{
    struct bw_buffer text = {0};
    struct bw_error *error = bw_symlink_read(fs, &place->subvolume->tree, place->inode, &text);
    return bw_give_text(&text, error, target, length);
}

/* Extents. */

struct counting {
    struct bw_fs *fs;
    struct bw_extent_count *count;
};

static struct bw_error *count_item(void *context, const struct bw_item *item)
{
    const struct counting *counting = context;
    struct bw_extent_count *count = counting->count;
    struct bw_file_extent extent;
    struct bw_error *error =
        bw_file_extent_decode(item, counting->fs->superblock.sectorsize, &extent);
    if (error) {
        bw_fs_report(counting->fs, BW_DAMAGE, error);
        return NULL;
    }
    count->total++;
    if (extent.type == BW_FILE_EXTENT_REGULAR && extent.disk_bytenr == 0) {
        count->holes++;
        return NULL;
    }
    count->inlined += extent.type == BW_FILE_EXTENT_INLINE;
    count->regular += extent.type == BW_FILE_EXTENT_REGULAR;
    count->unwritten += extent.type == BW_FILE_EXTENT_PREALLOC;
    count->compressions[extent.compression]++;
    return NULL;
}

struct bw_error *bw_file_count_extents(struct bw_fs *fs, const struct bw_place *place,
                                       struct bw_extent_count *count)
{
    struct counting counting = {fs, count};
    *count = (struct bw_extent_count){0};
    return bw_fs_items(
        fs, &place->subvolume->tree, (struct bw_key){place->inode, BW_EXTENT_DATA, 0},
        (struct bw_key){place->inode, BW_EXTENT_DATA, UINT64_MAX}, count_item, &counting);
}
