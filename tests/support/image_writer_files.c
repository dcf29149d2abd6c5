/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * File trees as the kernel writes them. An inode is an INODE_ITEM. Each of its names is an
 * INODE_REF or INODE_EXTREF, and in the directory a DIR_ITEM (by hash) and a DIR_INDEX (by number).
 * Subvolumes have a ROOT_ITEM, ROOT_REF and ROOT_BACKREF in the root tree.
 */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "image_writer_internal.h"

/* Inodes. */

static uint32_t mode_of(uint8_t type)
{
    static const uint32_t modes[] = {
        [BW_FILE_REGULAR] = 0100644,
        [BW_FILE_DIRECTORY] = 0040755,
        [BW_FILE_CHARACTER_DEVICE] = 0020600,
        [BW_FILE_BLOCK_DEVICE] = 0060600,
        [BW_FILE_FIFO] = 0010644,
        [BW_FILE_SOCKET] = 0140755,
        [BW_FILE_SYMLINK] = 0120777,
    };
    return type < sizeof modes / sizeof *modes ? modes[type] : 0;
}

void iw_init_inode(const struct iw_image *image, struct bw_disk_inode_item *inode, uint8_t type)
{
    struct bw_disk_timespec time = {bw_put64(IW_TIME), bw_put32(0)};
    *inode = (struct bw_disk_inode_item){
        .generation = bw_put64(image->options.generation),
        .transid = bw_put64(image->options.generation),
        .link_count = bw_put32(type == BW_FILE_DIRECTORY), /* others: counted up name by name */
        .mode = bw_put32(mode_of(type)),
        .atime = time,
        .ctime = time,
        .mtime = time,
        .otime = time,
    };
}

static struct bw_disk_inode_item *find_inode(const struct iw_tree *tree, uint64_t inode)
{
    struct iw_item *item = iw_find_item(tree, (struct bw_key){inode, BW_INODE_ITEM, 0});
    return item && item->size >= sizeof(struct bw_disk_inode_item) ? (void *)item->bytes : NULL;
}

/* A directory's size is twice the length of its names. */
static void change_size(const struct iw_tree *tree, uint64_t directory, int64_t change)
{
    struct bw_disk_inode_item *inode = find_inode(tree, directory);
    if (inode)
        inode->size = bw_put64(bw_get64(inode->size) + (uint64_t)change);
}

/** INODE_ITEM and ".." of a top directory. */
static void iw_put_top_directory(struct iw_image *image, struct iw_tree *tree)
{
    static const uint8_t up[] = {0, 0, 0, 0, 0, 0, 0, 0, 2, 0, '.', '.'};
    const uint64_t top = BW_SUBVOLUME_ROOT_INODE;
    struct bw_disk_inode_item inode;
    iw_init_inode(image, &inode, BW_FILE_DIRECTORY);
    iw_put(tree, (struct bw_key){top, BW_INODE_ITEM, 0}, &inode, sizeof inode);
    iw_put(tree, (struct bw_key){top, BW_INODE_REF, top}, up, sizeof up);
}

/* Names. */

static uint64_t next_index(const struct iw_tree *tree, uint64_t directory)
{
    size_t after = iw_lower_bound(tree, (struct bw_key){directory, BW_DIR_INDEX + 1, 0});
    if (!after)
        return 2;
    const struct bw_key *last = &tree->items[after - 1]->key;
    return last->objectid == directory && last->type == BW_DIR_INDEX ? last->offset + 1 : 2;
}

/* A record of a fixed part and a name; the caller frees it. */
static uint8_t *with_name(const void *fixed, size_t fixed_size, const void *name, size_t length)
{
    uint8_t *record = iw_zalloc(fixed_size + length);
    memcpy(record, fixed, fixed_size);
    memcpy(record + fixed_size, name, length);
    return record;
}

static void append_named(struct iw_tree *tree, struct bw_key key, const void *fixed,
                         size_t fixed_size, const void *name, size_t length)
{
    uint8_t *record = with_name(fixed, fixed_size, name, length);
    iw_append(tree, key, record, fixed_size + length);
    free(record);
}

