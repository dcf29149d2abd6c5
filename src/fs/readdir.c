/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading a directory. It has every name twice, by index and by hash. The second is used only if
 * part of the first is lost; then the index is read again, to know the names that have been handed
 * out. If part of the second is lost as well, the inodes are searched for names in the directory.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "fs/fs.h"
#include "fs/lookup.h"

/* Positions from here on count the entries that are not from the index. */
#define REST (UINT64_C(1) << 63)

struct bw_name_below {
    size_t name_offset;
    struct bw_dir_entry entry; /* but for the name */
};

static void complain(const struct bw_readdir *readdir, const char *what)
{
    bw_fs_report(
        readdir->fs, BW_DAMAGE,
        bw_error_create(BW_ERROR_CORRUPT, "tree %" PRIu64 ": directory inode %" PRIu64 ": %s",
                        readdir->directory.subvolume->tree.id, readdir->directory.inode, what));
}

static void begin_range(struct bw_readdir *readdir, uint8_t type, uint64_t first, uint64_t last)
{
    const uint64_t inode = readdir->directory.inode;
    bw_item_range_begin(&readdir->range, &readdir->fs->reader, &readdir->directory.subvolume->tree,
                        (struct bw_key){inode, type, first}, (struct bw_key){inode, type, last});
    readdir->in_range = true;
    readdir->in_item = false;
    readdir->lost = false;
}

static struct bw_error *end_range(struct bw_readdir *readdir)
{
    bool in_range = readdir->in_range;
    readdir->in_range = false;
    return in_range ? bw_item_range_end(&readdir->range, NULL) : NULL;
}

void bw_readdir_begin(struct bw_readdir *readdir, struct bw_fs *fs,
                      const struct bw_place *directory, uint64_t position)
{
    *readdir = (struct bw_readdir){.fs = fs, .directory = *directory, .start = position};
    readdir->source = bw_place_is_empty(directory) ? BW_READDIR_END : BW_READDIR_INDEX;
    if (readdir->source == BW_READDIR_INDEX && position < REST)
        begin_range(readdir, BW_DIR_INDEX, position, UINT64_MAX);
}

void bw_readdir_end(struct bw_readdir *readdir)
{
    bw_error_free(end_range(readdir));
    bw_map_free(&readdir->told);
    bw_buffer_free(&readdir->names);
    free(readdir->below);
}

/* The next entry of the range that is being read; false at its end. What the index lacks is
 * reported. */
static bool next_in_range(struct bw_readdir *readdir, struct bw_dir_entry *entry)
{
    const bool index = readdir->source == BW_READDIR_INDEX;
    for (;;) {
        while (readdir->in_item && bw_dir_entry_next(&readdir->cursor, entry)) {
            if (bw_name_is_valid(entry->name, entry->name_length))
                return true;
            if (index)
                complain(readdir, "an entry has an invalid name");
        }
        if (readdir->in_item && bw_cursor_bad(&readdir->cursor)) {
            readdir->lost = true;
            if (index)
                complain(readdir, "an entry is cut off");
        }
        readdir->in_item = false;
        if (!bw_item_range_next(&readdir->range))
            return false;
        readdir->in_item = !readdir->range.error;
        readdir->cursor = bw_cursor_of(&readdir->range.item);
        if (readdir->range.error) {
            readdir->lost = true;
            bw_fs_report_range(readdir->fs, &readdir->range);
        }
    }
}

static uint64_t hash_of(const struct bw_readdir *readdir, const struct bw_dir_entry *entry)
{
    return bw_fs_name_hash(readdir->fs, readdir->directory.inode, entry->name, entry->name_length);
}

/* Remembers all names of the index. What is lost has been reported. */
static struct bw_error *remember_index(struct bw_readdir *readdir)
{
    struct bw_error *error = NULL;
    struct bw_dir_entry entry;
    begin_range(readdir, BW_DIR_INDEX, 0, UINT64_MAX);
    while (!error && bw_item_range_next(&readdir->range)) {
        struct bw_cursor cursor = bw_cursor_of(&readdir->range.item);
        while (!readdir->range.error && !error && bw_dir_entry_next(&cursor, &entry))
            if (!bw_map_put(&readdir->told, hash_of(readdir, &entry), 1))
                error = bw_error_no_memory();
    }
    readdir->in_range = false;
    return bw_item_range_end(&readdir->range, error);
}

static struct bw_error *take_below(void *context, const struct bw_dir_entry *entry)
{
    struct bw_readdir *readdir = context;
    if (!BW_ARRAY_RESERVE(readdir->below, readdir->below_count, readdir->below_capacity))
        return bw_error_no_memory();
    readdir->below[readdir->below_count++] = (struct bw_name_below){readdir->names.length, *entry};
    bw_buffer_append(&readdir->names, entry->name, entry->name_length);
    return readdir->names.failed ? bw_error_no_memory() : NULL;
}

