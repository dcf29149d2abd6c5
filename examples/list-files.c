/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints the paths of all regular files: list-files IMAGE... */
#include <btrfs-walk/btrfs-walk.h>
#include <stdio.h>

static struct bw_error *print(void *stream, const struct bw_entry *entry)
{
    fprintf(stream, "%.*s\n", (int)entry->path_length, entry->path);
    return NULL;
}

int main(int argc, char **argv)
{
    struct bw_fs_options images = {.struct_size = sizeof images, .path_count = (size_t)argc - 1};
    struct bw_walk_options walk = {.struct_size = sizeof walk, .visit = print, .context = stdout};
    struct bw_fs *fs = NULL;
    images.paths = (const char *const *)argv + 1;
    struct bw_error *error = bw_fs_open(&images, &fs);
    error = error ? error : bw_walk(fs, &walk, NULL);
    if (error)
        fprintf(stderr, "%s\n", error->message);
    const int status = error != NULL;
    bw_error_free(error);
    bw_fs_close(fs);
    return status;
}
