/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file system of a command, from the common options to the exit status.
 *
 * Opening has an order that keeps inputs safe. Before the first message, stdout and stderr are
 * compared with the images, because they may have been redirected into one. When all files to be
 * read are known and none is open, they are compared again; then outputs are opened, the sandbox is
 * entered, and threads start, which inherit it. Only then the first image is opened. cmd_end()
 * closes everything, writes the last statedump, and decides the exit status.
 */
#include "cli/common/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file_set.h"
#include "btrfs-walk/history.h"
#include "cli/common/generations.h"
#include "cli/common/keys.h"
#include "cli/common/monitor.h"
#include "cli/common/output.h"
#include "cli/common/partitions.h"
#include "cli/common/sandbox.h"
#include "cli/probes/probes.h"

/* Statedumps. */

static struct bw_error *write_to(void *context, const char *text, size_t length)
{
    const struct cmd_session *session = context;
    return cmd_write_file(session->statedump, session->common->statedump, text, length);
}

/* Overwrites the previous statedump. */
static struct bw_error *dump_layers(struct cmd_session *session)
{
    const int file = session->statedump;
    if (file != STDERR_FILENO && lseek(file, 0, SEEK_SET) == 0 && ftruncate(file, 0) &&
        errno != EINVAL)
        return bw_error_from_errno(errno, "cannot write to %s", session->common->statedump);
    return bw_fs_statedump(session->fs, write_to, session);
}

/* On SIGUSR1. Only one thread may call it at a time. */
static void write_statedump(void *context)
{
    struct cmd_session *session = context;
    struct bw_error *error = dump_layers(session);
    if (error)
        cmd_fail(session->common, error);
}

/* Where output goes: never into an image. */

/* Compares stdout and stderr with all files that a file system reads; before it is open (`fs` is
 * NULL), with the images on the command line. */
static struct bw_error *check_streams(const struct bw_fs *fs, const struct bw_file_set *images)
{
    static const struct {
        int descriptor;
        const char *name;
    } streams[] = {{STDERR_FILENO, "stderr"}, {STDOUT_FILENO, "stdout"}};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        struct stat status;
        bool is_input;
        if (fstat(streams[i].descriptor, &status))
            continue;
        if (fs)
            is_input = bw_fs_is_input(fs, &status);
        else
            is_input = bw_file_set_holds(images, &status);
        if (!is_input)
            continue;
        if (streams[i].descriptor == STDERR_FILENO) {
            /* The message must not be written to the image, either. */
            int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
            if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0)
                close(STDERR_FILENO);
            close(nowhere);
        }
        return bw_error_create(BW_ERROR_USAGE, "%s goes to an input, which is never overwritten",
                               streams[i].name);
    }
    return NULL;
}

/* Runs when all files to be read are known and no image is open. Outputs are opened first, because
 * the sandbox would not allow it. Threads are started last, because a thread inherits the sandbox
 * of the thread that creates it. */
static struct bw_error *prepare_session(void *context, const struct bw_fs *fs)
{
    struct cmd_session *session = context;
    const struct cmd_common *common = session->common;
    BW_TRY(check_streams(fs, NULL)); /* a volfile may have named more */
    BW_TRY(cmd_probes_open(session->probes, fs));
    const char *dump = common->statedump;
    if (dump && strcmp(dump, "-") != 0)
        BW_TRY(cmd_open_output(fs, common->probes.blackbox, dump, &session->statedump));

    /* An output file is created or truncated only if the images exist. */
    const struct cmd_writing *writing = &common->writing;
    struct cmd_index *index = common->input.index;
    struct cmd_folder *folder = writing->folder && writing->folder->path ? writing->folder : NULL;
    const bool opens = writing->file || writing->open_outputs || folder || (index && index->name);
    for (size_t i = 0; opens && i < common->input.image_count; i++)
        if (!bw_servers_hold(common->input.fs.servers, common->input.images[i]) &&
            access(common->input.images[i], R_OK))
            return bw_error_from_errno(errno, "cannot open %s", common->input.images[i]);
    if (writing->file)
        BW_TRY(cmd_output_file_open(writing->file, fs));
    if (index)
        BW_TRY(cmd_index_open(index, common, fs));
    if (folder)
        BW_TRY(cmd_open_folder(common, folder->path, &folder->descriptor, NULL));
    if (writing->open_outputs)
        BW_TRY(writing->open_outputs(writing->outputs, fs));

