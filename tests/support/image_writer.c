/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Options of the image writer with their defaults, the trees of every file system, items sorted by
 * key, and the paths that a walk must find. This file does not know blocks.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image_writer_internal.h"

void iw_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("image writer: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

void *iw_zalloc(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    if (!memory)
        iw_die("out of memory");
    return memory;
}

void *iw_grow(void *array, size_t count, size_t element_size)
{
    if (count & (count - 1))
        return array;
    array = realloc(array, (count ? 2 * count : 1) * element_size);
    if (!array)
        iw_die("out of memory");
    return array;
}

void iw_uuid(const struct iw_image *image, enum iw_uuid kind, uint64_t number,
             uint8_t uuid[BW_UUID_SIZE])
{
    bw_le32 identity = bw_put32(image->options.identity);
    bw_le64 low = bw_put64(number);
    memset(uuid, 0, BW_UUID_SIZE);
    memcpy(uuid, &identity, sizeof identity);
    uuid[4] = (uint8_t)(0xb0 + kind);
    uuid[6] = 0x40;
    memcpy(uuid + 8, &low, sizeof low);
}

void iw_metadata_uuid(const struct iw_image *image, uint8_t uuid[BW_UUID_SIZE])
{
    iw_uuid(image, image->options.separate_metadata_uuid ? IW_UUID_METADATA : IW_UUID_PUBLIC, 0,
            uuid);
}

struct bw_disk_key iw_disk_key(struct bw_key key)
{
    return (struct bw_disk_key){bw_put64(key.objectid), key.type, bw_put64(key.offset)};
}

static struct bw_key iw_host_key(const struct bw_disk_key *key)
{
    return (struct bw_key){bw_get64(key->objectid), key->type, bw_get64(key->offset)};
}

size_t iw_leaf_space(const struct iw_image *image)
{
    return image->options.nodesize - sizeof(struct bw_disk_header);
}

/* Trees. */

/* Index of the first tree whose id is not less. */
static size_t tree_index(const struct iw_image *image, uint64_t id)
{
    size_t index = 0;
    while (index < image->tree_count && image->trees[index]->id < id)
        index++;
    return index;
}

struct iw_tree *iw_find_tree(const struct iw_image *image, uint64_t id)
{
    size_t index = tree_index(image, id);
    return index < image->tree_count && image->trees[index]->id == id ? image->trees[index] : NULL;
}

static struct iw_tree *make_tree(struct iw_image *image, uint64_t id)
{
    size_t index = tree_index(image, id);
    struct iw_tree *tree = iw_zalloc(sizeof *tree);
    tree->id = id;
    tree->generation = image->options.generation;
    tree->items_per_leaf = image->options.items_per_leaf;
    tree->pointers_per_node = image->options.pointers_per_node;
    tree->next_inode = BW_SUBVOLUME_ROOT_INODE + 1;
    image->trees = iw_grow(image->trees, image->tree_count, sizeof(struct iw_tree *));
    memmove(image->trees + index + 1, image->trees + index,
            (image->tree_count - index) * sizeof(struct iw_tree *));
    image->trees[index] = tree;
    image->tree_count++;
    return tree;
}

struct iw_tree *iw_tree(struct iw_image *image, uint64_t id)
{
    struct iw_tree *tree = iw_find_tree(image, id);
    if (image->written)
        iw_die("tree %lld: the image is written", (long long)id);
    if (tree && tree->alias)
        iw_die("tree %lld: an alias can not be changed", (long long)id);
    return tree ? tree : make_tree(image, id);
}

void iw_shape(struct iw_image *image, uint64_t tree_id, unsigned items_per_leaf,
              unsigned pointers_per_node, unsigned minimum_level)
{
    struct iw_tree *tree = iw_tree(image, tree_id);
    tree->items_per_leaf = items_per_leaf ? items_per_leaf : image->options.items_per_leaf;
    tree->pointers_per_node =
        pointers_per_node ? pointers_per_node : image->options.pointers_per_node;
    tree->minimum_level = minimum_level;
    if (tree->pointers_per_node == 1)
        iw_die("nodes take 2 pointers or more");
}

void iw_use_full_references(struct iw_image *image, uint64_t tree)
{
    iw_tree(image, tree)->has_full_references = true;
}

void iw_set_generation(struct iw_image *image, uint64_t tree, uint64_t generation)
{
    iw_tree(image, tree)->generation = generation;
}

/* Items. */

size_t iw_lower_bound(const struct iw_tree *tree, struct bw_key key)
{
    size_t low = 0, high = tree->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bw_key_compare(&tree->items[middle]->key, &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct iw_tree *tree, size_t index, struct bw_key key)
{
    return index < tree->count && bw_key_compare(&tree->items[index]->key, &key) == 0;
}

struct iw_item *iw_find_item(const struct iw_tree *tree, struct bw_key key)
{
    size_t index = iw_lower_bound(tree, key);
    return is_at(tree, index, key) ? tree->items[index] : NULL;
}

/* The item with this key; creates an empty one if there is none. */
static struct iw_item *obtain_item(struct iw_tree *tree, struct bw_key key)
{
    size_t index = iw_lower_bound(tree, key);
    if (is_at(tree, index, key))
        return tree->items[index];
    struct iw_item *item = iw_zalloc(sizeof *item);
    item->key = key;
    tree->items = iw_grow(tree->items, tree->count, sizeof(struct iw_item *));
    memmove(tree->items + index + 1, tree->items + index,
            (tree->count - index) * sizeof(struct iw_item *));
    tree->items[index] = item;
    tree->count++;
    return item;
}

static void free_item(struct iw_item *item)
{
    free(item->bytes);
    free(item);
}

void iw_append(struct iw_tree *tree, struct bw_key key, const void *bytes, size_t size)
{
    struct iw_item *item = obtain_item(tree, key);
    uint8_t *joined = iw_zalloc(item->size + size);
    if (item->size)
        memcpy(joined, item->bytes, item->size);
    if (size)
        memcpy(joined + item->size, bytes, size);
    free(item->bytes);
    item->bytes = joined;
    item->size += size;
}

void iw_put(struct iw_tree *tree, struct bw_key key, const void *bytes, size_t size)
{
    struct iw_item *item = obtain_item(tree, key);
    item->size = 0;
    item->generated = false;
    iw_append(tree, key, bytes, size);
}

void iw_generate(struct iw_tree *tree, struct bw_key key, const void *bytes, size_t size)
{
    struct iw_item *item = iw_find_item(tree, key);
    if (item && !item->generated)
        return;
    iw_put(tree, key, bytes, size);
    iw_find_item(tree, key)->generated = true;
}

void iw_remove_generated(struct iw_tree *tree)
{
    size_t kept = 0;
    for (size_t i = 0; i < tree->count; i++) {
        if (tree->items[i]->generated)
            free_item(tree->items[i]);
        else
            tree->items[kept++] = tree->items[i];
    }
    tree->count = kept;
}

void iw_item(struct iw_image *image, uint64_t tree, struct bw_key key, const void *bytes,
             size_t size)
{
    iw_put(iw_tree(image, tree), key, bytes, size);
}

void iw_remove_item(struct iw_image *image, uint64_t tree_id, struct bw_key key)
{
    struct iw_tree *tree = iw_tree(image, tree_id);
    size_t index = iw_lower_bound(tree, key);
    if (!is_at(tree, index, key))
        iw_die("tree %lld has no item (%lld %u %lld) to remove", (long long)tree_id,
               (long long)key.objectid, key.type, (long long)key.offset);
    free_item(tree->items[index]);
    tree->count--;
    memmove(tree->items + index, tree->items + index + 1,
            (tree->count - index) * sizeof(struct iw_item *));
}

void *iw_item_bytes(struct iw_image *image, uint64_t tree, struct bw_key key, size_t *size)
{
    struct iw_item *item = iw_find_item(iw_tree(image, tree), key);
    if (item && size)
        *size = item->size;
    return item ? item->bytes : NULL;
}

/* Life of an image. */

static void set_defaults(struct iw_options *options)
{
    if (!options->nodesize)
        options->nodesize = 16384;
    if (!options->sectorsize)
        options->sectorsize = BW_MIN_SECTORSIZE;
    if (!options->generation)
        options->generation = 10;
    if (!options->has_system_profile)
        options->system_profile = options->profile;
    if (!options->device_size)
        options->device_size = UINT64_C(32) << 20;
    if (!options->device_extent_length)
        options->device_extent_length = UINT64_C(4) << 20;
    if (!options->logical_base)
        options->logical_base = 22020096;
    if (!options->block_step)
        options->block_step = 1;
}

static void set_devices(struct iw_image *image)
{
    const struct iw_options *options = &image->options;
    const uint64_t profiles[] = {options->profile, options->system_profile, options->data_profile};
    image->device_count = options->device_count;
    for (size_t i = 0; !options->device_count && i < sizeof profiles / sizeof *profiles; i++)
        if (image->device_count < iw_minimum_devices(profiles[i]))
            image->device_count = iw_minimum_devices(profiles[i]);
    if (image->device_count > IW_MAX_DEVICES)
        iw_die("%u devices are too many", image->device_count);
    for (unsigned i = 0; i < image->device_count; i++) {
        image->devices[i].devid = options->devids ? options->devids[i] : i + 1;
        image->devices[i].size = options->device_size;
        image->devices[i].fd = -1;
    }
}

/* The directory of the root tree, whose one entry names the default subvolume. */
static void put_root_tree_directory(struct iw_image *image)
{
    static const char name[] = "default";
    struct bw_disk_inode_item inode;
    iw_init_inode(image, &inode, BW_FILE_DIRECTORY);
    struct {
        struct bw_disk_dir_item item;
        char name[sizeof name - 1];
    } entry = {.item = {.location = iw_disk_key(
                            (struct bw_key){BW_TOP_SUBVOLUME, BW_ROOT_ITEM, UINT64_MAX}),
                        .name_length = bw_put16(sizeof name - 1),
                        .type = BW_FILE_DIRECTORY}};
    memcpy(entry.name, name, sizeof entry.name);
    struct {
        struct bw_disk_inode_ref ref;
        char name[2];
    } up = {{bw_put64(0), bw_put16(2)}, {'.', '.'}};
    struct {
        struct bw_disk_inode_ref ref;
        char name[sizeof name - 1];
    } back = {.ref = {bw_put64(0), bw_put16(sizeof name - 1)}};
    memcpy(back.name, name, sizeof back.name);
    struct iw_tree *tree = iw_tree(image, BW_ROOT_TREE);
    iw_put(tree, (struct bw_key){BW_ROOT_TREE_DIR, BW_INODE_ITEM, 0}, &inode, sizeof inode);
    iw_put(tree, (struct bw_key){BW_ROOT_TREE_DIR, BW_INODE_REF, BW_ROOT_TREE_DIR}, &up, sizeof up);
    iw_put(tree, (struct bw_key){BW_TOP_SUBVOLUME, BW_INODE_REF, BW_ROOT_TREE_DIR}, &back,
           sizeof back);
    iw_put(tree,
           (struct bw_key){BW_ROOT_TREE_DIR, BW_DIR_ITEM, bw_name_hash(name, sizeof name - 1)},
           &entry, sizeof entry);
}

static void put_first_trees(struct iw_image *image)
{
    static const uint64_t plain[] = {BW_EXTENT_TREE, BW_DEVICE_TREE, BW_CSUM_TREE};
    iw_tree(image, BW_CHUNK_TREE);
    put_root_tree_directory(image);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        iw_tree(image, plain[i]);
        iw_put_root_item(image, plain[i], 0, NULL);
    }
    /* One item for every block: with few items a leaf it would never come to an end. */
    iw_find_tree(image, BW_EXTENT_TREE)->items_per_leaf = 0;
    iw_find_tree(image, BW_EXTENT_TREE)->pointers_per_node = 0;
    iw_subvolume(image, BW_TOP_SUBVOLUME, 0, 0, NULL, 0);
    iw_subvolume(image, IW_DATA_RELOC_TREE, 0, 0, NULL, 0);
}

struct iw_image *iw_create(const struct iw_options *options)
{
    struct iw_image *image = iw_zalloc(sizeof *image);
    image->options = *options;
    set_defaults(&image->options);
    set_devices(image);
    image->options.devids = NULL; /* the caller's; copied into the devices */
    put_first_trees(image);
    return image;
}

static void free_tree(struct iw_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        free_item(tree->items[i]);
    free(tree->items);
    free(tree);
}

void iw_destroy(struct iw_image *image)
{
    if (!image)
        return;
    iw_free_layout(image);
    for (size_t i = 0; i < image->tree_count; i++)
        free_tree(image->trees[i]);
    for (unsigned i = 0; i < image->device_count; i++) {
        if (image->devices[i].fd >= 0)
            close(image->devices[i].fd);
        free(image->devices[i].path);
    }
    free(image->trees);
    free(image->chunks);
    free(image);
}

/*
 * The paths that a walk must find, from the items in memory: from subvolume 5 downwards, as on a
 * mount. The library reads blocks in key order, so the two methods are independent.
 */

/* A directory in the current path, so that a directory inside itself ends the descent. */
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

/* The tree with the items: an alias uses those of its origin. */
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
