/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data that were read and verified, as a bit for each sector. */
#include "cli/rescue/rescue.h"

#include <string.h>

enum {
    SECTORS = RESCUE_VERIFIED_SECTORS,
    MOST_PAGES = 1 << 17, /* 2 TiB of data, in 64 MiB of memory */
};

/* The page of a sector, or NULL. */
static struct rescue_verified_page *page_of(const struct rescue_verified *verified, uint64_t sector)
{
    const uint32_t position = bw_key_map_get(&verified->positions, sector / SECTORS, UINT32_MAX);
    return position == UINT32_MAX ? NULL : &verified->pages.items[position];
}

/* The sectors of the data of an extent; false if it has none on disk. */
static bool sectors_of(const struct rescue_verified *verified, const struct bw_extent *extent,
                       uint64_t *first, uint64_t *end)
{
    const uint32_t size = verified->sectorsize;
    *first = extent->used_logical / size;
    *end = (extent->used_logical + extent->used_stored + size - 1) / size;
    return extent->kind == BW_EXTENT_REGULAR && extent->used_stored;
}

bool rescue_verified_has(struct rescue_verified *verified, const struct bw_extent *extent)
{
    uint64_t first, end;
    bool has = true;
    if (!sectors_of(verified, extent, &first, &end))
        return extent->kind != BW_EXTENT_BAD;
    pthread_mutex_lock(&verified->lock);
    for (uint64_t sector = first; sector < end && has; sector++) {
        const struct rescue_verified_page *page = page_of(verified, sector);
        has = page && page->bits[sector % SECTORS / 64] >> sector % 64 & 1;
    }
    pthread_mutex_unlock(&verified->lock);
    return has;
}

/* If there are too many pages, all are forgotten. */
bool rescue_verified_add(struct rescue_verified *verified, const struct bw_extent *extent)
{
    uint64_t first, end;
    bool good = true;
    if (!sectors_of(verified, extent, &first, &end))
        return true;
    pthread_mutex_lock(&verified->lock);
    for (uint64_t sector = first; sector < end; sector++) {
        struct rescue_verified_page *page = page_of(verified, sector);
        if (!page) {
            if (verified->pages.count == MOST_PAGES) {
                bw_key_map_clear(&verified->positions);
                verified->pages.count = 0;
            }
            good = !rescue_verified_pages_reserve(&verified->pages, 1) &&
                   !bw_key_map_put(&verified->positions, sector / SECTORS,
                                   (uint32_t)verified->pages.count);
            if (!good)
                break;
            page = &verified->pages.items[verified->pages.count++];
            memset(page, 0, sizeof *page);
        }
        page->bits[sector % SECTORS / 64] |= UINT64_C(1) << sector % 64;
    }
    pthread_mutex_unlock(&verified->lock);
    return good;
}

void rescue_verified_free(struct rescue_verified *verified)
{
    bw_key_map_free(&verified->positions);
    rescue_verified_pages_free(&verified->pages);
    pthread_mutex_destroy(&verified->lock);
}
