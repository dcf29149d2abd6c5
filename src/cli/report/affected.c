/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The check in the report: the section with its findings, and the beginning of a report about a
 * damaged file system, which names the affected files and the commands to run next. The check opens
 * the file system again, without replaying the log, so that damage becomes findings, not messages.
 */
#include "cli/report/report.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/subvolume.h"
#include "btrfs-walk/tree.h"
#include "cli/common/monitor.h"
#include "draw/markup.h"

enum {
    MOST_FILES = 1000, /* remembered */
    SHOWN_FILES = 20,
    SHOWN_FAULTS = 5,
};

/* Returns the file, which is added if it is new; NULL if there are too many, or without memory. */
static struct report_file *find_file(struct report_affected *affected, const struct bw_bytes *path)
{
    for (size_t i = 0; i < affected->files.count; i++) {
        struct report_file *file = &affected->files.items[i];
        if (file->length == path->length &&
            memcmp(affected->texts.data + file->path, path->data, path->length) == 0)
            return file;
    }
    if (affected->files.count >= MOST_FILES || report_files_reserve(&affected->files, 1))
        return NULL;
    const struct report_file file = {.path = affected->texts.length, .length = path->length};
    bw_buffer_append(&affected->texts, path->data, path->length);
    affected->files.items[affected->files.count] = file;
    return affected->texts.failed ? NULL : &affected->files.items[affected->files.count++];
}

/* Adds the files of a finding, if it is an error that nothing repairs. */
static void add_affected(struct report_affected *affected, const struct bw_findinginfo *finding)
{
    const char *word = finding->code;
    const bool is_error =
        strcmp(finding->severity, bw_finding_severity_name(BW_FINDING_ERROR)) == 0;
    if (!is_error || finding->repairable)
        return;
    for (size_t i = 0; i < finding->paths.length; i++) {
        struct report_file *file = find_file(affected, &finding->paths.data[i]);
        if (!file) {
            affected->more = true;
            continue;
        }
        if (strncmp(word, "data-", strlen("data-")) == 0)
            file->losses |= REPORT_LOST_DATA;
        else if (strncmp(word, "block-", strlen("block-")) == 0)
            file->losses |= REPORT_LOST_METADATA;
        else
            file->losses |= REPORT_CONTRADICTION;
        /* each bad mirror of the same bytes is a finding */
        const bool is_first = finding->mirror == BW_ABSENT || finding->mirror <= 1;
        if (finding->file_length != BW_ABSENT && is_first)
            file->bytes += finding->file_length;
    }
    affected->more |= finding->more_paths != BW_ABSENT || finding->more_subvolumes != BW_ABSENT;
    if (finding->paths.length)
        return;

    /* The first error of each kind and tree without a path. */
    const bool has_tree = finding->tree != BW_ABSENT;
    const struct report_fault fault = {.code = bw_finding_code_find(word),
                                       .has_tree = has_tree,
                                       .tree = has_tree ? finding->tree : 0,
                                       .message = affected->texts.length,
                                       .length = strlen(finding->message)};
    affected->more |= has_tree && bw_is_subvolume_id(finding->tree);
    bool known = affected->fault_count == REPORT_FAULTS;
    for (size_t i = 0; i < affected->fault_count; i++)
        known |= affected->faults[i].code == fault.code && affected->faults[i].tree == fault.tree;
    affected->more_faults |= known;
    if (known)
        return;
    bw_buffer_append(&affected->texts, finding->message, fault.length);
    affected->faults[affected->fault_count++] = fault;
}

void report_free_affected(struct report_affected *affected)
{
    report_files_free(&affected->files);
    bw_buffer_free(&affected->texts);
}

/* Sentences. */

/* The consequence of damage to a tree without files; "" if there is no general answer. */
static const char *meaning_of(uint64_t tree)
{
    switch (tree) {
    case BW_CSUM_TREE:
        return " Some contents can be read, but not verified.";
    case BW_EXTENT_TREE:
    case BW_FREE_SPACE_TREE:
    case BW_UUID_TREE:
    case BW_QUOTA_TREE:
        return " This tree is not needed to read files.";
    case BW_ROOT_TREE:
        return " Recent subvolumes and changes may be lost.";
    default:
        return bw_is_subvolume_id(tree) ? " The paths of its files are not known." : "";
    }
}

static void append_faults(struct bw_buffer *page, const struct report_affected *affected)
{
    if (!affected->fault_count)
        return;
    const char *which = affected->files.count ? "Other errors" : "The errors that the check found";
    bw_buffer_format(page, "<p>%s name no files:</p>\n<ul>\n", which);
    for (size_t i = 0; i < affected->fault_count && i < SHOWN_FAULTS && !affected->texts.failed;
         i++) {
        const struct report_fault *fault = &affected->faults[i];
        char name[BW_KEY_TEXT];
        bw_buffer_format(page, "<li>");
        if (fault->has_tree)
            bw_buffer_format(page, "%s: ", bw_tree_id_text(fault->tree, name));
        bw_markup_bytes(page, affected->texts.data + fault->message, fault->length);
        bw_buffer_format(page, ".%s</li>\n", fault->has_tree ? meaning_of(fault->tree) : "");
    }
    bw_buffer_format(page, "</ul>\n");
    if (affected->fault_count > SHOWN_FAULTS || affected->more_faults)
        report_remark(page, "The section about the check has more of them.");
}

