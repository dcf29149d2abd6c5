/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The extract command: files, folders or everything, into a folder. This file has its options and
 * the outermost steps; extract_entry.c makes what a stream delivers.
 */
#include "cli/export/extract.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/human.h"

const struct cmd_option extract_options[] = {
    {0, "skip-existing", NULL,
     "continue an extraction: files with the same size and time are left alone",
     CMD_FLAG(struct extract_settings, target.skip_existing)},
    {0, "preserve", NULL,
     "also restore setuid, setgid and sticky bits, capabilities, device nodes, and the "
     "immutable and append-only flags",
     CMD_FLAG(struct extract_settings, target.preserve)},
    {0, "on-error", "WORD",
     "at unreadable data: leave out the file (skip, the default), write zeros (zero), or stop "
     "(fail)",
     CMD_WORD(struct extract_settings, on_error, cmd_on_error_words)},
    {0},
};

static const struct cmd_option options[] = {
    {'C', "directory", "DEST", "write into this directory; it is created if it does not exist",
     CMD_TEXT(struct extract_settings, folder)},
    {.group = extract_options},
    CMD_GROUP(cmd_naming_options, struct extract_settings, export),
    CMD_EXPORT_CHECKSUMS_OPTION(struct extract_settings),
    CMD_GROUP(cmd_export_options, struct extract_settings, export),
    {0},
};

void extract_miss(void *context, struct bw_error *error)
{
    struct extract *extract = context;
    if (extract->missed_count++ < EXTRACT_LISTED)
        extract->missed[extract->missed_count - 1] = error;
    else
        bw_error_free(error);
}

/* An unfinished file may have a name, which is removed when a signal ends the program. */
static const struct bw_target_file *volatile unfinished;

static void remove_unfinished(void)
{
    if (unfinished)
        bw_target_file_remove(unfinished);
}

/* A number that belongs to the image. */
static uint64_t seed_of(const struct bw_fs *fs)
{
    struct bw_superblock_info superblock;
    uint64_t seed;
    bw_fs_superblock(fs, &superblock);
    memcpy(&seed, superblock.fsid, sizeof seed);
    return seed;
}

/* Symbolic links come last: while files are being made, none of them is there to be followed by
 * other processes. */
static struct bw_error *extract_files(struct extract *extract)
{
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = extract->export.settings->walk.threads,
                                     .next = extract_next,
                                     .take = extract_take,
                                     .finish = extract_finish,
                                     .context = extract,
                                     .held = cmd_export_held};
    BW_TRY(cmd_export_start(&extract->export, BW_WALK_ALL & ~BW_WALK_SYMLINKS, BW_WALK_SYMLINKS));
    struct bw_error *error = bw_stream_run(extract->export.session.fs, &stream);
    while (!error && extract->again)
        error = bw_stream_run(extract->export.session.fs, &stream);
    error = bw_error_first(error, bw_target_make_rest(&extract->maker));
    extract_drop_again(extract);
    cmd_export_stop(&extract->export);
    return bw_error_first(error, extract_finish_directories(extract));
}

struct bw_error *extract_from(struct extract *extract, struct bw_fs *fs)
{
    struct bw_fs *before = extract->export.session.fs;
    extract->export.session.fs = fs;
    extract->bad = (struct cmd_bad_ranges){.fs = before, .on_error = extract->settings->on_error};
    bw_links_init(&extract->links);
    struct bw_error *error = bw_xattr_reader_create(fs, &extract->xattrs);
    if (!error)
        error = extract_files(extract);
    bw_xattr_reader_destroy(BW_TAKE(extract->xattrs));
    bw_links_free(&extract->links);
    bw_made_directories_free(&extract->directories);
    extract->directories = (struct bw_made_directories){0};
    extract->export.session.fs = before;
    return error;
}

/* What could not be restored; what was not meant to be. */
static void list_missed(struct extract *extract)
{
    const struct cmd_common *common = extract->export.common;
    if (extract->missed_count && !common->quiet)
        fprintf(stderr, "btrfs-walk: not extracted, or only in part:\n");
    for (uint64_t i = 0; i < extract->missed_count && i < EXTRACT_LISTED; i++)
        cmd_export_miss(&extract->export, extract->missed[i]);
    if (extract->missed_count > EXTRACT_LISTED)
        fprintf(stderr, "btrfs-walk: and %" PRIu64 " more\n",
                extract->missed_count - EXTRACT_LISTED);
    if (common->quiet)
        return;
    if (extract->target.lowered)
        fprintf(stderr,
                "btrfs-walk: note: %" PRIu64
                " file%s lost privileges or protection that --preserve keeps\n",
                extract->target.lowered, extract->target.lowered == 1 ? " has" : "s have");
    if (extract->devices)
        fprintf(stderr,
                "btrfs-walk: note: %" PRIu64 " device node%s left out: --preserve makes %s\n",
                extract->devices, extract->devices == 1 ? " was" : "s were",
                extract->devices == 1 ? "it" : "them");
    if (extract->target.foreign && extract->target.options.preserve)
        fprintf(stderr,
                "btrfs-walk: note: %" PRIu64
                " file%s of other owners or groups %s yours now: only root can "
                "restore those\n",
                extract->target.foreign, bw_plural(extract->target.foreign),
                extract->target.foreign == 1 ? "is" : "are");
}

