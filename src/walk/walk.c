/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walk of a file system: which subvolumes to walk, in which order, and under which path each
 * hangs. A subvolume is walked when the walk of its parent has found its entry.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/struct_size.h"
#include "btrfs-walk/walk.h"
#include "data/sharing.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "record/rows.h"
#include "walk/small_subvolumes.h"
#include "walk/subvolume_walk.h"

/* All subvolumes of one walk. */
struct visit {
    struct bw_fs *fs;
    const struct bw_walk_options *options;
    struct bw_subvolume_walk walk;
    struct bw_small_subvolumes *small; /* created when the first one is found, like `tops` */
    struct bw_walk_top *tops;          /* of small subvolumes to be walked */
    struct bw_map visited;             /* ids */
    struct bw_map parents; /* ids of subvolumes that others hang in; filled for no_snapshots alone
                            */
};

static struct bw_error *find_parents(struct visit *visit)
{
    const struct bw_subvolume_table *table = &visit->fs->subvolumes;
    for (size_t i = 0; i < table->count; i++)
        if (table->items[i].parent && !bw_map_put(&visit->parents, table->items[i].parent, 1))
            return bw_error_no_memory();
    return NULL;
}

/* Decides whether a subvolume is walked. A snapshot that is not listed may still contain others
 * that are. */
static struct bw_error *choose_subvolume(struct visit *visit, struct bw_walk_top *top, bool *chosen)
{
    const uint64_t id = top->subvolume->tree.id;
    *chosen = bw_map_get(&visit->visited, id) == UINT32_MAX;
    if (!bw_map_put(&visit->visited, id, 1))
        return bw_error_no_memory();
    top->silent = visit->options->no_snapshots && top->subvolume->is_snapshot;
    if (top->silent && bw_map_get(&visit->parents, id) == UINT32_MAX)
        *chosen = false;
    return NULL;
}

static struct bw_error *visit_subvolume(struct visit *visit, const struct bw_walk_top *given)
{
    struct bw_walk_top top = *given;
    bool chosen;
    BW_TRY(choose_subvolume(visit, &top, &chosen));
    return chosen ? bw_subvolume_walk_run(&visit->walk, &top) : NULL;
}

/* The beginning of a subvolume whose entry was found. Its prefix is valid until others are found.
 */
static struct bw_walk_top found_top(const struct visit *visit, size_t number, bool shallow)
{
    const struct bw_subvolume_entries *found = &visit->walk.found;
    const struct bw_subvolume_entry *entry = &found->items[number];
    return (struct bw_walk_top){.subvolume = bw_subvolume_by_id(visit->fs, entry->id),
                                .inode = BW_SUBVOLUME_ROOT_INODE,
                                .prefix = found->paths.data + entry->path_offset,
                                .prefix_length = entry->path_length,
                                .shallow = shallow};
}

static struct bw_error *visit_large(struct visit *visit, const struct bw_walk_top *found)
{
    BW_AUTO_BUFFER struct bw_buffer prefix = {0};
    struct bw_walk_top top = *found;
    bw_buffer_append(&prefix, found->prefix, found->prefix_length);
    top.prefix = prefix.data;
    return prefix.failed ? bw_error_no_memory() : visit_subvolume(visit, &top);
}

static struct bw_error *prepare_small(struct visit *visit)
{
    if (!visit->tops)
        visit->tops = malloc(BW_MOST_SMALL_SUBVOLUMES * sizeof *visit->tops);
    if (!visit->tops)
        return bw_error_no_memory();
    return visit->small ? NULL : bw_small_subvolumes_create(&visit->walk, &visit->small);
}

/* Walks the small subvolumes from `*next` on, together; moves on to the next large one, or to the
 * next of too many. */
static struct bw_error *visit_small(struct visit *visit, size_t *next, bool shallow)
{
    const struct bw_subvolume_walk *walk = &visit->walk;
    size_t count = 0;
    bool chosen;
    BW_TRY(prepare_small(visit));
    for (; *next < walk->found.count && count < BW_MOST_SMALL_SUBVOLUMES; (*next)++) {
        struct bw_walk_top *top = &visit->tops[count];
        *top = found_top(visit, *next, shallow);
        if (!bw_subvolume_is_small(top->subvolume))
            break;
        BW_TRY(choose_subvolume(visit, top, &chosen));
        count += chosen;
    }
    return bw_small_subvolumes_run(visit->small, visit->tops, count);
}

