/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the contents of a single item are what the format allows, as strictly as the kernel
 * before it uses or writes one. Only the item, its key and a few facts of the file system are
 * looked at; what other items say is the business of the passes.
 */
#ifndef BW_ONDISK_ITEM_RULES_H
#define BW_ONDISK_ITEM_RULES_H

#include <inttypes.h>

#include "ondisk/disk_items.h"
#include "ondisk/items.h"

/** The facts that an item is compared with. */
struct bw_item_rules {
    uint32_t sectorsize, nodesize;
    uint32_t checksum_size;         /**< of data; 0: unknown */
    uint64_t generation;            /**< of the superblock */
    uint64_t leaf_generation;       /**< of the leaf that contains the item; UINT64_MAX: unknown */
    uint64_t incompat;              /**< features of the superblock */
    bool in_log;                    /**< the tree is a log tree: some rules are less strict there */
    uint64_t owner;                 /**< tree that the leaf was written for */
    const struct bw_item *previous; /**< the item before it in the leaf; NULL: it is the first, or
                                       the two are not in order */
};

/** The kinds of faults: most are named after the item, others after the fault. Serious ones are
 * those with which a kernel refuses the item, or cannot use it; with others, it works as usual. */
#define BW_ITEM_FAULTS(SERIOUS, HARMLESS) \
    SERIOUS(block_group_item)             \
    SERIOUS(checksum_item)                \
    SERIOUS(chunk_item)                   \
    SERIOUS(device_extent_item)           \
    SERIOUS(device_item)                  \
    SERIOUS(dir_index)                    \
    SERIOUS(dir_item)                     \
    SERIOUS(dir_log_item)                 \
    SERIOUS(entry_duplicate)              \
    HARMLESS(entry_encrypted)             \
    HARMLESS(entry_transid)               \
    SERIOUS(extent_generation)            \
    SERIOUS(extent_item)                  \
    SERIOUS(extent_ref)                   \
    SERIOUS(extent_ref_order)             \
    SERIOUS(file_extent)                  \
    HARMLESS(file_extent_ram_bytes)       \
    SERIOUS(free_space_item)              \
    HARMLESS(inode_generation)            \
    SERIOUS(inode_item)                   \
    SERIOUS(inode_ref)                    \
    HARMLESS(item_type)                   \
    SERIOUS(item_without_inode)           \
    SERIOUS(items_overlap)                \
    SERIOUS(name_hash)                    \
    SERIOUS(orphan_item)                  \
    HARMLESS(quota_limit_flags)           \
    HARMLESS(quota_limit_unset)           \
    SERIOUS(quota_item)                   \
    SERIOUS(remap_item)                   \
    SERIOUS(root_item)                    \
    HARMLESS(root_key)                    \
    SERIOUS(root_ref)                     \
    HARMLESS(special_size)                \
    SERIOUS(status_item)                  \
    SERIOUS(stripe_item)                  \
    HARMLESS(top_index)                   \
    SERIOUS(uuid_item)                    \
    SERIOUS(verity_item)                  \
    SERIOUS(xattr_duplicate)              \
    SERIOUS(xattr_item)

/** The numbers of the kinds, and one for lack of memory, which prevented a check. */
enum bw_item_fault_kind {
#define NUMBER(name) BW_FAULT_##name,
    BW_ITEM_FAULTS(NUMBER, NUMBER)
#undef NUMBER
        BW_FAULT_no_memory,
    BW_FAULTS,
};

/** A fault in an item. */
struct bw_item_fault {
    enum bw_item_fault_kind kind;
    char message[160]; /**< the fault of the item, without its key */
};

/** Checks an item; true, with `*fault` set, if something is wrong with it. */
bool bw_check_item(const struct bw_item_rules *rules, const struct bw_item *item,
                   struct bw_item_fault *fault);

/** Whether a kind of fault is serious. */
bool bw_item_fault_is_serious(enum bw_item_fault_kind kind);

/** Whether all items of a leaf are where they should be, and have no serious fault. The leaf must
 * have passed bw_node_check(). `rules->previous` need not be set. */
bool bw_leaf_is_sound(const struct bw_node *leaf, const struct bw_item_rules *rules);

