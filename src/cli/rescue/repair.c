/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The repair command: prints the plan of bw_repair_open() after a trial of the chosen changes. With
 * -f or -C, it writes them: as overlays, one for each image, or as sparse copies of the devices
 * with the changes in them. These are copied as `copy` does it, from the file system that is opened
 * through the changes. An image is never written to.
 */
#include "btrfs-walk/repair.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/decimal.h"
#include "base/human.h"
#include "btrfs-walk/records.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "cli/export/device_images.h"
#include "export/qcow2.h"

enum { FORMAT_OVERLAY, FORMAT_RAW };
static const char *const formats[] = {"qcow2", "raw", NULL};

struct repair_settings {
    const char *folder; /* for a result of each device; NULL: none */
    const char *file;   /* for the result of the only device; NULL: none */
    const char *ids;    /* the changes to make; NULL: by their classes */
    const char *allow;  /* classes of changes to make, too */
    unsigned format;
    bool data, verify;
    unsigned threads;
};

static const struct cmd_option options[] = {
    CMD_FOLDER_OPTION(struct repair_settings, folder),
    CMD_FILE_OPTION(struct repair_settings, file),
    {0, "id", "LIST", "make only these changes of the plan: 1,4,7",
     CMD_TEXT(struct repair_settings, ids)},
    {0, "allow", "CLASS,...", "also make the changes of these classes, such as loss",
     CMD_TEXT(struct repair_settings, allow)},
    {0, "format", "WORD",
     "qcow2 (the default): an overlay above the image; or raw: a copy with holes",
     CMD_WORD(struct repair_settings, format, formats)},
    {0, "data", NULL, "also repair data: reads all copies of them",
     CMD_FLAG(struct repair_settings, data)},
    {0, "verify", NULL, "as --data; the trial also reads all files, before and after the changes",
     CMD_FLAG(struct repair_settings, verify)},
    CMD_THREADS_OPTION(struct repair_settings, threads),
    {0},
};

struct repair {
    const struct repair_settings *settings;
    const struct cmd_common *common;
    struct bw_repair *plan;
    struct cmd_copy_settings copy;
    struct cmd_copy_target target;   /* with FORMAT_RAW */
    char **backing;                  /* absolute paths of the images, before the sandbox */
    const char **containers;         /* of the images: "qcow2", or NULL */
    uint64_t *devids;                /* of the images; 0: none that belongs to the file system */
    char *base;                      /* absolute path of the folder of the overlays */
    struct bw_search_limit searches; /* of all trials together, for flipped bits */
    size_t count;                    /* rows of the plan, without those that were not tried */
    size_t chosen, failed;           /* changes */
    bool is_tried;                   /* there was a trial */
};

/* Names. */

/* The path of an image relative to a folder, both absolute; to be freed. */
static char *relative_to(const char *folder, const char *path)
{
    size_t common = 0, at = 0;
    for (; folder[at] && folder[at] == path[at]; at++)
        if (path[at] == '/')
            common = at + 1;
    if (!folder[at] && path[at] == '/')
        common = at + 1;
    BW_AUTO_BUFFER struct bw_buffer name = {0};
    for (const char *rest = folder + common; common <= strlen(folder) && *rest;) {
        const char *slash = strchr(rest, '/');
        bw_buffer_format(&name, "../");
        rest = slash ? slash + 1 : rest + strlen(rest);
    }
    bw_buffer_format(&name, "%s%c", path + common, '\0');
    return name.failed ? NULL : strdup(name.data);
}

static bool is_qcow2(const char *path)
{
    char magic[4] = "";
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const bool is_read = file >= 0 && read(file, magic, sizeof magic) == sizeof magic;
    if (file >= 0)
        close(file);
    return is_read && memcmp(magic, "QFI\xfb", sizeof magic) == 0;
}

