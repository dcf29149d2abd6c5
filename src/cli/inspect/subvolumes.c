/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The subvolumes command: subvolumes and snapshots, as `btrfs subvolume list` shows them. */
#include <inttypes.h>
#include <stdlib.h>
#include <uuid/uuid.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/escape.h"
#include "base/vector.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/subvolume.h"
#include "cli/command.h"
#include "cli/common/output_format.h"

/* A line of --tree. In the order of paths, each subvolume follows the one it is nested in, so only
 * the chain around the current subvolume has to be searched. */
struct subvolume_branch {
    uint64_t id;
    size_t path; /* offset in the texts; its attributes follow, ended by a NUL */
    size_t path_length;
    uint32_t around; /* number of the branch around this one, plus 1; 0: none */
    uint32_t depth;
};

BW_VECTOR(subvolume_branches, struct subvolume_branch);

struct subvolumes {
    /* The options. */
    bool deleted, snapshots, read_only, tree;

    /* While it runs. */
    struct cmd_format *format;
    struct subvolume_branches branches; /* with --tree */
    struct bw_buffer texts;             /* paths and attributes of the branches */
};

static const struct cmd_option options[] = {
    {0, "deleted", NULL, "list only subvolumes that are being deleted",
     CMD_FLAG(struct subvolumes, deleted)},
    {0, "snapshots", NULL, "list only snapshots", CMD_FLAG(struct subvolumes, snapshots)},
    {0, "read-only", NULL, "list only read-only subvolumes",
     CMD_FLAG(struct subvolumes, read_only)},
    {0, "tree", NULL, "show them as a tree, in text", CMD_FLAG(struct subvolumes, tree)},
    {0},
};

/* Subvolumes without a path come last, by id. */
static int compare_paths(const void *left, const void *right, void *context)
{
    const struct subvolume_branch *a = left, *b = right;
    const char *texts = context;
    if (!a->path_length != !b->path_length)
        return a->path_length ? -1 : 1;
    const int order =
        bw_compare_paths(texts + a->path, a->path_length, texts + b->path, b->path_length);
    return order ? order : bw_compare(a->id, b->id);
}

static bool is_inside(const char *texts, const struct subvolume_branch *inner,
                      const struct subvolume_branch *outer)
{
    size_t length = outer->path_length == 1 ? 0 : outer->path_length;
    return outer->path_length && inner->path_length > outer->path_length &&
           texts[inner->path + length] == '/' &&
           memcmp(texts + inner->path, texts + outer->path, length) == 0;
}

/* Writes a line for each subvolume, by path; those without a path come last. */
static struct bw_error *write_tree(struct subvolumes *subvolumes)
{
    struct bw_buffer BW_AUTO_BUFFER line = {0};
    const char *texts = subvolumes->texts.data;
    struct subvolume_branch *branches = subvolumes->branches.items;
    const size_t count = subvolumes->branches.count;
    if (count)
        qsort_r(branches, count, sizeof *branches, compare_paths, subvolumes->texts.data);
    for (size_t i = 0; i < count; i++) {
        /* The innermost branch around this one is the previous branch, or one around that. */
        struct subvolume_branch *branch = &branches[i];
        uint32_t around = (uint32_t)i;
        while (around && !is_inside(texts, branch, &branches[around - 1]))
            around = branches[around - 1].around;
        branch->around = around;
        branch->depth = around ? branches[around - 1].depth + 1 : 0;

        /* The path relative to that branch, the id and the attributes. */
        const char *path = texts + branch->path, *attributes = path + branch->path_length;
        size_t skip = around ? branches[around - 1].path_length : 0;
        skip += skip > 1;
        line.length = 0;
        bw_buffer_format(&line, "%*s", (int)(branch->depth < 64 ? 2 * branch->depth : 128), "");
        if (branch->path_length)
            bw_escape_append(&line, path + skip, branch->path_length - skip);
        else
            bw_buffer_append_byte(&line, '-');
        bw_buffer_format(&line, "  (%" PRIu64 "%s%s)\n", branch->id, *attributes ? " " : "",
                         attributes);
        BW_TRY(cmd_write_buffer(&subvolumes->format->output, &line));
    }
    return NULL;
}

