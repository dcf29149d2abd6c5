/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Running a task: it chooses leaves by the directories known, reads them in batches, and iterates
 * over their DIR_INDEX items. This is the hot path of the whole program. Plain paths are written at
 * once, with the path of a directory made once for all its files; the files of other writers are
 * collected until their inodes are known (collect.c).
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/escape.h"
#include "base/short_copy.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "walk/path_text.h"
#include "walk/task.h"

/* A directory in reach of the task. */
struct directory_record {
    uint64_t inode;
    uint32_t directory; /* index in the table, or in `found` with BW_FOUND_LOCAL */
    uint32_t next_leaf; /* the first of its leaves that was not processed yet */
};

struct bw_task_scratch {
    struct bw_leaves leaves;
    struct bw_wanted_leaf leaf;
    struct directory_record *records;
    size_t record_count, record_capacity;
    struct bw_map by_inode;  /* inode to record */
    struct bw_buffer prefix; /* path of the current directory; in printed form for WRITE_PATHS */
    struct bw_buffer raw;    /* the same before escaping */
    uint32_t parent;         /* its path is at the beginning of the unescaped prefix */
    size_t parent_length;    /* the length of that path */
    struct bw_collector *collector;
};

/* How the files of a leaf are listed. */
enum listing_method {
    WRITE_PATHS,   /* all regular files: paths, which are written at once */
    COLLECT_FILES, /* all regular files, with a writer that needs more */
    CHOOSE_FILES,  /* what the choice says; also if files are not listed, or watched */
};

struct running_task {
    const struct bw_task_scope *scope;
    struct bw_task_scratch *scratch;
    struct bw_task *task;
    struct bw_task_result *result;
    size_t number;
    uint32_t leaf;      /* the present leaf; UINT32_MAX between leaves */
    uint32_t depth;     /* of the directory whose prefix is set, if there is a greatest depth */
    bool prefix_is_set; /* the prefix belongs to the current directory */
    bool entered;       /* and the collector has it */
    bool skips_files;   /* regular files are neither listed nor watched */
    enum listing_method method;
    struct bw_buffer text;
};

/* Passes an error to the output, which ends the walk; NULL is ignored. */
static void fail_on_error(struct running_task *run, struct bw_error *error)
{
    if (error)
        bw_output_fail(run->scope->output, error);
}

/* Reports damage of a directory. */
static void report_directory(struct running_task *run, uint64_t inode, const char *what)
{
    bw_fs_report_once(run->scope->fs,
                      bw_error_create(BW_ERROR_CORRUPT,
                                      "subvolume %" PRIu64 ": directory inode %" PRIu64 ": %s",
                                      run->scope->tree->id, inode, what));
}

/* Notes that keys are lost. */
static void add_lost_range(struct running_task *run, const struct bw_lost_range *range)
{
    fail_on_error(run, bw_lost_ranges_add(&run->result->lost, range));
}

/*
 * Brings a directory into reach. `position` is the inode whose entries in the current leaf are
 * being processed, or UINT64_MAX between leaves: entries of a greater inode are still ahead in that
 * leaf, so it need not be read again.
 */
static void add_record(struct running_task *run, uint64_t inode, uint32_t directory,
                       uint64_t position)
{
    struct bw_task_scratch *scratch = run->scratch;
    struct bw_key first_key = bw_first_entry_key(inode), last_key = bw_last_entry_key(inode);
    uint32_t first = bw_leaves_find(&scratch->leaves, &first_key);
    if (!BW_ARRAY_RESERVE(scratch->records, scratch->record_count, scratch->record_capacity) ||
        !bw_map_put(&scratch->by_inode, inode, (uint32_t)scratch->record_count)) {
        fail_on_error(run, bw_error_no_memory());
        return;
    }
    scratch->records[scratch->record_count++] = (struct directory_record){inode, directory, first};
    uint32_t leaf = first;
    do
        if (leaf != run->leaf || inode < position)
            bw_leaves_want(&scratch->leaves, leaf);
    while (bw_leaves_begins_by(&scratch->leaves, ++leaf, &last_key));
}

static bool is_in_reach(const struct running_task *run, uint64_t inode)
{
    const struct bw_block_pointer *pointer = &run->task->pointer;
    struct bw_key first = bw_first_entry_key(inode), last = bw_last_entry_key(inode);
    return bw_key_compare(&first, &pointer->expectation.first_key) >= 0 &&
           bw_key_compare(&last, &pointer->expectation.end_key) < 0;
}

