/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The comparison with a list: a separate pass after the library's passes. It walks all files, and
 * hashes those whose hash is in the list. Differences are findings. Unlike the check, it reads the
 * files as after a mount, with the log replayed, unless --log=ignore is given.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "btrfs-walk/file.h"
#include "cli/check/check.h"
#include "cli/export/hashing.h"
#include "export/entry_queue.h"
#include "base/hash.h"

/*
 * Lists of sha512sum and b2sum look the same. To find out which it is, both hashes of a few small
 * files are computed until one matches the list. If all of these files have changed, the name of
 * the list decides.
 */

enum { MOST_FILES = 64, MOST_BYTES = 1 << 20 };

/* One of the two algorithms, applied to a file. */
struct candidate {
    enum bw_hash_algorithm algorithm;
    struct bw_hash *hash;
    bool is_bad;
};

static struct bw_error *add_part(void *context, const struct bw_data_part *part)
{
    struct candidate *candidate = context;
    if (part->kind == BW_DATA_BYTES)
        bw_hash_add(candidate->hash, part->bytes, (size_t)part->length);
    else if (part->kind == BW_DATA_HOLE)
        bw_hash_add_zeros(candidate->hash, part->length);
    candidate->is_bad |= part->kind == BW_DATA_BAD;
    return NULL;
}

static struct bw_error *has_hash(struct bw_file *file, struct candidate *candidate,
                                 const char *wanted, bool *same)
{
    char text[BW_HASH_TEXT];
    BW_TRY(bw_hash_create(candidate->algorithm, &candidate->hash));
    struct bw_error *error = bw_file_read_parts(file, 0, UINT64_MAX, add_part, candidate);
    if (!error)
        bw_hash_end(candidate->hash, text);
    bw_hash_destroy(candidate->hash);
    *same = !error && !candidate->is_bad && strcasecmp(text, wanted) == 0;
    return error;
}

/* Sets `found` if one of the two hashes matches the entry. */
static struct bw_error *try_file(struct bw_fs *fs, const struct bw_place *place, const char *wanted,
                                 enum bw_hash_algorithm *algorithm, bool *found)
{
    static const enum bw_hash_algorithm both[] = {BW_HASH_SHA512, BW_HASH_BLAKE2B};
    struct bw_file *file;
    BW_TRY(bw_file_open(fs, place, NULL, &file));
    struct bw_error *error = NULL;
    for (size_t i = 0; i < 2 && !error && !*found; i++) {
        struct candidate candidate = {.algorithm = *algorithm = both[i]};
        error = has_hash(file, &candidate, wanted, found);
    }
    bw_file_close(file);
    return error;
}

static struct bw_error *try_entry(struct bw_fs *fs, const char *prefix,
                                  const struct bw_manifest_entry *entry,
                                  enum bw_hash_algorithm *algorithm, bool *found)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    struct bw_place place;
    struct bw_inode inode;
    bw_buffer_format(&path, "%s/%s%c", prefix, entry->path, '\0');
    if (path.failed)
        return bw_error_no_memory();
    BW_TRY(bw_lookup(fs, bw_subvolume_by_id(fs, BW_TOP_SUBVOLUME), path.data, false, &place));
    BW_TRY(bw_inode_get(fs, &place, &inode));
    return place.type == BW_FILE_REGULAR && inode.size <= MOST_BYTES
               ? try_file(fs, &place, entry->hash, algorithm, found)
               : NULL;
}

static enum bw_hash_algorithm algorithm_of_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    return strcasestr(name, "b2") || strcasestr(name, "blake") ? BW_HASH_BLAKE2B : BW_HASH_SHA512;
}

