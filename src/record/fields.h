/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Members of structures on disk: rows read them from the bytes of an image, and write them like
 * members of records. Every byte is hostile: a member that does not lie in the given bytes is not
 * printed, and the printer remembers that something was cut off.
 */
#ifndef BW_RECORD_FIELDS_H
#define BW_RECORD_FIELDS_H

#include "record/row.h"

/** Prints structures. Zeros, with sizes in `part`, are a printer. One thread at a time uses it. */
struct bw_printer {
    struct bw_buffer text; /**< the first member: writers of rows find the printer by it */
    bool json;
    bool checksum_items; /**< print every checksum */
    bool hide_names;
    bool cut_off; /**< set: part of a structure lies outside of its bytes */
    struct bw_part part;
    /* The text of a minute, since most times are near each other. */
    int64_t minute;
    char minute_text[24];
    uint8_t minute_length;
};

/** Appends the data of an item: lines, each of which begins with a line feed, or a JSON object.
 * `rows`: of the item's structure; NULL: the type is unknown, and the data are printed in
 * hexadecimal. */
void bw_item_print(struct bw_printer *printer, const struct bw_rows *rows,
                   const struct bw_item *item);

/** Appends a structure that lies in `bytes` as a whole, as text. */
void bw_structure_print(struct bw_printer *printer, const struct bw_rows *rows, const void *bytes);

/** The writer of a member of a structure on disk. It passes the value to `column->write_value`. */
bw_column_writer *bw_field_writer(const struct bw_member *member, bool text);

/** The writer of its value in the text of a structure, in the format of that name; the empty name
 * selects the format in the table. */
bw_column_writer *bw_field_text_writer(const struct bw_member *member, const char *format,
                                       size_t length);

/** A member for templates ("@index"); NULL if no such member exists. */
const struct bw_member *bw_field_of_template(const char *name, size_t length);

#endif
