/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Composes an open file system: the reader of fs/ with recovery, history and rescue. */
#include "history/history.h"
#include "recovery/recovery.h"
#include "rescue/rescue.h"

struct bw_error *bw_fs_open(const struct bw_fs_options *options, struct bw_fs **fs)
{
    static const struct bw_fs_hooks hooks = {.attach = bw_recovery_attach,
                                             .find_generation = bw_history_find_generation,
                                             .find_chunk_root = bw_history_find_chunk_root,
                                             .find_superblocks = bw_trunk_find_superblocks,
                                             .find_devices = bw_trunk_find_devices,
                                             .find_chunks = bw_trunk_find_chunks,
                                             .find_roots = bw_trunk_find_roots};
    return bw_fs_open_with(options, &hooks, fs);
}
