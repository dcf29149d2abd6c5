/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding programs in PATH. */
#include "base/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *bw_program_find(const char *program)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        char *found = NULL;
        if (*path == '/' && asprintf(&found, "%.*s/%s", (int)length, path, program) < 0)
            return NULL;
        if (found && access(found, X_OK) == 0)
            return found;
        free(found);
        path += length + (path[length] == ':');
    }
    return NULL;
}
