/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks layers on images that contain a device in another format: an encrypted volume on a
 * partition, a volume group on a RAID array. The children of the chunk map are examined in rounds.
 * In each round, a container is replaced by the volumes in it. Containers that consist of several
 * devices wait for a round without others, when all their devices have been found. A container that
 * cannot be opened remains a child, with a failure.
 *
 * Then the devices that share an image are compared, and only the likeliest are kept: those in the
 * volume that the user has selected, else those with a btrfs, else those that could not be opened.
 * Last, what remains must be one file system, or the user has to choose.
 */
#include "fs/opening.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/pair_set.h"
#include "fs/disk.h"
#include "xlators/layout/containers.h"
#include "xlators/layout/partition_table.h"

enum { ROUNDS = 64 }; /* limit for hostile images */

static const struct bw_text_place no_location;

/* The container that a device is, or belongs to. */
struct container {
    const struct bw_container_type *type; /* NULL: it is none */
    struct bw_container_id id;
    bool lacks_header;          /* its header is in another file */
    struct bw_xlator *header;   /* which this layer reads */
    struct bw_xlator **devices; /* all of the container, for adding its layers */
    size_t count;
};

/* Failures. */

static struct bw_stack_failure *failure_of(const struct bw_stack *stack,
                                           const struct bw_xlator *device)
{
    for (size_t i = 0; i < stack->failures.count; i++)
        if (stack->failures.items[i].device == device && stack->failures.items[i].why)
            return &stack->failures.items[i];
    return NULL;
}

struct bw_error *bw_stack_take_failure(struct bw_stack *stack, const struct bw_xlator *device)
{
    struct bw_stack_failure *failure = failure_of(stack, device);
    return failure ? BW_TAKE(failure->why) : NULL;
}

void bw_stack_free(struct bw_stack *stack)
{
    for (size_t i = 0; i < stack->failures.count; i++)
        bw_error_free(stack->failures.items[i].why);
    bw_stack_failures_free(&stack->failures);
    bw_error_free(stack->skipped);
    *stack = (struct bw_stack){0};
}

/* Titles. */

static void append_titles(struct bw_xlator *layer, struct bw_buffer *text)
{
    const struct bw_xlator_operations *operations = &layer->type->operations;
    if (bw_xlator_child_count(layer))
        append_titles(bw_xlator_child(layer, 0), text);
    const char *title = operations->title && layer->started ? operations->title(layer) : NULL;
    if (title)
        bw_buffer_format(text, "%s%s", text->length ? " > " : "", title);
}

struct bw_error *bw_stack_title(struct bw_xlator *device, char **title)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    append_titles(device, &text);
    *title = text.length ? strndup(text.data, text.length) : NULL;
    return text.failed || (text.length && !*title) ? bw_error_no_memory() : NULL;
}

/* Examining devices. */

/* Decodes the first copy of the superblock; false if it is damaged. */
static bool decode(const struct bw_disk_superblock *block, struct bw_superblock *superblock)
{
    BW_AUTO_ERROR struct bw_error *error =
        bw_superblock_decode((const void *)block, bw_superblock_offset(0), superblock);
    return !error;
}

/* Whether a device is one of several volumes of a container. */
static bool is_volume(const struct bw_xlator *device)
{
    bool is_one = false;
    for (size_t i = 0; bw_container_types[i]; i++)
        is_one |= bw_container_types[i]->option &&
                  strcmp(bw_xlator_type(device), bw_container_types[i]->layer) == 0;
    return is_one || (bw_xlator_child_count(device) && is_volume(bw_xlator_child(device, 0)));
}

/* Whether fs/disk.c will read partitions of a disk, which contain a btrfs directly. */
static bool is_disk_of_btrfs(const struct bw_stack *stack, struct bw_xlator *device)
{
    const char *wanted = stack->options->partition;
    if (stack->fs->lists_devices)
        return false;
    const struct bw_image image = {.storage = device, .path = NULL};
    const struct bw_partition_info *partition = NULL;
    struct bw_disk *disk = NULL;
    BW_AUTO_ERROR struct bw_error *error = bw_disk_open(&image, &disk);
    if (error || !disk)
        return false;
    bool is_one = disk->has_btrfs;
    if (wanted) {
        BW_AUTO_ERROR struct bw_error *none = bw_partition_find(&disk->table, wanted, &partition);
        is_one = none || partition->btrfs || !partition->room;
    }
    bw_disk_free(disk);
    return is_one && !stack->options->volume;
}

