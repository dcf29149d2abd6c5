/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tree blocks with a right checksum and content that makes no sense: the walk ends soon, lists
 * nothing that is not there, and keeps what the bad block does not hold.
 */
#include "ondisk/node.h"
#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

enum { NODESIZE = 4096 };

/* Helpers on the bytes of blocks. */

static struct bw_disk_header *header_of(uint8_t *block)
{
    return (void *)block;
}

static struct bw_disk_item *items_of(uint8_t *block)
{
    return (void *)(block + sizeof(struct bw_disk_header));
}

static struct bw_disk_key_pointer *pointers_of(uint8_t *block)
{
    return (void *)(block + sizeof(struct bw_disk_header));
}

/* The number of the first item of a type, or of the last item. */
static uint32_t find_item(uint8_t *block, uint8_t type)
{
    uint32_t slot = 0, count = bw_get32(header_of(block)->item_count);
    while (slot + 1 < count && items_of(block)[slot].key.type != type)
        slot++;
    return slot;
}

static struct bw_disk_dir_item *first_entry(uint8_t *block)
{
    uint32_t slot = find_item(block, BW_DIR_INDEX);
    return (void *)(block + sizeof(struct bw_disk_header) + bw_get32(items_of(block)[slot].offset));
}

/* Editors: block, its size, closure (not used). */
#define EDITOR(name, statement)                                        \
    static void name(uint8_t *block, uint32_t nodesize, void *closure) \
    {                                                                  \
        (void)nodesize;                                                \
        (void)closure;                                                 \
        statement;                                                     \
    }

EDITOR(wrong_level, header_of(block)->level = 3)
EDITOR(huge_level, header_of(block)->level = 255)
EDITOR(no_items, header_of(block)->item_count = bw_put32(0))
EDITOR(huge_count, header_of(block)->item_count = bw_put32(UINT32_MAX))
EDITOR(large_count, header_of(block)->item_count = bw_put32(nodesize / 25))
EDITOR(most_items, header_of(block)->item_count = bw_put32((nodesize - 101) / 25))
EDITOR(most_pointers, header_of(block)->item_count = bw_put32((nodesize - 101) / 33))
EDITOR(other_owner, header_of(block)->owner = bw_put64(BW_CSUM_TREE))
EDITOR(other_generation, header_of(block)->generation = bw_put64(11))
EDITOR(other_bytenr, header_of(block)->bytenr = bw_put64(4096))
EDITOR(noise, memset(block + 101, 0xa5, nodesize - 101))
EDITOR(zeros, memset(block + 101, 0, nodesize - 101))
EDITOR(ones, memset(block + 101, 0xff, nodesize - 101))

/* Of leaves. */
EDITOR(offset_behind, items_of(block)[find_item(block, BW_DIR_INDEX)].offset = bw_put32(nodesize))
EDITOR(offset_in_table, items_of(block)[find_item(block, BW_DIR_INDEX)].offset = bw_put32(0))
EDITOR(offset_huge,
       items_of(block)[find_item(block, BW_DIR_INDEX)].offset = bw_put32(UINT32_MAX - 3))
EDITOR(size_huge, items_of(block)[find_item(block, BW_DIR_INDEX)].size = bw_put32(UINT32_MAX))
EDITOR(size_large, items_of(block)[find_item(block, BW_DIR_INDEX)].size = bw_put32(nodesize))
EDITOR(size_small, items_of(block)[find_item(block, BW_DIR_INDEX)].size = bw_put32(10))
EDITOR(size_none, items_of(block)[find_item(block, BW_DIR_INDEX)].size = bw_put32(0))
EDITOR(all_sizes, for (uint32_t i = 0; i < bw_get32(header_of(block)->item_count); i++)
                      items_of(block)[i]
                          .size = bw_put32(bw_get32(items_of(block)[i].size) + 7))
EDITOR(long_name, first_entry(block)->name_length = bw_put16(UINT16_MAX))
EDITOR(longer_name, first_entry(block)->name_length = bw_put16(300))
EDITOR(no_name, first_entry(block)->name_length = bw_put16(0))
EDITOR(long_data, first_entry(block)->data_length = bw_put16(UINT16_MAX))
EDITOR(slash, ((char *)(first_entry(block) + 1))[1] = '/')
EDITOR(nul, ((char *)(first_entry(block) + 1))[1] = '\0')
EDITOR(dots, first_entry(block)->name_length = bw_put16(2); memcpy(first_entry(block) + 1, "..", 2))
EDITOR(dot, first_entry(block)->name_length = bw_put16(1); memcpy(first_entry(block) + 1, ".", 1))
EDITOR(entry_to_itself, first_entry(block)->type = BW_FILE_DIRECTORY;
       first_entry(block)->location.objectid =
           items_of(block)[find_item(block, BW_DIR_INDEX)].key.objectid)
