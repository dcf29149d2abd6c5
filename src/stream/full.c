/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A full stream, in the order in which the kernel writes it: one pass over the items of the
 * subvolume in key order. The inode of a file may precede the inode of its directory. In that case,
 * the directory is created early under a temporary name, and renamed when its own inode is reached.
 *
 * The times of a directory are sent after its last entry. As in the kernel, the 64 directories used
 * most recently wait. Streams can therefore be compared byte by byte with the kernel's.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/number_set.h"
#include "diff/diff.h"
#include "fs/inode.h"
#include "stream/sender.h"

enum {
    WAITING = 64, /* directories whose times wait */
};

struct full {
    struct bw_sender *sender;
    struct bw_item_range range;
    uint64_t progress;          /* inodes before it have their places */
    bool has_inode;             /* the current inode is sent */
    bool placed;                /* it has got its names */
    bool is_damaged;            /* its items are lost in part; its contents are already sent */
    struct bw_diff_names names; /* of the current inode, before it is placed */
    struct bw_buffer temporary, other;
    struct bw_number_set early; /* directories that were made before their inodes came */
    struct bw_numbers waiting;  /* directories, least recently used first */
    uint64_t folder;            /* directory of the path, if that will not change; 0: none */
    struct bw_buffer folder_path;
};

/* The times of directories. */

static struct bw_error *send_directory_times(struct full *full, uint64_t directory)
{
    struct bw_sender *sender = full->sender;
    const struct bw_send_directory_name *part;
    struct bw_error *error =
        bw_send_path(sender, sender->sent, directory, full->progress, &full->other);
    if (!error)
        error = bw_send_part_of(sender->sent, directory, &part);
    if (error)
        return bw_send_report_lost(sender, error);
    bw_send_times(sender, &full->other, part);
    return bw_send_cut(sender);
}

/* Moves a directory to the end of the queue, or adds it. */
static struct bw_error *queue_directory(struct full *full, uint64_t directory)
{
    size_t at = 0;
    while (at < full->waiting.count && full->waiting.items[at] != directory)
        at++;
    if (at < full->waiting.count)
        bw_numbers_remove(&full->waiting, at);
    return bw_numbers_push(&full->waiting, directory);
}

static struct bw_error *send_oldest_times(struct full *full)
{
    size_t sent = 0;
    struct bw_error *error = NULL;
    while (!error && full->waiting.count - sent > WAITING)
        error = send_directory_times(full, full->waiting.items[sent++]);
    full->waiting.count -= sent;
    if (sent)
        memmove(full->waiting.items, full->waiting.items + sent,
                full->waiting.count * sizeof *full->waiting.items);
    return error;
}

/* Names. */

static struct bw_error *set_temporary(struct full *full, uint64_t number, uint64_t generation)
{
    full->temporary.length = 0;
    return bw_send_temporary_name(full->sender, number, generation, &full->temporary);
}

/* Sets `path` to the path of a directory. The last result is cached: consecutive files are often in
 * the same directory. */
static struct bw_error *find_folder(struct full *full, uint64_t directory, struct bw_buffer *path)
{
    struct bw_sender *sender = full->sender;
    if (full->folder != directory) {
        full->folder = 0;
        BW_TRY(bw_send_path(sender, sender->sent, directory, full->progress, &full->folder_path));
        uint64_t above = directory;
        while (above != BW_SUBVOLUME_ROOT_INODE && above < full->progress) {
            const struct bw_send_directory_name *part;
            BW_TRY(bw_send_part_of(sender->sent, above, &part));
            above = part->parent;
        }
        full->folder = above == BW_SUBVOLUME_ROOT_INODE ? directory : 0;
    }
    return bw_buffer_set(path, full->folder_path.data, full->folder_path.length);
}

/* Gives the current inode a name: the first one replaces the temporary name. If the directory has a
 * higher number, its inode has not come yet, and it is made early. */
