/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the operands of a command line to a graph of layers. The devices must be read to find out
 * which of them belong to the file system, and which layers it needs. Therefore the graph is
 * started in two steps: first the layers below the chunk map, then the rest.
 *
 * The first step takes a volfile, or describes the default graph with a storage layer for each
 * image, adds what options ask for, and joins images that were split into parts. The second step
 * drops the images of other file systems, joins several images of one device, and tells the layers
 * what the superblock says.
 */
#include "fs/opening.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/parts.h"
#include "base/patch.h"
#include "base/unpack.h"
#include "base/zeros.h"
#include "fs/fs.h"
#include "xlators/layout/partition_table.h"
#include "xlators/storage/overlay.h"

#define CHUNK_MAP_TYPE "cluster/chunk-map"
#define REMAP_TYPE     "cluster/remap"
#define FILE_TYPE      "storage/file"
#define NBD_TYPE       "storage/nbd"
#define INSIDE_TYPE    "storage/inside"
#define VERIFY_TYPE    "features/verify"

/* For layers and options that no volfile contains. */
static const struct bw_text_place no_location;

/* Reports an error if a part exists after the first missing one, up to a limited distance. After
 * the last possible suffix, which wraps around, nothing is missing. */
static struct bw_error *check_end(const char *missing, size_t suffix)
{
    enum { LARGEST_GAP = 1000 };
    BW_AUTO_FREE char *part = strdup(missing);
    if (!part)
        return bw_error_no_memory();
    bool is_last = !missing[suffix + strspn(missing + suffix, missing[suffix] == 'a' ? "a" : "0")];
    for (unsigned i = 0; !is_last && i < LARGEST_GAP && bw_part_count_up(part + suffix); i++)
        if (bw_part_exists(part))
            return bw_error_create(BW_ERROR_USAGE, "%s is missing: the image continues in %s",
                                   missing, part);
    return NULL;
}

/* Whether the image is large enough for the device that it begins with, or for all partitions of
 * its table. */
static bool is_whole(struct bw_xlator *storage)
{
    uint8_t bytes[BW_SUPERBLOCK_SIZE];
    struct bw_superblock superblock;
    struct bw_partition_table table;
    BW_AUTO_ERROR struct bw_error *error =
        bw_read_super(NULL, storage, bw_superblock_offset(0), bytes);
    if (!error)
        error = bw_superblock_decode(bytes, bw_superblock_offset(0), &superblock);
    if (!error)
        return superblock.device.total_bytes <= bw_xlator_size(storage);
    BW_AUTO_ERROR struct bw_error *none = bw_partition_table_read(storage, &table);
    bool whole = !none;
    for (size_t i = 0; i < table.count; i++)
        whole &= table.partitions[i].room == table.partitions[i].length;
    bw_partition_table_free(&table);
    return whole;
}

/* Joins the parts of a split image: inserts layout/concat above the storage layer of the first
 * part. `part` is the path of the second one, and `suffix` the offset of its suffix. A further part
 * leaves the chunk map, in case it was also given as an image. Joined images stay there, even if a
 * part is a link to the first one. */
static struct bw_error *join_parts(struct bw_fs *fs, struct bw_xlator *map,
                                   struct bw_xlator *storage, char *part, size_t suffix)
{
    struct bw_graph *graph = fs->graph;
    struct bw_xlator *concat, *layer;
    size_t count = 1;
    BW_TRY(bw_graph_insert_above(graph, bw_graph_index(storage), "layout/concat", no_location,
                                 &concat));
    do {
        BW_AUTO_FREE char *name = NULL;
        if (asprintf(&name, "%s-part-%zu", bw_xlator_name(storage), ++count) < 0)
            return bw_error_no_memory();
        BW_TRY(bw_graph_add(graph, bw_graph_index(concat), name, no_location, &layer));
        BW_TRY(bw_layer_set_type(layer, bw_xlator_type(storage), no_location));
        BW_TRY(bw_layer_set_option(layer, "path", no_location, part, no_location));
        BW_TRY(bw_graph_check_layer(layer));
        BW_TRY(bw_layer_add_child(concat, name, no_location));
    } while (bw_part_next(part, suffix));
    BW_TRY(check_end(part, suffix));
    BW_TRY(bw_graph_check_layer(concat));
    for (size_t i = 1; i < count; i++) {
        struct stat wanted, given;
        if (stat(bw_graph_path(bw_xlator_child(concat, i)), &wanted))
            continue;
        for (size_t k = bw_xlator_child_count(map); k-- > 0;) {
            struct bw_xlator *image = bw_xlator_child(map, k);
            BW_AUTO_FREE char *path = bw_image_path(image);
            const bool is_joined = strcmp(bw_xlator_type(image), "layout/concat") == 0;
            if (!is_joined && path && stat(path, &given) == 0 && given.st_dev == wanted.st_dev &&
                given.st_ino == wanted.st_ino)
                bw_layer_remove_child(map, k);
        }
    }
    bw_fs_report_text(fs, BW_NOTE, BW_ERROR_USAGE,
                      "%s is joined with the parts after it: %zu files", bw_graph_path(storage),
                      count);
    return NULL;
}

