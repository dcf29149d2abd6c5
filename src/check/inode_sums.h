/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Facts that two items of a subvolume state about its inodes, as hashes: one item adds a fact, the
 * other subtracts it. inode_sums.c adds them up for whole trees, inodes.c for each inode.
 *
 * Source of these agreements: the items that the kernel's fs/btrfs writes together in one
 * transaction.
 */
#ifndef BW_CHECK_INODE_SUMS_H
#define BW_CHECK_INODE_SUMS_H

#include <xxhash.h>

#include "check/check.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"

static inline uint64_t bw_fact_mix(uint64_t number)
{
    number = (number ^ number >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return number ^ number >> 32;
}

static inline struct bw_fact_secrets bw_fact_secrets_of(uint64_t seed)
{
    struct bw_fact_secrets secrets = {.name = seed};
    uint64_t number = seed;
    for (unsigned i = 0; i < 6; i++) {
        number = bw_fact_mix(number + UINT64_C(0x9e3779b97f4a7c15));
        secrets.number[i] = bw_fact_mix(number) | 1;
    }
    return secrets;
}

/** A name in a directory. The facts about it start from this. */
static inline uint64_t bw_fact_name(const struct bw_fact_secrets *secrets, uint64_t directory,
                                    const uint8_t *name, size_t length)
{
    return XXH3_64bits_withSeed(name, length, secrets->name + directory * secrets->number[0]);
}

/** Where an entry leads, which DIR_ITEM and DIR_INDEX both say. */
static inline uint64_t bw_fact_entry(const struct bw_fact_secrets *secrets, uint64_t name,
                                     const struct bw_dir_entry *entry)
{
    return bw_fact_mix(name + entry->location.objectid * secrets->number[1] +
                       entry->location.offset * secrets->number[2] +
                       ((uint64_t)entry->location.type << 8 | entry->type) * secrets->number[3]);
}

/** That an inode has a name, which DIR_INDEX and INODE_REF or INODE_EXTREF say. */
static inline uint64_t bw_fact_reference(const struct bw_fact_secrets *secrets, uint64_t name,
                                         uint64_t index, uint64_t inode)
{
    return bw_fact_mix(name + index * secrets->number[4] + inode * secrets->number[5]);
}

/** Facts about a single inode. */
enum bw_fact_kind {
    BW_FACT_LINK = 256, /**< a name, or one of its link count; the type is added */
    BW_FACT_ORPHAN = 512,
    BW_FACT_TOP,   /**< the ".." of a top directory */
    BW_FACT_SIZE,  /**< bytes of the names in a directory */
    BW_FACT_BYTES, /**< bytes that a file takes */
};

static inline uint64_t bw_fact_of_inode(const struct bw_fact_secrets *secrets, uint64_t inode,
                                        unsigned kind)
{
    return bw_fact_mix(inode * secrets->number[1] + kind * secrets->number[2]) | 1;
}

/** Whether items with this number belong to an inode. */
static inline bool bw_is_inode_number(uint64_t objectid)
{
    return objectid <= BW_LAST_SUBVOLUME;
}

/** Whether a name is "..", the reference of a top directory to itself. */
static inline bool bw_is_top_reference(uint64_t inode, const struct bw_inode_ref *reference)
{
    return inode == BW_SUBVOLUME_ROOT_INODE && reference->parent == inode &&
           reference->name_length == 2 && memcmp(reference->name, "..", 2) == 0;
}

/** Whether an entry leads to an inode of the same tree, not to a subvolume. */
static inline bool bw_is_inode_entry(const struct bw_dir_entry *entry)
{
    return entry->location.type != BW_ROOT_ITEM;
}

/** Whether an entry is of a directory that has a lower number than the one it lies in, or the same.
 */
static inline bool bw_is_moved_directory(const struct bw_key *key, const struct bw_dir_entry *entry)
{
    return bw_is_inode_entry(entry) && entry->type == BW_FILE_DIRECTORY &&
           entry->location.objectid <= key->objectid;
}

/** How many names an inode must have: top directories have none but "..". */
static inline uint64_t bw_names_of(uint64_t inode, const struct bw_inode *item)
{
    return item->link_count - (uint64_t)(inode == BW_SUBVOLUME_ROOT_INODE);
}

static inline bool bw_has_extents(uint8_t type)
{
    return type == BW_FILE_REGULAR || type == BW_FILE_SYMLINK;
}

/** The bytes that an inode claims for its extents. In top directories, mkfs.btrfs writes a
 * meaningless value. */
static inline uint64_t bw_bytes_to_count(uint64_t number, const struct bw_inode *inode)
{
    return number == BW_SUBVOLUME_ROOT_INODE ? 0 : inode->bytes;
}

/** Whether the size of a symbolic link differs from the length of its target. mkfs.btrfs also
 * counts the NUL at the end of the target. */
static inline bool bw_has_wrong_target(const struct bw_inode *inode, uint8_t type)
{
    return type == BW_FILE_SYMLINK && inode->bytes - inode->size > 1;
}

/** How much of a file its extents have to cover without a gap; 0: nothing. A symbolic link has a
 * target. */
static inline uint64_t bw_covered_size(const struct bw_fs *fs, const struct bw_inode *inode,
                                       uint8_t type)
{
    if (type == BW_FILE_SYMLINK && inode->link_count)
        return inode->size ? inode->size : 1;
    const bool no_holes = fs->superblock.incompat_flags & BW_INCOMPAT_NO_HOLES;
    return no_holes || !inode->link_count || !bw_has_extents(type) ? 0 : inode->size;
}

/** How much of a file may be stored in an item: not more than its size. More than that is only
 * known not to be there of files that are not being deleted, and uncompressed. */
static inline uint64_t bw_most_stored(const struct bw_inode *inode, uint8_t type)
{
    return type == BW_FILE_REGULAR && inode->link_count ? inode->size : UINT64_MAX;
}

/** The facts of an EXTENT_DATA item about its inode. */
struct bw_extent_fact {
    uint64_t end;    /**< where in the file it ends */
    uint64_t bytes;  /**< that count for the inode: not those of holes */
    uint64_t stored; /**< in the item itself, and uncompressed */
};

/** Where the first NUL in the bytes is that an item stores uncompressed; UINT64_MAX: nowhere, or
 * btrfs-image has overwritten them. */
static inline uint64_t bw_stored_nul(const struct bw_fs *fs, const struct bw_item *item,
                                     uint64_t stored)
{
    if (fs->no_data || !stored)
        return UINT64_MAX;
    const size_t head = offsetof(struct bw_disk_file_extent, disk_bytenr);
    const size_t size = item->size - head, length = stored < size ? (size_t)stored : size;
    const uint8_t *bytes = item->data + head, *nul = memchr(bytes, 0, length);
    return nul ? (uint64_t)(nul - bytes) : UINT64_MAX;
}

/** Reads these facts from any item, valid or not; false if it is cut off. */
static inline bool bw_extent_fact_of(const struct bw_item *item, uint32_t sectorsize,
                                     struct bw_extent_fact *fact)
{
    const struct bw_disk_file_extent *disk = (const void *)item->data;
    if (item->size < offsetof(struct bw_disk_file_extent, disk_bytenr))
        return false;
    if (disk->type == BW_FILE_EXTENT_INLINE) {
        fact->bytes = bw_get64(disk->ram_bytes);
        fact->stored = disk->compression ? 0 : fact->bytes;
        fact->end = (fact->bytes + sectorsize - 1) & ~(uint64_t)(sectorsize - 1);
        return true;
    }
    if (item->size < sizeof *disk)
        return false;
    fact->stored = 0;
    fact->end = bw_get64(disk->num_bytes);
    fact->bytes = bw_get64(disk->disk_bytenr) ? fact->end : 0;
    fact->end += item->key.offset;
    return true;
}

/*
 * The sum of all facts in the items of a subvolume about its inodes: links, names, sizes and
 * extents. A consistent subvolume adds up to zero, in any order of its leaves. The sum
 * of a node is the sum of its children, so blocks shared by snapshots are read once. inodes.c
 * examines a tree whose sum is not zero.
 *
 * Facts that depend on the order of items are kept next to the sum: whether the items of an inode
 * begin with its INODE_ITEM, and whether its file extents are contiguous. For a range, both are
 * open for its first and its last inode.
 */

/** The sum of a range of leaves that follow each other. All zeros: of none. 80 bytes, kept for
 * each block that snapshots share. */
struct bw_inode_sums {
    uint64_t total;        /**< modulo 2^64 */
    uint64_t parents;      /**< the same of which directory lies in which */
    uint64_t first_inode;  /**< the range begins with items of it, but not its INODE_ITEM; 0: no */
    uint64_t first_start;  /**< where its first file extent begins; UINT64_MAX: it has none */
    uint64_t first_gap;    /**< offset of the first gap in its extents; UINT64_MAX: no gap */
    uint64_t last_inode;   /**< of the last item */
    uint64_t last_end;     /**< where its extents end */
    uint64_t last_size;    /**< how much they have to cover, if the range has its INODE_ITEM */
    uint16_t first_stored; /**< bytes of `first_inode` that are stored in an item */
    uint16_t last_most;    /**< how many that may be, if the range has its INODE_ITEM */
    uint16_t first_nul;    /**< position of the first NUL in the inline extent of `first_inode`;
                              UINT16_MAX: none */
    uint8_t last_type;     /**< of `last_inode`, if the range has its INODE_ITEM */
    bool moved;            /**< a directory has a lower number than its parent directory */
    bool incomplete;       /**< something in the range is lost */
    bool broken;           /**< the order is wrong: the tree is to be looked at again */
};

/** Adds the sum of the leaves that follow. */
void bw_inode_sums_append(struct bw_inode_sums *sums, const struct bw_inode_sums *next);

/** The sum of a whole tree; 0: its inodes are consistent. */
uint64_t bw_inode_sums_total(const struct bw_inode_sums *sums);

/** The sum of the items of a leaf. Safe from any thread. */
struct bw_inode_sums bw_inode_sums_of_leaf(const struct bw_check *check,
                                           const struct bw_node *leaf);

#endif
