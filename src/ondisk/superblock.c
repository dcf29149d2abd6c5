/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decoding and validation of the superblock. Every number is hostile until it has passed through
 * here. */
#include "ondisk/superblock.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "ondisk/bit_flip.h"

uint64_t bw_superblock_offset(unsigned copy)
{
    static const uint64_t offsets[BW_SUPERBLOCK_COPIES] = {UINT64_C(64) << 10, UINT64_C(64) << 20,
                                                           UINT64_C(256) << 30};
    return offsets[copy];
}

/* A checksum type below this may be one that is still to come; above, damage is more likely. */
enum { MAY_BE_NEW = 16 };

static bool is_size(uint32_t size)
{
    return (size & (size - 1)) == 0 && size >= BW_MIN_SECTORSIZE && size <= BW_MAX_NODESIZE;
}

/* Without a magic it may be a superblock all the same: what the kernel leaves of the superblock of
 * a device that it has removed, or wipefs of any, lacks the magic alone. */
static struct bw_error *no_magic(const struct bw_disk_superblock *disk, uint64_t offset)
{
    uint64_t magic = bw_get64(disk->magic);
    if (bw_get64(disk->bytenr) != offset || !is_size(bw_get32(disk->sectorsize)) ||
        !is_size(bw_get32(disk->nodesize)))
        return bw_error_create(BW_ERROR_NOT_BTRFS, "no btrfs magic");
    const char *problem = "is damaged";
    if (magic == BW_TEMPORARY_MAGIC)
        problem = "shows that mkfs.btrfs or a conversion was interrupted";
    else if (magic == 0)
        problem = "has been erased, as removing a device or wipefs does";
    return bw_error_create(BW_ERROR_CORRUPT, "a superblock whose magic %s", problem);
}

static struct bw_error *check_root(const struct bw_superblock *super, const char *name,
                                   const struct bw_root_pointer *root)
{
    if (root->level >= BW_MAX_LEVEL)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid %s level %u", name, root->level);
    if (root->bytenr % super->sectorsize)
        return bw_error_create(BW_ERROR_CORRUPT, "unaligned %s address %" PRIu64, name,
                               root->bytenr);
    return NULL;
}

static void decode_superblock(const struct bw_disk_superblock *disk, struct bw_superblock *super)
{
    memset(super, 0, sizeof *super);
    super->flags = bw_get64(disk->flags);
    super->generation = bw_get64(disk->generation);
    super->uuid_tree_generation = bw_get64(disk->uuid_tree_generation);
    super->cache_generation = bw_get64(disk->cache_generation);
    super->log_root = bw_get64(disk->log_root);
    super->log_root_level = disk->log_root_level;
    super->total_bytes = bw_get64(disk->total_bytes);
    super->bytes_used = bw_get64(disk->bytes_used);
    super->device_count = bw_get64(disk->device_count);
    super->sectorsize = bw_get32(disk->sectorsize);
    super->nodesize = bw_get32(disk->nodesize);
    super->compat_flags = bw_get64(disk->compat_flags);
    super->compat_ro_flags = bw_get64(disk->compat_ro_flags);
    super->incompat_flags = bw_get64(disk->incompat_flags);
    super->checksum_type = (enum bw_checksum_type)bw_get16(disk->csum_type);
    super->device.devid = bw_get64(disk->device.devid);
    super->device.total_bytes = bw_get64(disk->device.total_bytes);
    super->device.bytes_used = bw_get64(disk->device.bytes_used);
    super->system_chunk_array_size = bw_get32(disk->system_chunk_array_size);
    memcpy(super->fsid, disk->fsid, BW_UUID_SIZE);
    memcpy(super->device.uuid, disk->device.uuid, BW_UUID_SIZE);
    memcpy(super->device.fsid, disk->device.fsid, BW_UUID_SIZE);
    memcpy(super->label, disk->label, BW_LABEL_SIZE);
    memcpy(super->system_chunk_array, disk->system_chunk_array, BW_SYSTEM_CHUNK_ARRAY_SIZE);
    bool changed = super->incompat_flags & BW_INCOMPAT_METADATA_UUID;
    memcpy(super->metadata_uuid, changed ? disk->metadata_uuid : disk->fsid, BW_UUID_SIZE);

    super->root =
        (struct bw_root_pointer){bw_get64(disk->root), super->generation, disk->root_level};
    super->chunk_root = (struct bw_root_pointer){
        bw_get64(disk->chunk_root), bw_get64(disk->chunk_root_generation), disk->chunk_root_level};
    if (super->incompat_flags & BW_INCOMPAT_REMAP_TREE)
        super->remap_root =
            (struct bw_root_pointer){bw_get64(disk->remap_root),
                                     bw_get64(disk->remap_root_generation), disk->remap_root_level};
    for (unsigned i = 0; i < BW_BACKUP_ROOTS; i++) {
        const struct bw_disk_backup_root *from = &disk->backup_roots[i];
        super->backup_roots[i] = (struct bw_backup_root){
            .tree_root = {bw_get64(from->tree_root), bw_get64(from->tree_root_generation),
                          from->tree_root_level},
            .chunk_root = {bw_get64(from->chunk_root), bw_get64(from->chunk_root_generation),
                           from->chunk_root_level},
            .extent_root = {bw_get64(from->extent_root), bw_get64(from->extent_root_generation),
                            from->extent_root_level},
            .fs_root = {bw_get64(from->fs_root), bw_get64(from->fs_root_generation),
                        from->fs_root_level},
            .device_root = {bw_get64(from->device_root), bw_get64(from->device_root_generation),
                            from->device_root_level},
            .csum_root = {bw_get64(from->csum_root), bw_get64(from->csum_root_generation),
                          from->csum_root_level},
        };
    }
}

