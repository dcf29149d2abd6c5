/* SPDX-License-Identifier: GPL-2.0-or-later */
/* layout/md: small arrays made byte by byte, members that are missing or late, and bad superblocks.
 * tests/command/containers.sh reads arrays of all levels and layouts. */
#include <inttypes.h>

#include "base/crc32c.h"
#include "base/endian.h"
#include "support/fake_layer.h"
#include "xlators/layout/containers.h"

enum {
    MEMBERS = 5,
    ROLES = 6,
    SIZE = 256 << 10,
    BEGIN = 64 << 10, /* of the data */
    CHUNK = 16 << 10,
    ROWS = (SIZE - BEGIN) / CHUNK,
    SUPERBLOCK = 4096,
};

struct bench {
    struct fake_layer fakes[MEMBERS];
    uint8_t bytes[MEMBERS][SIZE];
    size_t lost[MEMBERS]; /* bytes at the end that are cut off */
    struct report_log log;
    struct bw_graph *graph;
    struct bw_xlator *members[MEMBERS], *top;
};

static uint32_t get_32(const uint8_t *at)
{
    bw_le32 raw;
    memcpy(&raw, at, sizeof raw);
    return bw_get32(raw);
}

/* The checksum of a superblock. */
static void seal(uint8_t *block)
{
    uint64_t sum = 0;
    put_le32(block + 216, 0);
    for (size_t at = 0; at < 256 + 2 * ROLES; at += 4)
        sum += get_32(block + at);
    put_le32(block + 216, (uint32_t)((sum & UINT32_MAX) + (sum >> 32)));
}

/* Superblocks of version 1.2. */
static void put_superblock(struct bench *bench, uint32_t number, int level, uint32_t layout,
                           uint32_t count)
{
    uint8_t *block = bench->bytes[number] + SUPERBLOCK;
    put_le32(block, 0xa92b4efc);
    put_le32(block + 4, 1);
    memcpy(block + 16, "the id of it all", 16);
    strcpy((char *)block + 32, "host:7");
    put_le32(block + 72, (uint32_t)level);
    put_le32(block + 76, layout);
    put_le64(block + 80, (SIZE - BEGIN) / 512);
    put_le32(block + 88, level == 1 ? 0 : CHUNK / 512);
    put_le32(block + 92, count);
    put_le64(block + 128, BEGIN / 512);
    put_le64(block + 136, (SIZE - BEGIN) / 512);
    put_le64(block + 144, SUPERBLOCK / 512);
    put_le32(block + 160, number);
    put_le64(block + 200, 10);
    put_le32(block + 220, ROLES);
    for (uint32_t i = 0; i < ROLES; i++) {
        block[256 + 2 * i] = i < count ? (uint8_t)i : 0xff;
        block[257 + 2 * i] = i < count ? 0 : 0xff;
    }
    seal(block);
}

static uint8_t byte_at(uint64_t address)
{
    return (uint8_t)(address / CHUNK * 37 + address * 3 + 1);
}

static struct bench *make_raid1(void)
{
    struct bench *bench = calloc(1, sizeof *bench);
    for (uint32_t i = 0; i < 2; i++) {
        for (size_t at = 0; at < SIZE - BEGIN; at++)
            bench->bytes[i][BEGIN + at] = byte_at(at);
        put_superblock(bench, i, 1, 0, 2);
    }
    return bench;
}

/* RAID5 of three devices in the layout left-symmetric. */
static struct bench *make_raid5(void)
{
    struct bench *bench = calloc(1, sizeof *bench);
    for (uint64_t at = 0; at < 2 * (SIZE - BEGIN); at++) {
        const uint64_t row = at / CHUNK / 2, parity = 2 - row % 3;
        const uint64_t member = (parity + 1 + at / CHUNK % 2) % 3;
        const uint64_t offset = BEGIN + row * CHUNK + at % CHUNK;
        bench->bytes[member][offset] = byte_at(at);
        bench->bytes[parity][offset] ^= byte_at(at);
    }
    for (uint32_t i = 0; i < 3; i++)
        put_superblock(bench, i, 5, 2, 3);
    return bench;
}

