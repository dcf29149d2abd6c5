/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output of commands: results to stdout or a file, messages to stderr, and the exit status for an
 * error. */
#ifndef BW_CLI_COMMON_OUTPUT_H
#define BW_CLI_COMMON_OUTPUT_H

#include "base/buffer.h"
#include "cli/common/settings.h"

/** Prints a note, warning or damage to stderr; for a bw_reporter whose context is a struct
 * cmd_common. */
void cmd_tell(void *context, enum bw_severity severity, const struct bw_error *error);

/** The reporter that calls it. */
static inline struct bw_reporter cmd_reporter(const struct cmd_common *common)
{
    return (struct bw_reporter){cmd_tell, (void *)(uintptr_t)common};
}

/** Prints a note and frees it. */
void cmd_note(const struct cmd_common *common, struct bw_error *note);

/** Prints the error that ended a command to stderr, frees it, and returns the exit status for it.
 */
int cmd_fail(const struct cmd_common *common, struct bw_error *error);

/** The same for an error that came when the file system was open: STATUS_CANNOT if something was
 * asked for that is not there, STATUS_PARTIAL if the answer was cut off, as by a full disk. */
int cmd_fail_answer(const struct cmd_common *common, struct bw_error *error);

/** Opens an output file other than stdout. BW_ERROR_USAGE if it is a file that `fs` reads, looks
 * like an image, or is the file `taken` (NULL: none). */
struct bw_error *cmd_open_output(const struct bw_fs *fs, const char *taken, const char *name,
                                 int *descriptor);

/** Writes all of it to a file. */
struct bw_error *cmd_write_file(int descriptor, const char *name, const char *bytes, size_t length);

/** Output to stdout, in which small pieces are gathered. All zeros is empty. */
struct cmd_output {
    struct bw_buffer gathered;
    bool at_once;    /**< do not gather: it is a terminal */
    long long since; /**< when the oldest gathered byte came, in nanoseconds (monotonic) */
};

/** Writes bytes to stdout; `context` is a struct cmd_output, so that this can be the consumer of a
 * walk. If stdout is a pipe without a reader, SIGPIPE ends the program, even if it was ignored. */
struct bw_error *cmd_write(void *context, const char *bytes, size_t length);

/** Flushes the buffer and frees the memory. */
struct bw_error *cmd_flush(struct cmd_output *output);

/** Flushes what was written to stdout through stdio; returns the exit status. */
int cmd_flush_stdout(const struct cmd_common *common);

/** Writes a whole text to stdout and frees it. Returns the exit status. */
int cmd_write_text(const struct cmd_common *common, struct bw_buffer *text);

/** The file that a command writes its answer to: it is opened before the sandbox is entered, and
 * removed if the answer is broken off, even by a signal. Begins with all but the first two zero. */
struct cmd_output_file {
    const struct cmd_common *common;
    const char *name; /**< NULL or "-": stdout */
    int descriptor;   /**< -1: it is stdout; valid if it is open */
    bool is_open;     /**< it is neither stdout nor closed */
    bool has_begun;   /**< its previous contents are lost */
    int watcher;      /**< channel to the process that removes it; -1: there is none; likewise */
    struct cmd_output output;  /**< if it is stdout */
    struct bw_buffer gathered; /**< if it is not: small pieces */
};

/** Opens it; for common->writing.open_outputs, with a struct cmd_output_file. */
struct bw_error *cmd_output_file_open(void *file, const struct bw_fs *planned);

/** Where the bytes go. */
int cmd_output_file_descriptor(const struct cmd_output_file *file);

/** Truncates the file; its previous contents are lost. */
struct bw_error *cmd_output_file_start(struct cmd_output_file *file);

/** Writes bytes; `file` is a struct cmd_output_file. */
struct bw_error *cmd_output_file_add(void *file, const char *bytes, size_t length);

/** Replaces the contents of the file by a text. */
struct bw_error *cmd_output_file_write(struct cmd_output_file *file, const struct bw_buffer *text);

/** Writes what is left and closes it. If there was an error, or is one now, it is removed. Takes
 * the error, or NULL, and returns the first. May be called for one that was never opened. */
struct bw_error *cmd_output_file_close(struct cmd_output_file *file, struct bw_error *error);

#endif
