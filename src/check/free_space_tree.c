/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The free space tree as a source of runs: extents, or bits of bitmaps. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "check/free_space.h"
#include "ondisk/disk_items.h"

enum { BITMAPS = 1 }; /* flag of FREE_SPACE_INFO */

static struct bw_subject subject_of_group(const struct bw_free_space *self)
{
    const struct bw_key key = {self->group->start, BW_FREE_SPACE_INFO, self->group->length};
    return bw_free_space_subject(self, BW_FREE_SPACE_TREE, &key);
}

static bool is_before_all_groups(const struct bw_free_space *self, const struct bw_key *key)
{
    const struct bw_group_list *list = &self->check->groups;
    return list->count && key->offset <= list->groups[0].start &&
           key->objectid <= list->groups[0].start - key->offset;
}

/* New chunks begin behind all others. If the free space tree already has records there, it cannot
 * take those of the new block group, and the kernel aborts the transaction. */
static bool is_after_all_groups(const struct bw_free_space *self, const struct bw_key *key)
{
    const struct bw_group_list *list = &self->check->groups;
    const struct bw_checked_group *last = list->count ? &list->groups[list->count - 1] : NULL;
    return last && key->objectid >= last->start && key->objectid - last->start >= last->length;
}

static void note_stray(struct bw_free_space *self, const struct bw_key *key)
{
    if (is_after_all_groups(self, key)) {
        if (!self->ahead_count++)
            self->first_ahead = *key;
    } else if (!self->stray_count++) {
        self->first_stray = *key;
    }
}

/* All records of a block group that does not exist have come. Those that mkfs.btrfs leaves are
 * empty: one record says that all of it is free. */
static void end_extra(struct bw_free_space *self)
{
    if (self->extra.type && !self->extra_is_free)
        note_stray(self, &self->extra);
    self->extra = (struct bw_key){0};
}

static void begin_extra(struct bw_free_space *self, const struct bw_key *key)
{
    const struct bw_disk_free_space_info *info = (const void *)self->stream.item.data;
    self->extra = *key;
    self->extra_promised = self->stream.item.size < sizeof *info ? 0 : bw_get32(info->extent_count);
    self->extra_is_free = is_after_all_groups(self, key);
    if (self->extra_is_free)
        note_stray(self, key);
    else if (is_before_all_groups(self, key))
        self->leftover_count++;
    else if (!self->extra_count++)
        self->first_extra = *key;
}

/* An item in no block group. The records of one that does not exist go with it. */
static void skip_item(struct bw_free_space *self)
{
    const struct bw_key *key = &self->stream.item.key;
    if (key->type == BW_FREE_SPACE_INFO) {
        end_extra(self);
        begin_extra(self, key);
    } else if (key->objectid - self->extra.objectid >= self->extra.offset) {
        note_stray(self, key);
    } else if (key->type == BW_FREE_SPACE_EXTENT && key->objectid == self->extra.objectid &&
               key->offset == self->extra.offset && self->extra_promised == 1) {
        self->extra_is_free = true;
    }
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
    uint32_t first;
    const bool found = bw_free_space_bits(item->data, bits, &self->bit, &first);
    *run = (struct bw_run){item->key.objectid + first * sector,
                           item->key.objectid + self->bit * sector};
    return found;
}

static bool next(struct bw_free_space *self, struct bw_run *run)
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

static struct bw_error *enter(struct bw_free_space *self)
{
    const struct bw_checked_group *group = self->group;
    bool loss = false;
    while (is_before(self, group->start)) {
        loss |= self->stream.after_loss;
        skip_item(self);
    }
    loss |= self->stream.after_loss || (self->stream.ended && self->stream.lost);
    self->bit = 0;
    self->promised = self->flags = 0;
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
    return NULL;
}

static void leave(const struct bw_free_space *self)
{
    const struct bw_subject subject = subject_of_group(self);
    if (self->run_count != self->promised)
        bw_check_find(self->check, BW_CODE_free_space_count, &subject,
                      "%" PRIu64 " run%s, the block group has %" PRIu64, self->promised,
                      bw_plural(self->promised), self->run_count);
}

static struct bw_subject subject_of_extra(const struct bw_key *key)
{
    return (struct bw_subject){
        .finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY | BW_KNOWN_LOGICAL | BW_KNOWN_LENGTH,
                    .tree = BW_FREE_SPACE_TREE,
                    .key = *key,
                    .logical = key->objectid,
                    .length = key->offset}};
}

/* mkfs.btrfs before 6.16.1 kept the records of the block groups that it began with, and that lie
 * before all others. They are no news, so their note is short. */
static void report_leftovers(const struct bw_free_space *self)
{
    const struct bw_subject subject = {
        .finding = {.known = BW_KNOWN_TREE, .tree = BW_FREE_SPACE_TREE}};
    if (self->leftover_count)
        bw_check_find(self->check, BW_CODE_free_space_extra, &subject,
                      "%zu block group%s left behind by mkfs.btrfs before 6.16.1",
                      self->leftover_count, bw_plural(self->leftover_count));
}

static void report_extra(const struct bw_free_space *self, enum bw_code_number code,
                         const struct bw_key *key, size_t count, const char *what)
{
    const struct bw_subject subject = subject_of_extra(key);
    if (count)
        bw_check_find(self->check, code, &subject, "from here on, %s: %zu", what, count);
}

static void report_all_extra(const struct bw_free_space *self)
{
    if (self->check->groups.incomplete)
        return;
    report_leftovers(self);
    report_extra(self, BW_CODE_free_space_extra, &self->first_extra, self->extra_count,
                 "block groups that do not exist");
    /* What is lost may be the information of their block group. */
    if (self->stream.lost)
        return;
    report_extra(self, BW_CODE_free_space_stray, &self->first_stray, self->stray_count,
                 "records of no block group that mkfs.btrfs does not leave");
    report_extra(self, BW_CODE_free_space_ahead, &self->first_ahead, self->ahead_count,
                 "records where the next block group will be");
}

static struct bw_error *end(struct bw_free_space *self, struct bw_error *error)
{
    while (!error && !self->stream.ended)
        skip_item(self);
    end_extra(self);
    if (!error)
        report_all_extra(self);
    return bw_item_stream_end(&self->stream, error);
}

struct bw_error *bw_free_space_tree_begin(struct bw_free_space *self)
{
    static const struct bw_free_space_source source = {
        "free space tree", BW_CODE_free_space_differs, subject_of_group, enter, next, leave, end};
    struct bw_check *check = self->check;
    const uint64_t features = check->fs->superblock.compat_ro_flags,
                   wanted = BW_COMPAT_RO_FREE_SPACE_TREE | BW_COMPAT_RO_FREE_SPACE_TREE_VALID;
    if ((features & wanted) == BW_COMPAT_RO_FREE_SPACE_TREE)
        bw_check_find(check, BW_CODE_free_space_invalid, &(struct bw_subject){0},
                      "the free space tree is not valid: it will be made anew");
    if ((features & wanted) != wanted || !bw_tree_list_find(&check->trees, BW_FREE_SPACE_TREE))
        return NULL;
    self->source = &source;
    return bw_item_stream_begin(&self->stream, check->fs, &check->trees, BW_FREE_SPACE_TREE);
}
