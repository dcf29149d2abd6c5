/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether data have checksums where their inode wants them. Of an uncompressed extent only the part
 * that a file refers to must have them: of one that was allocated ahead, what was never written has
 * none. Extents that are still marked as such are left out.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "check/leaf.h"
#include "check/sectors.h"
#include "ondisk/items.h"

static void remember(const struct bw_reached_block *leaf, const struct bw_item *item,
                     struct bw_last_inode *last)
{
    const struct bw_disk_inode_item *inode = (const void *)item->data;
    *last = (struct bw_last_inode){.tree = leaf->tree, .number = item->key.objectid};
    last->known = item->size >= sizeof *inode;
    if (last->known)
        last->flags = bw_get64(inode->flags);
}

/* Finds an inode whose item is in an earlier leaf. */
static void search(const struct bw_reached_block *leaf, uint64_t number, struct bw_last_inode *last)
{
    const struct bw_key key = {number, BW_INODE_ITEM, 0};
    struct bw_leaf_finder finder;
    struct bw_item item;
    bw_leaf_finder_init(&finder, &leaf->check->fs->reader, &leaf->tree->tree);
    BW_AUTO_ERROR struct bw_error *error = bw_find_leaf(&finder, &key);
    const int64_t slot = error || finder.lost ? -1 : bw_leaf_last_until(&finder, &key);
    *last = (struct bw_last_inode){.tree = leaf->tree, .number = number};
    if (slot >= 0 && bw_leaf_item(&finder.leaf, (uint32_t)slot, &item) &&
        bw_key_compare(&item.key, &key) == 0)
        remember(leaf, &item, last);
    bw_leaf_finder_free(&finder);
}

/* The bytes that must have checksums; false if there are none. */
static bool find_bytes(const struct bw_file_extent *extent, uint64_t *start, uint64_t *length)
{
    *start = extent->disk_bytenr;
    *length = extent->disk_num_bytes;
    if (!extent->compression) {
        *start += extent->offset;
        *length = extent->num_bytes;
    }
    return extent->type == BW_FILE_EXTENT_REGULAR && extent->disk_bytenr;
}

static struct bw_subject subject_of(const struct bw_reached_block *leaf, const struct bw_item *item,
                                    uint64_t start, uint64_t length, uint64_t shown)
{
    return (struct bw_subject){
        .finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY | BW_KNOWN_LOGICAL | BW_KNOWN_LENGTH |
                             BW_KNOWN_INODE | BW_KNOWN_FILE_OFFSET | BW_KNOWN_FILE_LENGTH,
                    .tree = leaf->tree->tree.id,
                    .key = item->key,
                    .logical = start,
                    .length = length,
                    .inode = item->key.objectid,
                    .file_offset = item->key.offset,
                    .file_length = shown},
        .touches = BW_TOUCHES_INODE};
}

static void report(const struct bw_reached_block *leaf, const struct bw_item *item, uint64_t start,
                   uint64_t length, uint64_t missing, uint64_t shown, bool wanted)
{
    if (wanted ? !missing : missing == length || !leaf->check->checksums_known)
        return;
    const struct bw_subject subject = subject_of(leaf, item, start, length, shown);
    if (wanted)
        bw_check_find(leaf->check, BW_CODE_checksum_missing, &subject,
                      "%" PRIu64 " of %" PRIu64 " bytes have no checksums", missing, length);
    else
        bw_check_find(leaf->check, BW_CODE_checksum_unwanted, &subject,
                      "%" PRIu64 " of %" PRIu64 " bytes have checksums, of a file without",
                      length - missing, length);
}

/* Kernels before 5.3 wrote such extents, and all read them. */
static void report_compressed(const struct bw_reached_block *leaf, const struct bw_item *item,
                              const struct bw_file_extent *extent)
{
    const struct bw_subject subject =
        subject_of(leaf, item, extent->disk_bytenr, extent->disk_num_bytes, extent->num_bytes);
    bw_check_find(leaf->check, BW_CODE_compressed_unsummed, &subject,
                  "compressed, although the inode has NODATASUM");
}

static void check_extent(const struct bw_reached_block *leaf, const struct bw_item *item,
                         struct bw_last_inode *last)
{
    const struct bw_check *check = leaf->check;
    struct bw_file_extent extent;
    uint64_t start, length;
    BW_AUTO_ERROR struct bw_error *bad =
        bw_file_extent_decode(item, check->fs->superblock.sectorsize, &extent);
    if (bad || !find_bytes(&extent, &start, &length))
        return;
    if (last->tree != leaf->tree || last->number != item->key.objectid)
        search(leaf, item->key.objectid, last);
    if (!last->known)
        return;
    const bool summed = !(last->flags & BW_INODE_NODATASUM);
    if (extent.compression && !summed)
        report_compressed(leaf, item, &extent);
    report(leaf, item, start, length, bw_sectors_covered(check->unsummed, start, length),
           extent.num_bytes, summed);
}

void bw_check_checksummed(const struct bw_reached_block *leaf, struct bw_last_inode *last)
{
    struct bw_item item;
    if (!leaf->check->unsummed || leaf->in_log || !leaf->check->extents_known)
        return;
    for (uint32_t slot = 0; slot < leaf->node.item_count; slot++) {
        const uint8_t type = bw_node_disk_item(&leaf->node, slot)->key.type;
        if ((type != BW_INODE_ITEM && type != BW_EXTENT_DATA) ||
            !bw_leaf_item(&leaf->node, slot, &item))
            continue;
        if (type == BW_INODE_ITEM)
            remember(leaf, &item, last);
        else
            check_extent(leaf, &item, last);
    }
}
