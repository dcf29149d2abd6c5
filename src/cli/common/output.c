/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Output of commands: messages to stderr and results to stdout. Results are gathered, so that
 * thousands of small ones need few system calls, unless stdout is a terminal; a line of progress on
 * the same terminal is hidden meanwhile. Files are in output_file.c.
 */
#include "cli/common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/decimal.h"
#include "base/escape.h"
#include "base/whole_io.h"
#include "cli/common/monitor.h"
#include "cli/common/repeats.h"

/* Colours. */

bool cmd_has_color(const struct cmd_common *common, int descriptor)
{
    const unsigned when = common ? common->messages.color : CMD_COLOR_AUTO;
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    if (when != CMD_COLOR_AUTO)
        return when == CMD_COLOR_ALWAYS;
    return isatty(descriptor) && !(none && *none) && !(terminal && strcmp(terminal, "dumb") == 0);
}

const char *cmd_color(bool has_color, enum cmd_color color)
{
    static const char *const sequences[] = {
        [CMD_PLAIN] = "\033[0m",     [CMD_BOLD] = "\033[1m",   [CMD_RED] = "\033[1;31m",
        [CMD_YELLOW] = "\033[1;33m", [CMD_GREEN] = "\033[32m", [CMD_CYAN] = "\033[36m"};
    return has_color ? sequences[color] : "";
}

enum cmd_color cmd_severity_color(const char *severity)
{
    if (strcmp(severity, "error") == 0 || strcmp(severity, "damage") == 0)
        return CMD_RED;
    return strcmp(severity, "warning") == 0 ? CMD_YELLOW : CMD_CYAN;
}

struct cmd_size cmd_size(const struct cmd_format_settings *settings, uint64_t bytes)
{
    struct cmd_size size = {"-"};
    if (bytes == BW_ABSENT)
        return size;
    if (settings && settings->raw)
        *bw_decimal(size.text, bytes) = '\0';
    else
        *bw_write_size(size.text, bytes, settings && settings->si) = '\0';
    return size;
}

struct cmd_date cmd_date(int64_t nanoseconds)
{
    struct cmd_date date = {""};
    char text[BW_DATE_LENGTH];
    bw_write_date(text, nanoseconds, ' ');
    memcpy(date.text, text, sizeof date.text - 1);
    return date;
}

/* Messages. */

/* The lines of -vv after a message: the layers that the error passed, then its causes, each with
 * its own layers. */
static void print_causes(const struct bw_error *error, int depth)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    bool says_more = error->way && (error->way->next || error->way->has_address);
    if (says_more) {
        /* The layer where it originated, and those that it passed. An address is printed when it
         * changes. */
        const struct bw_error_hop *before = NULL;
        const char *separator = "born in ";
        bw_buffer_format(&line, "%*s", 2 * depth, "");
        for (const struct bw_error_hop *hop = error->way; hop; before = hop, hop = hop->next) {
            bw_buffer_format(&line, "%s", separator);
            separator = hop == error->way ? ", came through " : ", ";
            bw_escape_words(&line, hop->volume);
            if (hop->has_address && (!before || hop->address != before->address))
                bw_buffer_format(&line, " at %" PRIu64, hop->address);
        }
        cmd_progress_print(bw_buffer_text(&line));
    }
    for (const struct bw_error *cause = error->causes; cause; cause = cause->next) {
        line.length = 0;
        bw_buffer_format(&line, "%*sbecause: ", 2 * depth, "");
        bw_escape_words(&line, cause->message);
        cmd_progress_print(bw_buffer_text(&line));
        print_causes(cause, depth + 1);
    }
}

/* "disk.img: ", unless the message begins with an image. */
static void append_image(struct bw_buffer *line, const struct cmd_common *common,
                         const struct bw_error *error)
{
    /* Other errors are about the command line or another file. */
    const bool is_about_image =
        error->code == BW_ERROR_CORRUPT || error->code == BW_ERROR_MISSING_DEVICE ||
        error->code == BW_ERROR_UNSUPPORTED || error->code == BW_ERROR_NOT_FOUND ||
        error->code == BW_ERROR_NO_CHECKSUM;
    if (!common || !common->input.image_count || !is_about_image)
        return;
    for (size_t i = 0; i < common->input.image_count; i++)
        if (strncmp(error->message, common->input.images[i], strlen(common->input.images[i])) == 0)
            return;
    bw_escape_words(line, common->input.images[0]);
    bw_buffer_append(line, ": ", 2);
}