/* Looks up where the images and the overlays are, while that is still allowed. */
static struct bw_error *find_places(void *context, const struct bw_fs *planned)
{
    struct repair *repair = context;
    const struct cmd_common *common = repair->common;
    const char *output = repair->settings->folder;
    BW_AUTO_FREE char *folder = NULL;
    (void)planned;
    if (!output) {
        const char *slash = strrchr(repair->settings->file, '/');
        folder = slash
                     ? strndup(repair->settings->file, (size_t)(slash - repair->settings->file) + 1)
                     : strdup(".");
        output = folder;
    }
    repair->base = output ? realpath(output, NULL) : NULL;
    if (!repair->base)
        return bw_error_from_errno(errno, "cannot find %s", output ? output : "the folder");
    repair->backing = calloc(common->input.image_count + 1, sizeof *repair->backing);
    repair->devids = calloc(common->input.image_count + 1, sizeof *repair->devids);
    repair->containers = calloc(common->input.image_count + 1, sizeof *repair->containers);
    if (!repair->backing || !repair->devids || !repair->containers)
        return bw_error_no_memory();
    for (size_t i = 0; i < common->input.image_count; i++) {
        repair->backing[i] = realpath(common->input.images[i], NULL);
        if (!repair->backing[i])
            return bw_error_from_errno(errno, "cannot find %s", common->input.images[i]);
        repair->containers[i] = is_qcow2(repair->backing[i]) ? "qcow2" : NULL;
    }
    return NULL;
}

/* Choosing. */

/* Chooses the changes from `first` on that --id lists, each with those that it needs.
 * `*is_partial`: a default change is not among them, so later rounds would have other numbers than
 * the printed plan. */
static struct bw_error *choose_ids(struct repair *repair, size_t first, bool *is_partial)
{
    const size_t count = bw_repair_count(repair->plan);
    struct bw_repairinfo row;
    BW_AUTO_FREE bool *defaults = calloc(count + 1, sizeof *defaults);
    if (!defaults)
        return bw_error_no_memory();
    for (size_t i = first; i < count; i++) {
        bw_repair_change(repair->plan, i, &row);
        defaults[i] = row.chosen == 1;
    }
    for (size_t i = first; i < count; i++)
        bw_repair_choose(repair->plan, i, false);
    for (const char *list = repair->settings->ids; *list;) {
        char *end;
        const unsigned long long id = strtoull(list, &end, 10);
        if (id > first && id <= count)
            bw_repair_choose(repair->plan, (size_t)id - 1, true);
        list = *end ? end + 1 : end;
    }
    for (size_t i = first; i < count; i++) {
        bw_repair_change(repair->plan, i, &row);
        *is_partial |= defaults[i] && row.chosen != 1;
    }
    return NULL;
}

/* Also chooses the changes from `first` on that have a class in --allow. */
static struct bw_error *choose_classes(struct repair *repair, size_t first)
{
    const char *rest = repair->settings->allow ? repair->settings->allow : "";
    for (size_t length; *rest; rest += length + (rest[length] == ',')) {
        const char *name = "";
        length = strcspn(rest, ",");
        unsigned number = 0;
        for (; number < BW_REPAIR_CLASSES; number++) {
            name = bw_repair_class_name((enum bw_repair_class)number);
            if (strlen(name) == length && memcmp(name, rest, length) == 0)
                break;
        }
        if (number == BW_REPAIR_CLASSES)
            return bw_error_create(BW_ERROR_USAGE,
                                   "--allow %s: the classes are identical, checksum, derived, "
                                   "rolled-back, loss and resealed",
                                   repair->settings->allow);
        for (size_t i = first; i < bw_repair_count(repair->plan); i++) {
            struct bw_repairinfo row;
            bw_repair_change(repair->plan, i, &row);
            if (row.class_name != name)
                continue;
            bw_repair_choose(repair->plan, i, true);
            if (number == BW_REPAIR_ROLLED_BACK)
                break; /* the newest of these generations */
        }
    }
    return NULL;
}

/* Overlays. */

static struct bw_error *write_at(void *context, uint64_t offset, const void *bytes, size_t length)
{
    const struct cmd_output *file = context;
    return cmd_write_at(file->descriptor, file->name, offset, bytes, length);
}

