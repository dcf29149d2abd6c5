/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that can be read only if wrong checksums of tree blocks are ignored: the kernel's mount
 * option rescue=all shows them.
 *
 * If tree blocks are lost, the file system is opened a second time, and accepts blocks with a wrong
 * checksum that pass all other checks. Its files are compared with those of the first time: a file
 * that could be read then, as the same version, is verified and of no interest here. The others are
 * read. They never replace a verified older version, which an older generation may have; both are
 * saved. Directories count, too, since they may be empty; and of files with lost ranges, those of
 * which more can be read than without these blocks.
 */
#include "cli/rescue/rescue.h"

#include <sys/stat.h>

#include "base/cleanup.h"
#include "cli/common/monitor.h"

struct unverified {
    struct rescue_reading now; /* the current file; the first member */
    struct rescue *rescue;
    struct bw_fs *fs;
    struct cmd_export export;
    struct bw_data_reader *reader; /* NULL until it is needed */
};

/* Whether a file was read completely without these blocks, as the same version. */
static bool is_verified(struct rescue *rescue, const struct bw_export_entry *item)
{
    struct bw_place place;
    struct bw_inode inode = {0};
    if (rescue_find_missed(rescue, item->path.data, item->path.length))
        return false;
    BW_AUTO_ERROR struct bw_error *error =
        bw_lookup(rescue->fs, NULL, item->path.data, false, &place);
    if (!error)
        error = bw_inode_get(rescue->fs, &place, &inode);
    rescue_note_memory(rescue, error);
    return !error && place.inode == item->place.inode && inode.size == item->inode.size &&
           inode.generation == item->inode.generation && inode.transid == item->inode.transid;
}

static struct bw_error *next(void *context, struct bw_stream_file *file, bool *got)
{
    struct unverified *unverified = context;
    struct bw_export_entry *item;
    BW_TRY(cmd_export_next_item(&unverified->export, &item));
    while (item && is_verified(unverified->rescue, item)) {
        bw_entry_queue_release(unverified->export.queue, item);
        BW_TRY(cmd_export_next_item(&unverified->export, &item));
    }
    *got = item;
    if (!item)
        return NULL;
    item->skipped = unverified->rescue->settings->no_data;
    *file = bw_export_entry_stream_file(item);
    return NULL;
}

/* Whether an item can be read. Data whose checksums are lost are read when they are saved. */
static bool is_readable(struct unverified *unverified, const struct bw_export_entry *item)
{
    if (!item->has_inode || !item->type)
        return false;
    if (item->type != S_IFLNK)
        return unverified->now.read.bad == unverified->now.read.unchecked;
    BW_AUTO_FREE char *target = NULL;
    BW_AUTO_ERROR struct bw_error *error =
        bw_inode_readlink(unverified->fs, &item->place, &target, NULL);
    rescue_note_memory(unverified->rescue, error);
    return !error;
}

/* Counts a file with lost ranges, unless no more of it can be read than without these blocks. */
static struct bw_error *count_remains(struct unverified *unverified,
                                      const struct bw_export_entry *item)
{
    struct rescue *rescue = unverified->rescue;
    const struct bw_recoverable *read = &unverified->now.read;
    const struct rescue_missed *without =
        rescue_find_missed(rescue, item->path.data, item->path.length);
    struct bw_recoverable as_is = {.bad = unverified->now.other_bad};
    if (without && without->has_inode && read->bad >= without->bad)
        return NULL;
    if (!as_is.bad)
        BW_TRY(rescue_read_as_is(unverified->fs, &unverified->reader, item, &as_is));
    rescue->mismatched_files += !as_is.bad;
    rescue->plan.accepts_partly |= read->good || !as_is.bad;
    return rescue_count_accepted(rescue, item, bw_recoverable_kind(read, false), read);
}

static struct bw_error *finish(void *context, const struct bw_stream_file *file, bool complete)
{
    struct unverified *unverified = context;
    struct bw_export_entry *item = file->user;
    struct bw_error *error = NULL;
    if (complete && is_readable(unverified, item))
        error = rescue_count_accepted(unverified->rescue, item, BW_RECOVERABLE_UNVERIFIED,
                                      &(struct bw_recoverable){0});
    else if (complete && item->type == S_IFREG && item->has_inode)
        error = count_remains(unverified, item);
    unverified->now = (struct rescue_reading){0};
    bw_entry_queue_release(unverified->export.queue, item);
    return error;
}

struct bw_error *rescue_find_unverified(struct rescue *rescue)
{
    struct cmd_common quiet = rescue->common;
    struct unverified unverified = {
        .rescue = rescue,
        .export = {.common = &quiet, .settings = &rescue->settings->export},
    };
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = rescue->settings->export.walk.threads,
                                     .next = next,
                                     .visit = rescue_visit_part,
                                     .finish = finish,
                                     .context = &unverified,
                                     .held = bw_export_entry_held};
    if (!bw_fs_status(rescue->fs).damages && rescue_total(rescue).is_readable &&
        !rescue_is_older(rescue))
        return NULL;
    quiet.messages.quiet = true;
    struct bw_error *error = rescue_open_unverified(rescue, &unverified.fs);
    if (error)
        return bw_error_tolerate(error);
    rescue->plan.accepts_newer =
        bw_fs_status(unverified.fs).generation > bw_fs_status(rescue->fs).generation;
    unverified.export.session.fs = unverified.fs;
    error = rescue_add_subvolumes(rescue, unverified.fs);
    if (!error)
        error = cmd_export_start(&unverified.export, BW_WALK_ALL, 0);
    if (!error)
        error = bw_stream_run(unverified.fs, &stream);
    cmd_export_stop(&unverified.export);
    bw_data_reader_destroy(unverified.reader);
    bw_fs_close(unverified.fs);
    return error;
}
