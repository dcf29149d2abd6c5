/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The further images of a device. */
#include "cli/inspect/alternatives.h"

#include <string.h>

struct bw_names alternative_paths_of(const struct bw_fs *fs, uint64_t devid,
                                     struct alternative_paths *paths)
{
    enum { MOST = sizeof paths->names / sizeof *paths->names };
    struct bw_names result = {NULL, 0};
    const char *path;
    while (result.length < MOST && (path = bw_fs_alternative(fs, devid, result.length + 2)) != NULL)
        paths->names[result.length++] = (struct bw_bytes){path, strlen(path)};
    result.data = result.length ? paths->names : NULL;
    return result;
}
