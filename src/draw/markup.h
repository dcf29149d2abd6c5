/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text in HTML and SVG. What an image holds is hostile: no name ends the text that it is in, and
 * none hides, moves or reverses what stands around it. */
#ifndef BW_DRAW_MARKUP_H
#define BW_DRAW_MARKUP_H

#include "base/buffer.h"

/** Appends text that is safe to print, as bw_escape_append() and its like make it, between tags or
 * in the quotes of an attribute: letters of markup as &lt; and so on, and what a reader would not
 * see (direction marks, characters without width) as \u{202e}. Bytes that are no UTF-8 become \ooo.
 */
void bw_markup_text(struct bw_buffer *text, const char *bytes, size_t length);

/** The same for raw bytes, which are escaped first. */
void bw_markup_bytes(struct bw_buffer *text, const char *bytes, size_t length);

#endif
