/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target behind the checksums: a small image of the image writer, edited as the input says,
 * opened and walked. Whatever the image is like, the walk ends, its paths are paths, the number of
 * threads does not show, and nothing is written or left open.
 *
 * The input: four bytes (base image, options, missing device, subvolume), then edits (edits.h).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "btrfs-walk/fs.h"
#include "btrfs-walk/space.h"
#include "btrfs-walk/subvolume.h"
#include "btrfs-walk/tree.h"
#include "btrfs-walk/walk.h"
#include "fuzz/edits.h"
#include "fuzz/targets.h"

/* Far more than a sound walk of any of the images prints. */
enum { OUTPUT_AT_MOST = 16 << 20, HEAD = 4 };

enum {
    OPTION_THREADS = 1,
    OPTION_NO_SNAPSHOTS = 2,
    OPTION_ESCAPE = 4,
    OPTION_REPAIR = 8,
    OPTION_TWICE = 16,
    OPTION_SUBVOLUME = 32,
    OPTION_MISSING = 64,
    OPTION_ALL_TYPES = 128,
};

/* The result of one walk. */
struct outcome {
    char terminator;
    bool escape;
    bool stopped;
    enum bw_error_code code; /* 0: none */
    size_t length;
    uint64_t paths, sum;
    struct bw_walk_summary summary;
};

/* Checking. */

static void check_component(const char *name, size_t length)
{
    if (length == 0)
        fuzz_fail("a path has an empty component");
    if (name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')))
        fuzz_fail("a path has a component \".\" or \"..\"");
}

static void check_path(const char *path, size_t length)
{
    if (length == 1 && path[0] == '/')
        return; /* the top directory */
    if (length < 2 || path[0] != '/')
        fuzz_fail("a path is not absolute");
    for (const char *name = path + 1, *end = path + length; name <= end;) {
        const char *slash = memchr(name, '/', (size_t)(end - name));
        const char *stop = slash ? slash : end;
        check_component(name, (size_t)(stop - name));
        name = stop + 1;
    }
}

static struct bw_error *consume(void *context, const char *paths, size_t length)
{
    struct outcome *outcome = context;
    outcome->length += length;
    for (const char *next = paths, *end = paths + length; next < end;) {
        const char *stop = memchr(next, outcome->terminator, (size_t)(end - next));
        if (!stop)
            fuzz_fail("a path has no end");
        check_path(next, (size_t)(stop - next));
        for (; next <= stop; next++)
            outcome->sum = (outcome->sum ^ (uint8_t)*next) * UINT64_C(0x100000001b3);
        outcome->paths++;
    }
    if (outcome->length <= OUTPUT_AT_MOST)
        return NULL;
    outcome->stopped = true;
    return bw_error_create(BW_ERROR_STOPPED, "enough");
}

static void take_report(void *context, enum bw_severity severity, const struct bw_error *error)
{
    size_t *counts = context;
    counts[severity]++;
    if (!error->message || !*error->message || strlen(error->message) > 1 << 20)
        fuzz_fail("a report has no message, or an endless one");
}

/* Walking. */

static const char *const subvolume_names[] = {
    "default",  "5", "256",     "300", "/subvolumes/nest", "/subvolumes/nest/inner/again",
    "snapshot", "/", "no/such",
};

/* Lines with escaped paths, kept for all images. */
static const struct bw_rows *escaped_paths(void)
{
    static struct bw_rows *rows;
    const struct bw_rows_options options = {
        .struct_size = sizeof options, .style = BW_ROWS_PATHS, .escape = true, .terminator = '\n'};
    if (!rows)
        bw_error_free(bw_rows_create("fileinfo", &options, &rows));
    return rows;
}

static void walk(struct bw_fs *fs, const struct bw_walk_options *wanted, struct outcome *outcome)
{
    struct bw_walk_options options = *wanted;
    *outcome = (struct outcome){.terminator = options.rows ? '\n' : '\0'};
    options.struct_size = sizeof options;
    options.consume = consume;
    options.context = outcome;
    struct bw_error *error = bw_walk(fs, &options, &outcome->summary);
    outcome->code = error ? error->code : 0;
    if (outcome->stopped && outcome->code != BW_ERROR_STOPPED)
        fuzz_fail("a walk that was stopped does not say so");
    if (!error && outcome->summary.files != outcome->paths)
        fuzz_fail("%llu paths, but %llu files", (unsigned long long)outcome->paths,
                  (unsigned long long)outcome->summary.files);
    bw_error_free(error);
}

static void compare(const struct outcome *a, const struct outcome *b, const char *what)
{
    if (a->stopped || b->stopped)
        return;
    if (a->code != b->code || a->length != b->length || a->sum != b->sum)
        fuzz_fail("%s: error %d and %d, %zu and %zu bytes", what, a->code, b->code, a->length,
                  b->length);
    if (memcmp(&a->summary, &b->summary, sizeof a->summary) != 0)
        fuzz_fail("%s: another summary", what);
}

/* Totals and the map of devices: there is an answer for each address, whatever the chunks are. */
static void look_at_space(struct bw_fs *fs)
{
    enum { ENOUGH = 64 };
    struct bw_usage *usage;
    struct bw_device_map *map;
    struct bw_device_place place;
    if (bw_fs_usage(fs, &usage) || bw_device_map_open(fs, &map))
        fuzz_fail("the space cannot be added up");
    bw_usage_free(usage);
    for (size_t i = 0; i < bw_device_map_count(map) && i < ENOUGH; i++) {
        const struct bw_device_range *range = bw_device_map_range(map, i);
        uint64_t offset = range->offset + range->length / 2;
        if (bw_device_map_find(map, range->devid, offset, UINT64_MAX, &place) || !place.length)
            fuzz_fail("there is no answer for a place of a device");
    }
    bw_device_map_close(map);
}

/* Lists and statistics of all trees. */

static void list(struct bw_fs *fs)
{
    static const uint64_t trees[] = {BW_TREE_ROOT, BW_TREE_EXTENT, BW_TREE_CHUNK, 5, 256};
    struct bw_tree_stats stats;
    size_t length = 0;
    struct bw_subvolume_infos *infos;
    bw_error_free(bw_subvolume_infos_open(fs, true, &infos));
    for (const struct bw_subvolume_info *info;
         length < OUTPUT_AT_MOST && infos && (info = bw_subvolume_infos_next(infos));) {
        length += info->path_length;
        if (info->path)
            check_path(info->path, info->path_length);
    }
    bw_error_free(bw_subvolume_infos_close(infos));
    struct bw_qgroups *qgroups;
    bw_error_free(bw_qgroups_open(fs, true, &qgroups));
    for (const struct bw_qgroup_info *info; qgroups && (info = bw_qgroups_next(qgroups));)
        if (info->path)
            check_path(info->path, info->path_length);
    bw_error_free(bw_qgroups_close(qgroups));
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        struct bw_error *error = bw_tree_stats_read(fs, trees[i], &stats);
        if (!error && stats.used_bytes > stats.bytes)
            fuzz_fail("tree %d holds more than it has room for", (int)trees[i]);
        bw_error_free(error);
    }
}