/* `kind` is "note", "warning" or "damage"; NULL: an error that ends the command or a part of it. */
static void print_message(const struct cmd_common *common, const char *kind,
                          const struct bw_error *error)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    const bool has_color = cmd_has_color(common, STDERR_FILENO);
    if (kind)
        bw_buffer_format(&line, "%s%s:%s ", cmd_color(has_color, cmd_severity_color(kind)), kind,
                         cmd_color(has_color, CMD_PLAIN));
    else
        bw_buffer_format(&line, "%s", cmd_color(has_color, CMD_RED));
    append_image(&line, common, error);
    bw_escape_words(&line, error->message);
    if (error->way && common && common->messages.verbose) {
        /* " [features/verify]"; if the layer's name differs from its type,
         * " [storage/file device-2]". */
        const char *type = strrchr(error->way->layer, '/');
        type = type ? type + 1 : error->way->layer;
        bw_buffer_format(&line, " [%s", error->way->layer);
        if (strcmp(type, error->way->volume) != 0) {
            bw_buffer_append_byte(&line, ' ');
            bw_escape_words(&line, error->way->volume);
        }
        bw_buffer_append_byte(&line, ']');
    }
    bw_buffer_format(&line, "%s", cmd_color(has_color && !kind, CMD_PLAIN));
    cmd_progress_print(line.length ? bw_buffer_text(&line) : "out of memory");
    if (common && common->messages.verbose > 1)
        print_causes(error, 1);
}

static void notify_listener(const struct cmd_common *common, enum bw_severity severity,
                            const struct bw_error *error)
{
    if (common && common->messages.listener.report)
        common->messages.listener.report(common->messages.listener.context, severity, error);
}

const char *cmd_severity_name(enum bw_severity severity)
{
    static const char *const names[] = {
        [BW_NOTE] = "note", [BW_WARNING] = "warning", [BW_DAMAGE] = "damage"};
    return names[severity];
}

/* Appends the advice to the message, with options spelled as on the command line. */
void cmd_spell_advice(const struct cmd_common *common, struct bw_error *error)
{
    static const struct {
        const char *name, *option, *of_other; /* of_other: for the file system to compare with */
    } names[] = {
        {"keys", "key-file", "key-file"},
        {"offset", "image-offset", "image-offset"},
        {"partition", "partition", "other-partition"},
        {"paths", "device", "other"},
        {"side", "side", "other-side"},
    };
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    if (!error->advice)
        return;
    bw_buffer_format(&text, "%s; ", error->message);
    const char *advice = error->advice;
    for (bool is_option = false; *advice; is_option = !is_option) {
        size_t length = strcspn(advice, "`");
        const char *next = advice + length + (advice[length] == '`');
        const size_t name = is_option ? strspn(advice, "abcdefghijklmnopqrstuvwxyz_") : 0;
        const char *option = NULL;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strlen(names[i].name) == name && strncmp(names[i].name, advice, name) == 0)
                option = common && common->input.is_other ? names[i].of_other : names[i].option;
        if (is_option)
            bw_buffer_format(&text, "--%s", option ? option : "");
        for (size_t i = 0; !option && i < name; i++)
            bw_buffer_append_byte(&text, advice[i] == '_' ? '-' : advice[i]);
        bw_buffer_append(&text, advice + name, length - name);
        advice = next;
    }
    bw_buffer_append_byte(&text, '\0');
    free(BW_TAKE(error->advice));
    if (text.failed)
        return;
    free(error->message);
    error->message = BW_TAKE(text.data);
}

void cmd_print_message(void *context, enum bw_severity severity, const struct bw_error *error)
{
    const struct cmd_common *common = context;
    BW_AUTO_ERROR struct bw_error *spelled = error->advice ? bw_error_copy(error) : NULL;
    if (spelled) {
        cmd_spell_advice(common, spelled);
        error = spelled;
    }
    notify_listener(common, severity, error);
    if (common->messages.quiet || (severity == BW_NOTE && !common->messages.verbose) ||
        (common->messages.is_selected && !common->messages.is_selected(severity, error)))
        return;
    /* A mount runs for days: each read that fails there has its message. */
    const bool limited = !common->messages.verbose && !common->writing.serves;
    const unsigned most = severity == BW_DAMAGE ? 1 : CMD_EXAMPLES;
    if (limited && common->messages.repeats &&
        !cmd_repeats_allow(common->messages.repeats, error->message, most))
        return;
    print_message(common, cmd_severity_name(severity), error);
}

void cmd_note(const struct cmd_common *common, enum bw_severity severity, struct bw_error *error)
{
    cmd_print_message((void *)(uintptr_t)common, severity, error);
    bw_error_free(error);
}

static int print_error(const struct cmd_common *common, struct bw_error *error, enum cmd_loss loss)
{
    if (!error)
        return STATUS_OK;
    const int status = cmd_status_of(error->code, loss);
    cmd_spell_advice(common, error);
    notify_listener(common, BW_DAMAGE, error);
    print_message(common, NULL, error);
    bw_error_free(error);
    return status;
}

int cmd_fail(const struct cmd_common *common, struct bw_error *error)
{
    return print_error(common, error, CMD_LOST_ALL);
}

int cmd_refuse(const struct cmd_common *common, const char *mistake)
{
    return cmd_fail(common, bw_error_create(BW_ERROR_USAGE, "%s", mistake));
}

int cmd_fail_output(const struct cmd_common *common, struct bw_error *error)
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