static struct bw_bytes uuid_of(const uint8_t uuid[BW_UUID_SIZE])
{
    return (struct bw_bytes){uuid_is_null(uuid) ? NULL : (const char *)uuid, BW_UUID_SIZE};
}

static struct bw_error *write_subvolume(struct subvolumes *subvolumes,
                                        const struct bw_subvolume_info *info)
{
    if (info->is_deleted != subvolumes->deleted || (subvolumes->snapshots && !info->is_snapshot) ||
        (subvolumes->read_only && !info->read_only))
        return NULL;

    /* The attributes as words. */
    const struct {
        bool applies;
        const char *word;
    } words[] = {{info->is_default, ",default"},
                 {info->read_only, ",ro"},
                 {info->is_snapshot, ",snapshot"},
                 {!uuid_is_null(info->received_uuid), ",received"},
                 {info->is_deleted, ",deleted"}};
    char text[64], *end = text;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].applies)
            end = stpcpy(end, words[i].word);
    const char *attributes = end == text ? NULL : text + 1;

    if (subvolumes->tree) {
        struct bw_buffer *texts = &subvolumes->texts;
        const struct subvolume_branch branch = {
            .id = info->id, .path = texts->length, .path_length = info->path_length};
        bw_buffer_append(texts, info->path, info->path_length);
        bw_buffer_format(texts, "%s%c", attributes ? attributes : "", '\0');
        BW_TRY(bw_buffer_error(texts));
        return subvolume_branches_push(&subvolumes->branches, branch);
    }
    const struct bw_bytes path = {info->path, info->path_length};
    struct bw_subvolinfo row = {
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

    /* Members that old root items lack, and times of operations that never happened. */
    if (!info->parent)
        row.parent_subvolume = row.parent_inode = BW_ABSENT;
    const struct {
        uint64_t *generation;
        int64_t *time;
    } operations[] = {{&row.otransid, &row.otime},
                      {&row.ctransid, &row.ctime},
                      {&row.stransid, &row.stime},
                      {&row.rtransid, &row.rtime}};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        if (!*operations[i].generation && !*operations[i].time) {
            *operations[i].generation = BW_ABSENT;
            *operations[i].time = BW_ABSENT_SIGNED;
        }
    return cmd_format_write(subvolumes->format, &row, sizeof row);
}

/* Looks up paths only if a selected column needs them. */
static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct subvolumes *subvolumes = context;
    const char *columns = format->settings.columns;
    bool paths = !columns || strstr(columns, "path");
    struct bw_subvolume_infos *infos;
    subvolumes->format = format;
    struct bw_error *error = bw_subvolume_infos_open(format->session.fs, paths, &infos);
    for (const struct bw_subvolume_info *info; !error && (info = bw_subvolume_infos_next(infos));)
        error = write_subvolume(subvolumes, info);
    error = bw_error_first(error, bw_subvolume_infos_close(infos));
    if (!error && subvolumes->tree)
        error = write_tree(subvolumes);
    subvolume_branches_free(&subvolumes->branches);
    bw_buffer_free(&subvolumes->texts);
    return error;
}

static struct cmd_format_plan plan_of(const void *state)
{
    const struct subvolumes *subvolumes = state;
    const char *columns = "subvolume,generation,parent_subvolume,otime,attributes,subvolume_path";
    return (struct cmd_format_plan){.columns = subvolumes->tree ? NULL : columns, .list = list};
}

static const char *find_mistake(const struct cmd_common *common, const void *state)
{
    const struct subvolumes *subvolumes = state;
    const bool excludes = subvolumes->tree && !cmd_format_is_for_people(common);
    return excludes ? "--tree excludes -o and --json" : NULL;
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
    .plan_of = plan_of,
    .find_mistake = find_mistake,
    .state_size = sizeof(struct subvolumes),
};
