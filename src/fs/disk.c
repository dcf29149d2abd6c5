/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Disks with a partition table. A disk is opened by reading its table and the superblocks in its
 * partitions. Then the file system is chosen: the one in the partition that the user has selected,
 * or of an image that is no disk, or the only one. Every partition with a device of it is a member;
 * if several are the same device, one is read, by the evidence for what the user means. Last, each
 * disk is replaced by layers for its members.
 */
#include "fs/disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/vector.h"
#include "fs/opening.h"
#include "graph/identify.h"
#include "graph/wind.h"
#include "ondisk/checksum.h"
#include "ondisk/chunk.h"
#include "ondisk/foreign.h"
#include "ondisk/superblock.h"
#include "xlators/layout/md_metadata.h"
#include "xlators/layout/partition_table.h"

static const struct bw_text_place no_location;

#define GIVE_KEY "give the passphrase of LUKS with `keys`, or on a terminal"

/* The partitions are owned by the disk. */
static struct bw_partition_info *partition_of(const struct bw_disk *disk, size_t index)
{
    return (struct bw_partition_info *)(uintptr_t)disk->table.partitions + index;
}

/* Looks for a btrfs in a partition, by each copy of the superblock up to a good one. A partition
 * that is a member of a RAID1 array may begin like the array. */
