/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The versions of a file. It is looked up in one generation after the other, from the present one
 * backwards: by its path, or if that does not exist, by its inode number under any name. As long as
 * the result equals the result in the newer generation, both are one version; where they differ,
 * the newer one is complete and is visited. At most two generations are open at the same time.
 */
#include "btrfs-walk/history.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/struct_size.h"
#include "diff/diff.h"
#include "fs/inode.h"
#include "fs/inode_paths.h"
#include "history/older_generations.h"
#include "history/request_blocks.h"

/* The file in a generation. All zeros: not found. */
struct found {
    struct bw_version version;
    struct bw_buffer path;
};

struct searching {
    struct bw_versions_options options;
    struct bw_fs *present;
    struct bw_older older;
    struct bw_requested_file file; /* its first tree is the subvolume where paths begin */
    struct found newer;            /* the newest generation of the current version */
};

static void drop_found(const struct searching *searching, struct found *found)
{
    if (found->version.fs != searching->present)
        bw_fs_close(found->version.fs);
    bw_buffer_free(&found->path);
    *found = (struct found){0};
}

/* Finding the file. */

struct bw_error *bw_lookup_older(struct bw_fs *older, const struct bw_place *place,
                                 const struct bw_inode *inode, struct bw_place *found,
                                 struct bw_inode *found_inode, char **path)
{
    if (path)
        *path = NULL;
    const struct bw_subvolume *subvolume =
        place->subvolume ? bw_subvolume_by_id(older, place->subvolume->tree.id) : NULL;
    if (!subvolume || subvolume->deleted)
        return bw_error_create(BW_ERROR_NOT_FOUND, "no such subvolume");
    *found = (struct bw_place){.subvolume = subvolume, .inode = place->inode, .type = place->type};
    BW_TRY(bw_inode_get(older, found, found_inode));
    if (found_inode->generation != inode->generation)
        return bw_error_create(BW_ERROR_NOT_FOUND, "another file has its number");
    if (!path)
        return NULL;
    struct bw_buffer first = {0};
    struct bw_inode_paths paths = {.fs = older};
    struct bw_bytes name;
    bw_inode_paths_begin(&paths, subvolume, found->inode);
    const bool has_name = bw_inode_paths_next(&paths, &name);
    if (has_name)
        bw_buffer_append(&first, name.data, name.length);
    struct bw_error *error = bw_inode_paths_error(&paths);
    bw_inode_paths_free(&paths);
    if (!error && !has_name)
        return NULL;
    return bw_give_text(&first, error, path, NULL);
}

/* Finds the file by its path, or else by its inode number, under any name or without one. */
static struct bw_error *find_file(const struct searching *searching, struct found *found)
{
    struct bw_version *version = &found->version;
    const struct bw_version *newer = &searching->newer.version;
    const char *path = searching->options.path;
    BW_AUTO_FREE char *other = NULL;
    const struct bw_subvolume *from = bw_subvolume_by_id(version->fs, searching->file.trees[0]);
    if (!from || from->deleted)
        return bw_error_create(BW_ERROR_NOT_FOUND, "no such subvolume");
    struct bw_error *error = bw_lookup(version->fs, from, path, false, &version->place);
    if (!error)
        error = bw_inode_get(version->fs, &version->place, &version->inode);
    if (!error) {
        bw_buffer_append(&found->path, path, strlen(path));
        error = bw_buffer_error(&found->path);
    } else if (error->code != BW_ERROR_NO_MEMORY && newer->fs) {
        bw_error_free(error);
        error = bw_lookup_older(version->fs, &newer->place, &newer->inode, &version->place,
                                &version->inode, &other);
        /* The path is relative to the subvolume, if it leads through that. */
        BW_AUTO_FREE char *top = NULL;
        size_t length = 0;
        if (!error && other) {
            BW_AUTO_ERROR struct bw_error *no_path =
                bw_subvolume_path(version->fs, from, &top, &length);
            if (no_path && no_path->code == BW_ERROR_NO_MEMORY)
                error = BW_TAKE(no_path);
            const bool leads_through =
                !no_path && length > 1 && strncmp(other, top, length) == 0 && other[length] == '/';
            const char *relative = leads_through ? other + length : other;
            bw_buffer_append(&found->path, relative, strlen(relative));
            if (!error && found->path.failed)
                error = bw_error_no_memory();
        }
    }
    version->path = found->path.data;
    version->path_length = found->path.length;
    version->generation = version->first = version->fs->root_tree.root.generation;
    version->tree_root = bw_fs_root_tree(version->fs)->root.bytenr;
    return error ? error : bw_older_time(version->fs, &version->time);
}

/* Comparing versions. */

static bool is_same_file(const struct bw_version *a, const struct bw_version *b)
{
    return a->place.subvolume->tree.id == b->place.subvolume->tree.id &&
           a->place.inode == b->place.inode && a->inode.generation == b->inode.generation;
}

