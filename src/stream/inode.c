/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The commands for one inode. Each range of its contents is sent as a clone of data that the
 * receiver has, as the stored bytes of a compressed extent, or as data.
 */
#include <inttypes.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "fs/inode.h"
#include "ondisk/checksum.h"
#include "stream/sender.h"

static const char capability[] = "security.capability";

/* Commands. */

size_t bw_send_command(struct bw_sender *sender, enum bw_send_command command,
                       const struct bw_buffer *path)
{
    size_t at = bw_command_begin(sender->commands, command);
    bw_attribute_add(sender->commands, BW_ATTRIBUTE_PATH, path->data, path->length);
    return at;
}

void bw_send_command_end(struct bw_sender *sender, size_t at)
{
    bw_command_end(sender->commands, at);
    sender->current.is_changed = true;
}

void bw_send_command_to(struct bw_sender *sender, enum bw_send_command command,
                        const struct bw_buffer *path, enum bw_send_attribute type,
                        const struct bw_buffer *other)
{
    size_t at = bw_send_command(sender, command, path);
    bw_attribute_add(sender->commands, type, other->data, other->length);
    bw_send_command_end(sender, at);
}

void bw_send_command_at(struct bw_sender *sender, enum bw_send_command command,
                        const struct bw_buffer *path)
{
    bw_send_command_end(sender, bw_send_command(sender, command, path));
}

/* Inodes. */

struct bw_error *bw_send_make(struct bw_sender *sender, const struct bw_buffer *path,
                              uint64_t number, const struct bw_inode *inode)
{
    static const struct {
        uint32_t type;
        enum bw_send_command command;
    } commands[] = {{S_IFREG, BW_COMMAND_MKFILE},
                    {S_IFDIR, BW_COMMAND_MKDIR},
                    {S_IFLNK, BW_COMMAND_SYMLINK},
                    {S_IFIFO, BW_COMMAND_MKFIFO},
                    {S_IFSOCK, BW_COMMAND_MKSOCK}};
    enum bw_send_command command = BW_COMMAND_MKNOD;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].type == (inode->mode & S_IFMT))
            command = commands[i].command;
    struct bw_buffer *to = sender->commands;
    BW_AUTO_BUFFER struct bw_buffer target = {0};
    if (command == BW_COMMAND_SYMLINK)
        BW_TRY(bw_symlink_read(sender->sent->fs, &sender->sent->subvolume->tree, number, &target));
    size_t at = bw_send_command(sender, command, path);
    bw_attribute_add_number(to, BW_ATTRIBUTE_INO, number);
    if (command == BW_COMMAND_SYMLINK) {
        bw_attribute_add(to, BW_ATTRIBUTE_PATH_LINK, target.data, target.length);
    } else if (command != BW_COMMAND_MKFILE && command != BW_COMMAND_MKDIR) {
        /* Device numbers are encoded differently in inodes and in system calls. */
        const uint64_t major = bw_inode_major(inode), minor = bw_inode_minor(inode);
        const uint64_t device = (minor & 0xff) | major << 8 | (minor & ~UINT64_C(0xff)) << 12;
        bw_attribute_add_number(to, BW_ATTRIBUTE_RDEV, device);
        bw_attribute_add_number(to, BW_ATTRIBUTE_MODE, inode->mode);
    }
    bw_send_command_end(sender, at);
    return NULL;
}

/* Appends a SET_XATTR. */
static void put_xattr(struct bw_buffer *to, struct bw_bytes path, const struct bw_xattr *xattr)
{
    size_t at = bw_command_begin(to, BW_COMMAND_SET_XATTR);
    bw_attribute_add(to, BW_ATTRIBUTE_PATH, path.data, path.length);
    bw_attribute_add(to, BW_ATTRIBUTE_XATTR_NAME, xattr->name, xattr->name_length);
    bw_attribute_add(to, BW_ATTRIBUTE_XATTR_DATA, xattr->value, xattr->value_length);
    bw_command_end(to, at);
}

static void set_xattr(struct bw_sender *sender, const struct bw_xattr *xattr)
{
    const struct bw_buffer *path = &sender->current.path;
    put_xattr(sender->commands, (struct bw_bytes){path->data, path->length}, xattr);
    sender->current.is_changed = true;
}

void bw_send_set_inode(struct bw_sender *sender, uint64_t number, const struct bw_inode *inode)
{
    struct bw_send_inode *current = &sender->current;
    current->number = number;
    current->inode = *inode;
    current->written = current->size_there = 0;
    current->has_capability = current->is_changed = false;
    current->path.length = current->undo.length = 0;
}

