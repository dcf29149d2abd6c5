/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state that libisal leaves behind. Its functions do not clear the upper halves of the vector
 * registers. While these are not clear, some processors take about 80 ns for each change between
 * instructions of AVX, as in the C library, and of SSE, as in this program.
 */
#ifndef BW_BASE_VECTORS_H
#define BW_BASE_VECTORS_H

#ifdef __x86_64__
__attribute__((target("avx"))) static inline void bw_vectors_clear_by_avx(void)
{
    __builtin_ia32_vzeroupper();
}
#endif

/** Clears the upper halves of the vector registers; called after each call of libisal. */
static inline void bw_vectors_clear(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx"))
        bw_vectors_clear_by_avx();
#endif
}

#endif
