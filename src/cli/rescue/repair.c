/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The repair command: prints the plan of bw_repair_open(), and with -f or -C tries the chosen
 * changes and writes them as overlays, one for each device. An image is never written to.
 */
#include "btrfs-walk/repair.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/cleanup.h"
#include "base/decimal.h"
#include "btrfs-walk/records.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "export/qcow2.h"

struct repair_state {
    const char *folder; /* for an overlay of each device; NULL: none */
    const char *file;   /* for the overlay of the only device; NULL: none */
    const char *ids;    /* the changes to make; NULL: all that lose nothing */
    bool data;
    unsigned threads;
};

static const struct cmd_option options[] = {
    CMD_FOLDER_OPTION(struct repair_state, folder),
    CMD_FILE_OPTION(struct repair_state, file),
    {0, "id", "LIST", "make only these changes of the plan: 1,4,7",
     CMD_TEXT(struct repair_state, ids)},
    {0, "data", NULL, "also repair data: reads all copies of them",
     CMD_FLAG(struct repair_state, data)},
    CMD_THREADS_OPTION(struct repair_state, threads),
    {0},
};

struct repair {
    const struct repair_state *state;
    const struct cmd_common *common;
    struct bw_repair *plan;
    int folder;                  /* open if state->folder */
    struct cmd_output_file file; /* of state->file */
    char **backing;              /* absolute paths of the images, before the sandbox */
    uint64_t *devids;            /* of the images; 0: none that belongs to the file system */
    char *base;                  /* absolute path of the folder of the overlays */
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

/* Looks up where the images and the overlays are, while that is still allowed. */
static struct bw_error *find_places(struct repair *repair)
{
    const struct cmd_common *common = repair->common;
    const char *output = repair->state->folder;
    BW_AUTO_FREE char *folder = NULL;
    if (!output) {
        const char *slash = strrchr(repair->state->file, '/');
        folder = slash ? strndup(repair->state->file, (size_t)(slash - repair->state->file) + 1)
                       : strdup(".");
        output = folder;
    }
    repair->base = output ? realpath(output, NULL) : NULL;
    if (!repair->base)
        return bw_error_from_errno(errno, "cannot find %s", output ? output : "the folder");
    repair->backing = calloc(common->input.image_count + 1, sizeof *repair->backing);
    repair->devids = calloc(common->input.image_count + 1, sizeof *repair->devids);
    if (!repair->backing || !repair->devids)
        return bw_error_no_memory();
    for (size_t i = 0; i < common->input.image_count; i++) {
        repair->backing[i] = realpath(common->input.images[i], NULL);
        if (!repair->backing[i])
            return bw_error_from_errno(errno, "cannot find %s", common->input.images[i]);
    }
    return NULL;
}

/* Choosing. */

static struct bw_error *choose(struct repair *repair)
{
    const size_t count = bw_repair_count(repair->plan);
    const char *list = repair->state->ids;
    for (size_t i = 0; list && i < count; i++)
        bw_repair_choose(repair->plan, i, false);
    while (list && *list) {
        char *end;
        const unsigned long long id = strtoull(list, &end, 10);
        if (end == list || (*end && *end != ',') || !id || id > count)
            return bw_error_create(BW_ERROR_USAGE,
                                   "--id %s: the plan has the changes 1 to %zu, as in --id 1,3",
                                   repair->state->ids, count);
        bw_repair_choose(repair->plan, (size_t)id - 1, true);
        list = *end ? end + 1 : end;
    }
    return NULL;
}

/* Overlays. */

struct overlay {
    int descriptor;
    const char *name;
};

static struct bw_error *write_at(void *context, uint64_t offset, const void *bytes, size_t length)
{
    const struct overlay *overlay = context;
    return cmd_write_at(overlay->descriptor, overlay->name, offset, bytes, length);
}

static struct bw_error *write_overlay(struct repair *repair, size_t image, struct overlay *overlay)
{
    struct bw_qcow2 *qcow2;
    struct bw_repair_range range = {0};
    BW_AUTO_FREE char *backing = relative_to(repair->base, repair->backing[image]);
    if (!backing)
        return bw_error_no_memory();
    BW_TRY(bw_qcow2_create(bw_repair_image_size(repair->plan, image), false, write_at, overlay,
                           &qcow2));
    struct bw_error *error = bw_qcow2_set_backing(qcow2, backing);
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

static struct bw_error *write_file(struct repair *repair, size_t image)
{
    struct overlay overlay = {cmd_output_file_descriptor(&repair->file), repair->state->file};
    BW_TRY(cmd_output_file_start(&repair->file));
    return write_overlay(repair, image, &overlay);
}

static struct bw_error *write_in_folder(struct repair *repair, size_t image)
{
    char name[40];
    BW_AUTO_FREE char *path = NULL;
    snprintf(name, sizeof name, "devid-%" PRIu64 ".qcow2", repair->devids[image]);
    if (asprintf(&path, "%s/%s", repair->state->folder, name) < 0) {
        path = NULL;
        return bw_error_no_memory();
    }
    struct overlay overlay = {
        openat(repair->folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666), path};
    if (overlay.descriptor < 0 && errno == EEXIST)
        return bw_error_create(BW_ERROR_USAGE, "%s exists, and is not replaced", path);
    if (overlay.descriptor < 0)
        return cmd_name_error(repair->folder, name, path, errno);
    return cmd_close_file(repair->common, overlay.descriptor, path,
                          write_overlay(repair, image, &overlay));
}

/* All devices get an overlay, even if nothing in it is changed: the pool is opened through them. */
static struct bw_error *write_overlays(struct repair *repair)
{
    size_t count = 0, only = 0;
    for (size_t i = 0; i < repair->common->input.image_count; i++) {
        repair->devids[i] = bw_repair_image_devid(repair->plan, i);
        if (!repair->devids[i])
            continue;
        only = i;
        count++;
    }
    if (repair->state->file && count != 1)
        return bw_error_create(BW_ERROR_USAGE,
                               "the file system has %zu devices here; -C DIR writes an overlay of "
                               "each",
                               count);
    if (repair->state->file)
        return write_file(repair, only);
    for (size_t i = 0; i < repair->common->input.image_count; i++)
        if (repair->devids[i])
            BW_TRY(write_in_folder(repair, i));
    return NULL;
}

/* Ways to use the result, the safest first. */
static void print_advice(const struct repair *repair)
{
    const struct cmd_common *common = repair->common;
    const char *file = repair->state->file;
    fprintf(stderr, "The images are as before. An overlay contains changes only, and needs its "
                    "image.\n"
                    "1. Look at the result:    btrfs-walk check");
    for (size_t i = 0; i < common->input.image_count; i++) {
        if (file)
            fprintf(stderr, " --patch %s", file);
        else if (repair->devids[i])
            fprintf(stderr, " --patch %s/devid-%" PRIu64 ".qcow2", repair->state->folder,
                    repair->devids[i]);
    }
    for (size_t i = 0; i < common->input.image_count; i++)
        fprintf(stderr, " %s", common->input.images[i]);
    fputs("\n"
          "2. In a virtual machine:  -drive file=OVERLAY,format=qcow2,snapshot=on\n"
          "3. On this machine:       qemu-nbd --read-only --connect=/dev/nbd0 OVERLAY\n"
          "   The kernel may take the original instead, since both have the same ids: detach it, "
          "or\n"
          "   make it read-only (blockdev --setro), before any mount.\n"
          "'btrfs-walk help repair' tells how to keep the changes.\n",
          stderr);
}

/* The steps of the command. */

static struct bw_error *try_and_write(struct cmd_format *format, struct repair *repair)
{
    uint64_t left = 0;
    BW_TRY(bw_repair_try(repair->plan, &left));
    BW_TRY(write_overlays(repair));
    if (left)
        bw_fs_report(format->session.fs, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "%" PRIu64 " findings of 'check' remain that the chosen "
                                     "changes do not concern",
                                     left));
    return NULL;
}

static bool on_progress(void *context, const struct bw_check_progress *progress)
{
    (void)context;
    cmd_progress_expect(progress->expected);
    return true;
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct repair *repair = context;
    const struct repair_state *state = repair->state;
    struct bw_fs_options how = cmd_fs_options(repair->common);
    how.planned = NULL; /* the session has done that */
    const struct bw_repair_options plan = {.struct_size = sizeof plan,
                                           .data = state->data,
                                           .threads = state->threads,
                                           .progress = on_progress};
    cmd_progress_step("checking", 1, 1);
    BW_TRY(bw_repair_open(format->session.fs, &how, &plan, &repair->plan));
    BW_TRY(choose(repair));
    size_t chosen = 0;
    for (size_t i = 0; i < bw_repair_count(repair->plan); i++) {
        struct bw_repairinfo row;
        bw_repair_change(repair->plan, i, &row);
        BW_TRY(cmd_format_write(format, &row, sizeof row));
        chosen += row.chosen == 1;
    }
    if (!chosen && (state->file || state->folder))
        return bw_error_create(BW_ERROR_NOT_FOUND, "there is nothing to change, so no overlay");
    if (state->file || state->folder)
        return try_and_write(format, repair);
    const uint64_t left = bw_repair_left(repair->plan);
    if (left)
        bw_fs_report(format->session.fs, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "%" PRIu64 " findings of 'check' are about something that "
                                     "this command does not repair",
                                     left));
    return NULL;
}

