/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs of this machine. */
#ifndef BW_BASE_PROGRAM_H
#define BW_BASE_PROGRAM_H

/** Finds a program in the directories of PATH; freed by the caller. NULL: it is not installed.
 * Relative directories are skipped: files in the working directory may belong to anybody. */
char *bw_program_find(const char *program);

#endif
