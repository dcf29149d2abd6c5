/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inspecting an open file system: its graph as text, the state of its layers, its files, and
 * whether these have changed. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "fs/fs.h"
#include "fs/image.h"

static struct bw_error *deliver_text(struct bw_buffer *text, bw_consumer *consume, void *context)
{
    struct bw_error *error =
        text->failed ? bw_error_no_memory() : consume(context, text->data, text->length);
    bw_buffer_free(text);
    return error;
}

struct bw_error *bw_fs_print_graph(const struct bw_fs *fs, enum bw_graph_format format,
                                   bw_consumer *consume, void *context)
{
    struct bw_buffer text = {0};
    if (format == BW_GRAPH_DOT)
        bw_graph_print_dot(fs->graph, &text);
    else
        bw_graph_print(fs->graph, &text);
    return deliver_text(&text, consume, context);
}

struct bw_error *bw_fs_write_layers(const struct bw_fs *fs, struct bw_rows_stream *stream)
{
    return bw_graph_write_rows(fs->graph, stream);
}

bool bw_fs_is_input(const struct bw_fs *fs, const struct stat *status)
{
    return bw_file_set_holds(&fs->inputs, status);
}

struct bw_error *
bw_fs_files(const struct bw_fs *fs,
            struct bw_error *(*visit)(void *context, const char *path, bool written), void *context)
{
    for (size_t i = 0; i < fs->inputs.files.count; i++) {
        const char *path = bw_file_set_path(&fs->inputs, i);
        if (path)
            BW_TRY(visit(context, path, false));
    }
    for (struct bw_graph_file file = {0}; bw_graph_next_file(fs->graph, BW_OPTION_OUTPUT, &file);)
        BW_TRY(visit(context, file.path, true));
    return NULL;
}

struct bw_error *bw_fs_statedump(const struct bw_fs *fs, bw_consumer *consume, void *context)
{
    const struct bw_fs_status status = bw_fs_status(fs);
    struct bw_buffer text = {0};
    struct bw_json json = bw_json_start(&text, true);
    bw_json_begin_object(&json, NULL);
    bw_json_begin_object(&json, "fs");
    bw_json_number(&json, "generation", fs->superblock.generation);
    bw_json_number(&json, "nodesize", fs->superblock.nodesize);
    bw_json_number(&json, "devices", fs->superblock.device_count);
    bw_json_number(&json, "missing_devices", status.missing_devices);
    bw_json_number(&json, "unused_images", status.unused_images);
    bw_json_number(&json, "damages", status.damages);
    bw_json_bool(&json, "log_tree", status.log_tree);
    bw_json_bool(&json, "log_replayed", status.log_replayed);
    bw_json_end(&json);
    bw_json_begin_array(&json, "graph");
    bw_graph_dump(fs->graph, &json);
    bw_json_end(&json);
    bw_json_end(&json);
    bw_buffer_append_byte(&text, '\n');
    return deliver_text(&text, consume, context);
}

struct bw_error *bw_fs_find_change(const struct bw_fs *fs)
{
    for (size_t i = 0; i < fs->image_count; i++) {
        const struct bw_image *image = &fs->images[i];
        const struct bw_superblock *then = &image->superblock;
        struct bw_superblock now;
        uint64_t offset;
        if (image->bad || !image->storage)
            continue;
        BW_AUTO_ERROR struct bw_error *bad =
            bw_image_read_copy(fs, image, image->copy, &now, &offset);
        if (bad || !bw_same_file_system(&now, then) || now.generation < then->generation)
            continue;
        if (now.generation > then->generation)
            return bw_error_create(BW_ERROR_CORRUPT,
                                   "%s was changed while it was read: it had generation %" PRIu64
                                   ", and has %" PRIu64 " now; read it again",
                                   image->name, then->generation, now.generation);
        if (now.log_root != then->log_root) /* a log is written without a new generation */
            return bw_error_create(
                BW_ERROR_CORRUPT,
                "%s was changed while it was read: its log has changed; read it again",
                image->name);
    }
    return NULL;
}
