/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The diff command: differences between two sides A and B, in the format of `zfs diff -FH` or as
 * rows. A is a subvolume; list() finds out what B is:
 *
 *     compare_since()         A in the generation of --since, compared with the present A
 *     compare_folder()        a directory of this machine, or a list of files
 *     compare_all_streamed()  each subvolume of send streams, compared with that of the same UUID
 *     compare_one_streamed()  likewise for one subvolume
 *     compare_subvolumes()    another subvolume, perhaps in another image or generation
 *
 * --since selects a committed generation by its number, or the newest one whose last change is not
 * after a date. If its root tree is no longer on the disk, only the generations of inodes remain.
 * For a date, the subvolumes then show which transactions were before it: each records the
 * transactions of its creation and its last change, with their times.
 */
#include "btrfs-walk/diff.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/human.h"
#include "base/vector.h"
#include "btrfs-walk/image.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/stream.h"
#include "btrfs-walk/walk.h"
#include "cli/common/changes.h"
#include "cli/common/generations.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "cli/common/selection.h"

/* The argument of --since. */
struct since {
    const char *given;   /* NULL: the option was not given */
    uint64_t generation; /* 0: `date` is given */
    int64_t date;        /* nanoseconds since 1970 */
};

/* A running comparison. */
struct diffing {
    /* The options. */
    struct bw_const_strings others; /* images or streams of the second file system, or one folder */
    const char *other_partition, *below;
    uint64_t other_side; /* bw_fs_options.side of the other images */
    const char *only;    /* the letters to print; NULL: all */
    unsigned reading;    /* enum bw_diff_reading */
    unsigned nested;     /* enum bw_nested */
    bool stat, by_path, exit_code;
    bool with_folder;     /* `others` is a directory of this machine */
    struct bw_list *list; /* `others` is a list of files; or NULL */
    struct since since;
    struct cmd_index index; /* for --since */

    /* While it runs. */
    struct cmd_format *format;
    struct bw_fs *other;     /* NULL: both subvolumes are in one file system */
    struct cmd_common own;   /* settings of `other`; its messages name its image */
    struct bw_fs *states[2]; /* historic states of A and B, opened if requested with @GENERATION */
    struct bw_diff_summary sum;
    bool is_different;                 /* a difference was listed */
    struct bw_buffer prefix, paths[2]; /* path of the compared subvolume of streams; with the paths
                                        * below it */
};

static struct bw_error *store_only(void *target, const struct cmd_option *option,
                                   const char *argument)
{
    static const char letters[] = "ADMRT?";
    *(const char **)target = argument;
    if (!*argument || argument[strspn(argument, letters)])
        return cmd_bad_argument(option, argument, "some of the letters ADMRT?");
    return NULL;
}

static struct bw_error *store_since(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct since *since = target;
    since->given = argument;
    if (cmd_parse_number(argument, 1, UINT64_MAX, &since->generation))
        return NULL;
    since->generation = 0;
    if (!bw_parse_date(argument, &since->date))
        return cmd_bad_argument(option, argument,
                                "a generation, a date like '2026-11-21 07:57' in UTC, or @SECONDS");
    return NULL;
}

static const char *const readings[] = {"needed", "never", "always", NULL};

static const struct cmd_option options[] = {
    {0, "other", "IMAGE|DIR|STREAM|LIST",
     "B is in this other image or send stream (repeatable), or is this directory or list",
     CMD_APPEND(struct diffing, others)},
    {0, "other-partition", "PARTITION", "B is in this partition of the disk of --other",
     CMD_TEXT(struct diffing, other_partition)},
    {0, "other-side", "DEVID", "like --side, for the images of --other",
     CMD_NUMBER(struct diffing, other_side, 1, UINT64_MAX, "the id of a device, from 1 on")},
    {0, "below", "PATH", "list only differences at or below this path of A and B",
     CMD_TEXT(struct diffing, below)},
    {0, "content", "WORD",
     "read data to compare them: only if checksums are not enough (needed, the default), never, "
     "or always",
     CMD_WORD(struct diffing, reading, readings)},
    {0, "nested", "WORD", "also compare nested subvolumes: yes (the default with --other), or no",
     CMD_WORD(struct diffing, nested, cmd_nested_words)},
    {0, "by-path", NULL, "compare path by path, even if A and B have a common origin",
     CMD_FLAG(struct diffing, by_path)},
    {0, "only", "LETTERS",
     "list only these changes: added (A), deleted (D), modified (M), renamed (R), ...",
     .store = store_only, .offset = CMD_AT(struct diffing, only, const char *)},
    {0, "exit-code", NULL, "exit with 1 if differences were listed",
     CMD_FLAG(struct diffing, exit_code)},
    {0, "stat", NULL, "also print the number of differing bytes, and the totals on stderr",
     CMD_FLAG(struct diffing, stat)},
    {0, "since", "GEN|DATE", "list what changed in all subvolumes since a transaction or a date",
     .store = store_since, .offset = offsetof(struct diffing, since)},
    CMD_GROUP(cmd_index_options, struct diffing, index),
    {0},
};

