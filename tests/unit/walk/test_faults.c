/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Injected faults that the profile can compensate: one device or copy, or as many as may be lost,
 * with every kind of failure and request. The list must be that of the healthy image, there is no
 * damage, and a note names the replacement.
 */
#include "support/walk_helpers.h"

#define GROUP_SETUP limit_resources

static const struct profile {
    uint64_t flag;
    unsigned devices;
    unsigned expendable; /* how many devices may fail, whichever they are */
} profiles[] = {
    {BW_GROUP_DUP, 1, 0},     {BW_GROUP_RAID1, 2, 1},   {BW_GROUP_RAID1, 3, 1},
    {BW_GROUP_RAID1C3, 3, 2}, {BW_GROUP_RAID1C4, 4, 3}, {BW_GROUP_RAID10, 4, 1},
    {BW_GROUP_RAID10, 6, 1},  {BW_GROUP_RAID5, 2, 1},   {BW_GROUP_RAID5, 3, 1},
    {BW_GROUP_RAID5, 6, 1},   {BW_GROUP_RAID6, 3, 2},   {BW_GROUP_RAID6, 4, 2},
    {BW_GROUP_RAID6, 7, 2},
};

static const char *const actions[] = {"eio", "flip", "zero", "short", "stale"};

/* An image, and what a walk says as long as nothing fails. */
struct subject {
    const struct profile *profile;
    struct iw_image *image;
    struct walk_result healthy;
};

static struct walk_result walk_changed(const struct iw_image *image, unsigned missing,
                                       const struct graph_changes *changes, unsigned threads,
                                       struct report_log *log)
{
    const char *paths[IW_MAX_DEVICES];
    size_t count = 0;
    struct bw_fs *fs;
    for (unsigned i = 0; i < iw_device_count(image); i++)
        if (!(missing >> i & 1))
            paths[count++] = iw_path(image, i);
    expect_success(open_changed(paths, count, changes, log, &fs));
    struct walk_result result = walk_fs(fs, &(struct bw_walk_options){.threads = threads});
    expect_success(result.error);
    bw_fs_close(fs);
    return result;
}

/* All 32 bytes of a sha256 are compared, so that every flipped bit is detected. */
static struct subject make_subject(const struct profile *profile, uint64_t device_size)
{
    struct iw_image *image = spread_image((struct iw_options){.profile = profile->flag,
                                                              .checksum_type = BW_CHECKSUM_SHA256,
                                                              .device_count = profile->devices,
                                                              .device_size = device_size});
    struct subject subject = {profile, image, walk_changed(image, 0, NULL, 1, NULL)};
    expect_paths(image, &subject.healthy);
    return subject;
}

static void free_subject(struct subject *subject)
{
    walk_result_free(&subject->healthy);
    iw_destroy(subject->image);
}

/* Fails unless a walk through the changed graph is as complete as the healthy one. */
static void expect_identical(const struct subject *subject, unsigned missing,
                             const struct graph_changes *changes, unsigned threads,
                             struct report_log *log)
{
    struct walk_result result = walk_changed(subject->image, missing, changes, threads, log);
    const struct bw_buffer *healthy = &subject->healthy.bytes;
    bool same = result.bytes.length == healthy->length &&
                memcmp(result.bytes.data, healthy->data, healthy->length) == 0;
    if (!same || log->counts[BW_DAMAGE] || result.summary.lost_blocks)
        fail_msg("profile %#llx of %u devices, %s and %zu more: %zu of %zu paths\n%s",
                 (unsigned long long)subject->profile->flag, subject->profile->devices,
                 changes->changes[0].text, changes->count - 1, result.count, subject->healthy.count,
                 log->text.length ? log->text.data : "");
    walk_result_free(&result);
}

/* Runs a test for each profile that can lose so many devices. */
static void for_profiles(unsigned expendable, void (*test)(const struct subject *subject))
{
    for (size_t i = 0; i < COUNT(profiles); i += variant_step()) {
        if (profiles[i].expendable < expendable)
            continue;
        struct subject subject = make_subject(&profiles[i], 0);
        test(&subject);
        free_subject(&subject);
    }
}

/* All that is read of a device but its superblock goes wrong in one way. */
static void fail_device(struct graph_changes *changes, unsigned number, const char *action)
{
    insert_layer(changes, "debug/error-gen@device-%u,kind=tree-block,action=%s", number, action);
    insert_layer(changes, "debug/error-gen@device-%u,kind=raw,action=%s", number, action);
}

/* The address of the first mirror of a block, which is read as long as it is good. */
static bool lies_on(const struct iw_image *image, const struct iw_block *block, unsigned device)
{
    unsigned found;
    uint64_t offset;
    return iw_locate(image, block->logical, 1, &found, &offset) && found == device;
}

