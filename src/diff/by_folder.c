/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A directory of an image compared with a directory of this machine, path by path. Pending
 * directories are on a stack, and each is entered once, so directories that contain themselves do
 * no harm. Differences are collected, to be passed on in the order of their paths.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/folder.h"
#include "base/pair_set.h"
#include "base/struct_size.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/inode.h"
#include "diff/diff.h"

enum { PIECE = 128 << 10 }; /* bytes of a file that are compared at a time */

/* An entry of a directory of the image. */
struct entry {
    size_t name; /* in the names, with a NUL */
    struct bw_place place;
};

/* A directory that is to be compared; its path begins with a '/', or is empty for the top. */
struct pending {
    struct bw_place place; /* subvolume NULL: only this machine has it */
    bool is_live;
    size_t path, length; /* in the texts */
};

/* A difference; its path is in the texts. */
struct row {
    struct bw_difference difference;
    size_t path;
};

/* A running comparison. */
struct folder_diff {
    struct bw_fs *fs;
    struct bw_diff_options options;
    struct bw_diff_summary summary;
    struct bw_buffer filter;
    struct bw_folder folder;
    struct bw_buffer texts;
    struct pending *stack;
    size_t depth, stack_capacity;
    struct row *rows;
    size_t row_count, row_capacity;
    struct bw_pair_set entered;
    struct bw_directory *directory;
    struct bw_data_reader *data;
    struct bw_xattr_reader *xattrs;
    struct bw_folder_xattrs live_xattrs;
    struct bw_buffer link;
    /* The present directory. */
    struct entry *entries;
    size_t entry_count, entry_capacity;
    struct bw_buffer names;
    struct bw_folder_names live;
    bool is_incomplete; /* the image may have more entries */
};

/* A name on both sides, or on one. */
struct pair {
    const struct entry *entry; /* NULL: only this machine has it */
    bool is_live;
    size_t path, length;
    struct bw_inode inode;
    struct stat status;
    bool is_empty; /* a subvolume within a snapshot, which reads as an empty directory */
};

static const char *path_text(const struct folder_diff *diff, size_t path)
{
    const char *text = diff->texts.data + path;
    return text + (*text == '/');
}

/* Rows. */

static bool is_selected(const struct folder_diff *diff, size_t path, size_t length)
{
    const struct bw_buffer *filter = &diff->filter;
    const char *text = diff->texts.data + path;
    if (!filter->length)
        return true;
    return length >= filter->length && memcmp(text, filter->data, filter->length) == 0 &&
           (length == filter->length || text[filter->length] == '/');
}

/* Whether a requested path may be in a directory. */
static bool may_contain_selected(const struct folder_diff *diff, size_t path, size_t length)
{
    const struct bw_buffer *filter = &diff->filter;
    return is_selected(diff, path, length) ||
           (filter->length > length && filter->data[length] == '/' &&
            memcmp(diff->texts.data + path, filter->data, length) == 0);
}

static uint64_t live_size(const struct pair *pair)
{
    return S_ISDIR(pair->status.st_mode) ? 0 : (uint64_t)pair->status.st_size;
}

static uint64_t image_size(const struct pair *pair)
{
    return S_ISDIR(pair->inode.mode) ? 0 : pair->inode.size;
}

static struct bw_error *add_row(struct folder_diff *diff, const struct pair *pair,
                                struct bw_difference difference)
{
    if (!is_selected(diff, pair->path, pair->length))
        return NULL;
    if (!BW_ARRAY_RESERVE(diff->rows, diff->row_count, diff->row_capacity))
        return bw_error_no_memory();
    difference.path_length = pair->length ? pair->length : 1;
    if (pair->entry) {
        difference.old_type =
            pair->inode.mode ? bw_file_type_of_mode(pair->inode.mode) : pair->entry->place.type;
        difference.old_subvolume = bw_subvolume_id(pair->entry->place.subvolume);
        difference.old_inode = pair->entry->place.inode;
        difference.old_size = image_size(pair);
    }
    if (pair->is_live) {
        difference.type = bw_file_type_of_mode(pair->status.st_mode);
        difference.inode = pair->status.st_ino;
        difference.size = live_size(pair);
    }
    diff->rows[diff->row_count++] = (struct row){difference, pair->path};
    return NULL;
}

