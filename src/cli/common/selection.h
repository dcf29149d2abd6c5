/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The filters of find(1), for all commands that list or export a tree.
 */
#ifndef BW_CLI_COMMON_SELECTION_H
#define BW_CLI_COMMON_SELECTION_H

#include "btrfs-walk/walk.h"
#include "cli/command.h"

/** The options for a struct cmd_selection: the filters alone, and with --subvol, --nested and
 * --no-snapshots, which select where a walk begins and what it enters. */
extern const struct cmd_option cmd_selection_options[], cmd_tree_options[];

/** The entry for --nested in the option table of a command whose state is a `type`. */
#define CMD_NESTED_OPTION(type, member)                                                      \
    {                                                                                        \
        0, "nested", "WORD",                                                                 \
            "enter nested subvolumes: yes (the default), or no (the default with --subvol)", \
                                                                                             \
            CMD_WORD(type, member, cmd_nested_words)                                         \
    }

/** The entry for --part in the option table of a command whose state is a `type` with a
 * struct cmd_selection. */
#define CMD_PART_OPTION(type, member)                                                      \
    {                                                                                      \
        0, "part", "I/N", "only part I of N: each inode is in exactly one, by its number", \
            CMD_PART(type, member.part)                                                    \
    }

/** The words of --nested, in the order of enum bw_nested. */
extern const char *const cmd_nested_words[];

/** The entries for these tables in the option table of a command whose state is a `type`. */
#define CMD_SELECTION(type, member)                                       \
    {                                                                     \
        .group = cmd_selection_options, .offset = offsetof(type, member), \
        .release = cmd_selection_free                                     \
    }
#define CMD_TREE(type, member)                                                                     \
    {                                                                                              \
        .group = cmd_tree_options, .offset = offsetof(type, member), .release = cmd_selection_free \
    }

/** Which files a command line selects. All zeros: the defaults of the command. */
struct cmd_selection {
    struct bw_selection *selection;
    unsigned types; /**< argument of --type: enum bw_walk_types; 0: the default of the command */
    bool has_maxdepth;
    unsigned maxdepth, mindepth;
    struct cmd_part part;
    const char *subvolume; /**< where paths begin; NULL: at the top-level subvolume */
    unsigned nested;       /**< enum bw_nested */
    bool no_snapshots;
};

/** Whether any filter was given. */
static inline bool cmd_selection_is_set(const struct cmd_selection *selection)
{
    return selection->selection || selection->types || selection->has_maxdepth ||
           selection->mindepth || selection->part.count;
}

/** Copies the settings into the options of a walk, which must not outlive the selection. Without
 * --type, the walk's `types` do not change. */
void cmd_selection_apply(const struct cmd_selection *selection, struct bw_walk_options *options);

/** To be called after the file system was opened, before the selection is used. Looks up the names
 * of users and groups in the image, in the subvolume of --subvol if it has the files.
 * BW_ERROR_NOT_FOUND if there is no such subvolume; errors of bw_selection_prepare(). */
struct bw_error *cmd_selection_prepare(const struct cmd_selection *selection, struct bw_fs *fs);

/** After a walk that found nothing: reports that the subvolume of --subvol itself contains no files
 * but other subvolumes are nested in it, unless these were entered, or filters or -q were given. */
void cmd_report_nested(const struct cmd_common *common, struct bw_fs *fs,
                       const struct cmd_selection *selection);

/** Frees the settings; for CMD_SELECTION(). */
void cmd_selection_free(void *selection);

#endif
