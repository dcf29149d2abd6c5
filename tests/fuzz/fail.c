/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a fuzz target ends when a promise is broken. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/targets.h"

void fuzz_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("broken promise: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}