/* Opens the array with the members whose bits are set. */
static struct bw_error *open_bench(struct bench *bench, unsigned members)
{
    size_t count = 0;
    bench->graph = fake_graph(&bench->log);
    for (unsigned i = MEMBERS; i-- > 0;) { /* not in the order of their roles */
        if (!(members >> i & 1))
            continue;
        bench->fakes[i] =
            (struct fake_layer){.copies = {bench->bytes[i]}, .size = SIZE - bench->lost[i]};
        bench->members[count++] = add_fake_device(bench->graph, &bench->fakes[i]);
    }
    const struct layer layer = {
        .type = "layout/md", .name = "md", .children = bench->members, .child_count = count};
    return graph_add(bench->graph, &layer, &bench->top);
}

static void close_bench(struct bench *bench)
{
    bw_graph_destroy(bench->graph);
    report_log_free(&bench->log);
    bench->log = (struct report_log){0};
}

static void check_contents(struct bench *bench, uint64_t size)
{
    uint8_t *buffer = malloc(size);
    assert_int_equal(bw_xlator_size(bench->top), size);
    expect_success(read_range(bench->top, 0, buffer, (uint32_t)size));
    for (uint64_t at = 0; at < size; at++)
        assert_int_equal(buffer[at], byte_at(at));
    expect_success(read_range(bench->top, CHUNK - 5, buffer, 10));
    for (uint64_t at = 0; at < 10; at++)
        assert_int_equal(buffer[at], byte_at(CHUNK - 5 + at));
    expect_error(read_range(bench->top, size - 1, buffer, 2), BW_ERROR_CORRUPT, "the array ends");
    free(buffer);
}

static void test_raid1(void **state)
{
    struct bench *bench = make_raid1();
    expect_success(open_bench(bench, 3));
    check_contents(bench, SIZE - BEGIN);
    bench->fakes[0].broken[0] = true; /* the other mirror is read */
    check_contents(bench, SIZE - BEGIN);
    bench->fakes[1].broken[0] = true;
    uint8_t byte;
    struct bw_error *error = read_range(bench->top, 0, &byte, 1);
    assert_non_null(error);
    bw_error_free(error);
    close_bench(bench);
    for (unsigned member = 1; member <= 2; member++) {
        expect_success(open_bench(bench, member));
        check_contents(bench, SIZE - BEGIN);
        assert_int_equal(report_log_count(&bench->log, "host:7 is degraded: of its 2 devices"), 1);
        close_bench(bench);
    }
    free(bench);
}

static void test_raid5(void **state)
{
    struct bench *bench = make_raid5();
    expect_success(open_bench(bench, 7));
    check_contents(bench, 2 * (SIZE - BEGIN));
    bench->fakes[1].broken[0] = true; /* computed from parity */
    check_contents(bench, 2 * (SIZE - BEGIN));
    close_bench(bench);
    for (unsigned missing = 0; missing < 3; missing++) {
        expect_success(open_bench(bench, 7 & ~(1u << missing)));
        check_contents(bench, 2 * (SIZE - BEGIN));
        close_bench(bench);
    }
    expect_error(open_bench(bench, 4), BW_ERROR_MISSING_DEVICE,
                 "host:7 is incomplete: of its 3 devices, numbers 0, 1 are missing; it needs 2");
    close_bench(bench);
    free(bench);
}

static void test_late_member(void **state)
{
    struct bench *bench = make_raid1();
    memset(bench->bytes[0] + BEGIN, 0xee, SIZE - BEGIN);
    put_le64(bench->bytes[0] + SUPERBLOCK + 200, 8);
    seal(bench->bytes[0] + SUPERBLOCK);
    expect_success(open_bench(bench, 3));
    check_contents(bench, SIZE - BEGIN);
    assert_int_equal(report_log_count(&bench->log, "is not used in the MD array: it missed"), 1);
    close_bench(bench);
    free(bench);
}

static void test_recovering_member(void **state)
{
    struct bench *bench = make_raid1();
    uint8_t *block = bench->bytes[0] + SUPERBLOCK;
    memset(bench->bytes[0] + BEGIN + CHUNK, 0xee, SIZE - BEGIN - CHUNK);
    put_le32(block + 8, 2);
    put_le64(block + 152, CHUNK / 512);
    seal(block);
    expect_success(open_bench(bench, 3));
    check_contents(bench, SIZE - BEGIN);
    close_bench(bench);
    free(bench);
}

