/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frame of the commands that take whole trees out of an image. */
#include "cli/export/export.h"

#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cli/common/paths.h"
#include "cli/common/monitor.h"

const struct cmd_option cmd_export_options[] = {
    CMD_SUBVOLUME_OPTION(struct cmd_export_settings, walk.subvolume),
    CMD_NESTED_OPTION(struct cmd_export_settings, walk.nested),
    {0, "no-snapshots", NULL, "leave out snapshots",
     CMD_FLAG(struct cmd_export_settings, walk.no_snapshots)},
    {'j', "threads", "N", "read with N threads (default: one per processor, at most 8)",
     CMD_THREADS(struct cmd_export_settings, walk.threads)},
    CMD_SELECTION(struct cmd_export_settings, selection),
    {0},
};

static struct bw_error *take_components(void *target, const struct cmd_option *option,
                                        const char *argument)
{
    struct cmd_export_settings *settings = target;
    uint64_t number;
    if (!cmd_parse_number(argument, 0, UINT_MAX, &number))
        return cmd_bad_argument(option, argument, "a number");
    settings->naming.components = (unsigned)number;
    return NULL;
}

const struct cmd_option cmd_naming_options[] = {
    {0, "relative", NULL, "name files relative to the PATH, or the subvolume, that they are in",
     CMD_FLAG(struct cmd_export_settings, naming.relative)},
    {0, "strip-components", "N",
     "take N names away from the front of each path; what has no more is left out",
     .take = take_components},
    {0},
};

static void raise_status(struct cmd_export *export, int status)
{
    int before = atomic_load(&export->status);
    while (before < status && !atomic_compare_exchange_weak(&export->status, &before, status))
        ;
}

void cmd_export_miss(struct cmd_export *export, struct bw_error *error)
{
    int status = cmd_fail(export->common, error);
    raise_status(export, status == STATUS_UNSUPPORTED ? status : STATUS_PARTIAL);
}

static void missed(void *context, struct bw_error *error)
{
    cmd_export_miss(context, error);
}

int cmd_export_open(const struct cmd_common *common, struct cmd_export_settings *settings,
                    struct cmd_export *export)
{
    *export = (struct cmd_export){.common = common, .settings = settings};
    cmd_selection_apply(&settings->selection, BW_WALK_ALL, &settings->walk);
    int status = cmd_open(common, &export->session);
    if (status)
        return status;
    struct bw_error *error =
        cmd_selection_prepare(&settings->selection, export->session.fs, settings->walk.subvolume);
    if (!error)
        error = bw_starting_points_find(export->session.fs, &settings->walk, common->paths,
                                        common->path_count, &export->starts);
    if (!error)
        return STATUS_OK;
    bw_starting_points_free(&export->starts);
    status = cmd_fail(common, error);
    cmd_close(common, &export->session);
    return status;
}

static struct bw_error *count(void *context, const struct bw_entry *entry)
{
    uint64_t *bytes = context;
    if (cmd_progress_hurries())
        return bw_error_create(BW_ERROR_STOPPED, "nobody asks any more");
    const struct bw_inode *inode = entry->inode;
    if (inode && S_ISREG(inode->mode)) /* what is allocated is read; holes are not */
        *bytes += inode->bytes < inode->size ? inode->bytes : inode->size;
    return NULL;
}

static uint64_t count_all(void *context)
{
    const struct cmd_export *export = context;
    const struct bw_starting_points *starts = &export->starts;
    struct bw_walk_options wanted = export->settings->walk;
    uint64_t bytes = 0;
    wanted.struct_size = sizeof wanted;
    wanted.visit = count;
    wanted.visit_inodes = true;
    wanted.context = &bytes;
    for (size_t i = 0; i < starts->count || i == 0; i++) {
        wanted.start = starts->count ? starts->paths[i] : NULL;
        bw_error_free(bw_walk(export->session.fs, &wanted, NULL));
    }
    return bytes;
}

void cmd_export_expect(struct cmd_export *export)
{
    cmd_progress_expect_later(count_all, export);
}

