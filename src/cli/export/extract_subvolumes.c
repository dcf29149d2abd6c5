/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Extraction of subvolumes. This process reads the image and sends each subvolume as a stream; a
 * child process, which was started before the image was opened and can reach nothing but the
 * folder, receives them. On btrfs, it makes subvolumes and snapshots, and shares extents as the
 * image does.
 *
 * All subvolumes are first received under their ids in a temporary folder, because a snapshot may
 * be older than the subvolume that contains it. In the end, they are moved to their places.
 */
#include "cli/export/extraction.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buffer.h"
#include "base/channel.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "cli/common/generations.h"
#include "cli/common/sandbox.h"
#include "export/send_list.h"

enum { LISTED = 5, LONGEST_FRAME = 1 << 20 };

/* A message to the child: its length in bytes follows, then the bytes. */
enum frame_kind {
    FRAME_STREAM,  /* bytes of a stream */
    FRAME_PLACE,   /* a name and a path, each with a NUL: moves a subvolume there */
    FRAME_PROTECT, /* a path: makes that subvolume read-only */
    FRAME_END,     /* the answer is a struct answer */
};

struct frame {
    uint32_t kind, length;
};

struct answer {
    struct bw_receiver_summary summary;
    uint64_t missed, unlisted;
};

struct extraction {
    const struct cmd_common *common;
    const struct extract_settings *settings;
    struct bw_fs *fs;
    struct bw_send_list list;
    bool link_snapshots;
    bool snapshots; /* the receiver makes snapshots, or trees of links */
    int channel;    /* to the child; -1: none */
    pid_t child;
};

/* The child. */

struct receiving {
    const struct cmd_common *common;
    int top, folder;
    const char *path;   /* the path of `top` */
    char temporary[32]; /* name of `folder` in `top` */
    struct bw_receiver *receiver;
    uint64_t missed, unlisted;
};

static void add_missed(void *context, struct bw_error *error)
{
    struct receiving *receiving = context;
    /* a file with incomplete contents is always named */
    if (receiving->missed++ < LISTED || error->system == EFBIG) {
        cmd_fail(receiving->common, error);
    } else {
        receiving->unlisted++;
        bw_error_free(error);
    }
}

/* Receives all frames, sends the answer, and returns the exit status of the child. The sender may
 * have been taken over by a crafted image, so its frames may contain anything. */
static int receive_frames(struct receiving *receiving, int channel)
{
    BW_AUTO_FREE char *bytes = malloc(LONGEST_FRAME + 1);
    struct bw_error *error = bytes ? NULL : bw_error_no_memory();
    struct frame frame = {.kind = FRAME_STREAM};
    while (!error && frame.kind != FRAME_END && bw_channel_receive(channel, &frame, sizeof frame) &&
           frame.length <= LONGEST_FRAME && bw_channel_receive(channel, bytes, frame.length)) {
        bytes[frame.length] = '\0';
        if (frame.kind == FRAME_STREAM) {
            error = bw_receiver_add(receiving->receiver, bytes, frame.length);
        } else if (frame.kind == FRAME_PROTECT) {
            error = bw_receiver_protect(receiving->receiver, bytes);
        } else if (frame.kind == FRAME_PLACE) {
            const size_t path = strlen(bytes) + 1;
            if (path < frame.length)
                error = bw_receiver_place(receiving->receiver, bytes, bytes + path);
            else
                error =
                    bw_error_create(BW_ERROR_CORRUPT, "invalid message about a subvolume's place");
        }
    }
    if (!error && receiving->common->writing.fsync && syncfs(receiving->top))
        error = bw_error_from_errno(errno, "cannot write %s to the disk", receiving->path);
    struct answer answer = {.missed = receiving->missed, .unlisted = receiving->unlisted};
    bw_receiver_summary(receiving->receiver, &answer.summary);
    const int status = cmd_fail_output(receiving->common, error);

    /* Remove the temporary folder, and keep the times of the one around it. After an error or an
     * interruption, there are subvolumes in it, and it stays. */
    struct stat top;
    const bool known = fstat(receiving->top, &top) == 0;
    if (unlinkat(receiving->top, receiving->temporary, AT_REMOVEDIR) && errno == ENOTEMPTY)
        cmd_fail(receiving->common,
                 bw_error_create(BW_ERROR_SYSTEM,
                                 "%s/%s contains the subvolumes that did not get to their places",
                                 receiving->path, receiving->temporary));
    else if (known)
        futimens(receiving->top, (struct timespec[]){top.st_atim, top.st_mtim});
    bw_receiver_destroy(receiving->receiver);
    if (!status)
        bw_channel_send(channel, &answer, sizeof answer);
    return status;
}

