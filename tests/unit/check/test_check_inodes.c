/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `inodes`: healthy trees with leaves of every size, every contradiction between items,
 * and what must not be concluded from lost leaves. Also the paths of findings.
 */
#include "support/image_writer_internal.h"
#include "support/walk_helpers.h"

#include "btrfs-walk/check.h"
#include "ondisk/disk_items.h"
#include "ondisk/superblock.h"
#include "record/record_types.h"

enum { SNAPSHOT = 300, SECTOR = 4096 };

/* The image of the tests: its inodes. */
struct tree {
    struct iw_image *image;
    uint64_t directory, file, data, target;
};

static struct bw_key item_of(uint64_t inode)
{
    return (struct bw_key){inode, BW_INODE_ITEM, 0};
}

static struct bw_disk_inode_item *inode_of(struct tree *tree, uint64_t inode)
{
    return iw_item_bytes(tree->image, FS, item_of(inode), NULL);
}

static void add_extent(struct tree *tree, uint64_t start, uint64_t length, bool hole)
{
    const struct bw_disk_file_extent extent = {.generation = bw_put64(10),
                                               .ram_bytes = bw_put64(length),
                                               .type = BW_FILE_EXTENT_REGULAR,
                                               .disk_bytenr = bw_put64(hole ? 0 : 1 << 20),
                                               .disk_num_bytes = bw_put64(hole ? 0 : length),
                                               .num_bytes = bw_put64(length)};
    iw_item(tree->image, FS, (struct bw_key){tree->data, BW_EXTENT_DATA, start}, &extent,
            sizeof extent);
}

static void set_sizes(struct tree *tree, uint64_t size, uint64_t bytes)
{
    inode_of(tree, tree->data)->size = bw_put64(size);
    inode_of(tree, tree->data)->bytes = bw_put64(bytes);
}

static struct tree make(unsigned items_per_leaf)
{
    const struct iw_options options = {.items_per_leaf = items_per_leaf};
    struct tree tree = {.image = iw_create(&options)};
    tree.directory = iw_directory(tree.image, FS, TOP, "dir");
    tree.file = iw_file(tree.image, FS, tree.directory, "file");
    iw_property(tree.image, FS, tree.file, "user.name", "value");
    iw_inline_data(tree.image, FS, tree.file, "text", 4);
    tree.data = iw_file(tree.image, FS, TOP, "data");
    iw_link(tree.image, FS, tree.data, TOP, "second");
    iw_link_extended(tree.image, FS, tree.data, tree.directory, "third");
    for (unsigned i = 0; i < 6; i++)
        add_extent(&tree, i * SECTOR, SECTOR, i == 3);
    set_sizes(&tree, 5 * SECTOR + 1, 5 * SECTOR);
    tree.target = iw_symlink(tree.image, FS, TOP, "link", "target");
    iw_make(tree.image, FS, TOP, "pipe", BW_FILE_FIFO);
    return tree;
}

/* A directory is moved into one that lies below it, or into itself. */
static void cycle(struct tree *tree)
{
    const uint64_t outer = iw_directory(tree->image, FS, tree->directory, "outer"),
                   inner = iw_directory(tree->image, FS, outer, "inner");
    iw_file(tree->image, FS, inner, "unreachable");
    iw_move(tree->image, FS, outer, tree->directory, "outer", inner, "outer");
}

static void cycle_of_one(struct tree *tree)
{
    const uint64_t inner = iw_directory(tree->image, FS, tree->directory, "inner");
    iw_move(tree->image, FS, inner, tree->directory, "inner", inner, "inner");
}

static void two_cycles(struct tree *tree)
{
    cycle(tree);
    cycle_of_one(tree);
}

/* No cycle, though a directory lies in newer ones, and in older ones again. */
static void moved(struct tree *tree)
{
    const uint64_t first = iw_directory(tree->image, FS, TOP, "first"),
                   second = iw_directory(tree->image, FS, TOP, "second-directory"),
                   third = iw_directory(tree->image, FS, first, "third");
    iw_move(tree->image, FS, first, TOP, "first", second, "first");
    iw_move(tree->image, FS, second, TOP, "second-directory", tree->directory, "second");
    iw_directory(tree->image, FS, third, "fourth");
}

/* Collects "WORD PATH PATH+N\n" of the findings of this pass, and of cycles of subvolumes; N being
 * other subvolumes. */
