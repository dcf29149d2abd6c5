/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The versions command: the versions of a file, in snapshots and in older generations, the newest
 * first.
 *
 * Those in snapshots are found first, by the UUIDs of subvolumes, and wait in a list. Then the
 * generations are opened one after the other; before each of their versions, the snapshots that are
 * newer are written. With --good, a snapshot with the same inode precedes an older generation,
 * whose blocks any write may take.
 *
 * With --extract, a version becomes the only entry of an extraction (extraction.h) instead of a
 * row.
 */
#include "btrfs-walk/history.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/records.h"
#include "cli/common/changes.h"
#include "cli/common/generations.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "cli/common/paths.h"
#include "cli/export/extraction.h"
#include "draw/markup.h"

/* A version in a snapshot. */
struct snapshot_version {
    const struct bw_snapshot *snapshot;
    struct bw_place place;
    struct bw_inode inode;
};

struct versions {
    /* The options. */
    struct extract_settings extract; /* first, for the options of its groups */
    struct cmd_index index;
    const char *subvolume;
    bool all, no_data, good;

    /* While it runs. */
    struct cmd_format *format;        /* NULL: the versions are extracted */
    struct extract *extraction;       /* NULL: they are listed */
    const struct bw_entry *extracted; /* the version that is being extracted */
    bool has_name; /* the first version was extracted under the name of the file */
    const char *path;
    const struct cmd_common *common;
    struct bw_fs *fs;
    struct bw_snapshots *snapshots;
    struct snapshot_version *in_snapshots; /* the newest first */
    size_t count, next;                    /* how many; the first that is not yet written */
    bool found_good;
};

static const struct cmd_option options[] = {
    {0, "all", NULL, "print a row for each generation, even without changes",
     CMD_FLAG(struct versions, all)},
    {0, "no-data", NULL, "do not read data; how much is recoverable remains unknown",
     CMD_FLAG(struct versions, no_data)},
    {0, "good", NULL, "print only the newest version whose contents are verified",
     CMD_FLAG(struct versions, good)},
    {0, "extract", "DEST", "extract the versions into this directory",
     CMD_TEXT(struct versions, extract.folder)},
    CMD_GROUP(extract_options, struct versions, extract),
    CMD_SUBVOLUME_OPTION(struct versions, subvolume),
    CMD_GROUP(cmd_index_options, struct versions, index),
    {0},
};

/* The entries of an extraction: one version. */
static struct bw_error *bring_version(void *context, unsigned types, bw_entry_visitor *visit,
                                      void *visitor)
{
    const struct versions *versions = context;
    if (!(types >> versions->extracted->place.type & 1))
        return NULL;
    return visit(visitor, versions->extracted);
}

/* Extracts a version as DEST/PATH; each further one as PATH.~GENERATION~, as numbered backups are
 * called. */
static struct bw_error *extract_version(struct versions *versions, const struct bw_versioninfo *row,
                                        struct bw_fs *fs, const struct bw_place *place,
                                        const struct bw_inode *inode)
{
    struct extract *extract = versions->extraction;
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    if (S_ISDIR(inode->mode))
        return bw_error_create(BW_ERROR_USAGE,
                               "%s is a directory: use 'extract --generation %" PRIu64 "'",
                               versions->path, row->generation);
    bw_buffer_format(&path, "%s", versions->path);
    if (versions->has_name)
        bw_buffer_format(&path, ".~%" PRIu64 "~", row->generation);
    BW_TRY(bw_buffer_terminate(&path));
    struct bw_entry entry = {
        .path = path.data, .path_length = path.length - 1, .place = *place, .inode = inode};
    entry.place.type = bw_file_type_of_mode(inode->mode);
    const uint64_t missed = extract->missed_count;
    versions->extracted = &entry;
    extract->generation = row->generation;
    BW_TRY(extract_from(extract, fs));
    if (extract->missed_count > missed)
        return NULL;
    versions->has_name = true;
    if (versions->common->messages.quiet)
        return NULL;
    struct bw_error *origin;
    if (row->snapshot_name)
        origin = bw_error_create(BW_ERROR_USAGE, "%s: extracted from the snapshot %s", path.data,
                                 row->snapshot_name);
    else
        origin = bw_error_create(BW_ERROR_USAGE, "%s: extracted from generation %" PRIu64,
                                 path.data, row->generation);
    cmd_fail(versions->common, origin); /* prints it */
    return NULL;
}

