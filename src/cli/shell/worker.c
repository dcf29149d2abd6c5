/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process that runs commands. It ignores SIGINT, except while it opens the file system or runs
 * a command. */
#include "cli/shell/worker.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/subvolume.h"
#include "cli/complete/complete.h"
#include "cli/shell/channel.h"

static int run_command(struct cmd_host *host, const struct shell_request *request)
{
    const struct command *command = request->count ? cmd_find(request->words[0]) : NULL;
    if (!command || request->count > INT_MAX)
        return STATUS_CANNOT;
    signal(SIGINT, SIG_DFL);
    const int status = cmd_run_in(host, command, (int)request->count, request->words);
    signal(SIGINT, SIG_IGN);
    fflush(stdout);
    clearerr(stdout); /* an error belongs to the command */
    return status;
}

static struct bw_error *find_start(struct bw_fs *fs, const char *subvolume,
                                   const struct bw_subvolume **from)
{
    *from = NULL;
    return *subvolume ? bw_subvolume_by_name(fs, subvolume, from) : NULL;
}

static struct bw_error *check_directory(struct bw_fs *fs, const struct shell_request *request)
{
    const struct bw_subvolume *from;
    struct bw_place place;
    BW_TRY(find_start(fs, request->subvolume, &from));
    BW_TRY(bw_lookup(fs, from, request->directory, true, &place));
    return place.type == BW_FILE_DIRECTORY
               ? NULL
               : bw_error_create(BW_ERROR_USAGE, "%s is not a directory", request->directory);
}

static struct bw_error *name_subvolume(struct bw_fs *fs, const char *name, struct bw_buffer *text)
{
    const struct bw_subvolume *subvolume;
    BW_AUTO_FREE char *path = NULL;
    size_t length = 0;
    BW_TRY(find_start(fs, name, &subvolume));
    if (!subvolume)
        return NULL;
    BW_AUTO_ERROR struct bw_error *nameless = bw_subvolume_path(fs, subvolume, &path, &length);
    if (nameless)
        bw_buffer_append(text, name, strlen(name));
    else
        bw_buffer_append(text, path, length);
    return NULL;
}

static int answer_error(struct cmd_host *host, struct bw_error *error)
{
    return error ? cmd_fail(host->settings, error) : STATUS_OK;
}

static void answer_request(struct cmd_host *host, const struct shell_request *request,
                           struct shell_reply *reply)
{
    host->directory = request->directory;
    switch (request->task) {
    case SHELL_RUN:
        reply->status = run_command(host, request);
        break;
    case SHELL_COMPLETE:
        reply->text = cmd_complete_in(host, request->subvolume, request->words, request->count);
        break;
    case SHELL_ENTER:
        reply->status = answer_error(host, check_directory(host->fs, request));
        break;
    case SHELL_SUBVOLUME:
        reply->status =
            answer_error(host, name_subvolume(host->fs, request->subvolume, &reply->text));
        break;
    }
}

/* False at the end. */
static bool answer_next_request(struct cmd_host *host, int channel)
{
    struct shell_request request;
    struct shell_reply reply = {.status = STATUS_OK};
    bool should_continue = shell_receive_request(channel, &request);
    if (should_continue) {
        answer_request(host, &request, &reply);
        reply.generation = bw_fs_status(host->fs).generation;
        reply.ends = atomic_load(&host->met_damage);
        should_continue = shell_send_reply(channel, &reply) && !reply.ends;
    }
    bw_buffer_free(&reply.text);
    shell_request_free(&request);
    return should_continue;
}

int shell_work(const struct cmd_common *settings, int channel)
{
    struct cmd_host host = {.settings = settings, .directory = "/"};
    struct cmd_session session;
    struct shell_reply reply = {.status = cmd_open_host(&host, &session)};
    signal(SIGINT, SIG_IGN);
    if (host.fs)
        reply.generation = bw_fs_status(host.fs).generation;
    bool should_continue = shell_send_reply(channel, &reply) && host.fs;
    while (should_continue)
        should_continue = answer_next_request(&host, channel);
    if (host.fs)
        cmd_close_outputs(settings, &session);
    return STATUS_OK;
}
