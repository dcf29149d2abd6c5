/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The roots of the state that a caller has chosen. roots.c finds those of the present one. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "btrfs-walk/tree.h"
#include "fs/opening.h"

_Static_assert((int)BW_STATE_BACKUPS == (int)BW_BACKUP_ROOTS, "all backup roots can be chosen");

struct bw_error *bw_state_choice_check(const struct bw_state_choice *choice)
{
    if (!!choice->generation + !!choice->tree_root + !!choice->backup > 1)
        return bw_error_create(BW_ERROR_USAGE, "more than one state of the file system is chosen");
    if (choice->backup > BW_STATE_BACKUPS)
        return bw_error_create(BW_ERROR_USAGE, "there are %d backup roots", BW_STATE_BACKUPS);
    return NULL;
}

/* The root that the caller has named by its address. */
static struct bw_error *named_root(struct bw_fs *fs, uint64_t owner, uint64_t bytenr,
                                   uint64_t generation, struct bw_root_pointer *root)
{
    struct bw_tree_block *block;
    BW_TRY(bw_tree_block_read(fs, bytenr, &block));
    const struct bw_tree_block_header header = bw_tree_block_header(block);
    bw_tree_block_free(block);
    if (header.owner != owner)
        return bw_error_create(BW_ERROR_NOT_FOUND,
                               "the block at %" PRIu64 " belongs to tree %" PRIu64
                               ", not to tree %" PRIu64,
                               bytenr, header.owner, owner);
    if (generation && header.generation != generation)
        return bw_error_create(BW_ERROR_NOT_FOUND,
                               "the block at %" PRIu64 " has generation %" PRIu64, bytenr,
                               header.generation);
    *root = (struct bw_root_pointer){bytenr, header.generation, header.level};
    return NULL;
}

/* The backup with the root tree of a generation; NULL if the superblock has none. */
static const struct bw_backup_root *backup_of(const struct bw_fs *fs, uint64_t generation)
{
    for (size_t i = 0; i < BW_BACKUP_ROOTS; i++) {
        const struct bw_backup_root *backup = &fs->superblock.backup_roots[i];
        if (backup->tree_root.bytenr && backup->tree_root.generation == generation)
            return backup;
    }
    return NULL;
}

/* The backup that the choice leads to; NULL if it leads elsewhere. */
static const struct bw_backup_root *chosen_backup(const struct bw_fs *fs)
{
    const struct bw_state_choice *choice = &fs->choice;
    if (choice->backup)
        return &fs->superblock.backup_roots[choice->backup - 1];
    if (!choice->generation || choice->generation == fs->superblock.root.generation)
        return NULL;
    return backup_of(fs, choice->generation);
}

static struct bw_error *backup_root(const struct bw_root_pointer *given,
                                    struct bw_root_pointer *root)
{
    if (!given->bytenr || given->level >= BW_MAX_LEVEL)
        return bw_error_create(BW_ERROR_NOT_FOUND, "the backup root names no block");
    *root = *given;
    return NULL;
}

static struct bw_error *find_generation(struct bw_fs *fs)
{
    if (fs->hooks->find_generation)
        return fs->hooks->find_generation(fs);
    return bw_error_create(BW_ERROR_NOT_FOUND,
                           "the superblock names no state of generation %" PRIu64,
                           fs->choice.generation);
}

static struct bw_error *tree_root(struct bw_fs *fs, struct bw_root_pointer *root)
{
    const struct bw_state_choice *choice = &fs->choice;
    const struct bw_backup_root *backup = chosen_backup(fs);
    if (backup)
        return backup_root(&backup->tree_root, root);
    if (choice->generation && choice->generation != fs->superblock.root.generation) {
        BW_TRY(find_generation(fs));
        if (choice->chunk_root)
            BW_TRY(bw_bootstrap_state(fs));
    }
    if (!choice->tree_root)
        return NULL;
    BW_TRY(named_root(fs, BW_ROOT_TREE, choice->tree_root, choice->tree_root_generation, root));
    if (choice->chunk_root || !fs->hooks->find_chunk_root)
        return NULL;
    BW_TRY(fs->hooks->find_chunk_root(fs, root));
    return choice->chunk_root ? bw_bootstrap_state(fs) : NULL;
}

static struct bw_error *chunk_root(struct bw_fs *fs, struct bw_root_pointer *root)
{
    const struct bw_backup_root *backup = chosen_backup(fs);
    if (fs->choice.chunk_root)
        return named_root(fs, BW_CHUNK_TREE, fs->choice.chunk_root, 0, root);
    return backup ? backup_root(&backup->chunk_root, root) : NULL;
}

struct bw_error *bw_state_root(struct bw_fs *fs, enum bw_super_root which,
                               struct bw_root_pointer *root)
{
    *root = (struct bw_root_pointer){0};
    if (which == BW_SUPER_CHUNK_ROOT)
        return chunk_root(fs, root);
    BW_TRY(tree_root(fs, root));
    fs->is_past = root->bytenr && root->bytenr != fs->superblock.root.bytenr;
    return NULL;
}