/* Output as lines. */

static const struct {
    char status, sign;
    const char *word;
} changes_known[] = {
    {BW_DIFFERENCE_ADDED, '+', "added"},       {BW_DIFFERENCE_DELETED, '-', "deleted"},
    {BW_DIFFERENCE_MODIFIED, 'M', "modified"}, {BW_DIFFERENCE_RENAMED, 'R', "renamed"},
    {BW_DIFFERENCE_TYPE, 'T', "type"},         {BW_DIFFERENCE_UNKNOWN, '?', "unknown"},
};

/* Escapes tabs and newlines in names, because they separate fields and lines. */
static void append_name(struct bw_buffer *line, bool raw, struct bw_bytes name)
{
    bw_buffer_append_byte(line, raw ? '\0' : '\t');
    if (raw)
        bw_buffer_append(line, name.data, name.length);
    else
        bw_escape_line(line, name.data, name.length);
}

static struct bw_error *print_line(struct cmd_format *format, const void *record)
{
    const struct bw_diffinfo *row = record;
    const struct diffing *diffing = format->plan->context;
    struct bw_buffer *line = &format->text;
    const bool null = format->settings.null;
    const char separator = null ? '\0' : '\t';
    static const char letters[] = "?F/CB|=@"; /* indexed by enum bw_file_type */
    size_t change = 0;
    while (strcmp(changes_known[change].word, row->change) != 0)
        change++;
    uint8_t type = 1;
    while (letters[type] && strcmp(bw_file_type_name(type), row->type) != 0)
        type++;
    bw_buffer_append_byte(line, changes_known[change].sign);
    bw_buffer_append_byte(line, separator);
    bw_buffer_append_byte(line, letters[type] ? letters[type] : *letters);
    if (diffing->stat) {
        bw_buffer_append_byte(line, separator);
        bw_buffer_format(line, "%" PRIu64, row->changed_bytes);
    }
    if (row->old_path.data)
        append_name(line, null, row->old_path);
    append_name(line, null, row->path);
    bw_buffer_append_byte(line, null ? '\0' : '\n');
    return NULL;
}

/* Output as rows. */

/* Whether the size of an entry of this type is known. */
static bool has_size(uint8_t type, const struct bw_diff_entry *entry)
{
    return type && type != BW_FILE_DIRECTORY && (!entry || entry->known & BW_KNOWS_SIZE);
}

/* The path from the top of the compared subvolumes; with several of them, from the top of all. */
static struct bw_bytes whole_path(struct diffing *diffing, unsigned number, const char *path,
                                  size_t length)
{
    struct bw_buffer *whole = &diffing->paths[number];
    if (!path || !diffing->prefix.length)
        return (struct bw_bytes){path, length};
    whole->length = 0;
    bw_buffer_append(whole, diffing->prefix.data, diffing->prefix.length);
    if (length > 1)
        bw_buffer_append(whole, path, length);
    return (struct bw_bytes){whole->data, whole->length};
}

static struct bw_error *write_difference(void *context, const struct bw_difference *difference)
{
    struct diffing *diffing = context;
    const char *only = diffing->only;
    if (only && !strchr(only, (char)difference->status))
        return NULL;
    struct bw_bytes changes[BW_DIFFERENCE_CHANGES], unknown[BW_DIFFERENCE_CHANGES];
    const struct bw_bytes path = whole_path(diffing, 0, difference->path, difference->path_length);
    const struct bw_bytes old_path =
        whole_path(diffing, 1, difference->old_path, difference->old_path_length);
    const uint8_t type = difference->type ? difference->type : difference->old_type;
    const bool changed = difference->status == BW_DIFFERENCE_TYPE;
    size_t change = 0;
    while (changes_known[change].status != (char)difference->status)
        change++;
    const struct bw_diffinfo row = {
        .change = changes_known[change].word,
        .type = bw_file_type_name(type),
        .path = path,
        .path_bytes = path,
        .old_path = old_path,
        .old_path_bytes = old_path,
        .changes = cmd_change_names(difference->changes, changes),
        .unknown = cmd_change_names(difference->unknown, unknown),
        .changed_bytes = difference->bytes,
        .old_size = cmd_if_known(has_size(difference->old_type, difference->old_entry),
                                 difference->old_size),
        .size = cmd_if_known(has_size(difference->type, difference->entry), difference->size),
        .old_type = changed ? bw_file_type_name(difference->old_type) : NULL,
        .old_inode = cmd_if_known(difference->old_inode, difference->old_inode),
        .inode = cmd_if_known(difference->inode, difference->inode),
        .old_subvolume = cmd_if_known(difference->old_subvolume, difference->old_subvolume),
        .subvolume = cmd_if_known(difference->subvolume, difference->subvolume),
    };
    if (diffing->paths[0].failed || diffing->paths[1].failed)
        return bw_error_no_memory();
    diffing->is_different = true;
    return cmd_format_write(diffing->format, &row, sizeof row);
}

