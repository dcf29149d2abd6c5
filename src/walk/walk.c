/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk of a file system: which subvolumes are walked, in which order, and under which path each
 * hangs.
 *
 * A walk starts at a path, at the top of a subvolume, or at the top-level subvolume. Walking one
 * subvolume (waves.c) finds the entries of the subvolumes inside it. They wait in a queue,
 * in the order in which they were found, with the paths that lead to them; the walk takes the next
 * one from there until none is left. Subvolumes whose trees have at most one node are walked
 * together with those like them that follow in the queue (small_subvolumes.c).
 *
 * Each subvolume is walked once, whatever number of entries lead to it. Therefore a walk ends even
 * if hostile subvolumes contain each other; a circle that no path reaches is reported at the end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "base/struct_size.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "walk/walk.h"

/* Where a walk starts. */
struct start {
    struct bw_place place;
    bool single;           /* it is not a directory that has entries */
    uint64_t directory;    /* it, or the one it is in */
    struct bw_buffer path; /* of that directory, '/' at both ends */
    const char *name;      /* of a single entry; a view of the options */
    size_t name_length;
};

/* Appends the directories of a path as the caller has given it, without "." and "..". */
static void append_given_path(struct bw_buffer *path, const char *given, const char *end)
{
    path->length = 0;
    bw_buffer_append_byte(path, '/');
    for (const char *at = given, *next; at < end; at = next + 1) {
        next = memchr(at, '/', (size_t)(end - at));
        if (!next)
            next = end;
        const size_t length = (size_t)(next - at);
        if (length == 2 && memcmp(at, "..", 2) == 0) {
            while (path->length > 1 && path->data[--path->length - 1] != '/')
                ;
        } else if (length && !(length == 1 && *at == '.')) {
            bw_buffer_append(path, at, length);
            bw_buffer_append_byte(path, '/');
        }
    }
}

/* Finds the start. Its subvolume is NULL if it is the top-level one, and that is missing. The
 * caller frees start->path, also after an error. */
static struct bw_error *find_start(struct bw_fs *fs, const struct bw_walk_options *options,
                                   struct start *start)
{
    const struct bw_subvolume *from = bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME);
    const char *given = options->start;
    *start = (struct start){.single = false};
    if (options->subvolume)
        BW_TRY(bw_subvolume_by_name(fs, options->subvolume, &from));
    start->place = bw_place_top(from);
    if (given)
        BW_TRY(bw_lookup(fs, from, given, false, &start->place));
    if (!start->place.subvolume)
        return NULL;

    start->directory = start->place.inode;
    if (given && (start->place.type != BW_FILE_DIRECTORY || bw_place_is_empty(&start->place))) {
        const char *end = given + strlen(given);
        while (end > given && end[-1] == '/')
            end--;
        const char *slash = memrchr(given, '/', (size_t)(end - given));
        start->single = true;
        start->directory = start->place.directory;
        start->name = slash ? slash + 1 : given;
        start->name_length = (size_t)(end - start->name);
    }

    struct bw_error *error =
        bw_directory_path(fs, from, start->place.subvolume, start->directory, &start->path);
    if (!error || !given || error->code == BW_ERROR_NO_MEMORY)
        return error;
    bw_error_free(error); /* the references of a directory are lost */
    append_given_path(&start->path, given, start->single ? start->name : given + strlen(given));
    return NULL;
}

/* The subvolumes of a walk. */
struct visit {
    struct bw_subvolume_walk walk;     /* of one after the other; `walk.found` is the queue */
    struct bw_small_subvolumes *small; /* created when the first one is found */
    struct bw_key_map visited;         /* ids */
    struct bw_key_map parents; /* ids of subvolumes that others hang in; filled for no_snapshots
                                  only */
};

/* Decides whether a subvolume is walked. A snapshot that is not listed may still contain others
 * that are. */
