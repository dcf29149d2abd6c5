/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wiring. The devices have to be read before it is known which of them belong to the file system
 * and which layers it needs, so the plan is built in two steps: what is below the chunk map, then
 * the rest.
 */
#include "fs/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "format/features.h"
#include "fs/default_plan.h"
#include "graph/build.h"
#include "graph/check.h"
#include "graph/edit.h"
#include "graph/volfile.h"

/* Images that were given take the place of those that the volfile names. */
static struct bw_error *replace_paths(struct bw_plan *plan, const struct bw_fs_options *options)
{
    size_t used = 0;
    for (size_t i = 0; i < plan->count; i++) {
        struct bw_volume *volume = &plan->volumes[i];
        if (volume->child_count)
            continue;
        if (used < options->path_count)
            BW_TRY(bw_volume_set_option(volume, "path", (struct bw_text_place){0},
                                        options->paths[used], (struct bw_text_place){0}));
        used++;
    }
    if (used == options->path_count)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE, "%s has %zu storage volume%s, but %zu image%s given",
                           options->graph->file, used, used == 1 ? "" : "s", options->path_count,
                           options->path_count == 1 ? " is" : "s are");
}

static struct bw_error *make_plan(struct bw_plan *plan, const struct bw_fs_options *options,
                                  struct bw_file_set *inputs)
{
    const struct bw_graph_options *graph = options->graph;
    if (!graph->file)
        BW_TRY(bw_default_plan(plan, options->paths, options->path_count));
    else
        BW_TRY(bw_volfile_read(graph->file, plan));
    if (graph->file && !bw_file_set_add(inputs, graph->file))
        return bw_error_no_memory();
    if (graph->file && options->path_count)
        BW_TRY(replace_paths(plan, options));
    for (size_t i = 0; i < graph->edit_count; i++) {
        const struct bw_graph_edit *edit = &graph->edits[i];
        BW_TRY(edit->kind == BW_EDIT_OPTION ? bw_plan_edit_option(plan, edit->text)
                                            : bw_plan_edit_insert(plan, edit->text));
    }
    return NULL;
}

/* The class of a volume; the plan was checked, so it exists. */
static const struct bw_xlator_class *class_of(const struct bw_fs *fs,
                                              const struct bw_volume *volume)
{
    const struct bw_xlator_class *type = NULL;
    bw_error_free(bw_registry_find(bw_graph_registry(fs->graph), volume->type.text, &type));
    return type;
}

/* The layer where logical addresses become offsets on devices. */
static struct bw_error *find_chunk_map(const struct bw_fs *fs, const struct bw_plan *plan,
                                       size_t *index)
{
    size_t found = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const struct bw_xlator_class *type = class_of(fs, &plan->volumes[i]);
        if (type->above == BW_ADDRESS_LOGICAL && type->below == BW_ADDRESS_DEVICE) {
            *index = i;
            found++;
        }
    }
    return found == 1 ? NULL
                      : bw_error_create(BW_ERROR_USAGE,
                                        "the graph needs one volume that maps logical addresses to "
                                        "devices, like " BW_CHUNK_MAP_TYPE ", not %zu",
                                        found);
}

/* Takes out what is not used. The chunk map moves forward in the plan: `*map` follows it. */
static struct bw_error *drop_unused(struct bw_fs *fs, struct bw_plan *plan,
                                    struct bw_image_set *set, size_t *map)
{
    for (size_t i = set->count; i-- > 0;)
        if (set->images[i].role == BW_IMAGE_UNUSED) {
            bw_volume_remove_child(&plan->volumes[*map], i);
            set->images[i].storage = NULL; /* goes now */
        }
    bw_graph_prune(fs->graph, plan, *map);
    return find_chunk_map(fs, plan, map);
}

