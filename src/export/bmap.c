/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Block maps. The file contains its own hash, computed with zeros in its place. */
#include "export/bmap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "export/hash.h"

struct bw_bmap {
    struct bw_buffer text;
    struct bw_hash *hash;
    size_t own_hash;     /* offset in the text where the hash of the file goes */
    uint64_t start, end; /* the present range; empty: none */
};

/* The head, with zeros in the place of the file's own hash. */
static void write_head(struct bw_bmap *map, uint64_t size, uint64_t blocks)
{
    struct bw_buffer *text = &map->text;
    bw_buffer_format(text,
                     "<?xml version=\"1.0\" ?>\n"
                     "<bmap version=\"2.0\">\n"
                     " <ImageSize> %" PRIu64 " </ImageSize>\n"
                     " <BlockSize> %d </BlockSize>\n"
                     " <BlocksCount> %" PRIu64 " </BlocksCount>\n"
                     " <MappedBlocksCount> %" PRIu64 " </MappedBlocksCount>\n"
                     " <ChecksumType> sha256 </ChecksumType>\n"
                     " <BmapFileChecksum> ",
                     size, BW_BMAP_BLOCK, (size + BW_BMAP_BLOCK - 1) / BW_BMAP_BLOCK, blocks);
    map->own_hash = text->length;
    bw_buffer_format(text, "%0*d </BmapFileChecksum>\n <BlockMap>\n",
                     (int)bw_hash_digits(BW_HASH_SHA256), 0);
}

struct bw_error *bw_bmap_create(uint64_t size, uint64_t blocks, struct bw_bmap **result)
{
    struct bw_bmap *map = *result = calloc(1, sizeof *map);
    if (!map)
        return bw_error_no_memory();
    bw_hash_prepare();
    struct bw_error *error = bw_hash_create(BW_HASH_SHA256, &map->hash);
    if (error)
        bw_bmap_destroy(BW_TAKE(*result));
    else
        write_head(map, size, blocks);
    return error;
}

static struct bw_error *end_range(struct bw_bmap *map)
{
    char hash[BW_HASH_TEXT];
    if (map->start == map->end)
        return NULL;
    bw_hash_end(map->hash, hash);
    bw_hash_begin(map->hash);
    const uint64_t first = map->start / BW_BMAP_BLOCK, last = (map->end - 1) / BW_BMAP_BLOCK;
    bw_buffer_format(&map->text, "  <Range chksum=\"%s\"> %" PRIu64, hash, first);
    if (last > first)
        bw_buffer_format(&map->text, "-%" PRIu64, last);
    bw_buffer_format(&map->text, " </Range>\n");
    return map->text.failed ? bw_error_no_memory() : NULL;
}

struct bw_error *bw_bmap_add(struct bw_bmap *map, uint64_t offset, const void *bytes, size_t length)
{
    if (offset != map->end) {
        BW_TRY(end_range(map));
        map->start = offset;
    }
    map->end = offset + length;
    bw_hash_add(map->hash, bytes, length);
    return NULL;
}

struct bw_error *bw_bmap_end(struct bw_bmap *map, const struct bw_buffer **text)
{
    char hash[BW_HASH_TEXT];
    BW_TRY(end_range(map));
    bw_buffer_format(&map->text, " </BlockMap>\n</bmap>\n");
    if (map->text.failed)
        return bw_error_no_memory();
    bw_hash_begin(map->hash);
    bw_hash_add(map->hash, map->text.data, map->text.length);
    bw_hash_end(map->hash, hash);
    memcpy(map->text.data + map->own_hash, hash, strlen(hash));
    *text = &map->text;
    return NULL;
}

void bw_bmap_destroy(struct bw_bmap *map)
{
    if (!map)
        return;
    bw_hash_destroy(map->hash);
    bw_buffer_free(&map->text);
    free(map);
}