    BW_TRY(cmd_sandbox_enter(common, fs));
    cmd_probes_start(session->probes);
    return cmd_monitor_start(common);
}

/* For commands that open a file system without a session. */
static struct bw_error *enter_sandbox(void *common, const struct bw_fs *planned)
{
    return cmd_sandbox_enter(common, planned);
}

static void set_keys(struct bw_fs_options *options, const struct cmd_common *common)
{
    struct cmd_keys *keys = common->input.keys;
    if (!keys)
        return;
    options->keys = keys->keys;
    options->key_count = cmd_keys_list(keys);
    options->ask = common->input.never_asks ? NULL : cmd_keys_prompt;
    options->ask_context = keys;
}

struct bw_fs_options cmd_fs_options(const struct cmd_common *common)
{
    struct bw_fs_options options = common->input.fs;
    options.struct_size = sizeof options;
    options.paths = common->input.images;
    options.path_count = common->input.image_count;
    options.graph = &common->input.graph;
    options.planned = enter_sandbox;
    options.planned_context = (void *)(uintptr_t)common;
    options.fsid = common->input.has_fsid ? common->input.fsid : NULL;
    options.maps = common->input.maps.items;
    options.map_count = common->input.maps.count;
    options.overlays = common->input.overlays.items;
    options.overlay_count = common->input.overlays.count;
    options.inside = common->input.inside;
    options.inside_count = options.inside_choice_count = common->input.inside_count;
    options.inside_choices = common->input.inside_choices;
    set_keys(&options, common);
    return options;
}

/* With --scan, reports whether roots newer than the superblock were committed. */
static struct bw_error *look_for_newer(const struct cmd_common *common, struct bw_fs *fs)
{
    const struct bw_generation_choice *state = &common->input.fs.state;
    const struct bw_history_options how = {.struct_size = sizeof how,
                                           .scanning = BW_HISTORY_SCAN_ALWAYS,
                                           .progress = cmd_progress_scan,
                                           .only_list = true};
    struct bw_history *history = NULL;
    if (!common->input.fs.scan || common->input.lists_states || common->input.index ||
        state->generation || state->tree_root || bw_fs_status(fs).damages)
        return NULL;
    struct bw_error *error = bw_history_open(fs, &how, &history);
    cmd_progress_expect(0);
    bw_history_close(history);
    return error;
}

static struct bw_error *open_session(const struct cmd_common *common, enum cmd_depth depth,
                                     struct cmd_session *session)
{
    const struct cmd_index *index = common->input.index;
    *session = (struct cmd_session){.common = common, .statedump = STDERR_FILENO};
    if (index && index->no_scan && common->input.fs.scan)
        return bw_error_create(BW_ERROR_USAGE, "--scan and --no-scan exclude each other");

    /* Before the first message, because the messages, or the results, may have been redirected into
     * an image. */
    BW_SCOPED(bw_file_set) struct bw_file_set images = {0};
    for (size_t i = 0; i < common->input.image_count; i++)
        BW_TRY(bw_file_set_insert(&images, common->input.images[i]));
    for (size_t i = 0; i < common->input.other_count; i++)
        BW_TRY(bw_file_set_insert(&images, common->input.others[i]));
    BW_TRY(check_streams(NULL, &images));

    /* The other images are opened in the sandbox, when it is too late to connect to servers. */
    for (size_t i = 0; i < common->input.other_count; i++) {
        bool served;
        BW_TRY(bw_servers_open(common->input.fs.servers, common->input.others[i], &served));
    }

