/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tar command: archives of whole trees, written from the files that a stream delivers. With
 * --on-error=skip, files are read twice: the entry precedes the data, so the data must be verified
 * before the entry is written.
 */
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "cli/common/monitor.h"
#include "cli/common/output.h"
#include "cli/export/hashing.h"
#include "export/archive.h"
#include "export/links.h"
#include "export/made_directories.h"

/* An owner for all files. All zeros: files keep their own. */
struct owner {
    bool is_given;
    uint32_t id;
    char *name; /* NULL: only the number is stored */
};

/* An archive that is being written. */
struct tar {
    /* The options. */
    struct cmd_export_settings settings;
    const char *file_name;
    enum bw_archive_format format;
    enum cmd_on_error on_error;
    struct owner owner, group;
    struct timespec mtime; /* the time of all files, if `has_mtime` */
    bool has_mtime, has_atime;
    unsigned sort;

    /* While it runs. */
    struct cmd_export export;
    struct cmd_output_file file;
    struct bw_archive *archive;

    struct bw_links links;
    struct bw_directory_order directories;
    struct bw_xattr_reader *xattrs;
    struct bw_ranges ranges;
    struct bw_buffer target; /* target of a symbolic or hard link; path of a directory */
    struct cmd_bad_ranges bad;
    struct cmd_hashing hashing; /* the hashes for mtree */

    /* The file that is read for verification, and will be read again to be written; NULL: none. */
    struct bw_export_entry *again;
    bool began;      /* the entry of the current file has been handled */
    uint64_t wanted; /* bytes of data still missing from the entry of the current file */
};

enum { SORT_NONE, SORT_NAME };

static const char *const sorts[] = {[SORT_NONE] = "none", [SORT_NAME] = "name", NULL};

/* A date, or a path whose modification time is used. */
static struct bw_error *store_mtime(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    struct tar *tar = target;
    struct stat status;
    int64_t nanoseconds;
    tar->has_mtime = true;
    if (*argument == '/' || *argument == '.') {
        if (stat(argument, &status))
            return bw_error_from_errno(errno, "--mtime: cannot read %s", argument);
        tar->mtime = status.st_mtim;
        return NULL;
    }
    if (!bw_parse_date(argument, &nanoseconds))
        return cmd_bad_argument(option, argument,
                                "YYYY-MM-DD, perhaps with HH:MM[:SS], @SECONDS, or a file whose "
                                "path begins with / or .");
    tar->mtime.tv_sec = nanoseconds / 1000000000 - (nanoseconds % 1000000000 < 0);
    tar->mtime.tv_nsec = nanoseconds - (int64_t)tar->mtime.tv_sec * 1000000000;
    return NULL;
}

/* The files are read directly: getpwnam(3) loads libraries, which a static program cannot. */
static bool find_user(const char *name, uint32_t *id)
{
    FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *user;
    if (!file)
        return false;
    while ((user = fgetpwent(file)) && strcmp(user->pw_name, name) != 0)
        ;
    if (user)
        *id = user->pw_uid;
    fclose(file);
    return user;
}

static bool find_group(const char *name, uint32_t *id)
{
    FILE *file = fopen("/etc/group", "re");
    const struct group *group;
    if (!file)
        return false;
    while ((group = fgetgrent(file)) && strcmp(group->gr_name, name) != 0)
        ;
    if (group)
        *id = group->gr_gid;
    fclose(file);
    return group;
}

/* NAME:ID, a number, or a name of this machine, as in GNU tar. */
static struct bw_error *store_owner(struct owner *owner, const struct cmd_option *option,
                                    const char *argument, bool (*find)(const char *, uint32_t *))
{
    const char *colon = strrchr(argument, ':'), *digits = colon ? colon + 1 : argument;
    uint64_t number = 0;
    const bool is_number = cmd_parse_number(digits + (*digits == '+'), 0, UINT32_MAX, &number);
    free(BW_TAKE(owner->name));
    owner->is_given = true;
    owner->id = (uint32_t)number;
    if (!is_number && (colon || !find(argument, &owner->id)))
        return cmd_bad_argument(option, argument, "NAME:ID, a number, or a name of this machine");
    if (is_number && (!colon || colon == argument))
        return NULL;
    owner->name = strndup(argument, colon ? (size_t)(colon - argument) : strlen(argument));
    return owner->name ? NULL : bw_error_no_memory();
}

