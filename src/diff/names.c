/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of inodes, and paths. A path is climbed from directory to directory; each directory is
 * looked up once in a tree, and once in both if they agree on it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "diff/diff.h"
#include "ondisk/checksum.h"

/* Sixteen times what the kernel takes. In a crafted chain of directories, all paths together would
 * otherwise be as long as the square of their number. */
enum { LONGEST_PATH = 64 << 10 };

/* Names that are being read. */
struct naming {
    const struct bw_diff_tree *tree;
    struct bw_diff_names *names;
    bool first_only;
};

static struct bw_error *take_names(void *context, const struct bw_item *item)
{
    const struct naming *naming = context;
    struct bw_diff_names *names = naming->names;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    if (item->key.type != BW_INODE_REF && item->key.type != BW_INODE_EXTREF)
        return NULL;
    while ((!naming->first_only || !names->count) && bw_inode_ref_next(&cursor, &item->key, &ref)) {
        if (!bw_name_is_valid(ref.name, ref.name_length))
            continue;
        if (!BW_ARRAY_RESERVE(names->items, names->count, names->capacity))
            return bw_error_no_memory();
        names->items[names->count++] =
            (struct bw_diff_name){ref.parent, names->bytes.length, ref.name_length};
        bw_buffer_append(&names->bytes, ref.name, ref.name_length);
    }
    if (bw_cursor_bad(&cursor)) {
        names->lost = true;
        bw_fs_report(naming->tree->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "tree %" PRIu64 ": inode %" PRIu64 ": a name is cut off",
                                     naming->tree->subvolume->tree.id, item->key.objectid));
    }
    return names->bytes.failed ? bw_error_no_memory() : NULL;
}

static int by_directory(const void *a, const void *b, void *bytes)
{
    const struct bw_diff_name *left = a, *right = b;
    if (left->parent != right->parent)
        return left->parent < right->parent ? -1 : 1;
    size_t length = left->length < right->length ? left->length : right->length;
    const char *text = bytes;
    int order = memcmp(text + left->bytes, text + right->bytes, length);
    return order ? order : (left->length > right->length) - (left->length < right->length);
}

static struct bw_error *read_names(struct bw_diff_tree *tree, struct bw_leaf_finder *finder,
                                   uint64_t inode, bool first_only, struct bw_diff_names *names)
{
    struct naming naming = {tree, names, first_only};
    names->count = names->bytes.length = 0;
    names->lost = false;
    return bw_diff_items(tree, finder, (struct bw_key){inode, BW_INODE_REF, 0},
                         (struct bw_key){inode, BW_INODE_EXTREF, UINT64_MAX}, take_names, &naming,
                         &names->lost);
}

struct bw_error *bw_diff_names_read(struct bw_diff_tree *tree, uint64_t inode,
                                    struct bw_diff_names *names)
{
    BW_TRY(read_names(tree, &tree->finder, inode, false, names));
    if (names->count)
        qsort_r(names->items, names->count, sizeof *names->items, by_directory, names->bytes.data);
    return NULL;
}

void bw_diff_names_free(struct bw_diff_names *names)
{
    free(names->items);
    bw_buffer_free(&names->bytes);
}

/* Paths. */

/* Adds the part of a directory that was not met before. */
static struct bw_error *add_part(struct bw_diff_tree *tree, uint64_t inode)
{
    struct bw_diff_names found = {0};
    struct bw_diff_part part = {.name = tree->names.length};
    struct bw_error *error = read_names(tree, &tree->climb, inode, true, &found);
    if (!error && found.count) {
        part.parent = found.items[0].parent;
        part.length = found.items[0].length;
        bw_buffer_append(&tree->names, found.bytes.data, part.length);
    } else if (!error && !found.lost) {
        bw_fs_report(tree->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "inode %" PRIu64 " of tree %" PRIu64 " has no name", inode,
                                     tree->subvolume->tree.id));
    }
    bw_diff_names_free(&found);
    if (error)
        return error;
    if (tree->names.failed ||
        !BW_ARRAY_RESERVE(tree->parts, tree->part_count, tree->part_capacity) ||
        !bw_map_put(&tree->part_of, inode, (uint32_t)tree->part_count))
        return bw_error_no_memory();
    tree->parts[tree->part_count++] = part;
    return NULL;
}

