/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A task: the directories stored below one internal node.
 *
 * The node names its leaves with their first keys, which shows which of them contain entries of the
 * known directories; only those are read, in batches (leaves.c). Their DIR_INDEX items are handled
 * in the order of their keys. A directory that is found and stored below the same node is brought
 * into reach at once: its leaves are wanted, too. All others go into the result, for a later wave.
 * next_leaf of a directory's record prevents that its entries in a leaf are listed twice if the
 * leaf becomes wanted again.
 *
 * This is the hot path of the whole program. How files are listed is therefore decided once for
 * each leaf. Plain paths are written at once, with the path of a directory made once for all its
 * files; the files of other writers are collected until their inodes are known (collect.c); any
 * selection, and probes, take the slow way through choose_entry(). The fast ways handle only
 * regular files without flaws, many at a time, and leave all other entries to the slow one.
 *
 * At the end, the result forgets the directories whose paths nothing will need.
 */
#include "walk/walk.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/escape.h"
#include "base/short_copy.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "walk/leaves.h"
#include "walk/path_text.h"

/* A directory in reach of the task. */
struct directory_record {
    uint64_t inode;
    uint32_t directory; /* index in the table, or in `found` with BW_FOUND_LOCAL */
    uint32_t next_leaf; /* the first of its leaves that was not processed yet */
};

BW_VECTOR(directory_records, struct directory_record);

/* How the files of a leaf are listed. */
enum listing_method {
    WRITE_PATHS,   /* all regular files: paths, which are written at once */
    COLLECT_FILES, /* all regular files, with a writer that needs more */
    CHOOSE_FILES,  /* what the choice says; also if files are not listed, or watched */
};

struct bw_task_worker {
    struct bw_leaves leaves;
    struct bw_wanted_leaf leaf; /* the leaf that is being handled */
    struct directory_records records;
    struct bw_key_map by_inode; /* inode to record */
    struct bw_buffer prefix;    /* path of the current directory; in printed form for WRITE_PATHS */
    struct bw_buffer raw;       /* the prefix before escaping */
    uint32_t parent;            /* its path is at the beginning of the unescaped prefix */
    size_t parent_length;       /* the length of that path */
    struct bw_collector *collector;

    /* The task that it runs. */
    const struct bw_task_scope *scope;
    struct bw_task *task;
    struct bw_task_result *result; /* the task's result */
    size_t number;                 /* the task's number in its wave */
    uint32_t depth;     /* depth of the directory with the prefix, if there is a greatest depth */
    bool prefix_is_set; /* the prefix belongs to the current directory */
    bool entered;       /* the collector has the prefix, too */
    bool skips_files;   /* regular files are neither listed nor watched */
    enum listing_method method;
    struct bw_buffer text;
};

struct bw_error *bw_task_worker_create(struct bw_fs *fs, struct bw_entry_cache *lists,
                                       const struct bw_file_writer *writer,
                                       const struct bw_choice *choice,
                                       struct bw_task_worker **result)
{
    const struct bw_probes *probes = fs->graph->probes;
    struct bw_task_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return bw_error_no_memory();
    /* Probes show inodes as well, also those of leaves that are remembered. */
    const bool numbered = !writer->is_path || !choice->is_plain || BW_PROBE_ON(probes, dirent) ||
                          BW_PROBE_ON(probes, path__emit);
    struct bw_error *error = bw_leaves_create(&worker->leaves, &fs->reader, lists, numbered);
    if (!error)
        error = bw_collector_create(fs, writer, choice, &worker->collector);
    if (error) {
        bw_task_worker_destroy(worker);
        return error;
    }
    bw_collector_use_leaves(worker->collector, &worker->leaves);
    *result = worker;
    return NULL;
}

void bw_task_worker_destroy(struct bw_task_worker *worker)
{
    if (!worker)
        return;
    bw_leaves_destroy(&worker->leaves);
    bw_buffer_free(&worker->leaf.list);
    directory_records_free(&worker->records);
    bw_key_map_free(&worker->by_inode);
    bw_buffer_free(&worker->prefix);
    bw_buffer_free(&worker->raw);
    bw_collector_destroy(worker->collector);
    free(worker);
}

/* Passes an error to the output, which ends the walk; NULL is ignored. */
static void fail_on_error(struct bw_task_worker *worker, struct bw_error *error)
{
    if (error)
        bw_output_fail(worker->scope->output, error);
}

