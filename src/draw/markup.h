/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text in HTML and SVG. Names in an image are not trusted: none can end the element that contains
 * it, or hide, move or reverse the text around it. */
#ifndef BW_DRAW_MARKUP_H
#define BW_DRAW_MARKUP_H

#include "base/buffer.h"

/** Appends text that is safe to print, as from bw_escape_append() and similar functions, for use
 * between tags or in quoted attributes. Special characters of markup become entities such as &lt;
 * and characters that a reader would not see (direction marks, characters without width) become
 * \u{202e}. Bytes that are not UTF-8 become \ooo. */
void bw_markup_text(struct bw_buffer *text, const char *bytes, size_t length);

/** Appends the character at `text`, which may be an entity of XML. Returns how many bytes of markup
 * it has; `text` ends with a NUL. */
size_t bw_markup_decode(struct bw_buffer *decoded, const char *text);

/** Appends raw bytes, which are first made safe to print. */
void bw_markup_bytes(struct bw_buffer *text, const char *bytes, size_t length);

#endif
