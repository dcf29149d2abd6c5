/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bw_diff(): whether two subvolumes have a common origin, and the method that follows from it.
 * Inode numbers mean the same in two generations of one subvolume, and in subvolumes that descend
 * from the same one; all others are compared path by path.
 *
 * With a common origin, nested subvolumes are compared one by one, because one may have been moved.
 * A comparison path by path enters them like directories.
 */
#include "diff/diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/struct_size.h"
#include "diff/entries.h"

/* Origins. A snapshot records the uuid of its origin. */

struct member {
    uint8_t uuid[BW_UUID_SIZE]; /* the first member, by which they are found */
    uint8_t parent[BW_UUID_SIZE];
};

BW_VECTOR(family, struct member);

static bool is_set(const uint8_t uuid[BW_UUID_SIZE])
{
    static const uint8_t none[BW_UUID_SIZE];
    return memcmp(uuid, none, BW_UUID_SIZE) != 0;
}

static int by_uuid(const void *a, const void *b)
{
    return memcmp(a, b, BW_UUID_SIZE);
}

/* Whether two subvolumes descend from the same one, by the uuids of the subvolumes of both file
 * systems. If an ancestor no longer exists, the top directories decide: a snapshot's has the
 * creation time of its origin's, down to the nanosecond. */
static struct bw_error *have_same_origin(struct bw_diff *diff, struct family *family, bool *same)
{
    uint8_t origins[2][BW_UUID_SIZE];
    unsigned known = 0;
    for (unsigned side = 0; side < 2; side++) {
        struct bw_subvolume_info own;
        struct bw_fs *fs = diff->trees[side].fs;
        struct bw_error *error = bw_subvolume_get(fs, diff->trees[side].subvolume, &own);
        BW_TRY(bw_fs_report_damage(fs, error));
        memcpy(origins[side], own.uuid, BW_UUID_SIZE);
        if (side && fs == diff->trees[0].fs)
            continue;
        struct bw_subvolume_infos *infos;
        const struct bw_subvolume_info *info;
        error = bw_subvolume_infos_open(fs, false, &infos);
        while (!error && (info = bw_subvolume_infos_next(infos))) {
            struct member member;
            memcpy(member.uuid, info->uuid, BW_UUID_SIZE);
            memcpy(member.parent, info->parent_uuid, BW_UUID_SIZE);
            error = family_push(family, member);
        }
        BW_TRY(bw_error_first(error, bw_subvolume_infos_close(infos)));
    }
    family_sort(family, by_uuid);

    /* Go up as far as possible. An origin is known if all ancestors still exist. */
    for (unsigned side = 0; side < 2; side++) {
        const struct member *member = NULL;
        for (size_t steps = 0; family->count && is_set(origins[side]) && steps <= family->count;
             steps++) {
            member = bsearch(origins[side], family->items, family->count, sizeof *member, by_uuid);
            if (!member || !is_set(member->parent))
                break;
            memcpy(origins[side], member->parent, BW_UUID_SIZE);
        }
        known += member && !is_set(member->parent);
    }
    *same = is_set(origins[0]) && memcmp(origins[0], origins[1], BW_UUID_SIZE) == 0;
    if (*same || known == 2)
        return NULL;

    struct bw_diff_file tops[2];
    for (unsigned side = 0; side < 2; side++)
        BW_TRY(bw_diff_file_read(&diff->trees[side], BW_SUBVOLUME_ROOT_INODE, &tops[side]));
    const struct timespec *a = &tops[0].inode.otime, *b = &tops[1].inode.otime;
    *same = tops[0].exists && tops[1].exists && bw_same_time(a, b) && (a->tv_sec || a->tv_nsec) &&
            tops[0].inode.generation == tops[1].inode.generation;
    return NULL;
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
    return bw_buffer_error(filter);
}

