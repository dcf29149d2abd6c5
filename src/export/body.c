/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timelines. For older versions, each generation is compared with the next newer one, subvolume by
 * subvolume, without the blocks that both share.
 */
#include "export/body.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/utf8.h"
#include "btrfs-walk/diff.h"

/* Appends a name. Bytes that would end a field or a line, and control characters, become \ooo; also
 * the control characters U+0080 to U+009F, in UTF-8 or as single bytes. */
static void append_name(struct bw_buffer *line, const char *bytes, size_t length)
{
    const uint8_t *next = (const uint8_t *)bytes;
    for (size_t step; length; next += step, length -= step) {
        bool plain;
        step = bw_utf8_length(next, length);
        if (step > 1) {
            plain = *next != 0xc2 || next[1] >= 0xa0;
        } else {
            step = 1;
            plain =
                *next >= ' ' && (*next < 0x7f || *next >= 0xa0) && *next != '|' && *next != '\\';
        }
        if (plain)
            bw_buffer_append(line, next, step);
        for (size_t i = 0; i < step && !plain; i++)
            bw_buffer_format(line, "\\%03o", next[i]);
    }
}

struct bw_error *bw_body_write(struct bw_body *body, struct bw_fs *fs,
                               const struct bw_export_entry *item, const char *remark)
{
    struct bw_buffer *line = &body->line;
    const struct bw_inode *inode = &item->inode;
    line->length = 0;
    bw_buffer_format(line, "0|");
    append_name(line, item->path.data, item->path.length);
    if (item->type == S_IFLNK && item->has_inode) {
        BW_AUTO_BUFFER struct bw_buffer target = {0};
        struct bw_error *error = bw_export_entry_read_link(item, fs, &target);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        if (error)
            body->missed(body->context, bw_error_prefix(error, "%s", item->path.data));
        bw_buffer_format(line, " -> ");
        append_name(line, target.data, target.length);
    }

    /* The type is a letter as in the mode, but 'r' for a file, and '-' if it is unknown. */
    char type[BW_MODE_LENGTH], mode[BW_MODE_LENGTH + 1];
    bw_write_mode(type, item->type);
    *bw_write_mode(mode, inode->mode) = '\0';
    char letter = *type;
    if (item->type == S_IFREG)
        letter = 'r';
    else if (letter == '?')
        letter = '-';
    bw_buffer_format(line, "%s|%" PRIu64 "-%" PRIu64 "|%c/%c%s", remark,
                     bw_subvolume_id(item->place.subvolume), item->place.inode, letter,
                     item->has_inode ? letter : '-', mode + 1);
    bw_buffer_format(line, "|%" PRIu32 "|%" PRIu32 "|%" PRIu64, inode->uid, inode->gid,
                     inode->size);
    bw_buffer_format(line, "|%jd|%jd|%jd|%jd\n", (intmax_t)inode->atime.tv_sec,
                     (intmax_t)inode->mtime.tv_sec, (intmax_t)inode->ctime.tv_sec,
                     (intmax_t)inode->otime.tv_sec);
    BW_TRY(bw_buffer_error(line));
    return body->write(body->write_context, line->data, line->length);
}

/* An older generation, and while older versions are searched for, the next newer one. */
struct past {
    struct bw_body *body;
    const struct bw_deleted_options *how;
    struct bw_diff_side older, newer; /* a subvolume in both */
    const char *prefix;               /* its path; "": the top-level one */
    char remark[48];
};

/* Writes the line of an entry of the older generation; `context` is the struct past. */
static struct bw_error *write_past(void *context, const struct bw_entry *entry)
{
    const struct past *past = context;
    const struct bw_export_entry item = {
        .path = {.data = (char *)(uintptr_t)entry->path, .length = entry->path_length},
        .place = entry->place,
        .type = entry->inode->mode & S_IFMT,
        .has_inode = true,
        .inode = *entry->inode,
    };
    return bw_body_write(past->body, past->older.fs, &item, past->remark);
}

struct bw_error *bw_body_write_deleted(struct bw_body *body, struct bw_fs *present,
                                       const struct bw_deleted_options *how, unsigned types)
{
    struct past past = {.body = body, .remark = " (deleted)"};
    struct bw_deleted *deleted;
    const struct bw_deleted_state *state;
    BW_TRY(bw_deleted_open(present, how, &deleted));
    struct bw_error *error;
    while (!(error = bw_deleted_next(deleted, &state)) && state) {
        past.older.fs = state->fs;
        error = bw_deleted_visit(deleted, types, write_past, &past);
        if (error)
            break;
    }
    bw_deleted_close(deleted);
    return error;
}

/* Older versions. */

