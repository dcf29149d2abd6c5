/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The filters of find(1), for all commands that list or export a tree.
 */
#ifndef BW_CMD_SELECTION_H
#define BW_CMD_SELECTION_H

#include "btrfs-walk/selection.h"
#include "btrfs-walk/walk.h"
#include "cli/command.h"

/** The options, for a struct cmd_selection. */
extern const struct cmd_option cmd_selection_options[];

/** The line of --nested in the table of a command whose state is a `type`. */
#define CMD_NESTED_OPTION(type, member)                                                      \
    {                                                                                        \
        0, "nested", "WORD",                                                                 \
            "enter nested subvolumes: yes (the default), or no (the default with --subvol)", \
                                                                                             \
            CMD_WORD(type, member, cmd_nested_words)                                         \
    }

/** The words of --nested, in the order of enum bw_nested. */
extern const char *const cmd_nested_words[];

/** Their entry in the table of a command whose state is a `type`. */
#define CMD_SELECTION(type, member)                                       \
    {                                                                     \
        .group = cmd_selection_options, .offset = offsetof(type, member), \
        .release = cmd_selection_free                                     \
    }

/** What the options have set. All zeros selects what the command does by itself. */
struct cmd_selection {
    struct bw_selection *selection;
    unsigned types;     /**< without operators; with them, they are part of the selection */
    bool has_operators; /**< --not, --or or the like was given */
    bool has_maxdepth;
    unsigned maxdepth, mindepth;
};

/** Whether any filter was given. */
static inline bool cmd_selection_is_set(const struct cmd_selection *selection)
{
    return selection->selection || selection->types || selection->has_maxdepth ||
           selection->mindepth;
}

/** Puts all that was set into the options of a walk, which must not outlive the selection. Their
 * `types` stay as they are if --type was not given. `types`: with operators, what sets of filters
 * without a type select. */
void cmd_selection_apply(const struct cmd_selection *selection, unsigned types,
                         struct bw_walk_options *options);

/** When the file system is open, and before any use: looks up names of users and groups there, from
 * `subvolume` (as of --subvol; NULL: none) if it has them. BW_ERROR_NOT_FOUND if there is no such
 * subvolume; errors as of bw_selection_prepare(). */
struct bw_error *cmd_selection_prepare(const struct cmd_selection *selection, struct bw_fs *fs,
                                       const char *subvolume);

/** Reports that a subvolume itself has nothing to list if others are nested in it, unless -q was
 * given. */
void cmd_tell_of_nested(const struct cmd_common *common, struct bw_fs *fs, const char *subvolume);

/** Frees what the options have made; for CMD_SELECTION(). */
void cmd_selection_free(void *selection);

#endif
