/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listing outside of tasks: the top directories of subvolumes, a start that is no directory, and
 * what recovery brings back. */
#include "base/escape.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "walk/subvolume_walk.h"

void bw_subvolume_walk_flush(struct bw_subvolume_walk *walk)
{
    struct bw_buffer text = {0};
    if (!walk->listed)
        return;
    bw_output_restart(&walk->output);
    bw_output_begin(&walk->output, 0, &text);
    walk->summary->files += bw_collector_flush(walk->listed, &walk->scope, 0, &text);
    bw_output_finish(&walk->output, 0, &text);
}

/* Writes a path that was listed outside of any task. */
static void write_listed(struct bw_subvolume_walk *walk, const struct bw_buffer *path)
{
    struct bw_buffer text = {0};
    bw_output_restart(&walk->output);
    bw_output_begin(&walk->output, 0, &text);
    if (walk->scope.escape)
        bw_escape_append(&text, path->data, path->length);
    else
        bw_buffer_append(&text, path->data, path->length);
    bw_buffer_append_byte(&text, walk->scope.terminator);
    text.failed |= path->failed;
    bw_output_finish(&walk->output, 0, &text);
}

/* Rows wait for each other, but not longer than to the next wave: the order is that of the paths.
 */
static void collect_listed(struct bw_subvolume_walk *walk, const struct bw_buffer *path,
                           const struct bw_collected *what, size_t name_length)
{
    const size_t directory_length = path->length - name_length;
    if (!walk->listed)
        walk->listed = bw_collector_create(walk->fs, walk->writer, walk->choice.selection);
    if (!walk->listed) {
        walk->memory_short = true;
        return;
    }
    bw_collector_enter(walk->listed, path->data, directory_length);
    bw_collector_add(walk->listed, what, path->data + directory_length, name_length);
    if (bw_collector_is_full(walk->listed))
        bw_subvolume_walk_flush(walk);
}

/* Lists what has this path, to which the name belongs. False if it is left out with all below it.
 */
static bool list(struct bw_subvolume_walk *walk, struct bw_buffer *path,
                 const struct bw_collected *what, size_t name_length)
{
    bw_buffer_append_byte(path, '\0');
    if (path->failed) {
        walk->memory_short = true;
        return false;
    }
    path->length--;
    const struct bw_named named = {path->data, path->length, name_length,
                                   what->made_up ? BW_EMPTY_DIRECTORY : what->number,
                                   bw_known_type(what->type)};
    if (bw_choice_excludes(&walk->choice, &named))
        return false;
    if (walk->scope.silent || !bw_choice_lists(&walk->choice, &named))
        return true;
    if (!walk->scope.choice)
        BW_PROBE(
            bw_graph_probes(walk->fs->graph), path__emit, path,
            &(struct bw_path_event){walk->scope.tree->id, what->number, path->data, path->length});
    if (walk->writer) {
        collect_listed(walk, path, what, name_length);
        return true;
    }
    write_listed(walk, path);
    walk->summary->files++;
    return true;
}

bool bw_subvolume_walk_lists(const struct bw_subvolume_walk *walk, uint8_t type)
{
    return walk->choice.types >> bw_known_type(type) & 1;
}

bool bw_subvolume_walk_enters(const struct bw_subvolume_walk *walk, uint32_t directory)
{
    unsigned depth =
        bw_choice_depth(&walk->choice, walk->scope.prefix, walk->scope.prefix_length) + 1;
    for (; directory; directory = walk->directories.items[directory].parent)
        depth++;
    return bw_choice_enters(&walk->choice, depth);
}

bool bw_subvolume_walk_list(struct bw_subvolume_walk *walk, uint32_t directory,
                            const struct bw_collected *what, const void *name, size_t name_length)
{
    struct bw_buffer path = {0};
    bw_buffer_append(&path, walk->scope.prefix, walk->scope.prefix_length);
    bw_directories_path(&walk->directories, directory, &path);
    bw_buffer_append(&path, name, name_length);
    bool entered = list(walk, &path, what, name_length);
    bw_buffer_free(&path);
    return entered;
}

bool bw_subvolume_walk_list_top(struct bw_subvolume_walk *walk, uint64_t inode)
{
    const struct bw_collected what = {.number = inode, .type = BW_FILE_DIRECTORY};
    const char *prefix = walk->scope.prefix;
    size_t length = walk->scope.prefix_length, start;
    if (walk->is_plain)
        return true;
    length -= length > 1; /* the '/' is the name of the top one */
    for (start = length - 1; start && prefix[start - 1] != '/'; start--)
        ;
    struct bw_buffer path = {0};
    bw_buffer_append(&path, prefix, length);
    bool entered = list(walk, &path, &what, length - start);
    bw_buffer_free(&path);
    return entered;
}

void bw_subvolume_walk_end(struct bw_subvolume_walk *walk)
{
    bw_subvolume_walk_flush(walk);
    bw_collector_report_rest(&walk->scope);
}