static struct bw_error *take(void *context, const struct bw_findinginfo *finding)
{
    struct bw_buffer *text = context;
    if (strcmp(finding->pass, "inodes") != 0 && strcmp(finding->code, "root-cycle") != 0)
        return NULL;
    bw_buffer_format(text, "%s", finding->code);
    for (size_t i = 0; i < finding->paths.length; i++)
        bw_buffer_format(text, " %.*s", (int)finding->paths.data[i].length,
                         finding->paths.data[i].data);
    if (finding->more_subvolumes != BW_ABSENT)
        bw_buffer_format(text, "+%u", (unsigned)finding->more_subvolumes);
    bw_buffer_append_byte(text, '\n');
    return NULL;
}

static void check(const struct iw_image *image, struct bw_buffer *text)
{
    struct bw_fs *fs = NULL;
    struct bw_check_summary *summary = NULL;
    struct report_log log = {0};
    const struct bw_check_options options = {
        .struct_size = sizeof options, .threads = 2, .visit = take, .context = text};
    expect_success(open_image(image, &log, &fs));
    expect_success(bw_check(fs, &options, &summary));
    bw_check_summary_free(summary);
    bw_fs_close(fs);
    report_log_free(&log);
    bw_buffer_append_byte(text, 0);
}

static void without_no_holes(struct bw_disk_superblock *superblock, void *closure)
{
    superblock->incompat_flags =
        bw_put64(bw_get64(superblock->incompat_flags) & ~BW_INCOMPAT_NO_HOLES);
}

static void expect(struct tree *tree, bool no_holes, const char *findings)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    iw_write_memory(tree->image);
    if (!no_holes)
        iw_superblock_edit(tree->image, IW_ALL_DEVICES, IW_ALL_COPIES, without_no_holes, NULL,
                           true);
    check(tree->image, &text);
    assert_string_equal(text.data, findings);
    iw_destroy(tree->image);
}

/* Changes of the tree, and what they make wrong. */

static void remove_item(struct tree *tree, uint64_t objectid, uint8_t type, uint64_t offset)
{
    assert_non_null(iw_item_bytes(tree->image, FS, (struct bw_key){objectid, type, offset}, NULL));
    iw_remove_item(tree->image, FS, (struct bw_key){objectid, type, offset});
}

static void no_dir_item(struct tree *tree)
{
    remove_item(tree, tree->directory, BW_DIR_ITEM, bw_name_hash("file", 4));
}

static void no_dir_index(struct tree *tree)
{
    remove_item(tree, tree->directory, BW_DIR_INDEX, 2);
}

static void no_reference(struct tree *tree)
{
    remove_item(tree, tree->file, BW_INODE_REF, tree->directory);
}

static void no_extended_reference(struct tree *tree)
{
    remove_item(tree, tree->data, BW_INODE_EXTREF, bw_extref_hash(tree->directory, "third", 5));
}

static void no_inode(struct tree *tree)
{
    remove_item(tree, tree->file, BW_INODE_ITEM, 0);
}

static void no_top_reference(struct tree *tree)
{
    remove_item(tree, TOP, BW_INODE_REF, TOP);
}

static void more_links(struct tree *tree)
{
    inode_of(tree, tree->data)->link_count = bw_put32(4);
}

static void other_type(struct tree *tree)
{
    inode_of(tree, tree->directory + 4)->mode = bw_put32(0140644);
}

static void other_index(struct tree *tree)
{
    struct bw_disk_inode_ref *ref = iw_item_bytes(
        tree->image, FS, (struct bw_key){tree->file, BW_INODE_REF, tree->directory}, NULL);
    ref->index = bw_put64(77);
}

static void other_directory_size(struct tree *tree)
{
    inode_of(tree, tree->directory)->size = bw_put64(4);
}

static void other_bytes(struct tree *tree)
{
    set_sizes(tree, 5 * SECTOR + 1, 6 * SECTOR);
}

static void overlap(struct tree *tree)
{
    add_extent(tree, SECTOR, 2 * SECTOR, false);
    set_sizes(tree, 5 * SECTOR + 1, 6 * SECTOR);
}

static void gap(struct tree *tree)
{
    remove_item(tree, tree->data, BW_EXTENT_DATA, 3 * SECTOR);
}

static void gap_at_end(struct tree *tree)
{
    set_sizes(tree, 6 * SECTOR + 1, 5 * SECTOR);
}

