/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Plans and their trials, where the program itself never plans a wrong change: a wrong one is put
 * in its place. Also the limits of a plan.
 */
#include "support/image_writer_internal.h"
#include "support/walk_helpers.h"

#include "base/cleanup.h"
#include "btrfs-walk/repair.h"
#include "ondisk/disk_items.h"
#include "record/record_types.h"
#include "repair/repair.h"

enum { FILES = 4 };

/* A file system with files whose link counts are wrong, and its plan. */
struct scene {
    struct iw_image *image;
    struct report_log log;
    enum bw_log_mode mode;
    struct bw_fs *fs;
    struct bw_repair *repair;
    uint64_t files[FILES];
    const char *paths[IW_MAX_DEVICES]; /* the plan refers to them */
};

static struct bw_error *plan(struct scene *scene, struct bw_repair_options options)
{
    options.struct_size = sizeof options;
    const struct bw_fs_options how = {.struct_size = sizeof how,
                                      .paths = scene->paths,
                                      .path_count = iw_paths_of(scene->image, scene->paths),
                                      .log = scene->mode,
                                      .reporter = report_log_reporter(&scene->log)};
    expect_success(bw_fs_open(&how, &scene->fs));
    return bw_repair_open(scene->fs, &how, &options, &scene->repair);
}

static struct scene make_scene(void)
{
    struct scene scene = {.image = iw_create(&(struct iw_options){.profile = 0}),
                          .mode = BW_LOG_IGNORE};
    for (unsigned i = 0; i < FILES; i++) {
        char name[8];
        snprintf(name, sizeof name, "file%u", i);
        scene.files[i] = iw_file(scene.image, FS, TOP, name);
        struct bw_disk_inode_item *inode =
            iw_item_bytes(scene.image, FS, (struct bw_key){scene.files[i], BW_INODE_ITEM, 0}, NULL);
        inode->link_count = bw_put32(7);
        iw_inline_data(scene.image, FS, scene.files[i], "contents", 8);
    }
    iw_write_memory(scene.image);
    return scene;
}

static void end(struct scene *scene)
{
    bw_repair_close(scene->repair);
    bw_fs_close(scene->fs);
    iw_destroy(scene->image);
    report_log_free(&scene->log);
}

/* The change of a file's link count. */
static size_t change_of(const struct scene *scene, unsigned file)
{
    char text[32];
    snprintf(text, sizeof text, "inode %u of tree", (unsigned)scene->files[file]);
    for (size_t i = 0; i < bw_repair_count(scene->repair); i++) {
        struct bw_repairinfo row;
        bw_repair_change(scene->repair, i, &row);
        if (strstr(row.why, text))
            return i;
    }
    fail_msg("no change of %s", text);
    return 0;
}

static struct bw_repairinfo row_of(const struct scene *scene, unsigned file)
{
    struct bw_repairinfo row;
    bw_repair_change(scene->repair, change_of(scene, file), &row);
    return row;
}

/* What is planned for a file is moved to another field of its inode. */
static void misplace(struct scene *scene, unsigned file, size_t field, uint8_t value)
{
    struct bw_repair_change *change = &scene->repair->changes.items[change_of(scene, file)];
    change->byte += (uint32_t)(field - offsetof(struct bw_disk_inode_item, link_count));
    memset(change->bytes, 0, change->length);
    change->bytes[0] = value;
}

static void no_failure(void **state)
{
    struct scene scene = make_scene();
    uint64_t left = 99;
    expect_success(plan(&scene, (struct bw_repair_options){0}));
    expect_success(bw_repair_try(scene.repair, &left));
    assert_int_equal(left, 0);
    for (unsigned i = 0; i < FILES; i++)
        assert_null(row_of(&scene, i).failure);
    end(&scene);
}

/* A wrong value: the finding stays. */
static void wrong_value(void **state)
{
    struct scene scene = make_scene();
    uint64_t left;
    expect_success(plan(&scene, (struct bw_repair_options){0}));
    misplace(&scene, 2, offsetof(struct bw_disk_inode_item, link_count), 9);
    expect_success(bw_repair_try_each(scene.repair, &left));
    assert_int_equal(left, 1);
    for (unsigned i = 0; i < FILES; i++) {
        const struct bw_repairinfo row = row_of(&scene, i);
        assert_int_equal(row.chosen, i != 2);
        if (i == 2)
            assert_non_null(strstr(row.failure, "still finds link-count"));
        else
            assert_null(row.failure);
    }
    end(&scene);
}

