/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of files with several names. Backups have millions: a directory's path is kept once for
 * a run of names in it. */
#include "export/links.h"

#include <stdlib.h>

#include "base/array.h"

struct bw_linked_file {
    size_t directory, name; /* in the names */
    uint32_t directory_length;
    uint16_t name_length;
    bool made;
};

/* Numbers of files are 32 bits wide in the map. */
enum { NO_FILE = -1 };

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
    bw_buffer_free(&links->names);
    pthread_mutex_destroy(&links->lock);
}

static int64_t find(const struct bw_links *links, const struct bw_place *place)
{
    uint32_t at = bw_map_get(&links->subvolumes, bw_subvolume_id(place->subvolume));
    uint32_t number = at == UINT32_MAX ? UINT32_MAX : bw_map_get(&links->numbers[at], place->inode);
    return number == UINT32_MAX ? NO_FILE : (int64_t)number;
}

/* The numbers of the files of a subvolume; NULL if memory runs out. */
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

static void remember_directory(struct bw_links *links, const char *path, size_t length)
{
    if (links->count && links->directory_length == length &&
        memcmp(links->names.data + links->directory, path, length) == 0)
        return;
    links->directory = links->names.length;
    links->directory_length = length;
    bw_buffer_append(&links->names, path, length);
}

static bool add(struct bw_links *links, const struct bw_place *place, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t name_length = strlen(name);
    struct bw_map *numbers = numbers_of(links, bw_subvolume_id(place->subvolume));
    if (!numbers || name_length > UINT16_MAX || (size_t)(name - path) > UINT32_MAX ||
        links->count == UINT32_MAX ||
        !BW_ARRAY_RESERVE(links->files, links->count, links->capacity))
        return false;
    remember_directory(links, path, (size_t)(name - path));
    links->files[links->count] =
        (struct bw_linked_file){.directory = links->directory,
                                .directory_length = (uint32_t)(name - path),
                                .name = links->names.length,
                                .name_length = (uint16_t)name_length};
    bw_buffer_append(&links->names, name, name_length);
    return !links->names.failed && bw_map_put(numbers, place->inode, (uint32_t)links->count++);
}

bool bw_links_meet(struct bw_links *links, const struct bw_place *place, const char *path,
                   struct bw_link *link)
{
    pthread_mutex_lock(&links->lock);
    int64_t number = find(links, place);
    bool good = true;
    *link = (struct bw_link){.is_first = number == NO_FILE};
    if (link->is_first) {
        link->number = links->count;
        good = add(links, place, path);
    } else {
        link->number = (size_t)number;
        link->made = links->files[number].made;
    }
    pthread_mutex_unlock(&links->lock);
    return good;
}

bool bw_links_find(struct bw_links *links, const struct bw_place *place, struct bw_link *link)
{
    pthread_mutex_lock(&links->lock);
    int64_t number = find(links, place);
    if (number != NO_FILE)
        *link = (struct bw_link){.made = links->files[number].made, .number = (size_t)number};
    pthread_mutex_unlock(&links->lock);
    return number != NO_FILE;
}

void bw_links_made(struct bw_links *links, size_t number)
{
    pthread_mutex_lock(&links->lock);
    links->files[number].made = true;
    pthread_mutex_unlock(&links->lock);
}

void bw_links_append_path(struct bw_links *links, size_t number, struct bw_buffer *path)
{
    pthread_mutex_lock(&links->lock);
    const struct bw_linked_file *file = &links->files[number];
    bw_buffer_append(path, links->names.data + file->directory, file->directory_length);
    bw_buffer_append(path, links->names.data + file->name, file->name_length);
    pthread_mutex_unlock(&links->lock);
}
