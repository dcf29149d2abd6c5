/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The blackbox command: what a flight recorder has kept. The file may be that of a process that was
 * killed, or that still runs, or anything else.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "cmd/command.h"
#include "probe/recording.h"

struct blackbox_state {
    bool json;
    unsigned long last;
};

static struct bw_error *take_last(void *target, const struct cmd_option *option,
                                  const char *argument)
{
    struct blackbox_state *blackbox = target;
    return cmd_parse_number(argument, 0, UINT32_MAX, &blackbox->last)
               ? NULL
               : cmd_bad_argument(option, argument);
}

static const struct cmd_option options[] = {
    {0, "json", NULL, "one JSON object a line for each event",
     CMD_FLAG(struct blackbox_state, json)},
    {0, "last", "N", "only the last N events", .take = take_last},
    {0},
};

/* Reads on until there are so many bytes in all, or no more come. */
static struct bw_error *read_until(int descriptor, struct bw_buffer *bytes, uint64_t wanted)
{
    while (bytes->length < wanted) {
        if (!bw_buffer_reserve(bytes, (size_t)(wanted - bytes->length)))
            return bw_error_no_memory();
        ssize_t got =
            read(descriptor, bytes->data + bytes->length, (size_t)(wanted - bytes->length));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return bw_error_from_errno(errno, "cannot read");
        if (got == 0)
            return NULL;
        bytes->length += (size_t)got;
    }
    return NULL;
}

/* Reads a box: first its beginning, which says how long it is; one byte more would tell that it is
 * longer. Piece by piece: one that is shorter than it says costs no memory for what it lacks. */
static struct bw_error *read_box(int descriptor, struct bw_buffer *bytes)
{
    enum { PIECE = 1 << 20 };
    uint64_t size, wanted = BW_RECORDING_HEADER;
    BW_TRY(read_until(descriptor, bytes, wanted));
    BW_TRY(bw_recording_measure(bytes->data, bytes->length, &size));
    while (bytes->length == wanted && wanted <= size) {
        wanted = size + 1 - wanted < PIECE ? size + 1 : wanted + PIECE;
        BW_TRY(read_until(descriptor, bytes, wanted));
    }
    return NULL;
}

static struct bw_error *load(const char *file, struct bw_buffer *bytes)
{
    int descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0)
        return bw_error_from_errno(errno, "cannot open");
    struct bw_error *error = read_box(descriptor, bytes);
    close(descriptor);
    return error;
}

static struct bw_error *write_events(const struct blackbox_state *blackbox,
                                     const struct bw_recording *recording,
                                     const struct bw_recording_list *list)
{
    struct cmd_output output = {0};
    struct bw_buffer line = {0};
    struct bw_error *error = NULL;
    struct bw_recorded event;
    uint32_t i = blackbox->last < list->count ? list->count - (uint32_t)blackbox->last : 0;
    for (; i < list->count && !error; i++) {
        if (bw_recording_slot(recording, list->slots[i], &event) != BW_SLOT_GOOD)
            continue;
        line.length = 0;
        (blackbox->json ? bw_recorded_append_json : bw_recorded_append_text)(&event, &line);
        bw_buffer_append_byte(&line, '\n');
        error = line.failed ? bw_error_no_memory() : cmd_write(&output, line.data, line.length);
    }
    bw_buffer_free(&line);
    struct bw_error *flush_error = cmd_flush(&output);
    if (!error)
        return flush_error;
    bw_error_free(flush_error);
    return error;
}

/* "2026-01-31 12:00:00 UTC" */
static void format_time(uint64_t nanoseconds, char *text, size_t size)
{
    struct tm parts;
    time_t seconds = (time_t)(nanoseconds / 1000000000);
    if (!gmtime_r(&seconds, &parts) || !strftime(text, size, "%Y-%m-%d %H:%M:%S UTC", &parts))
        snprintf(text, size, "an unknown time");
}

static void append_ending(struct bw_buffer *line, const struct bw_recording_facts *facts)
{
    const char *name = facts->signal <= INT32_MAX ? sigabbrev_np((int)facts->signal) : NULL;
    if (!facts->signal && !facts->ended) {
        bw_buffer_format(line, "runs still, or was killed");
        return;
    }
    if (facts->ended)
        bw_buffer_format(line, "ended by itself");
    else if (name)
        bw_buffer_format(line, "died of SIG%s", name);
    else
        bw_buffer_format(line, "died of signal %" PRIu32, facts->signal);
    bw_buffer_format(line, " after %" PRIu64 ".%09" PRIu64 " seconds", facts->ns / 1000000000,
                     facts->ns % 1000000000);
}

