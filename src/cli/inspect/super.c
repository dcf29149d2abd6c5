/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The super command: all superblock copies of all images, in the format of `btrfs inspect-internal
 * dump-super -fa`. It works even if only a superblock is intact, because it does not open the file
 * system. Errors in copies, and differences between them, go to stderr, so scripts can parse stdout
 * as usual.
 */
#include <inttypes.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/hex_dump.h"
#include "btrfs-walk/tree.h"
#include "cli/common/answer.h"

struct super_state {
    bool force, hex;
};

static const struct cmd_option options[] = {
    {0, "force", NULL, "also print copies without the btrfs magic",
     CMD_FLAG(struct super_state, force)},
    {'x', "hex", NULL, "print the bytes in hexadecimal digits", CMD_FLAG(struct super_state, hex)},
    {0},
};

/* The copies read so far. */
struct supers {
    const struct cmd_common *common;
    const struct super_state *state;
    struct bw_fs *fs;
    struct cmd_answer answer;
    struct bw_superblock_info newest; /* the newest valid copy */
    bool found;                       /* `newest` is set */
    size_t printed, bad;
};

static void print_warning(struct supers *supers, struct bw_error *error)
{
    cmd_print_message((void *)(uintptr_t)supers->common, BW_WARNING, error);
    bw_error_free(error);
}

static struct bw_error *print_head(struct supers *supers, size_t image, uint64_t offset)
{
    BW_AUTO_BUFFER struct bw_buffer head = {0};
    const char *path = bw_fs_image_path(supers->fs, image);
    bw_buffer_format(&head, "superblock: bytenr=%" PRIu64 ", device=", offset);
    bw_escape_line(&head, path, strlen(path));
    bw_buffer_format(&head, "\n---------------------------------------------------------");
    return head.failed ? bw_error_no_memory()
                       : cmd_write(&supers->answer.output, head.data, head.length);
}

static struct bw_error *print_bytes(struct supers *supers, const uint8_t *bytes)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    bw_buffer_append_byte(&text, '\n');
    bw_hex_dump(&text, "", 0, bytes, BW_SUPERBLOCK_BYTES);
    return text.failed ? bw_error_no_memory()
                       : cmd_write(&supers->answer.output, text.data, text.length);
}

static struct bw_error *print_text(struct supers *supers, size_t image, uint64_t offset,
                                   const uint8_t *bytes)
{
    BW_TRY(print_head(supers, image, offset));
    BW_TRY(supers->state->hex ? print_bytes(supers, bytes)
                              : bw_superblock_print(bytes, cmd_write, &supers->answer.output));
    return cmd_write(&supers->answer.output, "\n", 1);
}

/* Reports how a valid copy differs from the previous ones. */
static void report_differences(struct supers *supers, size_t image, unsigned copy,
                               const struct bw_superblock_info *super)
{
    const char *path = bw_fs_image_path(supers->fs, image);
    if (supers->found && memcmp(super->fsid, supers->newest.fsid, BW_UUID_SIZE) != 0)
        print_warning(supers,
                      bw_error_create(BW_ERROR_CORRUPT,
                                      "%s: superblock copy %u belongs to another file system", path,
                                      copy));
    else if (supers->found && super->generation != supers->newest.generation)
        print_warning(supers,
                      bw_error_create(BW_ERROR_CORRUPT,
                                      "%s: superblock copy %u has generation %" PRIu64
                                      ", an earlier copy has %" PRIu64,
                                      path, copy, super->generation, supers->newest.generation));
    if (!supers->found || super->generation > supers->newest.generation)
        supers->newest = *super;
    supers->found = true;
}

/* Whether to print a copy. One without the magic number is printed only with --force. */
static bool is_printed(struct supers *supers, size_t image, unsigned copy,
                       const struct bw_error *bad)
{
    if (!bad)
        return true;
    supers->bad++;
    bool magic = strstr(bad->message, "magic") == NULL;
    print_warning(supers,
                  bw_error_create(bad->code, "%s: superblock copy %u: %s%s",
                                  bw_fs_image_path(supers->fs, image), copy, bad->message,
                                  magic || supers->state->force ? "" : " (--force prints it)"));
    return magic || supers->state->force;
}