static void release_owner(void *owner)
{
    free(((struct owner *)owner)->name);
}

static struct bw_error *store_user(void *target, const struct cmd_option *option,
                                   const char *argument)
{
    return store_owner(target, option, argument, find_user);
}

static struct bw_error *store_group(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    return store_owner(target, option, argument, find_group);
}

static const char *const formats[] = {[BW_ARCHIVE_PAX] = "pax", [BW_ARCHIVE_MTREE] = "mtree", NULL};

static const struct cmd_option options[] = {
    CMD_FILE_OPTION(struct tar, file_name),
    {0, "format", "WORD", "write pax (default), or mtree (a manifest with SHA-256 sums)",
     CMD_WORD(struct tar, format, formats)},
    CMD_ON_ERROR_OPTION(struct tar, on_error, "file", "fail"),
    {0, "sort", "WORD",
     "order of the entries: none (the default), or name: by names, a directory and then everything "
     "in it",
     CMD_WORD(struct tar, sort, sorts)},
    {0, "mtime", "DATE|FILE",
     "set this modification time (YYYY-MM-DD [HH:MM[:SS]], @SECONDS, or the time of a file), and "
     "store no change time",
     .store = store_mtime},
    {0, "owner", "NAME[:ID]", "set this owner: NAME:ID, a number, or a user of this machine",
     .store = store_user, .offset = CMD_AT(struct tar, owner, struct owner),
     .release = release_owner},
    {0, "group", "NAME[:ID]", "the same for the group", .store = store_group,
     .offset = CMD_AT(struct tar, group, struct owner), .release = release_owner},
    {0, "atime", NULL, "also store access times, which reading on a mount changes",
     CMD_FLAG(struct tar, has_atime)},
    CMD_GROUP(cmd_naming_options, struct tar, settings),
    CMD_GROUP(cmd_export_options, struct tar, settings),
    {0},
};

/* Entries. */

/* Whether a file must be verified before it is written. */
static bool needs_check(const struct tar *tar, const struct bw_export_entry *item)
{
    return tar->bad.on_error == CMD_ON_ERROR_SKIP && tar->format != BW_ARCHIVE_MTREE &&
           item->type == S_IFREG && item->has_inode && !item->skipped;
}

static struct bw_error *next_file(void *context, struct bw_stream_file *file, bool *got)
{
    struct tar *tar = context;
    *got = tar->again;
    if (tar->again) {
        *file = bw_export_entry_stream_file(BW_TAKE(tar->again));
        return NULL;
    }
    struct bw_export_entry *item;
    BW_TRY(cmd_export_next_item(&tar->export, &item));
    *got = item;
    if (!item)
        return NULL;
    /* Contents that are already in the archive under another name are not read again. */
    struct bw_link link;
    if (bw_export_entry_has_names(item)) {
        if (!bw_links_meet(&tar->links, &item->place, bw_export_entry_name(item), &link)) {
            bw_entry_queue_release(tar->export.queue, item);
            return bw_error_no_memory();
        }
        item->skipped = !link.is_first && tar->format == BW_ARCHIVE_PAX;
    }
    *file = bw_export_entry_stream_file(item);
    if (needs_check(tar, item))
        tar->again = item;
    return NULL;
}

static struct bw_error *hash_file(void *context, struct bw_data_reader *reader,
                                  const struct bw_stream_file *file)
{
    struct tar *tar = context;
    return cmd_hashing_work(&tar->hashing, reader, file);
}

/* Begins an entry, with the owners and times that replace its own. */
static struct bw_error *begin_archive_entry(struct tar *tar, struct bw_archive_entry *entry)
{
    struct bw_inode inode = *entry->inode;
    if (tar->has_mtime)
        inode.mtime = tar->mtime;
    if (tar->owner.is_given)
        inode.uid = tar->owner.id;
    if (tar->group.is_given)
        inode.gid = tar->group.id;
    entry->inode = &inode;
    entry->user = tar->owner.name;
    entry->group = tar->group.name;
    entry->has_atime = tar->has_atime;
    entry->has_ctime = !tar->has_mtime;
    return bw_archive_begin(tar->archive, entry, &tar->wanted);
}