/* Reports damage of a directory. */
static void report_directory(struct bw_task_worker *worker, uint64_t inode, const char *what)
{
    bw_scope_report(worker->scope, "directory inode", inode, what);
}

/* Notes that keys are lost. */
static void add_lost_range(struct bw_task_worker *worker, const struct bw_lost_range *range)
{
    fail_on_error(worker, bw_lost_ranges_push(&worker->result->lost, *range));
}

/*
 * Brings a directory into reach. `position` is the inode whose entries in the current leaf are
 * being processed, or UINT64_MAX between leaves: entries of a greater inode are still ahead in that
 * leaf, so it need not be read again.
 */
static void add_record(struct bw_task_worker *worker, uint64_t inode, uint32_t directory,
                       uint64_t position)
{
    struct bw_key first_key = bw_first_entry_key(inode), last_key = bw_last_entry_key(inode);
    uint32_t first = bw_leaves_find(&worker->leaves, &first_key);
    struct bw_error *error = directory_records_reserve(&worker->records, 1);
    if (!error)
        error = bw_key_map_put(&worker->by_inode, inode, (uint32_t)worker->records.count);
    if (error) {
        fail_on_error(worker, error);
        return;
    }
    worker->records.items[worker->records.count++] =
        (struct directory_record){inode, directory, first};
    uint32_t leaf = first;
    do
        if (leaf != worker->leaf.number || inode < position)
            bw_leaves_want(&worker->leaves, leaf);
    while (bw_leaves_begins_by(&worker->leaves, ++leaf, &last_key));
}

/* Adds the directory of an entry, which will be walked; false if it is invalid, or already known.
 */
static bool add_directory(struct bw_task_worker *worker, const struct directory_record *parent,
                          const struct bw_dir_entry *entry)
{
    const uint64_t inode = entry->location.objectid;
    if (inode <= BW_SUBVOLUME_ROOT_INODE) {
        report_directory(worker, parent->inode, "an entry points to an impossible inode number");
        return false;
    }
    const struct bw_directory_table *directories = worker->scope->directories;
    uint32_t known = bw_directories_find(directories, inode);
    if (known != BW_NO_DIRECTORY && bw_directories_matches(directories, known, parent->directory,
                                                           entry->name, entry->name_length))
        return false; /* recovery has found it before */
    if (known != BW_NO_DIRECTORY || bw_directories_is_closed(directories, inode) ||
        bw_key_map_has(&worker->by_inode, inode)) {
        report_directory(worker, inode, "it has a second entry");
        return false;
    }

    /* It is walked by this task if the node has all its entries. */
    const struct bw_tree_block_expectation *node = &worker->task->pointer.expectation;
    const struct bw_key first = bw_first_entry_key(inode), last = bw_last_entry_key(inode);
    const struct bw_walked_directory found = {.inode = inode,
                                              .parent = parent->directory,
                                              .walked =
                                                  bw_key_compare(&first, &node->first_key) >= 0 &&
                                                  bw_key_compare(&last, &node->end_key) < 0,
                                              .name = (const char *)entry->name,
                                              .name_length = (uint8_t)entry->name_length};
    const uint32_t number = bw_found_directory_add(&worker->result->found, &found);
    if (number == BW_NO_DIRECTORY)
        fail_on_error(worker, bw_error_no_memory());
    else if (found.walked)
        add_record(worker, inode, number, parent->inode);
    return number != BW_NO_DIRECTORY;
}

/* Sets the prefix to the path of a directory. Directories with the same parent often follow each
 * other, so the path of the parent is kept. */
static void set_prefix(struct bw_task_worker *worker, uint32_t directory)
{
    const struct bw_task_scope *scope = worker->scope;
    const struct bw_directory_table *table = scope->directories;
    const struct bw_packed *found = &worker->result->found;
    const bool escape = worker->method == WRITE_PATHS && scope->writer->escape;
    struct bw_buffer *prefix = &worker->prefix, *path = escape ? &worker->raw : prefix;
    const struct bw_walked_directory own = bw_any_directory_get(table, found, directory);
    const uint32_t parent = own.parent;
    const bool is_top = parent == directory;
    if (is_top || parent != worker->parent) {
        path->length = 0;
        bw_buffer_append(path, scope->prefix, scope->prefix_length);
        bw_any_directory_path(table, found, parent, path);
        worker->parent = parent;
        worker->parent_length = path->length;
    }
    path->length = worker->parent_length;
    if (!is_top && bw_buffer_reserve(path, own.name_length + 1u)) {
        bw_copy_short(path->data + path->length, own.name, own.name_length);
        path->length += own.name_length;
        path->data[path->length++] = '/';
    }

    if (escape) {
        prefix->length = 0;
        bw_escape_append(prefix, path->data, path->length);
    }
    if (path->failed || prefix->failed)
        fail_on_error(worker, bw_error_no_memory());
    else if (worker->method == CHOOSE_FILES)
        worker->depth = bw_choice_depth(scope->choice, prefix->data, prefix->length);
    worker->prefix_is_set = true;
    worker->entered = false;
}

