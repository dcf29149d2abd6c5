/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What recovery adds to a file system that is being opened, and the log that is replayed. */
#include "base/cleanup.h"
#include "recovery/recovery.h"
#include "replay/replay.h"

static void destroy(struct bw_recovery *recovery)
{
    bw_adoptions_destroy(recovery->adopter.context);
    bw_name_index_destroy(recovery->context);
}

struct bw_error *bw_recovery_attach(struct bw_fs *fs)
{
    struct bw_adoptions *adoptions = NULL;
    struct bw_name_index *names = NULL;
    BW_TRY(bw_adoptions_create(fs, &adoptions));
    struct bw_error *error = bw_name_index_create(fs, &names);
    fs->recovery =
        (struct bw_recovery){{bw_adoptions_find, adoptions}, bw_name_index_read, destroy, names};
    return error ? error : bw_replay(fs);
}
