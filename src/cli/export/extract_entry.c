/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creates what a stream delivers in a folder. A failure affects only one file, unless the disk is
 * full. */
#include <errno.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cli/export/extract.h"

/* Content that is there already from the last time is not read. */
static void look_for(struct extract *extract, struct bw_export_entry *item)
{
    item->checked =
        item->type == S_IFREG && item->has_inode && extract->look.options.skip_existing &&
        bw_target_has_file(&extract->look, bw_export_entry_name(item),
                           bw_export_entry_name_length(item), item->inode.size, &item->inode.mtime);
    item->skipped = item->checked;
}

/* A name that comes another time, if there is one. */
static struct bw_export_entry *next_again(struct extract *extract)
{
    pthread_mutex_lock(&extract->lock);
    struct bw_export_entry *item = extract->again;
    if (item)
        extract->again = item->next;
    if (!extract->again)
        extract->again_end = &extract->again;
    pthread_mutex_unlock(&extract->lock);
    return item;
}

static void put_again(struct extract *extract, struct bw_export_entry *item)
{
    pthread_mutex_lock(&extract->lock);
    item->next = NULL;
    *extract->again_end = item;
    extract->again_end = &item->next;
    pthread_mutex_unlock(&extract->lock);
}

void extract_drop_again(struct extract *extract)
{
    for (struct bw_export_entry *item; (item = next_again(extract));)
        bw_entry_queue_release(extract->export.queue, item);
}

/* Meets a name of whatever is no directory. `*first`: it is the one to get the content. */
static struct bw_error *meet(struct extract *extract, const struct bw_export_entry *item,
                             bool *first)
{
    struct bw_link link = {.is_first = true};
    bool good = !bw_export_entry_has_names(item) ||
                bw_links_meet(&extract->links, &item->place, bw_export_entry_name(item), &link);
    *first = link.is_first;
    return good ? NULL : bw_error_no_memory();
}

/* The file of which this is a name; false if it has only one. */
static bool find_link(struct extract *extract, const struct bw_export_entry *item,
                      struct bw_link *link)
{
    *link = (struct bw_link){.state = BW_LINK_NOWHERE};
    return bw_export_entry_has_names(item) && bw_links_find(&extract->links, &item->place, link);
}

