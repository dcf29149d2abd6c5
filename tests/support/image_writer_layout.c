/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the blocks of an image are: chunks, the layout of leaves and nodes, and the extent tree,
 * which describes them.
 */
#include <stdlib.h>
#include <string.h>

#include "image_writer_internal.h"

/*
 * Chunks: which devices they take a piece of, which items say so, and where a logical address comes
 * to lie.
 *
 * With parity, the data stripes of a row come first and then P and Q, and each row starts one
 * device further than the row before. Storing computes parity from what changes: P gains old ^ new,
 * Q gains (old ^ new) times 2 to the power of the stripe's number, in the field of 256 elements
 * with polynomial 0x11d. Devices start out as zeros, whose parity is zero, so that rows nobody has
 * written to are right as well.
 */

/* Profiles. `stripes`: how many a chunk has; 0: as many as there are devices. */
static const struct profile {
    uint64_t flag;
    unsigned minimum_devices;
    unsigned stripes;
    unsigned copies;
    unsigned parities;
    bool on_one_device;
} profiles[] = {
    {0, 1, 1, 1, 0, false},
    {BW_GROUP_RAID0, 2, 0, 1, 0, false},
    {BW_GROUP_RAID1, 2, 2, 2, 0, false},
    {BW_GROUP_DUP, 1, 2, 2, 0, true},
    {BW_GROUP_RAID10, 4, 0, 2, 0, false},
    {BW_GROUP_RAID5, 3, 0, 1, 1, false},
    {BW_GROUP_RAID6, 4, 0, 1, 2, false},
    {BW_GROUP_RAID1C3, 3, 3, 3, 0, false},
    {BW_GROUP_RAID1C4, 4, 4, 4, 0, false},
};

static const struct profile *profile_of(uint64_t type)
{
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++)
        if ((type & BW_GROUP_PROFILE_MASK) == profiles[i].flag)
            return &profiles[i];
    iw_die("chunk type 0x%llx has no profile", (unsigned long long)type);
}

unsigned iw_minimum_devices(uint64_t profile)
{
    return profile_of(profile)->minimum_devices;
}

/* Stripes that hold different bytes. */
static unsigned data_stripes(const struct profile *profile, unsigned stripes)
{
    if (profile->parities)
        return stripes - profile->parities;
    return stripes / profile->copies;
}

/* Making chunks. */

/* A piece of a device that holds no superblock copy. */
static uint64_t take_extent(struct iw_image *image, struct iw_device *device)
{
    const uint64_t length = image->options.device_extent_length;
    if (!device->next)
        device->next = UINT64_C(1) << 20;
    for (unsigned copy = 1; copy <= BW_SUPERBLOCK_COPIES; copy++) {
        uint64_t superblock = iw_superblock_offset(copy);
        if (device->next < superblock + BW_STRIPE_LENGTH && superblock < device->next + length)
            device->next = superblock + BW_STRIPE_LENGTH;
    }
    uint64_t offset = device->next;
    device->next += length;
    device->used += length;
    if (device->size < device->next)
        device->size = device->next;
    return offset;
}

static unsigned stripes_of(const struct iw_image *image, const struct profile *profile)
{
    unsigned wanted =
        image->options.stripe_count ? image->options.stripe_count : image->device_count;
    unsigned stripes = profile->stripes ? profile->stripes : wanted;
    unsigned devices = profile->on_one_device ? 1 : stripes;
    if (profile->flag == BW_GROUP_RAID10)
        stripes &= ~1u;
    if (devices > image->device_count || stripes <= profile->parities || stripes < profile->copies)
        iw_die("%u devices do not do for profile 0x%llx", image->device_count,
               (unsigned long long)profile->flag);
    return stripes;
}

