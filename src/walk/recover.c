/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Recovery reads the whole tree, leniently. An INODE_REF names directory, index and name: together
 * they tell which DIR_INDEX key held the entry, and if that key was in a lost block the entry is
 * listed from here. Directories that come back this way are walked like any other. The reading may
 * meet lost blocks that no one had needed before; then it goes round once more for what those held.
 */
#include "walk/recover.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/array.h"
#include "btree/scan.h"
#include "format/items.h"
#include "recovery/recovery.h"
#include "fs/fs.h"
#include "fs/lookup.h"

/* A name whose directory was not known when it was met. The bytes lie in the recovery's buffer. */
struct waiting_name {
    uint64_t directory, inode;
    size_t name_offset;
    uint16_t name_length;
    uint8_t type;
};

struct recovery {
    struct bw_subvolume_walk *walk;
    struct bw_lost_list lost;    /* all that is known to be lost */
    struct bw_lost_list handled; /* what the rounds before this one have looked for */
    struct bw_map unreachable;   /* directories whose way up is lost */
    struct bw_map listed;        /* hashes of directory and name of what was brought back */
    struct bw_map indexed;       /* directories whose readable DIR_INDEX items are in index_names */
    struct bw_map index_names;   /* hashes of directory and name */
    struct waiting_name *waiting;
    size_t waiting_count, waiting_capacity;
    struct bw_buffer waiting_names;
    uint64_t inode; /* the inode of the last INODE_ITEM */
    uint32_t mode;  /* and its mode */
};

/* The wave in which a directory was walked: what was lost later had been read and listed before. */
static uint32_t wave_of(const struct recovery *recovery, uint64_t directory)
{
    const struct bw_directory_table *table = &recovery->walk->directories;
    uint32_t index = bw_directories_find(table, directory);
    return index == BW_NO_DIRECTORY ? UINT32_MAX : table->items[index].wave;
}

/* Whether the entry with this key is to be brought back in this round. */
static bool was_lost(const struct recovery *recovery, uint64_t directory, uint64_t index)
{
    const struct bw_key key = {directory, BW_DIR_INDEX, index};
    const struct bw_lost_range *lost = bw_lost_list_find(&recovery->lost, &key);
    return lost && lost->wave <= wave_of(recovery, directory) &&
           !bw_lost_list_find(&recovery->handled, &key) &&
           !bw_adopted_leaf_of(&recovery->walk->adopted, &key);
}

/* A name that may have to be brought back. */
struct found_name {
    uint64_t directory, inode;
    const uint8_t *name;
    uint16_t name_length;
    uint8_t type; /* BW_FILE_* */
};

/* One directory on the way up, and its name in the next. */
struct step {
    uint64_t inode;
    struct bw_parent_step up;
};

struct way_up {
    struct step *steps;
    size_t count, capacity;
};

/* Goes up from an unknown directory to one in the table, whose index is returned. */
static uint32_t climb(struct recovery *recovery, uint64_t inode, struct way_up *way)
{
    const struct bw_subvolume_walk *walk = recovery->walk;
    uint32_t index;
    while ((index = bw_directories_find(&walk->directories, inode)) == BW_NO_DIRECTORY) {
        /* Marked on the way, unmarked when it turns out to lead to the top: a circle meets its own
         * mark. */
        if (inode <= BW_SUBVOLUME_ROOT_INODE || bw_map_get(&recovery->unreachable, inode) == 1 ||
            !bw_map_put(&recovery->unreachable, inode, 1) ||
            !BW_ARRAY_RESERVE(way->steps, way->count, way->capacity))
            return BW_NO_DIRECTORY;
        struct step *step = &way->steps[way->count];
        step->inode = inode;
        BW_AUTO_ERROR struct bw_error *error =
            bw_inode_step_up(walk->fs, walk->scope.tree, inode, &step->up);
        if (error)
            return BW_NO_DIRECTORY;
        inode = step->up.parent;
        way->count++;
    }
    return index;
}

