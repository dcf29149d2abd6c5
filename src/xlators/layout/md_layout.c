/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xlators/layout/md_layout.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/galois.h"

uint32_t bw_md_parity(const struct bw_md_layout *layout)
{
    if (layout->level == 6)
        return 2;
    return layout->level == 4 || layout->level == 5;
}

/* Linear arrays and RAID0. */

static void locate_linear(const struct bw_md_layout *layout, uint64_t address,
                          struct bw_md_place *place)
{
    place->role = 0;
    while (address >= layout->sizes[place->role])
        address -= layout->sizes[place->role++];
    place->offset = address;
    place->length = layout->sizes[place->role] - address;
}

/* In the original layout, chunks are counted from the beginning of the array, in the other one from
 * the beginning of the zone. */
static void locate_striped(const struct bw_md_layout *layout, uint64_t address,
                           struct bw_md_place *place)
{
    enum { ORIGINAL = 1 };
    const uint64_t chunk = layout->chunk;
    const struct bw_md_zone *zone = layout->zones;
    while (address >= zone->end)
        zone++;
    const uint64_t inside = address - (zone == layout->zones ? 0 : zone[-1].end);
    const bool is_original = layout->has_number && layout->number == ORIGINAL;
    const uint64_t counted = is_original ? address : inside;
    place->role = layout->striped[zone->first + counted / chunk % zone->count];
    place->offset = zone->begin + inside / (chunk * zone->count) * chunk + counted % chunk;
    place->length = chunk - counted % chunk;
}

/* RAID10. */

/* The device with the next far copy. The last set also has the devices that do not fill a set. */
static uint32_t next_far_device(const struct bw_md_layout *layout, uint32_t device)
{
    const uint32_t count = layout->count, set = layout->mirrors.set_size;
    const uint32_t begin = device / set * set, last = (count / set - 1) * set;
    device += layout->mirrors.near_copies;
    if (count % set && device > last)
        return last + (device - last) % (set + count % set);
    return begin + device % set;
}

static void locate_mirrored(const struct bw_md_layout *layout, uint64_t address, uint32_t copy,
                            struct bw_md_place *place)
{
    const struct bw_md_mirrors *mirrors = &layout->mirrors;
    const uint64_t chunk = layout->chunk, count = layout->count;
    const uint64_t number = address / chunk * mirrors->near_copies + copy / mirrors->far_copies;
    uint64_t row = number / count;
    place->role = (uint32_t)(number % count);
    /* near copies beyond the last device continue in the next row */
    const uint64_t first = address / chunk * mirrors->near_copies / count;
    row = mirrors->interleaves ? first * mirrors->far_copies + (row - first) : row;
    place->offset = row * chunk + address % chunk;
    place->length = chunk - address % chunk;
    for (uint32_t far = 0; far < copy % mirrors->far_copies; far++) {
        place->role = next_far_device(layout, place->role);
        place->offset += mirrors->stride;
    }
}

/* RAID4, 5 and 6. */

/* Layouts of RAID5, and of RAID6, which adds others. */
enum order {
    LEFT_ASYMMETRIC,
    RIGHT_ASYMMETRIC,
    LEFT_SYMMETRIC,
    RIGHT_SYMMETRIC,
    PARITY_FIRST,
    PARITY_LAST,
    ROTATING_ZERO_RESTART = 8,
    ROTATING_N_RESTART,
    ROTATING_N_CONTINUE,
    Q_LAST = 16, /* added to a layout of RAID5 on all devices but the last */
};

static bool is_known(const struct bw_md_layout *layout)
{
    const uint32_t number = layout->number;
    return layout->level == 4 || number <= PARITY_LAST ||
           (layout->level == 6 &&
            ((number >= ROTATING_ZERO_RESTART && number <= ROTATING_N_CONTINUE) ||
             (number >= Q_LAST && number <= Q_LAST + PARITY_FIRST)));
}

/* The device with data piece `data` of a row with one parity device among `count`. */
static uint32_t place_in_raid5(enum order order, uint32_t count, uint32_t data,
                               struct bw_md_row *row)
{
    const uint32_t turn = (uint32_t)(row->number % count);
    switch (order) {
    case LEFT_ASYMMETRIC:
    case LEFT_SYMMETRIC:
        row->p = count - 1 - turn;
        break;
    case RIGHT_ASYMMETRIC:
    case RIGHT_SYMMETRIC:
        row->p = turn;
        break;
    default:
        row->p = order == PARITY_FIRST ? 0 : count - 1;
    }
    if (order == LEFT_SYMMETRIC || order == RIGHT_SYMMETRIC)
        return (row->p + 1 + data) % count;
    return data + (data >= row->p);
}

