/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Running a task: choosing leaves by the directories known, reading them in batches, and going
 * through their DIR_INDEX items. This is the hot path of the whole program.
 */
#include "walk/sweep.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "format/items.h"
#include "fs/fs.h"

struct bw_task_scratch *bw_task_scratch_create(struct bw_fs *fs, struct bw_digest_cache *digests,
                                               const struct bw_file_writer *writer,
                                               const struct bw_selection *selection)
{
    struct bw_task_scratch *scratch = calloc(1, sizeof *scratch);
    if (!scratch)
        return NULL;
    scratch->collector = writer ? bw_collector_create(fs, writer, selection) : NULL;
    /* Who watches entries wants to see their inodes, also of leaves that are remembered. */
    const struct bw_probes *probes = bw_graph_probes(fs->graph);
    bool numbered = writer || BW_PROBE_ON(probes, dirent) || BW_PROBE_ON(probes, path__emit);
    if (bw_leaves_create(&scratch->leaves, &fs->reader, digests, numbered) &&
        (scratch->collector || !writer))
        return scratch;
    bw_task_scratch_destroy(scratch);
    return NULL;
}

void bw_task_scratch_destroy(struct bw_task_scratch *scratch)
{
    if (!scratch)
        return;
    bw_leaves_destroy(&scratch->leaves);
    bw_buffer_free(&scratch->leaf.digest);
    free(scratch->records);
    bw_map_free(&scratch->by_inode);
    bw_buffer_free(&scratch->prefix);
    bw_buffer_free(&scratch->raw);
    bw_collector_destroy(scratch->collector);
    free(scratch);
}

void bw_task_result_free(struct bw_task_result *result)
{
    bw_buffer_free(&result->names);
    free(result->found);
    free(result->subvolumes);
    free(result->lost.items);
    *result = (struct bw_task_result){0};
}

static void no_memory(struct bw_sweep *sweep)
{
    bw_output_fail(sweep->scope->output, bw_error_no_memory());
}

static void complain(struct bw_sweep *sweep, uint64_t inode, const char *what)
{
    bw_fs_report(sweep->scope->fs, BW_DAMAGE,
                 bw_error_create(BW_ERROR_CORRUPT,
                                 "tree %" PRIu64 ": directory inode %" PRIu64 ": %s",
                                 sweep->scope->tree->id, inode, what));
}

static void add_lost_range(struct bw_sweep *sweep, const struct bw_lost_range *range)
{
    struct bw_task_result *result = sweep->result;
    struct bw_error *error = bw_lost_ranges_add(&result->lost, range);
    if (error)
        bw_output_fail(sweep->scope->output, error);
}

static void lose(void *context, const struct bw_block_pointer *pointer, struct bw_error *error)
{
    struct bw_sweep *sweep = context;
    bw_fs_report_lost(sweep->scope->fs, pointer->bytenr, error);
    const struct bw_lost_range range = bw_lost_range_of(pointer, sweep->scope->wave);
    add_lost_range(sweep, &range);
}

/* An entry that cannot be read, in a leaf that can: recovery may know it from the inode. */
static void lose_entry(struct bw_sweep *sweep, const struct bw_key *key, const char *what)
{
    complain(sweep, key->objectid, what);
    if (key->offset < UINT64_MAX)
        add_lost_range(sweep, &(struct bw_lost_range){BW_NO_BLOCK,
                                                      *key,
                                                      {key->objectid, key->type, key->offset + 1},
                                                      0,
                                                      0,
                                                      sweep->scope->wave});
}

/*
 * Brings a directory into reach. `position` is the inode whose entries are being gone through in
 * the current leaf, or UINT64_MAX between leaves: entries of a greater inode will still be met
 * there, so it need not be read again.
 */
static void add_record(struct bw_sweep *sweep, uint64_t inode, uint32_t directory,
                       uint64_t position)
{
    struct bw_task_scratch *scratch = sweep->scratch;
    struct bw_key first_key = bw_first_entry_key(inode), last_key = bw_last_entry_key(inode);
    uint32_t first = bw_leaves_find(&scratch->leaves, &first_key);
    uint32_t last = bw_leaves_find(&scratch->leaves, &last_key);
    if (!BW_ARRAY_RESERVE(scratch->records, scratch->record_count, scratch->record_capacity) ||
        !bw_map_put(&scratch->by_inode, inode, (uint32_t)scratch->record_count)) {
        no_memory(sweep);
        return;
    }
    scratch->records[scratch->record_count++] = (struct bw_sweep_record){inode, directory, first};
    for (uint32_t leaf = first; leaf <= last; leaf++)
        if (leaf != sweep->leaf || inode < position)
            bw_leaves_want(&scratch->leaves, leaf);
}

