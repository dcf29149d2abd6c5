/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads log trees into memory: copies of their leaves, and a sorted list of the items in them. */
#include "replay/replay.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "btree/scan.h"

/* Reports and records the loss of a range of keys; consumes the error. */
static struct bw_error *record_lost_keys(struct bw_fs *fs, const char *name, struct bw_log *log,
                                         struct bw_log_loss loss, struct bw_error *error)
{
    bw_fs_report(fs, BW_DAMAGE, bw_error_prefix(error, "%s", name));
    return bw_log_losses_push(&log->losses, loss);
}

struct bw_error *bw_log_load(struct bw_fs *fs, const struct bw_root_pointer *root, const char *name,
                             struct bw_log *log)
{
    const struct bw_tree tree = {.id = BW_TREE_LOG, .root = *root};
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL};
    bw_block_scan_begin(&scan, &fs->reader, &tree);
    while (bw_block_scan_next(&scan)) {
        if (scan.error) {
            const struct bw_tree_block_expectation *keys = &scan.pointer.expectation;
            BW_TRY(record_lost_keys(fs, name, log,
                                    (struct bw_log_loss){keys->first_key, keys->end_key},
                                    BW_TAKE(scan.error)));
            continue;
        }
        BW_TRY(bw_leaf_copies_reserve(&log->leaves, 1));
        uint8_t *copy = malloc(scan.node.nodesize);
        if (!copy)
            return bw_error_no_memory();
        log->leaves.items[log->leaves.count++] = memcpy(copy, scan.node.block, scan.node.nodesize);
        const struct bw_node view = bw_node_view(copy, scan.node.nodesize);
        for (uint32_t slot = 0; slot < view.item_count; slot++) {
            const size_t count = log->items.count;
            const char *fault = NULL;
            struct bw_item item;
            if (!bw_leaf_item(&view, slot, &item))
                fault = "lies outside its leaf";
            else if (count && bw_key_compare(&log->items.items[count - 1].key, &item.key) >= 0)
                fault = "is out of order";
            if (!fault) {
                BW_TRY(bw_log_items_push(&log->items, item));
                continue;
            }
            const struct bw_key *key = &item.key;
            struct bw_log_loss loss = {*key, {key->objectid, key->type, key->offset + 1}};
            if (!loss.end.offset)
                loss.end = (struct bw_key)BW_KEY_MAX;
            BW_TRY(record_lost_keys(fs, name, log, loss,
                                    bw_error_create(BW_ERROR_CORRUPT,
                                                    "item (%" PRIu64 " %u %" PRIu64 ") %s",
                                                    key->objectid, key->type, key->offset, fault)));
        }
    }
    return bw_block_scan_end(&scan);
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