/* Whether the opened directory can be new: the process's own, private and without directories.
 * Where there are no permissions, as on vfat, it is like the folder, and changing its mode has no
 * effect. */
static bool is_ours(const struct receiving *receiving)
{
    struct stat made, top, changed;
    if (fstat(receiving->folder, &made) || fstat(receiving->top, &top) ||
        made.st_dev != top.st_dev || made.st_nlink > 2 ||
        (made.st_uid != geteuid() && made.st_uid != top.st_uid))
        return false;
    if (!(made.st_mode & 077))
        return true;
    return made.st_mode == top.st_mode &&
           (fchmod(receiving->folder, 0700) ||
            (fstat(receiving->folder, &changed) == 0 && changed.st_mode == made.st_mode));
}

/* Starts the child that receives. It works in the opened folder. */
static struct bw_error *start_receiver(struct extraction *extraction, struct receiving *receiving)
{
    const struct bw_receiver_options how = {.struct_size = sizeof how,
                                            .folder = receiving->folder,
                                            .top = receiving->top,
                                            .link_snapshots = extraction->link_snapshots,
                                            .missed = add_missed,
                                            .context = receiving};
    BW_TRY(bw_receiver_create(&how, &receiving->receiver));
    extraction->snapshots =
        extraction->link_snapshots || bw_receiver_makes_snapshots(receiving->receiver);
    struct bw_error *error = bw_channel_fork(&extraction->channel, &extraction->child);
    if (!error && !extraction->child) {
        cmd_ignore_exit_signals();
        /* links between deep trees keep two directories of each level open */
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
            limit.rlim_cur = limit.rlim_max;
            setrlimit(RLIMIT_NOFILE, &limit);
        }
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        if (cmd_sandbox_is_on(receiving->common))
            cmd_sandbox_enter_receiver(receiving->top);
        _exit(receive_frames(receiving, extraction->channel));
    }
    bw_receiver_destroy(receiving->receiver);
    return error;
}

/* Opens the folder and starts the child, before the sandbox is entered. */
static struct bw_error *open_outputs(void *context, const struct bw_fs *planned)
{
    struct extraction *extraction = context;
    const struct extract_settings *settings = extraction->settings;
    struct receiving receiving = {
        .common = extraction->common, .path = settings->folder, .top = -1, .folder = -1};
    (void)planned;
    BW_TRY(cmd_open_folder(extraction->common, settings->folder, &receiving.top, NULL));

    /* The temporary folder. Before it is opened, other users with rights in the folder around it
     * could put a link or another directory in its place. */
    snprintf(receiving.temporary, sizeof receiving.temporary, ".btrfs-walk-%d", (int)getpid());
    if (mkdirat(receiving.top, receiving.temporary, 0700))
        return bw_error_from_errno(errno, "%s/%s", receiving.path, receiving.temporary);
    receiving.folder =
        bw_open_beneath(receiving.top, receiving.temporary, O_RDONLY | O_DIRECTORY, false);
    if (receiving.folder < 0)
        return bw_error_from_errno(errno, "%s/%s", receiving.path, receiving.temporary);
    if (!is_ours(&receiving))
        return bw_error_create(BW_ERROR_SYSTEM, "%s/%s has been replaced by another directory",
                               receiving.path, receiving.temporary);

    struct bw_error *error = start_receiver(extraction, &receiving);
    if (error) /* nobody else removes it */
        unlinkat(receiving.top, receiving.temporary, AT_REMOVEDIR);
    close(receiving.top);
    close(receiving.folder);
    return error;
}

/* Sending. */

static struct bw_error *send_frame(const struct extraction *extraction, enum frame_kind kind,
                                   const void *bytes, size_t length)
{
    const struct frame frame = {kind, (uint32_t)length};
    if (bw_channel_send(extraction->channel, &frame, sizeof frame) &&
        bw_channel_send(extraction->channel, bytes, length))
        return NULL;
    /* after an error of the child, which has reported it */
    return bw_error_create(BW_ERROR_STOPPED, "the extraction ended early");
}

