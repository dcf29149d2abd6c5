/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The show command: the file systems on many disks and images, one line each.
 *
 * First, all devices in all images are listed, including partitions and volumes in containers, and
 * only their superblocks are read. If that fails, each image is listed by itself, so that an image
 * that cannot be read costs only its own line. Then the devices are grouped into file systems, by
 * the fsid and the ids of devices, and each file system is opened with exactly its devices. Devices
 * of the group that turn out not to belong to it, and older copies of the same devices, form
 * further file systems.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "base/table.h"
#include "base/vector.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/records.h"
#include "cli/command.h"
#include "cli/common/output_format.h"
#include "cli/inspect/overview.h"

enum {
    SEEDING = 32,         /* bits of bw_superblock_info.flags */
    CHANGING_FSID = 35,   /* btrfstune was interrupted: some devices have another fsid */
    CHANGING_FSID_2 = 36, /* the same, for the metadata UUID */
};

/* Something on an image: a device of a btrfs, or other contents. */
struct found {
    const char *path;          /* of the image */
    struct bw_image_info info; /* its texts belong to a list; zeros if `error` is set */
    struct bw_error *error;    /* why the image cannot be opened; or NULL */
    bool is_done;              /* it was written, alone or with the devices of its file system */
};

BW_VECTOR(found_list, struct found);
BW_VECTOR(fs_list, struct bw_fs *);
BW_VECTOR(names, struct bw_bytes);

struct show {
    struct cmd_common common; /* its images are those that are readable */
    struct cmd_common quiet;  /* with which the session is open */
    struct cmd_format *format;
    struct bw_const_strings paths; /* of these images */
    struct fs_list lists;          /* the lists of devices, besides the session */
    struct found_list found;
    struct bw_buffer cells; /* of the table, without --json and -o */
    bool has_readable;      /* a btrfs or stream that can be read was written */
    bool has_missed;        /* something could not be read */
};

/* Listing. */

static struct bw_error *add_devices(struct show *show, const struct bw_fs *fs)
{
    for (size_t i = 0; i < bw_fs_image_count(fs); i++) {
        struct found found = {.path = NULL};
        bw_fs_image_info(fs, i, &found.info);
        found.path = found.info.path;
        BW_TRY(found_list_push(&show->found, found));
    }
    return NULL;
}

static struct bw_error *add_unreadable(struct show *show, const char *path, struct bw_error *error)
{
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    return found_list_push(&show->found, (struct found){.path = path, .error = error});
}

/* Lists the devices of some images, without a session. */
static struct bw_error *list_images(const struct show *show, const char *const *paths, size_t count,
                                    struct bw_fs **fs)
{
    struct bw_fs_options options = cmd_fs_options(&show->common);
    options.paths = paths;
    options.path_count = count;
    return bw_fs_list_devices(&options, fs);
}

/* Lists the devices of all images together. If that fails, lists the images one by one, then those
 * without errors together, because a container may consist of several. */
static struct bw_error *list_devices(struct show *show)
{
    struct cmd_input *input = &show->common.input;
    for (size_t i = 0; i < input->other_count; i++) {
        bool is_served;
        struct bw_error *error = bw_servers_open(input->fs.servers, input->others[i], &is_served);
        if (!error && !is_served && access(input->others[i], R_OK))
            error = bw_error_from_errno(errno, "cannot open it");
        if (error)
            BW_TRY(add_unreadable(show, input->others[i], error));
        else
            BW_TRY(bw_const_strings_push(&show->paths, input->others[i]));
    }
    input->images = show->paths.items;
    input->image_count = show->paths.count;
    if (!show->paths.count)
        return NULL;

    /* Opening the file systems reports the same messages. */
    show->quiet = show->common;
    show->quiet.messages.quiet = true;
    struct bw_error *error = cmd_try_open(&show->quiet, CMD_OPEN_DEVICES, &show->format->session);
    if (!error)
        return add_devices(show, show->format->session.fs);
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (input->other_count == 1) /* with several, it may be about another one */
        return add_unreadable(show, show->paths.items[0], error);
    bw_error_free(error);

    BW_SCOPED(bw_const_strings) struct bw_const_strings all = show->paths;
    struct bw_fs *fs;
    show->paths = (struct bw_const_strings){0};
    for (size_t i = 0; i < all.count; i++) {
        error = list_images(show, &all.items[i], 1, &fs);
        if (error) {
            BW_TRY(add_unreadable(show, all.items[i], error));
            continue;
        }
        bw_fs_close(fs);
        BW_TRY(bw_const_strings_push(&show->paths, all.items[i]));
    }
    if (!show->paths.count)
        return NULL;
    BW_TRY(list_images(show, show->paths.items, show->paths.count, &fs));
    error = fs_list_push(&show->lists, fs);
    if (error) {
        bw_fs_close(fs);
        return error;
    }
    return add_devices(show, fs);
}

