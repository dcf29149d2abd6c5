/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The entry points for libFuzzer and AFL++. FUZZ_TARGET is one of the targets in targets.h;
 * FUZZ_MUTATE is its mutator, if it has one.
 */
#include "fuzz/packed.h"
#include "fuzz/targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_TARGET(data, size);
    return 0;
}

#ifdef FUZZ_MUTATE
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    return FUZZ_MUTATE(data, size, room, seed);
}
#endif
