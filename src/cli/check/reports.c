/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The option --report, and the files of reports: they are opened before anything is checked, and
 * written in pieces. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "cli/check/check.h"

static const struct check_report_form *const forms[] = {&check_junit, &check_sarif};

struct bw_error *check_take_report(void *target, const struct cmd_option *option,
                                   const char *argument)
{
    struct check_settings *settings = target;
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

static struct bw_error *take_device(void *context, const struct bw_device_info *device)
{
    struct check *check = context;
    if (!device->path)
        return NULL;
    if (!BW_ARRAY_RESERVE(check->devices, check->device_count, check->device_capacity))
        return bw_error_no_memory();
    check->devices[check->device_count++] = (struct check_device){device->devid, device->path};
    return NULL;
}

/* What was in the file before is gone. */
static struct bw_error *open_report(struct check *check, const struct bw_fs *planned,
                                    struct check_report *report)
{
    BW_TRY(cmd_output_file_open(&report->file, planned));
    BW_TRY(cmd_output_file_start(&report->file));
    if (report->form->wants_lines && !check->lines)
        check->lines = calloc(2 * check_code_count(), sizeof *check->lines);
    if (report->form->wants_lines && !check->lines)
        return bw_error_no_memory();
    if (report->form->begin)
        report->form->begin(check, report);
    return NULL;
}

struct bw_error *check_reports_open(void *context, const struct bw_fs *planned)
{
    struct check *check = context;
    const struct check_settings *settings = check->settings;
    for (size_t i = 0; i < settings->report_count; i++) {
        check->reports[i] = (struct check_report){
            .form = settings->reports[i].form,
            .file = {.common = check->common, .name = settings->reports[i].file}};
        BW_TRY(open_report(check, planned, &check->reports[i]));
    }
    return NULL;
}

/* The first error is kept, and nothing is written after it. */
static void write_text(struct check_report *report)
{
    if (report->text.failed && !report->error)
        report->error = bw_error_no_memory();
    if (!report->error)
        report->error = cmd_output_file_add(&report->file, report->text.data, report->text.length);
    report->text.length = 0;
}

void check_reports_add(struct check *check, const struct bw_finding *finding)
{
    enum { ENOUGH = 64 << 10 };
    if (check->lines)
        check_append_line(
            &check->lines[2 * check_code_number(finding->code) + !check_fails(check, finding)],
            finding);
    for (size_t i = 0; i < check->settings->report_count; i++) {
        struct check_report *report = &check->reports[i];
        if (report->form->add && report->file.has_begun)
            report->form->add(check, report, finding);
        if (report->text.length > ENOUGH)
            write_text(report);
    }
}

static void end_report(struct check *check, struct check_report *report, int status)
{
    if (!report->file.has_begun)
        return;
    report->form->end(check, report, status);
    write_text(report);
    report->error = cmd_output_file_close(&report->file, report->error);
}

bool check_reports_close(struct check *check, int status)
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

void check_find_devices(struct check *check)
{
    if (check->settings->report_count)
        bw_error_free(bw_fs_devices(check->session.fs, take_device, check));
}
