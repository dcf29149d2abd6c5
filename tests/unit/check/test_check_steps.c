/* SPDX-License-Identifier: GPL-2.0-or-later */
/* src/check/data.c: a check of data that is stopped, wherever, and one that continues it find what
 * one check finds. */
#include "btrfs-walk/check.h"
#include "support/data_image.h"

enum { SECTORS = 100, BAD_EVERY = 3 };

/* How often each sector was reported. */
struct found {
    const struct data_image *image;
    unsigned counts[SECTORS];
    unsigned calls_left; /* of progress, until the check is stopped */
    uint64_t data_done;
};

static struct bw_error *on_finding(void *context, const struct bw_finding *finding)
{
    struct found *found = context;
    if (strcmp(finding->code->pass, "data") != 0)
        return NULL;
    const uint64_t first = (finding->logical - found->image->logical) / SECTOR;
    for (uint64_t i = 0; i < finding->length / SECTOR; i++)
        found->counts[first + i]++;
    return NULL;
}

static bool on_progress(void *context, const struct bw_check_progress *progress)
{
    struct found *found = context;
    found->data_done = progress->data_done;
    return found->calls_left == 0 || --found->calls_left > 0;
}

/* Every third sector is bad, and all of the last quarter. */
static bool is_bad(unsigned sector)
{
    return sector % BAD_EVERY == 0 || sector >= SECTORS * 3 / 4;
}

static struct data_image *make_image(void)
{
    struct data_image *image = data_image_create(0, BW_CHECKSUM_CRC32C);
    data_image_plain(image, 0, 0, SECTORS * SECTOR);
    data_image_inode(image, SECTORS * SECTOR, 0);
    data_image_checksums(image, 0, SECTORS);
    for (unsigned i = 0; i < SECTORS; i++)
        image->data[i * SECTOR] ^= is_bad(i);
    data_image_open(image, NULL);
    return image;
}

/* Returns whether the check came to its end. */
static bool check_data(struct found *found, uint64_t from, uint64_t step, unsigned calls)
{
    const struct bw_check_options options = {.struct_size = sizeof options,
                                             .data = true,
                                             .all = true,
                                             .threads = 2,
                                             .visit = on_finding,
                                             .progress = on_progress,
                                             .context = found,
                                             .data_from = from,
                                             .data_step = step};
    struct bw_check_summary *summary;
    found->calls_left = calls;
    struct bw_error *error = bw_check(found->image->fs, &options, &summary);
    const bool is_stopped = error && error->code == BW_ERROR_STOPPED;
    if (!is_stopped)
        expect_success(error);
    else
        bw_error_free(error);
    bw_check_summary_free(summary);
    return !is_stopped;
}

static void expect_all(const struct found *found)
{
    for (unsigned i = 0; i < SECTORS; i++)
        assert_int_equal(found->counts[i], is_bad(i));
}

/* Stops after each call of progress in turn. Before the first step, the next check begins again. */
static void check_steps(struct data_image *image, uint64_t step)
{
    bool is_complete = false;
    unsigned stops = 0;
    for (unsigned calls = 2; !is_complete; calls++) {
        struct found found = {.image = image};
        is_complete = check_data(&found, 0, step, calls);
        if (!is_complete && !found.data_done)
            continue;
        stops += !is_complete;
        if (!is_complete)
            assert_true(check_data(&found, found.data_done, step, 0));
        expect_all(&found);
    }
    if (step)
        assert_true(stops > SECTORS * SECTOR / (step + SECTOR) / 2);
}

static void test_steps(void **state)
{
    struct data_image *image = make_image();
    (void)state;
    check_steps(image, 1);
    check_steps(image, 7 * SECTOR);
    check_steps(image, 0);
    data_image_free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
