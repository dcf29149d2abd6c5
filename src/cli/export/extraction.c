/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An extraction: files from a stream into a folder.
 *
 * The stream delivers the parts of each file, and then its end. The first part, or the end of an
 * empty file, makes an unnamed file; at the end it gets its attributes and its name. Directories
 * and further names of a file come as entries without parts. Directories that are missing above an
 * entry are made when the first attempt to make it fails. The attributes of directories are
 * restored last, because files are still added to them until then.
 *
 * A further name becomes a hard link to the first one. If that name is not made yet, or a link is
 * impossible, the entry goes through the stream again (`again`), the second time perhaps with its
 * contents. Symbolic links are the last pass over the image, so until then, no other process can
 * make the extraction follow one.
 *
 * An error affects only one file and is listed at the end, unless it would affect all files, as
 * that of a full disk. Such an error ends the extraction; with --missed, the remaining files still
 * pass through the stream, without their contents, and are listed as missing.
 */
#include "cli/export/extraction.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "base/path.h"
#include "cli/common/sandbox.h"

const struct cmd_option extract_options[] = {
    {0, "skip-existing", NULL, "continue: skip files with the same size and time",
     CMD_FLAG(struct extract_settings, target.skip_existing)},
    {0, "preserve", NULL,
     "also restore setuid, setgid and sticky bits, capabilities, device nodes, and the "
     "immutable and append-only flags",
     CMD_FLAG(struct extract_settings, target.preserve)},
    {0, "rename", NULL, "change names that NTFS, FAT or exFAT refuse",
     CMD_FLAG(struct extract_settings, rename)},
    CMD_ON_ERROR_OPTION(struct extract_settings, on_error, "file", "skip"),
    CMD_GROUP(extract_list_options, struct extract_settings, lists),
    {0},
};

/* Waits for the maker, because in a container there may be no init process to do it. */
static void end_maker(struct extract *extract)
{
    bw_target_maker_close(&extract->maker);
    while (extract->maker_process && waitpid(extract->maker_process, NULL, 0) < 0 && errno == EINTR)
        ;
    extract->maker_process = 0;
}

/* Errors. */

/* Whether an error is that a file exists, of which many are only counted: a second extraction that
 * does not continue the first one finds all files. */
static bool is_counted(const struct extract *extract, const struct bw_error *error)
{
    return error->code == BW_ERROR_SYSTEM && error->system == EEXIST &&
           !extract->settings->target.skip_existing && !extract->export.common->messages.verbose;
}

/* Collects an error for the list at the end; consumes it. */
static void list_error(struct extract *extract, struct bw_error *error)
{
    if (extract->missed_count++ < EXTRACT_LISTED)
        extract->missed[extract->missed_count - 1] = error;
    else
        bw_error_free(error);
}

/* The same, except that many errors of some kinds are only counted. `context` is the struct
 * extract. */
static void add_missed(void *context, struct bw_error *error)
{
    struct extract *extract = context;
    bool is_further = cmd_export_is_further(&extract->export, error);
    if (is_counted(extract, error))
        is_further = ++extract->existing > EXTRACT_EXISTING;
    if (is_further)
        bw_error_free(error);
    else
        list_error(extract, error);
}

/* Whether the error would affect all further files, too. */
static bool ends_extraction(const struct bw_error *error)
{
    return error->code == BW_ERROR_NO_MEMORY ||
           (error->code == BW_ERROR_SYSTEM && (error->system == ENOSPC || error->system == EDQUOT ||
                                               error->system == EIO || error->system == EROFS));
}

/* Returns NULL for errors that affect only one file, after collecting them. Also the handler of the
 * maker's errors; `context` is the struct extract. */
static struct bw_error *tolerate_error(void *context, struct bw_error *error)
{
    if (!error || ends_extraction(error))
        return error;
    add_missed(context, error);
    return NULL;
}

/* If an error ends the extraction, and missing files are listed, lists the remaining files without
 * extracting them. Consumes the error, which may be NULL; returns it if it ends the walk, too. */
static struct bw_error *list_rest_after(struct extract *extract, struct bw_error *error)
{
    if (!error || error->code == BW_ERROR_NO_MEMORY || !extract->lists.missed.name)
        return error;
    extract->ended = bw_error_first(extract->ended, error);
    extract->failed = true;
    atomic_store(&extract->lists_rest, true);
    return NULL;
}

/* Names. */

