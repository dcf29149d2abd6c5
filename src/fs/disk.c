/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Disks with a partition table: the contents of partitions, the selection of partitions to read,
 * and their layers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/vector.h"
#include "fs/disk.h"
#include "graph/identify.h"
#include "ondisk/superblock.h"
#include "xlators/layout/md_superblock.h"
#include "xlators/layout/partition_table.h"

/* The partitions are owned by the disk. */
static struct bw_partition_info *partition_of(const struct bw_disk *disk, size_t index)
{
    return (struct bw_partition_info *)(uintptr_t)disk->table.partitions + index;
}

/* Reads a superblock copy in a partition. */
static void read_copy(const struct bw_frame *frame, struct bw_disk *disk, size_t index,
                      unsigned copy)
{
    struct bw_partition_info *partition = partition_of(disk, index);
    struct bw_partition_content *content = &disk->contents[index];
    uint8_t bytes[BW_SUPERBLOCK_SIZE];
    uint64_t offset = bw_superblock_offset(copy);
    struct bw_request request = {.kind = BW_REQUEST_SUPER,
                                 .length = sizeof bytes,
                                 .address = partition->offset + offset,
                                 .buffer = bytes};
    if (partition->room < offset + sizeof bytes)
        return;
    bw_wind(frame, disk->storage, &request, 1);
    BW_AUTO_ERROR struct bw_error *error =
        request.error ? request.error : bw_superblock_decode(bytes, offset, &content->superblock);
    content->good = !error;
    partition->btrfs |= !error || error->code == BW_ERROR_CORRUPT;
}

/* A member of RAID1 may begin like the array. */
static bool is_in_array(const struct bw_frame *frame, const struct bw_disk *disk, size_t index)
{
    struct bw_md_superblock found;
    const struct bw_partition_info *partition = partition_of(disk, index);
    const struct bw_md_device device = {disk->storage, partition->offset, partition->room};
    return bw_md_is_member(frame, &device, &found);
}

static void describe_partition(const struct bw_frame *frame, struct bw_disk *disk, size_t index)
{
    struct bw_partition_info *partition = partition_of(disk, index);
    const struct bw_partition_content *content = &disk->contents[index];
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES && !content->good; copy++)
        read_copy(frame, disk, index, copy);
    partition->btrfs = partition->btrfs && !is_in_array(frame, disk, index);
    if (!partition->btrfs)
        return;
    disk->has_btrfs = true;
    snprintf(partition->content, sizeof partition->content, "%s",
             content->good ? "btrfs" : "btrfs without a good superblock");
    if (!content->good)
        return;
    snprintf(partition->label, sizeof partition->label, "%s", content->superblock.label);
    bw_uuid_text(content->superblock.fsid, partition->content_uuid);
}

struct bw_error *bw_disk_open(const struct bw_frame *frame, const struct bw_image *image,
                              struct bw_disk **result)
{
    struct bw_disk *disk = calloc(1, sizeof *disk);
    if (!disk)
        return bw_error_no_memory();
    BW_AUTO_ERROR struct bw_error *none =
        bw_partition_table_read(frame, image->storage, &disk->table);
    disk->storage = image->storage;
    disk->table.path = image->path;
    disk->contents = none ? NULL : calloc(disk->table.count, sizeof *disk->contents);
    if (!disk->contents) {
        bw_disk_free(disk);
        return none ? NULL : bw_error_no_memory();
    }
    for (size_t i = 0; i < disk->table.count; i++)
        describe_partition(frame, disk, i);
    *result = disk;
    return NULL;
}

void bw_disk_free(struct bw_disk *disk)
{
    if (!disk)
        return;
    bw_partition_table_free(&disk->table);
    free(disk->contents);
    free(disk);
}

void bw_disk_identify(const struct bw_frame *frame, struct bw_disk *disk)
{
    for (size_t i = 0; i < disk->table.count; i++) {
        struct bw_partition_info *partition = partition_of(disk, i);
        BW_AUTO_BUFFER struct bw_buffer name = {0};
        if (!partition->btrfs && !partition->extended && partition->room &&
            bw_identify(frame, disk->storage, partition->offset, partition->room, &name))
            snprintf(partition->content, sizeof partition->content, "%.*s", (int)name.length,
                     name.data);
    }
}

