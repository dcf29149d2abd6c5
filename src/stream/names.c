/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Paths in a stream, composed from the names of directories, which are cached up to a limit. While
 * the stream is received, a directory that is not in its place yet has a temporary name in the top
 * directory: its inode number, its generation, and a number that makes the name unique.
 */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vector.h"
#include "fs/lookup.h"
#include "stream/sender.h"

enum {
    MOST_PARTS = 1 << 16,
    DEEPEST = BW_SEND_PATH_MAX / 2 + 1, /* directories on a path that receivers accept */
};

void bw_send_root_init(struct bw_send_root *root, const struct bw_send_side *side)
{
    const struct bw_key none = {0};
    *root = (struct bw_send_root){.fs = side->fs, .subvolume = side->subvolume};
    bw_item_range_begin(&root->parts_range, &side->fs->reader, &side->subvolume->tree, none, none);
    bw_item_range_begin(&root->extents_range, &side->fs->reader, &side->subvolume->tree, none,
                        none);
    bw_error_free(bw_item_range_stop(&root->parts_range, NULL));
    bw_error_free(bw_item_range_stop(&root->extents_range, NULL));
}

void bw_send_root_free(struct bw_send_root *root)
{
    bw_error_free(bw_item_range_end(&root->parts_range, NULL));
    bw_error_free(bw_item_range_end(&root->extents_range, NULL));
    bw_key_map_free(&root->part_of);
    bw_buffer_free(&root->names);
    bw_send_parts_free(&root->parts);
}

/* Parts. */

struct bw_error *bw_send_part_of(struct bw_send_root *root, uint64_t inode,
                                 const struct bw_send_directory_name **result)
{
    uint32_t at = bw_key_map_get(&root->part_of, inode, UINT32_MAX);
    if (at == UINT32_MAX) {
        struct bw_send_directory_name part = {.number = inode};
        char name[BW_NAME_MAX];
        bool has_inode = false;
        struct bw_item_range *range = &root->parts_range;
        bw_item_range_restart(range, &root->fs->reader, &root->subvolume->tree,
                              (struct bw_key){inode, BW_INODE_ITEM, 0},
                              (struct bw_key){inode, BW_INODE_EXTREF, UINT64_MAX});
        struct bw_error *error = NULL;
        while (!part.parent && !error && bw_item_range_next(range)) {
            error = BW_TAKE(range->error);
            if (error)
                break;
            const struct bw_item *item = &range->item;
            struct bw_cursor cursor = bw_cursor_of(item);
            struct bw_inode_ref ref;
            struct bw_inode decoded;
            if (item->key.type == BW_INODE_ITEM && bw_inode_decode(item, &decoded)) {
                part.generation = decoded.generation;
                part.atime = decoded.atime;
                part.mtime = decoded.mtime;
                part.ctime = decoded.ctime;
                part.otime = decoded.otime;
                has_inode = true;
            } else if ((item->key.type == BW_INODE_REF || item->key.type == BW_INODE_EXTREF) &&
                       bw_inode_ref_next(&cursor, &item->key, &ref) &&
                       ref.name_length <= BW_NAME_MAX) {
                part.parent = ref.parent;
                part.name_length = ref.name_length;
                memcpy(name, ref.name, ref.name_length);
            }
        }
        BW_TRY(bw_item_range_stop(range, error));
        if (!has_inode || !part.parent)
            return bw_error_create(BW_ERROR_CORRUPT,
                                   "inode %" PRIu64 " of subvolume %" PRIu64 " %s", inode,
                                   root->subvolume->tree.id, has_inode ? "has no name" : "is lost");
        if (root->parts.count == MOST_PARTS) {
            bw_key_map_clear(&root->part_of);
            root->parts.count = root->names.length = 0;
        }
        at = (uint32_t)root->parts.count;
        part.name = (uint32_t)root->names.length;
        bw_buffer_append(&root->names, name, part.name_length);
        if (root->names.failed || bw_send_parts_reserve(&root->parts, 1) ||
            bw_key_map_put(&root->part_of, inode, at))
            return bw_error_no_memory();
        root->parts.items[root->parts.count++] = part;
    }
    *result = &root->parts.items[at];
    return NULL;
}

