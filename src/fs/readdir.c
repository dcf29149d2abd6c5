/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading a directory. Every name is in it twice, by index and by hash. The second is asked only if
 * part of the first is lost; then the first is read again, to know which names it has told already.
 * If part of the second is lost as well, the inodes are asked who of them is in the directory.
 */
#include "fs/readdir.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "btree/item_range.h"
#include "format/checksum.h"
#include "fs/damage.h"
#include "fs/fs.h"

struct reading {
    struct bw_fs *fs;
    const struct bw_place *directory;
    bw_listed_taker *take;
    void *context;
    struct bw_map told; /* hashes of the names handed out; only if some are lost */
    uint64_t recovered; /* how many names were found without a DIR_INDEX */
    uint64_t skip;      /* how many of those are not wanted */
    bool lost;
};

/* Of a name, for telling names apart: a second hash beside that of the format makes it 64 bits. */
static uint64_t fingerprint(const uint8_t *name, size_t length)
{
    uint32_t second = UINT32_C(2166136261);
    for (size_t i = 0; i < length; i++)
        second = (second ^ name[i]) * UINT32_C(16777619);
    return (uint64_t)bw_name_hash(name, length) << 32 | second;
}

static void complain(const struct reading *reading, const char *what)
{
    bw_fs_report(
        reading->fs, BW_DAMAGE,
        bw_error_create(BW_ERROR_CORRUPT, "tree %" PRIu64 ": directory inode %" PRIu64 ": %s",
                        reading->directory->subvolume->tree.id, reading->directory->inode, what));
}

static struct bw_error *hand_out(struct reading *reading, const struct bw_dir_entry *entry,
                                 uint64_t position)
{
    struct bw_listed listed = {
        .name = (const char *)entry->name, .name_length = entry->name_length, .position = position};
    struct bw_error *error = bw_place_of_entry(reading->fs, reading->directory->subvolume,
                                               reading->directory->inode, entry, &listed.place);
    if (!error)
        return reading->take(reading->context, &listed);
    bw_fs_report(reading->fs, BW_DAMAGE, error);
    return NULL;
}

static struct bw_error *take_indexed(void *context, const struct bw_item *item)
{
    struct reading *reading = context;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry)) {
        if (bw_name_is_valid(entry.name, entry.name_length))
            BW_TRY(hand_out(reading, &entry, item->key.offset + 1));
        else
            complain(reading, "an entry has an invalid name");
    }
    reading->lost |= bw_cursor_bad(&cursor);
    if (bw_cursor_bad(&cursor))
        complain(reading, "an entry is cut off");
    return NULL;
}

static struct bw_error *remember(void *context, const struct bw_item *item)
{
    struct reading *reading = context;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry))
        if (!bw_map_put(&reading->told, fingerprint(entry.name, entry.name_length), 1))
            return bw_error_no_memory();
    return NULL;
}

static struct bw_error *take_untold_entry(void *context, const struct bw_dir_entry *entry)
{
    struct reading *reading = context;
    uint64_t name = fingerprint(entry->name, entry->name_length);
    if (!bw_name_is_valid(entry->name, entry->name_length) ||
        bw_map_get(&reading->told, name) != UINT32_MAX)
        return NULL;
    if (!bw_map_put(&reading->told, name, 1))
        return bw_error_no_memory();
    if (reading->recovered++ < reading->skip)
        return NULL;
    return hand_out(reading, entry, BW_RECOVERED_POSITION | reading->recovered);
}

static struct bw_error *take_untold(void *context, const struct bw_item *item)
{
    struct reading *reading = context;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry))
        BW_TRY(take_untold_entry(reading, &entry));
    reading->lost |= bw_cursor_bad(&cursor);
    return NULL;
}

static void report_lost(void *context, uint64_t bytenr, struct bw_error *error)
{
    struct reading *reading = context;
    reading->lost = true;
    if (bytenr == BW_LOST_ITEM)
        bw_fs_report(reading->fs, BW_DAMAGE, error);
    else
        bw_fs_report_lost(reading->fs, bytenr, error);
}

static void ignore_lost(void *context, uint64_t bytenr, struct bw_error *error)
{
    (void)context;
    (void)bytenr;
    bw_error_free(error);
}

static struct bw_error *
read_items(struct reading *reading, uint8_t type, uint64_t first,
           struct bw_error *(*item)(void *context, const struct bw_item *item),
           void (*lost)(void *context, uint64_t bytenr, struct bw_error *error))
{
    const struct bw_item_range range = {.first = {reading->directory->inode, type, first},
                                        .last = {reading->directory->inode, type, UINT64_MAX},
                                        .item = item,
                                        .lost = lost,
                                        .context = reading};
    return bw_item_range_read(&reading->fs->reader, &reading->directory->subvolume->tree, &range);
}

static struct bw_error *read_untold(struct reading *reading)
{
    BW_TRY(read_items(reading, BW_DIR_INDEX, 0, remember, ignore_lost));
    reading->lost = false;
    BW_TRY(read_items(reading, BW_DIR_ITEM, 0, take_untold, report_lost));
    if (!reading->lost)
        return NULL;
    return bw_names_from_below(reading->fs, reading->directory->subvolume,
                               reading->directory->inode, take_untold_entry, reading);
}

struct bw_error *bw_directory_continue(struct bw_fs *fs, const struct bw_place *directory,
                                       struct bw_listing *listing, bw_listed_taker *take,
                                       void *context)
{
    struct reading reading = {.fs = fs, .directory = directory, .take = take, .context = context};
    struct bw_error *error = NULL;
    if (bw_place_is_empty(directory))
        return NULL;
    if (listing->position & BW_RECOVERED_POSITION)
        reading.skip = listing->position & ~BW_RECOVERED_POSITION;
    else
        error = read_items(&reading, BW_DIR_INDEX, listing->position, take_indexed, report_lost);
    listing->lost |= reading.lost;
    if (!error && !listing->lost && !listing->knows_start) {
        error = read_items(&reading, BW_DIR_INDEX, 0, remember, report_lost);
        listing->lost |= reading.lost;
    }
    if (!error && listing->lost)
        error = read_untold(&reading);
    bw_map_free(&reading.told);
    return error;
}

struct bw_error *bw_directory_read(struct bw_fs *fs, const struct bw_place *directory,
                                   bw_listed_taker *take, void *context)
{
    struct bw_listing listing = {.knows_start = true};
    return bw_directory_continue(fs, directory, &listing, take, context);
}
