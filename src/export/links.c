/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export/links.h"

#include <string.h>

void bw_links_init(struct bw_links *links)
{
    *links = (struct bw_links){0};
    pthread_mutex_init(&links->lock, NULL);
}

void bw_links_free(struct bw_links *links)
{
    for (size_t i = 0; i < links->numbers.count; i++)
        bw_key_map_free(&links->numbers.items[i]);
    bw_key_maps_free(&links->numbers);
    bw_key_map_free(&links->subvolumes);
    bw_linked_files_free(&links->files);
    bw_path_store_free(&links->paths);
    pthread_mutex_destroy(&links->lock);
}

/* The map from inodes to files in a subvolume; NULL if memory runs out. */
static struct bw_key_map *numbers_of(struct bw_links *links, uint64_t subvolume)
{
    uint32_t at = bw_key_map_get(&links->subvolumes, subvolume, UINT32_MAX);
    if (at != UINT32_MAX)
        return &links->numbers.items[at];
    if (bw_key_maps_reserve(&links->numbers, 1) ||
        bw_key_map_put(&links->subvolumes, subvolume, (uint32_t)links->numbers.count))
        return NULL;
    links->numbers.items[links->numbers.count] = (struct bw_key_map){0};
    return &links->numbers.items[links->numbers.count++];
}

/* Stores the path of the first name of a file. */
static bool set_file_path(struct bw_links *links, struct bw_linked_file *file, const char *path)
{
    file->state = BW_LINK_COMING;
    return bw_path_store_add(&links->paths, path, strlen(path), &file->path);
}

/* Finds a file; the lock must be held. */
static bool find_link(const struct bw_links *links, const struct bw_place *place,
                      struct bw_link *link)
{
    uint32_t at = bw_key_map_get(&links->subvolumes, bw_subvolume_id(place->subvolume), UINT32_MAX);
    uint32_t number = at == UINT32_MAX
                          ? UINT32_MAX
                          : bw_key_map_get(&links->numbers.items[at], place->inode, UINT32_MAX);
    if (number != UINT32_MAX)
        *link = (struct bw_link){.state = links->files.items[number].state, .number = number};
    return number != UINT32_MAX;
}

bool bw_links_meet(struct bw_links *links, const struct bw_place *place, const char *path,
                   struct bw_link *link)
{
    pthread_mutex_lock(&links->lock);
    bool good = find_link(links, place, link);
    if (!good) {
        struct bw_key_map *numbers = numbers_of(links, bw_subvolume_id(place->subvolume));
        *link = (struct bw_link){.is_first = true, .number = links->files.count};
        good = numbers && links->files.count < UINT32_MAX &&
               !bw_linked_files_reserve(&links->files, 1) &&
               set_file_path(links, &links->files.items[links->files.count], path) &&
               !bw_key_map_put(numbers, place->inode, (uint32_t)links->files.count++);
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
    links->files.items[number].state = (uint8_t)state;
    pthread_mutex_unlock(&links->lock);
}

bool bw_links_rename(struct bw_links *links, size_t number, const char *path)
{
    pthread_mutex_lock(&links->lock);
    bool good = set_file_path(links, &links->files.items[number], path);
    pthread_mutex_unlock(&links->lock);
    return good;
}

void bw_links_append_path(struct bw_links *links, size_t number, struct bw_buffer *path)
{
    pthread_mutex_lock(&links->lock);
    bw_path_store_append(&links->paths, links->files.items[number].path, path);
    pthread_mutex_unlock(&links->lock);
}