/* A file system whose extents have moved needs the layer that knows where to. */
static struct bw_error *add_remap(const struct bw_fs *fs, struct bw_plan *plan, size_t map)
{
    struct bw_volume *remap;
    if (!(fs->superblock.incompat_flags & BW_INCOMPAT_REMAP_TREE))
        return NULL;
    for (size_t i = 0; i < plan->count; i++)
        if (class_of(fs, &plan->volumes[i])->takes & BW_TAKES(BW_CONTROL_MOVED_RANGE))
            return NULL;
    return bw_plan_insert_above(plan, map, BW_REMAP_TYPE, (struct bw_text_place){0}, &remap);
}

static struct bw_error *tell_devices(const struct bw_fs *fs, const struct bw_image_set *set)
{
    struct bw_control_device device = {0};
    const struct bw_control control = {BW_CONTROL_DEVICE, {.device = &device}};
    for (size_t i = 0; i < set->count; i++) {
        const struct bw_image *image = &set->images[i];
        if (image->role == BW_IMAGE_UNUSED)
            continue;
        device.devid = image->superblock.device.devid;
        device.stale = bw_image_is_stale(fs, image);
        memcpy(device.uuid, image->superblock.device.uuid, BW_UUID_SIZE);
        BW_TRY(bw_graph_control(fs->graph, &control));
        device.child++;
    }
    return NULL;
}

static struct bw_error *tell_file_system(const struct bw_fs *fs, const struct bw_image_set *set)
{
    BW_AUTO_FREE uint8_t(*ids)[BW_UUID_SIZE] = calloc(1 + set->count, sizeof *ids);
    struct bw_control_file_system facts = {.checksum_type = fs->superblock.checksum_type,
                                           .nodesize = fs->superblock.nodesize,
                                           .sectorsize = fs->superblock.sectorsize,
                                           .ids = (const void *)ids};
    if (!ids)
        return bw_error_no_memory();
    memcpy(ids[facts.id_count++], fs->superblock.metadata_uuid, BW_UUID_SIZE);
    for (size_t i = 0; i < set->count; i++)
        if (set->images[i].role == BW_IMAGE_SEED)
            memcpy(ids[facts.id_count++], set->images[i].superblock.metadata_uuid, BW_UUID_SIZE);
    return bw_graph_control(fs->graph,
                            &(struct bw_control){BW_CONTROL_FILE_SYSTEM, {.file_system = &facts}});
}

static struct bw_error *find_top(struct bw_fs *fs, const struct bw_volume *last)
{
    struct bw_xlator *top = bw_graph_find(fs->graph, last->name.text);
    if (bw_graph_standing(top).above != BW_ADDRESS_LOGICAL)
        return BW_REFUSE(last->name.at,
                         "volume %s: the top of the graph must take logical addresses",
                         last->name.text);
    fs->reader.top = top;
    fs->reader.nodesize = fs->superblock.nodesize;
    return NULL;
}

static struct bw_error *build(struct bw_fs *fs, const struct bw_fs_options *options,
                              struct bw_plan *plan, struct bw_image_set *set)
{
    size_t map = 0;
    BW_TRY(make_plan(plan, options, &fs->inputs));
    BW_TRY(bw_check_plan(plan, bw_graph_registry(fs->graph), &fs->inputs));
    BW_TRY(find_chunk_map(fs, plan, &map));
    if (options->planned)
        BW_TRY(options->planned(options->planned_context, fs));
    BW_TRY(bw_graph_build_below(fs->graph, plan, map));
    BW_TRY(bw_images_open(fs, &plan->volumes[map], options->superblock_copy, set));
    BW_TRY(bw_images_match(fs, set));
    BW_TRY(bw_features_check(fs->superblock.incompat_flags));
    BW_TRY(drop_unused(fs, plan, set, &map));
    BW_TRY(add_remap(fs, plan, map));
    BW_TRY(bw_graph_build(fs->graph, plan));
    BW_TRY(find_top(fs, &plan->volumes[plan->count - 1]));
    BW_TRY(tell_file_system(fs, set));
    return tell_devices(fs, set);
}

struct bw_error *bw_wire(struct bw_fs *fs, const struct bw_fs_options *options,
                         struct bw_image_set *set)
{
    struct bw_plan plan = {0};
    struct bw_error *error = build(fs, options, &plan, set);
    bw_plan_free(&plan);
    return error;
}
