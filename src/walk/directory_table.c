/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directory table.
 *
 * A record consists of an inode, a wave, the distance back to the record of the parent, and a name,
 * as varints where that is shorter: some twenty bytes for a directory, of which there may be
 * millions. The number of a directory is the place of its record, and an index leads from inodes to
 * records. Paths are made on request, from the names of a directory and of its parents. A closed
 * directory has no record, only a bit.
 *
 * The directories that a task has found have records of their own until the results are merged.
 * Their numbers have the bit BW_FOUND_LOCAL, so a parent may be in either place.
 */
#include "walk/walk.h"

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "base/short_copy.h"

enum { LONGEST = 4 * BW_VARINT_LONGEST + 1 + UINT8_MAX };

void bw_directories_free(struct bw_directory_table *table)
{
    bw_packed_free(&table->records);
    bw_number_set_free(&table->closed);
    table->count = 0;
}

struct bw_error *bw_directories_reset(struct bw_directory_table *table, uint64_t top)
{
    uint32_t number;
    table->count = 0;
    bw_number_set_free(&table->closed);
    bw_packed_clear(&table->records);
    return bw_directories_add(table, top, 0, "", 0, 1, &number);
}

static uint8_t *put_name(uint8_t *at, const void *name, size_t length)
{
    *at++ = (uint8_t)length;
    bw_copy_short(at, name, length);
    return at + length;
}

static uint32_t hash_of(const struct bw_directory_table *table, uint64_t inode)
{
    return (uint32_t)bw_key_hash(inode, table->records.multiplier);
}

struct bw_error *bw_directories_add(struct bw_directory_table *table, uint64_t inode,
                                    uint32_t parent, const void *name, size_t name_length,
                                    uint32_t wave, uint32_t *number)
{
    struct bw_packed *records = &table->records;
    uint8_t *end;
    if (!bw_packed_has_room(records)) {
        /* A larger index is empty. */
        if (!bw_packed_enlarge(records))
            return bw_error_no_memory();
        for (uint32_t old = bw_packed_first(records, 0); old != BW_NO_DIRECTORY;) {
            const struct bw_walked_directory directory = bw_directories_get(table, old);
            bw_packed_index(records, hash_of(table, directory.inode), old);
            old = bw_directories_next(table, old, &directory);
        }
    }
    *number = bw_packed_begin(records, LONGEST, &end);
    if (*number == BW_NO_RECORD || *number & BW_FOUND_LOCAL)
        return bw_error_no_memory();
    end = bw_varint_put(end, inode);
    end = bw_varint_put(end, wave < BW_LAST_WAVE ? wave : BW_LAST_WAVE);
    end = bw_varint_put(end, *number - parent);
    bw_packed_end(records, put_name(end, name, name_length));
    bw_packed_index(records, hash_of(table, inode), *number);
    table->count++;
    return NULL;
}

struct bw_error *bw_directories_close(struct bw_directory_table *table, uint64_t inode,
                                      bool *is_new)
{
    BW_TRY(bw_number_set_insert(&table->closed, inode, is_new));
    table->count += *is_new;
    return NULL;
}

struct bw_error *bw_directories_reopen(struct bw_directory_table *table, uint64_t inode,
                                       uint32_t parent, const void *name, size_t name_length,
                                       uint32_t *number)
{
    BW_TRY(bw_directories_add(table, inode, parent, name, name_length, 0, number));
    table->count--;
    return NULL;
}

bool bw_directories_is_closed(const struct bw_directory_table *table, uint64_t inode)
{
    return bw_number_set_has(&table->closed, inode);
}

struct bw_walked_directory bw_directories_get(const struct bw_directory_table *table,
                                              uint32_t number)
{
    const uint8_t *begin = bw_packed_at(&table->records, number), *at = begin;
    struct bw_walked_directory directory = {.inode = bw_varint_get(&at)};
    directory.wave = (uint32_t)bw_varint_get(&at);
    directory.parent = number - (uint32_t)bw_varint_get(&at);
    directory.name_length = *at++;
    directory.name = (const char *)at;
    directory.size = (size_t)(at - begin) + directory.name_length;
    return directory;
}

