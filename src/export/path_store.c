/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export/path_store.h"

#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"

/*
 * Paths. They are split at slashes, except for a leading one: "/a/b" is "/a" and "b". The first
 * record is the empty path, the root of all others.
 */

enum {
    /* Bits of the first byte of a record. The two lowest are marks of directories. */
    HAS_DETAILS = 1 << 2, /* details follow the name, after their length */
    HAS_LINK = 1 << 3,    /* it was added as a parent of another path; the number of another record
                           * with its details follows, or BW_NO_RECORD */
    IS_DETAILS = 1 << 4,  /* a record that contains only details, no name */
    IS_DIRECTORY = HAS_DETAILS | HAS_LINK,

    MOST_NAME = BW_PACKED_LONGEST - BW_PATH_DETAILS - 2 * BW_VARINT_LONGEST - 8,
};

void bw_path_store_free(struct bw_path_store *store)
{
    bw_packed_free(&store->records);
    bw_buffer_free(&store->last);
    *store = (struct bw_path_store){0};
}

struct bw_stored_name bw_path_store_get(const struct bw_path_store *store, uint32_t number)
{
    uint8_t *begin = bw_packed_at(&store->records, number);
    const uint8_t *at = begin + 1;
    struct bw_stored_name name = {.bits = begin, .parent = number};
    if (!(*begin & IS_DETAILS)) {
        name.parent -= (uint32_t)bw_varint_get(&at);
        name.length = (size_t)bw_varint_get(&at);
        name.name = (const char *)at;
    }
    name.rest = begin + (at - begin) + name.length;
    name.size = (size_t)(name.rest - begin);
    if (*begin & HAS_LINK)
        name.size += sizeof(uint32_t);
    if (*begin & (HAS_DETAILS | IS_DETAILS))
        name.size += 1u + *name.rest;
    return name;
}

const uint8_t *bw_path_store_details(const struct bw_path_store *store,
                                     const struct bw_stored_name *name)
{
    uint32_t link = BW_NO_RECORD;
    if (*name->bits & HAS_DETAILS)
        return name->rest + 1;
    if (*name->bits & HAS_LINK)
        memcpy(&link, name->rest, sizeof link);
    return link == BW_NO_RECORD ? NULL : bw_path_store_get(store, link).rest + 1;
}

static uint32_t hash_name(const struct bw_path_store *store, uint32_t parent, const char *name,
                          size_t length)
{
    const uint64_t seed = store->records.multiplier ^ parent * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(XXH64(name, length, seed) >> 32);
}

uint32_t bw_path_store_find_name(const struct bw_path_store *store, uint32_t parent,
                                 const char *name, size_t length)
{
    const uint32_t hash = hash_name(store, parent, name, length);
    size_t slot = SIZE_MAX;
    uint32_t number;
    while ((number = bw_packed_find(&store->records, hash, &slot)) != BW_NO_RECORD) {
        const struct bw_stored_name other = bw_path_store_get(store, number);
        if (other.parent == parent && other.length == length &&
            memcmp(other.name, name, length) == 0)
            break;
    }
    return number;
}

size_t bw_path_common(const struct bw_buffer *one, const char *path, size_t length)
{
    size_t common = 0, i = 0;
    for (; i < one->length && i < length && one->data[i] == path[i]; i++)
        common = path[i] == '/' ? i : common;
    bool one_ends = i == one->length || one->data[i] == '/';
    bool path_ends = i == length || path[i] == '/';
    return one_ends && path_ends ? i : common;
}

size_t bw_path_parent(const char *path, size_t length)
{
    const char *slash = memrchr(path, '/', length);
    return slash ? (size_t)(slash - path) : 0;
}

const char *bw_path_next(const char *path, size_t length, size_t known, size_t *end)
{
    const size_t begin = known ? known + 1 : 0, from = known + 1;
    const char *slash = from < length ? memchr(path + from, '/', length - from) : NULL;
    *end = slash ? (size_t)(slash - path) : length;
    return path + begin;
}

uint32_t bw_path_store_find_nearest(struct bw_path_store *store, const char *path, size_t length,
                                    size_t *known)
{
    struct bw_buffer *last = &store->last;
    uint32_t number = store->last_number;
    size_t end;
    for (*known = bw_path_common(last, path, length); last->length > *known;
         last->length = bw_path_parent(last->data, last->length))
        number = bw_path_store_get(store, number).parent;
    for (uint32_t next; *known < length; *known = end) {
        const char *name = bw_path_next(path, length, *known, &end);
        next = bw_path_store_find_name(store, number, name, (size_t)(path + end - name));
        if (next == BW_NO_RECORD)
            break;
        number = next;
    }
    bw_buffer_append(last, path + last->length, *known - last->length);
    store->last_number = last->failed ? 0 : number;
    if (last->failed)
        bw_buffer_free(last);
    return number;
}

uint32_t bw_path_store_find(struct bw_path_store *store, const char *path, size_t length)
{
    size_t known;
    if (!store->records.chunks.count)
        return BW_NO_RECORD;
    const uint32_t number = bw_path_store_find_nearest(store, path, length, &known);
    return known == length ? number : BW_NO_RECORD;
}

