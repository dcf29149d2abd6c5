/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Items as tables: valid ones, and the changes of each case. ondisk/item_rules.h checks them, with
 * sectors of 4 KiB, nodes of 16 KiB, checksums of 4 bytes, and the generation 100.
 */
#ifndef BW_TESTS_ITEM_CASES_H
#define BW_TESTS_ITEM_CASES_H

#include "ondisk/disk_items.h"
#include "ondisk/item_rules.h"
#include "support/walk_helpers.h"

enum { SECTOR = 4096, NODE = 16384, GENERATION = 100, MOST_CHANGES = 14 };

/** A number of `width` bytes, or a text, at a place in an item. */
struct item_change {
    size_t at;
    unsigned width; /**< 0: no change, or a text */
    uint64_t value;
    const char *text;
};

/** Sets a member of a structure to a number: at the begin of the item, or `base` bytes on. */
#define SET_AT(base, structure, member, number)                               \
    {                                                                         \
        (base) + offsetof(struct bw_disk_##structure, member),                \
            sizeof(((struct bw_disk_##structure *)0)->member), (number), NULL \
    }
#define SET(structure, member, number) SET_AT(0, structure, member, number)
#define TEXT(at, text) \
    {                  \
        at, 0, 0, text \
    }
#define BYTE(at, number)    \
    {                       \
        at, 1, number, NULL \
    }

/** An item in which nothing is wrong. Bytes that it does not set are zeros. */
struct good_item {
    struct bw_key key;
    uint32_t size;
    uint64_t owner; /**< its tree */
    struct item_change changes[MOST_CHANGES];
};

/** A good item that is changed. */
struct item_case {
    const struct good_item *good;
    struct item_change changes[4];
    struct bw_key key;        /**< all zeros: not changed */
    int longer;               /**< bytes that the item is longer; or shorter, if less than 0 */
    uint64_t owner;           /**< 0: not changed */
    uint64_t features;        /**< those that the file system has more or less than usual */
    uint64_t leaf_generation; /**< 0: unknown */
    bool in_log;
    const struct good_item *previous;
    struct bw_key previous_key; /**< all zeros: that of `previous` */
    enum bw_item_fault_kind kind;
    const char *message; /**< NULL: nothing is wrong */
};

/** The expected fault: the name of its kind, and its message. */
#define BAD(what, words) .kind = BW_FAULT_##what, .message = (words)

/** The features that file systems have here. */
#define USUAL_FEATURES BW_INCOMPAT_SKINNY_METADATA

void expect_verdicts(const struct item_case *cases, size_t count);

#endif
