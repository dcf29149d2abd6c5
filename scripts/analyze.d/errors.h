/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For clang-tidy, included before each file: functions that make errors never return NULL. clang 14
 * does not believe returns_nonnull, and takes every failure for a success with garbage in it.
 */
#include "btrfs-walk/error.h"

#define NEVER_NULL(call)                     \
    __extension__({                          \
        struct bw_error *never_null = (call); \
        if (!never_null)                     \
            __builtin_unreachable();         \
        never_null;                          \
    })

#define bw_error_create(...)     NEVER_NULL(bw_error_create(__VA_ARGS__))
#define bw_error_from_errno(...) NEVER_NULL(bw_error_from_errno(__VA_ARGS__))
#define bw_error_no_memory()     NEVER_NULL(bw_error_no_memory())
#define bw_error_prefix(...)     NEVER_NULL(bw_error_prefix(__VA_ARGS__))
#define bw_error_copy(error)     NEVER_NULL(bw_error_copy(error))