static struct bw_error *send_bytes(void *context, const void *bytes, size_t length)
{
    const struct extraction *extraction = context;
    cmd_progress_add(length);
    for (size_t done = 0, step; done < length; done += step) {
        step = length - done < LONGEST_FRAME ? length - done : LONGEST_FRAME;
        BW_TRY(send_frame(extraction, FRAME_STREAM, (const char *)bytes + done, step));
    }
    return NULL;
}

/* Whether a subvolume is received into the folder itself. */
static bool is_top(const struct bw_sent *sent)
{
    return sent->info.id == BW_TOP_SUBVOLUME;
}

/* Lists the subvolumes that the user has named, and their relatives; without names, all. */
static struct bw_error *find_all(struct extraction *extraction)
{
    const struct cmd_common *common = extraction->common;
    struct bw_fs *fs = extraction->fs;
    struct bw_send_list *list = &extraction->list;
    const struct bw_subvolume *next = NULL;
    for (size_t i = 0; i < common->path_count; i++) {
        BW_TRY(bw_subvolume_by_name(fs, common->paths[i], &next));
        BW_TRY(bw_send_list_add(list, fs, next, NULL));
    }
    if (common->path_count)
        BW_TRY(bw_send_list_add_relatives(list, fs));
    else
        while ((next = bw_subvolume_next(fs, next))) {
            struct bw_subvolume_info info;
            BW_TRY(bw_subvolume_get(fs, next, &info));
            if (!info.is_deleted)
                BW_TRY(bw_send_list_add(list, fs, next, NULL));
        }
    bw_send_list_sort(list);
    /* The top-level subvolume is received into the folder itself. A snapshot of the folder would
     * contain its other files, so this subvolume comes last, and is never a parent. */
    for (size_t i = 1; i < list->list.count; i++) {
        struct bw_sent *sent = &list->list.items[i - 1];
        if (is_top(sent)) {
            const struct bw_sent top = sent[0];
            sent[0] = sent[1];
            sent[1] = top;
        }
    }
    for (size_t i = 0; i < list->list.count; i++) {
        struct bw_sent *sent = &list->list.items[i];
        if (asprintf(&sent->name, is_top(sent) ? "." : "%" PRIu64, sent->info.id) < 0) {
            sent->name = NULL;
            return bw_error_no_memory();
        }
    }
    return NULL;
}

static struct bw_error *send_all(struct extraction *extraction)
{
    const struct extract_settings *settings = extraction->settings;
    struct bw_send_list *list = &extraction->list;
    const struct bw_send_options how = {
        .struct_size = sizeof how,
        .version = 2,
        .damage = settings->on_error == CMD_ON_ERROR_FAIL ? BW_SEND_STOP : BW_SEND_ZERO,
        .threads = settings->export.walk.threads,
        .write = send_bytes,
        .context = extraction,
    };
    uint64_t bytes = 0;
    for (size_t i = 0; i < list->list.count; i++)
        bytes += list->list.items[i].info.bytes_used;
    cmd_progress_expect(bytes);
    for (size_t i = 0; i < list->list.count; i++) {
        const struct bw_sent *parent = NULL;
        if (extraction->snapshots && !is_top(&list->list.items[i]))
            parent = bw_send_list_parent(list, i);
        BW_TRY(bw_send_list_send(list, i, &how, parent, extraction->snapshots));
    }
    return NULL;
}

/* Moving to the final places. */

static int by_depth(const void *a, const void *b)
{
    const char *left = ((const struct bw_sent *)a)->place,
               *right = ((const struct bw_sent *)b)->place;
    const size_t depth = left ? strlen(left) : 0;
    const size_t other = right ? strlen(right) : 0;
    return (depth > other) - (depth < other);
}

