/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files that `copy` writes: images in several formats, in a folder or under a given name. */
#ifndef BW_CLI_EXPORT_COPY_TARGET_H
#define BW_CLI_EXPORT_COPY_TARGET_H

#include "cli/common/output.h"
#include "export/qcow2.h"

/** Formats, in the order of copy_formats. */
enum copy_format { COPY_RAW, COPY_QCOW2 };
extern const char *const copy_formats[];

struct copy_target_settings {
    const char *folder; /**< for a file of each device; NULL: none */
    const char *file;   /**< for the only device; NULL: none */
    unsigned format;    /**< enum copy_format */
    bool compressed;    /**< with COPY_QCOW2 */
    bool resume;        /**< with COPY_RAW and a folder: continue incomplete files */
};

/** Where copies are written. Begins with `common` and `settings`; the rest is zeros. */
struct copy_target {
    const struct cmd_common *common;
    const struct copy_target_settings *settings;
    int folder;                  /**< open if settings->folder */
    struct cmd_output_file file; /**< of settings->file */

    /** The current image. */
    struct bw_buffer name, path; /**< in the folder; for messages */
    int descriptor;
    bool is_open;
    uint64_t kept; /**< everything before this offset is in the file already */
    struct bw_qcow2 *qcow2;
};

/** Opens the folder, creating it if it does not exist. */
struct bw_error *copy_target_open_folder(struct copy_target *target);

/** Opens the files of settings->file. For common->writing.open_outputs: `target` is a struct
 * copy_target. */
struct bw_error *copy_target_open_files(void *target, const struct bw_fs *planned);

/** BW_ERROR_USAGE if the folder already has an image of this device. */
struct bw_error *copy_target_check(struct copy_target *target, uint64_t devid);

/** Begins the image of a device with `size` bytes. BW_ERROR_USAGE if its file exists. */
struct bw_error *copy_target_begin(struct copy_target *target, uint64_t devid, uint64_t size);

/** Adds bytes, by ascending offset. */
struct bw_error *copy_target_add(struct copy_target *target, uint64_t offset, const void *bytes,
                                 size_t length);

/** Ends the image. Consumes `error`, which may be NULL, and returns the first error. After one, an
 * incomplete file in a folder keeps its temporary name. */
struct bw_error *copy_target_end(struct copy_target *target, struct bw_error *error);

/** Closes everything; consumes and returns as copy_target_end(). */
struct bw_error *copy_target_close(struct copy_target *target, struct bw_error *error);

#endif