static int by_path(const void *left, const void *right, void *texts)
{
    const struct row *a = left, *b = right;
    const char *text = texts;
    return bw_compare_bytes(text + a->path, a->difference.path_length, text + b->path,
                            b->difference.path_length);
}

static void count_difference(struct bw_diff_summary *summary,
                             const struct bw_difference *difference)
{
    summary->added += difference->status == BW_DIFFERENCE_ADDED;
    summary->deleted += difference->status == BW_DIFFERENCE_DELETED;
    summary->modified += difference->status == BW_DIFFERENCE_MODIFIED;
    summary->types += difference->status == BW_DIFFERENCE_TYPE;
    summary->unknown += difference->status == BW_DIFFERENCE_UNKNOWN;
    summary->bytes += difference->bytes;
}

static struct bw_error *visit_rows(struct folder_diff *diff)
{
    if (diff->row_count)
        qsort_r(diff->rows, diff->row_count, sizeof *diff->rows, by_path, diff->texts.data);
    for (size_t i = 0; i < diff->row_count; i++) {
        struct bw_difference *difference = &diff->rows[i].difference;
        difference->path = diff->texts.data + diff->rows[i].path;
        count_difference(&diff->summary, difference);
        BW_TRY(diff->options.visit(diff->options.context, difference));
    }
    return NULL;
}

/* An error of reading: only missing memory ends the comparison. `error` is consumed. */
static struct bw_error *tolerate_error(struct folder_diff *diff, struct bw_error *error)
{
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (error)
        bw_fs_report(diff->fs, BW_DAMAGE, error);
    return NULL;
}

/* Contents. */

struct content {
    struct folder_diff *diff;
    int descriptor;
    const char *path;
    uint32_t sectorsize;
    uint64_t live_size;
    uint64_t bytes;  /* of sectors that differ */
    bool is_unknown; /* something could not be read */
    uint8_t buffer[PIECE];
};

/* Counts the sectors of two pieces that differ; `bytes` is NULL for zeros. */
static void compare_piece(struct content *content, const uint8_t *bytes, const uint8_t *live,
                          size_t length)
{
    static const uint8_t zeros[BW_MAX_NODESIZE];
    for (size_t at = 0; at < length; at += content->sectorsize) {
        const size_t size = length - at < content->sectorsize ? length - at : content->sectorsize;
        if (memcmp(bytes ? bytes + at : zeros, live + at, size) != 0)
            content->bytes += size;
    }
}

static struct bw_error *cannot_read(struct content *content)
{
    content->is_unknown = true;
    return tolerate_error(
        content->diff,
        bw_error_from_errno(errno, "%s/%s", content->diff->folder.path, content->path));
}

/* The length of a hole of the live file. */
static uint64_t hole_length(const struct content *content, uint64_t offset, uint64_t length)
{
    const off_t data = lseek(content->descriptor, (off_t)offset, SEEK_DATA);
    if (data < 0)
        return errno == ENXIO ? length : 0;
    return (uint64_t)data - offset < length ? (uint64_t)data - offset : length;
}

