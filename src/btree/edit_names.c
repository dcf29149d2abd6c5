/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inodes and names in a tree that is changed in memory. A name of an inode is stored in three
 * items: in the directory by hash (DIR_ITEM) and by index (DIR_INDEX), and at the inode (INODE_REF
 * or INODE_EXTREF). The functions change all three as the kernel does, and the directory's size.
 */
#include "btree/edit_names.h"

#include <string.h>

#include "base/cleanup.h"
#include "ondisk/checksum.h"

struct bw_error *bw_edit_inode(struct bw_tree_editor *editor, uint64_t inode,
                               struct bw_disk_inode_item *item, bool *exists)
{
    const struct bw_key key = {inode, BW_INODE_ITEM, 0};
    struct bw_item found;
    BW_TRY(bw_edit_find(editor, &key, &found));
    *exists = found.data && found.size >= sizeof *item;
    if (*exists)
        memcpy(item, found.data, sizeof *item);
    return NULL;
}

struct bw_error *bw_edit_set_inode(struct bw_tree_editor *editor, uint64_t inode,
                                   const struct bw_disk_inode_item *item)
{
    const struct bw_key key = {inode, BW_INODE_ITEM, 0};
    return bw_edit_put(editor, &key, item, sizeof *item);
}

/* Writes the scratch buffer as an item. */
static struct bw_error *put_scratch(struct bw_tree_editor *editor, const struct bw_key *key)
{
    const struct bw_buffer *scratch = &editor->scratch;
    BW_TRY(bw_buffer_error(scratch));
    return bw_edit_put(editor, key, scratch->data, (uint32_t)scratch->length);
}

struct bw_error *bw_edit_cut(struct bw_tree_editor *editor, const struct bw_item *item,
                             const uint8_t *start, const uint8_t *end)
{
    editor->scratch.length = 0;
    bw_buffer_append(&editor->scratch, item->data, (size_t)(start - item->data));
    bw_buffer_append(&editor->scratch, end, (size_t)(item->data + item->size - end));
    if (!editor->scratch.length)
        return bw_edit_remove(editor, &item->key);
    return put_scratch(editor, &item->key);
}

struct bw_error *bw_edit_append(struct bw_tree_editor *editor, const struct bw_key *key,
                                const void *more, size_t length)
{
    struct bw_item item;
    BW_TRY(bw_edit_find(editor, key, &item));
    editor->scratch.length = 0;
    if (item.data)
        bw_buffer_append(&editor->scratch, item.data, item.size);
    bw_buffer_append(&editor->scratch, more, length);
    return put_scratch(editor, key);
}

/* Adding and removing names. */

static bool same_name(const uint8_t *a, uint16_t a_length, const uint8_t *b, uint16_t b_length)
{
    return a_length == b_length && memcmp(a, b, a_length) == 0;
}

static struct bw_item bytes_between(const struct bw_item *item, const uint8_t *start,
                                    const struct bw_cursor *cursor)
{
    return (struct bw_item){item->key, start, (uint32_t)(cursor->next - start)};
}

bool bw_find_entry(const struct bw_item *item, const uint8_t *name, uint16_t length,
                   struct bw_dir_entry *entry, struct bw_item *bytes)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    for (const uint8_t *start = cursor.next; bw_dir_entry_next(&cursor, entry);
         start = cursor.next) {
        if (!same_name(entry->name, entry->name_length, name, length))
            continue;
        *bytes = bytes_between(item, start, &cursor);
        return true;
    }
    return false;
}

bool bw_find_ref(const struct bw_item *item, uint64_t directory, const uint8_t *name,
                 uint16_t length, struct bw_inode_ref *ref, struct bw_item *bytes)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    for (const uint8_t *start = cursor.next; bw_inode_ref_next(&cursor, &item->key, ref);
         start = cursor.next) {
        if (ref->parent != directory || !same_name(ref->name, ref->name_length, name, length))
            continue;
        *bytes = bytes_between(item, start, &cursor);
        return true;
    }
    return false;
}

struct bw_key bw_extref_key(const struct bw_link *link)
{
    return (struct bw_key){link->inode, BW_INODE_EXTREF,
                           bw_extref_hash(link->directory, link->name, link->length)};
}

static struct bw_key ref_key(const struct bw_link *link)
{
    return (struct bw_key){link->inode, BW_INODE_REF, link->directory};
}

/* The key of an entry by its name or by its index. */
static struct bw_key entry_key(const struct bw_link *link, bool by_name)
{
    if (by_name)
        return (struct bw_key){link->directory, BW_DIR_ITEM,
                               bw_name_hash(link->name, link->length)};
    return (struct bw_key){link->directory, BW_DIR_INDEX, link->index};
}

/* Updates the size of a directory, which counts each name twice, because it has two entries. */
static struct bw_error *resize_directory(struct bw_tree_editor *editor, const struct bw_link *link,
                                         bool grow)
{
    struct bw_disk_inode_item item;
    bool exists;
    BW_TRY(bw_edit_inode(editor, link->directory, &item, &exists));
    if (!exists)
        return NULL;
    uint64_t size = bw_get64(item.size), change = 2 * (uint64_t)link->length;
    if (grow)
        size += change;
    else
        size -= change < size ? change : size;
    item.size = bw_put64(size);
    return bw_edit_set_inode(editor, link->directory, &item);
}

