/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the commands have in common that take whole trees out of an image (sum, tar, extract,
 * bodyfile): which files, the queue that brings them, and how it ends.
 */
#ifndef BW_CLI_EXPORT_EXPORT_H
#define BW_CLI_EXPORT_EXPORT_H

#include <pthread.h>
#include <stdatomic.h>

#include "btrfs-walk/file.h"
#include "btrfs-walk/fs.h"
#include "cli/command.h"
#include "cli/common/selection.h"
#include "export/entry_queue.h"

/** What the options have set. */
struct cmd_export_settings {
    struct bw_walk_options walk; /**< `types` is 0 unless --type was given */
    struct cmd_selection selection;
    struct bw_export_naming naming;
    bool unchecked; /**< data are not checked */
    bool salvage;   /**< files whose inodes are lost come, too, with what is left of them */
};

/** Their options. */
extern const struct cmd_option cmd_export_options[];

/** The line of --no-checksums in the table of a command that reads data; its state is a `type`. */
#define CMD_EXPORT_CHECKSUMS_OPTION(type)                                                      \
    {                                                                                          \
        0, "no-checksums", NULL, "do not verify data; for images whose checksum tree is lost", \
            CMD_FLAG(type, export.unchecked)                                                   \
    }

/** Those that say which names files get, for a struct cmd_export_settings. */
extern const struct cmd_option cmd_naming_options[];

/** Files on their way out. */
struct cmd_export {
    const struct cmd_common *common;
    struct cmd_export_settings *settings;
    struct cmd_session session;
    struct bw_starting_points starts; /**< of the PATHs those that are in none of the others */
    unsigned passes[3];               /**< types; ends with 0 */
    /** Of the queue: see struct bw_entry_queue_options. */
    struct bw_error *(*bring)(void *context, unsigned types, bw_entry_visitor *visit,
                              void *visitor);
    void *bring_context;
    struct bw_entry_queue *queue;
    atomic_int status; /**< so far; grows */
    bool found_any;    /**< there was more than top directories of subvolumes */
};

/** Opens the image. On failure says why and returns the exit status; otherwise STATUS_OK, and
 * cmd_export_close() is due. */
int cmd_export_open(const struct cmd_common *common, struct cmd_export_settings *settings,
                    struct cmd_export *export);

/** Finds out how many bytes of data there will be, if the progress is shown. */
void cmd_export_expect(struct cmd_export *export);

/** Starts the walks for all PATHs, or for everything: first for these types, then, unless it is 0,
 * for those.
 */
struct bw_error *cmd_export_start(struct cmd_export *export, unsigned types, unsigned more_types);

/** Ends what that has started. */
void cmd_export_stop(struct cmd_export *export);

/** The next entry of the queue; NULL after the last. */
struct bw_error *cmd_export_next_item(struct cmd_export *export, struct bw_export_entry **item);

/** The same for a stream: `user` is the struct bw_export_entry. */
struct bw_error *cmd_export_next(struct cmd_export *export, struct bw_stream_file *file, bool *got);

/** Says why one answer is missing; takes the error. The status will be STATUS_PARTIAL at least.
 * Safe from any thread. */
void cmd_export_miss(struct cmd_export *export, struct bw_error *error);

/** For the stream's `held`; `user` of the file is a struct bw_export_entry. */
size_t cmd_export_held(void *context, const struct bw_stream_file *file);

/** Reports a file that could not be read as a whole, with item->error; or whose inode is lost. */
void cmd_export_miss_item(struct cmd_export *export, struct bw_export_entry *item);

/** Appends the target of a symbolic link; a NUL follows that its length does not count. */
struct bw_error *cmd_export_read_link(struct cmd_export *export, const struct bw_export_entry *item,
                                      struct bw_buffer *target);

/** Makes sure that the errno of an error of reading the image is not taken for one of writing. NULL
 * stays NULL. */
struct bw_error *cmd_image_error(struct bw_error *error);

/** Notes a part of an item that cannot be read. */
void cmd_export_note_bad(struct bw_export_entry *item, const struct bw_data_part *part);

/** Closes. Takes the error that ended the work, or NULL; returns the exit status. */
int cmd_export_close(struct cmd_export *export, struct bw_error *error);

/** Files up to this size are hashed as a whole: the `work_limit` of the stream. */
enum { CMD_HASHING_LIMIT = 32 << 20 };

/** Holes are hashed as zeros, up to so many bytes of one file: what takes hours. Files with more
 * have no hash. */
#define CMD_HASHING_MOST_ZEROS (UINT64_C(16) << 40)

/** Hashes under way. */
struct cmd_hashing {
    enum bw_hash_algorithm algorithm;
    pthread_mutex_t lock;
    struct bw_hash *spare[33]; /**< one a thread, and one for the large file; under the lock */
    size_t spare_count;
    struct bw_hash *large; /**< of the file whose parts are coming; NULL: none */
};

/** Starts. */
void cmd_hashing_init(struct cmd_hashing *hashing, enum bw_hash_algorithm algorithm);
/** Frees what it holds. */
void cmd_hashing_free(struct cmd_hashing *hashing);

/** For the stream's `work`, `take` and `finish`; `user` of the file is a struct bw_export_entry,
 * which has its hash in the end. What cannot be read is noted there (cmd_export_note_bad()), and
 * there is no hash. */
struct bw_error *cmd_hashing_work(struct cmd_hashing *hashing, struct bw_data_reader *reader,
                                  const struct bw_stream_file *file);
struct bw_error *cmd_hashing_take(struct cmd_hashing *hashing, const struct bw_stream_file *file,
                                  const struct bw_data_part *part);
void cmd_hashing_finish(struct cmd_hashing *hashing, const struct bw_stream_file *file);

/* Ranges of files that cannot be read: what to do with them, and reporting them on stderr. */

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