static uint32_t add_name(struct running_task *run, const struct bw_dir_entry *entry)
{
    uint32_t offset = (uint32_t)run->result->names.length;
    bw_buffer_append(&run->result->names, entry->name, entry->name_length);
    if (run->result->names.failed || run->result->names.length > UINT32_MAX - BW_NAME_MAX)
        fail_on_error(run, bw_error_no_memory());
    return offset;
}

/* Adds a directory to the task's own; returns its number, or BW_NO_DIRECTORY. */
static uint32_t add_found(struct running_task *run, const struct directory_record *parent,
                          const struct bw_dir_entry *entry, bool walked)
{
    const struct bw_found_directory found = {.inode = entry->location.objectid,
                                             .parent = parent->directory,
                                             .walked = walked,
                                             .name = (const char *)entry->name,
                                             .name_length = (uint8_t)entry->name_length};
    const uint32_t number = bw_found_directory_add(&run->result->found, &found);
    if (number == BW_NO_DIRECTORY)
        fail_on_error(run, bw_error_no_memory());
    return number;
}

/* Takes the entry of a directory, which will be walked; false if it is none, or already known. */
static bool add_directory(struct running_task *run, const struct directory_record *parent,
                          const struct bw_dir_entry *entry)
{
    const uint64_t inode = entry->location.objectid, position = parent->inode;
    if (inode <= BW_SUBVOLUME_ROOT_INODE) {
        report_directory(run, parent->inode, "an entry points to an impossible inode number");
        return false;
    }
    const struct bw_directory_table *directories = run->scope->directories;
    uint32_t known = bw_directories_find(directories, inode);
    if (known != BW_NO_DIRECTORY &&
        bw_directories_is(directories, known, parent->directory, entry->name, entry->name_length))
        return false; /* recovery has found it before */
    if (known != BW_NO_DIRECTORY || bw_directories_is_closed(directories, inode) ||
        bw_map_get(&run->scratch->by_inode, inode) != UINT32_MAX) {
        report_directory(run, inode, "it has a second entry");
        return false;
    }
    const bool walked = is_in_reach(run, inode);
    const uint32_t number = add_found(run, parent, entry, walked);
    if (walked && number != BW_NO_DIRECTORY)
        add_record(run, inode, number, position);
    return number != BW_NO_DIRECTORY;
}

static void add_subvolume(struct running_task *run, const struct directory_record *parent,
                          const struct bw_dir_entry *entry)
{
    struct bw_task_result *result = run->result;
    if (!BW_ARRAY_RESERVE(result->subvolumes, result->subvolume_count,
                          result->subvolume_capacity)) {
        fail_on_error(run, bw_error_no_memory());
        return;
    }
    result->subvolumes[result->subvolume_count++] = (struct bw_found_subvolume){
        entry->location.objectid, parent->directory, add_name(run, entry), entry->name_length};
}

/* The last name of a directory's path, and the directory before it. */
struct step {
    uint32_t parent;
    const char *name;
    size_t name_length;
};

static struct step step_of(const struct running_task *run, uint32_t directory)
{
    if (directory & BW_FOUND_LOCAL) {
        const struct bw_found_directory found =
            bw_found_directory_get(&run->result->found, directory & ~BW_FOUND_LOCAL);
        return (struct step){found.parent, found.name, found.name_length};
    }
    const struct bw_directory known = bw_directories_get(run->scope->directories, directory);
    return (struct step){known.parent, known.name, known.name_length};
}

/* Sets a buffer to the path of a directory. Directories with the same parent often follow each
 * other, so the path of the parent is kept. */
static void put_directory(struct running_task *run, uint32_t directory, struct bw_buffer *path)
{
    struct bw_task_scratch *scratch = run->scratch;
    const struct step step = step_of(run, directory);
    if (step.parent == directory || step.parent != scratch->parent) {
        path->length = 0;
        bw_buffer_append(path, run->scope->prefix, run->scope->prefix_length);
        bw_found_directory_path(run->scope->directories, &run->result->found, step.parent, path);
        scratch->parent = step.parent;
        scratch->parent_length = path->length;
    }
    path->length = scratch->parent_length;
    if (step.parent == directory || !bw_buffer_reserve(path, step.name_length + 1))
        return;
    bw_copy_short(path->data + path->length, step.name, step.name_length);
    path->length += step.name_length;
    path->data[path->length++] = '/';
}