static struct bw_error *determine_list_algorithm(struct check_run *check, struct bw_fs *fs,
                                                 const char *prefix)
{
    struct bw_manifest *list = &check->list;
    enum bw_hash_algorithm algorithm;
    bool found = false;
    unsigned tries = 0;
    for (size_t i = 0; i < list->count && tries < MOST_FILES && !found; i++) {
        if (!list->entries[i].is_doubtful)
            continue;
        struct bw_error *error = try_entry(fs, prefix, &list->entries[i], &algorithm, &found);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return error;
        bw_error_free(error); /* the comparison will report errors of this file */
        tries++;
    }
    if (list->is_doubtful)
        bw_manifest_settle(list, found ? algorithm : algorithm_of_name(check->settings->manifest));
    return NULL;
}

/* A running comparison. */
struct comparison {
    struct check_run *check;
    struct bw_fs *fs;
    struct bw_entry_queue *queue;
    struct cmd_hashing hashing;
    struct bw_buffer message;
    char *top;               /* path of the subvolume of --subvol; "" for the top-level subvolume */
    bool list_begins_at_top; /* the paths in the list begin with `top` */
    /* Paths from the top-level subvolume on, with a NUL: of the file that ends, and of the next one
     * to read, which another thread may look up at the same time. */
    struct bw_buffer path, next_path;
};

/* Findings. */

static struct bw_error *report_difference(struct comparison *comparison, enum check_difference code,
                                          const char *path, const struct bw_export_entry *item)
{
    bw_buffer_append_byte(&comparison->message, '\0');
    return comparison->message.failed
               ? bw_error_no_memory()
               : check_report_difference(comparison->check, code,
                                         (struct bw_bytes){path, strlen(path)},
                                         comparison->message.data, item ? &item->place : NULL);
}

/* Comparing a file with its entry. */

static void begin_difference(struct bw_buffer *message, const char *attribute)
{
    bw_buffer_format(message, "%s%s is ", message->length ? ", " : "", attribute);
}

static void compare_number(struct bw_buffer *message, const char *attribute, uint64_t value,
                           uint64_t wanted)
{
    if (value == wanted)
        return;
    begin_difference(message, attribute);
    bw_buffer_format(message, "%" PRIu64 ", not %" PRIu64, value, wanted);
}

static void compare_mode(struct bw_buffer *message, uint64_t value, uint64_t wanted)
{
    if (value == wanted)
        return;
    begin_difference(message, "mode");
    bw_buffer_format(message, "%04" PRIo64 ", not %04" PRIo64, value, wanted);
}

static void compare_text(struct bw_buffer *message, const char *attribute, const char *value,
                         const char *wanted)
{
    if (strcasecmp(value, wanted) == 0 && (*attribute != 'l' || strcmp(value, wanted) == 0))
        return;
    begin_difference(message, attribute);
    bw_buffer_format(message, "%s, not %s", value, wanted);
}

static void compare_time(struct bw_buffer *message, const struct timespec *time,
                         const struct bw_manifest_entry *entry)
{
    if (time->tv_sec == entry->seconds && (uint64_t)time->tv_nsec == entry->nanoseconds)
        return;
    begin_difference(message, "time");
    bw_buffer_format(message, "%" PRId64 ".%09ld, not %" PRId64 ".%09" PRIu64,
                     (int64_t)time->tv_sec, time->tv_nsec, entry->seconds, entry->nanoseconds);
}

static void compare_link(struct comparison *comparison, const struct bw_export_entry *item,
                         const struct bw_manifest_entry *entry)
{
    BW_AUTO_FREE char *target = NULL;
    BW_AUTO_ERROR struct bw_error *error =
        bw_inode_readlink(comparison->fs, &item->place, &target, NULL);
    compare_text(&comparison->message, "link", error ? error->message : target, entry->link);
}

static void compare_hash(struct comparison *comparison, const struct bw_export_entry *item,
                         const struct bw_manifest_entry *entry)
{
    struct bw_buffer *message = &comparison->message;
    if (*item->hash)
        compare_text(message, bw_hash_names[entry->algorithm], item->hash, entry->hash);
    else
        bw_buffer_format(message, "%s%s", message->length ? ", " : "",
                         item->error ? item->error->message : "its data cannot be read");
}

