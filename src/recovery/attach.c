/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening a file system with recovery attached. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "recovery/recovery.h"

struct context {
    struct bw_adoptions *adoptions;
    struct bw_name_index *names;
};

static struct bw_error *find(void *context, const struct bw_tree *tree, uint64_t bytenr,
                             const struct bw_adopted **adopted)
{
    return bw_adoptions_find(((struct context *)context)->adoptions, tree, bytenr, adopted);
}

static struct bw_error *names(void *context, const struct bw_subvolume *subvolume,
                              uint64_t directory, bw_name_taker *take, void *taker)
{
    return bw_name_index_read(((struct context *)context)->names, subvolume, directory, take,
                              taker);
}

static void destroy(void *context)
{
    struct context *recovery = context;
    bw_adoptions_destroy(recovery->adoptions);
    bw_name_index_destroy(recovery->names);
    free(recovery);
}

static struct bw_error *attach(struct bw_fs *fs)
{
    struct context *context = calloc(1, sizeof *context);
    if (!context)
        return bw_error_no_memory();
    fs->recovery = (struct bw_recovery){{find, context}, names, destroy, context};
    BW_TRY(bw_adoptions_create(fs, &context->adoptions));
    return bw_name_index_create(fs, &context->names);
}

struct bw_error *bw_fs_open(const struct bw_fs_options *options, struct bw_fs **fs)
{
    return bw_fs_open_with(options, attach, fs);
}
