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
