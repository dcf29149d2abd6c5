/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report command: an overview of a file system on a self-contained page. */
#include "cli/report/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/hash.h"
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

/* Appends the name of the file system: its label, or the name of the first image. */
static void append_name(struct bw_buffer *page, const struct report_page *report)
{
    const char *name = report->super.label;
    if (!*name && bw_fs_image_count(report->session.fs)) {
        const char *path = bw_fs_image_path(report->session.fs, 0);
        const char *slash = strrchr(path, '/');
        name = slash && slash[1] ? slash + 1 : path;
    }
    bw_markup_bytes(page, name, strlen(name));
}

/* Appends the head. The Content-Security-Policy permits only the style with this hash: SHA-256 in
 * base64. */
static struct bw_error *append_head(struct bw_buffer *page, const struct report_page *report)
{
    enum { BYTES = 32 };
    char digits[BW_HASH_TEXT], text[48];
    uint8_t bytes[BYTES];
    struct bw_hash *hash;
    bw_hash_prepare();
    BW_TRY(bw_hash_create(BW_HASH_SHA256, &hash));
    bw_hash_begin(hash);
    bw_hash_add(hash, report_style, strlen(report_style));
    bw_hash_end(hash, digits);
    bw_hash_destroy(hash);
    for (size_t i = 0; i < BYTES; i++) {
        const char pair[] = {digits[2 * i], digits[2 * i + 1], '\0'};
        bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
    }

    bw_buffer_format(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                           "'none'; style-src 'sha256-");
    bw_buffer_append(page, text, (size_t)(bw_base64(text, bytes, BYTES) - text));
    bw_buffer_format(page,
                     "'; base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" "
                     "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\""
                     " content=\"light dark\">\n<title>");
    append_name(page, report);
    bw_buffer_format(page, " - btrfs report</title>\n<style>");
    bw_buffer_append(page, report_style, strlen(report_style));
    bw_buffer_format(page, "</style>\n</head>\n<body>\n");
    return NULL;
}

bool report_has_finding(const struct report_page *report, const char *word)
{
    const struct bw_check_summary *summary = report->summary;
    for (size_t i = 0; i < summary->count; i++)
        if (strcmp(summary->counts[i].code->word, word) == 0)
            return true;
    return false;
}

/* An image without data, such as a metadump, has the finding data-absent. */
bool report_has_read_data(const struct report_page *report)
{
    return report->settings->check == REPORT_CHECK_DATA &&
           !report_has_finding(report, "data-absent");
}

/* Appends the name, the images, and the status in a few words. It is green only if all metadata and
 * data were read. */
static void append_header(struct bw_buffer *page, const struct report_page *report)
{
    const struct bw_fs *fs = report->session.fs;
    bw_buffer_format(page, "<header>\n<h1>");
    append_name(page, report);
    bw_buffer_format(page, "</h1>\n<p class=\"lead\">");
    for (size_t i = 0; i < bw_fs_image_count(fs); i++) {
        const char *path = bw_fs_image_path(fs, i);
        bw_buffer_format(page, "%s", i ? ", " : "");
        bw_markup_bytes(page, path, strlen(path));
    }
    bw_buffer_format(page, "</p>\n");

    const struct bw_fs_status status = bw_fs_status(fs);
    const struct bw_check_summary *summary = report->summary;
    const char *class = "warn", *text;
    if (status.damages) {
        class = "bad";
        text = "damaged";
    } else if (status.missing_devices) {
        text = "devices are missing";
    } else if (!summary) {
        text = "not checked";
    } else if (!summary->finished) {
        text = "the check was not completed";
    } else if (report->settings->check == REPORT_CHECK_QUICK) {
        text = "critical trees are good; the rest was not checked";
    } else if (!report_has_read_data(report)) {
        text = "metadata are good; data were not checked";
    } else {
        if (!summary->totals[BW_FINDING_WARNING])
            class = "good";
        text = "no errors found";
    }
    bw_buffer_format(page, "<span class=\"badge %s\">%s</span>\n</header>\n<main>\n", class, text);
}

static void append_problems(struct bw_buffer *page, const struct report_page *report)
{
    if (!report->problem_count)
        return;
    report_section(page, "problems", "Missing or unreliable parts");
    bw_buffer_format(page, "<ul>\n");
    bw_buffer_append(page, report->problems.data, report->problems.length);
    bw_buffer_format(page, "</ul>\n");
    if (report->problem_count > REPORT_PROBLEMS)
        bw_buffer_format(page, "<p class=\"remark\">and %zu more</p>\n",
                         report->problem_count - REPORT_PROBLEMS);
    report_section_end(page);
}

/* Makes a section. If it fails, only this section is missing. */
static struct bw_error *make_section(struct report_page *report,
                                     struct bw_error *(*make)(struct report_page *))
{
    struct bw_error *error = make(report);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error)
        bw_fs_report(report->session.fs, BW_DAMAGE, error);
    return NULL;
}

/* Makes the page or, if `as_text`, its summary for a terminal. The overview comes first, but is
 * made last, because it contains the status. */
static struct bw_error *make_page(struct report_page *report, bool as_text, struct bw_buffer *page)
{
    static struct bw_error *(*const sections[])(struct report_page *) = {
        report_pictures, report_folders, report_subvolumes, report_devices, report_findings};
    bw_fs_superblock(report->session.fs, &report->super);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        BW_TRY(make_section(report, sections[i]));
    struct bw_buffer BW_AUTO_BUFFER rest = report->body;
    report->body = (struct bw_buffer){0};
    BW_TRY(make_section(report, report_overview));
    if (as_text) {
        struct bw_buffer BW_AUTO_BUFFER html = {0};
        append_header(&html, report);
        report_append_affected(report, &html);
        append_problems(&html, report);
        bw_buffer_append(&html, report->body.data, report->body.length);
        bw_buffer_format(&html, "<p>report -f FILE.html writes the whole report: pictures, "
                                "directories, subvolumes, devices and findings.</p>");
        report_text(page, bw_buffer_text(&html));
        return bw_error_first(bw_buffer_error(&html), bw_buffer_error(&report->body));
    }
    bw_buffer_append(&report->body, rest.data, rest.length);
    report->body.failed |= rest.failed;

    BW_TRY(append_head(page, report));
    append_header(page, report);
    report_append_affected(report, page);
    append_problems(page, report);
    bw_buffer_append(page, report->body.data, report->body.length);
    bw_buffer_format(page,
                     "</main>\n<footer><p>Made by btrfs-walk %s from the images alone. "
                     "Nothing in this page comes from elsewhere.</p></footer>\n</body>\n"
                     "</html>\n",
                     BW_VERSION);
    return bw_error_first(bw_buffer_error(&report->body), bw_buffer_error(&report->problems));
}

static struct bw_error *write_report(void *context, const struct cmd_session *session,
                                     struct cmd_output_file *file)
{
    struct report_page *report = context;
    struct bw_buffer BW_AUTO_BUFFER page = {0};
    report->session = *session;
    BW_TRY(make_page(report, !report->settings->file && isatty(STDOUT_FILENO), &page));
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
