/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/parts.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

const char *bw_part_suffix(const char *path)
{
    static const char split[] = "split_"; /* of btrbk */
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    if (!dot)
        return NULL;
    const char *suffix = dot + 1;
    if (strncmp(suffix, split, sizeof split - 1) == 0)
        suffix += sizeof split - 1;
    const size_t length = strlen(suffix);
    if (length < 2 || length > 8)
        return NULL;
    const bool letters = strspn(suffix, "a") == length;
    const bool digits = strspn(suffix, "0") >= length - 1 && strchr("01", suffix[length - 1]);
    return letters || digits ? suffix : NULL;
}

bool bw_part_count_up(char *suffix)
{
    for (char *at = suffix + strlen(suffix); at-- > suffix;) {
        if (*at != '9' && *at != 'z') {
            ++*at;
            return true;
        }
        *at = *at == '9' ? '0' : 'a';
    }
    return false;
}

/* Not access(2), because the sandbox of the program does not allow it. */
bool bw_part_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

bool bw_part_next(char *path, size_t suffix)
{
    return bw_part_count_up(path + suffix) && bw_part_exists(path);
}

bool bw_part_is_first(const char *path)
{
    const char *suffix = bw_part_suffix(path);
    BW_AUTO_FREE char *next = suffix ? strdup(path) : NULL;
    return next && bw_part_next(next, (size_t)(suffix - path));
}
