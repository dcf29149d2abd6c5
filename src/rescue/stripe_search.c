/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds where a chunk without an item lies: which range of which device is which of its stripes.
 *
 * Every tree block, and every data sector with a checksum, that is known by its logical address and
 * found at an offset of a device is a vote. From the profile and the number of columns follow the
 * stripe that contains the address, and the place in that stripe.
 *
 * 1. If device extents name the ranges, bw_stripe_order_prove() finds their order. A vote assigns a
 *    range to a stripe, if the place in both is the same; each range needs twice as many votes for
 *    one stripe as for any other. Metadata vote by the blocks that a scan of the devices has found.
 *    For data, the newest leaves of the checksum tree name sectors, which are read from all ranges.
 * 2. If not even the ranges are known, bw_found_extents() finds them. A vote is the beginning of a
 *    stripe on a device: the offset less the place. All numbers of columns are tried; with a wrong
 *    one, the votes are scattered. Data were searched for by bw_data_search() before: it chooses
 *    sectors at multiples of 64 KiB, and reads all devices once at such offsets.
 *
 * Nothing is guessed: without a clear majority, the chunk stays unknown. Each chunk has a budget of
 * work. While btrfstune changes the type of checksums, an item may have checksums of several types.
 * It is read once for each of them: those of wrong types match nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
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
static bool may_work(size_t *work, size_t cost)
{
    *work -= cost < *work ? cost : *work;
    return *work;
}

static bool is_inside(const struct bw_derived_chunk *chunk, uint64_t address)
{
    return address >= chunk->logical && address - chunk->logical < chunk->length;
}

