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

/* Sets the newest backup since a generation that can be read; takes the error of the present root,
 * and returns it if there is none. */
static struct bw_error *fall_back(struct bw_fs *fs, enum bw_super_root which, uint64_t since,
                                  struct bw_tree *tree, uint8_t *block, struct bw_error *why)
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
        BW_AUTO_ERROR struct bw_error *again = try_root(fs, tree, block);
        if (!again)
            break;
    }
    bw_fs_report(fs, BW_DAMAGE,
                 bw_error_prefix(why, "using the %s tree of generation %" PRIu64 " instead",
                                 which == BW_SUPER_CHUNK_ROOT ? "chunk" : "root",
                                 tree->root.generation));
    return NULL;
}

/* The tree of the present state, or what stands in for it. */
static struct bw_error *find_present(struct bw_fs *fs, enum bw_super_root which,
                                     struct bw_tree *tree, uint8_t *block)
{
    const bool chunks = which == BW_SUPER_CHUNK_ROOT;
    struct bw_error *(*find)(struct bw_fs * fs, struct bw_error * why) =
        chunks ? fs->hooks->find_chunks : fs->hooks->find_roots;
    tree->root = chunks ? fs->superblock.chunk_root : fs->superblock.root;
    struct bw_error *error = try_root(fs, tree, block);
    /* The superblock may be wrong about a root that is there. */
    if (error)
        error = fall_back(fs, which, tree->root.generation, tree, block, error);
    if (error && find)
        error = find(fs, error);
    return error ? fall_back(fs, which, 0, tree, block, error) : NULL;
}

struct bw_error *bw_find_super_root(struct bw_fs *fs, enum bw_super_root which,
                                    struct bw_tree *tree)
{
    *tree = (struct bw_tree){.id = which == BW_SUPER_CHUNK_ROOT ? BW_CHUNK_TREE : BW_ROOT_TREE};
    BW_TRY(bw_state_root(fs, which, &tree->root));
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(&fs->reader, 1);
    if (!block)
        return bw_error_no_memory();
    if (!tree->root.bytenr)
        return find_present(fs, which, tree, block);
    struct bw_error *error = try_root(fs, tree, block);
    if (!error || which != BW_SUPER_CHUNK_ROOT || fs->choice.chunk_root)
        return error;
    /* Chunks seldom move. What tree blocks and checksums cannot prove may be wrong, though. */
    bw_fs_report(fs, BW_DAMAGE,
                 bw_error_prefix(error,
                                 "using the present chunk tree with a state of generation "
                                 "%" PRIu64,
                                 tree->root.generation));
    return find_present(fs, which, tree, block);
}