    BW_TRY(cmd_probes_create(common, &session->probes));
    struct bw_fs_options options = cmd_fs_options(common);
    options.probes = cmd_probes_set_of(session->probes);
    options.reporter = cmd_reporter(common);
    options.searched = cmd_progress_search;
    options.decompressed = cmd_progress_decompress;
    options.planned = prepare_session;
    options.planned_context = session;
    if (depth == CMD_OPEN_GRAPH) {
        BW_TRY(bw_fs_wire(&options, &session->fs));
    } else if (depth == CMD_OPEN_IMAGES) {
        BW_TRY(bw_fs_open_images(&options, &session->fs));
    } else if (depth == CMD_OPEN_DEVICES) {
        BW_TRY(bw_fs_list_devices(&options, &session->fs));
    } else {
        BW_TRY(bw_fs_open(&options, &session->fs));
        BW_TRY(look_for_newer(common, session->fs));
    }
    cmd_monitor_watch(session->fs, common->statedump ? write_statedump : NULL, session);
    return NULL;
}

/* Sets the session to zeros. Returns the errors of outputs. */
static struct bw_error *end_session(struct cmd_session *session)
{
    cmd_progress_end();
    const struct cmd_common *common = session->common;
    struct bw_error *error = NULL;
    if (common) {
        const struct cmd_folder *folder = common->writing.folder;
        error = cmd_output_file_close(common->writing.file, NULL);
        if (folder && folder->path && folder->descriptor >= 0)
            close(folder->descriptor);
        if (common->input.index)
            cmd_index_close(common->input.index);
        if (common->statedump && session->fs)
            error = bw_error_first(error, dump_layers(session)); /* the last one */
        if (session->statedump != STDERR_FILENO)
            error = cmd_close_file(common, session->statedump, common->statedump, error);
    }
    bw_fs_close(session->fs);
    cmd_monitor_stop();
    error = bw_error_first(error, cmd_probes_close(session->probes));
    cmd_monitor_unblock();
    *session = (struct cmd_session){0};
    return error;
}

static struct bw_error *print_table(void *context, const struct bw_partition_table *table)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    bool *has_partitions = context;
    *has_partitions = true;
    cmd_append_partitions(&text, table);
    BW_TRY(bw_buffer_error(&text));
    return cmd_write_file(STDERR_FILENO, "stderr", text.data, text.length);
}

void cmd_ask_for_partition(const struct cmd_common *common)
{
    const char *option = common->input.is_other ? "--other-partition" : "--partition";
    const char *where = common->input.inside_count ? ", after this disk's --inside if any" : "";
    fprintf(stderr, "Choose one with %s N, NAME, LABEL or UUID%s.\n", option, where);
}

bool cmd_needs_partition(const struct bw_error *error)
{
    const char *advice = error->advice ? error->advice : error->message; /* if it was spelled */
    return error->code == BW_ERROR_AMBIGUOUS && !strstr(advice, "volume GROUP/NAME");
}

int cmd_fail_to_open(const struct cmd_common *common, struct bw_error *error)
{
    bool several = cmd_needs_partition(error) && !common->input.lists_partitions;
    int status = cmd_fail(common, error);
    if (!several)
        return status;
    const struct bw_fs_options options = cmd_fs_options(common);
    bool has_partitions = false;
    error = bw_partition_tables(&options, print_table, &has_partitions);
    if (has_partitions)
        cmd_ask_for_partition(common);
    if (error)
        return cmd_fail(common, error);
    return status;
}

struct bw_error *cmd_try_open(const struct cmd_common *common, enum cmd_depth depth,
                              struct cmd_session *session)
{
    struct bw_error *error = open_session(common, depth, session);
    if (error)
        bw_error_add_cause(error, end_session(session));
    return error;
}

struct bw_error *cmd_open_other(const struct cmd_common *common, struct cmd_common *own,
                                struct bw_fs **fs)
{
    *own = *common;
    own->input.images = (const char **)(uintptr_t)common->input.others;
    own->input.image_count = common->input.other_count;
    own->input.fs.partition = common->input.other_partition;
    own->input.fs.side = common->input.other_side;
    own->input.is_other = true;
    own->input.has_fsid = false;
    struct bw_fs_options options = {
        .struct_size = sizeof options,
        .paths = common->input.others,
        .path_count = common->input.other_count,
        .reporter = {cmd_print_message, own},
        .partition = common->input.other_partition,
        .side = common->input.other_side,
        .log = common->input.fs.log,
        .servers = common->input.fs.servers,
        .volume = common->input.fs.volume,
        .key_work = common->input.fs.key_work,
        .ignore_checksums = common->input.fs.ignore_checksums,
    };
    set_keys(&options, common);
    struct bw_error *error = bw_fs_open(&options, fs);
    if (error)
        cmd_spell_advice(own, error); /* the options of the other file system */
    return error;
}

