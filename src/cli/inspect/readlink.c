/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The readlink command: the targets of symbolic links. */
#include "base/cleanup.h"
#include "cli/common/paths.h"

struct readlink_state {
    const char *subvolume;
    bool null_terminated;
};

static const struct cmd_option options[] = {
    {'0', "print0", NULL, "end each target with a NUL byte instead of a newline",
     CMD_FLAG(struct readlink_state, null_terminated)},
    CMD_SUBVOLUME_OPTION(struct readlink_state, subvolume),
    {0},
};

static struct bw_error *answer(void *context, struct cmd_paths *paths, const char *path,
                               const struct bw_place *place, struct bw_buffer *text)
{
    const struct readlink_state *readlink = context;
    BW_AUTO_FREE char *target = NULL;
    size_t length = 0;
    (void)path;
    if (place->type != BW_FILE_SYMLINK)
        return bw_error_create(BW_ERROR_NOT_FOUND, "not a symbolic link");
    BW_TRY(bw_inode_readlink(paths->session.fs, place, &target, &length));
    if (readlink->null_terminated)
        bw_buffer_append(text, target, length);
    else
        cmd_paths_append_name(paths, target, length, text);
    bw_buffer_append_byte(text, readlink->null_terminated ? '\0' : '\n');
    return NULL;
}

static int run(const struct cmd_common *common, void *state)
{
    const struct readlink_state *readlink = state;
    return cmd_paths_run(common, readlink->subvolume, false, NULL, answer, state);
}

const struct command cmd_readlink = {
    .name = "readlink",
    .topic = cmd_topic_files,
    .operands = "IMAGE PATH...",
    .summary = "Prints the targets of symbolic links.",
    .details = CMD_PATHS_DETAILS,
    .examples = "  btrfs-walk readlink disk.img /etc/os-release   one link\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct readlink_state),
    .takes_paths = true,
    .takes_list = true,
    .missing = "no path given",
};