/* Opening and closing. */

static void print_left_out(const char *name, uint64_t count)
{
    if (count)
        fprintf(stderr,
                "btrfs-walk: not compared: %" PRIu64 " subvolume%s nested in %s (--nested yes "
                "compares nested subvolumes)\n",
                count, bw_plural(count), name);
}

static void print_totals(const struct diffing *diffing, const struct bw_diff_summary *summary)
{
    if (!diffing->stat)
        return;
    fprintf(stderr,
            "btrfs-walk: %" PRIu64 " added, %" PRIu64 " deleted, %" PRIu64 " modified, %" PRIu64
            " renamed, %" PRIu64 " of another type; %" PRIu64 " byte%s",
            summary->added, summary->deleted, summary->modified, summary->renamed, summary->types,
            summary->bytes, bw_plural(summary->bytes));
    /* Only subvolumes with a common origin share any. */
    if (!summary->by_path)
        fprintf(stderr, "; %" PRIu64 " tree block%s not shared", summary->blocks,
                summary->blocks == 1 ? " is" : "s are");
    fputc('\n', stderr);
}

/* Reports how much was compared, because an empty output alone proves little. */
static void print_summary(const struct diffing *diffing)
{
    const struct bw_diff_summary *summary = &diffing->sum;
    const bool is_one = summary->entries[0] == 1;
    /* Between images, files with extents are compared even if their items are equal. */
    const char *changed = summary->by_path || diffing->other ? "" : "changed ";
    const char *files = is_one ? "file" : "files";
    if (diffing->format->common->messages.quiet)
        return;
    if (summary->by_path)
        files = is_one ? "entry" : "entries";
    fprintf(stderr,
            "btrfs-walk: compared: %" PRIu64 " %s%s of A with %" PRIu64 " of B, in %" PRIu64
            " comparison%s%s\n",
            summary->entries[0], changed, files, summary->entries[1], summary->subvolumes,
            bw_plural(summary->subvolumes),
            summary->by_path ? "" : " of subvolumes; all other files have the same items in both");
    const char *separator = "btrfs-walk: not compared, because one side does not know them: ";
    for (unsigned bit = 0; bit < BW_DIFFERENCE_CHANGES; bit++) {
        if (!(summary->not_compared >> bit & 1))
            continue;
        fprintf(stderr, "%s%s", separator, bw_difference_change_name(bit));
        separator = ", ";
    }
    if (summary->not_compared)
        fputc('\n', stderr);
    print_left_out("A", summary->left_out[0]);
    print_left_out("B", summary->left_out[1]);
    print_totals(diffing, summary);
}

/* Whether the path of --below exists on at least one side; if not, that is reported. */
static bool has_path(struct diffing *diffing, const struct bw_diff_side sides[2])
{
    const char *path = diffing->below;
    struct bw_error *error = NULL;
    if (!path)
        return true;
    for (unsigned i = 0; i < 2; i++) {
        struct bw_place place;
        BW_AUTO_BUFFER struct bw_buffer text = {0};
        struct stat status;
        bool exists = false;
        if (sides[i].list || sides[i].directory) {
            exists = true; /* entries of a list may be below it; bw_lookup() starts at subvolumes */
        } else if (sides[i].folder) {
            bw_buffer_format(&text, "%s/%s%c", sides[i].folder, path, '\0');
            exists = !text.failed && lstat(text.data, &status) == 0;
        } else {
            bw_error_free(BW_TAKE(error));
            error = bw_lookup(sides[i].fs, sides[i].subvolume, path, false, &place);
            exists = !error;
        }
        if (!exists)
            continue;
        bw_error_free(error);
        return true;
    }
    cmd_format_miss(diffing->format, error);
    return false;
}