/* Adds the name to the inode's INODE_REF, or if that is full, as an INODE_EXTREF. */
static struct bw_error *add_ref(struct bw_tree_editor *editor, const struct bw_link *link)
{
    struct {
        union {
            struct bw_disk_inode_ref ref;
            struct bw_disk_inode_extref extref;
        } head;
        uint8_t name[BW_NAME_MAX];
    } bytes;
    const struct bw_key key = ref_key(link), other = bw_extref_key(link);
    struct bw_item item;
    BW_TRY(bw_edit_find(editor, &key, &item));
    uint32_t size = (uint32_t)sizeof bytes.head.ref + link->length;
    if (!item.data || item.size + size <= bw_edit_room(editor)) {
        bytes.head.ref = (struct bw_disk_inode_ref){bw_put64(link->index), bw_put16(link->length)};
        memcpy((uint8_t *)&bytes + sizeof bytes.head.ref, link->name, link->length);
        return bw_edit_append(editor, &key, &bytes, size);
    }
    bytes.head.extref = (struct bw_disk_inode_extref){
        bw_put64(link->directory), bw_put64(link->index), bw_put16(link->length)};
    memcpy(bytes.name, link->name, link->length);
    return bw_edit_append(editor, &other, &bytes, sizeof bytes.head.extref + link->length);
}

struct bw_error *bw_edit_link(struct bw_tree_editor *editor, const struct bw_link *link,
                              bool backwards)
{
    uint8_t bytes[sizeof(struct bw_disk_dir_item) + BW_NAME_MAX];
    const struct bw_key hashed = entry_key(link, true), indexed = entry_key(link, false);
    struct bw_disk_inode_item inode;
    bool exists;
    if (link->length > BW_NAME_MAX)
        return bw_error_create(BW_ERROR_CORRUPT, "a name is too long");
    BW_TRY(bw_edit_inode(editor, link->inode, &inode, &exists));
    if (!exists)
        return NULL;
    struct bw_disk_dir_item *disk = (void *)bytes;
    *disk = (struct bw_disk_dir_item){.location = {.type = BW_INODE_ITEM}};
    disk->location.objectid = bw_put64(link->inode);
    disk->transid = bw_put64(editor->generation);
    disk->name_length = bw_put16(link->length);
    disk->type = bw_file_type_of_mode(bw_get32(inode.mode));
    memcpy(disk + 1, link->name, link->length);
    const uint32_t size = (uint32_t)sizeof *disk + link->length;
    BW_TRY(bw_edit_append(editor, &hashed, bytes, size));
    BW_TRY(bw_edit_put(editor, &indexed, bytes, size));
    if (backwards)
        BW_TRY(add_ref(editor, link));
    return resize_directory(editor, link, true);
}

/* Removes a name from the DIR_ITEM or DIR_INDEX of a directory. */
static struct bw_error *remove_entry(struct bw_tree_editor *editor, const struct bw_link *link,
                                     bool by_name, bool *removed)
{
    const struct bw_key key = entry_key(link, by_name);
    struct bw_item item, bytes;
    struct bw_dir_entry entry;
    BW_TRY(bw_edit_find(editor, &key, &item));
    if (!item.data || !bw_find_entry(&item, link->name, link->length, &entry, &bytes))
        return NULL;
    *removed = true;
    return bw_edit_cut(editor, &item, bytes.data, bytes.data + bytes.size);
}

struct bw_error *bw_edit_unlink(struct bw_tree_editor *editor, const struct bw_link *link)
{
    uint8_t name[BW_NAME_MAX];
    struct bw_link own = *link; /* because the name may be in an item that changes */
    bool removed = false;
    if (link->length > sizeof name)
        return bw_error_create(BW_ERROR_CORRUPT, "a name is too long");
    own.name = memcpy(name, link->name, link->length);

    /* The reference at the inode, which has the index of the directory entry. */
    const struct bw_key keys[] = {ref_key(&own), bw_extref_key(&own)};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct bw_item item, bytes;
        struct bw_inode_ref ref;
        BW_TRY(bw_edit_find(editor, &keys[i], &item));
        if (!item.data || !bw_find_ref(&item, own.directory, own.name, own.length, &ref, &bytes))
            continue;
        own.index = ref.index;
        BW_TRY(bw_edit_cut(editor, &item, bytes.data, bytes.data + bytes.size));
        break;
    }
    BW_TRY(remove_entry(editor, &own, true, &removed));
    BW_TRY(remove_entry(editor, &own, false, &removed));
    return removed ? resize_directory(editor, &own, false) : NULL;
}

struct bw_error *bw_edit_entry(struct bw_tree_editor *editor, const struct bw_link *link,
                               bool by_name, struct bw_dir_entry *found)
{
    const struct bw_key key = entry_key(link, by_name);
    struct bw_item item, bytes;
    bool exists = false;
    BW_TRY(bw_edit_find(editor, &key, &item));
    if (item.data && by_name) {
        exists = bw_find_entry(&item, link->name, link->length, found, &bytes);
    } else if (item.data) {
        struct bw_cursor cursor = bw_cursor_of(&item);
        exists = bw_dir_entry_next(&cursor, found);
    }
    if (!exists)
        found->name = NULL;
    return NULL;
}
