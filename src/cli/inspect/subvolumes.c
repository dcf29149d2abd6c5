/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The subvolumes command: subvolumes and snapshots, as `btrfs subvolume list` shows them. */
#include <inttypes.h>
#include <uuid/uuid.h>

#include "base/cleanup.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/records.h"
#include "cli/common/output_format.h"
#include "cli/inspect/plans.h"
#include "cli/inspect/subvolume_tree.h"

struct subvolumes_state {
    bool deleted, snapshots, read_only, tree;
};

static const struct cmd_option options[] = {
    {0, "deleted", NULL, "list only subvolumes that are being deleted",
     CMD_FLAG(struct subvolumes_state, deleted)},
    {0, "snapshots", NULL, "list only snapshots", CMD_FLAG(struct subvolumes_state, snapshots)},
    {0, "read-only", NULL, "list only read-only subvolumes",
     CMD_FLAG(struct subvolumes_state, read_only)},
    {0, "tree", NULL, "show them as a tree, in text", CMD_FLAG(struct subvolumes_state, tree)},
    {0},
};

/* A running listing. */
struct subvolumes {
    const struct subvolumes_state *state;
    struct cmd_answer *answer;
    struct subvolume_tree tree;
};

static bool is_wanted(const struct subvolumes_state *state, const struct bw_subvolume_info *info)
{
    return info->is_deleted == state->deleted && (info->is_snapshot || !state->snapshots) &&
           (info->read_only || !state->read_only);
}

static struct bw_bytes uuid_of(const uint8_t uuid[BW_UUID_SIZE])
{
    return (struct bw_bytes){uuid_is_null(uuid) ? NULL : (const char *)uuid, BW_UUID_SIZE};
}

enum { ATTRIBUTES_ROOM = 64 };

/* The attributes of a subvolume as words; NULL if it has none. */
static const char *attributes_of(const struct bw_subvolume_info *info, char text[ATTRIBUTES_ROOM])
{
    const struct {
        bool applies;
        const char *word;
    } words[] = {{info->is_default, ",default"},
                 {info->read_only, ",ro"},
                 {info->is_snapshot, ",snapshot"},
                 {!uuid_is_null(info->received_uuid), ",received"},
                 {info->is_deleted, ",deleted"}};
    char *end = text;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].applies)
            end = stpcpy(end, words[i].word);
    return end == text ? NULL : text + 1;
}

/* Members that old root items lack, and times of operations that never happened. */
static uint64_t absent_members(const struct bw_subvolume_info *info)
{
    const struct {
        bool absent;
        uint64_t members;
    } groups[] = {
        {!info->parent,
         BW_MEMBER(subvolinfo, parent_subvolume) | BW_MEMBER(subvolinfo, parent_inode)},
        {!info->otransid && !info->otime.tv_sec,
         BW_MEMBER(subvolinfo, otransid) | BW_MEMBER(subvolinfo, otime)},
        {!info->ctransid && !info->ctime.tv_sec,
         BW_MEMBER(subvolinfo, ctransid) | BW_MEMBER(subvolinfo, ctime)},
        {!info->stransid && !info->stime.tv_sec,
         BW_MEMBER(subvolinfo, stransid) | BW_MEMBER(subvolinfo, stime)},
        {!info->rtransid && !info->rtime.tv_sec,
         BW_MEMBER(subvolinfo, rtransid) | BW_MEMBER(subvolinfo, rtime)},
    };
    uint64_t absent = 0;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        absent |= groups[i].absent ? groups[i].members : 0;
    return absent;
}

