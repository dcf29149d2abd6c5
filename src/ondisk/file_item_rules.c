/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The items of subvolumes and log trees: inodes, their names, attributes and extents. */
#include <sys/stat.h>

#include "base/human.h"
#include "ondisk/item_rules.h"
#include "ondisk/items.h"

/* Inode flags known to the kernel. The lower half is incompatible: a kernel must know these flags
 * to read the inode; the upper half, to write it. */
#define INODE_FLAGS (UINT64_C(0x180000fff))

/* The first index of a directory: readdir() counts "." and ".." as 0 and 1. At the maximum file
 * offset, it restarts forever. Source: btrfs_real_readdir() in the kernel's fs/btrfs/inode.c. */
enum { FIRST_INDEX = 2 };

enum { INODE_IMMUTABLE = 1 << 6, INODE_APPEND = 1 << 7, VERITY_PIECE = 2048, VERITY_BLOCK = 1024 };

/* Where the greatest file ends, rounded up to sectors. */
#define GREATEST_END (UINT64_C(1) << 63)

/* Items of a subvolume that belong to an inode come after its INODE_ITEM or another item of it. */
static inline bool lacks_inode(const struct bw_item_rules *rules, const struct bw_item *item,
                               struct bw_item_fault *fault)
{
    const struct bw_item *previous = rules->previous;
    if (!previous || previous->key.objectid == item->key.objectid || rules->in_log ||
        !bw_is_subvolume(rules->owner))
        return false;
    return bw_item_wrong_as(fault, BW_FAULT_item_without_inode,
                            "the previous item belongs to inode %" PRIu64, previous->key.objectid);
}

bool bw_check_inode_item(const struct bw_item_rules *rules, const struct bw_item *item,
                         struct bw_item_fault *fault)
{
    const struct bw_disk_inode_item *inode = (const void *)item->data;
    const uint32_t mode = bw_get32(inode->mode), links = bw_get32(inode->link_count);
    const uint64_t flags = bw_get64(inode->flags);
    const uint64_t generation = bw_get64(inode->generation), transid = bw_get64(inode->transid);
    const uint8_t type = bw_file_type_of_mode(mode);
    if (!bw_is_inode(item->key.objectid) || item->key.offset)
        return bw_item_wrong(fault, "no inode has this key");
    if (bw_get64(inode->size) > INT64_MAX)
        return bw_item_wrong(fault, "size of the file %" PRIu64, bw_get64(inode->size));
    if (bw_generation_wrong(rules, fault, "generation", generation) ||
        bw_generation_wrong(rules, fault, "transid", transid))
        return true;
    if (mode & ~(uint32_t)(S_IFMT | 07777) || type == BW_FILE_UNKNOWN)
        return bw_item_wrong(fault, "mode 0%" PRIo32, mode);
    if (S_ISDIR(mode) && links > 1)
        return bw_item_wrong(fault, "directory with %" PRIu32 " links", links);
    if (flags & ~(INODE_FLAGS | BW_INODE_SYNOLOGY))
        return bw_item_wrong(fault, "unknown flags 0x%" PRIx64, flags & ~INODE_FLAGS);
    if (flags & BW_INODE_VERITY && !S_ISREG(mode))
        return bw_item_wrong(fault, "fs-verity on an inode that is not a regular file");
    if (S_ISLNK(mode) && (flags & (INODE_IMMUTABLE | INODE_APPEND)))
        return bw_item_wrong(fault, "symbolic link with flags 0x%" PRIx64, flags);

    /* Values that only stat() shows, and that backups and NFS compare. */
    const bool has_no_size =
        type != BW_FILE_REGULAR && type != BW_FILE_DIRECTORY && type != BW_FILE_SYMLINK;
    if (has_no_size && bw_get64(inode->size))
        return bw_item_wrong_as(fault, BW_FAULT_special_size, "%s of size %" PRIu64,
                                bw_file_type_name(type), bw_get64(inode->size));
    return bw_later_than_leaf(rules, fault, BW_FAULT_inode_generation, "generation", generation) ||
           bw_later_than_leaf(rules, fault, BW_FAULT_inode_generation, "transid", transid);
}

