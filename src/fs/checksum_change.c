/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checksums of data while btrfstune changes their type.
 *
 * The tool first stores the new type in the key of a temporary item. It adds all new checksums to
 * the checksum tree, under the object id BW_CSUM_CHANGE, in ascending order. Then it deletes the
 * old ones, gives the new ones the final object id, the highest addresses first, and at last
 * changes the tree blocks. It may have been interrupted anywhere. In each of these steps, one type
 * is enough for all data:
 *
 *   added     items with the final id are old; the new ones are complete if they reach as far
 *   deleted   only the new items are complete, under BW_CSUM_CHANGE
 *   renamed   all items are new; the highest addresses have the final id
 *
 * The temporary item may be lost, with its leaf: then the data decide which type the new ones have.
 *
 * No item has its own type. Some sectors of data decide which one the items with the final id
 * have; a single sector may be damaged.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/fs.h"
#include "graph/wind.h"
#include "ondisk/checksum.h"

/* The most items, and sectors of each, that are compared. */
enum { ITEMS_TRIED = 64, SECTORS_TRIED = 16 };

/* The size of the smallest checksum. */
enum { SMALLEST = 4 };

uint32_t bw_fs_checksum_size(const struct bw_fs *fs)
{
    const bool final_are_old = fs->changed_checksums_below == UINT64_MAX;
    return (uint32_t)bw_checksum_size(final_are_old ? fs->superblock.checksum_type
                                                    : bw_fs_data_checksum(fs));
}

/* The end of the data whose checksums are under an object id; 0: no checksums. */
static struct bw_error *find_end(struct bw_fs *fs, uint64_t objectid, enum bw_checksum_type type,
                                 uint64_t *end)
{
    const struct bw_key last = {objectid, BW_EXTENT_CSUM, UINT64_MAX};
    struct bw_leaf_finder finder;
    struct bw_item item;
    *end = 0;
    bw_leaf_finder_init(&finder, &fs->reader, &fs->checksum_trees.items[0]);
    struct bw_error *error = bw_fs_find_leaf(fs, &finder, &last);
    if (!error && !finder.lost) {
        const int64_t slot = bw_leaf_last_until(&finder, &last);
        if (slot >= 0 && bw_leaf_item(&finder.leaf, (uint32_t)slot, &item) &&
            item.key.objectid == objectid && item.key.type == BW_EXTENT_CSUM)
            *end = item.key.offset +
                   item.size / bw_checksum_size(type) * (uint64_t)fs->superblock.sectorsize;
    }
    bw_leaf_finder_free(&finder);
    return error;
}

/* Whether data match the checksums of an item: 0 not, 1 as the old type, 2 as `new`. */
static int compare_item(const struct bw_fs *fs, const struct bw_item *item,
                        enum bw_checksum_type new, uint8_t *sector)
{
    const uint32_t sectorsize = fs->superblock.sectorsize;
    const enum bw_checksum_type types[] = {fs->superblock.checksum_type, new};
    for (uint64_t at = 0; at < SECTORS_TRIED && (at + 1) * SMALLEST <= item->size; at++) {
        struct bw_request request = {.kind = BW_REQUEST_RAW,
                                     .length = sectorsize,
                                     .address = item->key.offset + at * sectorsize,
                                     .buffer = sector};
        bw_wind(NULL, fs->reader.top, &request, 1);
        BW_AUTO_ERROR struct bw_error *unreadable = request.error;
        for (int i = 0; i < 2 && !unreadable; i++) {
            const size_t size = bw_checksum_size(types[i]);
            uint8_t found[BW_CSUM_SIZE];
            bw_checksum_compute(types[i], sector, sectorsize, found);
            if ((at + 1) * size <= item->size && memcmp(found, item->data + at * size, size) == 0)
                return i + 1;
        }
    }
    return 0;
}

/* Finds the first item with an object id, and whether these items are of type `new`: the data
 * decide. */
static struct bw_error *compare_data(struct bw_fs *fs, uint64_t objectid, enum bw_checksum_type new,
                                     uint64_t *first, bool *are_new)
{
    BW_AUTO_FREE uint8_t *sector = malloc(fs->superblock.sectorsize);
    if (!sector)
        return bw_error_no_memory();
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, &fs->checksum_trees.items[0],
                      (struct bw_key){objectid, BW_EXTENT_CSUM, 0},
                      (struct bw_key){objectid, BW_EXTENT_CSUM, UINT64_MAX});
    int match = 0;
    *first = UINT64_MAX;
    for (unsigned tried = 0; !match && tried < ITEMS_TRIED; tried++) {
        const struct bw_item *item = bw_fs_items_next(&items);
        if (!item)
            break;
        if (!tried)
            *first = item->key.offset;
        match = compare_item(fs, item, new, sector);
    }
    *are_new = match == 2;
    return bw_fs_items_error(&items);
}

struct bw_error *bw_fs_find_data_checksums(struct bw_fs *fs)
{
    bool are_new;
    enum bw_checksum_type new;
    uint64_t first, old_end, new_end;
    if (!bw_fs_changes_checksums(fs) || !fs->checksum_trees.count)
        return NULL;

    /* The temporary item of the tool contains the new type. If it is gone, the new type is the one
     * whose checksums match the data. */
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, &fs->root_tree,
                      (struct bw_key){BW_CSUM_CHANGE, BW_TEMPORARY_ITEM, 0},
                      (struct bw_key){BW_CSUM_CHANGE, BW_TEMPORARY_ITEM, UINT64_MAX});
    const struct bw_item *item = bw_fs_items_next(&items);
    bool exists = item && item->key.offset < BW_CHECKSUM_TYPES &&
                  item->key.offset != (uint64_t)fs->superblock.checksum_type;
    if (exists)
        new = (enum bw_checksum_type)item->key.offset;
    BW_TRY(bw_fs_items_error(&items));
    for (unsigned type = 0; !exists && type < BW_CHECKSUM_TYPES; type++) {
        new = (enum bw_checksum_type)type;
        BW_TRY(bw_checksum_prepare(new));
        BW_TRY(compare_data(fs, BW_EXTENT_CSUM_OBJECT, new, &first, &exists));
        if (!exists)
            BW_TRY(compare_data(fs, BW_CSUM_CHANGE, new, &first, &exists));
    }
    if (!exists)
        return NULL;
    BW_TRY(bw_checksum_prepare(new));
    BW_TRY(compare_data(fs, BW_EXTENT_CSUM_OBJECT, new, &first, &are_new));
    BW_TRY(find_end(fs, BW_EXTENT_CSUM_OBJECT, fs->superblock.checksum_type, &old_end));
    BW_TRY(find_end(fs, BW_CSUM_CHANGE, new, &new_end));
    if (!are_new && (!new_end || new_end < old_end))
        return NULL;
    fs->data_checksum = (uint32_t) new + 1;
    fs->changed_checksums_below = are_new ? first : UINT64_MAX;
    return NULL;
}
