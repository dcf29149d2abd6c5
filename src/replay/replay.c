/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replaying the log: runs the passes over the log trees of all subvolumes (replay.h). All logs are
 * read before the first pass, and each subvolume and the checksum tree get an editor, whose changes
 * stay in memory. Only when all passes have succeeded do the changed trees take the place of those
 * that the file system has; a rehearsal leaves that out. A log that is damaged loses only what
 * cannot be read of it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "btrfs-walk/history.h"
#include "fs/fs.h"
#include "replay/replay.h"

enum pass { PASS_INODES, PASS_ENTRIES, PASS_ALL, PASSES };

static struct bw_error *run_pass(struct bw_replay *replay, enum pass pass)
{
    uint64_t inode = 0;
    bool is_nameless = false; /* never linked, or removed: none of its items are replayed */
    for (size_t i = 0; i < replay->log.items.count; i++) {
        const struct bw_item *item = &replay->log.items.items[i];
        const struct bw_disk_inode_item *disk = (const void *)item->data;
        if (item->key.objectid != inode)
            is_nameless = item->key.type == BW_INODE_ITEM && item->size >= sizeof *disk &&
                          bw_get32(disk->link_count) == 0;
        inode = item->key.objectid;
        if (is_nameless)
            continue;

        const uint8_t type = item->key.type;
        struct bw_error *error = NULL;
        if (pass == PASS_INODES && type == BW_INODE_ITEM)
            error = bw_replay_inode_item(replay, item);
        else if (pass == PASS_ENTRIES && type == BW_DIR_INDEX)
            error = bw_replay_dir_index(replay, item);
        else if (pass == PASS_ALL && type == BW_XATTR_ITEM)
            error = bw_edit_put(&replay->tree, &item->key, item->data, item->size);
        else if (pass == PASS_ALL && (type == BW_INODE_REF || type == BW_INODE_EXTREF))
            error = bw_replay_refs(replay, item);
        else if (pass == PASS_ALL && type == BW_EXTENT_DATA)
            error = bw_replay_extent(replay, item);
        BW_TRY(bw_replay_report(replay, &item->key, error));
    }
    if (pass == PASS_ALL)
        return bw_replay_link_counts(replay);
    return NULL;
}

static int by_number(const void *a, const void *b)
{
    const struct bw_log_inode *left = a, *right = b;
    const int order = bw_compare(left->subvolume, right->subvolume);
    return order ? order : bw_compare(left->inode, right->inode);
}

/* Without a rehearsal (NULL), the result is published. */
static struct bw_error *replay_logs(struct bw_fs *fs, const struct bw_rehearsal *rehearsal)
{
    const struct bw_root_pointer pointer = {fs->superblock.log_root, fs->superblock.generation + 1,
                                            fs->superblock.log_root_level};
    struct bw_log roots = {0};
    struct bw_tree_editor checksums = {0};
    struct bw_error *error = NULL;
    size_t count = 0;
    fs->memory.nodesize = fs->reader.nodesize;
    fs->reader.memory = &fs->memory;
    if (pointer.level < BW_MAX_LEVEL)
        error = bw_log_load(fs, &pointer, "log root tree", &roots);
    else
        bw_fs_report_text(fs, BW_DAMAGE, BW_ERROR_CORRUPT, "log root tree: impossible level %u",
                          pointer.level);
    BW_AUTO_FREE struct bw_replay *replays = calloc(roots.items.count + 1, sizeof *replays);
    if (!error && !replays)
        error = bw_error_no_memory();
    const bool has_checksums = !error && fs->checksum_trees.count;
    if (has_checksums)
        error = bw_editor_create(&checksums, &fs->reader, &fs->memory, &fs->checksum_trees.items[0],
                                 fs->superblock.generation + 1);

