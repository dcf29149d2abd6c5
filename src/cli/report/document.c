/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The document: its head, the status of the file system in a few words, the affected files,
 * messages about missing parts, then the sections. The overview comes first, but is made last,
 * because it contains numbers that other sections count. A terminal gets only the text up to the
 * overview.
 */
#include "cli/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "draw/markup.h"

/* The style of the page: light or dark as the browser prefers, narrow or wide, and for paper. The
 * page contains its hash, so browsers apply no other style. */

#define LIGHT                                                                 \
    "--ink:#1f2328;--soft:#59636e;--page:#f6f8fa;--card:#fff;--line:#d8dee4;" \
    "--ground:#e8ebef;--good:#1a7f37;--bad:#cf222e;--warn:#9a6700"

static const char style[] =
    ":root{color-scheme:light dark;" LIGHT "}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--page:#0d1117;"
    "--card:#151b23;--line:#303840;--ground:#252b33;--good:#3fb950;--bad:#f85149;--warn:#d29922}"
    "}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}\n"
    "header,main,footer{max-width:1120px;margin:0 auto;padding:0 20px}\n"
    "header{padding-top:28px}\n"
    "h1{margin:0;font-size:28px;line-height:1.25;overflow-wrap:anywhere}\n"
    "h2{margin:0 0 12px;font-size:19px}\n"
    "h3{display:none;margin:0;font-size:15px}\n"
    "code,pre{font:13px/1.45 ui-monospace,monospace}\n"
    "pre{overflow-x:auto;margin:8px 0 0}\n"
    "section{background:var(--card);border:1px solid var(--line);border-radius:10px;"
    "padding:18px 20px;margin:18px 0}\n"
    ".remark,.lead,footer{color:var(--soft);font-size:13px}\n"
    ".lead{margin:4px 0 0;overflow-wrap:anywhere}\n"
    ".badge{display:inline-block;border-radius:99px;padding:2px 12px;margin-top:10px;"
    "font-weight:600;font-size:13px;border:1px solid}\n"
    ".good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:12px;"
    "margin:0 0 16px}\n"
    ".tiles div{background:var(--page);border-radius:8px;padding:10px}\n"
    ".tiles b{display:block;font-size:18px;white-space:nowrap}\n"
    ".tiles span{color:var(--soft);font-size:13px}\n"
    ".bar{display:block;width:100%;height:12px;border-radius:6px}\n"
    ".bars{display:grid;gap:10px;margin:0 0 12px}\n"
    ".bars div span{float:right;color:var(--soft)}\n"
    "dl{margin:0;display:grid;gap:2px 24px}\n"
    "dl div{display:grid;grid-template-columns:130px 1fr;gap:12px}\n"
    "dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\n"
    ".wide{overflow-x:auto}\n"
    "table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}\n"
    "th,td{text-align:left;padding:5px 14px 5px 0;border-bottom:1px solid var(--line);"
    "vertical-align:top;white-space:nowrap}\n"
    "th:last-child,td:last-child{padding-right:0}\n"
    "th{color:var(--soft);font-weight:600}\n"
    ".w{white-space:normal;overflow-wrap:anywhere;min-width:11em}\n"
    ".n{text-align:right}\n"
    "svg text{font-family:system-ui,sans-serif;fill:currentColor}\n"
    ".folders text{font-size:12px}\n"
    ".ground{fill:var(--ground)}\n"
    ".tabs>input{position:absolute;opacity:0}\n"
    ".tabs>label{display:inline-block;padding:4px 14px;margin:0 4px 14px 0;border-radius:99px;"
    "border:1px solid var(--line);cursor:pointer}\n"
    ".tabs>input:checked+label{background:var(--ink);color:var(--card)}\n"
    ".tabs>input:focus-visible+label{outline:2px solid var(--warn)}\n"
    ".panel{display:none}\n"
    ".maps{flex:3 1 360px;max-width:640px;display:grid;gap:16px;align-content:start}\n"
    ".columns-2{grid-template-columns:repeat(2,1fr)}.columns-3{grid-template-columns:repeat(3,1fr)}"
    ".columns-4{grid-template-columns:repeat(4,1fr)}\n"
    "figure{margin:0}figure svg{display:block;width:100%;height:auto}\n"
    "figcaption{font-size:13px;margin-top:4px;overflow-wrap:anywhere}\n"
    ".legend{flex:1 1 220px;list-style:none;padding:0}\n"
    ".legend li{display:flex;flex-wrap:wrap;gap:0 8px}.legend span{flex:1;min-width:160px}\n"
    ".legend svg{width:14px;height:14px;margin-top:4px}.legend .scale{width:140px}\n"
    "#by-type:checked~#map-type,#by-fill:checked~#map-fill,#by-age:checked~#map-age,"
    "#by-subvolume:checked~#map-subvolume{display:flex;flex-wrap:wrap;gap:8px 24px}\n"
    ".folders svg{display:block;width:100%;min-width:680px;height:auto}\n"
    ".folders rect{stroke:var(--card);stroke-width:1}\n"
    "summary{cursor:pointer;color:var(--soft)}\n"
    "ul{margin:0;padding-left:20px;overflow-wrap:anywhere}\n"
    "@media(max-width:600px){header,main,footer{padding:0 12px}header{padding-top:18px}"
    "section{padding:14px}dl{gap:8px}dl div{grid-template-columns:1fr;gap:0}"
    ".columns-3,.columns-4{grid-template-columns:repeat(2,1fr)}}\n"
    /* On paper, nothing can be selected, opened or scrolled, so everything is shown and fits. */
    "@media print{:root{color-scheme:light;" LIGHT "}@page{margin:14mm}"
    "body{background:#fff;font-size:13px;print-color-adjust:exact;"
    "-webkit-print-color-adjust:exact}"
    "header,main,footer{padding:0;max-width:none}"
    "section{border:0;padding:0;margin:22px 0}"
    "h2,h3{break-after:avoid}tr,figure,.panel,.folders,.tiles,.bars,dl div{break-inside:avoid}"
    ".tabs>label,.tabs>input{display:none}"
    "h3{display:block;flex:1 1 100%}.panel{display:flex;flex-wrap:wrap;gap:8px 24px;"
    "margin:0 0 18px}#folders p{break-after:avoid}"
    ".tiles{grid-template-columns:repeat(auto-fit,minmax(92px,1fr))}.tiles b{font-size:15px}"
    ".maps{flex:0 1 280px}.legend{flex:1 1 200px;font-size:12px}"
    ".wide{overflow:visible}table{font-size:11px}th,td{padding-right:8px;white-space:normal}"
    ".n{white-space:nowrap}.w{min-width:0}"
    ".folders svg{min-width:0}pre{overflow:visible;white-space:pre-wrap}"
    "details>summary{list-style:none}"
    "details::details-content{display:block;content-visibility:visible;block-size:auto}}\n";

