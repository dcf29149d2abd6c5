/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens a file system: the one place that composes the reader of fs/ with the parts that extend it.
 * rescue/ replaces superblocks, devices, the chunk tree and the root tree that are lost; history/
 * finds committed generations; recovery/ replaces lost blocks; replay/ applies the log.
 * If the images are send streams, stream/ makes a file system of them. If the image is a file of
 * another file system, data/ reads it.
 *
 * The order of attempts for the chunk tree and the root tree of the present generation: the root in
 * the superblock; a backup root of the same generation, since the superblock may be wrong; a tree
 * rebuilt from blocks on the devices; the newest older backup root.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/struct_size.h"
#include "btrfs-walk/file.h"
#include "fs/opening.h"
#include "history/history.h"
#include "ondisk/foreign.h"
#include "recovery/recovery.h"
#include "replay/replay.h"
#include "rescue/rescue.h"
#include "stream/streams.h"

/* Root blocks. */

static struct bw_error *find_present_root(struct bw_fs *fs, enum bw_super_root which,
                                          struct bw_tree *tree)
{
    const bool chunks = which == BW_SUPER_CHUNK_ROOT;
    struct bw_error *error = NULL;
    tree->root = chunks ? fs->superblock.chunk_root : fs->superblock.root;
    if (tree->root.bytenr)
        error = bw_root_verify(fs, tree);
    else /* a superblock that was made from tree blocks */
        error = bw_error_create(BW_ERROR_CORRUPT, "no superblock names the root of the %s tree",
                                chunks ? "chunk" : "root");
    if (error)
        error = bw_root_fall_back(fs, which, tree->root.generation, tree, error);
    if (error && error->code != BW_ERROR_NO_MEMORY)
        error = chunks ? bw_rescue_chunk_tree(fs, error) : bw_rescue_root_tree(fs, error);
    return error ? bw_root_fall_back(fs, which, 0, tree, error) : NULL;
}

/* Finds the chunk root of the chosen generation, or the present one. */
static struct bw_error *find_chunk_root(struct bw_fs *fs)
{
    struct bw_tree *tree = &fs->chunk_tree;
    const struct bw_backup_root *backup = bw_chosen_backup(fs);
    *tree = (struct bw_tree){.id = BW_CHUNK_TREE};
    if (fs->choice.chunk_root)
        BW_TRY(bw_named_root(fs, BW_CHUNK_TREE, fs->choice.chunk_root, 0, &tree->root));
    else if (backup)
        BW_TRY(bw_backup_root(&backup->chunk_root, &tree->root));
    if (!tree->root.bytenr)
        return find_present_root(fs, BW_SUPER_CHUNK_ROOT, tree);
    struct bw_error *error = bw_root_verify(fs, tree);
    if (!error || fs->choice.chunk_root || error->code == BW_ERROR_NO_MEMORY)
        return error;
    /* Chunks seldom move. But chunks that tree blocks and checksums cannot prove may be wrong. */
    bw_fs_report(fs, BW_DAMAGE,
                 bw_error_prefix(error,
                                 "generation %" PRIu64 " is read with the current chunk tree",
                                 tree->root.generation));
    return find_present_root(fs, BW_SUPER_CHUNK_ROOT, tree);
}

/* Adds the chunks of fs->choice.chunk_root, which was found with the help of the present ones. */
static struct bw_error *add_chosen_chunks(struct bw_fs *fs)
{
    BW_TRY(find_chunk_root(fs));
    return bw_bootstrap_chunks(fs, BW_DEVICES_IGNORED);
}

/* Finds the root of the root tree of the chosen generation, or the present one. */
static struct bw_error *find_root(struct bw_fs *fs)
{
    const struct bw_generation_choice *choice = &fs->choice;
    const struct bw_backup_root *backup = bw_chosen_backup(fs);
    struct bw_tree *tree = &fs->root_tree;
    *tree = (struct bw_tree){.id = BW_ROOT_TREE};
    if (backup) {
        BW_TRY(bw_backup_root(&backup->tree_root, &tree->root));
    } else {
        if (choice->generation && choice->generation != fs->superblock.root.generation) {
            BW_TRY(bw_history_find_generation(fs));
            if (choice->chunk_root)
                BW_TRY(add_chosen_chunks(fs));
        }
        if (choice->tree_root)
            BW_TRY(bw_named_root(fs, BW_ROOT_TREE, choice->tree_root, choice->tree_root_generation,
                                 &tree->root));
        if (choice->tree_root && !choice->chunk_root && !choice->knows_chunk_root) {
            BW_TRY(bw_history_find_chunk_root(fs, &tree->root));
            if (choice->chunk_root)
                BW_TRY(add_chosen_chunks(fs));
        }
    }
    fs->is_past = tree->root.bytenr && tree->root.bytenr != fs->superblock.root.bytenr;
    return tree->root.bytenr ? bw_root_verify(fs, tree)
                             : find_present_root(fs, BW_SUPER_TREE_ROOT, tree);
}

