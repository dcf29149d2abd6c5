/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What commands say: results on stdout, all else on stderr; and the exit status an error stands for. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "cmd/command.h"

/* Thousands of small subvolumes must not cost a system call each. What is older than this goes out with the
 * next. */
enum { GATHER_BYTES = 64 << 10, GATHER_NANOSECONDS = 50000000 };

/* Messages hold names and paths: one line each, and nothing in it that a terminal would obey. */
static void say(const char *kind, const struct bw_error *error)
{
    struct bw_buffer line = {0};
    for (const char *word = error->message; *word;) {
        size_t length = strcspn(word, " ");
        bw_escape_append(&line, word, length);
        word += length;
        for (; *word == ' '; word++)
            bw_buffer_append_byte(&line, ' ');
    }
    fprintf(stderr, "btrfs-walk: %s%.*s\n", kind, (int)line.length, line.data ? line.data : "");
    bw_buffer_free(&line);
}

static void report(void *context, enum bw_severity severity, const struct bw_error *error)
{
    const struct cmd_common *common = context;
    if (common->quiet || (severity == BW_NOTE && !common->verbose))
        return;
    say(severity == BW_NOTE ? "note: " : severity == BW_WARNING ? "warning: " : "damage: ", error);
}

int cmd_fail(struct bw_error *error)
{
    int status = error->code == BW_ERROR_UNSUPPORTED ? STATUS_UNSUPPORTED : STATUS_CANNOT;
    say("", error);
    bw_error_free(error);
    return status;
}

int cmd_open(const struct cmd_common *common, struct bw_fs **fs)
{
    const struct bw_fs_options options = {
        .paths = common->images,
        .path_count = common->image_count,
        .superblock_copy = common->superblock_copy,
        .reporter = {report, (void *)(uintptr_t)common},
    };
    struct bw_error *error = bw_fs_open(&options, fs);
    return error ? cmd_fail(error) : STATUS_OK;
}

static struct bw_error *write_all(const char *bytes, size_t length)
{
    while (length) {
        ssize_t written = write(STDOUT_FILENO, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EPIPE) {
            /* Whoever ignores the signal still expects the program to end as if by it. */
            signal(SIGPIPE, SIG_DFL);
            raise(SIGPIPE);
        }
        if (written < 0)
            return bw_error_from_errno(errno, "cannot write to stdout");
        bytes += written;
        length -= (size_t)written;
    }
    return NULL;
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