/* Inserts layout/concat above each storage layer whose image is the first part of a split image,
 * and reports that as a note. An image that is complete without further parts is left alone, unless
 * it is compressed, because then its size says nothing. Removes parts that were also given as
 * images from the layer `map`. BW_ERROR_USAGE if a part is missing between others. */
static struct bw_error *join_split_images(struct bw_fs *fs, struct bw_xlator *map)
{
    for (size_t i = 0; i < fs->graph->layers.count; i++) {
        struct bw_xlator *storage = fs->graph->layers.items[i];
        if (bw_xlator_child_count(storage) || strcmp(bw_xlator_type(storage), FILE_TYPE) != 0)
            continue;
        const char *path = bw_graph_path(storage), *suffix = bw_part_suffix(path);
        if (!suffix)
            continue;
        const size_t offset = (size_t)(suffix - path);
        BW_AUTO_FREE char *part = strdup(path);
        if (!part)
            return bw_error_no_memory();
        const bool has_parts = bw_part_next(part, offset);
        BW_TRY(bw_graph_start(fs->graph, storage->user));
        uint8_t head[BW_PACKING_HEAD];
        const bool is_compressed = has_parts &&
                                   bw_try_read_raw(NULL, storage, 0, head, sizeof head) &&
                                   bw_packing_find(head, sizeof head);
        if (!is_compressed && is_whole(storage))
            continue;
        if (has_parts)
            BW_TRY(join_parts(fs, map, storage, part, offset));
        else
            BW_TRY(check_end(part, offset));
    }
    bw_graph_prune(fs->graph);
    return NULL;
}

/* The graph. */

/* Adds a layer at the top, without children. */
static struct bw_error *append_layer(struct bw_graph *graph, const char *name, const char *type,
                                     struct bw_xlator **layer)
{
    BW_TRY(bw_graph_add(graph, graph->layers.count, name, no_location, layer));
    return bw_layer_set_type(*layer, type, no_location);
}

/* Adds a layer above the last one, named after its type. */
static struct bw_error *add_above(struct bw_graph *graph, const char *type)
{
    struct bw_xlator *below = graph->layers.items[graph->layers.count - 1], *layer;
    BW_TRY(append_layer(graph, strchr(type, '/') + 1, type, &layer));
    return bw_layer_add_child(layer, bw_xlator_name(below), no_location);
}

/* Sets the image of a storage layer. If it is on a server, connects now, while the process may
 * still connect. */
static struct bw_error *set_image(struct bw_xlator *layer, const char *path)
{
    bool served;
    BW_TRY(bw_servers_open(layer->graph->inputs.servers, path, &served));
    const char *type = served ? NBD_TYPE : FILE_TYPE;
    if (strcmp(layer->type_name.text, type) != 0) {
        bw_layer_clear_options(layer); /* the options of the previous type */
        BW_TRY(bw_layer_set_type(layer, type, no_location));
    }
    return bw_layer_set_option(layer, "path", no_location, path, no_location);
}

/* Describes the default graph: a storage layer for each path, the chunk map above them, then single
 * layers. */
static struct bw_error *describe_default(struct bw_graph *graph, const char *const *paths,
                                         size_t count)
{
    struct bw_xlator *layer;
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "device-%zu", i + 1);
        BW_TRY(append_layer(graph, name, FILE_TYPE, &layer));
        if (graph->inputs.source) { /* an image that another file system contains */
            BW_TRY(bw_layer_set_type(layer, INSIDE_TYPE, no_location));
            BW_TRY(bw_layer_set_option(layer, "path", no_location, graph->inputs.source->name,
                                       no_location));
        } else {
            BW_TRY(set_image(layer, paths[i]));
        }
    }
    BW_TRY(append_layer(graph, "chunk-map", CHUNK_MAP_TYPE, &layer));
    for (size_t i = 0; i < count; i++)
        BW_TRY(bw_layer_add_child(layer, bw_xlator_name(graph->layers.items[i]), no_location));
    BW_TRY(add_above(graph, VERIFY_TYPE));
    BW_TRY(add_above(graph, "performance/read-ahead"));
    return add_above(graph, "performance/node-cache");
}

