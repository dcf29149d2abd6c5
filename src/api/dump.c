/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Printing trees and blocks: which ones, in which order, and what is damaged. The order is that of
 * btrfs-progs: level by level, for which a tree is scanned once a level, or depth first. Memory is
 * a batch of leaves and some text.
 */
#include "btrfs-walk/dump.h"

#include <inttypes.h>
#include <uuid/uuid.h>

#include "api/dump.h"
#include "base/cleanup.h"
#include "base/struct_size.h"
#include "btree/scan.h"
#include "format/disk_items.h"
#include "graph/wind.h"
#include "record/block.h"

enum { GATHER_BYTES = 256 << 10, ALL_LEVELS = UINT8_MAX };

struct dump {
    struct bw_fs *fs;
    struct bw_dump_options options;
    struct bw_key first, last;
    bool part; /* of the keys: no internal nodes are printed */
    bw_consumer *consume;
    void *context;
    struct bw_buffer text;
    struct bw_json json;
    struct bw_printer printer;
    const struct bw_dump_tree *tree;
    uint8_t level; /* blocks of other levels are not printed; or ALL_LEVELS */
};

static struct bw_error *give(struct dump *dump)
{
    struct bw_error *error = dump->text.failed ? bw_error_no_memory() : NULL;
    if (!error && dump->text.length)
        error = dump->consume(dump->context, dump->text.data, dump->text.length);
    dump->text.length = 0;
    return error;
}

static struct bw_error *give_much(struct dump *dump)
{
    return dump->text.length >= GATHER_BYTES || dump->text.failed ? give(dump) : NULL;
}

static struct bw_error *take_options(struct bw_dump_options *options, struct bw_printer *printer,
                                     const struct bw_fs *fs, const struct bw_dump_options *given)
{
    BW_TRY(BW_TAKE_OPTIONS(options, given));
    *printer = (struct bw_printer){
        .checksum_items = options->checksum_items,
        .hide_names = options->hide_names,
        .sectorsize = fs->superblock.sectorsize,
        .checksum_size = (uint32_t)bw_checksum_size(fs->superblock.checksum_type),
    };
    return NULL;
}

static struct bw_error *begin(struct dump *dump, const struct bw_dump_options *options)
{
    BW_TRY(take_options(&dump->options, &dump->printer, dump->fs, options));
    dump->first = dump->options.first ? *dump->options.first : (struct bw_key){0};
    dump->last = dump->options.last ? *dump->options.last : BW_KEY_MAX;
    dump->part = dump->options.first || dump->options.last;
    dump->json = bw_json_start(&dump->text, false);
    dump->printer.text = &dump->text;
    dump->printer.json = dump->options.json ? &dump->json : NULL;
    return NULL;
}

static struct bw_error *end(struct dump *dump, struct bw_error *error)
{
    struct bw_error *last = give(dump);
    bw_buffer_free(&dump->text);
    return bw_error_first(error, last);
}

/* Blocks. */

static struct bw_block_print block_of(struct dump *dump, const struct bw_node *node,
                                      uint64_t bytenr)
{
    return (struct bw_block_print){.printer = &dump->printer,
                                   .node = *node,
                                   .tree = dump->tree->tree.id,
                                   .bytenr = bytenr,
                                   .checksum_header = dump->options.checksum_headers};
}

static uint64_t bytenr_of(const struct bw_node *node)
{
    return bw_get64(((const struct bw_disk_header *)node->block)->bytenr);
}

static bool wants(const struct dump *dump, const struct bw_key *key)
{
    return bw_key_compare(key, &dump->first) >= 0 && bw_key_compare(key, &dump->last) <= 0;
}

static struct bw_error *print_item(struct dump *dump, const struct bw_block_print *block,
                                   uint32_t slot)
{
    dump->printer.cut_off = false;
    bool inside = bw_block_print_item(block, slot);
    if (!inside || dump->printer.cut_off)
        bw_fs_report(dump->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT, "leaf %" PRIu64 " slot %" PRIu32 ": %s",
                                     block->bytenr, slot,
                                     inside ? "part of the item is cut off"
                                            : "the item lies outside of the leaf"));
    return give_much(dump);
}

/* The header, then the items or pointers that are wanted. */
static struct bw_error *print_block(struct dump *dump, const struct bw_block_print *block)
{
    const struct bw_node *node = &block->node;
    bool begun = !dump->part;
    if (begun)
        bw_block_print_header(block);
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        if (node->level) {
            bw_block_print_pointer(block, slot);
            continue;
        }
        struct bw_key key = bw_leaf_key(node, slot);
        if (!wants(dump, &key))
            continue;
        if (!begun)
            bw_block_print_header(block);
        begun = true;
        BW_TRY(print_item(dump, block, slot));
    }
    return give_much(dump);
}

static struct bw_error *take_leaf(void *context, const struct bw_node *leaf)
{
    struct dump *dump = context;
    const struct bw_block_print block = block_of(dump, leaf, bytenr_of(leaf));
    return print_block(dump, &block);
}

