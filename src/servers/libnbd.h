/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libnbd, as servers/connection and servers/line use it. It is loaded when the first server is
 * connected to, and not linked: with GnuTLS and all that belongs to it, it would take three times
 * as long to start the program as all other libraries together.
 */
#ifndef BW_SERVERS_LIBNBD_H
#define BW_SERVERS_LIBNBD_H

#include <libnbd.h>

#include "btrfs-walk/error.h"

/** The functions, named as in libnbd but for the nbd_ in front. */
#define BW_LIBNBD_FUNCTIONS(FUNCTION) \
    FUNCTION(aio_connect_unix)        \
    FUNCTION(aio_connect_uri)         \
    FUNCTION(aio_disconnect)          \
    FUNCTION(aio_get_direction)       \
    FUNCTION(aio_get_fd)              \
    FUNCTION(aio_in_flight)           \
    FUNCTION(aio_is_closed)           \
    FUNCTION(aio_is_dead)             \
    FUNCTION(aio_is_processing)       \
    FUNCTION(aio_is_ready)            \
    FUNCTION(aio_notify_read)         \
    FUNCTION(aio_notify_write)        \
    FUNCTION(aio_pread)               \
    FUNCTION(can_multi_conn)          \
    FUNCTION(close)                   \
    FUNCTION(create)                  \
    FUNCTION(get_block_size)          \
    FUNCTION(get_errno)               \
    FUNCTION(get_error)               \
    FUNCTION(get_size)                \
    FUNCTION(set_uri_allow_local_file)

struct bw_libnbd {
#define BW_LIBNBD_MEMBER(name) __typeof__(nbd_##name) *name;
    BW_LIBNBD_FUNCTIONS(BW_LIBNBD_MEMBER)
#undef BW_LIBNBD_MEMBER
};

/** Loads it, or finds that it is loaded; it stays so. BW_ERROR_SYSTEM: it is not there, or lacks a
 * function. */
struct bw_error *bw_libnbd_load(struct bw_libnbd *nbd);

#endif
