/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One array for each subvolume: which inode refers to which directory, in the order of the
 * directories. The names themselves are read again when they are needed, so that an entry takes
 * only a few bytes.
 */
#include <pthread.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vector.h"
#include "btree/find_leaf.h"
#include "btree/scan.h"
#include "fs/lookup.h"
#include "ondisk/items.h"
#include "recovery/recovery.h"

struct reference {
    uint64_t directory, inode;
    uint8_t type; /* BW_FILE_* of the inode */
};

/* Snapshots share leaves, so all trees together may have many more names than the image holds: only
 * some trees are kept. */
enum { KEPT_TREES = 8 };

BW_VECTOR(references, struct reference);

struct tree_names {
    uint64_t tree; /* 0: none */
    struct references references;
    uint64_t inode; /* while it is made: the last INODE_ITEM, and its type */
    uint8_t type;
};

struct bw_name_index {
    struct bw_fs *fs;
    pthread_mutex_t lock;
    struct tree_names trees[KEPT_TREES];
    unsigned next; /* the entry that is replaced next */
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
        references_free(&index->trees[i].references);
    pthread_mutex_destroy(&index->lock);
    free(index);
}

static struct bw_error *add_reference(struct tree_names *names, uint64_t directory, uint64_t inode)
{
    if (directory == inode) /* a top directory */
        return NULL;
    BW_TRY(references_reserve(&names->references, 1));
    uint8_t type = names->inode == inode ? names->type : BW_FILE_UNKNOWN;
    names->references.items[names->references.count++] = (struct reference){directory, inode, type};
    return NULL;
}

static struct bw_error *index_item(struct tree_names *names, const struct bw_item *item)
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
        return add_reference(names, item->key.offset, item->key.objectid);
    case BW_INODE_EXTREF:
        while (bw_inode_ref_next(&cursor, &item->key, &ref))
            BW_TRY(add_reference(names, ref.parent, item->key.objectid));
        return NULL;
    default:
        return NULL;
    }
}

static struct bw_error *index_leaf(void *context, const struct bw_node *leaf)
{
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);)
        BW_TRY(index_item(context, &item));
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
    const struct bw_scan scan = {BW_SCAN_ALL, .adopt = true, .leaf = index_leaf,
                                 .lost = bw_scan_ignore_lost, .context = names};
    BW_TRY(bw_tree_scan(&fs->reader, tree, &scan));
    if (names->references.count)
        qsort(names->references.items, names->references.count, sizeof *names->references.items,
              by_directory);
    return NULL;
}

/* The names of a tree, which replace the names of another tree. Under the lock. */
static struct bw_error *find_names(struct bw_name_index *index, const struct bw_tree *tree,
                                   const struct tree_names **result)
{
    for (size_t i = 0; i < KEPT_TREES; i++)
        if (index->trees[i].tree == tree->id) {
            *result = &index->trees[i];
            return NULL;
        }
    struct tree_names *names = &index->trees[index->next++ % KEPT_TREES];
    references_free(&names->references);
    *names = (struct tree_names){0};
    BW_TRY(read_tree(index->fs, tree, names));
    names->tree = tree->id;
    *result = names;
    return NULL;
}

static size_t first_to(const struct tree_names *names, uint64_t directory)
{
    return BW_FIRST_INDEX(i, names->references.count,
                          names->references.items[i].directory >= directory);
}

/* Visiting the names that one inode has in a directory. */
struct naming {
    uint64_t directory;
    struct bw_dir_entry entry;
    bw_name_visitor *visit;
    void *context;
};

static struct bw_error *visit_names(struct naming *naming, const struct bw_item *item)
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
        BW_TRY(naming->visit(naming->context, &naming->entry));
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
    if (below < names->references.count &&
        names->references.items[below].directory == reference->inode)
        naming->entry.type = BW_FILE_DIRECTORY;
    bw_item_range_begin(&range, &fs->reader, tree,
                        (struct bw_key){reference->inode, BW_INODE_REF, naming->directory},
                        (struct bw_key){reference->inode, BW_INODE_EXTREF, UINT64_MAX});
    while (!error && bw_item_range_next(&range))
        error = range.error ? NULL : visit_names(naming, &range.item);
    return bw_item_range_end(&range, error);
}

static struct bw_error *name_inodes(const struct bw_fs *fs, const struct bw_tree *tree,
                                    const struct tree_names *names, struct naming *naming)
{
    uint64_t done = 0;
    for (size_t i = first_to(names, naming->directory);
         i < names->references.count && names->references.items[i].directory == naming->directory;
         i++) {
        if (names->references.items[i].inode == done) /* it has several items that refer here */
            continue;
        done = names->references.items[i].inode;
        BW_TRY(name_inode(fs, tree, names, &names->references.items[i], naming));
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
        BW_TRY(naming->visit(naming->context, &naming->entry));
    }
    return NULL;
}

