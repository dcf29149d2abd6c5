/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Printing tree blocks: the header, and the items or pointers one by one. What they hold is
 * printed by structure.c. */
#ifndef BW_ONDISK_BLOCK_TEXT_H
#define BW_ONDISK_BLOCK_TEXT_H

#include "ondisk/structure.h"

/** A block to be printed; `node.item_count` is never more than what fits. */
struct bw_block_print {
    struct bw_printer *printer;
    struct bw_node node;
    uint64_t tree;        /**< id of the tree, for JSON */
    uint64_t bytenr;      /**< its address */
    bool checksum_header; /**< print its checksum */
    bool damaged;         /**< it cannot be relied on: JSON says so */
};

/** The view of a block that may be damaged: the item count is no more than what fits. */
struct bw_node bw_block_view(const uint8_t *block, uint32_t nodesize);

/** Prints the four lines of the header; in JSON there is none. */
void bw_block_print_header(const struct bw_block_print *block);

/** Prints an item of a leaf. False if its bytes lie outside of the leaf: then only its entry is
 * printed. */
bool bw_block_print_item(const struct bw_block_print *block, uint32_t slot);

/** Prints a pointer of an internal node. */
void bw_block_print_pointer(const struct bw_block_print *block, uint32_t slot);

#endif
