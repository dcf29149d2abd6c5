/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Findings of the check and of the comparison with a list: their lines of text, which of them make
 * the check fail, and the summary on stderr. Each finding goes to stdout as soon as its pass has
 * ended, as a row of the record or as a line:
 *
 *     SEVERITY CODE TREE KEY PATH...: MESSAGE [ADDRESSES]
 *
 * With --since, the first word is "new", "same", or "gone"; the last ones do not count.
 * Unknown parts are omitted. Names are escaped as `ls -b` does, so they never contain ": ".
 */
#include "cli/check/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/tree.h"

/* Whether the findings of a code make the check fail. An incomplete check has a separate bit in the
 * exit status. */
static bool is_severe(const struct check_run *check, const struct bw_finding_code *code)
{
    const enum bw_finding_severity least =
        check->settings->strict ? BW_FINDING_WARNING : BW_FINDING_ERROR;
    return strcmp(code->word, "unfinished") != 0 && code->severity >= least;
}

void check_add_counts(struct check_run *check)
{
    for (size_t i = 0; check->summary && i < check->summary->count; i++) {
        const struct bw_finding_count *count = &check->summary->counts[i];
        check->counts[count->code - check->codes] = *count;
    }
}

uint64_t check_failures(const struct check_run *check, const struct bw_finding_count *count)
{
    if (!is_severe(check, count->code))
        return 0;
    return count->count - (check->settings->tolerate ? count->repairable : 0);
}

bool check_is_finished(const struct check_run *check)
{
    return check->summary && check->summary->finished && !check->unfinished;
}

/* error block-checksum FS_TREE (257 INODE_ITEM 0) /a: message [logical 30408704, device 1 offset
 * 38797312, mirror 2, repairable] */
static void append_line(struct bw_buffer *text, const struct bw_findinginfo *finding,
                        bool has_color)
{
    if (finding->since)
        bw_buffer_format(text, "%s ", finding->since);
    bw_buffer_format(text, "%s%s%s %s", cmd_color(has_color, cmd_severity_color(finding->severity)),
                     finding->severity, cmd_color(has_color, CMD_PLAIN), finding->code);
    const bool has_key = finding->key.objectid != BW_ABSENT;
    char key[BW_KEY_TEXT];
    if (finding->tree_name)
        bw_buffer_format(text, " %s", finding->tree_name);
    if (has_key)
        bw_buffer_format(text, " %s", bw_key_text(&finding->key, key));
    if (finding->inode != BW_ABSENT && !finding->paths.length && !has_key)
        bw_buffer_format(text, " inode %" PRIu64, finding->inode);
    for (size_t i = 0; i < finding->paths.length; i++) {
        bw_buffer_append_byte(text, ' ');
        bw_escape_append(text, finding->paths.data[i].data, finding->paths.data[i].length);
    }
    if (finding->paths.length && finding->file_offset != BW_ABSENT)
        bw_buffer_format(text, " offset %" PRIu64, finding->file_offset);
    if (finding->paths.length && finding->file_length != BW_ABSENT)
        bw_buffer_format(text, " length %" PRIu64, finding->file_length);
    if (finding->more_paths != BW_ABSENT)
        bw_buffer_format(text, " and %" PRIu64 " more", finding->more_paths);
    if (finding->more_subvolumes != BW_ABSENT)
        bw_buffer_format(text, " and in %" PRIu64 " more subvolume%s", finding->more_subvolumes,
                         bw_plural(finding->more_subvolumes));
    bw_buffer_format(text, ": %s", finding->message);

    /* Addresses. */
    const char *before = " [";
    if (finding->logical != BW_ABSENT) {
        bw_buffer_format(text, "%slogical %" PRIu64, before, finding->logical);
        before = ", ";
    }
    if (finding->devid != BW_ABSENT) {
        bw_buffer_format(text, "%sdevice %" PRIu64, before, finding->devid);
        if (finding->device.data) {
            bw_buffer_format(text, " (");
            bw_escape_line(text, finding->device.data, finding->device.length);
            bw_buffer_append_byte(text, ')');
        }
        if (finding->offset != BW_ABSENT)
            bw_buffer_format(text, " offset %" PRIu64, finding->offset);
        before = ", ";
    }
    if (finding->mirror != BW_ABSENT) {
        bw_buffer_format(text, "%smirror %" PRIu64, before, finding->mirror);
        before = ", ";
    }
    if (finding->repairable) {
        bw_buffer_format(text, "%srepairable", before);
        before = ", ";
    }
    if (*before == ',')
        bw_buffer_append_byte(text, ']');
    bw_buffer_append_byte(text, '\n');
}

struct bw_error *check_print_finding(struct cmd_format *format, const void *finding)
{
    append_line(&format->text, finding, cmd_has_color(format->common, STDOUT_FILENO));
    return NULL;
}

struct bw_error *check_on_finding(void *context, const struct bw_findinginfo *finding)
{
    struct check_run *check = context;
    if (check->lines && !(finding->since && strcmp(finding->since, "gone") == 0)) {
        const struct bw_finding_code *code = bw_finding_code_find(finding->code);
        const bool tolerated = check->settings->tolerate && finding->repairable;
        const bool fails = is_severe(check, code) && !tolerated;
        struct bw_buffer *lines = &check->lines[2 * (code - check->codes) + !fails];
        append_line(lines, finding, false);
        BW_TRY(bw_buffer_error(lines));
    }
    return cmd_format_write(&check->format, finding, sizeof *finding);
}