/* Each chunk starts on the device after that of the previous one. */
static void make_chunk(struct iw_image *image, uint64_t type)
{
    const struct profile *profile = profile_of(type);
    unsigned stripes = stripes_of(image, profile);
    image->chunks = iw_grow(image->chunks, image->chunk_count, sizeof *image->chunks);
    struct iw_chunk *chunk = &image->chunks[image->chunk_count];
    *chunk = (struct iw_chunk){
        .logical = image->next_logical,
        .length = image->options.device_extent_length * data_stripes(profile, stripes),
        .type = type,
        .stripe_count = (uint16_t)stripes,
        .sub_stripes = profile->flag == BW_GROUP_RAID10 ? 2 : 1,
    };
    for (unsigned i = 0; i < stripes; i++) {
        size_t device =
            (image->chunk_count + (profile->on_one_device ? 0 : i)) % image->device_count;
        chunk->stripes[i].device = (unsigned)device;
        chunk->stripes[i].offset = take_extent(image, &image->devices[device]);
    }
    image->next_logical += chunk->length + image->options.chunk_gap;
    image->chunk_count++;
}

static void make_chunks_of(struct iw_image *image, size_t count, uint64_t type)
{
    for (size_t i = 0; i < count; i++)
        make_chunk(image, type);
}

/** Lays out all chunks again. */
static void iw_make_chunks(struct iw_image *image, size_t system_chunks, size_t metadata_chunks)
{
    const struct iw_options *options = &image->options;
    const uint64_t mixed = options->mixed_groups ? BW_GROUP_DATA : 0;
    image->chunk_count = 0;
    image->next_logical = options->logical_base;
    for (unsigned i = 0; i < image->device_count; i++) {
        image->devices[i].next = image->devices[i].used = 0;
        image->devices[i].size = options->device_size;
    }
    make_chunks_of(image, options->data_chunks, BW_GROUP_DATA | options->data_profile);
    make_chunks_of(image, system_chunks, BW_GROUP_SYSTEM | options->system_profile);
    make_chunks_of(image, metadata_chunks, BW_GROUP_METADATA | mixed | options->profile);
}

size_t iw_chunk_count(const struct iw_image *image)
{
    return image->chunk_count;
}

const struct iw_chunk *iw_chunk(const struct iw_image *image, size_t index)
{
    return index < image->chunk_count ? &image->chunks[index] : NULL;
}

/* Describing chunks. */

void iw_fill_device_item(const struct iw_image *image, unsigned device,
                         struct bw_disk_device_item *item)
{
    const struct iw_device *from = &image->devices[device];
    *item = (struct bw_disk_device_item){
        .devid = bw_put64(from->devid),
        .total_bytes = bw_put64(from->size),
        .bytes_used = bw_put64(from->used),
        .io_align = bw_put32(image->options.sectorsize),
        .io_width = bw_put32(image->options.sectorsize),
        .sector_size = bw_put32(image->options.sectorsize),
    };
    iw_uuid(image, IW_UUID_DEVICE, from->devid, item->uuid);
    iw_metadata_uuid(image, item->fsid);
}

size_t iw_chunk_item(const struct iw_image *image, const struct iw_chunk *chunk, uint8_t *bytes)
{
    struct bw_disk_chunk *item = (void *)bytes;
    struct bw_disk_stripe *stripes = (void *)(item + 1);
    *item = (struct bw_disk_chunk){
        .length = bw_put64(chunk->length),
        .owner = bw_put64(BW_EXTENT_TREE),
        .stripe_length = bw_put64(BW_STRIPE_LENGTH),
        .type = bw_put64(chunk->type),
        .io_align = bw_put32(BW_STRIPE_LENGTH),
        .io_width = bw_put32(BW_STRIPE_LENGTH),
        .sector_size = bw_put32(image->options.sectorsize),
        .stripe_count = bw_put16(chunk->stripe_count),
        .sub_stripes = bw_put16(chunk->sub_stripes),
    };
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        uint64_t devid = image->devices[chunk->stripes[i].device].devid;
        stripes[i] =
            (struct bw_disk_stripe){bw_put64(devid), bw_put64(chunk->stripes[i].offset), {0}};
        iw_uuid(image, IW_UUID_DEVICE, devid, stripes[i].device_uuid);
    }
    return sizeof *item + chunk->stripe_count * sizeof *stripes;
}

