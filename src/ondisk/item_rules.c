/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Faults of items: their messages and kinds, and leaves without any. */
#include "ondisk/item_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

bool bw_item_wrong(struct bw_item_fault *fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->message, sizeof fault->message, format, arguments);
    va_end(arguments);
    return true;
}

bool bw_item_wrong_as(struct bw_item_fault *fault, enum bw_item_fault_kind kind, const char *format,
                      ...)
{
    va_list arguments;
    va_start(arguments, format);
    fault->kind = kind;
    vsnprintf(fault->message, sizeof fault->message, format, arguments);
    va_end(arguments);
    return true;
}

bool bw_item_refused(struct bw_item_fault *fault, struct bw_error *error)
{
    BW_AUTO_ERROR struct bw_error *own = error;
    if (!own)
        return false;
    if (own->code == BW_ERROR_NO_MEMORY)
        return bw_item_wrong_as(fault, BW_FAULT_no_memory, "%s", own->message);
    const char *words = strstr(own->message, ": ");
    return bw_item_wrong(fault, "%s", words ? words + 2 : own->message);
}

bool bw_item_fault_is_serious(enum bw_item_fault_kind kind)
{
    static const bool serious[BW_FAULTS] = {
#define SERIOUS(name)  [BW_FAULT_##name] = true,
#define HARMLESS(name) [BW_FAULT_##name] = false,
        BW_ITEM_FAULTS(SERIOUS, HARMLESS)
#undef SERIOUS
#undef HARMLESS
            [BW_FAULT_no_memory] = true,
    };
    return serious[kind];
}

bool bw_leaf_is_sound(const struct bw_node *leaf, const struct bw_item_rules *rules)
{
    struct bw_item_rules own = *rules;
    struct bw_item items[2];
    struct bw_item_fault fault;
    if (!bw_leaf_is_packed(leaf))
        return false;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_item *item = &items[slot % 2];
        own.previous = slot ? &items[(slot - 1) % 2] : NULL;
        if (!bw_leaf_item(leaf, slot, item) ||
            (bw_check_item(&own, item, &fault) && bw_item_fault_is_serious(fault.kind)))
            return false;
    }
    return true;
}
