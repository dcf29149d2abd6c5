/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists where the blocks of the subvolume trees of an image lie: what the floor of the benchmark
 * reads.
 *
 * usage: block-list [-n] [-e] [-s SUBVOLUME-ID] IMAGE LIST
 *
 * LIST gets 64-bit numbers in the machine's byte order: the size of a block, then the offset of
 * every block in the image (of its first copy), ascending. A block that several trees share is
 * listed once. With -n only the blocks that names need: internal nodes, and leaves that hold
 * DIR_INDEX items. With -e those of the extent tree, too. Stdout gets the counts.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "base/vector.h"
#include "btree/scan.h"
#include "fs/fs.h"

struct list {
    struct bw_fs *fs;
    struct bw_key_set seen; /* addresses */
    bool names_only, extent_tree;
    struct bw_numbers offsets;
    uint64_t blocks, leaves, name_leaves;
};

static struct bw_error *add(struct list *list, uint64_t bytenr)
{
    struct bw_map_reply reply;
    BW_TRY(bw_wind_map(NULL, list->fs->reader.top, bytenr, list->fs->reader.nodesize, 1, &reply));
    return bw_numbers_push(&list->offsets, reply.location.offset);
}

static bool holds_names(const struct bw_node *leaf)
{
    for (uint32_t slot = 0; slot < leaf->item_count; slot++)
        if (bw_node_disk_item(leaf, slot)->key.type == BW_DIR_INDEX)
            return true;
    return false;
}

/* Lists the blocks of a tree. Those of a part that was seen in another tree are skipped. */
static struct bw_error *list_tree(struct list *list, const struct bw_tree *tree)
{
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL, .pointers = true};
    const struct bw_block_pointer *pointer = &scan.pointer;
    bw_block_scan_begin(&scan, &list->fs->reader, tree);
    while (bw_block_scan_next(&scan)) {
        if (scan.error)
            return BW_TAKE(scan.error);
        if (scan.step == BW_SCAN_POINTER) {
            const bool is_leaf = pointer->expectation.level == 0;
            BW_TRY(bw_key_set_add(&list->seen, pointer->bytenr, &scan.selected));
            list->blocks += scan.selected;
            list->leaves += scan.selected && is_leaf;
            if (scan.selected && !(is_leaf && list->names_only))
                BW_TRY(add(list, pointer->bytenr));
        } else if (holds_names(&scan.node)) {
            list->name_leaves++;
            if (list->names_only)
                BW_TRY(add(list, pointer->bytenr));
        }
    }
    return bw_block_scan_end(&scan);
}

/* Lists one tree, or all if `id` is 0. */
static struct bw_error *list_trees(struct list *list, uint64_t id)
{
    const struct bw_subvolume_table *table = &list->fs->subvolumes;
    for (size_t i = 0; i < table->count; i++)
        if (!table->items[i].deleted && (!id || table->items[i].tree.id == id))
            BW_TRY(list_tree(list, &table->items[i].tree));
    return list->extent_tree ? list_tree(list, &list->fs->extent_tree) : NULL;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static struct bw_error *write_list(const struct list *list, const char *path)
{
    uint64_t nodesize = list->fs->reader.nodesize;
    FILE *file = fopen(path, "w");
    if (!file)
        return bw_error_from_errno(errno, "cannot create %s", path);
    fwrite(&nodesize, sizeof nodesize, 1, file);
    fwrite(list->offsets.items, sizeof *list->offsets.items, list->offsets.count, file);
    bool bad = ferror(file);
    if (fclose(file) || bad)
        return bw_error_from_errno(errno, "cannot write %s", path);
    return NULL;
}

static struct bw_error *run(struct list *list, const char *image, const char *path, uint64_t id)
{
    const struct bw_fs_options options = {
        .struct_size = sizeof(struct bw_fs_options), .paths = &image, .path_count = 1};
    BW_TRY(bw_fs_open(&options, &list->fs));
    BW_TRY(list_trees(list, id));
    if (list->offsets.count)
        qsort(list->offsets.items, list->offsets.count, sizeof *list->offsets.items, ascending);
    BW_TRY(write_list(list, path));
    printf("listed=%zu blocks=%" PRIu64 " leaves=%" PRIu64 " name_leaves=%" PRIu64
           " nodesize=%" PRIu32 "\n",
           list->offsets.count, list->blocks, list->leaves, list->name_leaves,
           list->fs->reader.nodesize);
    return NULL;
}

int main(int argc, char **argv)
{
    struct list list = {0};
    uint64_t id = 0;
    int letter;
    while ((letter = getopt(argc, argv, "nes:")) != -1) {
        if (letter == 'n')
            list.names_only = true;
        else if (letter == 'e')
            list.extent_tree = true;
        else if (letter == 's')
            id = strtoull(optarg, NULL, 10);
        else
            return 2;
    }
    if (argc - optind != 2) {
        fputs("usage: block-list [-n] [-e] [-s SUBVOLUME-ID] IMAGE LIST\n", stderr);
        return 2;
    }
    BW_AUTO_ERROR struct bw_error *error = run(&list, argv[optind], argv[optind + 1], id);
    if (error)
        fprintf(stderr, "block-list: %s\n", error->message);
    bw_key_set_free(&list.seen);
    bw_numbers_free(&list.offsets);
    bw_fs_close(list.fs);
    return error ? 1 : 0;
}
