/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hashes of whole files, as printed by sha256sum(1) and similar programs. Unrelated to the
 * checksums of btrfs. */
#ifndef BW_BASE_HASH_H
#define BW_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

/** Algorithms, the preferred ones first: if a list contains several kinds of hashes, only the most
 * preferred kind is compared. */
enum bw_hash_algorithm {
    BW_HASH_SHA256,
    BW_HASH_SHA512,
    BW_HASH_SHA384,
    BW_HASH_BLAKE2B, /**< BLAKE2b with 512 bits */
    BW_HASH_SHA1,
    BW_HASH_MD5,
    BW_HASH_XXH64,
    BW_HASH_ALGORITHMS,
};

/** Names of algorithms ("sha256"); ends with NULL. */
extern const char *const bw_hash_names[];
/** Names in lines of `sha256sum --tag` ("SHA256"). */
extern const char *const bw_hash_tags[];

/** Digits of the longest hash, and with a NUL. */
enum { BW_HASH_DIGITS = 128, BW_HASH_TEXT = BW_HASH_DIGITS + 1 };

/** A hash that is being computed. Only one thread at a time may use it. */
struct bw_hash;

/** The number of digits of a hash. */
size_t bw_hash_digits(enum bw_hash_algorithm algorithm);

/** Must be called once, before threads create hashes. */
void bw_hash_prepare(void);

/** Creates a hash object, ready for bytes. BW_ERROR_UNSUPPORTED if the system does not permit the
 * algorithm. */
struct bw_error *bw_hash_create(enum bw_hash_algorithm algorithm, struct bw_hash **result);
/** `hash` may be NULL. */
void bw_hash_destroy(struct bw_hash *hash);

/** Starts a new hash with the same object. */
void bw_hash_begin(struct bw_hash *hash);
void bw_hash_add(struct bw_hash *hash, const void *bytes, size_t length);
/** Adds zeros, for a hole. */
void bw_hash_add_zeros(struct bw_hash *hash, uint64_t length);
/** The hash of all added bytes, as lower-case hexadecimal digits. */
void bw_hash_end(struct bw_hash *hash, char text[static BW_HASH_TEXT]);

#endif