EDITOR(entry_to_top, first_entry(block)->type = BW_FILE_DIRECTORY;
       first_entry(block)->location.objectid = bw_put64(TOP))
EDITOR(entry_to_0, first_entry(block)->type = BW_FILE_DIRECTORY;
       first_entry(block)->location.objectid = bw_put64(0))
EDITOR(entry_to_max, first_entry(block)->type = BW_FILE_DIRECTORY;
       first_entry(block)->location.objectid = bw_put64(UINT64_MAX))
EDITOR(entry_to_subvolume, first_entry(block)->type = BW_FILE_DIRECTORY;
       first_entry(block)->location.type = BW_ROOT_ITEM;
       first_entry(block)->location.objectid = bw_put64(FS))
EDITOR(unknown_type, first_entry(block)->type = 99)
EDITOR(swapped_items, struct bw_disk_item first = items_of(block)[0];
       uint32_t last = bw_get32(header_of(block)->item_count) - 1;
       items_of(block)[0] = items_of(block)[last]; items_of(block)[last] = first)
EDITOR(
    backward_items, uint32_t last = bw_get32(header_of(block)->item_count) - 1;
    for (uint32_t i = 1; i < last; i++, last--) {
        struct bw_disk_item first = items_of(block)[i];
        items_of(block)[i] = items_of(block)[last];
        items_of(block)[last] = first;
    })

/* Of nodes. */
static void point_at(uint8_t *block, uint32_t slot, uint64_t bytenr)
{
    pointers_of(block)[slot].bytenr = bw_put64(bytenr);
}
EDITOR(child_is_itself, point_at(block, 0, bw_get64(header_of(block)->bytenr)))
EDITOR(children_are_itself, for (uint32_t i = 0; i < bw_get32(header_of(block)->item_count); i++)
                                point_at(block, i, bw_get64(header_of(block)->bytenr)))
EDITOR(children_are_one, for (uint32_t i = 0; i < bw_get32(header_of(block)->item_count); i++)
                             pointers_of(block)[i]
                                 .bytenr = pointers_of(block)[0].bytenr)
EDITOR(child_unaligned, point_at(block, 0, 4097))
EDITOR(child_at_0, point_at(block, 0, 0))
EDITOR(child_far, point_at(block, 0, (uint64_t)-4096))
EDITOR(child_newer, pointers_of(block)[0].generation = bw_put64(11))
EDITOR(swapped_pointers, struct bw_disk_key_pointer first = pointers_of(block)[0];
       pointers_of(block)[0] = pointers_of(block)[1]; pointers_of(block)[1] = first)
EDITOR(equal_keys, pointers_of(block)[1].key = pointers_of(block)[0].key)
EDITOR(last_key_beyond, pointers_of(block)[bw_get32(header_of(block)->item_count) - 1]
                            .key.objectid = bw_put64(UINT64_MAX))

static iw_block_editor *const leaf_edits[] = {
    wrong_level,
    huge_level,
    no_items,
    huge_count,
    large_count,
    most_items,
    other_owner,
    other_generation,
    other_bytenr,
    noise,
    zeros,
    ones,
    offset_behind,
    offset_in_table,
    offset_huge,
    size_huge,
    size_large,
    size_small,
    size_none,
    all_sizes,
    long_name,
    longer_name,
    no_name,
    long_data,
    slash,
    nul,
    dots,
    dot,
    entry_to_itself,
    entry_to_top,
    entry_to_0,
    entry_to_max,
    entry_to_subvolume,
    unknown_type,
    swapped_items,
    backward_items,
};

static iw_block_editor *const node_edits[] = {
    wrong_level,
    huge_level,
    no_items,
    huge_count,
    large_count,
    most_pointers,
    other_owner,
    other_generation,
    other_bytenr,
    noise,
    zeros,
    ones,
    child_is_itself,
    children_are_itself,
    children_are_one,
    child_unaligned,
    child_at_0,
    child_far,
    child_newer,
    swapped_pointers,
    equal_keys,
    last_key_beyond,
};

