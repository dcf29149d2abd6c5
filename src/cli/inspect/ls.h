/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ls command: ls.c has the order of directories and the filters, ls_listing.c reads and sorts
 * entries, ls_print.c prints them, in colours. */
#ifndef BW_CLI_INSPECT_LS_H
#define BW_CLI_INSPECT_LS_H

#include "base/time_style.h"
#include "base/vector.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/subvolume.h"
#include "cli/common/output_format.h"
#include "cli/common/paths.h"
#include "cli/common/selection.h"

/** The sort key. */
enum ls_order { LS_ORDER_DEFAULT, LS_BY_NAME, LS_UNSORTED, LS_BY_SIZE, LS_BY_TIME };

/** The time to print and to sort by. */
enum ls_time { LS_MTIME, LS_ATIME, LS_CTIME, LS_OTIME };

/** Kinds of files that have colours, with their names in LS_COLORS. */
enum ls_color_kind {
    LS_LEFT,    /**< lc: begins a sequence */
    LS_RIGHT,   /**< rc: ends it */
    LS_END,     /**< ec: replaces lc rs rc */
    LS_RESET,   /**< rs */
    LS_FILE,    /**< fi */
    LS_FOLDER,  /**< di */
    LS_LINK,    /**< ln */
    LS_FIFO,    /**< pi */
    LS_SOCKET,  /**< so */
    LS_BLOCK,   /**< bd */
    LS_CHAR,    /**< cd */
    LS_MISSING, /**< mi: the missing target of a link */
    LS_ORPHAN,  /**< or: a link whose target is missing */
    LS_EXECUTE, /**< ex */
    LS_SETUID,  /**< su */
    LS_SETGID,  /**< sg */
    LS_STICKY,  /**< st */
    LS_OTHERS,  /**< ow: others may write */
    LS_BOTH,    /**< tw: sticky, and others may write */
    LS_HARD,    /**< mh: has several hard links */
    LS_COLOR_KINDS
};

/** An escape sequence. */
struct ls_color {
    const char *bytes; /**< NULL: none */
    size_t length;
};

/** The colour of files whose names end with a suffix. */
struct ls_suffix {
    struct ls_color suffix, color;
};

BW_VECTOR(ls_suffixes, struct ls_suffix);

/** The colours of all kinds and suffixes. */
struct ls_colors {
    struct ls_color kinds[LS_COLOR_KINDS];
    struct ls_suffixes suffixes; /**< the last one that matches applies */
    char *text;                  /**< bytes of all sequences */
    bool used;                   /**< one has been written */
};

/** Settings of the options. */
struct ls_state {
    bool all, almost_all, lines, human_readable, inodes, recursive, names;
    bool itself;   /**< list directories given as PATH, not their contents */
    bool classify; /**< -F */
    bool reverse, one;
    unsigned time_word; /**< argument of --time; 0: not given */
    unsigned order;     /**< enum ls_order: the last one given */
    enum ls_time time;
    const char *time_style;
    unsigned color; /**< enum ls_when */
    struct cmd_selection selection;
    bool selects; /**< there are filters */
    struct bw_time_style times;
    struct ls_colors colors;
    struct bw_user_names *owners; /**< NULL: print numbers */
};

/** An entry of a listing. */
struct ls_entry {
    size_t name, name_length; /**< offset in the listing's bytes */
    struct bw_place place;
    struct bw_inode inode;
    bool has_inode, has_acl, no_compression;
    bool is_dots;                 /**< "." or "..": never entered */
    size_t target, target_length; /**< of a link, in the listing's bytes; length 0: none, or
                                   * unreadable */
    uint32_t target_mode;         /**< mode of the link's target; 0: missing, or not read */
};

BW_VECTOR(ls_entries, struct ls_entry);

/** Entries that are printed together. An empty listing has only options. */
struct ls_listing {
    const struct ls_state *options;
    struct ls_entries entries;
    struct bw_buffer bytes; /**< names and targets */
    bool filled;            /**< inodes were read, as far as possible */
};

/** Frees the memory and leaves an empty listing. */
void ls_listing_free(struct ls_listing *listing);

/** Empties a listing. Keeps its memory for the next one, unless it is large. */
void ls_listing_clear(struct ls_listing *listing);

/** Adds an entry. */
struct bw_error *ls_listing_add(struct ls_listing *listing, const char *name, size_t length,
                                const struct bw_place *place);

/** Adds the entries of a directory that the options select; `parent` is its "..". `*handle` is NULL
 * at first, is reused for all directories, and is closed by the caller. Lost entries are
 * reported. */
struct bw_error *ls_listing_read(struct ls_listing *listing, struct cmd_paths *paths,
                                 const struct bw_place *place, const struct bw_place *parent,
                                 struct bw_directory **handle);

/** Reads inodes and, if requested, targets of links. Unreadable ones are reported, and printed as
 * '?'. */
struct bw_error *ls_listing_read_inodes(struct ls_listing *listing, struct cmd_paths *paths,
                                        bool targets);

/** Sorts by the selected order; names are compared byte by byte. Reads the inodes if the order
 * depends on them. Fails only if memory runs out. */
struct bw_error *ls_listing_sort(struct ls_listing *listing, struct cmd_paths *paths);

/** Gets the modes of the targets of links. `directory` is the path of the listing, "" if its names
 * are paths. */
struct bw_error *ls_listing_follow_links(struct ls_listing *listing, const struct cmd_paths *paths,
                                         const char *directory);

/** The selected time of an inode. */
const struct timespec *ls_time_of(const struct bw_inode *inode, enum ls_time time);

/** Appends the lines; if `total` is set, long lines begin with the total of blocks on disk. */
void ls_listing_print(const struct ls_listing *listing, const struct cmd_paths *paths,
                      struct ls_state *options, bool total, struct bw_buffer *text);

/** Parses LS_COLORS, or selects the default colours of ls. False, after a warning, if LS_COLORS is
 * invalid; then there are no colours. */
bool ls_colors_read(const struct cmd_common *common, struct ls_colors *colors);

/** Whether colours depend on the targets of links. */
bool ls_colors_follow(const struct ls_colors *colors);

void ls_colors_free(struct ls_colors *colors);

#endif
