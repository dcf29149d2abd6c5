/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of mtree(5): keywords with their values, and escapes. */
#ifndef BW_EXPORT_MANIFEST_WORDS_H
#define BW_EXPORT_MANIFEST_WORDS_H

#include "export/manifest.h"

/** Takes KEYWORD=VALUE into an entry; a keyword that is not compared is added to `ignored`. Returns
 * why it is refused; NULL: it was taken. The word changes, and has to outlive the entry. */
const char *bw_manifest_take(char *word, struct bw_manifest_entry *entry,
                             struct bw_buffer *ignored);

/** Forgets what an entry says of a KEYWORD, or of "all". Returns NULL. */
const char *bw_manifest_unset(const char *keyword, struct bw_manifest_entry *entry);

/** Decodes the escapes of vis(3) in place. */
void bw_manifest_unescape(char *text);

#endif
