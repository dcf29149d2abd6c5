/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One of two subvolumes that are compared: its items, inodes, names and paths. Items that are lost
 * are distinguished from items that are not there.
 *
 * A path is followed from directory to directory upwards. Each directory is looked up once in a
 * tree, and once in both if they agree on it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "diff/diff.h"
#include "ondisk/checksum.h"

void bw_diff_tree_init(struct bw_diff_tree *tree, const struct bw_diff_side *side)
{
    const struct bw_tree_reader reader = bw_fs_name_reader(side->fs);
    *tree = (struct bw_diff_tree){.fs = side->fs, .subvolume = side->subvolume};
    bw_leaf_finder_init(&tree->finder, &reader, &side->subvolume->tree);
    bw_leaf_finder_init(&tree->directories, &reader, &side->subvolume->tree);
}

void bw_diff_tree_set(struct bw_diff_tree *tree, const struct bw_subvolume *subvolume)
{
    tree->subvolume = subvolume;
    bw_leaf_finder_set_tree(&tree->finder, &subvolume->tree);
    bw_leaf_finder_set_tree(&tree->directories, &subvolume->tree);
}

void bw_diff_tree_free(struct bw_diff_tree *tree)
{
    bw_leaf_finder_free(&tree->finder);
    bw_leaf_finder_free(&tree->directories);
    bw_key_map_free(&tree->part_of);
    bw_diff_parts_free(&tree->parts);
    bw_buffer_free(&tree->names);
}

void bw_diff_items_begin(struct bw_diff_items *items, struct bw_diff_tree *tree,
                         struct bw_leaf_finder *finder, struct bw_key first, struct bw_key last)
{
    *items = (struct bw_diff_items){.tree = tree,
                                    .finder = finder,
                                    .first = first,
                                    .last = last,
                                    .next = first,
                                    .ended = tree->unavailable};
}

const struct bw_item *bw_diff_items_next(struct bw_diff_items *items)
{
    const struct bw_key no_limit = BW_KEY_MAX;
    const struct bw_key *first = &items->first, *last = &items->last;
    struct bw_leaf_finder *finder = items->finder;
    const struct bw_node *leaf = &finder->leaf;
    while (!items->ended) {
        /* The next leaf. Items before its first known one may be lost. */
        if (!items->in_leaf) {
            items->error = bw_fs_find_leaf(items->tree->fs, finder, &items->next);
            items->ended = items->error;
            if (items->error)
                break;
            items->lost |= finder->lost || (bw_key_compare(&finder->unknown, &finder->end) < 0 &&
                                            bw_key_compare(&finder->unknown, last) <= 0);
            items->in_leaf = true;
            items->slot = 0;
            if (!finder->lost && finder->ordered)
                items->slot = bw_node_count_until(leaf, first);
            items->slot -= items->slot > 0;
        }

        struct bw_item *item = &items->item;
        while (!finder->lost && items->slot < leaf->item_count) {
            const uint32_t slot = items->slot++;
            const bool inside = bw_leaf_item(leaf, slot, item);
            const bool is_beyond = bw_key_compare(&item->key, last) > 0;
            if (is_beyond && finder->ordered)
                break;
            if (is_beyond || bw_key_compare(&item->key, first) < 0)
                continue;
            if (inside)
                return item;
            items->lost = true;
            bw_fs_report_lost(items->tree->fs, finder->bytenr,
                              bw_error_create(BW_ERROR_CORRUPT,
                                              "tree block %" PRIu64 ": item %" PRIu32
                                              " lies outside its leaf",
                                              finder->bytenr, slot));
        }
        items->in_leaf = false;
        items->next = finder->end;
        items->ended =
            bw_key_compare(&finder->end, last) > 0 || bw_key_compare(&finder->end, &no_limit) == 0;
    }
    return NULL;
}

struct bw_error *bw_diff_items_end(struct bw_diff_items *items, bool *lost)
{
    *lost |= items->lost || items->tree->unavailable;
    items->tree->lost |= items->lost;
    return items->error;
}

