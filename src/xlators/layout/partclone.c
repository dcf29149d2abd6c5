/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout/partclone: shows an image of partclone as the device that it is a backup of, without
 * restoring it. Such an image consists of a header, a map of the blocks that it contains, and these
 * blocks, one after the other, with checksums between them. The number of blocks before a page of
 * the map is remembered, so that a block is found by counting the bits of one page.
 *
 * Source: IMAGE_FORMATS.md of partclone, and images of its versions 0.2 and 0.3.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/endian.h"
#include "xlators/classes.h"
#include "xlators/layout/containers.h"
#include "xlators/pieces.h"

enum {
    PAGE = 4096, /* bytes of the map that are read at once */
    SLOTS = 64,  /* pages in memory */
    LARGEST_BLOCK = 16 << 20,
};

static const char magic[15] = "partclone-image";
static const char map_end[8] = {'B', 'i', 'T', 'm',
                                'A', 'g', 'I', 'c'}; /* ends the bitmap in format 0001 */

struct disk_1 {
    char magic[15], file_system[15], version[4], padding[2];
    bw_le32 block_size;
    bw_le64 device_size, blocks, used;
    uint8_t padding_2[4096];
} __attribute__((packed));

struct disk_2 {
    char magic[16], program[14], version[4];
    bw_le16 byte_order; /* 0xc0de */
    char file_system[16];
    bw_le64 device_size, blocks, used, used_in_map;
    bw_le32 block_size;
    bw_le32 features;
    bw_le16 version_2, word, checksum_mode, checksum_size;
    bw_le32 checksum_blocks;
    uint8_t reseeds, map_mode;
    bw_le32 checksum;
} __attribute__((packed));

static_assert(sizeof(struct disk_1) == 4160, "as on disk");
static_assert(sizeof(struct disk_2) == 110, "as on disk");

struct partclone {
    const struct bw_piece_map *pieces; /* the first member, for bw_pieces_*() */
    uint64_t size, blocks;
    uint32_t block_size;
    bool has_bytes;                          /* the map has a byte for each block, not a bit */
    uint64_t map, map_length;                /* offset of the map, and its bytes */
    uint64_t data;                           /* offset of the first block */
    uint32_t checksum_size, checksum_blocks; /* a checksum follows each of so many blocks */
    uint64_t *ranks;                         /* blocks in the image before each page of the map */
    uint64_t page_count;
    pthread_mutex_t lock; /* protects the slots */
    struct {
        uint64_t page; /* its number plus 1; 0: empty */
        uint8_t bytes[PAGE];
    } slots[SLOTS]; /* pages of the map */
};

/* The CRC-32 of zlib without the final inversion. */
static uint32_t checksum_of(uint32_t before, const void *bytes, size_t length)
{
    return ~(uint32_t)crc32(~before & UINT32_MAX, bytes, (uInt)length);
}

static const char image_ends[] = "the partclone image ends";

/* Headers. */

static struct bw_error *read_header(struct bw_xlator *device, struct partclone *partclone)
{
    enum { ORDER = 0xc0de, BITS = 1, CHECKSUM = 4 };
    struct disk_1 first;
    struct disk_2 second;
    BW_TRY(bw_read_inside(NULL, device, image_ends, 0, &second, sizeof second));
    if (memcmp(second.magic, magic, sizeof magic) == 0 && memcmp(second.version, "0002", 4) == 0) {
        if (bw_get16(second.byte_order) != ORDER)
            return bw_error_create(BW_ERROR_UNSUPPORTED,
                                   "a partclone image of a big-endian machine is not read");
        if (checksum_of(UINT32_MAX, &second, offsetof(struct disk_2, checksum)) !=
            bw_get32(second.checksum))
            return bw_error_create(BW_ERROR_CORRUPT,
                                   "the checksum of the header of the partclone image is wrong");
        partclone->block_size = bw_get32(second.block_size);
        partclone->blocks = bw_get64(second.blocks);
        partclone->size = bw_get64(second.device_size);
        partclone->has_bytes = second.map_mode != BITS;
        partclone->map = sizeof second;
        partclone->map_length = partclone->blocks;
        if (!partclone->has_bytes)
            partclone->map_length = partclone->blocks / 8 + (partclone->blocks % 8 != 0);
        partclone->data = partclone->map + partclone->map_length + CHECKSUM;
        partclone->checksum_size = bw_get16(second.checksum_size);
        partclone->checksum_blocks = bw_get32(second.checksum_blocks);
    } else {
        BW_TRY(bw_read_inside(NULL, device, image_ends, 0, &first, sizeof first));
        if (memcmp(first.magic, magic, sizeof magic) != 0 || memcmp(first.version, "0001", 4) != 0)
            return bw_error_create(BW_ERROR_UNSUPPORTED, "a partclone image of an unknown version");
        partclone->block_size = bw_get32(first.block_size);
        partclone->blocks = bw_get64(first.blocks);
        partclone->size = bw_get64(first.device_size);
        partclone->has_bytes = true;
        partclone->map = sizeof first;
        partclone->map_length = partclone->blocks;
        partclone->data = partclone->map + partclone->map_length + sizeof map_end;
        partclone->checksum_size = 4;
        partclone->checksum_blocks = 1;
    }

