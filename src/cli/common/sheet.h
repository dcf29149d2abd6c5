/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An answer that is written either as lines of "Name: value" or as one JSON object. What is said in
 * a line does nothing in JSON, and what is said in members does nothing in the text.
 */
#ifndef BW_CMD_SHEET_H
#define BW_CMD_SHEET_H

#include "base/human.h"
#include "base/json.h"

struct sheet {
    struct bw_buffer text;
    struct bw_json json;
    bool is_json;
};

/** Begins an answer in a sheet that is all zeros. */
void sheet_begin(struct sheet *sheet, bool json);
/** Ends it: the text is complete. */
void sheet_end(struct sheet *sheet);

/** A line, its label ending with a colon. */
void sheet_line(struct sheet *sheet, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Members of the object, or elements of an array (without a name). */
void sheet_object(struct sheet *sheet, const char *name);
void sheet_array(struct sheet *sheet, const char *name);
void sheet_close(struct sheet *sheet);
void sheet_number(struct sheet *sheet, const char *name, uint64_t number);
void sheet_text(struct sheet *sheet, const char *name, const char *text);

/** Both: bytes that a user chose, in the text escaped and up to the end of the line. */
void sheet_bytes(struct sheet *sheet, const char *label, const char *name, const char *text);

/** A size as people write it, in `room`, which is returned. */
const char *sheet_size(char room[BW_SIZE_ROOM + 1], uint64_t size);

#endif
