/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * If no image has a superblock, each gets one that is made from its tree blocks:
 *
 * 1. Blocks contain the fsid; their size and checksum type are found by trying. Each combination of
 *    ids is a candidate for the file system.
 * 2. Chunks and device extents in the leaves of a candidate determine which device an image is: the
 *    device where most blocks would be at their actual positions. Blocks copied into a file are not
 *    at their positions, so a file system in a file is no candidate.
 * 3. The new superblock contains no roots; chunk_tree.c and root_tree.c search for them.
 *
 * The first two steps also list all file systems whose blocks are on the images.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "base/search.h"
#include "base/vector.h"
#include "btrfs-walk/inode.h"
#include "graph/wind.h"
#include "ondisk/disk_items.h"
#include "rescue/chunk_set.h"
#include "rescue/device_scan.h"
#include "rescue/rescue.h"

enum {
    MOST_KINDS = 8,
    PIECE = 4 << 20,
    WINDOW = PIECE + BW_MAX_NODESIZE,
    MOST_TRIES = 1 << 14, /* maximum number of likely blocks that no checksum type and size fits, of
                           * known kinds and of others */
    MOST_ASKED = 1 << 14, /* maximum number of blocks per image that are used to identify its device
                           */
    MOST_DEVICES = 256,   /* maximum number of candidates for an image */
    MOST_EXTENTS = 256,   /* maximum number of extents that may contain a block */
};

/* File systems, and properties of their tree blocks. */
struct block_kinds {
    struct block_kind {
        struct bw_block_ids ids;
        struct bw_found_identity identity; /* `identity.ids` points to `ids` */
    } kinds[MOST_KINDS];
    size_t count;
};

/* Whether bytes may be the header of a block, which is very unlikely for anything else. */
static bool is_likely(const uint8_t *bytes)
{
    const struct bw_disk_header *header = (const void *)bytes;
    const struct bw_disk_superblock *super = (const void *)bytes;
    const uint64_t bytenr = bw_get64(header->bytenr);
    static const uint8_t none[BW_UUID_SIZE];
    /* Kernels write two of the lowest eight flags, and revision 0 or 1. */
    const uint64_t never_set = ~(UINT64_C(0xff) | UINT64_C(1) << BW_BACKREF_REVISION_SHIFT);
    return bw_get64(super->magic) != BW_SUPERBLOCK_MAGIC && header->level < BW_MAX_LEVEL &&
           bytenr && bytenr % BW_MIN_SECTORSIZE == 0 && bw_get64(header->generation) &&
           bw_get64(header->owner) && !(bw_get64(header->flags) & never_set) &&
           bw_get32(header->item_count) < BW_MAX_NODESIZE / sizeof(struct bw_disk_item) &&
           memcmp(header->fsid, none, BW_UUID_SIZE) != 0 &&
           memcmp(header->chunk_tree_uuid, none, BW_UUID_SIZE) != 0;
}

/* Adds the type of the checksum of a block to its kind, if it is another one: btrfstune was
 * interrupted while it changed the type. False if no type fits. */
static bool add_type(struct bw_found_identity *identity, const uint8_t *bytes, uint32_t length)
{
    const uint32_t nodesize = identity->nodesize;
    if (nodesize > length || bw_checksum_accepts_block(identity->checksum_type,
                                                       identity->other_checksums, bytes, nodesize))
        return true;
    for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++) {
        if (!bw_checksum_matches_block((enum bw_checksum_type)type, bytes, nodesize))
            continue;
        identity->other_checksums |= BW_CHECKSUM_BIT(type);
        return true;
    }
    return false;
}

