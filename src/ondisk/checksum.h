/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The four checksums of btrfs behind one interface, and the name hash of directories.
 * Source of the numbers: enum btrfs_csum_type in the kernel's uapi/linux/btrfs_tree.h.
 */
#ifndef BW_ONDISK_CHECKSUM_H
#define BW_ONDISK_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/fs.h"

/** How many checksums there are. */
enum { BW_CHECKSUM_TYPES = BW_CHECKSUM_BLAKE2B + 1 };

/** Whether the program supports `type`, the checksum type in a superblock. */
bool bw_checksum_known(unsigned type);

/**
 * Sets up the library that computes a checksum, unless that is done already. Decoding a superblock
 * does it, before any thread starts. BW_ERROR_SYSTEM if no file descriptor is free, which the
 * library would not survive.
 */
struct bw_error *bw_checksum_prepare(enum bw_checksum_type type);

/** Size of a checksum in bytes: 4, 8, 32 or 32. `type` must be known. */
size_t bw_checksum_size(enum bw_checksum_type type);

/** Computes the checksum of `length` bytes, in the byte order on disk. `result` has room for 32
 * bytes; the unused ones become zero. */
void bw_checksum_compute(enum bw_checksum_type type, const void *bytes, size_t length,
                         uint8_t result[32]);

/** The state of a checksum of type SHA-256 or BLAKE2b after the bytes that many others begin with;
 * NULL for other types, or if memory ran out. The caller calls bw_checksum_end(). */
struct gcry_md_handle *bw_checksum_begin(enum bw_checksum_type type);

/** Adds bytes to the beginning. Multiples of 128 bytes are hashed only here. */
void bw_checksum_continue(struct gcry_md_handle *beginning, const void *bytes, size_t length);

/** Like bw_checksum_compute(), for the beginning and `length` bytes after it; without a beginning
 * if that is NULL. False if memory ran out. */
bool bw_checksum_finish(enum bw_checksum_type type, struct gcry_md_handle *beginning,
                        const void *bytes, size_t length, uint8_t result[32]);

void bw_checksum_end(struct gcry_md_handle *beginning);

/** Whether the checksum in the first bytes of a metadata block matches the rest of it (byte 32 to
 * the end).
 */
bool bw_checksum_matches_block(enum bw_checksum_type type, const uint8_t *block, size_t length);

/** Sets of types of checksums, with the bit 1 << type for each. */
#define BW_CHECKSUM_BIT(type) (1u << (type))
#define BW_ALL_CHECKSUMS      (BW_CHECKSUM_BIT(BW_CHECKSUM_TYPES) - 1)

/** The same for a block whose checksum may also be of the types in the set `others`. btrfs-image
 * writes a CRC-32C into every tree block and into restored superblocks, whichever type the
 * superblock names; and while btrfstune changes the type, blocks have either of two types. */
bool bw_checksum_accepts_block(enum bw_checksum_type type, unsigned others, const uint8_t *block,
                               size_t length);

/** The hash that keys DIR_ITEM by name: crc32c seeded with -2, not inverted at the end. */
uint32_t bw_name_hash(const void *name, size_t length);

/** The hash that keys INODE_EXTREF by directory and name. */
uint32_t bw_extref_hash(uint64_t directory, const void *name, size_t length);

/** The hash that keys EXTENT_DATA_REF, and by which those inside an extent item are sorted. Source:
 * hash_extent_data_ref() in the kernel's fs/btrfs/extent-tree.c. */
uint64_t bw_data_ref_hash(uint64_t root, uint64_t objectid, uint64_t offset);

#endif
