/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Space caches of version 1 as a source of runs: for each block group a file in the root tree,
 * which a FREE_SPACE item leads to. Its first page begins with the checksum of each page and a
 * generation; entries follow, page by page, then a page for each entry that is a bitmap. The size
 * of a page is that of the machine that wrote it.
 *
 * A cache of another generation, and one whose total is not what the block group has free, is not
 * used by any kernel, which makes it anew. Source: __load_free_space_cache() in the kernel's
 * fs/btrfs/free-space-cache.c.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "check/free_space.h"
#include "data/reader.h"
#include "ondisk/checksum.h"
#include "ondisk/disk_items.h"
#include "fs/inode.h"

enum {
    LARGEST_PAGE = 64 << 10,
    CHECKSUM = 4,        /* bytes of the checksum of a page */
    MOST_RUNS = 1 << 22, /* of a block group: more than any kernel writes */
    EXTENT = 1,          /* type of an entry; all others are bitmaps */
};

struct entry {
    bw_le64 offset, bytes;
    uint8_t type;
} __attribute__((packed));

struct bw_space_cache {
    struct bw_data_reader *reader;
    struct bw_subvolume root_tree; /* as the reader wants it */
    struct bw_run *runs;           /* of the present block group */
    size_t count, capacity, next;

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
    bool missing;       /* nor could it, as it is on a missing device */
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
    const struct bw_subject subject = cache->self->source->subject(cache->self);
    if (!cache->missing)
        bw_check_find(cache->self->check, BW_CODE_space_cache_damaged, &subject, "%s", message);
    return false;
}

/* Pages. */

struct reading {
    struct bw_space_cache *cache;
    uint64_t start;
    uint8_t *bytes;
};

static struct bw_error *take_part(void *context, const struct bw_data_part *part)
{
    struct reading *reading = context;
    if (part->kind == BW_DATA_BYTES)
        memcpy(reading->bytes + (part->offset - reading->start), part->bytes, (size_t)part->length);
    if (part->kind == BW_DATA_BAD) {
        reading->cache->bad = true;
        reading->cache->missing |= part->error->code == BW_ERROR_MISSING_DEVICE;
    }
    return NULL;
}

static struct bw_error *read_bytes(struct bw_space_cache *cache, uint64_t offset, uint32_t length,
                                   uint8_t *bytes)
{
    struct reading reading = {cache, offset, bytes};
    memset(bytes, 0, length);
    return bw_data_read(cache->reader, &cache->file, offset, length, take_part, &reading);
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
    if (cache->count >= MOST_RUNS)
        return damaged(cache, "the space cache has too many entries");
    if (!BW_ARRAY_RESERVE(cache->runs, cache->count, cache->capacity))
        *error = bw_error_no_memory();
    else
        cache->runs[cache->count++] = (struct bw_run){start, start + length};
    return !*error;
}

/* A bitmap is a run of no length until its page is read, and stays one. */
static bool take_entry(struct bw_space_cache *cache, struct bw_error **error)
{
    if (cache->page_size - cache->used < sizeof(struct entry) && !next_page(cache, error))
        return false;
    const struct entry *entry = (const void *)(cache->bytes + cache->used);
    const uint64_t bytes = bw_get64(entry->bytes);
    cache->used += (uint32_t)sizeof *entry;
    cache->total += bytes;
    if (!bytes)
        return damaged(cache, "the space cache has an entry without bytes");
    if (bw_get64(entry->offset) > UINT64_MAX - bytes)
        return damaged(cache, "the space cache has an entry of %" PRIu64 " bytes", bytes);
    return add_run(cache, bw_get64(entry->offset), entry->type == EXTENT ? bytes : 0, error);
}

static bool take_bitmap(struct bw_space_cache *cache, uint64_t start, struct bw_error **error)
{
    const uint64_t sector = cache->self->check->fs->superblock.sectorsize;
    uint32_t bit = 0, first;
    if (!next_page(cache, error))
        return false;
    while (bw_free_space_bits(cache->bytes, cache->page_size * UINT64_C(8), &bit, &first))
        if (!add_run(cache, start + first * sector, (bit - first) * sector, error))
            return false;
    return true;
}

