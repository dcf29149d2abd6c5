/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file system of a command: opening it with the common options, and closing it; statedumps on
 * SIGUSR1 and at the end. */
#include "cli/common/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file_set.h"
#include "btrfs-walk/history.h"
#include "cli/common/keys.h"
#include "cli/common/monitor.h"
#include "cli/common/output.h"
#include "cli/common/partitions.h"
#include "cli/common/sandbox.h"
#include "cli/probes/probes.h"

/* Statedumps. */

struct cmd_statedump {
    const struct cmd_common *common;
    const struct bw_fs *fs; /* NULL: not open yet */
    int descriptor;
};

static struct bw_error *write_to(void *context, const char *text, size_t length)
{
    const struct cmd_statedump *statedump = context;
    return cmd_write_file(statedump->descriptor, statedump->common->statedump, text, length);
}

/* Overwrites the previous statedump. */
static struct bw_error *dump_layers(struct cmd_statedump *statedump)
{
    if (statedump->descriptor != STDERR_FILENO) {
        if (lseek(statedump->descriptor, 0, SEEK_SET) == 0 && ftruncate(statedump->descriptor, 0) &&
            errno != EINVAL)
            return bw_error_from_errno(errno, "cannot write to %s", statedump->common->statedump);
    }
    return bw_fs_statedump(statedump->fs, write_to, statedump);
}

/* On SIGUSR1. Only one thread may call it at a time. */
static void write_statedump(void *context)
{
    struct cmd_statedump *statedump = context;
    struct bw_error *error = dump_layers(statedump);
    if (error)
        cmd_fail(statedump->common, error);
}

/* Opens the file of --statedump, now that the files to be read are known. */
static struct bw_error *open_statedump(const struct cmd_common *common, const struct bw_fs *planned,
                                       struct cmd_statedump **result)
{
    const char *name = common->statedump;
    if (!name)
        return NULL;
    BW_AUTO_FREE struct cmd_statedump *statedump = calloc(1, sizeof *statedump);
    if (!statedump)
        return bw_error_no_memory();
    statedump->common = common;
    statedump->descriptor = STDERR_FILENO;
    if (strcmp(name, "-") != 0)
        BW_TRY(cmd_open_output(planned, common->probes.blackbox, name, &statedump->descriptor));
    *result = BW_TAKE(statedump);
    return NULL;
}

/* Writes a last statedump if the file system was opened, and closes the file. */
static struct bw_error *close_statedump(struct cmd_statedump *statedump)
{
    if (!statedump)
        return NULL;
    struct bw_error *error = statedump->fs ? dump_layers(statedump) : NULL;
    if (statedump->descriptor != STDERR_FILENO && close(statedump->descriptor) && !error)
        error = bw_error_from_errno(errno, "cannot write to %s", statedump->common->statedump);
    free(statedump);
    return error;
}

/* Where output goes: never into an image. */

static const struct {
    int descriptor;
    const char *name;
} streams[] = {{STDERR_FILENO, "stderr"}, {STDOUT_FILENO, "stdout"}};

/* Refuses output into an image. Redirects stderr to /dev/null first, because the message must not
 * be written to the image, either. */
static struct bw_error *refuse_stream(size_t stream)
{
    if (streams[stream].descriptor == STDERR_FILENO) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0)
            close(STDERR_FILENO);
        close(nowhere);
    }
    return bw_error_create(BW_ERROR_USAGE, "%s goes to an input, which is never overwritten",
                           streams[stream].name);
}

/* Compares the streams with all files that a file system reads. Before it is open (`fs` is NULL),
 * compares them with the images on the command line. */
static struct bw_error *check_streams(const struct bw_fs *fs, const struct bw_file_set *images)
{
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        struct stat status;
        if (fstat(streams[i].descriptor, &status))
            continue;
        if (fs ? bw_fs_is_input(fs, &status) : bw_file_set_holds(images, &status))
            return refuse_stream(i);
    }
    return NULL;
}

/* Runs before the first message: the results, or the messages, may have been redirected into an
 * image. */
static struct bw_error *check_streams_first(const struct cmd_common *common)
{
    struct bw_file_set images = {0};
    bool added = true;
    for (size_t i = 0; i < common->input.image_count; i++)
        added &= bw_file_set_add(&images, common->input.images[i]);
    for (size_t i = 0; i < common->input.other_count; i++)
        added &= bw_file_set_add(&images, common->input.others[i]);
    struct bw_error *error = added ? check_streams(NULL, &images) : bw_error_no_memory();
    bw_file_set_free(&images);
    return error;
}

/* A session that is being opened. */
struct opening {
    const struct cmd_common *common;
    struct cmd_session *session;
    struct cmd_host *host; /* the shell that opens its own file system; NULL: it is a command */
};

