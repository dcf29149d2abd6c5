/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The comparison of send streams with the image they were made from: whether a receiver gets
 * exactly the subvolumes of the image. The library compares names, types, contents, permissions,
 * owners, times of modification and extended attributes. A walk then compares the times of access,
 * and which names are hard links of one file. Differences are findings.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "btrfs-walk/diff.h"
#include "btrfs-walk/stream.h"
#include "btrfs-walk/walk.h"
#include "cli/check/check.h"

/* Inode numbers of the same file. */
struct twins {
    uint64_t streamed, stored;
};

struct comparison {
    struct check_run *check;
    struct cmd_common own; /* settings of the image; its messages name it */
    struct bw_fs *image;
    const struct bw_subvolume *stored, *streamed;
    char *top; /* path of `streamed` */
    struct bw_buffer path, message;
    struct twins *twins; /* files with hard links */
    size_t count, capacity;
    struct bw_map by_streamed, by_stored; /* inode to its number in `twins` */
};

/* Findings. */

/* Sets comparison->path: `path` begins at the top of the subvolume. */
static struct bw_error *set_path(struct comparison *comparison, const char *path, size_t length)
{
    comparison->path.length = 0;
    bw_buffer_append(&comparison->path, comparison->top, strlen(comparison->top));
    if (length > 1)
        bw_buffer_append(&comparison->path, path, length);
    return comparison->path.failed ? bw_error_no_memory() : NULL;
}

/* Reports the message, about the file at comparison->path. */
static struct bw_error *report_difference(struct comparison *comparison, enum check_difference code,
                                          uint64_t inode)
{
    const struct bw_place place = {.subvolume = comparison->streamed, .inode = inode};
    const struct bw_bytes path = {comparison->path.data, comparison->path.length};
    bw_buffer_append_byte(&comparison->message, '\0');
    struct bw_error *error =
        comparison->message.failed
            ? bw_error_no_memory()
            : check_report_difference(comparison->check, code, path, comparison->message.data,
                                      inode ? &place : NULL);
    comparison->message.length = 0;
    return error;
}

static void list_changes(struct bw_buffer *message, unsigned changes)
{
    const char *separator = "";
    for (unsigned bit = 0; bit < BW_DIFFERENCE_CHANGES; bit++) {
        if (!(changes >> bit & 1))
            continue;
        bw_buffer_format(message, "%s%s", separator, bw_difference_change_name(bit));
        separator = ", ";
    }
}

static struct bw_error *on_difference(void *context, const struct bw_difference *difference)
{
    struct comparison *comparison = context;
    struct bw_buffer *message = &comparison->message;
    BW_TRY(set_path(comparison, difference->path, difference->path_length));
    switch (difference->status) {
    case BW_DIFFERENCE_DELETED:
        if (difference->old_inode == BW_EMPTY_DIRECTORY) /* streams lack nested subvolumes */
            return NULL;
        bw_buffer_format(message, "it is not in the streams");
        return report_difference(comparison, CHECK_STREAM_MISSING, 0);
    case BW_DIFFERENCE_ADDED:
        bw_buffer_format(message, "it is not in the subvolume");
        return report_difference(comparison, CHECK_STREAM_EXTRA, difference->inode);
    case BW_DIFFERENCE_UNKNOWN:
        comparison->check->unfinished = true;
        return NULL;
    default:
        bw_buffer_format(message, "it differs in: ");
        list_changes(message, difference->changes);
        if (difference->status == BW_DIFFERENCE_TYPE)
            bw_buffer_format(message, "%stype", difference->changes ? ", " : "");
        return report_difference(comparison, CHECK_STREAM_CHANGED, difference->inode);
    }
}

/* Times of access, and hard links. */

/* Whether all names of the one inode, so far, were names of the other one. */
static struct bw_error *is_same_link(struct comparison *comparison, uint64_t streamed,
                                     uint64_t stored, bool *is_same)
{
    const uint32_t known[2] = {bw_map_get(&comparison->by_streamed, streamed),
                               bw_map_get(&comparison->by_stored, stored)};
    *is_same = known[0] == known[1];
    if (known[0] != UINT32_MAX || known[1] != UINT32_MAX)
        return NULL;
    if (!BW_ARRAY_RESERVE(comparison->twins, comparison->count, comparison->capacity) ||
        !bw_map_put(&comparison->by_streamed, streamed, (uint32_t)comparison->count) ||
        !bw_map_put(&comparison->by_stored, stored, (uint32_t)comparison->count))
        return bw_error_no_memory();
    comparison->twins[comparison->count++] = (struct twins){streamed, stored};
    return NULL;
}