/* An image with levels 0 to 3 whose leaves hold entries. */
static struct iw_image *make_image(void)
{
    struct iw_image *image = iw_create(
        &(struct iw_options){.nodesize = NODESIZE, .items_per_leaf = 9, .pointers_per_node = 4});
    fill_depths(image, 5, 10);
    iw_snapshot(image, 256, FS, FS, TOP, "snapshot", 0);
    iw_write_memory(image);
    return image;
}

static struct walk_result walk_image(const struct iw_image *image, struct report_log *log)
{
    struct bw_fs *fs;
    struct walk_result result = {0};
    struct bw_error *error = open_image(image, log, &fs);
    if (!error)
        result = walk_fs(fs, &(struct bw_walk_options){.threads = 2});
    bw_error_free(error);
    bw_fs_close(fs);
    return result;
}

/* One change of one block. `exact`: no wrong path may be listed. `silent`: the block remains
 * plausible, so nobody can detect the change. */
static void check_edit(iw_block_editor *edit, uint64_t logical, size_t number, bool exact,
                       bool silent)
{
    struct iw_image *image = make_image();
    struct report_log log = {0};
    struct iw_paths all = iw_expected_paths(image);
    iw_rewrite_block(image, logical, edit, NULL, true);
    struct walk_result result = walk_image(image, &log);
    const char *example = "";
    assert_null(result.error);
    size_t foreign = count_foreign(&result, &all, &example);
    if (exact && foreign)
        fail_msg("edit %zu of block %llu: %zu paths too many, as \"%s\"", number,
                 (unsigned long long)logical, foreign, example);
    if (!silent && count_missing(&result, &all, &example) && !log.counts[BW_DAMAGE])
        fail_msg("edit %zu of block %llu: \"%s\" is missing without a word", number,
                 (unsigned long long)logical, example);
    walk_result_free(&result);
    iw_paths_free(&all);
    report_log_free(&log);
    iw_destroy(image);
}

/* Changes of names or types may change the list. */
static bool may_list_others(iw_block_editor *edit)
{
    return edit == size_small || edit == all_sizes || edit == longer_name || edit == unknown_type ||
           edit == offset_in_table || edit == entry_to_itself || edit == entry_to_max ||
           edit == no_name || edit == backward_items;
}

/* The entry turns into one of something else. */
static bool changes_type(iw_block_editor *edit)
{
    return edit == unknown_type || edit == entry_to_max || edit == entry_to_subvolume;
}

static void test_leaves(void **state)
{
    struct iw_image *image = make_image();
    const struct iw_block *leaf;
    for (size_t nth = 0; (leaf = iw_block_find(image, FS, 0, nth)); nth += 2 * variant_step())
        for (size_t i = 0; i < COUNT(leaf_edits); i++)
            check_edit(leaf_edits[i], leaf->logical, i, !may_list_others(leaf_edits[i]),
                       changes_type(leaf_edits[i]));
    iw_destroy(image);
}

static void test_nodes(void **state)
{
    struct iw_image *image = make_image();
    const struct iw_block *node;
    assert_true(iw_root_block(image, FS)->level >= 3);
    for (unsigned level = 1; level < BW_MAX_LEVEL; level++)
        for (size_t nth = 0; (node = iw_block_find(image, FS, level, nth)); nth += variant_step())
            for (size_t i = 0; i < COUNT(node_edits); i++)
                if (node->item_count > 1)
                    check_edit(node_edits[i], node->logical, i, true,
                               node_edits[i] == last_key_beyond &&
                                   !iw_block_find(image, FS, level, nth + 1));
    iw_destroy(image);
}

/* The other trees that are read: root tree and chunk tree. */
static void test_other_trees(void **state)
{
    static const uint64_t trees[] = {BW_ROOT_TREE, BW_CHUNK_TREE};
    for (size_t tree = 0; tree < COUNT(trees); tree++)
        for (unsigned level = 0; level < 3; level++)
            for (size_t i = 0; i < (level ? COUNT(node_edits) : COUNT(leaf_edits)); i++) {
                struct iw_image *image =
                    iw_create(&(struct iw_options){.nodesize = NODESIZE, .data_chunks = 20});
                iw_shape(image, trees[tree], 4, 3, 2);
                fill_sample(image);
                iw_write_memory(image);
                const struct iw_block *block =
                    iw_block_find(image, trees[tree], level, level ? 0 : 1);
                iw_rewrite_block(image, block->logical, level ? node_edits[i] : leaf_edits[i], NULL,
                                 true);
                struct walk_result result = walk_image(image, NULL);
                walk_result_free(&result);
                iw_destroy(image);
            }
}