/* The part of a directory. What is not touched has the same name in both trees. */
static struct bw_error *get_part(struct bw_diff *diff, unsigned side, uint64_t inode,
                                 const struct bw_diff_tree **in, uint32_t *part)
{
    bool same = !diff->by_path && diff->shared && !bw_touched_get(&diff->touched, inode);
    struct bw_diff_tree *tree = &diff->trees[same ? 1 : side];
    *in = tree;
    *part = bw_map_get(&tree->part_of, inode);
    if (*part != UINT32_MAX)
        return NULL;
    *part = (uint32_t)tree->part_count;
    return add_part(tree, inode);
}

/* Writes a name and a '/' before it in front of `*at`; false if the path gets too long. */
static bool put_in_front(char *path, size_t *at, const void *name, size_t length)
{
    if (*at < length + 1)
        return false;
    *at -= length;
    memcpy(path + *at, name, length);
    path[--*at] = '/';
    return true;
}

struct bw_error *bw_diff_path(struct bw_diff *diff, unsigned side, uint64_t directory,
                              const void *name, size_t length, struct bw_diff_text *path)
{
    char text[LONGEST_PATH];
    size_t at = sizeof text;
    bool fits = put_in_front(text, &at, name, length);
    while (fits && directory != BW_SUBVOLUME_ROOT_INODE && directory) {
        const struct bw_diff_tree *tree;
        uint32_t part;
        BW_TRY(get_part(diff, side, directory, &tree, &part));
        directory = tree->parts[part].parent;
        if (directory)
            fits = put_in_front(text, &at, tree->names.data + tree->parts[part].name,
                                tree->parts[part].length);
    }
    *path = (struct bw_diff_text){.at = diff->rows.texts.length};
    if (!directory)
        return NULL;
    if (!fits) {
        bw_fs_report(diff->trees[side].fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "tree %" PRIu64 ": a path is too long, or a directory is in "
                                     "itself",
                                     diff->trees[side].subvolume->tree.id));
        return NULL;
    }
    path->length = (uint32_t)(sizeof text - at);
    bw_buffer_append(&diff->rows.texts, text + at, path->length);
    return diff->rows.texts.failed ? bw_error_no_memory() : NULL;
}

/* The entry of a directory that a path goes through. */
struct step {
    const char *name;
    size_t length;
    uint64_t inode; /* result: 0: there is no such entry */
};

static struct bw_error *take_step(void *context, const struct bw_item *item)
{
    struct step *step = context;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry))
        if (entry.name_length == step->length && memcmp(entry.name, step->name, step->length) == 0)
            step->inode =
                entry.location.type == BW_ROOT_ITEM ? BW_EMPTY_DIRECTORY : entry.location.objectid;
    return NULL;
}

struct bw_error *bw_diff_may_have(struct bw_diff_tree *tree, const char *path, size_t length,
                                  bool *possible)
{
    uint64_t inode = BW_SUBVOLUME_ROOT_INODE;
    bool lost = false;
    for (size_t at = 1, end; at < length && inode && !lost; at = end + 1) {
        const char *slash = memchr(path + at, '/', length - at);
        end = slash ? (size_t)(slash - path) : length;
        struct step step = {path + at, end - at, 0};
        const struct bw_key key = {inode, BW_DIR_ITEM, bw_name_hash(step.name, step.length)};
        BW_TRY(bw_diff_items(tree, &tree->climb, key, key, take_step, &step, &lost));
        inode = step.inode;
    }
    *possible = inode || lost;
    return NULL;
}
