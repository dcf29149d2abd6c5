/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a task does with an entry if not all regular files are listed, or not they alone. */
#include "fs/lookup.h"
#include "fs/fs.h"
#include "walk/sweep.h"

/* The last name, behind the prefix, which is left as it is. */
static struct bw_named name_entry(struct bw_sweep *sweep, const struct bw_dir_entry *entry)
{
    struct bw_buffer *path = &sweep->scratch->prefix;
    const size_t length = path->length;
    bw_buffer_append(path, entry->name, entry->name_length);
    bw_buffer_append_byte(path, '\0');
    path->length = length;
    return (struct bw_named){.path = path->data,
                             .path_length = length + entry->name_length,
                             .name_length = entry->name_length,
                             .number = entry->location.objectid,
                             .type = bw_known_type(entry->type)};
}

/* An entry of a subvolume that a snapshot has taken along looks like a directory. */
static bool is_stale(const struct bw_sweep *sweep, const struct bw_sweep_record *directory,
                     const struct bw_dir_entry *entry)
{
    return !bw_subvolume_of_entry(&sweep->scope->fs->subvolumes, sweep->scope->tree->id,
                                  directory->inode, entry);
}

static void set_prefix(struct bw_sweep *sweep, const struct bw_sweep_record *directory)
{
    bw_sweep_set_prefix(sweep, directory->directory);
    const struct bw_buffer *prefix = &sweep->scratch->prefix;
    sweep->depth = bw_choice_depth(sweep->scope->choice, prefix->data, prefix->length);
}

void bw_sweep_choose(struct bw_sweep *sweep, const struct bw_sweep_record *directory,
                     const struct bw_dir_entry *entry)
{
    const struct bw_choice *choice = sweep->scope->choice;
    const bool subvolume = entry->location.type == BW_ROOT_ITEM;
    const bool stale = subvolume && is_stale(sweep, directory, entry);
    if (!sweep->prefix_is_set)
        set_prefix(sweep, directory);
    struct bw_named named = name_entry(sweep, entry);
    if (sweep->scratch->prefix.failed) {
        bw_output_fail(sweep->scope->output, bw_error_no_memory());
        return;
    }
    if (subvolume)
        named.type = BW_FILE_DIRECTORY;
    if (stale)
        named.number = BW_EMPTY_DIRECTORY;
    if (bw_choice_excludes(choice, &named))
        return;
    if (subvolume && !stale) {
        bw_sweep_found_subvolume(sweep, directory, entry); /* it lists itself when it is walked */
        return;
    }
    if (named.type == BW_FILE_DIRECTORY && !stale && bw_choice_enters(choice, sweep->depth + 1) &&
        !bw_sweep_found_directory(sweep, directory, entry))
        return;
    if (sweep->listing == BW_LIST_NOTHING || !bw_choice_lists(choice, &named))
        return;
    const struct bw_collected what = {
        .number = stale ? directory->inode : named.number, .type = named.type, .made_up = stale};
    bw_sweep_collect(sweep, directory, &what, entry);
}
