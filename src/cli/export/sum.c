/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sum command: hashes of files, in the format of sha256sum(1). */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "btrfs-walk/records.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "cli/export/export.h"
#include "export/entry_hashes.h"

/* A running sum command. */
struct sum {
    /* The options. */
    struct cmd_export_settings settings;
    enum bw_hash_algorithm algorithm;
    bool tag;

    /* While it runs. */
    struct cmd_export export;
    struct bw_entry_hashes hashes;
    struct cmd_format format;
    bool terminal;
};

static const struct cmd_option options[] = {
    {0, "algorithm", "WORD",
     "sha256 (default), sha512, sha384, blake2b (512 bits), sha1, md5 or xxh64",
     CMD_WORD(struct sum, algorithm, bw_hash_names)},
    {0, "tag", NULL, "write 'SHA256 (NAME) = HASH', like BSD and sha256sum --tag",
     CMD_FLAG(struct sum, tag)},
    CMD_GROUP(cmd_naming_options, struct sum, settings),
    CMD_GROUP(cmd_export_options, struct sum, settings),
    CMD_PART_OPTION(struct sum, settings.selection),
    {0},
};

/* The path, without the components that the options strip. */
static struct bw_bytes name_of(const struct sum *sum, const struct bw_export_entry *item)
{
    const struct bw_export_naming *naming = &sum->settings.naming;
    return naming->relative || naming->components
               ? (struct bw_bytes){bw_export_entry_name(item), bw_export_entry_name_length(item)}
               : (struct bw_bytes){item->path.data, item->path.length};
}

/* As sha256sum -c expects: a backslash at the beginning of the line means that the name is
 * escaped. */
static struct bw_error *write_line(struct sum *sum, const struct bw_export_entry *item)
{
    const struct bw_bytes name = name_of(sum, item);
    struct bw_buffer *line = &sum->format.text;
    bool needs_escapes = false;
    for (size_t i = 0; i < name.length && !needs_escapes; i++)
        needs_escapes = strchr("\n\r\\", name.data[i]);
    const bool plain = sum->format.settings.null || (!sum->terminal && !needs_escapes);
    line->length = 0;
    if (!plain && !sum->terminal)
        bw_buffer_append_byte(line, '\\');
    if (sum->tag)
        bw_buffer_format(line, "%s (", bw_hash_tags[sum->algorithm]);
    else
        bw_buffer_format(line, "%s  ", item->hash);
    if (!plain && sum->terminal)
        bw_escape_append(line, name.data, name.length);
    for (size_t i = 0; !plain && !sum->terminal && i < name.length; i++) {
        const char byte = name.data[i];
        if (byte == '\n')
            bw_buffer_append(line, "\\n", 2);
        else if (byte == '\r')
            bw_buffer_append(line, "\\r", 2);
        else if (byte == '\\')
            bw_buffer_append(line, "\\\\", 2);
        else
            bw_buffer_append_byte(line, byte);
    }
    if (plain)
        bw_buffer_append(line, name.data, name.length);
    if (sum->tag)
        bw_buffer_format(line, ") = %s", item->hash);
    bw_buffer_append_byte(line, sum->format.settings.null ? '\0' : '\n');
    return cmd_write_buffer(&sum->format.output, line);
}

/* For the stream. */

static struct bw_error *next_file(void *context, struct bw_stream_file *file, bool *got)
{
    struct sum *sum = context;
    struct bw_export_entry *item;
    BW_TRY(cmd_export_next_item(&sum->export, &item));
    *got = item;
    if (item)
        *file = bw_export_entry_stream_file(item);
    return NULL;
}

static struct bw_error *hash_file(void *context, struct bw_data_reader *reader,
                                  const struct bw_stream_file *file)
{
    struct sum *sum = context;
    return bw_entry_hashes_work(&sum->hashes, reader, file);
}

/* Hashing a large file may take long, so the lines before it are printed first. */
static struct bw_error *hash_part(void *context, const struct bw_stream_file *file,
                                  const struct bw_data_part *part)
{
    struct sum *sum = context;
    if (sum->format.output.gathered.length)
        BW_TRY(cmd_flush(&sum->format.output));
    return bw_entry_hashes_visit(&sum->hashes, file, part);
}

static struct bw_error *finish_file(void *context, const struct bw_stream_file *file, bool complete)
{
    struct sum *sum = context;
    struct bw_export_entry *item = file->user;
    struct bw_error *error = NULL;
    bw_entry_hashes_finish(&sum->hashes, file, complete);
    if (complete) {
        if (!item->has_inode)
            cmd_export_report(&sum->export, bw_export_entry_loss(item));
        else if (!*item->hash)
            cmd_export_miss(&sum->export, bw_export_entry_loss(item));
        else if (!sum->format.rows)
            error = write_line(sum, item);
    }
    if (complete && *item->hash && sum->format.rows) {
        const struct bw_bytes path = name_of(sum, item);
        const struct bw_suminfo row = {.hash = item->hash,
                                       .algorithm = bw_hash_names[sum->algorithm],
                                       .path = path,
                                       .path_bytes = path,
                                       .size = item->has_inode ? item->inode.size : BW_ABSENT,
                                       .subvolume = bw_subvolume_id(item->place.subvolume),
                                       .inode = item->place.inode};
        error = cmd_format_write(&sum->format, &row, sizeof row);
    }
    bw_entry_queue_release(sum->export.queue, item);
    return error;
}