/* Writes a row, or extracts the version. With --good, only one that is verified, which ends the
 * listing. */
static struct bw_error *write_row(struct versions *versions, struct bw_versioninfo *row,
                                  struct bw_fs *fs, const struct bw_place *place,
                                  const struct bw_inode *inode)
{
    struct bw_recoverable recoverable = {0};
    const bool unread =
        S_ISREG(inode->mode) && (versions->no_data || (versions->extraction && !versions->good));
    if (S_ISREG(inode->mode) && !unread) {
        struct bw_file *file;
        BW_TRY(bw_file_open(fs, place, NULL, &file));
        const struct bw_data_part *part = NULL;
        struct bw_error *error = bw_file_begin_parts(file, 0, UINT64_MAX);
        while (!error && !(error = bw_file_next_part(file, &part)) && part)
            bw_recoverable_add(&recoverable, part);
        bw_file_close(file);
        BW_TRY(error);
    }
    const enum bw_recoverable_kind kind =
        bw_recoverable_kind(&recoverable, inode->flags & BW_INODE_NODATASUM);
    if (versions->good && kind != BW_RECOVERABLE_VERIFIED)
        return NULL;
    row->recoverable = unread ? NULL : bw_recoverable_name(kind);
    row->type = bw_file_type_name(bw_file_type_of_mode(inode->mode));
    row->size = inode->size;
    row->mtime = bw_time_nanoseconds(&inode->mtime);
    row->subvolume = bw_subvolume_id(place->subvolume);
    row->inode = place->inode;
    if (versions->extraction)
        BW_TRY(extract_version(versions, row, fs, place, inode));
    else
        BW_TRY(cmd_format_write(versions->format, row, sizeof *row));
    versions->found_good = versions->good;
    if (versions->found_good)
        return bw_error_create(BW_ERROR_STOPPED, "one version is enough");
    return NULL;
}

/*
 * The names that backup programs give to snapshots. Sources: the manuals of Snapper, which keeps
 * the snapshot N of a subvolume in .snapshots/N/snapshot and describes it in .snapshots/N/info.xml;
 * of btrbk, which names a snapshot NAME.YYYYMMDD[Thhmm[ss][+zzzz]][_N]; and of Timeshift, which has
 * one directory for each date.
 */

enum { LONGEST_XML = 64 << 10 };

static bool read_text(struct bw_fs *fs, const char *path, char text[LONGEST_XML])
{
    struct bw_place place;
    struct bw_file *file;
    size_t got = 0;
    BW_AUTO_ERROR struct bw_error *error = bw_lookup(fs, NULL, path, false, &place);
    if (!error)
        error = bw_file_open(fs, &place, NULL, &file);
    if (error)
        return false;
    error = bw_file_read(file, 0, text, LONGEST_XML - 1, &got);
    bw_file_close(file);
    text[got] = '\0';
    return !error;
}

/* Appends the contents of an element, if the file contains it. */
static void append_element(struct bw_buffer *text, const char *xml, const char *before,
                           const char *name)
{
    char tag[32];
    snprintf(tag, sizeof tag, "<%s>", name);
    const char *begin = strstr(xml, tag);
    if (!begin)
        return;
    begin += strlen(tag);
    const char *end = strstr(begin, "</");
    if (!end || end == begin)
        return;
    bw_buffer_format(text, "%s", before);
    while (begin < end)
        begin += bw_markup_decode(text, begin);
}

static bool append_snapper(struct bw_buffer *text, struct bw_fs *fs, const char *path)
{
    char info[PATH_MAX];
    const char *end = strrchr(path, '/'), *number = end;
    if (!end || strcmp(end, "/snapshot") != 0 || end == path)
        return false;
    while (number > path && isdigit((unsigned char)number[-1]))
        number--;
    if (number == end || number == path || number[-1] != '/')
        return false;
    const size_t folder = strlen(path) - strlen("snapshot");
    BW_AUTO_FREE char *xml = malloc(LONGEST_XML);
    if ((size_t)snprintf(info, sizeof info, "%.*sinfo.xml", (int)folder, path) >= sizeof info ||
        !xml || !read_text(fs, info, xml) || !strstr(xml, "<snapshot>"))
        return false;
    bw_buffer_format(text, "snapper %d", atoi(number));
    append_element(text, xml, ", ", "date");
    append_element(text, xml, ": ", "description");
    return true;
}