/* Writes the entry of anything but a directory, without its data. */
static struct bw_error *write_entry(struct tar *tar, struct bw_export_entry *item)
{
    const bool is_pax = tar->format == BW_ARCHIVE_PAX;
    struct bw_archive_entry entry = {.path = bw_export_entry_name(item), .inode = &item->inode};
    if (*item->hash)
        entry.hash = item->hash;

    /* Its links: a further name refers to the first one. */
    struct bw_link link;
    const bool has_names =
        bw_export_entry_has_names(item) && bw_links_find(&tar->links, &item->place, &link);
    tar->target.length = 0;
    if (has_names && item->skipped) {
        if (link.state != BW_LINK_MADE)
            return bw_error_create(BW_ERROR_CORRUPT, "its first hard link is not in the archive");
        bw_links_append_path(&tar->links, link.number, &tar->target);
        bw_buffer_append_byte(&tar->target, '\0');
        if (tar->target.failed)
            return bw_error_no_memory();
        entry.hardlink = tar->target.data;
    } else if (item->type == S_IFLNK) {
        BW_TRY(cmd_export_read_link(&tar->export, item, &tar->target));
        entry.symlink = tar->target.data;
    }

    /* Attributes, and the ranges of a sparse file. */
    if (is_pax && !entry.hardlink)
        BW_TRY(bw_xattr_reader_read(tar->xattrs, &item->place, &entry.xattrs, &entry.xattr_count));
    if (is_pax && !entry.hardlink && item->type == S_IFREG) {
        const struct bw_stream_file file = bw_export_entry_stream_file(item);
        BW_TRY(bw_ranges_read(&tar->ranges, &file.data));
        if (tar->ranges.lost)
            cmd_export_miss(&tar->export,
                            bw_error_prefix(BW_TAKE(tar->ranges.lost), "%s", item->path.data));
        entry.ranges = tar->ranges.ranges.items;
        entry.range_count = tar->ranges.ranges.count;
        entry.is_sparse = tar->ranges.is_sparse;
    }

    BW_TRY(begin_archive_entry(tar, &entry));
    if (has_names)
        bw_links_set(&tar->links, link.number, BW_LINK_MADE);
    return NULL;
}

/* Returns NULL for errors that affect only one entry, after reporting them. */
static struct bw_error *tolerate_error(struct tar *tar, struct bw_error *error, const char *path)
{
    if (!error || error->code == BW_ERROR_NO_MEMORY || error->code == BW_ERROR_SYSTEM)
        return error;
    cmd_export_miss(&tar->export, bw_error_prefix(error, "%s", path));
    return NULL;
}

/* In pax archives, a '/' follows the path of a directory, and the top directory is "./". */
static struct bw_error *write_directory(struct tar *tar, const char *path,
                                        const struct bw_place *place, const struct bw_inode *inode)
{
    const bool is_pax = tar->format == BW_ARCHIVE_PAX;
    struct bw_archive_entry entry = {.inode = inode};
    struct bw_error *error = NULL;
    tar->target.length = 0;
    bw_buffer_format(&tar->target, "%s", *path ? path : ".");
    bw_buffer_append(&tar->target, "/", is_pax);
    bw_buffer_append_byte(&tar->target, '\0');
    if (tar->target.failed)
        return bw_error_no_memory();
    entry.path = tar->target.data;
    if (is_pax)
        error = cmd_image_error(
            bw_xattr_reader_read(tar->xattrs, place, &entry.xattrs, &entry.xattr_count));
    if (!error)
        error = begin_archive_entry(tar, &entry);
    return tolerate_error(tar, error, path);
}

/* Without --sort=name, a directory is written first with all permissions of its owner, so that
 * files can be extracted into it, and again with its own permissions at the end. */
static struct bw_error *write_turn(void *context, const char *path,
                                   const struct bw_made_directory *directory,
                                   enum bw_directory_turn turn)
{
    struct tar *tar = context;
    const bool is_pax = tar->format == BW_ARCHIVE_PAX;
    struct bw_inode inode = bw_made_directory_inode(directory);
    if (turn == BW_DIRECTORY_AGAIN && !is_pax)
        return NULL;
    if (turn == BW_DIRECTORY_FIRST && is_pax)
        inode.mode |= S_IRWXU;
    return write_directory(tar, path, &directory->place, &inode);
}