static void describe_device_extents(struct iw_image *image, const struct iw_chunk *chunk)
{
    struct iw_disk_device_extent extent = {
        .chunk_tree = bw_put64(BW_CHUNK_TREE),
        .chunk_objectid = bw_put64(BW_FIRST_CHUNK),
        .chunk_offset = bw_put64(chunk->logical),
        .length = bw_put64(image->options.device_extent_length),
    };
    iw_uuid(image, IW_UUID_CHUNK_TREE, 0, extent.chunk_tree_uuid);
    for (unsigned i = 0; i < chunk->stripe_count; i++) {
        uint64_t devid = image->devices[chunk->stripes[i].device].devid;
        struct bw_key key = {devid, IW_DEVICE_EXTENT, chunk->stripes[i].offset};
        iw_generate(iw_find_tree(image, BW_DEVICE_TREE), key, &extent, sizeof extent);
    }
}

static void describe_chunk(struct iw_image *image, const struct iw_chunk *chunk)
{
    uint8_t bytes[sizeof(struct bw_disk_chunk) + IW_MAX_DEVICES * sizeof(struct bw_disk_stripe)];
    struct iw_disk_block_group group = {bw_put64(chunk->used), bw_put64(BW_FIRST_CHUNK),
                                        bw_put64(chunk->type)};
    size_t size = iw_chunk_item(image, chunk, bytes);
    iw_generate(iw_find_tree(image, BW_CHUNK_TREE),
                (struct bw_key){BW_FIRST_CHUNK, BW_CHUNK_ITEM, chunk->logical}, bytes, size);
    iw_generate(iw_find_tree(image, BW_EXTENT_TREE),
                (struct bw_key){chunk->logical, IW_BLOCK_GROUP_ITEM, chunk->length}, &group,
                sizeof group);
    describe_device_extents(image, chunk);
}

/** The items that describe the chunks, in the chunk, device and extent trees. */
static void iw_describe_chunks(struct iw_image *image)
{
    struct iw_tree *chunk_tree = iw_find_tree(image, BW_CHUNK_TREE);
    iw_remove_generated(chunk_tree);
    iw_remove_generated(iw_find_tree(image, BW_DEVICE_TREE));
    iw_remove_generated(iw_find_tree(image, BW_EXTENT_TREE));
    for (unsigned i = 0; i < image->device_count; i++) {
        struct bw_disk_device_item item;
        iw_fill_device_item(image, i, &item);
        iw_generate(chunk_tree,
                    (struct bw_key){BW_DEVICE_ITEMS, BW_DEVICE_ITEM, image->devices[i].devid},
                    &item, sizeof item);
    }
    for (size_t i = 0; i < image->chunk_count; i++)
        describe_chunk(image, &image->chunks[i]);
}

/* From logical addresses to devices. */

static const struct iw_chunk *iw_find_chunk(const struct iw_image *image, uint64_t logical)
{
    for (size_t i = 0; i < image->chunk_count; i++)
        if (logical >= image->chunks[i].logical &&
            logical - image->chunks[i].logical < image->chunks[i].length)
            return &image->chunks[i];
    iw_die("no chunk holds logical address %llu", (unsigned long long)logical);
}

static struct iw_place place(const struct iw_chunk *chunk, uint64_t stripe, uint64_t offset)
{
    return (struct iw_place){chunk->stripes[stripe].device, chunk->stripes[stripe].offset + offset};
}

/* Profiles whose stripes are all the same. */
static void map_mirrored(const struct iw_chunk *chunk, uint64_t offset, struct iw_mapping *mapping)
{
    mapping->copies = chunk->stripe_count;
    mapping->length = chunk->length - offset;
    for (unsigned i = 0; i < mapping->copies; i++)
        mapping->copy[i] = place(chunk, i, offset);
}

