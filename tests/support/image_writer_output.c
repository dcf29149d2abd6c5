/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bytes: tree blocks made from items and pointers, superblocks, and the devices they are stored
 * on, which are sparse files or memory; and what tests do to them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image_writer_internal.h"

/* Tree blocks. */

static void iw_seal(const struct iw_image *image, uint8_t *bytes, size_t length)
{
    uint8_t checksum[BW_CSUM_SIZE];
    bw_checksum_compute(image->options.checksum_type, bytes + BW_CSUM_SIZE, length - BW_CSUM_SIZE,
                        checksum);
    memcpy(bytes, checksum, sizeof checksum);
}

static void build_header(const struct iw_image *image, const struct iw_block *block, uint8_t *bytes)
{
    const uint64_t written = 1, backref_revision = UINT64_C(1) << 56;
    struct bw_disk_header *header = (void *)bytes;
    *header = (struct bw_disk_header){
        .bytenr = bw_put64(block->logical),
        .flags = bw_put64(written | backref_revision),
        .generation = bw_put64(block->generation),
        .owner = bw_put64(block->tree),
        .item_count = bw_put32(block->item_count),
        .level = (uint8_t)block->level,
    };
    iw_metadata_uuid(image, header->fsid);
    iw_uuid(image, IW_UUID_CHUNK_TREE, 0, header->chunk_tree_uuid);
}

/* Items grow from the front, their bytes from the back. */
static void build_leaf(const struct iw_image *image, const struct iw_block_state *state,
                       uint8_t *bytes)
{
    struct bw_disk_item *items = (void *)(bytes + sizeof(struct bw_disk_header));
    size_t end = iw_leaf_space(image);
    for (size_t i = 0; i < state->block.item_count; i++) {
        const struct iw_item *item = state->tree->items[state->first_item + i];
        end -= item->size;
        items[i] = (struct bw_disk_item){iw_disk_key(item->key), bw_put32((uint32_t)end),
                                         bw_put32((uint32_t)item->size)};
        if (item->size)
            memcpy(bytes + sizeof(struct bw_disk_header) + end, item->bytes, item->size);
    }
}

static void build_node(const struct iw_image *image, const struct iw_block_state *state,
                       uint8_t *bytes)
{
    struct bw_disk_key_pointer *pointers = (void *)(bytes + sizeof(struct bw_disk_header));
    for (size_t i = 0; i < state->block.item_count; i++) {
        const struct iw_block *child = &image->blocks[state->children[i]].block;
        pointers[i] = (struct bw_disk_key_pointer){
            iw_disk_key(child->first_key), bw_put64(child->logical), bw_put64(child->generation)};
    }
}

/* image_writer_output.c */
static void iw_build_block(const struct iw_image *image, const struct iw_block_state *state,
                           uint8_t *bytes)
{
    memset(bytes, 0, image->options.nodesize);
    build_header(image, &state->block, bytes);
    if (state->block.level)
        build_node(image, state, bytes);
    else
        build_leaf(image, state, bytes);
    iw_seal(image, bytes, image->options.nodesize);
}

/* Superblocks. */

uint64_t iw_superblock_offset(unsigned copy)
{
    static const uint64_t offsets[BW_SUPERBLOCK_COPIES] = {UINT64_C(64) << 10, UINT64_C(64) << 20,
                                                           UINT64_C(256) << 30};
    if (copy < 1 || copy > BW_SUPERBLOCK_COPIES)
        iw_die("no superblock copy %u", copy);
    return offsets[copy - 1];
}