/* Begins an entry. Fails only if nothing more can be written. */
static struct bw_error *begin_entry(struct tar *tar, struct bw_export_entry *item)
{
    const bool is_mtree = tar->format == BW_ARCHIVE_MTREE;
    const char *name = bw_export_entry_name(item);
    const size_t length = bw_export_entry_name_length(item);
    tar->began = true;
    tar->wanted = 0;

    /* There may be no entry, or only an incomplete one. */
    if (item->type == S_IFSOCK) {
        bw_fs_report(tar->export.session.fs, BW_WARNING,
                     bw_error_create(BW_ERROR_UNSUPPORTED,
                                     "%s: skipped: sockets cannot be archived", item->path.data));
        return NULL;
    }
    const bool is_lost = !item->has_inode || !item->type || (item->error && !is_mtree);
    if (is_lost || (is_mtree && item->type == S_IFREG && !*item->hash))
        cmd_export_miss_item(&tar->export, item);
    if (is_lost)
        return NULL;

    if (item->type == S_IFDIR && tar->sort == SORT_NAME)
        return write_directory(tar, name, &item->place, &item->inode);
    if (item->type == S_IFDIR)
        return bw_directory_order_add(&tar->directories, name, length, &item->place, &item->inode);
    if (tar->sort != SORT_NAME)
        BW_TRY(bw_directory_order_enter(&tar->directories, name, length));
    return tolerate_error(tar, write_entry(tar, item), item->path.data);
}

static struct bw_error *write_part(void *context, const struct bw_stream_file *file,
                                   const struct bw_data_part *part)
{
    struct tar *tar = context;
    struct bw_export_entry *item = file->user;
    if (tar->format == BW_ARCHIVE_MTREE)
        return cmd_hashing_visit(&tar->hashing, file, part);
    if (needs_check(tar, item) && !item->checked) {
        if (part->kind == BW_DATA_BAD)
            cmd_export_note_bad(item, part);
        return NULL;
    }
    if (!tar->began)
        BW_TRY(begin_entry(tar, item));
    if (!tar->wanted)
        return NULL; /* omitted */
    tar->wanted -= part->length < tar->wanted ? part->length : tar->wanted;
    if (part->kind == BW_DATA_BAD && tar->bad.on_error == CMD_ON_ERROR_FAIL)
        return cmd_bad_error(item->path.data, part);
    if (part->kind == BW_DATA_BAD)
        cmd_bad_add(&tar->bad, item->path.data, part);
    if (part->kind != BW_DATA_BYTES)
        return bw_archive_add_zeros(tar->archive, part->length);
    cmd_progress_add(part->length);
    return bw_archive_add(tar->archive, part->bytes, (size_t)part->length);
}

static struct bw_error *finish_file(void *context, const struct bw_stream_file *file, bool complete)
{
    struct tar *tar = context;
    struct bw_export_entry *item = file->user;
    if (tar->format == BW_ARCHIVE_MTREE && complete)
        cmd_hashing_finish(&tar->hashing, file);
    if (needs_check(tar, item) && !item->checked) {
        item->checked = true; /* comes again */
        return NULL;
    }
    struct bw_error *error = complete && !tar->began ? begin_entry(tar, item) : NULL;
    cmd_bad_flush(&tar->bad);
    tar->began = false;
    bw_entry_queue_release(tar->export.queue, item);
    return error;
}

