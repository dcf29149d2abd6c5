/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trees that can be printed. */
#ifndef BW_TREES_DUMP_H
#define BW_TREES_DUMP_H

#include "fs/fs.h"
#include "record/fields.h"

/** BW_ERROR_NOT_FOUND, which names what there is, unless there is a tree of that id. */
struct bw_error *bw_dump_tree_check(struct bw_fs *fs, uint64_t id);

/* Printing tree blocks: the header, and the items or pointers one by one, as text or as rows of the
 * record iteminfo. */

/** A block to be printed; `node.item_count` is never more than what fits. */
struct bw_block_print {
    struct bw_printer *printer;
    const struct bw_rows *rows;   /**< of iteminfo; NULL: text */
    struct bw_rows *const *items; /**< of each type of items */
    struct bw_node node;
    uint64_t tree;        /**< id of the tree, for rows */
    uint64_t bytenr;      /**< its address */
    bool checksum_header; /**< print its checksum */
    bool hex;             /**< print bytes instead of their meaning */
    bool damaged;         /**< its contents may be wrong, which rows say */
};

/** The view of a block that may be damaged: the item count is no more than what fits. */
struct bw_node bw_block_view(const uint8_t *block, uint32_t nodesize);

/** Prints the four lines of the header; there is no row for it. */
void bw_block_print_header(const struct bw_block_print *block);

/** Prints an item of a leaf. False if its bytes lie outside of the leaf: then only its entry is
 * printed. */
bool bw_block_print_item(const struct bw_block_print *block, uint32_t slot);

/** Prints a pointer of an internal node. */
void bw_block_print_pointer(const struct bw_block_print *block, uint32_t slot);

/** Prints all bytes of a block in their order: the header, items or pointers, unused space, and the
 * data of items. */
void bw_block_print_bytes(const struct bw_block_print *block);

#endif