/* The file that this is a name of; false if it has only one name. */
static bool find_hard_link(struct extract *extract, const struct bw_export_entry *item,
                           struct bw_link *link)
{
    *link = (struct bw_link){.state = BW_LINK_NOWHERE};
    return bw_export_entry_has_names(item) && bw_links_find(&extract->links, &item->place, link);
}

/* With --skip-existing: whether an earlier run has extracted this file. */
static bool was_extracted(struct bw_target *target, const struct bw_export_entry *item)
{
    return item->type == S_IFREG && item->has_inode && target->options.skip_existing &&
           bw_target_has_file(target, bw_export_entry_name(item), bw_export_entry_name_length(item),
                              item->inode.size, &item->inode.mtime);
}

/* Whether the error is EEXIST because the name already is the same file. */
static bool is_already_extracted(struct extract *extract, const struct bw_export_entry *item,
                                 const struct bw_error *error)
{
    return error && error->code == BW_ERROR_SYSTEM && error->system == EEXIST &&
           was_extracted(&extract->target, item);
}

/* Reports that the file of an older generation does not occupy its name, or occupies it damaged, so
 * that an intact older version can have the name. */
static struct bw_error *report_free_name(struct extract *extract,
                                         const struct bw_export_entry *item)
{
    if (!extract->name_is_free)
        return NULL;
    return extract->name_is_free(extract->context, item->path.data, item->path.length);
}

/* Adds the generation to the name of a damaged file of an older generation. */
static struct bw_error *rename_damaged(struct extract *extract, struct bw_export_entry *item)
{
    char suffix[32];
    struct bw_link link;
    struct bw_buffer *path = &item->path;
    const size_t length =
        (size_t)snprintf(suffix, sizeof suffix, ".~%" PRIu64 "~", extract->generation);
    const bool is_renamed =
        path->length > length && memcmp(path->data + path->length - length, suffix, length) == 0;
    if (!extract->generation || is_renamed)
        return NULL;
    BW_TRY(report_free_name(extract, item));
    cmd_bad_flush(&extract->export.bad); /* its report uses the old path */
    struct bw_buffer *const texts[] = {path, &item->written};
    for (size_t i = 0; i < 2 && texts[i]->length; i++) {
        bw_buffer_append(texts[i], suffix, length + 1);
        BW_TRY(bw_buffer_error(texts[i]));
        texts[i]->length--;
    }
    const char *name = bw_export_entry_name(item);
    if (!item->skipped && find_hard_link(extract, item, &link) &&
        !bw_links_rename(&extract->links, link.number, name))
        return bw_error_no_memory();
    return bw_target_enter(&extract->target, name, bw_export_entry_name_length(item));
}

/* The files for the stream. */

/* The next item of `again`, or NULL. */
static struct bw_export_entry *next_repeated(struct extract *extract)
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

/* Lists a name that is changed; `context` is the struct extract. */
static struct bw_error *add_renamed(void *context, size_t length, const char *path,
                                    size_t path_length)
{
    struct extract *extract = context;
    const struct bw_export_entry *item = extract->ahead;
    const struct bw_bytes from = {item->path.data, item->name + length};
    if (extract->settings->lists.renamed)
        return extract_lists_add_renamed(&extract->lists, from,
                                         (struct bw_bytes){path, path_length});
    if (extract->renamed_count++ < EXTRACT_LISTED)
        extract->renamed[extract->renamed_count - 1] =
            bw_error_create(BW_ERROR_USAGE, "%.*s: written as %.*s", (int)from.length, from.data,
                            (int)path_length, path);
    return NULL;
}

/* Takes the next item of the image, with its name in the target; NULL after the last. */
static struct bw_error *next_item(struct extract *extract, struct bw_export_entry **item)
{
    for (;;) {
        BW_TRY(cmd_export_next_item(&extract->export, item));
        if (!*item)
            return NULL;
        extract->ahead = *item;
        struct bw_error *error = NULL;
        if (extract->settings->rename)
            error = bw_portable_names_find(&extract->names, bw_export_entry_name(*item),
                                           bw_export_entry_name_length(*item), &(*item)->written);
        if (!error && !extract_lists_except(&extract->lists, *item))
            return NULL;
        bw_entry_queue_release(extract->export.queue, BW_TAKE(*item));
        BW_TRY(error);
    }
}

