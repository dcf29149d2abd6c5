/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common parts of the commands that export whole trees (sum, tar, extract, bodyfile): the selection
 * of files, the queue that delivers them, and the exit status.
 */
#ifndef BW_CLI_EXPORT_EXPORT_H
#define BW_CLI_EXPORT_EXPORT_H

#include <stdatomic.h>

#include "btrfs-walk/file.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/history.h"
#include "cli/command.h"
#include "cli/common/selection.h"
#include "export/entry_queue.h"

/** Settings of the options. */
struct cmd_export_settings {
    struct bw_walk_options walk; /**< `types` is 0 unless --type was given */
    struct cmd_selection selection;
    struct bw_export_naming naming;
    bool follow_renames; /**< PATHs are paths in the current generation */
    bool sorted;  /**< walk each PATH in the order of names, a directory before its contents */
    bool salvage; /**< include files whose inodes are lost, if anything is recoverable */
};

/** The options for a struct cmd_export_settings. */
extern const struct cmd_option cmd_export_options[];

/** The entry for --on-error: `part` is what `skip` omits, `by_default` a word. */
#define CMD_ON_ERROR_OPTION(type, member, part, by_default)                         \
    {                                                                               \
        0, "on-error", "WORD",                                                      \
            "at unreadable data: stop (fail), write zeros (zero) or omit the " part \
            " (skip); default: " by_default,                                        \
            CMD_WORD(type, member, cmd_on_error_words)                              \
    }

/** The options for the names of exported files, for a struct cmd_export_settings. */
extern const struct cmd_option cmd_naming_options[];

/** The options that set an attribute of all files, for a struct bw_tree_archive_options
 * (export/tree_archive.h). */
extern const struct cmd_option cmd_override_options[];

/* Unreadable ranges of files: how to handle them, and reports on stderr. */

/** How to handle unreadable ranges; the argument of --on-error. */
enum cmd_on_error {
    CMD_ON_ERROR_FAIL, /**< omit them, or the whole file: see the option of each command */
    CMD_ON_ERROR_ZERO, /**< replace them with zeros */
    CMD_ON_ERROR_SKIP, /**< omit the file */
};

/** The words of the option, in the order of enum cmd_on_error; ends with NULL. */
extern const char *const cmd_on_error_words[];

/** The range that is being collected. Initialize `fs` and `on_error`, the rest with zeros. Only one
 * thread at a time may use it. */
struct cmd_bad_ranges {
    struct bw_fs *fs;
    enum cmd_on_error on_error;
    struct cmd_export *export; /**< for cmd_export_is_further(); may be NULL */
    bool is_counted;           /**< the current file was counted there */
    const char *path; /**< the file of a range that is not reported yet; must live until the next
                         flush */
    uint64_t offset, length;
    struct bw_error *error; /**< the error of its first part; NULL: there is no range */
};

/** A running export. */
struct cmd_export {
    const struct cmd_common *common;
    struct cmd_export_settings *settings;
    struct cmd_session session;
    struct bw_starting_points starts; /**< the PATHs, except those inside of others */
    unsigned passes[3];               /**< file types of each pass; ends with 0 */
    /** For the queue: see struct bw_entry_queue_options. */
    struct bw_error *(*bring)(void *context, unsigned types, bw_entry_visitor *visit,
                              void *visitor);
    void *bring_context;
    struct bw_entry_queue *queue;
    atomic_int status;               /**< the worst so far */
    struct bw_buffer missing_starts; /**< the PATHs that were not found, each with its NUL; complete
                                      * after cmd_export_stop() */
    atomic_uint_fast64_t without_contents; /**< files of an image without contents */
    struct cmd_bad_ranges bad;             /**< the command sets it, if it reports ranges */
    bool found_any; /**< something other than the top directories of subvolumes was found */
};

/** Opens the image and returns STATUS_OK; then call cmd_export_close(). On failure prints the error
 * and returns the exit status. */
int cmd_export_open(const struct cmd_common *common, struct cmd_export_settings *settings,
                    struct cmd_export *export);

/** Computes the number of bytes to read, if the progress is shown. */
void cmd_export_expect(struct cmd_export *export);

/** Starts walking all PATHs, or everything: first for `types`, then, unless it is 0, for
 * `more_types`. */
struct bw_error *cmd_export_start(struct cmd_export *export, unsigned types, unsigned more_types);

/** Ends the walks. */
void cmd_export_stop(struct cmd_export *export);

/** The next entry from the queue; NULL after the last. `export` is a struct cmd_export. */
struct bw_error *cmd_export_next_item(void *export, struct bw_export_entry **item);

/** Whether an error of a file comes from an image without the contents of all its files. */
bool cmd_export_lacks_contents(const struct cmd_export *export, const struct bw_error *error);

/** Whether an error of a file is not the first one of an image without the contents of all its
 * files: the first one is enough as an example, and cmd_export_close() prints how many others there
 * were. Counts it. Callable from any thread. */
bool cmd_export_is_further(struct cmd_export *export, const struct bw_error *error);

/** Reports that a part of the output is missing; consumes the error. The exit status will be at
 * least STATUS_PARTIAL. Callable from any thread. `export` is a struct cmd_export, so that this
 * can be a callback. */
void cmd_export_report(void *export, struct bw_error *error);

/** The same for an error of a file, unless cmd_export_is_further(). */
void cmd_export_miss(void *export, struct bw_error *error);

/** Closes the image. Consumes the error that ended the command, which may be NULL; returns the exit
 * status. */
int cmd_export_close(struct cmd_export *export, struct bw_error *error);

/** Room for the texts of lost ranges. */
struct cmd_range_texts {
    char texts[BW_RECOVERABLE_RANGES][44];
    struct bw_bytes names[BW_RECOVERABLE_RANGES];
};

/** The lost ranges of a file, as OFFSET+LENGTH; the result points into `texts`. */
struct bw_names cmd_lost_ranges(const struct bw_recoverable *left, struct cmd_range_texts *texts);

/** Adds an unreadable part of a file; adjacent parts are joined. `path` is not copied. */
void cmd_bad_add(struct cmd_bad_ranges *bad, const char *path, const struct bw_data_part *part);

/** Writes a part to an output. An unreadable one is added, and handled as --on-error says. Zeros
 * become holes if the output can have them. `path` is not copied. */
struct bw_error *cmd_bad_write(struct cmd_bad_ranges *bad, struct cmd_output *output,
                               const char *path, const struct bw_data_part *part);

/** Reports the collected range. Call it at the end of each file. */
void cmd_bad_flush(struct cmd_bad_ranges *bad);

/** The error to end with at a bad part, with --on-error=fail. */
struct bw_error *cmd_bad_error(const char *path, const struct bw_data_part *part);

#endif