/* Finds the checksum type and the size of the block at the beginning of `bytes`. */
static bool find_kind(const uint8_t *bytes, uint32_t length, struct block_kind *kind)
{
    const struct bw_disk_header *header = (const void *)bytes;
    for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++) {
        for (uint32_t size = BW_MIN_SECTORSIZE; size <= BW_MAX_NODESIZE && size <= length;
             size *= 2) {
            if (!bw_checksum_matches_block((enum bw_checksum_type)type, bytes, size))
                continue;
            memcpy(kind->ids.fsid, header->fsid, BW_UUID_SIZE);
            memcpy(kind->ids.chunk_tree_uuid, header->chunk_tree_uuid, BW_UUID_SIZE);
            kind->identity =
                (struct bw_found_identity){.ids = &kind->ids,
                                           .id_count = 1,
                                           .checksum_type = (enum bw_checksum_type)type,
                                           .nodesize = size};
            return true;
        }
    }
    return false;
}

/* Finds tree blocks of up to MOST_KINDS file systems on the images, or of the wanted one. If
 * several file systems have the same fsid, the wanted id may also be a chunk_tree_uuid. `kinds`
 * must not be moved afterwards. */
static struct bw_error *block_kinds_find(const struct bw_fs *fs, const struct bw_image_set *set,
                                         struct block_kinds *kinds)
{
    BW_AUTO_FREE uint8_t *buffer = aligned_alloc(BW_MIN_SECTORSIZE, WINDOW);
    unsigned tries = 0, bad = 0;
    if (!buffer)
        return bw_error_no_memory();
    for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++)
        BW_TRY(bw_checksum_prepare((enum bw_checksum_type)type));
    for (size_t i = 0; i < set->count; i++) {
        struct bw_xlator *device = set->images[i].storage;
        const uint64_t size = device ? bw_xlator_size(device) : 0;
        for (uint64_t start = 0; start < size; start += PIECE) {
            start = bw_xlator_next_stored(device, start);
            if (start >= size)
                break;
            start -= start % BW_MIN_SECTORSIZE;
            const uint32_t length = size - start < WINDOW ? (uint32_t)(size - start) : WINDOW;
            BW_AUTO_ERROR struct bw_error *error = bw_read_raw(NULL, device, start, buffer, length);
            for (uint32_t at = 0; !error && at + BW_MIN_SECTORSIZE <= length && at < PIECE;
                 at += BW_MIN_SECTORSIZE) {
                const uint8_t *bytes = buffer + at;
                const struct bw_disk_header *header = (const void *)bytes;
                size_t known = 0;
                if (!is_likely(bytes))
                    continue;
                while (known < kinds->count &&
                       !bw_found_has_ids(&kinds->kinds[known].identity, bytes))
                    known++;
                struct block_kind *kind = &kinds->kinds[known];
                bool is_block = false;
                if (known < kinds->count && bad < MOST_TRIES) {
                    is_block = add_type(&kind->identity, bytes, length - at);
                    bad += !is_block;
                } else if (known < MOST_KINDS && known == kinds->count && tries < MOST_TRIES &&
                           (!fs->has_wanted_fsid ||
                            memcmp(header->fsid, fs->wanted_fsid, BW_UUID_SIZE) == 0 ||
                            memcmp(header->chunk_tree_uuid, fs->wanted_fsid, BW_UUID_SIZE) == 0)) {
                    is_block = find_kind(bytes, length - at, kind);
                    kinds->count += is_block;
                    tries++;
                }
                /* Items of a block often look like the header of another one. */
                if (is_block)
                    at += kind->identity.nodesize - BW_MIN_SECTORSIZE;
            }
        }
    }
    return NULL;
}

/* A candidate for the file system. */
struct candidate {
    struct bw_fs *fs;
    struct bw_image_set *set;
    struct bw_device_scan scan;
    struct bw_chunk_facts facts;
    struct bw_chunk_set chunks;
    uint64_t *devids; /* of the images; 0: unknown */
    size_t score;     /* number of blocks at the right positions */
    bool is_guessed;  /* the right positions are unknown, and so are the devices */
};

static void candidate_free(struct candidate *candidate)
{
    bw_device_scan_free(&candidate->scan);
    bw_chunk_facts_free(&candidate->facts);
    bw_chunk_set_free(&candidate->chunks);
    free(candidate->devids);
}

/* Votes for the device of an image. */
struct votes {
    size_t count;
    struct {
        uint64_t devid;
        size_t votes;
    } devices[MOST_DEVICES];
};