static bool in_reach(const struct bw_sweep *sweep, uint64_t inode)
{
    const struct bw_block_pointer *pointer = &sweep->task->pointer;
    struct bw_key first = bw_first_entry_key(inode), last = bw_last_entry_key(inode);
    return bw_key_compare(&first, &pointer->expectation.first_key) >= 0 &&
           bw_key_compare(&last, &pointer->expectation.end_key) < 0;
}

static uint32_t keep_name(struct bw_sweep *sweep, const struct bw_dir_entry *entry)
{
    uint32_t offset = (uint32_t)sweep->result->names.length;
    bw_buffer_append(&sweep->result->names, entry->name, entry->name_length);
    if (sweep->result->names.failed || sweep->result->names.length > UINT32_MAX - BW_NAME_MAX)
        no_memory(sweep);
    return offset;
}

bool bw_sweep_found_directory(struct bw_sweep *sweep, const struct bw_sweep_record *parent,
                              const struct bw_dir_entry *entry)
{
    struct bw_task_result *result = sweep->result;
    uint64_t inode = entry->location.objectid, position = parent->inode;
    uint32_t parent_directory = parent->directory;
    if (inode <= BW_SUBVOLUME_ROOT_INODE) {
        complain(sweep, parent->inode, "an entry points to an inode that cannot be one");
        return false;
    }
    const struct bw_directory_table *directories = sweep->scope->directories;
    uint32_t known = bw_directories_find(directories, inode);
    if (known != BW_NO_DIRECTORY &&
        bw_directories_is(directories, known, parent_directory, entry->name, entry->name_length))
        return false; /* recovery knew it already */
    if (known != BW_NO_DIRECTORY || bw_map_get(&sweep->scratch->by_inode, inode) != UINT32_MAX) {
        complain(sweep, inode, "it has a second entry");
        return false;
    }
    uint32_t index = (uint32_t)result->found_count | BW_FOUND_LOCAL;
    if (index == UINT32_MAX ||
        !BW_ARRAY_RESERVE(result->found, result->found_count, result->found_capacity)) {
        no_memory(sweep);
        return false;
    }
    bool walked = in_reach(sweep, inode);
    result->found[result->found_count++] = (struct bw_found_directory){
        inode, parent_directory, keep_name(sweep, entry), entry->name_length, walked};
    if (walked)
        add_record(sweep, inode, index, position);
    return true;
}

void bw_sweep_found_subvolume(struct bw_sweep *sweep, const struct bw_sweep_record *parent,
                              const struct bw_dir_entry *entry)
{
    struct bw_task_result *result = sweep->result;
    if (!BW_ARRAY_RESERVE(result->subvolumes, result->subvolume_count,
                          result->subvolume_capacity)) {
        no_memory(sweep);
        return;
    }
    result->subvolumes[result->subvolume_count++] =
        (struct bw_found_subvolume){entry->location.objectid, parent->inode, parent->directory,
                                    keep_name(sweep, entry), entry->name_length};
}

/* Appends the path of a directory, which may be one of the task's own, from the subvolume's top. */
static void append_path(const struct bw_sweep *sweep, uint32_t directory, struct bw_buffer *path)
{
    const struct bw_task_result *result = sweep->result;
    size_t length = 0, start;
    uint32_t at = directory;
    for (; at & BW_FOUND_LOCAL; at = result->found[at & ~BW_FOUND_LOCAL].parent)
        length += result->found[at & ~BW_FOUND_LOCAL].name_length + 1u;
    bw_directories_path(sweep->scope->directories, at, path);
    start = path->length;
    if (!bw_buffer_reserve(path, length))
        return;
    path->length += length;
    char *end = path->data + start + length;
    for (at = directory; at & BW_FOUND_LOCAL; at = result->found[at & ~BW_FOUND_LOCAL].parent) {
        const struct bw_found_directory *found = &result->found[at & ~BW_FOUND_LOCAL];
        *--end = '/';
        end -= found->name_length;
        memcpy(end, result->names.data + found->name_offset, found->name_length);
    }
}

void bw_sweep_set_prefix(struct bw_sweep *sweep, uint32_t directory)
{
    struct bw_buffer *raw = sweep->scope->escape ? &sweep->scratch->raw : &sweep->scratch->prefix;
    raw->length = 0;
    bw_buffer_append(raw, sweep->scope->prefix, sweep->scope->prefix_length);
    append_path(sweep, directory, raw);
    if (sweep->scope->escape) {
        sweep->scratch->prefix.length = 0;
        bw_escape_append(&sweep->scratch->prefix, raw->data, raw->length);
    }
    if (raw->failed || sweep->scratch->prefix.failed)
        no_memory(sweep);
    sweep->prefix_is_set = true;
    sweep->entered = false;
}

