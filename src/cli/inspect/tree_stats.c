/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree-stats command: sizes of trees and distances between their blocks, in the format of
 * `btrfs inspect-internal tree-stats`. */
#include "btrfs-walk/tree.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "base/vector.h"
#include "btrfs-walk/records.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"

struct tree_stats_state {
    struct bw_const_strings trees; /* names or ids, as on the command line */
    bool items;
    struct bw_tree_stats now; /* statistics of the current tree */
};

static struct bw_error *store_tree(void *state, const struct cmd_option *option, const char *text)
{
    struct tree_stats_state *stats = state;
    uint64_t id;
    (void)option;
    BW_TRY(bw_tree_id_parse(text, &id));
    return bw_const_strings_push(&stats->trees, text);
}

static void release_trees(void *state)
{
    bw_const_strings_free(&((struct tree_stats_state *)state)->trees);
}

static const struct cmd_option options[] = {
    {0, "tree", "TREE",
     "this tree: its name or id (repeatable; default: root, extent, csum and fs)",
     .store = store_tree, .words = bw_tree_names, .release = release_trees},
    {0, "items", NULL, "list the items of each tree by type",
     CMD_FLAG(struct tree_stats_state, items)},
    {0},
};

/* Derived numbers. */

static uint64_t average_of(uint64_t sum, uint64_t count)
{
    return count ? sum / count : 0;
}

/* Estimate for a hard disk: 8 ms for each seek, 160 MB a second. */
static uint64_t read_time(const struct bw_tree_stats *stats)
{
    return (stats->seeks + 1) * 8000000 + stats->bytes / 4 * 25;
}

/* Output as text. */

static void append_size(struct bw_buffer *text, const char *label, uint64_t size, bool bytes)
{
    const struct cmd_format_settings settings = {.raw = bytes};
    bw_buffer_format(text, "%s: %s\n", label, cmd_size(&settings, size).text);
}

static void append_number(struct bw_buffer *text, const char *label, uint64_t number)
{
    append_size(text, label, number, true);
}

static uint64_t fill_of(const struct bw_tree_stats *stats)
{
    if (!stats->capacity_bytes)
        return 0;
    return (uint64_t)(100.0 * (double)stats->used_bytes / (double)stats->capacity_bytes);
}

/* Prints the record and the numbers that are only in the text. */
static struct bw_error *print_tree(struct cmd_format *format, const void *record)
{
    const struct bw_treeinfo *row = record;
    const struct bw_tree_stats *stats = &((struct tree_stats_state *)format->plan->context)->now;
    struct bw_buffer *text = &format->text;
    const bool bytes = format->settings.raw;
    const bool number =
        *row->tree_name == '-' || (*row->tree_name >= '0' && *row->tree_name <= '9');
    bw_buffer_format(text,
                     number ? "Calculating size of tree %s\n" : "Calculating size of %s tree\n",
                     row->tree_name);
    append_size(text, "\tTotal size", stats->bytes, bytes);
    append_size(text, "\t\tInline data", stats->inline_bytes, bytes);
    append_number(text, "\tTotal seeks", stats->seeks);
    append_number(text, "\t\tForward seeks", stats->forward_seeks);
    append_number(text, "\t\tBackward seeks", stats->backward_seeks);
    append_size(text, "\t\tAvg seek len", average_of(stats->seek_bytes, stats->seeks), bytes);

    /* A '#' for each twentieth of the seeks. */
    static const char bar[] = "####################";
    if (stats->seeks >= 20)
        bw_buffer_format(text, "\tSeek histogram\n");
    for (unsigned bits = 1; stats->seeks >= 20 && bits < BW_SEEK_BUCKETS; bits++) {
        const uint64_t seeks = stats->seek_lengths[bits];
        const int marks = (int)((double)seeks / (double)stats->seeks * 20);
        if (seeks)
            bw_buffer_format(text, "\t\t%*" PRIu64 " - %*" PRIu64 ": %8" PRIu64 " %s\n", 13,
                             UINT64_C(1) << (bits - 1), 13, UINT64_MAX >> (64 - bits), seeks,
                             marks ? bar + 20 - marks : "|");
    }
    /* btrfs-progs count a tree without clusters as one cluster. */
    append_number(text, "\tTotal clusters", stats->clusters ? stats->clusters : 1);
    append_size(text, "\t\tAvg cluster size", average_of(stats->cluster_bytes, stats->clusters),
                bytes);
    append_size(text, "\t\tMin cluster size", stats->smallest_cluster, bytes);
    uint64_t largest = stats->largest_cluster;
    if (!stats->clusters)
        largest = average_of(stats->bytes, stats->block_count);
    append_size(text, "\t\tMax cluster size", largest, bytes);
    append_size(text, "\tTotal disk spread", stats->highest - stats->lowest, bytes);
    bw_buffer_format(text, "\tEstimated read time: %.3f s\n", (double)read_time(stats) / 1e9);
    append_number(text, "\tLevels", stats->levels);
    append_number(text, "\tTotal nodes", stats->block_count);
    for (unsigned level = 0; level < stats->levels; level++) {
        bw_buffer_format(text, "\t\tOn level %u: %8" PRIu64, level, stats->blocks[level]);
        if (level)
            bw_buffer_format(text, "  (avg fanout %" PRIu64 ")",
                             average_of(stats->blocks[level - 1], stats->blocks[level]));
        bw_buffer_append_byte(text, '\n');
    }
    if (stats->lost_blocks)
        append_number(text, "\t\tLost", stats->lost_blocks);
    append_number(text, "\tTotal items", stats->items);
    bw_buffer_format(text, "\t\tLeaves filled: %" PRIu64 "%%\n", fill_of(stats));
    for (unsigned type = 0; type < BW_KEY_TYPES; type++)
        if (stats->types[type].count)
            bw_buffer_format(text, "\t\t%s: %" PRIu64 "\n", bw_key_type_name((uint8_t)type),
                             stats->types[type].count);
    return NULL;
}