static uint64_t name_hash(const struct recovery *recovery, uint64_t directory, const void *name,
                          size_t name_length)
{
    return bw_fs_name_hash(recovery->walk->fs, directory, name, name_length);
}

/* What became of a name. */
enum { LISTED = 1, LEFT_OUT = 2 };

/* Lists a name, unless that was done before: a leaf that only a lenient scan can read may tell it
 * once more. False if it is left out, with all that is below it. */
static bool list_once(struct recovery *recovery, uint32_t directory,
                      const struct bw_collected *what, const void *name, size_t name_length)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    uint64_t hash =
        name_hash(recovery, walk->directories.items[directory].inode, name, name_length);
    uint32_t state = bw_map_get(&recovery->listed, hash);
    if (state == UINT32_MAX) {
        state =
            bw_subvolume_walk_list(walk, directory, what, name, name_length) ? LISTED : LEFT_OUT;
        walk->memory_short |= !bw_map_put(&recovery->listed, hash, state);
    }
    return state == LISTED;
}

/* Adds a directory to the table, and lists it; BW_NO_DIRECTORY if it is left out, or lies too deep.
 */
static uint32_t add_directory(struct recovery *recovery, uint64_t inode, uint32_t parent,
                              const void *name, size_t name_length)
{
    const struct bw_collected what = {.number = inode, .type = BW_FILE_DIRECTORY};
    if (!list_once(recovery, parent, &what, name, name_length) ||
        !bw_subvolume_walk_enters(recovery->walk, parent))
        return BW_NO_DIRECTORY;
    return bw_subvolume_walk_add(recovery->walk, inode, parent, name, name_length);
}

/* The table index of a directory, which is added with all the unknown ones above it;
 * BW_NO_DIRECTORY if it can't. */
static uint32_t ensure_directory(struct recovery *recovery, uint64_t inode)
{
    struct way_up way = {0};
    uint32_t index = climb(recovery, inode, &way);
    while (index != BW_NO_DIRECTORY && way.count) {
        const struct step *step = &way.steps[--way.count];
        index = add_directory(recovery, step->inode, index, step->up.name, step->up.name_length);
        if (index != BW_NO_DIRECTORY)
            bw_map_put(&recovery->unreachable, step->inode, 0);
    }
    free(way.steps);
    return index;
}

/* The type of a name's inode: from the INODE_ITEM just passed or, if that is lost, from the
 * DIR_ITEM. */
static uint8_t type_of(const struct recovery *recovery, uint64_t inode,
                       const struct bw_inode_ref *ref)
{
    uint8_t type = BW_FILE_UNKNOWN;
    if (recovery->inode == inode)
        return bw_file_type_of_mode(recovery->mode);
    BW_AUTO_ERROR struct bw_error *error =
        bw_directory_entry_type(recovery->walk->fs, recovery->walk->scope.tree, ref->parent,
                                ref->name, ref->name_length, &type);
    return type;
}

/* A directory may become known when others that were brought back are walked: its names wait for
 * that. */
static void wait_for_directory(struct recovery *recovery, const struct found_name *found)
{
    size_t offset = recovery->waiting_names.length;
    bw_buffer_append(&recovery->waiting_names, found->name, found->name_length);
    if (recovery->waiting_names.failed ||
        !BW_ARRAY_RESERVE(recovery->waiting, recovery->waiting_count, recovery->waiting_capacity)) {
        recovery->walk->memory_short = true;
        return;
    }
    recovery->waiting[recovery->waiting_count++] = (struct waiting_name){
        found->directory, found->inode, offset, found->name_length, found->type};
}