static uint64_t incompat_flags(const struct iw_image *image)
{
    enum {
        MIXED_BACKREF = 1 << 0,
        MIXED_GROUPS = 1 << 2,
        BIG_METADATA = 1 << 5,
        EXTENDED_IREF = 1 << 6,
        RAID56 = 1 << 7,
        SKINNY_METADATA = 1 << 8,
        NO_HOLES = 1 << 9,
        METADATA_UUID = 1 << 10,
        RAID1C34 = 1 << 11,
    };
    const struct iw_options *options = &image->options;
    uint64_t profiles = options->profile | options->system_profile |
                        (options->data_chunks ? options->data_profile : 0);
    uint64_t flags =
        MIXED_BACKREF | EXTENDED_IREF | SKINNY_METADATA | NO_HOLES | options->incompat_flags;
    flags |= options->mixed_groups ? MIXED_GROUPS : 0;
    flags |= options->nodesize > 4096 ? BIG_METADATA : 0;
    flags |= options->separate_metadata_uuid ? METADATA_UUID : 0;
    flags |= profiles & (BW_GROUP_RAID5 | BW_GROUP_RAID6) ? RAID56 : 0;
    flags |= profiles & (BW_GROUP_RAID1C3 | BW_GROUP_RAID1C4) ? RAID1C34 : 0;
    return flags;
}

/* The system chunks with their keys: what it takes to read the chunk tree. */
static size_t fill_system_chunks(const struct iw_image *image, uint8_t *array)
{
    size_t size = 0;
    for (size_t i = 0; i < image->chunk_count; i++) {
        const struct iw_chunk *chunk = &image->chunks[i];
        if (!(chunk->type & BW_GROUP_SYSTEM))
            continue;
        struct bw_disk_key key =
            iw_disk_key((struct bw_key){BW_FIRST_CHUNK, BW_CHUNK_ITEM, chunk->logical});
        size_t needed = sizeof key + sizeof(struct bw_disk_chunk) +
                        chunk->stripe_count * sizeof(struct bw_disk_stripe);
        if (size + needed > BW_SYSTEM_CHUNK_ARRAY_SIZE)
            iw_die("the system chunks do not fit the superblock");
        memcpy(array + size, &key, sizeof key);
        size += sizeof key;
        size += iw_chunk_item(image, chunk, array + size);
    }
    return size;
}

static void fill_sums(const struct iw_image *image, struct bw_disk_superblock *super)
{
    uint64_t total = 0, used = 0;
    for (unsigned i = 0; i < image->device_count; i++)
        total += image->devices[i].size;
    for (size_t i = 0; i < image->chunk_count; i++)
        used += image->chunks[i].used;
    super->total_bytes = bw_put64(total);
    super->bytes_used = bw_put64(used);
    super->device_count = bw_put64(image->device_count);
}

static void fill_roots(const struct iw_image *image, struct bw_disk_superblock *super)
{
    const struct iw_block *root = iw_root_block(image, BW_ROOT_TREE);
    const struct iw_block *chunk_root = iw_root_block(image, BW_CHUNK_TREE);
    super->generation = bw_put64(image->options.generation);
    super->root = bw_put64(root->logical);
    super->root_level = (uint8_t)root->level;
    super->chunk_root = bw_put64(chunk_root->logical);
    super->chunk_root_level = (uint8_t)chunk_root->level;
    super->chunk_root_generation = bw_put64(chunk_root->generation);
}

#define FILL_BACKUP(name, tree)                                    \
    do {                                                           \
        const struct iw_block *block = iw_root_block(image, tree); \
        backup->name = bw_put64(block->logical);                   \
        backup->name##_generation = bw_put64(block->generation);   \
        backup->name##_level = (uint8_t)block->level;              \
    } while (0)

static void fill_backup(const struct iw_image *image, struct bw_disk_superblock *super)
{
    struct bw_disk_backup_root *backup =
        &super->backup_roots[image->options.generation % BW_BACKUP_ROOTS];
    FILL_BACKUP(tree_root, BW_ROOT_TREE);
    FILL_BACKUP(chunk_root, BW_CHUNK_TREE);
    FILL_BACKUP(extent_root, BW_EXTENT_TREE);
    FILL_BACKUP(fs_root, BW_TOP_SUBVOLUME);
    FILL_BACKUP(device_root, BW_DEVICE_TREE);
    FILL_BACKUP(csum_root, BW_CSUM_TREE);
    backup->total_bytes = super->total_bytes;
    backup->bytes_used = super->bytes_used;
    backup->device_count = super->device_count;
}

