/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Paths, names and extended attributes of a subvolume that is made from a stream. */
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "ondisk/checksum.h"
#include "stream/stream_tree.h"

enum {
    LONGEST_PATH = 4095, /* limits the depth of directories, and the time of a look-up */
    MOST_LINKS = 65535,  /* the limit of btrfs */
    FIRST_INDEX = 2,     /* of entries of a directory */
    TYPE_XATTR = 8,      /* of the entry in an XATTR_ITEM */
};

/* Subvolume trees have no inodes after this one. */
#define LAST_INODE ((uint64_t)-256)

static struct bw_error *path_error(struct bw_bytes path, const char *why)
{
    if (!path.length)
        return bw_error_create(BW_ERROR_CORRUPT, "the top directory: %s", why);
    return bw_error_create(BW_ERROR_CORRUPT, "%.*s: %s", (int)path.length, path.data, why);
}

static const uint8_t *bytes_of(struct bw_bytes text)
{
    return (const uint8_t *)text.data;
}

static bool is_directory(const struct bw_disk_inode_item *item)
{
    return S_ISDIR(bw_get32(item->mode));
}

/* The tree. */

static struct bw_disk_inode_item new_inode(const struct bw_stream_tree *tree, uint32_t mode,
                                           uint64_t device)
{
    const uint64_t flags = S_ISREG(mode) ? BW_INODE_NODATASUM : 0;
    return (struct bw_disk_inode_item){.generation = bw_put64(tree->transid),
                                       .transid = bw_put64(tree->transid),
                                       .link_count = bw_put32(1),
                                       .mode = bw_put32(mode),
                                       .device = bw_put64(device),
                                       .flags = bw_put64(flags)};
}

struct bw_error *bw_stream_tree_begin(struct bw_stream_tree *tree)
{
    const struct bw_disk_inode_item item = new_inode(tree, S_IFDIR | 0755, 0);
    const uint64_t top = BW_SUBVOLUME_ROOT_INODE;
    const struct bw_key key = {top, BW_INODE_REF, top};
    const struct {
        struct bw_disk_inode_ref ref;
        char name[2];
    } ref = {{bw_put64(0), bw_put16(2)}, {'.', '.'}};
    BW_TRY(bw_edit_set_inode(&tree->editor, top, &item));
    return bw_edit_put(&tree->editor, &key, &ref, sizeof ref);
}

struct bw_error *bw_stream_spend(struct bw_stream_tree *tree)
{
    if (tree->budget && !*tree->budget)
        return bw_error_create(BW_ERROR_CORRUPT, "the streams copy or remove too many extents for "
                                                 "their size");
    if (tree->budget)
        --*tree->budget;
    return NULL;
}

void bw_stream_tree_free(struct bw_stream_tree *tree)
{
    bw_editor_destroy(&tree->editor);
    bw_buffer_free(&tree->directory);
}

/* Paths. */

/* Gets the next component of a path and removes it; false at the end. */
static bool next_name(struct bw_bytes *path, struct bw_bytes *name)
{
    const char *slash = path->length ? memchr(path->data, '/', path->length) : NULL;
    if (!path->length)
        return false;
    name->data = path->data;
    name->length = slash ? (size_t)(slash - path->data) : path->length;
    const size_t skip = name->length + (slash != NULL);
    /* a path that ends with a slash has an empty name at its end, which is not valid */
    if (slash && skip == path->length)
        name->length = 0;
    path->data += skip;
    path->length -= skip;
    return true;
}

/* Finds a name in a directory; sets 0 if it is not there. */
static struct bw_error *find_name(struct bw_stream_tree *tree, uint64_t directory,
                                  struct bw_bytes name, uint64_t *inode)
{
    const struct bw_link link = {
        .directory = directory, .name = bytes_of(name), .length = (uint16_t)name.length};
    struct bw_dir_entry entry;
    BW_TRY(bw_edit_entry(&tree->editor, &link, true, &entry));
    *inode = entry.name ? entry.location.objectid : 0;
    return NULL;
}

/* Descends from the top directory. `without`: an inode that must not be on the way; 0: none. */
static struct bw_error *lookup_inode(struct bw_stream_tree *tree, struct bw_bytes path,
                                     uint64_t without, uint64_t *inode)
{
    struct bw_bytes rest = path, name;
    *inode = BW_SUBVOLUME_ROOT_INODE;
    while (next_name(&rest, &name)) {
        if (!bw_name_is_valid(bytes_of(name), name.length))
            return path_error(path, "not a path within the subvolume");
        BW_TRY(find_name(tree, *inode, name, inode));
        if (!*inode)
            return path_error(path, "no such file or directory");
        if (*inode == without)
            return path_error(path, "a directory cannot be moved into itself");
    }
    return NULL;
}