/* Brings back a name: a directory is walked like any other, a file is listed. */
static void bring_back(struct recovery *recovery, const struct found_name *found)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    if (!bw_name_is_valid(found->name, found->name_length) ||
        found->inode <= BW_SUBVOLUME_ROOT_INODE ||
        (found->type != BW_FILE_DIRECTORY && !bw_subvolume_walk_lists(walk, found->type)))
        return;
    uint32_t directory = ensure_directory(recovery, found->directory);
    if (directory == BW_NO_DIRECTORY) {
        wait_for_directory(recovery, found);
        return;
    }
    const bool known = bw_directories_find(&walk->directories, found->inode) != BW_NO_DIRECTORY;
    const struct bw_collected what = {.number = found->inode, .type = found->type};
    if (found->type == BW_FILE_DIRECTORY) {
        if (!known && add_directory(recovery, found->inode, directory, found->name,
                                    found->name_length) != BW_NO_DIRECTORY)
            bw_map_put(&recovery->unreachable, found->inode, 0);
    } else if (found->type != BW_FILE_UNKNOWN || !known) {
        list_once(recovery, directory, &what, found->name, found->name_length);
    }
}

static void take_references(struct recovery *recovery, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    uint64_t inode = item->key.objectid;
    while (bw_inode_ref_next(&cursor, &item->key, &ref)) {
        if (!was_lost(recovery, ref.parent, ref.index))
            continue;
        const struct found_name found = {ref.parent, inode, ref.name, ref.name_length,
                                         type_of(recovery, inode, &ref)};
        bring_back(recovery, &found);
    }
}

/* Whether both the entry in the directory's index and the inode's own reference may have been in
 * these ranges. */
static bool may_lack_both(const struct recovery *recovery, const struct bw_lost_list *list,
                          uint64_t directory, const struct bw_dir_entry *entry)
{
    const struct bw_key reference = {entry->location.objectid, BW_INODE_REF, directory};
    const struct bw_key first = bw_first_entry_key(directory), last = bw_last_entry_key(directory);
    return bw_lost_list_find(list, &reference) &&
           bw_lost_list_overlaps(list, &first, &last, wave_of(recovery, directory));
}

/* Reading the index of a directory once more. */
struct index_scan {
    struct recovery *recovery;
    uint64_t directory;
    bool incomplete; /* what the walk could read cannot be read now */
};

static struct bw_error *index_leaf(void *context, const struct bw_node *leaf)
{
    struct recovery *recovery = ((struct index_scan *)context)->recovery;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_item item;
        struct bw_dir_entry entry;
        bool inside = bw_leaf_item(leaf, slot, &item);
        if (!inside || item.key.type != BW_DIR_INDEX)
            continue;
        struct bw_cursor cursor = bw_cursor_of(&item);
        while (bw_dir_entry_next(&cursor, &entry))
            recovery->walk->memory_short |= !bw_map_put(
                &recovery->index_names,
                name_hash(recovery, item.key.objectid, entry.name, entry.name_length), 1);
    }
    return NULL;
}

/* Of a directory that was walked, every block is known to have been read or lost in its wave. */
static void index_lost(void *context, const struct bw_block_pointer *pointer,
                       struct bw_error *error)
{
    struct index_scan *index = context;
    const struct recovery *recovery = index->recovery;
    uint32_t wave = wave_of(recovery, index->directory);
    const struct bw_lost_range *lost =
        bw_lost_list_find(&recovery->lost, &pointer->expectation.first_key);
    index->incomplete |= wave < recovery->walk->wave && (!lost || lost->wave > wave);
    bw_error_free(error);
}

enum { INDEX_READ = 1, INDEX_UNKNOWN = 2 };

static uint32_t read_index(struct recovery *recovery, uint64_t directory)
{
    struct index_scan index = {recovery, directory, false};
    const struct bw_scan scan = {.first = bw_first_entry_key(directory),
                                 .last = bw_last_entry_key(directory),
                                 .leaf = index_leaf,
                                 .lost = index_lost,
                                 .context = &index};
    bw_error_free(bw_tree_scan(&recovery->walk->fs->reader, recovery->walk->scope.tree, &scan));
    bw_error_free(bw_adopted_visit(&recovery->walk->fs->reader, &recovery->walk->adopted,
                                   &scan.first, &scan.last, index_leaf, &index));
    return index.incomplete ? INDEX_UNKNOWN : INDEX_READ;
}