static bool has_layer(const struct bw_xlator *device, const struct bw_container_type *type)
{
    return strcmp(bw_xlator_type(device), type->layer) == 0 ||
           (bw_xlator_child_count(device) && has_layer(bw_xlator_child(device, 0), type));
}

/* The container that a device is, if any. A device that a btrfs fills is none; one that only begins
 * with a btrfs may be a container whose superblock is at its end. */
static struct container find_container(const struct bw_stack *stack, struct bw_xlator *device)
{
    const struct container none = {.type = NULL};
    struct bw_disk_superblock block;
    struct bw_superblock superblock;
    const bool is_btrfs = bw_has_superblock(device, &block);
    if (failure_of(stack, device))
        return none;
    if (is_btrfs && decode(&block, &superblock) &&
        superblock.device.total_bytes == bw_xlator_size(device))
        return none;
    for (size_t i = 0; bw_container_types[i]; i++) {
        struct container found = {.type = bw_container_types[i]};
        if (is_btrfs && !found.type->at_end)
            continue;
        if (!found.type->find(device, &found.id))
            continue;
        if (found.type == &bw_partition_container && !is_volume(device) &&
            is_disk_of_btrfs(stack, device))
            continue;
        return found;
    }
    /* With a header in another file, nothing shows that a device is encrypted. */
    if (!is_btrfs && stack->options->header && !has_layer(device, &bw_luks_container))
        return (struct container){.type = &bw_luks_container, .lacks_header = true};
    return none;
}

/* Adding layers. */

/* Adds a layer above the devices, and starts it. */
static struct bw_error *add_layer(const struct bw_stack *stack, const struct container *container,
                                  const char *volume)
{
    struct bw_graph *graph = stack->fs->graph;
    const struct bw_fs_options *options = stack->options;
    const char *kind = strchr(container->type->layer, '/') + 1;
    const char *below = bw_xlator_name(container->devices[0]);
    struct bw_xlator *layer;

    BW_AUTO_FREE char *name = NULL;
    int length = volume ? asprintf(&name, "%s-%s@%s", kind, volume, below)
                        : asprintf(&name, "%s@%s", kind, below);
    for (unsigned number = 2; length >= 0 && bw_graph_find(graph, name); number++) {
        free(name);
        length = asprintf(&name, "%s@%s-%u", kind, below, number);
    }
    if (length < 0) {
        name = NULL; /* asprintf() leaves it undefined */
        return bw_error_no_memory();
    }
    BW_TRY(bw_graph_add(graph, bw_graph_index(stack->map), name, no_location, &layer));

    struct bw_error *error = bw_layer_set_type(layer, container->type->layer, no_location);
    for (size_t i = 0; i < container->count && !error; i++)
        error = bw_layer_add_child(layer, bw_xlator_name(container->devices[i]), no_location);
    if (!error && container->header)
        error = bw_layer_add_child(layer, bw_xlator_name(container->header), no_location);
    if (!error && volume)
        error =
            bw_layer_set_option(layer, container->type->option, no_location, volume, no_location);
    const struct {
        const char *name;
        uint64_t value; /* 0: not set */
    } limits[] = {{"memory", options->key_memory}, {"work", options->key_work}};
    for (size_t i = 0; i < 2 && !error && container->type == &bw_luks_container; i++) {
        char number[24];
        snprintf(number, sizeof number, "%" PRIu64, limits[i].value);
        if (limits[i].value)
            error = bw_layer_set_option(layer, limits[i].name, no_location, number, no_location);
    }
    if (!error)
        error = bw_graph_check_layer(layer);
    if (!error)
        error = bw_layer_start(layer);
    if (!error)
        return bw_layer_attach(stack->map, layer);
    bw_graph_remove(graph, layer);
    return error;
}

/* Adds layers for the volume that the user has selected, or for all. A selected partition belongs
 * to the outermost partition table. */
