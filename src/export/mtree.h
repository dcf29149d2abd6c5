/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of mtree(5), in the form where each has the whole path. */
#ifndef BW_EXPORT_MTREE_H
#define BW_EXPORT_MTREE_H

#include "base/buffer.h"
#include "export/archive.h"

/** Appends the first line. */
void bw_mtree_append_head(struct bw_buffer *text);

/** Appends the line of an entry. */
void bw_mtree_append(struct bw_buffer *text, const struct bw_archive_entry *entry);

#endif