/* Sets the prefix to the path of a directory. */
static void set_prefix(struct running_task *run, uint32_t directory)
{
    const struct bw_task_scope *scope = run->scope;
    struct bw_buffer *prefix = &run->scratch->prefix, *raw = prefix;
    const bool escape = run->method == WRITE_PATHS && scope->writer->escape;
    if (escape)
        raw = &run->scratch->raw;
    put_directory(run, directory, raw);
    if (escape) {
        prefix->length = 0;
        bw_escape_append(prefix, raw->data, raw->length);
    }
    if (raw->failed || prefix->failed)
        fail_on_error(run, bw_error_no_memory());
    else if (run->method == CHOOSE_FILES)
        run->depth = bw_choice_depth(scope->choice, prefix->data, prefix->length);
    run->prefix_is_set = true;
    run->entered = false;
}

/* Prepares the collector for entries of a directory. */
static void enter_collector(struct running_task *run, const struct directory_record *directory)
{
    const struct bw_buffer *prefix = &run->scratch->prefix;
    if (!run->prefix_is_set)
        set_prefix(run, directory->directory);
    if (!run->entered)
        fail_on_error(run,
                      bw_collector_enter(run->scratch->collector, prefix->data, prefix->length));
    run->entered = true;
}

/* Adds an entry to the files that are written once their inodes are known. */
static void collect_entry(struct running_task *run, const struct directory_record *directory,
                          const struct bw_collected *what, const struct bw_dir_entry *entry)
{
    enter_collector(run, directory);
    fail_on_error(run,
                  bw_collector_add(run->scratch->collector, what, entry->name, entry->name_length));
}

/* Writes the last name after the prefix, which keeps its length. */
static bool name_entry(struct running_task *run, const struct bw_dir_entry *entry,
                       struct bw_named *named)
{
    struct bw_buffer *path = &run->scratch->prefix;
    const size_t length = path->length;
    bw_buffer_append(path, entry->name, entry->name_length);
    bw_buffer_append_byte(path, '\0');
    path->length = length;
    named->path = path->data;
    named->path_length = length + entry->name_length;
    named->name_length = entry->name_length;
    if (path->failed)
        fail_on_error(run, bw_error_no_memory());
    return !path->failed;
}

/* Whether a directory has a path that may have others after it. A few thousand directories in each
 * other would make gigabytes of paths. */
static bool has_bounded_path(struct running_task *run, const struct directory_record *parent,
                             const struct bw_dir_entry *entry)
{
    if (!run->prefix_is_set)
        set_prefix(run, parent->directory);
    if (run->scratch->prefix.length + entry->name_length < BW_LONGEST_PATH)
        return true;
    report_directory(run, parent->inode,
                     "its subdirectories are omitted: their paths are longer than 64 KiB");
    return false;
}

/* Handles an entry according to the choice: finds directories and subvolumes, collects files. */
static void choose_entry(struct running_task *run, const struct directory_record *directory,
                         const struct bw_dir_entry *entry)
{
    const struct bw_task_scope *scope = run->scope;
    const struct bw_choice *choice = scope->choice;
    const bool subvolume = entry->location.type == BW_ROOT_ITEM;
    /* In a snapshot, the entry of a nested subvolume looks like an empty directory. */
    const bool stale = subvolume && !bw_subvolume_of_entry(&scope->fs->subvolumes, scope->tree->id,
                                                           directory->inode, entry);
    struct bw_named named = {.number = stale ? BW_EMPTY_DIRECTORY : entry->location.objectid,
                             .type = subvolume ? BW_FILE_DIRECTORY : bw_known_type(entry->type)};
    BW_PROBE(scope->fs->graph->probes, dirent, dirent,
             &(struct bw_dirent_event){scope->tree->id, directory->inode, entry});
    if (!run->prefix_is_set && run->method == CHOOSE_FILES)
        set_prefix(run, directory->directory);
    if (choice->selection &&
        (!name_entry(run, entry, &named) || bw_selection_excludes(choice->selection, &named)))
        return;
    bool enters = (named.type == BW_FILE_DIRECTORY && !stale &&
                   (subvolume || bw_choice_enters(choice, run->depth + 1)));
    if (enters && !has_bounded_path(run, directory, entry))
        return;
    if (subvolume && !stale) {
        add_subvolume(run, directory, entry); /* it is listed when it is walked */
        return;
    }
    if (enters && !add_directory(run, directory, entry))
        return;
    if (scope->silent || !bw_choice_lists(choice, scope->tree->id, &named, run->depth + 1))
        return;
    const struct bw_collected what = {
        .number = stale ? directory->inode : named.number, .type = named.type, .made_up = stale};
    collect_entry(run, directory, &what, entry);
}

