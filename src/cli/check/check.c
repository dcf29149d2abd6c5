/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The check command: opens the file system, or at least its images, runs the check and the
 * comparison with a list, and returns an exit status like fsck(8). Damage of the file system
 * becomes findings, not messages. The first signal ends the check, which then prints its findings;
 * a second signal ends the program.
 */
#include "cli/check/check.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "btrfs-walk/diff.h"
#include "cli/common/monitor.h"
#include "cli/common/paths.h"
#include "cli/common/selection.h"

/* The exit statuses are combinations of these bits, as in fsck(8). */
enum { CHECK_ERRORS = 4, CHECK_UNFINISHED = 8, CHECK_USAGE = 16 };

static int exit_status(const void *state, int status)
{
    static const int statuses[] = {[STATUS_OK] = 0,
                                   [STATUS_PARTIAL] = CHECK_UNFINISHED,
                                   [STATUS_CANNOT] = CHECK_USAGE,
                                   [STATUS_UNSUPPORTED] = CHECK_UNFINISHED};
    const struct check_arguments *settings = state;
    return statuses[status] | (settings && settings->found_errors ? CHECK_ERRORS : 0);
}

static const char *const tolerances[] = {"nothing", "repairable", NULL};

static const struct cmd_option options[] = {
    {0, "quick", NULL, "check only superblocks, chunk tree and root tree, one mirror of each block",
     CMD_FLAG(struct check_arguments, quick)},
    {0, "data", NULL, "also read every mirror of all data that have checksums, and their parity",
     CMD_FLAG(struct check_arguments, data)},
    {0, "part", "I/N",
     "with --data, read only part I of N parts of the data; part 1 also checks everything else",
     CMD_PART(struct check_arguments, part)},
    {0, "all", NULL, "print every finding and path, not only the first 20 of a code in a pass",
     CMD_FLAG(struct check_arguments, all)},
    {0, "tolerate", "WORD",
     "do not fail on these errors: repairable (another mirror or parity is good), or nothing "
     "(default)",
     CMD_WORD(struct check_arguments, tolerate, tolerances)},
    {0, "strict", NULL, "fail on warnings as on errors", CMD_FLAG(struct check_arguments, strict)},
    {0, "manifest", "FILE",
     "also compare all files with a list: mtree(5), or output of sha256sum(1) and similar tools",
     CMD_TEXT(struct check_arguments, manifest)},
    CMD_SUBVOLUME_OPTION(struct check_arguments, subvolume),
    CMD_NESTED_OPTION(struct check_arguments, nested),
    {0, "no-snapshots", NULL, "exclude snapshots from the comparison",
     CMD_FLAG(struct check_arguments, no_snapshots)},
    {0, "report", "junit=FILE", "also write a report for CI systems in the XML of JUnit",
     .store = check_set_report},
    {0, "save", "FILE", "write a baseline of everything that was verified, for --since",
     CMD_TEXT(struct check_arguments, save)},
    {0, "since", "FILE|GENERATION",
     "read only changes since a baseline, or only tree blocks and data newer than a generation",
     CMD_TEXT(struct check_arguments, since)},
    CMD_THREADS_OPTION(struct check_arguments, threads),
    {0},
};

/* Messages about the images are printed. */
static bool is_printed(enum bw_severity severity, const struct bw_error *error)
{
    return severity == BW_NOTE || (severity == BW_WARNING && (error->code == BW_ERROR_USAGE ||
                                                              error->code == BW_ERROR_NOT_BTRFS));
}

/* Signals and progress. */

/* Global, because signals are sent to the process. */
static volatile sig_atomic_t stopped;

bool check_is_stopped(void)
{
    return stopped;
}

static void stop_check(int number)
{
    (void)number;
    stopped = 1;
}

void check_begin_pass(struct check_run *check, const char *name)
{
    size_t count, number = 0;
    const struct bw_check_pass *passes = bw_check_passes(&count);
    while (number < count && strcmp(passes[number].name, name) != 0)
        number++;
    if (number >= count || number >= CHECK_PASSES || check->began[number])
        return;
    check->began[number] = bw_clock(CLOCK_MONOTONIC);
    check->last_pass = number;
}

static bool show_progress(void *context, const struct bw_check_progress *progress)
{
    struct check_run *check = context;
    check_begin_pass(check, progress->pass);
    cmd_progress_set(progress->pass, progress->bytes, progress->expected,
                     progress->counts[BW_FINDING_ERROR] + progress->counts[BW_FINDING_WARNING]);
    return !stopped;
}

/* Prints why the check could not be completed, unless a signal ended it, and returns the status for
 * it; consumes the error, which may be NULL. */
