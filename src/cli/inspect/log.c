/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log command: the changes that a replay of the log makes. It opens the file system a second
 * time, without the log, and compares every inode in the log. Ranges are equal if both sides refer
 * to the same bytes of the same extent, or both read as zeros. Only inline data is read and
 * compared.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/generated.h"
#include "base/vector.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/history.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/subvolume.h"
#include "cli/common/output_format.h"

BW_VECTOR(paths, struct bw_buffer);

/* The current inode, either without the log or with it. */
struct side {
    struct bw_fs *fs;
    struct bw_xattr_reader *xattrs;
    bool exists;
    struct bw_place place;
    struct bw_inode inode;
    struct paths names; /* all paths of the inode, sorted */
};

/* A running comparison. */
struct changes {
    struct cmd_format *format;
    struct side before, after;
};

/* Completes and writes a row. The texts may be NULL. */
static struct bw_error *write_row(struct changes *changes, struct bw_logchange *row,
                                  const struct bw_buffer *path, const struct bw_buffer *before,
                                  const struct bw_buffer *after)
{
    const struct side *side = changes->after.exists ? &changes->after : &changes->before;
    const bool ranged = !strcmp(row->change, "data");
    const struct bw_buffer *texts[] = {path, before, after};
    struct bw_bytes bytes[3] = {{NULL, 0}};
    for (size_t i = 0; i < 3; i++) {
        if (texts[i] && texts[i]->failed)
            return bw_error_no_memory();
        if (texts[i])
            bytes[i] = (struct bw_bytes){texts[i]->data, texts[i]->length};
    }
    row->type = bw_file_type_name(side->place.type);
    row->subvolume = bw_subvolume_id(side->place.subvolume);
    row->inode = side->place.inode;
    row->path = row->path_bytes = bytes[0];
    row->before = row->before_bytes = bytes[1];
    row->after = row->after_bytes = bytes[2];
    if (!ranged)
        row->file_offset = BW_ABSENT;
    if (!ranged && strcmp(row->change, "added") && strcmp(row->change, "deleted"))
        row->length = BW_ABSENT;
    return cmd_format_write(changes->format, row, sizeof *row);
}

/* Changed ranges of data. */

/* The extents of a file on one side. */
struct extents {
    struct bw_file *file;
    struct bw_extent now; /* the current extent; its length is 0 after the last */
};

static void extents_free(struct extents *extents)
{
    bw_file_close(extents->file);
}

static struct bw_error *next_extent(struct extents *extents)
{
    const struct bw_extent *extent;
    BW_TRY(bw_file_next_extent(extents->file, &extent));
    extents->now = extent ? *extent : (struct bw_extent){.kind = BW_EXTENT_HOLE};
    return NULL;
}

/* End of the current extent. After the last extent follows a hole without an end. */
static uint64_t end_of(const struct extents *extents)
{
    return extents->now.length ? extents->now.offset + extents->now.length : UINT64_MAX;
}

static bool is_zero(const struct bw_extent *extent)
{
    return extent->kind == BW_EXTENT_HOLE || extent->kind == BW_EXTENT_UNWRITTEN;
}

static struct bw_error *write_range(struct changes *changes, uint64_t offset, uint64_t end)
{
    struct bw_logchange row = {.change = "data", .file_offset = offset, .length = end - offset};
    if (offset == end)
        return NULL;
    return write_row(changes, &row, &changes->after.names.items[0], NULL, NULL);
}

/* Whether both sides have the same bytes from `offset` to `end`, where neither extent ends. */
static struct bw_error *compare_extents(struct extents *before, struct extents *after,
                                        uint64_t offset, uint64_t end, bool *same)
{
    const struct bw_extent *a = &before->now, *b = &after->now;
    *same = false;
    if (is_zero(a) || is_zero(b)) {
        *same = is_zero(a) && is_zero(b);
    } else if (a->kind == BW_EXTENT_REGULAR && b->kind == BW_EXTENT_REGULAR) {
        *same = a->logical == b->logical && a->compression == b->compression &&
                a->extent_offset - a->offset == b->extent_offset - b->offset;
    } else if (a->kind == BW_EXTENT_INLINE && b->kind == BW_EXTENT_INLINE) {
        /* Inline data is at most a sector long, so it is read and compared. */
        char buffers[2][4096];
        *same = true;
        for (size_t got[2]; offset < end && *same; offset += got[0]) {
            const size_t wanted = end - offset < sizeof *buffers ? end - offset : sizeof *buffers;
            BW_TRY(bw_file_read(before->file, offset, buffers[0], wanted, &got[0]));
            BW_TRY(bw_file_read(after->file, offset, buffers[1], wanted, &got[1]));
            *same = got[0] == got[1] && memcmp(buffers[0], buffers[1], got[0]) == 0;
            if (!got[0])
                break; /* the end of the file */
        }
    }
    return NULL;
}

