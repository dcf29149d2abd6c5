/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file system that a command works on: opening it as the common options say, and closing it. */
#include <unistd.h>

#include "cmd/command.h"

/* Somebody may have sent the results into an image. */
static struct bw_error *check_streams(const struct bw_fs *fs)
{
    static const struct {
        int descriptor;
        const char *name;
    } streams[] = {{STDOUT_FILENO, "stdout"}, {STDERR_FILENO, "stderr"}};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        struct stat status;
        if (fstat(streams[i].descriptor, &status) == 0 && bw_fs_is_input(fs, &status))
            return bw_error_create(BW_ERROR_USAGE,
                                   "%s goes to a file that is read: nothing is ever written to one",
                                   streams[i].name);
    }
    return NULL;
}

static int open_session(const struct cmd_common *common, struct cmd_session *session,
                        struct bw_error *(*open)(const struct bw_fs_options *options, struct bw_fs **fs))
{
    const struct bw_fs_options options = {
        .paths = common->images,
        .path_count = common->image_count,
        .superblock_copy = common->superblock_copy,
        .graph = common->graph,
        .reporter = {cmd_report, (void *)(uintptr_t)common},
    };
    *session = (struct cmd_session){0};
    struct bw_error *error = open(&options, &session->fs);
    if (error)
        return cmd_fail(common, error);
    error = check_streams(session->fs);
    if (!error)
        error = cmd_statedump_start(common, session->fs, &session->statedump);
    if (!error)
        return STATUS_OK;
    bw_fs_close(session->fs);
    return cmd_fail(common, error);
}

int cmd_open(const struct cmd_common *common, struct cmd_session *session)
{
    return open_session(common, session, bw_fs_open);
}

int cmd_wire(const struct cmd_common *common, struct cmd_session *session)
{
    return open_session(common, session, bw_fs_wire);
}

int cmd_close(const struct cmd_common *common, struct cmd_session *session)
{
    const struct bw_fs_status fs_status = bw_fs_status(session->fs);
    int status = fs_status.damages || fs_status.unused_images ? STATUS_PARTIAL : STATUS_OK;
    struct bw_error *error = cmd_statedump_stop(session->statedump);
    if (error) {
        cmd_fail(common, error);
        status = STATUS_PARTIAL;
    }
    bw_fs_close(session->fs);
    return status;
}
