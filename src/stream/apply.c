/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Applying the commands of a stream, one function for each. */
#include "stream/stream_tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "stream/streams.h"

enum {
    MOST_SUBVOLUMES = 1 << 16, /* each needs some tree blocks in memory */
    ITEMS_PER_COMMAND = 16,    /* that the budget grows by: enough to remove a small file */
};

/* An image that is being applied. */
struct applier {
    struct bw_received_set *set;
    struct bw_apply_result *result;
    struct bw_stream_reader reader;
    struct bw_stream_tree tree;   /* of the current subvolume */
    bool is_open;                 /* there is a current subvolume, the last one of the set */
    struct bw_stream_tree source; /* another subvolume, for clones */
    size_t source_index;
    bool has_source;
    size_t image;
    uint64_t base;
    bool skips;           /* commands until the next subvolume */
    bool has_no_contents; /* which was reported */
};

typedef struct bw_error *handler(struct applier *applier, const struct bw_stream_command *command);

/* The set. */

static uint64_t hash_of(const struct bw_received_set *set, const uint8_t *uuid)
{
    return bw_fs_name_hash(set->fs, 0, uuid, BW_UUID_SIZE);
}

const struct bw_received *bw_received_find(const struct bw_received_set *set,
                                           const uint8_t uuid[BW_UUID_SIZE])
{
    const uint32_t index = bw_key_map_get(&set->by_uuid, hash_of(set, uuid), UINT32_MAX);
    return index < set->received.count &&
                   memcmp(set->received.items[index].uuid, uuid, BW_UUID_SIZE) == 0
               ? &set->received.items[index]
               : NULL;
}

static void cut_set(struct bw_received_set *set, size_t count)
{
    while (set->received.count > count)
        free(set->received.items[--set->received.count].name);
}

void bw_received_free(struct bw_received_set *set)
{
    cut_set(set, 0);
    bw_received_list_free(&set->received);
    bw_key_map_free(&set->by_uuid);
}

/* Attributes of commands. */

static struct bw_bytes text_of(const struct bw_stream_command *command, enum bw_send_attribute type)
{
    const struct bw_stream_attribute *attribute = &command->attributes[type];
    return (struct bw_bytes){(const char *)attribute->data, attribute->length};
}

static struct bw_bytes path_of(const struct bw_stream_command *command)
{
    return text_of(command, BW_ATTRIBUTE_PATH);
}

static const uint8_t *uuid_of(const struct bw_stream_command *command, enum bw_send_attribute type)
{
    return command->attributes[type].data;
}

/* Subvolumes. */

static struct bw_received *current_subvolume(const struct applier *applier)
{
    return &applier->set->received.items[applier->set->received.count - 1];
}

/* Ends the current subvolume; `error`, which is reported, is why it is incomplete, or NULL. Fails
 * only if memory has run out. */
static struct bw_error *finish_subvolume(struct applier *applier, struct bw_error *error)
{
    struct bw_fs *fs = applier->set->fs;
    const char *device = fs->images[applier->image].name;
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (!applier->is_open) {
        if (error)
            bw_fs_report_stream_error(fs, bw_error_prefix(error, "%s", device));
        return NULL;
    }
    struct bw_received *subvolume = current_subvolume(applier);
    subvolume->tree = applier->tree.editor.tree;
    subvolume->is_incomplete = error;
    if (error)
        bw_fs_report_stream_error(
            fs, bw_error_prefix(error, "%s: subvolume %s is incomplete", device, subvolume->name));
    bw_stream_tree_free(&applier->tree);
    applier->is_open = false;
    return NULL;
}

/* The subvolume that a command needs is not there yet. The error is not reported. */
static struct bw_error *wait_for(struct applier *applier, const uint8_t *uuid)
{
    applier->result->is_waiting = true;
    memcpy(applier->result->missing, uuid, BW_UUID_SIZE);
    return bw_error_create(BW_ERROR_STOPPED, "waiting");
}