/* Writes the list of bad blocks of a member, in sectors of its data, after its superblock. */
static void put_bad_blocks(struct bench *bench, uint32_t number, const uint64_t (*ranges)[2],
                           size_t count)
{
    uint8_t *block = bench->bytes[number] + SUPERBLOCK, *list = block + 4096;
    put_le32(block + 8, 8);
    block[186] = 8;
    put_le32(block + 188, 8);
    memset(list, 0xff, 4096);
    for (size_t i = 0; i < count; i++) {
        put_le64(list + 8 * i, (BEGIN / 512 + ranges[i][0]) << 10 | ranges[i][1]);
        memset(bench->bytes[number] + BEGIN + ranges[i][0] * 512, 0xee, ranges[i][1] * 512);
    }
    seal(block);
}

static void test_bad_blocks(void **state)
{
    const uint64_t first[][2] = {{0, 8}, {40, 64}, {300, 84}}, second[][2] = {{104, 16}, {200, 8}};
    struct bench *benches[] = {make_raid1(), make_raid5()};
    for (size_t i = 0; i < 2; i++) {
        put_bad_blocks(benches[i], 0, first, 3);
        put_bad_blocks(benches[i], 1, second, 2);
        expect_success(open_bench(benches[i], i ? 7 : 3));
        check_contents(benches[i], (i + 1) * (SIZE - BEGIN));
        close_bench(benches[i]);
    }
    /* Both mirrors are bad; then one is not used, because its list is not on the device. */
    uint8_t byte;
    put_bad_blocks(benches[0], 1, first, 1);
    expect_success(open_bench(benches[0], 3));
    expect_error(read_range(benches[0]->top, 4095, &byte, 1), BW_ERROR_MISSING_DEVICE, "suffice");
    expect_success(read_range(benches[0]->top, 4096, &byte, 1));
    close_bench(benches[0]);
    put_le32(benches[0]->bytes[0] + SUPERBLOCK + 188, UINT32_MAX - 50);
    seal(benches[0]->bytes[0] + SUPERBLOCK);
    expect_success(open_bench(benches[0], 3));
    assert_int_equal(
        report_log_count(&benches[0]->log, "the device with its list of bad blocks ends at"), 1);
    expect_error(read_range(benches[0]->top, 0, &byte, 1), BW_ERROR_MISSING_DEVICE, "suffice");
    expect_success(read_range(benches[0]->top, 4096, &byte, 1));
    close_bench(benches[0]);
    free(benches[0]);
    free(benches[1]);
}

/* A member that the newest superblock lists as failed, although it missed one change only. */
static void test_failed_member(void **state)
{
    struct bench *bench = make_raid1();
    memset(bench->bytes[0] + BEGIN, 0xee, SIZE - BEGIN);
    put_le64(bench->bytes[0] + SUPERBLOCK + 200, 9);
    seal(bench->bytes[0] + SUPERBLOCK);
    memset(bench->bytes[1] + SUPERBLOCK + 256, 0xff, 2);
    seal(bench->bytes[1] + SUPERBLOCK);
    expect_success(open_bench(bench, 3));
    check_contents(bench, SIZE - BEGIN);
    assert_int_equal(report_log_count(&bench->log, "not used in the MD array: it failed"), 1);
    close_bench(bench);
    free(bench);
}

/* A device that is being replaced is used in any order; without it, its replacement is. */
static void test_replacement(void **state)
{
    struct bench *bench = make_raid1();
    uint8_t *block = bench->bytes[2] + SUPERBLOCK;
    memcpy(bench->bytes[2], bench->bytes[0], BEGIN + CHUNK);
    put_superblock(bench, 2, 1, 0, 2);
    put_le32(block + 8, 0x12);
    put_le64(block + 152, CHUNK / 512);
    for (uint32_t i = 0; i < 3; i++) {
        memset(bench->bytes[i] + SUPERBLOCK + 260, 0, 2);
        seal(bench->bytes[i] + SUPERBLOCK);
    }
    expect_success(open_bench(bench, 7));
    check_contents(bench, SIZE - BEGIN);
    close_bench(bench);
    expect_success(open_bench(bench, 5));
    check_contents(bench, SIZE - BEGIN);
    close_bench(bench);
    uint8_t bytes[2];
    expect_success(open_bench(bench, 4));
    expect_success(read_range(bench->top, CHUNK - 1, bytes, 1));
    expect_error(read_range(bench->top, CHUNK - 1, bytes, 2), BW_ERROR_MISSING_DEVICE, "suffice");
    close_bench(bench);
    free(bench);
}

