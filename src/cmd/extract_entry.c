/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Making in a folder what a stream delivers. What fails costs itself, unless the disk is full. */
#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "cmd/extract.h"
#include "export/device.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "fs/symlink.h"

/* Relative to the folder; the folder itself is empty. */
static const char *path_of(const struct bw_feed_item *item)
{
    return item->path.data + 1;
}

static size_t length_of(const struct bw_feed_item *item)
{
    return item->path.length - 1;
}

static bool has_names(const struct bw_feed_item *item)
{
    return item->has_inode && item->inode.link_count > 1 && item->type != S_IFDIR;
}

/* Content that is there already, under another name or from the last time, is not read. */
static struct bw_error *meet(struct extract *extract, struct bw_feed_item *item)
{
    struct bw_link link = {.is_first = true};
    if (has_names(item) &&
        !bw_links_meet(&extract->links, item->subvolume->tree.id, item->number, path_of(item), &link))
        return bw_error_no_memory();
    item->checked = link.is_first && item->type == S_IFREG && item->has_inode &&
                    extract->look.options.skip_existing &&
                    bw_target_has_file(&extract->look, path_of(item), length_of(item), item->inode.size,
                                       item->inode.mtime);
    item->skipped = !link.is_first || item->checked;
    return NULL;
}

struct bw_error *extract_next(void *context, struct bw_stream_file *file, bool *got)
{
    struct extract *extract = context;
    struct bw_feed_item *item;
    BW_TRY(bw_feed_next(extract->export.feed, &item));
    *got = item;
    if (!item)
        return NULL;
    struct bw_error *error = meet(extract, item);
    *file = bw_feed_stream_file(item);
    return error;
}

/* What no other file would get round. */
static bool ends_all(const struct bw_error *error)
{
    return error->code == BW_ERROR_NO_MEMORY ||
           (error->code == BW_ERROR_SYSTEM && (error->system == ENOSPC || error->system == EDQUOT ||
                                               error->system == EIO || error->system == EROFS));
}

/* NULL if it costs only what it is about. */
static struct bw_error *endure(struct extract *extract, struct bw_error *error)
{
    if (!error || ends_all(error))
        return error;
    extract_miss(extract, error);
    return NULL;
}

/* A directory that nobody has asked for, on the way to something that was. */
static struct bw_error *made_on_way(void *context, const char *path, size_t length)
{
    struct extract *extract = context;
    const struct bw_fs *fs = extract->export.session.fs;
    struct bw_place place;
    struct bw_inode inode;
    struct bw_buffer text = {0};
    bw_buffer_append(&text, path, length);
    bw_buffer_append_byte(&text, '\0');
    struct bw_error *error =
        text.failed ? bw_error_no_memory() : bw_lookup(fs, NULL, text.data, false, &place);
    if (!error)
        error = bw_place_inode(fs, &place, &inode);
    bw_buffer_free(&text);
    if (!error)
        return bw_made_directories_add(&extract->directories, path, length, place.subvolume, place.inode,
                                       &inode);
    return endure(extract, bw_image_error(error));
}

/* Calls `make`; and again behind what it lacks of the way there. */
static struct bw_error *make_with_way(struct extract *extract, struct bw_feed_item *item,
                                      struct bw_error *(*make)(struct extract *, struct bw_feed_item *))
{
    struct bw_error *error = make(extract, item);
    if (!error || error->code != BW_ERROR_SYSTEM || error->system != ENOENT)
        return error;
    bw_error_free(error);
    BW_TRY(bw_target_make_way(&extract->target, path_of(item), length_of(item), made_on_way, extract));
    return make(extract, item);
}

static struct bw_error *make_directory(struct extract *extract, struct bw_feed_item *item)
{
    if (!length_of(item))
        return NULL; /* the folder itself is the user's */
    bool ours;
    BW_TRY(bw_target_make_directory(&extract->target, path_of(item), length_of(item), &ours));
    if (!ours)
        return NULL; /* nothing that exists is changed */
    return bw_made_directories_add(&extract->directories, path_of(item), length_of(item), item->subvolume,
                                   item->number, &item->inode);
}

static struct bw_error *make_symlink(struct extract *extract, struct bw_feed_item *item)
{
    extract->text.length = 0;
    BW_TRY(bw_image_error(
        bw_symlink_read(extract->export.session.fs, &item->subvolume->tree, item->number, &extract->text)));
    bw_buffer_append_byte(&extract->text, '\0');
    if (extract->text.failed)
        return bw_error_no_memory();
    return bw_target_make_symlink(&extract->target, path_of(item), length_of(item), extract->text.data);
}

static struct bw_error *make_node(struct extract *extract, struct bw_feed_item *item)
{
    dev_t device = makedev(bw_inode_device_major(&item->inode), bw_inode_device_minor(&item->inode));
    bool has_device = item->type == S_IFCHR || item->type == S_IFBLK;
    return bw_target_make_node(&extract->target, path_of(item), length_of(item), item->type,
                               has_device ? device : 0);
}

static struct bw_error *make_link(struct extract *extract, struct bw_feed_item *item)
{
    struct bw_link link = {0};
    extract->text.length = 0;
    if (!bw_links_find(&extract->links, item->subvolume->tree.id, item->number, &link) || !link.made)
        return bw_error_create(BW_ERROR_CORRUPT, "%s: the first name of the file was not extracted",
                               item->path.data);
    bw_links_append_path(&extract->links, link.number, &extract->text);
    if (extract->text.failed)
        return bw_error_no_memory();
    return bw_target_make_link(&extract->target, path_of(item), length_of(item), extract->text.data,
                               extract->text.length);
}

