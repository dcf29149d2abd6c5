/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Printing trees and blocks: selects them, orders them, and prints damaged ones as far as possible.
 * The order is that of btrfs-progs: level by level, which scans a tree once for each level, or
 * depth first. Memory: a batch of leaves and their text.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/pool.h"
#include "base/struct_size.h"
#include "btree/block.h"
#include "btree/scan.h"
#include "btrfs-walk/tree.h"
#include "graph/wind.h"
#include "ondisk/disk_items.h"
#include "owners/tree_list.h"
#include "record/rows.h"
#include "trees/dump.h"

/* A tree to be printed. */
struct dump_tree {
    struct bw_tree tree;
    const char *name;         /* as btrfs-progs call it: "checksum" */
    const struct bw_key *key; /* of its root item; NULL: the superblock points to it */
    bool deleted;             /* it is being deleted: blocks may be gone */
};

/* A cursor over trees in the order of btrfs-progs: trees in the superblock, trees in the root tree,
 * logs. All zeros but for the first members: before the first tree. */
struct tree_cursor {
    struct bw_fs *fs;
    const uint64_t *id; /* the only one wanted; NULL: all */
    bool replayed;      /* with the changes of the log */
    unsigned step;
    struct bw_tree log;
    struct bw_fs_items items; /* root items, if is_open */
    bool is_open;
    struct dump_tree tree; /* the current one */
    struct bw_error *error;
};

static const char *name_of(uint64_t id)
{
    static const struct bw_value_name names[] = {
        {BW_ROOT_TREE, "root", false},
        {BW_EXTENT_TREE, "extent", false},
        {BW_CHUNK_TREE, "chunk", false},
        {BW_DEVICE_TREE, "device", false},
        {BW_TOP_SUBVOLUME, "fs", false},
        {BW_ROOT_TREE_DIR, "directory", false},
        {BW_CSUM_TREE, "checksum", false},
        {BW_QUOTA_TREE, "quota", false},
        {BW_UUID_TREE, "uuid", false},
        {BW_FREE_SPACE_TREE, "free space", false},
        {BW_BLOCK_GROUP_TREE, "block group", false},
        {BW_RAID_STRIPE_TREE, "raid stripe", false},
        {BW_REMAP_TREE, "remap", false},
        {BW_ORPHAN, "orphan", false},
        {BW_TREE_LOG, "log", false},
        {BW_TREE_LOG_FIXUP, "log fixup", false},
        {BW_TREE_RELOC, "reloc", false},
        {BW_DATA_RELOC_TREE, "data reloc", false},
        {BW_EXTENT_CSUM_OBJECT, "extent checksum", false},
        {BW_MULTIPLE_OBJECTS, "multiple", false},
        {0, NULL, false},
    };
    for (const struct bw_value_name *name = names; name->name; name++)
        if (name->value == id)
            return name->name;
    return "file";
}

/* Moves to the next tree; false at the end, or at an error. With the changes of the log, subvolumes
 * and the checksum tree have other roots than their items say. Unreadable items are reported. */