enum { BLOCK = 4096, RING = SIZE - BEGIN, TAIL = RING - 3 * BLOCK, OLDER = 0x77 };

enum payload_type { LOG_DATA, LOG_PARITY, LOG_FLUSH };

/* Adds a meta block with one payload to the journal, and its block, or P and Q. */
static void put_logged(uint8_t *journal, uint64_t *at, uint64_t *number, enum payload_type type,
                       uint64_t place, const uint8_t *block, const uint8_t *q)
{
    const uint32_t seed = bw_crc32c(UINT32_MAX, "the id of it all", 16);
    uint8_t *meta = journal + *at;
    const uint8_t *blocks[] = {block, q};
    put_le32(meta, 0x6433c509);
    meta[8] = 1;
    put_le32(meta + 12, type == LOG_FLUSH ? 48 : q ? 56 : 52);
    put_le64(meta + 16, (*number)++);
    put_le64(meta + 24, *at / 512);
    put_le32(meta + 32, type);
    put_le32(meta + 36, q ? 16 : 8);
    put_le64(meta + 40, place / 512);
    *at = (*at + BLOCK) % RING;
    for (size_t i = 0; i < 2 && blocks[i]; i++) {
        memcpy(journal + *at, blocks[i], BLOCK);
        put_le32(meta + 48 + 4 * i, bw_crc32c(seed, blocks[i], BLOCK));
        *at = (*at + BLOCK) % RING;
    }
    put_le32(meta + 4, bw_crc32c(seed, meta, BLOCK));
}

/* Makes the fourth device the journal of five rows. The first has data and parity, twice. The
 * second has only data. The third has data, parity and a flush. The fourth has data and parity,
 * then other data. The fifth has only parity. Returns the place of the last block. */
static uint8_t *put_journal(struct bench *bench)
{
    enum { LEVEL = 5, SYMMETRIC = 2 };
    uint8_t *journal = bench->bytes[3] + BEGIN, *rows[4][3], good[BLOCK], older[BLOCK],
            parity[BLOCK];
    uint64_t at = TAIL, number = 70;
    put_superblock(bench, 3, LEVEL, SYMMETRIC, 3);
    put_le64(bench->bytes[3] + SUPERBLOCK + 152, TAIL / 512);
    for (uint32_t i = 0; i < 4; i++) {
        put_le32(bench->bytes[i] + SUPERBLOCK + 8, 1 << 9);
        put_le32(bench->bytes[i] + SUPERBLOCK + 260, UINT32_C(0xfffd0002));
        seal(bench->bytes[i] + SUPERBLOCK);
        for (uint32_t k = 0; k < 3; k++)
            rows[i][k] = bench->bytes[k] + BEGIN + (size_t)i * CHUNK;
    }
    memset(older, OLDER, BLOCK);
    put_logged(journal, &at, &number, LOG_DATA, 0, rows[0][0], NULL);
    put_logged(journal, &at, &number, LOG_PARITY, 0, older, NULL);
    put_logged(journal, &at, &number, LOG_DATA, CHUNK, rows[0][1], NULL);
    put_logged(journal, &at, &number, LOG_PARITY, 0, rows[0][2], NULL);
    for (uint32_t k = 0; k < 3; k++)
        memset(rows[0][k], 0xee, BLOCK);

    put_logged(journal, &at, &number, LOG_DATA, 2 * CHUNK, rows[1][2], NULL);
    for (size_t i = 0; i < BLOCK; i++)
        rows[1][1][i] ^= rows[1][2][i] ^ OLDER;
    memcpy(rows[1][2], older, BLOCK);

    put_logged(journal, &at, &number, LOG_DATA, 4 * CHUNK, older, NULL);
    put_logged(journal, &at, &number, LOG_PARITY, 2 * CHUNK, older, NULL);
    put_logged(journal, &at, &number, LOG_FLUSH, 2 * CHUNK, NULL, NULL);
    put_logged(journal, &at, &number, LOG_PARITY, 4 * CHUNK, older, NULL);

    memcpy(good, rows[3][0], BLOCK);
    for (size_t i = 0; i < BLOCK; i++)
        parity[i] = rows[3][1][i] ^ OLDER;
    put_logged(journal, &at, &number, LOG_DATA, 6 * CHUNK, older, NULL);
    put_logged(journal, &at, &number, LOG_PARITY, 3 * CHUNK, parity, NULL);
    put_logged(journal, &at, &number, LOG_DATA, 6 * CHUNK, good, NULL);
    memset(rows[3][0], 0xee, BLOCK);
    memset(rows[3][2], 0xee, BLOCK);
    uint8_t *last = journal + at - BLOCK;
    number++; /* it does not follow */
    put_logged(journal, &at, &number, LOG_DATA, 6 * CHUNK, older, NULL);
    return last;
}