/* Chunks and devices. */

/* Looks for missing devices among the images without a superblock, with the chunks that are known.
 * The chunks of the chunk tree are to be added again afterwards. */
static struct bw_error *claim_images(struct bw_fs *fs)
{
    BW_TRY(bw_rescue_devices(fs));
    BW_TRY(bw_announce_devices(fs, fs->images, fs->image_count));
    return bw_bootstrap_system_chunks(fs);
}

/* Parts of the present chunk tree are lost: adds the chunks of them that can be found. */
static struct bw_error *add_lost_chunks(struct bw_fs *fs, const char *what)
{
    const struct bw_tree damaged = fs->chunk_tree;
    if (damaged.root.bytenr != fs->superblock.chunk_root.bytenr)
        return NULL;
    struct bw_error *error =
        bw_rescue_chunk_tree(fs, bw_error_create(BW_ERROR_CORRUPT, "%s", what));
    if (!error)
        return bw_bootstrap_chunks(fs, BW_DEVICES_FOUND);
    fs->chunk_tree = damaged;
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    bw_error_free(error); /* the loss was reported */
    return NULL;
}

/* Whether the root tree is in no chunk, and the devices have more bytes in use than all chunks. */
static struct bw_error *lacks_chunk_of_root(struct bw_fs *fs, bool *lacks)
{
    uint64_t used = 0, known = 0;
    struct bw_mapping mapping;
    BW_AUTO_ERROR struct bw_error *none =
        bw_fs_map(fs, fs->superblock.root.bytenr, fs->superblock.nodesize, 1, &mapping);
    *lacks = false;
    if (!none || none->code == BW_ERROR_NO_MEMORY || !fs->superblock.root.bytenr)
        return NULL;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, &fs->chunk_tree, (struct bw_key){0}, BW_KEY_MAX);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const struct bw_disk_device_item *device = (const void *)item->data;
        struct bw_chunk chunk;
        if (item->key.type == BW_DEVICE_ITEM && item->size >= sizeof *device)
            used += bw_get64(device->bytes_used);
        if (item->key.type != BW_CHUNK_ITEM)
            continue;
        BW_AUTO_ERROR struct bw_error *wrong =
            bw_chunk_decode(item->key.offset, item->data, item->size, &chunk);
        if (!wrong)
            known += bw_stripe_length(&chunk) * chunk.stripe_count;
    }
    *lacks = used > known;
    return bw_fs_items_error(&items);
}

static struct bw_error *read_chunks(struct bw_fs *fs)
{
    const bool unclaimed = bw_has_unclaimed(fs);
    BW_TRY(bw_bootstrap_system_chunks(fs));
    if (unclaimed)
        BW_TRY(claim_images(fs));
    BW_TRY(find_chunk_root(fs));
    const uint64_t damages = fs->damages;
    const size_t lost = fs->lost.count;
    if (bw_has_unclaimed(fs)) {
        BW_TRY(bw_bootstrap_chunks(fs, BW_DEVICES_IGNORED));
        BW_TRY(claim_images(fs));
    }
    BW_TRY(bw_bootstrap_chunks(fs, unclaimed ? BW_DEVICES_FOUND : BW_DEVICES_MISSING));
    bool lacks_root = false;
    BW_TRY(lacks_chunk_of_root(fs, &lacks_root));
    if (fs->lost.count > lost)
        BW_TRY(add_lost_chunks(fs, "parts of the chunk tree cannot be read"));
    else if (lacks_root)
        BW_TRY(add_lost_chunks(fs, "the chunk tree lacks the chunk of the root tree"));
    if (damages == fs->damages)
        bw_bootstrap_report_unknown(fs);
    return NULL;
}

/* Finds the subvolumes. Wrong keys in the present root tree are corrected. If parts of it are lost,
 * the rest of it is completed. */
static struct bw_error *find_subvolumes(struct bw_fs *fs)
{
    const size_t lost = fs->lost.count;
    bool corrected = false;
    BW_TRY(bw_subvolumes_load(fs));
    const bool lacks_tree = !fs->extent_tree.id || !fs->checksum_trees.count;
    if ((fs->subvolumes.doubt || lacks_tree) && fs->lost.count == lost)
        BW_TRY(bw_rescue_root_keys(fs, &corrected));
    if (corrected) {
        bw_subvolumes_free(&fs->subvolumes);
        BW_TRY(bw_subvolumes_load(fs));
    }
    if (fs->lost.count == lost)
        bw_subvolumes_report_doubt(fs);
    if (fs->lost.count == lost || fs->root_tree.root.bytenr != fs->superblock.root.bytenr)
        return NULL;
    fs->damaged_root_tree = fs->root_tree;
    struct bw_error *error = bw_rescue_root_tree(
        fs, bw_error_create(BW_ERROR_CORRUPT, "parts of the root tree cannot be read"));
    if (error)
        fs->damaged_root_tree = (struct bw_tree){0};
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error) {
        bw_error_free(error); /* the loss was reported */
        return NULL;
    }
    bw_subvolumes_free(&fs->subvolumes);
    return bw_subvolumes_load(fs);
}

