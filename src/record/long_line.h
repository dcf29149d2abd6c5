/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines as `ls -l` writes them, up to the name: mode, links, owner, group, size, time of the last
 * change. */
#ifndef BW_RECORD_LONG_LINE_H
#define BW_RECORD_LONG_LINE_H

#include "base/buffer.h"
#include "base/time_style.h"
#include "record/file.h"

/**
 * Appends a line that ends with a space; the name follows. Columns have a width that most values
 * fit; a device has its numbers instead of a size. If the inode is not known, all but the type is
 * '?'. `times`: NULL for ISO without a zone.
 */
void bw_long_line_append(const struct bw_walked_file *file, const struct bw_time_style *times,
                         struct bw_buffer *text);

#endif
