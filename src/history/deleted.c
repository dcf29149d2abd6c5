/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The search for what was deleted: its states, one after the other. Two older ones are open at a
 * time, besides the present one. */
#include "history/deleted.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/struct_size.h"
#include "diff/diff.h"

static struct bw_error *set_up(struct bw_deleted *deleted, const struct bw_deleted_options *options)
{
    struct bw_deleted_options *ours = &deleted->options;
    BW_TRY(BW_TAKE_OPTIONS(ours, options));
    BW_TRY(bw_older_init(&deleted->older, deleted->present, ours->images, ours->states,
                         ours->state_count));
    deleted->older.since = ours->since;
    deleted->older.progress = ours->progress;
    deleted->older.context = ours->context;
    return bw_diff_set_filter(ours->path, &deleted->path);
}

struct bw_error *bw_deleted_open(struct bw_fs *present, const struct bw_deleted_options *options,
                                 struct bw_deleted **result)
{
    struct bw_deleted *deleted = calloc(1, sizeof *deleted);
    if (!deleted)
        return bw_error_no_memory();
    deleted->present = deleted->newer = present;
    deleted->options.struct_size = sizeof deleted->options;
    struct bw_error *error = set_up(deleted, options);
    if (error) {
        bw_deleted_close(deleted);
        return error;
    }
    *result = deleted;
    return NULL;
}

static void close_state(struct bw_deleted *deleted, struct bw_fs *fs)
{
    if (fs != deleted->present)
        bw_fs_close(fs);
}

void bw_deleted_close(struct bw_deleted *deleted)
{
    if (!deleted)
        return;
    if (deleted->state != deleted->newer)
        close_state(deleted, deleted->state);
    close_state(deleted, deleted->newer);
    bw_older_end(&deleted->older);
    bw_buffer_free(&deleted->path);
    bw_pair_set_free(&deleted->known);
    bw_map_free(&deleted->gone);
    free(deleted->inodes);
    free(deleted);
}

static struct bw_error *describe(struct bw_deleted *deleted, struct bw_deleted_state *state)
{
    struct bw_fs *fs = deleted->state;
    *state = (struct bw_deleted_state){
        .fs = fs,
        .generation = fs->root_tree.root.generation,
        .tree_root = fs->root_tree.root.bytenr,
        .is_present = fs == deleted->present,
    };
    struct bw_error *error = bw_older_time(fs, &state->time);
    state->lost = bw_fs_status(fs).damages;
    return error;
}

/* Makes a state the one at hand. */
static void advance(struct bw_deleted *deleted, struct bw_fs *fs)
{
    if (deleted->state && deleted->state != deleted->newer) {
        close_state(deleted, deleted->newer);
        deleted->newer = deleted->state;
    }
    deleted->state = fs;
    deleted->count = 0;
}

struct bw_error *bw_deleted_next(struct bw_deleted *deleted, struct bw_deleted_state *state,
                                 bool *got)
{
    struct bw_fs *fs;
    *got = !deleted->at_end;
    if (deleted->at_end)
        return NULL;
    BW_TRY(bw_older_next(&deleted->older, &fs));
    deleted->at_end = !fs;
    advance(deleted, fs ? fs : deleted->present);
    BW_TRY(fs ? bw_deleted_find(deleted) : bw_deleted_find_present(deleted));
    return describe(deleted, state);
}
