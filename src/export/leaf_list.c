/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of directories without entries: records of differences. */
#include "export/made_directories.h"

#include <string.h>

void bw_leaf_list_free(struct bw_leaf_list *list)
{
    bw_packed_free(&list->records);
    *list = (struct bw_leaf_list){0};
}

bool bw_leaf_list_add(struct bw_leaf_list *list, const struct bw_leaf *leaf)
{
    struct bw_leaf *last = &list->last;
    uint8_t common = 0;
    while (common < leaf->name_length && common < last->name_length &&
           leaf->name[common] == last->name[common])
        common++;
    const size_t rest = (size_t)(leaf->name_length - common);
    uint8_t *end;
    if (bw_packed_begin(&list->records, sizeof *leaf + 4 * BW_VARINT_LONGEST + BW_LEAF_DETAILS,
                        &end) == BW_NO_RECORD)
        return false;
    end = bw_varint_put(end, leaf->after - last->after);
    end = bw_varint_put_signed(end, (uint64_t)leaf->parent - last->parent);
    *end++ = common;
    *end++ = (uint8_t)rest;
    memcpy(end, leaf->name + common, rest);
    end += rest;
    *end++ = leaf->details_length;
    memcpy(end, leaf->details, leaf->details_length);
    bw_packed_end(&list->records, end + leaf->details_length);
    *last = *leaf;
    last->details = NULL;
    list->count++;
    return true;
}

bool bw_leaf_reader_next(struct bw_leaf_reader *reader)
{
    const struct bw_packed *records = &reader->list->records;
    struct bw_leaf *leaf = &reader->leaf;
    if (reader->count == reader->list->count)
        return false;
    const uint8_t *begin = bw_packed_at(records, reader->place), *at = begin;
    leaf->after += (uint32_t)bw_varint_get(&at);
    leaf->parent += (uint32_t)bw_varint_get_signed(&at);
    const uint8_t common = *at++, rest = *at++;
    memcpy(leaf->name + common, at, rest);
    leaf->name_length = (uint8_t)(common + rest);
    at += rest;
    leaf->details_length = *at++;
    leaf->details = at;
    reader->place =
        bw_packed_next(records, reader->place, (size_t)(at - begin) + leaf->details_length);
    reader->count++;
    return true;
}