static struct bw_error *compare_inodes(struct comparison *comparison, const struct bw_entry *entry,
                                       const struct bw_place *stored, const struct bw_inode *inode)
{
    const struct timespec *const times[2] = {&entry->inode->atime, &inode->atime};
    const bool links = entry->inode->link_count > 1 && entry->place.type != BW_FILE_DIRECTORY;
    bool is_same = true;
    if (links)
        BW_TRY(is_same_link(comparison, entry->place.inode, stored->inode, &is_same));
    if (!is_same)
        bw_buffer_format(&comparison->message,
                         "it is a hard link of other files than in the subvolume");
    else if (times[0]->tv_sec != times[1]->tv_sec || times[0]->tv_nsec != times[1]->tv_nsec)
        bw_buffer_format(&comparison->message, "it differs in: time of access");
    if (!comparison->message.length)
        return NULL;
    BW_TRY(set_path(comparison, entry->path, entry->path_length));
    return report_difference(comparison, CHECK_STREAM_CHANGED, entry->place.inode);
}

/* Finds the same path in the image. Missing files were already reported. */
static struct bw_error *on_entry(void *context, const struct bw_entry *entry)
{
    struct comparison *comparison = context;
    struct bw_buffer *path = &comparison->path;
    struct bw_place stored;
    struct bw_inode inode;
    if (!entry->inode)
        return NULL;
    path->length = 0;
    bw_buffer_append(path, entry->path, entry->path_length);
    bw_buffer_append_byte(path, '\0');
    if (path->failed)
        return bw_error_no_memory();
    struct bw_error *error =
        bw_lookup(comparison->image, comparison->stored, path->data, false, &stored);
    if (!error)
        error = bw_inode_get(comparison->image, &stored, &inode);
    if (!error)
        return compare_inodes(comparison, entry, &stored, &inode);
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    comparison->check->unfinished |= error->code != BW_ERROR_NOT_FOUND;
    bw_error_free(error);
    return NULL;
}

static void forget_twins(struct comparison *comparison)
{
    bw_map_clear(&comparison->by_streamed);
    bw_map_clear(&comparison->by_stored);
    comparison->count = 0;
}

static struct bw_error *compare_pair(struct comparison *comparison)
{
    struct bw_fs *streams = comparison->check->session.fs;
    const struct bw_diff_side sides[2] = {
        {.fs = comparison->image, .subvolume = comparison->stored},
        {.fs = streams, .subvolume = comparison->streamed}};
    const struct bw_diff_options how = {.struct_size = sizeof how,
                                        .by_path = true,
                                        .reading = BW_DIFF_READ_ALWAYS,
                                        .visit = on_difference,
                                        .context = comparison};
    const struct bw_walk_options walk = {.struct_size = sizeof walk,
                                         .subvolume = comparison->top,
                                         .nested = BW_NESTED_SKIP,
                                         .types = BW_WALK_ALL,
                                         .visit = on_entry,
                                         .visit_inodes = true,
                                         .context = comparison};
    BW_TRY(bw_diff(&sides[0], &sides[1], &how, NULL));
    struct bw_error *error = bw_walk(streams, &walk, NULL);
    forget_twins(comparison);
    return error;
}

/* Which subvolumes to compare. */

static struct bw_error *find_send_uuid(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                       uint8_t uuid[BW_UUID_SIZE])
{
    struct bw_send_identity identity;
    BW_TRY(bw_send_identity(fs, subvolume, &identity));
    memcpy(uuid, identity.uuid, BW_UUID_SIZE);
    return NULL;
}