/* Grouping. */

static bool same_uuid(const uint8_t *a, const uint8_t *b)
{
    return memcmp(a, b, BW_UUID_SIZE) == 0;
}

static bool is_seed(const struct found *found)
{
    return found->info.superblock.flags >> SEEDING & 1;
}

static bool is_same_file_system(const struct bw_superblock_info *a,
                                const struct bw_superblock_info *b)
{
    const uint64_t flags = a->flags | b->flags;
    if (same_uuid(a->fsid, b->fsid))
        return true;
    return ((flags >> CHANGING_FSID | flags >> CHANGING_FSID_2) & 1) &&
           same_uuid(a->metadata_uuid, b->metadata_uuid);
}

static bool is_same_device(const struct bw_superblock_info *a, const struct bw_superblock_info *b)
{
    return a->devid == b->devid && same_uuid(a->device_uuid, b->device_uuid);
}

BW_VECTOR(members, struct found *);

/* Collects the devices of the file system of `first` that are not written yet: of each device, the
 * newest image, and of several devices with the same id, the first. If devices are missing, seeds
 * may be among them. */
static struct bw_error *collect(struct show *show, struct found *first, struct members *members)
{
    BW_TRY(members_push(members, first));
    for (struct found *next = first + 1; next < show->found.items + show->found.count; next++) {
        if (next->is_done || next->error || !next->info.has_superblock ||
            !is_same_file_system(&first->info.superblock, &next->info.superblock))
            continue;
        size_t i = 0;
        while (i < members->count &&
               members->items[i]->info.superblock.devid != next->info.superblock.devid)
            i++;
        if (i == members->count)
            BW_TRY(members_push(members, next));
        else if (is_same_device(&members->items[i]->info.superblock, &next->info.superblock) &&
                 next->info.superblock.generation > members->items[i]->info.superblock.generation)
            members->items[i] = next;
    }
    const size_t own = members->count;
    for (size_t i = 0; i < show->found.count; i++) {
        struct found *seed = &show->found.items[i];
        if (!seed->error && seed->info.has_superblock && is_seed(seed) && !is_seed(first) &&
            own < first->info.superblock.device_count)
            BW_TRY(members_push(members, seed));
    }
    return NULL;
}

/* The image with the same device as one of the members, written before; NULL: none. */
static const char *find_original(const struct show *show, const struct members *members)
{
    for (size_t i = 0; i < members->count; i++)
        for (size_t k = 0; k < show->found.count; k++) {
            const struct found *other = &show->found.items[k];
            if (other->is_done && other->info.has_superblock &&
                is_same_file_system(&members->items[i]->info.superblock, &other->info.superblock) &&
                is_same_device(&members->items[i]->info.superblock, &other->info.superblock))
                return other->info.name;
        }
    return NULL;
}

/* Rows. */

/* A row, and the memory of its texts. */
struct row {
    struct bw_showinfo info;
    struct names images, remarks; /* the texts of remarks are allocated */
};

static void row_free(struct row *row)
{
    names_free(&row->images);
    for (size_t i = 0; i < row->remarks.count; i++)
        free((char *)(uintptr_t)row->remarks.items[i].data);
    names_free(&row->remarks);
}