static struct bw_error *send_name(struct full *full, const struct bw_diff_name *name)
{
    struct bw_sender *sender = full->sender;
    struct bw_send_inode *current = &sender->current;
    bool is_early = false;
    if (name->parent > current->number)
        BW_TRY(bw_number_set_insert(&full->early, name->parent, &is_early));
    if (is_early) {
        struct bw_inode inode;
        BW_TRY(
            bw_inode_read(sender->sent->fs, &sender->sent->subvolume->tree, name->parent, &inode));
        BW_TRY(set_temporary(full, name->parent, inode.generation));
        BW_TRY(bw_send_make(sender, &full->temporary, name->parent, &inode));
    }
    BW_TRY(find_folder(full, name->parent, &full->other));
    BW_TRY(bw_send_path_add(&full->other, full->names.bytes.data + name->bytes, name->length));
    if (!full->placed) {
        BW_TRY(set_temporary(full, current->number, current->inode.generation));
        bw_send_command_to(sender, BW_COMMAND_RENAME, &full->temporary, BW_ATTRIBUTE_PATH_TO,
                           &full->other);
        full->placed = true;
        BW_TRY(bw_buffer_set(&current->path, full->other.data, full->other.length));
    } else {
        bw_send_command_to(sender, BW_COMMAND_LINK, &full->other, BW_ATTRIBUTE_PATH_LINK,
                           &current->path);
    }
    bw_send_note_undo(sender, &full->other);
    return name->parent < current->number ? queue_directory(full, name->parent) : NULL;
}

/* Gives the current inode all its names, when no more of them can come. An inode for which no path
 * was found is removed from its temporary name, except a directory that already has entries. */
static struct bw_error *place_inode(struct full *full)
{
    struct bw_sender *sender = full->sender;
    const struct bw_send_inode *current = &sender->current;
    const uint64_t number = current->number;
    if (full->progress > number || !full->has_inode)
        return NULL;
    if (full->names.list.count && full->names.list.count < current->inode.link_count)
        bw_send_report_links(sender, number);
    for (size_t i = 0; i < full->names.list.count; i++) {
        struct bw_error *error = send_name(full, &full->names.list.items[i]);
        if (error)
            BW_TRY(bw_send_report_lost(sender,
                                       bw_error_prefix(error, "a name of inode %" PRIu64, number)));
    }
    full->names.list.count = full->names.bytes.length = 0;
    full->progress = number + 1;
    if (full->placed)
        return bw_send_cut(sender);
    BW_TRY(set_temporary(full, number, current->inode.generation));
    full->has_inode = false;
    if (bw_number_set_has(&full->early, number))
        return bw_send_report_lost(sender, bw_error_create(BW_ERROR_CORRUPT,
                                                           "inode %" PRIu64 " of subvolume %" PRIu64
                                                           " has no path: it is sent as %.*s",
                                                           number, sender->sent->subvolume->tree.id,
                                                           (int)full->temporary.length,
                                                           full->temporary.data));
    bw_send_command_at(sender, S_ISDIR(current->inode.mode) ? BW_COMMAND_RMDIR : BW_COMMAND_UNLINK,
                       &full->temporary);
    return bw_send_report_lost(sender, bw_error_create(BW_ERROR_CORRUPT,
                                                       "inode %" PRIu64 " of subvolume %" PRIu64
                                                       " is omitted: it has no path",
                                                       number, sender->sent->subvolume->tree.id));
}

/* Inodes. */

static struct bw_error *end_inode(struct full *full)
{
    struct bw_sender *sender = full->sender;
    const struct bw_send_inode *current = &sender->current;
    BW_TRY(place_inode(full));
    if (!full->has_inode)
        return NULL;
    full->has_inode = false;
    if (S_ISREG(current->inode.mode))
        sender->summary.growth += (int64_t)current->inode.size;
    if (S_ISREG(current->inode.mode) && current->size_there != current->inode.size)
        bw_send_truncate(sender, current->inode.size);
    bw_send_owner(sender);
    bw_send_mode(sender);
    bw_send_capability(sender);
    if (S_ISDIR(current->inode.mode) && current->inode.size)
        BW_TRY(queue_directory(full, current->number));
    else
        bw_send_inode_times(sender, &current->path, &current->inode);
    bw_send_end_inode(sender);
    BW_TRY(send_oldest_times(full));
    return bw_send_cut(sender);
}

/* Makes an inode under a temporary name, unless it is a directory that was made early. An inode
 * without links was deleted while it was open. */
