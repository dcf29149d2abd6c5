/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answers: how commands print records. A command fills a record and passes it to
 * cmd_answer_write(); the options -o, --json, --header, --raw, --times and their like, which every
 * command with a record has, decide what becomes of it:
 *
 * - columns of text, or JSON;
 * - without -o and --json a table for people: aligned columns below their names, with units and
 *   dates, and with names escaped as `ls -b` does;
 * - or, where people read something else than a table, what the command prints of each record.
 */
#ifndef BW_CLI_COMMON_ANSWER_H
#define BW_CLI_COMMON_ANSWER_H

#include <stdbool.h>

#include "btrfs-walk/record.h"
#include "btrfs-walk/rows.h"
#include "cli/command.h"

/** The end of the help of commands that print a table. */
#define CMD_ANSWER_DETAILS                                                                \
    "\nNumbers are exact with --raw, -o and --json. An unknown value is '-' in a column," \
    "\nand omitted in JSON.\n"

/** An answer under way. */
struct cmd_answer {
    const struct cmd_common *common;
    const struct cmd_answer_plan *plan;
    struct cmd_answer_settings settings; /**< what the options say */
    struct cmd_session session;
    struct cmd_output output;     /**< stdout */
    struct bw_rows *rows;         /**< NULL: the plan prints records */
    struct bw_rows_stream stream; /**< of rows, or of what the plan has printed */
    struct bw_buffer text;        /**< what it has printed of a record; or the table, not aligned */
    int status;                   /**< of what the command met by itself */
};

/** The output of a command and its format. */
struct cmd_answer_plan {
    const char *record;  /**< usually command->record */
    const char *columns; /**< of the table, as for -o; NULL: there is none */
    /** Without a table: appends what people read of a record to answer->text. */
    struct bw_error *(*print)(struct cmd_answer *answer, const void *record, uint64_t absent);
    bool has_units; /**< which is in the units of --iec, --si or --raw */
    /** Writes all records. BW_ERROR_USAGE ends with STATUS_CANNOT, and so does nothing else. */
    struct bw_error *(*list)(struct cmd_answer *answer, void *context);
    void *context;
    bool null_terminated; /**< rows that are no table end with NUL */
};

/** Opens the images, lists, and closes; returns the exit status. */
int cmd_answer_run(const struct cmd_common *common, const struct cmd_answer_plan *plan);

/** Appends to `text` what the command prints for people. A table has the names of the columns in
 * its first line, and tabs between columns. The session stays open. */
struct bw_error *cmd_answer_gather(const struct cmd_common *common,
                                   const struct cmd_session *session,
                                   const struct cmd_answer_plan *plan, struct bw_buffer *text);

/** The parts of cmd_answer_run(), for a command that opens images by itself. Prepares an answer;
 * BW_ERROR_USAGE if the options contradict each other. */
struct bw_error *cmd_answer_begin(struct cmd_answer *answer, const struct cmd_common *common,
                                  const struct cmd_answer_plan *plan);
/** Writes the end of the output, after the last record. Consumes the error that ended the answer;
 * returns the first error. */
struct bw_error *cmd_answer_end(struct cmd_answer *answer, struct bw_error *error);
/** Frees what an answer owns, but for its session. */
void cmd_answer_free(struct cmd_answer *answer);

/** Passes the text that has been printed on, if it has at least that many bytes: for a `print` that
 * prints much. */
struct bw_error *cmd_answer_pass_on(struct cmd_answer *answer, size_t least);

/** Writes a record; `size` and `absent` as for bw_rows_write(). */
struct bw_error *cmd_answer_write(struct cmd_answer *answer, const void *record, size_t size,
                                  uint64_t absent);

/** Whether people read the answer: it is neither columns nor JSON. */
bool cmd_answer_is_for_people(const struct cmd_common *common);

/** For commands that have a stream of their own. Makes rows of a record as the options say; NULL if
 * they ask for none. `terminator` follows each row; `terminal`: they are written to one.
 * BW_ERROR_USAGE if the options contradict each other. */
struct bw_error *cmd_answer_rows(const struct cmd_answer_settings *settings, const char *record,
                                 char terminator, bool terminal, struct bw_rows **rows);

#endif
