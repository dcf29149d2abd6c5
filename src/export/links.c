/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of files with several names. Backups have millions: a directory's path is kept once for a run of
 * names in it. */
#include "export/links.h"

#include <stdlib.h>

#include "base/array.h"

struct bw_linked_file {
    uint64_t subvolume, inode;
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
    bw_map_free(&links->numbers);
    free(links->files);
    bw_buffer_free(&links->names);
    pthread_mutex_destroy(&links->lock);
}

static uint64_t hash_of(uint64_t subvolume, uint64_t inode)
{
    return inode ^ subvolume * UINT64_C(0x9E3779B97F4A7C15);
}

/* Two files of one hash are rare: the second is then no file of several names. */
static int64_t find(const struct bw_links *links, uint64_t subvolume, uint64_t inode)
{
    uint32_t number = bw_map_get(&links->numbers, hash_of(subvolume, inode));
    if (number == UINT32_MAX)
        return NO_FILE;
    const struct bw_linked_file *file = &links->files[number];
    return file->subvolume == subvolume && file->inode == inode ? (int64_t)number : NO_FILE;
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

static bool add(struct bw_links *links, uint64_t subvolume, uint64_t inode, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t name_length = strlen(name);
    if (name_length > UINT16_MAX || (size_t)(name - path) > UINT32_MAX || links->count == UINT32_MAX ||
        !BW_ARRAY_RESERVE(links->files, links->count, links->capacity))
        return false;
    remember_directory(links, path, (size_t)(name - path));
    links->files[links->count] = (struct bw_linked_file){.subvolume = subvolume,
                                                         .inode = inode,
                                                         .directory = links->directory,
                                                         .directory_length = (uint32_t)(name - path),
                                                         .name = links->names.length,
                                                         .name_length = (uint16_t)name_length};
    bw_buffer_append(&links->names, name, name_length);
    return !links->names.failed &&
           bw_map_put(&links->numbers, hash_of(subvolume, inode), (uint32_t)links->count++);
}

bool bw_links_meet(struct bw_links *links, uint64_t subvolume, uint64_t inode, const char *path,
                   struct bw_link *link)
{
    pthread_mutex_lock(&links->lock);
    int64_t number = find(links, subvolume, inode);
    bool good = true;
    *link = (struct bw_link){.is_first = number == NO_FILE};
    if (link->is_first) {
        link->number = links->count;
        good = add(links, subvolume, inode, path);
    } else {
        link->number = (size_t)number;
        link->made = links->files[number].made;
    }
    pthread_mutex_unlock(&links->lock);
    return good;
}

bool bw_links_find(struct bw_links *links, uint64_t subvolume, uint64_t inode, struct bw_link *link)
{
    pthread_mutex_lock(&links->lock);
    int64_t number = find(links, subvolume, inode);
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
