/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Batches as structures of the Arrow C data interface. The buffers of the columns move into them.
 * Each column owns its memory, because a consumer may keep one of them and release the batch.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "btrfs-walk/arrow.h"
#include "record/arrow_batch.h"

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

/* The schema. */

struct schema_memory {
    struct ArrowSchema words;  /* of a column */
    struct bw_buffer metadata; /* of a batch */
    struct ArrowSchema **pointers;
    struct ArrowSchema *columns;
    char name[];
};

static void release_schema(struct ArrowSchema *schema)
{
    struct schema_memory *memory = schema->private_data;
    for (int64_t i = 0; i < schema->n_children; i++)
        if (schema->children[i]->release)
            schema->children[i]->release(schema->children[i]);
    if (memory) {
        bw_buffer_free(&memory->metadata);
        free(memory->pointers);
        free(memory->columns);
    }
    free(memory);
    schema->release = NULL;
}

/* The words of a column live in its memory. */
static void release_nothing(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static bool begin_schema(struct ArrowSchema *schema, const char *format, const char *name,
                         const char *suffix)
{
    const size_t length = strlen(name) + strlen(suffix) + 1;
    struct schema_memory *memory = calloc(1, sizeof *memory + length);
    if (memory)
        stpcpy(stpcpy(memory->name, name), suffix);
    *schema = (struct ArrowSchema){.format = format,
                                   .name = memory ? memory->name : "",
                                   .release = release_schema,
                                   .private_data = memory};
    return memory;
}

static bool describe_column(struct ArrowSchema *schema, const struct bw_arrow_field *field)
{
    static const char *const formats[] = {
        [BW_ARROW_UNSIGNED] = "L", [BW_ARROW_SIGNED] = "l", [BW_ARROW_TIME] = "tsn:UTC",
        [BW_ARROW_TRUTH] = "b",    [BW_ARROW_TEXT] = "u",   [BW_ARROW_BYTES] = "z",
        [BW_ARROW_WORD] = "i"};
    if (!begin_schema(schema, formats[field->kind], field->member->name, field->suffix))
        return false;
    schema->flags = ARROW_FLAG_NULLABLE;
    if (field->kind != BW_ARROW_WORD)
        return true;
    schema->dictionary = &((struct schema_memory *)schema->private_data)->words;
    *schema->dictionary =
        (struct ArrowSchema){.format = "u", .name = "", .release = release_nothing};
    return true;
}

static void append_text(struct bw_buffer *metadata, const char *text)
{
    const int32_t length = (int32_t)strlen(text);
    bw_buffer_append(metadata, &length, sizeof length);
    bw_buffer_append(metadata, text, (size_t)length);
}

static bool describe_batch(struct ArrowSchema *schema, const struct bw_arrow_batch *batch)
{
    const int32_t pairs = 2;
    if (!begin_schema(schema, "+s", "", ""))
        return false;
    struct schema_memory *memory = schema->private_data;
    bw_buffer_append(&memory->metadata, &pairs, sizeof pairs);
    append_text(&memory->metadata, "btrfs-walk.version");
    append_text(&memory->metadata, BW_VERSION);
    append_text(&memory->metadata, "btrfs-walk.record");
    append_text(&memory->metadata, batch->rows->record->name);
    schema->metadata = memory->metadata.data;
    memory->pointers = calloc(batch->field_count + 1, sizeof(struct ArrowSchema *));
    memory->columns = calloc(batch->field_count + 1, sizeof(struct ArrowSchema));
    if (memory->metadata.failed || !memory->pointers || !memory->columns)
        return false;
    schema->children = memory->pointers;
    for (unsigned i = 0; i < batch->field_count; i++) {
        schema->children[schema->n_children++] = &memory->columns[i];
        if (!describe_column(&memory->columns[i], &batch->fields[i]))
            return false;
    }
    return true;
}

struct bw_error *bw_arrow_pass_schema(struct bw_rows_stream *stream)
{
    struct ArrowSchema schema = {0};
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "Arrow structures on a machine whose byte order is big-endian");
    struct bw_error *error =
        describe_batch(&schema, stream->batch)
            ? stream->consume(stream->context, (const char *)&schema, sizeof schema)
            : bw_error_no_memory();
    if (schema.release)
        schema.release(&schema);
    return error;
}

