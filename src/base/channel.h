/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages between processes, over a socket. */
#ifndef BW_BASE_CHANNEL_H
#define BW_BASE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

/** Sends all bytes. False if the other process has closed its end, without a signal. */
bool bw_channel_send(int channel, const void *bytes, size_t length);

/** Receives exactly `length` bytes. False if the other process has closed its end before. */
bool bw_channel_receive(int channel, void *bytes, size_t length);

#endif
