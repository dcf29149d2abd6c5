/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * performance/node-cache: caches verified tree blocks that will be requested again (`keep` in the
 * request): the internal nodes. Everything else passes, so that a scan does not flush it.
 *
 * The cache is cut into shards with a lock each. In a shard the clock algorithm chooses the block
 * to evict; a block comes in unmarked and is marked when it is hit, so that a scan larger than the
 * cache replaces its own tail and a second scan still finds most of the first.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "graph/wind.h"
#include "ondisk/node.h"
#include "xlators/classes.h"

enum { SHARDS = 16, BUCKETS = 256 };

struct slot {
    struct slot *next; /* in its bucket */
    uint64_t address;
    uint32_t length;
    bool hit;
    uint8_t *block;
};

struct shard {
    pthread_mutex_t lock;
    struct slot *buckets[BUCKETS];
    struct slot **slots; /* the ring of the clock algorithm; grows up to the shard's share */
    size_t count, hand;
    uint64_t bytes;
};

struct node_cache {
    uint64_t shard_size;               /* maximum number of bytes in a shard */
    atomic_uint_fast64_t hits, misses; /* for requests with `keep` set */
    struct shard shards[SHARDS];
};

static struct bw_error *init(struct bw_xlator *xlator)
{
    struct node_cache *cache = bw_xlator_private(xlator);
    cache->shard_size = bw_xlator_option_number(xlator, "size") / SHARDS;
    for (size_t i = 0; i < SHARDS; i++)
        pthread_mutex_init(&cache->shards[i].lock, NULL);
    return NULL;
}

static void fini(struct bw_xlator *xlator)
{
    struct node_cache *cache = bw_xlator_private(xlator);
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        while (shard->count) {
            struct slot *slot = shard->slots[--shard->count];
            free(slot->block);
            free(slot);
        }
        free(shard->slots);
        pthread_mutex_destroy(&shard->lock);
    }
}

static uint64_t hash_of(uint64_t address)
{
    return (address >> 12) * UINT64_C(0x9E3779B97F4A7C15);
}

static struct shard *shard_of(struct node_cache *cache, uint64_t address)
{
    return &cache->shards[hash_of(address) >> 60];
}

static struct slot **bucket_of(struct shard *shard, uint64_t address)
{
    return &shard->buckets[hash_of(address) >> 52 & (BUCKETS - 1)];
}

static struct slot *find_slot(struct shard *shard, uint64_t address)
{
    struct slot *slot = *bucket_of(shard, address);
    while (slot && slot->address != address)
        slot = slot->next;
    return slot;
}

/* Copies the block from the cache if it contains the expected one. */
static bool answer_from_cache(struct node_cache *cache, struct bw_request *request)
{
    struct shard *shard = shard_of(cache, request->address);
    pthread_mutex_lock(&shard->lock);
    struct slot *slot = find_slot(shard, request->address);
    bool found = slot && slot->length == request->length &&
                 bw_node_meets_expectation(slot->block, slot->length, request->address,
                                           request->expectation);
    if (found) {
        memcpy(request->buffer, slot->block, request->length);
        slot->hit = true;
    }
    pthread_mutex_unlock(&shard->lock);
    if (found)
        request->error = NULL;
    return found;
}

static void unlink_slot(struct shard *shard, const struct slot *slot)
{
    struct slot **link = bucket_of(shard, slot->address);
    while (*link != slot)
        link = &(*link)->next;
    *link = slot->next;
}

static struct slot *add_slot(struct shard *shard, uint32_t length)
{
    struct slot **slots = realloc(shard->slots, (shard->count + 1) * sizeof *slots);
    if (!slots)
        return NULL;
    shard->slots = slots;
    struct slot *slot = calloc(1, sizeof *slot);
    uint8_t *block = malloc(length);
    if (!slot || !block) {
        free(slot);
        free(block);
        return NULL;
    }
    slot->block = block;
    slot->length = length;
    shard->slots[shard->count++] = slot;
    shard->bytes += length;
    return slot;
}

/* Advances the hand to a block that was not hit since the hand last passed it, and evicts it. */
static struct slot *reuse_slot(struct shard *shard, uint32_t length, struct bw_cache_event *evicted)
{
    if (!shard->count)
        return NULL;
    while (shard->slots[shard->hand]->hit) {
        shard->slots[shard->hand]->hit = false;
        shard->hand = (shard->hand + 1) % shard->count;
    }
    struct slot *slot = shard->slots[shard->hand];
    if (slot->length != length)
        return NULL;
    *evicted = (struct bw_cache_event){.logical = slot->address,
                                       .level = ((const struct bw_disk_header *)slot->block)->level,
                                       .bytes = slot->length};
    unlink_slot(shard, slot);
    return slot;
}

/* Adds a block to the cache. If another one is evicted for it, describes that in `evicted`;
 * otherwise sets its `bytes` to 0. */
