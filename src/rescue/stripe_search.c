/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the location of chunks without an item: the order of their stripes, by votes of tree
 * blocks; and the location of data, by checksums.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vector.h"
#include "btree/block.h"
#include "ondisk/disk_items.h"
#include "rescue/rescue.h"

/* Maximum number of data sectors to read, and number of votes per extent that is enough. */
enum { MOST_SECTORS = 4096, ENOUGH = 32 };

/* Cost of looking up a leaf in the chunks, and of reading; comparing a block costs 1. */
enum { LOOK_UP = 16, READ = 128 };

/* Reduces the remaining budget; false if it is used up. */
static bool may_work(const struct bw_derived_chunk *chunk, size_t cost)
{
    *chunk->work -= cost < *chunk->work ? cost : *chunk->work;
    return *chunk->work;
}

/* Votes for each pair of an extent and a stripe. */
struct ballot {
    const struct bw_derived_chunk *chunk;
    const struct bw_chunk_set *set;
    uint32_t votes[BW_MOST_STRIPES][BW_MOST_STRIPES];
    unsigned sectors; /* number of sectors compared */
};

static bool is_inside(const struct bw_derived_chunk *chunk, uint64_t address)
{
    return address >= chunk->logical && address - chunk->logical < chunk->length;
}

/* Computes the position of an address: its offset in a stripe, and the first stripe that may
 * contain it. */
static unsigned stripe_of(const struct bw_derived_chunk *chunk, uint64_t address, uint64_t *place)
{
    const uint64_t offset = address - chunk->logical, number = offset / BW_STRIPE_LENGTH;
    const uint64_t row = number / chunk->columns, column = number % chunk->columns;
    *place = row * BW_STRIPE_LENGTH + offset % BW_STRIPE_LENGTH;
    return (unsigned)(chunk->profile->parity_stripes ? (row + column) % chunk->count
                                                     : column * chunk->profile->copies);
}

/* The stripe that most votes assign to an extent; chunk->count if there is no clear majority. */
static unsigned elected_stripe(const struct ballot *ballot, unsigned extent)
{
    const uint32_t *votes = ballot->votes[extent];
    const unsigned count = ballot->chunk->count;
    unsigned best = 0;
    uint32_t others = 0;
    for (unsigned stripe = 1; stripe < count; stripe++)
        best = votes[stripe] > votes[best] ? stripe : best;
    for (unsigned stripe = 0; stripe < count; stripe++)
        others = stripe != best && votes[stripe] > others ? votes[stripe] : others;
    return votes[best] > 2 * others ? best : count;
}

static bool is_decided(const struct ballot *ballot)
{
    for (unsigned extent = 0; extent < ballot->chunk->count; extent++) {
        const unsigned stripe = elected_stripe(ballot, extent);
        if (stripe == ballot->chunk->count || ballot->votes[extent][stripe] < ENOUGH)
            return false;
    }
    return true;
}

/* Votes by tree blocks. */

/* The extent that contains a block's position, or chunk->count. */
static unsigned extent_of(const struct bw_derived_chunk *chunk, const struct bw_block_match *match)
{
    const uint64_t devid = chunk->scan->images[match->image].superblock.device.devid;
    unsigned at = 0;
    while (at < chunk->count &&
           (chunk->extents[at].devid != devid || match->offset < chunk->extents[at].offset ||
            match->offset - chunk->extents[at].offset >= chunk->extents[at].length))
        at++;
    return at;
}

static void vote_by_blocks(struct ballot *ballot)
{
    const struct bw_derived_chunk *chunk = ballot->chunk;
    for (size_t i = 0; i < chunk->scan->matches.count; i++) {
        const struct bw_block_match *match = &chunk->scan->matches.items[i];
        uint64_t place;
        if (!is_inside(chunk, match->bytenr))
            continue;
        const unsigned extent = extent_of(chunk, match);
        const unsigned stripe = stripe_of(chunk, match->bytenr, &place);
        if (extent < chunk->count && match->offset - chunk->extents[extent].offset == place)
            ballot->votes[extent][stripe]++;
    }
}

/* Votes by data. */

