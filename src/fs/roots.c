/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Falling back, root by root, to older transactions: the superblock keeps the roots of the last
 * four. */
#include "fs/opening.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"

struct bw_error *bw_root_try(const struct bw_fs *fs, const struct bw_tree *tree)
{
    struct bw_block_pointer pointer = bw_tree_root_pointer(tree, false);
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(&fs->reader, 1);
    return block ? bw_block_read(&fs->reader, &pointer, block) : bw_error_no_memory();
}

/* The newest backup that was not tried yet, and that is neither older than `since` nor newer than
 * the superblock; NULL if there is none. */
static const struct bw_root_pointer *next_backup(const struct bw_fs *fs, enum bw_super_root which,
                                                 uint64_t since, bool *tried)
{
    const struct bw_root_pointer *best = NULL;
    size_t best_index = 0;
    for (size_t i = 0; i < BW_BACKUP_ROOTS; i++) {
        const struct bw_backup_root *backup = &fs->superblock.backup_roots[i];
        const struct bw_root_pointer *root =
            which == BW_SUPER_CHUNK_ROOT ? &backup->chunk_root : &backup->tree_root;
        if (tried[i] || !root->bytenr || root->level >= BW_MAX_LEVEL ||
            root->generation > fs->superblock.generation || root->generation < since ||
            (best && root->generation <= best->generation))
            continue;
        best = root;
        best_index = i;
    }
    tried[best_index] = true;
    return best;
}

struct bw_error *bw_root_fall_back(struct bw_fs *fs, enum bw_super_root which, uint64_t since,
                                   struct bw_tree *tree, struct bw_error *why)
{
    const struct bw_root_pointer present = tree->root;
    bool tried[BW_BACKUP_ROOTS] = {false};
    for (;;) {
        const struct bw_root_pointer *backup = next_backup(fs, which, since, tried);
        if (!backup) {
            tree->root = present;
            return why;
        }
        tree->root = *backup;
        BW_AUTO_ERROR struct bw_error *again = bw_root_try(fs, tree);
        if (!again)
            break;
    }
    bw_fs_report(fs, BW_DAMAGE,
                 bw_error_prefix(why, "using the %s tree of generation %" PRIu64 " instead",
                                 which == BW_SUPER_CHUNK_ROOT ? "chunk" : "root",
                                 tree->root.generation));
    return NULL;
}