/* Matches the beginning of a text with a pattern, in which 0 is any digit. Returns the rest of the
 * text, or NULL. */
static const char *match_digits(const char *text, const char *pattern)
{
    for (; *pattern; pattern++, text++) {
        const bool is_digit = isdigit((unsigned char)*text);
        if (*pattern == '0' && !is_digit)
            return NULL;
        if (*pattern != '0' && *text != *pattern)
            return NULL;
    }
    return text;
}

static const char *skip_digits(const char *text, const char *pattern)
{
    const char *rest = match_digits(text, pattern);
    return rest ? rest : text;
}

static bool append_btrbk(struct bw_buffer *text, const char *path)
{
    const char *dot = strrchr(path, '.');
    if (!dot || dot == path || dot[-1] == '/')
        return false;
    const char *rest = match_digits(dot + 1, "00000000");
    if (!rest)
        return false;
    if (match_digits(rest, "T0000"))
        rest = skip_digits(skip_digits(rest, "T0000"), "00");
    if (*rest == '+' || *rest == '-')
        rest = skip_digits(rest + 1, "0000");
    if (match_digits(rest, "_0"))
        rest += 1 + strspn(rest + 1, "0123456789");
    if (*rest)
        return false;
    bw_buffer_format(text, "btrbk %s", dot + 1);
    return true;
}

static bool append_timeshift(struct bw_buffer *text, const char *path)
{
    static const char folder[] = "/timeshift-btrfs/snapshots/";
    const char *begin = strstr(path, folder);
    if (!begin)
        return false;
    begin += strlen(folder);
    const char *end = match_digits(begin, "0000-00-00_00-00-00");
    if (!end)
        return false;
    bw_buffer_format(text, "timeshift %.*s", (int)(end - begin), begin);
    return true;
}

/* Snapshots. */

static struct bw_error *write_snapshot(struct versions *versions,
                                       const struct snapshot_version *version)
{
    const struct bw_snapshot *snapshot = version->snapshot;
    BW_AUTO_BUFFER struct bw_buffer name = {0};
    BW_AUTO_FREE char *path = NULL;
    size_t length = 0;

    /* Such as "snapper 3, 2026-11-21 10:00:00: before the update"; the path if it belongs to none
     * of these programs. Control characters are not escaped. */
    if (!append_snapper(&name, versions->fs, snapshot->path) &&
        !append_timeshift(&name, snapshot->path) && !append_btrbk(&name, snapshot->path))
        bw_buffer_format(&name, "%s", snapshot->path);
    BW_TRY(bw_buffer_terminate(&name));
    /* Without the path, the row has none. */
    BW_TRY(bw_error_tolerate(bw_inode_path(versions->fs, &version->place, &path, &length)));
    struct bw_versioninfo row = {
        .generation = snapshot->generation,
        .changed = bw_time_nanoseconds(&snapshot->time),
        .path = {path, length},
        .path_bytes = {path, length},
        .snapshot_name = name.data,
        .first_generation = BW_ABSENT,
        .tree_root = BW_ABSENT,
        .replaced = BW_ABSENT,
    };
    return write_row(versions, &row, versions->fs, &version->place, &version->inode);
}

/* Writes the versions in snapshots that are newer than a time. */
static struct bw_error *write_newer(struct versions *versions, int64_t than)
{
    while (versions->next < versions->count &&
           bw_time_nanoseconds(&versions->in_snapshots[versions->next].snapshot->time) > than)
        BW_TRY(write_snapshot(versions, &versions->in_snapshots[versions->next++]));
    return NULL;
}