struct bw_error *bw_superblock_decode(const void *bytes, uint64_t offset,
                                      struct bw_superblock *superblock)
{
    const struct bw_disk_superblock *disk = bytes;
    if (bw_get64(disk->magic) != BW_SUPERBLOCK_MAGIC)
        return no_magic(disk, offset);
    unsigned checksum_type = bw_get16(disk->csum_type);
    if (!bw_checksum_known(checksum_type))
        return bw_error_create(checksum_type < MAY_BE_NEW ? BW_ERROR_UNSUPPORTED : BW_ERROR_CORRUPT,
                               "unknown checksum type %u", checksum_type);
    BW_TRY(bw_checksum_prepare((enum bw_checksum_type)checksum_type));
    const uint64_t flags = bw_get64(disk->flags);
    /* The new type is known only when the root tree was read. */
    if (flags & (BW_SUPER_FLAG_CHANGING_DATA_CSUM | BW_SUPER_FLAG_CHANGING_META_CSUM))
        BW_TRY(bw_checksum_prepare(BW_CHECKSUM_SHA256));
    const bool restored = flags & (BW_SUPER_FLAG_METADUMP | BW_SUPER_FLAG_METADUMP_V2);
    if (!bw_checksum_accepts_block((enum bw_checksum_type)checksum_type,
                                   restored ? BW_CHECKSUM_BIT(BW_CHECKSUM_CRC32C) : 0,
                                   (const uint8_t *)disk, sizeof *disk))
        return bw_error_create(BW_ERROR_CORRUPT, "%s checksum mismatch",
                               bw_checksum_name((enum bw_checksum_type)checksum_type));
    if (bw_get64(disk->bytenr) != offset)
        return bw_error_create(BW_ERROR_CORRUPT, "bytenr mismatch, want %" PRIu64 " have %" PRIu64,
                               offset, bw_get64(disk->bytenr));

    decode_superblock(disk, superblock);
    /* mkfs.btrfs with experimental features makes sectors of 2 KiB, and a debug kernel mounts them.
     */
    if (superblock->sectorsize == BW_MIN_SECTORSIZE / 2)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "sectors of %" PRIu32 " bytes are not supported",
                               superblock->sectorsize);
    if (!is_size(superblock->sectorsize))
        return bw_error_create(BW_ERROR_CORRUPT, "invalid sectorsize %" PRIu32,
                               superblock->sectorsize);
    if (!is_size(superblock->nodesize) || superblock->nodesize < superblock->sectorsize)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid nodesize %" PRIu32, superblock->nodesize);
    if (superblock->system_chunk_array_size > BW_SYSTEM_CHUNK_ARRAY_SIZE)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid sys_chunk_array_size %" PRIu32,
                               superblock->system_chunk_array_size);
    if (superblock->device_count == 0)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid num_devices 0");
    BW_TRY(check_root(superblock, "root", &superblock->root));
    BW_TRY(check_root(superblock, "remap_root", &superblock->remap_root));
    return check_root(superblock, "chunk_root", &superblock->chunk_root);
}

/* Whether at most one bit of the magic and of the address is wrong. Together they have 128 bits, so
 * no other bytes resemble a superblock by accident. */
static bool is_near(const struct bw_disk_superblock *disk, uint64_t offset)
{
    const uint64_t magic = bw_get64(disk->magic) ^ BW_SUPERBLOCK_MAGIC,
                   bytenr = bw_get64(disk->bytenr) ^ offset;
    return __builtin_popcountll(magic) + __builtin_popcountll(bytenr) <= 1;
}

