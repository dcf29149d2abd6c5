/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The section about the check. It opens the file system again, without replaying the log, and
 * damage becomes findings, not messages. */
#include "cli/report/report.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "btrfs-walk/records.h"
#include "cli/common/monitor.h"

static bool show_progress(void *context, const struct bw_check_progress *progress)
{
    (void)context;
    cmd_progress_set(progress->pass, progress->bytes, progress->expected,
                     progress->counts[BW_FINDING_ERROR] + progress->counts[BW_FINDING_WARNING]);
    return true;
}

static struct bw_error *on_finding(void *context, const struct bw_findinginfo *finding)
{
    struct cmd_format *format = context;
    struct report_page *report = format->plan->context;
    report_add_affected(&report->affected, finding);
    return cmd_format_write(format, finding, sizeof *finding);
}

static struct bw_error *list(struct cmd_format *answer, void *context)
{
    struct report_page *report = context;
    const struct bw_check_options wanted = {
        .struct_size = sizeof wanted,
        .quick = report->settings->check == REPORT_CHECK_QUICK,
        .data = report->settings->check == REPORT_CHECK_DATA,
        .threads = report->settings->threads,
        .visit = on_finding,
        .progress = show_progress,
        .context = answer,
    };
    cmd_progress_expect(0);
    return bw_check(answer->session.fs, &wanted, &report->summary);
}

struct bw_error *report_findings(struct report_page *report)
{
    static const struct report_column columns[] = {{"Severity", REPORT_SHORT},
                                                   {"Finding", REPORT_SHORT},
                                                   {"Files", REPORT_LONG},
                                                   {"Message", REPORT_LONG},
                                                   {NULL, REPORT_SHORT}};
    const struct cmd_format_plan plan = {.record = "findinginfo",
                                         .columns = "severity,code,paths,message",
                                         .list = list,
                                         .context = report};
    struct bw_buffer *page = &report->body;
    struct bw_buffer BW_AUTO_BUFFER table = {0};
    if (report->settings->check == REPORT_CHECK_NONE)
        return NULL;
    report_section(page, "check", "Check");
    struct bw_fs_options how = cmd_fs_options(report->common);
    struct cmd_session session = {0};
    how.log = BW_LOG_IGNORE;
    struct bw_error *error = bw_fs_open(&how, &session.fs);
    if (!error)
        error = cmd_format_gather(report->common, &session, &plan, &table);
    bw_fs_close(session.fs);
    const struct bw_check_summary *summary = report->summary;
    if (!summary) {
        report_section_end(page);
        return error;
    }

    /* The verdict, also as a message. */
    const uint64_t errors = summary->totals[BW_FINDING_ERROR];
    const uint64_t warnings = summary->totals[BW_FINDING_WARNING];
    const char *class = "warn", *verdict = "No errors in the metadata.";
    if (errors || !summary->finished) {
        const char *end = summary->finished ? "" : ", and was not completed";
        class = "bad";
        verdict = "Not sound.";
        bw_fs_report(report->session.fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT, "the check found %" PRIu64 " error%s%s",
                                     errors, bw_plural(errors), end));
    } else if (report_has_read_data(report)) {
        class = warnings ? "warn" : "good";
        verdict = "Sound.";
    }
    bw_buffer_format(page,
                     "<p><strong class=\"%s\">%s</strong> %" PRIu64 " error%s, %" PRIu64
                     " warning%s; %" PRIu64 " tree block%s checked.</p>\n",
                     class, verdict, errors, bw_plural(errors), warnings, bw_plural(warnings),
                     summary->blocks, summary->blocks == 1 ? " was" : "s were");
    const char *extent = "All metadata were checked, every mirror of them. Data were not read.";
    if (report->settings->check == REPORT_CHECK_QUICK)
        extent =
            "The quick check: superblocks, chunk tree and root tree, one mirror of each block. The "
            "rest was not looked at.";
    else if (report->settings->check == REPORT_CHECK_DATA)
        extent = "All metadata and data were checked, every mirror of them.";
    report_remark(page, extent);
    if (summary->count)
        report_table(page, columns, &table, "check --all");
    if (report_has_finding(report, "devices-diverged"))
        report_remark(page, "Devices have diverged: --side DEVID reads those that agree with one "
                            "of them.");
    report_section_end(page);
    return error;
}