static struct bw_error *add_volumes(struct bw_stack *stack, const struct container *container)
{
    const char *wanted = NULL, *option = container->type->option;
    if (stack->fs->lists_devices)
        wanted = NULL;
    else if (option && strcmp(option, "volume") == 0)
        wanted = stack->options->volume;
    else if (option && strcmp(option, "partition") == 0 && !stack->used_partition)
        wanted = stack->options->partition;
    if (wanted || !option)
        return add_layer(stack, container, wanted);

    struct bw_strings names __attribute__((cleanup(bw_strings_free_all))) = {0};
    struct bw_error *first = NULL; /* why the first volume cannot be shown */
    size_t added = 0;
    BW_TRY(container->type->list(container->devices, container->count, &names));
    for (size_t i = 0; i < names.count; i++) {
        struct bw_error *error = add_layer(stack, container, names.items[i]);
        if (error && error->code == BW_ERROR_NO_MEMORY) {
            bw_error_free(first);
            return error;
        }
        added += !error;
        first = bw_error_first(first, error);
    }
    if (!added && first)
        return first;
    if (!added)
        return bw_error_create(BW_ERROR_NOT_BTRFS, "it contains no volumes");
    if (first)
        first = bw_error_prefix(first, "%s", bw_xlator_image(container->devices[0]));
    stack->skipped = bw_error_first(stack->skipped, first);
    return NULL;
}

/* Adds the layer that reads a header in another file, which all volumes share. */
static struct bw_error *add_header(const struct bw_stack *stack, struct bw_xlator **header)
{
    struct bw_graph *graph = stack->fs->graph;
    *header = bw_graph_find(graph, "header");
    if (*header)
        return NULL;
    BW_TRY(bw_graph_add(graph, 0, "header", no_location, header));
    BW_TRY(bw_layer_set_type(*header, "storage/file", no_location));
    BW_TRY(bw_layer_set_option(*header, "path", no_location, stack->options->header, no_location));
    BW_TRY(bw_graph_check_layer(*header));
    return bw_layer_start(*header);
}

/* Moves the last children of the map from `from` on to the place of a child before them. */
static void move_children(struct bw_xlator *map, size_t from, size_t to)
{
    for (; from > to && from < map->children.count; from++, to++) {
        struct bw_child moved = map->children.items[from];
        memmove(map->children.items + to + 1, map->children.items + to, (from - to) * sizeof moved);
        map->children.items[to] = moved;
    }
}

/* Finds the containers among the children of the map, and opens those that consist of one device;
 * the others only if none exist, since more of their devices may be found first. An opened
 * container is replaced by its volumes, in the place of its first device. If it cannot be opened,
 * that device remains, with a failure, for all of them; in a list of devices, all remain. */
static struct bw_error *run_round(struct bw_stack *stack, bool *changed)
{
    struct bw_xlator *map = stack->map;
    const size_t count = bw_xlator_child_count(map);
    BW_AUTO_FREE struct bw_xlator **devices = calloc(count + 1, sizeof(struct bw_xlator *));
    BW_AUTO_FREE struct bw_xlator **members = calloc(count + 1, sizeof(struct bw_xlator *));
    BW_AUTO_FREE struct container *found = calloc(count + 1, sizeof *found);
    bool has_single = false;
    *changed = false;
    if (!devices || !members || !found)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++) {
        devices[i] = bw_xlator_child(map, i);
        found[i] = find_container(stack, devices[i]);
        has_single |= found[i].type && !found[i].type->joins;
    }
    for (size_t first = 0; first < count; first++) {
        struct container container = found[first];
        if (!container.type || (has_single && container.type->joins))
            continue;
        *changed = true;
        container.devices = members;
        if (container.lacks_header)
            BW_TRY(add_header(stack, &container.header));
        members[container.count++] = devices[first];
        for (size_t i = first + 1; i < count && container.type->joins; i++)
            if (found[i].type == container.type &&
                memcmp(&found[i].id, &container.id, sizeof container.id) == 0) {
                members[container.count++] = devices[i];
                found[i].type = NULL;
            }

        const size_t before = bw_xlator_child_count(map),
                     place = bw_child_number(map, devices[first]);
        BW_TRY(bw_stack_failures_reserve(&stack->failures, container.count));
        struct bw_error *error = add_volumes(stack, &container);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        if (error) {
            stack->failures.items[stack->failures.count++] =
                (struct bw_stack_failure){devices[first], error};
        } else {
            stack->used_partition |=
                container.type == &bw_partition_container && stack->options->partition;
            move_children(map, before, place);
            bw_layer_remove_child(map, bw_child_number(map, devices[first]));
        }
        for (size_t i = 1; i < container.count; i++) {
            if (error && stack->fs->lists_devices)
                stack->failures.items[stack->failures.count++] =
                    (struct bw_stack_failure){members[i], bw_error_copy(error)};
            else
                bw_layer_remove_child(map, bw_child_number(map, members[i]));
        }
    }
    return NULL;
}