/* Prepares the collector for entries of a directory. */
static void enter_collector(struct bw_task_worker *worker, const struct directory_record *directory)
{
    const struct bw_buffer *prefix = &worker->prefix;
    if (!worker->prefix_is_set)
        set_prefix(worker, directory->directory);
    if (!worker->entered)
        fail_on_error(worker, bw_collector_enter(worker->collector, prefix->data, prefix->length));
    worker->entered = true;
}

/* Adds an entry to the files that are written once their inodes are known. */
static void collect_entry(struct bw_task_worker *worker, const struct directory_record *directory,
                          const struct bw_collected *what, const struct bw_dir_entry *entry)
{
    enter_collector(worker, directory);
    fail_on_error(worker,
                  bw_collector_add(worker->collector, what, entry->name, entry->name_length));
}

/* The type of an inode, for an entry with an invalid one; like the kernel, it trusts the inode. */
static uint8_t type_of_inode(const struct bw_task_scope *scope, uint64_t number)
{
    const struct bw_place place = {.subvolume = bw_subvolume_by_id(scope->fs, scope->tree->id),
                                   .inode = number};
    struct bw_inode inode;
    BW_AUTO_ERROR struct bw_error *error =
        place.subvolume ? bw_inode_get(scope->fs, &place, &inode) : NULL;
    if (!place.subvolume || error)
        return BW_FILE_UNKNOWN;
    return bw_file_type_of_mode(inode.mode);
}

/* Handles an entry according to the choice: finds directories and subvolumes, collects files. */
static void choose_entry(struct bw_task_worker *worker, const struct directory_record *directory,
                         const struct bw_dir_entry *entry)
{
    const struct bw_task_scope *scope = worker->scope;
    const struct bw_choice *choice = scope->choice;
    const bool subvolume = entry->location.type == BW_ROOT_ITEM;
    /* In a snapshot, the entry of a nested subvolume looks like an empty directory. */
    const bool stale = subvolume && !bw_subvolume_of_entry(&scope->fs->subvolumes, scope->tree->id,
                                                           directory->inode, entry);
    struct bw_named named = {.number = entry->location.objectid, .type = BW_FILE_DIRECTORY};
    struct bw_buffer *path = &worker->prefix;
    if (stale) {
        const struct bw_subvolume *other = bw_subvolume_by_id(scope->fs, entry->location.objectid);
        if (other && !other->deleted && other->parent == scope->tree->id)
            report_directory(worker, directory->inode,
                             "a subvolume looks empty, because its ROOT_REF differs from its "
                             "entry; --subvol reads it");
        named.number = BW_EMPTY_DIRECTORY;
    }
    if (!subvolume)
        named.type = bw_known_type(entry->type);
    if (named.type == BW_FILE_UNKNOWN)
        named.type = type_of_inode(scope, entry->location.objectid);
    BW_PROBE(scope->fs->graph->probes, dirent, dirent,
             &(struct bw_dirent_event){scope->tree->id, directory->inode, entry});
    if (!worker->prefix_is_set && worker->method == CHOOSE_FILES)
        set_prefix(worker, directory->directory);

    /* Whether it is excluded by its name, which comes after the prefix for the test. */
    if (choice->selection) {
        const size_t length = path->length;
        bw_buffer_append(path, entry->name, entry->name_length);
        bw_buffer_append_byte(path, '\0');
        path->length = length;
        if (path->failed) {
            fail_on_error(worker, bw_error_no_memory());
            return;
        }
        named.path = path->data;
        named.path_length = length + entry->name_length;
        named.name_length = entry->name_length;
        if (bw_selection_excludes(choice->selection, &named))
            return;
    }

    /* A directory or subvolume that is entered needs a path that may have others after it. A few
     * thousand directories in each other would make gigabytes of paths. */
    const bool is_found = named.type == BW_FILE_DIRECTORY && !stale &&
                          (subvolume || bw_choice_enters(choice, worker->depth + 1));
    if (is_found && !worker->prefix_is_set)
        set_prefix(worker, directory->directory);
    if (is_found && path->length + entry->name_length >= BW_LONGEST_PATH) {
        bw_fs_report_once(
            worker->scope->fs, BW_DAMAGE,
            bw_error_create(BW_ERROR_UNSUPPORTED,
                            "subvolume %" PRIu64 ": directory inode %" PRIu64
                            ": its subdirectories are omitted: their paths are longer than 64 KiB",
                            worker->scope->tree->id, directory->inode));
        worker->result->has_omitted = true;
        return;
    }
    if (subvolume && !stale) {
        /* It is listed when it is walked. */
        struct bw_task_result *result = worker->result;
        const size_t name = result->names.length;
        bw_buffer_append(&result->names, entry->name, entry->name_length);
        const struct bw_found_subvolume found = {entry->location.objectid, directory->directory,
                                                 (uint32_t)name, entry->name_length};
        if (result->names.failed || name > UINT32_MAX - BW_NAME_MAX)
            fail_on_error(worker, bw_error_no_memory());
        else
            fail_on_error(worker, bw_found_subvolumes_push(&result->subvolumes, found));
        return;
    }
    if (is_found && !add_directory(worker, directory, entry))
        return;
    if (scope->silent || !bw_choice_lists(choice, scope->tree->id, &named, worker->depth + 1))
        return;
    const struct bw_collected what = {
        .number = stale ? directory->inode : named.number, .type = named.type, .made_up = stale};
    collect_entry(worker, directory, &what, entry);
}

