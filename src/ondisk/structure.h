/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The structures on disk, as records: tables of struct bw_member, like those that records.def
 * makes, but with offsets into bytes of an image. record/fields.c reads them; rows, JSON, and the
 * text of btrfs-progs are written from the same table.
 *
 * The text is a template: the names of members in braces are replaced by their values. After a
 * colon there may be another format than the table's:
 *
 *     {type:number} ({type})     1 (regular)
 *     {flags:hex}({flags})       0x1(RDONLY)
 *     {root:tree}                FS_TREE
 *     {flags:digits}             hexadecimal without 0x
 *     {flags:lines}              a line for each flag, as dump-super prints them
 *
 * {@index} is the number of the element in its list, {@objectid} and {@offset} are parts of the
 * item's key, and {...} is the structure that continues this one.
 */
#ifndef BW_ONDISK_STRUCTURE_H
#define BW_ONDISK_STRUCTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/decimal.h"
#include "btrfs-walk/record.h"
#include "ondisk/items.h"

/* Names of numbers and of bits, for members whose format is a word or flags. */

/** A number and its name, or a bit and its name. A table ends with an entry without a name. */
struct bw_value_name {
    uint64_t value;
    const char *name;
    bool absent; /**< the name applies if the bit is not set */
};

/** The names of the values of a member. */
struct bw_value_names {
    const struct bw_value_name *words;
    const char *none;    /**< text for no bits at all; NULL: nothing */
    const char *unknown; /**< name of unknown numbers; if it ends with a dot, the number follows */
};

/** A table of names. */
#define BW_NAMES(none_, unknown_, ...)                                                 \
    {                                                                                  \
        (const struct bw_value_name[]){__VA_ARGS__, {0, NULL, false}}, none_, unknown_ \
    }

/** Writes the name of a number, in at most 48 bytes without quotes; returns the end. */
static inline char *bw_write_word(char *at, const struct bw_value_names *words, uint64_t value)
{
    for (const struct bw_value_name *word = words->words; word->name; word++)
        if (word->value == value)
            return stpcpy(at, word->name);
    const size_t length = strlen(words->unknown);
    at = stpcpy(at, words->unknown);
    return length && at[-1] == '.' ? bw_decimal(at, value) : at;
}

/** Whether a bit has this name. */
static inline bool bw_flag_applies(const struct bw_value_name *word, uint64_t flags)
{
    return !(flags & word->value) == word->absent;
}

/* Structures. */

/** How a member is read. */
enum bw_field_kind {
    BW_READ_VALUE, /**< `size` bytes at the member's offset. Times of 12 bytes have nanoseconds */
    BW_READ_KEY_OBJECTID,
    BW_READ_KEY_OFFSET,
    BW_READ_INDEX, /**< number of the element in its list */
    BW_READ_COMPUTED,
    BW_READ_STRUCTURE, /**< a structure at the offset */
    BW_READ_RANGE,     /**< structures that fill the `size` bytes at the offset, or fewer */
    /* The following read bytes after the members of fixed size. Their length or count is the number
     * of `size` bytes at the offset; with size 0, they extend to the end. */
    BW_READ_NAME, /**< bytes; the text has at most as many as a name can have */
    BW_READ_DATA, /**< the same; omitted if its length is 0 */
    BW_READ_REST, /**< all bytes; not in the text */
    BW_READ_LIST, /**< structures */
    BW_READ_NEXT, /**< a structure, whose members are printed as members of this one */
    BW_READ_CHECKSUMS,
    BW_READ_CHOICE, /**< one of several structures that begin where this one does */
};

/** The values that a number can have. A sanitized metadump contains no other ones: contents of
 * files in place of a number are out of its range. */
enum bw_range_of_number {
    BW_RANGE_COMMON, /**< by its size. 8 bytes: less than 2^56, or more than -2^56. 4 bytes: less
                        than 2^29, which four printable characters are not, or more than -2^24 */
    BW_RANGE_ANY,
    BW_RANGE_GENERATION, /**< at most one later than the superblock of this file system */
    BW_RANGE_ALIGNED,    /**< a multiple of the smallest sector */
    BW_RANGE_FILE_SIZE,  /**< up to 2^63; from 2^56 on, only whole sectors, or one byte less */
    BW_RANGE_LEVEL,      /**< of a tree block */
    BW_RANGE_16_BITS,
};

