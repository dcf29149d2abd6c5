/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One layer against the rules of its class. */
#include "graph/check.h"

#include <string.h>

#include "base/cleanup.h"
#include "graph/options.h"

static const char *space_name(enum bw_address_space space)
{
    return space == BW_ADDRESS_DEVICE ? "device" : space == BW_ADDRESS_LOGICAL ? "logical" : "no";
}

static struct bw_error *check_options(const struct bw_xlator_class *type,
                                      const struct bw_option_value *given, struct bw_fault *fault)
{
    for (size_t i = 0; given && given[i].name; i++) {
        const struct bw_option *option = bw_class_option(type, given[i].name);
        *fault = (struct bw_fault){option ? BW_FAULT_VALUE : BW_FAULT_OPTION, i};
        if (!option)
            return bw_error_create(BW_ERROR_USAGE, "%s has no option %s", type->type,
                                   given[i].name);
        BW_TRY(bw_option_check(option, given[i].value));
    }
    return NULL;
}

static bool is_given(const struct bw_option_value *given, const char *name)
{
    while (given && given->name && strcmp(given->name, name) != 0)
        given++;
    return given && given->name;
}

static struct bw_error *check_required(const struct bw_xlator_class *type,
                                       const struct bw_option_value *given)
{
    for (const struct bw_option *option = type->options; option && option->name; option++)
        if (!option->default_value && !is_given(given, option->name))
            return bw_error_create(BW_ERROR_USAGE, "option %s must be given", option->name);
    return NULL;
}

static struct bw_error *check_count(const struct bw_xlator_class *type, size_t count)
{
    unsigned least = type->minimum_children, most = type->maximum_children;
    if (count >= least && count <= most)
        return NULL;
    if (least == most)
        return bw_error_create(BW_ERROR_USAGE, "%s takes %u subvolume%s, not %zu", type->type,
                               least, least == 1 ? "" : "s", count);
    if (most == UINT32_MAX)
        return bw_error_create(BW_ERROR_USAGE, "%s takes at least %u subvolume%s, not %zu",
                               type->type, least, least == 1 ? "" : "s", count);
    return bw_error_create(BW_ERROR_USAGE, "%s takes %u to %u subvolumes, not %zu", type->type,
                           least, most, count);
}

static struct bw_error *check_spaces(const struct bw_xlator_class *type,
                                     const struct bw_child *children, size_t count,
                                     struct bw_fault *fault)
{
    for (size_t i = 0; i < count; i++) {
        *fault = (struct bw_fault){BW_FAULT_CHILD, i};
        if (type->below != BW_ADDRESS_ANY && children[i].standing.above != type->below)
            return bw_error_create(
                BW_ERROR_USAGE,
                "address spaces do not fit: %s needs %s addresses below it, subvolume %s "
                "takes %s addresses",
                type->type, space_name(type->below), children[i].name,
                space_name(children[i].standing.above));
    }
    return NULL;
}

static unsigned height_above(const struct bw_child *children, size_t count)
{
    unsigned highest = 0;
    for (size_t i = 0; i < count; i++)
        if (children[i].standing.height > highest)
            highest = children[i].standing.height;
    return highest + 1;
}

static struct bw_error *check(const struct bw_xlator_class *type, const struct bw_layer *layer,
                              const struct bw_child *children, struct bw_fault *fault)
{
    BW_TRY(check_options(type, layer->options, fault));
    *fault = (struct bw_fault){BW_FAULT_TYPE, 0};
    BW_TRY(check_required(type, layer->options));
    BW_TRY(check_count(type, layer->child_count));
    if (height_above(children, layer->child_count) > BW_GRAPH_HEIGHT)
        return bw_error_create(BW_ERROR_USAGE, "more than %d layers one above the other",
                               BW_GRAPH_HEIGHT);
    return check_spaces(type, children, layer->child_count, fault);
}

struct bw_error *bw_check_layer(const struct bw_xlator_class *type, const struct bw_layer *layer,
                                const struct bw_child *children, struct bw_standing *standing,
                                struct bw_fault *fault)
{
    struct bw_fault unasked;
    struct bw_error *error = check(type, layer, children, fault ? fault : &unasked);
    if (error)
        return bw_error_prefix(error, "volume %s", layer->name);
    standing->above = type->above == BW_ADDRESS_ANY ? children[0].standing.above : type->above;
    standing->height = height_above(children, layer->child_count);
    return NULL;
}
