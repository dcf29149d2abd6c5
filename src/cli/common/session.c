/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file system of a command: opening it with the common options, and closing it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file_set.h"
#include "btrfs-walk/past.h"
#include "cli/command.h"
#include "cli/common/partitions.h"
#include "cli/common/progress.h"
#include "cli/common/sandbox.h"
#include "cli/probes/recorder.h"

static const struct {
    int descriptor;
    const char *name;
} streams[] = {{STDERR_FILENO, "stderr"}, {STDOUT_FILENO, "stdout"}};

/* Output into an image is refused; without a message if it is stderr that goes there. */
static struct bw_error *refuse_stream(size_t stream)
{
    if (streams[stream].descriptor == STDERR_FILENO) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0)
            close(STDERR_FILENO);
        close(nowhere);
    }
    return bw_error_create(BW_ERROR_USAGE,
                           "%s goes to a file that is read: nothing is ever written to one",
                           streams[stream].name);
}

/* Compares the streams with all files that a file system reads or, before it is open (NULL), with
 * the images given. */
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

/* Before the first message: the results, or the messages, may have been redirected into an image.
 */
static struct bw_error *check_streams_first(const struct cmd_common *common)
{
    struct bw_file_set images = {0};
    bool added = true;
    for (size_t i = 0; i < common->image_count; i++)
        added &= bw_file_set_add(&images, common->images[i]);
    for (size_t i = 0; i < common->other_count; i++)
        added &= bw_file_set_add(&images, common->others[i]);
    struct bw_error *error = added ? check_streams(NULL, &images) : bw_error_no_memory();
    bw_file_set_free(&images);
    return error;
}

/* A session that is being opened. */
struct opening {
    const struct cmd_common *common;
    struct cmd_session *session;
};

/* Nothing is made, and nothing emptied, for an image that is not there. */
static struct bw_error *open_outputs(const struct cmd_common *common, const struct bw_fs *fs)
{
    for (size_t i = 0; common->open_outputs && i < common->image_count; i++)
        if (!bw_servers_hold(common->servers, common->images[i]) && access(common->images[i], R_OK))
            return bw_error_from_errno(errno, "cannot open %s", common->images[i]);
    return common->open_outputs ? common->open_outputs(common->outputs, fs) : NULL;
}

/* All files that will be read are known, and none of the images is open. First come the outputs,
 * which the sandbox could not open, and threads come last, because a thread begins in the sandbox
 * that it is started in. */
static struct bw_error *planned(void *context, const struct bw_fs *fs)
{
    const struct opening *opening = context;
    struct cmd_session *session = opening->session;
    BW_TRY(check_streams(fs, NULL)); /* a volfile may have named more */
    BW_TRY(cmd_probes_open(session->probes, fs));
    BW_TRY(cmd_statedump_open(opening->common, fs, &session->statedump));
    BW_TRY(open_outputs(opening->common, fs));
    BW_TRY(cmd_sandbox_enter(opening->common, fs));
    cmd_progress_begin(opening->common);
    return cmd_probes_start(session->probes);
}

/* For commands that open a file system by themselves. */
static struct bw_error *confine(void *common, const struct bw_fs *planned)
{
    return cmd_sandbox_enter(common, planned);
}

struct bw_fs_options cmd_fs_options(const struct cmd_common *common)
{
    return (struct bw_fs_options){
        .struct_size = sizeof(struct bw_fs_options),
        .paths = common->images,
        .path_count = common->image_count,
        .superblock_copy = common->superblock_copy,
        .graph = &common->graph,
        .planned = confine,
        .planned_context = (void *)(uintptr_t)common,
        .partition = common->partition,
        .offset = common->offset,
        .log = (enum bw_log_mode)common->log,
        .state = common->state,
        .servers = common->servers,
        .scan = common->scan,
    };
}

/* Of images that are opened later; in the sandbox that could not be done. */
static struct bw_error *connect_to_servers(const struct cmd_common *common)
{
    bool served;
    for (size_t i = 0; i < common->other_count; i++)
        BW_TRY(bw_servers_open(common->servers, common->others[i], &served));
    return NULL;
}

/* With --scan, whether the superblock is older than what was committed, which is said. */
static struct bw_error *look_for_newer(const struct cmd_common *common, struct bw_fs *fs)
{
    const struct bw_state_choice *state = &common->state;
    const struct bw_past_options how = {.struct_size = sizeof how,
                                        .scanning = BW_PAST_SCAN_ALWAYS,
                                        .progress = cmd_progress_scan,
                                        .only_list = true};
    struct bw_past *past = NULL;
    if (!common->scan || common->lists_states || state->generation || state->tree_root ||
        state->backup || bw_fs_status(fs).damages)
        return NULL;
    struct bw_error *error = bw_past_open(fs, &how, &past);
    cmd_progress_expect(0);
    bw_past_close(past);
    return error;
}

