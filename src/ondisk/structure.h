/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Structures: tables that say what the members of a structure on disk are called, where they lie
 * and how they are written. One table gives the text (the lines of btrfs-progs), the JSON and the
 * documentation. The tables of items are in record/items/; structure.c prints what they describe.
 *
 * Every byte is hostile: a member that does not lie in the bytes given is not printed, and the
 * printer remembers that something was cut off.
 */
#ifndef BW_ONDISK_STRUCTURE_H
#define BW_ONDISK_STRUCTURE_H

#include "base/json.h"
#include "ondisk/items.h"

struct bw_structure;
struct bw_printer;

/** A number and its name, or a bit and its name. A table ends with an entry without a name. */
struct bw_value_name {
    uint64_t value;
    const char *name;
    bool absent; /**< the name of a bit that is not set */
};

/** The names of a number or of bits. */
struct bw_value_names {
    const struct bw_value_name *words;
    const char *none;    /**< stands for no bits at all in the text; NULL: nothing does */
    const char *unknown; /**< stands for a number without a name, which is appended if this ends
                            with a dot */
};

/** How a member is written, and what it takes. */
enum bw_field_kind {
    /* At `offset`, `size` bytes long. */
    BW_KIND_NUMBER,
    BW_KIND_SIGNED,
    BW_KIND_OCTAL,
    BW_KIND_HEX,          /**< in the text; a number in JSON */
    BW_KIND_NAMED,        /**< the name of a number */
    BW_KIND_NUMBER_NAMED, /**< "1 (regular)" */
    BW_KIND_FLAGS,        /**< names of bits: "DATA|RAID1" */
    BW_KIND_HEX_FLAGS,    /**< "0x1(RDONLY)" */
    BW_KIND_TIME,
    BW_KIND_SECONDS, /**< a time without nanoseconds */
    BW_KIND_UUID,
    BW_KIND_KEY,
    BW_KIND_TREE,   /**< id of a tree */
    BW_KIND_BYTES,  /**< hexadecimal */
    BW_KIND_STRUCT, /**< a structure at `offset` */
    /* Of no bytes. */
    BW_KIND_TEXT,  /**< only the lead */
    BW_KIND_INDEX, /**< number of an element, in the text */
    /* What follows the members of fixed size. The length or count is the number at `offset`. */
    BW_KIND_NAME,    /**< bytes of a name, in text up to the end of the line */
    BW_KIND_DATA,    /**< bytes of a value, left out if there are none */
    BW_KIND_REST,    /**< all bytes that are left */
    BW_KIND_LIST,    /**< structures, as many as the number says; without a size, until the end */
    BW_KIND_CHOICE,  /**< goes on with one of several structures */
    BW_KIND_SPECIAL, /**< written by a function */
};

/** A structure that is being printed. */
struct bw_part {
    const struct bw_key *key; /**< of the item; NULL: it is in no tree */
    const uint8_t *start;     /**< its first byte */
    struct bw_cursor *cursor; /**< at the first byte that no member has taken */
    uint32_t index;           /**< of the element, in a list */
};

/** Room for a lead, which is copied as a whole. */
enum { BW_LEAD_ROOM = 48 };

/** A member of a structure. */
struct bw_field {
    const char *name; /**< in JSON and in the documentation; NULL: only in the text */
    uint8_t kind;     /**< enum bw_field_kind */
    bool quiet;       /**< only in JSON */
    uint8_t lead_length, json_length;
    char lead[BW_LEAD_ROOM];      /**< what stands before the value in the text */
    char json[BW_JSON_LEAD_ROOM]; /**< and in JSON, as bw_json_member() wants it */
    uint16_t offset, size;
    union {
        const struct bw_value_names *words;
        const struct bw_structure *structure; /**< of a structure, or of the elements of a list */
        const struct bw_structure *const *structures; /**< to choose from; ends with NULL */
        void (*write)(struct bw_printer *printer, const struct bw_field *member,
                      const struct bw_part *part);
    };
    /** Chooses one of the structures, which continues this one: its offsets count from the same
     * start, and its size includes the bytes so far. A number beyond them: none. */
    size_t (*choose)(const struct bw_part *part);
    const char *description;
};

/** A structure on disk. */
struct bw_structure {
    const char *name;
    const char *description;
    uint16_t size;    /**< bytes of the members of fixed size */
    uint16_t minimum; /**< if there are fewer than `size`, but as many as this, zeros follow; 0:
                         there must be `size` */
    uint16_t count;
    const struct bw_field *members;
};

