/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The message of a fault of an item. */
#include "check/item_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static bool set_message(struct bw_item_fault *fault, const char *format, va_list arguments)
{
    vsnprintf(fault->message, sizeof fault->message, format, arguments);
    return true;
}

bool bw_item_wrong(struct bw_item_fault *fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_message(fault, format, arguments);
    va_end(arguments);
    return true;
}

bool bw_item_wrong_as(struct bw_item_fault *fault, enum bw_code_number code, const char *format,
                      ...)
{
    va_list arguments;
    va_start(arguments, format);
    fault->code = code;
    set_message(fault, format, arguments);
    va_end(arguments);
    return true;
}

bool bw_item_refused(struct bw_item_fault *fault, struct bw_error *error)
{
    BW_AUTO_ERROR struct bw_error *own = error;
    if (!own)
        return false;
    if (own->code == BW_ERROR_NO_MEMORY)
        return bw_item_wrong_as(fault, BW_CODE_unfinished, "%s", own->message);
    const char *words = strstr(own->message, ": ");
    return bw_item_wrong(fault, "%s", words ? words + 2 : own->message);
}
