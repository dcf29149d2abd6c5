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

typedef struct {
    uint8_t bytes[2];
} bw_le16;
typedef struct {
    uint8_t bytes[4];
} bw_le32;
typedef struct {
    uint8_t bytes[8];
} bw_le64;

static inline uint16_t bw_get16(bw_le16 value)
{
    uint16_t raw;
    memcpy(&raw, value.bytes, sizeof raw);
    return le16toh(raw);
}

static inline uint32_t bw_get32(bw_le32 value)
{
    uint32_t raw;
    memcpy(&raw, value.bytes, sizeof raw);
    return le32toh(raw);
}

static inline uint64_t bw_get64(bw_le64 value)
{
    uint64_t raw;
    memcpy(&raw, value.bytes, sizeof raw);
    return le64toh(raw);
}

static inline bw_le16 bw_put16(uint16_t value)
{
    bw_le16 result;
    value = htole16(value);
    memcpy(result.bytes, &value, sizeof value);
    return result;
}

static inline bw_le32 bw_put32(uint32_t value)
{
    bw_le32 result;
    value = htole32(value);
    memcpy(result.bytes, &value, sizeof value);
    return result;
}

static inline bw_le64 bw_put64(uint64_t value)
{
    bw_le64 result;
    value = htole64(value);
    memcpy(result.bytes, &value, sizeof value);
    return result;
}

typedef struct {
    uint8_t bytes[2];
} bw_be16;
typedef struct {
    uint8_t bytes[4];
} bw_be32;
typedef struct {
    uint8_t bytes[8];
} bw_be64;

static inline uint16_t bw_get_be16(bw_be16 value)
{
    uint16_t raw;
    memcpy(&raw, value.bytes, sizeof raw);
    return be16toh(raw);
}

static inline uint32_t bw_get_be32(bw_be32 value)
{
    uint32_t raw;
    memcpy(&raw, value.bytes, sizeof raw);
    return be32toh(raw);
}

static inline uint64_t bw_get_be64(bw_be64 value)
{
    uint64_t raw;
    memcpy(&raw, value.bytes, sizeof raw);
    return be64toh(raw);
}

static inline bw_be16 bw_put_be16(uint16_t value)
{
    bw_be16 result;
    value = htobe16(value);
    memcpy(result.bytes, &value, sizeof value);
    return result;
}

static inline bw_be32 bw_put_be32(uint32_t value)
{
    bw_be32 result;
    value = htobe32(value);
    memcpy(result.bytes, &value, sizeof value);
    return result;
}

static inline bw_be64 bw_put_be64(uint64_t value)
{
    bw_be64 result;
    value = htobe64(value);
    memcpy(result.bytes, &value, sizeof value);
    return result;
}

#endif
