/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * features/verify: every kind of mismatch leads to the next copy; errors describe all copies; a
 * repair causes one note.
 */
#include <sys/stat.h>

#include "base/galois.h"
#include "ondisk/disk_items.h"
#include "support/block_bench.h"

struct verify_bench {
    struct block_bench *blocks;
    struct bw_graph *graph;
    struct bw_xlator *top;
    struct report_log log;
    uint8_t buffer[BENCH_NODESIZE];
};

static struct verify_bench *make_bench(unsigned copies, enum bw_checksum_type type)
{
    struct verify_bench *bench = calloc(1, sizeof *bench);
    bench->blocks = block_bench_create(copies, type);
    bench->graph = fake_graph(&bench->log);
    bench->top = add_layer(bench->graph, "features/verify",
                           add_fake(bench->graph, &bench->blocks->fake), NULL);
    expect_success(tell_ids(bench->top, type, &bench->blocks->fsid, 1));
    return bench;
}

static void free_bench(struct verify_bench *bench)
{
    bw_graph_destroy(bench->graph);
    block_bench_free(bench->blocks);
    report_log_free(&bench->log);
    free(bench);
}

static struct bw_error *read_block(struct verify_bench *bench, size_t block)
{
    const struct bw_tree_block_expectation wanted = block_bench_expectation(block);
    return block_bench_read(bench->top, block, &wanted, false, bench->buffer);
}

/* Ways for a block to be wrong. All but the first have a right checksum. */
static void spoil_checksum(struct bw_disk_header *header)
{
    header->csum[0] ^= 1;
}
static void spoil_fsid(struct bw_disk_header *header)
{
    header->fsid[5] ^= 1;
}
static void spoil_bytenr(struct bw_disk_header *header)
{
    header->bytenr = bw_put64(4096 * 77);
}
static void spoil_generation(struct bw_disk_header *header)
{
    header->generation = bw_put64(BENCH_GENERATION - 1);
}
static void spoil_owner(struct bw_disk_header *header)
{
    header->owner = bw_put64(BW_EXTENT_TREE);
}
static void spoil_level(struct bw_disk_header *header)
{
    header->level = 1;
}
static void spoil_count(struct bw_disk_header *header)
{
    header->item_count = bw_put32(60000);
}
static void spoil_first_key(struct bw_disk_header *header)
{
    ((struct bw_disk_item *)(header + 1))->key.type = 2;
}

static const struct {
    void (*spoil)(struct bw_disk_header *header);
    const char *text;
} ways[] = {
    {spoil_fsid, "block of another file system"},
    {spoil_bytenr, "bytenr mismatch"},
    {spoil_generation, "generation mismatch, want 7 have 6"},
    {spoil_owner, "owner mismatch, want 5 have 2"},
    {spoil_level, "level mismatch, want 0 have 1"},
    {spoil_count, "invalid item count 60000"},
    {spoil_first_key, "first key mismatch"},
    {spoil_checksum, "checksum mismatch"},
};

static void spoil(struct verify_bench *bench, unsigned copy, size_t block, size_t way,
                  enum bw_checksum_type type)
{
    uint8_t *bytes = block_bench_bytes(bench->blocks, copy, block);
    ways[way].spoil((void *)bytes);
    if (ways[way].spoil != spoil_checksum)
        block_bench_seal(bytes, type);
}

static void test_good_blocks(void **state)
{
    for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++) {
        struct verify_bench *bench = make_bench(2, (enum bw_checksum_type)type);
        for (size_t block = 0; block < 20; block++) {
            expect_success(read_block(bench, block));
            assert_memory_equal(bench->buffer, block_bench_bytes(bench->blocks, 1, block),
                                BENCH_NODESIZE);
        }
        assert_int_equal(bench->blocks->fake.read_count, 20);
        assert_int_equal(bench->log.text.length, 0);
        free_bench(bench);
    }
}