static int print_failure(const struct check_run *check, struct bw_error *error)
{
    if (!error)
        return STATUS_OK;
    if (error->code == BW_ERROR_AMBIGUOUS)
        return cmd_fail_to_open(check->common, error);
    if (error->code != BW_ERROR_STOPPED || !stopped)
        return cmd_fail_output(check->common, error);
    bw_error_free(error);
    return STATUS_PARTIAL;
}

/* Checks the file system or, if `why` is the error of opening it, its images. */
static struct bw_error *check_all(struct check_run *check, const struct bw_error *why)
{
    const struct check_arguments *settings = check->settings;
    const struct bw_check_options wanted = {.struct_size = sizeof wanted,
                                            .quick = settings->quick,
                                            .data = settings->data,
                                            .all = settings->all,
                                            .part = settings->part.number,
                                            .parts = settings->part.count,
                                            .threads = settings->threads,
                                            .since = check->since,
                                            .save = check->save,
                                            .since_generation = check->since_generation,
                                            .visit = check_on_finding,
                                            .progress = show_progress,
                                            .context = check};
    struct bw_fs *fs = check->session.fs;
    struct bw_error *error = why ? bw_check_images(fs, why, &wanted, &check->summary)
                                 : bw_check(fs, &wanted, &check->summary);
    check_add_counts(check);
    if (!error && settings->manifest && !why)
        error = check_compare(check);
    return error;
}

/* Writes the remaining output and the summary, and closes. `opened`: the file system could be
 * opened. */
static int end_check(struct check_run *check, struct bw_error *error, bool opened)
{
    struct cmd_session *session = &check->session;
    check->ended = bw_clock(CLOCK_MONOTONIC);
    cmd_progress_end();
    error = cmd_format_end(&check->format, error);
    if (opened)
        error = bw_error_first(error, bw_fs_find_change(session->fs));
    check->unfinished |= error || !opened || bw_fs_status(session->fs).unused_images;
    int status = print_failure(check, error);
    bool complete = check_is_finished(check);
    if (!check_report_close(check))
        complete = false;
    if (!check_close_baseline(check, complete))
        complete = false;
    if (!check->common->messages.quiet && status != STATUS_CANNOT)
        check_print_summary(check);
    if (cmd_close_outputs(check->common, session) != STATUS_OK)
        complete = false;
    if (status == STATUS_OK && !complete)
        status = STATUS_PARTIAL;
    for (size_t i = 0; status != STATUS_CANNOT && i < check->code_count; i++)
        check->settings->found_errors |= check_failures(check, &check->counts[i]) > 0;
    return status;
}

static int check_images(struct check_run *check)
{
    BW_AUTO_ERROR struct bw_error *why =
        cmd_try_open(check->common, CMD_OPEN_TREES, &check->session);
    if (!why)
        return end_check(check, check_all(check, NULL), true);

    /* Superblocks can be checked if the images can be opened. The outputs were opened by the first
     * attempt, and closed again, except for the reports. */
    const bool has_images = why->code == BW_ERROR_CORRUPT || why->code == BW_ERROR_NOT_BTRFS ||
                            why->code == BW_ERROR_UNSUPPORTED ||
                            why->code == BW_ERROR_MISSING_DEVICE || why->code == BW_ERROR_DIVERGED;
    struct bw_error *error = NULL;
    if (has_images) {
        struct bw_fs_options images = cmd_fs_options(check->common);
        images.reporter = cmd_reporter(check->common);
        error = bw_fs_open_images(&images, &check->session.fs);
    }
    if (error || !has_images) {
        const int status = print_failure(check, error ? error : BW_TAKE(why));
        check_report_close(check); /* it stays empty */
        check_close_baseline(check, false);
        return status;
    }
    cmd_spell_advice(check->common, why); /* the finding has it, too */
    error = check_all(check, why);
    cmd_fail(check->common, BW_TAKE(why));
    return end_check(check, error, false);
}

static const char *find_mistake(const struct cmd_common *common, const void *state)
{
    const struct check_arguments *settings = state;
    if (settings->quick && settings->data)
        return "--quick and --data exclude each other";
    if ((settings->save || settings->since) && (settings->quick || settings->part.count))
        return "--save and --since exclude --quick and --part";
    if (settings->part.count && (!settings->data || settings->manifest))
        return "--part needs --data, and excludes --manifest";
    if (!settings->manifest && settings->subvolume)
        return "--subvol needs --manifest";
    if (!settings->manifest && settings->no_snapshots)
        return "--no-snapshots needs --manifest";
    if (common->input.log_given && common->input.fs.log == BW_LOG_REPLAY && !settings->manifest)
        return "check does not support --log=replay: it reads the trees as stored on disk";
    return NULL;
}

