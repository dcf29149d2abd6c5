/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The paths of all subvolumes at once. A path is a chain of parts up to the top-level subvolume;
 * each part is the name of a subvolume or a directory. Subvolumes are processed parent by parent,
 * so one map from inodes to parts is enough to find the directories that have parts already.
 */
#include "fs/subvolume_paths.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/hash_table.h"
#include "fs/fs.h"
#include "fs/lookup.h"

enum {
    /* Four times the kernel's limit. Without a limit, a crafted chain of n subvolumes would have
     * paths of n² bytes in total. */
    LONGEST_PATH = 16 << 10,
};

/* The parent of a part without one. */
#define NO_PART UINT32_MAX

void bw_subvolume_paths_free(struct bw_subvolume_paths *paths)
{
    bw_path_parts_free(&paths->parts);
    bw_buffer_free(&paths->names);
    *paths = (struct bw_subvolume_paths){0};
}

static struct bw_error *add_part(struct bw_subvolume_paths *paths, const char *name,
                                 uint16_t length)
{
    const struct bw_path_part part = {
        .name = paths->names.length, .name_length = length, .above = NO_PART};
    bw_buffer_append(&paths->names, name, length);
    if (paths->names.failed || paths->parts.count == NO_PART)
        return bw_error_no_memory();
    return bw_path_parts_push(&paths->parts, part);
}

static int by_parent(const void *a, const void *b)
{
    const struct bw_subvolume *left = *(const struct bw_subvolume *const *)a;
    const struct bw_subvolume *right = *(const struct bw_subvolume *const *)b;
    return BW_COMPARE_ALL(((uint64_t[]){left->parent, left->tree.id}),
                          ((uint64_t[]){right->parent, right->tree.id}));
}

struct bw_error *bw_subvolume_paths_load(struct bw_subvolume_paths *paths, struct bw_fs *fs)
{
    const struct bw_subvolume_table *table = &fs->subvolumes;
    for (size_t i = 0; i < table->count; i++)
        BW_TRY(add_part(paths, bw_subvolume_name(table, &table->items[i]),
                        table->items[i].name_length));
    BW_AUTO_FREE const struct bw_subvolume **sorted = calloc(table->count + 1, sizeof *sorted);
    if (!sorted)
        return bw_error_no_memory();
    for (size_t i = 0; i < table->count; i++)
        sorted[i] = &table->items[i];
    qsort(sorted, table->count, sizeof *sorted, by_parent);

    const struct bw_subvolume *parent = NULL;          /* NULL: it is lost */
    BW_SCOPED(bw_key_map) struct bw_key_map map = {0}; /* parts of its directories, by inode */
    for (size_t i = 0; i < table->count; i++) {
        if (!i || sorted[i]->parent != sorted[i - 1]->parent) {
            parent = bw_subvolume_by_id(fs, sorted[i]->parent);
            bw_key_map_clear(&map);
        }
        if (!parent || sorted[i]->tree.id == BW_TOP_SUBVOLUME)
            continue;

        /* Up to a directory that has a part, or to the top of the parent subvolume. */
        uint32_t below = (uint32_t)(sorted[i] - table->items);
        uint64_t inode = sorted[i]->directory; /* 0: it is lost */
        while (inode && inode != BW_SUBVOLUME_ROOT_INODE) {
            const uint32_t known = bw_key_map_get(&map, inode, UINT32_MAX);
            const uint32_t part = known == UINT32_MAX ? (uint32_t)paths->parts.count : known;
            paths->parts.items[below].above = part;
            if (part == known)
                break;
            struct bw_parent_step step = {0};
            struct bw_error *error = bw_inode_step_up(fs, &parent->tree, inode, &step);
            BW_TRY(bw_fs_report_damage(fs, error));
            BW_TRY(bw_key_map_put(&map, inode, part));
            BW_TRY(add_part(paths, step.name, step.name_length));
            inode = step.parent;
            below = part;
        }
        if (inode == BW_SUBVOLUME_ROOT_INODE)
            paths->parts.items[below].above = (uint32_t)(parent - table->items);
    }
    return NULL;
}

/* Computes the length of the paths of a part and its parents: up to a part whose length is known,
 * then down again. A part that occurs again on the way up is part of a cycle. */
static void measure_paths(struct bw_subvolume_paths *paths, uint32_t bottom, uint32_t top)
{
    uint64_t length = 0;
    uint32_t at = bottom;
    paths->parts.items[top].state = BW_PART_MEASURED;
    paths->parts.items[top].length = 0;
    for (size_t steps = 0; at != NO_PART && paths->parts.items[at].state == BW_PART_UNMEASURED;
         steps++) {
        length += paths->parts.items[at].name_length + 1u;
        at = steps > paths->parts.count ? NO_PART : paths->parts.items[at].above;
    }
    const enum bw_part_state end =
        at == NO_PART ? BW_PART_WITHOUT_PATH : paths->parts.items[at].state;
    length += end == BW_PART_MEASURED ? paths->parts.items[at].length : 0;
    for (at = bottom; at != NO_PART && paths->parts.items[at].state == BW_PART_UNMEASURED;) {
        struct bw_path_part *part = &paths->parts.items[at];
        part->state = end;
        if (end == BW_PART_MEASURED && length > LONGEST_PATH)
            part->state = BW_PART_TOO_LONG;
        part->length = part->state == BW_PART_MEASURED ? (uint32_t)length : 0;
        length -= part->name_length + 1u;
        at = part->above;
    }
}

struct bw_error *bw_subvolume_paths_get(struct bw_subvolume_paths *paths, struct bw_fs *fs,
                                        const struct bw_subvolume *subvolume,
                                        struct bw_buffer *path)
{
    const struct bw_subvolume_table *table = &fs->subvolumes;
    const struct bw_subvolume *top = bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME);
    uint32_t number = (uint32_t)(subvolume - table->items);
    const struct bw_path_part *part = &paths->parts.items[number];
    path->length = 0;
    if (subvolume->deleted)
        return NULL;
    if (top)
        measure_paths(paths, number, (uint32_t)(top - table->items));
    if (part->state == BW_PART_TOO_LONG) {
        bw_fs_report_text(fs, BW_DAMAGE, BW_ERROR_UNSUPPORTED,
                          "subvolume %" PRIu64 ": its path is longer than %d KiB",
                          subvolume->tree.id, LONGEST_PATH >> 10);
        return NULL;
    }
    if (part->state != BW_PART_MEASURED) {
        bw_fs_report_text(fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                          "subvolume %" PRIu64
                          " has no path: it contains itself, or its parent is lost",
                          subvolume->tree.id);
        return NULL;
    }
    if (!bw_buffer_reserve(path, part->length + 1))
        return bw_error_no_memory();
    path->length = part->length ? part->length : 1;
    path->data[0] = '/';
    /* from the end of the path to its beginning */
    while (part->length) {
        char *name = path->data + part->length - part->name_length;
        memcpy(name, paths->names.data + part->name, part->name_length);
        name[-1] = '/';
        part = &paths->parts.items[part->above];
    }
    return NULL;
}
