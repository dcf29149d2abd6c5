/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Findings: codes, passes and counts of the library and of the comparisons; the exit status; and
 * the summary on stderr. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/tree.h"
#include "cli/check/check.h"

const struct bw_check_pass check_comparison_passes[CHECK_COMPARISON_PASSES] = {
    {.name = "manifest", .description = "the files with a list of them, if --manifest names one"},
};

const struct bw_finding_code check_differences[CHECK_DIFFERENCES] = {
    [CHECK_MISSING] = {"manifest-missing", "manifest", BW_FINDING_ERROR,
                       "a file of the list does not exist"},
    [CHECK_EXTRA] = {"manifest-extra", "manifest", BW_FINDING_ERROR, "a file is not in the list"},
    [CHECK_CHANGED] = {"manifest-changed", "manifest", BW_FINDING_ERROR,
                       "a file differs from the list"},
};

const struct bw_finding_code *check_code(size_t number)
{
    size_t count;
    const struct bw_finding_code *codes = bw_finding_codes(&count);
    if (number < count)
        return &codes[number];
    return number < count + CHECK_DIFFERENCES ? &check_differences[number - count] : NULL;
}

size_t check_code_count(void)
{
    size_t count;
    bw_finding_codes(&count);
    return count + CHECK_DIFFERENCES;
}

size_t check_code_number(const struct bw_finding_code *code)
{
    size_t number = 0;
    while (check_code(number) && check_code(number) != code)
        number++;
    return number;
}

const struct bw_check_pass *check_pass(size_t number)
{
    size_t count;
    const struct bw_check_pass *passes = bw_check_passes(&count);
    if (number < count)
        return &passes[number];
    number -= count;
    return number < CHECK_COMPARISON_PASSES ? &check_comparison_passes[number] : NULL;
}

int64_t check_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

void check_begin_pass(struct check_run *check, const char *name)
{
    size_t number = 0;
    for (const struct bw_check_pass *pass; (pass = check_pass(number)); number++)
        if (strcmp(pass->name, name) == 0)
            break;
    if (number >= CHECK_PASSES || check->passes[number].begun)
        return;
    check->passes[number].begun = true;
    check->passes[number].began = check_now();
    check->last_pass = number;
}

const struct bw_finding_count *check_count_at(const struct check_run *check, size_t number)
{
    size_t count = check->summary ? check->summary->count : 0;
    if (number < count)
        return &check->summary->counts[number];
    for (size_t i = 0; i < CHECK_DIFFERENCES; i++)
        if (check->differences[i].count && number-- == count)
            return &check->differences[i];
    return NULL;
}

static bool is_severe(const struct check_run *check, const struct bw_finding_code *code)
{
    /* an incomplete check has a separate bit in the exit status */
    return strcmp(code->word, "unfinished") != 0 &&
           code->severity >= (check->settings->strict ? BW_FINDING_WARNING : BW_FINDING_ERROR);
}

uint64_t check_failures(const struct check_run *check, const struct bw_finding_count *count)
{
    if (!is_severe(check, count->code))
        return 0;
    return count->count - (check->settings->tolerate ? count->repairable : 0);
}

bool check_fails(const struct check_run *check, const struct bw_finding *finding)
{
    return is_severe(check, finding->code) && !(check->settings->tolerate && finding->repairable);
}

bool check_is_finished(const struct check_run *check)
{
    return check->summary && check->summary->finished && !check->unfinished;
}

int check_status(const struct check_run *check)
{
    int status = check_is_finished(check) ? 0 : CHECK_UNFINISHED;
    const struct bw_finding_count *count;
    for (size_t i = 0; (count = check_count_at(check, i)); i++)
        status |= check_failures(check, count) ? CHECK_ERRORS : 0;
    return status;
}

static void print_count(const struct bw_finding_count *count)
{
    fprintf(stderr, "%12" PRIu64 " %-7s %-24s %s", count->count,
            bw_finding_severity_name(count->code->severity), count->code->word,
            count->code->description);
    if (count->hidden)
        fprintf(stderr, " (%" PRIu64 " of them not shown; --all shows them)", count->hidden);
    if (count->repairable && count->repairable < count->count)
        fprintf(stderr, " (%" PRIu64 " repairable)", count->repairable);
    else if (count->repairable)
        fprintf(stderr, " (repairable)");
    fputc('\n', stderr);
}

static void print_total(uint64_t number, const char *noun, const char *before)
{
    fprintf(stderr, "%s%" PRIu64 " %s%s", before, number, noun, bw_plural(number));
}

/* Without these numbers, a comparison with an empty list would look the same as one without
 * differences. */
