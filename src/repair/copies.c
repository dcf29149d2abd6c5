/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copies of tree blocks and data. The check has compared every copy with its checksum and with the
 * parent. Of each block or sector with a bad mirror and a good one, the good one is written over
 * the bad ones; where no mirror of a tree block is good because one bit was flipped, all get the
 * corrected block. Parity of the rows that have changed, or do not match their data, is computed
 * again.
 *
 * All copies must be written: an old copy is as valid as the new one, and a mount
 * could read it.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/galois.h"
#include "base/range_set.h"
#include "base/search.h"
#include "btrfs-walk/graph.h"
#include "data/fetch.h"
#include "ondisk/bit_flip.h"
#include "ondisk/node.h"
#include "owners/tree_list.h"
#include "repair/repair.h"

enum { MIRRORS = 64, PARITY_STRIPES = 2 };

/* A block or a sector, and its bad mirrors. */
struct unit {
    uint64_t logical;
    uint32_t length;
    uint64_t bad; /* bit n: copy n + 1 */
    bool is_data;
    bool is_flipped;                   /* no mirror is good, but one has only a flipped bit */
    const struct bw_listed_tree *tree; /* of a block; NULL: unknown */
    struct bw_key key;                 /* a key that belongs in the block */
};

BW_VECTOR(units, struct unit);

struct bw_error *bw_repair_read_copy(struct bw_repair *repair, uint64_t logical, uint32_t length,
                                     unsigned copy, void *bytes)
{
    const struct bw_fs *fs = repair->fs;
    struct bw_request request = {.kind = BW_REQUEST_RAW,
                                 .mirror = (uint8_t)copy,
                                 .length = length,
                                 .address = logical,
                                 .buffer = bytes};
    bw_wind(NULL, fs->reader.top, &request, 1);
    return request.error;
}

/* Whether bytes match their checksum: the check does not look at every copy that parity gives. */
static bool is_verified(struct bw_fs *fs, const struct unit *unit, const uint8_t *bytes)
{
    const enum bw_checksum_type type =
        unit->is_data ? bw_fs_data_checksum(fs) : fs->superblock.checksum_type;
    uint8_t stored[BW_CSUM_SIZE], computed[BW_CSUM_SIZE];
    struct bw_checksum_run run;
    if (!unit->is_data) {
        const struct bw_disk_header *header = (const void *)bytes;
        return bw_checksum_matches_block(type, bytes, unit->length) &&
               bw_get64(header->bytenr) == unit->logical;
    }
    BW_SCOPED(bw_data_checksums) struct bw_data_checksums checksums;
    bw_data_checksums_init(&checksums, fs);
    BW_AUTO_ERROR struct bw_error *error =
        bw_data_checksums_get(&checksums, unit->logical, unit->length, stored, &run);
    if (error || !run.known)
        return false;
    bw_checksum_compute(type, bytes, unit->length, computed);
    return memcmp(stored, computed, bw_checksum_size(type)) == 0;
}

/* Finds the pointer in the parent of a block, as far as that can be read. */
static struct bw_error *find_parent(struct bw_repair *repair, const struct unit *unit,
                                    struct bw_block_pointer *pointer, bool *found)
{
    *found = false;
    if (unit->is_data || !unit->tree)
        return NULL;
    return bw_repair_find_pointer(&repair->fs->reader, &unit->tree->tree, unit->logical, &unit->key,
                                  pointer, found);
}

/* Whether the parent of a block expects it, as far as the parent can be read, and its items are
 * sound. CRC-32C is linear: a block that is rebuilt from older parity has a right checksum if the
 * others of its row have. */
static bool fits_parent(struct bw_repair *repair, const struct unit *unit, const uint8_t *bytes)
{
    struct bw_block_pointer pointer;
    bool found;
    BW_AUTO_ERROR struct bw_error *error = find_parent(repair, unit, &pointer, &found);
    if (error || !found)
        return !error;
    return bw_repair_is_sound(repair->fs, &pointer, bytes);
}

/* Finds the bytes that a unit must have; `*source` is the number of the copy that has them, or 0:
 * they are corrected. False if no copy has them. */