static void test_journal(void **state)
{
    uint8_t byte;
    struct bench *bench = make_raid5();
    uint8_t *last = put_journal(bench), *superblock = bench->bytes[3] + SUPERBLOCK;
    expect_success(open_bench(bench, 15));
    check_contents(bench, 2 * (SIZE - BEGIN));
    assert_int_equal(report_log_count(&bench->log, "journal"), 0);
    expect_success(read_range(bench->top, 5, &byte, 1));
    assert_int_equal(byte, byte_at(5));
    close_bench(bench);
    for (unsigned missing = 0; missing < 3; missing++) {
        expect_success(open_bench(bench, 15 & ~(1u << missing)));
        check_contents(bench, 2 * (SIZE - BEGIN));
        close_bench(bench);
    }
    expect_success(open_bench(bench, 15)); /* the row may have older data */
    bench->fakes[3].broken[0] = true;
    expect_error(read_range(bench->top, 2 * CHUNK, &byte, 1), BW_ERROR_SYSTEM, "");
    close_bench(bench);
    last[100]++; /* the checksum is wrong */
    expect_success(open_bench(bench, 15));
    expect_success(read_range(bench->top, 6 * CHUNK, &byte, 1));
    assert_int_equal(byte, OLDER);
    close_bench(bench);
    put_le64(superblock + 152, 4 * BLOCK / 512); /* no valid block */
    seal(superblock);
    expect_success(open_bench(bench, 15));
    expect_success(read_range(bench->top, 6 * CHUNK, &byte, 1));
    assert_int_equal(byte, 0xee);
    assert_int_equal(report_log_count(&bench->log, "journal"), 0);
    close_bench(bench);
    put_le64(superblock + 152, TAIL / 512); /* it is cut off */
    seal(superblock);
    bench->lost[3] = 2 * BLOCK;
    expect_success(open_bench(bench, 15));
    assert_int_equal(report_log_count(&bench->log, "the journal of the MD array"), 1);
    close_bench(bench);
    expect_success(open_bench(bench, 7));
    assert_int_equal(report_log_count(&bench->log, "it may have newer data"), 1);
    close_bench(bench);
    free(bench);
}

/* RAID6 of four devices. The journal has the first data, P and Q, the third device has the second
 * data. */
static void test_journal_of_raid6(void **state)
{
    enum { LEVEL = 6, SYMMETRIC = 2 };
    struct bench *bench = calloc(1, sizeof *bench);
    uint8_t data[BLOCK], p[BLOCK], q[BLOCK], got[BLOCK], *other = bench->bytes[2] + BEGIN;
    uint64_t at = TAIL, number = 70;
    for (size_t i = 0; i < BLOCK; i++) {
        data[i] = byte_at(i);
        other[i] = byte_at(CHUNK + i);
        p[i] = data[i] ^ other[i];
        q[i] = data[i] ^ (uint8_t)(other[i] << 1 ^ (other[i] >> 7) * 0x1d);
    }
    put_logged(bench->bytes[4] + BEGIN, &at, &number, LOG_DATA, 0, data, NULL);
    put_logged(bench->bytes[4] + BEGIN, &at, &number, LOG_PARITY, 0, p, q);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        uint8_t *superblock = bench->bytes[i] + SUPERBLOCK;
        put_superblock(bench, i, LEVEL, SYMMETRIC, 4);
        put_le64(superblock + 152, i == 4 ? TAIL / 512 : 0);
        put_le32(superblock + 8, 1 << 9);
        put_le32(superblock + 264, UINT32_C(0xfffffffd));
        seal(superblock);
    }
    for (unsigned lost = 0; lost < 4; lost++) {
        expect_success(open_bench(bench, 31 & ~(1u << 2 | 1u << lost)));
        expect_success(read_range(bench->top, 0, got, BLOCK));
        assert_memory_equal(got, data, BLOCK);
        expect_success(read_range(bench->top, CHUNK, got, BLOCK));
        assert_memory_equal(got, other, BLOCK);
        close_bench(bench);
    }
    free(bench);
}

