/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Modes as chmod(1) and find -perm have them: 644, u=rw,go=r, a+X, u+s. */
#ifndef BW_BASE_MODE_H
#define BW_BASE_MODE_H

#include <stdbool.h>
#include <stdint.h>

/** The permissions that a mode in octal or symbolic form makes of none at all; those of directories
 * may differ, because of X. No umask is applied. False if the text is not a mode. */
bool bw_parse_mode(const char *text, bool directory, uint32_t *mode);

#endif
