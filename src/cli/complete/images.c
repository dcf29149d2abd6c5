/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What images hold, for completions: only plain files of this machine are opened. */
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "btrfs-walk/directory.h"
#include "btrfs-walk/partition.h"
#include "btrfs-walk/subvolume.h"
#include "cli/complete/complete.h"

/* A server that does not answer would hold up the shell. */
static bool is_local_file(const char *path)
{
    static const uint32_t remote[] = {NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,  SMB2_SUPER_MAGIC,
                                      CIFS_SUPER_MAGIC, FUSE_SUPER_MAGIC, V9FS_MAGIC,
                                      CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC};
    struct statfs system;
    struct stat file;
    if (statfs(path, &system) || stat(path, &file) || !S_ISREG(file.st_mode))
        return false;
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
        if ((uint32_t)system.f_type == remote[i])
            return false;
    return true;
}

static bool are_local_files(const struct cmd_common *common)
{
    size_t i = 0;
    while (i < common->image_count && is_local_file(common->images[i]))
        i++;
    return i && i == common->image_count;
}

static struct bw_fs *open_images(const struct complete *complete)
{
    const struct bw_fs_options options = cmd_fs_options(complete->common);
    struct bw_fs *fs = NULL;
    if (are_local_files(complete->common))
        bw_error_free(bw_fs_open(&options, &fs));
    return fs;
}

/* With or without the slash at its begin, as the value has it. */
static struct bw_error *add_subvolume(void *context, const struct bw_subvolume_info *info)
{
    struct complete *complete = context;
    size_t skip = *complete->value && *complete->value != '/' && info->path_length;
    char description[64];
    if (!info->path || info->is_deleted || info->path_length == skip)
        return NULL;
    snprintf(description, sizeof description, "%s %" PRIu64 "%s",
             info->is_snapshot ? "snapshot" : "subvolume", info->id,
             info->read_only ? ", read-only" : "");
    complete_add(complete, COMPLETE_WORD, info->path + skip, info->path_length - skip, "",
                 description);
    return NULL;
}

void complete_subvolumes(struct complete *complete)
{
    struct bw_fs *fs = open_images(complete);
    if (fs)
        bw_error_free(bw_fs_subvolumes(fs, true, add_subvolume, complete));
    bw_fs_close(fs);
    complete_add(complete, COMPLETE_WORD, "default", 7, "", "what a mount shows");
}

static struct bw_error *add_table(void *context, const struct bw_partition_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct bw_partition_info *partition = &table->partitions[i];
        char number[16];
        int length = snprintf(number, sizeof number, "%u", partition->number);
        complete_add(context, COMPLETE_WORD, number, (size_t)length, "",
                     *partition->content ? partition->content : partition->type_name);
    }
    return NULL;
}

void complete_partitions(struct complete *complete)
{
    complete->common->partition = NULL;
    const struct bw_fs_options options = cmd_fs_options(complete->common);
    if (are_local_files(complete->common))
        bw_error_free(bw_partition_tables(&options, add_table, complete));
}

static struct bw_error *add_device(void *context, const struct bw_device_info *device)
{
    char number[24];
    int length = snprintf(number, sizeof number, "%" PRIu64, device->devid);
    complete_add(context, COMPLETE_WORD, number, (size_t)length, "",
                 device->path ? device->path : "missing");
    return NULL;
}

void complete_devices(struct complete *complete)
{
    struct bw_fs *fs = open_images(complete);
    if (fs)
        bw_error_free(bw_fs_devices(fs, add_device, complete));
    bw_fs_close(fs);
}

/* Nobody looks through more. */
enum { PATHS_MAX = 10000 };

static struct bw_error *add_entries(struct complete *complete, struct bw_directory *directory)
{
    const struct bw_directory_entry *entry;
    while (complete->count < PATHS_MAX) {
        BW_TRY(bw_directory_next(directory, &entry));
        if (!entry)
            break;
        bool is_directory = entry->place.type == BW_FILE_DIRECTORY;
        complete_add(complete, is_directory ? COMPLETE_BEGIN : COMPLETE_WORD, entry->name,
                     entry->name_length, is_directory ? "/" : "", "");
    }
    return NULL;
}

/* The entries of the directory that the path leads to up to its last slash. */
static struct bw_error *add_paths(struct complete *complete, struct bw_fs *fs)
{
    const struct bw_subvolume *from = NULL;
    const char *path = complete->value;
    struct bw_directory *directory;
    struct bw_place place;
    complete_skip(complete, "/");
    BW_AUTO_FREE char *parent = strndup(path, (size_t)(complete->value - path));
    if (!parent)
        return bw_error_no_memory();
    if (complete->subvolume)
        BW_TRY(bw_subvolume_by_name(fs, complete->subvolume, &from));
    BW_TRY(bw_lookup(fs, from, *parent ? parent : "/", true, &place));
    BW_TRY(bw_directory_open(fs, &place, BW_DIRECTORY_START, &directory));
    struct bw_error *error = add_entries(complete, directory);
    bw_directory_close(directory);
    return error;
}

void complete_paths(struct complete *complete)
{
    struct bw_fs *fs = open_images(complete);
    if (!*complete->value) {
        complete->prefix = "/";
        complete->prefix_length = 1;
    }
    if (fs)
        bw_error_free(add_paths(complete, fs));
    bw_fs_close(fs);
}
