/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The readlink command: what symbolic links point to. */
#include "base/cleanup.h"
#include "cmd/common/paths.h"
#include "fs/inode.h"

struct readlink_state {
    const char *subvolume;
    bool null_terminated;
};

static const struct cmd_option options[] = {
    {'0', "print0", NULL, "end each target with a NUL byte instead of a newline",
     CMD_FLAG(struct readlink_state, null_terminated)},
    CMD_SUBVOLUME_OPTION(struct readlink_state),
    {0},
};

static struct bw_error *answer(void *context, struct cmd_paths *paths, const char *path,
                               const struct bw_place *place, struct bw_buffer *text)
{
    const struct readlink_state *readlink = context;
    struct bw_buffer target = {0};
    (void)path;
    if (place->type != BW_FILE_SYMLINK)
        return bw_error_create(BW_ERROR_NOT_FOUND, "not a symbolic link");
    struct bw_error *error =
        bw_symlink_read(paths->session.fs, &place->subvolume->tree, place->inode, &target);
    if (readlink->null_terminated)
        bw_buffer_append(text, target.data, target.length);
    else
        cmd_paths_append_name(paths, target.data, target.length, text);
    bw_buffer_append_byte(text, readlink->null_terminated ? '\0' : '\n');
    bw_buffer_free(&target);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    struct readlink_state *readlink = state;
    struct cmd_paths paths;
    int status = cmd_paths_open(common, readlink->subvolume, &paths);
    return status ? status
                  : cmd_paths_close(&paths, cmd_paths_answer(&paths, false, answer, readlink));
}

const struct command cmd_readlink = {
    .name = "readlink",
    .operands = "IMAGE PATH...",
    .summary = "Prints what symbolic links point to.",
    .details = CMD_PATHS_DETAILS CMD_PATHS_STATUS,
    .examples = "  btrfs-walk readlink disk.img /etc/os-release   one link\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct readlink_state),
    .takes_paths = true,
    .needs_path = true,
};
