/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From inodes to their paths. Directories of the current subvolume are cached, so their parents are
 * looked up only once. Leaves that subvolumes share are found in the node cache.
 *
 * The path of a directory is found by stepping up to one that is in the cache; then all directories
 * on the way get their paths, which are beginnings of one text. They are added to the cache before
 * their paths are known, so the way up ends if it is a cycle.
 */
#include "fs/inode_paths.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "fs/fs.h"
#include "fs/lookup.h"

enum {
    /* Sixteen times the kernel's limit; needed because crafted directories may form a cycle. */
    LONGEST_PATH = 64 << 10,
    /* Limits of the cache of a subvolume's directories; when exceeded, the cache is emptied. */
    MOST_TEXT = 32 << 20,
    MOST_DIRECTORIES = 1 << 20,
};

void bw_inode_paths_free(struct bw_inode_paths *paths)
{
    bw_subvolume_paths_free(&paths->subvolumes);
    bw_key_map_free(&paths->known);
    bw_known_directories_free(&paths->directories);
    bw_buffer_free(&paths->texts);
    bw_buffer_free(&paths->top);
    bw_buffer_free(&paths->path);
    bw_error_free(bw_inode_paths_error(paths));
}

/* Adds a directory to the cache, without a path until the path is found; so a cycle ends here.
 * `length` is the length of the path below it. */
static bool add_to_cache(struct bw_inode_paths *paths, uint64_t inode, size_t length)
{
    if (bw_known_directories_reserve(&paths->directories, 1) ||
        bw_key_map_put(&paths->known, inode, (uint32_t)paths->directories.count))
        return false;
    paths->directories.items[paths->directories.count++] =
        (struct bw_known_directory){.inode = inode, .text = (uint32_t)length};
    return true;
}

/* Makes a subvolume the current one, and empties the cache if it is another one or full. */
static struct bw_error *enter_subvolume(struct bw_inode_paths *paths,
                                        const struct bw_subvolume *subvolume)
{
    const bool full =
        paths->texts.length > MOST_TEXT || paths->directories.count > MOST_DIRECTORIES;
    if (!paths->loaded)
        BW_TRY(bw_subvolume_paths_load(&paths->subvolumes, paths->fs));
    paths->loaded = true;
    if (paths->subvolume == subvolume && !full)
        return NULL;
    if (paths->subvolume != subvolume && subvolume->deleted && paths->with_deleted) {
        paths->top.length = 0;
        bw_buffer_format(&paths->top, "/#%" PRIu64, subvolume->tree.id);
        BW_TRY(bw_buffer_error(&paths->top));
    } else if (paths->subvolume != subvolume) {
        BW_TRY(bw_subvolume_paths_get(&paths->subvolumes, paths->fs, subvolume, &paths->top));
    }
    paths->subvolume = subvolume;

    /* The cache contains only the top directory, which has a path if the subvolume has one. */
    const size_t length = paths->top.length;
    bw_key_map_clear(&paths->known);
    paths->texts.length = paths->directories.count = 0;
    bw_buffer_append(&paths->texts, paths->top.data, length);
    if (length > 1)
        bw_buffer_append_byte(&paths->texts, '/');
    if (paths->texts.failed || !add_to_cache(paths, BW_SUBVOLUME_ROOT_INODE, 0) ||
        !add_to_cache(paths, 0, 0))
        return bw_error_no_memory();
    paths->directories.items[0].length = (uint32_t)paths->texts.length;
    return NULL;
}

/* Sets the path of all directories that were added since `first`. Without a path, which means that
 * the first one's is too long, removes the others from the cache: theirs may be shorter. */
static bool set_paths_since(struct bw_inode_paths *paths, size_t first,
                            const struct bw_buffer *path)
{
    const uint32_t text = (uint32_t)paths->texts.length;
    for (size_t i = first; i < paths->directories.count; i++) {
        struct bw_known_directory *directory = &paths->directories.items[i];
        if (path)
            directory->length = (uint32_t)path->length - directory->text;
        else if (i > first)
            bw_error_free(bw_key_map_put(&paths->known, directory->inode, UINT32_MAX));
        directory->text = text;
    }
    if (path)
        bw_buffer_append(&paths->texts, path->data, path->length);
    else
        paths->directories.count = first + 1;
    return !paths->texts.failed;
}

