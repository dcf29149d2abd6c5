/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Making and reading digests. They are kept in memory only, so numbers are in the byte order of the
 * machine. A directory is a header followed by its entries. An entry is a kind, the length of the
 * name, the name, and the id that it points to; for files, the id is left out unless the digest is
 * `numbered`.
 */
#include "walk/leaves.h"

struct directory_header {
    uint64_t inode;
    uint32_t length; /* bytes of the entries that follow */
};

/* The kind of an entry with an id is KIND_SUBVOLUME, or KIND_TYPE plus its BW_FILE_*. */
enum { KIND_FILE, KIND_SUBVOLUME, KIND_TYPE };

static void append_entry(struct bw_buffer *digest, const struct bw_dir_entry *entry, bool numbered)
{
    bool subvolume = entry->location.type == BW_ROOT_ITEM,
         directory = entry->type == BW_FILE_DIRECTORY;
    if (!subvolume && !directory && entry->type != BW_FILE_REGULAR && !numbered)
        return;
    const uint8_t head[2] = {subvolume               ? KIND_SUBVOLUME
                             : directory || numbered ? (uint8_t)(KIND_TYPE + entry->type)
                                                     : KIND_FILE,
                             (uint8_t)entry->name_length};
    bw_buffer_append(digest, head, sizeof head);
    bw_buffer_append(digest, entry->name, entry->name_length);
    if (head[0] != KIND_FILE)
        bw_buffer_append(digest, &entry->location.objectid, sizeof entry->location.objectid);
}

static bool append_item(struct bw_buffer *digest, const struct bw_item *item, bool numbered)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    if (item->size == 0)
        return false;
    while (bw_dir_entry_next(&cursor, &entry)) {
        if (!bw_name_is_valid(entry.name, entry.name_length))
            return false;
        append_entry(digest, &entry, numbered);
    }
    return !bw_cursor_bad(&cursor);
}

static void close_directory(struct bw_buffer *digest, size_t start)
{
    if (start == SIZE_MAX || digest->failed)
        return;
    struct directory_header header;
    memcpy(&header, digest->data + start, sizeof header);
    header.length = (uint32_t)(digest->length - start - sizeof header);
    memcpy(digest->data + start, &header, sizeof header);
}

bool bw_digest_make(const struct bw_node *leaf, bool numbered, struct bw_buffer *digest)
{
    struct directory_header header = {0};
    size_t start = SIZE_MAX;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        const struct bw_disk_item *disk = bw_node_disk_item(leaf, slot);
        struct bw_item item;
        if (disk->key.type != BW_DIR_INDEX)
            continue;
        uint64_t inode = bw_get64(disk->key.objectid);
        if (start == SIZE_MAX || inode != header.inode) {
            if (inode < header.inode)
                return false;
            close_directory(digest, start);
            header.inode = inode;
            start = digest->length;
            bw_buffer_append(digest, &header, sizeof header);
        }
        if (!bw_leaf_item(leaf, slot, &item) || !append_item(digest, &item, numbered))
            return false;
    }
    close_directory(digest, start);
    return !digest->failed;
}

bool bw_digest_next_directory(struct bw_digest_cursor *cursor, uint64_t *inode,
                              struct bw_digest_cursor *entries)
{
    struct directory_header header;
    if (cursor->next == cursor->end)
        return false;
    memcpy(&header, cursor->next, sizeof header);
    *inode = header.inode;
    entries->next = cursor->next + sizeof header;
    entries->end = cursor->next = entries->next + header.length;
    return true;
}

bool bw_digest_next_entry(struct bw_digest_cursor *cursor, struct bw_dir_entry *entry)
{
    if (cursor->next == cursor->end)
        return false;
    uint8_t kind = (uint8_t)cursor->next[0];
    *entry = (struct bw_dir_entry){.location = {0, BW_INODE_ITEM, 0},
                                   .name = (const uint8_t *)cursor->next + 2,
                                   .name_length = (uint8_t)cursor->next[1],
                                   .type = kind == KIND_FILE        ? BW_FILE_REGULAR
                                           : kind == KIND_SUBVOLUME ? BW_FILE_DIRECTORY
                                                                    : (uint8_t)(kind - KIND_TYPE)};
    cursor->next += 2 + entry->name_length;
    if (kind == KIND_SUBVOLUME)
        entry->location.type = BW_ROOT_ITEM;
    if (kind != KIND_FILE) {
        memcpy(&entry->location.objectid, cursor->next, sizeof entry->location.objectid);
        cursor->next += sizeof entry->location.objectid;
    }
    return true;
}