/** A structure whose members are being read. */
struct bw_part {
    const struct bw_key *key; /**< of the item; NULL: it is in no tree */
    const uint8_t *start;     /**< first byte of the structure */
    struct bw_cursor cursor;  /**< at the first byte that no member has consumed */
    uint32_t index;           /**< of the element in its list */
    uint32_t sectorsize, checksum_size;
};

/** A value as records have it: which member is used depends on the type. */
union bw_value {
    uint64_t number;
    int64_t signed_number;
    const char *text;
    struct bw_bytes bytes;
    struct bw_key key;
};

/** How a member is read from disk: what the tables add to struct bw_member. */
struct bw_field {
    enum bw_field_kind kind;
    uint16_t size;
    bool hidden;                          /**< chosen by users: --hide-names hides it */
    enum bw_range_of_number range;        /**< of a number */
    const struct bw_structure *structure; /**< of the structure, or of the elements of a list */
    const struct bw_structure *const *structures; /**< to choose from; ends with NULL */
    /** Chooses one of them, by its number. Its offsets count from the same start, and its size
     * includes the bytes so far. A number beyond the last one: none. Of a range: its bytes. */
    size_t (*choose)(struct bw_part *part);
    void (*compute)(struct bw_part *part, union bw_value *value);
};

/** A structure on disk. */
struct bw_structure {
    struct bw_record record;
    uint16_t size;    /**< bytes of the members of fixed size */
    uint16_t minimum; /**< if there are fewer than `size`, but as many as this, zeros follow; 0:
                         there must be `size` */
    const char *text; /**< the template */
};

/** A number of 1, 2, 4 or 8 bytes. */
static inline uint64_t bw_number_at(const void *value, size_t size)
{
    switch (size) {
    case 1:
        return *(const uint8_t *)value;
    case 2:
        return bw_get16(*(const bw_le16 *)value);
    case 4:
        return bw_get32(*(const bw_le32 *)value);
    default:
        return bw_get64(*(const bw_le64 *)value);
    }
}

/** The number of types of items, and one more for none. */
enum { BW_NO_ITEM_TYPE = 256, BW_ITEM_TYPES };

/** The number of the structure that items of a key have, which is a type or BW_NO_ITEM_TYPE. */
unsigned bw_structure_number(const struct bw_key *key);

/** The structure of that number; NULL for unknown items. */
const struct bw_structure *bw_structure_numbered(unsigned number);

/** Describes the structures of all types of items: an array of objects. */
void bw_structures_describe(struct bw_json *json, const char *name);

/* Words for keys. */

enum {
    BW_KEY_ROOM = 128,    /**< bytes of the longest key, as text or as an object */
    BW_FLAGS_ROOM = 2048, /**< bytes of all names of a table of flags */
};

/** "(256 INODE_ITEM 0)". With room for BW_KEY_ROOM bytes; returns the end. */
char *bw_write_key(char *at, const struct bw_key *key);
void bw_print_key(struct bw_buffer *text, const struct bw_key *key);
/** The name of a tree or of a special object, or a number. `type` is the type of the key that
 * contains it, or 0. */
char *bw_write_objectid(char *at, uint64_t objectid, uint8_t type);
void bw_print_objectid(struct bw_buffer *text, uint64_t objectid, uint8_t type);
/** Finds the object id of a name that bw_print_objectid() writes for any type. False for unknown
 * names. */
bool bw_objectid_parse(const char *name, uint64_t *objectid);

/* The tables. A structure is an array of members and BW_STRUCTURE(name, ...) after it. */

/* clang-format off */

/** The description of a member, followed by members of struct bw_field. */
#define BW_DESCRIBED(word, type_, format_, doc, ...)                        \
    .name = (word), .type = BW_TYPE_##type_, .format = BW_FORMAT_##format_, \
    .stability = BW_STABILITY_EVOLVING, .documentation = (doc),             \
    .field = &(const struct bw_field){__VA_ARGS__}
