/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The comparison with a list: a separate pass after the library's passes, by bw_diff(), of which
 * every difference is a finding. Unlike the check, it reads the files as after a mount, with the
 * log replayed, unless --log=ignore is given.
 */
#include "cli/check/check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "btrfs-walk/diff.h"
#include "btrfs-walk/walk.h"
#include "cli/common/list_file.h"

/* A running comparison. */
struct comparison {
    struct check_run *check;
    struct bw_fs *fs;
    char *top; /* path of the subvolume of --subvol; NULL for the top-level subvolume */
    struct bw_buffer message, path;
};

static void add_text(struct bw_buffer *message, const char *attribute, const char *value,
                     const char *wanted)
{
    bw_buffer_format(message, "%s%s is %s, not %s", message->length ? ", " : "", attribute, value,
                     wanted);
}

/* Appends the facts in which a file and its line differ. */
static void add_facts(struct bw_buffer *message, const struct bw_diff_entry *file,
                      const struct bw_diff_entry *line)
{
    const unsigned known = file->known & line->known;
    const struct {
        unsigned fact;
        const char *name;
        uint64_t value, wanted;
    } numbers[] = {{BW_KNOWS_UID, "uid", file->uid, line->uid},
                   {BW_KNOWS_GID, "gid", file->gid, line->gid},
                   {BW_KNOWS_LINKS, "nlink", file->links, line->links},
                   {BW_KNOWS_SIZE, "size", file->size, line->size},
                   {BW_KNOWS_DEVICE, "major", file->major, line->major},
                   {BW_KNOWS_DEVICE, "minor", file->minor, line->minor}};
    const struct timespec time = file->mtime, wanted = line->mtime;
    if (known & BW_KNOWS_MODE && file->mode != line->mode)
        bw_buffer_format(message, "mode is %04" PRIo32 ", not %04" PRIo32, file->mode, line->mode);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (known & numbers[i].fact && numbers[i].value != numbers[i].wanted)
            bw_buffer_format(message, "%s%s is %" PRIu64 ", not %" PRIu64,
                             message->length ? ", " : "", numbers[i].name, numbers[i].value,
                             numbers[i].wanted);
    if (known & BW_KNOWS_TIME && (time.tv_sec != wanted.tv_sec || time.tv_nsec != wanted.tv_nsec))
        bw_buffer_format(message, "%stime is %" PRId64 ".%09ld, not %" PRId64 ".%09ld",
                         message->length ? ", " : "", (int64_t)time.tv_sec, time.tv_nsec,
                         (int64_t)wanted.tv_sec, wanted.tv_nsec);
    if (file->target && line->target && strcmp(file->target, line->target) != 0)
        add_text(message, "link", file->target, line->target);
    if (file->hash && line->hash && strcasecmp(file->hash, line->hash) != 0)
        add_text(message, file->hash_name, file->hash, line->hash);
}

static struct bw_error *on_difference(void *context, const struct bw_difference *difference)
{
    struct comparison *comparison = context;
    struct bw_buffer *message = &comparison->message, *path = &comparison->path;
    const struct bw_diff_entry *file = difference->old_entry, *line = difference->entry;
    const char *code = "manifest-changed";
    const char *reason = "it cannot be read";
    message->length = path->length = 0;
    if (difference->status == BW_DIFFERENCE_ADDED) {
        code = "manifest-missing";
        bw_buffer_format(message, "line %u of the list has it", line->line);
    } else if (difference->status == BW_DIFFERENCE_DELETED) {
        code = "manifest-extra";
        reason = "it is not in the list";
    } else if (difference->status == BW_DIFFERENCE_TYPE) {
        add_text(message, "type", bw_file_type_name(file->type), bw_file_type_name(line->type));
    } else {
        if (file && line && difference->changes)
            add_facts(message, file, line);
        if (difference->unknown)
            bw_buffer_format(message, "%sits data cannot be read", message->length ? ", " : "");
    }
    if (!message->length)
        bw_buffer_append(message, reason, strlen(reason));
    bw_buffer_append_byte(message, '\0');
    if (comparison->top)
        bw_buffer_append(path, comparison->top, strlen(comparison->top));
    if (!path->length || difference->path_length > 1)
        bw_buffer_append(path, difference->path, difference->path_length);
    if (message->failed || path->failed)
        return bw_error_no_memory();
    struct bw_place place = {.inode = difference->old_inode, .type = difference->old_type};
    if (difference->old_subvolume)
        place.subvolume = bw_subvolume_by_id(comparison->fs, difference->old_subvolume);
    return check_report_difference(comparison->check, code,
                                   (struct bw_bytes){path->data, path->length}, message->data,
                                   place.subvolume && place.inode ? &place : NULL);
}

static bool should_continue(void *context)
{
    (void)context;
    return !check_is_stopped();
}

struct bw_error *check_read_list(struct check_run *check)
{
    return cmd_read_list(check->common, check->settings->manifest, &check->list);
}

/* Opens the file system again with its log replayed, because the list describes the files as after
 * a mount; finds the subvolume and its path; and compares. */
struct bw_error *check_compare(struct check_run *check)
{
    const struct check_arguments *settings = check->settings;
    const struct cmd_common *common = check->common;
    struct comparison comparison = {.check = check, .fs = check->session.fs};
    struct bw_diff_side sides[2] = {{.list = NULL}, {.list = check->list}};
    struct bw_fs *replayed = NULL;
    struct bw_error *error = NULL;
    check_begin_pass(check, "manifest");
    check->list_compared = true;
    if (bw_fs_status(comparison.fs).log_tree &&
        !(common->input.log_given && common->input.fs.log == BW_LOG_IGNORE)) {
        struct bw_fs_options options = cmd_fs_options(common);
        options.log = BW_LOG_REPLAY;
        options.reporter.report = NULL;
        error = bw_fs_open(&options, &replayed);
        comparison.fs = replayed;
    }
    if (!error)
        error = bw_subvolume_by_name(comparison.fs, settings->subvolume ? settings->subvolume : "/",
                                     &sides[0].subvolume);

    /* There is no path for the top-level subvolume, nor for an unreachable one. */
    if (!error) {
        size_t length;
        BW_AUTO_ERROR struct bw_error *unknown =
            bw_subvolume_path(comparison.fs, sides[0].subvolume, &comparison.top, &length);
        if (unknown && unknown->code == BW_ERROR_NO_MEMORY)
            error = BW_TAKE(unknown);
        else if (!unknown && length <= 1)
            free(BW_TAKE(comparison.top));
    }
    if (!error) {
        const struct bw_diff_options how = {
            .struct_size = sizeof how,
            .nested = settings->nested == BW_NESTED_ENTER ||
                      (settings->nested == BW_NESTED_DEFAULT && !settings->subvolume),
            .no_snapshots = settings->no_snapshots,
            .threads = settings->threads,
            .visit = on_difference,
            .context = &comparison,
            .proceed = should_continue,
        };
        struct bw_diff_summary summary = {0};
        sides[0].fs = comparison.fs;
        error = bw_diff(&sides[0], &sides[1], &how, &summary);
        check->compared = summary.entries[1];
    }
    bw_buffer_free(&comparison.message);
    bw_buffer_free(&comparison.path);
    free(comparison.top);
    bw_fs_close(replayed);
    return error;
}