uint64_t iw_entry(struct iw_image *image, uint64_t subvolume, const struct iw_entry *entry)
{
    struct iw_tree *tree = iw_tree(image, subvolume);
    size_t length = entry->name_length ? entry->name_length : strlen(entry->name);
    uint64_t index = entry->index ? entry->index : next_index(tree, entry->directory);
    struct bw_disk_dir_item item = {
        .location = iw_disk_key(entry->location),
        .transid = bw_put64(image->options.generation),
        .name_length = bw_put16((uint16_t)length),
        .type = entry->type,
    };
    struct bw_key by_hash = {entry->directory, BW_DIR_ITEM, bw_name_hash(entry->name, length)};
    struct bw_key by_index = {entry->directory, BW_DIR_INDEX, index};
    if (!entry->without_item)
        append_named(tree, by_hash, &item, sizeof item, entry->name, length);
    if (!entry->without_index)
        append_named(tree, by_index, &item, sizeof item, entry->name, length);
    int records = !entry->without_item + !entry->without_index;
    change_size(tree, entry->directory, records * (int64_t)length);
    return index;
}

static void put_ref(struct iw_tree *tree, uint64_t inode, uint64_t directory, uint64_t index,
                    const char *name)
{
    struct bw_disk_inode_ref ref = {bw_put64(index), bw_put16((uint16_t)strlen(name))};
    append_named(tree, (struct bw_key){inode, BW_INODE_REF, directory}, &ref, sizeof ref, name,
                 strlen(name));
}

static void put_extref(struct iw_tree *tree, uint64_t inode, uint64_t directory, uint64_t index,
                       const char *name)
{
    size_t length = strlen(name);
    uint32_t hash = bw_crc32c((uint32_t)directory, name, length);
    struct bw_disk_inode_extref ref = {bw_put64(directory), bw_put64(index),
                                       bw_put16((uint16_t)length)};
    append_named(tree, (struct bw_key){inode, BW_INODE_EXTREF, hash}, &ref, sizeof ref, name,
                 length);
}

static uint8_t type_of(const struct iw_tree *tree, uint64_t inode)
{
    struct bw_disk_inode_item *item = find_inode(tree, inode);
    for (uint8_t type = BW_FILE_REGULAR; item && type <= BW_FILE_SYMLINK; type++)
        if (bw_get32(item->mode) == mode_of(type))
            return type;
    return BW_FILE_UNKNOWN;
}

static void link_inode(struct iw_image *image, uint64_t subvolume, uint64_t inode,
                       uint64_t directory, const char *name, bool extended)
{
    struct iw_tree *tree = iw_tree(image, subvolume);
    uint8_t type = type_of(tree, inode);
    uint64_t index = iw_entry(image, subvolume,
                              &(struct iw_entry){.directory = directory,
                                                 .name = name,
                                                 .type = type,
                                                 .location = {inode, BW_INODE_ITEM, 0}});
    const struct iw_item *refs =
        iw_find_item(tree, (struct bw_key){inode, BW_INODE_REF, directory});
    size_t size = (refs ? refs->size : 0) + sizeof(struct bw_disk_inode_ref) + strlen(name);
    if (extended || size + sizeof(struct bw_disk_item) > iw_leaf_space(image))
        put_extref(tree, inode, directory, index, name);
    else
        put_ref(tree, inode, directory, index, name);
    struct bw_disk_inode_item *item = find_inode(tree, inode);
    if (item && type != BW_FILE_DIRECTORY)
        item->link_count = bw_put32(bw_get32(item->link_count) + 1);
}

void iw_link(struct iw_image *image, uint64_t subvolume, uint64_t inode, uint64_t directory,
             const char *name)
{
    link_inode(image, subvolume, inode, directory, name, false);
}

void iw_link_extended(struct iw_image *image, uint64_t subvolume, uint64_t inode,
                      uint64_t directory, const char *name)
{
    link_inode(image, subvolume, inode, directory, name, true);
}

void iw_next_inode(struct iw_image *image, uint64_t subvolume, uint64_t inode)
{
    iw_tree(image, subvolume)->next_inode = inode;
}

uint64_t iw_make(struct iw_image *image, uint64_t subvolume, uint64_t directory, const char *name,
                 uint8_t type)
{
    struct iw_tree *tree = iw_tree(image, subvolume);
    while (find_inode(tree, tree->next_inode))
        tree->next_inode++;
    uint64_t inode = tree->next_inode++;
    struct bw_disk_inode_item item;
    iw_init_inode(image, &item, type);
    iw_put(tree, (struct bw_key){inode, BW_INODE_ITEM, 0}, &item, sizeof item);
    iw_link(image, subvolume, inode, directory, name);
    return inode;
}

