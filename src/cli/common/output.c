/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output of commands: messages to stderr, results to stdout, and results to a file, which is
 * removed if it is not completed.
 */
#include "cli/common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "cli/common/monitor.h"
#include "cli/common/repeats.h"

/* Messages. */

/* " [features/verify]"; if the layer's name differs from its type, " [storage/file device-2]". */
static void append_layer(struct bw_buffer *line, const struct bw_error_hop *hop)
{
    const char *slash = strrchr(hop->layer, '/');
    bw_buffer_format(line, " [%s", hop->layer);
    if (strcmp(slash ? slash + 1 : hop->layer, hop->volume) != 0) {
        bw_buffer_append_byte(line, ' ');
        bw_escape_words(line, hop->volume);
    }
    bw_buffer_append_byte(line, ']');
}

/* The layer where the error originated and the layers that it passed. An address is printed when it
 * changes. */
static void append_path(struct bw_buffer *line, const struct bw_error_hop *way)
{
    const struct bw_error_hop *before = NULL;
    for (const struct bw_error_hop *hop = way; hop; before = hop, hop = hop->next) {
        bw_buffer_format(line, "%s",
                         hop == way      ? "born in "
                         : before == way ? ", came through "
                                         : ", ");
        bw_escape_words(line, hop->volume);
        if (hop->has_address && (!before || hop->address != before->address))
            bw_buffer_format(line, " at %" PRIu64, hop->address);
    }
}

static void print_line(const struct bw_buffer *line)
{
    cmd_progress_hide();
    fprintf(stderr, "btrfs-walk: %.*s\n", (int)line->length, line->data ? line->data : "");
    cmd_progress_release();
}

/* The lines of -vv after a message: the layers that the error passed, then its causes, each with
 * its own layers. */
static void print_causes(const struct bw_error *error, int depth)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    bool says_more = error->way && (error->way->next || error->way->has_address);
    if (says_more) {
        bw_buffer_format(&line, "%*s", 2 * depth, "");
        append_path(&line, error->way);
        print_line(&line);
    }
    for (const struct bw_error *cause = error->causes; cause; cause = cause->next) {
        line.length = 0;
        bw_buffer_format(&line, "%*sbecause: ", 2 * depth, "");
        bw_escape_words(&line, cause->message);
        print_line(&line);
        print_causes(cause, depth + 1);
    }
}

/* Whether the error is about the file system, not about the command line or another file. */
static bool is_about_image(const struct bw_error *error)
{
    return error->code == BW_ERROR_CORRUPT || error->code == BW_ERROR_MISSING_DEVICE ||
           error->code == BW_ERROR_UNSUPPORTED || error->code == BW_ERROR_NOT_FOUND ||
           error->code == BW_ERROR_NO_CHECKSUM;
}

/* "disk.img: ", unless the message begins with an image. */
static void append_image(struct bw_buffer *line, const struct cmd_common *common,
                         const struct bw_error *error)
{
    if (!common || !common->input.image_count || !is_about_image(error))
        return;
    for (size_t i = 0; i < common->input.image_count; i++)
        if (strncmp(error->message, common->input.images[i], strlen(common->input.images[i])) == 0)
            return;
    bw_escape_words(line, common->input.images[0]);
    bw_buffer_append(line, ": ", 2);
}

static void print_message(const struct cmd_common *common, const char *kind,
                          const struct bw_error *error)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    bw_buffer_format(&line, "%s", kind);
    append_image(&line, common, error);
    bw_escape_words(&line, error->message);
    if (error->way && common && common->messages.verbose)
        append_layer(&line, error->way);
    print_line(&line);
    if (common && common->messages.verbose > 1)
        print_causes(error, 1);
}

static void notify_listener(const struct cmd_common *common, enum bw_severity severity,
                            const struct bw_error *error)
{
    if (common && common->messages.listener.report)
        common->messages.listener.report(common->messages.listener.context, severity, error);
}

void cmd_print_message(void *context, enum bw_severity severity, const struct bw_error *error)
{
    const struct cmd_common *common = context;
    notify_listener(common, severity, error);
    if (common->messages.quiet || (severity == BW_NOTE && !common->messages.verbose) ||
        (common->messages.is_selected && !common->messages.is_selected(severity, error)))
        return;
    /* A mount runs for days: each read that fails there has its message. */
    const bool limited = !common->messages.verbose && !common->writing.serves;
    if (limited && common->messages.repeats &&
        !cmd_repeats_allow(common->messages.repeats, error->message))
        return;
    print_message(common,
                  severity == BW_NOTE      ? "note: "
                  : severity == BW_WARNING ? "warning: "
                                           : "damage: ",
                  error);
}

void cmd_note(const struct cmd_common *common, struct bw_error *note)
{
    cmd_print_message((void *)(uintptr_t)common, BW_NOTE, note);
    bw_error_free(note);
}