static struct bw_error *add_received(struct applier *applier,
                                     const struct bw_stream_command *command)
{
    struct bw_received_set *set = applier->set;
    const struct bw_bytes name = path_of(command);
    const uint8_t *uuid = uuid_of(command, BW_ATTRIBUTE_UUID);
    if (!bw_name_is_valid((const uint8_t *)name.data, name.length))
        return bw_error_create(BW_ERROR_CORRUPT, "invalid name of a subvolume");
    if (set->received.count == MOST_SUBVOLUMES)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "the streams have too many subvolumes");
    char *copy = strndup(name.data, name.length);
    if (!copy || bw_received_list_reserve(&set->received, 1) ||
        bw_key_map_put(&set->by_uuid, hash_of(set, uuid), (uint32_t)set->received.count)) {
        free(copy);
        return bw_error_no_memory();
    }
    struct bw_received *subvolume = &set->received.items[set->received.count];
    *subvolume = (struct bw_received){
        .tree.id = BW_FIRST_SUBVOLUME + set->received.count,
        .transid = bw_command_number(command, BW_ATTRIBUTE_CTRANSID),
        .name = copy,
        .image = applier->image,
    };
    memcpy(subvolume->uuid, uuid, BW_UUID_SIZE);
    set->received.count++;
    return NULL;
}

/* Opens the tree of the newest subvolume: an empty one, or a copy of its parent's, whose blocks it
 * shares. */
static struct bw_error *open_tree(struct applier *applier, const struct bw_received *parent)
{
    struct bw_fs *fs = applier->set->fs;
    const struct bw_received *subvolume = current_subvolume(applier);
    const uint64_t generation = applier->set->received.count;
    applier->tree =
        (struct bw_stream_tree){.transid = subvolume->transid, .budget = &applier->set->budget};
    applier->is_open = true;
    struct bw_tree_editor *editor = &applier->tree.editor;
    if (!parent) {
        BW_TRY(bw_editor_create_empty(editor, &fs->reader, &fs->memory, subvolume->tree.id,
                                      generation));
        editor->shared = fs->memory.blocks.count - 1;
        return bw_stream_tree_begin(&applier->tree);
    }
    struct bw_tree tree = parent->tree;
    tree.id = subvolume->tree.id;
    BW_TRY(bw_editor_create(editor, &fs->reader, &fs->memory, &tree, generation));
    editor->shared = fs->memory.blocks.count;
    return NULL;
}

/* Whether a subvolume was read before; then the stream that has it again is not used. */
static bool is_known(struct applier *applier, const struct bw_stream_command *command)
{
    struct bw_fs *fs = applier->set->fs;
    const struct bw_received *known =
        bw_received_find(applier->set, uuid_of(command, BW_ATTRIBUTE_UUID));
    applier->skips = known;
    if (known)
        bw_fs_report_text(
            fs, BW_WARNING, BW_ERROR_USAGE, "%s: subvolume %s is not used: %s has the same one",
            fs->images[applier->image].name, known->name, fs->images[known->image].name);
    return known;
}

static struct bw_error *on_subvol(struct applier *applier, const struct bw_stream_command *command)
{
    BW_TRY(finish_subvolume(applier, NULL));
    if (is_known(applier, command))
        return NULL;
    BW_TRY(add_received(applier, command));
    return open_tree(applier, NULL);
}

static struct bw_error *on_snapshot(struct applier *applier,
                                    const struct bw_stream_command *command)
{
    const uint8_t *uuid = uuid_of(command, BW_ATTRIBUTE_CLONE_UUID);
    BW_TRY(finish_subvolume(applier, NULL));
    if (is_known(applier, command))
        return NULL;
    if (!bw_received_find(applier->set, uuid))
        return wait_for(applier, uuid);
    BW_TRY(add_received(applier, command));
    memcpy(current_subvolume(applier)->parent_uuid, uuid, BW_UUID_SIZE);
    return open_tree(applier, bw_received_find(applier->set, uuid));
}

static struct bw_error *on_end(struct applier *applier, const struct bw_stream_command *command)
{
    (void)command;
    return finish_subvolume(applier, NULL);
}

/* Names. */

static struct bw_error *make_inode(struct applier *applier, const struct bw_stream_command *command,
                                   uint32_t mode, uint64_t device)
{
    return bw_stream_make(&applier->tree, path_of(command),
                          bw_command_number(command, BW_ATTRIBUTE_INO), mode, device);
}

/* MKFILE, MKDIR, MKFIFO and MKSOCK. */
static struct bw_error *on_make(struct applier *applier, const struct bw_stream_command *command)
{
    static const uint32_t modes[] = {[BW_COMMAND_MKFILE] = S_IFREG | 0600,
                                     [BW_COMMAND_MKDIR] = S_IFDIR | 0700,
                                     [BW_COMMAND_MKFIFO] = S_IFIFO | 0600,
                                     [BW_COMMAND_MKSOCK] = S_IFSOCK | 0600};
    return make_inode(applier, command, modes[command->type], 0);
}