/* Running a task. */

struct bw_error *bw_task_scratch_create(struct bw_fs *fs, struct bw_entry_cache *lists,
                                        const struct bw_file_writer *writer,
                                        const struct bw_choice *choice,
                                        struct bw_task_scratch **result)
{
    const struct bw_probes *probes = fs->graph->probes;
    struct bw_task_scratch *scratch = calloc(1, sizeof *scratch);
    if (!scratch)
        return bw_error_no_memory();
    /* Probes show inodes as well, also those of leaves that are remembered. */
    const bool numbered = !writer->is_path || !choice->is_plain || BW_PROBE_ON(probes, dirent) ||
                          BW_PROBE_ON(probes, path__emit);
    struct bw_error *error = bw_leaves_create(&scratch->leaves, &fs->reader, lists, numbered);
    if (!error)
        error = bw_collector_create(fs, writer, choice, &scratch->collector);
    if (error) {
        bw_task_scratch_destroy(scratch);
        return error;
    }
    bw_collector_use_leaves(scratch->collector, &scratch->leaves);
    *result = scratch;
    return NULL;
}

void bw_task_scratch_destroy(struct bw_task_scratch *scratch)
{
    if (!scratch)
        return;
    bw_leaves_destroy(&scratch->leaves);
    bw_buffer_free(&scratch->leaf.list);
    free(scratch->records);
    bw_map_free(&scratch->by_inode);
    bw_buffer_free(&scratch->prefix);
    bw_buffer_free(&scratch->raw);
    bw_collector_destroy(scratch->collector);
    free(scratch);
}

static void on_lost_leaf(void *context, const struct bw_block_pointer *pointer,
                         struct bw_error *error)
{
    struct running_task *run = context;
    const struct bw_lost_range range = bw_lost_range_of(pointer, run->scope->wave);
    bw_fs_report_lost(run->scope->fs, pointer->bytenr, error);
    add_lost_range(run, &range);
}

/* An entry that cannot be read, in a leaf that can: its name may be recovered from the inode. */
static void report_bad_entry(struct running_task *run, const struct bw_key *key, const char *what)
{
    report_directory(run, key->objectid, what);
    if (key->offset < UINT64_MAX)
        add_lost_range(run,
                       &(struct bw_lost_range){.bytenr = BW_NO_BLOCK,
                                               .low = *key,
                                               .high = {key->objectid, key->type, key->offset + 1},
                                               .wave = run->scope->wave});
}

static inline void write_path(struct running_task *run, const struct directory_record *directory,
                              const struct bw_dir_entry *entry)
{
    if (!run->prefix_is_set)
        set_prefix(run, directory->directory);
    const struct bw_buffer *prefix = &run->scratch->prefix;
    struct bw_buffer *text = &run->text;
    run->result->files++;
    if (!bw_buffer_reserve(text, prefix->length + entry->name_length + 1))
        return;
    memcpy(text->data + text->length, prefix->data, prefix->length);
    text->length += prefix->length;
    if (run->scope->writer->escape)
        bw_escape_append(text, entry->name, entry->name_length);
    else
        bw_buffer_append(text, entry->name, entry->name_length);
    bw_buffer_append_byte(text, run->scope->writer->terminator);
}

static inline void handle_entry(struct running_task *run, const struct directory_record *directory,
                                const struct bw_dir_entry *entry)
{
    const struct bw_collected what = {.number = entry->location.objectid, .type = BW_FILE_REGULAR};
    if (run->method == CHOOSE_FILES || entry->type != BW_FILE_REGULAR ||
        entry->location.type == BW_ROOT_ITEM)
        choose_entry(run, directory, entry);
    else if (run->method == WRITE_PATHS)
        write_path(run, directory, entry);
    else
        collect_entry(run, directory, &what, entry);
}