/* Writes the ranges of a file where the contents differ; adjacent ones as one. */
static struct bw_error *compare_data(struct changes *changes)
{
    BW_SCOPED(extents) struct extents before = {.file = NULL};
    BW_SCOPED(extents) struct extents after = {.file = NULL};
    BW_TRY(bw_file_open(changes->before.fs, &changes->before.place, NULL, &before.file));
    BW_TRY(bw_file_open(changes->after.fs, &changes->after.place, NULL, &after.file));
    BW_TRY(next_extent(&before));
    BW_TRY(next_extent(&after));

    const uint64_t size = changes->after.inode.size;
    uint64_t start = 0, offset = 0; /* the bytes between them differ */
    while (offset < size) {
        uint64_t end = size;
        bool same;
        if (end > end_of(&before))
            end = end_of(&before);
        if (end > end_of(&after))
            end = end_of(&after);
        BW_TRY(compare_extents(&before, &after, offset, end, &same));
        if (same) {
            BW_TRY(write_range(changes, start, offset));
            start = end;
        }
        offset = end;
        if (before.now.length && end_of(&before) <= offset)
            BW_TRY(next_extent(&before));
        if (after.now.length && end_of(&after) <= offset)
            BW_TRY(next_extent(&after));
    }
    return write_range(changes, start, size);
}

/* One side of the comparison. */

static int by_bytes(const void *a, const void *b)
{
    const struct bw_buffer *left = a, *right = b;
    return bw_compare_bytes(left->data, left->length, right->data, right->length);
}

static void free_names(struct side *side)
{
    for (size_t i = 0; i < side->names.count; i++)
        bw_buffer_free(&side->names.items[i]);
    side->names.count = 0;
}

/* Adds the path of a directory, or of a name in it. Without the path of one side, the other side's
 * path would look like a change, so it is an error if there is none. */
static struct bw_error *add_path(struct side *side, const struct bw_place *directory,
                                 const char *name, size_t name_length)
{
    BW_AUTO_FREE char *parent = NULL;
    size_t length;
    BW_TRY(bw_inode_path(side->fs, directory, &parent, &length));
    BW_TRY(paths_push(&side->names, (struct bw_buffer){0}));
    struct bw_buffer *path = &side->names.items[side->names.count - 1];
    if (name_length && length && parent[length - 1] == '/')
        length--;
    bw_buffer_append(path, parent, length);
    if (name_length)
        bw_buffer_append_byte(path, '/');
    bw_buffer_append(path, name, name_length);
    return bw_buffer_error(path);
}

/* Finds the inode on one side. An inode without a name counts as missing. */
static struct bw_error *find_inode(struct side *side, const struct bw_log_inode *inode)
{
    const struct bw_subvolume *subvolume = bw_subvolume_by_id(side->fs, inode->subvolume);
    free_names(side);
    side->exists = false;
    if (!subvolume)
        return NULL;
    BW_AUTO_ERROR struct bw_error *error =
        bw_lookup_number(side->fs, subvolume, inode->inode, &side->place);
    if (!error)
        error = bw_inode_get(side->fs, &side->place, &side->inode);
    if (error && error->code == BW_ERROR_NOT_FOUND)
        return NULL;

    /* The top directory of a subvolume has no name in its own tree. */
    struct bw_hard_links *links = NULL;
    const bool is_top = side->place.inode == bw_place_top(subvolume).inode;
    if (!error && is_top)
        error = add_path(side, &side->place, "", 0);
    else if (!error)
        error = bw_hard_links_open(side->fs, &side->place, &links);
    for (const struct bw_inode_name *name; !error && links && (name = bw_hard_links_next(links));) {
        struct bw_place directory;
        error = bw_lookup_number(side->fs, subvolume, name->directory, &directory);
        if (!error)
            error = add_path(side, &directory, name->name, name->name_length);
    }
    error = bw_error_first(BW_TAKE(error), bw_hard_links_close(links));
    if (error)
        return BW_TAKE(error);
    side->exists = side->names.count && side->inode.link_count;
    paths_sort(&side->names, by_bytes);
    return NULL;
}

/* Changed names. */

static bool has_name(const struct side *side, const struct bw_buffer *name)
{
    const struct paths *names = &side->names;
    return names->count && bsearch(name, names->items, names->count, sizeof *name, by_bytes);
}

