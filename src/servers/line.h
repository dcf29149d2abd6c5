/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A line: one handle of libnbd, from connecting to what the server says of the image. Messages of
 * failures are views: valid until libnbd is called again in the same thread. */
#ifndef BW_SERVERS_LINE_H
#define BW_SERVERS_LINE_H

#include <poll.h>

#include "servers/connection.h"

struct nbd_handle;
struct bw_libnbd;

/** What libnbd says of its last failure in this thread. */
const char *bw_line_error(const struct bw_libnbd *nbd);

/** Begins to connect: to a socket, or by a URI (NULL: by the socket). The handle is the caller's in
 * any case, to be ended with nbd_close(). NULL, or why that is not possible. */
const char *bw_line_begin(const struct bw_libnbd *nbd, const char *uri, const char *socket,
                          struct nbd_handle **handle);

/** What to wait for. */
struct pollfd bw_line_poll(const struct bw_libnbd *nbd, struct nbd_handle *handle);

/** Lets libnbd do what its socket is ready for, as poll() tells; false if the line has ended. */
bool bw_line_advance(const struct bw_libnbd *nbd, struct nbd_handle *handle, int ready);

/** What bw_line_await() returns, as this pointer, if the time is over. */
extern const char bw_line_silent[];

/** Waits until the server has described the image, at most for so many milliseconds (0: without a
 * limit). NULL, or why it has not. */
const char *bw_line_await(const struct bw_libnbd *nbd, struct nbd_handle *handle, unsigned timeout);

/** What it has told. NULL, or what is wrong with that. */
const char *bw_line_facts(const struct bw_libnbd *nbd, struct nbd_handle *handle,
                          struct bw_connection_facts *facts);

#endif