bool bw_superblock_correct(uint8_t bytes[BW_SUPERBLOCK_SIZE], uint64_t offset,
                           struct bw_superblock *superblock, struct bw_bit_flip *flip)
{
    struct bw_disk_superblock *disk = (void *)bytes;
    if (!is_near(disk, offset))
        return false;
    /* The flipped bit may be one of the checksum type, and metadumps have CRC-32C for any type. */
    for (unsigned type = 0; bw_checksum_known(type); type++) {
        const unsigned difference = type ^ bw_get16(disk->csum_type);
        if (type != BW_CHECKSUM_CRC32C && __builtin_popcount(difference) > 1)
            continue;
        BW_AUTO_ERROR struct bw_error *unprepared =
            bw_checksum_prepare((enum bw_checksum_type)type);
        if (unprepared)
            continue;
        if (bw_checksum_matches_block((enum bw_checksum_type)type, bytes, BW_SUPERBLOCK_SIZE))
            return false; /* of another file system, for example: no bit is wrong */
        if (!bw_bit_flip_find_in_block((enum bw_checksum_type)type, bytes, BW_SUPERBLOCK_SIZE,
                                       flip))
            continue;
        bw_bit_flip_apply(flip, bytes);
        BW_AUTO_ERROR struct bw_error *bad = bw_superblock_decode(bytes, offset, superblock);
        if (!bad)
            return true;
        bw_bit_flip_apply(flip, bytes);
    }
    return false;
}

unsigned bw_superblock_block_ids(const struct bw_superblock *superblock,
                                 uint8_t ids[2][BW_UUID_SIZE])
{
    memcpy(ids[0], superblock->metadata_uuid, BW_UUID_SIZE);
    if (!(superblock->flags & BW_SUPER_FLAG_CHANGING_FSID))
        return 1;
    memcpy(ids[1], superblock->device.fsid, BW_UUID_SIZE);
    return 2;
}

bool bw_superblock_has_block_id(const struct bw_superblock *superblock, const uint8_t *id)
{
    uint8_t ids[2][BW_UUID_SIZE];
    const unsigned count = bw_superblock_block_ids(superblock, ids);
    return memcmp(ids[0], id, BW_UUID_SIZE) == 0 ||
           (count > 1 && memcmp(ids[1], id, BW_UUID_SIZE) == 0);
}

void bw_superblock_encode(const struct bw_superblock *super, struct bw_disk_superblock *disk)
{
    memset(disk, 0, sizeof *disk);
    disk->magic = bw_put64(BW_SUPERBLOCK_MAGIC);
    disk->bytenr = bw_put64(bw_superblock_offset(0));
    disk->flags = bw_put64(super->flags);
    disk->generation = bw_put64(super->generation);
    disk->root = bw_put64(super->root.bytenr);
    disk->root_level = super->root.level;
    disk->chunk_root = bw_put64(super->chunk_root.bytenr);
    disk->chunk_root_generation = bw_put64(super->chunk_root.generation);
    disk->chunk_root_level = super->chunk_root.level;
    disk->total_bytes = bw_put64(super->total_bytes);
    disk->bytes_used = bw_put64(super->bytes_used);
    disk->root_dir_objectid = bw_put64(BW_ROOT_TREE_DIR);
    disk->device_count = bw_put64(super->device_count);
    disk->sectorsize = disk->stripesize = bw_put32(super->sectorsize);
    disk->nodesize = disk->leafsize = bw_put32(super->nodesize);
    disk->compat_ro_flags = bw_put64(super->compat_ro_flags);
    disk->incompat_flags = bw_put64(super->incompat_flags);
    disk->csum_type = bw_put16((uint16_t)super->checksum_type);
    disk->cache_generation = bw_put64(super->cache_generation);
    disk->uuid_tree_generation = bw_put64(super->uuid_tree_generation);
    disk->system_chunk_array_size = bw_put32(super->system_chunk_array_size);
    disk->device.devid = bw_put64(super->device.devid);
    disk->device.total_bytes = bw_put64(super->device.total_bytes);
    disk->device.bytes_used = bw_put64(super->device.bytes_used);
    disk->device.sector_size = bw_put32(super->sectorsize);
    memcpy(disk->device.uuid, super->device.uuid, BW_UUID_SIZE);
    memcpy(disk->device.fsid, super->device.fsid, BW_UUID_SIZE);
    memcpy(disk->fsid, super->fsid, BW_UUID_SIZE);
    if (super->incompat_flags & BW_INCOMPAT_METADATA_UUID)
        memcpy(disk->metadata_uuid, super->metadata_uuid, BW_UUID_SIZE);
    memcpy(disk->label, super->label, BW_LABEL_SIZE);
    memcpy(disk->system_chunk_array, super->system_chunk_array, BW_SYSTEM_CHUNK_ARRAY_SIZE);
}

void bw_uuid_text(const uint8_t uuid[BW_UUID_SIZE], char text[37])
{
    *bw_write_uuid(text, uuid) = '\0';
}