/* Checks that the images exist before an output file is created or truncated. */
static struct bw_error *open_outputs(const struct cmd_common *common, const struct bw_fs *fs)
{
    for (size_t i = 0; common->writing.open_outputs && i < common->input.image_count; i++)
        if (!bw_servers_hold(common->input.servers, common->input.images[i]) &&
            access(common->input.images[i], R_OK))
            return bw_error_from_errno(errno, "cannot open %s", common->input.images[i]);
    return common->writing.open_outputs ? common->writing.open_outputs(common->writing.outputs, fs)
                                        : NULL;
}

/* Runs when all files to be read are known and no image is open. Outputs are opened first, because
 * the sandbox would not allow it. Threads are started last, because a thread inherits the sandbox
 * of the thread that creates it. */
static struct bw_error *prepare_session(void *context, const struct bw_fs *fs)
{
    const struct opening *opening = context;
    struct cmd_session *session = opening->session;
    BW_TRY(check_streams(fs, NULL)); /* a volfile may have named more */
    BW_TRY(cmd_probes_open(session->probes, fs));
    BW_TRY(open_statedump(opening->common, fs, &session->statedump));
    BW_TRY(open_outputs(opening->common, fs));
    BW_TRY(cmd_sandbox_enter(opening->common, fs));
    cmd_probes_start(session->probes);
    return cmd_monitor_start(opening->common);
}

/* For commands that open a file system without a session. */
static struct bw_error *enter_sandbox(void *common, const struct bw_fs *planned)
{
    return cmd_sandbox_enter(common, planned);
}

/* Passes a message on to the command that has borrowed the file system. */
static void report_to_borrower(void *context, enum bw_severity severity,
                               const struct bw_error *error)
{
    struct cmd_host *host = context;
    if (severity != BW_NOTE)
        atomic_store(&host->met_damage, true);
    if (host->borrower)
        cmd_print_message((void *)(uintptr_t)host->borrower, severity, error);
}

static struct bw_reporter reporter_for(const struct opening *opening)
{
    return !opening        ? (struct bw_reporter){0}
           : opening->host ? (struct bw_reporter){report_to_borrower, opening->host}
                           : cmd_reporter(opening->common);
}

/* `opening`: the session that is being opened; may be NULL. */
static struct bw_fs_options options_for(const struct cmd_common *common, struct opening *opening)
{
    return (struct bw_fs_options){
        .struct_size = sizeof(struct bw_fs_options),
        .paths = common->input.images,
        .path_count = common->input.image_count,
        .superblock_copy = common->input.superblock_copy,
        .graph = &common->input.graph,
        .probes = opening ? cmd_probes_set_of(opening->session->probes) : NULL,
        .reporter = reporter_for(opening),
        .searched = opening ? cmd_progress_search : NULL,
        .decompressed = opening ? cmd_progress_decompress : NULL,
        .planned = opening ? prepare_session : enter_sandbox,
        .planned_context = opening ? (void *)opening : (void *)(uintptr_t)common,
        .partition = common->input.partition,
        .offset = common->input.offset,
        .log = (enum bw_log_mode)common->input.log,
        .state = common->input.state,
        .servers = common->input.servers,
        .scan = common->input.scan,
        .alternatives = common->input.alternatives,
        .maps = common->input.maps,
        .map_count = common->input.map_count,
        .streams_as_is = common->input.streams_as_is,
        .volume = common->input.volume,
        .keys = common->input.keys ? common->input.keys->keys : NULL,
        .key_count = common->input.keys ? common->input.keys->count : 0,
        .ask = cmd_keys_prompt,
        .key_memory = common->input.key_memory,
        .header = common->input.header,
        .inside = common->input.inside,
        .inside_count = common->input.inside_count,
    };
}

struct bw_fs_options cmd_fs_options(const struct cmd_common *common)
{
    return options_for(common, NULL);
}

/* Connects to the servers of the other images. They are opened in the sandbox, when it is too late
 * for that. */
static struct bw_error *connect_to_servers(const struct cmd_common *common)
{
    bool served;
    for (size_t i = 0; i < common->input.other_count; i++)
        BW_TRY(bw_servers_open(common->input.servers, common->input.others[i], &served));
    return NULL;
}

/* With --scan, reports whether roots newer than the superblock were committed. */
static struct bw_error *look_for_newer(const struct cmd_common *common, struct bw_fs *fs)
{
    const struct bw_generation_choice *state = &common->input.state;
    const struct bw_history_options how = {.struct_size = sizeof how,
                                           .scanning = BW_HISTORY_SCAN_ALWAYS,
                                           .progress = cmd_progress_scan,
                                           .only_list = true};
    struct bw_history *history = NULL;
    if (!common->input.scan || common->input.lists_states || state->generation ||
        state->tree_root || state->backup || bw_fs_status(fs).damages)
        return NULL;
    struct bw_error *error = bw_history_open(fs, &how, &history);
    cmd_progress_expect(0);
    bw_history_close(history);
    return error;
}

