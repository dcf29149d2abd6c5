/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `chunks`: chunks with each other, with the block groups, and with the list of system
 * chunks in the superblock. stripes.c goes on with where they lie.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "check/groups.h"
#include "owners/item_stream.h"
#include "check/stripes.h"
#include "ondisk/disk_items.h"
#include "fs/image.h"

/* Where the pass is. */
struct chunks {
    struct bw_check *check;
    struct bw_stripe_list stripes;
    uint64_t last_start, last_end; /* of the chunk before */
    bool *has_chunk;               /* for each block group */
    bool group_missing;            /* of any chunk */
    uint32_t system_chunks;        /* of the chunk tree that the superblock has */
};

static struct bw_subject subject_of(uint64_t tree, const struct bw_key *key, uint64_t logical,
                                    uint64_t length)
{
    return (struct bw_subject){
        .finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY | BW_KNOWN_LOGICAL | BW_KNOWN_LENGTH,
                    .tree = tree,
                    .key = *key,
                    .logical = logical,
                    .length = length}};
}

static void check_group(struct chunks *chunks, const struct bw_key *key, uint64_t length,
                        uint64_t type)
{
    struct bw_check *check = chunks->check;
    const struct bw_checked_group *group = bw_check_group(check, key->offset);
    const struct bw_subject subject = subject_of(BW_CHUNK_TREE, key, key->offset, length);
    if (group)
        chunks->has_chunk[group - check->groups.groups] = true;
    chunks->group_missing |= !group;
    if (!group && !check->groups.incomplete)
        bw_check_find(check, BW_CODE_group_missing, &subject, "the chunk has no block group");
    else if (group && group->length != length)
        bw_check_find(check, BW_CODE_group_differs, &subject,
                      "%" PRIu64 " bytes, its block group has %" PRIu64, length, group->length);
    else if (group && group->flags != type)
        bw_check_find(check, BW_CODE_group_differs, &subject,
                      "type 0x%" PRIx64 ", its block group has 0x%" PRIx64, type, group->flags);
}

static void check_order(struct chunks *chunks, const struct bw_key *key, uint64_t length)
{
    const struct bw_subject subject = subject_of(BW_CHUNK_TREE, key, key->offset, length);
    if (key->offset < chunks->last_end)
        bw_check_find(chunks->check, BW_CODE_chunk_overlap, &subject,
                      "chunk %" PRIu64 " ends at %" PRIu64, chunks->last_start, chunks->last_end);
    chunks->last_start = key->offset;
    chunks->last_end = key->offset + length;
}

/* The next chunk in the superblock's list; false at the end. */
static bool next_system_chunk(struct bw_cursor *cursor, struct bw_item *item)
{
    const struct bw_disk_key *key = (const void *)bw_cursor_take(cursor, sizeof *key);
    if (!key)
        return false;
    item->key = bw_key_decode(key);
    item->size = (uint32_t)bw_chunk_item_size(cursor->next, (size_t)(cursor->end - cursor->next));
    item->data = item->size ? bw_cursor_take(cursor, item->size) : NULL;
    return item->data;
}

static struct bw_cursor system_chunks(const struct bw_check *check)
{
    const struct bw_superblock *superblock = &check->fs->superblock;
    return (struct bw_cursor){superblock->system_chunk_array,
                              superblock->system_chunk_array + superblock->system_chunk_array_size,
                              false};
}

/* The superblock has a copy of each system chunk, from which all else is found. */
static void check_system_chunk(struct chunks *chunks, const struct bw_item *item, uint64_t type)
{
    struct bw_cursor cursor = system_chunks(chunks->check);
    struct bw_item copy;
    const struct bw_subject subject = subject_of(BW_CHUNK_TREE, &item->key, item->key.offset, 0);
    while (next_system_chunk(&cursor, &copy)) {
        if (bw_key_compare(&copy.key, &item->key) != 0)
            continue;
        chunks->system_chunks++;
        if (copy.size != item->size || memcmp(copy.data, item->data, copy.size) != 0)
            bw_check_find(chunks->check, BW_CODE_system_chunk, &subject,
                          "the superblock has the chunk with other contents");
        return;
    }
    if (type & BW_GROUP_SYSTEM)
        bw_check_find(chunks->check, BW_CODE_system_chunk, &subject,
                      "the superblock does not have the chunk");
}

