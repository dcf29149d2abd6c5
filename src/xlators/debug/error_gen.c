/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debug/error-gen: injects faults. A layer is one rule: which requests, how often, and what happens
 * to them. With a rate, the choice depends on the seed and the request alone, so that the same seed
 * hits the same places in any order and with any number of threads. It works in either address
 * space.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash_mix.h"
#include "ondisk/checksum.h"
#include "ondisk/disk.h"
#include "xlators/classes.h"

enum { POISON = 0xa5 };

enum action { EIO_ERROR, FLIP, ZERO, SHORT, STALE };

static const char *const action_choices[] = {
    [EIO_ERROR] = "eio", [FLIP] = "flip",   [ZERO] = "zero",
    [SHORT] = "short",   [STALE] = "stale", NULL};

struct error_gen {
    uint64_t kind; /* choice of the option */
    uint64_t start, end;
    uint64_t mirror, nth, rate, seed;
    bool once;
    enum action action;
    atomic_uint_fast64_t matches; /* number of requests that matched the rule, hit or not */
    atomic_uint_fast64_t faults;
};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct error_gen *generator = bw_xlator_private(xlator);
    generator->kind = bw_xlator_option_number(xlator, "kind");
    generator->start = bw_xlator_option_number(xlator, "start");
    generator->end = bw_xlator_option_number(xlator, "end");
    generator->mirror = bw_xlator_option_number(xlator, "mirror");
    generator->nth = bw_xlator_option_number(xlator, "nth");
    generator->rate = bw_xlator_option_number(xlator, "rate");
    generator->seed = bw_xlator_option_number(xlator, "seed");
    generator->once = bw_xlator_option_number(xlator, "once");
    generator->action = (enum action)bw_xlator_option_number(xlator, "action");
    if (!generator->nth)
        generator->nth = 1;
    if (!generator->end)
        generator->end = UINT64_MAX;
    /* any thread may read a block with any checksum, so initialize the library now */
    if (generator->action == STALE)
        BW_TRY(bw_checksum_prepare(BW_CHECKSUM_BLAKE2B));
    if (generator->start < generator->end)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE, "start %" PRIu64 " is not below end %" PRIu64,
                           generator->start, generator->end);
}

/* Whether the rule applies to a request, apart from the counting. */
static bool matches_rule(const struct error_gen *generator, const struct bw_request *request)
{
    /* A request for any mirror counts as one for the first. */
    const unsigned copy = request->mirror ? request->mirror : 1;
    uint64_t last;
    if (__builtin_add_overflow(request->address, request->length - 1, &last))
        last = UINT64_MAX;
    if (!bw_request_kind_selected(generator->kind, request->kind) ||
        request->address >= generator->end || last < generator->start ||
        (generator->mirror && generator->mirror != copy))
        return false;
    /* Only blocks with a generation can be stale. */
    if (generator->action == STALE && request->kind != BW_REQUEST_TREE_BLOCK &&
        request->kind != BW_REQUEST_SUPER)
        return false;
    uint64_t hash = bw_hash_address(generator->seed, request->address);
    hash = bw_hash_mix(bw_hash_mix(hash, request->kind), copy);
    return hash % BW_PERCENT_100 < generator->rate;
}

/* Counts a matching request; returns whether the rule hits it. */
static bool is_hit(struct error_gen *generator, const struct bw_request *request)
{
    if (!matches_rule(generator, request))
        return false;
    uint64_t number = 1 + atomic_fetch_add_explicit(&generator->matches, 1, memory_order_relaxed);
    return generator->once ? number == generator->nth : number % generator->nth == 0;
}

/* Simulates a lost write: changes a block to a valid one of the previous transaction. False if it
 * is damaged or incomplete. */
static bool make_stale(struct bw_request *request)
{
    uint8_t *block = request->buffer;
    size_t length = request->length, offset = offsetof(struct bw_disk_header, generation);
    if (length < sizeof(struct bw_disk_header) || length > BW_MAX_NODESIZE)
        return false;
    if (request->kind == BW_REQUEST_SUPER) {
        if (length < BW_SUPERBLOCK_SIZE)
            return false;
        length = BW_SUPERBLOCK_SIZE;
        offset = offsetof(struct bw_disk_superblock, generation);
    }
    unsigned type = 0;
    while (type < BW_CHECKSUM_TYPES &&
           !bw_checksum_matches_block((enum bw_checksum_type)type, block, length))
        type++;
    bw_le64 generation;
    memcpy(&generation, block + offset, sizeof generation);
    if (!bw_get64(generation) || type == BW_CHECKSUM_TYPES)
        return false;
    generation = bw_put64(bw_get64(generation) - 1);
    memcpy(block + offset, &generation, sizeof generation);
    bw_checksum_compute((enum bw_checksum_type)type, block + BW_CSUM_SIZE, length - BW_CSUM_SIZE,
                        block);
    return true;
}

/* Fails a request if it is hit; the request is not passed on then. */
static bool pass_unless_hit(const struct bw_frame *frame, struct bw_xlator *xlator,
                            struct bw_request *request, struct bw_request *copy)
{
    struct error_gen *generator = bw_xlator_private(xlator);
    (void)frame, (void)copy;
    if (!is_hit(generator, request))
        return true;
    atomic_fetch_add_explicit(&generator->faults, 1, memory_order_relaxed);
    request->error = bw_error_from_errno(EIO, "injected I/O error at %" PRIu64, request->address);
    return false;
}