static struct bw_error *print_copy(struct supers *supers, size_t image, unsigned copy)
{
    uint8_t bytes[BW_SUPERBLOCK_BYTES];
    uint64_t offset;
    struct bw_superblock_info super;
    struct bw_error *error = bw_fs_copy_superblock(supers->fs, image, copy, bytes, &offset);
    if (error && error->code == BW_ERROR_NOT_FOUND && !supers->common->input.superblock_copy) {
        bw_error_free(error);
        return NULL;
    }
    if (error) {
        supers->bad++;
        print_warning(supers, error);
        return NULL;
    }
    BW_AUTO_ERROR struct bw_error *bad = bw_superblock_check(bytes, copy);
    BW_AUTO_ERROR struct bw_error *unread =
        bad ? NULL : bw_fs_read_superblock(supers->fs, image, copy, &super);
    if (!is_printed(supers, image, copy, bad)) {
        if (supers->answer.rows)
            return NULL;
        BW_TRY(print_head(supers, image, offset));
        return cmd_write(&supers->answer.output, "\n", 1);
    }
    if (!bad && !unread)
        report_differences(supers, image, copy, &super);
    error = supers->answer.rows ? bw_rows_write_superblock(&supers->answer.stream,
                                                           bw_fs_image_path(supers->fs, image),
                                                           copy, offset, bytes, bad)
                                : print_text(supers, image, offset, bytes);
    supers->printed++;
    return error;
}

/* In text, an empty line follows each copy, even a missing one, as in btrfs-progs. */
static struct bw_error *print_image(struct supers *supers, size_t image)
{
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_NUMBERS; copy++) {
        const int only = supers->common->input.superblock_copy;
        if (only && copy != (only == BW_SUPERBLOCK_COPY_0 ? 0 : (unsigned)only))
            continue;
        BW_TRY(print_copy(supers, image, copy));
        if (!supers->answer.rows)
            BW_TRY(cmd_write(&supers->answer.output, "\n", 1));
    }
    return NULL;
}

static struct bw_error *print_all(struct supers *supers)
{
    for (size_t image = 0; image < bw_fs_image_count(supers->fs); image++)
        BW_TRY(print_image(supers, image));
    return NULL;
}

static int print_and_close(struct supers *supers, struct cmd_common *silent)
{
    struct cmd_session session;
    int status = cmd_open_to(silent, CMD_OPEN_IMAGES, &session);
    if (status)
        return status;
    supers->fs = session.fs;
    struct bw_error *error = cmd_answer_end(&supers->answer, print_all(supers));
    status = !supers->printed ? STATUS_CANNOT : supers->bad ? STATUS_PARTIAL : STATUS_OK;
    if (error)
        status = cmd_fail_answer(supers->common, error);
    int closed = cmd_close(silent, &session);
    return status ? status : closed;
}

static int run(const struct cmd_common *common, void *state)
{
    struct cmd_common silent = *common;
    const struct cmd_answer_plan plan = {.record = cmd_super.record};
    struct supers supers = {.common = common, .state = state};
    silent.messages.quiet = true; /* errors of a copy are reported when it is printed */
    silent.input.superblock_copy = 0;
    struct bw_error *error =
        supers.state->hex && !cmd_answer_is_for_people(common)
            ? bw_error_create(BW_ERROR_USAGE, "--hex is for text, not for -o and --json")
            : NULL;
    if (!error)
        error = cmd_answer_begin(&supers.answer, common, &plan);
    int status = error ? cmd_fail(common, error) : print_and_close(&supers, &silent);
    cmd_answer_free(&supers.answer);
    return status;
}

static const struct cmd_status meanings[] = {
    {STATUS_OK, "All copies are good."},
    {STATUS_PARTIAL, "Some copies are bad."},
    {STATUS_CANNOT, "Wrong usage, or there is no copy to print."},
    {0},
};

const struct command cmd_super = {
    .name = "super",
    .topic = cmd_topic_structures,
    .operands = "IMAGE...",
    .summary = "Prints all superblock copies of the images, valid or not.",
    .details =
        "\n"
        "The output has the format of 'btrfs inspect-internal dump-super -fa'. Errors in a\n"
        "copy, and differences between copies, are reported on stderr. With --hex, offsets begin\n"
        "at the beginning of each copy. --super N prints only copy N.\n",
    .examples = "  btrfs-walk super disk.img                               all copies\n"
                "  btrfs-walk super --super 1 disk.img                     one of them\n"
                "  btrfs-walk super --super 0 --hex disk.img                 its bytes\n"
                "  btrfs-walk super -o device,copy,generation a.img b.img  columns\n"
                "  btrfs-walk super --json a.img b.img | jq .label         for programs\n",
    .options = options,
    .record = "superblockinfo",
    .meanings = meanings,
    .run = run,
    .state_size = sizeof(struct super_state),
};
