/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes that are connected by a socket, and messages between them. */
#ifndef BW_BASE_CHANNEL_H
#define BW_BASE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "btrfs-walk/error.h"

/** Starts a process that has a socket to this one. Returns in both: in the new process, `*child` is
 * 0. BW_ERROR_SYSTEM. */
struct bw_error *bw_channel_fork(int *channel, pid_t *child);

/** Sends all bytes. False if the other process has closed its end, without a signal. */
bool bw_channel_send(int channel, const void *bytes, size_t length);

/** Receives exactly `length` bytes. False if the other process has closed its end before. */
bool bw_channel_receive(int channel, void *bytes, size_t length);

#endif
