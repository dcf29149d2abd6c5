/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading option structures of callers that were built with another version of the library. */
#include "base/struct_size.h"

#include <string.h>

struct bw_error *bw_take_options(void *ours, size_t our_size, const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size)
        return bw_error_create(BW_ERROR_USAGE, "struct_size of the options is not set");
    for (size_t i = our_size; i < size; i++)
        if (((const char *)given)[i])
            return bw_error_create(BW_ERROR_USAGE, "options of a newer version of the library");
    memset(ours, 0, our_size);
    memcpy(ours, given, size < our_size ? size : our_size);
    memcpy(ours, &our_size, sizeof our_size); /* the copy may be given to another function */
    return NULL;
}