/* Arrays. */

struct array_memory {
    struct bw_buffer own[3];
    const void *buffers[3];
    struct ArrowArray words; /* of a column */
    struct ArrowArray **pointers;
    struct ArrowArray *columns; /* of a batch */
};

static void release_array(struct ArrowArray *array)
{
    struct array_memory *memory = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release)
            array->children[i]->release(array->children[i]);
    if (array->dictionary && array->dictionary->release)
        array->dictionary->release(array->dictionary);
    for (unsigned i = 0; memory && i < 3; i++)
        bw_buffer_free(&memory->own[i]);
    if (memory) {
        free(memory->pointers);
        free(memory->columns);
    }
    free(memory);
    array->release = NULL;
}

static struct array_memory *begin_array(struct ArrowArray *array, uint64_t length, uint64_t nulls)
{
    struct array_memory *memory = calloc(1, sizeof *memory);
    *array = (struct ArrowArray){.length = (int64_t)length,
                                 .null_count = (int64_t)nulls,
                                 .n_buffers = 1,
                                 .buffers = memory ? memory->buffers : NULL,
                                 .release = release_array,
                                 .private_data = memory};
    return memory;
}

/* Moves a buffer into an array. Some readers refuse a buffer without an address, even an empty
 * one. */
static bool add_buffer(struct ArrowArray *array, struct bw_buffer *buffer)
{
    struct array_memory *memory = array->private_data;
    if (!bw_buffer_reserve(buffer, 1))
        return false;
    memory->own[array->n_buffers] = *buffer;
    memory->buffers[array->n_buffers++] = buffer->data;
    *buffer = (struct bw_buffer){0};
    return true;
}

static bool copy_buffer(struct ArrowArray *array, const struct bw_buffer *buffer)
{
    struct bw_buffer copy = {0};
    bw_buffer_append(&copy, buffer->data, buffer->length);
    const bool added = !copy.failed && add_buffer(array, &copy);
    bw_buffer_free(&copy);
    return added;
}

/* The words are copied: the next batch begins with them. */
static bool make_words(struct ArrowArray *array, const struct bw_arrow_words *words)
{
    struct array_memory *memory = array->private_data;
    array->dictionary = &memory->words;
    return begin_array(array->dictionary, words->count, 0) &&
           copy_buffer(array->dictionary, &words->ends) &&
           copy_buffer(array->dictionary, &words->data);
}

static bool make_column(struct ArrowArray *array, struct bw_arrow_field *field)
{
    struct array_memory *memory = begin_array(array, field->count, field->nulls);
    if (!memory)
        return false;
    if (field->nulls) {
        memory->own[0] = field->valid;
        memory->buffers[0] = field->valid.data;
        field->valid = (struct bw_buffer){0};
    }
    return (!bw_arrow_has_ends(field) || add_buffer(array, &field->ends)) &&
           add_buffer(array, &field->data) &&
           (field->kind != BW_ARROW_WORD || make_words(array, &field->words));
}

static bool make_batch(struct ArrowArray *array, struct bw_arrow_batch *batch)
{
    struct array_memory *memory = begin_array(array, batch->count, 0);
    if (!memory)
        return false;
    memory->pointers = calloc(batch->field_count + 1, sizeof(struct ArrowArray *));
    memory->columns = calloc(batch->field_count + 1, sizeof(struct ArrowArray));
    if (!memory->pointers || !memory->columns)
        return false;
    array->children = memory->pointers;
    for (unsigned i = 0; i < batch->field_count; i++) {
        array->children[array->n_children++] = &memory->columns[i];
        if (!make_column(&memory->columns[i], &batch->fields[i]))
            return false;
    }
    return true;
}

struct bw_error *bw_arrow_pass_batch(struct bw_rows_stream *stream)
{
    struct ArrowArray array = {0};
    struct bw_error *error =
        make_batch(&array, stream->batch)
            ? stream->consume(stream->context, (const char *)&array, sizeof array)
            : bw_error_no_memory();
    if (array.release)
        array.release(&array);
    return error;
}
