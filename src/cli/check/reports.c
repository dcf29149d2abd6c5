/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file of --report, in the XML of JUnit, which CI systems show as tests: a suite for each pass,
 * with a test case for each code. A case fails if the check fails because of its findings, and
 * contains them as lines. Other findings are in <system-out>. The names of cases never change, so
 * CI systems can follow them. The report is valid for the schemas of Ant and of Jenkins. It is
 * opened before the check begins and written at its end.
 */
#include "cli/check/check.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/human.h"

/* Appends text to an element or an attribute. The text is valid UTF-8 without control characters
 * except line feeds; XML also excludes U+FFFE and U+FFFF. */
static void append_text(struct bw_buffer *text, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '&') {
            bw_buffer_format(text, "&amp;");
        } else if (bytes[i] == '<') {
            bw_buffer_format(text, "&lt;");
        } else if (bytes[i] == '>') {
            bw_buffer_format(text, "&gt;");
        } else if (bytes[i] == '"') {
            bw_buffer_format(text, "&quot;");
        } else if (length - i >= 3 && memcmp(bytes + i, "\xef\xbf", 2) == 0 &&
                   (uint8_t)bytes[i + 2] >= 0xbe) {
            bw_buffer_format(text, "\xef\xbf\xbd");
            i += 2;
        } else {
            bw_buffer_append_byte(text, bytes[i]);
        }
    }
}

static bool is_unfinished(const struct bw_finding_code *code)
{
    return strcmp(code->word, "unfinished") == 0;
}

/* Appends a suite for each pass that began. A pass ends when the next one begins. If the last one
 * was not completed, its codes without findings are unknown. */
static void append_report(const struct check_run *check, struct bw_buffer *text)
{
    size_t pass_count;
    const struct bw_check_pass *passes = bw_check_passes(&pass_count);
    char stamp[sizeof "2026-11-21T07:57:58"];
    struct tm broken;
    time_t now = time(NULL);
    unsigned id = 0;
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now, &broken));
    bw_buffer_format(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for (size_t number = 0; number < pass_count; number++) {
        const struct bw_check_pass *pass = &passes[number];
        const bool cut = number == check->last_pass && !check_is_finished(check);
        if (!check->began[number])
            continue;

        /* The cases, one for each code, and the other findings of the pass. They are formatted
         * first, because the totals precede them. */
        BW_AUTO_BUFFER struct bw_buffer cases = {0}, others = {0};
        unsigned tests = 0, failures = 0, errors = 0, skipped = 0;
        for (size_t i = 0; i < check->code_count; i++) {
            const struct bw_finding_count *count = &check->counts[i];
            const struct bw_finding_code *code = count->code;
            if (strcmp(code->pass, pass->name) != 0)
                continue;
            const bool is_failure = check_failures(check, count);
            const bool is_error = count->count && is_unfinished(code);
            const bool is_skipped = !count->count && cut;
            const struct bw_buffer *failing = &check->lines[2 * i], *other = failing + 1;
            tests++;
            failures += is_failure;
            errors += is_error;
            skipped += is_skipped;
            bw_buffer_format(&cases,
                             "  <testcase name=\"%s\" classname=\"btrfs-walk.check.%s\" "
                             "time=\"0\">",
                             code->word, code->pass);
            if (is_skipped)
                bw_buffer_format(&cases, "<skipped type=\"unfinished\"/>");
            if (is_error || is_failure) {
                const char *element = is_error ? "error" : "failure";
                const struct bw_buffer *lines = is_error ? other : failing;
                bw_buffer_format(&cases, "\n    <%s message=\"%" PRIu64 " finding%s: ", element,
                                 count->count, bw_plural(count->count));
                append_text(&cases, code->description, strlen(code->description));
                bw_buffer_format(&cases, "\" type=\"%s\">", code->word);
                append_text(&cases, lines->data, lines->length);
                if (count->hidden)
                    bw_buffer_format(&cases, "%" PRIu64 " more are not shown\n", count->hidden);
                bw_buffer_format(&cases, "</%s>\n  ", element);
            }
            bw_buffer_format(&cases, "</testcase>\n");
            if (!is_unfinished(code))
                append_text(&others, other->data, other->length);
        }

        size_t next = number + 1;
        while (next < CHECK_PASSES && !check->began[next])
            next++;
        const int64_t end = next < CHECK_PASSES ? check->began[next] : check->ended;
        bw_buffer_format(text,
                         " <testsuite name=\"%s\" package=\"btrfs-walk.check\" id=\"%u\" "
                         "timestamp=\"%s\" hostname=\"localhost\" tests=\"%u\" failures=\"%u\" "
                         "errors=\"%u\" skipped=\"%u\" time=\"%.3f\">\n  <properties/>\n",
                         pass->name, id++, stamp, tests, failures, errors, skipped,
                         (double)(end - check->began[number]) / 1e9);
        bw_buffer_append(text, cases.data, cases.length);
        bw_buffer_format(text, "  <system-out>");
        bw_buffer_append(text, others.data, others.length);
        bw_buffer_format(text, "</system-out>\n  <system-err/>\n </testsuite>\n");
        text->failed |= cases.failed || others.failed;
    }
    bw_buffer_format(text, "</testsuites>\n");
}

/* The option --report, and its file. */

struct bw_error *check_set_report(void *target, const struct cmd_option *option,
                                  const char *argument)
{
    static const char form[] = "junit=";
    struct check_arguments *settings = target;
    if (strncmp(argument, form, strlen(form)) != 0 || !argument[strlen(form)])
        return cmd_bad_argument(option, argument, "junit=FILE; for JSON, use --json");
    settings->report = argument + strlen(form);
    return NULL;
}

struct bw_error *check_report_open(void *context, const struct bw_fs *planned)
{
    struct check_run *check = context;
    if (!check->settings->report)
        return NULL;
    check->report = cmd_output_file(check->common, check->settings->report);
    check->has_report = true;
    BW_TRY(cmd_output_file_open(&check->report, planned));
    BW_TRY(cmd_output_file_start(&check->report));
    if (!check->lines)
        check->lines = calloc(2 * check->code_count, sizeof *check->lines);
    return check->lines ? NULL : bw_error_no_memory();
}

bool check_report_close(struct check_run *check)
{
    struct bw_error *error = NULL;
    if (check->has_report && check->report.has_begun) {
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        append_report(check, &text);
        error = cmd_write_buffer(&check->report.output, &text);
        error = cmd_output_file_close(&check->report, error);
    }
    for (size_t i = 0; check->lines && i < 2 * check->code_count; i++)
        bw_buffer_free(&check->lines[i]);
    free(check->lines);
    if (!error)
        return true;
    cmd_fail(check->common, error);
    return false;
}