/* The record of a directory whose entries begin here, if it is known and they were not processed
 * yet. */
static bool enter_directory(struct running_task *run, uint64_t inode,
                            struct directory_record *directory)
{
    uint32_t index = bw_map_get(&run->scratch->by_inode, inode);
    if (index == UINT32_MAX || run->scratch->records[index].next_leaf > run->leaf)
        return false;
    run->scratch->records[index].next_leaf = run->leaf + 1;
    *directory = run->scratch->records[index];
    run->prefix_is_set = false;
    return true;
}

/*
 * The innermost loop: writes the paths of consecutive regular files. It reserves the room for all
 * of them at once, and stops at any other entry and at any flaw, which handle_item() handles.
 */

/* Prepares for at most `count` paths with names of `name_bytes` in total; false if paths are not
 * written this way. */
static bool begin_paths(struct running_task *run, const struct directory_record *directory,
                        size_t count, size_t name_bytes, struct bw_path_writer *paths)
{
    enum { LONG_PREFIX = 4096 };
    struct bw_buffer *prefix = &run->scratch->prefix;
    if (run->scope->writer->escape)
        return false;
    if (!run->prefix_is_set)
        set_prefix(run, directory->directory);
    if (prefix->length > LONG_PREFIX || !bw_buffer_reserve(prefix, BW_COPY_SLACK) ||
        !bw_buffer_reserve(&run->text,
                           count * (prefix->length + 1) + name_bytes + 2 * BW_COPY_SLACK))
        return false;
    *paths = (struct bw_path_writer){.prefix = prefix->data,
                                     .prefix_length = prefix->length,
                                     .terminator = run->scope->writer->terminator,
                                     .next = run->text.data + run->text.length,
                                     .name_room = name_bytes};
    return true;
}

static void end_paths(struct running_task *run, const struct bw_path_writer *paths)
{
    run->text.length = (size_t)(paths->next - run->text.data);
    run->result->files += paths->count;
}

/* Writes the paths of the files from `slot` on that are in the directory; returns the slot of the
 * first item that was not handled. */
static uint32_t write_files(struct running_task *run, const struct bw_node *given, uint32_t slot,
                            const struct directory_record *directory)
{
    struct bw_path_writer paths;
    const struct bw_node leaf = *given; /* stays in registers */
    const uint64_t inode = directory->inode;
    const struct bw_disk_dir_item *entry = bw_leaf_file_entry(&leaf, slot, inode);
    if (!entry || !begin_paths(run, directory, leaf.item_count - slot, leaf.nodesize, &paths))
        return slot;
    while (entry &&
           bw_path_writer_add(&paths, (const uint8_t *)(entry + 1), bw_get16(entry->name_length)))
        entry = ++slot < leaf.item_count ? bw_leaf_file_entry(&leaf, slot, inode) : NULL;
    end_paths(run, &paths);
    return slot;
}

/* Collects the files from `slot` on in the same way. */
static uint32_t collect_files(struct running_task *run, const struct bw_node *given, uint32_t slot,
                              const struct directory_record *directory)
{
    const struct bw_node leaf = *given;
    const uint64_t inode = directory->inode;
    const struct bw_disk_dir_item *entry = bw_leaf_file_entry(&leaf, slot, inode);
    if (entry)
        enter_collector(run, directory);
    while (entry && bw_collector_add_file(run->scratch->collector, entry))
        entry = ++slot < leaf.item_count ? bw_leaf_file_entry(&leaf, slot, inode) : NULL;
    return slot;
}

/* Skips the files from `slot` on; flaws are reported like others. */
static uint32_t skip_files(const struct bw_node *leaf, uint32_t slot, uint64_t directory)
{
    const struct bw_disk_dir_item *entry;
    while (slot < leaf->item_count && (entry = bw_leaf_file_entry(leaf, slot, directory)) &&
           bw_check_name((const uint8_t *)(entry + 1), bw_get16(entry->name_length)))
        slot++;
    return slot;
}

/* Handles the ordinary files from `slot` on, one after the other, unless they are to be chosen. */
static uint32_t handle_files(struct running_task *run, const struct bw_node *leaf, uint32_t slot,
                             const struct directory_record *directory)
{
    return run->method == WRITE_PATHS     ? write_files(run, leaf, slot, directory)
           : run->method == COLLECT_FILES ? collect_files(run, leaf, slot, directory)
           : run->skips_files             ? skip_files(leaf, slot, directory->inode)
                                          : slot;
}

