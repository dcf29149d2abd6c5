/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Destinations of findings: stdout, and the files of --report, which are opened before the check
 * begins, and written in pieces.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "btrfs-walk/tree.h"
#include "cli/check/check.h"

/* A format of reports. */
struct check_report_form {
    const char *name;
    bool needs_lines; /* it uses check->lines */
    /* Functions that begin a report, add a finding, and complete the report. They append to
     * report->text, which the caller writes to the file. `begin` and `add` may be NULL. */
    void (*begin)(const struct check_run *check, struct check_report *report);
    void (*add)(const struct check_run *check, struct check_report *report,
                const struct bw_finding *finding);
    void (*end)(const struct check_run *check, struct check_report *report, int status);
};

/*
 * A report in the XML of JUnit, which CI systems show as tests: a suite for each pass, with a test
 * case for each code. A case fails if the check fails because of its findings, and contains them as
 * lines. Other findings are in <system-out>. The names of cases never change, so CI systems can
 * follow them. The report is valid for the schemas of Ant and of Jenkins.
 */

/* Appends text to an element or an attribute. The text is valid UTF-8 without control characters
 * except line feeds; XML also excludes U+FFFE and U+FFFF. */
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

/* Totals of a suite. */
struct figures {
    unsigned tests, failures, errors, skipped;
};

/* The count of a code; NULL if it did not occur. */
static const struct bw_finding_count *count_of(const struct check_run *check,
                                               const struct bw_finding_code *code)
{
    const struct bw_finding_count *count;
    for (size_t i = 0; (count = check_count_at(check, i)); i++)
        if (count->code == code)
            return count;
    return NULL;
}

static bool is_unfinished(const struct bw_finding_code *code)
{
    return strcmp(code->word, "unfinished") == 0;
}

/* Whether the pass was not completed, so codes without findings are unknown. */
static bool is_incomplete(const struct check_run *check, size_t pass)
{
    return pass == check->last_pass && !check_is_finished(check);
}

