/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times for tests: an initialiser of a struct timespec from nanoseconds since 1970. */
#ifndef TESTS_SUPPORT_TIME_OF_H
#define TESTS_SUPPORT_TIME_OF_H

#include <time.h>

#define TIME_OF(nanoseconds)                                               \
    {                                                                      \
        (nanoseconds) / 1000000000 - ((nanoseconds) % 1000000000 < 0),     \
            (long)(((nanoseconds) % 1000000000 + 1000000000) % 1000000000) \
    }

#endif
