/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frame of the commands that answer for paths. */
#include "cli/common/paths.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"

static struct bw_error *find_from(struct cmd_paths *paths, const char *subvolume)
{
    struct bw_fs *fs = paths->session.fs;
    paths->from = bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME);
    if (subvolume)
        BW_TRY(bw_subvolume_by_name(fs, subvolume, &paths->from));
    return paths->from ? NULL
                       : bw_error_create(BW_ERROR_NOT_FOUND, "there is no top-level subvolume");
}

int cmd_paths_open(const struct cmd_common *common, const char *subvolume, struct cmd_paths *paths)
{
    bool terminal = isatty(STDOUT_FILENO);
    *paths = (struct cmd_paths){.common = common, .output.at_once = terminal, .terminal = terminal};
    int status = cmd_open(common, &paths->session);
    if (status)
        return status;
    struct bw_error *error = find_from(paths, subvolume);
    if (!error)
        return STATUS_OK;
    status = cmd_fail(common, error);
    cmd_close(common, &paths->session);
    return status;
}

void cmd_paths_miss(struct cmd_paths *paths, struct bw_error *error)
{
    int status =
        cmd_fail(paths->common, error) == STATUS_UNSUPPORTED ? STATUS_UNSUPPORTED : STATUS_PARTIAL;
    if (status > paths->status)
        paths->status = status;
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
    return text->failed ? bw_error_no_memory() : NULL;
}

enum { WORTH_WRITING = 64 << 10 };

bool cmd_paths_give(struct cmd_paths *paths, struct bw_buffer *text)
{
    if (paths->broken || text->failed)
        return false;
    if (text->length < WORTH_WRITING)
        return true;
    paths->broken = cmd_write(&paths->output, text->data, text->length);
    text->length = 0;
    return !paths->broken;
}

static struct bw_error *write_answer(struct cmd_paths *paths, const char *path,
                                     struct bw_error *error, const struct bw_buffer *text)
{
    if (paths->broken) {
        bw_error_free(error);
        return BW_TAKE(paths->broken);
    }
    if (!error && text->failed)
        error = bw_error_no_memory();
    if (!error)
        return text->length ? cmd_write(&paths->output, text->data, text->length) : NULL;
    cmd_paths_miss(paths, bw_error_prefix(error, "%s", path));
    return NULL;
}

/* Fails only if stdout takes no more. */
static struct bw_error *answer_path(struct cmd_paths *paths, const char *path, bool follow,
                                    cmd_path_answer *answer, void *context)
{
    struct bw_place place;
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct bw_error *error = bw_lookup(paths->session.fs, paths->from, path, follow, &place);
    if (error) {
        cmd_paths_miss(paths, error);
        return NULL;
    }
    error = answer(context, paths, path, &place, &text);
    return write_answer(paths, path, error, &text);
}

int cmd_paths_run(const struct cmd_common *common, const char *subvolume, bool follow,
                  cmd_path_answer *answer, void *context)
{
    struct cmd_paths paths;
    struct bw_error *error = NULL;
    int status = cmd_paths_open(common, subvolume, &paths);
    if (status)
        return status;
    for (size_t i = 0; i < common->path_count && !error; i++)
        error = answer_path(&paths, common->paths[i], follow, answer, context);
    return cmd_paths_close(&paths, error);
}

int cmd_paths_close(struct cmd_paths *paths, struct bw_error *error)
{
    error = bw_error_first(error, cmd_flush(&paths->output));
    if (error)
        cmd_paths_miss(paths, error);
    int status = cmd_close(paths->common, &paths->session);
    return status > paths->status ? status : paths->status;
}