void bw_send_note_undo(struct bw_sender *sender, const struct bw_buffer *path)
{
    struct bw_buffer *undo = &sender->current.undo;
    if (sender->options.damage != BW_SEND_SKIP)
        return;
    size_t at = bw_command_begin(undo, BW_COMMAND_UNLINK);
    bw_attribute_add(undo, BW_ATTRIBUTE_PATH, path->data, path->length);
    bw_command_end(undo, at);
}

struct bw_error *bw_send_report_lost(struct bw_sender *sender, struct bw_error *error)
{
    if (sender->options.damage == BW_SEND_STOP || error->code == BW_ERROR_NO_MEMORY ||
        error->code == BW_ERROR_STOPPED)
        return error;
    bw_fs_report(sender->sent->fs, BW_DAMAGE, error);
    sender->summary.lost++;
    return NULL;
}

void bw_send_report_links(struct bw_sender *sender, uint64_t number)
{
    bw_fs_report_text(sender->sent->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                      "inode %" PRIu64 " of subvolume %" PRIu64
                      " has fewer names than links: it is sent with these names",
                      number, sender->sent->subvolume->tree.id);
}

/* Receivers cannot set an ACL without a value. */
static struct bw_xattr settable_xattr(const struct bw_xattr *xattr)
{
    static const uint8_t empty_acl[] = {2, 0, 0, 0}; /* its version, and no entries */
    struct bw_xattr result = *xattr;
    if (!xattr->value_length &&
        (bw_xattr_is_named(xattr, BW_ACL_ACCESS) || bw_xattr_is_named(xattr, BW_ACL_DEFAULT)))
        result.value = empty_acl, result.value_length = sizeof empty_acl;
    return result;
}

void bw_send_xattr(struct bw_sender *sender, const struct bw_xattr *xattr)
{
    const struct bw_xattr sent = settable_xattr(xattr);
    struct bw_send_inode *current = &sender->current;
    if (bw_xattr_is_named(xattr, capability)) { /* CHOWN would remove it */
        current->has_capability = true;
        current->capability.length = 0;
        bw_buffer_append(&current->capability, xattr->value, xattr->value_length);
    } else {
        set_xattr(sender, &sent);
    }
}

bool bw_send_is_inherited(const struct bw_xattr *xattr)
{
    return bw_xattr_is_named(xattr, BW_ACL_DEFAULT) ||
           bw_xattr_is_named(xattr, "btrfs.compression");
}

void bw_send_withhold(struct bw_sender *sender, const struct bw_xattr *xattr)
{
    const struct bw_xattr sent = settable_xattr(xattr);
    put_xattr(&sender->withheld, (struct bw_bytes){"", 0}, &sent);
}

void bw_send_withheld(struct bw_sender *sender)
{
    bw_buffer_append(sender->commands, sender->withheld.data, sender->withheld.length);
    sender->withheld.length = 0;
}

struct bw_error *bw_send_xattr_item(struct bw_sender *sender, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_xattr xattr;
    const bool is_top = item->key.objectid == BW_SUBVOLUME_ROOT_INODE;
    while (bw_xattr_next(&cursor, &xattr))
        (is_top && bw_send_is_inherited(&xattr) ? bw_send_withhold : bw_send_xattr)(sender, &xattr);
    if (bw_cursor_bad(&cursor))
        BW_TRY(bw_send_report_lost(sender, bw_error_create(BW_ERROR_CORRUPT,
                                                           "an extended attribute of inode %" PRIu64
                                                           " is cut off",
                                                           item->key.objectid)));
    return bw_send_cut(sender);
}

void bw_send_capability(struct bw_sender *sender)
{
    const struct bw_buffer *value = &sender->current.capability;
    const struct bw_xattr xattr = {.name = (const uint8_t *)capability,
                                   .name_length = sizeof capability - 1,
                                   .value = (const uint8_t *)value->data,
                                   .value_length = (uint16_t)value->length};
    if (sender->current.has_capability)
        set_xattr(sender, &xattr);
}

void bw_send_times(struct bw_sender *sender, const struct bw_buffer *path,
                   const struct bw_send_directory_name *times)
{
    struct bw_buffer *to = sender->commands;
    size_t at = bw_send_command(sender, BW_COMMAND_UTIMES, path);
    bw_attribute_add_time(to, BW_ATTRIBUTE_ATIME, &times->atime);
    bw_attribute_add_time(to, BW_ATTRIBUTE_MTIME, &times->mtime);
    bw_attribute_add_time(to, BW_ATTRIBUTE_CTIME, &times->ctime);
    if (sender->options.version >= 2)
        bw_attribute_add_time(to, BW_ATTRIBUTE_OTIME, &times->otime);
    bw_send_command_end(sender, at);
}

