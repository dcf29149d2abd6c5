/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bodyfile command: a line for each file in the format of The Sleuth Kit's body file, for
 * timelines. The past follows the present: deleted files, then older versions.
 */
#include "base/cleanup.h"
#include "cli/common/generations.h"
#include "cli/common/monitor.h"
#include "cli/common/paths.h"
#include "cli/export/export.h"
#include "export/body.h"

struct bodyfile {
    /* The options. */
    struct cmd_export_settings settings;
    struct cmd_index index;
    bool deleted, versions;

    /* While it runs. */
    struct cmd_export export;
    struct cmd_output output;
    struct bw_body body;
};

static const struct cmd_option options[] = {
    {0, "deleted", NULL, "add deleted files that older generations contain",
     CMD_FLAG(struct bodyfile, deleted)},
    {0, "versions", NULL, "add older versions of files that were changed",
     CMD_FLAG(struct bodyfile, versions)},
    CMD_GROUP(cmd_index_options, struct bodyfile, index),
    CMD_GROUP(cmd_export_options, struct bodyfile, settings),
    {0},
};

static struct bw_error *write_past(struct bodyfile *bodyfile)
{
    const struct cmd_common *common = bodyfile->export.common;
    const struct cmd_selection *selection = &bodyfile->settings.selection;
    struct bw_fs *present = bodyfile->export.session.fs;
    struct cmd_generations generations;
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    if (common->path_count)
        BW_TRY(cmd_paths_absolute(common->paths[0], &path));
    BW_TRY(bw_buffer_terminate(&path));
    struct bw_error *error = cmd_generations_find(common, present, &generations);
    const struct bw_deleted_options how = {
        .struct_size = sizeof how,
        .images = &generations.images,
        .states = generations.choices,
        .state_count = generations.count,
        .path = common->path_count ? path.data : NULL,
        .selection = selection->selection,
        .has_maxdepth = selection->has_maxdepth,
        .maxdepth = selection->maxdepth,
        .mindepth = selection->mindepth,
        .progress = cmd_progress_state,
    };
    if (!error && bodyfile->deleted)
        error = bw_body_write_deleted(&bodyfile->body, present, &how, selection->types);
    if (!error && bodyfile->versions)
        error =
            bw_body_write_versions(&bodyfile->body, present, &how, bodyfile->settings.walk.threads);
    cmd_generations_free(&generations);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    struct bodyfile *bodyfile = state;
    struct cmd_export *export = &bodyfile->export;
    struct cmd_common own = *common;
    const bool has_past = bodyfile->deleted || bodyfile->versions;
    if (has_past && common->path_count > 1)
        return cmd_refuse(common, "at most one PATH can be given with --deleted or --versions");
    if (has_past && bodyfile->settings.selection.subvolume)
        return cmd_refuse(common, "--subvol excludes --deleted and --versions");
    own.input.index = has_past ? &bodyfile->index : NULL;
    const int status = cmd_export_open(&own, &bodyfile->settings, export);
    if (status)
        return status;
    bodyfile->body = (struct bw_body){.write = cmd_write,
                                      .write_context = &bodyfile->output,
                                      .missed = cmd_export_miss,
                                      .context = export};
    struct bw_error *error = cmd_export_start(export, BW_WALK_ALL, 0);
    for (struct bw_export_entry *item;
         !error && !(error = cmd_export_next_item(export, &item)) && item;) {
        error = bw_body_write(&bodyfile->body, export->session.fs, item, "");
        if (!item->has_inode)
            cmd_export_report(export, bw_export_entry_loss(item));
        bw_entry_queue_release(export->queue, item);
    }
    if (!error && has_past)
        error = write_past(bodyfile);
    bw_buffer_free(&bodyfile->body.line);
    error = bw_error_first(error, cmd_flush(&bodyfile->output));
    return cmd_export_close(export, error);
}

const struct command cmd_bodyfile = {
    .name = "bodyfile",
    .topic = cmd_topic_export,
    .operands = "IMAGE [PATH]...",
    .summary = "Writes the times of all files for The Sleuth Kit.",
    .details =
        "\n"
        "Lines are MD5|name|inode|mode|UID|GID|size|atime|mtime|ctime|crtime, as mactime(1)\n"
        "reads them. The MD5 is always 0. The inode number is preceded by the id of the\n"
        "subvolume: 257-1234. In names, control characters and bytes that would end a field\n"
        "are written as \\ooo.\n\n"
        "--deleted adds files that older generations contain, and the current one lacks: their\n"
        "names end with (deleted). --versions adds a line for each file that differs in the\n"
        "next newer generation, with its times and its size then: (generation N).\n",
    .examples = "  btrfs-walk bodyfile disk.img > body                   everything\n"
                "  btrfs-walk bodyfile disk.img /home | mactime -b - -d  a timeline\n"
                "  btrfs-walk bodyfile --deleted --versions disk.img      with the past\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct bodyfile),
    .takes_paths = true,
    .takes_list = true,
};
