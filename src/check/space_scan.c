/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `space`: whether the extent tree, the block groups, the free space and the checksums
 * agree about each byte of the address space.
 *
 * All of these are sorted by address, so one scan of the extent tree, in parallel with the others,
 * compares them. `position` moves up through the block groups: the bytes between two extents must
 * be free, the extents of a block group add up to its used bytes, checksums outside of data extents
 * are orphaned, and data without checksums are noted. Where items may be lost (`unsure`), nothing
 * is concluded from their absence.
 *
 * Block groups that are unchanged since a baseline are passed over: the pass takes from the
 * baseline what it would have found in them.
 *
 * The pass leaves for later ones: the references that the extent tree promises, the tree blocks
 * that are shared or count references by address, and the data without checksums.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "check/flipped.h"
#include "check/free_space.h"
#include "check/groups.h"
#include "check/incomplete_chunks.h"
#include "check/reference_counts.h"
#include "check/unchanged.h"
#include "ondisk/checksum.h"
#include "owners/tree_list.h"

/* No extent has so many references. */
enum { UNLIKELY_COUNT = 1 << 22 };

/* The items of the checksum trees, which are compared with each other and with the extents of data,
 * both in ascending order. */
struct checksum_runs {
    struct bw_check *check;
    struct bw_item_stream stream;
    uint64_t start, end;        /* the rest of the current item: bytes that its checksums cover */
    uint64_t item_end;          /* where the items so far end */
    bool after_loss;            /* checksums between the item before and this one may be lost */
    struct bw_range_set in_log; /* data of the log, which the extent tree does not have yet */
    bool log_known;             /* all of them are in `in_log` */
};

/* Makes the first item from the present one on that adds checksums to those before it the present
 * run. */
static void find_run(struct checksum_runs *self)
{
    const struct bw_fs *fs = self->check->fs;
    const uint64_t sector = fs->superblock.sectorsize;
    const uint64_t size = bw_checksum_size(bw_fs_data_checksum(fs));
    self->after_loss = false;
    for (; !self->stream.ended; bw_item_stream_next(&self->stream)) {
        const struct bw_item *item = &self->stream.item;
        const uint64_t start = item->key.offset, end = start + item->size / size * sector;
        self->after_loss |= self->stream.after_loss;
        if (!bw_fs_is_data_checksum(fs, &item->key) || end < start)
            continue; /* tree_items.c finds that it is not aligned */
        if (start < self->item_end) {
            const struct bw_finding location =
                bw_item_location(BW_CSUM_TREE, item->key, start, self->item_end - start);
            bw_check_find(self->check, BW_CODE_checksum_overlap, &location,
                          "the item before it reaches into the item");
        }
        self->start = start < self->item_end ? self->item_end : start;
        self->end = self->item_end = end > self->item_end ? end : self->item_end;
        if (self->start < self->end)
            return;
    }
    self->after_loss |= self->stream.after_loss;
    self->start = self->end = UINT64_MAX;
}

static void next_run(struct checksum_runs *self)
{
    bw_item_stream_next(&self->stream);
    find_run(self);
}

/* There is no data extent before `address`, or, if `unsure`, it is not known whether there is:
 * checksums before it are orphaned. */
static void checksum_runs_skip(struct checksum_runs *self, uint64_t address, bool unsure)
{
    while (self->start < address && !self->stream.ended) {
        const uint64_t end = self->end < address ? self->end : address;
        while (!unsure && self->log_known && self->start < end) {
            uint64_t until = end;
            const bool in_log = bw_range_set_has(&self->in_log, self->start, &until);
            const struct bw_finding location = bw_item_location(BW_CSUM_TREE, self->stream.item.key,
                                                                self->start, until - self->start);
            if (!in_log)
                bw_check_find(self->check, BW_CODE_checksum_orphaned, &location,
                              "checksums of bytes that belong to no data extent");
            self->start = until;
        }
        self->start = end;
        if (self->start == self->end)
            next_run(self);
    }
}

/* There is an extent of data, after all others: its ranges without checksums are added to
 * check->unsummed, unless the checksums are lost. */
static struct bw_error *checksum_runs_cover(struct checksum_runs *self, uint64_t start,
                                            uint64_t end)
{
    while (start < end) {
        if (self->start > start) {
            const uint64_t until = self->start < end ? self->start : end;
            if (!self->after_loss)
                BW_TRY(bw_range_set_insert(&self->check->unsummed, start, until));
            start = until;
        } else {
            start = self->end < end ? self->end : end;
            self->start = start;
        }
        if (self->start == self->end && !self->stream.ended)
            next_run(self);
    }
    return NULL;
}

