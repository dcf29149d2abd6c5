/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hashes of whole files, as sha256sum(1) and its like print them. Not the checksums of the format.
 */
#ifndef BW_EXPORT_HASH_H
#define BW_EXPORT_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

/** The preferred ones come first: a list with several kinds of hashes is compared by that. */
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

/** Their names ("sha256"), and after the last, NULL. */
extern const char *const bw_hash_names[];
/** Their names in lines as `sha256sum --tag` writes them ("SHA256"). */
extern const char *const bw_hash_tags[];

/** Digits of the longest, and with a NUL. */
enum { BW_HASH_DIGITS = 128, BW_HASH_TEXT = BW_HASH_DIGITS + 1 };

/** A hash under way. One thread at a time may use it. */
struct bw_hash;

/** How many digits a hash has. */
size_t bw_hash_digits(enum bw_hash_algorithm algorithm);

/** To be called once before threads make hashes. */
void bw_hash_prepare(void);

/** Makes a hash, begun. BW_ERROR_UNSUPPORTED if the system forbids the algorithm. */
struct bw_error *bw_hash_create(enum bw_hash_algorithm algorithm, struct bw_hash **result);
/** Frees it; NULL is allowed. */
void bw_hash_destroy(struct bw_hash *hash);

/** Starts over. */
void bw_hash_begin(struct bw_hash *hash);
/** Adds bytes. */
void bw_hash_add(struct bw_hash *hash, const void *bytes, size_t length);
/** Adds zeros: a hole. */
void bw_hash_add_zeros(struct bw_hash *hash, uint64_t length);
/** The hash of all that was added, as lower-case hexadecimal digits. */
void bw_hash_end(struct bw_hash *hash, char text[static BW_HASH_TEXT]);

#endif
