/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files that commands write. No input is overwritten, and no symbolic link is followed in the
 * folder of a command that runs others.
 *
 * A file that is not completed is removed. That takes a separate process: the sandbox does not
 * allow it, and SIGKILL leaves no time for it. A child process, started before the sandbox is
 * entered, removes the file when the program sends it an order or ends. It never sees a byte of an
 * image. They communicate in single bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/channel.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "cli/common/monitor.h"
#include "cli/common/output.h"
#include "cli/common/session.h"

/* Opening. */

struct bw_error *cmd_open_output(const struct bw_fs *fs, const char *taken, const char *name,
                                 int *descriptor)
{
    struct stat status, other;
    bool exists = stat(name, &status) == 0;
    if (exists && taken && stat(taken, &other) == 0 && status.st_dev == other.st_dev &&
        status.st_ino == other.st_ino)
        return bw_error_create(BW_ERROR_USAGE, "%s is already in use as the black box", name);
    if (exists && bw_fs_is_input(fs, &status))
        return bw_error_create(BW_ERROR_USAGE, "%s is an input, which is never overwritten", name);
    return bw_output_file_open(name, false, descriptor);
}

const char *cmd_name_in_base(const struct cmd_common *common, const char *path)
{
    const struct cmd_folder *base = common->writing.base;
    const size_t length = base ? strlen(base->path) : 0;
    if (!base || strncmp(path, base->path, length) != 0 || path[length] != '/' ||
        strchr(path + length + 1, '/'))
        return NULL;
    return path + length + 1;
}

struct bw_error *cmd_name_error(int folder, const char *name, const char *path, int number)
{
    struct stat status;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode))
        return bw_error_create(BW_ERROR_USAGE,
                               "%s is a symbolic link, which is not followed: remove it", path);
    if (number == EEXIST)
        return bw_error_create(
            BW_ERROR_USAGE, "%s is not a regular file, or has several hard links: remove it", path);
    return bw_error_from_errno(number, "cannot open %s", path);
}

struct bw_error *cmd_read_in_base(const struct cmd_folder *base, const char *name, const char *path,
                                  struct bw_buffer *text)
{
    struct stat status;
    const int descriptor =
        bw_open_beneath(base->descriptor, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, false);
    if (descriptor < 0)
        return cmd_name_error(base->descriptor, name, path, errno);
    struct bw_error *error = NULL;
    if (fstat(descriptor, &status) || !S_ISREG(status.st_mode))
        error = bw_error_create(BW_ERROR_USAGE, "%s is not a regular file", path);
    if (!error)
        error = bw_buffer_read_all(text, descriptor);
    close(descriptor);
    return error;
}

struct bw_error *cmd_open_folder(const struct cmd_common *common, const char *path, int *descriptor,
                                 bool *is_new)
{
    const char *name = cmd_name_in_base(common, path);
    const int base = name ? common->writing.base->descriptor : AT_FDCWD;
    const bool made = mkdirat(base, name ? name : path, 0777) == 0;
    if (!made && errno != EEXIST)
        return bw_error_from_errno(errno, "cannot make %s", path);
    if (is_new)
        *is_new = made;
    *descriptor = name ? bw_open_beneath(base, name, O_RDONLY | O_DIRECTORY, false)
                       : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*descriptor >= 0)
        return NULL;
    return name ? cmd_name_error(base, name, path, errno)
                : bw_error_from_errno(errno, "cannot open %s as a directory", path);
}

/* Files in the folder of a command. */

static struct bw_error *exists_error(const char *folder, const char *name)
{
    return bw_error_create(BW_ERROR_USAGE, "%s/%s exists, and is not replaced", folder, name);
}

