/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tar command: archives of whole trees (export/tree_archive.h). */
#include "cli/common/monitor.h"
#include "cli/export/export.h"
#include "export/tree_archive.h"

struct tar {
    /* The options. */
    struct cmd_export_settings settings;
    const char *file_name;
    struct bw_tree_archive_options archive_options;
    enum cmd_on_error on_error;
    unsigned sort;

    /* While it runs. */
    struct cmd_export export;
    struct cmd_output_file file;
};

enum { SORT_NONE, SORT_NAME };

static const char *const sorts[] = {[SORT_NONE] = "none", [SORT_NAME] = "name", NULL};

static const char *const formats[] = {[BW_ARCHIVE_PAX] = "pax", [BW_ARCHIVE_MTREE] = "mtree", NULL};

static const struct cmd_option options[] = {
    CMD_FILE_OPTION(struct tar, file_name),
    {0, "format", "WORD", "write pax (default), or mtree (a manifest with SHA-256 sums)",
     CMD_WORD(struct tar, archive_options.format, formats)},
    CMD_ON_ERROR_OPTION(struct tar, on_error, "file", "fail"),
    {0, "sort", "WORD",
     "order of the entries: none (default), or name: each directory, then everything in it",
     CMD_WORD(struct tar, sort, sorts)},
    {0, "atime", NULL, "also store access times, which reading on a mount changes",
     CMD_FLAG(struct tar, archive_options.has_atime)},
    CMD_GROUP(cmd_override_options, struct tar, archive_options),
    CMD_GROUP(cmd_naming_options, struct tar, settings),
    CMD_GROUP(cmd_export_options, struct tar, settings),
    {0},
};

/* Continues with zeros in place of an unreadable part, unless it ends the archive. */
static struct bw_error *handle_bad(void *context, const struct bw_export_entry *item,
                                   const struct bw_data_part *part)
{
    struct cmd_export *export = context;
    if (export->bad.on_error == CMD_ON_ERROR_FAIL)
        return cmd_bad_error(item->path.data, part);
    cmd_bad_add(&export->bad, item->path.data, part);
    return NULL;
}

static void release_item(void *context, struct bw_export_entry *item)
{
    struct cmd_export *export = context;
    cmd_bad_flush(&export->bad);
    bw_entry_queue_release(export->queue, item);
}

static int run(const struct cmd_common *common, void *settings)
{
    struct tar *tar = settings;
    const struct bw_walk_options *walk = &tar->settings.walk;
    struct bw_tree_archive_options *how = &tar->archive_options;
    struct cmd_export *export = &tar->export;
    const struct cmd_common writing = cmd_output_file_begin(&tar->file, common, tar->file_name);
    tar->file.binary = how->format == BW_ARCHIVE_PAX ? "an archive" : NULL;
    tar->settings.sorted = how->sorted = tar->sort == SORT_NAME;
    tar->settings.salvage = tar->on_error == CMD_ON_ERROR_ZERO;
    const int status = cmd_export_open(&writing, &tar->settings, export);
    if (status)
        return status;

    /* The walk passes each directory only once, and after its parent, unless: */
    how->passes_once = export->starts.count <= 1 && !tar->settings.naming.components &&
                       !walk->selection && !walk->mindepth;
    how->omits_damaged = tar->on_error == CMD_ON_ERROR_SKIP;
    how->threads = walk->threads;
    how->write = cmd_write;
    how->write_context = &tar->file.output;
    how->progress = cmd_progress_add;
    how->next = cmd_export_next_item;
    how->release = release_item;
    how->bad = handle_bad;
    how->missed = cmd_export_miss;
    how->lost = cmd_export_report;
    how->context = export;
    export->bad = (struct cmd_bad_ranges){
        .fs = export->session.fs, .export = export, .on_error = tar->on_error};
    struct bw_error *error = cmd_output_file_start(&tar->file);
    cmd_export_expect(export);
    if (how->format == BW_ARCHIVE_MTREE)
        bw_hash_prepare(); /* before the walk takes memory and descriptors */
    if (!error)
        error = cmd_export_start(export, BW_WALK_ALL, 0);
    if (!error)
        error = bw_tree_archive_write(export->session.fs, how);
    return cmd_export_close(export, error);
}

const struct command cmd_tar = {
    .name = "tar",
    .topic = cmd_topic_export,
    .operands = "IMAGE [PATH]...",
    .summary = "Archives files, directories or the whole file system.",
    .details =
        "\n"
        "A PATH is a file, or a directory with everything in it; without one, everything is\n"
        "archived. It starts at the top-level subvolume (id 5), or at the subvolume given\n"
        "with --subvol. Names in the archive are relative, as in archives made by GNU tar. A\n"
        "pax archive contains extended attributes, access control lists, holes, hard links,\n"
        "device nodes and times with nanoseconds; GNU tar restores the first two with\n"
        "--acls --xattrs-include='*', and without the latter no capabilities of programs.\n"
        "Sockets are skipped. Data are verified against their checksums.\n"
        "With --on-error=zero, a file whose inode is lost is restored from its remaining\n"
        "extents, with a made-up owner, mode and times. Files with more than 16 TiB of holes\n"
        "have no hash in a manifest. Archives of the same files are identical. Without\n"
        "--sort=name, a directory may come twice, which GNU tar needs and squashfs tools reject.\n",
    .examples = "  btrfs-walk tar disk.img | tar -xC /mnt --acls --xattrs-include='*'  everything\n"
                "  btrfs-walk tar disk.img /users/joe | zstd > joe.tar.zst   a directory\n"
                "  btrfs-walk tar -f etc.tar --subvol @ disk.img /etc        of a subvolume\n"
                "  btrfs-walk tar --on-error=zero disk.img > all.tar         damaged files, too\n"
                "  btrfs-walk tar --format mtree disk.img                    a manifest\n"
                "  btrfs-walk tar --sort=name disk.img | tar2sqfs a.sqfs     a squashfs image\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct tar),
    .takes_paths = true,
    .takes_list = true,
};
