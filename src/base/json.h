/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The private side of btrfs-walk/json.h: a writer that appends to a buffer, for statedumps, the
 * reports of debug layers, and commands with --json.
 */
#ifndef BW_BASE_JSON_H
#define BW_BASE_JSON_H

#include "base/buffer.h"
#include "btrfs-walk/json.h"

enum { BW_JSON_DEPTH = 32 };

/** A writer; lives where its owner wants. Begins with bw_json_start(). */
struct bw_json {
    struct bw_buffer *buffer; /**< receives the text; its `failed` is set if memory ran out */
    bool indent;              /**< one member a line, indented; otherwise all in one line */
    unsigned depth;
    char closing[BW_JSON_DEPTH]; /**< what ends each open level: } or ] */
    bool empty[BW_JSON_DEPTH];   /**< nothing was written in it yet */
};

/** Begins to write one value. When it is complete (every level ended), the owner appends what
 * follows it. */
struct bw_json bw_json_start(struct bw_buffer *buffer, bool indent);

#endif
