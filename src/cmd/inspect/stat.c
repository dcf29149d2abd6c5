/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stat command: all that the inode of a file tells, and what hangs on it. */
#include "cmd/inspect/stat.h"

#include <sys/stat.h>

#include "base/cleanup.h"
#include "fs/lookup.h"
#include "fs/inode.h"
#include "record/file.h"

struct stat_state {
    const char *subvolume;
    bool json, follow;
    bool not_first; /* an answer stands above the next one */
};

static const struct cmd_option options[] = {
    {0, "json", NULL, "an object a line for each path", CMD_FLAG(struct stat_state, json)},
    {'L', "dereference", NULL, "follow a PATH that is a symbolic link",
     CMD_FLAG(struct stat_state, follow)},
    CMD_SUBVOLUME_OPTION(struct stat_state),
    {0},
};

static struct bw_error *take_xattr(void *context, const struct bw_xattr *xattr)
{
    static const char property[] = BW_COMPRESSION_PROPERTY;
    struct cmd_stat *stat = context;
    bw_buffer_append(&stat->xattrs, &xattr->name_length, sizeof xattr->name_length);
    bw_buffer_append(&stat->xattrs, xattr->name, xattr->name_length);
    if (stat->has_compression || xattr->name_length != sizeof property - 1 ||
        memcmp(xattr->name, property, xattr->name_length) != 0)
        return NULL;
    stat->has_compression = true;
    bw_buffer_append(&stat->compression, xattr->value, xattr->value_length);
    return NULL;
}

bool cmd_stat_next_xattr(const struct cmd_stat *stat, size_t *position, const char **name,
                         size_t *length)
{
    uint16_t name_length;
    if (*position == stat->xattrs.length)
        return false;
    memcpy(&name_length, stat->xattrs.data + *position, sizeof name_length);
    *name = stat->xattrs.data + *position + sizeof name_length;
    *length = name_length;
    *position += sizeof name_length + name_length;
    return true;
}

/* What hangs on an inode that is really there. */
static struct bw_error *gather_rest(struct bw_fs *fs, struct cmd_stat *stat)
{
    const struct bw_tree *tree = &stat->place.subvolume->tree;
    BW_TRY(bw_xattrs_read(fs, tree, stat->place.inode, take_xattr, stat));
    BW_TRY(bw_extents_count(fs, tree, stat->place.inode, &stat->extents));
    return S_ISLNK(stat->inode.mode) ? bw_symlink_read(fs, tree, stat->place.inode, &stat->target)
                                     : NULL;
}

static struct bw_error *gather(const struct cmd_paths *paths, struct cmd_stat *stat)
{
    struct bw_fs *fs = paths->session.fs;
    BW_TRY(bw_inode_get(fs, &stat->place, &stat->inode));
    BW_TRY(cmd_paths_absolute(paths, stat->path, &stat->absolute));
    /* A subvolume that hangs nowhere can be asked for by its id. */
    bw_error_free(bw_path_of_subvolume(fs, stat->place.subvolume->tree.id, &stat->subvolume_path));
    if (!bw_place_is_empty(&stat->place))
        BW_TRY(gather_rest(fs, stat));
    bool failed = stat->absolute.failed || stat->xattrs.failed || stat->compression.failed;
    return failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *write(struct stat_state *state, const struct cmd_paths *paths,
                              const struct cmd_stat *stat, struct bw_buffer *text)
{
    if (state->json)
        return cmd_stat_json(paths, stat, text);
    if (state->not_first)
        bw_buffer_append_byte(text, '\n');
    state->not_first = true;
    cmd_stat_text(stat, text);
    return NULL;
}

static struct bw_error *answer(void *context, struct cmd_paths *paths, const char *path,
                               const struct bw_place *place, struct bw_buffer *text)
{
    struct cmd_stat stat = {.path = path, .place = *place};
    struct bw_error *error = gather(paths, &stat);
    if (!error)
        error = write(context, paths, &stat, text);
    bw_buffer_free(&stat.absolute);
    bw_buffer_free(&stat.subvolume_path);
    bw_buffer_free(&stat.target);
    bw_buffer_free(&stat.xattrs);
    bw_buffer_free(&stat.compression);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    struct stat_state *stat = state;
    struct cmd_paths paths;
    int status = cmd_paths_open(common, stat->subvolume, &paths);
    return status ? status
                  : cmd_paths_close(&paths, cmd_paths_answer(&paths, stat->follow, answer, stat));
}

const struct command cmd_stat = {
    .name = "stat",
    .operands = "IMAGE PATH...",
    .summary = "Prints all that is known of a file or directory.",
    .details = CMD_PATHS_DETAILS
    "Told are the fields of the inode, times in UTC, its flags, the subvolume, the names of the "
    "extended\n"
    "attributes, and how many extents of which kind there are.\n" CMD_PATHS_STATUS,
    .examples = "  btrfs-walk stat disk.img /etc/passwd                one file\n"
                "  btrfs-walk stat --json disk.img /a /b | jq .flags   for programs\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct stat_state),
    .takes_paths = true,
    .needs_path = true,
};