/* Finds the versions in snapshots; without --all, each version only in its newest snapshot. */
static struct bw_error *find_in_snapshots(struct versions *versions, const char *path)
{
    struct bw_place place;
    struct bw_inode before = {.generation = 0};
    uint64_t id = 0;
    const char *rest = path; /* the path in the subvolume */
    if (versions->subvolume) {
        const struct bw_subvolume *subvolume;
        BW_TRY(bw_subvolume_by_name(versions->fs, versions->subvolume, &subvolume));
        id = bw_subvolume_id(subvolume);
    } else {
        /* The subvolume with the longest path that the file's path begins with. */
        struct bw_subvolume_infos *infos;
        BW_TRY(bw_subvolume_infos_open(versions->fs, true, &infos));
        for (const struct bw_subvolume_info *info; (info = bw_subvolume_infos_next(infos));) {
            const size_t length = info->path_length > 1 ? info->path_length : 0;
            if (!info->path || info->is_deleted || length < (size_t)(rest - path) ||
                strncmp(path, info->path, length) != 0 || (length && path[length] != '/'))
                continue;
            id = info->id;
            rest = path + length;
        }
        BW_TRY(bw_subvolume_infos_close(infos));
    }
    struct bw_snapshot_file file = {.path = rest};
    BW_AUTO_ERROR struct bw_error *absent =
        bw_lookup(versions->fs, bw_subvolume_by_id(versions->fs, id), rest, false, &place);
    if (!absent)
        absent = bw_inode_get(versions->fs, &place, &before);
    file.inode = absent ? 0 : place.inode;
    file.generation = before.generation;
    BW_TRY(bw_snapshots_open(versions->fs, id, &versions->snapshots));
    const size_t count = bw_snapshots_count(versions->snapshots);
    versions->in_snapshots = calloc(count + 1, sizeof *versions->in_snapshots);
    if (!versions->in_snapshots)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++) {
        struct snapshot_version *version = &versions->in_snapshots[versions->count];
        version->snapshot = bw_snapshots_entry(versions->snapshots, i);
        const struct bw_inode *inode = &version->inode;
        if (!bw_snapshots_find(versions->snapshots, i, &file, &version->place, &version->inode))
            continue;
        /* Inodes of snapshots that have not changed since have the same transaction. */
        if (!versions->all && before.generation == inode->generation &&
            before.transid == inode->transid && before.size == inode->size)
            continue;
        before = *inode;
        versions->count++;
    }
    return NULL;
}

/* Generations. */

static struct bw_error *write_version(void *context, const struct bw_version *version)
{
    struct versions *versions = context;
    const struct bw_bytes path = {version->path, version->path_length};
    struct bw_bytes changes[BW_DIFFERENCE_CHANGES + 1], unknown[BW_DIFFERENCE_CHANGES];
    struct bw_names changed = cmd_change_names(version->changes, changes);
    const int64_t time = bw_time_nanoseconds(&version->time);
    if (version->renamed) {
        changed.data = changes;
        changes[changed.length++] = (struct bw_bytes){"renamed", strlen("renamed")};
    }
    BW_TRY(write_newer(versions, time));
    for (size_t i = versions->next; versions->good && i < versions->count; i++) {
        const struct bw_inode *other = &versions->in_snapshots[i].inode;
        if (other->generation == version->inode.generation &&
            other->transid == version->inode.transid && other->size == version->inode.size) {
            BW_TRY(write_snapshot(versions, &versions->in_snapshots[i]));
            break;
        }
    }
    struct bw_versioninfo row = {
        .generation = version->generation,
        .first_generation = version->first,
        .tree_root = version->tree_root,
        .changed = time,
        .changes = changed,
        .unknown = cmd_change_names(version->unknown, unknown),
        .replaced = version->replaced,
        .path = path,
        .path_bytes = path,
    };
    return write_row(versions, &row, version->fs, &version->place, &version->inode);
}

/* Writes or extracts all versions. BW_ERROR_NOT_FOUND if there are none. */
static struct bw_error *find_all(struct versions *versions, struct bw_fs *fs)
{
    struct cmd_generations generations = {.count = 0};
    BW_AUTO_BUFFER struct bw_buffer path = {0};
    versions->fs = fs;
    BW_TRY(cmd_paths_absolute(versions->common->paths[0], &path));
    BW_TRY(bw_buffer_terminate(&path));
    versions->path = path.data;

