/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gathering what ls writes: the entries of a directory, and their inodes all at once. */
#include <inttypes.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "cmd/inspect/ls.h"
#include "fs/inode.h"
#include "fs/lookup.h"

void ls_listing_free(struct ls_listing *listing)
{
    free(listing->entries);
    bw_buffer_free(&listing->bytes);
    *listing = (struct ls_listing){0};
}

struct bw_error *ls_listing_add(struct ls_listing *listing, const char *name, size_t length,
                                const struct bw_place *place)
{
    size_t offset = listing->bytes.length;
    bw_buffer_append(&listing->bytes, name, length);
    if (listing->bytes.failed ||
        !BW_ARRAY_RESERVE(listing->entries, listing->count, listing->capacity))
        return bw_error_no_memory();
    listing->entries[listing->count++] =
        (struct ls_entry){.name = offset, .name_length = length, .place = *place};
    return NULL;
}

struct gathering {
    struct ls_listing *listing;
    bool all;
};

static struct bw_error *take(void *context, const struct bw_listed *entry)
{
    const struct gathering *gathering = context;
    if (entry->name[0] == '.' && !gathering->all)
        return NULL;
    return ls_listing_add(gathering->listing, entry->name, entry->name_length, &entry->place);
}

static struct bw_error *add_dots(struct ls_listing *listing, const struct bw_place *directory,
                                 const struct bw_place *parent)
{
    BW_TRY(ls_listing_add(listing, ".", 1, directory));
    BW_TRY(ls_listing_add(listing, "..", 2, parent));
    listing->entries[listing->count - 1].is_dots = listing->entries[listing->count - 2].is_dots =
        true;
    return NULL;
}

struct bw_error *ls_listing_read(struct ls_listing *listing, struct cmd_paths *paths,
                                 const struct ls_state *options, const struct bw_place *directory,
                                 const struct bw_place *parent)
{
    struct gathering gathering = {listing, options->all};
    if (options->all)
        BW_TRY(add_dots(listing, directory, parent));
    return bw_directory_read(paths->session.fs, directory, take, &gathering);
}

static int by_name(const void *a, const void *b, void *context)
{
    const struct ls_listing *listing = context;
    const struct ls_entry *left = a, *right = b;
    size_t length = left->name_length < right->name_length ? left->name_length : right->name_length;
    int order = memcmp(listing->bytes.data + left->name, listing->bytes.data + right->name, length);
    return order ? order
                 : (left->name_length > right->name_length) -
                       (left->name_length < right->name_length);
}

void ls_listing_sort(struct ls_listing *listing)
{
    if (listing->count)
        qsort_r(listing->entries, listing->count, sizeof *listing->entries, by_name, listing);
}

/* Most entries are in the subvolume of their directory; those are read together. */
static const struct bw_subvolume *main_subvolume(const struct ls_listing *listing)
{
    return listing->entries[listing->count - 1].place.subvolume;
}

static bool is_together(const struct ls_listing *listing, const struct ls_entry *entry)
{
    return entry->place.subvolume == main_subvolume(listing) && !bw_place_is_empty(&entry->place);
}

static int by_number(const void *a, const void *b)
{
    const struct bw_wanted_inode *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

/* Hard links have the same number: once is enough. Returns how many are left. */
static size_t sort_numbers(struct bw_wanted_inode *wanted, size_t count)
{
    size_t left = 0;
    qsort(wanted, count, sizeof *wanted, by_number);
    for (size_t i = 0; i < count; i++)
        if (!left || wanted[left - 1].number != wanted[i].number)
            wanted[left++] = wanted[i];
    return left;
}

static struct bw_error *read_together(struct ls_listing *listing, struct bw_fs *fs)
{
    BW_AUTO_FREE struct bw_wanted_inode *wanted = calloc(listing->count, sizeof *wanted);
    size_t count = 0;
    if (!wanted)
        return bw_error_no_memory();
    for (size_t i = 0; i < listing->count; i++)
        if (is_together(listing, &listing->entries[i]))
            wanted[count++].number = listing->entries[i].place.inode;
    count = sort_numbers(wanted, count);
    BW_TRY(bw_inodes_read(fs, &main_subvolume(listing)->tree, wanted, count, true));
    for (size_t i = 0; i < listing->count; i++) {
        struct ls_entry *entry = &listing->entries[i];
        const struct bw_wanted_inode key = {.number = entry->place.inode};
        const struct bw_wanted_inode *found =
            bsearch(&key, wanted, count, sizeof *wanted, by_number);
        if (!is_together(listing, entry) || !found || !found->found)
            continue;
        entry->inode = found->inode;
        entry->has_inode = true;
        entry->has_acl = found->has_acl;
    }
    return NULL;
}

static struct bw_error *read_target(struct ls_listing *listing, const struct cmd_paths *paths,
                                    struct ls_entry *entry)
{
    entry->target = listing->bytes.length;
    BW_TRY(bw_symlink_read(paths->session.fs, &entry->place.subvolume->tree, entry->place.inode,
                           &listing->bytes));
    entry->target_length = listing->bytes.length - entry->target;
    return NULL;
}

/* The top of another subvolume, what only a mount has, or one whose inode is lost. */
static struct bw_error *read_alone(struct bw_fs *fs, struct ls_entry *entry)
{
    struct bw_wanted_inode wanted = {.number = entry->place.inode};
    if (!bw_place_is_empty(&entry->place))
        BW_TRY(bw_inodes_read(fs, &entry->place.subvolume->tree, &wanted, 1, true));
    if (!wanted.found)
        BW_TRY(bw_inode_get(fs, &entry->place, &wanted.inode));
    entry->inode = wanted.inode;
    entry->has_acl = wanted.has_acl;
    entry->has_inode = true;
    return NULL;
}

static struct bw_error *fill(struct ls_listing *listing, const struct cmd_paths *paths,
                             struct ls_entry *entry, bool targets)
{
    if (!entry->has_inode)
        BW_TRY(read_alone(paths->session.fs, entry));
    return targets && (entry->inode.mode & 0170000) == 0120000 ? read_target(listing, paths, entry)
                                                               : NULL;
}

struct bw_error *ls_listing_fill(struct ls_listing *listing, struct cmd_paths *paths, bool targets)
{
    if (!listing->count)
        return NULL;
    BW_TRY(read_together(listing, paths->session.fs));
    for (size_t i = 0; i < listing->count; i++) {
        struct ls_entry *entry = &listing->entries[i];
        struct bw_error *error = fill(listing, paths, entry, targets);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        if (error)
            cmd_paths_miss(paths, bw_error_prefix(error, "%.*s", (int)entry->name_length,
                                                  listing->bytes.data + entry->name));
    }
    return NULL;
}