/* Moves on to an address; the checksums before it are in order. */
static void checksum_runs_seek(struct checksum_runs *self, uint64_t address)
{
    const struct bw_superblock *superblock = &self->check->fs->superblock;
    const uint64_t longest = (uint64_t)superblock->nodesize /
                             bw_checksum_size(bw_fs_data_checksum(self->check->fs)) *
                             superblock->sectorsize;
    if (self->start >= address)
        return;
    if (self->end <= address) {
        struct bw_key key = self->stream.item.key;
        if (address > longest && key.offset < address - longest) {
            key.offset = address - longest;
            bw_item_stream_seek(&self->stream, &key);
            self->item_end = 0;
            find_run(self);
        }
        while (self->end <= address && !self->stream.ended)
            next_run(self);
    }
    if (self->start < address && self->end > address)
        self->start = address;
}

/* Where the pass is. */
struct space {
    struct bw_check *check;
    struct bw_item_stream extents;
    struct bw_free_space free_space;
    struct checksum_runs checksums;
    size_t next_group;              /* after the present one */
    struct bw_checked_group *group; /* the present one; NULL: none has begun */
    uint64_t position;              /* everything before it is accounted for */
    bool unsure;                    /* extents since the previous one may be lost */
    uint64_t found;                 /* findings before the block group */
    size_t last_used, used_before;  /* the last block groups with extents */
    uint64_t all_used;              /* bytes that all block groups use, according to their items */

    struct bw_extent_entry extent; /* the one whose references are counted */
    bool has_extent;
    struct bw_key extent_key;
    uint64_t counted; /* its references */
};

/* A finding about the present extent touches the files that use it. */
static struct bw_finding location_of_extent(const struct space *space)
{
    const struct bw_extent_entry *extent = &space->extent;
    struct bw_finding location =
        bw_item_location(space->extents.tree, space->extent_key, extent->bytenr, extent->length);
    location.touches = extent->is_block ? BW_TOUCHES_NOTHING : BW_TOUCHES_DATA;
    return location;
}

/* Block groups. */

/* The superblock has the sum of all block groups, unless an older generation was opened. */
static bool is_sum_known(const struct bw_check *check)
{
    return check->fs->root_tree.root.bytenr == check->fs->superblock.root.bytenr &&
           !check->groups.incomplete;
}

static void leave_group(struct space *space)
{
    struct bw_check *check = space->check;
    struct bw_checked_group *group = space->group;
    const uint64_t end = group->start + group->length;
    const struct bw_key key = {group->start, BW_BLOCK_GROUP_ITEM, group->length};
    group->unsure |= space->unsure;
    if (space->position < end)
        bw_free_space_expect(&space->free_space, space->position, end);
    /* The extent tree does not contain the remap tree, so its free space is not known either. */
    const bool has_remap_tree = group->flags & BW_GROUP_METADATA_REMAP;
    bw_free_space_leave(&space->free_space, group->unsure || has_remap_tree);
    if (group->unsure || group->counted == group->used || has_remap_tree ||
        group->flags & BW_GROUP_REMAPPED)
        return;
    struct bw_finding location =
        bw_item_location(check->fs->block_group_tree.id ? BW_BLOCK_GROUP_TREE : space->extents.tree,
                         key, group->start, group->length);
    const uint64_t sum = space->all_used - group->used + group->counted;
    if (is_sum_known(check) && sum == check->fs->superblock.bytes_used)
        bw_flip_in_item(check, location.row.tree, &key, offsetof(struct bw_disk_block_group, used),
                        8, group->used, group->counted, &location.flip);
    bw_check_find(check, BW_CODE_group_used, &location,
                  "%" PRIu64 " bytes used, its extents have %" PRIu64, group->used, group->counted);
}

/* Findings since the last call are of the block groups from `first` on, up to the present one: they
 * are not entered in a baseline. Orphaned checksums behind the last extent of a block group are
 * found only at the next extent. */
static void note_findings(struct space *space, size_t first)
{
    struct bw_checked_group *groups = space->check->groups.groups.items;
    for (size_t i = first; i < space->next_group && space->found != space->check->found; i++)
        groups[i].clean = groups[i].unchanged = false;
    space->found = space->check->found;
}