static bool has_type(const struct bw_xlator *layer, const char *type)
{
    return layer->type_name.text && strcmp(layer->type_name.text, type) == 0;
}

/* Reads the volfile. Images on the command line replace those in it. */
static struct bw_error *read_volfile(struct bw_graph *graph, const struct bw_fs_options *options,
                                     struct bw_file_set *inputs)
{
    size_t used = 0;
    BW_TRY(bw_volfile_read(graph, options->graph->file));
    BW_TRY(bw_file_set_insert(inputs, options->graph->file));
    if (!options->path_count)
        return NULL;
    for (size_t i = 0; i < graph->layers.count; i++) {
        struct bw_xlator *layer = graph->layers.items[i];
        if (bw_xlator_child_count(layer))
            continue;
        const char *path = used < options->path_count ? options->paths[used] : NULL;
        used++;
        if (path && (has_type(layer, FILE_TYPE) || has_type(layer, NBD_TYPE)))
            BW_TRY(set_image(layer, path));
        else if (path)
            BW_TRY(bw_layer_set_option(layer, "path", no_location, path, no_location));
    }
    if (used == options->path_count)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE, "%s has %zu storage volume%s, but %zu image%s given",
                           options->graph->file, used, bw_plural(used), options->path_count,
                           options->path_count == 1 ? " is" : "s are");
}

static struct bw_error *add_patch(struct bw_graph *graph, size_t above, const char *option,
                                  const char *value)
{
    struct bw_xlator *layer;
    BW_TRY(bw_graph_insert_above(graph, above, "layout/patch", no_location, &layer));
    return bw_layer_set_option(layer, option, no_location, value, no_location);
}

/* Puts a layer with an overlay above the image that the overlay names. */
static struct bw_error *add_overlays(struct bw_graph *graph, const struct bw_fs_options *options)
{
    if (!options->overlay_count)
        return NULL;
    BW_AUTO_FREE bool *is_used = calloc(options->overlay_count + 1, sizeof *is_used);
    if (!is_used)
        return bw_error_no_memory();
    for (size_t i = 0; i < graph->layers.count; i++) {
        if (bw_xlator_child_count(graph->layers.items[i]))
            continue;
        struct stat file;
        const char *path = bw_layer_option(graph->layers.items[i], "path");
        const bool exists = path && stat(path, &file) == 0;
        for (size_t j = 0; j < options->overlay_count; j++) {
            struct bw_overlay *overlay;
            struct stat backing;
            BW_TRY(bw_overlay_open(options->overlays[j], &overlay));
            const char *name = bw_overlay_backing(overlay);
            const bool fits = exists && name && stat(name, &backing) == 0 &&
                              backing.st_dev == file.st_dev && backing.st_ino == file.st_ino;
            bw_overlay_close(overlay);
            if (!fits)
                continue;
            is_used[j] = true;
            BW_TRY(add_patch(graph, i++, "overlay", options->overlays[j]));
        }
    }
    for (size_t j = 0; j < options->overlay_count; j++)
        if (!is_used[j])
            return bw_error_create(BW_ERROR_USAGE,
                                   "the overlay %s belongs to another image than those given",
                                   options->overlays[j]);
    return NULL;
}

/* The layers that patches name are created in several steps, so this is called after each. */
struct bw_error *bw_place_patches(struct bw_graph *graph, struct bw_xlator *map)
{
    for (size_t i = 0; i < graph->inputs.patch_count; i++) {
        char number[24];
        BW_AUTO_FREE char *name = NULL;
        if (asprintf(&name, "patch@%s", graph->inputs.patches[i]->layer) < 0) {
            name = NULL; /* asprintf() leaves it undefined */
            return bw_error_no_memory();
        }
        const struct bw_xlator *below = bw_graph_find(graph, graph->inputs.patches[i]->layer);
        if (!below || bw_graph_find(graph, name))
            continue;
        snprintf(number, sizeof number, "%zu", i);
        BW_TRY(add_patch(graph, bw_graph_index(below), "memory", number));
        BW_TRY(bw_graph_check_layer(bw_graph_find(graph, name)));
    }
    return bw_graph_start(graph, map);
}