static struct bw_error *next_file(void *context, struct bw_stream_file *file, bool *got)
{
    struct extract *extract = context;
    struct bw_export_entry *item = next_repeated(extract);
    bool has_content = item && !item->skipped;
    if (!item) {
        /* Only the first name of a file gets its contents. */
        struct bw_link link = {.is_first = true};
        BW_TRY(next_item(extract, &item));
        if (item && bw_export_entry_has_names(item) &&
            !bw_links_meet(&extract->links, &item->place, bw_export_entry_name(item), &link)) {
            bw_entry_queue_release(extract->export.queue, item);
            return bw_error_no_memory();
        }
        has_content = link.is_first;
    }
    *got = item;
    if (!item)
        return NULL;
    item->skipped = true;
    if (has_content) {
        /* A file of an earlier run is read only if the manifest needs its hash. */
        item->checked = was_extracted(&extract->look, item);
        item->skipped = item->checked && !extract_lists_lack(&extract->lists, item);
    }
    item->skipped |= atomic_load(&extract->lists_rest);
    *file = bw_export_entry_stream_file(item);
    file->data.mirror = extract->settings->mirror;
    return NULL;
}

/* Directories. */

/* Makes a directory. If an earlier run already restored its mode without write permission, the
 * maker has to change it. */
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

/* Makes a directory above an item; `path` is the beginning of its name. */
static struct bw_error *make_missing_directory(void *context, const char *path, size_t length)
{
    struct extract *extract = context;
    const struct bw_export_entry *item = extract->item;
    const struct cmd_export_settings *settings = extract->export.settings;
    struct bw_fs *fs = extract->export.session.fs;
    const struct bw_subvolume *from = NULL;
    struct bw_place place;
    struct bw_inode inode;
    bool ours;

    /* Find its inode in the image: its name there has the same number of components. */
    size_t end = item->name;
    for (size_t left = bw_path_names(path, length) + 1; left; left--) {
        const char *slash = memchr(item->path.data + end, '/', item->path.length - end);
        end = slash ? (size_t)(slash - item->path.data) + 1 : item->path.length + 1;
    }
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    bw_buffer_append(&text, item->path.data, end - 1);
    struct bw_error *error = bw_buffer_terminate(&text);
    if (!error && settings->selection.subvolume)
        error = bw_subvolume_by_name(fs, settings->selection.subvolume, &from);
    if (!error)
        error = bw_lookup(fs, from, text.data, false, &place);
    if (!error)
        error = bw_inode_get(fs, &place, &inode);
    error = bw_image_error(error);
    const bool known = !error;
    /* An older generation need not have the directory that the file is in today. */
    if (error && error->code == BW_ERROR_NOT_FOUND && settings->follow_renames)
        bw_error_free(BW_TAKE(error));
    if (error)
        error = bw_error_prefix(error, "%.*s", (int)length, path);
    BW_TRY(tolerate_error(extract, error));

    /* Without an inode, the directory gets default attributes. */
    BW_TRY(make_or_reopen(extract, path, length, known ? &inode : NULL, &ours));
    if (!ours || !known)
        return NULL;
    return bw_made_directories_add(&extract->directories, path, length, &place, &inode);
}

/* Calls `make`. If directories are missing, or an earlier run removed their write permission, makes
 * or opens them and calls `make` again. */
static struct bw_error *make_with_directories(struct extract *extract, struct bw_export_entry *item,
                                              struct bw_error *(*make)(struct extract *,
                                                                       struct bw_export_entry *))
{
    struct bw_error *error = make(extract, item);
    if (!error || error->code != BW_ERROR_SYSTEM ||
        (error->system != ENOENT && error->system != EACCES))
        return error;
    bw_error_free(error);
    extract->item = item;
    BW_TRY(bw_target_make_replacing(&extract->target, bw_export_entry_name(item),
                                    bw_export_entry_name_length(item), make_missing_directory,
                                    extract));
    return make(extract, item);
}

static struct bw_error *make_directory(struct extract *extract, struct bw_export_entry *item)
{
    const char *name = bw_export_entry_name(item);
    const size_t length = bw_export_entry_name_length(item);
    const struct bw_target *target = &extract->target;
    if (!length) {
        /* The folder itself. It gets the attributes of the directory in the image if it was created
         * for it, or with --preserve; but never if several PATHs are extracted into it. */
        if ((!target->is_new && !target->options.preserve) || extract->export.starts.count > 1)
            return NULL;
    } else {
        bool ours;
        BW_TRY(make_or_reopen(extract, name, length, &item->inode, &ours));
        if (!ours)
            return NULL; /* existing directories are not changed */
    }
    return bw_made_directories_add(&extract->directories, name, length, &item->place, &item->inode);
}

