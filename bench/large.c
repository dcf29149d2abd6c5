/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leaves of the file system that large.h describes. */
#include "large.h"

#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOP = BW_SUBVOLUME_ROOT_INODE, DIRECTORY = 040755, REGULAR = 0100644 };

static uint32_t name_hash(const char *name)
{
    return crc32_iscsi((unsigned char *)name, (int)strlen(name), ~UINT32_C(1));
}

struct bw_disk_key large_key(struct bw_key key)
{
    return (struct bw_disk_key){bw_put64(key.objectid), key.type, bw_put64(key.offset)};
}

uint64_t large_generation(uint64_t owner)
{
    return owner == FILES_TREE ? GENERATION : GENERATION + 1;
}

struct large_block large_begin(uint8_t *bytes, uint64_t address, uint64_t owner, uint8_t level)
{
    struct bw_disk_header *header = (void *)bytes;
    memset(bytes, 0, NODESIZE);
    memcpy(header->fsid, LARGE_FSID, BW_UUID_SIZE);
    memcpy(header->chunk_tree_uuid, LARGE_FSID, BW_UUID_SIZE);
    header->bytenr = bw_put64(address);
    header->flags = bw_put64(UINT64_C(1) << 56 | 1); /* references of the present kind; written */
    header->generation = bw_put64(large_generation(owner));
    header->owner = bw_put64(owner);
    header->level = level;
    return (struct large_block){bytes, 0, NODESIZE - sizeof *header};
}

void *large_item(struct large_block *block, struct bw_key key, size_t size)
{
    struct bw_disk_item *items = (void *)(block->bytes + sizeof(struct bw_disk_header));
    if (block->end < (block->count + 1) * sizeof *items + size)
        return NULL;
    block->end -= (uint32_t)size;
    items[block->count++] =
        (struct bw_disk_item){large_key(key), bw_put32(block->end), bw_put32((uint32_t)size)};
    return block->bytes + sizeof(struct bw_disk_header) + block->end;
}

void large_sum(void *block, size_t size)
{
    uint8_t *bytes = block;
    const bw_le32 sum =
        bw_put32(~crc32_iscsi(bytes + BW_CSUM_SIZE, (int)(size - BW_CSUM_SIZE), ~UINT32_C(0)));
    memcpy(bytes, &sum, sizeof sum);
}

void large_finish(struct large_block *block)
{
    struct bw_disk_header *header = (void *)block->bytes;
    header->item_count = bw_put32(block->count);
    large_sum(block->bytes, NODESIZE);
}

void large_inode(struct bw_disk_inode_item *inode, uint32_t mode, uint64_t size, uint64_t bytes,
                 uint64_t number)
{
    const struct bw_disk_timespec time = {bw_put64(1700000000 + number), bw_put32(0)};
    *inode = (struct bw_disk_inode_item){.generation = bw_put64(GENERATION),
                                         .transid = bw_put64(GENERATION),
                                         .size = bw_put64(size),
                                         .bytes = bw_put64(bytes),
                                         .link_count = bw_put32(1),
                                         .mode = bw_put32(mode),
                                         .atime = time,
                                         .ctime = time,
                                         .mtime = time,
                                         .otime = time};
}

/* The item of an inode, and its name in its parent. */
static void add_inode(struct large_block *block, uint64_t number, uint32_t mode, uint64_t size,
                      uint64_t parent, uint64_t index, const char *name)
{
    const size_t length = strlen(name);
    large_inode(large_item(block, (struct bw_key){number, BW_INODE_ITEM, 0},
                           sizeof(struct bw_disk_inode_item)),
                mode, size, mode == REGULAR ? size : 0, number);
    struct bw_disk_inode_ref *ref =
        large_item(block, (struct bw_key){number, BW_INODE_REF, parent}, sizeof *ref + length);
    *ref = (struct bw_disk_inode_ref){bw_put64(index), bw_put16((uint16_t)length)};
    memcpy(ref + 1, name, length);
}

void large_top_inode(struct large_block *block, uint64_t names)
{
    add_inode(block, TOP, DIRECTORY, 2 * names, TOP, 0, "..");
}

