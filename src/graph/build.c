/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Making layers in the order of the plan, which has children before parents. */
#include "graph/build.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static struct bw_error *add_volume(struct bw_graph *graph, const struct bw_volume *volume)
{
    BW_AUTO_FREE struct bw_option_value *options =
        calloc(volume->option_count + 1, sizeof *options);
    BW_AUTO_FREE struct bw_xlator **children = calloc(volume->child_count + 1, sizeof *children);
    if (!options || !children)
        return bw_error_no_memory();
    for (size_t i = 0; i < volume->option_count; i++)
        options[i] =
            (struct bw_option_value){volume->options[i].name.text, volume->options[i].value.text};
    for (size_t i = 0; i < volume->child_count; i++)
        children[i] = bw_graph_find(graph, volume->children[i].text);
    const struct bw_layer layer = {.type = volume->type.text,
                                   .name = volume->name.text,
                                   .options = options,
                                   .children = children,
                                   .child_count = volume->child_count};
    struct bw_xlator *made;
    struct bw_error *error = bw_graph_add(graph, &layer, &made);
    return error ? bw_place_error(volume->name.at, error) : NULL;
}

/* Marks the volumes below `index`. A parent comes behind its children, so one pass from the back is
 * enough.
 */
static bool *find_below(const struct bw_plan *plan, size_t index)
{
    bool *below = calloc(plan->count + 1, sizeof *below);
    if (!below)
        return NULL;
    below[index] = true;
    for (size_t i = index + 1; i-- > 0;)
        for (size_t child = 0; below[i] && child < plan->volumes[i].child_count; child++)
            below[bw_plan_find(plan, plan->volumes[i].children[child].text)] = true;
    below[index] = false;
    return below;
}

struct bw_error *bw_graph_build_below(struct bw_graph *graph, const struct bw_plan *plan,
                                      size_t index)
{
    BW_AUTO_FREE bool *below = find_below(plan, index);
    if (!below)
        return bw_error_no_memory();
    for (size_t i = 0; i < index; i++)
        if (below[i] && !bw_graph_find(graph, plan->volumes[i].name.text))
            BW_TRY(add_volume(graph, &plan->volumes[i]));
    return NULL;
}

struct bw_error *bw_graph_build(struct bw_graph *graph, const struct bw_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (!bw_graph_find(graph, plan->volumes[i].name.text))
            BW_TRY(add_volume(graph, &plan->volumes[i]));
    return NULL;
}

static bool is_used(const struct bw_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->count; i++)
        for (size_t child = 0; child < plan->volumes[i].child_count; child++)
            if (strcmp(plan->volumes[i].children[child].text, name) == 0)
                return true;
    return false;
}

void bw_graph_prune(struct bw_graph *graph, struct bw_plan *plan, size_t index)
{
    while (index-- > 0) {
        const char *name = plan->volumes[index].name.text;
        if (is_used(plan, name))
            continue;
        struct bw_xlator *layer = bw_graph_find(graph, name);
        if (layer)
            bw_graph_remove(graph, layer);
        bw_plan_remove(plan, index);
    }
}
