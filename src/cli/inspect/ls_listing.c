/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gathering what ls writes: the entries of a directory, their inodes all at once, and filters. */
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "cli/inspect/ls.h"

void ls_listing_free(struct ls_listing *listing)
{
    free(listing->entries);
    bw_buffer_free(&listing->bytes);
    *listing = (struct ls_listing){0};
}

void ls_listing_clear(struct ls_listing *listing)
{
    enum { MOST_KEPT = 1 << 14 };
    if (listing->capacity > MOST_KEPT)
        ls_listing_free(listing);
    listing->count = listing->bytes.length = 0;
    listing->filled = false;
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

static struct bw_error *add_dots(struct ls_listing *listing, const struct bw_place *directory,
                                 const struct bw_place *parent)
{
    BW_TRY(ls_listing_add(listing, ".", 1, directory));
    BW_TRY(ls_listing_add(listing, "..", 2, parent));
    listing->entries[0].is_dots = listing->entries[1].is_dots = true;
    return NULL;
}

static struct bw_error *add_entries(struct ls_listing *listing, struct bw_directory *directory,
                                    bool hidden)
{
    const struct bw_directory_entry *entry;
    for (;;) {
        BW_TRY(bw_directory_next(directory, &entry));
        if (!entry)
            return NULL;
        if (entry->name[0] != '.' || hidden)
            BW_TRY(ls_listing_add(listing, entry->name, entry->name_length, &entry->place));
    }
}

struct bw_error *ls_listing_read(struct ls_listing *listing, struct cmd_paths *paths,
                                 const struct ls_state *options, const struct bw_place *place,
                                 const struct bw_place *parent, struct bw_directory **handle)
{
    if (options->all)
        BW_TRY(add_dots(listing, place, parent));
    BW_TRY(*handle ? bw_directory_reopen(*handle, place, BW_DIRECTORY_START)
                   : bw_directory_open(paths->session.fs, place, BW_DIRECTORY_START, handle));
    return add_entries(listing, *handle, options->all || options->almost_all);
}

/* Most entries are in the subvolume of their directory; those are read together. */
static const struct bw_subvolume *main_subvolume(const struct ls_listing *listing)
{
    return listing->entries[listing->count - 1].place.subvolume;
}

static bool is_together(const struct ls_listing *listing, const struct ls_entry *entry)
{
    return entry->place.subvolume == main_subvolume(listing) &&
           entry->place.inode != BW_EMPTY_DIRECTORY;
}

static int by_number(const void *a, const void *b)
{
    const struct bw_wanted_inode *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

/* Sorts and makes hard links, which have the same number, one. Returns how many are left. */
static size_t sort_numbers(struct bw_wanted_inode *wanted, size_t count)
{
    size_t left = 0;
    qsort(wanted, count, sizeof *wanted, by_number);
    for (size_t i = 0; i < count; i++)
        if (!left || wanted[left - 1].number != wanted[i].number)
            wanted[left++] = wanted[i];
    return left;
}

static void take_inode(struct ls_entry *entry, const struct bw_wanted_inode *wanted)
{
    entry->inode = wanted->inode;
    entry->has_inode = true;
    entry->has_acl = wanted->has_acl;
    entry->no_compression = wanted->no_compression;
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
    BW_TRY(bw_inodes_get(fs, main_subvolume(listing), wanted, count, true));
    for (size_t i = 0; i < listing->count; i++) {
        struct ls_entry *entry = &listing->entries[i];
        const struct bw_wanted_inode key = {.number = entry->place.inode};
        const struct bw_wanted_inode *found =
            bsearch(&key, wanted, count, sizeof *wanted, by_number);
        if (is_together(listing, entry) && found && found->found)
            take_inode(entry, found);
    }
    return NULL;
}

/* The top of another subvolume, what only a mount has, or one whose inode is lost. */
static struct bw_error *read_alone(struct bw_fs *fs, struct ls_entry *entry)
{
    struct bw_wanted_inode wanted = {.number = entry->place.inode};
    if (entry->place.inode != BW_EMPTY_DIRECTORY)
        BW_TRY(bw_inodes_get(fs, entry->place.subvolume, &wanted, 1, true));
    if (!wanted.found)
        BW_TRY(bw_inode_get(fs, &entry->place, &wanted.inode));
    take_inode(entry, &wanted);
    return NULL;
}

static struct bw_error *fill_entry(struct ls_listing *listing, struct bw_fs *fs,
                                   struct ls_entry *entry, bool targets)
{
    BW_AUTO_FREE char *target = NULL;
    if (!entry->has_inode && !listing->filled)
        BW_TRY(read_alone(fs, entry));
    if (!targets || entry->target_length || !S_ISLNK(entry->inode.mode))
        return NULL;
    BW_TRY(bw_inode_readlink(fs, &entry->place, &target, &entry->target_length));
    entry->target = listing->bytes.length;
    bw_buffer_append(&listing->bytes, target, entry->target_length);
    return listing->bytes.failed ? bw_error_no_memory() : NULL;
}

struct bw_error *ls_listing_fill(struct ls_listing *listing, struct cmd_paths *paths, bool targets)
{
    if (!listing->count)
        return NULL;
    if (!listing->filled)
        BW_TRY(read_together(listing, paths->session.fs));
    for (size_t i = 0; i < listing->count; i++) {
        struct ls_entry *entry = &listing->entries[i];
        struct bw_error *error = fill_entry(listing, paths->session.fs, entry, targets);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        if (error)
            cmd_paths_miss(paths, bw_error_prefix(error, "%.*s", (int)entry->name_length,
                                                  listing->bytes.data + entry->name));
    }
    listing->filled = true;
    return NULL;
}

/* What links lead to. */

struct bw_error *ls_listing_follow(struct ls_listing *listing, const struct cmd_paths *paths,
                                   const char *directory)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    for (size_t i = 0; i < listing->count; i++) {
        struct ls_entry *entry = &listing->entries[i];
        struct bw_inode inode;
        struct bw_place place;
        if (!S_ISLNK(entry->inode.mode))
            continue;
        path.length = 0;
        bw_buffer_format(&path, "%s%s%.*s%c", directory, *directory ? "/" : "",
                         (int)entry->name_length, listing->bytes.data + entry->name, '\0');
        if (path.failed)
            return bw_error_no_memory();
        BW_AUTO_ERROR struct bw_error *error =
            bw_lookup(paths->session.fs, paths->from, path.data, true, &place);
        if (!error)
            error = bw_inode_get(paths->session.fs, &place, &inode);
        entry->target_mode = error ? 0 : inode.mode;
    }
    return NULL;
}

/* Filters and rows: entries with their paths. */

struct bw_error *ls_listing_each(struct ls_listing *listing, const char *directory,
                                 ls_entry_taker *take, void *context)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    BW_TRY(cmd_paths_absolute(directory, &path));
    if (path.data[path.length - 1] != '/')
        bw_buffer_append_byte(&path, '/');
    const size_t above = path.length;
    for (size_t i = 0; i < listing->count; i++) {
        struct ls_entry *entry = &listing->entries[i];
        const char *name = listing->bytes.data + entry->name;
        size_t slashes = 0; /* at the begin of a path that was given */
        while (slashes < entry->name_length && name[slashes] == '/')
            slashes++;
        path.length = above;
        bw_buffer_append(&path, name + slashes, entry->name_length - slashes);
        bw_buffer_append_byte(&path, '\0');
        if (path.failed)
            return bw_error_no_memory();
        const struct bw_entry named = {path.data, path.length - 1, entry->place,
                                       entry->has_inode ? &entry->inode : NULL,
                                       entry->no_compression};
        BW_TRY(take(context, entry, &named));
    }
    return NULL;
}