/* Whether the sector at an offset of an extent has a checksum. */
static bool has_checksum(const struct bw_derived_chunk *chunk, unsigned extent, uint64_t place,
                         const uint8_t *checksum)
{
    return bw_device_scan_has(chunk->scan,
                              bw_image_of_devid(chunk->scan, chunk->extents[extent].devid),
                              chunk->extents[extent].offset + place, checksum);
}

static void vote_by_sector(struct ballot *ballot, uint64_t address, const uint8_t *checksum)
{
    uint64_t place;
    const unsigned stripe = stripe_of(ballot->chunk, address, &place);
    ballot->sectors++;
    for (unsigned extent = 0; extent < ballot->chunk->count; extent++)
        if (may_work(ballot->chunk, READ))
            ballot->votes[extent][stripe] += has_checksum(ballot->chunk, extent, place, checksum);
}

/* Compares the first sector of each piece that an item has checksums of. */
static void vote_by_item(struct ballot *ballot, const struct bw_item *item)
{
    const size_t size = bw_checksum_size(ballot->chunk->scan->identity->checksum_type);
    const uint32_t sectorsize = ballot->chunk->scan->sectorsize;
    uint64_t piece = UINT64_MAX, address = item->key.offset;
    if (item->key.type != BW_EXTENT_CSUM)
        return;
    const uint64_t first = ballot->chunk->logical, left = first > address ? first - address : 0;
    const size_t skipped =
        left / sectorsize < item->size / size ? (size_t)(left / sectorsize) : item->size;
    address += skipped * sectorsize;
    for (size_t at = skipped * size; at + size <= item->size && ballot->sectors < MOST_SECTORS;
         at += size, address += sectorsize) {
        if (!is_inside(ballot->chunk, address) || address / BW_STRIPE_LENGTH == piece)
            continue;
        piece = address / BW_STRIPE_LENGTH;
        vote_by_sector(ballot, address, item->data + at);
        if (is_decided(ballot))
            return;
    }
}

static bool vote_by_leaf(struct ballot *ballot, const struct bw_block_match *match)
{
    const struct bw_device_scan *scan = ballot->chunk->scan;
    BW_AUTO_FREE uint8_t *bytes = malloc(scan->identity->nodesize);
    struct bw_item item;
    if (!bytes)
        return false;
    if (!bw_device_scan_read(scan, match, bytes))
        return true;
    const struct bw_node leaf = bw_node_view(bytes, scan->identity->nodesize);
    for (uint32_t slot = 0; bw_leaf_next(&leaf, &slot, &item);)
        vote_by_item(ballot, &item);
    return true;
}

static void vote_by_data(struct ballot *ballot)
{
    const struct bw_device_scan *scan = ballot->chunk->scan;
    for (size_t i = scan->matches.count; i-- > 0 && ballot->sectors < MOST_SECTORS;) {
        const struct bw_block_match *match = &scan->matches.items[i];
        if (match->level || bw_block_match_owner(scan, match) != BW_CSUM_TREE)
            continue;
        if (!may_work(ballot->chunk, LOOK_UP))
            return;
        if (bw_chunk_set_test(ballot->set, scan, match) != BW_AGREES ||
            !may_work(ballot->chunk, READ))
            continue;
        if (!vote_by_leaf(ballot, match) || is_decided(ballot))
            return;
    }
}

/* Counting votes. */

/* Assigns an extent to the next free stripe of those with equal contents; false if all are
 * assigned. */
static bool assign_stripe(const struct bw_derived_chunk *chunk, unsigned extent, unsigned first,
                          int order[BW_MOST_STRIPES])
{
    const unsigned alike = !chunk->profile->striped         ? chunk->count
                           : chunk->profile->parity_stripes ? 1
                                                            : chunk->profile->copies;
    for (unsigned stripe = first; stripe < first + alike; stripe++)
        if (order[stripe] < 0) {
            order[stripe] = (int)extent;
            return true;
        }
    return false;
}

