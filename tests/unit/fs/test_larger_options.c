/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Option structures of a program that was built with a newer version of the library: larger ones,
 * whose additional members are zero. Every function that has options accepts them, and refuses them
 * if one of these members is set. Sanitizers notice if one is read beyond the library's own copy.
 */
#include "support/walk_helpers.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "btrfs-walk/btrfs-walk.h"

/* The larger structure. */
enum { LARGER = 4096 };

/* What a call needs: an open file system, and the options with which it was opened. */
struct scene {
    struct iw_image *image;
    struct bw_fs *fs;
    struct bw_fs_options images;
    char folder[32];      /* an empty one */
    char options[LARGER]; /* of the call */
};

/* Makes the options of a call, as the larger structure. */
static const void *enlarge(struct scene *scene, const void *options, size_t size)
{
    const size_t larger = LARGER;
    memcpy(scene->options, options, size);
    memcpy(scene->options, &larger, sizeof larger);
    return scene->options;
}
#define LARGER_OPTIONS(scene, type, ...) \
    enlarge((scene), &(struct type){__VA_ARGS__}, sizeof(struct type))

static struct bw_error *ignore_text(void *context, const char *text, size_t length)
{
    return NULL;
}

static struct bw_error *ignore_bytes(void *context, const void *bytes, size_t length)
{
    return NULL;
}

/* Visitors: all of them are called with a context and a pointer. */
#define IGNORE(name, type)                                        \
    static struct bw_error *name(void *context, const type *what) \
    {                                                             \
        (void)context, (void)what;                                \
        return NULL;                                              \
    }
IGNORE(ignore_part, struct bw_data_part)
IGNORE(ignore_free, struct bw_free_range)
IGNORE(ignore_owner, struct bw_owner)
IGNORE(ignore_du, struct bw_du_entry)
IGNORE(ignore_difference, struct bw_difference)
IGNORE(ignore_version, struct bw_version)
IGNORE(ignore_table, struct bw_partition_table)

static struct bw_error *call_open(struct scene *scene)
{
    struct bw_fs *fs = NULL;
    struct bw_error *error = bw_fs_open(enlarge(scene, &scene->images, sizeof scene->images), &fs);
    bw_fs_close(fs);
    return error;
}

static struct bw_error *call_open_images(struct scene *scene)
{
    struct bw_fs *fs = NULL;
    struct bw_error *error =
        bw_fs_open_images(enlarge(scene, &scene->images, sizeof scene->images), &fs);
    bw_fs_close(fs);
    return error;
}

static struct bw_error *call_wire(struct scene *scene)
{
    struct bw_fs *fs = NULL;
    struct bw_error *error = bw_fs_wire(enlarge(scene, &scene->images, sizeof scene->images), &fs);
    bw_fs_close(fs);
    return error;
}

static struct bw_error *call_partition_tables(struct scene *scene)
{
    return bw_partition_tables(enlarge(scene, &scene->images, sizeof scene->images), ignore_table,
                               NULL);
}

static struct bw_error *call_open_graph(struct scene *scene)
{
    struct bw_fs *fs = NULL;
    struct bw_fs_options images = scene->images;
    images.graph = LARGER_OPTIONS(scene, bw_graph_options, .edit_count = 0);
    struct bw_error *error = bw_fs_open(&images, &fs);
    bw_fs_close(fs);
    return error;
}

static struct bw_error *call_walk(struct scene *scene)
{
    return bw_walk(scene->fs, LARGER_OPTIONS(scene, bw_walk_options, .consume = ignore_text), NULL);
}

static struct bw_error *call_walk_start_path(struct scene *scene)
{
    char *path = NULL;
    struct bw_error *error = bw_walk_start_path(
        scene->fs, LARGER_OPTIONS(scene, bw_walk_options, .consume = ignore_text), &path, NULL);
    free(path);
    return error;
}

static struct bw_error *call_check(struct scene *scene)
{
    struct bw_check_summary *summary = NULL;
    struct bw_error *error =
        bw_check(scene->fs, LARGER_OPTIONS(scene, bw_check_options, .threads = 2), &summary);
    bw_check_summary_free(summary);
    return error;
}

static struct bw_error *call_check_images(struct scene *scene)
{
    struct bw_check_summary *summary = NULL;
    BW_AUTO_ERROR struct bw_error *why = bw_error_create(BW_ERROR_CORRUPT, "why");
    struct bw_error *error = bw_check_images(
        scene->fs, why, LARGER_OPTIONS(scene, bw_check_options, .threads = 2), &summary);
    bw_check_summary_free(summary);
    return error;
}

static struct bw_error *call_diff(struct scene *scene)
{
    const struct bw_diff_side side = {.fs = scene->fs,
                                      .subvolume = bw_subvolume_by_id(scene->fs, FS)};
    return bw_diff(&side, &side, LARGER_OPTIONS(scene, bw_diff_options, .visit = ignore_difference),
                   NULL);
}