/* Contents. */

/* Reads the attributes to restore. */
static struct bw_error *read_attributes(struct extract *extract, const struct bw_place *place,
                                        const struct bw_inode *inode,
                                        struct bw_target_attributes *attributes)
{
    *attributes = (struct bw_target_attributes){.inode = inode};
    return bw_xattr_reader_read(extract->xattrs, place, &attributes->xattrs,
                                &attributes->xattr_count);
}

static struct bw_error *make_file(struct extract *extract, struct bw_export_entry *item)
{
    return bw_target_file_begin(&extract->target, bw_export_entry_name(item),
                                bw_export_entry_name_length(item), &item->inode, &extract->file);
}

static struct bw_error *begin_content(struct extract *extract, struct bw_export_entry *item)
{
    extract->began = true;
    struct bw_error *error = make_with_directories(extract, item, make_file);
    extract->failed = error;
    /* it was not found before, because its directory was not accessible */
    item->checked = is_already_extracted(extract, item, error);
    if (!item->checked)
        return tolerate_error(extract, error);
    bw_error_free(error);
    return NULL;
}

static struct bw_error *abandon_file(struct extract *extract, struct bw_error *error)
{
    bw_target_file_abandon(&extract->file);
    extract->failed = extract->lost = true;
    return tolerate_error(extract, error);
}

static struct bw_error *write_part(void *context, const struct bw_stream_file *file,
                                   const struct bw_data_part *part)
{
    struct extract *extract = context;
    struct bw_export_entry *item = file->user;
    struct bw_error *error = NULL;
    if (extract->ended)
        return NULL;
    extract_lists_add_part(&extract->lists, part);
    if (!extract->began && !item->checked)
        error = begin_content(extract, item);
    if (error || extract->failed || item->checked || part->kind == BW_DATA_HOLE)
        return list_rest_after(extract, error);
    if (part->kind == BW_DATA_BAD && extract->export.bad.on_error == CMD_ON_ERROR_ZERO) {
        extract->zeroed = true;
        cmd_bad_add(&extract->export.bad, item->path.data, part);
    } else if (part->kind == BW_DATA_BAD) {
        error = cmd_bad_error(item->path.data, part);
        if (extract->export.bad.on_error == CMD_ON_ERROR_SKIP)
            error = abandon_file(extract, error);
    } else {
        error =
            bw_target_file_write(&extract->file, part->offset, part->bytes, (size_t)part->length);
        cmd_progress_add(part->length);
        if (error)
            error = abandon_file(extract, bw_error_prefix(error, "%s", item->path.data));
    }
    return list_rest_after(extract, error);
}

/* Gives a complete file its attributes and its name. */
static struct bw_error *finish_file(struct extract *extract, struct bw_export_entry *item)
{
    struct bw_target_attributes attributes;
    if (!extract->began)
        BW_TRY(begin_content(extract, item));
    if (extract->failed)
        return NULL;
    if (extract->zeroed && !extract->lists.read.good) {
        cmd_bad_flush(&extract->export.bad);
        return abandon_file(
            extract,
            bw_error_create(BW_ERROR_CORRUPT, "%s: nothing of it can be read", item->path.data));
    }
    BW_TRY(read_attributes(extract, &item->place, &item->inode, &attributes));
    if (extract->zeroed)
        BW_TRY(rename_damaged(extract, item));
    struct bw_error *error =
        bw_target_file_finish(&extract->file, bw_export_entry_name(item),
                              bw_export_entry_name_length(item), item->inode.size, &attributes);
    extract->failed = error;
    return tolerate_error(extract, error);
}

/* Makes a symbolic link or a special file with its attributes. */
static struct bw_error *make_other(struct extract *extract, struct bw_export_entry *item)
{
    struct bw_target_attributes attributes;
    struct bw_target_order order = {.path = bw_export_entry_name(item),
                                    .length = bw_export_entry_name_length(item),
                                    .attributes = &attributes};
    bool ours;
    extract->text.length = 0;
    if (item->type == S_IFLNK) {
        struct bw_error *error =
            bw_export_entry_read_link(item, extract->export.session.fs, &extract->text);
        if (error)
            return bw_error_prefix(error, "%s", item->path.data);
        order.link = extract->text.data;
    }
    BW_TRY(read_attributes(extract, &item->place, &item->inode, &attributes));

