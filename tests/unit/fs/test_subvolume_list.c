/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of subvolumes and of quota groups, where the root tree and the quota tree are crafted:
 * subvolumes inside themselves, lost parents, directories in circles, items that are cut off. */
#include "btrfs-walk/subvolume.h"
#include "ondisk/disk_items.h"
#include "support/walk_helpers.h"

enum { QUOTA = 8 };

/* The listed lines, one for each subvolume or group. */
struct heard {
    char text[4096];
    size_t longest; /* path */
};

static void list_subvolumes(struct bw_fs *fs, bool paths, struct heard *heard)
{
    struct bw_subvolume_infos *infos;
    expect_success(bw_subvolume_infos_open(fs, paths, &infos));
    for (const struct bw_subvolume_info *info; (info = bw_subvolume_infos_next(infos));) {
        size_t length = strlen(heard->text);
        int shown = (int)(info->path_length < 40 ? info->path_length : 40);
        heard->longest = info->path_length > heard->longest ? info->path_length : heard->longest;
        snprintf(heard->text + length, sizeof heard->text - length, "%d %.*s\n", (int)info->id,
                 shown, info->path ? info->path : "");
    }
    expect_success(bw_subvolume_infos_close(infos));
}

static void add_backref(struct iw_image *image, uint64_t child, uint64_t parent, uint64_t directory,
                        const char *name)
{
    uint8_t bytes[sizeof(struct bw_disk_root_ref) + BW_NAME_MAX];
    struct bw_disk_root_ref *ref = (void *)bytes;
    size_t length = strlen(name);
    ref->directory = bw_put64(directory);
    ref->sequence = bw_put64(2);
    ref->name_length = bw_put16((uint16_t)length);
    memcpy(bytes + sizeof *ref, name, length);
    iw_item(image, 1, (struct bw_key){child, BW_ROOT_BACKREF, parent}, bytes, sizeof *ref + length);
}

/* Subvolumes with a valid path have it; each of the others only costs a message. */
static void test_no_way_up(void **state)
{
    struct heard heard = {.longest = 0};
    struct bw_fs *fs;
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    uint64_t circle = iw_directory(image, FS, TOP, "circle");
    for (uint64_t id = 256; id < 264; id++)
        iw_subvolume(image, id, 0, 0, NULL, 0);
    iw_item(image, FS, (struct bw_key){circle + 10, BW_INODE_REF, circle + 11},
            "\2\0\0\0\0\0\0\0\1\0a", 11);
    iw_item(image, FS, (struct bw_key){circle + 11, BW_INODE_REF, circle + 10},
            "\2\0\0\0\0\0\0\0\1\0b", 11);
    add_backref(image, 256, 257, TOP, "inside-257");
    add_backref(image, 257, 256, TOP, "inside-256");
    add_backref(image, 258, 258, TOP, "inside-itself");
    add_backref(image, 259, 999, TOP, "of-nothing");
    add_backref(image, 260, FS, circle + 10, "in-a-circle");
    add_backref(image, 261, FS, 12345, "lost-directory");
    add_backref(image, 262, 263, TOP, "inner");
    add_backref(image, 263, FS, circle, "good");
    iw_write_memory(image);
    expect_success(open_image(image, NULL, &fs));
    list_subvolumes(fs, true, &heard);
    assert_string_equal(heard.text, "5 /\n256 \n257 \n258 \n259 \n260 \n261 \n"
                                    "262 /circle/good/inner\n263 /circle/good\n");
    assert_int_equal(bw_fs_status(fs).damages, 6 + 2); /* and what the root tree lacks */
    heard.text[0] = '\0';
    list_subvolumes(fs, false, &heard);
    assert_int_equal(bw_fs_status(fs).damages, 6 + 2);
    bw_fs_close(fs);
    iw_destroy(image);
}

