/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decoding of inodes, names and references, root items, file extents, and extents of tree blocks.
 */
#include "ondisk/items.h"

#include <inttypes.h>

#include "base/cleanup.h"

static struct timespec time_of(const struct bw_disk_timespec *disk)
{
    const uint32_t second = 1000000000, rest = bw_get32(disk->nanoseconds);
    struct timespec time = {.tv_sec = (time_t)bw_get64(disk->seconds), .tv_nsec = (long)rest};
    if (rest < second) /* as in all file systems that are not damaged: no division */
        return time;
    time.tv_nsec = (long)(rest % second);
    if (__builtin_add_overflow(time.tv_sec, rest / second, &time.tv_sec))
        time.tv_sec = INT64_MAX;
    return time;
}

int64_t bw_time_nanoseconds(const struct timespec *time)
{
    const int64_t second = 1000000000;
    int64_t seconds = time->tv_sec, rest = time->tv_nsec, result;
    bool negative = seconds < 0;
    /* Backwards from the next second: then the first product is never less than the sum. */
    if (negative) {
        seconds++;
        rest -= second;
    }
    if (__builtin_mul_overflow(seconds, second, &result) ||
        __builtin_add_overflow(result, rest, &result))
        return negative ? INT64_MIN : INT64_MAX;
    return result;
}

bool bw_inode_decode(const struct bw_item *item, struct bw_inode *inode)
{
    const struct bw_disk_inode_item *disk = (const void *)item->data;
    if (item->size < sizeof *disk)
        return false;
    *inode = (struct bw_inode){
        .generation = bw_get64(disk->generation),
        .transid = bw_get64(disk->transid),
        .size = bw_get64(disk->size),
        .bytes = bw_get64(disk->bytes),
        .device = bw_get64(disk->device),
        .flags = bw_get64(disk->flags),
        .sequence = bw_get64(disk->sequence),
        .atime = time_of(&disk->atime),
        .ctime = time_of(&disk->ctime),
        .mtime = time_of(&disk->mtime),
        .otime = time_of(&disk->otime),
        .link_count = bw_get32(disk->link_count),
        .uid = bw_get32(disk->uid),
        .gid = bw_get32(disk->gid),
        .mode = bw_get32(disk->mode),
        .reserved = {0, 0}, /* named, so that compilers do not clear the structure first */
    };
    if (inode->size <= INT64_MAX)
        return true;
    /* Like the kernel, nothing uses the size of a directory. */
    if (bw_file_type_of_mode(inode->mode) != BW_FILE_DIRECTORY)
        return false;
    inode->size = INT64_MAX;
    return true;
}

uint64_t bw_inode_stored_size(const struct bw_item *item)
{
    const struct bw_disk_inode_item *disk = (const void *)item->data;
    return bw_get64(disk->size);
}

bool bw_xattr_next(struct bw_cursor *cursor, struct bw_xattr *xattr)
{
    if (cursor->next == cursor->end)
        return false;
    const struct bw_disk_dir_item *disk = (const void *)bw_cursor_take(cursor, sizeof *disk);
    if (!disk)
        return false;
    xattr->name_length = bw_get16(disk->name_length);
    xattr->value_length = bw_get16(disk->data_length);
    xattr->name = bw_cursor_take(cursor, xattr->name_length);
    xattr->value = xattr->name ? bw_cursor_take(cursor, xattr->value_length) : NULL;
    return xattr->value != NULL;
}

/* The first and the last eight of 8 to 16 bytes. */
static bw_chunk short_chunk(const uint8_t *bytes, size_t length)
{
    uint64_t halves[2];
    bw_chunk chunk;
    memcpy(&halves[0], bytes, sizeof *halves);
    memcpy(&halves[1], bytes + length - sizeof *halves, sizeof *halves);
    memcpy(&chunk, halves, sizeof chunk);
    return chunk;
}

