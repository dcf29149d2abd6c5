/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The format of the output. A command fills a record and passes it to
 * cmd_format_write(); the options -o, --json, --header, --raw, --times which every command
 * with a record has, select the form:
 *
 * - columns of text, or JSON;
 * - without -o and --json a table for people: aligned columns below their names, on a terminal with
 *   units and dates, in a pipe with exact numbers; names are escaped
 *   as `ls -b` does;
 * - or, where people read something else than a table, what the command prints of each record.
 */
#ifndef BW_CLI_COMMON_OUTPUT_FORMAT_H
#define BW_CLI_COMMON_OUTPUT_FORMAT_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/vector.h"
#include "btrfs-walk/record.h"
#include "cli/command.h"

/** A row that waits until all are known. */
struct cmd_sorted_row {
    bool is_known;               /**< the row has a value of the column */
    uint64_t number;             /**< the value, if it is a number, or 0 */
    size_t added;                /**< number of the row */
    size_t key, path, text, end; /**< offsets of the key, the path and the text in `bytes`, and the
                                    end of the text */
};

BW_VECTOR(cmd_sorted_rows, struct cmd_sorted_row);

/** Rows that wait until all are known. All zeros: rows are not sorted. */
struct cmd_row_order {
    const struct bw_record *record;
    const struct bw_member *column; /**< NULL: the order in which rows were added */
    const struct bw_member *path;   /**< its order decides where the column is equal; or NULL */
    bool is_used, is_descending;
    size_t most; /**< how many rows are wanted; 0: all */
    struct cmd_sorted_rows rows;
    struct bw_buffer bytes; /**< keys, paths and texts of the rows */
};

/** The output of a command while it is being written. */
struct cmd_format {
    const struct cmd_common *common;
    const struct cmd_format_plan *plan;
    struct cmd_format_settings settings; /**< copied from the common settings */
    struct cmd_session session;
    struct cmd_output output;     /**< stdout */
    struct bw_rows *rows;         /**< NULL: plan->print formats the records */
    struct bw_rows_stream stream; /**< destination of the rows, or of the text from plan->print */
    struct cmd_row_order order;   /**< rows of --sort and --top, which wait in memory */
    struct bw_buffer text;        /**< text of the current record from plan->print; or the table
                                   * before it is aligned */
    int status;                   /**< set by the command's own errors */
    bool has_header;              /**< for plan->print: it has printed the names of its columns */
};

/** The output of a command and its format. */
struct cmd_format_plan {
    const char *record;  /**< with plan_of(): NULL for command->record */
    const char *columns; /**< columns of the table, as for -o; NULL: no table */
    /** Without a table: appends the text of a record to format->text. */
    struct bw_error *(*print)(struct cmd_format *format, const void *record);
    bool has_units; /**< `print` applies --iec, --si and --raw itself */
    /** Writes all records. Only BW_ERROR_USAGE and BW_ERROR_NOT_FOUND make the exit status
     * STATUS_CANNOT. */
    struct bw_error *(*list)(struct cmd_format *format, void *context);
    void *context;        /**< with plan_of(): the state of the command */
    bool has_null;        /**< `print` ends its lines with NUL for --null */
    enum cmd_depth depth; /**< how far to open the images; 0: completely */
    const char *largest;  /**< the column by which --top selects rows without --sort; may be NULL */
};

/** The plan of a command with this state. */
struct cmd_format_plan cmd_plan_of(const struct command *command, const void *state);

/** Opens the images, writes all records, and closes; returns the exit status. */
int cmd_format_run(const struct cmd_common *common, const struct cmd_format_plan *plan);

/** The same with the plan of a command. */
int cmd_run_plan(const struct cmd_common *common, const struct command *command, void *state);

/** The same with an open session, which it closes. */
int cmd_format_run_in(const struct cmd_common *common, const struct cmd_format_plan *plan,
                      struct cmd_session *session);

/** Appends to `text` what the command prints on a terminal. A table begins with a line of column
 * names; tabs separate its columns. The session stays open. */
struct bw_error *cmd_format_gather(const struct cmd_common *common,
                                   const struct cmd_session *session,
                                   const struct cmd_format_plan *plan, struct bw_buffer *text);

/** The parts of cmd_format_run(), for a command that opens images by itself. Prepares the output;
 * BW_ERROR_USAGE if the options contradict each other. */
struct bw_error *cmd_format_begin(struct cmd_format *format, const struct cmd_common *common,
                                  const struct cmd_format_plan *plan);
/** Writes the end of the output after the last record. Consumes `error`, the error that ended the
 * output or NULL; returns the first error. */
struct bw_error *cmd_format_end(struct cmd_format *format, struct bw_error *error);
/** Frees the memory, but does not close the session. */
void cmd_format_free(struct cmd_format *format);

/** Passes format->text on if it has at least `least` bytes. For a `print` that prints long texts.
 */
struct bw_error *cmd_format_pass_on(struct cmd_format *format, size_t least);

/** Writes a record; `size` as for bw_rows_write(). */
struct bw_error *cmd_format_write(struct cmd_format *format, const void *record, size_t size);

/** The value of a member of a record; absent if it is not known. */
static inline uint64_t cmd_if_known(bool is_known, uint64_t number)
{
    return is_known ? number : BW_ABSENT;
}

/** Reports why a part of the output is missing; consumes the error. The status of the error
 * counts, unless there is a worse one. */
void cmd_format_miss(struct cmd_format *format, struct bw_error *error);

/** Appends the bytes of a name or a path, escaped if stdout is a terminal. */
void cmd_format_append_name(const struct cmd_format *format, const void *name, size_t length,
                            struct bw_buffer *text);

/** Whether the output is a table or text for people, not columns or JSON. */
bool cmd_format_is_for_people(const struct cmd_common *common);

/** For commands that have their own stream. Creates rows for a record with the format that the
 * options select; NULL if they select neither columns nor JSON. `has_null`: the command can then
 * end its lines with NUL; `terminal`: the rows are written to a terminal. BW_ERROR_USAGE if the
 * options contradict each other. */
struct bw_error *cmd_format_rows(const struct cmd_format_settings *settings, const char *record,
                                 bool has_null, bool terminal, struct bw_rows **rows);

#endif