/* Assigns extents to stripes. If all but one are assigned, the last one is known, too. */
static bool count_votes(const struct ballot *ballot, int *order)
{
    const unsigned count = ballot->chunk->count;
    unsigned left = 0, last = 0;
    for (unsigned extent = 0; extent < count; extent++) {
        const unsigned stripe = elected_stripe(ballot, extent);
        if (stripe == count) {
            left++;
            last = extent;
        } else if (!assign_stripe(ballot->chunk, extent, stripe, order)) {
            return false;
        }
    }
    for (unsigned stripe = 0; left == 1 && stripe < count; stripe++)
        if (order[stripe] < 0)
            order[stripe] = (int)last;
    return left <= 1;
}

bool bw_stripe_order_prove(const struct bw_derived_chunk *chunk, const struct bw_chunk_set *set,
                           int order[BW_MOST_STRIPES])
{
    BW_AUTO_FREE struct ballot *ballot = calloc(1, sizeof *ballot);
    if (!ballot || !may_work(chunk, chunk->scan->matches.count))
        return false;
    ballot->chunk = chunk;
    ballot->set = set;
    if (chunk->type & (BW_GROUP_METADATA | BW_GROUP_SYSTEM))
        vote_by_blocks(ballot);
    else
        vote_by_data(ballot);
    return count_votes(ballot, order);
}

/* Finding extents by their contents: the position of each block found is a vote for the beginning
 * of a stripe. The number of columns is determined by trying; with a wrong number, the votes are
 * scattered. */

enum { MOST_VOTES = 1 << 14, LEAST = 4 };

/* A vote: a stripe of the chunk begins at an offset of an image. */
struct vote {
    size_t image;
    unsigned stripe;
    uint64_t beginning;
    uint32_t count; /* after counting: number of equal votes */
};

struct trial {
    struct vote *votes;
    size_t count, score;
};

static int by_vote(const void *left, const void *right)
{
    const struct vote *a = left, *b = right;
    return a->image != b->image     ? (a->image > b->image) * 2 - 1
           : a->stripe != b->stripe ? (a->stripe > b->stripe) * 2 - 1
                                    : (a->beginning > b->beginning) - (a->beginning < b->beginning);
}

/* Sorts by image, then the most votes first. */
static int by_count(const void *left, const void *right)
{
    const struct vote *a = left, *b = right;
    return a->image != b->image ? (a->image > b->image) * 2 - 1
                                : (a->count < b->count) - (a->count > b->count);
}

static void add_vote(struct trial *trial, const struct bw_derived_chunk *chunk, size_t image,
                     uint64_t address, uint64_t offset)
{
    uint64_t place;
    if (address < chunk->logical || address - chunk->logical >= chunk->length ||
        trial->count == MOST_VOTES)
        return;
    const unsigned stripe = chunk->profile->striped ? stripe_of(chunk, address, &place) : 0;
    place = chunk->profile->striped ? place : address - chunk->logical;
    if (offset >= place)
        trial->votes[trial->count++] = (struct vote){image, stripe, offset - place, 1};
}

/* Replaces equal votes with one and its count, and sorts them. */
static void add_up(struct trial *trial)
{
    size_t kept = 0;
    qsort(trial->votes, trial->count, sizeof *trial->votes, by_vote);
    for (size_t i = 0; i < trial->count; i++) {
        if (kept && by_vote(&trial->votes[kept - 1], &trial->votes[i]) == 0)
            trial->votes[kept - 1].count++;
        else
            trial->votes[kept++] = trial->votes[i];
    }
    trial->count = kept;
    qsort(trial->votes, kept, sizeof *trial->votes, by_count);
}

/* Keeps the beginning with the most votes on each image, or two if the profile has two mirrors on a
 * device. Other beginnings must have few votes. */
static void elect_beginnings(struct trial *trial, const struct bw_derived_chunk *chunk)
{
    const size_t most = chunk->profile->flag == BW_GROUP_DUP ? 2 : 1;
    size_t kept = 0;
    for (size_t first = 0, end; first < trial->count; first = end) {
        const struct vote *votes = &trial->votes[first];
        size_t taken = 0;
        for (end = first; end < trial->count && trial->votes[end].image == votes->image;)
            end++;
        while (taken < most && taken < end - first && votes[taken].count >= LEAST &&
               2 * votes[taken].count > votes->count)
            taken++;
        if (first + taken < end && 2 * votes[taken].count >= votes->count)
            continue;
        for (size_t i = 0; i < taken; i++) {
            trial->score += votes[i].count;
            trial->votes[kept++] = votes[i];
        }
    }
    trial->count = kept;
}