static struct bw_error *begin_file(struct extract *extract, struct bw_feed_item *item)
{
    return bw_target_file_begin(&extract->target, path_of(item), length_of(item), &extract->file);
}

/* The attributes of an inode, to be restored. */
static struct bw_error *read_attributes(struct extract *extract, const struct bw_subvolume *subvolume,
                                        uint64_t number, const struct bw_inode *inode,
                                        struct bw_target_attributes *attributes)
{
    BW_TRY(bw_details_read(&extract->details, &subvolume->tree, number));
    *attributes = (struct bw_target_attributes){inode, extract->details.xattrs, extract->details.count};
    return NULL;
}

static struct bw_error *begin(struct extract *extract, struct bw_feed_item *item)
{
    extract->began = true;
    extract->failed = false;
    struct bw_error *error = make_with_way(extract, item, begin_file);
    extract->failed = error;
    return endure(extract, error);
}

static struct bw_error *give_up_file(struct extract *extract, struct bw_error *error)
{
    bw_target_file_abandon(&extract->file);
    extract->failed = true;
    return endure(extract, error);
}

static struct bw_error *take_bad(struct extract *extract, const struct bw_feed_item *item,
                                 const struct bw_data_part *part)
{
    struct bw_error *error = cmd_bad_error(item->path.data, part);
    if (extract->bad.on_error == CMD_ON_ERROR_FAIL)
        return error;
    if (extract->bad.on_error == CMD_ON_ERROR_SKIP)
        return give_up_file(extract, error);
    bw_error_free(error);
    cmd_bad_add(&extract->bad, item->path.data, part);
    return NULL;
}

struct bw_error *extract_take(void *context, const struct bw_stream_file *file,
                              const struct bw_data_part *part)
{
    struct extract *extract = context;
    struct bw_feed_item *item = file->user;
    if (!extract->began)
        BW_TRY(begin(extract, item));
    if (extract->failed)
        return NULL;
    if (part->kind == BW_DATA_BAD)
        return take_bad(extract, item, part);
    if (part->kind == BW_DATA_HOLE)
        return NULL;
    struct bw_error *error = bw_target_file_write(&extract->file, part->offset, part->bytes, part->length);
    extract->progress.bytes += part->length;
    cmd_progress_show(&extract->progress);
    return error ? give_up_file(extract, bw_error_prefix(error, "%s", item->path.data)) : NULL;
}

static struct bw_error *finish_file(struct extract *extract, struct bw_feed_item *item)
{
    struct bw_target_attributes attributes;
    if (!extract->began)
        BW_TRY(begin(extract, item));
    if (extract->failed)
        return NULL;
    BW_TRY(read_attributes(extract, item->subvolume, item->number, &item->inode, &attributes));
    struct bw_error *error =
        bw_target_file_finish(&extract->file, path_of(item), length_of(item), item->inode.size, &attributes);
    extract->failed = error;
    return endure(extract, error);
}

/* A symbolic link or a special file. */
static struct bw_error *finish_other(struct extract *extract, struct bw_feed_item *item)
{
    struct bw_target_attributes attributes;
    struct bw_error *error = make_with_way(extract, item, item->type == S_IFLNK ? make_symlink : make_node);
    extract->failed = error;
    if (error)
        return endure(extract, error);
    BW_TRY(read_attributes(extract, item->subvolume, item->number, &item->inode, &attributes));
    bw_target_restore(&extract->target, -1, path_of(item), length_of(item), &attributes);
    return NULL;
}

static struct bw_error *finish_item(struct extract *extract, struct bw_feed_item *item)
{
    struct bw_link link;
    if (!item->has_inode || !item->type) {
        extract_miss(extract, bw_error_create(BW_ERROR_CORRUPT, "%s: its inode is lost", item->path.data));
        return NULL;
    }
    if (item->type == S_IFDIR)
        return endure(extract, make_with_way(extract, item, make_directory));
    if (item->skipped && !item->checked)
        return endure(extract, make_with_way(extract, item, make_link));
    if (!item->skipped)
        BW_TRY(item->type == S_IFREG ? finish_file(extract, item) : finish_other(extract, item));
    bool made = item->checked || !extract->failed;
    if (made && has_names(item) &&
        bw_links_find(&extract->links, item->subvolume->tree.id, item->number, &link))
        bw_links_made(&extract->links, link.number);
    return NULL;
}

struct bw_error *extract_finish(void *context, const struct bw_stream_file *file, bool complete)
{
    struct extract *extract = context;
    struct bw_feed_item *item = file->user;
    struct bw_error *error = complete ? finish_item(extract, item) : NULL;
    cmd_bad_flush(&extract->bad);
    bw_target_file_abandon(&extract->file);
    extract->progress.files += item->type == S_IFREG;
    cmd_progress_show(&extract->progress);
    extract->began = extract->failed = false;
    bw_feed_release(extract->export.feed, item);
    return error;
}

struct bw_error *extract_finish_directories(struct extract *extract)
{
    for (size_t i = extract->directories.count; i--;) {
        const struct bw_made_directory *directory = &extract->directories.items[i];
        const struct bw_inode inode = bw_made_directory_inode(directory);
        struct bw_target_attributes attributes;
        BW_TRY(read_attributes(extract, directory->subvolume, directory->number, &inode, &attributes));
        bw_target_restore_directory(&extract->target, extract->directories.names.data + directory->path,
                                    directory->path_length, &attributes);
    }
    return NULL;
}
