/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes files changed since a transaction, with attributes, to stdout: backup IMAGE GENERATION */
#include <btrfs-walk/btrfs-walk.h>
#include <stdio.h>
#include <stdlib.h>

static struct bw_fs *fs;

static struct bw_error *save(void *since, const struct bw_entry *entry)
{
    static char buffer[1 << 20];
    struct bw_xattr_reader *reader = NULL;
    struct bw_file *file = NULL;
    const struct bw_xattr *xattrs;
    size_t count = 0, got = 1;
    if (!entry->inode || entry->inode->transid <= *(uint64_t *)since)
        return NULL;
    printf("%ju %.*s\n", (uintmax_t)entry->inode->size, (int)entry->path_length, entry->path);
    struct bw_error *error = bw_xattr_reader_create(fs, &reader);
    error = error ? error : bw_xattr_reader_read(reader, &entry->place, &xattrs, &count);
    for (size_t i = 0; i < count; i++)
        printf("%s=%.*s\n", xattrs[i].name, xattrs[i].value_length, xattrs[i].value);
    bw_xattr_reader_destroy(reader);
    error = error ? error : bw_file_open(fs, &entry->place, NULL, &file);
    for (uint64_t offset = 0; !error && got; offset += fwrite(buffer, 1, got, stdout))
        error = bw_file_read(file, offset, buffer, sizeof buffer, &got);
    bw_file_close(file);
    return error;
}

int main(int argc, char **argv)
{
    uint64_t since = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    struct bw_fs_options options = {.struct_size = sizeof options, .path_count = 1};
    struct bw_walk_options walk = {.struct_size = sizeof walk, .visit = save, .context = &since};
    options.paths = (const char *const *)argv + 1;
    walk.visit_inodes = true;
    return bw_fs_open(&options, &fs) || bw_walk(fs, &walk, NULL) || fflush(stdout);
}
