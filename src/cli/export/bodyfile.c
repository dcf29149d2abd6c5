/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bodyfile command: a line for each file in the format of The Sleuth Kit's body file, for
 * timelines.
 *
 * The past follows the present. Deleted files are found as by the deleted command. For older
 * versions, each generation is compared with the next newer one, without the blocks that both
 * share; an inode that differs has a line with the times that it had then.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/path.h"
#include "base/utf8.h"
#include "btrfs-walk/diff.h"
#include "btrfs-walk/history.h"
#include "cli/common/generations.h"
#include "cli/common/monitor.h"
#include "cli/common/paths.h"
#include "cli/export/export.h"

struct bodyfile {
    /* The options. */
    struct cmd_export_settings settings;
    struct cmd_generations_settings scan;
    bool deleted, versions;

    /* While it runs. */
    struct cmd_export export;
    struct cmd_output output;
    struct bw_buffer line;

    /* The past. */
    struct cmd_index index;
    struct cmd_generations generations;
    struct bw_buffer below; /* PATH, or empty */
    struct bw_fs *older, *newer;
    uint64_t generation;      /* of `older` */
    struct bw_buffer *prefix; /* path of the compared subvolume */
};

static const struct cmd_option options[] = {
    {0, "deleted", NULL, "add deleted files that older generations contain",
     CMD_FLAG(struct bodyfile, deleted)},
    {0, "versions", NULL, "add older versions of files that were changed",
     CMD_FLAG(struct bodyfile, versions)},
    CMD_GROUP(cmd_generations_options, struct bodyfile, scan),
    CMD_GROUP(cmd_export_options, struct bodyfile, settings),
    {0},
};

/* Appends a name. Bytes that would end a field or a line, and control characters, become \ooo; also
 * the control characters U+0080 to U+009F, in UTF-8 or as single bytes. */
static void append_name(struct bw_buffer *line, const char *bytes, size_t length)
{
    const uint8_t *next = (const uint8_t *)bytes;
    for (size_t step; length; next += step, length -= step) {
        bool plain;
        step = bw_utf8_length(next, length);
        if (step > 1) {
            plain = *next != 0xc2 || next[1] >= 0xa0;
        } else {
            step = 1;
            plain =
                *next >= ' ' && (*next < 0x7f || *next >= 0xa0) && *next != '|' && *next != '\\';
        }
        if (plain)
            bw_buffer_append(line, next, step);
        for (size_t i = 0; i < step && !plain; i++)
            bw_buffer_format(line, "\\%03o", next[i]);
    }
}

/* Writes the line of an entry of a file system; `remark` follows the name. */
static struct bw_error *write_line(struct bodyfile *bodyfile, struct bw_fs *fs,
                                   const struct bw_export_entry *item, const char *remark)
{
    struct bw_buffer *line = &bodyfile->line;
    const struct bw_inode *inode = &item->inode;
    line->length = 0;
    bw_buffer_format(line, "0|");
    append_name(line, item->path.data, item->path.length);
    if (item->type == S_IFLNK && item->has_inode) {
        BW_AUTO_FREE char *target = NULL;
        size_t length = 0;
        struct bw_error *error =
            bw_image_error(bw_inode_readlink(fs, &item->place, &target, &length));
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        bw_buffer_format(line, " -> ");
        append_name(line, target, length);
        if (error)
            cmd_export_miss(&bodyfile->export, bw_error_prefix(error, "%s", item->path.data));
    }
    bw_buffer_format(line, "%s", remark);

    /* The type is a letter as in the mode, but 'r' for a file, and '-' if it is unknown. */
    char type[BW_MODE_LENGTH], mode[BW_MODE_LENGTH + 1];
    bw_write_mode(type, item->type);
    *bw_write_mode(mode, inode->mode) = '\0';
    char letter = *type;
    if (item->type == S_IFREG)
        letter = 'r';
    else if (letter == '?')
        letter = '-';
    bw_buffer_format(line, "|%" PRIu64 "-%" PRIu64 "|%c/%c%s",
                     bw_subvolume_id(item->place.subvolume), item->place.inode, letter,
                     item->has_inode ? letter : '-', mode + 1);
    bw_buffer_format(line, "|%" PRIu32 "|%" PRIu32 "|%" PRIu64, inode->uid, inode->gid,
                     inode->size);
    bw_buffer_format(line, "|%jd|%jd|%jd|%jd\n", (intmax_t)inode->atime.tv_sec,
                     (intmax_t)inode->mtime.tv_sec, (intmax_t)inode->ctime.tv_sec,
                     (intmax_t)inode->otime.tv_sec);
    return cmd_write_buffer(&bodyfile->output, line);
}

