/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listing a directory entry by entry: entries are read some hundred at a time. */
#include "btrfs-walk/directory.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "fs/fs.h"
#include "fs/readdir.h"

/* Entries that are read at a time. Each time costs a search in the tree. */
enum { BATCH = 512 };

struct bw_directory {
    struct bw_fs *fs;
    struct bw_place place;
    struct bw_listing listing; /* where the next batch begins */
    struct bw_buffer names;    /* of the batch */
    struct bw_directory_entry entries[BATCH];
    unsigned count, next;
    bool ended; /* there are no more after the batch */
};

struct bw_error *bw_directory_open(struct bw_fs *fs, const struct bw_place *place,
                                   uint64_t position, struct bw_directory **directory)
{
    if (place->type != BW_FILE_DIRECTORY)
        return bw_error_create(BW_ERROR_USAGE, "inode %" PRIu64 " is not a directory",
                               place->inode);
    *directory = calloc(1, sizeof **directory);
    if (!*directory)
        return bw_error_no_memory();
    (*directory)->fs = fs;
    (*directory)->place = *place;
    (*directory)->listing = (struct bw_listing){.position = position, .knows_start = !position};
    return NULL;
}

void bw_directory_close(struct bw_directory *directory)
{
    if (!directory)
        return;
    bw_buffer_free(&directory->names);
    free(directory);
}

static struct bw_error *take(void *context, const struct bw_listed *listed)
{
    struct bw_directory *directory = context;
    if (directory->count == BATCH)
        return bw_error_create(BW_ERROR_STOPPED, "the batch is full");
    bw_buffer_append(&directory->names, listed->name, listed->name_length);
    if (directory->names.failed)
        return bw_error_no_memory();
    directory->entries[directory->count++] = (struct bw_directory_entry){
        .name_length = listed->name_length, .place = listed->place, .position = listed->position};
    return NULL;
}

/* The names stay where they are only when no more are coming. */
static void set_names(struct bw_directory *directory)
{
    const char *name = directory->names.data;
    for (unsigned i = 0; i < directory->count; i++) {
        directory->entries[i].name = name;
        name += directory->entries[i].name_length;
    }
}

static struct bw_error *fill(struct bw_directory *directory)
{
    directory->names.length = 0;
    directory->count = directory->next = 0;
    struct bw_error *error = bw_directory_continue(directory->fs, &directory->place,
                                                   &directory->listing, take, directory);
    directory->ended = !error;
    if (error && error->code != BW_ERROR_STOPPED)
        return error;
    bw_error_free(error);
    set_names(directory);
    if (directory->count)
        directory->listing.position = directory->entries[directory->count - 1].position;
    return NULL;
}

struct bw_error *bw_directory_next(struct bw_directory *directory,
                                   const struct bw_directory_entry **entry)
{
    *entry = NULL;
    if (directory->next == directory->count && !directory->ended)
        BW_TRY(fill(directory));
    if (directory->next < directory->count)
        *entry = &directory->entries[directory->next++];
    return NULL;
}
