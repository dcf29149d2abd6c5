/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A copy begins as zeros, and gets only bytes that a table of ondisk/ declares as numbers, and
 * replaced names. So nothing has to be found in order to be removed.
 *
 * Headers of blocks and items may be wrong. If an item count is too high, or a leaf has the level
 * of a node, contents of files lie in place of entries. So entries count only up to the first one
 * that the kernel would not have written: its key is not greater than the previous key, its item
 * does not end where the previous item begins, or its pointer is unaligned or newer than the node.
 * The count in the header stays the same, so that `check` finds the same fault in the copy.
 */
#include "trees/metadump.h"

#include <string.h>

#include "base/crc32c.h"
#include "ondisk/acl.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"
#include "ondisk/tables.h"

/* An item that is being copied. */
struct item_copy {
    const struct bw_dump_rules *rules;
    const struct bw_item *item;
    uint64_t owner;        /* of the block */
    struct bw_xattr xattr; /* whose value follows */
};

/* Names. */

/* Copies a name and replaces the part after `prefix` bytes, whose hash is `seed`. If the part is
 * short, it is copied unchanged. False: no replacement was found. */
static bool copy_name(const struct item_copy *copy, uint32_t seed, size_t prefix,
                      const uint8_t *name, uint8_t *target, size_t length)
{
    memcpy(target, name, length);
    return bw_pseudonym(copy->rules->names, seed, target + prefix, length - prefix) ||
           length - prefix <= BW_PSEUDONYM_NONE;
}

static bool copy_file_name(const struct item_copy *copy, const uint8_t *name, uint8_t *target,
                           size_t length)
{
    static const char default_name[] = "default";
    const struct bw_key *key = &copy->item->key;
    /* the entry of the root tree that leads to the default subvolume, and its reference */
    if ((key->objectid == BW_ROOT_TREE_DIR || key->offset == BW_ROOT_TREE_DIR) &&
        length == sizeof default_name - 1 && memcmp(name, default_name, length) == 0) {
        memcpy(target, name, length);
        return true;
    }
    return copy_name(copy, BW_NAME_SEED, 0, name, target, length);
}

/* Extended attributes. */

/* Names that programs define, and users do not choose. */
static const char *const common_xattrs[] = {
    BW_ACL_ACCESS,
    BW_ACL_DEFAULT,
    "btrfs.compression",
    "security.SMACK64",
    "security.SMACK64EXEC",
    "security.SMACK64MMAP",
    "security.SMACK64TRANSMUTE",
    "security.apparmor",
    "security.capability",
    "security.evm",
    "security.ima",
    "security.selinux",
    "trusted.overlay.impure",
    "trusted.overlay.metacopy",
    "trusted.overlay.nlink",
    "trusted.overlay.opaque",
    "trusted.overlay.origin",
    "trusted.overlay.redirect",
    "trusted.overlay.upper",
    "trusted.overlay.uuid",
    "user.overlay.impure",
    "user.overlay.metacopy",
    "user.overlay.opaque",
    "user.overlay.origin",
    "user.overlay.redirect",
};

static bool copy_xattr_name(struct item_copy *copy, const uint8_t *name, uint8_t *target,
                            size_t length)
{
    static const char *const prefixes[] = {"user.", "trusted.", "security.", "system.", "btrfs."};
    struct bw_xattr *xattr = &copy->xattr;
    size_t prefix = 0; /* by which the kernel chooses permissions: it is kept */
    *xattr = (struct bw_xattr){.name = name, .name_length = (uint16_t)length};
    for (size_t i = 0; i < sizeof common_xattrs / sizeof *common_xattrs; i++)
        if (bw_xattr_is_named(xattr, common_xattrs[i])) {
            memcpy(target, name, length);
            return true;
        }
    for (size_t i = 0; !prefix && i < sizeof prefixes / sizeof *prefixes; i++) {
        const size_t wanted = strlen(prefixes[i]);
        if (length > wanted && memcmp(name, prefixes[i], wanted) == 0)
            prefix = wanted;
    }
    return copy_name(copy, bw_crc32c(BW_NAME_SEED, name, prefix), prefix, name, target, length);
}

/* Zeros, except for values without which the kernel refuses to read the file or the attribute:
 * access control lists, and file capabilities, become valid ones that permit nothing special. */
static void set_xattr_value(const struct item_copy *copy, const uint8_t *value, uint8_t *target,
                            size_t length)
{
    /* three versions of struct vfs_cap_data in the kernel's uapi/linux/capability.h */
    static const uint8_t capability_sizes[] = {12, 20, 24};
    static const char *const words[] = {"zlib", "lzo", "zstd", "no", "none"}; /* of properties */
    bool is_default;
    if (bw_xattr_is_acl(&copy->xattr, &is_default))
        bw_acl_fill(target, length);
    else if (bw_xattr_is_named(&copy->xattr, "btrfs.compression"))
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (length == strlen(words[i]) && memcmp(value, words[i], length) == 0)
                memcpy(target, value, length);
    if (bw_xattr_is_named(&copy->xattr, "security.capability"))
        for (uint8_t i = 0; i < sizeof capability_sizes; i++)
            if (length == capability_sizes[i])
                target[3] = i + 1;
}

