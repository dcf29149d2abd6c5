/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole check, on states left by old kernels and tools: valid ones that look wrong, and those
 * that are a single finding.
 */
#include "support/image_writer_internal.h"
#include "support/walk_helpers.h"

#include "btrfs-walk/check.h"
#include "ondisk/disk_items.h"
#include "record/record_types.h"

/* Collects "WORD MESSAGE\n" of the findings about items, inodes and roots: the images have no
 * extents and no block groups. */
static struct bw_error *take(void *context, const struct bw_findinginfo *finding)
{
    static const char *const passes[] = {"trees", "inodes", "roots"};
    for (size_t i = 0; i < COUNT(passes); i++)
        if (strcmp(finding->pass, passes[i]) == 0)
            bw_buffer_format(context, "%s %s\n", finding->code, finding->message);
    return NULL;
}

static void expect(struct iw_image *image, const char *findings)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct bw_fs *fs = NULL;
    struct bw_check_summary *summary = NULL;
    struct report_log log = {0};
    const struct bw_check_options options = {
        .struct_size = sizeof options, .threads = 2, .visit = take, .context = &text};
    expect_success(open_image(image, &log, &fs));
    expect_success(bw_check(fs, &options, &summary));
    bw_check_summary_free(summary);
    bw_fs_close(fs);
    report_log_free(&log);
    assert_string_equal(bw_buffer_text(&text), findings);
    iw_destroy(image);
}

static void trust_uuid_tree(struct bw_disk_superblock *superblock, void *closure)
{
    superblock->uuid_tree_generation = superblock->generation;
}

/* Enters the uuid of the top-level subvolume, as a kernel does. */
static void enter_top(struct iw_image *image)
{
    const struct bw_key root = {FS, BW_ROOT_ITEM, 0};
    const struct bw_disk_root_item *disk = iw_item_bytes(image, BW_ROOT_TREE, root, NULL);
    const struct bw_disk_uuid_entry entry = {bw_put64(FS)};
    bw_le64 halves[2];
    memcpy(halves, disk->uuid, sizeof halves);
    iw_item(image, BW_UUID_TREE,
            (struct bw_key){bw_get64(halves[0]), BW_UUID_SUBVOLUME, bw_get64(halves[1])}, &entry,
            sizeof entry);
}

/* The uuid tree as mkfs.btrfs 4.16 to 4.20 made it: with the top directory of a subvolume. */
static void test_directory_in_uuid_tree(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){0});
    struct bw_disk_inode_item inode;
    struct {
        struct bw_disk_inode_ref ref;
        char name[2];
    } up = {{bw_put64(0), bw_put16(2)}, {'.', '.'}};
    iw_put_root_item(image, BW_UUID_TREE, 0, NULL);
    enter_top(image);
    iw_init_inode(image, &inode, BW_FILE_DIRECTORY);
    inode.link_count = bw_put32(1);
    iw_item(image, BW_UUID_TREE, (struct bw_key){TOP, BW_INODE_ITEM, 0}, &inode, sizeof inode);
    iw_item(image, BW_UUID_TREE, (struct bw_key){TOP, BW_INODE_REF, TOP}, &up, sizeof up);
    iw_write_memory(image);
    iw_superblock_edit(image, IW_ALL_DEVICES, IW_ALL_COPIES, trust_uuid_tree, NULL, true);
    expect(image, "item-type the uuid tree has a directory, which mkfs.btrfs 4.16 to 4.20 left "
                  "there and nothing reads\n");
}

/* Changes the owner in the header of a block. */
static void set_owner(uint8_t *block, uint32_t nodesize, void *closure)
{
    ((struct bw_disk_header *)block)->owner = bw_put64(*(uint64_t *)closure);
}

/* Kernels before 5.9 relocated the data relocation tree like a subvolume, so its blocks may belong
 * to its relocation tree. */
static void test_relocated_data_relocation_tree(void **state)
{
    const struct iw_options options = {.items_per_leaf = 2};
    struct iw_image *image = iw_create(&options);
    uint64_t owner = BW_TREE_RELOC;
    for (unsigned i = 0; i < 4; i++)
        iw_make(image, BW_DATA_RELOC_TREE, TOP, (const char[]){(char)('a' + i), 0},
                BW_FILE_REGULAR);
    iw_write_memory(image);
    iw_rewrite_block(image, iw_block_find(image, BW_DATA_RELOC_TREE, 0, 1)->logical, set_owner,
                     &owner, true);
    expect(image, "");
}
