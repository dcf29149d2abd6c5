/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file of --report, in the XML of JUnit, which CI systems show as tests: a suite for each pass,
 * with a test case for each code. A case fails if the check fails because of its findings, and
 * contains them as lines. Other findings are in <system-out>. The names of cases never change, so
 * CI systems can follow them. The report is valid for the schemas of Ant and of Jenkins. It is
 * opened before the check begins and written at its end.
 */
#include "cli/check/check.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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

/* Appends the cases of a suite, which must not be empty, and counts them in `totals`: tests,
 * failures, errors, skipped. `cut`: the pass was not completed, so codes without findings are
 * unknown. */
static void append_cases(struct bw_buffer *text, const struct check_run *check,
                         const struct bw_check_pass *pass, bool cut, unsigned totals[4])
{
    for (size_t i = 0; i < check->code_count; i++) {
        const struct bw_finding_count *count = &check->counts[i];
        const struct bw_finding_code *code = count->code;
        if (strcmp(code->pass, pass->name) != 0)
            continue;
        const bool failed = check_failures(check, count);
        const bool error = count->count && is_unfinished(code), skipped = !count->count && cut;
        totals[0]++;
        totals[1] += failed;
        totals[2] += error;
        totals[3] += skipped;
        bw_buffer_format(text,
                         "  <testcase name=\"%s\" classname=\"btrfs-walk.check.%s\" time=\"0\">",
                         code->word, code->pass);
        if (skipped)
            bw_buffer_format(text, "<skipped type=\"unfinished\"/>");
        if (error || failed) {
            const char *element = error ? "error" : "failure";
            const struct bw_buffer *lines = &check->lines[2 * i + error];
            bw_buffer_format(text, "\n    <%s message=\"%" PRIu64 " finding%s: ", element,
                             count->count, bw_plural(count->count));
            append_text(text, code->description, strlen(code->description));
            bw_buffer_format(text, "\" type=\"%s\">", code->word);
            append_text(text, lines->data, lines->length);
            if (count->hidden)
                bw_buffer_format(text, "%" PRIu64 " more are not shown\n", count->hidden);
            bw_buffer_format(text, "</%s>\n  ", element);
        }
        bw_buffer_format(text, "</testcase>\n");
    }
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
        if (!check->began[number])
            continue;

        /* The cases are formatted first, because the totals precede them. */
        const bool cut = number == check->last_pass && !check_is_finished(check);
        BW_AUTO_BUFFER struct bw_buffer cases = {0};
        unsigned totals[4] = {0};
        append_cases(&cases, check, pass, cut, totals);
        size_t next = number + 1;
        while (next < CHECK_PASSES && !check->began[next])
            next++;
        const int64_t end = next < CHECK_PASSES ? check->began[next] : check->ended;
        bw_buffer_format(text,
                         " <testsuite name=\"%s\" package=\"btrfs-walk.check\" id=\"%u\" "
                         "timestamp=\"%s\" hostname=\"localhost\" tests=\"%u\" failures=\"%u\" "
                         "errors=\"%u\" skipped=\"%u\" time=\"%.3f\">\n  <properties/>\n",
                         pass->name, id++, stamp, totals[0], totals[1], totals[2], totals[3],
                         (double)(end - check->began[number]) / 1e9);
        bw_buffer_append(text, cases.data, cases.length);
        text->failed |= cases.failed;

        bw_buffer_format(text, "  <system-out>");
        for (size_t i = 0; i < check->code_count; i++)
            if (strcmp(check->codes[i].pass, pass->name) == 0 && !is_unfinished(&check->codes[i]))
                append_text(text, check->lines[2 * i + 1].data, check->lines[2 * i + 1].length);
        bw_buffer_format(text, "</system-out>\n  <system-err/>\n </testsuite>\n");
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
        return cmd_bad_argument(option, argument, "junit=FILE");
    settings->report = argument + strlen(form);
    return NULL;
}

struct bw_error *check_report_open(void *context, const struct bw_fs *planned)
{
    struct check_run *check = context;
    if (!check->settings->report)
        return NULL;
    check->report =
        (struct cmd_output_file){.common = check->common, .name = check->settings->report};
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
        if (text.failed)
            error = bw_error_no_memory();
        else
            error = cmd_output_file_add(&check->report, text.data, text.length);
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
