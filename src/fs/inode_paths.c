/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From inodes to their paths. The way up from a directory is looked up once, as long as its
 * subvolume is the present one. Leaves that subvolumes share are found in the node cache.
 */
#include "fs/inode_paths.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/fs.h"
#include "fs/lookup.h"

enum {
    /* Sixteen times what the kernel takes: a crafted directory is above itself. */
    LONGEST_PATH = 64 << 10,
    /* What is kept of the directories of a subvolume, before that begins anew. */
    MOST_TEXT = 32 << 20,
};

void bw_inode_paths_free(struct bw_inode_paths *paths)
{
    bw_subvolume_paths_free(&paths->subvolumes);
    bw_map_free(&paths->known);
    bw_buffer_free(&paths->texts);
    bw_buffer_free(&paths->top);
    bw_buffer_free(&paths->path);
}

static void forget_directories(struct bw_inode_paths *paths)
{
    bw_map_clear(&paths->known);
    paths->texts.length = 0;
}

/* Makes a subvolume the present one. */
static struct bw_error *enter(struct bw_inode_paths *paths, const struct bw_subvolume *subvolume)
{
    if (!paths->loaded)
        BW_TRY(bw_subvolume_paths_load(&paths->subvolumes, paths->fs));
    paths->loaded = true;
    if (paths->texts.length > MOST_TEXT)
        forget_directories(paths);
    if (paths->subvolume == subvolume)
        return NULL;
    forget_directories(paths);
    paths->subvolume = subvolume;
    if (subvolume->deleted && paths->with_deleted) {
        paths->top.length = 0;
        bw_buffer_format(&paths->top, "/#%" PRIu64, subvolume->tree.id);
        return paths->top.failed ? bw_error_no_memory() : NULL;
    }
    return bw_subvolume_paths_get(&paths->subvolumes, paths->fs, subvolume, &paths->top);
}

/* Climbs from a directory to the top; false if the way up is damaged. */
static struct bw_error *climb(struct bw_inode_paths *paths, uint64_t inode, struct bw_buffer *path,
                              bool *arrived)
{
    while (inode != BW_SUBVOLUME_ROOT_INODE && inode && path->length < LONGEST_PATH) {
        struct bw_parent_step step = {0};
        struct bw_error *error = bw_inode_step_up(paths->fs, &paths->subvolume->tree, inode, &step);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        if (error) {
            bw_fs_report(paths->fs, BW_DAMAGE, error);
            return NULL;
        }
        BW_TRY(bw_path_prepend(path, step.name, step.name_length));
        inode = step.parent;
    }
    *arrived = inode == BW_SUBVOLUME_ROOT_INODE;
    return NULL;
}

/* Writes the path of a directory, with a '/' at its end; nothing if it has none. */
static struct bw_error *write_directory(struct bw_inode_paths *paths, uint64_t inode,
                                        struct bw_buffer *path)
{
    BW_AUTO_BUFFER struct bw_buffer inside = {0};
    bool arrived = false;
    if (paths->top.length)
        BW_TRY(climb(paths, inode, &inside, &arrived));
    if (!arrived)
        return NULL;
    bw_buffer_append(path, paths->top.data, paths->top.length);
    if (path->length > 1)
        bw_buffer_append_byte(path, '/');
    bw_buffer_append(path, inside.data, inside.length);
    return path->failed ? bw_error_no_memory() : NULL;
}

/* Puts the path of a directory into paths->path. */
static struct bw_error *find_directory(struct bw_inode_paths *paths, uint64_t inode)
{
    struct bw_buffer *path = &paths->path, *texts = &paths->texts;
    uint32_t length, at = bw_map_get(&paths->known, inode);
    path->length = 0;
    if (at != UINT32_MAX) {
        memcpy(&length, texts->data + at, sizeof length);
        bw_buffer_append(path, texts->data + at + sizeof length, length);
        return path->failed ? bw_error_no_memory() : NULL;
    }
    BW_TRY(write_directory(paths, inode, path));
    at = (uint32_t)texts->length;
    length = (uint32_t)path->length;
    bw_buffer_append(texts, &length, sizeof length);
    bw_buffer_append(texts, path->data, length);
    return texts->failed || !bw_map_put(&paths->known, inode, at) ? bw_error_no_memory() : NULL;
}

struct bw_error *bw_inode_paths_join(struct bw_inode_paths *paths,
                                     const struct bw_subvolume *subvolume, uint64_t directory,
                                     const void *name, size_t length, bw_path_taker *take,
                                     void *context)
{
    struct bw_buffer *path = &paths->path;
    BW_TRY(enter(paths, subvolume));
    BW_TRY(find_directory(paths, directory));
    if (!path->length)
        return NULL;
    if (!length && path->length > 1)
        path->length--;
    bw_buffer_append(path, name, length);
    return path->failed ? bw_error_no_memory() : take(context, path->data, path->length);
}

/* The names of an inode, as they come. */
struct naming {
    struct bw_inode_paths *paths;
    const struct bw_subvolume *subvolume;
    bw_path_taker *take;
    void *context;
};

static struct bw_error *take_name(void *context, const struct bw_inode_name *name)
{
    const struct naming *naming = context;
    return bw_inode_paths_join(naming->paths, naming->subvolume, name->directory, name->name,
                               name->name_length, naming->take, naming->context);
}

struct bw_error *bw_inode_paths_list(struct bw_inode_paths *paths,
                                     const struct bw_subvolume *subvolume, uint64_t inode,
                                     bw_path_taker *take, void *context)
{
    const struct bw_place place = {.subvolume = subvolume, .inode = inode};
    struct naming naming = {paths, subvolume, take, context};
    if (subvolume->deleted && !paths->with_deleted)
        return NULL;
    if (inode == BW_SUBVOLUME_ROOT_INODE)
        return bw_inode_paths_join(paths, subvolume, inode, "", 0, take, context);
    return bw_inode_names(paths->fs, &place, take_name, &naming);
}
