/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trees, blocks and items as text or JSON. The text is that of `btrfs inspect-internal dump-tree`:
 * the same lines with the same labels in the same order. JSON is an object a line, for each item
 * of a leaf and each pointer of an internal node; docs/items.md describes the members.
 *
 * Text never holds control bytes of the image: they are escaped as `ls -b` does. Times are in the
 * zone of the process (TZ).
 */
#ifndef BTRFS_WALK_DUMP_H
#define BTRFS_WALK_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/graph.h"
#include "btrfs-walk/json.h"
#include "btrfs-walk/key.h"
#include "btrfs-walk/tree.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What to print, and how. All zeros but the size: whole trees, as text, level by level. */
struct bw_dump_options {
    size_t struct_size;    /**< sizeof(struct bw_dump_options) */
    bool json;             /**< JSON instead of text */
    bool depth_first;      /**< each node is followed by what is below it; otherwise by the nodes of
                              its level */
    bool follow;           /**< of a block: also everything below it */
    bool checksum_headers; /**< the checksums of blocks, in text */
    bool checksum_items;   /**< the checksums of data */
    bool hide_names;       /**< names and values of attributes are replaced by HIDDEN, and left out
                              of JSON */
    /** Only items with keys from here on, and up to there; both may be NULL. If one is set,
     * internal nodes are not printed, and only what is needed is read. */
    const struct bw_key *first, *last;
    /** The log was replayed (struct bw_fs_status): show the trees of subvolumes and the checksum
     * tree with its changes. Changed blocks are in memory only; they have addresses from 1 << 63
     * on, and zeros for a checksum and for UUIDs. Otherwise trees are shown as they are on disk. */
    bool replayed;
    /** Rows of the record iteminfo (rows.h): writes one for each item and pointer. Pass
     * bw_rows_take() as the consumer, and the stream as its context. NULL: text, or with `json`
     * all members. */
    const struct bw_rows *rows;
};

/**
 * Prints trees, in the order given; all of them if `count` is 0: the root tree, the chunk tree, the
 * log, and those that the root tree names. An id that several trees share, such as that of
 * relocation trees, stands for all of them. Text is passed to `consume` in pieces of any size; its
 * error ends the printing and is returned.
 *
 * What cannot be read is reported and left out; of a damaged block, what can be decoded is printed.
 * BW_ERROR_NOT_FOUND, before anything is printed, if there is no such tree; BW_ERROR_USAGE if the
 * options are wrong.
 */
struct bw_error *bw_dump_trees(struct bw_fs *fs, const uint64_t *ids, size_t count,
                               const struct bw_dump_options *options, bw_consumer *consume,
                               void *context);

/**
 * Prints the tree block at a logical address, and with options->follow what is below it. A block
 * that is damaged is printed as far as it can be, and its error is reported. BW_ERROR_NOT_FOUND if
 * no chunk holds the address.
 */
struct bw_error *bw_dump_block(struct bw_fs *fs, uint64_t bytenr,
                               const struct bw_dump_options *options, bw_consumer *consume,
                               void *context);

/**
 * The data of an item: in text, lines that begin with two tabs; in JSON, an object. The caller
 * frees `*text`, which ends with a NUL; `length`, without it, may be NULL. BW_ERROR_CORRUPT if the
 * item is cut off.
 */
struct bw_error *bw_item_format(const struct bw_fs *fs, const struct bw_item *item,
                                const struct bw_dump_options *options, char **text, size_t *length);

/** Writes a superblock of BW_SUPERBLOCK_BYTES, good or not, as lines of `btrfs inspect-internal
 * dump-super`; a line feed comes before the first. bw_rows_write_superblock() writes a row. */
struct bw_error *bw_superblock_print(const uint8_t *bytes, bw_consumer *consume, void *context);

/**
 * The range of keys that a text describes: KEY, or MIN..MAX of which one may be empty. A key is
 * OBJECTID[,TYPE[,OFFSET]] with numbers or the names that are printed; what is left out stands for
 * everything. BW_ERROR_USAGE if it is malformed.
 */
struct bw_error *bw_key_range_parse(const char *text, struct bw_key *first, struct bw_key *last);

/** Describes all types of items: adds an array of objects to a writer. */
void bw_item_types_describe(struct bw_json *json, const char *name);

#ifdef __cplusplus
}
#endif
#endif
