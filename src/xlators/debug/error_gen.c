/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debug/error-gen: faults on purpose. A layer is one rule: which requests, how often, and what
 * happens to them. With a rate, who is hit is a function of the seed and the request alone, so that
 * the same seed hits the same places in any order and with any number of threads. Stands wherever
 * it is put, in either address space; what it does is undone or reported by the layers above.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "format/checksum.h"
#include "format/disk.h"
#include "xlators/classes.h"
#include "xlators/debug/chance.h"

enum { POISON = 0xa5 };

enum action { EIO_ERROR, FLIP, ZERO, SHORT, STALE };

static const char *const action_choices[] = {
    [EIO_ERROR] = "eio", [FLIP] = "flip",   [ZERO] = "zero",
    [SHORT] = "short",   [STALE] = "stale", NULL};

struct error_gen {
    uint64_t kind; /* choice of the option */
    uint64_t start, end;
    uint64_t copy, nth, rate, seed;
    bool once;
    enum action action;
    atomic_uint_fast64_t matches; /* requests the rule was for, hit or not */
    atomic_uint_fast64_t faults;
};

static struct bw_error *check_range(const struct error_gen *generator)
{
    if (generator->start < generator->end)
        return NULL;
    return bw_error_create(BW_ERROR_USAGE, "start %" PRIu64 " is not below end %" PRIu64,
                           generator->start, generator->end);
}

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct error_gen *generator = calloc(1, sizeof *generator);
    if (!generator)
        return bw_error_no_memory();
    bw_xlator_set_private(xlator, generator);
    generator->kind = bw_xlator_option_number(xlator, "kind");
    generator->start = bw_xlator_option_number(xlator, "start");
    generator->end = bw_xlator_option_number(xlator, "end");
    generator->copy = bw_xlator_option_number(xlator, "copy");
    generator->nth = bw_xlator_option_number(xlator, "nth");
    generator->rate = bw_xlator_option_number(xlator, "rate");
    generator->seed = bw_xlator_option_number(xlator, "seed");
    generator->once = bw_xlator_option_number(xlator, "once");
    generator->action = (enum action)bw_xlator_option_number(xlator, "action");
    if (!generator->nth)
        generator->nth = 1;
    if (!generator->end)
        generator->end = UINT64_MAX;
    /* The type of checksum is found out block by block, in any thread; its library is made ready in
     * this one.
     */
    if (generator->action == STALE)
        BW_TRY(bw_checksum_prepare(BW_CHECKSUM_BLAKE2B));
    return check_range(generator);
}

static void fini(struct bw_xlator *xlator)
{
    free(bw_xlator_private(xlator));
    bw_xlator_set_private(xlator, NULL);
}

/* A request for any copy counts as one for the first. */
static unsigned copy_of(const struct bw_request *request)
{
    return request->copy ? request->copy : 1;
}

static bool overlaps(const struct error_gen *generator, const struct bw_request *request)
{
    uint64_t last;
    if (__builtin_add_overflow(request->address, request->length - 1, &last))
        last = UINT64_MAX;
    return request->address < generator->end && last >= generator->start;
}

static bool drawn(const struct error_gen *generator, const struct bw_request *request)
{
    uint64_t hash = bw_hash_address(generator->seed, request->address);
    hash = bw_hash_mix(bw_hash_mix(hash, request->kind), copy_of(request));
    return hash % BW_PERCENT_100 < generator->rate;
}

/* Only these have a generation that can be old. */
static bool can_be_stale(const struct bw_request *request)
{
    return request->kind == BW_REQUEST_TREE_BLOCK || request->kind == BW_REQUEST_SUPER;
}

/* Whether the rule is for a request, all but the counting. */
static bool matches(const struct error_gen *generator, const struct bw_request *request)
{
    return bw_request_kind_selected(generator->kind, request->kind) &&
           overlaps(generator, request) &&
           (!generator->copy || generator->copy == copy_of(request)) &&
           (generator->action != STALE || can_be_stale(request)) && drawn(generator, request);
}

/* Whether it is the turn of a request that matches. */
static bool its_turn(struct error_gen *generator)
{
    uint64_t number = 1 + atomic_fetch_add_explicit(&generator->matches, 1, memory_order_relaxed);
    return generator->once ? number == generator->nth : number % generator->nth == 0;
}

static_assert(BW_BATCH <= 64, "the requests of a batch are the bits of a number");

static uint64_t choose(struct error_gen *generator, const struct bw_request *requests, size_t count)
{
    uint64_t hit = 0;
    for (size_t i = 0; i < count; i++)
        if (matches(generator, &requests[i]) && its_turn(generator))
            hit |= UINT64_C(1) << i;
    return hit;
}

