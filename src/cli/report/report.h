/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The report command: common declarations of its files. report.c is the command, document.c
 * combines the sections from affected.c (affected files, the check), sections.c and folders.c (the
 * treemap), as a page with its style, or as text for a terminal. page.c writes HTML.
 */
#ifndef BW_CLI_REPORT_REPORT_H
#define BW_CLI_REPORT_REPORT_H

#include "base/buffer.h"
#include "base/vector.h"
#include "btrfs-walk/check.h"
#include "cli/inspect/plans.h"

enum report_check { REPORT_CHECK_FULL, REPORT_CHECK_QUICK, REPORT_CHECK_NONE, REPORT_CHECK_DATA };

/** Settings of the options. */
struct report_settings {
    const char *file;
    unsigned check; /**< enum report_check */
    unsigned threads;
};

enum {
    REPORT_PROBLEMS = 50, /**< number of messages shown */
    REPORT_ROWS = 500,    /**< rows shown of a table */
    REPORT_FAULTS = 16,   /**< kinds of errors without files that are remembered */
};

/** The kind of damage to a file. */
enum report_loss {
    REPORT_LOST_DATA = 1 << 0,
    REPORT_LOST_METADATA = 1 << 1,
    REPORT_CONTRADICTION = 1 << 2,
};

/** A file that errors affect. */
struct report_file {
    size_t path, length; /**< in `texts` */
    unsigned losses;     /**< bits of enum report_loss */
    uint64_t bytes;      /**< contents that cannot be read; 0: unknown */
};

/** An error that names no file. */
struct report_fault {
    const struct bw_finding_code *code;
    bool has_tree;
    uint64_t tree;
    size_t message, length; /**< in `texts` */
};

BW_VECTOR(report_files, struct report_file);

/** The affected files. */
struct report_affected {
    struct report_files files;
    struct bw_buffer texts;
    bool more;        /**< there are further files */
    bool more_faults; /**< and further errors without files */
    struct report_fault faults[REPORT_FAULTS];
    size_t fault_count;
};

/** A report that is being made. */
struct report_page {
    const struct cmd_common *common;
    const struct report_settings *settings;
    struct cmd_session session;
    struct bw_superblock_info super;
    struct bw_buffer overview, body; /**< the sections; the overview precedes the others */
    bool has_counts;                 /**< the numbers of files and directories are known */
    uint64_t files, directories;
    struct bw_buffer problems;
    size_t problem_count;
    struct bw_check_summary *summary; /**< NULL: nothing was checked */
    struct report_affected affected;
};

/** The form of a column. */
enum report_form {
    REPORT_SHORT,
    REPORT_NUMBER, /**< aligned on the right */
    REPORT_LONG,   /**< on several lines if the page is narrow */
};

/** A column of a table. In the last entry, `heading` is NULL. */
struct report_column {
    const char *heading; /**< plain text */
    enum report_form form;
};

/** Makes the page or, if `as_text`, its summary for a terminal. */
struct bw_error *report_document(struct report_page *report, bool as_text, struct bw_buffer *page);

/* Pieces of HTML. */

/** Begins and ends a section; `heading` is plain text. */
void report_section(struct bw_buffer *page, const char *id, const char *heading);
void report_section_end(struct bw_buffer *page);
/** Appends a paragraph in small letters; `text` is plain text. */
void report_remark(struct bw_buffer *page, const char *text);
/** Begins a table, and ends it after `rows` rows. Only the first REPORT_ROWS are shown; `command`
 * prints the others. */
void report_table_begin(struct bw_buffer *page, const struct report_column *columns);
void report_table_end(struct bw_buffer *page, size_t rows, const char *command);
/** Appends a listing as a table; it has a line of headings and as many columns. */
void report_table(struct bw_buffer *page, const struct report_column *columns,
                  const struct bw_buffer *table, const char *command);
/** Appends lines of "Name: value" as a list. */
void report_lines(struct bw_buffer *page, const struct bw_buffer *lines);

/** Whether the check has findings of a code. There must be a summary. */
bool report_has_finding(const struct report_page *report, const char *word);
/** Whether the check has read all data, not only metadata. There must be a summary. */
bool report_has_read_data(const struct report_page *report);

/* Affected files. */

/** Appends the section about them; nothing if the file system is not damaged. */
void report_append_affected(const struct report_page *report, struct bw_buffer *page);
void report_free_affected(struct report_affected *affected);

/* Sections. Each mentions the parts of it that cannot be read. */

struct bw_error *report_overview(struct report_page *report);
struct bw_error *report_pictures(struct report_page *report);
struct bw_error *report_folders(struct report_page *report);
struct bw_error *report_subvolumes(struct report_page *report);
struct bw_error *report_devices(struct report_page *report);
struct bw_error *report_findings(struct report_page *report);

#endif
