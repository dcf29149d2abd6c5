/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sums of leaves, and how they are combined. */
#include "check/inode_sums.h"

#define NONE UINT64_MAX

/* A leaf that is being summed up. */
struct summing {
    const struct bw_check *check;
    struct bw_inode_sums sums;
    /* the current inode's items minus what its inode claims */
    uint64_t size, bytes;
};

/* Whether the last inode is also the first of the range: then its size is unknown. */
static bool is_open(const struct bw_inode_sums *sums)
{
    return sums->first_inode && sums->first_inode == sums->last_inode;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The extents of the last inode have a gap. */
static void add_gap(struct bw_inode_sums *sums, uint64_t at)
{
    if (is_open(sums))
        sums->first_gap = least(sums->first_gap, at);
    else if (at < sums->last_size)
        sums->broken = true;
}

/* Adds an extent of the last inode. The bytes before the first extent of a range are unknown. */
static void add_extent(struct bw_inode_sums *sums, uint64_t start, uint64_t end)
{
    sums->broken |= sums->last_type && !bw_has_extents(sums->last_type);
    if (is_open(sums) && sums->first_start == NONE)
        sums->first_start = start;
    else if (start < sums->last_end)
        sums->broken = true;
    else if (start > sums->last_end)
        add_gap(sums, sums->last_end);
    sums->last_end = end > start ? end : start;
}

/* The last inode has that many bytes in an item, which are less than 64 KiB, or wrong. */
static void add_stored(struct bw_inode_sums *sums, uint64_t stored)
{
    if (!is_open(sums))
        sums->broken |= stored > sums->last_most && sums->last_most < UINT16_MAX;
    else if (stored > sums->first_stored)
        sums->first_stored = (uint16_t)least(stored, UINT16_MAX);
}

/* Notes a NUL in an inline extent of the last inode: the target of a symbolic link must not contain
 * one. */
static void add_nul(struct bw_inode_sums *sums, uint64_t at)
{
    if (is_open(sums))
        sums->first_nul = (uint16_t)least(sums->first_nul, at);
    else
        sums->broken |= sums->last_type == BW_FILE_SYMLINK && at < sums->last_size;
}

/* The last inode has no more items. */
static void end_inode(struct bw_inode_sums *sums)
{
    add_gap(sums, sums->last_end);
}

/* The last inode is another one, of which the range that follows has the INODE_ITEM. */
static void add_inode_of(struct bw_inode_sums *sums, const struct bw_inode_sums *next)
{
    sums->last_size = next->last_size;
    sums->last_most = next->last_most;
    sums->last_type = next->last_type;
}

void bw_inode_sums_append(struct bw_inode_sums *sums, const struct bw_inode_sums *next)
{
    const uint64_t total = sums->total + next->total, parents = sums->parents + next->parents;
    const bool moved = sums->moved || next->moved;
    const bool incomplete = sums->incomplete || next->incomplete;
    if (!sums->last_inode) {
        const bool broken = sums->broken;
        *sums = *next;
        sums->broken |= broken;
    } else if (next->last_inode) {
        if (sums->last_inode == next->first_inode) {
            if (next->first_start != NONE)
                add_extent(sums, next->first_start, next->first_start);
            if (next->first_gap != NONE)
                add_gap(sums, next->first_gap > sums->last_end ? next->first_gap : sums->last_end);
            add_stored(sums, next->first_stored);
            if (next->first_nul != UINT16_MAX)
                add_nul(sums, next->first_nul);
            if (!is_open(next))
                add_inode_of(sums, next);
            if (!is_open(next) || next->first_start != NONE)
                sums->last_end = next->last_end;
        } else {
            end_inode(sums);
            sums->broken |= next->first_inode != 0;
            sums->last_end = next->last_end;
            add_inode_of(sums, next);
        }
        sums->last_inode = next->last_inode;
        sums->broken |= next->broken;
    }
    sums->total = total;
    sums->parents = parents;
    sums->moved = moved;
    sums->incomplete = incomplete;
}

uint64_t bw_inode_sums_total(const struct bw_inode_sums *sums)
{
    struct bw_inode_sums ended = *sums;
    end_inode(&ended);
    return ended.broken || ended.first_inode ? ended.total | 1 : ended.total;
}

/* The facts of items. */

static void add_size_facts(struct summing *summing)
{
    const uint64_t inode = summing->sums.last_inode;
    if (summing->size)
        summing->sums.total +=
            summing->size * bw_fact_of_inode(&summing->check->secrets, inode, BW_FACT_SIZE);
    if (summing->bytes)
        summing->sums.total +=
            summing->bytes * bw_fact_of_inode(&summing->check->secrets, inode, BW_FACT_BYTES);
    summing->size = summing->bytes = 0;
}

/* Adds the facts of an item of an inode. */
static void sum_item(struct summing *summing, const struct bw_item *item)
{
    const struct bw_fact_secrets *secrets = &summing->check->secrets;
    const struct bw_fs *fs = summing->check->fs;
    const uint64_t number = item->key.objectid;
    struct bw_inode_sums *sums = &summing->sums;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_extent_fact extent;
    struct bw_dir_entry entry;
    struct bw_inode_ref ref;
    struct bw_inode inode;
    switch (item->key.type) {
    case BW_INODE_ITEM:
        if (!bw_inode_decode(item, &inode))
            return;
        sums->last_type = bw_file_type_of_mode(inode.mode);
        sums->total -= bw_names_of(number, &inode) *
                       bw_fact_of_inode(secrets, number, BW_FACT_LINK + sums->last_type);
        if (!inode.link_count)
            sums->total -= bw_fact_of_inode(secrets, number, BW_FACT_ORPHAN);
        if (number == BW_SUBVOLUME_ROOT_INODE)
            sums->total -= bw_fact_of_inode(secrets, number, BW_FACT_TOP);
        if (sums->last_type == BW_FILE_DIRECTORY)
            summing->size -= inode.size;
        summing->bytes -= bw_bytes_to_count(number, &inode);
        sums->last_size = bw_covered_size(fs, &inode, sums->last_type);
        sums->broken |= bw_has_wrong_target(&inode, sums->last_type);
        sums->last_most = (uint16_t)least(bw_most_stored(&inode, sums->last_type), UINT16_MAX);
        break;

    case BW_INODE_REF:
    case BW_INODE_EXTREF:
        while (bw_inode_ref_next(&cursor, &item->key, &ref)) {
            if (bw_is_top_reference(number, &ref)) {
                sums->total += bw_fact_of_inode(secrets, number, BW_FACT_TOP);
                continue;
            }
            const uint64_t name = bw_fact_name(secrets, ref.parent, ref.name, ref.name_length);
            sums->total -= bw_fact_reference(secrets, name, ref.index, number);
        }
        break;

    case BW_DIR_ITEM:
        while (bw_dir_entry_next(&cursor, &entry)) {
            const uint64_t name = bw_fact_name(secrets, number, entry.name, entry.name_length);
            summing->size += entry.name_length;
            sums->total += bw_fact_entry(secrets, name, &entry);
        }
        break;

    case BW_DIR_INDEX:
        while (bw_dir_entry_next(&cursor, &entry)) {
            const uint64_t name = bw_fact_name(secrets, number, entry.name, entry.name_length);
            const uint64_t child = entry.location.objectid;
            summing->size += entry.name_length;
            sums->total -= bw_fact_entry(secrets, name, &entry);
            if (!bw_is_inode_entry(&entry))
                continue;
            sums->total += bw_fact_reference(secrets, name, item->key.offset, child) +
                           bw_fact_of_inode(secrets, child, BW_FACT_LINK + entry.type);
            if (entry.type != BW_FILE_DIRECTORY)
                continue;
            /* Which directory lies in which: see directories.h. */
            sums->parents += bw_fact_mix(number * secrets->number[0] + child * secrets->number[1]);
            sums->moved |= bw_is_moved_directory(&item->key, &entry);
        }
        break;

    case BW_EXTENT_DATA:
        if (!bw_extent_fact_of(item, fs->superblock.sectorsize, &extent))
            return;
        summing->bytes += extent.bytes;
        add_stored(sums, extent.stored);
        if (sums->last_type != BW_FILE_REGULAR) {
            const uint64_t nul = bw_stored_nul(fs, item, extent.stored);
            if (nul != UINT64_MAX)
                add_nul(sums, nul);
        }
        add_extent(sums, item->key.offset, extent.end);
        break;
    }
}

struct bw_inode_sums bw_inode_sums_of_leaf(const struct bw_check *check, const struct bw_node *leaf)
{
    const struct bw_node node = *leaf; /* nothing can change a copy, so it stays in registers */
    struct summing summing = {.check = check};
    struct bw_inode_sums *sums = &summing.sums;
    for (uint32_t slot = 0; slot < node.item_count; slot++) {
        struct bw_item item;
        const bool inside = bw_leaf_item(&node, slot, &item);
        const uint64_t number = item.key.objectid;
        const bool is_inode = bw_is_inode_number(number);
        if (number != sums->last_inode || !slot) {
            /* The items of another inode begin. */
            const bool has_item = item.key.type == BW_INODE_ITEM || !is_inode;
            add_size_facts(&summing);
            if (sums->last_inode) {
                end_inode(sums);
                sums->broken |= !has_item;
            } else if (!has_item) {
                sums->first_inode = number;
                sums->first_start = sums->first_gap = NONE;
                sums->first_nul = UINT16_MAX;
            }
            sums->last_inode = number;
            sums->last_end = sums->last_size = 0;
            sums->last_most = UINT16_MAX;
            sums->last_type = BW_FILE_UNKNOWN;
        }
        if (inside && is_inode)
            sum_item(&summing, &item);
        else if (number == BW_ORPHAN && item.key.type == BW_ORPHAN_ITEM)
            sums->total += bw_fact_of_inode(&check->secrets, item.key.offset, BW_FACT_ORPHAN);
    }
    add_size_facts(&summing);
    return summing.sums;
}
