/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Streams of items: of the trees, the one whose next key is the least goes first. There is more
 * than one only with the extent-tree-v2 feature, and then one for each processor. */
#include "owners/item_stream.h"

#include <stdlib.h>

#include "base/cleanup.h"

struct bw_stream_part {
    struct bw_item_range range;
    bool ended, after_loss;
};

/* Moves a tree on to its next item. */
static void step(struct bw_item_stream *stream, struct bw_stream_part *part)
{
    part->after_loss = false;
    while ((part->ended = !bw_item_range_next(&part->range)) == false && part->range.error)
        part->after_loss = stream->lost = true; /* `trees` reports it */
}

static void choose(struct bw_item_stream *stream)
{
    stream->ended = true;
    stream->after_loss = false;
    for (size_t i = 0; i < stream->count; i++) {
        const struct bw_stream_part *part = &stream->parts[i];
        if (stream->ended)
            stream->after_loss |= part->after_loss;
        if (part->ended ||
            (!stream->ended && bw_key_compare(&part->range.item.key, &stream->item.key) >= 0))
            continue;
        stream->ended = false;
        stream->present = i;
        stream->item = part->range.item;
        stream->after_loss = part->after_loss;
    }
}

struct bw_error *bw_item_stream_begin(struct bw_item_stream *stream, struct bw_fs *fs,
                                      const struct bw_tree_list *list, uint64_t id)
{
    const struct bw_key last = BW_KEY_MAX;
    struct bw_tree_reader reader = fs->reader;
    reader.adopter = NULL; /* what is lost is not to be replaced */
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        count += list->entries[i].tree.id == id;
    *stream = (struct bw_item_stream){.tree = id, .ended = true};
    stream->parts = calloc(count + 1, sizeof *stream->parts);
    if (!stream->parts)
        return bw_error_no_memory();
    for (size_t i = 0; i < list->count; i++)
        if (list->entries[i].tree.id == id)
            bw_item_range_begin(&stream->parts[stream->count++].range, &reader,
                                &list->entries[i].tree, (struct bw_key){0}, last);
    for (size_t i = 0; i < count; i++)
        step(stream, &stream->parts[i]);
    choose(stream);
    return NULL;
}

void bw_item_stream_next(struct bw_item_stream *stream)
{
    if (stream->ended)
        return;
    step(stream, &stream->parts[stream->present]);
    choose(stream);
}

struct bw_error *bw_item_stream_end(struct bw_item_stream *stream, struct bw_error *error)
{
    for (size_t i = 0; i < stream->count; i++)
        error = bw_item_range_end(&stream->parts[i].range, error);
    free(stream->parts);
    return error;
}
