/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checksums of data.
 *
 * An item of a checksum tree contains the packed checksums of consecutive sectors, and its key has
 * the address of the first one. The items of a leaf may be adjacent, and those of a hostile or
 * damaged one may overlap; then the later item is valid for its sectors. bw_data_checksums_get()
 * finds the leaf of an address and copies checksums from its items, then from the leaves after it,
 * until the range or an unbroken sequence of sectors ends. A sector without a checksum may have
 * had one in a lost block. With extent tree v2 there are several checksum trees, each for some of
 * the block groups; they are searched in turn, beginning with the one that was right last.
 */
#include "data/fetch.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "fs/fs.h"
#include "ondisk/checksum.h"

uint64_t bw_data_count_unverified(struct bw_fs *fs, const struct bw_request *request)
{
    const enum bw_checksum_type type = bw_fs_data_checksum(fs);
    uint64_t bytes = 0;
    if (request->error || !request->unverified || !request->data)
        return 0;
    const uint32_t sectorsize = request->data->sectorsize;
    for (uint32_t at = 0, i = 0; at < request->length; at += sectorsize, i++) {
        uint8_t found[BW_CSUM_SIZE];
        const size_t size = bw_checksum_size(type);
        bw_checksum_compute(type, (const uint8_t *)request->buffer + at, sectorsize, found);
        if (memcmp(found, request->data->checksums + i * size, size) != 0)
            bytes += sectorsize;
    }
    fs->unverified += bytes;
    return bytes;
}

void bw_data_checksums_init(struct bw_data_checksums *checksums, struct bw_fs *fs)
{
    *checksums = (struct bw_data_checksums){
        .fs = fs,
        .sectorsize = fs->superblock.sectorsize,
        .size = (uint32_t)bw_checksum_size(bw_fs_data_checksum(fs)),
    };
    bw_leaf_finder_init(&checksums->finder, &fs->reader, &(struct bw_tree){0});
}

void bw_data_checksums_free(struct bw_data_checksums *checksums)
{
    bw_leaf_finder_free(&checksums->finder);
}

/* The address where the next item after `logical` begins, or where the key range of the leaf
 * ends. */
static uint64_t next_item(const struct bw_data_checksums *self, uint64_t logical)
{
    const struct bw_leaf_finder *finder = &self->finder;
    struct bw_key key = bw_fs_checksum_key(self->fs, logical);
    int64_t slot = finder->lost ? -1 : bw_leaf_first_behind(finder, &key);
    key = slot < 0 ? finder->end : bw_leaf_key(&finder->leaf, (uint32_t)slot);
    return bw_fs_is_data_checksum(self->fs, &key) ? key.offset : UINT64_MAX;
}

/* Copies the checksums at the beginning of a range from the finder's leaf; returns the number of
 * bytes of data that they are for. */
static uint64_t copy_from_leaf(const struct bw_data_checksums *self, uint64_t logical,
                               uint64_t length, uint8_t *result)
{
    const uint32_t sectorsize = self->sectorsize;
    uint64_t done = 0;
    while (done < length) {
        const struct bw_key key = bw_fs_checksum_key(self->fs, logical + done);
        struct bw_item item;
        const uint64_t end = next_item(self, key.offset);
        if (end <= key.offset)
            break;

        /* The item that contains the sector, and the sectors from there to its end. */
        const int64_t slot = bw_leaf_last_until(&self->finder, &key);
        if (slot < 0 || !bw_leaf_item(&self->finder.leaf, (uint32_t)slot, &item) ||
            !bw_fs_is_data_checksum(self->fs, &item.key))
            break;
        const uint64_t before = (key.offset - item.key.offset) / sectorsize;
        const uint64_t in_item = item.size / self->size;
        if ((key.offset - item.key.offset) % sectorsize || before >= in_item)
            break;
        const uint64_t room = bw_min(length - done, end - key.offset) / sectorsize;
        const uint64_t sectors = bw_min(in_item - before, room);
        if (!sectors)
            break;
        memcpy(result + done / sectorsize * self->size, item.data + before * self->size,
               (size_t)sectors * self->size);
        done += sectors * sectorsize;
    }
    return done;
}

/* Gets checksums from the tree that the finder searches. */
static struct bw_error *get_from_tree(struct bw_data_checksums *self, uint64_t logical,
                                      uint64_t length, uint8_t *result, struct bw_checksum_run *run)
{
    struct bw_key key = bw_fs_checksum_key(self->fs, logical);
    uint64_t done = 0;
    while (done < length) {
        BW_TRY(bw_fs_find_leaf(self->fs, &self->finder, &key));
        if (self->finder.lost)
            break;
        const uint64_t more = copy_from_leaf(self, key.offset, length - done,
                                             result + done / self->sectorsize * self->size);
        if (!more)
            break;
        done += more;
        key = bw_fs_checksum_key(self->fs, logical + done);
    }
    *run = (struct bw_checksum_run){.length = done, .known = done > 0};
    if (done < length)
        run->lost = bw_leaf_lost_block(&self->finder, &key);
    if (done)
        return NULL;

    /* The bytes up to the next item have no checksum: whole sectors, and at least one. */
    const uint64_t next = next_item(self, logical);
    uint64_t gap = next > logical ? next - logical : 0;
    gap -= gap % self->sectorsize;
    run->length = bw_max(bw_min(gap, length), self->sectorsize);
    return NULL;
}

struct bw_error *bw_data_checksums_get(struct bw_data_checksums *self, uint64_t logical,
                                       uint64_t length, uint8_t *result,
                                       struct bw_checksum_run *run)
{
    const struct bw_checksum_trees *trees = &self->fs->checksum_trees;
    *run = (struct bw_checksum_run){.length = length};
    /* the next range is nearly always in the same block group */
    for (size_t tried = 0, at = self->tree; tried < trees->count && !run->known; tried++, at++) {
        struct bw_checksum_run answer;
        self->tree = at % trees->count;
        bw_leaf_finder_set_tree(&self->finder, &trees->items[self->tree]);
        BW_TRY(get_from_tree(self, logical, run->length, result, &answer));
        if (!answer.known && !answer.lost)
            answer.lost = run->lost;
        *run = answer;
    }
    return NULL;
}