/* The data pieces begin after P and Q, or fill the devices around them in order. */
static uint32_t place_around(uint32_t count, uint32_t data, bool rotates, struct bw_md_row *row)
{
    row->q = (row->p + 1) % count;
    if (rotates)
        return (row->p + 2 + data) % count;
    if (row->q == 0)
        return data + 1;
    return data + (data >= row->p ? 2 : 0);
}

static uint32_t place_in_raid6(uint32_t order, uint32_t count, uint32_t data, struct bw_md_row *row)
{
    const uint32_t turn = (uint32_t)(row->number % count);
    if (order >= Q_LAST) {
        row->q = count - 1;
        return place_in_raid5((enum order)(order - Q_LAST), count - 1, data, row);
    }
    row->by_role = order >= ROTATING_ZERO_RESTART;
    switch (order) {
    case LEFT_ASYMMETRIC:
    case LEFT_SYMMETRIC:
        row->p = count - 1 - turn;
        return place_around(count, data, order == LEFT_SYMMETRIC, row);
    case RIGHT_ASYMMETRIC:
    case RIGHT_SYMMETRIC:
    case ROTATING_ZERO_RESTART:
        row->p = turn;
        return place_around(count, data, order == RIGHT_SYMMETRIC, row);
    case ROTATING_N_RESTART:
        row->p = count - 1 - (uint32_t)((row->number + 1) % count);
        return place_around(count, data, false, row);
    case ROTATING_N_CONTINUE:
        row->p = count - 1 - turn;
        row->q = (row->p + count - 1) % count;
        return (row->p + 1 + data) % count;
    default:
        row->p = order == PARITY_FIRST ? 0 : count - 2;
        row->q = row->p + 1;
        return data + (order == PARITY_FIRST ? 2 : 0);
    }
}

void bw_md_locate_in_row(const struct bw_md_layout *layout, uint64_t address,
                         struct bw_md_place *place, struct bw_md_row *row)
{
    const uint64_t chunk = layout->chunk;
    const uint32_t count = layout->count, parity = bw_md_parity(layout);
    const uint64_t number = address / chunk;
    const uint32_t data = (uint32_t)(number % (count - parity));
    *row = (struct bw_md_row){.number = number / (count - parity), .q = UINT32_MAX};
    if (layout->level == 6)
        place->role = place_in_raid6(layout->number, count, data, row);
    else
        place->role = place_in_raid5(layout->level == 4 ? PARITY_LAST : (enum order)layout->number,
                                     count, data, row);
    place->offset = row->number * chunk + address % chunk;
    place->length = chunk - address % chunk;
}

/* Locating. */

uint32_t bw_md_copies(const struct bw_md_layout *layout)
{
    if (layout->level == 1)
        return layout->count;
    return layout->level == 10 ? layout->mirrors.near_copies * layout->mirrors.far_copies : 1;
}

void bw_md_locate(const struct bw_md_layout *layout, uint64_t address, uint32_t copy,
                  struct bw_md_place *place)
{
    struct bw_md_row row;
    switch (layout->level) {
    case BW_MD_LINEAR:
        locate_linear(layout, address, place);
        break;
    case 0:
        locate_striped(layout, address, place);
        break;
    case 1:
        *place = (struct bw_md_place){copy, address, layout->size - address};
        break;
    case 10:
        locate_mirrored(layout, address, copy, place);
        break;
    default:
        bw_md_locate_in_row(layout, address, place, &row);
    }
}

/* Setting up. */

static struct bw_error *refuse_array(const char *problem)
{
    return bw_error_create(BW_ERROR_UNSUPPORTED, "the MD array has %s", problem);
}

/* Linear arrays and RAID0 use all of each device, in whole chunks. */
static struct bw_error *add_sizes(struct bw_md_layout *layout, const uint64_t *sizes)
{
    layout->sizes = calloc(layout->count, sizeof *layout->sizes);
    if (!layout->sizes)
        return bw_error_no_memory();
    for (uint32_t i = 0; i < layout->count; i++) {
        layout->sizes[i] = sizes[i] - (layout->chunk ? sizes[i] % layout->chunk : 0);
        if (layout->sizes[i] > INT64_MAX - layout->size)
            return refuse_array("an impossible size");
        layout->size += layout->sizes[i];
    }
    return NULL;
}

/* The end of the devices' part that the next zone uses: the size of the smallest larger device. */
static uint64_t next_end(const struct bw_md_layout *layout, uint64_t begin)
{
    uint64_t end = UINT64_MAX;
    for (uint32_t i = 0; i < layout->count; i++)
        if (layout->sizes[i] > begin && layout->sizes[i] < end)
            end = layout->sizes[i];
    return end;
}

