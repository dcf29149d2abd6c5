/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sheets of text, and the threads that print leaves. A leaf is small, so that the text of all that
 * are gathered is, too. */
#include "trees/dump_pages.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "btree/block.h"

struct bw_printer bw_dump_printer(const struct bw_fs *fs, const struct bw_dump_options *options)
{
    return (struct bw_printer){
        .checksum_items = options->checksum_items,
        .hide_names = options->hide_names,
        .sectorsize = fs->superblock.sectorsize,
        .checksum_size = (uint32_t)bw_checksum_size(fs->superblock.checksum_type),
    };
}

static void begin_sheet(const struct bw_dump *dump, struct bw_dump_sheet *sheet)
{
    sheet->json = bw_json_start(&sheet->text, false);
    sheet->printer = bw_dump_printer(dump->fs, &dump->options);
    sheet->printer.text = &sheet->text;
    sheet->printer.json = dump->options.json ? &sheet->json : NULL;
}

static unsigned most_leaves(const struct bw_dump *dump)
{
    unsigned most = BW_DUMP_LEAF_BYTES / dump->fs->reader.nodesize;
    return most < BW_DUMP_SHEETS ? most : BW_DUMP_SHEETS;
}

struct bw_error *bw_dump_begin(struct bw_dump *dump)
{
    begin_sheet(dump, &dump->sheet);
    for (unsigned i = 0; i < BW_DUMP_SHEETS; i++)
        begin_sheet(dump, &dump->leaf_sheets[i]);
    dump->leaves = bw_block_buffer(&dump->fs->reader, most_leaves(dump));
    dump->pool = bw_pool_create(bw_pool_workers(0));
    return dump->leaves && dump->pool ? NULL : bw_error_no_memory();
}

static struct bw_error *give_sheet(struct bw_dump *dump, struct bw_dump_sheet *sheet)
{
    struct bw_error *error = sheet->text.failed ? bw_error_no_memory() : NULL;
    if (!error && sheet->text.length)
        error = dump->consume(dump->context, sheet->text.data, sheet->text.length);
    sheet->text.length = 0;
    return error;
}

static bool wants(const struct bw_dump *dump, const struct bw_key *key)
{
    return bw_key_compare(key, &dump->first) >= 0 && bw_key_compare(key, &dump->last) <= 0;
}

static void print_item(const struct bw_dump *dump, const struct bw_block_print *block,
                       uint32_t slot)
{
    block->printer->cut_off = false;
    bool inside = bw_block_print_item(block, slot);
    if (!inside || block->printer->cut_off)
        bw_fs_report(dump->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT, "leaf %" PRIu64 " slot %" PRIu32 ": %s",
                                     block->bytenr, slot,
                                     inside ? "part of the item is cut off"
                                            : "the item lies outside of the leaf"));
}

/* The header, then the items or pointers that are wanted. */
static void print_block(const struct bw_dump *dump, const struct bw_block_print *block)
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
        print_item(dump, block, slot);
    }
}

static struct bw_block_print block_of(const struct bw_dump *dump, struct bw_dump_sheet *sheet,
                                      const struct bw_node *node, uint64_t bytenr)
{
    return (struct bw_block_print){.printer = &sheet->printer,
                                   .node = *node,
                                   .tree = dump->tree,
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
        block_of(dump, &dump->leaf_sheets[task], &leaf, bw_get64(header->bytenr));
    print_block(dump, &block);
}

static struct bw_error *give_leaves(struct bw_dump *dump)
{
    struct bw_error *error = NULL;
    if (dump->gathered)
        bw_pool_run(dump->pool, dump->gathered, print_leaf, dump);
    for (unsigned i = 0; i < dump->gathered; i++) {
        if (!error)
            error = give_sheet(dump, &dump->leaf_sheets[i]);
        dump->leaf_sheets[i].text.length = 0;
    }
    dump->gathered = 0;
    return error;
}

struct bw_error *bw_dump_give(struct bw_dump *dump)
{
    BW_TRY(give_leaves(dump));
    return give_sheet(dump, &dump->sheet);
}

struct bw_error *bw_dump_leaf(struct bw_dump *dump, const struct bw_node *leaf)
{
    if (!dump->gathered)
        BW_TRY(give_sheet(dump, &dump->sheet));
    memcpy(dump->leaves + (size_t)dump->gathered++ * leaf->nodesize, leaf->block, leaf->nodesize);
    return dump->gathered == most_leaves(dump) ? give_leaves(dump) : NULL;
}

struct bw_error *bw_dump_print(struct bw_dump *dump, const struct bw_node *node, uint64_t bytenr,
                               bool damaged)
{
    BW_TRY(give_leaves(dump));
    struct bw_block_print block = block_of(dump, &dump->sheet, node, bytenr);
    block.damaged = damaged;
    print_block(dump, &block);
    return dump->sheet.text.length > BW_DUMP_LEAF_BYTES ? give_sheet(dump, &dump->sheet) : NULL;
}

struct bw_error *bw_dump_end(struct bw_dump *dump, struct bw_error *error)
{
    struct bw_error *last = error || !dump->pool ? NULL : bw_dump_give(dump);
    bw_pool_destroy(dump->pool);
    free(dump->leaves);
    bw_buffer_free(&dump->sheet.text);
    for (unsigned i = 0; i < BW_DUMP_SHEETS; i++)
        bw_buffer_free(&dump->leaf_sheets[i].text);
    return bw_error_first(error, last);
}