static struct bw_error *find_side(struct diffing *diffing, unsigned number, const char *text,
                                  struct bw_diff_side *side)
{
    const struct cmd_common *common =
        side->fs == diffing->other ? &diffing->own : diffing->format->common;
    BW_TRY(cmd_find_subvolume(common, side->fs, text, &diffing->states[number], &side->subvolume));
    if (diffing->states[number])
        side->fs = diffing->states[number];
    return NULL;
}

/* Finds B, after A. If it is not given, it is A in the other image, or the current state of a
 * A@GENERATION. */
static struct bw_error *find_b(struct diffing *diffing, struct bw_diff_side *side)
{
    const struct cmd_common *common = diffing->format->common;
    if (!common->path_count) /* whole file systems */
        return find_side(diffing, 1, "/", side);
    const char *at = strrchr(common->paths[0], '@');
    if (common->path_count > 1)
        return find_side(diffing, 1, common->paths[1], side);
    if (!diffing->states[0] && diffing->other)
        return find_side(diffing, 1, common->paths[0], side);
    if (!diffing->states[0])
        return bw_error_create(BW_ERROR_USAGE,
                               "give two subvolumes, or NAME@N to compare with the current NAME");
    BW_AUTO_FREE char *name = strndup(common->paths[0], (size_t)(at - common->paths[0]));
    if (!name)
        return bw_error_no_memory();
    return bw_subvolume_by_name(side->fs, name, &side->subvolume);
}

/* Compares A with B. */
static struct bw_error *compare_sides(struct diffing *diffing, const struct bw_diff_side sides[2])
{
    const bool has_streams = diffing->other && bw_fs_is_stream(diffing->other);
    const struct bw_diff_options how = {
        .struct_size = sizeof how,
        .path = diffing->below,
        .by_path = diffing->by_path || has_streams,
        .nested = !has_streams && (diffing->nested == BW_NESTED_ENTER ||
                                   (diffing->nested == BW_NESTED_DEFAULT && diffing->others.count)),
        .states = !diffing->others.count,
        .reading = (enum bw_diff_reading)diffing->reading,
        .visit = write_difference,
        .context = diffing,
    };
    if (!has_path(diffing, sides))
        return NULL;
    return bw_diff(&sides[0], &sides[1], &how, &diffing->sum);
}

/* Finds A and B among subvolumes, and compares them. */
static struct bw_error *compare_subvolumes(struct diffing *diffing)
{
    const struct cmd_common *common = diffing->format->common;
    struct bw_fs *fs = diffing->format->session.fs;
    struct bw_diff_side sides[2] = {{.fs = fs}, {.fs = diffing->other ? diffing->other : fs}};
    BW_TRY(find_side(diffing, 0, common->path_count ? common->paths[0] : "/", &sides[0]));
    struct bw_error *error = find_b(diffing, &sides[1]);
    if (error && diffing->other) { /* its message names the other image */
        diffing->format->status = cmd_fail_output(&diffing->own, BW_TAKE(error));
        return NULL;
    }
    BW_TRY(error);

    /* An upper bound for the trees. How much of the contents will be read is unknown. */
    uint64_t bytes = 0;
    for (unsigned i = 0; i < 2; i++) {
        struct bw_subvolume_info info = {0};
        bw_error_free(bw_subvolume_get(sides[i].fs, sides[i].subvolume, &info));
        bytes += info.bytes_used;
    }
    cmd_progress_expect(bytes);
    return compare_sides(diffing, sides);
}

/* Since a generation. */

/* Finds the wanted generation; `*found` is NULL if it is not in the list, else its entry `*at`. */
static struct bw_error *find_generation(const struct since *since, const struct bw_history *history,
                                        const struct bw_generation_info **found, size_t *at)
{
    uint64_t generation = since->generation, present = 0;
    *found = NULL;
    for (size_t i = 0; i < bw_history_count(history); i++) {
        const struct bw_generation_info *info = bw_history_entry(history, i);
        if (info->sources & BW_GENERATION_OF_SUPERBLOCK)
            present = info->generation;
        if (!generation && info->status != BW_GENERATION_ABANDONED && !info->superseded &&
            (info->date.tv_sec || info->date.tv_nsec) &&
            bw_time_nanoseconds(&info->date) <= since->date)
            generation = info->generation;
    }
    if (present && generation > present)
        return bw_error_create(BW_ERROR_USAGE, "--since %s: the newest generation is %" PRIu64,
                               since->given, present);
    if (!generation)
        return NULL;
    struct bw_error *error = bw_history_find(history, generation, at);
    if (!error)
        *found = bw_history_entry(history, *at);
    else if (error->code != BW_ERROR_NOT_FOUND)
        return error;
    bw_error_free(error);
    return NULL;
}