struct bw_error *bw_disk_refuse(const struct bw_disk *disk)
{
    enum { NAMED = 16 };
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    size_t named = 0;
    for (size_t i = 0; i < disk->table.count && named < NAMED; i++) {
        const struct bw_partition_info *partition = &disk->table.partitions[i];
        if (!*partition->content)
            continue;
        bw_buffer_format(&text, "; partition %u is %s", partition->number, partition->content);
        named++;
    }
    return bw_error_create(
        BW_ERROR_NOT_BTRFS,
        "it is a disk with %s partition table, but no partition contains btrfs%.*s",
        strcmp(disk->table.kind, "gpt") == 0 ? "a GPT" : "an MBR", (int)text.length,
        text.data ? text.data : "");
}

/* Selecting partitions and creating their layers. */

static const struct bw_text_place nowhere;

/* Selecting the file system. */

/* The selected file system, and the source of its superblock. */
struct choice {
    const struct bw_superblock *superblock; /* NULL: there is no valid one */
    const struct bw_disk *disk;             /* disk of the selected partition; NULL: no partition
                                             * was selected */
    size_t index;                           /* index of that partition */
    bool is_made; /* the user selected it, by the partition or by an image that is not a disk */
};

static struct bw_error *choose_wanted(struct bw_disk *disk, const struct bw_partition_info *found,
                                      struct choice *choice)
{
    const size_t index = (size_t)(found - disk->table.partitions);
    const struct bw_partition_content *content = &disk->contents[index];
    *choice = (struct choice){&content->superblock, disk, index, true};
    if (content->good)
        return NULL;
    bw_disk_identify(NULL, disk);
    return bw_error_create(BW_ERROR_NOT_BTRFS, "%s: partition %u contains no btrfs file system%s%s",
                           disk->table.path, found->number, *found->content ? ": it is " : "",
                           found->content);
}

static struct bw_error *find_wanted(const struct bw_image_set *set, const char *wanted,
                                    struct choice *choice)
{
    struct bw_error *error = NULL;
    for (size_t i = 0; i < set->count; i++) {
        struct bw_disk *disk = set->images[i].disk;
        const struct bw_partition_info *found;
        if (!disk)
            continue;
        struct bw_error *why = bw_partition_find(&disk->table, wanted, &found);
        if (!why) {
            bw_error_free(error);
            return choose_wanted(disk, found, choice);
        }
        error = bw_error_first(error, bw_error_prefix(why, "%s", disk->table.path));
    }
    return error
               ? error
               : bw_error_create(BW_ERROR_USAGE, "%s has no partition table", set->images[0].path);
}

/* Candidates from the superblocks of several partitions. */
struct candidates {
    const struct bw_superblock *chosen; /* NULL: none yet */
    bool several;
};

/* A file system that sprouted from a seed device includes it. */
static void consider_superblock(struct candidates *candidates,
                                const struct bw_superblock *superblock)
{
    const struct bw_superblock *chosen = candidates->chosen;
    if (!chosen || (bw_is_seed(chosen) && !bw_is_seed(superblock)))
        candidates->chosen = superblock;
    else if (!bw_is_seed(superblock) || bw_is_seed(chosen))
        candidates->several |= !bw_same_file_system(chosen, superblock);
}

static void consider_disk(struct candidates *candidates, const struct bw_disk *disk)
{
    for (size_t i = 0; i < disk->table.count; i++)
        if (disk->contents[i].good)
            consider_superblock(candidates, &disk->contents[i].superblock);
}

/* Images that are not disks decide; without any, all partitions must belong to one file system. */
static struct bw_error *find_only(const struct bw_image_set *set, struct choice *choice)
{
    struct candidates candidates = {NULL, false};
    for (size_t i = 0; i < set->count && !candidates.chosen; i++)
        if (!set->images[i].disk && !set->images[i].bad)
            candidates.chosen = &set->images[i].superblock;
    const bool is_given = candidates.chosen;
    for (size_t i = 0; i < set->count && !is_given; i++)
        if (set->images[i].disk)
            consider_disk(&candidates, set->images[i].disk);
    *choice = (struct choice){.superblock = candidates.chosen, .is_made = is_given};
    return candidates.several
               ? bw_error_create(BW_ERROR_AMBIGUOUS,
                                 "several partitions contain file systems: choose one")
               : NULL;
}

/* Selecting partitions. */

/* A partition with a device of the selected file system. */
struct member {
    size_t image_index; /* index of its disk in the images */
    const struct bw_disk *disk;
    size_t index;  /* of the partition */
    bool is_clone; /* another partition is read instead */
};

BW_VECTOR(members, struct member);