static void vote_for_device(struct votes *votes, uint64_t devid)
{
    size_t at = 0;
    while (at < votes->count && votes->devices[at].devid != devid)
        at++;
    if (at == MOST_DEVICES)
        return;
    votes->count += at == votes->count;
    votes->devices[at].devid = devid;
    votes->devices[at].votes++;
}

/* Whether a block is at its position in an extent, if its chunk has this number of columns. */
static bool is_at(const struct bw_found_extent *extent, uint64_t columns,
                  const struct bw_block_match *match)
{
    const uint64_t place = match->offset - extent->offset;
    const uint64_t offset = match->bytenr - extent->chunk;
    return match->offset >= extent->offset && place < extent->length &&
           offset / BW_STRIPE_LENGTH / columns == place / BW_STRIPE_LENGTH &&
           offset % BW_STRIPE_LENGTH == place % BW_STRIPE_LENGTH;
}

/* Votes for the devices on which a block would be at its actual position: according to its chunk
 * or, if that is unknown, to device extents. These show no profile, so every number of columns is
 * tried. Extents are sorted by chunk. */
static void vote(const struct candidate *candidate, const struct bw_block_match *match,
                 struct votes *votes)
{
    const struct bw_found_extent *extents = candidate->facts.extents.items;
    struct bw_copies copies;
    if (bw_copies_begin(&copies, &candidate->chunks, match->bytenr)) {
        while (bw_copies_next(&copies))
            if (copies.offset == match->offset)
                vote_for_device(votes, copies.devid);
        return;
    }
    const size_t end =
        BW_FIRST_INDEX(i, candidate->facts.extents.count, extents[i].chunk > match->bytenr);
    size_t first = end;
    while (first > 0 && end - first < MOST_EXTENTS &&
           extents[first - 1].chunk == extents[end - 1].chunk)
        first--;
    for (size_t i = first; i < end; i++) {
        uint64_t columns = 1;
        while (columns <= end - first && !is_at(&extents[i], columns, match))
            columns++;
        if (columns <= end - first)
            vote_for_device(votes, extents[i].devid);
    }
}

/* The newest generation of the root tree and the extent tree, because every transaction writes
 * these. root_tree.c decides whether it was committed. */
static uint64_t newest_generation(const struct candidate *candidate)
{
    const struct bw_device_scan *scan = &candidate->scan;
    uint64_t newest = 0;
    for (size_t i = 0; i < scan->matches.count; i++) {
        const uint64_t owner = bw_block_match_owner(scan, &scan->matches.items[i]);
        if ((owner == BW_ROOT_TREE || owner == BW_EXTENT_TREE) &&
            scan->matches.items[i].generation > newest)
            newest = scan->matches.items[i].generation;
    }
    return newest;
}

/* Scans the images for the blocks of a candidate, and identifies the device of each image: the one
 * that most of its blocks vote for. If two images have the same contents at the same offsets, their
 * order does not matter. */
