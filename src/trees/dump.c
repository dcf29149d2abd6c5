/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Printing trees and blocks: which ones, in which order, and what is damaged. The order is that of
 * btrfs-progs: level by level, for which a tree is scanned once a level, or depth first. Memory is
 * a batch of leaves and some text.
 */
#include "btrfs-walk/dump.h"

#include <inttypes.h>
#include <uuid/uuid.h>

#include "trees/dump.h"
#include "trees/dump_pages.h"
#include "base/cleanup.h"
#include "base/struct_size.h"
#include "btree/scan.h"
#include "ondisk/disk_items.h"
#include "graph/wind.h"
#include "ondisk/block_text.h"

enum { ALL_LEVELS = UINT8_MAX };

/* Trees under way. */
struct trees {
    struct bw_dump dump;
    const struct bw_dump_tree *tree;
    uint8_t level; /* blocks of other levels are not printed; or ALL_LEVELS */
};

static struct bw_error *begin(struct trees *trees, struct bw_fs *fs,
                              const struct bw_dump_options *options, bw_consumer *consume,
                              void *context)
{
    struct bw_dump *dump = &trees->dump;
    BW_TRY(BW_TAKE_OPTIONS(&dump->options, options));
    dump->fs = fs;
    dump->consume = consume;
    dump->context = context;
    dump->first = dump->options.first ? *dump->options.first : (struct bw_key){0};
    dump->last = dump->options.last ? *dump->options.last : BW_KEY_MAX;
    dump->part = dump->options.first || dump->options.last;
    struct bw_error *error = bw_dump_begin(dump);
    return error ? bw_dump_end(dump, error) : NULL;
}

static uint64_t bytenr_of(const struct bw_node *node)
{
    return bw_get64(((const struct bw_disk_header *)node->block)->bytenr);
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    struct trees *trees = context;
    return bw_dump_leaf(&trees->dump, leaf);
}

static struct bw_error *take_node(void *context, const struct bw_node *node)
{
    struct trees *trees = context;
    if (trees->dump.part || (trees->level != ALL_LEVELS && trees->level != node->level))
        return NULL;
    return bw_dump_print(&trees->dump, node, bytenr_of(node), false);
}

/* Damage. */

/* Reads a block as it is, from the first copy that says it is that block, or from any. */
static bool read_raw(struct bw_fs *fs, uint64_t bytenr, uint8_t *bytes)
{
    struct bw_mapping mapping;
    bool any = false;
    BW_AUTO_ERROR struct bw_error *none = bw_fs_map(fs, bytenr, fs->reader.nodesize, 1, &mapping);
    for (unsigned copy = 1; !none && copy <= mapping.copies; copy++) {
        struct bw_request request = {.kind = BW_REQUEST_RAW,
                                     .copy = (uint8_t)copy,
                                     .length = fs->reader.nodesize,
                                     .address = bytenr,
                                     .buffer = bytes};
        bw_wind(NULL, fs->reader.top, &request, 1);
        BW_AUTO_ERROR struct bw_error *error = request.error;
        any |= !error;
        if (!error && bw_get64(((const struct bw_disk_header *)bytes)->bytenr) == bytenr)
            return true;
    }
    return any;
}

static struct bw_error *print_damaged(struct bw_dump *dump, uint64_t bytenr)
{
    BW_AUTO_FREE uint8_t *bytes = bw_block_buffer(&dump->fs->reader, 1);
    if (!bytes)
        return bw_error_no_memory();
    if (!read_raw(dump->fs, bytenr, bytes))
        return NULL;
    struct bw_node node = bw_block_view(bytes, dump->fs->reader.nodesize);
    if (bytenr_of(&node) != bytenr)
        node.item_count = 0;
    return bw_dump_print(dump, &node, bytenr, true);
}

/* Nodes above the present level were reported when that level was printed. Blocks of a subvolume
 * that is being deleted may be gone. */
static struct bw_error *take_lost(void *context, const struct bw_block_pointer *pointer,
                                  struct bw_error *error)
{
    struct trees *trees = context;
    struct bw_dump *dump = &trees->dump;
    struct bw_error *failure = NULL;
    if (trees->level == ALL_LEVELS || trees->level == pointer->expectation.level)
        failure = print_damaged(dump, pointer->bytenr);
    if (!failure)
        failure = bw_dump_give(dump);
    if (trees->tree->deleted)
        bw_fs_report(dump->fs, BW_NOTE, error);
    else
        bw_fs_report_lost(dump->fs, pointer->bytenr, error);
    return failure;
}

/* Trees. */

static struct bw_error *scan(struct trees *trees, uint8_t level, uint8_t lowest)
{
    const struct bw_scan plan = {
        .first = trees->dump.first,
        .last = trees->dump.last,
        .adopt = true,
        .announce = true,
        .leaf = take_leaf,
        .node = take_node,
        .lowest_level = lowest,
        .lost = take_lost,
        .context = trees,
    };
    trees->level = level;
    return bw_tree_scan(&trees->dump.fs->reader, &trees->tree->tree, &plan);
}

