/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One array for each subvolume: which inode refers to which directory, in the order of the
 * directories. The names themselves are read again when they are needed, so that an entry takes
 * only a few bytes.
 */
#include <pthread.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "btree/scan.h"
#include "ondisk/items.h"
#include "recovery/recovery.h"

struct reference {
    uint64_t directory, inode;
    uint8_t type; /* BW_FILE_* of the inode */
};

/* Snapshots share leaves, so all trees together may have many more names than the image holds: only
 * some trees are kept. */
enum { KEPT_TREES = 8 };

struct tree_names {
    uint64_t tree; /* 0: none */
    struct reference *items;
    size_t count, capacity;
    uint64_t inode; /* while it is made: the last INODE_ITEM, and its type */
    uint8_t type;
};

struct bw_name_index {
    struct bw_fs *fs;
    pthread_mutex_t lock;
    struct tree_names trees[KEPT_TREES];
    unsigned next; /* the one that is replaced next */
};

struct bw_error *bw_name_index_create(struct bw_fs *fs, struct bw_name_index **result)
{
    struct bw_name_index *index = calloc(1, sizeof *index);
    if (!index)
        return bw_error_no_memory();
    index->fs = fs;
    pthread_mutex_init(&index->lock, NULL);
    *result = index;
    return NULL;
}

void bw_name_index_destroy(struct bw_name_index *index)
{
    if (!index)
        return;
    for (size_t i = 0; i < KEPT_TREES; i++)
        free(index->trees[i].items);
    pthread_mutex_destroy(&index->lock);
    free(index);
}

static struct bw_error *add(struct tree_names *names, uint64_t directory, uint64_t inode)
{
    if (directory == inode) /* a top directory */
        return NULL;
    if (!BW_ARRAY_RESERVE(names->items, names->count, names->capacity))
        return bw_error_no_memory();
    uint8_t type = names->inode == inode ? names->type : BW_FILE_UNKNOWN;
    names->items[names->count++] = (struct reference){directory, inode, type};
    return NULL;
}

static struct bw_error *take_item(struct tree_names *names, const struct bw_item *item)
{
    struct bw_inode inode;
    struct bw_inode_ref ref;
    struct bw_cursor cursor = bw_cursor_of(item);
    switch (item->key.type) {
    case BW_INODE_ITEM:
        names->inode = item->key.objectid;
        names->type =
            bw_inode_decode(item, &inode) ? bw_file_type_of_mode(inode.mode) : BW_FILE_UNKNOWN;
        return NULL;
    case BW_INODE_REF: /* all its names are in the one directory */
        return add(names, item->key.offset, item->key.objectid);
    case BW_INODE_EXTREF:
        while (bw_inode_ref_next(&cursor, &item->key, &ref))
            BW_TRY(add(names, ref.parent, item->key.objectid));
        return NULL;
    default:
        return NULL;
    }
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);)
        BW_TRY(take_item(context, &item));
    return NULL;
}

static int by_directory(const void *a, const void *b)
{
    const struct reference *left = a, *right = b;
    if (left->directory != right->directory)
        return left->directory < right->directory ? -1 : 1;
    return (left->inode > right->inode) - (left->inode < right->inode);
}

static struct bw_error *read_tree(const struct bw_fs *fs, const struct bw_tree *tree,
                                  struct tree_names *names)
{
    const struct bw_scan scan = {BW_SCAN_ALL, .adopt = true, .leaf = take_leaf,
                                 .lost = bw_scan_ignore_lost, .context = names};
    BW_TRY(bw_tree_scan(&fs->reader, tree, &scan));
    if (names->count)
        qsort(names->items, names->count, sizeof *names->items, by_directory);
    return NULL;
}

/* The names of a tree, which replace those of another. Under the lock. */
static struct bw_error *find_names(struct bw_name_index *index, const struct bw_tree *tree,
                                   const struct tree_names **result)
{
    for (size_t i = 0; i < KEPT_TREES; i++)
        if (index->trees[i].tree == tree->id) {
            *result = &index->trees[i];
            return NULL;
        }
    struct tree_names *names = &index->trees[index->next++ % KEPT_TREES];
    free(names->items);
    *names = (struct tree_names){0};
    BW_TRY(read_tree(index->fs, tree, names));
    names->tree = tree->id;
    *result = names;
    return NULL;
}

