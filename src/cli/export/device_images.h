/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Images of devices without their free space: the output of `copy`, and of `repair --format raw`.
 */
#ifndef BW_CLI_EXPORT_DEVICE_IMAGES_H
#define BW_CLI_EXPORT_DEVICE_IMAGES_H

#include "cli/common/output_format.h"

/** Formats of images. */
enum cmd_copy_format { CMD_COPY_RAW, CMD_COPY_QCOW2 };

/** Settings of a copy: its contents, its format, its target. */
struct cmd_copy_settings {
    const char *folder; /**< for a file of each device; NULL: none */
    const char *file;   /**< for the only device; NULL: none */
    unsigned format;    /**< enum cmd_copy_format */
    bool compressed;    /**< with CMD_COPY_QCOW2 */
    bool resume;        /**< with CMD_COPY_RAW and a folder: continue incomplete files */
    bool history;       /**< copy older generations, too */
};

/** Where copies are written. */
struct cmd_copy_target {
    const struct cmd_common *common;
    const struct cmd_copy_settings *settings;
    const char *prefix; /**< of the names in the folder */
    bool can_resume;    /**< the command has an option that continues a copy */
    bool announces;     /**< print the size of each image before it is written */

    /* The current image. */
    char name[64]; /* in the folder */
    struct cmd_folder_file in_folder;
    const char *path; /* for messages */
    int descriptor;
};

/** BW_ERROR_USAGE if the folder has an image of a device of `fs` already, or if -f is given for
 * several devices. */
struct bw_error *cmd_copy_check_names(struct cmd_copy_target *target, struct bw_fs *fs);

/** Writes an image of each device of `fs`. With `owners`, the owners of bytes that cannot be read
 * are listed there (ownerinfo). */
struct bw_error *cmd_copy_devices(struct cmd_copy_target *target, struct bw_fs *fs,
                                  struct cmd_format *owners);

#endif
