/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Archives of the entries of an export.
 *
 * A file with several hard links is stored under the first of its names that arrives; the others
 * become links to it. Unless the entries are sorted, directories wait in a struct
 * bw_directory_order until an entry in them follows. The entry of a file tells its ranges of data,
 * which are therefore read before its contents. An mtree manifest has hashes instead of contents.
 */
#include "export/tree_archive.h"

#include "base/cleanup.h"
#include "btrfs-walk/fs.h"
#include "export/entry_hashes.h"
#include "export/links.h"
#include "export/made_directories.h"

struct tree_archive {
    const struct bw_tree_archive_options *options;
    struct bw_fs *fs;
    struct bw_archive *archive;
    struct bw_links links;
    struct bw_directory_order directories;
    struct bw_xattr_reader *xattrs;
    struct bw_ranges ranges;
    struct bw_buffer target; /* target of a symbolic or hard link; path of a directory */
    uint64_t wanted;         /* bytes of data still missing from the entry of the current file */
    struct bw_entry_hashes hashes; /* for mtree */
    bool began;                    /* the entry of the current file has been handled */
    /* The file that is read for verification, and will be read again to be written; or NULL. */
    struct bw_export_entry *again;
};

/* Begins an entry, with the owners and times that replace its own. */
static struct bw_error *begin_entry(struct tree_archive *archive, struct bw_archive_entry *entry)
{
    const struct bw_tree_archive_options *options = archive->options;
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
static struct bw_error *tolerate_error(struct tree_archive *archive, struct bw_error *error,
                                       const char *path)
{
    if (!error || error->code == BW_ERROR_NO_MEMORY || error->code == BW_ERROR_SYSTEM)
        return error;
    archive->options->missed(archive->options->context, bw_error_prefix(error, "%s", path));
    return NULL;
}

/* In pax archives, a '/' follows the path of a directory, and the top directory is "./". */
static struct bw_error *write_directory(struct tree_archive *archive, const char *path,
                                        const struct bw_place *place, const struct bw_inode *inode)
{
    const bool is_pax = archive->options->format == BW_ARCHIVE_PAX;
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
    struct tree_archive *archive = context;
    const bool is_pax = archive->options->format == BW_ARCHIVE_PAX;
    struct bw_inode inode = bw_made_directory_inode(directory);
    if (turn == BW_DIRECTORY_AGAIN && !is_pax)
        return NULL;
    if (turn == BW_DIRECTORY_FIRST && is_pax)
        inode.mode |= S_IRWXU;
    return write_directory(archive, path, &directory->place, &inode);
}

/* Writes the entry of anything but a directory, without its data. */
static struct bw_error *write_file(struct tree_archive *archive, struct bw_export_entry *item)
{
    const bool is_pax = archive->options->format == BW_ARCHIVE_PAX;
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
            archive->options->missed(archive->options->context,
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

/* Begins the entry of an item, after those of its directories. */
static struct bw_error *begin_item(struct tree_archive *archive, struct bw_export_entry *item)
{
    const struct bw_tree_archive_options *options = archive->options;
    const bool has_hashes = options->format == BW_ARCHIVE_MTREE;
    const char *name = bw_export_entry_name(item);
    const size_t length = bw_export_entry_name_length(item);
    archive->wanted = 0;
    archive->began = true;

    /* There may be no entry, or only an incomplete one. */
    if (item->type == S_IFSOCK) {
        bw_fs_report(archive->fs, BW_WARNING,
                     bw_error_create(BW_ERROR_UNSUPPORTED,
                                     "%s: skipped: sockets cannot be archived", item->path.data));
        return NULL;
    }
    const bool is_lost = !item->has_inode || !item->type || (item->error && !has_hashes);
    if (!item->has_inode)
        options->lost(options->context, bw_export_entry_loss(item));
    else if (is_lost || (has_hashes && item->type == S_IFREG && !*item->hash))
        options->missed(options->context, bw_export_entry_loss(item));
    if (is_lost)
        return NULL;

    if (item->type == S_IFDIR && options->sorted)
        return write_directory(archive, name, &item->place, &item->inode);
    if (item->type == S_IFDIR)
        return bw_made_directories_add(&archive->directories.all, name, length, &item->place,
                                       &item->inode);
    if (!options->sorted)
        BW_TRY(bw_directory_order_enter(&archive->directories, name, length));
    return tolerate_error(archive, write_file(archive, item), item->path.data);
}

/* For the stream. */

static bool is_mtree(const struct tree_archive *archive)
{
    return archive->options->format == BW_ARCHIVE_MTREE;
}

/* Pax archives have the contents of a file only once, under its first name. */
static struct bw_error *next_file(void *context, struct bw_stream_file *file, bool *got)
{
    struct tree_archive *archive = context;
    const struct bw_tree_archive_options *options = archive->options;
    *got = archive->again;
    if (archive->again) {
        *file = bw_export_entry_stream_file(BW_TAKE(archive->again));
        return NULL;
    }
    struct bw_export_entry *item;
    struct bw_link link = {.is_first = true};
    BW_TRY(options->next(options->context, &item));
    *got = item;
    if (!item)
        return NULL;
    if (bw_export_entry_has_names(item) &&
        !bw_links_meet(&archive->links, &item->place, bw_export_entry_name(item), &link)) {
        archive->again = item; /* released at the end: another thread may release one now */
        return bw_error_no_memory();
    }
    item->skipped = !link.is_first && !is_mtree(archive);
    *file = bw_export_entry_stream_file(item);
    item->checked = !options->omits_damaged || is_mtree(archive) || item->type != S_IFREG ||
                    !item->has_inode || item->skipped;
    if (!item->checked)
        archive->again = item;
    return NULL;
}

static struct bw_error *hash_file(void *context, struct bw_data_reader *reader,
                                  const struct bw_stream_file *file)
{
    struct tree_archive *archive = context;
    return bw_entry_hashes_work(&archive->hashes, reader, file);
}

static struct bw_error *write_part(void *context, const struct bw_stream_file *file,
                                   const struct bw_data_part *part)
{
    struct tree_archive *archive = context;
    const struct bw_tree_archive_options *options = archive->options;
    struct bw_export_entry *item = file->user;
    if (is_mtree(archive))
        return bw_entry_hashes_visit(&archive->hashes, file, part);
    if (!item->checked) {
        if (part->kind == BW_DATA_BAD)
            bw_export_entry_note_bad(item, part);
        return NULL;
    }
    if (!archive->began)
        BW_TRY(begin_item(archive, item));
    if (!archive->wanted)
        return NULL; /* omitted */
    if (part->kind == BW_DATA_BAD)
        BW_TRY(options->bad(options->context, item, part));
    archive->wanted -= part->length < archive->wanted ? part->length : archive->wanted;
    if (part->kind != BW_DATA_BYTES)
        return bw_archive_add_zeros(archive->archive, part->length);
    options->progress(part->length);
    return bw_archive_add(archive->archive, part->bytes, (size_t)part->length);
}

static struct bw_error *finish_file(void *context, const struct bw_stream_file *file, bool complete)
{
    struct tree_archive *archive = context;
    struct bw_export_entry *item = file->user;
    bw_entry_hashes_finish(&archive->hashes, file, complete);
    if (!item->checked) {
        item->checked = true; /* comes again */
        return NULL;
    }
    struct bw_error *error = NULL;
    if (complete && !archive->began)
        error = begin_item(archive, item);
    archive->began = false;
    archive->options->release(archive->options->context, item);
    return error;
}

struct bw_error *bw_tree_archive_write(struct bw_fs *fs,
                                       const struct bw_tree_archive_options *options)
{
    struct tree_archive archive = {
        .options = options,
        .fs = fs,
        .directories = {.write = write_turn, .all.complete = options->passes_once},
        .hashes = {.algorithm = BW_HASH_SHA256, .progress = options->progress},
    };
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = options->threads,
                                     .next = next_file,
                                     .work = is_mtree(&archive) ? hash_file : NULL,
                                     .visit = write_part,
                                     .finish = finish_file,
                                     .context = &archive,
                                     .held = bw_export_entry_held};
    archive.directories.context = &archive;
    bw_links_init(&archive.links);
    struct bw_error *error = bw_xattr_reader_create(fs, &archive.xattrs);
    if (!error)
        error = bw_ranges_init(&archive.ranges, fs);
    if (!error)
        error = bw_archive_create(options->format, options->write, options->write_context,
                                  &archive.archive);
    if (!error)
        error = bw_stream_run(fs, &stream);
    if (archive.again)
        options->release(options->context, archive.again);
    if (!error)
        error = bw_directory_order_end(&archive.directories);
    if (!error)
        error = bw_archive_end(archive.archive);
    bw_archive_destroy(archive.archive);
    bw_links_free(&archive.links);
    bw_directory_order_free(&archive.directories);
    bw_xattr_reader_destroy(archive.xattrs);
    bw_ranges_free(&archive.ranges);
    bw_entry_hashes_free(&archive.hashes);
    bw_buffer_free(&archive.target);
    return error;
}