static void print_comparison(const struct check_run *check)
{
    const uint64_t missing = check->differences[CHECK_MISSING].count,
                   changed = check->differences[CHECK_CHANGED].count,
                   extra = check->differences[CHECK_EXTRA].count;
    fprintf(stderr, "btrfs-walk: compared: %" PRIu64 " %s of %s; %" PRIu64 " %s", check->compared,
            check->compared == 1 ? "entry" : "entries", check->settings->manifest,
            missing + changed, missing + changed == 1 ? "differs" : "differ");
    if (missing)
        fprintf(stderr, " (%" PRIu64 " missing)", missing);
    print_total(extra, "file", ", ");
    fprintf(stderr, " not in the list\n");
}

void check_print_summary(const struct check_run *check)
{
    uint64_t totals[3] = {0}, repairable = 0;
    const struct bw_finding_count *count;
    for (size_t i = 0; (count = check_count_at(check, i)); i++) {
        totals[count->code->severity] += count->count;
        repairable += count->code->severity == BW_FINDING_ERROR ? count->repairable : 0;
        /* notes were already printed, and healthy file systems may have some */
        if (count->code->severity != BW_FINDING_NOTE || count->hidden)
            print_count(count);
    }
    if (check->list_compared)
        print_comparison(check);
    const struct bw_check_summary none = {0};
    const struct bw_check_summary *summary = check->summary ? check->summary : &none;
    char size[BW_SIZE_ROOM];
    *bw_write_size(size, summary->data_bytes, false) = '\0';
    fprintf(stderr, "btrfs-walk: %s: ", check_is_finished(check) ? "checked" : "not finished");
    print_total(summary->blocks, "tree block", "");
    if (summary->data_bytes)
        fprintf(stderr, ", %s of data", size);
    print_total(totals[BW_FINDING_ERROR], "error", "; ");
    if (repairable)
        fprintf(stderr, " (%" PRIu64 " repairable)", repairable);
    print_total(totals[BW_FINDING_WARNING], "warning", ", ");
    print_total(totals[BW_FINDING_NOTE], "note", ", ");
    fputc('\n', stderr);
}

/*
 * Findings as lines and as rows. A line is
 *
 * SEVERITY CODE TREE KEY PATH...: MESSAGE [ADDRESSES]
 *
 * Unknown parts are omitted. Names are escaped as `ls -b` does, so they never contain ": ".
 */

static bool is_known(const struct bw_finding *finding, unsigned bits)
{
    return (finding->known & bits) == bits;
}

static void append_paths(struct bw_buffer *text, const struct bw_finding *finding)
{
    for (size_t i = 0; i < finding->path_count; i++) {
        bw_buffer_append_byte(text, ' ');
        bw_escape_append(text, finding->paths[i].data, finding->paths[i].length);
    }
    if (finding->path_count && is_known(finding, BW_KNOWN_FILE_OFFSET))
        bw_buffer_format(text, " offset %" PRIu64, finding->file_offset);
    if (finding->path_count && is_known(finding, BW_KNOWN_FILE_LENGTH))
        bw_buffer_format(text, " length %" PRIu64, finding->file_length);
    if (finding->more_paths)
        bw_buffer_format(text, " and %" PRIu64 " more", finding->more_paths);
    if (finding->more_subvolumes)
        bw_buffer_format(text, " and in %" PRIu64 " more subvolume%s", finding->more_subvolumes,
                         finding->more_subvolumes > 1 ? "s" : "");
}

static void append_place(struct bw_buffer *text, const struct bw_finding *finding)
{
    char name[BW_KEY_TEXT];
    if (is_known(finding, BW_KNOWN_TREE))
        bw_buffer_format(text, " %s", bw_tree_id_text(finding->tree, name));
    if (is_known(finding, BW_KNOWN_KEY))
        bw_buffer_format(text, " %s", bw_key_text(&finding->key, name));
    if (is_known(finding, BW_KNOWN_INODE) && !finding->path_count &&
        !is_known(finding, BW_KNOWN_KEY))
        bw_buffer_format(text, " inode %" PRIu64, finding->inode);
    append_paths(text, finding);
}

/* [logical 30408704, device 1 offset 38797312, copy 2, repairable] */
static void append_addresses(struct bw_buffer *text, const struct bw_finding *finding)
{
    const char *before = " [";
    if (is_known(finding, BW_KNOWN_LOGICAL)) {
        bw_buffer_format(text, "%slogical %" PRIu64, before, finding->logical);
        before = ", ";
    }
    if (is_known(finding, BW_KNOWN_DEVICE)) {
        bw_buffer_format(text, "%sdevice %" PRIu64, before, finding->devid);
        if (finding->image) {
            bw_buffer_format(text, " (");
            bw_escape_words(text, finding->image);
            bw_buffer_append_byte(text, ')');
        }
        if (is_known(finding, BW_KNOWN_OFFSET))
            bw_buffer_format(text, " offset %" PRIu64, finding->offset);
        before = ", ";
    }
    if (is_known(finding, BW_KNOWN_COPY)) {
        bw_buffer_format(text, "%scopy %u", before, finding->copy);
        before = ", ";
    }
    if (finding->repairable) {
        bw_buffer_format(text, "%srepairable", before);
        before = ", ";
    }
    if (*before == ',')
        bw_buffer_append_byte(text, ']');
}