static void append_case(struct check_report *report, const struct check_run *check, size_t number,
                        bool cut, struct figures *figures)
{
    const struct bw_finding_code *code = check_code(number);
    const struct bw_finding_count *count = count_of(check, code);
    struct bw_buffer *text = &report->text;
    uint64_t failures = count ? check_failures(check, count) : 0;
    bool error = count && is_unfinished(code), skipped = !count && cut;
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

static void append_output(struct check_report *report, const struct check_run *check,
                          const struct bw_check_pass *pass)
{
    const struct bw_finding_code *code;
    bw_buffer_format(&report->text, "  <system-out>");
    for (size_t i = 0; (code = check_code(i)); i++)
        if (is_of(code, pass) && !is_unfinished(code))
            append_text(&report->text, check->lines[2 * i + 1].data,
                        check->lines[2 * i + 1].length);
    bw_buffer_format(&report->text, "</system-out>\n  <system-err/>\n </testsuite>\n");
}

/* The end of a pass: when the next one began. */
static int64_t end_of(const struct check_run *check, size_t pass)
{
    for (size_t i = pass + 1; i < CHECK_PASSES; i++)
        if (check->passes[i].begun)
            return check->passes[i].began;
    return check->ended;
}

/* Formats the cases first, because the totals precede them. */
static void append_suite(struct check_report *report, const struct check_run *check, size_t number,
                         const char *stamp, unsigned *id)
{
    const struct bw_check_pass *pass = check_pass(number);
    const struct bw_finding_code *code;
    struct check_report cases = {.form = report->form};
    struct figures figures = {0};
    for (size_t i = 0; (code = check_code(i)); i++)
        if (is_of(code, pass))
            append_case(&cases, check, i, is_incomplete(check, number), &figures);
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

static void end_junit(const struct check_run *check, struct check_report *report, int status)
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

static const struct check_report_form check_junit = {
    .name = "junit", .needs_lines = true, .end = end_junit};

/*
 * A report in SARIF 2.1.0 (OASIS), which code scanning systems show: a rule for each code, a result
 * for each finding. The locations of a result are the affected files, relative to the top of the
 * file system, and the bytes in an image. Results are written immediately.
 */

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

#define SCHEMA \
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

static void add_message(struct bw_json *json, const char *name, const void *text, size_t length)
{
    bw_json_begin_object(json, name);
    bw_json_bytes(json, "text", text, length);
    bw_json_end(json);
}

static void add_string(struct bw_json *json, const char *name, const char *text)
{
    add_message(json, name, text, strlen(text));
}

static void add_rule(struct bw_json *json, const struct bw_finding_code *code)
{
    bw_json_begin_object(json, NULL);
    bw_json_text(json, "id", code->word);
    add_string(json, "shortDescription", code->description);
    bw_json_begin_object(json, "defaultConfiguration");
    bw_json_text(json, "level", bw_finding_severity_name(code->severity));
    bw_json_end(json);
    bw_json_begin_object(json, "properties");
    bw_json_text(json, "pass", code->pass);
    bw_json_end(json);
    bw_json_end(json);
}

static void begin_sarif(const struct check_run *check, struct check_report *report)
{
    const struct bw_finding_code *code;
    (void)check;
    report->json = bw_json_start(&report->text, false);
    struct bw_json *json = &report->json;
    bw_json_begin_object(json, NULL);
    bw_json_text(json, "$schema", SCHEMA);
    bw_json_text(json, "version", "2.1.0");
    bw_json_begin_array(json, "runs");
    bw_json_begin_object(json, NULL);
    bw_json_begin_object(json, "tool");
    bw_json_begin_object(json, "driver");
    bw_json_text(json, "name", "btrfs-walk");
    bw_json_text(json, "version", BW_VERSION);
    bw_json_begin_array(json, "rules");
    for (size_t i = 0; (code = check_code(i)); i++)
        add_rule(json, code);
    bw_json_end(json);
    bw_json_end(json);
    bw_json_end(json);
    bw_json_begin_object(json, "originalUriBaseIds");
    bw_json_begin_object(json, "FILESYSTEM");
    add_string(json, "description", "The top of the file system");
    bw_json_end(json);
    bw_json_end(json);
    bw_json_begin_array(json, "results");
}

/* Appends bytes to a URI (RFC 3986). */
static void append_uri(struct bw_buffer *uri, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const uint8_t byte = (uint8_t)bytes[i];
        bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9') || (byte && strchr("-._~/", byte));
        if (plain)
            bw_buffer_append_byte(uri, (char)byte);
        else
            bw_buffer_format(uri, "%%%02X", byte);
    }
}

static void add_region(struct bw_json *json, uint64_t offset, bool has_length, uint64_t length)
{
    bw_json_begin_object(json, "region");
    bw_json_number(json, "byteOffset", offset);
    if (has_length)
        bw_json_number(json, "byteLength", length);
    bw_json_end(json);
}

static void add_artifact(struct bw_json *json, const char *before, const char *bytes, size_t length,
                         const char *base)
{
    BW_AUTO_BUFFER struct bw_buffer uri = {0};
    bw_buffer_format(&uri, "%s", before);
    append_uri(&uri, bytes, length);
    json->buffer->failed |= uri.failed;
    bw_json_begin_object(json, "artifactLocation");
    bw_json_bytes(json, "uri", uri.data, uri.length);
    if (base)
        bw_json_text(json, "uriBaseId", base);
    bw_json_end(json);
}

/* Adds the item as a logical location. */
static void add_logical(struct bw_json *json, const struct bw_finding *finding)
{
    char tree[BW_KEY_TEXT], key[BW_KEY_TEXT];
    BW_AUTO_BUFFER struct bw_buffer name = {0};
    if (!(finding->known & BW_KNOWN_TREE))
        return;
    bw_buffer_format(&name, "%s", bw_tree_id_text(finding->tree, tree));
    if (finding->known & BW_KNOWN_KEY)
        bw_buffer_format(&name, " %s", bw_key_text(&finding->key, key));
    bw_json_begin_array(json, "logicalLocations");
    bw_json_begin_object(json, NULL);
    bw_json_bytes(json, "fullyQualifiedName", name.data, name.length);
    bw_json_text(json, "kind", finding->known & BW_KNOWN_KEY ? "item" : "tree");
    bw_json_end(json);
    bw_json_end(json);
}

static void add_file_location(struct bw_json *json, const struct bw_finding *finding, size_t number)
{
    const char *path = finding->paths[number].data;
    size_t length = finding->paths[number].length;
    bool absolute = length > 1 && *path == '/';
    bw_json_begin_object(json, NULL);
    bw_json_begin_object(json, "physicalLocation");
    add_artifact(json, "", path + absolute, length - absolute, "FILESYSTEM");
    if (finding->known & BW_KNOWN_FILE_OFFSET)
        add_region(json, finding->file_offset, finding->known & BW_KNOWN_FILE_LENGTH,
                   finding->file_length);
    bw_json_end(json);
    if (number == 0)
        add_logical(json, finding);
    bw_json_end(json);
}

/* The image of a device; NULL if unknown. */
static const char *image_of(const struct check_run *check, const struct bw_finding *finding)
{
    for (size_t i = 0; finding->known & BW_KNOWN_DEVICE && i < check->device_count; i++)
        if (check->devices[i].devid == finding->devid)
            return check->devices[i].path;
    return NULL;
}

static void add_image(struct bw_json *json, const struct bw_finding *finding, const char *image,
                      bool is_place)
{
    bw_json_begin_object(json, NULL);
    bw_json_begin_object(json, "physicalLocation");
    add_artifact(json, *image == '/' ? "file://" : "", image, strlen(image), NULL);
    if (is_place && finding->known & BW_KNOWN_OFFSET)
        add_region(json, finding->offset, finding->known & BW_KNOWN_LENGTH, finding->length);
    bw_json_end(json);
    if (!finding->path_count)
        add_logical(json, finding);
    bw_json_end(json);
}

/* Adds at least one location, because some readers do not show results without one. */
static void add_locations(struct bw_json *json, const struct check_run *check,
                          const struct bw_finding *finding)
{
    const char *image = image_of(check, finding);
    bw_json_begin_array(json, "locations");
    for (size_t i = 0; i < finding->path_count; i++)
        add_file_location(json, finding, i);
    if (image)
        add_image(json, finding, image, true);
    else if (!finding->path_count && bw_fs_image_count(check->session.fs))
        add_image(json, finding, bw_fs_image_path(check->session.fs, 0), false);
    bw_json_end(json);
}

static void add_properties(struct bw_json *json, const struct bw_finding *finding)
{
    const struct {
        unsigned known;
        const char *name;
        uint64_t value;
    } members[] = {
        {BW_KNOWN_TREE, "tree", finding->tree},
        {BW_KNOWN_LOGICAL, "logical", finding->logical},
        {BW_KNOWN_LENGTH, "length", finding->length},
        {BW_KNOWN_DEVICE, "devid", finding->devid},
        {BW_KNOWN_OFFSET, "offset", finding->offset},
        {BW_KNOWN_COPY, "copy", finding->copy},
        {BW_KNOWN_INODE, "inode", finding->inode},
    };
    bw_json_begin_object(json, "properties");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (finding->known & members[i].known)
            bw_json_number(json, members[i].name, members[i].value);
    bw_json_bool(json, "repairable", finding->repairable);
    if (finding->more_paths)
        bw_json_number(json, "morePaths", finding->more_paths);
    if (finding->more_subvolumes)
        bw_json_number(json, "moreSubvolumes", finding->more_subvolumes);
    bw_json_end(json);
}

static void add_result(const struct check_run *check, struct check_report *report,
                       const struct bw_finding *finding)
{
    struct bw_json *json = &report->json;
    BW_AUTO_BUFFER struct bw_buffer message = {0};
    check_append_message(&message, finding);
    report->text.failed |= message.failed;
    bw_json_begin_object(json, NULL);
    bw_json_text(json, "ruleId", finding->code->word);
    bw_json_number(json, "ruleIndex", check_code_number(finding->code));
    bw_json_text(json, "level", bw_finding_severity_name(finding->code->severity));
    add_message(json, "message", message.data, message.length);
    add_locations(json, check, finding);
    add_properties(json, finding);
    bw_json_end(json);
}

static void end_sarif(const struct check_run *check, struct check_report *report, int status)
{
    struct bw_json *json = &report->json;
    const struct bw_finding_count *count;
    bw_json_end(json);
    bw_json_begin_array(json, "invocations");
    bw_json_begin_object(json, NULL);
    bw_json_bool(json, "executionSuccessful", check_is_finished(check));
    bw_json_signed(json, "exitCode", status);
    bw_json_end(json);
    bw_json_end(json);
    bw_json_begin_object(json, "properties");
    bw_json_begin_object(json, "counts");
    for (size_t i = 0; (count = check_count_at(check, i)); i++)
        bw_json_number(json, count->code->word, count->count);
    while (json->depth)
        bw_json_end(json);
    bw_buffer_append_byte(&report->text, '\n');
}

static const struct check_report_form check_sarif = {
    .name = "sarif", .begin = begin_sarif, .add = add_result, .end = end_sarif};

/* The option --report, and its files. */

static const struct check_report_form *const forms[] = {&check_junit, &check_sarif};

struct bw_error *check_add_report(void *target, const struct cmd_option *option,
                                  const char *argument)
{
    struct check_arguments *settings = target;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t length = strlen(forms[i]->name);
        if (strncmp(argument, forms[i]->name, length) != 0 || argument[length] != '=' ||
            !argument[length + 1])
            continue;
        if (settings->report_count == CHECK_REPORTS)
            return bw_error_create(BW_ERROR_USAGE, "there can be %d reports at most",
                                   CHECK_REPORTS);
        settings->reports[settings->report_count].form = forms[i];
        settings->reports[settings->report_count++].file = argument + length + 1;
        return NULL;
    }
    return cmd_bad_argument(option, argument, "junit=FILE, sarif=FILE");
}

