/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ls command: ls.c decides what is listed; ls_print.c writes it, in colours. */
#ifndef BW_CMD_LS_H
#define BW_CMD_LS_H

#include "base/time_style.h"
#include "btrfs-walk/directory.h"
#include "btrfs-walk/people.h"
#include "cli/common/paths.h"
#include "cli/common/answer.h"
#include "cli/common/selection.h"

/** What entries are sorted by. */
enum ls_order { LS_BY_NAME, LS_UNSORTED, LS_BY_SIZE, LS_BY_TIME, LS_BY_EXTENSION };

/** The time that is shown, and sorted by. */
enum ls_time { LS_MTIME, LS_ATIME, LS_CTIME, LS_OTIME };

/** Kinds of files that have a colour, by the names of LS_COLORS. */
enum ls_color_kind {
    LS_LEFT,    /**< lc: begins a sequence */
    LS_RIGHT,   /**< rc: ends it */
    LS_END,     /**< ec: in place of lc rs rc */
    LS_RESET,   /**< rs */
    LS_FILE,    /**< fi */
    LS_FOLDER,  /**< di */
    LS_LINK,    /**< ln */
    LS_FIFO,    /**< pi */
    LS_SOCKET,  /**< so */
    LS_BLOCK,   /**< bd */
    LS_CHAR,    /**< cd */
    LS_MISSING, /**< mi: what a link leads to that is not there */
    LS_ORPHAN,  /**< or: that link */
    LS_EXECUTE, /**< ex */
    LS_SETUID,  /**< su */
    LS_SETGID,  /**< sg */
    LS_STICKY,  /**< st */
    LS_OTHERS,  /**< ow: others may write */
    LS_BOTH,    /**< tw: both */
    LS_HARD,    /**< mh: it has several names */
    LS_COLOR_KINDS
};

/** Bytes of a sequence. */
struct ls_color {
    const char *bytes; /**< NULL: there is none */
    size_t length;
};

/** All colours. */
struct ls_colors {
    struct ls_color kinds[LS_COLOR_KINDS];
    struct ls_suffix {
        struct ls_color suffix, color;
    } * suffixes; /**< the last one that fits counts */
    size_t count, capacity;
    char *text; /**< of all sequences */
    bool used;  /**< one has been written */
};

/** What the options have set. */
struct ls_state {
    const char *subvolume;
    unsigned nested; /**< enum bw_nested */
    bool all, almost_all, lines, people, inodes, recursive, numeric, names, full_times;
    bool itself;   /**< directories given as PATH are listed, not what is in them */
    bool classify; /**< -F */
    bool reverse, by_extension, unsorted, plain;
    bool by_time, by_size, one;
    bool changed, accessed;
    unsigned order_word, time_word; /**< --sort and --time: 0 if not given */
    enum ls_order order;
    enum ls_time time;
    const char *time_style;
    unsigned color; /**< enum ls_when */
    struct cmd_selection selection;
    bool selects; /**< whether there are filters */
    struct bw_time_style times;
    struct ls_colors colors;
    struct bw_people *owners; /**< NULL: numbers are shown */
};

/** One line. */
struct ls_entry {
    size_t name, name_length; /**< in the listing's bytes */
    struct bw_place place;
    struct bw_inode inode;
    bool has_inode, has_acl, no_compression;
    bool is_dots;                 /**< "." or "..": not to be entered */
    size_t target, target_length; /**< of a link, in the listing's bytes; length 0: none, or lost */
    uint32_t target_mode;         /**< of what a link leads to; 0: nothing, or not asked for */
};

/** Entries that are written together. All zeros is an empty one. */
struct ls_listing {
    struct ls_entry *entries;
    size_t count, capacity;
    struct bw_buffer bytes;
    bool filled; /**< inodes have been read, or tried to */
};

/** Which time of an inode is shown. */
const struct timespec *ls_time_of(const struct bw_inode *inode, enum ls_time time);

/** Appends the lines; before long ones, if `total` is set, what they take on disk. */
void ls_listing_print(const struct ls_listing *listing, const struct cmd_paths *paths,
                      struct ls_state *options, bool total, struct bw_buffer *text);

/** Reads LS_COLORS, or takes the colours of ls. False, after a warning: it makes no sense, and
 * there are no colours. */
bool ls_colors_read(const struct cmd_common *common, struct ls_colors *colors);

/** Whether they depend on what links lead to. */
bool ls_colors_follow(const struct ls_colors *colors);

/** Frees them. */
void ls_colors_free(struct ls_colors *colors);

#endif