static struct bw_error *write_overlay(struct repair *repair, size_t image, struct cmd_output *file)
{
    struct bw_qcow2 *qcow2;
    struct bw_repair_range range = {0};
    BW_AUTO_FREE char *backing = relative_to(repair->base, repair->backing[image]);
    if (!backing)
        return bw_error_no_memory();
    BW_TRY(
        bw_qcow2_create(bw_repair_image_size(repair->plan, image), false, write_at, file, &qcow2));
    struct bw_error *error = bw_qcow2_set_backing(
        qcow2, backing, repair->containers[image] ? repair->containers[image] : "raw");
    for (uint64_t at = 0; !error; at = range.offset + range.length) {
        error = bw_repair_next(repair->plan, image, at, BW_QCOW2_CLUSTER, &range);
        if (error || !range.length)
            break;
        error = bw_qcow2_add(qcow2, range.offset, range.bytes, range.length);
    }
    if (!error)
        error = bw_qcow2_end(qcow2);
    bw_qcow2_destroy(qcow2);
    return error;
}

static struct bw_error *write_in_folder(struct repair *repair, size_t image)
{
    char name[40];
    struct cmd_folder_file file;
    snprintf(name, sizeof name, "devid-%" PRIu64 ".qcow2", repair->devids[image]);
    BW_TRY(cmd_folder_file_open(&file, repair->common, name, false));
    return cmd_folder_file_close(&file, false, write_overlay(repair, image, &file.output));
}

/* All devices get an overlay, even if nothing in it is changed: the pool is opened through them. */
static struct bw_error *write_overlays(struct repair *repair)
{
    size_t only = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < repair->common->input.image_count; i++) {
        repair->devids[i] = bw_repair_image_devid(repair->plan, i);
        if (!repair->devids[i])
            continue;
        only = i;
        bytes += bw_repair_changed(repair->plan, i, BW_QCOW2_CLUSTER);
    }
    if (!repair->common->messages.quiet && cmd_format_is_for_people(repair->common))
        fprintf(stderr, "The changed clusters take %s.\n", cmd_size(NULL, bytes).text);
    if (repair->settings->file) {
        BW_TRY(cmd_output_file_start(repair->common->writing.file));
        return write_overlay(repair, only, &repair->common->writing.file->output);
    }
    for (size_t i = 0; i < repair->common->input.image_count; i++)
        if (repair->devids[i])
            BW_TRY(write_in_folder(repair, i));
    return NULL;
}

/* Ways to use the result, the safest first. */
static void print_advice(const struct repair *repair)
{
    const struct cmd_common *common = repair->common;
    const char *file = repair->settings->file;
    const bool is_copy = repair->settings->format == FORMAT_RAW;
    fprintf(stderr, "The images are as before. %s\n1. Look at the result:    btrfs-walk check",
            is_copy ? "A copy contains everything in use, with the changes."
                    : "An overlay contains changes only, and needs its image.");
    for (size_t i = 0; i < common->input.image_count && !is_copy; i++) {
        if (file)
            fprintf(stderr, " --patch %s", file);
        else if (repair->devids[i])
            fprintf(stderr, " --patch %s/devid-%" PRIu64 ".qcow2", repair->settings->folder,
                    repair->devids[i]);
    }
    for (size_t i = 0; i < common->input.image_count && !is_copy; i++)
        fprintf(stderr, " %s", common->input.images[i]);
    if (is_copy && file)
        fprintf(stderr, " %s", file);
    else if (is_copy)
        fprintf(stderr, " %s/devid-*.img", repair->settings->folder);
    fputc('\n', stderr);
    fputs(is_copy ? "2. In a virtual machine:  -drive file=COPY,format=raw,snapshot=on\n"
                    "3. On this machine:       losetup --read-only --find --show COPY\n"
                  : "2. In a virtual machine:  -drive file=OVERLAY,format=qcow2,snapshot=on\n"
                    "3. On this machine:       qemu-nbd --read-only --connect=/dev/nbd0 OVERLAY\n",
          stderr);
    fputs("   The kernel may take the original instead, since both have the same ids: detach it, "
          "or\n"
          "   make it read-only (blockdev --setro), before any mount.\n"
          "'btrfs-walk help repair' describes how to keep the changes.\n",
          stderr);
}

/* The steps of the command. */

/* Whether --id is a list of numbers from 1 to `count`. */
static bool are_ids(const char *ids, size_t count)
{
    for (const char *list = ids; *list;) {
        char *end;
        const unsigned long long id = strtoull(list, &end, 10);
        if (end == list || (*end && *end != ',') || !id || id > count)
            return false;
        list = *end ? end + 1 : end;
    }
    return *ids;
}

