/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The starts are sorted by the paths that they lead to, so each comes after those that contain it.
 */
#include "export/feed.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"

/* A path that was named. */
struct named {
    size_t number;              /* among all that were */
    struct bw_buffer way;       /* absolute, '/' at both ends; empty: it leads nowhere */
    const struct named *around; /* the nearest that it is below, or the same as; NULL: none */
};

/* What is around something comes before it, and between the two only what is in there, too. */
static int compare(const void *left, const void *right)
{
    const struct named *one = left, *other = right;
    size_t common = one->way.length < other->way.length ? one->way.length : other->way.length;
    int order = common ? memcmp(one->way.data, other->way.data, common) : 0;
    if (!order)
        order = (one->way.length > other->way.length) - (one->way.length < other->way.length);
    return order ? order : (one->number > other->number) - (one->number < other->number);
}

static bool is_below(const struct named *named, const struct named *around)
{
    return around->way.length && around->way.length <= named->way.length &&
           memcmp(named->way.data, around->way.data, around->way.length) == 0;
}

static void find_around(struct named *all, size_t count)
{
    qsort(all, count, sizeof *all, compare);
    for (size_t i = 1; i < count; i++) {
        const struct named *around = &all[i - 1];
        while (around && !is_below(&all[i], around))
            around = around->around;
        all[i].around = around;
    }
}

/* How many names an entry has that no start around this one has; false if it has none of its own.
 */
static bool has_own(const struct named *named, const struct bw_walk_options *options,
                    size_t *least_names)
{
    *least_names = 0;
    if (!named->around)
        return true;
    if (!options->has_maxdepth)
        return false;
    *least_names =
        bw_path_names(named->around->way.data, named->around->way.length) + options->maxdepth + 1;
    return *least_names <= bw_path_names(named->way.data, named->way.length) + options->maxdepth;
}

static void choose(const struct named *all, size_t count, const struct bw_walk_options *options,
                   const char *const *paths, struct bw_starts *starts)
{
    for (size_t i = 0; i < count; i++) {
        size_t number = all[i].number;
        starts->paths[number] =
            has_own(&all[i], options, &starts->least_names[number]) ? paths[number] : NULL;
    }
    for (size_t i = 0; i < count; i++)
        if (starts->paths[i]) {
            starts->least_names[starts->count] = starts->least_names[i];
            starts->paths[starts->count++] = starts->paths[i];
        }
}

/* Where a path leads; nowhere if it cannot be found: the walk reports why. */
static struct bw_error *find_way(struct bw_fs *fs, const struct bw_walk_options *given,
                                 const char *path, struct bw_buffer *way)
{
    struct bw_walk_options options = *given;
    BW_AUTO_FREE char *text = NULL;
    options.struct_size = sizeof options;
    options.start = path;
    struct bw_error *error = bw_walk_start_path(fs, &options, &text, NULL);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (!error)
        bw_buffer_append(way, text, strlen(text));
    if (!error && way->length > 1)
        bw_buffer_append_byte(way, '/');
    bw_error_free(error);
    return way->failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *find_all(struct bw_fs *fs, const struct bw_walk_options *options,
                                 const char *const *paths, size_t count, struct named *all)
{
    for (size_t i = 0; i < count; i++) {
        all[i].number = i;
        if (count > 1)
            BW_TRY(find_way(fs, options, paths[i], &all[i].way));
    }
    find_around(all, count);
    return NULL;
}

struct bw_error *bw_starts_find(struct bw_fs *fs, const struct bw_walk_options *options,
                                const char *const *paths, size_t count, struct bw_starts *starts)
{
    *starts = (struct bw_starts){0};
    if (!count)
        return NULL;
    BW_AUTO_FREE struct named *all = calloc(count, sizeof *all);
    starts->paths = calloc(count, sizeof *starts->paths);
    starts->least_names = calloc(count, sizeof *starts->least_names);
    struct bw_error *error = all && starts->paths && starts->least_names
                                 ? find_all(fs, options, paths, count, all)
                                 : bw_error_no_memory();
    if (!error)
        choose(all, count, options, paths, starts);
    for (size_t i = 0; all && i < count; i++)
        bw_buffer_free(&all[i].way);
    return error;
}

void bw_starts_free(struct bw_starts *starts)
{
    free(starts->paths);
    free(starts->least_names);
    *starts = (struct bw_starts){0};
}
