/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loading libarchive. */
#include "export/libarchive.h"

#include <dlfcn.h>
#include <string.h>

/* The name carries the number of its interface, the same one since libarchive 3.0. */
static const char file[] = "libarchive.so.13";

static struct bw_error *refusal(void)
{
    const char *reason = dlerror();
    return bw_error_create(BW_ERROR_SYSTEM, "cannot load %s, which writes archives: %s", file,
                           reason ? reason : "unknown reason");
}

struct bw_error *bw_libarchive_load(struct bw_libarchive *library)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL), *function;
    if (!handle)
        return refusal();
#define LOOK_UP(name)                \
    function = dlsym(handle, #name); \
    if (!function)                   \
        return refusal();            \
    memcpy(&library->name, &function, sizeof function);
    BW_LIBARCHIVE_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    return NULL;
}
