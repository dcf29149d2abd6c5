/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tree blocks of which no copy matches its checksum, but one passes all other checks: its address,
 * file system, tree, level, generation and first key are those that its parent names, and none of
 * its items has a fault that a check would call an error. With a new checksum it can be read again.
 * Nothing proves its bytes: names, times or extents may be wrong, so the user must ask for it.
 *
 * A file system that is opened to ignore checksums reads the block, but it also accepts wrong
 * items; so the block is checked again. If two copies pass and differ, nothing is planned.
 *
 * A block with children hides them, so it belongs to a round that only brings back such blocks.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "ondisk/item_rules.h"
#include "ondisk/node.h"
#include "owners/tree_list.h"
#include "repair/repair.h"

struct sealing {
    struct bw_repair *repair;
    struct bw_fs *fs; /* ignores checksums */
    struct bw_tree_list trees;
    bool has_children;      /* leaves are not wanted */
    uint8_t *block, *other; /* owned */
};

static bool is_candidate(const struct bw_repair_finding *finding)
{
    return bw_repair_is(finding, "block-checksum") && !finding->planned && !finding->repairable &&
           finding->logical != BW_ABSENT && finding->tree != BW_ABSENT;
}

/* Reads the block; false if no copy passes all checks except the checksum, or two different ones
 * do.
 */
static struct bw_error *read_block(struct sealing *sealing, const struct bw_block_pointer *pointer,
                                   bool *is_good)
{
    struct bw_fs *fs = sealing->fs;
    const uint32_t size = fs->reader.nodesize;
    struct bw_mapping mapping = {.copies = 1};
    BW_AUTO_ERROR struct bw_error *error = bw_block_read(&fs->reader, pointer, sealing->block);
    if (!error)
        error = bw_node_check(sealing->block, size, pointer->bytenr, &pointer->expectation);
    *is_good = false;
    if (error)
        return error->code == BW_ERROR_NO_MEMORY ? BW_TAKE(error) : NULL;

    /* The reader accepts wrong items. */
    const struct bw_node node = bw_node_view(sealing->block, size);
    const struct bw_disk_header *header = (const void *)sealing->block;
    const struct bw_item_rules rules = {.sectorsize = fs->superblock.sectorsize,
                                        .nodesize = fs->superblock.nodesize,
                                        .checksum_size = bw_fs_checksum_size(fs),
                                        .generation = fs->superblock.generation,
                                        .leaf_generation = bw_get64(header->generation),
                                        .incompat = fs->superblock.incompat_flags,
                                        .owner = bw_get64(header->owner)};
    *is_good = node.level || bw_leaf_is_sound(&node, &rules);
    for (unsigned copy = 1; copy <= mapping.copies; copy++) {
        BW_TRY(bw_fs_map(fs, pointer->bytenr, size, copy, &mapping));
        if (mapping.rebuilt || !mapping.present)
            continue;
        BW_AUTO_ERROR struct bw_error *unread =
            bw_repair_read_copy(sealing->repair, pointer->bytenr, size, copy, sealing->other);
        if (unread || memcmp(sealing->block + BW_CSUM_SIZE, sealing->other + BW_CSUM_SIZE,
                             size - BW_CSUM_SIZE) == 0)
            continue;
        BW_AUTO_ERROR struct bw_error *bad =
            bw_node_check(sealing->other, size, pointer->bytenr, &pointer->expectation);
        *is_good = *is_good && bad;
    }
    return NULL;
}

static struct bw_error *plan_seal(struct sealing *sealing, struct bw_repair_finding *finding)
{
    const uint32_t size = sealing->fs->reader.nodesize;
    const struct bw_listed_tree *tree = bw_tree_list_find(&sealing->trees, finding->tree);
    struct bw_block_pointer pointer;
    bool found = false;
    if (tree)
        BW_TRY(bw_repair_find_pointer(&sealing->fs->reader, &tree->tree, finding->logical,
                                      &finding->key, &pointer, &found));
    if (found && (pointer.expectation.level || !sealing->has_children))
        BW_TRY(read_block(sealing, &pointer, &found));
    else
        found = false;
    if (!found)
        return NULL;
    const struct bw_node node = bw_node_view(sealing->block, size);
    BW_AUTO_FREE char *why =
        bw_repair_text("no copy matches its checksum, tree %" PRIu64, finding->tree);
    BW_AUTO_FREE char *loss = bw_repair_text(
        "nothing is lost, but each of the %" PRIu32 " items may have wrong bytes", node.item_count);
    return bw_repair_edit_block(
        sealing->repair, finding,
        (struct bw_repair_edit){.block = finding->logical,
                                .byte = BW_CSUM_SIZE,
                                .length = size - BW_CSUM_SIZE,
                                .bytes = sealing->block + BW_CSUM_SIZE,
                                .what = "checksum of a tree block",
                                .why = why,
                                .proof =
                                    "it passes all other checks, which do not prove its contents",
                                .loss = loss,
                                .is_unproved = true,
                                .is_made = true,
                                .reveals = node.level > 0});
}

struct bw_error *bw_repair_plan_seals(struct bw_repair *repair, bool has_children)
{
    struct sealing sealing = {.repair = repair, .has_children = has_children};
    struct bw_repair_findings *findings = &repair->findings;
    struct bw_fs_options how = bw_repair_how(repair);
    size_t first = 0;
    while (first < findings->count && !is_candidate(&findings->items[first]))
        first++;
    if (first == findings->count || repair->is_made)
        return NULL;
    how.ignore_checksums = BW_CHECKSUMS_METADATA;
    struct bw_error *error = repair->given->reopen(&how, &sealing.fs);
    if (!error)
        error = bw_tree_list_load(sealing.fs, &sealing.trees);
    BW_AUTO_FREE uint8_t *block = malloc(repair->fs->superblock.nodesize);
    BW_AUTO_FREE uint8_t *other = malloc(repair->fs->superblock.nodesize);
    sealing.block = block;
    sealing.other = other;
    if (!error && !(block && other))
        error = bw_error_no_memory();
    for (size_t i = first; !error && i < findings->count; i++)
        if (is_candidate(&findings->items[i]))
            error = plan_seal(&sealing, &findings->items[i]);
    bw_listed_trees_free(&sealing.trees.entries);
    bw_fs_close(sealing.fs);
    return error;
}
