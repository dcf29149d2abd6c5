/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The older states of a file system, all but those that were never committed. */
#include "cmd/common/states.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "btrfs-walk/past.h"
#include "cmd/common/progress.h"

const struct cmd_option cmd_states_options[] = {
    {0, "no-scan", NULL, "take only the states that the superblock names",
     CMD_FLAG(struct cmd_states_settings, no_scan)},
    {0},
};

static struct bw_error *take_all(struct cmd_states *states, const struct bw_past *past)
{
    const size_t count = bw_past_count(past);
    states->choices = calloc(count + 1, sizeof *states->choices);
    if (!states->choices)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++) {
        const struct bw_state_info *info = bw_past_state(past, i);
        if (info->standing != BW_STATE_ABANDONED)
            states->choices[states->count++] =
                (struct bw_state_choice){.tree_root = info->tree_root,
                                         .tree_root_generation = info->generation,
                                         .chunk_root = info->chunk_root};
    }
    return NULL;
}

struct bw_error *cmd_states_find(const struct cmd_common *common, struct bw_fs *fs,
                                 const struct cmd_states_settings *settings,
                                 struct cmd_states *states)
{
    struct cmd_progress progress = {0};
    const struct bw_past_options how = {
        .struct_size = sizeof how,
        .scanning = settings->no_scan ? BW_PAST_SCAN_NEVER
                    : common->scan    ? BW_PAST_SCAN_ALWAYS
                                      : BW_PAST_SCAN_SMALL,
        .progress = cmd_progress_scan,
        .context = &progress,
    };
    struct bw_past *past = NULL;
    *states = (struct cmd_states){.images = cmd_fs_options(common)};
    cmd_progress_start(&progress, common->quiet);
    struct bw_error *error = bw_past_open(fs, &how, &past);
    cmd_progress_end(&progress);
    if (!error)
        error = take_all(states, past);
    bw_past_close(past);
    return error;
}

struct bw_error *cmd_open_state(const struct cmd_common *common, struct bw_state_choice state,
                                struct bw_fs **fs)
{
    struct bw_fs_options options = cmd_fs_options(common);
    options.planned = NULL;
    options.reporter = (struct bw_reporter){cmd_report, (void *)(uintptr_t)common};
    options.state = state;
    return bw_fs_open(&options, fs);
}

void cmd_states_free(struct cmd_states *states)
{
    free(states->choices);
}
