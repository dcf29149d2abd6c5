/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading log trees. */
#include "replay/log.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "btree/scan.h"

struct load {
    struct bw_fs *fs;
    struct bw_log *log;
    const char *name;
};

static void report(const struct load *load, struct bw_error *error)
{
    bw_fs_report(load->fs, BW_DAMAGE, bw_error_prefix(error, "%s", load->name));
}

static struct bw_error *add_item(const struct load *load, const struct bw_item *item)
{
    struct bw_log *log = load->log;
    if (log->count && bw_key_compare(&log->items[log->count - 1].key, &item->key) >= 0) {
        report(load, bw_error_create(BW_ERROR_CORRUPT, "an item is out of order"));
        return NULL;
    }
    if (!BW_ARRAY_RESERVE(log->items, log->count, log->capacity))
        return bw_error_no_memory();
    log->items[log->count++] = *item;
    return NULL;
}

static struct bw_error *add_leaf(void *context, const struct bw_node *leaf)
{
    const struct load *load = context;
    struct bw_log *log = load->log;
    if (!BW_ARRAY_RESERVE(log->leaves, log->leaf_count, log->leaf_capacity))
        return bw_error_no_memory();
    uint8_t *copy = malloc(leaf->nodesize);
    if (!copy)
        return bw_error_no_memory();
    log->leaves[log->leaf_count++] = memcpy(copy, leaf->block, leaf->nodesize);
    const struct bw_node view = bw_node_view(copy, leaf->nodesize);
    for (uint32_t slot = 0; slot < view.item_count; slot++) {
        struct bw_item item;
        if (bw_leaf_item(&view, slot, &item))
            BW_TRY(add_item(load, &item));
        else
            report(load, bw_error_create(BW_ERROR_CORRUPT, "an item lies outside its leaf"));
    }
    return NULL;
}

static struct bw_error *lose(void *context, const struct bw_block_pointer *pointer,
                             struct bw_error *error)
{
    (void)pointer;
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    report(context, error);
    return NULL;
}

struct bw_error *bw_log_load(struct bw_fs *fs, const struct bw_root_pointer *root, const char *name,
                             struct bw_log *log)
{
    const struct bw_tree tree = {.id = BW_TREE_LOG, .root = *root};
    struct load load = {fs, log, name};
    const struct bw_scan scan = {BW_SCAN_ALL, .leaf = add_leaf, .lost = lose, .context = &load};
    return bw_tree_scan(&fs->reader, &tree, &scan);
}

void bw_log_free(struct bw_log *log)
{
    for (size_t i = 0; i < log->leaf_count; i++)
        free(log->leaves[i]);
    free(log->leaves);
    free(log->items);
    *log = (struct bw_log){0};
}

size_t bw_log_first(const struct bw_log *log, const struct bw_key *key)
{
    return BW_FIRST_INDEX(i, log->count, bw_key_compare(&log->items[i].key, key) >= 0);
}

const struct bw_item *bw_log_find(const struct bw_log *log, const struct bw_key *key)
{
    size_t at = bw_log_first(log, key);
    return at < log->count && bw_key_compare(&log->items[at].key, key) == 0 ? &log->items[at]
                                                                            : NULL;
}