static struct bw_error *open_steps(const struct cmd_common *common, struct cmd_session *session,
                                   struct bw_error *(*open_fs)(const struct bw_fs_options *options,
                                                               struct bw_fs **fs))
{
    struct opening opening = {common, session};
    BW_TRY(check_streams_first(common));
    BW_TRY(connect_to_servers(common));
    BW_TRY(cmd_probes_create(common, &session->probes));
    struct bw_fs_options options = cmd_fs_options(common);
    options.probes = cmd_probes_set_of(session->probes);
    options.planned = planned;
    options.planned_context = &opening;
    options.reporter = (struct bw_reporter){cmd_tell, (void *)(uintptr_t)common};
    options.searched = cmd_progress_search;
    BW_TRY(open_fs(&options, &session->fs));
    struct bw_error *error = open_fs == bw_fs_open ? look_for_newer(common, session->fs) : NULL;
    if (error) {
        bw_fs_close(BW_TAKE(session->fs));
        return error;
    }
    cmd_statedump_start(session->statedump, session->fs);
    cmd_progress_watch(session->fs, session->statedump);
    return NULL;
}

static struct bw_error *print_table(void *context, const struct bw_partition_table *table)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    (void)context;
    cmd_append_partitions(&text, table);
    return text.failed ? bw_error_no_memory()
                       : cmd_write_file(STDERR_FILENO, "stderr", text.data, text.length);
}

/* Prints why a file system could not be opened. Where there are several, they are listed. */
int cmd_fail_to_open(const struct cmd_common *common, struct bw_error *error)
{
    bool several = error->code == BW_ERROR_AMBIGUOUS && !common->lists_partitions;
    int status = cmd_fail(common, error);
    if (!several)
        return status;
    const struct bw_fs_options options = cmd_fs_options(common);
    error = bw_partition_tables(&options, print_table, NULL);
    fprintf(stderr, "Choose one with --partition N, NAME, LABEL or UUID.\n");
    return error ? cmd_fail(common, error) : status;
}

struct bw_error *cmd_try_open(const struct cmd_common *common,
                              struct bw_error *(*open_fs)(const struct bw_fs_options *options,
                                                          struct bw_fs **fs),
                              struct cmd_session *session)
{
    *session = (struct cmd_session){0};
    struct bw_error *error = open_steps(common, session, open_fs);
    if (!error)
        return NULL;
    cmd_progress_end();
    bw_error_add_cause(error, cmd_statedump_stop(session->statedump));
    bw_error_add_cause(error, cmd_probes_close(session->probes));
    *session = (struct cmd_session){0};
    return error;
}

struct bw_error *cmd_open_other(const struct cmd_common *common, struct bw_fs **fs)
{
    const struct bw_fs_options options = {
        .struct_size = sizeof options,
        .paths = common->others,
        .path_count = common->other_count,
        .reporter = {cmd_tell, (void *)(uintptr_t)common},
        .log = (enum bw_log_mode)common->log,
        .servers = common->servers,
    };
    return bw_fs_open(&options, fs);
}

static int open_session(const struct cmd_common *common, struct cmd_session *session,
                        struct bw_error *(*open_fs)(const struct bw_fs_options *options,
                                                    struct bw_fs **fs))
{
    *session = (struct cmd_session){0};
    struct bw_error *error = open_steps(common, session, open_fs);
    if (!error)
        return STATUS_OK;
    cmd_progress_end();
    int status = cmd_fail_to_open(common, error);
    if (common->verbose)
        cmd_recorder_print_last();
    bw_error_free(cmd_statedump_stop(session->statedump));
    error = cmd_probes_close(session->probes);
    if (error)
        cmd_fail(common, error);
    return status;
}

int cmd_open(const struct cmd_common *common, struct cmd_session *session)
{
    return open_session(common, session, bw_fs_open);
}

int cmd_wire(const struct cmd_common *common, struct cmd_session *session)
{
    return open_session(common, session, bw_fs_wire);
}

/* An output other than stdout could not be written. */
static int fail_output(const struct cmd_common *common, struct bw_error *error, int status)
{
    if (!error)
        return status;
    cmd_fail(common, error);
    return STATUS_PARTIAL;
}

int cmd_open_images(const struct cmd_common *common, struct cmd_session *session)
{
    return open_session(common, session, bw_fs_open_images);
}

int cmd_close_outputs(const struct cmd_common *common, struct cmd_session *session)
{
    cmd_progress_end();
    int status = fail_output(common, cmd_statedump_stop(session->statedump), STATUS_OK);
    bw_fs_close(session->fs);
    return fail_output(common, cmd_probes_close(session->probes), status);
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
