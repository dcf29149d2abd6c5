/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checksums: each comes from the library that does it best; this file only names and sizes them. */
#include "ondisk/checksum.h"

#include <gcrypt.h>
#include <string.h>
#include <xxhash.h>

#include "base/crc32c.h"
#include "base/endian.h"
#include "base/gcrypt.h"
#include "ondisk/disk.h"

static void compute_crc32c(const void *bytes, size_t length, uint8_t *result)
{
    bw_le32 stored = bw_put32(~bw_crc32c(~UINT32_C(0), bytes, length));
    memcpy(result, &stored, sizeof stored);
}

static void compute_xxhash64(const void *bytes, size_t length, uint8_t *result)
{
    bw_le64 stored = bw_put64(XXH64(bytes, length, 0));
    memcpy(result, &stored, sizeof stored);
}

static void compute_sha256(const void *bytes, size_t length, uint8_t *result)
{
    gcry_md_hash_buffer(GCRY_MD_SHA256, result, bytes, length);
}

static void compute_blake2b(const void *bytes, size_t length, uint8_t *result)
{
    gcry_md_hash_buffer(GCRY_MD_BLAKE2B_256, result, bytes, length);
}

static const struct {
    const char *name;
    size_t size;
    int gcrypt; /* the libgcrypt algorithm, or 0 */
    void (*compute)(const void *bytes, size_t length, uint8_t *result);
} checksums[BW_CHECKSUM_TYPES] = {
    [BW_CHECKSUM_CRC32C] = {"crc32c", 4, 0, compute_crc32c},
    [BW_CHECKSUM_XXHASH64] = {"xxhash64", 8, 0, compute_xxhash64},
    [BW_CHECKSUM_SHA256] = {"sha256", 32, GCRY_MD_SHA256, compute_sha256},
    [BW_CHECKSUM_BLAKE2B] = {"blake2b", 32, GCRY_MD_BLAKE2B_256, compute_blake2b},
};

struct bw_error *bw_checksum_prepare(enum bw_checksum_type type)
{
    return type < BW_CHECKSUM_SHA256 ? NULL : bw_gcrypt_prepare();
}

bool bw_checksum_known(unsigned type)
{
    return type < BW_CHECKSUM_TYPES;
}

size_t bw_checksum_size(enum bw_checksum_type type)
{
    return checksums[type].size;
}

const char *bw_checksum_name(enum bw_checksum_type type)
{
    return checksums[type].name;
}

void bw_checksum_compute(enum bw_checksum_type type, const void *bytes, size_t length,
                         uint8_t result[32])
{
    memset(result, 0, BW_CSUM_SIZE);
    checksums[type].compute(bytes, length, result);
}

struct gcry_md_handle *bw_checksum_begin(enum bw_checksum_type type)
{
    gcry_md_hd_t beginning = NULL;
    if (!checksums[type].gcrypt || gcry_md_open(&beginning, checksums[type].gcrypt, 0))
        return NULL;
    return beginning;
}

void bw_checksum_continue(struct gcry_md_handle *beginning, const void *bytes, size_t length)
{
    gcry_md_write(beginning, bytes, length);
}

bool bw_checksum_finish(enum bw_checksum_type type, struct gcry_md_handle *beginning,
                        const void *bytes, size_t length, uint8_t result[32])
{
    gcry_md_hd_t copy;
    if (!beginning) {
        bw_checksum_compute(type, bytes, length, result);
        return true;
    }
    if (gcry_md_copy(&copy, beginning))
        return false;
    gcry_md_write(copy, bytes, length);
    memcpy(result, gcry_md_read(copy, checksums[type].gcrypt), checksums[type].size);
    gcry_md_close(copy);
    return true;
}

void bw_checksum_end(struct gcry_md_handle *beginning)
{
    gcry_md_close(beginning);
}

bool bw_checksum_matches_block(enum bw_checksum_type type, const uint8_t *block, size_t length)
{
    uint8_t computed[BW_CSUM_SIZE];
    bw_checksum_compute(type, block + BW_CSUM_SIZE, length - BW_CSUM_SIZE, computed);
    return memcmp(computed, block, checksums[type].size) == 0;
}

bool bw_checksum_accepts_block(enum bw_checksum_type type, unsigned others, const uint8_t *block,
                               size_t length)
{
    if (bw_checksum_matches_block(type, block, length))
        return true;
    for (unsigned other = 0; other < BW_CHECKSUM_TYPES; other++)
        if (others & BW_CHECKSUM_BIT(other) &&
            bw_checksum_matches_block((enum bw_checksum_type)other, block, length))
            return true;
    return false;
}

uint32_t bw_name_hash(const void *name, size_t length)
{
    return bw_crc32c(~UINT32_C(1), name, length);
}

uint32_t bw_extref_hash(uint64_t directory, const void *name, size_t length)
{
    return bw_crc32c((uint32_t)directory, name, length);
}

uint64_t bw_data_ref_hash(uint64_t root, uint64_t objectid, uint64_t offset)
{
    const bw_le64 high = bw_put64(root), low[] = {bw_put64(objectid), bw_put64(offset)};
    return (uint64_t)bw_crc32c(~UINT32_C(0), &high, sizeof high) << 31 ^
           bw_crc32c(~UINT32_C(0), low, sizeof low);
}
