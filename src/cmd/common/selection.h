/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The filters, in find's words, for all commands that go through a tree. A command has
 * CMD_SELECTION_OPTIONS in its table and a struct cmd_selection in its state, and hands on letters
 * that it does not know itself.
 */
#ifndef BW_CMD_SELECTION_H
#define BW_CMD_SELECTION_H

#include "btrfs-walk/selection.h"
#include "btrfs-walk/walk.h"
#include "cmd/command.h"

/** Letters of the options, in the tables of the commands that have them. */
enum cmd_selection_option {
    CMD_OPTION_TYPE = 400,
    CMD_OPTION_NAME,
    CMD_OPTION_INAME,
    CMD_OPTION_PATH,
    CMD_OPTION_REGEX,
    CMD_OPTION_EXCLUDE,
    CMD_OPTION_SIZE,
    CMD_OPTION_EMPTY,
    CMD_OPTION_NEWER,
    CMD_OPTION_MTIME,
    CMD_OPTION_UID,
    CMD_OPTION_GID,
    CMD_OPTION_PERM,
    CMD_OPTION_LINKS,
    CMD_OPTION_INUM,
    CMD_OPTION_MAXDEPTH,
    CMD_SELECTION_END, /**< behind the last */
};

/** The lines of the options in such a table. */
#define CMD_SELECTION_OPTIONS                                                                     \
    {CMD_OPTION_TYPE, "type", "LIST",                                                             \
     "only these: f,d,l,c,b,p,s (files, directories, links, ...)"},                               \
        {CMD_OPTION_NAME, "name", "GLOB", "only what has such a name (repeatable: any of them)"}, \
        {CMD_OPTION_INAME, "iname", "GLOB", "the same, whatever the case of its letters"},        \
        {CMD_OPTION_PATH, "path", "GLOB",                                                         \
         "only what has such a path, in which '*' stands for '/', too"},                          \
        {CMD_OPTION_REGEX, "regex", "RE",                                                         \
         "only what has a path that all of this extended expression fits"},                       \
        {CMD_OPTION_EXCLUDE, "exclude", "GLOB",                                                   \
         "leave out such names or paths, and what is in such directories (repeatable)"},          \
        {CMD_OPTION_SIZE, "size", "N",                                                            \
         "of this size, rounded up to 512 bytes or c w k M G T; +N: larger, -N: smaller"},        \
        {CMD_OPTION_EMPTY, "empty", NULL, "files of size 0 and directories without entries"},     \
        {CMD_OPTION_NEWER, "newer", "DATE",                                                       \
         "changed after YYYY-MM-DD[ HH:MM[:SS]][+HH:MM] (UTC) or @SECONDS"},                      \
        {CMD_OPTION_MTIME, "mtime", "N", "changed N whole days ago; +N: before, -N: since"},      \
        {CMD_OPTION_UID, "uid", "N", "of the owner with this number; +N and -N here, too"},       \
        {CMD_OPTION_GID, "gid", "N", "of the group with this number"},                            \
        {CMD_OPTION_PERM, "perm", "MODE",                                                         \
         "with these permissions, octal; -MODE: all of them, /MODE: any"},                        \
        {CMD_OPTION_LINKS, "links", "N", "with so many hard links"},                              \
        {CMD_OPTION_INUM, "inum", "N", "of this inode number"},                                   \
    {                                                                                             \
        CMD_OPTION_MAXDEPTH, "maxdepth", "N",                                                     \
            "at most N directories deep; 0: only where it starts"                                 \
    }

/** What the options have set. All zeros selects what the command does by itself. */
struct cmd_selection {
    struct bw_selection *selection;
    struct bw_error *error; /**< the first that was wrong */
    unsigned types;
    bool has_maxdepth;
    unsigned maxdepth;
};

/** Takes one of them; false if it is none of them. What is wrong with it cmd_selection_apply()
 * says. */
bool cmd_selection_set(struct cmd_selection *selection, int letter, const char *argument);

/** Puts all that was set into the options of a walk, which must not outlive the selection; to be
 * called before anything is opened. Returns what was wrong: BW_ERROR_USAGE. `types` stays as it is
 * if --type was not given. */
struct bw_error *cmd_selection_apply(struct cmd_selection *selection,
                                     struct bw_walk_options *options);

/** Frees it after the last walk. */
void cmd_selection_free(struct cmd_selection *selection);

#endif
