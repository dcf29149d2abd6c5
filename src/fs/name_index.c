/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An array a subvolume: who refers to whom, in order of the directories. The names themselves are
 * read again when they are asked for, so that an entry of the array takes a few bytes.
 */
#include "fs/name_index.h"

#include <pthread.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "btree/item_range.h"
#include "btree/scan.h"
#include "format/names.h"
#include "fs/fs.h"

struct reference {
    uint64_t directory, inode;
    uint8_t type; /* BW_FILE_* of the inode */
};

/* Snapshots share leaves, so all trees together may have many more names than the image holds: of
 * the trees that nobody is at only some are kept. */
enum { KEPT_TREES = 8 };

/* Does not change any more once it is in the index, but for who uses it. */
struct tree_names {
    uint64_t tree;
    unsigned users;     /* under the lock, as the next one */
    uint64_t last_used; /* by the clock of the index */
    struct reference *items;
    size_t count, capacity;
    uint64_t inode; /* while it is made: the last INODE_ITEM, and its type */
    uint8_t type;
};

struct bw_name_index {
    pthread_mutex_t lock;
    struct tree_names **trees;
    size_t count, capacity;
    uint64_t clock;
};

struct bw_name_index *bw_name_index_create(void)
{
    struct bw_name_index *index = calloc(1, sizeof *index);
    if (index)
        pthread_mutex_init(&index->lock, NULL);
    return index;
}

static void free_names(struct tree_names *names)
{
    if (names)
        free(names->items);
    free(names);
}

void bw_name_index_destroy(struct bw_name_index *index)
{
    if (!index)
        return;
    for (size_t i = 0; i < index->count; i++)
        free_names(index->trees[i]);
    free(index->trees);
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
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_item item;
        if (bw_leaf_item(leaf, slot, &item))
            BW_TRY(take_item(context, &item));
    }
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
    names->tree = tree->id;
    BW_TRY(bw_tree_scan(&fs->reader, tree, &scan));
    if (names->count)
        qsort(names->items, names->count, sizeof *names->items, by_directory);
    return NULL;
}

/* Makes room for one more. Under the lock. */
static void make_room(struct bw_name_index *index)
{
    size_t oldest = index->count;
    for (size_t i = 0; i < index->count; i++)
        if (!index->trees[i]->users &&
            (oldest == index->count ||
             index->trees[i]->last_used < index->trees[oldest]->last_used))
            oldest = i;
    if (index->count < KEPT_TREES || oldest == index->count)
        return;
    free_names(index->trees[oldest]);
    index->trees[oldest] = index->trees[--index->count];
}

/* Under the lock. */
static struct bw_error *find_locked(const struct bw_fs *fs, const struct bw_tree *tree,
                                    struct tree_names **result)
{
    struct bw_name_index *index = fs->names;
    for (size_t i = 0; i < index->count; i++)
        if (index->trees[i]->tree == tree->id) {
            *result = index->trees[i];
            return NULL;
        }
    make_room(index);
    struct tree_names *names = calloc(1, sizeof *names);
    bool room = names && BW_ARRAY_RESERVE(index->trees, index->count, index->capacity);
    struct bw_error *error = room ? read_tree(fs, tree, names) : bw_error_no_memory();
    if (error) {
        free_names(names);
        return error;
    }
    index->trees[index->count++] = names;
    *result = names;
    return NULL;
}

/* Begins using the names of a tree. */
static struct bw_error *acquire(const struct bw_fs *fs, const struct bw_tree *tree,
                                struct tree_names **names)
{
    pthread_mutex_lock(&fs->names->lock);
    struct bw_error *error = find_locked(fs, tree, names);
    if (!error) {
        (*names)->users++;
        (*names)->last_used = ++fs->names->clock;
    }
    pthread_mutex_unlock(&fs->names->lock);
    return error;
}

static void release(const struct bw_fs *fs, struct tree_names *names)
{
    pthread_mutex_lock(&fs->names->lock);
    names->users--;
    pthread_mutex_unlock(&fs->names->lock);
}

/* The first reference to a directory of at least this number. */
static size_t first_to(const struct tree_names *names, uint64_t directory)
{
    size_t low = 0, high = names->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (names->items[middle].directory < directory)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Handing out the names that one inode has in a directory. */
struct naming {
    uint64_t directory;
    struct bw_dir_entry entry;
    bw_name_taker *take;
    void *context;
};

static struct bw_error *take_names(void *context, const struct bw_item *item)
{
    struct naming *naming = context;
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

static void ignore_lost(void *context, uint64_t bytenr, struct bw_error *error)
{
    (void)context;
    (void)bytenr;
    bw_error_free(error);
}

static struct bw_error *name_inode(const struct bw_fs *fs, const struct bw_tree *tree,
                                   const struct tree_names *names,
                                   const struct reference *reference, struct naming *naming)
{
    const struct bw_item_range range = {
        .first = {reference->inode, BW_INODE_REF, naming->directory},
        .last = {reference->inode, BW_INODE_EXTREF, UINT64_MAX},
        .item = take_names,
        .lost = ignore_lost,
        .context = naming};
    naming->entry.location = (struct bw_key){reference->inode, BW_INODE_ITEM, 0};
    naming->entry.type = reference->type;
    /* Who is referred to is a directory, also if its inode is lost. */
    size_t below = first_to(names, reference->inode);
    if (below < names->count && names->items[below].directory == reference->inode)
        naming->entry.type = BW_FILE_DIRECTORY;
    return bw_item_range_read(&fs->reader, tree, &range);
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

struct bw_error *bw_names_from_below(const struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                     uint64_t directory, bw_name_taker *take, void *context)
{
    struct tree_names *names = NULL;
    struct naming naming = {.directory = directory, .take = take, .context = context};
    BW_TRY(acquire(fs, &subvolume->tree, &names));
    struct bw_error *error = name_inodes(fs, &subvolume->tree, names, &naming);
    release(fs, names);
    return error ? error : name_subvolumes(fs, subvolume->tree.id, &naming);
}
