/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creating and freeing mounts. */
#include "mount/internal.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "mount/read_windows.h"

struct bw_error *bw_mount_create(struct bw_fs *fs, const struct bw_mount_options *options,
                                 struct bw_mount **result)
{
    struct bw_superblock_info superblock;
    struct bw_mount *mount = calloc(1, sizeof *mount);
    if (!mount)
        return bw_error_no_memory();
    bw_fs_superblock(fs, &superblock);
    *mount = (struct bw_mount){.fs = fs, .options = *options, .sectorsize = superblock.sectorsize};
    pthread_mutex_init(&mount->lock, NULL);
    struct bw_error *error = NULL;
    if (!options->used) { /* it shows files, not devices */
        const struct bw_subvolume *next = NULL;
        while (!error && (next = bw_subvolume_next(fs, next)))
            error = bw_mounted_subvolumes_push(&mount->subvolumes, next);
        if (!error)
            error = bw_read_windows_create(fs, &mount->read_windows);
        mount->read_files = bw_read_files_create();
        mount->listings = bw_listings_create();
        if (!error && (!mount->read_files || !mount->listings))
            error = bw_error_no_memory();
    }
    if (error)
        bw_mount_destroy(mount);
    else
        *result = mount;
    return error;
}

void bw_mount_destroy(struct bw_mount *mount)
{
    if (!mount)
        return;
    for (size_t i = 0; i < mount->devices.count; i++) {
        bw_device_reader_close(mount->devices.items[i].reader);
        bw_range_set_free(&mount->devices.items[i].used);
    }
    bw_mount_devices_free(&mount->devices);
    bw_read_windows_destroy(mount->read_windows);
    bw_read_files_destroy(mount->read_files);
    bw_listings_destroy(mount->listings);
    pthread_mutex_destroy(&mount->lock);
    bw_key_set_free(&mount->reported);
    bw_mounted_subvolumes_free(&mount->subvolumes);
    free(mount);
}