static bool next_tree(struct tree_cursor *cursor)
{
    struct bw_fs *fs = cursor->fs;
    const uint64_t wanted = cursor->id ? *cursor->id : 0;
    while (!cursor->error) {
        const struct bw_item *item;
        while (cursor->is_open && (item = bw_fs_items_next(&cursor->items))) {
            const uint64_t id = item->key.objectid;
            struct bw_root_item root;
            if (item->key.type != BW_ROOT_ITEM || (cursor->id && wanted != id))
                continue;
            struct bw_error *bad = bw_root_item_decode(item, &root);
            if (bad) {
                bw_fs_report(fs, BW_DAMAGE, bad);
                continue;
            }
            struct bw_tree *tree = &cursor->tree.tree;
            cursor->tree = (struct dump_tree){.tree = {id, root.root, root.last_snapshot},
                                              .name = name_of(id),
                                              .key = &item->key,
                                              .deleted = !root.references};
            const struct bw_subvolume *subvolume =
                cursor->replayed ? bw_subvolume_by_id(fs, id) : NULL;
            if (subvolume)
                tree->root = subvolume->tree.root;
            else if (cursor->replayed && id == BW_CSUM_TREE && !item->key.offset &&
                     fs->checksum_trees.count)
                tree->root = fs->checksum_trees.items[0].root;
            return true;
        }
        if (cursor->is_open) {
            cursor->is_open = false;
            cursor->error = bw_fs_items_error(&cursor->items);
            bw_fs_items_free(&cursor->items);
            continue;
        }
        const struct bw_tree *items = NULL;
        struct dump_tree tree = {.name = NULL};
        switch (cursor->step++) {
        case 0:
            tree = (struct dump_tree){.tree = *bw_fs_root_tree(fs), .name = "root"};
            break;
        case 1:
            tree = (struct dump_tree){.tree = fs->chunk_tree, .name = "chunk"};
            break;
        case 2:
            if (!cursor->id || wanted == BW_TREE_LOG)
                cursor->error = bw_log_tree_find(fs, &cursor->log);
            if (!cursor->error && cursor->log.id)
                tree = (struct dump_tree){.tree = cursor->log, .name = "log root"};
            break;
        case 3:
            if (fs->superblock.remap_root.bytenr)
                tree = (struct dump_tree){.tree = {BW_REMAP_TREE, fs->superblock.remap_root, 0},
                                          .name = "remap"};
            break;
        case 4:
            items = &fs->root_tree;
            break;
        case 5:
            items = cursor->log.id ? &cursor->log : NULL;
            break;
        default:
            return false;
        }
        if (tree.name && (!cursor->id || wanted == tree.tree.id)) {
            cursor->tree = tree;
            return true;
        }
        if (items) {
            struct bw_key first = {wanted, BW_ROOT_ITEM, 0},
                          last = {wanted, BW_ROOT_ITEM, UINT64_MAX};
            if (!cursor->id) {
                first = (struct bw_key){0};
                last = BW_KEY_MAX;
            }
            bw_fs_items_begin(&cursor->items, fs, items, first, last);
            cursor->is_open = true;
        }
    }
    return false;
}

/* Ends a cursor. Returns the error that ended it, if any. */
static struct bw_error *close_trees(struct tree_cursor *cursor)
{
    if (cursor->is_open)
        bw_fs_items_free(&cursor->items);
    return cursor->error;
}

/* The message of a missing tree lists the existing ones, in a line or two. */
struct bw_error *bw_dump_tree_check(struct bw_fs *fs, uint64_t id)
{
    enum { MOST = 20 };
    struct tree_cursor one = {.fs = fs, .id = &id};
    const bool is_there = next_tree(&one);
    BW_TRY(close_trees(&one));
    if (is_there)
        return NULL;

    BW_AUTO_BUFFER struct bw_buffer names = {0};
    struct tree_cursor all = {.fs = fs};
    uint64_t last = 0;
    for (unsigned count = 0; next_tree(&all);) {
        const uint64_t found = all.tree.tree.id;
        if (count && found == last)
            continue;
        last = found;
        if (count++ > MOST)
            continue;
        if (names.length)
            bw_buffer_append(&names, ", ", 2);
        if (count > MOST)
            bw_buffer_append(&names, "...", 3);
        else
            bw_print_objectid(&names, found, 0);
    }
    BW_TRY(close_trees(&all));
    return bw_error_create(BW_ERROR_NOT_FOUND, "there is no tree %" PRId64 "; there are %.*s",
                           (int64_t)id, (int)names.length, names.data ? names.data : "none");
}

/* Pages of text, and the threads that print leaves. Leaves are small, so the text of a batch is,
 * too. */

enum {
    PAGES = 32,             /* leaves that are gathered at most */
    LEAF_BYTES = 512 << 10, /* and their bytes */
    ALL_LEVELS = UINT8_MAX,
};