    /* Links with one name can be made in batches, because nothing that follows needs them; but the
     * lists need the result at once. */
    const bool can_be_batched = item->type == S_IFLNK && !bw_export_entry_has_names(item) &&
                                !extract->target.options.skip_existing &&
                                !extract->lists.missed.name && !extract->lists.manifest.name;
    if (!can_be_batched)
        return bw_target_make(&extract->maker, &order, &ours);
    BW_TRY(bw_target_enter(&extract->target, order.path, order.length));
    return bw_target_make_later(&extract->maker, &order);
}

/* Finishes a file, link or special file that was not made as a hard link. */
static struct bw_error *finish_content(struct extract *extract, struct bw_export_entry *item)
{
    if (!item->checked && item->type == S_IFREG) {
        BW_TRY(finish_file(extract, item));
    } else if (!item->checked && bw_target_leaves_out(&extract->target, &item->inode)) {
        extract->devices++;
        extract->failed = true;
    } else if (!item->checked) {
        struct bw_error *error = make_with_directories(extract, item, make_other);
        extract->failed = error;
        BW_TRY(tolerate_error(extract, error));
    }
    const bool made = item->checked || !extract->failed;

    /* The further names depend on the result. */
    struct bw_link link;
    if (extract->lost)
        BW_TRY(report_free_name(extract, item));
    if (find_hard_link(extract, item, &link)) {
        if (made)
            link.state = extract->zeroed ? BW_LINK_ZEROED : BW_LINK_MADE;
        else
            link.state = extract->lost ? BW_LINK_LOST : BW_LINK_NOWHERE;
        bw_links_set(&extract->links, link.number, link.state);
    }
    if (!made || item->type != S_IFREG || !bw_target_is_protected(&extract->target, &item->inode))
        return NULL;
    return bw_made_directories_add(&extract->directories, bw_export_entry_name(item),
                                   bw_export_entry_name_length(item), &item->place, &item->inode);
}

/* Links to the file whose path is in `text`. */
static struct bw_error *make_link(struct extract *extract, struct bw_export_entry *item)
{
    return bw_target_make_link(&extract->target, bw_export_entry_name(item),
                               bw_export_entry_name_length(item), extract->text.data,
                               extract->text.length);
}

/* Whether linking is not possible, in general or for this file, although the name is valid and
 * free. */
static bool needs_copy(const struct bw_error *error)
{
    return error && error->code == BW_ERROR_SYSTEM && !ends_extraction(error) &&
           error->system != EEXIST && error->system != ENAMETOOLONG && error->system != EINVAL &&
           error->system != EILSEQ;
}

/* Handles a further name of a file. Sets `*again` if the contents are not extracted yet, or must be
 * copied. */
static struct bw_error *finish_name(struct extract *extract, struct bw_export_entry *item,
                                    bool *again)
{
    struct bw_link link;
    struct bw_error *error = NULL;
    const bool has_link = find_hard_link(extract, item, &link);
    extract->text.length = 0;
    if (link.state == BW_LINK_LOST) {
        BW_TRY(report_free_name(extract, item));
        error = bw_error_create(BW_ERROR_CORRUPT,
                                "%s: not extracted: its first hard link was not extracted",
                                item->path.data);
    } else if (link.state == BW_LINK_MADE || link.state == BW_LINK_ZEROED) {
        if (link.state == BW_LINK_ZEROED)
            BW_TRY(rename_damaged(extract, item));
        bw_links_append_path(&extract->links, link.number, &extract->text);
        if (extract->text.failed)
            error = bw_error_no_memory();
        else
            error = make_with_directories(extract, item, make_link);
    }

    /* After a copy in place of the first name, further names are linked to the copy. */
    const bool replaced = link.state == BW_LINK_NOWHERE || (error && error->system == EMLINK);
    const bool copied = replaced || needs_copy(error);
    *again = link.state == BW_LINK_COMING || copied;
    item->checked = !*again && is_already_extracted(extract, item, error);
    extract->failed = !*again && error && !item->checked;
    const bool was_counted =
        link.state == BW_LINK_LOST && cmd_export_lacks_contents(&extract->export, error);
    if (extract->failed && !was_counted) /* the file was counted under its first name */
        return tolerate_error(extract, error);
    bw_error_free(error);
    item->skipped = !copied;
    if (replaced && has_link &&
        !bw_links_rename(&extract->links, link.number, bw_export_entry_name(item)))
        return bw_error_no_memory();
    return NULL;
}

