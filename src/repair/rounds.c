/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Planning again on the repaired file system: damage below a block that could not be read is seen
 * only once the block is back, and some values can be computed only once others are right.
 *
 * A round is a plan and its trial. After a good trial, its changes are settled: the next round
 * plans for the file system that the trial has opened, from the findings of its check. The changed
 * ranges of a round begin with the ranges of the rounds before it. Changes that a round has left
 * out are not planned again. The last round is the first one without new changes.
 */
#include <string.h>

#include "base/cleanup.h"
#include "repair/repair.h"

enum { MOST_ROUNDS = 20 }; /* more than a tree has levels */

/* Changed ranges. */

struct bw_error *bw_repair_make_patches(struct bw_repair *repair, struct bw_repair_patches *patches)
{
    const size_t count = repair->devices.count;
    patches->items = calloc(count + 1, sizeof *patches->items);
    patches->list = calloc(count + 1, sizeof *patches->list);
    if (!patches->items || !patches->list)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++) {
        patches->items[i].layer = repair->base.items
                                      ? repair->base.items[i].layer
                                      : bw_xlator_name(repair->devices.items[i].image->storage);
        patches->list[i] = &patches->items[i];
    }
    return NULL;
}

void bw_repair_patches_free(struct bw_repair_patches *patches, size_t count)
{
    for (size_t i = 0; patches->items && i < count; i++)
        bw_patch_free(&patches->items[i]);
    free(patches->items);
    free(patches->list);
    *patches = (struct bw_repair_patches){0};
}

struct bw_error *bw_repair_begin_patches(struct bw_repair *repair)
{
    for (size_t i = 0; i < repair->devices.count; i++) {
        uint8_t bytes[BW_PATCH_SECTOR];
        const struct bw_patch *base = repair->base.items ? &repair->base.items[i] : NULL;
        bw_patch_free(&repair->patches.items[i]);
        for (uint64_t at = 0; base && (at = bw_patch_next(base, at)) != UINT64_MAX;
             at += sizeof bytes) {
            bw_patch_apply(base, at, bytes, sizeof bytes);
            BW_TRY(bw_patch_write(&repair->patches.items[i], at, bytes, sizeof bytes));
        }
    }
    return NULL;
}

struct bw_fs_options bw_repair_how(const struct bw_repair *repair)
{
    struct bw_fs_options how = repair->how;
    how.planned = NULL; /* it has run for the images */
    how.reporter = (struct bw_reporter){0};
    if (repair->base.items) {
        how.patches = repair->base.list;
        how.patch_count = repair->devices.count;
        how.scan = false;
        how.superblock_copy = BW_ANY_SUPERBLOCK_COPY;
    }
    return how;
}

/* Rounds. */

bool bw_repair_reveals(const struct bw_repair *repair)
{
    for (size_t i = repair->first; i < repair->changes.count; i++)
        if (repair->changes.items[i].chosen && repair->changes.items[i].reveals &&
            repair->is_about_blocks)
            return true;
    return false;
}

/* The image of a device in the file system that was tried: the one with its changed ranges; NULL:
 * none. */
static struct bw_image *find_image(const struct bw_repair *repair, const char *layer)
{
    for (size_t i = 0; i < repair->tried->image_count; i++) {
        struct bw_image *image = &repair->tried->images[i];
        if (image->role == BW_IMAGE_DEVICE && image->storage &&
            bw_xlator_child_count(image->storage) &&
            strcmp(bw_xlator_name(bw_xlator_child(image->storage, 0)), layer) == 0)
            return image;
    }
    return NULL;
}

/* Settles the changes of the trial: the next round plans on its result. False if a device is not
 * found in it. */
static struct bw_error *settle(struct bw_repair *repair, bool *is_possible)
{
    struct bw_repair_patches next = {0};
    *is_possible = true;
    for (size_t i = 0; i < repair->devices.count && *is_possible; i++)
        *is_possible = find_image(repair, repair->patches.items[i].layer);
    if (!*is_possible)
        return NULL;
    struct bw_error *error = bw_repair_make_patches(repair, &next);
    if (error) {
        bw_repair_patches_free(&next, repair->devices.count);
        return error;
    }

    /* Faults that remain were left out; they are not planned again. */
    for (size_t i = 0; i < repair->after.count; i++) {
        struct bw_repair_finding *finding = &repair->after.items[i];
        const struct bw_repair_finding *same = bw_repair_find_same(repair, finding);
        if (!same || !same->planned)
            continue;
        finding->planned = true;
        finding->edit = same->edit;
        finding->block_edit = same->block_edit;
    }
    bw_repair_findings_free(&repair->findings);
    repair->findings = repair->after;
    repair->after = (struct bw_repair_findings){0};

    for (size_t i = 0; i < repair->devices.count; i++)
        repair->devices.items[i] =
            (struct bw_repair_device){.image = find_image(repair, repair->patches.items[i].layer)};
    if (repair->fs != repair->given)
        bw_fs_close(repair->fs);
    repair->fs = BW_TAKE(repair->tried);
    bw_repair_patches_free(&repair->base, repair->devices.count);
    repair->base = repair->patches;
    repair->patches = next;
    bw_repair_forget(repair);
    repair->is_complete = repair->is_about_blocks = false;
    return bw_repair_begin_patches(repair);
}

struct bw_error *bw_repair_plan_again(struct bw_repair *repair, bool *is_new)
{
    const size_t count = repair->changes.count;
    bool is_possible = repair->is_about_blocks; /* the rest was not planned yet */
    bool has_chosen = false;
    *is_new = false;
    for (size_t i = repair->first; i < count; i++)
        has_chosen |= repair->changes.items[i].chosen;
    if (has_chosen && repair->tried)
        BW_TRY(settle(repair, &is_possible));
    if (!is_possible || !repair->findings.count || ++repair->rounds > MOST_ROUNDS)
        return NULL;
    BW_TRY(bw_repair_plan_round(repair));
    *is_new = repair->changes.count > count;
    return NULL;
}
