/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The backup roots of the superblock, with which a mount can try older transactions: each must have
 * the generation and level of the block at its address, as long as no later transaction has written
 * another block there.
 *
 * The kernel fills them in while the next transaction may have begun already, whose roots are then
 * among them (backup_super_roots() in fs/btrfs/disk-io.c): those may never have been written.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "check/superblocks.h"
#include "fs/image.h"
#include "graph/wind.h"
#include "xlators/classes.h"

#define ROOTS 6 /* of each backup */

/* What is at the address of a root. */
struct found {
    bool exists;
    uint64_t generation;
    uint8_t level;
};

/* The roots read so far. Several backups have the same root if transactions did not change it. */
struct reading {
    struct bw_check *check;
    uint8_t *block;
    size_t count;
    struct {
        uint64_t tree, bytenr;
        struct found found;
    } roots[ROOTS * BW_BACKUP_ROOTS];
};

/* One root of a backup. */
struct backup {
    struct bw_check *check;
    unsigned number;  /* of the backup, from 0 on */
    uint64_t made_in; /* the backup was made in this transaction or a later one */
    uint64_t tree;
    struct bw_root_pointer root;
};

static void report(const struct backup *backup, const char *what, uint64_t has, uint64_t is)
{
    const struct bw_subject subject = {
        .finding = {.known = BW_KNOWN_TREE | BW_KNOWN_LOGICAL | BW_KNOWN_LENGTH,
                    .tree = backup->tree,
                    .logical = backup->root.bytenr,
                    .length = backup->check->fs->superblock.nodesize}};
    bw_check_find(backup->check, BW_CODE_backup_root, &subject,
                  "%s %" PRIu64 " in backup root %u, the root has %" PRIu64, what, has,
                  backup->number, is);
}

/* Reads one copy of a block of the tree. One that missed a write is older than another copy. */
static void read_copy(const struct backup *backup, unsigned copy, uint8_t *block,
                      struct found *found)
{
    const struct bw_fs *fs = backup->check->fs;
    const struct bw_block_pointer pointer = {.bytenr = backup->root.bytenr};
    const struct bw_disk_header *header = (const void *)block;
    struct bw_request request = bw_block_request(&fs->reader, &pointer, block);
    struct bw_frame frame = bw_frame_above(NULL, bw_xlator_probes(fs->reader.top));
    frame.metadata = true;
    request.kind = BW_REQUEST_RAW;
    request.copy = (uint8_t)copy;
    bw_wind(&frame, fs->reader.top, &request, 1);
    BW_AUTO_ERROR struct bw_error *error = request.error;
    if (error ||
        !bw_checksum_matches_block(fs->superblock.checksum_type, block, fs->reader.nodesize) ||
        memcmp(header->fsid, fs->superblock.metadata_uuid, BW_UUID_SIZE) != 0 ||
        bw_get64(header->bytenr) != backup->root.bytenr ||
        bw_get64(header->owner) != backup->tree ||
        (found->exists && found->generation >= bw_get64(header->generation)))
        return;
    *found = (struct found){true, bw_get64(header->generation), header->level};
}

/* Whether the address is that of the present root. Neither the transaction before nor the next one
 * can have another root there. */
static bool is_in_use(const struct backup *backup)
{
    const struct bw_superblock *superblock = &backup->check->fs->superblock;
    const struct bw_listed_tree *tree = bw_tree_list_find(&backup->check->trees, backup->tree);
    return backup->root.bytenr == superblock->root.bytenr ||
           backup->root.bytenr == superblock->chunk_root.bytenr ||
           (tree && backup->root.bytenr == tree->tree.root.bytenr);
}

/* Whether a root has another generation than the block, and that cannot be because the block was
 * written later, or by a transaction that never ended. */
static bool has_wrong_generation(const struct backup *backup, const struct found *found)
{
    const uint64_t next = backup->check->fs->superblock.generation + 1;
    if (found->generation > backup->root.generation)
        return found->generation <= backup->made_in ||
               (is_in_use(backup) && backup->made_in + 2 >= next);
    return found->generation < backup->root.generation &&
           (backup->root.generation != next || is_in_use(backup));
}

