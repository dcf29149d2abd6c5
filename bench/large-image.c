/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * large-image [-c] [-n] FILES IMAGE: writes an image with that many files, a multiple of 10,000, as
 * large.h describes it; with -c with the snapshot "changed", too. With -n the leaves of the
 * subvolumes are a hole, for large-layer.c, which computes them. A million files are 500 MB, and
 * without their leaves 4 MB.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "large.h"
#include "ondisk/disk_items.h"

enum {
    SYSTEM_CHUNK = 4 << 20,
    SYSTEM_LENGTH = 8 << 20,
    SUPERBLOCK = 64 << 10,
    SUPERBLOCK_MIRROR = 64 << 20,
    BATCH = 64,       /* blocks written at once */
    REFERENCES = 220, /* in a leaf of the extent tree: as many as fit if all blocks are shared */
    LEVELS = 8,
};

/* A tree: its leaves, and the nodes above them, level by level. */
struct tree {
    uint64_t id, leaves;
    uint64_t count[LEVELS], first[LEVELS]; /* of the blocks of a level; those of leaves are unused
                                            */
    unsigned level;                        /* of the root */
};

/* Trees of one leaf each, which are the first blocks. */
enum { ROOTS, DEVICES, CHECKSUMS, TOP_LEVEL, RELOCATION, SINGLES };
static const uint64_t singles[SINGLES] = {BW_ROOT_TREE, BW_DEVICE_TREE, BW_CSUM_TREE,
                                          BW_TOP_SUBVOLUME, BW_DATA_RELOC_TREE};

