/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The leaves below a node.
 *
 * The wanted leaves are a set of bits, and the lowest one always comes next. The window has room
 * for a batch of leaves. If the next wanted leaf is not in the window, one batch of requests reads
 * it together with the wanted leaves after it, into slots that hold no wanted leaf. So leaves that
 * become wanted again soon are still there, and every batch is as large as possible.
 *
 * Snapshots share most of their leaves. From such a leaf, an entry list is made when it is read
 * first. A cache keeps the lists, for all workers and subvolumes, and a later subvolume that comes
 * to the same leaf gets the list instead of the leaf.
 */
#include "walk/leaves.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/short_copy.h"
#include "base/vector.h"
#include "walk/path_text.h"
#include "xlators/classes.h"

/*
 * Making and reading entry lists. They exist only in memory, so numbers are in the byte order of
 * the machine. A directory is a header followed by its entries. An entry is a kind, the length of
 * the name, the name, and the id that it points to; for regular files, the id is omitted unless the
 * list is `numbered`.
 */

struct directory_header {
    uint64_t inode;
    uint32_t length; /* bytes of the entries that follow */
};

/* The kind of an entry with an id is KIND_SUBVOLUME, or KIND_TYPE plus its BW_FILE_*. */
enum { KIND_FILE = BW_LISTED_FILE, KIND_SUBVOLUME, KIND_TYPE };

/* Appends the entry of a regular file; false if its name is invalid. */
static bool append_file(struct bw_buffer *list, const struct bw_disk_dir_item *entry, bool numbered)
{
    const uint8_t *name = (const uint8_t *)(entry + 1);
    const size_t length = bw_get16(entry->name_length);
    const uint64_t number = bw_get64(entry->location.objectid);
    if (!bw_name_is_valid(name, length) || !bw_buffer_reserve(list, 2 + length + sizeof number))
        return false;
    char *at = list->data + list->length;
    at[0] = KIND_FILE;
    at[1] = (char)length;
    bw_copy_short(at + 2, name, length);
    list->length += 2 + length;
    if (numbered) {
        memcpy(at + 2 + length, &number, sizeof number);
        list->length += sizeof number;
    }
    return true;
}

/* Appends the entries of any other item; false if one is invalid. */
static bool append_item(struct bw_buffer *list, const struct bw_item *item, bool numbered)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    if (item->size == 0)
        return false;
    while (bw_dir_entry_next(&cursor, &entry)) {
        const uint64_t number = entry.location.objectid;
        uint8_t kind = (uint8_t)(KIND_TYPE + entry.type);
        if (!bw_name_is_valid(entry.name, entry.name_length))
            return false;
        if (entry.location.type == BW_ROOT_ITEM)
            kind = KIND_SUBVOLUME;
        else if (entry.type == BW_FILE_REGULAR)
            kind = KIND_FILE;
        else if (entry.type != BW_FILE_DIRECTORY && !numbered)
            continue;
        const uint8_t head[2] = {kind, (uint8_t)entry.name_length};
        bw_buffer_append(list, head, sizeof head);
        bw_buffer_append(list, entry.name, entry.name_length);
        if (kind != KIND_FILE || numbered)
            bw_buffer_append(list, &number, sizeof number);
    }
    return !bw_cursor_bad(&cursor);
}

/* Sets the length of the directory whose header is at `start`, if any. */
static void close_directory(struct bw_buffer *list, size_t start)
{
    if (start == SIZE_MAX || list->failed)
        return;
    struct directory_header header;
    memcpy(&header, list->data + start, sizeof header);
    header.length = (uint32_t)(list->length - start - sizeof header);
    memcpy(list->data + start, &header, sizeof header);
}

bool bw_entry_list_make(const struct bw_node *leaf, bool numbered, struct bw_buffer *list)
{
    struct directory_header header = {0};
    size_t start = SIZE_MAX;
    bool after_entry = false;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        const struct bw_disk_item *disk = bw_node_disk_item(leaf, slot);
        const struct bw_disk_dir_item *file;
        struct bw_item item;
        const bool is_entry = disk->key.type == BW_DIR_INDEX;
        const uint64_t inode = bw_get64(disk->key.objectid);
        if ((is_entry != after_entry || (is_entry && inode != header.inode)) &&
            !bw_leaf_is_ordered_at(leaf, slot))
            return false;
        after_entry = is_entry;
        if (!is_entry)
            continue;
        if (start == SIZE_MAX || inode != header.inode) {
            close_directory(list, start);
            header.inode = inode;
            start = list->length;
            bw_buffer_append(list, &header, sizeof header);
        }
        file = bw_leaf_file_entry(leaf, slot, inode);
        bool is_good;
        if (file)
            is_good = append_file(list, file, numbered);
        else
            is_good = bw_leaf_item(leaf, slot, &item) && append_item(list, &item, numbered);
        if (!is_good)
            return false;
    }
    close_directory(list, start);
    return !list->failed;
}

