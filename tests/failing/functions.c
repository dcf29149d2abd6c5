/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls the public functions that no command calls, and prints their results: functions IMAGE.
 * tests/support/fail_calls.py lets calls of this program fail, as those of the commands.
 */
#include <btrfs-walk/batches.h>
#include <btrfs-walk/fs.h>
#include <btrfs-walk/inode.h>
#include <btrfs-walk/subvolume.h>
#include <btrfs-walk/tree.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                         \
    do {                                  \
        struct bw_error *failed = (call); \
        if (failed)                       \
            return failed;                \
    } while (0)

static bool damaged;

static void report(void *context, enum bw_severity severity, const struct bw_error *error)
{
    (void)context;
    damaged |= severity == BW_DAMAGE;
    fprintf(stderr, "%s\n", error->message);
}

/* Takes all batches of a function, and prints how many results they have. */
static struct bw_error *count_batches(const char *what, struct bw_batches *batches)
{
    size_t results = 0, bytes = 0;
    struct bw_error *error;
    for (struct bw_batch *batch; !(error = bw_batches_next(batches, &batch)) && batch;) {
        results += batch->count;
        bytes += batch->text_length;
        bw_batch_close(batch);
    }
    struct bw_error *closing = bw_batches_close(batches);
    if (error) {
        bw_error_free(closing);
        return error;
    }
    TRY(closing);
    if (what) /* or it could be incomplete */
        printf("%s: %zu results, %zu bytes\n", what, results, bytes);
    return NULL;
}

static struct bw_error *call_batches(struct bw_fs *fs, const char *const *paths)
{
    const struct bw_subvolume *top = bw_subvolume_by_id(fs, 5);
    const struct bw_address_range range = {UINT64_C(1) << 24, UINT64_C(1) << 20};
    const struct bw_fs_options images = {
        .struct_size = sizeof images, .paths = paths, .path_count = 1};
    const struct bw_walk_options walk = {.struct_size = sizeof walk, .threads = 1};
    const struct bw_check_options check = {.struct_size = sizeof check, .threads = 1};
    const struct bw_owner_options owners = {
        .struct_size = sizeof owners, .ranges = &range, .count = 1};
    const struct bw_diff_options diff = {.struct_size = sizeof diff};
    const struct bw_diff_side side = {.fs = fs, .subvolume = top};
    const struct bw_versions_options versions = {
        .struct_size = sizeof versions, .images = &images, .path = "/docs"};
    struct bw_walk_summary walked;
    struct bw_check_summary *checked = NULL;
    struct bw_diff_summary compared = {0};
    struct bw_batches *batches;

    TRY(bw_batches_open_walk(fs, &walk, &walked, &batches));
    TRY(count_batches("walk", batches));
    TRY(bw_batches_open_check(fs, NULL, &check, &checked, &batches));
    struct bw_error *error = count_batches(NULL, batches);
    if (!error && (!checked || !checked->finished || checked->totals[BW_FINDING_ERROR])) {
        damaged = true;
        fputs("the check has found errors, or could not find all\n", stderr);
    }
    bw_check_summary_free(checked);
    TRY(error);
    TRY(bw_batches_open_owners(fs, &owners, &batches));
    TRY(count_batches("owners", batches));
    TRY(bw_batches_open_diff(&side, &side, &diff, &compared, &batches));
    TRY(count_batches("diff", batches));
    TRY(bw_batches_open_versions(fs, &versions, &batches));
    return count_batches("versions", batches);
}

static struct bw_error *print_name(void *context, const struct bw_inode_name *name)
{
    (void)context;
    printf("name: %.*s\n", (int)name->name_length, name->name);
    return NULL;
}

static struct bw_error *print_xattr(void *context, const struct bw_xattr *xattr)
{
    (void)context;
    printf("xattr: %.*s\n", (int)xattr->name_length, (const char *)xattr->name);
    return NULL;
}

static struct bw_error *print_logged(void *context, const struct bw_log_inode *inode)
{
    (void)context;
    printf("logged: %" PRIu64 "\n", inode->inode);
    return NULL;
}

static struct bw_error *print_items(struct bw_fs *fs, const struct bw_subvolume *top)
{
    const struct bw_dump_options how = {.struct_size = sizeof how};
    struct bw_items *items;
    const struct bw_item *item = NULL;
    TRY(bw_items_open(fs, 5, NULL, NULL, &items));
    struct bw_error *error;
    while (!(error = bw_items_next(items, &item, NULL)) && item) {
        char *text;
        if ((error = bw_item_format(fs, item, &how, &text, NULL)))
            break;
        fputs(text, stdout);
        free(text);
        const struct bw_place place = {.subvolume = top, .inode = item->key.objectid};
        if (item->key.type == 1 && ((error = bw_inode_names(fs, &place, print_name, NULL)) ||
                                    (error = bw_inode_xattrs(fs, &place, print_xattr, NULL))))
            break;
    }
    bw_items_close(items);
    return error;
}

static struct bw_error *call_others(struct bw_fs *fs)
{
    const struct bw_subvolume *top = bw_subvolume_by_id(fs, 5), *found;
    struct bw_subvolume_info info;
    struct bw_user_names *users;
    bool is_changed;
    uint32_t number = 0;
    TRY(print_items(fs, top));
    TRY(bw_log_inodes(fs, print_logged, NULL));
    TRY(bw_subvolume_get(fs, top, &info));
    TRY(bw_subvolume_by_uuid(fs, info.uuid, &found));
    TRY(bw_subvolume_is_changed(fs, top, &info, &is_changed));
    printf("found: %d, changed: %d\n", found == top, is_changed);
    TRY(bw_user_names_open(fs, NULL, &users));
    printf("users: '%s', %d\n", bw_user_names_place(users),
           bw_user_names_find_user(users, "root", &number) +
               bw_user_names_find_group(users, "root", &number));
    bw_user_names_close(users);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *const *paths = (const char *const *)argv + 1;
    const struct bw_fs_options options = {.struct_size = sizeof options,
                                          .paths = paths,
                                          .path_count = (size_t)argc - 1,
                                          .reporter = {report, NULL}};
    struct bw_fs *fs = NULL;
    struct bw_error *error = bw_fs_open(&options, &fs);
    if (!error)
        error = call_batches(fs, paths);
    if (!error)
        error = call_others(fs);
    if (error)
        fprintf(stderr, "%s\n", error->message);
    const int status = error || damaged;
    bw_error_free(error);
    bw_fs_close(fs);
    return status;
}