/* Compares attributes, except sizes and link counts of directories, which depend on the file
 * system. */
static void compare_attributes(struct comparison *comparison, const struct bw_export_entry *item,
                               const struct bw_manifest_entry *entry)
{
    const struct bw_inode *inode = &item->inode;
    struct bw_buffer *message = &comparison->message;
    const uint32_t type = item->type;
    const unsigned given = entry->given;
    if (given & BW_MANIFEST_MODE)
        compare_mode(message, inode->mode & 07777, entry->mode);
    if (given & BW_MANIFEST_UID)
        compare_number(message, "uid", inode->uid, entry->uid);
    if (given & BW_MANIFEST_GID)
        compare_number(message, "gid", inode->gid, entry->gid);
    if (given & BW_MANIFEST_LINKS && type != S_IFDIR)
        compare_number(message, "nlink", inode->link_count, entry->links);
    if (given & BW_MANIFEST_SIZE && type == S_IFREG)
        compare_number(message, "size", inode->size, entry->size);
    if (given & BW_MANIFEST_TIME)
        compare_time(message, &inode->mtime, entry);
    if (given & BW_MANIFEST_DEVICE && (type == S_IFCHR || type == S_IFBLK)) {
        compare_number(message, "major", bw_inode_major(inode), entry->major);
        compare_number(message, "minor", bw_inode_minor(inode), entry->minor);
    }
    if (given & BW_MANIFEST_LINK && type == S_IFLNK)
        compare_link(comparison, item, entry);
    if (given & BW_MANIFEST_HASH && type == S_IFREG)
        compare_hash(comparison, item, entry);
}

static void compare_entry(struct comparison *comparison, const struct bw_export_entry *item,
                          const struct bw_manifest_entry *entry)
{
    if (!item->has_inode)
        bw_buffer_format(&comparison->message, "its inode is lost");
    else if (entry->given & BW_MANIFEST_TYPE && item->type != entry->type)
        compare_text(&comparison->message, "type", bw_manifest_type_name(item->type),
                     bw_manifest_type_name(entry->type));
    else
        compare_attributes(comparison, item, entry);
}

/* The stream of files. */

/* Looks up the entry of a file in the list. Sets `path`. */
static struct bw_error *find_entry(const struct comparison *comparison,
                                   const struct bw_export_entry *item, struct bw_buffer *path,
                                   struct bw_manifest_entry **entry)
{
    const char *listed = item->path.data;
    path->length = 0;
    bw_buffer_format(path, "%s%s%c", comparison->top,
                     *comparison->top && !item->path.data[1] ? "" : listed, '\0');
    if (path->failed)
        return bw_error_no_memory();
    if (comparison->list_begins_at_top)
        listed = path->data;
    *entry = bw_manifest_find(&comparison->check->list, listed + (*listed == '/'));
    return NULL;
}

static struct bw_error *next_file(void *context, struct bw_stream_file *file, bool *got)
{
    struct comparison *comparison = context;
    struct bw_export_entry *item;
    BW_TRY(bw_entry_queue_next(comparison->queue, &item));
    *got = item;
    if (!item)
        return NULL;
    struct bw_manifest_entry *entry;
    BW_TRY(find_entry(comparison, item, &comparison->next_path, &entry));
    item->skipped = !entry || !(entry->given & BW_MANIFEST_HASH);
    *file = bw_export_entry_stream_file(item);
    return NULL;
}

static struct bw_error *hash_part(void *context, struct bw_data_reader *reader,
                                  const struct bw_stream_file *file)
{
    struct comparison *comparison = context;
    return cmd_hashing_work(&comparison->hashing, reader, file);
}

static struct bw_error *on_part(void *context, const struct bw_stream_file *file,
                                const struct bw_data_part *part)
{
    struct comparison *comparison = context;
    return cmd_hashing_visit(&comparison->hashing, file, part);
}

