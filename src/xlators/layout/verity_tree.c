/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A hash block is verified when it is read, with the hash in the block above it, and then remains
 * in a slot. The next hash of the same block needs no further hash.
 *
 * Source: the documentation of dm-verity in the kernel, and hash areas that veritysetup wrote.
 */
#include "xlators/layout/verity_tree.h"

#include <gcrypt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/endian.h"
#include "base/gcrypt.h"
#include "base/zeros.h"
#include "ondisk/superblock.h"

enum {
    VERSION = 1,
    SMALLEST_BLOCK = 512,
    LARGEST_BLOCK = 64 << 10,
    MEMORY = 4 << 20, /* of all slots */
};

static const char signature[8] = "verity\0";

struct disk_superblock {
    char signature[8];
    bw_le32 version, hash_type;
    uint8_t uuid[16];
    char algorithm[32];
    bw_le32 data_block, hash_block;
    bw_le64 data_blocks;
    bw_le16 salt_length;
    uint8_t padding[6];
    uint8_t salt[BW_VERITY_SALT];
    uint8_t reserved[168];
} __attribute__((packed));

static_assert(sizeof(struct disk_superblock) == 512, "as on disk");

static struct bw_error *read_bytes(const struct bw_frame *frame, struct bw_xlator *device,
                                   uint64_t address, void *buffer, uint32_t length)
{
    const uint64_t size = bw_xlator_size(device);
    struct bw_request request = {
        .kind = BW_REQUEST_RAW, .length = length, .address = address, .buffer = buffer};
    if (address > size || length > size - address)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "%s ends at %" PRIu64 ", before the end of %" PRIu32
                               " bytes at %" PRIu64,
                               bw_xlator_image(device), size, length, address);
    bw_wind(frame, device, &request, 1);
    return request.error;
}

/* The superblock. */

static bool is_block_size(uint32_t size)
{
    return size >= SMALLEST_BLOCK && size <= LARGEST_BLOCK && !(size & (size - 1));
}

static bool read_superblock(const struct bw_frame *frame, struct bw_xlator *device, uint64_t offset,
                            struct disk_superblock *superblock)
{
    BW_AUTO_ERROR struct bw_error *error =
        read_bytes(frame, device, offset, superblock, sizeof *superblock);
    return !error && memcmp(superblock->signature, signature, sizeof signature) == 0 &&
           bw_get32(superblock->version) == VERSION && bw_get32(superblock->hash_type) <= 1 &&
           is_block_size(bw_get32(superblock->data_block)) &&
           is_block_size(bw_get32(superblock->hash_block));
}

bool bw_verity_has_superblock(const struct bw_frame *frame, struct bw_xlator *device,
                              uint64_t offset)
{
    struct disk_superblock superblock;
    return read_superblock(frame, device, offset, &superblock);
}

/* The size of the btrfs that a device begins with; 0: there is none. */
static uint64_t size_of_btrfs(const struct bw_frame *frame, struct bw_xlator *device)
{
    struct bw_superblock superblock;
    uint8_t block[BW_SUPERBLOCK_SIZE];
    BW_AUTO_ERROR struct bw_error *error =
        read_bytes(frame, device, bw_superblock_offset(0), block, sizeof block);
    if (!error)
        error = bw_superblock_decode(block, bw_superblock_offset(0), &superblock);
    return error ? 0 : superblock.device.total_bytes;
}

bool bw_verity_find_after_data(const struct bw_frame *frame, struct bw_xlator *device,
                               uint64_t *offset)
{
    static const uint32_t steps[] = {SMALLEST_BLOCK, 4096, LARGEST_BLOCK, 1 << 20};
    const uint64_t end = size_of_btrfs(frame, device);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (!end || end > INT64_MAX)
            return false;
        *offset = (end + steps[i] - 1) / steps[i] * steps[i];
        if (bw_verity_has_superblock(frame, device, *offset))
            return true;
    }
    return false;
}