static struct found read_root(const struct backup *backup, struct reading *reading)
{
    const struct bw_checked_chunk *chunk = bw_check_chunk(backup->check, backup->root.bytenr);
    for (size_t i = 0; i < reading->count; i++)
        if (reading->roots[i].tree == backup->tree &&
            reading->roots[i].bytenr == backup->root.bytenr)
            return reading->roots[i].found;
    struct found found = {0};
    for (unsigned copy = 1; chunk && copy <= chunk->copies; copy++)
        read_copy(backup, copy, reading->block, &found);
    reading->roots[reading->count].tree = backup->tree;
    reading->roots[reading->count].bytenr = backup->root.bytenr;
    reading->roots[reading->count++].found = found;
    return found;
}

static void check_root(const struct backup *backup, struct reading *reading)
{
    const struct found found = read_root(backup, reading);
    if (!found.exists)
        return;
    if (has_wrong_generation(backup, &found))
        report(backup, "generation", backup->root.generation, found.generation);
    else if (found.generation == backup->root.generation && found.level != backup->root.level)
        report(backup, "level", backup->root.level, found.level);
}

/* The earliest transaction that can have made a backup. Its root tree is that of this transaction
 * or of the next. If the root tree and the extent tree, which each transaction writes anew, are the
 * present ones, it is the present transaction, whatever the generation says. */
static uint64_t find_transaction(const struct bw_check *check, const struct bw_backup_root *backup)
{
    const struct bw_superblock *superblock = &check->fs->superblock;
    const struct bw_listed_tree *extents = bw_tree_list_find(&check->trees, BW_EXTENT_TREE);
    if (extents && backup->tree_root.bytenr == superblock->root.bytenr &&
        backup->extent_root.bytenr == extents->tree.root.bytenr &&
        backup->extent_root.generation == extents->tree.root.generation)
        return superblock->generation;
    return backup->tree_root.generation ? backup->tree_root.generation - 1 : 0;
}

static void check_backup(struct reading *reading, unsigned number)
{
    struct bw_check *check = reading->check;
    const struct bw_backup_root *backup = &check->fs->superblock.backup_roots[number];
    const struct {
        uint64_t tree;
        const struct bw_root_pointer *root;
    } members[ROOTS] = {
        {BW_ROOT_TREE, &backup->tree_root},     {BW_CHUNK_TREE, &backup->chunk_root},
        {BW_EXTENT_TREE, &backup->extent_root}, {BW_TOP_SUBVOLUME, &backup->fs_root},
        {BW_DEVICE_TREE, &backup->device_root}, {BW_CSUM_TREE, &backup->csum_root},
    };
    for (size_t i = 0; i < ROOTS; i++) {
        const struct backup root = {.check = check,
                                    .number = number,
                                    .made_in = find_transaction(check, backup),
                                    .tree = members[i].tree,
                                    .root = *members[i].root};
        if (root.root.bytenr)
            check_root(&root, reading);
    }
}

struct bw_error *bw_check_backup_roots(struct bw_check *check)
{
    const struct bw_fs *fs = check->fs;
    /* btrfs-image writes a chunk tree of its own, and none of its tools makes the backups fit. */
    if (fs->is_past || fs->is_dump || fs->root_tree.root.bytenr != fs->superblock.root.bytenr ||
        fs->superblock.flags & (BW_SUPER_FLAG_METADUMP | BW_SUPER_FLAG_METADUMP_V2))
        return NULL;
    BW_AUTO_FREE uint8_t *block = bw_block_buffer(&fs->reader, 1);
    if (!block)
        return bw_error_no_memory();
    struct reading reading = {.check = check, .block = block};
    for (unsigned i = 0; i < BW_BACKUP_ROOTS; i++)
        check_backup(&reading, i);
    return NULL;
}
