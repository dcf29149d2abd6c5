/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the debug layers have in common: choosing requests by kind, and numbers that look random but are a
 * function of what they are asked for, so that a run can be repeated with any number of threads. */
#ifndef BW_XLATORS_DEBUG_FILTER_H
#define BW_XLATORS_DEBUG_FILTER_H

#include "btrfs-walk/xlator.h"

/** Choices of an option that selects a kind of request; the first is "any". Ends with NULL. */
extern const char *const bw_kind_choices[];

/** What a kind is called among the choices. */
const char *bw_kind_name(enum bw_request_kind kind);

/** Whether a kind is selected; `choice` is the option's number. */
static inline bool bw_kind_selected(uint64_t choice, enum bw_request_kind kind)
{
    return choice == 0 || choice - 1 == (uint64_t)kind;
}

/** A step of a hash: spreads both numbers over 64 bits (the finaliser of splitmix64). */
static inline uint64_t bw_hash_mix(uint64_t hash, uint64_t value)
{
    uint64_t mixed = (hash ^ value) + UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ mixed >> 31;
}

/** What a seed makes of an address. */
static inline uint64_t bw_hash_address(uint64_t seed, uint64_t address)
{
    return bw_hash_mix(bw_hash_mix(0, seed), address);
}

#endif