static struct bw_error *write_row(struct cmd_answer *answer, const struct bw_subvolume_info *info,
                                  const char *attributes)
{
    const struct bw_bytes path = {info->path, info->path_length};
    const struct bw_subvolinfo row = {
        .subvolume = info->id,
        .generation = info->generation,
        .parent_subvolume = info->parent,
        .subvolume_path = path,
        .subvolume_path_bytes = path,
        .attributes = attributes,
        .ro = info->read_only,
        .snapshot = info->is_snapshot,
        .is_default = info->is_default,
        .deleted = info->is_deleted,
        .uuid = uuid_of(info->uuid),
        .parent_uuid = uuid_of(info->parent_uuid),
        .received_uuid = uuid_of(info->received_uuid),
        .otime = bw_time_nanoseconds(&info->otime),
        .ctime = bw_time_nanoseconds(&info->ctime),
        .stime = bw_time_nanoseconds(&info->stime),
        .rtime = bw_time_nanoseconds(&info->rtime),
        .otransid = info->otransid,
        .ctransid = info->ctransid,
        .stransid = info->stransid,
        .rtransid = info->rtransid,
        .flags = info->flags,
        .bytes_used = info->bytes_used,
        .level = info->level,
        .root = info->root,
        .last_snapshot = info->last_snapshot,
        .parent_inode = info->directory,
    };
    return cmd_answer_write(answer, &row, sizeof row, absent_members(info));
}

static struct bw_error *write_subvolume(void *context, const struct bw_subvolume_info *info)
{
    struct subvolumes *subvolumes = context;
    char text[ATTRIBUTES_ROOM];
    if (!is_wanted(subvolumes->state, info))
        return NULL;
    const char *attributes = attributes_of(info, text);
    return subvolumes->state->tree ? subvolume_tree_add(&subvolumes->tree, info, attributes)
                                   : write_row(subvolumes->answer, info, attributes);
}

/* Looks up paths only if a selected column needs them. */
static struct bw_error *list(struct cmd_answer *answer, void *context)
{
    const struct subvolumes_state *state = context;
    struct subvolumes subvolumes = {.state = state, .answer = answer};
    const char *columns = answer->settings.columns;
    bool paths = !columns || strstr(columns, "path");
    struct bw_error *error =
        bw_fs_subvolumes(answer->session.fs, paths, write_subvolume, &subvolumes);
    if (!error && state->tree)
        error = subvolume_tree_write(&subvolumes.tree, &answer->output);
    subvolume_tree_free(&subvolumes.tree);
    return error;
}

static const struct subvolumes_state all;

const struct cmd_answer_plan cmd_subvolumes_plan = {
    .record = "subvolinfo",
    .columns = "subvolume,generation,parent_subvolume,otime,attributes,subvolume_path",
    .list = list,
    .context = (void *)(uintptr_t)&all,
};

static int run(const struct cmd_common *common, void *state)
{
    const struct subvolumes_state *subvolumes = state;
    struct cmd_answer_plan plan = cmd_subvolumes_plan;
    plan.context = state;
    if (subvolumes->tree)
        plan.columns = NULL;
    if (subvolumes->tree && !cmd_answer_is_for_people(common))
        return cmd_fail(common, bw_error_create(BW_ERROR_USAGE, "--tree excludes -o and --json"));
    return cmd_answer_run(common, &plan);
}

const struct command cmd_subvolumes = {
    .name = "subvolumes",
    .topic = cmd_topic_subvolumes,
    .operands = "IMAGE...",
    .summary = "Lists the subvolumes and snapshots of a file system.",
    .details =
        "\n"
        "Subvolumes are sorted by id, the top-level subvolume (id 5) first. Paths begin at the\n"
        "top-level subvolume. The columns include everything that 'btrfs subvolume list\n"
        "-apcuqR' prints: parent_subvolume is its 'parent' and 'top level', generation its\n"
        "'gen', otransid its 'cgen'. Subvolumes that are being deleted have no path and are\n"
        "listed only with --deleted.\n",
    .examples =
        "  btrfs-walk subvolumes disk.img                    a table\n"
        "  btrfs-walk subvolumes --tree disk.img             as a tree\n"
        "  btrfs-walk subvolumes -o subvolume,subvolume_path --snapshots disk.img  snapshots only\n"
        "  btrfs-walk subvolumes --json disk.img | jq .uuid  for programs\n",
    .options = options,
    .record = "subvolinfo",
    .sorts_rows = true,
    .run = run,
    .state_size = sizeof(struct subvolumes_state),
};