bool bw_entry_list_next_directory(struct bw_entry_list_cursor *cursor, uint64_t *inode,
                                  struct bw_entry_list_cursor *entries)
{
    struct directory_header header;
    if (cursor->next == cursor->end)
        return false;
    memcpy(&header, cursor->next, sizeof header);
    *inode = header.inode;
    entries->next = cursor->next + sizeof header;
    entries->end = cursor->next = entries->next + header.length;
    entries->number_size = cursor->number_size;
    return true;
}

bool bw_entry_list_next_entry(struct bw_entry_list_cursor *cursor, struct bw_dir_entry *entry)
{
    if (cursor->next == cursor->end)
        return false;
    const uint8_t kind = (uint8_t)cursor->next[0];
    *entry = (struct bw_dir_entry){.location = {0, BW_INODE_ITEM, 0},
                                   .name = (const uint8_t *)cursor->next + 2,
                                   .name_length = (uint8_t)cursor->next[1],
                                   .type = (uint8_t)(kind - KIND_TYPE)};
    cursor->next += 2 + entry->name_length;
    if (kind == KIND_FILE)
        entry->type = BW_FILE_REGULAR;
    if (kind == KIND_SUBVOLUME) {
        entry->type = BW_FILE_DIRECTORY;
        entry->location.type = BW_ROOT_ITEM;
    }
    if (kind != KIND_FILE || cursor->number_size) {
        memcpy(&entry->location.objectid, cursor->next, sizeof entry->location.objectid);
        cursor->next += sizeof entry->location.objectid;
    }
    return true;
}

/*
 * The cache of entry lists: a hash table from addresses to byte strings, with one lock, which is
 * held while one or two KiB are copied. When the cache is full, the CLOCK algorithm chooses a list
 * that has not been used lately. New lists count as unused: if the snapshots are larger than the
 * cache, those read first stay, and the cache is of some use rather than of none.
 */

enum { BUCKETS = 4096, HAND_STEPS = 64 };

struct cached_list {
    struct cached_list *next; /* in its bucket */
    uint64_t bytenr, generation;
    struct bw_key first_key, end_key;
    uint32_t length;
    bool used;
    char bytes[];
};

BW_VECTOR(cached_lists, struct cached_list *);

struct bw_entry_cache {
    pthread_mutex_t lock;
    size_t size, limit;
    struct cached_list *buckets[BUCKETS];
    struct cached_lists clock; /* all lists, in no order */
    size_t hand;
};

