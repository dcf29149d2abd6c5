/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The roots of the generation that a caller has chosen. */
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

struct bw_error *bw_named_root(struct bw_fs *fs, uint64_t owner, uint64_t bytenr,
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

const struct bw_backup_root *bw_chosen_backup(const struct bw_fs *fs)
{
    const struct bw_state_choice *choice = &fs->choice;
    if (choice->backup)
        return &fs->superblock.backup_roots[choice->backup - 1];
    if (!choice->generation || choice->generation == fs->superblock.root.generation)
        return NULL;
    return backup_of(fs, choice->generation);
}

struct bw_error *bw_backup_root(const struct bw_root_pointer *given, struct bw_root_pointer *root)
{
    if (!given->bytenr || given->level >= BW_MAX_LEVEL)
        return bw_error_create(BW_ERROR_NOT_FOUND, "the backup root names no block");
    *root = *given;
    return NULL;
}
