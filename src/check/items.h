/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the contents of a single item are what the format allows, as strictly as the kernel
 * before it uses or writes one. Only the item, its key and a few facts of the file system are
 * looked at; what other items say is the business of the passes.
 */
#ifndef BW_CHECK_ITEMS_H
#define BW_CHECK_ITEMS_H

#include "check/codes.h"
#include "ondisk/items.h"

/** What an item is judged by. */
struct bw_item_rules {
    uint32_t sectorsize, nodesize, checksum_size;
    uint64_t generation;            /**< of the superblock */
    uint64_t leaf_generation;       /**< of the leaf that contains the item; UINT64_MAX: unknown */
    uint64_t incompat;              /**< features of the superblock */
    bool in_log;                    /**< the tree is a log tree: some rules are less strict there */
    uint64_t owner;                 /**< tree that the leaf was written for */
    const struct bw_item *previous; /**< the item before it in the leaf; NULL: it is the first, or
                                       the two are not in order */
};

/** What is wrong with an item. */
struct bw_item_fault {
    enum bw_code_number code;
    char message[160]; /**< as of bw_check_find() */
};

/** Judges an item; true, with `*fault` set, if something is wrong with it. */
bool bw_item_judge(const struct bw_item_rules *rules, const struct bw_item *item,
                   struct bw_item_fault *fault);

#endif