    const uint32_t block = partclone->block_size;
    const uint64_t image_size = bw_xlator_size(device);
    if (!block || block > LARGEST_BLOCK || block & (block - 1) || !partclone->blocks ||
        partclone->blocks > INT64_MAX / block)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the partclone image has %" PRIu64 " blocks of %" PRIu32 " bytes",
                               partclone->blocks, block);
    if (partclone->map_length > image_size || partclone->data > image_size)
        return bw_error_create(BW_ERROR_CORRUPT, "the partclone image ends in its map of blocks");
    if (partclone->checksum_size && !partclone->checksum_blocks)
        return bw_error_create(BW_ERROR_CORRUPT, "the partclone image has checksums of no blocks");
    if (!partclone->size || partclone->size > partclone->blocks * block)
        partclone->size = partclone->blocks * block;
    return NULL;
}

/* The map. */

static uint64_t blocks_of_page(const struct partclone *partclone)
{
    return partclone->has_bytes ? PAGE : PAGE * 8;
}

static uint32_t page_length(const struct partclone *partclone, uint64_t page)
{
    return (uint32_t)bw_min(partclone->map_length - page * PAGE, PAGE);
}

static bool bit_at(const struct partclone *partclone, const uint8_t *bytes, uint64_t index)
{
    return partclone->has_bytes ? bytes[index] == 1 : bytes[index / 8] >> index % 8 & 1;
}

/* Counts the blocks before one of a page. */
static uint64_t count_before(const struct partclone *partclone, const uint8_t *bytes,
                             uint64_t index)
{
    uint64_t count = 0, done = 0;
    for (; !partclone->has_bytes && index - done >= 64; done += 64) {
        uint64_t word;
        memcpy(&word, bytes + done / 8, sizeof word);
        count += (unsigned)__builtin_popcountll(word);
    }
    for (; done < index; done++)
        count += bit_at(partclone, bytes, done);
    return count;
}

/* Counts the blocks before each page of the map. A damaged map is reported. */
static struct bw_error *count_blocks(struct bw_xlator *xlator)
{
    struct partclone *partclone = bw_xlator_private(xlator);
    struct bw_xlator *device = bw_xlator_child(xlator, 0);
    uint8_t bytes[PAGE];
    uint64_t rank = 0;
    uint32_t checksum = UINT32_MAX;
    partclone->page_count = (partclone->map_length + PAGE - 1) / PAGE;
    partclone->ranks = malloc((partclone->page_count + 1) * sizeof *partclone->ranks);
    if (!partclone->ranks)
        return bw_error_no_memory();
    for (uint64_t page = 0; page < partclone->page_count; page++) {
        const uint32_t length = page_length(partclone, page);
        memset(bytes, 0, sizeof bytes);
        BW_TRY(
            bw_read_inside(NULL, device, image_ends, partclone->map + page * PAGE, bytes, length));
        checksum = checksum_of(checksum, bytes, length);
        partclone->ranks[page] = rank;
        rank += count_before(partclone, bytes, blocks_of_page(partclone));
    }
    partclone->ranks[partclone->page_count] = rank;

    /* A text follows the map of version 1, a checksum the map of version 2. */
    char end[8];
    bw_le32 stored;
    const uint64_t map_ends = partclone->map + partclone->map_length;
    const uint32_t length = (uint32_t)(partclone->data - map_ends);
    BW_TRY(bw_read_inside(NULL, device, image_ends, map_ends, end, length));
    memcpy(&stored, end, sizeof stored);
    bool is_valid = bw_get32(stored) == checksum;
    if (length == sizeof map_end)
        is_valid = memcmp(end, map_end, sizeof map_end) == 0;
    if (!is_valid)
        bw_xlator_report(xlator, BW_WARNING,
                         bw_error_create(BW_ERROR_CORRUPT, "the map of the blocks in the partclone "
                                                           "image is damaged"));
    return NULL;
}

/* Loads a page of the map into its slot; the lock is held. */
static struct bw_error *load_page(const struct bw_frame *frame, struct bw_xlator *xlator,
                                  uint64_t page, const uint8_t **bytes)
{
    struct partclone *partclone = bw_xlator_private(xlator);
    const uint64_t slot = page % SLOTS;
    uint8_t *kept = partclone->slots[slot].bytes;
    *bytes = kept;
    if (partclone->slots[slot].page == page + 1)
        return NULL;
    partclone->slots[slot].page = 0;
    memset(kept, 0, PAGE);
    BW_TRY(bw_read_inside(frame, bw_xlator_child(xlator, 0), image_ends,
                          partclone->map + page * PAGE, kept, page_length(partclone, page)));
    partclone->slots[slot].page = page + 1;
    return NULL;
}

/* Reading. */