static void map_striped(const struct iw_chunk *chunk, const struct profile *profile,
                        uint64_t offset, struct iw_mapping *mapping)
{
    const unsigned stripes = chunk->stripe_count, data = data_stripes(profile, stripes);
    const uint64_t number = offset / BW_STRIPE_LENGTH, inside = offset % BW_STRIPE_LENGTH;
    const uint64_t row = number / data, index = number % data,
                   below = row * BW_STRIPE_LENGTH + inside;
    mapping->length = BW_STRIPE_LENGTH - inside;
    mapping->copies = profile->copies;
    mapping->parities = profile->parities;
    mapping->data_index = (unsigned)index;
    if (!profile->parities) {
        for (unsigned i = 0; i < profile->copies; i++)
            mapping->copy[i] = place(chunk, index * profile->copies + i, below);
        return;
    }
    mapping->copy[0] = place(chunk, (index + row) % stripes, below);
    for (unsigned i = 0; i < profile->parities; i++)
        mapping->parity[i] = place(chunk, (data + i + row) % stripes, below);
}

void iw_map(const struct iw_image *image, uint64_t logical, struct iw_mapping *mapping)
{
    const struct iw_chunk *chunk = iw_find_chunk(image, logical);
    const struct profile *profile = profile_of(chunk->type);
    *mapping = (struct iw_mapping){0};
    if (profile->stripes)
        map_mirrored(chunk, logical - chunk->logical, mapping);
    else
        map_striped(chunk, profile, logical - chunk->logical, mapping);
}

/* Storing. */

static void multiply_by_power_of_two(uint8_t *bytes, size_t length, unsigned power)
{
    for (size_t i = 0; i < length; i++)
        for (unsigned n = 0; n < power; n++)
            bytes[i] = (uint8_t)(bytes[i] << 1 ^ (bytes[i] & 0x80 ? 0x1d : 0));
}

static void update_parity(struct iw_image *image, const struct iw_mapping *mapping,
                          const uint8_t *old, const uint8_t *bytes, size_t length)
{
    uint8_t change[BW_STRIPE_LENGTH], parity[BW_STRIPE_LENGTH];
    for (size_t i = 0; i < length; i++)
        change[i] = bytes[i] ^ (old ? old[i] : 0);
    for (unsigned which = 0; which < mapping->parities; which++) {
        const struct iw_place *at = &mapping->parity[which];
        if (which == 1)
            multiply_by_power_of_two(change, length, mapping->data_index);
        iw_device_read(image, at->device, at->offset, parity, length);
        for (size_t i = 0; i < length; i++)
            parity[i] ^= change[i];
        iw_device_write(image, at->device, at->offset, parity, length);
    }
}

void iw_store(struct iw_image *image, uint64_t logical, const uint8_t *old, const uint8_t *bytes,
              size_t length)
{
    while (length) {
        struct iw_mapping mapping;
        iw_map(image, logical, &mapping);
        size_t piece = mapping.length < length ? (size_t)mapping.length : length;
        for (unsigned i = 0; i < mapping.copies; i++)
            iw_device_write(image, mapping.copy[i].device, mapping.copy[i].offset, bytes, piece);
        if (mapping.parities)
            update_parity(image, &mapping, old, bytes, piece);
        logical += piece;
        bytes += piece;
        old = old ? old + piece : NULL;
        length -= piece;
    }
}

/*
 * The tree blocks in the extent tree: a METADATA_ITEM for each, with a reference for every tree
 * that contains it, or for the node above it if the tree has full references. The extent tree also
 * describes its own blocks, so the layout is repeated until it no longer changes.
 */

enum {
    METADATA_ITEM = 169,
    TREE_BLOCK_REF = 176,
    SHARED_BLOCK_REF = 182,
    TREE_BLOCK_FLAG = 2,
    FULL_BACKREF_FLAG = 256,
};

struct disk_extent_item {
    bw_le64 references;
    bw_le64 generation;
    bw_le64 flags;
};

struct disk_inline_ref {
    uint8_t type;
    bw_le64 number;
};

struct block_reference {
    uint8_t type;
    uint64_t number; /* of a tree, or the address of a node */
};

struct block_references {
    struct block_reference *items;
    size_t count;
};

static void add_reference(struct block_references *references, uint8_t type, uint64_t number)
{
    references->items = iw_grow(references->items, references->count, sizeof *references->items);
    references->items[references->count++] = (struct block_reference){type, number};
}

/* A block belongs to the trees of the nodes that point at it; a root to the tree it is the root of.
 */