static struct bw_error *choose_subvolume(struct visit *visit, struct bw_walk_top *top, bool *chosen)
{
    const uint64_t id = top->subvolume->tree.id;
    *chosen = !bw_key_map_has(&visit->visited, id);
    BW_TRY(bw_key_map_put(&visit->visited, id, 1));
    top->silent = visit->walk.options->no_snapshots && top->subvolume->is_snapshot;
    if (top->silent && !bw_key_map_has(&visit->parents, id))
        *chosen = false;
    return NULL;
}

/* Walks the subvolumes in the queue, to which each of them may add others. `shallow`: only their
 * top directories are listed. */
static struct bw_error *walk_found(struct visit *visit, bool shallow)
{
    struct bw_subvolume_walk *walk = &visit->walk;
    const struct bw_subvolume_entries *found = &walk->found;
    BW_AUTO_BUFFER struct bw_buffer prefix = {0};
    BW_AUTO_FREE struct bw_walk_top *tops = NULL;
    if (found->list.count)
        tops = malloc(BW_MOST_SMALL_SUBVOLUMES * sizeof *tops);
    if (found->list.count && !tops)
        return bw_error_no_memory();
    for (size_t next = 0; next < found->list.count && !bw_output_stopped(&walk->output);) {
        /* As many small ones as follow each other, or one that is large. */
        size_t count = 0;
        bool is_small = true;
        while (is_small && next < found->list.count && count < BW_MOST_SMALL_SUBVOLUMES) {
            const struct bw_subvolume_entry *entry = &found->list.items[next];
            struct bw_walk_top top = {.subvolume = bw_subvolume_by_id(visit->walk.fs, entry->id),
                                      .inode = BW_SUBVOLUME_ROOT_INODE,
                                      .prefix = found->paths.data + entry->path_offset,
                                      .prefix_length = entry->path_length,
                                      .shallow = shallow};
            bool chosen;
            is_small = bw_subvolume_is_small(top.subvolume);
            if (!is_small && count)
                break;
            BW_TRY(choose_subvolume(visit, &top, &chosen));
            if (chosen)
                tops[count++] = top;
            next++;
        }
        if (!count)
            continue;
        if (bw_subvolume_is_small(tops->subvolume)) {
            if (!visit->small)
                BW_TRY(bw_small_subvolumes_create(walk, &visit->small));
            BW_TRY(bw_small_subvolumes_run(visit->small, tops, count));
            continue;
        }
        /* The queue may move when it grows. */
        BW_TRY(bw_buffer_set(&prefix, tops->prefix, tops->prefix_length));
        tops->prefix = prefix.data;
        BW_TRY(bw_subvolume_walk_run(walk, tops));
    }
    return NULL;
}

/* Subvolumes that contain each other in a circle: no walk reaches them. Follows the parents of each
 * subvolume that was not walked up to one that was walked or already visited. */
static struct bw_error *report_cycles(struct visit *visit)
{
    const struct bw_subvolume_table *table = &visit->walk.fs->subvolumes;
    for (size_t i = 0; i < table->count; i++) {
        const uint32_t climb = (uint32_t)i + 2;
        const struct bw_subvolume *up = &table->items[i];
        uint32_t met = UINT32_MAX;
        while (up && !up->deleted &&
               (met = bw_key_map_get(&visit->visited, up->tree.id, UINT32_MAX)) == UINT32_MAX) {
            BW_TRY(bw_key_map_put(&visit->visited, up->tree.id, climb));
            up = bw_subvolume_by_id(visit->walk.fs, up->parent);
        }
        if (up && met == climb)
            bw_fs_report_once(visit->walk.fs, BW_DAMAGE,
                              bw_error_create(BW_ERROR_CORRUPT,
                                              "subvolume %" PRIu64
                                              " is inside itself, so no path leads to it",
                                              up->tree.id));
    }
    return NULL;
}

