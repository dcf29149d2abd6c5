/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a walk of the image must find, told from the items in memory: top down from subvolume 5, the
 * way a mount would show it. The library reads blocks in key order; the two have nothing in common
 * but the answer.
 */
#include <stdlib.h>
#include <string.h>

#include "image_writer_internal.h"

/* A directory on the way from the top, so that a directory that contains itself ends the descent.
 */
struct step {
    const struct step *up;
    uint64_t subvolume, inode;
};

struct descent {
    const struct iw_image *image;
    struct iw_paths paths;
};

struct name {
    const char *bytes;
    size_t length;
};

static void descend(struct descent *descent, const struct step *step, const char *prefix);

/* The tree whose items count: an alias has those of its origin. */
static const struct iw_tree *content(const struct iw_image *image, uint64_t subvolume)
{
    const struct iw_tree *tree = iw_find_tree(image, subvolume);
    return tree && tree->alias ? iw_find_tree(image, tree->origin) : tree;
}

static char *join(const char *prefix, struct name name)
{
    size_t length = strlen(prefix);
    char *path = iw_zalloc(length + 1 + name.length + 1);
    memcpy(path, prefix, length);
    path[length] = '/';
    memcpy(path + length + 1, name.bytes, name.length);
    return path;
}

/* Whether a subvolume hangs where an entry says, and lives. */
static bool is_attached(const struct iw_image *image, const struct step *at, uint64_t id,
                        struct name name)
{
    const struct iw_tree *roots = iw_find_tree(image, BW_ROOT_TREE);
    const struct iw_item *item =
        iw_find_item(roots, (struct bw_key){at->subvolume, BW_ROOT_REF, id});
    const struct iw_item *root = iw_find_root_item(image, id);
    if (!item || !root ||
        !bw_get32(((const struct bw_disk_root_item *)root->bytes)->reference_count))
        return false;
    const struct bw_disk_root_ref *ref = (const void *)item->bytes;
    return bw_get64(ref->directory) == at->inode && bw_get16(ref->name_length) == name.length &&
           memcmp(ref + 1, name.bytes, name.length) == 0;
}

static bool is_on_the_way(const struct step *step, uint64_t subvolume, uint64_t inode)
{
    for (; step; step = step->up)
        if (step->subvolume == subvolume && step->inode == inode)
            return true;
    return false;
}

static void enter(struct descent *descent, const struct step *at, struct bw_key location,
                  const char *path, struct name name)
{
    struct step step = {at, at->subvolume, location.objectid};
    if (location.type == BW_ROOT_ITEM) {
        if (!is_attached(descent->image, at, location.objectid, name))
            return;
        step = (struct step){at, location.objectid, BW_SUBVOLUME_ROOT_INODE};
    }
    if (!is_on_the_way(at, step.subvolume, step.inode))
        descend(descent, &step, path);
}

static void add_path(struct iw_paths *paths, char *path)
{
    paths->paths = iw_grow(paths->paths, paths->count, sizeof(char *));
    paths->paths[paths->count++] = path;
}

static void take_entry(struct descent *descent, const struct step *at, const char *prefix,
                       const struct bw_disk_dir_item *entry)
{
    struct bw_key location = iw_host_key(&entry->location);
    struct name name = {(const char *)(entry + 1), bw_get16(entry->name_length)};
    uint8_t type = entry->type & BW_FILE_TYPE_MASK;
    char *path = join(prefix, name);
    if (type == BW_FILE_REGULAR && location.type == BW_INODE_ITEM)
        add_path(&descent->paths, strdup(path));
    if (type == BW_FILE_DIRECTORY)
        enter(descent, at, location, path, name);
    free(path);
}

static void descend(struct descent *descent, const struct step *step, const char *prefix)
{
    const struct iw_tree *tree = content(descent->image, step->subvolume);
    if (!tree)
        return;
    size_t index = iw_lower_bound(tree, (struct bw_key){step->inode, BW_DIR_INDEX, 0});
    for (; index < tree->count; index++) {
        const struct iw_item *item = tree->items[index];
        if (item->key.objectid != step->inode || item->key.type != BW_DIR_INDEX)
            break;
        const struct bw_disk_dir_item *entry = (const void *)item->bytes;
        if (item->size >= sizeof *entry &&
            item->size - sizeof *entry >= bw_get16(entry->name_length))
            take_entry(descent, step, prefix, entry);
    }
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct iw_paths iw_expected_paths(const struct iw_image *image)
{
    struct descent descent = {.image = image};
    struct step top = {NULL, BW_TOP_SUBVOLUME, BW_SUBVOLUME_ROOT_INODE};
    descend(&descent, &top, "");
    if (descent.paths.count)
        qsort(descent.paths.paths, descent.paths.count, sizeof(char *), compare_paths);
    return descent.paths;
}

void iw_paths_free(struct iw_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->paths[i]);
    free(paths->paths);
    *paths = (struct iw_paths){0};
}