/* Opens the generation as diffing->states[0], and sets since and since_time of the options. If it
 * is no longer on the disk, reports that; states[0] stays NULL. */
static struct bw_error *open_since(struct diffing *diffing, struct bw_diff_options *how)
{
    const struct since *since = &diffing->since;
    struct cmd_index *index = &diffing->index;
    const struct cmd_common *common = diffing->format->common;
    struct bw_fs *fs = diffing->format->session.fs;
    struct bw_history_options listing = {.struct_size = sizeof listing, .only_list = true};
    struct bw_history *history = NULL;
    const struct bw_generation_info *info = NULL;
    size_t at;

    /* The superblock lists the last generations, which need no scan. */
    const bool no_scan = index->no_scan;
    index->no_scan |= since->generation && !index->name;
    BW_TRY(cmd_history_open(common, fs, &listing, &history));
    struct bw_error *error = find_generation(since, history, &info, &at);
    if (!error && !info && index->no_scan != no_scan) {
        index->no_scan = no_scan;
        bw_history_close(history);
        BW_TRY(cmd_history_open(common, fs, &listing, &history));
        error = find_generation(since, history, &info, &at);
    }

    struct bw_fs **before = &diffing->states[0];
    if (!error && info) {
        struct bw_fs_options images = cmd_fs_options(common);
        images.planned = NULL;
        images.log = BW_LOG_IGNORE; /* its changes are later */
        images.reporter = cmd_reporter(common);
        error = bw_error_tolerate(bw_history_open_state(history, at, &images, before));
    }
    if (!error && *before) {
        char date[BW_DATE_LENGTH + 16];
        how->since = info->generation;
        *bw_write_zoned_date(date, bw_time_nanoseconds(&info->date), false) = '\0';
        if (!common->messages.quiet)
            fprintf(stderr, "btrfs-walk: compared with generation %" PRIu64 " of %s\n",
                    info->generation, date);
    }
    bw_history_close(history);
    if (error || *before)
        return error;

    /* The generations of inodes, since the transaction or the last one before the date. */
    uint64_t last = since->generation;
    if (!since->generation) {
        struct bw_subvolume_infos *infos;
        BW_TRY(bw_subvolume_infos_open(fs, false, &infos));
        for (const struct bw_subvolume_info *one; (one = bw_subvolume_infos_next(infos));) {
            const uint64_t transactions[] = {one->otransid, one->ctransid};
            const struct timespec times[] = {one->otime, one->ctime};
            for (unsigned i = 0; i < 2; i++)
                if ((times[i].tv_sec || times[i].tv_nsec) &&
                    bw_time_nanoseconds(&times[i]) < since->date && transactions[i] > last)
                    last = transactions[i];
        }
        BW_TRY(bw_subvolume_infos_close(infos));
        how->since_time = bw_clock_time(since->date);
    }
    how->since = last ? last : 1;
    fprintf(stderr,
            "btrfs-walk: %s: the state of %s%s is no longer on the disk: inodes show what was "
            "added or modified since then; what was deleted or renamed is unknown\n",
            common->input.images[0], since->generation ? "generation " : "", since->given);
    return NULL;
}

static struct bw_error *compare_since(struct diffing *diffing)
{
    const struct cmd_common *common = diffing->format->common;
    struct bw_fs *fs = diffing->format->session.fs;
    struct bw_diff_side sides[2] = {{.fs = NULL}, {.fs = fs}};
    struct bw_diff_summary summary = {0};
    struct bw_diff_options how = {
        .struct_size = sizeof how,
        .path = diffing->below,
        .by_path = diffing->by_path,
        .reading = (enum bw_diff_reading)diffing->reading,
        .visit = write_difference,
        .context = diffing,
    };
    const char *name = common->path_count ? common->paths[0] : "/";
    if (bw_fs_is_stream(fs))
        return bw_error_create(BW_ERROR_USAGE, "--since: a send stream has no generations");
    BW_TRY(bw_subvolume_by_name(fs, name, &sides[1].subvolume));
    BW_TRY(open_since(diffing, &how));
    sides[0].fs = diffing->states[0];
    if (sides[0].fs)
        BW_TRY(bw_subvolume_by_name(sides[0].fs, name, &sides[0].subvolume));
    const struct bw_diff_side known[2] = {sides[!sides[0].fs], sides[1]};
    if (!has_path(diffing, known))
        return NULL;
    cmd_progress_expect_trees(fs, false);
    BW_TRY(bw_diff(&sides[0], &sides[1], &how, &summary));
    if (summary.by_generation)
        diffing->format->status = STATUS_PARTIAL;
    if (!common->messages.quiet) {
        fprintf(stderr,
                "btrfs-walk: since generation %" PRIu64 ": %" PRIu64
                " subvolume%s compared, %" PRIu64 " unchanged%s\n",
                how.since, summary.subvolumes, bw_plural(summary.subvolumes), summary.unchanged,
                summary.by_generation ? "; deletions are unknown" : "");
        print_totals(diffing, &summary);
    }
    return NULL;
}

