/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target before the image: bytes straight to the decoders of the structures on disk, each in a
 * block of memory that ends where the bytes do, so that the address sanitizer sees the first byte
 * too many. The first byte chooses the decoder.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "fuzz/targets.h"
#include "ondisk/checksum.h"
#include "ondisk/chunk.h"
#include "ondisk/items.h"
#include "ondisk/superblock.h"
#include "walk/leaves.h"

/* Reads every byte, so that a view that leaves its item is seen. */
static uint64_t touch(const void *bytes, size_t length)
{
    const volatile uint8_t *next = bytes;
    uint64_t sum = 0;
    while (length--)
        sum += *next++;
    return sum;
}

static void *copy_of(const uint8_t *data, size_t size)
{
    void *copy = malloc(size ? size : 1);
    if (!copy)
        fuzz_fail("out of memory");
    if (size)
        memcpy(copy, data, size);
    return copy;
}

/* Items. */

static void read_entries(const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry)) {
        touch(entry.name, entry.name_length);
        bw_name_is_valid(entry.name, entry.name_length);
    }
    if (!bw_cursor_bad(&cursor) && cursor.next != cursor.end)
        fuzz_fail("reading entries ended early without a reason");
}

static void read_references(const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    while (bw_inode_ref_next(&cursor, &item->key, &ref)) {
        touch(ref.name, ref.name_length);
        bw_name_is_valid(ref.name, ref.name_length);
    }
    if (!bw_cursor_bad(&cursor) && cursor.next != cursor.end)
        fuzz_fail("reading references ended early without a reason");
}

/* Accepted values do not overflow in calculations, and compressed extents are small. */
static void read_file_extent(const struct bw_item *item)
{
    struct bw_file_extent extent;
    struct bw_error *error = bw_file_extent_decode(item, 4096, &extent);
    if (!error) {
        touch(extent.inline_data, extent.inline_length);
        if (!extent.num_bytes || item->key.offset + extent.num_bytes < item->key.offset ||
            extent.disk_bytenr + extent.disk_num_bytes < extent.disk_bytenr)
            fuzz_fail("an extent of no length, or beyond all addresses");
        bool stored = extent.disk_bytenr && extent.type == BW_FILE_EXTENT_REGULAR;
        if (extent.compression && (stored || extent.inline_data) &&
            (extent.ram_bytes > BW_MAX_COMPRESSED_EXTENT ||
             extent.offset + extent.num_bytes > extent.ram_bytes))
            fuzz_fail("a compressed extent that is too long");
    }
    bw_error_free(error);
}

static void read_item(const struct bw_item *item)
{
    struct bw_root_item root;
    struct bw_root_ref ref;
    struct bw_chunk chunk;
    touch(item->data, item->size);
    read_entries(item);
    read_references(item);
    if (bw_root_ref_decode(item, &ref))
        touch(ref.name, ref.name_length);
    bw_error_free(bw_root_item_decode(item, &root));
    struct bw_error *error = bw_chunk_decode(item->key.offset, item->data, item->size, &chunk);
    if (!error)
        touch(chunk.stripes, chunk.stripe_count * sizeof *chunk.stripes);
    bw_error_free(error);
    bw_chunk_is_remapped_away(item->data, item->size);
    read_file_extent(item);
}

static void fuzz_item(uint8_t *bytes, size_t size)
{
    static const uint8_t types[] = {BW_INODE_REF, BW_INODE_EXTREF, BW_DIR_INDEX, BW_ROOT_ITEM,
                                    BW_CHUNK_ITEM};
    for (size_t i = 0; i < sizeof types; i++) {
        const struct bw_item item = {{256, types[i], 1 << 20}, bytes, (uint32_t)size};
        read_item(&item);
    }
}

/* Blocks. */

/* A list agrees with its leaf: the same numbers of regular files, directories and subvolumes. */
static void read_list(const struct bw_node *leaf)
{
    struct bw_buffer list = {0};
    if (bw_entry_list_make(leaf, false, &list) && list.length) {
        struct bw_entry_list_cursor cursor = bw_entry_list_begin(&list, false), entries;
        struct bw_dir_entry entry;
        uint64_t inode;
        while (bw_entry_list_next_directory(&cursor, &inode, &entries))
            while (bw_entry_list_next_entry(&entries, &entry))
                if (!bw_name_is_valid(entry.name, entry.name_length))
                    fuzz_fail("a list holds a bad name");
    }
    bw_buffer_free(&list);
}

static void read_block(const struct bw_node *node)
{
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        struct bw_item item;
        if (node->level)
            bw_node_pointer_at(node, slot);
        else if (bw_leaf_item(node, slot, &item))
            read_item(&item);
    }
    if (!node->level)
        read_list(node);
}

