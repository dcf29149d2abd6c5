/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists that an extraction writes: a manifest with the status and the hash of each extracted file,
 * and the paths of the others. The manifest is appended to, so after an interrupted extraction and
 * its continuation it contains all files: those that were extracted, but not listed, are read again
 * and listed then. An incomplete list ends with a mark (cli/common/list_file.h).
 */
#ifndef BW_CLI_EXPORT_EXTRACTION_LISTS_H
#define BW_CLI_EXPORT_EXTRACTION_LISTS_H

#include "base/hash_table.h"
#include "btrfs-walk/history.h"
#include "cli/common/list_file.h"
#include "cli/export/export.h"

/** The files that --manifest and --missed name; NULL: none. */
struct extract_list_settings {
    const char *manifest, *missed;
};

/** Their options, for a struct extract_list_settings. */
extern const struct cmd_option extract_list_options[];

/** The lists of a running extraction. All zeros: none. */
struct extract_lists {
    const struct cmd_common *common;
    struct cmd_list_file manifest, missed;
    struct bw_key_map listed; /**< hashes of the names in the manifest, from earlier extractions */
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

/** Ends the current file, or another entry that is no directory. `fs` is its file system. */
struct bw_error *extract_lists_add(struct extract_lists *lists, const struct bw_fs *fs,
                                   const struct bw_export_entry *item,
                                   enum extract_outcome outcome);

/** Closes the lists. `complete`: all files were extracted or listed as missing. Returns the first
 * error. */
struct bw_error *extract_lists_close(struct extract_lists *lists, bool complete);

#endif