/* Appends the hash of the style as in a Content-Security-Policy: SHA-256 in base64. */
static struct bw_error *append_style_hash(struct bw_buffer *page)
{
    enum { BYTES = 32 };
    char digits[BW_HASH_TEXT], text[48];
    uint8_t bytes[BYTES];
    struct bw_hash *hash;
    bw_hash_prepare();
    BW_TRY(bw_hash_create(BW_HASH_SHA256, &hash));
    bw_hash_begin(hash);
    bw_hash_add(hash, style, strlen(style));
    bw_hash_end(hash, digits);
    bw_hash_destroy(hash);
    for (size_t i = 0; i < BYTES; i++) {
        const char pair[] = {digits[2 * i], digits[2 * i + 1], '\0'};
        bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    bw_buffer_append(page, text, (size_t)(bw_base64(text, bytes, BYTES) - text));
    return NULL;
}

/* The text for a terminal. */

/* Whether a tag, without its '<', has the name of an element. */
static bool is_tag(const char *tag, size_t length, const char *name)
{
    const size_t end = strlen(name);
    return length > end && strncmp(tag, name, end) == 0 && (tag[end] == '>' || tag[end] == ' ');
}

/* Appends the readable text of HTML that the other files made: without drawings, details and
 * tables. It has no other source. Names from images are safe to print in it, and only their markup
 * was escaped. */
static void append_text(struct bw_buffer *text, const char *page)
{
    static const char *const skipped[] = {"svg", "details", "table"};
    static const char *const lines[] = {"p", "h1", "h2", "div", "li", "header", "section"};
    const char *ending = NULL; /* the element that is skipped */
    for (size_t length; *page; page += length) {
        const char *stop = *page == '<' ? strchr(page, '>') : NULL;
        const bool is_end = *page == '<' && page[1] == '/';
        length = stop ? (size_t)(stop - page) + 1 : 1;
        if (ending) {
            if (is_end && is_tag(page + 2, length - 2, ending))
                ending = NULL;
        } else if (*page == '<') {
            for (size_t i = 0; !is_end && i < sizeof skipped / sizeof *skipped; i++)
                if (is_tag(page + 1, length - 1, skipped[i]))
                    ending = skipped[i];
            if (is_tag(page + 1, length - 1, "li"))
                bw_buffer_format(text, "- ");
            else if (is_tag(page + 1, length - 1, "h2"))
                bw_buffer_format(text, "\n");
            else if (is_end && is_tag(page + 2, length - 2, "dt"))
                bw_buffer_format(text, ": ");
            const char last = text->length ? text->data[text->length - 1] : '\n';
            for (size_t i = 0; is_end && last != '\n' && i < sizeof lines / sizeof *lines; i++)
                if (is_tag(page + 2, length - 2, lines[i]))
                    bw_buffer_append_byte(text, '\n');
        } else if (*page != '\n') {
            length = bw_markup_decode(text, page);
        }
    }
}

/* The page. */

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
        BW_TRY(append_style_hash(&html));
        bw_buffer_format(&html, "'; base-uri 'none'; form-action 'none'\">\n"
                                "<meta name=\"viewport\" "
                                "content=\"width=device-width, initial-scale=1\">\n"
                                "<meta name=\"color-scheme\" content=\"light dark\">\n<title>");
        append_name(&html, report);
        bw_buffer_format(&html, " - btrfs report</title>\n<style>");
        bw_buffer_append(&html, style, strlen(style));
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
        append_text(page, bw_buffer_text(&html));
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