struct bw_error *bw_diff_file_read(struct bw_diff_tree *tree, uint64_t number,
                                   struct bw_diff_file *file)
{
    const struct bw_key key = {number, BW_INODE_ITEM, 0};
    struct bw_diff_items items;
    bool lost = false, is_found = false;
    *file = (struct bw_diff_file){.tree = tree, .number = number};
    bw_diff_items_begin(&items, tree, &tree->finder, key, key);
    for (const struct bw_item *item; (item = bw_diff_items_next(&items));) {
        is_found = true;
        if (bw_inode_decode(item, &file->inode)) {
            file->exists = file->inode.link_count || number == BW_SUBVOLUME_ROOT_INODE;
            continue;
        }
        file->lost = true;
        bw_fs_report_text(tree->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                          "subvolume %" PRIu64 ": inode %" PRIu64 " cannot be read",
                          tree->subvolume->tree.id, number);
    }
    BW_TRY(bw_diff_items_end(&items, &lost));
    file->lost |= lost && !is_found;
    return NULL;
}

/* Names of inodes, and paths. */

/* Sixteen times what the kernel takes. In a crafted chain of directories, all paths together would
 * otherwise be as long as the square of their number. */
enum { LONGEST_PATH = 64 << 10 };

static int by_directory(const void *a, const void *b, void *bytes)
{
    const struct bw_diff_name *left = a, *right = b;
    if (left->parent != right->parent)
        return left->parent < right->parent ? -1 : 1;
    const char *text = bytes;
    return bw_compare_bytes(text + left->bytes, left->length, text + right->bytes, right->length);
}

struct bw_error *bw_diff_names_add(struct bw_diff_names *names, uint64_t parent, const void *name,
                                   uint16_t length)
{
    BW_TRY(bw_diff_name_list_push(&names->list,
                                  (struct bw_diff_name){parent, names->bytes.length, length}));
    bw_buffer_append(&names->bytes, name, length);
    return bw_buffer_error(&names->bytes);
}

static struct bw_error *read_names(struct bw_diff_tree *tree, struct bw_leaf_finder *finder,
                                   uint64_t inode, bool first_only, struct bw_diff_names *names)
{
    struct bw_diff_items items;
    struct bw_error *error = NULL;
    names->list.count = names->bytes.length = 0;
    names->lost = false;
    bw_diff_items_begin(&items, tree, finder, (struct bw_key){inode, BW_INODE_REF, 0},
                        (struct bw_key){inode, BW_INODE_EXTREF, UINT64_MAX});
    for (const struct bw_item *item; !error && (item = bw_diff_items_next(&items));) {
        struct bw_cursor cursor = bw_cursor_of(item);
        struct bw_inode_ref ref;
        if (item->key.type != BW_INODE_REF && item->key.type != BW_INODE_EXTREF)
            continue;
        while (!error && (!first_only || !names->list.count) &&
               bw_inode_ref_next(&cursor, &item->key, &ref)) {
            if (!bw_name_is_valid(ref.name, ref.name_length))
                continue;
            error = bw_diff_names_add(names, ref.parent, ref.name, ref.name_length);
        }
        if (bw_cursor_bad(&cursor)) {
            names->lost = true;
            bw_fs_report_text(tree->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                              "subvolume %" PRIu64 ": inode %" PRIu64 ": a name is cut off",
                              tree->subvolume->tree.id, inode);
        }
    }
    return bw_error_first(error, bw_diff_items_end(&items, &names->lost));
}

struct bw_error *bw_diff_names_read(struct bw_diff_tree *tree, uint64_t inode,
                                    struct bw_diff_names *names)
{
    BW_TRY(read_names(tree, &tree->finder, inode, false, names));
    const struct bw_diff_name_list *list = &names->list;
    if (list->count)
        qsort_r(list->items, list->count, sizeof *list->items, by_directory, names->bytes.data);
    return NULL;
}