/** The same, for a member that is at `member` in struct bw_disk_TYPE. */
#define BW_DESCRIBED_AT(word, type_of_disk, member, type_, format_, doc, ...)                 \
    BW_DESCRIBED(word, type_, format_, doc,                                                   \
                 .size = sizeof(((struct bw_disk_##type_of_disk *)0)->member), ##__VA_ARGS__), \
        .offset = offsetof(struct bw_disk_##type_of_disk, member)

/** A member at a fixed place, under another name than in the structure on disk. */
#define BW_FIELD_AS(...) {BW_DESCRIBED_AT(__VA_ARGS__)}
/** The same, under that name. */
#define BW_FIELD(type_of_disk, member, type_, format_, doc) \
    {BW_DESCRIBED_AT(#member, type_of_disk, member, type_, format_, doc)}
#define BW_NUMBER(type_of_disk, member, doc) BW_FIELD(type_of_disk, member, U64, NUMBER, doc)
/** A number of another range than BW_RANGE_COMMON. */
#define BW_RANGED(range_, type_of_disk, member, doc) \
    BW_FIELD_AS(#member, type_of_disk, member, U64, NUMBER, doc, .range = BW_RANGE_##range_)
#define BW_GENERATION(type_of_disk, member, doc) BW_RANGED(GENERATION, type_of_disk, member, doc)
/** A member with names: WORD or FLAGS. */
#define BW_NAMED(type_of_disk, member, format_, names, doc) \
    {BW_DESCRIBED_AT(#member, type_of_disk, member, U64, format_, doc), .values = &(names)}
/** A member without a fixed place. */
#define BW_PART(...) {BW_DESCRIBED(__VA_ARGS__)}
/** The bytes of a name, which come after the structure; their number is the member name_length. */
#define BW_NAME(type_of_disk, doc)                                                         \
    BW_FIELD_AS("name", type_of_disk, name_length, BYTES, NAME, doc, .kind = BW_READ_NAME, \
                .hidden = true)
/** All remaining bytes. */
#define BW_REST(word, doc) BW_PART(word, BYTES, HEX, doc, .kind = BW_READ_REST)
/** Structures up to the end of the item, or as many as a member says. */
#define BW_LIST(word, elements, doc) \
    BW_PART(word, RECORDS, TEXT, doc, .kind = BW_READ_LIST, .structure = &(elements))
#define BW_COUNTED_LIST(word, type_of_disk, count, elements, doc)                    \
    BW_FIELD_AS(word, type_of_disk, count, RECORDS, TEXT, doc, .kind = BW_READ_LIST, \
                .structure = &(elements))
/** A value that a function computes. */
#define BW_COMPUTED(word, type_, format_, function, doc) \
    BW_PART(word, type_, format_, doc, .kind = BW_READ_COMPUTED, .compute = function)
/** The same, only if it is named. */
#define BW_LAZY(word, type_, format_, function, doc)                                              \
    {BW_DESCRIBED(word, type_, format_, doc, .kind = BW_READ_COMPUTED, .compute = function), \
     .lazy = true}
/** One of several structures. */
#define BW_CHOICE(of, function, doc) \
    BW_PART(NULL, RECORD, TEXT, doc, .kind = BW_READ_CHOICE, .structures = (of), .choose = function)

#define BW_STRUCTURE_FROM(table, least, bytes, doc, template)                                  \
    const struct bw_structure bw_structure_##table = {                                         \
        .record = {#table, (doc), 1,                                                           \
                   {BW_STABILITY_EVOLVING, BW_STABILITY_EVOLVING, BW_CLASS_COMMON},            \
                   (bytes), table##_members, sizeof(table##_members) / sizeof *table##_members}, \
        .size = (bytes), .minimum = (least), .text = (template)}
#define BW_STRUCTURE(table, bytes, doc, template) BW_STRUCTURE_FROM(table, 0, bytes, doc, template)
/** The same together with the few members, which follow the template. */
#define BW_STRUCTURE_OF(table, bytes, doc, template, ...)           \
    static const struct bw_member table##_members[] = {__VA_ARGS__}; \
    BW_STRUCTURE(table, bytes, doc, template)
#define BW_STATIC_STRUCTURE_OF(table, bytes, doc, template, ...)    \
    static const struct bw_member table##_members[] = {__VA_ARGS__}; \
    static BW_STRUCTURE(table, bytes, doc, template)
/** Without members. */
#define BW_EMPTY_STRUCTURE(table, doc, template)       \
    const struct bw_structure bw_structure_##table = { \
        .record = {.name = #table, .documentation = (doc)}, .text = (template)}
/* clang-format on */

#endif