static void build_superblock(const struct iw_image *image, unsigned device,
                             struct bw_disk_superblock *super)
{
    const struct iw_options *options = &image->options;
    *super = (struct bw_disk_superblock){
        .flags = bw_put64(1), /* written */
        .magic = bw_put64(BW_SUPERBLOCK_MAGIC),
        .root_dir_objectid = bw_put64(BW_ROOT_TREE_DIR),
        .sectorsize = bw_put32(options->sectorsize),
        .nodesize = bw_put32(options->nodesize),
        .leafsize = bw_put32(options->nodesize),
        .stripesize = bw_put32(options->sectorsize),
        .incompat_flags = bw_put64(incompat_flags(image)),
        .csum_type = bw_put16((uint16_t)options->checksum_type),
        .cache_generation = bw_put64(UINT64_MAX),
    };
    iw_uuid(image, IW_UUID_PUBLIC, 0, super->fsid);
    if (options->separate_metadata_uuid)
        iw_metadata_uuid(image, super->metadata_uuid);
    if (options->label)
        memcpy(super->label, options->label, strnlen(options->label, sizeof super->label - 1));
    fill_sums(image, super);
    fill_roots(image, super);
    fill_backup(image, super);
    iw_fill_device_item(image, device, &super->device);
    super->system_chunk_array_size =
        bw_put32((uint32_t)fill_system_chunks(image, super->system_chunk_array));
}

static void write_superblocks(struct iw_image *image, unsigned device)
{
    struct bw_disk_superblock super;
    build_superblock(image, device, &super);
    for (unsigned copy = 1; copy <= BW_SUPERBLOCK_COPIES; copy++) {
        uint64_t offset = iw_superblock_offset(copy);
        if (offset + sizeof super > image->devices[device].size)
            break;
        super.bytenr = bw_put64(offset);
        iw_seal(image, (uint8_t *)&super, sizeof super);
        iw_device_write(image, device, offset, &super, sizeof super);
    }
}

/* Devices. */