/* Corrects the header; otherwise, almost all inputs would be rejected because of it. */
static void fuzz_block(uint8_t *bytes, size_t size)
{
    const uint32_t nodesize = 4096;
    uint8_t *block = calloc(1, nodesize);
    if (!block)
        fuzz_fail("out of memory");
    memcpy(block, bytes, size < nodesize ? size : nodesize);
    struct bw_disk_header *header = (void *)block;
    bool fits = size && bytes[0] % 4;
    const struct bw_tree_block_expectation expectation = {
        .owner = BW_TOP_SUBVOLUME,
        .generation = fits ? bw_get64(header->generation) : 7,
        .level = fits ? header->level : 0,
        .lenient = size > 1 && bytes[1] % 2,
    };
    if (fits)
        header->owner = bw_put64(BW_TOP_SUBVOLUME);
    struct bw_error *error = bw_node_check(block, nodesize, bw_get64(header->bytenr), &expectation);
    const struct bw_node node = bw_node_view(block, nodesize);
    if (!error)
        read_block(&node);
    if (!error !=
            bw_node_meets_expectation(block, nodesize, bw_get64(header->bytenr), &expectation) &&
        error && bw_get32(header->item_count) == 0)
        fuzz_fail("an empty block is refused and accepted");
    bw_error_free(error);
    free(block);
}

/* Superblocks. */

static void read_system_chunks(const struct bw_superblock *superblock)
{
    if (superblock->system_chunk_array_size > BW_SYSTEM_CHUNK_ARRAY_SIZE)
        fuzz_fail("the system chunks are larger than their array");
    for (size_t at = 0; at < superblock->system_chunk_array_size; at++) {
        struct bw_chunk chunk;
        size_t left = superblock->system_chunk_array_size - at;
        size_t size = bw_chunk_item_size(superblock->system_chunk_array + at, left);
        if (size > left)
            fuzz_fail("a chunk item is larger than what it lies in");
        if (size)
            bw_error_free(bw_chunk_decode(0, superblock->system_chunk_array + at, size, &chunk));
    }
}

static void fuzz_superblock(uint8_t *bytes, size_t size)
{
    struct bw_superblock superblock;
    uint8_t *block = calloc(1, BW_SUPERBLOCK_SIZE), sum[32];
    if (!block)
        fuzz_fail("out of memory");
    memcpy(block, bytes, size < BW_SUPERBLOCK_SIZE ? size : BW_SUPERBLOCK_SIZE);
    struct bw_disk_superblock *disk = (void *)block;
    if (size && bytes[0] % 8) {
        disk->magic = bw_put64(BW_SUPERBLOCK_MAGIC);
        disk->bytenr = bw_put64(bw_superblock_offset(0));
        disk->csum_type = bw_put16(bw_get16(disk->csum_type) % BW_CHECKSUM_TYPES);
        bw_checksum_compute(bw_get16(disk->csum_type), block + BW_CSUM_SIZE,
                            BW_SUPERBLOCK_SIZE - BW_CSUM_SIZE, sum);
        memcpy(disk->csum, sum, sizeof disk->csum);
    }
    struct bw_error *error = bw_superblock_decode(block, bw_superblock_offset(0), &superblock);
    if (!error) {
        read_system_chunks(&superblock);
        touch(superblock.label, strlen(superblock.label));
        bw_error_free(bw_features_check(superblock.incompat_flags));
    }
    bw_error_free(error);
    free(block);
}

/* Escaping. */

static void fuzz_escape(uint8_t *bytes, size_t size)
{
    struct bw_buffer text = {0}, halves = {0};
    bw_escape_append(&text, bytes, size);
    for (size_t i = 0; i < text.length; i++)
        if ((uint8_t)text.data[i] <= ' ' && !(text.data[i] == ' ' && i && text.data[i - 1] == '\\'))
            fuzz_fail("escaped text holds byte %u", (uint8_t)text.data[i]);
    size_t half = size / 2;
    while (half < size && bytes[half] >= 0x80)
        half++;
    while (half && half < size && bytes[half - 1] >= 0x80)
        half--;
    bw_escape_append(&halves, bytes, half);
    bw_escape_append(&halves, bytes + half, size - half);
    if (text.length > 4 * size)
        fuzz_fail("escaping made %zu bytes of %zu", text.length, size);
    if (half && half < size && bytes[half] < 0x80 &&
        (halves.length != text.length || memcmp(halves.data, text.data, text.length) != 0))
        fuzz_fail("escaping depends on where the bytes are cut");
    bw_buffer_free(&text);
    bw_buffer_free(&halves);
}

void fuzz_formats(const uint8_t *data, size_t size)
{
    static void (*const decoders[])(uint8_t * bytes, size_t size) = {fuzz_item, fuzz_block,
                                                                     fuzz_superblock, fuzz_escape};
    if (!size)
        return;
    uint8_t *bytes = copy_of(data + 1, size - 1);
    bw_error_free(bw_checksum_prepare(BW_CHECKSUM_SHA256));
    decoders[data[0] % 4](bytes, size - 1);
    free(bytes);
}