/* A name of an inode. The top directory of a tree calls itself "..". */
static bool wrong_name(const struct bw_item *item, const struct bw_inode_ref *ref,
                       struct bw_item_fault *fault)
{
    if (item->key.type == BW_INODE_EXTREF &&
        bw_extref_hash(ref->parent, ref->name, ref->name_length) != item->key.offset)
        return bw_item_wrong_as(fault, BW_FAULT_name_hash, "the name has the hash %" PRIu32,
                                bw_extref_hash(ref->parent, ref->name, ref->name_length));
    if (!bw_is_inode(ref->parent))
        return bw_item_wrong(fault, "a name in directory %" PRIu64, ref->parent);
    if (bw_name_is_valid(ref->name, ref->name_length))
        return false;
    if (ref->parent != item->key.objectid || ref->name_length != 2 || ref->name[0] != '.' ||
        ref->name[1] != '.')
        return bw_item_wrong(fault, "a name of %u byte%s that no file can have", ref->name_length,
                             bw_plural(ref->name_length));
    return ref->index &&
           bw_item_wrong_as(fault, BW_FAULT_top_index,
                            "the reference of the top directory to itself has index %" PRIu64,
                            ref->index);
}

bool bw_check_inode_ref(const struct bw_item_rules *rules, const struct bw_item *item,
                        struct bw_item_fault *fault)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    if (lacks_inode(rules, item, fault))
        return true;
    while (bw_inode_ref_next(&cursor, &item->key, &ref))
        if (wrong_name(item, &ref, fault))
            return true;
    return bw_cursor_bad(&cursor) && bw_item_wrong(fault, "a name is cut off");
}

/* The next entry of an item, with its name; NULL at the end, or if it is cut off (cursor bad). */
static const struct bw_disk_dir_item *next_entry(struct bw_cursor *cursor, const uint8_t **name)
{
    if (cursor->next == cursor->end)
        return NULL;
    const struct bw_disk_dir_item *entry = (const void *)bw_cursor_take(cursor, sizeof *entry);
    *name = entry ? bw_cursor_take(cursor, bw_get16(entry->name_length)) : NULL;
    return *name && bw_cursor_take(cursor, bw_get16(entry->data_length)) ? entry : NULL;
}

/* Whether an item has a name again, up to which `before` goes. Only names of one hash share an
 * item, so there are hardly ever two. */
static bool is_repeated(struct bw_cursor before, const uint8_t *name, uint16_t length)
{
    const struct bw_disk_dir_item *entry;
    for (const uint8_t *other; (entry = next_entry(&before, &other));)
        if (bw_get16(entry->name_length) == length && memcmp(other, name, length) == 0)
            return true;
    return false;
}

/* Whether an entry has a fault with which it can be used. mkfs.btrfs leaves arbitrary bytes in the
 * transid, so only plausible transactions are compared with the leaf. */
static bool is_odd(const struct bw_item_rules *rules, const struct bw_disk_dir_item *entry)
{
    const uint64_t transid = bw_get64(entry->transid);
    return entry->type & ~BW_FILE_TYPE_MASK ||
           (transid > rules->leaf_generation && transid <= rules->generation + 1);
}

/* A name in a directory, or an attribute. */
static bool wrong_entry(const struct bw_item *item, const struct bw_disk_dir_item *entry,
                        const uint8_t *name, struct bw_item_fault *fault)
{
    const unsigned type = entry->type & BW_FILE_TYPE_MASK, length = bw_get16(entry->name_length);
    const bool is_attribute = item->key.type == BW_XATTR_ITEM;
    const bool is_encrypted = entry->type != type;
    if (is_attribute ? type != BW_ENTRY_IS_XATTR
                     : type == BW_FILE_UNKNOWN || type >= BW_ENTRY_IS_XATTR)
        return bw_item_wrong(fault, "type %u", type);
    if (length == 0 || length > BW_NAME_MAX)
        return bw_item_wrong(fault, "a name of %u bytes", length);
    if (!is_attribute && !is_encrypted && !bw_name_is_valid(name, length))
        return bw_item_wrong(fault, "a name of %u byte%s that no file can have", length,
                             bw_plural(length));
    if (!is_attribute && bw_get16(entry->data_length))
        return bw_item_wrong(fault, "%u byte%s of data", bw_get16(entry->data_length),
                             bw_plural(bw_get16(entry->data_length)));
    if (item->key.type != BW_DIR_INDEX && item->key.offset != bw_name_hash(name, length))
        return bw_item_wrong_as(fault, BW_FAULT_name_hash, "the name has the hash %" PRIu32,
                                bw_name_hash(name, length));

    /* Whether the name leads to an impossible place. For subvolumes, the offset has no meaning. */
    const struct bw_key location = bw_key_decode(&entry->location);
    const bool of_inode =
        location.type == BW_INODE_ITEM && bw_is_inode(location.objectid) && location.offset == 0;
    const bool of_subvolume = location.type == BW_ROOT_ITEM && bw_is_subvolume(location.objectid) &&
                              type == BW_FILE_DIRECTORY;
    const bool nowhere = !location.objectid && !location.type && !location.offset;
    if (is_attribute ? nowhere : of_inode || of_subvolume)
        return false;
    return bw_item_wrong(fault, "points to (%" PRIu64 " %u %" PRIu64 ")", location.objectid,
                         location.type, location.offset);
}

