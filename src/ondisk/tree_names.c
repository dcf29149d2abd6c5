/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trees, keys and ranges of keys as users write them. */
#include "ondisk/tree_title.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/human.h"
#include "btrfs-walk/tree.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"
#include "ondisk/structure.h"

const char *const bw_tree_names[] = {
    "root",       "extent",      "chunk",       "dev",   "fs",  "csum",  "quota",      "uuid",
    "free-space", "block-group", "raid-stripe", "remap", "log", "reloc", "data-reloc", NULL};

/* In the same order. */
static const uint64_t ids[] = {
    BW_ROOT_TREE,        BW_EXTENT_TREE, BW_CHUNK_TREE, BW_DEVICE_TREE,     BW_TOP_SUBVOLUME,
    BW_CSUM_TREE,        BW_QUOTA_TREE,  BW_UUID_TREE,  BW_FREE_SPACE_TREE, BW_BLOCK_GROUP_TREE,
    BW_RAID_STRIPE_TREE, BW_REMAP_TREE,  BW_TREE_LOG,   BW_TREE_RELOC,      BW_DATA_RELOC_TREE};

static_assert(sizeof ids / sizeof *ids + 1 == sizeof bw_tree_names / sizeof *bw_tree_names,
              "an id for each name");

/* In the same order; a subvolume has none. */
static const char *const titles[] = {"root",       "extent",      "chunk",          "device",
                                     NULL,         "checksum",    "quota",          "uuid",
                                     "free space", "block group", "raid stripe",    "remap",
                                     "log",        "relocation",  "data relocation"};

static_assert(sizeof titles / sizeof *titles == sizeof ids / sizeof *ids, "a title for each id");

/* Other words of btrfs-progs for them. */
static const struct {
    const char *word, *name;
} synonyms[] = {
    {"device", "dev"}, {"checksum", "csum"}, {"tree-log", "log"}, {"tree-reloc", "reloc"}};

/* Removes a suffix, unless the word would become empty. */
static void strip_end(char *word, const char *end)
{
    size_t length = strlen(word), rest = strlen(end);
    if (length > rest && strcmp(word + length - rest, end) == 0)
        word[length - rest] = '\0';
}

/* "BTRFS_FS_TREE_OBJECTID" becomes "fs". */
static const char *plain_name(const char *text, char word[64])
{
    size_t length = 0;
    for (; length < 63 && text[length]; length++)
        word[length] = text[length] == '_' ? '-' : (char)tolower((unsigned char)text[length]);
    word[length] = '\0';
    if (strncmp(word, "btrfs-", 6) == 0)
        memmove(word, word + 6, length - 5);
    strip_end(word, "-objectid");
    strip_end(word, "-tree");
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp(word, synonyms[i].word) == 0)
            return synonyms[i].name;
    return word;
}

/* A number of `length` bytes, which may be negative: ids of special objects are. */
static bool parse_number(const char *text, size_t length, uint64_t *number)
{
    const bool negative = length && *text == '-';
    const char *end = text + negative;
    if (!bw_parse_digits(&end, 10, number) || end != text + length)
        return false;
    if (negative)
        *number = 0 - *number;
    return true;
}

struct bw_error *bw_tree_id_parse(const char *text, uint64_t *id)
{
    char word[64];
    if (parse_number(text, strlen(text), id))
        return NULL;
    const char *name = plain_name(text, word);
    struct bw_buffer names = {0};
    for (size_t i = 0; bw_tree_names[i]; i++) {
        if (strcmp(name, bw_tree_names[i]) == 0) {
            *id = ids[i];
            bw_buffer_free(&names);
            return NULL;
        }
        bw_buffer_format(&names, "%s%s", i ? ", " : "", bw_tree_names[i]);
    }
    struct bw_error *error =
        bw_error_create(BW_ERROR_USAGE, "unknown tree '%s': give an id or one of %.*s", text,
                        (int)names.length, names.data ? names.data : "");
    bw_buffer_free(&names);
    return error;
}

/* Cuts off a text that is too long. */
static const char *copy_text(const char *from, const char *end, char text[BW_KEY_TEXT])
{
    const size_t length = (size_t)bw_min((size_t)(end - from), BW_KEY_TEXT - 1);
    memcpy(text, from, length);
    text[length] = '\0';
    return text;
}

const char *bw_tree_id_text(uint64_t id, char text[BW_KEY_TEXT])
{
    char room[BW_KEY_ROOM];
    return copy_text(room, bw_write_objectid(room, id, 0), text);
}

const char *bw_key_text(const struct bw_key *key, char text[BW_KEY_TEXT])
{
    char room[BW_KEY_ROOM];
    return copy_text(room, bw_write_key(room, key), text);
}

/* Keys and ranges of keys, as a user writes them. */

static bool parse_objectid(const char *text, size_t length, uint64_t *objectid)
{
    char name[64]; /* longer than any */
    if (length && parse_number(text, length, objectid))
        return true;
    if (!length || length >= sizeof name)
        return false;
    memcpy(name, text, length);
    name[length] = '\0';
    return bw_objectid_parse(name, objectid);
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

/* Reads a key up to `end`. Omitted parts keep their values. */
static struct bw_error *parse_key(const char *text, const char *end, struct bw_key *key)
{
    BW_AUTO_FREE char *copy = strndup(text, (size_t)(end - text));
    if (!copy)
        return bw_error_no_memory();
    const char *at = copy;
    for (unsigned part = 0; *at; part++) {
        const size_t length = strcspn(at, ", ");
        const char *problem = NULL;
        if (part == 0 && !parse_objectid(at, length, &key->objectid))
            problem = "the object id is not a number";
        else if (part == 1 && !parse_type(at, length, &key->type))
            problem = "the type is unknown";
        else if (part == 2 && !parse_objectid(at, length, &key->offset))
            problem = "the offset is not a number";
        else if (part > 2)
            problem = "it has more than three parts";
        else if (at[length] && !at[length + 1])
            problem = "nothing follows the comma";
        if (problem)
            return bw_error_create(BW_ERROR_USAGE,
                                   "invalid key '%s': %s; a key is OBJECTID[,TYPE[,OFFSET]], as in "
                                   "256,INODE_ITEM,0",
                                   copy, problem);
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

struct bw_tree_title bw_tree_title(uint64_t id)
{
    struct bw_tree_title title;
    const bool subvolume = id == BW_TOP_SUBVOLUME || (id >= BW_FIRST_SUBVOLUME && (int64_t)id > 0);
    snprintf(title.text, sizeof title.text, "%s %" PRIu64, subvolume ? "subvolume" : "tree", id);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (ids[i] == id && titles[i])
            snprintf(title.text, sizeof title.text, "the %s tree", titles[i]);
    return title;
}
