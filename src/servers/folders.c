/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Folders with send streams. A file belongs to them if it begins as a stream, after decompression
 * if necessary, or if a helper may decompress it.
 */
#include "servers/folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "btrfs-walk/image.h"
#include "ondisk/foreign.h"

bool bw_is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

size_t bw_unpack_beginning(const struct bw_packing *packing, const uint8_t *bytes, size_t length,
                           uint8_t *output, size_t wanted)
{
    struct bw_unpacker *unpacker = NULL;
    struct bw_unpacking run = {bytes, length, output, wanted};
    struct bw_error *error = bw_unpacker_create(packing, &unpacker);
    if (!error)
        error = bw_unpack(unpacker, &run);
    bw_error_free(error);
    bw_unpacker_destroy(unpacker);
    return wanted - run.output_length;
}

bool bw_begins_as_stream(int descriptor)
{
    enum { HEAD = 256 << 10 }; /* decompression may have to see a whole block */
    const char magic[] = BW_STREAM_MAGIC;
    uint8_t beginning[sizeof magic];
    BW_AUTO_FREE uint8_t *bytes = malloc(HEAD);
    const ssize_t got = bytes ? read(descriptor, bytes, HEAD) : 0;
    if (got < (ssize_t)sizeof magic)
        return false;
    const struct bw_packing *packing = bw_packing_find(bytes, (size_t)got);
    if (!packing)
        return memcmp(bytes, magic, sizeof magic) == 0;
    const size_t length =
        bw_unpack_beginning(packing, bytes, (size_t)got, beginning, sizeof beginning);
    return length == sizeof beginning && memcmp(beginning, magic, sizeof magic) == 0;
}

/* Whether a file in a folder is a stream, or may be one that a helper decompresses. */
static bool may_be_stream(int folder, const char *name)
{
    uint8_t bytes[64];
    struct stat status;
    if (*name == '.' || fstatat(folder, name, &status, 0) || !S_ISREG(status.st_mode))
        return false;
    const int descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    bool found = bw_begins_as_stream(descriptor);
    if (!found && lseek(descriptor, 0, SEEK_SET) == 0) {
        const ssize_t got = read(descriptor, bytes, sizeof bytes);
        if (got > 0 && !bw_packing_find(bytes, (size_t)got)) {
            const struct bw_foreign *format = bw_foreign_by_magic(bytes, (size_t)got);
            found = format && format->helper == BW_HELPER_NBDKIT;
        }
    }
    close(descriptor);
    return found;
}

bool bw_folder_holds_streams(const char *path)
{
    size_t streams = 0, others = 0;
    DIR *listing = opendir(path);
    if (!listing)
        return false;
    for (const struct dirent *entry; (entry = readdir(listing));) {
        const bool is_stream = may_be_stream(dirfd(listing), entry->d_name);
        streams += is_stream;
        others += !is_stream && *entry->d_name != '.';
    }
    closedir(listing);
    return streams && !others;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct bw_error *bw_stream_folders_expand(const char *const *given, size_t count,
                                          struct bw_strings *list)
{
    for (size_t i = 0; i < count; i++) {
        const char *folder = given[i];
        if (!bw_is_folder(folder)) {
            BW_TRY(bw_strings_push_copy(list, folder));
            continue;
        }

        /* The send streams in a folder, in the order of their names. */
        const size_t before = list->count;
        struct bw_error *error = NULL;
        DIR *listing = opendir(folder);
        if (!listing)
            return bw_error_from_errno(errno, "cannot open %s", folder);
        for (const struct dirent *entry; !error && (entry = readdir(listing));) {
            char *path;
            if (!may_be_stream(dirfd(listing), entry->d_name))
                continue;
            error = bw_strings_reserve(list, 1);
            if (!error && asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
                error = bw_error_no_memory();
            if (!error)
                list->items[list->count++] = path;
        }
        closedir(listing);
        BW_TRY(error);
        if (list->count == before)
            return bw_error_about(
                bw_error_create(BW_ERROR_USAGE,
                                "%s is a directory, not an image, and contains no send stream",
                                folder),
                folder);
        qsort(list->items + before, list->count - before, sizeof *list->items, by_name);
    }
    return NULL;
}