struct image {
    struct large large;
    bool has_copy;
    struct tree subvolumes[2], extents; /* "files", "changed" */
    uint64_t blocks;                    /* all but that of the chunk tree */
    uint64_t length;                    /* of the chunk with them */
    uint8_t *batch;
    unsigned batched;
    uint64_t written; /* blocks */
    int file;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t address_of(uint64_t block)
{
    return FIRST_BLOCK + block * NODESIZE;
}

/* Plans: how many blocks each tree has, and where. */

static void count_nodes(struct tree *tree, uint64_t id, uint64_t leaves)
{
    *tree = (struct tree){.id = id, .leaves = leaves, .count = {leaves}};
    while (tree->count[tree->level] > 1) {
        tree->count[tree->level + 1] = (tree->count[tree->level] + POINTERS - 1) / POINTERS;
        tree->level++;
    }
}

static void place_nodes(struct image *image, struct tree *tree)
{
    for (unsigned level = tree->level; level; level--) {
        tree->first[level] = address_of(image->blocks);
        image->blocks += tree->count[level];
    }
}

/* The extent tree has an item for each of its own blocks. */
static void plan(struct image *image)
{
    struct large *large = &image->large;
    image->blocks = SINGLES;
    for (int i = 0; i <= image->has_copy; i++) {
        count_nodes(&image->subvolumes[i], FILES_TREE + (unsigned)i, large->leaves);
        place_nodes(image, &image->subvolumes[i]);
    }
    const uint64_t own = large->leaves + (image->has_copy ? large->sections : 0);
    uint64_t leaves = 0, all = image->blocks + own, needed;
    while ((needed = (all + 3 + REFERENCES - 1) / REFERENCES) != leaves) {
        leaves = needed;
        count_nodes(&image->extents, BW_EXTENT_TREE, leaves);
        all = image->blocks + own + leaves;
        for (unsigned level = 1; level <= image->extents.level; level++)
            all += image->extents.count[level];
    }
    place_nodes(image, &image->extents);
    image->extents.first[0] = address_of(image->blocks);
    large->first = address_of(image->blocks + leaves);
    large->first_changed = large->first + large->leaves * NODESIZE;
    image->blocks = all;
    const uint64_t step = 64 << 20;
    image->length = (all * NODESIZE / step + 1) * step;
}

static uint64_t root_of(const struct tree *tree)
{
    return tree->first[tree->level];
}

/* Writing. */

static void write_at(struct image *image, const void *bytes, size_t size, uint64_t offset)
{
    if (pwrite(image->file, bytes, size, (off_t)offset) != (ssize_t)size)
        die("cannot write the image");
}

static void flush(struct image *image)
{
    const uint64_t first = image->written - image->batched;
    write_at(image, image->batch, (size_t)image->batched * NODESIZE, address_of(first));
    image->batched = 0;
}

/* Memory for the next block, which is written at address_of(image->written - 1). */
static uint8_t *next_block(struct image *image)
{
    if (image->batched == BATCH)
        flush(image);
    image->written++;
    return image->batch + (size_t)image->batched++ * NODESIZE;
}

static struct large_block begin_block(struct image *image, uint64_t owner, uint8_t level)
{
    const uint64_t address = address_of(image->written);
    return large_begin(next_block(image), address, owner, level);
}

/* The extent tree: an item for each block, and after the first one of a block group its own. */

static struct bw_key extent_key(const struct image *image, uint64_t item)
{
    if (item == 0)
        return (struct bw_key){SYSTEM_CHUNK, BW_METADATA_ITEM, 0};
    if (item == 1)
        return (struct bw_key){SYSTEM_CHUNK, BW_BLOCK_GROUP_ITEM, SYSTEM_LENGTH};
    if (item == 3)
        return (struct bw_key){FIRST_BLOCK, BW_BLOCK_GROUP_ITEM, image->length};
    const uint64_t address = address_of(item == 2 ? 0 : item - 3);
    uint64_t found = 0; /* the level */
    const struct tree *const trees[] = {&image->subvolumes[0], &image->subvolumes[1],
                                        &image->extents};
    for (unsigned i = 0; i < 3; i++)
        for (unsigned level = 1; level <= trees[i]->level; level++)
            if (address >= trees[i]->first[level] &&
                address < trees[i]->first[level] + trees[i]->count[level] * NODESIZE)
                found = level;
    return (struct bw_key){address, BW_METADATA_ITEM, found};
}

/* The trees that refer to a block, the one with the greater number first. */
static unsigned owners_of(const struct image *image, uint64_t address, uint64_t owners[2])
{
    const struct large *large = &image->large;
    if (address == SYSTEM_CHUNK) {
        owners[0] = BW_CHUNK_TREE;
    } else if (address < address_of(SINGLES)) {
        owners[0] = singles[(address - FIRST_BLOCK) / NODESIZE];
    } else if (address >= large->first_changed) {
        owners[0] = CHANGED_TREE;
    } else if (address >= large->first) {
        owners[0] = owners[1] = FILES_TREE;
        if (image->has_copy && large_is_shared(large, (address - large->first) / NODESIZE)) {
            owners[0] = CHANGED_TREE;
            return 2;
        }
    } else if (address >= root_of(&image->extents)) {
        owners[0] = BW_EXTENT_TREE;
    } else {
        owners[0] = FILES_TREE;
        if (image->has_copy && address >= root_of(&image->subvolumes[1]))
            owners[0] = CHANGED_TREE;
    }
    return 1;
}

static void write_extent_leaf(struct image *image, uint64_t leaf)
{
    struct large_block block = begin_block(image, BW_EXTENT_TREE, 0);
    for (uint64_t item = leaf * REFERENCES;
         item < (leaf + 1) * REFERENCES && item < image->blocks + 3; item++) {
        const struct bw_key key = extent_key(image, item);
        if (key.type == BW_BLOCK_GROUP_ITEM) {
            struct bw_disk_block_group *group = large_item(&block, key, sizeof *group);
            group->used = bw_put64(item == 1 ? NODESIZE : image->blocks * NODESIZE);
            group->chunk_objectid = bw_put64(BW_FIRST_CHUNK);
            group->flags = bw_put64(item == 1 ? BW_GROUP_SYSTEM : BW_GROUP_METADATA);
            continue;
        }
        uint64_t owners[2];
        const unsigned count = owners_of(image, key.objectid, owners);
        struct bw_disk_inline_reference *reference;
        struct bw_disk_extent_item *extent =
            large_item(&block, key, sizeof *extent + count * sizeof *reference);
        extent->references = bw_put64(count);
        extent->generation = bw_put64(large_generation(owners[count - 1]));
        extent->flags = bw_put64(BW_EXTENT_TREE_BLOCK);
        reference = (void *)(extent + 1);
        for (unsigned i = 0; i < count; i++)
            reference[i] =
                (struct bw_disk_inline_reference){BW_TREE_BLOCK_REF, bw_put64(owners[i])};
    }
    large_finish(&block);
}

/* Nodes. Each but the last ones of its level is full, so its first leaf follows from its place. */

static struct bw_key first_key(const struct image *image, const struct tree *tree, uint64_t leaf)
{
    if (tree == &image->extents)
        return extent_key(image, leaf * REFERENCES);
    return large_first_key(&image->large, leaf);
}

static uint64_t child_address(const struct image *image, const struct tree *tree, unsigned level,
                              uint64_t child)
{
    if (level || tree == &image->extents)
        return tree->first[level] + child * NODESIZE;
    return large_address(&image->large, tree->id, child);
}

static void write_nodes(struct image *image, const struct tree *tree)
{
    for (unsigned level = tree->level; level; level--) {
        uint64_t leaves_of_child = 1;
        for (unsigned i = 1; i < level; i++)
            leaves_of_child *= POINTERS;
        for (uint64_t node = 0; node < tree->count[level]; node++) {
            struct large_block block = begin_block(image, tree->id, (uint8_t)level);
            struct bw_disk_key_pointer *pointers =
                (void *)(block.bytes + sizeof(struct bw_disk_header));
            for (uint64_t child = node * POINTERS;
                 child < (node + 1) * POINTERS && child < tree->count[level - 1]; child++) {
                uint64_t generation = large_generation(tree->id);
                if (tree->id == CHANGED_TREE && level == 1 && large_is_shared(&image->large, child))
                    generation = GENERATION;
                pointers[block.count++] = (struct bw_disk_key_pointer){
                    large_key(first_key(image, tree, child * leaves_of_child)),
                    bw_put64(child_address(image, tree, level - 1, child)), bw_put64(generation)};
            }
            large_finish(&block);
        }
    }
}

/* The small trees. */

static void add_root(struct large_block *block, uint64_t id, uint64_t address, uint64_t blocks,
                     unsigned level)
{
    const bool is_subvolume = bw_is_subvolume_id(id);
    const uint64_t generation = large_generation(id);
    const struct bw_key key = {id, BW_ROOT_ITEM, id == CHANGED_TREE ? generation : 0};
    struct bw_disk_root_item *root = large_item(block, key, sizeof *root);
    large_inode(&root->inode, 040755, 3, NODESIZE, 0);
    root->generation = root->generation_v2 = bw_put64(generation);
    if (is_subvolume || id == BW_DATA_RELOC_TREE)
        root->root_directory = bw_put64(BW_SUBVOLUME_ROOT_INODE);
    root->bytenr = bw_put64(address);
    root->bytes_used = bw_put64(blocks * NODESIZE);
    root->reference_count = bw_put32(1);
    root->level = (uint8_t)level;
    if (!is_subvolume)
        return;
    root->last_snapshot = bw_put64(id == BW_TOP_SUBVOLUME ? 0 : GENERATION);
    root->flags = bw_put64(id == BW_TOP_SUBVOLUME ? 0 : BW_ROOT_READ_ONLY);
    root->uuid[0] = (uint8_t)(id % 250 + 1);
    if (id == CHANGED_TREE)
        root->parent_uuid[0] = FILES_TREE % 250 + 1;
    root->change_transid = root->origin_transid = bw_put64(generation);
}

static const char *const subvolume_names[] = {"files", "changed"};

static void add_root_ref(struct large_block *block, struct bw_key key, unsigned subvolume)
{
    const char *name = subvolume_names[subvolume];
    struct bw_disk_root_ref *ref = large_item(block, key, sizeof *ref + strlen(name));
    *ref = (struct bw_disk_root_ref){bw_put64(BW_SUBVOLUME_ROOT_INODE), bw_put64(2 + subvolume),
                                     bw_put16((uint16_t)strlen(name))};
    memcpy(ref + 1, name, strlen(name));
}

static void add_subvolume_root(struct image *image, struct large_block *block, unsigned i)
{
    const struct tree *tree = &image->subvolumes[i];
    uint64_t blocks = 0;
    for (unsigned level = 0; level <= tree->level; level++)
        blocks += tree->count[level];
    add_root(block, tree->id, root_of(tree), blocks, tree->level);
    add_root_ref(block, (struct bw_key){tree->id, BW_ROOT_BACKREF, BW_TOP_SUBVOLUME}, i);
}

static void write_root_tree(struct image *image)
{
    const struct tree *extents = &image->extents;
    struct large_block block = begin_block(image, BW_ROOT_TREE, 0);
    uint64_t blocks = 0;
    for (unsigned level = 0; level <= extents->level; level++)
        blocks += extents->count[level];
    add_root(&block, BW_EXTENT_TREE, root_of(extents), blocks, extents->level);
    add_root(&block, BW_DEVICE_TREE, address_of(DEVICES), 1, 0);
    add_root(&block, BW_TOP_SUBVOLUME, address_of(TOP_LEVEL), 1, 0);
    for (unsigned i = 0; i <= image->has_copy; i++)
        add_root_ref(&block, (struct bw_key){BW_TOP_SUBVOLUME, BW_ROOT_REF, FILES_TREE + i}, i);
    add_root(&block, BW_CSUM_TREE, address_of(CHECKSUMS), 1, 0);
    for (unsigned i = 0; i <= image->has_copy; i++)
        add_subvolume_root(image, &block, i);
    add_root(&block, BW_DATA_RELOC_TREE, address_of(RELOCATION), 1, 0);
    large_finish(&block);
}

static void write_device_tree(struct image *image)
{
    struct large_block block = begin_block(image, BW_DEVICE_TREE, 0);
    const uint64_t offsets[] = {SYSTEM_CHUNK, FIRST_BLOCK};
    for (unsigned i = 0; i < 2; i++) {
        struct bw_disk_device_extent *extent =
            large_item(&block, (struct bw_key){1, BW_DEVICE_EXTENT, offsets[i]}, sizeof *extent);
        extent->chunk_tree = bw_put64(BW_CHUNK_TREE);
        extent->chunk_objectid = bw_put64(BW_FIRST_CHUNK);
        extent->chunk_offset = bw_put64(offsets[i]);
        extent->length = bw_put64(i ? image->length : SYSTEM_LENGTH);
        memcpy(extent->chunk_tree_uuid, LARGE_FSID, BW_UUID_SIZE);
    }
    large_finish(&block);
}

static void write_top_level(struct image *image)
{
    struct large_block block = begin_block(image, BW_TOP_SUBVOLUME, 0);
    uint64_t names = 0;
    for (unsigned i = 0; i <= image->has_copy; i++)
        names += strlen(subvolume_names[i]);
    large_top_inode(&block, names);
    /* "changed" has the smaller hash. */
    for (unsigned i = image->has_copy + 1u; i-- > 0;)
        large_entry(&block, BW_SUBVOLUME_ROOT_INODE,
                    (struct bw_key){FILES_TREE + i, BW_ROOT_ITEM, UINT64_MAX}, BW_FILE_DIRECTORY,
                    subvolume_names[i], 0);
    for (unsigned i = 0; i <= image->has_copy; i++)
        large_entry(&block, BW_SUBVOLUME_ROOT_INODE,
                    (struct bw_key){FILES_TREE + i, BW_ROOT_ITEM, UINT64_MAX}, BW_FILE_DIRECTORY,
                    subvolume_names[i], 2 + i);
    large_finish(&block);
}

/* The superblock, and the chunk tree that it leads to. */

static void set_chunk(struct bw_disk_chunk *chunk, uint64_t offset, uint64_t length, uint64_t type)
{
    struct bw_disk_stripe *stripe = (void *)(chunk + 1);
    *chunk = (struct bw_disk_chunk){bw_put64(length),
                                    bw_put64(BW_EXTENT_TREE),
                                    bw_put64(BW_STRIPE_LENGTH),
                                    bw_put64(type),
                                    bw_put32(BW_STRIPE_LENGTH),
                                    bw_put32(BW_STRIPE_LENGTH),
                                    bw_put32(BW_MIN_SECTORSIZE),
                                    bw_put16(1),
                                    bw_put16(1)};
    *stripe = (struct bw_disk_stripe){.devid = bw_put64(1), .offset = bw_put64(offset)};
    memcpy(stripe->device_uuid, LARGE_FSID, BW_UUID_SIZE);
}

static void write_superblock(struct image *image, uint64_t device_size)
{
    const size_t chunk_size = sizeof(struct bw_disk_chunk) + sizeof(struct bw_disk_stripe);
    struct bw_disk_device_item device = {.devid = bw_put64(1),
                                         .total_bytes = bw_put64(device_size),
                                         .bytes_used = bw_put64(SYSTEM_LENGTH + image->length),
                                         .io_align = bw_put32(BW_MIN_SECTORSIZE),
                                         .io_width = bw_put32(BW_MIN_SECTORSIZE),
                                         .sector_size = bw_put32(BW_MIN_SECTORSIZE)};
    memcpy(device.uuid, LARGE_FSID, BW_UUID_SIZE);
    memcpy(device.fsid, LARGE_FSID, BW_UUID_SIZE);

    uint8_t bytes[NODESIZE];
    struct large_block block = large_begin(bytes, SYSTEM_CHUNK, BW_CHUNK_TREE, 0);
    memcpy(large_item(&block, (struct bw_key){BW_DEVICE_ITEMS, BW_DEVICE_ITEM, 1}, sizeof device),
           &device, sizeof device);
    set_chunk(large_item(&block, (struct bw_key){BW_FIRST_CHUNK, BW_CHUNK_ITEM, SYSTEM_CHUNK},
                         chunk_size),
              SYSTEM_CHUNK, SYSTEM_LENGTH, BW_GROUP_SYSTEM);
    set_chunk(
        large_item(&block, (struct bw_key){BW_FIRST_CHUNK, BW_CHUNK_ITEM, FIRST_BLOCK}, chunk_size),
        FIRST_BLOCK, image->length, BW_GROUP_METADATA);
    large_finish(&block);
    write_at(image, bytes, NODESIZE, SYSTEM_CHUNK);

    struct bw_disk_superblock super = {
        .magic = bw_put64(BW_SUPERBLOCK_MAGIC),
        .flags = bw_put64(1),
        .generation = bw_put64(GENERATION + 1),
        .root = bw_put64(address_of(ROOTS)),
        .chunk_root = bw_put64(SYSTEM_CHUNK),
        .total_bytes = bw_put64(device_size),
        .bytes_used = bw_put64((image->blocks + 1) * NODESIZE),
        .root_dir_objectid = bw_put64(BW_ROOT_TREE_DIR),
        .device_count = bw_put64(1),
        .sectorsize = bw_put32(BW_MIN_SECTORSIZE),
        .nodesize = bw_put32(NODESIZE),
        .leafsize = bw_put32(NODESIZE),
        .stripesize = bw_put32(BW_MIN_SECTORSIZE),
        .system_chunk_array_size = bw_put32((uint32_t)(sizeof(struct bw_disk_key) + chunk_size)),
        .chunk_root_generation = bw_put64(GENERATION + 1),
        .incompat_flags = bw_put64(0x341), /* mixed backrefs, extended references, skinny metadata,
                                              no holes */
        .device = device,
        .label = "large",
        .cache_generation = bw_put64(UINT64_MAX),
    };
    memcpy(super.fsid, LARGE_FSID, BW_UUID_SIZE);
    const struct bw_disk_key key =
        large_key((struct bw_key){BW_FIRST_CHUNK, BW_CHUNK_ITEM, SYSTEM_CHUNK});
    memcpy(super.system_chunk_array, &key, sizeof key);
    set_chunk((void *)(super.system_chunk_array + sizeof key), SYSTEM_CHUNK, SYSTEM_LENGTH,
              BW_GROUP_SYSTEM);
    const uint64_t copies[] = {SUPERBLOCK, SUPERBLOCK_MIRROR};
    for (unsigned i = 0; i < 2; i++) {
        super.bytenr = bw_put64(copies[i]);
        large_sum(&super, sizeof super);
        write_at(image, &super, sizeof super, copies[i]);
    }
}

int main(int argc, char **argv)
{
    struct image image = {.file = -1};
    bool has_leaves = true;
    int option;
    while ((option = getopt(argc, argv, "cn")) != -1) {
        image.has_copy |= option == 'c';
        has_leaves &= option != 'n';
        if (option == '?')
            return 2;
    }
    if (argc - optind != 2 || !large_init(&image.large, strtoull(argv[optind], NULL, 10))) {
        fprintf(stderr, "usage: %s [-c] [-n] FILES IMAGE (a multiple of 10000, at most 10^8)\n",
                argv[0]);
        return 2;
    }
    plan(&image);
    const uint64_t device_size = FIRST_BLOCK + image.length + (64 << 20);
    image.batch = malloc((size_t)BATCH * NODESIZE);
    image.file = open(argv[optind + 1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (!image.batch || image.file < 0 || ftruncate(image.file, (off_t)device_size))
        die(argv[optind + 1]);

    write_superblock(&image, device_size);
    write_root_tree(&image);
    write_device_tree(&image);
    struct large_block block = begin_block(&image, BW_CSUM_TREE, 0);
    large_finish(&block);
    write_top_level(&image);
    block = begin_block(&image, BW_DATA_RELOC_TREE, 0);
    large_top_inode(&block, 0);
    large_finish(&block);
    for (int i = 0; i <= image.has_copy; i++)
        write_nodes(&image, &image.subvolumes[i]);
    write_nodes(&image, &image.extents);
    for (uint64_t i = 0; i < image.extents.leaves; i++)
        write_extent_leaf(&image, i);
    for (uint64_t i = 0; has_leaves && i < image.large.leaves; i++)
        large_leaf(&image.large, FILES_TREE, i, next_block(&image));
    for (uint64_t i = 0; has_leaves && image.has_copy && i < image.large.leaves; i++)
        if (!large_is_shared(&image.large, i))
            large_leaf(&image.large, CHANGED_TREE, i, next_block(&image));
    flush(&image);
    if (close(image.file))
        die(argv[optind + 1]);
    printf("%" PRIu64 " files in %" PRIu64 " leaves from %" PRIu64 "\n",
           image.large.sections * GROUPS * FILES, image.large.leaves, image.large.first);
    return 0;
}