/* Describes the graph that the options ask for; no layer runs. */
static struct bw_error *describe_graph(struct bw_fs *fs, const struct bw_fs_options *options)
{
    const struct bw_graph_options *wanted = options->graph;
    struct bw_graph *graph = fs->graph;
    if (wanted->file)
        BW_TRY(read_volfile(graph, options, &fs->inputs));
    else
        BW_TRY(describe_default(graph, options->paths, options->path_count));

    /* For --map: layers with the maps of rescued images. */
    if (options->map_count > options->path_count)
        return bw_error_create(BW_ERROR_USAGE, "%zu maps are given, but only %zu image%s",
                               options->map_count, options->path_count,
                               bw_plural(options->path_count));
    for (size_t i = 0, image = 0; i < graph->layers.count && image < options->map_count; i++) {
        struct bw_xlator *layer;
        if (bw_xlator_child_count(graph->layers.items[i]))
            continue;
        const char *map = options->maps[image++];
        if (!map)
            continue;
        BW_TRY(bw_graph_insert_above(graph, i++, "layout/unread", no_location, &layer));
        BW_TRY(bw_layer_set_option(layer, "map", no_location, map, no_location));
    }

    /* For --image-offset: a window above every file. */
    char offset[24];
    snprintf(offset, sizeof offset, "%" PRIu64, options->offset);
    for (size_t i = 0; options->offset && i < graph->layers.count; i++) {
        struct bw_xlator *window;
        if (bw_xlator_child_count(graph->layers.items[i]))
            continue;
        BW_TRY(bw_graph_insert_above(graph, i, "layout/window", no_location, &window));
        BW_TRY(bw_layer_set_option(window, "offset", no_location, offset, no_location));
    }
    BW_TRY(add_overlays(graph, options)); /* the last one is next to the file */

    /* Options of the layers that verify. */
    static const char *const kinds[] = {"off", "metadata", "data", "all"};
    const char *ignored = kinds[options->ignore_checksums & BW_CHECKSUMS_ALL];
    char time[24];
    snprintf(time, sizeof time, "%us", options->search_seconds);
    for (size_t i = 0; i < graph->layers.count; i++) {
        struct bw_xlator *layer = graph->layers.items[i];
        if (!has_type(layer, VERIFY_TYPE))
            continue;
        if (options->correct_bits)
            BW_TRY(bw_layer_set_option(layer, "correct-bits", no_location, "all", no_location));
        if (options->ignore_checksums)
            BW_TRY(
                bw_layer_set_option(layer, "ignore-checksums", no_location, ignored, no_location));
        if (options->search_seconds)
            BW_TRY(bw_layer_set_option(layer, "search-time", no_location, time, no_location));
    }

    /* The changes of the user. */
    for (size_t i = 0; i < wanted->edit_count; i++) {
        const struct bw_graph_edit *edit = &wanted->edits[i];
        if (!edit->text)
            return bw_error_create(BW_ERROR_USAGE, "change %zu of the graph has no text", i + 1);
        if (edit->kind == BW_EDIT_OPTION)
            BW_TRY(bw_graph_edit_option(graph, edit->text));
        else
            BW_TRY(bw_graph_edit_insert(graph, edit->text));
    }

    /* The files that are read, and never written to. */
    if (options->header)
        BW_TRY(bw_file_set_insert(&fs->inputs, options->header));
    /* Files that may be further parts of an image are read, too. */
    for (size_t i = 0; i < options->path_count; i++) {
        const char *path = options->paths[i], *suffix = bw_part_suffix(path);
        if (!suffix)
            continue;
        BW_AUTO_FREE char *part = strdup(path);
        if (!part)
            return bw_error_no_memory();
        while (bw_part_next(part, (size_t)(suffix - path)))
            BW_TRY(bw_file_set_insert(&fs->inputs, part));
    }
    return bw_graph_check(graph, &fs->inputs);
}

/* Finds the layer that maps logical addresses to offsets on devices. */
static struct bw_error *find_chunk_map(const struct bw_graph *graph, struct bw_xlator **map)
{
    size_t found = 0;
    for (size_t i = 0; i < graph->layers.count; i++) {
        const struct bw_xlator_class *type = graph->layers.items[i]->type;
        if (type->above == BW_ADDRESS_LOGICAL && type->below == BW_ADDRESS_DEVICE) {
            *map = graph->layers.items[i];
            found++;
        }
    }
    if (found == 1)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE,
                           "the graph needs one volume that maps logical addresses to devices, "
                           "like " CHUNK_MAP_TYPE ", not %zu",
                           found);
}