static int print_error(const struct cmd_common *common, struct bw_error *error, enum cmd_loss loss)
{
    const int status = cmd_status_of(error->code, loss);
    notify_listener(common, BW_DAMAGE, error);
    print_message(common, "", error);
    bw_error_free(error);
    return status;
}

int cmd_fail(const struct cmd_common *common, struct bw_error *error)
{
    return print_error(common, error, CMD_LOST_ALL);
}

int cmd_fail_answer(const struct cmd_common *common, struct bw_error *error)
{
    return print_error(common, error, CMD_LOST_REST);
}

int cmd_miss(const struct cmd_common *common, struct bw_error *error)
{
    return print_error(common, error, CMD_LOST_PART);
}

/* Results to stdout. */

/* Bounds the system calls for thousands of small subvolumes. The next write flushes bytes that are
 * older than this. */
enum { GATHER_BYTES = 64 << 10, GATHER_NANOSECONDS = 50000000 };

struct bw_error *cmd_write_file(int descriptor, const char *name, const char *bytes, size_t length)
{
    while (length) {
        ssize_t written = write(descriptor, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return bw_error_from_errno(errno, "cannot write to %s", name);
        bytes += written;
        length -= (size_t)written;
    }
    return NULL;
}

struct bw_error *cmd_sync_file(const struct cmd_common *common, int descriptor, const char *name)
{
    if (!common->writing.fsync || fsync(descriptor) == 0)
        return NULL;
    /* pipes and terminals have no disk */
    return errno == EINVAL || errno == EROFS || errno == ENOTSUP
               ? NULL
               : bw_error_from_errno(errno, "cannot write %s to the disk", name);
}

struct bw_error *cmd_close_file(const struct cmd_common *common, int descriptor, const char *name,
                                struct bw_error *error)
{
    if (!error)
        error = cmd_sync_file(common, descriptor, name);
    if (close(descriptor) && !error)
        error = bw_error_from_errno(errno, "cannot write to %s", name);
    return error;
}

static struct bw_error *write_stdout(const char *bytes, size_t length)
{
    struct bw_error *error = cmd_write_file(STDOUT_FILENO, "stdout", bytes, length);
    if (error && error->system == EPIPE) {
        /* SIGPIPE is ignored so that writing to other files fails with an error. It ends the
         * program only when nothing reads its results any more. */
        cmd_write_exit_message();
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    return error;
}

static struct bw_error *write_results(const char *bytes, size_t length)
{
    return cmd_progress_around(write_stdout, bytes, length);
}

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static struct bw_error *flush_gathered(struct cmd_output *output)
{
    struct bw_error *error = write_results(output->gathered.data, output->gathered.length);
    output->gathered.length = 0;
    return error;
}

struct bw_error *cmd_write(void *context, const char *bytes, size_t length)
{
    struct cmd_output *output = context;
    bool large = length >= GATHER_BYTES || output->at_once;
    if (output->gathered.length && (large || output->gathered.length + length > GATHER_BYTES ||
                                    now() - output->since > GATHER_NANOSECONDS))
        BW_TRY(flush_gathered(output));
    if (large)
        return write_results(bytes, length);
    if (!output->gathered.length)
        output->since = now();
    bw_buffer_append(&output->gathered, bytes, length);
    return output->gathered.failed ? bw_error_no_memory() : NULL;
}

struct bw_error *cmd_flush(struct cmd_output *output)
{
    struct bw_error *error = flush_gathered(output);
    bw_buffer_free(&output->gathered);
    return error;
}

int cmd_flush_stdout(const struct cmd_common *common)
{
    bool flushed = !fflush(stdout); /* reports a write that failed earlier, too: stdio discards
                                     * those bytes */
    if (flushed && !ferror(stdout))
        return STATUS_OK;
    cmd_fail(common, bw_error_from_errno(flushed ? EIO : errno, "cannot write to stdout"));
    return STATUS_PARTIAL;
}

int cmd_write_text(const struct cmd_common *common, struct bw_buffer *text)
{
    struct bw_error *error =
        text->failed ? bw_error_no_memory() : write_results(text->data, text->length);
    bw_buffer_free(text);
    if (!error)
        return STATUS_OK;
    cmd_fail(common, error);
    return STATUS_PARTIAL;
}

/*
 * Removing an incomplete file takes a separate process: the sandbox does not allow it, and SIGKILL
 * leaves no time for it. A child process, started before the sandbox is entered, removes the file
 * when the program sends it an order or ends. It never sees a byte of an image. They communicate in
 * single bytes.
 */

enum { BEGUN = 'o', COMPLETE = 'c', BROKEN_OFF = 'b' };

/* Unlinks the file if the name still leads to it; otherwise truncates it. */
static const char *remove_file(const char *name, int descriptor)
{
    struct stat named, opened;
    bool same = lstat(name, &named) == 0 && fstat(descriptor, &opened) == 0 &&
                named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
    if (same && unlink(name) == 0)
        return "removed";
    return ftruncate(descriptor, 0) ? NULL : "emptied";
}

static void remove_incomplete(const char *name, int descriptor)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    const char *done = remove_file(name, descriptor);
    bw_escape_words(&line, name);
    fprintf(stderr, "btrfs-walk: %.*s is incomplete%s%s\n", (int)line.length,
            line.data ? line.data : "", done ? ", and was " : "", done ? done : "");
}

/* The child process. It closes stdin and stdout, because others may wait for their end. */
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
    if (begun && !complete)
        remove_incomplete(name, descriptor);
    else if (ours && !complete)
        remove_file(name, descriptor); /* nothing was written yet, so no message */
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
 * Returns -1 if it cannot be started; then nothing will be removed. It is a grandchild, because its
 * parent could not wait for it in the sandbox. */
static int start_watcher(const char *name, int descriptor, bool ours)
{
    int channel[2], status = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel))
        return -1;
    pid_t child = fork();
    if (child == 0) {
        const pid_t watcher = fork();
        if (watcher)
            _exit(watcher < 0);
        close(channel[0]);
        watch_output(channel[1], name, descriptor, ours);
    }
    close(channel[1]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child < 0 || status) {
        close(channel[0]);
        return -1;
    }
    watcher_now = channel[0];
    cmd_clean_up_on_exit(remove_on_exit);
    return channel[0];
}