static int compare(const void *left, const void *right)
{
    const struct bw_run *a = left, *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

static bool take_entries(struct bw_space_cache *cache, struct bw_error **error)
{
    if (!next_page(cache, error))
        return false;
    cache->used = (uint32_t)(cache->page_count * CHECKSUM);
    if (bw_get64(*(const bw_le64 *)(cache->bytes + cache->used)) != cache->generation)
        return damaged(cache, "the space cache does not have generation %" PRIu64 " inside",
                       cache->generation);
    cache->used += (uint32_t)sizeof(bw_le64);
    for (uint64_t i = 0; i < cache->entries; i++)
        if (!take_entry(cache, error))
            return false;
    const size_t entries = cache->count;
    uint64_t bitmaps = 0;
    for (size_t i = 0; i < entries; i++) {
        if (cache->runs[i].start != cache->runs[i].end)
            continue;
        if (!take_bitmap(cache, cache->runs[i].start, error))
            return false;
        bitmaps++;
    }
    if (bitmaps != cache->bitmaps)
        return damaged(cache, "the space cache has %" PRIu64 " bitmap%s, not %" PRIu64, bitmaps,
                       bw_plural(bitmaps), cache->bitmaps);
    if (cache->count)
        qsort(cache->runs, cache->count, sizeof *cache->runs, compare);
    return true;
}

/* What the log takes while the transaction is open is missing in the cache, and is free again if
 * the system stops then. */
static bool has_right_total(struct bw_space_cache *cache)
{
    const struct bw_free_space *self = cache->self;
    const struct bw_checked_group *group = self->group;
    const uint64_t free = group->length - group->used - bw_free_space_superblocks(self);
    const struct bw_subject subject = self->source->subject(self);
    if (cache->total != free)
        bw_check_find(self->check, BW_CODE_space_cache_stale, &subject,
                      "the space cache has %" PRIu64 " bytes, %" PRIu64 " are free", cache->total,
                      free);
    return cache->total == free;
}

/* The files. */

static struct bw_key key_of(const struct bw_free_space *self)
{
    return (struct bw_key){BW_FREE_SPACE_OBJECT, BW_UNTYPED, self->group->start};
}

/* Reads the item of the block group; false if there is none, or it is not known. */
static bool read_header(struct bw_space_cache *cache, struct bw_error **error)
{
    const struct bw_key key = key_of(cache->self);
    const struct bw_disk_free_space_header *header;
    struct bw_item_range range;
    struct bw_tree_reader reader = cache->self->check->fs->reader;
    reader.adopter = NULL; /* what is lost is not to be replaced */
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
    const struct bw_subject subject = self->source->subject(self);
    if (inode.generation != cache->generation)
        bw_check_find(self->check, BW_CODE_space_cache_stale, &subject,
                      "the space cache is of generation %" PRIu64 ", its file of %" PRIu64,
                      cache->generation, inode.generation);
    return inode.generation == cache->generation;
}

/* The source. */

static struct bw_error *enter(struct bw_free_space *self)
{
    struct bw_space_cache *cache = self->cache;
    struct bw_error *error = NULL;
    cache->count = cache->next = 0;
    cache->page = cache->total = 0;
    cache->bad = cache->missing = false;
    self->known = read_header(cache, &error) && is_in_use(cache, &error) &&
                  find_page_size(cache, &error) && take_entries(cache, &error) &&
                  has_right_total(cache);
    return error;
}

static bool next(struct bw_free_space *self, struct bw_run *run)
{
    struct bw_space_cache *cache = self->cache;
    if (!self->known || cache->next == cache->count)
        return false;
    *run = cache->runs[cache->next++];
    return true;
}

static struct bw_subject subject_of_group(const struct bw_free_space *self)
{
    const struct bw_key key = key_of(self);
    return bw_free_space_subject(self, BW_ROOT_TREE, &key);
}

static struct bw_error *end(struct bw_free_space *self, struct bw_error *error)
{
    struct bw_space_cache *cache = self->cache;
    if (cache) {
        bw_data_reader_destroy(cache->reader);
        free(cache->runs);
        free(cache->checksums);
        free(cache->bytes);
        free(cache);
    }
    return error;
}

static struct bw_error *take_device(void *context, const struct bw_device_info *device)
{
    struct bw_space_cache *cache = context;
    cache->left += device->image_bytes;
    return NULL;
}

struct bw_error *bw_space_cache_begin(struct bw_free_space *self)
{
    static const struct bw_free_space_source source = {
        "space cache", BW_CODE_space_cache_differs, subject_of_group, enter, next, NULL, end};
    struct bw_fs *fs = self->check->fs;
    const struct bw_superblock *superblock = &fs->superblock;
    const uint64_t generation = superblock->cache_generation;
    if ((superblock->compat_ro_flags & BW_COMPAT_RO_FREE_SPACE_TREE) || !generation ||
        generation == UINT64_MAX || fs->is_past) /* caches are written in place */
        return NULL;
    if (generation != superblock->generation) {
        bw_check_find(self->check, BW_CODE_space_cache_stale, &(struct bw_subject){0},
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
    BW_TRY(bw_fs_devices(fs, take_device, cache));
    return bw_data_reader_create(fs, &cache->reader);
}
