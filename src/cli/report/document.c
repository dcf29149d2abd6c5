/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The document: its head, the status of the file system in a few words, the affected files,
 * messages about missing parts, then the sections. The overview comes first, but is made last,
 * because it contains numbers that other sections count. A terminal gets only the text up to the
 * overview.
 */
#include "cli/report/report.h"

#include <string.h>

#include "base/cleanup.h"
#include "draw/markup.h"

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

struct bw_error *report_document(struct report_page *report, bool as_text, struct bw_buffer *page)
{
    static struct bw_error *(*const sections[])(struct report_page *) = {
        report_pictures, report_folders,  report_subvolumes,
        report_devices,  report_findings, report_overview};
    struct bw_buffer BW_AUTO_BUFFER html = {0};
    bw_fs_superblock(report->session.fs, &report->super);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        struct bw_error *error = sections[i](report);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        if (error) /* only this section is missing */
            bw_fs_report(report->session.fs, BW_DAMAGE, error);
    }

    if (!as_text) {
        /* The Content-Security-Policy permits only the style with this hash. */
        bw_buffer_format(&html,
                         "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                         "'none'; style-src 'sha256-");
        BW_TRY(report_style_hash(&html));
        bw_buffer_format(&html, "'; base-uri 'none'; form-action 'none'\">\n"
                                "<meta name=\"viewport\" "
                                "content=\"width=device-width, initial-scale=1\">\n"
                                "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
        append_name(&html, report);
        bw_buffer_format(&html, " - btrfs report</title>\n<style>");
        bw_buffer_append(&html, report_style, strlen(report_style));
        bw_buffer_format(&html, "</style>\n</head>\n<body>\n");
    }

    /* The name, the images, and the status in a few words. It is green only if all metadata and
     * data were read. */
    const struct bw_fs *fs = report->session.fs;
    bw_buffer_format(&html, "<header>\n<h1>");
    append_name(&html, report);
    bw_buffer_format(&html, "</h1>\n<p class=\"lead\">");
    for (size_t i = 0; i < bw_fs_image_count(fs); i++) {
        const char *path = bw_fs_image_path(fs, i);
        bw_buffer_format(&html, "%s", i ? ", " : "");
        bw_markup_bytes(&html, path, strlen(path));
    }
    bw_buffer_format(&html, "</p>\n");

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
    bw_buffer_format(&html, "<span class=\"badge %s\">%s</span>\n</header>\n<main>\n", class, text);

    report_append_affected(report, &html);
    if (report->problem_count) {
        report_section(&html, "problems", "Missing or unreliable parts");
        bw_buffer_format(&html, "<ul>\n");
        bw_buffer_append(&html, report->problems.data, report->problems.length);
        bw_buffer_format(&html, "</ul>\n");
        if (report->problem_count > REPORT_PROBLEMS)
            bw_buffer_format(&html, "<p class=\"remark\">and %zu more</p>\n",
                             report->problem_count - REPORT_PROBLEMS);
        report_section_end(&html);
    }
    bw_buffer_append(&html, report->overview.data, report->overview.length);
    if (as_text) {
        bw_buffer_format(&html, "<p>report -f FILE.html writes the whole report: pictures, "
                                "directories, subvolumes, devices and findings.</p>");
        report_text(page, bw_buffer_text(&html));
    } else {
        bw_buffer_append(&html, report->body.data, report->body.length);
        bw_buffer_format(&html,
                         "</main>\n<footer><p>Made by btrfs-walk %s from the images alone. "
                         "Nothing in this page comes from elsewhere.</p></footer>\n</body>\n"
                         "</html>\n",
                         BW_VERSION);
        bw_buffer_append(page, html.data, html.length);
    }
    const bool has_failed =
        html.failed || report->overview.failed || report->body.failed || report->problems.failed;
    return has_failed ? bw_error_no_memory() : bw_buffer_error(page);
}