static void append_command(const struct report_page *report, struct bw_buffer *page,
                           const char *beginning, const char *end, const char *purpose)
{
    const struct bw_fs *fs = report->session.fs;
    bw_buffer_format(page, "<li><code>btrfs-walk %s", beginning);
    for (size_t i = 0; i < bw_fs_image_count(fs); i++) {
        struct bw_buffer BW_AUTO_BUFFER word = {0};
        bw_append_shell_word(&word, bw_fs_image_path(fs, i));
        bw_buffer_format(page, "%s", i ? " --device " : " ");
        bw_markup_bytes(page, word.data, word.length);
    }
    bw_buffer_format(page, "%s</code> %s</li>\n", end, purpose);
}

void report_append_affected(const struct report_page *report, struct bw_buffer *page)
{
    const struct report_affected *affected = &report->affected;
    if (!bw_fs_status(report->session.fs).damages)
        return;
    report_section(page, "affected", "Affected files");
    if (affected->files.count) {
        bool more = affected->more; /* there are files that are not in the list */
        for (size_t i = 0; report->summary && i < report->summary->count; i++)
            more |= report->summary->counts[i].hidden &&
                    report->summary->counts[i].code->severity == BW_FINDING_ERROR;
        const bool is_one = affected->files.count == 1;
        const char *kind = is_one ? "file or directory" : "files or directories";
        bw_buffer_format(
            page,
            "<p>Damage affects <strong class=\"bad\">%s%zu %s</strong>. No good mirror "
            "exists of these parts:</p>\n",
            more ? "at least " : "", affected->files.count, kind);
        bw_buffer_format(page, "<ul>\n");
        for (size_t i = 0; i < affected->files.count && i < SHOWN_FILES; i++) {
            struct bw_buffer BW_AUTO_BUFFER text = {0};
            const struct report_file *file = &affected->files.items[i];
            bw_escape_line(&text, affected->texts.data + file->path, file->length);
            bw_buffer_format(page, "<li><code>");
            bw_markup_text(page, text.data, text.length);
            bw_buffer_format(page, "</code>");
            const char *before = ": ";
            if (file->losses & REPORT_LOST_DATA) {
                if (file->bytes)
                    bw_buffer_format(page, "%s%s of the contents cannot be read", before,
                                     cmd_size(NULL, file->bytes).text);
                else
                    bw_buffer_format(page, "%sparts of contents cannot be read", before);
                before = "; ";
            }
            if (file->losses & REPORT_LOST_METADATA) {
                bw_buffer_format(page, "%sits attributes, contents or names may be lost", before);
                before = "; ";
            }
            if (file->losses & REPORT_CONTRADICTION)
                bw_buffer_format(page, "%sits metadata contradict each other", before);
            bw_buffer_format(page, "</li>\n");
        }
        bw_buffer_format(page, "</ul>\n");
        if (affected->files.count > SHOWN_FILES)
            bw_buffer_format(page, "<p class=\"remark\">and %zu more</p>\n",
                             affected->files.count - SHOWN_FILES);
    } else if (!affected->fault_count && !(report->summary && report->summary->repairable)) {
        bw_buffer_format(page, "<p>Parts of the metadata cannot be read. The affected files are "
                               "not known; a complete check names them.</p>\n");
    }
    append_faults(page, affected);

    /* Errors that a mounted file system repairs. */
    const struct bw_check_summary *summary = report->summary;
    if (summary && summary->repairable) {
        const bool is_all = summary->repairable == summary->totals[BW_FINDING_ERROR];
        bw_buffer_format(
            page,
            "<p>%s%" PRIu64 " error%s can be repaired, because another mirror or parity "
            "is good. <code>btrfs scrub start</code> on the mounted file system writes "
            "the bad mirrors again.</p>\n",
            is_all ? "Nothing that was checked is lost: " : "", summary->repairable,
            bw_plural(summary->repairable));
    }

    const unsigned check = report->settings->check;
    const bool is_lost = affected->files.count || affected->fault_count;
    bw_buffer_format(page, "<p>Next:</p>\n<ul>\n");
    if (check == REPORT_CHECK_FULL)
        append_command(report, page, "check --data", "", "also verifies the contents of all files");
    else if (check != REPORT_CHECK_DATA)
        append_command(report, page, "check --data", "", "names all affected files");
    if (is_lost || check == REPORT_CHECK_NONE || check == REPORT_CHECK_QUICK)
        append_command(report, page, "extract -C FOLDER", "",
                       "copies all readable files, and names the others");
    if (affected->files.count)
        append_command(report, page, "versions", " PATH", "lists older versions of a file");
    bw_buffer_format(page, "</ul>\n");
    report_section_end(page);
}

/* The section about the check. */

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
    add_affected(&report->affected, finding);
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