static void diff_free(struct bw_diff *diff)
{
    for (unsigned side = 0; side < 2; side++) {
        if (diff->exists[side])
            bw_diff_tree_free(&diff->trees[side]);
        bw_buffer_free(&diff->paths[side]);
    }
    bw_touched_free(&diff->touched);
    bw_diff_content_free(diff->content);
    bw_diff_rows_free(&diff->rows);
    bw_buffer_free(&diff->texts);
    bw_key_map_free(&diff->replaced);
    bw_buffer_free(&diff->filter);
}

static void add_summary(struct bw_diff_summary *sum, const struct bw_diff_summary *part)
{
    sum->added += part->added;
    sum->deleted += part->deleted;
    sum->modified += part->modified;
    sum->renamed += part->renamed;
    sum->types += part->types;
    sum->unknown += part->unknown;
    sum->bytes += part->bytes;
    sum->blocks += part->blocks;
    sum->by_path |= part->by_path;
    sum->unchanged += part->unchanged;
    sum->by_generation += part->by_generation;
    sum->not_compared |= part->not_compared;
    sum->subvolumes++;
    for (unsigned side = 0; side < 2; side++)
        sum->entries[side] += part->entries[side];
}

/* Chooses how to compare two sides, and compares them; the subvolume of one of them may be NULL.
 * `prefix` is their path. With options->since, a subvolume without an older one is compared with
 * its state then, which is not available. */
static struct bw_error *compare_sides(const struct bw_diff_side sides[2],
                                      const struct bw_diff_options *options, const char *prefix,
                                      struct bw_diff_summary *summary)
{
    BW_SCOPED(diff) struct bw_diff diff = {.options = *options, .prefix = prefix};
    for (unsigned side = 0; side < 2; side++) {
        diff.exists[side] = sides[side].subvolume;
        if (diff.exists[side])
            bw_diff_tree_init(&diff.trees[side], &sides[side]);
    }
    if (options->since && !diff.exists[0]) {
        bw_diff_tree_init(&diff.trees[0], &sides[1]);
        diff.exists[0] = diff.trees[0].unavailable = diff.trees[0].lost = true;
    }

    bool same = false;
    BW_TRY(bw_diff_set_filter(options->path, &diff.filter));
    if (diff.exists[0] && diff.exists[1] && !sides[0].directory && !sides[1].directory) {
        const struct bw_fs *fs[2] = {diff.trees[0].fs, diff.trees[1].fs};
        BW_SCOPED(family) struct family family = {0};
        diff.shared = fs[0] == fs[1] || options->states;
        if (diff.trees[0].unavailable)
            same = true;
        else if (options->by_path ||
                 memcmp(fs[0]->superblock.fsid, fs[1]->superblock.fsid, BW_UUID_SIZE) != 0)
            same = false;
        else if (diff.shared &&
                 diff.trees[0].subvolume->tree.id == diff.trees[1].subvolume->tree.id)
            same = true;
        else
            BW_TRY(have_same_origin(&diff, &family, &same));
    }
    diff.summary.by_path = diff.by_path = !same;
    struct bw_entries *entries[2] = {NULL, NULL};
    struct bw_error *error = NULL;
    if (same)
        error = bw_diff_by_inode(&diff);
    for (unsigned side = 0; side < 2 && !same && !error; side++)
        if (sides[side].folder)
            error = bw_entries_open_folder(sides[side].folder, sides[!side].fs, &entries[side]);
        else if (sides[side].list)
            error = bw_entries_open_list(sides[side].list, &entries[side]);
        else if (sides[side].subvolume)
            error = bw_entries_open_image(&sides[side], options, &entries[side]);
    if (!error && same)
        error = bw_diff_rows_visit(&diff);
    else if (!error)
        error = bw_diff_merge(&diff, entries);
    for (unsigned side = 0; side < 2; side++)
        if (entries[side])
            entries[side]->class->close(entries[side]);
    add_summary(summary, &diff.summary);
    return error;
}

/* Nested subvolumes. */

/* A subvolume that is nested in a compared one. */
struct nested {
    uint64_t id;
    uint8_t uuid[BW_UUID_SIZE];
    char *path;                /* from the top of the compared subvolume, with a '/' before it */
    uint64_t created, changed; /* by these transactions */
    bool is_snapshot, is_matched;
};

