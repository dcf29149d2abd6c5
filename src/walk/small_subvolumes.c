/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walking small subvolumes: the tree of each has at most one node, so its waves have one task, and
 * a pool of workers would idle. Instead, each worker walks whole subvolumes.
 *
 * Consecutive subvolumes form a group, and a group is a task of the outer walk. Its worker reads
 * the roots of all of them with one batch, then walks them one after the other with a walk of its
 * own, which writes into the text of the task. So they are listed in their order, as by separate
 * walks. What the groups have found is merged in the same order when all are done.
 */
#include "walk/walk.h"

#include <stdlib.h>

#include "base/cleanup.h"

/* The walk of a worker. */
struct worker {
    struct bw_subvolume_walk walk;
    uint8_t *roots; /* blocks of a batch */
};

/* Consecutive subvolumes, and their results. */
struct group {
    size_t first, count;
    struct bw_subvolume_entries found;
    struct bw_walk_summary summary;
};

struct bw_small_subvolumes {
    struct bw_subvolume_walk *walk;
    struct worker **workers;  /* each is created when it is first needed */
    struct bw_walk_top *tops; /* of the run */
    struct bw_range ranges[BW_MOST_SMALL_SUBVOLUMES];
    struct group groups[BW_MOST_SMALL_SUBVOLUMES];
    size_t group_count;
};

struct bw_error *bw_small_subvolumes_create(struct bw_subvolume_walk *walk,
                                            struct bw_small_subvolumes **result)
{
    struct bw_small_subvolumes *small = *result = calloc(1, sizeof *small);
    if (small) {
        small->walk = walk;
        small->workers = calloc(walk->threads, sizeof *small->workers);
    }
    return small && small->workers ? NULL : bw_error_no_memory();
}

static void destroy_worker(struct worker *worker)
{
    if (!worker)
        return;
    bw_error_free(bw_subvolume_walk_destroy(&worker->walk));
    free(worker->roots);
    free(worker);
}

void bw_small_subvolumes_destroy(struct bw_small_subvolumes *small)
{
    if (!small)
        return;
    for (unsigned i = 0; small->workers && i < small->walk->threads; i++)
        destroy_worker(small->workers[i]);
    free(small->workers);
    free(small);
}

static struct bw_error *get_worker(struct bw_small_subvolumes *small, unsigned number,
                                   struct worker **worker)
{
    const struct bw_tree_reader *reader = &small->walk->fs->reader;
    *worker = small->workers[number];
    if (*worker)
        return NULL;
    *worker = calloc(1, sizeof **worker);
    if (!*worker)
        return bw_error_no_memory();
    (*worker)->roots = bw_block_buffer(reader, bw_block_batch(reader) + 1); /* BW_COPY_SLACK */
    struct bw_error *error = bw_subvolume_walk_init_inner(&(*worker)->walk, small->walk, number);
    if (!error && !(*worker)->roots)
        error = bw_error_no_memory();
    if (error)
        destroy_worker(*worker);
    else
        small->workers[number] = *worker;
    return error;
}

/* Reads the roots that are leaves. The walk of a subvolume requests an unreadable root again, and
 * handles the error. */
static void read_roots(const struct worker *worker, struct bw_walk_top *tops, size_t count)
{
    const struct bw_tree_reader *reader = &worker->walk.fs->reader;
    struct bw_block_pointer pointers[BW_BATCH];
    struct bw_request requests[BW_BATCH];
    struct bw_walk_top *owners[BW_BATCH];
    size_t roots = 0;
    for (size_t i = 0; i < count; i++) {
        if (tops[i].subvolume->tree.root.level || tops[i].shallow)
            continue;
        pointers[roots] = bw_tree_root_pointer(&tops[i].subvolume->tree, false);
        requests[roots] =
            bw_block_request(reader, &pointers[roots], worker->roots + roots * reader->nodesize);
        owners[roots++] = &tops[i];
    }
    if (roots)
        bw_blocks_read(reader, requests, roots);
    for (size_t i = 0; i < roots; i++) {
        if (!requests[i].error)
            owners[i]->root_leaf = requests[i].buffer;
        bw_error_free(requests[i].error);
    }
}

/* Walks a group as a task of the outer walk. */
static void run_group(void *context, unsigned number, size_t task)
{
    struct bw_small_subvolumes *small = context;
    struct group *group = &small->groups[task];
    struct bw_walk_top *tops = small->tops + group->first;
    struct bw_ordered_output none = {0}, *output = &none;
    struct worker *worker;
    struct bw_error *error = get_worker(small, number, &worker);
    if (!error)
        output = &worker->walk.output;
    bw_output_enter(output, &small->walk->output, task);
    if (!error) {
        struct bw_subvolume_walk *walk = &worker->walk;
        walk->summary = &group->summary;
        read_roots(worker, tops, group->count);
        for (size_t i = 0; i < group->count && !error && !bw_output_stopped(output); i++)
            error = bw_subvolume_walk_run(walk, &tops[i]);
        group->found = walk->found;
        walk->found = (struct bw_subvolume_entries){0};
    }
    if (error)
        bw_output_fail(output, error);
    bw_output_leave(output);
}

struct bw_error *bw_small_subvolumes_run(struct bw_small_subvolumes *small,
                                         struct bw_walk_top *tops, size_t count)
{
    enum { GROUPS_A_WORKER = 4 };
    struct bw_subvolume_walk *walk = small->walk;
    struct bw_walk_summary *summary = walk->summary;
    const struct bw_tree_reader *reader = &walk->fs->reader;
    struct bw_error *error = NULL;
    size_t roots = 0;
    small->tops = tops;

    /* Small groups, so that all workers have some, and none that continues after a subvolume with
     * many leaves. */
    const size_t share = count / GROUPS_A_WORKER / walk->threads;
    const unsigned batch = bw_block_batch(reader);
    size_t most = share < batch ? share : batch;
    if (most < 1)
        most = 1;
    small->group_count = 0;
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && end - first < most; end++)
            if (tops[end - 1].subvolume->tree.root.level)
                break;
        small->groups[small->group_count++] = (struct group){.first = first, .count = end - first};
    }

    /* Workers read the roots of their groups; the devices hear of all of them now. */
    for (size_t i = 0; i < count; i++)
        if (!tops[i].shallow)
            small->ranges[roots++] =
                (struct bw_range){tops[i].subvolume->tree.root.bytenr, reader->nodesize};
    if (roots > 1)
        bw_blocks_advise(reader, small->ranges, roots);
    bw_output_restart(&walk->output);
    bw_pool_run(walk->pool, small->group_count, run_group, small);

    /* The results and counts of the groups, in their order. */
    for (size_t i = 0; i < small->group_count; i++) {
        struct group *group = &small->groups[i];
        const struct bw_subvolume_entries *found = &group->found;
        if (!error) {
            summary->files += group->summary.files;
            summary->directories += group->summary.directories;
            summary->subvolumes += group->summary.subvolumes;
            summary->lost_blocks += group->summary.lost_blocks;
        }
        for (size_t k = 0; k < found->list.count && !error; k++) {
            const struct bw_subvolume_entry *entry = &found->list.items[k];
            const size_t offset = walk->found.paths.length;
            bw_buffer_append(&walk->found.paths, found->paths.data + entry->path_offset,
                             entry->path_length);
            error = bw_subvolume_entries_add(&walk->found, entry->id, offset);
        }
        bw_subvolume_entries_free(&group->found);
    }
    return error;
}