/* Adds an entry to the lists. `is_name`: it was handled as a further name of a file. */
static struct bw_error *list_item(struct extract *extract, const struct bw_export_entry *item,
                                  bool is_name)
{
    const bool was_read = !item->skipped && !extract->ended;
    const bool is_whole =
        !extract->lists.read.bad || extract->export.bad.on_error == CMD_ON_ERROR_ZERO;
    enum extract_outcome outcome = EXTRACT_MADE;
    if (item->type == S_IFDIR && (extract->failed || extract->ended))
        return NULL; /* the files in it are listed */
    if (item->checked && is_name)
        outcome = EXTRACT_LINKED;
    else if (item->checked)
        outcome = was_read && is_whole ? EXTRACT_FOUND : EXTRACT_KEPT;
    else if (bw_target_leaves_out(&extract->target, &item->inode))
        outcome = EXTRACT_OMITTED;
    else if (extract->failed)
        outcome = EXTRACT_FAILED;
    else if (is_name)
        outcome = EXTRACT_LINKED;
    return extract_lists_add(&extract->lists, extract->export.session.fs, item, outcome);
}

/* Ends an entry; `complete`: no error has ended the stream before all its parts were delivered. */
static struct bw_error *finish_entry(void *context, const struct bw_stream_file *file,
                                     bool complete)
{
    struct extract *extract = context;
    struct bw_export_entry *item = file->user;
    const bool is_name = item->skipped && !item->checked && !extract->ended;
    bool again = false;
    struct bw_error *error = NULL;
    if (complete && !extract->ended) {
        if (!item->has_inode || !item->type) {
            extract->failed = true;
            list_error(extract,
                       bw_error_create(BW_ERROR_CORRUPT, "%s: its inode is lost", item->path.data));
        } else if (item->type == S_IFDIR) {
            error = make_with_directories(extract, item, make_directory);
            error = tolerate_error(extract, error);
        } else if (is_name) {
            error = finish_name(extract, item, &again);
        } else {
            error = finish_content(extract, item);
        }
        error = list_rest_after(extract, error);
    }
    /* After the end, files are only listed. An earlier run may have extracted them. */
    if (complete && extract->ended) {
        again = false;
        extract->failed = true;
        item->checked = was_extracted(&extract->target, item);
    }
    if (complete && !error && !again)
        error = list_item(extract, item, is_name);
    if (error && !extract->lists.missed.has_failed) /* the manifest has failed */
        error = list_rest_after(extract, error);

    cmd_bad_flush(&extract->export.bad);
    bw_target_file_abandon(&extract->file);
    extract->began = extract->failed = extract->lost = extract->zeroed = false;
    if (!again) {
        bw_entry_queue_release(extract->export.queue, item);
        return error;
    }
    pthread_mutex_lock(&extract->lock);
    item->next = NULL;
    *extract->again_end = item;
    extract->again_end = &item->next;
    pthread_mutex_unlock(&extract->lock);
    return error;
}

/* Restores the attributes of a directory at the end; or protects a file. */
static struct bw_error *finish_directory(void *context, const char *path, size_t length,
                                         const struct bw_made_directory *directory)
{
    struct extract *extract = context;
    const struct bw_inode inode = bw_made_directory_inode(directory);
    struct bw_target_attributes attributes;
    BW_TRY(read_attributes(extract, &directory->place, &inode, &attributes));
    bw_target_restore_last(&extract->target, path, length, &attributes);
    return NULL;
}

struct bw_error *extract_from(struct extract *extract, struct bw_fs *fs)
{
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = extract->export.settings->walk.threads,
                                     .next = next_file,
                                     .visit = write_part,
                                     .finish = finish_entry,
                                     .context = extract,
                                     .held = bw_export_entry_held};
    struct bw_fs *before = extract->export.session.fs;
    extract->export.session.fs = fs;
    extract->export.bad = (struct cmd_bad_ranges){
        .fs = before, .export = &extract->export, .on_error = extract->settings->on_error};
    bw_links_init(&extract->links);
    extract->directories.complete = true; /* only directories that it makes are added */

    /* By two walks: symbolic links are made last. */
    struct bw_error *error = bw_xattr_reader_create(fs, &extract->xattrs);
    if (!error)
        error =
            cmd_export_start(&extract->export, BW_WALK_ALL & ~BW_WALK_SYMLINKS, BW_WALK_SYMLINKS);
    if (!error) {
        error = bw_stream_run(fs, &stream);
        while (!error && extract->again)
            error = bw_stream_run(fs, &stream);
        error = bw_error_first(error, bw_target_make_rest(&extract->maker));
        for (struct bw_export_entry *item; (item = next_repeated(extract));)
            bw_entry_queue_release(extract->export.queue, item);
        cmd_export_stop(&extract->export);

        /* The PATHs that were not found are missing, too. */
        const struct bw_buffer *absent = &extract->export.missing_starts;
        if (!error && extract->lists.missed.name && absent->length)
            error = cmd_list_file_add(&extract->lists.missed, absent->data, absent->length);
        extract->all_listed = !error && !absent->failed;
        error = bw_error_first(BW_TAKE(extract->ended), error);
        error = bw_error_first(
            error, bw_made_directories_visit(&extract->directories, finish_directory, extract));
    }
    bw_xattr_reader_destroy(BW_TAKE(extract->xattrs));
    bw_links_free(&extract->links);
    bw_made_directories_free(&extract->directories);
    extract->directories = (struct bw_made_directories){0};
    extract->export.session.fs = before;
    return error;
}

