/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the ls command: ls.c decides what is listed, ls_listing.c gathers, filters and
 * sorts the entries of a directory, ls_print.c writes them. */
#ifndef BW_CMD_LS_H
#define BW_CMD_LS_H

#include "cmd/common/paths.h"
#include "cmd/common/selection.h"

/** What the options have set. */
struct ls_state {
    const char *subvolume;
    bool all, lines, people, inodes, recursive;
    bool itself; /**< directories given as PATH are listed, not what is in them */
    struct cmd_selection selection;
    bool selects; /**< whether there are filters */
};

/** One line. */
struct ls_entry {
    size_t name, name_length; /**< in the listing's bytes */
    struct bw_place place;
    struct bw_inode inode;
    bool has_inode, has_acl;
    bool is_dots;                 /**< "." or "..": not to be entered */
    size_t target, target_length; /**< of a link, in the listing's bytes; length 0: none, or lost */
};

/** Entries that are written together. All zeros is an empty one. */
struct ls_listing {
    struct ls_entry *entries;
    size_t count, capacity;
    struct bw_buffer bytes;
};

/** Frees what it holds and leaves an empty one. */
void ls_listing_free(struct ls_listing *listing);

/** Adds an entry; its name is copied. */
struct bw_error *ls_listing_add(struct ls_listing *listing, const char *name, size_t length,
                                const struct bw_place *place);

/** Adds the entries of a directory, as the options want them; `parent` is its "..". What is lost is
 * reported. */
struct bw_error *ls_listing_read(struct ls_listing *listing, struct cmd_paths *paths,
                                 const struct ls_state *options, const struct bw_place *directory,
                                 const struct bw_place *parent);

/** Sorts by name, byte by byte. */
void ls_listing_sort(struct ls_listing *listing);

/** Reads inodes and, if wanted, targets of links. What cannot be read is reported, and printed as
 * '?'. */
struct bw_error *ls_listing_fill(struct ls_listing *listing, struct cmd_paths *paths, bool targets);

/** Removes "." and "..", and what --exclude matches: such directories are not entered. `path` is
 * that of the listing's directory as the user sees it, "" if its names are paths themselves. */
struct bw_error *ls_listing_exclude(struct ls_listing *listing, const struct cmd_paths *paths,
                                    const struct ls_state *options, const char *path);

/** Keeps what all other filters select. Names are tried before any inode is read. */
struct bw_error *ls_listing_select(struct ls_listing *listing, struct cmd_paths *paths,
                                   const struct ls_state *options, const char *path);

/** Appends the lines; before long ones, if `total` is set, what they take on disk. */
void ls_listing_print(const struct ls_listing *listing, const struct cmd_paths *paths,
                      const struct ls_state *options, bool total, struct bw_buffer *text);

#endif