/* A filter: whether an entry stays. */
typedef bool filter(const struct cmd_selection *selection, const struct bw_entry *entry);

struct filtering {
    const struct cmd_selection *selection;
    filter *passes;
    struct ls_listing *listing;
    size_t kept;
};

static struct bw_error *keep_one(void *context, struct ls_entry *entry,
                                 const struct bw_entry *named)
{
    struct filtering *filtering = context;
    if (filtering->passes(filtering->selection, named))
        filtering->listing->entries[filtering->kept++] = *entry;
    return NULL;
}

/* Keeps the entries that pass a filter. */
static struct bw_error *keep(struct ls_listing *listing, const struct cmd_selection *selection,
                             const char *directory, filter *passes)
{
    struct filtering filtering = {selection, passes, listing, 0};
    BW_TRY(ls_listing_each(listing, directory, keep_one, &filtering));
    listing->count = filtering.kept;
    return NULL;
}

static bool is_not_excluded(const struct cmd_selection *selection, const struct bw_entry *entry)
{
    return !selection->selection || !bw_selection_excludes_entry(selection->selection, entry);
}

static bool has_name(const struct cmd_selection *selection, const struct bw_entry *entry)
{
    const unsigned type = entry->place.type <= BW_FILE_SYMLINK ? entry->place.type : 0;
    return (!selection->types || selection->types >> type & 1) &&
           (!selection->selection || bw_selection_accepts_name(selection->selection, entry));
}

static bool has_inode(const struct cmd_selection *selection, const struct bw_entry *entry)
{
    return bw_selection_accepts_inode(selection->selection, entry);
}

void ls_listing_remove_dots(struct ls_listing *listing)
{
    size_t count = 0;
    for (size_t i = 0; i < listing->count; i++)
        if (!listing->entries[i].is_dots)
            listing->entries[count++] = listing->entries[i];
    listing->count = count;
}

struct bw_error *ls_listing_exclude(struct ls_listing *listing, const struct ls_state *options,
                                    const char *path)
{
    return keep(listing, &options->selection, path, is_not_excluded);
}

struct bw_error *ls_listing_select(struct ls_listing *listing, struct cmd_paths *paths,
                                   const struct ls_state *options, const char *path)
{
    const struct cmd_selection *selection = &options->selection;
    BW_TRY(keep(listing, selection, path, has_name));
    if (!selection->selection || !bw_selection_needs_inode(selection->selection))
        return NULL;
    BW_TRY(ls_listing_fill(listing, paths, false));
    return keep(listing, selection, path, has_inode);
}
