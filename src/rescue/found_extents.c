/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extents from what is stored in them: each block that was seen is a vote for the beginning of a
 * stripe. How many columns a chunk has is tried: with a wrong number, the votes are scattered. */
#include "rescue/found_extents.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"

enum { MOST_VOTES = 1 << 14, LEAST = 4 };

/* A vote: that a stripe of the chunk begins there. */
struct vote {
    size_t image;
    unsigned stripe;
    uint64_t beginning;
    uint32_t count; /* once they are counted: of those that agree */
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

/* The most votes first. */
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
    const unsigned stripe = chunk->profile->striped ? bw_stripe_of(chunk, address, &place) : 0;
    place = chunk->profile->striped ? place : address - chunk->logical;
    if (offset >= place)
        trial->votes[trial->count++] = (struct vote){image, stripe, offset - place, 1};
}

/* Makes one of votes that agree, and sorts what is left. */
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

/* Keeps the beginning that most votes of an image are for, or two where the profile has two copies
 * on a device. Others must be few. */
static void elect(struct trial *trial, const struct bw_derived_chunk *chunk)
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
    const size_t count = is_data ? facts->seen_count : scan->count;
    trial->count = trial->score = 0;
    *chunk->work -= count < *chunk->work ? count : *chunk->work;
    if (!*chunk->work)
        return false;
    set_columns(chunk, columns);
    for (size_t i = 0; i < count; i++)
        if (is_data)
            add_vote(trial, chunk, facts->seen[i].image, facts->seen[i].address,
                     facts->seen[i].offset);
        else
            add_vote(trial, chunk, scan->sightings[i].image, scan->sightings[i].bytenr,
                     scan->sightings[i].offset);
    add_up(trial);
    elect(trial, chunk);
    return trial->score;
}

/* The number of columns for which by far most votes agree; 0 if there is none. */
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

/* The only device that is missing, if there is only one image that it may be; 0 otherwise. */
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
    for (size_t i = 0; i < set->layout.chunk_count; i++)
        for (unsigned n = 0; n < set->layout.chunks[i].stripe_count; n++) {
            const uint64_t devid = set->layout.chunks[i].stripes[n].devid;
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
        if (!devid || !bw_take_stripe(chunk, i, votes[i].stripe, order))
            return false;
    }
    return trial.count;
}
