/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands of a send stream, appended to a buffer:
 *
 *     size_t at = bw_command_begin(buffer, BW_COMMAND_CHMOD);
 *     bw_attribute_add(buffer, BW_ATTRIBUTE_PATH, path, length);
 *     bw_attribute_add_number(buffer, BW_ATTRIBUTE_MODE, mode);
 *     bw_command_end(buffer, at);
 *
 * A failed allocation is remembered by the buffer.
 */
#ifndef BW_STREAM_ENCODER_H
#define BW_STREAM_ENCODER_H

#include <time.h>

#include "base/buffer.h"
#include "stream/commands.h"

/** The bytes of an attribute cannot be more. */
enum { BW_ATTRIBUTE_MAX = UINT16_MAX };

/** Appends the header of a stream. */
void bw_stream_begin(struct bw_buffer *to, unsigned version);

/** Begins a command; returns where, for bw_command_end(). */
size_t bw_command_begin(struct bw_buffer *to, enum bw_send_command command);

/** Adds an attribute of at most BW_ATTRIBUTE_MAX bytes. */
void bw_attribute_add(struct bw_buffer *to, enum bw_send_attribute type, const void *bytes,
                      size_t length);

/** Adds an attribute of 8 bytes. */
void bw_attribute_add_number(struct bw_buffer *to, enum bw_send_attribute type, uint64_t value);

/** Adds an attribute of 4 bytes. */
void bw_attribute_add_number32(struct bw_buffer *to, enum bw_send_attribute type, uint32_t value);

void bw_attribute_add_time(struct bw_buffer *to, enum bw_send_attribute type,
                           const struct timespec *time);

/** Begins DATA, which must be the last attribute; its bytes are appended to the buffer after this.
 * Returns where, for bw_data_attribute_end(). */
size_t bw_data_attribute_begin(struct bw_buffer *to, unsigned version);

/** Ends it. */
void bw_data_attribute_end(struct bw_buffer *to, size_t at, unsigned version);

/** Ends a command: sets its length and its checksum. */
void bw_command_end(struct bw_buffer *to, size_t at);

#endif