/* A linear array whose first device was cut off: the data of the second one keep their addresses.
 */
static void test_cut_off_linear(void **state)
{
    enum { LOST = 2 * CHUNK, DATA = SIZE - BEGIN };
    uint8_t byte;
    struct bench *bench = calloc(1, sizeof *bench);
    for (uint32_t i = 0; i < 2; i++) {
        for (size_t at = 0; at < DATA; at++)
            bench->bytes[i][BEGIN + at] = byte_at(i * DATA + at);
        put_superblock(bench, i, -1, 0, 2);
    }
    bench->lost[0] = LOST;
    expect_success(open_bench(bench, 3));
    assert_int_equal(bw_xlator_size(bench->top), 2 * DATA);
    expect_success(read_range(bench->top, DATA, &byte, 1));
    assert_int_equal(byte, byte_at(DATA));
    expect_error(read_range(bench->top, DATA - 1, &byte, 1), BW_ERROR_MISSING_DEVICE, "suffice");
    assert_int_equal(bw_xlator_next_stored(bench->top, DATA - LOST - 1), DATA - LOST - 1);
    assert_int_equal(bw_xlator_next_stored(bench->top, DATA - LOST), DATA);
    close_bench(bench);
    bench->lost[1] = LOST;
    expect_success(open_bench(bench, 3));
    assert_int_equal(bw_xlator_size(bench->top), 2 * DATA - LOST);
    close_bench(bench);
    free(bench);
}

/* An array that claims to be much larger than its devices, so that a scan would take years. */
static void test_impossible_size(void **state)
{
    struct bench *benches[] = {make_raid1(), make_raid5()};
    for (size_t i = 0; i < 2; i++) {
        for (uint32_t member = 0; member < 3; member++) {
            put_le64(benches[i]->bytes[member] + SUPERBLOCK + 80, UINT64_C(1) << 50);
            seal(benches[i]->bytes[member] + SUPERBLOCK);
        }
        expect_success(open_bench(benches[i], i ? 7 : 3));
        assert_int_equal(bw_xlator_size(benches[i]->top), (i + 1) * (SIZE - BEGIN));
        close_bench(benches[i]);
        free(benches[i]);
    }
}

/* Changes a word of the first superblock, and expects an error. */
static void expect_refusal(size_t at, uint32_t value, enum bw_error_code code, const char *message)
{
    struct bench *bench = make_raid5();
    for (uint32_t i = 0; i < 3; i++) {
        put_le32(bench->bytes[i] + SUPERBLOCK + at, value);
        seal(bench->bytes[i] + SUPERBLOCK);
    }
    expect_error(open_bench(bench, 7), code, message);
    close_bench(bench);
    free(bench);
}

static void test_bad_superblocks(void **state)
{
    expect_refusal(8, 4, BW_ERROR_UNSUPPORTED, "is being reshaped");
    expect_refusal(72, 7, BW_ERROR_NOT_FOUND, "has no superblock of an MD array");
    expect_refusal(76, 99, BW_ERROR_UNSUPPORTED, "unknown layout");
    expect_refusal(88, 0, BW_ERROR_UNSUPPORTED, "has no chunk size");
    expect_refusal(92, 0, BW_ERROR_NOT_FOUND, "has no superblock");
    expect_refusal(92, 2000000, BW_ERROR_NOT_FOUND, "has no superblock");
    expect_refusal(132, UINT32_MAX, BW_ERROR_NOT_FOUND, "has no superblock");
}

static void test_finding(void **state)
{
    struct bw_container_id id = {{0}};
    struct bench *bench = make_raid5();
    expect_success(open_bench(bench, 7));
    assert_true(bw_md_container.find(bench->members[0], &id));
    assert_memory_equal(id.bytes, "the id of it all", 16);
    bench->bytes[2][SUPERBLOCK + 100] ^= 1; /* the checksum is wrong now */
    assert_false(bw_md_container.find(bench->members[0], &id));
    close_bench(bench);
    free(bench);
}