/** Prints structures. Zeros, with `text` set, is a printer. One thread at a time uses it. */
struct bw_printer {
    struct bw_buffer *text;
    struct bw_json *json; /**< JSON is written; its buffer is `text`. NULL: text */
    bool checksum_items;  /**< print every checksum */
    bool hide_names;
    uint32_t sectorsize;
    uint32_t checksum_size;
    bool cut_off; /**< set: part of a structure lies outside of its bytes */
    /* Private: the text of a minute, since times are mostly near each other. */
    int64_t minute;
    char minute_text[24];
    uint8_t minute_length;
};

/** Prints the structure at the cursor, and moves on. In text, the first lead begins with a line
 * feed. In JSON, the members go into the object that is open. */
void bw_structure_print(struct bw_printer *printer, const struct bw_structure *structure,
                        const struct bw_key *key, struct bw_cursor *cursor);

/** Prints the data of an item, those of unknown types in hexadecimal. */
void bw_item_print(struct bw_printer *printer, const struct bw_item *item);

/** Describes the structures of all types of items: an array of objects. */
void bw_structures_describe(struct bw_json *json, const char *name);

/* Used by the interpreter and by special members. */

/** Bytes of the longest key, as text or as an object; longer than any word of a table. */
enum { BW_KEY_ROOM = 128 };

/** A member that is a value of its own. */
void bw_field_text(struct bw_printer *printer, const struct bw_field *member, const uint8_t *start);
void bw_field_json(struct bw_printer *printer, const struct bw_field *member, const uint8_t *start);
/** The lead of a member, in text. */
void bw_print_lead(struct bw_printer *printer, const struct bw_field *member);
/** "key (256 INODE_ITEM 0)". With room for BW_KEY_ROOM bytes; returns the end. */
char *bw_write_key(char *at, const struct bw_key *key);
void bw_print_key(struct bw_buffer *text, const struct bw_key *key);
/** The name of a tree or of a special object, or a number. `type` is that of the key it is in, or
 * 0. */
char *bw_write_objectid(char *at, uint64_t objectid, uint8_t type);
void bw_print_objectid(struct bw_buffer *text, uint64_t objectid, uint8_t type);
/** The object id of a name that bw_print_objectid() writes for any type; false if there is none. */
bool bw_objectid_parse(const char *name, uint64_t *objectid);
/** The key as an object, in the same room. */
char *bw_json_key(char *at, const struct bw_key *key);
/** The names of bits, with '|' between. */
void bw_print_flags(struct bw_buffer *text, const struct bw_value_names *words, uint64_t flags);

/* The tables. A structure is an array of members and BW_STRUCTURE(name, ...) after it. */

#define BW_LEAD(text) .lead = text, .lead_length = sizeof(text) - 1
#define BW_NAME(text) .name = text, .json = ",\"" text "\":", .json_length = sizeof(text) + 3
#define BW_DISK_AT(type, member)                       \
    .offset = offsetof(struct bw_disk_##type, member), \
    .size = sizeof(((struct bw_disk_##type *)0)->member)
/** A member with the lead `before`, named as in the structure. */
#define BW_FIELD(before, type, member, what, doc)                                            \
    {                                                                                        \
        BW_NAME(#member), BW_LEAD(before), BW_DISK_AT(type, member), .kind = BW_KIND_##what, \
                                                                     .description = (doc)    \
    }
/** The same with a table of words. */
#define BW_WORDED(before, type, member, what, names, doc)                   \
    {                                                                       \
        BW_NAME(#member), BW_LEAD(before), BW_DISK_AT(type, member),        \
            .kind = BW_KIND_##what, .words = &(names), .description = (doc) \
    }
/** Not in the text. */
#define BW_QUIET(type, member, what, doc)                                                  \
    {                                                                                      \
        BW_NAME(#member), .quiet = true, BW_DISK_AT(type, member), .kind = BW_KIND_##what, \
                          .description = (doc)                                             \
    }
/** Only in the text. */
#define BW_PLAIN(before)                      \
    {                                         \
        BW_LEAD(before), .kind = BW_KIND_TEXT \
    }
/** Begins a line, in items. */
#define BW_LINE "\n\t\t"

#define BW_STRUCTURE(table, bytes, doc)                             \
    const struct bw_structure bw_structure_##table = {              \
        .name = #table,                                             \
        .description = (doc),                                       \
        .size = (bytes),                                            \
        .count = sizeof(table##_members) / sizeof *table##_members, \
        .members = table##_members,                                 \
    }

#endif