bool large_entry(struct large_block *block, uint64_t directory, struct bw_key to, uint8_t type,
                 const char *name, uint64_t index)
{
    const size_t length = strlen(name);
    const struct bw_key key = {directory, index ? BW_DIR_INDEX : BW_DIR_ITEM,
                               index ? index : name_hash(name)};
    struct bw_disk_dir_item *item = large_item(block, key, sizeof *item + length);
    if (!item)
        return false;
    *item = (struct bw_disk_dir_item){.location = large_key(to),
                                      .transid = bw_put64(GENERATION),
                                      .name_length = bw_put16((uint16_t)length),
                                      .type = type};
    memcpy(item + 1, name, length);
    return true;
}

/* The entries of a directory. */
struct name {
    char text[24];
    uint32_t hash;
    uint64_t inode;
};

static int by_hash(const void *a, const void *b)
{
    const struct name *first = a, *second = b;
    return (first->hash > second->hash) - (first->hash < second->hash);
}

static struct name name_of(const char *format, uint64_t number, uint64_t inode)
{
    struct name name = {.inode = inode};
    snprintf(name.text, sizeof name.text, format, (unsigned)number);
    name.hash = name_hash(name.text);
    return name;
}

static bool add_name(struct large_block *block, uint64_t directory, const struct name *name,
                     uint8_t type, uint64_t index)
{
    return large_entry(block, directory, (struct bw_key){name->inode, BW_INODE_ITEM, 0}, type,
                       name->text, index);
}

/* Up to a hundred names fit into the leaf. No two of them have the same hash, because they differ
 * only in bits that lie close together. */
static void add_names(struct large_block *block, uint64_t directory, struct name *names,
                      size_t count, uint8_t type)
{
    struct name sorted[GROUPS > FILES ? GROUPS : FILES];
    memcpy(sorted, names, count * sizeof *names);
    qsort(sorted, count, sizeof *sorted, by_hash);
    for (size_t i = 0; i < count; i++)
        add_name(block, directory, &sorted[i], type, 0);
    for (size_t i = 0; i < count; i++)
        add_name(block, directory, &names[i], type, 2 + i);
}

static uint64_t section_inode(uint64_t section)
{
    return TOP + 1 + section * SECTION_INODES;
}

static uint64_t group_inode(uint64_t section, uint64_t group)
{
    return section_inode(section) + 1 + group * (1 + FILES);
}

/* The top directory: the only one whose entries fill several leaves. They are made in memory, and
 * get their addresses later. */
bool large_init(struct large *large, uint64_t files)
{
    const uint64_t sections = files / GROUPS / FILES, most = 1 + sections / 50;
    *large = (struct large){.sections = sections};
    if (!sections || sections > MAX_SECTIONS || files % (GROUPS * FILES))
        return false;
    large->top = malloc(most * NODESIZE);
    large->top_keys = malloc(most * sizeof *large->top_keys);
    struct name *names = malloc(2 * sections * sizeof *names), *sorted = names + sections;
    if (!large->top || !large->top_keys || !names)
        return false;
    for (uint64_t i = 0; i < sections; i++)
        names[i] = sorted[i] = name_of("section-%04u", i, section_inode(i));
    qsort(sorted, sections, sizeof *sorted, by_hash);

    struct large_block block = large_begin(large->top, 0, FILES_TREE, 0);
    large->top_keys[large->top_leaves++] = (struct bw_key){TOP, BW_INODE_ITEM, 0};
    large_top_inode(&block, sections * strlen(names[0].text));
    for (uint64_t i = 0; i < 2 * sections; i++) {
        const uint64_t index = i < sections ? 0 : 2 + i - sections;
        const struct name *name = index ? &names[i - sections] : &sorted[i];
        if (add_name(&block, TOP, name, BW_FILE_DIRECTORY, index))
            continue;
        large_finish(&block);
        large->top_keys[large->top_leaves] =
            (struct bw_key){TOP, index ? BW_DIR_INDEX : BW_DIR_ITEM, index ? index : name->hash};
        block = large_begin(large->top + large->top_leaves++ * NODESIZE, 0, FILES_TREE, 0);
        add_name(&block, TOP, name, BW_FILE_DIRECTORY, index);
    }
    large_finish(&block);
    large->leaves = large->top_leaves + sections * SECTION_LEAVES;
    free(names);
    return true;
}

/* Leaf 0 of a section contains its own entries. Of the three leaves of a group, part 0 contains the
 * entries, parts 1 and 2 the files. */