static void say(const char *file, const struct bw_buffer *line)
{
    struct bw_buffer name = {0};
    bw_escape_append(&name, file, strlen(file));
    fprintf(stderr, "btrfs-walk: %.*s: %.*s\n", (int)name.length, name.data ? name.data : "",
            (int)line->length, line->data ? line->data : "");
    bw_buffer_free(&name);
}

/* Whose box it is, and what is not in it. */
static void say_rest(const char *file, const struct bw_recording *recording,
                     const struct bw_recording_list *list)
{
    const struct bw_recording_facts facts = bw_recording_facts(recording);
    struct bw_buffer line = {0};
    char begin[48];
    format_time(facts.begin_real, begin, sizeof begin);
    bw_buffer_format(&line, "%s, process %" PRIu32 ", begun %s, ", facts.program, facts.process,
                     begin);
    append_ending(&line, &facts);
    say(file, &line);
    line.length = 0;
    const struct {
        uint64_t count;
        const char *what;
    } losses[] = {
        {list->overwritten, "overwritten by later ones"},
        {list->torn, "not complete"},
        {list->missing, "lost to a slot that was in use"},
        {list->damaged, "damaged"},
    };
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        if (losses[i].count)
            bw_buffer_format(&line, "%s%" PRIu64 " %s",
                             line.length ? ", " : "events not shown: ", losses[i].count,
                             losses[i].what);
    if (line.length)
        say(file, &line);
    bw_buffer_free(&line);
}

static struct bw_error *show(const struct cmd_common *common, const struct blackbox_state *blackbox,
                             const char *file, struct bw_buffer *bytes, int *status)
{
    struct bw_recording recording;
    struct bw_recording_list list;
    BW_TRY(load(file, bytes));
    BW_TRY(bw_recording_open(bytes->data, bytes->length, &recording));
    BW_TRY(bw_recording_sort(&recording, &list));
    struct bw_error *error = write_events(blackbox, &recording, &list);
    if (error) {
        cmd_fail(common, error);
        *status = STATUS_PARTIAL;
    } else if (!common->quiet) {
        say_rest(file, &recording, &list);
    }
    bw_recording_list_free(&list);
    return NULL;
}

static int run(const struct cmd_common *common, void *state)
{
    struct bw_buffer bytes = {0};
    int status = STATUS_OK;
    if (common->image_count != 1) {
        fputs("btrfs-walk: blackbox wants one FILE\nTry 'btrfs-walk blackbox --help'.\n", stderr);
        return STATUS_CANNOT;
    }
    struct bw_error *error = show(common, state, common->images[0], &bytes, &status);
    if (error) {
        cmd_fail(common, bw_error_prefix(error, "%s", common->images[0]));
        status = STATUS_CANNOT;
    }
    bw_buffer_free(&bytes);
    return status;
}

const struct command cmd_blackbox = {
    .name = "blackbox",
    .operands = "FILE",
    .summary = "Shows the events that option --blackbox of a command has kept in FILE.",
    .details = "\nWith --blackbox FILE a command keeps its last events there, whatever ends it, "
               "SIGKILL as well: "
               "those of\n"
               "coarse probes, and of the probes that --probe selects. The next command begins "
               "FILE anew; a file "
               "that is\n"
               "no black box is never overwritten. Events are listed oldest first: seconds since "
               "the begin, "
               "thread,\n"
               "probe, and what the probe tells. Messages on stderr say how the command ended, and "
               "how many events "
               "are\n"
               "not there any more, were being written, or are damaged. Times in JSON are "
               "nanoseconds of the "
               "monotonic\n"
               "clock; bytes that are not UTF-8 become NAME_bytes in base64; \"cut\" says that the "
               "text was "
               "longer.\n"
               "Exit status: 0 shown; 1 the output cannot be written; 2 wrong usage, or FILE "
               "cannot be read, is no\n"
               "black box, or is damaged.\n",
    .examples =
        "  btrfs-walk --blackbox box --probe '*' image.img  keep the last events of all probes\n"
        "  btrfs-walk blackbox box                          show them\n"
        "  btrfs-walk blackbox --last 1 box                 what happened last\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct blackbox_state),
    .defaults = &(const struct blackbox_state){.last = UINT32_MAX},
    .needs_no_image = true,
};