uint64_t iw_file(struct iw_image *image, uint64_t subvolume, uint64_t directory, const char *name)
{
    return iw_make(image, subvolume, directory, name, BW_FILE_REGULAR);
}

uint64_t iw_directory(struct iw_image *image, uint64_t subvolume, uint64_t directory,
                      const char *name)
{
    return iw_make(image, subvolume, directory, name, BW_FILE_DIRECTORY);
}

uint64_t iw_symlink(struct iw_image *image, uint64_t subvolume, uint64_t directory,
                    const char *name, const char *target)
{
    uint64_t inode = iw_make(image, subvolume, directory, name, BW_FILE_SYMLINK);
    iw_inline_data(image, subvolume, inode, target, strlen(target));
    return inode;
}

void iw_inline_data(struct iw_image *image, uint64_t subvolume, uint64_t inode, const void *bytes,
                    size_t size)
{
    struct iw_tree *tree = iw_tree(image, subvolume);
    struct iw_disk_inline_extent extent = {.generation = bw_put64(image->options.generation),
                                           .ram_bytes = bw_put64(size)};
    uint8_t *record = with_name(&extent, sizeof extent, bytes, size);
    iw_put(tree, (struct bw_key){inode, BW_EXTENT_DATA, 0}, record, sizeof extent + size);
    free(record);
    struct bw_disk_inode_item *item = find_inode(tree, inode);
    if (item) {
        item->size = bw_put64(size);
        item->bytes = bw_put64(size);
    }
}

void iw_property(struct iw_image *image, uint64_t subvolume, uint64_t inode, const char *name,
                 const char *value)
{
    const size_t name_length = strlen(name), value_length = strlen(value);
    const struct bw_disk_dir_item item = {
        .transid = bw_put64(image->options.generation),
        .name_length = bw_put16((uint16_t)name_length),
        .data_length = bw_put16((uint16_t)value_length),
        .type = IW_FILE_XATTR,
    };
    const struct bw_key key = {inode, BW_XATTR_ITEM, bw_name_hash(name, name_length)};
    uint8_t *pair = with_name(name, name_length, value, value_length);
    append_named(iw_tree(image, subvolume), key, &item, sizeof item, pair,
                 name_length + value_length);
    free(pair);
}

/* Removing and moving. */

/* Takes the record that ends with `name` out of an item of packed records; false if it is not
 * there. */
static bool cut_record(struct iw_image *image, uint64_t tree, struct bw_key key, size_t fixed_size,
                       size_t length_offset, const char *name)
{
    size_t size = 0, offset = 0, length = strlen(name);
    uint8_t *bytes = iw_item_bytes(image, tree, key, &size);
    while (bytes && offset + fixed_size <= size) {
        bw_le16 stored;
        memcpy(&stored, bytes + offset + length_offset, sizeof stored);
        size_t record = fixed_size + bw_get16(stored);
        if (bw_get16(stored) == length && memcmp(bytes + offset + fixed_size, name, length) == 0) {
            memmove(bytes + offset, bytes + offset + record, size - offset - record);
            iw_find_item(iw_tree(image, tree), key)->size -= record;
            if (size == record)
                iw_remove_item(image, tree, key);
            return true;
        }
        offset += record;
    }
    return false;
}

void iw_remove_entry(struct iw_image *image, uint64_t subvolume, uint64_t directory,
                     const char *name)
{
    const size_t fixed = sizeof(struct bw_disk_dir_item);
    const size_t at = offsetof(struct bw_disk_dir_item, name_length);
    struct iw_tree *tree = iw_tree(image, subvolume);
    int64_t length = (int64_t)strlen(name), records = 0;
    struct bw_key by_hash = {directory, BW_DIR_ITEM, bw_name_hash(name, strlen(name))};
    records += cut_record(image, subvolume, by_hash, fixed, at, name);
    size_t index = iw_lower_bound(tree, (struct bw_key){directory, BW_DIR_INDEX, 0});
    for (; index < tree->count; index++) {
        struct bw_key key = tree->items[index]->key;
        if (key.objectid != directory || key.type != BW_DIR_INDEX)
            break;
        if (cut_record(image, subvolume, key, fixed, at, name)) {
            records++;
            break;
        }
    }
    if (!records)
        iw_die("no entry \"%s\" to remove", name);
    change_size(tree, directory, -records * length);
}

