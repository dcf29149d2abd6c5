/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entries of an archive, made of the files that a stream delivers. With --on-error=skip a file is
 * read twice: its entry stands in front of its data, so it has to be known before whether they are
 * good.
 */
#include <inttypes.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cmd/export/tar.h"

struct bw_error *tar_init(struct tar *tar, enum cmd_on_error on_error)
{
    struct bw_fs *fs = tar->export.session.fs;
    bw_links_init(&tar->links);
    cmd_hashing_init(&tar->hashing, BW_HASH_SHA256);
    tar->bad = (struct cmd_bad_ranges){.fs = fs, .on_error = on_error};
    BW_TRY(bw_xattr_reader_create(fs, &tar->xattrs));
    return bw_ranges_init(&tar->ranges, fs);
}

void tar_free(struct tar *tar)
{
    bw_archive_destroy(tar->archive);
    bw_links_free(&tar->links);
    bw_made_directories_free(&tar->directories);
    bw_xattr_reader_destroy(tar->xattrs);
    bw_ranges_free(&tar->ranges);
    cmd_hashing_free(&tar->hashing);
    bw_buffer_free(&tar->target);
}

/* Content of which there is one in the archive already is not read again. */
static struct bw_error *meet(struct tar *tar, struct bw_feed_item *item)
{
    struct bw_link link;
    if (!bw_feed_item_has_names(item))
        return NULL;
    if (!bw_links_meet(&tar->links, &item->place, item->path.data, &link))
        return bw_error_no_memory();
    item->skipped = !link.is_first && tar->format == BW_ARCHIVE_PAX;
    return NULL;
}

/* Whether a file is to be read, or was, before it is written. */
static bool wants_check(const struct tar *tar, const struct bw_feed_item *item)
{
    return tar->bad.on_error == CMD_ON_ERROR_SKIP && tar->format != BW_ARCHIVE_MTREE &&
           item->type == S_IFREG && item->has_inode && !item->skipped;
}

struct bw_error *tar_next(void *context, struct bw_stream_file *file, bool *got)
{
    struct tar *tar = context;
    *got = tar->again;
    if (tar->again) {
        *file = bw_feed_stream_file(BW_TAKE(tar->again));
        return NULL;
    }
    struct bw_feed_item *item;
    BW_TRY(bw_feed_next(tar->export.feed, &item));
    *got = item;
    if (!item)
        return NULL;
    struct bw_error *error = meet(tar, item);
    *file = bw_feed_stream_file(item);
    if (wants_check(tar, item))
        tar->again = item;
    return error;
}

struct bw_error *tar_work(void *context, struct bw_data_reader *reader,
                          const struct bw_stream_file *file)
{
    struct tar *tar = context;
    return cmd_hashing_work(&tar->hashing, reader, file);
}

/* The entry's own part; what it points to stays with the tar. */
static struct bw_error *set_links(struct tar *tar, const struct bw_feed_item *item,
                                  struct bw_archive_entry *entry)
{
    struct bw_link link;
    tar->target.length = 0;
    if (bw_feed_item_has_names(item) && bw_links_find(&tar->links, &item->place, &link)) {
        entry->number = link.number + 1;
        if (item->skipped && link.made) {
            bw_links_append_path(&tar->links, link.number, &tar->target);
            bw_buffer_append_byte(&tar->target, '\0');
            entry->hardlink = tar->target.failed ? NULL : tar->target.data + 1;
        } else if (item->skipped) {
            return bw_error_create(BW_ERROR_CORRUPT, "its first name is not in the archive");
        }
    }
    if (item->type != S_IFLNK || entry->hardlink)
        return tar->target.failed ? bw_error_no_memory() : NULL;
    BW_TRY(cmd_export_read_link(&tar->export, item, &tar->target));
    entry->symlink = tar->target.data;
    return NULL;
}

static struct bw_error *set_details(struct tar *tar, struct bw_feed_item *item,
                                    struct bw_archive_entry *entry)
{
    if (tar->format != BW_ARCHIVE_PAX || entry->hardlink)
        return NULL;
    BW_TRY(bw_xattr_reader_read(tar->xattrs, &item->place, &entry->xattrs, &entry->xattr_count));
    if (item->type != S_IFREG)
        return NULL;
    const struct bw_stream_file file = bw_feed_stream_file(item);
    BW_TRY(bw_ranges_read(&tar->ranges, &file.data));
    if (tar->ranges.lost)
        cmd_export_miss(&tar->export,
                        bw_error_prefix(BW_TAKE(tar->ranges.lost), "%s", item->path.data));
    entry->ranges = tar->ranges.ranges;
    entry->range_count = tar->ranges.count;
    entry->is_sparse = tar->ranges.is_sparse;
    return NULL;
}

/* "./" for the top, and no '/' in front of all others. */
static const char *name_of(const struct bw_feed_item *item)
{
    return item->path.length > 1 ? item->path.data + 1 : ".";
}