/* Every node of seven levels points at itself or the same child, many times over: a walk by all
 * ways never ends. */
static void test_many_ways_to_one_block(void **state)
{
    iw_block_editor *const edits[] = {children_are_one, children_are_itself, equal_keys};
    for (size_t i = 0; i < COUNT(edits); i++) {
        struct iw_image *image = iw_create(&(struct iw_options){.nodesize = NODESIZE});
        for (unsigned n = 0; n < 3000; n++) {
            char name[32];
            snprintf(name, sizeof name, "file %u", n);
            iw_file(image, FS, TOP, name);
        }
        iw_shape(image, FS, 2, 100, 7);
        iw_write_memory(image);
        const struct iw_block *node;
        for (unsigned level = 1; level < 8; level++)
            for (size_t nth = 0; (node = iw_block_find(image, FS, level, nth)); nth++)
                iw_rewrite_block(image, node->logical, edits[i], NULL, true);
        struct report_log log = {0};
        struct walk_result result = walk_image(image, &log);
        assert_true(log.counts[BW_DAMAGE] > 0);
        walk_result_free(&result);
        report_log_free(&log);
        iw_destroy(image);
    }
}

/* Keys of a node exceed the range of its parent: entries within the range are listed once. */
static void test_keys_beyond_the_parents(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = NODESIZE});
    for (unsigned n = 0; n < 60; n++) {
        char name[32];
        snprintf(name, sizeof name, "file %u", n);
        iw_file(image, FS, TOP, name);
    }
    iw_shape(image, FS, 3, 3, 0);
    iw_write_memory(image);
    const struct iw_block *node;
    for (size_t nth = 0; (node = iw_block_find(image, FS, 2, nth)); nth++)
        if (bw_key_compare(&node->first_key, &(struct bw_key){TOP, BW_DIR_INDEX, 5}) > 0)
            break;
    assert_non_null(node);
    iw_rewrite_block(image, node->logical, last_key_beyond, NULL, true);
    struct report_log log = {0};
    struct walk_result result = walk_image(image, &log);
    expect_paths(image, &result);
    assert_true(log.counts[BW_DAMAGE] > 0);
    walk_result_free(&result);
    report_log_free(&log);
    iw_destroy(image);
}

/* Makes all entries of a directory share the bytes of the first one in the leaf: their names have
 * more bytes in total than the leaf. */
static void share_first_entry(uint8_t *block, uint32_t nodesize, void *closure)
{
    struct bw_disk_item *items = (struct bw_disk_item *)(block + sizeof(struct bw_disk_header));
    const struct bw_disk_item *first = NULL;
    const uint64_t *directory = closure;
    for (uint32_t slot = 0; slot < bw_get32(header_of(block)->item_count); slot++) {
        if (items[slot].key.type != BW_DIR_INDEX ||
            bw_get64(items[slot].key.objectid) != *directory)
            continue;
        first = first ? first : &items[slot];
        items[slot].offset = first->offset;
        items[slot].size = first->size;
    }
}

static void test_entries_that_share_their_bytes(void **state)
{
    enum { FILES = 100 };
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 16384});
    uint64_t directory = iw_directory(image, FS, TOP, "directory");
    for (unsigned i = 0; i < FILES; i++) {
        char name[BW_NAME_MAX + 1];
        snprintf(name, sizeof name, "%0*u", i ? 3 : BW_NAME_MAX, i);
        iw_entry(image, FS,
                 &(struct iw_entry){.directory = directory,
                                    .name = name,
                                    .type = BW_FILE_REGULAR,
                                    .location = {1000 + i, BW_INODE_ITEM, 0}});
    }
    iw_write_memory(image);
    const struct bw_key key = {directory, BW_DIR_INDEX, 2};
    iw_rewrite_block(image, iw_block_of_key(image, FS, key)->logical, share_first_entry, &directory,
                     true);
    struct report_log log = {0};
    struct walk_result result = walk_image(image, &log);
    assert_null(result.error);
    assert_int_equal(result.count, FILES);
    assert_true(result.bytes.length >= (size_t)FILES * BW_NAME_MAX);
    walk_result_free(&result);
    report_log_free(&log);
    iw_destroy(image);
}

