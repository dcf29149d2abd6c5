/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An extraction into a folder: for the commands extract and deleted. */
#ifndef BW_CLI_EXPORT_EXTRACTION_H
#define BW_CLI_EXPORT_EXTRACTION_H

#include "cli/common/monitor.h"
#include "cli/export/export.h"
#include "cli/export/extraction_lists.h"
#include "export/links.h"
#include "export/made_directories.h"
#include "export/target_maker.h"

enum { EXTRACT_LISTED = 100 /**< number of errors that are listed */ };

/** Settings of the options. */
struct extract_settings {
    struct cmd_export_settings export;
    const char *folder;
    struct bw_target_options target;
    enum cmd_on_error on_error;
    struct extract_list_settings lists;
};

/** The options for writing files, for a struct extract_settings. */
extern const struct cmd_option extract_options[];

/** A running extraction. */
struct extract {
    struct cmd_export export;
    const struct extract_settings *settings;
    struct bw_target target;
    struct bw_target look;        /**< the same folder, for the thread that looks ahead */
    struct bw_target_maker maker; /**< makes links and special files */
    pid_t maker_process;          /**< 0: none */
    uint64_t devices;             /**< number of device nodes that were omitted */
    struct bw_target_file file;
    const struct bw_export_entry *item; /**< the item that is being made */
    bool began;                         /**< the current file was created */
    bool failed;                        /**< the current file could not be extracted */
    bool lost;                          /**< `failed` because its contents are damaged */
    bool zeroed;                        /**< parts of the contents were replaced with zeros */
    /** The error that ended the extraction. The files after it are only listed as missing. */
    struct bw_error *ended;
    atomic_bool lists_rest; /**< the same, for the thread that looks ahead */
    bool all_listed;        /**< every file was extracted or listed as missing */
    /** For older generations: appended to the names of files with replaced parts. 0: names do not
     * change. */
    uint64_t generation;
    /** Called for each file of an older generation that is omitted or renamed because parts of its
     * contents are lost. May be NULL. */
    struct bw_error *(*name_is_free)(void *context, const char *path, size_t length);
    void *context; /**< for name_is_free */
    struct bw_links links;
    pthread_mutex_t lock;                       /**< protects `again` */
    struct bw_export_entry *again, **again_end; /**< items to pass through the stream again */
    struct bw_made_directories directories;     /**< and files that must be protected at the end */
    struct bw_xattr_reader *xattrs;
    struct bw_buffer text; /**< the target of a link, symbolic or hard */
    struct cmd_bad_ranges bad;
    struct extract_lists lists;
    struct bw_error *missed[EXTRACT_LISTED];
    uint64_t missed_count;
};

/** Opens the image and the folder, calls `work`, and closes both. Returns the exit status. */
int extract_run(const struct cmd_common *common, struct extract_settings *settings,
                struct bw_error *(*work)(struct extract *extract, void *context), void *context);

/** Extracts the PATHs of a file system, or the entries from extract->export.bring; for `work`. */
struct bw_error *extract_from(struct extract *extract, struct bw_fs *fs);

#endif