/* Walks the subvolumes whose entries were found, and those that are found in them. `shallow`: only
 * their top directories are listed. */
static struct bw_error *visit_found(struct visit *visit, bool shallow)
{
    struct bw_subvolume_walk *walk = &visit->walk;
    size_t next = 0;
    while (next < walk->found.count && !bw_output_stopped(&walk->output)) {
        const struct bw_walk_top top = found_top(visit, next, shallow);
        if (bw_subvolume_is_small(top.subvolume)) {
            BW_TRY(visit_small(visit, &next, shallow));
        } else {
            BW_TRY(visit_large(visit, &top));
            next++;
        }
    }
    return NULL;
}

/* Where a walk starts. */
struct start {
    struct bw_place place;
    bool single;           /* it is not a directory that has entries */
    uint64_t directory;    /* it, or the one it is in */
    struct bw_buffer path; /* of that directory, '/' at both ends */
    const char *name;      /* of a single entry; a view of the options */
    size_t name_length;
};

static void set_name(struct start *start, const char *path)
{
    /* Only a path leads here. NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
    const char *end = path + strlen(path);
    while (end > path && end[-1] == '/')
        end--;
    const char *slash = memrchr(path, '/', (size_t)(end - path));
    start->name = slash ? slash + 1 : path;
    start->name_length = (size_t)(end - start->name);
}

static void append_component(struct bw_buffer *path, const char *name, size_t length)
{
    if (length == 2 && memcmp(name, "..", 2) == 0) {
        while (path->length > 1 && path->data[--path->length - 1] != '/')
            ;
    } else if (length && !(length == 1 && *name == '.')) {
        bw_buffer_append(path, name, length);
        bw_buffer_append_byte(path, '/');
    }
}

/* The path of the start's directory as the caller has given it. */
static void set_given_path(struct start *start, const char *given)
{
    const char *end = start->single ? start->name : given + strlen(given);
    start->path.length = 0;
    bw_buffer_append_byte(&start->path, '/');
    for (const char *at = given, *next; at < end; at = next + 1) {
        next = memchr(at, '/', (size_t)(end - at));
        next = next ? next : end;
        append_component(&start->path, at, (size_t)(next - at));
    }
}

/* Finds the start. Its subvolume is NULL if it is the top-level one, and that is missing. */
static struct bw_error *find_start(struct bw_fs *fs, const struct bw_walk_options *options,
                                   struct start *start)
{
    const struct bw_subvolume *from = bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME);
    if (options->subvolume)
        BW_TRY(bw_subvolume_by_name(fs, options->subvolume, &from));
    start->place = bw_place_top(from);
    if (options->start)
        BW_TRY(bw_lookup(fs, from, options->start, false, &start->place));
    if (!start->place.subvolume)
        return NULL;
    start->single = start->place.type != BW_FILE_DIRECTORY || bw_place_is_empty(&start->place);
    start->directory = start->single ? start->place.directory : start->place.inode;
    if (start->single)
        set_name(start, options->start);
    struct bw_error *error =
        bw_directory_path(fs, from, start->place.subvolume, start->directory, &start->path);
    if (!error || !options->start || error->code == BW_ERROR_NO_MEMORY)
        return error;
    bw_error_free(error); /* the references of a directory are lost */
    set_given_path(start, options->start);
    return NULL;
}

static struct bw_error *visit_single(struct visit *visit, struct bw_walk_top *top,
                                     const struct start *start)
{
    const bool made_up = bw_place_is_empty(&start->place);
    const struct bw_collected what = {.number = made_up ? start->directory : start->place.inode,
                                      .type = start->place.type,
                                      .made_up = made_up};
    top->silent = visit->options->no_snapshots && top->subvolume->is_snapshot;
    return bw_subvolume_walk_single(&visit->walk, top, &what, start->name, start->name_length);
}

struct bw_error *bw_walk_start_path(struct bw_fs *fs, const struct bw_walk_options *given,
                                    char **path, size_t *length)
{
    struct bw_walk_options options;
    struct start start = {0};
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    struct bw_error *error = find_start(fs, &options, &start);
    bw_buffer_append(&start.path, start.name, start.name_length);
    if (!start.name_length && start.path.length > 1)
        start.path.length--; /* the '/' at its end */
    return bw_give_text(&start.path, error, path, length);
}

