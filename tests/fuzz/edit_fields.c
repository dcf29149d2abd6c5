/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the numbers lie that an edit may change, and what it may change them to. */
#include "fuzz/edits.h"

#define FIELD(type, member)                                               \
    {                                                                     \
        offsetof(struct type, member), sizeof(((struct type *)0)->member) \
    }
#define END  \
    {        \
        0, 0 \
    }

const struct field superblock_fields[] = {
    FIELD(bw_disk_superblock, bytenr),
    FIELD(bw_disk_superblock, flags),
    FIELD(bw_disk_superblock, magic),
    FIELD(bw_disk_superblock, generation),
    FIELD(bw_disk_superblock, root),
    FIELD(bw_disk_superblock, chunk_root),
    FIELD(bw_disk_superblock, log_root),
    FIELD(bw_disk_superblock, total_bytes),
    FIELD(bw_disk_superblock, device_count),
    FIELD(bw_disk_superblock, sectorsize),
    FIELD(bw_disk_superblock, nodesize),
    FIELD(bw_disk_superblock, system_chunk_array_size),
    FIELD(bw_disk_superblock, chunk_root_generation),
    FIELD(bw_disk_superblock, incompat_flags),
    FIELD(bw_disk_superblock, csum_type),
    FIELD(bw_disk_superblock, root_level),
    FIELD(bw_disk_superblock, chunk_root_level),
    FIELD(bw_disk_superblock, device.devid),
    FIELD(bw_disk_superblock, device.total_bytes),
    FIELD(bw_disk_superblock, remap_root),
    FIELD(bw_disk_superblock, remap_root_generation),
    FIELD(bw_disk_superblock, remap_root_level),
    FIELD(bw_disk_superblock, backup_roots[2].tree_root),
    FIELD(bw_disk_superblock, backup_roots[2].tree_root_generation),
    FIELD(bw_disk_superblock, backup_roots[2].tree_root_level),
    FIELD(bw_disk_superblock, backup_roots[2].chunk_root_level),
    END,
};

const struct field header_fields[] = {
    FIELD(bw_disk_header, bytenr),     FIELD(bw_disk_header, flags),
    FIELD(bw_disk_header, generation), FIELD(bw_disk_header, owner),
    FIELD(bw_disk_header, item_count), FIELD(bw_disk_header, level),
    FIELD(bw_disk_header, fsid[0]),    END,
};

const struct field slot_fields[] = {
    FIELD(bw_disk_item, key.objectid), FIELD(bw_disk_item, key.type),
    FIELD(bw_disk_item, key.offset),   FIELD(bw_disk_item, offset),
    FIELD(bw_disk_item, size),         END,
};

const struct field pointer_fields[] = {
    FIELD(bw_disk_key_pointer, key.objectid), FIELD(bw_disk_key_pointer, key.type),
    FIELD(bw_disk_key_pointer, key.offset),   FIELD(bw_disk_key_pointer, bytenr),
    FIELD(bw_disk_key_pointer, generation),   END,
};

static const struct field entry_fields[] = {
    FIELD(bw_disk_dir_item, location.objectid),
    FIELD(bw_disk_dir_item, location.type),
    FIELD(bw_disk_dir_item, location.offset),
    FIELD(bw_disk_dir_item, data_length),
    FIELD(bw_disk_dir_item, name_length),
    FIELD(bw_disk_dir_item, type),
    {sizeof(struct bw_disk_dir_item), 1},
    {sizeof(struct bw_disk_dir_item) + 1, 1},
    END,
};

static const struct field root_fields[] = {
    FIELD(bw_disk_root_item, generation),
    FIELD(bw_disk_root_item, bytenr),
    FIELD(bw_disk_root_item, last_snapshot),
    FIELD(bw_disk_root_item, flags),
    FIELD(bw_disk_root_item, reference_count),
    FIELD(bw_disk_root_item, level),
    FIELD(bw_disk_root_item, generation_v2),
    FIELD(bw_disk_root_item, parent_uuid[0]),
    END,
};

static const struct field root_ref_fields[] = {
    FIELD(bw_disk_root_ref, directory),
    FIELD(bw_disk_root_ref, sequence),
    FIELD(bw_disk_root_ref, name_length),
    {sizeof(struct bw_disk_root_ref), 1},
    END,
};

static const struct field chunk_fields[] = {
    FIELD(bw_disk_chunk, length),
    FIELD(bw_disk_chunk, stripe_length),
    FIELD(bw_disk_chunk, type),
    FIELD(bw_disk_chunk, stripe_count),
    FIELD(bw_disk_chunk, sub_stripes),
    {sizeof(struct bw_disk_chunk) + offsetof(struct bw_disk_stripe, devid), 8},
    {sizeof(struct bw_disk_chunk) + offsetof(struct bw_disk_stripe, offset), 8},
    {sizeof(struct bw_disk_chunk) + sizeof(struct bw_disk_stripe), 8},
    END,
};