/* A dump that is being printed: its options, its consumer, and the batch of leaves. */
struct bw_dump {
    struct bw_fs *fs;
    struct bw_dump_options options;
    struct bw_key first, last;
    bool part;                            /* of the keys: no internal nodes are printed */
    const struct bw_rows *rows;           /* of items and pointers; NULL: text */
    struct bw_rows *own_rows;             /* for the option `json` */
    struct bw_rows *items[BW_ITEM_TYPES]; /* of each type of items */
    const struct dump_tree *tree;         /* the present one */
    bw_consumer *consume;
    void *context;
    struct bw_printer page; /* of all but leaves */
    uint8_t *leaves;
    unsigned gathered;
    struct bw_printer leaf_pages[PAGES];
    struct bw_pool *pool;
};

/* A printer for items of a file system. */
static struct bw_printer printer_of(const struct bw_fs *fs, const struct bw_dump_options *options)
{
    return (struct bw_printer){
        .json = options->json || options->rows,
        .checksum_items = options->checksum_items,
        .hide_names = options->hide_names,
        .part = {.sectorsize = fs->superblock.sectorsize, .checksum_size = bw_fs_checksum_size(fs)},
    };
}

static unsigned most_leaves(const struct bw_dump *dump)
{
    unsigned most = LEAF_BYTES / dump->fs->reader.nodesize;
    return most < PAGES ? most : PAGES;
}

static struct bw_error *write_page(struct bw_dump *dump, struct bw_printer *page)
{
    struct bw_error *error = bw_buffer_error(&page->text);
    if (!error && page->text.length)
        error = dump->consume(dump->context, page->text.data, page->text.length);
    page->text.length = 0;
    return error;
}

/* Prints the header, then the items or pointers that are wanted. */
static void print_block(const struct bw_dump *dump, const struct bw_block_print *block)
{
    const struct bw_node *node = &block->node;
    bool begun = !dump->part;
    if (begun)
        bw_block_print_header(block);
    if (begun && block->hex) {
        bw_block_print_bytes(block);
        return;
    }
    for (uint32_t slot = 0; slot < node->item_count; slot++) {
        if (node->level) {
            bw_block_print_pointer(block, slot);
            continue;
        }
        const struct bw_key key = bw_leaf_key(node, slot);
        if (bw_key_compare(&key, &dump->first) < 0 || bw_key_compare(&key, &dump->last) > 0)
            continue;
        if (!begun)
            bw_block_print_header(block);
        begun = true;
        block->printer->cut_off = false;
        const bool inside = bw_block_print_item(block, slot);
        if (!inside || block->printer->cut_off)
            bw_fs_report_text(dump->fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                              "leaf %" PRIu64 " slot %" PRIu32 ": %s", block->bytenr, slot,
                              inside ? "part of the item is cut off"
                                     : "the item lies outside of the leaf");
    }
}

static struct bw_block_print block_of(const struct bw_dump *dump, struct bw_printer *page,
                                      const struct bw_node *node, uint64_t bytenr)
{
    return (struct bw_block_print){.printer = page,
                                   .hex = dump->options.hex,
                                   .rows = dump->rows,
                                   .items = dump->items,
                                   .node = *node,
                                   .tree = dump->tree ? dump->tree->tree.id : 0,
                                   .bytenr = bytenr,
                                   .checksum_header = dump->options.checksum_headers};
}

static void print_leaf(void *context, unsigned worker, size_t task)
{
    struct bw_dump *dump = context;
    (void)worker;
    const uint32_t nodesize = dump->fs->reader.nodesize;
    const struct bw_node leaf = bw_node_view(dump->leaves + task * nodesize, nodesize);
    const struct bw_disk_header *header = (const void *)leaf.block;
    const struct bw_block_print block =
        block_of(dump, &dump->leaf_pages[task], &leaf, bw_get64(header->bytenr));
    print_block(dump, &block);
}

static struct bw_error *print_gathered_leaves(struct bw_dump *dump)
{
    struct bw_error *error = NULL;
    if (dump->gathered)
        bw_pool_run(dump->pool, dump->gathered, print_leaf, dump);
    for (unsigned i = 0; i < dump->gathered; i++) {
        if (!error)
            error = write_page(dump, &dump->leaf_pages[i]);
        dump->leaf_pages[i].text.length = 0;
    }
    dump->gathered = 0;
    return error;
}

