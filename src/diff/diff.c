/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bw_diff(): whether two subvolumes have a common origin, and the method that follows from it. */
#include "diff/diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/struct_size.h"

/* Origins. A snapshot records the uuid of its origin. */

struct family {
    struct member {
        uint8_t uuid[BW_UUID_SIZE]; /* the first member, by which they are found */
        uint8_t parent[BW_UUID_SIZE];
    } * members;
    size_t count, capacity;
};

static struct bw_error *add_member(void *context, const struct bw_subvolume_info *info)
{
    struct family *family = context;
    if (!BW_ARRAY_RESERVE(family->members, family->count, family->capacity))
        return bw_error_no_memory();
    struct member *member = &family->members[family->count++];
    memcpy(member->uuid, info->uuid, BW_UUID_SIZE);
    memcpy(member->parent, info->parent_uuid, BW_UUID_SIZE);
    return NULL;
}

static bool is_set(const uint8_t uuid[BW_UUID_SIZE])
{
    static const uint8_t none[BW_UUID_SIZE];
    return memcmp(uuid, none, BW_UUID_SIZE) != 0;
}

static int by_uuid(const void *a, const void *b)
{
    return memcmp(a, b, BW_UUID_SIZE);
}

/* Goes up from a subvolume as far as possible; false if an ancestor no longer exists. */
static bool find_origin(const struct family *family, uint8_t uuid[BW_UUID_SIZE])
{
    for (size_t steps = 0; family->count && is_set(uuid) && steps <= family->count; steps++) {
        const struct member *member =
            bsearch(uuid, family->members, family->count, sizeof *member, by_uuid);
        if (!member)
            return false;
        if (!is_set(member->parent))
            return true;
        memcpy(uuid, member->parent, BW_UUID_SIZE);
    }
    return false;
}

/* The top directory of a snapshot was created at the same nanosecond as that of its origin. */
static struct bw_error *have_same_top(struct bw_diff *diff, bool *same)
{
    struct bw_diff_file tops[2];
    for (unsigned side = 0; side < 2; side++)
        BW_TRY(bw_diff_file_read(&diff->trees[side], BW_SUBVOLUME_ROOT_INODE, &tops[side]));
    const struct timespec *a = &tops[0].inode.otime, *b = &tops[1].inode.otime;
    *same = tops[0].exists && tops[1].exists && a->tv_sec == b->tv_sec &&
            a->tv_nsec == b->tv_nsec && (a->tv_sec || a->tv_nsec) &&
            tops[0].inode.generation == tops[1].inode.generation;
    return NULL;
}

static struct bw_error *have_same_origin(struct bw_diff *diff, struct family *family, bool *same)
{
    uint8_t origins[2][BW_UUID_SIZE];
    bool known[2];
    for (unsigned side = 0; side < 2; side++) {
        struct bw_subvolume_info info;
        struct bw_fs *fs = diff->trees[side].fs;
        struct bw_error *error = bw_subvolume_get(fs, diff->trees[side].subvolume, &info);
        if (error)
            bw_fs_report(fs, BW_DAMAGE, error);
        memcpy(origins[side], info.uuid, BW_UUID_SIZE);
        if (!side || fs != diff->trees[0].fs)
            BW_TRY(bw_fs_subvolumes(fs, false, add_member, family));
    }
    if (family->count)
        qsort(family->members, family->count, sizeof *family->members, by_uuid);
    for (unsigned side = 0; side < 2; side++)
        known[side] = find_origin(family, origins[side]);
    *same = is_set(origins[0]) && memcmp(origins[0], origins[1], BW_UUID_SIZE) == 0;
    return *same || (known[0] && known[1]) ? NULL : have_same_top(diff, same);
}

/* Decides on the way. */
static struct bw_error *choose_method(struct bw_diff *diff)
{
    const struct bw_fs *fs[2] = {diff->trees[0].fs, diff->trees[1].fs};
    struct family family = {.members = NULL};
    bool same = false;
    const struct bw_tree *trees[2] = {&diff->trees[0].subvolume->tree,
                                      &diff->trees[1].subvolume->tree};
    diff->shared = fs[0] == fs[1] || diff->options.states;
    diff->by_path = true;
    if (diff->options.by_path ||
        memcmp(fs[0]->superblock.fsid, fs[1]->superblock.fsid, BW_UUID_SIZE) != 0)
        return NULL;
    if (diff->shared && trees[0]->id == trees[1]->id) {
        diff->by_path = false;
        return NULL;
    }
    struct bw_error *error = have_same_origin(diff, &family, &same);
    diff->by_path = !same;
    free(family.members);
    return error;
}

struct bw_error *bw_diff_set_filter(const char *path, struct bw_buffer *filter)
{
    path = path ? path : "";
    path += strspn(path, "/");
    size_t length = strlen(path);
    while (length && path[length - 1] == '/')
        length--;
    if (!length)
        return NULL;
    bw_buffer_append_byte(filter, '/');
    bw_buffer_append(filter, path, length);
    return filter->failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *compare_trees(struct bw_diff *diff)
{
    BW_TRY(bw_diff_set_filter(diff->options.path, &diff->filter));
    BW_TRY(choose_method(diff));
    diff->summary.by_path = diff->by_path;
    BW_TRY(diff->by_path ? bw_diff_by_path(diff) : bw_diff_by_inode(diff));
    return bw_diff_rows_visit(diff);
}

static void free_all(struct bw_diff *diff)
{
    for (unsigned side = 0; side < 2; side++)
        bw_diff_tree_free(&diff->trees[side]);
    bw_touched_free(&diff->touched);
    bw_diff_content_free(diff->content);
    free(diff->rows.items);
    bw_buffer_free(&diff->rows.texts);
    bw_map_free(&diff->rows.replaced);
    bw_buffer_free(&diff->filter);
}

struct bw_error *bw_diff(const struct bw_diff_side *before, const struct bw_diff_side *after,
                         const struct bw_diff_options *options, struct bw_diff_summary *summary)
{
    struct bw_diff diff = {.options.struct_size = sizeof diff.options};
    BW_TRY(BW_TAKE_OPTIONS(&diff.options, options));
    if (!diff.options.visit)
        return bw_error_create(BW_ERROR_USAGE, "no callback was given");
    bw_diff_tree_init(&diff.trees[0], before);
    bw_diff_tree_init(&diff.trees[1], after);
    struct bw_error *error = compare_trees(&diff);
    free_all(&diff);
    if (summary)
        *summary = diff.summary;
    return error;
}