/* The past. */

/* Writes the line of an entry of an older generation. */
static struct bw_error *write_past(struct bodyfile *bodyfile, struct bw_fs *fs,
                                   const struct bw_entry *entry, const char *remark)
{
    struct bw_export_entry item = {
        .path = {.data = (char *)(uintptr_t)entry->path, .length = entry->path_length},
        .place = entry->place,
        .type = entry->inode->mode & S_IFMT,
        .has_inode = true,
        .inode = *entry->inode,
    };
    return write_line(bodyfile, fs, &item, remark);
}

/* Handles a deleted entry; `context` is the struct bodyfile. */
static struct bw_error *visit_deleted(void *context, const struct bw_entry *entry)
{
    struct bodyfile *bodyfile = context;
    return write_past(bodyfile, bodyfile->older, entry, " (deleted)");
}

static struct bw_error *write_deleted(struct bodyfile *bodyfile)
{
    const struct cmd_selection *selection = &bodyfile->settings.selection;
    const struct bw_deleted_options how = {
        .struct_size = sizeof how,
        .images = &bodyfile->generations.images,
        .states = bodyfile->generations.choices,
        .state_count = bodyfile->generations.count,
        .path = bodyfile->below.length ? bodyfile->below.data : NULL,
        .selection = selection->selection,
        .has_maxdepth = selection->has_maxdepth,
        .maxdepth = selection->maxdepth,
        .mindepth = selection->mindepth,
        .progress = cmd_progress_state,
    };
    struct bw_deleted *deleted;
    const struct bw_deleted_state *state = NULL;
    BW_TRY(bw_deleted_open(bodyfile->export.session.fs, &how, &deleted));
    struct bw_error *error = bw_deleted_next(deleted, &state);
    while (!error && state) {
        bodyfile->older = state->fs;
        error = bw_deleted_visit(deleted, selection->types, visit_deleted, bodyfile);
        if (!error)
            error = bw_deleted_next(deleted, &state);
    }
    bw_deleted_close(deleted);
    return error;
}

static bool has_same_times(const struct bw_inode *one, const struct bw_inode *other)
{
    return bw_time_nanoseconds(&one->mtime) == bw_time_nanoseconds(&other->mtime) &&
           bw_time_nanoseconds(&one->ctime) == bw_time_nanoseconds(&other->ctime) &&
           bw_time_nanoseconds(&one->atime) == bw_time_nanoseconds(&other->atime) &&
           one->size == other->size;
}

/* Handles an entry that differs in the next newer generation; `context` is the struct bodyfile. */
static struct bw_error *visit_changed(void *context, const struct bw_difference *difference)
{
    struct bodyfile *bodyfile = context;
    const struct bw_selection *selection = bodyfile->settings.selection.selection;
    const bool is_same = difference->old_inode && difference->old_inode == difference->inode &&
                         difference->old_inode != BW_EMPTY_DIRECTORY;
    if (!is_same)
        return NULL;
    struct bw_inode inode, newer;
    struct bw_place place = {
        .subvolume = bw_subvolume_by_id(bodyfile->older, difference->old_subvolume),
        .inode = difference->old_inode,
        .type = difference->old_type,
    };
    struct bw_place now = place;
    now.subvolume = bw_subvolume_by_id(bodyfile->newer, difference->subvolume);
    if (!place.subvolume || !now.subvolume)
        return NULL;
    BW_AUTO_ERROR struct bw_error *error = bw_inode_get(bodyfile->older, &place, &inode);
    if (!error)
        error = bw_inode_get(bodyfile->newer, &now, &newer);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(error);
    if (error || inode.generation != newer.generation || has_same_times(&inode, &newer))
        return NULL;