static void gap_behind_end(struct tree *tree)
{
    add_extent(tree, 9 * SECTOR, SECTOR, false);
    set_sizes(tree, 6 * SECTOR, 6 * SECTOR);
}

static void extents_of_directory(struct tree *tree)
{
    tree->data = tree->directory;
    add_extent(tree, 0, SECTOR, true);
    add_extent(tree, SECTOR, SECTOR, false);
}

static void unlink_file(struct tree *tree)
{
    iw_remove_entry(tree->image, FS, tree->directory, "file");
    remove_item(tree, tree->file, BW_INODE_REF, tree->directory);
    inode_of(tree, tree->file)->link_count = bw_put32(0);
}

static void orphan(struct tree *tree)
{
    unlink_file(tree);
    iw_item(tree->image, FS, (struct bw_key){BW_ORPHAN, BW_ORPHAN_ITEM, tree->file}, "", 0);
}

static void make_orphan(struct tree *tree, uint64_t inode, const char *name)
{
    iw_remove_entry(tree->image, FS, TOP, name);
    remove_item(tree, inode, BW_INODE_REF, TOP);
    inode_of(tree, inode)->link_count = bw_put32(0);
    iw_item(tree->image, FS, (struct bw_key){BW_ORPHAN, BW_ORPHAN_ITEM, inode}, "", 0);
}

static void orphan_directory(struct tree *tree)
{
    make_orphan(tree, tree->directory, "dir");
}

/* A file and its directory, both unlinked: the mount that did it ended before it deleted the
 * DIR_INDEX item. */
static void index_of_orphan(struct tree *tree)
{
    iw_remove_entry(tree->image, FS, tree->directory, "third");
    remove_item(tree, tree->data, BW_INODE_EXTREF, bw_extref_hash(tree->directory, "third", 5));
    inode_of(tree, tree->data)->link_count = bw_put32(2);
    remove_item(tree, tree->directory, BW_DIR_ITEM, bw_name_hash("file", 4));
    remove_item(tree, tree->file, BW_INODE_REF, tree->directory);
    inode_of(tree, tree->file)->link_count = bw_put32(0);
    iw_item(tree->image, FS, (struct bw_key){BW_ORPHAN, BW_ORPHAN_ITEM, tree->file}, "", 0);
}

static void orphan_directory_with_orphan(struct tree *tree)
{
    index_of_orphan(tree);
    inode_of(tree, tree->directory)->size = bw_put64(0);
    make_orphan(tree, tree->directory, "dir");
}

/* A file without names whose deletion the kernel has begun: extents are deleted from the end, and
 * the inode's byte count is no longer updated. */
static void orphan_data(struct tree *tree)
{
    iw_remove_entry(tree->image, FS, tree->directory, "third");
    remove_item(tree, tree->data, BW_INODE_EXTREF, bw_extref_hash(tree->directory, "third", 5));
    iw_remove_entry(tree->image, FS, TOP, "second");
    make_orphan(tree, tree->data, "data");
}

static void half_deleted(struct tree *tree)
{
    orphan_data(tree);
    remove_item(tree, tree->data, BW_EXTENT_DATA, 5 * SECTOR);
    remove_item(tree, tree->data, BW_EXTENT_DATA, 4 * SECTOR);
}

static void grown_orphan(struct tree *tree)
{
    orphan_data(tree);
    set_sizes(tree, 5 * SECTOR + 1, 4 * SECTOR);
}

static void orphans_that_need_not_be(struct tree *tree)
{
    iw_item(tree->image, FS, (struct bw_key){BW_ORPHAN, BW_ORPHAN_ITEM, 5000}, "", 0);
    iw_item(tree->image, FS, (struct bw_key){BW_ORPHAN, BW_ORPHAN_ITEM, tree->file}, "", 0);
}

static void twice(struct tree *tree)
{
    iw_entry(tree->image, FS,
             &(struct iw_entry){.directory = tree->directory,
                                .name = "file",
                                .type = BW_FILE_REGULAR,
                                .location = item_of(tree->file)});
}

static void dangling(struct tree *tree)
{
    iw_entry(tree->image, FS,
             &(struct iw_entry){.directory = tree->directory,
                                .name = "nowhere",
                                .type = BW_FILE_REGULAR,
                                .location = item_of(4000)});
}

static void other_target(struct tree *tree)
{
    inode_of(tree, tree->target)->size = bw_put64(3);
}

static void shorter_than_inline(struct tree *tree)
{
    inode_of(tree, tree->file)->size = bw_put64(3);
}

