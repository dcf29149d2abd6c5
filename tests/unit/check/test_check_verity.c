/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `verity`: files of zeros with Merkle trees of one and of three levels, whose root is
 * what `fsverity digest --out-descriptor` has made, and each way in which hashes can contradict
 * each other, the descriptor or the data.
 */
#include <gcrypt.h>
#include <limits.h>

#include "support/image_writer.h"
#include "support/walk_helpers.h"

#include "btrfs-walk/check.h"
#include "ondisk/disk_items.h"
#include "ondisk/superblock.h"
#include "record/record_types.h"

enum { SIZE = 300 << 10, DIGEST = 64, LARGEST_TREE = 64 << 10, PIECE = 1024 };

struct kind {
    const char *name;
    uint8_t algorithm, log_block_size, salt_size;
    unsigned tree_size;
    uint8_t root[4]; /* its first bytes */
};

static const struct kind kinds[] = {
    {"SHA-256, one level", 1, 12, 0, 4096, {0x6a, 0x18, 0xa8, 0x77}},
    {"SHA-512 with salt, three levels", 2, 10, 4, (1 + 2 + 19) * 1024, {0x70, 0x60, 0xc6, 0x42}},
    {"SHA-256, a salt as long as can be", 1, 12, 32, 4096, {0x00, 0xf8, 0x13, 0x1f}},
};

/* A file with its Merkle tree: levels are stored from the top. */
struct tree {
    const struct kind *kind;
    uint8_t bytes[LARGEST_TREE];
    struct bw_disk_fsverity descriptor;
};

static void hash(const struct kind *kind, const uint8_t *block, uint8_t *result)
{
    static const uint8_t salt[128] = {0xaa, 0xbb, 0xcc, 0xdd};
    gcry_md_hd_t handle;
    const int number = kind->algorithm == 1 ? GCRY_MD_SHA256 : GCRY_MD_SHA512;
    assert_int_equal(gcry_md_open(&handle, number, 0), 0);
    if (kind->salt_size)
        gcry_md_write(handle, salt, kind->algorithm == 1 ? 64 : 128);
    gcry_md_write(handle, block, (size_t)1 << kind->log_block_size);
    memcpy(result, gcry_md_read(handle, number), kind->algorithm == 1 ? 32 : 64);
    gcry_md_close(handle);
}

/* Computes all levels: `wrong` is a block of data whose hash is another one; UINT_MAX: none. */
static void build(struct tree *tree, unsigned wrong)
{
    static const uint8_t zeros[4096];
    const struct kind *kind = tree->kind;
    const unsigned size = 1u << kind->log_block_size, digest = kind->algorithm == 1 ? 32 : 64;
    unsigned count = SIZE / size, end = kind->tree_size;
    const uint8_t *below = NULL;
    memset(tree->bytes, 0, sizeof tree->bytes);
    while (count > 1) {
        const unsigned blocks = (count * digest + size - 1) / size;
        uint8_t *level = tree->bytes + end - blocks * size;
        for (unsigned i = 0; i < count; i++)
            hash(kind, below ? below + i * size : zeros, level + i * digest);
        if (!below && wrong < count)
            level[wrong * digest] ^= 1;
        below = level;
        count = blocks;
        end -= blocks * size;
    }
    assert_int_equal(end, 0);
    tree->descriptor = (struct bw_disk_fsverity){.version = 1,
                                                 .algorithm = kind->algorithm,
                                                 .log_block_size = kind->log_block_size,
                                                 .salt_size = kind->salt_size,
                                                 .data_size = bw_put64(SIZE),
                                                 .salt = {0xaa, 0xbb, 0xcc, 0xdd}};
    hash(kind, below, tree->descriptor.root);
}

static struct iw_image *write(const struct tree *tree, unsigned missing_piece)
{
    const struct iw_options options = {0};
    struct iw_image *image = iw_create(&options);
    const uint64_t inode = iw_file(image, FS, TOP, "file");
    const struct bw_disk_verity_descriptor head = {.size = bw_put64(sizeof tree->descriptor)};
    const struct bw_key key = {inode, BW_INODE_ITEM, 0};
    struct bw_disk_inode_item *item = iw_item_bytes(image, FS, key, NULL);
    item->size = bw_put64(SIZE);
    item->flags = bw_put64(UINT64_C(1) << 32);
    iw_item(image, FS, (struct bw_key){inode, BW_VERITY_DESC_ITEM, 0}, &head, sizeof head);
    iw_item(image, FS, (struct bw_key){inode, BW_VERITY_DESC_ITEM, 1}, &tree->descriptor,
            sizeof tree->descriptor);
    for (unsigned at = 0; at < tree->kind->tree_size; at += PIECE)
        if (at / PIECE != missing_piece)
            iw_item(image, FS, (struct bw_key){inode, BW_VERITY_MERKLE_ITEM, at}, tree->bytes + at,
                    PIECE);
    iw_write_memory(image);
    return image;
}