/* Copies the addresses in a range. */
static struct bw_error *copy_blocks(const struct bw_numbers *from, uint64_t start, uint64_t end,
                                    struct bw_key_map *to)
{
    for (size_t i = BW_FIRST_INDEX(k, from->count, from->items[k] >= start);
         i < from->count && from->items[i] < end; i++)
        BW_TRY(bw_key_map_put(to, from->items[i], 1));
    return NULL;
}

/* Takes the results of an unchanged block group from the baseline. */
static struct bw_error *carry_group(struct space *space, struct bw_checked_group *group)
{
    struct bw_check *check = space->check;
    const struct bw_baseline *since = check->since;
    const uint64_t start = group->start, end = start + group->length;
    bw_free_space_skip(&space->free_space, group);
    check->carried += group->references;
    group->counted = group->used;
    const struct bw_span *spans = since->unsummed.ranges.items;
    const size_t span_count = since->unsummed.ranges.count;
    for (size_t i = BW_FIRST_INDEX(k, span_count, spans[k].end > start);
         i < span_count && spans[i].start < end; i++)
        BW_TRY(bw_range_set_insert(&check->unsummed, bw_max(spans[i].start, start),
                                   bw_min(spans[i].end, end)));
    BW_TRY(copy_blocks(&since->full_backrefs, start, end, &check->full_backrefs));
    return copy_blocks(&since->shared_blocks, start, end, &check->shared_blocks);
}

/* Moves on to the block group that contains an address, or to the last one before it. There is no
 * present one if that is unchanged. */
static struct bw_error *advance_group(struct space *space, uint64_t address)
{
    const struct bw_group_list *list = &space->check->groups;
    while (space->next_group < list->groups.count &&
           list->groups.items[space->next_group].start <= address) {
        if (space->group)
            leave_group(space);
        note_findings(space, space->used_before);
        space->group = NULL;
        struct bw_checked_group *group = &list->groups.items[space->next_group++];
        space->position = group->start;
        if (group->unchanged) {
            BW_TRY(carry_group(space, group));
        } else {
            space->group = group;
            bw_free_space_enter(&space->free_space, group);
        }
    }
    if (space->group && space->unsure)
        space->group->unsure = true;
    return NULL;
}

/* Extents and their references. */

/* Adds a reference that the extent tree promises: to the sums of all, and of the block group. */
static void add_promised(struct space *space, const struct bw_reference *reference)
{
    const uint64_t sum = bw_count_promised_reference(space->check, reference);
    if (space->group)
        space->group->references += sum;
}

static void count_reference(struct space *space, const struct bw_reference *reference)
{
    space->counted += reference->count;
    if (reference->count)
        add_promised(space, reference);
}

/*
 * The flipped bit in the reference count of an extent, or in the count of its only reference.
 * References to a tree block have no counts, and one that is missing makes a difference of 1. For
 * data, the greater number is wrong if no extent has so many references; otherwise either may be.
 */
static void find_flip_in_count(const struct space *space, struct bw_flip *flip)
{
    const uint64_t have = space->extent.references, counted = space->counted;
    const uint32_t in_reference = sizeof(struct bw_disk_extent_item) +
                                  offsetof(struct bw_disk_inline_data_ref, reference) +
                                  offsetof(struct bw_disk_extent_data_ref, count);
    if (!counted || space->extents.tree != BW_EXTENT_TREE)
        return;
    if (space->extent.is_block ? have != counted + 1 : have >= UNLIKELY_COUNT)
        bw_flip_in_item(space->check, BW_EXTENT_TREE, &space->extent_key, 0, 8, have, counted,
                        flip);
    else if (!space->extent.is_block && counted >= UNLIKELY_COUNT)
        bw_flip_in_item(space->check, BW_EXTENT_TREE, &space->extent_key, in_reference, 4, counted,
                        have, flip);
}

/* All references of the extent have been counted, unless some are lost. */
static void end_extent(struct space *space, bool complete)
{
    const struct bw_extent_entry *extent = &space->extent;
    const bool wrong = space->counted != extent->references || !extent->references;
    if (!space->has_extent || !complete || !wrong) {
        space->has_extent = false;
        return;
    }
    struct bw_finding location = location_of_extent(space);
    if (extent->references || space->counted)
        find_flip_in_count(space, &location.flip);
    if (extent->references)
        bw_check_find(space->check, BW_CODE_extent_count, &location,
                      "references: %" PRIu64 ", the extent tree has %" PRIu64, extent->references,
                      space->counted);
    else
        bw_check_find(space->check, BW_CODE_extent_count, &location, "no references");
    space->has_extent = false;
}

