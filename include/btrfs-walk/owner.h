/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From addresses to files: which files have data at a logical address, in which subvolumes and
 * under which paths; which files depend on a tree block; and what there is otherwise.
 *
 * It follows the back references of the extent tree, so that only blocks are read that lead to an
 * owner. If the extent tree is damaged, or if so much is asked that it costs less, all trees are
 * read in its place, each block once; the answer is the same.
 */
#ifndef BTRFS_WALK_OWNER_H
#define BTRFS_WALK_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/key.h"
#include "btrfs-walk/record.h"
#include "btrfs-walk/subvolume.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What lies at an address. */
enum bw_owner_kind {
    BW_OWNER_DATA,     /**< data of a file */
    BW_OWNER_METADATA, /**< a tree block that a file depends on: it has, or leads to, its items */
    BW_OWNER_BLOCK,    /**< a tree block: once for each, whoever depends on it */
    BW_OWNER_HIDDEN,   /**< part of an extent that is in use, but no file shows this part */
    BW_OWNER_FREE,     /**< nothing, in a block group that is in use */
    BW_OWNER_UNUSED,   /**< nothing, and so is the whole block group */
    BW_OWNER_OUTSIDE,  /**< no chunk holds the address */
};

/** "data", "metadata", "block", "hidden", "free", "unused", "outside". */
const char *bw_owner_kind_name(enum bw_owner_kind kind);

/** A range of logical addresses, in bytes. */
struct bw_address_range {
    uint64_t logical, length;
};

/** An owner of a range, under one of its paths. */
struct bw_owner {
    enum bw_owner_kind kind;
    size_t range;         /**< number of the range that was asked for */
    uint64_t logical;     /**< where what it owns of that range begins; the whole tree block */
    uint64_t length;      /**< bytes from there on */
    uint64_t extent;      /**< address at which the extent or the tree block begins; not for the
                               kinds after BW_OWNER_BLOCK */
    uint64_t tree;        /**< id of the tree: of a subvolume, or another one that has data; of
                               a BW_OWNER_BLOCK, the one that it was written for */
    uint64_t inode;       /**< in that tree; for data and metadata only */
    uint64_t offset;      /**< data: where in the file it is, in bytes. Of compressed extents,
                               where the whole piece of the file begins */
    uint64_t file_length; /**< data: bytes of the file from there on */
    const struct bw_subvolume *subvolume; /**< NULL: the tree is none */
    struct bw_bytes path; /**< absolute path, raw bytes; data is NULL if it is not known, as in
                               a subvolume that is being deleted */
    uint8_t level;        /**< metadata and blocks: level of the block; 0 is a leaf */
    bool has_key;         /**< `key` is known */
    struct bw_key key;    /**< metadata and blocks: first key of the block */
    uint64_t reserved[6]; /**< zeros: room for more members */
};

/** Receives an owner, a view that ends with the call. An error ends the search and is returned. */
typedef struct bw_error *bw_owner_taker(void *context, const struct bw_owner *owner);

/** What is asked for. */
struct bw_owner_options {
    size_t struct_size;                    /**< sizeof(struct bw_owner_options) */
    const struct bw_address_range *ranges; /**< in any order; may overlap; no length is 0 */
    size_t count;
    bool whole_extents;  /**< also files that use another part of an extent in a range; offset and
                              file_length are those of the part that they use */
    bool no_paths;       /**< do not look for paths: each owner comes once, without one */
    bool no_extent_tree; /**< read all trees in any case */
    const struct bw_subvolume *subvolume; /**< only owners in this one; NULL: in all */
    bw_owner_taker *take;                 /**< receives owners */
    void *context;
};

/**
 * Finds the owners of ranges. First come data and metadata, by tree and within a tree in the order
 * of its keys, each as often as the file has names; then tree blocks, then what belongs to nothing,
 * both by address. With `subvolume` set, only the former.
 *
 * What cannot be read is reported. Files that depend on a lost leaf are found by the names that
 * directories have for them. BW_ERROR_USAGE if a range is empty or wraps; the error of `take`.
 */
struct bw_error *bw_owners_find(struct bw_fs *fs, const struct bw_owner_options *options);

#ifdef __cplusplus
}
#endif
#endif
