/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Paths from the bottom up. An inode has references to the directories with its names, and a
 * subvolume to the directory that it is in; each step prepends a name to the path, up to the
 * top-level subvolume. In a damaged file system these chains may form cycles.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "ondisk/checksum.h"
#include "ondisk/items.h"

struct bw_error *bw_inode_step_up(const struct bw_fs *fs, const struct bw_tree *tree,
                                  uint64_t inode, struct bw_parent_step *step)
{
    const struct bw_tree_reader reader = bw_fs_name_reader(fs);
    struct bw_item_range range;
    struct bw_error *error = NULL;
    bool found = false;
    bw_item_range_begin(&range, &reader, tree, (struct bw_key){inode, BW_INODE_REF, 0},
                        (struct bw_key){inode, BW_INODE_EXTREF, UINT64_MAX});
    while (!error && !found && bw_item_range_next(&range)) {
        if (range.error) {
            if (range.lost != BW_LOST_ITEM)
                error = BW_TAKE(range.error);
            continue;
        }
        const struct bw_key *key = &range.item.key;
        struct bw_cursor cursor = bw_cursor_of(&range.item);
        struct bw_inode_ref ref;
        if ((key->type != BW_INODE_REF && key->type != BW_INODE_EXTREF) ||
            !bw_inode_ref_next(&cursor, key, &ref) || !bw_name_is_valid(ref.name, ref.name_length))
            continue;
        step->parent = ref.parent;
        step->index = ref.index;
        step->name_length = ref.name_length;
        memcpy(step->name, ref.name, ref.name_length);
        found = true;
    }
    BW_TRY(bw_item_range_end(&range, error));
    if (found)
        return NULL;
    return bw_error_create(BW_ERROR_NOT_FOUND,
                           "inode %" PRIu64 " of subvolume %" PRIu64 " has no name", inode,
                           tree->id);
}

struct bw_error *bw_directory_entry_type(const struct bw_fs *fs, const struct bw_tree *tree,
                                         uint64_t directory, const void *name, size_t name_length,
                                         uint8_t *type)
{
    const struct bw_key key = {directory, BW_DIR_ITEM, bw_name_hash(name, name_length)};
    struct bw_item_range range;
    struct bw_dir_entry entry;
    *type = BW_FILE_UNKNOWN;
    bw_item_range_begin(&range, &fs->reader, tree, key, key);
    while (bw_item_range_next(&range)) {
        if (range.error)
            continue;
        struct bw_cursor cursor = bw_cursor_of(&range.item);
        while (bw_dir_entry_next(&cursor, &entry))
            if (entry.name_length == name_length && memcmp(entry.name, name, name_length) == 0)
                *type = entry.type;
    }
    return bw_item_range_end(&range, NULL);
}

struct bw_error *bw_path_prepend(struct bw_buffer *path, const char *name, size_t length)
{
    if (!bw_buffer_reserve(path, length + 1))
        return bw_error_no_memory();
    memmove(path->data + length + 1, path->data, path->length);
    memcpy(path->data, name, length);
    path->data[length] = '/';
    path->length += length + 1;
    return NULL;
}

/* Prepends the path of a directory within its subvolume to `path`: "a/b/". */
static struct bw_error *put_inside(const struct bw_fs *fs, const struct bw_tree *tree,
                                   uint64_t inode, struct bw_buffer *path)
{
    BW_SCOPED(bw_key_map) struct bw_key_map passed = {0};
    if (!inode)
        return bw_error_create(BW_ERROR_CORRUPT, "inode 0 is not a directory");
    while (inode != BW_SUBVOLUME_ROOT_INODE) {
        struct bw_parent_step step;
        BW_TRY(bw_inode_step_up(fs, tree, inode, &step));
        if (step.parent == 0 || bw_key_map_has(&passed, inode))
            return bw_error_create(BW_ERROR_CORRUPT,
                                   "subvolume %" PRIu64 ": inode %" PRIu64 " is its own parent",
                                   tree->id, inode);
        BW_TRY(bw_key_map_put(&passed, inode, 1));
        BW_TRY(bw_path_prepend(path, step.name, step.name_length));
        inode = step.parent;
    }
    return NULL;
}

static struct bw_error *no_such_subvolume(uint64_t id)
{
    return bw_error_create(BW_ERROR_NOT_FOUND, "there is no subvolume %" PRIu64, id);
}

/* Prepends the path of a subvolume below subvolume `from`; fails when `path` becomes longer than
 * `limit`. */
static struct bw_error *put_subvolume(const struct bw_fs *fs, uint64_t from, uint64_t id,
                                      size_t limit, struct bw_buffer *path)
{
    const struct bw_subvolume_table *table = &fs->subvolumes;
    for (size_t steps = 0; id != from; steps++) {
        const struct bw_subvolume *subvolume = bw_subvolume_by_id(fs, id);
        if (!subvolume || subvolume->deleted || !subvolume->parent || path->length > limit)
            return no_such_subvolume(id);
        if (steps > table->count)
            return bw_error_create(BW_ERROR_CORRUPT, "subvolume %" PRIu64 " is its own parent", id);
        const struct bw_subvolume *parent = bw_subvolume_by_id(fs, subvolume->parent);
        if (!parent)
            return no_such_subvolume(subvolume->parent);
        BW_TRY(bw_path_prepend(path, bw_subvolume_name(table, subvolume), subvolume->name_length));
        BW_TRY(put_inside(fs, &parent->tree, subvolume->directory, path));
        id = subvolume->parent;
    }
    if (!bw_subvolume_by_id(fs, id))
        return no_such_subvolume(id);
    return bw_path_prepend(path, "", 0);
}

