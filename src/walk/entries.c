/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading again what the tasks of a walk have written. */
#include "walk/entries.h"

#include "base/cleanup.h"
#include "walk/writers.h"

struct visitor {
    bw_walked_visitor *visit;
    void *context;
};

static struct bw_error *take(void *context, const char *bytes, size_t length)
{
    const struct visitor *visitor = context;
    for (const char *end = bytes + length; bytes < end;) {
        struct bw_walked_file file;
        struct bw_inode inode;
        bw_entry_read(&bytes, &file, &inode);
        BW_TRY(visitor->visit(visitor->context, &file));
    }
    return NULL;
}

static struct bw_error *walk(struct bw_fs *fs, const struct bw_walk_options *given, unsigned needs,
                             struct visitor *visitor, struct bw_walk_summary *summary)
{
    const struct bw_file_writer writer = bw_entry_file_writer(needs);
    struct bw_walk_options options = *given;
    options.consume = take;
    options.context = visitor;
    return bw_walk_with(fs, &options, &writer, summary);
}

struct bw_error *bw_walk_entries(struct bw_fs *fs, const struct bw_walk_options *options,
                                 bw_walked_visitor *visit, void *context,
                                 struct bw_walk_summary *summary)
{
    return walk(fs, options, BW_FILE_NEEDS_INODE, &(struct visitor){visit, context}, summary);
}

struct bw_error *bw_walk_names(struct bw_fs *fs, const struct bw_walk_options *options,
                               bw_walked_visitor *visit, void *context,
                               struct bw_walk_summary *summary)
{
    return walk(fs, options, 0, &(struct visitor){visit, context}, summary);
}

/* The public visitor, and the subvolume of the last entry: the next one is most often in the same.
 */
struct public_visitor {
    const struct bw_fs *fs;
    const struct bw_walk_options *options;
    const struct bw_subvolume *subvolume;
};

static struct bw_error *visit_public(void *context, const struct bw_walked_file *file)
{
    struct public_visitor *visitor = context;
    if (!visitor->subvolume || bw_subvolume_id(visitor->subvolume) != file->subvolume)
        visitor->subvolume = bw_subvolume_by_id(visitor->fs, file->subvolume);
    const struct bw_entry entry = {
        .path = file->path,
        .path_length = file->path_length,
        .place = {visitor->subvolume, file->number, file->type, 0},
        .inode = file->inode,
    };
    return visitor->options->visit(visitor->options->context, &entry);
}

struct bw_error *bw_walk_visit(struct bw_fs *fs, const struct bw_walk_options *options,
                               struct bw_walk_summary *summary)
{
    struct public_visitor visitor = {.fs = fs, .options = options};
    return options->visit_inodes ? bw_walk_entries(fs, options, visit_public, &visitor, summary)
                                 : bw_walk_names(fs, options, visit_public, &visitor, summary);
}
