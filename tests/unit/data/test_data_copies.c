/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data through every profile with bad mirrors: replaced sector by sector, rebuilt from parity, or
 * told. */
#include "support/data_image.h"
#include "support/image_writer_internal.h"

enum { FILE_SIZE = 300000 };

static const struct {
    uint64_t profile;
    unsigned copies; /* stored ones */
    bool parity;
} profiles[] = {
    {0, 1, false},
    {BW_GROUP_DUP, 2, false},
    {BW_GROUP_RAID0, 1, false},
    {BW_GROUP_RAID1, 2, false},
    {BW_GROUP_RAID1C3, 3, false},
    {BW_GROUP_RAID1C4, 4, false},
    {BW_GROUP_RAID10, 2, false},
    {BW_GROUP_RAID5, 1, true},
    {BW_GROUP_RAID6, 1, true},
};

static struct data_image *make(uint64_t profile, enum bw_checksum_type checksum,
                               void (*before)(struct data_image *))
{
    struct data_image *image = data_image_create(profile, checksum);
    data_image_plain(image, 0, 0, FILE_SIZE / SECTOR * SECTOR + SECTOR);
    data_image_checksums(image, 0, 40);
    data_image_checksums(image, 40, FILE_SIZE / SECTOR + 1 - 40);
    data_image_inode(image, FILE_SIZE, 0);
    data_image_open(image, before);
    return image;
}

static void expect_whole(struct data_image *image)
{
    struct data_result result;
    const struct bw_data_file file = data_image_file(image, FILE_SIZE, false);
    data_image_read(image, &file, 0, UINT64_MAX, &result);
    assert_string_equal(result.first_error, "");
    assert_int_equal(result.bytes.length, FILE_SIZE);
    assert_memory_equal(result.bytes.data, image->data, FILE_SIZE);
    data_result_free(&result);
    data_image_read(image, &file, 70001, 5000, &result);
    assert_int_equal(result.bytes.length, 5000);
    assert_memory_equal(result.bytes.data, image->data + 70001, 5000);
    data_result_free(&result);
}

static void test_healthy(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i++)
        for (unsigned type = 0; type < BW_CHECKSUM_TYPES; type++) {
            struct data_image *image = make(profiles[i].profile, (enum bw_checksum_type)type, NULL);
            expect_whole(image);
            assert_int_equal(image->log.counts[BW_NOTE], 0);
            data_image_free(image);
        }
}

/* The copies of DUP are on one device. */
static unsigned first_copy(const struct data_image *image)
{
    const unsigned devices = iw_device_count(image->image);
    return data_image_first_copy(image, devices > 1 ? iw_copies(image->image, image->logical) : 1);
}

static void spoil_first_copy(struct data_image *image)
{
    const unsigned copy = first_copy(image);
    iw_corrupt(image->image, image->logical + 5 * SECTOR, copy, 100, 50, IW_FLIP);
    for (unsigned sector = 30; sector < 33; sector++)
        iw_corrupt(image->image, image->logical + sector * SECTOR, copy, 0, SECTOR, IW_ZERO);
}

static void test_bad_copy(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i++) {
        if (profiles[i].copies < 2 && !profiles[i].parity)
            continue;
        struct data_image *image = make(profiles[i].profile, BW_CHECKSUM_CRC32C, spoil_first_copy);
        expect_whole(image);
        assert_true(report_log_count(&image->log, "data at ") >= 2);
        const unsigned first = first_copy(image);
        char message[64];
        snprintf(message, sizeof message,
                 "used mirror %u instead of a bad one (mirror %u on device ", first == 1 ? 2 : 1,
                 first);
        assert_int_equal(report_log_count(&image->log, message), image->log.counts[BW_NOTE]);
        assert_int_equal(image->log.counts[BW_DAMAGE], 0);
        data_image_free(image);
    }
}

