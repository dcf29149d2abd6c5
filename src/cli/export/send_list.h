/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Subvolumes that are sent one after the other, each as a difference from its nearest relative. */
#ifndef BW_CLI_EXPORT_SEND_LIST_H
#define BW_CLI_EXPORT_SEND_LIST_H

#include "base/vector.h"
#include "btrfs-walk/stream.h"

/** A subvolume of the list. */
struct cmd_sent {
    struct bw_send_side side;
    struct bw_fs *past; /**< its file system, if it is in an older generation; otherwise NULL */
    struct bw_subvolume_info info;
    uint8_t uuid[BW_UUID_SIZE]; /**< that a stream has given it */
    bool is_there;              /**< the receiver has it */
    uint64_t size;              /**< sum of the sizes of its regular files, once it was sent */
    char *name;                 /**< its name for the receiver; NULL: its own. The list frees it */
};

BW_VECTOR(cmd_sent_list, struct cmd_sent);

/** The list. All zeros is empty. */
struct cmd_send_list {
    struct cmd_sent_list list;
};

/** Adds a subvolume. `past`, which may be NULL, is closed with the list, even after an error. */
struct bw_error *cmd_send_list_add(struct cmd_send_list *list, struct bw_fs *fs,
                                   const struct bw_subvolume *subvolume, struct bw_fs *past);

/** Adds all snapshots of the subvolumes in the list, and the subvolumes inside them. */
struct bw_error *cmd_send_list_add_relatives(struct cmd_send_list *list, struct bw_fs *fs);

/** Sorts by the transaction of the last change: snapshots precede later states of their origin. */
void cmd_send_list_sort(struct cmd_send_list *list);

/** The nearest relative of a subvolume that the receiver has; NULL: none. */
const struct cmd_sent *cmd_send_list_parent(const struct cmd_send_list *list, size_t number);

/** Sends a subvolume with these options. `parent` may be NULL; `share`: what the receiver has may
 * be cloned. */
struct bw_error *cmd_send_list_send(struct cmd_send_list *list, size_t number,
                                    const struct bw_send_options *options,
                                    const struct cmd_sent *parent, bool share);

/** Frees the list; returns whether there was damage in the older generations. */
bool cmd_send_list_free(struct cmd_send_list *list);

#endif
