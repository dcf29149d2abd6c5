/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The metadump command: tree blocks without contents, in the format of btrfs-image. The library
 * reads, cleans and compresses them (trees/metadump_writer.c); here are the options and the file.
 */
#include <string.h>

#include "base/cleanup.h"
#include "btrfs-walk/tree.h"
#include "cli/command.h"
#include "cli/common/monitor.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"

struct metadump_state {
    const char *file;
    unsigned compression;
    bool checksums, sanitize;
};

static const struct cmd_option options[] = {
    CMD_FILE_OPTION(struct metadump_state, file),
    {0, "compress", "LEVEL", "compress with zlib at this level, 1 to 9 (default: 0, not at all)",
     CMD_NUMBER(struct metadump_state, compression, 0, 9, "a number from 0 to 9")},
    {0, "sanitize", NULL,
     "replace names by others of the same length and hash; keep only known numbers otherwise",
     CMD_FLAG(struct metadump_state, sanitize)},
    {0, "checksums", NULL, "keep the checksums of data and the hashes of fs-verity",
     CMD_FLAG(struct metadump_state, checksums)},
    {0},
};

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    cmd_progress_set(NULL, done, total, 0);
}

static struct bw_error *write_metadump(void *settings, const struct cmd_session *session,
                                       struct cmd_output_file *file)
{
    const struct metadump_state *state = settings;
    const struct bw_metadump_options how = {
        .struct_size = sizeof how,
        .compression = state->compression,
        .checksums = state->checksums,
        .sanitize = state->sanitize,
        .progress = show_progress,
    };
    BW_TRY(cmd_output_file_start(file));
    return bw_metadump_write(session->fs, &how, cmd_write, &file->output);
}

static int run(const struct cmd_common *common, void *settings)
{
    const struct metadump_state *state = settings;
    if (!state->file || strcmp(state->file, "-") == 0)
        return cmd_refuse(common, "no output file given: use -f FILE");
    return cmd_output_file_run(common, state->file, NULL, write_metadump, settings);
}

const struct command cmd_metadump = {
    .name = "metadump",
    .topic = cmd_topic_health,
    .operands = "-f FILE IMAGE...",
    .summary = "Writes all metadata without file contents, for developers.",
    .details =
        "\n"
        "A metadump contains all tree blocks, to examine a damaged file system. The\n"
        "format is that of btrfs-image: `btrfs-image -r` restores it, and this\n"
        "program reads it like an image. It never contains the contents of files, not even\n"
        "those in tree blocks, nor targets of symbolic links. The command also works on file\n"
        "systems that btrfs-image cannot read: it lists unreadable blocks, leaves them out,\n"
        "and includes all others.\n\n"
        "With --sanitize, the metadump contains only the numbers that the format defines, and\n"
        "replaces the names of files, subvolumes and attributes by other names. It contains\n"
        "neither the label, nor values of attributes, nor the space cache of version 1. Names\n"
        "of up to 4 bytes are kept, because the hashes in the keys of directory entries\n"
        "determine them. docs/metadump.md lists everything that a metadump contains.\n\n"
        "Two metadumps of the same file system are equal. With --sanitize, each has different\n"
        "names.\n",
    .examples = "  btrfs-walk metadump --compress 9 -f dump.bti /dev/sdb1   compressed\n"
                "  btrfs-walk metadump --sanitize -f dump.bti a.img b.img   without names\n"
                "  btrfs-walk check dump.bti                           what a developer sees\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct metadump_state),
};