static size_t first_to(const struct tree_names *names, uint64_t directory)
{
    return BW_FIRST_INDEX(i, names->count, names->items[i].directory >= directory);
}

/* Handing out the names that one inode has in a directory. */
struct naming {
    uint64_t directory;
    struct bw_dir_entry entry;
    bw_name_taker *take;
    void *context;
};

static struct bw_error *take_names(struct naming *naming, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    if (item->key.type != BW_INODE_REF && item->key.type != BW_INODE_EXTREF)
        return NULL;
    while (bw_inode_ref_next(&cursor, &item->key, &ref)) {
        if (ref.parent != naming->directory || !bw_name_is_valid(ref.name, ref.name_length))
            continue;
        naming->entry.name = ref.name;
        naming->entry.name_length = ref.name_length;
        BW_TRY(naming->take(naming->context, &naming->entry));
    }
    return NULL;
}

static struct bw_error *name_inode(const struct bw_fs *fs, const struct bw_tree *tree,
                                   const struct tree_names *names,
                                   const struct reference *reference, struct naming *naming)
{
    struct bw_item_range range;
    struct bw_error *error = NULL;
    naming->entry.location = (struct bw_key){reference->inode, BW_INODE_ITEM, 0};
    naming->entry.type = reference->type;
    /* If another inode refers to it, it is a directory, even if its own inode is lost. */
    size_t below = first_to(names, reference->inode);
    if (below < names->count && names->items[below].directory == reference->inode)
        naming->entry.type = BW_FILE_DIRECTORY;
    bw_item_range_begin(&range, &fs->reader, tree,
                        (struct bw_key){reference->inode, BW_INODE_REF, naming->directory},
                        (struct bw_key){reference->inode, BW_INODE_EXTREF, UINT64_MAX});
    while (!error && bw_item_range_next(&range))
        error = range.error ? NULL : take_names(naming, &range.item);
    return bw_item_range_end(&range, error);
}

static struct bw_error *name_inodes(const struct bw_fs *fs, const struct bw_tree *tree,
                                    const struct tree_names *names, struct naming *naming)
{
    uint64_t done = 0;
    for (size_t i = first_to(names, naming->directory);
         i < names->count && names->items[i].directory == naming->directory; i++) {
        if (names->items[i].inode == done) /* it has several items that refer here */
            continue;
        done = names->items[i].inode;
        BW_TRY(name_inode(fs, tree, names, &names->items[i], naming));
    }
    return NULL;
}

static struct bw_error *name_subvolumes(const struct bw_fs *fs, uint64_t parent,
                                        struct naming *naming)
{
    const struct bw_subvolume_table *table = &fs->subvolumes;
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_subvolume *child = &table->items[i];
        if (child->deleted || child->parent != parent || child->directory != naming->directory)
            continue;
        naming->entry =
            (struct bw_dir_entry){.location = {child->tree.id, BW_ROOT_ITEM, UINT64_MAX},
                                  .name = (const uint8_t *)bw_subvolume_name(table, child),
                                  .name_length = child->name_length,
                                  .type = BW_FILE_DIRECTORY};
        BW_TRY(naming->take(naming->context, &naming->entry));
    }
    return NULL;
}

struct bw_error *bw_name_index_read(void *context, const struct bw_subvolume *subvolume,
                                    uint64_t directory, bw_name_taker *take, void *taker)
{
    struct bw_name_index *index = context;
    const struct tree_names *names = NULL;
    struct naming naming = {.directory = directory, .take = take, .context = taker};
    pthread_mutex_lock(&index->lock);
    struct bw_error *error = find_names(index, &subvolume->tree, &names);
    if (!error)
        error = name_inodes(index->fs, &subvolume->tree, names, &naming);
    pthread_mutex_unlock(&index->lock);
    return error ? error : name_subvolumes(index->fs, subvolume->tree.id, &naming);
}
