/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Making the bytes of names safe for a terminal, the way `ls -b` does. */
#ifndef BW_BASE_ESCAPE_H
#define BW_BASE_ESCAPE_H

#include "base/buffer.h"

/**
 * Appends bytes: a backslash before each backslash and space, control characters and invalid UTF-8
 * as \n, \t and the like or \ooo, everything else unchanged.
 */
void bw_escape_append(struct bw_buffer *buffer, const void *bytes, size_t length);

/** The same, but spaces are unchanged: for bytes up to the end of a line. */
void bw_escape_line(struct bw_buffer *buffer, const void *bytes, size_t length);

/** Appends a message that may contain names and paths: it stays in one line, a terminal obeys
 * nothing in it, and its spaces are unchanged. */
void bw_escape_words(struct bw_buffer *buffer, const char *message);

/** Appends a word of a shell command, quoted if necessary. Control characters are written as in
 * $'\n', which bash, zsh and ksh understand. */
void bw_append_shell_word(struct bw_buffer *buffer, const char *word);

#endif