/* Whether what could be read of a directory's index has, or may have had, a name. The index is read
 * once. */
static bool index_has(struct recovery *recovery, uint64_t directory,
                      const struct bw_dir_entry *entry)
{
    uint32_t state = bw_map_get(&recovery->indexed, directory);
    if (state == UINT32_MAX) {
        state = read_index(recovery, directory);
        recovery->walk->memory_short |= !bw_map_put(&recovery->indexed, directory, state);
    }
    return state == INDEX_UNKNOWN ||
           bw_map_get(&recovery->index_names, name_hash(recovery, directory, entry->name,
                                                        entry->name_length)) != UINT32_MAX;
}

/* Of three places that hold a name, DIR_ITEM is the last resort: it does not tell the key of the
 * lost entry.
 */
static void take_named_entries(struct recovery *recovery, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    uint64_t directory = item->key.objectid;
    while (bw_dir_entry_next(&cursor, &entry)) {
        if (entry.location.type != BW_INODE_ITEM ||
            !may_lack_both(recovery, &recovery->lost, directory, &entry) ||
            may_lack_both(recovery, &recovery->handled, directory, &entry) ||
            index_has(recovery, directory, &entry))
            continue;
        const struct found_name found = {directory, entry.location.objectid, entry.name,
                                         entry.name_length, entry.type};
        bring_back(recovery, &found);
    }
}

static void take_item(struct recovery *recovery, const struct bw_item *item)
{
    const struct bw_disk_inode_item *inode = (const void *)item->data;
    switch (item->key.type) {
    case BW_INODE_ITEM:
        recovery->inode = item->size >= sizeof *inode ? item->key.objectid : 0;
        recovery->mode = recovery->inode ? bw_get32(inode->mode) : 0;
        break;
    case BW_INODE_REF:
    case BW_INODE_EXTREF:
        take_references(recovery, item);
        break;
    case BW_DIR_ITEM:
        take_named_entries(recovery, item);
        break;
    default:
        break;
    }
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    struct recovery *recovery = context;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_item item;
        if (bw_leaf_item(leaf, slot, &item))
            take_item(recovery, &item);
    }
    return recovery->walk->memory_short ? bw_error_no_memory() : NULL;
}

static void lose(void *context, const struct bw_block_pointer *pointer, struct bw_error *error)
{
    struct recovery *recovery = context;
    const struct bw_lost_range range = bw_lost_range_of(pointer, recovery->walk->wave);
    bw_fs_report_lost(recovery->walk->fs, pointer->bytenr, error);
    /* Keys in disorder can make a range that ends before it begins: nothing is known of what it
     * held. */
    if (bw_key_compare(&range.low, &range.high) < 0)
        bw_subvolume_walk_lose(recovery->walk, &range);
}

/* Subvolumes whose entry was lost: the root tree knows their names. */
static void recover_subvolumes(struct recovery *recovery)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    const struct bw_subvolume_table *table = &walk->fs->subvolumes;
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_subvolume *subvolume = &table->items[i];
        if (subvolume->deleted || subvolume->parent != walk->scope.tree->id ||
            !was_lost(recovery, subvolume->directory, subvolume->index))
            continue;
        uint32_t directory = ensure_directory(recovery, subvolume->directory);
        if (directory != BW_NO_DIRECTORY)
            bw_subvolume_walk_add_entry(walk, subvolume->tree.id, directory,
                                        bw_subvolume_name(table, subvolume),
                                        subvolume->name_length);
    }
}

/* Tries again what waits; true if anything came of it. Names that still wait are kept. */
static bool retry_waiting(struct recovery *recovery)
{
    size_t kept = 0, count = recovery->waiting_count;
    for (size_t i = 0; i < count; i++) {
        const struct waiting_name waiting = recovery->waiting[i];
        if (bw_directories_find(&recovery->walk->directories, waiting.directory) ==
            BW_NO_DIRECTORY) {
            recovery->waiting[kept++] = waiting;
            continue;
        }
        const char *name = recovery->waiting_names.data + waiting.name_offset;
        const struct found_name found = {waiting.directory, waiting.inode, (const uint8_t *)name,
                                         waiting.name_length, waiting.type};
        bring_back(recovery, &found);
    }
    recovery->waiting_count = kept;
    return kept < count;
}

