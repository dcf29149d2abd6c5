/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Superblocks and tree blocks of packed images: finding them, and making their checksums right. */
#include "fuzz/packed.h"
#include "ondisk/checksum.h"

enum { SMALL_FILE = 256 << 10 };

static const uint64_t superblock_offsets[] = {64 << 10, 64 << 20};

static bool is_superblock_offset(uint64_t offset)
{
    return offset == superblock_offsets[0] || offset == superblock_offsets[1];
}

struct bw_disk_superblock *packed_superblock(const struct packed_image *image,
                                             const struct packed_place *place)
{
    const struct packed_device *device = &image->devices[place->device];
    if (place->offset > device->size || device->size - place->offset < BW_SUPERBLOCK_SIZE)
        return NULL;
    struct bw_disk_superblock *superblock = (void *)(device->bytes + place->offset);
    return bw_get64(superblock->magic) == BW_SUPERBLOCK_MAGIC ? superblock : NULL;
}

/* The superblock at the usual place of a device. */
static const struct bw_disk_superblock *first_superblock(const struct packed_image *image,
                                                         unsigned device)
{
    return packed_superblock(image, &(struct packed_place){device, superblock_offsets[0]});
}

uint32_t packed_nodesize(const struct packed_image *image)
{
    for (unsigned i = 0; i < image->device_count; i++) {
        const struct bw_disk_superblock *superblock = first_superblock(image, i);
        uint32_t size = superblock ? bw_get32(superblock->nodesize) : 0;
        if (size >= PACKED_PAGE && size <= BW_MAX_NODESIZE && !(size & (size - 1)))
            return size;
    }
    return 0;
}

/* Whether one of the file systems has this UUID. */
static bool is_ours(const struct packed_image *image, const uint8_t *fsid)
{
    for (unsigned i = 0; i < image->device_count; i++) {
        const struct bw_disk_superblock *superblock = first_superblock(image, i);
        if (superblock && (memcmp(superblock->fsid, fsid, BW_UUID_SIZE) == 0 ||
                           memcmp(superblock->metadata_uuid, fsid, BW_UUID_SIZE) == 0))
            return true;
    }
    return false;
}

uint8_t *packed_block(const struct packed_image *image, const struct packed_place *place)
{
    static const uint8_t none[BW_UUID_SIZE];
    const struct packed_device *device = &image->devices[place->device];
    uint32_t nodesize = packed_nodesize(image);
    if (!nodesize || is_superblock_offset(place->offset) || place->offset > device->size ||
        device->size - place->offset < nodesize)
        return NULL;
    uint8_t *block = device->bytes + place->offset;
    const struct bw_disk_header *header = (const void *)block;
    return memcmp(header->fsid, none, sizeof none) != 0 && is_ours(image, header->fsid) ? block
                                                                                        : NULL;
}

static void mend_bytes(uint8_t *bytes, size_t length, unsigned type)
{
    uint8_t result[32];
    if (!bw_checksum_known(type))
        return;
    bw_checksum_compute(type, bytes + BW_CSUM_SIZE, length - BW_CSUM_SIZE, result);
    memcpy(bytes, result, bw_checksum_size(type));
}

static unsigned checksum_type(const struct packed_image *image)
{
    for (unsigned i = 0; i < image->device_count; i++) {
        const struct bw_disk_superblock *superblock = first_superblock(image, i);
        if (superblock && bw_checksum_known(bw_get16(superblock->csum_type)))
            return bw_get16(superblock->csum_type);
    }
    return BW_CHECKSUM_CRC32C;
}

static void bound_item(uint8_t *block, uint32_t nodesize, const struct bw_disk_item *item)
{
    const size_t head = sizeof(struct bw_disk_header);
    uint32_t start = bw_get32(item->offset);
    if (item->key.type != BW_INODE_ITEM || start > nodesize - head ||
        nodesize - head - start < sizeof(struct bw_disk_inode_item))
        return;
    struct bw_disk_inode_item *inode = (void *)(block + head + start);
    if (bw_get64(inode->size) > SMALL_FILE)
        inode->size = bw_put64(bw_get64(inode->size) % SMALL_FILE);
}

static void bound_files(uint8_t *block, uint32_t nodesize)
{
    const struct bw_disk_header *header = (const void *)block;
    const struct bw_disk_item *items = (const void *)(block + sizeof *header);
    size_t fit = (nodesize - sizeof *header) / sizeof *items, count = bw_get32(header->item_count);
    for (size_t i = 0; header->level == 0 && i < count && i < fit; i++)
        bound_item(block, nodesize, &items[i]);
}

void packed_mend(const struct packed_image *image, bool bound)
{
    uint32_t nodesize = packed_nodesize(image);
    unsigned type = checksum_type(image);
    for (size_t i = 0; i < image->page_count; i++) {
        const struct packed_place *place = &image->pages[i];
        uint8_t *block = packed_block(image, place);
        struct bw_disk_superblock *superblock =
            is_superblock_offset(place->offset) ? packed_superblock(image, place) : NULL;
        if (superblock)
            mend_bytes((uint8_t *)superblock, BW_SUPERBLOCK_SIZE, bw_get16(superblock->csum_type));
        if (block && bound)
            bound_files(block, nodesize);
        if (block)
            mend_bytes(block, nodesize, type);
    }
}
