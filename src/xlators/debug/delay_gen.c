/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debug/delay-gen: slows down the layers below, in a way that can be repeated: the delay of a
 * request depends on the seed and its address. It works in either address space.
 */
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash_mix.h"
#include "xlators/classes.h"

enum { LONGEST_EXPONENTIAL = 10 }; /* times the mean */

enum distribution { FIXED, UNIFORM, EXPONENTIAL };

static const char *const distribution_choices[] = {
    [FIXED] = "fixed", [UNIFORM] = "uniform", [EXPONENTIAL] = "exponential", NULL};

struct delay_gen {
    uint64_t kind; /* choice of the option */
    uint64_t delay, seed;
    enum distribution distribution;
    atomic_uint_fast64_t delayed;     /* requests */
    atomic_uint_fast64_t nanoseconds; /* total of all delays */
};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct delay_gen *generator = bw_xlator_private(xlator);
    generator->kind = bw_xlator_option_number(xlator, "kind");
    generator->delay = bw_xlator_option_number(xlator, "delay");
    generator->seed = bw_xlator_option_number(xlator, "seed");
    generator->distribution = (enum distribution)bw_xlator_option_number(xlator, "distribution");
    return NULL;
}

/* -ln(number / 2^64), for numbers from 1. Squaring yields the binary logarithm bit by bit; 33 bits
 * are precise enough, and save a dependency on the mathematical library. */
static double negative_logarithm(uint64_t number)
{
    const double ln2 = 0.69314718055994530942;
    unsigned whole = 63 - (unsigned)__builtin_clzll(number);
    uint64_t mantissa = number << (63 - whole) >> 32; /* the mantissa, 1 to 2, in units of 2^-31 */
    double logarithm = whole, bit = 1;
    for (unsigned count = 0; count < 33; count++) {
        bit /= 2;
        mantissa = mantissa * mantissa >> 31;
        if (mantissa >> 32) {
            mantissa >>= 1;
            logarithm += bit;
        }
    }
    return (64 - logarithm) * ln2;
}

static uint64_t delay_of(const struct delay_gen *generator, uint64_t address)
{
    const uint64_t hash = bw_hash_address(generator->seed, address);
    if (generator->distribution == UNIFORM)
        return hash % (2 * generator->delay + 1);
    if (generator->distribution == FIXED)
        return generator->delay;
    const double times = negative_logarithm(hash ? hash : 1);
    if (times >= LONGEST_EXPONENTIAL)
        return LONGEST_EXPONENTIAL * generator->delay;
    return (uint64_t)(times * (double)generator->delay);
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    struct delay_gen *generator = bw_xlator_private(xlator);
    uint64_t delayed = 0, nanoseconds = 0;
    for (size_t i = 0; i < count; i++)
        if (bw_request_kind_selected(generator->kind, requests[i].kind)) {
            delayed++;
            nanoseconds += delay_of(generator, requests[i].address);
        }
    if (nanoseconds) {
        /* Sleep until a point in time, so that signals do not prolong the delay. */
        const struct timespec until = bw_clock_after(nanoseconds);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
            continue;
    }
    if (delayed) {
        atomic_fetch_add_explicit(&generator->delayed, delayed, memory_order_relaxed);
        atomic_fetch_add_explicit(&generator->nanoseconds, nanoseconds, memory_order_relaxed);
    }
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    struct delay_gen *generator = bw_xlator_private(xlator);
    bw_json_number(json, "delayed_requests",
                   atomic_load_explicit(&generator->delayed, memory_order_relaxed));
    bw_json_number(json, "delay_nanoseconds",
                   atomic_load_explicit(&generator->nanoseconds, memory_order_relaxed));
}

static const struct bw_option options[] = {
    {"kind", BW_OPTION_ENUM, "any", 0, 0, "which reads are delayed", bw_request_kind_choices},
    {"delay", BW_OPTION_TIME, "1ms", 0, UINT64_C(60000000000),
     "delay of each request; with a distribution, the mean", NULL},
    {"distribution", BW_OPTION_ENUM, "fixed", 0, 0,
     "fixed, up to twice the delay, or many short and few long delays", distribution_choices},
    {"seed", BW_OPTION_INTEGER, "0", 0, UINT64_MAX, "another seed delays other addresses", NULL},
    {0},
};

static const char page[] =
    "Delays reads. A batch waits for the sum of the delays of its requests before it is "
    "passed on, as at a device that serves one request at a time. Batches of different "
    "threads wait at the same time.\n\n"
    "Use it to see the effect of a slow disk or network, or to change the order of requests "
    "from several threads.\n\n"
    "    btrfs-walk --insert debug/delay-gen@device-1,delay=8ms image.img\n\n"
    "With distribution=uniform, a request waits for up to twice the delay; with "
    "distribution=exponential, usually for less than the delay, and rarely for up to ten "
    "times the delay. The delay depends only on the seed and the address, so a run can be "
    "repeated.\n\n"
    "    btrfs-walk --insert "
    "debug/delay-gen@verify,kind=tree-block,delay=200us,distribution=exponential,seed=7 "
    "image.img\n";

const struct bw_xlator_class bw_debug_delay_gen_class = {
    .type = "debug/delay-gen",
    .description = "delays reads",
    .page = page,
    BW_ONE_CHILD(BW_ADDRESS_ANY),
    .private_size = sizeof(struct delay_gen),
    .options = options,
    .operations = {.init = init, .read = read_requests, .dump = dump},
};
