/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What was deleted: files, directories and subvolumes that older states of a file system hold, and
 * the present one lacks. Two states that follow one another are compared by what they do not share,
 * so that only what has changed between them is read.
 *
 * A file is known by its subvolume, its inode number and the generation of its inode. A file that
 * was renamed is therefore not deleted, and one that another file has replaced is.
 */
#ifndef BTRFS_WALK_DELETED_H
#define BTRFS_WALK_DELETED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "btrfs-walk/file.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/selection.h"
#include "btrfs-walk/walk.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Which states to compare, and what is wanted of them. */
struct bw_deleted_options {
    size_t struct_size; /**< sizeof(struct bw_deleted_options) */
    /** How the present file system was opened. Its functions, probes and state are not used; what
     * it points to must outlive the search. */
    const struct bw_fs_options *images;
    /** The older states, the newest first; NULL: those that bw_past_open() finds by itself. */
    const struct bw_state_choice *states;
    size_t state_count;
    uint64_t since;   /**< no states before this generation; 0: all */
    const char *path; /**< only what had this path, or one below; NULL: everything */
    /** Conditions that entries must meet; NULL: none. */
    const struct bw_selection *selection;
    bool has_maxdepth; /**< whether `maxdepth` is used */
    unsigned maxdepth; /**< how many directories below `path`, or the top, entries may be */
    unsigned mindepth; /**< and must be */
    /** Told of each state that is about to be opened: its number, from 1 on, and of how many. May
     * be NULL. */
    void (*progress)(void *context, size_t number, size_t count);
    void *context; /**< of `progress` */
};

/** A state that held something. */
struct bw_deleted_state {
    struct bw_fs *fs;     /**< open until the next one is asked for */
    uint64_t generation;  /**< the transaction that committed it */
    uint64_t tree_root;   /**< logical address of the root of its root tree */
    struct timespec time; /**< of the last change in a subvolume of it */
    uint64_t lost;        /**< messages of damage so far: in what is lost of it, more may have been
                               that is deleted now */
    bool is_present;      /**< it is the present one: what its entries lead to is deleted, but
                               not yet gone */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** A search. One thread at a time may use it. */
struct bw_deleted;

/** Starts a search below a file system that is open, which must outlive it. The states are opened
 * one after the other, the newest first. BW_ERROR_USAGE if the options are wrong. */
struct bw_error *bw_deleted_open(struct bw_fs *present, const struct bw_deleted_options *options,
                                 struct bw_deleted **deleted);

/**
 * Goes on to the next state. States that cannot be opened, or do not differ from the one before,
 * are passed over. The last one is the present state, for files that were open when they were
 * deleted, and for subvolumes that are not yet gone, unless an older state held them. `*got` is
 * false after that. Fails only if memory runs out.
 */
struct bw_error *bw_deleted_next(struct bw_deleted *deleted, struct bw_deleted_state *state,
                                 bool *got);

/**
 * Hands out what was last held by the present state of the search, an entry for each of its names,
 * by subvolume and inode number: the top directory of a subvolume stands for a subvolume as a
 * whole. Only `types` (enum bw_walk_types; 0: all). A NUL follows the path of each entry. What has
 * no name any more is called "#INODE", at the top of its subvolume; a subvolume without a name
 * "#ID", at the top of all.
 *
 * What is lost is reported to nobody. Returns the error of `visit`, or one of memory. May be called
 * again.
 */
struct bw_error *bw_deleted_visit(struct bw_deleted *deleted, unsigned types,
                                  bw_entry_visitor *visit, void *context);

/** Ends a search and closes its states; NULL is allowed. */
void bw_deleted_close(struct bw_deleted *deleted);

/** What is left of the contents of a file. */
enum bw_left_kind {
    BW_LEFT_PROVEN,   /**< all of it: it agrees with the checksums of its state */
    BW_LEFT_UNPROVEN, /**< it has no checksums: whatever lies there now */
    BW_LEFT_PARTLY,   /**< ranges of it are lost */
    BW_LEFT_LOST,     /**< nothing but holes is left */
};

/** "proven", "unproven", "partly" or "lost". */
const char *bw_left_name(enum bw_left_kind kind);

/** How many ranges are kept. */
enum { BW_LEFT_RANGES = 16 };

/** What was read of a file. All zeros: nothing yet. */
struct bw_left {
    uint64_t good, bad; /**< bytes that could, and could not, be read and verified */
    uint64_t zeros;     /**< bytes of holes */
    uint64_t in_tree; /**< of the good ones: those that lie in tree blocks, which have checksums */
    size_t count;     /**< of the ranges that are lost, of which the first are kept: */
    struct {
        uint64_t offset, length;
    } ranges[BW_LEFT_RANGES];
};

/** Takes a part of a file, in order. */
void bw_left_take(struct bw_left *left, const struct bw_data_part *part);

/** What that comes to. `unchecked`: data that do not lie in the tree have no checksums
 * (BW_INODE_NODATASUM). */
enum bw_left_kind bw_left_kind(const struct bw_left *left, bool unchecked);

#ifdef __cplusplus
}
#endif
#endif
