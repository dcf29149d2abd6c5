/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The private side of btrfs-walk/image.h: the connections that layers read from. */
#ifndef BW_SERVERS_SERVERS_H
#define BW_SERVERS_SERVERS_H

#include "btrfs-walk/image.h"
#include "servers/connection.h"
#include "servers/spool.h"

/** The connection to the server of an image, which belongs to the set; NULL: none. */
struct bw_connection *bw_servers_connection(const struct bw_servers *servers, const char *image);

/** The spool for the contents of a compressed image, which belongs to the set; NULL: none. */
struct bw_spool *bw_servers_spool(const struct bw_servers *servers, const char *image);

#endif