/* Opening and closing. */

/* An unfinished file that has a name; it is removed when a signal ends the program. */
static const struct bw_target_file *volatile unfinished;

static void remove_unfinished(void)
{
    if (unfinished)
        bw_target_file_remove(unfinished);
}

/* Lists the collected errors, and notes about attributes that were not restored on purpose. */
static void list_missed(struct extract *extract)
{
    const struct cmd_common *common = extract->export.common;
    const bool are_many = extract->existing > EXTRACT_EXISTING;
    if (are_many)
        cmd_export_report(&extract->export,
                          bw_error_create(BW_ERROR_SYSTEM,
                                          "%" PRIu64 " files exist; --skip-existing continues",
                                          extract->existing));
    if (extract->target.without_xattrs)
        cmd_export_report(&extract->export,
                          bw_error_create(BW_ERROR_SYSTEM,
                                          "the target cannot store some attributes: %" PRIu64
                                          " file%s lost them",
                                          extract->target.without_xattrs,
                                          bw_plural(extract->target.without_xattrs)));
    if (extract->missed_count > (are_many ? EXTRACT_EXISTING : 0) && !common->messages.quiet)
        fprintf(stderr, "btrfs-walk: not extracted, or only in part:\n");
    for (uint64_t i = 0; i < extract->missed_count && i < EXTRACT_LISTED; i++)
        if (are_many && is_counted(extract, extract->missed[i]))
            bw_error_free(extract->missed[i]);
        else
            cmd_export_report(&extract->export, extract->missed[i]);
    if (extract->missed_count > EXTRACT_LISTED)
        fprintf(stderr, "btrfs-walk: and %" PRIu64 " more\n",
                extract->missed_count - EXTRACT_LISTED);
    if (extract->renamed_count && !common->messages.quiet)
        fprintf(stderr, "btrfs-walk: %" PRIu64 " name%s changed:\n", extract->renamed_count,
                extract->renamed_count == 1 ? " was" : "s were");
    for (uint64_t i = 0; i < extract->renamed_count && i < EXTRACT_LISTED; i++)
        if (common->messages.quiet)
            bw_error_free(extract->renamed[i]);
        else
            cmd_fail(common, extract->renamed[i]);
    if (common->messages.quiet)
        return;
    if (extract->renamed_count > EXTRACT_LISTED)
        fprintf(stderr, "btrfs-walk: and %" PRIu64 " more; --renamed FILE lists all\n",
                extract->renamed_count - EXTRACT_LISTED);
    if (extract->target.lowered)
        fprintf(stderr,
                "btrfs-walk: note: %" PRIu64
                " file%s lost privileges or protection that --preserve keeps\n",
                extract->target.lowered, extract->target.lowered == 1 ? " has" : "s have");
    if (extract->target.without_owner)
        fprintf(stderr,
                "btrfs-walk: note: the target stores no owners and permissions: %" PRIu64
                " file%s lost them\n",
                extract->target.without_owner, bw_plural(extract->target.without_owner));
    if (extract->devices == 1)
        fprintf(stderr,
                "btrfs-walk: note: 1 device node was left out: device nodes are made only with "
                "--preserve\n");
    else if (extract->devices)
        fprintf(stderr,
                "btrfs-walk: note: %" PRIu64
                " device nodes were left out: they are made only with --preserve\n",
                extract->devices);
    if (extract->target.foreign && extract->target.options.preserve)
        fprintf(stderr,
                "btrfs-walk: note: %" PRIu64
                " file%s of other owners or groups %s yours now: only root can "
                "restore those\n",
                extract->target.foreign, bw_plural(extract->target.foreign),
                extract->target.foreign == 1 ? "is" : "are");
}

