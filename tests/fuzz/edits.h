/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Edits of an image, as fuzz_image takes them from its input: records of one size, so that an input
 * stays meaningful when the fuzzer moves them about. Blocks are written with a right checksum, or
 * nothing behind the checksums would ever be reached; some edits damage single copies without one.
 */
#ifndef BW_TESTS_FUZZ_EDITS_H
#define BW_TESTS_FUZZ_EDITS_H

#include "fuzz/base_images.h"

enum { EDITS_AT_MOST = 48 };

/** One edit. Every number is taken modulo what there is to choose from. */
struct edit {
    uint8_t operation;
    uint8_t block;      /**< of iw_block() */
    uint8_t slot;       /**< item or pointer of the block */
    uint8_t field;      /**< of the edited object, or the number of a copy */
    uint8_t value_kind; /**< the meaning of `value` */
    uint8_t width;
    uint8_t offset[2]; /**< in the block or item, little endian */
    uint8_t value[8];
};

static_assert(sizeof(struct edit) == 16, "edit");

/** Does the edits, in memory first and then on the devices. With `repair`, pointers get the first
 * key and the generation that the block they point to has now. */
void edits_apply(struct base_image *base, const struct edit *edits, size_t count, bool repair);

/** Puts a little-endian number of 1 to 8 bytes at `at`. */
void put_number(uint8_t *at, size_t width, uint64_t value);
/** Reads one. */
uint64_t get_number(const uint8_t *at, size_t width);

/** A number at which something may go over, or that means something. Any `number` will do. */
uint64_t interesting_value(uint64_t number);

/** The number that an edit wants to put where `old` stands. */
uint64_t edit_value(const struct base_image *base, const struct edit *edit, uint64_t old);

/** A member of a structure on disk. */
struct field {
    uint16_t offset, size;
};

/** The members that are worth an edit of a superblock, a header, an item slot, a key pointer. */
extern const struct field superblock_fields[], header_fields[], slot_fields[], pointer_fields[];
/** Picks one of a table, which ends with size 0, by number. */
struct field pick_field(const struct field *table, unsigned number);
/** The table for the bytes of an item of this type; never NULL. */
const struct field *fields_of_type(uint8_t type);

#endif
