/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Falling back, root by root, to older transactions: the superblock keeps the roots of the last
 * four. */
#include "fs/opening.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"

static struct bw_error *try_root(const struct bw_fs *fs, const struct bw_tree *tree, uint8_t *block)
{
    struct bw_block_pointer pointer = bw_tree_root_pointer(tree, false);
    return bw_block_read(&fs->reader, &pointer, block);
}

/* The newest backup that was not tried yet, and that is not newer than the superblock; NULL if
 * there is none. */
static const struct bw_root_pointer *next_backup(const struct bw_fs *fs, enum bw_super_root which,
                                                 bool *tried)
{
    const struct bw_root_pointer *best = NULL;
    size_t best_index = 0;
    for (size_t i = 0; i < BW_BACKUP_ROOTS; i++) {
        const struct bw_backup_root *backup = &fs->superblock.backup_roots[i];
        const struct bw_root_pointer *root =
            which == BW_SUPER_CHUNK_ROOT ? &backup->chunk_root : &backup->tree_root;
        if (tried[i] || !root->bytenr || root->level >= BW_MAX_LEVEL ||
            root->generation > fs->superblock.generation ||
            (best && root->generation <= best->generation))
            continue;
        best = root;
        best_index = i;
    }
    tried[best_index] = true;
    return best;
}

struct bw_error *bw_find_super_root(struct bw_fs *fs, enum bw_super_root which,
                                    struct bw_tree *tree)
{
    bool chunks = which == BW_SUPER_CHUNK_ROOT;
    *tree = (struct bw_tree){.id = chunks ? BW_CHUNK_TREE : BW_ROOT_TREE,
                             .root = chunks ? fs->superblock.chunk_root : fs->superblock.root};
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(&fs->reader, 1);
    if (!block)
        return bw_error_no_memory();
    bool tried[BW_BACKUP_ROOTS] = {false};
    struct bw_error *error = try_root(fs, tree, block);
    while (error) {
        const struct bw_root_pointer *backup = next_backup(fs, which, tried);
        if (!backup)
            return error;
        tree->root = *backup;
        BW_AUTO_ERROR struct bw_error *again = try_root(fs, tree, block);
        if (!again)
            break;
    }
    if (error)
        bw_fs_report(fs, BW_DAMAGE,
                     bw_error_prefix(error, "using the %s tree of generation %" PRIu64 " instead",
                                     chunks ? "chunk" : "root", tree->root.generation));
    return NULL;
}
