/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opening and renaming files beneath a directory of this machine that other processes may change
 * meanwhile: no path leads out of the directory, no symbolic link is followed, and no file is
 * replaced. openat2(2) and renameat2(2) make the kernel ensure this. Where they are missing,
 * several calls do it.
 */
#ifndef BW_BASE_BENEATH_H
#define BW_BASE_BENEATH_H

#include <stdbool.h>

/**
 * Opens a file or directory for reading, by a relative path of any length, without a '/' at its
 * end. `flags` are those of open(2) for the last component, without O_CREAT; O_NOFOLLOW and
 * O_CLOEXEC are added. `step_by_step`: do not use openat2(2). Returns -1 with errno: ELOOP or
 * ENOTDIR if a component is a link, EXDEV if the path leads out of the directory.
 */
int bw_open_beneath(int directory, const char *path, int flags, bool step_by_step);

/**
 * Opens a regular file directly in a directory for reading and writing; creates it if it does not
 * exist. An existing file must have no other name: otherwise another user could have made a link to
 * a file that belongs elsewhere. Returns -1 with errno: ELOOP if the name is a symbolic link,
 * EEXIST if it is anything else but such a file.
 */
int bw_open_sole(int directory, const char *name);

/**
 * Renames a file in a directory, unless the new name exists: EEXIST. Also where renameat2(2) is
 * missing, or the file system lacks its flag, as NFS and many in user space do. `step_by_step`: do
 * not use renameat2(2). Returns -1 with errno, as the system calls do.
 */
int bw_rename_new(int directory, const char *name, const char *new_name, bool step_by_step);

#endif