static bool find_good(struct bw_repair *repair, const struct unit *unit, unsigned copies,
                      uint8_t *bytes, unsigned *source)
{
    struct bw_fs *fs = repair->fs;
    struct bw_mapping mapping;
    bool is_refused = false; /* parity gives another block, which the reader may accept */
    for (unsigned copy = 1; copy <= copies && !unit->is_flipped; copy++) {
        if (unit->bad >> (copy - 1) & 1)
            continue;
        *source = copy;
        BW_AUTO_ERROR struct bw_error *error =
            bw_fs_map(fs, unit->logical, unit->length, copy, &mapping);
        if (!error)
            error = bw_repair_read_copy(repair, unit->logical, unit->length, copy, bytes);
        if (error || !is_verified(fs, unit, bytes))
            continue;
        if (!mapping.rebuilt || fits_parent(repair, unit, bytes))
            return true;
        is_refused = true;
    }
    *source = 0;
    if (unit->is_data)
        return false;

    /* The reader joins the pieces of copies that are good, and remembers the flipped bit, for which
     * it may have tried all. */
    struct bw_block_pointer pointer;
    bool found;
    BW_AUTO_ERROR struct bw_error *unread = find_parent(repair, unit, &pointer, &found);
    if (!unread && found)
        unread = bw_block_read(&fs->reader, &pointer, bytes);
    if (unread || found)
        return !unread && (!is_refused || bw_repair_is_sound(fs, &pointer, bytes));
    for (unsigned copy = 1; copy <= copies && unit->is_flipped; copy++) {
        struct bw_bit_flip flip;
        BW_AUTO_ERROR struct bw_error *error =
            bw_repair_read_copy(repair, unit->logical, unit->length, copy, bytes);
        if (!error &&
            bw_bit_flip_find_in_block(fs->superblock.checksum_type, bytes, unit->length, &flip)) {
            bytes[flip.byte] ^= (uint8_t)(1u << flip.bit);
            return true;
        }
    }
    return false;
}

static struct bw_error *plan_unit(struct bw_repair *repair, const struct unit *unit)
{
    struct bw_fs *fs = repair->fs;
    struct bw_mapping mapping = {0};
    unsigned source;
    BW_AUTO_FREE uint8_t *good = malloc(unit->length);
    if (!good)
        return bw_error_no_memory();
    BW_TRY(bw_fs_map(fs, unit->logical, unit->length, 1, &mapping));
    const unsigned copies = mapping.copies;
    if (!find_good(repair, unit, copies, good, &source))
        return NULL;
    for (unsigned copy = 1; copy <= copies; copy++) {
        BW_TRY(bw_fs_map(fs, unit->logical, unit->length, copy, &mapping));
        const bool is_bad = unit->is_flipped || (unit->bad >> (copy - 1) & 1);
        if (!is_bad || mapping.rebuilt || !mapping.present)
            continue;
        uint8_t *bytes = malloc(unit->length);
        if (!bytes)
            return bw_error_no_memory();
        memcpy(bytes, good, unit->length);
        BW_TRY(bw_repair_add(
            repair,
            (struct bw_repair_change){
                .class_number = source ? BW_REPAIR_IDENTICAL : BW_REPAIR_CHECKSUM,
                .logical = unit->logical,
                .devid = mapping.devid,
                .offset = mapping.offset,
                .length = unit->length,
                .what = unit->is_data ? "sector of data" : "tree block",
                .plural = unit->is_data ? "sectors of data" : "tree blocks",
                .unit = unit->length,
                .why = bw_repair_text(unit->is_flipped ? "one bit of mirror %u is flipped"
                                                       : "mirror %u is bad",
                                      copy),
                .proof =
                    source ? bw_repair_text("mirror %u, which its checksum%s", source,
                                            unit->is_data ? " verifies" : " and its parent verify")
                           : strdup("the stored checksum fits the corrected block, and its "
                                    "parent, too"),
                .bytes = bytes,
            }));
    }
    return NULL;
}

/* Parity. */

static bool is_parity(const struct bw_repair_finding *finding)
{
    return bw_repair_is(finding, "parity-mismatch") || bw_repair_is(finding, "parity-unreadable");
}

/* The chunk with this logical address, if it has parity; NULL otherwise. */
static const struct bw_chunk_info *parity_chunk(const struct bw_chunk_list *chunks,
                                                uint64_t logical)
{
    const size_t i = BW_FIRST_INDEX(k, chunks->count,
                                    chunks->items[k].logical + chunks->items[k].length > logical);
    const struct bw_chunk_info *chunk = i < chunks->count ? &chunks->items[i] : NULL;
    if (!chunk || logical < chunk->logical)
        return NULL;
    return chunk->type & (BW_GROUP_RAID5 | BW_GROUP_RAID6) ? chunk : NULL;
}