static bool enlarge_index(struct bw_path_store *store)
{
    if (!bw_packed_enlarge(&store->records))
        return false;
    for (uint32_t number = bw_packed_first(&store->records, 0); number != BW_NO_RECORD;) {
        const struct bw_stored_name name = bw_path_store_get(store, number);
        if (*name.bits & IS_DIRECTORY && number)
            bw_packed_index(&store->records, hash_name(store, name.parent, name.name, name.length),
                            number);
        number = bw_packed_next(&store->records, number, name.size);
    }
    return true;
}

static uint8_t *put_details(uint8_t *at, const struct bw_path_details *details)
{
    *at++ = (uint8_t)details->length;
    memcpy(at, details->bytes, details->length);
    return at + details->length;
}

/* Adds a component that is not in the store yet. */
static uint32_t add_name(struct bw_path_store *store, uint32_t parent, const char *name,
                         size_t length, uint8_t bits, const struct bw_path_details *details)
{
    const uint32_t none = BW_NO_RECORD;
    uint8_t *end;
    if (length > MOST_NAME ||
        (bits & IS_DIRECTORY && !bw_packed_has_room(&store->records) && !enlarge_index(store)))
        return BW_NO_RECORD;
    const size_t longest = length + BW_PATH_DETAILS + 2 * BW_VARINT_LONGEST + sizeof none + 2;
    const uint32_t number = bw_packed_begin(&store->records, longest, &end);
    if (number == BW_NO_RECORD)
        return BW_NO_RECORD;
    *end++ = bits;
    end = bw_varint_put(end, number - parent);
    end = bw_varint_put(end, length);
    memcpy(end, name, length);
    end += length;
    if (bits & HAS_LINK) {
        memcpy(end, &none, sizeof none);
        end += sizeof none;
    }
    bw_packed_end(&store->records, details ? put_details(end, details) : end);
    if (bits & IS_DIRECTORY && number)
        bw_packed_index(&store->records, hash_name(store, parent, name, length), number);
    return number;
}

uint32_t bw_path_store_add_directory(struct bw_path_store *store, uint32_t parent, const char *name,
                                     size_t length, const struct bw_path_details *details)
{
    return add_name(store, parent, name, length, HAS_DETAILS, details);
}

/* Adds details to a directory that was only a parent of another one so far. */
static bool add_details(struct bw_path_store *store, uint32_t number,
                        const struct bw_path_details *details)
{
    uint8_t *end;
    const uint32_t link = bw_packed_begin(&store->records, sizeof *details + 1, &end);
    if (link == BW_NO_RECORD)
        return false;
    *end++ = IS_DETAILS;
    bw_packed_end(&store->records, put_details(end, details));
    memcpy(bw_path_store_get(store, number).rest, &link, sizeof link);
    return true;
}

bool bw_path_store_describe(struct bw_path_store *store, const char *path, size_t length,
                            const struct bw_path_details *details, uint32_t *number)
{
    size_t known, end;
    if (!store->records.chunks.count && add_name(store, 0, "", 0, HAS_LINK, NULL) == BW_NO_RECORD)
        return false;
    *number = bw_path_store_find_nearest(store, path, length, &known);
    if (known == length) {
        const struct bw_stored_name name = bw_path_store_get(store, *number);
        return !details || bw_path_store_details(store, &name) ||
               add_details(store, *number, details);
    }
    for (; known < length && *number != BW_NO_RECORD; known = end) {
        const char *name = bw_path_next(path, length, known, &end);
        const struct bw_path_details *own = end == length ? details : NULL;
        *number = add_name(store, *number, name, (size_t)(path + end - name),
                           own ? HAS_DETAILS : HAS_LINK, own);
    }
    return *number != BW_NO_RECORD;
}

bool bw_path_store_directory(struct bw_path_store *store, const char *path, size_t length,
                             uint32_t *number)
{
    return bw_path_store_describe(store, path, length, NULL, number);
}

bool bw_path_store_add(struct bw_path_store *store, const char *path, size_t length,
                       uint32_t *number)
{
    const size_t above = bw_path_parent(path, length);
    size_t end;
    uint32_t directory;
    if (!bw_path_store_directory(store, path, above, &directory))
        return false;
    const char *name = bw_path_next(path, length, above, &end);
    *number = add_name(store, directory, name, (size_t)(path + length - name), 0, NULL);
    return *number != BW_NO_RECORD;
}

void bw_path_store_append(const struct bw_path_store *store, uint32_t number,
                          struct bw_buffer *path)
{
    struct bw_stored_name name;
    size_t length = 0;
    for (uint32_t at = number; at; at = name.parent) {
        name = bw_path_store_get(store, at);
        length += name.length + (name.parent != 0);
    }
    if (!length || !bw_buffer_reserve(path, length))
        return;
    path->length += length;
    char *end = path->data + path->length;
    for (uint32_t at = number; at; at = name.parent) {
        name = bw_path_store_get(store, at);
        end -= name.length;
        memcpy(end, name.name, name.length);
        if (name.parent)
            *--end = '/';
    }
}

struct bw_error *bw_path_store_read(const struct bw_path_store *paths, uint32_t number,
                                    struct bw_buffer *path)
{
    path->length = 0;
    bw_path_store_append(paths, number, path);
    return bw_buffer_end_text(path);
}