void bw_send_inode_times(struct bw_sender *sender, const struct bw_buffer *path,
                         const struct bw_inode *inode)
{
    bw_send_times(sender, path,
                  &(struct bw_send_directory_name){.atime = inode->atime,
                                                   .mtime = inode->mtime,
                                                   .ctime = inode->ctime,
                                                   .otime = inode->otime});
}

void bw_send_owner(struct bw_sender *sender)
{
    const struct bw_send_inode *current = &sender->current;
    size_t at = bw_send_command(sender, BW_COMMAND_CHOWN, &current->path);
    bw_attribute_add_number(sender->commands, BW_ATTRIBUTE_UID, current->inode.uid);
    bw_attribute_add_number(sender->commands, BW_ATTRIBUTE_GID, current->inode.gid);
    bw_send_command_end(sender, at);
}

void bw_send_mode(struct bw_sender *sender)
{
    const struct bw_send_inode *current = &sender->current;
    if (S_ISLNK(current->inode.mode))
        return;
    size_t at = bw_send_command(sender, BW_COMMAND_CHMOD, &current->path);
    bw_attribute_add_number(sender->commands, BW_ATTRIBUTE_MODE, current->inode.mode & 07777);
    bw_send_command_end(sender, at);
}

void bw_send_flags(struct bw_sender *sender)
{
    const struct bw_send_inode *current = &sender->current;
    size_t at = bw_send_command(sender, BW_COMMAND_FILEATTR, &current->path);
    bw_attribute_add_number(sender->commands, BW_ATTRIBUTE_FILEATTR, current->inode.flags);
    bw_send_command_end(sender, at);
}

void bw_send_truncate(struct bw_sender *sender, uint64_t size)
{
    sender->current.size_there = size;
    size_t at = bw_send_command(sender, BW_COMMAND_TRUNCATE, &sender->current.path);
    bw_attribute_add_number(sender->commands, BW_ATTRIBUTE_SIZE, size);
    bw_send_command_end(sender, at);
}

/* Contents. */

static void send_range_only(struct bw_sender *sender, uint64_t offset, uint64_t length)
{
    size_t at = bw_send_command(sender, BW_COMMAND_UPDATE_EXTENT, &sender->current.path);
    bw_attribute_add_number(sender->commands, BW_ATTRIBUTE_FILE_OFFSET, offset);
    bw_attribute_add_number(sender->commands, BW_ATTRIBUTE_SIZE, length);
    bw_send_command_end(sender, at);
}

/* Sends bytes of an extent as data; `skip`: where they begin in the decompressed extent. */
static struct bw_error *send_data(struct bw_sender *sender, const struct bw_file_extent *extent,
                                  uint64_t skip, uint64_t offset, uint64_t length)
{
    const struct bw_encoded_range range = {skip, offset, length};
    const bool is_inline = extent->inline_data;
    const uint64_t stored = is_inline ? extent->inline_length : extent->disk_num_bytes;
    if (!length)
        return NULL;
    sender->summary.data += length;
    if (sender->options.no_data) {
        send_range_only(sender, offset, length);
        return NULL;
    }
    bool encoded = sender->options.compressed && extent->compression != BW_COMPRESS_NONE &&
                   stored <= length && stored <= BW_SEND_DATA;
    if (encoded && !is_inline)
        return bw_send_add_encoded(sender, extent, &range);
    if (encoded) {
        size_t data;
        size_t at = bw_send_encoded_begin(sender, extent, &range, &sender->current.path,
                                          sender->commands, &data);
        bw_buffer_append(sender->commands, extent->inline_data, extent->inline_length);
        bw_data_attribute_end(sender->commands, data, sender->options.version);
        bw_send_command_end(sender, at);
    } else if (is_inline && extent->compression == BW_COMPRESS_NONE && !sender->sent->fs->no_data) {
        const unsigned version = sender->options.version;
        const uint64_t limit = version >= 2 ? BW_SEND_DATA : BW_SEND_DATA_V1;
        for (uint64_t done = 0, step; done < length; done += step) {
            step = length - done < limit ? length - done : limit;
            size_t at = bw_send_command(sender, BW_COMMAND_WRITE, &sender->current.path);
            bw_attribute_add_number(sender->commands, BW_ATTRIBUTE_FILE_OFFSET, offset + done);
            size_t data = bw_data_attribute_begin(sender->commands, version);
            bw_buffer_append(sender->commands, extent->inline_data + skip + done, (size_t)step);
            bw_data_attribute_end(sender->commands, data, version);
            bw_send_command_end(sender, at);
        }
    } else {
        return bw_send_add_data(sender, offset, length);
    }
    return bw_send_cut(sender);
}

/* The current file was written up to here. */
static void note_written(struct bw_sender *sender, uint64_t end)
{
    struct bw_send_inode *current = &sender->current;
    current->written = end;
    current->size_there = current->size_there > end ? current->size_there : end;
}

