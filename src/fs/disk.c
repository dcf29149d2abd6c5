/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Disks with a partition table: the contents of their partitions, the choice of the partitions
 * that are read, and the layers for them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "fs/disk.h"
#include "graph/identify.h"
#include "ondisk/superblock.h"
#include "xlators/layout/partition_table.h"

/* The partitions belong to the disk. */
static struct bw_partition_info *partition_of(const struct bw_disk *disk, size_t index)
{
    return (struct bw_partition_info *)(uintptr_t)disk->table.partitions + index;
}

/* Reads a copy of the superblock in a partition. */
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

static void look_into(const struct bw_frame *frame, struct bw_disk *disk, size_t index)
{
    struct bw_partition_info *partition = partition_of(disk, index);
    const struct bw_partition_content *content = &disk->contents[index];
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES && !content->good; copy++)
        read_copy(frame, disk, index, copy);
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
        look_into(frame, disk, i);
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
    return bw_error_create(BW_ERROR_NOT_BTRFS,
                           "it is a disk with %s partition table, and no partition holds btrfs%.*s",
                           strcmp(disk->table.kind, "gpt") == 0 ? "a GPT" : "an MBR",
                           (int)text.length, text.data ? text.data : "");
}

/* Which partitions of the disks given are read, and the layers for them. */

static const struct bw_text_place nowhere;

/* Choosing the file system. */

/* The file system that is opened, and where its superblock was found. */
struct choice {
    const struct bw_superblock *superblock; /* NULL: there is no good one */
    const struct bw_disk *disk;             /* the disk with the chosen partition; NULL: none was */
    size_t index;                           /* of that partition */
    bool is_made; /* by the caller, by naming the partition or passing an image that is no disk */
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
    return bw_error_create(BW_ERROR_NOT_BTRFS, "%s: partition %u holds no btrfs file system%s%s",
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

/* What the superblocks of several partitions come down to. */
struct candidates {
    const struct bw_superblock *chosen; /* NULL: none so far */
    bool several;
};

/* A seed device goes with the file system that has sprouted from it. */
static void consider(struct candidates *candidates, const struct bw_superblock *superblock)
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
            consider(candidates, &disk->contents[i].superblock);
}

/* Images that are no disks decide; otherwise there must be one file system on all disks. */
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
    return candidates.several ? bw_error_create(BW_ERROR_AMBIGUOUS,
                                                "there are several file systems in partitions: one "
                                                "has to be chosen")
                              : NULL;
}

/* Choosing the partitions. */

/* A partition that holds a device of the chosen file system. */
struct member {
    size_t place; /* of its disk, among the images */
    const struct bw_disk *disk;
    size_t index;  /* of the partition */
    bool is_clone; /* a different one is read as this device */
};

struct members {
    struct member *members;
    size_t count, capacity;
};

static const struct bw_superblock *superblock_of(const struct member *member)
{
    return &member->disk->contents[member->index].superblock;
}

static const struct bw_partition_info *member_partition(const struct member *member)
{
    return &member->disk->table.partitions[member->index];
}

/* Whether a partition has to be read. Without any good superblock, all are as good. */
static bool belongs(const struct bw_disk *disk, size_t index, const struct bw_superblock *chosen)
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
            if (!belongs(disk, j, choice->superblock))
                continue;
            if (!BW_ARRAY_RESERVE(members->members, members->count, members->capacity))
                return bw_error_no_memory();
            members->members[members->count++] = (struct member){i, disk, j, false};
        }
    }
    return NULL;
}

static bool is_same_device(const struct bw_superblock *a, const struct bw_superblock *b)
{
    return a->device.devid == b->device.devid && bw_same_file_system(a, b);
}

/* How much speaks for a partition being the one that the caller means. Devices of one file system
 * commit the same generations, which clones of it do not for long. */
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
                           " of the file system %s: one has to be chosen",
                           first->disk->table.path, member_partition(first)->number, a->generation,
                           second->disk->table.path, member_partition(second)->number,
                           b->generation, a->device.devid, fsid);
}

/* Images that are no disks were given by themselves: no partition takes the place of one. */
static void drop_given(const struct bw_image_set *set, struct members *members)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct bw_image *image = &set->images[i];
        for (size_t j = 0; !image->disk && !image->bad && j < members->count; j++)
            members->members[j].is_clone |=
                is_same_device(&image->superblock, superblock_of(&members->members[j]));
    }
}

/* Leaves one partition for each device. */
static struct bw_error *drop_clones(const struct choice *choice, struct members *members)
{
    for (size_t i = 0; i < members->count; i++) {
        struct member *first = &members->members[i];
        for (size_t j = i + 1; j < members->count; j++) {
            struct member *second = &members->members[j];
            const unsigned a = weight_of(first, choice), b = weight_of(second, choice);
            if (a != b && is_same_device(superblock_of(first), superblock_of(second)))
                *(a < b ? &first->is_clone : &second->is_clone) = true;
        }
    }
    for (size_t i = 0; i < members->count; i++) {
        const struct member *first = &members->members[i];
        for (size_t j = i + 1; !first->is_clone && j < members->count; j++) {
            const struct member *second = &members->members[j];
            if (!second->is_clone && is_same_device(superblock_of(first), superblock_of(second)))
                return refuse_clones(first, second);
        }
    }
    return NULL;
}

static struct bw_error *find_members(const struct bw_image_set *set, const struct choice *choice,
                                     struct members *members)
{
    BW_TRY(add_members(set, choice, members));
    if (!choice->superblock)
        return NULL;
    drop_given(set, members);
    return drop_clones(choice, members);
}

/* Making the layers. */

/* A layer between the disk and the layers on it. */
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

/* The first partition takes the place of the disk, others come after all images. */
static struct bw_error *use_partition(struct bw_fs *fs, struct bw_xlator *map,
                                      struct bw_image_set *set, size_t place,
                                      const struct bw_partition_info *partition)
{
    struct bw_image *image = &set->images[place];
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

/* A disk of which no partition is read. */
static void set_unused(struct bw_image *disk, size_t place, const struct members *members)
{
    for (size_t i = 0; i < members->count; i++)
        disk->is_clone |= members->members[i].place == place;
    disk->bad = bw_error_create(BW_ERROR_NOT_BTRFS, disk->is_clone
                                                        ? "its devices are read from elsewhere"
                                                        : "none of its partitions belongs to the "
                                                          "file system");
}

static struct bw_error *use_members(struct bw_fs *fs, struct bw_xlator *map,
                                    struct bw_image_set *set, const struct members *members)
{
    const size_t given = set->count;
    for (size_t i = 0; i < members->count; i++) {
        const struct member *member = &members->members[i];
        if (member->is_clone)
            report_clone(fs, member);
        else
            BW_TRY(use_partition(fs, map, set, member->place, member_partition(member)));
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
    struct members members = {.members = NULL};
    BW_TRY(wanted ? find_wanted(set, wanted, &choice) : find_only(set, &choice));
    struct bw_error *error = find_members(set, &choice, &members);
    if (!error)
        error = use_members(fs, map, set, &members);
    free(members.members);
    return error ? error : bw_graph_start(fs->graph, map);
}