static struct bw_error *add_device(void *context, const struct bw_device_info *device)
{
    struct check_run *check = context;
    if (!device->path)
        return NULL;
    if (!BW_ARRAY_RESERVE(check->devices, check->device_count, check->device_capacity))
        return bw_error_no_memory();
    check->devices[check->device_count++] =
        (struct check_device_image){device->devid, device->path};
    return NULL;
}

/* Opens and truncates the file. */
static struct bw_error *open_report(struct check_run *check, const struct bw_fs *planned,
                                    struct check_report *report)
{
    BW_TRY(cmd_output_file_open(&report->file, planned));
    BW_TRY(cmd_output_file_start(&report->file));
    if (report->form->needs_lines && !check->lines)
        check->lines = calloc(2 * check_code_count(), sizeof *check->lines);
    if (report->form->needs_lines && !check->lines)
        return bw_error_no_memory();
    if (report->form->begin)
        report->form->begin(check, report);
    return NULL;
}

struct bw_error *check_reports_open(void *context, const struct bw_fs *planned)
{
    struct check_run *check = context;
    const struct check_arguments *settings = check->settings;
    for (size_t i = 0; i < settings->report_count; i++) {
        check->reports[i] = (struct check_report){
            .form = settings->reports[i].form,
            .file = {.common = check->common, .name = settings->reports[i].file}};
        BW_TRY(open_report(check, planned, &check->reports[i]));
    }
    return NULL;
}

