/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which partitions of the disks given are read, and the layers for them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "format/superblock.h"
#include "fs/disk.h"
#include "xlators/layout/partition_table.h"

static const struct bw_text_place nowhere;

/* Choosing the file system. */

static struct bw_error *take_wanted(struct bw_disk *disk, const struct bw_partition_info *found,
                                    const struct bw_superblock **superblock)
{
    const struct bw_partition_content *content = &disk->contents[found - disk->table.partitions];
    *superblock = &content->superblock;
    if (content->good)
        return NULL;
    bw_disk_identify(NULL, disk);
    return bw_error_create(BW_ERROR_NOT_BTRFS, "%s: partition %u holds no btrfs file system%s%s",
                           disk->table.path, found->number, *found->content ? ": it is " : "",
                           found->content);
}

static struct bw_error *find_wanted(const struct bw_image_set *set, const char *wanted,
                                    const struct bw_superblock **superblock)
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
            return take_wanted(disk, found, superblock);
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
static struct bw_error *find_only(const struct bw_image_set *set,
                                  const struct bw_superblock **superblock)
{
    struct candidates candidates = {NULL, false};
    for (size_t i = 0; i < set->count && !candidates.chosen; i++)
        if (!set->images[i].disk && !set->images[i].bad)
            candidates.chosen = &set->images[i].superblock;
    bool is_given = candidates.chosen;
    for (size_t i = 0; i < set->count && !is_given; i++)
        if (set->images[i].disk)
            consider_disk(&candidates, set->images[i].disk);
    *superblock = candidates.chosen;
    return candidates.several ? bw_error_create(BW_ERROR_AMBIGUOUS,
                                                "there are several file systems in partitions: one "
                                                "has to be chosen")
                              : NULL;
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

static struct bw_error *use_disk(struct bw_fs *fs, struct bw_xlator *map, struct bw_image_set *set,
                                 size_t place, const struct bw_superblock *chosen)
{
    const struct bw_disk *disk = set->images[place].disk;
    for (size_t i = 0; i < disk->table.count; i++)
        if (belongs(disk, i, chosen))
            BW_TRY(use_partition(fs, map, set, place, &disk->table.partitions[i]));
    if (!set->images[place].partition && !set->images[place].bad)
        set->images[place].bad = bw_error_create(
            BW_ERROR_NOT_BTRFS, "none of its partitions belongs to the file system");
    return NULL;
}

struct bw_error *bw_disks_use(struct bw_fs *fs, struct bw_xlator *map, struct bw_image_set *set,
                              const char *wanted)
{
    const struct bw_superblock *chosen = NULL;
    const size_t given = set->count;
    BW_TRY(wanted ? find_wanted(set, wanted, &chosen) : find_only(set, &chosen));
    for (size_t i = 0; i < given; i++)
        if (set->images[i].disk)
            BW_TRY(use_disk(fs, map, set, i, chosen));
    return bw_graph_start(fs->graph, map);
}
