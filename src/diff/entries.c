/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The common parts of all sides of a comparison: the descent into directories, facts, lists of
 * extended attributes. */
#include "diff/entries.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/compare.h"
#include "base/folder.h"

/* The descent. */

struct bw_error *bw_descent_enter(struct bw_descent *descent, struct bw_level **level)
{
    if (descent->depth == descent->levels.count)
        BW_TRY(bw_levels_push(&descent->levels, (struct bw_level){.next = 0}));
    struct bw_level *entered = &descent->levels.items[descent->depth++];
    entered->names.length = entered->entries.count = entered->next = 0;
    entered->path_length = descent->path.length;
    *level = entered;
    return NULL;
}

struct bw_error *bw_level_add(struct bw_level *level, const char *name, size_t length,
                              const struct bw_place *place)
{
    const struct bw_level_item item = {level->names.length, length, *place};
    BW_TRY(bw_level_items_push(&level->entries, item));
    bw_buffer_append(&level->names, name, length);
    return bw_buffer_error(&level->names);
}

static int by_name(const void *left, const void *right, void *names)
{
    const struct bw_level_item *a = left, *b = right;
    return bw_compare_bytes((const char *)names + a->name, a->length, (const char *)names + b->name,
                            b->length);
}

void bw_level_sort(struct bw_level *level)
{
    const struct bw_level_items *entries = &level->entries;
    if (entries->count)
        qsort_r(entries->items, entries->count, sizeof *entries->items, by_name, level->names.data);
}

const struct bw_level_item *bw_descent_next(struct bw_descent *descent)
{
    struct bw_level *level = NULL;
    for (; descent->depth; descent->depth--) {
        level = &descent->levels.items[descent->depth - 1];
        if (level->next < level->entries.count)
            break;
    }
    if (!descent->depth)
        return NULL;
    const struct bw_level_item *item = &level->entries.items[level->next++];
    descent->path.length = level->path_length;
    bw_buffer_append_byte(&descent->path, '/');
    bw_buffer_append(&descent->path, level->names.data + item->name, item->length);
    return descent->path.failed ? NULL : item;
}

void bw_descent_skip(struct bw_descent *descent)
{
    if (descent->depth &&
        descent->levels.items[descent->depth - 1].path_length == descent->path.length)
        descent->depth--;
}

void bw_descent_free(struct bw_descent *descent)
{
    for (size_t i = 0; i < descent->levels.count; i++) {
        bw_buffer_free(&descent->levels.items[i].names);
        bw_level_items_free(&descent->levels.items[i].entries);
    }
    bw_levels_free(&descent->levels);
    bw_buffer_free(&descent->path);
}

/* Facts. */

void bw_entry_set_facts(struct bw_diff_entry *facts, const struct bw_inode *inode)
{
    facts->known |= BW_KNOWS_TYPE | BW_KNOWS_MODE | BW_KNOWS_UID | BW_KNOWS_GID | BW_KNOWS_TIME |
                    BW_KNOWS_XATTRS;
    facts->type = bw_file_type_of_mode(inode->mode);
    facts->mode = inode->mode & 07777;
    facts->uid = inode->uid;
    facts->gid = inode->gid;
    facts->mtime = inode->mtime;
    if (S_ISDIR(inode->mode))
        return;
    facts->known |= BW_KNOWS_SIZE;
    facts->size = inode->size;
    if (S_ISREG(inode->mode))
        facts->known |= BW_KNOWS_BYTES;
    if (S_ISLNK(inode->mode))
        facts->known |= BW_KNOWS_TARGET;
    if (S_ISCHR(inode->mode) || S_ISBLK(inode->mode)) {
        facts->known |= BW_KNOWS_DEVICE;
        facts->major = bw_inode_major(inode);
        facts->minor = bw_inode_minor(inode);
    }
}

/* Attributes. */

struct bw_error *bw_xattr_list_add(struct bw_xattr_list *list, const void *name, size_t name_length,
                                   const void *value, size_t value_length)
{
    const struct bw_xattr_item item = {list->bytes.length, name_length, value_length};
    BW_TRY(bw_xattr_items_push(&list->xattrs, item));
    bw_buffer_append(&list->bytes, name, name_length);
    bw_buffer_append(&list->bytes, value, value_length);
    return bw_buffer_error(&list->bytes);
}

static int by_attribute(const void *left, const void *right, void *bytes)
{
    const struct bw_xattr_item *a = left, *b = right;
    const char *text = bytes;
    const int order =
        bw_compare_bytes(text + a->name, a->name_length, text + b->name, b->name_length);
    return order ? order
                 : bw_compare_bytes(text + a->name + a->name_length, a->value_length,
                                    text + b->name + b->name_length, b->value_length);
}

/* Sorts the attributes that are compared. */
static void sort_xattrs(struct bw_xattr_list *list, bool ordinary)
{
    struct bw_xattr_items *xattrs = &list->xattrs;
    size_t kept = 0;
    for (size_t i = 0; i < xattrs->count; i++)
        if (!ordinary || bw_folder_compares_xattr(list->bytes.data + xattrs->items[i].name,
                                                  xattrs->items[i].name_length))
            xattrs->items[kept++] = xattrs->items[i];
    xattrs->count = kept;
    if (kept)
        qsort_r(xattrs->items, kept, sizeof *xattrs->items, by_attribute, list->bytes.data);
}

bool bw_xattr_list_equals(struct bw_xattr_list *a, struct bw_xattr_list *b, bool ordinary)
{
    sort_xattrs(a, ordinary);
    sort_xattrs(b, ordinary);
    if (a->xattrs.count != b->xattrs.count)
        return false;
    for (size_t i = 0; i < a->xattrs.count; i++) {
        const struct bw_xattr_item *left = &a->xattrs.items[i], *right = &b->xattrs.items[i];
        if (left->name_length != right->name_length || left->value_length != right->value_length ||
            memcmp(a->bytes.data + left->name, b->bytes.data + right->name,
                   left->name_length + left->value_length) != 0)
            return false;
    }
    return true;
}

void bw_xattr_list_free(struct bw_xattr_list *list)
{
    bw_buffer_free(&list->bytes);
    bw_xattr_items_free(&list->xattrs);
}
