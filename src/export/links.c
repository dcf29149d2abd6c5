/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export/links.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct bw_linked_file {
    uint32_t path; /* in the store */
    uint8_t state; /* enum bw_link_state */
};

void bw_links_init(struct bw_links *links)
{
    *links = (struct bw_links){0};
    pthread_mutex_init(&links->lock, NULL);
}

void bw_links_free(struct bw_links *links)
{
    for (size_t i = 0; i < links->subvolume_count; i++)
        bw_map_free(&links->numbers[i]);
    free(links->numbers);
    bw_map_free(&links->subvolumes);
    free(links->files);
    bw_path_store_free(&links->paths);
    pthread_mutex_destroy(&links->lock);
}

/* The map from inodes to files in a subvolume; NULL if memory runs out. */
static struct bw_map *numbers_of(struct bw_links *links, uint64_t subvolume)
{
    uint32_t at = bw_map_get(&links->subvolumes, subvolume);
    if (at != UINT32_MAX)
        return &links->numbers[at];
    if (!BW_ARRAY_RESERVE(links->numbers, links->subvolume_count, links->subvolume_capacity) ||
        !bw_map_put(&links->subvolumes, subvolume, (uint32_t)links->subvolume_count))
        return NULL;
    links->numbers[links->subvolume_count] = (struct bw_map){0};
    return &links->numbers[links->subvolume_count++];
}

/* Stores the path of the first name of a file. */
static bool set_file_path(struct bw_links *links, struct bw_linked_file *file, const char *path)
{
    file->state = BW_LINK_COMING;
    return bw_path_store_add(&links->paths, path, strlen(path), &file->path);
}

static bool add_file(struct bw_links *links, const struct bw_place *place, const char *path)
{
    struct bw_map *numbers = numbers_of(links, bw_subvolume_id(place->subvolume));
    return numbers && links->count < UINT32_MAX &&
           BW_ARRAY_RESERVE(links->files, links->count, links->capacity) &&
           set_file_path(links, &links->files[links->count], path) &&
           bw_map_put(numbers, place->inode, (uint32_t)links->count++);
}

/* Finds a file; the lock must be held. */
static bool find_link(const struct bw_links *links, const struct bw_place *place,
                      struct bw_link *link)
{
    uint32_t at = bw_map_get(&links->subvolumes, bw_subvolume_id(place->subvolume));
    uint32_t number = at == UINT32_MAX ? UINT32_MAX : bw_map_get(&links->numbers[at], place->inode);
    if (number != UINT32_MAX)
        *link = (struct bw_link){.state = links->files[number].state, .number = number};
    return number != UINT32_MAX;
}

bool bw_links_meet(struct bw_links *links, const struct bw_place *place, const char *path,
                   struct bw_link *link)
{
    pthread_mutex_lock(&links->lock);
    bool good = find_link(links, place, link);
    if (!good) {
        *link = (struct bw_link){.is_first = true, .number = links->count};
        good = add_file(links, place, path);
    }
    pthread_mutex_unlock(&links->lock);
    return good;
}

bool bw_links_find(struct bw_links *links, const struct bw_place *place, struct bw_link *link)
{
    pthread_mutex_lock(&links->lock);
    bool found = find_link(links, place, link);
    pthread_mutex_unlock(&links->lock);
    return found;
}

void bw_links_set(struct bw_links *links, size_t number, enum bw_link_state state)
{
    pthread_mutex_lock(&links->lock);
    links->files[number].state = (uint8_t)state;
    pthread_mutex_unlock(&links->lock);
}

bool bw_links_rename(struct bw_links *links, size_t number, const char *path)
{
    pthread_mutex_lock(&links->lock);
    bool good = set_file_path(links, &links->files[number], path);
    pthread_mutex_unlock(&links->lock);
    return good;
}

void bw_links_append_path(struct bw_links *links, size_t number, struct bw_buffer *path)
{
    pthread_mutex_lock(&links->lock);
    bw_path_store_append(&links->paths, links->files[number].path, path);
    pthread_mutex_unlock(&links->lock);
}
