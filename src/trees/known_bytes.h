/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies only the known bytes of structures: numbers that a table of ondisk/tables.h declares, and
 * texts that the caller replaces. All other bytes of a copy are zeros.
 *
 * Bytes are a number only if its value is possible. Contents of files in place of a number are
 * mostly impossible, because numbers on disk are longer than their values. A single impossible
 * number is damage, and is replaced by the greatest one, which is impossible, too. If a structure
 * has two of them, its item does not have the type that it claims, and is not copied.
 */
#ifndef BW_TREES_KNOWN_BYTES_H
#define BW_TREES_KNOWN_BYTES_H

#include "ondisk/structure.h"

/** The ranges of numbers, and the texts. */
struct bw_known_bytes {
    uint64_t generation;                  /**< the latest one on disk */
    uint32_t sectorsize, checksum_size;   /**< of the file system */
    const uint8_t (*uuids)[BW_UUID_SIZE]; /**< of it and its devices. Others are copied if their
                                               bits show that they are random, or made from a time
                                           */
    size_t uuid_count;
    /** Copies or replaces a name, a value, a bitmap or checksums: `target` are zeros. False: it is
     * none, so that the item is not copied. */
    bool (*copy_text)(void *context, const struct bw_member *member, const uint8_t *source,
                      uint8_t *target, size_t length);
    void *context;
    unsigned impossible; /**< set: impossible numbers of the structure */
};

/** Copies an item to `target`, which are as many zeros; false if it does not have the structure
 * exactly, and nothing is copied. NULL is the structure of unknown items, which are not copied. */
bool bw_known_bytes_of_item(struct bw_known_bytes *known, const struct bw_item *item,
                            const struct bw_structure *structure, uint8_t *target);

/** Copies the members of a structure that is no item; `target` are zeros. */
void bw_known_bytes_of_structure(struct bw_known_bytes *known, const void *source,
                                 const struct bw_structure *structure, void *target);

/** Whether the numbers of a key are possible. */
bool bw_known_key(const struct bw_key *key);

/** Whether bytes are a UUID of the file system, or look like one. */
bool bw_known_uuid(const struct bw_known_bytes *known, const uint8_t *uuid);

/** The known bits, and the lowest unknown one. */
uint64_t bw_known_flags(uint64_t flags, uint64_t known);

#endif
