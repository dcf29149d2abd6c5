/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Subvolumes that are sent one after the other, each as a difference from its nearest relative that
 * the receiver has: the output of `send`, and the input of an extraction of whole subvolumes.
 */
#ifndef BW_EXPORT_SEND_LIST_H
#define BW_EXPORT_SEND_LIST_H

#include "base/vector.h"
#include "btrfs-walk/record.h"
#include "btrfs-walk/stream.h"

/** A subvolume of the list. */
struct bw_sent {
    struct bw_send_side side;
    struct bw_fs *past; /**< its file system, if it is in an older generation; otherwise NULL */
    struct bw_subvolume_info info;
    const char *reason;         /**< why streams give it a new UUID; NULL: they have its own */
    uint8_t uuid[BW_UUID_SIZE]; /**< that a stream has given it */
    bool is_there;              /**< the receiver has it */
    uint64_t size;              /**< sum of the sizes of its regular files, once it was sent */
    char *name;                 /**< its name for the receiver; NULL: its own. The list frees it */
    char *place; /**< where the receiver puts it in the end; may be NULL. The list frees it */
};

BW_VECTOR(bw_sent_list, struct bw_sent);

/** The list. All zeros is empty. */
struct bw_send_list {
    struct bw_sent_list list; /**< the subvolumes to send, then those that the receiver has */
    size_t send_count;        /**< number of subvolumes to send */
};

/** Adds a subvolume. `past`, which may be NULL, is closed with the list, even after an error. */
struct bw_error *bw_send_list_add(struct bw_send_list *list, struct bw_fs *fs,
                                  const struct bw_subvolume *subvolume, struct bw_fs *past);

/** Adds a parent or clone source, which the receiver finds by its UUID. BW_ERROR_USAGE if it may
 * have other contents under this UUID, unless `force`: the result would be wrong without an error.
 */
struct bw_error *bw_send_list_add_base(struct bw_send_list *list, struct bw_fs *fs,
                                       const struct bw_subvolume *subvolume, struct bw_fs *past,
                                       bool force);

/** Adds all snapshots of the subvolumes in the list, and the subvolumes inside them. */
struct bw_error *bw_send_list_add_relatives(struct bw_send_list *list, struct bw_fs *fs);

/** Gives names to subvolumes whose own names are not unique, such as Snapper's snapshots: their
 * paths, with '-' in place of '/'. Receivers make all subvolumes in one folder. */
struct bw_error *bw_send_list_name(struct bw_send_list *list);

/** The name that a receiver would use; the top-level subvolume has none of its own. */
struct bw_bytes bw_sent_name(const struct bw_sent *sent);

/** Sorts by the transaction of the last change: snapshots precede later states of their origin. */
void bw_send_list_sort(struct bw_send_list *list);

/** The nearest relative of a subvolume that the receiver has; NULL: none. */
const struct bw_sent *bw_send_list_parent(const struct bw_send_list *list, size_t number);

/** Sends a subvolume with these options. `parent` may be NULL; `share`: what the receiver has may
 * be cloned. */
struct bw_error *bw_send_list_send(struct bw_send_list *list, size_t number,
                                   const struct bw_send_options *options,
                                   const struct bw_sent *parent, bool share);

/** Frees the list; returns whether there was damage in the older generations. */
bool bw_send_list_free(struct bw_send_list *list);

#endif
