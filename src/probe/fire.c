/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Firing: the one place where a record is made, passed to the consumers, and shown to external
 * tracers. There is a cold function for each probe, made from probes.def.
 *
 * The USDT sites come from sys/sdt.h: a note in the program, and a nop that a tracer replaces. Some
 * tracers drop arguments that are constants for the compiler, so each goes through a register.
 */
#include "probe/probe.h"

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
static void deliver(struct bw_probes *probes, unsigned number, const struct bw_xlate *xlate,
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
            consumer->take(consumer, &event);
}

#define PROBE(id, name, record_name, translator, primary, secondary, grain, documentation)    \
    void bw_fire_##id(struct bw_probes *probes, const struct bw_xlate *xlate, const void *in) \
    {                                                                                         \
        struct bw_##record_name record = {0};                                                 \
        deliver(probes, BW_PROBE_##id, xlate, in, &record);                                   \
        BW_SITE(id, record, primary, secondary);                                              \
    }
#include "probe/probes.def"
