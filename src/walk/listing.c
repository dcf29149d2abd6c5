/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listing entries outside of tasks: their paths, and the collector in which they wait. */
#include "walk/listing.h"

#include "base/cleanup.h"

/* Writes the entries listed outside of tasks; no task may be running. */
struct bw_error *bw_listing_flush(struct bw_subvolume_walk *walk)
{
    struct bw_buffer text = {0};
    if (bw_collector_is_empty(walk->listed))
        return NULL;
    bw_output_restart(&walk->output);
    bw_output_begin(&walk->output, 0, &text);
    struct bw_error *error =
        bw_collector_flush(walk->listed, &walk->scope, 0, &text, &walk->summary->files);
    bw_output_finish(&walk->output, 0, &text);
    return error;
}

/* Files are collected at most until the next wave, so that they are listed in order. */
static struct bw_error *collect_file(struct bw_subvolume_walk *walk, const struct bw_named *named,
                                     const struct bw_collected *what)
{
    const size_t directory_length = named->path_length - named->name_length;
    BW_TRY(bw_collector_enter(walk->listed, named->path, directory_length));
    BW_TRY(
        bw_collector_add(walk->listed, what, named->path + directory_length, named->name_length));
    return bw_collector_is_full(walk->listed) ? bw_listing_flush(walk) : NULL;
}

/* Lists the file with a path, whose end is the name. */
static struct bw_error *list_path(struct bw_subvolume_walk *walk, struct bw_buffer *path,
                                  const struct bw_collected *what, size_t name_length,
                                  bool *included)
{
    bw_buffer_append_byte(path, '\0');
    if (path->failed)
        return bw_error_no_memory();
    const struct bw_named named = {path->data, path->length - 1, name_length,
                                   what->made_up ? BW_EMPTY_DIRECTORY : what->number,
                                   bw_known_type(what->type)};
    *included = !bw_selection_excludes(walk->choice.selection, &named);
    if (!*included || walk->scope.silent ||
        !bw_choice_lists(&walk->choice, walk->scope.tree->id, &named,
                         bw_choice_depth(&walk->choice, named.path, named.path_length)))
        return NULL;
    return collect_file(walk, &named, what);
}

bool bw_subvolume_walk_lists(const struct bw_subvolume_walk *walk, uint8_t type)
{
    return walk->choice.types >> bw_known_type(type) & 1;
}

/* Whether directories in a directory (index in the table) are entered, and not too deep. */
bool bw_listing_enters(const struct bw_subvolume_walk *walk, uint32_t directory)
{
    unsigned depth =
        bw_choice_depth(&walk->choice, walk->scope.prefix, walk->scope.prefix_length) + 1;
    size_t length = walk->scope.prefix_length;
    struct bw_directory at;
    for (; directory; directory = at.parent) {
        at = bw_directories_get(&walk->directories, directory);
        length += at.name_length + 1u;
        depth++;
    }
    return length < BW_LONGEST_PATH && bw_choice_enters(&walk->choice, depth);
}

/* Lists an entry of a directory (index in the table) if it is one of those listed. `*included`:
 * whether it, and what may be below it, is not excluded. */
struct bw_error *bw_listing_add_entry(struct bw_subvolume_walk *walk, uint32_t directory,
                                      const struct bw_collected *what, const void *name,
                                      size_t name_length, bool *included)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    bw_buffer_append(&path, walk->scope.prefix, walk->scope.prefix_length);
    bw_directories_path(&walk->directories, directory, &path);
    bw_buffer_append(&path, name, name_length);
    return list_path(walk, &path, what, name_length, included);
}

/* Lists the directory that the walk of a subvolume begins at, likewise. */
struct bw_error *bw_listing_add_top(struct bw_subvolume_walk *walk, uint64_t inode, bool *included)
{
    const struct bw_collected what = {.number = inode, .type = BW_FILE_DIRECTORY};
    const char *prefix = walk->scope.prefix;
    size_t length = walk->scope.prefix_length, start;
    length -= length > 1; /* the '/' is the name of the top one */
    for (start = length - 1; start && prefix[start - 1] != '/'; start--)
        ;
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    bw_buffer_append(&path, prefix, length);
    return list_path(walk, &path, &what, length - start, included);
}
