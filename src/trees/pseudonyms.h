/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pseudonyms: other names of the same length and with the same hash, so that the keys of directory
 * entries, which contain hashes of names, stay valid.
 *
 * A key selects a permutation of all names with the same length and hash. Different names get
 * different pseudonyms, and the same name always gets the same one. Without the key, names cannot
 * be computed from their pseudonyms, but guessed names can be confirmed by their hash.
 */
#ifndef BW_TREES_PSEUDONYMS_H
#define BW_TREES_PSEUDONYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The seed of the hash of names. Source: btrfs_name_hash() in the kernel's fs/btrfs/ctree.h. */
#define BW_NAME_SEED (~UINT32_C(1))

enum {
    BW_PSEUDONYM_KEY = 32,
    /** Names up to this length have no pseudonyms: no other name has the same hash. */
    BW_PSEUDONYM_NONE = 4,
};

struct bw_pseudonyms {
    uint8_t key[BW_PSEUDONYM_KEY];
};

/**
 * Replaces a name of up to 255 bytes by its pseudonym; false if it has none and is unchanged.
 * `seed`: of the hash, which is a CRC-32C; for the end of a name, the CRC-32C of the bytes before
 * it. Printable ASCII stays printable ASCII, except that some names of 5 bytes get other bytes. The
 * checksum SHA-256 must have been prepared.
 */
bool bw_pseudonym(const struct bw_pseudonyms *names, uint32_t seed, uint8_t *name, size_t length);

#endif