static void longer_than_inline(struct tree *tree)
{
    inode_of(tree, tree->file)->size = bw_put64(SECTOR);
}

static void bytes_of_pipe(struct tree *tree)
{
    inode_of(tree, tree->target + 1)->bytes = bw_put64(SECTOR);
}

static void bytes_of_top(struct tree *tree)
{
    inode_of(tree, TOP)->bytes = bw_put64(SECTOR);
}

static void set_target(struct tree *tree, const char *target, size_t size)
{
    iw_inline_data(tree->image, FS, tree->target, target, size);
}

static void empty_target(struct tree *tree)
{
    set_target(tree, "", 0);
}

static void no_target(struct tree *tree)
{
    remove_item(tree, tree->target, BW_EXTENT_DATA, 0);
    inode_of(tree, tree->target)->size = inode_of(tree, tree->target)->bytes = bw_put64(0);
}

static void nul_in_target(struct tree *tree)
{
    set_target(tree, "tar\0et", 6);
}

static void nul_at_end_of_target(struct tree *tree)
{
    set_target(tree, "target", 7);
}

/* As mkfs.btrfs stores it. */
static void nul_behind_target(struct tree *tree)
{
    set_target(tree, "target", 7);
    inode_of(tree, tree->target)->size = bw_put64(6);
}

static void nul_in_file(struct tree *tree)
{
    iw_inline_data(tree->image, FS, tree->file, "te\0t", 4);
}

static void hole_of_directory(struct tree *tree)
{
    tree->data = tree->directory;
    add_extent(tree, 0, SECTOR, true);
}

static void hole_of_pipe(struct tree *tree)
{
    tree->data = tree->target + 1;
    add_extent(tree, 0, SECTOR, true);
}

static void reference_twice(struct tree *tree)
{
    const struct bw_key key = {tree->file, BW_INODE_REF, tree->directory};
    size_t size;
    const void *bytes = iw_item_bytes(tree->image, FS, key, &size);
    uint8_t both[64];
    memcpy(both, bytes, size);
    memcpy(both + size, bytes, size);
    iw_item(tree->image, FS, key, both, 2 * size);
}

static const struct {
    void (*change)(struct tree *tree);
    const char *findings;
    bool no_holes;
} cases[] = {
    {NULL, "", false},
    {no_dir_item, "entry-missing /dir/file\n", false},
    {no_dir_index, "entry-missing /dir/file\n", false},
    {no_reference, "inode-ref-missing /dir/file\n", false},
    {no_extended_reference, "inode-ref-missing /dir/third\n", false},
    {no_inode, "inode-missing /dir/file\n", false},
    {no_top_reference, "inode-ref-missing /\n", false},
    {more_links, "link-count /data /second /dir/third\n", false},
    {other_type, "entry-type /pipe\n", false},
    {other_index, "entry-index /dir/file\n", false},
    {other_directory_size, "directory-size /dir\n", false},
    {other_bytes, "file-bytes /data /second /dir/third\n", false},
    {overlap, "file-overlap /data /second /dir/third\n", false},
    {gap, "file-gap /data /second /dir/third\n", false},
    {gap, "", true},
    {gap_at_end, "file-gap /data /second /dir/third\n", false},
    {gap_at_end, "", true},
    {gap_behind_end, "", false},
    {extents_of_directory, "inode-items /dir\n", false},
    {unlink_file, "orphan-missing\n", false},
    {orphan, "", false},
    {half_deleted, "", false},
    {half_deleted, "", true},
    {grown_orphan, "file-bytes\n", true},
    {orphan_directory, "", false},
    {orphan_directory_with_orphan, "", false},
    {index_of_orphan, "entry-missing /dir/file\ninode-ref-missing /dir/file\n", false},
    {orphans_that_need_not_be, "", false},
    {twice, "entry-duplicate /dir\n", false},
    {dangling, "inode-missing /dir/nowhere\n", false},
    {other_target, "link-size /link\n", false},
    {empty_target, "link-target /link\n", true},
    {no_target, "link-target /link\n", true},
    {nul_in_target, "link-target /link\n", false},
    {nul_at_end_of_target, "link-target /link\n", false},
    {nul_behind_target, "", false},
    {nul_in_file, "", false},
    {hole_of_directory, "inode-items /dir\n", false},
    {hole_of_pipe, "inode-items /pipe\n", false},
    {reference_twice, "inode-ref-duplicate /dir/file\n", false},
    {cycle, "directory-cycle\n", true},
    {cycle_of_one, "directory-cycle\n", true},
    {two_cycles, "directory-cycle\ndirectory-cycle\n", true},
    {moved, "", true},
    {shorter_than_inline, "file-size /dir/file\n", false},
    {longer_than_inline, "", false},
    {bytes_of_pipe, "file-bytes /pipe\n", false},
    {bytes_of_top, "", false},
};