struct bw_error *cmd_folder_file_open(struct cmd_folder_file *file, const struct cmd_common *common,
                                      const char *name, bool resume)
{
    const struct cmd_folder *folder = common->writing.folder;
    struct stat status;
    *file = (struct cmd_folder_file){.common = common, .name = name};
    if (fstatat(folder->descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return exists_error(folder->path, name);
    if (asprintf(&file->path, "%s/%s.part", folder->path, name) < 0)
        return bw_error_no_memory();
    const char *part = file->path + strlen(folder->path) + 1;
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    const int descriptor = resume ? bw_open_sole(folder->descriptor, part)
                                  : openat(folder->descriptor, part, flags, 0666);
    file->output = (struct cmd_output){.name = file->path, .descriptor = descriptor};
    if (descriptor >= 0)
        return NULL;
    struct bw_error *error;
    if (!resume && errno == EEXIST)
        error = bw_error_create(BW_ERROR_USAGE, "%s is incomplete, and is not replaced",
                                file->path);
    else
        error = cmd_name_error(folder->descriptor, part, file->path, errno);
    free(file->path);
    return error;
}

struct bw_error *cmd_folder_file_close(struct cmd_folder_file *file, bool keeps,
                                       struct bw_error *error)
{
    const struct cmd_folder *folder = file->common->writing.folder;
    const char *part = file->path + strlen(folder->path) + 1;
    error = bw_error_first(error, cmd_flush(&file->output));
    error = cmd_close_file(file->common, file->output.descriptor, file->path, error);
    if (!error && bw_rename_new(folder->descriptor, part, file->name, false))
        error = errno == EEXIST ? exists_error(folder->path, file->name)
                                : bw_error_from_errno(errno, "cannot rename %s", file->path);
    if (!error)
        error = cmd_sync_file(file->common, folder->descriptor, folder->path);
    else if (!keeps)
        unlinkat(folder->descriptor, part, 0);
    free(file->path);
    return error;
}

/* The child. */

/* Orders to the child. */
enum { BEGUN = 'o', COMPLETE = 'c', BROKEN_OFF = 'b' };

/* Unlinks the file if the name still leads to it; otherwise truncates it. Returns which. */
static const char *remove_file(const char *name, int descriptor)
{
    struct stat named, opened;
    bool same = lstat(name, &named) == 0 && fstat(descriptor, &opened) == 0 &&
                named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
    if (same && unlink(name) == 0)
        return ", and was removed";
    return ftruncate(descriptor, 0) ? "" : ", and was emptied";
}

/* The child process: waits for an order, or for the end of the program. It closes stdin and stdout,
 * because others may wait for their end. `ours`: the program created the file. */
static void watch_output(int channel, const char *name, int descriptor, bool ours)
{
    char byte = BROKEN_OFF;
    bool begun = false;
    ssize_t got;
    cmd_ignore_exit_signals();
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    while ((got = read(channel, &byte, 1)) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0 && byte != BEGUN)
            break;
        begun |= got > 0;
    }
    const bool complete = got > 0 && byte == COMPLETE;
    if (begun && !complete) {
        BW_AUTO_BUFFER struct bw_buffer line = {0};
        const char *done = remove_file(name, descriptor);
        bw_escape_words(&line, name);
        fprintf(stderr, "btrfs-walk: %s is incomplete%s\n", bw_buffer_text(&line), done);
    } else if (ours && !complete) {
        remove_file(name, descriptor); /* nothing was written yet, so no message */
    }
    _exit(0);
}

/* Socket to the child that removes the file before a signal ends the program; -1: none. */
static volatile sig_atomic_t watcher_now = -1;

static void send_byte(int watcher, char byte)
{
    while (write(watcher, &byte, 1) < 0 && errno == EINTR)
        ;
}

static void wait_for_watcher(int watcher)
{
    char byte;
    ssize_t got;
    while ((got = read(watcher, &byte, 1)) > 0 || (got < 0 && errno == EINTR))
        ;
}

/* Called from a signal handler. */
static void remove_on_exit(void)
{
    if (watcher_now < 0)
        return;
    send_byte(watcher_now, BROKEN_OFF);
    wait_for_watcher(watcher_now);
}

/* Starts a process that watches the regular file `descriptor`; `ours`: the program created it.
 * Returns -1 if it cannot be started. It is a grandchild, because its parent could not wait for it
 * in the sandbox. */
static int start_watcher(const char *name, int descriptor, bool ours)
{
    int channel, status = 0;
    pid_t child;
    BW_AUTO_ERROR struct bw_error *error = bw_channel_fork(&channel, &child);
    if (error)
        return -1;
    if (!child) {
        const pid_t watcher = fork();
        if (watcher)
            _exit(watcher < 0);
        watch_output(channel, name, descriptor, ours);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (status) {
        close(channel);
        return -1;
    }
    watcher_now = channel;
    cmd_clean_up_on_exit(remove_on_exit);
    return channel;
}

/* Ends the child and waits for it. `complete`: the file is kept. */
static void end_watcher(int watcher, bool complete)
{
    if (watcher < 0)
        return;
    send_byte(watcher, complete ? COMPLETE : BROKEN_OFF);
    wait_for_watcher(watcher);
    if (watcher_now == watcher)
        watcher_now = -1;
    close(watcher);
}

/* Writing. */

static bool is_regular(int descriptor)
{
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

struct cmd_output_file cmd_output_file(const struct cmd_common *common, const char *name)
{
    const bool is_stdout = !name || strcmp(name, "-") == 0;
    return (struct cmd_output_file){
        .common = common, .watcher = -1, .output.name = is_stdout ? NULL : name};
}

struct cmd_common cmd_output_file_begin(struct cmd_output_file *file,
                                        const struct cmd_common *common, const char *name)
{
    struct cmd_common own = *common;
    *file = cmd_output_file(common, name);
    own.writing.file = file;
    return own;
}

struct bw_error *cmd_output_file_open(struct cmd_output_file *file, const struct bw_fs *planned)
{
    struct cmd_output *output = &file->output;
    const bool is_new = output->name && access(output->name, F_OK) != 0;
    if (output->name) {
        BW_TRY(cmd_open_output(planned, file->common->probes.blackbox, output->name,
                               &output->descriptor));
        file->is_open = true;
    }
    if (file->binary && isatty(output->name ? output->descriptor : STDOUT_FILENO))
        return bw_error_create(BW_ERROR_USAGE,
                               "refusing to write %s to a terminal; redirect stdout, or use -f "
                               "FILE",
                               file->binary);
    if (!output->name || !is_regular(output->descriptor))
        return NULL;
    file->watcher = start_watcher(output->name, output->descriptor, is_new);
    if (file->watcher >= 0)
        return NULL;
    /* Nobody could remove it later, in the sandbox. */
    if (is_new)
        remove_file(output->name, output->descriptor);
    return bw_error_create(BW_ERROR_SYSTEM,
                           "cannot start the process that removes %s if it stays "
                           "incomplete",
                           output->name);
}

struct bw_error *cmd_output_file_start(struct cmd_output_file *file)
{
    const struct cmd_output *output = &file->output;
    file->has_begun = true;
    if (!output->name || !is_regular(output->descriptor))
        return NULL;
    if (file->watcher >= 0) /* the previous contents are about to be lost */
        send_byte(file->watcher, BEGUN);
    if (ftruncate(output->descriptor, 0))
        return bw_error_from_errno(errno, "cannot empty %s", output->name);
    return NULL;
}

struct bw_error *cmd_output_file_write(struct cmd_output_file *file, const struct bw_buffer *text)
{
    BW_TRY(bw_buffer_error(text));
    BW_TRY(cmd_output_file_start(file));
    return cmd_write_buffer(&file->output, text);
}

struct bw_error *cmd_output_file_close(struct cmd_output_file *file, struct bw_error *error)
{
    if (!file || (file->output.name && !file->is_open))
        return error;
    if (error && file->is_open)
        bw_buffer_free(&file->output.gathered); /* the file is removed */
    error = bw_error_first(error, cmd_flush(&file->output));
    if (!file->is_open)
        return error;
    file->is_open = false;
    error = cmd_close_file(file->common, file->output.descriptor, file->output.name, error);
    end_watcher(file->watcher, !error && file->has_begun);
    return error;
}

int cmd_output_file_run(const struct cmd_common *common, const char *name, const char *binary,
                        struct bw_error *(*write)(void *context, const struct cmd_session *session,
                                                  struct cmd_output_file *file),
                        void *context)
{
    struct cmd_output_file file;
    struct cmd_session session;
    const struct cmd_common own = cmd_output_file_begin(&file, common, name);
    file.binary = binary;
    const int status = cmd_open(&own, &session);
    if (status)
        return status;
    return cmd_end(&own, &session, write(context, &session, &file), STATUS_OK);
}