/* No copy is good as a whole. */
static void spoil_in_turn(struct data_image *image)
{
    for (unsigned sector = 0; sector < 32; sector++)
        iw_corrupt(image->image, image->logical + sector * SECTOR,
                   1 + sector % iw_copies(image->image, image->logical), 7, 1, IW_FLIP);
}

static void test_combined(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i++) {
        if (profiles[i].copies < 2)
            continue;
        struct data_image *image = make(profiles[i].profile, BW_CHECKSUM_XXHASH64, spoil_in_turn);
        expect_whole(image);
        assert_int_equal(image->log.counts[BW_DAMAGE], 0);
        data_image_free(image);
    }
}

static void remove_device(struct data_image *image)
{
    unsigned device;
    uint64_t offset;
    iw_locate(image->image, image->logical, 1, &device, &offset);
    iw_remove_device(image->image, device);
}

static void test_missing_device(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i++) {
        if ((profiles[i].copies < 2 && !profiles[i].parity) || profiles[i].profile == BW_GROUP_DUP)
            continue;
        if (!(profiles[i].profile & (BW_GROUP_RAID1 | BW_GROUP_RAID1C3)))
            continue; /* metadata are single there */
        struct data_image *image = make(profiles[i].profile, BW_CHECKSUM_CRC32C, remove_device);
        expect_whole(image);
        data_image_free(image);
    }
}

static void spoil_all(struct data_image *image)
{
    iw_corrupt(image->image, image->logical + 5 * SECTOR, IW_ALL_COPIES, 100, 1, IW_FLIP);
    iw_corrupt(image->image, image->logical + 6 * SECTOR, IW_ALL_COPIES, 100, 1, IW_FLIP);
    iw_corrupt(image->image, image->logical + 50 * SECTOR, IW_ALL_COPIES, 100, 1, IW_FLIP);
}

static void test_no_good_copy(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i++) {
        if (profiles[i].parity)
            continue;
        struct data_image *image = make(profiles[i].profile, BW_CHECKSUM_SHA256, spoil_all);
        const struct bw_data_file file = data_image_file(image, FILE_SIZE, false);
        struct data_result result;
        char copies[64];
        data_image_read(image, &file, 0, UINT64_MAX, &result);
        assert_int_equal(result.bad, 3 * SECTOR);
        assert_int_equal(result.bad_parts, 2);
        assert_non_null(strstr(result.first_error, "data at "));
        snprintf(copies, sizeof copies, "all %u mirrors are bad", profiles[i].copies);
        assert_non_null(strstr(result.first_error, profiles[i].copies > 2 ? copies
                                                   : profiles[i].copies == 2
                                                       ? "both mirrors are bad"
                                                       : "no good mirror"));
        assert_non_null(strstr(result.first_error, "sha256 checksum mismatch"));
        assert_memory_equal(result.bytes.data, image->data, 5 * SECTOR);
        assert_memory_equal(result.bytes.data + 5 * SECTOR, "!!!!", 4);
        assert_memory_equal(result.bytes.data + 7 * SECTOR, image->data + 7 * SECTOR, 43 * SECTOR);
        data_result_free(&result);

        /* Without checksums, data are returned as they are. */
        const struct bw_data_file unchecked = data_image_file(image, FILE_SIZE, true);
        data_image_read(image, &unchecked, 0, UINT64_MAX, &result);
        assert_int_equal(result.bad, 0);
        assert_memory_not_equal(result.bytes.data + 5 * SECTOR, image->data + 5 * SECTOR, SECTOR);
        data_result_free(&result);
        data_image_free(image);
    }
}

/* Reads that fail: of copy 1 in one sector, of copy 2 in another. */
static void test_read_errors(void **state)
{
    struct data_image *image = make(BW_GROUP_RAID1, BW_CHECKSUM_CRC32C, NULL);
    bw_fs_close(image->fs);
    image->fs = NULL;
    struct graph_changes changes = {.count = 0};
    const char *paths[IW_MAX_DEVICES];
    size_t count = iw_paths_of(image->image, paths);
    for (unsigned copy = 1; copy <= 2; copy++) {
        unsigned device;
        uint64_t offset;
        iw_locate(image->image, image->logical + 4 * copy * SECTOR, copy, &device, &offset);
        insert_layer(&changes, "debug/error-gen@device-%u,action=eio,start=%llu,end=%llu",
                     device + 1, (unsigned long long)offset,
                     (unsigned long long)offset + SECTOR - 1);
    }
    expect_success(open_changed(paths, count, &changes, &image->log, &image->fs));
    expect_whole(image);
    assert_true(report_log_count(&image->log, "used mirror ") > 0);
    data_image_free(image);
}