static void add_block(struct node_cache *cache, const struct bw_request *request,
                      struct bw_cache_event *evicted)
{
    struct shard *shard = shard_of(cache, request->address);
    pthread_mutex_lock(&shard->lock);
    struct slot *slot = NULL;
    if (!find_slot(shard, request->address)) {
        bool room = shard->bytes + request->length <= cache->shard_size;
        slot =
            room ? add_slot(shard, request->length) : reuse_slot(shard, request->length, evicted);
    }
    if (slot) {
        struct slot **bucket = bucket_of(shard, request->address);
        slot->address = request->address;
        slot->hit = false;
        memcpy(slot->block, request->buffer, request->length);
        slot->next = *bucket;
        *bucket = slot;
    }
    pthread_mutex_unlock(&shard->lock);
}

static bool is_cacheable(const struct bw_request *request)
{
    return request->keep && request->kind == BW_REQUEST_TREE_BLOCK && request->copy == 0 &&
           !request->expectation->lenient && request->length >= sizeof(struct bw_disk_header);
}

static const struct bw_cache_event *describe_event(struct bw_cache_event *event,
                                                   const struct bw_frame *frame,
                                                   const struct bw_request *request)
{
    *event = (struct bw_cache_event){{.call = frame->call},
                                     request->address,
                                     request->expectation->level,
                                     request->length,
                                     request->expectation->owner};
    return event;
}

/* Looks up a block with `keep` set; true if it was found. */
static bool look_up_block(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *request)
{
    struct node_cache *cache = bw_xlator_private(xlator);
    struct bw_probes *probes = bw_xlator_probes(xlator);
    struct bw_cache_event event;
    bool found = answer_from_cache(cache, request);
    atomic_fetch_add_explicit(found ? &cache->hits : &cache->misses, 1, memory_order_relaxed);
    if (found)
        BW_PROBE(probes, cache__hit, cache, describe_event(&event, frame, request));
    else
        BW_PROBE(probes, cache__miss, cache, describe_event(&event, frame, request));
    return found;
}

static void cache_block(const struct bw_frame *frame, struct bw_xlator *xlator,
                        const struct bw_request *request)
{
    struct bw_cache_event evicted = {.bytes = 0};
    add_block(bw_xlator_private(xlator), request, &evicted);
    evicted.event.call = frame->call;
    if (evicted.bytes)
        BW_PROBE(bw_xlator_probes(xlator), cache__evict, cache_evict, &evicted);
}

static void read_slice(const struct bw_frame *frame, struct bw_xlator *xlator,
                       struct bw_request *requests, size_t count)
{
    struct bw_request misses[BW_BATCH];
    struct bw_request *wholes[BW_BATCH];
    size_t missed = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_cacheable(&requests[i]) && look_up_block(frame, xlator, &requests[i]))
            continue;
        misses[missed] = requests[i];
        wholes[missed++] = &requests[i];
    }
    bw_wind(frame, bw_xlator_child(xlator, 0), misses, missed);
    for (size_t i = 0; i < missed; i++) {
        bw_request_answer(wholes[i], &misses[i]);
        if (!misses[i].error && is_cacheable(&misses[i]))
            cache_block(frame, xlator, &misses[i]);
    }
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t count)
{
    for (size_t done = 0; done < count; done += BW_BATCH)
        read_slice(frame, xlator, requests + done, bw_next_batch(count - done));
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    struct node_cache *cache = bw_xlator_private(xlator);
    uint64_t blocks = 0, bytes = 0;
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        blocks += shard->count;
        bytes += shard->bytes;
        pthread_mutex_unlock(&shard->lock);
    }
    bw_json_number(json, "blocks", blocks);
    bw_json_number(json, "bytes", bytes);
    bw_json_number(json, "hits", atomic_load_explicit(&cache->hits, memory_order_relaxed));
    bw_json_number(json, "misses", atomic_load_explicit(&cache->misses, memory_order_relaxed));
}

static const struct bw_option options[] = {
    {"size", BW_OPTION_SIZE, "6M", 0, UINT64_C(1) << 40, "memory for cached blocks", NULL},
    {0},
};

const struct bw_xlator_class bw_performance_node_cache_class = {
    .type = "performance/node-cache",
    .description = "caches the upper blocks of trees",
    .page = "A walk reads the upper blocks of the trees repeatedly, and the leaves only once. This "
            "layer keeps only the upper blocks in memory, already verified, so it belongs above "
            "features/verify.\n\n"
            "The default is enough for most images. Give it more memory for a file system of many "
            "terabytes on a slow disk, and none to measure the layers below:\n\n"
            "    btrfs-walk --xlator-option node-cache.size=64M disk.img\n",
    BW_ONE_CHILD(BW_ADDRESS_LOGICAL),
    .private_size = sizeof(struct node_cache),
    .options = options,
    .operations = {.init = init, .fini = fini, .read = read_requests, .dump = dump},
};