/* Blocks with the CRC-32C of btrfs-image are good in a dump, and nowhere else. */
static void test_dumped_blocks(void **state)
{
    for (unsigned type = BW_CHECKSUM_XXHASH64; type < BW_CHECKSUM_TYPES; type++) {
        struct verify_bench *bench = make_bench(1, BW_CHECKSUM_CRC32C);
        uint8_t *own = block_bench_bytes(bench->blocks, 1, 1);
        struct bw_control_file_system facts = {.checksum_type = (enum bw_checksum_type)type,
                                               .ids = (const void *)&bench->blocks->fsid,
                                               .id_count = 1};
        const struct bw_control control = {BW_CONTROL_FILE_SYSTEM, {.file_system = &facts}};
        block_bench_seal(own, (enum bw_checksum_type)type);
        expect_success(bw_graph_control(bench->graph, &control));
        expect_error(read_block(bench, 0), BW_ERROR_CORRUPT, "checksum mismatch");
        expect_success(read_block(bench, 1));
        facts.other_checksums = ~(1u << BW_CHECKSUM_CRC32C);
        expect_success(bw_graph_control(bench->graph, &control));
        expect_error(read_block(bench, 0), BW_ERROR_CORRUPT, "checksum mismatch");
        facts.other_checksums = 1u << BW_CHECKSUM_CRC32C;
        expect_success(bw_graph_control(bench->graph, &control));
        expect_success(read_block(bench, 0));
        expect_success(read_block(bench, 1));
        facts.other_checksums = 0;
        facts.dumped = true;
        expect_success(bw_graph_control(bench->graph, &control));
        expect_success(read_block(bench, 0));
        expect_success(read_block(bench, 1));
        own[BENCH_NODESIZE - 1] ^= 1;
        expect_error(read_block(bench, 1), BW_ERROR_CORRUPT,
                     bw_checksum_name((enum bw_checksum_type)type));
        free_bench(bench);
    }
}

/* The first copies are wrong in some way each; the last serves. */
static void test_each_mismatch_leads_on(void **state)
{
    for (unsigned copies = 2; copies <= 4; copies++) {
        struct verify_bench *bench = make_bench(copies, BW_CHECKSUM_CRC32C);
        for (size_t way = 0; way < COUNT(ways); way++) {
            for (unsigned copy = 1; copy < copies; copy++)
                spoil(bench, copy, way, way, BW_CHECKSUM_CRC32C);
            expect_success(read_block(bench, way));
            assert_memory_equal(bench->buffer, block_bench_bytes(bench->blocks, copies, way),
                                BENCH_NODESIZE);
            assert_int_equal(report_log_count(&bench->log, ways[way].text), 1);
            assert_int_equal(bench->log.counts[BW_NOTE], way + 1);
        }
        assert_int_equal(report_log_count(&bench->log, "note features/verify tree block"),
                         COUNT(ways));
        free_bench(bench);
    }
}

static void test_error_tells_of_all_copies(void **state)
{
    struct verify_bench *bench = make_bench(4, BW_CHECKSUM_XXHASH64);
    for (unsigned copy = 1; copy <= 4; copy++)
        spoil(bench, copy, 3, copy + 3, BW_CHECKSUM_XXHASH64);
    struct bw_error *error = read_block(bench, 3);
    assert_non_null(error);
    assert_string_equal(
        error->message,
        "tree block 12288 of subvolume 5 (level 0): all 4 mirrors are bad: mirror 1 on device 1 at "
        "12288: level mismatch, want 0 have 1");
    static const char *const reasons[] = {
        "mirror 1 on device 1 at 12288: level mismatch, want 0 have 1",
        "mirror 2 on device 2 at 12288: invalid item count 60000",
        "mirror 3 on device 3 at 12288: first key mismatch, slot 0 key (4 2 0)",
        "mirror 4 on device 4 at 12288: xxhash64 checksum mismatch",
    };
    const struct bw_error *reason = error->causes;
    for (size_t i = 0; i < COUNT(reasons); i++, reason = reason->next) {
        assert_non_null(reason);
        assert_string_equal(reason->message, reasons[i]);
    }
    assert_null(reason);
    assert_int_equal(error->code, BW_ERROR_CORRUPT);
    assert_string_equal(error->way->layer, "features/verify");
    assert_int_equal(error->way->address, 12288);
    bw_error_free(error);
    assert_int_equal(bench->log.text.length, 0);
    free_bench(bench);
}

static void test_copies_that_cannot_be_read(void **state)
{
    struct verify_bench *bench = make_bench(3, BW_CHECKSUM_CRC32C);
    bench->blocks->fake.broken[0] = true;
    expect_success(read_block(bench, 8));
    assert_int_equal(report_log_count(&bench->log, "used mirror 2"), 1);
    assert_int_equal(report_log_count(&bench->log, "fake copy 1 is broken"), 1);
    bench->blocks->fake.broken[1] = bench->blocks->fake.broken[2] = true;
    expect_error(read_block(bench, 8), BW_ERROR_SYSTEM,
                 "all 3 mirrors are bad: mirror 1 on device 1 at 32768: fake copy 1 is broken");
    free_bench(bench);
}

