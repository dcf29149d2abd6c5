/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists all regular files with their sizes: list-sizes IMAGE... */
#include <btrfs-walk/fs.h>
#include <btrfs-walk/walk.h>
#include <inttypes.h>
#include <stdio.h>

static struct bw_error *print(void *context, const struct bw_entry *entry)
{
    (void)context;
    if (entry->inode) /* otherwise it is lost, and has been reported */
        printf("%12" PRIu64 " %.*s\n", entry->inode->size, (int)entry->path_length, entry->path);
    return NULL;
}

int main(int argc, char **argv)
{
    const struct bw_fs_options options = {.struct_size = sizeof options,
                                          .paths = (const char *const *)argv + 1,
                                          .path_count = (size_t)argc - 1};
    const struct bw_walk_options walk = {
        .struct_size = sizeof walk, .visit = print, .visit_inodes = true};
    struct bw_fs *fs = NULL;
    struct bw_error *error = bw_fs_open(&options, &fs);
    if (!error)
        error = bw_walk(fs, &walk, NULL);
    if (error)
        fprintf(stderr, "%s\n", error->message);
    int status = error || bw_fs_status(fs).damages;
    bw_error_free(error);
    bw_fs_close(fs);
    return status;
}