/* A directory may contain other files, and so may a list, but a PATH that is one would yield no
 * line. The walks report paths that do not exist. */
static struct bw_error *report_others(struct cmd_export *export)
{
    const char *subvolume = export->settings->walk.subvolume;
    const struct bw_subvolume *from = NULL;
    struct bw_place place;
    if (export->common->files_from)
        return NULL;
    if (subvolume)
        BW_TRY(bw_subvolume_by_name(export->session.fs, subvolume, &from));
    for (size_t i = 0; i < export->starts.count; i++) {
        const char *path = export->starts.points[i].path;
        struct bw_error *error = bw_lookup(export->session.fs, from, path, false, &place);
        if (!error && place.type > BW_FILE_DIRECTORY)
            cmd_export_report(export,
                              bw_error_create(BW_ERROR_NOT_FOUND, "%s: not a regular file", path));
        BW_TRY(bw_error_tolerate(error));
    }
    return NULL;
}

static int run(const struct cmd_common *common, void *state)
{
    struct sum *sum = state;
    const struct cmd_format_plan plan = {.record = cmd_sum.record, .has_null = true};
    sum->terminal = isatty(STDOUT_FILENO);
    struct bw_error *error = cmd_format_begin(&sum->format, common, &plan);
    cmd_advise_on_interrupt(common, "the printed lines are valid; PATHs or --part select the rest");
    int status = cmd_fail(common, error);
    if (!status)
        status = cmd_export_open(common, &sum->settings, &sum->export);
    if (!status) {
        const struct bw_stream stream = {.struct_size = sizeof stream,
                                         .threads = sum->settings.walk.threads,
                                         .next = next_file,
                                         .work = hash_file,
                                         .visit = hash_part,
                                         .finish = finish_file,
                                         .context = sum,
                                         .held = bw_export_entry_held};
        cmd_export_expect(&sum->export);
        sum->hashes =
            (struct bw_entry_hashes){.algorithm = sum->algorithm, .progress = cmd_progress_add};
        bw_hash_prepare();
        error = report_others(&sum->export);
        if (!error)
            error = cmd_export_start(&sum->export, BW_WALK_FILES, 0);
        if (!error)
            error = bw_stream_run(sum->export.session.fs, &stream);
        bw_entry_hashes_free(&sum->hashes);
        status = cmd_export_close(&sum->export, cmd_format_end(&sum->format, error));
    }
    cmd_format_free(&sum->format);
    return status;
}

const struct command cmd_sum = {
    .name = "sum",
    .topic = cmd_topic_export,
    .operands = "IMAGE [PATH]...",
    .summary = "Prints hashes of files in the format of sha256sum.",
    .details =
        "\n"
        "A PATH is a file, or a directory with everything in it; without one, all files are\n"
        "hashed. It starts at the top-level subvolume (id 5), or at the subvolume given with\n"
        "--subvol. Each line is a hash, two spaces and an absolute path, as 'sha256sum -c',\n"
        "'b2sum -c', 'md5sum -c', 'xxh64sum -c' and 'check --manifest' expect. Files that\n"
        "cannot be read completely are named on stderr and get no line. Holes are hashed as\n"
        "zeros, which takes hours for a file of several TiB, even if little of it is stored;\n"
        "--size -2T excludes files larger than one TiB. Files with more than 16 TiB of holes\n"
        "are not hashed. Symbolic links are not followed; one given as PATH is an error.\n\n"
        "For one hash of all names, types, contents, permissions, owners and times, make a list\n"
        "of them with 'tar --format mtree --sort=name', and hash the list. 'diff --other'\n"
        "compares two images, or an image with a directory or a list.\n",
    .examples = "  btrfs-walk sum disk.img                                 all files\n"
                "  btrfs-walk sum disk.img /users/joe                      a directory\n"
                "  btrfs-walk sum --subvol @ disk.img > before             for a later comparison\n"
                "  btrfs-walk sum --algorithm md5 disk.img /etc            another hash\n"
                "  btrfs-walk sum --json disk.img                          for programs\n"
                "  btrfs-walk sum --relative disk.img | (cd /mnt && sha256sum -c)  verify a copy\n",
    .options = options,
    .record = "suminfo",
    .run = run,
    .state_size = sizeof(struct sum),
    .takes_paths = true,
    .takes_list = true,
};
