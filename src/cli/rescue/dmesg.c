/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Explaining the messages of a kernel log, for `rescue --dmesg`: the affected files, whether a good
 * copy exists, and what to do.
 *
 * Messages name a file by its subvolume and inode, or a block by its logical address, or by an
 * offset on a device. The file of each message is looked up first. Then one search finds the owners
 * of all addresses: those in the messages, and those of the data of the files, which other files
 * may share. While it runs, the mirrors of each block are read. At the end each message gets a row.
 */
#include "cli/rescue/rescue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "btrfs-walk/format.h"
#include "btrfs-walk/space.h"
#include "btrfs-walk/tree.h"
#include "cli/common/monitor.h"
#include "cli/rescue/kernel_messages.h"

enum { SECTOR = 512 /* unit of sectors in messages of disks */ };

/* Whether a good mirror of a block exists. */
enum copies { COPIES_UNKNOWN, COPIES_GOOD, COPIES_BAD };

BW_VECTOR(path_list, struct bw_bytes);
BW_VECTOR(addresses, struct bw_address_range);

/* A message, its address and file. */
struct explained {
    const struct kernel_log_entry *entry;
    bool has_logical, has_device, has_file;
    uint64_t logical, devid, offset;
    uint64_t subvolume, inode, file_offset;
    const struct explained *same; /**< an earlier message about the same address, or NULL */
    enum copies copies;
    bool has_data;          /**< `searched` is where the data of the file are */
    uint64_t searched;      /**< logical address whose owners are searched for */
    struct path_list paths; /**< their bytes are allocated */
};

struct dmesg {
    const struct kernel_log *log;
    struct bw_fs *fs;
    struct bw_superblock_info super;
    struct bw_device_map *devices;
    struct explained *items;
    struct bw_sizes item_of_range; /* for each searched address, the number of its item */
    bool has_unshifted; /* an offset may be one on the disk of which the image is a partition */
};

static bool has_value(const struct explained *item, enum kernel_value value)
{
    return item->entry->message.known >> value & 1;
}

static uint64_t value_of(const struct explained *item, enum kernel_value value)
{
    return item->entry->message.values[value];
}

/* Devices: the kernel prints their names on the machine where they failed. */

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether a name of the kernel is that of a disk that may have partitions: sda, vdb, nvme0n1 or
 * mmcblk0, but not sda1, nvme0n1p1, dm-0 or the name of a file. */
static bool is_disk_name(const char *name)
{
    int end = 0;
    sscanf(name, "nvme%*un%*u%n", &end);
    sscanf(name, "mmcblk%*u%n", &end);
    if (end)
        return !name[end];
    const char *letters = name + (name[0] == 'x');
    if (!*letters || !strchr("shv", letters[0]) || letters[1] != 'd' || !letters[2])
        return false;
    return !letters[2 + strspn(letters + 2, "abcdefghijklmnopqrstuvwxyz")];
}

/*
 * Finds the logical address of a message, directly or by its place on a device. Sectors in messages
 * of btrfs count from the beginning of the file system, those of disks from the beginning of the
 * disk. An image of the whole disk shows where its partition begins; an image of the partition
 * alone does not.
 */
static struct bw_error *locate_item(struct dmesg *dmesg, struct explained *item)
{
    const struct kernel_message *message = &item->entry->message;
    item->has_logical = has_value(item, KERNEL_LOGICAL);
    if (item->has_logical)
        item->logical = value_of(item, KERNEL_LOGICAL);

    if (has_value(item, KERNEL_PHYSICAL))
        item->offset = value_of(item, KERNEL_PHYSICAL);
    else if (has_value(item, KERNEL_SECTOR) && value_of(item, KERNEL_SECTOR) < UINT64_MAX / SECTOR)
        item->offset = value_of(item, KERNEL_SECTOR) * SECTOR;
    else
        return NULL;

    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    const struct bw_device_info *found = NULL; /* the device of that name, or the only one */
    size_t matches = 0;
    uint64_t partition_offset = 0;
    if (has_value(item, KERNEL_DEVID)) {
        item->devid = value_of(item, KERNEL_DEVID);
    } else {
        BW_AUTO_ERROR struct bw_error *error = bw_fs_devices(dmesg->fs, &devices);
        for (size_t i = 0; i < devices.count; i++) {
            const struct bw_device_info *device = &devices.items[i];
            if (!device->path || strcmp(last_name(device->path), last_name(message->device)) != 0)
                continue;
            found = device;
            matches++;
        }
        if (!found && devices.count == 1)
            found = devices.items;
        if (error || !found || matches > 1)
            return NULL;
        item->devid = found->devid;
        partition_offset = found->partition_offset;
    }
    if (strncmp(message->entry->word, "disk-", 5) == 0) {
        if (item->offset < partition_offset)
            return NULL;
        item->offset -= partition_offset;
        if (!matches && !partition_offset && is_disk_name(message->device))
            dmesg->has_unshifted = true;
    }
    item->has_device = true;
    if (item->has_logical)
        return NULL;

