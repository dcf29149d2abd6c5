/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extraction into a folder: of files, for the commands extract and deleted, and of subvolumes. */
#ifndef BW_CLI_EXPORT_EXTRACTION_H
#define BW_CLI_EXPORT_EXTRACTION_H

#include "base/hash_table.h"
#include "btrfs-walk/history.h"
#include "cli/common/list_file.h"
#include "cli/common/monitor.h"
#include "cli/export/export.h"
#include "export/links.h"
#include "export/made_directories.h"
#include "export/portable_names.h"
#include "export/target.h"

/*
 * Lists that an extraction writes: a manifest with the status and the hash of each extracted file,
 * and the paths of the others; and the names that differ from those in the image. The manifest is
 * appended to, so after an interrupted extraction and its continuation it contains all files: those
 * that were extracted, but not listed, are read again and listed then. An incomplete list ends with
 * a mark (cli/common/list_file.h).
 */

/** The files that --manifest, --missed and --renamed name; NULL: none. And manifests of other
 * extractions. */
struct extract_list_settings {
    const char *manifest, *missed, *renamed;
    struct bw_const_strings except;
};

/** Their options, for a struct extract_list_settings. */
extern const struct cmd_option extract_list_options[];

/** The lists of a running extraction. All zeros: none. */
struct extract_lists {
    const struct cmd_common *common;
    struct cmd_list_file manifest, missed;
    struct bw_key_set listed; /**< hashes of the names in the manifest, from earlier extractions */
    struct bw_key_set except; /**< the same of complete files in other manifests */
    bool has_except;
    struct cmd_list_file renamed; /**< used only by the thread that looks ahead */
    struct bw_rows *renamed_rows;
    struct bw_rows_stream renamed_stream;
    struct bw_rows *rows;
    struct bw_rows_stream stream;
    struct bw_hash *hash;
    struct bw_recoverable read; /**< the parts of the current file */
    uint64_t zeros; /**< bytes of it that are hashed as zeros; with too many, it gets no hash */
};

/** Opens the lists, before the sandbox is entered. */
struct bw_error *extract_lists_open(struct extract_lists *lists,
                                    const struct extract_list_settings *settings,
                                    const struct cmd_common *common, const struct bw_fs *planned);

/** Adds a part of the current file to its hash. Bad parts count as zeros. */
void extract_lists_add_part(struct extract_lists *lists, const struct bw_data_part *part);

/** The result for an entry. */
enum extract_outcome {
    EXTRACT_MADE,    /**< it was extracted, perhaps with zeros in place of lost parts */
    EXTRACT_FOUND,   /**< an earlier extraction has made it; it was read again */
    EXTRACT_LINKED,  /**< it is another name of a file that was extracted */
    EXTRACT_KEPT,    /**< an earlier extraction has made it; it was not read */
    EXTRACT_OMITTED, /**< a device node that only --preserve makes */
    EXTRACT_FAILED,  /**< it was not extracted */
};

/** Whether a file that exists must be read for the manifest, which does not list it. Callable from
 * any thread. */
bool extract_lists_lack(const struct extract_lists *lists, const struct bw_export_entry *item);

/** Whether an entry is skipped because another manifest lists it. A directory is then made only if
 * it gets entries. Callable from any thread. */
bool extract_lists_except(const struct extract_lists *lists, const struct bw_export_entry *item);

/** Ends the current file or another entry. `fs` is its file system. */
struct bw_error *extract_lists_add(struct extract_lists *lists, const struct bw_fs *fs,
                                   const struct bw_export_entry *item,
                                   enum extract_outcome outcome);

/** Adds the new name of an entry; nothing without --renamed. */
struct bw_error *extract_lists_add_renamed(struct extract_lists *lists, struct bw_bytes path,
                                           struct bw_bytes name);

/** Closes the lists. `complete`: all files were extracted or listed as missing. Returns the first
 * error. */
struct bw_error *extract_lists_close(struct extract_lists *lists, bool complete);

/* Extracting. */

enum {
    EXTRACT_LISTED = 100, /**< number of errors that are listed */
    EXTRACT_EXISTING = 3, /**< number of files that are named because they exist */
};

/** Settings of the options. */
struct extract_settings {
    struct cmd_export_settings export;
    const char *folder;
    struct bw_target_options target;
    bool rename; /**< change names that Windows does not accept */
    enum cmd_on_error on_error;
    unsigned mirror; /**< the mirror of the data to read; 0: any good one */
    struct extract_list_settings lists;
};

/** The options for writing files, for a struct extract_settings. */
extern const struct cmd_option extract_options[];

/** A running extraction. */
struct extract {
    struct cmd_export export;
    const struct extract_settings *settings;
    struct cmd_folder folder;
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
    void *context; /**< passed to name_is_free */
    struct bw_links links;
    pthread_mutex_t lock;                       /**< protects `again` */
    struct bw_export_entry *again, **again_end; /**< items to pass through the stream again */
    struct bw_made_directories directories;     /**< and files that must be protected at the end */
    struct bw_xattr_reader *xattrs;
    struct bw_buffer text; /**< the target of a link, symbolic or hard */
    struct extract_lists lists;
    struct bw_error *missed[EXTRACT_LISTED];
    uint64_t missed_count;
    uint64_t existing; /**< files that exist; EXTRACT_EXISTING of them are in `missed` */
    /* Of the thread that looks ahead: */
    struct bw_portable_names names;
    const struct bw_export_entry *ahead; /**< the item that gets its name */
    struct bw_error *renamed[EXTRACT_LISTED];
    uint64_t renamed_count;
};

/** Opens the image and the folder, calls `work`, and closes both. Returns the exit status. */
int extract_run(const struct cmd_common *common, struct extract_settings *settings,
                struct bw_error *(*work)(struct extract *extract, void *context), void *context);

/** Extracts the PATHs of a file system, or the entries from extract->export.bring; for `work`. */
struct bw_error *extract_from(struct extract *extract, struct bw_fs *fs);

/** Extracts the subvolumes that common->paths names, with their snapshots and the subvolumes inside
 * them; without paths, all. Of the settings, the folder, --on-error (other than CMD_ON_ERROR_FAIL:
 * unreadable data are zeros) and the threads apply. Returns the exit status. */
int extract_subvolumes(const struct cmd_common *common, const struct extract_settings *settings,
                       bool link_snapshots);

#endif
