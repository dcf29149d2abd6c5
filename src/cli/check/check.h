/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The check command: common declarations of its files. check.c runs the check; findings.c has the
 * codes, counts and texts of findings; reports.c writes findings and differences to stdout and into
 * reports for CI systems; manifest.c compares the files with a list.
 */
#ifndef BW_CLI_CHECK_CHECK_H
#define BW_CLI_CHECK_CHECK_H

#include "btrfs-walk/check.h"
#include "btrfs-walk/diff.h"
#include "btrfs-walk/inode.h"
#include "cli/common/monitor.h"
#include "cli/common/output.h"
#include "cli/common/output_format.h"

/** The exit statuses are combinations of these bits, as in fsck(8). */
enum { CHECK_ERRORS = 4, CHECK_UNFINISHED = 8, CHECK_USAGE = 16 };

enum { CHECK_PASSES = 32 }; /**< more than there are passes */

/** Settings from the options. */
struct check_arguments {
    bool quick, data, all, strict;
    unsigned tolerate; /**< 1: repairable errors do not count as errors */
    unsigned threads;
    struct cmd_part part;
    const char *manifest, *subvolume;
    unsigned nested; /* enum bw_nested */
    bool no_snapshots;
    const char *report; /**< file; NULL: none */
};

/** Codes of findings of the comparison with a list. */
enum check_difference { CHECK_MISSING, CHECK_EXTRA, CHECK_CHANGED, CHECK_DIFFERENCES };
extern const struct bw_finding_code check_differences[CHECK_DIFFERENCES];
/** The pass of this comparison. */
enum { CHECK_MANIFEST_PASS, CHECK_COMPARISON_PASSES };
extern const struct bw_check_pass check_comparison_passes[CHECK_COMPARISON_PASSES];

/** A running check. */
struct check_run {
    const struct cmd_common *common;
    const struct check_arguments *settings;
    struct cmd_session session;
    struct cmd_output output;
    struct bw_rows_stream stream; /**< `rows` is NULL if findings are printed as lines */
    struct bw_buffer line, message;
    struct bw_check_summary *summary;
    struct bw_list *list; /**< of settings->manifest */
    struct bw_finding_count differences[CHECK_DIFFERENCES];
    uint64_t compared;  /**< entries of the list that were compared, or reported as missing */
    bool list_compared; /**< the comparison has begun */
    bool unfinished;    /**< something could not be checked, apart from the summary */
    struct cmd_output_file report;
    bool has_report;         /**< `report` may be open */
    struct bw_buffer *lines; /**< for each code, the findings that make the check fail; then for
                              * each code, the others; NULL: there is no report */
    struct {
        bool begun;
        int64_t began; /**< nanoseconds, monotonic */
    } passes[CHECK_PASSES];
    size_t last_pass; /**< the pass that began last */
    int64_t ended;
};

/** A code by its number, the library's codes first; NULL after the last. check_code_number() is the
 * inverse. */
const struct bw_finding_code *check_code(size_t number);
size_t check_code_number(const struct bw_finding_code *code);
size_t check_code_count(void);

/** A pass by its number; NULL after the last. */
const struct bw_check_pass *check_pass(size_t number);
/** Records the beginning of a pass, unless it is the current one. */
void check_begin_pass(struct check_run *check, const char *name);
/** The current time, in nanoseconds (monotonic). */
int64_t check_now(void);

/** The counts of codes that occurred, in order; NULL after the last. */
const struct bw_finding_count *check_count_at(const struct check_run *check, size_t number);
/** The number of findings of a code that make the check fail with --strict and --tolerate. */
uint64_t check_failures(const struct check_run *check, const struct bw_finding_count *count);
/** Whether a finding makes the check fail. */
bool check_fails(const struct check_run *check, const struct bw_finding *finding);

/** Whether everything could be checked. */
bool check_is_finished(const struct check_run *check);
/** The exit status so far. */
int check_status(const struct check_run *check);
/** Prints a summary to stderr. */
void check_print_summary(const struct check_run *check);

/** Appends a finding as a line of text. */
void check_append_line(struct bw_buffer *text, const struct bw_finding *finding);
/** Writes a finding to stdout and to the reports; a bw_finding_visitor. */
struct bw_error *check_on_finding(void *check, const struct bw_finding *finding);
/** Writes a finding as a row. */
struct bw_error *check_write_row(struct check_run *check, const struct bw_finding *finding);
/** Reports the progress of the check and returns whether to continue; for
 * bw_check_options.progress. */
bool check_show_progress(void *check, const struct bw_check_progress *progress);
/** Whether a signal has ended the check. */
bool check_is_stopped(void);
void check_catch_signals(void);

/** The option --report and its file, which is opened when the images to be read are known. */
struct bw_error *check_set_report(void *target, const struct cmd_option *option,
                                  const char *argument);
struct bw_error *check_report_open(void *check, const struct bw_fs *planned);
/** Writes and closes the report; false, with a message, if it could not be written. */
bool check_report_close(struct check_run *check);

/** Reads settings->manifest. The comparison passes findings to check_on_finding(). */
struct bw_error *check_read_list(struct check_run *check);

struct bw_error *check_compare(struct check_run *check);

/** Counts a difference and passes it to check_on_finding(), unless too many were printed. `place`
 * may be NULL. */
struct bw_error *check_report_difference(struct check_run *check, enum check_difference code,
                                         struct bw_bytes path, const char *message,
                                         const struct bw_place *place);

#endif