static struct bw_error *find_file(const struct scene *scene, struct bw_place *place)
{
    return bw_lookup(scene->fs, NULL, "/file", false, place);
}

static struct bw_error *call_file_open(struct scene *scene)
{
    struct bw_place place;
    struct bw_file *file = NULL;
    struct bw_error *error = find_file(scene, &place);
    if (!error)
        error = bw_file_open(scene->fs, &place,
                             LARGER_OPTIONS(scene, bw_file_options, .unchecked = true), &file);
    bw_file_close(file);
    return error;
}

static struct bw_error *no_file(void *context, struct bw_stream_file *file, bool *got)
{
    *got = false;
    return NULL;
}

static struct bw_error *ignore_streamed(void *context, const struct bw_stream_file *file,
                                        const struct bw_data_part *part)
{
    return NULL;
}

static struct bw_error *call_stream(struct scene *scene)
{
    return bw_stream_run(
        scene->fs, LARGER_OPTIONS(scene, bw_stream, .next = no_file, .visit = ignore_streamed));
}

static struct bw_error *call_logical_read(struct scene *scene)
{
    return bw_logical_read(scene->fs, iw_chunk(scene->image, 0)->logical, 0,
                           LARGER_OPTIONS(scene, bw_logical_options, .unchecked = true),
                           ignore_part, NULL);
}

static struct bw_error *call_history(struct scene *scene)
{
    struct bw_history *history = NULL;
    struct bw_error *error = bw_history_open(
        scene->fs, LARGER_OPTIONS(scene, bw_history_options, .only_list = true), &history);
    bw_history_close(history);
    return error;
}

static struct bw_error *call_history_state(struct scene *scene)
{
    struct bw_history *history = NULL;
    struct bw_fs *fs = NULL;
    const struct bw_history_options how = {.struct_size = sizeof how, .only_list = true};
    struct bw_error *error = bw_history_open(scene->fs, &how, &history);
    if (!error)
        error = bw_history_open_state(history, 0,
                                      enlarge(scene, &scene->images, sizeof scene->images), &fs);
    bw_fs_close(fs);
    bw_history_close(history);
    return error;
}

static struct bw_error *read_deleted(struct scene *scene, const struct bw_deleted_options *options)
{
    struct bw_deleted *deleted = NULL;
    const struct bw_deleted_state *state;
    struct bw_error *error = bw_deleted_open(scene->fs, options, &deleted);
    if (!error)
        error = bw_deleted_next(deleted, &state);
    bw_deleted_close(deleted);
    return error;
}

static struct bw_error *call_deleted(struct scene *scene)
{
    return read_deleted(scene, LARGER_OPTIONS(scene, bw_deleted_options, .images = &scene->images));
}

static struct bw_error *call_deleted_images(struct scene *scene)
{
    const struct bw_deleted_options how = {
        .struct_size = sizeof how, .images = enlarge(scene, &scene->images, sizeof scene->images)};
    return read_deleted(scene, &how);
}

static struct bw_error *call_versions(struct scene *scene)
{
    return bw_versions(scene->fs,
                       LARGER_OPTIONS(scene, bw_versions_options, .images = &scene->images,
                                      .path = "/file", .visit = ignore_version));
}

static struct bw_error *call_printer(struct scene *scene)
{
    const bool selected[BW_PROBES_MAX] = {false};
    struct bw_probe_printer *printer = NULL;
    struct bw_error *error = bw_probe_printer_create(
        LARGER_OPTIONS(scene, bw_probe_printer_options, .consume = ignore_text), selected,
        &printer);
    return error ? error : bw_probe_printer_destroy(printer);
}

static struct bw_error *call_rows(struct scene *scene)
{
    struct bw_rows *rows = NULL;
    struct bw_error *error = bw_rows_create(
        "fileinfo", LARGER_OPTIONS(scene, bw_rows_options, .members = "path"), &rows);
    bw_rows_destroy(rows);
    return error;
}

static struct bw_error *call_used(struct scene *scene)
{
    struct bw_used_map *map = NULL;
    struct bw_error *error =
        bw_used_map_open(scene->fs, LARGER_OPTIONS(scene, bw_used_options, .threads = 1), &map);
    bw_used_map_close(map);
    return error;
}

static struct bw_error *call_space_map(struct scene *scene)
{
    struct bw_space_map *map = NULL;
    struct bw_error *error =
        bw_space_map_open(scene->fs, LARGER_OPTIONS(scene, bw_space_map_options, .cells = 4), &map);
    bw_space_map_close(map);
    return error;
}

static struct bw_error *call_free(struct scene *scene)
{
    return bw_free_ranges(scene->fs, LARGER_OPTIONS(scene, bw_free_options, .visit = ignore_free));
}