/* A directory of this machine, or a list of files. A is a subvolume or any directory, B a path
 * below the folder. */
static struct bw_error *compare_folder(struct diffing *diffing)
{
    const struct cmd_common *common = diffing->format->common;
    const char *text = common->path_count ? common->paths[0] : "/";
    BW_AUTO_BUFFER struct bw_buffer folder = {0};
    struct bw_diff_side sides[2] = {{.fs = diffing->format->session.fs}, {0}};
    struct bw_error *error = find_side(diffing, 0, text, &sides[0]);
    if (error && error->code == BW_ERROR_NOT_FOUND) {
        struct bw_place place;
        bw_error_free(error);
        BW_TRY(bw_lookup(sides[0].fs, NULL, text, true, &place));
        if (place.type != BW_FILE_DIRECTORY)
            return bw_error_create(BW_ERROR_NOT_FOUND, "%s: not a directory", text);
        sides[0].subvolume = place.subvolume;
        sides[0].directory = place.inode;
        error = NULL;
    }
    BW_TRY(error);
    if (common->input.folder)
        bw_buffer_format(&folder, "%s", common->input.folder);
    if (common->path_count > 1)
        bw_buffer_format(&folder, "/%s", common->paths[1]);
    BW_TRY(bw_buffer_terminate(&folder));
    sides[1].folder = diffing->list ? NULL : folder.data;
    sides[1].list = diffing->list;
    return compare_sides(diffing, sides);
}

/* Send streams. A received subvolume is found by the UUID that streams give it, and may have
 * another name. */

static struct bw_error *find_identity(struct bw_fs *fs, const uint8_t uuid[BW_UUID_SIZE],
                                      const struct bw_subvolume **found)
{
    static const uint8_t none[BW_UUID_SIZE];
    *found = NULL;
    if (memcmp(uuid, none, sizeof none) == 0)
        return NULL;
    while ((*found = bw_subvolume_next(fs, *found))) {
        struct bw_send_identity identity;
        struct bw_error *error = bw_send_identity(fs, *found, &identity);
        if (!error && memcmp(identity.uuid, uuid, BW_UUID_SIZE) == 0)
            return NULL;
        BW_TRY(bw_error_tolerate(error)); /* a damaged subvolume has no identity */
    }
    return NULL;
}

/* Compares A with the streams' subvolume that has its identity. A stream of a writable subvolume
 * has an identity of its own: then it is the last one. */
static struct bw_error *compare_one_streamed(struct diffing *diffing)
{
    const char *name = diffing->format->common->paths[0];
    struct bw_diff_side sides[2] = {{.fs = diffing->format->session.fs}, {.fs = diffing->other}};
    struct bw_send_identity identity;
    BW_TRY(find_side(diffing, 0, name, &sides[0]));
    BW_TRY(bw_send_identity(sides[0].fs, sides[0].subvolume, &identity));
    BW_TRY(find_identity(diffing->other, identity.uuid, &sides[1].subvolume));
    for (const struct bw_subvolume *next = NULL;
         !sides[1].subvolume && (next = bw_subvolume_next(diffing->other, next));)
        if (!bw_subvolume_next(diffing->other, next))
            sides[1].subvolume = next;
    return compare_sides(diffing, sides);
}

/* Compares each subvolume of the streams with that of the image; paths begin with its path in the
 * streams. */