static void on_lost_leaf(void *context, const struct bw_block_pointer *pointer,
                         struct bw_error *error)
{
    struct bw_task_worker *worker = context;
    const struct bw_lost_range range = bw_lost_range_of(pointer, worker->scope->wave);
    bw_fs_report_lost(worker->scope->fs, pointer->bytenr, error);
    add_lost_range(worker, &range);
}

/* An entry that cannot be read, in a leaf that can: its name may be recovered from the inode. */
static void report_bad_entry(struct bw_task_worker *worker, const struct bw_key *key,
                             const char *what)
{
    report_directory(worker, key->objectid, what);
    if (key->offset < UINT64_MAX)
        add_lost_range(worker,
                       &(struct bw_lost_range){.bytenr = BW_NO_BLOCK,
                                               .low = *key,
                                               .high = {key->objectid, key->type, key->offset + 1},
                                               .wave = worker->scope->wave});
}

/* Handles one entry: a regular file as its leaf is read, any other according to the choice. */
static inline void handle_entry(struct bw_task_worker *worker,
                                const struct directory_record *directory,
                                const struct bw_dir_entry *entry)
{
    if (worker->method == CHOOSE_FILES || entry->type != BW_FILE_REGULAR ||
        entry->location.type == BW_ROOT_ITEM) {
        choose_entry(worker, directory, entry);
        return;
    }
    if (worker->method == COLLECT_FILES) {
        const struct bw_collected what = {.number = entry->location.objectid,
                                          .type = BW_FILE_REGULAR};
        collect_entry(worker, directory, &what, entry);
        return;
    }
    if (!worker->prefix_is_set)
        set_prefix(worker, directory->directory);
    const struct bw_buffer *prefix = &worker->prefix;
    struct bw_buffer *text = &worker->text;
    worker->result->files++;
    if (!bw_buffer_reserve(text, prefix->length + entry->name_length + 1))
        return;
    memcpy(text->data + text->length, prefix->data, prefix->length);
    text->length += prefix->length;
    if (worker->scope->writer->escape)
        bw_escape_append(text, entry->name, entry->name_length);
    else
        bw_buffer_append(text, entry->name, entry->name_length);
    bw_buffer_append_byte(text, worker->scope->writer->terminator);
}

/* Notes an inode that has entries, but is no directory that the walk has found so far. */
static void note_unclaimed(struct bw_task_worker *worker, uint64_t inode)
{
    bool is_new;
    if (worker->scope->is_whole && inode > BW_SUBVOLUME_ROOT_INODE &&
        !bw_directories_knows(worker->scope->directories, inode))
        fail_on_error(worker, bw_key_set_add(&worker->result->unclaimed, inode, &is_new));
}