bool bw_name_is_valid(const uint8_t *name, size_t length)
{
    bw_chunk chunk, bad = {0};
    if (length == 0 || length > BW_NAME_MAX)
        return false;
    if (name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')))
        return false;
    if (length < sizeof(uint64_t)) {
        while (length && name[length - 1] != '/' && name[length - 1] != '\0')
            length--;
        return !length;
    }
    if (length <= sizeof chunk)
        return !bw_chunk_is_set(bw_invalid_bytes(short_chunk(name, length)));
    /* The last chunk overlaps the one before it. */
    const size_t last = length - sizeof chunk;
    for (size_t at = 0; at < last; at += sizeof chunk) {
        memcpy(&chunk, name + at, sizeof chunk);
        bad |= bw_invalid_bytes(chunk);
    }
    memcpy(&chunk, name + last, sizeof chunk);
    return !bw_chunk_is_set(bad | bw_invalid_bytes(chunk));
}

struct bw_error *bw_root_item_decode(const struct bw_item *item, struct bw_root_item *root)
{
    const struct bw_disk_root_item *disk = (const void *)item->data;
    if (item->size < offsetof(struct bw_disk_root_item, generation_v2))
        return bw_error_create(BW_ERROR_CORRUPT,
                               "root item of tree %" PRIu64 ": invalid size %" PRIu32,
                               item->key.objectid, item->size);
    *root = (struct bw_root_item){
        .root = {bw_get64(disk->bytenr), bw_get64(disk->generation), disk->level},
        .flags = bw_get64(disk->flags),
        .last_snapshot = bw_get64(disk->last_snapshot),
        .bytes = bw_get64(disk->bytes_used),
        .references = bw_get32(disk->reference_count),
    };
    if (disk->level >= BW_MAX_LEVEL)
        return bw_error_create(BW_ERROR_CORRUPT, "root item of tree %" PRIu64 ": invalid level %u",
                               item->key.objectid, disk->level);
    /* A mount accepts every block as the root if the generation is 0. The second copy of the
     * generation accepts only the right one. */
    if (!root->root.generation && item->size >= sizeof *disk)
        root->root.generation = bw_get64(disk->generation_v2);
    /* A kernel that does not know the longer item does not update generation_v2: then the UUIDs are
     * stale. */
    static const uint8_t no_uuid[BW_UUID_SIZE];
    if (item->size >= sizeof *disk && bw_get64(disk->generation_v2) == root->root.generation)
        root->is_snapshot = memcmp(disk->parent_uuid, no_uuid, BW_UUID_SIZE) != 0;
    return NULL;
}

bool bw_root_ref_decode(const struct bw_item *item, struct bw_root_ref *ref)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    const struct bw_disk_root_ref *disk = (const void *)bw_cursor_take(&cursor, sizeof *disk);
    if (!disk)
        return false;
    *ref = (struct bw_root_ref){bw_get64(disk->directory), bw_get64(disk->sequence), NULL,
                                bw_get16(disk->name_length)};
    ref->name = bw_cursor_take(&cursor, ref->name_length);
    return ref->name != NULL;
}

bool bw_tree_extent_decode(const struct bw_item *item, struct bw_tree_extent *extent)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    if (item->key.type != BW_METADATA_ITEM && item->key.type != BW_EXTENT_ITEM)
        return false;
    const struct bw_disk_extent_item *disk = (const void *)bw_cursor_take(&cursor, sizeof *disk);
    if (!disk || !(bw_get64(disk->flags) & BW_EXTENT_TREE_BLOCK))
        return false;
    extent->bytenr = item->key.objectid;
    extent->generation = bw_get64(disk->generation);
    extent->level = (uint8_t)item->key.offset;
    if (item->key.type == BW_EXTENT_ITEM) {
        const struct bw_disk_tree_block_info *info =
            (const void *)bw_cursor_take(&cursor, sizeof *info);
        if (!info)
            return false;
        extent->level = info->level;
    }
    extent->references = cursor;
    return true;
}

bool bw_extent_reference_of_key(const struct bw_key *key, struct bw_extent_reference *reference)
{
    *reference = (struct bw_extent_reference){key->type == BW_SHARED_BLOCK_REF, key->offset};
    return reference->shared || key->type == BW_TREE_BLOCK_REF;
}

bool bw_extent_reference_next(struct bw_cursor *cursor, struct bw_extent_reference *reference)
{
    if (cursor->next == cursor->end)
        return false;
    const struct bw_disk_inline_reference *disk =
        (const void *)bw_cursor_take(cursor, sizeof *disk);
    if (!disk)
        return false;
    const struct bw_key key = {0, disk->type, bw_get64(disk->offset)};
    return bw_extent_reference_of_key(&key, reference);
}

/* Decoding of EXTENT_DATA items: every field is checked before anyone computes or allocates with
 * it. */

enum { HEAD_SIZE = offsetof(struct bw_disk_file_extent, disk_bytenr) };

static struct bw_error *check_aligned(uint32_t sectorsize, const char *name, uint64_t value)
{
    if (value & (sectorsize - 1))
        return bw_error_create(BW_ERROR_CORRUPT, "unaligned %s %" PRIu64, name, value);
    return NULL;
}

