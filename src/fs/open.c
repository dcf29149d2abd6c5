/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens a file system: checks the options, creates the registry, keys and servers, and opens the
 * images and their graph; then the steps of src/open.c open the trees. If a step fails,
 * bw_fs_close() frees what exists so far. The counters of a file system are here, too.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/struct_size.h"
#include "fs/fs.h"
#include "fs/opening.h"
#include "graph/keys.h"
#include "servers/folders.h"
#include "xlators/classes.h"

/* Every message of the file system and its graph passes through here, one at a time: the graph
 * holds the lock. */
static void forward_report(void *context, enum bw_severity severity, const struct bw_error *error)
{
    struct bw_fs *fs = context;
    if (severity == BW_DAMAGE)
        fs->damages++;
    if (fs->reporter.report)
        fs->reporter.report(fs->reporter.context, severity, error);
}

/* Without a random number, the time and an address must do. */
static uint64_t make_seed(const struct bw_fs *fs)
{
    uint64_t seed;
    struct timespec now;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed)
        return seed;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uintptr_t)fs;
}

uint64_t bw_fs_name_hash(const struct bw_fs *fs, uint64_t directory, const void *name,
                         size_t length)
{
    return XXH64(name, length, directory ^ fs->seed);
}

static struct bw_error *open_images(struct bw_fs *fs, const struct bw_fs_options *options,
                                    const struct bw_opening *opening)
{
    const struct bw_reporter forward = {forward_report, fs};
    struct bw_registry *registry;
    BW_TRY(bw_registry_open(options->graph->xlator_path, &registry));
    BW_TRY(bw_graph_create(registry, forward, &fs->graph));
    if (options->probes)
        fs->graph->probes = options->probes;
    fs->graph->inputs.source = opening->source;
    fs->graph->inputs.patches = options->patches;
    fs->graph->inputs.patch_count = options->patch_count;
    fs->graph->inputs.search_limit = options->search_limit;
    BW_TRY(bw_keys_create(options, &fs->keys));
    fs->graph->inputs.keys = fs->keys;
    fs->graph->inputs.decompressed = options->decompressed;
    fs->graph->inputs.decompressed_context = options->searched_context;
    if (!options->servers)
        BW_TRY(bw_servers_create(BW_HELPERS_OFF, &fs->own_servers));
    fs->graph->inputs.servers = options->servers ? options->servers : fs->own_servers;

    struct bw_image_set set = {0};
    struct bw_strings list = {0};
    struct bw_fs_options own = *options;
    struct bw_error *error = bw_stream_folders_expand(options->paths, options->path_count, &list);
    own.paths = (const char *const *)list.items;
    own.path_count = list.count;
    if (!error)
        error = bw_build_lower_graph(fs, &own, &set);
    bw_strings_free_all(&list);
    if (!error && opening->steps)
        error = opening->steps(fs, &set);
    fs->images = set.images;
    fs->image_count = set.count;
    bw_bootstrap_end(fs);
    return error;
}

