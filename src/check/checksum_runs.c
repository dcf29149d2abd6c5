/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Items of checksum trees as ranges of bytes that have checksums. */
#include "check/checksum_runs.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "check/sectors.h"
#include "ondisk/checksum.h"

static struct bw_finding_location location_of(const struct bw_checksum_runs *self, uint64_t logical,
                                              uint64_t length)
{
    return (struct bw_finding_location){
        .finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY | BW_KNOWN_LOGICAL | BW_KNOWN_LENGTH,
                    .tree = BW_CSUM_TREE,
                    .key = self->stream.item.key,
                    .logical = logical,
                    .length = length}};
}

/* Whether the present item adds checksums to those before it. */
static bool take_item(struct bw_checksum_runs *self)
{
    const struct bw_item *item = &self->stream.item;
    const uint64_t sector = self->check->fs->superblock.sectorsize, start = item->key.offset;
    const uint64_t size = bw_checksum_size(self->check->fs->superblock.checksum_type);
    if (item->key.type != BW_EXTENT_CSUM || item->key.objectid != BW_EXTENT_CSUM_OBJECT)
        return false;
    const uint64_t length = item->size / size * sector;
    if (start + length < start)
        return false; /* items.c finds that it is not aligned */
    if (start < self->item_end) {
        const struct bw_finding_location location =
            location_of(self, start, self->item_end - start);
        bw_check_find(self->check, BW_CODE_checksum_overlap, &location,
                      "the item before it reaches into the item");
    }
    self->start = start < self->item_end ? self->item_end : start;
    self->end = self->item_end = start + length > self->item_end ? start + length : self->item_end;
    return self->start < self->end;
}

/* Makes the first item from the present one on that has checksums the present run. */
static void find_run(struct bw_checksum_runs *self)
{
    self->after_loss = false;
    for (; !self->stream.ended; bw_item_stream_next(&self->stream)) {
        self->after_loss |= self->stream.after_loss;
        if (take_item(self))
            return;
    }
    self->after_loss |= self->stream.after_loss;
    self->start = self->end = UINT64_MAX;
}

static void next_run(struct bw_checksum_runs *self)
{
    bw_item_stream_next(&self->stream);
    find_run(self);
}

struct bw_error *bw_checksum_runs_begin(struct bw_checksum_runs *self, struct bw_check *check)
{
    *self = (struct bw_checksum_runs){.check = check};
    BW_TRY(bw_item_stream_begin(&self->stream, check->fs, &check->trees, BW_CSUM_TREE));
    find_run(self);
    return NULL;
}

void bw_checksum_runs_skip(struct bw_checksum_runs *self, uint64_t address, bool unsure)
{
    while (self->start < address && !self->stream.ended) {
        const uint64_t end = self->end < address ? self->end : address;
        const struct bw_finding_location location =
            location_of(self, self->start, end - self->start);
        if (!unsure && self->start < end)
            bw_check_find(self->check, BW_CODE_checksum_orphaned, &location,
                          "checksums of bytes that no extent of data has");
        self->start = end;
        if (self->start == self->end)
            next_run(self);
    }
}

/* From `start` up to `end` there are no checksums, or they are lost. */
static bool add_unsummed(struct bw_checksum_runs *self, uint64_t start, uint64_t end)
{
    return self->after_loss || bw_sectors_add(self->check->unsummed, start, end - start);
}

bool bw_checksum_runs_cover(struct bw_checksum_runs *self, uint64_t start, uint64_t end)
{
    bool added = true;
    while (added && start < end) {
        if (self->start > start) {
            const uint64_t until = self->start < end ? self->start : end;
            added = add_unsummed(self, start, until);
            start = until;
        } else {
            start = self->end < end ? self->end : end;
            self->start = start;
        }
        if (self->start == self->end && !self->stream.ended)
            next_run(self);
    }
    return added;
}

struct bw_error *bw_checksum_runs_end(struct bw_checksum_runs *self, struct bw_error *error)
{
    self->check->checksums_known = !self->stream.lost;
    return bw_item_stream_end(&self->stream, error);
}
