/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading a directory. It contains every name twice, by index and by hash. The names by hash are
 * read only if a part of the index is lost; then the index is read again, to remember the names
 * that were returned. If a part of the names by hash is lost, too, the inodes are searched for
 * names in the directory.
 *
 * A caller that lists a whole tree reads one directory after the other, each of which would have to
 * wait for its leaf. So subdirectories are remembered, and if the next directory is one of them,
 * the leaves of the others are announced.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "base/vector.h"
#include "btrfs-walk/inode.h"
#include "fs/fs.h"
#include "fs/lookup.h"

/* Positions from here on count the entries that are not from the index. */
#define REST (UINT64_C(1) << 63)

/* A name found in its inode. */
struct name_below {
    size_t name_offset;
    struct bw_dir_entry entry; /* without the name */
};

BW_VECTOR(names_below, struct name_below);

enum { MOST_AHEAD = 512 };

struct bw_directory {
    struct bw_directory_entry entry; /* the current one */
    struct bw_fs *fs;
    struct bw_place place;
    enum {
        FROM_INDEX,  /* DIR_INDEX items */
        FROM_HASH,   /* DIR_ITEM items */
        FROM_INODES, /* the names of inodes */
        AT_END
    } source;
    struct bw_item_range range;
    bool has_range; /* started once, so it keeps a leaf */
    bool in_range;
    struct bw_cursor cursor; /* The position in the current item. */
    bool in_item;
    bool lost;                        /* a part of this source is lost */
    bool incomplete;                  /* a part of every source is lost */
    uint64_t start;                   /* position where reading began */
    uint64_t rest;                    /* number of entries from sources other than the index */
    struct bw_key_map returned_names; /* hashes of names that were returned, for these sources */
    struct bw_buffer names;           /* Entries from inodes have their names here. */
    struct names_below below;
    size_t below_next;
    /* Subdirectories that may be read later, by the keys of their first entries. */
    struct bw_key ahead[MOST_AHEAD];
    size_t ahead_count;
    const struct bw_subvolume *ahead_in;
    bool is_recursive; /* one of them was read */
};

static void report_damage(const struct bw_directory *directory, const char *problem)
{
    bw_fs_report_text(directory->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                      "subvolume %" PRIu64 ": directory inode %" PRIu64 ": %s",
                      directory->place.subvolume->tree.id, directory->place.inode, problem);
}

static void begin_range(struct bw_directory *directory, uint8_t type, uint64_t first, uint64_t last)
{
    const uint64_t inode = directory->place.inode;
    (directory->has_range ? bw_item_range_restart : bw_item_range_begin)(
        &directory->range, &directory->fs->reader, &directory->place.subvolume->tree,
        (struct bw_key){inode, type, first}, (struct bw_key){inode, type, last});
    directory->has_range = directory->in_range = true;
    directory->in_item = false;
    directory->lost = false;
}

static struct bw_error *end_range(struct bw_directory *directory)
{
    bool in_range = directory->in_range;
    directory->in_range = false;
    return in_range ? bw_item_range_stop(&directory->range, NULL) : NULL;
}

static struct bw_error *check_type(const struct bw_place *place)
{
    if (place->type == BW_FILE_DIRECTORY)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE, "inode %" PRIu64 " is not a directory", place->inode);
}

static void begin_directory(struct bw_directory *directory, const struct bw_place *place,
                            uint64_t position)
{
    directory->place = *place;
    directory->start = position;
    directory->source = bw_place_is_empty(place) ? AT_END : FROM_INDEX;
    if (directory->source == FROM_INDEX && position < REST)
        begin_range(directory, BW_DIR_INDEX, position, UINT64_MAX);
}

struct bw_error *bw_directory_open(struct bw_fs *fs, const struct bw_place *place,
                                   uint64_t position, struct bw_directory **result)
{
    BW_TRY(check_type(place));
    struct bw_directory *directory = *result = calloc(1, sizeof *directory);
    if (!directory)
        return bw_error_no_memory();
    directory->fs = fs;
    begin_directory(directory, place, position);
    return NULL;
}