/* Walks from the start. For subvolumes that are not entered, only the top directories are listed.
 */
static struct bw_error *visit_start(struct visit *visit, const struct start *start)
{
    const bool stays = !bw_nested_enters(visit->options->nested, visit->options->subvolume);
    struct bw_walk_top top = {.subvolume = start->place.subvolume,
                              .inode = start->directory,
                              .prefix = start->path.data,
                              .prefix_length = start->path.length};
    bw_choice_start(&visit->walk.choice, top.prefix, top.prefix_length, start->single);
    BW_TRY(start->single ? visit_single(visit, &top, start) : visit_subvolume(visit, &top));
    return stays && !bw_subvolume_walk_lists(&visit->walk, BW_FILE_DIRECTORY)
               ? NULL
               : visit_found(visit, stays);
}

/* Subvolumes that contain each other in a circle: no walk reaches them. Follows the parents of each
 * subvolume that was not walked up to one that was walked or already visited. */
static struct bw_error *report_cycles(struct visit *visit)
{
    const struct bw_subvolume_table *table = &visit->fs->subvolumes;
    for (size_t i = 0; i < table->count; i++) {
        const uint32_t climb = (uint32_t)i + 2;
        const struct bw_subvolume *up = &table->items[i];
        uint32_t met = UINT32_MAX;
        while (up && !up->deleted &&
               (met = bw_map_get(&visit->visited, up->tree.id)) == UINT32_MAX) {
            if (!bw_map_put(&visit->visited, up->tree.id, climb))
                return bw_error_no_memory();
            up = bw_subvolume_by_id(visit->fs, up->parent);
        }
        if (up && met == climb)
            bw_fs_report_once(visit->fs,
                              bw_error_create(BW_ERROR_CORRUPT,
                                              "subvolume %" PRIu64
                                              " is inside itself, so no path leads to it",
                                              up->tree.id));
    }
    return NULL;
}

static struct bw_error *visit_what_is_asked(struct visit *visit)
{
    struct start start = {0};
    if (visit->options->no_snapshots)
        BW_TRY(find_parents(visit));
    struct bw_error *error = find_start(visit->fs, visit->options, &start);
    if (!error && start.place.subvolume)
        error = visit_start(visit, &start);
    const bool is_whole = !visit->options->start && !visit->options->subvolume;
    if (!error && start.place.subvolume && is_whole)
        error = report_cycles(visit);
    else if (!error && !start.place.subvolume)
        bw_fs_report_once(
            visit->fs,
            bw_error_create(BW_ERROR_CORRUPT, "root tree: the top-level subvolume is missing"));
    bw_buffer_free(&start.path);
    return error;
}

/* The walk itself, in its own order. */
static struct bw_error *walk_unsorted(struct bw_fs *fs, const struct bw_walk_options *options,
                                      const struct bw_file_writer *given,
                                      struct bw_walk_summary *summary)
{
    struct visit visit = {.fs = fs, .options = options};
    struct bw_file_writer writer = *given;
    if (writer.needs & BW_FILE_NEEDS_SHARED)
        BW_TRY(bw_sharing_create(fs, false, NULL, &writer.sharing));
    struct bw_error *error = bw_subvolume_walk_init(&visit.walk, fs, options, &writer, summary);
    if (!error)
        error = visit_what_is_asked(&visit);
    bw_map_free(&visit.visited);
    bw_map_free(&visit.parents);
    free(visit.tops);
    bw_small_subvolumes_destroy(visit.small);
    error = bw_error_first(bw_subvolume_walk_destroy(&visit.walk), error);
    if (writer.sharing && !error)
        bw_sharing_report(writer.sharing);
    bw_sharing_destroy(writer.sharing);
    return error;
}

