/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What tests do to an image once it is written: find blocks and their copies, and damage, change or
 * age them.
 *
 * Damage is done to the devices alone. A rewritten block is remembered, so that its right bytes can
 * be told from the damaged ones: parity is brought along by the difference between the old right
 * bytes and the new.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image_writer_internal.h"

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