static unsigned parity_stripes(const struct bw_chunk_info *chunk)
{
    return chunk->type & BW_GROUP_RAID6 ? 2 : 1;
}

/* The first logical address of a row. */
static uint64_t row_of(const struct bw_chunk_info *chunk, uint64_t logical)
{
    const uint64_t row = (uint64_t)(chunk->stripe_count - parity_stripes(chunk)) * BW_STRIPE_LENGTH;
    return logical - (logical - chunk->logical) % row;
}

static struct bw_error *plan_parity(struct bw_repair *repair)
{
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    uint64_t last = BW_ABSENT;
    BW_TRY(bw_fs_chunks(repair->fs, &chunks));
    for (size_t i = 0; i < repair->findings.count; i++) {
        struct bw_repair_finding *finding = &repair->findings.items[i];
        const struct bw_chunk_info *chunk =
            is_parity(finding) ? parity_chunk(&chunks, finding->logical) : NULL;
        if (!chunk)
            continue;
        finding->planned = true;
        const uint64_t row = row_of(chunk, finding->logical);
        if (row == last)
            continue;
        last = row;
        BW_TRY(bw_repair_add(repair, (struct bw_repair_change){
                                         .class_number = BW_REPAIR_DERIVED,
                                         .logical = row,
                                         .devid = finding->devid,
                                         .offset = finding->offset,
                                         .length = finding->length,
                                         .what = "parity of a row",
                                         .why = strdup("it does not match the data of the row"),
                                         .proof = strdup("computed from the data of the row"),
                                         .is_parity = true,
                                     }));
    }
    return NULL;
}

/* Computes the parity of the row with an address from its data with all changes, and writes it, if
 * there is parity, and the row is not in the set. Columns with bad data that no change repairs keep
 * their parity, because only this gives the data. */
static struct bw_error *write_row(struct bw_repair *repair, const struct bw_chunk_list *chunks,
                                  const struct bw_range_set *bad, struct bw_number_set *rows,
                                  uint64_t logical)
{
    const struct bw_chunk_info *chunk = parity_chunk(chunks, logical);
    bool is_new;
    if (!chunk)
        return NULL;
    const uint64_t row = row_of(chunk, logical);
    BW_TRY(bw_number_set_insert(rows, row, &is_new));
    if (!is_new)
        return NULL;
    const unsigned parity = parity_stripes(chunk), data = chunk->stripe_count - parity;
    BW_AUTO_FREE uint8_t *bytes =
        aligned_alloc(BW_STRIPE_LENGTH, (size_t)chunk->stripe_count * BW_STRIPE_LENGTH);
    BW_AUTO_FREE void **vectors = calloc(chunk->stripe_count, sizeof *vectors);
    struct bw_mapping mapping = {0};
    if (!bytes || !vectors)
        return bw_error_no_memory();
    for (unsigned i = 0; i < chunk->stripe_count; i++)
        vectors[i] = bytes + (size_t)i * BW_STRIPE_LENGTH;
    for (unsigned i = 0; i < data; i++) {
        BW_TRY(bw_fs_map(repair->fs, row + i * (uint64_t)BW_STRIPE_LENGTH, BW_STRIPE_LENGTH, 1,
                         &mapping));
        BW_TRY(bw_repair_read(repair, mapping.devid, mapping.offset, vectors[i], BW_STRIPE_LENGTH));
    }
    if (data > 1) {
        bw_field_parity(data, parity, BW_STRIPE_LENGTH, vectors);
    } else {
        for (unsigned i = data; i < chunk->stripe_count; i++)
            memcpy(vectors[i], vectors[0], BW_STRIPE_LENGTH);
    }
    const uint32_t sector = repair->fs->superblock.sectorsize;
    for (unsigned i = 0; i < parity; i++) {
        const uint8_t *computed = vectors[data + i];
        BW_TRY(bw_fs_map(repair->fs, row, BW_STRIPE_LENGTH, 2 + i, &mapping));
        for (uint64_t column = 0; mapping.present && column < BW_STRIPE_LENGTH; column += sector) {
            bool is_kept = false;
            for (uint64_t at = row + column; at < row + (uint64_t)data * BW_STRIPE_LENGTH;
                 at += BW_STRIPE_LENGTH)
                is_kept |= bw_range_set_overlap(bad, at, at + sector) > 0;
            if (!is_kept)
                BW_TRY(bw_repair_write(repair, mapping.devid, mapping.offset + column,
                                       computed + column, sector));
        }
    }
    return NULL;
}

