/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Readers of files, in a list of those that are free. */
#include "mount/readers.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void bw_readers_init(struct bw_readers *readers, struct bw_fs *fs)
{
    *readers = (struct bw_readers){.fs = fs};
    pthread_mutex_init(&readers->lock, NULL);
}

static void free_reader(struct bw_reader *reader)
{
    bw_data_reader_destroy(reader->data);
    bw_extent_reader_destroy(reader->extents);
    bw_buffer_free(&reader->bytes);
    free(reader);
}

void bw_readers_free(struct bw_readers *readers)
{
    while (readers->first) {
        struct bw_reader *reader = readers->first;
        readers->first = reader->next;
        free_reader(reader);
    }
    pthread_mutex_destroy(&readers->lock);
}

static struct bw_error *make_reader(struct bw_fs *fs, struct bw_reader **result)
{
    struct bw_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return bw_error_no_memory();
    struct bw_error *error = bw_data_reader_create(fs, &reader->data);
    if (!error)
        error = bw_extent_reader_create(fs, &reader->extents);
    if (error)
        free_reader(reader);
    else
        *result = reader;
    return error;
}

struct bw_error *bw_readers_take(struct bw_readers *readers, struct bw_reader **reader)
{
    pthread_mutex_lock(&readers->lock);
    *reader = readers->first;
    if (*reader)
        readers->first = (*reader)->next;
    pthread_mutex_unlock(&readers->lock);
    return *reader ? NULL : make_reader(readers->fs, reader);
}

void bw_readers_give(struct bw_readers *readers, struct bw_reader *reader)
{
    pthread_mutex_lock(&readers->lock);
    reader->next = readers->first;
    readers->first = reader;
    pthread_mutex_unlock(&readers->lock);
}

/* Where a range goes to. */
struct target {
    uint8_t *bytes;
    uint64_t offset; /* of the first one in the file */
};

static struct bw_error *take_part(void *context, const struct bw_data_part *part)
{
    const struct target *target = context;
    uint8_t *to = target->bytes + (part->offset - target->offset);
    if (part->kind == BW_DATA_BAD)
        return bw_error_copy(part->error);
    if (part->kind == BW_DATA_HOLE)
        memset(to, 0, (size_t)part->length);
    else
        memcpy(to, part->bytes, (size_t)part->length);
    return NULL;
}

struct bw_error *bw_reader_read(struct bw_reader *reader, const struct bw_data_file *file,
                                uint64_t offset, size_t length, uint8_t *bytes)
{
    struct target target = {bytes, offset};
    return bw_data_read(reader->data, file, offset, length, take_part, &target);
}
