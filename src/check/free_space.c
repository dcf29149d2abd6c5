/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The comparison of free space. The runs of a block group that a source has are joined where they
 * touch, cut where superblocks lie, and compared one by one with those that are expected.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/human.h"
#include "base/search.h"
#include "base/vector.h"
#include "btrfs-walk/space.h"
#include "check/flipped.h"
#include "check/free_space.h"
#include "check/inode_sums.h"
#include "data/reader.h"
#include "fs/inode.h"
#include "ondisk/checksum.h"
#include "ondisk/chunk.h"
#include "ondisk/disk_items.h"

/* Takes the first piece without a superblock from a range; false if the rest is empty. */
static bool cut_piece(const struct bw_free_space *self, struct bw_span *run, struct bw_span *piece)
{
    const struct bw_span *superblocks = self->superblocks.ranges.items;
    size_t i = BW_FIRST_INDEX(k, self->superblocks.ranges.count, superblocks[k].end > run->start);
    while (i < self->superblocks.ranges.count && superblocks[i].start <= run->start) {
        run->start = superblocks[i].end > run->start ? superblocks[i].end : run->start;
        i++;
    }
    *piece = *run;
    if (i < self->superblocks.ranges.count && superblocks[i].start < run->end)
        piece->end = superblocks[i].start;
    run->start = piece->end;
    return piece->start < piece->end;
}

/* The next piece that the source has, of runs joined where they touch; an empty one at the end. */
static struct bw_span next_piece(struct bw_free_space *self)
{
    struct bw_span piece;
    while (!self->has_run || !cut_piece(self, &self->run, &piece)) {
        self->has_run = self->has_next;
        if (!self->has_run)
            return (struct bw_span){0};
        self->run = self->next;
        while ((self->has_next = self->source->next(self, &self->next)) &&
               self->next.start <= self->run.end)
            self->run.end = self->next.end > self->run.end ? self->next.end : self->run.end;
        self->run_count++;
    }
    return piece;
}

static uint64_t edge_of(uint64_t address)
{
    return bw_fact_mix(address + 1);
}

/* A hash of the ends of a run. In the sum of all runs of both sides, equal ends cancel out. */
static uint64_t edges_of(const struct bw_span *run)
{
    return edge_of(run->start) ^ edge_of(run->end);
}

static void compare_piece(struct bw_free_space *self, struct bw_span wanted)
{
    const struct bw_span found = next_piece(self);
    if (found.start == wanted.start && found.end == wanted.end)
        return;
    self->edges ^= edges_of(&found) ^ edges_of(&wanted);
    if (self->differs)
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
    self->run_count = self->edges = 0;
    self->failure = self->source->enter(self);
    if (!self->failure)
        self->has_next = self->source->next(self, &self->next);
}

void bw_free_space_expect(struct bw_free_space *self, uint64_t start, uint64_t end)
{
    struct bw_span run = {start, end}, piece;
    while (self->source && cut_piece(self, &run, &piece))
        compare_piece(self, piece);
}

void bw_free_space_leave(struct bw_free_space *self, bool unsure)
{
    const struct bw_free_space_source *source = self->source;
    if (!source || self->failure)
        return;
    struct bw_span rest;
    compare_piece(self, (struct bw_span){0});
    while ((rest = next_piece(self)).end)
        self->edges ^= edges_of(&rest);
    if (unsure || !self->known)
        return;
    if (self->differs) {
        const struct bw_span *wanted = &self->wanted, *found = &self->found, *first = wanted;
        const uint64_t want = wanted->end - wanted->start, have = found->end - found->start;
        if (!want || (found->end && found->start < wanted->start))
            first = found;
        struct bw_finding location = source->location(self);
        location.row.logical = first->start;
        location.row.length = first->end - first->start;
        if (source->find_flip && self->group->used == self->group->counted)
            source->find_flip(self, &location.flip);
        if (found->end && found->start == wanted->start)
            bw_check_find(self->check, source->differs, &location,
                          "%" PRIu64 " bytes are free, the %s has %" PRIu64, want, source->name,
                          have);
        else if (first == found)
            bw_check_find(self->check, source->differs, &location,
                          "the %s lists space that is in use", source->name);
        else
            bw_check_find(self->check, source->differs, &location, "the %s lacks free space",
                          source->name);
    }
    if (source->leave)
        source->leave(self);
}

