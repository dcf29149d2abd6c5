/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process that makes files which cannot be opened. Symbolic links, special files and directories
 * without permissions cannot be opened, so the system calls that restore their attributes use a
 * path or an O_PATH descriptor, which exists for any file. A confined process must not make such
 * calls, because an attacker could change any file of the user with them. Instead, it sends orders
 * to a maker: a process that never reads the image, and applies the rules of target.h to each
 * order.
 */
#ifndef BW_EXPORT_TARGET_MAKER_H
#define BW_EXPORT_TARGET_MAKER_H

#include "export/target_files.h"

/** An order. */
struct bw_target_order {
    const char *path; /**< relative to the folder */
    size_t length;    /**< in bytes */
    const char *link; /**< target of a symbolic link; otherwise NULL */
    /** The type of the inode determines what to make: a symbolic link or a special file, with these
     * attributes; or a directory, whose attributes are restored later. NULL: a directory with
     * unknown attributes. */
    const struct bw_target_attributes *attributes;
};

/** The confined process's connection to the maker. */
struct bw_target_maker {
    struct bw_target *target; /**< its options receive errors of attributes */
    int channel;              /**< socket to the maker; -1: the process makes everything itself */
    /** Receives the error of a failed order of bw_target_make_later(); consumes it. The call that
     * detects the failure returns the result of this function. */
    struct bw_error *(*failed)(void *context, struct bw_error *error);
    void *context;                  /**< passed to failed */
    struct bw_buffer text, answers; /**< orders to send, and replies received */
    uint32_t waiting, sent; /**< number of orders not sent yet, and of orders without a reply */
};

/**
 * Makes a symbolic link, a special file or a directory, like bw_target_make_symlink(),
 * bw_target_make_node() and bw_target_make_directory(), and restores the attributes of the first
 * two. `*ours` is set for a directory. BW_ERROR_SYSTEM with EIO if the maker has ended.
 */
struct bw_error *bw_target_make(struct bw_target_maker *maker, const struct bw_target_order *order,
                                bool *ours);

/** Makes a symbolic link in an existing directory, without waiting for the result: several orders
 * are sent at once. Without a maker, returns the result of the order. */
struct bw_error *bw_target_make_later(struct bw_target_maker *maker,
                                      const struct bw_target_order *order);

/** Waits for all pending orders. */
struct bw_error *bw_target_make_rest(struct bw_target_maker *maker);

/** Frees its memory and closes its channel. */
void bw_target_maker_close(struct bw_target_maker *maker);

/** The maker: executes the orders from a channel, until its end or the first invalid message.
 * Replaces the function `missed` in the target's options. */
void bw_target_serve_orders(struct bw_target *target, int channel);

#endif
