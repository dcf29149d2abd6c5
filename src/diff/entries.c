/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all sides of a comparison share: the order of paths, the descent into directories, lists of
 * extended attributes. */
#include "diff/entries.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/compare.h"
#include "base/folder.h"

/* A '/' comes before all other bytes, so that a directory's content follows it: no name contains a
 * NUL. */
int bw_entries_compare(const char *a, size_t a_length, const char *b, size_t b_length)
{
    const size_t shorter = a_length < b_length ? a_length : b_length;
    size_t at = 0;
    if (memcmp(a, b, shorter) == 0)
        return bw_compare(a_length, b_length);
    while (a[at] == b[at])
        at++;
    const unsigned char left = a[at] == '/' ? 0 : (unsigned char)a[at],
                        right = b[at] == '/' ? 0 : (unsigned char)b[at];
    return left - right;
}

/* The descent. */

struct bw_level *bw_descent_enter(struct bw_descent *descent)
{
    if (descent->depth == descent->capacity) {
        const size_t before = descent->capacity;
        if (!BW_ARRAY_RESERVE(descent->levels, descent->depth, descent->capacity))
            return NULL;
        memset(&descent->levels[before], 0, (descent->capacity - before) * sizeof *descent->levels);
    }
    struct bw_level *level = &descent->levels[descent->depth++];
    level->names.length = level->count = level->next = 0;
    level->path_length = descent->path.length;
    return level;
}

bool bw_level_add(struct bw_level *level, const char *name, size_t length,
                  const struct bw_place *place)
{
    if (!BW_ARRAY_RESERVE(level->items, level->count, level->capacity))
        return false;
    level->items[level->count++] = (struct bw_level_item){level->names.length, length, *place};
    bw_buffer_append(&level->names, name, length);
    return !level->names.failed;
}

static int by_name(const void *left, const void *right, void *names)
{
    const struct bw_level_item *a = left, *b = right;
    return bw_compare_bytes((const char *)names + a->name, a->length, (const char *)names + b->name,
                            b->length);
}

void bw_level_sort(struct bw_level *level)
{
    if (level->count)
        qsort_r(level->items, level->count, sizeof *level->items, by_name, level->names.data);
}

const struct bw_level_item *bw_descent_next(struct bw_descent *descent)
{
    while (descent->depth &&
           descent->levels[descent->depth - 1].next == descent->levels[descent->depth - 1].count)
        descent->depth--;
    if (!descent->depth)
        return NULL;
    struct bw_level *level = &descent->levels[descent->depth - 1];
    const struct bw_level_item *item = &level->items[level->next++];
    descent->path.length = level->path_length;
    bw_buffer_append_byte(&descent->path, '/');
    bw_buffer_append(&descent->path, level->names.data + item->name, item->length);
    return descent->path.failed ? NULL : item;
}

void bw_descent_skip(struct bw_descent *descent)
{
    if (descent->depth && descent->levels[descent->depth - 1].path_length == descent->path.length)
        descent->depth--;
}

void bw_descent_free(struct bw_descent *descent)
{
    for (size_t i = 0; i < descent->capacity; i++) {
        bw_buffer_free(&descent->levels[i].names);
        free(descent->levels[i].items);
    }
    free(descent->levels);
    bw_buffer_free(&descent->path);
}

/* Attributes. */

bool bw_xattr_list_add(struct bw_xattr_list *list, const void *name, size_t name_length,
                       const void *value, size_t value_length)
{
    if (!BW_ARRAY_RESERVE(list->items, list->count, list->capacity))
        return false;
    list->items[list->count++] =
        (struct bw_xattr_item){list->bytes.length, name_length, value_length};
    bw_buffer_append(&list->bytes, name, name_length);
    bw_buffer_append(&list->bytes, value, value_length);
    return !list->bytes.failed;
}

static int by_attribute(const void *left, const void *right, void *bytes)
{
    const struct bw_xattr_item *a = left, *b = right;
    const char *text = bytes;
    const int order =
        bw_compare_bytes(text + a->name, a->name_length, text + b->name, b->name_length);
    return order ? order
                 : bw_compare_bytes(text + a->name + a->name_length, a->value_length,
                                    text + b->name + b->name_length, b->value_length);
}

/* Sorts the attributes that are compared. */
static void sort_xattrs(struct bw_xattr_list *list, bool ordinary)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (!ordinary || bw_folder_compares_xattr(list->bytes.data + list->items[i].name,
                                                  list->items[i].name_length))
            list->items[kept++] = list->items[i];
    list->count = kept;
    if (kept)
        qsort_r(list->items, kept, sizeof *list->items, by_attribute, list->bytes.data);
}

bool bw_xattr_list_equals(struct bw_xattr_list *a, struct bw_xattr_list *b, bool ordinary)
{
    sort_xattrs(a, ordinary);
    sort_xattrs(b, ordinary);
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct bw_xattr_item *left = &a->items[i], *right = &b->items[i];
        if (left->name_length != right->name_length || left->value_length != right->value_length ||
            memcmp(a->bytes.data + left->name, b->bytes.data + right->name,
                   left->name_length + left->value_length) != 0)
            return false;
    }
    return true;
}

void bw_xattr_list_free(struct bw_xattr_list *list)
{
    bw_buffer_free(&list->bytes);
    free(list->items);
}