static bool flip(const struct error_gen *generator, struct bw_request *request)
{
    uint64_t bit =
        bw_hash_address(generator->seed, request->address) % (UINT64_C(8) * request->length);
    ((uint8_t *)request->buffer)[bit / 8] ^= (uint8_t)(1u << bit % 8);
    return true;
}

static bool zero(const struct error_gen *generator, struct bw_request *request)
{
    (void)generator;
    memset(request->buffer, 0, request->length);
    return true;
}

/* All of it was read: a layer below must not be asked for half a tree block. Nobody sees the
 * difference. */
static bool cut_short(const struct error_gen *generator, struct bw_request *request)
{
    (void)generator;
    uint32_t half = request->length / 2;
    memset((uint8_t *)request->buffer + half, POISON, request->length - half);
    request->error = bw_error_create(
        BW_ERROR_CORRUPT, "injected short read: %" PRIu32 " of %" PRIu32 " bytes at %" PRIu64, half,
        request->length, request->address);
    return true;
}

/* A block whose checksum fits none of the types is damaged, a piece of one, or something else. */
static bool find_checksum(const uint8_t *block, size_t length, enum bw_checksum_type *type)
{
    for (unsigned i = 0; i < BW_CHECKSUM_TYPES; i++)
        if (bw_checksum_matches_block((enum bw_checksum_type)i, block, length)) {
            *type = (enum bw_checksum_type)i;
            return true;
        }
    return false;
}

/* What a lost write leaves: the block of an earlier transaction, in itself faultless. */
static bool make_older(uint8_t *block, size_t length, size_t generation_offset)
{
    enum bw_checksum_type type;
    bw_le64 generation;
    memcpy(&generation, block + generation_offset, sizeof generation);
    if (!bw_get64(generation) || !find_checksum(block, length, &type))
        return false;
    generation = bw_put64(bw_get64(generation) - 1);
    memcpy(block + generation_offset, &generation, sizeof generation);
    bw_checksum_compute(type, block + BW_CSUM_SIZE, length - BW_CSUM_SIZE, block);
    return true;
}

static bool stale(const struct error_gen *generator, struct bw_request *request)
{
    (void)generator;
    bool super = request->kind == BW_REQUEST_SUPER;
    uint32_t least = super ? BW_SUPERBLOCK_SIZE : (uint32_t)sizeof(struct bw_disk_header);
    if (request->length < least || request->length > BW_MAX_NODESIZE)
        return false;
    return super ? make_older(request->buffer, BW_SUPERBLOCK_SIZE,
                              offsetof(struct bw_disk_superblock, generation))
                 : make_older(request->buffer, request->length,
                              offsetof(struct bw_disk_header, generation));
}

/* Fails a request without asking below. */
static void fail(struct error_gen *generator, struct bw_request *request)
{
    atomic_fetch_add_explicit(&generator->faults, 1, memory_order_relaxed);
    request->error = bw_error_from_errno(EIO, "injected I/O error at %" PRIu64, request->address);
}

/* What the other actions make of a reply; false: nothing. */
static bool (*const spoilers[])(const struct error_gen *, struct bw_request *) = {
    [FLIP] = flip, [ZERO] = zero, [SHORT] = cut_short, [STALE] = stale};

static void spoil(struct error_gen *generator, struct bw_request *request)
{
    if (!request->error && spoilers[generator->action](generator, request))
        atomic_fetch_add_explicit(&generator->faults, 1, memory_order_relaxed);
}

/* Hands down all but those that fail here. */
static void read_others(const struct bw_frame *frame, struct bw_xlator *xlator,
                        struct bw_request *requests, size_t count, uint64_t hit)
{
    struct bw_request others[BW_BATCH];
    struct bw_request *wholes[BW_BATCH];
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        if (hit >> i & 1) {
            fail(bw_xlator_private(xlator), &requests[i]);
            continue;
        }
        others[left] = requests[i];
        wholes[left++] = &requests[i];
    }
    bw_wind(frame, bw_xlator_child(xlator, 0), others, left);
    for (size_t i = 0; i < left; i++)
        bw_request_answer(wholes[i], &others[i]);
}

