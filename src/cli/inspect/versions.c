/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The versions command: the versions of a file in older generations. */
#include "btrfs-walk/history.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "btrfs-walk/probe_records.h"
#include "btrfs-walk/row_records.h"
#include "cli/common/changes.h"
#include "cli/common/answer.h"
#include "cli/common/paths.h"
#include "cli/common/monitor.h"
#include "cli/common/generations.h"

struct versions_state {
    struct cmd_generations_settings states;
    const char *subvolume;
    bool all, no_data;
};

/* A running listing. */
struct versions {
    struct cmd_answer *answer;
    const struct versions_state *state;
    struct cmd_index index;
};

static const struct cmd_option options[] = {
    {0, "all", NULL, "print a row for each generation, even without changes",
     CMD_FLAG(struct versions_state, all)},
    {0, "no-data", NULL, "do not read data; how much is recoverable remains unknown",
     CMD_FLAG(struct versions_state, no_data)},
    CMD_SUBVOLUME_OPTION(struct versions_state, subvolume),
    CMD_GROUP(cmd_generations_options, struct versions_state, states),
    {0},
};

static struct bw_error *write_part(void *context, const struct bw_data_part *part)
{
    bw_recoverable_add(context, part);
    return NULL;
}

static struct bw_error *read_all(const struct bw_version *version, struct bw_recoverable *left)
{
    struct bw_file *file;
    if (!S_ISREG(version->inode.mode))
        return NULL;
    BW_TRY(bw_file_open(version->fs, &version->place, NULL, &file));
    struct bw_error *error = bw_file_read_parts(file, 0, UINT64_MAX, write_part, left);
    bw_file_close(file);
    return error;
}

static struct bw_error *write_version(void *context, const struct bw_version *version)
{
    const struct versions *versions = context;
    const struct bw_inode *inode = &version->inode;
    const struct bw_bytes path = {version->path, version->path_length};
    struct bw_bytes changes[BW_DIFFERENCE_CHANGES + 1], unknown[BW_DIFFERENCE_CHANGES];
    struct bw_names changed = cmd_change_names(version->changes, changes);
    struct bw_recoverable left = {0};
    if (version->renamed) {
        changed.data = changes;
        changes[changed.length++] = (struct bw_bytes){"renamed", strlen("renamed")};
    }
    if (!versions->state->no_data)
        BW_TRY(read_all(version, &left));
    const struct bw_versioninfo row = {
        .generation = version->generation,
        .first_generation = version->first,
        .tree_root = version->tree_root,
        .changed = bw_time_nanoseconds(&version->time),
        .recoverable =
            bw_recoverable_name(bw_recoverable_kind(&left, inode->flags & BW_INODE_NODATASUM)),
        .type = bw_file_type_name(bw_file_type_of_mode(inode->mode)),
        .size = inode->size,
        .mtime = bw_time_nanoseconds(&inode->mtime),
        .changes = changed,
        .unknown = cmd_change_names(version->unknown, unknown),
        .replaced = version->replaced,
        .path = path,
        .path_bytes = path,
        .subvolume = bw_subvolume_id(version->place.subvolume),
        .inode = version->place.inode,
    };
    const bool unread = versions->state->no_data && S_ISREG(inode->mode);
    return cmd_answer_write(versions->answer, &row, sizeof row,
                            unread ? BW_MEMBER(versioninfo, recoverable) : 0);
}

static struct bw_error *list(struct cmd_answer *answer, void *context)
{
    struct versions *versions = context;
    const struct versions_state *state = versions->state;
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    struct cmd_generations states;
    versions->answer = answer;
    BW_TRY(cmd_paths_absolute(answer->common->paths[0], &path));
    bw_buffer_append_byte(&path, '\0');
    struct bw_error *error =
        cmd_generations_find(&versions->index, answer->session.fs, &state->states, &states);
    const struct bw_versions_options how = {
        .struct_size = sizeof how,
        .images = &states.images,
        .states = states.choices,
        .state_count = states.count,
        .path = path.data,
        .all = state->all,
        .visit = write_version,
        .context = versions,
        .progress = cmd_progress_state,
        .subvolume = state->subvolume,
    };
    if (!error && path.failed)
        error = bw_error_no_memory();
    if (!error)
        error = bw_versions(answer->session.fs, &how);
    cmd_generations_free(&states);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    const struct versions_state *settings = state;
    struct versions versions = {.state = settings};
    struct cmd_common own;
    const struct cmd_answer_plan plan = {
        .record = cmd_versions.record,
        .columns = "generation,first_generation,changed,recoverable,size,mtime,changes,path",
        .list = list,
        .context = &versions,
    };
    if (common->path_count > 1)
        return cmd_fail(common, bw_error_create(BW_ERROR_USAGE, "at most one PATH can be given"));
    struct bw_error *error = cmd_index_begin(&versions.index, common, &settings->states, &own);
    const int status = error ? cmd_fail(common, error) : cmd_answer_run(&own, &plan);
    cmd_index_end(&versions.index);
    return status;
}

const struct command cmd_versions = {
    .name = "versions",
    .topic = cmd_topic_history,
    .operands = "IMAGE PATH",
    .summary = "Lists the versions of a file in older generations.",
    .details =
        "\n"
        "The blocks of each transaction stay on the disk until other data overwrite them. Each\n"
        "row is a version, the newest first. It lasted from the generation in the column\n"
        "first_generation to the one in generation. If a generation has no file at PATH, the\n"
        "file is searched for under other names. \"changes\" lists the differences from the\n"
        "previous version, which is the next row. The contents are read and verified against\n"
        "the checksums of that generation: all ranges are valid (verified), some are lost\n"
        "(partly), all are lost (lost), or the file has no checksums and may contain anything\n"
        "(unverified).\n",
    .examples = "  btrfs-walk versions disk.img /etc/fstab\n"
                "  btrfs-walk cat --generation 1234 disk.img /etc/fstab  one of them\n"
                "  btrfs-walk versions -o generation,size --raw disk.img /etc/fstab\n",
    .options = options,
    .record = "versioninfo",
    .run = run,
    .state_size = sizeof(struct versions_state),
    .takes_paths = true,
    .missing = "no path given",
};
