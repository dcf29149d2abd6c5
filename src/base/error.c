/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The error object. Errors are rare and cold, so each owns its message; the only static one is "out
 * of memory", which must be available when nothing can be allocated.
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
    /* Nothing is written through this pointer: every function below recognises the static object.
     */
    return (struct bw_error *)(uintptr_t)&no_memory;
}

static struct bw_error *create_error(enum bw_error_code code, int system_errno, char *message)
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
    return create_error(code, 0, message);
}

struct bw_error *bw_error_from_errno(int system_errno, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *message = format_message(format, arguments);
    va_end(arguments);
    char *whole = NULL;
    if (message && asprintf(&whole, "%s: %s", message, strerror(system_errno)) < 0)
        whole = NULL;
    free(message);
    return create_error(BW_ERROR_SYSTEM, system_errno, whole);
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

struct bw_error *bw_error_about(struct bw_error *error, const char *file)
{
    if (error != &no_memory && !error->file)
        error->file = strdup(file);
    return error;
}

struct bw_error *bw_error_in(struct bw_error *error, const char *file)
{
    return bw_error_about(bw_error_prefix(error, "%s", file), file);
}

struct bw_error *bw_error_advise(struct bw_error *error, const char *format, ...)
{
    if (error == &no_memory)
        return error;
    va_list arguments;
    va_start(arguments, format);
    free(error->advice);
    error->advice = format_message(format, arguments);
    va_end(arguments);
    return error;
}

void bw_error_add_hop(struct bw_error *error, const char *layer, const char *volume,
                      const uint64_t *address)
{
    if (error == &no_memory)
        return;
    /* One allocation: the hop, then both names. */
    const size_t layer_size = strlen(layer) + 1, volume_size = strlen(volume) + 1;
    struct bw_error_hop *hop = calloc(1, sizeof *hop + layer_size + volume_size);
    if (!hop)
        return;
    char *names = (char *)(hop + 1);
    hop->layer = memcpy(names, layer, layer_size);
    hop->volume = memcpy(names + layer_size, volume, volume_size);
    if (address) {
        hop->address = *address;
        hop->has_address = true;
    }
    struct bw_error_hop **link = &error->way;
    while (*link)
        link = &(*link)->next;
    *link = hop;
}

void bw_error_add_cause(struct bw_error *error, struct bw_error *cause)
{
    if (!cause || cause == &no_memory)
        return;
    if (!error || error == &no_memory) {
        bw_error_free(cause);
        return;
    }
    struct bw_error **link = &error->causes;
    while (*link)
        link = &(*link)->next;
    *link = cause;
}

struct bw_error *bw_error_copy(const struct bw_error *error)
{
    if (error == &no_memory)
        return bw_error_no_memory();
    struct bw_error *copy = create_error(error->code, error->system, strdup(error->message));
    if (copy == &no_memory)
        return copy;
    copy->file = error->file ? strdup(error->file) : NULL;
    copy->advice = error->advice ? strdup(error->advice) : NULL;
    for (const struct bw_error_hop *hop = error->way; hop; hop = hop->next)
        bw_error_add_hop(copy, hop->layer, hop->volume, hop->has_address ? &hop->address : NULL);
    for (const struct bw_error *cause = error->causes; cause; cause = cause->next)
        bw_error_add_cause(copy, bw_error_copy(cause));
    return copy;
}

void bw_error_free(struct bw_error *error)
{
    if (!error || error == &no_memory)
        return;
    for (struct bw_error *cause = error->causes, *next; cause; cause = next) {
        next = cause->next;
        bw_error_free(cause);
    }
    for (struct bw_error_hop *hop = error->way, *next; hop; hop = next) {
        next = hop->next;
        free(hop);
    }
    free(error->message);
    free(error->file);
    free(error->advice);
    free(error);
}
