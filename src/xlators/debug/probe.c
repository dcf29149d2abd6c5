/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debug/probe: a place to observe. It changes nothing, but each call of a layer fires the probes
 * fop-wind and fop-unwind, so they show the calls at this place under its name. It works in either
 * address space.
 */
#include "xlators/classes.h"

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    size_t step = bw_xlator_option_number(xlator, "each") ? 1 : count;
    for (size_t i = 0; i < count; i += step)
        bw_wind(frame, bw_xlator_child(xlator, 0), requests + i, step);
}

/* Without these two functions, both operations would bypass the layer and its probes. */
static struct bw_error *map(const struct bw_frame *frame, struct bw_xlator *xlator,
                            uint64_t address, uint32_t length, unsigned copy,
                            struct bw_map_reply *reply)
{
    return bw_wind_map(frame, bw_xlator_child(xlator, 0), address, length, copy, reply);
}

static void advise(const struct bw_frame *frame, struct bw_xlator *xlator,
                   const struct bw_range *ranges, size_t count, unsigned copy)
{
    bw_wind_advise(frame, bw_xlator_child(xlator, 0), ranges, count, copy);
}

static const struct bw_option options[] = {
    {"each", BW_OPTION_BOOL, "off", 0, 0, "pass on each request by itself", NULL},
    {0},
};

static const char page[] =
    "Changes nothing. Every call of a layer fires the probes fop-wind and fop-unwind with "
    "the name of the layer, so this layer shows the calls at its place under its own name: "
    "reads, mappings of addresses (map) and read-ahead (advise), with their times and "
    "errors.\n\n"
    "Use it to compare the requests above a layer with the requests below it. This counts "
    "both sides of the cache:\n\n"
    "    btrfs-walk --insert debug/probe@node-cache --insert debug/probe@read-ahead "
    "--probe-stats=xlator image.img\n\n"
    "The statistics have the calls, requests, errors, bytes and times of each layer. "
    "--statedump counts each kind of request separately. This prints every call, with the kind "
    "of its first request:\n\n"
    "    btrfs-walk --insert debug/probe@verify --probe fop-unwind --probe-format json "
    "image.img\n\n"
    "A call is a batch of requests: fop-unwind has their number, and the address and kind "
    "of the first. With each=on, the layer below is called once for each request, so that "
    "each request has separate events there, whose parent is the call of this layer. The "
    "layers below then cannot sort or join the requests of a batch, and a run takes longer.\n";

const struct bw_xlator_class bw_debug_probe_class = {
    .type = "debug/probe",
    .description = "makes calls at its place visible to the probes",
    .page = page,
    BW_ONE_CHILD(BW_ADDRESS_ANY),
    .options = options,
    .operations = {.read = read_requests, .map = map, .advise = advise},
};
