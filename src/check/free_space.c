/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The comparison of free space. The runs of a block group that a source has are joined where they
 * touch, cut where superblocks lie, and compared one by one with those that are expected.
 */
#include "check/free_space.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "btrfs-walk/space.h"
#include "ondisk/chunk.h"

static struct bw_error *add_superblock(struct bw_free_space *self, uint64_t start, uint64_t length)
{
    if (!BW_ARRAY_RESERVE(self->superblocks, self->superblock_count, self->superblock_capacity))
        return bw_error_no_memory();
    self->superblocks[self->superblock_count++] = (struct bw_run){start, start + length};
    return NULL;
}

/* The stripes of a chunk in which superblocks lie, as the kernel sets them apart. Source:
 * btrfs_rmap_block() and exclude_super_stripes() in fs/btrfs/block-group.c. */
static struct bw_error *take_chunk(void *context, const struct bw_chunk_info *chunk)
{
    struct bw_free_space *self = context;
    const struct bw_raid_profile *profile = bw_raid_profile_of(chunk->type);
    const uint64_t stripe_length = bw_chunk_stripe_length(chunk);
    uint64_t step = BW_STRIPE_LENGTH;
    if (profile->parity_stripes)
        step *= chunk->stripe_count - profile->parity_stripes;
    if (chunk->logical < BW_STRIPE_LENGTH)
        BW_TRY(add_superblock(self, chunk->logical, BW_STRIPE_LENGTH - chunk->logical));
    for (unsigned i = 0; i < chunk->stripe_count * BW_SUPERBLOCK_COPIES; i++) {
        const unsigned stripe = i / BW_SUPERBLOCK_COPIES;
        const uint64_t start = chunk->stripes[stripe].offset,
                       place = bw_superblock_offset(i % BW_SUPERBLOCK_COPIES) - start;
        if (place >= stripe_length || chunk->logical + place < place)
            continue;
        uint64_t number = place / BW_STRIPE_LENGTH;
        if (profile->striped && !profile->parity_stripes)
            number = (number * chunk->stripe_count + stripe) / profile->copies;
        BW_TRY(
            add_superblock(self, chunk->logical + number * step + place % BW_STRIPE_LENGTH, step));
    }
    return NULL;
}

static int compare(const void *left, const void *right)
{
    const struct bw_run *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

struct bw_error *bw_free_space_begin(struct bw_free_space *self, struct bw_check *check)
{
    *self = (struct bw_free_space){.check = check};
    BW_TRY(bw_free_space_tree_begin(self));
    if (!self->source)
        BW_TRY(bw_space_cache_begin(self));
    if (!self->source)
        return NULL;
    BW_TRY(bw_fs_chunks(check->fs, take_chunk, self));
    if (self->superblock_count)
        qsort(self->superblocks, self->superblock_count, sizeof *self->superblocks, compare);
    return NULL;
}

struct bw_subject bw_free_space_subject(const struct bw_free_space *self, uint64_t tree,
                                        const struct bw_key *key)
{
    return (struct bw_subject){
        .finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY | BW_KNOWN_LOGICAL | BW_KNOWN_LENGTH,
                    .tree = tree,
                    .key = *key,
                    .logical = self->group->start,
                    .length = self->group->length}};
}

bool bw_free_space_bits(const uint8_t *bytes, uint64_t bits, uint32_t *bit, uint32_t *first)
{
    while (*bit < bits && !(bytes[*bit / 8] >> *bit % 8 & 1))
        ++*bit;
    *first = *bit;
    while (*bit < bits && bytes[*bit / 8] >> *bit % 8 & 1)
        ++*bit;
    return *first < *bit;
}

uint64_t bw_free_space_superblocks(const struct bw_free_space *self)
{
    uint64_t position = self->group->start, sum = 0;
    const uint64_t end = position + self->group->length;
    for (size_t i = 0; i < self->superblock_count; i++) {
        const struct bw_run *run = &self->superblocks[i];
        const uint64_t from = run->start > position ? run->start : position;
        const uint64_t to = run->end < end ? run->end : end;
        sum += from < to ? to - from : 0;
        position = from < to ? to : position;
    }
    return sum;
}