bool bw_check_dir_item(const struct bw_item_rules *rules, const struct bw_item *item,
                       struct bw_item_fault *fault)
{
    struct bw_cursor cursor = bw_cursor_of(item), before = cursor;
    if (lacks_inode(rules, item, fault))
        return true;
    const struct bw_disk_dir_item *entry, *odd = NULL;
    bool has_repeated = false;
    for (const uint8_t *name; (entry = next_entry(&cursor, &name));) {
        if (wrong_entry(item, entry, name, fault))
            return true;
        if (item->key.type == BW_DIR_INDEX && cursor.next < cursor.end)
            return bw_item_wrong(fault, "more than one name");
        before.end = (const uint8_t *)entry;
        has_repeated |= is_repeated(before, name, bw_get16(entry->name_length));
        odd = !odd && is_odd(rules, entry) ? entry : odd;
    }
    if (bw_cursor_bad(&cursor))
        return bw_item_wrong(fault, "a name or its data are cut off");
    const uint64_t index = item->key.offset;
    if (item->key.type == BW_DIR_INDEX && (index < FIRST_INDEX || index >= INT64_MAX))
        return bw_item_wrong_as(fault, BW_FAULT_dir_index, "index %" PRIu64 ", which readdir %s",
                                index, index < FIRST_INDEX ? "skips" : "never gets past");
    if (has_repeated)
        return bw_item_wrong_as(fault,
                                item->key.type == BW_XATTR_ITEM ? BW_FAULT_xattr_duplicate
                                                                : BW_FAULT_entry_duplicate,
                                "a name is in the item more than once");
    if (odd && odd->type & ~BW_FILE_TYPE_MASK)
        return bw_item_wrong_as(fault, BW_FAULT_entry_encrypted, "type 0x%x", odd->type);
    return odd && bw_later_than_leaf(rules, fault, BW_FAULT_entry_transid, "transid",
                                     bw_get64(odd->transid));
}

bool bw_check_orphan_item(const struct bw_item_rules *rules, const struct bw_item *item,
                          struct bw_item_fault *fault)
{
    (void)rules;
    return item->key.objectid != BW_ORPHAN && bw_item_wrong(fault, "no orphan has this key");
}

bool bw_check_dir_log(const struct bw_item_rules *rules, const struct bw_item *item,
                      struct bw_item_fault *fault)
{
    (void)rules;
    const struct bw_disk_dir_log *log = (const void *)item->data;
    return bw_get64(log->end) < item->key.offset &&
           bw_item_wrong(fault, "its range ends at %" PRIu64 ", before it begins",
                         bw_get64(log->end));
}

/* The descriptor of fs-verity and its hash tree are stored in pieces of 2 KiB, of which the last
 * may be shorter; hash trees with blocks of 1 KiB, in pieces of 1 KiB. Descriptor pieces are
 * counted from 1; item 0 is btrfs' own. Source: write_key_bytes() in the kernel's
 * fs/btrfs/verity.c. */