/* The steps. */

static bool has_superblock(const struct bw_fs *fs, const struct bw_image_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (!set->images[i].bad && bw_is_wanted(fs, &set->images[i].superblock))
            return true;
    return false;
}

static struct bw_error *open_trees(struct bw_fs *fs, struct bw_image_set *set)
{
    if (bw_images_are_streams(set)) {
        /* Only the files of the streams, or a file system with their subvolumes. */
        fs->is_stream = true;
        return fs->streams_as_is ? NULL : bw_streams_apply(fs, set);
    }

    /* Superblocks, if all are lost, and the devices. */
    if ((fs->scan || fs->has_wanted_fsid) && !has_superblock(fs, set))
        BW_TRY(bw_rescue_superblocks(fs, set));
    else if (fs->scan && !fs->has_wanted_fsid && !fs->choice.generation && !fs->choice.tree_root)
        BW_TRY(bw_rescue_report_others(fs, set));
    if (fs->scan && !fs->has_wanted_fsid && !has_superblock(fs, set))
        BW_TRY(bw_rescue_partitions(fs, set));

    /* Chunks, the root tree and the subvolumes in it. Once checksums of data can be read, they
     * prove which devices the images without a superblock are. */
    BW_TRY(bw_build_upper_graph(fs, set));
    BW_TRY(read_chunks(fs));
    BW_TRY(bw_bootstrap_remap(fs));
    BW_TRY(find_root(fs));
    BW_TRY(find_subvolumes(fs));
    if (bw_has_unclaimed(fs)) {
        BW_TRY(claim_images(fs));
        BW_TRY(bw_bootstrap_chunks(fs, BW_DEVICES_FOUND));
    }

    /* The replacements of lost blocks, and the log. */
    BW_TRY(bw_recovery_attach(fs));
    BW_TRY(bw_history_find_log(fs));
    BW_TRY(bw_replay(fs));
    fs->reader.adopter = &fs->recovery.adopter; /* the replay itself adopts nothing */
    BW_TRY(bw_stripe_tree_attach(fs));
    return bw_fs_find_data_checksums(fs);
}

/* An image that is a file of another file system. */

struct inside {
    struct bw_fs *outer;
    struct bw_file *file;
    char *name;
    struct bw_image_source source;
    pthread_mutex_t lock; /* of the file */
};

static void close_inside(void *context)
{
    struct inside *inside = context;
    bw_file_close(inside->file);
    bw_fs_close(inside->outer);
    pthread_mutex_destroy(&inside->lock);
    free(inside->name);
    free(inside);
}

static struct bw_error *read_inside(void *context, uint64_t offset, void *buffer, size_t length)
{
    struct inside *inside = context;
    struct bw_error *error = NULL;
    pthread_mutex_lock(&inside->lock);
    for (size_t done = 0, got; !error && done < length; done += got) {
        error = bw_file_read(inside->file, offset + done, (uint8_t *)buffer + done, length - done,
                             &got);
        if (!error && !got)
            error =
                bw_error_create(BW_ERROR_CORRUPT, "the file ends before %" PRIu64, offset + length);
    }
    pthread_mutex_unlock(&inside->lock);
    return error;
}

/* Opens the file system that contains the image, and in it the last file of --inside. */
static struct bw_error *open_outer(const struct bw_fs_options *options, struct inside *inside)
{
    const size_t last = options->inside_count - 1;
    const char *path = options->inside[last];
    struct bw_fs_options outer = *options;
    outer.inside_count = last;
    if (outer.inside_choice_count > last)
        outer.inside_choice_count = last;
    outer.superblock_copy = 0;
    outer.graph = NULL;
    outer.state = (struct bw_generation_choice){0};
    outer.scan = false;
    outer.fsid = NULL;
    outer.device_count = 0;
    BW_TRY(bw_fs_open(&outer, &inside->outer));