/* If `next`, which is to be read now, is a subdirectory that was found before. */
static void announce_directories(struct bw_directory *directory, const struct bw_place *next)
{
    size_t found = 0;
    if (!directory->has_range || next->subvolume != directory->ahead_in)
        return;
    while (found < directory->ahead_count && directory->ahead[found].objectid != next->inode)
        found++;
    directory->is_recursive |= found < directory->ahead_count;
    if (directory->is_recursive)
        directory->ahead_count = bw_leaf_finder_announce(&directory->range.finder, directory->ahead,
                                                         directory->ahead_count);
}

static void remember_directory(struct bw_directory *directory, const struct bw_place *found)
{
    if (found->type != BW_FILE_DIRECTORY || found->subvolume != directory->place.subvolume)
        return;
    if (directory->ahead_in != found->subvolume)
        directory->ahead_count = 0;
    directory->ahead_in = found->subvolume;
    if (directory->ahead_count < MOST_AHEAD)
        directory->ahead[directory->ahead_count++] = (struct bw_key){found->inode, BW_DIR_INDEX, 0};
}

struct bw_error *bw_directory_reopen(struct bw_directory *directory, const struct bw_place *place,
                                     uint64_t position)
{
    BW_TRY(check_type(place));
    BW_TRY(end_range(directory));
    bw_key_map_free(&directory->returned_names);
    bw_buffer_free(&directory->names);
    names_below_free(&directory->below);
    announce_directories(directory, place);
    directory->in_item = directory->lost = directory->incomplete = false;
    directory->rest = directory->below_next = 0;
    begin_directory(directory, place, position);
    return NULL;
}

bool bw_directory_is_complete(const struct bw_directory *directory)
{
    return !directory->incomplete;
}

void bw_directory_close(struct bw_directory *directory)
{
    if (!directory)
        return;
    bw_error_free(end_range(directory));
    if (directory->has_range)
        bw_error_free(bw_item_range_end(&directory->range, NULL));
    bw_key_map_free(&directory->returned_names);
    bw_buffer_free(&directory->names);
    names_below_free(&directory->below);
    free(directory);
}

/* Gets the next entry of the current range; false at the end. Reports lost parts of the index. */
static bool next_in_range(struct bw_directory *directory, struct bw_dir_entry *entry)
{
    const bool index = directory->source == FROM_INDEX;
    for (;;) {
        while (directory->in_item && bw_dir_entry_next(&directory->cursor, entry)) {
            if (bw_name_is_valid(entry->name, entry->name_length))
                return true;
            if (index)
                report_damage(directory, "an entry has an invalid name");
        }
        if (directory->in_item && bw_cursor_bad(&directory->cursor)) {
            directory->lost = true;
            if (index)
                report_damage(directory, "an entry is cut off");
        }
        directory->in_item = false;
        const bool has_item = bw_item_range_next(&directory->range);
        const struct bw_leaf_finder *finder = &directory->range.finder;
        if (index && !directory->lost && finder->found && !finder->lost && !finder->ordered) {
            directory->lost = true; /* an item with a wrong key may have been an entry */
            report_damage(directory, "its entries are in a leaf with keys out of order");
        }
        if (!has_item)
            return false;
        directory->in_item = !directory->range.error;
        if (directory->in_item) {
            directory->cursor = bw_cursor_of(&directory->range.item);
        } else {
            directory->lost = true;
            bw_fs_report_range(directory->fs, &directory->range);
        }
    }
}

static uint64_t hash_of(const struct bw_directory *directory, const struct bw_dir_entry *entry)
{
    return bw_fs_name_hash(directory->fs, directory->place.inode, entry->name, entry->name_length);
}

static struct bw_error *add_name_below(void *context, const struct bw_dir_entry *entry)
{
    struct bw_directory *directory = context;
    BW_TRY(
        names_below_push(&directory->below, (struct name_below){directory->names.length, *entry}));
    bw_buffer_append(&directory->names, entry->name, entry->name_length);
    return bw_buffer_error(&directory->names);
}

