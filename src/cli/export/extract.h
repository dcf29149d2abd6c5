/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the extract command: an extraction under way, and the functions of its stream. */
#ifndef BW_CMD_EXTRACT_H
#define BW_CMD_EXTRACT_H

#include "cli/common/bad_ranges.h"
#include "cli/export/export.h"
#include "cli/common/monitor.h"
#include "export/written.h"
#include "export/target.h"
#include "export/target_maker.h"

enum { EXTRACT_LISTED = 100 /**< of what could not be restored, so much is listed */ };

/** What the options have set. */
struct extract_settings {
    struct cmd_export_settings export;
    const char *folder;
    struct bw_target_options target;
    enum cmd_on_error on_error;
};

/** Those that say how files are written, for a struct extract_settings. */
extern const struct cmd_option extract_options[];

/** An extraction under way. */
struct extract {
    struct cmd_export export;
    const struct extract_settings *settings;
    struct bw_target target;
    struct bw_target look;        /**< the same folder, for looking ahead */
    struct bw_target_maker maker; /**< makes links and special files */
    pid_t maker_process;          /**< 0: there is none */
    uint64_t devices;             /**< device nodes that were left out */
    struct bw_target_file file;
    const struct bw_export_entry *item; /**< that is being made */
    bool began;                         /**< the file whose parts are coming */
    bool failed;                        /**< and could not be */
    bool lost;                          /**< because of its content */
    bool zeroed;                        /**< zeros stand in for some of its content */
    /** Of an older state: its files with zeros for what is lost get this behind their names. 0:
     * they keep them. */
    uint64_t generation;
    /** Told of each file of that state that is left out, or is not under its name, since some of
     * its content is lost. May be NULL. */
    struct bw_error *(*name_is_free)(void *context, const char *path, size_t length);
    void *context; /**< of that */
    struct bw_links links;
    pthread_mutex_t lock;                       /**< for `again` */
    struct bw_export_entry *again, **again_end; /**< names that the stream is given once more */
    struct bw_made_directories directories;     /**< and files that are protected at the end */
    struct bw_xattr_reader *xattrs;
    struct bw_buffer text; /**< the target of a link, symbolic or hard */
    struct cmd_bad_ranges bad;
    struct bw_error *missed[EXTRACT_LISTED];
    uint64_t missed_count;
};

/** Opens the image and the folder, has `work` do the rest, and closes both. Returns the exit
 * status.
 */
int extract_run(const struct cmd_common *common, struct extract_settings *settings,
                struct bw_error *(*work)(struct extract *extract, void *context), void *context);

/** Starts the process that makes what only a path can name, if the sandbox is on; `common` is of a
 * command that writes into a folder. (extract_maker.c) */
struct bw_error *extract_start_maker(const struct cmd_common *common, struct extract *extract);

/** Ends it and waits for that; if there is none, nothing happens. */
void extract_end_maker(struct extract *extract);

/** Extracts the PATHs of a file system, or what extract->export.bring gives; for `work`. */
struct bw_error *extract_from(struct extract *extract, struct bw_fs *fs);

/** Takes what could not be extracted or restored, to be listed at the end; takes the error.
 * `context` is the struct extract. */
void extract_miss(void *context, struct bw_error *error);

/** The functions of the stream; `context` is the struct extract. */
struct bw_error *extract_next(void *context, struct bw_stream_file *file, bool *got);
struct bw_error *extract_take(void *context, const struct bw_stream_file *file,
                              const struct bw_data_part *part);
struct bw_error *extract_finish(void *context, const struct bw_stream_file *file, bool complete);

/** Takes why a link or special file was not made, as struct bw_target_maker says. */
struct bw_error *extract_other_failed(void *context, struct bw_error *error);

/** Tells that a file is not under its name, or not whole; of an older state. (extract_names.c) */
struct bw_error *extract_free_name(struct extract *extract, const struct bw_export_entry *item);

/** Puts the generation of an older state behind the name of a file that is not whole, and is about
 * to get its name. */
struct bw_error *extract_leave_name(struct extract *extract, struct bw_export_entry *item);

/** Gives back what was to go through the stream once more and did not. */
void extract_drop_again(struct extract *extract);

/** Restores the attributes of all directories, at the end, and protects files. */
struct bw_error *extract_finish_directories(struct extract *extract);

#endif