/* Walks from the start, then the subvolumes found in it, and so on. */
static struct bw_error *walk_subvolumes(struct visit *visit, const struct start *start)
{
    const struct bw_walk_options *options = visit->walk.options;
    const struct bw_subvolume_table *table = &visit->walk.fs->subvolumes;
    struct bw_subvolume_walk *walk = &visit->walk;
    struct bw_walk_top top = {.subvolume = start->place.subvolume,
                              .inode = start->directory,
                              .prefix = start->path.data,
                              .prefix_length = start->path.length};
    for (size_t i = 0; options->no_snapshots && i < table->count; i++)
        if (table->items[i].parent)
            BW_TRY(bw_key_map_put(&visit->parents, table->items[i].parent, 1));

    bw_choice_start(&walk->choice, top.prefix, top.prefix_length, start->single);
    if (start->single) {
        struct bw_collected what = {.number = start->place.inode, .type = start->place.type};
        if (bw_place_is_empty(&start->place)) {
            what.number = start->directory;
            what.made_up = true;
        }
        top.silent = options->no_snapshots && top.subvolume->is_snapshot;
        BW_TRY(bw_subvolume_walk_single(walk, &top, &what, start->name, start->name_length));
    } else {
        bool chosen;
        BW_TRY(choose_subvolume(visit, &top, &chosen));
        if (chosen)
            BW_TRY(bw_subvolume_walk_run(walk, &top));
    }

    /* Only the top directories of subvolumes that are not entered are listed. */
    const bool enters = bw_nested_enters(options->nested, options->subvolume);
    if (enters || bw_subvolume_walk_lists(walk, BW_FILE_DIRECTORY))
        BW_TRY(walk_found(visit, !enters));
    const bool is_whole = !options->start && !options->subvolume;
    return is_whole ? report_cycles(visit) : NULL;
}

struct bw_error *bw_walk(struct bw_fs *fs, const struct bw_walk_options *given,
                         struct bw_walk_summary *summary)
{
    struct bw_walk_options options;
    struct bw_walk_summary unused;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    if (!options.visit == !options.consume)
        return bw_error_create(BW_ERROR_USAGE, "a walk needs either a consumer or a visitor");
    if (options.order > BW_WALK_BY_INODE)
        return bw_error_create(BW_ERROR_USAGE, "unknown order %u", options.order);
    if (options.nested > BW_NESTED_SKIP)
        return bw_error_create(BW_ERROR_USAGE, "unknown rule for nested subvolumes: %u",
                               options.nested);
    if (options.part > options.parts || !options.part != !options.parts)
        return bw_error_create(BW_ERROR_USAGE, "there is no part %u of %u", options.part,
                               options.parts);
    options.threads = bw_pool_workers(options.threads);
    summary = summary ? summary : &unused;
    *summary = (struct bw_walk_summary){0};

    struct bw_receiver receiver;
    struct visit visit = {.small = NULL};
    struct start start = {.single = false};
    BW_TRY(bw_receiver_open(&receiver, fs, &options));
    struct bw_error *error = bw_subvolume_walk_init(&visit.walk, fs, &options, &receiver, summary);
    if (!error)
        error = find_start(fs, &options, &start);
    if (!error && start.place.subvolume)
        error = walk_subvolumes(&visit, &start);
    else if (!error)
        bw_fs_report_once(
            fs, BW_DAMAGE,
            bw_error_create(BW_ERROR_CORRUPT, "root tree: the top-level subvolume is missing"));

    bw_buffer_free(&start.path);
    bw_key_map_free(&visit.visited);
    bw_key_map_free(&visit.parents);
    bw_small_subvolumes_destroy(visit.small);
    error = bw_error_first(bw_subvolume_walk_destroy(&visit.walk), error);
    return bw_receiver_close(&receiver, error);
}

struct bw_error *bw_walk_start_path(struct bw_fs *fs, const struct bw_walk_options *given,
                                    char **path, size_t *length)
{
    struct bw_walk_options options;
    struct start start;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    struct bw_error *error = find_start(fs, &options, &start);
    bw_buffer_append(&start.path, start.name, start.name_length);
    if (!start.name_length && start.path.length > 1)
        start.path.length--; /* the '/' at its end */
    return bw_give_text(&start.path, error, path, length);
}