static bool open_and_walk(const struct bw_fs_options *open_options,
                          const struct bw_walk_options *options, bool twice,
                          struct outcome *outcome)
{
    size_t counts[BW_DAMAGE + 1] = {0};
    struct bw_fs_options with_reporter = *open_options;
    struct bw_fs *fs = NULL;
    with_reporter.reporter = (struct bw_reporter){take_report, counts};
    struct bw_error *error = bw_fs_open(&with_reporter, &fs);
    if (error) {
        bw_error_free(error);
        return false;
    }
    walk(fs, options, outcome);
    if (twice) {
        struct outcome again;
        walk(fs, options, &again);
        compare(outcome, &again, "walking again");
        list(fs);
    }
    look_at_space(fs);
    if (bw_fs_status(fs).damages != counts[BW_DAMAGE])
        fuzz_fail("the damages are miscounted");
    bw_fs_close(fs);
    return true;
}

static int next_descriptor(void)
{
    int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(descriptor);
    return descriptor;
}

static void walk_edited(const struct base_image *base, const uint8_t head[HEAD])
{
    const char *paths[IW_MAX_DEVICES];
    struct bw_fs_options open_options = {.struct_size = sizeof(struct bw_fs_options),
                                         .paths = paths,
                                         .superblock_copy = BW_ANY_SUPERBLOCK_COPY};
    struct bw_walk_options options = {.threads = 1};
    struct outcome first, second;
    open_options.path_count = iw_paths_of(base->image, paths);
    if (head[1] & OPTION_MISSING && open_options.path_count > 1) {
        unsigned missing = head[2] % (unsigned)open_options.path_count;
        paths[missing] = paths[--open_options.path_count];
    }
    options.no_snapshots = head[1] & OPTION_NO_SNAPSHOTS;
    if (head[1] & OPTION_ESCAPE)
        options.rows = escaped_paths();
    if (head[1] & OPTION_ALL_TYPES) {
        static const char *const starts[] = {NULL, "/", "/directory", "high/moved"};
        options.types = BW_WALK_ALL;
        options.order = head[2] >> 2 & 3;
        options.start = starts[head[2] >> 4 & 3];
        options.has_maxdepth = head[2] >> 6;
        options.maxdepth = head[2] >> 6;
    }
    if (head[1] & OPTION_SUBVOLUME)
        options.subvolume =
            subvolume_names[head[3] % (sizeof subvolume_names / sizeof *subvolume_names)];
    int descriptor = next_descriptor();
    bool opened = open_and_walk(&open_options, &options, head[1] & OPTION_TWICE, &first);
    if (opened && head[1] & OPTION_THREADS) {
        options.threads = 2;
        if (!open_and_walk(&open_options, &options, false, &second))
            fuzz_fail("opening again fails");
        compare(&first, &second, "with two threads");
    }
    if (next_descriptor() != descriptor)
        fuzz_fail("a file is left open");
}

void fuzz_image(const uint8_t *data, size_t size)
{
    if (size < HEAD)
        return;
    struct base_image *base = base_image(data[0]);
    size_t count = (size - HEAD) / sizeof(struct edit);
    edits_apply(base, (const struct edit *)(data + HEAD),
                count < EDITS_AT_MOST ? count : EDITS_AT_MOST, data[1] & OPTION_REPAIR);
    uint64_t sum = base_sum(base);
    walk_edited(base, data);
    if (base_sum(base) != sum)
        fuzz_fail("the image was written to");
    base_restore(base);
}

void fuzz_image_cleanup(void)
{
    base_images_free();
}
