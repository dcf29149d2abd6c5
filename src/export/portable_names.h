/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names that Windows accepts, and with it NTFS, FAT and exFAT, for entries of an image that have
 * others. An extraction writes into a file system of which it knows little: NTFS takes on Linux
 * what Windows cannot open later. Therefore all names follow the same rules, those of Windows:
 *
 * - a control character, one of " * : < > ? \ |, and each byte that is not UTF-8 becomes '_';
 * - so does a space or dot at the end;
 * - '_' follows a reserved word such as CON or LPT1, also in con.txt;
 * - of names in one directory that differ only in case, all but the first get a number:
 * README_2.txt.
 *
 * A path gets the same new path every time it is passed, and so do the directories in it. The new
 * names depend on the order of the entries, so an extraction that is repeated arrives at the same.
 */
#ifndef BW_EXPORT_PORTABLE_NAMES_H
#define BW_EXPORT_PORTABLE_NAMES_H

#include <locale.h>

#include "base/buffer.h"
#include "base/hash_table.h"

/** The names that were given so far: about 25 bytes of memory each. Set `changed` and `context`;
 * the rest begins as zeros. */
struct bw_portable_names {
    /** Receives each name that differs from that in the image: the path up to and with it, and the
     * new path. Called once for a directory, not for the paths in it. */
    struct bw_error *(*changed)(void *context, size_t length, const char *path, size_t path_length);
    void *context;
    locale_t characters;      /**< for the case of letters; 0: only of ASCII */
    struct bw_key_map taken;  /**< hashes of their names, by hashes of their new paths without case
                               */
    struct bw_buffer key;     /**< the bytes to be hashed */
    struct bw_buffer name;    /**< the new name */
    struct bw_buffer last;    /**< the directory of the previous path */
    struct bw_buffer renamed; /**< its new path */
};

/** Loads the table of letters, which may read a file. */
void bw_portable_names_open(struct bw_portable_names *names);
void bw_portable_names_close(struct bw_portable_names *names);

/** Sets `result` to the new path for a relative path, followed by a NUL that its length does not
 * include. */
struct bw_error *bw_portable_names_find(struct bw_portable_names *names, const char *path,
                                        size_t length, struct bw_buffer *result);

#endif