static struct bw_error *open_fs(const struct cmd_common *common, enum cmd_depth depth,
                                struct opening *opening)
{
    const struct bw_fs_options options = options_for(common, opening);
    struct bw_fs **fs = &opening->session->fs;
    if (depth == CMD_OPEN_GRAPH)
        return bw_fs_wire(&options, fs);
    if (depth == CMD_OPEN_IMAGES)
        return bw_fs_open_images(&options, fs);
    BW_TRY(bw_fs_open(&options, fs));
    return look_for_newer(common, *fs);
}

static struct bw_error *open_own(struct opening *opening, enum cmd_depth depth)
{
    const struct cmd_common *common = opening->common;
    struct cmd_session *session = opening->session;
    BW_TRY(check_streams_first(common));
    BW_TRY(connect_to_servers(common));
    BW_TRY(cmd_probes_create(common, &session->probes));
    BW_TRY(open_fs(common, depth, opening));
    if (session->statedump)
        session->statedump->fs = session->fs;
    cmd_monitor_watch(session->fs, session->statedump ? write_statedump : NULL, session->statedump);
    return NULL;
}

/* The file system of a shell. */

void cmd_leave_host(const struct cmd_common *common)
{
    if (common->host && common->host->fs)
        _exit(CMD_STATUS_ELSEWHERE);
}