    struct bw_device_place place;
    BW_AUTO_ERROR struct bw_error *error =
        bw_device_map_find(dmesg->devices, item->devid, item->offset, 1, &place);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(error);
    item->has_device = !error; /* otherwise there is no such device, or offset */
    item->has_logical = !error && place.copy;
    if (item->has_logical)
        item->logical = place.logical;
    return NULL;
}

/* Paths. */

/* The owners of an address contain the path that the message names, which is the first, and repeat
 * a path only at once. */
static struct bw_error *add_path(struct explained *item, const char *path, size_t length)
{
    struct path_list *paths = &item->paths;
    const size_t compared[] = {0, paths->count - 1};
    for (size_t i = 0; paths->count && i < 2; i++) {
        const struct bw_bytes *other = &paths->items[compared[i]];
        if (other->length == length && memcmp(other->data, path, length) == 0)
            return NULL;
    }
    BW_TRY(path_list_reserve(paths, 1));
    char *copy = strndup(path, length);
    if (!copy)
        return bw_error_no_memory();
    paths->items[paths->count++] = (struct bw_bytes){copy, length};
    return NULL;
}

/* Reads the sector of a file. */
static enum copies read_file(struct dmesg *dmesg, const struct bw_place *place, uint64_t offset)
{
    struct bw_file *file;
    enum copies copies = COPIES_GOOD;
    const uint64_t size = dmesg->super.sectorsize;
    BW_AUTO_ERROR struct bw_error *error = bw_file_open(dmesg->fs, place, NULL, &file);
    if (error)
        return COPIES_UNKNOWN;
    const struct bw_data_part *part = NULL;
    error = bw_file_begin_parts(file, offset - offset % size, size);
    while (!error && !(error = bw_file_next_part(file, &part)) && part)
        if (part->kind == BW_DATA_BAD)
            copies = COPIES_BAD;
    bw_file_close(file);
    return error ? COPIES_UNKNOWN : copies;
}

/* Finds the address of the data at the file's offset, which other files may share. */
static struct bw_error *find_data(struct dmesg *dmesg, const struct bw_place *place,
                                  struct explained *item)
{
    struct bw_file *file;
    const struct bw_extent *extent = NULL;
    const uint64_t offset = item->file_offset;
    BW_TRY(bw_file_open(dmesg->fs, place, NULL, &file));
    bw_file_seek_extent(file, offset);
    struct bw_error *error = bw_file_next_extent(file, &extent);
    item->has_data = !error && extent && extent->kind == BW_EXTENT_REGULAR &&
                     offset >= extent->offset && offset - extent->offset < extent->length;
    if (item->has_data) {
        item->searched = extent->used_logical;
        if (extent->compression == BW_COMPRESS_NONE)
            item->searched += offset - extent->offset;
    }
    bw_file_close(file);
    return error;
}

/* Finds the file of a message by its subvolume and inode. */
static struct bw_error *find_file(struct dmesg *dmesg, struct explained *item)
{
    struct bw_place place;
    BW_AUTO_FREE char *path = NULL;
    size_t length = 0;
    if (!has_value(item, KERNEL_ROOT) || !has_value(item, KERNEL_INODE) ||
        !bw_is_subvolume_id(value_of(item, KERNEL_ROOT)))
        return NULL;
    item->subvolume = value_of(item, KERNEL_ROOT);
    item->inode = value_of(item, KERNEL_INODE);
    if (has_value(item, KERNEL_OFFSET))
        item->file_offset = value_of(item, KERNEL_OFFSET);
    item->has_file = true;
    const struct bw_subvolume *subvolume = bw_subvolume_by_id(dmesg->fs, item->subvolume);
    if (!subvolume)
        return NULL;
    BW_AUTO_ERROR struct bw_error *error =
        bw_lookup_number(dmesg->fs, subvolume, item->inode, &place);
    if (!error && place.type == BW_FILE_REGULAR && has_value(item, KERNEL_OFFSET)) {
        item->copies = read_file(dmesg, &place, item->file_offset);
        error = find_data(dmesg, &place, item);
    }
    if (!error)
        error = bw_inode_path(dmesg->fs, &place, &path, &length);
    if (error)
        return bw_error_tolerate(BW_TAKE(error));
    return add_path(item, path, length);
}

