/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The space that `copy` copies: the space in use, and that of older generations if requested. */
#include "cli/export/copy_used.h"

#include "base/cleanup.h"
#include "btrfs-walk/history.h"
#include "cli/common/monitor.h"
#include "cli/common/session.h"

static struct bw_error *add_history(void *used, uint64_t logical, uint64_t length)
{
    return bw_used_map_add(used, logical, length);
}

/* The space in use of an older generation. */
struct older {
    struct bw_used_map *used, *present;
};

static struct bw_error *add_older_range(void *context, const struct bw_used_range *range)
{
    const struct older *older = context;
    return range->in_use
               ? bw_used_map_add_device(older->present, range->devid, range->offset, range->length)
               : NULL;
}

static struct bw_error *add_older_device(void *context, const struct bw_device_info *device)
{
    const struct older *older = context;
    return device->path ? bw_used_map_device(older->used, device->devid, add_older_range, context)
                        : NULL;
}

/* Adds what all generations have in the chunks of this one, which differ from the present ones. A
 * chunk tree that cannot be read is of no use for the copy, either. */
static struct bw_error *add_generation(const struct cmd_common *common,
                                       const struct bw_history *history, size_t number,
                                       struct bw_used_map *used)
{
    struct bw_fs_options how = cmd_fs_options(common);
    struct older older = {.present = used};
    struct bw_fs *fs = NULL;
    struct bw_error *error = bw_history_open_state(history, number, &how, &fs);
    if (!error)
        error = bw_used_map_open(fs, NULL, &older.used);
    if (!error)
        error = bw_history_ranges(history, add_history, older.used);
    if (!error)
        error = bw_fs_devices(fs, add_older_device, &older);
    bw_used_map_close(older.used);
    bw_fs_close(fs);
    if (!error || error->code == BW_ERROR_NO_MEMORY)
        return error;
    bw_error_free(error);
    return NULL;
}

/* Adds generations with other chunks, one for each of their chunk trees. */
static struct bw_error *add_generations(const struct cmd_common *common, struct bw_fs *fs,
                                        const struct bw_history *history, struct bw_used_map *used)
{
    struct bw_superblock_info superblock;
    bw_fs_superblock(fs, &superblock);
    uint64_t known = superblock.chunk_root;
    for (size_t i = 0; i < bw_history_count(history); i++) {
        const uint64_t root = bw_history_entry(history, i)->chunk_root;
        if (root && root != known && root != superblock.chunk_root)
            BW_TRY(add_generation(common, history, i, used));
        known = root ? root : known;
    }
    return NULL;
}

static struct bw_error *find_history(const struct cmd_common *common, struct bw_fs *fs,
                                     struct bw_used_map *used)
{
    const struct bw_history_options how = {.struct_size = sizeof how,
                                           .scanning = BW_HISTORY_SCAN_ALWAYS,
                                           .progress = cmd_progress_scan,
                                           .only_list = true};
    struct bw_history *history;
    BW_TRY(bw_history_open(fs, &how, &history));
    struct bw_error *error = bw_history_ranges(history, add_history, used);
    if (!error)
        error = add_generations(common, fs, history, used);
    bw_history_close(history);
    return error;
}

struct bw_error *copy_find_used(const struct cmd_common *common, struct bw_fs *fs, bool history,
                                struct bw_used_map **used)
{
    const struct bw_used_options how = {.struct_size = sizeof how, .files = true};
    cmd_progress_expect_trees(fs, false);
    BW_TRY(bw_used_map_open(fs, &how, used));
    if (history)
        return find_history(common, fs, *used);
    bw_fs_report(fs, BW_WARNING,
                 bw_error_create(BW_ERROR_NOT_FOUND,
                                 "older generations are not copied: 'roots' and 'deleted' will "
                                 "find less in the copy; --history copies them, too"));
    return NULL;
}
