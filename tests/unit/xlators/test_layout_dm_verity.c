/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout/dm-verity: hash trees made block by block, and changed ones. */
#include <endian.h>
#include <gcrypt.h>
#include <stdio.h>

#include "base/gcrypt.h"
#include "support/fake_layer.h"

enum { DATA = 512 << 10, ROOM = 512 << 10, HASHES = DATA };

/* The parameters of a tree, as veritysetup accepts them. */
struct form {
    uint8_t type;
    const char *hash;
    int algorithm;
    uint32_t data_block, hash_block;
    const char *salt;
    unsigned levels;
};

static const struct form usual = {1, "sha256", GCRY_MD_SHA256, 4096, 4096, "salt", 1};

struct bench {
    struct fake_layer data, hashes;
    uint8_t bytes[DATA + ROOM];
    uint8_t root[64];
    char digits[129];
    uint64_t data_size, hash_size; /* 0: all of it */
    size_t tree[8];                /* offset of each level in `bytes`; level 0 is the lowest */
    struct report_log log;
    struct bw_graph *graph;
    struct bw_xlator *below[2], *top;
};

static void hash(const struct form *form, const uint8_t *block, size_t length, uint8_t *digest)
{
    const size_t salt = strlen(form->salt);
    uint8_t *joined = malloc(length + salt + 1);
    memcpy(joined + (form->type ? salt : 0), block, length);
    memcpy(joined + (form->type ? 0 : length), form->salt, salt);
    gcry_md_hash_buffer(form->algorithm, digest, joined, length + salt);
    free(joined);
}

/* The number of blocks in a level. */
static size_t count_blocks(const struct form *form, size_t per_block, unsigned level)
{
    size_t count = DATA / form->data_block;
    for (unsigned i = 0; i <= level; i++)
        count = (count + per_block - 1) / per_block;
    return count;
}

static size_t hashes_per_block(const struct form *form, size_t *step)
{
    const size_t digest = gcry_md_get_algo_dlen(form->algorithm);
    size_t padded = 1, count = 1;
    while (padded < digest)
        padded *= 2;
    while (count * 2 * digest <= form->hash_block)
        count *= 2;
    *step = form->type ? padded : digest;
    return count;
}

static void put_superblock(struct bench *bench, const struct form *form)
{
    uint8_t *at = bench->bytes + HASHES;
    const uint32_t numbers[] = {htole32(1), htole32(form->type)};
    const uint32_t sizes[] = {htole32(form->data_block), htole32(form->hash_block)};
    const uint64_t blocks = htole64(DATA / form->data_block);
    memcpy(at, "verity\0\0", 8);
    memcpy(at + 8, numbers, 8);
    strcpy((char *)at + 32, form->hash);
    memcpy(at + 64, sizes, 8);
    memcpy(at + 72, &blocks, 8);
    at[80] = (uint8_t)strlen(form->salt);
    memcpy(at + 88, form->salt, strlen(form->salt));
}

static void make_tree(struct bench *bench, const struct form *form)
{
    size_t step, length = form->data_block, count = DATA / form->data_block;
    const size_t per_block = hashes_per_block(form, &step);
    const uint8_t *from = bench->bytes;
    size_t next = HASHES + (512 > form->hash_block ? 512 : form->hash_block);
    for (unsigned level = form->levels; level-- > 0;) {
        bench->tree[level] = next;
        next += count_blocks(form, per_block, level) * form->hash_block;
    }
    for (unsigned level = 0; level < form->levels; level++) {
        uint8_t *to = bench->bytes + bench->tree[level];
        for (size_t i = 0; i < count; i++)
            hash(form, from + i * length, length,
                 to + i / per_block * form->hash_block + i % per_block * step);
        from = to;
        length = form->hash_block;
        count = count_blocks(form, per_block, level);
    }
    assert_int_equal(count, 1);
    hash(form, from, length, bench->root);
    for (size_t i = 0; i < gcry_md_get_algo_dlen(form->algorithm); i++)
        sprintf(bench->digits + 2 * i, "%02X", bench->root[i]);
}