static struct bw_error *compare_part(void *context, const struct bw_data_part *part)
{
    struct content *content = context;
    uint64_t end = part->offset + part->length;
    if (part->kind == BW_DATA_BAD) {
        content->is_unknown = true;
        return tolerate_error(content->diff,
                              bw_error_prefix(bw_error_copy(part->error), "/%s", content->path));
    }
    end = end < content->live_size ? end : content->live_size;
    for (uint64_t at = part->offset, length; at < end; at += length) {
        length = part->kind == BW_DATA_HOLE ? hole_length(content, at, end - at) : 0;
        if (length)
            continue;
        length = end - at < PIECE ? end - at : PIECE;
        const ssize_t got =
            bw_folder_read(content->descriptor, content->buffer, (size_t)length, at);
        if (got < (ssize_t)length)
            return cannot_read(content);
        const uint8_t *bytes = part->bytes ? part->bytes + (at - part->offset) : NULL;
        compare_piece(content, bytes, content->buffer, (size_t)length);
    }
    return NULL;
}

static struct bw_error *compare_contents(struct folder_diff *diff, const struct pair *pair,
                                         struct bw_difference *difference)
{
    const char *path = path_text(diff, pair->path);
    const struct bw_data_file file = bw_data_file_of(&pair->entry->place, &pair->inode);
    BW_AUTO_FREE struct content *content = calloc(1, sizeof *content);
    if (!content)
        return bw_error_no_memory();
    content->diff = diff;
    content->path = path;
    content->live_size = (uint64_t)pair->status.st_size;
    content->sectorsize = diff->fs->superblock.sectorsize;
    struct bw_error *error = bw_folder_open_file(&diff->folder, path, &content->descriptor);
    if (error) {
        difference->unknown |= BW_CHANGE_CONTENT;
        return tolerate_error(diff, error);
    }
    error = bw_data_read(diff->data, &file, 0, file.size, compare_part, content);
    close(content->descriptor);
    difference->bytes += content->bytes;
    difference->changes |= difference->bytes ? BW_CHANGE_CONTENT : 0;
    difference->unknown |= content->is_unknown ? BW_CHANGE_CONTENT : 0;
    return error;
}

static struct bw_error *compare_regular(struct folder_diff *diff, const struct pair *pair,
                                        struct bw_difference *difference)
{
    const uint64_t before = pair->inode.size, after = (uint64_t)pair->status.st_size;
    if (before != after)
        difference->changes |= BW_CHANGE_SIZE;
    difference->bytes = before > after ? before - after : after - before;
    if (diff->options.reading != BW_DIFF_READ_NEVER)
        return compare_contents(diff, pair, difference);
    difference->changes |= before != after ? BW_CHANGE_CONTENT : 0;
    difference->unknown |= before == after && before ? BW_CHANGE_CONTENT : 0;
    return NULL;
}

static struct bw_error *compare_links(struct folder_diff *diff, const struct pair *pair,
                                      struct bw_difference *difference)
{
    BW_AUTO_FREE char *target = NULL;
    size_t length = 0;
    struct bw_error *error = bw_inode_readlink(diff->fs, &pair->entry->place, &target, &length);
    if (!error)
        error = bw_folder_readlink(&diff->folder, path_text(diff, pair->path), &diff->link);
    if (error) {
        difference->unknown |= BW_CHANGE_CONTENT;
        return tolerate_error(diff, error);
    }
    if (length != diff->link.length || memcmp(target, diff->link.data, length) != 0)
        difference->changes |= BW_CHANGE_CONTENT;
    if (length != diff->link.length)
        difference->changes |= BW_CHANGE_SIZE;
    return NULL;
}

/* Attributes. */

static bool has_live_xattr(const struct folder_diff *diff, const struct bw_xattr *xattr)
{
    const struct bw_folder_xattrs *live = &diff->live_xattrs;
    for (size_t i = 0; i < live->count; i++) {
        const char *name = live->text.data + live->items[i].name;
        if (strlen(name) == xattr->name_length &&
            memcmp(name, xattr->name, xattr->name_length) == 0)
            return live->items[i].length == xattr->value_length &&
                   memcmp(live->text.data + live->items[i].value, xattr->value,
                          xattr->value_length) == 0;
    }
    return false;
}