struct bw_error *bw_name_index_read(void *context, const struct bw_subvolume *subvolume,
                                    uint64_t directory, bw_name_visitor *visit, void *visit_context)
{
    struct bw_name_index *index = context;
    const struct tree_names *names = NULL;
    struct naming naming = {.directory = directory, .visit = visit, .context = visit_context};
    pthread_mutex_lock(&index->lock);
    struct bw_error *error = find_names(index, &subvolume->tree, &names);
    if (!error)
        error = name_inodes(index->fs, &subvolume->tree, names, &naming);
    pthread_mutex_unlock(&index->lock);
    return error ? error : name_subvolumes(index->fs, subvolume->tree.id, &naming);
}

/*
 * Finding names whose directory entries were lost. The whole tree is read, leniently. An INODE_REF
 * contains the directory, index and name, and thus the DIR_INDEX key of the entry. If that
 * key was in a lost block, the name is found here. If the INODE_REF may be lost as well, the
 * DIR_ITEM of the name is the last resort: it lacks the key of the lost entry, so the name
 * counts as lost if no readable DIR_INDEX of the directory has it.
 */

void bw_lost_names_free(struct bw_lost_names *names)
{
    bw_key_map_free(&names->indexed);
    bw_key_map_free(&names->index_names);
}

static struct bw_key entry_key(uint64_t directory, uint64_t index)
{
    return (struct bw_key){directory, BW_DIR_INDEX, index};
}

bool bw_lost_names_has(const struct bw_lost_names *names, uint64_t directory, uint64_t index)
{
    const struct bw_key key = entry_key(directory, index);
    const struct bw_lost_range *lost = bw_lost_list_find(&names->lost, &key);
    return lost && lost->wave <= names->wave_of(names->context, directory) &&
           !bw_adopted_leaf_of(names->adopted, &key);
}

/* Whether an entry was looked for by an earlier search. */
static bool is_handled(const struct bw_lost_names *names, uint64_t directory, uint64_t index)
{
    const struct bw_key key = entry_key(directory, index);
    return bw_lost_list_find(&names->handled, &key);
}

/* Whether an inode has entries, as only directories have. */
static struct bw_error *has_entries(const struct bw_lost_names *names, uint64_t inode, bool *has)
{
    const struct bw_key first = {inode, BW_DIR_ITEM, 0}, last = entry_key(inode, UINT64_MAX);
    struct bw_item_range range;
    *has = false;
    bw_item_range_begin(&range, &names->fs->reader, names->tree, first, last);
    while (!*has && bw_item_range_next(&range))
        *has = !range.error;
    return bw_item_range_end(&range, NULL);
}

/* The type of a name's inode: from the INODE_ITEM before or, if that is lost, from the DIR_ITEM. If
 * both are lost, often because they were in the same leaf, entries show that it is a directory. */
static struct bw_error *find_type(const struct bw_lost_names *names, const struct bw_inode_ref *ref,
                                  struct bw_lost_name *found)
{
    bool is_directory = false;
    if (names->inode == found->inode) {
        found->type = bw_file_type_of_mode(names->mode);
        return NULL;
    }
    BW_TRY(bw_directory_entry_type(names->fs, names->tree, ref->parent, ref->name, ref->name_length,
                                   &found->type));
    if (found->type == BW_FILE_UNKNOWN)
        BW_TRY(has_entries(names, found->inode, &is_directory));
    if (is_directory)
        found->type = BW_FILE_DIRECTORY;
    return NULL;
}

static struct bw_error *visit_lost_references(struct bw_lost_names *names,
                                              const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    while (bw_inode_ref_next(&cursor, &item->key, &ref)) {
        struct bw_lost_name found = {ref.parent,      item->key.objectid, ref.name,
                                     ref.name_length, BW_FILE_UNKNOWN,    ref.index};
        if (!bw_lost_names_has(names, ref.parent, ref.index) ||
            is_handled(names, ref.parent, ref.index))
            continue;
        BW_TRY(find_type(names, &ref, &found));
        BW_TRY(names->visit(names->context, &found));
    }
    return NULL;
}

/* Whether both the entry in the directory's index and the inode's own reference may be in ranges.
 */
static bool may_lack_both(const struct bw_lost_names *names, const struct bw_lost_list *ranges,
                          uint64_t directory, const struct bw_dir_entry *entry)
{
    const struct bw_key reference = {entry->location.objectid, BW_INODE_REF, directory};
    const struct bw_key first = entry_key(directory, 0), last = entry_key(directory, UINT64_MAX);
    return bw_lost_list_find(ranges, &reference) &&
           bw_lost_list_overlaps(ranges, &first, &last, names->wave_of(names->context, directory));
}

/* Reading the index of a directory once more. */
struct index_scan {
    struct bw_lost_names *names;
    uint64_t directory;
    bool incomplete; /* what the walk could read cannot be read now */
};