static struct bench *make_bench(const struct form *form)
{
    struct bench *bench = calloc(1, sizeof *bench);
    expect_success(bw_gcrypt_prepare());
    for (size_t i = 0; i < DATA; i++)
        bench->bytes[i] = (uint8_t)(i * 7 >> 3 ^ i >> 11);
    put_superblock(bench, form);
    make_tree(bench, form);
    return bench;
}

/* `count`: devices, of which the second one has the hashes. */
static struct bw_error *open_bench(struct bench *bench, size_t count, const char *root)
{
    const struct option_value values[] = {
        {"root-hash", root}, {"hash-offset", count == 1 ? "512K" : "0"}, {NULL, NULL}};
    const uint64_t size = count == 1 ? DATA + ROOM : DATA;
    bench->data = (struct fake_layer){.copies = {bench->bytes},
                                      .size = bench->data_size ? bench->data_size : size};
    bench->hashes = (struct fake_layer){.copies = {bench->bytes + HASHES},
                                        .size = bench->hash_size ? bench->hash_size : ROOM};
    bench->graph = fake_graph(&bench->log);
    bench->below[0] = add_fake_device(bench->graph, &bench->data);
    bench->below[1] = add_fake_device(bench->graph, &bench->hashes);
    const struct layer layer = {.type = "layout/dm-verity",
                                .name = "verity",
                                .options = values,
                                .children = bench->below,
                                .child_count = count};
    return graph_add(bench->graph, &layer, &bench->top);
}

static void close_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    report_log_free(&bench->log);
    bench->log = (struct report_log){0};
}

static void refuse(struct bench *bench, const char *root, enum bw_error_code code,
                   const char *message)
{
    expect_error(open_bench(bench, 2, root), code, message);
    close_bench(bench);
}

static void expect_bytes(struct bench *bench, uint64_t address, uint32_t length)
{
    static uint8_t buffer[DATA];
    expect_success(read_range(bench->top, address, buffer, length));
    assert_memory_equal(buffer, bench->bytes + address, length);
}

static void expect_failure(struct bench *bench, uint64_t address, uint32_t length,
                           const char *message)
{
    static uint8_t buffer[DATA];
    expect_error(read_range(bench->top, address, buffer, length), BW_ERROR_CORRUPT, message);
}