BW_VECTOR(nested_list, struct nested);

/* Lists the subvolumes nested in a side. Those directly in it are only counted without
 * options->nested, and if they are snapshots, with options->no_snapshots. */
static struct bw_error *list_nested(const struct bw_diff_side *side,
                                    const struct bw_diff_options *options, struct nested_list *list,
                                    uint64_t *left_out)
{
    const uint64_t start = bw_subvolume_id(side->subvolume);
    BW_AUTO_FREE char *path = NULL;
    size_t length = 0;
    bool with_paths = options->nested;
    if (with_paths) {
        struct bw_error *error = bw_subvolume_path(side->fs, side->subvolume, &path, &length);
        with_paths = !error; /* if it has no path, neither have they */
        BW_TRY(bw_error_tolerate(error));
        length = length == 1 ? 0 : length;
    }
    struct bw_subvolume_infos *infos;
    struct bw_error *error = bw_subvolume_infos_open(side->fs, with_paths, &infos);
    for (const struct bw_subvolume_info *info; !error && (info = bw_subvolume_infos_next(infos));) {
        if (info->is_deleted || info->id == start || info->id == BW_TOP_SUBVOLUME)
            continue;
        if (!with_paths || !info->path || (options->no_snapshots && info->is_snapshot)) {
            *left_out += info->parent == start;
            continue;
        }
        if (info->path_length <= length || info->path[length] != '/' ||
            (length && memcmp(info->path, path, length) != 0))
            continue;
        struct nested nested = {.id = info->id,
                                .path = strndup(info->path + length, info->path_length - length),
                                .created = info->otransid,
                                .changed = info->generation,
                                .is_snapshot = info->is_snapshot};
        memcpy(nested.uuid, info->uuid, BW_UUID_SIZE);
        error = nested.path ? nested_list_push(list, nested) : bw_error_no_memory();
        if (error)
            free(nested.path);
    }
    return bw_error_first(error, bw_subvolume_infos_close(infos));
}

static int by_nested_path(const void *left, const void *right)
{
    const struct nested *a = left, *b = right;
    return strcmp(a->path, b->path);
}

static struct nested *find_by_uuid(const struct nested_list *list, const uint8_t *uuid)
{
    for (size_t i = 0; i < list->count && is_set(uuid); i++)
        if (!list->items[i].is_matched && memcmp(list->items[i].uuid, uuid, BW_UUID_SIZE) == 0)
            return &list->items[i];
    return NULL;
}

/* Whether a subvolume is to be compared with its state at options->since; sets the transaction from
 * which on its own generations count. The directory that contains it shows that it was created or
 * deleted; a snapshot has the files of another subvolume. */
static bool select_since(const struct nested *before, const struct nested *after,
                         struct bw_diff_options *options, struct bw_diff_summary *summary)
{
    if (!after)
        return !before->is_snapshot;
    const bool is_new = !before && after->created > options->since;
    if (is_new && !after->is_snapshot)
        options->since = 0;
    else if (is_new)
        options->since = after->created;
    if (after->changed <= options->since) {
        summary->unchanged += !is_new;
        return false;
    }
    summary->by_generation += !before && !is_new;
    return true;
}

/* Compares nested subvolumes in the order of their paths. Subvolumes at the same path are compared
 * first; a subvolume of the same UUID at another path was moved. */
