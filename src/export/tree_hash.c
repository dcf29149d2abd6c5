/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hash of a tree: records, and their sum. */
#include "export/tree_hash.h"

#include <gcrypt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/endian.h"
#include "base/folder.h"
#include "base/gcrypt.h"
#include "base/vector.h"

enum { NUMBERS = 1024, STATE_BYTES = 2 * NUMBERS };

struct attribute {
    size_t name, name_length, value, value_length; /* in the attributes */
};

BW_VECTOR(attribute_list, struct attribute);

struct bw_tree_hash {
    unsigned parts;
    gcry_md_hd_t shake;
    struct bw_buffer record;
    struct bw_buffer attributes;
    struct attribute_list list;
    bool has_attributes; /* of the present entry */
    uint16_t sums[NUMBERS];
};

struct bw_error *bw_tree_hash_create(unsigned parts, struct bw_tree_hash **result)
{
    struct bw_tree_hash *hash = calloc(1, sizeof *hash);
    if (!hash)
        return bw_error_no_memory();
    hash->parts = parts;
    struct bw_error *error = bw_gcrypt_prepare();
    const gcry_error_t problem = error ? 0 : gcry_md_open(&hash->shake, GCRY_MD_SHAKE128, 0);
    if (problem)
        error = bw_error_create(BW_ERROR_UNSUPPORTED, "SHAKE128 cannot be computed here: %s",
                                gcry_strerror(problem));
    if (error)
        bw_tree_hash_destroy(hash);
    else
        *result = hash;
    return error;
}

void bw_tree_hash_destroy(struct bw_tree_hash *hash)
{
    if (!hash)
        return;
    gcry_md_close(hash->shake);
    bw_buffer_free(&hash->record);
    bw_buffer_free(&hash->attributes);
    attribute_list_free(&hash->list);
    free(hash);
}

/* Records. */

static char type_letter(uint32_t mode)
{
    return S_ISREG(mode)    ? 'f'
           : S_ISDIR(mode)  ? 'd'
           : S_ISLNK(mode)  ? 'l'
           : S_ISBLK(mode)  ? 'b'
           : S_ISCHR(mode)  ? 'c'
           : S_ISFIFO(mode) ? 'p'
                            : 's';
}

static void end_member(struct bw_buffer *record)
{
    bw_buffer_append_byte(record, '\0');
}

/* The mode, without that of symbolic links, which means nothing. */
static void append_attributes(struct bw_tree_hash *hash, const struct bw_tree_hash_entry *entry)
{
    struct bw_buffer *record = &hash->record;
    const unsigned parts = entry->has_attributes ? hash->parts : 0;
    if (parts & BW_TREE_HASH_MODES && !S_ISLNK(entry->mode))
        bw_buffer_format(record, "%04" PRIo32, entry->mode & 07777);
    end_member(record);
    if (parts & BW_TREE_HASH_OWNERS)
        bw_buffer_format(record, "%" PRIu32, entry->uid);
    end_member(record);
    if (parts & BW_TREE_HASH_OWNERS)
        bw_buffer_format(record, "%" PRIu32, entry->gid);
    end_member(record);
    if (parts & BW_TREE_HASH_TIMES)
        bw_buffer_format(record, "%" PRId64 ".%09ld", (int64_t)entry->mtime.tv_sec,
                         entry->mtime.tv_nsec);
    end_member(record);
}

struct bw_error *bw_tree_hash_begin(struct bw_tree_hash *hash,
                                    const struct bw_tree_hash_entry *entry)
{
    struct bw_buffer *record = &hash->record;
    record->length = hash->attributes.length = hash->list.count = 0;
    hash->has_attributes = entry->has_attributes;
    bw_buffer_append(record, entry->path, entry->path_length);
    end_member(record);
    bw_buffer_append_byte(record, type_letter(entry->mode));
    end_member(record);
    append_attributes(hash, entry);
    if (S_ISBLK(entry->mode) || S_ISCHR(entry->mode))
        bw_buffer_format(record, "%u:%u", entry->major, entry->minor);
    else
        bw_buffer_append(record, entry->content, entry->content_length);
    end_member(record);
    return record->failed ? bw_error_no_memory() : NULL;
}

struct bw_error *bw_tree_hash_add_xattr(struct bw_tree_hash *hash, const void *name,
                                        size_t name_length, const void *value, size_t value_length)
{
    struct bw_buffer *text = &hash->attributes;
    if (!(hash->parts & BW_TREE_HASH_XATTRS) || !hash->has_attributes ||
        !bw_folder_compares_xattr(name, name_length))
        return NULL;
    const struct attribute attribute = {text->length, name_length, text->length + name_length,
                                        value_length};
    BW_TRY(attribute_list_push(&hash->list, attribute));
    bw_buffer_append(text, name, name_length);
    bw_buffer_append(text, value, value_length);
    return text->failed ? bw_error_no_memory() : NULL;
}

static int by_name(const void *left, const void *right, void *text)
{
    const struct attribute *a = left, *b = right;
    return bw_compare_bytes((const char *)text + a->name, a->name_length,
                            (const char *)text + b->name, b->name_length);
}

static void append_xattrs(struct bw_tree_hash *hash)
{
    struct bw_buffer *record = &hash->record;
    const char *text = hash->attributes.data;
    if (hash->list.count)
        qsort_r(hash->list.items, hash->list.count, sizeof *hash->list.items, by_name,
                hash->attributes.data);
    for (size_t i = 0; i < hash->list.count; i++) {
        const struct attribute *item = &hash->list.items[i];
        bw_buffer_append(record, text + item->name, item->name_length);
        end_member(record);
        bw_buffer_format(record, "%zu", item->value_length);
        end_member(record);
        bw_buffer_append(record, text + item->value, item->value_length);
    }
}

/* The sum. */

struct bw_error *bw_tree_hash_end(struct bw_tree_hash *hash)
{
    uint8_t numbers[STATE_BYTES];
    append_xattrs(hash);
    if (hash->record.failed)
        return bw_error_no_memory();
    gcry_md_reset(hash->shake);
    gcry_md_write(hash->shake, hash->record.data, hash->record.length);
    const gcry_error_t problem =
        gcry_md_extract(hash->shake, GCRY_MD_SHAKE128, numbers, sizeof numbers);
    if (problem)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "SHAKE128: %s", gcry_strerror(problem));
    for (size_t i = 0; i < NUMBERS; i++)
        hash->sums[i] = (uint16_t)(hash->sums[i] + (numbers[2 * i] | numbers[2 * i + 1] << 8));
    return NULL;
}

struct bw_error *bw_tree_hash_finish(struct bw_tree_hash *hash, char text[static BW_HASH_TEXT])
{
    uint8_t bytes[STATE_BYTES];
    struct bw_hash *state;
    for (size_t i = 0; i < NUMBERS; i++) {
        bytes[2 * i] = (uint8_t)hash->sums[i];
        bytes[2 * i + 1] = (uint8_t)(hash->sums[i] >> 8);
    }
    BW_TRY(bw_hash_create(BW_HASH_SHA256, &state));
    bw_hash_add(state, bytes, sizeof bytes);
    bw_hash_end(state, text);
    bw_hash_destroy(state);
    return NULL;
}