struct bw_error *bw_repair_write_parity(struct bw_repair *repair)
{
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_SCOPED(bw_number_set) struct bw_number_set rows = {0};
    BW_SCOPED(bw_range_set) struct bw_range_set bad = {0};
    BW_TRY(bw_fs_chunks(repair->fs, &chunks));
    for (size_t i = 0; i < repair->changes.count; i++) {
        const struct bw_repair_change *change = &repair->changes.items[i];
        if (change->unit && !change->chosen)
            BW_TRY(bw_range_set_insert(&bad, change->logical, change->logical + change->length));
    }
    bw_range_set_join(&bad);
    for (size_t i = repair->first; i < repair->changes.count; i++) {
        const struct bw_repair_change *change = &repair->changes.items[i];
        const uint64_t length = change->unit ? change->length : 1;
        for (uint64_t at = 0; at < length && change->chosen && (change->bytes || change->is_parity);
             at += repair->fs->superblock.sectorsize)
            BW_TRY(write_row(repair, &chunks, &bad, &rows, change->logical + at));
    }
    for (size_t i = 0; i < repair->converted.count; i++)
        BW_TRY(write_row(repair, &chunks, &bad, &rows, repair->converted.items[i]));
    return NULL;
}

struct bw_error *bw_repair_plan_copies(struct bw_repair *repair)
{
    static const char *const words[] = {"block-checksum",
                                        "block-stale",
                                        "block-foreign",
                                        "block-keys",
                                        "block-layout",
                                        "block-unreadable",
                                        "block-header",
                                        "data-checksum",
                                        "data-unreadable",
                                        "block-bit-flip",
                                        NULL};
    const struct bw_superblock *superblock = &repair->fs->superblock;
    BW_SCOPED(units) struct units units = {0};
    BW_SCOPED(bw_tree_list) struct bw_tree_list trees = {0};
    BW_TRY(bw_tree_list_load(repair->fs, &trees));

    /* The findings about one mirror of a block or of data. */
    for (size_t i = 0; i < repair->findings.count; i++) {
        struct bw_repair_finding *finding = &repair->findings.items[i];
        const struct bw_repair_device *device = bw_repair_device_of(repair, finding->devid);
        const bool is_data = strncmp(finding->code->word, "data-", 5) == 0;
        const bool is_flipped = bw_repair_is(finding, "block-bit-flip");
        const uint32_t size = is_data ? superblock->sectorsize : superblock->nodesize;
        if (!bw_repair_is_any(finding, words) || finding->logical == BW_ABSENT ||
            finding->length == BW_ABSENT ||
            !(is_flipped || (finding->repairable && finding->mirror - 1 < MIRRORS)))
            continue;
        /* the image may be cut off before this copy */
        if (device && finding->offset != BW_ABSENT &&
            finding->offset + finding->length > bw_xlator_size(device->image->storage))
            continue;
        finding->planned = true;
        for (uint64_t at = 0; at < finding->length; at += size)
            BW_TRY(units_push(
                &units, (struct unit){.logical = finding->logical + at,
                                      .length = size,
                                      .is_data = is_data,
                                      .bad = is_flipped ? 0 : UINT64_C(1) << (finding->mirror - 1),
                                      .is_flipped = is_flipped,
                                      .tree = bw_tree_list_find(&trees, finding->tree),
                                      .key = finding->key}));
    }

    /* One unit for each address, ascending. */
    size_t kept = 0;
    units_sort(&units, bw_compare_first);
    for (size_t i = 0; i < units.count; i++) {
        struct unit *last = kept ? &units.items[kept - 1] : NULL;
        if (!last || last->logical != units.items[i].logical) {
            units.items[kept++] = units.items[i];
            continue;
        }
        last->bad |= units.items[i].bad;
        last->is_flipped |= units.items[i].is_flipped;
    }
    units.count = kept;
    for (size_t i = 0; i < units.count; i++)
        BW_TRY(plan_unit(repair, &units.items[i]));
    return plan_parity(repair);
}
