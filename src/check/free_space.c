/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Free space trees. The runs of a block group, from extents or bitmaps, are joined where they
 * touch, cut where superblocks lie, and compared one by one with those that are expected.
 */
#include "check/free_space.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "btrfs-walk/space.h"
#include "format/chunk.h"
#include "format/disk_items.h"

enum { BITMAPS = 1 }; /* flag of FREE_SPACE_INFO */

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
    const uint64_t features = check->fs->superblock.compat_ro_flags,
                   wanted = BW_COMPAT_RO_FREE_SPACE_TREE | BW_COMPAT_RO_FREE_SPACE_TREE_VALID;
    *self = (struct bw_free_space){.check = check};
    self->is_used =
        (features & wanted) == wanted && bw_tree_list_find(&check->trees, BW_FREE_SPACE_TREE);
    if ((features & wanted) == BW_COMPAT_RO_FREE_SPACE_TREE)
        bw_check_find(check, BW_CODE_free_space_invalid, &(struct bw_subject){0},
                      "the free space tree is not valid: it will be made anew");
    if (!self->is_used)
        return NULL;
    BW_TRY(bw_item_stream_begin(&self->stream, check->fs, &check->trees, BW_FREE_SPACE_TREE));
    BW_TRY(bw_fs_chunks(check->fs, take_chunk, self));
    if (self->superblock_count)
        qsort(self->superblocks, self->superblock_count, sizeof *self->superblocks, compare);
    return NULL;
}

static struct bw_subject subject_of(const struct bw_key *key, uint64_t logical, uint64_t length)
{
    return (struct bw_subject){
        .finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY | BW_KNOWN_LOGICAL | BW_KNOWN_LENGTH,
                    .tree = BW_FREE_SPACE_TREE,
                    .key = *key,
                    .logical = logical,
                    .length = length}};
}

static struct bw_subject subject_of_group(const struct bw_free_space *self)
{
    const struct bw_checked_group *group = self->group;
    const struct bw_key key = {group->start, BW_FREE_SPACE_INFO, group->length};
    return subject_of(&key, group->start, group->length);
}

/* An item in no block group: the ranges of a block group are not counted. */
static void skip_item(struct bw_free_space *self)
{
    const struct bw_key *key = &self->stream.item.key;
    if (key->type == BW_FREE_SPACE_INFO && !self->extra_count++)
        self->first_extra = *key;
    bw_item_stream_next(&self->stream);
}

static bool is_before(const struct bw_free_space *self, uint64_t address)
{
    return !self->stream.ended && self->stream.item.key.objectid < address;
}

/* The next run of set bits of the present item; false if there are no more. */
static bool next_in_bitmap(struct bw_free_space *self, struct bw_run *run)
{
    const struct bw_item *item = &self->stream.item;
    const uint64_t sector = self->check->fs->superblock.sectorsize;
    uint64_t bits = item->key.offset / sector;
    if (bits > item->size * UINT64_C(8))
        bits = item->size * UINT64_C(8);
    uint32_t bit = self->bit;
    while (bit < bits && !(item->data[bit / 8] >> bit % 8 & 1))
        bit++;
    const uint32_t first = bit;
    while (bit < bits && item->data[bit / 8] >> bit % 8 & 1)
        bit++;
    self->bit = bit;
    *run = (struct bw_run){item->key.objectid + first * sector, item->key.objectid + bit * sector};
    return first < bit;
}