/* Whether any mirror of a tree block is good. An older generation than the expected one is bad. */
static enum copies read_block(struct dmesg *dmesg, const struct explained *item, uint64_t logical)
{
    struct bw_tree_block *block;
    BW_AUTO_ERROR struct bw_error *error = bw_tree_block_read(dmesg->fs, logical, &block);
    if (error)
        return error->code == BW_ERROR_CORRUPT ? COPIES_BAD : COPIES_UNKNOWN;
    const struct bw_tree_block_header header = bw_tree_block_header(block);
    const bool of_generation = strcmp(item->entry->message.entry->word, "transid-failed") == 0;
    bw_tree_block_free(block);
    if (of_generation && has_value(item, KERNEL_WANTED) &&
        header.generation != value_of(item, KERNEL_WANTED))
        return COPIES_BAD;
    return COPIES_GOOD;
}

/* Owners. */

static struct bw_error *add_owner(void *context, const struct bw_owner *owner)
{
    struct dmesg *dmesg = context;
    struct explained *item = &dmesg->items[dmesg->item_of_range.items[owner->range]];
    if (item->copies == COPIES_UNKNOWN &&
        (owner->kind == BW_OWNER_METADATA || owner->kind == BW_OWNER_BLOCK)) {
        item->copies = read_block(dmesg, item, owner->logical);
    } else if (item->copies == COPIES_UNKNOWN && owner->kind == BW_OWNER_DATA && owner->subvolume) {
        struct bw_place place;
        BW_AUTO_ERROR struct bw_error *error =
            bw_lookup_number(dmesg->fs, owner->subvolume, owner->inode, &place);
        if (!error)
            item->copies = read_file(dmesg, &place, owner->offset);
    }
    if (owner->subvolume && !item->has_file) {
        item->has_file = owner->kind == BW_OWNER_DATA;
        item->subvolume = owner->tree;
        item->inode = owner->inode;
        item->file_offset = owner->offset;
    }
    if (!owner->path.data)
        return NULL;
    return add_path(item, owner->path.data, owner->path.length);
}

/* Rows. */

static struct bw_error *write_item(struct cmd_format *answer, const struct dmesg *dmesg,
                                   const struct explained *item)
{
    const struct kernel_entry *entry = item->entry->message.entry;
    const struct explained *owners = item->same ? item->same : item;
    const struct explained *found = item->has_file ? item : owners;
    const struct bw_kernelmessageinfo row = {
        .kernel_message = entry->word,
        .severity = entry->is_error ? "error" : "warning",
        .occurrences = item->entry->count,
        .line = item->entry->line,
        .message = dmesg->log->texts.data + item->entry->text,
        .logical = cmd_if_known(item->has_logical, item->logical),
        .mirror = cmd_if_known(has_value(item, KERNEL_MIRROR), value_of(item, KERNEL_MIRROR)),
        .devid = cmd_if_known(item->has_device, item->devid),
        .offset = cmd_if_known(item->has_device, item->offset),
        .subvolume = cmd_if_known(found->has_file, found->subvolume),
        .inode = cmd_if_known(found->has_file, found->inode),
        .file_offset = cmd_if_known(found->has_file, found->file_offset),
        .readable = cmd_if_known(found->copies != COPIES_UNKNOWN, found->copies == COPIES_GOOD),
        .paths = {owners->paths.items, owners->paths.count},
        .description = entry->explanation,
        .advice = entry->advice,
    };
    return cmd_format_write(answer, &row, sizeof row);
}

/* The text for people: the line, its meaning, the files, and what to do. */
static struct bw_error *print_item(struct cmd_format *answer, const void *record)
{
    const struct bw_kernelmessageinfo *row = record;
    struct bw_buffer *text = &answer->text;
    const bool has_color = cmd_has_color(answer->common, STDOUT_FILENO);
    bw_buffer_format(text, "%s", cmd_color(has_color, cmd_severity_color(row->severity)));
    bw_escape_words(text, row->message);
    bw_buffer_format(text, "%s", cmd_color(has_color, CMD_PLAIN));
    if (row->occurrences > 1)
        bw_buffer_format(text, " (%" PRIu64 " times)", row->occurrences);
    bw_buffer_format(text, "\n  %s\n", row->description);
    for (size_t i = 0; i < row->paths.length; i++) {
        bw_buffer_format(text, "  affected: ");
        bw_escape_line(text, row->paths.data[i].data, row->paths.data[i].length);
        bw_buffer_append_byte(text, '\n');
    }
    if (row->readable != BW_ABSENT)
        bw_buffer_format(text, "  %s\n",
                         row->readable ? "A good mirror exists." : "No good mirror exists.");
    bw_buffer_format(text, "  %s\n\n", row->advice);
    return NULL;
}

