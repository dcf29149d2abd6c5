/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listings of ls: the entries of a directory, and their inodes, which are read together. */
#include "cli/inspect/ls.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/compare.h"

void ls_listing_free(struct ls_listing *listing)
{
    ls_entries_free(&listing->entries);
    bw_buffer_free(&listing->bytes);
    *listing = (struct ls_listing){.options = listing->options};
}

void ls_listing_clear(struct ls_listing *listing)
{
    enum { MOST_KEPT = 1 << 14 };
    if (listing->entries.capacity > MOST_KEPT)
        ls_listing_free(listing);
    listing->entries.count = listing->bytes.length = 0;
    listing->filled = false;
}

struct bw_error *ls_listing_add(struct ls_listing *listing, const char *name, size_t length,
                                const struct bw_place *place)
{
    const struct ls_entry entry = {
        .name = listing->bytes.length, .name_length = length, .place = *place};
    bw_buffer_append(&listing->bytes, name, length);
    BW_TRY(bw_buffer_error(&listing->bytes));
    return ls_entries_push(&listing->entries, entry);
}

struct bw_error *ls_listing_read(struct ls_listing *listing, struct cmd_paths *paths,
                                 const struct bw_place *place, const struct bw_place *parent,
                                 struct bw_directory **handle)
{
    const struct ls_state *options = listing->options;
    if (options->all) {
        BW_TRY(ls_listing_add(listing, ".", 1, place));
        BW_TRY(ls_listing_add(listing, "..", 2, parent));
        listing->entries.items[0].is_dots = listing->entries.items[1].is_dots = true;
    }
    if (*handle)
        BW_TRY(bw_directory_reopen(*handle, place, BW_DIRECTORY_START));
    else
        BW_TRY(bw_directory_open(paths->format.session.fs, place, BW_DIRECTORY_START, handle));
    for (const struct bw_directory_entry *entry;;) {
        BW_TRY(bw_directory_next(*handle, &entry));
        if (!entry)
            return NULL;
        if (entry->name[0] != '.' || options->all || options->almost_all)
            BW_TRY(ls_listing_add(listing, entry->name, entry->name_length, &entry->place));
    }
}

/* An entry and the number of its inode, by which they are sorted. */
struct numbered {
    uint64_t number;
    struct ls_entry *entry;
};

static void set_inode(struct ls_entry *entry, const struct bw_wanted_inode *wanted)
{
    entry->inode = wanted->inode;
    entry->has_inode = true;
    entry->has_acl = wanted->has_acl;
    entry->no_compression = wanted->no_compression;
}

static struct bw_error *fill_entry(struct ls_listing *listing, struct bw_fs *fs,
                                   struct ls_entry *entry, bool targets)
{
    BW_AUTO_FREE char *target = NULL;
    if (!entry->has_inode && !listing->filled) {
        /* Reads the inode of a subvolume's top directory or of a mount's empty directory; or
         * reports why an inode is lost. */
        struct bw_wanted_inode wanted = {.number = entry->place.inode};
        if (entry->place.inode != BW_EMPTY_DIRECTORY)
            BW_TRY(bw_inodes_get(fs, entry->place.subvolume, &wanted, 1, true));
        if (!wanted.found)
            BW_TRY(bw_inode_get(fs, &entry->place, &wanted.inode));
        set_inode(entry, &wanted);
    }
    if (!targets || entry->target_length || !S_ISLNK(entry->inode.mode))
        return NULL;
    BW_TRY(bw_inode_readlink(fs, &entry->place, &target, &entry->target_length));
    entry->target = listing->bytes.length;
    bw_buffer_append(&listing->bytes, target, entry->target_length);
    return bw_buffer_error(&listing->bytes);
}

