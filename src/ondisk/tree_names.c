/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trees by the names that users write, and keys as they read them. */
#include <ctype.h>
#include <string.h>

#include "base/buffer.h"
#include "base/human.h"
#include "btrfs-walk/tree.h"
#include "ondisk/disk_items.h"
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

/* Other words of btrfs-progs for them. */
static const struct {
    const char *word, *name;
} synonyms[] = {
    {"device", "dev"}, {"checksum", "csum"}, {"tree-log", "log"}, {"tree-reloc", "reloc"}};

/* Removes an end, unless there is nothing else. */
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

static bool parse_number(const char *text, uint64_t *id)
{
    bool negative = *text == '-';
    text += negative;
    if (!bw_parse_digits(&text, 10, id) || *text)
        return false;
    *id = negative ? 0 - *id : *id;
    return true;
}

struct bw_error *bw_tree_id_parse(const char *text, uint64_t *id)
{
    char word[64];
    if (parse_number(text, id))
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
        bw_error_create(BW_ERROR_USAGE, "'%s' is no tree: give an id or one of %.*s", text,
                        (int)names.length, names.data ? names.data : "");
    bw_buffer_free(&names);
    return error;
}

/* What does not fit is cut off; without memory the text is empty. */
static const char *copy_text(const struct bw_buffer *buffer, size_t skip, char text[BW_KEY_TEXT])
{
    size_t length = buffer->length > skip ? buffer->length - skip : 0;
    length = length < BW_KEY_TEXT ? length : BW_KEY_TEXT - 1;
    if (length)
        memcpy(text, buffer->data + skip, length);
    text[length] = '\0';
    return text;
}

const char *bw_tree_id_text(uint64_t id, char text[BW_KEY_TEXT])
{
    BW_AUTO_BUFFER struct bw_buffer buffer = {0};
    bw_print_objectid(&buffer, id, 0);
    return copy_text(&buffer, 0, text);
}

const char *bw_key_text(const struct bw_key *key, char text[BW_KEY_TEXT])
{
    BW_AUTO_BUFFER struct bw_buffer buffer = {0};
    bw_print_key(&buffer, key);
    return copy_text(&buffer, strlen("key "), text);
}
