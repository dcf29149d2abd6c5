/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Integers as they lie on disk: little-endian (le), mostly, or big-endian (be). The types are byte
 * arrays, so that a structure made of them has no alignment or padding, may lie anywhere in a
 * buffer, and cannot be used as a number without being converted.
 */
#ifndef BW_BASE_ENDIAN_H
#define BW_BASE_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

/* Defines a type, a function that reads its value, and one that makes it from a value. */
#define BW_DISK_INTEGER(type, value_type, get, to_host, put, to_disk) \
    typedef struct {                                                  \
        uint8_t bytes[sizeof(value_type)];                            \
    } type;                                                           \
                                                                      \
    static inline value_type get(type on_disk)                        \
    {                                                                 \
        value_type value;                                             \
        memcpy(&value, on_disk.bytes, sizeof value);                  \
        return to_host(value);                                        \
    }                                                                 \
                                                                      \
    static inline type put(value_type value)                          \
    {                                                                 \
        type on_disk;                                                 \
        value = to_disk(value);                                       \
        memcpy(on_disk.bytes, &value, sizeof value);                  \
        return on_disk;                                               \
    }

BW_DISK_INTEGER(bw_le16, uint16_t, bw_get16, le16toh, bw_put16, htole16)
BW_DISK_INTEGER(bw_le32, uint32_t, bw_get32, le32toh, bw_put32, htole32)
BW_DISK_INTEGER(bw_le64, uint64_t, bw_get64, le64toh, bw_put64, htole64)
BW_DISK_INTEGER(bw_be16, uint16_t, bw_get_be16, be16toh, bw_put_be16, htobe16)
BW_DISK_INTEGER(bw_be32, uint32_t, bw_get_be32, be32toh, bw_put_be32, htobe32)
BW_DISK_INTEGER(bw_be64, uint64_t, bw_get_be64, be64toh, bw_put_be64, htobe64)

#endif