static void describe_partition(struct bw_disk *disk, size_t index)
{
    struct bw_partition_info *partition = partition_of(disk, index);
    struct bw_partition_content *content = &disk->contents[index];
    uint8_t bytes[BW_SUPERBLOCK_SIZE];
    for (unsigned copy = 0; copy < BW_SUPERBLOCK_COPIES && !content->good; copy++) {
        const uint64_t offset = bw_superblock_offset(copy);
        if (partition->room < offset + sizeof bytes)
            break;
        BW_AUTO_ERROR struct bw_error *error =
            bw_read_super(NULL, disk->storage, partition->offset + offset, bytes);
        if (!error)
            error = bw_superblock_decode(bytes, offset, &content->superblock);
        content->good = !error;
        partition->btrfs |= !error || error->code == BW_ERROR_CORRUPT;
    }
    const struct bw_md_device device = {disk->storage, partition->offset, partition->room};
    struct bw_md_superblock array;
    partition->btrfs = partition->btrfs && !bw_md_is_member(&device, &array);
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

struct bw_error *bw_disk_open(const struct bw_image *image, struct bw_disk **result)
{
    struct bw_disk *disk = calloc(1, sizeof *disk);
    if (!disk)
        return bw_error_no_memory();
    BW_AUTO_ERROR struct bw_error *none = bw_partition_table_read(image->storage, &disk->table);
    disk->storage = image->storage;
    disk->table.path = image->path;
    disk->contents = none ? NULL : calloc(disk->table.count, sizeof *disk->contents);
    if (!disk->contents) {
        bw_disk_free(disk);
        if (!none)
            return bw_error_no_memory();
        return none->code == BW_ERROR_SYSTEM ? bw_error_in(BW_TAKE(none), image->path) : NULL;
    }
    for (size_t i = 0; i < disk->table.count; i++)
        describe_partition(disk, i);
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

static bool is_wanted(const struct bw_fs *fs, const struct bw_disk *disk, size_t index)
{
    return disk->contents[index].good && bw_is_wanted(fs, &disk->contents[index].superblock);
}

bool bw_disk_has_wanted(const struct bw_fs *fs, const struct bw_disk *disk)
{
    for (size_t i = 0; i < disk->table.count; i++)
        if (is_wanted(fs, disk, i))
            return true;
    return false;
}

const struct bw_partition_info *bw_disk_find_btrfs(const struct bw_disk *disk)
{
    for (size_t i = 0; disk && i < disk->table.count; i++)
        if (disk->contents[i].good)
            return &disk->table.partitions[i];
    return NULL;
}

void bw_disk_identify(struct bw_disk *disk)
{
    for (size_t i = 0; i < disk->table.count; i++) {
        struct bw_partition_info *partition = partition_of(disk, i);
        BW_AUTO_BUFFER struct bw_buffer name = {0};
        if (partition->btrfs || partition->extended || !partition->room)
            continue;
        const enum bw_identity identity =
            bw_identify(disk->storage, partition->offset, partition->room, &name);
        disk->contents[i].may_be_lost = identity != BW_FOREIGN && identity != BW_ZEROS &&
                                        partition->room > bw_superblock_offset(0);
        if (identity)
            snprintf(partition->content, sizeof partition->content, "%.*s", (int)name.length,
                     name.data);
    }
}

static bool is_luks(const struct bw_partition_info *partition)
{
    const char *luks = bw_foreign_by_type("crypto_LUKS")->name;
    return strncmp(partition->content, luks, strlen(luks)) == 0;
}

struct bw_error *bw_disk_refuse(const struct bw_disk *disk)
{
    enum { NAMED = 16 };
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    size_t named = 0;
    unsigned unknown = 0;
    bool has_luks = false;
    for (size_t i = 0; i < disk->table.count && named < NAMED; i++) {
        const struct bw_partition_info *partition = &disk->table.partitions[i];
        if (!unknown && disk->contents[i].may_be_lost)
            unknown = partition->number;
        has_luks |= is_luks(partition);
        if (!*partition->content)
            continue;
        bw_buffer_format(&text, "; partition %u is %s", partition->number, partition->content);
        named++;
    }
    const char *kind = strcmp(disk->table.kind, "gpt") == 0 ? "a GPT" : "an MBR";
    struct bw_error *error =
        bw_error_create(BW_ERROR_NOT_BTRFS,
                        "it is a disk with %s partition table, but no partition contains btrfs%.*s",
                        kind, (int)text.length, text.data ? text.data : "");
    if (unknown)
        return bw_error_advise(error, "%s`partition %u` `scan` searches partition %u",
                               has_luks ? GIVE_KEY "; " : "", unknown, unknown);
    return has_luks ? bw_error_advise(error, GIVE_KEY) : error;
}

/* Choosing the file system. */

/* The selected file system, and the source of its superblock. */
struct choice {
    const struct bw_superblock *superblock; /* NULL: there is no valid one */
    const struct bw_disk *disk;             /* disk of the selected partition; NULL: no partition
                                             * was selected */
    size_t index;                           /* index of that partition */
    bool is_made; /* the user selected it, by the partition or by an image that is not a disk */
};

/* Chooses the file system in the partition that the user has selected. With --fsid or --scan, its
 * superblocks may be lost. */
static struct bw_error *find_wanted(const struct bw_fs *fs, const struct bw_image_set *set,
                                    const char *wanted, struct choice *choice)
{
    struct bw_error *error = NULL;
    for (size_t i = 0; i < set->count; i++) {
        struct bw_disk *disk = set->images[i].disk;
        const struct bw_partition_info *found;
        if (!disk)
            continue;
        struct bw_error *why = bw_partition_find(&disk->table, wanted, &found);
        if (why) {
            error = bw_error_first(error, bw_error_in(why, disk->table.path));
            continue;
        }
        bw_error_free(error);
        const size_t index = (size_t)(found - disk->table.partitions);
        *choice = (struct choice){&disk->contents[index].superblock, disk, index, true};
        if (fs->has_wanted_fsid && !is_wanted(fs, disk, index))
            choice->superblock = NULL;
        if (disk->contents[index].good)
            return NULL;
        choice->superblock = NULL;
        if (fs->has_wanted_fsid || fs->scan)
            return NULL;
        bw_disk_identify(disk);
        error =
            bw_error_create(BW_ERROR_NOT_BTRFS, "partition %u contains no btrfs file system%s%s",
                            found->number, *found->content ? ": it is " : "", found->content);
        if (is_luks(found))
            error = bw_error_advise(error, GIVE_KEY);
        return bw_error_in(error, disk->table.path);
    }
    if (error)
        return error;
    error = bw_error_create(BW_ERROR_NOT_FOUND, "%s has no partition table", set->images[0].path);
    return bw_error_about(error, set->images[0].path);
}

/* Chooses the only partition with unknown contents, if no partition contains a btrfs. */
static void find_unknown(const struct bw_image_set *set, struct choice *choice)
{
    struct choice unknown = {.superblock = NULL};
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct bw_disk *disk = set->images[i].disk;
        for (size_t j = 0; disk && j < disk->table.count; j++) {
            if (disk->table.partitions[j].btrfs)
                return;
            if (!disk->contents[j].may_be_lost)
                continue;
            unknown = (struct choice){.disk = disk, .index = j};
            count++;
        }
    }
    if (count == 1)
        *choice = unknown;
}

/* Chooses the file system of an image that is not a disk; without any, all partitions must belong
 * to one. A file system that sprouted from a seed device includes it. */
static struct bw_error *find_only(const struct bw_fs *fs, const struct bw_image_set *set,
                                  struct choice *choice)
{
    const struct bw_superblock *chosen = NULL;
    bool several = false;
    for (size_t i = 0; i < set->count && !chosen; i++)
        if (!set->images[i].disk && !set->images[i].bad &&
            bw_is_wanted(fs, &set->images[i].superblock))
            chosen = &set->images[i].superblock;
    const bool is_given = chosen;
    for (size_t i = 0; i < set->count && !is_given; i++) {
        const struct bw_disk *disk = set->images[i].disk;
        for (size_t j = 0; disk && j < disk->table.count; j++) {
            const struct bw_superblock *superblock = &disk->contents[j].superblock;
            if (!disk->contents[j].good || !bw_is_wanted(fs, superblock))
                continue;
            if (!chosen || (bw_is_seed(chosen) && !bw_is_seed(superblock)))
                chosen = superblock;
            else if (!bw_is_seed(superblock) || bw_is_seed(chosen))
                several |= !bw_same_file_system(chosen, superblock);
        }
    }
    *choice = (struct choice){.superblock = chosen, .is_made = is_given};
    if (!chosen && fs->scan)
        find_unknown(set, choice);
    if (!several)
        return NULL;
    return bw_error_create(BW_ERROR_AMBIGUOUS,
                           "several partitions contain file systems: choose one");
}

/* Selecting partitions. */

/* A partition with a device of the selected file system. */
struct member {
    size_t image_index; /* index of its disk in the images */
    const struct bw_disk *disk;
    size_t index;  /* The partition has this index on the disk. */
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
 * btrfs is read, or only the selected one. */
static bool is_needed(const struct bw_fs *fs, const struct bw_disk *disk, size_t index,
                      const struct choice *choice)
{
    const struct bw_partition_content *content = &disk->contents[index];
    const struct bw_superblock *chosen = choice->superblock;
    if (!chosen && (choice->disk || fs->has_wanted_fsid))
        return disk == choice->disk && index == choice->index;
    if (!content->good || !chosen)
        return disk->table.partitions[index].btrfs && !chosen;
    return bw_same_file_system(&content->superblock, chosen) ||
           (bw_is_seed(&content->superblock) && chosen->device_count > 1);
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

/* Whether a range of a partition contains a tree block of a file system. */
static bool has_block(const struct bw_disk *disk, const struct bw_partition_info *partition,
                      const struct bw_superblock *superblock, struct bw_range range)
{
    const bool is_changing = superblock->flags & BW_SUPER_FLAG_CHANGING_META_CSUM;
    const unsigned others = is_changing ? BW_ALL_CHECKSUMS : 0;
    const uint32_t nodesize = superblock->nodesize;
    uint8_t block[BW_MAX_NODESIZE];
    const struct bw_disk_header *header = (const void *)block;
    for (uint64_t at = range.address; at - range.address < range.length; at += nodesize) {
        if (at >= partition->room || partition->room - at < nodesize)
            return false;
        if (bw_try_read_raw(NULL, disk->storage, partition->offset + at, block, nodesize) &&
            bw_superblock_has_block_id(superblock, header->fsid) &&
            bw_checksum_accepts_block(superblock->checksum_type, others, block, nodesize))
            return true;
    }
    return false;
}

/* Whether a partition without a valid superblock is another copy of the only device of the file
 * system: it contains a tree block in a system chunk. */
static bool is_copy(const struct bw_disk *disk, size_t index,
                    const struct bw_superblock *superblock)
{
    enum { SEARCHED = 32 << 20 };
    const struct bw_partition_info *partition = &disk->table.partitions[index];
    struct bw_chunk chunk;
    size_t position = 0;
    bool found = true;
    if (superblock->device_count != 1 || disk->contents[index].good || partition->extended)
        return false;
    for (;;) {
        BW_AUTO_ERROR struct bw_error *bad =
            bw_system_chunk_next(superblock, &position, &chunk, &found);
        if (bad || !found)
            return false;
        const uint64_t length = chunk.length < SEARCHED ? chunk.length : SEARCHED;
        for (unsigned i = 0; i < chunk.stripe_count; i++) {
            const struct bw_range range = {bw_get64(chunk.stripes[i].offset), length};
            if (has_block(disk, partition, superblock, range))
                return true;
        }
    }
}

/* Collects the partitions to read, one for each device. With --alternatives, all partitions with a
 * device of the file system are read. */
static struct bw_error *find_members(const struct bw_fs *fs, const struct bw_image_set *set,
                                     const struct choice *choice, struct members *members)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct bw_disk *disk = set->images[i].disk;
        for (size_t j = 0; disk && j < disk->table.count; j++)
            if (is_needed(fs, disk, j, choice) ||
                (fs->alternatives && choice->superblock && is_copy(disk, j, choice->superblock)))
                BW_TRY(members_push(members, (struct member){i, disk, j, false}));
    }
    if (!choice->superblock || fs->alternatives)
        return NULL;
    /* An image that is not a disk is the device, rather than a partition. */
    for (size_t i = 0; i < set->count; i++) {
        const struct bw_image *image = &set->images[i];
        for (size_t j = 0; !image->disk && !image->bad && j < members->count; j++)
            members->items[j].is_clone |=
                is_same_device(&image->superblock, superblock_of(&members->items[j]));
    }
    /* Of two partitions that are the same device, the one with more evidence is read. */
    for (size_t i = 0; i < members->count; i++) {
        struct member *first = &members->items[i];
        for (size_t j = i + 1; j < members->count; j++) {
            struct member *second = &members->items[j];
            const unsigned a = weight_of(first, choice), b = weight_of(second, choice);
            if (a == b || !is_same_device(superblock_of(first), superblock_of(second)))
                continue;
            first->is_clone |= a < b;
            second->is_clone |= a > b;
        }
    }
    for (size_t i = 0; i < members->count; i++) {
        const struct member *first = &members->items[i];
        for (size_t j = i + 1; !first->is_clone && j < members->count; j++) {
            const struct member *second = &members->items[j];
            const struct bw_superblock *a = superblock_of(first), *b = superblock_of(second);
            char fsid[37];
            if (second->is_clone || !is_same_device(a, b))
                continue;
            bw_uuid_text(a->fsid, fsid);
            struct bw_error *error = bw_error_create(
                BW_ERROR_AMBIGUOUS,
                "%s partition %u (generation %" PRIu64 ") and %s partition %u (generation %" PRIu64
                ") are both device %" PRIu64 " of the file system %s: choose one",
                first->disk->table.path, member_partition(first)->number, a->generation,
                second->disk->table.path, member_partition(second)->number, b->generation,
                a->device.devid, fsid);
            return bw_error_about(error, first->disk->table.path);
        }
    }
    return NULL;
}

/* Adding layers. */

/* The first partition replaces the image of the disk, with a layer between the disk and the layers
 * above it; further ones are added at the end. */
static struct bw_error *add_partition_image(struct bw_fs *fs, struct bw_xlator *map,
                                            struct bw_image_set *set, size_t image_index,
                                            const struct bw_partition_info *partition)
{
    static const char type[] = "layout/partition";
    struct bw_image *image = &set->images[image_index];
    const struct bw_disk *disk = image->disk;
    const size_t below = bw_graph_index(disk->storage);
    const bool is_first = !image->partition;
    struct bw_xlator *layer;
    char number[16];
    if (is_first) {
        BW_TRY(bw_graph_insert_above(fs->graph, below, type, no_location, &layer));
    } else {
        struct bw_image *images = realloc(set->images, (set->count + 1) * sizeof *images);
        if (!images)
            return bw_error_no_memory();
        set->images = images;
        image = &images[set->count++];
        *image = (struct bw_image){.path = NULL};
        BW_AUTO_FREE char *name = NULL;
        if (asprintf(&name, "partition-%u@%s", partition->number, bw_xlator_name(disk->storage)) <
            0) {
            name = NULL; /* asprintf() leaves it undefined */
            return bw_error_no_memory();
        }
        BW_TRY(bw_graph_add(fs->graph, below + 1, name, no_location, &layer));
        BW_TRY(bw_layer_set_type(layer, type, no_location));
        BW_TRY(bw_layer_add_child(layer, bw_xlator_name(disk->storage), no_location));
    }
    bw_error_free(BW_TAKE(image->bad)); /* of the whole disk */
    image->is_foreign = false;
    image->partition = partition->number;
    image->offset = partition->offset;
    snprintf(number, sizeof number, "%u", partition->number);
    BW_TRY(bw_layer_set_option(layer, "partition", no_location, number, no_location));
    BW_TRY(bw_graph_check_layer(layer));
    if (!is_first)
        BW_TRY(bw_layer_attach(map, layer));
    bw_fs_report_text(fs, BW_NOTE, BW_ERROR_USAGE, "%s: partition %u at %" PRIu64 " is read",
                      disk->table.path, partition->number, partition->offset);
    return NULL;
}

struct bw_error *bw_disks_use(struct bw_fs *fs, struct bw_xlator *map, struct bw_image_set *set,
                              const char *wanted)
{
    struct choice choice = {.superblock = NULL};
    BW_SCOPED(members) struct members members = {.items = NULL};
    const size_t given = set->count;
    if (wanted)
        BW_TRY(find_wanted(fs, set, wanted, &choice));
    else
        BW_TRY(find_only(fs, set, &choice));
    BW_TRY(find_members(fs, set, &choice, &members));
    for (size_t i = 0; i < members.count; i++) {
        const struct member *member = &members.items[i];
        const struct bw_partition_info *partition = member_partition(member);
        if (!member->is_clone) {
            BW_TRY(add_partition_image(fs, map, set, member->image_index, partition));
            continue;
        }
        bw_fs_report_text(fs, BW_NOTE, BW_ERROR_USAGE,
                          "%s: partition %u is not read: it is another copy of device %" PRIu64
                          ", of generation %" PRIu64,
                          member->disk->table.path, partition->number,
                          superblock_of(member)->device.devid, superblock_of(member)->generation);
    }
    /* A disk of which no partition is read is not used. */
    for (size_t i = 0; i < given; i++) {
        struct bw_image *image = &set->images[i];
        if (!image->disk || image->partition || image->bad)
            continue;
        for (size_t j = 0; j < members.count; j++)
            image->is_clone |= members.items[j].image_index == i;
        image->bad =
            bw_error_create(BW_ERROR_NOT_BTRFS, "%s",
                            image->is_clone ? "its devices are read from elsewhere"
                                            : "none of its partitions belongs to the file system");
    }
    return bw_graph_start(fs->graph, map);
}