struct bw_error *bw_free_space_end(struct bw_free_space *self, struct bw_error *error)
{
    if (error || !self->failure)
        bw_error_free(self->failure);
    else
        error = self->failure;
    bw_range_set_free(&self->superblocks);
    return self->source ? self->source->end(self, error) : error;
}

/* The free space tree as a source of runs: extents, or bits of bitmaps. */

enum { BITMAPS = 1 }; /* flag of FREE_SPACE_INFO */

static struct bw_finding tree_location(const struct bw_free_space *self)
{
    const struct bw_key key = {self->group->start, BW_FREE_SPACE_INFO, self->group->length};
    return bw_item_location(BW_FREE_SPACE_TREE, key, self->group->start, self->group->length);
}

/* New chunks begin after all others. If the free space tree already has records there, the kernel
 * cannot insert the records of the new block group, and aborts the transaction. */
static bool is_after_all_groups(const struct bw_free_space *self, const struct bw_key *key)
{
    const struct bw_group_list *list = &self->check->groups;
    const struct bw_checked_group *last =
        list->groups.count ? &list->groups.items[list->groups.count - 1] : NULL;
    return last && key->objectid >= last->start && key->objectid - last->start >= last->length;
}

/* The flipped bit in a record or a bitmap that makes all runs of the block group right, if its
 * extents have as many bytes as it uses. */