static void set_columns(struct bw_derived_chunk *chunk, unsigned columns)
{
    const struct bw_raid_profile *profile = chunk->profile;
    chunk->columns = columns;
    chunk->count = !profile->striped         ? profile->minimum_stripes
                   : profile->parity_stripes ? columns + profile->parity_stripes
                                             : columns * profile->copies;
}

static bool try_columns(struct trial *trial, struct bw_derived_chunk *chunk,
                        const struct bw_chunk_facts *facts, unsigned columns)
{
    const struct bw_device_scan *scan = chunk->scan;
    const bool is_data = !(chunk->type & (BW_GROUP_METADATA | BW_GROUP_SYSTEM));
    const size_t count = is_data ? facts->seen.count : scan->matches.count;
    trial->count = trial->score = 0;
    *chunk->work -= count < *chunk->work ? count : *chunk->work;
    if (!*chunk->work)
        return false;
    set_columns(chunk, columns);
    for (size_t i = 0; i < count; i++)
        if (is_data)
            add_vote(trial, chunk, facts->seen.items[i].image, facts->seen.items[i].address,
                     facts->seen.items[i].offset);
        else
            add_vote(trial, chunk, scan->matches.items[i].image, scan->matches.items[i].bytenr,
                     scan->matches.items[i].offset);
    add_up(trial);
    elect_beginnings(trial, chunk);
    return trial->score;
}

/* The number of columns with by far the most votes, or 0. */
static unsigned find_columns(struct trial *trial, struct bw_derived_chunk *chunk,
                             const struct bw_chunk_facts *facts)
{
    const uint64_t devices = chunk->scan->fs->superblock.device_count;
    const uint64_t most = chunk->profile->striped ? devices : 1;
    unsigned best = 0;
    size_t score = 0, second = 0;
    for (unsigned columns = 1; columns <= most && columns <= BW_MOST_STRIPES; columns++) {
        set_columns(chunk, columns);
        if (chunk->count > BW_MOST_STRIPES || chunk->count < chunk->profile->minimum_stripes ||
            (chunk->profile->striped && chunk->count > devices) ||
            chunk->length % ((uint64_t)columns * BW_STRIPE_LENGTH) ||
            !try_columns(trial, chunk, facts, columns))
            continue;
        second = trial->score > score ? score : trial->score > second ? trial->score : second;
        best = trial->score > score ? columns : best;
        score = trial->score > score ? trial->score : score;
    }
    return score > 2 * second ? best : 0;
}

/* The only missing device, if only one image may be it; otherwise 0. */
static uint64_t missing_device(const struct bw_device_scan *scan, const struct bw_chunk_set *set)
{
    size_t claimed = 0, unclaimed = 0;
    uint64_t missing = 0;
    for (size_t i = 0; i < scan->image_count; i++) {
        claimed += scan->images[i].role == BW_IMAGE_DEVICE;
        unclaimed += scan->images[i].is_unclaimed;
    }
    if (unclaimed != 1 || claimed + 1 != scan->fs->superblock.device_count)
        return 0;
    for (size_t i = 0; i < set->layout.chunks.count; i++)
        for (unsigned n = 0; n < set->layout.chunks.items[i].stripe_count; n++) {
            const uint64_t devid = set->layout.chunks.items[i].stripes[n].devid;
            if (bw_image_of_devid(scan, devid) == scan->image_count && devid != BW_UNKNOWN_DEVICE)
                missing = devid;
        }
    return missing;
}

bool bw_found_extents(struct bw_derived_chunk *chunk, const struct bw_chunk_facts *facts,
                      const struct bw_chunk_set *set, struct bw_found_extent found[BW_MOST_STRIPES],
                      int order[BW_MOST_STRIPES])
{
    const struct bw_device_scan *scan = chunk->scan;
    struct trial trial = {.votes = malloc(MOST_VOTES * sizeof *trial.votes)};
    BW_AUTO_FREE struct vote *votes = trial.votes;
    if (!votes)
        return false;
    const unsigned columns = find_columns(&trial, chunk, facts);
    if (!columns || !try_columns(&trial, chunk, facts, columns) || trial.count > chunk->count)
        return false;
    chunk->extents = found;
    for (unsigned i = 0; i < trial.count; i++) {
        const struct bw_image *image = &scan->images[votes[i].image];
        const uint64_t devid =
            image->is_unclaimed ? missing_device(scan, set) : image->superblock.device.devid;
        found[i] = (struct bw_found_extent){chunk->logical, devid, votes[i].beginning,
                                            chunk->length / columns};
        if (!devid || !assign_stripe(chunk, i, votes[i].stripe, order))
            return false;
    }
    return trial.count;
}