/* Subvolumes around others come first; they become read-only when everything is in its place. */
static struct bw_error *place_all(struct extraction *extraction)
{
    struct bw_sent_list *list = &extraction->list.list;
    for (size_t i = 0; i < list->count; i++) {
        struct bw_sent *sent = &list->items[i];
        BW_AUTO_FREE char *path = NULL;
        if (!sent->is_there || is_top(sent))
            continue;
        BW_AUTO_ERROR struct bw_error *error =
            bw_subvolume_path(sent->side.fs, sent->side.subvolume, &path, NULL);
        /* a subvolume without a path, whose entry is lost, keeps its id as its name */
        if (!error || error->code != BW_ERROR_NO_MEMORY)
            sent->place = strdup(error ? sent->name : path + 1);
        if (!sent->place)
            return bw_error_no_memory();
    }
    bw_sent_list_sort(list, by_depth);
    for (size_t i = 0; i < list->count; i++) {
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        const struct bw_sent *sent = &list->items[i];
        if (!sent->place)
            continue;
        bw_buffer_append(&text, sent->name, strlen(sent->name) + 1);
        bw_buffer_append(&text, sent->place, strlen(sent->place) + 1);
        BW_TRY(bw_buffer_error(&text));
        BW_TRY(send_frame(extraction, FRAME_PLACE, text.data, text.length));
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct bw_sent *sent = &list->items[i];
        if (sent->place && sent->info.read_only)
            BW_TRY(send_frame(extraction, FRAME_PROTECT, sent->place, strlen(sent->place) + 1));
    }
    return NULL;
}

/* Waits for the child, and prints how much it has written; returns its status. */
static int end_child(struct extraction *extraction, bool complete)
{
    struct answer answer = {0};
    int status = 0;
    if (extraction->child <= 0)
        return STATUS_OK;
    const bool has_answer =
        complete && bw_channel_receive(extraction->channel, &answer, sizeof answer);
    close(extraction->channel);
    while (waitpid(extraction->child, &status, 0) < 0 && errno == EINTR)
        ;
    if (has_answer && !extraction->common->messages.quiet) {
        const struct bw_receiver_summary *summary = &answer.summary;
        const struct bw_sent_list *list = &extraction->list.list;
        uint64_t bytes = 0;
        for (size_t i = 0; i < list->count; i++)
            bytes += list->items[i].size;
        fprintf(stderr,
                "btrfs-walk: %" PRIu64 " subvolume%s with files of %s: %s written, %s cloned, "
                "%" PRIu64 " hard link%s between snapshots\n",
                summary->subvolumes, bw_plural(summary->subvolumes), cmd_size(NULL, bytes).text,
                cmd_size(NULL, summary->written).text, cmd_size(NULL, summary->cloned).text,
                summary->linked, bw_plural(summary->linked));
        if (answer.unlisted)
            fprintf(stderr, "btrfs-walk: and %" PRIu64 " more that could not be restored\n",
                    answer.unlisted);
    }
    if (WIFSIGNALED(status))
        return cmd_fail_output(extraction->common,
                               bw_error_create(BW_ERROR_SYSTEM,
                                               "signal %d ended the process that writes the files",
                                               WTERMSIG(status)));
    if (WEXITSTATUS(status))
        return WEXITSTATUS(status);
    return answer.missed ? STATUS_PARTIAL : STATUS_OK;
}

int extract_subvolumes(const struct cmd_common *common, const struct extract_settings *settings,
                       bool link_snapshots)
{
    struct cmd_common writing = *common;
    struct extraction extraction = {
        .common = &writing, .settings = settings, .link_snapshots = link_snapshots, .channel = -1};
    struct cmd_session session;
    writing.writing.has_receiver = true;
    writing.writing.open_outputs = open_outputs;
    writing.writing.outputs = &extraction;
    int status = cmd_open(&writing, &session);
    if (status) {
        if (extraction.channel >= 0)
            end_child(&extraction, false);
        return status;
    }
    extraction.fs = session.fs;
    struct bw_error *error = find_all(&extraction);
    if (!error)
        error = send_all(&extraction);
    /* after an error, the complete subvolumes are still moved to their places */
    if (!error || error->code != BW_ERROR_STOPPED)
        error = bw_error_first(error, place_all(&extraction));
    if (!error || error->code != BW_ERROR_STOPPED)
        error = bw_error_first(error, send_frame(&extraction, FRAME_END, "", 0));
    const bool stopped = error && error->code == BW_ERROR_STOPPED;
    cmd_progress_end();
    const int child = end_child(&extraction, !stopped);
    bw_send_list_free(&extraction.list);
    if (!stopped)
        return cmd_end(common, &session, error, child);
    bw_error_free(error); /* the child has reported why it stopped */
    return cmd_end(common, &session, NULL, cmd_worse_status(STATUS_PARTIAL, child));
}