static struct bw_error *open_output(void *context, const struct bw_fs *planned)
{
    struct repair *repair = context;
    repair->file = (struct cmd_output_file){
        .common = repair->common, .name = repair->state->file, .descriptor = -1};
    return cmd_output_file_open(&repair->file, planned);
}

static struct bw_error *list_and_close(struct cmd_format *format, void *context)
{
    struct repair *repair = context;
    struct bw_error *error = list(format, context);
    bw_repair_close(repair->plan);
    if (repair->state->file)
        error = cmd_output_file_close(&repair->file, error);
    if (!error && (repair->state->file || repair->state->folder) &&
        cmd_format_is_for_people(repair->common))
        print_advice(repair);
    return error;
}

static int run(const struct cmd_common *common, void *settings)
{
    const struct repair_state *state = settings;
    struct repair repair = {.state = state, .common = common, .folder = -1};
    const struct cmd_format_plan plan = {
        .record = "repairinfo",
        .columns = "id,class_name,chosen,devid,offset,length,what,why,proof,loss",
        .list = list_and_close,
        .context = &repair,
    };
    struct cmd_common own = *common;
    struct bw_error *error = NULL;
    if (state->file && (state->folder || strcmp(state->file, "-") == 0))
        error = bw_error_create(BW_ERROR_USAGE, "give either -C DIR or -f FILE, not stdout");
    if (!error && state->folder)
        error = cmd_open_folder(common, state->folder, &repair.folder, NULL);
    if (!error && (state->folder || state->file))
        error = find_places(&repair);
    own.input.log = BW_LOG_IGNORE;
    own.input.scan = own.input.lists_states = true; /* lost superblocks are looked for */
    own.writing.folder = state->folder ? &repair.folder : NULL;
    own.writing.open_outputs = state->file ? open_output : NULL;
    own.writing.outputs = &repair;
    repair.common = &own;
    const int status = error ? cmd_fail(common, error) : cmd_format_run(&own, &plan);
    for (size_t i = 0; repair.backing && i < common->input.image_count; i++)
        free(repair.backing[i]);
    free(repair.backing);
    free(repair.devids);
    free(repair.base);
    if (repair.folder >= 0)
        close(repair.folder);
    return status;
}

