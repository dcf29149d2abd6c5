/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report command: an overview of a file system on a self-contained page. */
#include "cli/report/report.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "cli/common/output.h"
#include "draw/markup.h"

static const char *const checks[] = {"full", "quick", "none", "data", NULL}; /* enum report_check */

static const struct cmd_option options[] = {
    CMD_FILE_OPTION(struct report_settings, file),
    {0, "check", "WORD", "extent of the check: full (default), quick, none, or data",
     CMD_WORD(struct report_settings, check, checks)},
    CMD_THREADS_OPTION(struct report_settings, threads),
    {0},
};

/* Adds warnings and damage to the list on the page. */
static void note_problem(void *context, enum bw_severity severity, const struct bw_error *error)
{
    struct report_page *report = context;
    struct bw_buffer BW_AUTO_BUFFER line = {0};
    if (severity == BW_NOTE || report->problem_count++ >= REPORT_PROBLEMS)
        return;
    bw_escape_words(&line, error->message);
    bw_buffer_format(&report->problems, "<li>%s",
                     severity == BW_DAMAGE ? "<strong class=\"bad\">damage:</strong> " : "");
    bw_markup_text(&report->problems, line.data, line.length);
    bw_buffer_format(&report->problems, "</li>\n");
}

static struct bw_error *write_report(void *context, const struct cmd_session *session,
                                     struct cmd_output_file *file)
{
    struct report_page *report = context;
    struct bw_buffer BW_AUTO_BUFFER page = {0};
    report->session = *session;
    BW_TRY(report_document(report, !report->settings->file && isatty(STDOUT_FILENO), &page));
    return cmd_output_file_write(file, &page);
}

static int run(const struct cmd_common *common, void *state)
{
    struct report_page report = {.settings = state};
    struct cmd_common own = *common;
    own.messages.listener = (struct bw_reporter){note_problem, &report};
    report.common = &own;
    const int status =
        cmd_output_file_run(&own, report.settings->file, NULL, write_report, &report);
    bw_check_summary_free(report.summary);
    report_free_affected(&report.affected);
    bw_buffer_free(&report.overview);
    bw_buffer_free(&report.body);
    bw_buffer_free(&report.problems);
    return status;
}

static const struct cmd_status meanings[] = {
    {STATUS_OK, "The report is complete, and the check found no errors."},
    {STATUS_PARTIAL, "Part of the report is missing, or the check found errors."},
    {STATUS_CANNOT, "Wrong usage, or no file system that can be opened."},
    {STATUS_UNSUPPORTED, "The image needs a feature that is not supported; the message names it."},
    {0},
};

const struct command cmd_report = {
    .name = "report",
    .topic = cmd_topic_health,
    .operands = "IMAGE...",
    .summary = "Writes an HTML report: health, space, pictures, directories.",
    .details =
        "\n"
        "The report is one HTML file without scripts or external resources. It contains the\n"
        "state, the output of 'info' and 'usage', the pictures of 'picture' by type, fill, age\n"
        "and subvolume, a treemap of directories and large files, and tables of subvolumes,\n"
        "devices and findings. It follows the light or dark mode of the browser and can be\n"
        "printed. A report about a damaged file system begins with the affected files.\n\n"
        "Without -f, it is written to stdout; a terminal gets a summary as text.\n\n"
        "--check full verifies all metadata, as 'check' does; quick and none take less time,\n"
        "and data also verifies all data. Only then the page can say \"no errors found\".\n",
    .examples = "  btrfs-walk report disk.img                             a summary as text\n"
                "  btrfs-walk report -f report.html disk.img              everything\n"
                "  btrfs-walk report --check quick -f r.html a.img b.img  without a long check\n",
    .options = options,
    .meanings = meanings,
    .run = run,
    .state_size = sizeof(struct report_settings),
};
