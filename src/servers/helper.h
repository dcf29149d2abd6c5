/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Helper programs: NBD servers for one image each, which run as children. A helper gets its socket
 * as services of systemd do (LISTEN_FDS), in a directory that only its user can enter. It ends when
 * it is stopped, or when this process has ended for any reason.
 */
#ifndef BW_SERVERS_HELPER_H
#define BW_SERVERS_HELPER_H

#include "btrfs-walk/error.h"

struct bw_helper;

/** Starts a program, given by its path, with arguments that end with NULL; the first is its name.
 * Whether it can serve the image turns out when it is connected to. BW_ERROR_SYSTEM. */
struct bw_error *bw_helper_start(const char *path, const char *const *arguments,
                                 struct bw_helper **helper);

/** Ends it; NULL is allowed. */
void bw_helper_stop(struct bw_helper *helper);

/** The path of its socket. */
const char *bw_helper_socket(const struct bw_helper *helper);

/** An error for an image that it cannot serve: with the helper's own message, or else `why`. */
struct bw_error *bw_helper_add_error(const struct bw_helper *helper, const char *image,
                                     const char *why);

#endif