static void close_folder(struct extract *extract)
{
    extract_end_maker(extract);
    bw_target_close(&extract->target);
    bw_target_close(&extract->look);
}

static void free_all(struct extract *extract)
{
    bw_target_file_abandon(&extract->file);
    close_folder(extract);
    pthread_mutex_destroy(&extract->lock);
    bw_buffer_free(&extract->text);
}

static int extract_image(const struct cmd_common *common, struct extract_settings *settings,
                         struct extract *extract,
                         struct bw_error *(*work)(struct extract *extract, void *context),
                         void *context)
{
    settings->export.salvage = settings->on_error == CMD_ON_ERROR_ZERO;
    int status = cmd_export_open(common, &settings->export, &extract->export);
    if (status) {
        close_folder(extract);
        return status;
    }
    extract->target.options.seed = seed_of(extract->export.session.fs);
    extract->settings = settings;
    extract->file.descriptor = -1;
    pthread_mutex_init(&extract->lock, NULL);
    extract->again_end = &extract->again;
    unfinished = &extract->file;
    cmd_clean_up_on_exit(remove_unfinished);
    struct bw_error *error = work(extract, context);
    unfinished = NULL;
    cmd_progress_end();
    list_missed(extract);
    status = cmd_export_close(&extract->export, error);
    free_all(extract);
    return status;
}

struct outputs {
    const struct cmd_common *before; /* which may have outputs of its own */
    const struct cmd_common *writing;
    struct extract *extract;
    const struct extract_settings *settings;
};

static struct bw_error *open_folder(void *context, const struct bw_fs *planned)
{
    const struct outputs *outputs = context;
    const struct extract_settings *settings = outputs->settings;
    if (outputs->before->open_outputs)
        BW_TRY(outputs->before->open_outputs(outputs->before->outputs, planned));
    BW_TRY(bw_target_open(settings->folder, &settings->target, &outputs->extract->target));
    BW_TRY(bw_target_open(settings->folder, &settings->target, &outputs->extract->look));
    return extract_start_maker(outputs->writing, outputs->extract);
}

int extract_run(const struct cmd_common *common, struct extract_settings *settings,
                struct bw_error *(*work)(struct extract *extract, void *context), void *context)
{
    struct cmd_common writing = *common;
    struct extract *extract = calloc(1, sizeof *extract);
    if (!extract)
        return cmd_fail(common, bw_error_no_memory());
    settings->target.missed = extract_miss;
    settings->target.context = extract;
    extract->maker = (struct bw_target_maker){.target = &extract->target,
                                              .channel = -1,
                                              .failed = extract_other_failed,
                                              .context = extract};
    writing.folder = settings->folder;
    writing.preserves = settings->target.preserve;
    writing.open_outputs = open_folder;
    writing.outputs = &(struct outputs){common, &writing, extract, settings};
    int status = extract_image(&writing, settings, extract, work, context);
    free(extract);
    return status;
}

static struct bw_error *extract_all(struct extract *extract, void *context)
{
    (void)context;
    cmd_export_expect(&extract->export);
    return extract_from(extract, extract->export.session.fs);
}

static int run(const struct cmd_common *common, void *settings)
{
    if (!((struct extract_settings *)settings)->folder)
        return cmd_fail(common, bw_error_create(BW_ERROR_USAGE, "where to? -C DEST is missing"));
    return extract_run(common, settings, extract_all, NULL);
}

const struct command cmd_extract = {
    .name = "extract",
    .topic = cmd_topic_export,
    .operands = "-C DEST IMAGE [PATH]...",
    .summary = "Extracts files, folders, or everything, into a folder.",
    .details =
        "\n"
        "A PATH is a file, or a directory with everything in it; without one, everything is\n"
        "extracted. It starts at the top-level subvolume (id 5), or at that of --subvol; below\n"
        "DEST it gets its whole path, unless --relative or --strip-components is given. Nothing is "
        "written outside of DEST, no link there is\n"
        "followed, and nothing that exists is replaced. Holes, hard links, permissions, times,\n"
        "extended attributes, access control lists and groups that the user is in are restored,\n"
        "as are flags (see chattr) that the file system of DEST supports and, by root, owners,\n"
        "and device nodes with --preserve. What could not be restored is listed at the end. Where\n"
        "a hard link cannot be made, the file is copied. A file gets its name when it is "
        "complete;\n"
        "DEST itself gets the attributes of what is extracted into it if it is created, or with\n"
        "--preserve, unless several PATHs go into it.\n"
        "--skip-existing continues an extraction that was interrupted. With --on-error=zero, a\n"
        "file whose inode is lost is restored as far as its extents are left, with a made-up\n"
        "owner, mode and times.\n",
    .examples = "  btrfs-walk extract -C /mnt/new disk.img                  everything\n"
                "  btrfs-walk extract -C . disk.img /users/joe               a folder\n"
                "  btrfs-walk extract -C joe --relative disk.img /users/joe  what is in it\n"
                "  btrfs-walk extract --preserve --subvol @ -C /mnt/new disk.img  a root file "
                "system\n"
                "  btrfs-walk extract -C . --name '*.jpg' disk.img          some files\n"
                "  btrfs-walk extract -C /mnt/new --skip-existing disk.img  go on\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct extract_settings),
    .defaults = &(const struct extract_settings){.on_error = CMD_ON_ERROR_SKIP},
    .takes_paths = true,
    .takes_list = true,
};
