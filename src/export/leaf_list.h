/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Directories without entries, in the order in which they were added. They need not be found by
 * their names, so each is stored as its difference from the previous one. That takes about half the
 * memory of a record of the path store.
 */
#ifndef BW_EXPORT_LEAF_LIST_H
#define BW_EXPORT_LEAF_LIST_H

#include "base/packed.h"

enum { BW_LEAF_NAME = 255, BW_LEAF_DETAILS = 127 };

/** A directory without entries. */
struct bw_leaf {
    uint32_t after;  /**< a number that never decreases from one leaf to the next */
    uint32_t parent; /**< number of the directory that contains it */
    uint8_t name_length, details_length;
    char name[BW_LEAF_NAME];
    const uint8_t *details; /**< attributes, opaque to the list */
};

/** All zeros is an empty list. */
struct bw_leaf_list {
    struct bw_packed records;
    struct bw_leaf last;
    size_t count;
};

/** Frees the memory and leaves an empty list. */
void bw_leaf_list_free(struct bw_leaf_list *list);

/** Adds a leaf; false if memory runs out. `details_length` is at most BW_LEAF_DETAILS. */
bool bw_leaf_list_add(struct bw_leaf_list *list, const struct bw_leaf *leaf);

/** Reads a list from its beginning. Set `list`; the rest begins as zeros. Nothing may be added
 * meanwhile. */
struct bw_leaf_reader {
    const struct bw_leaf_list *list;
    uint32_t place; /**< of the next leaf */
    size_t count;   /**< leaves that were read */
    struct bw_leaf leaf;
};

/** Reads the next leaf into `leaf`; false after the last. */
bool bw_leaf_reader_next(struct bw_leaf_reader *reader);

#endif
