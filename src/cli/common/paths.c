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

int cmd_paths_open(const struct cmd_common *common, const struct cmd_format_plan *plan,
                   const char *subvolume, struct cmd_paths *paths)
{
    struct cmd_session *session = &paths->format.session;
    struct bw_error *error = NULL;
    *paths =
        (struct cmd_paths){.format.common = common, .format.output.at_once = isatty(STDOUT_FILENO)};
    if (plan)
        error = cmd_format_begin(&paths->format, common, plan);
    int status = cmd_fail(common, error);
    if (!status)
        status = cmd_open(common, session);
    if (!status && subvolume)
        error = bw_subvolume_by_name(session->fs, subvolume, &paths->from);
    else if (!status)
        paths->from = bw_subvolume_by_id(session->fs, BW_TOP_SUBVOLUME);
    if (!status && !error && !paths->from)
        error = bw_error_create(BW_ERROR_NOT_FOUND, "there is no top-level subvolume");
    if (!status && error)
        status = cmd_end(common, session, NULL, cmd_fail(common, error));
    if (status)
        cmd_format_free(&paths->format);
    return status;
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
    paths->broken = cmd_write(&paths->format.output, text->data, text->length);
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
    struct bw_error *error = bw_lookup(paths->format.session.fs, paths->from, path, follow, &place);
    if (error) {
        cmd_format_miss(&paths->format, error);
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
        cmd_format_miss(&paths->format, bw_error_prefix(error, "%s", path));
    else if (text.length)
        return cmd_write(&paths->format.output, text.data, text.length);
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
    struct bw_rows_stream *stream = &paths.format.stream;
    struct bw_error *error = NULL;
    const int status = cmd_paths_open(common, plan, subvolume, &paths);
    if (status)
        return status;
    /* Rows are first appended to the text of their path, and end after the last path. */
    stream->consume = append_rows;
    stream->context = &paths;
    for (size_t i = 0; !error && i < common->path_count; i++)
        error = run_path(&paths, common->paths[i], follow, handle, context);
    stream->consume = cmd_write;
    stream->context = &paths.format.output;
    if (!error && stream->rows)
        error = bw_rows_end(stream);
    return cmd_paths_close(&paths, error);
}

int cmd_paths_close(struct cmd_paths *paths, struct bw_error *error)
{
    struct cmd_format *format = &paths->format;
    error = bw_error_first(error, cmd_flush(&format->output));
    if (error)
        cmd_format_miss(format, error);
    const int status = cmd_end(format->common, &format->session, NULL, format->status);
    cmd_format_free(format);
    return status;
}
