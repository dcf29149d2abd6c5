/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/replay: logs that the kernel rarely writes. The image writer does not know logs: it writes a
 * tree with another number, whose owner is then changed. */
#include "btrfs-walk/check.h"
#include "record/record_types.h"
#include "replay/replay.h"
#include "support/data_image.h"

enum { GENERATION = 11 }; /* of the log: one higher than that of the superblock */

#define ROOTS BW_TREE_LOG
#define LOG   BW_TREE_LOG_FIXUP

static void add_log_item(struct iw_image *image, struct bw_key key, const void *bytes, size_t size)
{
    iw_item(image, LOG, key, bytes, size);
}

/* Takes over an item of the subvolume. */
static void log_item_of(struct iw_image *image, struct bw_key key)
{
    size_t size;
    const void *bytes = iw_item_bytes(image, FS, key, &size);
    assert_non_null(bytes);
    add_log_item(image, key, bytes, size);
}

/* Before the image is written, and after all items of the log. */
static void end_log(struct iw_image *image)
{
    const struct bw_disk_root_item none = {.generation = bw_put64(GENERATION)};
    iw_item(image, ROOTS, (struct bw_key){BW_TREE_LOG, BW_ROOT_ITEM, FS}, &none, sizeof none);
    iw_set_generation(image, ROOTS, GENERATION);
    iw_set_generation(image, LOG, GENERATION);
}

static void set_owner(uint8_t *block, uint32_t nodesize, void *closure)
{
    ((struct bw_disk_header *)block)->owner = bw_put64(BW_TREE_LOG);
}

static void set_root(uint8_t *block, uint32_t nodesize, void *closure)
{
    const struct bw_node leaf = bw_node_view(block, nodesize);
    struct bw_item item;
    assert_true(bw_leaf_item(&leaf, 0, &item));
    struct bw_disk_root_item *root = (void *)(block + (item.data - block));
    root->bytenr = bw_put64(*(const uint64_t *)closure);
}

static void set_log_root(struct bw_disk_superblock *superblock, void *closure)
{
    superblock->log_root = bw_put64(*(const uint64_t *)closure);
}

/* After the image is written. */
static void attach_log(struct iw_image *image)
{
    uint64_t roots = iw_root_block(image, ROOTS)->logical, log = iw_root_block(image, LOG)->logical;
    assert_int_equal(iw_root_block(image, LOG)->level, 0);
    iw_rewrite_block(image, log, set_owner, NULL, true);
    iw_rewrite_block(image, roots, set_root, &log, true);
    iw_superblock_edit(image, IW_ALL_DEVICES, IW_ALL_COPIES, set_log_root, &roots, true);
}

static void attach_log_of(struct data_image *image)
{
    attach_log(image->image);
}

/* A name that an INODE_EXTREF has, and the log has not; another one with the same hash, which the
 * log has in an INODE_REF. */
static void test_names_of_one_hash(void **state)
{
    static const char old[] = "hash-127ca1aa-name", new[] = "hash-30807ce4-name";
    const struct bw_disk_inode_ref ref = {bw_put64(60), bw_put16(sizeof new - 1)};
    struct fixture fixture = make_fixture();
    struct iw_image *image = fixture.image;
    struct bw_buffer refs = {0};
    assert_int_equal(bw_extref_hash(TOP, old, sizeof old - 1),
                     bw_extref_hash(TOP, new, sizeof new - 1));
    const uint64_t file = iw_file(image, FS, TOP, "first");
    const struct bw_key key = {file, BW_INODE_REF, TOP};
    size_t size;
    const void *bytes = iw_item_bytes(image, FS, key, &size);
    bw_buffer_append(&refs, bytes, size);
    bw_buffer_append(&refs, &ref, sizeof ref);
    bw_buffer_append(&refs, new, sizeof new - 1);
    iw_link_extended(image, FS, file, TOP, old);
    log_item_of(image, (struct bw_key){file, BW_INODE_ITEM, 0});
    add_log_item(image, key, refs.data, refs.length);
    end_log(image);
    iw_write_memory(image);
    attach_log(image);
    open_written(&fixture);
    assert_true(bw_fs_status(fixture.fs).log_replayed);
    struct walk_result result = walk_fs(fixture.fs, &(struct bw_walk_options){0});
    assert_int_equal(result.count, 2);
    assert_string_equal(result.paths[0], "/first");
    assert_string_equal(result.paths[1] + 1, new);
    assert_int_equal(fixture.log.counts[BW_DAMAGE], 0);
    walk_result_free(&result);
    bw_buffer_free(&refs);
    close_fixture(&fixture);
}

static struct bw_error *count_refused(void *context, const struct bw_findinginfo *finding)
{
    *(unsigned *)context += strcmp(finding->code, "log-refused") == 0;
    return NULL;
}

