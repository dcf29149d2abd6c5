/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names whose directory entries are lost. An inode has each of its names a second time, in an
 * INODE_REF or INODE_EXTREF with the directory, so the names of a directory can be found by reading
 * the whole tree.
 *
 * There are two ways to ask. bw_name_index_read() lists the names of one directory, for readers of
 * single directories. It keeps an array for each of the last few subvolumes: which inode refers to
 * which directory, in the order of the directories. The names themselves are read again when they
 * are needed, so that an entry takes only a few bytes. bw_lost_names_find() searches a tree once
 * for all names in lost ranges, for walks, which have seen most entries already.
 */
#include "recovery/recovery.h"

#include <pthread.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "base/vector.h"
#include "btree/find_leaf.h"
#include "btree/scan.h"
#include "fs/lookup.h"

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

static int by_directory(const void *a, const void *b)
{
    const struct reference *left = a, *right = b;
    if (left->directory != right->directory)
        return left->directory < right->directory ? -1 : 1;
    return (left->inode > right->inode) - (left->inode < right->inode);
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
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL, .adopt = true};
    struct bw_item item;
    uint64_t number = 0; /* of the last inode, and its type */
    uint8_t type = BW_FILE_UNKNOWN;
    bw_block_scan_begin(&scan, &index->fs->reader, tree);
    while (bw_block_scan_next_item(&scan, &item)) {
        struct bw_inode inode;
        struct bw_inode_ref ref;
        struct bw_cursor cursor = bw_cursor_of(&item);
        if (number != item.key.objectid)
            type = BW_FILE_UNKNOWN;
        number = item.key.objectid;
        switch (item.key.type) {
        case BW_INODE_ITEM:
            type = BW_FILE_UNKNOWN;
            if (bw_inode_decode(&item, &inode))
                type = bw_file_type_of_mode(inode.mode);
            break;
        case BW_INODE_REF:
        case BW_INODE_EXTREF: /* a top directory refers to itself */
            while (bw_inode_ref_next(&cursor, &item.key, &ref))
                if (ref.parent != number)
                    BW_TRY(references_push(&names->references,
                                           (struct reference){ref.parent, number, type}));
            break;
        default:
            break;
        }
    }
    BW_TRY(bw_block_scan_end(&scan));
    references_sort(&names->references, by_directory);
    names->tree = tree->id;
    *result = names;
    return NULL;
}

static size_t first_to(const struct tree_names *names, uint64_t directory)
{
    return BW_FIRST_INDEX(i, names->references.count,
                          names->references.items[i].directory >= directory);
}

/* Visits the names that one inode has in a directory. */
static struct bw_error *visit_inode_names(const struct bw_fs *fs, const struct bw_tree *tree,
                                          const struct tree_names *names,
                                          const struct reference *reference, bw_name_visitor *visit,
                                          void *context)
{
    struct bw_dir_entry entry = {.location = {reference->inode, BW_INODE_ITEM, 0},
                                 .type = reference->type};
    /* If another inode refers to it, it is a directory, even if its own inode is lost. */
    const size_t below = first_to(names, reference->inode);
    if (below < names->references.count &&
        names->references.items[below].directory == reference->inode)
        entry.type = BW_FILE_DIRECTORY;

    struct bw_item_range range;
    struct bw_error *error = NULL;
    bw_item_range_begin(&range, &fs->reader, tree,
                        (struct bw_key){reference->inode, BW_INODE_REF, reference->directory},
                        (struct bw_key){reference->inode, BW_INODE_EXTREF, UINT64_MAX});
    while (!error && bw_item_range_next(&range)) {
        const uint8_t type = range.item.key.type;
        if (range.error || (type != BW_INODE_REF && type != BW_INODE_EXTREF))
            continue;
        struct bw_cursor cursor = bw_cursor_of(&range.item);
        struct bw_inode_ref ref;
        while (!error && bw_inode_ref_next(&cursor, &range.item.key, &ref)) {
            if (ref.parent != reference->directory || !bw_name_is_valid(ref.name, ref.name_length))
                continue;
            entry.name = ref.name;
            entry.name_length = ref.name_length;
            error = visit(context, &entry);
        }
    }
    return bw_item_range_end(&range, error);
}

