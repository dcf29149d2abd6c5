/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * performance/node-cache: caches verified tree blocks that will be requested again (`keep` in the
 * request): the internal nodes. Everything else passes, so that a scan does not flush it.
 *
 * The cache is cut into shards with a lock each, by a hash of the address. In a shard, the clock
 * algorithm chooses the block to evict: its hand passes over blocks that were hit, and takes the
 * mark of the hit from them. A block comes in unmarked, so that a scan larger than the cache
 * replaces its own tail, and a second scan still finds most of the first.
 *
 * A block in the cache is compared with what the request expects, because a damaged parent may
 * expect another block at the same address. Then the request passes, and the layers below decide.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "graph/wind.h"
#include "ondisk/node.h"
#include "xlators/classes.h"

enum { SHARDS = 16, BUCKETS = 256 };

struct slot {
    struct slot *next; /* the next slot of the bucket */
    uint64_t address;
    uint32_t length;
    bool hit;
    uint8_t *block;
};

BW_VECTOR(slots, struct slot *);

struct shard {
    pthread_mutex_t lock;
    struct slot *buckets[BUCKETS];
    struct slots slots; /* the ring of the clock algorithm; grows up to the shard's share */
    size_t hand;
    uint64_t bytes;
};

struct node_cache {
    uint64_t shard_size;               /* maximum number of bytes in a shard */
    atomic_uint_fast64_t hits, misses; /* lookups; other requests are not counted */
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
        while (shard->slots.count) {
            struct slot *slot = slots_pop(&shard->slots);
            free(slot->block);
            free(slot);
        }
        slots_free(&shard->slots);
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

/* The link to the block with this address, or the NULL at the end of its bucket. */
static struct slot **find_link(struct shard *shard, uint64_t address)
{
    struct slot **link = &shard->buckets[hash_of(address) >> 52 & (BUCKETS - 1)];
    while (*link && (*link)->address != address)
        link = &(*link)->next;
    return link;
}

/* Copies the block from the cache if it contains the expected one. */
static bool look_up(struct node_cache *cache, const struct bw_request *request)
{
    struct shard *shard = shard_of(cache, request->address);
    pthread_mutex_lock(&shard->lock);
    struct slot *slot = *find_link(shard, request->address);
    bool found = slot && slot->length == request->length &&
                 bw_node_meets_expectation(slot->block, slot->length, request->address,
                                           request->expectation);
    if (found) {
        memcpy(request->buffer, slot->block, request->length);
        slot->hit = true;
    }
    pthread_mutex_unlock(&shard->lock);
    return found;
}

/* A new slot; NULL if memory runs out. */
static struct slot *add_slot(struct shard *shard, uint32_t length)
{
    struct slot *slot = calloc(1, sizeof *slot);
    uint8_t *block = malloc(length);
    struct bw_error *error = slots_push(&shard->slots, slot);
    if (!slot || !block || error) {
        if (!error)
            slots_pop(&shard->slots);
        bw_error_free(error);
        free(slot);
        free(block);
        return NULL;
    }
    slot->block = block;
    slot->length = length;
    shard->bytes += length;
    return slot;
}

/* Adds a block to the cache. If another one is evicted for it, describes that in `evicted`;
 * otherwise its `bytes` stay 0. */
static void add_block(struct node_cache *cache, const struct bw_request *request,
                      struct bw_cache_event *evicted)
{
    struct shard *shard = shard_of(cache, request->address);
    pthread_mutex_lock(&shard->lock);
    struct slot *slot = NULL;
    if (*find_link(shard, request->address)) {
        /* Another thread has added it, or it is not the expected one. */
    } else if (shard->bytes + request->length <= cache->shard_size) {
        slot = add_slot(shard, request->length);
    } else if (shard->slots.count) {
        /* The hand stops at a block that was not hit since it last passed. */
        while (shard->slots.items[shard->hand]->hit) {
            shard->slots.items[shard->hand]->hit = false;
            shard->hand = (shard->hand + 1) % shard->slots.count;
        }
        slot = shard->slots.items[shard->hand];
        if (slot->length == request->length) {
            *evicted = (struct bw_cache_event){
                .logical = slot->address,
                .level = ((const struct bw_disk_header *)slot->block)->level,
                .bytes = slot->length};
            *find_link(shard, slot->address) = slot->next;
        } else {
            slot = NULL;
        }
    }
    if (slot) {
        slot->address = request->address;
        slot->hit = false;
        slot->next = NULL;
        memcpy(slot->block, request->buffer, request->length);
        *find_link(shard, request->address) = slot;
    }
    pthread_mutex_unlock(&shard->lock);
}

static bool is_cacheable(const struct bw_request *request)
{
    return request->keep && request->kind == BW_REQUEST_TREE_BLOCK && request->mirror == 0 &&
           !request->expectation->lenient && request->length >= sizeof(struct bw_disk_header);
}

static void read_requests(const struct bw_frame *frame, struct bw_xlator *xlator,
                          struct bw_request *requests, size_t total)
{
    struct node_cache *cache = bw_xlator_private(xlator);
    struct bw_probes *probes = bw_xlator_probes(xlator);
    for (size_t done = 0; done < total; done += BW_BATCH) {
        const size_t end = done + bw_next_batch(total - done);
        struct bw_request misses[BW_BATCH], *wholes[BW_BATCH];
        size_t missed = 0;
        for (size_t i = done; i < end; i++) {
            struct bw_request *request = &requests[i];
            if (is_cacheable(request)) {
                const struct bw_cache_event event = {{.call = frame->call},
                                                     request->address,
                                                     request->expectation->level,
                                                     request->length,
                                                     request->expectation->owner};
                if (look_up(cache, request)) {
                    request->error = NULL;
                    atomic_fetch_add_explicit(&cache->hits, 1, memory_order_relaxed);
                    BW_PROBE(probes, cache__hit, cache, &event);
                    continue;
                }
                atomic_fetch_add_explicit(&cache->misses, 1, memory_order_relaxed);
                BW_PROBE(probes, cache__miss, cache, &event);
            }
            misses[missed] = *request;
            wholes[missed++] = request;
        }
        bw_wind(frame, bw_xlator_child(xlator, 0), misses, missed);
        for (size_t i = 0; i < missed; i++) {
            bw_request_answer(wholes[i], &misses[i]);
            if (misses[i].error || !is_cacheable(&misses[i]))
                continue;
            struct bw_cache_event evicted = {.event.call = 0};
            add_block(cache, &misses[i], &evicted);
            evicted.event.call = frame->call;
            if (evicted.bytes)
                BW_PROBE(probes, cache__evict, cache_evict, &evicted);
        }
    }
}

static void dump(struct bw_xlator *xlator, struct bw_json *json)
{
    struct node_cache *cache = bw_xlator_private(xlator);
    uint64_t blocks = 0, bytes = 0;
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        blocks += shard->slots.count;
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
