/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wiring. The devices have to be read before it is known which of them belong to the file system,
 * and which layers that needs. So the graph is started in two steps: first what is below the chunk
 * map, then the rest.
 */
#include "fs/opening.h"
#include "base/human.h"
#include "fs/split.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ondisk/superblock.h"

#define CHUNK_MAP_TYPE "cluster/chunk-map"
#define REMAP_TYPE     "cluster/remap"
#define FILE_TYPE      "storage/file"
#define NBD_TYPE       "storage/nbd"

static const struct bw_text_place nowhere;

/* Adds a layer on top of the others. */
static struct bw_error *add(struct bw_graph *graph, const char *name, const char *type,
                            struct bw_xlator **layer)
{
    BW_TRY(bw_graph_add(graph, graph->size, name, nowhere, layer));
    return bw_layer_set_type(*layer, type, nowhere);
}

/* Adds a layer above the one that was the last, called after its type. */
static struct bw_error *add_above(struct bw_graph *graph, const char *type)
{
    struct bw_xlator *below = graph->layers[graph->size - 1], *layer;
    BW_TRY(add(graph, strchr(type, '/') + 1, type, &layer));
    return bw_layer_add_child(layer, bw_xlator_name(below), nowhere);
}

/* A server may have the image; the connection is made now, while that may be done. */
static struct bw_error *set_image(struct bw_xlator *layer, const char *path)
{
    bool served;
    BW_TRY(bw_servers_open(layer->graph->servers, path, &served));
    const char *type = served ? NBD_TYPE : FILE_TYPE;
    if (strcmp(layer->type_name.text, type) != 0) {
        bw_layer_clear_options(layer); /* those of another type */
        BW_TRY(bw_layer_set_type(layer, type, nowhere));
    }
    return bw_layer_set_option(layer, "path", nowhere, path, nowhere);
}

/* The default graph: a storage layer for each path, the chunk map above them, then one layer on the
 * other. */
static struct bw_error *describe_default(struct bw_graph *graph, const char *const *paths,
                                         size_t count)
{
    struct bw_xlator *layer;
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "device-%zu", i + 1);
        BW_TRY(add(graph, name, FILE_TYPE, &layer));
        BW_TRY(set_image(layer, paths[i]));
    }
    BW_TRY(add(graph, "chunk-map", CHUNK_MAP_TYPE, &layer));
    for (size_t i = 0; i < count; i++)
        BW_TRY(bw_layer_add_child(layer, bw_xlator_name(graph->layers[i]), nowhere));
    BW_TRY(add_above(graph, "features/verify"));
    BW_TRY(add_above(graph, "performance/read-ahead"));
    return add_above(graph, "performance/node-cache");
}

static bool has_type(const struct bw_xlator *layer, const char *type)
{
    return layer->type_name.text && strcmp(layer->type_name.text, type) == 0;
}

static struct bw_error *replace_path(struct bw_xlator *layer, const char *path)
{
    return has_type(layer, FILE_TYPE) || has_type(layer, NBD_TYPE)
               ? set_image(layer, path)
               : bw_layer_set_option(layer, "path", nowhere, path, nowhere);
}

/* Images that were given take the place of those that the volfile names. */
static struct bw_error *replace_paths(struct bw_graph *graph, const struct bw_fs_options *options)
{
    size_t used = 0;
    for (size_t i = 0; i < graph->size; i++) {
        struct bw_xlator *layer = graph->layers[i];
        if (bw_xlator_child_count(layer))
            continue;
        if (used < options->path_count)
            BW_TRY(replace_path(layer, options->paths[used]));
        used++;
    }
    if (used == options->path_count)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE, "%s has %zu storage volume%s, but %zu image%s given",
                           options->graph->file, used, bw_plural(used), options->path_count,
                           options->path_count == 1 ? " is" : "s are");
}

