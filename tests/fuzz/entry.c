/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The entry that libFuzzer calls. FUZZ_TARGET is the name of one of the targets in targets.h. */
#include "fuzz/targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FUZZ_TARGET(data, size);
    return 0;
}
