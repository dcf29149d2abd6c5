/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes the contents of one file to stdout: copy-out IMAGE PATH */
#include <btrfs-walk/file.h>
#include <btrfs-walk/fs.h>
#include <stdio.h>

static struct bw_error *copy(struct bw_fs *fs, const char *path, FILE *target)
{
    static char buffer[1 << 20];
    struct bw_place place;
    struct bw_file *file = NULL;
    size_t got = sizeof buffer;
    struct bw_error *error = bw_lookup(fs, NULL, path, true, &place);
    if (!error)
        error = bw_file_open(fs, &place, NULL, &file);
    for (uint64_t offset = 0; !error && got; offset += got) {
        error = bw_file_read(file, offset, buffer, sizeof buffer, &got);
        fwrite(buffer, 1, got, target);
    }
    bw_file_close(file);
    return error;
}

int main(int argc, char **argv)
{
    const struct bw_fs_options options = {
        .struct_size = sizeof options, .paths = (const char *const *)argv + 1, .path_count = 1};
    struct bw_fs *fs = NULL;
    struct bw_error *error = argc == 3 ? bw_fs_open(&options, &fs)
                                       : bw_error_create(BW_ERROR_USAGE, "copy-out IMAGE PATH");
    if (!error)
        error = copy(fs, argv[2], stdout);
    if (error)
        fprintf(stderr, "%s\n", error->message);
    bw_fs_close(fs);
    return error || fflush(stdout);
}
