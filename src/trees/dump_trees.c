/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trees of a file system in the order of btrfs-progs: those that the superblock points to, then
 * those of the root tree, then those of the log. */
#include "trees/dump.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/decimal.h"
#include "btrfs-walk/tree.h"
#include "ondisk/disk_items.h"
#include "ondisk/structure.h"
#include "owners/tree_list.h"

struct iteration {
    struct bw_fs *fs;
    const uint64_t *id; /* the only one wanted; NULL: all */
    bool replayed;      /* with the changes of the log */
    bw_dump_tree_taker *take;
    void *context;
};

static const char *name_of(uint64_t id)
{
    static const struct bw_value_name names[] = {
        {BW_ROOT_TREE, "root", false},
        {BW_EXTENT_TREE, "extent", false},
        {BW_CHUNK_TREE, "chunk", false},
        {BW_DEVICE_TREE, "device", false},
        {BW_TOP_SUBVOLUME, "fs", false},
        {BW_ROOT_TREE_DIR, "directory", false},
        {BW_CSUM_TREE, "checksum", false},
        {BW_QUOTA_TREE, "quota", false},
        {BW_UUID_TREE, "uuid", false},
        {BW_FREE_SPACE_TREE, "free space", false},
        {BW_BLOCK_GROUP_TREE, "block group", false},
        {BW_RAID_STRIPE_TREE, "raid stripe", false},
        {BW_REMAP_TREE, "remap", false},
        {BW_ORPHAN, "orphan", false},
        {BW_TREE_LOG, "log", false},
        {BW_TREE_LOG_FIXUP, "log fixup", false},
        {BW_TREE_RELOC, "reloc", false},
        {BW_DATA_RELOC_TREE, "data reloc", false},
        {BW_EXTENT_CSUM_OBJECT, "extent checksum", false},
        {BW_MULTIPLE_OBJECTS, "multiple", false},
        {0, NULL, false},
    };
    for (const struct bw_value_name *name = names; name->name; name++)
        if (name->value == id)
            return name->name;
    return "file";
}

static bool wants(const struct iteration *iteration, uint64_t id)
{
    return !iteration->id || *iteration->id == id;
}

static struct bw_error *take_super(const struct iteration *iteration, const struct bw_tree *tree,
                                   const char *name)
{
    const struct bw_dump_tree found = {.tree = *tree, .name = name};
    return wants(iteration, tree->id) ? iteration->take(iteration->context, &found) : NULL;
}

/* The tree after the replay of the log; NULL if that does not change it. */
static const struct bw_tree *replayed_tree(const struct bw_fs *fs, const struct bw_key *key)
{
    const struct bw_subvolume *subvolume = bw_subvolume_by_id(fs, key->objectid);
    if (subvolume)
        return &subvolume->tree;
    bool has_checksums = key->objectid == BW_CSUM_TREE && !key->offset && fs->checksum_trees.count;
    return has_checksums ? &fs->checksum_trees.trees[0] : NULL;
}

static struct bw_error *take_root(void *context, const struct bw_item *item)
{
    const struct iteration *iteration = context;
    struct bw_root_item root;
    if (item->key.type != BW_ROOT_ITEM || !wants(iteration, item->key.objectid))
        return NULL;
    struct bw_error *bad = bw_root_item_decode(item, &root);
    if (bad) {
        bw_fs_report(iteration->fs, BW_DAMAGE, bad);
        return NULL;
    }
    struct bw_dump_tree tree = {.tree = {item->key.objectid, root.root, root.last_snapshot},
                                .name = name_of(item->key.objectid),
                                .key = &item->key,
                                .deleted = !root.references};
    const struct bw_tree *replayed =
        iteration->replayed ? replayed_tree(iteration->fs, &item->key) : NULL;
    if (replayed)
        tree.tree.root = replayed->root;
    return iteration->take(iteration->context, &tree);
}

static struct bw_error *take_roots(struct iteration *iteration, const struct bw_tree *tree)
{
    const uint64_t *id = iteration->id;
    struct bw_key first = {id ? *id : 0, id ? BW_ROOT_ITEM : 0, 0}, last = BW_KEY_MAX;
    if (id)
        last = (struct bw_key){*id, BW_ROOT_ITEM, UINT64_MAX};
    return bw_fs_items(iteration->fs, tree, first, last, take_root, iteration);
}

struct bw_error *bw_dump_each_tree(struct bw_fs *fs, const uint64_t *id, bool replayed,
                                   bw_dump_tree_taker *take, void *context)
{
    struct iteration iteration = {fs, id, replayed, take, context};
    const struct bw_tree remap = {BW_REMAP_TREE, fs->superblock.remap_root, 0};
    struct bw_tree log = {0};
    BW_TRY(take_super(&iteration, &fs->root_tree, "root"));
    BW_TRY(take_super(&iteration, &fs->chunk_tree, "chunk"));
    if (!id || *id == BW_TREE_LOG)
        BW_TRY(bw_log_tree_find(fs, &log));
    if (log.id)
        BW_TRY(take_super(&iteration, &log, "log root"));
    if (remap.root.bytenr)
        BW_TRY(take_super(&iteration, &remap, "remap"));
    BW_TRY(take_roots(&iteration, &fs->root_tree));
    return log.id ? take_roots(&iteration, &log) : NULL;
}

/* What there is, for a message: not more than a line or two. */
struct found {
    struct bw_buffer names;
    uint64_t wanted, last;
    unsigned count;
    bool there;
};

static struct bw_error *take_name(void *context, const struct bw_dump_tree *tree)
{
    enum { MOST = 20 };
    struct found *found = context;
    uint64_t id = tree->tree.id;
    found->there |= id == found->wanted;
    if (found->there)
        return bw_error_create(BW_ERROR_STOPPED, "found");
    if (found->count && id == found->last)
        return NULL;
    found->last = id;
    if (found->count++ > MOST)
        return NULL;
    if (found->names.length)
        bw_buffer_append(&found->names, ", ", 2);
    if (found->count > MOST)
        bw_buffer_append(&found->names, "...", 3);
    else
        bw_print_objectid(&found->names, id, 0);
    return NULL;
}

struct bw_error *bw_dump_tree_check(struct bw_fs *fs, uint64_t id)
{
    struct found found = {.wanted = id};
    struct bw_error *error = bw_dump_each_tree(fs, &id, false, take_name, &found);
    if (!error)
        error = bw_dump_each_tree(fs, NULL, false, take_name, &found);
    if (found.there) {
        bw_error_free(error);
        error = NULL;
    } else if (!error) {
        error = bw_error_create(BW_ERROR_NOT_FOUND, "there is no tree %" PRId64 "; there are %.*s",
                                (int64_t)id, (int)found.names.length,
                                found.names.data ? found.names.data : "none");
    }
    bw_buffer_free(&found.names);
    return error;
}