/* A wrong place: something new is found, twice. The image with what remains has only these two
 * faults. */
static void wrong_places(void **state)
{
    struct scene scene = make_scene();
    uint64_t left;
    size_t count;
    expect_success(plan(&scene, (struct bw_repair_options){0}));
    misplace(&scene, 0, offsetof(struct bw_disk_inode_item, mode), 1);
    misplace(&scene, 3, offsetof(struct bw_disk_inode_item, mode), 1);
    expect_success(bw_repair_try_each(scene.repair, &left));
    assert_int_equal(left, 2);
    for (unsigned i = 0; i < FILES; i++) {
        const struct bw_repairinfo row = row_of(&scene, i);
        assert_int_equal(row.chosen, i == 1 || i == 2);
        assert_int_equal(row.failure != NULL, i == 0 || i == 3);
        if (row.failure)
            assert_non_null(strstr(row.failure, "finds something new"));
    }
    struct bw_fs *repaired;
    const struct bw_patch *const *patches = bw_repair_patches(scene.repair, &count);
    const struct bw_fs_options how = {.struct_size = sizeof how,
                                      .paths = scene.paths,
                                      .path_count = iw_device_count(scene.image),
                                      .patches = patches,
                                      .patch_count = count};
    expect_success(bw_fs_open(&how, &repaired));
    struct bw_check_summary *summary;
    const struct bw_check_options options = {.struct_size = sizeof options};
    expect_success(bw_check(repaired, &options, &summary));
    assert_int_equal(summary->totals[BW_FINDING_ERROR] + summary->totals[BW_FINDING_WARNING], 2);
    bw_check_summary_free(summary);
    bw_fs_close(repaired);
    end(&scene);
}

/* If the changes were chosen one by one, the trial names those that fail. */
static void strict(void **state)
{
    struct scene scene = make_scene();
    uint64_t left;
    char text[32];
    expect_success(plan(&scene, (struct bw_repair_options){0}));
    misplace(&scene, 1, offsetof(struct bw_disk_inode_item, mode), 1);
    snprintf(text, sizeof text, "change %zu: the check", change_of(&scene, 1) + 1);
    expect_error(bw_repair_try(scene.repair, &left), BW_ERROR_CORRUPT, text);
    assert_non_null(row_of(&scene, 1).failure);
    expect_success(bw_repair_try(scene.repair, &left));
    assert_int_equal(left, 1);
    bw_repair_choose(scene.repair, change_of(&scene, 1), true);
    assert_null(row_of(&scene, 1).failure);
    end(&scene);
}

/* Changes of a group fail together. */
static void group(void **state)
{
    struct scene scene = make_scene();
    uint64_t left;
    expect_success(plan(&scene, (struct bw_repair_options){0}));
    misplace(&scene, 1, offsetof(struct bw_disk_inode_item, mode), 1);
    scene.repair->changes.items[change_of(&scene, 1)].group = 1;
    scene.repair->changes.items[change_of(&scene, 3)].group = 1;
    expect_success(bw_repair_try_each(scene.repair, &left));
    assert_int_equal(left, 2);
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(row_of(&scene, i).chosen, i == 0 || i == 2);
    for (unsigned is_chosen = 2; is_chosen-- > 0;) { /* and are chosen together */
        bw_repair_choose(scene.repair, change_of(&scene, 3), is_chosen);
        assert_int_equal(row_of(&scene, 1).chosen, is_chosen);
        assert_int_equal(row_of(&scene, 2).chosen, 1);
        assert_null(row_of(&scene, 1).failure);
    }
    end(&scene);
}