static const struct field inode_fields[] = {FIELD(bw_disk_inode_item, mode),
                                            FIELD(bw_disk_inode_item, size),
                                            FIELD(bw_disk_inode_item, link_count), END};
static const struct field ref_fields[] = {FIELD(bw_disk_inode_ref, index),
                                          FIELD(bw_disk_inode_ref, name_length),
                                          {sizeof(struct bw_disk_inode_ref), 1},
                                          END};
static const struct field extref_fields[] = {FIELD(bw_disk_inode_extref, parent),
                                             FIELD(bw_disk_inode_extref, index),
                                             FIELD(bw_disk_inode_extref, name_length), END};
static const struct field device_fields[] = {FIELD(bw_disk_device_item, devid),
                                             FIELD(bw_disk_device_item, uuid[0]), END};
static const struct field extent_fields[] = {
    FIELD(bw_disk_file_extent, ram_bytes),      FIELD(bw_disk_file_extent, compression),
    FIELD(bw_disk_file_extent, type),           FIELD(bw_disk_file_extent, disk_bytenr),
    FIELD(bw_disk_file_extent, disk_num_bytes), FIELD(bw_disk_file_extent, offset),
    FIELD(bw_disk_file_extent, num_bytes),      END};
static const struct field other_fields[] = {{0, 8}, {8, 8}, {16, 8}, {0, 2}, {0, 1}, END};

struct field pick_field(const struct field *table, unsigned number)
{
    unsigned count = 0;
    while (table[count].size)
        count++;
    return table[number % count];
}

const struct field *fields_of_type(uint8_t type)
{
    switch (type) {
    case BW_DIR_ITEM:
    case BW_DIR_INDEX:
        return entry_fields;
    case BW_ROOT_ITEM:
        return root_fields;
    case BW_ROOT_REF:
    case BW_ROOT_BACKREF:
        return root_ref_fields;
    case BW_CHUNK_ITEM:
        return chunk_fields;
    case BW_INODE_ITEM:
        return inode_fields;
    case BW_INODE_REF:
        return ref_fields;
    case BW_INODE_EXTREF:
        return extref_fields;
    case BW_DEVICE_ITEM:
        return device_fields;
    case BW_EXTENT_DATA:
        return extent_fields;
    default:
        return other_fields;
    }
}

/* Values. */

static const uint64_t interesting[] = {0,
                                       1,
                                       2,
                                       3,
                                       4,
                                       5,
                                       6,
                                       7,
                                       8,
                                       11,
                                       13,
                                       84,
                                       96,
                                       108,
                                       132,
                                       144,
                                       156,
                                       216,
                                       228,
                                       235,
                                       255,
                                       256,
                                       257,
                                       258,
                                       300,
                                       301,
                                       512,
                                       4096,
                                       16384,
                                       65536,
                                       3995,
                                       3994,
                                       25,
                                       33,
                                       101,
                                       0x7f,
                                       0x80,
                                       0xffff,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       UINT64_C(1) << 32,
                                       UINT64_C(1) << 40,
                                       UINT64_C(1) << 63,
                                       UINT64_MAX,
                                       UINT64_MAX - 1,
                                       (uint64_t)-7,
                                       (uint64_t)-8,
                                       (uint64_t)-9,
                                       (uint64_t)-256,
                                       (uint64_t)-4096,
                                       (uint64_t)-65536,
                                       INT64_MAX,
                                       BW_GROUP_SYSTEM | BW_GROUP_DUP,
                                       BW_GROUP_METADATA | BW_GROUP_RAID1,
                                       BW_GROUP_METADATA | BW_GROUP_RAID10,
                                       BW_GROUP_METADATA | BW_GROUP_RAID5,
                                       BW_GROUP_METADATA | BW_GROUP_RAID6,
                                       BW_GROUP_METADATA | BW_GROUP_RAID0,
                                       BW_GROUP_METADATA | BW_GROUP_RAID1C4,
                                       UINT64_C(1) << 17,
                                       BW_ROOT_DEAD,
                                       0040755,
                                       0100644};

void put_number(uint8_t *at, size_t width, uint64_t value)
{
    for (size_t i = 0; i < width && i < sizeof value; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

uint64_t get_number(const uint8_t *at, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width && i < sizeof value; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

uint64_t interesting_value(uint64_t number)
{
    return interesting[number % (sizeof interesting / sizeof *interesting)];
}

uint64_t edit_value(const struct base_image *base, const struct edit *edit, uint64_t old)
{
    const uint64_t value = get_number(edit->value, sizeof edit->value);
    switch (edit->value_kind % 8) {
    case 0:
        return value;
    case 1:
    case 2:
        return interesting_value(value);
    case 3:
        return iw_block(base->image, (size_t)value % base->block_count)->logical;
    case 4:
        return old + (uint64_t)(int8_t)edit->value[0];
    case 5:
        return old ^ UINT64_C(1) << value % 64;
    case 6:
        return value % 1024;
    default:
        return iw_block(base->image, (size_t)value % base->block_count)->first_key.objectid;
    }
}