    /* The logs that the log root tree lists, each with an editor of its subvolume. */
    for (size_t i = 0; !error && i < roots.items.count; i++) {
        const struct bw_item *item = &roots.items.items[i];
        const uint64_t id = item->key.offset;
        const struct bw_subvolume *subvolume = bw_subvolume_by_id(fs, id);
        if (item->key.type != BW_ROOT_ITEM || !subvolume)
            continue; /* a log of a deleted subvolume */
        char name[64];
        snprintf(name, sizeof name, "log tree of subvolume %" PRIu64, id);
        struct bw_root_item root;
        struct bw_error *bad = bw_root_item_decode(item, &root);
        if (bad) {
            bw_fs_report(fs, BW_DAMAGE, bw_error_prefix(bad, "%s", name));
            continue;
        }
        struct bw_replay *replay = &replays[count++];
        *replay = (struct bw_replay){.fs = fs,
                                     .rehearsal = rehearsal,
                                     .subvolume = id,
                                     .checksums = has_checksums ? &checksums : NULL};
        error = bw_editor_create(&replay->tree, &fs->reader, &fs->memory, &subvolume->tree,
                                 fs->superblock.generation + 1);
        if (!error)
            error = bw_log_load(fs, &root.root, name, &replay->log);
    }
    bw_log_free(&roots);
    for (enum pass pass = 0; pass < PASSES; pass++)
        for (size_t i = 0; !error && i < count; i++)
            error = run_pass(&replays[i], pass);

    /* Make the changed trees the trees of the file system. */
    for (size_t i = 0; !error && !rehearsal && i < fs->subvolumes.count; i++)
        for (size_t j = 0; j < count; j++)
            if (fs->subvolumes.items[i].tree.id == replays[j].subvolume)
                fs->subvolumes.items[i].tree = replays[j].tree.tree;
    if (!error && !rehearsal && has_checksums)
        fs->checksum_trees.items[0] = checksums.tree;
    if (!error && !rehearsal && fs->logged.count)
        bw_log_inodes_sort(&fs->logged, by_number);

    for (size_t i = 0; i < count; i++) {
        struct bw_replay *replay = &replays[i];
        bw_log_free(&replay->log);
        bw_editor_destroy(&replay->tree);
        bw_numbers_free(&replay->recount);
        bw_key_map_free(&replay->awaiting);
        bw_buffer_free(&replay->scratch);
    }
    bw_editor_destroy(&checksums);
    return error;
}

struct bw_error *bw_replay(struct bw_fs *fs)
{
    if (!fs->superblock.log_root || fs->is_past)
        return NULL;
    const char *outcome = "it is replayed";
    enum bw_severity severity = BW_NOTE;
    fs->status.log_tree = true;
    fs->status.log_replayed = false;
    if (fs->ignores_log) {
        outcome = "it is ignored, the last transaction is shown";
    } else if (fs->root_tree.root.bytenr != fs->superblock.root.bytenr && !fs->is_remade) {
        outcome = "it is not replayed, since it continues a transaction that is lost";
        severity = BW_DAMAGE;
    } else {
        fs->status.log_replayed = true;
    }
    bw_fs_report_text(fs, severity, BW_ERROR_UNSUPPORTED,
                      "the log tree has data fsynced after generation %" PRIu64 ": %s",
                      fs->superblock.generation, outcome);
    return fs->status.log_replayed ? replay_logs(fs, NULL) : NULL;
}

struct bw_error *bw_replay_rehearse(struct bw_fs *fs, const struct bw_rehearsal *rehearsal)
{
    return replay_logs(fs, rehearsal);
}

/* The inodes that the replay has changed. */

const struct bw_log_inode *bw_log_inode_next(const struct bw_fs *fs,
                                             const struct bw_log_inode *before)
{
    const size_t next = before ? (size_t)(before - fs->logged.items) + 1 : 0;
    return next < fs->logged.count ? &fs->logged.items[next] : NULL;
}

struct bw_error *bw_log_inodes(const struct bw_fs *fs, bw_log_inode_visitor *visit, void *context)
{
    for (const struct bw_log_inode *inode = NULL; (inode = bw_log_inode_next(fs, inode));)
        BW_TRY(visit(context, inode));
    return NULL;
}
