/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ranges of data that are bad in a copy: sorted by their place, joined, reported. */
#include "check/bad_ranges.h"

#include <stdlib.h>

#include "base/array.h"

void bw_bad_ranges_init(struct bw_bad_ranges *bad)
{
    *bad = (struct bw_bad_ranges){0};
    pthread_mutex_init(&bad->lock, NULL);
}

void bw_bad_ranges_free(struct bw_bad_ranges *bad)
{
    pthread_mutex_destroy(&bad->lock);
    free(bad->ranges);
}

void bw_bad_ranges_add(struct bw_check *check, struct bw_bad_ranges *bad,
                       const struct bw_bad_range *range)
{
    struct bw_bad_range placed = *range;
    struct bw_finding finding = {0};
    bw_check_place(check, range->logical, range->copy, &finding);
    placed.is_placed = finding.known & BW_KNOWN_DEVICE;
    placed.devid = finding.devid;
    placed.offset = finding.offset;
    bw_check_note_bad(check, range->logical, range->length);
    pthread_mutex_lock(&bad->lock);
    if (BW_ARRAY_RESERVE(bad->ranges, bad->count, bad->capacity))
        bad->ranges[bad->count++] = placed;
    else
        bad->no_memory = true;
    pthread_mutex_unlock(&bad->lock);
}

static int compare(const void *first, const void *second)
{
    const struct bw_bad_range *a = first, *b = second;
    const uint64_t left[] = {a->code, a->copy, a->mendable, a->devid, a->offset, a->logical};
    const uint64_t right[] = {b->code, b->copy, b->mendable, b->devid, b->offset, b->logical};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

static bool goes_on(const struct bw_bad_range *a, const struct bw_bad_range *b)
{
    return a->code == b->code && a->message == b->message && a->copy == b->copy &&
           a->mendable == b->mendable && a->logical + a->length == b->logical &&
           a->is_placed == b->is_placed && a->devid == b->devid &&
           (!a->is_placed || a->offset + a->length == b->offset);
}

static void join(struct bw_bad_ranges *bad)
{
    size_t last = 0;
    for (size_t i = 1; i < bad->count; i++) {
        if (goes_on(&bad->ranges[last], &bad->ranges[i]))
            bad->ranges[last].length += bad->ranges[i].length;
        else
            bad->ranges[++last] = bad->ranges[i];
    }
    bad->count = bad->count ? last + 1 : 0;
}

static void report(struct bw_check *check, const struct bw_bad_range *range)
{
    const struct bw_subject subject = {
        .finding = {.known = BW_KNOWN_LOGICAL | BW_KNOWN_LENGTH | BW_KNOWN_COPY |
                             (range->is_placed ? BW_KNOWN_DEVICE | BW_KNOWN_OFFSET : 0),
                    .mendable = range->mendable,
                    .logical = range->logical,
                    .length = range->length,
                    .devid = range->devid,
                    .offset = range->offset,
                    .copy = range->copy},
        .touches = BW_TOUCHES_EACH};
    bw_check_find(check, range->code, &subject, "%s", range->message);
}

void bw_bad_ranges_report(struct bw_check *check, struct bw_bad_ranges *bad, uint64_t open)
{
    size_t kept = 0;
    if (bad->count)
        qsort(bad->ranges, bad->count, sizeof *bad->ranges, compare);
    join(bad);
    for (size_t i = 0; i < bad->count; i++) {
        if (bad->ranges[i].logical + bad->ranges[i].length == open)
            bad->ranges[kept++] = bad->ranges[i];
        else
            report(check, &bad->ranges[i]);
    }
    bad->count = kept;
}