static struct bw_error *compare_all_streamed(struct diffing *diffing)
{
    struct bw_diff_side sides[2] = {{.fs = diffing->format->session.fs}, {.fs = diffing->other}};
    const struct bw_subvolume *top = bw_subvolume_by_id(diffing->other, BW_TOP_SUBVOLUME);
    while ((sides[1].subvolume = bw_subvolume_next(diffing->other, sides[1].subvolume))) {
        BW_AUTO_FREE char *path = NULL;
        struct bw_send_identity identity;
        if (sides[1].subvolume == top)
            continue;
        BW_TRY(bw_subvolume_path(diffing->other, sides[1].subvolume, &path, NULL));
        BW_TRY(bw_send_identity(diffing->other, sides[1].subvolume, &identity));
        BW_TRY(find_identity(sides[0].fs, identity.uuid, &sides[0].subvolume));
        BW_TRY(bw_buffer_set(&diffing->prefix, path, strlen(path)));
        if (sides[0].subvolume) {
            BW_TRY(compare_sides(diffing, sides));
            continue;
        }
        diffing->format->status =
            cmd_miss(&diffing->own,
                     bw_error_create(BW_ERROR_NOT_FOUND, "%s: no subvolume of %s has its UUID",
                                     path, diffing->format->common->input.images[0]));
    }
    return NULL;
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct diffing *diffing = context;
    diffing->format = format;
    const struct cmd_common *common = format->common;
    struct bw_error *error = NULL;
    if (common->input.other_count)
        error = cmd_open_other(common, &diffing->own, &diffing->other);
    if (error) {
        format->status = cmd_fail_to_open(&diffing->own, error);
        return NULL;
    }
    const bool has_streams = diffing->other && bw_fs_is_stream(diffing->other);
    if (diffing->since.given)
        error = compare_since(diffing);
    else if (diffing->with_folder || diffing->list)
        error = compare_folder(diffing);
    else if (has_streams && !common->path_count)
        error = compare_all_streamed(diffing);
    else if (has_streams && common->path_count == 1)
        error = compare_one_streamed(diffing);
    else
        error = compare_subvolumes(diffing);
    if (!error && diffing->sum.subvolumes)
        print_summary(diffing);
    if (diffing->is_different && diffing->exit_code)
        format->status = cmd_worse_status(format->status, STATUS_DIFFERENT);

    /* cmd_end() sees only the damage of the first file system. */
    struct bw_fs *others[] = {diffing->states[0], diffing->states[1], diffing->other};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (others[i] && bw_fs_status(others[i]).damages)
            format->status = cmd_worse_status(format->status, STATUS_PARTIAL);
        bw_fs_close(others[i]);
    }
    bw_buffer_free(&diffing->prefix);
    bw_buffer_free(&diffing->paths[0]);
    bw_buffer_free(&diffing->paths[1]);
    return error;
}

static bool needs_no_path(const void *state)
{
    const struct diffing *diffing = state;
    return diffing->others.count || diffing->since.given;
}