static const struct bw_superblock *superblock_of(const struct member *member)
{
    return &member->disk->contents[member->index].superblock;
}

static const struct bw_partition_info *member_partition(const struct member *member)
{
    return &member->disk->table.partitions[member->index];
}

/* Whether a partition must be read. If no partition has a valid superblock, every partition with a
 * btrfs is read. */
static bool is_needed(const struct bw_disk *disk, size_t index, const struct bw_superblock *chosen)
{
    const struct bw_partition_content *content = &disk->contents[index];
    if (!content->good || !chosen)
        return disk->table.partitions[index].btrfs && !chosen;
    return bw_same_file_system(&content->superblock, chosen) ||
           (bw_is_seed(&content->superblock) && chosen->device_count > 1);
}

static struct bw_error *add_members(const struct bw_image_set *set, const struct choice *choice,
                                    struct members *members)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct bw_disk *disk = set->images[i].disk;
        for (size_t j = 0; disk && j < disk->table.count; j++) {
            if (!is_needed(disk, j, choice->superblock))
                continue;
            BW_TRY(members_push(members, (struct member){i, disk, j, false}));
        }
    }
    return NULL;
}

static bool is_same_device(const struct bw_superblock *a, const struct bw_superblock *b)
{
    return a->device.devid == b->device.devid && bw_same_file_system(a, b);
}

/* The evidence that the user means this partition. Devices of one file system have the same
 * generation; clones of it have different ones after a while. */
static unsigned weight_of(const struct member *member, const struct choice *choice)
{
    if (!choice->is_made)
        return 0;
    if (member->disk == choice->disk && member->index == choice->index)
        return 2;
    return superblock_of(member)->generation == choice->superblock->generation;
}

static struct bw_error *refuse_clones(const struct member *first, const struct member *second)
{
    const struct bw_superblock *a = superblock_of(first), *b = superblock_of(second);
    char fsid[37];
    bw_uuid_text(a->fsid, fsid);
    return bw_error_create(BW_ERROR_AMBIGUOUS,
                           "%s partition %u (generation %" PRIu64
                           ") and %s partition %u (generation %" PRIu64 ") are both device %" PRIu64
                           " of the file system %s: choose one",
                           first->disk->table.path, member_partition(first)->number, a->generation,
                           second->disk->table.path, member_partition(second)->number,
                           b->generation, a->device.devid, fsid);
}

/* If a device is already given as an image that is not a disk, partitions with the same device are
 * not read. */
static void exclude_given_devices(const struct bw_image_set *set, struct members *members)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct bw_image *image = &set->images[i];
        for (size_t j = 0; !image->disk && !image->bad && j < members->count; j++)
            members->items[j].is_clone |=
                is_same_device(&image->superblock, superblock_of(&members->items[j]));
    }
}

/* Selects one partition for each device. */
static struct bw_error *drop_clones(const struct choice *choice, struct members *members)
{
    for (size_t i = 0; i < members->count; i++) {
        struct member *first = &members->items[i];
        for (size_t j = i + 1; j < members->count; j++) {
            struct member *second = &members->items[j];
            const unsigned a = weight_of(first, choice), b = weight_of(second, choice);
            if (a != b && is_same_device(superblock_of(first), superblock_of(second)))
                *(a < b ? &first->is_clone : &second->is_clone) = true;
        }
    }
    for (size_t i = 0; i < members->count; i++) {
        const struct member *first = &members->items[i];
        for (size_t j = i + 1; !first->is_clone && j < members->count; j++) {
            const struct member *second = &members->items[j];
            if (!second->is_clone && is_same_device(superblock_of(first), superblock_of(second)))
                return refuse_clones(first, second);
        }
    }
    return NULL;
}

/* With --alternatives, all partitions with a device of the file system are read. */
static struct bw_error *find_members(const struct bw_fs *fs, const struct bw_image_set *set,
                                     const struct choice *choice, struct members *members)
{
    BW_TRY(add_members(set, choice, members));
    if (!choice->superblock || fs->alternatives)
        return NULL;
    exclude_given_devices(set, members);
    return drop_clones(choice, members);
}

/* Creating layers. */

/* Inserts a layer between the disk and the layers above it. */
static struct bw_error *insert_first(struct bw_graph *graph, const struct bw_disk *disk,
                                     struct bw_xlator **layer)
{
    return bw_graph_insert_above(graph, bw_graph_index(disk->storage), "layout/partition", nowhere,
                                 layer);
}