/* All fail: nothing is changed. */
static void all_fail(void **state)
{
    struct scene scene = make_scene();
    uint64_t left;
    size_t count;
    expect_success(plan(&scene, (struct bw_repair_options){0}));
    for (unsigned i = 0; i < FILES; i++)
        misplace(&scene, i, offsetof(struct bw_disk_inode_item, link_count), 5);
    expect_success(bw_repair_try_each(scene.repair, &left));
    assert_int_equal(left, FILES);
    const struct bw_patch *const *patches = bw_repair_patches(scene.repair, &count);
    for (size_t i = 0; i < count; i++)
        assert_true(bw_patch_next(patches[i], 0) == UINT64_MAX);
    end(&scene);
}

/* A change that the check accepts, but after which a file cannot be read: the answer is its number.
 */
static size_t compress(struct scene *scene, unsigned file)
{
    struct bw_repair_finding finding = {.logical = BW_ABSENT};
    const struct bw_key key = {scene->files[file], BW_EXTENT_DATA, 0};
    expect_success(bw_repair_edit_item(
        scene->repair, &finding, &bw_subvolume_by_id(scene->fs, FS)->tree, &key,
        offsetof(struct bw_disk_file_extent, compression), 1, 1,
        (struct bw_repair_edit){.what = "compression", .why = "a test", .proof = "none"}));
    return bw_repair_count(scene->repair) - 1;
}

static void unreadable(void **state)
{
    struct scene scene = make_scene();
    uint64_t left;
    struct bw_repairinfo row;
    expect_success(plan(&scene, (struct bw_repair_options){0}));
    const size_t wrong = compress(&scene, 1);
    expect_success(bw_repair_try_each(scene.repair, &left));
    assert_int_equal(left, 0);
    bw_repair_change(scene.repair, wrong, &row);
    assert_int_equal(row.chosen, 0);
    assert_non_null(strstr(row.failure, "is less readable than before the repair"));
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(row_of(&scene, i).chosen, 1);
    end(&scene);
}

/* With `verify`, the check reads data, too. */
static void verify(void **state)
{
    struct scene scene = make_scene();
    uint64_t left;
    expect_success(plan(&scene, (struct bw_repair_options){.verify = true}));
    compress(&scene, 3);
    expect_error(bw_repair_try(scene.repair, &left), BW_ERROR_CORRUPT, "data-compressed");
    expect_success(bw_repair_try(scene.repair, &left));
    assert_int_equal(left, 0);
    end(&scene);
}

/* Planning again: what has failed is not planned again, and what was made stays. */
static void again(void **state)
{
    struct scene scene = make_scene();
    uint64_t left;
    size_t count;
    bool is_new = true;
    expect_success(plan(&scene, (struct bw_repair_options){0}));
    misplace(&scene, 2, offsetof(struct bw_disk_inode_item, link_count), 9);
    expect_success(bw_repair_try_each(scene.repair, &left));
    expect_success(bw_repair_plan_again(scene.repair, &is_new));
    assert_false(is_new);
    assert_int_equal(bw_repair_count(scene.repair), FILES);
    bw_repair_choose(scene.repair, change_of(&scene, 1), false);
    for (unsigned i = 0; i < FILES; i++)
        assert_int_equal(row_of(&scene, i).chosen, i != 2);
    const struct bw_patch *const *patches = bw_repair_patches(scene.repair, &count);
    assert_true(bw_patch_next(patches[0], 0) != UINT64_MAX);
    expect_success(bw_repair_plan_again(scene.repair, &is_new));
    assert_false(is_new);
    end(&scene);
}

/* A range of bad tree blocks is one change. If some of the blocks fail, the others are repaired:
 * the second block stays bad, or is replaced by the first one, which the check has not found
 * before. */