struct bw_error *ls_listing_read_inodes(struct ls_listing *listing, struct cmd_paths *paths,
                                        bool targets)
{
    if (!listing->entries.count)
        return NULL;
    if (!listing->filled) {
        /* Most entries are in the subvolume of their directory; their inodes are read together. */
        enum { BATCH = 4096 };
        const struct bw_subvolume *subvolume =
            listing->entries.items[listing->entries.count - 1].place.subvolume;
        BW_AUTO_FREE struct numbered *numbered = malloc(listing->entries.count * sizeof *numbered);
        BW_AUTO_FREE struct bw_wanted_inode *wanted = malloc(
            (listing->entries.count < BATCH ? listing->entries.count : BATCH) * sizeof *wanted);
        size_t count = 0;
        if (!numbered || !wanted)
            return bw_error_no_memory();
        for (size_t i = 0; i < listing->entries.count; i++) {
            struct ls_entry *entry = &listing->entries.items[i];
            if (entry->place.subvolume == subvolume && entry->place.inode != BW_EMPTY_DIRECTORY)
                numbered[count++] = (struct numbered){entry->place.inode, entry};
        }
        qsort(numbered, count, sizeof *numbered, bw_compare_first);
        for (size_t begin = 0; begin < count; begin += BATCH) {
            const size_t end = count - begin < BATCH ? count : begin + BATCH;
            size_t different = 0, at = 0;
            for (size_t i = begin; i < end; i++) /* hard links have the same number */
                if (i == begin || numbered[i].number != numbered[i - 1].number)
                    wanted[different++] = (struct bw_wanted_inode){.number = numbered[i].number};
            BW_TRY(bw_inodes_get(paths->format.session.fs, subvolume, wanted, different, true));
            for (size_t i = begin; i < end; i++) {
                at += wanted[at].number != numbered[i].number;
                if (wanted[at].found)
                    set_inode(numbered[i].entry, &wanted[at]);
            }
        }
    }
    for (size_t i = 0; i < listing->entries.count; i++) {
        struct ls_entry *entry = &listing->entries.items[i];
        struct bw_error *error = fill_entry(listing, paths->format.session.fs, entry, targets);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        if (error)
            cmd_format_miss(&paths->format, bw_error_prefix(error, "%.*s", (int)entry->name_length,
                                                            listing->bytes.data + entry->name));
    }
    listing->filled = true;
    return NULL;
}

/* As in ls, the newest and the largest come first; the name decides between equal ones. A lost
 * inode is all zeros, so it sorts last. */
static int compare_entries(const void *a, const void *b, void *context)
{
    const struct ls_listing *listing = context;
    const struct ls_state *options = listing->options;
    const struct ls_entry *left = a, *right = b;
    const char *bytes = listing->bytes.data;
    int order = 0;
    if (options->order == LS_BY_SIZE)
        order = bw_compare(right->inode.size, left->inode.size);
    if (options->order == LS_BY_TIME) {
        const struct timespec *newer = ls_time_of(&right->inode, options->time),
                              *older = ls_time_of(&left->inode, options->time);
        order = (newer->tv_sec > older->tv_sec) - (newer->tv_sec < older->tv_sec);
        if (!order)
            order = (newer->tv_nsec > older->tv_nsec) - (newer->tv_nsec < older->tv_nsec);
    }
    if (!order)
        order = bw_compare_bytes(bytes + left->name, left->name_length, bytes + right->name,
                                 right->name_length);
    return options->reverse ? -order : order;
}

struct bw_error *ls_listing_sort(struct ls_listing *listing, struct cmd_paths *paths)
{
    const struct ls_state *options = listing->options;
    if (options->order == LS_BY_SIZE || options->order == LS_BY_TIME)
        BW_TRY(ls_listing_read_inodes(listing, paths, false));
    if (listing->entries.count && options->order != LS_UNSORTED)
        qsort_r(listing->entries.items, listing->entries.count, sizeof *listing->entries.items,
                compare_entries, listing);
    return NULL;
}

struct bw_error *ls_listing_follow_links(struct ls_listing *listing, const struct cmd_paths *paths,
                                         const char *directory)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    for (size_t i = 0; i < listing->entries.count; i++) {
        struct ls_entry *entry = &listing->entries.items[i];
        struct bw_inode inode;
        struct bw_place place;
        if (!S_ISLNK(entry->inode.mode))
            continue;
        path.length = 0;
        if (*directory)
            bw_buffer_format(&path, "%s/", directory);
        bw_buffer_append(&path, listing->bytes.data + entry->name, entry->name_length);
        BW_TRY(bw_buffer_terminate(&path));
        BW_AUTO_ERROR struct bw_error *error =
            bw_lookup(paths->format.session.fs, paths->from, path.data, true, &place);
        if (!error)
            error = bw_inode_get(paths->format.session.fs, &place, &inode);
        entry->target_mode = error ? 0 : inode.mode;
    }
    return NULL;
}