/* The previous contents are about to be lost, so from now on an incomplete file is always
 * removed. */
static void watch_begun_file(int watcher)
{
    if (watcher >= 0)
        send_byte(watcher, BEGUN);
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

/* Results to a file. */

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
    const struct cmd_base *base = common->writing.base;
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

static bool is_stdout(const struct cmd_output_file *file)
{
    return !file->name || strcmp(file->name, "-") == 0;
}

int cmd_output_file_descriptor(const struct cmd_output_file *file)
{
    return is_stdout(file) ? STDOUT_FILENO : file->descriptor;
}

static bool is_regular(int descriptor)
{
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

struct bw_error *cmd_output_file_open(void *context, const struct bw_fs *planned)
{
    struct cmd_output_file *file = context;
    if (is_stdout(file))
        return NULL;
    bool is_new = access(file->name, F_OK) != 0;
    BW_TRY(cmd_open_output(planned, file->common->probes.blackbox, file->name, &file->descriptor));
    file->is_open = true;
    file->watcher =
        is_regular(file->descriptor) ? start_watcher(file->name, file->descriptor, is_new) : -1;
    return NULL;
}

struct bw_error *cmd_output_file_start(struct cmd_output_file *file)
{
    file->has_begun = true;
    if (is_stdout(file) || !is_regular(file->descriptor))
        return NULL;
    watch_begun_file(file->watcher);
    return ftruncate(file->descriptor, 0)
               ? bw_error_from_errno(errno, "cannot empty %s", file->name)
               : NULL;
}

static struct bw_error *flush_file(struct cmd_output_file *file)
{
    struct bw_error *error =
        cmd_write_file(file->descriptor, file->name, file->gathered.data, file->gathered.length);
    file->gathered.length = 0;
    return error;
}

struct bw_error *cmd_output_file_add(void *context, const char *bytes, size_t length)
{
    enum { GATHER = 64 << 10 };
    struct cmd_output_file *file = context;
    if (is_stdout(file))
        return cmd_write(&file->output, bytes, length);
    if (file->gathered.length + length > GATHER)
        BW_TRY(flush_file(file));
    if (length > GATHER)
        return cmd_write_file(file->descriptor, file->name, bytes, length);
    bw_buffer_append(&file->gathered, bytes, length);
    return file->gathered.failed ? bw_error_no_memory() : NULL;
}

struct bw_error *cmd_output_file_write(struct cmd_output_file *file, const struct bw_buffer *text)
{
    if (text->failed)
        return bw_error_no_memory();
    BW_TRY(cmd_output_file_start(file));
    return cmd_output_file_add(file, text->data, text->length);
}

struct bw_error *cmd_output_file_close(struct cmd_output_file *file, struct bw_error *error)
{
    if (is_stdout(file))
        return bw_error_first(error, cmd_flush(&file->output));
    if (file->is_open && !error)
        error = flush_file(file);
    if (file->is_open)
        error = cmd_close_file(file->common, file->descriptor, file->name, error);
    if (file->is_open)
        end_watcher(file->watcher, !error && file->has_begun);
    file->is_open = false;
    bw_buffer_free(&file->gathered);
    return error;
}