struct bw_error *bw_send_plain(struct bw_sender *sender, uint64_t offset, uint64_t length)
{
    note_written(sender, offset + length);
    if (sender->options.no_data) {
        send_range_only(sender, offset, length);
        return NULL;
    }
    return bw_send_add_data(sender, offset, length);
}

void bw_send_punch(struct bw_sender *sender, uint64_t offset, uint64_t length)
{
    const uint32_t punch_and_keep_size = 3;
    size_t at = bw_send_command(sender, BW_COMMAND_FALLOCATE, &sender->current.path);
    bw_attribute_add_number32(sender->commands, BW_ATTRIBUTE_FALLOCATE_MODE, punch_and_keep_size);
    bw_attribute_add_number(sender->commands, BW_ATTRIBUTE_FILE_OFFSET, offset);
    bw_attribute_add_number(sender->commands, BW_ATTRIBUTE_SIZE, length);
    bw_send_command_end(sender, at);
}

/* Sends a range as a clone. `*done` is false if the source has no path. */
static struct bw_error *clone_range(struct bw_sender *sender, const struct bw_send_clone *clone,
                                    uint64_t offset, bool *done)
{
    BW_AUTO_BUFFER struct bw_buffer from = {0};
    struct bw_buffer *to = sender->commands;
    const struct bw_buffer *path = &sender->current.path;
    const bool is_moving = clone->root == sender->sent && !sender->parent;
    struct bw_error *error =
        bw_send_path(sender, clone->root, clone->inode,
                     is_moving ? sender->current.number + 1 : UINT64_MAX, &from);
    *done = !error;
    BW_TRY(bw_error_tolerate(error));
    if (!*done)
        return NULL;

    /* The receiver's file may be longer. A range that does not end at a sector boundary can be
     * cloned only to the end of a file, so the file is truncated first. */
    const uint32_t sectorsize = sender->sent->fs->superblock.sectorsize;
    if (sender->parent && (offset + clone->length) % sectorsize)
        bw_send_truncate(sender, offset);

    size_t at = bw_command_begin(to, BW_COMMAND_CLONE);
    bw_attribute_add_number(to, BW_ATTRIBUTE_FILE_OFFSET, offset);
    bw_attribute_add_number(to, BW_ATTRIBUTE_CLONE_LEN, clone->length);
    bw_attribute_add(to, BW_ATTRIBUTE_PATH, path->data, path->length);
    bw_attribute_add(to, BW_ATTRIBUTE_CLONE_UUID, clone->root->uuid, BW_UUID_SIZE);
    bw_attribute_add_number(to, BW_ATTRIBUTE_CLONE_CTRANSID, clone->root->ctransid);
    bw_attribute_add(to, BW_ATTRIBUTE_CLONE_PATH, from.data, from.length);
    bw_attribute_add_number(to, BW_ATTRIBUTE_CLONE_OFFSET, clone->offset);
    bw_send_command_end(sender, at);
    sender->summary.cloned += clone->length;
    return bw_send_cut(sender);
}

struct bw_error *bw_send_extent(struct bw_sender *sender, const struct bw_file_extent *extent,
                                uint64_t skip, uint64_t start, uint64_t end)
{
    struct bw_send_clone clone = {0};
    uint64_t data = 0; /* bytes before `start` that are still to be sent as data */
    while (start < end) {
        bool cloned = false;
        BW_TRY(bw_send_find_clone(sender, extent, skip, start, end - start, &clone));
        if (clone.root) {
            BW_TRY(send_data(sender, extent, skip - data, start - data, data));
            data = 0;
            BW_TRY(clone_range(sender, &clone, start, &cloned));
        }
        data += cloned ? 0 : clone.length;
        start += clone.length;
        skip += clone.length;
        note_written(sender, start);
    }
    return send_data(sender, extent, skip - data, start - data, data);
}

struct bw_error *bw_send_extent_item(struct bw_sender *sender, const struct bw_item *item)
{
    struct bw_file_extent extent;
    const uint64_t size = sender->current.inode.size, start = item->key.offset;
    struct bw_error *error =
        bw_file_extent_decode(item, bw_fs_alignment(sender->sent->fs), &extent);
    if (error) { /* the reader reports the reason */
        bw_error_free(error);
        return start < size ? bw_send_plain(sender, start, 1) : NULL;
    }
    if (start >= size || extent.type == BW_FILE_EXTENT_PREALLOC ||
        (!extent.inline_data && !extent.disk_bytenr))
        return NULL;
    const uint64_t left = size - start;
    return bw_send_extent(sender, &extent, extent.offset, start,
                          extent.num_bytes < left ? start + extent.num_bytes : size);
}