/* Hashes whose names differ between the kernel and libgcrypt. */
static int algorithm_of(const char *name)
{
    static const char *const names[][2] = {
        {"rmd160", "ripemd160"},        {"wp512", "whirlpool"},
        {"blake2b-256", "blake2b_256"}, {"blake2b-512", "blake2b_512"},
        {"blake2s-256", "blake2s_256"}, {"streebog256", "stribog256"},
        {"streebog512", "stribog512"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i][0]) == 0)
            return gcry_md_map_name(names[i][1]);
    return gcry_md_map_name(name);
}

static struct bw_error *set_algorithm(struct bw_verity_tree *tree)
{
    BW_TRY(bw_gcrypt_prepare());
    tree->algorithm = algorithm_of(tree->algorithm_name);
    tree->digest = tree->algorithm ? gcry_md_get_algo_dlen(tree->algorithm) : 0;
    return tree->digest >= 4 && tree->digest <= BW_VERITY_DIGEST
               ? NULL
               : bw_error_create(BW_ERROR_UNSUPPORTED, "the hash %s of dm-verity is not known",
                                 tree->algorithm_name);
}

static uint64_t shift_right(uint64_t value, unsigned bits)
{
    return bits < 64 ? value >> bits : 0;
}

/* Places the levels after each other, beginning with the topmost one. */
static struct bw_error *set_levels(struct bw_verity_tree *tree, uint64_t offset)
{
    uint64_t next =
        (offset + sizeof(struct disk_superblock) + tree->hash_block - 1) / tree->hash_block;
    while (1u << (tree->shift + 1) <= tree->hash_block / tree->digest)
        tree->shift++;
    if (!tree->data_blocks || tree->data_blocks > INT64_MAX / tree->data_block)
        return bw_error_create(BW_ERROR_CORRUPT, "dm-verity has %" PRIu64 " data blocks",
                               tree->data_blocks);
    while (shift_right(tree->data_blocks - 1, tree->shift * tree->levels))
        tree->levels++;
    for (unsigned level = tree->levels; level-- > 0;) {
        tree->begin[level] = next;
        next += shift_right(tree->data_blocks - 1, tree->shift * (level + 1)) + 1;
    }
    return next < INT64_MAX / tree->hash_block
               ? NULL
               : bw_error_create(BW_ERROR_CORRUPT, "the hash tree of dm-verity is too large");
}

struct bw_error *bw_verity_open(const struct bw_frame *frame, struct bw_xlator *device,
                                uint64_t offset, struct bw_verity_tree *tree)
{
    struct disk_superblock superblock;
    if (!read_superblock(frame, device, offset, &superblock))
        return bw_error_create(BW_ERROR_NOT_FOUND, "%s has no superblock of dm-verity at %" PRIu64,
                               bw_xlator_image(device), offset);
    tree->device = device;
    tree->is_old = !bw_get32(superblock.hash_type);
    tree->data_block = bw_get32(superblock.data_block);
    tree->hash_block = bw_get32(superblock.hash_block);
    tree->data_blocks = bw_get64(superblock.data_blocks);
    tree->salt_length = bw_get16(superblock.salt_length);
    memcpy(tree->uuid, superblock.uuid, sizeof tree->uuid);
    memcpy(tree->algorithm_name, superblock.algorithm, sizeof superblock.algorithm);
    memcpy(tree->salt, superblock.salt, sizeof tree->salt);
    if (tree->salt_length > BW_VERITY_SALT)
        return bw_error_create(BW_ERROR_CORRUPT, "the salt of dm-verity has %" PRIu32 " bytes",
                               tree->salt_length);
    BW_TRY(set_algorithm(tree));
    return set_levels(tree, offset);
}

/* Hashes. */

static struct bw_error *hash_block(const struct bw_verity_tree *tree, const uint8_t *block,
                                   uint32_t length, uint8_t *digest)
{
    const gcry_buffer_t salt = {.data = (void *)(uintptr_t)tree->salt, .len = tree->salt_length};
    const gcry_buffer_t data = {.data = (void *)(uintptr_t)block, .len = length};
    const gcry_buffer_t parts[] = {tree->is_old ? data : salt, tree->is_old ? salt : data};
    gcry_error_t problem = gcry_md_hash_buffers(tree->algorithm, 0, digest, parts, 2);
    return problem ? bw_error_create(BW_ERROR_UNSUPPORTED, "%s: %s", tree->algorithm_name,
                                     gcry_strerror(problem))
                   : NULL;
}