static struct block_references *find_references(const struct iw_image *image)
{
    struct block_references *references = iw_zalloc(image->block_count * sizeof *references);
    for (size_t i = 0; i < image->tree_count; i++)
        add_reference(&references[image->trees[i]->root], TREE_BLOCK_REF, image->trees[i]->id);
    for (size_t i = 0; i < image->block_count; i++) {
        const struct iw_block_state *node = &image->blocks[i];
        const bool full = node->tree->has_full_references && i != node->tree->root;
        for (size_t child = 0; node->children && child < node->block.item_count; child++)
            add_reference(&references[node->children[child]],
                          full ? SHARED_BLOCK_REF : TREE_BLOCK_REF,
                          full ? node->block.logical : node->block.tree);
    }
    return references;
}

static int by_type_then_descending(const void *a, const void *b)
{
    const struct block_reference *left = a, *right = b;
    if (left->type != right->type)
        return left->type < right->type ? -1 : 1;
    return (left->number < right->number) - (left->number > right->number);
}

static struct iw_item make_item(const struct iw_block *block, bool full,
                                const struct block_references *references)
{
    struct iw_item result = {.key = {block->logical, METADATA_ITEM, block->level}};
    result.size =
        sizeof(struct disk_extent_item) + references->count * sizeof(struct disk_inline_ref);
    result.bytes = iw_zalloc(result.size);
    struct disk_extent_item *item = (void *)result.bytes;
    struct disk_inline_ref *refs = (void *)(item + 1);
    item->references = bw_put64(references->count);
    item->generation = bw_put64(block->generation);
    item->flags = bw_put64(TREE_BLOCK_FLAG | (full ? FULL_BACKREF_FLAG : 0u));
    qsort(references->items, references->count, sizeof *references->items, by_type_then_descending);
    for (size_t i = 0; i < references->count; i++)
        refs[i] = (struct disk_inline_ref){references->items[i].type,
                                           bw_put64(references->items[i].number)};
    return result;
}

static bool is_same(const struct iw_account *a, const struct iw_account *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (bw_key_compare(&a->items[i].key, &b->items[i].key) != 0 ||
            a->items[i].size != b->items[i].size ||
            memcmp(a->items[i].bytes, b->items[i].bytes, a->items[i].size) != 0)
            return false;
    return true;
}

static void iw_free_account(struct iw_account *account)
{
    for (size_t i = 0; i < account->count; i++)
        free(account->items[i].bytes);
    free(account->items);
    *account = (struct iw_account){0};
}

/** Updates the items for the current blocks; false if they have changed. */
static bool iw_take_account(struct iw_image *image)
{
    struct block_references *references = find_references(image);
    struct iw_account account = {iw_zalloc(image->block_count * sizeof *account.items),
                                 image->block_count};
    for (size_t i = 0; i < image->block_count; i++) {
        account.items[i] = make_item(&image->blocks[i].block,
                                     image->blocks[i].tree->has_full_references, &references[i]);
        free(references[i].items);
    }
    free(references);
    bool stayed = is_same(&image->account, &account);
    iw_free_account(&image->account);
    image->account = account;
    return stayed;
}

/** Puts the account in the extent tree. */
static void iw_put_account(struct iw_image *image)
{
    struct iw_tree *tree = iw_find_tree(image, BW_EXTENT_TREE);
    for (size_t i = 0; i < image->account.count; i++)
        iw_generate(tree, image->account.items[i].key, image->account.items[i].bytes,
                    image->account.items[i].size);
}

/*
 * The layout: items are grouped into leaves, leaves into nodes, and every block gets a logical
 * address.
 *
 * The chunk, device and extent trees describe chunks and blocks, which depend on how large those
 * trees are; so everything is laid out again until nothing changes any more. Snapshots take over
 * the blocks of their origin that hold the very same things, from the leaves up, as copy on write
 * would have left them.
 */

#define NONE SIZE_MAX

static void build_tree(struct iw_image *image, struct iw_tree *tree);

/* Addresses. */