/* Finds and caches the path of a directory, with a '/' at its end; or the fact that it has none. */
static struct bw_error *cache_path(struct bw_inode_paths *paths, uint64_t inode)
{
    /* Step up to a directory with a known path. */
    BW_AUTO_BUFFER struct bw_buffer inside = {0};
    const size_t first = paths->directories.count;
    const uint64_t bottom = inode;
    uint32_t known;
    while ((known = bw_key_map_get(&paths->known, inode, UINT32_MAX)) == UINT32_MAX &&
           inside.length < LONGEST_PATH) {
        struct bw_parent_step step = {0};
        if (!add_to_cache(paths, inode, inside.length))
            return bw_error_no_memory();
        struct bw_error *error = bw_inode_step_up(paths->fs, &paths->subvolume->tree, inode, &step);
        if (error) /* this path is damaged */
            return bw_fs_report_damage(paths->fs, error);
        BW_TRY(bw_path_prepend(&inside, step.name, step.name_length));
        inode = step.parent;
    }

    /* Its path, and the paths of the directories below it. */
    const struct bw_known_directory *base = NULL;
    if (known != UINT32_MAX)
        base = &paths->directories.items[known];
    if (inside.length >= LONGEST_PATH || (base && inside.length + base->length > LONGEST_PATH)) {
        bw_fs_report_text(paths->fs, BW_DAMAGE, BW_ERROR_UNSUPPORTED,
                          "subvolume %" PRIu64 ": directory inode %" PRIu64
                          ": its path is longer than %d KiB",
                          paths->subvolume->tree.id, bottom, LONGEST_PATH >> 10);
        return set_paths_since(paths, first, NULL) ? NULL : bw_error_no_memory();
    }
    if (!base || !base->length)
        return NULL;
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    bw_buffer_append(&path, paths->texts.data + base->text, base->length);
    bw_buffer_append(&path, inside.data, inside.length);
    return !path.failed && set_paths_since(paths, first, &path) ? NULL : bw_error_no_memory();
}

struct bw_error *bw_inode_paths_join(struct bw_inode_paths *paths,
                                     const struct bw_subvolume *subvolume, uint64_t directory,
                                     const void *name, size_t length, struct bw_bytes *result)
{
    struct bw_buffer *path = &paths->path;
    *result = (struct bw_bytes){0};
    BW_TRY(enter_subvolume(paths, subvolume));
    if (bw_key_map_get(&paths->known, directory, UINT32_MAX) == UINT32_MAX)
        BW_TRY(cache_path(paths, directory));
    const uint32_t known = bw_key_map_get(&paths->known, directory, UINT32_MAX);
    if (known == UINT32_MAX || !paths->directories.items[known].length)
        return NULL; /* it has no path */
    path->length = 0;
    bw_buffer_append(path, paths->texts.data + paths->directories.items[known].text,
                     paths->directories.items[known].length);
    if (!length && path->length > 1)
        path->length--;
    bw_buffer_append(path, name, length);
    BW_TRY(bw_buffer_terminate(path));
    *result = (struct bw_bytes){path->data, path->length - 1};
    return NULL;
}

void bw_inode_paths_begin(struct bw_inode_paths *paths, const struct bw_subvolume *subvolume,
                          uint64_t inode)
{
    const struct bw_place place = {.subvolume = subvolume, .inode = inode};
    bw_error_free(bw_inode_paths_error(paths)); /* an earlier list may not have come to its end */
    if (subvolume->deleted && !paths->with_deleted)
        return;
    paths->listed = subvolume;
    paths->is_top = inode == BW_SUBVOLUME_ROOT_INODE;
    if (!paths->is_top)
        paths->failure = bw_hard_links_open(paths->fs, &place, &paths->names);
}

bool bw_inode_paths_next(struct bw_inode_paths *paths, struct bw_bytes *path)
{
    const struct bw_inode_name top = {.directory = BW_SUBVOLUME_ROOT_INODE, .name = ""};
    *path = (struct bw_bytes){0};
    while (!path->data && !paths->failure) {
        const struct bw_inode_name *name = paths->is_top ? &top : NULL;
        if (paths->names)
            name = bw_hard_links_next(paths->names);
        if (!name)
            break;
        paths->is_top = false;
        paths->failure = bw_inode_paths_join(paths, paths->listed, name->directory, name->name,
                                             name->name_length, path);
    }
    return path->data;
}

struct bw_error *bw_inode_paths_error(struct bw_inode_paths *paths)
{
    paths->is_top = false;
    return bw_error_first(BW_TAKE(paths->failure), bw_hard_links_close(BW_TAKE(paths->names)));
}