/* The other actions, which alter a reply; false if they did not. */
static bool alter_reply(const struct error_gen *generator, struct bw_request *request)
{
    uint8_t *bytes = request->buffer;
    const uint32_t half = request->length / 2;
    uint64_t bit;
    switch (generator->action) {
    case FLIP:
        bit = bw_hash_address(generator->seed, request->address) % (UINT64_C(8) * request->length);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        return true;
    case ZERO:
        memset(bytes, 0, request->length);
        return true;
    case SHORT:
        /* The whole request was read, because layers below could not check half a tree block. */
        memset(bytes + half, POISON, request->length - half);
        request->error = bw_error_create(
            BW_ERROR_CORRUPT, "injected short read: %" PRIu32 " of %" PRIu32 " bytes at %" PRIu64,
            half, request->length, request->address);
        return true;
    case STALE:
        return make_stale(request);
    case EIO_ERROR:
        break;
    }
    return false;
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    struct error_gen *generator = bw_xlator_private(xlator);
    size_t clear = 0; /* requests before the first that matches */
    while (clear < count && !matches_rule(generator, &requests[clear]))
        clear++;
    if (clear < count && generator->action == EIO_ERROR) {
        bw_wind_copies(frame, xlator, requests, count, pass_unless_hit);
        return;
    }
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
    for (size_t i = 0; i < count; i++)
        if (is_hit(generator, &requests[i]) && !requests[i].error &&
            alter_reply(generator, &requests[i]))
            atomic_fetch_add_explicit(&generator->faults, 1, memory_order_relaxed);
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    struct error_gen *generator = bw_xlator_private(xlator);
    bw_json_number(json, "matches",
                   atomic_load_explicit(&generator->matches, memory_order_relaxed));
    bw_json_number(json, "faults", atomic_load_explicit(&generator->faults, memory_order_relaxed));
}

static const struct bw_option options[] = {
    {"action", BW_OPTION_ENUM, "eio", 0, 0, "what happens to a request that is hit",
     action_choices},
    {"kind", BW_OPTION_ENUM, "any", 0, 0, "which reads the rule applies to",
     bw_request_kind_choices},
    {"start", BW_OPTION_SIZE, "0", 0, UINT64_MAX, "first address that the rule applies to", NULL},
    {"end", BW_OPTION_SIZE, "0", 0, UINT64_MAX,
     "the rule applies to addresses below this one; 0: no limit", NULL},
    {"mirror", BW_OPTION_INTEGER, "0", 0, UINT8_MAX, "mirror that the rule applies to; 0: all",
     NULL},
    {"nth", BW_OPTION_INTEGER, "1", 0, UINT64_MAX,
     "hits each nth request that the rule applies to; 0 and 1: each", NULL},
    {"once", BW_OPTION_BOOL, "off", 0, 0, "hits one request only: the first, or the nth", NULL},
    {"rate", BW_OPTION_PERCENT, "100%", 0, BW_PERCENT_100,
     "share of the places that the rule applies to", NULL},
    {"seed", BW_OPTION_INTEGER, "0", 0, UINT64_MAX,
     "another seed chooses other places, and other bits to flip", NULL},
    {0},
};

static const char page[] =
    "Makes reads fail or return wrong bytes, in a reproducible way. Each layer is one rule; "
    "insert several layers for several rules. A rule applies to requests of one kind that "
    "touch the addresses from start up to, but not including, end, and that read the given "
    "mirror. A request for any mirror counts as a request for mirror 1. Addresses are logical if "
    "the layer is above the chunk map, and offsets on one device below it.\n\n"
    "Use it to see the effect of damage, and whether another mirror can replace the damaged "
    "one. Insert it below verify to corrupt reads from the disk. Above verify, a failed "
    "read loses the block in all mirrors, and altered bytes are not detected: the output and "
    "the exit status may then be wrong.\n\n"
    "    btrfs-walk --insert debug/error-gen@chunk-map,kind=tree-block,mirror=1,action=flip "
    "image.img\n"
    "    btrfs-walk --insert debug/error-gen@device-1,start=1M,end=2M image.img\n\n"
    "The actions: eio fails the request without calling the layers below. flip changes one "
    "bit. zero reads zeros. short fails the request after half of its bytes were read. "
    "stale replaces a tree block or a superblock with its version from the previous "
    "transaction, with a correct checksum, as after a lost write. This action applies only "
    "to these two kinds, and only to whole blocks with a correct checksum.\n\n"
    "With a rate, only that share of all places is hit. The choice depends only on the "
    "seed, address, kind and mirror, not on the order of requests or the number of threads.\n\n"
    "    btrfs-walk --insert debug/error-gen@verify,kind=tree-block,rate=0.5%,seed=42 image.img\n\n"
    "nth and once count the requests that the rule applies to, after the rate, in the order "
    "they arrive; with several threads this order is not always the same.\n";

const struct bw_xlator_class bw_debug_error_gen_class = {
    .type = "debug/error-gen",
    .description = "makes selected reads fail or return wrong bytes",
    .page = page,
    BW_ONE_CHILD(BW_ADDRESS_ANY),
    .private_size = sizeof(struct error_gen),
    .options = options,
    .operations = {.init = init, .read = read_requests, .dump = dump},
};