static struct bw_error *take_node(void *context, const struct bw_node *node)
{
    struct dump *dump = context;
    if (dump->part || (dump->level != ALL_LEVELS && dump->level != node->level))
        return NULL;
    const struct bw_block_print block = block_of(dump, node, bytenr_of(node));
    return print_block(dump, &block);
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

static struct bw_error *print_damaged(struct dump *dump, uint64_t bytenr)
{
    BW_AUTO_FREE uint8_t *bytes = bw_block_buffer(&dump->fs->reader, 1);
    if (!bytes)
        return bw_error_no_memory();
    if (!read_raw(dump->fs, bytenr, bytes))
        return NULL;
    struct bw_node node = bw_block_view(bytes, dump->fs->reader.nodesize);
    if (bytenr_of(&node) != bytenr)
        node.item_count = 0;
    struct bw_block_print block = block_of(dump, &node, bytenr);
    block.damaged = true;
    return print_block(dump, &block);
}

/* Nodes above the present level were reported when that level was printed. Blocks of a subvolume
 * that is being deleted may be gone. */
static struct bw_error *take_lost(void *context, const struct bw_block_pointer *pointer,
                                  struct bw_error *error)
{
    struct dump *dump = context;
    const uint8_t level = pointer->expectation.level;
    struct bw_error *failure = NULL;
    if (dump->level == ALL_LEVELS || dump->level == level)
        failure = print_damaged(dump, pointer->bytenr);
    if (!failure)
        failure = give(dump);
    if (dump->tree->deleted)
        bw_fs_report(dump->fs, BW_NOTE, error);
    else
        bw_fs_report_lost(dump->fs, pointer->bytenr, error);
    return failure;
}

/* Trees. */

static struct bw_error *scan(struct dump *dump, uint8_t level, uint8_t lowest)
{
    const struct bw_scan plan = {
        .first = dump->first,
        .last = dump->last,
        .adopt = true,
        .announce = true,
        .leaf = take_leaf,
        .node = take_node,
        .lowest_level = lowest,
        .lost = take_lost,
        .context = dump,
    };
    dump->level = level;
    return bw_tree_scan(&dump->fs->reader, &dump->tree->tree, &plan);
}

static struct bw_error *print_tree(struct dump *dump, const struct bw_dump_tree *tree)
{
    dump->tree = tree;
    if (dump->options.depth_first || dump->part)
        return scan(dump, ALL_LEVELS, 0);
    for (uint8_t level = tree->tree.root.level; level > 0; level--)
        BW_TRY(scan(dump, level, level));
    return scan(dump, 0, 0);
}

static struct bw_error *take_tree(void *context, const struct bw_dump_tree *tree)
{
    struct dump *dump = context;
    if (!dump->options.json) {
        bw_buffer_format(&dump->text, "%s tree", tree->name);
        if (tree->key) {
            bw_buffer_append_byte(&dump->text, ' ');
            bw_print_key(&dump->text, tree->key);
            bw_buffer_append_byte(&dump->text, ' ');
        }
        bw_buffer_append_byte(&dump->text, '\n');
    }
    return print_tree(dump, tree);
}

static void print_totals(struct dump *dump)
{
    char uuid[UUID_STR_LEN];
    const struct bw_superblock *superblock = &dump->fs->superblock;
    uuid_unparse_lower(superblock->fsid, uuid);
    if (!dump->options.json)
        bw_buffer_format(&dump->text, "total bytes %" PRIu64 "\nbytes used %" PRIu64 "\nuuid %s\n",
                         superblock->total_bytes, superblock->bytes_used, uuid);
}

struct bw_error *bw_dump_trees(struct bw_fs *fs, const uint64_t *ids, size_t count,
                               const struct bw_dump_options *options, bw_consumer *consume,
                               void *context)
{
    struct dump dump = {.fs = fs, .consume = consume, .context = context};
    BW_TRY(begin(&dump, options));
    bool totals = !count;
    struct bw_error *error = NULL;
    for (size_t i = 0; i < count && !error; i++) {
        error = bw_dump_tree_check(fs, ids[i]);
        totals |= ids[i] != BW_ROOT_TREE && ids[i] != BW_CHUNK_TREE && ids[i] != BW_TREE_LOG;
    }
    if (!count)
        error = bw_dump_each_tree(fs, NULL, take_tree, &dump);
    for (size_t i = 0; i < count && !error; i++)
        error = bw_dump_each_tree(fs, &ids[i], take_tree, &dump);
    if (!error && totals)
        print_totals(&dump);
    return end(&dump, error);
}

/* A block is printed as the root of a tree of its own. */
static struct bw_error *print_root_block(struct dump *dump, uint64_t bytenr,
                                         const struct bw_tree_block *block)
{
    const struct bw_tree_block_header header = bw_tree_block_header(block);
    const struct bw_dump_tree tree = {
        .tree = {header.owner, {bytenr, header.generation, header.level}, header.generation}};
    dump->tree = &tree;
    if (dump->options.follow)
        return print_tree(dump, &tree);
    return scan(dump, ALL_LEVELS, header.level);
}

struct bw_error *bw_dump_block(struct bw_fs *fs, uint64_t bytenr,
                               const struct bw_dump_options *options, bw_consumer *consume,
                               void *context)
{
    struct dump dump = {.fs = fs, .consume = consume, .context = context};
    static const struct bw_dump_tree none;
    struct bw_tree_block *block = NULL;
    BW_TRY(begin(&dump, options));
    struct bw_error *error = bw_tree_block_read(fs, bytenr, &block);
    if (!error) {
        error = print_root_block(&dump, bytenr, block);
    } else if (error->code != BW_ERROR_NOT_FOUND && error->code != BW_ERROR_NO_MEMORY) {
        dump.tree = &none;
        struct bw_error *failure = print_damaged(&dump, bytenr);
        if (!failure)
            failure = give(&dump);
        bw_fs_report_lost(fs, bytenr, error);
        error = failure;
    }
    bw_tree_block_free(block);
    return end(&dump, error);
}

struct bw_error *bw_item_format(const struct bw_fs *fs, const struct bw_item *item,
                                const struct bw_dump_options *options, char **text, size_t *length)
{
    struct bw_dump_options ours;
    struct bw_printer printer;
    struct bw_buffer buffer = {0};
    struct bw_json json = bw_json_start(&buffer, false);
    BW_TRY(take_options(&ours, &printer, fs, options));
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
