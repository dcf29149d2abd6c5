/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of directories, with what their attributes are made of. */
#include "export/links.h"

#include "base/array.h"

void bw_made_directories_free(struct bw_made_directories *directories)
{
    free(directories->items);
    bw_buffer_free(&directories->names);
    *directories = (struct bw_made_directories){0};
}

struct bw_error *bw_made_directories_add(struct bw_made_directories *directories, const char *path,
                                         size_t length, const struct bw_place *place,
                                         const struct bw_inode *inode)
{
    if (length > UINT32_MAX ||
        !BW_ARRAY_RESERVE(directories->items, directories->count, directories->capacity))
        return bw_error_no_memory();
    directories->items[directories->count++] = (struct bw_made_directory){
        .path = directories->names.length,
        .place = *place,
        .atime = inode->atime,
        .ctime = inode->ctime,
        .mtime = inode->mtime,
        .path_length = (uint32_t)length,
        .uid = inode->uid,
        .gid = inode->gid,
        .mode = (uint16_t)inode->mode,
        .flags = (uint16_t)inode->flags,
    };
    bw_buffer_append(&directories->names, path, length);
    return directories->names.failed ? bw_error_no_memory() : NULL;
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