static bool is_same_text(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

static bool have_same_images(const struct cmd_input *input, const struct cmd_input *host)
{
    bool same = input->image_count == host->image_count && !input->other_count && !input->folder;
    for (size_t i = 0; same && i < input->image_count; i++)
        same = is_same_text(input->images[i], host->images[i]);
    return same && is_same_text(input->graph.file, host->graph.file);
}

static bool have_same_insides(const struct cmd_input *input, const struct cmd_input *host)
{
    bool same = input->inside_count == host->inside_count;
    for (size_t i = 0; same && i < input->inside_count; i++)
        same = is_same_text(input->inside[i], host->inside[i]);
    return same;
}

static bool have_same_layers(const struct cmd_input *input, const struct cmd_input *host)
{
    bool same = input->graph.edit_count == host->graph.edit_count &&
                input->map_count == host->map_count && input->alternatives == host->alternatives;
    for (size_t i = 0; same && i < host->graph.edit_count; i++)
        same = input->edits[i].kind == host->edits[i].kind &&
               is_same_text(input->edits[i].text, host->edits[i].text);
    return same;
}

static bool is_same_state(const struct bw_generation_choice *one,
                          const struct bw_generation_choice *other)
{
    return one->generation == other->generation && one->tree_root == other->tree_root &&
           one->tree_root_generation == other->tree_root_generation &&
           one->chunk_root == other->chunk_root && one->backup == other->backup;
}

/* Whether these settings would open the same file system as those of the host. */
static bool opens_same(const struct cmd_input *input, const struct cmd_input *host,
                       const struct bw_fs *fs)
{
    return input->superblock_copy == host->superblock_copy &&
           is_same_text(input->partition, host->partition) &&
           is_same_text(input->volume, host->volume) && have_same_insides(input, host) &&
           is_same_text(input->header, host->header) && input->offset == host->offset &&
           (input->log == host->log || !bw_fs_status(fs).log_tree) && input->scan == host->scan &&
           is_same_state(&input->state, &host->state) &&
           (!input->streams_as_is || !bw_fs_is_stream(fs));
}

/* The sandbox allows only to read the same images again. */
static bool opens_other_files(const struct cmd_common *common)
{
    return common->writing.open_outputs || common->writing.folder || common->writing.serves ||
           common->probes.pattern_count || common->probes.stats || common->probes.blackbox ||
           common->statedump || !have_same_images(&common->input, &common->host->settings->input) ||
           !have_same_layers(&common->input, &common->host->settings->input);
}

static bool reads_servers(const struct cmd_host *host)
{
    return bw_servers_need(host->settings->input.servers) != BW_SERVERS_NOTHING;
}

static struct bw_error *borrow_host(const struct cmd_common *common, struct cmd_session *session)
{
    struct cmd_host *host = common->host;
    BW_TRY(check_streams(host->fs, NULL));
    *session = (struct cmd_session){.fs = host->fs, .host = host};
    host->borrower = common;
    BW_TRY(cmd_monitor_start(common));
    cmd_monitor_watch(host->fs, NULL, NULL);
    return NULL;
}

static struct bw_error *open_steps(const struct cmd_common *common, enum cmd_depth depth,
                                   struct cmd_session *session)
{
    const struct cmd_host *host = common->host;
    struct opening opening = {.common = common, .session = session};
    *session = (struct cmd_session){0};
    if (!host || !host->fs)
        return open_own(&opening, depth);
    if (opens_other_files(common))
        cmd_leave_host(common);
    const bool listens = common->messages.listener.report; /* also to the messages of opening */
    if (depth == CMD_OPEN_TREES && !listens &&
        opens_same(&common->input, &host->settings->input, host->fs))
        return borrow_host(common, session);
    if (reads_servers(host))
        cmd_leave_host(common);
    return open_own(&opening, depth);
}

/* Returns the file system to the shell. */
static void return_session(struct cmd_session *session)
{
    cmd_monitor_stop();
    cmd_monitor_unblock();
    session->host->borrower = NULL;
    *session = (struct cmd_session){0};
}

/* Sets the session to zeros. Returns the errors of outputs. */
static struct bw_error *end_session(struct cmd_session *session)
{
    if (session->host) {
        return_session(session);
        return NULL;
    }
    cmd_progress_end();
    struct bw_error *error = close_statedump(session->statedump);
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
    return text.failed ? bw_error_no_memory()
                       : cmd_write_file(STDERR_FILENO, "stderr", text.data, text.length);
}

int cmd_fail_to_open(const struct cmd_common *common, struct bw_error *error)
{
    bool several = error->code == BW_ERROR_AMBIGUOUS && !common->input.lists_partitions;
    int status = cmd_fail(common, error);
    if (!several)
        return status;
    const struct bw_fs_options options = cmd_fs_options(common);
    bool has_partitions = false;
    error = bw_partition_tables(&options, print_table, &has_partitions);
    fprintf(stderr, "Choose one with %s.\n",
            has_partitions ? "--partition N, NAME, LABEL or UUID" : "--volume GROUP/NAME");
    return error ? cmd_fail(common, error) : status;
}

struct bw_error *cmd_try_open(const struct cmd_common *common, struct cmd_session *session)
{
    struct bw_error *error = open_steps(common, CMD_OPEN_TREES, session);
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
    const struct bw_fs_options options = {
        .struct_size = sizeof options,
        .paths = common->input.others,
        .path_count = common->input.other_count,
        .reporter = {cmd_print_message, own},
        .log = (enum bw_log_mode)common->input.log,
        .servers = common->input.servers,
        .volume = common->input.volume,
        .keys = common->input.keys ? common->input.keys->keys : NULL,
        .key_count = common->input.keys ? common->input.keys->count : 0,
        .ask = cmd_keys_prompt,
        .key_memory = common->input.key_memory,
    };
    return bw_fs_open(&options, fs);
}

/* Prints why the session could not be opened, and ends it. */
static int fail_to_open(const struct cmd_common *common, struct cmd_session *session,
                        struct bw_error *error)
{
    cmd_progress_end();
    int status = cmd_fail_to_open(common, error);
    if (common->messages.verbose)
        cmd_recorder_print_last();
    error = end_session(session);
    if (error)
        cmd_fail(common, error);
    return status;
}

int cmd_open_to(const struct cmd_common *common, enum cmd_depth depth, struct cmd_session *session)
{
    struct bw_error *error = open_steps(common, depth, session);
    return error ? fail_to_open(common, session, error) : STATUS_OK;
}

int cmd_open_host(struct cmd_host *host, struct cmd_session *session)
{
    struct opening opening = {host->settings, session, host};
    *session = (struct cmd_session){0};
    host->borrower = host->settings;
    struct bw_error *error = open_own(&opening, CMD_OPEN_TREES);
    const int status = error ? fail_to_open(host->settings, session, error) : STATUS_OK;
    cmd_monitor_stop();
    cmd_monitor_unblock();
    host->borrower = NULL;
    host->fs = session->fs;
    atomic_store(&host->met_damage, false);
    return status;
}

int cmd_open(const struct cmd_common *common, struct cmd_session *session)
{
    return cmd_open_to(common, CMD_OPEN_TREES, session);
}

int cmd_close_outputs(const struct cmd_common *common, struct cmd_session *session)
{
    struct bw_error *error = end_session(session);
    if (!error)
        return STATUS_OK;
    cmd_fail(common, error);
    return STATUS_PARTIAL;
}

int cmd_close(const struct cmd_common *common, struct cmd_session *session)
{
    struct bw_error *change = bw_fs_find_change(session->fs);
    if (change)
        bw_fs_report(session->fs, BW_DAMAGE, change);
    const struct bw_fs_status fs_status = bw_fs_status(session->fs);
    int status = cmd_close_outputs(common, session);
    return fs_status.damages || fs_status.unused_images ? STATUS_PARTIAL : status;
}
