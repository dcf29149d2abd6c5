/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prepares tree blocks for a metadump: removes contents of files, and names if requested, and
 * counts the information that is kept.
 */
#ifndef BW_TREES_DUMPED_ITEMS_H
#define BW_TREES_DUMPED_ITEMS_H

#include "base/hash_table.h"
#include "ondisk/items.h"
#include "trees/pseudonyms.h"

/** The information to keep. */
struct bw_dump_rules {
    enum bw_checksum_type checksum_type;
    const uint8_t *fsid; /**< of all blocks: those of seed devices get it, too, because a metadump
                              has a single superblock */
    bool checksums;      /**< keep the checksums of data, and fs-verity's */
    const struct bw_pseudonyms *names; /**< replaces names, and only known bytes are kept; NULL: all
                                            bytes of items but contents are kept */
    /* If there are names: */
    uint64_t generation; /**< the latest one that is possible */
    uint32_t sectorsize, checksum_size;
    const uint8_t (*uuids)[BW_UUID_SIZE]; /**< of the file system and its devices */
    size_t uuid_count;
    uint8_t chunk_tree_uuid[BW_UUID_SIZE];
};

/** A name of an extended attribute. */
struct bw_dumped_xattr {
    uint64_t count;
    uint16_t length;
    uint8_t name[BW_NAME_MAX];
};

enum {
    BW_DUMPED_XATTRS = 64,  /**< how many names of extended attributes are counted apart */
    BW_DUMPED_OWNERS = 4096 /**< how many users and groups are counted */
};

/** Numbers of things in a dump. */
enum bw_dumped_count {
    BW_DUMPED_NAMES, /**< in DIR_INDEX items */
    BW_DUMPED_NAMES_REPLACED,
    BW_DUMPED_SUBVOLUME_NAMES,
    BW_DUMPED_SUBVOLUME_NAMES_REPLACED,
    BW_DUMPED_XATTR_NAMES,
    BW_DUMPED_XATTR_NAMES_REPLACED,
    BW_DUMPED_INLINE,    /**< file extents with contents, or with the target of a link */
    BW_DUMPED_CHECKSUMS, /**< items */
    BW_DUMPED_VERITY,    /**< items */
    BW_DUMPED_INODES,
    BW_DUMPED_SUBVOLUMES,
    BW_DUMPED_REMOVED, /**< items and entries that are not kept: they lie over others, or are not
                            valid in a sanitized dump */
    BW_DUMPED_COUNTS,
};

/** Facts about the blocks so far. All zeros: no blocks. */
struct bw_dumped_facts {
    uint64_t counts[BW_DUMPED_COUNTS];
    int64_t oldest, newest;              /**< times of inodes, in seconds; 0: none */
    struct bw_key_map users, groups;     /**< ids; at most BW_DUMPED_OWNERS */
    struct bw_dumped_xattr *xattr_names; /**< those that are kept, room for BW_DUMPED_XATTRS; NULL:
                                              none */
    size_t xattr_name_count;
    bool no_memory;
};

/** Removes from a block, which the verifying layers have accepted, everything that the rules do not
 * keep, and all bytes outside of items; sets its checksum. `scratch` has room for a block. */
void bw_dumped_block_clean(const struct bw_dump_rules *rules, uint8_t *block, uint32_t nodesize,
                           uint8_t *scratch, struct bw_dumped_facts *facts);

/** Counts the name of an extended attribute that is kept; false if memory runs out. */
bool bw_dumped_facts_add_xattr(struct bw_dumped_facts *facts, const void *name, uint16_t length,
                               uint64_t count);

/** Counts an INODE_ITEM. */
void bw_dumped_facts_add_inode(struct bw_dumped_facts *facts, const struct bw_item *item);

/** Adds the facts `more` to others, and empties them. */
void bw_dumped_facts_merge(struct bw_dumped_facts *facts, struct bw_dumped_facts *more);

void bw_dumped_facts_free(struct bw_dumped_facts *facts);

#endif