static struct bw_error *write_names(struct changes *changes, const struct side *side,
                                    const struct side *other, const char *change)
{
    for (size_t i = 0; i < side->names.count; i++) {
        struct bw_logchange row = {.change = change, .length = side->inode.size};
        if (!has_name(other, &side->names.items[i]))
            BW_TRY(write_row(changes, &row, &side->names.items[i], NULL, NULL));
    }
    return NULL;
}

/* One name on each side that the other lacks is a renamed file. */
static struct bw_error *compare_names(struct changes *changes)
{
    const struct side *before = &changes->before, *after = &changes->after;
    const struct bw_buffer *old = NULL, *new = NULL;
    size_t gone = 0, come = 0;
    for (size_t i = before->names.count; i-- > 0;)
        if (!has_name(after, &before->names.items[i])) {
            old = &before->names.items[i];
            gone++;
        }
    for (size_t i = after->names.count; i-- > 0;)
        if (!has_name(before, &after->names.items[i])) {
            new = &after->names.items[i];
            come++;
        }
    struct bw_logchange row = {.change = "renamed"};
    if (gone == 1 && come == 1)
        return write_row(changes, &row, new, old, NULL);
    BW_TRY(write_names(changes, before, after, "unlinked"));
    return write_names(changes, after, before, "linked");
}

/* Changed attributes. */

static struct bw_error *write_attribute(struct changes *changes, const void *name, size_t length,
                                        const struct bw_buffer *before,
                                        const struct bw_buffer *after)
{
    struct bw_logchange row = {.change = "attribute", .attribute = {name, length}};
    return write_row(changes, &row, &changes->after.names.items[0], before, after);
}

static struct bw_error *compare_number(struct changes *changes, const char *name, bool is_octal,
                                       uint64_t before, uint64_t after)
{
    struct bw_buffer BW_AUTO_BUFFER old = {0}, new BW_AUTO_BUFFER = {0};
    if (before == after)
        return NULL;
    bw_buffer_format(&old, is_octal ? "%" PRIo64 : "%" PRIu64, before);
    bw_buffer_format(&new, is_octal ? "%" PRIo64 : "%" PRIu64, after);
    return write_attribute(changes, name, strlen(name), &old, &new);
}

static struct bw_error *compare_time(struct changes *changes, const char *name,
                                     const struct timespec *before, const struct timespec *after)
{
    if (before->tv_sec == after->tv_sec && before->tv_nsec == after->tv_nsec)
        return NULL;
    struct bw_buffer BW_AUTO_BUFFER old = {0}, new BW_AUTO_BUFFER = {0};
    bw_buffer_format(&old, "%lld.%09ld", (long long)before->tv_sec, before->tv_nsec);
    bw_buffer_format(&new, "%lld.%09ld", (long long)after->tv_sec, after->tv_nsec);
    return write_attribute(changes, name, strlen(name), &old, &new);
}

static const struct bw_xattr *find_xattr(const struct bw_xattr *xattrs, size_t count,
                                         const struct bw_xattr *like)
{
    for (size_t i = 0; i < count; i++)
        if (xattrs[i].name_length == like->name_length &&
            memcmp(xattrs[i].name, like->name, like->name_length) == 0)
            return &xattrs[i];
    return NULL;
}

static struct bw_buffer value_of(const struct bw_xattr *xattr)
{
    return (struct bw_buffer){.data = (char *)(uintptr_t)xattr->value,
                              .length = xattr->value_length};
}

/* Writes the differences of an inode in the log: its names, data, attributes. */
static struct bw_error *compare_inode(struct changes *changes, const struct bw_log_inode *inode)
{
    const struct bw_inode *before = &changes->before.inode, *after = &changes->after.inode;
    BW_TRY(find_inode(&changes->before, inode));
    BW_TRY(find_inode(&changes->after, inode));
    if (!changes->before.exists && !changes->after.exists)
        return NULL;
    if (!changes->before.exists)
        return write_names(changes, &changes->after, &(struct side){0}, "added");
    if (!changes->after.exists)
        return write_names(changes, &changes->before, &(struct side){0}, "deleted");

