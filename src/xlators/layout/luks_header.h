/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Headers of LUKS1 and LUKS2: where the data are, how they are encrypted, and the keyslots.
 * Sources: "LUKS1 On-Disk Format Specification" 1.2.3 and "LUKS2 On-Disk Format Specification"
 * 1.1.3 by the cryptsetup project.
 */
#ifndef BW_XLATORS_LAYOUT_LUKS_HEADER_H
#define BW_XLATORS_LAYOUT_LUKS_HEADER_H

#include "graph/wind.h"

enum {
    BW_LUKS_SLOTS = 32,
    BW_LUKS_KEY = 64,     /**< the longest key, in bytes */
    BW_LUKS_SALT = 64,    /**< the longest salt, and the longest digest */
    BW_LUKS_SECTOR = 512, /**< unit of offsets in LUKS1, and of numbers of sectors */
};

/** A cipher by name, such as "aes-xts-plain64". */
struct bw_luks_cipher {
    char text[64];
};

/** A function from a passphrase to a key. */
struct bw_luks_kdf {
    char type[16]; /**< "pbkdf2", "argon2i" or "argon2id" */
    char hash[32]; /**< the hash function of pbkdf2 */
    uint64_t rounds;
    uint64_t memory, threads; /**< parameters of argon2; memory in KiB */
    uint8_t salt[BW_LUKS_SALT];
    size_t salt_length;
};

/** The volume key, encrypted with a key from a passphrase. */
struct bw_luks_slot {
    unsigned number;
    struct bw_luks_kdf kdf;
    uint64_t offset, length;    /**< where the key material is, in bytes */
    struct bw_luks_cipher area; /**< the encryption of the key material */
    size_t area_key, key;       /**< bytes of the key for it, and of the volume key */
    uint64_t stripes;           /**< the key material is that many times as long as the key */
    char split_hash[32];
};

/** A digest that verifies a volume key. */
struct bw_luks_digest {
    struct bw_luks_kdf kdf; /**< pbkdf2 */
    uint8_t value[BW_LUKS_SALT];
    size_t length;
    uint64_t slots; /**< bit i: it is for the keyslot with number i */
};

struct bw_luks_header {
    unsigned version;        /**< 1 or 2 */
    uint64_t offset, length; /**< where the data are; length 0: up to the end of the device */
    uint64_t first_sector;   /**< number of the first sector of the data, for the cipher */
    uint32_t sector_size;
    struct bw_luks_cipher cipher;
    struct bw_luks_slot slots[BW_LUKS_SLOTS];
    size_t slot_count;
    struct bw_luks_digest digests[BW_LUKS_SLOTS];
    size_t digest_count;
    bool is_second; /**< the first copy of the header is damaged */
};

/** Whether a device begins like an encrypted volume. */
bool bw_luks_find(const struct bw_frame *frame, struct bw_xlator *device);

/** Reads the header of a device, or its second copy if the first one is damaged.
 * BW_ERROR_CORRUPT; BW_ERROR_UNSUPPORTED, which names the unsupported feature. */
struct bw_error *bw_luks_header_read(const struct bw_frame *frame, struct bw_xlator *device,
                                     struct bw_luks_header *header);

#endif