static struct bw_error *add_zones(struct bw_md_layout *layout)
{
    const uint32_t count = layout->count;
    uint32_t used = 0;
    layout->zones = calloc(count, sizeof *layout->zones);
    layout->striped = calloc((size_t)count * count, sizeof *layout->striped);
    if (!layout->zones || !layout->striped)
        return bw_error_no_memory();
    uint64_t begin = 0, total = 0;
    for (uint64_t end; (end = next_end(layout, begin)) != UINT64_MAX; begin = end) {
        struct bw_md_zone *zone = &layout->zones[layout->zone_count++];
        *zone = (struct bw_md_zone){.begin = begin, .first = used};
        for (uint32_t i = 0; i < count; i++)
            if (layout->sizes[i] >= end)
                layout->striped[used++] = i;
        zone->count = used - zone->first;
        zone->end = total += (end - begin) * zone->count;
    }
    return NULL;
}

/* The kernel computes the chunks of the array first, then the chunks of each device. */
static struct bw_error *set_mirrors(struct bw_md_layout *layout)
{
    const uint32_t number = layout->number, count = layout->count;
    struct bw_md_mirrors *mirrors = &layout->mirrors;
    const uint32_t nears = number & 255, fars = number >> 8 & 255, sets = number >> 17;
    *mirrors = (struct bw_md_mirrors){.near_copies = nears,
                                      .far_copies = fars,
                                      .interleaves = number >> 16 & 1,
                                      .set_size = nears * fars};
    if (sets == 0)
        mirrors->set_size = count;
    else if (sets == 1)
        mirrors->set_size = fars ? count / fars : 0;
    if (!nears || !fars || nears * fars > count || sets > 2 || !mirrors->set_size ||
        mirrors->set_size > count)
        return refuse_array("an unknown layout of RAID10");
    const uint64_t chunks = layout->used_size / layout->chunk / fars * count / nears;
    if (chunks > INT64_MAX / layout->chunk)
        return refuse_array("an impossible size");
    const uint64_t used = (chunks * nears * fars + count - 1) / count;
    mirrors->stride = mirrors->interleaves ? layout->chunk : used / fars * layout->chunk;
    layout->size = chunks * layout->chunk;
    return NULL;
}

static struct bw_error *set_rows(struct bw_md_layout *layout)
{
    const uint32_t data = layout->count - bw_md_parity(layout);
    if (!is_known(layout) || layout->count < bw_md_parity(layout) + 1 ||
        layout->count > BW_FIELD_VECTORS)
        return refuse_array("an unknown layout");
    const uint64_t chunks = layout->used_size / layout->chunk;
    if (chunks > INT64_MAX / layout->chunk / data)
        return refuse_array("an impossible size");
    layout->size = chunks * layout->chunk * data;
    return NULL;
}

static struct bw_error *set_layout(struct bw_md_layout *layout, const uint64_t *sizes)
{
    const int level = layout->level;
    if (level != 1 && level != BW_MD_LINEAR && !layout->chunk)
        return refuse_array("no chunk size");
    if (level == 10)
        return set_mirrors(layout);
    if (level >= 4)
        return set_rows(layout);
    if (level == 1) {
        layout->size = layout->used_size;
        return NULL;
    }
    BW_TRY(add_sizes(layout, sizes));
    return level == 0 ? add_zones(layout) : NULL;
}

struct bw_error *bw_md_layout_init(struct bw_md_layout *layout,
                                   const struct bw_md_superblock *array, const uint64_t *sizes)
{
    *layout = (struct bw_md_layout){.level = array->level,
                                    .number = array->layout,
                                    .has_number = array->has_layout,
                                    .chunk = array->chunk,
                                    .count = array->device_count,
                                    .used_size = array->used_size};
    return set_layout(layout, sizes);
}

static uint64_t end_of_linear(const struct bw_md_layout *layout, const uint64_t *ends)
{
    uint64_t begin = 0, end = 0;
    for (uint32_t i = 0; i < layout->count; i++) {
        if (ends[i])
            end = begin + (ends[i] < layout->sizes[i] ? ends[i] : layout->sizes[i]);
        begin += layout->sizes[i];
    }
    return end;
}

/* A row has at most one chunk of each device that is not parity. */
static uint64_t end_of_rows(const struct bw_md_layout *layout, uint64_t longest)
{
    const uint64_t rows = longest / layout->chunk + (longest % layout->chunk != 0);
    uint64_t end;
    bool is_over = __builtin_mul_overflow(rows, layout->count - bw_md_parity(layout), &end) ||
                   __builtin_mul_overflow(end, layout->chunk, &end);
    return is_over ? UINT64_MAX : end;
}

void bw_md_layout_cut(struct bw_md_layout *layout, const uint64_t *ends)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < layout->count; i++)
        if (ends[i] > longest)
            longest = ends[i];
    uint64_t end = longest;
    if (layout->level == BW_MD_LINEAR)
        end = end_of_linear(layout, ends);
    else if (layout->level != 1)
        end = end_of_rows(layout, longest);
    if (end < layout->size)
        layout->size = end;
}

void bw_md_layout_free(struct bw_md_layout *layout)
{
    free(layout->sizes);
    free(layout->zones);
    free(layout->striped);
}
