/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The check: its passes in their order, and their dependencies. A pass whose dependencies are not
 * met is skipped; on images that cannot be opened, only the first pass runs.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/struct_size.h"
#include "check/blocks.h"
#include "check/check.h"
#include "check/device_histories.h"
#include "check/incomplete_chunks.h"
#include "check/unchanged.h"

/* Results that passes leave for later ones. */
enum {
    NEEDS_NOTHING = 0,
    NEEDS_TREES = 1 << 0,  /* the list of trees, and what their inodes add up to */
    NEEDS_EXTENTS = 1 << 1 /* the balance of references */
};

/* The errors in the streams were found when they were opened. Nothing else is checked: the trees
 * were made from the streams. */
static struct bw_error *find_stream_errors(struct bw_check *check)
{
    const struct bw_error *error =
        check->fs->stream_errors ? check->fs->stream_errors->causes : NULL;
    for (; error; error = error->next)
        bw_check_find(check, BW_CODE_stream_command, NULL, "%s", error->message);
    return NULL;
}

static const struct {
    struct bw_error *(*run)(struct bw_check *check);
    unsigned needs, leaves;
} pass_table[BW_PASSES] = {
    [BW_PASS_streams] = {find_stream_errors, NEEDS_NOTHING, 0},
    [BW_PASS_superblocks] = {bw_pass_superblocks, NEEDS_NOTHING, 0},
    [BW_PASS_chunks] = {bw_pass_chunks, NEEDS_NOTHING, 0},
    [BW_PASS_space] = {bw_pass_space, NEEDS_NOTHING, NEEDS_EXTENTS},
    [BW_PASS_trees] = {bw_pass_trees, NEEDS_NOTHING, NEEDS_TREES},
    [BW_PASS_extents] = {bw_pass_extents, NEEDS_TREES | NEEDS_EXTENTS, 0},
    [BW_PASS_inodes] = {bw_pass_inodes, NEEDS_TREES, 0},
    [BW_PASS_roots] = {bw_pass_roots, NEEDS_TREES, 0},
    [BW_PASS_quota] = {bw_pass_quota, NEEDS_TREES, 0},
    [BW_PASS_log] = {bw_pass_log, NEEDS_NOTHING, 0},
    [BW_PASS_data] = {bw_pass_data, NEEDS_NOTHING, 0},
    [BW_PASS_verity] = {bw_pass_verity, NEEDS_TREES, 0},
    [BW_PASS_parity] = {bw_pass_parity, NEEDS_NOTHING, 0},
};

struct bw_error *bw_check_begin(struct bw_check *check)
{
    bw_findings_init(check);
    pthread_mutex_init(&check->lock, NULL);
    check->workers = bw_pool_workers(check->options->threads);
    check->pool = bw_pool_create(check->workers);
    check->visited = bw_visited_create();
    if (!check->pool || !check->visited)
        return bw_error_no_memory();
    check->secrets = bw_fact_secrets_of(check->fs->seed);
    if (check->why)
        return NULL;
    BW_TRY(bw_check_load_chunks(check));
    BW_TRY(bw_incomplete_chunks_begin(check));
    return bw_unchanged_begin(check);
}

void bw_check_end(struct bw_check *check)
{
    bw_findings_free(check);
    bw_pool_destroy(check->pool);
    bw_visited_destroy(check->visited);
    bw_device_histories_free(check->histories);
    free(check->references);
    bw_range_set_free(&check->unsummed);
    bw_range_set_free(&check->old_data);
    bw_range_set_free(&check->new_data);
    bw_key_map_free(&check->known_findings);
    free(check->met_again);
    bw_charges_free(&check->charges);
    bw_log_claims_free(&check->log_claims);
    bw_verity_files_free(&check->verity_files);
    bw_key_map_free(&check->incomplete_files);
    free(check->incomplete_chunks);
    bw_key_map_free(&check->full_backrefs);
    bw_key_map_free(&check->shared_blocks);
    bw_key_map_free(&check->bad_places);
    bw_key_map_free(&check->moved_directories);
    pthread_mutex_destroy(&check->lock);
    bw_checked_chunks_free(&check->chunks);
    bw_checked_groups_free(&check->groups.groups);
    bw_listed_trees_free(&check->trees.entries);
}

/* Whether the options ask for a pass. */
static bool is_wanted(const struct bw_check *check, enum bw_pass_number number)
{
    const struct bw_check_options *options = check->options;
    size_t count;
    const struct bw_check_pass *pass = &bw_check_passes(&count)[number];
    /* These passes compare sums of all blocks of trees, not only of new ones. */
    const bool is_of_all_blocks = number == BW_PASS_space || number == BW_PASS_extents ||
                                  number == BW_PASS_inodes || number == BW_PASS_quota;
    if (pass->external)
        return false;
    if (options->quick)
        return pass->quick;
    if (options->since_generation && is_of_all_blocks)
        return false;
    return options->part > 1 ? options->data && pass->data : options->data || !pass->data;
}