static void test_findings(void **state)
{
    for (size_t i = 0; i < COUNT(cases); i++)
        for (unsigned items = 0; items < 4; items++) {
            struct tree tree = make(items);
            if (cases[i].change)
                cases[i].change(&tree);
            expect(&tree, cases[i].no_holes, cases[i].findings);
        }
}

static void test_snapshots(void **state)
{
    struct tree tree = make(3);
    no_reference(&tree);
    iw_snapshot(tree.image, SNAPSHOT, FS, FS, TOP, "snapshot", 0);
    expect(&tree, false, "inode-ref-missing /dir/file /snapshot/dir/file\n");

    tree = make(3);
    iw_snapshot(tree.image, SNAPSHOT, FS, FS, TOP, "snapshot", 0);
    no_reference(&tree);
    expect(&tree, false, "inode-ref-missing /dir/file\n");
}

/* A cycle in one subvolume does not hide behind another one, whose blocks are the same. */
static void test_cycles_of_snapshots(void **state)
{
    struct tree tree = make(3);
    cycle(&tree);
    iw_snapshot(tree.image, SNAPSHOT, FS, FS, TOP, "snapshot", 0);
    iw_file(tree.image, FS, tree.directory, "later");
    expect(&tree, true, "directory-cycle+1\n");

    tree = make(3);
    moved(&tree);
    iw_snapshot(tree.image, SNAPSHOT, FS, FS, TOP, "snapshot", 0);
    cycle(&tree);
    expect(&tree, true, "directory-cycle\n");

    tree = make(3);
    cycle(&tree);
    iw_snapshot(tree.image, SNAPSHOT, FS, FS, TOP, "snapshot", 0);
    moved(&tree);
    expect(&tree, true, "directory-cycle\ndirectory-cycle\n");
}

/* Subvolumes that lie in each other, one of which another one lies in. No walk finds their files,
 * which is damage. */
static void test_cycles_of_subvolumes(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct report_log log = {0};
    struct bw_fs *fs;
    struct tree tree = make(3);
    for (uint64_t id = 400; id < 404; id++)
        iw_subvolume(tree.image, id, 0, 0, NULL, 0);
    iw_attach(tree.image, 400, FS, TOP, "sound");
    iw_attach(tree.image, 401, 402, TOP, "one");
    iw_attach(tree.image, 402, 401, TOP, "two");
    iw_attach(tree.image, 403, 402, TOP, "below");
    iw_write_memory(tree.image);
    check(tree.image, &text);
    assert_string_equal(text.data, "root-cycle\n");
    expect_success(open_image(tree.image, &log, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){0});
    assert_int_equal(result.count, 4);
    assert_int_equal(report_log_count(&log, "is inside itself"), 1);
    walk_result_free(&result);
    bw_fs_close(fs);
    report_log_free(&log);
    iw_destroy(tree.image);
}

/* Items in a lost leaf are not reported as missing. */
static void test_lost_leaves(void **state)
{
    for (size_t lost = 0; lost < 12; lost++) {
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        struct tree tree = make(3);
        iw_write_memory(tree.image);
        const struct iw_block *leaf = iw_block_find(tree.image, FS, 0, lost);
        assert_non_null(leaf);
        iw_corrupt(tree.image, leaf->logical, IW_ALL_COPIES, 200, 1, IW_FLIP);
        check(tree.image, &text);
        assert_string_equal(text.data, "");
        iw_destroy(tree.image);
    }
}

/* Faults elsewhere are found all the same. */
static void test_lost_and_wrong(void **state)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct tree tree = make(3);
    more_links(&tree);
    iw_write_memory(tree.image);
    const struct iw_block *leaf = iw_block_of_key(tree.image, FS, item_of(tree.file));
    iw_corrupt(tree.image, leaf->logical, IW_ALL_COPIES, 200, 1, IW_FLIP);
    check(tree.image, &text);
    assert_string_equal(text.data, "link-count /data /second /dir/third\n");
    iw_destroy(tree.image);
}
