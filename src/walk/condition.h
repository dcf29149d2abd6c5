/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A single condition of a selection: how its argument is read, and how a file is tested.
 * conditions.c has the table of them; selection.c joins them, and judge.c decides.
 */
#ifndef BW_WALK_CONDITION_H
#define BW_WALK_CONDITION_H

#include <regex.h>

#include "walk/selection.h"

struct bw_condition;

/** What is tested: a name, or a file with its inode. */
struct bw_subject {
    const struct bw_selection *selection;
    const struct bw_named *named;      /**< for conditions on names */
    const struct bw_walked_file *file; /**< for those on inodes */
};

/** Reads the argument of a condition, or says what is wrong with it. */
typedef struct bw_error *bw_argument_reader(const char *argument, struct bw_condition *condition);

typedef bool bw_condition_test(const struct bw_subject *subject,
                               const struct bw_condition *condition);

/** How a node of a selection takes part in a decision: a condition, or what joins conditions. */
enum bw_condition_list {
    BW_ANY_NAME, /**< of these one has to be met, if there are any; up to the next BW_AND */
    BW_ANY_TYPE, /**< likewise */
    BW_NAMES,    /**< all of these */
    BW_TYPES,    /**< likewise */
    BW_INODES,   /**< likewise; they need the inode */
    BW_EXCLUDE,  /**< none of these, wherever they stand */
    BW_AND,      /**< no condition */
    BW_SET,      /**< what is in it must be met, up to its end */
    BW_GROUP,    /**< of the sets in it one has to be met */
};

/** A kind of condition, by the name it has on the command line. */
struct bw_condition_kind {
    const char *name;
    enum bw_condition_list list;
    bw_argument_reader *read; /**< NULL: it has no argument */
    bw_condition_test *test;
    size_t member; /**< of struct bw_inode: what is compared */
};

/** A node of a selection. What is in a group or set follows it. */
struct bw_condition {
    const struct bw_condition_kind *kind; /**< NULL: it is a node without an argument */
    enum bw_condition_list list;          /**< that of the kind; BW_NAMES for a negated name */
    bool negated;
    size_t end;     /**< of a group or set: the first node that is not in it */
    unsigned types; /**< a bit for each BW_FILE_* */
    char *text;     /**< a pattern, or the name of a user or group; owned */
    size_t text_length;
    regex_t *regex; /**< owned */
    enum { BW_EQUAL, BW_MORE, BW_LESS } comparison;
    enum { BW_MODE_IS, BW_MODE_HAS_ALL, BW_MODE_HAS_ANY } mode_test;
    bool is_unknown;         /**< a user or group that has no number: no file is theirs */
    uint64_t number;         /**< also the mode */
    uint64_t of_directories; /**< the mode for those */
    uint64_t unit;           /**< of a size: bytes */
    int64_t time;            /**< nanoseconds since 1970 */
};

/** Finds a kind of condition; NULL if there is none of that name. */
const struct bw_condition_kind *bw_condition_find(const char *name);

/** Frees what a condition owns. */
void bw_condition_release(struct bw_condition *condition);

#endif
