/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common functions of commands that export files: the selection of files, hashes, and reports of
 * unreadable ranges. */
#include "cli/export/export.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "cli/common/generations.h"
#include "cli/common/monitor.h"
#include "cli/common/paths.h"

const struct cmd_option cmd_export_options[] = {
    CMD_THREADS_OPTION(struct cmd_export_settings, walk.threads),
    CMD_TREE(struct cmd_export_settings, selection),
    {0},
};

const struct cmd_option cmd_naming_options[] = {
    {0, "relative", NULL, "name files relative to their PATH or subvolume",
     CMD_FLAG(struct cmd_export_settings, naming.relative)},
    {0, "strip-components", "N", "strip N leading path components; skip entries with none left",
     CMD_NUMBER(struct cmd_export_settings, naming.components, 0, UINT_MAX, "a number")},
    {0},
};

bool cmd_export_lacks_contents(const struct cmd_export *export, const struct bw_error *error)
{
    return (error->code == BW_ERROR_CORRUPT || error->code == BW_ERROR_NOT_FOUND) &&
           export->session.fs && bw_fs_status(export->session.fs).no_contents;
}

bool cmd_export_is_further(struct cmd_export *export, const struct bw_error *error)
{
    return cmd_export_lacks_contents(export, error) &&
           atomic_fetch_add(&export->without_contents, 1) > 0;
}

void cmd_export_report(void *context, struct bw_error *error)
{
    struct cmd_export *export = context;
    const int status = cmd_miss(export->common, error);
    int before = atomic_load(&export->status);
    while (before < status && !atomic_compare_exchange_weak(&export->status, &before, status))
        ;
}

void cmd_export_miss(void *export, struct bw_error *error)
{
    if (cmd_export_is_further(export, error))
        bw_error_free(error);
    else
        cmd_export_report(export, error);
}

/* Handles a PATH that was not found, or an error of the walk; `context` is the struct cmd_export.
 */
static void report_missed(void *context, const char *start, struct bw_error *error)
{
    struct cmd_export *export = context;
    if (start)
        bw_buffer_append(&export->missing_starts, start, strlen(start) + 1);
    cmd_export_report(export, error);
}

int cmd_export_open(const struct cmd_common *common, struct cmd_export_settings *settings,
                    struct cmd_export *export)
{
    *export = (struct cmd_export){.common = common, .settings = settings};
    cmd_selection_apply(&settings->selection, &settings->walk);
    int status = cmd_open(common, &export->session);
    if (status)
        return status;
    struct bw_error *error = cmd_selection_prepare(&settings->selection, export->session.fs);

    /* With --follow-renames, the current generation is open while the PATHs are searched for; its
     * damage is not reported, since nothing else is read from it. */
    struct bw_fs *current = NULL;
    if (!error && settings->follow_renames && common->path_count) {
        struct bw_fs_options options = cmd_fs_options(common);
        options.planned = NULL;
        options.state = (struct bw_generation_choice){0};
        error = bw_fs_open(&options, &current);
        if (error && error->code != BW_ERROR_NO_MEMORY)
            bw_fs_report(export->session.fs, BW_WARNING,
                         bw_error_prefix(BW_TAKE(error),
                                         "renames are not followed: the current generation"));
    }
    if (!error)
        error = bw_starting_points_find(export->session.fs, current, &settings->walk, common->paths,
                                        common->path_count, &export->starts);
    bw_fs_close(current);
    if (!error)
        return STATUS_OK;
    bw_starting_points_free(&export->starts);
    return cmd_end(common, &export->session, NULL, cmd_fail(common, error));
}

static struct bw_error *count_bytes(void *context, const struct bw_entry *entry)
{
    uint64_t *bytes = context;
    if (cmd_progress_should_stop())
        return bw_error_create(BW_ERROR_STOPPED, "no more entries are needed");
    const struct bw_inode *inode = entry->inode;
    if (inode && S_ISREG(inode->mode)) /* an estimate: allocated bytes are read, holes are not */
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
    wanted.visit = count_bytes;
    wanted.visit_inodes = true;
    wanted.context = &bytes;
    for (size_t i = 0; i < starts->count || i == 0; i++) {
        if (starts->count && starts->points[i].is_another)
            continue;
        wanted.subvolume = export->settings->walk.subvolume;
        wanted.nested = export->settings->walk.nested;
        if (starts->count)
            bw_starting_point_apply(&starts->points[i], &wanted);
        bw_error_free(bw_walk(export->session.fs, &wanted, NULL));
    }
    return bytes;
}

void cmd_export_expect(struct cmd_export *export)
{
    cmd_progress_expect_later(count_all, export);
}

struct bw_error *cmd_export_start(struct cmd_export *export, unsigned types, unsigned more_types)
{
    /* A pass for each set of types of which --type selects some. */
    const unsigned wanted = export->settings->walk.types;
    const unsigned given[] = {types, more_types};
    unsigned *next = export->passes;
    for (size_t i = 0; i < 2; i++) {
        const unsigned pass = wanted ? given[i] & wanted : given[i];
        if (pass)
            *next++ = pass;
    }
    *next = 0;
    const struct bw_entry_queue_options options = {
        .walk = export->settings->walk,
        .bring = export->bring,
        .bring_context = export->bring_context,
        .starts = &export->starts,
        .passes = export->passes,
        .naming = export->settings->naming,
        .sorted = export->settings->sorted,
        .salvage = export->settings->salvage,
        .missed = report_missed,
        .context = export,
    };
    return bw_entry_queue_create(export->session.fs, &options, &export->queue);
}

