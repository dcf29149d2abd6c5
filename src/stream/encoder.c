/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Encoding of send streams. */
#include "stream/encoder.h"

#include "base/crc32c.h"

void bw_stream_begin(struct bw_buffer *to, unsigned version)
{
    const struct bw_stream_header header = {BW_STREAM_MAGIC, bw_put32(version)};
    bw_buffer_append(to, &header, sizeof header);
}

size_t bw_command_begin(struct bw_buffer *to, enum bw_send_command command)
{
    const struct bw_command_header header = {.command = bw_put16((uint16_t)command)};
    size_t at = to->length;
    bw_buffer_append(to, &header, sizeof header);
    return at;
}

void bw_attribute_add(struct bw_buffer *to, enum bw_send_attribute type, const void *bytes,
                      size_t length)
{
    const struct bw_attribute_header header = {bw_put16((uint16_t)type),
                                               bw_put16((uint16_t)length)};
    bw_buffer_append(to, &header, sizeof header);
    bw_buffer_append(to, bytes, length);
}

void bw_attribute_add_number(struct bw_buffer *to, enum bw_send_attribute type, uint64_t value)
{
    const bw_le64 bytes = bw_put64(value);
    bw_attribute_add(to, type, &bytes, sizeof bytes);
}

void bw_attribute_add_number32(struct bw_buffer *to, enum bw_send_attribute type, uint32_t value)
{
    const bw_le32 bytes = bw_put32(value);
    bw_attribute_add(to, type, &bytes, sizeof bytes);
}

void bw_attribute_add_time(struct bw_buffer *to, enum bw_send_attribute type,
                           const struct timespec *time)
{
    const struct bw_stream_time bytes = {bw_put64((uint64_t)time->tv_sec),
                                         bw_put32((uint32_t)time->tv_nsec)};
    bw_attribute_add(to, type, &bytes, sizeof bytes);
}

size_t bw_data_attribute_begin(struct bw_buffer *to, unsigned version)
{
    const struct bw_attribute_header header = {.type = bw_put16(BW_ATTRIBUTE_DATA)};
    size_t at = to->length;
    bw_buffer_append(to, &header, version >= 2 ? sizeof header.type : sizeof header);
    return at;
}

void bw_data_attribute_end(struct bw_buffer *to, size_t at, unsigned version)
{
    if (version >= 2 || to->failed)
        return;
    struct bw_attribute_header *header = (void *)(to->data + at);
    header->length = bw_put16((uint16_t)(to->length - at - sizeof *header));
}

void bw_command_end(struct bw_buffer *to, size_t at)
{
    if (to->failed)
        return;
    struct bw_command_header *header = (void *)(to->data + at);
    const size_t length = to->length - at;
    header->length = bw_put32((uint32_t)(length - sizeof *header));
    header->crc = bw_put32(bw_crc32c(0, header, length));
}