void iw_device_read(const struct iw_image *image, unsigned device, uint64_t offset, void *bytes,
                    size_t length)
{
    size_t done = 0;
    while (image->devices[device].fd >= 0 && done < length) {
        ssize_t got = pread(image->devices[device].fd, (uint8_t *)bytes + done, length - done,
                            (off_t)(offset + done));
        if (got < 0)
            iw_die("reading device %u at %llu failed", device, (unsigned long long)offset);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    memset((uint8_t *)bytes + done, 0, length - done);
}

void iw_device_write(struct iw_image *image, unsigned device, uint64_t offset, const void *bytes,
                     size_t length)
{
    if (image->devices[device].fd < 0)
        return;
    if (pwrite(image->devices[device].fd, bytes, length, (off_t)offset) != (ssize_t)length)
        iw_die("writing device %u at %llu failed", device, (unsigned long long)offset);
}

static void write_blocks(struct iw_image *image)
{
    uint8_t *bytes = iw_zalloc(image->options.nodesize);
    for (size_t i = 0; i < image->block_count; i++) {
        iw_build_block(image, &image->blocks[i], bytes);
        iw_store(image, image->blocks[i].block.logical, NULL, bytes, image->options.nodesize);
    }
    free(bytes);
}

static void write_devices(struct iw_image *image)
{
    image->written = true;
    for (unsigned i = 0; i < image->device_count; i++)
        if (ftruncate(image->devices[i].fd, (off_t)image->devices[i].size) < 0)
            iw_die("device %u can not have %llu bytes", i,
                   (unsigned long long)image->devices[i].size);
    write_blocks(image);
    for (unsigned i = 0; i < image->device_count; i++)
        write_superblocks(image, i);
}

static void begin_writing(struct iw_image *image)
{
    if (image->written)
        iw_die("the image is written already");
    iw_lay_out(image);
}

static void set_path(struct iw_device *device, const char *directory, const char *name)
{
    size_t size = strlen(directory) + strlen(name) + 2;
    device->path = iw_zalloc(size);
    snprintf(device->path, size, "%s/%s", directory, name);
}

void iw_write_memory(struct iw_image *image)
{
    begin_writing(image);
    for (unsigned i = 0; i < image->device_count; i++) {
        struct iw_device *device = &image->devices[i];
        char name[32];
        device->in_memory = true;
        device->fd = memfd_create("btrfs-device", 0);
        if (device->fd < 0)
            iw_die("no memory device");
        snprintf(name, sizeof name, "%d", device->fd);
        set_path(device, "/proc/self/fd", name);
    }
    write_devices(image);
}

void iw_write_files(struct iw_image *image, const char *directory)
{
    begin_writing(image);
    for (unsigned i = 0; i < image->device_count; i++) {
        struct iw_device *device = &image->devices[i];
        char name[48];
        snprintf(name, sizeof name, "dev%llu.img", (unsigned long long)device->devid);
        set_path(device, directory, name);
        device->fd = open(device->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (device->fd < 0)
            iw_die("%s can not be made", device->path);
    }
    write_devices(image);
}

/*
 * Changes of a written image by tests: finding blocks and their copies, and damaging or replacing
 * them.
 *
 * Only the devices are damaged. The bytes of a rewritten block are kept as well, because parity is
 * updated by the difference between the old valid bytes and the new ones.
 */

/* Devices. */

unsigned iw_device_count(const struct iw_image *image)
{
    return image->device_count;
}

static struct iw_device *get_device(const struct iw_image *image, unsigned device)
{
    if (device >= image->device_count)
        iw_die("no device %u", device);
    return (struct iw_device *)&image->devices[device];
}

uint64_t iw_devid(const struct iw_image *image, unsigned device)
{
    return get_device(image, device)->devid;
}

const char *iw_path(const struct iw_image *image, unsigned device)
{
    return get_device(image, device)->path;
}

unsigned iw_paths_of(const struct iw_image *image, const char *paths[static IW_MAX_DEVICES])
{
    unsigned count = 0;
    for (unsigned i = 0; i < image->device_count; i++)
        if (image->devices[i].path)
            paths[count++] = image->devices[i].path;
    return count;
}

uint64_t iw_device_size(const struct iw_image *image, unsigned device)
{
    return get_device(image, device)->size;
}

void iw_truncate_device(struct iw_image *image, unsigned device, uint64_t size)
{
    if (ftruncate(get_device(image, device)->fd, (off_t)size) < 0)
        iw_die("device %u can not be truncated", device);
}

void iw_remove_device(struct iw_image *image, unsigned index)
{
    struct iw_device *device = get_device(image, index);
    if (device->fd < 0)
        iw_die("device %u is not there", index);
    close(device->fd);
    if (!device->in_memory)
        unlink(device->path);
    device->fd = -1;
    free(device->path);
    device->path = NULL;
}

/* Looking up blocks. */

size_t iw_block_count(const struct iw_image *image)
{
    return image->block_count;
}

const struct iw_block *iw_block(const struct iw_image *image, size_t index)
{
    return index < image->block_count ? &image->blocks[index].block : NULL;
}

static const struct iw_tree *laid_out_tree(const struct iw_image *image, uint64_t id)
{
    const struct iw_tree *tree = iw_find_tree(image, id);
    if (!image->block_count)
        iw_die("the image is not written yet");
    if (!tree)
        iw_die("no tree %lld", (long long)id);
    return tree;
}

const struct iw_block *iw_block_find(const struct iw_image *image, uint64_t tree_id, unsigned level,
                                     size_t nth)
{
    const struct iw_tree *tree = laid_out_tree(image, tree_id);
    if (level >= BW_MAX_LEVEL || nth >= tree->levels[level].count)
        return NULL;
    return &image->blocks[tree->levels[level].blocks[nth]].block;
}

const struct iw_block *iw_block_of_key(const struct iw_image *image, uint64_t tree_id,
                                       struct bw_key key)
{
    const struct iw_tree *tree = laid_out_tree(image, tree_id);
    if (!tree->alias && !iw_find_item(tree, key))
        return NULL;
    for (size_t i = 0; i < tree->levels[0].count; i++) {
        const struct iw_block *leaf = &image->blocks[tree->levels[0].blocks[i]].block;
        if (bw_key_compare(&leaf->first_key, &key) <= 0 &&
            bw_key_compare(&key, &leaf->last_key) <= 0)
            return leaf;
    }
    return NULL;
}

const struct iw_block *iw_root_block(const struct iw_image *image, uint64_t tree)
{
    return &image->blocks[laid_out_tree(image, tree)->root].block;
}

static struct iw_block_state *find_state(const struct iw_image *image, uint64_t logical)
{
    for (size_t i = 0; i < image->block_count; i++)
        if (image->blocks[i].block.logical == logical)
            return &image->blocks[i];
    iw_die("no block at %llu", (unsigned long long)logical);
}

void iw_block_bytes(const struct iw_image *image, uint64_t logical, uint8_t *bytes)
{
    const struct iw_block_state *state = find_state(image, logical);
    if (state->edited)
        memcpy(bytes, state->edited, image->options.nodesize);
    else
        iw_build_block(image, state, bytes);
}

/* Where blocks lie. */

unsigned iw_copies(const struct iw_image *image, uint64_t logical)
{
    struct iw_mapping mapping;
    iw_map(image, logical, &mapping);
    return mapping.copies;
}

bool iw_locate(const struct iw_image *image, uint64_t logical, unsigned copy, unsigned *device,
               uint64_t *offset)
{
    struct iw_mapping mapping;
    iw_map(image, logical, &mapping);
    if (copy < 1 || copy > mapping.copies)
        return false;
    *device = mapping.copy[copy - 1].device;
    *offset = mapping.copy[copy - 1].offset;
    return true;
}

bool iw_locate_parity(const struct iw_image *image, uint64_t logical, unsigned parity,
                      unsigned *device, uint64_t *offset)
{
    struct iw_mapping mapping;
    iw_map(image, logical, &mapping);
    if (parity >= mapping.parities)
        return false;
    *device = mapping.parity[parity].device;
    *offset = mapping.parity[parity].offset;
    return true;
}

/* Damage. */

static void damage_range(struct iw_image *image, struct iw_place at, uint32_t offset,
                         uint32_t length, enum iw_damage damage)
{
    uint8_t *bytes = iw_zalloc(length);
    if (damage == IW_FLIP) {
        iw_device_read(image, at.device, at.offset + offset, bytes, length);
        for (uint32_t i = 0; i < length; i++)
            bytes[i] = (uint8_t)~bytes[i];
    }
    iw_device_write(image, at.device, at.offset + offset, bytes, length);
    free(bytes);
}

static void check_range(const struct iw_image *image, uint32_t offset, uint32_t length)
{
    if (offset > image->options.nodesize || length > image->options.nodesize - offset)
        iw_die("damage from %u, %u bytes long, leaves the block", offset, length);
}

void iw_corrupt(struct iw_image *image, uint64_t logical, unsigned copy, uint32_t offset,
                uint32_t length, enum iw_damage damage)
{
    struct iw_mapping mapping;
    iw_map(image, logical, &mapping);
    check_range(image, offset, length);
    if (copy > mapping.copies)
        iw_die("no copy %u at %llu", copy, (unsigned long long)logical);
    for (unsigned i = 0; i < mapping.copies; i++)
        if (copy == IW_ALL_COPIES || copy == i + 1)
            damage_range(image, mapping.copy[i], offset, length, damage);
}

void iw_corrupt_parity(struct iw_image *image, uint64_t logical, unsigned parity, uint32_t offset,
                       uint32_t length, enum iw_damage damage)
{
    struct iw_mapping mapping;
    iw_map(image, logical, &mapping);
    check_range(image, offset, length);
    if (parity >= mapping.parities)
        iw_die("no parity %u at %llu", parity, (unsigned long long)logical);
    damage_range(image, mapping.parity[parity], offset, length, damage);
}

/* Changes. */

void iw_rewrite_block(struct iw_image *image, uint64_t logical, iw_block_editor *edit,
                      void *closure, bool fix_checksum)
{
    const uint32_t nodesize = image->options.nodesize;
    struct iw_block_state *state = find_state(image, logical);
    uint8_t *old = iw_zalloc(nodesize), *bytes = iw_zalloc(nodesize);
    iw_block_bytes(image, logical, old);
    memcpy(bytes, old, nodesize);
    edit(bytes, nodesize, closure);
    if (fix_checksum)
        iw_seal(image, bytes, nodesize);
    iw_store(image, logical, old, bytes, nodesize);
    free(old);
    free(state->edited);
    state->edited = bytes;
}

static void edit_at(struct iw_image *image, struct iw_place at, iw_block_editor *edit,
                    void *closure, bool fix_checksum)
{
    const uint32_t nodesize = image->options.nodesize;
    uint8_t *bytes = iw_zalloc(nodesize);
    iw_device_read(image, at.device, at.offset, bytes, nodesize);
    edit(bytes, nodesize, closure);
    if (fix_checksum)
        iw_seal(image, bytes, nodesize);
    iw_device_write(image, at.device, at.offset, bytes, nodesize);
    free(bytes);
}

void iw_edit_copy(struct iw_image *image, uint64_t logical, unsigned copy, iw_block_editor *edit,
                  void *closure, bool fix_checksum)
{
    struct iw_mapping mapping;
    iw_map(image, logical, &mapping);
    if (copy > mapping.copies)
        iw_die("no copy %u at %llu", copy, (unsigned long long)logical);
    for (unsigned i = 0; i < mapping.copies; i++)
        if (copy == IW_ALL_COPIES || copy == i + 1)
            edit_at(image, mapping.copy[i], edit, closure, fix_checksum);
}

static void make_older(uint8_t *block, uint32_t nodesize, void *closure)
{
    (void)nodesize;
    (void)closure;
    struct bw_disk_header *header = (void *)block;
    header->generation = bw_put64(bw_get64(header->generation) - 1);
}

void iw_stale_block(struct iw_image *image, uint64_t logical, unsigned copy)
{
    iw_edit_copy(image, logical, copy, make_older, NULL, true);
}

static void edit_superblock(struct iw_image *image, unsigned device, unsigned copy,
                            iw_superblock_editor *edit, void *closure, bool fix_checksum)
{
    struct bw_disk_superblock super;
    uint64_t offset = iw_superblock_offset(copy);
    if (offset + sizeof super > image->devices[device].size)
        return;
    iw_device_read(image, device, offset, &super, sizeof super);
    edit(&super, closure);
    if (fix_checksum)
        iw_seal(image, (uint8_t *)&super, sizeof super);
    iw_device_write(image, device, offset, &super, sizeof super);
}

void iw_superblock_edit(struct iw_image *image, unsigned device, unsigned copy,
                        iw_superblock_editor *edit, void *closure, bool fix_checksum)
{
    for (unsigned i = 0; i < image->device_count; i++)
        for (unsigned which = 1; which <= BW_SUPERBLOCK_COPIES; which++)
            if ((device == IW_ALL_DEVICES || device == i) &&
                (copy == IW_ALL_COPIES || copy == which))
                edit_superblock(image, i, which, edit, closure, fix_checksum);
}

static void set_remap_root(struct bw_disk_superblock *superblock, void *closure)
{
    const struct iw_block *root = closure;
    superblock->remap_root = bw_put64(root->logical);
    superblock->remap_root_generation = superblock->generation;
}

void iw_use_remap_tree(struct iw_image *image)
{
    const struct iw_block *root = iw_root_block(image, BW_REMAP_TREE);
    iw_superblock_edit(image, IW_ALL_DEVICES, IW_ALL_COPIES, set_remap_root,
                       (void *)(uintptr_t)root, true);
}