void cmd_export_stop(struct cmd_export *export)
{
    bw_entry_queue_destroy(BW_TAKE(export->queue));
}

struct bw_error *cmd_export_next_item(void *context, struct bw_export_entry **item)
{
    struct cmd_export *export = context;
    BW_TRY(bw_entry_queue_next(export->queue, item));
    /* an empty subvolume still has its top directory */
    export->found_any |= *item && (*item)->place.inode != BW_TOP_DIRECTORY;
    return NULL;
}

int cmd_export_close(struct cmd_export *export, struct bw_error *error)
{
    error = cmd_output_file_close(export->common->writing.file, error);
    if (!error && !export->found_any && !export->starts.count)
        cmd_report_nested(export->common, export->session.fs, &export->settings->selection);
    const uint64_t without = atomic_load(&export->without_contents);
    if (without > 1 && !export->common->messages.quiet)
        fprintf(stderr, "btrfs-walk: and %" PRIu64 " more file%s: the %s has no file contents\n",
                without - 1, bw_plural(without - 1),
                bw_fs_is_stream(export->session.fs) ? "stream" : "metadump");
    cmd_export_stop(export);
    cmd_progress_expect(0); /* the queue, which counted the bytes to read, has ended */
    bw_starting_points_free(&export->starts);
    bw_buffer_free(&export->missing_starts);
    /* A file that cannot be read leaves a part of the output out. */
    if (error && error->code != BW_ERROR_USAGE)
        cmd_export_report(export, BW_TAKE(error));
    return cmd_end(export->common, &export->session, error, atomic_load(&export->status));
}

struct bw_names cmd_lost_ranges(const struct bw_recoverable *left, struct cmd_range_texts *texts)
{
    struct bw_names result = {texts->names, 0};
    for (size_t i = 0; i < left->count && i < BW_RECOVERABLE_RANGES; i++) {
        const int length = snprintf(texts->texts[i], sizeof texts->texts[i], "%" PRIu64 "+%" PRIu64,
                                    left->ranges[i].offset, left->ranges[i].length);
        texts->names[result.length++] = (struct bw_bytes){texts->texts[i], (size_t)length};
    }
    result.data = result.length ? texts->names : NULL;
    return result;
}

/* The list of unreadable ranges: one line per range, with the error of its first part. */

const char *const cmd_on_error_words[] = {
    [CMD_ON_ERROR_FAIL] = "fail", [CMD_ON_ERROR_ZERO] = "zero", [CMD_ON_ERROR_SKIP] = "skip", NULL};

/* Reports the collected range. In an image without contents, a file counts once, however many
 * ranges it has. */
static void report_range(struct cmd_bad_ranges *bad)
{
    if (!bad->error)
        return;
    if (bad->export && cmd_export_lacks_contents(bad->export, bad->error)) {
        const bool is_further = bad->is_counted || cmd_export_is_further(bad->export, bad->error);
        bad->is_counted = true;
        if (is_further) {
            bw_error_free(BW_TAKE(bad->error));
            return;
        }
    }
    static const char *const outcomes[] = {[CMD_ON_ERROR_FAIL] = "",
                                           [CMD_ON_ERROR_ZERO] = ", zeros in their place",
                                           [CMD_ON_ERROR_SKIP] = ", left out"};
    bw_fs_report(bad->fs, BW_DAMAGE,
                 bw_error_prefix(
                     bad->error, "%s: bytes %" PRIu64 " to %" PRIu64 " cannot be read%s", bad->path,
                     bad->offset, bad->offset + bad->length - 1, outcomes[bad->on_error]));
    bad->error = NULL;
}

void cmd_bad_flush(struct cmd_bad_ranges *bad)
{
    report_range(bad);
    bad->is_counted = false;
}

void cmd_bad_add(struct cmd_bad_ranges *bad, const char *path, const struct bw_data_part *part)
{
    if (bad->error && bad->path == path && bad->offset + bad->length == part->offset) {
        bad->length += part->length;
        return;
    }
    report_range(bad);
    bad->path = path;
    bad->offset = part->offset;
    bad->length = part->length;
    bad->error = bw_error_brief(part->error);
}

struct bw_error *cmd_bad_error(const char *path, const struct bw_data_part *part)
{
    return bw_error_prefix(bw_error_brief(part->error),
                           "%s: bytes %" PRIu64 " to %" PRIu64 " cannot be read", path,
                           part->offset, part->offset + part->length - 1);
}

struct bw_error *cmd_bad_write(struct cmd_bad_ranges *bad, struct cmd_output *output,
                               const char *path, const struct bw_data_part *part)
{
    cmd_progress_add(part->length);
    if (part->kind == BW_DATA_BYTES)
        return cmd_write(output, (const char *)part->bytes, (size_t)part->length);
    if (part->kind == BW_DATA_BAD && bad->on_error == CMD_ON_ERROR_FAIL)
        return cmd_bad_error(path, part);
    if (part->kind == BW_DATA_BAD)
        cmd_bad_add(bad, path, part);
    if (part->kind == BW_DATA_BAD && bad->on_error == CMD_ON_ERROR_SKIP)
        return NULL;
    return cmd_write_zeros(output, part->length);
}