/* Chooses changes and tries them, then those that are planned for the result, and so on. Failing
 * ones are excluded, unless the user chose them by number. */
static struct bw_error *make_rounds(struct repair *repair, bool has_overlays, uint64_t *left)
{
    const char *ids = repair->settings->ids;
    bool is_new = true, is_partial = false;
    for (size_t first = 0; is_new && !is_partial;) {
        repair->count = bw_repair_count(repair->plan);
        size_t chosen = 0;
        if (ids)
            BW_TRY(choose_ids(repair, first, &is_partial));
        else
            BW_TRY(choose_classes(repair, first));
        for (size_t i = first; i < bw_repair_count(repair->plan); i++) {
            struct bw_repairinfo row;
            bw_repair_change(repair->plan, i, &row);
            chosen += row.chosen == 1;
        }
        repair->chosen += chosen;
        if (has_overlays && chosen)
            BW_TRY(bw_repair_use_overlays(repair->plan));
        if (chosen) {
            repair->is_tried = true;
            cmd_progress_step("trying", 1, 1);
            struct bw_error *error;
            if (ids)
                error = bw_repair_try(repair->plan, left);
            else
                error = bw_repair_try_each(repair->plan, left);
            repair->count = bw_repair_count(repair->plan); /* some may be divided */
            BW_TRY(error);
        }
        first = repair->count;
        BW_TRY(bw_repair_plan_again(repair->plan, &is_new));
    }
    return NULL;
}

/* Writes the overlays, or copies the devices of the file system that is opened through the changes
 * that were tried. */
static struct bw_error *write_result(struct cmd_format *format, struct repair *repair,
                                     uint64_t left)
{
    if (repair->settings->format == FORMAT_RAW) {
        struct bw_fs_options how = cmd_fs_options(repair->common);
        struct bw_fs *fs;
        how.planned = NULL; /* the session has done that */
        how.scan = false;
        how.reporter = (struct bw_reporter){0};
        how.patches = bw_repair_patches(repair->plan, &how.patch_count);
        BW_TRY(bw_fs_open(&how, &fs));
        struct bw_error *error = cmd_copy_devices(&repair->target, fs, NULL);
        bw_fs_close(fs);
        BW_TRY(error);
    } else {
        BW_TRY(write_overlays(repair));
    }
    if (left) {
        BW_AUTO_FREE char *names = bw_repair_name_left(repair->plan, true);
        bw_fs_report(format->session.fs, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "the chosen changes do not concern %" PRIu64
                                     " finding%s of 'check': %s",
                                     left, bw_plural(left), names ? names : "(no memory)"));
    }
    if (cmd_format_is_for_people(repair->common))
        print_advice(repair);
    return NULL;
}

static bool on_progress(void *context, const struct bw_check_progress *progress)
{
    (void)context;
    cmd_progress_expect(progress->expected);
    return true;
}

