/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The qgroups command: quota groups, as `btrfs qgroup show -pcre` shows them, and their state. */
#include "btrfs-walk/subvolume.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "btrfs-walk/records.h"
#include "cli/common/output_format.h"

struct qgroups_state {
    bool status;
};

static const struct cmd_option options[] = {
    {0, "status", NULL, "print the quota status instead of the groups",
     CMD_FLAG(struct qgroups_state, status)},
    {0},
};

static struct bw_error *write_status(struct cmd_format *format, void *context)
{
    struct bw_quota_status status;
    (void)context;
    BW_TRY(bw_fs_quota_status(format->session.fs, &status));
    struct bw_quotainfo row = {
        .generation = cmd_if_known(status.is_known, status.generation),
        .enable_generation = cmd_if_known(status.enable_generation, status.enable_generation),
        .rescan_logical = cmd_if_known(status.is_known && status.rescanning, status.rescan),
        .flags = cmd_if_known(status.is_known, status.flags),
        .format_version = cmd_if_known(status.is_known, status.version)};
    if (!status.exists)
        row.quota_mode = "none";
    else if (status.is_known && !status.enabled)
        row.quota_mode = "off";
    else if (status.is_known)
        row.quota_mode = status.simple ? "simple" : "full";
    if (status.is_known && status.rescanning)
        row.quota_state = "rescanning";
    else if (status.is_known)
        row.quota_state = status.inconsistent ? "inconsistent" : "consistent";
    return cmd_format_write(format, &row, sizeof row);
}

/* Appends ids separated by commas; returns their offset in `words`. Pointers would become invalid
 * while the buffer grows. */
static size_t add_ids(struct bw_buffer *words, const uint64_t *ids, size_t count)
{
    size_t place = words->length;
    for (size_t i = 0; i < count; i++)
        bw_buffer_format(words, "%s%" PRIu64 "/%" PRIu64, i ? "," : "", BW_QGROUP_LEVEL(ids[i]),
                         BW_QGROUP_NUMBER(ids[i]));
    bw_buffer_append_byte(words, '\0');
    return place;
}

static const char *text_at(const struct bw_buffer *words, size_t place)
{
    return words->data[place] ? words->data + place : NULL;
}

static struct bw_error *write_groups(struct cmd_format *format, void *context)
{
    (void)context;
    BW_AUTO_BUFFER struct bw_buffer words = {0};
    const char *columns = format->settings.columns;
    bool paths = !columns || strstr(columns, "path");
    /* Warns, as btrfs-progs do, when the numbers of quota groups are unreliable. */
    struct bw_quota_status status;
    BW_TRY(bw_fs_quota_status(format->session.fs, &status));
    const char *warning = NULL;
    if (!status.exists)
        warning = "the file system has no quotas";
    else if (status.is_known && !status.enabled)
        warning = "quotas are turned off";
    else if (status.is_known && status.rescanning)
        warning = "the numbers of quota groups are incomplete: a rescan is in progress";
    else if (status.is_known && status.inconsistent)
        warning = "the numbers of quota groups are inconsistent: they need a rescan";
    if (warning)
        bw_fs_report(format->session.fs, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT, "%s", warning));
    struct bw_qgroups *qgroups;
    struct bw_error *error = bw_qgroups_open(format->session.fs, paths, &qgroups);
    for (const struct bw_qgroup_info *info; !error && (info = bw_qgroups_next(qgroups));) {
        words.length = 0;
        const size_t id = add_ids(&words, &info->id, 1);
        const size_t parents = add_ids(&words, info->parents, info->parent_count);
        const size_t members = add_ids(&words, info->members, info->member_count);
        if (words.failed) {
            error = bw_error_no_memory();
            break;
        }
        const struct bw_bytes path = {info->path, info->path_length};
        const bool is_counted = info->is_counted;
        const uint64_t limits = info->limits;
        const struct bw_qgroupinfo row = {
            .qgroup = text_at(&words, id),
            .referenced = cmd_if_known(is_counted, info->referenced),
            .exclusive = cmd_if_known(is_counted, info->exclusive),
            .max_referenced =
                cmd_if_known(limits & BW_QGROUP_LIMITS_REFERENCED, info->max_referenced),
            .max_exclusive = cmd_if_known(limits & BW_QGROUP_LIMITS_EXCLUSIVE, info->max_exclusive),
            .parent_qgroups = text_at(&words, parents),
            .child_qgroups = text_at(&words, members),
            .subvolume_path = path,
            .subvolume_path_bytes = path,
            .qgroup_level = info->level,
            .qgroup_number = info->number,
            .generation = cmd_if_known(is_counted, info->generation),
            .referenced_compressed = cmd_if_known(is_counted, info->referenced_compressed),
            .exclusive_compressed = cmd_if_known(is_counted, info->exclusive_compressed),
            .limit_flags = limits,
        };
        error = cmd_format_write(format, &row, sizeof row);
    }
    return bw_error_first(error, bw_qgroups_close(qgroups));
}

static struct cmd_format_plan plan_of(const void *state)
{
    const struct qgroups_state *qgroups = state;
    if (qgroups->status)
        return (struct cmd_format_plan){.record = "quotainfo",
                                        .columns = "quota_mode,quota_state,generation",
                                        .list = write_status};
    return (struct cmd_format_plan){
        .columns = "qgroup,referenced,exclusive,max_referenced,max_exclusive,parent_qgroups,"
                   "child_qgroups,subvolume_path",
        .list = write_groups};
}

const struct command cmd_qgroups = {
    .name = "qgroups",
    .topic = cmd_topic_space,
    .operands = "IMAGE...",
    .summary = "Lists quota groups with their usage and limits.",
    .details =
        "\n"
        "Both full and simple quotas are supported. The columns are those of 'btrfs qgroup\n"
        "show -pcre'; '-' means no limit or no relation. A message on stderr reports if there\n"
        "are no quotas, if they are off, or if they need a rescan; the exit status is 0.\n"
        "--status prints the mode (none, off, full, simple), the state (consistent,\n"
        "rescanning, inconsistent) and the generation; with --json, all "
        "details.\n",
    .examples = "  btrfs-walk qgroups disk.img                       a table\n"
                "  btrfs-walk qgroups -o qgroup,referenced disk.img  two columns, in bytes\n"
                "  btrfs-walk qgroups --status --json disk.img       are the numbers consistent?\n",
    .options = options,
    .record = "qgroupinfo",
    .sorts_rows = true,
    .plan_of = plan_of,
    .state_size = sizeof(struct qgroups_state),
};
