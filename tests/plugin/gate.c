/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * toys/gate: a layer that stops the program at a chosen request until the test lets it continue, so
 * that no test depends on a time. tests/command/gate.bash uses it.
 */
#include <btrfs-walk/graph.h>
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_uint_fast64_t passed;
static atomic_bool is_open;

/* Tells the test, and waits for a byte. Signals do not end the wait. */
static void stop_at(int reached, int gate)
{
    char byte = '!';
    ssize_t got;
    while ((got = write(reached, &byte, 1)) < 0 && errno == EINTR)
        ;
    while ((got = read(gate, &byte, 1)) < 0 && errno == EINTR)
        ;
    atomic_store(&is_open, got >= 0);
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    const uint64_t kind = bw_xlator_option_number(xlator, "kind");
    uint64_t selected = 0;
    for (size_t i = 0; i < count; i++)
        selected += bw_request_kind_selected(kind, requests[i].kind);
    if (selected && !atomic_load(&is_open) &&
        atomic_fetch_add(&passed, selected) + selected > bw_xlator_option_number(xlator, "after"))
        stop_at((int)bw_xlator_option_number(xlator, "reached"),
                (int)bw_xlator_option_number(xlator, "gate"));
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
}

static const struct bw_option options[] = {
    {"kind", BW_OPTION_ENUM, "any", 0, 0, "which requests stop", bw_request_kind_choices},
    {"after", BW_OPTION_INTEGER, "0", 0, 1000000, "as many requests pass before", NULL},
    {"reached", BW_OPTION_INTEGER, "0", 0, 1000, "the descriptor for a byte when one stops", NULL},
    {"gate", BW_OPTION_INTEGER, "0", 0, 1000, "the descriptor from which it is freed", NULL},
    {0},
};

static const struct bw_xlator_class gate_class = {
    .type = "toys/gate",
    .description = "stops at a request until the test lets it continue",
    .page = "For tests of what happens in the middle of a run.",
    .above = BW_ADDRESS_ANY,
    .below = BW_ADDRESS_ANY,
    .minimum_children = 1,
    .maximum_children = 1,
    .options = options,
    .operations = {.read = read_requests},
};

BW_XLATOR_EXPORT(gate_class);