/* Finds a run of blocks that are next to each other in the image. */
static struct bw_error *locate(const struct bw_frame *frame, struct bw_xlator *xlator,
                               uint64_t address, uint64_t wanted, struct bw_below *below)
{
    struct partclone *partclone = bw_xlator_private(xlator);
    const uint64_t block = address / partclone->block_size,
                   inside = address % partclone->block_size;
    const uint64_t per_page = blocks_of_page(partclone), page = block / per_page;
    const uint64_t begin = block % per_page;
    const uint8_t *bytes;
    below->layer = bw_xlator_child(xlator, 0);
    const uint64_t image_end = bw_xlator_size(below->layer);
    pthread_mutex_lock(&partclone->lock);
    struct bw_error *error = load_page(frame, xlator, page, &bytes);
    uint64_t end = begin;
    if (!error && bit_at(partclone, bytes, begin)) {
        const uint64_t rank = partclone->ranks[page] + count_before(partclone, bytes, begin);
        const uint32_t strip = partclone->checksum_blocks;
        uint64_t most = per_page;
        below->offset = partclone->data + rank * partclone->block_size + inside;
        if (partclone->checksum_size) {
            most = strip - rank % strip;
            below->offset += rank / strip * partclone->checksum_size;
        }
        while (end < per_page && end - begin < most && bit_at(partclone, bytes, end))
            end++;
        below->length = (end - begin) * partclone->block_size - inside;
    }
    pthread_mutex_unlock(&partclone->lock);
    if (error)
        return error;
    if (end == begin)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "block %" PRIu64 " at %" PRIu64 " is not in the backup", block,
                               address);
    if (below->offset > image_end || bw_min(wanted, below->length) > image_end - below->offset)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the backup is cut off before block %" PRIu64 " at %" PRIu64, block,
                               address);
    return NULL;
}

static const struct bw_piece_map pieces = {"the device ends", locate, NULL};

/* Missing blocks count as zeros. */
static uint64_t next_stored(struct bw_xlator *xlator, uint64_t address)
{
    struct partclone *partclone = bw_xlator_private(xlator);
    const uint64_t per_page = blocks_of_page(partclone);
    uint64_t block = address / partclone->block_size, index = block % per_page;
    for (uint64_t page = block / per_page; page < partclone->page_count; page++, index = 0) {
        const uint8_t *bytes;
        if (partclone->ranks[page] == partclone->ranks[page + 1])
            continue;
        pthread_mutex_lock(&partclone->lock);
        BW_AUTO_ERROR struct bw_error *error = load_page(NULL, xlator, page, &bytes);
        while (!error && index < per_page && !bit_at(partclone, bytes, index))
            index++;
        pthread_mutex_unlock(&partclone->lock);
        if (index == per_page)
            continue;
        const uint64_t found = (page * per_page + index) * partclone->block_size;
        return found >= partclone->size ? UINT64_MAX : bw_max(found, address);
    }
    return UINT64_MAX;
}

/* The layer. */

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct partclone *partclone = bw_xlator_private(xlator);
    partclone->pieces = &pieces;
    bw_xlator_set_title(xlator, "partclone");
    pthread_mutex_init(&partclone->lock, NULL);
    BW_TRY(read_header(bw_xlator_child(xlator, 0), partclone));
    bw_xlator_set_size(xlator, partclone->size);
    return count_blocks(xlator);
}

static void fini(struct bw_xlator *xlator)
{
    struct partclone *partclone = bw_xlator_private(xlator);
    free(partclone->ranks);
    pthread_mutex_destroy(&partclone->lock);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    const struct partclone *partclone = bw_xlator_private(xlator);
    bw_json_number(json, "block_size", partclone->block_size);
    bw_json_number(json, "blocks", partclone->blocks);
    bw_json_number(json, "in_the_backup",
                   partclone->ranks ? partclone->ranks[partclone->page_count] : 0);
}

/* The container. */

static bool find(struct bw_xlator *device, struct bw_container_id *id)
{
    char bytes[sizeof magic];
    (void)id;
    return bw_try_read_raw(NULL, device, 0, bytes, sizeof bytes) &&
           memcmp(bytes, magic, sizeof magic) == 0;
}

const struct bw_container_type bw_partclone_container = {.layer = "layout/partclone", .find = find};

static const char page[] =
    "Shows an image of partclone as the device that it is a backup of, without restoring it. The "
    "default graph contains it for images that begin with the magic number of partclone, also if "
    "they are compressed. Clonezilla writes such images.\n\n"
    "    btrfs-walk sda2.btrfs-ptcl-img\n"
    "    btrfs-walk check --data sda2.btrfs-ptcl-img    whether the backup is complete\n\n"
    "A block that the backup does not contain is an error, not zeros. So check and the commands "
    "that read files name the missing blocks. The formats 0001 and 0002 are read. The checksums of "
    "partclone are not compared, because those of btrfs are.\n";

const struct bw_xlator_class bw_layout_partclone_class = {
    .type = "layout/partclone",
    .description = "shows an image of partclone as a device",
    .page = page,
    BW_ONE_CHILD(BW_ADDRESS_DEVICE),
    .private_size = sizeof(struct partclone),
    .operations = {.init = init,
                   .fini = fini,
                   .read = bw_pieces_read,
                   .advise = bw_pieces_advise,
                   .size = bw_xlator_own_size,
                   .next_stored = next_stored,
                   .dump = dump,
                   .title = bw_xlator_title},
};
