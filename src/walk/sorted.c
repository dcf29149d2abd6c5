/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sorting: headers with keys among the bytes, pointers to them, qsort(). */
#include "walk/output.h"

#include <stdlib.h>

#include "base/cleanup.h"

/* Worth passing on. */
enum { CHUNK = 128 << 10 };

/* Comes before the path or name (if entries are sorted by it) and the text. It is not aligned in
 * the buffer, so it is copied before it is used. */
struct header {
    uint64_t key;
    uint32_t path_length, text_length;
};

/* What is compared, by enum bw_walk_order. */
static const struct {
    enum { NUMBER, SMALL_NUMBER, TIME, PATH, NAME, INODE } kind;
    size_t member; /* of struct bw_inode */
} keys[] = {
    [BW_WALK_BY_PATH] = {PATH, 0},
    [BW_WALK_BY_NAME] = {NAME, 0},
    [BW_WALK_BY_INODE] = {INODE, 0},
    [BW_WALK_BY_SIZE] = {NUMBER, offsetof(struct bw_inode, size)},
    [BW_WALK_BY_BYTES] = {NUMBER, offsetof(struct bw_inode, bytes)},
    [BW_WALK_BY_GENERATION] = {NUMBER, offsetof(struct bw_inode, generation)},
    [BW_WALK_BY_TRANSID] = {NUMBER, offsetof(struct bw_inode, transid)},
    [BW_WALK_BY_LINKS] = {SMALL_NUMBER, offsetof(struct bw_inode, link_count)},
    [BW_WALK_BY_UID] = {SMALL_NUMBER, offsetof(struct bw_inode, uid)},
    [BW_WALK_BY_GID] = {SMALL_NUMBER, offsetof(struct bw_inode, gid)},
    [BW_WALK_BY_MTIME] = {TIME, offsetof(struct bw_inode, mtime)},
    [BW_WALK_BY_ATIME] = {TIME, offsetof(struct bw_inode, atime)},
    [BW_WALK_BY_CTIME] = {TIME, offsetof(struct bw_inode, ctime)},
    [BW_WALK_BY_OTIME] = {TIME, offsetof(struct bw_inode, otime)},
};

bool bw_order_is_known(enum bw_walk_order order)
{
    return order < sizeof keys / sizeof *keys;
}

static bool has_bytes(enum bw_walk_order order)
{
    return keys[order].kind == PATH || keys[order].kind == NAME;
}

/* Times before 1970 come first. */
static uint64_t number_of(enum bw_walk_order order, const struct bw_walked_file *file)
{
    const void *member = (const char *)file->inode + keys[order].member;
    switch (keys[order].kind) {
    case NUMBER:
        return *(const uint64_t *)member;
    case SMALL_NUMBER:
        return *(const uint32_t *)member;
    case TIME:
        return (uint64_t)bw_time_nanoseconds(member) ^ UINT64_C(1) << 63;
    default:
        return file->number;
    }
}

/* What is unknown comes last, whatever the direction. */
static uint64_t key_of(const struct bw_file_writer *writer, const struct bw_walked_file *file)
{
    if (has_bytes(writer->order) || (!file->inode && keys[writer->order].kind != INODE))
        return UINT64_MAX;
    const uint64_t number = number_of(writer->order, file);
    return writer->reverse ? ~number : number;
}

static void append(const struct bw_file_writer *writer, const struct bw_walked_file *file,
                   struct bw_buffer *text)
{
    struct header header = {.key = key_of(writer, file)};
    const size_t start = text->length;
    const char *bytes = file->path;
    if (keys[writer->order].kind == NAME && file->path_length > 1)
        bytes = (const char *)memrchr(file->path, '/', file->path_length) + 1;
    if (has_bytes(writer->order))
        header.path_length = (uint32_t)(file->path + file->path_length - bytes);
    bw_buffer_append(text, &header, sizeof header);
    bw_buffer_append(text, bytes, header.path_length);
    const size_t before = text->length;
    writer->inner->append(writer->inner, file, text);
    header.text_length = (uint32_t)(text->length - before);
    if (!text->failed)
        memcpy(text->data + start, &header, sizeof header);
}

struct bw_file_writer bw_sorted_writer(const struct bw_file_writer *inner,
                                       const struct bw_walk_options *options)
{
    const enum bw_walk_order order = options->order;
    const bool by_name = has_bytes(order) || keys[order].kind == INODE;
    return (struct bw_file_writer){.append = append,
                                   .needs = inner->needs | (by_name ? 0 : BW_FILE_NEEDS_INODE),
                                   .people = inner->people,
                                   .order = order,
                                   .reverse = options->reverse,
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

static int compare_bytes(const char *left, const struct header *one, const char *right,
                         const struct header *other)
{
    const size_t common =
        one->path_length < other->path_length ? one->path_length : other->path_length;
    const int difference = memcmp(left + sizeof *one, right + sizeof *other, common);
    return difference
               ? difference
               : (one->path_length > other->path_length) - (one->path_length < other->path_length);
}

/* Equal entries stay in the order in which they came, which is that of their addresses. */
static int compare_in(const void *a, const void *b, int direction)
{
    const char *left = *(const char *const *)a, *right = *(const char *const *)b;
    const struct header one = header_at(left), other = header_at(right);
    if (one.key != other.key)
        return one.key < other.key ? -1 : 1;
    const int difference = compare_bytes(left, &one, right, &other);
    return difference ? direction * (difference > 0 ? 1 : -1) : left < right ? -1 : left > right;
}

static int compare(const void *a, const void *b)
{
    return compare_in(a, b, 1);
}

static int compare_reversed(const void *a, const void *b)
{
    return compare_in(a, b, -1);
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

struct bw_error *bw_sorted_end(struct bw_buffer *sorted, bool reverse, bw_bytes_taker *consume,
                               void *context)
{
    const size_t count = find(sorted, NULL);
    BW_AUTO_FREE const char **places = malloc((count + 1) * sizeof *places);
    struct bw_buffer chunk = {0};
    struct bw_error *error = places ? NULL : bw_error_no_memory();
    if (!error) {
        find(sorted, places);
        qsort(places, count, sizeof *places, reverse ? compare_reversed : compare);
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
