/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looking up extents in the raid stripe tree: with this feature, the file system stores the
 * locations on devices for each extent of data, and not only for each chunk. Threads that read at
 * different places each keep a position in the tree, so extents in ascending order are usually
 * found without a search.
 */
#include "fs/opening.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "fs/fs.h"
#include "graph/wind.h"
#include "ondisk/chunk.h"

enum {
    PLACES = 8,        /* number of positions in the tree, for as many threads that read at
                        * different places */
    REGION = 26,       /* addresses in the same region of 2^26 bytes share a position */
    LONGEST = 8 << 20, /* maximum length of an extent that contains others: how far to search before
                        * an address */
    LOOK_BACK = 1024   /* maximum number of extents examined */
};

struct place {
    pthread_mutex_t lock;
    struct bw_leaf_finder finder; /* protected by `lock` */
};

struct bw_stripe_tree {
    struct bw_fs *fs;
    struct bw_stripe_source source;
    struct place places[PLACES];
};

static struct bw_key key_of(uint64_t logical)
{
    return (struct bw_key){logical, BW_RAID_STRIPE, UINT64_MAX};
}

/*
 * Finds the item of the last extent that contains an address. Overwriting files in place creates
 * extents within others, so this need not be the last one before the address. `*key` is set to the
 * key where the search has ended.
 */
static struct bw_error *find_item(struct bw_stripe_tree *stripes, struct bw_leaf_finder *finder,
                                  uint64_t logical, struct bw_key *key, struct bw_item *item,
                                  bool *found)
{
    uint64_t distance = 0;
    for (unsigned steps = 0; steps < LOOK_BACK && distance < LONGEST && !*found; steps++) {
        BW_TRY(bw_fs_find_leaf(stripes->fs, finder, key));
        int64_t slot = finder->lost ? -1 : bw_leaf_last_until(finder, key);
        if (slot < 0 || !bw_leaf_item(&finder->leaf, (uint32_t)slot, item) ||
            item->key.type != BW_RAID_STRIPE)
            return NULL;
        distance = logical - item->key.objectid;
        *found = distance < item->key.offset;
        /* the greatest possible key before that of the extent */
        if (item->key.offset)
            *key = (struct bw_key){item->key.objectid, BW_RAID_STRIPE, item->key.offset - 1};
        else if (item->key.objectid)
            *key = key_of(item->key.objectid - 1);
        else
            return NULL;
    }
    return NULL;
}

static struct bw_error *find_stripe_extent(struct bw_stripe_tree *stripes,
                                           struct bw_leaf_finder *finder, uint64_t logical,
                                           struct bw_stripe_extent *extent)
{
    struct bw_key key = key_of(logical);
    struct bw_item item;
    bool found = false;
    extent->length = UINT64_MAX;
    if (!finder->tree.id)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the raid stripe tree, with the positions of data, is lost");
    extent->length = stripes->fs->superblock.sectorsize;
    BW_TRY(bw_fs_find_leaf(stripes->fs, finder, &key));

    /* The distance to the next extent in the leaf. */
    uint64_t next = finder->end.objectid, gap = UINT64_MAX;
    const int64_t slot = finder->lost ? -1 : bw_leaf_first_behind(finder, &key);
    if (slot >= 0)
        next = bw_leaf_key(&finder->leaf, (uint32_t)slot).objectid;
    if (next > logical)
        gap = next - logical;
    extent->length = gap;

    BW_TRY(find_item(stripes, finder, logical, &key, &item, &found));
    if (found) {
        BW_TRY(bw_stripe_extent_decode(&item, extent));
        if (extent->length - (logical - extent->logical) > gap) /* another extent begins there */
            extent->length = logical - extent->logical + gap;
        return NULL;
    }
    uint64_t lost = bw_leaf_lost_block(finder, &key);
    if (lost)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "the position of logical address %" PRIu64
                               " is lost with tree block %" PRIu64 " of the raid stripe tree",
                               logical, lost);
    return bw_error_create(BW_ERROR_CORRUPT,
                           "the raid stripe tree has no entry for logical address %" PRIu64,
                           logical);
}

static struct bw_error *find(void *context, const struct bw_frame *frame, uint64_t logical,
                             struct bw_stripe_extent *extent)
{
    struct bw_stripe_tree *stripes = context;
    struct place *place = &stripes->places[(logical >> REGION) % PLACES];
    pthread_mutex_lock(&place->lock);
    place->finder.reader.frame = frame;
    struct bw_error *error = find_stripe_extent(stripes, &place->finder, logical, extent);
    pthread_mutex_unlock(&place->lock);
    return error;
}

void bw_stripe_tree_destroy(struct bw_stripe_tree *stripes)
{
    for (unsigned i = 0; stripes && i < PLACES; i++) {
        bw_leaf_finder_free(&stripes->places[i].finder);
        pthread_mutex_destroy(&stripes->places[i].lock);
    }
    free(stripes);
}

struct bw_error *bw_stripe_tree_attach(struct bw_fs *fs)
{
    if (!(fs->superblock.incompat_flags & BW_INCOMPAT_RAID_STRIPE_TREE))
        return NULL;
    struct bw_stripe_tree *stripes = fs->stripes = calloc(1, sizeof *stripes);
    if (!stripes)
        return bw_error_no_memory();
    stripes->fs = fs;
    stripes->source = (struct bw_stripe_source){find, stripes};
    for (unsigned i = 0; i < PLACES; i++) {
        pthread_mutex_init(&stripes->places[i].lock, NULL);
        bw_leaf_finder_init(&stripes->places[i].finder, &fs->reader, &fs->stripe_tree);
    }
    return bw_graph_control(
        fs->graph, &(struct bw_control){BW_CONTROL_STRIPE_SOURCE, {.stripes = &stripes->source}});
}