    /* The name then, from the top. */
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    bw_buffer_append(&path, bodyfile->prefix->data, bodyfile->prefix->length);
    if (difference->old_path)
        bw_buffer_append(&path, difference->old_path, difference->old_path_length);
    else
        bw_buffer_append(&path, difference->path, difference->path_length);
    /* The path of a subvolume in itself is "/". */
    if (path.length > 1 && path.data[path.length - 1] == '/')
        path.length--;
    bw_buffer_append_byte(&path, '\0');
    BW_TRY(bw_buffer_error(&path));
    const struct bw_entry entry = {
        .path = path.data, .path_length = path.length - 1, .place = place, .inode = &inode};
    const struct bw_buffer *below = &bodyfile->below;
    if (below->length > 1 &&
        (strncmp(entry.path, below->data, below->length) != 0 ||
         (entry.path_length > below->length && entry.path[below->length] != '/')))
        return NULL;
    if (selection && (bw_selection_excludes_entry(selection, &entry) ||
                      !bw_selection_accepts_name(selection, &entry) ||
                      !bw_selection_accepts_inode(selection, &entry)))
        return NULL;
    char remark[48];
    snprintf(remark, sizeof remark, " (generation %" PRIu64 ")", bodyfile->generation);
    return write_past(bodyfile, bodyfile->older, &entry, remark);
}

/* Compares two generations, subvolume by subvolume. */
static struct bw_error *write_changed(struct bodyfile *bodyfile)
{
    const struct bw_subvolume *next = NULL;
    while ((next = bw_subvolume_next(bodyfile->older, next))) {
        BW_AUTO_FREE char *text = NULL;
        size_t length = 0;
        struct bw_error *error = bw_subvolume_path(bodyfile->older, next, &text, &length);
        const struct bw_diff_side before = {.fs = bodyfile->older, .subvolume = next};
        const struct bw_diff_side after = {
            .fs = bodyfile->newer,
            .subvolume = bw_subvolume_by_id(bodyfile->newer, bw_subvolume_id(next))};
        struct bw_buffer prefix = {.data = text, .length = length > 1 ? length : 0};
        bodyfile->prefix = &prefix;
        const struct bw_diff_options how = {
            .struct_size = sizeof how,
            .states = true,
            .reading = BW_DIFF_READ_NEVER,
            .threads = bodyfile->settings.walk.threads,
            .visit = visit_changed,
            .context = bodyfile,
        };
        if (!error && after.subvolume)
            error = bw_diff(&before, &after, &how, NULL);
        if (error && (error->code == BW_ERROR_NO_MEMORY || error->code == BW_ERROR_SYSTEM ||
                      error->code == BW_ERROR_STOPPED))
            return error;
        bw_error_free(error); /* lost: it has no lines */
    }
    return NULL;
}

