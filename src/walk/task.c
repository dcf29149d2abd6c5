/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Running a task: choosing leaves by the directories known, reading them in batches, and going
 * through their DIR_INDEX items. This is the hot path of the whole program. Plain paths are
 * written right here, with the path of a directory made once for all its files; all else is done
 * in sweep.c.
 */
#include <stdlib.h>

#include "base/escape.h"
#include "fs/fs.h"
#include "walk/task.h"

struct bw_error *bw_task_scratch_create(struct bw_fs *fs, struct bw_digest_cache *digests,
                                        const struct bw_file_writer *writer,
                                        const struct bw_choice *choice,
                                        struct bw_task_scratch **result)
{
    const struct bw_probes *probes = fs->graph->probes;
    struct bw_task_scratch *scratch = calloc(1, sizeof *scratch);
    if (!scratch)
        return bw_error_no_memory();
    /* Probes show inodes as well, also those of leaves that are remembered. */
    bool numbered = !writer->is_path || !choice->is_plain || BW_PROBE_ON(probes, dirent) ||
                    BW_PROBE_ON(probes, path__emit);
    struct bw_error *error = bw_leaves_create(&scratch->leaves, &fs->reader, digests, numbered);
    if (!error)
        error = bw_collector_create(fs, writer, choice, &scratch->collector);
    if (error)
        bw_task_scratch_destroy(scratch);
    else
        *result = scratch;
    return error;
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

static void lose(void *context, const struct bw_block_pointer *pointer, struct bw_error *error)
{
    struct bw_sweep *sweep = context;
    const struct bw_lost_range range = bw_lost_range_of(pointer, sweep->scope->wave);
    bw_fs_report_lost(sweep->scope->fs, pointer->bytenr, error);
    bw_sweep_lose(sweep, &range);
}

/* An entry that cannot be read, in a leaf that can: its name may be recovered from the inode. */
static void lose_entry(struct bw_sweep *sweep, const struct bw_key *key, const char *what)
{
    bw_sweep_complain(sweep, key->objectid, what);
    if (key->offset < UINT64_MAX)
        bw_sweep_lose(sweep,
                      &(struct bw_lost_range){.bytenr = BW_NO_BLOCK,
                                              .low = *key,
                                              .high = {key->objectid, key->type, key->offset + 1},
                                              .wave = sweep->scope->wave});
}

static inline void write_path(struct bw_sweep *sweep, const struct bw_sweep_record *directory,
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
    if (sweep->scope->writer->options->escape)
        bw_escape_append(text, entry->name, entry->name_length);
    else
        bw_buffer_append(text, entry->name, entry->name_length);
    bw_buffer_append_byte(text, sweep->scope->writer->options->terminator);
}

static inline void take_entry(struct bw_sweep *sweep, const struct bw_sweep_record *directory,
                              const struct bw_dir_entry *entry)
{
    const struct bw_collected what = {.number = entry->location.objectid, .type = BW_FILE_REGULAR};
    if (sweep->way == BW_CHOOSE_FILES || entry->type != BW_FILE_REGULAR ||
        entry->location.type == BW_ROOT_ITEM)
        bw_sweep_take(sweep, directory, entry);
    else if (sweep->way == BW_WRITE_PATHS)
        write_path(sweep, directory, entry);
    else
        bw_sweep_collect(sweep, directory, &what, entry);
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
                bw_sweep_complain(sweep, inode, "its entries are out of order");
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

static void flush(struct bw_sweep *sweep)
{
    bw_sweep_fail(sweep, bw_collector_flush(sweep->scratch->collector, sweep->scope, sweep->number,
                                            &sweep->text, &sweep->result->files));
    sweep->entered = false;
}

/* Decided for each leaf rather than for each entry. Probes may be switched on at any time. */
static void choose_way(struct bw_sweep *sweep)
{
    const struct bw_task_scope *scope = sweep->scope;
    const struct bw_probes *probes = scope->fs->graph->probes;
    if (!scope->choice->is_plain || scope->silent || BW_PROBE_ON(probes, dirent) ||
        BW_PROBE_ON(probes, path__emit))
        sweep->way = BW_CHOOSE_FILES;
    else
        sweep->way = scope->writer->is_path ? BW_WRITE_PATHS : BW_COLLECT_FILES;
    if (sweep->way == BW_WRITE_PATHS || bw_collector_is_full(sweep->scratch->collector))
        flush(sweep);
}

static void run(struct bw_sweep *sweep)
{
    struct bw_leaves *leaves = &sweep->scratch->leaves;
    struct bw_wanted_leaf *leaf = &sweep->scratch->leaf;
    for (size_t i = 0; i < sweep->task->pending_count; i++) {
        const struct bw_pending *pending = &sweep->task->pending[i];
        if (sweep->scope->directories->items[pending->directory].wave >= sweep->task->since)
            bw_sweep_add_record(sweep, pending->inode, pending->directory, UINT64_MAX);
    }
    bw_leaves_advise(leaves);
    while (!bw_output_stopped(sweep->scope->output) && bw_leaves_next(leaves, leaf, lose, sweep)) {
        sweep->leaf = leaf->number;
        choose_way(sweep);
        if (leaf->has_digest)
            take_digest(sweep, &leaf->digest);
        else
            take_leaf(sweep, &leaf->view);
        bw_output_offer(sweep->scope->output, sweep->number, &sweep->text);
    }
    flush(sweep);
}

void bw_task_run(const struct bw_task_scope *scope, struct bw_task_scratch *scratch,
                 struct bw_task *task, size_t number)
{
    struct bw_sweep sweep = {.scope = scope,
                             .scratch = scratch,
                             .task = task,
                             .result = &task->result,
                             .number = number,
                             .leaf = UINT32_MAX};
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
