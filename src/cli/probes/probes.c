/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the options --probe... to consumers. The probes selected are printed, unless they are only
 * counted (--probe-stats) or recorded (--blackbox). The flight recorder always has the coarse
 * probes.
 */
#include "cli/probes/probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/common/monitor.h"
#include "cli/probes/recorder.h"

static int show_list(const struct command *command, const void *state, const char *style)
{
    (void)command;
    (void)state;
    return cmd_probe_list(style);
}

static struct bw_error *add_pattern(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct cmd_probe_settings *settings = target;
    (void)option;
    settings->patterns[settings->pattern_count++] = argument;
    return NULL;
}

static struct bw_error *set_stats(void *target, const struct cmd_option *option, const char *by)
{
    struct cmd_probe_settings *settings = target;
    bool xlator = by && strcmp(by, "xlator") == 0;
    settings->stats = xlator ? CMD_STATS_BY_XLATOR : CMD_STATS_BY_PROBE;
    return xlator || !by || strcmp(by, "probe") == 0
               ? NULL
               : cmd_bad_argument(option, by, "probe, xlator");
}

static struct bw_error *set_maximum(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct cmd_probe_settings *settings = target;
    settings->limited = true;
    return cmd_parse_number(argument, 0, UINT32_MAX, &settings->maximum)
               ? NULL
               : cmd_bad_argument(option, argument, "a number");
}

static const char *const formats[] = {"text", "json", NULL};

const struct cmd_option cmd_probe_options[] = {
    {0, "probe", "PATTERN",
     "print each event of these probes: 'block-*,!block-verify' (repeatable)", .take = add_pattern,
     .heading = "Probes", .rare = true},
    {0, "probe-list", "[=long|json|bpftrace]",
     "list the names of the probes, all details, the same as JSON, or the records for bpftrace",
     .show = show_list},
    {0, "probe-format", "FORMAT", "format of events and statistics: text or json",
     CMD_WORD(struct cmd_probe_settings, format, formats)},
    {0, "probe-output", "FILE", "where to write events and statistics (default: stderr)",
     CMD_TEXT(struct cmd_probe_settings, output)},
    {0, "probe-filter", "EXPRESSION", "only events that meet a condition: 'level > 0 && ns > 1ms'",
     CMD_TEXT(struct cmd_probe_settings, filter)},
    {0, "probe-stats", "[=probe|xlator]",
     "count and time the events of each probe, or the calls of each layer", .take = set_stats},
    {0, "probe-max", "N", "stop printing after N events", .take = set_maximum},
    {0, "blackbox", "FILE",
     "keep the last events in FILE, even after a crash ('btrfs-walk blackbox FILE' shows them)",
     CMD_TEXT(struct cmd_probe_settings, blackbox)},
    {0},
};

/* Whether events are to be printed even if they are recorded. */
static bool prints(const struct cmd_probe_settings *settings)
{
    return settings->output || settings->limited;
}

struct cmd_probes {
    struct cmd_probe_settings settings;
    struct bw_probes *probes;
    bool selected[BW_PROBES_MAX];
    int output; /* where events and statistics go; -1: to a file that is not open yet */
    struct bw_probe_printer *printer; /* this one or the next; NULL: the other, or neither */
    struct bw_probe_stats *stats;
    struct bw_filter *filter; /* before that one; NULL: none */
    struct bw_recorder *recorder;
};

/* A filter without --probe is for all probes that it fits; false if there is none. */
static bool select_fitting(struct cmd_probes *watch)
{
    unsigned count;
    bool any = false;
    bw_probe_table(&count);
    for (unsigned i = 0; i < count; i++) {
        bool alone[BW_PROBES_MAX] = {false};
        alone[i] = true;
        struct bw_filter *filter = NULL;
        BW_AUTO_ERROR struct bw_error *error =
            bw_filter_create(watch->settings.filter, alone, &filter);
        watch->selected[i] = !error;
        any |= !error;
        bw_filter_destroy(filter);
    }
    return any;
}