static void read_slice(const struct bw_frame *frame, struct bw_xlator *xlator,
                       struct bw_request *requests, size_t count)
{
    struct error_gen *generator = bw_xlator_private(xlator);
    uint64_t hit = choose(generator, requests, count);
    if (hit && generator->action == EIO_ERROR) {
        read_others(frame, xlator, requests, count, hit);
        return;
    }
    bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
    for (size_t i = 0; i < count; i++)
        if (hit >> i & 1)
            spoil(generator, &requests[i]);
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    const struct error_gen *generator = bw_xlator_private(xlator);
    size_t clear = 0;
    while (clear < count && !matches(generator, &requests[clear]))
        clear++;
    if (clear == count)
        bw_wind(frame, bw_xlator_child(xlator, 0), requests, count);
    for (size_t done = 0; clear < count && done < count; done += BW_BATCH)
        read_slice(frame, xlator, requests + done, bw_next_batch(count - done));
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    struct error_gen *generator = bw_xlator_private(xlator);
    bw_json_number(json, "matches",
                   atomic_load_explicit(&generator->matches, memory_order_relaxed));
    bw_json_number(json, "faults", atomic_load_explicit(&generator->faults, memory_order_relaxed));
}

static const struct bw_option options[] = {
    {.name = "action",
     .type = BW_OPTION_ENUM,
     .default_value = "eio",
     .description = "what happens to a request that is hit",
     .choices = action_choices},
    {.name = "kind",
     .type = BW_OPTION_ENUM,
     .default_value = "any",
     .description = "which reads the rule is for",
     .choices = bw_request_kind_choices},
    {.name = "start",
     .type = BW_OPTION_SIZE,
     .default_value = "0",
     .maximum = UINT64_MAX,
     .description = "first address the rule is for"},
    {.name = "end",
     .type = BW_OPTION_SIZE,
     .default_value = "0",
     .maximum = UINT64_MAX,
     .description = "the rule applies to addresses below this one; 0: no limit"},
    {.name = "copy",
     .type = BW_OPTION_INTEGER,
     .default_value = "0",
     .maximum = UINT8_MAX,
     .description = "the copy the rule is for; 0: all"},
    {.name = "nth",
     .type = BW_OPTION_INTEGER,
     .default_value = "1",
     .maximum = UINT64_MAX,
     .description = "hits each nth request the rule is for; 0 and 1: each"},
    {.name = "once",
     .type = BW_OPTION_BOOL,
     .default_value = "off",
     .description = "hits one request only: the first, or the nth"},
    {.name = "rate",
     .type = BW_OPTION_PERCENT,
     .default_value = "100%",
     .maximum = BW_PERCENT_100,
     .description = "part of the places that the rule is for"},
    {.name = "seed",
     .type = BW_OPTION_INTEGER,
     .default_value = "0",
     .maximum = UINT64_MAX,
     .description = "another seed chooses other places, and other bits to flip"},
    {0},
};

static const char page[] =
    "Makes reads fail or go wrong, always in the same way. A layer is one rule; for several rules "
    "insert "
    "several layers. The rule is for requests of one kind, that touch the addresses from start up "
    "to, not "
    "including, end, and ask for one copy (who takes any copy asks for copy 1). Addresses are "
    "those of the "
    "place it stands in: logical above the chunk map, offsets on one device below it.\n"
    "\n"
    "Use it to see what damage would cost, and whether another copy makes up for it. Put it below "
    "verify to "
    "spoil what is read from the disk. Above it, eio and short lose a block for good; bytes that "
    "are altered "
    "there are believed, and the list and the exit status may then be wrong.\n"
    "\n"
    "    btrfs-walk --insert debug/error-gen@chunk-map,kind=tree-block,copy=1,action=flip "
    "image.img\n"
    "    btrfs-walk --insert debug/error-gen@device-1,start=1M,end=2M image.img\n"
    "\n"
    "The actions: eio fails the request, and the layers below are not asked. flip changes one bit. "
    "zero "
    "reads zeros. short fails the request with half of its bytes read. stale turns a tree block or "
    "a "
    "superblock into that of the transaction before, with a right checksum, which is what a lost "
    "write "
    "leaves; a rule with this action is for those two kinds only, and leaves alone what is not a "
    "whole block "
    "with a right checksum.\n"
    "\n"
    "With a rate, only that part of all places is hit. Which ones is a function of the seed, "
    "address, kind "
    "and copy: the same seed hits the same places, in any order and with any number of threads.\n"
    "\n"
    "    btrfs-walk --insert debug/error-gen@verify,kind=tree-block,rate=0.5%,seed=42 image.img\n"
    "\n"
    "nth and once count the requests that the rule is for, after the rate, as they come: with "
    "several "
    "threads their order is not always the same.\n";

const struct bw_xlator_class bw_debug_error_gen_class = {
    .type = "debug/error-gen",
    .description = "makes chosen reads fail or go wrong",
    .page = page,
    .above = BW_ADDRESS_ANY,
    .below = BW_ADDRESS_ANY,
    .minimum_children = 1,
    .maximum_children = 1,
    .options = options,
    .operations = {.init = init, .fini = fini, .read = read_requests, .dump = dump},
};