/* The record of a directory whose entries begin here, if it is known and they were not processed
 * yet. */
static bool enter_directory(struct bw_task_worker *worker, uint64_t inode,
                            struct directory_record *directory)
{
    uint32_t index = bw_key_map_get(&worker->by_inode, inode, UINT32_MAX);
    if (index == UINT32_MAX) {
        note_unclaimed(worker, inode);
        return false;
    }
    if (worker->records.items[index].next_leaf > worker->leaf.number)
        return false;
    worker->records.items[index].next_leaf = worker->leaf.number + 1;
    *directory = worker->records.items[index];
    worker->prefix_is_set = false;
    return true;
}

/*
 * The innermost loop: writes the paths of consecutive regular files. It reserves the room for all
 * of them at once, and stops at any other entry and at any flaw, which handle_item() handles.
 */

/* Prepares for at most `count` paths with names of `name_bytes` in total; false if paths are not
 * written this way. */
static bool begin_paths(struct bw_task_worker *worker, const struct directory_record *directory,
                        size_t count, size_t name_bytes, struct bw_path_writer *paths)
{
    enum { LONG_PREFIX = 4096 };
    struct bw_buffer *prefix = &worker->prefix;
    if (worker->scope->writer->escape)
        return false;
    if (!worker->prefix_is_set)
        set_prefix(worker, directory->directory);
    if (prefix->length > LONG_PREFIX || !bw_buffer_reserve(prefix, BW_COPY_SLACK) ||
        !bw_buffer_reserve(&worker->text,
                           count * (prefix->length + 1) + name_bytes + 2 * BW_COPY_SLACK))
        return false;
    *paths = (struct bw_path_writer){.prefix = prefix->data,
                                     .prefix_length = prefix->length,
                                     .terminator = worker->scope->writer->terminator,
                                     .next = worker->text.data + worker->text.length,
                                     .name_room = name_bytes};
    return true;
}

static void end_paths(struct bw_task_worker *worker, const struct bw_path_writer *paths)
{
    worker->text.length = (size_t)(paths->next - worker->text.data);
    worker->result->files += paths->count;
}

/* Writes the paths of the files from `slot` on that are in the directory; returns the slot of the
 * first item that was not handled. */
static uint32_t write_files(struct bw_task_worker *worker, const struct bw_node *given,
                            uint32_t slot, const struct directory_record *directory)
{
    struct bw_path_writer paths;
    const struct bw_node leaf = *given; /* stays in registers */
    const uint64_t inode = directory->inode;
    const struct bw_disk_dir_item *entry = bw_leaf_file_entry(&leaf, slot, inode);
    if (!entry || !begin_paths(worker, directory, leaf.item_count - slot, leaf.nodesize, &paths))
        return slot;
    while (entry &&
           bw_path_writer_add(&paths, (const uint8_t *)(entry + 1), bw_get16(entry->name_length)))
        entry = ++slot < leaf.item_count ? bw_leaf_file_entry(&leaf, slot, inode) : NULL;
    end_paths(worker, &paths);
    return slot;
}

/* Collects the files from `slot` on in the same way. */
static uint32_t collect_files(struct bw_task_worker *worker, const struct bw_node *given,
                              uint32_t slot, const struct directory_record *directory)
{
    const struct bw_node leaf = *given;
    const uint64_t inode = directory->inode;
    const struct bw_disk_dir_item *entry = bw_leaf_file_entry(&leaf, slot, inode);
    if (entry)
        enter_collector(worker, directory);
    while (entry && bw_collector_add_file(worker->collector, entry))
        entry = ++slot < leaf.item_count ? bw_leaf_file_entry(&leaf, slot, inode) : NULL;
    return slot;
}

/* Skips the files from `slot` on; flaws are reported like others. */
static uint32_t skip_files(const struct bw_node *leaf, uint32_t slot, uint64_t directory)
{
    const struct bw_disk_dir_item *entry;
    while (slot < leaf->item_count && (entry = bw_leaf_file_entry(leaf, slot, directory)) &&
           bw_name_is_valid((const uint8_t *)(entry + 1), bw_get16(entry->name_length)))
        slot++;
    return slot;
}