int bw_diff_names_compare(const struct bw_touched_list *touched, const struct bw_diff_names *before,
                          size_t i, const struct bw_diff_names *after, size_t j)
{
    const struct bw_diff_name *a = &before->list.items[i], *b = &after->list.items[j];
    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    const struct bw_touched *parent = bw_touched_get(touched, a->parent);
    if (parent && parent->flags & BW_TOUCHED_REPLACED)
        return -1;
    return bw_compare_bytes(before->bytes.data + a->bytes, a->length, after->bytes.data + b->bytes,
                            b->length);
}

void bw_diff_names_free(struct bw_diff_names *names)
{
    bw_diff_name_list_free(&names->list);
    bw_buffer_free(&names->bytes);
}

/* Paths. */

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
        /* Its part of the path, which is read once. Untouched inodes have the same name in both
         * trees. */
        const bool same = diff->shared && !bw_touched_get(&diff->touched, directory);
        struct bw_diff_tree *tree = &diff->trees[same ? 1 : side];
        const uint32_t number = bw_key_map_get(&tree->part_of, directory, UINT32_MAX);
        struct bw_diff_part part = {.name = tree->names.length};
        if (number != UINT32_MAX) {
            part = tree->parts.items[number];
        } else {
            BW_SCOPED(bw_diff_names) struct bw_diff_names found = {0};
            BW_TRY(read_names(tree, &tree->directories, directory, true, &found));
            if (found.list.count) {
                part.parent = found.list.items[0].parent;
                part.length = found.list.items[0].length;
                bw_buffer_append(&tree->names, found.bytes.data, part.length);
            } else if (!found.lost) {
                bw_fs_report_text(tree->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                                  "inode %" PRIu64 " of subvolume %" PRIu64 " has no name",
                                  directory, tree->subvolume->tree.id);
            }
            BW_TRY(bw_buffer_error(&tree->names));
            BW_TRY(bw_key_map_put(&tree->part_of, directory, (uint32_t)tree->parts.count));
            BW_TRY(bw_diff_parts_push(&tree->parts, part));
        }
        directory = part.parent;
        if (directory)
            fits = put_in_front(text, &at, tree->names.data + part.name, part.length);
    }
    *path = (struct bw_diff_text){.at = diff->texts.length};
    if (!directory)
        return NULL;
    if (!fits) {
        bw_fs_report_text(diff->trees[side].fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                          "subvolume %" PRIu64 ": a path is too long, or a directory is in itself",
                          diff->trees[side].subvolume->tree.id);
        return NULL;
    }
    path->length = (uint32_t)(sizeof text - at);
    bw_buffer_append(&diff->texts, text + at, path->length);
    return bw_buffer_error(&diff->texts);
}

struct bw_error *bw_diff_may_have(struct bw_diff_tree *tree, const char *path, size_t length,
                                  bool *possible)
{
    uint64_t inode = BW_SUBVOLUME_ROOT_INODE;
    bool lost = false;
    for (size_t at = 1, end; at < length && inode && !lost; at = end + 1) {
        const char *slash = memchr(path + at, '/', length - at);
        end = slash ? (size_t)(slash - path) : length;
        const char *name = path + at;
        const size_t name_length = end - at;
        const struct bw_key key = {inode, BW_DIR_ITEM, bw_name_hash(name, name_length)};
        struct bw_diff_items items;
        bw_diff_items_begin(&items, tree, &tree->directories, key, key);
        inode = 0;
        for (const struct bw_item *item; (item = bw_diff_items_next(&items));) {
            struct bw_cursor cursor = bw_cursor_of(item);
            struct bw_dir_entry entry;
            while (bw_dir_entry_next(&cursor, &entry))
                if (entry.name_length == name_length && memcmp(entry.name, name, name_length) == 0)
                    inode = entry.location.type == BW_ROOT_ITEM ? BW_EMPTY_DIRECTORY
                                                                : entry.location.objectid;
        }
        BW_TRY(bw_diff_items_end(&items, &lost));
    }
    *possible = inode || lost;
    return NULL;
}
