/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output of commands: results to stdout or a file, messages to stderr, and the exit status for an
 * error. */
#ifndef BW_CLI_COMMON_OUTPUT_H
#define BW_CLI_COMMON_OUTPUT_H

#include "base/buffer.h"
#include "base/human.h"
#include "cli/common/settings.h"

/** Exit statuses. `check` has its own instead: see cli/check/check.h. */
enum {
    STATUS_OK = 0,
    STATUS_PARTIAL = 1,     /**< the output is incomplete */
    STATUS_DIFFERENT = 1,   /**< diff --exit-code: there are differences */
    STATUS_CANNOT = 2,      /**< wrong usage, or the file system cannot be opened */
    STATUS_UNSUPPORTED = 3, /**< the image needs a feature that is not supported */
};

/** An exit status and its meaning. In the last entry of a table, the meaning is NULL. */
struct cmd_status {
    int status;
    const char *meaning;
};

/** The exit statuses of commands whose `meanings` is NULL. */
extern const struct cmd_status cmd_statuses[];

/** What an error did to the output of a command. */
enum cmd_loss {
    CMD_LOST_ALL,  /**< the command ended before its output began */
    CMD_LOST_REST, /**< it ended the output, which may have begun */
    CMD_LOST_PART, /**< a part of the output is missing; the command continues */
};

/** The status for an error. */
int cmd_status_of(enum bw_error_code code, enum cmd_loss loss);

/** The status of the more serious of two problems. */
int cmd_worse_status(int status, int other);

/** A size as text. */
struct cmd_size {
    char text[BW_SIZE_ROOM + 1];
};

/** A size with a unit; with --raw a number, and with --si in powers of 1000. "-": BW_ABSENT.
 * `settings` may be NULL: neither is given. */
struct cmd_size cmd_size(const struct cmd_format_settings *settings, uint64_t bytes);

/** A time in UTC, in nanoseconds since 1970, as text; without fractions of a second. */
struct cmd_date {
    char text[sizeof "2026-11-21 07:57:58"];
};
struct cmd_date cmd_date(int64_t nanoseconds);

/** With --fsync, waits until a file is on its disk; pipes and terminals have none. */
struct bw_error *cmd_sync_file(const struct cmd_common *common, int descriptor, const char *name);

/** Closes a written file, with --fsync after it is on its disk. Errors that the system found after
 * write(2) are reported here, as those of full disks on NFS. Returns `error` if it is set. */
struct bw_error *cmd_close_file(const struct cmd_common *common, int descriptor, const char *name,
                                struct bw_error *error);

/** Colours of text on a terminal. */
enum cmd_color { CMD_PLAIN, CMD_BOLD, CMD_RED, CMD_YELLOW, CMD_GREEN, CMD_CYAN };

/** Whether --color allows colours on stdout or stderr. Without that option: on a terminal, unless
 * NO_COLOR is set. `common` may be NULL. */
bool cmd_has_color(const struct cmd_common *common, int descriptor);

/** The bytes that begin a colour, or end it (CMD_PLAIN); empty unless `has_color`. */
const char *cmd_color(bool has_color, enum cmd_color color);

/** The colour for a severity: "error", "damage", "warning", "note". */
enum cmd_color cmd_severity_color(const char *severity);

/** The word for the severity of a message: "note", "warning" or "damage". */
const char *cmd_severity_name(enum bw_severity severity);

/** Moves the advice of an error into its message, with options as on the command line. */
void cmd_spell_advice(const struct cmd_common *common, struct bw_error *error);

/** Prints a note, warning or damage to stderr. The `report` function of a bw_reporter whose context
 * is a struct cmd_common. */
void cmd_print_message(void *context, enum bw_severity severity, const struct bw_error *error);

/** The reporter that calls cmd_print_message(). */
static inline struct bw_reporter cmd_reporter(const struct cmd_common *common)
{
    return (struct bw_reporter){cmd_print_message, (void *)(uintptr_t)common};
}

/** Prints a note, warning or damage, and frees the error object. */
void cmd_note(const struct cmd_common *common, enum bw_severity severity, struct bw_error *error);

/** Prints the error that ended a command to stderr, frees it, and returns its exit status;
 * STATUS_OK for NULL. */
int cmd_fail(const struct cmd_common *common, struct bw_error *error);

/** Reports a mistake in the command line, such as options that exclude each other; returns
 * STATUS_CANNOT. */
int cmd_refuse(const struct cmd_common *common, const char *mistake);

/** Like cmd_fail(), for an error after the file system was opened: STATUS_CANNOT if the command
 * line names something that does not exist, STATUS_PARTIAL if the output was cut short, for example
 * by a full disk. */
int cmd_fail_output(const struct cmd_common *common, struct bw_error *error);

/** Like cmd_fail(), for a part of the output that is missing, while the command continues. */
int cmd_miss(const struct cmd_common *common, struct bw_error *error);

/** Opens an output file other than stdout. BW_ERROR_USAGE if it is a file that `fs` reads, looks
 * like an image, or is the file `taken` (NULL: none). */
struct bw_error *cmd_open_output(const struct bw_fs *fs, const char *taken, const char *name,
                                 int *descriptor);

/** The rest of a path that leads to something directly in common->writing.base. NULL: it leads
 * elsewhere, or base is NULL. */
const char *cmd_name_in_base(const struct cmd_common *common, const char *path);

/** The error for something directly in a folder that could not be opened because of `number`: names
 * links, which are not followed. `path` is its whole path. */