/* Appends a remark, from a format and its arguments. */
static struct bw_error *add_remark(struct row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static struct bw_error *add_remark(struct row *row, const char *format, ...)
{
    char *text;
    va_list arguments;
    BW_TRY(names_reserve(&row->remarks, 1));
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        return bw_error_no_memory();
    return names_push(&row->remarks, (struct bw_bytes){text, (size_t)length});
}

static struct bw_error *add_image(struct row *row, const char *name)
{
    return names_push(&row->images, (struct bw_bytes){name, strlen(name)});
}

static struct bw_error *write_row(struct show *show, struct row *row)
{
    row->info.image_paths = (struct bw_names){row->images.items, row->images.count};
    if (row->remarks.count)
        row->info.remarks = (struct bw_names){row->remarks.items, row->remarks.count};
    return cmd_format_write(show->format, &row->info, sizeof row->info);
}

/* Opens the file system that consists of these devices. `own` gets the settings for its messages,
 * which name the first image of `paths`. */
static struct bw_error *open_file_system(const struct show *show, const struct members *members,
                                         struct bw_const_strings *paths, struct cmd_common *own,
                                         struct bw_fs **fs)
{
    BW_SCOPED(bw_const_strings) struct bw_const_strings names = {0};
    bool needs_all = false;
    for (size_t i = 0; i < members->count; i++) {
        const struct bw_image_info *info = &members->items[i]->info;
        bool is_new = true;
        needs_all |= info->is_joined;
        BW_TRY(bw_const_strings_push(&names, info->name));
        for (size_t k = 0; k < paths->count; k++)
            is_new &= strcmp(paths->items[k], info->path) != 0;
        if (is_new)
            BW_TRY(bw_const_strings_push(paths, info->path));
    }
    *own = show->common;
    own->input.images = paths->items;
    own->input.image_count = paths->count;
    struct bw_fs_options options = cmd_fs_options(own);
    if (needs_all) {
        options.paths = show->paths.items;
        options.path_count = show->paths.count;
    }
    options.devices = names.items;
    options.device_count = names.count;
    options.reporter = cmd_reporter(own);
    return bw_fs_open(&options, fs);
}

/* Adds the remarks about a file system that was opened. */
static struct bw_error *add_remarks(const struct overview *overview, struct row *row)
{
    const struct bw_fs_status status = bw_fs_status(overview->fs);
    if (status.missing_devices)
        BW_TRY(add_remark(row, "%zu of %" PRIu64 " devices missing", status.missing_devices,
                          overview->super.device_count));
    if (overview->stale_devices)
        BW_TRY(add_remark(row, "%zu device%s stale", overview->stale_devices,
                          overview->stale_devices == 1 ? " is" : "s are"));
    if (overview->incomplete_chunks)
        BW_TRY(add_remark(row, "%" PRIu64 " of %" PRIu64 " chunk%s cannot be read as a whole",
                          overview->incomplete_chunks, overview->chunks,
                          bw_plural(overview->chunks)));
    if (overview->mount_error.length)
        BW_TRY(add_remark(row, "the kernel refuses to mount: %s", overview->mount_error.data));
    if (overview->super.log_root)
        BW_TRY(add_remark(row, "a mount replays its log"));
    if (status.log_is_unknown)
        BW_TRY(add_remark(row, "it may have a log that is lost"));
    if (overview->damages)
        BW_TRY(add_remark(row, "part of the critical trees is lost"));
    return NULL;
}

static void close_fs(struct bw_fs **fs)
{
    bw_fs_close(*fs);
}

/* Writes the file system of a device, and marks its devices. */
static struct bw_error *write_file_system(struct show *show, struct found *first)
{
    BW_SCOPED(members) struct members members = {0};
    BW_SCOPED(bw_const_strings) struct bw_const_strings paths = {0};
    __attribute__((cleanup(close_fs))) struct bw_fs *fs = NULL;
    BW_SCOPED(overview) struct overview overview = {.super = first->info.superblock};
    BW_SCOPED(row) struct row row;
    memset(&row, 0, sizeof row);
    bw_record_clear(bw_record_find("showinfo"), &row.info);
    BW_TRY(collect(show, first, &members));
    const char *original = find_original(show, &members);

    struct cmd_common own;
    BW_AUTO_ERROR struct bw_error *unopened = open_file_system(show, &members, &paths, &own, &fs);
    if (unopened && unopened->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(unopened);
    if (fs) {
        overview.fs = fs;
        overview.opened = true;
        bw_fs_superblock(fs, &overview.super);
        BW_TRY(overview_read(&overview));
    }

    /* The devices that it consists of; a further file system may have the others. */
    for (size_t i = 0; i < members.count; i++) {
        struct found *member = members.items[i];
        bool is_used = i == 0 || (!fs && !is_seed(member));
        for (size_t k = 0; k < overview.devices.count; k++)
            is_used |= overview_is_image(&overview.devices.items[k], &member->info);
        if (!is_used)
            continue;
        member->is_done = true;
        BW_TRY(add_image(&row, member->info.name));
    }
    const struct bw_superblock_info *super = &overview.super;
    row.info.label = super->label;
    row.info.fsid = (struct bw_bytes){(const char *)super->fsid, BW_UUID_SIZE};
    row.info.metadata_uuid = (struct bw_bytes){(const char *)super->metadata_uuid, BW_UUID_SIZE};
    row.info.size = super->total_bytes;
    row.info.used = super->bytes_used;
    row.info.generation = super->generation;
    row.info.device_count = super->device_count;
    row.info.log_tree = super->log_root != 0;
    row.info.original_device = original;
    if (fs) {
        row.info.state = overview_state(&overview);
        row.info.missing_devices = bw_fs_status(fs).missing_devices;
        row.info.stale_devices = overview.stale_devices;
        row.info.system = overview_system(&overview);
        row.info.devices = (struct bw_records){overview_list_devices, &overview};
        row.info.systems = (struct bw_records){overview_list_systems, &overview};
        if (overview.changed)
            row.info.changed = overview.changed;
        if (overview.mount_error.length)
            row.info.mount_error = overview.mount_error.data;
        BW_TRY(add_remarks(&overview, &row));
        show->has_readable = true;
        show->has_missed |= bw_fs_status(fs).damages || overview.incomplete_chunks;
    } else {
        row.info.state = "unreadable";
        show->has_missed = true;
        if (row.images.count < super->device_count)
            row.info.missing_devices = super->device_count - row.images.count;
        cmd_spell_advice(&own, unopened);
        BW_TRY(add_remark(&row, "%s", unopened->message));
    }
    if (original)
        BW_TRY(add_remark(&row, "generation %" PRIu64 " of the same device as %s",
                          super->generation, original));
    return write_row(show, &row);
}

/* Text: a table, whose cells wait until all are known. */

static void append_cell(struct bw_buffer *text, const char *cell)
{
    bw_escape_words(text, cell && *cell ? cell : "-");
    bw_buffer_append_byte(text, '\t');
}

static void append_names(struct bw_buffer *text, const struct bw_names *names,
                         const char *separator)
{
    for (size_t i = 0; i < names->length; i++) {
        bw_buffer_format(text, "%s", i ? separator : "");
        bw_escape_words(text, names->data[i].data);
    }
}

static struct bw_error *add_cells(struct cmd_format *format, const void *record)
{
    const struct bw_showinfo *row = record;
    struct bw_buffer *cells = &((struct show *)format->plan->context)->cells;
    char fsid[BW_UUID_LENGTH + 1] = "-";
    if (!cells->length)
        bw_buffer_format(cells, "STATE\tLABEL\tFSID\tSIZE\tUSED\tDEVICES\tCONTENTS\tIMAGES\n");
    bw_buffer_format(cells, "%s\t", row->state);
    append_cell(cells, row->label);
    if (row->fsid.data)
        bw_write_uuid(fsid, row->fsid.data);
    fsid[BW_UUID_LENGTH] = '\0';
    bw_buffer_format(cells, "%s\t", fsid);
    bw_buffer_format(cells, "%s\t%s\t", cmd_size(&format->settings, row->size).text,
                     cmd_size(&format->settings, row->used).text);
    if (row->device_count == BW_ABSENT)
        bw_buffer_format(cells, "-\t");
    else
        bw_buffer_format(cells, "%" PRIu64 " of %" PRIu64 "\t",
                         row->device_count - row->missing_devices, row->device_count);
    append_cell(cells, row->system ? row->system : row->content);
    append_names(cells, &row->image_paths, ", ");
    bw_buffer_format(cells, "%s", row->remarks.length ? ": " : "");
    append_names(cells, &row->remarks, "; ");
    bw_buffer_append_byte(cells, '\n');
    return bw_buffer_error(cells);
}

/* The order of the operands. */
static int compare_found(const void *left, const void *right, void *context)
{
    const struct cmd_input *input = context;
    const struct found *const sides[] = {left, right};
    size_t places[2];
    for (size_t i = 0; i < 2; i++) {
        places[i] = 0;
        while (places[i] < input->other_count &&
               strcmp(input->others[places[i]], sides[i]->path) != 0)
            places[i]++;
    }
    if (places[0] != places[1])
        return places[0] < places[1] ? -1 : 1;
    return 0;
}

static struct bw_error *write_all(struct show *show)
{
    BW_TRY(list_devices(show));
    struct found_list *found = &show->found;
    if (found->count)
        qsort_r(found->items, found->count, sizeof *found->items, compare_found,
                &show->common.input);
    /* Seeds last, because a file system that sprouted from them includes them. */
    for (int seeds = 0; seeds < 2; seeds++)
        for (size_t i = 0; i < found->count; i++) {
            struct found *next = &found->items[i];
            if (next->is_done)
                continue;
            if (next->error || !next->info.has_superblock) {
                /* Contents other than a btrfs. */
                BW_SCOPED(row) struct row row;
                const struct bw_error *error = next->error ? next->error : next->info.error;
                memset(&row, 0, sizeof row);
                bw_record_clear(bw_record_find("showinfo"), &row.info);
                next->is_done = true;
                row.info.content = next->info.content;
                if (next->info.size)
                    row.info.size = next->info.size;
                row.info.state = "unknown";
                if (next->info.is_empty)
                    row.info.state = "empty";
                else if (next->info.is_stream)
                    row.info.state = "stream";
                else if (next->info.content)
                    row.info.state = "foreign";
                else if (next->error || next->info.has_failed || error->code != BW_ERROR_NOT_BTRFS)
                    row.info.state = "unreadable";
                if (strcmp(row.info.state, "unreadable") == 0) {
                    BW_AUTO_ERROR struct bw_error *spelled = bw_error_copy(error);
                    cmd_spell_advice(&show->common, spelled);
                    show->has_missed = true;
                    BW_TRY(add_remark(&row, "%s", spelled->message));
                }
                show->has_readable |= next->info.is_stream;
                BW_TRY(add_image(&row, next->error ? next->path : next->info.name));
                BW_TRY(write_row(show, &row));
            } else if (seeds || !is_seed(next))
                BW_TRY(write_file_system(show, next));
        }
    if (!show->cells.length)
        return NULL;
    struct bw_table_column columns[8] = {{0}, {0}, {0}, {.right = true}, {.right = true}};
    bw_table_append(&show->format->text, &show->cells, columns);
    return cmd_format_pass_on(show->format, 1);
}

static int run(const struct cmd_common *common, void *state)
{
    struct show show = {.common = *common};
    struct cmd_input *input = &show.common.input;
    struct cmd_format format;
    const struct cmd_format_plan plan = {
        .record = "showinfo", .print = add_cells, .has_units = true, .context = &show};
    (void)state;
    if (input->fs.partition || input->fs.volume || input->graph.file)
        return cmd_usage_error(&cmd_show,
                               "all partitions and volumes are shown: --partition, --volume and "
                               "--graph select nothing here",
                               NULL);
    /* The sandbox allows reading these, however the first of them is opened. */
    input->others = (const char *const *)common->input.images;
    input->other_count = common->input.image_count;
    input->never_asks = true;
    show.format = &format;
    struct bw_error *error = cmd_format_begin(&format, &show.common, &plan);
    int status = cmd_fail(common, error);
    if (!status) {
        error = cmd_format_end(&format, write_all(&show));
        status = cmd_fail_output(common, error);
        status = cmd_worse_status(status, cmd_close_outputs(common, &format.session));
        if (!show.has_readable && !status)
            status = STATUS_CANNOT;
        else if (show.has_missed)
            status = cmd_worse_status(status, STATUS_PARTIAL);
    }
    for (size_t i = 0; i < show.found.count; i++)
        bw_error_free(show.found.items[i].error);
    for (size_t i = 0; i < show.lists.count; i++)
        bw_fs_close(show.lists.items[i]);
    fs_list_free(&show.lists);
    found_list_free(&show.found);
    bw_const_strings_free(&show.paths);
    bw_buffer_free(&show.cells);
    cmd_format_free(&format);
    return status;
}

static const struct cmd_status meanings[] = {
    {0, "Each image was read, and so was each btrfs on them, even if it is degraded."},
    {1, "An image or a container cannot be read, or a btrfs is damaged, incomplete or unreadable."},
    {2, "Wrong usage, or there is no btrfs or stream that can be read."},
    {0},
};

const struct command cmd_show = {
    .name = "show",
    .topic = cmd_topic_health,
    .operands = "IMAGE...",
    .summary = "Lists the file systems on many disks or images, one line each.",
    .details =
        "\n"
        "For many disks in a row: groups their devices into file systems, however they are mixed,\n"
        "and prints one line for each, with its state as in 'btrfs-walk info', how many of its\n"
        "devices are there, and the installed system that is in use. Partitions and volumes in\n"
        "containers are devices, too. If several images are the same device, the newest is\n"
        "shown first, and the others in lines of their own.\n\n"
        "Other contents have lines, too: stream, of btrfs send; foreign, if they are known;\n"
        "empty, if they begin and end with zeros; otherwise unknown. What cannot be read is\n"
        "unreadable, with the reason. It never asks for a passphrase; --key-file opens\n"
        "encrypted volumes.\n\n"
        "Reads only superblocks, the chunk and root trees, and the files by which systems are\n"
        "recognized. The JSON also lists all devices and systems.\n",
    .examples = "  btrfs-walk show /dev/sd?                                   all disks\n"
                "  btrfs-walk show *.img                                      a folder of images\n"
                "  btrfs-walk show --json *.img | jq -r 'select(.state != \"readable\")'  what "
                "needs care\n",
    .options = cmd_no_options,
    .record = "showinfo",
    .run = run,
    .meanings = meanings,
};