/* A chain of subvolumes with long names: paths end at a length that bounds the work. */
static void test_long_chain(void **state)
{
    enum { COUNT_OF_CHAIN = 100 };
    struct heard heard = {.longest = 0};
    struct bw_fs *fs;
    struct report_log log = {0};
    char name[251];
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    /* The first ones are the innermost. */
    for (uint64_t id = 256; id < 256 + COUNT_OF_CHAIN; id++)
        iw_subvolume(image, id, 0, 0, NULL, 0);
    for (uint64_t id = 256; id < 256 + COUNT_OF_CHAIN; id++)
        add_backref(image, id, id + 1 < 256 + COUNT_OF_CHAIN ? id + 1 : FS, TOP, name);
    iw_write_memory(image);
    expect_success(open_image(image, &log, &fs));
    list_subvolumes(fs, true, &heard);
    const size_t reach = (16 << 10) / sizeof name;
    assert_int_equal(heard.longest, reach * sizeof name);
    assert_int_equal(bw_fs_status(fs).damages, COUNT_OF_CHAIN - reach);
    assert_int_equal(report_log_count(&log, "its path is longer than 16 KiB"),
                     COUNT_OF_CHAIN - reach);
    bw_fs_close(fs);
    report_log_free(&log);
    iw_destroy(image);
}

static void list_groups(struct bw_fs *fs, struct heard *heard)
{
    char *end = heard->text;
    struct bw_qgroups *qgroups;
    expect_success(bw_qgroups_open(fs, true, &qgroups));
    for (const struct bw_qgroup_info *info; (info = bw_qgroups_next(qgroups));) {
        end += sprintf(end, "%u/%d %s %d in", info->level, (int)info->number,
                       info->is_counted ? "counted" : "unknown", (int)info->referenced);
        for (size_t i = 0; i < info->parent_count; i++)
            end += sprintf(end, " %d", (int)BW_QGROUP_NUMBER(info->parents[i]));
        end += sprintf(end, " of");
        for (size_t i = 0; i < info->member_count; i++)
            end += sprintf(end, " %d", (int)BW_QGROUP_NUMBER(info->members[i]));
        end += sprintf(end, " %.*s\n", (int)info->path_length, info->path ? info->path : "");
    }
    expect_success(bw_qgroups_close(qgroups));
}

static uint64_t group(uint64_t level, uint64_t number)
{
    return level << 48 | number;
}

static void test_groups(void **state)
{
    struct heard heard = {.longest = 0};
    struct bw_fs *fs;
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    struct bw_disk_qgroup_info info = {0};
    struct bw_quota_status status;
    iw_subvolume(image, 256, FS, TOP, "subvolume", 0);
    iw_subvolume(image, QUOTA, 0, 0, NULL, 0);
    info.referenced = bw_put64(77);
    iw_item(image, QUOTA, (struct bw_key){0, BW_QGROUP_INFO, 256}, &info, sizeof info);
    iw_item(image, QUOTA, (struct bw_key){0, BW_QGROUP_INFO, 300}, &info, sizeof info - 1);
    iw_item(image, QUOTA, (struct bw_key){0, BW_QGROUP_LIMIT, 300}, &info, sizeof info);
    iw_item(image, QUOTA, (struct bw_key){256, BW_QGROUP_RELATION, group(1, 1)}, "", 0);
    iw_item(image, QUOTA, (struct bw_key){256, BW_QGROUP_RELATION, group(2, 9)}, "", 0);
    iw_item(image, QUOTA, (struct bw_key){group(1, 1), BW_QGROUP_RELATION, 256}, "", 0);
    iw_item(image, QUOTA, (struct bw_key){group(1, 1), BW_QGROUP_RELATION, group(1, 1)}, "", 0);
    iw_item(image, QUOTA, (struct bw_key){0, BW_QGROUP_STATUS, 0}, &info, 31);
    iw_write_memory(image);
    expect_success(open_image(image, NULL, &fs));
    list_groups(fs, &heard);
    assert_string_equal(heard.text, "0/256 counted 77 in 1 9 of /subvolume\n"
                                    "0/300 unknown 0 in of \n"
                                    "1/1 unknown 0 in 1 of 256 \n");
    assert_int_equal(bw_fs_status(fs).damages, 1);
    expect_success(bw_fs_quota_status(fs, &status));
    assert_true(status.exists);
    assert_false(status.is_known);
    assert_int_equal(bw_fs_status(fs).damages, 2);
    bw_fs_close(fs);
    iw_destroy(image);
}
