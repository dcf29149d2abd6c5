/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of a split image: their names, whether there are any, and the layers that join them. */
#include "fs/split.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ondisk/superblock.h"
#include "fs/image.h"
#include "xlators/layout/partition_table.h"

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What tells the parts of an image apart, if a path is that of the first: ".001", ".00", ".aa". Its
 * length stays the same. */
static const char *first_suffix(const char *path)
{
    const char *dot = strrchr(file_name(path), '.');
    size_t length = dot ? strlen(dot + 1) : 0;
    if (length < 2 || length > 8)
        return NULL;
    bool letters = strspn(dot + 1, "a") == length;
    bool digits = strspn(dot + 1, "0") >= length - 1 && strchr("01", dot[length]);
    return letters || digits ? dot + 1 : NULL;
}

/* Makes it the suffix of the next part; false after the last that there can be. */
static bool count_up(char *suffix)
{
    for (char *at = suffix + strlen(suffix); at-- > suffix;) {
        bool is_last = *at == '9' || *at == 'z';
        *at = *at == '9' ? '0' : *at == 'z' ? 'a' : (char)(*at + 1);
        if (!is_last)
            return true;
    }
    return false;
}

/* Not access(2), which the sandbox of the program refuses. */
static bool exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}

/* Goes on to the next part, if there is a file of its name; otherwise that is the name that there
 * should be. */
static bool next_part(char *path, size_t suffix)
{
    return count_up(path + suffix) && exists(path);
}

struct bw_error *bw_split_inputs(const char *path, struct bw_file_set *inputs)
{
    const char *suffix = first_suffix(path);
    BW_AUTO_FREE char *part = suffix ? strdup(path) : NULL;
    bool added = !suffix || part;
    while (added && part && next_part(part, (size_t)(suffix - path)))
        added = bw_file_set_add(inputs, part);
    return added ? NULL : bw_error_no_memory();
}

/* There must be no part after the first one that is missing, as far as it is worth looking for one;
 * and none is missing after the last one that there can be, where counting has begun anew. */
static struct bw_error *check_end(const char *missing, size_t suffix)
{
    enum { LARGEST_GAP = 1000 };
    BW_AUTO_FREE char *part = strdup(missing);
    if (!part)
        return bw_error_no_memory();
    bool is_last = !missing[suffix + strspn(missing + suffix, missing[suffix] == 'a' ? "a" : "0")];
    for (unsigned i = 0; !is_last && i < LARGEST_GAP && count_up(part + suffix); i++)
        if (exists(part))
            return bw_error_create(BW_ERROR_USAGE, "%s is missing: the image goes on in %s",
                                   missing, part);
    return NULL;
}

/* Whether all partitions are complete. */
static bool has_whole_partitions(struct bw_xlator *storage)
{
    struct bw_partition_table table;
    BW_AUTO_ERROR struct bw_error *none = bw_partition_table_read(NULL, storage, &table);
    bool whole = !none;
    for (size_t i = 0; i < table.count; i++)
        whole &= table.partitions[i].room == table.partitions[i].length;
    bw_partition_table_free(&table);
    return whole;
}

/* A device whose superblock or partition table has all the bytes it speaks of is whole. */
static bool is_whole(struct bw_xlator *storage)
{
    uint8_t bytes[BW_SUPERBLOCK_SIZE];
    struct bw_superblock superblock;
    struct bw_request request = {.kind = BW_REQUEST_SUPER,
                                 .length = sizeof bytes,
                                 .address = bw_superblock_offset(0),
                                 .buffer = bytes};
    bw_wind(NULL, storage, &request, 1);
    BW_AUTO_ERROR struct bw_error *error =
        request.error ? request.error
                      : bw_superblock_decode(bytes, bw_superblock_offset(0), &superblock);
    return error ? has_whole_partitions(storage)
                 : superblock.device.total_bytes <= bw_xlator_size(storage);
}