static bool should_continue(struct comparison *comparison)
{
    const struct bw_check_progress progress = {
        .pass = check_comparison_passes[CHECK_MANIFEST_PASS].name,
        .bytes = bw_fs_bytes_read(comparison->fs)};
    return check_show_progress(comparison->check, &progress);
}

static struct bw_error *end_item(struct comparison *comparison, struct bw_export_entry *item)
{
    struct bw_manifest_entry *entry;
    comparison->message.length = 0;
    BW_TRY(find_entry(comparison, item, &comparison->path, &entry));
    if (!should_continue(comparison))
        return bw_error_create(BW_ERROR_STOPPED, "the check was stopped");
    if (!entry && item->type == S_IFSOCK)
        return NULL; /* lists do not contain sockets */
    if (!entry) {
        bw_buffer_format(&comparison->message, "it is not in the list");
        return report_difference(comparison, CHECK_EXTRA, comparison->path.data, item);
    }
    entry->seen = true;
    comparison->check->compared++;
    compare_entry(comparison, item, entry);
    if (!comparison->message.length)
        return NULL;
    return report_difference(comparison, CHECK_CHANGED, comparison->path.data, item);
}

static struct bw_error *on_file_end(void *context, const struct bw_stream_file *file, bool complete)
{
    struct comparison *comparison = context;
    if (complete)
        cmd_hashing_finish(&comparison->hashing, file);
    struct bw_error *error = complete ? end_item(comparison, file->user) : NULL;
    bw_entry_queue_release(comparison->queue, file->user);
    return error;
}

/* The beginning of paths that the list omits. */
static const char *prefix_of(const struct comparison *comparison)
{
    return comparison->list_begins_at_top ? "" : comparison->top;
}

static struct bw_error *find_missing(struct comparison *comparison)
{
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    for (size_t i = 0; i < comparison->check->list.count; i++) {
        const struct bw_manifest_entry *entry = &comparison->check->list.entries[i];
        if (entry->seen || entry->given & BW_MANIFEST_OPTIONAL)
            continue;
        path.length = comparison->message.length = 0;
        bw_buffer_format(&path, "%s/%s", prefix_of(comparison), entry->path);
        bw_buffer_append_byte(&path, '\0');
        bw_buffer_format(&comparison->message, "line %u of the list has it", entry->line);
        if (path.failed)
            return bw_error_no_memory();
        comparison->check->compared++;
        BW_TRY(report_difference(comparison, CHECK_MISSING, path.data, NULL));
    }
    return NULL;
}

/* The steps of the comparison. */

/* Whether all paths in the list begin with the path of the subvolume, as version 0.2.0 wrote them.
 * If the first one exists relative to the subvolume, it is not such a list. */
static bool begins_at_top(const struct comparison *comparison, const struct bw_subvolume *from)
{
    const struct bw_manifest *list = &comparison->check->list;
    const char *prefix = comparison->top + 1;
    const size_t length = strlen(prefix);
    struct bw_place place;
    for (size_t i = 0; i < list->count; i++)
        if (strncmp(list->entries[i].path, prefix, length) != 0 ||
            (list->entries[i].path[length] && list->entries[i].path[length] != '/'))
            return false;
    BW_AUTO_ERROR struct bw_error *error =
        list->count ? bw_lookup(comparison->fs, from, list->entries[0].path, false, &place) : NULL;
    return error;
}

/* Finds the path of the subvolume of --subvol. An unreachable subvolume has none. */
static struct bw_error *find_top(struct comparison *comparison, const char *subvolume)
{
    const struct bw_subvolume *from = NULL;
    struct bw_error *error = NULL;
    size_t length;
    if (subvolume)
        BW_TRY(bw_subvolume_by_name(comparison->fs, subvolume, &from));
    if (from)
        error = bw_subvolume_path(comparison->fs, from, &comparison->top, &length);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return error;
    if (from && !error && length > 1) {
        comparison->list_begins_at_top = begins_at_top(comparison, from);
        return NULL;
    }
    bw_error_free(error);
    free(comparison->top);
    comparison->top = calloc(1, 1);
    return comparison->top ? NULL : bw_error_no_memory();
}