static struct bw_error *read_volfile(struct bw_graph *graph, const struct bw_fs_options *options,
                                     struct bw_file_set *inputs)
{
    BW_TRY(bw_volfile_read(graph, options->graph->file));
    if (!bw_file_set_add(inputs, options->graph->file))
        return bw_error_no_memory();
    return options->path_count ? replace_paths(graph, options) : NULL;
}

/* The layers that only the options ask for: a window above every file. */
static struct bw_error *add_windows(struct bw_graph *graph, uint64_t offset)
{
    char text[24];
    struct bw_xlator *window;
    snprintf(text, sizeof text, "%" PRIu64, offset);
    for (size_t i = 0; offset && i < graph->size; i++) {
        if (bw_xlator_child_count(graph->layers[i]))
            continue;
        BW_TRY(bw_graph_insert_above(graph, i, "layout/window", nowhere, &window));
        BW_TRY(bw_layer_set_option(window, "offset", nowhere, text, nowhere));
    }
    return NULL;
}

static struct bw_error *describe(struct bw_fs *fs, const struct bw_fs_options *options)
{
    const struct bw_graph_options *wanted = options->graph;
    if (wanted->file)
        BW_TRY(read_volfile(fs->graph, options, &fs->inputs));
    else
        BW_TRY(describe_default(fs->graph, options->paths, options->path_count));
    BW_TRY(add_windows(fs->graph, options->offset));
    for (size_t i = 0; i < wanted->edit_count; i++) {
        const struct bw_graph_edit *edit = &wanted->edits[i];
        BW_TRY(edit->kind == BW_EDIT_OPTION ? bw_graph_edit_option(fs->graph, edit->text)
                                            : bw_graph_edit_insert(fs->graph, edit->text));
    }
    for (size_t i = 0; i < options->path_count; i++)
        BW_TRY(bw_split_inputs(options->paths[i], &fs->inputs));
    return bw_graph_check(fs->graph, &fs->inputs);
}

/* The layer where logical addresses become offsets on devices. */
static struct bw_error *find_chunk_map(const struct bw_graph *graph, struct bw_xlator **map)
{
    size_t found = 0;
    for (size_t i = 0; i < graph->size; i++) {
        const struct bw_xlator_class *type = graph->layers[i]->type;
        if (type->above == BW_ADDRESS_LOGICAL && type->below == BW_ADDRESS_DEVICE) {
            *map = graph->layers[i];
            found++;
        }
    }
    return found == 1 ? NULL
                      : bw_error_create(BW_ERROR_USAGE,
                                        "the graph needs one volume that maps logical addresses to "
                                        "devices, like " CHUNK_MAP_TYPE ", not %zu",
                                        found);
}

static void drop_unused(struct bw_graph *graph, struct bw_xlator *map, struct bw_image_set *set)
{
    for (size_t i = set->count; i-- > 0;)
        if (set->images[i].role == BW_IMAGE_UNUSED && !set->images[i].is_unclaimed) {
            bw_layer_remove_child(map, i);
            set->images[i].storage = NULL; /* goes now */
        }
    bw_graph_prune(graph);
}

/* A file system whose extents have moved needs a layer that knows where to. */
static struct bw_error *add_remap(const struct bw_fs *fs, const struct bw_xlator *map)
{
    struct bw_xlator *remap;
    size_t above = 0;
    if (!(fs->superblock.incompat_flags & BW_INCOMPAT_REMAP_TREE))
        return NULL;
    for (size_t i = 0; i < fs->graph->size; i++) {
        const struct bw_xlator *layer = fs->graph->layers[i];
        if (layer->type->takes & BW_TAKES(BW_CONTROL_MOVED_RANGE))
            return NULL;
        above = layer == map ? i : above;
    }
    BW_TRY(bw_graph_insert_above(fs->graph, above, REMAP_TYPE, nowhere, &remap));
    return bw_graph_check_layer(remap);
}

