/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The blackbox command: prints the recording of a flight recorder. The process may have been killed
 * or still run, and the file may be anything else.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/probe.h"
#include "cli/command.h"
#include "cli/common/sandbox.h"
#include "cli/probes/probes.h"

struct blackbox_state {
    bool json;
    uint64_t last;
};

static const struct cmd_option options[] = {
    {0, "json", NULL, "print each event as a line of JSON", CMD_FLAG(struct blackbox_state, json)},
    {0, "last", "N", "print only the last N events",
     CMD_NUMBER(struct blackbox_state, last, 0, UINT32_MAX, "a number")},
    {0},
};

/* Prints the process of the recording, and the number of events that are missing. */
static void print_notes(const char *file, const struct bw_recording_facts *facts)
{
    BW_AUTO_BUFFER struct bw_buffer line = {0};
    bw_buffer_format(&line, "btrfs-walk: ");
    bw_escape_append(&line, file, strlen(file));
    bw_buffer_format(&line, ": ");
    const size_t prefix = line.length;
    bw_buffer_format(&line, "%s, process %" PRIu32 ", begun %s UTC, ", facts->program,
                     facts->process, cmd_date((int64_t)(facts->begin_real & INT64_MAX)).text);
    const char *name = cmd_recorder_signal(facts->signal);
    if (facts->ended)
        bw_buffer_format(&line, "ended normally");
    else if (name)
        bw_buffer_format(&line, "died of %s", name);
    else if (facts->signal)
        bw_buffer_format(&line, "died of signal %" PRIu32, facts->signal);
    else
        bw_buffer_format(&line, "still running, or killed");
    if (facts->ended || facts->signal)
        bw_buffer_format(&line, " after %" PRIu64 ".%09" PRIu64 " seconds", facts->ns / 1000000000,
                         facts->ns % 1000000000);
    fprintf(stderr, "%s\n", bw_buffer_text(&line));
    line.length = prefix;
    const struct {
        uint64_t count;
        const char *reason;
    } losses[] = {
        {facts->overwritten, "overwritten by later ones"},
        {facts->torn, "not complete"},
        {facts->missing, "lost to a slot that was in use"},
        {facts->damaged, "damaged"},
    };
    const char *separator = "events not shown: ";
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        if (!losses[i].count)
            continue;
        bw_buffer_format(&line, "%s%" PRIu64 " %s", separator, losses[i].count, losses[i].reason);
        separator = ", ";
    }
    if (line.length > prefix)
        fprintf(stderr, "%s\n", bw_buffer_text(&line));
}

static int run(const struct cmd_common *common, void *state)
{
    const struct blackbox_state *blackbox = state;
    struct bw_recording *recording;
    struct cmd_output output = {0};
    if (common->input.image_count != 1)
        return cmd_usage_error(&cmd_blackbox, "blackbox needs one FILE", NULL);
    const char *file = common->input.images[0];
    const int descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct bw_error *error = descriptor < 0 ? bw_error_from_errno(errno, "cannot open")
                                            : cmd_sandbox_enter(common, NULL);
    if (!error)
        error = bw_recording_open(descriptor, &recording);
    if (descriptor >= 0)
        close(descriptor);
    if (error) {
        cmd_fail(common, bw_error_prefix(error, "%s", file));
        return STATUS_CANNOT;
    }

    const uint32_t count = bw_recording_facts(recording)->count;
    const uint32_t first = blackbox->last < count ? count - (uint32_t)blackbox->last : 0;
    for (uint32_t i = first; i < count && !error; i++) {
        const struct bw_recorded event = bw_recording_event(recording, i);
        const struct bw_bytes *line = blackbox->json ? &event.json : &event.text;
        error = cmd_write(&output, line->data, line->length);
        if (!error)
            error = cmd_write(&output, "\n", 1);
    }
    error = bw_error_first(error, cmd_flush(&output));
    const int status = cmd_fail_output(common, error);
    if (!status && !common->messages.quiet)
        print_notes(file, bw_recording_facts(recording));
    bw_recording_close(recording);
    return status;
}

static const struct cmd_status meanings[] = {
    {STATUS_OK, "All events were printed."},
    {STATUS_PARTIAL, "The output cannot be written."},
    {STATUS_CANNOT, "Wrong usage, or FILE cannot be read, is not a recording, or is damaged."},
    {0},
};

const struct command cmd_blackbox = {
    .name = "blackbox",
    .topic = cmd_topic_developers,
    .operands = "FILE",
    .summary = "Prints the events that --blackbox has recorded.",
    .details =
        "\n"
        "With --blackbox FILE, a command records its last 8192 events in FILE: events of the\n"
        "coarse probes and of the probes selected with --probe. They survive even SIGKILL.\n"
        "The next command overwrites FILE; a file that is not a black box is never\n"
        "overwritten. Events are listed oldest first, in the format of --probe: seconds since\n"
        "the start, thread, probe, members of its record. Messages on stderr report how the\n"
        "command ended, and how many events were overwritten, incomplete or damaged. Times in\n"
        "JSON are nanoseconds of the monotonic clock; bytes that are not UTF-8 become\n"
        "NAME_bytes in base64; \"cut\" marks shortened texts.\n",
    .examples = "  btrfs-walk --blackbox box --probe '*' image.img  record events of all probes\n"
                "  btrfs-walk blackbox box                          show them\n"
                "  btrfs-walk blackbox --last 1 box                 the last event\n",
    .options = options,
    .meanings = meanings,
    .run = run,
    .state_size = sizeof(struct blackbox_state),
    .defaults = &(const struct blackbox_state){.last = UINT32_MAX},
    .needs_no_image = true,
};