static struct bw_error *score_candidate(struct bw_fs *fs, struct bw_image_set *set,
                                        const struct block_kind *kind, struct candidate *candidate)
{
    *candidate = (struct candidate){.fs = fs,
                                    .set = set,
                                    .scan = {.fs = fs,
                                             .images = set->images,
                                             .image_count = set->count,
                                             .identity = kind->identity}};
    struct bw_device_scan *scan = &candidate->scan;
    BW_AUTO_FREE struct bw_device_range *ranges = calloc(set->count + 1, sizeof *ranges);
    BW_AUTO_FREE struct votes *votes = calloc(set->count + 1, sizeof *votes);
    bw_found_init(&scan->owners);
    candidate->devids = calloc(set->count + 1, sizeof *candidate->devids);
    if (!ranges || !votes || !candidate->devids)
        return bw_error_no_memory();
    for (size_t i = 0; i < set->count; i++)
        ranges[i] = (struct bw_device_range){i, 0, UINT64_MAX};
    BW_TRY(bw_device_scan_run(scan, ranges, set->count));

    /* Facts from all leaves, at any position. */
    struct bw_chunk_facts *facts = &candidate->facts;
    BW_AUTO_FREE uint8_t *buffer = malloc(scan->identity.nodesize);
    const struct bw_block_match *match;
    struct bw_node leaf;
    struct bw_item item;
    if (!buffer)
        return bw_error_no_memory();
    for (size_t i = 0; (match = bw_device_scan_leaf(scan, &i, BW_CHUNK_TREE, buffer, &leaf));)
        BW_TRY(bw_newest_add(&facts->chunks, &leaf, match->generation, 0));
    for (size_t i = 0; (match = bw_device_scan_leaf(scan, &i, BW_DEVICE_TREE, buffer, &leaf));)
        BW_TRY(bw_newest_add(&facts->devices, &leaf, match->generation, 0));
    BW_TRY(bw_chunk_facts_settle(facts));
    for (size_t at = 0; bw_newest_next(&facts->chunks, &at, &item);)
        if (item.key.type == BW_CHUNK_ITEM)
            BW_TRY(bw_chunk_set_add(&candidate->chunks, &item));

    const size_t step = scan->matches.count / MOST_ASKED + 1;
    for (size_t i = 0; i < scan->matches.count; i += step)
        vote(candidate, &scan->matches.items[i], &votes[scan->matches.items[i].image]);
    for (size_t i = 0; i < set->count; i++) {
        size_t best = 0;
        uint64_t devid = 0;
        for (size_t n = 0; n < votes[i].count; n++) {
            bool is_taken = false;
            for (size_t k = 0; k < set->count; k++)
                is_taken |= candidate->devids[k] == votes[i].devices[n].devid;
            if (votes[i].devices[n].votes > best && !is_taken) {
                best = votes[i].devices[n].votes;
                devid = votes[i].devices[n].devid;
            }
        }
        candidate->devids[i] = devid;
        candidate->score += best;
    }

    /* All leaves of the chunk tree and the device tree are overwritten: the block groups and a
     * search for stripes may still lead to the chunks. Nothing else knows the numbers of devices,
     * so any will do. */
    const bool has_facts = candidate->chunks.items.items.count || candidate->facts.extents.count;
    candidate->is_guessed = !has_facts && newest_generation(candidate);
    for (size_t i = 0; i < scan->matches.count && candidate->is_guessed; i++) {
        const size_t image = scan->matches.items[i].image;
        candidate->devids[image] = image + 1;
    }
    return NULL;
}

/* Making superblocks. */

/* Sets the type of checksums. If btrfstune was interrupted while it changed the type, the root tree
 * has a temporary item with the new one, and the superblock has the old one; the flag means the
 * last step, in which tree blocks have either type, or the steps before it. Otherwise, blocks of
 * other types are older than a change that is complete, if the newest leaf can tell. */
static struct bw_error *set_checksum_type(const struct candidate *candidate,
                                          struct bw_superblock *super)
{
    const struct bw_device_scan *scan = &candidate->scan;
    const struct bw_found_identity *identity = &scan->identity;
    const unsigned others = identity->other_checksums;
    const struct bw_key first = {BW_CSUM_CHANGE, BW_TEMPORARY_ITEM, 0};
    enum bw_checksum_type present = identity->checksum_type; /* the newest leaf has it */
    uint64_t newest = 0;
    struct bw_node leaf;
    struct bw_item item;
    BW_SCOPED(bw_newest) struct bw_newest items = {0};
    BW_AUTO_FREE uint8_t *buffer = malloc(identity->nodesize);
    if (!buffer)
        return bw_error_no_memory();
    const struct bw_block_match *match;
    for (size_t i = 0; (match = bw_device_scan_leaf(scan, &i, BW_ROOT_TREE, buffer, &leaf));) {
        BW_TRY(bw_newest_add(&items, &leaf, match->generation, BW_TEMPORARY_ITEM));
        if (match->generation < newest)
            continue;
        newest = match->generation;
        present = identity->checksum_type;
        for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++)
            if (others & BW_CHECKSUM_BIT(type) &&
                bw_checksum_matches_block((enum bw_checksum_type)type, buffer, identity->nodesize))
                present = (enum bw_checksum_type)type;
    }
    BW_TRY(bw_newest_settle(&items));
    size_t at = bw_newest_first(&items, &first);
    const bool is_changing = bw_newest_next(&items, &at, &item) &&
                             item.key.objectid == first.objectid && item.key.type == first.type &&
                             item.key.offset < BW_CHECKSUM_TYPES;
    super->checksum_type = identity->checksum_type;
    if (!is_changing && items.leaves.count && newest == newest_generation(candidate))
        super->checksum_type = present;
    else if (others)
        super->flags |= BW_SUPER_FLAG_CHANGING_META_CSUM;
    else if (is_changing)
        super->flags |= BW_SUPER_FLAG_CHANGING_DATA_CSUM;
    if (is_changing && others && item.key.offset == (uint64_t)super->checksum_type)
        super->checksum_type = (enum bw_checksum_type)__builtin_ctz(others);
    return NULL;
}