/* A stream has device numbers as struct stat has them, an inode has the kernel's own. */
static struct bw_error *on_mknod(struct applier *applier, const struct bw_stream_command *command)
{
    const uint32_t mode = (uint32_t)bw_command_number(command, BW_ATTRIBUTE_MODE);
    const uint64_t rdev = bw_command_number(command, BW_ATTRIBUTE_RDEV);
    const uint64_t major = rdev >> 8 & 0xfff, minor = (rdev & 0xff) | (rdev >> 12 & 0xfff00);
    if (!S_ISCHR(mode) && !S_ISBLK(mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode))
        return bw_error_create(BW_ERROR_CORRUPT, "mode %" PRIo32 " is not the mode of a device",
                               mode);
    return make_inode(applier, command, mode & (S_IFMT | 07777), major << 20 | minor);
}

static struct bw_error *on_symlink(struct applier *applier, const struct bw_stream_command *command)
{
    return bw_stream_symlink(&applier->tree, path_of(command),
                             bw_command_number(command, BW_ATTRIBUTE_INO),
                             text_of(command, BW_ATTRIBUTE_PATH_LINK));
}

static struct bw_error *on_rename(struct applier *applier, const struct bw_stream_command *command)
{
    return bw_stream_rename(&applier->tree, path_of(command),
                            text_of(command, BW_ATTRIBUTE_PATH_TO));
}

static struct bw_error *on_link(struct applier *applier, const struct bw_stream_command *command)
{
    return bw_stream_link(&applier->tree, path_of(command),
                          text_of(command, BW_ATTRIBUTE_PATH_LINK));
}

static struct bw_error *on_unlink(struct applier *applier, const struct bw_stream_command *command)
{
    return bw_stream_unlink(&applier->tree, path_of(command));
}

static struct bw_error *on_rmdir(struct applier *applier, const struct bw_stream_command *command)
{
    return bw_stream_rmdir(&applier->tree, path_of(command));
}

/* Attributes. */

static struct bw_error *on_set_xattr(struct applier *applier,
                                     const struct bw_stream_command *command)
{
    return bw_stream_set_xattr(&applier->tree, path_of(command),
                               text_of(command, BW_ATTRIBUTE_XATTR_NAME),
                               text_of(command, BW_ATTRIBUTE_XATTR_DATA));
}

static struct bw_error *on_remove_xattr(struct applier *applier,
                                        const struct bw_stream_command *command)
{
    return bw_stream_remove_xattr(&applier->tree, path_of(command),
                                  text_of(command, BW_ATTRIBUTE_XATTR_NAME));
}

static struct bw_disk_timespec time_of(const struct bw_stream_command *command,
                                       enum bw_send_attribute type)
{
    const struct bw_stream_time time = bw_command_time(command, type);
    return (struct bw_disk_timespec){time.seconds, time.nanoseconds};
}

/* CHMOD, CHOWN, UTIMES and FILEATTR. */
static struct bw_error *on_attribute(struct applier *applier,
                                     const struct bw_stream_command *command)
{
    struct bw_disk_inode_item item;
    uint64_t inode;
    BW_TRY(bw_stream_find(&applier->tree, path_of(command), &inode, &item));
    const uint64_t mode = bw_command_number(command, BW_ATTRIBUTE_MODE);
    if (command->type == BW_COMMAND_CHMOD)
        item.mode = bw_put32((bw_get32(item.mode) & S_IFMT) | (uint32_t)(mode & 07777));
    if (command->type == BW_COMMAND_CHOWN) {
        item.uid = bw_put32((uint32_t)bw_command_number(command, BW_ATTRIBUTE_UID));
        item.gid = bw_put32((uint32_t)bw_command_number(command, BW_ATTRIBUTE_GID));
    }
    if (command->type == BW_COMMAND_UTIMES) {
        item.atime = time_of(command, BW_ATTRIBUTE_ATIME);
        item.mtime = time_of(command, BW_ATTRIBUTE_MTIME);
        item.ctime = time_of(command, BW_ATTRIBUTE_CTIME);
        if (bw_command_has(command, BW_ATTRIBUTE_OTIME))
            item.otime = time_of(command, BW_ATTRIBUTE_OTIME);
    }
    if (command->type == BW_COMMAND_FILEATTR) {
        /* Files have no checksums of data: the commands' checksums were verified. */
        const uint64_t flags = bw_command_number(command, BW_ATTRIBUTE_FILEATTR);
        const bool is_file = S_ISREG(bw_get32(item.mode));
        item.flags = bw_put64(is_file ? flags | BW_INODE_NODATASUM : flags);
    }
    item.transid = bw_put64(applier->tree.transid);
    return bw_edit_set_inode(&applier->tree.editor, inode, &item);
}

