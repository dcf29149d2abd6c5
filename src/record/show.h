/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Showing single members of any record: for events, where each line is another record. A million
 * rows of one record are the business of record/rows.h.
 */
#ifndef BW_RECORD_SHOW_H
#define BW_RECORD_SHOW_H

#include "base/buffer.h"
#include "base/json.h"
#include "btrfs-walk/record.h"

/** The value of a number, signed or not, as its bits. */
uint64_t bw_show_number(const struct bw_member *member, const void *record);

/** The bytes of a text or bytes; no data if there are none. */
struct bw_bytes bw_show_bytes(const struct bw_member *member, const void *record);

/** Appends a member's value as one word: what holds spaces stands between double quotes,
 * unprintable bytes are escaped, `-` is nothing. */
void bw_show_word(const struct bw_member *member, const void *record, struct bw_buffer *text);

/** Adds a member to an open object; a text that is not there is left out. */
void bw_show_json(const struct bw_member *member, const void *record, struct bw_json *json);

#endif