static struct bw_error *make_superblocks(const struct candidate *candidate)
{
    const struct bw_found_identity *identity = &candidate->scan.identity;
    const struct bw_key_map *trees = &candidate->scan.owners.owner_numbers;
    struct bw_superblock super = {
        .generation = newest_generation(candidate),
        .sectorsize = BW_MIN_SECTORSIZE,
        .nodesize = identity->nodesize,
        .device_count = candidate->set->count,
        .incompat_flags = BW_INCOMPAT_SKINNY_METADATA | BW_INCOMPAT_NO_HOLES,
        .compat_ro_flags =
            bw_key_map_has(trees, BW_BLOCK_GROUP_TREE) ? BW_COMPAT_RO_BLOCK_GROUP_TREE : 0};
    BW_TRY(set_checksum_type(candidate, &super));
    if (bw_key_map_has(trees, BW_REMAP_TREE))
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "a file system with a remap tree, whose superblocks are lost");
    if (bw_key_map_has(trees, BW_RAID_STRIPE_TREE))
        super.incompat_flags |= BW_INCOMPAT_RAID_STRIPE_TREE;
    memcpy(super.fsid, identity->ids[0].fsid, BW_UUID_SIZE);
    memcpy(super.metadata_uuid, identity->ids[0].fsid, BW_UUID_SIZE);

    /* Chunks contain the sector size. The array contains the system chunks, in which the chunk tree
     * is. */
    struct bw_item item;
    bool has_size = false;
    for (size_t at = 0; bw_newest_next(&candidate->chunks.items, &at, &item);) {
        const struct bw_disk_chunk *disk = (const void *)item.data;
        const uint32_t size = bw_get32(disk->sector_size);
        if (!has_size && size >= BW_MIN_SECTORSIZE && size <= super.nodesize &&
            !(size & (size - 1))) {
            super.sectorsize = size;
            has_size = true;
        }
        if (bw_get64(disk->type) & BW_GROUP_SYSTEM)
            bw_system_chunk_append(super.system_chunk_array, &super.system_chunk_array_size, &item);
    }

    for (size_t i = 0; i < candidate->set->count; i++)
        super.total_bytes += bw_xlator_size(candidate->set->images[i].storage);
    for (size_t i = 0; i < candidate->set->count; i++) {
        struct bw_image *image = &candidate->set->images[i];
        if (!candidate->devids[i] || !image->bad)
            continue;
        bw_error_free(BW_TAKE(image->bad));
        image->superblock = super;
        image->is_rebuilt = true;
        struct bw_device_identity *device = &image->superblock.device;
        const struct bw_disk_device_item *known =
            bw_chunk_facts_device(&candidate->facts, candidate->devids[i]);
        device->devid = candidate->devids[i];
        device->total_bytes = bw_xlator_size(image->storage);
        memcpy(device->fsid, identity->ids[0].fsid, BW_UUID_SIZE);
        if (known) {
            memcpy(device->uuid, known->uuid, BW_UUID_SIZE);
            device->bytes_used = bw_get64(known->bytes_used);
            device->total_bytes = bw_get64(known->total_bytes);
        }
        bw_fs_report_text(candidate->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                          "%s: no superblock: from tree blocks, it is device %" PRIu64
                          " of a file system with %zu block%s, %zu of which %s where they belong",
                          image->name, candidate->devids[i], candidate->scan.matches.count,
                          bw_plural(candidate->scan.matches.count), candidate->score,
                          candidate->score == 1 ? "lies" : "lie");
    }
    return NULL;
}