/* BTRFS_WALK_PROBE says the same as --probe, for programs that are started by others. */
static struct bw_error *select_probes(struct cmd_probes *watch)
{
    const struct cmd_probe_settings *settings = &watch->settings;
    const char *environment = getenv("BTRFS_WALK_PROBE");
    bool given = settings->pattern_count > 0;
    if (environment && *environment) {
        given = true;
        BW_TRY(bw_probes_select(environment, watch->selected));
    }
    for (size_t i = 0; i < settings->pattern_count; i++)
        BW_TRY(bw_probes_select(settings->patterns[i], watch->selected));
    if (!given && settings->stats == CMD_STATS_BY_XLATOR)
        return bw_probes_select("fop-unwind", watch->selected);
    if (!given && settings->filter && select_fitting(watch))
        return NULL;
    if (!given && (settings->stats || prints(settings) || settings->filter))
        return bw_probes_select("*", watch->selected);
    return NULL;
}

static bool anything_selected(const struct cmd_probes *watch)
{
    for (size_t i = 0; i < BW_PROBES_MAX; i++)
        if (watch->selected[i])
            return true;
    return false;
}

static const char *output_name(const struct cmd_probes *watch)
{
    const char *name = watch->settings.output;
    return name && strcmp(name, "-") != 0 ? name : "stderr";
}

static struct bw_error *write_lines(void *context, const char *lines, size_t length)
{
    const struct cmd_probes *watch = context;
    /* Events from before the file is opened are dropped. */
    if (watch->output < 0)
        return NULL;
    return cmd_write_file(watch->output, output_name(watch), lines, length);
}

/* Lines on stderr are seen at once. */
static bool gathers(const struct cmd_probes *watch)
{
    return strcmp(output_name(watch), "stderr") != 0;
}

static struct bw_error *make_printer(struct cmd_probes *watch)
{
    const struct bw_probe_printer_options options = {
        .struct_size = sizeof(struct bw_probe_printer_options),
        .json = watch->settings.format == CMD_PROBES_JSON,
        .gather = gathers(watch),
        .maximum = watch->settings.maximum,
        .consume = write_lines,
        .context = watch,
    };
    return bw_probe_printer_create(&options, watch->selected, &watch->printer);
}

/* Adds a consumer to the probes, after the filter if there is one. */
static struct bw_error *join(struct cmd_probes *watch, struct bw_probe_consumer *consumer)
{
    if (watch->settings.filter) {
        BW_TRY(bw_filter_create(watch->settings.filter, consumer->selected, &watch->filter));
        consumer = bw_filter_before(watch->filter, consumer);
    }
    bw_probes_add(watch->probes, consumer);
    return NULL;
}

/* Options that would have no effect are refused. */
static struct bw_error *check_settings(const struct cmd_probes *watch)
{
    const struct cmd_probe_settings *settings = &watch->settings;
    const char *vain = NULL;
    if (settings->stats && settings->limited)
        vain = "--probe-max limits what is printed; --probe-stats prints no events";
    else if (settings->stats == CMD_STATS_BY_XLATOR && settings->pattern_count)
        vain = "--probe-stats=xlator counts the calls of all layers; it takes no --probe";
    else if (settings->filter && settings->blackbox && !prints(settings) && !settings->stats)
        vain = "--probe-filter is for events that are printed or counted; --blackbox keeps all of "
               "them";
    else if (settings->pattern_count && !anything_selected(watch))
        vain = "--probe takes away all that it selects";
    return vain ? bw_error_create(BW_ERROR_USAGE, "%s", vain) : NULL;
}

static struct bw_error *make_consumers(struct cmd_probes *watch)
{
    const struct cmd_probe_settings *settings = &watch->settings;
    BW_TRY(select_probes(watch));
    BW_TRY(check_settings(watch));
    if (settings->stats) {
        BW_TRY(bw_probe_stats_create(settings->stats == CMD_STATS_BY_XLATOR, watch->selected,
                                     &watch->stats));
        return join(watch, bw_probe_stats_consumer(watch->stats));
    }
    if (!anything_selected(watch) || (settings->blackbox && !prints(settings)))
        return NULL;
    BW_TRY(make_printer(watch));
    if (watch->settings.limited && !watch->settings.maximum)
        return NULL;
    return join(watch, bw_probe_printer_consumer(watch->printer));
}

