/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One regular file on its way into the folder of an extraction. It has no name, or one that says it
 * is not ready, until it is complete; and it replaces nothing.
 */
#ifndef BW_EXPORT_TARGET_FILE_H
#define BW_EXPORT_TARGET_FILE_H

#include "export/target_attributes.h"

/** A file that is being written. Nothing else may be done with its target meanwhile. */
struct bw_target_file {
    struct bw_target *target;
    int descriptor;     /**< -1: none is being written */
    uint64_t end;       /**< how far it is written */
    char temporary[40]; /**< its name until it is complete; "": it has none */
};

/** Whether the file is there already, of this size and time of change. */
bool bw_target_has_file(struct bw_target *target, const char *path, size_t length, uint64_t size,
                        const struct timespec *mtime);

/** Begins a file; `inode` says how its data are best stored. BW_ERROR_SYSTEM with EEXIST if its
 * name is taken.
 */
struct bw_error *bw_target_file_begin(struct bw_target *target, const char *path, size_t length,
                                      const struct bw_inode *inode, struct bw_target_file *file);

/** Writes bytes at an offset; what is never written is a hole. */
struct bw_error *bw_target_file_write(struct bw_target_file *file, uint64_t offset,
                                      const void *bytes, size_t length);

/** Gives it its size, attributes, and name (the path it was begun with). On failure nothing of it
 * is left. */
struct bw_error *bw_target_file_finish(struct bw_target_file *file, const char *path, size_t length,
                                       uint64_t size,
                                       const struct bw_target_attributes *attributes);

/** Removes its temporary name, and does nothing else: for handlers of signals that end the program.
 */
void bw_target_file_remove(const struct bw_target_file *file);

/** Gives it up; nothing of it is left. */
void bw_target_file_abandon(struct bw_target_file *file);

#endif
