/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * C for the binding of Python: batches of items, and streams of Arrow.
 */
#include "btrfs-walk/btrfs-walk.h"
#include <stdlib.h>
#include <string.h>

/* Items: one call for many of them, with copies of their data, because the library reuses the
 * memory of an item with the next one. */

struct python_item {
    struct bw_item item;
    struct bw_item_location location;
};

enum { LARGEST_ITEM = 1 << 16 };

/* Copies up to `*count` items; `*count` becomes their number, and is 0 after the last item. Returns
 * the error that follows these items. */
static struct bw_error *python_items_next(struct bw_items *items, struct python_item *batch,
                                          size_t *count, uint8_t *data, size_t size)
{
    const size_t limit = *count;
    const struct bw_item *item = NULL;
    for (*count = 0; *count < limit && size >= LARGEST_ITEM; (*count)++) {
        struct python_item *copy = &batch[*count];
        struct bw_error *error = bw_items_next(items, &item, &copy->location);
        if (error || !item)
            return error;
        if (item->size > LARGEST_ITEM)
            return bw_error_create(BW_ERROR_CORRUPT, "an item of %u bytes", item->size);
        copy->item = *item;
        copy->item.data = memcpy(data, item->data, item->size);
        data += item->size;
        size -= item->size;
    }
    return NULL;
}

/* The Arrow C stream interface: Python has the stream, from which C reads. */

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *stream, struct ArrowSchema *schema);
    int (*get_next)(struct ArrowArrayStream *stream, struct ArrowArray *array);
    const char *(*get_last_error)(struct ArrowArrayStream *stream);
    void (*release)(struct ArrowArrayStream *stream);
    void *private_data;
};

struct arrow_memory {
    void *handle; /* of the object of Python */
    char message[256];
};

/* Functions of Python. */
static int arrow_schema(void *handle, struct ArrowSchema *schema, char *message, size_t size);
static int arrow_next(void *handle, struct ArrowArray *array, char *message, size_t size);
static void arrow_release(void *handle);

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *schema)
{
    struct arrow_memory *memory = stream->private_data;
    return arrow_schema(memory->handle, schema, memory->message, sizeof memory->message);
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *array)
{
    struct arrow_memory *memory = stream->private_data;
    return arrow_next(memory->handle, array, memory->message, sizeof memory->message);
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    struct arrow_memory *memory = stream->private_data;
    return *memory->message ? memory->message : NULL;
}

static void release_stream(struct ArrowArrayStream *stream)
{
    struct arrow_memory *memory = stream->private_data;
    arrow_release(memory->handle);
    free(memory);
    stream->release = NULL;
}

/* A stream for a capsule; NULL if memory ran out. */
static struct ArrowArrayStream *arrow_stream_create(void *handle)
{
    struct ArrowArrayStream *stream = calloc(1, sizeof *stream);
    struct arrow_memory *memory = calloc(1, sizeof *memory);
    if (!stream || !memory) {
        free(stream);
        free(memory);
        return NULL;
    }
    memory->handle = handle;
    *stream =
        (struct ArrowArrayStream){get_schema, get_next, get_last_error, release_stream, memory};
    return stream;
}

/* A consumer that has moved the stream has set `release` to NULL. */
static void destroy_capsule(PyObject *capsule)
{
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream && stream->release)
        stream->release(stream);
    free(stream);
}

/* The destructor of capsules, as a number. */
static uintptr_t arrow_destructor(void)
{
    return (uintptr_t)destroy_capsule;
}