int cmd_open_to(const struct cmd_common *common, enum cmd_depth depth, struct cmd_session *session)
{
    struct bw_error *error = open_session(common, depth, session);
    if (!error)
        return STATUS_OK;
    cmd_progress_end();
    int status = cmd_fail_to_open(common, error);
    if (common->messages.verbose)
        cmd_recorder_print_last();
    error = end_session(session);
    if (error)
        cmd_fail(common, error);
    return status;
}

int cmd_open(const struct cmd_common *common, struct cmd_session *session)
{
    return cmd_open_to(common, CMD_OPEN_TREES, session);
}

int cmd_close_outputs(const struct cmd_common *common, struct cmd_session *session)
{
    return cmd_miss(common, end_session(session));
}

int cmd_end(const struct cmd_common *common, struct cmd_session *session, struct bw_error *error,
            int so_far)
{
    error = cmd_output_file_close(session->common->writing.file, error);
    const int failed = cmd_fail_output(common, error);
    struct bw_error *change = bw_fs_find_change(session->fs);
    const bool has_changed = change;
    if (change)
        bw_fs_report(session->fs, BW_DAMAGE, change);
    const struct bw_fs_status fs_status = bw_fs_status(session->fs);
    if (fs_status.unverified)
        bw_fs_report(session->fs, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "%" PRIu64 " bytes of data were not verified",
                                     fs_status.unverified));
    /* `rescue` prints this itself, for each of its steps. */
    if (fs_status.not_searched && !common->input.fs.search_limit) {
        const bool is_late = common->input.fs.search_seconds;
        const char *verb = fs_status.not_searched == 1 ? " was" : "s were";
        bw_fs_report(session->fs, BW_WARNING,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "%" PRIu64 " bad block%s not searched for a flipped bit: %s",
                                     fs_status.not_searched, verb,
                                     is_late ? "the limit of a minute was reached"
                                             : "--correct-bits does that"));
    }
    const bool is_damaged = (fs_status.damages && !session->is_made_good) || has_changed;
    int status = cmd_worse_status(so_far, failed);
    status = cmd_worse_status(status, cmd_close_outputs(common, session));
    if (is_damaged || fs_status.unused_images)
        status = cmd_worse_status(status, STATUS_PARTIAL);
    return status;
}

unsigned cmd_read_superblock(struct bw_fs *fs, size_t image, struct bw_superblock_info *super)
{
    unsigned copy = 0;
    for (; copy < BW_SUPERBLOCK_NUMBERS; copy++) {
        BW_AUTO_ERROR struct bw_error *error = bw_fs_read_superblock(fs, image, copy, super);
        if (!error)
            break;
    }
    return copy;
}

/* Devices like /dev/zero have no end. */
struct bw_error *cmd_read_list(const struct cmd_common *common, const char *name,
                               struct bw_list **list)
{
    enum { STEP = 1 << 20, MOST = 1 << 30 };
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    const int descriptor = open(name, O_RDONLY | O_CLOEXEC);
    size_t before;
    if (descriptor < 0)
        return bw_error_from_errno(errno, "cannot open %s", name);
    struct bw_error *error = NULL;
    do {
        before = text.length;
        error = bw_buffer_read(&text, descriptor, before + STEP);
    } while (!error && text.length > before && text.length <= MOST);
    close(descriptor);
    if (!error && text.length > MOST)
        error = bw_error_create(BW_ERROR_USAGE, "a list has at most 1 GiB");
    if (!error)
        error = bw_list_open(text.data, text.length, list);
    if (error)
        return bw_error_prefix(error, "%s", name);
    if (*bw_list_ignored(*list) && !common->messages.quiet)
        fprintf(stderr, "btrfs-walk: note: %s: not compared: %s\n", name, bw_list_ignored(*list));
    return NULL;
}
