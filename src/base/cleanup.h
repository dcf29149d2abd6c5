/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cleanup bound to scope: a variable declared with one of these is released on every way out of its
 * block.
 */
#ifndef BW_BASE_CLEANUP_H
#define BW_BASE_CLEANUP_H

#include <stdlib.h>

#include "btrfs-walk/error.h"

static inline void bw_cleanup_free(void *pointer)
{
    free(*(void **)pointer);
}

static inline void bw_cleanup_error(struct bw_error **error)
{
    bw_error_free(*error);
}

/** Frees the pointer with free() at the end of its scope. */
#define BW_AUTO_FREE __attribute__((cleanup(bw_cleanup_free)))
/** Frees the error at the end of its scope. */
#define BW_AUTO_ERROR __attribute__((cleanup(bw_cleanup_error)))

/** Returns from the enclosing function if `call` returns an error. */
#define BW_TRY(call)                            \
    do {                                        \
        struct bw_error *bw_try_error = (call); \
        if (bw_try_error)                       \
            return bw_try_error;                \
    } while (0)

/** The first error of two steps that both have to be done; the other one is freed. */
static inline struct bw_error *bw_error_first(struct bw_error *first, struct bw_error *second)
{
    if (!first)
        return second;
    bw_error_free(second);
    return first;
}

/** Frees an error after which the caller continues. Returns it if memory ran out, because that is
 * no damage. */
static inline struct bw_error *bw_error_tolerate(struct bw_error *error)
{
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    bw_error_free(error);
    return NULL;
}

/** The code, message and advice of an error, without its way and causes. */
static inline struct bw_error *bw_error_brief(const struct bw_error *error)
{
    struct bw_error *brief = bw_error_create(error->code, "%s", error->message);
    return error->advice ? bw_error_advise(brief, "%s", error->advice) : brief;
}

/** Gives up ownership of a scope-bound pointer: its value is returned, the variable becomes NULL.
 */
#define BW_TAKE(pointer)                          \
    __extension__({                               \
        __typeof__(pointer) bw_taken = (pointer); \
        (pointer) = NULL;                         \
        bw_taken;                                 \
    })

#endif
