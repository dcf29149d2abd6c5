/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cache of digests: a hash table from addresses to byte strings, with one lock, which is held
 * while one or two KiB are copied. When the cache is full, the CLOCK algorithm chooses a digest
 * that has not been used lately. New digests count as unused: if the snapshots are larger than the
 * cache, those read first stay, and the cache is of some use rather than of none.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/array.h"
#include "walk/leaves.h"

enum { BUCKETS = 4096, HAND_STEPS = 64 };

struct digest {
    struct digest *next; /* in its bucket */
    uint64_t bytenr, generation;
    struct bw_key first_key, end_key;
    uint32_t length;
    bool used;
    char bytes[];
};

struct bw_digest_cache {
    pthread_mutex_t lock;
    size_t size, limit;
    struct digest *buckets[BUCKETS];
    struct digest **clock; /* all digests, in no order */
    size_t count, capacity, hand;
};

struct bw_digest_cache *bw_digest_cache_create(size_t size)
{
    struct bw_digest_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    cache->limit = size;
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void bw_digest_cache_destroy(struct bw_digest_cache *cache)
{
    if (!cache)
        return;
    while (cache->count)
        free(cache->clock[--cache->count]);
    free(cache->clock);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static struct digest **bucket_of(struct bw_digest_cache *cache, uint64_t bytenr)
{
    return &cache->buckets[(bytenr >> 12) * UINT64_C(0x9E3779B97F4A7C15) >> 52];
}

static bool is_digest_of(const struct digest *digest, const struct bw_block_pointer *leaf)
{
    return digest->bytenr == leaf->bytenr && digest->generation == leaf->expectation.generation &&
           bw_key_compare(&digest->first_key, &leaf->expectation.first_key) == 0 &&
           bw_key_compare(&digest->end_key, &leaf->expectation.end_key) <= 0;
}

static struct digest *find(struct bw_digest_cache *cache, const struct bw_block_pointer *leaf)
{
    struct digest *digest = *bucket_of(cache, leaf->bytenr);
    while (digest && !is_digest_of(digest, leaf))
        digest = digest->next;
    return digest;
}

bool bw_digest_cache_has(struct bw_digest_cache *cache, const struct bw_block_pointer *leaf)
{
    pthread_mutex_lock(&cache->lock);
    bool found = find(cache, leaf) != NULL;
    pthread_mutex_unlock(&cache->lock);
    return found;
}

bool bw_digest_cache_get(struct bw_digest_cache *cache, const struct bw_block_pointer *leaf,
                         struct bw_buffer *copy)
{
    copy->length = 0;
    pthread_mutex_lock(&cache->lock);
    struct digest *digest = find(cache, leaf);
    if (digest) {
        digest->used = true;
        bw_buffer_append(copy, digest->bytes, digest->length);
    }
    pthread_mutex_unlock(&cache->lock);
    return digest && !copy->failed;
}

static void give_up(struct bw_digest_cache *cache, size_t index)
{
    struct digest *digest = cache->clock[index];
    struct digest **link = bucket_of(cache, digest->bytenr);
    while (*link != digest)
        link = &(*link)->next;
    *link = digest->next;
    cache->clock[index] = cache->clock[--cache->count];
    cache->size -= sizeof *digest + digest->length;
    free(digest);
}

/* Makes room for `wanted` bytes. Gives up after some steps, so that digests in use stay. */
static bool make_room(struct bw_digest_cache *cache, size_t wanted)
{
    for (unsigned step = 0; cache->size + wanted > cache->limit; step++) {
        if (!cache->count || step == HAND_STEPS)
            return false;
        cache->hand %= cache->count;
        if (cache->clock[cache->hand]->used)
            cache->clock[cache->hand++]->used = false;
        else
            give_up(cache, cache->hand);
    }
    return true;
}

void bw_digest_cache_put(struct bw_digest_cache *cache, const struct bw_block_pointer *leaf,
                         const struct bw_buffer *from)
{
    size_t size = sizeof(struct digest) + from->length;
    pthread_mutex_lock(&cache->lock);
    struct digest *digest = NULL;
    if (!find(cache, leaf) && make_room(cache, size) &&
        BW_ARRAY_RESERVE(cache->clock, cache->count, cache->capacity))
        digest = malloc(size);
    if (digest) {
        struct digest **bucket = bucket_of(cache, leaf->bytenr);
        *digest = (struct digest){.next = *bucket,
                                  .bytenr = leaf->bytenr,
                                  .generation = leaf->expectation.generation,
                                  .first_key = leaf->expectation.first_key,
                                  .end_key = leaf->expectation.end_key,
                                  .length = (uint32_t)from->length};
        if (from->length)
            memcpy(digest->bytes, from->data, from->length);
        *bucket = digest;
        cache->clock[cache->count++] = digest;
        cache->size += size;
    }
    pthread_mutex_unlock(&cache->lock);
}