/* Temporary names. */

struct bw_error *bw_send_find_clashes(struct bw_sender *sender)
{
    struct bw_send_root *root = sender->sent;
    struct bw_item_range *range = &root->parts_range;
    bw_item_range_restart(range, &root->fs->reader, &root->subvolume->tree,
                          (struct bw_key){BW_SUBVOLUME_ROOT_INODE, BW_DIR_INDEX, 0},
                          (struct bw_key){BW_SUBVOLUME_ROOT_INODE, BW_DIR_INDEX, UINT64_MAX});
    sender->may_clash = false;
    while (!sender->may_clash && bw_item_range_next(range)) {
        struct bw_dir_entry entry;
        if (range->error) {
            sender->may_clash = true;
            continue;
        }
        struct bw_cursor cursor = bw_cursor_of(&range->item);
        if (bw_dir_entry_next(&cursor, &entry) && entry.name_length > 1)
            sender->may_clash =
                entry.name[0] == 'o' && entry.name[1] >= '0' && entry.name[1] <= '9';
    }
    return bw_item_range_stop(range, NULL);
}

/* Whether the top directory of a subvolume has an entry of that name. */
static struct bw_error *has_entry(struct bw_send_root *root, const char *name, size_t length,
                                  bool *found)
{
    uint8_t type;
    BW_TRY(bw_directory_entry_type(root->fs, &root->subvolume->tree, BW_SUBVOLUME_ROOT_INODE, name,
                                   length, &type));
    *found |= type != BW_FILE_UNKNOWN;
    return NULL;
}

struct bw_error *bw_send_temporary_name(struct bw_sender *sender, uint64_t inode,
                                        uint64_t generation, struct bw_buffer *name)
{
    const size_t at = name->length;
    bool taken = true;
    for (unsigned number = 0; taken; number++) {
        name->length = at;
        bw_buffer_format(name, "o%" PRIu64 "-%" PRIu64 "-%u", inode, generation, number);
        BW_TRY(bw_buffer_error(name));
        taken = false;
        if (!sender->may_clash)
            break;
        BW_TRY(has_entry(sender->sent, name->data + at, name->length - at, &taken));
        if (sender->parent)
            BW_TRY(has_entry(sender->parent, name->data + at, name->length - at, &taken));
    }
    return NULL;
}

/* Paths. */

struct bw_error *bw_send_path_add(struct bw_buffer *path, const void *name, size_t length)
{
    if (path->length)
        bw_buffer_append_byte(path, '/');
    bw_buffer_append(path, name, length);
    BW_TRY(bw_buffer_error(path));
    return path->length <= BW_SEND_PATH_MAX
               ? NULL
               : bw_error_create(BW_ERROR_UNSUPPORTED,
                                 "its path is longer than the %d bytes that receivers accept",
                                 BW_SEND_PATH_MAX);
}

struct bw_error *bw_send_path(struct bw_sender *sender, struct bw_send_root *root, uint64_t inode,
                              uint64_t progress, struct bw_buffer *path)
{
    uint64_t inodes[DEEPEST];
    size_t count = 0;
    path->length = 0;
    while (inode != BW_SUBVOLUME_ROOT_INODE) {
        const struct bw_send_directory_name *part;
        BW_TRY(bw_send_part_of(root, inode, &part));
        if (inode >= progress) {
            BW_TRY(bw_send_temporary_name(sender, inode, part->generation, path));
            break;
        }
        if (count == DEEPEST)
            return bw_error_create(BW_ERROR_CORRUPT,
                                   "directory %" PRIu64 " of subvolume %" PRIu64
                                   " is too deep, or in itself",
                                   inode, root->subvolume->tree.id);
        inodes[count++] = inode;
        inode = part->parent;
    }
    while (count) {
        const struct bw_send_directory_name *part;
        BW_TRY(bw_send_part_of(root, inodes[--count], &part));
        BW_TRY(bw_send_path_add(path, root->names.data + part->name, part->name_length));
    }
    return NULL;
}