static void forget_directory(struct bw_stream_tree *tree)
{
    tree->directory_inode = 0;
}

/* Finds a directory. The last one is remembered. */
static struct bw_error *find_directory(struct bw_stream_tree *tree, struct bw_bytes path,
                                       uint64_t *inode)
{
    struct bw_disk_inode_item item;
    bool exists;
    if (tree->directory_inode && tree->directory.length == path.length &&
        (!path.length || memcmp(tree->directory.data, path.data, path.length) == 0)) {
        *inode = tree->directory_inode;
        return NULL;
    }
    BW_TRY(lookup_inode(tree, path, 0, inode));
    BW_TRY(bw_edit_inode(&tree->editor, *inode, &item, &exists));
    if (!exists || !is_directory(&item))
        return path_error(path, "not a directory");
    BW_TRY(bw_buffer_set(&tree->directory, path.data, path.length));
    tree->directory_inode = *inode;
    return NULL;
}

static struct bw_bytes parent_of(struct bw_bytes path)
{
    const char *slash = path.length ? memrchr(path.data, '/', path.length) : NULL;
    return (struct bw_bytes){path.data, slash ? (size_t)(slash - path.data) : 0};
}

struct bw_error *bw_stream_lookup(struct bw_stream_tree *tree, struct bw_bytes path,
                                  struct bw_stream_place *place)
{
    const struct bw_bytes parent = parent_of(path);
    const size_t skip = parent.length + (parent.length < path.length && path.length &&
                                         path.data[parent.length] == '/');
    *place = (struct bw_stream_place){.name = {path.data + skip, path.length - skip},
                                      .inode = BW_SUBVOLUME_ROOT_INODE};
    if (path.length > LONGEST_PATH)
        return bw_error_create(BW_ERROR_CORRUPT, "a path has %zu bytes", path.length);
    if (!path.length)
        return NULL;
    if (!bw_name_is_valid(bytes_of(place->name), place->name.length))
        return path_error(path, "not a path within the subvolume");
    if (skip == 1)
        return path_error(path, "the path is absolute");
    BW_TRY(find_directory(tree, parent, &place->directory));
    return find_name(tree, place->directory, place->name, &place->inode);
}

static struct bw_error *lookup_existing(struct bw_stream_tree *tree, struct bw_bytes path,
                                        struct bw_stream_place *place,
                                        struct bw_disk_inode_item *item)
{
    bool exists = false;
    BW_TRY(bw_stream_lookup(tree, path, place));
    if (place->inode)
        BW_TRY(bw_edit_inode(&tree->editor, place->inode, item, &exists));
    return exists ? NULL : path_error(path, "no such file or directory");
}

static struct bw_error *lookup_free(struct bw_stream_tree *tree, struct bw_bytes path,
                                    struct bw_stream_place *place)
{
    BW_TRY(bw_stream_lookup(tree, path, place));
    return place->inode ? path_error(path, "the name is not free") : NULL;
}

struct bw_error *bw_stream_find(struct bw_stream_tree *tree, struct bw_bytes path, uint64_t *inode,
                                struct bw_disk_inode_item *item)
{
    struct bw_stream_place place;
    BW_TRY(lookup_existing(tree, path, &place, item));
    *inode = place.inode;
    return NULL;
}

/* Adding and removing names. */

static struct bw_link link_of(const struct bw_stream_place *place, uint64_t inode)
{
    return (struct bw_link){.directory = place->directory,
                            .inode = inode,
                            .name = bytes_of(place->name),
                            .length = (uint16_t)place->name.length};
}

static struct bw_error *add_name(struct bw_stream_tree *tree, const struct bw_stream_place *place,
                                 uint64_t inode)
{
    const struct bw_key key = {place->directory, BW_DIR_INDEX, UINT64_MAX};
    struct bw_link link = link_of(place, inode);
    struct bw_item item;
    BW_TRY(bw_edit_last(&tree->editor, &key, &item));
    const bool has =
        item.data && item.key.objectid == key.objectid && item.key.type == BW_DIR_INDEX;
    link.index = has ? item.key.offset + 1 : FIRST_INDEX;
    return bw_edit_link(&tree->editor, &link, true);
}

static struct bw_error *remove_name(struct bw_stream_tree *tree,
                                    const struct bw_stream_place *place)
{
    const struct bw_link link = link_of(place, place->inode);
    return bw_edit_unlink(&tree->editor, &link);
}

