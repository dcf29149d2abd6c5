/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The readlink command: the targets of symbolic links. */
#include "base/cleanup.h"
#include "btrfs-walk/row_records.h"
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

static struct bw_error *write_row(struct cmd_paths *paths, const char *given,
                                  const struct bw_place *place, struct bw_bytes target)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    BW_TRY(cmd_paths_absolute(given, &path));
    const struct bw_linkinfo row = {
        .path = {path.data, path.length},
        .path_bytes = {path.data, path.length},
        .subvolume = bw_subvolume_id(place->subvolume),
        .inode = place->inode,
        .target = target,
        .target_bytes = target,
    };
    return cmd_answer_write(&paths->answer, &row, sizeof row, 0);
}

static struct bw_error *write_target(void *context, struct cmd_paths *paths, const char *path,
                                     const struct bw_place *place, struct bw_buffer *text)
{
    const struct readlink_state *readlink = context;
    BW_AUTO_FREE char *target = NULL;
    size_t length = 0;
    if (place->type != BW_FILE_SYMLINK)
        return bw_error_create(BW_ERROR_NOT_FOUND, "not a symbolic link");
    BW_TRY(bw_inode_readlink(paths->session.fs, place, &target, &length));
    if (paths->answer.rows)
        return write_row(paths, path, place, (struct bw_bytes){target, length});
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
    const struct cmd_answer_plan plan = {.record = cmd_readlink.record,
                                         .null_terminated = readlink->null_terminated};
    return cmd_paths_run(common, readlink->subvolume, false, &plan, write_target, state);
}

const struct command cmd_readlink = {
    .name = "readlink",
    .topic = cmd_topic_files,
    .operands = "IMAGE PATH...",
    .summary = "Prints the targets of symbolic links.",
    .details = CMD_PATHS_DETAILS,
    .examples = "  btrfs-walk readlink disk.img /etc/os-release         one link\n"
                "  btrfs-walk readlink --json disk.img /etc/os-release  for programs\n",
    .options = options,
    .record = "linkinfo",
    .run = run,
    .state_size = sizeof(struct readlink_state),
    .takes_paths = true,
    .takes_list = true,
    .missing = "no path given",
};