/* Address of the nth block of the chunks that have a type bit; 0 if they are too few. */
static uint64_t nth_address(struct iw_image *image, uint64_t type, uint64_t number)
{
    const uint64_t step = (uint64_t)image->options.block_step * image->options.nodesize;
    for (size_t i = 0; i < image->chunk_count; i++) {
        struct iw_chunk *chunk = &image->chunks[i];
        if (!(chunk->type & type))
            continue;
        uint64_t places = chunk->length / step;
        if (number < places) {
            chunk->used += image->options.nodesize;
            return chunk->logical + number * step;
        }
        number -= places;
    }
    return 0;
}

static uint64_t allocate(struct iw_image *image, const struct iw_tree *tree)
{
    if (tree->id == BW_CHUNK_TREE)
        return nth_address(image, BW_GROUP_SYSTEM, image->system_blocks++);
    return nth_address(image, BW_GROUP_METADATA, image->metadata_blocks++);
}

/* Blocks. */

static struct iw_block_state *new_block(struct iw_image *image, struct iw_tree *tree,
                                        unsigned level)
{
    image->blocks = iw_grow(image->blocks, image->block_count, sizeof *image->blocks);
    struct iw_block_state *state = &image->blocks[image->block_count++];
    *state = (struct iw_block_state){
        .tree = tree,
        .block =
            {tree->id, level, allocate(image, tree), tree->generation, 0, {0, 0, 0}, {0, 0, 0}},
    };
    return state;
}

static void push(struct iw_level *level, size_t block)
{
    level->blocks = iw_grow(level->blocks, level->count, sizeof *level->blocks);
    level->blocks[level->count++] = block;
}

/* The block of the origin on a level that starts with a key and may be taken over: any but the
 * root. */