static void divided(void **state)
{
    enum { BLOCKS = 5 };
    for (unsigned is_new = 0; is_new < 2; is_new++) {
        struct scene scene = {.mode = BW_LOG_IGNORE,
                              .image = iw_create(&(struct iw_options){
                                  .profile = BW_GROUP_DUP, .nodesize = 4096, .items_per_leaf = 2})};
        uint64_t left, first = 0;
        for (unsigned i = 0; i < BLOCKS; i++) {
            char name[8];
            snprintf(name, sizeof name, "file%u", i);
            iw_file(scene.image, FS, TOP, name);
        }
        iw_write_memory(scene.image);
        for (size_t i = 0; i < iw_block_count(scene.image); i++)
            if (iw_block(scene.image, i)->tree == FS && !iw_block(scene.image, i)->level &&
                (!first || iw_block(scene.image, i)->logical < first))
                first = iw_block(scene.image, i)->logical;
        for (unsigned i = 0; i < BLOCKS; i++)
            iw_corrupt(scene.image, first + i * 4096, 1, 0, 4096, IW_ZERO);
        expect_success(plan(&scene, (struct bw_repair_options){0}));
        struct bw_repair_change *change = scene.repair->changes.items;
        assert_int_equal(bw_repair_count(scene.repair), 1);
        assert_int_equal(change->length, BLOCKS * 4096);
        assert_string_equal(change->plural, "tree blocks");
        if (is_new)
            memcpy(change->bytes + 4096, change->bytes, 4096);
        else
            memset(change->bytes + 4096, 0, 4096);
        expect_success(bw_repair_try_each(scene.repair, &left));
        assert_int_equal(left, 1);
        uint64_t bytes = 0;
        for (size_t i = 0; i < bw_repair_count(scene.repair); i++) {
            struct bw_repairinfo row;
            bw_repair_change(scene.repair, i, &row);
            const bool is_failed = row.logical == first + 4096;
            bytes += row.length;
            assert_int_equal(row.chosen, !is_failed);
            assert_string_equal(row.what, row.length > 4096 ? "tree blocks" : "tree block");
            if (is_failed) {
                assert_int_equal(row.length, 4096);
                assert_non_null(strstr(row.failure, is_new ? "something new" : "still finds"));
            } else {
                assert_null(row.failure);
            }
        }
        assert_int_equal(bytes, BLOCKS * 4096);
        end(&scene);
    }
}

static void limits(void **state)
{
    struct scene scene = make_scene();
    scene.mode = BW_LOG_REPLAY;
    expect_error(plan(&scene, (struct bw_repair_options){0}), BW_ERROR_USAGE, "log tree");
    bw_fs_close(scene.fs);
    scene.mode = BW_LOG_IGNORE;
    expect_error(plan(&scene, (struct bw_repair_options){.most_findings = FILES - 1}),
                 BW_ERROR_UNSUPPORTED, "more than 3 findings");
    bw_fs_close(scene.fs);
    expect_success(plan(&scene, (struct bw_repair_options){.most_findings = FILES}));
    bw_repair_close(scene.repair);
    bw_fs_close(scene.fs);
    expect_success(plan(&scene, (struct bw_repair_options){.most_bytes = 4 * FILES}));
    assert_int_equal(bw_repair_count(scene.repair), FILES);
    bw_repair_close(scene.repair);
    bw_fs_close(scene.fs);

    /* The last change is left out, which is reported; the others are made. */
    uint64_t left;
    expect_success(plan(&scene, (struct bw_repair_options){.most_bytes = 4 * FILES - 1}));
    assert_int_equal(bw_repair_count(scene.repair), FILES - 1);
    assert_int_equal(report_log_count(&scene.log, "the plan omits changes, the first at"), 1);
    expect_success(bw_repair_try_each(scene.repair, &left));
    assert_int_equal(left, 1);

    /* A group without memory for all its changes. */
    struct bw_repairinfo row;
    for (uint64_t length = 1; length <= 4 * FILES; length += 4 * FILES - 1)
        expect_success(
            bw_repair_add(scene.repair, (struct bw_repair_change){.group = 1000,
                                                                  .length = length,
                                                                  .is_in_block = true,
                                                                  .what = "part of a group",
                                                                  .why = strdup("why"),
                                                                  .proof = strdup("proof"),
                                                                  .bytes = calloc(1, length)}));
    const size_t last = bw_repair_count(scene.repair) - 1;
    bw_repair_choose(scene.repair, last, false);
    bw_repair_choose(scene.repair, last, true);
    bw_repair_change(scene.repair, last, &row);
    assert_string_equal(row.what, "part of a group");
    assert_false(row.chosen);
    end(&scene);
}