/* The offset of a hash in its block. */
static uint32_t digest_offset(const struct bw_verity_tree *tree, uint64_t index)
{
    const uint32_t number = (uint32_t)(index & ((UINT64_C(1) << tree->shift) - 1));
    return number * (tree->is_old ? tree->digest : tree->hash_block >> tree->shift);
}

/* The hash block, on its device, with the hash of a data block in a level. */
static uint64_t block_in(const struct bw_verity_tree *tree, unsigned level, uint64_t data_block)
{
    return tree->begin[level] + shift_right(data_block, tree->shift * (level + 1));
}

/* Verified hash blocks. The lock is held. */

static uint8_t *bytes_of(const struct bw_verity_tree *tree, uint64_t block)
{
    return tree->slot_bytes + block % tree->slot_count * tree->hash_block;
}

static bool is_loaded(const struct bw_verity_tree *tree, uint64_t block)
{
    return tree->slots[block % tree->slot_count] == block;
}

static struct bw_error *load_block(const struct bw_verity_tree *tree, const struct bw_frame *frame,
                                   uint64_t block, const uint8_t *wanted, bool *is_right)
{
    uint64_t *slot = &tree->slots[block % tree->slot_count];
    uint8_t *bytes = bytes_of(tree, block), found[BW_VERITY_DIGEST];
    *slot = 0;
    BW_TRY(read_bytes(frame, tree->device, block * tree->hash_block, bytes, tree->hash_block));
    BW_TRY(hash_block(tree, bytes, tree->hash_block, found));
    *is_right = memcmp(found, wanted, tree->digest) == 0;
    *slot = *is_right ? block : 0;
    return NULL;
}

/* Finds the hash of a data block, from the lowest level on that was verified before. */
static struct bw_error *find_digest(struct bw_verity_tree *tree, const struct bw_frame *frame,
                                    uint64_t data_block, uint8_t *digest)
{
    unsigned level = 0;
    while (level < tree->levels && !is_loaded(tree, block_in(tree, level, data_block)))
        level++;
    if (level == tree->levels)
        memcpy(digest, tree->root, tree->digest);
    for (level = level < tree->levels ? level + 1 : level; level-- > 0;) {
        const uint64_t block = block_in(tree, level, data_block);
        bool is_right = true;
        struct bw_error *error =
            is_loaded(tree, block) ? NULL : load_block(tree, frame, block, digest, &is_right);
        if (!error && !is_right)
            error = bw_error_create(BW_ERROR_CORRUPT, "it does not match its hash");
        if (error)
            return bw_error_prefix(error,
                                   "data block %" PRIu64 " cannot be verified: hash block %" PRIu64
                                   " at level %u of the hash tree",
                                   data_block, block, level);
        const uint64_t index = shift_right(data_block, tree->shift * level);
        memcpy(digest, bytes_of(tree, block) + digest_offset(tree, index), tree->digest);
    }
    return NULL;
}

/* Verifying. */

static int digit_value(char digit)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = memchr(digits, digit | ((digit >= 'A' && digit <= 'F') ? 0x20 : 0), 16);
    return found ? (int)(found - digits) : -1;
}

