/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tar command: archives of whole trees. This file has its options and the outermost steps;
 * tar_entry.c makes entries of files.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/export/tar.h"

struct tar_state {
    struct cmd_export_settings export;
    const char *file;
    enum bw_archive_format format;
    enum cmd_on_error on_error;
};

static const char *const formats[] = {
    [BW_ARCHIVE_PAX] = "pax", [BW_ARCHIVE_CPIO] = "cpio", [BW_ARCHIVE_MTREE] = "mtree", NULL};

static const struct cmd_option options[] = {
    {'f', "file", "FILE", "write to this file instead of stdout", CMD_TEXT(struct tar_state, file)},
    {0, "format", "WORD", "pax (default), cpio (newc), or mtree (a manifest with SHA-256 sums)",
     CMD_WORD(struct tar_state, format, formats)},
    {0, "on-error", "WORD",
     "at unreadable data: stop (fail, the default), write zeros (zero), or leave out the file "
     "(skip)",
     CMD_WORD(struct tar_state, on_error, cmd_on_error_words)},
    CMD_EXPORT_CHECKSUMS_OPTION(struct tar_state),
    CMD_GROUP(cmd_export_options, struct tar_state, export),
    {0},
};

/* Where the archive goes. Whatever was in a file before is gone. */
static struct bw_error *open_output(const struct tar_state *state, struct tar *tar)
{
    struct stat status;
    tar->descriptor = STDOUT_FILENO;
    tar->name = "stdout";
    if (state->file && strcmp(state->file, "-") != 0) {
        BW_TRY(cmd_open_output(tar->export.session.fs, tar->export.common->probes.blackbox,
                               state->file, &tar->descriptor));
        tar->name = state->file;
        if (fstat(tar->descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
            ftruncate(tar->descriptor, 0))
            return bw_error_from_errno(errno, "cannot empty %s", state->file);
    }
    if (tar->format != BW_ARCHIVE_MTREE && isatty(tar->descriptor))
        return bw_error_create(
            BW_ERROR_USAGE,
            "an archive is nothing for a terminal: redirect stdout, or use -f FILE");
    return NULL;
}

static struct bw_error *write_gathered(struct tar *tar)
{
    struct bw_error *error =
        cmd_write_file(tar->descriptor, tar->name, tar->gathered.data, tar->gathered.length);
    tar->gathered.length = 0;
    return error;
}

static struct bw_error *write_bytes(void *context, const char *bytes, size_t length)
{
    enum { GATHER = 64 << 10 };
    struct tar *tar = context;
    if (tar->descriptor == STDOUT_FILENO)
        return cmd_write(&tar->output, bytes, length);
    if (tar->gathered.length + length > GATHER)
        BW_TRY(write_gathered(tar));
    if (length > GATHER)
        return cmd_write_file(tar->descriptor, tar->name, bytes, length);
    bw_buffer_append(&tar->gathered, bytes, length);
    return tar->gathered.failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *close_output(struct tar *tar)
{
    struct bw_error *error = NULL;
    if (tar->descriptor == STDOUT_FILENO)
        return cmd_flush(&tar->output);
    if (tar->descriptor >= 0) {
        error = write_gathered(tar);
        if (close(tar->descriptor) && !error)
            error = bw_error_from_errno(errno, "cannot write to %s", tar->name);
    }
    bw_buffer_free(&tar->gathered);
    return error;
}

static struct bw_error *write_archive(const struct tar_state *state, struct tar *tar)
{
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = state->export.walk.threads,
                                     .next = tar_next,
                                     .work = tar->format == BW_ARCHIVE_MTREE ? tar_work : NULL,
                                     .work_limit = CMD_HASHING_LIMIT,
                                     .take = tar_take,
                                     .finish = tar_finish,
                                     .context = tar};
    BW_TRY(bw_archive_create(tar->format, write_bytes, tar, &tar->archive));
    BW_TRY(open_output(state, tar)); /* empties a file that is there */
    BW_TRY(cmd_export_start(&tar->export, BW_WALK_ALL, 0));
    BW_TRY(bw_stream_run(tar->export.session.fs, &stream));
    BW_TRY(tar_write_directories(tar));
    return bw_archive_end(tar->archive);
}

static int run(const struct cmd_common *common, void *settings)
{
    struct tar_state *state = settings;
    struct tar tar = {.descriptor = -1, .format = state->format};
    state->export.salvage = state->on_error == CMD_ON_ERROR_ZERO;
    int status = cmd_export_open(common, &state->export, &tar.export);
    if (status)
        return status;
    struct bw_error *error = tar_init(&tar, state->on_error);
    if (!error)
        error = write_archive(state, &tar);
    bool usage = error && error->code == BW_ERROR_USAGE;
    if (tar.again)
        bw_feed_release(tar.export.feed, tar.again);
    struct bw_error *last = close_output(&tar);
    if (error)
        bw_error_free(last);
    else
        error = last;
    status = cmd_export_close(&tar.export, error);
    tar_free(&tar);
    return usage ? STATUS_CANNOT : status;
}

const struct command cmd_tar = {
    .name = "tar",
    .operands = "IMAGE [PATH]...",
    .summary = "Writes an archive of files, folders, or everything.",
    .details =
        "\n"
        "A PATH is a file, or a directory with everything in it; without one, everything is\n"
        "archived. It starts at the top-level subvolume (id 5), or at that of --subvol. Names in "
        "the\n"
        "archive are relative, as GNU tar makes them. A pax archive contains extended attributes,\n"
        "access control lists, holes, hard links, device nodes and times with nanoseconds; GNU "
        "tar\n"
        "restores the first two with --xattrs --acls. Sockets are left out. Data are verified "
        "against\n"
        "their checksums. With --on-error=zero, a file whose inode is lost is restored as far as "
        "its\n"
        "extents are left, with a made-up owner, mode and times. Files with more than 16 TiB of "
        "holes\n"
        "have no hash in a manifest. Exit status: 0 all written; 1 part of it is missing; 2 wrong "
        "usage\n"
        "or not a btrfs file system; 3 a feature of the image is not supported.\n",
    .examples = "  btrfs-walk tar disk.img | tar -x -C /mnt --xattrs --acls    everything\n"
                "  btrfs-walk tar disk.img /users/joe | zstd > joe.tar.zst      a folder\n"
                "  btrfs-walk tar -f etc.tar --subvol @ disk.img /etc          of a subvolume\n"
                "  btrfs-walk tar --on-error=zero disk.img > all.tar           what is left of a "
                "damaged one\n"
                "  btrfs-walk tar --format mtree disk.img                      a manifest\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct tar_state),
    .takes_paths = true,
};