    struct bw_error *error = find_in_snapshots(versions, path.data);
    if (!error)
        error = cmd_generations_find(versions->common, versions->fs, &generations);
    const struct bw_versions_options how = {
        .struct_size = sizeof how,
        .images = &generations.images,
        .states = generations.choices,
        .state_count = generations.count,
        .path = path.data,
        .all = versions->all,
        .visit = write_version,
        .context = versions,
        .progress = cmd_progress_state,
        .subvolume = versions->subvolume,
    };
    if (!error)
        error = bw_versions(versions->fs, &how);
    cmd_generations_free(&generations);
    if (error && error->code == BW_ERROR_NOT_FOUND && versions->count)
        bw_error_free(BW_TAKE(error)); /* only snapshots have the file */
    if (!error)
        error = write_newer(versions, INT64_MIN);
    if (!error && versions->good) /* a good version would have ended the listing */
        error = bw_error_create(BW_ERROR_NOT_FOUND, "%s: no version is verified", path.data);
    bw_snapshots_close(versions->snapshots);
    free(versions->in_snapshots);
    if (error && error->code == BW_ERROR_STOPPED && versions->found_good)
        bw_error_free(BW_TAKE(error));
    return error;
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct versions *versions = context;
    versions->format = format;
    struct bw_error *error = find_all(versions, format->session.fs);
    if (error && error->code == BW_ERROR_NOT_FOUND) /* as for all commands with paths */
        cmd_format_miss(format, BW_TAKE(error));
    return error;
}

static struct bw_error *extract_all(struct extract *extract, void *context)
{
    struct versions *versions = context;
    versions->extraction = extract;
    extract->export.bring = bring_version;
    extract->export.bring_context = versions;
    struct bw_error *error = find_all(versions, extract->export.session.fs);
    if (error && error->code == BW_ERROR_NOT_FOUND)
        cmd_export_miss(&extract->export, BW_TAKE(error));
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    struct versions *versions = state;
    struct cmd_common own = *common;
    const struct cmd_format_plan plan = {
        .record = cmd_versions.record,
        .columns =
            "generation,first_generation,changed,recoverable,size,mtime,changes,path,snapshot_name",
        .list = list,
        .context = versions,
    };
    if (common->path_count > 1)
        return cmd_refuse(common, "at most one PATH can be given");
    own.input.index = &versions->index;
    versions->common = &own;
    if (!versions->extract.folder)
        return cmd_format_run(&own, &plan);
    /* Without PATH, which the extraction would look up in the current generation. */
    struct cmd_common without_path = own;
    without_path.path_count = 0;
    return extract_run(&without_path, &versions->extract, extract_all, versions);
}

const struct command cmd_versions = {
    .name = "versions",
    .topic = cmd_topic_history,
    .operands = "IMAGE PATH",
    .summary = "Lists the versions of a file in snapshots and older generations.",
    .details =
        "\n"
        "The blocks of each transaction stay on the disk until other data overwrite them. Each\n"
        "row is a version, the newest first. It lasted from the generation in the column\n"
        "first_generation to the one in generation. If a generation has no file at PATH, the\n"
        "file is searched for under other names. \"changes\" lists the differences from the\n"
        "previous version, which is the next row. The contents are read and verified against\n"
        "the checksums of that generation: all ranges are valid (verified), some are lost\n"
        "(partly), all are lost (lost), or the file has no checksums and may contain anything\n"
        "(unverified).\n\n"
        "Rows with a \"snapshot_name\" are versions in snapshots, which are found by the UUIDs of\n"
        "subvolumes; \"changed\" is the time of the snapshot. It is named as in Snapper, btrbk\n"
        "and Timeshift. The file need not exist outside of snapshots any more. Without --all,\n"
        "each version is listed only in its newest snapshot. --good prints the newest version\n"
        "that is verified, from a snapshot rather than from an older generation. If no version\n"
        "is verified, the exit status is 1.\n\n"
        "--extract writes the versions into DEST, with their directories: the newest one under\n"
        "its name, the others with the suffix .~GENERATION~.\n",
    .examples = "  btrfs-walk versions disk.img /etc/fstab\n"
                "  btrfs-walk cat --generation 1234 disk.img /etc/fstab  one of them\n"
                "  btrfs-walk versions --good disk.img /etc/fstab        the newest good one\n"
                "  btrfs-walk versions --good --extract DEST disk.img /etc/fstab\n"
                "  btrfs-walk versions -o generation,size --raw disk.img /etc/fstab\n",
    .options = options,
    .record = "versioninfo",
    .sorts_rows = true,
    .run = run,
    .state_size = sizeof(struct versions),
    .defaults = &(const struct versions){.extract.on_error = CMD_ON_ERROR_SKIP},
    .takes_paths = true,
    .missing = "no path given",
};