/* Adds a pass, of the types that --type has left of these. */
static void add_pass(struct cmd_export *export, unsigned types)
{
    unsigned wanted = export->settings->walk.types;
    unsigned *next = export->passes + (export->passes[0] != 0);
    *next = wanted ? types & wanted : types;
}

struct bw_error *cmd_export_start(struct cmd_export *export, unsigned types, unsigned more_types)
{
    export->passes[0] = export->passes[1] = 0;
    add_pass(export, types);
    add_pass(export, more_types);
    const struct bw_entry_queue_options options = {
        .walk = export->settings->walk,
        .bring = export->bring,
        .bring_context = export->bring_context,
        .starts = &export->starts,
        .passes = export->passes,
        .naming = export->settings->naming,
        .unchecked = export->settings->unchecked,
        .salvage = export->settings->salvage,
        .missed = missed,
        .context = export,
    };
    return bw_entry_queue_create(export->session.fs, &options, &export->queue);
}

void cmd_export_stop(struct cmd_export *export)
{
    bw_entry_queue_destroy(BW_TAKE(export->queue));
}

struct bw_error *cmd_export_next_item(struct cmd_export *export, struct bw_export_entry **item)
{
    BW_TRY(bw_entry_queue_next(export->queue, item));
    /* Top directories of subvolumes are listed even if there is nothing in them. */
    export->found_any |= *item && (*item)->place.inode != BW_TOP_DIRECTORY;
    return NULL;
}

struct bw_error *cmd_export_next(struct cmd_export *export, struct bw_stream_file *file, bool *got)
{
    struct bw_export_entry *item;
    BW_TRY(cmd_export_next_item(export, &item));
    *got = item;
    if (item)
        *file = bw_export_entry_stream_file(item);
    return NULL;
}

size_t cmd_export_held(void *context, const struct bw_stream_file *file)
{
    const struct bw_export_entry *item = file->user;
    (void)context;
    return item->path.length;
}

struct bw_error *cmd_export_read_link(struct cmd_export *export, const struct bw_export_entry *item,
                                      struct bw_buffer *target)
{
    BW_AUTO_FREE char *text = NULL;
    size_t length;
    BW_TRY(cmd_image_error(bw_inode_readlink(export->session.fs, &item->place, &text, &length)));
    bw_buffer_append(target, text, length + 1);
    target->length -= !target->failed;
    return target->failed ? bw_error_no_memory() : NULL;
}

struct bw_error *cmd_image_error(struct bw_error *error)
{
    if (error && error->code == BW_ERROR_SYSTEM) {
        error->code = BW_ERROR_CORRUPT;
        error->system = 0;
    }
    return error;
}

void cmd_export_note_bad(struct bw_export_entry *item, const struct bw_data_part *part)
{
    item->bad += part->length;
    if (!item->error)
        item->error = bw_error_create(
            part->error->code, "bytes %" PRIu64 " to %" PRIu64 " cannot be read: %s", part->offset,
            part->offset + part->length - 1, part->error->message);
}

void cmd_export_miss_item(struct cmd_export *export, struct bw_export_entry *item)
{
    struct bw_error *error = BW_TAKE(item->error);
    if (!error && !item->has_inode)
        error = bw_error_create(BW_ERROR_CORRUPT, "its inode is lost");
    if (!error)
        error =
            bw_error_create(BW_ERROR_CORRUPT, "its inode is of another type than its entry says");
    cmd_export_miss(export, bw_error_prefix(error, "%s", item->path.data));
}

int cmd_export_close(struct cmd_export *export, struct bw_error *error)
{
    const char *subvolume = export->settings->walk.subvolume;
    if (!error && subvolume && !bw_nested_enters(export->settings->walk.nested, subvolume) &&
        !export->found_any && !export->starts.count && !export->settings->walk.selection)
        cmd_tell_of_nested(export->common, export->session.fs, subvolume);
    cmd_export_stop(export);
    cmd_progress_expect(0); /* from now on, nobody counts what is to be done */
    bw_starting_points_free(&export->starts);
    if (error)
        cmd_export_miss(export, error);
    int status = cmd_close(export->common, &export->session), so_far = atomic_load(&export->status);
    return status > so_far ? status : so_far;
}