/* Moves to the next source of names, if one is needed. */
static struct bw_error *next_source(struct bw_directory *directory)
{
    const struct bw_recovery *recovery = &directory->fs->recovery;
    BW_TRY(end_range(directory));
    directory->incomplete |= directory->source == FROM_HASH && directory->lost;
    if (directory->source == FROM_INDEX && !directory->lost && directory->start &&
        directory->start < REST) {
        /* Perhaps a part of the index before the start is lost. */
        begin_range(directory, BW_DIR_INDEX, 0, directory->start - 1);
        while (!directory->lost && bw_item_range_next(&directory->range)) {
            directory->lost = directory->range.error != NULL;
            if (directory->lost)
                break;
            struct bw_cursor cursor = bw_cursor_of(&directory->range.item);
            struct bw_dir_entry entry;
            while (bw_dir_entry_next(&cursor, &entry))
                continue;
            directory->lost = bw_cursor_bad(&cursor);
        }
        BW_TRY(end_range(directory));
    }
    if (directory->source == FROM_INDEX && (directory->lost || directory->start >= REST)) {
        /* Remember all names of the index. Lost parts were already reported. */
        struct bw_error *error = NULL;
        struct bw_dir_entry entry;
        directory->source = FROM_HASH;
        begin_range(directory, BW_DIR_INDEX, 0, UINT64_MAX);
        while (!error && bw_item_range_next(&directory->range)) {
            if (directory->range.error)
                continue;
            struct bw_cursor cursor = bw_cursor_of(&directory->range.item);
            while (!error && bw_dir_entry_next(&cursor, &entry))
                error = bw_key_map_put(&directory->returned_names, hash_of(directory, &entry), 1);
        }
        directory->in_range = false;
        BW_TRY(bw_item_range_stop(&directory->range, error));
        begin_range(directory, BW_DIR_ITEM, 0, UINT64_MAX);
        return NULL;
    }
    if (directory->source != FROM_HASH || !directory->lost || !recovery->names) {
        directory->source = AT_END;
        return NULL;
    }
    directory->source = FROM_INODES;
    return recovery->names(recovery->context, directory->place.subvolume, directory->place.inode,
                           add_name_below, directory);
}

struct bw_error *bw_directory_next(struct bw_directory *directory,
                                   const struct bw_directory_entry **result)
{
    struct bw_directory_entry *listed = &directory->entry;
    *result = NULL;
    while (directory->source != AT_END) {
        struct bw_dir_entry entry;
        bool got = false;
        if (directory->source != FROM_INODES) {
            got = directory->in_range && next_in_range(directory, &entry);
        } else if (directory->below_next < directory->below.count) {
            const struct name_below *below = &directory->below.items[directory->below_next++];
            entry = below->entry;
            entry.name = (const uint8_t *)directory->names.data + below->name_offset;
            got = true;
        }
        if (!got) {
            BW_TRY(next_source(directory));
            continue;
        }

        /* Other sources than the index contain names that were returned already. */
        if (directory->source != FROM_INDEX) {
            const uint64_t hash = hash_of(directory, &entry);
            const bool is_new = !bw_key_map_has(&directory->returned_names, hash);
            if (is_new)
                BW_TRY(bw_key_map_put(&directory->returned_names, hash, 1));
            const uint64_t number = directory->rest++;
            if (!is_new || (directory->start >= REST && number < directory->start - REST))
                continue;
        }

        struct bw_error *error = bw_place_of_entry(directory->fs, directory->place.subvolume,
                                                   directory->place.inode, &entry, &listed->place);
        if (error) {
            directory->incomplete = true;
            bw_fs_report(directory->fs, BW_DAMAGE, error);
            continue;
        }
        listed->name = (const char *)entry.name;
        listed->name_length = entry.name_length;
        listed->position = REST + directory->rest;
        if (directory->source == FROM_INDEX)
            listed->position = directory->range.item.key.offset + 1;
        remember_directory(directory, &listed->place);
        *result = listed;
        return NULL;
    }
    return NULL;
}