static struct bw_error *write_all(struct bw_dump *dump)
{
    BW_TRY(print_gathered_leaves(dump));
    return write_page(dump, &dump->page);
}

/* Prints a block at once. */
static struct bw_error *print_now(struct bw_dump *dump, const struct bw_node *node, uint64_t bytenr,
                                  bool damaged)
{
    BW_TRY(print_gathered_leaves(dump));
    struct bw_block_print block = block_of(dump, &dump->page, node, bytenr);
    block.damaged = damaged;
    print_block(dump, &block);
    return dump->page.text.length > LEAF_BYTES ? write_page(dump, &dump->page) : NULL;
}

/* Writes the remaining text unless there was an error, and frees everything. Returns the first
 * error. */
static struct bw_error *end_dump(struct bw_dump *dump, struct bw_error *error)
{
    struct bw_error *last = error || !dump->pool ? NULL : write_all(dump);
    bw_pool_destroy(dump->pool);
    free(dump->leaves);
    bw_rows_destroy(dump->own_rows);
    for (unsigned i = 0; i < BW_ITEM_TYPES; i++)
        bw_rows_destroy(dump->items[i]);
    bw_buffer_free(&dump->page.text);
    for (unsigned i = 0; i < PAGES; i++)
        bw_buffer_free(&dump->leaf_pages[i].text);
    return bw_error_first(error, last);
}

/* Trees and blocks. */

static struct bw_error *begin_dump(struct bw_dump *dump, struct bw_fs *fs,
                                   const struct bw_dump_options *options, bw_consumer *consume,
                                   void *context)
{
    *dump = (struct bw_dump){.fs = fs, .consume = consume, .context = context};
    BW_TRY(BW_TAKE_OPTIONS(&dump->options, options));
    if (options->hex && (options->json || options->rows || options->hide_names))
        return bw_error_create(BW_ERROR_USAGE,
                               "hexadecimal text excludes rows, JSON and hidden names");
    dump->first = dump->options.first ? *dump->options.first : (struct bw_key){0};
    dump->last = dump->options.last ? *dump->options.last : BW_KEY_MAX;
    dump->part = dump->options.first || dump->options.last;
    dump->page = printer_of(fs, &dump->options);
    for (unsigned i = 0; i < PAGES; i++)
        dump->leaf_pages[i] = dump->page;

    /* The rows of items and, for JSON, of the record. */
    const struct bw_rows_options lines = {
        .struct_size = sizeof lines, .style = BW_ROWS_JSON_LINES, .terminator = '\n'};
    if (dump->options.json && !dump->options.rows)
        BW_TRY(bw_rows_create("iteminfo", &lines, &dump->own_rows));
    dump->rows = dump->options.rows ? dump->options.rows : dump->own_rows;
    if (dump->rows && bw_rows_record(dump->rows) != &bw_iteminfo_record)
        return bw_error_create(BW_ERROR_USAGE, "the rows of a dump are of the record iteminfo");
    for (unsigned i = 0; i < BW_ITEM_TYPES; i++) {
        const struct bw_structure *structure = bw_structure_numbered(i);
        if (structure)
            BW_TRY(
                bw_rows_of_structure(structure, dump->rows != NULL, dump->rows, &dump->items[i]));
    }

    dump->leaves = bw_block_buffer(&fs->reader, most_leaves(dump));
    dump->pool = bw_pool_create(bw_pool_workers(0));
    return dump->leaves && dump->pool ? NULL : bw_error_no_memory();
}

static uint64_t bytenr_of(const struct bw_node *node)
{
    return bw_get64(((const struct bw_disk_header *)node->block)->bytenr);
}

/* Damage. */

/* Prints a block without any checks: the first copy that contains the right address, or else any
 * copy. */