/* Finds the subvolume with an identity; NULL if no subvolume has it, or the UUID is not set. */
static struct bw_error *find_identity(struct bw_fs *fs, const uint8_t uuid[BW_UUID_SIZE],
                                      const struct bw_subvolume **found)
{
    static const uint8_t none[BW_UUID_SIZE];
    uint8_t own[BW_UUID_SIZE];
    *found = NULL;
    if (memcmp(uuid, none, sizeof none) == 0)
        return NULL;
    while ((*found = bw_subvolume_next(fs, *found))) {
        struct bw_error *error = find_send_uuid(fs, *found, own);
        if (!error && memcmp(own, uuid, BW_UUID_SIZE) == 0)
            return NULL;
        bw_error_free(error); /* a subvolume that is damaged has no identity */
    }
    return NULL;
}

/* Sets the subvolume of the streams, and its path. */
static struct bw_error *set_streamed(struct comparison *comparison,
                                     const struct bw_subvolume *streamed)
{
    comparison->streamed = streamed;
    free(BW_TAKE(comparison->top));
    return bw_subvolume_path(comparison->check->session.fs, streamed, &comparison->top, NULL);
}

/* A stream of a writable subvolume has a new UUID. Then this uses the last subvolume. */
static struct bw_error *compare_named(struct comparison *comparison, const char *name)
{
    struct bw_fs *streams = comparison->check->session.fs;
    const struct bw_subvolume *streamed;
    uint8_t uuid[BW_UUID_SIZE];
    BW_TRY(bw_subvolume_by_name(comparison->image, name, &comparison->stored));
    BW_TRY(find_send_uuid(comparison->image, comparison->stored, uuid));
    BW_TRY(find_identity(streams, uuid, &streamed));
    for (const struct bw_subvolume *next = NULL; !streamed;)
        if (!bw_subvolume_next(streams, next = bw_subvolume_next(streams, next)))
            streamed = next;
    BW_TRY(set_streamed(comparison, streamed));
    return compare_pair(comparison);
}

static struct bw_error *compare_identified(struct comparison *comparison,
                                           const struct bw_subvolume *streamed)
{
    uint8_t uuid[BW_UUID_SIZE];
    BW_TRY(set_streamed(comparison, streamed));
    BW_TRY(find_send_uuid(comparison->check->session.fs, streamed, uuid));
    BW_TRY(find_identity(comparison->image, uuid, &comparison->stored));
    if (comparison->stored)
        return compare_pair(comparison);
    bw_buffer_format(&comparison->message, "no subvolume of %s has its UUID",
                     comparison->check->settings->stream_of[0]);
    BW_TRY(set_path(comparison, "", 0));
    return report_difference(comparison, CHECK_STREAM_UNMATCHED, 0);
}

static struct bw_error *compare_all(struct comparison *comparison)
{
    struct check_run *check = comparison->check;
    const struct bw_subvolume *top = bw_subvolume_by_id(check->session.fs, BW_TOP_SUBVOLUME);
    if (check->settings->subvolume)
        return compare_named(comparison, check->settings->subvolume);
    for (const struct bw_subvolume *next = NULL;
         (next = bw_subvolume_next(check->session.fs, next));)
        if (next != top)
            BW_TRY(compare_identified(comparison, next));
    return NULL;
}

static void free_comparison(struct comparison *comparison)
{
    bw_fs_close(comparison->image);
    free(comparison->top);
    free(comparison->twins);
    bw_map_free(&comparison->by_streamed);
    bw_map_free(&comparison->by_stored);
    bw_buffer_free(&comparison->path);
    bw_buffer_free(&comparison->message);
}

struct bw_error *check_compare_streams(struct check_run *check)
{
    struct comparison comparison = {.check = check};
    struct cmd_common common = *check->common;
    if (!bw_fs_is_stream(check->session.fs))
        return bw_error_create(BW_ERROR_USAGE, "--stream-of needs send streams as operands");
    check_begin_pass(check, check_comparison_passes[CHECK_STREAM_PASS].name);
    common.messages.is_selected = NULL;
    if (!common.input.log_given)
        common.input.log = BW_LOG_REPLAY;
    struct bw_error *error = cmd_open_other(&common, &comparison.own, &comparison.image);
    if (!error)
        error = compare_all(&comparison);
    if (comparison.image)
        check->unfinished |= bw_fs_status(comparison.image).damages > 0;
    free_comparison(&comparison);
    return error;
}