/* Writes the paths of consecutive files of an entry list, in which all names are valid. */
static void write_listed_files(struct bw_task_worker *worker, struct bw_entry_list_cursor *entries,
                               const struct directory_record *directory)
{
    struct bw_path_writer paths;
    struct bw_entry_list_cursor at = *entries; /* stays in registers */
    const size_t bytes = (size_t)(at.end - at.next);
    if (!bw_entry_list_is_at_file(&at) ||
        !begin_paths(worker, directory, bytes / BW_LISTED_FILE_MIN, bytes, &paths))
        return;
    while (bw_entry_list_is_at_file(&at)) {
        size_t length;
        const uint8_t *name = bw_entry_list_read_file(&at, &length);
        bw_path_writer_add_valid(&paths, name, length);
    }
    *entries = at;
    end_paths(worker, &paths);
}

/* Handles the files that come next in an entry list, which are not to be chosen. */
static void handle_listed_files(struct bw_task_worker *worker, struct bw_entry_list_cursor *entries,
                                const struct directory_record *directory)
{
    if (worker->method == WRITE_PATHS && !worker->skips_files) {
        write_listed_files(worker, entries, directory);
        return;
    }
    if (!worker->skips_files && bw_entry_list_is_at_file(entries))
        enter_collector(worker, directory);
    while (bw_entry_list_is_at_file(entries)) {
        size_t length;
        const uint8_t *name = bw_entry_list_read_file(entries, &length);
        if (worker->skips_files)
            continue;
        const struct bw_collected what = {.number = bw_listed_number(name + length),
                                          .type = BW_FILE_REGULAR};
        fail_on_error(worker, bw_collector_add(worker->collector, &what, name, length));
    }
}

static void handle_item(struct bw_task_worker *worker, const struct bw_node *leaf, uint32_t slot,
                        const struct directory_record *directory)
{
    struct bw_item item;
    struct bw_dir_entry entry;
    bool inside = bw_leaf_item(leaf, slot, &item);
    if (!inside || item.size == 0) {
        report_bad_entry(worker, &item.key,
                         inside ? "an entry is empty" : "an item lies outside its leaf");
        return;
    }
    struct bw_cursor cursor = bw_cursor_of(&item);
    while (bw_dir_entry_next(&cursor, &entry)) {
        if (bw_name_is_valid(entry.name, entry.name_length))
            handle_entry(worker, directory, &entry);
        else
            report_bad_entry(worker, &item.key, "an entry has an invalid name");
    }
    if (bw_cursor_bad(&cursor))
        report_bad_entry(worker, &item.key, "an entry is cut off");
}

/* The keys of the items at and before a slot are out of order. One of them had another key, between
 * those of its neighbours: if it was an entry, its name may be recovered from its inode. */
static void report_disorder(struct bw_task_worker *worker, const struct bw_node *leaf,
                            uint32_t slot, uint64_t directory)
{
    report_directory(worker, directory, "its entries are out of order");
    uint32_t wrong = slot;
    struct bw_key low, high = bw_leaf_key(leaf, slot);
    if (slot > 1) {
        low = bw_leaf_key(leaf, slot - 2);
        if (bw_key_compare(&low, &high) < 0)
            wrong = slot - 1;
    }
    if (wrong + 1 >= leaf->item_count)
        return;
    low = bw_leaf_key(leaf, wrong - 1);
    high = bw_leaf_key(leaf, wrong + 1);
    low.offset += low.offset < UINT64_MAX;
    if (bw_key_compare(&low, &high) < 0)
        add_lost_range(worker, &(struct bw_lost_range){.bytenr = BW_NO_BLOCK,
                                                       .low = low,
                                                       .high = high,
                                                       .wave = worker->scope->wave});
}