static struct bw_error *begin_inode(struct full *full, const struct bw_item *item)
{
    struct bw_sender *sender = full->sender;
    const uint64_t number = item->key.objectid;
    struct bw_inode inode;
    if (!bw_inode_decode(item, &inode))
        return bw_send_report_lost(
            sender, bw_error_create(BW_ERROR_CORRUPT, "inode %" PRIu64 " is damaged", number));
    const bool is_top = number == BW_SUBVOLUME_ROOT_INODE;
    if (!inode.link_count && !is_top)
        return NULL;
    bw_send_set_inode(sender, number, &inode);
    full->names.list.count = full->names.bytes.length = 0;
    full->has_inode = true;
    full->placed = is_top;
    full->is_damaged = false;
    full->progress = number + is_top;
    if (is_top || (S_ISDIR(inode.mode) && bw_number_set_has(&full->early, number)))
        return NULL;
    BW_TRY(set_temporary(full, number, inode.generation));
    struct bw_error *error = bw_send_make(sender, &full->temporary, number, &sender->current.inode);
    full->has_inode = !error;
    return error ? bw_send_report_lost(sender, error) : NULL;
}

static struct bw_error *add_names(struct full *full, const struct bw_item *item)
{
    struct bw_sender *sender = full->sender;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    if (item->key.objectid == BW_SUBVOLUME_ROOT_INODE)
        return NULL;
    while (bw_inode_ref_next(&cursor, &item->key, &ref)) {
        if (!bw_name_is_valid(ref.name, ref.name_length))
            continue;
        BW_TRY(bw_diff_names_add(&full->names, ref.parent, ref.name, ref.name_length));
    }
    if (!bw_cursor_bad(&cursor))
        return NULL;
    return bw_send_report_lost(sender, bw_error_create(BW_ERROR_CORRUPT,
                                                       "a name of inode %" PRIu64 " is cut off",
                                                       item->key.objectid));
}

/* All items in the order of their keys, then what waits for the last. */
static struct bw_error *send_items(struct full *full)
{
    struct bw_sender *sender = full->sender;
    const struct bw_send_inode *current = &sender->current;
    while (bw_item_range_next(&full->range)) {
        const struct bw_item *item = &full->range.item;
        if (full->range.error) {
            /* The rest of the current file is read as data, which reports the lost ranges. */
            BW_TRY(bw_send_report_lost(sender, BW_TAKE(full->range.error)));
            if (!full->has_inode || full->is_damaged || !S_ISREG(current->inode.mode))
                continue;
            BW_TRY(place_inode(full));
            full->is_damaged = true;
            if (full->has_inode && current->written < current->inode.size)
                BW_TRY(bw_send_plain(sender, current->written,
                                     current->inode.size - current->written));
            continue;
        }
        if (item->key.type == BW_INODE_ITEM) {
            BW_TRY(end_inode(full));
            BW_TRY(begin_inode(full, item));
            continue;
        }
        if (!full->has_inode || item->key.objectid != current->number)
            continue;
        if (item->key.type == BW_INODE_REF || item->key.type == BW_INODE_EXTREF) {
            BW_TRY(add_names(full, item));
            continue;
        }
        /* All names are known: they precede the other items of an inode. */
        BW_TRY(place_inode(full));
        BW_TRY(send_oldest_times(full));
        if (!full->has_inode)
            continue;
        if (item->key.type == BW_XATTR_ITEM)
            BW_TRY(bw_send_xattr_item(sender, item));
        if (item->key.type == BW_EXTENT_DATA && S_ISREG(current->inode.mode) && !full->is_damaged)
            BW_TRY(bw_send_extent_item(sender, item));
    }
    if (full->range.failure)
        return BW_TAKE(full->range.failure);
    BW_TRY(end_inode(full));
    bw_send_withheld(sender);
    while (full->waiting.count)
        BW_TRY(send_directory_times(full, full->waiting.items[--full->waiting.count]));
    return NULL;
}

struct bw_error *bw_send_full(struct bw_sender *sender)
{
    struct full full = {.sender = sender};
    bw_item_range_begin(&full.range, &sender->sent->fs->reader, &sender->sent->subvolume->tree,
                        (struct bw_key){BW_SUBVOLUME_ROOT_INODE, BW_INODE_ITEM, 0},
                        (struct bw_key){BW_SEND_LAST_INODE, UINT8_MAX, UINT64_MAX});
    struct bw_error *error = bw_send_find_clashes(sender);
    if (!error)
        error = send_items(&full);
    bw_error_free(bw_item_range_end(&full.range, NULL));
    bw_number_set_free(&full.early);
    bw_buffer_free(&full.temporary);
    bw_buffer_free(&full.other);
    bw_buffer_free(&full.folder_path);
    bw_diff_names_free(&full.names);
    bw_numbers_free(&full.waiting);
    return error;
}