/* Several images of a device. */

size_t bw_child_number(const struct bw_xlator *layer, const struct bw_xlator *child)
{
    size_t number = 0;
    while (number < bw_xlator_child_count(layer) && bw_xlator_child(layer, number) != child)
        number++;
    return number;
}

/* The image of the same device with this number; NULL if none exists. */
static struct bw_image *find_alternative(const struct bw_image_set *set,
                                         const struct bw_image *first, unsigned number)
{
    for (size_t i = 0; i < set->count; i++) {
        struct bw_image *image = &set->images[i];
        if (image->alternative == number && image->storage &&
            image->superblock.device.devid == first->superblock.device.devid &&
            memcmp(image->superblock.device.uuid, first->superblock.device.uuid, BW_UUID_SIZE) == 0)
            return image;
    }
    return NULL;
}

/* Puts cluster/alternatives between the chunk map and the images of a device. */
static struct bw_error *join_alternatives(struct bw_graph *graph, struct bw_xlator *map,
                                          const struct bw_image_set *set, struct bw_image *first)
{
    struct bw_xlator *layer;
    struct bw_image *image;
    BW_AUTO_FREE char *name = NULL;
    if (asprintf(&name, "alternatives@%s", bw_xlator_name(first->storage)) < 0)
        return bw_error_no_memory();
    BW_TRY(bw_graph_add(graph, bw_graph_index(map), name, no_location, &layer));
    BW_TRY(bw_layer_set_type(layer, "cluster/alternatives", no_location));
    for (unsigned number = 1; (image = find_alternative(set, first, number)); number++) {
        bw_layer_remove_child(map, bw_child_number(map, image->storage));
        BW_TRY(bw_layer_add_child(layer, bw_xlator_name(image->storage), no_location));
    }
    char as_new[24];
    snprintf(as_new, sizeof as_new, "%u", first->alternatives_as_new);
    BW_TRY(bw_layer_set_option(layer, "as-new", no_location, as_new, no_location));
    BW_TRY(bw_graph_check_layer(layer));
    first->top = layer;
    return bw_layer_attach(map, layer);
}

/* Adds the layer that maps moved extents, if the file system needs it. */
static struct bw_error *add_remap(const struct bw_fs *fs, const struct bw_xlator *map)
{
    struct bw_xlator *remap;
    size_t above = 0;
    if (!(fs->superblock.incompat_flags & BW_INCOMPAT_REMAP_TREE))
        return NULL;
    for (size_t i = 0; i < fs->graph->layers.count; i++) {
        const struct bw_xlator *layer = fs->graph->layers.items[i];
        if (layer->type->takes & BW_TAKES(BW_CONTROL_MOVED_RANGE))
            return NULL;
        above = layer == map ? i : above;
    }
    BW_TRY(bw_graph_insert_above(fs->graph, above, REMAP_TYPE, no_location, &remap));
    return bw_graph_check_layer(remap);
}

struct bw_error *bw_announce_devices(const struct bw_fs *fs, struct bw_image *images, size_t count)
{
    struct bw_control_device device = {0};
    const struct bw_control control = {BW_CONTROL_DEVICE, {.device = &device}};
    struct bw_xlator *map = NULL;
    BW_TRY(find_chunk_map(fs->graph, &map));
    for (size_t i = 0; i < count; i++) {
        struct bw_image *image = &images[i];
        if (!image->storage || image->role == BW_IMAGE_UNUSED || image->is_announced)
            continue;
        device.child = bw_child_number(map, image->top);
        device.alternatives = image->alternative ? (unsigned)bw_xlator_child_count(image->top) : 0;
        device.devid = image->superblock.device.devid;
        device.stale = image->is_claimed || bw_image_is_stale(fs, image);
        memcpy(device.uuid, image->superblock.device.uuid, BW_UUID_SIZE);
        BW_TRY(bw_graph_control(fs->graph, &control));
        image->is_announced = true;
    }
    return NULL;
}

struct bw_error *bw_build_lower_graph(struct bw_fs *fs, const struct bw_fs_options *options,
                                      struct bw_image_set *set)
{
    struct bw_xlator *map = NULL;
    BW_TRY(describe_graph(fs, options));
    BW_TRY(find_chunk_map(fs->graph, &map));
    /* Connect to the servers in a volfile, because the sandbox would not allow it later. */
    for (size_t i = 0; i < fs->graph->layers.count; i++) {
        const struct bw_xlator *layer = fs->graph->layers.items[i];
        bool served;
        if (strcmp(bw_xlator_type(layer), NBD_TYPE) == 0)
            BW_TRY(bw_servers_open(fs->graph->inputs.servers, bw_graph_path(layer), &served));
    }
    if (options->planned)
        BW_TRY(options->planned(options->planned_context, fs));
    if (!options->graph->file)
        BW_TRY(join_split_images(fs, map));
    BW_TRY(bw_graph_start(fs->graph, map));
    return bw_images_open(fs, map, options, set);
}

