/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages in ascending order, found by bisection. Changes mostly come in ascending order, too, so a
 * new page is appended without moving others.
 */
#include "base/patch.h"

#include "base/compare.h"
#include "base/search.h"

enum { SECTORS = BW_PATCH_PAGE / BW_PATCH_SECTOR };

/* The index of the first page with this number or a greater one. */
static size_t find_page(const struct bw_patch *patch, uint64_t number)
{
    const struct bw_patch_pages *pages = &patch->pages;
    const size_t count = pages->count;
    if (count && pages->items[count - 1].number < number)
        return count;
    return BW_FIRST_INDEX(i, count, pages->items[i].number >= number);
}

struct bw_error *bw_patch_write(struct bw_patch *patch, uint64_t offset, const void *bytes,
                                size_t length)
{
    const uint8_t *next = bytes;
    for (size_t done = 0; done < length; done += BW_PATCH_SECTOR) {
        const uint64_t at = offset + done, number = at / BW_PATCH_PAGE;
        const unsigned sector = (unsigned)(at % BW_PATCH_PAGE / BW_PATCH_SECTOR);
        const size_t index = find_page(patch, number);
        if (index == patch->pages.count || patch->pages.items[index].number != number) {
            struct bw_patch_page page = {.number = number, .bytes = calloc(1, BW_PATCH_PAGE)};
            if (!page.bytes)
                return bw_error_no_memory();
            struct bw_error *error = bw_patch_pages_insert(&patch->pages, index, page);
            if (error) {
                free(page.bytes);
                return error;
            }
        }
        struct bw_patch_page *page = &patch->pages.items[index];
        memcpy(page->bytes + (size_t)sector * BW_PATCH_SECTOR, next + done, BW_PATCH_SECTOR);
        page->changed |= (uint8_t)(1u << sector);
    }
    return NULL;
}

void bw_patch_apply(const struct bw_patch *patch, uint64_t offset, void *bytes, size_t length)
{
    const uint64_t end = offset + length;
    for (size_t i = find_page(patch, offset / BW_PATCH_PAGE); i < patch->pages.count; i++) {
        const struct bw_patch_page *page = &patch->pages.items[i];
        const uint64_t start = page->number * BW_PATCH_PAGE;
        if (start >= end)
            break;
        for (unsigned sector = 0; sector < SECTORS; sector++) {
            uint64_t from = start + sector * (uint64_t)BW_PATCH_SECTOR, to = from + BW_PATCH_SECTOR;
            from = from > offset ? from : offset;
            to = bw_min(to, end);
            if (page->changed >> sector & 1 && from < to)
                memcpy((uint8_t *)bytes + (from - offset), page->bytes + (from - start),
                       (size_t)(to - from));
        }
    }
}

bool bw_patch_covers(const struct bw_patch *patch, uint64_t offset, size_t length)
{
    const uint64_t end = offset + length;
    size_t index = find_page(patch, offset / BW_PATCH_PAGE);
    for (uint64_t at = offset / BW_PATCH_SECTOR * BW_PATCH_SECTOR; at < end;
         at += BW_PATCH_SECTOR) {
        const uint64_t number = at / BW_PATCH_PAGE;
        const unsigned sector = (unsigned)(at % BW_PATCH_PAGE / BW_PATCH_SECTOR);
        while (index < patch->pages.count && patch->pages.items[index].number < number)
            index++;
        if (index == patch->pages.count || patch->pages.items[index].number != number ||
            !(patch->pages.items[index].changed >> sector & 1))
            return false;
    }
    return true;
}

uint64_t bw_patch_next(const struct bw_patch *patch, uint64_t offset)
{
    for (size_t i = find_page(patch, offset / BW_PATCH_PAGE); i < patch->pages.count; i++) {
        const struct bw_patch_page *page = &patch->pages.items[i];
        for (unsigned sector = 0; sector < SECTORS; sector++) {
            const uint64_t start =
                page->number * BW_PATCH_PAGE + sector * (uint64_t)BW_PATCH_SECTOR;
            if (page->changed >> sector & 1 && start + BW_PATCH_SECTOR > offset)
                return start > offset ? start : offset;
        }
    }
    return UINT64_MAX;
}

void bw_patch_free(struct bw_patch *patch)
{
    for (size_t i = 0; i < patch->pages.count; i++)
        free(patch->pages.items[i].bytes);
    bw_patch_pages_free(&patch->pages);
}
