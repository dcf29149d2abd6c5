/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Archives of the entries of an export.
 *
 * A file with several hard links is stored under the first of its names that arrives; the others
 * become links to it. Unless the entries are sorted, directories wait in a struct
 * bw_directory_order until an entry in them follows. The entry of a file tells its ranges of data,
 * which are therefore read before its contents.
 */
#include "export/tree_archive.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "btrfs-walk/fs.h"
#include "export/links.h"
#include "export/made_directories.h"

struct bw_tree_archive {
    struct bw_tree_archive_options options;
    struct bw_fs *fs;
    struct bw_archive *archive;
    struct bw_links links;
    struct bw_directory_order directories;
    struct bw_xattr_reader *xattrs;
    struct bw_ranges ranges;
    struct bw_buffer target; /* target of a symbolic or hard link; path of a directory */
    uint64_t wanted;         /* bytes of data still missing from the entry of the current file */
};

/* Begins an entry, with the owners and times that replace its own. */
static struct bw_error *begin_entry(struct bw_tree_archive *archive, struct bw_archive_entry *entry)
{
    const struct bw_tree_archive_options *options = &archive->options;
    struct bw_inode inode = *entry->inode;
    if (options->has_mtime)
        inode.mtime = options->mtime;
    if (options->owner.is_given)
        inode.uid = options->owner.id;
    if (options->group.is_given)
        inode.gid = options->group.id;
    entry->inode = &inode;
    entry->user = options->owner.name;
    entry->group = options->group.name;
    entry->has_atime = options->has_atime;
    entry->has_ctime = !options->has_mtime;
    return bw_archive_begin(archive->archive, entry, &archive->wanted);
}

/* Returns NULL for errors that affect only one entry, after reporting them. */
static struct bw_error *tolerate_error(struct bw_tree_archive *archive, struct bw_error *error,
                                       const char *path)
{
    if (!error || error->code == BW_ERROR_NO_MEMORY || error->code == BW_ERROR_SYSTEM)
        return error;
    archive->options.missed(archive->options.context, bw_error_prefix(error, "%s", path));
    return NULL;
}

/* In pax archives, a '/' follows the path of a directory, and the top directory is "./". */
static struct bw_error *write_directory(struct bw_tree_archive *archive, const char *path,
                                        const struct bw_place *place, const struct bw_inode *inode)
{
    const bool is_pax = archive->options.format == BW_ARCHIVE_PAX;
    struct bw_archive_entry entry = {.inode = inode};
    struct bw_error *error = NULL;
    archive->target.length = 0;
    bw_buffer_format(&archive->target, "%s", *path ? path : ".");
    bw_buffer_append(&archive->target, "/", is_pax);
    BW_TRY(bw_buffer_terminate(&archive->target));
    entry.path = archive->target.data;
    if (is_pax)
        error = bw_image_error(
            bw_xattr_reader_read(archive->xattrs, place, &entry.xattrs, &entry.xattr_count));
    if (!error)
        error = begin_entry(archive, &entry);
    return tolerate_error(archive, error, path);
}

/* A directory is written first with all permissions of its owner, so that files can be extracted
 * into it, and again with its own permissions at the end. */
static struct bw_error *write_turn(void *context, const char *path,
                                   const struct bw_made_directory *directory,
                                   enum bw_directory_turn turn)
{
    struct bw_tree_archive *archive = context;
    const bool is_pax = archive->options.format == BW_ARCHIVE_PAX;
    struct bw_inode inode = bw_made_directory_inode(directory);
    if (turn == BW_DIRECTORY_AGAIN && !is_pax)
        return NULL;
    if (turn == BW_DIRECTORY_FIRST && is_pax)
        inode.mode |= S_IRWXU;
    return write_directory(archive, path, &directory->place, &inode);
}

struct bw_error *bw_tree_archive_create(struct bw_fs *fs,
                                        const struct bw_tree_archive_options *options,
                                        struct bw_tree_archive **result)
{
    struct bw_tree_archive *archive = calloc(1, sizeof *archive);
    if (!archive)
        return bw_error_no_memory();
    archive->options = *options;
    archive->fs = fs;
    archive->directories.write = write_turn;
    archive->directories.context = archive;
    archive->directories.all.complete = options->passes_once;
    bw_links_init(&archive->links);
    struct bw_error *error = bw_xattr_reader_create(fs, &archive->xattrs);
    if (!error)
        error = bw_ranges_init(&archive->ranges, fs);
    if (!error)
        error = bw_archive_create(options->format, options->write, options->write_context,
                                  &archive->archive);
    if (error)
        bw_tree_archive_destroy(archive);
    else
        *result = archive;
    return error;
}

struct bw_error *bw_tree_archive_meet(struct bw_tree_archive *archive, struct bw_export_entry *item)
{
    struct bw_link link;
    if (!bw_export_entry_has_names(item))
        return NULL;
    if (!bw_links_meet(&archive->links, &item->place, bw_export_entry_name(item), &link))
        return bw_error_no_memory();
    item->skipped = !link.is_first && archive->options.format == BW_ARCHIVE_PAX;
    return NULL;
}

