/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a probe filter lets an event through. */
#ifndef FILTER_MATCHES_H
#define FILTER_MATCHES_H

#include "btrfs-walk/probe.h"

struct filter_receiver {
    struct bw_probe_consumer consumer;
    bool received;
};

static inline void receive_event(struct bw_probe_consumer *consumer,
                                 const struct bw_probe_event *event)
{
    (void)event;
    ((struct filter_receiver *)consumer)->received = true;
}

static inline bool filter_matches(struct bw_filter *filter, const struct bw_probe_event *event)
{
    struct filter_receiver receiver = {.consumer = {.visit = receive_event}};
    struct bw_probe_consumer *filtered = bw_filter_before(filter, &receiver.consumer);
    filtered->visit(filtered, event);
    return receiver.received;
}

/** The members of a probe's record that a filter reads. */
static inline uint64_t filter_members(struct bw_filter *filter, unsigned probe)
{
    struct bw_probe_consumer receiver = {.visit = receive_event};
    return bw_filter_before(filter, &receiver)->lazy[probe];
}

#endif
