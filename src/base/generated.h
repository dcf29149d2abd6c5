/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the generators of vectors and of hash tables. */
#ifndef BW_BASE_GENERATED_H
#define BW_BASE_GENERATED_H

/** Calls `type`_free() at the end of the scope of a variable. */
#define BW_SCOPED(type) __attribute__((cleanup(type##_free)))

/* clang warns about unused inline functions of a source file, which a generator cannot avoid. */
#define BW_GENERATED        static inline __attribute__((unused))
#define BW_GENERATED_RESULT BW_GENERATED __attribute__((warn_unused_result))
#define BW_GENERATED_COLD   static __attribute__((unused, cold, noinline, warn_unused_result))

#endif