/* Writes the entry of anything but a directory, without its data. */
static struct bw_error *write_file(struct bw_tree_archive *archive, struct bw_export_entry *item)
{
    const bool is_pax = archive->options.format == BW_ARCHIVE_PAX;
    struct bw_archive_entry entry = {.path = bw_export_entry_name(item), .inode = &item->inode};
    if (*item->hash)
        entry.hash = item->hash;

    /* Its links: a further name refers to the first one. */
    struct bw_link link;
    const bool has_names =
        bw_export_entry_has_names(item) && bw_links_find(&archive->links, &item->place, &link);
    archive->target.length = 0;
    if (has_names && item->skipped) {
        if (link.state != BW_LINK_MADE)
            return bw_error_create(BW_ERROR_CORRUPT, "its first hard link is not in the archive");
        bw_links_append_path(&archive->links, link.number, &archive->target);
        BW_TRY(bw_buffer_terminate(&archive->target));
        entry.hardlink = archive->target.data;
    } else if (item->type == S_IFLNK) {
        BW_TRY(bw_export_entry_read_link(item, archive->fs, &archive->target));
        entry.symlink = archive->target.data;
    }

    /* Attributes, and the ranges of a sparse file. */
    if (is_pax && !entry.hardlink)
        BW_TRY(
            bw_xattr_reader_read(archive->xattrs, &item->place, &entry.xattrs, &entry.xattr_count));
    if (is_pax && !entry.hardlink && item->type == S_IFREG) {
        const struct bw_stream_file file = bw_export_entry_stream_file(item);
        struct bw_ranges *ranges = &archive->ranges;
        BW_TRY(bw_ranges_read(ranges, &file.data));
        if (ranges->lost)
            archive->options.missed(archive->options.context,
                                    bw_error_prefix(BW_TAKE(ranges->lost), "%s", item->path.data));
        entry.ranges = ranges->ranges.items;
        entry.range_count = ranges->ranges.count;
        entry.is_sparse = ranges->is_sparse;
    }

    BW_TRY(begin_entry(archive, &entry));
    if (has_names)
        bw_links_set(&archive->links, link.number, BW_LINK_MADE);
    return NULL;
}

struct bw_error *bw_tree_archive_begin(struct bw_tree_archive *archive,
                                       struct bw_export_entry *item)
{
    const struct bw_tree_archive_options *options = &archive->options;
    const bool is_mtree = options->format == BW_ARCHIVE_MTREE;
    const char *name = bw_export_entry_name(item);
    const size_t length = bw_export_entry_name_length(item);
    archive->wanted = 0;

    /* There may be no entry, or only an incomplete one. */
    if (item->type == S_IFSOCK) {
        bw_fs_report(archive->fs, BW_WARNING,
                     bw_error_create(BW_ERROR_UNSUPPORTED,
                                     "%s: skipped: sockets cannot be archived", item->path.data));
        return NULL;
    }
    const bool is_lost = !item->has_inode || !item->type || (item->error && !is_mtree);
    if (!item->has_inode)
        options->lost(options->context, bw_export_entry_loss(item));
    else if (is_lost || (is_mtree && item->type == S_IFREG && !*item->hash))
        options->missed(options->context, bw_export_entry_loss(item));
    if (is_lost)
        return NULL;

    if (item->type == S_IFDIR && options->sorted)
        return write_directory(archive, name, &item->place, &item->inode);
    if (item->type == S_IFDIR)
        return bw_directory_order_add(&archive->directories, name, length, &item->place,
                                      &item->inode);
    if (!options->sorted)
        BW_TRY(bw_directory_order_enter(&archive->directories, name, length));
    return tolerate_error(archive, write_file(archive, item), item->path.data);
}

uint64_t bw_tree_archive_wanted(const struct bw_tree_archive *archive)
{
    return archive->wanted;
}

struct bw_error *bw_tree_archive_add(struct bw_tree_archive *archive, const void *bytes,
                                     uint64_t length)
{
    archive->wanted -= length < archive->wanted ? length : archive->wanted;
    return bytes ? bw_archive_add(archive->archive, bytes, (size_t)length)
                 : bw_archive_add_zeros(archive->archive, length);
}

struct bw_error *bw_tree_archive_end(struct bw_tree_archive *archive)
{
    BW_TRY(bw_directory_order_end(&archive->directories));
    return bw_archive_end(archive->archive);
}

void bw_tree_archive_destroy(struct bw_tree_archive *archive)
{
    if (!archive)
        return;
    bw_archive_destroy(archive->archive);
    bw_links_free(&archive->links);
    bw_directory_order_free(&archive->directories);
    bw_xattr_reader_destroy(archive->xattrs);
    bw_ranges_free(&archive->ranges);
    bw_buffer_free(&archive->target);
    free(archive);
}
