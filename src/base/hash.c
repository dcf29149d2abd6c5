/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hashes of files, by libgcrypt or libxxhash. */
#include "base/hash.h"

#include <gcrypt.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/gcrypt.h"

const char *const bw_hash_names[] = {
    [BW_HASH_SHA256] = "sha256",   [BW_HASH_SHA512] = "sha512", [BW_HASH_SHA384] = "sha384",
    [BW_HASH_BLAKE2B] = "blake2b", [BW_HASH_SHA1] = "sha1",     [BW_HASH_MD5] = "md5",
    [BW_HASH_XXH64] = "xxh64",     [BW_HASH_ALGORITHMS] = NULL,
};

const char *const bw_hash_tags[] = {
    [BW_HASH_SHA256] = "SHA256",   [BW_HASH_SHA512] = "SHA512", [BW_HASH_SHA384] = "SHA384",
    [BW_HASH_BLAKE2B] = "BLAKE2b", [BW_HASH_SHA1] = "SHA1",     [BW_HASH_MD5] = "MD5",
    [BW_HASH_XXH64] = "XXH64",
};

/* The numbers of the algorithms in libgcrypt, which lacks the last one, and their lengths in
 * bytes. */
static const struct {
    int number;
    size_t bytes;
} algorithms[] = {
    [BW_HASH_SHA256] = {GCRY_MD_SHA256, 32},
    [BW_HASH_SHA512] = {GCRY_MD_SHA512, 64},
    [BW_HASH_SHA384] = {GCRY_MD_SHA384, 48},
    [BW_HASH_BLAKE2B] = {GCRY_MD_BLAKE2B_512, 64},
    [BW_HASH_SHA1] = {GCRY_MD_SHA1, 20},
    [BW_HASH_MD5] = {GCRY_MD_MD5, 16},
    [BW_HASH_XXH64] = {0, 8},
};

struct bw_hash {
    int number;
    gcry_md_hd_t gcrypt; /* NULL for xxh64 */
    XXH64_state_t *xxhash;
};

size_t bw_hash_digits(enum bw_hash_algorithm algorithm)
{
    return 2 * algorithms[algorithm].bytes;
}

void bw_hash_prepare(void)
{
    bw_error_free(bw_gcrypt_prepare()); /* if it fails, bw_hash_create() fails, too */
}

struct bw_error *bw_hash_create(enum bw_hash_algorithm algorithm, struct bw_hash **result)
{
    struct bw_hash *hash = calloc(1, sizeof *hash);
    if (!hash)
        return bw_error_no_memory();
    hash->number = algorithms[algorithm].number;
    struct bw_error *error = NULL;
    if (!hash->number) {
        hash->xxhash = XXH64_createState();
        error = hash->xxhash ? NULL : bw_error_no_memory();
    } else {
        error = bw_gcrypt_prepare();
        gcry_error_t problem = error ? 0 : gcry_md_open(&hash->gcrypt, hash->number, 0);
        if (gcry_err_code(problem) == GPG_ERR_ENOMEM)
            error = bw_error_no_memory();
        else if (problem)
            error = bw_error_create(BW_ERROR_UNSUPPORTED, "%s cannot be computed here: %s",
                                    bw_hash_names[algorithm], gcry_strerror(problem));
    }
    if (error) {
        bw_hash_destroy(hash);
        return error;
    }
    bw_hash_begin(hash);
    *result = hash;
    return NULL;
}

void bw_hash_destroy(struct bw_hash *hash)
{
    if (!hash)
        return;
    gcry_md_close(hash->gcrypt);
    XXH64_freeState(hash->xxhash);
    free(hash);
}

void bw_hash_begin(struct bw_hash *hash)
{
    if (hash->gcrypt)
        gcry_md_reset(hash->gcrypt);
    else
        XXH64_reset(hash->xxhash, 0);
}

void bw_hash_add(struct bw_hash *hash, const void *bytes, size_t length)
{
    if (hash->gcrypt)
        gcry_md_write(hash->gcrypt, bytes, length);
    else
        XXH64_update(hash->xxhash, bytes, length);
}

void bw_hash_add_zeros(struct bw_hash *hash, uint64_t length)
{
    static const uint8_t zeros[32 << 10];
    for (uint64_t step; length; length -= step) {
        step = length < sizeof zeros ? length : sizeof zeros;
        bw_hash_add(hash, zeros, (size_t)step);
    }
}

void bw_hash_end(struct bw_hash *hash, char text[static BW_HASH_TEXT])
{
    struct bw_buffer digits = {.data = text, .capacity = BW_HASH_TEXT, .fixed = true};
    XXH64_canonical_t canonical;
    const uint8_t *bytes = canonical.digest;
    size_t length = sizeof canonical.digest;
    if (hash->gcrypt) {
        length = gcry_md_get_algo_dlen(hash->number);
        bytes = gcry_md_read(hash->gcrypt, hash->number);
    } else {
        XXH64_canonicalFromHash(&canonical, XXH64_digest(hash->xxhash));
    }
    bw_buffer_append_hex(&digits, bytes, length);
    bw_buffer_append_byte(&digits, '\0');
}
