/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `du --shared-with`: groups of files that have extents in common.
 *
 * bw_du() says which files have shared data at all; only their extents are read. Each use of an
 * extent by a file becomes an entry of one table, which is sorted by address. Files that use the
 * same extent are then joined to groups, with a union-find structure. Memory is limited: once the
 * table is full, no more files are added, and a message reports how many are missing.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/pair_set.h"
#include "base/vector.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/records.h"
#include "cli/common/monitor.h"
#include "cli/inspect/du.h"

enum {
    MOST_USES = 1 << 23,   /* of 16 bytes */
    MOST_PATHS = 128 << 20 /* bytes of all paths */
};

/* A use of an extent by a file. */
struct use {
    uint64_t logical; /* address of the whole extent */
    uint32_t file;    /* index */
    uint32_t bytes;   /* of the file in it; an extent has at most 128 MiB */
};

BW_VECTOR(uses, struct use);

/* A file that shares data with something. */
struct file {
    uint64_t subvolume, inode;
    size_t path, path_length; /* in the bytes of all paths */
    uint32_t parent;       /* a file of the same group; the file itself: it stands for the group */
    uint32_t group_files;  /* of a file that stands for a group: how many are in it */
    uint64_t shared;       /* bytes in extents that other files use */
    uint64_t group_shared; /* the same for all files of the group */
};

BW_VECTOR(files, struct file);

struct comparison {
    struct bw_fs *fs;
    struct uses uses;
    struct files files;
    struct bw_buffer paths;
    struct bw_pair_set known; /* files that were added */
    uint64_t left_out;        /* files that no longer fitted */
};

static void comparison_free(struct comparison *comparison)
{
    uses_free(&comparison->uses);
    files_free(&comparison->files);
    bw_pair_set_free(&comparison->known);
    bw_buffer_free(&comparison->paths);
}

static struct bw_error *add_entry(void *context, const struct bw_du_entry *entry)
{
    struct comparison *comparison = context;
    const struct file added = {.subvolume = bw_subvolume_id(entry->place.subvolume),
                               .inode = entry->place.inode,
                               .path = comparison->paths.length,
                               .path_length = entry->path_length,
                               .parent = (uint32_t)comparison->files.count};
    if (entry->place.type != BW_FILE_REGULAR || (entry->sharing_known && !entry->shared))
        return NULL;
    bool is_new;
    BW_TRY(bw_pair_set_insert(&comparison->known, added.subvolume, added.inode, &is_new));
    if (!is_new)
        return NULL; /* below another PATH, too */
    const size_t before = comparison->uses.count;
    if (before >= MOST_USES || comparison->paths.length >= MOST_PATHS) {
        comparison->left_out++;
        return NULL;
    }
    struct bw_file *file = NULL;
    const struct bw_extent *extent;
    struct bw_error *error = bw_file_open(comparison->fs, &entry->place, NULL, &file);
    while (!error && !(error = bw_file_next_extent(file, &extent)) && extent)
        if (extent->logical)
            error = uses_push(&comparison->uses, (struct use){extent->logical, added.parent,
                                                              (uint32_t)extent->length});
    bw_file_close(file);
    BW_TRY(bw_error_tolerate(error)); /* the search for shared data has reported damage */
    if (comparison->uses.count == before)
        return NULL;
    bw_buffer_append(&comparison->paths, entry->path, entry->path_length);
    BW_TRY(bw_buffer_error(&comparison->paths));
    return files_push(&comparison->files, added);
}

static int by_extent(const void *left, const void *right)
{
    const struct use *a = left, *b = right;
    if (a->logical != b->logical)
        return a->logical < b->logical ? -1 : 1;
    return (a->file > b->file) - (a->file < b->file);
}

/* The file that stands for the group of a file. Halves the path to it, so that later searches are
 * short. */
static uint32_t find_group(struct files *files, uint32_t file)
{
    while (files->items[file].parent != file) {
        struct file *at = &files->items[file];
        at->parent = files->items[at->parent].parent;
        file = at->parent;
    }
    return file;
}

/* The group with the most shared bytes first; in it, the files in the order of the listing, which
 * is that of their paths in the buffer. */
static int by_group(const void *left, const void *right)
{
    const struct file *a = left, *b = right;
    if (a->group_shared != b->group_shared)
        return a->group_shared > b->group_shared ? -1 : 1;
    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    return (a->path > b->path) - (a->path < b->path);
}

struct bw_error *du_write_shared(struct cmd_format *format, void *context)
{
    const struct du *du = context;
    BW_SCOPED(comparison) struct comparison comparison = {.fs = format->session.fs};
    BW_TRY(cmd_selection_prepare(&du->selection, comparison.fs));

    const struct bw_du_options how = {.visit = add_entry, .context = &comparison};
    BW_TRY(du_visit(format, du, how));

    /* Join the files that use the same extents, and add up the bytes. */
    struct use *uses = comparison.uses.items;
    struct files *files = &comparison.files;
    const size_t count = comparison.uses.count;
    if (count)
        qsort(uses, count, sizeof *uses, by_extent);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && uses[end].logical == uses[first].logical; end++)
            ;
        if (uses[end - 1].file == uses[first].file)
            continue;
        for (size_t i = first; i < end; i++) {
            const uint32_t one = find_group(files, uses[first].file);
            const uint32_t other = find_group(files, uses[i].file);
            /* The first of all files stands for the group. */
            if (one < other)
                files->items[other].parent = one;
            else
                files->items[one].parent = other;
            files->items[uses[i].file].shared += uses[i].bytes;
        }
    }
    for (uint32_t i = 0; i < files->count; i++) {
        struct file *group = &files->items[find_group(files, i)];
        group->group_files++;
        group->group_shared += files->items[i].shared;
    }
    for (uint32_t i = 0; i < files->count; i++) {
        struct file *file = &files->items[i];
        const struct file *group = &files->items[find_group(files, i)];
        file->group_files = group->group_files;
        file->group_shared = group->group_shared;
    }
    for (uint32_t i = 0; i < files->count; i++)
        files->items[i].parent = find_group(files, i);
    files_sort(files, by_group);

    uint64_t number = 0;
    for (size_t i = 0; i < files->count; i++) {
        const struct file *file = &files->items[i];
        const struct bw_bytes path = {comparison.paths.data + file->path, file->path_length};
        if (file->group_files < 2)
            continue;
        number += !number || file->parent != file[-1].parent;
        const struct bw_sharedfileinfo row = {.group_number = number,
                                              .files = file->group_files,
                                              .shared = file->shared,
                                              .path = path,
                                              .path_bytes = path,
                                              .subvolume = file->subvolume,
                                              .inode = file->inode};
        BW_TRY(cmd_format_write(format, &row, sizeof row));
    }
    if (comparison.left_out)
        cmd_format_miss(format,
                        bw_error_create(BW_ERROR_NOT_FOUND,
                                        "too many shared extents: %" PRIu64
                                        " file%s not compared; select fewer with PATH or filters",
                                        comparison.left_out, bw_plural(comparison.left_out)));
    return NULL;
}
