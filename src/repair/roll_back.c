/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Older generations. A transaction leaves the blocks of earlier ones in place, so a file system is
 * rolled back by its superblocks alone: they get the root tree and the chunk tree of that
 * generation, its system chunks and its sums. The same fields complete a superblock that was made
 * from tree blocks, which has no roots.
 *
 * A root tree whose blocks are all there may still belong to no commit, or to another chunk tree.
 * Therefore every generation is tried before it is offered: the file system is opened with its
 * superblocks and checked, and must have no error.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "btrfs-walk/diff.h"
#include "btrfs-walk/history.h"
#include "owners/tree_list.h"
#include "repair/repair.h"

enum {
    MOST_TRIED = 8,
    MOST_OFFERED = 3,
    ALWAYS_SET = 1 | 1 << 5 | 1 << 6, /* mixed back references, large metadata, extended inode
                                         references: all kernels set them */
};

/* Generations. */

void bw_repair_generation_free(struct bw_repair_generation *generation)
{
    bw_repair_device_items_free(&generation->devices);
}

struct bw_error *bw_repair_read_generation(struct bw_fs *fs,
                                           struct bw_repair_generation *generation)
{
    /* The roots, and the features that the trees prove. */
    BW_SCOPED(bw_tree_list) struct bw_tree_list trees = {0};
    BW_TRY(bw_tree_list_load(fs, &trees));
    generation->root = bw_fs_root_tree(fs)->root;
    generation->chunk_root = fs->chunk_tree.root;
    generation->incompat_flags = ALWAYS_SET;
    if (bw_tree_list_find(&trees, BW_FREE_SPACE_TREE))
        generation->compat_ro_flags |=
            BW_COMPAT_RO_FREE_SPACE_TREE | BW_COMPAT_RO_FREE_SPACE_TREE_VALID;
    if (bw_tree_list_find(&trees, BW_BLOCK_GROUP_TREE))
        generation->compat_ro_flags |= BW_COMPAT_RO_BLOCK_GROUP_TREE;

    /* The devices and the system chunks. */
    const uint64_t mixed = BW_GROUP_DATA | BW_GROUP_METADATA;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_repair_all_items(&items, fs, &fs->chunk_tree);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const struct bw_disk_chunk *chunk = (const void *)item->data;
        const struct bw_disk_device_item *device = (const void *)item->data;
        if (item->key.type == BW_DEVICE_ITEM && item->size >= sizeof *device) {
            BW_TRY(bw_repair_device_items_push(&generation->devices, *device));
            generation->total_bytes += bw_get64(device->total_bytes);
        }
        if (item->key.type != BW_CHUNK_ITEM || item->size < sizeof *chunk)
            continue;
        if ((bw_get64(chunk->type) & mixed) == mixed)
            generation->incompat_flags |= BW_INCOMPAT_MIXED_GROUPS;
        if (bw_get64(chunk->type) & BW_GROUP_SYSTEM &&
            !bw_system_chunk_append(generation->system_chunks, &generation->system_chunks_size,
                                    item))
            return bw_error_create(BW_ERROR_CORRUPT, "too many system chunks");
    }
    BW_TRY(bw_fs_items_error(&items));

    /* The block groups. */
    const struct bw_tree *groups = bw_repair_group_tree(fs);
    if (!groups->id)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items used;
    bw_repair_all_items(&used, fs, groups);
    for (const struct bw_item *item; (item = bw_fs_items_next(&used));) {
        const struct bw_disk_block_group *group = (const void *)item->data;
        if (item->key.type == BW_BLOCK_GROUP_ITEM && item->size >= sizeof *group)
            generation->bytes_used += bw_get64(group->used);
    }
    return bw_fs_items_error(&used);
}

static struct bw_error *ignore_difference(void *context, const struct bw_difference *difference)
{
    (void)context, (void)difference;
    return NULL;
}

/* Describes the loss: the files that differ, as far as the current generation can be read. */
static char *describe_loss(struct bw_repair *repair, struct bw_fs *older,
                           const struct bw_generation_info *info)
{
    const struct bw_diff_side before = {.fs = older,
                                        .subvolume = bw_subvolume_by_id(older, BW_TOP_SUBVOLUME)},
                              after = {.fs = repair->fs,
                                       .subvolume =
                                           bw_subvolume_by_id(repair->fs, BW_TOP_SUBVOLUME)};
    const struct bw_diff_options how = {.struct_size = sizeof how,
                                        .nested = true,
                                        .states = true,
                                        .reading = BW_DIFF_READ_NEVER,
                                        .since = info->generation,
                                        .visit = ignore_difference};
    struct bw_diff_summary summary = {0};
    char date[BW_DATE_LENGTH + 1] = "an unknown time";
    if (info->date.tv_sec)
        *bw_write_date(date, bw_time_nanoseconds(&info->date), ' ') = '\0';
    date[sizeof "2026-11-21 07:57:58" - 1] = '\0';
    const uint64_t count = repair->fs->superblock.generation - info->generation;
    struct bw_error *error = NULL;
    if (!before.subvolume || !after.subvolume)
        error = bw_error_create(BW_ERROR_NOT_FOUND, "no top-level subvolume");
    if (!error)
        error = bw_diff(&before, &after, &how, &summary);
    const bool is_known = !error;
    const uint64_t changed = summary.modified + summary.renamed + summary.types;
    bw_error_free(error);
    if (!is_known || !(summary.added || changed || summary.deleted))
        return bw_repair_text("%" PRIu64 " transaction%s after %s%s", count, bw_plural(count), date,
                              is_known ? "; no readable file has changed since then" : "");
    return bw_repair_text("%" PRIu64 " transaction%s after %s: since then, at least %" PRIu64
                          " added, %" PRIu64 " changed and %" PRIu64 " deleted files",
                          count, bw_plural(count), date, summary.added, changed, summary.deleted);
}

