/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frame of the commands that print something about paths: open the image, look up each path,
 * append its output to a buffer, and write it. If a path fails, its buffer is discarded, unless a
 * part of a long output has been written; the error is reported, and the next path follows.
 */
#include "cli/common/paths.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"

int cmd_paths_open(const struct cmd_common *common, const char *subvolume, struct cmd_paths *paths)
{
    bool terminal = isatty(STDOUT_FILENO);
    *paths = (struct cmd_paths){.common = common, .output.at_once = terminal, .terminal = terminal};
    int status = cmd_open(common, &paths->session);
    if (status)
        return status;
    struct bw_error *error = NULL;
    if (subvolume)
        error = bw_subvolume_by_name(paths->session.fs, subvolume, &paths->from);
    else
        paths->from = bw_subvolume_by_id(paths->session.fs, BW_TOP_SUBVOLUME);
    if (!error && !paths->from)
        error = bw_error_create(BW_ERROR_NOT_FOUND, "there is no top-level subvolume");
    if (!error)
        return STATUS_OK;
    return cmd_end(common, &paths->session, NULL, cmd_fail(common, error));
}

void cmd_paths_miss(struct cmd_paths *paths, struct bw_error *error)
{
    paths->status = cmd_worse_status(paths->status, cmd_miss(paths->common, error));
}

void cmd_paths_append_name(const struct cmd_paths *paths, const void *name, size_t length,
                           struct bw_buffer *text)
{
    (paths->terminal ? bw_escape_append : bw_buffer_append)(text, name, length);
}

struct bw_error *cmd_paths_absolute(const char *path, struct bw_buffer *text)
{
    bw_buffer_append_byte(text, '/');
    path += strspn(path, "/");
    bw_buffer_append(text, path, strlen(path));
    return bw_buffer_error(text);
}

enum { WORTH_WRITING = 64 << 10 };

bool cmd_paths_flush(struct cmd_paths *paths, struct bw_buffer *text)
{
    if (paths->broken || text->failed)
        return false;
    if (text->length < WORTH_WRITING)
        return true;
    paths->broken = cmd_write(&paths->output, text->data, text->length);
    text->length = 0;
    paths->gave = true;
    return !paths->broken;
}

/* Fails only if stdout cannot be written. */
static struct bw_error *run_path(struct cmd_paths *paths, const char *path, bool follow,
                                 cmd_path_handler *handle, void *context)
{
    struct bw_place place;
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct bw_error *error = bw_lookup(paths->session.fs, paths->from, path, follow, &place);
    if (error) {
        cmd_paths_miss(paths, error);
        return NULL;
    }
    paths->text = &text;
    paths->gave = false;
    const bool begun = paths->format.stream.begun;
    error = handle(context, paths, path, &place, &text);
    if (error && !paths->gave) /* the rows written for this path are discarded */
        paths->format.stream.begun = begun;
    if (paths->broken) {
        bw_error_free(error);
        return BW_TAKE(paths->broken);
    }
    if (!error && text.failed)
        error = bw_error_no_memory();
    if (error)
        cmd_paths_miss(paths, bw_error_prefix(error, "%s", path));
    else if (text.length)
        return cmd_write(&paths->output, text.data, text.length);
    return NULL;
}

/* Appends rows to the text of the current path. */
static struct bw_error *append_rows(void *context, const char *rows, size_t length)
{
    struct cmd_paths *paths = context;
    bw_buffer_append(paths->text, rows, length);
    if (cmd_paths_flush(paths, paths->text))
        return NULL;
    return paths->text->failed ? bw_error_no_memory()
                               : bw_error_create(BW_ERROR_STOPPED, "the output was closed");
}

int cmd_paths_run(const struct cmd_common *common, const char *subvolume, bool follow,
                  const struct cmd_format_plan *plan, cmd_path_handler *handle, void *context)
{
    struct cmd_paths paths;
    struct cmd_format records = {.common = common};
    struct bw_error *error = NULL;
    int status = STATUS_OK;
    if (plan)
        error = cmd_format_begin(&records, common, plan);
    if (error)
        status = cmd_fail(common, error);
    else
        status = cmd_paths_open(common, subvolume, &paths);
    if (!status) {
        /* Rows are first appended to the text of their path, and end after the last path. */
        struct bw_rows_stream *stream = &paths.format.stream;
        paths.format = records;
        paths.format.session = paths.session;
        stream->consume = append_rows;
        stream->context = &paths;
        for (size_t i = 0; !error && i < common->path_count; i++)
            error = run_path(&paths, common->paths[i], follow, handle, context);
        stream->consume = cmd_write;
        stream->context = &paths.output;
        if (!error && stream->rows)
            error = bw_rows_end(stream);
        status = cmd_paths_close(&paths, error);
        records = paths.format;
    }
    cmd_format_free(&records);
    return status;
}

int cmd_paths_close(struct cmd_paths *paths, struct bw_error *error)
{
    error = bw_error_first(error, cmd_flush(&paths->output));
    if (error)
        cmd_paths_miss(paths, error);
    return cmd_end(paths->common, &paths->session, NULL, paths->status);
}
