/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a task does with the entries that it finds, except for plain lists of paths (task.c). */
#include <inttypes.h>

#include "base/array.h"
#include "base/escape.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "walk/task.h"

void bw_sweep_fail(struct bw_sweep *sweep, struct bw_error *error)
{
    if (error)
        bw_output_fail(sweep->scope->output, error);
}

void bw_sweep_complain(struct bw_sweep *sweep, uint64_t inode, const char *what)
{
    bw_fs_report(sweep->scope->fs, BW_DAMAGE,
                 bw_error_create(BW_ERROR_CORRUPT,
                                 "tree %" PRIu64 ": directory inode %" PRIu64 ": %s",
                                 sweep->scope->tree->id, inode, what));
}

void bw_sweep_lose(struct bw_sweep *sweep, const struct bw_lost_range *range)
{
    bw_sweep_fail(sweep, bw_lost_ranges_add(&sweep->result->lost, range));
}

void bw_sweep_add_record(struct bw_sweep *sweep, uint64_t inode, uint32_t directory,
                         uint64_t position)
{
    struct bw_task_scratch *scratch = sweep->scratch;
    struct bw_key first_key = bw_first_entry_key(inode), last_key = bw_last_entry_key(inode);
    uint32_t first = bw_leaves_find(&scratch->leaves, &first_key);
    uint32_t last = bw_leaves_find(&scratch->leaves, &last_key);
    if (!BW_ARRAY_RESERVE(scratch->records, scratch->record_count, scratch->record_capacity) ||
        !bw_map_put(&scratch->by_inode, inode, (uint32_t)scratch->record_count)) {
        bw_sweep_fail(sweep, bw_error_no_memory());
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
        bw_sweep_fail(sweep, bw_error_no_memory());
    return offset;
}

/* Takes the entry of a directory, which will be walked; false if it is none, or already known. */
static bool found_directory(struct bw_sweep *sweep, const struct bw_sweep_record *parent,
                            const struct bw_dir_entry *entry)
{
    struct bw_task_result *result = sweep->result;
    uint64_t inode = entry->location.objectid, position = parent->inode;
    uint32_t parent_directory = parent->directory;
    if (inode <= BW_SUBVOLUME_ROOT_INODE) {
        bw_sweep_complain(sweep, parent->inode, "an entry points to an inode that cannot be one");
        return false;
    }
    const struct bw_directory_table *directories = sweep->scope->directories;
    uint32_t known = bw_directories_find(directories, inode);
    if (known != BW_NO_DIRECTORY &&
        bw_directories_is(directories, known, parent_directory, entry->name, entry->name_length))
        return false; /* recovery has found it before */
    if (known != BW_NO_DIRECTORY || bw_map_get(&sweep->scratch->by_inode, inode) != UINT32_MAX) {
        bw_sweep_complain(sweep, inode, "it has a second entry");
        return false;
    }
    uint32_t index = (uint32_t)result->found_count | BW_FOUND_LOCAL;
    if (index == UINT32_MAX ||
        !BW_ARRAY_RESERVE(result->found, result->found_count, result->found_capacity)) {
        bw_sweep_fail(sweep, bw_error_no_memory());
        return false;
    }
    bool walked = in_reach(sweep, inode);
    result->found[result->found_count++] = (struct bw_found){
        inode, parent_directory, keep_name(sweep, entry), entry->name_length, walked};
    if (walked)
        bw_sweep_add_record(sweep, inode, index, position);
    return true;
}

static void found_subvolume(struct bw_sweep *sweep, const struct bw_sweep_record *parent,
                            const struct bw_dir_entry *entry)
{
    struct bw_task_result *result = sweep->result;
    if (!BW_ARRAY_RESERVE(result->subvolumes, result->subvolume_count,
                          result->subvolume_capacity)) {
        bw_sweep_fail(sweep, bw_error_no_memory());
        return;
    }
    result->subvolumes[result->subvolume_count++] =
        (struct bw_found){entry->location.objectid, parent->directory, keep_name(sweep, entry),
                          entry->name_length, false};
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
        const struct bw_found *found = &result->found[at & ~BW_FOUND_LOCAL];
        *--end = '/';
        end -= found->name_length;
        memcpy(end, result->names.data + found->name_offset, found->name_length);
    }
}

