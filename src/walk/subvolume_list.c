/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listing outside of tasks: the top directories of subvolumes, a start that is no directory, and
 * what is recovered. */
#include "base/cleanup.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "walk/subvolume_walk.h"

struct bw_error *bw_subvolume_walk_flush(struct bw_subvolume_walk *walk)
{
    struct bw_buffer text = {0};
    bw_output_restart(&walk->output);
    bw_output_begin(&walk->output, 0, &text);
    struct bw_error *error =
        bw_collector_flush(walk->listed, &walk->scope, 0, &text, &walk->summary->files);
    bw_output_finish(&walk->output, 0, &text);
    return error;
}

/* Files are collected at most until the next wave, so that they are listed in order. */
static struct bw_error *collect(struct bw_subvolume_walk *walk, const struct bw_named *named,
                                const struct bw_collected *what)
{
    const size_t directory_length = named->path_length - named->name_length;
    BW_TRY(bw_collector_enter(walk->listed, named->path, directory_length));
    BW_TRY(
        bw_collector_add(walk->listed, what, named->path + directory_length, named->name_length));
    return bw_collector_is_full(walk->listed) ? bw_subvolume_walk_flush(walk) : NULL;
}

/* Lists the file with a path, whose end is the name. */
static struct bw_error *list(struct bw_subvolume_walk *walk, struct bw_buffer *path,
                             const struct bw_collected *what, size_t name_length, bool *taken)
{
    bw_buffer_append_byte(path, '\0');
    if (path->failed)
        return bw_error_no_memory();
    const struct bw_named named = {path->data, path->length - 1, name_length,
                                   what->made_up ? BW_EMPTY_DIRECTORY : what->number,
                                   bw_known_type(what->type)};
    *taken = !bw_selection_excludes(walk->choice.selection, &named);
    if (!*taken || walk->scope.silent ||
        !bw_choice_lists(&walk->choice, &named,
                         bw_choice_depth(&walk->choice, named.path, named.path_length)))
        return NULL;
    return collect(walk, &named, what);
}

bool bw_subvolume_walk_lists(const struct bw_subvolume_walk *walk, uint8_t type)
{
    return walk->choice.types >> bw_known_type(type) & 1;
}

bool bw_subvolume_walk_enters(const struct bw_subvolume_walk *walk, uint32_t directory)
{
    unsigned depth =
        bw_choice_depth(&walk->choice, walk->scope.prefix, walk->scope.prefix_length) + 1;
    size_t length = walk->scope.prefix_length;
    for (; directory; directory = walk->directories.items[directory].parent) {
        length += walk->directories.items[directory].name_length + 1u;
        depth++;
    }
    return length < BW_LONGEST_PATH && bw_choice_enters(&walk->choice, depth);
}

struct bw_error *bw_subvolume_walk_list(struct bw_subvolume_walk *walk, uint32_t directory,
                                        const struct bw_collected *what, const void *name,
                                        size_t name_length, bool *taken)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    bw_buffer_append(&path, walk->scope.prefix, walk->scope.prefix_length);
    bw_directories_path(&walk->directories, directory, &path);
    bw_buffer_append(&path, name, name_length);
    return list(walk, &path, what, name_length, taken);
}

struct bw_error *bw_subvolume_walk_list_top(struct bw_subvolume_walk *walk, uint64_t inode,
                                            bool *taken)
{
    const struct bw_collected what = {.number = inode, .type = BW_FILE_DIRECTORY};
    const char *prefix = walk->scope.prefix;
    size_t length = walk->scope.prefix_length, start;
    length -= length > 1; /* the '/' is the name of the top one */
    for (start = length - 1; start && prefix[start - 1] != '/'; start--)
        ;
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    bw_buffer_append(&path, prefix, length);
    return list(walk, &path, &what, length - start, taken);
}
