/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Statedumps of a running command: on SIGUSR1, which progress.c waits for, and at the end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"

struct cmd_statedump {
    const struct cmd_common *common;
    const struct bw_fs *fs; /* NULL: it is not open yet */
    int descriptor;
};

static struct bw_error *write_to(void *context, const char *text, size_t length)
{
    const struct cmd_statedump *statedump = context;
    return cmd_write_file(statedump->descriptor, statedump->common->statedump, text, length);
}

/* A file holds only the last statedump. */
static struct bw_error *dump(struct cmd_statedump *statedump)
{
    if (statedump->descriptor != STDERR_FILENO) {
        if (lseek(statedump->descriptor, 0, SEEK_SET) == 0 && ftruncate(statedump->descriptor, 0) &&
            errno != EINVAL)
            return bw_error_from_errno(errno, "cannot write to %s", statedump->common->statedump);
    }
    return bw_fs_statedump(statedump->fs, write_to, statedump);
}

void cmd_statedump_write(struct cmd_statedump *statedump)
{
    struct bw_error *error = dump(statedump);
    if (error)
        cmd_fail(statedump->common, error);
}

struct bw_error *cmd_open_output(const struct bw_fs *fs, const char *taken, const char *name,
                                 int *descriptor)
{
    struct stat status, other;
    bool exists = stat(name, &status) == 0;
    if (exists && taken && stat(taken, &other) == 0 && status.st_dev == other.st_dev &&
        status.st_ino == other.st_ino)
        return bw_error_create(BW_ERROR_USAGE, "%s is written to already: it is the black box",
                               name);
    if (exists && bw_fs_is_input(fs, &status))
        return bw_error_create(BW_ERROR_USAGE,
                               "%s is a file that is read: nothing is ever written to one", name);
    return bw_output_file_open(name, false, descriptor);
}

struct bw_error *cmd_statedump_open(const struct cmd_common *common, const struct bw_fs *planned,
                                    struct cmd_statedump **result)
{
    const char *name = common->statedump;
    if (!name)
        return NULL;
    BW_AUTO_FREE struct cmd_statedump *statedump = calloc(1, sizeof *statedump);
    if (!statedump)
        return bw_error_no_memory();
    statedump->common = common;
    statedump->descriptor = STDERR_FILENO;
    if (strcmp(name, "-") != 0)
        BW_TRY(cmd_open_output(planned, common->probes.blackbox, name, &statedump->descriptor));
    *result = BW_TAKE(statedump);
    return NULL;
}

void cmd_statedump_start(struct cmd_statedump *statedump, const struct bw_fs *fs)
{
    if (statedump)
        statedump->fs = fs;
}

struct bw_error *cmd_statedump_stop(struct cmd_statedump *statedump)
{
    if (!statedump)
        return NULL;
    struct bw_error *error = statedump->fs ? dump(statedump) : NULL;
    if (statedump->descriptor != STDERR_FILENO && close(statedump->descriptor) && !error)
        error = bw_error_from_errno(errno, "cannot write to %s", statedump->common->statedump);
    free(statedump);
    return error;
}