/* Opens a generation, and tries it in all superblocks; `*is_good`: the check finds no error. Fails
 * only without memory. */
static struct bw_error *try_generation(struct bw_repair *repair, struct bw_history *history,
                                       size_t number, struct bw_repair_generation *generation,
                                       char **loss, bool *is_good)
{
    const struct bw_fs_options how = bw_repair_how(repair);
    struct bw_fs *older = NULL;
    *is_good = false;
    struct bw_error *error = bw_history_open_state(history, number, &how, &older);
    if (!error)
        error = bw_repair_read_generation(older, generation);
    if (!error && !repair->is_made && generation->devices.count != repair->current.devices.count)
        error = bw_error_create(BW_ERROR_UNSUPPORTED, "it has other devices");
    if (!error) {
        uint64_t left;
        const struct bw_repair_finding *failing;
        repair->trying = generation;
        error = bw_repair_try_once(repair, &left, &failing);
        repair->trying = NULL;
        *is_good = !error;
    }
    if (*is_good)
        *loss = describe_loss(repair, older, bw_history_entry(history, number));
    bw_fs_close(older);
    return bw_error_tolerate(error);
}

/* The plan. */

/* Whether an error remains that no change is proved to repair. */
static bool is_needed(const struct bw_repair *repair)
{
    if (repair->is_made)
        return true;
    /* a missing device would keep its newer superblock, and win once it is back */
    if (bw_fs_status(repair->fs).missing_devices)
        return false;
    for (size_t i = 0; i < repair->findings.count; i++) {
        const struct bw_repair_finding *finding = &repair->findings.items[i];
        const bool is_proved =
            finding->planned &&
            !(finding->block_edit &&
              repair->changes.items[finding->block_edit - 1].class_number == BW_REPAIR_RESEALED);
        if (!is_proved && !finding->repairable && finding->code->severity == BW_FINDING_ERROR)
            return true;
    }
    return false;
}

struct bw_error *bw_repair_plan_generations(struct bw_repair *repair)
{
    if (!is_needed(repair))
        return NULL;
    const struct bw_history_options how = {.struct_size = sizeof how,
                                           .scanning = BW_HISTORY_SCAN_SMALL,
                                           .threads = repair->options.threads};
    struct bw_history *history;
    BW_TRY(bw_history_open(repair->fs, &how, &history));
    struct bw_error *error = NULL;
    unsigned tried = 0, offered = 0;
    for (size_t i = 0; !error && i < bw_history_count(history); i++) {
        const struct bw_generation_info *info = bw_history_entry(history, i);
        const bool is_current = (info->sources & BW_GENERATION_OF_SUPERBLOCK) && !repair->is_made;
        if (is_current || info->status != BW_GENERATION_COMMITTED || !info->tree_root ||
            (info->assessed && (info->missing || !info->readable)))
            continue;
        if (tried++ == MOST_TRIED || offered == MOST_OFFERED)
            break;
        bool is_good = false;
        char *loss = NULL;
        struct bw_repair_generation *generation = calloc(1, sizeof *generation);
        error = generation ? try_generation(repair, history, i, generation, &loss, &is_good)
                           : bw_error_no_memory();
        offered += is_good;

        /* The newest one, if it was found without superblocks, completes these. */
        if (is_good && repair->is_made &&
            generation->root.generation == repair->fs->superblock.generation) {
            for (size_t k = 0; k < repair->devices.count; k++)
                bw_repair_roll_back(repair, generation, &repair->devices.items[k].best);
            repair->is_complete = true;
        } else if (is_good) {
            const uint64_t complete = generation->root.generation;
            error = bw_repair_add(
                repair, (struct bw_repair_change){
                            .class_number = BW_REPAIR_ROLLED_BACK,
                            .what = "an older generation in all superblocks",
                            .why = bw_repair_text("the current generation %" PRIu64
                                                  " is damaged; generation %" PRIu64 " is complete",
                                                  repair->fs->superblock.generation, complete),
                            .proof = strdup(repair->options.data
                                                ? "the check has read all its blocks and data, "
                                                  "without an error"
                                                : "the check has read all its blocks, but no data, "
                                                  "without an error"),
                            .loss = BW_TAKE(loss),
                            .generation = BW_TAKE(generation),
                        });
        }
        free(loss);
        if (generation)
            bw_repair_generation_free(generation);
        free(generation);
    }
    bw_history_close(history);
    return error;
}