static struct bw_error *take_chunk(struct chunks *chunks, const struct bw_item *item)
{
    const struct bw_disk_chunk *disk = (const void *)item->data;
    struct bw_chunk chunk;
    if (bw_chunk_is_remapped_away(item->data, item->size)) {
        check_order(chunks, &item->key, bw_get64(disk->length));
        check_group(chunks, &item->key, bw_get64(disk->length), bw_get64(disk->type));
        return NULL;
    }
    BW_AUTO_ERROR struct bw_error *bad =
        bw_chunk_decode(item->key.offset, item->data, item->size, &chunk);
    if (bad) { /* items.c says what is wrong */
        chunks->stripes.incomplete = true;
        return NULL;
    }
    check_order(chunks, &item->key, chunk.length);
    check_group(chunks, &item->key, chunk.length, chunk.type);
    if (!chunks->check->fs->is_past)
        check_system_chunk(chunks, item, chunk.type);
    return bw_stripes_add(&chunks->stripes, &chunk) ? NULL : bw_error_no_memory();
}

/* The item of a device has the id of the file system that the device was made for: this one or, of
 * a seed, another one. */
static void check_fsid(struct bw_check *check, const struct bw_item *item)
{
    const struct bw_disk_device_item *disk = (const void *)item->data;
    const struct bw_subject subject = {
        .finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY | BW_KNOWN_DEVICE,
                    .tree = BW_CHUNK_TREE,
                    .key = item->key,
                    .devid = item->key.offset}};
    const struct bw_image *image =
        item->size < sizeof *disk
            ? NULL
            : bw_image_of_device(check->fs, bw_get64(disk->devid), disk->uuid);
    if (image && memcmp(disk->fsid, image->superblock.metadata_uuid, BW_UUID_SIZE) != 0)
        bw_check_find(check, BW_CODE_device_differs, &subject,
                      "the id of the file system is not that of its superblock");
}

static struct bw_error *read_chunks(struct chunks *chunks)
{
    struct bw_item_stream stream;
    struct bw_error *error =
        bw_item_stream_begin(&stream, chunks->check->fs, &chunks->check->trees, BW_CHUNK_TREE);
    for (; !error && !stream.ended; bw_item_stream_next(&stream))
        if (stream.item.key.type == BW_CHUNK_ITEM)
            error = take_chunk(chunks, &stream.item);
        else if (stream.item.key.type == BW_DEVICE_ITEM)
            check_fsid(chunks->check, &stream.item);
    chunks->stripes.incomplete |= stream.lost;
    return bw_item_stream_end(&stream, error);
}

/* Block groups and entries of the superblock that no chunk has met. */
static void check_rest(const struct chunks *chunks)
{
    struct bw_check *check = chunks->check;
    struct bw_cursor cursor = system_chunks(check);
    struct bw_item copy;
    uint32_t count = 0;
    for (size_t i = 0; i < check->groups.count; i++) {
        const struct bw_checked_group *group = &check->groups.groups[i];
        const struct bw_key key = {group->start, BW_BLOCK_GROUP_ITEM, group->length};
        const struct bw_subject subject =
            subject_of(check->fs->block_group_tree.id ? BW_BLOCK_GROUP_TREE : BW_EXTENT_TREE, &key,
                       group->start, group->length);
        if (!chunks->has_chunk[i])
            bw_check_find(check, BW_CODE_chunk_missing, &subject, "the block group has no chunk");
    }
    while (next_system_chunk(&cursor, &copy))
        count++;
    if (!check->fs->is_past && count != chunks->system_chunks)
        bw_check_find(check, BW_CODE_system_chunk, &(struct bw_subject){0},
                      "the superblock has %" PRIu32 " system chunk%s, of which the chunk tree has "
                      "%" PRIu32,
                      count, bw_plural(count), chunks->system_chunks);
}

static struct bw_error *take_device(void *context, const struct bw_device_info *info)
{
    struct bw_stripe_list *list = context;
    if (!BW_ARRAY_RESERVE(list->devices, list->device_count, list->device_capacity))
        return bw_error_no_memory();
    list->devices[list->device_count++] = (struct bw_checked_device){.info = *info};
    return NULL;
}

static struct bw_error *run(struct chunks *chunks)
{
    struct bw_check *check = chunks->check;
    BW_TRY(bw_fs_devices(check->fs, take_device, &chunks->stripes));
    BW_TRY(read_chunks(chunks));
    if (!chunks->stripes.incomplete)
        check_rest(chunks);
    check->groups.incomplete |= chunks->group_missing;
    BW_TRY(bw_stripes_check(&chunks->stripes));
    bw_devices_check(&chunks->stripes);
    return NULL;
}

struct bw_error *bw_pass_chunks(struct bw_check *check)
{
    struct chunks chunks = {.check = check, .stripes = {.check = check}};
    BW_TRY(bw_check_load_groups(check));
    chunks.has_chunk = calloc(check->groups.count + 1, sizeof *chunks.has_chunk);
    struct bw_error *error = chunks.has_chunk ? run(&chunks) : bw_error_no_memory();
    free(chunks.has_chunk);
    free(chunks.stripes.stripes);
    free(chunks.stripes.devices);
    return error;
}
