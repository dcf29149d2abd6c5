/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory entries that lead to subvolumes. */
#include "rescue/subvolume_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "btree/find_leaf.h"
#include "ondisk/items.h"

void bw_subvolume_names_init(struct bw_subvolume_names *names)
{
    *names = (struct bw_subvolume_names){0};
    pthread_mutex_init(&names->lock, NULL);
}

void bw_subvolume_names_free(struct bw_subvolume_names *names)
{
    free(names->items);
    bw_buffer_free(&names->bytes);
    pthread_mutex_destroy(&names->lock);
}

/* Reads an entry that leads to a subvolume; false if the item is none. */
static bool decode(const struct bw_item *item, struct bw_dir_entry *entry, uint64_t *generation)
{
    const struct bw_disk_dir_item *disk = (const void *)item->data;
    struct bw_cursor cursor = bw_cursor_of(item);
    if (item->key.type != BW_DIR_INDEX || !bw_dir_entry_next(&cursor, entry) ||
        entry->location.type != BW_ROOT_ITEM || !bw_name_is_valid(entry->name, entry->name_length))
        return false;
    *generation = bw_get64(disk->transid);
    return true;
}

static bool add(struct bw_subvolume_names *names, uint64_t tree, const struct bw_key *key,
                const struct bw_dir_entry *entry, uint64_t generation)
{
    pthread_mutex_lock(&names->lock);
    bool added = BW_ARRAY_RESERVE(names->items, names->count, names->capacity);
    if (added) {
        names->items[names->count++] = (struct bw_subvolume_name){entry->location.objectid,
                                                                  tree,
                                                                  key->objectid,
                                                                  key->offset,
                                                                  generation,
                                                                  names->bytes.length,
                                                                  entry->name_length};
        bw_buffer_append(&names->bytes, entry->name, entry->name_length);
        added = !names->bytes.failed;
    }
    pthread_mutex_unlock(&names->lock);
    return added;
}

bool bw_subvolume_names_add(struct bw_subvolume_names *names, uint64_t tree,
                            const struct bw_node *leaf)
{
    struct bw_item item;
    struct bw_dir_entry entry;
    uint64_t generation;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);)
        if (decode(&item, &entry, &generation) && !add(names, tree, &item.key, &entry, generation))
            return false;
    return true;
}

/* All entries of a subvolume follow each other: the newest one first, and the same one of the same
 * tree side by side. */
static int by_subvolume(const void *left, const void *right)
{
    const struct bw_subvolume_name *a = left, *b = right;
    const uint64_t order[][2] = {{a->subvolume, b->subvolume}, {b->generation, a->generation},
                                 {a->parent, b->parent},       {a->directory, b->directory},
                                 {a->index, b->index},         {a->length, b->length}};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (order[i][0] != order[i][1])
            return order[i][0] < order[i][1] ? -1 : 1;
    return 0;
}

static bool is_same(const struct bw_subvolume_names *names, const struct bw_subvolume_name *a,
                    const struct bw_subvolume_name *b)
{
    return by_subvolume(a, b) == 0 &&
           memcmp(names->bytes.data + a->at, names->bytes.data + b->at, a->length) == 0;
}

/* The settling. */
struct settling {
    const struct bw_fs *fs;
    const struct bw_tree_roots *roots;
    const struct bw_subvolume_names *names;
    bool *lost;
};

/* Whether a present tree has an entry. */
static struct bw_error *is_present(const struct settling *settling,
                                   const struct bw_subvolume_name *name, bool *present)
{
    const struct bw_tree_root *root = bw_tree_root_of(settling->roots, name->parent);
    const struct bw_key key = {name->directory, BW_DIR_INDEX, name->index};
    struct bw_dir_entry entry;
    struct bw_item_range range;
    uint64_t generation;
    *present = false;
    if (!root)
        return NULL;
    const struct bw_tree tree = {root->id, root->root, 0};
    const struct bw_tree_reader reader = bw_fs_name_reader(settling->fs);
    bw_item_range_begin(&range, &reader, &tree, key, key);
    while (bw_item_range_next(&range)) {
        *settling->lost |= range.error != NULL;
        *present |= !range.error && decode(&range.item, &entry, &generation) &&
                    entry.location.objectid == name->subvolume &&
                    entry.name_length == name->length && generation == name->generation &&
                    memcmp(entry.name, settling->names->bytes.data + name->at, name->length) == 0;
    }
    return bw_item_range_end(&range, NULL);
}

struct bw_error *bw_subvolume_names_settle(const struct bw_fs *fs,
                                           const struct bw_tree_roots *roots,
                                           bw_snapshot_time *time, void *context,
                                           struct bw_subvolume_names *names, bool *lost)
{
    const struct settling settling = {fs, roots, names, lost};
    struct bw_subvolume_name *items = names->items;
    size_t kept = 0;
    bool present;
    if (names->count)
        qsort(items, names->count, sizeof *items, by_subvolume);
    for (size_t i = 0; i < names->count; i++) {
        const struct bw_subvolume_name name = items[i];
        if ((kept && items[kept - 1].subvolume == name.subvolume) ||
            (i && is_same(names, &items[i - 1], &name)) ||
            !bw_tree_root_of(roots, name.subvolume) || time(context, name.parent) > name.generation)
            continue;
        BW_TRY(is_present(&settling, &name, &present));
        if (present)
            items[kept++] = name;
    }
    names->count = kept;
    return NULL;
}

const struct bw_subvolume_name *bw_subvolume_name_of(const struct bw_subvolume_names *names,
                                                     uint64_t subvolume)
{
    const size_t at = BW_FIRST_INDEX(i, names->count, names->items[i].subvolume >= subvolume);
    return at < names->count && names->items[at].subvolume == subvolume ? &names->items[at] : NULL;
}
