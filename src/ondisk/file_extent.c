/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Decoding of EXTENT_DATA items: every field is checked before anyone computes or allocates with
 * it. */
#include "ondisk/file_extent.h"

#include <inttypes.h>

#include "base/cleanup.h"

enum { HEAD_SIZE = offsetof(struct bw_disk_file_extent, disk_bytenr) };

static struct bw_error *check_encoding(const struct bw_file_extent *extent)
{
    if (extent->type >= BW_FILE_EXTENT_TYPES)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid type %u", extent->type);
    if (extent->encryption)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "encryption %u", extent->encryption);
    if (extent->other_encoding)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "unknown encoding %u", extent->other_encoding);
    if (extent->compression >= BW_COMPRESS_TYPES)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "unknown compression %u", extent->compression);
    return NULL;
}

/* Inline extents. Data that are not compressed may be longer than a sector: mkfs has written such.
 */
static struct bw_error *decode_inline(const struct bw_item *item, uint32_t sectorsize,
                                      struct bw_file_extent *extent)
{
    bool compressed = extent->compression != BW_COMPRESS_NONE;
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

static struct bw_error *check_aligned(uint32_t sectorsize, const char *name, uint64_t value)
{
    if (value % sectorsize)
        return bw_error_create(BW_ERROR_CORRUPT, "unaligned %s %" PRIu64, name, value);
    return NULL;
}

static struct bw_error *check_alignment(const struct bw_item *item, uint32_t sectorsize,
                                        const struct bw_file_extent *extent)
{
    BW_TRY(check_aligned(sectorsize, "offset in the file", item->key.offset));
    BW_TRY(check_aligned(sectorsize, "ram_bytes", extent->ram_bytes));
    BW_TRY(check_aligned(sectorsize, "disk_bytenr", extent->disk_bytenr));
    BW_TRY(check_aligned(sectorsize, "disk_num_bytes", extent->disk_num_bytes));
    BW_TRY(check_aligned(sectorsize, "offset", extent->offset));
    return check_aligned(sectorsize, "num_bytes", extent->num_bytes);
}

/* Whether the piece lies inside the extent. Without compression, disk_num_bytes
 * decides: ram_bytes is not used then, and on some file systems it is too small. */
static struct bw_error *check_piece(const struct bw_file_extent *extent)
{
    bool compressed = extent->compression != BW_COMPRESS_NONE;
    uint64_t length = compressed ? extent->ram_bytes : extent->disk_num_bytes;
    if (extent->offset > length || extent->num_bytes > length - extent->offset)
        return bw_error_create(
            BW_ERROR_CORRUPT,
            "offset %" PRIu64 " and num_bytes %" PRIu64 " pass the end, %s is %" PRIu64,
            extent->offset, extent->num_bytes, compressed ? "ram_bytes" : "disk_num_bytes", length);
    return NULL;
}

static struct bw_error *check_stored(const struct bw_file_extent *extent)
{
    if (extent->disk_num_bytes == 0 || extent->disk_num_bytes > UINT64_MAX - extent->disk_bytenr)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid disk_num_bytes %" PRIu64 " at %" PRIu64,
                               extent->disk_num_bytes, extent->disk_bytenr);
    if (extent->compression != BW_COMPRESS_NONE &&
        (extent->ram_bytes > BW_MAX_COMPRESSED_EXTENT ||
         extent->disk_num_bytes > BW_MAX_COMPRESSED_EXTENT))
        return bw_error_create(BW_ERROR_CORRUPT,
                               "compressed, and too long: ram_bytes %" PRIu64
                               ", disk_num_bytes %" PRIu64,
                               extent->ram_bytes, extent->disk_num_bytes);
    return check_piece(extent);
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
    BW_TRY(check_alignment(item, sectorsize, extent));
    if (extent->num_bytes == 0 || extent->num_bytes > UINT64_MAX - item->key.offset)
        return bw_error_create(BW_ERROR_CORRUPT, "invalid num_bytes %" PRIu64, extent->num_bytes);
    return extent->disk_bytenr ? check_stored(extent) : NULL;
}

static struct bw_error *decode(const struct bw_item *item, uint32_t sectorsize,
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
    BW_TRY(check_encoding(extent));
    return extent->type == BW_FILE_EXTENT_INLINE ? decode_inline(item, sectorsize, extent)
                                                 : decode_stored(item, sectorsize, extent);
}

struct bw_error *bw_file_extent_decode(const struct bw_item *item, uint32_t sectorsize,
                                       struct bw_file_extent *extent)
{
    struct bw_error *error = decode(item, sectorsize, extent);
    if (error)
        return bw_error_prefix(error, "extent of inode %" PRIu64 " at %" PRIu64, item->key.objectid,
                               item->key.offset);
    return NULL;
}
