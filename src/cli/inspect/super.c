/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The super command: all superblock copies of all images, in the format of `btrfs inspect-internal
 * dump-super -fa`. It works even if only a superblock is intact, because it does not open the file
 * system. Errors in copies, and differences between them, go to stderr, so scripts can parse stdout
 * as usual.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/hex_dump.h"
#include "btrfs-walk/tree.h"
#include "cli/common/output_format.h"

/* A running super command. */
struct supers {
    /* The options. */
    bool force, hex;

    /* While it runs. */
    const struct cmd_common *common; /* with messages, which the format does not print */
    struct cmd_format *format;
    struct bw_superblock_info newest; /* the newest valid copy so far */
    bool found;                       /* `newest` is set */
    size_t printed, bad;
};

static const struct cmd_option options[] = {
    {0, "force", NULL, "also print copies without the btrfs magic", CMD_FLAG(struct supers, force)},
    {'x', "hex", NULL, "print the bytes in hexadecimal digits", CMD_FLAG(struct supers, hex)},
    {0},
};

/* Prints a copy as text; without `bytes`, only its heading. */
static struct bw_error *print_text(struct supers *supers, const char *path, uint64_t offset,
                                   const uint8_t *bytes)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    bw_buffer_format(&text, "superblock: bytenr=%" PRIu64 ", device=", offset);
    bw_escape_line(&text, path, strlen(path));
    bw_buffer_format(&text, "\n---------------------------------------------------------");
    if (bytes && supers->hex) {
        bw_buffer_append_byte(&text, '\n');
        bw_hex_dump(&text, "", 0, bytes, BW_SUPERBLOCK_BYTES);
    }
    BW_TRY(cmd_write_buffer(&supers->format->output, &text));
    if (bytes && !supers->hex)
        BW_TRY(bw_superblock_print(bytes, cmd_write, &supers->format->output));
    return cmd_write(&supers->format->output, "\n", 1);
}

/* Checks and prints a copy, and compares it with the earlier ones. One without the magic number is
 * printed only with --force. */
static struct bw_error *print_copy(struct supers *supers, size_t image, unsigned copy)
{
    const char *path = bw_fs_image_path(supers->format->session.fs, image);
    uint8_t bytes[BW_SUPERBLOCK_BYTES];
    uint64_t offset;
    struct bw_superblock_info super;
    struct bw_error *error =
        bw_fs_copy_superblock(supers->format->session.fs, image, copy, bytes, &offset);
    if (error && error->code == BW_ERROR_NOT_FOUND && !supers->common->input.fs.superblock_copy) {
        bw_error_free(error); /* the image is too small for it */
        return NULL;
    }
    if (error) {
        supers->bad++;
        cmd_note(supers->common, BW_WARNING, error);
        return NULL;
    }

    BW_AUTO_ERROR struct bw_error *bad = bw_superblock_check(bytes, copy);
    if (bad) {
        const bool shown = supers->force || !strstr(bad->message, "magic");
        supers->bad++;
        cmd_note(supers->common, BW_WARNING,
                 bw_error_create(bad->code, "%s: superblock copy %u: %s%s", path, copy,
                                 bad->message, shown ? "" : " (--force prints it)"));
        if (!shown && supers->format->rows)
            return NULL;
        if (!shown)
            return print_text(supers, path, offset, NULL);
    } else {
        BW_AUTO_ERROR struct bw_error *unread =
            bw_fs_read_superblock(supers->format->session.fs, image, copy, &super);
        const struct bw_superblock_info *newest = &supers->newest;
        const bool compares = !unread && supers->found;
        if (compares && memcmp(super.fsid, newest->fsid, BW_UUID_SIZE) != 0)
            cmd_note(supers->common, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "%s: superblock copy %u belongs to another file system", path,
                                     copy));
        else if (compares && super.generation != newest->generation)
            cmd_note(supers->common, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "%s: superblock copy %u has generation %" PRIu64
                                     ", an earlier copy has %" PRIu64,
                                     path, copy, super.generation, newest->generation));
        if (!unread && (!supers->found || super.generation > newest->generation)) {
            supers->newest = super;
            supers->found = true;
        }
    }
    supers->printed++;
    if (supers->format->rows)
        return bw_rows_write_superblock(&supers->format->stream, path, copy, offset, bytes, bad);
    return print_text(supers, path, offset, bytes);
}

static struct bw_error *list(struct cmd_format *format, void *state)
{
    struct supers *supers = state;
    const int only = supers->common->input.fs.superblock_copy;
    const unsigned wanted = only == BW_SUPERBLOCK_COPY_0 ? 0 : (unsigned)only;
    supers->format = format;
    for (size_t image = 0; image < bw_fs_image_count(format->session.fs); image++)
        for (unsigned copy = 0; copy < BW_SUPERBLOCK_NUMBERS; copy++) {
            if (only && copy != wanted)
                continue;
            BW_TRY(print_copy(supers, image, copy));
            /* In text, an empty line follows each copy, even a missing one, as in btrfs-progs. */
            if (!format->rows)
                BW_TRY(cmd_write(&format->output, "\n", 1));
        }
    if (!supers->printed)
        format->status = STATUS_CANNOT;
    else if (supers->bad)
        format->status = STATUS_PARTIAL;
    return NULL;
}

static const char *find_mistake(const struct cmd_common *common, const void *state)
{
    const struct supers *supers = state;
    const bool excludes = supers->hex && !cmd_format_is_for_people(common);
    return excludes ? "--hex is for text, not for -o and --json" : NULL;
}

/* Errors of a copy are reported when it is printed. */
static int run(const struct cmd_common *common, void *state)
{
    struct supers *supers = state;
    struct cmd_common silent = *common;
    supers->common = common;
    silent.messages.quiet = true;
    silent.input.fs.superblock_copy = 0;
    return cmd_run_plan(&silent, &cmd_super, state);
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
    .plan = &(const struct cmd_format_plan){.list = list, .depth = CMD_OPEN_IMAGES},
    .find_mistake = find_mistake,
    .run = run,
    .state_size = sizeof(struct supers),
};
