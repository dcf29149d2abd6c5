/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks layers on images that contain a device in another format: an encrypted volume on a
 * partition, a volume group on a RAID array. The children of the chunk map are examined in rounds.
 * In each round, a container is replaced by the volumes in it. Containers that consist of several
 * devices wait for a round without others, when all their devices have been found.
 */
#include "fs/stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "fs/disk.h"
#include "fs/image.h"
#include "ondisk/superblock.h"
#include "xlators/layout/containers.h"
#include "xlators/layout/partition_table.h"

enum { ROUNDS = 64 }; /* more levels cannot be meant seriously */

static const struct bw_text_place nowhere;

struct building {
    struct bw_fs *fs;
    struct bw_xlator *map;
    const struct bw_fs_options *options;
    struct bw_stack *stack;
    struct bw_frame frame;
};

/* A device that is a container. */
struct found {
    const struct bw_container_type *type; /* NULL: it is none */
    struct bw_container_id id;
    bool lacks_header; /* its header is in another file */
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

/* Consumes the error. */
static struct bw_error *add_failure(struct bw_stack *stack, struct bw_xlator *device,
                                    struct bw_error *why)
{
    if (bw_stack_failures_reserve(&stack->failures, 1)) {
        bw_error_free(why);
        return bw_error_no_memory();
    }
    stack->failures.items[stack->failures.count++] = (struct bw_stack_failure){device, why};
    return NULL;
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

/* Reads the first copy of the superblock; it may be damaged in parts other than the magic number.
 */
static bool has_magic(const struct building *building, struct bw_xlator *device,
                      struct bw_disk_superblock *block)
{
    struct bw_request request = {.kind = BW_REQUEST_SUPER,
                                 .length = sizeof *block,
                                 .address = bw_superblock_offset(0),
                                 .buffer = block};
    if (bw_xlator_size(device) < bw_superblock_offset(0) + sizeof *block)
        return false;
    bw_wind(&building->frame, device, &request, 1);
    BW_AUTO_ERROR struct bw_error *error = request.error;
    return !error && bw_get64(block->magic) == BW_SUPERBLOCK_MAGIC;
}

/* Whether a device contains nothing but a btrfs. */
static bool is_filled(struct bw_xlator *device, const struct bw_disk_superblock *block)
{
    struct bw_superblock superblock;
    BW_AUTO_ERROR struct bw_error *error =
        bw_superblock_decode((const void *)block, bw_superblock_offset(0), &superblock);
    return !error && superblock.device.total_bytes == bw_xlator_size(device);
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
static bool is_disk_of_btrfs(const struct building *building, struct bw_xlator *device)
{
    const char *wanted = building->options->partition;
    const struct bw_image image = {.storage = device, .path = NULL};
    const struct bw_partition_info *partition = NULL;
    struct bw_disk *disk = NULL;
    BW_AUTO_ERROR struct bw_error *error = bw_disk_open(&building->frame, &image, &disk);
    if (error || !disk)
        return false;
    bool is_one = disk->has_btrfs;
    if (wanted) {
        BW_AUTO_ERROR struct bw_error *none = bw_partition_find(&disk->table, wanted, &partition);
        is_one = none || partition->btrfs || !partition->room;
    }
    bw_disk_free(disk);
    return is_one && !building->options->volume;
}

static bool detects(const struct building *building, const struct bw_container_type *type,
                    struct bw_xlator *device, struct bw_container_id *id)
{
    *id = (struct bw_container_id){{0}};
    return type->find(&building->frame, device, id) &&
           !(type == &bw_partition_container && !is_volume(device) &&
             is_disk_of_btrfs(building, device));
}

static bool has_layer(const struct bw_xlator *device, const struct bw_container_type *type)
{
    return strcmp(bw_xlator_type(device), type->layer) == 0 ||
           (bw_xlator_child_count(device) && has_layer(bw_xlator_child(device, 0), type));
}

static struct found find_container(const struct building *building, struct bw_xlator *device)
{
    struct bw_disk_superblock block;
    struct found found = {.type = NULL};
    bool is_btrfs = has_magic(building, device, &block);
    if (failure_of(building->stack, device) || (is_btrfs && is_filled(device, &block)))
        return found;
    for (size_t i = 0; bw_container_types[i]; i++) {
        const struct bw_container_type *type = bw_container_types[i];
        if ((!is_btrfs || type->at_end) && detects(building, type, device, &found.id)) {
            found.type = type;
            break;
        }
    }
    if (!found.type && !is_btrfs && building->options->header &&
        !has_layer(device, &bw_luks_container))
        found = (struct found){.type = &bw_luks_container, .lacks_header = true};
    return found;
}

/* Adding layers. */

/* The devices of one container. */
struct group {
    const struct bw_container_type *type;
    struct bw_xlator **devices;
    size_t count;
    struct bw_xlator *header; /* a further child; NULL: none */
};

/* The choice applies to the outermost partition table. */
static const char *chosen_partition(const struct building *building)
{
    return building->stack->used_partition ? NULL : building->options->partition;
}

/* The volume that the user has selected in containers of a type; NULL: none. */
static const char *wanted_volume(const struct building *building,
                                 const struct bw_container_type *type)
{
    const struct bw_fs_options *options = building->options;
    return !type->option                            ? NULL
           : strcmp(type->option, "partition") == 0 ? chosen_partition(building)
           : strcmp(type->option, "volume") == 0    ? options->volume
                                                    : NULL;
}

static struct bw_error *name_layer(const struct bw_graph *graph, const struct group *group,
                                   const char *volume, char **name)
{
    const char *kind = strchr(group->type->layer, '/') + 1;
    const char *below = bw_xlator_name(group->devices[0]);
    int length = volume ? asprintf(name, "%s-%s@%s", kind, volume, below)
                        : asprintf(name, "%s@%s", kind, below);
    for (unsigned number = 2; length >= 0 && bw_graph_find(graph, *name); number++) {
        free(*name);
        length = asprintf(name, "%s@%s-%u", kind, below, number);
    }
    if (length >= 0)
        return NULL;
    *name = NULL; /* asprintf() leaves it undefined */
    return bw_error_no_memory();
}

/* Sets the options of the user that apply to a type of layer. */
static struct bw_error *set_options(const struct bw_fs_options *options, struct bw_xlator *layer,
                                    const struct bw_container_type *type)
{
    char number[24];
    if (type != &bw_luks_container)
        return NULL;
    snprintf(number, sizeof number, "%" PRIu64, options->key_memory);
    if (options->key_memory)
        BW_TRY(bw_layer_set_option(layer, "memory", nowhere, number, nowhere));
    snprintf(number, sizeof number, "%" PRIu64, options->key_work);
    if (options->key_work)
        BW_TRY(bw_layer_set_option(layer, "work", nowhere, number, nowhere));
    return NULL;
}

static struct bw_error *describe_layer(const struct building *building, struct bw_xlator *layer,
                                       const struct group *group, const char *volume)
{
    BW_TRY(bw_layer_set_type(layer, group->type->layer, nowhere));
    for (size_t i = 0; i < group->count; i++)
        BW_TRY(bw_layer_add_child(layer, bw_xlator_name(group->devices[i]), nowhere));
    if (group->header)
        BW_TRY(bw_layer_add_child(layer, bw_xlator_name(group->header), nowhere));
    if (volume)
        BW_TRY(bw_layer_set_option(layer, group->type->option, nowhere, volume, nowhere));
    BW_TRY(set_options(building->options, layer, group->type));
    return bw_graph_check_layer(layer);
}

/* Adds a layer above the devices, and starts it. */
static struct bw_error *add_layer(const struct building *building, const struct group *group,
                                  const char *volume)
{
    struct bw_graph *graph = building->fs->graph;
    struct bw_xlator *layer;
    BW_AUTO_FREE char *name = NULL;
    BW_TRY(name_layer(graph, group, volume, &name));
    BW_TRY(bw_graph_add(graph, bw_graph_index(building->map), name, nowhere, &layer));
    struct bw_error *error = describe_layer(building, layer, group, volume);
    if (!error)
        error = bw_layer_start(layer);
    if (error)
        bw_graph_remove(graph, layer);
    return error ? error : bw_layer_attach(building->map, layer);
}

/* The layers for the volumes of a container. */
struct volumes {
    const struct building *building;
    const struct group *group;
    size_t added;
    struct bw_error *error; /* of the first volume that cannot be shown */
};

static struct bw_error *add_volume(void *context, const char *name)
{
    struct volumes *volumes = context;
    struct bw_error *error = add_layer(volumes->building, volumes->group, name);
    volumes->added += !error;
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    volumes->error = bw_error_first(volumes->error, error);
    return NULL;
}

static struct bw_error *add_layers(const struct building *building, const struct group *group)
{
    const char *wanted = wanted_volume(building, group->type);
    struct volumes volumes = {.building = building, .group = group};
    if (wanted || !group->type->option)
        return add_layer(building, group, wanted);
    struct bw_error *error =
        group->type->list(&building->frame, group->devices, group->count, add_volume, &volumes);
    if (!error && !volumes.added)
        return volumes.error ? volumes.error
                             : bw_error_create(BW_ERROR_NOT_BTRFS, "it contains no volumes");
    if (volumes.error)
        volumes.error = bw_error_prefix(volumes.error, "%s", bw_xlator_image(group->devices[0]));
    building->stack->skipped = bw_error_first(building->stack->skipped, volumes.error);
    return error;
}

/* Adds the layer that reads a header in another file, which all volumes share. */
static struct bw_error *add_header(const struct building *building, struct bw_xlator **header)
{
    struct bw_graph *graph = building->fs->graph;
    *header = bw_graph_find(graph, "header");
    if (*header)
        return NULL;
    BW_TRY(bw_graph_add(graph, 0, "header", nowhere, header));
    BW_TRY(bw_layer_set_type(*header, "storage/file", nowhere));
    BW_TRY(bw_layer_set_option(*header, "path", nowhere, building->options->header, nowhere));
    BW_TRY(bw_graph_check_layer(*header));
    return bw_layer_start(*header);
}

static size_t child_index(const struct bw_xlator *map, const struct bw_xlator *device)
{
    size_t index = 0;
    while (bw_xlator_child(map, index) != device)
        index++;
    return index;
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

/* Replaces the devices of a container by its volumes, in the place of the first device. */
static struct bw_error *open_container(const struct building *building, const struct group *group)
{
    struct bw_xlator *map = building->map;
    const size_t before = bw_xlator_child_count(map), place = child_index(map, group->devices[0]);
    struct bw_error *error = add_layers(building, group);
    if (error && error->code != BW_ERROR_NO_MEMORY)
        return add_failure(building->stack, group->devices[0], error);
    if (error)
        return error;
    building->stack->used_partition |=
        group->type == &bw_partition_container && building->options->partition;
    move_children(map, before, place);
    for (size_t i = 0; i < group->count; i++)
        bw_layer_remove_child(map, child_index(map, group->devices[i]));
    return NULL;
}

/* Rounds. */

static bool is_same_container(const struct found *a, const struct found *b)
{
    return a->type == b->type && memcmp(&a->id, &b->id, sizeof a->id) == 0;
}

/* Opens the container that device `first` is a part of. */
static struct bw_error *open_group(const struct building *building, struct bw_xlator **devices,
                                   struct found *found, size_t count, size_t first)
{
    const struct found wanted = found[first];
    BW_AUTO_FREE struct bw_xlator **members = calloc(count, sizeof(struct bw_xlator *));
    struct group group = {wanted.type, members, 0, NULL};
    if (!members)
        return bw_error_no_memory();
    if (wanted.lacks_header)
        BW_TRY(add_header(building, &group.header));
    for (size_t i = first; i < count; i++) {
        if (i != first && !(wanted.type->joins && is_same_container(&found[i], &wanted)))
            continue;
        members[group.count++] = devices[i];
        found[i].type = NULL;
    }
    struct bw_error *error = open_container(building, &group);
    if (group.count == 1 || error || !failure_of(building->stack, members[0]))
        return error;
    for (size_t i = 1; i < group.count; i++) /* one failure for all of them */
        bw_layer_remove_child(building->map, child_index(building->map, members[i]));
    return NULL;
}

/* Opens containers that consist of one device. Others have to wait until all their devices exist.
 */
static struct bw_error *open_found(const struct building *building, struct bw_xlator **devices,
                                   struct found *found, size_t count, bool *changed)
{
    bool has_single = false;
    for (size_t i = 0; i < count; i++)
        has_single |= found[i].type && !found[i].type->joins;
    for (size_t i = 0; i < count; i++) {
        if (!found[i].type || (has_single && found[i].type->joins))
            continue;
        *changed = true;
        BW_TRY(open_group(building, devices, found, count, i));
    }
    return NULL;
}

static struct bw_error *run_round(const struct building *building, bool *changed)
{
    *changed = false;
    const size_t count = bw_xlator_child_count(building->map);
    BW_AUTO_FREE struct bw_xlator **devices = calloc(count + 1, sizeof(struct bw_xlator *));
    BW_AUTO_FREE struct found *found = calloc(count + 1, sizeof *found);
    if (!devices || !found)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++) {
        devices[i] = bw_xlator_child(building->map, i);
        found[i] = find_container(building, devices[i]);
    }
    return open_found(building, devices, found, count, changed);
}

/* Selecting volumes. */

/* How likely it is that the user means a device, in comparison with others in the same image. */
enum rank {
    RANK_PARTITION, /* one of several, with unknown contents */
    RANK_VOLUME,
    RANK_FAILED,
    RANK_BTRFS,
    RANK_CHOSEN, /* by --volume */
};

static bool is_partition(const struct bw_xlator *device)
{
    return strcmp(bw_xlator_type(device), bw_partition_container.layer) == 0;
}

/* Whether a container could not be opened. A partition without a key does not count: the disk lists
 * all partitions, which helps more. */
static bool has_failed(const struct building *building, const struct bw_xlator *device)
{
    const struct bw_stack_failure *failure = failure_of(building->stack, device);
    return failure && !(is_partition(device) && failure->why->code == BW_ERROR_NOT_FOUND &&
                        !building->options->key_count);
}

/* Whether --volume selects a device, or is the reason why it cannot be shown. */
static bool is_chosen(const struct building *building, struct bw_xlator *device)
{
    struct bw_container_id id;
    return building->options->volume && (has_layer(device, &bw_lvm_container) ||
                                         (failure_of(building->stack, device) &&
                                          bw_lvm_container.find(&building->frame, device, &id)));
}

static enum rank rank_of(const struct building *building, struct bw_xlator *device)
{
    struct bw_disk_superblock block;
    return is_chosen(building, device)           ? RANK_CHOSEN
           : has_magic(building, device, &block) ? RANK_BTRFS
           : has_failed(building, device)        ? RANK_FAILED
           : is_partition(device)                ? RANK_PARTITION
                                                 : RANK_VOLUME;
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

/* A disk whose partitions contain nothing that can be read is shown as a disk again. */
static struct bw_error *restore_disk(const struct building *building, size_t first)
{
    struct bw_xlator *map = building->map, *disk = bw_xlator_child(bw_xlator_child(map, first), 0);
    const size_t count = bw_xlator_child_count(map);
    for (size_t i = count; i-- > 0;)
        if (share_image(disk, bw_xlator_child(map, i)))
            bw_layer_remove_child(map, i);
    const size_t last = bw_xlator_child_count(map);
    building->stack->used_partition = false;
    BW_TRY(bw_layer_attach(map, disk));
    move_children(map, last, first);
    return NULL;
}

/* Whether another device with a share in the same image is more likely. */
static bool is_outranked(const struct bw_xlator *map, const enum rank *ranks, size_t index)
{
    for (size_t i = 0; i < bw_xlator_child_count(map); i++)
        if (ranks[i] > ranks[index] &&
            share_image(bw_xlator_child(map, index), bw_xlator_child(map, i)))
            return true;
    return false;
}

static struct bw_error *drop_volumes(const struct building *building)
{
    struct bw_xlator *map = building->map;
    const size_t count = bw_xlator_child_count(map);
    BW_AUTO_FREE enum rank *ranks = calloc(count + 1, sizeof *ranks);
    BW_AUTO_FREE bool *drops = calloc(count + 1, sizeof *drops);
    if (!ranks || !drops)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++)
        ranks[i] = rank_of(building, bw_xlator_child(map, i));
    for (size_t i = 0; i < count; i++)
        drops[i] = is_outranked(map, ranks, i);
    for (size_t i = count; i-- > 0;)
        if (drops[i])
            bw_layer_remove_child(map, i);
    for (size_t i = 0; i < bw_xlator_child_count(map); i++)
        if (rank_of(building, bw_xlator_child(map, i)) == RANK_PARTITION)
            BW_TRY(restore_disk(building, i));
    return NULL;
}

/* Several file systems. */

static bool read_superblock(const struct building *building, struct bw_xlator *device,
                            struct bw_superblock *superblock)
{
    struct bw_disk_superblock block;
    if (!has_magic(building, device, &block))
        return false;
    BW_AUTO_ERROR struct bw_error *error =
        bw_superblock_decode((const void *)&block, bw_superblock_offset(0), superblock);
    return !error;
}

static struct bw_error *append_volume(struct bw_xlator *device,
                                      const struct bw_superblock *superblock,
                                      struct bw_buffer *text)
{
    char fsid[37];
    BW_AUTO_FREE char *title = NULL;
    BW_TRY(bw_stack_title(device, &title));
    bw_uuid_text(superblock->fsid, fsid);
    bw_buffer_format(text, "%s%s (%s%s%s)", text->length ? ", " : "", title ? title : "it",
                     superblock->label, *superblock->label ? ", " : "", fsid);
    return NULL;
}

/* The file systems in volumes. */
struct choice {
    struct bw_buffer text;          /* describes them */
    struct bw_superblock first;     /* valid if `count` is not 0 */
    bool differ;                    /* not all belong to one file system */
    uint8_t (*uuids)[BW_UUID_SIZE]; /* of their devices */
    size_t count, capacity;
};

static void free_choice(struct choice *choice)
{
    bw_buffer_free(&choice->text);
    free(choice->uuids);
}

static struct bw_error *add_choice(struct choice *choice, struct bw_xlator *device,
                                   const struct bw_superblock *superblock)
{
    if (!BW_ARRAY_RESERVE(choice->uuids, choice->count, choice->capacity))
        return bw_error_no_memory();
    if (!choice->count)
        choice->first = *superblock;
    choice->differ |= !bw_same_file_system(&choice->first, superblock) &&
                      !bw_is_seed(&choice->first) && !bw_is_seed(superblock);
    memcpy(choice->uuids[choice->count++], superblock->device.uuid, BW_UUID_SIZE);
    return append_volume(device, superblock, &choice->text);
}

static int compare_uuids(const void *a, const void *b)
{
    return memcmp(a, b, BW_UUID_SIZE);
}

/* Whether two volumes contain the same device, as an LVM snapshot does. */
static bool has_clones(struct choice *choice)
{
    bool has_one = false;
    if (choice->count > 1)
        qsort(choice->uuids, choice->count, sizeof *choice->uuids, compare_uuids);
    for (size_t i = 1; i < choice->count && !has_one; i++)
        has_one = compare_uuids(choice->uuids[i - 1], choice->uuids[i]) == 0;
    return has_one;
}

/* The user must choose if volumes contain different file systems, or copies of one, unless an image
 * that is no container decides. If none contains any, a volume that cannot be shown may be the one.
 */
static struct bw_error *check_choice(const struct building *building)
{
    __attribute__((cleanup(free_choice))) struct choice choice = {.count = 0};
    bool has_btrfs = false;
    for (size_t i = 0; i < bw_xlator_child_count(building->map); i++) {
        struct bw_xlator *device = bw_xlator_child(building->map, i);
        struct bw_disk_superblock block;
        struct bw_superblock superblock;
        has_btrfs |= has_magic(building, device, &block);
        if (!read_superblock(building, device, &superblock))
            continue;
        if (!is_volume(device))
            return NULL;
        BW_TRY(add_choice(&choice, device, &superblock));
    }
    if (!has_btrfs && building->stack->skipped)
        return BW_TAKE(building->stack->skipped);
    return choice.differ || (!building->options->alternatives && has_clones(&choice))
               ? bw_error_create(BW_ERROR_AMBIGUOUS, "several volumes contain file systems: %.*s",
                                 (int)choice.text.length, choice.text.data)
               : NULL;
}

/* Why no device is in the volume that the user has selected. */
static struct bw_error *no_volume(const struct building *building)
{
    const struct bw_stack *stack = building->stack;
    struct bw_stack_failure *failure = stack->failures.count ? &stack->failures.items[0] : NULL;
    for (size_t i = 0; i < bw_xlator_child_count(building->map); i++) {
        struct bw_xlator *device = bw_xlator_child(building->map, i);
        if (is_chosen(building, device))
            failure = failure_of(stack, device);
    }
    return failure ? bw_error_prefix(BW_TAKE(failure->why), "%s", bw_xlator_image(failure->device))
                   : bw_error_create(BW_ERROR_NOT_FOUND,
                                     "there is no logical volume %s, because no image is a "
                                     "physical volume of LVM",
                                     building->options->volume);
}

/* A volume that the user has selected must exist. */
static struct bw_error *check_volume(const struct building *building)
{
    bool has_group = !building->options->volume;
    for (size_t i = 0; i < bw_xlator_child_count(building->map) && !has_group; i++)
        has_group = has_layer(bw_xlator_child(building->map, i), &bw_lvm_container);
    return has_group ? NULL : no_volume(building);
}

struct bw_error *bw_stack_build(struct bw_fs *fs, struct bw_xlator *map,
                                const struct bw_fs_options *options, struct bw_stack *stack)
{
    const struct building building = {.fs = fs,
                                      .map = map,
                                      .options = options,
                                      .stack = stack,
                                      .frame = bw_frame_above(NULL, fs->graph->probes)};
    bool changed = true, has_changed = false;
    for (size_t round = 0; changed && round < ROUNDS; round++) {
        BW_TRY(run_round(&building, &changed));
        has_changed |= changed;
    }
    if (has_changed) {
        BW_TRY(drop_volumes(&building));
        bw_graph_prune(fs->graph);
    }
    BW_TRY(check_volume(&building));
    return has_changed ? check_choice(&building) : NULL;
}