/* Writes the archive, after the output file and the image were opened. */
static struct bw_error *write_archive(struct tar *tar)
{
    const struct bw_walk_options *walk = &tar->settings.walk;
    struct bw_fs *fs = tar->export.session.fs;
    const bool is_mtree = tar->format == BW_ARCHIVE_MTREE;
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = walk->threads,
                                     .next = next_file,
                                     .work = is_mtree ? hash_file : NULL,
                                     .work_limit = CMD_HASHING_LIMIT,
                                     .visit = write_part,
                                     .finish = finish_file,
                                     .context = tar,
                                     .held = cmd_export_held};
    tar->directories.write = write_turn;
    tar->directories.context = tar;
    /* The walk passes each directory only once, and after its parent, unless: */
    tar->directories.all.complete = tar->export.starts.count <= 1 &&
                                    !tar->settings.naming.components && !walk->selection &&
                                    !walk->mindepth;
    tar->bad = (struct cmd_bad_ranges){.fs = fs, .export = &tar->export, .on_error = tar->on_error};
    BW_TRY(bw_xattr_reader_create(fs, &tar->xattrs));
    BW_TRY(bw_ranges_init(&tar->ranges, fs));
    BW_TRY(bw_archive_create(tar->format, cmd_output_file_add, &tar->file, &tar->archive));
    if (!is_mtree && isatty(cmd_output_file_descriptor(&tar->file)))
        return bw_error_create(
            BW_ERROR_USAGE,
            "refusing to write an archive to a terminal; redirect stdout, or use -f FILE");
    BW_TRY(cmd_output_file_start(&tar->file));
    cmd_export_expect(&tar->export);
    BW_TRY(cmd_export_start(&tar->export, BW_WALK_ALL, 0));
    BW_TRY(bw_stream_run(fs, &stream));
    BW_TRY(bw_directory_order_end(&tar->directories));
    return bw_archive_end(tar->archive);
}

static int run(const struct cmd_common *common, void *settings)
{
    struct tar *tar = settings;
    struct cmd_common writing = *common;
    tar->file =
        (struct cmd_output_file){.common = common, .name = tar->file_name, .descriptor = -1};
    writing.writing.open_outputs = cmd_output_file_open;
    writing.writing.outputs = &tar->file;
    tar->settings.sorted = tar->sort == SORT_NAME;
    tar->settings.salvage = tar->on_error == CMD_ON_ERROR_ZERO;
    int status = cmd_export_open(&writing, &tar->settings, &tar->export);
    if (status) {
        bw_error_free(cmd_output_file_close(&tar->file, NULL));
        return status;
    }
    bw_links_init(&tar->links);
    cmd_hashing_init(&tar->hashing, BW_HASH_SHA256);
    struct bw_error *error = write_archive(tar);
    bool usage = error && error->code == BW_ERROR_USAGE;
    if (tar->again)
        bw_entry_queue_release(tar->export.queue, tar->again);
    status = cmd_export_close(&tar->export, cmd_output_file_close(&tar->file, error));
    bw_archive_destroy(tar->archive);
    bw_links_free(&tar->links);
    bw_directory_order_free(&tar->directories);
    bw_xattr_reader_destroy(tar->xattrs);
    bw_ranges_free(&tar->ranges);
    cmd_hashing_free(&tar->hashing);
    bw_buffer_free(&tar->target);
    return usage ? STATUS_CANNOT : status;
}

const struct command cmd_tar = {
    .name = "tar",
    .topic = cmd_topic_export,
    .operands = "IMAGE [PATH]...",
    .summary = "Archives files, directories or the whole file system.",
    .details =
        "\n"
        "A PATH is a file, or a directory with everything in it; without one, everything is\n"
        "archived. It starts at the top-level subvolume (id 5), or at the subvolume given\n"
        "with --subvol. Names in the archive are relative, as in archives made by GNU tar. A\n"
        "pax archive contains extended attributes, access control lists, holes, hard links,\n"
        "device nodes and times with nanoseconds; GNU tar restores the first two with\n"
        "--xattrs --acls. Sockets are skipped. Data are verified against their checksums.\n"
        "With --on-error=zero, a file whose inode is lost is restored from its remaining\n"
        "extents, with a made-up owner, mode and times. Files with more than 16 TiB of holes\n"
        "have no hash in a manifest. Archives of the same files are identical. Without\n"
        "--sort=name, a directory may come twice, which GNU tar needs and squashfs tools reject.\n",
    .examples = "  btrfs-walk tar disk.img | tar -x -C /mnt --xattrs --acls  everything\n"
                "  btrfs-walk tar disk.img /users/joe | zstd > joe.tar.zst   a directory\n"
                "  btrfs-walk tar -f etc.tar --subvol @ disk.img /etc        of a subvolume\n"
                "  btrfs-walk tar --on-error=zero disk.img > all.tar         damaged files, too\n"
                "  btrfs-walk tar --format mtree disk.img                    a manifest\n"
                "  btrfs-walk tar --sort=name disk.img | tar2sqfs a.sqfs     a squashfs image\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct tar),
    .takes_paths = true,
    .takes_list = true,
};
