/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random graphs: faults, and layers that change nothing but may be in the way. The expected result
 * depends on the faults: the image compensates them, or they are below features/verify, or above
 * it.
 */
#include "soak/subject.h"

static const char *const actions[] = {"eio", "flip", "zero", "short", "stale"};

enum {
    EIO_ACTION = 0,
    SHORT_ACTION = 3,
    STALE_ACTION = 4,
    RULES_AT_MOST = 3,
    DECORATIONS_AT_MOST = 4
};

/* The target of a rule. Everything else is random. */
struct target {
    const char *volume;
    unsigned copy;    /* 0: any */
    bool tree_blocks; /* no superblocks, without which there is no walk */
    bool sparing;     /* only some places: otherwise all may be lost, which is soon told */
    const struct iw_block *block; /* only this one; NULL: any */
};

/* ",start=N,end=N" for a block, and ",nth=N,once=on" now and then. */
static void choose_requests(struct journey *journey, struct dice *dice, const struct target *target,
                            char text[static 96])
{
    int length = 0;
    text[0] = '\0';
    if (target->block)
        length =
            snprintf(text, 96, ",start=%llu,end=%llu", (unsigned long long)target->block->logical,
                     (unsigned long long)target->block->logical + 1);
    if (!one_in(dice, 5))
        return;
    snprintf(text + length, 96 - (size_t)length, ",nth=%u,once=%s", 1 + roll(dice, 9),
             one_in(dice, 2) ? "on" : "off");
    journey->by_order = true;
}

static void add_fault(struct journey *journey, struct dice *dice, const struct target *target)
{
    static const char *const kinds[] = {"raw", "tree-block", "tree-block", "any", "any", "super"};
    static const char *const rates[] = {"100%", "100%", "50%", "20%", "10%", "5%", "2%"};
    const unsigned kind = roll(dice, target->tree_blocks ? 3 : COUNT(kinds));
    const unsigned low = target->sparing ? 3 : 0;
    const unsigned rate = target->block ? 0 : low + roll(dice, COUNT(rates) - low);
    unsigned action = roll(dice, COUNT(actions));
    char requests[96];
    choose_requests(journey, dice, target, requests);
    journey->any_lies |= action != EIO_ACTION && action != SHORT_ACTION && action != STALE_ACTION;
    insert_layer(&journey->changes,
                 "debug/error-gen@%s,mirror=%u,kind=%s,action=%s,rate=%s,seed=%u%s", target->volume,
                 target->copy, kinds[kind], actions[action], rates[rate], roll(dice, 1000),
                 requests);
}

/* Some devices, as many as may be lost, fail or are missing. */
static void fail_devices(const struct subject *subject, struct dice *dice, struct journey *journey)
{
    unsigned devices = iw_device_count(subject->image), failing = 0;
    for (unsigned victims = 1 + roll(dice, subject->expendable); victims; victims--) {
        unsigned victim = roll(dice, devices);
        if (one_in(dice, 4))
            journey->missing |= 1u << victim;
        else
            failing |= 1u << victim;
    }
    failing &= ~journey->missing;
    unsigned number = 1; /* as the graph counts those that are given */
    for (unsigned device = 0; device < devices; device++) {
        char volume[32];
        snprintf(volume, sizeof volume, "device-%u", number);
        number += !(journey->missing >> device & 1);
        for (unsigned rules = failing >> device & 1 ? 1 + roll(dice, RULES_AT_MOST) : 0; rules;
             rules--)
            add_fault(journey, dice, &(struct target){.volume = volume});
    }
}

/* Any copies fail, but for one. */
static void fail_copies(const struct subject *subject, struct dice *dice, struct journey *journey)
{
    unsigned good = 1 + roll(dice, subject->copies);
    for (unsigned copy = 1; copy <= subject->copies && journey->changes.count < 8; copy++)
        if (copy != good && !one_in(dice, 6))
            add_fault(journey, dice, &(struct target){.volume = "chunk-map", .copy = copy});
}

static const struct iw_block *any_block(const struct subject *subject, struct dice *dice)
{
    return iw_block(subject->image, roll(dice, (unsigned)iw_block_count(subject->image)));
}

/* Below the chunk map there are neither copies nor logical addresses. */
static void fail_below_verify(const struct subject *subject, struct dice *dice,
                              struct journey *journey)
{
    for (unsigned rules = 1 + roll(dice, RULES_AT_MOST); rules; rules--) {
        struct target target = {
            .volume = "chunk-map", .tree_blocks = !one_in(dice, 8), .sparing = true};
        char device[32];
        snprintf(device, sizeof device, "device-%u",
                 1 + roll(dice, iw_device_count(subject->image)));
        if (one_in(dice, 4))
            target.volume = "device-*";
        else if (one_in(dice, 4))
            target.volume = device;
        else if (one_in(dice, 2))
            target.block = any_block(subject, dice);
        else
            target.copy = roll(dice, 3);
        add_fault(journey, dice, &target);
    }
}

static void fail_above_verify(const struct subject *subject, struct dice *dice,
                              struct journey *journey)
{
    static const char *const volumes[] = {"verify", "read-ahead", "node-cache"};
    for (unsigned rules = 1 + roll(dice, RULES_AT_MOST); rules; rules--) {
        struct target target = {.volume = volumes[roll(dice, COUNT(volumes))], .tree_blocks = true};
        target.sparing = !one_in(dice, 4);
        if (one_in(dice, 2))
            target.block = any_block(subject, dice);
        add_fault(journey, dice, &target);
    }
}

/* Adds layers and options that do not affect the result of reads. */
static void decorate(struct dice *dice, struct journey *journey)
{
    static const char *const layers[] = {
        "debug/delay-gen@%s,delay=2us",
        "debug/delay-gen@%s,delay=1us,distribution=exponential",
        "debug/trace@%s,file=/dev/null,operations=all",
        "debug/probe@%s,each=on",
        "performance/node-cache@%s",
        "performance/read-ahead@%s,gap=64K",
    };
    enum { ANYWHERE = 4 }; /* the first layers fit below the chunk map, too */
    static const char *const logical[] = {"chunk-map", "verify", "read-ahead", "node-cache"};
    static const char *const options[] = {"read-ahead.gap=0", "node-cache.size=0",
                                          "node-cache.size=64K", "read-ahead.gap=1M"};
    for (unsigned count = roll(dice, DECORATIONS_AT_MOST + 1); count; count--) {
        unsigned layer = roll(dice, COUNT(layers)),
                 kinds_of_place = COUNT(logical) + (layer < ANYWHERE);
        unsigned place = roll(dice, kinds_of_place);
        char text[128];
        snprintf(text, sizeof text, layers[layer],
                 place < COUNT(logical) ? logical[place] : "device-*");
        insert_layer(&journey->changes, "%s", text);
    }
    if (one_in(dice, 2))
        set_option(&journey->changes, "%s", options[roll(dice, COUNT(options))]);
}

struct journey make_journey(const struct subject *subject, struct dice *dice)
{
    struct journey journey = {.harm = (enum harm)roll(dice, HARMS), .threads = 2 + roll(dice, 6)};
    if (journey.harm == NO_HARM && subject->expendable && !one_in(dice, 3))
        fail_devices(subject, dice, &journey);
    else if (journey.harm == NO_HARM)
        fail_copies(subject, dice, &journey);
    else if (journey.harm == LOSSES)
        fail_below_verify(subject, dice, &journey);
    else
        fail_above_verify(subject, dice, &journey);
    decorate(dice, &journey);
    return journey;
}
