/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report command: what its files share. report.c is the command, and puts the page together
 * from sections.c, folders.c (the treemap) and findings.c (the check); page.c writes the HTML that
 * they have in common, and style.c is the style of the page.
 */
#ifndef BW_CMD_REPORT_H
#define BW_CMD_REPORT_H

#include "base/buffer.h"
#include "btrfs-walk/check.h"
#include "cli/inspect/plans.h"

enum report_check { REPORT_CHECK_FULL, REPORT_CHECK_QUICK, REPORT_CHECK_NONE };

/** What the options have set. */
struct report_settings {
    const char *file;
    unsigned check; /**< enum report_check */
    unsigned threads;
};

enum {
    REPORT_PROBLEMS = 50, /**< messages that are shown */
    REPORT_ROWS = 500,    /**< rows of a table that are shown */
};

/** A report under way. */
struct report {
    const struct cmd_common *common;
    const struct report_settings *settings;
    struct cmd_session session;
    struct bw_superblock_info super;
    struct bw_buffer body; /**< the sections */
    struct bw_buffer problems;
    size_t problem_count;
    struct bw_check_summary *summary; /**< NULL: nothing was checked */
};

/** The style of the page. */
extern const char report_style[];

/* Pieces of HTML. */

/** Begins a section with a heading, and ends it. */
void report_section(struct bw_buffer *page, const char *id, const char *heading);
void report_section_end(struct bw_buffer *page);
/** A paragraph in small letters; plain text. */
void report_remark(struct bw_buffer *page, const char *text);
/** The text of a listing, of which the first line names the columns, as a table. `command` lists
 * what does not fit. */
void report_table(struct bw_buffer *page, const struct cmd_answer_plan *plan,
                  const struct bw_buffer *table, const char *command);
/** Lines of "Name: value" as a list. */
void report_lines(struct bw_buffer *page, const struct bw_buffer *lines);
/** Appends a size as people write it. */
void report_size(struct bw_buffer *page, uint64_t size);

/* Sections. What is missing of them is reported. */

struct bw_error *report_overview(struct report *report);
struct bw_error *report_pictures(struct report *report);
struct bw_error *report_folders(struct report *report);
struct bw_error *report_subvolumes(struct report *report);
struct bw_error *report_devices(struct report *report);
struct bw_error *report_findings(struct report *report);

#endif