/* Makes an inode with the number `wanted`, or one after all others. */
static struct bw_error *make_inode(struct bw_stream_tree *tree, struct bw_bytes path,
                                   uint64_t wanted, const struct bw_disk_inode_item *item,
                                   uint64_t *inode)
{
    const struct bw_key last = {LAST_INODE, 0, 0};
    struct bw_stream_place place;
    struct bw_disk_inode_item unused;
    struct bw_item highest;
    bool exists = true;
    BW_TRY(lookup_free(tree, path, &place));
    if (wanted > BW_SUBVOLUME_ROOT_INODE && wanted < LAST_INODE)
        BW_TRY(bw_edit_inode(&tree->editor, wanted, &unused, &exists));
    *inode = wanted;
    if (exists) {
        BW_TRY(bw_edit_last(&tree->editor, &last, &highest));
        *inode = highest.key.objectid + 1;
    }
    if (*inode >= LAST_INODE)
        return bw_error_create(BW_ERROR_CORRUPT, "no free inode number for a new file");
    BW_TRY(bw_edit_set_inode(&tree->editor, *inode, item));
    return add_name(tree, &place, *inode);
}

struct bw_error *bw_stream_make(struct bw_stream_tree *tree, struct bw_bytes path, uint64_t wanted,
                                uint32_t mode, uint64_t device)
{
    const struct bw_disk_inode_item item = new_inode(tree, mode, device);
    uint64_t inode;
    return make_inode(tree, path, wanted, &item, &inode);
}

struct bw_error *bw_stream_symlink(struct bw_stream_tree *tree, struct bw_bytes path,
                                   uint64_t wanted, struct bw_bytes target)
{
    enum { HEAD = offsetof(struct bw_disk_file_extent, disk_bytenr) };
    uint8_t bytes[HEAD + LONGEST_PATH];
    struct bw_disk_inode_item item = new_inode(tree, S_IFLNK | 0777, 0);
    const struct bw_disk_file_extent extent = {.generation = bw_put64(tree->transid),
                                               .ram_bytes = bw_put64(target.length),
                                               .type = BW_FILE_EXTENT_INLINE};
    struct bw_key key = {0, BW_EXTENT_DATA, 0};
    if (!target.length || target.length > LONGEST_PATH)
        return bw_error_create(BW_ERROR_CORRUPT, "the target of a symbolic link has %zu bytes",
                               target.length);
    item.size = item.bytes = bw_put64(target.length);
    memcpy(bytes, &extent, HEAD);
    memcpy(bytes + HEAD, target.data, target.length);
    BW_TRY(make_inode(tree, path, wanted, &item, &key.objectid));
    return bw_edit_put(&tree->editor, &key, bytes, (uint32_t)(HEAD + target.length));
}

struct bw_error *bw_stream_link(struct bw_stream_tree *tree, struct bw_bytes path,
                                struct bw_bytes existing)
{
    struct bw_stream_place from, to;
    struct bw_disk_inode_item item;
    BW_TRY(lookup_existing(tree, existing, &from, &item));
    if (is_directory(&item))
        return path_error(existing, "a directory cannot have a second name");
    const uint32_t count = bw_get32(item.link_count);
    if (count >= MOST_LINKS)
        return path_error(existing, "the file has too many links");
    BW_TRY(lookup_free(tree, path, &to));
    item.link_count = bw_put32(count + 1);
    BW_TRY(bw_edit_set_inode(&tree->editor, from.inode, &item));
    return add_name(tree, &to, from.inode);
}

/* Removes an inode with all its items. */
static struct bw_error *remove_inode(struct bw_stream_tree *tree, uint64_t inode)
{
    const struct bw_key first = {inode, 0, 0};
    struct bw_item item;
    for (;;) {
        BW_TRY(bw_edit_first(&tree->editor, &first, &item));
        if (!item.data || item.key.objectid != inode)
            return NULL;
        const struct bw_key key = item.key; /* the item ends with the change */
        BW_TRY(bw_stream_spend(tree));
        BW_TRY(bw_edit_remove(&tree->editor, &key));
    }
}

/* Removes a name of a file, and with the last one the file. */
static struct bw_error *unlink_file(struct bw_stream_tree *tree,
                                    const struct bw_stream_place *place,
                                    struct bw_disk_inode_item *item)
{
    const uint32_t count = bw_get32(item->link_count);
    BW_TRY(remove_name(tree, place));
    item->link_count = bw_put32(count - 1);
    return count <= 1 ? remove_inode(tree, place->inode)
                      : bw_edit_set_inode(&tree->editor, place->inode, item);
}

static struct bw_error *remove_directory(struct bw_stream_tree *tree,
                                         const struct bw_stream_place *place)
{
    const struct bw_key entries = {place->inode, BW_DIR_INDEX, 0};
    struct bw_item item;
    BW_TRY(bw_edit_first(&tree->editor, &entries, &item));
    if (item.data && item.key.objectid == place->inode && item.key.type == BW_DIR_INDEX)
        return path_error(place->name, "the directory is not empty");
    forget_directory(tree);
    BW_TRY(remove_name(tree, place));
    return remove_inode(tree, place->inode);
}

