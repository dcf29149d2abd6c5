/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk command: the paths of all regular files. The default command. */
#include "btrfs-walk/walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cmd/command.h"

enum { OPTION_SUBVOLUME = 256, OPTION_NO_SNAPSHOTS, OPTION_SUMMARY };

struct walk_state {
    struct bw_walk_options options;
    bool null_terminated;
    bool summary;
};

static const struct cmd_option options[] = {
    {'0', "print0", NULL, "end each path with a NUL byte instead of a newline"},
    {OPTION_SUBVOLUME, "subvol", "NAME|ID", "list one subvolume only: its path, its id, or 'default'"},
    {OPTION_NO_SNAPSHOTS, "no-snapshots", NULL, "leave out the files of snapshots"},
    {'j', "threads", "N", "read with N threads (default: one per processor, at most 8; more pays on slow storage)"},
    {OPTION_SUMMARY, "summary", NULL, "counts, bytes of metadata read and seconds, on stderr"},
    {0},
};

static bool set(void *state, int letter, const char *argument)
{
    struct walk_state *walk = state;
    unsigned long number;
    switch (letter) {
    case '0':
        return walk->null_terminated = true;
    case OPTION_SUBVOLUME:
        walk->options.subvolume = argument;
        return *argument != '\0';
    case OPTION_NO_SNAPSHOTS:
        return walk->options.no_snapshots = true;
    case OPTION_SUMMARY:
        return walk->summary = true;
    case 'j':
        if (!cmd_parse_number(argument, 1, 32, &number))
            return false;
        walk->options.threads = (unsigned)number;
        return true;
    default:
        return false;
    }
}

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

static void print_summary(const struct bw_fs *fs, const struct bw_walk_summary *summary, double seconds)
{
    fprintf(stderr,
            "%" PRIu64 " files, %" PRIu64 " directories, %" PRIu64 " subvolumes, %" PRIu64
            " lost blocks, %" PRIu64 " bytes of metadata read, %.3f seconds\n",
            summary->files, summary->directories, summary->subvolumes, summary->lost_blocks,
            bw_fs_bytes_read(fs), seconds);
}

static struct bw_error *walk_to_stdout(struct bw_fs *fs, struct walk_state *walk,
                                       struct bw_walk_summary *summary)
{
    struct cmd_output output = {.at_once = isatty(STDOUT_FILENO)};
    walk->options.escape = !walk->null_terminated && isatty(STDOUT_FILENO);
    walk->options.terminator = walk->null_terminated ? '\0' : '\n';
    walk->options.consume = cmd_write;
    walk->options.context = &output;
    struct bw_error *error = bw_walk(fs, &walk->options, summary);
    struct bw_error *flush_error = cmd_flush(&output);
    if (!error)
        return flush_error;
    bw_error_free(flush_error);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    struct walk_state *walk = state;
    struct cmd_session session;
    struct bw_walk_summary summary;
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    int status = cmd_open(common, &session);
    if (status)
        return status;
    struct bw_error *error = walk_to_stdout(session.fs, walk, &summary);
    if (walk->summary)
        print_summary(session.fs, &summary, seconds_since(&start));
    status = cmd_close(common, &session);
    if (!error)
        return status;
    /* A disk that is full, or memory that is short, cuts the answer off; a wrong --subvol is wrong usage. */
    bool usage = error->code == BW_ERROR_NOT_FOUND || error->code == BW_ERROR_USAGE;
    status = cmd_fail(common, error);
    return usage ? status : STATUS_PARTIAL;
}

const struct command cmd_walk = {
    .name = "walk",
    .operands = "IMAGE...",
    .summary = "Prints the absolute path of every regular file of an unmounted btrfs file system.",
    .details =
        "\nIMAGE is an image file or a block device; several are the devices of one file system, in any\n"
        "order. They are opened read-only. Paths begin at the top-level subvolume (id 5) and include all\n"
        "subvolumes and snapshots. Exit status: 0 all listed; 1 part of the answer is missing; 2 wrong\n"
        "usage or not a btrfs file system; 3 a feature of the image is not supported.\n",
    .examples = "  btrfs-walk disk.img                          list all files\n"
                "  btrfs-walk -0 disk.img | xargs -0 -n1 echo   for names with any bytes\n"
                "  btrfs-walk --subvol @home /dev/sdb1          one subvolume\n"
                "  btrfs-walk --summary a.img b.img c.img       three devices of one RAID5\n",
    .options = options,
    .set = set,
    .run = run,
    .state_size = sizeof(struct walk_state),
};