/* Finds out whether the only argument of --other is a directory or a list of files. */
static struct bw_error *detect_other(const struct cmd_common *common, struct diffing *diffing)
{
    enum { ENOUGH = 4096 };
    const char *other = diffing->others.count == 1 ? diffing->others.items[0] : NULL;
    char start[ENOUGH];
    struct stat status;
    if (!other || stat(other, &status) || S_ISBLK(status.st_mode) || S_ISFIFO(status.st_mode))
        return NULL;
    if (S_ISDIR(status.st_mode)) {
        diffing->with_folder = !bw_folder_holds_streams(other);
        return NULL;
    }
    const int descriptor = open(other, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return NULL;
    const ssize_t got = read(descriptor, start, sizeof start);
    close(descriptor);
    if (got <= 0 || !bw_list_detect(start, (size_t)got))
        return NULL;
    return cmd_read_list(common, other, &diffing->list);
}

/* The error if the options or operands contradict each other. */
static struct bw_error *check_options(const struct cmd_common *common,
                                      const struct diffing *diffing)
{
    const bool since = diffing->since.given, other = diffing->others.count;
    if (common->path_count > 2)
        return bw_error_create(BW_ERROR_USAGE, "a third path was replaced: use --below %s",
                               common->paths[2]);
    if (since && (other || diffing->nested || common->path_count > 1))
        return bw_error_create(BW_ERROR_USAGE, "--since compares one file system with itself: it "
                                               "excludes --other, --nested and B");
    if (!since && (diffing->index.name || diffing->index.no_scan))
        return bw_error_create(BW_ERROR_USAGE, "--index and --no-scan are for --since");
    if (!common->path_count && !other && !since)
        return bw_error_create(BW_ERROR_USAGE, "give two subvolumes: IMAGE A B; or --other");
    if (diffing->list && common->path_count > 1)
        return bw_error_create(BW_ERROR_USAGE, "a list has no B: use --below");
    if (diffing->other_partition && (!other || diffing->with_folder || diffing->list))
        return bw_error_create(BW_ERROR_USAGE, "--other-partition needs the disk as --other");
    if (diffing->other_side && (!other || diffing->with_folder || diffing->list))
        return bw_error_create(BW_ERROR_USAGE, "--other-side needs the images as --other");
    return NULL;
}

static int run(const struct cmd_common *common, void *state)
{
    struct diffing *diffing = state;
    const struct cmd_format_plan plan = {.record = cmd_diff.record,
                                         .print = print_line,
                                         .list = list,
                                         .context = state,
                                         .largest = "changed_bytes",
                                         .has_null = true};
    struct cmd_common with_others = *common;
    struct bw_error *error = detect_other(common, diffing);
    with_others.input.others = diffing->others.items;
    with_others.input.other_partition = diffing->other_partition;
    with_others.input.other_side = diffing->other_side;
    if (diffing->with_folder)
        with_others.input.folder = diffing->others.items[0];
    else if (!diffing->list)
        with_others.input.other_count = diffing->others.count;
    if (diffing->since.given)
        with_others.input.index = &diffing->index;
    if (!error)
        error = check_options(common, diffing);
    int status = cmd_fail(common, error);
    if (!status)
        status = cmd_format_run(&with_others, &plan);
    bw_list_close(diffing->list);
    return status;
}

static const struct cmd_status meanings[] = {
    {STATUS_OK, "The comparison is complete, even if there are differences."},
    {STATUS_PARTIAL,
     "Part of the comparison is missing: lost blocks, files that cannot be read; with --exit-code, "
     "also: differences were listed."},
    {STATUS_CANNOT, "Wrong usage, or no file system that can be opened."},
    {STATUS_UNSUPPORTED, "An image needs a feature that is not supported; the message names it."},
    {0},
};

const struct command cmd_diff = {
    .name = "diff",
    .topic = cmd_topic_subvolumes,
    .operands = "IMAGE [A [B]]",
    .summary = "Lists the differences between subvolumes, snapshots or images.",
    .details =
        "\n"
        "A and B are subvolumes: a path from the top-level subvolume, or an id. NAME@N is\n"
        "subvolume NAME as of transaction N, if that is still on the disk; without B, it is\n"
        "compared with the current one. --other names what contains B: another image, send\n"
        "streams, a directory of this machine, or a list of files (mtree, sha256sum). Then\n"
        "nested subvolumes are compared, too; without B, B is A in the other one; without both,\n"
        "the whole file systems. Each line is a sign, a type and a path from the top of A and B,\n"
        "separated by tabs:\n\n"
        "  +  added         -  deleted\n"
        "  M  modified      R  renamed: the old path, then the new one\n"
        "  T  another type  ?  could not be compared, or only with --content\n\n"
        "  F file  / directory  @ link  B C device  | pipe  = socket\n\n"
        "Names are escaped as by ls -b, except for spaces; with -0, each field ends with NUL\n"
        "and names are not escaped. A renamed\n"
        "directory is one line; its entries are listed only if they changed themselves. If a\n"
        "renamed file was also modified, a second line lists that.\n\n"
        "The comparison covers contents, sizes, permissions, owners, modification times,\n"
        "extended attributes and links. The data are read only where checksums do not decide\n"
        "whether contents are equal.\n\n"
        "--since lists what changed in all subvolumes, or in A and those below it, since a\n"
        "transaction, or since the newest one on the disk before a date. Of new snapshots, only\n"
        "files that changed in them later are listed. If that generation is no longer on the\n"
        "disk, generations of inodes show which files were added or modified; what was deleted\n"
        "or renamed is unknown, and the exit status is 1.\n\n"
        "Others than subvolumes with a common origin are compared path by path, so a renamed\n"
        "file is deleted and added. With --other DIR, A may be any directory, and B is a path\n"
        "below DIR; the attributes trusted.* and btrfs.* are not compared. With streams, A, or\n"
        "each subvolume of the streams, is compared with the one that has its UUID.\n",
    .examples =
        "  btrfs-walk diff disk.img snapshots/1 home              since a snapshot\n"
        "  btrfs-walk diff disk.img home@1234                     since transaction 1234\n"
        "  btrfs-walk diff --since 2026-11-21 disk.img            what happened since that day\n"
        "  btrfs-walk diff -0 -o path --only AM disk.img 257 258  for a backup\n"
        "  btrfs-walk diff --json --below /etc disk.img 257 258   only below /etc\n"
        "  btrfs-walk diff --other copy.img disk.img              an image and its copy\n"
        "  btrfs-walk diff --other /mnt/copy disk.img /home       an image and a directory\n"
        "  btrfs-walk diff --other backup.send disk.img           an image and a backup\n"
        "  btrfs-walk diff --other SHA256SUMS disk.img            an image and a list\n",
    .options = options,
    .record = "diffinfo",
    .sorts_rows = true,
    .meanings = meanings,
    .run = run,
    .state_size = sizeof(struct diffing),
    .takes_paths = true,
    .missing = "no subvolumes given",
    .needs_no_path = needs_no_path,
};