static void test_forms(void **state)
{
    static const struct form forms[] = {
        {1, "sha256", GCRY_MD_SHA256, 4096, 4096, "salt", 1},
        {1, "sha1", GCRY_MD_SHA1, 512, 512, "", 3},
        {0, "sha1", GCRY_MD_SHA1, 1024, 512, "pepper", 3},
        {0, "sha256", GCRY_MD_SHA256, 512, 4096, "", 2},
        {1, "sha512", GCRY_MD_SHA512, 65536, 512, "salt", 1},
        {1, "sha512", GCRY_MD_SHA512, 512, 512, "s", 4},
        {0, "wp512", GCRY_MD_WHIRLPOOL, 4096, 1024, "s", 2},
        {1, "rmd160", GCRY_MD_RMD160, 512, 65536, "", 1},
        {1, "blake2b-256", GCRY_MD_BLAKE2B_256, 8192, 65536, "", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct bench *bench = make_bench(&forms[i]);
        for (size_t count = 1; count <= 2; count++) {
            expect_success(open_bench(bench, count, bench->digits));
            assert_int_equal(bw_xlator_size(bench->top), DATA);
            expect_bytes(bench, 0, DATA);
            expect_bytes(bench, 65536, 65536);
            expect_bytes(bench, 12345, 7);
            expect_bytes(bench, DATA - 3, 3);
            expect_failure(bench, DATA - 3, 4, "the data of dm-verity end at 524288, before the");
            expect_failure(bench, UINT64_MAX - 3, 2, "the data of dm-verity end at 524288");
            close_bench(bench);
        }
        free(bench);
    }
}

static void test_damage(void **state)
{
    static const struct form form = {1, "sha256", GCRY_MD_SHA256, 512, 512, "salt", 3};
    struct bench *bench = make_bench(&form);
    (void)state;
    bench->bytes[512 * 77 + 3] ^= 1;
    expect_success(open_bench(bench, 2, bench->digits));
    expect_failure(bench, 512 * 70, 512 * 10,
                   "data block 77 does not match its hash at level 0 of the hash tree");
    expect_failure(bench, 512 * 77 + 511, 1, "data block 77 does not match");
    expect_bytes(bench, 0, 512 * 77);
    expect_bytes(bench, 512 * 78, DATA - 512 * 78);
    close_bench(bench);
    bench->bytes[512 * 77 + 3] ^= 1;
    bench->bytes[bench->tree[0] + 512 * 5 + 40] ^= 1; /* data blocks 80 to 95 */
    expect_success(open_bench(bench, 2, bench->digits));
    for (unsigned repeat = 0; repeat < 2; repeat++) {
        expect_failure(bench, 512 * 88, 512,
                       "data block 88 cannot be verified: hash block 11 at level 0 of the hash "
                       "tree: it does not match its hash");
        expect_bytes(bench, 0, 512 * 80);
        expect_bytes(bench, 512 * 96, 512);
    }
    close_bench(bench);
    bench->bytes[bench->tree[1] + 512 * 2] ^= 1;
    expect_success(open_bench(bench, 2, bench->digits));
    expect_failure(bench, 512 * 512, 512, "hash block 4 at level 1 of the hash tree: it does not");
    expect_bytes(bench, 512 * 768, 512);
    close_bench(bench);
    free(bench);
}

/* Blocks of the tree are read once, those of several levels too if they fall into one slot. */
static void test_cache(void **state)
{
    static const struct form form = {1, "sha256", GCRY_MD_SHA256, 512, 512, "salt", 3};
    struct bench *bench = make_bench(&form);
    (void)state;
    expect_success(open_bench(bench, 2, bench->digits));
    bench->hashes.read_count = 0;
    expect_bytes(bench, 0, DATA);
    assert_int_equal(bench->hashes.read_count, 4 + 64); /* all but the root, which was read */
    expect_bytes(bench, 0, DATA);
    assert_int_equal(bench->hashes.read_count, 4 + 64);
    close_bench(bench);
    free(bench);
}

static void test_root_hash(void **state)
{
    struct bench *bench = make_bench(&usual);
    char wrong[129];
    (void)state;
    strcpy(wrong, bench->digits);
    wrong[63] = wrong[63] == '0' ? '1' : '0';
    refuse(bench, wrong, BW_ERROR_CORRUPT, "the root hash does not match the hash tree");
    refuse(bench, "0", BW_ERROR_USAGE, "a root hash of sha256 has 64 hexadecimal digits");
    wrong[63] = 'g';
    refuse(bench, wrong, BW_ERROR_USAGE, "has 64 hexadecimal digits");
    wrong[63] = '@' - 0x20;
    refuse(bench, wrong, BW_ERROR_USAGE, "has 64 hexadecimal digits");
    bench->bytes[5] ^= 1;
    expect_success(open_bench(bench, 2, ""));
    assert_int_equal(report_log_count(&bench->log, "the data are not verified by dm-verity"), 1);
    assert_string_equal(bench->top->type->operations.title(bench->top), "dm-verity (not verified)");
    expect_bytes(bench, 0, DATA);
    close_bench(bench);
    expect_success(open_bench(bench, 2, bench->digits));
    assert_string_equal(bench->top->type->operations.title(bench->top), "dm-verity");
    close_bench(bench);
    free(bench);
}

static void test_one_block(void **state)
{
    static const struct form form = {1, "sha256", GCRY_MD_SHA256, 4096, 4096, "salt", 0};
    struct bench *bench = calloc(1, sizeof *bench);
    const uint64_t one = htole64(1);
    (void)state;
    expect_success(bw_gcrypt_prepare());
    put_superblock(bench, &form);
    memcpy(bench->bytes + HASHES + 72, &one, 8);
    hash(&form, bench->bytes, 4096, bench->root);
    for (size_t i = 0; i < 32; i++)
        sprintf(bench->digits + 2 * i, "%02x", bench->root[i]);
    expect_success(open_bench(bench, 2, bench->digits));
    expect_bytes(bench, 0, 4096);
    bench->bytes[9] = 1;
    expect_failure(bench, 0, 4096, "data block 0 does not match");
    close_bench(bench);
    free(bench);
}

static void change_superblock(size_t offset, uint64_t value, size_t length, enum bw_error_code code,
                              const char *message)
{
    struct bench *bench = make_bench(&usual);
    const uint64_t raw = htole64(value);
    memcpy(bench->bytes + HASHES + offset, &raw, length);
    refuse(bench, bench->digits, code, message);
    free(bench);
}

static void test_superblocks(void **state)
{
    (void)state;
    change_superblock(0, 0, 8, BW_ERROR_NOT_FOUND, "has no superblock of dm-verity at 0");
    change_superblock(8, 2, 4, BW_ERROR_NOT_FOUND, "no superblock");
    change_superblock(12, 2, 4, BW_ERROR_NOT_FOUND, "no superblock");
    change_superblock(64, 4097, 4, BW_ERROR_NOT_FOUND, "no superblock");
    change_superblock(64, 0, 4, BW_ERROR_NOT_FOUND, "no superblock");
    change_superblock(68, 131072, 4, BW_ERROR_NOT_FOUND, "no superblock");
    change_superblock(68, 256, 4, BW_ERROR_NOT_FOUND, "no superblock");
    change_superblock(72, 0, 8, BW_ERROR_CORRUPT, "dm-verity has 0 data blocks");
    change_superblock(72, UINT64_MAX, 8, BW_ERROR_CORRUPT, "has 18446744073709551615 data blocks");
    change_superblock(80, 257, 2, BW_ERROR_CORRUPT, "the salt of dm-verity has 257 bytes");
    change_superblock(32, 0x35646d78, 5, BW_ERROR_UNSUPPORTED, "the hash xmd5 of dm-verity is not");
}

/* A tree of the largest size, of which the device has the topmost block only. */
static void test_largest(void **state)
{
    static const struct form forms[] = {
        {1, "sha512", GCRY_MD_SHA512, 512, 512, "", 4},
        {1, "crc32", GCRY_MD_CRC32, 512, 32768, "", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct bench *bench = make_bench(&forms[i]);
        const uint64_t blocks = htole64(INT64_MAX / forms[i].data_block);
        memcpy(bench->bytes + HASHES + 72, &blocks, 8);
        expect_success(open_bench(bench, 2, bench->digits));
        expect_failure(bench, DATA - 512, 512, "data block 1023 cannot be verified: hash block");
        close_bench(bench);
        free(bench);
    }
}

/* The start of a truncated device is read. */
static void test_cut_off(void **state)
{
    struct bench *bench = make_bench(&usual);
    (void)state;
    bench->data_size = 10000;
    bench->hash_size = 8192;
    expect_success(open_bench(bench, 2, bench->digits));
    assert_int_equal(bw_xlator_size(bench->top), 8192);
    expect_bytes(bench, 0, 8192);
    expect_failure(bench, 8192, 1, "the data of dm-verity end at 8192");
    close_bench(bench);
    bench->hash_size = 8191;
    refuse(bench, bench->digits, BW_ERROR_CORRUPT, "ends at 8191, before the end of 4096 bytes at");
    free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),     cmocka_unit_test(test_damage),
        cmocka_unit_test(test_cache),     cmocka_unit_test(test_root_hash),
        cmocka_unit_test(test_one_block), cmocka_unit_test(test_superblocks),
        cmocka_unit_test(test_largest),   cmocka_unit_test(test_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
