/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys and ranges of keys, as a user writes them. */
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "btrfs-walk/dump.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"
#include "ondisk/structure.h"

/* A number of up to `length` bytes, which may be negative: ids of special objects are. */
static bool parse_number(const char *text, size_t length, uint64_t *number)
{
    bool negative = length && *text == '-';
    const char *end = text + negative;
    if (!bw_parse_digits(&end, 10, number) || end != text + length)
        return false;
    if (negative)
        *number = 0 - *number;
    return true;
}

/* The part of a key up to the next comma, space or end. */
static size_t part_length(const char *text)
{
    return strcspn(text, ", ");
}

static bool parse_objectid(const char *text, size_t length, uint64_t *objectid)
{
    struct bw_buffer name = {0};
    bw_buffer_append(&name, text, length);
    bw_buffer_append_byte(&name, '\0');
    bool known = length && (parse_number(text, length, objectid) ||
                            (!name.failed && bw_objectid_parse(name.data, objectid)));
    bw_buffer_free(&name);
    return known;
}

static bool parse_type(const char *text, size_t length, uint8_t *type)
{
    uint64_t number;
    if (parse_number(text, length, &number)) {
        *type = (uint8_t)number;
        return number <= UINT8_MAX;
    }
    for (unsigned i = 1; i <= UINT8_MAX; i++) {
        const char *name = bw_key_type_find((uint8_t)i);
        if (name && strlen(name) == length && strncasecmp(name, text, length) == 0) {
            *type = (uint8_t)i;
            return true;
        }
    }
    return false;
}

/* Reads a key up to `end`. Parts that are left out stay as they are. */
static struct bw_error *parse_key(const char *text, const char *end, struct bw_key *key)
{
    BW_AUTO_FREE char *copy = strndup(text, (size_t)(end - text));
    if (!copy)
        return bw_error_no_memory();
    const char *at = copy;
    for (unsigned part = 0; *at; part++) {
        size_t length = part_length(at);
        bool good = part == 0   ? parse_objectid(at, length, &key->objectid)
                    : part == 1 ? parse_type(at, length, &key->type)
                    : part == 2 ? parse_objectid(at, length, &key->offset)
                                : false;
        bool ends_with_comma = at[length] && !at[length + 1];
        if (!good || ends_with_comma)
            return bw_error_create(BW_ERROR_USAGE,
                                   "'%s' is no key: %s; a key is OBJECTID[,TYPE[,OFFSET]], as in "
                                   "256,INODE_ITEM,0",
                                   copy,
                                   good        ? "nothing follows the comma"
                                   : part == 0 ? "the object id is no number"
                                   : part == 1 ? "there is no such type"
                                   : part == 2 ? "the offset is no number"
                                               : "it has more than three parts");
        at += length + (at[length] != '\0');
    }
    return NULL;
}

struct bw_error *bw_key_range_parse(const char *text, struct bw_key *first, struct bw_key *last)
{
    const char *between = strstr(text, "..");
    const char *end = text + strlen(text);
    *first = (struct bw_key){0};
    *last = BW_KEY_MAX;
    if (!*text)
        return bw_error_create(BW_ERROR_USAGE, "a range of keys is empty");
    BW_TRY(parse_key(text, between ? between : end, first));
    BW_TRY(parse_key(between ? between + 2 : text, end, last));
    if (bw_key_compare(first, last) > 0)
        return bw_error_create(BW_ERROR_USAGE, "the range of keys '%s' ends before it begins",
                               text);
    return NULL;
}

void bw_item_types_describe(struct bw_json *json, const char *name)
{
    bw_structures_describe(json, name);
}
