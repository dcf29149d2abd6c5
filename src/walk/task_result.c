/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The result of a task: what of it is still needed when the task has ended. */
#include <stdlib.h>

#include "walk/task.h"

void bw_task_result_free(struct bw_task_result *result)
{
    bw_buffer_free(&result->names);
    bw_packed_free(&result->found);
    bw_buffer_free(&result->closed);
    free(result->subvolumes);
    free(result->lost.items);
    *result = (struct bw_task_result){0};
}

/*
 * Closing directories. The walk needs the path of a directory that was listed only if something
 * below it comes later: a directory of another task, or a subvolume.
 */

/* Marks of directories that were found, in the room for their places. */
enum { NEEDED = 0, NOT_NEEDED = (int)BW_NO_DIRECTORY };

/* Marks a directory of the task, and those above it. */
static void mark_needed(const struct bw_packed *found, uint32_t directory)
{
    while (directory & BW_FOUND_LOCAL) {
        const uint32_t number = directory & ~BW_FOUND_LOCAL;
        if (bw_found_directory_place(found, number) == (uint32_t)NEEDED)
            return;
        bw_found_directory_set_place(found, number, NEEDED);
        directory = bw_found_directory_get(found, number).parent;
    }
}

static void mark_all_needed(const struct bw_task_result *result)
{
    const struct bw_packed *found = &result->found;
    for (uint32_t number = bw_packed_first(found, 0); number != BW_NO_DIRECTORY;) {
        const struct bw_found_directory directory = bw_found_directory_get(found, number);
        if (!directory.walked)
            mark_needed(found, number | BW_FOUND_LOCAL);
        number = bw_packed_next(found, number, directory.size);
    }
    for (size_t i = 0; i < result->subvolume_count; i++)
        mark_needed(found, result->subvolumes[i].parent);
}

/* The number in the list of needed directories, once the directory has been moved there. */
static uint32_t moved_to(const struct bw_packed *found, uint32_t directory)
{
    return directory & BW_FOUND_LOCAL ? bw_found_directory_place(found, directory & ~BW_FOUND_LOCAL)
                                      : directory;
}

/* Closes a directory. `previous` is the inode of the previously closed one. */
static bool close_directory(struct bw_task_result *result, uint64_t inode, uint64_t *previous)
{
    uint8_t bytes[BW_VARINT_LONGEST];
    const uint8_t *end = bw_varint_put(bytes, inode - *previous);
    bw_buffer_append(&result->closed, bytes, (size_t)(end - bytes));
    *previous = inode;
    return !result->closed.failed;
}

/* Moves a needed directory to a new list; parents come before their children. */
static bool move_directory(const struct bw_packed *found, uint32_t number,
                           const struct bw_found_directory *directory, struct bw_packed *needed)
{
    struct bw_found_directory moved = *directory;
    moved.parent = moved_to(found, directory->parent);
    const uint32_t place = bw_found_directory_add(needed, &moved);
    bw_found_directory_set_place(found, number, place);
    return place != BW_NO_DIRECTORY;
}

bool bw_task_result_close_directories(struct bw_task_result *result)
{
    struct bw_packed *found = &result->found, needed = {0};
    uint64_t previous = 0;
    bool good = true;
    mark_all_needed(result);
    for (uint32_t number = bw_packed_first(found, 0); number != BW_NO_DIRECTORY && good;) {
        const struct bw_found_directory directory = bw_found_directory_get(found, number);
        good = bw_found_directory_place(found, number) == (uint32_t)NEEDED
                   ? move_directory(found, number, &directory, &needed)
                   : close_directory(result, directory.inode, &previous);
        number = bw_packed_next(found, number, directory.size);
    }
    for (size_t i = 0; i < result->subvolume_count && good; i++)
        result->subvolumes[i].parent = moved_to(found, result->subvolumes[i].parent);
    bw_packed_free(found);
    *found = needed;
    return good;
}