/* Output as rows. */

static struct bw_error *list(struct cmd_format *format, void *context)
{
    static const char *const usual[] = {"root", "extent", "csum", "fs"};
    struct tree_stats_state *state = context;
    struct bw_fs *fs = format->session.fs;
    const char *const *trees = state->trees.count ? state->trees.items : usual;
    const size_t count = state->trees.count ? state->trees.count : sizeof usual / sizeof *usual;
    struct bw_tree_stats *stats = &state->now;
    BW_AUTO_FREE uint64_t *ids = calloc(count, sizeof *ids);
    if (!ids)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++)
        BW_TRY(bw_tree_id_parse(trees[i], &ids[i]));
    cmd_progress_expect(bw_fs_tree_bytes_of(fs, ids, count));
    for (size_t i = 0; i < count; i++) {
        struct bw_error *error = bw_tree_stats_read(fs, ids[i], stats);
        /* A tree named on the command line must exist. If one of the default trees cannot be
         * read, that is damage. */
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        if (error && state->trees.count && error->code == BW_ERROR_NOT_FOUND) {
            error->code = BW_ERROR_USAGE;
            return error;
        }
        if (error) {
            bw_fs_report(fs, BW_DAMAGE, error);
        } else if (!state->items) {
            struct bw_buffer BW_AUTO_BUFFER levels = {0};
            for (unsigned level = 0; level < stats->levels; level++)
                bw_buffer_format(&levels, "%s%" PRIu64, level ? "," : "", stats->blocks[level]);
            BW_TRY(bw_buffer_terminate(&levels));
            const struct bw_treeinfo row = {
                .tree = stats->id,
                .tree_name = trees[i],
                .levels = stats->levels,
                .blocks = stats->block_count,
                .leaves = stats->blocks[0],
                .on_levels = levels.data,
                .lost_blocks = stats->lost_blocks,
                .bytes = stats->bytes,
                .inline_bytes = stats->inline_bytes,
                .items = stats->items,
                .used = stats->used_bytes,
                .fill_percent = fill_of(stats),
                .seeks = stats->seeks,
                .forward_seeks = stats->forward_seeks,
                .backward_seeks = stats->backward_seeks,
                .average_seek = average_of(stats->seek_bytes, stats->seeks),
                .longest_seek = stats->longest_seek,
                .clusters = stats->clusters,
                .average_cluster = average_of(stats->cluster_bytes, stats->clusters),
                .smallest_cluster = stats->smallest_cluster,
                .largest_cluster = stats->largest_cluster,
                .spread = stats->highest - stats->lowest,
                .read_ns = read_time(stats),
            };
            BW_TRY(cmd_format_write(format, &row, sizeof row));
        }
        for (unsigned type = 0; !error && state->items && type < BW_KEY_TYPES; type++) {
            const struct bw_itemsinfo row = {.tree = stats->id,
                                             .key_type_name = bw_key_type_name((uint8_t)type),
                                             .key_type = type,
                                             .items = stats->types[type].count,
                                             .bytes = stats->types[type].bytes};
            if (row.items)
                BW_TRY(cmd_format_write(format, &row, sizeof row));
        }
    }
    return NULL;
}

static struct cmd_format_plan plan_of(const void *state)
{
    const struct tree_stats_state *stats = state;
    if (stats->items)
        return (struct cmd_format_plan){
            .record = "itemsinfo", .columns = "tree,key_type_name,items,bytes", .list = list};
    return (struct cmd_format_plan){.print = print_tree, .list = list};
}

const struct command cmd_tree_stats = {
    .name = "tree-stats",
    .topic = cmd_topic_developers,
    .operands = "IMAGE...",
    .summary = "Prints the sizes of trees, their blocks and item counts.",
    .details =
        "\n"
        "Each tree is read completely. The output and its numbers are those of 'btrfs\n"
        "inspect-internal tree-stats', followed by the fill of the leaves and the number of\n"
        "items of each type. Distances are differences of logical addresses. A seek is counted\n"
        "where a block does not directly follow the previous block of the same node. The time\n"
        "is an estimate for a hard disk that seeks in 8 ms and reads 160 MB per second. --items\n"
        "has other columns: tree, key_type_name, items and bytes.\n",
    .examples =
        "  btrfs-walk tree-stats disk.img                           root, extent, csum, fs\n"
        "  btrfs-walk tree-stats -b --tree 256 --tree uuid disk.img  other trees\n"
        "  btrfs-walk tree-stats --items --tree fs disk.img          items by type\n"
        "  btrfs-walk tree-stats -o tree_name,bytes,fill_percent disk.img  columns\n",
    .options = options,
    .record = "treeinfo",
    .plan_of = plan_of,
    .state_size = sizeof(struct tree_stats_state),
};
