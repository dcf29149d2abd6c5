/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The metadump command: tree blocks without contents, in the format of btrfs-image, and a list of
 * the information in them. */
#include <string.h>

#include "base/cleanup.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/tree.h"
#include "cli/common/keys.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"

struct metadump_state {
    const char *file, *key_file;
    uint64_t compression;
    bool checksums, sanitize;
    struct cmd_keys key; /* at most one */
    struct cmd_output_file output;
    struct cmd_answer *answer;
};

static struct bw_error *store_level(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct metadump_state *state = target;
    return cmd_parse_number(argument, 0, 9, &state->compression)
               ? NULL
               : cmd_bad_argument(option, argument, "a number from 0 to 9");
}

static const struct cmd_option options[] = {
    CMD_FILE_OPTION(struct metadump_state, file),
    {0, "compress", "LEVEL", "compress with zlib at this level, 1 to 9 (default: 0, not at all)",
     .store = store_level},
    {0, "sanitize", NULL,
     "replace names by others of the same length and hash; keep only known numbers otherwise",
     CMD_FLAG(struct metadump_state, sanitize)},
    {0, "name-key", "FILE",
     "with --sanitize: FILE determines the replacements, so that two metadumps agree; keep it "
     "secret",
     CMD_TEXT(struct metadump_state, key_file)},
    {0, "checksums", NULL, "keep the checksums of data and the hashes of fs-verity",
     CMD_FLAG(struct metadump_state, checksums)},
    {0},
};

static struct bw_error *write_fact(void *context, const struct bw_metadump_fact *fact)
{
    const struct metadump_state *state = context;
    const struct bw_disclosureinfo row = {.information = fact->information,
                                          .treatment = fact->treatment,
                                          .occurrences = fact->count,
                                          .details = fact->details};
    return cmd_answer_write(state->answer, &row, sizeof row,
                            fact->details ? 0 : BW_MEMBER(disclosureinfo, details));
}

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    cmd_progress_set(NULL, done, total, 0);
}

static struct bw_error *write_metadump(struct cmd_answer *answer, void *context)
{
    struct metadump_state *state = context;
    const struct bw_passkey *key = state->key.count ? &state->key.keys[0] : NULL;
    const struct bw_metadump_options wanted = {
        .struct_size = sizeof wanted,
        .compression = (unsigned)state->compression,
        .checksums = state->checksums,
        .sanitize = state->sanitize,
        .key = key ? key->bytes : NULL,
        .key_length = key ? key->length : 0,
        .progress = show_progress,
        .visit = write_fact,
        .visit_context = state,
    };
    state->answer = answer;
    struct bw_error *error = cmd_output_file_start(&state->output);
    if (!error)
        error = bw_metadump_write(answer->session.fs, &wanted, cmd_output_file_add, &state->output);
    return cmd_output_file_close(&state->output, error);
}

static struct bw_error *check_usage(struct metadump_state *state)
{
    if (!state->file || strcmp(state->file, "-") == 0)
        return bw_error_create(BW_ERROR_USAGE, "no output file given: use -f FILE");
    if (state->key_file && !state->sanitize)
        return bw_error_create(BW_ERROR_USAGE, "--name-key is only for --sanitize");
    return state->key_file ? cmd_keys_read_file(&state->key, state->key_file) : NULL;
}

static int run(const struct cmd_common *common, void *settings)
{
    struct metadump_state *state = settings;
    struct cmd_common own = *common;
    const struct cmd_answer_plan plan = {.record = "disclosureinfo",
                                         .columns = "information,treatment,occurrences,details",
                                         .list = write_metadump,
                                         .context = state};
    struct bw_error *error = check_usage(state);
    state->output =
        (struct cmd_output_file){.common = common, .name = state->file, .descriptor = -1};
    own.writing.open_outputs = cmd_output_file_open;
    own.writing.outputs = &state->output;
    const int status = error ? cmd_fail(common, error) : cmd_answer_run(&own, &plan);
    bw_error_free(cmd_output_file_close(&state->output, NULL));
    cmd_keys_free(&state->key);
    return status;
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
        "The output lists each kind of information, and whether it was kept, replaced or\n"
        "removed. With --sanitize, the metadump contains only the numbers that the format\n"
        "defines, and replaces the names of files, subvolumes and attributes by other names.\n"
        "It contains neither the label, nor values of attributes, nor the space cache of\n"
        "version 1. Names of up to 4 bytes are kept, because the hashes in the keys of directory\n"
        "entries determine them.\n\n"
        "Two metadumps of the same file system are equal. With --sanitize, this needs the same\n"
        "--name-key; otherwise each metadump has different names.\n",
    .examples = "  btrfs-walk metadump --compress 9 -f dump.bti /dev/sdb1   compressed\n"
                "  btrfs-walk metadump --sanitize -f dump.bti a.img b.img   without names\n"
                "  btrfs-walk check dump.bti                           what a developer sees\n"
                "  btrfs-walk metadump --sanitize -f dump.bti --json disk.img | jq -r .information "
                " the list\n",
    .options = options,
    .record = "disclosureinfo",
    .run = run,
    .state_size = sizeof(struct metadump_state),
};
