/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Root blocks of the chunk tree and the root tree, for a selected generation or, if a root is lost,
 * from older transactions.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "btrfs-walk/tree.h"
#include "fs/opening.h"
#include "ondisk/tree_title.h"

struct bw_error *bw_generation_choice_check(const struct bw_generation_choice *choice)
{
    if (choice->generation && choice->tree_root)
        return bw_error_create(BW_ERROR_USAGE, "more than one generation is selected");
    return NULL;
}

struct bw_error *bw_named_root(struct bw_fs *fs, uint64_t owner, uint64_t bytenr,
                               uint64_t generation, struct bw_root_pointer *root)
{
    struct bw_tree_block *block;
    BW_TRY(bw_tree_block_read(fs, bytenr, &block));
    const struct bw_tree_block_header header = bw_tree_block_header(block);
    bw_tree_block_free(block);
    if (header.owner != owner)
        return bw_error_create(BW_ERROR_NOT_FOUND,
                               "tree block %" PRIu64 " belongs to %s, not to %s", bytenr,
                               bw_tree_title(header.owner).text, bw_tree_title(owner).text);
    if (generation && header.generation != generation)
        return bw_error_create(BW_ERROR_NOT_FOUND, "tree block %" PRIu64 " has generation %" PRIu64,
                               bytenr, header.generation);
    *root = (struct bw_root_pointer){bytenr, header.generation, header.level};
    return NULL;
}

const struct bw_backup_root *bw_chosen_backup(const struct bw_fs *fs)
{
    const struct bw_generation_choice *choice = &fs->choice;
    if (!choice->generation || choice->generation == fs->superblock.root.generation)
        return NULL;
    for (size_t i = 0; i < BW_BACKUP_ROOTS; i++) {
        const struct bw_backup_root *backup = &fs->superblock.backup_roots[i];
        if (backup->tree_root.bytenr && backup->tree_root.generation == choice->generation)
            return backup;
    }
    return NULL;
}

struct bw_error *bw_backup_root(const struct bw_root_pointer *given, struct bw_root_pointer *root)
{
    if (!given->bytenr || given->level >= BW_MAX_LEVEL)
        return bw_error_create(BW_ERROR_NOT_FOUND, "the backup root has no address");
    *root = *given;
    return NULL;
}

/* Falling back to older transactions, separately for each root: the superblock contains the roots
 * of the last four. */

struct bw_error *bw_root_verify(const struct bw_fs *fs, const struct bw_tree *tree)
{
    const struct bw_tree_reader reader = bw_fs_name_reader(fs);
    struct bw_block_pointer pointer = bw_tree_root_pointer(tree, false);
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(&reader, 1);
    return block ? bw_block_read(&reader, &pointer, block) : bw_error_no_memory();
}

struct bw_error *bw_root_fall_back(struct bw_fs *fs, enum bw_super_root which, uint64_t since,
                                   struct bw_tree *tree, struct bw_error *why)
{
    const struct bw_root_pointer present = tree->root;
    bool tried[BW_BACKUP_ROOTS] = {false};
    if (why->code == BW_ERROR_NO_MEMORY)
        return why; /* the root is not lost */
    for (;;) {
        /* The newest backup that was not tried yet and is neither older than `since` nor newer than
         * the superblock. */
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
        if (!best) {
            tree->root = present;
            return why;
        }
        tried[best_index] = true;
        tree->root = *best;
        BW_AUTO_ERROR struct bw_error *again = bw_root_verify(fs, tree);
        if (!again)
            break;
        if (again->code == BW_ERROR_NO_MEMORY) {
            bw_error_free(why);
            return BW_TAKE(again);
        }
    }
    bw_fs_report(fs, BW_DAMAGE,
                 bw_error_prefix(why, "using the %s tree of generation %" PRIu64 " instead",
                                 which == BW_SUPER_CHUNK_ROOT ? "chunk" : "root",
                                 tree->root.generation));
    return NULL;
}