static bool is_data(uint64_t flags)
{
    return !(flags & (BW_GROUP_METADATA | BW_GROUP_SYSTEM));
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

unsigned bw_rescue_sum_types(const struct bw_fs *fs, const struct bw_key *key)
{
    const unsigned own = BW_CHECKSUM_BIT(fs->superblock.checksum_type);
    if (key->type != BW_EXTENT_CSUM)
        return 0;
    if (key->objectid == BW_EXTENT_CSUM_OBJECT)
        return bw_fs_changes_checksums(fs) ? BW_ALL_CHECKSUMS : own;
    /* The new checksums, until they replace the old ones. */
    const bool is_new = key->objectid == BW_CSUM_CHANGE && bw_fs_changes_checksums(fs);
    return is_new ? BW_ALL_CHECKSUMS & ~own : 0;
}

/* A cursor over the items with checksums of data, in the leaves that are where the chunks of a set
 * put them, the last leaf first. Each item comes once for every type that its checksums may have.
 */
struct sum_items {
    const struct bw_device_scan *scan;
    const struct bw_chunk_set *set;
    size_t *work;   /* the budget of the reader */
    size_t left;    /* number of matches of the scan not looked at yet */
    uint8_t *block; /* with the leaf; NULL: there is no memory, and there are no items */
    struct bw_node leaf;
    uint32_t slot;
    unsigned types; /* other types of the current item */
    struct bw_item item;
    enum bw_checksum_type type;
    size_t size; /* of a checksum */
};

static bool next_sum_item(struct sum_items *sums)
{
    const struct bw_device_scan *scan = sums->scan;
    while (!sums->types) {
        if (bw_leaf_next(&sums->leaf, &sums->slot, &sums->item)) {
            sums->types = bw_rescue_sum_types(scan->fs, &sums->item.key);
            continue;
        }
        if (!sums->left || !sums->block)
            return false;
        const struct bw_block_match *match = &scan->matches.items[--sums->left];
        if (match->level || bw_block_match_owner(scan, match) != BW_CSUM_TREE)
            continue;
        if (!may_work(sums->work, LOOK_UP))
            return false;
        if (bw_chunk_set_test(sums->set, scan, match) == BW_AGREES && may_work(sums->work, READ) &&
            bw_device_scan_read(scan, match, sums->block, &sums->leaf))
            sums->slot = 0;
    }
    sums->type = (enum bw_checksum_type)__builtin_ctz(sums->types);
    sums->types &= sums->types - 1;
    sums->size = bw_checksum_size(sums->type);
    return true;
}

/* 1. The order of known extents. */

/* The stripe that most votes assign to an extent; `count` if there is no clear majority. */
static unsigned elected_stripe(const uint32_t *votes, unsigned count)
{
    unsigned best = 0;
    uint32_t others = 0;
    for (unsigned stripe = 1; stripe < count; stripe++)
        best = votes[stripe] > votes[best] ? stripe : best;
    for (unsigned stripe = 0; stripe < count; stripe++)
        others = stripe != best && votes[stripe] > others ? votes[stripe] : others;
    return votes[best] > 2 * others ? best : count;
}

/* Tree blocks vote by the offsets at which the scan has found them. */
static void vote_by_blocks(const struct bw_derived_chunk *chunk, uint32_t (*votes)[BW_MOST_STRIPES])
{
    for (size_t i = 0; i < chunk->scan->matches.count; i++) {
        const struct bw_block_match *match = &chunk->scan->matches.items[i];
        const uint64_t devid = chunk->scan->images[match->image].superblock.device.devid;
        uint64_t place;
        if (!is_inside(chunk, match->bytenr))
            continue;
        const unsigned stripe = stripe_of(chunk, match->bytenr, &place);
        for (unsigned at = 0; at < chunk->count; at++) {
            const struct bw_found_extent *extent = &chunk->extents[at];
            if (extent->devid != devid || match->offset < extent->offset ||
                match->offset - extent->offset >= extent->length)
                continue;
            votes[at][stripe] += match->offset - extent->offset == place;
            break;
        }
    }
}

/* Data vote by checksums, those in the newest leaves first: the first sector of each 64 KiB is
 * compared on all extents, until the order is decided. */
static void vote_by_data(const struct bw_derived_chunk *chunk, const struct bw_chunk_set *set,
                         uint32_t (*votes)[BW_MOST_STRIPES])
{
    const struct bw_device_scan *scan = chunk->scan;
    const uint32_t sectorsize = scan->sectorsize;
    BW_AUTO_FREE uint8_t *block = malloc(scan->identity.nodesize);
    struct sum_items sums = {
        .scan = scan, .set = set, .work = chunk->work, .left = scan->matches.count, .block = block};
    unsigned sectors = 0;
    while (next_sum_item(&sums)) {
        uint64_t piece = UINT64_MAX, address = sums.item.key.offset;
        const uint64_t before = chunk->logical > address ? chunk->logical - address : 0;
        uint64_t number = before / sectorsize;
        address += number * sectorsize;
        for (; number < sums.item.size / sums.size; number++, address += sectorsize) {
            const uint8_t *checksum = sums.item.data + number * sums.size;
            uint64_t place;
            if (!is_inside(chunk, address) || address / BW_STRIPE_LENGTH == piece)
                continue;
            if (sectors++ == MOST_SECTORS)
                return;
            piece = address / BW_STRIPE_LENGTH;
            const unsigned stripe = stripe_of(chunk, address, &place);
            bool is_decided = true;
            for (unsigned at = 0; at < chunk->count; at++) {
                const struct bw_found_extent *extent = &chunk->extents[at];
                const size_t image = bw_image_of_devid(scan, extent->devid);
                if (may_work(chunk->work, READ))
                    votes[at][stripe] += bw_device_scan_has(scan, image, extent->offset + place,
                                                            sums.type, checksum);
                const unsigned elected = elected_stripe(votes[at], chunk->count);
                is_decided &= elected < chunk->count && votes[at][elected] >= ENOUGH;
            }
            if (is_decided)
                return;
        }
    }
}

/* Assigns an extent to the next free stripe of those with equal contents; false if all are
 * assigned. */
static bool assign_stripe(const struct bw_derived_chunk *chunk, unsigned extent, unsigned first,
                          int order[BW_MOST_STRIPES])
{
    unsigned alike = chunk->count;
    if (chunk->profile->striped)
        alike = chunk->profile->parity_stripes ? 1 : chunk->profile->copies;
    for (unsigned stripe = first; stripe < first + alike; stripe++)
        if (order[stripe] < 0) {
            order[stripe] = (int)extent;
            return true;
        }
    return false;
}

bool bw_stripe_order_prove(const struct bw_derived_chunk *chunk, const struct bw_chunk_set *set,
                           int order[BW_MOST_STRIPES])
{
    BW_AUTO_FREE uint32_t(*votes)[BW_MOST_STRIPES] = calloc(BW_MOST_STRIPES, sizeof *votes);
    if (!votes || !may_work(chunk->work, chunk->scan->matches.count))
        return false;
    if (is_data(chunk->type))
        vote_by_data(chunk, set, votes);
    else
        vote_by_blocks(chunk, votes);

    /* If all extents but one are assigned, the last one is known, too. */
    const unsigned count = chunk->count;
    unsigned left = 0, last = 0;
    for (unsigned extent = 0; extent < count; extent++) {
        const unsigned stripe = elected_stripe(votes[extent], count);
        if (stripe == count) {
            left++;
            last = extent;
        } else if (!assign_stripe(chunk, extent, stripe, order)) {
            return false;
        }
    }
    for (unsigned stripe = 0; left == 1 && stripe < count; stripe++)
        if (order[stripe] < 0)
            order[stripe] = (int)last;
    return left <= 1;
}

/* 2. Unknown extents. */

enum { MOST_VOTES = 1 << 14, LEAST = 4 };

/* A vote: a stripe of the chunk begins at an offset of an image. */
struct vote {
    size_t image;
    unsigned stripe;
    uint64_t beginning;
    uint32_t count; /* after counting: number of equal votes */
};

BW_VECTOR(votes, struct vote);

static int by_vote(const void *left, const void *right)
{
    const struct vote *a = left, *b = right;
    return BW_COMPARE_ALL(((uint64_t[]){a->image, a->stripe, a->beginning}),
                          ((uint64_t[]){b->image, b->stripe, b->beginning}));
}

/* Sorts by image, then the most votes first. */
static int by_count(const void *left, const void *right)
{
    const struct vote *a = left, *b = right;
    return a->image != b->image ? (a->image > b->image) * 2 - 1
                                : (a->count < b->count) - (a->count > b->count);
}

/* Counts the votes with a number of columns. Keeps the beginning with the most votes on each image,
 * or two if the profile has two mirrors on a device; other beginnings must have few votes. Returns
 * the number of votes for those; 0 if the number of columns is impossible. */
static size_t try_columns(struct votes *list, struct bw_derived_chunk *chunk,
                          const struct bw_chunk_facts *facts, unsigned columns)
{
    const struct bw_device_scan *scan = chunk->scan;
    const struct bw_raid_profile *profile = chunk->profile;
    const bool by_data = is_data(chunk->type);
    const size_t count = by_data ? facts->seen.count : scan->matches.count;
    const size_t most = profile->flag == BW_GROUP_DUP ? 2 : 1;
    struct vote *votes = list->items;
    chunk->columns = columns;
    chunk->count = profile->minimum_stripes;
    if (profile->striped && profile->parity_stripes)
        chunk->count = columns + profile->parity_stripes;
    else if (profile->striped)
        chunk->count = columns * profile->copies;
    if (chunk->count > BW_MOST_STRIPES || chunk->count < profile->minimum_stripes ||
        (profile->striped && chunk->count > scan->fs->superblock.device_count) ||
        chunk->length % ((uint64_t)columns * BW_STRIPE_LENGTH) || !may_work(chunk->work, count))
        return 0;

    list->count = 0;
    for (size_t i = 0; i < count && list->count < MOST_VOTES; i++) {
        struct bw_data_place at;
        uint64_t place;
        if (by_data)
            at = facts->seen.items[i];
        else
            at =
                (struct bw_data_place){scan->matches.items[i].bytenr, scan->matches.items[i].offset,
                                       scan->matches.items[i].image};
        if (!is_inside(chunk, at.address))
            continue;
        const unsigned stripe = stripe_of(chunk, at.address, &place);
        if (at.offset >= place)
            votes[list->count++] = (struct vote){at.image, stripe, at.offset - place, 1};
    }

    /* Replace equal votes with one and its count. */
    size_t kept = 0;
    votes_sort(list, by_vote);
    for (size_t i = 0; i < list->count; i++) {
        if (kept && by_vote(&votes[kept - 1], &votes[i]) == 0)
            votes[kept - 1].count++;
        else
            votes[kept++] = votes[i];
    }
    list->count = kept;
    votes_sort(list, by_count);

    size_t score = 0;
    kept = 0;
    for (size_t first = 0, end; first < list->count; first = end) {
        const struct vote *own = &votes[first];
        size_t taken = 0;
        for (end = first; end < list->count && votes[end].image == own->image;)
            end++;
        while (taken < most && taken < end - first && own[taken].count >= LEAST &&
               2 * own[taken].count > own->count)
            taken++;
        if (first + taken < end && 2 * own[taken].count >= own->count)
            continue;
        for (size_t i = 0; i < taken; i++) {
            score += own[i].count;
            votes[kept++] = own[i];
        }
    }
    list->count = kept;
    return score;
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
    const uint64_t most = chunk->profile->striped ? scan->fs->superblock.device_count : 1;
    BW_SCOPED(votes) struct votes votes = {0};
    BW_AUTO_ERROR struct bw_error *error = votes_reserve(&votes, MOST_VOTES);
    if (error)
        return false;

    /* The number of columns with by far the most votes. */
    unsigned best = 0;
    size_t score = 0, second = 0;
    for (unsigned columns = 1; columns <= most && columns <= BW_MOST_STRIPES; columns++) {
        const size_t own = try_columns(&votes, chunk, facts, columns);
        if (own > score) {
            second = score;
            best = columns;
            score = own;
        } else if (own > second) {
            second = own;
        }
    }
    if (score <= 2 * second || !try_columns(&votes, chunk, facts, best) ||
        votes.count > chunk->count)
        return false;

    chunk->extents = found;
    for (unsigned i = 0; i < votes.count; i++) {
        const struct bw_image *image = &scan->images[votes.items[i].image];
        const uint64_t devid =
            image->is_unclaimed ? missing_device(scan, set) : image->superblock.device.devid;
        found[i] = (struct bw_found_extent){chunk->logical, devid, votes.items[i].beginning,
                                            chunk->length / best};
        if (!devid || !assign_stripe(chunk, i, votes.items[i].stripe, order))
            return false;
    }
    return votes.count;
}

/* Finding data on devices by checksums, for chunks with a block group and unknown locations. */

enum { PIECE = 4 << 20, MOST_SAMPLES = 1 << 18, MOST_SEEN = 1 << 20 };

/* A data sector to search: the beginning of its checksum. */
struct sample {
    uint64_t checksum;
    uint64_t address; /* 0: several addresses have this checksum */
};

BW_VECTOR(samples, struct sample);

/* The beginning of a checksum, mixed with its type: the same bytes do not match as another type. */
static uint64_t short_checksum(enum bw_checksum_type type, const uint8_t *checksum)
{
    const size_t size = bw_checksum_size(type);
    uint64_t result = 0;
    memcpy(&result, checksum, size < sizeof result ? size : sizeof result);
    return result + type * UINT64_C(0x9e3779b97f4a7c15);
}

/* The data block group that contains an address, if its chunk is unknown; otherwise NULL. */
static const struct bw_newest_item *lost_group(const struct bw_newest *groups,
                                               const struct bw_chunk_set *set, uint64_t address)
{
    const size_t after =
        BW_FIRST_INDEX(i, groups->items.count, groups->items.items[i].key.objectid > address);
    if (!after)
        return NULL;
    const struct bw_newest_item *group = &groups->items.items[after - 1];
    const struct bw_disk_block_group *disk = (const void *)bw_newest_view(groups, group).data;
    struct bw_copies known;
    if (address - group->key.objectid >= group->key.offset || group->size < sizeof *disk ||
        !is_data(bw_get64(disk->flags)) || bw_copies_begin(&known, set, group->key.objectid))
        return NULL;
    return group;
}

static int by_checksum(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;
    return a->checksum != b->checksum ? (a->checksum > b->checksum) * 2 - 1
                                      : (a->address > b->address) - (a->address < b->address);
}

/* Chooses the sectors to search, sorted by checksum: in lost block groups, one of each 64 KiB.
 * `*types` are the types of their checksums. */
static struct bw_error *select_samples(const struct bw_device_scan *scan,
                                       const struct bw_newest *groups,
                                       const struct bw_chunk_set *set, struct samples *samples,
                                       unsigned *types)
{
    const size_t step = BW_STRIPE_LENGTH / scan->sectorsize;
    BW_AUTO_FREE uint8_t *block = malloc(scan->identity.nodesize);
    if (!block)
        return bw_error_no_memory();
    size_t work = SIZE_MAX;
    struct sum_items sums = {
        .scan = scan, .set = set, .work = &work, .left = scan->matches.count, .block = block};
    while (next_sum_item(&sums)) {
        const struct bw_item *item = &sums.item;
        const struct bw_newest_item *group = lost_group(groups, set, item->key.offset);
        if (!group)
            continue;
        *types |= BW_CHECKSUM_BIT(sums.type);
        const uint64_t over = (item->key.offset - group->key.objectid) % BW_STRIPE_LENGTH;
        const uint64_t first = (BW_STRIPE_LENGTH - over) % BW_STRIPE_LENGTH;
        for (size_t at = (size_t)first / scan->sectorsize;
             at < item->size / sums.size && samples->count < MOST_SAMPLES; at += step) {
            const uint64_t checksum = short_checksum(sums.type, item->data + at * sums.size);
            BW_TRY(samples_push(
                samples, (struct sample){checksum, item->key.offset + at * scan->sectorsize}));
        }
    }

    /* Old leaves have the same sectors again. Contents at several addresses prove nothing. */
    size_t kept = 0;
    samples_sort(samples, by_checksum);
    for (size_t i = 0; i < samples->count; i++) {
        struct sample *last = &samples->items[kept ? kept - 1 : 0];
        if (!kept || last->checksum != samples->items[i].checksum)
            samples->items[kept++] = samples->items[i];
        else if (last->address != samples->items[i].address)
            last->address = 0;
    }
    samples->count = kept;
    return NULL;
}

struct bw_error *bw_data_search(const struct bw_device_scan *scan, struct bw_chunk_facts *facts,
                                const struct bw_chunk_set *set)
{
    BW_SCOPED(samples) struct samples samples = {0};
    unsigned types = 0;
    BW_TRY(select_samples(scan, &facts->groups, set, &samples, &types));
    BW_AUTO_FREE uint8_t *buffer = aligned_alloc(BW_MIN_SECTORSIZE, PIECE);
    if (!buffer)
        return bw_error_no_memory();

    /* At multiples of 64 KiB, where all stripes begin. */
    const uint32_t sectorsize = scan->sectorsize;
    for (size_t image = 0; samples.count && image < scan->image_count; image++) {
        struct bw_xlator *device = scan->images[image].storage;
        const bool is_wanted =
            scan->images[image].role != BW_IMAGE_UNUSED || scan->images[image].is_unclaimed;
        const uint64_t size = device && is_wanted ? bw_xlator_size(device) : 0;
        for (uint64_t at = 0; at < size; at += PIECE) {
            at = bw_xlator_next_stored(device, at);
            at -= at % BW_STRIPE_LENGTH;
            if (at >= size)
                break;
            const uint32_t length = size - at < PIECE ? (uint32_t)(size - at) : PIECE;
            BW_AUTO_ERROR struct bw_error *error =
                bw_device_scan_bytes(scan, image, at, length, buffer);
            for (uint32_t i = 0; !error && i + sectorsize <= length; i += BW_STRIPE_LENGTH) {
                const uint8_t *sector = buffer + i;
                uint8_t checksum[BW_CSUM_SIZE];
                if (memcmp(sector, sector + 1, sectorsize - 1) == 0 ||
                    facts->seen.count == MOST_SEEN)
                    continue;
                for (unsigned left = types; left; left &= left - 1) {
                    const enum bw_checksum_type type = (enum bw_checksum_type)__builtin_ctz(left);
                    bw_checksum_compute(type, sector, sectorsize, checksum);
                    const uint64_t wanted = short_checksum(type, checksum);
                    const size_t found =
                        BW_FIRST_INDEX(k, samples.count, samples.items[k].checksum >= wanted);
                    const struct sample *sample = samples.items + found;
                    if (found < samples.count && sample->checksum == wanted && sample->address)
                        BW_TRY(bw_data_places_push(
                            &facts->seen, (struct bw_data_place){sample->address, at + i, image}));
                }
            }
        }
    }
    return NULL;
}