struct bw_error *bw_directory_path(const struct bw_fs *fs, const struct bw_subvolume *from,
                                   const struct bw_subvolume *subvolume, uint64_t inode,
                                   struct bw_buffer *path)
{
    const uint64_t start = from ? from->tree.id : BW_TOP_SUBVOLUME;
    path->length = 0;
    BW_TRY(put_inside(fs, &subvolume->tree, inode, path));
    return put_subvolume(fs, start, subvolume->tree.id, SIZE_MAX, path);
}

struct bw_error *bw_subvolume_path(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                   char **path, size_t *length)
{
    const struct bw_place top = bw_place_top(subvolume);
    return bw_inode_path(fs, &top, path, length);
}

struct bw_error *bw_inode_path(struct bw_fs *fs, const struct bw_place *place, char **path,
                               size_t *length)
{
    struct bw_parent_step step = {.parent = BW_SUBVOLUME_ROOT_INODE};
    struct bw_buffer text = {0};
    struct bw_error *error = NULL;
    if (place->inode != BW_SUBVOLUME_ROOT_INODE)
        error = bw_inode_step_up(fs, &place->subvolume->tree, place->inode, &step);
    if (!error)
        error = bw_directory_path(fs, NULL, place->subvolume, step.parent, &text);
    if (!error)
        bw_buffer_append(&text, step.name, step.name_length);
    /* only a top directory without a name ends with a slash */
    if (text.length > 1 && text.data[text.length - 1] == '/')
        text.length--;
    return bw_give_text(&text, error, path, length);
}

static struct bw_error *find_by_id(const struct bw_fs *fs, uint64_t id,
                                   const struct bw_subvolume **subvolume)
{
    *subvolume = bw_subvolume_by_id(fs, id);
    if (!*subvolume || (*subvolume)->deleted)
        return no_such_subvolume(id);
    return NULL;
}

/* The error for a path that is none of a subvolume, with the paths of some that are. */
static struct bw_error *refuse_path(const struct bw_fs *fs, const char *given)
{
    enum { SHOWN = 5, LONGEST = 4096 };
    const struct bw_subvolume_table *table = &fs->subvolumes;
    BW_AUTO_BUFFER struct bw_buffer list = {0}, path = {0};
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_subvolume *subvolume = &table->items[i];
        if (!subvolume->name_length || subvolume->deleted)
            continue;
        if (count++ >= SHOWN)
            continue;
        path.length = 0;
        BW_AUTO_ERROR struct bw_error *error =
            put_subvolume(fs, BW_TOP_SUBVOLUME, subvolume->tree.id, LONGEST, &path);
        bw_buffer_format(&list, "%s", count > 1 ? ", " : "; there are ");
        if (error || path.length < 2)
            bw_buffer_format(&list, "%" PRIu64, subvolume->tree.id);
        else
            bw_buffer_append(&list, path.data + 1, path.length - 2); /* without its slashes */
    }
    if (count > SHOWN)
        bw_buffer_format(&list, " and %zu more", count - SHOWN);
    return bw_error_create(BW_ERROR_NOT_FOUND, "there is no subvolume %s%.*s", given,
                           (int)list.length, list.length ? list.data : "");
}

struct bw_error *bw_subvolume_by_name(struct bw_fs *fs, const char *given,
                                      const struct bw_subvolume **subvolume)
{
    char *end;
    if (strcmp(given, "default") == 0)
        return find_by_id(fs, fs->subvolumes.default_id, subvolume);
    errno = 0;
    const uint64_t id = strtoull(given, &end, 10);
    const bool is_id = *given >= '0' && *given <= '9' && *end == '\0' && !errno;
    *subvolume = is_id ? bw_subvolume_by_id(fs, id) : NULL;
    if (*subvolume && !(*subvolume)->deleted)
        return NULL;

    /* A path, made like those of put_subvolume(): with one slash at both ends and between names. */
    BW_AUTO_BUFFER struct bw_buffer wanted = {0}, path = {0};
    const struct bw_subvolume_table *table = &fs->subvolumes;
    for (const char *at = given; *(at += strspn(at, "/")); at += strcspn(at, "/"))
        if (strcspn(at, "/") != 1 || *at != '.')
            bw_buffer_format(&wanted, "/%.*s", (int)strcspn(at, "/"), at);
    bw_buffer_append_byte(&wanted, '/');
    BW_TRY(bw_buffer_error(&wanted));
    if (wanted.length == 1)
        return find_by_id(fs, BW_TOP_SUBVOLUME, subvolume);
    *subvolume = NULL;
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_subvolume *candidate = &table->items[i];
        /* the index is valid, because it was counted.
         * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
        const size_t name = candidate->name_length;
        /* paths need lookups, so compare only subvolumes whose own name matches */
        if (!name || name + 2 > wanted.length ||
            memcmp(wanted.data + wanted.length - 1 - name, bw_subvolume_name(table, candidate),
                   name) != 0)
            continue;
        path.length = 0;
        BW_AUTO_ERROR struct bw_error *error =
            put_subvolume(fs, BW_TOP_SUBVOLUME, candidate->tree.id, wanted.length, &path);
        if (error || path.length != wanted.length ||
            memcmp(path.data, wanted.data, wanted.length) != 0)
            continue;
        *subvolume = candidate;
        return NULL;
    }
    return refuse_path(fs, given);
}
