/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sorting: headers with keys among the bytes, pointers to them, qsort(). */
#include "walk/output.h"

#include <stdlib.h>

#include "base/cleanup.h"

/* Worth passing on. */
enum { CHUNK = 128 << 10 };

/* Comes before the path (if entries are sorted by it) and the text. It is not aligned in the
 * buffer, so it is copied before it is used. */
struct header {
    uint64_t key;
    uint32_t path_length, text_length;
};

static uint64_t key_of(enum bw_walk_order order, const struct bw_walked_file *file)
{
    if (!file->inode || order == BW_WALK_BY_PATH)
        return UINT64_MAX;
    if (order == BW_WALK_BY_SIZE)
        return file->inode->size;
    return (uint64_t)bw_time_nanoseconds(&file->inode->mtime) ^ UINT64_C(1) << 63; /* those before
                                                                                      1970 come
                                                                                      first */
}

static void append(const struct bw_file_writer *writer, const struct bw_walked_file *file,
                   struct bw_buffer *text)
{
    const enum bw_walk_order order = writer->order;
    struct header header = {.key = key_of(order, file)};
    const size_t start = text->length;
    if (order == BW_WALK_BY_PATH)
        header.path_length = (uint32_t)file->path_length;
    bw_buffer_append(text, &header, sizeof header);
    bw_buffer_append(text, file->path, header.path_length);
    const size_t before = text->length;
    writer->inner->append(writer->inner, file, text);
    header.text_length = (uint32_t)(text->length - before);
    if (!text->failed)
        memcpy(text->data + start, &header, sizeof header);
}

struct bw_file_writer bw_sorted_writer(const struct bw_file_writer *inner, enum bw_walk_order order)
{
    return (struct bw_file_writer){.append = append,
                                   .needs = inner->needs |
                                            (order == BW_WALK_BY_PATH ? 0 : BW_FILE_NEEDS_INODE),
                                   .order = order,
                                   .inner = inner};
}

struct bw_error *bw_sorted_take(void *context, const char *bytes, size_t length)
{
    struct bw_buffer *sorted = context;
    bw_buffer_append(sorted, bytes, length);
    return sorted->failed ? bw_error_no_memory() : NULL;
}

static struct header header_at(const char *bytes)
{
    struct header header;
    memcpy(&header, bytes, sizeof header);
    return header;
}

/* Equal entries stay in the order in which they came, which is that of their addresses. */
static int compare(const void *a, const void *b)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    const struct header one = header_at(left), other = header_at(right);
    if (one.key != other.key)
        return one.key < other.key ? -1 : 1;
    const size_t common = one.path_length < other.path_length ? one.path_length : other.path_length;
    const int difference = memcmp(left + sizeof one, right + sizeof other, common);
    if (difference)
        return difference;
    if (one.path_length != other.path_length)
        return one.path_length < other.path_length ? -1 : 1;
    return left < right ? -1 : left > right;
}

static size_t whole_length(const struct header *header)
{
    return sizeof *header + header->path_length + header->text_length;
}

/* Where each begins; returns how many. */
static size_t find(const struct bw_buffer *bytes, const char **places)
{
    size_t count = 0;
    for (size_t at = 0; at < bytes->length; count++) {
        const struct header header = header_at(bytes->data + at);
        if (places)
            places[count] = bytes->data + at;
        at += whole_length(&header);
    }
    return count;
}

struct bw_error *bw_sorted_end(struct bw_buffer *sorted, bw_bytes_taker *consume, void *context)
{
    const size_t count = find(sorted, NULL);
    BW_AUTO_FREE const char **places = malloc((count + 1) * sizeof *places);
    struct bw_buffer chunk = {0};
    struct bw_error *error = places ? NULL : bw_error_no_memory();
    if (!error) {
        find(sorted, places);
        qsort(places, count, sizeof *places, compare);
    }
    for (size_t i = 0; i < count && !error; i++) {
        const struct header header = header_at(places[i]);
        bw_buffer_append(&chunk, places[i] + sizeof header + header.path_length,
                         header.text_length);
        if (chunk.length < CHUNK && i + 1 < count)
            continue;
        error = chunk.failed ? bw_error_no_memory() : consume(context, chunk.data, chunk.length);
        chunk.length = 0;
    }
    bw_buffer_free(&chunk);
    bw_buffer_free(sorted);
    return error;
}