/* The list of the file systems. */

static int by_block(const void *left, const void *right)
{
    const struct bw_block_match *a = left, *b = right;
    return a->bytenr != b->bytenr
               ? (a->bytenr > b->bytenr) * 2 - 1
               : (a->generation > b->generation) - (a->generation < b->generation);
}

BW_VECTOR(match_stack, const struct bw_block_match *);

/* Counts the blocks of the newest tree with an id, and those of them that were not found. The
 * matches are sorted. In a crafted image, nodes may have common children, so the number of blocks
 * is limited. */
static struct bw_error *count_tree(const struct bw_device_scan *scan, uint64_t tree,
                                   uint8_t *buffer, struct bw_found_file_system *found)
{
    const struct bw_block_match *root = NULL;
    for (size_t i = 0; i < scan->matches.count; i++) {
        const struct bw_block_match *match = &scan->matches.items[i];
        if (bw_block_match_owner(scan, match) == tree &&
            (!root || match->generation > root->generation ||
             (match->generation == root->generation && match->level > root->level)))
            root = match;
    }
    BW_SCOPED(match_stack) struct match_stack stack = {0};
    found->critical_blocks++;
    found->critical_missing += !root;
    if (root)
        BW_TRY(match_stack_push(&stack, root));
    for (size_t read = 0; stack.count && read < scan->matches.count; read++) {
        const struct bw_block_match *match = stack.items[--stack.count];
        struct bw_node node;
        if (!match->level || !bw_device_scan_read(scan, match, buffer, &node))
            continue;
        for (uint32_t slot = 0; slot < node.item_count; slot++) {
            const struct bw_node_pointer child = bw_node_pointer_at(&node, slot);
            const struct bw_block_match wanted = {.bytenr = child.bytenr,
                                                  .generation = child.generation};
            const struct bw_block_match *below =
                bsearch(&wanted, scan->matches.items, scan->matches.count, sizeof wanted, by_block);
            found->critical_blocks++;
            found->critical_missing += !below;
            if (below && below->level < match->level && stack.count < scan->matches.count)
                BW_TRY(match_stack_push(&stack, below));
        }
    }
    return NULL;
}

static struct bw_error *describe(struct candidate *candidate, struct bw_found_file_system *found)
{
    const struct bw_device_scan *scan = &candidate->scan;
    struct bw_block_matches *matches = &candidate->scan.matches;
    BW_AUTO_FREE uint8_t *buffer = malloc(scan->identity.nodesize);
    if (!buffer)
        return bw_error_no_memory();
    *found = (struct bw_found_file_system){.generation = newest_generation(candidate),
                                           .blocks = matches->count,
                                           .placed_blocks = candidate->score};
    memcpy(found->fsid, scan->identity.ids[0].fsid, BW_UUID_SIZE);
    memcpy(found->chunk_tree_uuid, scan->identity.ids[0].chunk_tree_uuid, BW_UUID_SIZE);
    memcpy(found->option, found->fsid, BW_UUID_SIZE);
    bw_block_matches_sort(matches, by_block);
    BW_TRY(count_tree(scan, BW_CHUNK_TREE, buffer, found));
    BW_TRY(count_tree(scan, BW_ROOT_TREE, buffer, found));

    /* The last change of a subvolume, in leaves of the root tree. */
    struct bw_node leaf;
    for (size_t i = 0; bw_device_scan_leaf(scan, &i, BW_ROOT_TREE, buffer, &leaf);) {
        struct bw_item item;
        for (uint32_t slot = 0; bw_leaf_next(&leaf, &slot, &item);) {
            const struct bw_disk_root_item *root = (const void *)item.data;
            if (item.key.type != BW_ROOT_ITEM || item.size < sizeof *root)
                continue;
            const struct timespec time = {.tv_sec = (int64_t)bw_get64(root->ctime.seconds),
                                          .tv_nsec = bw_get32(root->ctime.nanoseconds)};
            const int64_t changed = bw_time_nanoseconds(&time);
            found->changed = changed > found->changed ? changed : found->changed;
        }
    }

