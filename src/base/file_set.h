/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A set of files, told apart as files and not by name: links and other nodes of one device are the
 * same file. It keeps what is read from being written to.
 */
#ifndef BW_BASE_FILE_SET_H
#define BW_BASE_FILE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/** All zeros is an empty set. */
struct bw_file_set {
    struct bw_file_identity *files;
    size_t count, capacity;
};

/** Adds the file of that name, if there is one; false if memory runs out. */
bool bw_file_set_add(struct bw_file_set *set, const char *path);
/** Whether a file, as stat() tells of it, is in the set. */
bool bw_file_set_holds(const struct bw_file_set *set, const struct stat *status);
/** Frees the memory and leaves an empty set. */
void bw_file_set_free(struct bw_file_set *set);

#endif