static struct bw_error *set_algorithm(struct comparison *comparison)
{
    BW_TRY(determine_list_algorithm(comparison->check, comparison->fs, prefix_of(comparison)));
    comparison->hashing.algorithm = comparison->check->list.algorithm;
    return NULL;
}

static void report_missed(void *context, const char *start, struct bw_error *error)
{
    struct comparison *comparison = context;
    (void)start;
    comparison->check->unfinished = true;
    cmd_fail(comparison->check->common, error);
}

static struct bw_error *compare_files(struct comparison *comparison)
{
    const struct check_arguments *settings = comparison->check->settings;
    const struct bw_starting_points everything = {0};
    const unsigned passes[] = {comparison->check->list.only_files ? BW_WALK_FILES : BW_WALK_ALL, 0};
    const struct bw_entry_queue_options options = {.walk = {.struct_size = sizeof options.walk,
                                                            .subvolume = settings->subvolume,
                                                            .nested = settings->nested,
                                                            .no_snapshots = settings->no_snapshots,
                                                            .threads = settings->threads},
                                                   .starts = &everything,
                                                   .passes = passes,
                                                   .missed = report_missed,
                                                   .context = comparison};
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = settings->threads,
                                     .next = next_file,
                                     .work = hash_part,
                                     .work_limit = CMD_HASHING_LIMIT,
                                     .visit = on_part,
                                     .finish = on_file_end,
                                     .context = comparison};
    BW_TRY(find_top(comparison, settings->subvolume));
    BW_TRY(set_algorithm(comparison));
    BW_TRY(bw_entry_queue_create(comparison->fs, &options, &comparison->queue));
    BW_TRY(bw_stream_run(comparison->fs, &stream));
    return find_missing(comparison);
}

static void ignore_message(void *context, enum bw_severity severity, const struct bw_error *error)
{
    (void)context, (void)severity, (void)error;
}

/* Opens the file system again with its log replayed, because the list describes the files as after
 * a mount. */
static struct bw_error *open_replayed(struct comparison *comparison, struct bw_fs **replayed)
{
    const struct cmd_common *common = comparison->check->common;
    struct bw_fs_options options = cmd_fs_options(common);
    comparison->fs = comparison->check->session.fs;
    if (!bw_fs_status(comparison->fs).log_tree ||
        (common->input.log_given && common->input.log == BW_LOG_IGNORE))
        return NULL;
    options.log = BW_LOG_REPLAY;
    options.reporter.report = ignore_message;
    BW_TRY(bw_fs_open(&options, replayed));
    comparison->fs = *replayed;
    return NULL;
}

struct bw_error *check_read_list(struct check_run *check)
{
    const char *file = check->settings->manifest;
    BW_TRY(bw_manifest_read(file, &check->list));
    if (check->list.ignored.length > 1 && !check->common->messages.quiet)
        fprintf(stderr, "btrfs-walk: note: %s: not compared: %s\n", file, check->list.ignored.data);
    return NULL;
}

struct bw_error *check_compare(struct check_run *check)
{
    struct comparison comparison = {.check = check};
    struct bw_fs *replayed = NULL;
    check_begin_pass(check, check_comparison_passes[CHECK_MANIFEST_PASS].name);
    check->list_compared = true;
    cmd_hashing_init(&comparison.hashing, check->list.algorithm);
    struct bw_error *error = open_replayed(&comparison, &replayed);
    if (!error)
        error = compare_files(&comparison);
    bw_entry_queue_destroy(comparison.queue);
    cmd_hashing_free(&comparison.hashing);
    bw_buffer_free(&comparison.message);
    bw_buffer_free(&comparison.path);
    bw_buffer_free(&comparison.next_path);
    free(comparison.top);
    bw_fs_close(replayed);
    return error;
}