uint32_t bw_directories_next(const struct bw_directory_table *table, uint32_t number,
                             const struct bw_walked_directory *directory)
{
    return bw_packed_next(&table->records, number, directory->size);
}

uint32_t bw_directories_find(const struct bw_directory_table *table, uint64_t inode)
{
    const uint32_t hash = hash_of(table, inode);
    size_t slot = SIZE_MAX;
    uint32_t number;
    while ((number = bw_packed_find(&table->records, hash, &slot)) != BW_NO_DIRECTORY) {
        const uint8_t *at = bw_packed_at(&table->records, number);
        if (bw_varint_get(&at) == inode)
            break;
    }
    return number;
}

bool bw_directories_knows(const struct bw_directory_table *table, uint64_t inode)
{
    return bw_directories_find(table, inode) != BW_NO_DIRECTORY ||
           bw_directories_is_closed(table, inode);
}

bool bw_directories_matches(const struct bw_directory_table *table, uint32_t number,
                            uint32_t parent, const void *name, size_t name_length)
{
    const struct bw_walked_directory directory = bw_directories_get(table, number);
    return directory.parent == parent && directory.name_length == name_length &&
           memcmp(directory.name, name, name_length) == 0;
}

/* Records of a task: the place in the table, once it is known; the inode; the parent's number and
 * whether the directory was walked; the name. */

uint32_t bw_found_directory_add(struct bw_packed *found,
                                const struct bw_walked_directory *directory)
{
    const uint32_t none = BW_NO_DIRECTORY;
    uint8_t *end;
    const uint32_t number = bw_packed_begin(found, sizeof none + LONGEST, &end);
    if (number == BW_NO_RECORD || number >= ~BW_FOUND_LOCAL)
        return BW_NO_DIRECTORY;
    memcpy(end, &none, sizeof none);
    end = bw_varint_put(end + sizeof none, directory->inode);
    end = bw_varint_put(end, (uint64_t)directory->parent << 1 | directory->walked);
    bw_packed_end(found, put_name(end, directory->name, directory->name_length));
    return number | BW_FOUND_LOCAL;
}

struct bw_walked_directory bw_found_directory_get(const struct bw_packed *found, uint32_t number)
{
    const uint8_t *begin = bw_packed_at(found, number & ~BW_FOUND_LOCAL);
    const uint8_t *at = begin + sizeof(uint32_t);
    struct bw_walked_directory directory = {.inode = bw_varint_get(&at)};
    const uint64_t parent = bw_varint_get(&at);
    directory.parent = (uint32_t)(parent >> 1);
    directory.walked = parent & 1;
    directory.name_length = *at++;
    directory.name = (const char *)at;
    directory.size = (size_t)(at - begin) + directory.name_length;
    return directory;
}

void bw_found_directory_set_place(const struct bw_packed *found, uint32_t number, uint32_t place)
{
    memcpy(bw_packed_at(found, number & ~BW_FOUND_LOCAL), &place, sizeof place);
}

/* In either place. */

uint32_t bw_any_directory_place(const struct bw_packed *found, uint32_t number)
{
    if (number & BW_FOUND_LOCAL)
        memcpy(&number, bw_packed_at(found, number & ~BW_FOUND_LOCAL), sizeof number);
    return number;
}

void bw_any_directory_path(const struct bw_directory_table *table, const struct bw_packed *found,
                           uint32_t number, struct bw_buffer *path)
{
    struct bw_walked_directory directory;
    size_t length = 0;
    for (uint32_t at = number; at; at = directory.parent) {
        directory = bw_any_directory_get(table, found, at);
        length += directory.name_length + 1u;
    }
    if (length == 0 || !bw_buffer_reserve(path, length))
        return;
    path->length += length;
    char *end = path->data + path->length;
    for (uint32_t at = number; at; at = directory.parent) {
        directory = bw_any_directory_get(table, found, at);
        *--end = '/';
        end -= directory.name_length;
        memcpy(end, directory.name, directory.name_length);
    }
}
