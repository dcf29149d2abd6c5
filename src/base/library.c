/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared libraries that are loaded when they are needed. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

struct bw_error *bw_library_load(const char *soname, const char *const *names, void *functions)
{
    /* Some libraries cannot be unloaded: libnbd leaves data of threads behind. */
    void *library = dlopen(soname, RTLD_NOW | RTLD_NODELETE);
    struct bw_error *error = library ? NULL : bw_error_create(BW_ERROR_SYSTEM, "%s", dlerror());
    char *place = functions;
    for (; !error && *names; names++) {
        void *function = dlsym(library, *names);
        if (!function)
            error =
                bw_error_create(BW_ERROR_SYSTEM, "%s is too old: it has no %s()", soname, *names);
        memcpy(place, &function, sizeof function);
        place += sizeof function;
    }
    if (library)
        dlclose(library);
    return error;
}