struct bw_error *check_report_difference(struct check_run *check, const char *word,
                                         struct bw_bytes path, const char *message,
                                         const struct bw_place *place)
{
    const struct bw_finding_code *code = bw_finding_code_find(word);
    struct bw_finding_count *count = &check->counts[code - check->codes];
    count->count++;
    if (count->count > BW_FINDINGS_SHOWN && !check->settings->all) {
        count->hidden++;
        return NULL;
    }
    BW_AUTO_BUFFER struct bw_buffer escaped = {0};
    bw_escape_words(&escaped, message);
    BW_TRY(bw_buffer_terminate(&escaped));
    struct bw_findinginfo finding;
    bw_record_clear(bw_record_find("findinginfo"), &finding);
    finding.severity = bw_finding_severity_name(code->severity);
    finding.code = code->word;
    finding.pass = code->pass;
    finding.repairable = false;
    finding.paths = (struct bw_names){&path, 1};
    finding.message = escaped.data;
    char tree[BW_KEY_TEXT];
    if (place) {
        finding.tree = bw_subvolume_id(place->subvolume);
        finding.tree_name = bw_tree_id_text(finding.tree, tree);
        finding.inode = place->inode;
    }
    return check_on_finding(check, &finding);
}

/* The summary. */

static void print_total(uint64_t number, const char *noun, const char *before)
{
    fprintf(stderr, "%s%" PRIu64 " %s%s", before, number, noun, bw_plural(number));
}

/* The same in the colour of its severity, or green if there are none. */
static void print_severity(uint64_t number, const char *noun, const char *before, bool has_color)
{
    const enum cmd_color color = number ? cmd_severity_color(noun) : CMD_GREEN;
    fprintf(stderr, "%s%s", before, cmd_color(has_color, color));
    print_total(number, noun, "");
    fprintf(stderr, "%s", cmd_color(has_color, CMD_PLAIN));
}

void check_print_summary(const struct check_run *check)
{
    const struct bw_check_summary none = {0};
    const struct bw_check_summary *summary = check->summary ? check->summary : &none;
    const bool has_color = cmd_has_color(check->common, STDERR_FILENO);
    uint64_t totals[3] = {0}, repairable = 0;
    for (size_t i = 0; i < check->code_count; i++) {
        const struct bw_finding_count *count = &check->counts[i];
        totals[count->code->severity] += count->count;
        if (count->code->severity == BW_FINDING_ERROR)
            repairable += count->repairable;
        /* notes were already printed, and healthy file systems may have some */
        if (!count->count || (count->code->severity == BW_FINDING_NOTE && !count->hidden))
            continue;
        const char *severity = bw_finding_severity_name(count->code->severity);
        fprintf(stderr, "%12" PRIu64 " %s%-7s%s %-24s %s", count->count,
                cmd_color(has_color, cmd_severity_color(severity)), severity,
                cmd_color(has_color, CMD_PLAIN), count->code->word, count->code->description);
        if (strcmp(count->code->word, "devices-diverged") == 0)
            fprintf(stderr, "; --side DEVID reads those that agree with one of them");
        if (count->hidden)
            fprintf(stderr, " (%" PRIu64 " of them not shown; --all shows them)", count->hidden);
        if (count->repairable && count->repairable < count->count)
            fprintf(stderr, " (%" PRIu64 " repairable)", count->repairable);
        else if (count->repairable)
            fprintf(stderr, " (repairable)");
        fputc('\n', stderr);
    }

    /* Without these numbers, a comparison with an empty list would look the same as one without
     * differences. */
    if (check->list_compared) {
        const struct bw_finding_count *counts = check->counts;
        const struct bw_finding_code *codes = check->codes;
        const uint64_t missing = counts[bw_finding_code_find("manifest-missing") - codes].count;
        const uint64_t changed = counts[bw_finding_code_find("manifest-changed") - codes].count;
        fprintf(stderr, "btrfs-walk: compared: %" PRIu64 " %s of %s", check->compared,
                check->compared == 1 ? "entry" : "entries", check->settings->manifest);
        fprintf(stderr, "; %" PRIu64 " %s", missing + changed,
                missing + changed == 1 ? "differs" : "differ");
        if (missing)
            fprintf(stderr, " (%" PRIu64 " missing)", missing);
        print_total(counts[bw_finding_code_find("manifest-extra") - codes].count, "file", ", ");
        fprintf(stderr, " not in the list\n");
    }

    fprintf(stderr, "btrfs-walk: %s: ", check_is_finished(check) ? "checked" : "not finished");
    print_total(summary->blocks, "tree block", "");
    if (summary->data_bytes)
        fprintf(stderr, ", %s of data", cmd_size(NULL, summary->data_bytes).text);
    print_severity(totals[BW_FINDING_ERROR], "error", "; ", has_color);
    if (repairable)
        fprintf(stderr, " (%" PRIu64 " repairable)", repairable);
    print_severity(totals[BW_FINDING_WARNING], "warning", ", ", has_color);
    print_total(totals[BW_FINDING_NOTE], "note", ", ");
    fputc('\n', stderr);
    check_print_skipped(check);
    const uint64_t not_searched =
        check->session.fs ? bw_fs_status(check->session.fs).not_searched : 0;
    if (not_searched)
        fprintf(stderr,
                "btrfs-walk: %" PRIu64 " bad tree block%s not searched for a flipped bit: the "
                "limit of a minute was reached\n",
                not_searched, not_searched == 1 ? " was" : "s were");
}
