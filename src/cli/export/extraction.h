/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An extraction into a folder: for the commands extract and deleted. */
#ifndef BW_CLI_EXPORT_EXTRACTION_H
#define BW_CLI_EXPORT_EXTRACTION_H

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

/** Extracts the PATHs of a file system, or what extract->export.bring gives; for `work`. */
struct bw_error *extract_from(struct extract *extract, struct bw_fs *fs);

#endif
