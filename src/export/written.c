/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an export has written: paths, files with several names, directories and their order. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "export/written.h"

/* Paths. They are cut before their slashes: "/a/b" is "", "/a" and "/b". */

#define NO_PATH UINT32_MAX

struct bw_stored_name {
    size_t offset;   /* in the names */
    uint32_t length; /* with the slash before it */
    uint32_t parent; /* NO_PATH: it has none */
};

void bw_path_store_free(struct bw_path_store *store)
{
    free(store->items);
    bw_buffer_free(&store->names);
    bw_map_free(&store->directories);
    *store = (struct bw_path_store){0};
}

static bool is_path(const struct bw_path_store *store, uint32_t number, const char *path,
                    size_t length)
{
    for (; number != NO_PATH; number = store->items[number].parent) {
        const struct bw_stored_name *item = &store->items[number];
        if (item->length > length ||
            (item->length && memcmp(path + length - item->length, store->names.data + item->offset,
                                    item->length) != 0))
            return false;
        length -= item->length;
    }
    return length == 0;
}

/* NO_PATH also if it cannot be found because of another one of its hash. */
static uint32_t find(const struct bw_path_store *store, const char *path, size_t length)
{
    uint32_t number = bw_map_get(&store->directories, XXH64(path, length, 0));
    return number != NO_PATH && is_path(store, number, path, length) ? number : NO_PATH;
}

static bool add_name(struct bw_path_store *store, uint32_t parent, const char *name, size_t length,
                     uint32_t *number)
{
    if (length > UINT32_MAX || store->count == NO_PATH ||
        !BW_ARRAY_RESERVE(store->items, store->count, store->capacity))
        return false;
    *number = (uint32_t)store->count;
    store->items[store->count++] =
        (struct bw_stored_name){store->names.length, (uint32_t)length, parent};
    bw_buffer_append(&store->names, name, length);
    return !store->names.failed;
}

/* Where the last name of a path begins, with the slash before it. */
static size_t last_name(const char *path, size_t length)
{
    const char *slash = memrchr(path, '/', length);
    return slash ? (size_t)(slash - path) : 0;
}

bool bw_path_store_directory(struct bw_path_store *store, const char *path, size_t length,
                             uint32_t *number)
{
    size_t known = length;
    /* Usually the directory that it is in is there. */
    while ((*number = find(store, path, known)) == NO_PATH && known)
        known = last_name(path, known);
    while (known < length || *number == NO_PATH) {
        const char *slash =
            known < length ? memchr(path + known + 1, '/', length - known - 1) : NULL;
        size_t end = slash ? (size_t)(slash - path) : length;
        if (!add_name(store, *number, path + known, end - known, number) ||
            !bw_map_put(&store->directories, XXH64(path, end, 0), *number))
            return false;
        known = end;
    }
    return true;
}

bool bw_path_store_add(struct bw_path_store *store, const char *path, size_t length,
                       uint32_t *number)
{
    size_t name = last_name(path, length);
    uint32_t directory;
    return bw_path_store_directory(store, path, name, &directory) &&
           add_name(store, directory, path + name, length - name, number);
}

void bw_path_store_append(const struct bw_path_store *store, uint32_t number,
                          struct bw_buffer *path)
{
    size_t length = 0;
    for (uint32_t at = number; at != NO_PATH; at = store->items[at].parent)
        length += store->items[at].length;
    if (!bw_buffer_reserve(path, length))
        return;
    path->length += length;
    char *end = path->data + path->length;
    for (uint32_t at = number; at != NO_PATH; at = store->items[at].parent) {
        const struct bw_stored_name *item = &store->items[at];
        end -= item->length;
        if (item->length)
            memcpy(end, store->names.data + item->offset, item->length);
    }
}

/* Files with several names. */

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

/* Keeps a path as that of a file. */
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