static bool next_raw(struct bw_free_space *self, struct bw_run *run)
{
    while (is_before(self, self->group->start + self->group->length)) {
        const struct bw_key key = self->stream.item.key;
        if (self->stream.after_loss)
            self->known = false;
        if (key.type == BW_FREE_SPACE_BITMAP && next_in_bitmap(self, run))
            return true;
        self->bit = 0;
        if (key.type == BW_FREE_SPACE_INFO) {
            skip_item(self);
            continue;
        }
        bw_item_stream_next(&self->stream);
        *run = (struct bw_run){key.objectid, key.objectid + key.offset};
        if (key.type == BW_FREE_SPACE_EXTENT)
            return true;
    }
    return false;
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

/* The next piece that the tree has; an empty one at the end. */
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

/* Reads the information of the block group, if the tree has it. */
static bool read_info(struct bw_free_space *self)
{
    const struct bw_item *item = &self->stream.item;
    const struct bw_disk_free_space_info *info = (const void *)item->data;
    if (self->stream.ended || item->key.objectid != self->group->start ||
        item->key.type != BW_FREE_SPACE_INFO || item->key.offset != self->group->length ||
        item->size < sizeof *info)
        return false;
    self->promised = bw_get32(info->extent_count);
    self->flags = bw_get32(info->flags);
    bw_item_stream_next(&self->stream);
    return true;
}

/* All records of a block group are of one kind. */
static void check_kind(const struct bw_free_space *self)
{
    const struct bw_key *key = &self->stream.item.key;
    const bool promised = self->flags & BITMAPS;
    if (!is_before(self, self->group->start + self->group->length) ||
        (key->type != BW_FREE_SPACE_BITMAP && key->type != BW_FREE_SPACE_EXTENT) ||
        promised == (key->type == BW_FREE_SPACE_BITMAP))
        return;
    const struct bw_subject subject = subject_of_group(self);
    bw_check_find(self->check, BW_CODE_free_space_item, &subject,
                  "flags %" PRIu32 ", but its records are %s", self->flags,
                  promised ? "extents" : "bitmaps");
}

void bw_free_space_enter(struct bw_free_space *self, const struct bw_checked_group *group)
{
    if (!self->is_used)
        return;
    self->group = group;
    bool loss = false;
    while (is_before(self, group->start)) {
        loss |= self->stream.after_loss;
        skip_item(self);
    }
    loss |= self->stream.after_loss || (self->stream.ended && self->stream.lost);
    self->has_run = self->differs = false;
    self->bit = 0;
    self->run_count = self->promised = self->flags = 0;
    self->known = read_info(self);
    /* With the remap-tree feature, nothing more is allocated in what was moved away. */
    if (!self->known && !loss && !(group->flags & (BW_GROUP_REMAPPED | BW_GROUP_METADATA_REMAP))) {
        const struct bw_subject subject = subject_of_group(self);
        bw_check_find(self->check, BW_CODE_free_space_missing, &subject,
                      "the free space tree does not have this block group");
    }
    self->known &= !loss;
    if (self->known)
        check_kind(self);
    self->has_next = next_raw(self, &self->next);
}

void bw_free_space_expect(struct bw_free_space *self, uint64_t start, uint64_t end)
{
    struct bw_run run = {start, end}, piece;
    while (self->is_used && cut_piece(self, &run, &piece))
        compare_piece(self, piece);
}

static void report_difference(const struct bw_free_space *self)
{
    const struct bw_run *wanted = &self->wanted, *found = &self->found;
    const bool only_found =
        wanted->start == wanted->end || (found->end && found->start < wanted->start);
    struct bw_subject subject = subject_of_group(self);
    const struct bw_run *first = only_found ? found : wanted;
    subject.finding.logical = first->start;
    subject.finding.length = first->end - first->start;
    if (found->end && found->start == wanted->start)
        bw_check_find(self->check, BW_CODE_free_space_differs, &subject,
                      "%" PRIu64 " bytes are free, the free space tree has %" PRIu64,
                      wanted->end - wanted->start, found->end - found->start);
    else
        bw_check_find(self->check, BW_CODE_free_space_differs, &subject,
                      only_found ? "the free space tree has what is not free"
                                 : "the free space tree does not have what is free");
}

void bw_free_space_leave(struct bw_free_space *self, bool unsure)
{
    if (!self->is_used)
        return;
    compare_piece(self, (struct bw_run){0});
    while (next_piece(self).end)
        continue;
    if (unsure || !self->known)
        return;
    if (self->differs)
        report_difference(self);
    const struct bw_subject subject = subject_of_group(self);
    if (self->run_count != self->promised)
        bw_check_find(self->check, BW_CODE_free_space_count, &subject,
                      "%" PRIu64 " runs, the block group has %" PRIu64, self->promised,
                      self->run_count);
}

struct bw_error *bw_free_space_end(struct bw_free_space *self, struct bw_error *error)
{
    while (self->is_used && !error && !self->stream.ended)
        skip_item(self);
    if (self->extra_count && !error && !self->check->groups.incomplete) {
        const struct bw_key *key = &self->first_extra;
        const struct bw_subject subject = subject_of(key, key->objectid, key->offset);
        bw_check_find(self->check, BW_CODE_free_space_extra, &subject,
                      "%zu block groups from here on do not exist", self->extra_count);
    }
    free(self->superblocks);
    return bw_item_stream_end(&self->stream, error);
}
