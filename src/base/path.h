/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Absolute paths as text. */
#ifndef BW_BASE_PATH_H
#define BW_BASE_PATH_H

#include <string.h>

/** How many names there are in an absolute path, which may end with a '/', or in an empty one. */
static inline unsigned bw_path_names(const char *path, size_t length)
{
    unsigned slashes = 0;
    if (!length)
        return 0;
    const char *end = path + length;
    const unsigned at_end = end[-1] == '/';
    for (; (path = memchr(path, '/', (size_t)(end - path))); path++)
        slashes++;
    return slashes - at_end;
}

#endif
