/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The older states of a file system: those that the backup roots of the superblock name. */
#include "cmd/common/states.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

struct bw_error *cmd_states_find(const struct cmd_common *common, const struct bw_fs *fs,
                                 struct cmd_states *states)
{
    struct bw_superblock_info superblock;
    *states = (struct cmd_states){.images = cmd_fs_options(common)};
    states->images.planned = NULL;
    bw_fs_superblock(fs, &superblock);
    for (uint64_t back = 1; back < BW_STATE_BACKUPS && back < superblock.generation; back++) {
        if (!BW_ARRAY_RESERVE(states->choices, states->count, states->capacity))
            return bw_error_no_memory();
        states->choices[states->count++] =
            (struct bw_state_choice){.generation = superblock.generation - back};
    }
    return NULL;
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
