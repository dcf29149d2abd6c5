/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints the keys and sizes of all items of a tree: tree-items IMAGE TREE-ID */
#include <btrfs-walk/fs.h>
#include <btrfs-walk/tree.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print(const struct bw_item *item)
{
    printf("%" PRIu64 " %s %" PRIu64 ": %" PRIu32 " bytes\n", item->key.objectid,
           bw_key_type_name(item->key.type), item->key.offset, item->size);
}

int main(int argc, char **argv)
{
    const struct bw_fs_options options = {
        .struct_size = sizeof options, .paths = (const char *const *)argv + 1, .path_count = 1};
    struct bw_fs *fs = NULL;
    struct bw_items *items = NULL;
    const struct bw_item *item;
    struct bw_error *error = argc == 3 ? bw_fs_open(&options, &fs)
                                       : bw_error_create(BW_ERROR_USAGE, "tree-items IMAGE TREE");
    if (!error)
        error = bw_items_open(fs, strtoull(argv[2], NULL, 0), NULL, NULL, &items);
    while (!error && !(error = bw_items_next(items, &item, NULL)) && item)
        print(item);
    if (error)
        fprintf(stderr, "%s\n", error->message);
    int status = error != NULL;
    bw_error_free(error);
    bw_items_close(items);
    bw_fs_close(fs);
    return status;
}