struct bw_error *bw_opening_run(const struct bw_fs_options *given, const struct bw_opening *opening,
                                struct bw_fs **result)
{
    struct bw_fs_options options;
    struct bw_graph_options graph = {.struct_size = sizeof graph};
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    if (options.graph)
        BW_TRY(BW_TAKE_OPTIONS(&graph, options.graph));
    options.graph = &graph;
    BW_TRY(bw_generation_choice_check(&options.state));
    if (options.superblock_copy < -1 || options.superblock_copy > BW_SUPERBLOCK_COPY_0)
        return bw_error_create(BW_ERROR_USAGE, "there is no superblock copy of the number %d",
                               options.superblock_copy);
    if (!options.path_count && !graph.file)
        return bw_error_create(BW_ERROR_USAGE, "no image given");
    struct bw_fs *fs = calloc(1, sizeof *fs);
    if (!fs)
        return bw_error_no_memory();
    fs->reporter = options.reporter;
    fs->ignores_log = options.log == BW_LOG_IGNORE;
    fs->scan = options.scan;
    fs->alternatives = options.alternatives;
    if (options.fsid) {
        fs->has_wanted_fsid = true;
        memcpy(fs->wanted_fsid, options.fsid, BW_UUID_SIZE);
    }
    fs->ignored_checksums = options.ignore_checksums & BW_CHECKSUMS_ALL;
    fs->side = options.side;
    fs->streams_as_is = options.streams_as_is;
    fs->searched = options.searched;
    fs->searched_context = options.searched_context;
    fs->choice = options.state;
    fs->reopen = opening->reopen;
    fs->tables = opening->tables;
    fs->lists_devices = opening->lists_devices || options.device_count;
    fs->seed = make_seed(fs);
    pthread_mutex_init(&fs->lost_lock, NULL);
    struct bw_error *error = open_images(fs, &options, opening);
    if (error)
        bw_fs_close(fs);
    else
        *result = fs;
    /* usage errors do not originate in this folder */
    if (error && error->code != BW_ERROR_USAGE)
        error = bw_fs_set_origin(error);
    if (error && options.probes)
        BW_PROBE(options.probes, error, report,
                 &(struct bw_report_event){.error = error, .fatal = true});
    return error;
}

void bw_fs_close(struct bw_fs *fs)
{
    if (!fs)
        return;
    bw_images_free(&(struct bw_image_set){fs->images, fs->image_count});
    bw_graph_destroy(fs->graph);
    bw_servers_destroy(fs->own_servers);
    bw_keys_destroy(fs->keys);
    bw_stripe_tree_destroy(fs->stripes);
    bw_subvolumes_free(&fs->subvolumes);
    bw_memory_free(&fs->memory);
    bw_log_inodes_free(&fs->logged);
    bw_seen_extents_free(&fs->reused);
    free(fs->found);
    free(fs->checksum_trees.items);
    if (fs->recovery.destroy)
        fs->recovery.destroy(&fs->recovery);
    bw_key_map_free(&fs->lost);
    bw_error_free(fs->stream_errors);
    bw_key_map_free(&fs->reported);
    bw_file_set_free(&fs->inputs);
    pthread_mutex_destroy(&fs->lost_lock);
    if (fs->close_below)
        fs->close_below(fs->below);
    free(fs);
}

bool bw_fs_is_stream(const struct bw_fs *fs)
{
    return fs->is_stream;
}

const struct bw_found_file_system *bw_fs_found(const struct bw_fs *fs, size_t index)
{
    return index < fs->found_count ? &fs->found[index] : NULL;
}

struct bw_fs_status bw_fs_status(const struct bw_fs *fs)
{
    struct bw_fs_status status = fs->status;
    status.damages = atomic_load(&fs->damages);
    status.unverified = atomic_load(&fs->unverified);
    status.generation = fs->root_tree.root.generation;
    for (size_t i = 0; i < fs->graph->layers.count; i++) {
        const struct bw_xlator *layer = fs->graph->layers.items[i];
        if (layer->type == &bw_features_verify_class)
            bw_verify_count(layer, &status.corrected_blocks, &status.not_searched,
                            &status.unverified_blocks);
    }
    return status;
}

/* All reads of the layers that read images. */
static struct bw_counters count_reads(const struct bw_fs *fs)
{
    struct bw_counters sum = {0};
    for (size_t i = 0; i < fs->graph->layers.count; i++) {
        const struct bw_xlator *layer = fs->graph->layers.items[i];
        for (unsigned kind = 0; bw_xlator_child_count(layer) == 0 && kind < BW_REQUEST_KINDS;
             kind++) {
            const struct bw_counters counters =
                bw_xlator_counters(layer, (enum bw_request_kind)kind);
            sum.calls += counters.calls;
            sum.bytes += counters.bytes;
        }
    }
    return sum;
}

uint64_t bw_fs_bytes_read(const struct bw_fs *fs)
{
    return count_reads(fs).bytes;
}

uint64_t bw_fs_round_trips(const struct bw_fs *fs)
{
    return count_reads(fs).calls;
}