static void handle_leaf(struct bw_task_worker *worker, const struct bw_node *leaf)
{
    struct directory_record directory = {0};
    bool entered = false, after_entry = false;
    uint64_t current = 0;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        const struct bw_disk_item *disk = bw_node_disk_item(leaf, slot);
        const bool is_entry = disk->key.type == BW_DIR_INDEX;
        const uint64_t inode = bw_get64(disk->key.objectid);

        /* Only the ends of each run of entries are compared: inside, nothing is missing. */
        if ((is_entry != after_entry || (is_entry && inode != current)) &&
            !bw_leaf_is_ordered_at(leaf, slot))
            report_disorder(worker, leaf, slot, is_entry ? inode : current);
        after_entry = is_entry;
        if (!is_entry)
            continue;
        if (inode != current) {
            current = inode;
            entered = inode == directory.inode || enter_directory(worker, inode, &directory);
        }
        if (!entered)
            continue;
        /* Ordinary files are handled many at a time, unless they are to be chosen. */
        uint32_t next = slot;
        if (worker->method == WRITE_PATHS)
            next = write_files(worker, leaf, slot, &directory);
        else if (worker->method == COLLECT_FILES)
            next = collect_files(worker, leaf, slot, &directory);
        else if (worker->skips_files)
            next = skip_files(leaf, slot, inode);
        if (next == slot)
            handle_item(worker, leaf, slot, &directory);
        else
            slot = next - 1;
    }
}

/* Handles the entries of a leaf from its list. */
static void handle_entry_list(struct bw_task_worker *worker, const struct bw_buffer *list)
{
    const bool numbered = worker->leaves.numbered;
    struct bw_entry_list_cursor cursor = bw_entry_list_begin(list, numbered), entries;
    const bool chosen = worker->method == CHOOSE_FILES && !worker->skips_files;
    struct directory_record directory = {0};
    struct bw_dir_entry entry;
    uint64_t inode;
    while (bw_entry_list_next_directory(&cursor, &inode, &entries)) {
        if (!enter_directory(worker, inode, &directory))
            continue;
        if (!chosen)
            handle_listed_files(worker, &entries, &directory);
        while (bw_entry_list_next_entry(&entries, &entry)) {
            handle_entry(worker, &directory, &entry);
            if (!chosen)
                handle_listed_files(worker, &entries, &directory);
        }
    }
}

/*
 * Closing directories. The walk needs the path of a directory that was listed only if something
 * below it comes later: a directory of another task, or a subvolume.
 */

/* Marks of directories that were found, in the room for their places. */
enum { NEEDED = 0, NOT_NEEDED = (int)BW_NO_DIRECTORY };

/* Marks a directory of the task, and those above it. */
static void mark_needed(const struct bw_packed *found, uint32_t directory)
{
    while (directory & BW_FOUND_LOCAL) {
        if (bw_any_directory_place(found, directory) == (uint32_t)NEEDED)
            return;
        bw_found_directory_set_place(found, directory, NEEDED);
        directory = bw_found_directory_get(found, directory).parent;
    }
}

/* Leaves in `found` the directories whose paths are needed later, and closes all others. False if
 * memory runs out. */
static bool close_directories(struct bw_task_result *result)
{
    struct bw_packed *found = &result->found, needed = {0};
    for (uint32_t number = bw_packed_first(found, 0); number != BW_NO_DIRECTORY;) {
        const struct bw_walked_directory directory = bw_found_directory_get(found, number);
        if (!directory.walked)
            mark_needed(found, number | BW_FOUND_LOCAL);
        number = bw_packed_next(found, number, directory.size);
    }
    for (size_t i = 0; i < result->subvolumes.count; i++)
        mark_needed(found, result->subvolumes.items[i].parent);

    uint64_t previous = 0;
    bool good = true;
    for (uint32_t number = bw_packed_first(found, 0); number != BW_NO_DIRECTORY && good;) {
        struct bw_walked_directory directory = bw_found_directory_get(found, number);
        const size_t size = directory.size;
        if (bw_any_directory_place(found, number | BW_FOUND_LOCAL) == (uint32_t)NEEDED) {
            /* The place is the one in the list of needed directories; the parent was moved before.
             */
            directory.parent = bw_any_directory_place(found, directory.parent);
            const uint32_t place = bw_found_directory_add(&needed, &directory);
            bw_found_directory_set_place(found, number, place);
            good = place != BW_NO_DIRECTORY;
        } else {
            uint8_t bytes[BW_VARINT_LONGEST];
            const uint8_t *end = bw_varint_put(bytes, directory.inode - previous);
            bw_buffer_append(&result->closed, bytes, (size_t)(end - bytes));
            previous = directory.inode;
            good = !result->closed.failed;
        }
        number = bw_packed_next(found, number, size);
    }
    for (size_t i = 0; i < result->subvolumes.count && good; i++)
        result->subvolumes.items[i].parent =
            bw_any_directory_place(found, result->subvolumes.items[i].parent);
    bw_packed_free(found);
    *found = needed;
    return good;
}