/* A missing device, and a bad sector on another one. */
struct degraded {
    unsigned missing, device;
    uint64_t in_stripe; /* of the sector, from the beginning of the chunk's stripe */
    bool parity;
};

static const struct iw_chunk *data_chunk(const struct data_image *image)
{
    size_t i = 0;
    while (iw_chunk(image->image, i)->logical != image->logical)
        i++;
    return iw_chunk(image->image, i);
}

static uint64_t stripe_start(const struct data_image *image, unsigned device)
{
    const struct iw_chunk *chunk = data_chunk(image);
    unsigned stripe = 0;
    while (chunk->stripes[stripe].device != device)
        stripe++;
    return chunk->stripes[stripe].offset;
}

/* Whether a sector is unreadable: it has no good mirror, and more than one part of its row is bad.
 */
static bool is_gone(const struct data_image *image, const struct degraded *degraded,
                    unsigned sector)
{
    unsigned device;
    uint64_t offset, logical = image->logical + (uint64_t)sector * SECTOR;
    bool in_row = false, gone = true;
    for (unsigned copy = 1; iw_locate(image->image, logical, copy, &device, &offset); copy++) {
        bool same = offset - stripe_start(image, device) == degraded->in_stripe;
        in_row |= same;
        gone &= device == degraded->missing || (device == degraded->device && same);
    }
    return gone && (in_row || !degraded->parity);
}

static void spoil_sector(struct data_image *image, const struct degraded *degraded, bool unreadable)
{
    struct graph_changes changes = {.count = 0};
    const char *paths[IW_MAX_DEVICES];
    uint8_t bytes[SECTOR];
    uint64_t offset = stripe_start(image, degraded->device) + degraded->in_stripe;
    bw_fs_close(image->fs);
    image->fs = NULL;
    memset(bytes, 0x5a, sizeof bytes);
    if (unreadable)
        insert_layer(&changes, "debug/error-gen@device-%u,kind=any,action=eio,start=%llu,end=%llu",
                     degraded->device + (degraded->device < degraded->missing),
                     (unsigned long long)offset, (unsigned long long)offset + SECTOR - 1);
    else
        iw_device_write(image->image, degraded->device, offset, bytes, sizeof bytes);
    iw_remove_device(image->image, degraded->missing);
    size_t count = iw_paths_of(image->image, paths);
    expect_success(open_changed(paths, count, &changes, &image->log, &image->fs));
}

static void check_degraded(uint64_t profile, const struct degraded *degraded, bool unreadable)
{
    struct data_image *image = make(profile, BW_CHECKSUM_CRC32C, NULL);
    struct data_result result;
    unsigned bad = 0;
    spoil_sector(image, degraded, unreadable);
    const struct bw_data_file file = data_image_file(image, FILE_SIZE, false);
    data_image_read(image, &file, 0, UINT64_MAX, &result);
    assert_int_equal(result.bytes.length, FILE_SIZE);
    for (unsigned i = 0; i < FILE_SIZE / SECTOR; i++) {
        const char *bytes = (const char *)result.bytes.data + (size_t)i * SECTOR;
        bool gone = is_gone(image, degraded, i);
        bad += gone;
        if (gone)
            assert_memory_equal(bytes, "!!!!", 4);
        else
            assert_memory_equal(bytes, image->data + (size_t)i * SECTOR, SECTOR);
    }
    assert_int_equal(result.bad, bad * SECTOR);
    data_result_free(&result);
    data_image_free(image);
}

