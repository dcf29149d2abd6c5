/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Printing blocks into sheets of text. Leaves are gathered and printed side by side by a pool of
 * threads, each into a sheet of its own; the sheets are passed on in their order.
 */
#ifndef BW_TREES_DUMP_PAGES_H
#define BW_TREES_DUMP_PAGES_H

#include "base/pool.h"
#include "btrfs-walk/dump.h"
#include "fs/fs.h"
#include "ondisk/block_text.h"

enum {
    BW_DUMP_SHEETS = 32,            /**< leaves that are gathered at most */
    BW_DUMP_LEAF_BYTES = 512 << 10, /**< and their bytes */
};

/** A text under way. */
struct bw_dump_sheet {
    struct bw_buffer text;
    struct bw_json json;
    struct bw_printer printer;
};

/** What is printed, where it goes, and the leaves that have been gathered. */
struct bw_dump {
    struct bw_fs *fs;
    struct bw_dump_options options;
    struct bw_key first, last;
    bool part;     /**< of the keys: no internal nodes are printed */
    uint64_t tree; /**< id of the present tree */
    bw_consumer *consume;
    void *context;
    struct bw_dump_sheet sheet; /**< of all but leaves */
    uint8_t *leaves;
    unsigned gathered;
    struct bw_dump_sheet leaf_sheets[BW_DUMP_SHEETS];
    struct bw_pool *pool;
};

/** Begins; the members from `fs` to `context` but for `tree` are set. */
struct bw_error *bw_dump_begin(struct bw_dump *dump);

/** Takes the error that ended the work, or NULL; passes on what is left and frees everything. */
struct bw_error *bw_dump_end(struct bw_dump *dump, struct bw_error *error);

/** Passes on all text, leaves that have been gathered first. */
struct bw_error *bw_dump_give(struct bw_dump *dump);

/** Gathers a leaf. */
struct bw_error *bw_dump_leaf(struct bw_dump *dump, const struct bw_node *leaf);

/** Prints a block at once. */
struct bw_error *bw_dump_print(struct bw_dump *dump, const struct bw_node *node, uint64_t bytenr,
                               bool damaged);

/** A printer for items of a file system. */
struct bw_printer bw_dump_printer(const struct bw_fs *fs, const struct bw_dump_options *options);

#endif
