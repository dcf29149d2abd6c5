/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loading libnbd, and a note for those who want to know what a program may load. */
#ifdef BW_NBD

#include "servers/libnbd.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

/* That of all versions since 1.0. */
#define SONAME "libnbd.so.0"

/* As https://uapi-group.org/specifications/specs/elf_dlopen_metadata/ has it: packaging tools find
 * in it what they find about linked libraries by themselves. */
#define NOTE                                                                                     \
    "[{\"feature\":\"nbd\",\"description\":\"Images on NBD servers, and in formats that need a " \
    "helper\",\"priority\":\"recommended\",\"soname\":[\"" SONAME "\"]}]"

static const struct {
    uint32_t owner_size, text_size, type;
    char owner[4], text[sizeof NOTE];
} note __attribute__((used, section(".note.dlopen"), aligned(4))) = {sizeof "FDO", sizeof NOTE,
                                                                     0x407c0c0a, "FDO", NOTE};

struct bw_error *bw_libnbd_load(struct bw_libnbd *nbd)
{
    /* It cannot be unloaded: it leaves data of threads behind. */
    void *library = dlopen(SONAME, RTLD_NOW | RTLD_NODELETE);
    if (!library)
        return bw_error_create(BW_ERROR_SYSTEM, "this takes libnbd: %s", dlerror());
    const char *missing = NULL;
#define LOAD(name)                                                   \
    nbd->name = (__typeof__(nbd->name))dlsym(library, "nbd_" #name); \
    missing = nbd->name ? missing : "nbd_" #name;
    BW_LIBNBD_FUNCTIONS(LOAD)
#undef LOAD
    dlclose(library);
    return missing ? bw_error_create(BW_ERROR_SYSTEM, SONAME " is too old: it has no %s()", missing)
                   : NULL;
}

#endif