struct bw_error *extract_next(void *context, struct bw_stream_file *file, bool *got)
{
    struct extract *extract = context;
    struct bw_export_entry *item = next_again(extract);
    struct bw_error *error = NULL;
    bool has_content = item && !item->skipped;
    if (!item) {
        BW_TRY(cmd_export_next_item(&extract->export, &item));
        if (item)
            error = meet(extract, item, &has_content);
    }
    *got = item;
    if (!item)
        return NULL;
    item->skipped = true;
    if (has_content)
        look_for(extract, item);
    *file = bw_export_entry_stream_file(item);
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

struct bw_error *extract_other_failed(void *context, struct bw_error *error)
{
    return endure(context, error);
}

/* What the image says of a directory that an item is in; an error if nothing. */
static struct bw_error *look_up(struct extract *extract, const char *path, size_t length,
                                struct bw_place *place, struct bw_inode *inode)
{
    struct bw_fs *fs = extract->export.session.fs;
    const char *subvolume = extract->export.settings->walk.subvolume;
    const struct bw_subvolume *from = NULL;
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    bw_buffer_append(&text, path, length);
    bw_buffer_append_byte(&text, '\0');
    struct bw_error *error = text.failed ? bw_error_no_memory()
                             : subvolume ? bw_subvolume_by_name(fs, subvolume, &from)
                                         : NULL;
    if (!error)
        error = bw_lookup(fs, from, text.data, false, place);
    if (!error)
        error = bw_inode_get(fs, place, inode);
    return cmd_image_error(error);
}

/* A directory. Of one that an earlier run has left closed, only the maker can change the mode. */
static struct bw_error *make_or_reopen(struct extract *extract, const char *path, size_t length,
                                       const struct bw_inode *inode, bool *ours)
{
    const struct bw_target_attributes attributes = {.inode = inode};
    const struct bw_target_order order = {
        .path = path, .length = length, .attributes = inode ? &attributes : NULL};
    struct bw_error *error = bw_target_make_directory(&extract->target, path, length, inode, ours);
    if (!error || error->code != BW_ERROR_SYSTEM || error->system != EPERM ||
        !extract->target.options.skip_existing)
        return error;
    bw_error_free(error);
    return bw_target_make(&extract->maker, &order, ours);
}

/* A directory on the way to an item; `path` is the front of its name. */
static struct bw_error *make_on_way(void *context, const char *path, size_t length)
{
    struct extract *extract = context;
    const struct bw_export_entry *item = extract->item;
    struct bw_place place;
    struct bw_inode inode;
    struct bw_error *error = look_up(extract, item->path.data, item->name + length, &place, &inode);
    bool known = !error, ours;
    if (error)
        error = bw_error_prefix(error, "%.*s", (int)length, path);
    BW_TRY(endure(extract, error));
    BW_TRY(make_or_reopen(extract, path, length, known ? &inode : NULL, &ours));
    return ours && known
               ? bw_made_directories_add(&extract->directories, path, length, &place, &inode)
               : NULL;
}

/* Calls `make`; and once more after making the directories that it lacks, or opening those that an
 * earlier run has closed. */
static struct bw_error *make_with_way(struct extract *extract, struct bw_export_entry *item,
                                      struct bw_error *(*make)(struct extract *,
                                                               struct bw_export_entry *))
{
    struct bw_error *error = make(extract, item);
    if (!error || error->code != BW_ERROR_SYSTEM ||
        (error->system != ENOENT && error->system != EACCES))
        return error;
    bw_error_free(error);
    extract->item = item;
    BW_TRY(bw_target_make_way(&extract->target, bw_export_entry_name(item),
                              bw_export_entry_name_length(item), make_on_way, extract));
    return make(extract, item);
}

/* What all names are relative to. The folder gets its attributes if it was made for it, or with
 * --preserve; otherwise it is the user's, and so it is if several PATHs go into it. */
static struct bw_error *take_root(struct extract *extract, const struct bw_export_entry *item)
{
    const struct bw_target *target = &extract->target;
    if ((!target->is_new && !target->options.preserve) || extract->export.starts.count > 1)
        return NULL;
    return bw_made_directories_add(&extract->directories, "", 0, &item->place, &item->inode);
}

static struct bw_error *make_directory(struct extract *extract, struct bw_export_entry *item)
{
    if (!bw_export_entry_name_length(item))
        return take_root(extract, item);
    bool ours;
    BW_TRY(make_or_reopen(extract, bw_export_entry_name(item), bw_export_entry_name_length(item),
                          &item->inode, &ours));
    if (!ours)
        return NULL; /* nothing that exists is changed */
    return bw_made_directories_add(&extract->directories, bw_export_entry_name(item),
                                   bw_export_entry_name_length(item), &item->place, &item->inode);
}

/* To the content whose path is in `text`. */
static struct bw_error *make_link(struct extract *extract, struct bw_export_entry *item)
{
    return bw_target_make_link(&extract->target, bw_export_entry_name(item),
                               bw_export_entry_name_length(item), extract->text.data,
                               extract->text.length);
}

static struct bw_error *begin_file(struct extract *extract, struct bw_export_entry *item)
{
    return bw_target_file_begin(&extract->target, bw_export_entry_name(item),
                                bw_export_entry_name_length(item), &item->inode, &extract->file);
}

/* The attributes of an inode, to be restored. */
static struct bw_error *read_attributes(struct extract *extract, const struct bw_place *place,
                                        const struct bw_inode *inode,
                                        struct bw_target_attributes *attributes)
{
    *attributes = (struct bw_target_attributes){.inode = inode};
    return bw_xattr_reader_read(extract->xattrs, place, &attributes->xattrs,
                                &attributes->xattr_count);
}

/* Whether the error is that its name is taken, by nothing else than the same file. */
static bool is_there(struct extract *extract, const struct bw_export_entry *item,
                     const struct bw_error *error)
{
    if (!error || error->code != BW_ERROR_SYSTEM || error->system != EEXIST ||
        item->type != S_IFREG || !extract->target.options.skip_existing)
        return false;
    return bw_target_has_file(&extract->target, bw_export_entry_name(item),
                              bw_export_entry_name_length(item), item->inode.size,
                              &item->inode.mtime);
}

static struct bw_error *begin(struct extract *extract, struct bw_export_entry *item)
{
    extract->began = true;
    struct bw_error *error = make_with_way(extract, item, begin_file);
    extract->failed = error;
    /* It was not found earlier because its directory was closed then. */
    item->checked = is_there(extract, item, error);
    if (!item->checked)
        return endure(extract, error);
    bw_error_free(error);
    return NULL;
}

static struct bw_error *give_up_file(struct extract *extract, struct bw_error *error)
{
    bw_target_file_abandon(&extract->file);
    extract->failed = extract->lost = true;
    return endure(extract, error);
}

static struct bw_error *take_bad(struct extract *extract, const struct bw_export_entry *item,
                                 const struct bw_data_part *part)
{
    struct bw_error *error = cmd_bad_error(item->path.data, part);
    if (extract->bad.on_error == CMD_ON_ERROR_FAIL)
        return error;
    if (extract->bad.on_error == CMD_ON_ERROR_SKIP)
        return give_up_file(extract, error);
    bw_error_free(error);
    extract->zeroed = true;
    cmd_bad_add(&extract->bad, item->path.data, part);
    return NULL;
}

struct bw_error *extract_take(void *context, const struct bw_stream_file *file,
                              const struct bw_data_part *part)
{
    struct extract *extract = context;
    struct bw_export_entry *item = file->user;
    if (!extract->began)
        BW_TRY(begin(extract, item));
    if (extract->failed)
        return NULL;
    if (part->kind == BW_DATA_BAD)
        return take_bad(extract, item, part);
    if (part->kind == BW_DATA_HOLE)
        return NULL;
    struct bw_error *error =
        bw_target_file_write(&extract->file, part->offset, part->bytes, (size_t)part->length);
    cmd_progress_add(part->length);
    return error ? give_up_file(extract, bw_error_prefix(error, "%s", item->path.data)) : NULL;
}

static struct bw_error *finish_file(struct extract *extract, struct bw_export_entry *item)
{
    struct bw_target_attributes attributes;
    if (!extract->began)
        BW_TRY(begin(extract, item));
    if (extract->failed)
        return NULL;
    BW_TRY(read_attributes(extract, &item->place, &item->inode, &attributes));
    if (extract->zeroed)
        BW_TRY(extract_leave_name(extract, item));
    struct bw_error *error =
        bw_target_file_finish(&extract->file, bw_export_entry_name(item),
                              bw_export_entry_name_length(item), item->inode.size, &attributes);
    extract->failed = error;
    return endure(extract, error);
}

/* Most links have one name, and nothing is made after them that needs them. */
static bool can_wait(const struct extract *extract, const struct bw_export_entry *item)
{
    return item->type == S_IFLNK && !bw_export_entry_has_names(item) &&
           !extract->target.options.skip_existing;
}

/* A symbolic link or a special file, with its attributes. */
static struct bw_error *make_other(struct extract *extract, struct bw_export_entry *item)
{
    struct bw_target_attributes attributes;
    struct bw_target_order order = {.path = bw_export_entry_name(item),
                                    .length = bw_export_entry_name_length(item),
                                    .attributes = &attributes};
    bool ours;
    extract->text.length = 0;
    if (item->type == S_IFLNK)
        BW_TRY(cmd_export_read_link(&extract->export, item, &extract->text));
    order.link = item->type == S_IFLNK ? extract->text.data : NULL;
    BW_TRY(read_attributes(extract, &item->place, &item->inode, &attributes));
    if (!can_wait(extract, item))
        return bw_target_make(&extract->maker, &order, &ours);
    BW_TRY(bw_target_enter(&extract->target, order.path, order.length));
    return bw_target_make_later(&extract->maker, &order);
}

static struct bw_error *finish_other(struct extract *extract, struct bw_export_entry *item)
{
    struct bw_error *error = NULL;
    bool left_out = bw_target_leaves_out(&extract->target, &item->inode);
    extract->devices += left_out;
    if (!left_out)
        error = make_with_way(extract, item, make_other);
    extract->failed = left_out || error;
    return endure(extract, error);
}

/* Whether the file system does not link, or not once more; and not that nothing could have this
 * name. */
static bool asks_for_copy(const struct bw_error *error)
{
    return error && error->code == BW_ERROR_SYSTEM && !ends_all(error) && error->system != EEXIST &&
           error->system != ENAMETOOLONG && error->system != EINVAL && error->system != EILSEQ;
}

/* One more name of a file. It comes again if there is no content yet that it could be linked to. */
static struct bw_error *finish_name(struct extract *extract, struct bw_export_entry *item,
                                    bool *again)
{
    struct bw_link link;
    struct bw_error *error = NULL;
    bool has_link = find_link(extract, item, &link);
    extract->text.length = 0;
    if (link.state == BW_LINK_LOST)
        BW_TRY(extract_free_name(extract, item));
    if (link.state == BW_LINK_ZEROED)
        BW_TRY(extract_leave_name(extract, item));
    if (link.state == BW_LINK_MADE || link.state == BW_LINK_ZEROED) {
        bw_links_append_path(&extract->links, link.number, &extract->text);
        error =
            extract->text.failed ? bw_error_no_memory() : make_with_way(extract, item, make_link);
    }
    if (link.state == BW_LINK_LOST)
        error = bw_error_create(BW_ERROR_CORRUPT,
                                "%s: not extracted, as it was not under its first name",
                                item->path.data);
    bool replaced = link.state == BW_LINK_NOWHERE || (error && error->system == EMLINK);
    bool copied = replaced || asks_for_copy(error);
    *again = link.state == BW_LINK_COMING || copied;
    if (!*again && !is_there(extract, item, error))
        return endure(extract, error);
    bw_error_free(error);
    item->skipped = !copied;
    return replaced && has_link &&
                   !bw_links_rename(&extract->links, link.number, bw_export_entry_name(item))
               ? bw_error_no_memory()
               : NULL;
}

/* What has content of its own. */
static struct bw_error *finish_content(struct extract *extract, struct bw_export_entry *item)
{
    if (!item->checked)
        BW_TRY(item->type == S_IFREG ? finish_file(extract, item) : finish_other(extract, item));
    bool made = item->checked || !extract->failed;
    struct bw_link link;
    if (extract->lost)
        BW_TRY(extract_free_name(extract, item));
    if (find_link(extract, item, &link))
        bw_links_set(&extract->links, link.number,
                     made            ? extract->zeroed ? BW_LINK_ZEROED : BW_LINK_MADE
                     : extract->lost ? BW_LINK_LOST
                                     : BW_LINK_NOWHERE);
    if (!made || item->type != S_IFREG || !bw_target_is_protected(&extract->target, &item->inode))
        return NULL;
    return bw_made_directories_add(&extract->directories, bw_export_entry_name(item),
                                   bw_export_entry_name_length(item), &item->place, &item->inode);
}

static struct bw_error *finish_item(struct extract *extract, struct bw_export_entry *item,
                                    bool *again)
{
    if (!item->has_inode || !item->type) {
        extract_miss(extract,
                     bw_error_create(BW_ERROR_CORRUPT, "%s: its inode is lost", item->path.data));
        return NULL;
    }
    if (item->type == S_IFDIR)
        return endure(extract, make_with_way(extract, item, make_directory));
    return item->skipped && !item->checked ? finish_name(extract, item, again)
                                           : finish_content(extract, item);
}

struct bw_error *extract_finish(void *context, const struct bw_stream_file *file, bool complete)
{
    struct extract *extract = context;
    struct bw_export_entry *item = file->user;
    bool again = false;
    struct bw_error *error = complete ? finish_item(extract, item, &again) : NULL;
    cmd_bad_flush(&extract->bad);
    bw_target_file_abandon(&extract->file);
    extract->began = extract->failed = extract->lost = extract->zeroed = false;
    if (again)
        put_again(extract, item);
    else
        bw_entry_queue_release(extract->export.queue, item);
    return error;
}

struct bw_error *extract_finish_directories(struct extract *extract)
{
    for (size_t i = extract->directories.count; i--;) {
        const struct bw_made_directory *directory = &extract->directories.items[i];
        const struct bw_inode inode = bw_made_directory_inode(directory);
        struct bw_target_attributes attributes;
        BW_TRY(read_attributes(extract, &directory->place, &inode, &attributes));
        extract->text.length = 0;
        bw_path_store_append(&extract->directories.paths, directory->path, &extract->text);
        if (extract->text.failed)
            return bw_error_no_memory();
        bw_target_restore_last(&extract->target, extract->text.length ? extract->text.data : "",
                               extract->text.length, &attributes);
    }
    return NULL;
}
