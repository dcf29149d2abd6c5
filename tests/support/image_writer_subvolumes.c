/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Subvolumes and snapshots: ROOT_ITEM, ROOT_REF and ROOT_BACKREF in the root tree, an entry in the
 * parent. Where the blocks of a snapshot come from is the layout's business; here it is a tree that
 * knows its origin.
 */
#include <stdlib.h>
#include <string.h>

#include "image_writer_internal.h"

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
