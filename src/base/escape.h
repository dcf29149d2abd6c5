/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Making the bytes of names safe for a terminal, the way `ls -b` does. */
#ifndef BW_BASE_ESCAPE_H
#define BW_BASE_ESCAPE_H

#include "base/buffer.h"

/**
 * Appends bytes: backslash and space with a backslash in front, control bytes and what is not valid
 * UTF-8 as \n, \t and the like or \ooo; valid UTF-8 outside the control characters as it is.
 */
void bw_escape_append(struct bw_buffer *buffer, const void *bytes, size_t length);

/** Appends a message, which may hold names and paths: it stays in its line, nothing in it is obeyed
 * by a terminal, and its spaces are left as they are. */
void bw_escape_words(struct bw_buffer *buffer, const char *message);

#endif