/* Contents. */

/* Begins an extent of the data of a command. */
static struct bw_disk_file_extent begin_extent(const struct applier *applier,
                                               const struct bw_stream_command *command)
{
    const struct bw_stream_attribute *data = &command->attributes[BW_ATTRIBUTE_DATA];
    return (struct bw_disk_file_extent){.generation = bw_put64(applier->tree.transid),
                                        .ram_bytes = bw_put64(data->length),
                                        .type = BW_FILE_EXTENT_REGULAR,
                                        .disk_bytenr = bw_put64(applier->base + data->offset),
                                        .disk_num_bytes = bw_put64(data->length)};
}

static struct bw_error *on_write(struct applier *applier, const struct bw_stream_command *command)
{
    const struct bw_disk_file_extent extent = begin_extent(applier, command);
    const struct bw_stream_range range = {bw_command_number(command, BW_ATTRIBUTE_FILE_OFFSET),
                                          command->attributes[BW_ATTRIBUTE_DATA].length};
    return bw_stream_write(&applier->tree, path_of(command), &range, &extent);
}

static struct bw_error *on_encoded_write(struct applier *applier,
                                         const struct bw_stream_command *command)
{
    struct bw_received_set *set = applier->set;
    struct bw_disk_file_extent extent = begin_extent(applier, command);
    const uint64_t decoded = bw_command_number(command, BW_ATTRIBUTE_UNENCODED_LEN);
    const uint64_t offset = bw_command_number(command, BW_ATTRIBUTE_UNENCODED_OFFSET);
    const struct bw_stream_range range = {
        bw_command_number(command, BW_ATTRIBUTE_FILE_OFFSET),
        bw_command_number(command, BW_ATTRIBUTE_UNENCODED_FILE_LEN)};

    /* The compressions of streams and of extents have different numbers. LZO compresses sectors,
     * whose size must be the same in all streams. */
    static const uint8_t compressions[] = {[BW_ENCODED_NONE] = BW_COMPRESS_NONE,
                                           [BW_ENCODED_ZLIB] = BW_COMPRESS_ZLIB,
                                           [BW_ENCODED_ZSTD] = BW_COMPRESS_ZSTD};
    const uint64_t number = bw_command_number(command, BW_ATTRIBUTE_COMPRESSION);
    if (number >= BW_ENCODED_TYPES || bw_command_number(command, BW_ATTRIBUTE_ENCRYPTION))
        return bw_error_create(BW_ERROR_UNSUPPORTED, "unknown compression or encryption");
    if (number < BW_ENCODED_LZO_4K) {
        extent.compression = compressions[number];
    } else {
        const uint32_t sectorsize = UINT32_C(4096) << (number - BW_ENCODED_LZO_4K);
        if (set->lzo_sectorsize && set->lzo_sectorsize != sectorsize)
            return bw_error_create(BW_ERROR_UNSUPPORTED,
                                   "LZO with sectors of %" PRIu32
                                   " bytes, after sectors of %" PRIu32,
                                   sectorsize, set->lzo_sectorsize);
        set->lzo_sectorsize = sectorsize;
        extent.compression = BW_COMPRESS_LZO;
    }
    if (decoded > BW_SEND_DATA || command->attributes[BW_ATTRIBUTE_DATA].length > BW_SEND_DATA ||
        !command->attributes[BW_ATTRIBUTE_DATA].length)
        return bw_error_create(BW_ERROR_CORRUPT, "encoded data of more than 128 KiB, or none");
    if (offset > decoded || range.length > decoded - offset ||
        (extent.compression == BW_COMPRESS_NONE &&
         decoded > command->attributes[BW_ATTRIBUTE_DATA].length))
        return bw_error_create(BW_ERROR_CORRUPT,
                               "%" PRIu64 " bytes at %" PRIu64 " of %" PRIu64 " decoded bytes",
                               range.length, offset, decoded);
    extent.ram_bytes = bw_put64(decoded);
    extent.offset = bw_put64(offset);
    return bw_stream_write(&applier->tree, path_of(command), &range, &extent);
}