/* Whether a walk reads any block of a device: maybe, as leaves may be left out, or surely. */
static void expect_notes(const struct iw_image *image, unsigned device, size_t notes)
{
    static const uint64_t read_trees[] = {BW_CHUNK_TREE, BW_ROOT_TREE, FS};
    bool any = false, surely = false;
    for (size_t i = 0; i < iw_block_count(image); i++)
        any |= lies_on(image, iw_block(image, i), device);
    for (size_t i = 0; i < COUNT(read_trees); i++)
        surely |= lies_on(image, iw_root_block(image, read_trees[i]), device);
    if ((notes && !any) || (surely && !notes))
        fail_msg("device index %u: %zu notes", device, notes);
}

static void fail_tree_blocks(const struct subject *subject)
{
    for (unsigned device = 0; device < subject->profile->devices; device++)
        for (size_t i = device % 2; i < COUNT(actions); i += sweep_step(2)) {
            struct graph_changes changes = {0};
            struct report_log log = {0};
            insert_layer(&changes, "debug/error-gen@device-%u,kind=tree-block,action=%s",
                         device + 1, actions[i]);
            expect_identical(subject, 0, &changes, 1, &log);
            assert_int_equal(log.counts[BW_WARNING], 0);
            expect_notes(subject->image, device, log.counts[BW_NOTE]);
            assert_int_equal(report_log_count(&log, ": used mirror "), log.counts[BW_NOTE]);
            report_log_free(&log);
        }
}

static void test_tree_blocks_of_a_device_fail(void **state)
{
    for_profiles(1, fail_tree_blocks);
}

/* Nobody needs the other stripes of a row as long as the tree blocks are good. */
static void fail_raw_reads(const struct subject *subject)
{
    for (unsigned device = 0; device < subject->profile->devices; device++)
        for (size_t i = device % 2; i < COUNT(actions); i += sweep_step(2)) {
            struct graph_changes alone = {0}, both = {0};
            struct report_log log = {0};
            insert_layer(&alone, "debug/error-gen@device-%u,kind=raw,action=%s", device + 1,
                         actions[i]);
            expect_identical(subject, 0, &alone, 1, &log);
            assert_int_equal(log.text.length, 0);
            fail_device(&both, device + 1, actions[i]);
            expect_identical(subject, 0, &both, 1, &log);
            assert_int_equal(log.counts[BW_WARNING], 0);
            report_log_free(&log);
        }
}

static void test_raw_reads_of_a_device_fail(void **state)
{
    for_profiles(1, fail_raw_reads);
}

/* Without its superblock, and with nothing on it that could prove what it is, a device counts as
 * missing; with an old one, as stale. One flipped bit is corrected. */
static void fail_superblock(const struct subject *subject)
{
    static const char *const kinds[] = {"super", "any"};
    for (unsigned device = 0; device < subject->profile->devices; device++)
        for (size_t i = device % 3; i < COUNT(actions) * COUNT(kinds); i += sweep_step(3)) {
            struct graph_changes changes = {0};
            struct report_log log = {0};
            const char *action = actions[i / COUNT(kinds)];
            const bool stale = strcmp(action, "stale") == 0;
            const bool missing = !stale && strcmp(action, "flip") != 0;
            insert_layer(&changes, "debug/error-gen@device-%u,kind=%s,action=%s", device + 1,
                         kinds[i % COUNT(kinds)], action);
            if (!stale)
                insert_layer(&changes, "debug/error-gen@device-%u,kind=raw,action=eio", device + 1);
            expect_identical(subject, 0, &changes, 1, &log);
            assert_int_equal(report_log_count(&log, "is not used: no superblock"), missing);
            assert_int_equal(report_log_count(&log, "is missing: the file system is degraded"),
                             missing);
            assert_int_equal(report_log_count(&log, "is stale: device"), stale);
            report_log_free(&log);
        }
}

static void test_superblock_of_a_device_fails(void **state)
{
    for_profiles(1, fail_superblock);
}

/* Devices that are long enough for a second copy of the superblock can do without the first. */
static void test_first_superblock_copies_fail(void **state)
{
    for (size_t i = 0; i < COUNT(profiles); i += variant_step()) {
        struct subject subject = make_subject(&profiles[i], UINT64_C(80) << 20);
        for (size_t action = 0; action < COUNT(actions); action++) {
            struct graph_changes changes = {0};
            struct report_log log = {0};
            insert_layer(&changes,
                         "debug/error-gen@device-*,kind=super,start=64K,end=68K,action=%s",
                         actions[action]);
            expect_identical(&subject, 0, &changes, 1, &log);
            assert_int_equal(log.counts[BW_WARNING], profiles[i].devices);
            assert_int_equal(report_log_count(&log, "superblock copy 0 at 65536 rejected"),
                             profiles[i].devices);
            report_log_free(&log);
        }
        free_subject(&subject);
    }
}

/* How many copies the chunk map can give, those computed from parity included. */
static unsigned copies_of(const struct subject *subject)
{
    switch (subject->profile->flag) {
    case BW_GROUP_RAID5:
        return 2;
    case BW_GROUP_RAID6:
        return subject->profile->devices;
    default:
        return iw_copies(subject->image, iw_block(subject->image, 0)->logical);
    }
}