static struct bw_error *list(struct cmd_format *answer, void *context)
{
    struct dmesg *dmesg = context;
    const size_t count = dmesg->log->entries.count;
    BW_SCOPED(addresses) struct addresses searched = {0};
    BW_SCOPED(bw_key_map) struct bw_key_map firsts = {0}; /* the first item with each address */
    dmesg->fs = answer->session.fs;
    bw_fs_superblock(dmesg->fs, &dmesg->super);

    /* The address and the file of each message. */
    struct bw_error *error = bw_device_map_open(dmesg->fs, &dmesg->devices);
    for (size_t i = 0; i < count && !error; i++) {
        dmesg->items[i].entry = &dmesg->log->entries.items[i];
        error = locate_item(dmesg, &dmesg->items[i]);
        if (!error)
            error = find_file(dmesg, &dmesg->items[i]);
    }
    bw_device_map_close(dmesg->devices);
    BW_TRY(error);

    /* The owners of all addresses. Messages with the same address share them. */
    for (size_t i = 0; i < count; i++) {
        struct explained *item = &dmesg->items[i];
        if (!item->has_data)
            item->searched = item->logical;
        if ((!item->has_logical && !item->has_data) || item->searched == UINT64_MAX)
            continue;
        const uint32_t first = bw_key_map_get(&firsts, item->searched, UINT32_MAX);
        if (first != UINT32_MAX) {
            item->same = &dmesg->items[first];
            continue;
        }
        BW_TRY(bw_sizes_push(&dmesg->item_of_range, i));
        BW_TRY(addresses_push(&searched, (struct bw_address_range){item->searched, 1}));
        BW_TRY(bw_key_map_put(&firsts, item->searched, (uint32_t)i));
    }
    const struct bw_owner_options options = {.struct_size = sizeof options,
                                             .ranges = searched.items,
                                             .count = searched.count,
                                             .visit = add_owner,
                                             .context = dmesg};
    if (searched.count) {
        cmd_progress_expect_trees(dmesg->fs, false);
        BW_TRY(bw_owners_find(dmesg->fs, &options));
    }
    cmd_progress_end();
    for (size_t i = 0; i < count; i++)
        BW_TRY(write_item(answer, dmesg, &dmesg->items[i]));
    return NULL;
}

/* Prints how many lines were not explained, and what may be wrong. */
static void print_doubts(const struct dmesg *dmesg)
{
    const struct kernel_log *log = dmesg->log;
    fprintf(stderr,
            "btrfs-walk: %" PRIu64 " of %" PRIu64 " lines were passed over, %" PRIu64
            " of them errors and warnings of btrfs\n",
            log->unknown, log->lines, log->errors);
    if (log->dropped)
        fprintf(stderr, "btrfs-walk: %" PRIu64 " further messages were not explained\n",
                log->dropped);
    if (dmesg->has_unshifted)
        fprintf(stderr,
                "btrfs-walk: sectors in messages of a disk count from its beginning; if the "
                "image is only a partition of it, the files are wrong: give the whole "
                "disk\n");
}

int dmesg_run(const struct cmd_common *common, const char *file)
{
    struct kernel_log log = {.lines = 0};
    struct dmesg dmesg = {.log = &log};
    const struct cmd_format_plan plan = {
        .record = "kernelmessageinfo", .print = print_item, .list = list, .context = &dmesg};
    struct bw_error *error = kernel_log_read(file, &log);
    if (error) {
        kernel_log_free(&log);
        return cmd_fail(common, error);
    }
    struct cmd_common own = *common;
    if (!common->input.log_given)
        own.input.fs.log = BW_LOG_IGNORE;
    dmesg.items = calloc(log.entries.count + 1, sizeof *dmesg.items);
    int status;
    if (dmesg.items)
        status = cmd_format_run(&own, &plan);
    else
        status = cmd_fail(common, bw_error_no_memory());
    if (!common->messages.quiet)
        print_doubts(&dmesg);
    for (size_t i = 0; dmesg.items && i < log.entries.count; i++) {
        struct path_list *paths = &dmesg.items[i].paths;
        for (size_t path = 0; path < paths->count; path++)
            free((char *)(uintptr_t)paths->items[path].data);
        path_list_free(paths);
    }
    free(dmesg.items);
    bw_sizes_free(&dmesg.item_of_range);
    kernel_log_free(&log);
    return status;
}
