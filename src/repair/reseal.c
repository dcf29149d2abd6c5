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
#include "check/flipped.h"
#include "ondisk/node.h"
#include "owners/tree_list.h"
#include "repair/repair.h"

static bool is_candidate(const struct bw_repair_finding *finding)
{
    return bw_repair_is(finding, "block-checksum") && !finding->planned && !finding->repairable &&
           finding->logical != BW_ABSENT && finding->tree != BW_ABSENT;
}

bool bw_repair_is_sound(const struct bw_fs *fs, const struct bw_block_pointer *pointer,
                        const uint8_t *block)
{
    BW_AUTO_ERROR struct bw_error *wrong =
        bw_node_check(block, fs->reader.nodesize, pointer->bytenr, &pointer->expectation);
    if (wrong)
        return false;
    const struct bw_node node = bw_node_view(block, fs->reader.nodesize);
    const struct bw_disk_header *header = (const void *)block;
    const struct bw_item_rules rules =
        bw_item_rules_of(fs, bw_get64(header->owner), bw_get64(header->generation), false);
    return node.level || bw_leaf_is_sound(&node, &rules);
}

/* Reads the block, through a file system that ignores checksums; false if no copy passes all checks
 * except the checksum, or two different ones do.
 */
static struct bw_error *read_block(struct bw_repair *repair, struct bw_fs *fs,
                                   const struct bw_block_pointer *pointer, uint8_t *block,
                                   bool *is_good)
{
    const uint32_t size = fs->reader.nodesize;
    struct bw_mapping mapping = {.copies = 1};
    BW_AUTO_FREE uint8_t *other = malloc(size);
    *is_good = false;
    if (!other)
        return bw_error_no_memory();
    BW_AUTO_ERROR struct bw_error *error = bw_block_read(&fs->reader, pointer, block);
    if (error)
        return bw_error_tolerate(BW_TAKE(error));
    *is_good = bw_repair_is_sound(fs, pointer, block);
    for (unsigned copy = 1; copy <= mapping.copies; copy++) {
        BW_TRY(bw_fs_map(fs, pointer->bytenr, size, copy, &mapping));
        if (mapping.rebuilt || !mapping.present)
            continue;
        BW_AUTO_ERROR struct bw_error *unread =
            bw_repair_read_copy(repair, pointer->bytenr, size, copy, other);
        if (unread || memcmp(block + BW_CSUM_SIZE, other + BW_CSUM_SIZE, size - BW_CSUM_SIZE) == 0)
            continue;
        BW_AUTO_ERROR struct bw_error *bad =
            bw_node_check(other, size, pointer->bytenr, &pointer->expectation);
        *is_good = *is_good && bad;
    }
    return NULL;
}

struct bw_error *bw_repair_plan_seals(struct bw_repair *repair, bool has_children)
{
    const uint32_t size = repair->fs->superblock.nodesize;
    struct bw_repair_findings *findings = &repair->findings;
    struct bw_fs_options how = bw_repair_how(repair);
    struct bw_fs *fs;
    size_t first = 0;
    while (first < findings->count && !is_candidate(&findings->items[first]))
        first++;
    if (first == findings->count || repair->is_made)
        return NULL;
    BW_AUTO_FREE uint8_t *block = malloc(size);
    if (!block)
        return bw_error_no_memory();
    how.ignore_checksums = BW_CHECKSUMS_METADATA;
    BW_TRY(repair->given->reopen(&how, &fs));
    BW_SCOPED(bw_tree_list) struct bw_tree_list trees = {0};
    struct bw_error *error = bw_tree_list_load(fs, &trees);
    for (size_t i = first; !error && i < findings->count; i++) {
        struct bw_repair_finding *finding = &findings->items[i];
        const struct bw_listed_tree *tree = bw_tree_list_find(&trees, finding->tree);
        struct bw_block_pointer pointer;
        bool found = false;
        if (tree && is_candidate(finding))
            error = bw_repair_find_pointer(&fs->reader, &tree->tree, finding->logical,
                                           &finding->key, &pointer, &found);
        found = found && (pointer.expectation.level || !has_children);
        if (found)
            error = read_block(repair, fs, &pointer, block, &found);
        if (error || !found)
            continue;
        const struct bw_node node = bw_node_view(block, size);
        BW_AUTO_FREE char *why =
            bw_repair_text("no copy matches its checksum, tree %" PRIu64, finding->tree);
        BW_AUTO_FREE char *loss = bw_repair_text("nothing is lost, but each of the %" PRIu32
                                                 " items may have wrong bytes",
                                                 node.item_count);
        error = bw_repair_edit_contents(
            repair, finding, finding->logical, block,
            (struct bw_repair_edit){
                .what = "checksum of a tree block",
                .why = why,
                .proof = "it passes all other checks, which do not prove its contents",
                .loss = loss,
                .is_unproved = true,
                .is_made = true,
                .reveals = node.level > 0});
    }
    bw_fs_close(fs);
    return error;
}
