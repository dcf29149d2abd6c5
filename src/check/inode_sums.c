/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sums of leaves, and how they are combined. */
#include "check/inode_sums.h"

#define NONE UINT64_MAX

/* A leaf that is being summed up. */
struct summing {
    const struct bw_check *check;
    struct bw_fact_secrets secrets;
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

static void continue_inode(struct bw_inode_sums *sums, const struct bw_inode_sums *next)
{
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
            continue_inode(sums, next);
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
            summing->size * bw_fact_of_inode(&summing->secrets, inode, BW_FACT_SIZE);
    if (summing->bytes)
        summing->sums.total +=
            summing->bytes * bw_fact_of_inode(&summing->secrets, inode, BW_FACT_BYTES);
    summing->size = summing->bytes = 0;
}

/* The items of another number begin. */
static void begin_inode(struct summing *summing, const struct bw_key *key)
{
    struct bw_inode_sums *sums = &summing->sums;
    const bool has_item = key->type == BW_INODE_ITEM || !bw_is_inode_number(key->objectid);
    add_size_facts(summing);
    if (sums->last_inode) {
        end_inode(sums);
        sums->broken |= !has_item;
    } else if (!has_item) {
        sums->first_inode = key->objectid;
        sums->first_start = sums->first_gap = NONE;
        sums->first_nul = UINT16_MAX;
    }
    sums->last_inode = key->objectid;
    sums->last_end = sums->last_size = 0;
    sums->last_most = UINT16_MAX;
    sums->last_type = BW_FILE_UNKNOWN;
}

static void sum_inode(struct summing *summing, const struct bw_item *item)
{
    const uint64_t number = item->key.objectid;
    const struct bw_fact_secrets *secrets = &summing->secrets;
    struct bw_inode_sums *sums = &summing->sums;
    struct bw_inode inode;
    if (!bw_inode_decode(item, &inode))
        return;
    const uint8_t type = bw_file_type_of_mode(inode.mode);
    sums->total -=
        bw_names_of(number, &inode) * bw_fact_of_inode(secrets, number, BW_FACT_LINK + type);
    if (!inode.link_count)
        sums->total -= bw_fact_of_inode(secrets, number, BW_FACT_ORPHAN);
    if (number == BW_SUBVOLUME_ROOT_INODE)
        sums->total -= bw_fact_of_inode(secrets, number, BW_FACT_TOP);
    summing->size -= type == BW_FILE_DIRECTORY ? inode.size : 0;
    summing->bytes -= bw_bytes_to_count(number, &inode);
    sums->last_size = bw_covered_size(summing->check->fs, &inode);
    sums->last_type = type;
    sums->broken |= bw_has_wrong_target(&inode);
    sums->last_most = (uint16_t)least(bw_most_stored(&inode), UINT16_MAX);
}

static void sum_references(struct summing *summing, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    while (bw_inode_ref_next(&cursor, &item->key, &ref))
        if (bw_is_top_reference(item->key.objectid, &ref))
            summing->sums.total +=
                bw_fact_of_inode(&summing->secrets, item->key.objectid, BW_FACT_TOP);
        else
            summing->sums.total -= bw_fact_reference(
                &summing->secrets,
                bw_fact_name(&summing->secrets, ref.parent, ref.name, ref.name_length), ref.index,
                item->key.objectid);
}

/* Which directory lies in which: see directories.h. */
static void sum_directory(struct summing *summing, const struct bw_key *key,
                          const struct bw_dir_entry *entry)
{
    const struct bw_fact_secrets *secrets = &summing->secrets;
    summing->sums.parents += bw_fact_mix(key->objectid * secrets->number[0] +
                                         entry->location.objectid * secrets->number[1]);
    summing->sums.moved |= bw_is_moved_directory(key, entry);
}

static void sum_entries(struct summing *summing, const struct bw_item *item)
{
    const struct bw_fact_secrets *secrets = &summing->secrets;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry)) {
        const uint64_t name =
            bw_fact_name(secrets, item->key.objectid, entry.name, entry.name_length);
        const uint64_t inode = entry.location.objectid, fact = bw_fact_entry(secrets, name, &entry);
        summing->size += entry.name_length;
        summing->sums.total += item->key.type == BW_DIR_ITEM ? fact : -fact;
        if (item->key.type == BW_DIR_INDEX && bw_is_inode_entry(&entry))
            summing->sums.total += bw_fact_reference(secrets, name, item->key.offset, inode) +
                                   bw_fact_of_inode(secrets, inode, BW_FACT_LINK + entry.type);
        if (item->key.type == BW_DIR_INDEX && bw_is_inode_entry(&entry) &&
            entry.type == BW_FILE_DIRECTORY)
            sum_directory(summing, &item->key, &entry);
    }
}

static void sum_file_extent(struct summing *summing, const struct bw_item *item)
{
    struct bw_extent_fact fact;
    if (!bw_extent_fact_of(item, summing->check->fs->superblock.sectorsize, &fact))
        return;
    summing->bytes += fact.bytes;
    add_stored(&summing->sums, fact.stored);
    if (summing->sums.last_type != BW_FILE_REGULAR) {
        const uint64_t nul = bw_stored_nul(summing->check->fs, item, fact.stored);
        if (nul != UINT64_MAX)
            add_nul(&summing->sums, nul);
    }
    add_extent(&summing->sums, item->key.offset, fact.end);
}

static void sum_item(struct summing *summing, const struct bw_item *item)
{
    switch (item->key.type) {
    case BW_INODE_ITEM:
        sum_inode(summing, item);
        break;
    case BW_INODE_REF:
    case BW_INODE_EXTREF:
        sum_references(summing, item);
        break;
    case BW_DIR_ITEM:
    case BW_DIR_INDEX:
        sum_entries(summing, item);
        break;
    case BW_EXTENT_DATA:
        sum_file_extent(summing, item);
        break;
    }
}

struct bw_inode_sums bw_inode_sums_of_leaf(const struct bw_check *check, const struct bw_node *leaf)
{
    struct summing summing = {.check = check, .secrets = bw_fact_secrets_of(check)};
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_item item;
        const bool inside = bw_leaf_item(leaf, slot, &item);
        if (item.key.objectid != summing.sums.last_inode || !slot)
            begin_inode(&summing, &item.key);
        if (inside && bw_is_inode_number(item.key.objectid))
            sum_item(&summing, &item);
        else if (item.key.objectid == BW_ORPHAN && item.key.type == BW_ORPHAN_ITEM)
            summing.sums.total +=
                bw_fact_of_inode(&summing.secrets, item.key.offset, BW_FACT_ORPHAN);
    }
    add_size_facts(&summing);
    return summing.sums;
}