/* An extent item: counts the references in it, adds it to its block group, and compares the free
 * space before it and the checksums in it. */
static struct bw_error *add_extent(struct space *space)
{
    struct bw_check *check = space->check;
    struct bw_extent_entry *extent = &space->extent;
    struct bw_reference reference;
    BW_TRY(advance_group(space, extent->bytenr));
    space->has_extent = true;
    space->extent_key = space->extents.item.key;
    space->counted = 0;
    while (bw_extent_reference_step(extent, &reference))
        count_reference(space, &reference);
    if (extent->is_block) {
        reference = bw_extent_as_reference(extent);
        add_promised(space, &reference);
        if (extent->shared_children)
            BW_TRY(bw_key_map_put(&check->full_backrefs, extent->bytenr, 1));
        if (extent->references != 1)
            BW_TRY(bw_key_map_put(&check->shared_blocks, extent->bytenr, 1));
    }

    const uint64_t start = extent->bytenr, length = extent->length, end = start + length;
    checksum_runs_skip(&space->checksums, start, space->unsure);
    bw_incomplete_chunks_extent(check, start, length);
    space->unsure = false;

    /* How much of it is in the block group: all, unless something is wrong. */
    struct bw_checked_group *group = space->group;
    uint64_t inside = 0;
    if (group && start - group->start < group->length)
        inside = group->length - (start - group->start);
    if (inside >= length) {
        const uint64_t kinds =
            extent->is_block ? BW_GROUP_METADATA | BW_GROUP_SYSTEM : BW_GROUP_DATA;
        if (start < space->position || !(group->flags & kinds)) {
            const struct bw_finding location = location_of_extent(space);
            if (start < space->position)
                bw_check_find(check, BW_CODE_extent_overlap, &location,
                              "the previous extent ends at %" PRIu64, space->position);
            if (!(group->flags & kinds))
                bw_check_find(check, BW_CODE_extent_kind, &location,
                              extent->is_block ? "a tree block in a block group of data"
                                               : "data in a block group of tree blocks");
        }
        if (start > space->position)
            bw_free_space_expect(&space->free_space, space->position, start);
        group->counted += length;
        space->position = end > space->position ? end : space->position;
        if (space->last_used != space->next_group - 1) {
            space->used_before = space->last_used;
            space->last_used = space->next_group - 1;
        }
    } else if (inside || !bw_check_chunk(check, start)) {
        const struct bw_finding location = location_of_extent(space);
        bw_check_find(check, BW_CODE_extent_outside, &location,
                      "the extent is not inside a block group");
    }
    if (extent->is_block)
        return NULL;
    if (check->since && extent->generation > check->since->generation)
        BW_TRY(bw_range_set_insert(&check->new_data, start, end));
    else if (check->since)
        BW_TRY(bw_range_set_insert(&check->old_data, start, end));
    return checksum_runs_cover(&space->checksums, start, end);
}

/* The unchanged block group that contains an address; NULL if none does. */
static const struct bw_checked_group *unchanged_group(const struct space *space, uint64_t address)
{
    const struct bw_checked_groups *groups = &space->check->groups.groups;
    const size_t i = BW_FIRST_INDEX(k, groups->count,
                                    groups->items[k].start + groups->items[k].length > address);
    const bool is_in = i < groups->count && groups->items[i].start <= address;
    return is_in && groups->items[i].unchanged ? &groups->items[i] : NULL;
}

/* Passes over an unchanged block group, and those that follow it. All streams are then at its end.
 */
static struct bw_error *skip_groups(struct space *space, const struct bw_checked_group *group)
{
    end_extent(space, !space->extents.after_loss);
    space->unsure |= space->extents.after_loss;
    uint64_t end = group->start;
    for (; group; group = unchanged_group(space, end)) {
        BW_TRY(advance_group(space, group->start));
        checksum_runs_skip(&space->checksums, group->start, space->unsure);
        note_findings(space, space->used_before);
        end = group->start + group->length;
        checksum_runs_seek(&space->checksums, end);
        space->unsure = false;
    }
    const struct bw_key key = {end, 0, 0};
    bw_item_stream_seek(&space->extents, &key);
    return NULL;
}

/* Begins with all trees, and passes the items of the extent tree to the functions above, and
 * everything behind the last. */