/* Running a task. */

static void write_collected(struct bw_task_worker *worker)
{
    fail_on_error(worker, bw_collector_flush(worker->collector, worker->scope, worker->number,
                                             &worker->text, &worker->result->files));
    worker->entered = false;
}

/* Decided for each leaf rather than for each entry. Probes may be switched on at any time. */
static void choose_method(struct bw_task_worker *worker)
{
    const struct bw_task_scope *scope = worker->scope;
    const struct bw_probes *probes = scope->fs->graph->probes;
    const enum listing_method before = worker->method;
    const bool watched = BW_PROBE_ON(probes, dirent) || BW_PROBE_ON(probes, path__emit);
    worker->skips_files = !watched && !(scope->choice->types >> BW_FILE_REGULAR & 1);
    if (!scope->choice->is_plain || scope->silent || watched)
        worker->method = CHOOSE_FILES;
    else
        worker->method = scope->writer->is_path ? WRITE_PATHS : COLLECT_FILES;
    if (worker->method != before)
        worker->parent = BW_NO_DIRECTORY; /* which of the two prefixes is unescaped */
    if (worker->method == WRITE_PATHS || bw_collector_is_full(worker->collector))
        write_collected(worker);
}

/* Lists the leaves with entries of the pending directories, and those that become wanted meanwhile.
 */
static void list_leaves(struct bw_task_worker *worker)
{
    const struct bw_task_scope *scope = worker->scope;
    const struct bw_task *task = worker->task;
    struct bw_leaves *leaves = &worker->leaves;
    struct bw_wanted_leaf *leaf = &worker->leaf;
    if (scope->root_leaf && task->pointer.bytenr == scope->tree->root.bytenr)
        bw_leaves_use(leaves, scope->root_leaf);
    for (size_t i = 0; i < task->pending_count; i++) {
        const struct bw_pending *pending = &task->pending[i];
        if (!task->since ||
            bw_directories_get(scope->directories, pending->directory).wave >= task->since)
            add_record(worker, pending->inode, pending->directory, UINT64_MAX);
    }
    bw_leaves_advise(leaves);
    while (!bw_output_stopped(scope->output)) {
        if (bw_collector_is_worth_flushing(worker->collector) && bw_leaves_must_read(leaves))
            write_collected(worker);
        if (!bw_leaves_next(leaves, leaf, on_lost_leaf, worker))
            break;
        /* Names that these items had may be recovered from inodes. */
        if (leaf->is_cut)
            add_lost_range(worker, &(struct bw_lost_range){.bytenr = BW_NO_BLOCK,
                                                           .low = leaf->cut_from,
                                                           .high = leaf->cut_to,
                                                           .wave = scope->wave});
        choose_method(worker);
        if (leaf->has_list)
            handle_entry_list(worker, &leaf->list);
        else
            handle_leaf(worker, &leaf->view);
        bw_output_offer(scope->output, worker->number, &worker->text);
    }
    write_collected(worker);
}

void bw_task_run(const struct bw_task_scope *scope, struct bw_task_worker *worker,
                 struct bw_task *task, size_t number)
{
    worker->scope = scope;
    worker->task = task;
    worker->result = &task->result;
    worker->number = number;
    worker->records.count = 0;
    worker->parent = BW_NO_DIRECTORY;
    worker->prefix_is_set = worker->entered = false;
    bw_key_map_clear(&worker->by_inode);
    bw_output_begin(scope->output, number, &worker->text);
    if (!bw_output_stopped(scope->output)) {
        struct bw_error *error =
            bw_leaves_open(&worker->leaves, scope->tree, &task->pointer, scope->lost_blocks);
        if (error)
            on_lost_leaf(worker, &task->pointer, error);
        else
            list_leaves(worker);
        if (scope->complete && !task->result.lost.count && !close_directories(&task->result))
            fail_on_error(worker, bw_error_no_memory());
    }
    bw_output_finish(scope->output, number, &worker->text);
}

void bw_task_result_free(struct bw_task_result *result)
{
    bw_buffer_free(&result->names);
    bw_packed_free(&result->found);
    bw_buffer_free(&result->closed);
    bw_found_subvolumes_free(&result->subvolumes);
    free(result->lost.items);
    bw_key_set_free(&result->unclaimed);
    *result = (struct bw_task_result){0};
}