struct bw_error *bw_name_index_read(void *context, const struct bw_subvolume *subvolume,
                                    uint64_t directory, bw_name_visitor *visit, void *visit_context)
{
    struct bw_name_index *index = context;
    const struct bw_subvolume_table *table = &index->fs->subvolumes;
    const struct tree_names *names = NULL;
    uint64_t done = 0;
    pthread_mutex_lock(&index->lock);
    struct bw_error *error = find_names(index, &subvolume->tree, &names);
    for (size_t i = error ? 0 : first_to(names, directory);
         !error && i < names->references.count && names->references.items[i].directory == directory;
         i++) {
        const struct reference *reference = &names->references.items[i];
        if (reference->inode == done) /* it has several items that refer here */
            continue;
        done = reference->inode;
        error =
            visit_inode_names(index->fs, &subvolume->tree, names, reference, visit, visit_context);
    }
    pthread_mutex_unlock(&index->lock);

    for (size_t i = 0; !error && i < table->count; i++) {
        const struct bw_subvolume *child = &table->items[i];
        if (child->deleted || child->parent != subvolume->tree.id || child->directory != directory)
            continue;
        const struct bw_dir_entry entry = {.location = {child->tree.id, BW_ROOT_ITEM, UINT64_MAX},
                                           .name = (const uint8_t *)bw_subvolume_name(table, child),
                                           .name_length = child->name_length,
                                           .type = BW_FILE_DIRECTORY};
        error = visit(visit_context, &entry);
    }
    return error;
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

/* The type of a name's inode: from the INODE_ITEM before or, if that is lost, from the DIR_ITEM. If
 * both are lost, often because they were in the same leaf, entries show that it is a directory. */
static struct bw_error *find_type(const struct bw_lost_names *names, const struct bw_inode_ref *ref,
                                  struct bw_lost_name *found)
{
    if (names->inode == found->inode) {
        found->type = bw_file_type_of_mode(names->mode);
        return NULL;
    }
    BW_TRY(bw_directory_entry_type(names->fs, names->tree, ref->parent, ref->name, ref->name_length,
                                   &found->type));
    if (found->type != BW_FILE_UNKNOWN)
        return NULL;
    struct bw_item_range range;
    bw_item_range_begin(&range, &names->fs->reader, names->tree,
                        (struct bw_key){found->inode, BW_DIR_ITEM, 0},
                        entry_key(found->inode, UINT64_MAX));
    while (found->type == BW_FILE_UNKNOWN && bw_item_range_next(&range))
        if (!range.error)
            found->type = BW_FILE_DIRECTORY;
    return bw_item_range_end(&range, NULL);
}

/* Whether both the entry in the directory's index and the inode's own reference may be in lost
 * ranges. */
static bool may_lack_both(const struct bw_lost_names *names, const struct bw_lost_list *ranges,
                          uint64_t directory, const struct bw_dir_entry *entry)
{
    const struct bw_key reference = {entry->location.objectid, BW_INODE_REF, directory};
    const struct bw_key first = entry_key(directory, 0), last = entry_key(directory, UINT64_MAX);
    return bw_lost_list_find(ranges, &reference) &&
           bw_lost_list_overlaps(ranges, &first, &last, names->wave_of(names->context, directory));
}

/* Reading the index of a directory once more. */

static struct bw_error *index_names(void *context, const struct bw_node *leaf)
{
    struct bw_lost_names *names = context;
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

enum { INDEX_READ = 1, INDEX_UNKNOWN = 2 };

/* Whether the readable part of a directory's index has a name, or may have had it. Each index is
 * read once. */
static struct bw_error *index_has(struct bw_lost_names *names, uint64_t directory,
                                  const struct bw_dir_entry *entry, bool *has)
{
    uint32_t known = bw_key_map_get(&names->indexed, directory, UINT32_MAX);
    if (known == UINT32_MAX) {
        /* If a directory was walked, each of its blocks was read, or was lost in its wave. */
        const uint32_t wave = names->wave_of(names->context, directory);
        bool is_incomplete = false;
        BW_SCOPED(bw_block_scan)
        struct bw_block_scan scan = {.first = entry_key(directory, 0),
                                     .last = entry_key(directory, UINT64_MAX)};
        bw_block_scan_begin(&scan, &names->fs->reader, names->tree);
        while (bw_block_scan_next(&scan)) {
            const struct bw_lost_range *lost =
                bw_lost_list_find(&names->lost, &scan.pointer.expectation.first_key);
            is_incomplete |= scan.error && wave < *names->wave && (!lost || lost->wave > wave);
            BW_TRY(index_names(names, &scan.node));
        }
        BW_TRY(bw_block_scan_end(&scan));
        BW_TRY(bw_adopted_visit(&names->fs->reader, names->adopted, &scan.first, &scan.last,
                                index_names, names));
        known = is_incomplete ? INDEX_UNKNOWN : INDEX_READ;
        BW_TRY(bw_key_map_put(&names->indexed, directory, known));
    }
    *has = known == INDEX_UNKNOWN ||
           bw_key_map_has(&names->index_names,
                          bw_fs_name_hash(names->fs, directory, entry->name, entry->name_length));
    return NULL;
}

static struct bw_error *visit_leaf_names(void *context, const struct bw_node *leaf)
{
    struct bw_lost_names *names = context;
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        const struct bw_disk_inode_item *inode = (const void *)item.data;
        const uint64_t number = item.key.objectid; /* of an inode or, in entries, a directory */
        struct bw_cursor cursor = bw_cursor_of(&item);
        struct bw_inode_ref ref;
        struct bw_dir_entry entry;
        switch (item.key.type) {
        case BW_INODE_ITEM:
            names->inode = item.size >= sizeof *inode ? number : 0;
            names->mode = names->inode ? bw_get32(inode->mode) : 0;
            break;
        case BW_INODE_REF:
        case BW_INODE_EXTREF:
            while (bw_inode_ref_next(&cursor, &item.key, &ref)) {
                struct bw_lost_name found = {ref.parent,      number,          ref.name,
                                             ref.name_length, BW_FILE_UNKNOWN, ref.index};
                const struct bw_key key = entry_key(ref.parent, ref.index);
                if (!bw_lost_names_has(names, ref.parent, ref.index) ||
                    bw_lost_list_find(&names->handled, &key)) /* by an earlier search */
                    continue;
                BW_TRY(find_type(names, &ref, &found));
                BW_TRY(names->visit(names->context, &found));
            }
            break;
        case BW_DIR_ITEM:
            while (bw_dir_entry_next(&cursor, &entry)) {
                const struct bw_lost_name found = {
                    number, entry.location.objectid, entry.name, entry.name_length, entry.type, 0};
                bool known;
                if (entry.location.type != BW_INODE_ITEM ||
                    !may_lack_both(names, &names->lost, number, &entry) ||
                    may_lack_both(names, &names->handled, number, &entry))
                    continue;
                BW_TRY(index_has(names, number, &entry, &known));
                if (!known)
                    BW_TRY(names->visit(names->context, &found));
            }
            break;
        default:
            break;
        }
    }
    return NULL;
}

struct bw_error *bw_lost_names_find(struct bw_lost_names *names)
{
    const struct bw_tree_reader *reader = &names->fs->reader;
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL, .lenient = true};
    bw_block_scan_begin(&scan, reader, names->tree);
    while (bw_block_scan_next(&scan)) {
        const struct bw_lost_range range = bw_lost_range_of(&scan.pointer, *names->wave);
        if (!scan.error) {
            BW_TRY(visit_leaf_names(names, &scan.node));
            continue;
        }
        bw_fs_report_lost(names->fs, scan.pointer.bytenr, BW_TAKE(scan.error));
        BW_TRY(names->on_loss(names->context, &range));
    }
    BW_TRY(bw_block_scan_end(&scan));
    return bw_adopted_visit(reader, names->adopted, &scan.first, &scan.last, visit_leaf_names,
                            names);
}
