/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The info command: an overview of a file system, as lines of "Name: value" or as a record. It
 * reads the superblocks, the chunk tree and the root tree. If the trees cannot be read, it prints
 * the contents of the superblock.
 */
#include <inttypes.h>
#include <stdio.h>
#include <uuid/uuid.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "base/table.h"
#include "base/vector.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/space.h"
#include "cli/common/partitions.h"
#include "cli/inspect/device_row.h"
#include "cli/inspect/overview.h"
#include "cli/inspect/plans.h"

/* Number of messages that the JSON contains; further ones are only counted. */
enum { PROBLEMS_KEPT = 100 };

struct problem {
    enum bw_severity severity;
    struct bw_error *error;
};

BW_VECTOR(profiles, struct bw_profileinfo);

struct info {
    struct overview overview;
    struct profiles profiles; /* of the chunks of each type */
    struct problem problems[PROBLEMS_KEPT];
    size_t problem_count;
    const struct cmd_common *common;
};

static void note_problem(void *context, enum bw_severity severity, const struct bw_error *error)
{
    struct info *info = context;
    if (severity == BW_NOTE)
        return;
    if (info->problem_count < PROBLEMS_KEPT)
        info->problems[info->problem_count] = (struct problem){severity, bw_error_copy(error)};
    info->problem_count++;
}

/* Chunks. */

/* Adds up the chunks of each type and profile. */
static struct bw_error *count_chunks(struct info *info)
{
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_fs_chunks(info->overview.fs, &chunks));
    for (size_t k = 0; k < chunks.count; k++) {
        const struct bw_chunk_info *chunk = &chunks.items[k];
        const char *type = bw_chunk_type_name(chunk->type);
        size_t i = 0;
        while (i < info->profiles.count &&
               (strcmp(info->profiles.items[i].chunk_type, type) != 0 ||
                strcmp(info->profiles.items[i].profile, chunk->profile) != 0))
            i++;
        if (i == info->profiles.count)
            BW_TRY(
                profiles_push(&info->profiles, (struct bw_profileinfo){.chunk_type = type,
                                                                       .profile = chunk->profile}));
        info->profiles.items[i].size += chunk->length;
        info->profiles.items[i].chunks++;
    }
    return NULL;
}

static struct bw_error *list_profiles(void *context, struct bw_record_sink *sink)
{
    const struct info *info = context;
    for (size_t i = 0; i < info->profiles.count; i++)
        BW_TRY(sink->visit(sink, &info->profiles.items[i], sizeof info->profiles.items[i]));
    return NULL;
}

/* Disks with several file systems. */

struct disks {
    struct bw_record_sink *sink;
    struct bw_error *error; /* returned by the sink */
};

static struct bw_error *write_disk(void *context, const struct bw_partition_table *table)
{
    struct disks *disks = context;
    disks->error = cmd_write_disk(disks->sink, table);
    return disks->error ? bw_error_copy(disks->error) : NULL;
}

static struct bw_error *append_disk(void *context, const struct bw_partition_table *table)
{
    struct bw_buffer *text = context;
    bw_buffer_append(text, "\n", text->length > 0);
    cmd_append_partitions(text, table);
    return NULL;
}

/* Errors of the images were already reported when they were opened. */
static void read_disks(const struct info *info,
                       struct bw_error *(*visit)(void *context,
                                                 const struct bw_partition_table *table),
                       void *context)
{
    struct bw_fs_options images = cmd_fs_options(info->common);
    images.ask = NULL; /* opening the file system has asked */
    bw_error_free(bw_partition_tables(&images, visit, context));
}

static struct bw_error *list_disks(void *context, struct bw_record_sink *sink)
{
    struct disks disks = {.sink = sink};
    read_disks(context, write_disk, &disks);
    return disks.error;
}

/* File systems that a search found. */

