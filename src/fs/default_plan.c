/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The default graph, bottom first. */
#include "fs/default_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "graph/edit.h"

static const struct bw_text_place nowhere;

static struct bw_error *add_device(struct bw_plan *plan, const char *path, size_t number)
{
    char name[32];
    struct bw_volume *volume;
    snprintf(name, sizeof name, "device-%zu", number);
    BW_TRY(bw_plan_add(plan, plan->count, name, nowhere, &volume));
    BW_TRY(bw_volume_set_type(volume, "storage/file", nowhere));
    return bw_volume_set_option(volume, "path", nowhere, path, nowhere);
}

static struct bw_error *add_chunk_map(struct bw_plan *plan)
{
    struct bw_volume *map;
    BW_TRY(bw_plan_add(plan, plan->count, "chunk-map", nowhere, &map));
    BW_TRY(bw_volume_set_type(map, BW_CHUNK_MAP_TYPE, nowhere));
    for (size_t i = 0; i + 1 < plan->count; i++)
        BW_TRY(bw_volume_add_child(map, plan->volumes[i].name.text, nowhere));
    return NULL;
}

/* Puts a layer on top; it is called after its type. */
static struct bw_error *add_on_top(struct bw_plan *plan, const char *type)
{
    struct bw_volume *volume;
    size_t below = plan->count - 1;
    BW_TRY(bw_plan_add(plan, plan->count, strchr(type, '/') + 1, nowhere, &volume));
    BW_TRY(bw_volume_set_type(volume, type, nowhere));
    return bw_volume_add_child(volume, plan->volumes[below].name.text, nowhere);
}

struct bw_error *bw_default_plan(struct bw_plan *plan, const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        BW_TRY(add_device(plan, paths[i], i + 1));
    BW_TRY(add_chunk_map(plan));
    BW_TRY(add_on_top(plan, BW_VERIFY_TYPE));
    BW_TRY(add_on_top(plan, "performance/read-ahead"));
    return add_on_top(plan, "performance/node-cache");
}