void iw_move(struct iw_image *image, uint64_t subvolume, uint64_t inode, uint64_t from,
             const char *name, uint64_t to, const char *new_name)
{
    struct iw_tree *tree = iw_tree(image, subvolume);
    iw_remove_entry(image, subvolume, from, name);
    if (!cut_record(image, subvolume, (struct bw_key){inode, BW_INODE_REF, from},
                    sizeof(struct bw_disk_inode_ref),
                    offsetof(struct bw_disk_inode_ref, name_length), name))
        iw_die("inode %lld has no name \"%s\" in %lld", (long long)inode, name, (long long)from);
    struct bw_disk_inode_item *item = find_inode(tree, inode);
    if (item && type_of(tree, inode) != BW_FILE_DIRECTORY)
        item->link_count = bw_put32(bw_get32(item->link_count) - 1);
    iw_link(image, subvolume, inode, to, new_name);
}

/*
 * Subvolumes and snapshots: ROOT_ITEM, ROOT_REF and ROOT_BACKREF in the root tree, an entry in the
 * parent. Where the blocks of a snapshot come from is the layout's business; here it is a tree that
 * knows its origin.
 */

struct iw_item *iw_find_root_item(const struct iw_image *image, uint64_t id)
{
    const struct iw_tree *roots = iw_find_tree(image, BW_ROOT_TREE);
    size_t index = iw_lower_bound(roots, (struct bw_key){id, BW_ROOT_ITEM, 0});
    if (index == roots->count || roots->items[index]->key.objectid != id ||
        roots->items[index]->key.type != BW_ROOT_ITEM)
        return NULL;
    return roots->items[index];
}

void iw_put_root_item(struct iw_image *image, uint64_t id, uint64_t flags,
                      const struct iw_tree *source)
{
    uint64_t generation = image->options.generation;
    bool is_file_tree = id == BW_TOP_SUBVOLUME || id == IW_DATA_RELOC_TREE ||
                        (id >= BW_FIRST_SUBVOLUME && id <= BW_LAST_SUBVOLUME);
    struct bw_disk_root_item root = {
        .root_directory = bw_put64(is_file_tree ? BW_SUBVOLUME_ROOT_INODE : 0),
        .last_snapshot = bw_put64(source ? generation : 0),
        .flags = bw_put64(flags),
        .reference_count = bw_put32(1),
    };
    iw_init_inode(image, &root.inode, BW_FILE_DIRECTORY);
    root.inode.size = bw_put64(3); /* as mkfs and the kernel write it; it means nothing */
    root.inode.bytes = bw_put64(image->options.nodesize);
    if (is_file_tree)
        iw_uuid(image, IW_UUID_SUBVOLUME, id, root.uuid);
    if (source)
        iw_uuid(image, IW_UUID_SUBVOLUME, source->id, root.parent_uuid);
    struct bw_key key = {id, BW_ROOT_ITEM, source ? generation : 0};
    iw_put(iw_tree(image, BW_ROOT_TREE), key, &root, sizeof root);
}

/* The entry comes first, whose index the two references repeat. */
void iw_attach(struct iw_image *image, uint64_t id, uint64_t parent, uint64_t directory,
               const char *name)
{
    size_t length = strlen(name);
    uint64_t index = iw_entry(image, parent,
                              &(struct iw_entry){.directory = directory,
                                                 .name = name,
                                                 .type = BW_FILE_DIRECTORY,
                                                 .location = {id, BW_ROOT_ITEM, UINT64_MAX}});
    struct {
        struct bw_disk_root_ref ref;
        char name[BW_NAME_MAX];
    } record = {.ref = {bw_put64(directory), bw_put64(index), bw_put16((uint16_t)length)}};
    if (length > sizeof record.name)
        iw_die("name too long: \"%s\"", name);
    memcpy(record.name, name, length);
    struct iw_tree *roots = iw_tree(image, BW_ROOT_TREE);
    iw_put(roots, (struct bw_key){parent, BW_ROOT_REF, id}, &record, sizeof record.ref + length);
    iw_put(roots, (struct bw_key){id, BW_ROOT_BACKREF, parent}, &record,
           sizeof record.ref + length);
}