/*
 * The checks of items, one for each type of key or for several that are alike. bw_check_item()
 * calls them for items whose size their type allows. Everything that the kernel's
 * fs/btrfs/tree-checker.c refuses is a fault, and so is what `btrfs check` finds in a single
 * item.
 */

/** Returns true if the item has a fault, after bw_item_wrong(). The kind in `fault` is already
 * set to the kind of the item's type. */
typedef bool bw_item_check(const struct bw_item_rules *rules, const struct bw_item *item,
                           struct bw_item_fault *fault);

/* file_item_rules.c */
bw_item_check bw_check_inode_item, bw_check_inode_ref, bw_check_dir_item, bw_check_orphan_item,
    bw_check_dir_log, bw_check_verity, bw_check_verity_piece, bw_check_file_extent;

/** Describes the fault; always returns true. */
bool bw_item_wrong(struct bw_item_fault *fault, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
/** The same with a kind that is not the default of the item type. */
bool bw_item_wrong_as(struct bw_item_fault *fault, enum bw_item_fault_kind kind, const char *format,
                      ...) __attribute__((format(printf, 3, 4), cold));
/** The same, with the message of a decoder's error, which it frees; false if the error is NULL. The
 * item's name at the beginning of the message is dropped, since the key contains it. */
bool bw_item_refused(struct bw_item_fault *fault, struct bw_error *error);

/** Whether a number is no multiple of the sector size. */
static inline bool bw_unaligned(const struct bw_item_rules *rules, struct bw_item_fault *fault,
                                const char *name, uint64_t value)
{
    return (value & (rules->sectorsize - 1)) &&
           bw_item_wrong(fault, "%s %" PRIu64 " is not aligned to %" PRIu32, name, value,
                         rules->sectorsize);
}

/** Whether a generation is later than any on disk: fsynced changes are one transaction later than
 * the superblock. */
static inline bool bw_generation_wrong(const struct bw_item_rules *rules,
                                       struct bw_item_fault *fault, const char *name,
                                       uint64_t value)
{
    return value > rules->generation && value - rules->generation > 1 &&
           bw_item_wrong(fault, "%s %" PRIu64 " is later than the superblock's, %" PRIu64, name,
                         value, rules->generation);
}

/** Whether a generation is later than the transaction that wrote the leaf: reported as `kind`. */
static inline bool bw_later_than_leaf(const struct bw_item_rules *rules,
                                      struct bw_item_fault *fault, enum bw_item_fault_kind kind,
                                      const char *name, uint64_t value)
{
    return value > rules->leaf_generation &&
           bw_item_wrong_as(fault, kind, "%s %" PRIu64 " is later than the leaf's, %" PRIu64, name,
                            value, rules->leaf_generation);
}

/** Files with fs-verity. */
#define BW_INODE_VERITY (UINT64_C(1) << 32)

/** Whether an item is of an inode with the flag of Synology's kernels. It is on so many inodes that
 * they get one finding together. */
static inline bool bw_has_synology_flag(const struct bw_item *item)
{
    const struct bw_disk_inode_item *inode = (const void *)item->data;
    return item->key.type == BW_INODE_ITEM && item->size == sizeof *inode &&
           (bw_get64(inode->flags) & BW_INODE_SYNOLOGY);
}

/** Whether an id belongs to a subvolume. Greater ids belong to quota groups. */
static inline bool bw_is_subvolume(uint64_t id)
{
    return id == BW_TOP_SUBVOLUME ||
           (id >= BW_FIRST_SUBVOLUME && id < UINT64_C(1) << BW_QGROUP_LEVEL_SHIFT);
}

/** Whether a number belongs to a file in a subvolume. */
static inline bool bw_is_file(uint64_t inode)
{
    return inode >= BW_SUBVOLUME_ROOT_INODE && inode <= BW_LAST_SUBVOLUME;
}

/** Whether a number belongs to an inode: of a file, of the root tree's directory, or of an old
 * inode cache. */
static inline bool bw_is_inode(uint64_t inode)
{
    return bw_is_file(inode) || inode == BW_ROOT_TREE_DIR || inode == BW_FREE_INODE;
}

#endif
