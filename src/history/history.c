/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening the present state of a file system, the list of older ones, and each of those. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/struct_size.h"
#include "history/history.h"
#include "history/scan.h"

/* The scan. */

/* The present root of the root tree was not found: a copy that was scanned is lost. */
static bool lacks_root(const struct bw_past *past)
{
    const struct bw_superblock *super = &past->fs->superblock;
    return super->root.bytenr &&
           !bw_found_find(&past->index, super->root.bytenr, super->generation);
}

static struct bw_error *scan_ranges(struct bw_past *past, const struct bw_past_options *options,
                                    const struct bw_scan_ranges *ranges)
{
    struct bw_past_scan scan = {.fs = past->fs,
                                .ranges = ranges,
                                .index = &past->index,
                                .threads = options->threads,
                                .progress = options->progress,
                                .context = options->context};
    BW_TRY(bw_past_scan(&scan));
    if (scan.zeros && lacks_root(past)) {
        scan.doubts_zeros = true;
        scan.zeros = scan.unread = 0;
        BW_TRY(bw_past_scan(&scan));
    }
    past->facts.scanned = true;
    past->facts.bytes = ranges->bytes;
    past->facts.zeros = scan.zeros;
    past->facts.unread = scan.unread;
    return NULL;
}

static struct bw_error *fill_index(struct bw_past *past, const struct bw_past_options *options)
{
    struct bw_scan_ranges ranges = {0};
    if (options->scanning == BW_PAST_SCAN_NEVER)
        return NULL;
    if (options->index && bw_past_read_index(past, options->index, options->index_size))
        return options->only_list ? NULL : bw_past_verify_index(past, options->threads);
    struct bw_error *error = bw_scan_add_chunks(past->fs, &ranges);
    if (!error && (options->scanning == BW_PAST_SCAN_ALWAYS || ranges.bytes <= BW_PAST_SMALL))
        error = scan_ranges(past, options, &ranges);
    free(ranges.ranges);
    return error;
}

/* The list. */

static struct bw_error *fill(struct bw_past *past, const struct bw_past_options *options)
{
    enum { LEAVES = 1 << 20, LEAVES_A_BLOCK = 64 };
    BW_TRY(fill_index(past, options));
    past->leaves = LEAVES + past->index.count * LEAVES_A_BLOCK;
    past->facts.blocks = past->index.count;
    past->judged = past->facts.scanned && !options->only_list;
    if (past->facts.unread)
        bw_fs_report(past->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "%" PRIu64 " bytes of the metadata chunks cannot be read: "
                                     "states may be missing",
                                     past->facts.unread));
    if (past->facts.scanned)
        BW_TRY(bw_judge_create(past->fs, &past->index, options->threads, &past->judge));
    return bw_past_list(past);
}

struct bw_error *bw_past_open(struct bw_fs *fs, const struct bw_past_options *given,
                              struct bw_past **past)
{
    struct bw_past_options options;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    struct bw_past *made = calloc(1, sizeof *made);
    if (!made)
        return bw_error_no_memory();
    made->fs = fs;
    made->reader = (struct bw_tree_reader){.top = fs->reader.top, .nodesize = fs->reader.nodesize};
    bw_found_init(&made->index);
    struct bw_error *error = fill(made, &options);
    if (error)
        bw_past_close(made);
    else
        *past = made;
    return error;
}

void bw_past_close(struct bw_past *past)
{
    if (!past)
        return;
    bw_judge_destroy(past->judge);
    bw_found_free(&past->index);
    free(past->states);
    free(past->chunk_roots);
    free(past);
}

void bw_past_facts(const struct bw_past *past, struct bw_past_facts *facts)
{
    *facts = past->facts;
}

/* States as file systems. */

static struct bw_state_choice choice_of(const struct bw_state_info *info)
{
    return (struct bw_state_choice){.tree_root = info->tree_root,
                                    .tree_root_generation = info->generation,
                                    .chunk_root = info->chunk_root};
}

struct bw_error *bw_past_open_state(const struct bw_past *past, size_t state,
                                    const struct bw_fs_options *given, struct bw_fs **fs)
{
    struct bw_fs_options options;
    BW_TRY(BW_TAKE_OPTIONS(&options, given));
    options.state = choice_of(bw_past_state(past, state));
    return past->fs->reopen(&options, fs);
}

struct bw_error *bw_history_find_generation(struct bw_fs *fs)
{
    const struct bw_past_options options = {
        .struct_size = sizeof options, .scanning = BW_PAST_SCAN_ALWAYS, .only_list = true};
    struct bw_past *past = NULL;
    size_t state;
    BW_TRY(bw_past_open(fs, &options, &past));
    struct bw_error *error = bw_past_find(past, fs->choice.generation, &state);
    if (!error)
        fs->choice = choice_of(bw_past_state(past, state));
    bw_past_close(past);
    return error;
}

struct bw_error *bw_history_find_chunk_root(struct bw_fs *fs, const struct bw_root_pointer *root)
{
    struct bw_past past = {.fs = fs,
                           .reader = {.top = fs->reader.top, .nodesize = fs->reader.nodesize}};
    struct bw_root_pointer own;
    BW_TRY(bw_past_find_system_chunks(&past));
    bw_state_chunk_root(&past, root, &own);
    if (own.bytenr && own.bytenr != fs->chunk_tree.root.bytenr &&
        bw_state_has_root(&past, BW_CHUNK_TREE, &own))
        fs->choice.chunk_root = own.bytenr;
    return NULL;
}
