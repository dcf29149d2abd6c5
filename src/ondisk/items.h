/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Items of the root tree and of subvolume trees, decoded from their bytes with every length
 * checked.
 *
 * Items that pack several records (DIR_ITEM, INODE_REF, INODE_EXTREF) are read with a cursor: start
 * it with bw_cursor_of(), call the reader until it returns false, then ask bw_cursor_bad() whether
 * the end was a clean one.
 */
#ifndef BW_ONDISK_ITEMS_H
#define BW_ONDISK_ITEMS_H

#include <string.h>

#include "base/short_copy.h"
#include "btrfs-walk/inode.h"
#include "ondisk/node.h"
#include "ondisk/superblock.h"

/** A position in an item's bytes that cannot leave them. */
struct bw_cursor {
    const uint8_t *next;
    const uint8_t *end;
    bool bad; /**< a record is longer than the rest of the item */
};

static inline struct bw_cursor bw_cursor_of(const struct bw_item *item)
{
    return (struct bw_cursor){item->data, item->data + item->size, false};
}

/** Whether reading ended because a record was cut off. */
static inline bool bw_cursor_bad(const struct bw_cursor *cursor)
{
    return cursor->bad;
}

/** The next `length` bytes, or NULL (and the cursor is marked bad) if there are fewer. */
static inline const uint8_t *bw_cursor_take(struct bw_cursor *cursor, size_t length)
{
    if ((size_t)(cursor->end - cursor->next) < length) {
        cursor->bad = true;
        return NULL;
    }
    const uint8_t *bytes = cursor->next;
    cursor->next += length;
    return bytes;
}

/** A directory entry. The name is a view on the item: raw bytes, not terminated. */
struct bw_dir_entry {
    struct bw_key location; /**< the child: (inode, INODE_ITEM, 0) or (subvolume, ROOT_ITEM, -1) */
    const uint8_t *name;
    uint16_t name_length;
    uint8_t type; /**< BW_FILE_*, encryption bit removed */
};

/** The type of an entry on disk, without the encryption bit. */
static inline uint8_t bw_dir_entry_type(const struct bw_disk_dir_item *entry)
{
    return entry->type & 0x7f;
}

/** Next entry of a DIR_ITEM or DIR_INDEX; false at the end or when the rest does not fit (cursor
 * bad). */
static inline bool bw_dir_entry_next(struct bw_cursor *cursor, struct bw_dir_entry *entry)
{
    if (cursor->next == cursor->end)
        return false;
    const struct bw_disk_dir_item *disk = (const void *)bw_cursor_take(cursor, sizeof *disk);
    if (!disk)
        return false;
    entry->location = bw_key_decode(&disk->location);
    entry->name_length = bw_get16(disk->name_length);
    entry->type = disk->type & BW_FILE_TYPE_MASK;
    entry->name = bw_cursor_take(cursor, entry->name_length);
    return entry->name && bw_cursor_take(cursor, bw_get16(disk->data_length));
}

/** The entry in an item of a leaf, if the item is a DIR_INDEX of the directory and has a single
 * entry, of a regular file; NULL otherwise. The name, which may be invalid, follows the entry. */
static inline const struct bw_disk_dir_item *bw_leaf_file_entry(const struct bw_node *leaf,
                                                                uint32_t slot, uint64_t directory)
{
    struct bw_item item;
    if (!bw_leaf_item(leaf, slot, &item) || item.key.type != BW_DIR_INDEX ||
        item.key.objectid != directory)
        return NULL;
    const struct bw_disk_dir_item *entry = (const void *)item.data;
    const bool is_ordinary =
        item.size > sizeof *entry && item.size <= sizeof *entry + BW_NAME_MAX &&
        entry->type == BW_FILE_REGULAR && entry->location.type == BW_INODE_ITEM &&
        bw_get16(entry->name_length) == item.size - sizeof *entry &&
        bw_get16(entry->data_length) == 0;
    return is_ordinary ? entry : NULL;
}

/** Next attribute of an XATTR_ITEM; false at the end or when the rest does not fit (cursor bad). */
bool bw_xattr_next(struct bw_cursor *cursor, struct bw_xattr *xattr);

/** Whether an extended attribute has a name. */
static inline bool bw_xattr_is_named(const struct bw_xattr *xattr, const char *name)
{
    return xattr->name_length == strlen(name) && memcmp(xattr->name, name, xattr->name_length) == 0;
}

/** Decodes an INODE_ITEM; false if it is cut off, or its size is more than 2^63-1 bytes, which no
 * file can have: such an inode is damaged, and reading or hashing its file would never end. The
 * size of a directory, which means little, becomes 2^63-1 instead. */
bool bw_inode_decode(const struct bw_item *item, struct bw_inode *inode);

/** The size in an INODE_ITEM that was decoded, exactly as it is there. */
uint64_t bw_inode_stored_size(const struct bw_item *item);

/** A name of an inode, seen from the inode. */
struct bw_inode_ref {
    uint64_t parent; /**< inode of the directory */
    uint64_t index;  /**< offset of the DIR_INDEX key of the same name */
    const uint8_t *name;
    uint16_t name_length;
};

/** Next name of an INODE_REF or INODE_EXTREF item; false at the end or when the rest does not fit
 * (cursor bad). */
