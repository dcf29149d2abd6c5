/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The events of a black box in their order, and what can be said about those that are not there. */
#include <stdlib.h>

#include "probe/recording.h"

/* What sorting needs; kept aside, because slots are copied out to be read. */
struct place {
    uint64_t number;
    uint32_t slot;
};

static int by_number(const void *left, const void *right)
{
    const struct place *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

static void collect(const struct bw_recording *recording, struct place *places,
                    struct bw_recording_list *list)
{
    struct bw_recorded event;
    for (uint32_t i = 0; i < recording->slot_count; i++) {
        enum bw_slot_state state = bw_recording_slot(recording, i, &event);
        list->torn += state == BW_SLOT_TORN;
        list->damaged += state == BW_SLOT_DAMAGED;
        if (state == BW_SLOT_GOOD)
            places[list->count++] = (struct place){event.number, i};
        uint64_t number = bw_recorded_sequence(&event) & ~BW_BOX_BUSY;
        if ((state == BW_SLOT_GOOD || state == BW_SLOT_TORN) && number > list->last)
            list->last = number;
    }
}

/* The last event that is there tells how many there were. */
static void account(const struct bw_recording *recording, const struct place *places,
                    struct bw_recording_list *list)
{
    uint64_t first =
        list->last > recording->slot_count ? list->last - recording->slot_count + 1 : 1;
    uint64_t within = 0;
    for (uint32_t i = 0; i < list->count; i++)
        within += places[i].number >= first;
    uint64_t wanted = list->last - first + 1, known = within + list->torn + list->damaged;
    list->missing = wanted > known ? wanted - known : 0;
    list->overwritten = first - 1 - (list->count - within);
}

struct bw_error *bw_recording_sort(const struct bw_recording *recording,
                                   struct bw_recording_list *list)
{
    *list = (struct bw_recording_list){0};
    struct place *places = malloc(recording->slot_count * sizeof *places);
    list->slots = malloc(recording->slot_count * sizeof *list->slots);
    if (!places || !list->slots) {
        free(places);
        bw_recording_list_free(list);
        return bw_error_no_memory();
    }
    collect(recording, places, list);
    qsort(places, list->count, sizeof *places, by_number);
    account(recording, places, list);
    for (uint32_t i = 0; i < list->count; i++)
        list->slots[i] = places[i].slot;
    free(places);
    return NULL;
}

void bw_recording_list_free(struct bw_recording_list *list)
{
    free(list->slots);
    list->slots = NULL;
}