static bool next_from_below(struct bw_readdir *readdir, struct bw_dir_entry *entry)
{
    if (readdir->below_next == readdir->below_count)
        return false;
    const struct bw_name_below *below = &readdir->below[readdir->below_next++];
    *entry = below->entry;
    entry->name = (const uint8_t *)readdir->names.data + below->name_offset;
    return true;
}

/* Whether anything of the index before the position is lost, where this reader began. */
static struct bw_error *check_before_start(struct bw_readdir *readdir)
{
    begin_range(readdir, BW_DIR_INDEX, 0, readdir->start - 1);
    while (!readdir->lost && bw_item_range_next(&readdir->range)) {
        struct bw_cursor cursor = bw_cursor_of(&readdir->range.item);
        struct bw_dir_entry entry;
        while (!readdir->range.error && bw_dir_entry_next(&cursor, &entry))
            ;
        readdir->lost = readdir->range.error || bw_cursor_bad(&cursor);
    }
    return end_range(readdir);
}

/* Goes on to the next source of names, if there is reason to. */
static struct bw_error *next_source(struct bw_readdir *readdir)
{
    const struct bw_recovery *recovery = &readdir->fs->recovery;
    BW_TRY(end_range(readdir));
    if (readdir->source == BW_READDIR_INDEX && !readdir->lost && readdir->start &&
        readdir->start < REST)
        BW_TRY(check_before_start(readdir));
    if (readdir->source == BW_READDIR_INDEX && (readdir->lost || readdir->start >= REST)) {
        readdir->source = BW_READDIR_HASH;
        BW_TRY(remember_index(readdir));
        begin_range(readdir, BW_DIR_ITEM, 0, UINT64_MAX);
        return NULL;
    }
    if (readdir->source != BW_READDIR_HASH || !readdir->lost || !recovery->names) {
        readdir->source = BW_READDIR_END;
        return NULL;
    }
    readdir->source = BW_READDIR_BELOW;
    return recovery->names(recovery->context, readdir->directory.subvolume,
                           readdir->directory.inode, take_below, readdir);
}

/* Whether an entry of another source than the index is to be handed out. */
static struct bw_error *is_news(struct bw_readdir *readdir, const struct bw_dir_entry *entry,
                                bool *news)
{
    const uint64_t hash = hash_of(readdir, entry);
    *news = bw_map_get(&readdir->told, hash) == UINT32_MAX;
    if (*news && !bw_map_put(&readdir->told, hash, 1))
        return bw_error_no_memory();
    *news = *news && (readdir->start < REST || readdir->rest >= readdir->start - REST);
    readdir->rest++;
    return NULL;
}

/* Makes an entry the present one; false if it leads nowhere. */
static bool set_entry(struct bw_readdir *readdir, const struct bw_dir_entry *entry)
{
    struct bw_listed *listed = &readdir->entry;
    struct bw_error *error = bw_place_of_entry(readdir->fs, readdir->directory.subvolume,
                                               readdir->directory.inode, entry, &listed->place);
    if (error)
        bw_fs_report(readdir->fs, BW_DAMAGE, error);
    listed->name = (const char *)entry->name;
    listed->name_length = entry->name_length;
    listed->position = readdir->source == BW_READDIR_INDEX ? readdir->range.item.key.offset + 1
                                                           : REST + readdir->rest;
    return !error;
}

struct bw_error *bw_readdir_next(struct bw_readdir *readdir, bool *more)
{
    struct bw_dir_entry entry;
    for (*more = true; readdir->source != BW_READDIR_END;) {
        bool got = readdir->source == BW_READDIR_BELOW
                       ? next_from_below(readdir, &entry)
                       : readdir->in_range && next_in_range(readdir, &entry);
        bool news = got;
        if (!got)
            BW_TRY(next_source(readdir));
        else if (readdir->source != BW_READDIR_INDEX)
            BW_TRY(is_news(readdir, &entry, &news));
        if (news && set_entry(readdir, &entry))
            return NULL;
    }
    *more = false;
    return NULL;
}

struct bw_error *bw_directory_read(struct bw_fs *fs, const struct bw_place *directory,
                                   bw_listed_taker *take, void *context)
{
    struct bw_readdir readdir;
    struct bw_error *error = NULL;
    bool more = true;
    bw_readdir_begin(&readdir, fs, directory, 0);
    while (!error && more) {
        error = bw_readdir_next(&readdir, &more);
        if (!error && more)
            error = take(context, &readdir.entry);
    }
    bw_readdir_end(&readdir);
    return error;
}