static size_t find_in_origin(const struct iw_image *image, const struct iw_tree *origin,
                             unsigned level, struct bw_key key)
{
    const struct iw_level *blocks = &origin->levels[level];
    size_t low = 0, high = blocks->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bw_key_compare(&image->blocks[blocks->blocks[middle]].block.first_key, &key);
        if (order == 0)
            return blocks->blocks[middle] == origin->root ? NONE : blocks->blocks[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NONE;
}

/* Leaves. */

static bool same_item(const struct iw_item *a, const struct iw_item *b)
{
    return bw_key_compare(&a->key, &b->key) == 0 && a->size == b->size &&
           (a->size == 0 || memcmp(a->bytes, b->bytes, a->size) == 0);
}

/* The leaf of the origin that holds exactly the items from `first` on. */
static size_t find_shared_leaf(const struct iw_image *image, const struct iw_tree *tree,
                               const struct iw_tree *origin, size_t first)
{
    if (!origin || first == tree->count)
        return NONE;
    size_t index = find_in_origin(image, origin, 0, tree->items[first]->key);
    if (index == NONE)
        return NONE;
    const struct iw_block_state *leaf = &image->blocks[index];
    if (leaf->block.item_count > tree->count - first)
        return NONE;
    for (size_t i = 0; i < leaf->block.item_count; i++)
        if (!same_item(tree->items[first + i], leaf->tree->items[leaf->first_item + i]))
            return NONE;
    return index;
}

/* How many items from `first` on go into a new leaf. */
static size_t leaf_take(const struct iw_image *image, const struct iw_tree *tree,
                        const struct iw_tree *origin, size_t first)
{
    size_t space = iw_leaf_space(image), taken = 0;
    while (first + taken < tree->count) {
        size_t size = tree->items[first + taken]->size + sizeof(struct bw_disk_item);
        bool full = size > space || (tree->items_per_leaf && taken == tree->items_per_leaf);
        if (full || (taken && find_shared_leaf(image, tree, origin, first + taken) != NONE))
            break;
        space -= size;
        taken++;
    }
    if (!taken && first < tree->count)
        iw_die("tree %lld: an item of %zu bytes does not fit a leaf", (long long)tree->id,
               tree->items[first]->size);
    return taken;
}

static void build_leaves(struct iw_image *image, struct iw_tree *tree, const struct iw_tree *origin)
{
    size_t first = 0;
    do {
        size_t index = find_shared_leaf(image, tree, origin, first);
        if (index == NONE) {
            size_t taken = leaf_take(image, tree, origin, first);
            struct iw_block_state *leaf = new_block(image, tree, 0);
            leaf->first_item = first;
            leaf->block.item_count = (uint32_t)taken;
            if (taken) {
                leaf->block.first_key = tree->items[first]->key;
                leaf->block.last_key = tree->items[first + taken - 1]->key;
            }
            index = image->block_count - 1;
        }
        push(&tree->levels[0], index);
        first += image->blocks[index].block.item_count;
    } while (first < tree->count);
}

/* Nodes. */

/* The node of the origin that has exactly the children from `first` of the level below on. */
static size_t find_shared_node(const struct iw_image *image, const struct iw_level *below,
                               const struct iw_tree *origin, unsigned level, size_t first)
{
    if (!origin)
        return NONE;
    size_t index =
        find_in_origin(image, origin, level, image->blocks[below->blocks[first]].block.first_key);
    if (index == NONE)
        return NONE;
    const struct iw_block_state *node = &image->blocks[index];
    if (node->block.item_count > below->count - first ||
        memcmp(node->children, below->blocks + first,
               node->block.item_count * sizeof *node->children) != 0)
        return NONE;
    return index;
}

static size_t node_take(const struct iw_image *image, const struct iw_tree *tree,
                        const struct iw_tree *origin, unsigned level, size_t first)
{
    const struct iw_level *below = &tree->levels[level - 1];
    size_t most = iw_leaf_space(image) / sizeof(struct bw_disk_key_pointer), taken = 1;
    if (tree->pointers_per_node && tree->pointers_per_node < most)
        most = tree->pointers_per_node;
    while (taken < most && first + taken < below->count &&
           find_shared_node(image, below, origin, level, first + taken) == NONE)
        taken++;
    return taken;
}

static void build_level(struct iw_image *image, struct iw_tree *tree, const struct iw_tree *origin,
                        unsigned level)
{
    const struct iw_level *below = &tree->levels[level - 1];
    if (level >= BW_MAX_LEVEL)
        iw_die("tree %lld gets more than %d levels", (long long)tree->id, BW_MAX_LEVEL);
    for (size_t first = 0; first < below->count;) {
        size_t index = find_shared_node(image, below, origin, level, first);
        if (index == NONE) {
            size_t taken = node_take(image, tree, origin, level, first);
            struct iw_block_state *node = new_block(image, tree, level);
            node->children = iw_zalloc(taken * sizeof *node->children);
            memcpy(node->children, below->blocks + first, taken * sizeof *node->children);
            node->block.item_count = (uint32_t)taken;
            node->block.first_key = image->blocks[node->children[0]].block.first_key;
            node->block.last_key = image->blocks[node->children[taken - 1]].block.first_key;
            index = image->block_count - 1;
        }
        push(&tree->levels[level], index);
        first += image->blocks[index].block.item_count;
    }
}

/* Trees. */

static void point_at_origin(struct iw_tree *tree, const struct iw_tree *origin)
{
    tree->root = origin->root;
    tree->level = origin->level;
    for (unsigned level = 0; level <= origin->level; level++)
        for (size_t i = 0; i < origin->levels[level].count; i++)
            push(&tree->levels[level], origin->levels[level].blocks[i]);
}

static void build_tree(struct iw_image *image, struct iw_tree *tree)
{
    if (tree->laid_out)
        return;
    tree->laid_out = true;
    struct iw_tree *origin = tree->origin ? iw_find_tree(image, tree->origin) : NULL;
    if (origin)
        build_tree(image, origin);
    if (tree->alias) {
        point_at_origin(tree, origin);
        return;
    }
    build_leaves(image, tree, origin);
    tree->level = 0;
    while (tree->levels[tree->level].count > 1 || tree->level < tree->minimum_level) {
        tree->level++;
        build_level(image, tree, origin, tree->level);
    }
    tree->root = tree->levels[tree->level].blocks[0];
}

/* Forgets blocks and their order. */
static void clear_layout(struct iw_image *image)
{
    for (size_t i = 0; i < image->block_count; i++) {
        free(image->blocks[i].children);
        free(image->blocks[i].edited);
    }
    image->block_count = image->metadata_blocks = image->system_blocks = 0;
    for (size_t i = 0; i < image->tree_count; i++) {
        image->trees[i]->laid_out = false;
        for (unsigned level = 0; level < BW_MAX_LEVEL; level++)
            image->trees[i]->levels[level].count = 0;
    }
}

void iw_free_layout(struct iw_image *image)
{
    clear_layout(image);
    iw_free_account(&image->account);
    free(image->blocks);
    image->blocks = NULL;
    for (size_t i = 0; i < image->tree_count; i++)
        for (unsigned level = 0; level < BW_MAX_LEVEL; level++)
            free(image->trees[i]->levels[level].blocks);
}

/* The blocks of a tree, with shared ones. */
static uint64_t blocks_of(const struct iw_tree *tree)
{
    uint64_t count = 0;
    for (unsigned level = 0; level <= tree->level; level++)
        count += tree->levels[level].count;
    return count;
}

/* Root items say where the trees are, block groups how much of them is used. */
static void complete_items(struct iw_image *image)
{
    for (size_t i = 0; i < image->tree_count; i++) {
        const struct iw_tree *tree = image->trees[i];
        struct iw_item *item = iw_find_root_item(image, tree->id);
        if (!item || item->size < offsetof(struct bw_disk_root_item, generation_v2))
            continue;
        const struct iw_block *root = &image->blocks[tree->root].block;
        struct bw_disk_root_item *disk = (void *)item->bytes;
        disk->bytenr = bw_put64(root->logical);
        disk->level = (uint8_t)root->level;
        disk->generation = bw_put64(root->generation);
        disk->bytes_used = bw_put64(blocks_of(tree) * image->options.nodesize);
        if (item->size >= sizeof *disk)
            disk->generation_v2 = disk->generation;
    }
    for (size_t i = 0; i < image->chunk_count; i++) {
        const struct iw_chunk *chunk = &image->chunks[i];
        struct bw_key key = {chunk->logical, IW_BLOCK_GROUP_ITEM, chunk->length};
        struct iw_item *item = iw_find_item(iw_find_tree(image, BW_EXTENT_TREE), key);
        if (item && item->generated)
            ((struct iw_disk_block_group *)item->bytes)->used = bw_put64(chunk->used);
    }
}

/* Chunks that a number of blocks takes. All chunks of a type are of one length. */
static size_t chunks_for(const struct iw_image *image, uint64_t type, size_t blocks)
{
    const uint64_t step = (uint64_t)image->options.block_step * image->options.nodesize;
    for (size_t i = 0; i < image->chunk_count; i++)
        if (image->chunks[i].type & type) {
            uint64_t places = image->chunks[i].length / step;
            if (!places)
                iw_die("chunks of %llu bytes are too short",
                       (unsigned long long)image->chunks[i].length);
            return (size_t)((blocks + places - 1) / places);
        }
    return 1;
}

/* One attempt with a number of chunks; they may turn out to be too few. */
static void try_layout(struct iw_image *image, size_t system_chunks, size_t metadata_chunks)
{
    clear_layout(image);
    iw_make_chunks(image, system_chunks, metadata_chunks);
    iw_describe_chunks(image);
    iw_put_account(image);
    for (size_t i = 0; i < image->tree_count; i++)
        build_tree(image, image->trees[i]);
}

void iw_lay_out(struct iw_image *image)
{
    size_t system = 1, metadata = 1;
    for (unsigned attempt = 0; attempt < 50; attempt++) {
        try_layout(image, system, metadata);
        size_t more_system = chunks_for(image, BW_GROUP_SYSTEM, image->system_blocks);
        size_t more_metadata = chunks_for(image, BW_GROUP_METADATA, image->metadata_blocks);
        bool fits = more_system <= system && more_metadata <= metadata;
        if (iw_take_account(image) && fits) {
            complete_items(image);
            return;
        }
        system = more_system > system ? more_system : system;
        metadata = more_metadata > metadata ? more_metadata : metadata;
    }
    iw_die("the layout does not settle: are the leaves of the extent tree too small?");
}