    const struct bw_file_options how = {.struct_size = sizeof how};
    const struct bw_subvolume *top = bw_subvolume_by_id(inside->outer, BW_TOP_SUBVOLUME);
    struct bw_place place;
    uint8_t head[512];
    size_t got = 0;
    if (asprintf(&inside->name, "%s > %s", bw_fs_image_path(inside->outer, 0), path) < 0) {
        inside->name = NULL;
        return bw_error_no_memory();
    }
    struct bw_error *error = bw_lookup(inside->outer, top, path, true, &place);
    if (!error && place.type != BW_FILE_REGULAR)
        error = bw_error_create(BW_ERROR_USAGE, "%s is not a regular file", path);
    if (!error)
        error = bw_file_open(inside->outer, &place, &how, &inside->file);
    if (!error)
        error = bw_file_read(inside->file, 0, head, sizeof head, &got);

    /* No helper can read a file that only this process sees. */
    const struct bw_foreign *format = error ? NULL : bw_foreign_by_magic(head, got);
    if (format && format->helper == BW_HELPER_QEMU)
        error = bw_error_create(BW_ERROR_USAGE,
                                "%s is %s, which cannot be read inside another file system: mount "
                                "that with 'btrfs-walk mount', and open the file below the mount",
                                path, format->name);
    if (error)
        return bw_error_prefix(error, "inside");
    inside->source = (struct bw_image_source){.name = inside->name,
                                              .size = bw_file_inode(inside->file)->size,
                                              .read = read_inside,
                                              .context = inside};
    return NULL;
}

/* Runs an opening on the images, or on the file of --inside. That is opened with the options of the
 * user; those that are for images stay with the outer file system. */
static struct bw_error *run_opening(const struct bw_fs_options *given,
                                    const struct bw_opening *opening, struct bw_fs **fs)
{
    struct bw_fs_options options;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    if (!options.inside_count)
        return bw_opening_run(&options, opening, fs);
    struct inside *inside = calloc(1, sizeof *inside);
    if (!inside)
        return bw_error_no_memory();
    pthread_mutex_init(&inside->lock, NULL);
    struct bw_error *error = open_outer(&options, inside);
    if (!error) {
        struct bw_opening steps = *opening;
        struct bw_inside_choice choice = {0};
        if (options.inside_choice_count >= options.inside_count)
            choice = options.inside_choices[options.inside_count - 1];
        options.paths = &inside->source.name;
        options.path_count = 1;
        options.inside_count = options.inside_choice_count = 0;
        options.planned = NULL; /* it has run for the outermost images */
        options.partition = choice.partition;
        options.volume = choice.volume;
        options.offset = choice.offset;
        options.header = NULL;
        options.map_count = 0;
        options.overlay_count = 0;
        options.alternatives = false;
        options.side = 0;
        steps.source = &inside->source;
        error = bw_opening_run(&options, &steps, fs);
    }
    if (error) {
        close_inside(inside);
        return error;
    }
    (*fs)->close_below = close_inside;
    (*fs)->below = inside;
    return NULL;
}

struct bw_error *bw_fs_open(const struct bw_fs_options *options, struct bw_fs **fs)
{
    static const struct bw_opening opening = {.steps = open_trees, .reopen = bw_fs_open};
    return run_opening(options, &opening, fs);
}

struct bw_error *bw_fs_search(struct bw_fs *fs, uint64_t most)
{
    struct bw_image_set set = {fs->images, fs->image_count};
    uint64_t bytes = 0;
    for (size_t i = 0; i < set.count; i++)
        bytes += set.images[i].storage ? bw_xlator_size(set.images[i].storage) : 0;
    if (most && bytes > most)
        return bw_error_create(BW_ERROR_NOT_FOUND, "the images have %" PRIu64 " GiB", bytes >> 30);
    return bw_rescue_find_all(fs, &set);
}

struct bw_error *bw_partition_tables(const struct bw_fs_options *options, bw_table_visitor *visit,
                                     void *context)
{
    const struct bw_table_visit tables = {visit, context};
    const struct bw_opening opening = {.tables = &tables};
    struct bw_fs_options level;
    struct bw_fs *none = NULL;
    BW_TRY(BW_TAKE_OPTIONS(&level, options));
    struct bw_error *error = run_opening(&level, &opening, &none);
    while (error && error->code == BW_ERROR_AMBIGUOUS && level.inside_count) {
        bw_error_free(error);
        level.inside_count--;
        error = run_opening(&level, &opening, &none);
    }
    bw_fs_close(none);
    return error;
}

struct bw_error *bw_fs_wire(const struct bw_fs_options *options, struct bw_fs **fs)
{
    return run_opening(options, &(struct bw_opening){.steps = bw_build_upper_graph}, fs);
}

struct bw_error *bw_fs_open_images(const struct bw_fs_options *options, struct bw_fs **fs)
{
    return run_opening(options, &(struct bw_opening){0}, fs);
}

struct bw_error *bw_fs_list_devices(const struct bw_fs_options *options, struct bw_fs **fs)
{
    return run_opening(options, &(struct bw_opening){.lists_devices = true}, fs);
}