/* Selecting volumes. */

/* How likely it is that the user means a device, in comparison with others in the same image. */
enum rank {
    RANK_PARTITION, /* one of several, with unknown contents */
    RANK_VOLUME,
    RANK_FAILED,
    RANK_BTRFS,
    RANK_CHOSEN, /* added to the rank of those that --volume selects */
};

/* Whether --volume selects a device, or is the reason why it cannot be shown. */
static bool is_chosen(const struct bw_stack *stack, struct bw_xlator *device)
{
    struct bw_container_id id;
    return stack->options->volume &&
           (has_layer(device, &bw_lvm_container) ||
            (failure_of(stack, device) && bw_lvm_container.find(device, &id)));
}

static unsigned rank_of(const struct bw_stack *stack, struct bw_xlator *device)
{
    const bool is_partition = strcmp(bw_xlator_type(device), bw_partition_container.layer) == 0;
    const unsigned chosen = is_chosen(stack, device) ? RANK_CHOSEN : 0;
    struct bw_disk_superblock block;
    if (bw_has_superblock(device, &block))
        return chosen + RANK_BTRFS;
    /* A partition without a key has not failed: the disk lists all partitions, which helps more. */
    const struct bw_stack_failure *failure = failure_of(stack, device);
    if (failure &&
        (!is_partition || failure->why->code != BW_ERROR_NOT_FOUND || stack->options->key_count))
        return chosen + RANK_FAILED;
    return chosen + (is_partition ? RANK_PARTITION : RANK_VOLUME);
}

static bool contains_layer(const struct bw_xlator *layer, const struct bw_xlator *wanted)
{
    bool does = layer == wanted;
    for (size_t i = 0; i < bw_xlator_child_count(layer) && !does; i++)
        does = contains_layer(bw_xlator_child(layer, i), wanted);
    return does;
}

/* Whether any image contributes to both devices. */
static bool share_image(const struct bw_xlator *a, const struct bw_xlator *b)
{
    bool do_share = !bw_xlator_child_count(a) && contains_layer(b, a);
    for (size_t i = 0; i < bw_xlator_child_count(a) && !do_share; i++)
        do_share = share_image(bw_xlator_child(a, i), b);
    return do_share;
}

/* Keeps the likeliest of the devices that share an image. A disk whose partitions contain nothing
 * that can be read is shown as a disk again. */
static struct bw_error *drop_volumes(struct bw_stack *stack)
{
    struct bw_xlator *map = stack->map;
    const size_t count = bw_xlator_child_count(map);
    BW_AUTO_FREE unsigned *ranks = calloc(count + 1, sizeof *ranks);
    BW_AUTO_FREE bool *drops = calloc(count + 1, sizeof *drops);
    if (!ranks || !drops)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++)
        ranks[i] = rank_of(stack, bw_xlator_child(map, i));
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count && !drops[i]; j++)
            drops[i] = ranks[j] > ranks[i] &&
                       share_image(bw_xlator_child(map, i), bw_xlator_child(map, j));
    for (size_t i = count; i-- > 0;)
        if (drops[i])
            bw_layer_remove_child(map, i);
    for (size_t i = 0; i < bw_xlator_child_count(map); i++) {
        if (rank_of(stack, bw_xlator_child(map, i)) != RANK_PARTITION)
            continue;
        struct bw_xlator *disk = bw_xlator_child(bw_xlator_child(map, i), 0);
        for (size_t k = bw_xlator_child_count(map); k-- > 0;)
            if (share_image(disk, bw_xlator_child(map, k)))
                bw_layer_remove_child(map, k);
        const size_t last = bw_xlator_child_count(map);
        stack->used_partition = false;
        BW_TRY(bw_layer_attach(map, disk));
        move_children(map, last, i);
    }
    return NULL;
}