static struct bw_error *compare_xattrs(struct folder_diff *diff, const struct pair *pair,
                                       struct bw_difference *difference)
{
    const struct bw_xattr *xattrs;
    size_t xattr_count, compared = 0;
    bool differs = false;
    struct bw_error *error =
        bw_folder_xattrs_read(&diff->folder, path_text(diff, pair->path), &diff->live_xattrs);
    if (error) {
        difference->unknown |= BW_CHANGE_XATTRS;
        return tolerate_error(diff, error);
    }
    BW_TRY(bw_xattr_reader_read(diff->xattrs, &pair->entry->place, &xattrs, &xattr_count));
    for (size_t i = 0; i < xattr_count; i++) {
        if (!bw_folder_compares_xattr(xattrs[i].name, xattrs[i].name_length))
            continue;
        differs |= !has_live_xattr(diff, &xattrs[i]);
        compared++;
    }
    difference->changes |= differs || compared != diff->live_xattrs.count ? BW_CHANGE_XATTRS : 0;
    return NULL;
}

static struct bw_error *compare_files(struct folder_diff *diff, const struct pair *pair,
                                      struct bw_difference *difference)
{
    const struct bw_inode *inode = &pair->inode;
    const struct stat *status = &pair->status;
    if ((inode->mode ^ status->st_mode) & 07777)
        difference->changes |= BW_CHANGE_MODE;
    if (inode->uid != status->st_uid || inode->gid != status->st_gid)
        difference->changes |= BW_CHANGE_OWNER;
    if (inode->mtime.tv_sec != status->st_mtim.tv_sec ||
        inode->mtime.tv_nsec != status->st_mtim.tv_nsec)
        difference->changes |= BW_CHANGE_TIMES;
    if ((S_ISCHR(inode->mode) || S_ISBLK(inode->mode)) &&
        (bw_inode_major(inode) != major(status->st_rdev) ||
         bw_inode_minor(inode) != minor(status->st_rdev)))
        difference->changes |= BW_CHANGE_CONTENT;
    BW_TRY(compare_xattrs(diff, pair, difference));
    if (S_ISLNK(inode->mode))
        return compare_links(diff, pair, difference);
    return S_ISREG(inode->mode) ? compare_regular(diff, pair, difference) : NULL;
}

/* Entries of both sides. */

/* Reads both files; false if one of them cannot be read, which has been reported. */
static struct bw_error *read_pair(struct folder_diff *diff, struct pair *pair, bool *is_readable)
{
    struct bw_error *error = NULL;
    *is_readable = false;
    if (pair->is_live)
        error = bw_folder_stat(&diff->folder, path_text(diff, pair->path), &pair->status);
    pair->is_empty = pair->entry && pair->entry->place.inode == BW_EMPTY_DIRECTORY;
    if (!error && pair->is_empty)
        pair->inode.mode = S_IFDIR;
    else if (!error && pair->entry)
        error = bw_inode_get(diff->fs, &pair->entry->place, &pair->inode);
    *is_readable = !error;
    return tolerate_error(diff, error);
}

static struct bw_error *compare_pair(struct folder_diff *diff, const struct pair *pair)
{
    struct bw_difference difference = {.status = BW_DIFFERENCE_TYPE};
    const uint64_t before = S_ISREG(pair->inode.mode) ? image_size(pair) : 0;
    const uint64_t after = S_ISREG(pair->status.st_mode) ? live_size(pair) : 0;
    if (!pair->entry || !pair->is_live) {
        difference.status = pair->entry ? BW_DIFFERENCE_DELETED : BW_DIFFERENCE_ADDED;
        difference.status =
            !pair->entry && diff->is_incomplete ? BW_DIFFERENCE_UNKNOWN : difference.status;
        difference.bytes = difference.status == BW_DIFFERENCE_UNKNOWN ? 0 : before + after;
        return add_row(diff, pair, difference);
    }
    if ((pair->inode.mode ^ pair->status.st_mode) & S_IFMT) {
        difference.bytes = before > after ? before : after;
        return add_row(diff, pair, difference);
    }
    if (!pair->is_empty && is_selected(diff, pair->path, pair->length))
        BW_TRY(compare_files(diff, pair, &difference));
    difference.status = difference.changes ? BW_DIFFERENCE_MODIFIED : BW_DIFFERENCE_UNKNOWN;
    return difference.changes || difference.unknown ? add_row(diff, pair, difference) : NULL;
}

