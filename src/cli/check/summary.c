/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a check went: codes, passes and counts of the library and of the comparison with a list, the
 * exit status, and the closing words on stderr. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/human.h"
#include "cli/check/check.h"

const struct bw_finding_code *check_code(size_t number)
{
    size_t count;
    const struct bw_finding_code *codes = bw_finding_codes(&count);
    return number < count                          ? &codes[number]
           : number < count + CHECK_MANIFEST_CODES ? &check_manifest_codes[number - count]
                                                   : NULL;
}

size_t check_code_count(void)
{
    size_t count;
    bw_finding_codes(&count);
    return count + CHECK_MANIFEST_CODES;
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
    return number < count ? &passes[number] : number == count ? &check_manifest_pass : NULL;
}

int64_t check_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

void check_begin_pass(struct check *check, const char *name)
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

const struct bw_finding_count *check_count(const struct check *check, size_t number)
{
    size_t count = check->summary ? check->summary->count : 0;
    if (number < count)
        return &check->summary->counts[number];
    for (size_t i = 0; i < CHECK_MANIFEST_CODES; i++)
        if (check->manifest[i].count && number-- == count)
            return &check->manifest[i];
    return NULL;
}

static bool is_severe(const struct check *check, const struct bw_finding_code *code)
{
    /* What could not be checked is a bit of its own. */
    return strcmp(code->word, "unfinished") != 0 &&
           code->severity >= (check->settings->strict ? BW_FINDING_WARNING : BW_FINDING_ERROR);
}

uint64_t check_failures(const struct check *check, const struct bw_finding_count *count)
{
    if (!is_severe(check, count->code))
        return 0;
    return count->count - (check->settings->tolerate ? count->mendable : 0);
}

bool check_fails(const struct check *check, const struct bw_finding *finding)
{
    return is_severe(check, finding->code) && !(check->settings->tolerate && finding->mendable);
}

bool check_is_finished(const struct check *check)
{
    return check->summary && check->summary->finished && !check->unfinished;
}

int check_status(const struct check *check)
{
    int status = check_is_finished(check) ? 0 : CHECK_UNFINISHED;
    const struct bw_finding_count *count;
    for (size_t i = 0; (count = check_count(check, i)); i++)
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
    if (count->mendable && count->mendable < count->count)
        fprintf(stderr, " (%" PRIu64 " mendable)", count->mendable);
    else if (count->mendable)
        fprintf(stderr, " (mendable)");
    fputc('\n', stderr);
}

static void print_total(uint64_t number, const char *what, const char *before)
{
    fprintf(stderr, "%s%" PRIu64 " %s%s", before, number, what, bw_plural(number));
}

/* Without these numbers, a list that matches nothing looks like one that matches everything. */
static void print_comparison(const struct check *check)
{
    const uint64_t missing = check->manifest[CHECK_MISSING].count,
                   changed = check->manifest[CHECK_CHANGED].count,
                   extra = check->manifest[CHECK_EXTRA].count;
    fprintf(stderr, "btrfs-walk: compared: %" PRIu64 " %s of %s; %" PRIu64 " %s", check->compared,
            check->compared == 1 ? "entry" : "entries", check->settings->manifest,
            missing + changed, missing + changed == 1 ? "differs" : "differ");
    if (missing)
        fprintf(stderr, " (%" PRIu64 " missing)", missing);
    print_total(extra, "file", ", ");
    fprintf(stderr, " not in the list\n");
}

void check_print_summary(const struct check *check)
{
    uint64_t totals[3] = {0}, mendable = 0;
    const struct bw_finding_count *count;
    for (size_t i = 0; (count = check_count(check, i)); i++) {
        totals[count->code->severity] += count->count;
        mendable += count->code->severity == BW_FINDING_ERROR ? count->mendable : 0;
        /* Notes are printed already, and a healthy file system may have some. */
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
    if (mendable)
        fprintf(stderr, " (%" PRIu64 " mendable)", mendable);
    print_total(totals[BW_FINDING_WARNING], "warning", ", ");
    print_total(totals[BW_FINDING_NOTE], "note", ", ");
    fputc('\n', stderr);
}
