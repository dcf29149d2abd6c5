/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A model of what can be recovered if one block of the top-level subvolume is lost. A name is known
 * if its DIR_INDEX remains, or its INODE_REF together with the INODE_ITEM or DIR_ITEM of the inode.
 * A path is known if all of its names are.
 */
#include "support/image_writer_internal.h"
#include "support/walk_helpers.h"

struct model {
    const struct iw_image *image;
    const struct iw_tree *tree;
    struct bw_key low, high; /* keys that were below the block: low inclusive, high exclusive */
    struct iw_paths paths;
};

/* The key range of a block: up to the first key of the next block on its level. */
static void set_range(struct model *model, const struct iw_block *lost)
{
    const struct iw_level *level = &model->tree->levels[lost->level];
    model->low = lost->first_key;
    model->high = BW_KEY_MAX;
    for (size_t i = 0; i + 1 < level->count; i++)
        if (&model->image->blocks[level->blocks[i]].block == lost)
            model->high = model->image->blocks[level->blocks[i + 1]].block.first_key;
}

static bool is_left(const struct model *model, struct bw_key key)
{
    return bw_key_compare(&key, &model->low) < 0 || bw_key_compare(&key, &model->high) >= 0;
}

/* Whether an INODE_REF or INODE_EXTREF with this name of an inode remains. */
static bool reference_left(const struct model *model, uint64_t inode, const struct bw_key *entry)
{
    size_t at = iw_lower_bound(model->tree, (struct bw_key){inode, BW_INODE_REF, 0});
    for (; at < model->tree->count; at++) {
        const struct iw_item *item = model->tree->items[at];
        if (item->key.objectid != inode || item->key.type > BW_INODE_EXTREF)
            break;
        bool extended = item->key.type == BW_INODE_EXTREF;
        size_t fixed =
            extended ? sizeof(struct bw_disk_inode_extref) : sizeof(struct bw_disk_inode_ref);
        for (size_t next = 0; next + fixed <= item->size;) {
            const struct bw_disk_inode_extref *ext = (const void *)(item->bytes + next);
            const struct bw_disk_inode_ref *ref = (const void *)(item->bytes + next);
            uint64_t parent = extended ? bw_get64(ext->parent) : item->key.offset;
            uint64_t index = bw_get64(extended ? ext->index : ref->index);
            if (parent == entry->objectid && index == entry->offset && is_left(model, item->key))
                return true;
            next += fixed + bw_get16(extended ? ext->name_length : ref->name_length);
        }
    }
    return false;
}

static bool name_known(const struct model *model, const struct iw_item *item)
{
    const struct bw_disk_dir_item *entry = (const void *)item->bytes;
    uint64_t inode = bw_get64(entry->location.objectid);
    uint16_t length = bw_get16(entry->name_length);
    struct bw_key by_hash = {item->key.objectid, BW_DIR_ITEM, bw_name_hash(entry + 1, length)};
    if (is_left(model, item->key))
        return true;
    if (entry->location.type == BW_ROOT_ITEM)
        return true; /* the root tree contains it */
    return reference_left(model, inode, &item->key) &&
           (is_left(model, (struct bw_key){inode, BW_INODE_ITEM, 0}) || is_left(model, by_hash));
}

static void descend(struct model *model, uint64_t directory, const char *prefix)
{
    size_t at = iw_lower_bound(model->tree, (struct bw_key){directory, BW_DIR_INDEX, 0});
    for (; at < model->tree->count; at++) {
        const struct iw_item *item = model->tree->items[at];
        const struct bw_disk_dir_item *entry = (const void *)item->bytes;
        if (item->key.objectid != directory || item->key.type != BW_DIR_INDEX)
            break;
        if (!name_known(model, item))
            continue;
        char *path = NULL;
        if (asprintf(&path, "%s/%.*s", prefix, (int)bw_get16(entry->name_length),
                     (const char *)(entry + 1)) < 0)
            iw_die("out of memory");
        if (entry->type == BW_FILE_DIRECTORY && entry->location.type == BW_INODE_ITEM)
            descend(model, bw_get64(entry->location.objectid), path);
        if (entry->type == BW_FILE_REGULAR) {
            model->paths.paths = iw_grow(model->paths.paths, model->paths.count, sizeof(char *));
            model->paths.paths[model->paths.count++] = strdup(path);
        }
        free(path);
    }
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct iw_paths recoverable_paths(const struct iw_image *image, const struct iw_block *lost)
{
    struct model model = {.image = image, .tree = iw_find_tree(image, FS)};
    set_range(&model, lost);
    descend(&model, TOP, "");
    if (model.paths.count)
        qsort(model.paths.paths, model.paths.count, sizeof(char *), by_bytes);
    return model.paths;
}