static inline bool bw_inode_ref_next(struct bw_cursor *cursor, const struct bw_key *key,
                                     struct bw_inode_ref *ref)
{
    if (cursor->next == cursor->end)
        return false;
    if (key->type == BW_INODE_EXTREF) {
        const struct bw_disk_inode_extref *disk =
            (const void *)bw_cursor_take(cursor, sizeof *disk);
        if (!disk)
            return false;
        *ref = (struct bw_inode_ref){bw_get64(disk->parent), bw_get64(disk->index), NULL,
                                     bw_get16(disk->name_length)};
    } else {
        const struct bw_disk_inode_ref *disk = (const void *)bw_cursor_take(cursor, sizeof *disk);
        if (!disk)
            return false;
        *ref = (struct bw_inode_ref){key->offset, bw_get64(disk->index), NULL,
                                     bw_get16(disk->name_length)};
    }
    ref->name = bw_cursor_take(cursor, ref->name_length);
    return ref->name != NULL;
}

/** All bits of a byte that a name cannot contain, others are 0. */
static inline bw_chunk bw_invalid_bytes(bw_chunk chunk)
{
    return (bw_chunk)(chunk == '/') | (bw_chunk)(chunk == 0);
}

/** Whether a name can be an entry of a directory: 1 to 255 bytes, no '/', no NUL, not "." or "..".
 */
bool bw_name_is_valid(const uint8_t *name, size_t length);

/** A ROOT_ITEM. */
struct bw_root_item {
    struct bw_root_pointer root;
    uint64_t flags;
    uint64_t last_snapshot; /**< blocks up to this generation may be shared with snapshots */
    uint64_t bytes;         /**< size of the tree's blocks; only an estimate */
    uint32_t references;    /**< 0: the subvolume is being deleted */
    bool is_snapshot;       /**< it has a parent uuid */
};

/** Decodes a ROOT_ITEM of either size; BW_ERROR_CORRUPT if it is too short or its level impossible.
 */
struct bw_error *bw_root_item_decode(const struct bw_item *item, struct bw_root_item *root);

/** Name of the type of a key; NULL if it has no meaning. */
const char *bw_key_type_find(uint8_t type);

/** A ROOT_REF or ROOT_BACKREF: the name under which a subvolume hangs in its parent. */
struct bw_root_ref {
    uint64_t directory; /**< inode in the parent subvolume */
    uint64_t index;     /**< offset of the DIR_INDEX key */
    const uint8_t *name;
    uint16_t name_length;
};

/** Decodes a ROOT_REF or ROOT_BACKREF; false if it is cut off. */
bool bw_root_ref_decode(const struct bw_item *item, struct bw_root_ref *ref);

/* Items of the extent tree that describe tree blocks. */

/** A tree block that is in use. */
struct bw_tree_extent {
    uint64_t bytenr;
    uint64_t generation; /**< transaction that wrote it */
    uint8_t level;
    struct bw_cursor references; /**< for bw_extent_reference_next() */
};

/** A reference to a tree block: from a tree (the block belongs to it), or from the node above it
 * (it is shared). */
struct bw_extent_reference {
    bool shared;
    uint64_t referrer; /**< id of the tree or, if shared, address of the node above */
};

/** Reads a METADATA_ITEM, or an EXTENT_ITEM of a tree block; false for any other item, or one that
 * is cut off. */
bool bw_tree_extent_decode(const struct bw_item *item, struct bw_tree_extent *extent);

/** Next reference that is kept in the item itself; false at the end, or at one that no tree block
 * can have.
 */
bool bw_extent_reference_next(struct bw_cursor *cursor, struct bw_extent_reference *reference);

/** Reads a separate reference item, to the block at key.objectid; false for any other item. */
bool bw_extent_reference_of_key(const struct bw_key *key, struct bw_extent_reference *reference);

/** Name of the type of a directory entry ("file", "directory", ...), which may be a "subvolume". */
const char *bw_entry_type_name(const struct bw_dir_entry *entry);

/*
 * EXTENT_DATA items: where a piece of a file is stored, or the piece itself. A piece that has
 * passed bw_file_extent_decode() needs no further checks before it is read; compression.h
 * decompresses it.
 *
 * Sources: struct btrfs_file_extent_item in the kernel's uapi/linux/btrfs_tree.h, and the "on-disk
 * format" and "Compression" chapters of the btrfs documentation.
 */

/** A piece of a file, which starts at the offset of the item's key. The extent occupies
 * `disk_num_bytes` at `disk_bytenr`, and `ram_bytes` when decompressed; `num_bytes` of these, from
 * `offset` on, are the piece. The item of an inline extent contains the stored bytes. */
struct bw_file_extent {
    uint64_t generation; /**< transaction that wrote it */
    uint64_t ram_bytes;  /**< may be wrong without compression: some kernels did not update it */
    uint8_t compression; /**< BW_COMPRESS_* */
    uint8_t encryption;  /**< always 0 */
    uint16_t other_encoding;    /**< always 0 */
    uint8_t type;               /**< BW_FILE_EXTENT_* */
    uint64_t disk_bytenr;       /**< logical address; 0: a hole, or inline */
    uint64_t disk_num_bytes;    /**< 0 if inline */
    uint64_t offset;            /**< 0 if inline */
    uint64_t num_bytes;         /**< never 0; ram_bytes if inline */
    const uint8_t *inline_data; /**< a view on the item; NULL if not inline */
    uint32_t inline_length;
};

/**
 * Decodes an EXTENT_DATA item. BW_ERROR_CORRUPT if a length or an address is impossible,
 * BW_ERROR_UNSUPPORTED for encryption, and for encodings and compressions that are not known.
 */
struct bw_error *bw_file_extent_decode(const struct bw_item *item, uint32_t sectorsize,
                                       struct bw_file_extent *extent);

#endif
