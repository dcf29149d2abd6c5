/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Telling of which file systems tree blocks are: what looks like a block of a new one is tried with
 * all sizes and checksums. */
#include "rescue/identify_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "graph/wind.h"

enum { PIECE = 4 << 20, WINDOW = PIECE + BW_MAX_NODESIZE, MOST_TRIES = 1 << 14 };

static bool is_known(const struct bw_block_kinds *kinds, const uint8_t *fsid)
{
    for (size_t i = 0; i < kinds->count; i++)
        if (memcmp(kinds->kinds[i].fsid[0], fsid, BW_UUID_SIZE) == 0)
            return true;
    return false;
}

/* Whether bytes may be the header of a block. Nearly nothing else may. */
static bool is_likely(const uint8_t *bytes)
{
    const struct bw_disk_header *header = (const void *)bytes;
    const uint64_t bytenr = bw_get64(header->bytenr);
    static const uint8_t none[BW_UUID_SIZE];
    return header->level < BW_MAX_LEVEL && bytenr && bytenr % BW_MIN_SECTORSIZE == 0 &&
           bw_get64(header->generation) && bw_get64(header->owner) &&
           bw_get32(header->item_count) < BW_MAX_NODESIZE / sizeof(struct bw_disk_item) &&
           memcmp(header->fsid, none, BW_UUID_SIZE) != 0 &&
           memcmp(header->chunk_tree_uuid, none, BW_UUID_SIZE) != 0;
}

static void add(struct bw_block_kinds *kinds, const uint8_t *fsid, enum bw_checksum_type type,
                uint32_t nodesize)
{
    struct bw_block_kind *kind = &kinds->kinds[kinds->count++];
    memcpy(kind->fsid[0], fsid, BW_UUID_SIZE);
    kind->identity = (struct bw_found_identity){
        .fsids = kind->fsid, .fsid_count = 1, .checksum_type = type, .nodesize = nodesize};
}

static struct bw_error *try_block(struct bw_block_kinds *kinds, const uint8_t *bytes, size_t left)
{
    const struct bw_disk_header *header = (const void *)bytes;
    for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++) {
        BW_TRY(bw_checksum_prepare((enum bw_checksum_type)type));
        for (uint32_t size = BW_MIN_SECTORSIZE; size <= BW_MAX_NODESIZE && size <= left; size *= 2)
            if (bw_checksum_matches_block((enum bw_checksum_type)type, bytes, size)) {
                add(kinds, header->fsid, (enum bw_checksum_type)type, size);
                return NULL;
            }
    }
    return NULL;
}

static struct bw_error *look(struct bw_block_kinds *kinds, const uint8_t *bytes, uint32_t length,
                             unsigned *tries)
{
    for (uint32_t at = 0; at + BW_MIN_SECTORSIZE <= length && at < PIECE; at += BW_MIN_SECTORSIZE) {
        const struct bw_disk_header *header = (const void *)(bytes + at);
        if (kinds->count == BW_MOST_KINDS || *tries == MOST_TRIES || !is_likely(bytes + at) ||
            is_known(kinds, header->fsid))
            continue;
        ++*tries;
        BW_TRY(try_block(kinds, bytes + at, length - at));
    }
    return NULL;
}

static struct bw_error *search(struct bw_xlator *device, struct bw_block_kinds *kinds,
                               uint8_t *buffer, unsigned *tries)
{
    const uint64_t size = bw_xlator_size(device);
    const struct bw_frame frame = bw_frame_above(NULL, bw_xlator_probes(device));
    for (uint64_t at = 0; at < size; at += PIECE) {
        at = bw_xlator_next_stored(device, at);
        if (at >= size)
            break;
        at -= at % BW_MIN_SECTORSIZE;
        struct bw_request request = {.kind = BW_REQUEST_RAW,
                                     .length = size - at < WINDOW ? (uint32_t)(size - at) : WINDOW,
                                     .address = at,
                                     .buffer = buffer};
        bw_wind(&frame, device, &request, 1);
        BW_AUTO_ERROR struct bw_error *error = request.error;
        if (!error)
            BW_TRY(look(kinds, buffer, request.length, tries));
    }
    return NULL;
}

struct bw_error *bw_block_kinds_find(const struct bw_image_set *set, struct bw_block_kinds *kinds)
{
    BW_AUTO_FREE uint8_t *buffer = aligned_alloc(BW_MIN_SECTORSIZE, WINDOW);
    unsigned tries = 0;
    if (!buffer)
        return bw_error_no_memory();
    for (size_t i = 0; i < set->count; i++)
        if (set->images[i].storage)
            BW_TRY(search(set->images[i].storage, kinds, buffer, &tries));
    return NULL;
}