/* Prints the changes, and counts those that were chosen and failed. */
static struct bw_error *print_changes(struct cmd_format *format, struct repair *repair)
{
    repair->chosen = 0;
    for (size_t i = 0; i < repair->count; i++) {
        struct bw_repairinfo row;
        bw_repair_change(repair->plan, i, &row);
        BW_TRY(cmd_format_write(format, &row, sizeof row));
        repair->chosen += row.chosen == 1;
        repair->failed += row.failure != NULL;
    }
    if (repair->failed && !repair->settings->ids)
        bw_fs_report(format->session.fs, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "%zu change%s of the plan failed, and %s left out: `failure` "
                                     "says why",
                                     repair->failed, bw_plural(repair->failed),
                                     repair->failed == 1 ? "is" : "are"));
    return NULL;
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct repair *repair = context;
    const struct repair_settings *settings = repair->settings;
    const bool writes = settings->file || settings->folder;
    struct bw_fs_options how = cmd_fs_options(repair->common);
    how.planned = NULL; /* the session has done that */
    how.search_limit = &repair->searches;
    const struct bw_repair_options plan = {.struct_size = sizeof plan,
                                           .data = settings->data,
                                           .verify = settings->verify,
                                           .containers = repair->containers,
                                           .threads = settings->threads,
                                           .progress = on_progress};
    uint64_t after = 0;
    if (writes)
        BW_TRY(cmd_copy_check_names(&repair->target, format->session.fs));
    cmd_progress_step("checking", 1, 1);
    BW_TRY(bw_repair_open(format->session.fs, &how, &plan, &repair->plan));
    BW_AUTO_ERROR struct bw_error *failure =
        make_rounds(repair, writes && settings->format == FORMAT_OVERLAY, &after);
    if (failure && !repair->is_tried)
        return BW_TAKE(failure);
    const size_t count = repair->count;
    if (!failure && settings->ids && !are_ids(settings->ids, count))
        return bw_error_create(BW_ERROR_USAGE, "--id %s: the plan has %zu change%s", settings->ids,
                               count, bw_plural(count));
    BW_TRY(print_changes(format, repair));
    if (failure)
        return BW_TAKE(failure);

    /* The status is about the result: damage that it no longer has does not count. */
    format->session.is_made_good = repair->chosen && !bw_repair_remaining(repair->plan);
    if (bw_repair_remaining(repair->plan))
        format->status = cmd_worse_status(format->status, STATUS_PARTIAL);
    const uint64_t left = bw_repair_left(repair->plan);
    if (writes && repair->chosen)
        return write_result(format, repair, after);
    if (writes && repair->failed)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "all chosen changes failed, so nothing is written");
    if (writes && count)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "no change was chosen, so nothing is written; --id or --allow "
                               "choose changes that lose something");

    /* Without changes, nothing is written, which is what the user hopes for. */
    struct bw_error *unrepaired = NULL;
    if (left) {
        BW_AUTO_FREE char *names = bw_repair_name_left(repair->plan, false);
        const char *effect = writes ? ", and nothing is written" : "";
        unrepaired = bw_error_create(
            BW_ERROR_CORRUPT, "this command does not repair %" PRIu64 " finding%s of 'check'%s: %s",
            left, bw_plural(left), effect, names ? names : "(no memory)");
    }
    if (unrepaired && !writes && count > repair->chosen + repair->failed)
        unrepaired =
            bw_error_advise(unrepaired, "`id` or `allow` makes changes that lose something");
    if (unrepaired && writes && bw_repair_remaining(repair->plan))
        return unrepaired;
    if (unrepaired)
        bw_fs_report(format->session.fs, BW_WARNING, unrepaired);
    if (repair->common->messages.quiet || !cmd_format_is_for_people(repair->common))
        return NULL;
    if (repair->chosen)
        fprintf(stderr,
                "%sNothing is written yet: -f FILE or -C DIR writes these changes to an overlay.\n",
                bw_repair_remaining(repair->plan)
                    ? ""
                    : "After these changes, 'check' would find no error. ");
    else if (!left && !count)
        fputs("There is nothing to repair, and nothing is written.\n", stderr);
    if (!settings->data && !settings->verify)
        fputs("Data were not checked; --data does that.\n", stderr);
    return NULL;
}

static struct bw_error *list_and_close(struct cmd_format *format, void *context)
{
    struct repair *repair = context;
    struct bw_error *error = list(format, context);
    bw_repair_close(repair->plan);
    return cmd_output_file_close(repair->common->writing.file, error);
}

static const char *find_mistake(const struct cmd_common *common, const void *state)
{
    const struct repair_settings *settings = state;
    (void)common;
    if (settings->file && (settings->folder || strcmp(settings->file, "-") == 0))
        return "give either -C DIR or -f FILE, not stdout";
    if (settings->ids && settings->allow)
        return "give either --id or --allow";
    if (settings->ids && !are_ids(settings->ids, SIZE_MAX))
        return "--id needs numbers of changes, as in --id 1,3";
    if (settings->format == FORMAT_RAW && !settings->file && !settings->folder)
        return "--format raw is for -C DIR or -f FILE";
    return NULL;
}