    /* The label, in a superblock that names blocks of the file system as roots. */
    for (size_t i = 0; i < BW_SUPERBLOCK_NUMBERS * scan->image_count; i++) {
        uint8_t bytes[BW_SUPERBLOCK_SIZE];
        struct bw_superblock super;
        const uint64_t offset = bw_superblock_offset((unsigned)(i % BW_SUPERBLOCK_NUMBERS));
        struct bw_error *error =
            bw_device_scan_bytes(scan, i / BW_SUPERBLOCK_NUMBERS, offset, sizeof bytes, bytes);
        if (!error)
            error = bw_superblock_decode(bytes, offset, &super);
        if (!error && bw_superblock_has_block_id(&super, found->fsid) &&
            bw_device_scan_count_roots(scan, &super))
            memcpy(found->label, super.label, sizeof found->label);
        bw_error_free(error);
    }
    return NULL;
}

/* The superblock on the images with this fsid, or NULL. */
static const struct bw_superblock *superblock_of(const struct bw_image_set *set,
                                                 const uint8_t *fsid)
{
    for (size_t i = 0; i < set->count; i++)
        if (!set->images[i].bad && !set->images[i].is_rebuilt &&
            bw_superblock_has_block_id(&set->images[i].superblock, fsid))
            return &set->images[i].superblock;
    return NULL;
}

/* Lists the file systems in fs->found. Blocks that are not where their chunks put them are probably
 * in a file, such as the image of a virtual machine, so they are not listed. */
static struct bw_error *list_found(struct bw_fs *fs, struct bw_image_set *set,
                                   const struct block_kinds *kinds)
{
    size_t roots[MOST_KINDS] = {0}, count = 0; /* how many of its blocks the superblock names */
    fs->found = calloc(MOST_KINDS, sizeof *fs->found);
    if (!fs->found)
        return bw_error_no_memory();
    for (size_t i = 0; i < kinds->count; i++) {
        BW_SCOPED(candidate) struct candidate candidate;
        const struct bw_superblock *super = superblock_of(set, kinds->kinds[i].ids.fsid);
        BW_TRY(score_candidate(fs, set, &kinds->kinds[i], &candidate));
        if (!candidate.score && !candidate.is_guessed)
            continue;
        if (super)
            roots[count] = bw_device_scan_count_roots(&candidate.scan, super);
        BW_TRY(describe(&candidate, &fs->found[count++]));
    }

    /* Of several file systems with the same fsid, the superblock belongs to the one with the most
     * of its roots. While btrfstune changes the ids of the blocks, both belong to it. */
    const uint64_t changing = BW_SUPER_FLAG_CHANGING_FSID | BW_SUPER_FLAG_CHANGING_FSID_V2;
    for (size_t i = 0; i < count; i++) {
        struct bw_found_file_system *found = &fs->found[i];
        const struct bw_superblock *super = superblock_of(set, found->fsid);
        bool is_best = true;
        for (size_t k = 0; k < count; k++) {
            if (k == i || memcmp(fs->found[k].fsid, found->fsid, BW_UUID_SIZE) != 0)
                continue;
            memcpy(found->option, found->chunk_tree_uuid, BW_UUID_SIZE);
            is_best &= roots[k] < roots[i] || (roots[k] == roots[i] && k > i);
        }
        found->is_open = super && (is_best || (super->flags & changing));
        if (found->is_open)
            memcpy(found->option, found->fsid, BW_UUID_SIZE);
    }
    fs->found_count = count;
    return NULL;
}

struct bw_error *bw_rescue_find_all(struct bw_fs *fs, struct bw_image_set *set)
{
    struct block_kinds kinds = {.count = 0};
    BW_TRY(bw_images_report_overwritten(fs, set));
    BW_TRY(block_kinds_find(fs, set, &kinds));
    return list_found(fs, set, &kinds);
}