struct bw_error *cmd_name_error(int folder, const char *name, const char *path, int number);

/** Appends the contents of a regular file directly in a base to `text`; follows no link. `path` is
 * its whole path. */
struct bw_error *cmd_read_in_base(const struct cmd_folder *base, const char *name, const char *path,
                                  struct bw_buffer *text);

/** Opens the folder of a command, and creates it if it does not exist: then sets `*is_new`, unless
 * it is NULL. Links in its path are followed, because the user gave it, except below
 * common->writing.base. */
struct bw_error *cmd_open_folder(const struct cmd_common *common, const char *path, int *descriptor,
                                 bool *is_new);

/** Writes all bytes at an offset; `name` is for the error message. */
struct bw_error *cmd_write_at(int descriptor, const char *name, uint64_t offset, const void *bytes,
                              size_t length);

/** Writes all bytes; `name` is for the error message. */
struct bw_error *cmd_write_file(int descriptor, const char *name, const char *bytes, size_t length);

/** Buffered output to stdout or a file. All zeros: to stdout, with an empty buffer. */
struct cmd_output {
    const char *name; /**< name of the file; NULL: stdout */
    int descriptor;   /**< of the file */
    struct bw_buffer gathered;
    bool at_once;    /**< unbuffered, for a terminal */
    long long since; /**< when the oldest buffered byte was added, in nanoseconds (monotonic) */
    bool is_tested, is_sparse; /**< with `is_tested`: whether the output can have holes */
    bool ends_in_hole;         /**< which the size of the file does not include yet */
};

/** Writes bytes; `context` is a struct cmd_output, so this can be the consumer of a walk.
 * If stdout is a pipe without a reader, SIGPIPE ends the program, even if it was ignored at the
 * start. */
struct bw_error *cmd_write(void *context, const char *bytes, size_t length);

/** Writes a text like cmd_write(), unless memory ran out for it. */
struct bw_error *cmd_write_buffer(struct cmd_output *output, const struct bw_buffer *text);

/** Writes zeros. At the end of a regular file, a sector of them or more becomes a hole. */
struct bw_error *cmd_write_zeros(struct cmd_output *output, uint64_t length);

/** Writes the buffered bytes and frees the buffer. */
struct bw_error *cmd_flush(struct cmd_output *output);

/** Flushes the stdio buffer of stdout; returns the exit status. */
int cmd_flush_stdout(const struct cmd_common *common);

/** Writes a text to stdout and frees it. Returns the exit status. */
int cmd_write_text(struct bw_buffer *text);

/** The output file of a command, which may be stdout. It is opened before the sandbox is entered,
 * and removed if it is not completed, even if a signal ends the program. */
struct cmd_output_file {
    const struct cmd_common *common;
    const char *binary; /**< it is not written to a terminal: "an archive"; NULL: it is text */
    bool is_open;       /**< it is a file other than stdout, and open */
    bool has_begun;     /**< the file was truncated; its previous contents are lost */
    int watcher;        /**< socket to the process that removes an incomplete file; -1: none */
    struct cmd_output output; /**< to write to, after cmd_output_file_start() */
};

/** An output file that is not open yet. `name`: NULL or "-" is stdout. */
struct cmd_output_file cmd_output_file(const struct cmd_common *common, const char *name);

/** Begins a file that is opened and closed with the session that has the returned settings:
 * cmd_end() completes it if no error ended the command. */
struct cmd_common cmd_output_file_begin(struct cmd_output_file *file,
                                        const struct cmd_common *common, const char *name);

/** Opens the file, for a function of common->writing.open_outputs. */
struct bw_error *cmd_output_file_open(struct cmd_output_file *file, const struct bw_fs *planned);

/** Truncates the file; its previous contents are lost. */
struct bw_error *cmd_output_file_start(struct cmd_output_file *file);

/** Replaces the contents of the file with a text. */
struct bw_error *cmd_output_file_write(struct cmd_output_file *file, const struct bw_buffer *text);

/** Flushes and closes the file. If `error` is set or an error occurs now, the file is removed.
 * Consumes `error`, which may be NULL, and returns the first error. The file need not have been
 * opened, and may be NULL. */
struct bw_error *cmd_output_file_close(struct cmd_output_file *file, struct bw_error *error);

/** A file in common->writing.folder. It has the suffix ".part" until it is complete, and replaces
 * no other. */
struct cmd_folder_file {
    const struct cmd_common *common;
    const char *name; /**< without the suffix */
    char *path;       /**< of the folder and the file, with the suffix */
    struct cmd_output output;
};

/** Makes the file, or with `resume` opens it if it exists. `name` must outlive it. */
struct bw_error *cmd_folder_file_open(struct cmd_folder_file *file, const struct cmd_common *common,
                                      const char *name, bool resume);

/** Flushes and closes the file, and removes the suffix. After an error, `keeps` the incomplete
 * file, or removes it. Consumes `error`, which may be NULL, and returns the first error. */
struct bw_error *cmd_folder_file_close(struct cmd_folder_file *file, bool keeps,
                                       struct bw_error *error);

struct cmd_session;

/** Runs a command that writes a single file: opens the file system and the file, calls `write`, and
 * closes both. `name` and `binary` as in struct cmd_output_file. Returns the exit status. */
int cmd_output_file_run(const struct cmd_common *common, const char *name, const char *binary,
                        struct bw_error *(*write)(void *context, const struct cmd_session *session,
                                                  struct cmd_output_file *file),
                        void *context);

#endif
