/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output of commands: results to stdout, messages to stderr; and the exit status for an error. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "cli/command.h"
#include "cli/common/last_words.h"
#include "cli/common/progress.h"

/* Thousands of small subvolumes must not cost a system call each. Bytes older than this are written
 * with the next ones. */
enum { GATHER_BYTES = 64 << 10, GATHER_NANOSECONDS = 50000000 };

/* " [features/verify]" or, if the layer's name is not that of its type, " [storage/file device-2]".
 */
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

/* Where the error originated and the layers it passed; an address is printed when it changes. */
static void append_way(struct bw_buffer *line, const struct bw_error_hop *way)
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

/* The lines of -vv after a message: its way through the layers, then its causes with theirs. */
static void explain(const struct bw_error *error, int depth)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    bool says_more = error->way && (error->way->next || error->way->has_address);
    if (says_more) {
        bw_buffer_format(&line, "%*s", 2 * depth, "");
        append_way(&line, error->way);
        print_line(&line);
    }
    for (const struct bw_error *cause = error->causes; cause; cause = cause->next) {
        line.length = 0;
        bw_buffer_format(&line, "%*sbecause: ", 2 * depth, "");
        bw_escape_words(&line, cause->message);
        print_line(&line);
        explain(cause, depth + 1);
    }
}

static void say(const struct cmd_common *common, const char *kind, const struct bw_error *error)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    bw_buffer_format(&line, "%s", kind);
    bw_escape_words(&line, error->message);
    if (error->way)
        append_layer(&line, error->way);
    print_line(&line);
    if (common && common->verbose > 1)
        explain(error, 1);
}

static void listen(const struct cmd_common *common, enum bw_severity severity,
                   const struct bw_error *error)
{
    if (common && common->listener.report)
        common->listener.report(common->listener.context, severity, error);
}

void cmd_tell(void *context, enum bw_severity severity, const struct bw_error *error)
{
    const struct cmd_common *common = context;
    listen(common, severity, error);
    if (common->quiet || (severity == BW_NOTE && !common->verbose) ||
        (common->wants && !common->wants(severity, error)))
        return;
    say(common,
        severity == BW_NOTE      ? "note: "
        : severity == BW_WARNING ? "warning: "
                                 : "damage: ",
        error);
}

int cmd_fail(const struct cmd_common *common, struct bw_error *error)
{
    int status = error->code == BW_ERROR_UNSUPPORTED ? STATUS_UNSUPPORTED : STATUS_CANNOT;
    listen(common, BW_DAMAGE, error);
    say(common, "", error);
    bw_error_free(error);
    return status;
}

int cmd_fail_answer(const struct cmd_common *common, struct bw_error *error)
{
    bool usage = error->code == BW_ERROR_NOT_FOUND || error->code == BW_ERROR_USAGE;
    int status = cmd_fail(common, error);
    return status == STATUS_CANNOT && !usage ? STATUS_PARTIAL : status;
}

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

static struct bw_error *write_stdout(const char *bytes, size_t length)
{
    struct bw_error *error = cmd_write_file(STDOUT_FILENO, "stdout", bytes, length);
    if (error && error->system == EPIPE) {
        /* The signal is ignored for all other files, and ends the program when its results are no
         * longer read. */
        cmd_last_words();
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    return error;
}

static struct bw_error *write_all(const char *bytes, size_t length)
{
    return cmd_progress_around(write_stdout, bytes, length);
}

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static struct bw_error *write_gathered(struct cmd_output *output)
{
    struct bw_error *error = write_all(output->gathered.data, output->gathered.length);
    output->gathered.length = 0;
    return error;
}

struct bw_error *cmd_write(void *context, const char *bytes, size_t length)
{
    struct cmd_output *output = context;
    bool large = length >= GATHER_BYTES || output->at_once;
    if (output->gathered.length && (large || output->gathered.length + length > GATHER_BYTES ||
                                    now() - output->since > GATHER_NANOSECONDS))
        BW_TRY(write_gathered(output));
    if (large)
        return write_all(bytes, length);
    if (!output->gathered.length)
        output->since = now();
    bw_buffer_append(&output->gathered, bytes, length);
    return output->gathered.failed ? bw_error_no_memory() : NULL;
}

struct bw_error *cmd_flush(struct cmd_output *output)
{
    struct bw_error *error = write_gathered(output);
    bw_buffer_free(&output->gathered);
    return error;
}

int cmd_write_text(const struct cmd_common *common, struct bw_buffer *text)
{
    struct bw_error *error =
        text->failed ? bw_error_no_memory() : write_all(text->data, text->length);
    bw_buffer_free(text);
    if (!error)
        return STATUS_OK;
    cmd_fail(common, error);
    return STATUS_PARTIAL;
}