/*
 * Finding data on devices by checksums, for chunks with a block group and unknown locations. Some
 * sectors of each chunk at multiples of 64 KiB are selected; their checksums are searched at
 * multiples of 64 KiB of the devices, because all stripes begin at such offsets.
 */

enum { PIECE = 4 << 20, MOST_SAMPLES = 1 << 18, MOST_SEEN = 1 << 20 };

/* A data sector to search: the beginning of its checksum. */
struct sample {
    uint64_t checksum;
    uint64_t address; /* 0: several addresses have this checksum */
};

BW_VECTOR(samples, struct sample);

struct search {
    const struct bw_device_scan *scan;
    struct bw_chunk_facts *facts;
    const struct bw_chunk_set *set;
    struct samples samples;
};

static uint64_t short_checksum(const struct search *search, const uint8_t *checksum)
{
    const size_t size = bw_checksum_size(search->scan->identity->checksum_type);
    uint64_t result = 0;
    memcpy(&result, checksum, size < sizeof result ? size : sizeof result);
    return result;
}

/* Selecting sectors. */

/* The data block group that contains an address, if its chunk is unknown; otherwise NULL. */
static const struct bw_newest_item *lost_group(const struct search *search, uint64_t address)
{
    const struct bw_newest *groups = &search->facts->groups;
    const size_t after =
        BW_FIRST_INDEX(i, groups->items.count, groups->items.items[i].key.objectid > address);
    if (!after)
        return NULL;
    const struct bw_newest_item *group = &groups->items.items[after - 1];
    const struct bw_disk_block_group *disk = (const void *)bw_newest_view(groups, group).data;
    struct bw_piece piece;
    if (address - group->key.objectid >= group->key.offset || group->size < sizeof *disk ||
        (bw_get64(disk->flags) & (BW_GROUP_METADATA | BW_GROUP_SYSTEM)))
        return NULL;
    BW_AUTO_ERROR struct bw_error *unknown =
        bw_layout_find(&search->set->layout, group->key.objectid, 1, &piece);
    return unknown ? group : NULL;
}

static struct bw_error *add_checksum_item(struct search *search, const struct bw_item *item)
{
    const size_t size = bw_checksum_size(search->scan->identity->checksum_type);
    const uint32_t sectorsize = search->scan->sectorsize;
    const struct bw_newest_item *group = lost_group(search, item->key.offset);
    if (item->key.type != BW_EXTENT_CSUM || !group)
        return NULL;
    const uint64_t begin = item->key.offset - group->key.objectid;
    const uint64_t skipped = (BW_STRIPE_LENGTH - begin % BW_STRIPE_LENGTH) % BW_STRIPE_LENGTH;
    const size_t step = BW_STRIPE_LENGTH / sectorsize;
    for (size_t at = (size_t)skipped / sectorsize; (at + 1) * size <= item->size; at += step) {
        if (search->samples.count == MOST_SAMPLES)
            return NULL;
        BW_TRY(samples_push(&search->samples,
                            (struct sample){short_checksum(search, item->data + at * size),
                                            item->key.offset + at * sectorsize}));
    }
    return NULL;
}

static int by_checksum(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;
    return a->checksum != b->checksum ? (a->checksum > b->checksum) * 2 - 1
                                      : (a->address > b->address) - (a->address < b->address);
}