/* The same for entry lists, in which all names are valid: writes the paths of consecutive files. */
static void write_listed_files(struct running_task *run, struct bw_entry_list_cursor *entries,
                               const struct directory_record *directory)
{
    struct bw_path_writer paths;
    struct bw_entry_list_cursor at = *entries; /* stays in registers */
    const size_t bytes = (size_t)(at.end - at.next);
    if (!bw_entry_list_is_at_file(&at) ||
        !begin_paths(run, directory, bytes / BW_LISTED_FILE_MIN, bytes, &paths))
        return;
    while (bw_entry_list_is_at_file(&at)) {
        size_t length;
        const uint8_t *name = bw_entry_list_take_file(&at, &length);
        bw_path_writer_add_valid(&paths, name, length);
    }
    *entries = at;
    end_paths(run, &paths);
}

static void collect_listed_files(struct running_task *run, struct bw_entry_list_cursor *entries,
                                 const struct directory_record *directory)
{
    if (bw_entry_list_is_at_file(entries))
        enter_collector(run, directory);
    while (bw_entry_list_is_at_file(entries)) {
        size_t length;
        const uint8_t *name = bw_entry_list_take_file(entries, &length);
        const struct bw_collected what = {.number = bw_listed_number(name + length),
                                          .type = BW_FILE_REGULAR};
        fail_on_error(run, bw_collector_add(run->scratch->collector, &what, name, length));
    }
}

static void skip_listed_files(struct bw_entry_list_cursor *entries)
{
    size_t length;
    while (bw_entry_list_is_at_file(entries))
        bw_entry_list_take_file(entries, &length);
}

/* Handles the files that come next in an entry list, which are not to be chosen. */
static void handle_listed_files(struct running_task *run, struct bw_entry_list_cursor *entries,
                                const struct directory_record *directory)
{
    if (run->skips_files)
        skip_listed_files(entries);
    else if (run->method == WRITE_PATHS)
        write_listed_files(run, entries, directory);
    else
        collect_listed_files(run, entries, directory);
}

static void handle_item(struct running_task *run, const struct bw_node *leaf, uint32_t slot,
                        const struct directory_record *directory)
{
    struct bw_item item;
    struct bw_dir_entry entry;
    bool inside = bw_leaf_item(leaf, slot, &item);
    if (!inside || item.size == 0) {
        report_bad_entry(run, &item.key,
                         inside ? "an entry is empty" : "an item lies outside its leaf");
        return;
    }
    struct bw_cursor cursor = bw_cursor_of(&item);
    while (bw_dir_entry_next(&cursor, &entry)) {
        if (bw_name_is_valid(entry.name, entry.name_length))
            handle_entry(run, directory, &entry);
        else
            report_bad_entry(run, &item.key, "an entry has an invalid name");
    }
    if (bw_cursor_bad(&cursor))
        report_bad_entry(run, &item.key, "an entry is cut off");
}

static void handle_leaf(struct running_task *run, const struct bw_node *leaf)
{
    struct directory_record directory = {0};
    bool entered = false;
    uint64_t current = 0;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        const struct bw_disk_item *disk = bw_node_disk_item(leaf, slot);
        if (disk->key.type != BW_DIR_INDEX)
            continue;
        uint64_t inode = bw_get64(disk->key.objectid);
        if (inode != current) {
            if (inode < current)
                report_directory(run, inode, "its entries are out of order");
            current = inode;
            entered = enter_directory(run, inode, &directory);
        }
        if (!entered)
            continue;
        const uint32_t next = handle_files(run, leaf, slot, &directory);
        if (next == slot)
            handle_item(run, leaf, slot, &directory);
        else
            slot = next - 1;
    }
}

