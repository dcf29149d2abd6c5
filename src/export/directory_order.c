/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which directories are written before an entry, and which of them again. */
#include "export/directory_order.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"

enum { NOWHERE = UINT32_MAX };

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
static struct bw_directory_state *find(const struct bw_directory_order *order, const char *path,
                                       size_t length)
{
    uint32_t number = bw_path_store_find(&order->all.paths, path, length);
    struct bw_directory_state *state = number < order->known ? &order->states[number] : NULL;
    return state && state->place != NOWHERE ? state : NULL;
}

/* How much of the open path is on the way to a directory, or is it. */
static size_t still_open(const struct bw_directory_order *order, const char *path, size_t length)
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
static void touch(struct bw_directory_order *order, const char *path, size_t length)
{
    struct bw_directory_state *state = find(order, path, length);
    if (state && (!length || still_open(order, path, length) != length))
        state->again = true;
}

static struct bw_error *write_first(struct bw_directory_order *order,
                                    struct bw_directory_state *state, const char *path,
                                    size_t length)
{
    const struct bw_made_directory *directory = &order->all.items[state->place];
    if (length)
        touch(order, path, parent_length(path, length));
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
static struct bw_error *write_way(struct bw_directory_order *order, const char *path, size_t length)
{
    struct bw_directory_state *state;
    size_t end = length;
    while (end && !((state = find(order, path, end)) && state->written))
        end = parent_length(path, end);
    order->open.length = still_open(order, path, length);
    for (; end <= length; end++) {
        if (end && end < length && path[end] != '/')
            continue;
        state = find(order, path, end);
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
    BW_TRY(write_way(order, path, parent));
    touch(order, path, parent);
    return NULL;
}

/* The path of a number, followed by a NUL. */
static struct bw_error *get_path(struct bw_directory_order *order, size_t number)
{
    order->path.length = 0;
    bw_path_store_append(&order->all.paths, (uint32_t)number, &order->path);
    bw_buffer_append_byte(&order->path, '\0');
    order->path.length -= !order->path.failed;
    return order->path.failed ? bw_error_no_memory() : NULL;
}

/* Those with nothing in them. */
static struct bw_error *write_rest(struct bw_directory_order *order)
{
    for (size_t i = 0; i < order->all.count; i++) {
        const uint32_t number = order->all.items[i].path;
        if (order->states[number].written)
            continue;
        BW_TRY(get_path(order, number));
        BW_TRY(write_way(order, order->path.data, order->path.length));
    }
    return NULL;
}

/* The number of a path is greater than that of the directory that it is in. */
struct bw_error *bw_directory_order_end(struct bw_directory_order *order)
{
    BW_TRY(write_rest(order));
    for (size_t number = order->known; number--;) {
        const struct bw_directory_state *state = &order->states[number];
        if (state->place == NOWHERE || !state->again)
            continue;
        BW_TRY(get_path(order, number));
        BW_TRY(order->write(order->context, order->path.data, &order->all.items[state->place],
                            BW_DIRECTORY_AGAIN));
    }
    return NULL;
}
