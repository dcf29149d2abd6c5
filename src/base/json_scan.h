/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scans a JSON text of another program, token by token, for the few strings that a caller needs. It
 * accepts more than JSON, and never fails: behind a syntax error, the text ends. The depth is only
 * counted, so deep texts cost no memory.
 */
#ifndef BW_BASE_JSON_SCAN_H
#define BW_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum bw_json_kind {
    BW_JSON_BEGIN,  /**< of an object or array */
    BW_JSON_END,    /**< of one */
    BW_JSON_STRING, /**< a value */
    BW_JSON_OTHER,  /**< a number, true, false or null */
};

/** All zeros but `next` and `end`: the beginning of a text. */
struct bw_json_scan {
    const char *next, *end;
    enum bw_json_kind kind;
    size_t depth;          /**< of open objects and arrays; for BW_JSON_BEGIN, including it */
    struct bw_buffer key;  /**< the last name of a member, with a NUL; elements of an array have the
                              name of the array */
    struct bw_buffer text; /**< of a string, without escapes, with a NUL */
};

/** Reads the next token; false at the end, or if memory runs out. */
bool bw_json_scan_next(struct bw_json_scan *scan);

/** Frees the texts. */
void bw_json_scan_free(struct bw_json_scan *scan);

#endif