/* The same for the list of a leaf. */
static void handle_entry_list(struct running_task *run, const struct bw_buffer *list)
{
    const bool numbered = run->scratch->leaves.numbered;
    struct bw_entry_list_cursor cursor = bw_entry_list_begin(list, numbered), entries;
    const bool chosen = run->method == CHOOSE_FILES && !run->skips_files;
    struct directory_record directory = {0};
    struct bw_dir_entry entry;
    uint64_t inode;
    while (bw_entry_list_next_directory(&cursor, &inode, &entries)) {
        if (!enter_directory(run, inode, &directory))
            continue;
        if (!chosen)
            handle_listed_files(run, &entries, &directory);
        while (bw_entry_list_next_entry(&entries, &entry)) {
            handle_entry(run, &directory, &entry);
            if (!chosen)
                handle_listed_files(run, &entries, &directory);
        }
    }
}

static void write_collected(struct running_task *run)
{
    fail_on_error(run, bw_collector_flush(run->scratch->collector, run->scope, run->number,
                                          &run->text, &run->result->files));
    run->entered = false;
}

/* Decided for each leaf rather than for each entry. Probes may be switched on at any time. */
static void choose_method(struct running_task *run)
{
    const struct bw_task_scope *scope = run->scope;
    const struct bw_probes *probes = scope->fs->graph->probes;
    const enum listing_method before = run->method;
    const bool watched = BW_PROBE_ON(probes, dirent) || BW_PROBE_ON(probes, path__emit);
    run->skips_files = !watched && !(scope->choice->types >> BW_FILE_REGULAR & 1);
    if (!scope->choice->is_plain || scope->silent || watched)
        run->method = CHOOSE_FILES;
    else
        run->method = scope->writer->is_path ? WRITE_PATHS : COLLECT_FILES;
    if (run->method != before)
        run->scratch->parent = BW_NO_DIRECTORY; /* which of the two prefixes is unescaped */
    if (run->method == WRITE_PATHS || bw_collector_is_full(run->scratch->collector))
        write_collected(run);
}

static bool next_leaf(struct running_task *run)
{
    struct bw_task_scratch *scratch = run->scratch;
    if (bw_collector_is_worth_flushing(scratch->collector) && bw_leaves_must_read(&scratch->leaves))
        write_collected(run);
    return !bw_output_stopped(run->scope->output) &&
           bw_leaves_next(&scratch->leaves, &scratch->leaf, on_lost_leaf, run);
}

/* Lists the wanted leaves, and those that become wanted meanwhile. */
static void list_wanted(struct running_task *run)
{
    struct bw_leaves *leaves = &run->scratch->leaves;
    struct bw_wanted_leaf *leaf = &run->scratch->leaf;
    bw_leaves_advise(leaves);
    while (next_leaf(run)) {
        run->leaf = leaf->number;
        choose_method(run);
        if (leaf->has_list)
            handle_entry_list(run, &leaf->list);
        else
            handle_leaf(run, &leaf->view);
        bw_output_offer(run->scope->output, run->number, &run->text);
    }
}

static void run_leaves(struct running_task *run)
{
    const struct bw_task_scope *scope = run->scope;
    if (scope->root_leaf && run->task->pointer.bytenr == scope->tree->root.bytenr)
        bw_leaves_use(&run->scratch->leaves, scope->root_leaf);
    for (size_t i = 0; i < run->task->pending_count; i++) {
        const struct bw_pending *pending = &run->task->pending[i];
        if (!run->task->since ||
            bw_directories_get(run->scope->directories, pending->directory).wave >=
                run->task->since)
            add_record(run, pending->inode, pending->directory, UINT64_MAX);
    }
    list_wanted(run);
    write_collected(run);
}

void bw_task_run(const struct bw_task_scope *scope, struct bw_task_scratch *scratch,
                 struct bw_task *task, size_t number)
{
    struct running_task run = {.scope = scope,
                               .scratch = scratch,
                               .task = task,
                               .result = &task->result,
                               .number = number,
                               .leaf = UINT32_MAX};
    bw_output_begin(scope->output, number, &run.text);
    scratch->record_count = 0;
    scratch->parent = BW_NO_DIRECTORY;
    bw_map_clear(&scratch->by_inode);
    if (!bw_output_stopped(scope->output)) {
        struct bw_error *error =
            bw_leaves_open(&scratch->leaves, scope->tree, &task->pointer, scope->lost_blocks);
        if (error)
            on_lost_leaf(&run, &task->pointer, error);
        else
            run_leaves(&run);
        if (scope->complete && !run.result->lost.count &&
            !bw_task_result_close_directories(run.result))
            fail_on_error(&run, bw_error_no_memory());
    }
    bw_output_finish(scope->output, number, &run.text);
}