static int run(const struct cmd_common *common, void *context)
{
    const struct repair_settings *settings = context;
    struct repair repair = {
        .settings = settings,
        .common = common,
        .searches.nanoseconds = CMD_SEARCH_SECONDS * UINT64_C(1000000000),
    };
    const struct cmd_format_plan plan = {
        .record = "repairinfo",
        .columns = "id,class_name,chosen,devid,offset,length,what,why,proof,loss,failure",
        .list = list_and_close,
        .context = &repair,
    };
    struct cmd_folder folder = {settings->folder, -1};
    struct cmd_output_file file;
    struct cmd_common own = cmd_output_file_begin(&file, common, settings->file);
    if ((settings->folder || settings->file) && settings->format == FORMAT_OVERLAY) {
        own.writing.open_outputs = find_places;
        own.writing.outputs = &repair;
    }
    own.input.fs.log = BW_LOG_IGNORE;
    own.input.fs.search_seconds = CMD_SEARCH_SECONDS;
    own.input.fs.scan = own.input.lists_states = true; /* lost superblocks are looked for */
    own.writing.folder = settings->folder ? &folder : NULL;
    repair.common = &own;
    repair.copy = (struct cmd_copy_settings){
        .folder = settings->folder,
        .file = settings->file,
        .format = settings->format == FORMAT_RAW ? CMD_COPY_RAW : CMD_COPY_QCOW2};
    repair.target = (struct cmd_copy_target){.common = &own,
                                             .settings = &repair.copy,
                                             .prefix = "devid-",
                                             .announces = cmd_format_is_for_people(common)};
    const int status = cmd_format_run(&own, &plan);
    for (size_t i = 0; repair.backing && i < common->input.image_count; i++)
        free(repair.backing[i]);
    free(repair.backing);
    free(repair.devids);
    free(repair.containers);
    free(repair.base);
    return status;
}

static const struct cmd_status meanings[] = {
    {STATUS_OK, "Nothing is wrong, or the chosen changes repair it."},
    {STATUS_PARTIAL, "Something wrong remains, also in the result, or the output is incomplete."},
    {STATUS_CANNOT, "Wrong usage, or no file system that can be opened."},
    {STATUS_UNSUPPORTED, "The image needs a feature that is not supported, or no overlay of it is "
                         "possible; the message says why."},
    {0},
};

const struct command cmd_repair = {
    .name = "repair",
    .topic = cmd_topic_health,
    .operands = "[-C DIR|-f FILE] IMAGE...",
    .summary = "Plans a repair, and writes it as an overlay or a repaired copy.",
    .details =
        "\n"
        "Prints the plan: each change, what is wrong, and what proves the new bytes. Before\n"
        "that, the chosen changes are tried: the repaired file system is opened in memory\n"
        "and checked. Changes after which the check finds something new, or still finds\n"
        "what they repair, are left out, and `failure` says why; with --id, they are an\n"
        "error. What becomes visible only in the repaired file system, such as damage below\n"
        "a tree block that could not be read, is planned and tried in further rounds.\n\n"
        "With -f or -C, an overlay is written: a qcow2 file with the changed clusters,\n"
        "whose backing file is the image. The image itself stays as it is. -C writes\n"
        "DIR/devid-N.qcow2 for each device. With --format raw, the result is a copy as\n"
        "'copy' makes it, with the changes: also for devices in encrypted or compressed\n"
        "images, in images of several parts, and on servers.\n\n"
        "Classes: 'identical' bytes come from another mirror, from parity or from another\n"
        "copy; 'checksum': one bit was flipped, and the stored checksum proves the\n"
        "corrected block; 'derived' values are computed from verified trees, or marked as\n"
        "invalid because a mount rebuilds them. Only with --id or --allow: 'rolled-back'\n"
        "makes an older, complete generation the current one, if that is damaged; 'loss':\n"
        "something is given up; 'resealed': a tree block that fails nothing but its\n"
        "checksum gets a new one, so its bytes are not proved.\n"
        "If there is nothing to repair, nothing is written.\n\n"
        "To keep the changes: 'qemu-img commit FILE' writes them into the image. Keep a\n"
        "'metadump' of it before, and check the overlay.\n",
    .examples = "  btrfs-walk repair disk.img                        the plan\n"
                "  btrfs-walk repair -f fixed.qcow2 disk.img         the overlay\n"
                "  btrfs-walk check --patch fixed.qcow2 disk.img     is it healthy now?\n"
                "  btrfs-walk repair --data -C fixed a.img b.img     with data, of two devices\n"
                "  btrfs-walk repair --format raw -f fixed.img disk.img\n",
    .options = options,
    .meanings = meanings,
    .record = "repairinfo",
    .find_mistake = find_mistake,
    .run = run,
    .state_size = sizeof(struct repair_settings),
};