static bool decode_digits(const char *digits, uint8_t *bytes, size_t length)
{
    bool is_valid = strlen(digits) == 2 * length;
    for (size_t i = 0; i < length && is_valid; i++) {
        const int high = digit_value(digits[2 * i]), low = digit_value(digits[2 * i + 1]);
        is_valid = high >= 0 && low >= 0;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return is_valid;
}

static struct bw_error *make_slots(struct bw_verity_tree *tree)
{
    tree->slot_count = MEMORY / tree->hash_block;
    tree->slots = calloc(tree->slot_count, sizeof *tree->slots);
    tree->slot_bytes = calloc(tree->slot_count, tree->hash_block);
    if (!tree->slots || !tree->slot_bytes)
        return bw_error_no_memory();
    pthread_mutex_init(&tree->lock, NULL);
    return NULL;
}

struct bw_error *bw_verity_set_root(const struct bw_frame *frame, struct bw_verity_tree *tree,
                                    const char *digits)
{
    bool is_right = true;
    if (!decode_digits(digits, tree->root, tree->digest))
        return bw_error_create(BW_ERROR_USAGE,
                               "a root hash of %s has %" PRIu32 " hexadecimal digits",
                               tree->algorithm_name, 2 * tree->digest);
    BW_TRY(make_slots(tree));
    if (tree->levels)
        BW_TRY(load_block(tree, frame, tree->begin[tree->levels - 1], tree->root, &is_right));
    return is_right ? NULL
                    : bw_error_create(BW_ERROR_CORRUPT,
                                      "the root hash does not match the hash tree, or the tree "
                                      "is damaged");
}

static struct bw_error *check_block(const struct bw_frame *frame, struct bw_verity_tree *tree,
                                    uint64_t number, const uint8_t *block)
{
    uint8_t wanted[BW_VERITY_DIGEST], found[BW_VERITY_DIGEST];
    pthread_mutex_lock(&tree->lock);
    struct bw_error *error = find_digest(tree, frame, number, wanted);
    pthread_mutex_unlock(&tree->lock);
    if (error)
        return error;
    BW_TRY(hash_block(tree, block, tree->data_block, found));
    return memcmp(found, wanted, tree->digest) == 0
               ? NULL
               : bw_error_create(BW_ERROR_CORRUPT,
                                 "data block %" PRIu64
                                 " does not match its hash at level 0 of the hash tree",
                                 number);
}

struct bw_error *bw_verity_check(const struct bw_frame *frame, struct bw_verity_tree *tree,
                                 uint64_t first, const uint8_t *blocks, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        BW_TRY(check_block(frame, tree, first + i, blocks + i * tree->data_block));
    return NULL;
}

/* Whether a tree belongs to a device. */

/* Whether the tree has the hash of a block, of which nothing else is verified. Zeros say nothing.
 */
static bool fits_block(const struct bw_frame *frame, const struct bw_verity_tree *tree,
                       struct bw_xlator *data, uint64_t number)
{
    uint8_t wanted[BW_VERITY_DIGEST], found[BW_VERITY_DIGEST];
    BW_AUTO_FREE uint8_t *block = malloc(tree->data_block);
    if (!block || number >= tree->data_blocks)
        return false;
    BW_AUTO_ERROR struct bw_error *error =
        read_bytes(frame, data, number * tree->data_block, block, tree->data_block);
    if (!error && bw_is_zeros(block, tree->data_block))
        return false;
    if (!error)
        error =
            read_bytes(frame, tree->device,
                       block_in(tree, 0, number) * tree->hash_block + digest_offset(tree, number),
                       wanted, tree->digest);
    if (!error)
        error = hash_block(tree, block, tree->data_block, found);
    return !error && memcmp(found, wanted, tree->digest) == 0;
}

/* Headers of containers begin at 0 or 4096. Blocks everywhere are tried, because some may be
 * damaged.
 */
bool bw_verity_fits(const struct bw_frame *frame, const struct bw_verity_tree *tree,
                    struct bw_xlator *data)
{
    enum { SAMPLES = 16 };
    const uint64_t headers[] = {bw_superblock_offset(0), 0, 4096};
    const uint64_t step = tree->data_blocks / SAMPLES * tree->data_block;
    bool does_fit = false;
    for (size_t i = 0; i < sizeof headers / sizeof *headers && tree->levels && !does_fit; i++)
        does_fit = fits_block(frame, tree, data, headers[i] / tree->data_block);
    for (uint64_t i = 0; i < SAMPLES && tree->levels && !does_fit; i++)
        does_fit =
            fits_block(frame, tree, data, bw_xlator_next_stored(data, i * step) / tree->data_block);
    return does_fit;
}

void bw_verity_close(struct bw_verity_tree *tree)
{
    if (tree->slots && tree->slot_bytes)
        pthread_mutex_destroy(&tree->lock);
    free(tree->slots);
    free(tree->slot_bytes);
    tree->slots = NULL;
    tree->slot_bytes = NULL;
}