/* Several file systems. */

/* The user must choose if volumes contain different file systems, or the same device of one, as an
 * LVM snapshot does, unless an image that is no container decides. If none contains any, a volume
 * that cannot be shown may be the one. */
static struct bw_error *check_choice(struct bw_stack *stack)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};              /* describes the file systems */
    BW_SCOPED(bw_pair_set) struct bw_pair_set devices = {0}; /* the UUIDs of those in volumes */
    struct bw_superblock first;
    bool has_btrfs = false, has_first = false, must_choose = false;
    for (size_t i = 0; i < bw_xlator_child_count(stack->map); i++) {
        struct bw_xlator *device = bw_xlator_child(stack->map, i);
        struct bw_disk_superblock block;
        struct bw_superblock superblock;
        uint64_t uuid[2];
        bool is_new;
        char fsid[37];
        BW_AUTO_FREE char *title = NULL;
        if (!bw_has_superblock(device, &block))
            continue;
        has_btrfs = true;
        if (!decode(&block, &superblock))
            continue;
        if (!is_volume(device))
            return NULL;
        if (!has_first)
            first = superblock;
        has_first = true;
        must_choose |= !bw_same_file_system(&first, &superblock) && !bw_is_seed(&first) &&
                       !bw_is_seed(&superblock);
        memcpy(uuid, superblock.device.uuid, sizeof uuid);
        BW_TRY(bw_pair_set_insert(&devices, uuid[0], uuid[1], &is_new));
        must_choose |= !is_new && !stack->options->alternatives;
        BW_TRY(bw_stack_title(device, &title));
        bw_uuid_text(superblock.fsid, fsid);
        if (text.length)
            bw_buffer_format(&text, ", ");
        bw_buffer_format(&text, "%s (", title ? title : "it");
        if (*superblock.label)
            bw_buffer_format(&text, "%s, ", superblock.label);
        bw_buffer_format(&text, "%s)", fsid);
    }
    if (!has_btrfs && stack->skipped)
        return BW_TAKE(stack->skipped);
    if (!must_choose)
        return NULL;
    return bw_error_advise(bw_error_create(BW_ERROR_AMBIGUOUS,
                                           "several volumes contain file systems: %.*s",
                                           (int)text.length, text.data),
                           "choose one with `volume GROUP/NAME`");
}

/* A volume that the user has selected must exist; otherwise says why it does not. */
static struct bw_error *check_volume(const struct bw_stack *stack)
{
    struct bw_stack_failure *failure = stack->failures.count ? &stack->failures.items[0] : NULL;
    if (!stack->options->volume)
        return NULL;
    for (size_t i = 0; i < bw_xlator_child_count(stack->map); i++) {
        struct bw_xlator *device = bw_xlator_child(stack->map, i);
        if (has_layer(device, &bw_lvm_container))
            return NULL;
        if (is_chosen(stack, device))
            failure = failure_of(stack, device);
    }
    if (failure)
        return bw_error_prefix(BW_TAKE(failure->why), "%s", bw_xlator_image(failure->device));
    return bw_error_create(
        BW_ERROR_NOT_FOUND,
        "there is no logical volume %s, because no image is a physical volume of LVM",
        stack->options->volume);
}

struct bw_error *bw_stack_build(struct bw_fs *fs, struct bw_xlator *map,
                                const struct bw_fs_options *options, struct bw_stack *stack)
{
    stack->fs = fs;
    stack->map = map;
    stack->options = options;
    bool changed = true, has_changed = false;
    for (size_t round = 0; changed && round < ROUNDS; round++) {
        BW_TRY(run_round(stack, &changed));
        has_changed |= changed;
    }
    if (fs->lists_devices) {
        if (stack->skipped)
            bw_fs_report(fs, BW_WARNING, BW_TAKE(stack->skipped));
        if (has_changed)
            bw_graph_prune(fs->graph);
        return NULL;
    }
    if (has_changed) {
        BW_TRY(drop_volumes(stack));
        bw_graph_prune(fs->graph);
    }
    BW_TRY(check_volume(stack));
    return has_changed ? check_choice(stack) : NULL;
}