/* The log adds a name to a directory, and does not remove the other one. */
static void test_directory_with_two_names(void **state)
{
    static const char name[] = "second";
    const struct {
        struct bw_disk_inode_ref ref;
        char name[sizeof name - 1];
    } __attribute__((packed)) added = {{bw_put64(60), bw_put16(sizeof name - 1)}, "second"};
    struct fixture fixture = make_fixture();
    struct iw_image *image = fixture.image;
    const uint64_t other = iw_directory(image, FS, TOP, "other");
    const uint64_t directory = iw_directory(image, FS, TOP, "first");
    log_item_of(image, (struct bw_key){directory, BW_INODE_ITEM, 0});
    add_log_item(image, (struct bw_key){directory, BW_INODE_REF, other}, &added, sizeof added);
    end_log(image);
    iw_write_memory(image);
    attach_log(image);
    open_written(&fixture);
    assert_true(bw_fs_status(fixture.fs).log_replayed);
    assert_int_equal(fixture.log.counts[BW_WARNING], 1);
    char expected[160];
    snprintf(expected, sizeof expected,
             "so the next mount fails: directory %u of subvolume 5 gets 2 names: 'first' in "
             "directory 256, 'second' in directory %u",
             (unsigned)directory, (unsigned)other);
    assert_int_equal(report_log_count(&fixture.log, expected), 1);
    bw_fs_close(fixture.fs);

    /* check, which shows the trees without the log */
    const char *const path = iw_path(image, 0);
    const struct bw_fs_options options = {.struct_size = sizeof options,
                                          .paths = &path,
                                          .path_count = 1,
                                          .log = BW_LOG_IGNORE,
                                          .reporter = report_log_reporter(&fixture.log)};
    unsigned refused = 0;
    const struct bw_check_options how = {
        .struct_size = sizeof how, .visit = count_refused, .context = &refused};
    struct bw_check_summary *summary;
    expect_success(bw_fs_open(&options, &fixture.fs));
    expect_success(bw_check(fixture.fs, &how, &summary));
    assert_int_equal(refused, 1);
    assert_int_equal(fixture.log.counts[BW_WARNING], 1);
    bw_check_summary_free(summary);
    close_fixture(&fixture);
}

/* The names of the top directory are not checked like others; one that no directory can have is
 * not replayed. */
static void test_long_name_of_top(void **state)
{
    struct {
        struct bw_disk_inode_ref ref;
        char name[1000];
    } __attribute__((packed)) added = {{bw_put64(60), bw_put16(sizeof added.name)}, ""};
    struct fixture fixture = make_fixture();
    struct iw_image *image = fixture.image;
    const uint64_t directory = iw_directory(image, FS, TOP, "first");
    memset(added.name, 'x', sizeof added.name);
    log_item_of(image, (struct bw_key){TOP, BW_INODE_ITEM, 0});
    add_log_item(image, (struct bw_key){TOP, BW_INODE_REF, directory}, &added, sizeof added);
    end_log(image);
    iw_write_memory(image);
    attach_log(image);
    open_written(&fixture);
    assert_int_equal(report_log_count(&fixture.log, "is not replayed: a name is too long"), 1);
    close_fixture(&fixture);
}

/* Checksums of the log lie in the middle of an item of the checksum tree, which keeps the others.
 */
static void test_checksums_within_an_item(void **state)
{
    enum { SECTORS = 8, FIRST = 3, LOGGED = 2 };
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    struct data_result result;
    data_image_plain(image, 0, 0, SECTORS * SECTOR);
    data_image_inode(image, SECTORS * SECTOR, 0);
    data_image_checksums(image, 0, SECTORS);
    const uint32_t *sums =
        iw_item_bytes(image->image, BW_CSUM_TREE,
                      (struct bw_key){BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM, image->logical}, NULL);
    const struct bw_disk_file_extent extent = {
        .generation = bw_put64(GENERATION),
        .ram_bytes = bw_put64(SECTORS * SECTOR),
        .type = BW_FILE_EXTENT_REGULAR,
        .disk_bytenr = bw_put64(image->logical),
        .disk_num_bytes = bw_put64(SECTORS * SECTOR),
        .offset = bw_put64(FIRST * SECTOR),
        .num_bytes = bw_put64(LOGGED * SECTOR),
    };
    log_item_of(image->image, (struct bw_key){image->inode, BW_INODE_ITEM, 0});
    add_log_item(image->image, (struct bw_key){image->inode, BW_EXTENT_DATA, FIRST * SECTOR},
                 &extent, sizeof extent);
    add_log_item(
        image->image,
        (struct bw_key){BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM, image->logical + FIRST * SECTOR},
        sums + FIRST, LOGGED * sizeof *sums);
    end_log(image->image);
    data_image_open(image, attach_log_of);
    assert_true(bw_fs_status(image->fs).log_replayed);
    const struct bw_data_file file = data_image_file(image, SECTORS * SECTOR, false);
    data_image_read(image, &file, 0, UINT64_MAX, &result);
    assert_int_equal(result.bad, 0);
    data_expect_bytes(&result, 0, image->data, SECTORS * SECTOR);
    assert_int_equal(image->log.counts[BW_DAMAGE], 0);
    data_image_finish(image, &result);
}