static struct bw_error *decode_stored(const struct bw_item *item, uint32_t sectorsize,
                                      struct bw_file_extent *extent)
{
    const struct bw_disk_file_extent *disk = (const void *)item->data;
    if (item->size != sizeof *disk)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid item size %" PRIu32, item->size);
    extent->disk_bytenr = bw_get64(disk->disk_bytenr);
    extent->disk_num_bytes = bw_get64(disk->disk_num_bytes);
    extent->offset = bw_get64(disk->offset);
    extent->num_bytes = bw_get64(disk->num_bytes);
    BW_TRY(check_aligned(sectorsize, "offset in the file", item->key.offset));
    BW_TRY(check_aligned(sectorsize, "ram_bytes", extent->ram_bytes));
    BW_TRY(check_aligned(sectorsize, "disk_bytenr", extent->disk_bytenr));
    BW_TRY(check_aligned(sectorsize, "disk_num_bytes", extent->disk_num_bytes));
    BW_TRY(check_aligned(sectorsize, "offset", extent->offset));
    BW_TRY(check_aligned(sectorsize, "num_bytes", extent->num_bytes));
    if (extent->num_bytes == 0 || extent->num_bytes > UINT64_MAX - item->key.offset)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid num_bytes %" PRIu64, extent->num_bytes);
    if (!extent->disk_bytenr)
        return NULL; /* a hole */

    if (extent->disk_num_bytes == 0 || extent->disk_num_bytes > UINT64_MAX - extent->disk_bytenr)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid disk_num_bytes %" PRIu64 " at %" PRIu64,
                               extent->disk_num_bytes, extent->disk_bytenr);
    const bool compressed = extent->compression != BW_COMPRESS_NONE;
    if (compressed && (extent->ram_bytes > BW_MAX_COMPRESSED_EXTENT ||
                       extent->disk_num_bytes > BW_MAX_COMPRESSED_EXTENT))
        return bw_error_create(BW_ERROR_CORRUPT,
                               "compressed, and too long: ram_bytes %" PRIu64
                               ", disk_num_bytes %" PRIu64,
                               extent->ram_bytes, extent->disk_num_bytes);

    /* The piece lies inside the extent. Without compression, disk_num_bytes decides: ram_bytes is
     * not used then, and on some file systems it is too small. */
    const uint64_t length = compressed ? extent->ram_bytes : extent->disk_num_bytes;
    if (extent->offset > length || extent->num_bytes > length - extent->offset)
        return bw_error_create(
            BW_ERROR_CORRUPT,
            "offset %" PRIu64 " and num_bytes %" PRIu64 " pass the end, %s is %" PRIu64,
            extent->offset, extent->num_bytes, compressed ? "ram_bytes" : "disk_num_bytes", length);
    return NULL;
}

static struct bw_error *decode_file_extent(const struct bw_item *item, uint32_t sectorsize,
                                           struct bw_file_extent *extent)
{
    const struct bw_disk_file_extent *disk = (const void *)item->data;
    if (item->size < HEAD_SIZE)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid item size %" PRIu32, item->size);
    *extent = (struct bw_file_extent){
        .generation = bw_get64(disk->generation),
        .ram_bytes = bw_get64(disk->ram_bytes),
        .compression = disk->compression,
        .encryption = disk->encryption,
        .other_encoding = bw_get16(disk->other_encoding),
        .type = disk->type,
    };
    if (extent->type >= BW_FILE_EXTENT_TYPES)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid type %u", extent->type);
    if (extent->encryption)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "encryption %u", extent->encryption);
    if (extent->compression >= BW_COMPRESS_TYPES)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "unknown compression %u", extent->compression);
    if (extent->type != BW_FILE_EXTENT_INLINE)
        return decode_stored(item, sectorsize, extent);

    /* Inline data that are not compressed may be longer than a sector: mkfs has written such. */
    const bool compressed = extent->compression != BW_COMPRESS_NONE;
    extent->inline_data = item->data + HEAD_SIZE;
    extent->inline_length = item->size - HEAD_SIZE;
    extent->num_bytes = extent->ram_bytes;
    if (item->key.offset != 0)
        return bw_error_create(BW_ERROR_CORRUPT, "inline, but not at the beginning of the file");
    if (extent->ram_bytes == 0 || extent->inline_length == 0 ||
        (!compressed && extent->ram_bytes != extent->inline_length) ||
        (compressed && (extent->ram_bytes > sectorsize || extent->inline_length > sectorsize)))
        return bw_error_create(BW_ERROR_CORRUPT,
                               "invalid ram_bytes %" PRIu64 " of %" PRIu32 " bytes inline",
                               extent->ram_bytes, extent->inline_length);
    return NULL;
}

struct bw_error *bw_file_extent_decode(const struct bw_item *item, uint32_t sectorsize,
                                       struct bw_file_extent *extent)
{
    struct bw_error *error = decode_file_extent(item, sectorsize, extent);
    if (error)
        return bw_error_prefix(error, "extent of inode %" PRIu64 " at %" PRIu64, item->key.objectid,
                               item->key.offset);
    return NULL;
}
