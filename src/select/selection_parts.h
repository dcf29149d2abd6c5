/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conditions, as selection_parse.c makes them of text and selection.c tries them on files. */
#ifndef BW_WALK_SELECTION_PARTS_H
#define BW_WALK_SELECTION_PARTS_H

#include <regex.h>
#include <wctype.h>

#include "select/selection.h"

/** How a number is compared: as it is, or with a sign in front of it. */
enum bw_comparison { BW_EQUAL, BW_MORE, BW_LESS };

/** How permissions are. */
enum bw_mode_test { BW_MODE_IS, BW_MODE_HAS_ALL, BW_MODE_HAS_ANY };

struct bw_condition;

/** Tries a condition on a name. */
typedef bool bw_name_test(const struct bw_selection *selection,
                          const struct bw_condition *condition, const struct bw_named *named);

/** Tries a condition on a file whose inode is known. */
typedef bool bw_inode_test(const struct bw_selection *selection,
                           const struct bw_condition *condition, const struct bw_walked_file *file);

/** A condition: one of both tests, and what it compares with. */
struct bw_condition {
    bw_name_test *name;
    bw_inode_test *inode;
    char *pattern; /**< owned */
    size_t pattern_length;
    regex_t *regex; /**< owned */
    enum bw_comparison comparison;
    enum bw_mode_test mode_test;
    uint64_t number; /**< also the mode */
    uint64_t unit;   /**< of a size: bytes */
    int64_t time;    /**< nanoseconds since 1970 */
};

/** Conditions of one kind. */
struct bw_condition_list {
    struct bw_condition *items;
    size_t count, capacity;
};

struct bw_selection {
    struct bw_condition_list any_name; /**< of these one has to be met, if there are any */
    struct bw_condition_list names;    /**< all of these */
    struct bw_condition_list exclude;  /**< none of these */
    struct bw_condition_list inodes;   /**< all of these */
    int64_t now;                       /**< nanoseconds since 1970 */
    locale_t locale; /**< knows the case of all letters; 0: only those of ASCII are known */
};

bw_name_test bw_test_name, bw_test_iname, bw_test_path, bw_test_regex, bw_test_inum,
    bw_test_name_or_path;
bw_inode_test bw_test_size, bw_test_newer, bw_test_mtime, bw_test_uid, bw_test_gid, bw_test_links,
    bw_test_perm, bw_test_empty;

#endif