struct bw_entry_cache *bw_entry_cache_create(size_t size)
{
    struct bw_entry_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    cache->limit = size;
    pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void bw_entry_cache_destroy(struct bw_entry_cache *cache)
{
    if (!cache)
        return;
    while (cache->clock.count)
        free(cached_lists_pop(&cache->clock));
    cached_lists_free(&cache->clock);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static struct cached_list **bucket_of(struct bw_entry_cache *cache, uint64_t bytenr)
{
    return &cache->buckets[(bytenr >> 12) * UINT64_C(0x9E3779B97F4A7C15) >> 52];
}

static struct cached_list *find_list(struct bw_entry_cache *cache,
                                     const struct bw_block_pointer *leaf)
{
    const struct bw_tree_block_expectation *keys = &leaf->expectation;
    struct cached_list *list = *bucket_of(cache, leaf->bytenr);
    while (list && (list->bytenr != leaf->bytenr || list->generation != keys->generation ||
                    bw_key_compare(&list->first_key, &keys->first_key) != 0 ||
                    bw_key_compare(&list->end_key, &keys->end_key) > 0))
        list = list->next;
    return list;
}

bool bw_entry_cache_has(struct bw_entry_cache *cache, const struct bw_block_pointer *leaf)
{
    pthread_mutex_lock(&cache->lock);
    bool found = find_list(cache, leaf) != NULL;
    pthread_mutex_unlock(&cache->lock);
    return found;
}

bool bw_entry_cache_get(struct bw_entry_cache *cache, const struct bw_block_pointer *leaf,
                        struct bw_buffer *copy)
{
    copy->length = 0;
    pthread_mutex_lock(&cache->lock);
    struct cached_list *list = find_list(cache, leaf);
    if (list) {
        list->used = true;
        bw_buffer_append(copy, list->bytes, list->length);
    }
    pthread_mutex_unlock(&cache->lock);
    return list && !copy->failed;
}

/* Makes room for `wanted` bytes. Gives up after some steps, so that lists in use stay. */
static bool make_room(struct bw_entry_cache *cache, size_t wanted)
{
    struct cached_lists *clock = &cache->clock;
    for (unsigned step = 0; cache->size + wanted > cache->limit; step++) {
        if (!clock->count || step == HAND_STEPS)
            return false;
        cache->hand %= clock->count;
        struct cached_list *list = clock->items[cache->hand];
        if (list->used) {
            list->used = false;
            cache->hand++;
            continue;
        }
        struct cached_list **link = bucket_of(cache, list->bytenr);
        while (*link != list)
            link = &(*link)->next;
        *link = list->next;
        clock->items[cache->hand] = cached_lists_pop(clock);
        cache->size -= sizeof *list + list->length;
        free(list);
    }
    return true;
}

void bw_entry_cache_put(struct bw_entry_cache *cache, const struct bw_block_pointer *leaf,
                        const struct bw_buffer *from)
{
    size_t size = sizeof(struct cached_list) + from->length;
    pthread_mutex_lock(&cache->lock);
    struct cached_list *list = NULL;
    if (!find_list(cache, leaf) && make_room(cache, size) &&
        !cached_lists_reserve(&cache->clock, 1))
        list = malloc(size);
    if (list) {
        struct cached_list **bucket = bucket_of(cache, leaf->bytenr);
        *list = (struct cached_list){.next = *bucket,
                                     .bytenr = leaf->bytenr,
                                     .generation = leaf->expectation.generation,
                                     .first_key = leaf->expectation.first_key,
                                     .end_key = leaf->expectation.end_key,
                                     .length = (uint32_t)from->length};
        if (from->length)
            memcpy(list->bytes, from->data, from->length);
        *bucket = list;
        cache->clock.items[cache->clock.count++] = list;
        cache->size += size;
    }
    pthread_mutex_unlock(&cache->lock);
}

/* Choosing and reading leaves: one batch of requests for the next wanted leaves that the window
 * does not hold. */

struct bw_error *bw_leaves_create(struct bw_leaves *leaves, const struct bw_tree_reader *reader,
                                  struct bw_entry_cache *lists, bool numbered)
{
    leaves->reader = reader;
    leaves->lists = lists;
    leaves->numbered = numbered;
    leaves->batch = bw_block_batch(reader);
    leaves->node_block = bw_block_buffer(reader, 1);
    leaves->blocks = bw_block_buffer(reader, leaves->batch + 1); /* see BW_COPY_SLACK */
    leaves->slot_leaf = calloc(leaves->batch, sizeof *leaves->slot_leaf);
    return leaves->node_block && leaves->blocks && leaves->slot_leaf ? NULL : bw_error_no_memory();
}

void bw_leaves_destroy(struct bw_leaves *leaves)
{
    free(leaves->node_block);
    free(leaves->blocks);
    free(leaves->slot_leaf);
}

static struct bw_block_pointer pointer_to(const struct bw_leaves *leaves, uint32_t leaf)
{
    if (leaves->pointer.expectation.level == 0)
        return leaves->pointer;
    return bw_tree_child_pointer(&leaves->pointer, &leaves->node, leaf);
}

struct bw_error *bw_leaves_open(struct bw_leaves *leaves, const struct bw_tree *tree,
                                const struct bw_block_pointer *pointer,
                                const struct bw_key_map *lost)
{
    leaves->tree = tree;
    leaves->pointer = *pointer;
    leaves->node = (struct bw_node){.nodesize = leaves->reader->nodesize};
    leaves->count = 1;
    leaves->last_found = 0;
    leaves->root_leaf = NULL;
    leaves->slot_of[0] = BW_NO_SLOT; /* also if the node cannot be read */
    if (pointer->expectation.level > 0) {
        BW_TRY(bw_block_read(leaves->reader, pointer, leaves->node_block));
        leaves->node = bw_node_view(leaves->node_block, leaves->reader->nodesize);
        leaves->count = leaves->node.item_count;
    }
    memset(leaves->wanted, 0, sizeof leaves->wanted);
    memset(leaves->slot_of, BW_NO_SLOT, leaves->count + 1);
    memset(leaves->slot_leaf, 0xff, leaves->batch * sizeof *leaves->slot_leaf);
    for (uint32_t leaf = 0; leaves->node.item_count && lost->count && leaf < leaves->count; leaf++)
        if (bw_key_map_has(lost, pointer_to(leaves, leaf).bytenr))
            leaves->slot_of[leaf] = BW_LOST_SLOT;
    return NULL;
}

void bw_leaves_use(struct bw_leaves *leaves, const uint8_t *block)
{
    leaves->root_leaf = block;
    leaves->slot_of[0] = 0;
    leaves->slot_leaf[0] = 0;
}

/* Directories that are found one after the other are often in the same leaf, or in one of the next.
 */
uint32_t bw_leaves_find(struct bw_leaves *leaves, const struct bw_key *key)
{
    enum { NEAR = 4 };
    uint32_t leaf = leaves->last_found;
    const uint32_t far = leaf + NEAR;
    while (leaf < far && bw_leaves_begins_by(leaves, leaf, key))
        leaf++;
    if (leaf > leaves->last_found && leaf < far)
        return leaves->last_found = leaf - 1;
    leaves->last_found = leaves->node.item_count ? bw_child_slot(&leaves->node, key) : 0;
    return leaves->last_found;
}

bool bw_leaves_begins_by(const struct bw_leaves *leaves, uint32_t leaf, const struct bw_key *key)
{
    if (leaf >= leaves->node.item_count)
        return false;
    const struct bw_key first = bw_node_key(&leaves->node, leaf);
    return bw_key_compare(&first, key) <= 0;
}

/* The next wanted leaf from `from` on; at least leaves->count if no more leaf is wanted. */
static uint32_t next_wanted(const struct bw_leaves *leaves, uint32_t from)
{
    for (uint32_t word = from / 64; word * 64 < leaves->count; word++) {
        uint64_t bits = leaves->wanted[word];
        if (word == from / 64)
            bits &= ~UINT64_C(0) << from % 64;
        if (bits)
            return word * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return leaves->count;
}

static void deselect_leaf(struct bw_leaves *leaves, uint32_t leaf)
{
    leaves->wanted[leaf / 64] &= ~(UINT64_C(1) << leaf % 64);
}

/* Whether other trees may come to the same leaf. */
static bool is_shared(const struct bw_leaves *leaves, const struct bw_block_pointer *pointer)
{
    return leaves->lists && pointer->expectation.generation <= leaves->tree->shared_until;
}

static bool has_list(const struct bw_leaves *leaves, const struct bw_block_pointer *pointer)
{
    return is_shared(leaves, pointer) && bw_entry_cache_has(leaves->lists, pointer);
}

void bw_leaves_advise(struct bw_leaves *leaves)
{
    size_t count = 0;
    for (uint32_t leaf = next_wanted(leaves, 0); leaf < leaves->count;
         leaf = next_wanted(leaves, leaf + 1)) {
        struct bw_block_pointer pointer = pointer_to(leaves, leaf);
        if (!has_list(leaves, &pointer))
            leaves->ranges[count++] = (struct bw_range){pointer.bytenr, leaves->reader->nodesize};
    }
    if (count > 1)
        bw_blocks_advise(leaves->reader, leaves->ranges, count);
}

/* Reads a wanted leaf that the window lacks, and as many of those after it as have room. Slots of
 * other wanted leaves are kept. */
static void read_missing(struct bw_leaves *leaves, uint32_t first, bw_leaf_lost *lost,
                         void *context)
{
    const size_t nodesize = leaves->reader->nodesize;
    uint32_t missing[BW_BATCH];
    bool kept[BW_BATCH] = {false};
    struct bw_block_pointer pointers[BW_BATCH];
    struct bw_request requests[BW_BATCH];
    unsigned count = 0, slots = 0, slot = 0;
    for (uint32_t leaf = first; leaf < leaves->count && slots < leaves->batch;
         leaf = next_wanted(leaves, leaf + 1)) {
        if (leaves->slot_of[leaf] != BW_NO_SLOT) {
            kept[leaves->slot_of[leaf]] = true;
            slots++;
            continue;
        }
        pointers[count] = pointer_to(leaves, leaf);
        if (leaf != first && has_list(leaves, &pointers[count]))
            continue;
        missing[count++] = leaf;
        slots++;
    }

    for (unsigned i = 0; i < count; i++, slot++) {
        while (kept[slot])
            slot++;
        if (leaves->slot_leaf[slot] != UINT32_MAX)
            leaves->slot_of[leaves->slot_leaf[slot]] = BW_NO_SLOT;
        leaves->slot_leaf[slot] = missing[i];
        leaves->slot_of[missing[i]] = (uint8_t)slot;
        requests[i] = bw_block_request(leaves->reader, &pointers[i],
                                       leaves->blocks + (size_t)slot * nodesize);
    }
    bw_blocks_read(leaves->reader, requests, count);

    for (unsigned i = 0; i < count; i++) {
        if (!requests[i].error)
            continue;
        leaves->slot_leaf[leaves->slot_of[missing[i]]] = UINT32_MAX;
        leaves->slot_of[missing[i]] = BW_LOST_SLOT;
        deselect_leaf(leaves, missing[i]);
        lost(context, &pointers[i], requests[i].error);
    }
}

bool bw_leaves_must_read(const struct bw_leaves *leaves)
{
    const uint32_t next = next_wanted(leaves, 0);
    return next < leaves->count && leaves->slot_of[next] == BW_NO_SLOT;
}

static const uint8_t *block_in(const struct bw_leaves *leaves, uint8_t slot)
{
    return leaves->root_leaf ? leaves->root_leaf
                             : leaves->blocks + (size_t)slot * leaves->reader->nodesize;
}

const uint8_t *bw_leaves_block(struct bw_leaves *leaves, const struct bw_block_pointer *pointer)
{
    const uint32_t leaf = bw_leaves_find(leaves, &pointer->expectation.first_key);
    const uint8_t slot = leaves->slot_of[leaf];
    if (slot == BW_NO_SLOT || slot == BW_LOST_SLOT)
        return NULL;
    const struct bw_block_pointer known = pointer_to(leaves, leaf);
    return known.bytenr == pointer->bytenr &&
                   known.expectation.generation == pointer->expectation.generation
               ? block_in(leaves, slot)
               : NULL;
}

/* Leaves out the last items if their keys are not below the end of the leaf. */
static void cut_leaf(struct bw_wanted_leaf *leaf, const struct bw_key *end)
{
    const uint32_t left = bw_leaf_count_below(&leaf->view, end);
    leaf->is_cut = left < leaf->view.item_count;
    if (!leaf->is_cut)
        return;
    leaf->view.item_count = left;
    leaf->cut_from = bw_leaf_key(&leaf->view, left - 1);
    leaf->cut_from.offset += leaf->cut_from.offset < UINT64_MAX;
    leaf->cut_to = *end;
}

bool bw_leaves_next(struct bw_leaves *leaves, struct bw_wanted_leaf *leaf, bw_leaf_lost *lost,
                    void *context)
{
    for (;;) {
        leaf->number = next_wanted(leaves, 0);
        if (leaf->number >= leaves->count)
            return false;
        const struct bw_block_pointer pointer = pointer_to(leaves, leaf->number);
        const bool shared = is_shared(leaves, &pointer);
        leaf->has_list = shared && bw_entry_cache_get(leaves->lists, &pointer, &leaf->list) &&
                         bw_buffer_reserve(&leaf->list, BW_COPY_SLACK);
        if (!leaf->has_list && leaves->slot_of[leaf->number] == BW_NO_SLOT) {
            read_missing(leaves, leaf->number, lost, context);
            continue;
        }
        deselect_leaf(leaves, leaf->number);
        leaf->is_cut = false;
        if (leaf->has_list)
            return true;

        /* Of a shared leaf that was read, make the list, for this walk and for later ones. */
        leaf->view =
            bw_node_view(block_in(leaves, leaves->slot_of[leaf->number]), leaves->reader->nodesize);
        cut_leaf(leaf, &pointer.expectation.end_key);
        leaf->list.length = 0;
        if (shared && !leaf->is_cut &&
            bw_entry_list_make(&leaf->view, leaves->numbered, &leaf->list)) {
            bw_entry_cache_put(leaves->lists, &pointer, &leaf->list);
            leaf->has_list = bw_buffer_reserve(&leaf->list, BW_COPY_SLACK);
        }
        return true;
    }
}