/* A stream that was sent without data has only ranges. Reading them fails, as no device has that
 * address. */
static struct bw_error *on_update_extent(struct applier *applier,
                                         const struct bw_stream_command *command)
{
    const uint64_t nowhere = BW_MEMORY_START - (UINT64_C(1) << 62);
    struct bw_fs *fs = applier->set->fs;
    if (!applier->has_no_contents)
        bw_fs_report_text(fs, BW_WARNING, BW_ERROR_USAGE,
                          "%s: the stream has no file contents (btrfs send --no-data)",
                          fs->images[applier->image].name);
    applier->has_no_contents = fs->status.no_contents = true;
    const struct bw_stream_range range = {bw_command_number(command, BW_ATTRIBUTE_FILE_OFFSET),
                                          bw_command_number(command, BW_ATTRIBUTE_SIZE)};
    struct bw_disk_file_extent extent = begin_extent(applier, command);
    extent.disk_bytenr = bw_put64(nowhere);
    extent.ram_bytes = extent.disk_num_bytes = bw_put64(range.length);
    return bw_stream_write(&applier->tree, path_of(command), &range, &extent);
}

static struct bw_error *on_truncate(struct applier *applier,
                                    const struct bw_stream_command *command)
{
    return bw_stream_truncate(&applier->tree, path_of(command),
                              bw_command_number(command, BW_ATTRIBUTE_SIZE));
}

/* Modes of fallocate(2). Space that is only reserved reads as zeros, like a hole. */
static struct bw_error *on_fallocate(struct applier *applier,
                                     const struct bw_stream_command *command)
{
    enum { KEEP_SIZE = 1, PUNCH_HOLE = 2, ZERO_RANGE = 16 };
    const uint64_t mode = bw_command_number(command, BW_ATTRIBUTE_FALLOCATE_MODE);
    struct bw_stream_range range = {bw_command_number(command, BW_ATTRIBUTE_FILE_OFFSET),
                                    bw_command_number(command, BW_ATTRIBUTE_SIZE)};
    const bool clears = mode & (PUNCH_HOLE | ZERO_RANGE);
    if (mode & ~(uint64_t)(KEEP_SIZE | PUNCH_HOLE | ZERO_RANGE))
        return bw_error_create(BW_ERROR_UNSUPPORTED, "fallocate with mode %" PRIu64, mode);
    if (!clears) {
        range.offset += range.length;
        range.length = 0;
    }
    return bw_stream_punch(&applier->tree, path_of(command), &range, !(mode & KEEP_SIZE));
}

static struct bw_error *on_clone(struct applier *applier, const struct bw_stream_command *command)
{
    const struct bw_stream_range range = {bw_command_number(command, BW_ATTRIBUTE_FILE_OFFSET),
                                          bw_command_number(command, BW_ATTRIBUTE_CLONE_LEN)};
    struct bw_stream_clone source = {
        .path = text_of(command, BW_ATTRIBUTE_CLONE_PATH),
        .offset = bw_command_number(command, BW_ATTRIBUTE_CLONE_OFFSET),
    };

    /* The tree that data are cloned from: the current one, or another, which stays open. */
    struct bw_fs *fs = applier->set->fs;
    const uint8_t *uuid = uuid_of(command, BW_ATTRIBUTE_CLONE_UUID);
    const struct bw_received *from = bw_received_find(applier->set, uuid);
    if (!from)
        return wait_for(applier, uuid);
    const size_t index = (size_t)(from - applier->set->received.items);
    const bool is_current = from == current_subvolume(applier);
    source.tree = is_current ? &applier->tree : &applier->source;
    if (!is_current && (!applier->has_source || applier->source_index != index)) {
        if (applier->has_source)
            bw_stream_tree_free(&applier->source);
        applier->source = (struct bw_stream_tree){0};
        applier->source_index = index;
        applier->has_source = true;
        BW_TRY(bw_editor_create(&applier->source.editor, &fs->reader, &fs->memory, &from->tree, 0));
    }
    return bw_stream_clone(&applier->tree, path_of(command), &range, &source);
}

/* The digests of fs-verity are not needed to read the file. */
static struct bw_error *on_enable_verity(struct applier *applier,
                                         const struct bw_stream_command *command)
{
    struct bw_disk_inode_item item;
    uint64_t inode;
    return bw_stream_find(&applier->tree, path_of(command), &inode, &item);
}

