/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report in the XML of JUnit, which CI systems show as tests: a suite for each pass, and a test
 * case for each code in it. A case fails if the check fails because of its findings, and has them
 * as lines. What does not make the check fail is in <system-out>. The names of the cases do not
 * change, so that CI systems can follow them. It is valid for the schemas of Ant and of Jenkins.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "cli/check/check.h"

/* Text in an element or a value. Lines hold no control characters but line feeds, and are valid
 * UTF-8; of that, XML excludes U+FFFE and U+FFFF. */
static void append_text(struct bw_buffer *text, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const char *entity = bytes[i] == '&'   ? "&amp;"
                             : bytes[i] == '<' ? "&lt;"
                             : bytes[i] == '>' ? "&gt;"
                             : bytes[i] == '"' ? "&quot;"
                                               : NULL;
        bool excluded = length - i >= 3 && memcmp(bytes + i, "\xef\xbf", 2) == 0 &&
                        (uint8_t)bytes[i + 2] >= 0xbe;
        if (excluded)
            i += 2;
        if (excluded || entity)
            bw_buffer_format(text, "%s", excluded ? "\xef\xbf\xbd" : entity);
        else
            bw_buffer_append_byte(text, bytes[i]);
    }
}

static void append_string(struct bw_buffer *text, const char *string)
{
    append_text(text, string, strlen(string));
}

/* What a suite holds. */
struct figures {
    unsigned tests, failures, errors, skipped;
};

/* The count of a code; NULL: it did not occur. */
static const struct bw_finding_count *count_of(const struct check *check,
                                               const struct bw_finding_code *code)
{
    const struct bw_finding_count *count;
    for (size_t i = 0; (count = check_count(check, i)); i++)
        if (count->code == code)
            return count;
    return NULL;
}

static bool is_error(const struct bw_finding_code *code)
{
    return strcmp(code->word, "unfinished") == 0;
}

/* Whether the pass did not come to its end, so that nothing is known of codes without findings. */
static bool is_cut(const struct check *check, size_t pass)
{
    return pass == check->last_pass && !check_is_finished(check);
}

static void append_case(struct check_report *report, const struct check *check, size_t number,
                        bool cut, struct figures *figures)
{
    const struct bw_finding_code *code = check_code(number);
    const struct bw_finding_count *count = count_of(check, code);
    struct bw_buffer *text = &report->text;
    uint64_t failures = count ? check_failures(check, count) : 0;
    bool error = count && is_error(code), skipped = !count && cut;
    figures->tests++;
    figures->errors += error;
    figures->failures += failures > 0;
    figures->skipped += skipped;
    bw_buffer_format(text, "  <testcase name=\"%s\" classname=\"btrfs-walk.check.%s\" time=\"0\">",
                     code->word, code->pass);
    if (skipped)
        bw_buffer_format(text, "<skipped type=\"unfinished\"/>");
    if (error || failures) {
        const char *element = error ? "error" : "failure";
        const struct bw_buffer *lines = &check->lines[2 * number + error];
        bw_buffer_format(text, "\n    <%s message=\"%" PRIu64 " finding%s: ", element, count->count,
                         bw_plural(count->count));
        append_string(text, code->description);
        bw_buffer_format(text, "\" type=\"%s\">", code->word);
        append_text(text, lines->data, lines->length);
        if (count->hidden)
            bw_buffer_format(text, "%" PRIu64 " more are not shown\n", count->hidden);
        bw_buffer_format(text, "</%s>\n  ", element);
    }
    bw_buffer_format(text, "</testcase>\n");
}

static bool is_of(const struct bw_finding_code *code, const struct bw_check_pass *pass)
{
    return strcmp(code->pass, pass->name) == 0;
}

static void append_output(struct check_report *report, const struct check *check,
                          const struct bw_check_pass *pass)
{
    const struct bw_finding_code *code;
    bw_buffer_format(&report->text, "  <system-out>");
    for (size_t i = 0; (code = check_code(i)); i++)
        if (is_of(code, pass) && !is_error(code))
            append_text(&report->text, check->lines[2 * i + 1].data,
                        check->lines[2 * i + 1].length);
    bw_buffer_format(&report->text, "</system-out>\n  <system-err/>\n </testsuite>\n");
}

/* When the next one began. */
static int64_t end_of(const struct check *check, size_t pass)
{
    for (size_t i = pass + 1; i < CHECK_PASSES; i++)
        if (check->passes[i].begun)
            return check->passes[i].began;
    return check->ended;
}

/* The figures come first, so the cases are made before. */
static void append_suite(struct check_report *report, const struct check *check, size_t number,
                         const char *stamp, unsigned *id)
{
    const struct bw_check_pass *pass = check_pass(number);
    const struct bw_finding_code *code;
    struct check_report cases = {.form = report->form};
    struct figures figures = {0};
    for (size_t i = 0; (code = check_code(i)); i++)
        if (is_of(code, pass))
            append_case(&cases, check, i, is_cut(check, number), &figures);
    double seconds = (double)(end_of(check, number) - check->passes[number].began) / 1e9;
    bw_buffer_format(&report->text,
                     " <testsuite name=\"%s\" package=\"btrfs-walk.check\" id=\"%u\" "
                     "timestamp=\"%s\" hostname=\"localhost\" tests=\"%u\" failures=\"%u\" "
                     "errors=\"%u\" skipped=\"%u\" time=\"%.3f\">\n  <properties/>\n",
                     pass->name, (*id)++, stamp, figures.tests, figures.failures, figures.errors,
                     figures.skipped, seconds);
    bw_buffer_append(&report->text, cases.text.data, cases.text.length);
    report->text.failed |= cases.text.failed;
    bw_buffer_free(&cases.text);
    append_output(report, check, pass);
}

static void end(const struct check *check, struct check_report *report, int status)
{
    char stamp[sizeof "2026-11-21T07:57:58"];
    struct tm broken;
    time_t now = time(NULL);
    unsigned id = 0;
    (void)status;
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now, &broken));
    bw_buffer_format(&report->text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for (size_t i = 0; i < CHECK_PASSES && check_pass(i); i++)
        if (check->passes[i].begun)
            append_suite(report, check, i, stamp, &id);
    bw_buffer_format(&report->text, "</testsuites>\n");
}

const struct check_report_form check_junit = {.name = "junit", .wants_lines = true, .end = end};
