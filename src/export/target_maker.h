/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process that makes what only a path can name. Symbolic links, special files and directories
 * that are closed to the user cannot be opened, so the system calls that restore their attributes
 * take a path, or an O_PATH descriptor, which any file can have. A confined process must not make
 * such calls: a mistake in it could change any file of the user. It sends orders to a maker
 * instead, a process that has not read a byte of the image and applies the rules of target.h to
 * each order.
 */
#ifndef BW_EXPORT_TARGET_MAKER_H
#define BW_EXPORT_TARGET_MAKER_H

#include "export/target.h"

/** What to make. */
struct bw_target_order {
    const char *path; /**< relative to the folder */
    size_t length;    /**< bytes of it */
    const char *link; /**< target of a symbolic link; otherwise NULL */
    /** The inode's type decides what is made: a symbolic link or a special file, which gets these
     * attributes, or a directory, which gets none yet. NULL: a directory of which nothing is
     * known. */
    const struct bw_target_attributes *attributes;
};

/** The side of the confined process. */
struct bw_target_maker {
    struct bw_target *target; /**< its options take what could not be restored */
    int channel; /**< socket of the process that makes things; -1: the caller does it itself */
    /** Takes why an order of bw_target_make_later() failed; takes the error. What it returns ends
     * the call that learns of the failure. */
    struct bw_error *(*failed)(void *context, struct bw_error *error);
    void *context;                  /**< passed to failed */
    struct bw_buffer text, answers; /**< orders that wait to be sent; answers to those before */
    uint32_t waiting, sent;         /**< so many of them */
};

/**
 * Makes a symbolic link, a special file or a directory, as bw_target_make_symlink(),
 * bw_target_make_node() and bw_target_make_directory() do, and restores the attributes of the first
 * two. `*ours` is set for a directory. BW_ERROR_SYSTEM with EIO if the other process is gone.
 */
struct bw_error *bw_target_make(struct bw_target_maker *maker, const struct bw_target_order *order,
                                bool *ours);

/** The same for a symbolic link that nothing has to wait for: several are sent at once. Its
 * directory must be there. If the caller does it itself, the result is that of the order. */
struct bw_error *bw_target_make_later(struct bw_target_maker *maker,
                                      const struct bw_target_order *order);

/** Waits for all of these. */
struct bw_error *bw_target_make_rest(struct bw_target_maker *maker);

/** Frees its memory and closes its channel. */
void bw_target_maker_close(struct bw_target_maker *maker);

/** The other side: carries out the orders that arrive at a channel, until its end or the first
 * message that is no order. The function `missed` of the target's options is replaced. */
void bw_target_serve_orders(struct bw_target *target, int channel);

#endif