static struct bw_error *push_directory(struct folder_diff *diff, const struct pair *pair)
{
    struct pending next = {.path = pair->path, .length = pair->length};
    if (pair->entry && S_ISDIR(pair->inode.mode) && !pair->is_empty)
        next.place = pair->entry->place;
    next.is_live = pair->is_live && S_ISDIR(pair->status.st_mode);
    if ((!next.place.subvolume && !next.is_live) ||
        !may_contain_selected(diff, pair->path, pair->length))
        return NULL;
    if (!BW_ARRAY_RESERVE(diff->stack, diff->depth, diff->stack_capacity))
        return bw_error_no_memory();
    diff->stack[diff->depth++] = next;
    return NULL;
}

static struct bw_error *read_and_compare_pair(struct folder_diff *diff, struct pair *pair)
{
    bool is_readable;
    const size_t kept = diff->row_count + diff->depth;
    if (is_selected(diff, pair->path, pair->length)) {
        diff->summary.entries[0] += pair->entry != NULL;
        diff->summary.entries[1] += pair->is_live;
    }
    BW_TRY(read_pair(diff, pair, &is_readable));
    if (is_readable)
        BW_TRY(compare_pair(diff, pair));
    else
        BW_TRY(add_row(diff, pair, (struct bw_difference){.status = BW_DIFFERENCE_UNKNOWN}));
    if (is_readable)
        BW_TRY(push_directory(diff, pair));
    if (kept == diff->row_count + diff->depth)
        diff->texts.length = pair->path; /* the path is not needed */
    return NULL;
}

/* Directories. */

static int by_name(const void *left, const void *right, void *names)
{
    const struct entry *a = left, *b = right;
    return strcmp((const char *)names + a->name, (const char *)names + b->name);
}