static struct bw_error *print_levels(struct trees *trees, const struct bw_dump_tree *tree)
{
    if (trees->dump.options.depth_first || trees->dump.part)
        return scan(trees, ALL_LEVELS, 0);
    for (uint8_t level = tree->tree.root.level; level > 0; level--)
        BW_TRY(scan(trees, level, level));
    return scan(trees, 0, 0);
}

static struct bw_error *print_tree(struct trees *trees, const struct bw_dump_tree *tree)
{
    trees->tree = tree;
    trees->dump.tree = tree->tree.id;
    BW_TRY(print_levels(trees, tree));
    return bw_dump_give(&trees->dump);
}

static struct bw_error *take_tree(void *context, const struct bw_dump_tree *tree)
{
    struct trees *trees = context;
    struct bw_buffer *text = &trees->dump.sheet.text;
    if (!trees->dump.options.json) {
        bw_buffer_format(text, "%s tree", tree->name);
        if (tree->key) {
            bw_buffer_append_byte(text, ' ');
            bw_print_key(text, tree->key);
            bw_buffer_append_byte(text, ' ');
        }
        bw_buffer_append_byte(text, '\n');
    }
    return print_tree(trees, tree);
}

static void print_totals(struct bw_dump *dump)
{
    char uuid[UUID_STR_LEN];
    const struct bw_superblock *superblock = &dump->fs->superblock;
    uuid_unparse_lower(superblock->fsid, uuid);
    if (!dump->options.json)
        bw_buffer_format(&dump->sheet.text,
                         "total bytes %" PRIu64 "\nbytes used %" PRIu64 "\nuuid %s\n",
                         superblock->total_bytes, superblock->bytes_used, uuid);
}

struct bw_error *bw_dump_trees(struct bw_fs *fs, const uint64_t *ids, size_t count,
                               const struct bw_dump_options *options, bw_consumer *consume,
                               void *context)
{
    struct trees trees = {0};
    bool totals = !count;
    BW_TRY(begin(&trees, fs, options, consume, context));
    const bool replayed = trees.dump.options.replayed && fs->status.log_replayed;
    struct bw_error *error = NULL;
    for (size_t i = 0; i < count && !error; i++) {
        error = bw_dump_tree_check(fs, ids[i]);
        totals |= ids[i] != BW_ROOT_TREE && ids[i] != BW_CHUNK_TREE && ids[i] != BW_TREE_LOG;
    }
    if (!count)
        error = bw_dump_each_tree(fs, NULL, replayed, take_tree, &trees);
    for (size_t i = 0; i < count && !error; i++)
        error = bw_dump_each_tree(fs, &ids[i], replayed, take_tree, &trees);
    if (!error && totals)
        print_totals(&trees.dump);
    return bw_dump_end(&trees.dump, error);
}

/* A block is printed as the root of a tree of its own. */
static struct bw_error *print_root_block(struct trees *trees, uint64_t bytenr,
                                         const struct bw_tree_block *block)
{
    const struct bw_tree_block_header header = bw_tree_block_header(block);
    const struct bw_dump_tree tree = {
        .tree = {header.owner, {bytenr, header.generation, header.level}, header.generation}};
    trees->tree = &tree;
    trees->dump.tree = header.owner;
    if (trees->dump.options.follow)
        return print_tree(trees, &tree);
    BW_TRY(scan(trees, ALL_LEVELS, header.level));
    return bw_dump_give(&trees->dump);
}

struct bw_error *bw_dump_block(struct bw_fs *fs, uint64_t bytenr,
                               const struct bw_dump_options *options, bw_consumer *consume,
                               void *context)
{
    struct trees trees = {0};
    struct bw_tree_block *block = NULL;
    BW_TRY(begin(&trees, fs, options, consume, context));
    struct bw_error *error = bw_tree_block_read(fs, bytenr, &block);
    if (!error) {
        error = print_root_block(&trees, bytenr, block);
    } else if (error->code != BW_ERROR_NOT_FOUND && error->code != BW_ERROR_NO_MEMORY) {
        struct bw_error *failure = print_damaged(&trees.dump, bytenr);
        if (!failure)
            failure = bw_dump_give(&trees.dump);
        bw_fs_report_lost(fs, bytenr, error);
        error = failure;
    }
    bw_tree_block_free(block);
    return bw_dump_end(&trees.dump, error);
}

struct bw_error *bw_item_format(const struct bw_fs *fs, const struct bw_item *item,
                                const struct bw_dump_options *options, char **text, size_t *length)
{
    struct bw_dump_options ours;
    struct bw_buffer buffer = {0};
    struct bw_json json = bw_json_start(&buffer, false);
    BW_TRY(BW_TAKE_OPTIONS(&ours, options));
    struct bw_printer printer = bw_dump_printer(fs, &ours);
    printer.text = &buffer;
    printer.json = ours.json ? &json : NULL;
    if (ours.json)
        bw_json_begin_object(&json, NULL);
    bw_item_print(&printer, item);
    if (ours.json)
        bw_json_end(&json);
    struct bw_error *error =
        printer.cut_off ? bw_error_create(BW_ERROR_CORRUPT, "the item is cut off") : NULL;
    return bw_give_text(&buffer, error, text, length);
}