struct bw_error *cmd_write_at(int descriptor, const char *name, uint64_t offset, const void *bytes,
                              size_t length)
{
    if (bw_write_at(descriptor, bytes, length, offset))
        return NULL;
    return bw_error_from_errno(errno, "cannot write to %s", name);
}

struct bw_error *cmd_write_file(int descriptor, const char *name, const char *bytes, size_t length)
{
    if (bw_write_all(descriptor, bytes, length))
        return NULL;
    return bw_error_from_errno(errno, "cannot write to %s", name);
}

struct bw_error *cmd_sync_file(const struct cmd_common *common, int descriptor, const char *name)
{
    if (!common->writing.fsync || fsync(descriptor) == 0)
        return NULL;
    if (errno == EINVAL || errno == EROFS || errno == ENOTSUP) /* pipes and terminals have no disk
                                                                */
        return NULL;
    return bw_error_from_errno(errno, "cannot write %s to the disk", name);
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

static int descriptor_of(const struct cmd_output *output)
{
    return output->name ? output->descriptor : STDOUT_FILENO;
}

static const char *name_of(const struct cmd_output *output)
{
    return output->name ? output->name : "stdout";
}

/* The bytes do not pass the buffer. */
static struct bw_error *write_through(const struct cmd_output *output, const char *bytes,
                                      size_t length)
{
    if (output->name)
        return cmd_write_file(output->descriptor, output->name, bytes, length);
    return write_results(bytes, length);
}

static struct bw_error *flush_gathered(struct cmd_output *output)
{
    struct bw_error *error = write_through(output, output->gathered.data, output->gathered.length);
    output->gathered.length = 0;
    return error;
}

struct bw_error *cmd_write(void *context, const char *bytes, size_t length)
{
    struct cmd_output *output = context;
    bool large = length >= GATHER_BYTES || output->at_once;
    if (output->gathered.length && (large || output->gathered.length + length > GATHER_BYTES ||
                                    bw_clock(CLOCK_MONOTONIC) - output->since > GATHER_NANOSECONDS))
        BW_TRY(flush_gathered(output));
    if (large)
        return write_through(output, bytes, length);
    if (!output->gathered.length)
        output->since = bw_clock(CLOCK_MONOTONIC);
    bw_buffer_append(&output->gathered, bytes, length);
    return bw_buffer_error(&output->gathered);
}

struct bw_error *cmd_write_buffer(struct cmd_output *output, const struct bw_buffer *text)
{
    BW_TRY(bw_buffer_error(text));
    return cmd_write(output, text->data, text->length);
}

struct bw_error *cmd_write_zeros(struct cmd_output *output, uint64_t length)
{
    enum { ZEROS = 256 << 10, SHORTEST_HOLE = 4 << 10 };
    static const char bytes[ZEROS];
    if (length >= SHORTEST_HOLE && (!output->is_tested || output->is_sparse)) {
        BW_TRY(flush_gathered(output));
        const int descriptor = descriptor_of(output);
        const off_t at = lseek(descriptor, 0, SEEK_CUR);
        if (!output->is_tested) {
            const int flags = fcntl(descriptor, F_GETFL);
            struct stat status;
            output->is_sparse = flags >= 0 && !(flags & O_APPEND) && at >= 0 &&
                                fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                                status.st_size <= at;
            output->is_tested = true;
        }
        if (output->is_sparse) {
            if (at < 0 || length > (uint64_t)(INT64_MAX - at))
                return bw_error_from_errno(at < 0 ? errno : EFBIG, "cannot write to %s",
                                           name_of(output));
            if (lseek(descriptor, (off_t)length, SEEK_CUR) < 0)
                return bw_error_from_errno(errno, "cannot write to %s", name_of(output));
            output->ends_in_hole = true;
            return NULL;
        }
    }
    for (size_t part; length; length -= part) {
        part = length < ZEROS ? (size_t)length : ZEROS;
        BW_TRY(cmd_write(output, bytes, part));
    }
    return NULL;
}

struct bw_error *cmd_flush(struct cmd_output *output)
{
    struct bw_error *error = flush_gathered(output);
    bw_buffer_free(&output->gathered);
    if (error || !output->ends_in_hole)
        return error;
    struct stat status;
    const int descriptor = descriptor_of(output);
    const off_t at = lseek(descriptor, 0, SEEK_CUR);
    if (at < 0 || fstat(descriptor, &status) || (status.st_size < at && ftruncate(descriptor, at)))
        return bw_error_from_errno(errno, "cannot write to %s", name_of(output));
    return NULL;
}

int cmd_flush_stdout(const struct cmd_common *common)
{
    bool flushed = !fflush(stdout); /* reports a write that failed earlier, too: stdio discards
                                     * those bytes */
    if (flushed && !ferror(stdout))
        return STATUS_OK;
    return cmd_miss(common, bw_error_from_errno(flushed ? EIO : errno, "cannot write to stdout"));
}

int cmd_write_text(struct bw_buffer *text)
{
    struct bw_error *error = bw_buffer_error(text);
    if (!error)
        error = write_results(text->data, text->length);
    bw_buffer_free(text);
    return cmd_miss(NULL, error);
}
