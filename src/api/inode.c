/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The public side of inodes: each function finds the tree of a place and asks the folders below. */
#include "btrfs-walk/inode.h"

#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "btree/find_leaf.h"
#include "format/acl.h"
#include "format/items.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "fs/inode.h"
#include "recovery/recovery.h"

struct bw_error *bw_lookup_number(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                  uint64_t number, struct bw_place *place)
{
    struct bw_inode inode;
    BW_TRY(bw_inode_read(fs, &subvolume->tree, number, &inode));
    *place = (struct bw_place){subvolume, number, bw_file_type_of_mode(inode.mode), 0};
    return NULL;
}

struct bw_error *bw_acl_text(const struct bw_xattr *xattr, char **text)
{
    struct bw_buffer buffer = {0};
    bool is_default;
    *text = NULL;
    if (!bw_acl_is_one(xattr, &is_default) ||
        !bw_acl_append_text(xattr->value, xattr->value_length, "", &buffer))
        return NULL;
    return bw_give_text(&buffer, NULL, text, NULL);
}

struct bw_error *bw_inodes_get(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                               struct bw_wanted_inode *wanted, size_t count, bool acls)
{
    return bw_inodes_read(fs, &subvolume->tree, wanted, count, acls);
}

struct bw_error *bw_inode_salvage(struct bw_fs *fs, const struct bw_place *place,
                                  struct bw_inode *inode)
{
    return bw_salvage_inode(fs, &place->subvolume->tree, place->inode, inode);
}

/* An iteration over the names of an inode. */
struct names {
    struct bw_fs *fs;
    bw_inode_name_taker *take;
    void *context;
};

static struct bw_error *take_names(void *context, const struct bw_item *item)
{
    const struct names *names = context;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    if (item->key.type != BW_INODE_REF && item->key.type != BW_INODE_EXTREF)
        return NULL;
    while (bw_inode_ref_next(&cursor, &item->key, &ref))
        BW_TRY(names->take(names->context,
                           &(struct bw_inode_name){ref.parent, ref.index, (const char *)ref.name,
                                                   ref.name_length}));
    if (bw_cursor_bad(&cursor))
        bw_fs_report(names->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT, "inode %llu: a name is cut off",
                                     (unsigned long long)item->key.objectid));
    return NULL;
}

struct bw_error *bw_inode_names(struct bw_fs *fs, const struct bw_place *place,
                                bw_inode_name_taker *take, void *context)
{
    struct names names = {fs, take, context};
    return bw_fs_items(fs, &place->subvolume->tree, (struct bw_key){place->inode, BW_INODE_REF, 0},
                       (struct bw_key){place->inode, BW_INODE_EXTREF, UINT64_MAX}, take_names,
                       &names);
}

/* Appends the path inside the subvolume, without a '/' at either end. */
static struct bw_error *append_path_inside(struct bw_fs *fs, const struct bw_place *place,
                                           struct bw_buffer *path)
{
    struct bw_parent_step step;
    const struct bw_tree *tree = &place->subvolume->tree;
    if (place->inode == BW_SUBVOLUME_ROOT_INODE)
        return NULL;
    BW_TRY(bw_inode_step_up(fs, tree, place->inode, &step));
    struct bw_buffer directory = {0};
    struct bw_error *error = bw_directory_path(fs, tree, step.parent, &directory);
    bw_buffer_append(path, directory.data, directory.length);
    bw_buffer_append(path, step.name, step.name_length);
    bw_buffer_free(&directory);
    return error;
}

struct bw_error *bw_inode_path(struct bw_fs *fs, const struct bw_place *place, char **path,
                               size_t *length)
{
    struct bw_buffer text = {0};
    struct bw_error *error = bw_path_of_subvolume(fs, place->subvolume->tree.id, &text);
    if (!error)
        error = append_path_inside(fs, place, &text);
    if (text.length > 1 && text.data[text.length - 1] == '/')
        text.length--;
    return bw_give_text(&text, error, path, length);
}

struct bw_error *bw_inode_readlink(struct bw_fs *fs, const struct bw_place *place, char **target,
                                   size_t *length)
{
    struct bw_buffer text = {0};
    struct bw_error *error = bw_symlink_read(fs, &place->subvolume->tree, place->inode, &text);
    return bw_give_text(&text, error, target, length);
}

struct bw_error *bw_inode_xattrs(struct bw_fs *fs, const struct bw_place *place,
                                 bw_xattr_taker *take, void *context)
{
    return bw_xattrs_read(fs, &place->subvolume->tree, place->inode, take, context);
}