static handler *const handlers[BW_COMMAND_TYPES] = {
    [BW_COMMAND_SUBVOL] = on_subvol,
    [BW_COMMAND_SNAPSHOT] = on_snapshot,
    [BW_COMMAND_MKFILE] = on_make,
    [BW_COMMAND_MKDIR] = on_make,
    [BW_COMMAND_MKNOD] = on_mknod,
    [BW_COMMAND_MKFIFO] = on_make,
    [BW_COMMAND_MKSOCK] = on_make,
    [BW_COMMAND_SYMLINK] = on_symlink,
    [BW_COMMAND_RENAME] = on_rename,
    [BW_COMMAND_LINK] = on_link,
    [BW_COMMAND_UNLINK] = on_unlink,
    [BW_COMMAND_RMDIR] = on_rmdir,
    [BW_COMMAND_SET_XATTR] = on_set_xattr,
    [BW_COMMAND_REMOVE_XATTR] = on_remove_xattr,
    [BW_COMMAND_WRITE] = on_write,
    [BW_COMMAND_CLONE] = on_clone,
    [BW_COMMAND_TRUNCATE] = on_truncate,
    [BW_COMMAND_CHMOD] = on_attribute,
    [BW_COMMAND_CHOWN] = on_attribute,
    [BW_COMMAND_UTIMES] = on_attribute,
    [BW_COMMAND_END] = on_end,
    [BW_COMMAND_UPDATE_EXTENT] = on_update_extent,
    [BW_COMMAND_FALLOCATE] = on_fallocate,
    [BW_COMMAND_FILEATTR] = on_attribute,
    [BW_COMMAND_ENCODED_WRITE] = on_encoded_write,
    [BW_COMMAND_ENABLE_VERITY] = on_enable_verity,
};

/* The stream. */

/* Applies the commands in order. Unknown commands are ignored, as receivers do. After a wrong
 * command, continues with the next subvolume, if it can be found. */
static struct bw_error *apply_commands(struct applier *applier)
{
    struct bw_stream_command command;
    for (bool got = true, should_continue = true; got && should_continue;) {
        struct bw_error *error = bw_stream_next(&applier->reader, &command, &got);
        if (!error && !got)
            break;
        if (!error) {
            const bool begins =
                command.type == BW_COMMAND_SUBVOL || command.type == BW_COMMAND_SNAPSHOT;
            handler *function = command.type < BW_COMMAND_TYPES ? handlers[command.type] : NULL;
            applier->reader.can_continue = true;
            if (!function || (applier->skips && !begins))
                continue;
            if (!applier->is_open && !begins && command.type != BW_COMMAND_END) {
                error = bw_error_create(BW_ERROR_CORRUPT,
                                        "command %s at %" PRIu64 " is in no subvolume",
                                        bw_command_name(command.type), command.offset);
            } else {
                applier->set->budget += ITEMS_PER_COMMAND;
                error = function(applier, &command);
                if (applier->result->is_waiting)
                    return error;
                if (error && error->code != BW_ERROR_NO_MEMORY)
                    error = bw_error_prefix(error, "command %s at %" PRIu64,
                                            bw_command_name(command.type), command.offset);
            }
        }
        if (error) {
            got = applier->skips = true;
            should_continue = applier->reader.can_continue;
            BW_TRY(finish_subvolume(applier, error));
        }
    }
    return NULL;
}

struct bw_error *bw_apply_stream(struct bw_received_set *set, size_t image, uint64_t base,
                                 struct bw_apply_result *result)
{
    const size_t before = set->received.count, blocks = set->fs->memory.blocks.count;
    const struct bw_stream_source source = bw_image_stream(&set->fs->images[image]);
    struct applier applier = {.set = set, .result = result, .image = image, .base = base};
    *result = (struct bw_apply_result){0};
    bw_stream_reader_init(&applier.reader, &source);
    struct bw_error *error = apply_commands(&applier);
    if (applier.is_open)
        bw_stream_tree_free(&applier.tree);
    if (applier.has_source)
        bw_stream_tree_free(&applier.source);
    bw_stream_reader_free(&applier.reader);
    if (!result->is_waiting)
        return error;
    bw_error_free(error);
    cut_set(set, before);
    bw_memory_cut(&set->fs->memory, blocks);
    return NULL;
}