static struct bw_error *scan_space(struct space *space)
{
    struct bw_check *check = space->check;
    struct bw_item_stream *extents = &space->extents;
    struct checksum_runs *checksums = &space->checksums;
    struct bw_checked_groups *groups = &check->groups.groups;
    BW_TRY(bw_item_stream_begin(extents, check->fs, &check->trees, BW_EXTENT_TREE));
    BW_TRY(bw_free_space_begin(&space->free_space, check));
    BW_TRY(bw_log_data_ranges(check, &checksums->in_log, &checksums->log_known));
    BW_TRY(bw_item_stream_begin(&checksums->stream, check->fs, &check->trees, BW_CSUM_TREE));
    find_run(checksums);
    check->extents_known = extents->count;
    space->unsure = !check->extents_known;
    for (size_t i = 0; i < groups->count && !bw_free_space_can_skip(&space->free_space); i++)
        groups->items[i].unchanged = false;
    space->found = check->found;

    for (unsigned i = 0; !extents->ended; i++, bw_item_stream_next(extents)) {
        const struct bw_key *key = &extents->item.key;
        const struct bw_checked_group *skipped = NULL;
        struct bw_reference reference;
        if (i % 4096 == 0 && !bw_check_should_continue(check, 0))
            return NULL;
        while (check->skips && !extents->ended && (skipped = unchanged_group(space, key->objectid)))
            BW_TRY(skip_groups(space, skipped));
        if (extents->ended)
            break;
        const bool is_extent = key->type == BW_EXTENT_ITEM || key->type == BW_METADATA_ITEM;
        if (is_extent || extents->after_loss)
            end_extent(space, !extents->after_loss);
        space->unsure |= extents->after_loss;
        if (is_extent && bw_extent_entry_decode(check->fs, &extents->item, &space->extent)) {
            BW_TRY(add_extent(space));
        } else if (is_extent) {
            check->extents_known = false; /* tree_items.c reports the fault */
            space->unsure = true;
        } else if (bw_extent_keyed(&space->extent, &extents->item, &reference)) {
            const bool mine = space->has_extent && space->extent.bytenr == key->objectid;
            if (!mine)
                reference.length = 0;
            if (!mine && !space->unsure) {
                const struct bw_finding location =
                    bw_item_location(extents->tree, *key, key->objectid, 0);
                bw_check_find(check, BW_CODE_reference_alone, &location,
                              "a reference to an extent that has no item");
            }
            if (mine)
                count_reference(space, &reference);
            else if (reference.count)
                add_promised(space, &reference);
        } else if (key->type == BW_BLOCK_GROUP_ITEM && !bw_check_group(check, key->objectid)) {
            /* The block groups of all chunks have been read. */
            const struct bw_finding location =
                bw_item_location(extents->tree, *key, key->objectid, key->offset);
            check->groups.incomplete = true;
            bw_check_find(check, BW_CODE_chunk_missing, &location, "the block group has no chunk");
        }
    }
    end_extent(space, !extents->after_loss);
    space->unsure |= extents->after_loss;
    BW_TRY(advance_group(space, UINT64_MAX));
    if (space->group)
        leave_group(space);
    checksum_runs_skip(checksums, UINT64_MAX, space->unsure);
    note_findings(space, space->used_before);
    return bw_unchanged_data(check);
}

struct bw_error *bw_pass_space(struct bw_check *check)
{
    /* One of the streams may not begin, and each is ended. */
    struct space space = {.check = check, .checksums.check = check, .free_space.check = check};
    check->references = calloc(1, sizeof *check->references);
    if (!check->references)
        return bw_error_no_memory();
    BW_TRY(bw_check_load_groups(check));
    for (size_t i = 0; i < check->groups.groups.count; i++)
        space.all_used += check->groups.groups.items[i].used;
    BW_TRY(bw_unchanged_groups(check));
    struct bw_error *error = scan_space(&space);
    check->extents_known &= !space.extents.lost;
    check->checksums_known = !space.checksums.stream.lost;

    const struct bw_superblock *superblock = &check->fs->superblock;
    if (!error && is_sum_known(check) && space.all_used != superblock->bytes_used)
        bw_check_find(check, BW_CODE_super_used, NULL,
                      "%" PRIu64 " bytes used, the block groups have %" PRIu64,
                      superblock->bytes_used, space.all_used);
    bw_range_set_free(&space.checksums.in_log);
    error = bw_item_stream_end(&space.checksums.stream, error);
    error = bw_free_space_end(&space.free_space, error);
    return bw_item_stream_end(&space.extents, error);
}
