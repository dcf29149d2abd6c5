/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of probes, generated from probes.def; sets of probes and consumers; firing. */
#include "probe/probe.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { GRAIN_FINE = false, GRAIN_COARSE = true };

/* A probe has the attributes of its record, because no translator makes a member less stable. */
static const struct bw_probe table[] = {
#define PROBE(id, name, record, translator, primary, secondary, grain, documentation) \
    {name,                                                                            \
     #id,                                                                             \
     BW_PROBE_##id,                                                                   \
     &bw_##record##_record,                                                           \
     &bw_##translator##_xlate,                                                        \
     BW_##record##_##primary,                                                         \
     BW_##record##_##secondary,                                                       \
     GRAIN_##grain,                                                                   \
     {(enum bw_stability)BW_##record##_STABILITY_OF_NAME,                             \
      (enum bw_stability)BW_##record##_STABILITY_OF_DATA,                             \
      (enum bw_dependency)BW_##record##_CLASS},                                       \
     documentation},
#include "probe/probes.def"
#undef PROBE
};

_Static_assert(BW_PROBE_COUNT <= (int)BW_PROBES_MAX, "too many probes for a consumer's table");

const struct bw_probe *bw_probe_table(unsigned *count)
{
    if (count)
        *count = BW_PROBE_COUNT;
    return table;
}

uint64_t bw_probe_members(const struct bw_probe *probe)
{
    return probe->translator->members;
}

const char *bw_probe_input(const struct bw_probe *probe)
{
    return probe->translator->name;
}

static uint64_t monotonic_time(void)
{
    return (uint64_t)bw_clock(CLOCK_MONOTONIC);
}

void bw_probes_init(struct bw_probes *probes)
{
    *probes = (struct bw_probes){.clock = monotonic_time};
}

struct bw_error *bw_probes_create(struct bw_probes **probes)
{
    *probes = malloc(sizeof **probes);
    if (!*probes)
        return bw_error_no_memory();
    bw_probes_init(*probes);
    return NULL;
}

void bw_probes_destroy(struct bw_probes *probes)
{
    free(probes);
}

void bw_probes_add(struct bw_probes *probes, struct bw_probe_consumer *consumer)
{
    struct bw_probe_consumer **link = &probes->first;
    while (*link)
        link = &(*link)->next;
    *link = consumer;
    consumer->next = NULL;
    for (unsigned i = 0; i < BW_PROBE_COUNT; i++) {
        probes->armed[i] |= consumer->selected[i];
        probes->wanted[i] |= consumer->selected[i] ? consumer->lazy[i] : 0;
    }
}

void bw_probes_set_clock(struct bw_probes *probes, uint64_t (*clock)(void))
{
    probes->clock = clock;
}

struct bw_error *bw_probes_select(const char *patterns, bool selected[BW_PROBES_MAX])
{
    BW_AUTO_FREE char *copy = strdup(patterns);
    if (!copy)
        return bw_error_no_memory();

    /* If nothing is selected yet, a list that begins with an exception means all others. */
    bool any = false;
    for (unsigned i = 0; i < BW_PROBE_COUNT; i++)
        any |= selected[i];
    if (*copy == '!' && !any)
        memset(selected, true, BW_PROBE_COUNT * sizeof *selected);

    char *rest = copy;
    for (char *pattern; (pattern = strsep(&rest, ","));) {
        const bool add = *pattern != '!';
        const char *glob = pattern + !add;
        bool found = false;
        for (unsigned i = 0; i < BW_PROBE_COUNT; i++) {
            if (fnmatch(glob, table[i].name, 0) != 0)
                continue;
            selected[i] = add;
            found = true;
        }
        if (!found)
            return bw_error_advise(
                bw_error_create(BW_ERROR_USAGE, "no probe matches '%s'", pattern),
                "`probe_list` shows all");
    }
    return NULL;
}

/*
 * Firing: the only place where a record is filled, passed to the consumers, and passed to external
 * tracers. Each probe has a cold function, generated from probes.def.
 *
 * The USDT sites come from sys/sdt.h: a note in the program, and a nop that a tracer replaces. Some
 * tracers ignore arguments that are compile-time constants, so each is passed in a register.
 */

#ifdef BW_USDT
#define _SDT_HAS_SEMAPHORES 1
#define PROBE(id, name, record, translator, primary, secondary, grain, documentation) \
    __extension__ volatile unsigned short btrfswalk_##id##_semaphore                  \
        __attribute__((section(".probes"), used));
#include "probe/probes.def"
#undef PROBE
#include <sys/sdt.h>

static inline unsigned long in_register(uint64_t value)
{
    unsigned long result = (unsigned long)value;
    __asm__ volatile("" : "+r"(result));
    return result;
}
#define BW_SITE(id, record, primary, secondary)                                  \
    STAP_PROBE6(btrfswalk, id, in_register((uintptr_t) & (record)),              \
                in_register((uint64_t)(uintptr_t)((record).primary)),            \
                in_register((uint64_t)(uintptr_t)((record).secondary)),          \
                in_register((uint64_t)(record).error), in_register((record).ns), \
                in_register((record).call))
#else
#define BW_SITE(id, record, primary, secondary) (void)0
#endif

/* Fills the record and passes it to the consumers. */
static void deliver_event(struct bw_probes *probes, unsigned number, const struct bw_xlate *xlate,
                          const void *in, void *record)
{
    uint64_t wanted = bw_record_eager(xlate->record) | probes->wanted[number];
    xlate->translate(in, wanted, record);
    if (!probes->armed[number])
        return;
    const struct bw_probe_event event = {.probe = &bw_probe_table(NULL)[number],
                                         .record = record,
                                         .members = wanted & xlate->members,
                                         .time = bw_probes_now(probes)};
    for (struct bw_probe_consumer *consumer = probes->first; consumer; consumer = consumer->next)
        if (consumer->selected[number])
            consumer->visit(consumer, &event);
}

#define PROBE(id, name, record_name, translator, primary, secondary, grain, documentation)    \
    void bw_fire_##id(struct bw_probes *probes, const struct bw_xlate *xlate, const void *in) \
    {                                                                                         \
        struct bw_##record_name record = {0};                                                 \
        deliver_event(probes, BW_PROBE_##id, xlate, in, &record);                             \
        BW_SITE(id, record, primary, secondary);                                              \
    }
#include "probe/probes.def"