static void fail_copy(const struct subject *subject)
{
    static const char *const kinds[] = {"tree-block", "any"};
    for (unsigned copy = 1; copy <= copies_of(subject); copy++)
        for (size_t i = 0; i < COUNT(actions) * COUNT(kinds); i++) {
            struct graph_changes changes = {0};
            struct report_log log = {0};
            insert_layer(&changes, "debug/error-gen@chunk-map,kind=%s,mirror=%u,action=%s",
                         kinds[i % COUNT(kinds)], copy, actions[i / COUNT(kinds)]);
            expect_identical(subject, 0, &changes, 1, &log);
            assert_int_equal(log.counts[BW_WARNING], 0);
            assert_int_equal(
                report_log_count(&log, ": used mirror 2 instead of a bad one (mirror 1 on device"),
                log.counts[BW_NOTE]);
            assert_true(copy == 1 ? log.counts[BW_NOTE] > 5 : log.counts[BW_NOTE] == 0);
            report_log_free(&log);
        }
}

static void test_a_copy_fails(void **state)
{
    for_profiles(0, fail_copy);
}

/* Whichever copy is the only good one, it is found. */
static void fail_other_copies(const struct subject *subject)
{
    unsigned copies = copies_of(subject);
    for (unsigned good = 1; good <= copies; good++)
        for (size_t i = 0; i < COUNT(actions); i++) {
            struct graph_changes changes = {0};
            struct report_log log = {0};
            char note[32];
            for (unsigned copy = 1; copy <= copies; copy++)
                if (copy != good)
                    insert_layer(&changes, "debug/error-gen@chunk-map,mirror=%u,action=%s", copy,
                                 actions[(i + copy) % COUNT(actions)]);
            expect_identical(subject, 0, &changes, 1, &log);
            snprintf(note, sizeof note, ": used mirror %u ", good);
            assert_int_equal(report_log_count(&log, note), log.counts[BW_NOTE]);
            assert_true(good > 1 ? log.counts[BW_NOTE] > 5 : log.counts[BW_NOTE] == 0);
            report_log_free(&log);
        }
}

static void test_all_copies_but_one_fail(void **state)
{
    for_profiles(0, fail_other_copies);
}

static void fail_pair(const struct subject *subject, unsigned first, unsigned second)
{
    for (size_t i = (first + second) % 2; i < COUNT(actions); i += sweep_step(2))
        for (size_t turn = 0; turn < 2; turn += sweep_step(2)) {
            struct graph_changes changes = {0};
            struct report_log log = {0};
            fail_device(&changes, first, actions[i]);
            fail_device(&changes, second, actions[(i + turn) % COUNT(actions)]);
            expect_identical(subject, 0, &changes, 1, &log);
            report_log_free(&log);
        }
}

static void fail_pairs(const struct subject *subject)
{
    for (unsigned first = 1; first <= subject->profile->devices; first++)
        for (unsigned second = first + 1; second <= subject->profile->devices; second++)
            fail_pair(subject, first, second);
}

static void test_two_devices_fail(void **state)
{
    for_profiles(2, fail_pairs);
}

/* One device is given up, another one fails. */
static void miss_one_fail_one(const struct subject *subject)
{
    unsigned devices = subject->profile->devices;
    for (unsigned missing = 0; missing < devices; missing++)
        for (unsigned failing = 1; failing < devices; failing++)
            for (size_t i = (missing + failing) % 3; i < COUNT(actions); i += sweep_step(3)) {
                struct graph_changes changes = {0};
                struct report_log log = {0};
                fail_device(&changes, failing, actions[i]);
                expect_identical(subject, 1u << missing, &changes, 1, &log);
                assert_int_equal(log.counts[BW_WARNING], 1);
                report_log_free(&log);
            }
}

static void test_a_device_is_missing_and_another_fails(void **state)
{
    for_profiles(2, miss_one_fail_one);
}

/* Only some reads of a device fail: by place, in turn, or one. Any number of threads may ask. */
static void fail_now_and_then(const struct subject *subject)
{
    static const char *const how_often[] = {"rate=30%,seed=1", "rate=30%,seed=2", "rate=5%,seed=3",
                                            "nth=2",           "nth=3",           "nth=5,once=on"};
    for (unsigned device = 1; device <= subject->profile->devices; device++)
        for (size_t i = device % 7; i < COUNT(how_often) * COUNT(actions); i += sweep_step(7)) {
            struct graph_changes changes = {0};
            struct report_log log = {0};
            insert_layer(&changes, "debug/error-gen@device-%u,kind=tree-block,%s,action=%s", device,
                         how_often[i / COUNT(actions)], actions[i % COUNT(actions)]);
            expect_identical(subject, 0, &changes, 1 + (unsigned)i % 2 * 2, &log);
            report_log_free(&log);
        }
}

static void test_a_device_fails_now_and_then(void **state)
{
    for_profiles(1, fail_now_and_then);
}