struct bw_error *bw_stream_unlink(struct bw_stream_tree *tree, struct bw_bytes path)
{
    struct bw_stream_place place;
    struct bw_disk_inode_item item;
    BW_TRY(lookup_existing(tree, path, &place, &item));
    return is_directory(&item) ? path_error(path, "is a directory")
                               : unlink_file(tree, &place, &item);
}

struct bw_error *bw_stream_rmdir(struct bw_stream_tree *tree, struct bw_bytes path)
{
    struct bw_stream_place place;
    struct bw_disk_inode_item item;
    BW_TRY(lookup_existing(tree, path, &place, &item));
    if (!is_directory(&item))
        return path_error(path, "not a directory");
    return place.directory ? remove_directory(tree, &place)
                           : path_error(path, "it cannot be removed");
}

struct bw_error *bw_stream_rename(struct bw_stream_tree *tree, struct bw_bytes from,
                                  struct bw_bytes to)
{
    struct bw_stream_place old, new;
    struct bw_disk_inode_item item, replaced;
    uint64_t parent;
    BW_TRY(lookup_existing(tree, from, &old, &item));
    if (!old.directory)
        return path_error(from, "it cannot be renamed");
    BW_TRY(bw_stream_lookup(tree, to, &new));
    if (new.inode == old.inode)
        return NULL; /* two names of a file, both of which remain */
    const bool moves_directory = is_directory(&item);
    if (moves_directory)
        BW_TRY(lookup_inode(tree, parent_of(to), old.inode, &parent));
    if (new.inode) {
        BW_TRY(lookup_existing(tree, to, &new, &replaced));
        if (is_directory(&replaced) != moves_directory || !new.directory)
            return path_error(to, moves_directory ? "not a directory" : "is a directory");
        if (moves_directory)
            BW_TRY(remove_directory(tree, &new));
        else
            BW_TRY(unlink_file(tree, &new, &replaced));
    }
    if (moves_directory)
        forget_directory(tree);
    BW_TRY(remove_name(tree, &old));
    return add_name(tree, &new, old.inode);
}

/* Extended attributes. An item contains all attributes whose names have the same hash. */

/* Removes an attribute, if it exists. */
static struct bw_error *drop_xattr(struct bw_stream_tree *tree, const struct bw_key *key,
                                   struct bw_bytes name, bool *existed)
{
    struct bw_item item, bytes;
    struct bw_dir_entry entry;
    BW_TRY(bw_edit_find(&tree->editor, key, &item));
    *existed =
        item.data && bw_find_entry(&item, bytes_of(name), (uint16_t)name.length, &entry, &bytes);
    return *existed ? bw_edit_cut(&tree->editor, &item, bytes.data, bytes.data + bytes.size) : NULL;
}

static struct bw_error *find_xattr(struct bw_stream_tree *tree, struct bw_bytes path,
                                   struct bw_bytes name, struct bw_key *key)
{
    struct bw_disk_inode_item item;
    if (!name.length || name.length > BW_NAME_MAX)
        return path_error(path, "the name of an extended attribute has an invalid length");
    *key = (struct bw_key){0, BW_XATTR_ITEM, bw_name_hash(name.data, name.length)};
    return bw_stream_find(tree, path, &key->objectid, &item);
}

struct bw_error *bw_stream_set_xattr(struct bw_stream_tree *tree, struct bw_bytes path,
                                     struct bw_bytes name, struct bw_bytes value)
{
    const struct bw_disk_dir_item head = {.transid = bw_put64(tree->transid),
                                          .data_length = bw_put16((uint16_t)value.length),
                                          .name_length = bw_put16((uint16_t)name.length),
                                          .type = TYPE_XATTR};
    BW_AUTO_BUFFER struct bw_buffer bytes = {0};
    struct bw_key key;
    bool existed;
    BW_TRY(find_xattr(tree, path, name, &key));
    BW_TRY(drop_xattr(tree, &key, name, &existed));
    if (value.length > UINT16_MAX)
        return path_error(path, "the value of an extended attribute is too long");
    bw_buffer_append(&bytes, &head, sizeof head);
    bw_buffer_append(&bytes, name.data, name.length);
    bw_buffer_append(&bytes, value.data, value.length);
    return bytes.failed ? bw_error_no_memory()
                        : bw_edit_append(&tree->editor, &key, bytes.data, bytes.length);
}

struct bw_error *bw_stream_remove_xattr(struct bw_stream_tree *tree, struct bw_bytes path,
                                        struct bw_bytes name)
{
    struct bw_key key;
    bool existed;
    BW_TRY(find_xattr(tree, path, name, &key));
    BW_TRY(drop_xattr(tree, &key, name, &existed));
    return existed ? NULL : path_error(path, "the extended attribute does not exist");
}