/* For scripts that must work with later versions. */
static void note_stability(const struct cmd_common *common, const struct bw_filter *filter)
{
    const struct bw_attributes least = bw_filter_attributes(filter);
    struct bw_error *note = bw_error_create(
        BW_ERROR_USAGE, "stability of the filter: %s/%s/%s", bw_stability_name(least.name),
        bw_stability_name(least.data), bw_dependency_name(least.depends));
    cmd_tell((void *)(uintptr_t)common, BW_NOTE, note);
    bw_error_free(note);
}

struct bw_error *cmd_probes_create(const struct cmd_common *common, struct cmd_probes **result)
{
    struct cmd_probes *watch = calloc(1, sizeof *watch);
    if (!watch)
        return bw_error_no_memory();
    watch->settings = common->probes;
    watch->output = strcmp(output_name(watch), "stderr") == 0 ? STDERR_FILENO : -1;
    struct bw_error *error = bw_probes_create(&watch->probes);
    if (!error)
        error = make_consumers(watch);
    if (!error && watch->filter)
        note_stability(common, watch->filter);
    if (!error)
        *result = watch;
    else
        bw_error_free(cmd_probes_close(watch));
    return error;
}

struct bw_probes *cmd_probes_set_of(struct cmd_probes *watch)
{
    return watch->probes;
}

static struct bw_error *report_stats(struct cmd_probes *watch)
{
    return bw_probe_stats_report(watch->stats, watch->settings.format == CMD_PROBES_JSON,
                                 write_lines, watch);
}

/* A signal ends the program. */
static void print_held_back(void *context)
{
    struct cmd_probes *watch = context;
    if (watch->stats)
        bw_error_free(report_stats(watch));
    else
        bw_probe_printer_flush(watch->printer);
}

static struct bw_error *open_output(struct cmd_probes *watch, const struct bw_fs *fs)
{
    const struct cmd_probe_settings *settings = &watch->settings;
    if (watch->output == STDERR_FILENO)
        return NULL;
    BW_TRY(cmd_open_output(fs, settings->blackbox, settings->output, &watch->output));
    /* A device or a pipe cannot be truncated. */
    return ftruncate(watch->output, 0) && errno != EINVAL
               ? bw_error_from_errno(errno, "cannot write to %s", settings->output)
               : NULL;
}

struct bw_error *cmd_probes_open(struct cmd_probes *watch, const struct bw_fs *fs)
{
    const struct cmd_probe_settings *settings = &watch->settings;
    BW_TRY(cmd_recorder_open(fs, settings->blackbox, settings->blackbox ? watch->selected : NULL,
                             &watch->recorder));
    bw_probes_add(watch->probes, bw_recorder_consumer(watch->recorder));
    cmd_recorder_start(watch->recorder);
    return open_output(watch, fs);
}

void cmd_probes_start(struct cmd_probes *watch)
{
    if (watch->stats || (watch->printer && gathers(watch)))
        cmd_set_exit_message(print_held_back, watch);
}

struct bw_error *cmd_probes_close(struct cmd_probes *watch)
{
    if (!watch)
        return NULL;
    struct bw_error *error = bw_probe_printer_destroy(watch->printer);
    if (watch->stats && watch->recorder)
        error = report_stats(watch);
    cmd_recorder_stop();
    bw_recorder_destroy(watch->recorder);
    bw_probe_stats_destroy(watch->stats);
    bw_filter_destroy(watch->filter);
    bw_probes_destroy(watch->probes);
    if (watch->output >= 0 && watch->output != STDERR_FILENO && close(watch->output) && !error)
        error = bw_error_from_errno(errno, "cannot write to %s", output_name(watch));
    free(watch);
    return error;
}