void bw_sweep_set_prefix(struct bw_sweep *sweep, uint32_t directory)
{
    const struct bw_task_scope *scope = sweep->scope;
    struct bw_buffer *prefix = &sweep->scratch->prefix, *raw = prefix;
    const bool escape = sweep->way == BW_WRITE_PATHS && scope->writer->options->escape;
    if (escape)
        raw = &sweep->scratch->raw;
    raw->length = prefix->length = 0;
    bw_buffer_append(raw, scope->prefix, scope->prefix_length);
    append_path(sweep, directory, raw);
    if (escape)
        bw_escape_append(prefix, raw->data, raw->length);
    if (raw->failed || prefix->failed)
        bw_sweep_fail(sweep, bw_error_no_memory());
    else if (sweep->way == BW_CHOOSE_FILES)
        sweep->depth = bw_choice_depth(scope->choice, prefix->data, prefix->length);
    sweep->prefix_is_set = true;
    sweep->entered = false;
}

void bw_sweep_collect(struct bw_sweep *sweep, const struct bw_sweep_record *directory,
                      const struct bw_collected *what, const struct bw_dir_entry *entry)
{
    struct bw_collector *collector = sweep->scratch->collector;
    const struct bw_buffer *prefix = &sweep->scratch->prefix;
    if (!sweep->prefix_is_set)
        bw_sweep_set_prefix(sweep, directory->directory);
    if (!sweep->entered)
        bw_sweep_fail(sweep, bw_collector_enter(collector, prefix->data, prefix->length));
    sweep->entered = true;
    bw_sweep_fail(sweep, bw_collector_add(collector, what, entry->name, entry->name_length));
}

/* Writes the last name after the prefix, which keeps its length. */
static bool name_entry(struct bw_sweep *sweep, const struct bw_dir_entry *entry,
                       struct bw_named *named)
{
    struct bw_buffer *path = &sweep->scratch->prefix;
    const size_t length = path->length;
    bw_buffer_append(path, entry->name, entry->name_length);
    bw_buffer_append_byte(path, '\0');
    path->length = length;
    named->path = path->data;
    named->path_length = length + entry->name_length;
    named->name_length = entry->name_length;
    if (path->failed)
        bw_sweep_fail(sweep, bw_error_no_memory());
    return !path->failed;
}

/* Whether a directory has a path that may have others after it. A few thousand directories in each
 * other would make gigabytes of paths. */
static bool has_bounded_path(struct bw_sweep *sweep, const struct bw_sweep_record *parent,
                             const struct bw_dir_entry *entry)
{
    if (!sweep->prefix_is_set)
        bw_sweep_set_prefix(sweep, parent->directory);
    if (sweep->scratch->prefix.length + entry->name_length < BW_LONGEST_PATH)
        return true;
    bw_sweep_complain(sweep, parent->inode,
                      "directories in it are left out: their paths are longer than 64 KiB");
    return false;
}

void bw_sweep_take(struct bw_sweep *sweep, const struct bw_sweep_record *directory,
                   const struct bw_dir_entry *entry)
{
    const struct bw_task_scope *scope = sweep->scope;
    const struct bw_choice *choice = scope->choice;
    const bool subvolume = entry->location.type == BW_ROOT_ITEM;
    /* In a snapshot, the entry of a nested subvolume looks like an empty directory. */
    const bool stale = subvolume && !bw_subvolume_of_entry(&scope->fs->subvolumes, scope->tree->id,
                                                           directory->inode, entry);
    struct bw_named named = {.number = stale ? BW_EMPTY_DIRECTORY : entry->location.objectid,
                             .type = subvolume ? BW_FILE_DIRECTORY : bw_known_type(entry->type)};
    BW_PROBE(scope->fs->graph->probes, dirent, dirent,
             &(struct bw_dirent_event){scope->tree->id, directory->inode, entry});
    if (!sweep->prefix_is_set && sweep->way == BW_CHOOSE_FILES)
        bw_sweep_set_prefix(sweep, directory->directory);
    if (choice->selection &&
        (!name_entry(sweep, entry, &named) || bw_selection_excludes(choice->selection, &named)))
        return;
    bool enters = (named.type == BW_FILE_DIRECTORY && !stale &&
                   (subvolume || bw_choice_enters(choice, sweep->depth + 1)));
    if (enters && !has_bounded_path(sweep, directory, entry))
        return;
    if (subvolume && !stale) {
        found_subvolume(sweep, directory, entry); /* it is listed when it is walked */
        return;
    }
    if (enters && !found_directory(sweep, directory, entry))
        return;
    if (scope->silent || !bw_choice_lists(choice, &named, sweep->depth + 1))
        return;
    const struct bw_collected what = {
        .number = stale ? directory->inode : named.number, .type = named.type, .made_up = stale};
    bw_sweep_collect(sweep, directory, &what, entry);
}