static struct bw_error *write_versions(struct bodyfile *bodyfile)
{
    struct bw_fs *present = bodyfile->export.session.fs, *newer = present;
    struct bw_error *error = NULL;
    for (size_t i = 0; i < bodyfile->generations.count && !error; i++) {
        struct bw_fs_options images = bodyfile->generations.images;
        images.planned = NULL;
        images.state = bodyfile->generations.choices[i];
        cmd_progress_state(NULL, i + 1, bodyfile->generations.count);
        BW_AUTO_ERROR struct bw_error *unopened = bw_fs_open(&images, &bodyfile->older);
        if (unopened && unopened->code == BW_ERROR_NO_MEMORY)
            error = BW_TAKE(unopened);
        if (unopened || error)
            continue;
        bodyfile->newer = newer;
        bodyfile->generation = bw_fs_status(bodyfile->older).generation;
        error = write_changed(bodyfile);
        if (newer != present)
            bw_fs_close(newer);
        newer = bodyfile->older;
    }
    if (newer != present)
        bw_fs_close(newer);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    struct bodyfile *bodyfile = state;
    struct cmd_common own = *common;
    const bool has_past = bodyfile->deleted || bodyfile->versions;
    struct bw_error *error = NULL;
    if (has_past && common->path_count > 1)
        error = bw_error_create(BW_ERROR_USAGE,
                                "at most one PATH can be given with --deleted or --versions");
    if (!error && has_past && bodyfile->settings.selection.subvolume)
        error = bw_error_create(BW_ERROR_USAGE, "--subvol excludes --deleted and --versions");
    if (!error && has_past && common->path_count)
        error = cmd_paths_absolute(common->paths[0], &bodyfile->below);
    bw_buffer_append_byte(&bodyfile->below, '\0');
    bodyfile->below.length -= !bodyfile->below.failed;
    if (!error && has_past)
        error = cmd_index_begin(&bodyfile->index, common, &bodyfile->scan, &own);
    int status;
    if (error)
        status = cmd_fail(common, error);
    else
        status = cmd_export_open(&own, &bodyfile->settings, &bodyfile->export);
    if (!status) {
        struct bw_export_entry *item = NULL;
        error = cmd_export_start(&bodyfile->export, BW_WALK_ALL, 0);
        while (!error && !(error = cmd_export_next_item(&bodyfile->export, &item)) && item) {
            error = write_line(bodyfile, bodyfile->export.session.fs, item, "");
            if (!item->has_inode)
                cmd_export_report(&bodyfile->export, bw_export_entry_loss(item));
            bw_entry_queue_release(bodyfile->export.queue, item);
        }
        if (!error && has_past)
            error = cmd_generations_find(&bodyfile->index, bodyfile->export.session.fs,
                                         &bodyfile->scan, &bodyfile->generations);
        if (!error && bodyfile->deleted)
            error = write_deleted(bodyfile);
        if (!error && bodyfile->versions)
            error = write_versions(bodyfile);
        cmd_generations_free(&bodyfile->generations);
        error = bw_error_first(error, cmd_flush(&bodyfile->output));
        status = cmd_export_close(&bodyfile->export, error);
    }
    if (has_past)
        cmd_index_end(&bodyfile->index);
    bw_buffer_free(&bodyfile->line);
    bw_buffer_free(&bodyfile->below);
    return status;
}

const struct command cmd_bodyfile = {
    .name = "bodyfile",
    .topic = cmd_topic_export,
    .operands = "IMAGE [PATH]...",
    .summary = "Writes the times of all files for The Sleuth Kit.",
    .details =
        "\n"
        "Lines are MD5|name|inode|mode|UID|GID|size|atime|mtime|ctime|crtime, as mactime(1)\n"
        "reads them. The MD5 is always 0. The inode number is preceded by the id of the\n"
        "subvolume: 257-1234. In names, control characters and bytes that would end a field\n"
        "are written as \\ooo.\n\n"
        "--deleted adds files that older generations contain, and the current one lacks: their\n"
        "names end with (deleted). --versions adds a line for each file that differs in the\n"
        "next newer generation, with its times and its size then: (generation N).\n",
    .examples = "  btrfs-walk bodyfile disk.img > body                   everything\n"
                "  btrfs-walk bodyfile disk.img /home | mactime -b - -d  a timeline\n"
                "  btrfs-walk bodyfile --deleted --versions disk.img      with the past\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct bodyfile),
    .takes_paths = true,
    .takes_list = true,
};