/* The other texts in items. */

static bool copy_text(void *context, const struct bw_member *member, const uint8_t *source,
                      uint8_t *target, size_t length)
{
    struct item_copy *copy = context;
    const struct bw_dump_rules *rules = copy->rules;
    const struct bw_key *key = &copy->item->key;
    const bool is_xattr = key->type == BW_XATTR_ITEM;
    switch (member->field->kind) {
    case BW_READ_NAME:
        if (!length || length > BW_NAME_MAX)
            return false;
        return is_xattr ? copy_xattr_name(copy, source, target, length)
                        : copy_file_name(copy, source, target, length);
    case BW_READ_DATA: /* directory entries have none */
        if (is_xattr)
            set_xattr_value(copy, source, target, length);
        return true;
    case BW_READ_CHECKSUMS:
        if ((copy->owner != BW_CSUM_TREE && copy->owner != BW_TREE_LOG) ||
            key->objectid != BW_EXTENT_CSUM_OBJECT || length % rules->checksum_size)
            return false;
        if (rules->checksums)
            memcpy(target, source, length);
        return true;
    default: /* only a bitmap of the range in the key is copied */
        if (copy->owner == BW_FREE_SPACE_TREE && key->type == BW_FREE_SPACE_BITMAP &&
            key->objectid % rules->sectorsize == 0 &&
            length == (key->offset / rules->sectorsize + 7) / 8)
            memcpy(target, source, length);
        return true;
    }
}

/* Items. */

static bool has_files(uint64_t owner)
{
    return bw_is_subvolume_id(owner) || owner == BW_TREE_LOG || owner == BW_TREE_RELOC ||
           owner == BW_DATA_RELOC_TREE;
}

/* In a tree of files, an item of another tree's type is damaged, so it may be an item with names.
 * Log trees also have checksums, and the roots of other log trees. */
static bool may_have_type(uint64_t owner, uint8_t type)
{
    switch (type) {
    case BW_INODE_ITEM:
    case BW_INODE_REF:
    case BW_INODE_EXTREF:
    case BW_XATTR_ITEM:
    case BW_VERITY_DESC_ITEM:
    case BW_VERITY_MERKLE_ITEM:
    case BW_ORPHAN_ITEM:
    case BW_DIR_ITEM:
    case BW_DIR_INDEX:
    case BW_EXTENT_DATA:
        return true;
    case BW_DIR_LOG_ITEM:
    case BW_DIR_LOG_INDEX:
        return owner == BW_TREE_LOG;
    case BW_EXTENT_CSUM:
    case BW_ROOT_ITEM:
        return owner == BW_TREE_LOG || !has_files(owner);
    case BW_UUID_SUBVOLUME:
    case BW_UUID_RECEIVED:
        return owner == BW_UUID_TREE;
    default:
        return !has_files(owner);
    }
}

static void copy_item(const struct bw_dump_rules *rules, const struct bw_item *item, uint64_t owner,
                      uint8_t *target)
{
    struct item_copy copy = {.rules = rules, .item = item, .owner = owner};
    struct bw_known_bytes known = {.generation = rules->generation,
                                   .sectorsize = rules->sectorsize,
                                   .checksum_size = rules->checksum_size,
                                   .uuids = rules->uuids,
                                   .uuid_count = rules->uuid_count,
                                   .copy_text = copy_text,
                                   .context = &copy};
    const struct bw_structure *structure = NULL;
    if (may_have_type(owner, item->key.type))
        structure = bw_structure_numbered(bw_structure_number(&item->key));
    /* The first piece of a verity descriptor: sizes, then hashes. */
    if (item->key.type == BW_VERITY_DESC_ITEM && item->key.offset == 1 &&
        item->size >= sizeof(struct bw_disk_fsverity))
        structure = &bw_structure_fsverity_descriptor;
    if (!bw_known_bytes_of_item(&known, item, structure, target))
        return;
    /* The table omits the inode. Without its flags, the kernel ignores the flags of the root. */
    if (item->key.type == BW_ROOT_ITEM) {
        known.impossible = 0;
        bw_known_bytes_of_structure(&known, item->data, &bw_structure_inode_item, target);
        if (known.impossible > 1)
            memset(target, 0, sizeof(struct bw_disk_inode_item));
    }
    /* The target of a symbolic link is an inline extent, which must not contain NUL. The item does
     * not show whether its file is a link, so all such extents get underscores. */
    enum { HEAD = offsetof(struct bw_disk_file_extent, disk_bytenr), LONGEST_TARGET = 4095 };
    const struct bw_disk_file_extent *extent = (const void *)target;
    if (item->key.type == BW_EXTENT_DATA && extent->type == BW_FILE_EXTENT_INLINE &&
        !extent->compression && !item->key.offset &&
        bw_get64(extent->ram_bytes) == item->size - HEAD && item->size <= HEAD + LONGEST_TARGET)
        memset(target + HEAD, '_', item->size - HEAD);
}

/* Blocks. */