bool bw_check_verity_piece(const struct bw_item_rules *rules, const struct bw_item *item,
                           struct bw_item_fault *fault)
{
    const struct bw_item *previous = rules->previous;
    const uint64_t first = item->key.type == BW_VERITY_DESC_ITEM, at = item->key.offset - first;
    const uint64_t unit = first ? VERITY_PIECE : VERITY_BLOCK;
    if (at % unit || item->size > VERITY_PIECE)
        return bw_item_wrong(fault, "%" PRIu32 " byte%s at %" PRIu64 " %s no piece", item->size,
                             bw_plural(item->size), at, item->size == 1 ? "is" : "are");
    if (!previous || !at || rules->in_log) /* a log has only the leaves that changed */
        return false;
    const bool follows = previous->key.objectid == item->key.objectid &&
                         previous->key.type == item->key.type &&
                         previous->key.offset + previous->size == item->key.offset;
    return !follows && bw_item_wrong(fault, "no piece ends at %" PRIu64, at);
}

bool bw_check_verity(const struct bw_item_rules *rules, const struct bw_item *item,
                     struct bw_item_fault *fault)
{
    const struct bw_disk_verity_descriptor *verity = (const void *)item->data;
    if (item->key.offset)
        return bw_check_verity_piece(rules, item, fault);
    if (item->size != sizeof *verity)
        return bw_item_wrong(fault, "size is %" PRIu32 ", not %zu", item->size, sizeof *verity);
    if (bw_get64(verity->reserved[0]) || bw_get64(verity->reserved[1]))
        return bw_item_wrong(fault, "reserved bytes are not zero");
    if (verity->encryption)
        return bw_item_wrong(fault, "encryption %u", verity->encryption);
    return bw_get64(verity->size) > INT32_MAX &&
           bw_item_wrong(fault, "size of the descriptor %" PRIu64, bw_get64(verity->size));
}

/* Where the piece of a file ends that the item before describes; 0 if it is none of this file. */
static uint64_t end_of_previous(const struct bw_item_rules *rules, const struct bw_item *item)
{
    const struct bw_item *previous = rules->previous;
    if (!previous || previous->key.objectid != item->key.objectid ||
        previous->key.type != BW_EXTENT_DATA ||
        previous->size < offsetof(struct bw_disk_file_extent, disk_bytenr))
        return 0;
    const struct bw_disk_file_extent *disk = (const void *)previous->data;
    const uint64_t mask = rules->sectorsize - 1;
    if (disk->type == BW_FILE_EXTENT_INLINE)
        return (previous->key.offset + bw_get64(disk->ram_bytes) + mask) & ~mask;
    return previous->size == sizeof *disk ? previous->key.offset + bw_get64(disk->num_bytes) : 0;
}

bool bw_check_file_extent(const struct bw_item_rules *rules, const struct bw_item *item,
                          struct bw_item_fault *fault)
{
    struct bw_file_extent extent;
    const uint64_t end = end_of_previous(rules, item);
    if (lacks_inode(rules, item, fault))
        return true;
    struct bw_error *error = bw_file_extent_decode(item, rules->sectorsize, &extent);
    if (error)
        return bw_item_refused(fault, error);
    if (bw_generation_wrong(rules, fault, "generation", extent.generation))
        return true;

    /* Faults that do not keep anyone from reading the piece. */
    if (extent.other_encoding)
        return bw_item_wrong(fault, "unknown encoding %u", extent.other_encoding);
    if (extent.type == BW_FILE_EXTENT_PREALLOC && extent.compression)
        return bw_item_wrong(fault, "preallocated and compressed");
    if (item->key.offset > GREATEST_END || extent.num_bytes > GREATEST_END - item->key.offset)
        return bw_item_wrong(fault, "%" PRIu64 " bytes exceed the maximum size of a file",
                             extent.num_bytes);
    if (extent.type != BW_FILE_EXTENT_INLINE && !extent.disk_bytenr && extent.disk_num_bytes)
        return bw_item_wrong(fault, "a hole with disk_num_bytes %" PRIu64, extent.disk_num_bytes);
    if (end > item->key.offset)
        return bw_item_wrong_as(fault, BW_FAULT_items_overlap,
                                "the previous extent ends at %" PRIu64, end);
    return bw_later_than_leaf(rules, fault, BW_FAULT_extent_generation, "generation",
                              extent.generation) ||
           (extent.disk_bytenr && !extent.compression &&
            extent.ram_bytes != extent.disk_num_bytes &&
            bw_item_wrong_as(fault, BW_FAULT_file_extent_ram_bytes,
                             "ram_bytes %" PRIu64 " of an extent of %" PRIu64 " bytes",
                             extent.ram_bytes, extent.disk_num_bytes));
}