static void find_flip_in_tree(const struct bw_free_space *self, struct bw_flip *flip)
{
    enum { BITMAP_BITS = 2048 };
    struct bw_check *check = self->check;
    const struct bw_span *wanted = &self->wanted, *found = &self->found;
    const uint64_t sector = check->fs->superblock.sectorsize, start = self->group->start;
    if (!(self->flags & BITMAPS)) {
        const struct bw_key have = {found->start, BW_FREE_SPACE_EXTENT, found->end - found->start};
        const struct bw_key want = {wanted->start, BW_FREE_SPACE_EXTENT,
                                    wanted->end - wanted->start};
        if (self->edges == (edges_of(found) ^ edges_of(wanted)))
            bw_flip_in_key(check, BW_FREE_SPACE_TREE, &have, &want, flip);
        return;
    }
    uint64_t place = bw_min(found->start, wanted->start);
    if (found->start == wanted->start)
        place = bw_min(found->end, wanted->end);
    else if (!found->end || !wanted->end)
        place = found->start | wanted->start;
    const uint64_t first = start + (place - start) / (BITMAP_BITS * sector) * BITMAP_BITS * sector;
    const uint64_t bit = (place - first) / sector;
    const struct bw_key key = {first, BW_FREE_SPACE_BITMAP,
                               bw_min(BITMAP_BITS * sector, start + self->group->length - first)};
    if (self->edges == (edge_of(place) ^ edge_of(place + sector)))
        bw_flip_bit_of_item(check, BW_FREE_SPACE_TREE, &key, (uint32_t)(bit / 8), bit % 8, flip);
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

/* The records of a nonexistent block group are complete. Block groups left by mkfs.btrfs are empty:
 * one record marks everything as free. */
static void end_extra(struct bw_free_space *self)
{
    if (self->extra.type && !self->extra_is_free)
        note_stray(self, &self->extra);
    self->extra = (struct bw_key){0};
}

/* An item in no block group. The records of one that does not exist go with it. */
static void skip_item(struct bw_free_space *self)
{
    const struct bw_group_list *list = &self->check->groups;
    const struct bw_key *key = &self->stream.item.key;
    if (key->type == BW_FREE_SPACE_INFO) {
        const struct bw_disk_free_space_info *info = (const void *)self->stream.item.data;
        const bool is_whole = self->stream.item.size >= sizeof *info;
        const bool is_before = list->groups.count && key->offset <= list->groups.items[0].start &&
                               key->objectid <= list->groups.items[0].start - key->offset;
        end_extra(self);
        self->extra = *key;
        self->extra_promised = is_whole ? bw_get32(info->extent_count) : 0;
        self->extra_is_free = is_after_all_groups(self, key);
        if (self->extra_is_free)
            note_stray(self, key);
        else if (is_before)
            self->leftover_count++;
        else if (!self->extra_count++)
            self->first_extra = *key;
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

static bool next_tree_run(struct bw_free_space *self, struct bw_span *run)
{
    const uint64_t sector = self->check->fs->superblock.sectorsize;
    while (is_before(self, self->group->start + self->group->length)) {
        const struct bw_item *item = &self->stream.item;
        const struct bw_key key = item->key;
        if (self->stream.after_loss)
            self->known = false;
        if (key.type == BW_FREE_SPACE_BITMAP) {
            /* The next run of set bits, if there are more. */
            const uint64_t most = item->size * UINT64_C(8);
            const uint64_t bits = key.offset / sector < most ? key.offset / sector : most;
            uint32_t first;
            const bool found = bw_bits_next(item->data, bits, &self->bit, &first);
            *run =
                (struct bw_span){key.objectid + first * sector, key.objectid + self->bit * sector};
            if (found)
                return true;
        }
        self->bit = 0;
        if (key.type == BW_FREE_SPACE_INFO) {
            skip_item(self);
            continue;
        }
        bw_item_stream_next(&self->stream);
        *run = (struct bw_span){key.objectid, key.objectid + key.offset};
        if (key.type == BW_FREE_SPACE_EXTENT)
            return true;
    }
    return false;
}

/* Moves on to the records of the block group, and reads how many there are and of which kind. */
static struct bw_error *enter_tree_group(struct bw_free_space *self)
{
    const struct bw_checked_group *group = self->group;
    const struct bw_item *item = &self->stream.item;
    bool loss = false;
    while (is_before(self, group->start)) {
        loss |= self->stream.after_loss;
        skip_item(self);
    }
    loss |= self->stream.after_loss || (self->stream.ended && self->stream.lost);
    const struct bw_disk_free_space_info *info = (const void *)item->data;
    self->known = !self->stream.ended && item->key.objectid == group->start &&
                  item->key.type == BW_FREE_SPACE_INFO && item->key.offset == group->length &&
                  item->size >= sizeof *info;
    self->bit = 0;
    self->promised = self->known ? bw_get32(info->extent_count) : 0;
    self->flags = self->known ? bw_get32(info->flags) : 0;
    if (self->known)
        bw_item_stream_next(&self->stream);
    /* With the remap-tree feature, nothing is allocated in ranges that were moved away. */
    if (!self->known && !loss && !(group->flags & (BW_GROUP_REMAPPED | BW_GROUP_METADATA_REMAP))) {
        struct bw_finding location = tree_location(self);
        const struct bw_checked_chunk *chunk = bw_check_chunk(self->check, group->start);
        /* A record that has the whole block group differs in one bit of the type, but is empty. */
        if (chunk && chunk->length == group->length && item->key.objectid == group->start &&
            item->size == sizeof *info)
            bw_flip_in_key(self->check, BW_FREE_SPACE_TREE, &item->key, &location.row.key,
                           &location.flip);
        bw_check_find(self->check, BW_CODE_free_space_missing, &location,
                      "the free space tree lacks this block group");
    }
    self->known &= !loss;

    /* All records of a block group are of one kind. */
    const bool is_promised = self->flags & BITMAPS;
    const bool is_bitmap = item->key.type == BW_FREE_SPACE_BITMAP;
    if (self->known && is_before(self, group->start + group->length) &&
        (is_bitmap || item->key.type == BW_FREE_SPACE_EXTENT) && is_promised != is_bitmap) {
        const struct bw_finding location = tree_location(self);
        bw_check_find(self->check, BW_CODE_free_space_item, &location,
                      "flags %" PRIu32 ", but its records are %s", self->flags,
                      is_promised ? "extents" : "bitmaps");
    }
    return NULL;
}

bool bw_free_space_can_skip(const struct bw_free_space *self)
{
    return !self->source || self->source->differs == BW_CODE_free_space_differs;
}

void bw_free_space_skip(struct bw_free_space *self, const struct bw_checked_group *group)
{
    while (self->source && is_before(self, group->start))
        skip_item(self);
    while (self->source && is_before(self, group->start + group->length))
        bw_item_stream_next(&self->stream);
    self->bit = 0;
}

static void leave_tree_group(const struct bw_free_space *self)
{
    struct bw_finding location = tree_location(self);
    if (self->run_count != self->promised && !self->differs)
        bw_flip_in_item(self->check, BW_FREE_SPACE_TREE, &location.row.key,
                        offsetof(struct bw_disk_free_space_info, extent_count), 4, self->promised,
                        self->run_count, &location.flip);
    if (self->run_count != self->promised)
        bw_check_find(self->check, BW_CODE_free_space_count, &location,
                      "%" PRIu64 " run%s, the block group has %" PRIu64, self->promised,
                      bw_plural(self->promised), self->run_count);
}

static void report_extra(const struct bw_free_space *self, enum bw_code_number code,
                         const struct bw_key *key, size_t count, const char *problem)
{
    const struct bw_finding location =
        bw_item_location(BW_FREE_SPACE_TREE, *key, key->objectid, key->offset);
    if (count)
        bw_check_find(self->check, code, &location, "from here on, %s: %zu", problem, count);
}

static struct bw_error *end_tree(struct bw_free_space *self, struct bw_error *error)
{
    while (!error && !self->stream.ended)
        skip_item(self);
    end_extra(self);
    if (error || self->check->groups.incomplete)
        return bw_item_stream_end(&self->stream, error);

    /* mkfs.btrfs before 6.16.1 kept the records of the block groups that it began with, and that
     * lie before all others. They are no news, so their note is short. */
    const struct bw_finding location = BW_FINDING(BW_TOUCHES_NOTHING, .tree = BW_FREE_SPACE_TREE);
    if (self->leftover_count)
        bw_check_find(self->check, BW_CODE_free_space_extra, &location,
                      "%zu block group%s left behind by mkfs.btrfs before 6.16.1",
                      self->leftover_count, bw_plural(self->leftover_count));
    report_extra(self, BW_CODE_free_space_extra, &self->first_extra, self->extra_count,
                 "block groups that do not exist");
    /* The lost part may contain the information of their block group. */
    if (!self->stream.lost) {
        report_extra(self, BW_CODE_free_space_stray, &self->first_stray, self->stray_count,
                     "records outside of block groups that mkfs.btrfs does not leave");
        report_extra(self, BW_CODE_free_space_ahead, &self->first_ahead, self->ahead_count,
                     "records where the next block group will be");
    }
    return bw_item_stream_end(&self->stream, NULL);
}

static struct bw_error *begin_tree(struct bw_free_space *self)
{
    static const struct bw_free_space_source source = {
        "free space tree", BW_CODE_free_space_differs, tree_location,    enter_tree_group,
        next_tree_run,     find_flip_in_tree,          leave_tree_group, end_tree};
    struct bw_check *check = self->check;
    const uint64_t features = check->fs->superblock.compat_ro_flags,
                   wanted = BW_COMPAT_RO_FREE_SPACE_TREE | BW_COMPAT_RO_FREE_SPACE_TREE_VALID;
    if ((features & wanted) == BW_COMPAT_RO_FREE_SPACE_TREE)
        bw_check_find(check, BW_CODE_free_space_invalid, NULL,
                      "the free space tree is marked as invalid: the next mount rebuilds it");
    if ((features & wanted) != wanted || !bw_tree_list_find(&check->trees, BW_FREE_SPACE_TREE))
        return NULL;
    self->source = &source;
    return bw_item_stream_begin(&self->stream, check->fs, &check->trees, BW_FREE_SPACE_TREE);
}

/*
 * Space caches of version 1 as a source of ranges: for each block group a file in the root tree,
 * found through a FREE_SPACE item. Its first page begins with a checksum for each page and a
 * generation; entries follow, page by page, then a page for each entry that is a bitmap. The page
 * size depends on the machine that wrote the file.
 *
 * Kernels ignore and rebuild a cache with another generation, or one whose total differs from the
 * free space of its block group. Source: __load_free_space_cache() in the kernel's fs/btrfs/free-
 * space-cache.c.
 */

enum {
    LARGEST_PAGE = 64 << 10,
    CHECKSUM = 4,        /* bytes of the checksum of a page */
    MOST_RUNS = 1 << 22, /* of a block group: more than any kernel writes */
    EXTENT = 1,          /* type of an entry; all others are bitmaps */
};

struct bw_space_cache {
    struct bw_data_reader *reader;
    struct bw_subvolume root_tree; /* in the form that the reader needs */
    struct bw_spans runs;          /* of the present block group */
    size_t next;

    /* While it is being read. */
    struct bw_free_space *self;
    struct bw_data_file file;
    uint64_t entries, bitmaps, generation;
    uint64_t page_count, page; /* and the number of the next one */
    uint32_t page_size;
    uint8_t *checksums; /* the first page */
    uint8_t *bytes;     /* the present one */
    uint32_t used;      /* of it */
    bool bad;           /* it cannot be read */
    bool missing;       /* it is on a missing device */
    uint64_t total;
    uint64_t left; /* bytes that may still be read, of all caches: they do not share any */
};

/* Reports why the kernel would not use the cache. */
__attribute__((format(printf, 2, 3))) static bool damaged(struct bw_space_cache *cache,
                                                          const char *format, ...)
{
    char message[120];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    const struct bw_finding location = cache->self->source->location(cache->self);
    if (!cache->missing)
        bw_check_find(cache->self->check, BW_CODE_space_cache_damaged, &location, "%s", message);
    return false;
}

/* Pages. */

static struct bw_error *read_bytes(struct bw_space_cache *cache, uint64_t offset, uint32_t length,
                                   uint8_t *bytes)
{
    const struct bw_data_part *part;
    memset(bytes, 0, length);
    bw_data_begin(cache->reader, &cache->file, offset, length);
    for (;;) {
        BW_TRY(bw_data_next(cache->reader, &part));
        if (!part)
            return NULL;
        if (part->kind == BW_DATA_BYTES)
            memcpy(bytes + (part->offset - offset), part->bytes, (size_t)part->length);
        if (part->kind == BW_DATA_BAD) {
            cache->bad = true;
            cache->missing |= part->error->code == BW_ERROR_MISSING_DEVICE;
        }
    }
}

/* The checksum of the first page leaves out the checksums. */
static bool page_matches(const struct bw_space_cache *cache, uint64_t page, const uint8_t *bytes)
{
    uint8_t found[32];
    const size_t skipped = page ? 0 : (size_t)cache->page_count * CHECKSUM;
    bw_checksum_compute(BW_CHECKSUM_CRC32C, bytes + skipped, cache->page_size - skipped, found);
    return memcmp(found, cache->checksums + page * CHECKSUM, CHECKSUM) == 0;
}

/* Reads the next page; false: it is damaged, which has been reported, or `*error` is set. */
static bool next_page(struct bw_space_cache *cache, struct bw_error **error)
{
    const uint64_t page = cache->page++;
    if (page >= cache->page_count || cache->left < cache->page_size)
        return damaged(cache, "the space cache has more entries than fit into %" PRIu64 " page%s",
                       cache->page_count, bw_plural(cache->page_count));
    cache->left -= cache->page_size;
    *error = read_bytes(cache, page * cache->page_size, cache->page_size, cache->bytes);
    cache->used = 0;
    if (*error)
        return false;
    if (cache->bad)
        return damaged(cache, "page %" PRIu64 " of the space cache cannot be read", page);
    return page_matches(cache, page, cache->bytes) ||
           damaged(cache, "the checksum of page %" PRIu64 " of the space cache does not match",
                   page);
}

/* Finds out the size of a page: it is the one with which the first checksum matches. */
static bool find_page_size(struct bw_space_cache *cache, struct bw_error **error)
{
    static const uint32_t sizes[] = {4 << 10, 64 << 10, 16 << 10, 8 << 10, 32 << 10};
    *error = read_bytes(cache, 0, LARGEST_PAGE, cache->checksums);
    if (*error)
        return false;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cache->page_size = sizes[i];
        cache->page_count = cache->file.size / sizes[i];
        if (cache->file.size % sizes[i] == 0 &&
            cache->page_count <= (sizes[i] - sizeof(bw_le64)) / CHECKSUM &&
            page_matches(cache, 0, cache->checksums))
            return true;
    }
    return damaged(cache, cache->bad ? "the space cache cannot be read"
                                     : "the first checksum of the space cache does not match");
}

/* Entries. */

static bool add_run(struct bw_space_cache *cache, uint64_t start, uint64_t length,
                    struct bw_error **error)
{
    if (cache->runs.count >= MOST_RUNS)
        return damaged(cache, "the space cache has too many entries");
    if (bw_spans_reserve(&cache->runs, 1))
        *error = bw_error_no_memory();
    else
        cache->runs.items[cache->runs.count++] = (struct bw_span){start, start + length};
    return !*error;
}

static bool add_cache_entries(struct bw_space_cache *cache, struct bw_error **error)
{
    const uint64_t sector = cache->self->check->fs->superblock.sectorsize;
    if (!next_page(cache, error))
        return false;
    cache->used = (uint32_t)(cache->page_count * CHECKSUM);
    if (bw_get64(*(const bw_le64 *)(cache->bytes + cache->used)) != cache->generation)
        return damaged(cache, "the space cache does not have generation %" PRIu64 " inside",
                       cache->generation);
    cache->used += (uint32_t)sizeof(bw_le64);

    /* A bitmap is a run of no length until its page is read, and stays one. */
    for (uint64_t i = 0; i < cache->entries; i++) {
        if (cache->page_size - cache->used < sizeof(struct bw_disk_free_space_entry) &&
            !next_page(cache, error))
            return false;
        const struct bw_disk_free_space_entry *entry = (const void *)(cache->bytes + cache->used);
        const uint64_t bytes = bw_get64(entry->bytes), start = bw_get64(entry->offset);
        cache->used += (uint32_t)sizeof *entry;
        cache->total += bytes;
        if (!bytes)
            return damaged(cache, "the space cache has an entry without bytes");
        if (start > UINT64_MAX - bytes)
            return damaged(cache, "the space cache has an entry of %" PRIu64 " bytes", bytes);
        if (!add_run(cache, start, entry->type == EXTENT ? bytes : 0, error))
            return false;
    }

    const size_t entries = cache->runs.count;
    uint64_t bitmaps = 0;
    for (size_t i = 0; i < entries; i++) {
        const uint64_t start = cache->runs.items[i].start;
        uint32_t bit = 0, first;
        if (start != cache->runs.items[i].end)
            continue;
        if (!next_page(cache, error))
            return false;
        while (bw_bits_next(cache->bytes, cache->page_size * UINT64_C(8), &bit, &first))
            if (!add_run(cache, start + first * sector, (bit - first) * sector, error))
                return false;
        bitmaps++;
    }
    if (bitmaps != cache->bitmaps)
        return damaged(cache, "the space cache has %" PRIu64 " bitmap%s, not %" PRIu64, bitmaps,
                       bw_plural(bitmaps), cache->bitmaps);
    bw_spans_sort(&cache->runs, bw_compare_first);
    return true;
}

/* The files. */

static struct bw_key key_of(const struct bw_free_space *self)
{
    return (struct bw_key){BW_FREE_SPACE_OBJECT, BW_UNTYPED, self->group->start};
}

/* Reads the item of the block group; false if it does not exist or is unknown. */
static bool read_header(struct bw_space_cache *cache, struct bw_error **error)
{
    const struct bw_key key = key_of(cache->self);
    const struct bw_disk_free_space_header *header;
    struct bw_item_range range;
    struct bw_tree_reader reader = cache->self->check->fs->reader;
    reader.adopter = NULL; /* lost leaves are not replaced */
    bw_item_range_begin(&range, &reader, &cache->root_tree.tree, key, key);
    const bool found =
        bw_item_range_next(&range) && !range.error && range.item.size >= sizeof *header;
    if (found) {
        header = (const void *)range.item.data;
        cache->file.inode = bw_get64(header->location.objectid);
        cache->generation = bw_get64(header->generation);
        cache->entries = bw_get64(header->entries);
        cache->bitmaps = bw_get64(header->bitmaps);
    }
    *error = bw_item_range_end(&range, NULL);
    return found && !*error;
}

/* Whether the file is one that a mount would read. The kernel sets the generation of the inode to 0
 * before it writes to the file. */
static bool is_in_use(struct bw_space_cache *cache, struct bw_error **error)
{
    struct bw_free_space *self = cache->self;
    struct bw_inode inode;
    BW_AUTO_ERROR struct bw_error *unknown =
        bw_inode_read(self->check->fs, &cache->root_tree.tree, cache->file.inode, &inode);
    if (unknown && unknown->code == BW_ERROR_NO_MEMORY)
        *error = BW_TAKE(unknown);
    else if (unknown && unknown->code == BW_ERROR_NOT_FOUND)
        damaged(cache, "inode %" PRIu64 " of the space cache does not exist", cache->file.inode);
    if (*error || unknown || !inode.size || !inode.generation || !cache->entries)
        return false;
    cache->file.size = inode.size < INT64_MAX ? inode.size : INT64_MAX;
    const struct bw_finding location = self->source->location(self);
    if (inode.generation != cache->generation)
        bw_check_find(self->check, BW_CODE_space_cache_stale, &location,
                      "the space cache is of generation %" PRIu64 ", its file of %" PRIu64,
                      cache->generation, inode.generation);
    return inode.generation == cache->generation;
}

/* The source. */

static struct bw_error *enter_cache_group(struct bw_free_space *self)
{
    struct bw_space_cache *cache = self->cache;
    const struct bw_checked_group *group = self->group;
    struct bw_error *error = NULL;
    cache->runs.count = cache->next = 0;
    cache->page = cache->total = 0;
    cache->bad = cache->missing = false;
    self->known = read_header(cache, &error) && is_in_use(cache, &error) &&
                  find_page_size(cache, &error) && add_cache_entries(cache, &error);
    if (!self->known)
        return error;

    /* Blocks that the log allocates during a transaction are missing in the cache, and become free
     * again if the system stops then. */
    const uint64_t excluded =
        bw_range_set_overlap(&self->superblocks, group->start, group->start + group->length);
    const uint64_t free = group->length - group->used - excluded;
    const struct bw_finding location = self->source->location(self);
    self->known = cache->total == free;
    if (!self->known)
        bw_check_find(self->check, BW_CODE_space_cache_stale, &location,
                      "the space cache has %" PRIu64 " bytes, %" PRIu64 " are free", cache->total,
                      free);
    return NULL;
}

static bool next_cache_run(struct bw_free_space *self, struct bw_span *run)
{
    struct bw_space_cache *cache = self->cache;
    if (!self->known || cache->next == cache->runs.count)
        return false;
    *run = cache->runs.items[cache->next++];
    return true;
}

static struct bw_finding cache_location(const struct bw_free_space *self)
{
    const struct bw_key key = key_of(self);
    return bw_item_location(BW_ROOT_TREE, key, self->group->start, self->group->length);
}

static struct bw_error *end_cache(struct bw_free_space *self, struct bw_error *error)
{
    struct bw_space_cache *cache = self->cache;
    if (cache) {
        bw_data_reader_destroy(cache->reader);
        bw_spans_free(&cache->runs);
        free(cache->checksums);
        free(cache->bytes);
        free(cache);
    }
    return error;
}

/* Each source sets `source` if the file system uses it. */
static struct bw_error *begin_space_cache(struct bw_free_space *self)
{
    static const struct bw_free_space_source source = {"space cache",  BW_CODE_space_cache_differs,
                                                       cache_location, enter_cache_group,
                                                       next_cache_run, NULL,
                                                       NULL,           end_cache};
    struct bw_fs *fs = self->check->fs;
    const struct bw_superblock *superblock = &fs->superblock;
    const uint64_t generation = superblock->cache_generation;
    if ((superblock->compat_ro_flags & BW_COMPAT_RO_FREE_SPACE_TREE) || !generation ||
        generation == UINT64_MAX || fs->is_past) /* caches are written in place */
        return NULL;
    if (generation != superblock->generation) {
        bw_check_find(self->check, BW_CODE_space_cache_stale, NULL,
                      "the space caches are of generation %" PRIu64 ", the last one is %" PRIu64,
                      generation, superblock->generation);
        return NULL;
    }
    struct bw_space_cache *cache = self->cache = calloc(1, sizeof *cache);
    self->source = &source;
    if (!cache)
        return bw_error_no_memory();
    cache->self = self;
    cache->root_tree.tree = fs->root_tree;
    cache->file = (struct bw_data_file){.subvolume = &cache->root_tree, .unchecked = true};
    cache->checksums = malloc(LARGEST_PAGE);
    cache->bytes = malloc(LARGEST_PAGE);
    if (!cache->checksums || !cache->bytes)
        return bw_error_no_memory();
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(bw_fs_devices(fs, &devices));
    for (size_t i = 0; i < devices.count; i++)
        cache->left += devices.items[i].image_bytes;
    return bw_data_reader_create(fs, &cache->reader);
}

struct bw_error *bw_superblock_stripes(struct bw_fs *fs, struct bw_range_set *stripes)
{
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_fs_chunks(fs, &chunks));
    for (size_t k = 0; k < chunks.count; k++) {
        const struct bw_chunk_info *chunk = &chunks.items[k];
        const struct bw_raid_profile *profile = bw_raid_profile_of(chunk->type);
        const uint64_t stripe_length = bw_chunk_stripe_length(chunk);
        uint64_t step = BW_STRIPE_LENGTH;
        if (profile->parity_stripes)
            step *= chunk->stripe_count - profile->parity_stripes;
        if (chunk->logical < BW_STRIPE_LENGTH)
            BW_TRY(bw_range_set_insert(stripes, chunk->logical, BW_STRIPE_LENGTH));
        for (unsigned i = 0; i < chunk->stripe_count * BW_SUPERBLOCK_COPIES; i++) {
            const unsigned stripe = i / BW_SUPERBLOCK_COPIES;
            const uint64_t offset = chunk->stripes[stripe].offset;
            const uint64_t place = bw_superblock_offset(i % BW_SUPERBLOCK_COPIES) - offset;
            if (place >= stripe_length || chunk->logical + place < place)
                continue;
            uint64_t number = place / BW_STRIPE_LENGTH;
            if (profile->striped && !profile->parity_stripes)
                number = (number * chunk->stripe_count + stripe) / profile->copies;
            const uint64_t start = chunk->logical + number * step + place % BW_STRIPE_LENGTH;
            BW_TRY(bw_range_set_insert(stripes, start, start + step));
        }
    }
    bw_range_set_join(stripes);
    return NULL;
}

/* Begins with the source that the file system has. */
struct bw_error *bw_free_space_begin(struct bw_free_space *self, struct bw_check *check)
{
    *self = (struct bw_free_space){.check = check};
    BW_TRY(begin_tree(self));
    if (!self->source)
        BW_TRY(begin_space_cache(self));
    return self->source ? bw_superblock_stripes(check->fs, &self->superblocks) : NULL;
}
