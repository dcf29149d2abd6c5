/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which instructions the processor has, and the state that libisal leaves behind: its functions do
 * not clear the upper halves of the vector registers. While these are not clear, some processors
 * take about 80 ns for each change between instructions of AVX, as in the C library, and of SSE, as
 * in this program.
 */
#ifndef BW_BASE_VECTORS_H
#define BW_BASE_VECTORS_H

#ifdef __x86_64__

#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#endif

/* glibc has asked the processor. The compiler's function asks again at each start, some 20 times;
 * in a virtual machine, an answer takes 8 µs. */
#ifdef CPU_FEATURE_ACTIVE
#define BW_HAS_AVX   CPU_FEATURE_ACTIVE(AVX)
#define BW_HAS_SSE42 CPU_FEATURE_ACTIVE(SSE4_2)
#else
#define BW_HAS_AVX   __builtin_cpu_supports("avx")
#define BW_HAS_SSE42 __builtin_cpu_supports("sse4.2")
#endif

__attribute__((target("avx"))) static inline void bw_vectors_clear_by_avx(void)
{
    __builtin_ia32_vzeroupper();
}
#endif

/** Clears the upper halves of the vector registers; called after each call of libisal. */
static inline void bw_vectors_clear(void)
{
#ifdef __x86_64__
    if (BW_HAS_AVX)
        bw_vectors_clear_by_avx();
#endif
}

#endif