static struct bw_error *print_damaged(struct bw_dump *dump, uint64_t bytenr)
{
    struct bw_fs *fs = dump->fs;
    const uint32_t nodesize = fs->reader.nodesize;
    BW_AUTO_FREE uint8_t *bytes = bw_block_buffer(&fs->reader, 1);
    struct bw_mapping mapping;
    bool is_read = false, is_right = false;
    if (!bytes)
        return bw_error_no_memory();
    BW_AUTO_ERROR struct bw_error *none = bw_fs_map(fs, bytenr, nodesize, 1, &mapping);
    struct bw_node node = {.block = bytes};
    for (unsigned copy = 1; !none && copy <= mapping.copies && !is_right; copy++) {
        struct bw_request request = {.kind = BW_REQUEST_RAW,
                                     .mirror = (uint8_t)copy,
                                     .length = nodesize,
                                     .address = bytenr,
                                     .buffer = bytes};
        bw_wind(NULL, fs->reader.top, &request, 1);
        BW_AUTO_ERROR struct bw_error *error = request.error;
        is_read |= !error;
        is_right = !error && bytenr_of(&node) == bytenr;
    }
    if (!is_read)
        return NULL;
    node = bw_block_view(bytes, nodesize);
    if (bytenr_of(&node) != bytenr)
        node.item_count = 0;
    return print_now(dump, &node, bytenr, true);
}

/* Trees. */

/* Prints the blocks of a level, or of all levels. Leaves are printed in batches. */
static struct bw_error *scan_tree(struct bw_dump *dump, uint8_t level, uint8_t lowest)
{
    struct bw_fs *fs = dump->fs;
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {.first = dump->first,
                                 .last = dump->last,
                                 .adopt = true,
                                 .announce = true,
                                 .nodes = true,
                                 .lowest_level = lowest};
    bw_block_scan_begin(&scan, &fs->reader, &dump->tree->tree);
    while (bw_block_scan_next(&scan)) {
        const uint64_t bytenr = scan.pointer.bytenr;
        const bool is_wanted = level == ALL_LEVELS || level == scan.pointer.expectation.level;
        if (scan.step == BW_SCAN_LEAF) {
            if (!dump->gathered)
                BW_TRY(write_page(dump, &dump->page));
            memcpy(dump->leaves + (size_t)dump->gathered++ * fs->reader.nodesize, scan.node.block,
                   fs->reader.nodesize);
            if (dump->gathered == most_leaves(dump))
                BW_TRY(print_gathered_leaves(dump));
        } else if (scan.step == BW_SCAN_NODE) {
            if (is_wanted && !dump->part)
                BW_TRY(print_now(dump, &scan.node, bytenr, false));
        } else {
            /* Nodes above the present level were reported when that level was printed. Blocks of a
             * subvolume that is being deleted may be gone. */
            struct bw_error *failure = is_wanted ? print_damaged(dump, bytenr) : NULL;
            if (!failure)
                failure = write_all(dump);
            if (dump->tree->deleted)
                bw_fs_report(fs, BW_NOTE, BW_TAKE(scan.error));
            else
                bw_fs_report_lost(fs, bytenr, BW_TAKE(scan.error));
            BW_TRY(failure);
        }
    }
    return bw_block_scan_end(&scan);
}

/* Prints a tree depth first, or level by level from the root down. */
static struct bw_error *print_tree(struct bw_dump *dump, const struct dump_tree *tree)
{
    dump->tree = tree;
    if (dump->options.depth_first || dump->part) {
        BW_TRY(scan_tree(dump, ALL_LEVELS, 0));
    } else {
        for (uint8_t level = tree->tree.root.level; level > 0; level--)
            BW_TRY(scan_tree(dump, level, level));
        BW_TRY(scan_tree(dump, 0, 0));
    }
    return write_all(dump);
}