/* The counts of kinds that occurred, behind the summary itself. */
static struct bw_check_summary *summarize_findings(const struct bw_check *check, bool ended)
{
    struct bw_check_summary *summary =
        calloc(1, sizeof *summary + BW_CODES * sizeof *summary->counts);
    if (!summary)
        return NULL;
    struct bw_finding_count *counts = (struct bw_finding_count *)(summary + 1);
    for (unsigned code = 0; code < BW_CODES; code++) {
        const struct bw_finding_count *count = &check->findings.counts[code];
        if (!count->count)
            continue;
        counts[summary->count++] = *count;
        summary->totals[count->code->severity] += count->count;
        if (count->code->severity == BW_FINDING_ERROR)
            summary->repairable += count->repairable;
    }
    summary->counts = counts;
    summary->finished = ended && !check->unfinished;
    summary->blocks = check->blocks;
    summary->data_bytes = check->data_bytes;
    summary->skipped_blocks = check->skipped_blocks;
    summary->skipped_data = check->skipped_data;
    summary->new_findings = check->new_findings;
    summary->gone_findings = check->gone_findings;
    return summary;
}

static struct bw_error *run_passes(struct bw_check *check, unsigned pass_count,
                                   struct bw_check_summary **summary)
{
    struct bw_error *error = bw_check_begin(check);
    unsigned left = 0;
    for (unsigned i = 0; !error && i < pass_count; i++) {
        if (!is_wanted(check, i) || (pass_table[i].needs & ~left) ||
            check->fs->is_stream != (i == BW_PASS_streams))
            continue;
        check->pass = i;
        if (!bw_check_should_continue(check, 0))
            break;
        error = pass_table[i].run(check);
        error = bw_error_first(error, bw_findings_flush(check));
        left |= pass_table[i].leaves;
    }
    if (!error && check->stopped)
        error = bw_error_create(BW_ERROR_STOPPED, "the check was stopped");
    if (!error && check->flips)
        bw_check_find(check, BW_CODE_memory_suspected, NULL,
                      "one flipped bit explains %" PRIu64
                      " finding%s: test the memory of the machine that wrote the values",
                      (uint64_t)check->flips, bw_plural(check->flips));
    if (!error)
        error = bw_findings_flush(check);
    if (!error && check->no_memory)
        error = bw_error_no_memory();
    if (!error)
        error = bw_unchanged_end(check);
    *summary = summarize_findings(check, !error);
    bw_check_end(check);
    return error || *summary ? error : bw_error_no_memory();
}

struct bw_error *bw_check(struct bw_fs *fs, const struct bw_check_options *options,
                          struct bw_check_summary **summary)
{
    *summary = NULL;
    struct bw_check_options own = {0};
    BW_TRY(BW_TAKE_OPTIONS(&own, options));
    if (own.part > own.parts || !own.part != !own.parts)
        return bw_error_create(BW_ERROR_USAGE, "there is no part %u of %u", own.part, own.parts);
    if ((own.save || own.since || own.since_generation) && (own.parts || own.quick))
        return bw_error_create(BW_ERROR_USAGE, "a baseline needs a whole check");
    if (own.since_generation && (own.save || own.since))
        return bw_error_create(BW_ERROR_USAGE, "a generation and a baseline exclude each other");
    struct bw_check check = {.fs = fs, .options = &own};

    /* Checks the root tree on the disk, not its replacement, as long as it has a root. Other
     * threads may read `root_tree` unless it is one. */
    if (bw_fs_root_tree(fs) == &fs->root_tree)
        return run_passes(&check, BW_PASSES, summary);
    const struct bw_tree root_tree = fs->root_tree;
    fs->root_tree = *bw_fs_root_tree(fs);
    struct bw_error *error = run_passes(&check, BW_PASSES, summary);
    fs->root_tree = root_tree;
    return error;
}

struct bw_error *bw_check_images(struct bw_fs *fs, const struct bw_error *why,
                                 const struct bw_check_options *options,
                                 struct bw_check_summary **summary)
{
    *summary = NULL;
    struct bw_check_options own = {0};
    BW_TRY(BW_TAKE_OPTIONS(&own, options));
    struct bw_check check = {.fs = fs, .options = &own, .why = why};
    return run_passes(&check, BW_PASS_superblocks + 1, summary);
}

void bw_check_summary_free(struct bw_check_summary *summary)
{
    free(summary);
}
