/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The error object. Errors are rare and cold, so each owns its message; the only static one is "out of
 * memory", which must be available when nothing can be allocated.
 */
#include "btrfs-walk/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char no_memory_message[] = "out of memory";
static const struct bw_error no_memory = {.code = BW_ERROR_NO_MEMORY, .message = no_memory_message};

struct bw_error *bw_error_no_memory(void)
{
    /* Nobody writes through this pointer: every function below recognises the static object. */
    return (struct bw_error *)(uintptr_t)&no_memory;
}

static struct bw_error *create(enum bw_error_code code, int system_errno, char *message)
{
    struct bw_error *error = message ? calloc(1, sizeof *error) : NULL;
    if (!error) {
        free(message);
        return bw_error_no_memory();
    }
    error->code = code;
    error->system = system_errno;
    error->message = message;
    return error;
}

static char *format_message(const char *format, va_list arguments)
{
    char *message = NULL;
    return vasprintf(&message, format, arguments) < 0 ? NULL : message;
}

struct bw_error *bw_error_create(enum bw_error_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *message = format_message(format, arguments);
    va_end(arguments);
    return create(code, 0, message);
}

struct bw_error *bw_error_from_errno(int system_errno, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *message = format_message(format, arguments);
    va_end(arguments);
    char reason[128];
    char *whole = NULL;
    if (message && asprintf(&whole, "%s: %s", message, strerror_r(system_errno, reason, sizeof reason)) < 0)
        whole = NULL;
    free(message);
    return create(BW_ERROR_SYSTEM, system_errno, whole);
}

struct bw_error *bw_error_prefix(struct bw_error *error, const char *format, ...)
{
    if (error == &no_memory)
        return error;
    va_list arguments;
    va_start(arguments, format);
    char *context = format_message(format, arguments);
    va_end(arguments);
    char *whole = NULL;
    if (context && asprintf(&whole, "%s: %s", context, error->message) >= 0) {
        free(error->message);
        error->message = whole;
    }
    free(context);
    return error;
}

void bw_error_free(struct bw_error *error)
{
    if (!error || error == &no_memory)
        return;
    free(error->message);
    free(error);
}
