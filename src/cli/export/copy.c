/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The copy command: devices without their free space, as device_images.h writes them. */
#include <string.h>

#include "cli/command.h"
#include "cli/export/device_images.h"
#include "cli/inspect/bad_map.h"

/* In the order of enum cmd_copy_format. */
static const char *const formats[] = {"raw", "qcow2", NULL};

static const struct cmd_option options[] = {
    CMD_FOLDER_OPTION(struct cmd_copy_settings, folder),
    CMD_FILE_OPTION(struct cmd_copy_settings, file),
    {0, "format", "WORD", "raw (the default): with holes where nothing is in use; or qcow2",
     CMD_WORD(struct cmd_copy_settings, format, formats)},
    {0, "compress", NULL, "with qcow2: compress with zstd, for QEMU 5.1 and newer",
     CMD_FLAG(struct cmd_copy_settings, compressed)},
    {0, "history", NULL, "also copy older generations that have not been overwritten",
     CMD_FLAG(struct cmd_copy_settings, history)},
    {0, "continue", NULL, "with raw and -C: continue an interrupted copy",
     CMD_FLAG(struct cmd_copy_settings, resume)},
    {0},
};

static struct bw_error *list(struct cmd_format *answer, void *context)
{
    struct bw_error *error = cmd_copy_devices(context, answer->session.fs, answer);
    return cmd_output_file_close(answer->common->writing.file, error);
}

static const char *find_mistake(const struct cmd_common *common, const void *state)
{
    const struct cmd_copy_settings *settings = state;
    (void)common;
    if (!settings->folder == !settings->file)
        return "give either -C DIR or -f FILE";
    if (settings->file && strcmp(settings->file, "-") == 0)
        return "a copy cannot be written to stdout";
    if (settings->compressed && settings->format != CMD_COPY_QCOW2)
        return "--compress is for --format qcow2";
    if (settings->resume && (settings->format != CMD_COPY_RAW || !settings->folder))
        return "--continue is for --format raw with -C DIR";
    return NULL;
}

/* The log is ignored: replaying it would create tree blocks that are not in the image. */
static int run(const struct cmd_common *common, void *state)
{
    const struct cmd_copy_settings *settings = state;
    struct cmd_output_file file;
    struct cmd_common own = cmd_output_file_begin(&file, common, settings->file);
    struct cmd_folder folder = {settings->folder, -1};
    struct cmd_copy_target target = {.common = &own,
                                     .settings = settings,
                                     .prefix = "",
                                     .can_resume = settings->format == CMD_COPY_RAW};
    const struct cmd_format_plan plan = {
        .record = "ownerinfo", .print = cmd_print_owner, .list = list, .context = &target};
    own.input.fs.log = BW_LOG_IGNORE;
    own.writing.folder = settings->folder ? &folder : NULL;
    return cmd_format_run(&own, &plan);
}

const struct command cmd_copy = {
    .name = "copy",
    .topic = cmd_topic_export,
    .operands = "-C DIR|-f FILE IMAGE...",
    .summary = "Copies devices without their free space.",
    .details =
        "\n"
        "Makes an image of each device that contains everything in use: data, metadata and\n"
        "superblocks with all their copies, parity, the log, and the first MiB. Elsewhere, the\n"
        "image has holes. -C writes DIR/DEVID.img or .qcow2, and creates DIR if it does not\n"
        "exist; -f writes the image of the only device to FILE. 'map --used' lists the space\n"
        "in use.\n\n"
        "All commands give the same results for the copy as for the original. Only 'roots',\n"
        "'deleted' and 'versions', which search for older generations, find less without\n"
        "--history. Damage never makes a copy smaller: if it is unknown whether space is in\n"
        "use, it is copied. Bytes that cannot be read become zeros, and are listed with the\n"
        "files that they belong to, as 'owner --map' does. Nothing is verified: bad blocks\n"
        "are copied, too.\n\n"
        "In DIR, an image has the suffix .part until it is complete. --continue continues\n"
        "after an interruption, if neither the devices nor --history have changed. Existing\n"
        "images are not replaced.\n",
    .examples = "  btrfs-walk copy -f thin.img disk.img                  an image with holes\n"
                "  btrfs-walk copy -C copies a.img b.img                 of two devices\n"
                "  btrfs-walk copy --history -f all.img disk.img         with older generations\n"
                "  btrfs-walk copy --format qcow2 --compress -f d.qcow2 /dev/sdb\n",
    .options = options,
    .find_mistake = find_mistake,
    .run = run,
    .state_size = sizeof(struct cmd_copy_settings),
};
