/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads log trees into memory: copies of their leaves, and a sorted list of the items in them. */
#include "replay/replay.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vector.h"
#include "btree/scan.h"

struct load {
    struct bw_fs *fs;
    struct bw_log *log;
    const char *name;
};

/* Reports and records the loss of a range of keys; consumes the error. */
static struct bw_error *record_lost_keys(const struct load *load, const struct bw_key *first,
                                         const struct bw_key *end, struct bw_error *error)
{
    struct bw_log *log = load->log;
    bw_fs_report(load->fs, BW_DAMAGE, bw_error_prefix(error, "%s", load->name));
    return bw_log_losses_push(&log->losses, (struct bw_log_loss){*first, *end});
}

static struct bw_error *record_lost_item(const struct load *load, const struct bw_key *key,
                                         const char *why)
{
    const struct bw_key end = {key->objectid, key->type, key->offset + 1}, most = BW_KEY_MAX;
    return record_lost_keys(load, key, end.offset ? &end : &most,
                            bw_error_create(BW_ERROR_CORRUPT,
                                            "item (%" PRIu64 " %u %" PRIu64 ") %s", key->objectid,
                                            key->type, key->offset, why));
}

static struct bw_error *add_leaf(void *context, const struct bw_node *leaf)
{
    const struct load *load = context;
    struct bw_log *log = load->log;
    BW_TRY(bw_leaf_copies_reserve(&log->leaves, 1));
    uint8_t *copy = malloc(leaf->nodesize);
    if (!copy)
        return bw_error_no_memory();
    log->leaves.items[log->leaves.count++] = memcpy(copy, leaf->block, leaf->nodesize);
    const struct bw_node view = bw_node_view(copy, leaf->nodesize);
    for (uint32_t slot = 0; slot < view.item_count; slot++) {
        const size_t count = log->items.count;
        struct bw_item item;
        if (!bw_leaf_item(&view, slot, &item))
            BW_TRY(record_lost_item(load, &item.key, "lies outside its leaf"));
        else if (count && bw_key_compare(&log->items.items[count - 1].key, &item.key) >= 0)
            BW_TRY(record_lost_item(load, &item.key, "is out of order"));
        else
            BW_TRY(bw_log_items_push(&log->items, item));
    }
    return NULL;
}

static struct bw_error *record_lost_block(void *context, const struct bw_block_pointer *pointer,
                                          struct bw_error *error)
{
    const struct bw_tree_block_expectation *keys = &pointer->expectation;
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    return record_lost_keys(context, &keys->first_key, &keys->end_key, error);
}

struct bw_error *bw_log_load(struct bw_fs *fs, const struct bw_root_pointer *root, const char *name,
                             struct bw_log *log)
{
    const struct bw_tree tree = {.id = BW_TREE_LOG, .root = *root};
    struct load load = {fs, log, name};
    const struct bw_scan scan = {BW_SCAN_ALL, .leaf = add_leaf, .lost = record_lost_block,
                                 .context = &load};
    return bw_tree_scan(&fs->reader, &tree, &scan);
}

void bw_log_free(struct bw_log *log)
{
    for (size_t i = 0; i < log->leaves.count; i++)
        free(log->leaves.items[i]);
    bw_leaf_copies_free(&log->leaves);
    bw_log_items_free(&log->items);
    bw_log_losses_free(&log->losses);
    *log = (struct bw_log){0};
}

size_t bw_log_first(const struct bw_log *log, const struct bw_key *key)
{
    return BW_FIRST_INDEX(i, log->items.count, bw_key_compare(&log->items.items[i].key, key) >= 0);
}

const struct bw_item *bw_log_find(const struct bw_log *log, const struct bw_key *key)
{
    size_t at = bw_log_first(log, key);
    return at < log->items.count && bw_key_compare(&log->items.items[at].key, key) == 0
               ? &log->items.items[at]
               : NULL;
}

bool bw_log_is_lost(const struct bw_log *log, const struct bw_key *key)
{
    for (size_t i = 0; i < log->losses.count; i++)
        if (bw_key_compare(&log->losses.items[i].first, key) <= 0 &&
            bw_key_compare(key, &log->losses.items[i].end) < 0)
            return true;
    return false;
}
