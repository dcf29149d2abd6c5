/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copying names and directories into the text of a walk: the innermost loop of the program. Bytes
 * are copied sixteen at a time, so source and target need BW_COPY_SLACK readable or writable bytes
 * after their end. A name is validated while it is copied.
 */
#ifndef BW_WALK_PATH_TEXT_H
#define BW_WALK_PATH_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ondisk/items.h"

enum { BW_COPY_SLACK = sizeof(bw_chunk) };

/** Copies bytes. Returns the end of the copy. */
static inline char *bw_copy_bytes(char *to, const void *from, size_t length)
{
    for (size_t done = 0; done < length; done += BW_COPY_SLACK)
        bw_copy_chunk(to + done, (const char *)from + done);
    return to + length;
}

/* The first `length` bytes of a chunk have all bits set. */
static inline bw_chunk bw_first_of_chunk(size_t length)
{
    const bw_chunk numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return (bw_chunk)(numbers < (uint8_t)length);
}

/** Copies a name of 1 to 255 bytes; false if it is not valid, as bw_name_is_valid() says. */
static inline bool bw_copy_name(char *to, const uint8_t *name, size_t length)
{
    bw_chunk bad = {0};
    size_t done = 0;
    for (; length - done > BW_COPY_SLACK; done += BW_COPY_SLACK)
        bad |= bw_invalid_bytes(bw_copy_chunk(to + done, name + done));
    bad |=
        bw_invalid_bytes(bw_copy_chunk(to + done, name + done)) & bw_first_of_chunk(length - done);
    const bool is_dots = name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.'));
    return !bw_chunk_is_set(bad) && !is_dots;
}

/** Writes paths of files in one directory, for which room was reserved. */
struct bw_path_writer {
    const char *prefix;
    size_t prefix_length;
    char terminator;
    char *next;
    size_t name_room; /**< for bytes of names: entries of a hostile leaf may share their bytes */
    size_t count;
};

/** Writes a path; false if the name is not valid, or there is no room for it. */
static inline bool bw_path_writer_add(struct bw_path_writer *paths, const uint8_t *name,
                                      size_t length)
{
    if (length > paths->name_room)
        return false;
    char *end = bw_copy_bytes(paths->next, paths->prefix, paths->prefix_length);
    if (!bw_copy_name(end, name, length))
        return false;
    end[length] = paths->terminator;
    paths->next = end + length + 1;
    paths->name_room -= length;
    paths->count++;
    return true;
}

/** Writes a path; the name was validated before. */
static inline void bw_path_writer_add_valid(struct bw_path_writer *paths, const uint8_t *name,
                                            size_t length)
{
    char *end = bw_copy_bytes(paths->next, paths->prefix, paths->prefix_length);
    end = bw_copy_bytes(end, name, length);
    *end = paths->terminator;
    paths->next = end + 1;
    paths->count++;
}

#endif