/* Overwrites one of the eight sectors of a copy, with zeros if `byte` is 0. */
static void lose_sector(struct verify_bench *bench, unsigned copy, size_t block, size_t sector,
                        int byte)
{
    memset(block_bench_bytes(bench->blocks, copy, block) + 512 * sector, byte, 512);
}

/* No copy of a block is good, but each of its sectors is good in one of them. */
static void test_joined_copies(void **state)
{
    struct verify_bench *bench = make_bench(3, BW_CHECKSUM_SHA256);
    uint8_t good[BENCH_NODESIZE];
    for (size_t block = 0; block < 2; block++) {
        uint8_t *bytes[3];
        for (unsigned copy = 0; copy < 3; copy++) {
            bytes[copy] = block_bench_bytes(bench->blocks, copy + 1, block);
            memset(bytes[copy] + 1000, 0x11, 1200); /* not only zeros */
            memset(bytes[copy] + 4000, 0x22, 80);
            block_bench_seal(bytes[copy], BW_CHECKSUM_SHA256);
        }
        memcpy(good, bytes[0], BENCH_NODESIZE);
        /* Zeros; and in the second block other bytes, of different sectors. */
        const int byte = block ? 0x55 : 0;
        lose_sector(bench, 1, block, 2, byte);
        lose_sector(bench, 1, block, 3, 0);
        lose_sector(bench, 2, block, 0, byte);
        lose_sector(bench, 2, block, 7, 0);
        lose_sector(bench, 3, block, 0, 0x66);
        lose_sector(bench, 3, block, 3, 0x77);
        for (unsigned round = 0; round < 2; round++) {
            expect_success(read_block(bench, block));
            assert_memory_equal(bench->buffer, good, BENCH_NODESIZE);
        }
    }
    assert_int_equal(report_log_count(&bench->log, "warning features/verify tree block"), 2);
    assert_int_equal(report_log_count(&bench->log, "joined from its bad mirrors"), 2);

    /* A block that did not fit another parent is tried again. */
    for (unsigned copy = 1; copy <= 3; copy++)
        lose_sector(bench, copy, 4, copy, 0x55);
    struct bw_tree_block_expectation wanted = block_bench_expectation(4);
    wanted.generation++;
    expect_error(block_bench_read(bench->top, 4, &wanted, false, bench->buffer), BW_ERROR_CORRUPT,
                 "all 3 mirrors are bad");
    expect_success(read_block(bench, 4));

    /* A sector that all copies have lost; what is joined must be the block that is expected. */
    for (unsigned copy = 1; copy <= 3; copy++) {
        lose_sector(bench, copy, 2, 5, (int)copy);
        spoil_generation((void *)block_bench_bytes(bench->blocks, copy, 3));
        block_bench_seal(block_bench_bytes(bench->blocks, copy, 3), BW_CHECKSUM_SHA256);
        lose_sector(bench, copy, 3, copy, 0x55);
    }
    for (unsigned round = 0; round < 2; round++) {
        expect_error(read_block(bench, 2), BW_ERROR_CORRUPT, "all 3 mirrors are bad");
        expect_error(read_block(bench, 3), BW_ERROR_CORRUPT, "all 3 mirrors are bad");
    }
    free_bench(bench);
}

static void test_repair_is_reported_once(void **state)
{
    struct verify_bench *bench = make_bench(2, BW_CHECKSUM_CRC32C);
    spoil(bench, 1, 0, 2, BW_CHECKSUM_CRC32C);
    spoil(bench, 1, 9, 2, BW_CHECKSUM_CRC32C);
    for (unsigned round = 0; round < 5; round++) {
        expect_success(read_block(bench, 0));
        expect_success(read_block(bench, 9));
    }
    assert_int_equal(bench->log.counts[BW_NOTE], 2);
    assert_int_equal(
        report_log_count(
            &bench->log,
            "tree block 0 of subvolume 5 (level 0): used mirror 2 instead of a bad one"),
        1);
    free_bench(bench);
}