static struct iw_tree *make_file_tree(struct iw_image *image, uint64_t id)
{
    if (iw_find_tree(image, id))
        iw_die("subvolume %lld exists", (long long)id);
    return iw_tree(image, id);
}

void iw_subvolume(struct iw_image *image, uint64_t id, uint64_t parent, uint64_t directory,
                  const char *name, uint64_t flags)
{
    iw_put_top_directory(image, make_file_tree(image, id));
    iw_put_root_item(image, id, flags, NULL);
    if (parent)
        iw_attach(image, id, parent, directory, name);
}

static const struct iw_tree *find_source(struct iw_image *image, uint64_t id)
{
    const struct iw_tree *source = iw_find_tree(image, id);
    if (!source)
        iw_die("no subvolume %lld to share", (long long)id);
    return source;
}

static void note_snapshot(struct iw_image *image, uint64_t id)
{
    struct iw_item *item = iw_find_root_item(image, id);
    if (item)
        ((struct bw_disk_root_item *)item->bytes)->last_snapshot =
            bw_put64(image->options.generation);
}

void iw_snapshot(struct iw_image *image, uint64_t id, uint64_t source_id, uint64_t parent,
                 uint64_t directory, const char *name, uint64_t flags)
{
    const struct iw_tree *source = find_source(image, source_id);
    if (source->alias)
        source = find_source(image, source->origin);
    struct iw_tree *tree = make_file_tree(image, id);
    tree->origin = source->id;
    tree->items_per_leaf = source->items_per_leaf;
    tree->pointers_per_node = source->pointers_per_node;
    tree->minimum_level = source->minimum_level;
    tree->next_inode = source->next_inode;
    for (size_t i = 0; i < source->count; i++)
        iw_put(tree, source->items[i]->key, source->items[i]->bytes, source->items[i]->size);
    iw_put_root_item(image, id, flags, source);
    note_snapshot(image, source->id);
    if (parent)
        iw_attach(image, id, parent, directory, name);
}

void iw_alias(struct iw_image *image, uint64_t id, uint64_t source_id, uint64_t parent,
              uint64_t directory, const char *name)
{
    const struct iw_tree *source = find_source(image, source_id);
    struct iw_tree *tree = make_file_tree(image, id);
    tree->origin = source->alias ? source->origin : source->id;
    tree->alias = true;
    iw_put_root_item(image, id, 0, source);
    if (parent)
        iw_attach(image, id, parent, directory, name);
}

/* Removes the ROOT_REF of a subvolume, its ROOT_BACKREF and the entry they speak of. */
static void detach(struct iw_image *image, uint64_t id)
{
    struct iw_tree *roots = iw_tree(image, BW_ROOT_TREE);
    size_t index = iw_lower_bound(roots, (struct bw_key){id, BW_ROOT_BACKREF, 0});
    if (index == roots->count || roots->items[index]->key.objectid != id ||
        roots->items[index]->key.type != BW_ROOT_BACKREF)
        return;
    struct bw_key key = roots->items[index]->key;
    const struct bw_disk_root_ref *ref = (const void *)roots->items[index]->bytes;
    char name[BW_NAME_MAX + 1] = "";
    memcpy(name, ref + 1, bw_get16(ref->name_length));
    iw_remove_entry(image, key.offset, bw_get64(ref->directory), name);
    iw_remove_item(image, BW_ROOT_TREE, key);
    iw_remove_item(image, BW_ROOT_TREE, (struct bw_key){key.offset, BW_ROOT_REF, id});
}

void iw_delete_subvolume(struct iw_image *image, uint64_t id)
{
    struct iw_item *item = iw_find_root_item(image, id);
    if (!item)
        iw_die("no subvolume %lld to delete", (long long)id);
    detach(image, id);
    struct bw_disk_root_item *root = (void *)item->bytes;
    root->reference_count = bw_put32(0);
    root->flags = bw_put64(bw_get64(root->flags) | BW_ROOT_DEAD);
    iw_put(iw_tree(image, BW_ROOT_TREE), (struct bw_key){IW_ORPHAN_OBJECTID, BW_ORPHAN_ITEM, id},
           NULL, 0);
}