/* Removes duplicates from old leaves. Contents found at several addresses prove nothing. */
static void remove_duplicates(struct search *search)
{
    size_t kept = 0;
    if (search->samples.count)
        qsort(search->samples.items, search->samples.count, sizeof *search->samples.items,
              by_checksum);
    for (size_t i = 0; i < search->samples.count; i++) {
        struct sample *last = &search->samples.items[kept ? kept - 1 : 0];
        if (!kept || last->checksum != search->samples.items[i].checksum)
            search->samples.items[kept++] = search->samples.items[i];
        else if (last->address != search->samples.items[i].address)
            last->address = 0;
    }
    search->samples.count = kept;
}

static struct bw_error *select_samples(struct search *search)
{
    const struct bw_device_scan *scan = search->scan;
    BW_AUTO_FREE uint8_t *bytes = malloc(scan->identity->nodesize);
    struct bw_item item;
    if (!bytes)
        return bw_error_no_memory();
    for (size_t i = 0; i < scan->matches.count && search->samples.count < MOST_SAMPLES; i++) {
        const struct bw_block_match *match = &scan->matches.items[i];
        if (match->level || bw_block_match_owner(scan, match) != BW_CSUM_TREE ||
            bw_chunk_set_test(search->set, scan, match) != BW_AGREES ||
            !bw_device_scan_read(scan, match, bytes))
            continue;
        const struct bw_node leaf = bw_node_view(bytes, scan->identity->nodesize);
        for (uint32_t slot = 0; bw_leaf_next(&leaf, &slot, &item);)
            BW_TRY(add_checksum_item(search, &item));
    }
    remove_duplicates(search);
    return NULL;
}

/* Searching the devices. */

static struct bw_error *match_sector(struct search *search, size_t image, uint64_t offset,
                                     const uint8_t *sector)
{
    const uint32_t size = search->scan->sectorsize;
    struct bw_chunk_facts *facts = search->facts;
    uint8_t checksum[BW_CSUM_SIZE];
    if (memcmp(sector, sector + 1, size - 1) == 0 || facts->seen.count == MOST_SEEN)
        return NULL;
    bw_checksum_compute(search->scan->identity->checksum_type, sector, size, checksum);
    const uint64_t wanted = short_checksum(search, checksum);
    const size_t at =
        BW_FIRST_INDEX(i, search->samples.count, search->samples.items[i].checksum >= wanted);
    if (at == search->samples.count || search->samples.items[at].checksum != wanted ||
        !search->samples.items[at].address)
        return NULL;
    return bw_data_places_push(
        &facts->seen, (struct bw_data_place){search->samples.items[at].address, offset, image});
}

static struct bw_error *read_image(struct search *search, size_t image, uint8_t *buffer)
{
    struct bw_xlator *device = search->scan->images[image].storage;
    const uint64_t size = bw_xlator_size(device);
    for (uint64_t at = 0; at < size; at += PIECE) {
        at = bw_xlator_next_stored(device, at);
        at -= at % BW_STRIPE_LENGTH;
        if (at >= size)
            break;
        const uint32_t length = size - at < PIECE ? (uint32_t)(size - at) : PIECE;
        BW_AUTO_ERROR struct bw_error *error =
            bw_device_scan_bytes(search->scan, image, at, length, buffer);
        for (uint32_t i = 0; !error && i + search->scan->sectorsize <= length;
             i += BW_STRIPE_LENGTH)
            BW_TRY(match_sector(search, image, at + i, buffer + i));
    }
    return NULL;
}

static struct bw_error *read_images(struct search *search)
{
    const struct bw_device_scan *scan = search->scan;
    BW_AUTO_FREE uint8_t *buffer = aligned_alloc(BW_MIN_SECTORSIZE, PIECE);
    if (!buffer)
        return bw_error_no_memory();
    for (size_t i = 0; search->samples.count && i < scan->image_count; i++)
        if (scan->images[i].storage &&
            (scan->images[i].role != BW_IMAGE_UNUSED || scan->images[i].is_unclaimed))
            BW_TRY(read_image(search, i, buffer));
    return NULL;
}

struct bw_error *bw_data_search(const struct bw_device_scan *scan, struct bw_chunk_facts *facts,
                                const struct bw_chunk_set *set)
{
    struct search search = {.scan = scan, .facts = facts, .set = set};
    struct bw_error *error = select_samples(&search);
    if (!error)
        error = read_images(&search);
    samples_free(&search.samples);
    return error;
}
