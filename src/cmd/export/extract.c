/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The extract command: files, folders or everything, into a folder. This file has its options and
 * the outermost steps; extract_entry.c makes what a stream delivers.
 */
#include "cmd/export/extract.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"

struct extract_state {
    struct cmd_export_settings export;
    const char *folder;
    struct bw_target_options target;
    enum cmd_on_error on_error;
};

static const struct cmd_option options[] = {
    {'C', "directory", "DEST", "write into this directory; it is created if it does not exist",
     CMD_TEXT(struct extract_state, folder)},
    {0, "skip-existing", NULL,
     "continue an extraction: files with the same size and time are left alone",
     CMD_FLAG(struct extract_state, target.skip_existing)},
    {0, "preserve", NULL,
     "also restore setuid, setgid and sticky bits, capabilities, permissions of devices, and the "
     "immutable and append-only flags",
     CMD_FLAG(struct extract_state, target.preserve)},
    {0, "on-error", "WORD",
     "at unreadable data: leave out the file (skip, the default), write zeros (zero), or stop "
     "(fail)",
     CMD_WORD(struct extract_state, on_error, cmd_on_error_words)},
    CMD_EXPORT_CHECKSUMS_OPTION(struct extract_state),
    CMD_GROUP(cmd_export_options, struct extract_state, export),
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

static void end_by_signal(int number)
{
    if (unfinished)
        bw_target_file_remove(unfinished);
    raise(number); /* which has its default action again when this returns */
}

static void catch_signals(const struct bw_target_file *file)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction ours = {.sa_handler = end_by_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;
    unfinished = file;
    for (size_t i = 0; file && i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(numbers[i], &ours, NULL);
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

static struct bw_error *count(void *context, const struct bw_entry *entry)
{
    struct cmd_progress *progress = context;
    if (!entry->inode || !S_ISREG(entry->inode->mode))
        return NULL;
    progress->total_files++;
    /* What is allocated is read; holes are not. */
    progress->total_bytes +=
        entry->inode->bytes < entry->inode->size ? entry->inode->bytes : entry->inode->size;
    return NULL;
}

/* Finds out how much there is to do, if the progress is shown. */
static void count_all(struct extract *extract)
{
    const struct bw_starts *starts = &extract->export.starts;
    struct bw_walk_options wanted = extract->export.settings->walk;
    wanted.struct_size = sizeof wanted;
    wanted.visit = count;
    wanted.visit_inodes = true;
    wanted.context = &extract->progress;
    for (size_t i = 0; extract->progress.shown && (i < starts->count || i == 0); i++) {
        wanted.start = starts->count ? starts->paths[i] : NULL;
        bw_error_free(bw_walk(extract->export.session.fs, &wanted, NULL));
    }
}

static struct bw_error *extract_files(struct extract *extract)
{
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = extract->export.settings->walk.threads,
                                     .next = extract_next,
                                     .take = extract_take,
                                     .finish = extract_finish,
                                     .context = extract,
                                     .held = cmd_export_held};
    count_all(extract);
    /* Symbolic links come last: while files are being made, none of them is there to be followed
     * by other processes. */
    BW_TRY(cmd_export_start(&extract->export, BW_WALK_ALL & ~BW_WALK_SYMLINKS, BW_WALK_SYMLINKS));
    struct bw_error *error = bw_stream_run(extract->export.session.fs, &stream);
    while (!error && extract->again)
        error = bw_stream_run(extract->export.session.fs, &stream);
    extract_drop_again(extract);
    return bw_error_first(error, extract_finish_directories(extract));
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
                " files have lost privileges or protection that --preserve keeps\n",
                extract->target.lowered);
    if (extract->target.foreign)
        fprintf(stderr,
                "btrfs-walk: note: %" PRIu64
                " files of other owners or groups are yours now: only root can "
                "restore those\n",
                extract->target.foreign);
}

static void close_folder(struct extract *extract)
{
    bw_target_close(&extract->target);
    bw_target_close(&extract->look);
}

static void free_all(struct extract *extract)
{
    bw_target_file_abandon(&extract->file);
    close_folder(extract);
    bw_links_free(&extract->links);
    pthread_mutex_destroy(&extract->lock);
    bw_made_directories_free(&extract->directories);
    bw_xattr_reader_destroy(extract->xattrs);
    bw_buffer_free(&extract->text);
}

static int extract_image(const struct cmd_common *common, struct extract_state *state,
                         struct extract *extract)
{
    state->export.salvage = state->on_error == CMD_ON_ERROR_ZERO;
    int status = cmd_export_open(common, &state->export, &extract->export);
    if (status) {
        close_folder(extract);
        return status;
    }
    extract->target.options.seed = seed_of(extract->export.session.fs);
    extract->bad = (struct cmd_bad_ranges){
        .fs = extract->export.session.fs,
        .on_error = state->on_error,
    };
    extract->file.descriptor = -1;
    bw_links_init(&extract->links);
    pthread_mutex_init(&extract->lock, NULL);
    extract->again_end = &extract->again;
    struct bw_error *error = bw_xattr_reader_create(extract->export.session.fs, &extract->xattrs);
    cmd_progress_start(&extract->progress, common->quiet);
    catch_signals(&extract->file);
    if (!error)
        error = extract_files(extract);
    catch_signals(NULL);
    cmd_progress_end(&extract->progress);
    list_missed(extract);
    status = cmd_export_close(&extract->export, error);
    free_all(extract);
    return status;
}

struct outputs {
    struct extract *extract;
    const struct extract_state *state;
};

static struct bw_error *open_folder(void *context, const struct bw_fs *planned)
{
    const struct outputs *outputs = context;
    const struct extract_state *state = outputs->state;
    (void)planned;
    BW_TRY(bw_target_open(state->folder, &state->target, &outputs->extract->target));
    return bw_target_open(state->folder, &state->target, &outputs->extract->look);
}

static int run(const struct cmd_common *common, void *settings)
{
    struct extract_state *state = settings;
    struct cmd_common writing = *common;
    if (!state->folder)
        return cmd_fail(common, bw_error_create(BW_ERROR_USAGE, "where to? -C DEST is missing"));
    struct extract *extract = calloc(1, sizeof *extract);
    if (!extract)
        return cmd_fail(common, bw_error_no_memory());
    state->target.missed = extract_miss;
    state->target.context = extract;
    writing.folder = state->folder;
    writing.open_outputs = open_folder;
    writing.outputs = &(struct outputs){extract, state};
    int status = extract_image(&writing, state, extract);
    free(extract);
    return status;
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
        "DEST it gets its whole path. Nothing is written outside of DEST, no link there is\n"
        "followed, and nothing that exists is replaced. Holes, hard links, permissions, times,\n"
        "extended attributes, access control lists and groups that the user is in are restored,\n"
        "as are flags (see chattr) that the file system of DEST supports and, by root, owners\n"
        "and device nodes. What could not be restored is listed at the end. Where a hard link\n"
        "cannot be made, the file is copied. A file gets its name when it is complete;\n"
        "--skip-existing continues an extraction that was interrupted. With --on-error=zero, a\n"
        "file whose inode is lost is restored as far as its extents are left, with a made-up\n"
        "owner, mode and times. Exit status: 0 all extracted; 1 part of it is missing; 2 wrong\n"
        "usage or not a btrfs file system; 3 a feature of the image is not supported.\n",
    .examples = "  btrfs-walk extract -C /mnt/new disk.img                  everything\n"
                "  btrfs-walk extract -C . disk.img /users/joe               a folder\n"
                "  btrfs-walk extract -C . --name '*.jpg' disk.img          some files\n"
                "  btrfs-walk extract -C /mnt/new --skip-existing disk.img  go on\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct extract_state),
    .defaults = &(const struct extract_state){.on_error = CMD_ON_ERROR_SKIP},
    .takes_paths = true,
};
