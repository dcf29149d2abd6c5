/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The hash of a directory of this machine. Directories that are still to be read are on a stack. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/folder.h"
#include "export/tree_hash.h"

enum { PIECE = 256 << 10 };

/* A directory that is being hashed. */
struct folder_hash {
    struct bw_tree_hash *tree;
    struct bw_hash *content;
    struct bw_folder folder;
    void (*missed)(void *context, struct bw_error *error);
    void *context;
    char **stack; /* paths of directories */
    size_t depth, capacity;
    struct bw_folder_xattrs xattrs;
    struct bw_buffer link;
    char bytes[PIECE];
};

/* Only missing memory ends the reading. `error` is consumed. */
static struct bw_error *tolerate_error(struct folder_hash *hash, struct bw_error *error)
{
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error)
        hash->missed(hash->context, error);
    return NULL;
}

static struct bw_error *hash_descriptor(struct folder_hash *hash, const char *path, int descriptor,
                                        char text[BW_HASH_TEXT])
{
    bw_hash_begin(hash->content);
    for (;;) {
        const ssize_t length = read(descriptor, hash->bytes, sizeof hash->bytes);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return bw_error_from_errno(errno, "%s/%s", hash->folder.path, path);
        if (!length)
            break;
        bw_hash_add(hash->content, hash->bytes, (size_t)length);
    }
    bw_hash_end(hash->content, text);
    return NULL;
}

static struct bw_error *hash_contents(struct folder_hash *hash, const char *path,
                                      char text[BW_HASH_TEXT])
{
    int descriptor;
    BW_TRY(bw_folder_open_file(&hash->folder, path, &descriptor));
    struct bw_error *error = hash_descriptor(hash, path, descriptor, text);
    close(descriptor);
    return error;
}

static struct bw_error *add_record(struct folder_hash *hash, const struct bw_tree_hash_entry *entry)
{
    const struct bw_folder_xattrs *xattrs = &hash->xattrs;
    BW_TRY(bw_tree_hash_begin(hash->tree, entry));
    for (size_t i = 0; i < xattrs->count; i++) {
        const char *name = xattrs->text.data + xattrs->items[i].name;
        BW_TRY(bw_tree_hash_add_xattr(hash->tree, name, strlen(name),
                                      xattrs->text.data + xattrs->items[i].value,
                                      xattrs->items[i].length));
    }
    return bw_tree_hash_end(hash->tree);
}

static struct bw_error *add_entry(struct folder_hash *hash, const char *path,
                                  const struct stat *status)
{
    char digits[BW_HASH_TEXT] = "";
    struct bw_tree_hash_entry entry = {
        .path = path,
        .path_length = strlen(path),
        .has_attributes = !bw_folder_is_empty_subvolume(&hash->folder, path, status),
        .mode = status->st_mode,
        .uid = status->st_uid,
        .gid = status->st_gid,
        .mtime = status->st_mtim,
        .major = major(status->st_rdev),
        .minor = minor(status->st_rdev),
        .content = digits,
    };
    BW_TRY(bw_folder_xattrs_read(&hash->folder, path, &hash->xattrs));
    if (S_ISREG(status->st_mode))
        BW_TRY(hash_contents(hash, path, digits));
    entry.content_length = strlen(digits);
    if (S_ISLNK(status->st_mode)) {
        BW_TRY(bw_folder_readlink(&hash->folder, path, &hash->link));
        entry.content = hash->link.data;
        entry.content_length = hash->link.length;
    }
    return add_record(hash, &entry);
}

static struct bw_error *push_directory(struct folder_hash *hash, const char *path)
{
    if (!BW_ARRAY_RESERVE(hash->stack, hash->depth, hash->capacity))
        return bw_error_no_memory();
    hash->stack[hash->depth] = strdup(path);
    return hash->stack[hash->depth++] ? NULL : bw_error_no_memory();
}

static struct bw_error *add_path(struct folder_hash *hash, const char *path)
{
    struct stat status;
    struct bw_error *error = bw_folder_stat(&hash->folder, path, &status);
    if (!error)
        error = add_entry(hash, path, &status);
    BW_TRY(tolerate_error(hash, error));
    return !error && S_ISDIR(status.st_mode) ? push_directory(hash, path) : NULL;
}

static struct bw_error *read_directory(struct folder_hash *hash, const char *path)
{
    struct bw_folder_names names = {.count = 0};
    BW_AUTO_BUFFER struct bw_buffer below = {0};
    struct bw_error *error = tolerate_error(hash, bw_folder_list(&hash->folder, path, &names));
    for (size_t i = 0; i < names.count && !error; i++) {
        below.length = 0;
        bw_buffer_format(&below, "%s%s%s", path, *path ? "/" : "",
                         names.text.data + names.offsets[i]);
        bw_buffer_append_byte(&below, '\0');
        error = below.failed ? bw_error_no_memory() : add_path(hash, below.data);
    }
    bw_folder_names_free(&names);
    return error;
}

static struct bw_error *read_all(struct folder_hash *hash)
{
    BW_TRY(bw_hash_create(BW_HASH_SHA256, &hash->content));
    BW_TRY(push_directory(hash, ""));
    while (hash->depth) {
        BW_AUTO_FREE char *path = hash->stack[--hash->depth];
        BW_TRY(read_directory(hash, path));
    }
    return NULL;
}

struct bw_error *bw_tree_hash_add_folder(struct bw_tree_hash *tree, const char *path,
                                         void (*missed)(void *context, struct bw_error *error),
                                         void *context)
{
    struct folder_hash *hash = calloc(1, sizeof *hash);
    if (!hash)
        return bw_error_no_memory();
    hash->tree = tree;
    hash->missed = missed;
    hash->context = context;
    struct bw_error *error = bw_folder_open(path, &hash->folder);
    if (!error)
        error = read_all(hash);
    while (hash->depth)
        free(hash->stack[--hash->depth]);
    bw_folder_close(&hash->folder);
    bw_folder_xattrs_free(&hash->xattrs);
    bw_buffer_free(&hash->link);
    bw_hash_destroy(hash->content);
    free(hash->stack);
    free(hash);
    return error;
}