struct bw_error *bw_rescue_report_others(struct bw_fs *fs, struct bw_image_set *set)
{
    BW_TRY(bw_rescue_find_all(fs, set));
    for (size_t i = 0; i < fs->found_count; i++) {
        const struct bw_found_file_system *found = &fs->found[i];
        const uint64_t placed = found->placed_blocks;
        char fsid[37], option[37], places[64] = "but no chunk tree";
        if (!found->is_open) {
            bw_uuid_text(found->fsid, fsid);
            bw_uuid_text(found->option, option);
            if (placed)
                snprintf(places, sizeof places, "%" PRIu64 " of which %s where they belong", placed,
                         placed == 1 ? "lies" : "lie");
            bw_fs_report(fs, BW_WARNING,
                         bw_error_advise(
                             bw_error_create(BW_ERROR_USAGE,
                                             "blocks of another file system were found: fsid %s, "
                                             "generation %" PRIu64 ", %" PRIu64 " tree block%s, %s",
                                             fsid, found->generation, found->blocks,
                                             bw_plural(found->blocks), places),
                             "`fsid %s` opens it", option));
            continue;
        }

        /* Blocks that are newer than the superblock: it is stale, or an older image was written
         * over a part of the device. While the superblock is being written, the next generation
         * may have begun. */
        uint64_t known = 0;
        for (size_t k = 0; k < set->count; k++) {
            const struct bw_image *image = &set->images[k];
            if (!image->bad && bw_superblock_has_block_id(&image->superblock, found->fsid) &&
                image->superblock.generation > known)
                known = image->superblock.generation;
        }
        if (found->generation > known + 1)
            bw_fs_report_text(
                fs, BW_WARNING, BW_ERROR_CORRUPT,
                "the superblock has generation %" PRIu64
                ", but tree blocks up to generation %" PRIu64
                " were found: perhaps an older image was written over a part of the device",
                known, found->generation);
    }
    return NULL;
}

struct bw_error *bw_rescue_superblocks(struct bw_fs *fs, struct bw_image_set *set)
{
    struct block_kinds kinds = {.count = 0};
    BW_TRY(block_kinds_find(fs, set, &kinds));
    if (kinds.count > 1)
        BW_TRY(list_found(fs, set, &kinds));
    if (fs->found_count > 1) {
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        for (size_t i = 0; i < fs->found_count; i++) {
            const struct bw_found_file_system *found = &fs->found[i];
            char fsid[37], option[37];
            bw_uuid_text(found->fsid, fsid);
            bw_uuid_text(found->option, option);
            bw_buffer_format(&text, "%s`fsid %s` (", i ? ", " : "", option);
            if (strcmp(fsid, option) != 0)
                bw_buffer_format(&text, "fsid %s, ", fsid);
            bw_buffer_format(&text, "generation %" PRIu64 ", %" PRIu64 " tree block%s)",
                             found->generation, found->blocks, bw_plural(found->blocks));
        }
        BW_TRY(bw_buffer_error(&text));
        struct bw_error *error = bw_error_create(
            BW_ERROR_AMBIGUOUS, "%s: no superblock, and blocks of several file systems",
            set->images[0].name);
        return bw_error_advise(bw_error_about(error, set->images[0].path), "choose one with %.*s",
                               (int)text.length, text.data);
    }
    for (size_t i = 0; i < kinds.count; i++) {
        BW_SCOPED(candidate) struct candidate candidate;
        const struct bw_block_ids *ids = &kinds.kinds[i].ids;
        BW_TRY(score_candidate(fs, set, &kinds.kinds[i], &candidate));
        if (!candidate.score && !candidate.is_guessed)
            continue;
        BW_TRY(make_superblocks(&candidate));
        memcpy(fs->chunk_tree_uuid, ids->chunk_tree_uuid, BW_UUID_SIZE);
        memcpy(fs->wanted_fsid, ids->fsid, BW_UUID_SIZE);
        return NULL;
    }
    return NULL;
}