struct bw_key large_first_key(const struct large *large, uint64_t leaf)
{
    if (leaf < large->top_leaves)
        return large->top_keys[leaf];
    leaf -= large->top_leaves;
    const uint64_t section = leaf / SECTION_LEAVES, of_section = leaf % SECTION_LEAVES;
    uint64_t inode = section_inode(section);
    if (of_section) {
        const uint64_t part = (of_section - 1) % 3;
        inode = group_inode(section, (of_section - 1) / 3);
        if (part)
            inode += 1 + (part - 1) * FILES / 2;
    }
    return (struct bw_key){inode, BW_INODE_ITEM, 0};
}

bool large_is_shared(const struct large *large, uint64_t leaf)
{
    return leaf < large->top_leaves || (leaf - large->top_leaves) % SECTION_LEAVES != CHANGED_LEAF;
}

uint64_t large_address(const struct large *large, uint64_t tree, uint64_t leaf)
{
    if (tree == FILES_TREE || large_is_shared(large, leaf))
        return large->first + leaf * NODESIZE;
    return large->first_changed + (leaf - large->top_leaves) / SECTION_LEAVES * NODESIZE;
}

/* Half of the files of a group. */
static void add_files(struct large_block *block, bool is_changed, uint64_t section, uint64_t group,
                      unsigned half)
{
    const uint64_t directory = group_inode(section, group);
    for (uint64_t i = half * FILES / 2; i < (half + 1) * FILES / 2; i++) {
        const uint64_t number = (section * GROUPS + group) * FILES + i;
        const struct name name = name_of("file-%09u", number, directory + 1 + i);
        char text[64];
        int size = snprintf(text, sizeof text, "this is file %09u\n", (unsigned)number);
        if (is_changed && i == FILES - 1)
            size -= 3;
        add_inode(block, name.inode, REGULAR, (uint64_t)size, directory, 2 + i, name.text);
        const size_t header = offsetof(struct bw_disk_file_extent, disk_bytenr);
        struct bw_disk_file_extent *extent = large_item(
            block, (struct bw_key){name.inode, BW_EXTENT_DATA, 0}, header + (size_t)size);
        extent->generation = bw_put64(GENERATION);
        extent->ram_bytes = bw_put64((uint64_t)size);
        memcpy((uint8_t *)extent + header, text, (size_t)size);
    }
}

void large_leaf(const struct large *large, uint64_t tree, uint64_t leaf, uint8_t *bytes)
{
    const uint64_t address = large_address(large, tree, leaf);
    struct large_block block;
    if (leaf < large->top_leaves) {
        memcpy(bytes, large->top + leaf * NODESIZE, NODESIZE);
        struct bw_disk_header *header = (void *)bytes;
        header->bytenr = bw_put64(address);
        block = (struct large_block){bytes, bw_get32(header->item_count), 0};
        large_finish(&block);
        return;
    }
    block = large_begin(bytes, address, tree, 0);
    leaf -= large->top_leaves;
    const uint64_t section = leaf / SECTION_LEAVES, of_section = leaf % SECTION_LEAVES;
    const uint64_t group = of_section ? (of_section - 1) / 3 : 0;
    const unsigned part = of_section ? (unsigned)(of_section - 1) % 3 : 0;
    struct name names[GROUPS > FILES ? GROUPS : FILES];
    if (!of_section) {
        for (unsigned i = 0; i < GROUPS; i++)
            names[i] = name_of("group-%03u", i, group_inode(section, i));
        add_inode(&block, section_inode(section), DIRECTORY, 2 * GROUPS * strlen(names[0].text),
                  TOP, 2 + section, name_of("section-%04u", section, 0).text);
        add_names(&block, section_inode(section), names, GROUPS, BW_FILE_DIRECTORY);
    } else if (!part) {
        const uint64_t directory = group_inode(section, group);
        for (unsigned i = 0; i < FILES; i++)
            names[i] =
                name_of("file-%09u", (section * GROUPS + group) * FILES + i, directory + 1 + i);
        add_inode(&block, directory, DIRECTORY, 2 * FILES * strlen(names[0].text),
                  section_inode(section), 2 + group, name_of("group-%03u", group, 0).text);
        add_names(&block, directory, names, FILES, BW_FILE_REGULAR);
    } else {
        add_files(&block, tree == CHANGED_TREE, section, group, part - 1);
    }
    large_finish(&block);
}