static inline void emit(struct bw_sweep *sweep, const struct bw_sweep_record *directory,
                        const struct bw_dir_entry *entry)
{
    if (!sweep->prefix_is_set)
        bw_sweep_set_prefix(sweep, directory->directory);
    const struct bw_buffer *prefix = &sweep->scratch->prefix;
    struct bw_buffer *text = &sweep->text;
    sweep->result->files++;
    if (!bw_buffer_reserve(text, prefix->length + entry->name_length + 1))
        return;
    memcpy(text->data + text->length, prefix->data, prefix->length);
    text->length += prefix->length;
    if (sweep->scope->escape)
        bw_escape_append(text, entry->name, entry->name_length);
    else
        bw_buffer_append(text, entry->name, entry->name_length);
    bw_buffer_append_byte(text, sweep->scope->terminator);
}

void bw_sweep_collect(struct bw_sweep *sweep, const struct bw_sweep_record *directory,
                      const struct bw_collected *what, const struct bw_dir_entry *entry)
{
    struct bw_collector *collector = sweep->scratch->collector;
    if (!sweep->prefix_is_set)
        bw_sweep_set_prefix(sweep, directory->directory);
    if (!sweep->entered)
        bw_collector_enter(collector, sweep->scratch->prefix.data, sweep->scratch->prefix.length);
    sweep->entered = true;
    bw_collector_add(collector, what, entry->name, entry->name_length);
}

static void flush_rows(struct bw_sweep *sweep)
{
    sweep->result->files +=
        bw_collector_flush(sweep->scratch->collector, sweep->scope, sweep->number, &sweep->text);
    sweep->entered = false;
}

/* Somebody watches entries or paths. In a function of its own, which builds the path once more: the
 * way of those whom nobody watches stays short. */
__attribute__((cold, noinline)) static void watch_entry(struct bw_sweep *sweep,
                                                        const struct bw_sweep_record *directory,
                                                        const struct bw_dir_entry *entry)
{
    const struct bw_task_scope *scope = sweep->scope;
    struct bw_probes *probes = bw_graph_probes(scope->fs->graph);
    BW_PROBE(probes, dirent, dirent,
             &(struct bw_dirent_event){scope->tree->id, directory->inode, entry});
    if (entry->location.type == BW_ROOT_ITEM || entry->type != BW_FILE_REGULAR || !sweep->listing ||
        scope->choice)
        return;
    struct bw_buffer path = {0};
    bw_buffer_append(&path, scope->prefix, scope->prefix_length);
    append_path(sweep, directory->directory, &path);
    bw_buffer_append(&path, entry->name, entry->name_length);
    BW_PROBE(
        probes, path__emit, path,
        &(struct bw_path_event){scope->tree->id, entry->location.objectid, path.data, path.length});
    bw_buffer_free(&path);
}

/* Whether that was all there was to do. */
static bool take_specially(struct bw_sweep *sweep, const struct bw_sweep_record *directory,
                           const struct bw_dir_entry *entry)
{
    if (sweep->watched)
        watch_entry(sweep, directory, entry);
    if (!sweep->scope->choice)
        return false;
    bw_sweep_choose(sweep, directory, entry);
    return true;
}

static void take_entry(struct bw_sweep *sweep, const struct bw_sweep_record *directory,
                       const struct bw_dir_entry *entry)
{
    if (sweep->special && take_specially(sweep, directory, entry))
        return;
    if (entry->location.type == BW_ROOT_ITEM)
        bw_sweep_found_subvolume(sweep, directory, entry);
    else if (entry->type == BW_FILE_DIRECTORY)
        bw_sweep_found_directory(sweep, directory, entry);
    else if (entry->type != BW_FILE_REGULAR)
        return;
    else if (sweep->listing == BW_LIST_PATHS)
        emit(sweep, directory, entry);
    else if (sweep->listing == BW_LIST_ROWS)
        bw_sweep_collect(
            sweep, directory,
            &(struct bw_collected){.number = entry->location.objectid, .type = entry->type}, entry);
}

/* The record of a directory whose entries begin here, if it is known and they have not been gone
 * through. */
static bool enter_directory(struct bw_sweep *sweep, uint64_t inode,
                            struct bw_sweep_record *directory)
{
    uint32_t index = bw_map_get(&sweep->scratch->by_inode, inode);
    if (index == UINT32_MAX || sweep->scratch->records[index].next_leaf > sweep->leaf)
        return false;
    sweep->scratch->records[index].next_leaf = sweep->leaf + 1;
    *directory = sweep->scratch->records[index];
    sweep->prefix_is_set = false;
    return true;
}