static struct bw_error *run_round(struct recovery *recovery)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    const struct bw_scan scan = {BW_SCAN_ALL, .lenient = true, .leaf = take_leaf, .lost = lose,
                                 .context = recovery};
    recovery->waiting_count = recovery->waiting_names.length = 0;
    BW_TRY(bw_tree_scan(&walk->fs->reader, walk->scope.tree, &scan));
    BW_TRY(bw_adopted_visit(&walk->fs->reader, &walk->adopted, &scan.first, &scan.last, take_leaf,
                            recovery));
    recover_subvolumes(recovery);
    do
        BW_TRY(bw_subvolume_walk_waves(walk));
    while (retry_waiting(recovery));
    return walk->memory_short ? bw_error_no_memory() : NULL;
}

/* A round may find that more is lost. Each block is lost but once, so that ends; hostile keys get
 * no more than this. */
enum { MAX_ROUNDS = 8 };

static struct bw_error *run_rounds(struct recovery *recovery)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    for (unsigned round = 0; round < MAX_ROUNDS && !bw_output_stopped(&walk->output); round++) {
        bw_lost_list_free(&recovery->handled);
        recovery->handled = recovery->lost;
        recovery->lost = (struct bw_lost_list){0};
        BW_TRY(bw_lost_list_make(&walk->lost, 0, &recovery->lost));
        if (bw_lost_lists_equal(&recovery->lost, &recovery->handled))
            break;
        BW_TRY(run_round(recovery));
    }
    return NULL;
}

/* How many different blocks were lost: a block may be met by the walk and again by recovery. */
static uint64_t count_blocks(const struct bw_subvolume_walk *walk)
{
    struct bw_map seen = {0};
    for (size_t i = 0; i < walk->lost.count; i++)
        if (walk->lost.items[i].bytenr != BW_NO_BLOCK)
            bw_map_put(&seen, walk->lost.items[i].bytenr, 1);
    uint64_t count = seen.count;
    bw_map_free(&seen);
    return count;
}

/* Leaves below lost nodes first: they hold whole directories, in order. The walk has met only the
 * nodes it needed. */
static struct bw_error *adopt(struct recovery *recovery)
{
    struct bw_subvolume_walk *walk = recovery->walk;
    struct bw_lost_ranges nodes = {0};
    struct bw_error *error = bw_find_lost_nodes(walk->fs, walk->scope.tree, walk->wave, &nodes);
    for (size_t i = 0; i < nodes.count; i++)
        bw_subvolume_walk_lose(walk, &nodes.items[i]);
    free(nodes.items);
    BW_TRY(error);
    BW_TRY(bw_adopt_leaves(walk->fs, walk->scope.tree, &walk->lost, &walk->adopted));
    if (!walk->adopted.count)
        return NULL;
    BW_TRY(bw_subvolume_walk_adopted(walk));
    return bw_subvolume_walk_waves(walk);
}

struct bw_error *bw_recover(struct bw_subvolume_walk *walk)
{
    if (!walk->lost.count)
        return NULL;
    struct recovery recovery = {.walk = walk};
    struct bw_error *error = adopt(&recovery);
    if (!error)
        error = run_rounds(&recovery);
    walk->summary->lost_blocks += count_blocks(walk);
    bw_lost_list_free(&recovery.lost);
    bw_lost_list_free(&recovery.handled);
    bw_map_free(&recovery.unreachable);
    bw_map_free(&recovery.listed);
    bw_map_free(&recovery.indexed);
    bw_map_free(&recovery.index_names);
    free(recovery.waiting);
    bw_buffer_free(&recovery.waiting_names);
    return error;
}
