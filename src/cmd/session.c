/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file system that a command works on: opening it as the common options say, and closing it. */
#include <fcntl.h>
#include <unistd.h>

#include "base/file_set.h"
#include "cmd/command.h"

static const struct {
    int descriptor;
    const char *name;
} streams[] = {{STDERR_FILENO, "stderr"}, {STDOUT_FILENO, "stdout"}};

/* What goes into an image is refused; if it is stderr, without a word. */
static struct bw_error *refuse_stream(size_t stream)
{
    if (streams[stream].descriptor == STDERR_FILENO) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0)
            close(STDERR_FILENO);
        close(nowhere);
    }
    return bw_error_create(BW_ERROR_USAGE, "%s goes to a file that is read: nothing is ever written to one",
                           streams[stream].name);
}

/* Holds the streams against all that a file system reads or, before it is open (NULL), the images given. */
static struct bw_error *check_streams(const struct bw_fs *fs, const struct bw_file_set *images)
{
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        struct stat status;
        if (fstat(streams[i].descriptor, &status))
            continue;
        if (fs ? bw_fs_is_input(fs, &status) : bw_file_set_holds(images, &status))
            return refuse_stream(i);
    }
    return NULL;
}

/* Before anything is said: somebody may have sent the results, or the messages, into an image. */
static struct bw_error *check_streams_first(const struct cmd_common *common)
{
    struct bw_file_set images = {0};
    bool added = true;
    for (size_t i = 0; i < common->image_count; i++)
        added &= bw_file_set_add(&images, common->images[i]);
    struct bw_error *error = added ? check_streams(NULL, &images) : bw_error_no_memory();
    bw_file_set_free(&images);
    return error;
}

static int open_session(const struct cmd_common *common, struct cmd_session *session,
                        struct bw_error *(*open_fs)(const struct bw_fs_options *options, struct bw_fs **fs))
{
    const struct bw_fs_options options = {
        .paths = common->images,
        .path_count = common->image_count,
        .superblock_copy = common->superblock_copy,
        .graph = common->graph,
        .reporter = {cmd_report, (void *)(uintptr_t)common},
    };
    *session = (struct cmd_session){0};
    struct bw_error *error = check_streams_first(common);
    if (!error)
        error = open_fs(&options, &session->fs);
    if (error)
        return cmd_fail(common, error);
    error = check_streams(session->fs, NULL); /* a volfile may have named more */
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
