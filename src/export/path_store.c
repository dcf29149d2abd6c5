/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The store of paths. A path is cut before its slashes: "/a/b" is "", "/a" and "/b". */
#include "export/path_store.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"

enum { NOTHING = UINT32_MAX };

struct bw_stored_name {
    size_t offset;   /* in the names */
    uint32_t length; /* with the slash before it */
    uint32_t parent; /* NOTHING: it has none */
};

void bw_path_store_free(struct bw_path_store *store)
{
    free(store->items);
    bw_buffer_free(&store->names);
    bw_map_free(&store->directories);
    *store = (struct bw_path_store){0};
}

static bool is_path(const struct bw_path_store *store, uint32_t number, const char *path,
                    size_t length)
{
    for (; number != NOTHING; number = store->items[number].parent) {
        const struct bw_stored_name *item = &store->items[number];
        if (item->length > length ||
            (item->length && memcmp(path + length - item->length, store->names.data + item->offset,
                                    item->length) != 0))
            return false;
        length -= item->length;
    }
    return length == 0;
}

/* NOTHING also if it cannot be found because of another one of its hash. */
uint32_t bw_path_store_find(const struct bw_path_store *store, const char *path, size_t length)
{
    uint32_t number = bw_map_get(&store->directories, XXH64(path, length, 0));
    return number != NOTHING && is_path(store, number, path, length) ? number : NOTHING;
}

static bool add(struct bw_path_store *store, uint32_t parent, const char *name, size_t length,
                uint32_t *number)
{
    if (length > UINT32_MAX || store->count == NOTHING ||
        !BW_ARRAY_RESERVE(store->items, store->count, store->capacity))
        return false;
    *number = (uint32_t)store->count;
    store->items[store->count++] =
        (struct bw_stored_name){store->names.length, (uint32_t)length, parent};
    bw_buffer_append(&store->names, name, length);
    return !store->names.failed;
}

/* Where the last name of a path begins, with the slash before it. */
static size_t last_name(const char *path, size_t length)
{
    const char *slash = memrchr(path, '/', length);
    return slash ? (size_t)(slash - path) : 0;
}

bool bw_path_store_directory(struct bw_path_store *store, const char *path, size_t length,
                             uint32_t *number)
{
    size_t known = length;
    /* Usually the directory that it is in is there. */
    while ((*number = bw_path_store_find(store, path, known)) == NOTHING && known)
        known = last_name(path, known);
    while (known < length || *number == NOTHING) {
        const char *slash =
            known < length ? memchr(path + known + 1, '/', length - known - 1) : NULL;
        size_t end = slash ? (size_t)(slash - path) : length;
        if (!add(store, *number, path + known, end - known, number) ||
            !bw_map_put(&store->directories, XXH64(path, end, 0), *number))
            return false;
        known = end;
    }
    return true;
}

bool bw_path_store_add(struct bw_path_store *store, const char *path, size_t length,
                       uint32_t *number)
{
    size_t name = last_name(path, length);
    uint32_t directory;
    return bw_path_store_directory(store, path, name, &directory) &&
           add(store, directory, path + name, length - name, number);
}

void bw_path_store_append(const struct bw_path_store *store, uint32_t number,
                          struct bw_buffer *path)
{
    size_t length = 0;
    for (uint32_t at = number; at != NOTHING; at = store->items[at].parent)
        length += store->items[at].length;
    if (!bw_buffer_reserve(path, length))
        return;
    path->length += length;
    char *end = path->data + path->length;
    for (uint32_t at = number; at != NOTHING; at = store->items[at].parent) {
        const struct bw_stored_name *item = &store->items[at];
        end -= item->length;
        if (item->length)
            memcpy(end, store->names.data + item->offset, item->length);
    }
}