static struct bw_error *write_entry(struct tar *tar, struct bw_feed_item *item)
{
    struct bw_archive_entry entry = {.path = name_of(item), .inode = &item->inode};
    if (*item->hash)
        entry.hash = item->hash;
    BW_TRY(set_links(tar, item, &entry));
    BW_TRY(set_details(tar, item, &entry));
    BW_TRY(bw_archive_begin(tar->archive, &entry, &tar->wanted));
    struct bw_link link;
    if (bw_feed_item_has_names(item) && bw_links_find(&tar->links, &item->place, &link))
        bw_links_made(&tar->links, link.number);
    return NULL;
}

/* Whether there is an entry for it at all; says so if there is none. */
static bool is_left_out(struct tar *tar, struct bw_feed_item *item)
{
    if (item->type == S_IFSOCK) {
        bw_fs_report(
            tar->export.session.fs, BW_WARNING,
            bw_error_create(BW_ERROR_UNSUPPORTED, "%s: a socket is left out", item->path.data));
        return true;
    }
    bool hashed = tar->format != BW_ARCHIVE_MTREE || item->type != S_IFREG || *item->hash;
    bool lost = !item->has_inode || !item->type || (item->error && tar->format != BW_ARCHIVE_MTREE);
    if (lost || !hashed)
        cmd_export_miss_item(&tar->export, item);
    return lost;
}

/*
 * GNU tar restores a directory's times and permissions as soon as something comes that is not in
 * it. The walk comes back to directories, so theirs are the last entries, what is deepest first;
 * until then a directory is as tar makes it for what is in it.
 */
static bool waits(const struct tar *tar, const struct bw_feed_item *item)
{
    return tar->format == BW_ARCHIVE_PAX && item->type == S_IFDIR && item->has_inode;
}

/* Ends the archive only if nothing can follow. */
static struct bw_error *begin(struct tar *tar, struct bw_feed_item *item)
{
    tar->began = true;
    tar->wanted = 0;
    if (waits(tar, item))
        return bw_made_directories_add(&tar->directories, item->path.data, item->path.length,
                                       &item->place, &item->inode);
    if (is_left_out(tar, item))
        return NULL;
    struct bw_error *error = write_entry(tar, item);
    if (!error || error->code == BW_ERROR_NO_MEMORY || error->code == BW_ERROR_SYSTEM)
        return error;
    cmd_export_miss(&tar->export, bw_error_prefix(error, "%s", item->path.data));
    return NULL;
}

static struct bw_error *take_bad(struct tar *tar, const struct bw_feed_item *item,
                                 const struct bw_data_part *part)
{
    if (tar->bad.on_error == CMD_ON_ERROR_FAIL)
        return cmd_bad_error(item->path.data, part);
    cmd_bad_add(&tar->bad, item->path.data, part);
    return bw_archive_add_zeros(tar->archive, part->length);
}

struct bw_error *tar_take(void *context, const struct bw_stream_file *file,
                          const struct bw_data_part *part)
{
    struct tar *tar = context;
    struct bw_feed_item *item = file->user;
    if (tar->format == BW_ARCHIVE_MTREE)
        return cmd_hashing_take(&tar->hashing, file, part);
    if (wants_check(tar, item) && !item->checked) {
        if (part->kind == BW_DATA_BAD)
            cmd_export_note_bad(item, part);
        return NULL;
    }
    if (!tar->began)
        BW_TRY(begin(tar, item));
    if (!tar->wanted)
        return NULL; /* it is left out */
    tar->wanted -= part->length < tar->wanted ? part->length : tar->wanted;
    if (part->kind == BW_DATA_BAD)
        return take_bad(tar, item, part);
    return part->kind == BW_DATA_BYTES ? bw_archive_add(tar->archive, part->bytes, part->length)
                                       : bw_archive_add_zeros(tar->archive, part->length);
}

struct bw_error *tar_finish(void *context, const struct bw_stream_file *file, bool complete)
{
    struct tar *tar = context;
    struct bw_feed_item *item = file->user;
    if (tar->format == BW_ARCHIVE_MTREE && complete)
        cmd_hashing_finish(&tar->hashing, file);
    if (wants_check(tar, item) && !item->checked) {
        item->checked = true; /* it comes again */
        return NULL;
    }
    struct bw_error *error = complete && !tar->began ? begin(tar, item) : NULL;
    cmd_bad_flush(&tar->bad);
    tar->began = false;
    bw_feed_release(tar->export.feed, item);
    return error;
}

static struct bw_error *write_directory(struct tar *tar, const struct bw_made_directory *directory)
{
    const struct bw_inode inode = bw_made_directory_inode(directory);
    tar->target.length = 0;
    bw_buffer_append(&tar->target, tar->directories.names.data + directory->path,
                     directory->path_length);
    bw_buffer_append(&tar->target, "/", sizeof "/");
    if (tar->target.failed)
        return bw_error_no_memory();
    struct bw_archive_entry entry = {
        .path = directory->path_length > 1 ? tar->target.data + 1 : "./",
        .inode = &inode,
    };
    BW_TRY(bw_xattr_reader_read(tar->xattrs, &directory->place, &entry.xattrs, &entry.xattr_count));
    return bw_archive_begin(tar->archive, &entry, &tar->wanted);
}

struct bw_error *tar_write_directories(struct tar *tar)
{
    for (size_t i = tar->directories.count; i--;)
        BW_TRY(write_directory(tar, &tar->directories.items[i]));
    return NULL;
}
