/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which changes are about a finding. There may be a million findings and hundreds of thousands of
 * changes, so the changes are looked up in an index by the logical addresses of their sectors. It
 * ends with those that have no address: of superblocks.
 */
#include "base/compare.h"
#include "base/search.h"
#include "repair/repair.h"

static int compare_places(const void *first, const void *second)
{
    const struct bw_repair_place_of_change *a = first, *b = second;
    const int order = bw_compare(a->logical, b->logical);
    return order ? order : bw_compare(a->number, b->number);
}

struct bw_error *bw_repair_index_changes(struct bw_repair *repair)
{
    struct bw_repair_index *index = &repair->index;
    index->count = 0;
    BW_TRY(bw_repair_index_reserve(index, repair->changes.count));
    for (size_t i = 0; i < repair->changes.count; i++) {
        const struct bw_repair_change *change = &repair->changes.items[i];
        const uint64_t length = change->unit ? change->length : 1;
        for (uint64_t at = 0; at < length && !change->is_in_block && !change->generation;
             at += repair->fs->superblock.sectorsize)
            BW_TRY(bw_repair_index_push(
                index, (struct bw_repair_place_of_change){change->logical + at, i}));
    }
    bw_repair_index_sort(index, compare_places);
    return NULL;
}

const struct bw_repair_finding *bw_repair_find_same(const struct bw_repair *repair,
                                                    const struct bw_repair_finding *finding)
{
    const struct bw_repair_findings *before = &repair->findings;
    const size_t i = BW_FIRST_INDEX(k, before->count, before->items[k].hash >= finding->hash);
    return i < before->count && before->items[i].hash == finding->hash ? &before->items[i] : NULL;
}

struct bw_repair_matches bw_repair_find_changes(struct bw_repair *repair,
                                                const struct bw_repair_finding *finding)
{
    const struct bw_repair_index *index = &repair->index;
    const uint64_t first = finding->edit ? BW_ABSENT : finding->logical;
    return (struct bw_repair_matches){
        .repair = repair,
        .finding = finding,
        .at = BW_FIRST_INDEX(k, index->count, index->items[k].logical >= first)};
}

struct bw_repair_change *bw_repair_next_match(struct bw_repair_matches *matches)
{
    const struct bw_repair_index *index = &matches->repair->index;
    struct bw_repair_change *changes = matches->repair->changes.items;
    const struct bw_repair_finding *finding = matches->finding;
    const bool has_address = finding->logical != BW_ABSENT && !finding->edit;
    if (finding->block_edit) {
        const bool is_first = matches->at != SIZE_MAX;
        matches->at = SIZE_MAX;
        return is_first ? &changes[finding->block_edit - 1] : NULL;
    }
    while (matches->at < index->count) {
        const struct bw_repair_place_of_change *place = &index->items[matches->at++];
        if (has_address && place->logical - finding->logical >= finding->length)
            break;

        /* An edit of fields, the copy of a superblock at its place, or a block, sector or row at
         * its logical address. */
        struct bw_repair_change *change = &changes[place->number];
        bool is_about = finding->logical != BW_ABSENT || change->offset == finding->offset;
        if (change->edit || finding->edit)
            is_about = change->edit == finding->edit;
        if (is_about)
            return change;
    }
    return NULL;
}
