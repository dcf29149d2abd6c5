/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the older generations of a file system one after the other. */
#include "history/older_generations.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/struct_size.h"
#include "history/history.h"

struct bw_error *bw_older_init(struct bw_older *older, struct bw_fs *present,
                               const struct bw_fs_options *images,
                               const struct bw_generation_choice *states, size_t count)
{
    *older = (struct bw_older){
        .present = present,
        .images.struct_size = sizeof older->images,
        .states = states,
        .count = states ? count : 0,
        .bytenr = present->root_tree.root.bytenr,
    };
    if (!images)
        return bw_error_create(BW_ERROR_USAGE, "no images were given");
    BW_TRY(BW_TAKE_OPTIONS(&older->images, images));
    older->images.planned = NULL;
    older->images.probes = NULL;
    older->images.reporter.report = NULL;
    if (states)
        return NULL;

    /* All committed roots. Scans only if that is fast. */
    const struct bw_history_options how = {.struct_size = sizeof how, .only_list = true};
    struct bw_history *history = NULL;
    BW_TRY(bw_history_open(present, &how, &history));
    const size_t all = bw_history_count(history);
    older->states = older->own = calloc(all + 1, sizeof *older->own);
    for (size_t i = 0; older->own && i < all; i++) {
        const struct bw_generation_info *info = bw_history_entry(history, i);
        if (info->status != BW_GENERATION_ABANDONED && !info->superseded)
            older->own[older->count++] = bw_generation_choice_of(info);
    }
    bw_history_close(history);
    return older->own ? NULL : bw_error_no_memory();
}

void bw_older_end(struct bw_older *older)
{
    free(older->own);
    older->own = NULL;
}

struct bw_error *bw_older_next(struct bw_older *older, struct bw_fs **fs)
{
    const size_t count = (size_t)bw_min(older->count - older->next, BW_REQUESTED_GENERATIONS);
    if (older->next >= older->ahead && count > 1) {
        older->ahead = older->next + count;
        BW_TRY(bw_request_blocks(older->present, older->states + older->next, count, false,
                                 older->file));
    }
    *fs = NULL;
    while (!*fs && older->next < older->count) {
        older->images.state = older->states[older->next++];
        if (older->progress)
            older->progress(older->context, older->next, older->count);
        BW_TRY(bw_error_tolerate(older->present->reopen(&older->images, fs)));
        if (!*fs)
            continue;
        const struct bw_root_pointer *root = &(*fs)->root_tree.root;
        if (root->generation >= older->present->root_tree.root.generation ||
            root->generation < older->since || root->bytenr == older->bytenr)
            bw_fs_close(BW_TAKE(*fs));
    }
    if (*fs)
        older->bytenr = (*fs)->root_tree.root.bytenr;
    return NULL;
}

struct bw_error *bw_older_time(struct bw_fs *fs, struct timespec *time)
{
    *time = (struct timespec){0};
    struct bw_subvolume_infos *infos;
    BW_TRY(bw_subvolume_infos_open(fs, false, &infos));
    for (const struct bw_subvolume_info *info; (info = bw_subvolume_infos_next(infos));)
        if (bw_is_earlier(time, &info->ctime))
            *time = info->ctime;
    return bw_subvolume_infos_close(infos);
}