const struct command cmd_repair = {
    .name = "repair",
    .topic = cmd_topic_health,
    .operands = "[-C DIR|-f FILE] IMAGE...",
    .summary = "Plans a repair, and writes it as an overlay above the images.",
    .details =
        "\n"
        "Without -f and -C, prints the plan: each change, what is wrong, and what proves the new\n"
        "bytes. Nothing is written. With -f or -C, the chosen changes are tried first: the\n"
        "repaired file system is opened in memory and checked. Only if the check finds nothing\n"
        "new, an overlay is written: a qcow2 file with the changed clusters, whose backing file\n"
        "is the image. The image itself stays as it is. -C writes DIR/devid-N.qcow2 for each\n"
        "device.\n\n"
        "Classes: 'identical' bytes come from another mirror, from parity or from another copy;\n"
        "'checksum': one bit was flipped, and the stored checksum proves the corrected block;\n"
        "'derived' values are computed from verified trees, or marked as invalid because a mount\n"
        "rebuilds them; 'loss': something is given up, which happens only with --id.\n\n"
        "To keep the changes: 'qemu-img commit FILE' writes them into the image. Keep a\n"
        "'metadump' of it before, and check the overlay.\n",
    .examples = "  btrfs-walk repair disk.img                        the plan\n"
                "  btrfs-walk repair -f fixed.qcow2 disk.img         the overlay\n"
                "  btrfs-walk check --patch fixed.qcow2 disk.img     is it healthy now?\n"
                "  btrfs-walk repair --data -C fixed a.img b.img     with data, of two devices\n",
    .options = options,
    .record = "repairinfo",
    .run = run,
    .state_size = sizeof(struct repair_state),
};
