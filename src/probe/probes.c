/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of the probes, made from probes.def; and sets of probes with their consumers. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/glob.h"
#include "probe/probe.h"

enum { GRAIN_FINE = false, GRAIN_COARSE = true };

/* The attributes of a probe are those of its record: no translator makes a member less stable. */
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

static uint64_t monotonic(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void bw_probes_init(struct bw_probes *probes)
{
    *probes = (struct bw_probes){.clock = monotonic};
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

static struct bw_error *select_one(const char *pattern, bool selected[BW_PROBES_MAX])
{
    bool found = false, add = *pattern != '!';
    const char *glob = pattern + !add;
    for (unsigned i = 0; i < BW_PROBE_COUNT; i++) {
        if (!bw_glob_matches(glob, strlen(glob), table[i].name, strlen(table[i].name)))
            continue;
        selected[i] = add;
        found = true;
    }
    return found ? NULL
                 : bw_error_create(BW_ERROR_USAGE, "no probe matches '%s'; --probe-list shows all",
                                   pattern);
}

static bool nothing_selected(const bool selected[BW_PROBES_MAX])
{
    for (unsigned i = 0; i < BW_PROBE_COUNT; i++)
        if (selected[i])
            return false;
    return true;
}

struct bw_error *bw_probes_select(const char *patterns, bool selected[BW_PROBES_MAX])
{
    BW_AUTO_FREE char *copy = strdup(patterns);
    if (!copy)
        return bw_error_no_memory();
    if (*copy == '!' && nothing_selected(selected))
        memset(selected, true, BW_PROBE_COUNT * sizeof *selected);
    char *rest = copy;
    for (char *pattern; (pattern = strsep(&rest, ","));)
        BW_TRY(select_one(pattern, selected));
    return NULL;
}