struct bw_error *bw_wire_devices(const struct bw_fs *fs, struct bw_image *images, size_t count)
{
    struct bw_control_device device = {0};
    const struct bw_control control = {BW_CONTROL_DEVICE, {.device = &device}};
    for (size_t i = 0; i < count; i++) {
        struct bw_image *image = &images[i];
        if (!image->storage)
            continue;
        device.devid = image->superblock.device.devid;
        device.stale = image->is_claimed || bw_image_is_stale(fs, image);
        memcpy(device.uuid, image->superblock.device.uuid, BW_UUID_SIZE);
        if (image->role != BW_IMAGE_UNUSED && !image->is_told)
            BW_TRY(bw_graph_control(fs->graph, &control));
        image->is_told = image->role != BW_IMAGE_UNUSED;
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
                                           .ids = (const void *)ids,
                                           .dumped = fs->no_data};
    if (!ids)
        return bw_error_no_memory();
    memcpy(ids[facts.id_count++], fs->superblock.metadata_uuid, BW_UUID_SIZE);
    for (size_t i = 0; i < set->count; i++)
        if (set->images[i].role == BW_IMAGE_SEED)
            memcpy(ids[facts.id_count++], set->images[i].superblock.metadata_uuid, BW_UUID_SIZE);
    return bw_graph_control(fs->graph,
                            &(struct bw_control){BW_CONTROL_FILE_SYSTEM, {.file_system = &facts}});
}

static void note_dumps(struct bw_fs *fs, const struct bw_image_set *set)
{
    const uint64_t restored = BW_SUPER_FLAG_METADUMP | BW_SUPER_FLAG_METADUMP_V2;
    for (size_t i = 0; i < set->count; i++)
        fs->is_dump |= set->images[i].is_dump && set->images[i].role == BW_IMAGE_DEVICE;
    fs->no_data = fs->is_dump || (fs->superblock.flags & restored);
}

/* Those that a volfile names; in a sandbox that could not be done. */
static struct bw_error *connect_to_servers(const struct bw_graph *graph)
{
    bool served;
    for (size_t i = 0; i < graph->size; i++) {
        const struct bw_xlator *layer = graph->layers[i];
        if (strcmp(bw_xlator_type(layer), NBD_TYPE) == 0)
            BW_TRY(bw_servers_open(graph->servers, bw_graph_path(layer), &served));
    }
    return NULL;
}

static struct bw_error *set_top(struct bw_fs *fs)
{
    struct bw_xlator *top = fs->graph->layers[fs->graph->size - 1];
    if (top->above != BW_ADDRESS_LOGICAL)
        return BW_REFUSE(top->name.at,
                         "volume %s: the top of the graph must take logical addresses",
                         bw_xlator_name(top));
    fs->reader.top = top;
    fs->reader.nodesize = fs->superblock.nodesize;
    return NULL;
}

struct bw_error *bw_wire_images(struct bw_fs *fs, const struct bw_fs_options *options,
                                struct bw_image_set *set)
{
    struct bw_xlator *map = NULL;
    BW_TRY(describe(fs, options));
    BW_TRY(find_chunk_map(fs->graph, &map));
    BW_TRY(connect_to_servers(fs->graph));
    if (options->planned)
        BW_TRY(options->planned(options->planned_context, fs));
    if (!options->graph->file)
        BW_TRY(bw_splits_join(fs, map));
    BW_TRY(bw_graph_start(fs->graph, map));
    return bw_images_open(fs, map, options, set);
}

struct bw_error *bw_wire_graph(struct bw_fs *fs, struct bw_image_set *set)
{
    struct bw_xlator *map = NULL;
    BW_TRY(find_chunk_map(fs->graph, &map));
    BW_TRY(bw_images_match(fs, set));
    BW_TRY(bw_features_check(fs->superblock.incompat_flags));
    note_dumps(fs, set);
    drop_unused(fs->graph, map, set);
    BW_TRY(add_remap(fs, map));
    BW_TRY(bw_graph_start(fs->graph, NULL));
    BW_TRY(set_top(fs));
    BW_TRY(tell_file_system(fs, set));
    fs->images = set->images;
    fs->image_count = set->count;
    return bw_wire_devices(fs, set->images, set->count);
}
