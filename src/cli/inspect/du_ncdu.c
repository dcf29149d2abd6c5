/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sizes of files for ncdu. A directory is an array of objects and arrays; its first object is the
 * directory itself. Source: https://dev.yorhel.nl/ncdu/jsonfmt (version 1.2).
 *
 * ncdu counts hard links once in each directory above them, and shows what directories share. So
 * the shared data of a file becomes a hard link: files with the same shared data have the same
 * inode number, which is the hash of the addresses. A file that also has exclusive data becomes
 * two entries.
 *
 * bw_du() passes a directory on after its contents; here it comes before them, when its first file
 * does. Directories may be deeper than base/json can nest, so their brackets are written here.
 */
#include "cli/inspect/du_ncdu.h"

#include <time.h>

#include "base/json.h"
#include "cli/common/options.h"

#ifndef BW_VERSION
#define BW_VERSION "unknown"
#endif

/* An entry of the file. */
struct item {
    const char *name, *suffix; /* suffix: "", or appended to the name */
    size_t length;             /* of the name */
    uint64_t size;
    uint64_t inode; /* of a hard link; otherwise 0 */
};

static void append_item(struct du_ncdu *ncdu, const struct item *item)
{
    BW_AUTO_BUFFER struct bw_buffer name = {0};
    struct bw_json json = bw_json_start(&ncdu->text, false);
    bw_buffer_append(&name, item->name, item->length);
    bw_buffer_append(&name, item->suffix, strlen(item->suffix));
    ncdu->text.failed |= name.failed;
    bw_json_begin_object(&json, NULL);
    bw_json_raw_bytes(&json, "name", name.data ? name.data : "", name.length);
    if (item->size) {
        bw_json_number(&json, "asize", item->size);
        bw_json_number(&json, "dsize", item->size);
    }
    if (item->inode) {
        bw_json_number(&json, "ino", item->inode);
        bw_json_bool(&json, "hlnkc", true);
    }
    bw_json_end(&json);
}

static void append_text(struct du_ncdu *ncdu, const char *text)
{
    bw_buffer_append(&ncdu->text, text, strlen(text));
}

static void begin_file(struct du_ncdu *ncdu)
{
    struct bw_json json = bw_json_start(&ncdu->text, false);
    append_text(ncdu, "[1,2,");
    bw_json_begin_object(&json, NULL);
    bw_json_text(&json, "progname", "btrfs-walk");
    bw_json_text(&json, "progver", BW_VERSION);
    bw_json_number(&json, "timestamp", (uint64_t)time(NULL));
    bw_json_end(&json);
    append_text(ncdu, ",\n[");
    append_item(ncdu, &(struct item){ncdu->title, "", strlen(ncdu->title), 0, 0});
    ncdu->begun = true;
}

/* The bytes of `folder` that `path` begins with, in whole names. */
static size_t common_part(const struct bw_buffer *folder, const char *path, size_t length)
{
    size_t same = 0;
    for (size_t i = 0; i < folder->length && i < length && folder->data[i] == path[i]; i++)
        if (path[i] == '/')
            same = i + 1;
    return same;
}

/* Closes and opens directories until the one with this path, whose names each end with a '/', is
 * open. */
static void switch_directory(struct du_ncdu *ncdu, const char *path, size_t length)
{
    const size_t common = common_part(&ncdu->folder, path, length);
    for (size_t i = common; i < ncdu->folder.length; i++)
        if (ncdu->folder.data[i] == '/')
            append_text(ncdu, "]");
    ncdu->folder.length = common;
    for (size_t at = common; at < length;) {
        const size_t name = (size_t)((const char *)memchr(path + at, '/', length - at) - path) - at;
        append_text(ncdu, ",\n[");
        append_item(ncdu, &(struct item){path + at, "", name, 0, 0});
        at += name + 1;
    }
    bw_buffer_append(&ncdu->folder, path + common, length - common);
}

static void append_file(struct du_ncdu *ncdu, const char *name, size_t length,
                        const struct bw_du_entry *entry)
{
    const uint64_t shared = entry->sharing_known ? entry->shared : 0;
    const uint64_t own = entry->total - shared;
    struct item item = {name, "", length, own, 0};
    if (own || !shared) {
        append_text(ncdu, ",\n");
        append_item(ncdu, &item);
        item.suffix = " (shared)";
    }
    if (!shared)
        return;
    item.size = shared;
    item.inode = entry->shared_id >> 1 | 1; /* must fit a signed number, and not be 0 */
    append_text(ncdu, ",\n");
    append_item(ncdu, &item);
}

/* The part of the path below the start: its last `depth` names, and where the name begins. */
static const char *below_start(const struct bw_du_entry *entry, const char **name)
{
    const char *at = entry->path + entry->path_length;
    uint64_t names = entry->depth ? entry->depth : 1;
    for (*name = NULL; at > entry->path; at--)
        if (at[-1] == '/') {
            *name = *name ? *name : at;
            if (!--names)
                break;
        }
    *name = *name ? *name : at;
    return at;
}

static void append_directory(struct du_ncdu *ncdu, const struct bw_du_entry *entry,
                             const char *path)
{
    BW_AUTO_BUFFER struct bw_buffer folder = {0};
    bw_buffer_append(&folder, path, (size_t)(entry->path + entry->path_length - path));
    bw_buffer_append_byte(&folder, '/');
    ncdu->text.failed |= folder.failed;
    if (!folder.failed)
        switch_directory(ncdu, folder.data, folder.length);
}

struct bw_error *du_ncdu_write(void *context, const struct bw_du_entry *entry)
{
    struct du_ncdu *ncdu = context;
    const char *name, *path = below_start(entry, &name);
    ncdu->text.length = 0;
    if (!ncdu->begun)
        begin_file(ncdu);
    if (entry->place.type != BW_FILE_DIRECTORY) {
        switch_directory(ncdu, path, (size_t)(name - path));
        append_file(ncdu, name, (size_t)(entry->path + entry->path_length - name), entry);
    } else if (entry->depth) {
        append_directory(ncdu, entry, path);
    }
    return ncdu->text.failed || ncdu->folder.failed
               ? bw_error_no_memory()
               : cmd_write(ncdu->output, ncdu->text.data, ncdu->text.length);
}

struct bw_error *du_ncdu_end(struct du_ncdu *ncdu)
{
    ncdu->text.length = 0;
    if (!ncdu->begun)
        begin_file(ncdu);
    switch_directory(ncdu, "", 0);
    append_text(ncdu, "]]\n");
    return ncdu->text.failed ? bw_error_no_memory()
                             : cmd_write(ncdu->output, ncdu->text.data, ncdu->text.length);
}

void du_ncdu_free(struct du_ncdu *ncdu)
{
    bw_buffer_free(&ncdu->text);
    bw_buffer_free(&ncdu->folder);
}
