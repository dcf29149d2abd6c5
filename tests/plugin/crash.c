/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * toys/crash: a layer that ends the program at a chosen call in a chosen way, to test the flight
 * recorder.
 */
#include <btrfs-walk/graph.h>
#include <stdatomic.h>
#include <stdlib.h>

enum way { FAULT, ABORT, STACK };
static const char *const ways[] = {[FAULT] = "fault", [ABORT] = "abort", [STACK] = "stack", NULL};

static atomic_uint_fast64_t calls;

static volatile bool is_endless = true;

/* Never ends well, and not as a loop. */
static unsigned deeper(volatile unsigned char *above)
{
    volatile unsigned char room[4096];
    if (!is_endless)
        return 0;
    room[0] = (unsigned char)(*above + 1);
    return deeper(room) + room[0];
}

static void crash(enum way way)
{
    volatile unsigned char start = 0;
    if (way == FAULT)
        *(volatile int *)(uintptr_t)16 = 1;
    else if (way == STACK)
        deeper(&start);
    abort();
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    if (atomic_fetch_add(&calls, 1) + 1 == bw_xlator_option_number(xlator, "call"))
        crash((enum way)bw_xlator_option_number(xlator, "way"));
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
}

static const struct bw_option options[] = {
    {
        .name = "way",
        .type = BW_OPTION_ENUM,
        .default_value = "fault",
        .description = "how it ends",
        .choices = ways,
    },
    {
        .name = "call",
        .type = BW_OPTION_INTEGER,
        .default_value = "1",
        .description = "the call of the layer that does",
        .minimum = 1,
        .maximum = 1000000,
    },
    {0},
};

static const struct bw_xlator_class crash_class = {
    .type = "toys/crash",
    .description = "ends the program",
    .page = "For tests of the flight recorder.",
    .above = BW_ADDRESS_LOGICAL,
    .below = BW_ADDRESS_LOGICAL,
    .minimum_children = 1,
    .maximum_children = 1,
    .options = options,
    .operations = {.read = read_requests},
};

BW_XLATOR_EXPORT(crash_class);
