/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Listing a directory entry by entry. */
#include "btrfs-walk/directory.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "fs/fs.h"
#include "fs/lookup.h"

struct bw_directory {
    struct bw_readdir readdir;
    struct bw_directory_entry entry;
};

struct bw_error *bw_directory_open(struct bw_fs *fs, const struct bw_place *place,
                                   uint64_t position, struct bw_directory **directory)
{
    if (place->type != BW_FILE_DIRECTORY)
        return bw_error_create(BW_ERROR_USAGE, "inode %" PRIu64 " is not a directory",
                               place->inode);
    *directory = malloc(sizeof **directory);
    if (!*directory)
        return bw_error_no_memory();
    bw_readdir_begin(&(*directory)->readdir, fs, place, position);
    return NULL;
}

void bw_directory_close(struct bw_directory *directory)
{
    if (!directory)
        return;
    bw_readdir_end(&directory->readdir);
    free(directory);
}

struct bw_error *bw_directory_next(struct bw_directory *directory,
                                   const struct bw_directory_entry **entry)
{
    const struct bw_listed *listed = &directory->readdir.entry;
    bool more;
    *entry = NULL;
    BW_TRY(bw_readdir_next(&directory->readdir, &more));
    if (!more)
        return NULL;
    directory->entry = (struct bw_directory_entry){.name = listed->name,
                                                   .name_length = listed->name_length,
                                                   .place = listed->place,
                                                   .position = listed->position};
    *entry = &directory->entry;
    return NULL;
}