/* If an error ends the walk, the entries found before it are still passed on. */
static struct bw_error *walk_sorted(struct bw_fs *fs, const struct bw_walk_options *given,
                                    const struct bw_file_writer *inner,
                                    struct bw_walk_summary *summary)
{
    struct bw_buffer sorted = {0};
    struct bw_walk_options options = *given;
    const struct bw_file_writer writer = bw_sorted_writer(inner, given);
    options.consume = bw_sorted_take;
    options.context = &sorted;
    struct bw_error *error = walk_unsorted(fs, &options, &writer, summary);
    return bw_error_first(error,
                          bw_sorted_end(&sorted, given->reverse, given->consume, given->context));
}

/* Uses `rows`, `consume` and `context` of the options only for the writer. */
static struct bw_error *walk_with(struct bw_fs *fs, const struct bw_walk_options *options,
                                  const struct bw_file_writer *writer,
                                  struct bw_walk_summary *summary)
{
    return options->order ? walk_sorted(fs, options, writer, summary)
                          : walk_unsorted(fs, options, writer, summary);
}

/* The names of the owners in the image, if the writer needs them. */
static struct bw_error *read_people(struct bw_fs *fs, const struct bw_walk_options *options,
                                    const struct bw_file_writer *writer,
                                    struct bw_user_names **user_names)
{
    const struct bw_subvolume *from = NULL;
    if (!(writer->needs & BW_FILE_NEEDS_USER_NAMES))
        return NULL;
    if (options->subvolume)
        BW_TRY(bw_subvolume_by_name(fs, options->subvolume, &from));
    return bw_user_names_open(fs, from, user_names);
}

static struct bw_error *walk_text(struct bw_fs *fs, const struct bw_walk_options *options,
                                  struct bw_walk_summary *summary)
{
    struct bw_user_names *user_names = NULL;
    if (options->rows && bw_rows_record(options->rows) != &bw_fileinfo_record)
        return bw_error_create(BW_ERROR_USAGE, "a walk writes rows of the record %s, not %s",
                               bw_fileinfo_record.name, bw_rows_record(options->rows)->name);
    struct bw_file_writer writer = bw_text_file_writer(options->rows);
    BW_TRY(read_people(fs, options, &writer, &user_names));
    writer.user_names = user_names;
    struct bw_error *error = walk_with(fs, options, &writer, summary);
    bw_user_names_close(user_names);
    return error;
}

/* A visitor, and the subvolume of the last entry: the next entry is usually in the same one. */
struct visitor {
    const struct bw_fs *fs;
    const struct bw_walk_options *options;
    const struct bw_subvolume *subvolume;
};

static struct bw_error *visit_file(struct visitor *visitor, const struct bw_walked_file *file)
{
    if (!visitor->subvolume || bw_subvolume_id(visitor->subvolume) != file->subvolume)
        visitor->subvolume = bw_subvolume_by_id(visitor->fs, file->subvolume);
    const struct bw_entry entry = {
        .path = file->path,
        .path_length = file->path_length,
        .place = {visitor->subvolume, file->number, file->type, 0},
        .inode = file->inode,
    };
    return visitor->options->visit(visitor->options->context, &entry);
}

/* Reads the records that the tasks have written. */
static struct bw_error *visit_records(void *context, const char *bytes, size_t length)
{
    for (const char *end = bytes + length; bytes < end;) {
        struct bw_walked_file file;
        struct bw_inode inode;
        bw_entry_read(&bytes, &file, &inode);
        BW_TRY(visit_file(context, &file));
    }
    return NULL;
}

static struct bw_error *walk_visit(struct bw_fs *fs, const struct bw_walk_options *given,
                                   struct bw_walk_summary *summary)
{
    const struct bw_file_writer writer =
        bw_entry_file_writer(given->visit_inodes ? BW_FILE_NEEDS_INODE : 0);
    struct visitor visitor = {.fs = fs, .options = given};
    struct bw_walk_options options = *given;
    options.consume = visit_records;
    options.context = &visitor;
    return walk_with(fs, &options, &writer, summary);
}

struct bw_error *bw_walk(struct bw_fs *fs, const struct bw_walk_options *given,
                         struct bw_walk_summary *summary)
{
    struct bw_walk_options options;
    struct bw_walk_summary unused;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    if (!options.visit == !options.consume)
        return bw_error_create(BW_ERROR_USAGE, "a walk needs either a consumer or a visitor");
    if (!bw_order_is_known(options.order))
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
    return options.visit ? walk_visit(fs, &options, summary) : walk_text(fs, &options, summary);
}