/* Each device in turn is missing, and one sector of every other device is bad: exactly the sectors
 * without a good mirror are lost. */
static void test_degraded(void **state)
{
    static const struct {
        uint64_t profile;
        unsigned devices;
    } cases[] = {{BW_GROUP_RAID1, 2}, {BW_GROUP_RAID10, 4}, {BW_GROUP_RAID5, 3}};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (unsigned missing = 0; missing < cases[i].devices; missing++)
            for (unsigned device = 0; device < cases[i].devices; device++) {
                const struct degraded degraded = {missing, device, 5 * SECTOR,
                                                  cases[i].profile == BW_GROUP_RAID5};
                if (device == missing)
                    continue;
                check_degraded(cases[i].profile, &degraded, true);
                check_degraded(cases[i].profile, &degraded, false);
            }
}

/* A whole range is on a missing device: it is not read sector by sector. */
static void test_missing_stripes(void **state)
{
    struct data_image *image = make(BW_GROUP_RAID0, BW_CHECKSUM_CRC32C, NULL);
    struct data_result result;
    unsigned device, lost = 0;
    uint64_t offset;
    bw_fs_close(image->fs);
    image->fs = NULL;
    for (unsigned i = 0; i < FILE_SIZE / SECTOR + 1; i++) {
        iw_locate(image->image, image->logical + (uint64_t)i * SECTOR, 1, &device, &offset);
        lost += device == 0;
    }
    iw_remove_device(image->image, 0);
    expect_success(open_image(image->image, &image->log, &image->fs));
    const struct bw_data_file file = data_image_file(image, FILE_SIZE, false);
    data_image_read(image, &file, 0, UINT64_MAX, &result);
    assert_true(lost > 0);
    assert_in_range(result.bad, (lost - 1) * SECTOR, lost * SECTOR);
    /* The file is read three times, in five requests. */
    assert_in_range(bw_xlator_counters(image->fs->reader.top, BW_REQUEST_DATA).requests, 3 * 5,
                    3 * 6);
    data_result_free(&result);
    data_image_free(image);
}

/*
 * A compressed extent that crosses the boundary of a stripe, in a file without checksums. Only
 * decompression shows which mirror is bad. The stream has two blocks of stored bytes, of which the
 * second begins with the second stripe. Its header, like the first one, must not be zero.
 */
enum { DECODED = 100 << 10, STRIPE = 64 << 10, FIRST_BLOCK = STRIPE - 2 - 5 };

static void fill_decoded(uint8_t *bytes)
{
    for (size_t i = 0; i < DECODED; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 256);
}

static uint8_t *add_zlib_block(uint8_t *to, bool last, const uint8_t *bytes, uint16_t length)
{
    const uint8_t header[] = {last, (uint8_t)length, (uint8_t)(length >> 8), (uint8_t)~length,
                              (uint8_t)(~length >> 8)};
    memcpy(to, header, sizeof header);
    memcpy(to + sizeof header, bytes, length);
    return to + sizeof header + length;
}

static struct data_image *make_compressed(uint64_t profile, bool checked,
                                          void (*before)(struct data_image *))
{
    struct data_image *image = data_image_create(profile, BW_CHECKSUM_CRC32C);
    const uint64_t stored = DECODED + SECTOR;
    uint8_t *decoded = malloc(DECODED);
    fill_decoded(decoded);
    memcpy(image->data, "\x78\x01", 2);
    uint8_t *second = add_zlib_block(image->data + 2, false, decoded, FIRST_BLOCK);
    assert_ptr_equal(second, image->data + STRIPE);
    add_zlib_block(second, true, decoded + FIRST_BLOCK, DECODED - FIRST_BLOCK);
    data_image_extent(image, &(struct data_extent){.type = BW_FILE_EXTENT_REGULAR,
                                                   .compression = BW_COMPRESS_ZLIB,
                                                   .disk_length = stored,
                                                   .ram = DECODED,
                                                   .length = DECODED});
    if (checked)
        data_image_checksums(image, 0, DECODED / SECTOR + 1);
    data_image_inode(image, DECODED, 0);
    data_image_open(image, before);
    free(decoded);
    return image;
}