static void test_chosen_copy(void **state)
{
    struct verify_bench *bench = make_bench(3, BW_CHECKSUM_CRC32C);
    spoil(bench, 2, 5, 0, BW_CHECKSUM_CRC32C);
    const struct bw_tree_block_expectation wanted = block_bench_expectation(5);
    for (uint8_t copy = 1; copy <= 3; copy++) {
        struct bw_request request = {.kind = BW_REQUEST_TREE_BLOCK,
                                     .mirror = copy,
                                     .length = BENCH_NODESIZE,
                                     .address = 5 * BENCH_NODESIZE,
                                     .buffer = bench->buffer,
                                     .expectation = &wanted};
        bw_wind(NULL, bench->top, &request, 1);
        if (copy == 2)
            expect_error(request.error, BW_ERROR_CORRUPT, "no good mirror: mirror 2 on device 2");
        else
            expect_success(request.error);
    }
    free_bench(bench);
}

/* In one batch: good ones, repaired ones, lost ones and requests that are no tree blocks. */
static void test_batch(void **state)
{
    struct verify_bench *bench = make_bench(2, BW_CHECKSUM_SHA256);
    struct bw_request requests[40];
    struct bw_tree_block_expectation wanted[40];
    uint8_t *buffers = malloc(40 * BENCH_NODESIZE);
    for (size_t i = 0; i < COUNT(requests); i++) {
        wanted[i] = block_bench_expectation(i);
        if (i % 4 >= 1)
            spoil(bench, 1, i, 7, BW_CHECKSUM_SHA256);
        if (i % 4 >= 2)
            spoil(bench, 2, i, 7, BW_CHECKSUM_SHA256);
        requests[i] =
            (struct bw_request){.kind = i % 4 == 3 ? BW_REQUEST_RAW : BW_REQUEST_TREE_BLOCK,
                                .length = BENCH_NODESIZE,
                                .address = i * BENCH_NODESIZE,
                                .buffer = buffers + i * BENCH_NODESIZE,
                                .expectation = &wanted[i]};
    }
    bw_wind(NULL, bench->top, requests, COUNT(requests));
    for (size_t i = 0; i < COUNT(requests); i++) {
        if (i % 4 == 2)
            expect_error(requests[i].error, BW_ERROR_CORRUPT, "sha256 checksum mismatch");
        else
            expect_success(requests[i].error);
        if (i % 4 < 2)
            assert_memory_equal(requests[i].buffer, block_bench_bytes(bench->blocks, 2, i),
                                BENCH_NODESIZE);
    }
    assert_int_equal(bench->log.counts[BW_NOTE], 10);
    free(buffers);
    free_bench(bench);
}

/* All copies of bad data are requested together, but not those of data that a disk cannot read. */
static void test_announced_copies(void **state)
{
    struct verify_bench *bench = make_bench(2, BW_CHECKSUM_CRC32C);
    struct fake_layer *fake = &bench->blocks->fake;
    const uint8_t sums[BW_CSUM_SIZE] = {1};
    const struct bw_data_expectation wanted = {sums, BENCH_NODESIZE, 0};
    for (unsigned broken = 0; broken < 2; broken++) {
        struct bw_request request = {.kind = BW_REQUEST_DATA,
                                     .length = BENCH_NODESIZE,
                                     .buffer = bench->buffer,
                                     .data = &wanted};
        fake->broken[0] = fake->broken[1] = broken;
        fake->hint_count = 0;
        bw_wind(NULL, bench->top, &request, 1);
        expect_error(request.error, broken ? BW_ERROR_SYSTEM : BW_ERROR_CORRUPT, "mirrors are bad");
        assert_int_equal(fake->hint_count, broken ? 0 : 2);
    }
    free_bench(bench);
}