static struct bw_error *index_names(void *context, const struct bw_node *leaf)
{
    struct bw_lost_names *names = ((struct index_scan *)context)->names;
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        struct bw_cursor cursor = bw_cursor_of(&item);
        struct bw_dir_entry entry;
        while (item.key.type == BW_DIR_INDEX && bw_dir_entry_next(&cursor, &entry))
            BW_TRY(bw_key_map_put(
                &names->index_names,
                bw_fs_name_hash(names->fs, item.key.objectid, entry.name, entry.name_length), 1));
    }
    return NULL;
}

/* If a directory was walked, each of its blocks was read, or was lost in its wave. */
static struct bw_error *index_lost(void *context, const struct bw_block_pointer *pointer,
                                   struct bw_error *error)
{
    struct index_scan *index = context;
    const struct bw_lost_names *names = index->names;
    uint32_t wave = names->wave_of(names->context, index->directory);
    const struct bw_lost_range *lost =
        bw_lost_list_find(&names->lost, &pointer->expectation.first_key);
    index->incomplete |= wave < *names->wave && (!lost || lost->wave > wave);
    bw_error_free(error);
    return NULL;
}

enum { INDEX_READ = 1, INDEX_UNKNOWN = 2 };

static struct bw_error *read_index(struct bw_lost_names *names, uint64_t directory, uint32_t *state)
{
    struct index_scan index = {names, directory, false};
    const struct bw_scan scan = {.first = entry_key(directory, 0),
                                 .last = entry_key(directory, UINT64_MAX),
                                 .leaf = index_names,
                                 .lost = index_lost,
                                 .context = &index};
    BW_TRY(bw_tree_scan(&names->fs->reader, names->tree, &scan));
    BW_TRY(bw_adopted_visit(&names->fs->reader, names->adopted, &scan.first, &scan.last,
                            index_names, &index));
    *state = index.incomplete ? INDEX_UNKNOWN : INDEX_READ;
    return bw_key_map_put(&names->indexed, directory, *state);
}

/* Whether what could be read of a directory's index has, or may have had, a name. Each index is
 * read once. */
static struct bw_error *index_has(struct bw_lost_names *names, uint64_t directory,
                                  const struct bw_dir_entry *entry, bool *has)
{
    uint32_t state = bw_key_map_get(&names->indexed, directory, UINT32_MAX);
    if (state == UINT32_MAX)
        BW_TRY(read_index(names, directory, &state));
    *has = state == INDEX_UNKNOWN ||
           bw_key_map_has(&names->index_names,
                          bw_fs_name_hash(names->fs, directory, entry->name, entry->name_length));
    return NULL;
}

static struct bw_error *visit_lost_entries(struct bw_lost_names *names, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    uint64_t directory = item->key.objectid;
    while (bw_dir_entry_next(&cursor, &entry)) {
        bool known;
        if (entry.location.type != BW_INODE_ITEM ||
            !may_lack_both(names, &names->lost, directory, &entry) ||
            may_lack_both(names, &names->handled, directory, &entry))
            continue;
        BW_TRY(index_has(names, directory, &entry, &known));
        if (!known)
            BW_TRY(names->visit(names->context, &(struct bw_lost_name){
                                                    directory, entry.location.objectid, entry.name,
                                                    entry.name_length, entry.type, 0}));
    }
    return NULL;
}

static struct bw_error *visit_item_names(struct bw_lost_names *names, const struct bw_item *item)
{
    const struct bw_disk_inode_item *inode = (const void *)item->data;
    switch (item->key.type) {
    case BW_INODE_ITEM:
        names->inode = item->size >= sizeof *inode ? item->key.objectid : 0;
        names->mode = names->inode ? bw_get32(inode->mode) : 0;
        return NULL;
    case BW_INODE_REF:
    case BW_INODE_EXTREF:
        return visit_lost_references(names, item);
    case BW_DIR_ITEM:
        return visit_lost_entries(names, item);
    default:
        return NULL;
    }
}

static struct bw_error *visit_leaf_names(void *context, const struct bw_node *leaf)
{
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);)
        BW_TRY(visit_item_names(context, &item));
    return NULL;
}

static struct bw_error *note_lost(void *context, const struct bw_block_pointer *pointer,
                                  struct bw_error *error)
{
    const struct bw_lost_names *names = context;
    const struct bw_lost_range range = bw_lost_range_of(pointer, *names->wave);
    bw_fs_report_lost(names->fs, pointer->bytenr, error);
    /* Keys in disorder can make a range that ends before it begins: what it held is not known. */
    return bw_key_compare(&range.low, &range.high) < 0 ? names->lose(names->context, &range) : NULL;
}

struct bw_error *bw_lost_names_find(struct bw_lost_names *names)
{
    const struct bw_scan scan = {BW_SCAN_ALL, .lenient = true, .leaf = visit_leaf_names,
                                 .lost = note_lost, .context = names};
    BW_TRY(bw_tree_scan(&names->fs->reader, names->tree, &scan));
    return bw_adopted_visit(&names->fs->reader, names->adopted, &scan.first, &scan.last,
                            visit_leaf_names, names);
}