static int run(const struct cmd_common *common, void *settings)
{
    struct cmd_common own = *common;
    struct check_run check = {.common = &own, .settings = settings};
    const struct cmd_format_plan plan = {.record = "findinginfo", .print = check_print_finding};
    own.input.fs.log = BW_LOG_IGNORE;
    own.input.log_given = common->input.log_given && common->input.fs.log == BW_LOG_IGNORE;
    own.input.fs.search_seconds = CMD_SEARCH_SECONDS;
    own.messages.is_selected = is_printed;
    own.writing.open_outputs = check_open_outputs;
    own.writing.outputs = &check;
    struct bw_error *error = cmd_format_begin(&check.format, &own, &plan);
    if (!error && check.settings->manifest)
        error = check_read_list(&check);
    if (!error)
        error = check_read_baseline(&check);
    check.codes = bw_finding_codes(&check.code_count);
    check.counts = calloc(check.code_count, sizeof *check.counts);
    for (size_t i = 0; check.counts && i < check.code_count; i++)
        check.counts[i].code = &check.codes[i];
    if (!error && !check.counts)
        error = bw_error_no_memory();
    cmd_catch_exit_signals(stop_check, SA_RESTART);
    int status;
    if (error)
        status = print_failure(&check, error);
    else
        status = check_images(&check);
    bw_check_summary_free(check.summary);
    bw_list_close(check.list);
    bw_baseline_free(check.since);
    bw_baseline_free(check.save);
    free(check.counts);
    cmd_format_free(&check.format);
    return status;
}

static const struct cmd_status meanings[] = {
    {0, "No errors. There may be warnings and notes."},
    {CHECK_ERRORS, "Errors were found."},
    {CHECK_UNFINISHED, "Something could not be checked or written: no such image, an image of "
                       "another file system, an unsupported feature, a full disk, a signal."},
    {CHECK_ERRORS | CHECK_UNFINISHED, "Both, as for an image without a readable file system."},
    {CHECK_USAGE, "Wrong usage, or a generation or root that does not exist."},
    {0},
};

const struct command cmd_check = {
    .name = "check",
    .topic = cmd_topic_health,
    .operands = "IMAGE...",
    .summary = "Verifies metadata and data, and names the affected files.",
    .details =
        "\n"
        "Cross-checks all structures and verifies all checksums: all copies of superblocks\n"
        "and tree blocks, their items, inodes with their names and extents, references and\n"
        "space, subvolumes, quotas and the log. --data also reads every mirror of the data. It\n"
        "never writes, and asks only for passphrases. docs/check.md lists passes and codes.\n\n"
        "Each finding is a line: severity (error, warning or note), code, tree, key, paths, a\n"
        "colon, the message, and the addresses in brackets. Names are escaped as by 'ls -b'.\n"
        "Each pass prints the first 20 findings of a code. A summary by code goes to stderr,\n"
        "unless -q is given. --json writes an object for each finding, and no summary.\n\n"
        "--save writes a baseline of everything that was verified. With it, --since reads only\n"
        "changes, and marks findings as new, same or gone. It skips only blocks that are\n"
        "provably unchanged, and does not find later damage to their storage.\n\n"
        "--manifest accepts the output of 'tar --format mtree', 'sum', mtree(8), bsdtar(1)\n"
        "and sha256sum(1). It compares the mtree(5) keywords type, mode, uid, gid, nlink,\n"
        "time, size, link, device, sha256 and md5. Files are compared as a mount shows them:\n"
        "with the log replayed, unless --log=ignore is given.\n\n"
        "The exit status is composed like that of fsck(8). With --strict, warnings count as\n"
        "errors; with --tolerate repairable, only errors that no other mirror can repair count.\n"
        "SIGINT and SIGTERM end the check; it prints the findings so far and exits with\n"
        "status 8.\n",
    .examples = "  btrfs-walk check disk.img                           all metadata\n"
                "  btrfs-walk check --data a.img b.img                 a scrub of two devices\n"
                "  btrfs-walk check --data --part 2/8 disk.img         an eighth of the data\n"
                "  btrfs-walk check --quick disk.img && echo good      in a script\n"
                "  btrfs-walk check -o code,paths,message disk.img     columns\n"
                "  btrfs-walk check --json disk.img | jq .code         for programs\n"
                "  btrfs-walk check --report junit=check.xml disk.img  for CI\n"
                "  btrfs-walk check --data --save base disk.img        verify everything\n"
                "  btrfs-walk check --data --since base disk.img       later: only changes\n"
                "  btrfs-walk tar --format mtree disk.img > list       save the current state\n"
                "  btrfs-walk check --manifest list disk.img           compare it later\n",
    .options = options,
    .record = "findinginfo",
    .meanings = meanings,
    .find_mistake = find_mistake,
    .run = run,
    .state_size = sizeof(struct check_arguments),
    .exit_status = exit_status,
};