static struct bw_error *call_owners(struct scene *scene)
{
    const struct bw_address_range range = {iw_chunk(scene->image, 0)->logical, 4096};
    return bw_owners_find(scene->fs, LARGER_OPTIONS(scene, bw_owner_options, .ranges = &range,
                                                    .count = 1, .visit = ignore_owner));
}

static struct bw_error *call_shares(struct scene *scene)
{
    struct bw_shares *shares = NULL;
    struct bw_error *error =
        bw_shares_open(scene->fs, LARGER_OPTIONS(scene, bw_shares_options, .threads = 1), &shares);
    bw_shares_close(shares);
    return error;
}

static struct bw_error *call_du(struct scene *scene)
{
    return bw_du(scene->fs, LARGER_OPTIONS(scene, bw_du_options, .visit = ignore_du));
}

static struct bw_error *call_compression(struct scene *scene)
{
    struct bw_compression_count *count = NULL;
    struct bw_error *error = bw_compression_open(
        scene->fs, LARGER_OPTIONS(scene, bw_compression_options, .maxdepth = 0), &count);
    bw_compression_close(count);
    return error;
}

static struct bw_error *call_send(struct scene *scene)
{
    const struct bw_send_side side = {.fs = scene->fs,
                                      .subvolume = bw_subvolume_by_id(scene->fs, FS)};
    return bw_send(&side, LARGER_OPTIONS(scene, bw_send_options, .write = ignore_bytes), NULL);
}

static struct bw_error *call_receiver(struct scene *scene)
{
    struct bw_receiver *receiver = NULL;
    const int folder = open(scene->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct bw_error *error = bw_receiver_create(
        LARGER_OPTIONS(scene, bw_receiver_options, .folder = folder, .top = folder), &receiver);
    bw_receiver_destroy(receiver);
    close(folder);
    return error;
}

static struct bw_error *call_dump_trees(struct scene *scene)
{
    return bw_dump_trees(scene->fs, NULL, 0, LARGER_OPTIONS(scene, bw_dump_options, .json = false),
                         ignore_text, NULL);
}

static struct bw_error *call_dump_block(struct scene *scene)
{
    return bw_dump_block(scene->fs, iw_root_block(scene->image, FS)->logical,
                         LARGER_OPTIONS(scene, bw_dump_options, .json = false), ignore_text, NULL);
}

static struct bw_error *call_item_format(struct scene *scene)
{
    char *text = NULL;
    size_t length;
    const struct bw_item item = {
        .key = {(uint64_t)-5, BW_ORPHAN_ITEM, 257}, .data = (const uint8_t *)"", .size = 0};
    struct bw_error *error = bw_item_format(
        scene->fs, &item, LARGER_OPTIONS(scene, bw_dump_options, .json = false), &text, &length);
    free(text);
    return error;
}

static struct bw_error *call_metadump(struct scene *scene)
{
    return bw_metadump_write(scene->fs,
                             LARGER_OPTIONS(scene, bw_metadump_options, .checksums = true),
                             ignore_text, NULL);
}

static struct bw_error *(*const calls[])(struct scene *) = {
    call_open,
    call_open_images,
    call_wire,
    call_partition_tables,
    call_open_graph,
    call_walk,
    call_walk_start_path,
    call_check,
    call_check_images,
    call_diff,
    call_file_open,
    call_stream,
    call_logical_read,
    call_history,
    call_history_state,
    call_deleted,
    call_deleted_images,
    call_versions,
    call_printer,
    call_rows,
    call_used,
    call_space_map,
    call_free,
    call_owners,
    call_shares,
    call_du,
    call_compression,
    call_send,
    call_receiver,
    call_dump_trees,
    call_dump_block,
    call_item_format,
    call_metadump,
};

static void test_larger(void **state)
{
    struct iw_image *image = iw_create(&(struct iw_options){.nodesize = 4096});
    iw_file(image, FS, TOP, "file");
    iw_write_memory(image);
    const char *const path = iw_path(image, 0);
    struct scene scene = {
        .image = image,
        .images = {.struct_size = sizeof scene.images, .paths = &path, .path_count = 1},
        .folder = "/tmp/larger-options-XXXXXX"};
    assert_non_null(mkdtemp(scene.folder));
    expect_success(bw_fs_open(&scene.images, &scene.fs));
    for (size_t i = 0; i < COUNT(calls); i++) {
        memset(scene.options, 0, LARGER);
        expect_success(calls[i](&scene));
        scene.options[LARGER - 1] = 1;
        expect_error(calls[i](&scene), BW_ERROR_USAGE, "newer version");
    }
    bw_fs_close(scene.fs);
    rmdir(scene.folder);
    iw_destroy(image);
}