static struct bw_error *add_entries(struct folder_diff *diff, const struct bw_place *place)
{
    BW_TRY(diff->directory
               ? bw_directory_reopen(diff->directory, place, BW_DIRECTORY_START)
               : bw_directory_open(diff->fs, place, BW_DIRECTORY_START, &diff->directory));
    for (const struct bw_directory_entry *entry;;) {
        BW_TRY(bw_directory_next(diff->directory, &entry));
        if (!entry)
            break;
        if (!BW_ARRAY_RESERVE(diff->entries, diff->entry_count, diff->entry_capacity))
            return bw_error_no_memory();
        diff->entries[diff->entry_count++] = (struct entry){diff->names.length, entry->place};
        bw_buffer_append(&diff->names, entry->name, entry->name_length);
        bw_buffer_append_byte(&diff->names, '\0');
    }
    diff->is_incomplete = !bw_directory_is_complete(diff->directory);
    return diff->names.failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *read_entries(struct folder_diff *diff, const struct pending *at)
{
    bool is_new = true;
    diff->entry_count = diff->names.length = 0;
    diff->is_incomplete = false;
    if (!at->place.subvolume)
        return NULL;
    BW_TRY(bw_pair_set_insert(&diff->entered, bw_subvolume_id(at->place.subvolume), at->place.inode,
                              &is_new));
    diff->is_incomplete = !is_new;
    if (!is_new)
        return tolerate_error(diff, bw_error_create(BW_ERROR_CORRUPT,
                                                    "directory %" PRIu64
                                                    " has several names; it is compared once",
                                                    at->place.inode));
    BW_TRY(add_entries(diff, &at->place));
    if (diff->entry_count)
        qsort_r(diff->entries, diff->entry_count, sizeof *diff->entries, by_name, diff->names.data);
    return NULL;
}

static struct bw_error *compare_name(struct folder_diff *diff, const struct pending *at,
                                     const struct entry *entry, const char *live)
{
    struct bw_buffer *texts = &diff->texts;
    const char *name = entry ? diff->names.data + entry->name : live;
    const size_t length = strlen(name);
    struct pair pair = {
        .entry = entry, .is_live = live, .path = texts->length, .length = at->length + 1 + length};
    if (!bw_buffer_reserve(texts, pair.length + 1))
        return bw_error_no_memory();
    bw_buffer_append(texts, texts->data + at->path, at->length);
    bw_buffer_append_byte(texts, '/');
    bw_buffer_append(texts, name, length + 1);
    return read_and_compare_pair(diff, &pair);
}

static struct bw_error *compare_directory(struct folder_diff *diff, const struct pending *at)
{
    struct bw_folder_names *live = &diff->live;
    live->count = 0;
    BW_TRY(read_entries(diff, at));
    struct bw_error *error =
        at->is_live ? bw_folder_list(&diff->folder, path_text(diff, at->path), live) : NULL;
    if (error)
        return tolerate_error(diff, error);
    for (size_t i = 0, j = 0; i < diff->entry_count || j < live->count;) {
        const struct entry *entry = i < diff->entry_count ? &diff->entries[i] : NULL;
        const char *name = j < live->count ? live->text.data + live->offsets[j] : NULL;
        const int order = !entry ? 1 : !name ? -1 : strcmp(diff->names.data + entry->name, name);
        BW_TRY(compare_name(diff, at, order <= 0 ? entry : NULL, order >= 0 ? name : NULL));
        i += order <= 0;
        j += order >= 0;
    }
    return NULL;
}

static struct bw_error *compare_all(struct folder_diff *diff, const struct bw_place *top)
{
    const struct entry entry = {.place = *top};
    struct pair pair = {.entry = &entry, .is_live = true};
    BW_TRY(bw_diff_set_filter(diff->options.path, &diff->filter));
    BW_TRY(bw_data_reader_create(diff->fs, &diff->data));
    BW_TRY(bw_xattr_reader_create(diff->fs, &diff->xattrs));
    bw_buffer_append(&diff->texts, "/", 2); /* the path of the top in rows, and "" before a name */
    BW_TRY(read_and_compare_pair(diff, &pair));
    while (diff->depth) {
        const struct pending at = diff->stack[--diff->depth];
        BW_TRY(compare_directory(diff, &at));
    }
    return visit_rows(diff);
}

static void free_all(struct folder_diff *diff)
{
    bw_folder_close(&diff->folder);
    bw_folder_names_free(&diff->live);
    bw_folder_xattrs_free(&diff->live_xattrs);
    bw_directory_close(diff->directory);
    bw_data_reader_destroy(diff->data);
    bw_xattr_reader_destroy(diff->xattrs);
    bw_pair_set_free(&diff->entered);
    bw_buffer_free(&diff->filter);
    bw_buffer_free(&diff->texts);
    bw_buffer_free(&diff->names);
    bw_buffer_free(&diff->link);
    free(diff->entries);
    free(diff->stack);
    free(diff->rows);
}

struct bw_error *bw_diff_folder(struct bw_fs *fs, const struct bw_place *directory,
                                const char *folder, const struct bw_diff_options *options,
                                struct bw_diff_summary *summary)
{
    struct folder_diff diff = {.fs = fs, .summary = {.by_path = true, .subvolumes = 1}};
    BW_TRY(BW_TAKE_OPTIONS(&diff.options, options));
    BW_TRY(bw_folder_open(folder, &diff.folder));
    struct bw_error *error = compare_all(&diff, directory);
    free_all(&diff);
    if (summary)
        *summary = diff.summary;
    return error;
}