static void take_item(struct bw_sweep *sweep, const struct bw_node *leaf, uint32_t slot,
                      const struct bw_sweep_record *directory)
{
    struct bw_item item;
    struct bw_dir_entry entry;
    bool inside = bw_leaf_item(leaf, slot, &item);
    if (!inside || item.size == 0) {
        lose_entry(sweep, &item.key,
                   inside ? "an entry is empty" : "an item lies outside its leaf");
        return;
    }
    struct bw_cursor cursor = bw_cursor_of(&item);
    while (bw_dir_entry_next(&cursor, &entry)) {
        if (bw_name_is_valid(entry.name, entry.name_length))
            take_entry(sweep, directory, &entry);
        else
            lose_entry(sweep, &item.key, "an entry has an invalid name");
    }
    if (bw_cursor_bad(&cursor))
        lose_entry(sweep, &item.key, "an entry is cut off");
}

static void take_leaf(struct bw_sweep *sweep, const struct bw_node *leaf)
{
    struct bw_sweep_record directory = {0};
    bool entered = false;
    uint64_t current = 0;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        const struct bw_disk_item *disk = bw_node_disk_item(leaf, slot);
        if (disk->key.type != BW_DIR_INDEX)
            continue;
        uint64_t inode = bw_get64(disk->key.objectid);
        if (inode != current) {
            if (inode < current)
                complain(sweep, inode, "its entries are out of order");
            current = inode;
            entered = enter_directory(sweep, inode, &directory);
        }
        if (entered)
            take_item(sweep, leaf, slot, &directory);
    }
}

/* The same for the digest of a leaf. */
static void take_digest(struct bw_sweep *sweep, const struct bw_buffer *digest)
{
    struct bw_digest_cursor cursor = bw_digest_cursor_of(digest), entries;
    struct bw_sweep_record directory = {0};
    struct bw_dir_entry entry;
    uint64_t inode;
    while (bw_digest_next_directory(&cursor, &inode, &entries)) {
        if (!enter_directory(sweep, inode, &directory))
            continue;
        while (bw_digest_next_entry(&entries, &entry))
            take_entry(sweep, &directory, &entry);
    }
}

static void run(struct bw_sweep *sweep)
{
    struct bw_probes *probes = bw_graph_probes(sweep->scope->fs->graph);
    struct bw_leaves *leaves = &sweep->scratch->leaves;
    struct bw_wanted_leaf *leaf = &sweep->scratch->leaf;
    for (size_t i = 0; i < sweep->task->pending_count; i++) {
        const struct bw_pending *pending = &sweep->task->pending[i];
        if (sweep->scope->directories->items[pending->directory].wave >= sweep->task->since)
            add_record(sweep, pending->inode, pending->directory, UINT64_MAX);
    }
    bw_leaves_advise(leaves);
    while (!bw_output_stopped(sweep->scope->output) && bw_leaves_next(leaves, leaf, lose, sweep)) {
        sweep->leaf = leaf->number;
        /* Asked once a leaf, and not for each of its entries. */
        sweep->watched = BW_PROBE_ON(probes, dirent) || BW_PROBE_ON(probes, path__emit);
        sweep->special = sweep->watched || sweep->scope->choice;
        if (leaf->has_digest)
            take_digest(sweep, &leaf->digest);
        else
            take_leaf(sweep, &leaf->view);
        if (sweep->listing == BW_LIST_ROWS && bw_collector_is_full(sweep->scratch->collector))
            flush_rows(sweep);
        bw_output_offer(sweep->scope->output, sweep->number, &sweep->text);
    }
    if (sweep->listing == BW_LIST_ROWS)
        flush_rows(sweep);
}

void bw_task_run(const struct bw_task_scope *scope, struct bw_task_scratch *scratch,
                 struct bw_task *task, size_t number)
{
    struct bw_sweep sweep = {.scope = scope,
                             .scratch = scratch,
                             .task = task,
                             .result = &task->result,
                             .number = number,
                             .leaf = UINT32_MAX,
                             .listing = scope->silent   ? BW_LIST_NOTHING
                                        : scope->writer ? BW_LIST_ROWS
                                                        : BW_LIST_PATHS};
    bw_output_begin(scope->output, number, &sweep.text);
    scratch->record_count = 0;
    bw_map_clear(&scratch->by_inode);
    if (!bw_output_stopped(scope->output)) {
        struct bw_error *error =
            bw_leaves_open(&scratch->leaves, scope->tree, &task->pointer, scope->lost_blocks);
        if (error)
            lose(&sweep, &task->pointer, error);
        else
            run(&sweep);
    }
    bw_output_finish(scope->output, number, &sweep.text);
}
