/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The check command: common declarations of its files. check.c runs the check; findings.c prints
 * findings, counts them and decides whether they make the check fail; reports.c writes the report
 * for CI systems; manifest.c compares the files with a list; baseline.c reads and writes baselines.
 */
#ifndef BW_CLI_CHECK_CHECK_H
#define BW_CLI_CHECK_CHECK_H

#include "btrfs-walk/check.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/records.h"
#include "cli/common/output.h"
#include "cli/common/output_format.h"

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
    const char *save;   /**< file of the new baseline; NULL: none */
    const char *since;  /**< file of an earlier baseline, or a generation; NULL: none */
    bool found_errors;  /**< result: there are findings that make the check fail */
};

/** A running check. Codes are numbered as in bw_finding_codes(), passes as in bw_check_passes(). */
struct check_run {
    const struct cmd_common *common;
    struct check_arguments *settings;
    struct cmd_session session;
    struct cmd_format format; /**< of the findings on stdout; without a session */
    const struct bw_finding_code *codes;
    size_t code_count;
    struct bw_finding_count *counts; /**< counts of each code; the library's are known after
                                        bw_check() */
    struct bw_check_summary *summary;
    struct bw_list *list; /**< the files in settings->manifest */
    uint64_t compared;    /**< entries of the list that were compared, or reported as missing */
    bool list_compared;   /**< the comparison has begun */
    bool unfinished;      /**< something could not be checked, apart from the summary */
    struct bw_baseline *since, *save; /**< NULL: none */
    uint64_t since_generation;        /**< 0: none */
    struct cmd_output_file saved;     /**< the file of `save` */
    struct cmd_output_file report;
    bool has_report;             /**< `report` may be open */
    struct bw_buffer *lines;     /**< for each code, the findings that make the check fail; then for
                                  * each code, the others; NULL: there is no report */
    int64_t began[CHECK_PASSES]; /**< when each pass began, in monotonic nanoseconds; 0: not yet */
    size_t last_pass;            /**< the pass that began last */
    int64_t ended;
};

/** Records the beginning of a pass, unless it is the current one. */
void check_begin_pass(struct check_run *check, const char *name);
/** Whether a signal has ended the check. */
bool check_is_stopped(void);

/** Adds the counts of the summary to those of the command. */
void check_add_counts(struct check_run *check);
/** The number of findings of a code that make the check fail with --strict and --tolerate. */
uint64_t check_failures(const struct check_run *check, const struct bw_finding_count *count);
/** Whether everything could be checked. */
bool check_is_finished(const struct check_run *check);
/** Prints a summary to stderr. */
void check_print_summary(const struct check_run *check);

/** Prints a finding as a line; of the plan. */
struct bw_error *check_print_finding(struct cmd_format *format, const void *finding);
/** Writes a finding to stdout and keeps it for the report; a bw_finding_visitor. */
struct bw_error *check_on_finding(void *check, const struct bw_findinginfo *finding);
/** Counts a difference ("manifest-missing") and passes it to check_on_finding(), unless too many
 * were printed. `place` may be NULL. */
struct bw_error *check_report_difference(struct check_run *check, const char *code,
                                         struct bw_bytes path, const char *message,
                                         const struct bw_place *place);

/** The option --report and its file, which is opened when the images to be read are known. */
struct bw_error *check_set_report(void *target, const struct cmd_option *option,
                                  const char *argument);
struct bw_error *check_report_open(void *check, const struct bw_fs *planned);
/** Writes and closes the report; false, with a message, if it could not be written. */
bool check_report_close(struct check_run *check);

/** Reads the baseline of --since, and makes one for --save. */
struct bw_error *check_read_baseline(struct check_run *check);
/** Opens the files of --report and --save, when the images to be read are known. */
struct bw_error *check_open_outputs(void *check, const struct bw_fs *planned);
/** Writes and closes the file of --save; false, with a message, if it could not be written. */
bool check_close_baseline(struct check_run *check, bool finished);
/** Prints what --since has not read. */
void check_print_skipped(const struct check_run *check);

/** Reads settings->manifest. The comparison passes findings to check_on_finding(). */
struct bw_error *check_read_list(struct check_run *check);
struct bw_error *check_compare(struct check_run *check);

#endif