    BW_TRY(compare_names(changes));
    if (changes->after.place.type == BW_FILE_REGULAR)
        BW_TRY(compare_data(changes));
    /* The size of a directory is the length of its names; changes of names are listed anyway. */
    if (changes->after.place.type != BW_FILE_DIRECTORY)
        BW_TRY(compare_number(changes, "size", false, before->size, after->size));
    BW_TRY(compare_number(changes, "mode", true, before->mode, after->mode));
    BW_TRY(compare_number(changes, "uid", false, before->uid, after->uid));
    BW_TRY(compare_number(changes, "gid", false, before->gid, after->gid));
    BW_TRY(compare_number(changes, "device", false, before->device, after->device));
    BW_TRY(compare_number(changes, "flags", false, before->flags, after->flags));
    BW_TRY(compare_time(changes, "atime", &before->atime, &after->atime));
    BW_TRY(compare_time(changes, "mtime", &before->mtime, &after->mtime));
    BW_TRY(compare_time(changes, "ctime", &before->ctime, &after->ctime));
    BW_TRY(compare_time(changes, "otime", &before->otime, &after->otime));

    const struct bw_xattr *old_xattrs, *new_xattrs;
    size_t old_count, new_count;
    BW_TRY(bw_xattr_reader_read(changes->before.xattrs, &changes->before.place, &old_xattrs,
                                &old_count));
    BW_TRY(bw_xattr_reader_read(changes->after.xattrs, &changes->after.place, &new_xattrs,
                                &new_count));
    for (size_t i = 0; i < old_count; i++) {
        const struct bw_xattr *xattr = &old_xattrs[i];
        const struct bw_xattr *other = find_xattr(new_xattrs, new_count, xattr);
        const struct bw_buffer old = value_of(xattr);
        struct bw_buffer new = {0};
        if (other)
            new = value_of(other);
        if (!other || by_bytes(&old, &new) != 0)
            BW_TRY(write_attribute(changes, xattr->name, xattr->name_length, &old,
                                   other ? &new : NULL));
    }
    for (size_t i = 0; i < new_count; i++) {
        const struct bw_xattr *xattr = &new_xattrs[i];
        const struct bw_buffer new = value_of(xattr);
        if (!find_xattr(old_xattrs, old_count, xattr))
            BW_TRY(write_attribute(changes, xattr->name, xattr->name_length, NULL, &new));
    }
    return NULL;
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct bw_fs *fs = format->session.fs;
    struct changes changes = {.format = format, .after.fs = fs};
    struct side *sides[] = {&changes.before, &changes.after};
    struct bw_fs_options without = cmd_fs_options(format->common);
    without.log = BW_LOG_IGNORE;
    (void)context;
    if (!bw_fs_status(fs).log_replayed)
        return NULL;
    struct bw_error *error = bw_fs_open(&without, &changes.before.fs);
    for (size_t i = 0; !error && i < 2; i++)
        error = bw_xattr_reader_create(sides[i]->fs, &sides[i]->xattrs);
    for (const struct bw_log_inode *inode = NULL;
         !error && (inode = bw_log_inode_next(fs, inode));) {
        error = compare_inode(&changes, inode);
        if (!error || error->code == BW_ERROR_NO_MEMORY || error->code == BW_ERROR_SYSTEM)
            continue;
        bw_fs_report(fs, BW_DAMAGE,
                     bw_error_prefix(BW_TAKE(error), "inode %" PRIu64 " of subvolume %" PRIu64,
                                     inode->inode, inode->subvolume));
    }
    for (size_t i = 0; i < 2; i++) {
        free_names(sides[i]);
        paths_free(&sides[i]->names);
        bw_xattr_reader_destroy(sides[i]->xattrs);
    }
    bw_fs_close(changes.before.fs);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    struct cmd_common replaying = *common;
    replaying.input.fs.log = BW_LOG_REPLAY;
    return cmd_run_plan(&replaying, &cmd_log, state);
}

const struct command cmd_log = {
    .name = "log",
    .topic = cmd_topic_history,
    .operands = "IMAGE...",
    .summary = "Lists the changes that replaying the log makes.",
    .details =
        "\n"
        "The log tree contains the changes that fsync(2) saved after the last transaction. A\n"
        "mount replays it, and so do all commands, unless --log=ignore is given. Each line is\n"
        "a difference between the file system with and without the log: 'btrfs rescue\n"
        "zero-log' would discard it. Without a log, nothing is listed.\n\n"
        "A renamed directory is listed once, without its entries. Times are seconds since\n"
        "1970, modes are octal. Data that were written in place (nodatacow) are the same with\n"
        "and without the log and are not listed.\n",
    .examples = "  btrfs-walk log disk.img                 a table\n"
                "  btrfs-walk log -o change,path disk.img  columns\n"
                "  btrfs-walk log --json disk.img          for programs\n",
    .options = cmd_no_options,
    .record = "logchange",
    .plan =
        &(const struct cmd_format_plan){
            .columns = "change,type,path,file_offset,length,attribute,before,after", .list = list},
    .run = run,
};