/* Opens the folder and the lists, and starts the maker, the process that makes symbolic links and
 * special files (export/target.h). All that happens before the sandbox is entered. */
static struct bw_error *open_outputs(void *context, const struct bw_fs *planned)
{
    struct extract *extract = context;
    const struct cmd_common *writing = extract->export.common;
    const struct extract_settings *settings = extract->settings;
    bool is_new;
    BW_TRY(cmd_open_folder(writing, settings->folder, &extract->folder.descriptor, &is_new));
    const int again = fcntl(extract->folder.descriptor, F_DUPFD_CLOEXEC, 0);
    BW_TRY(bw_target_open(extract->folder.descriptor, &settings->target, &extract->target));
    extract->target.is_new = is_new;
    if (again < 0)
        return bw_error_from_errno(errno, "cannot open %s", settings->folder);
    BW_TRY(bw_target_open(again, &settings->target, &extract->look));
    BW_TRY(extract_lists_open(&extract->lists, &settings->lists, writing, planned));
    if (settings->rename)
        bw_portable_names_open(&extract->names);
    if (!cmd_sandbox_is_on(writing))
        return NULL;

    /* The maker makes what can be made only by path. It ends with this process. */
    BW_TRY(bw_channel_fork(&extract->maker.channel, &extract->maker_process));
    if (extract->maker_process)
        return NULL;
    cmd_ignore_exit_signals();
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    cmd_sandbox_enter_maker(writing);
    bw_target_serve_orders(&extract->target, extract->maker.channel);
    _exit(0);
}

int extract_run(const struct cmd_common *common, struct extract_settings *settings,
                struct bw_error *(*work)(struct extract *extract, void *context), void *context)
{
    struct cmd_common writing = *common;
    struct extract *extract = calloc(1, sizeof *extract);
    if (!extract)
        return cmd_fail(common, bw_error_no_memory());
    settings->target.missed = add_missed;
    settings->target.context = extract;
    settings->rename |= settings->lists.renamed != NULL;
    extract->names.changed = add_renamed;
    extract->names.context = extract;
    settings->export.salvage = settings->on_error == CMD_ON_ERROR_ZERO;
    extract->settings = settings;
    extract->maker = (struct bw_target_maker){
        .target = &extract->target, .channel = -1, .failed = tolerate_error, .context = extract};
    extract->file.descriptor = -1;
    pthread_mutex_init(&extract->lock, NULL);
    extract->again_end = &extract->again;
    writing.writing.folder = &extract->folder;
    writing.writing.preserves = settings->target.preserve;
    writing.writing.open_outputs = open_outputs;
    writing.writing.outputs = extract;

    cmd_advise_on_interrupt(common, settings->target.skip_existing
                                        ? "repeat the command to continue"
                                        : "repeat the command with --skip-existing to continue");
    int status = cmd_export_open(&writing, &settings->export, &extract->export);
    if (!status) {
        /* The seed of random names is derived from the image. */
        struct bw_superblock_info superblock;
        bw_fs_superblock(extract->export.session.fs, &superblock);
        memcpy(&extract->target.options.seed, superblock.fsid, sizeof(uint64_t));
        unfinished = &extract->file;
        cmd_clean_up_on_exit(remove_unfinished);
        struct bw_error *error = work(extract, context);
        unfinished = NULL;

        /* of `deleted`, the older generations are missing */
        const bool all_listed = !error || (extract->all_listed && !extract->export.bring);
        cmd_progress_end();
        end_maker(extract);
        struct bw_error *unsynced = NULL;
        if (writing.writing.fsync)
            unsynced = bw_target_sync(&extract->target);
        struct bw_error *unlisted = extract_lists_close(&extract->lists, all_listed && !unsynced);
        error = bw_error_first(error, bw_error_first(unsynced, unlisted));
        list_missed(extract);
        status = cmd_export_close(&extract->export, error);
        bw_target_file_abandon(&extract->file);
    } else {
        bw_error_free(extract_lists_close(&extract->lists, false));
    }
    end_maker(extract);
    bw_target_close(&extract->target);
    bw_target_close(&extract->look);
    pthread_mutex_destroy(&extract->lock);
    bw_portable_names_close(&extract->names);
    bw_buffer_free(&extract->text);
    free(extract);
    return status;
}
