/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges of files that cannot be read: what to do with them, and reporting them on stderr. */
#ifndef BW_CMD_BAD_RANGES_H
#define BW_CMD_BAD_RANGES_H

#include "btrfs-walk/fs.h"
#include "btrfs-walk/file.h"

/** What to do with what cannot be read; the argument of --on-error. */
enum cmd_on_error {
    CMD_ON_ERROR_FAIL, /**< end the file there */
    CMD_ON_ERROR_ZERO, /**< zeros in its place */
    CMD_ON_ERROR_SKIP, /**< leave it out */
};

/** The words of the option, in the order of enum cmd_on_error; ends with NULL. */
extern const char *const cmd_on_error_words[];

/** The map under way. All zeros but `fs` and `on_error` is empty. One thread at a time may use it.
 */
struct cmd_bad_ranges {
    struct bw_fs *fs;
    enum cmd_on_error on_error;
    const char *path; /**< of the range that is not reported yet; the caller's, until the next flush
                       */
    uint64_t offset, length;
    struct bw_error *error; /**< of its beginning; NULL: there is none */
};

/** Takes note of a bad part of a file; neighbours are joined. `path` is kept, not copied. */
void cmd_bad_add(struct cmd_bad_ranges *bad, const char *path, const struct bw_data_part *part);

/** Reports what is not reported yet. At the end of each file. */
void cmd_bad_flush(struct cmd_bad_ranges *bad);

/** The error to end with at a bad part, with --on-error=fail. */
struct bw_error *cmd_bad_error(const char *path, const struct bw_data_part *part);

#endif