static void append_message(struct bw_buffer *text, const struct bw_finding *finding)
{
    bw_escape_words(text, finding->message);
    append_addresses(text, finding);
}

void check_append_line(struct bw_buffer *text, const struct bw_finding *finding)
{
    bw_buffer_format(text, "%s %s", bw_finding_severity_name(finding->code->severity),
                     finding->code->word);
    append_place(text, finding);
    bw_buffer_format(text, ": ");
    append_message(text, finding);
    bw_buffer_append_byte(text, '\n');
}

/* The members of a row that are unknown. */
static uint64_t absent_members(const struct bw_finding *finding)
{
    const struct {
        unsigned known;
        uint64_t members;
    } groups[] = {
        {BW_KNOWN_TREE, BW_MEMBER(findinginfo, tree)},
        {BW_KNOWN_KEY, BW_MEMBER(findinginfo, key)},
        {BW_KNOWN_LOGICAL, BW_MEMBER(findinginfo, logical)},
        {BW_KNOWN_LENGTH, BW_MEMBER(findinginfo, length)},
        {BW_KNOWN_DEVICE, BW_MEMBER(findinginfo, devid)},
        {BW_KNOWN_OFFSET, BW_MEMBER(findinginfo, offset)},
        {BW_KNOWN_COPY, BW_MEMBER(findinginfo, mirror)},
        {BW_KNOWN_INODE, BW_MEMBER(findinginfo, inode)},
        {BW_KNOWN_FILE_OFFSET, BW_MEMBER(findinginfo, file_offset)},
        {BW_KNOWN_FILE_LENGTH, BW_MEMBER(findinginfo, file_length)},
    };
    uint64_t absent = 0;
    if (!finding->more_paths)
        absent |= BW_MEMBER(findinginfo, more_paths);
    if (!finding->more_subvolumes)
        absent |= BW_MEMBER(findinginfo, more_subvolumes);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (!is_known(finding, groups[i].known))
            absent |= groups[i].members;
    return absent;
}

struct bw_error *check_write_row(struct check_run *check, const struct bw_finding *finding)
{
    char tree[BW_KEY_TEXT];
    check->message.length = 0;
    bw_escape_words(&check->message, finding->message);
    bw_buffer_append_byte(&check->message, '\0');
    if (check->message.failed)
        return bw_error_no_memory();
    const struct bw_findinginfo row = {
        .severity = bw_finding_severity_name(finding->code->severity),
        .code = finding->code->word,
        .pass = finding->code->pass,
        .tree = finding->tree,
        .tree_name = is_known(finding, BW_KNOWN_TREE) ? bw_tree_id_text(finding->tree, tree) : NULL,
        .key = finding->key,
        .logical = finding->logical,
        .length = finding->length,
        .devid = finding->devid,
        .offset = finding->offset,
        .mirror = finding->copy,
        .inode = finding->inode,
        .file_offset = finding->file_offset,
        .repairable = finding->repairable,
        .paths = {finding->paths, finding->path_count},
        .more_paths = finding->more_paths,
        .more_subvolumes = finding->more_subvolumes,
        .message = check->message.data,
        .file_length = finding->file_length,
        .device = {finding->image, finding->image ? strlen(finding->image) : 0},
    };
    return bw_rows_write(&check->stream, &row, sizeof row, absent_members(finding));
}

/* Signals and progress. */

/* Global, because signals are sent to the process. */
static volatile sig_atomic_t stopped;

bool check_is_stopped(void)
{
    return stopped;
}

static void stop_check(int number)
{
    (void)number;
    stopped = 1;
}

/* The first signal ends the check, which then prints its findings; a second signal ends the
 * program. */
void check_catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    const struct sigaction ours = {.sa_handler = stop_check,
                                   .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
    struct sigaction before;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(numbers[i], &ours, NULL);
}

bool check_show_progress(void *context, const struct bw_check_progress *progress)
{
    struct check_run *check = context;
    check_begin_pass(check, progress->pass);
    cmd_progress_set(progress->pass, progress->bytes, progress->expected,
                     progress->counts[BW_FINDING_ERROR] + progress->counts[BW_FINDING_WARNING]);
    return !check_is_stopped();
}