static unsigned known_or_zero(uint64_t number)
{
    return number == BW_ABSENT ? 0 : (unsigned)number;
}

/* Collects "WORD MESSAGE FILE_OFFSET FILE_LENGTH\n" of the findings of this pass, also of those
 * that the baseline has. */
static struct bw_error *take(void *context, const struct bw_findinginfo *finding)
{
    if (strcmp(finding->pass, "verity") == 0 &&
        !(finding->since && strcmp(finding->since, "gone") == 0))
        bw_buffer_format(context, "%s %s %u %u\n", finding->code, finding->message,
                         known_or_zero(finding->file_offset), known_or_zero(finding->file_length));
    return NULL;
}

static void set_feature(struct bw_disk_superblock *superblock, void *closure)
{
    superblock->compat_ro_flags = bw_put64(BW_COMPAT_RO_VERITY);
}

/* Expects findings of a check, and the same of another one since the first, which skips leaves. */
static void expect(const struct tree *tree, unsigned missing_piece, const char *findings)
{
    struct iw_image *image = write(tree, missing_piece);
    struct bw_baseline *baseline;
    iw_superblock_edit(image, IW_ALL_DEVICES, IW_ALL_COPIES, set_feature, NULL, true);
    expect_success(bw_baseline_create(&baseline));
    for (unsigned is_second = 0; is_second < 2; is_second++) {
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        struct bw_fs *fs = NULL;
        struct bw_check_summary *summary = NULL;
        struct report_log log = {0};
        const struct bw_check_options options = {.struct_size = sizeof options,
                                                 .data = true,
                                                 .threads = 2,
                                                 .visit = take,
                                                 .context = &text,
                                                 .save = is_second ? NULL : baseline,
                                                 .since = is_second ? baseline : NULL};
        expect_success(open_image(image, &log, &fs));
        expect_success(bw_check(fs, &options, &summary));
        bw_check_summary_free(summary);
        bw_fs_close(fs);
        report_log_free(&log);
        assert_string_equal(bw_buffer_text(&text), findings);
    }
    bw_baseline_free(baseline);
    iw_destroy(image);
}

#define DESCRIPTOR "verity-descriptor the descriptor of fs-verity: "
#define TREE       "verity-tree a block of the Merkle tree "

static void test_good(void **state)
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct tree tree = {.kind = &kinds[i]};
        build(&tree, UINT_MAX);
        assert_memory_equal(tree.descriptor.root, kinds[i].root, sizeof kinds[i].root);
        expect(&tree, UINT_MAX, "");
    }
}

static void test_trees(void **state)
{
    struct tree tree = {.kind = &kinds[1]};
    build(&tree, 17);
    expect(&tree, UINT_MAX,
           "verity-data the data do not have their hash in the Merkle tree 17408 1024\n");
    build(&tree, UINT_MAX);
    expect(&tree, 21, TREE "is missing 0 0\n");
    expect(&tree, 0, TREE "is missing 0 0\n");
    tree.bytes[1] ^= 1; /* the top block: it contradicts the root, and the block below it */
    expect(&tree, UINT_MAX,
           TREE "does not have the hash above it 0 0\n" TREE
                "does not have the hash above it 0 0\n");
    tree.bytes[1] ^= 1;
    tree.bytes[3 * 1024 - 1] ^= 1; /* behind the hashes of the level in the middle */
    expect(&tree, UINT_MAX, TREE "does not have the hash above it 0 0\n");
}

static void test_descriptors(void **state)
{
    struct tree tree = {.kind = &kinds[0]};
    build(&tree, UINT_MAX);
    const struct bw_disk_fsverity good = tree.descriptor;
    tree.descriptor.version = 2;
    expect(&tree, UINT_MAX, DESCRIPTOR "it has an unknown version or algorithm 0 0\n");
    tree.descriptor = good;
    tree.descriptor.algorithm = 3;
    expect(&tree, UINT_MAX, DESCRIPTOR "it has an unknown version or algorithm 0 0\n");
    tree.descriptor = good;
    tree.descriptor.log_block_size = 9;
    expect(&tree, UINT_MAX, DESCRIPTOR "it has an impossible size of blocks 0 0\n");
    tree.descriptor = good;
    tree.descriptor.salt_size = 33;
    expect(&tree, UINT_MAX, DESCRIPTOR "it has an impossible size of the salt 0 0\n");
    tree.descriptor = good;
    tree.descriptor.signature_size = bw_put32(1);
    expect(&tree, UINT_MAX, DESCRIPTOR "its signature is cut off 0 0\n");
    tree.descriptor = good;
    tree.descriptor.reserved[143] = 1;
    expect(&tree, UINT_MAX, DESCRIPTOR "its reserved bytes are not zero 0 0\n");
    tree.descriptor = good;
    tree.descriptor.data_size = bw_put64(SIZE + 1);
    expect(&tree, UINT_MAX, DESCRIPTOR "it is of a file of another size 0 0\n");
}
