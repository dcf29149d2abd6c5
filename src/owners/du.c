/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The space of files and directories, batch by batch of the list. The sums of a directory are kept
 * until it ends. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/range_set.h"
#include "base/struct_size.h"
#include "base/vector.h"
#include "btrfs-walk/space.h"
#include "data/sharing.h"
#include "owners/file_list.h"

/* Sums of a file, or of all files in a directory. */
struct sums {
    struct bw_file_space space;
    uint64_t files;
};

BW_VECTOR(sum_stack, struct sums);

struct du {
    const struct bw_du_options *options;
    struct bw_sharing *sharing;
    struct bw_file_list *files;
    struct bw_file_space *space; /* for each file of the batch */
    size_t room;                 /* of `space` */
    struct sum_stack around;     /* of the directories that contain the current file; the start is
                                first */
    struct bw_file_place place;
    struct bw_range_set ranges;
};

/* A file, or a directory with all its files: visits it, and adds its sums to the directory that
 * contains it. `inode`: as in struct bw_du_entry. */
static struct bw_error *finish_file(struct du *du, const struct bw_listed_file *file,
                                    const struct sums *sums, const struct bw_inode *inode)
{
    const struct bw_du_options *options = du->options;
    const bool is_directory = file->kind != BW_LISTED_FILE;
    struct bw_du_entry entry = {
        .path = du->place.path.data,
        .path_length = du->place.path.length,
        .place = {.subvolume = file->subvolume,
                  .inode = file->inode,
                  .type = is_directory ? BW_FILE_DIRECTORY : BW_FILE_REGULAR},
        .depth = du->place.depth,
        .files = sums->files,
        .total = sums->space.total,
        .exclusive = sums->space.exclusive,
        .shared = sums->space.shared,
        .sharing_known = bw_sharing_is_known(du->sharing),
        .shared_id = is_directory ? 0 : sums->space.shared_id,
        .extent_count = sums->space.extent_count,
        .disk = sums->space.disk,
        .inode = inode,
    };
    if (!entry.depth)
        entry.set_shared = is_directory ? bw_range_set_total(&du->ranges) : sums->space.shared;
    const bool is_selected = !options->selection || sums->files || !entry.depth;
    if (is_selected && entry.depth >= options->mindepth &&
        (!options->has_maxdepth || entry.depth <= options->maxdepth))
        BW_TRY(options->visit(options->context, &entry));
    if (!du->around.count)
        return NULL;
    struct sums *above = &du->around.items[du->around.count - 1];
    above->space.total += sums->space.total;
    above->space.exclusive += sums->space.exclusive;
    above->space.shared += sums->space.shared;
    above->files += sums->files;
    above->space.extent_count += sums->space.extent_count;
    above->space.disk += sums->space.disk;
    return NULL;
}

static void du_free(struct du *du)
{
    bw_file_list_close(du->files);
    bw_file_place_free(&du->place);
    bw_sharing_destroy(du->sharing);
    bw_range_set_free(&du->ranges);
    sum_stack_free(&du->around);
    free(du->space);
}

struct bw_error *bw_du(struct bw_fs *fs, const struct bw_du_options *given)
{
    struct bw_du_options options;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    if (!options.visit)
        return bw_error_create(BW_ERROR_USAGE, "no callback was given");
    BW_SCOPED(du) struct du du = {.options = &options};
    const struct bw_file_list_options list = {.subvolume = options.subvolume,
                                              .start = options.start,
                                              .selection = options.selection,
                                              .nested = options.nested,
                                              .no_snapshots = options.no_snapshots,
                                              .once = true,
                                              .inodes = options.inodes};
    BW_TRY(bw_sharing_create(fs, options.sizes_only, &du.ranges, &du.sharing));
    BW_TRY(bw_file_list_open(fs, &list, &du.files));
    const struct bw_file_batch *batch;
    for (;;) {
        BW_TRY(bw_file_list_next(du.files, &batch));
        if (!batch)
            break;

        /* The space of the files of the batch, and then the steps through it. */
        if (batch->count > du.room) {
            free(du.space);
            du.space = malloc(batch->count * sizeof *du.space);
            du.room = du.space ? batch->count : 0;
        }
        if (!du.space)
            return bw_error_no_memory();
        BW_TRY(bw_sharing_compute(du.sharing, batch->wanted, batch->wanted_count, du.space,
                                  batch->count));
        for (size_t i = 0; i < batch->count; i++) {
            const struct bw_listed_file *file = &batch->files[i];
            BW_TRY(bw_file_place_step(&du.place, batch, file));
            if (file->kind == BW_LISTED_ENTER) {
                BW_TRY(sum_stack_push(&du.around, (struct sums){0}));
            } else if (file->kind == BW_LISTED_LEAVE) {
                const struct sums sums = du.around.items[--du.around.count];
                BW_TRY(finish_file(&du, file, &sums, NULL));
            } else if (file->wanted) {
                const struct bw_inode *inode = NULL;
                if (options.inodes && batch->inodes[file->inode_at].found)
                    inode = &batch->inodes[file->inode_at].inode;
                BW_TRY(finish_file(&du, file, &(struct sums){du.space[i], 1}, inode));
            }
        }
    }
    bw_sharing_report(du.sharing);
    return NULL;
}