/* Stops writing after the first error. */
static void write_text(struct check_report *report)
{
    if (report->text.failed && !report->error)
        report->error = bw_error_no_memory();
    if (!report->error)
        report->error = cmd_output_file_add(&report->file, report->text.data, report->text.length);
    report->text.length = 0;
}

static void check_reports_add(struct check_run *check, const struct bw_finding *finding)
{
    enum { ENOUGH = 64 << 10 };
    if (check->lines)
        bw_buffer_append(
            &check->lines[2 * check_code_number(finding->code) + !check_fails(check, finding)],
            check->line.data, check->line.length);
    for (size_t i = 0; i < check->settings->report_count; i++) {
        struct check_report *report = &check->reports[i];
        if (report->form->add && report->file.has_begun)
            report->form->add(check, report, finding);
        if (report->text.length > ENOUGH)
            write_text(report);
    }
}

static void end_report(struct check_run *check, struct check_report *report, int status)
{
    if (!report->file.has_begun)
        return;
    report->form->end(check, report, status);
    write_text(report);
    report->error = cmd_output_file_close(&report->file, report->error);
}

bool check_reports_close(struct check_run *check, int status)
{
    bool good = true;
    for (size_t i = 0; i < check->settings->report_count; i++) {
        struct check_report *report = &check->reports[i];
        if (report->form)
            end_report(check, report, status);
        bw_buffer_free(&report->text);
        good &= !report->error;
        if (report->error)
            cmd_fail(check->common, report->error);
    }
    for (size_t i = 0; check->lines && i < 2 * check_code_count(); i++)
        bw_buffer_free(&check->lines[i]);
    free(check->lines);
    free(check->devices);
    return good;
}

void check_find_devices(struct check_run *check)
{
    if (check->settings->report_count)
        bw_error_free(bw_fs_devices(check->session.fs, add_device, check));
}

/* Passing findings on. */

struct bw_error *check_on_finding(void *context, const struct bw_finding *finding)
{
    struct check_run *check = context;
    check->line.length = 0;
    if (check->lines || !check->stream.rows)
        check_append_line(&check->line, finding);
    if (check->line.failed)
        return bw_error_no_memory();
    check_reports_add(check, finding);
    return check->stream.rows ? check_write_row(check, finding)
                              : cmd_write(&check->output, check->line.data, check->line.length);
}

struct bw_error *check_report_difference(struct check_run *check, enum check_difference code,
                                         struct bw_bytes path, const char *message,
                                         const struct bw_place *place)
{
    enum { SHOWN = 20 };
    struct bw_finding_count *count = &check->differences[code];
    count->code = &check_differences[code];
    count->count++;
    if (count->count > SHOWN && !check->settings->all) {
        count->hidden++;
        return NULL;
    }
    struct bw_finding finding = {
        .code = count->code, .message = message, .paths = &path, .path_count = 1};
    if (place) {
        finding.known = BW_KNOWN_TREE | BW_KNOWN_INODE;
        finding.tree = bw_subvolume_id(place->subvolume);
        finding.inode = place->inode;
    }
    return check_on_finding(check, &finding);
}