struct bw_error *bw_build_upper_graph(struct bw_fs *fs, struct bw_image_set *set)
{
    const uint64_t restored = BW_SUPER_FLAG_METADUMP | BW_SUPER_FLAG_METADUMP_V2;
    struct bw_xlator *map = NULL;
    BW_TRY(find_chunk_map(fs->graph, &map));
    BW_TRY(bw_images_match(fs, set));
    BW_TRY(bw_features_check(fs->superblock.incompat_flags));
    for (size_t i = 0; i < set->count; i++)
        fs->is_dump |= set->images[i].is_dump && set->images[i].role == BW_IMAGE_DEVICE;
    fs->no_data = fs->is_dump || (fs->superblock.flags & restored);
    fs->status.no_contents = fs->no_data;
    /* None of these features changes where files are. */
    if (fs->superblock.compat_flags & BW_COMPAT_SYNOLOGY ||
        fs->superblock.compat_ro_flags & BW_COMPAT_RO_SYNOLOGY)
        bw_fs_report_text(fs, BW_NOTE, BW_ERROR_UNSUPPORTED,
                          "written by a kernel of Synology: its locks on files, quotas and caches "
                          "of block groups are ignored");

    /* The children of the chunk map: one for each device. */
    for (size_t i = 0; i < set->count; i++) {
        struct bw_image *image = &set->images[i];
        image->top = image->storage;
        if (image->role != BW_IMAGE_UNUSED && image->alternative)
            BW_TRY(join_alternatives(fs->graph, map, set, image));
    }
    for (size_t i = set->count; i-- > 0;) {
        struct bw_image *image = &set->images[i];
        if (image->role != BW_IMAGE_UNUSED || image->is_unclaimed || image->alternative)
            continue;
        bw_layer_remove_child(map, bw_child_number(map, image->storage));
        image->storage = NULL; /* will be removed */
    }
    bw_graph_prune(fs->graph);

    BW_TRY(add_remap(fs, map));
    BW_TRY(bw_graph_start(fs->graph, NULL));
    struct bw_xlator *top = fs->graph->layers.items[fs->graph->layers.count - 1];
    if (top->above != BW_ADDRESS_LOGICAL)
        return BW_REFUSE(top->name.at,
                         "volume %s: the top of the graph must accept logical addresses",
                         bw_xlator_name(top));
    fs->reader.top = top;
    fs->reader.nodesize = fs->superblock.nodesize;

    /* The layers learn what the superblock says, and which devices there are. */
    BW_AUTO_FREE uint8_t(*ids)[BW_UUID_SIZE] = calloc(2 + set->count, sizeof *ids);
    if (!ids)
        return bw_error_no_memory();
    struct bw_control_file_system facts = {.checksum_type = fs->superblock.checksum_type,
                                           .nodesize = fs->superblock.nodesize,
                                           .sectorsize = fs->superblock.sectorsize,
                                           .ids = (const void *)ids,
                                           .dumped = fs->no_data,
                                           .other_checksums = bw_fs_other_checksums(fs),
                                           .generation = fs->superblock.generation,
                                           .incompat_flags = fs->superblock.incompat_flags,
                                           .changes_checksums = bw_fs_changes_checksums(fs)};
    if (!bw_is_zeros(fs->chunk_tree_uuid, BW_UUID_SIZE))
        facts.chunk_tree_uuid = fs->chunk_tree_uuid;
    facts.id_count = bw_superblock_block_ids(&fs->superblock, ids);
    for (size_t i = 0; i < set->count; i++)
        if (set->images[i].role == BW_IMAGE_SEED)
            memcpy(ids[facts.id_count++], set->images[i].superblock.metadata_uuid, BW_UUID_SIZE);
    BW_TRY(bw_graph_control(fs->graph,
                            &(struct bw_control){BW_CONTROL_FILE_SYSTEM, {.file_system = &facts}}));
    fs->images = set->images;
    fs->image_count = set->count;
    return bw_announce_devices(fs, set->images, set->count);
}