/* Prints the trees with an id, or all if `id` is NULL, each after its name. */
static struct bw_error *print_trees(struct bw_dump *dump, const uint64_t *id)
{
    struct bw_fs *fs = dump->fs;
    struct bw_buffer *text = &dump->page.text;
    struct tree_cursor cursor = {
        .fs = fs, .id = id, .replayed = dump->options.replayed && fs->status.log_replayed};
    struct bw_error *error = NULL;
    while (!error && next_tree(&cursor)) {
        const struct dump_tree *tree = &cursor.tree;
        if (!dump->rows) {
            bw_buffer_format(text, "%s tree", tree->name);
            if (tree->key) {
                bw_buffer_append(text, " key ", 5);
                bw_print_key(text, tree->key);
                bw_buffer_append_byte(text, ' ');
            }
            bw_buffer_append_byte(text, '\n');
        }
        error = print_tree(dump, tree);
    }
    return bw_error_first(error, close_trees(&cursor));
}

struct bw_error *bw_dump_trees(struct bw_fs *fs, const uint64_t *ids, size_t count,
                               const struct bw_dump_options *options, bw_consumer *consume,
                               void *context)
{
    struct bw_dump dump;
    bool totals = !count;
    struct bw_error *error = begin_dump(&dump, fs, options, consume, context);
    for (size_t i = 0; i < count && !error; i++) {
        error = bw_dump_tree_check(fs, ids[i]);
        totals |= ids[i] != BW_ROOT_TREE && ids[i] != BW_CHUNK_TREE && ids[i] != BW_TREE_LOG;
    }
    if (!count && !error)
        error = print_trees(&dump, NULL);
    for (size_t i = 0; i < count && !error; i++)
        error = print_trees(&dump, &ids[i]);
    if (!error && totals && !dump.rows) {
        const struct bw_superblock *superblock = &fs->superblock;
        char uuid[BW_UUID_LENGTH + 1];
        bw_uuid_text(superblock->fsid, uuid);
        bw_buffer_format(&dump.page.text,
                         "total bytes %" PRIu64 "\nbytes used %" PRIu64 "\nuuid %s\n",
                         superblock->total_bytes, superblock->bytes_used, uuid);
    }
    return end_dump(&dump, error);
}

/* A block is printed like the root of a separate tree. */
struct bw_error *bw_dump_block(struct bw_fs *fs, uint64_t bytenr,
                               const struct bw_dump_options *options, bw_consumer *consume,
                               void *context)
{
    struct bw_dump dump;
    struct bw_tree_block *block = NULL;
    struct bw_error *error = begin_dump(&dump, fs, options, consume, context);
    if (error)
        return end_dump(&dump, error);
    error = bw_tree_block_read(fs, bytenr, &block);
    if (!error) {
        const struct bw_tree_block_header header = bw_tree_block_header(block);
        const struct dump_tree tree = {
            .tree = {header.owner, {bytenr, header.generation, header.level}, header.generation}};
        dump.tree = &tree;
        if (dump.options.follow)
            error = print_tree(&dump, &tree);
        else
            error = scan_tree(&dump, ALL_LEVELS, header.level);
        if (!error)
            error = write_all(&dump);
    } else if (error->code != BW_ERROR_NOT_FOUND && error->code != BW_ERROR_NO_MEMORY) {
        struct bw_error *failure = print_damaged(&dump, bytenr);
        if (!failure)
            failure = write_all(&dump);
        bw_fs_report_lost(fs, bytenr, error);
        error = failure;
    }
    bw_tree_block_free(block);
    return end_dump(&dump, error);
}

struct bw_error *bw_item_format(const struct bw_fs *fs, const struct bw_item *item,
                                const struct bw_dump_options *options, char **text, size_t *length)
{
    const struct bw_structure *structure = bw_structure_numbered(bw_structure_number(&item->key));
    struct bw_dump_options ours;
    struct bw_rows *rows = NULL;
    BW_TRY(BW_TAKE_OPTIONS(&ours, options));
    if (structure)
        BW_TRY(bw_rows_of_structure(structure, ours.json, NULL, &rows));
    struct bw_printer printer = printer_of(fs, &ours);
    bw_item_print(&printer, rows, item);
    bw_rows_destroy(rows);
    struct bw_error *error =
        printer.cut_off ? bw_error_create(BW_ERROR_CORRUPT, "the item is cut off") : NULL;
    return bw_give_text(&printer.text, error, text, length);
}