static bool has_same_times(const struct bw_inode *one, const struct bw_inode *other)
{
    return bw_time_nanoseconds(&one->mtime) == bw_time_nanoseconds(&other->mtime) &&
           bw_time_nanoseconds(&one->ctime) == bw_time_nanoseconds(&other->ctime) &&
           bw_time_nanoseconds(&one->atime) == bw_time_nanoseconds(&other->atime) &&
           one->size == other->size;
}

static bool is_selected(const struct bw_deleted_options *options, const struct bw_entry *entry)
{
    const struct bw_selection *selection = options->selection;
    const size_t below = options->path ? strlen(options->path) : 0;
    if (below > 1 && (strncmp(entry->path, options->path, below) != 0 ||
                      (entry->path_length > below && entry->path[below] != '/')))
        return false;
    return !selection || (!bw_selection_excludes_entry(selection, entry) &&
                          bw_selection_accepts_name(selection, entry) &&
                          bw_selection_accepts_inode(selection, entry));
}

/* Handles a difference; `context` is the struct past. */
static struct bw_error *visit_changed(void *context, const struct bw_difference *difference)
{
    const struct past *past = context;
    const bool is_same = difference->old_inode && difference->old_inode == difference->inode &&
                         difference->old_inode != BW_EMPTY_DIRECTORY;
    if (!is_same)
        return NULL;
    struct bw_inode inode, newer;
    struct bw_place place = {.inode = difference->old_inode, .type = difference->old_type};
    place.subvolume = past->newer.subvolume;
    BW_AUTO_ERROR struct bw_error *error = bw_inode_get(past->newer.fs, &place, &newer);
    place.subvolume = past->older.subvolume;
    if (!error)
        error = bw_inode_get(past->older.fs, &place, &inode);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(error);
    if (error || inode.generation != newer.generation || has_same_times(&inode, &newer))
        return NULL;

    /* The name then, from the top. The path of a subvolume in itself is "/". */
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    bw_buffer_format(&path, "%s", past->prefix);
    if (difference->old_path)
        bw_buffer_append(&path, difference->old_path, difference->old_path_length);
    else
        bw_buffer_append(&path, difference->path, difference->path_length);
    if (path.length > 1 && path.data[path.length - 1] == '/')
        path.length--;
    BW_TRY(bw_buffer_terminate(&path));
    const struct bw_entry entry = {
        .path = path.data, .path_length = path.length - 1, .place = place, .inode = &inode};
    return is_selected(past->how, &entry) ? write_past(context, &entry) : NULL;
}

/* Compares all subvolumes of two generations; lost ones have no older versions. */
static struct bw_error *compare(struct past *past, unsigned threads)
{
    const struct bw_diff_options how = {
        .struct_size = sizeof how,
        .states = true,
        .reading = BW_DIFF_READ_NEVER,
        .threads = threads,
        .visit = visit_changed,
        .context = past,
    };
    const struct bw_subvolume *next = NULL;
    while ((next = bw_subvolume_next(past->older.fs, next))) {
        BW_AUTO_FREE char *path = NULL;
        size_t length = 0;
        struct bw_error *error = bw_subvolume_path(past->older.fs, next, &path, &length);
        past->older.subvolume = next;
        past->newer.subvolume = bw_subvolume_by_id(past->newer.fs, bw_subvolume_id(next));
        past->prefix = length > 1 ? path : "";
        if (!error && past->newer.subvolume)
            error = bw_diff(&past->older, &past->newer, &how, NULL);
        if (error && (error->code == BW_ERROR_NO_MEMORY || error->code == BW_ERROR_SYSTEM ||
                      error->code == BW_ERROR_STOPPED))
            return error;
        bw_error_free(error);
    }
    return NULL;
}

struct bw_error *bw_body_write_versions(struct bw_body *body, struct bw_fs *present,
                                        const struct bw_deleted_options *how, unsigned threads)
{
    struct past past = {.body = body, .how = how, .newer.fs = present};
    struct bw_fs_options images = *how->images;
    struct bw_error *error = NULL;
    images.planned = NULL;
    for (size_t i = 0; i < how->state_count && !error; i++) {
        images.state = how->states[i];
        if (how->progress)
            how->progress(how->context, i + 1, how->state_count);
        BW_AUTO_ERROR struct bw_error *unopened = bw_fs_open(&images, &past.older.fs);
        if (unopened && unopened->code == BW_ERROR_NO_MEMORY)
            error = BW_TAKE(unopened);
        else if (!unopened) {
            snprintf(past.remark, sizeof past.remark, " (generation %" PRIu64 ")",
                     bw_fs_status(past.older.fs).generation);
            error = compare(&past, threads);
            if (past.newer.fs != present)
                bw_fs_close(past.newer.fs);
            past.newer.fs = past.older.fs;
        }
    }
    if (past.newer.fs != present)
        bw_fs_close(past.newer.fs);
    return error;
}
