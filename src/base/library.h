/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared libraries that are loaded when they are needed. A library that is linked delays the start
 * of every command, by about 50 µs with each library that it needs itself. The functions that are
 * called are listed once, with the common beginning of their names:
 *
 *     #define BW_LIBNBD_FUNCTIONS(FUNCTION) \
 *         FUNCTION(nbd_, create)            \
 *         FUNCTION(nbd_, close)
 *
 *     struct libnbd {
 *         BW_LIBNBD_FUNCTIONS(BW_LIBRARY_MEMBER)
 *     };
 *     static const char *const names[] = {BW_LIBNBD_FUNCTIONS(BW_LIBRARY_NAME) NULL};
 *
 * After bw_library_load("libnbd.so.0", names, &nbd), nbd.create() calls nbd_create().
 */
#ifndef BW_BASE_LIBRARY_H
#define BW_BASE_LIBRARY_H

#include <stdint.h>

#include "btrfs-walk/error.h"

#define BW_LIBRARY_MEMBER(prefix, name) __typeof__(prefix##name) *name;
#define BW_LIBRARY_NAME(prefix, name)   #prefix #name,

/** A note for packaging tools, which find linked libraries by themselves:
 * https://uapi-group.org/specifications/specs/elf_dlopen_metadata/. `sonames` is a list in JSON. */
#define BW_LIBRARY_NOTE(feature, description, sonames)                                \
    BW_LIBRARY_NOTE_OF("[{\"feature\":\"" feature "\",\"description\":\"" description \
                       "\",\"priority\":\"recommended\",\"soname\":[" sonames "]}]")
#define BW_LIBRARY_NOTE_OF(json)                                          \
    static const struct {                                                 \
        uint32_t owner_size, text_size, type;                             \
        char owner[4], text[sizeof json];                                 \
    } note __attribute__((used, section(".note.dlopen"), aligned(4))) = { \
        sizeof "FDO", sizeof json, 0x407c0c0a, "FDO", json}

/** Loads a library until the end of the process. Sets the pointers of the structure `functions` to
 * the functions in `names`, which end with NULL, in this order. BW_ERROR_SYSTEM: the library is not
 * installed, or lacks a function. */
struct bw_error *bw_library_load(const char *soname, const char *const *names, void *functions);

#endif