/* Looks at a file again, under the lock. */
static bool look_up(const struct bw_links *links, const struct bw_place *place,
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
    bool good = look_up(links, place, link);
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
    bool found = look_up(links, place, link);
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

/* Directories. */

void bw_made_directories_free(struct bw_made_directories *directories)
{
    free(directories->items);
    bw_path_store_free(&directories->paths);
    *directories = (struct bw_made_directories){0};
}

struct bw_error *bw_made_directories_add(struct bw_made_directories *directories, const char *path,
                                         size_t length, const struct bw_place *place,
                                         const struct bw_inode *inode)
{
    uint32_t number;
    if (!bw_path_store_directory(&directories->paths, path, length, &number) ||
        !BW_ARRAY_RESERVE(directories->items, directories->count, directories->capacity))
        return bw_error_no_memory();
    directories->items[directories->count++] = (struct bw_made_directory){
        .path = number,
        .place = *place,
        .atime = inode->atime,
        .ctime = inode->ctime,
        .mtime = inode->mtime,
        .uid = inode->uid,
        .gid = inode->gid,
        .mode = (uint16_t)inode->mode,
        .flags = (uint16_t)inode->flags,
    };
    return NULL;
}

struct bw_inode bw_made_directory_inode(const struct bw_made_directory *directory)
{
    return (struct bw_inode){.atime = directory->atime,
                             .ctime = directory->ctime,
                             .mtime = directory->mtime,
                             .flags = directory->flags,
                             .link_count = 1,
                             .uid = directory->uid,
                             .gid = directory->gid,
                             .mode = directory->mode};
}

/* Which directories are written before an entry, and which of them again. */

#define NOWHERE UINT32_MAX

struct bw_directory_state {
    uint32_t place; /* in the list of all; NOWHERE: it does not belong to the archive */
    bool written, again;
};

void bw_directory_order_free(struct bw_directory_order *order)
{
    bw_made_directories_free(&order->all);
    free(order->states);
    bw_buffer_free(&order->open);
    bw_buffer_free(&order->path);
}

struct bw_error *bw_directory_order_add(struct bw_directory_order *order, const char *path,
                                        size_t length, const struct bw_place *place,
                                        const struct bw_inode *inode)
{
    BW_TRY(bw_made_directories_add(&order->all, path, length, place, inode));
    while (order->known < order->all.paths.count) {
        if (!BW_ARRAY_RESERVE(order->states, order->known, order->capacity))
            return bw_error_no_memory();
        order->states[order->known++] = (struct bw_directory_state){.place = NOWHERE};
    }
    const size_t added = order->all.count - 1;
    if (order->states[order->all.items[added].path].place == NOWHERE)
        order->states[order->all.items[added].path].place = (uint32_t)added;
    return NULL;
}

/* NULL: it does not belong to the archive. */
static struct bw_directory_state *find_directory(const struct bw_directory_order *order,
                                                 const char *path, size_t length)
{
    uint32_t number = find(&order->all.paths, path, length);
    struct bw_directory_state *state = number < order->known ? &order->states[number] : NULL;
    return state && state->place != NOWHERE ? state : NULL;
}

/* How much of the open path is on the way to a directory, or is it. */
static size_t open_length(const struct bw_directory_order *order, const char *path, size_t length)
{
    const struct bw_buffer *open = &order->open;
    size_t common = 0, i = 0;
    for (; i < open->length && i < length && open->data[i] == path[i]; i++)
        common = path[i] == '/' ? i : common;
    bool open_ends = i == open->length || open->data[i] == '/';
    bool path_ends = i == length || path[i] == '/';
    return open_ends && path_ends ? i : common;
}

static size_t parent_length(const char *path, size_t length)
{
    const char *slash = memrchr(path, '/', length);
    return slash ? (size_t)(slash - path) : 0;
}

/* Something is put into a directory. The top is open for no tar: names do not begin with it. */
static void note_entry(struct bw_directory_order *order, const char *path, size_t length)
{
    struct bw_directory_state *state = find_directory(order, path, length);
    if (state && (!length || open_length(order, path, length) != length))
        state->again = true;
}

static struct bw_error *write_first(struct bw_directory_order *order,
                                    struct bw_directory_state *state, const char *path,
                                    size_t length)
{
    const struct bw_made_directory *directory = &order->all.items[state->place];
    if (length)
        note_entry(order, path, parent_length(path, length));
    state->written = true;
    state->again |= (directory->mode & S_IRWXU) != S_IRWXU;
    order->open.length = 0;
    bw_buffer_append(&order->open, path, length);
    bw_buffer_append_byte(&order->open, '\0');
    if (order->open.failed)
        return bw_error_no_memory();
    order->open.length--;
    return order->write(order->context, order->open.data, directory, BW_DIRECTORY_FIRST);
}

/* Up to a directory, and with it. What contains one that is written is written, too. */
static struct bw_error *write_up_to(struct bw_directory_order *order, const char *path,
                                    size_t length)
{
    struct bw_directory_state *state;
    size_t end = length;
    while (end && !((state = find_directory(order, path, end)) && state->written))
        end = parent_length(path, end);
    order->open.length = open_length(order, path, length);
    for (; end <= length; end++) {
        if (end && end < length && path[end] != '/')
            continue;
        state = find_directory(order, path, end);
        if (state && !state->written)
            BW_TRY(write_first(order, state, path, end));
    }
    return NULL;
}

struct bw_error *bw_directory_order_enter(struct bw_directory_order *order, const char *path,
                                          size_t length)
{
    size_t parent = parent_length(path, length);
    if (parent && order->open.length == parent && memcmp(order->open.data, path, parent) == 0)
        return NULL;
    BW_TRY(write_up_to(order, path, parent));
    note_entry(order, path, parent);
    return NULL;
}

/* The path of a number, followed by a NUL. */
static struct bw_error *read_path(struct bw_directory_order *order, size_t number)
{
    order->path.length = 0;
    bw_path_store_append(&order->all.paths, (uint32_t)number, &order->path);
    bw_buffer_append_byte(&order->path, '\0');
    order->path.length -= !order->path.failed;
    return order->path.failed ? bw_error_no_memory() : NULL;
}

/* Those with nothing in them. */
static struct bw_error *write_empty(struct bw_directory_order *order)
{
    for (size_t i = 0; i < order->all.count; i++) {
        const uint32_t number = order->all.items[i].path;
        if (order->states[number].written)
            continue;
        BW_TRY(read_path(order, number));
        BW_TRY(write_up_to(order, order->path.data, order->path.length));
    }
    return NULL;
}

/* The number of a path is greater than that of the directory that it is in. */
struct bw_error *bw_directory_order_end(struct bw_directory_order *order)
{
    BW_TRY(write_empty(order));
    for (size_t number = order->known; number--;) {
        const struct bw_directory_state *state = &order->states[number];
        if (state->place == NOWHERE || !state->again)
            continue;
        BW_TRY(read_path(order, number));
        BW_TRY(order->write(order->context, order->path.data, &order->all.items[state->place],
                            BW_DIRECTORY_AGAIN));
    }
    return NULL;
}