static struct bw_error *list_found(void *context, struct bw_record_sink *sink)
{
    const struct info *info = context;
    const struct bw_found_file_system *found;
    for (size_t i = 0; (found = bw_fs_found(info->overview.fs, i)); i++) {
        char option[sizeof "--fsid " + UUID_STR_LEN] = "--fsid ";
        uuid_unparse_lower(found->option, option + strlen(option));
        struct bw_foundinfo row = {
            .fsid = {(const char *)found->fsid, BW_UUID_SIZE},
            .chunk_tree_uuid = {(const char *)found->chunk_tree_uuid, BW_UUID_SIZE},
            .label = found->label,
            .generation = found->generation,
            .changed = found->changed,
            .blocks = found->blocks,
            .placed_blocks = found->placed_blocks,
            .critical_blocks = found->critical_blocks,
            .critical_missing = found->critical_missing,
            .opens_itself = found->is_open,
            .open_option = option,
        };
        if (!*found->label)
            row.label = NULL;
        if (!found->changed)
            row.changed = BW_ABSENT_SIGNED;
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

/* Problems. */

static struct bw_error *list_problems(void *context, struct bw_record_sink *sink)
{
    const struct info *info = context;
    for (size_t i = 0; i < info->problem_count && i < PROBLEMS_KEPT; i++) {
        const struct bw_probleminfo row = {.severity =
                                               cmd_severity_name(info->problems[i].severity),
                                           .message = info->problems[i].error->message,
                                           .similar = BW_ABSENT};
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

/* Lists devices that have diverged. Each is opened as --side does; its side has the number of the
 * first device that is read with it. */
static struct bw_error *list_sides(void *context, struct bw_record_sink *sink)
{
    const struct info *info = context;
    struct bw_error *error = NULL;
    for (size_t i = 0; !error && i < bw_fs_image_count(info->overview.fs); i++) {
        struct bw_superblock_info super;
        if (cmd_read_superblock(info->overview.fs, i, &super) == BW_SUPERBLOCK_NUMBERS)
            continue;
        struct bw_fs_options how = cmd_fs_options(info->common);
        how.reporter = (struct bw_reporter){NULL, NULL};
        how.side = super.devid;
        struct bw_fs *fs = NULL;
        BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
        const struct bw_device_info *own = NULL;
        uint64_t side = super.devid;
        BW_AUTO_ERROR struct bw_error *bad = bw_fs_open(&how, &fs);
        if (!bad)
            bad = bw_fs_devices(fs, &devices);
        for (size_t k = 0; k < devices.count; k++) {
            const struct bw_device_info *device = &devices.items[k];
            if (device->devid == super.devid)
                own = device;
            if (device->state == BW_DEVICE_PRESENT && device->devid < side)
                side = device->devid;
        }
        const char *path = bw_fs_image_path(info->overview.fs, i);
        struct bw_device_info unopened = {
            .devid = super.devid, .total_bytes = super.device_bytes, .path = path};
        memcpy(unopened.uuid, super.device_uuid, sizeof unopened.uuid);
        struct alternative_paths paths;
        const struct bw_device_info *described = own ? own : &unopened;
        struct bw_deviceinfo row = device_row(fs ? fs : info->overview.fs, described, &paths);
        row.device_state = "diverged";
        row.generation = super.generation;
        row.side = side;
        if (!own)
            row.allocated = BW_ABSENT;
        error = sink->visit(sink, &row, sizeof row);
        bw_fs_close(fs);
    }
    return error;
}

/* Output as a record. */

/* Names of flags; an unknown bit is printed as its number. */
enum { FLAGS = 128, NUMBER_ROOM = 16 };

struct features {
    struct bw_bytes names[FLAGS];
    char numbers[FLAGS][NUMBER_ROOM];
    size_t count;
};

static void add_flags(struct features *features, uint64_t flags, const char *(*name_of)(unsigned))
{
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(flags >> bit & 1))
            continue;
        char *number = features->numbers[features->count];
        snprintf(number, NUMBER_ROOM, "bit-%u", bit);
        const char *name = name_of(bit) ? name_of(bit) : number;
        features->names[features->count++] = (struct bw_bytes){name, strlen(name)};
    }
}

/* Reads what the trees contain, if they can be read, and writes the record. */
static struct bw_error *write_volume(struct cmd_format *format, struct info *info)
{
    struct overview *overview = &info->overview;
    const struct bw_superblock_info *super = &overview->super;
    struct features features = {.count = 0};
    if (overview->opened)
        BW_TRY(overview_report_loss(overview, count_chunks(info)));
    BW_TRY(overview_read(overview));
    const struct bw_fs_status status = bw_fs_status(overview->fs);
    add_flags(&features, super->incompat_flags, bw_incompat_name);
    add_flags(&features, super->compat_ro_flags, bw_compat_ro_name);

    struct bw_volumeinfo row = {
        .label = super->label,
        .fsid = {(const char *)super->fsid, BW_UUID_SIZE},
        .metadata_uuid = {(const char *)super->metadata_uuid, BW_UUID_SIZE},
        .size = super->total_bytes,
        .used = super->bytes_used,
        .nodesize = super->nodesize,
        .sectorsize = super->sectorsize,
        .checksum = bw_checksum_name(super->checksum_type),
        .incompat_flags = super->incompat_flags,
        .compat_ro_flags = super->compat_ro_flags,
        .features = {features.names, features.count},
        .generation = super->generation,
        .log_tree = super->log_root != 0,
        .log_replayed = status.log_replayed,
        .state = overview_state(overview),
        .missing_devices = status.missing_devices,
        .stale_devices = overview->stale_devices,
        .incomplete_chunks = overview->incomplete_chunks,
        .problem_count = info->problem_count,
        .problems = {list_problems, info},
        .disks = {list_disks, info},
    };
    if (bw_fs_found(info->overview.fs, 0))
        row.found_file_systems = (struct bw_records){list_found, info};
    if (overview->opened) {
        row.profiles = (struct bw_records){list_profiles, info};
        row.subvolume_count = overview->subvolumes;
        row.snapshot_count = overview->snapshots;
        row.deleted_subvolume_count = overview->deleted;
        row.changed = overview->changed;
        row.devices = (struct bw_records){overview_list_devices, overview};
        row.system = overview_system(overview);
        row.systems = (struct bw_records){overview_list_systems, overview};
    } else {
        if (overview->diverged)
            row.devices = (struct bw_records){list_sides, info};
        row.subvolume_count = row.snapshot_count = row.deleted_subvolume_count = BW_ABSENT;
    }
    if (overview->mount_error.length)
        row.mount_error = overview->mount_error.data;
    if (!row.changed)
        row.changed = BW_ABSENT_SIGNED;
    struct bw_error *error = cmd_format_write(format, &row, sizeof row);
    overview_free(overview); /* before the file system is closed */
    return error;
}

/* Output as lines. */

struct lines {
    struct bw_record_sink sink;
    const struct cmd_format_settings *settings;
    struct bw_buffer *text;
};

static void append_label(struct bw_buffer *text, const char *label)
{
    enum { WIDTH = 15 };
    bw_buffer_format(text, "%-*s", WIDTH, label);
}

static void append_uuid(struct bw_buffer *text, const char *label, struct bw_bytes uuid)
{
    char digits[BW_UUID_LENGTH];
    bw_write_uuid(digits, uuid.data);
    append_label(text, label);
    bw_buffer_format(text, "%.*s\n", BW_UUID_LENGTH, digits);
}

static struct bw_error *append_device(struct bw_record_sink *sink, const void *record, size_t size)
{
    const struct lines *lines = (const struct lines *)sink;
    const struct bw_deviceinfo *row = record;
    struct bw_buffer *text = lines->text;
    char label[32];
    (void)size;
    snprintf(label, sizeof label, "Device %" PRIu64 ":", row->devid);
    append_label(text, label);
    bw_buffer_format(text, "%s, ", row->device_state);
    if (row->side != BW_ABSENT)
        bw_buffer_format(text, "--side %" PRIu64 ", generation %" PRIu64 ", ", row->side,
                         row->generation);
    if (row->size == BW_ABSENT)
        bw_buffer_format(text, "size not known");
    else
        bw_buffer_format(text, "%s", cmd_size(lines->settings, row->size).text);
    if (row->allocated != BW_ABSENT)
        bw_buffer_format(text, ", %s allocated", cmd_size(lines->settings, row->allocated).text);
    if (row->device.data) {
        bw_buffer_format(text, ", ");
        bw_escape_line(text, row->device.data, row->device.length);
    }
    if (row->container) {
        bw_buffer_format(text, " > ");
        bw_escape_line(text, row->container, strlen(row->container));
        bw_buffer_format(text, " > btrfs");
    }
    bw_buffer_append_byte(text, '\n');
    for (size_t i = 0; i < row->alternative_paths.length; i++) {
        append_label(text, "");
        bw_buffer_format(text, "another image, ");
        bw_escape_line(text, row->alternative_paths.data[i].data,
                       row->alternative_paths.data[i].length);
        bw_buffer_append_byte(text, '\n');
    }
    return NULL;
}

/* Appends the name of a system, and the path of its subvolume. */
static void append_system(struct bw_buffer *text, const struct bw_system_info *system)
{
    bw_escape_words(text, system->name ? system->name : "unknown");
    if (system->path) {
        bw_buffer_format(text, ", in ");
        bw_escape_words(text, system->path);
    }
}

/* Appends the installed systems: the one in use with its mounts, the others, then the numbers of
 * their snapshots, and the containers. */
static void append_systems(struct bw_buffer *text, struct bw_systems *systems)
{
    enum { NAMED = 16 }; /* others, and containers; all are in the JSON */
    static const char *const reasons[] = {
        [BW_SYSTEM_NOT_CURRENT] = "",
        [BW_SYSTEM_IS_DEFAULT] = "the default subvolume",
        [BW_SYSTEM_IN_FSTAB] = "its fstab mounts it",
        [BW_SYSTEM_IS_ONLY] = "the only one that is no snapshot",
        [BW_SYSTEM_IS_NEWEST] = "changed last",
    };
    const struct bw_system_info *current = bw_systems_current(systems), *system;
    size_t others = 0, snapshots = 0, containers = 0;
    if (current) {
        append_label(text, "Installed:");
        append_system(text, current);
        bw_buffer_format(text, " (%s)\n", reasons[current->current]);
    }
    for (size_t i = 0; current && i < current->mount_count; i++) {
        const struct bw_system_mount *mount = &current->mounts[i];
        append_label(text, "");
        bw_escape_words(text, mount->mount_point);
        /* A fstab may omit the slash. */
        const char *path = mount->subvolume_path;
        bw_buffer_format(text, " is %s", path && *path != '/' ? "/" : "");
        bw_escape_words(text, path ? path : "the default subvolume");
        bw_buffer_format(text, "%s\n", mount->subvolume ? "" : ", which does not exist");
    }
    bw_systems_rewind(systems);
    while ((system = bw_systems_next(systems))) {
        snapshots += system->kind == BW_SYSTEM_SNAPSHOT;
        containers += system->kind == BW_SYSTEM_CONTAINER;
        if (system->kind != BW_SYSTEM_ROOT || system == current || others++ >= NAMED)
            continue;
        append_label(text, "Also:");
        append_system(text, system);
        bw_buffer_append_byte(text, '\n');
    }
    if (others > NAMED) {
        append_label(text, "");
        bw_buffer_format(text, "and %zu others\n", others - NAMED);
    }
    if (snapshots) {
        append_label(text, "Versions:");
        bw_buffer_format(text, "%zu snapshot%s of systems", snapshots, bw_plural(snapshots));
    }
    static const char *const tools[] = {"snapper", "timeshift", "btrbk"};
    for (size_t i = 0; snapshots && i < sizeof tools / sizeof *tools; i++) {
        size_t count = 0;
        bw_systems_rewind(systems);
        while ((system = bw_systems_next(systems)))
            count += system->kind == BW_SYSTEM_SNAPSHOT && system->tool &&
                     strcmp(system->tool, tools[i]) == 0;
        if (count)
            bw_buffer_format(text, ", %zu by %s", count, tools[i]);
    }
    bw_buffer_format(text, "%s", snapshots ? "\n" : "");
    bw_systems_rewind(systems);
    for (size_t i = 0; (system = bw_systems_next(systems)) && i < NAMED;) {
        if (system->kind != BW_SYSTEM_CONTAINER)
            continue;
        append_label(text, i++ ? "" : "Containers:");
        bw_escape_words(text, system->title ? system->title : "without a name");
        bw_buffer_format(text, " (%s): ", system->tool);
        append_system(text, system);
        bw_buffer_append_byte(text, '\n');
    }
    if (containers > NAMED) {
        append_label(text, "");
        bw_buffer_format(text, "and %zu others\n", containers - NAMED);
    }
}

static struct bw_error *append_volume(const struct lines *lines, const struct bw_volumeinfo *row)
{
    struct lines devices = *lines;
    struct info *info = row->disks.context;
    struct bw_buffer *text = lines->text;
    devices.sink.visit = append_device;
    append_label(text, "Label:");
    bw_escape_line(text, row->label, strlen(row->label));
    bw_buffer_append_byte(text, '\n');
    append_uuid(text, "UUID:", row->fsid);
    if (memcmp(row->fsid.data, row->metadata_uuid.data, BW_UUID_SIZE) != 0)
        append_uuid(text, "Metadata UUID:", row->metadata_uuid);
    append_label(text, "Size:");
    bw_buffer_format(text, "%s, %s used (%.0f%%)\n", cmd_size(lines->settings, row->size).text,
                     cmd_size(lines->settings, row->used).text,
                     100.0 * (double)row->used / (double)(row->size ? row->size : 1));
    append_label(text, "Blocks:");
    bw_buffer_format(text, "nodes of %" PRIu64 " bytes, sectors of %" PRIu64 ", %s\n",
                     row->nodesize, row->sectorsize, row->checksum);
    append_label(text, "Features:");
    for (size_t i = 0; i < row->features.length; i++)
        bw_buffer_format(text, "%s%s", i ? ", " : "", row->features.data[i].data);
    bw_buffer_append_byte(text, '\n');
    if (info->overview.opened) {
        for (size_t i = 0; i < info->profiles.count; i++) {
            const struct bw_profileinfo *profile = &info->profiles.items[i];
            char label[32];
            snprintf(label, sizeof label, "%s:", profile->chunk_type);
            append_label(text, label);
            bw_buffer_format(text, "%s, %s in %" PRIu64 " chunk%s\n", profile->profile,
                             cmd_size(lines->settings, profile->size).text, profile->chunks,
                             bw_plural(profile->chunks));
        }
        append_label(text, "Subvolumes:");
        bw_buffer_format(text, "%" PRIu64 ", and %" PRIu64 " snapshot%s, %" PRIu64 " deleted\n",
                         row->subvolume_count, row->snapshot_count, bw_plural(row->snapshot_count),
                         row->deleted_subvolume_count);
        if (info->overview.systems)
            append_systems(text, info->overview.systems);
    }

    append_label(text, "Transaction:");
    bw_buffer_format(text, "%" PRIu64, row->generation);
    if (row->changed != BW_ABSENT_SIGNED)
        bw_buffer_format(text, ", last change %s UTC", cmd_date(row->changed).text);
    bw_buffer_append_byte(text, '\n');
    const char *log = "none";
    if (row->log_replayed)
        log = "yes, replayed: changes that were fsynced, but not committed, are shown";
    else if (row->log_tree)
        log = "yes, not replayed: some changes were fsynced, but not committed";
    append_label(text, "Log tree:");
    bw_buffer_format(text, "%s\n", log);
    if (row->devices.list)
        BW_TRY(row->devices.list(row->devices.context, &devices.sink));

    append_label(text, "State:");
    bw_buffer_format(text, "%s", row->state);
    if (row->missing_devices)
        bw_buffer_format(text, ", %" PRIu64 " of %" PRIu64 " devices missing", row->missing_devices,
                         info->overview.super.device_count);
    if (row->stale_devices)
        bw_buffer_format(text, ", %" PRIu64 " stale", row->stale_devices);
    if (row->incomplete_chunks)
        bw_buffer_format(text, ", %" PRIu64 " of %" PRIu64 " chunk%s cannot be read as a whole",
                         row->incomplete_chunks, info->overview.chunks,
                         bw_plural(info->overview.chunks));
    if (row->problem_count)
        bw_buffer_format(text, "; %" PRIu64 " message%s on stderr", row->problem_count,
                         bw_plural(row->problem_count));
    if (strcmp(row->state, "readable") == 0)
        bw_buffer_format(text, "%s; 'check' verifies the rest",
                         row->problem_count ? "" : ": superblocks and critical trees are good");
    bw_buffer_append_byte(text, '\n');
    if (row->mount_error) {
        append_label(text, "Mount:");
        bw_buffer_format(text, "the kernel refuses: %s\n", row->mount_error);
    }
    return NULL;
}

/* Appends the cells of a file system that a search found. */
static struct bw_error *append_found(struct bw_record_sink *sink, const void *record, size_t size)
{
    const struct lines *lines = (const struct lines *)sink;
    const struct bw_foundinfo *row = record;
    struct bw_buffer *text = lines->text;
    char fsid[BW_UUID_LENGTH];
    struct cmd_date date = {"unknown"};
    (void)size;
    if (row->changed != BW_ABSENT_SIGNED)
        date = cmd_date(row->changed);
    bw_write_uuid(fsid, row->fsid.data);
    bw_buffer_format(text,
                     "  %" PRIu64 "\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 " of %" PRIu64 "\t",
                     row->generation, date.text, row->blocks, row->placed_blocks,
                     row->critical_missing, row->critical_blocks);
    if (row->label)
        bw_escape_words(text, row->label);
    else
        bw_buffer_format(text, "-");
    if (row->opens_itself)
        bw_buffer_format(text, "\t%.*s, by its superblock\n", BW_UUID_LENGTH, fsid);
    else
        bw_buffer_format(text, "\t%s\n", row->open_option);
    return NULL;
}

static struct bw_error *print_volume(struct cmd_format *format, const void *record)
{
    const struct bw_volumeinfo *row = record;
    const struct lines lines = {.settings = &format->settings, .text = &format->text};
    if (row->label)
        BW_TRY(append_volume(&lines, row));
    if (row->found_file_systems.list) {
        struct bw_table_column columns[7] = {
            {.right = true}, {0}, {.right = true}, {.right = true}, {.right = true}};
        BW_AUTO_BUFFER struct bw_buffer cells = {0};
        struct lines rows = {{.visit = append_found}, lines.settings, &cells};
        bw_buffer_format(lines.text, "%sFile systems whose tree blocks are on the images:\n",
                         lines.text->length ? "\n" : "");
        bw_buffer_format(&cells,
                         "  generation\tlast change (UTC)\tblocks\tin place\tcritical missing\t"
                         "label\topened by\n");
        BW_TRY(row->found_file_systems.list(row->found_file_systems.context, &rows.sink));
        bw_table_append(lines.text, &cells, columns);
    }
    read_disks(row->disks.context, append_disk, &format->text);
    return NULL;
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    BW_AUTO_FREE struct info *info = calloc(1, sizeof *info);
    (void)context;
    if (!info)
        return bw_error_no_memory();
    info->common = format->common;
    info->overview.fs = format->session.fs;
    info->overview.opened = true;
    bw_fs_superblock(info->overview.fs, &info->overview.super);
    struct bw_error *error = write_volume(format, info);
    profiles_free(&info->profiles);
    overview_free(&info->overview);
    return error;
}

const struct cmd_format_plan cmd_info_plan = {
    .record = "volumeinfo",
    .print = print_volume,
    .has_units = true,
    .list = list,
};

/* The steps of the command. It opens the images itself, because it also prints something if that
 * fails. */

static int end_output(struct cmd_format *format, struct bw_error *error)
{
    error = cmd_format_end(format, error);
    return cmd_fail_output(format->common, error);
}

/* If the file system cannot be opened, finds the newest superblock of it on all images. False if
 * none is readable. */
static bool find_superblock(struct info *info)
{
    const struct cmd_input *input = &info->common->input;
    bool found = false;
    for (size_t image = 0; image < bw_fs_image_count(info->overview.fs); image++)
        for (unsigned copy = 0; copy < BW_SUPERBLOCK_NUMBERS; copy++) {
            struct bw_superblock_info super;
            BW_AUTO_ERROR struct bw_error *error =
                bw_fs_read_superblock(info->overview.fs, image, copy, &super);
            if (error || (found && super.generation <= info->overview.super.generation) ||
                (input->has_fsid && memcmp(input->fsid, super.fsid, BW_UUID_SIZE) != 0))
                continue;
            info->overview.super = super;
            found = true;
        }
    return found;
}

/* If no file system was opened: writes the partitions of disks, and the file systems that a search
 * has found. */
static struct bw_error *write_lists(struct cmd_format *format, struct info *info)
{
    struct bw_volumeinfo row;
    bw_record_clear(bw_record_find("volumeinfo"), &row);
    row.disks = (struct bw_records){list_disks, info};
    if (info->overview.fs && bw_fs_found(info->overview.fs, 0))
        row.found_file_systems = (struct bw_records){list_found, info};
    return cmd_format_write(format, &row, sizeof row);
}

/* Opens the file system and writes the record. */
static int open_and_write(struct cmd_format *format, struct info *info)
{
    BW_AUTO_BUFFER struct bw_buffer disks = {0};
    int status = cmd_open(info->common, &format->session);
    if (!status) {
        info->overview.fs = format->session.fs;
        info->overview.opened = true;
        bw_fs_superblock(info->overview.fs, &info->overview.super);
        status = end_output(format, write_volume(format, info));
        return cmd_end(info->common, &format->session, NULL, status);
    }

    for (size_t i = 0; i < info->problem_count && i < PROBLEMS_KEPT; i++)
        if (info->problems[i].error->code == BW_ERROR_NO_MEMORY)
            return status; /* nothing is known about the file system */
    if (status == STATUS_CANNOT)
        read_disks(info, append_disk, &disks);
    if (disks.length) {
        /* No file system was selected: only the partitions of the disks are listed. */
        if (end_output(format, write_lists(format, info)))
            return STATUS_PARTIAL;
        for (size_t i = 0; i < info->problem_count && i < PROBLEMS_KEPT; i++)
            if (cmd_needs_partition(info->problems[i].error))
                cmd_ask_for_partition(info->common);
        return status;
    }

    /* A superblock may be readable, or the search may find file systems. The errors of opening and
     * the damage of superblocks were already reported. */
    struct bw_fs_options how = cmd_fs_options(info->common);
    how.ask = NULL; /* cmd_open() has asked */
    BW_AUTO_ERROR struct bw_error *error = bw_fs_open_images(&how, &info->overview.fs);
    if (!error && how.scan && !how.fsid)
        error = bw_fs_search(info->overview.fs, 0);
    const bool has_superblock = !error && find_superblock(info);
    for (size_t i = 0; i < info->problem_count && i < PROBLEMS_KEPT; i++)
        info->overview.diverged |= info->problems[i].error->code == BW_ERROR_DIVERGED;
    if (has_superblock || (!error && bw_fs_found(info->overview.fs, 0))) {
        const int written = end_output(format, has_superblock ? write_volume(format, info)
                                                              : write_lists(format, info));
        if (written || status == STATUS_CANNOT)
            status = STATUS_PARTIAL;
    }
    bw_fs_close(info->overview.fs);
    return status;
}

static int run(const struct cmd_common *common, void *state)
{
    BW_AUTO_FREE struct info *info = calloc(1, sizeof *info);
    struct cmd_common listening = *common;
    struct cmd_format format;
    (void)state;
    if (!info)
        return cmd_fail(common, bw_error_no_memory());
    listening.messages.listener = (struct bw_reporter){note_problem, info};
    listening.input.lists_partitions = true;
    info->common = &listening;
    struct bw_error *error = cmd_format_begin(&format, &listening, &cmd_info_plan);
    int status = cmd_fail(common, error);
    if (!status)
        status = open_and_write(&format, info);
    cmd_format_free(&format);
    for (size_t i = 0; i < info->problem_count && i < PROBLEMS_KEPT; i++)
        bw_error_free(info->problems[i].error);
    profiles_free(&info->profiles);
    overview_free(&info->overview);
    return status;
}

const struct command cmd_info = {
    .name = "info",
    .topic = cmd_topic_health,
    .operands = "IMAGE...",
    .summary = "Prints an overview: size, profiles, features, devices, state.",
    .details =
        "\n"
        "Reads only the superblocks, the chunk tree and the root tree. The date is the time of\n"
        "the last change in any subvolume. For a disk, its partitions are listed, too. \"Log\n"
        "tree\" shows whether there is a log and whether it was replayed; 'btrfs-walk log'\n"
        "lists its changes.\n\n"
        "The state is readable, if these trees are; degraded, if devices are missing or missed\n"
        "transactions; unmountable, if the kernel refuses to mount; incomplete, if chunks in\n"
        "use cannot be read completely without the missing devices; damaged, if a part of\n"
        "these trees is lost; diverged, if devices were written to without each other, so that\n"
        "--side must choose one history; or unreadable, if only the superblock can be read.\n"
        "'btrfs-walk check' verifies everything else.\n",
    .examples = "  btrfs-walk info disk.img                        one screen\n"
                "  btrfs-walk info --json disk.img | jq -r .state  for programs\n",
    .options = cmd_no_options,
    .record = "volumeinfo",
    .run = run,
};
