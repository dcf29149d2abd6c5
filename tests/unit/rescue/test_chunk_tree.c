/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/rescue/chunk_tree.c: chunks in old leaves of a lost chunk tree. */
#include "support/image_writer_internal.h"
#include "support/walk_helpers.h"

#include "ondisk/disk_items.h"

enum { OVERLAP = 1 << 20, OLD_GENERATION = 5 };

static void make_old(uint8_t *block, uint32_t nodesize, void *closure)
{
    struct bw_disk_header *header = (void *)block;
    struct bw_disk_item *item = (void *)(block + sizeof *header);
    header->generation = bw_put64(OLD_GENERATION);
    item->key.offset = bw_put64(*(const uint64_t *)closure - OVERLAP);
}

/* The space of an old chunk was used again: the chunk of all tree blocks begins in it. The leaf
 * with the old chunk has the lower key, but the newer chunk counts. */
static void test_newer_chunk(void **state)
{
    struct iw_image *image = iw_create(
        &(struct iw_options){.nodesize = 4096, .data_chunks = 1, .chunk_gap = 2 * OVERLAP});
    struct report_log log = {0};
    struct bw_fs *fs;
    uint64_t metadata = 0, data = 0;
    iw_shape(image, BW_CHUNK_TREE, 1, 0, 0);
    fill_sample(image);
    iw_write_memory(image);
    for (size_t i = 0; i < iw_chunk_count(image); i++) {
        const struct iw_chunk *chunk = iw_chunk(image, i);
        if (chunk->type & BW_GROUP_METADATA)
            metadata = chunk->logical;
        else if (chunk->type & BW_GROUP_DATA)
            data = chunk->logical;
    }
    const struct bw_key key = {BW_FIRST_CHUNK, BW_CHUNK_ITEM, data};
    iw_rewrite_block(image, iw_block_of_key(image, BW_CHUNK_TREE, key)->logical, make_old,
                     &metadata, true);
    iw_corrupt(image, iw_root_block(image, BW_CHUNK_TREE)->logical, IW_ALL_COPIES, 0, 4096,
               IW_ZERO);
    expect_success(open_image(image, &log, &fs));
    assert_int_equal(report_log_count(&log, "the chunk tree is lost: it was rebuilt"), 1);
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){0});
    expect_paths(image, &result);
    walk_result_free(&result);
    bw_fs_close(fs);
    report_log_free(&log);
    iw_destroy(image);
}