static void read_compressed(struct data_image *image, bool unchecked, struct data_result *result)
{
    const struct bw_data_file file = data_image_file(image, DECODED, unchecked);
    data_image_read(image, &file, 0, UINT64_MAX, result);
    assert_int_equal(result->bytes.length, DECODED);
}

static void expect_decoded(struct data_image *image, bool unchecked)
{
    uint8_t *decoded = malloc(DECODED);
    struct data_result result;
    fill_decoded(decoded);
    read_compressed(image, unchecked, &result);
    assert_string_equal(result.first_error, "");
    assert_memory_equal(result.bytes.data, decoded, DECODED);
    data_result_free(&result);
    free(decoded);
}

static void spoil_stream(struct data_image *image)
{
    iw_corrupt(image->image, image->logical, first_copy(image), 0, SECTOR, IW_ZERO);
}

/* The beginning of the stream in one mirror, its end in the other: neither is good as a whole. */
static void spoil_both_ends(struct data_image *image)
{
    spoil_stream(image);
    const unsigned other = first_copy(image) == 1 ? 2 : 1;
    iw_corrupt(image->image, image->logical + STRIPE, other, 0, SECTOR, IW_ZERO);
}

static void spoil_every_stream(struct data_image *image)
{
    iw_corrupt(image->image, image->logical, IW_ALL_COPIES, 0, SECTOR, IW_ZERO);
}

/* In RAID5 and RAID6, parity rebuilds the stripe. Both stripes can be in a row, so that the second
 * one must be read, not rebuilt from the first. */
static void test_bad_stream(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i++) {
        if (profiles[i].copies < 2 && !profiles[i].parity)
            continue;
        struct data_image *image = make_compressed(profiles[i].profile, false, spoil_stream);
        expect_decoded(image, true);
        assert_int_equal(
            report_log_count(&image->log, "instead of a bad one: mirror ") +
                report_log_count(&image->log, "used parts of several mirrors: mirror "),
            1);
        assert_int_equal(report_log_count(&image->log, ": zlib: "), 1);
        assert_int_equal(image->log.counts[BW_DAMAGE], 0);
        data_image_free(image);
        if (profiles[i].copies < 2)
            continue;
        image = make_compressed(profiles[i].profile, false, spoil_both_ends);
        expect_decoded(image, true);
        if (profiles[i].copies == 2)
            assert_int_equal(report_log_count(&image->log, "used parts of several mirrors: "), 1);
        data_image_free(image);
    }
}

static void test_no_good_stream(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i++) {
        struct data_result result;
        char expected[64];
        if (profiles[i].parity)
            continue;
        struct data_image *image = make_compressed(profiles[i].profile, false, spoil_every_stream);
        read_compressed(image, true, &result);
        assert_int_equal(result.bad, DECODED);
        snprintf(expected, sizeof expected, "none of its %u mirrors can be decompressed: mirror ",
                 profiles[i].copies);
        assert_non_null(
            strstr(result.first_error, profiles[i].copies > 1 ? expected : "mirror 1 on device "));
        assert_non_null(strstr(result.first_error, ": zlib: "));
        data_result_free(&result);
        data_image_free(image);
    }
}

/* With checksums, features/verify replaces the mirror; `unchecked` finds the same one. */
static void test_stream_with_checksums(void **state)
{
    struct data_result result;
    struct data_image *image = make_compressed(BW_GROUP_RAID1, true, spoil_stream);
    expect_decoded(image, false);
    expect_decoded(image, true);
    data_image_free(image);
    image = make_compressed(BW_GROUP_RAID1, true, spoil_every_stream);
    read_compressed(image, false, &result);
    assert_int_equal(result.bad, DECODED);
    assert_non_null(strstr(result.first_error, "checksum mismatch"));
    data_result_free(&result);
    data_image_free(image);
}