static bool next_raw(struct bw_free_space *self, struct bw_run *run)
{
    return self->source->next(self, run);
}

/* The next run, with those that touch it. */
static bool next_joined(struct bw_free_space *self, struct bw_run *run)
{
    if (!self->has_next)
        return false;
    *run = self->next;
    while ((self->has_next = next_raw(self, &self->next)) && self->next.start <= run->end)
        run->end = self->next.end > run->end ? self->next.end : run->end;
    self->run_count++;
    return true;
}

/* Cuts the first piece that has no superblock off a run; false if nothing is left. */
static bool cut_piece(const struct bw_free_space *self, struct bw_run *run, struct bw_run *piece)
{
    const struct bw_run *superblocks = self->superblocks;
    size_t i = BW_FIRST_INDEX(k, self->superblock_count, superblocks[k].end > run->start);
    while (i < self->superblock_count && superblocks[i].start <= run->start) {
        run->start = superblocks[i].end > run->start ? superblocks[i].end : run->start;
        i++;
    }
    *piece = *run;
    if (i < self->superblock_count && superblocks[i].start < run->end)
        piece->end = superblocks[i].start;
    run->start = piece->end;
    return piece->start < piece->end;
}

/* The next piece that the source has; an empty one at the end. */
static struct bw_run next_piece(struct bw_free_space *self)
{
    struct bw_run piece;
    for (;;) {
        if (self->has_run && cut_piece(self, &self->run, &piece))
            return piece;
        self->has_run = next_joined(self, &self->run);
        if (!self->has_run)
            return (struct bw_run){0};
    }
}

static void compare_piece(struct bw_free_space *self, struct bw_run wanted)
{
    const struct bw_run found = next_piece(self);
    if (self->differs || (found.start == wanted.start && found.end == wanted.end))
        return;
    self->differs = true;
    self->wanted = wanted;
    self->found = found;
}

void bw_free_space_enter(struct bw_free_space *self, const struct bw_checked_group *group)
{
    if (!self->source || self->failure)
        return;
    self->group = group;
    self->has_run = self->has_next = self->differs = false;
    self->run_count = 0;
    self->failure = self->source->enter(self);
    if (!self->failure)
        self->has_next = next_raw(self, &self->next);
}

void bw_free_space_expect(struct bw_free_space *self, uint64_t start, uint64_t end)
{
    struct bw_run run = {start, end}, piece;
    while (self->source && cut_piece(self, &run, &piece))
        compare_piece(self, piece);
}

static void report_difference(const struct bw_free_space *self)
{
    const struct bw_run *wanted = &self->wanted, *found = &self->found;
    const char *name = self->source->name;
    const bool only_found =
        wanted->start == wanted->end || (found->end && found->start < wanted->start);
    struct bw_subject subject = self->source->subject(self);
    const struct bw_run *first = only_found ? found : wanted;
    subject.finding.logical = first->start;
    subject.finding.length = first->end - first->start;
    if (found->end && found->start == wanted->start)
        bw_check_find(self->check, self->source->differs, &subject,
                      "%" PRIu64 " bytes are free, the %s has %" PRIu64,
                      wanted->end - wanted->start, name, found->end - found->start);
    else
        bw_check_find(
            self->check, self->source->differs, &subject,
            only_found ? "the %s has what is not free" : "the %s does not have what is free", name);
}

void bw_free_space_leave(struct bw_free_space *self, bool unsure)
{
    if (!self->source || self->failure)
        return;
    compare_piece(self, (struct bw_run){0});
    while (next_piece(self).end)
        continue;
    if (unsure || !self->known)
        return;
    if (self->differs)
        report_difference(self);
    if (self->source->leave)
        self->source->leave(self);
}

struct bw_error *bw_free_space_end(struct bw_free_space *self, struct bw_error *error)
{
    if (error || !self->failure)
        bw_error_free(self->failure);
    else
        error = self->failure;
    free(self->superblocks);
    return self->source ? self->source->end(self, error) : error;
}