/* Counts the good entries at the beginning of a block. If two keys are not in order, both are bad:
 * either of them may be no key. `is_good` verifies the rest of an entry. */
static uint32_t count_good(const struct bw_node *node,
                           bool (*is_good)(const struct bw_node *node, uint32_t slot))
{
    const size_t step =
        node->level ? sizeof(struct bw_disk_key_pointer) : sizeof(struct bw_disk_item);
    const uint8_t *entry = node->block + sizeof(struct bw_disk_header);
    const bool has_uuids =
        bw_get64(((const struct bw_disk_header *)node->block)->owner) == BW_UUID_TREE;
    struct bw_key previous = {0};
    for (uint32_t slot = 0; slot < node->item_count; slot++, entry += step) {
        const struct bw_key key = bw_key_decode((const void *)entry);
        if (slot && bw_key_compare(&previous, &key) >= 0)
            return slot - 1;
        const bool is_uuid = key.type == BW_UUID_SUBVOLUME || key.type == BW_UUID_RECEIVED;
        if (!bw_known_key(&key) || !is_good(node, slot) || (is_uuid && !has_uuids))
            return slot;
        previous = key;
    }
    return node->item_count;
}

static bool is_good_pointer(const struct bw_node *node, uint32_t slot)
{
    const struct bw_disk_header *header = (const void *)node->block;
    const struct bw_node_pointer pointer = bw_node_pointer_at(node, slot);
    return pointer.bytenr && pointer.bytenr % BW_MIN_SECTORSIZE == 0 && pointer.bytenr >> 56 == 0 &&
           pointer.generation <= bw_get64(header->generation);
}

/* Whether the item ends where the previous item begins. */
static bool is_good_item(const struct bw_node *leaf, uint32_t slot)
{
    struct bw_item item;
    const uint8_t *end = leaf->block + leaf->nodesize;
    if (slot)
        end = leaf->block + sizeof(struct bw_disk_header) +
              bw_get32(bw_node_disk_item(leaf, slot - 1)->offset);
    return bw_leaf_item(leaf, slot, &item) && item.data + item.size == end;
}

void bw_sanitized_block_copy(const struct bw_dump_rules *rules, const struct bw_node *node,
                             uint8_t *target)
{
    static const uint64_t flags = UINT64_C(7) | UINT64_C(1) << BW_BACKREF_REVISION_SHIFT;
    const struct bw_disk_header *header = (const void *)node->block;
    struct bw_disk_header *copy = (void *)target;
    const uint64_t owner = bw_get64(header->owner), generation = bw_get64(header->generation);
    const struct bw_key owner_key = {owner, 0, 0};
    memcpy(copy->fsid, rules->fsid, BW_UUID_SIZE);
    copy->bytenr = header->bytenr;
    copy->flags = bw_put64(bw_known_flags(bw_get64(header->flags), flags));
    if (memcmp(header->chunk_tree_uuid, rules->chunk_tree_uuid, BW_UUID_SIZE) == 0)
        memcpy(copy->chunk_tree_uuid, rules->chunk_tree_uuid, BW_UUID_SIZE);
    copy->generation = bw_put64(generation <= rules->generation ? generation : UINT64_MAX);
    copy->owner = bw_put64(bw_known_key(&owner_key) ? owner : UINT64_MAX);
    copy->item_count = header->item_count;
    copy->level = header->level;

    const uint32_t good = count_good(node, node->level ? is_good_pointer : is_good_item);
    const size_t entry =
        node->level ? sizeof(struct bw_disk_key_pointer) : sizeof(struct bw_disk_item);
    memcpy(target + sizeof *header, node->block + sizeof *header, good * entry);
    for (uint32_t slot = 0; slot < good && !node->level; slot++) {
        struct bw_item item;
        bw_leaf_item(node, slot, &item);
        copy_item(rules, &item, owner, target + (item.data - node->block));
    }
}

/* Superblocks. */

/* Members that the record of superblocks does not have. */
static const struct bw_member more_members[] = {
    BW_NUMBER(superblock, device.start_offset, ""),
    BW_NUMBER(superblock, global_root_count, ""),
    BW_RANGED(ALIGNED, superblock, remap_root, ""),
    BW_GENERATION(superblock, remap_root_generation, ""),
    BW_RANGED(LEVEL, superblock, remap_root_level, ""),
    BW_FIELD(superblock, metadata_uuid, BYTES, UUID, ""),
};
static BW_STRUCTURE(more, sizeof(struct bw_disk_superblock), "", "");

void bw_sanitized_superblock_copy(const struct bw_dump_rules *rules,
                                  const struct bw_disk_superblock *source,
                                  struct bw_disk_superblock *target)
{
    struct bw_known_bytes known = {
        .generation = rules->generation, .uuids = rules->uuids, .uuid_count = rules->uuid_count};
    memset(target, 0, sizeof *target);
    bw_known_bytes_of_structure(&known, source, &bw_structure_superblockinfo, target);
    bw_known_bytes_of_structure(&known, source, &bw_structure_more, target);
    target->magic = source->magic;
    target->cache_generation = bw_put64(0); /* there is no space cache */
}