static bool is_renamed(const struct bw_version *older, const struct bw_version *newer)
{
    return is_same_file(older, newer) &&
           (older->path_length != newer->path_length ||
            (newer->path_length && memcmp(older->path, newer->path, newer->path_length) != 0));
}

/* Compares the file in an older generation with the file in a newer one. */
static struct bw_error *compare_versions(const struct bw_version *older,
                                         const struct bw_version *newer,
                                         struct bw_diff_result *result)
{
    const struct bw_version *versions[2] = {older, newer};
    struct bw_diff diff = {.shared = true};
    struct bw_diff_file files[2];
    struct bw_error *error = NULL;
    for (unsigned side = 0; side < 2; side++) {
        const struct bw_version *version = versions[side];
        const struct bw_diff_side place = {.fs = version->fs,
                                           .subvolume = version->place.subvolume};
        bw_diff_tree_init(&diff.trees[side], &place);
        files[side] = (struct bw_diff_file){.tree = &diff.trees[side],
                                            .number = version->place.inode,
                                            .exists = true,
                                            .inode = version->inode};
    }
    error = bw_diff_compare(&diff, files, NULL, result);
    bw_diff_content_free(diff.content);
    for (unsigned side = 0; side < 2; side++)
        bw_diff_tree_free(&diff.trees[side]);
    return error;
}

/* Passes the current version to the caller. `older`: the previous version, or NULL. */
static struct bw_error *pass_version(struct searching *searching, const struct bw_version *older,
                                     const struct bw_diff_result *result)
{
    struct bw_version *version = &searching->newer.version;
    version->is_oldest = !older;
    version->changes = result->changes;
    version->unknown = result->unknown;
    version->replaced = older && !is_same_file(older, version);
    version->renamed = older && is_renamed(older, version);
    return searching->options.visit(searching->options.context, version);
}

/* Handles a generation that has the file: it belongs to the current version, or ends it. */
static struct bw_error *add_generation(struct searching *searching, struct found *found)
{
    struct bw_version *newer = &searching->newer.version, *older = &found->version;
    struct bw_diff_result result = {0};
    if (newer->fs) {
        const bool same = is_same_file(older, newer);
        const bool untouched = same && older->inode.transid == newer->inode.transid;
        if (!untouched)
            BW_TRY(compare_versions(older, newer, &result));
        if (same && !is_renamed(older, newer) && !result.changes && !result.unknown &&
            !searching->options.all) {
            newer->first = older->generation;
            drop_found(searching, found);
            return NULL;
        }
        BW_TRY(pass_version(searching, older, &result));
    }
    drop_found(searching, &searching->newer);
    searching->newer = *found;
    searching->file.trees[1] = found->version.place.subvolume->tree.id;
    searching->file.inode = found->version.place.inode;
    *found = (struct found){0};
    return NULL;
}

static void searching_free(struct searching *searching)
{
    drop_found(searching, &searching->newer);
    bw_older_end(&searching->older);
}

struct bw_error *bw_versions(struct bw_fs *present, const struct bw_versions_options *options)
{
    BW_SCOPED(searching)
    struct searching searching = {
        .options.struct_size = sizeof searching.options,
        .present = present,
    };
    struct bw_versions_options *ours = &searching.options;
    BW_TRY(BW_TAKE_OPTIONS(ours, options));
    if (!ours->visit || !ours->path)
        return bw_error_create(BW_ERROR_USAGE, "no path or no callback was given");
    const struct bw_subvolume *from = bw_subvolume_by_id(present, BW_TOP_SUBVOLUME);
    if (ours->subvolume)
        BW_TRY(bw_subvolume_by_name(present, ours->subvolume, &from));
    const uint64_t id = from ? from->tree.id : BW_TOP_SUBVOLUME;
    BW_TRY(bw_older_init(&searching.older, present, ours->images, ours->states, ours->state_count));
    searching.older.progress = ours->progress;
    searching.older.context = ours->context;
    searching.file = (struct bw_requested_file){.trees = {id, id}};
    searching.older.file = &searching.file;

    /* Errors in a generation are ignored, as if it did not have the file. */
    for (struct bw_fs *fs = present; fs;) {
        struct found found = {.version.fs = fs};
        struct bw_error *error = find_file(&searching, &found);
        if (!error)
            error = add_generation(&searching, &found);
        else if (error->code != BW_ERROR_NO_MEMORY)
            bw_error_free(BW_TAKE(error));
        drop_found(&searching, &found);
        BW_TRY(error);
        BW_TRY(bw_older_next(&searching.older, &fs));
    }
    const struct bw_diff_result none = {0};
    if (!searching.newer.version.fs)
        return bw_error_in(
            bw_error_create(BW_ERROR_NOT_FOUND, "not found in any recoverable generation"),
            ours->path);
    return pass_version(&searching, NULL, &none);
}