/* A block that has a flipped bit in its unused space is only as good as its items. */
static void test_items_of_corrected_blocks(void **state)
{
    enum { BLOCK = 299, UNUSED = 2000, NO_TYPE = 07777 };
    static const struct {
        uint32_t mode;
        unsigned flips;
        const char *error;
    } cases[] = {{S_IFREG | 0644, 1, NULL},
                 {S_IFREG | 0644, 2, "checksum mismatch"},
                 {NO_TYPE, 0, NULL}, /* a matching checksum: readers decide about each item */
                 {NO_TYPE, 1, "checksum mismatch"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct verify_bench *bench = make_bench(1, BW_CHECKSUM_CRC32C);
        const struct bw_control_file_system facts = {.checksum_type = BW_CHECKSUM_CRC32C,
                                                     .nodesize = BENCH_NODESIZE,
                                                     .sectorsize = 4096,
                                                     .ids = (const void *)&bench->blocks->fsid,
                                                     .id_count = 1,
                                                     .generation = BENCH_GENERATION};
        expect_success(bw_graph_control(
            bench->graph, &(struct bw_control){BW_CONTROL_FILE_SYSTEM, {.file_system = &facts}}));
        uint8_t *block = block_bench_bytes(bench->blocks, 1, BLOCK);
        struct bw_disk_inode_item *inode = (void *)(block + BENCH_NODESIZE - sizeof *inode);
        inode->mode = bw_put32(cases[i].mode);
        block_bench_seal(block, BW_CHECKSUM_CRC32C);
        for (unsigned flip = 0; flip < cases[i].flips; flip++)
            block[UNUSED + flip] ^= 4;
        struct bw_error *error = read_block(bench, BLOCK);
        if (cases[i].error)
            expect_error(error, BW_ERROR_CORRUPT, cases[i].error);
        else
            expect_success(error);
        free_bench(bench);
    }
}

/* A search is remembered for its own block: wrong pointers lead to any address, also to one that is
 * a byte further. */
static void test_wrong_address(void **state)
{
    enum { BLOCK = 5 };
    struct verify_bench *bench = make_bench(1, BW_CHECKSUM_SHA256);
    struct bw_tree_block_expectation wanted = block_bench_expectation(BLOCK);
    wanted.generation = 0x70000000; /* as a flipped bit, far behind the block */
    bench->top = add_layer(bench->graph, "features/verify", bw_xlator_child(bench->top, 0),
                           (const struct option_value[]){
                               {"correct-bits", "metadata"}, {"search-time", "60s"}, {NULL, NULL}});
    expect_success(tell_ids(bench->top, BW_CHECKSUM_SHA256, &bench->blocks->fsid, 1));
    struct bw_request wrong = {.kind = BW_REQUEST_TREE_BLOCK,
                               .length = BENCH_NODESIZE,
                               .address = BLOCK * BENCH_NODESIZE + 1,
                               .buffer = bench->buffer,
                               .expectation = &wanted};
    bw_wind(NULL, bench->top, &wrong, 1);
    expect_error(wrong.error, BW_ERROR_CORRUPT, "mismatch");
    spoil(bench, 1, BLOCK, 7, BW_CHECKSUM_SHA256);
    expect_success(read_block(bench, BLOCK));
    free_bench(bench);
}

/* Two layers share the time in which they may search for flipped bits. */
static void test_shared_limit(void **state)
{
    enum { FIRST = 299, SECOND = 298 };
    const uint64_t minute = UINT64_C(60000000000);
    struct bw_search_limit limit = {.nanoseconds = minute};
    for (unsigned round = 0; round < 3; round++) {
        struct verify_bench *bench = make_bench(1, BW_CHECKSUM_XXHASH64);
        bench->graph->inputs.search_limit = &limit;
        struct bw_xlator *layer = add_layer(
            bench->graph, "features/verify", bw_xlator_child(bench->top, 0),
            (const struct option_value[]){{"search-time", round == 2 ? "0" : "60s"}, {NULL, NULL}});
        expect_success(tell_ids(layer, BW_CHECKSUM_XXHASH64, &bench->blocks->fsid, 1));
        block_bench_bytes(bench->blocks, 1, FIRST)[2000] ^= 4;
        block_bench_bytes(bench->blocks, 1, SECOND)[2000] ^= 4;
        bench->top = layer;
        if (round == 0) { /* it is found or not, but the search takes time */
            bw_error_free(read_block(bench, FIRST));
            assert_in_range(limit.nanoseconds, 1, minute - 1);
            assert_int_equal(limit.not_searched, 0);
            limit.nanoseconds = 0;
        }
        expect_error(read_block(bench, SECOND), BW_ERROR_CORRUPT, "checksum mismatch");
        expect_error(read_block(bench, SECOND), BW_ERROR_CORRUPT, "checksum mismatch");
        assert_int_equal(limit.not_searched, round == 0 ? 1 : 2); /* not by one that never does */
        assert_int_equal(limit.nanoseconds, 0);
        free_bench(bench);
    }
}

static void test_more_than_one_fsid(void **state)
{
    struct verify_bench *bench = make_bench(1, BW_CHECKSUM_CRC32C);
    uint8_t ids[2][BW_UUID_SIZE], *seed = ids[1];
    memcpy(ids[0], bench->blocks->fsid, BW_UUID_SIZE);
    memcpy(seed, "the id of a seed", BW_UUID_SIZE);
    memcpy(((struct bw_disk_header *)block_bench_bytes(bench->blocks, 1, 1))->fsid, seed,
           BW_UUID_SIZE);
    block_bench_seal(block_bench_bytes(bench->blocks, 1, 1), BW_CHECKSUM_CRC32C);
    expect_error(read_block(bench, 1), BW_ERROR_CORRUPT, "block of another file system");
    expect_success(tell_ids(bench->top, BW_CHECKSUM_CRC32C, (const void *)ids, 2));
    expect_success(read_block(bench, 1));
    expect_success(read_block(bench, 2));

    /* A file system with the same fsid; a seed has a chunk_tree_uuid of its own. */
    const struct bw_control_file_system facts = {.checksum_type = BW_CHECKSUM_CRC32C,
                                                 .ids = (const void *)ids,
                                                 .id_count = 2,
                                                 .chunk_tree_uuid = seed};
    expect_success(bw_graph_control(
        bench->graph, &(struct bw_control){BW_CONTROL_FILE_SYSTEM, {.file_system = &facts}}));
    expect_success(read_block(bench, 1));
    expect_error(read_block(bench, 2), BW_ERROR_CORRUPT, "block of another file system");
    memcpy(((struct bw_disk_header *)block_bench_bytes(bench->blocks, 1, 2))->chunk_tree_uuid, seed,
           BW_UUID_SIZE);
    block_bench_seal(block_bench_bytes(bench->blocks, 1, 2), BW_CHECKSUM_CRC32C);
    expect_success(read_block(bench, 2));
    free_bench(bench);
}

/* btrfstune was interrupted between two writes: a block has the new checksum, and the parity of its
 * row is old, or the reverse. Whatever is computed from them has a wrong checksum. */
static void test_parity_before_a_change(void **state)
{
    enum { STRIPE = BW_STRIPE_LENGTH / BENCH_NODESIZE };
    for (unsigned pair = 0; pair < BW_CHECKSUM_TYPES * BW_CHECKSUM_TYPES * 4; pair++) {
        const uint8_t factor = pair & 3 ? 1 : 0x1d; /* RAID6, with two lost devices */
        const enum bw_checksum_type old = pair / 4 / BW_CHECKSUM_TYPES,
                                    new = pair / 4 % BW_CHECKSUM_TYPES;
        const bool is_written = pair & 1, is_last = pair & 2;
        if (old == new)
            continue;
        struct verify_bench *bench = make_bench(1, old);
        uint8_t before[BENCH_NODESIZE], after[BENCH_NODESIZE], sum[BW_CSUM_SIZE];
        uint8_t *wanted = block_bench_bytes(bench->blocks, 1, is_last ? STRIPE : 0);
        uint8_t *other = block_bench_bytes(bench->blocks, 1, is_last ? 0 : STRIPE);
        memcpy(before, other, BENCH_NODESIZE);
        memcpy(after, other, BENCH_NODESIZE);
        bw_checksum_compute(new, after + BW_CSUM_SIZE, BENCH_NODESIZE - BW_CSUM_SIZE, sum);
        memcpy(after, sum, bw_checksum_size(new));
        memcpy(other, is_written ? after : before, BENCH_NODESIZE);
        for (size_t i = 0; i < BW_CSUM_SIZE; i++)
            wanted[i] ^= bw_field_product(factor, before[i] ^ after[i]);

        bench->blocks->fake.rebuilt = true;
        struct bw_control_file_system facts = {.checksum_type = old,
                                               .other_checksums = BW_ALL_CHECKSUMS,
                                               .ids = (const void *)&bench->blocks->fsid,
                                               .id_count = 1};
        const struct bw_control control = {BW_CONTROL_FILE_SYSTEM, {.file_system = &facts}};
        expect_success(bw_graph_control(bench->graph, &control));
        expect_success(read_block(bench, is_last ? STRIPE : 0));
        assert_true(bw_checksum_matches_block(old, bench->buffer, BENCH_NODESIZE));

        /* Another byte is wrong; nothing is computed; no change was interrupted. */
        wanted[BENCH_NODESIZE - 1] ^= 1;
        expect_error(read_block(bench, is_last ? STRIPE : 0), BW_ERROR_CORRUPT, "mismatch");
        wanted[BENCH_NODESIZE - 1] ^= 1;
        bench->blocks->fake.rebuilt = false;
        expect_error(read_block(bench, is_last ? STRIPE : 0), BW_ERROR_CORRUPT, "mismatch");
        bench->blocks->fake.rebuilt = true;
        facts.other_checksums = 0;
        expect_success(bw_graph_control(bench->graph, &control));
        expect_error(read_block(bench, is_last ? STRIPE : 0), BW_ERROR_CORRUPT, "mismatch");
        free_bench(bench);
    }
}