static struct bw_error *add_another(struct bw_graph *graph, const struct bw_disk *disk,
                                    unsigned number, struct bw_xlator **layer)
{
    BW_AUTO_FREE char *name = NULL;
    if (asprintf(&name, "partition-%u@%s", number, bw_xlator_name(disk->storage)) < 0)
        return bw_error_no_memory();
    BW_TRY(bw_graph_add(graph, bw_graph_index(disk->storage) + 1, name, nowhere, layer));
    BW_TRY(bw_layer_set_type(*layer, "layout/partition", nowhere));
    return bw_layer_add_child(*layer, bw_xlator_name(disk->storage), nowhere);
}

static struct bw_error *set_number(struct bw_xlator *layer, unsigned number)
{
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    BW_TRY(bw_layer_set_option(layer, "partition", nowhere, text, nowhere));
    return bw_graph_check_layer(layer);
}

static struct bw_error *add_image(struct bw_image_set *set, struct bw_image **image)
{
    struct bw_image *images = realloc(set->images, (set->count + 1) * sizeof *images);
    if (!images)
        return bw_error_no_memory();
    set->images = images;
    *image = &images[set->count++];
    **image = (struct bw_image){.path = NULL};
    return NULL;
}

/* The first partition replaces the image of the disk; further ones are added at the end. */
static struct bw_error *add_partition_image(struct bw_fs *fs, struct bw_xlator *map,
                                            struct bw_image_set *set, size_t image_index,
                                            const struct bw_partition_info *partition)
{
    struct bw_image *image = &set->images[image_index];
    const struct bw_disk *disk = image->disk;
    struct bw_xlator *layer;
    bool is_first = !image->partition;
    if (!is_first)
        BW_TRY(add_image(set, &image));
    image->partition = partition->number;
    image->offset = partition->offset;
    BW_TRY(is_first ? insert_first(fs->graph, disk, &layer)
                    : add_another(fs->graph, disk, partition->number, &layer));
    BW_TRY(set_number(layer, partition->number));
    if (!is_first)
        BW_TRY(bw_layer_attach(map, layer));
    bw_fs_report(fs, BW_NOTE,
                 bw_error_create(BW_ERROR_USAGE, "%s: partition %u at %" PRIu64 " is read",
                                 disk->table.path, partition->number, partition->offset));
    return NULL;
}

static void report_clone(struct bw_fs *fs, const struct member *member)
{
    bw_fs_report(
        fs, BW_NOTE,
        bw_error_create(BW_ERROR_USAGE,
                        "%s: partition %u is not read: it is another copy of device %" PRIu64
                        ", of generation %" PRIu64,
                        member->disk->table.path, member_partition(member)->number,
                        superblock_of(member)->device.devid, superblock_of(member)->generation));
}

/* Marks a disk as unused if none of its partitions is read. */
static void set_unused(struct bw_image *disk, size_t image_index, const struct members *members)
{
    for (size_t i = 0; i < members->count; i++)
        disk->is_clone |= members->items[i].image_index == image_index;
    disk->bad = bw_error_create(BW_ERROR_NOT_BTRFS, disk->is_clone
                                                        ? "its devices are read from elsewhere"
                                                        : "none of its partitions belongs to the "
                                                          "file system");
}

static struct bw_error *replace_disks(struct bw_fs *fs, struct bw_xlator *map,
                                      struct bw_image_set *set, const struct members *members)
{
    const size_t given = set->count;
    for (size_t i = 0; i < members->count; i++) {
        const struct member *member = &members->items[i];
        if (member->is_clone)
            report_clone(fs, member);
        else
            BW_TRY(
                add_partition_image(fs, map, set, member->image_index, member_partition(member)));
    }
    for (size_t i = 0; i < given; i++)
        if (set->images[i].disk && !set->images[i].partition && !set->images[i].bad)
            set_unused(&set->images[i], i, members);
    return NULL;
}

struct bw_error *bw_disks_use(struct bw_fs *fs, struct bw_xlator *map, struct bw_image_set *set,
                              const char *wanted)
{
    struct choice choice = {.superblock = NULL};
    struct members members = {.items = NULL};
    BW_TRY(wanted ? find_wanted(set, wanted, &choice) : find_only(set, &choice));
    struct bw_error *error = find_members(fs, set, &choice, &members);
    if (!error)
        error = replace_disks(fs, map, set, &members);
    free(members.items);
    return error ? error : bw_graph_start(fs->graph, map);
}