static struct bw_error *compare_nested(const struct bw_diff_side tops[2],
                                       const struct bw_diff_options *options, const char *filter,
                                       struct nested_list lists[2], struct bw_diff_summary *summary)
{
    const size_t wanted = strlen(filter);
    for (unsigned side = 0; side < 2; side++)
        nested_list_sort(&lists[side], by_nested_path);
    for (size_t i = 0, j = 0; i < lists[0].count && j < lists[1].count;) {
        const int order = strcmp(lists[0].items[i].path, lists[1].items[j].path);
        if (!order)
            lists[0].items[i].is_matched = lists[1].items[j].is_matched = true;
        i += order <= 0;
        j += order >= 0;
    }
    for (size_t i = 0, j = 0; i < lists[0].count || j < lists[1].count;) {
        struct nested *a = i < lists[0].count ? &lists[0].items[i] : NULL;
        struct nested *b = j < lists[1].count ? &lists[1].items[j] : NULL;
        int order = a ? -1 : 1;
        if (a && b)
            order = strcmp(a->path, b->path);
        i += order <= 0;
        j += order >= 0;
        if (order > 0) {
            a = b->is_matched ? NULL : find_by_uuid(&lists[0], b->uuid);
            if (a)
                a->is_matched = true;
        } else if (order < 0) {
            /* a moved one is compared at its new path */
            b = a->is_matched ? NULL : find_by_uuid(&lists[1], a->uuid);
            if (a->is_matched || b)
                continue;
        }

        /* The path that limits the results in it; none if all of it is below that path. */
        struct bw_diff_options inner = *options;
        const char *prefix = b ? b->path : a->path;
        const size_t length = strlen(prefix);
        const bool is_whole = !wanted || (strncmp(prefix, filter, wanted) == 0 &&
                                          (!prefix[wanted] || prefix[wanted] == '/'));
        if (!is_whole && (strncmp(filter, prefix, length) != 0 || filter[length] != '/'))
            continue;
        inner.path = is_whole ? NULL : filter + length;
        inner.nested = false;
        if (options->since && !select_since(a, b, &inner, summary))
            continue;
        const struct bw_diff_side sides[2] = {
            {.fs = tops[0].fs, .subvolume = a ? bw_subvolume_by_id(tops[0].fs, a->id) : NULL},
            {.fs = tops[1].fs, .subvolume = b ? bw_subvolume_by_id(tops[1].fs, b->id) : NULL}};
        BW_TRY(compare_sides(sides, &inner, prefix, summary));
    }
    return NULL;
}

struct bw_error *bw_diff(const struct bw_diff_side *before, const struct bw_diff_side *after,
                         const struct bw_diff_options *given, struct bw_diff_summary *summary)
{
    struct bw_diff_options options = {.struct_size = sizeof options};
    struct bw_diff_summary ignored = {0}, *sum = summary ? summary : &ignored;
    struct bw_diff_side sides[2] = {*before, *after};
    struct nested_list lists[2] = {{NULL, 0, 0}};
    BW_AUTO_BUFFER struct bw_buffer filter = {0};
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    if (!options.visit)
        return bw_error_create(BW_ERROR_USAGE, "no callback was given");
    if (!before->fs && !after->fs)
        return bw_error_create(BW_ERROR_USAGE, "one side must be a file system");
    BW_TRY(bw_diff_set_filter(options.path, &filter));
    struct bw_error *error = bw_buffer_terminate(&filter);
    if (options.since) {
        options.nested = options.states = true;
        sides[0].subvolume = sides[0].fs ? sides[0].subvolume : NULL;
    }
    const bool was_by_path = sum->by_path;
    sum->by_path = false;
    struct bw_diff_options top = options;
    top.nested &= !options.since; /* nested subvolumes are compared one by one */
    if (options.since && after->subvolume->tree.root.generation <= options.since) {
        sum->unchanged++;
    } else if (!error) {
        sum->by_generation += options.since && !sides[0].fs;
        error = compare_sides(sides, &top, "", sum);
    }
    const bool is_done = sum->by_path && top.nested; /* nested subvolumes were entered */
    sum->by_path |= was_by_path;
    for (unsigned side = 0; side < 2 && !error && !is_done; side++)
        if (sides[side].subvolume)
            error = list_nested(&sides[side], &options, &lists[side], &sum->left_out[side]);
    if (!error && options.nested && !is_done)
        error = compare_nested(sides, &options, filter.data, lists, sum);
    for (unsigned side = 0; side < 2; side++) {
        for (size_t i = 0; i < lists[side].count; i++)
            free(lists[side].items[i].path);
        nested_list_free(&lists[side]);
    }
    return error;
}
