/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory table: records, their names in one run of bytes, and an index by inode. */
#include "walk/directory_table.h"

#include "base/array.h"

void bw_directories_free(struct bw_directory_table *table)
{
    free(table->items);
    bw_buffer_free(&table->names);
    bw_map_free(&table->by_inode);
    *table = (struct bw_directory_table){0};
}

struct bw_error *bw_directories_reset(struct bw_directory_table *table, uint64_t top)
{
    uint32_t index;
    table->count = 0;
    table->names.length = 0;
    table->names.failed = false;
    bw_map_clear(&table->by_inode);
    return bw_directories_add(table, top, 0, "", 0, 1, &index);
}

struct bw_error *bw_directories_add(struct bw_directory_table *table, uint64_t inode,
                                    uint32_t parent, const void *name, size_t name_length,
                                    uint32_t wave, uint32_t *index)
{
    size_t offset = table->names.length;
    *index = (uint32_t)table->count;
    if (!BW_ARRAY_RESERVE(table->items, table->count, table->capacity))
        return bw_error_no_memory();
    bw_buffer_append(&table->names, name, name_length);
    if (*index == BW_NO_DIRECTORY || offset > UINT32_MAX || table->names.failed ||
        !bw_map_put(&table->by_inode, inode, *index))
        return bw_error_no_memory();
    table->items[table->count++] =
        (struct bw_directory){inode, parent, (uint32_t)offset, (uint16_t)name_length,
                              (uint16_t)(wave < BW_LAST_WAVE ? wave : BW_LAST_WAVE)};
    return NULL;
}

uint32_t bw_directories_find(const struct bw_directory_table *table, uint64_t inode)
{
    return bw_map_get(&table->by_inode, inode);
}

bool bw_directories_is(const struct bw_directory_table *table, uint32_t index, uint32_t parent,
                       const void *name, size_t name_length)
{
    const struct bw_directory *directory = &table->items[index];
    return directory->parent == parent && directory->name_length == name_length &&
           memcmp(table->names.data + directory->name_offset, name, name_length) == 0;
}

void bw_directories_path(const struct bw_directory_table *table, uint32_t index,
                         struct bw_buffer *path)
{
    size_t length = 0;
    for (uint32_t at = index; at; at = table->items[at].parent)
        length += table->items[at].name_length + 1u;
    if (!bw_buffer_reserve(path, length))
        return;
    path->length += length;
    char *end = path->data + path->length;
    for (uint32_t at = index; at; at = table->items[at].parent) {
        const struct bw_directory *directory = &table->items[at];
        *--end = '/';
        end -= directory->name_length;
        memcpy(end, table->names.data + directory->name_offset, directory->name_length);
    }
}