/* A bit of the key of an item, which is in `slot`. */
struct key_flip {
    uint32_t slot;
    unsigned bit;
    bool was_entry, is_ordered;
};

static void flip_key(uint8_t *block, uint32_t nodesize, void *closure)
{
    struct key_flip *flip = closure;
    const struct bw_node leaf = bw_node_view(block, nodesize);
    uint8_t *key = (uint8_t *)&items_of(block)[flip->slot].key;
    flip->was_entry = items_of(block)[flip->slot].key.type == BW_DIR_INDEX;
    key[flip->bit / 8] ^= (uint8_t)(1 << flip->bit % 8);
    flip->is_ordered =
        bw_leaf_is_ordered_at(&leaf, flip->slot) &&
        (flip->slot + 1 == leaf.item_count || bw_leaf_is_ordered_at(&leaf, flip->slot + 1));
}

/* The number of names that are read one by one in the top directory and in /second. */
static size_t count_names(const struct iw_image *image, struct report_log *log)
{
    struct bw_fs *fs;
    size_t count = 0;
    expect_success(open_image(image, log, &fs));
    const struct bw_subvolume *top = bw_subvolume_by_id(fs, FS);
    const char *const paths[] = {"/", "/second"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        struct bw_place place;
        struct bw_directory *directory;
        const struct bw_directory_entry *entry;
        expect_success(bw_lookup(fs, top, paths[i], true, &place));
        expect_success(bw_directory_open(fs, &place, BW_DIRECTORY_START, &directory));
        while (expect_success(bw_directory_next(directory, &entry)), entry)
            count++;
        bw_directory_close(directory);
    }
    bw_fs_close(fs);
    return count;
}

/* Two directories with files in a leaf, of which one bit of a key is wrong. Where the keys are then
 * out of order, nothing is missing in silence, and almost all names are found with the inodes. */
static void test_keys_out_of_order(void **state)
{
    enum { FILES = 4, KEY_BITS = 8 * sizeof(struct bw_disk_key) };
    size_t missing = 0;
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = NODESIZE});
    const uint64_t second = iw_directory(image, FS, TOP, "second");
    for (char name[] = "0"; *name < '0' + FILES; ++*name) {
        iw_file(image, FS, TOP, name);
        iw_file(image, FS, second, name);
    }
    iw_write_memory(image);
    struct iw_paths expected = iw_expected_paths(image);
    const struct iw_block *block = iw_root_block(image, FS);
    assert_int_equal(block->level, 0);
    uint8_t bytes[NODESIZE];
    iw_block_bytes(image, block->logical, bytes);
    const uint32_t count = bw_get32(header_of(bytes)->item_count);
    for (struct key_flip flip = {0}; flip.slot < count; flip.slot++) {
        for (flip.bit = 0; flip.bit < KEY_BITS; flip.bit += variant_step()) {
            struct report_log log = {0};
            iw_rewrite_block(image, block->logical, flip_key, &flip, true);
            struct walk_result result = walk_image(image, &log);
            const char *example = "";
            const size_t lost = count_missing(&result, &expected, &example);
            if (flip.was_entry && !flip.is_ordered && lost && !log.counts[BW_DAMAGE])
                fail_msg("slot %u, bit %u: %zu paths are missing in silence, as %s", flip.slot,
                         flip.bit, lost, example);
            if (count_foreign(&result, &expected, &example) > 1)
                fail_msg("slot %u, bit %u: several wrong paths, as %s", flip.slot, flip.bit,
                         example);
            missing += flip.is_ordered ? 0 : lost;
            walk_result_free(&result);
            report_log_free(&log);
            if (flip.was_entry && !flip.is_ordered) {
                assert_in_range(count_names(image, &log), 1 + 2 * FILES, 2 + 2 * FILES);
                assert_true(log.counts[BW_DAMAGE] > 0);
                report_log_free(&log);
            }
            iw_rewrite_block(image, block->logical, flip_key, &flip, true);
        }
    }
    /* Only those behind an entry that seems to be one of the other directory. */
    assert_in_range(missing, 0, 1 + 2 + 3);
    iw_paths_free(&expected);
    iw_destroy(image);
}