/* Parts that were given besides the first one are no devices. What is joined stays, even if a part
 * is a link to its first one. */
static void take_from_map(struct bw_xlator *map, const char *part)
{
    struct stat wanted, given;
    if (stat(part, &wanted))
        return;
    for (size_t i = bw_xlator_child_count(map); i-- > 0;) {
        struct bw_xlator *image = bw_xlator_child(map, i);
        BW_AUTO_FREE char *path = bw_image_path(image);
        bool is_joined = strcmp(bw_xlator_type(image), "layout/concat") == 0;
        if (!is_joined && path && stat(path, &given) == 0 && given.st_dev == wanted.st_dev &&
            given.st_ino == wanted.st_ino)
            bw_layer_remove_child(map, i);
    }
}

static struct bw_error *add_part(struct bw_graph *graph, const struct bw_xlator *storage,
                                 struct bw_xlator *concat, size_t number, const char *path)
{
    const struct bw_text_place nowhere = {NULL, 0, 0};
    struct bw_xlator *layer;
    BW_AUTO_FREE char *name = NULL;
    if (asprintf(&name, "%s-part-%zu", bw_xlator_name(storage), number) < 0)
        return bw_error_no_memory();
    BW_TRY(bw_graph_add(graph, bw_graph_index(concat), name, nowhere, &layer));
    BW_TRY(bw_layer_set_type(layer, bw_xlator_type(storage), nowhere));
    BW_TRY(bw_layer_set_option(layer, "path", nowhere, path, nowhere));
    BW_TRY(bw_graph_check_layer(layer));
    return bw_layer_add_child(concat, name, nowhere);
}

/* `part` is the second one, and `suffix` where its number is. */
static struct bw_error *join(struct bw_fs *fs, struct bw_xlator *map, struct bw_xlator *storage,
                             char *part, size_t suffix)
{
    const struct bw_text_place nowhere = {NULL, 0, 0};
    struct bw_xlator *concat;
    size_t count = 1;
    BW_TRY(bw_graph_insert_above(fs->graph, bw_graph_index(storage), "layout/concat", nowhere,
                                 &concat));
    do {
        BW_TRY(add_part(fs->graph, storage, concat, ++count, part));
    } while (next_part(part, suffix));
    BW_TRY(check_end(part, suffix));
    BW_TRY(bw_graph_check_layer(concat));
    for (size_t i = 1; i < count; i++)
        take_from_map(map, bw_graph_path(bw_xlator_child(concat, i)));
    bw_fs_report(fs, BW_NOTE,
                 bw_error_create(BW_ERROR_USAGE, "%s is joined with the parts after it: %zu files",
                                 bw_graph_path(storage), count));
    return NULL;
}

static struct bw_error *join_if_split(struct bw_fs *fs, struct bw_xlator *map,
                                      struct bw_xlator *storage)
{
    bool is_file = strcmp(bw_xlator_type(storage), "storage/file") == 0;
    const char *path = bw_graph_path(storage), *suffix = is_file ? first_suffix(path) : NULL;
    BW_AUTO_FREE char *part = suffix ? strdup(path) : NULL;
    if (!suffix)
        return NULL;
    if (!part)
        return bw_error_no_memory();
    bool has_parts = next_part(part, (size_t)(suffix - path));
    BW_TRY(bw_graph_start(fs->graph, storage->user));
    if (is_whole(storage))
        return NULL;
    return has_parts ? join(fs, map, storage, part, (size_t)(suffix - path))
                     : check_end(part, (size_t)(suffix - path));
}

struct bw_error *bw_splits_join(struct bw_fs *fs, struct bw_xlator *map)
{
    for (size_t i = 0; i < fs->graph->size; i++) {
        struct bw_xlator *layer = fs->graph->layers[i];
        if (bw_xlator_child_count(layer) == 0)
            BW_TRY(join_if_split(fs, map, layer));
    }
    bw_graph_prune(fs->graph);
    return NULL;
}
