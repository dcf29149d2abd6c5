/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The side of libarchive: entries as it wants them, its errors as ours. */
#include "export/archive.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "export/libarchive.h"
#include "export/mtree.h"
#include "format/acl.h"

enum { END_UNIT = 10240 /* tar archives are a multiple of that long */ };

static const char zeros[64 << 10];

struct bw_archive {
    enum bw_archive_format format;
    bw_archive_writer *write;
    void *context;
    struct bw_error *error; /* of `write` */
    struct bw_libarchive library;
    struct archive *archive;
    struct archive_entry *entry;
    locale_t locale;       /* where names are UTF-8; 0 if there is none */
    struct bw_buffer text; /* of access lists, and of lines */
    uint64_t written;      /* bytes of the archive */
    bool began;            /* mtree: its first line is written */
    bool given_up;         /* nothing more is written */

    /* Data of a sparse file go around libarchive, which counts every hole in small steps. It fills
     * up what it misses of an entry with zeros: so many bytes of them are not written. */
    uint64_t around;
    const struct bw_archive_range *range; /* that the position is in, or comes to */
    size_t range_count;                   /* from that on */
    uint64_t position;                    /* in the file */
    bool is_sparse;
};

static struct bw_error *put(struct bw_archive *archive, const char *bytes, size_t length)
{
    archive->written += length;
    return length ? archive->write(archive->context, bytes, length) : NULL;
}

static ssize_t write_piece(struct archive *inner, void *context, const void *bytes, size_t length)
{
    struct bw_archive *archive = context;
    size_t dropped = archive->around < length ? (size_t)archive->around : length;
    archive->around -= dropped;
    if (!archive->error && !archive->given_up)
        archive->error = put(archive, (const char *)bytes + dropped, length - dropped);
    if (!archive->error && !archive->given_up)
        return (ssize_t)length;
    archive->library.archive_set_error(inner, EIO, "cannot write");
    return -1;
}

/* The error of what libarchive has just refused. */
static struct bw_error *refusal(struct bw_archive *archive, int result)
{
    if (archive->error)
        return BW_TAKE(archive->error);
    const char *reason = archive->library.archive_error_string(archive->archive);
    if (archive->library.archive_errno(archive->archive) == ENOMEM)
        return bw_error_no_memory();
    return bw_error_create(result == ARCHIVE_FATAL ? BW_ERROR_SYSTEM : BW_ERROR_USAGE, "%s",
                           reason ? reason : "the archive cannot hold it");
}

static struct bw_error *open_inner(struct bw_archive *archive)
{
    const struct bw_libarchive *library = &archive->library;
    BW_TRY(bw_libarchive_load(&archive->library));
    archive->archive = library->archive_write_new();
    archive->entry = library->archive_entry_new();
    if (!archive->archive || !archive->entry)
        return bw_error_no_memory();
    archive->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    int result = archive->format == BW_ARCHIVE_PAX
                     ? library->archive_write_set_format_pax(archive->archive)
                     : library->archive_write_set_format_cpio_newc(archive->archive);
    /* One form of each attribute is enough: GNU tar knows this one, and so does libarchive. */
    if (result == ARCHIVE_OK && archive->format == BW_ARCHIVE_PAX)
        library->archive_write_set_format_option(archive->archive, "pax", "xattrheader", "SCHILY");
    if (result == ARCHIVE_OK) /* what it writes comes at once */
        result = library->archive_write_set_bytes_per_block(archive->archive, 0);
    if (result == ARCHIVE_OK)
        result = library->archive_write_open(archive->archive, archive, NULL, write_piece, NULL);
    return result == ARCHIVE_OK ? NULL : refusal(archive, result);
}

struct bw_error *bw_archive_create(enum bw_archive_format format, bw_archive_writer *write,
                                   void *context, struct bw_archive **result)
{
    struct bw_archive *archive = calloc(1, sizeof *archive);
    if (!archive)
        return bw_error_no_memory();
    archive->format = format;
    archive->write = write;
    archive->context = context;
    struct bw_error *error = format == BW_ARCHIVE_MTREE ? NULL : open_inner(archive);
    if (!error)
        *result = archive;
    else
        bw_archive_destroy(archive);
    return error;
}

void bw_archive_destroy(struct bw_archive *archive)
{
    if (!archive)
        return;
    const struct bw_libarchive *library = &archive->library;
    if (archive->archive) {
        archive->given_up = true;                       /* what was not ended shall show it */
        library->archive_write_close(archive->archive); /* without which some of its memory is lost
                                                         */
        library->archive_write_free(archive->archive);
    }
    if (archive->entry)
        library->archive_entry_free(archive->entry);
    if (archive->locale)
        freelocale(archive->locale);
    bw_error_free(archive->error);
    bw_buffer_free(&archive->text);
    free(archive);
}

/* Of a time before 1970 libarchive writes second and fraction as if both had the sign; and cpio has
 * none. */
static struct timespec writable(const struct bw_archive *archive, struct timespec time)
{
    if (time.tv_sec < 0)
        time = (struct timespec){archive->format == BW_ARCHIVE_CPIO ? 0 : time.tv_sec, 0};
    return time;
}

static void set_times(struct bw_archive *archive, const struct bw_archive_entry *entry)
{
    const struct bw_libarchive *library = &archive->library;
    const struct timespec mtime = writable(archive, entry->inode->mtime),
                          atime = writable(archive, entry->inode->atime),
                          ctime = writable(archive, entry->inode->ctime);
    library->archive_entry_set_mtime(archive->entry, mtime.tv_sec, mtime.tv_nsec);
    library->archive_entry_set_atime(archive->entry, atime.tv_sec, atime.tv_nsec);
    library->archive_entry_set_ctime(archive->entry, ctime.tv_sec, ctime.tv_nsec);
}

static void set_inode(struct bw_archive *archive, const struct bw_archive_entry *entry)
{
    const struct bw_libarchive *library = &archive->library;
    struct archive_entry *inner = archive->entry;
    const struct bw_inode *inode = entry->inode;
    library->archive_entry_set_mode(inner, (mode_t)inode->mode);
    library->archive_entry_set_uid(inner, inode->uid);
    library->archive_entry_set_gid(inner, inode->gid);
    library->archive_entry_set_nlink(inner, inode->link_count);
    library->archive_entry_set_ino64(inner, (int64_t)(entry->number & INT64_MAX));
    if (S_ISREG(inode->mode) && !entry->hardlink)
        library->archive_entry_set_size(inner, (int64_t)(inode->size & INT64_MAX));
    else
        library->archive_entry_set_size(inner, 0);
    if (S_ISBLK(inode->mode) || S_ISCHR(inode->mode)) {
        library->archive_entry_set_rdevmajor(inner, bw_inode_major(inode));
        library->archive_entry_set_rdevminor(inner, bw_inode_minor(inode));
    }
}

/* An access list in the words of both tars; false if it is none. */
static bool set_acl(struct bw_archive *archive, const struct bw_xattr *xattr)
{
    bool is_default;
    archive->text.length = 0;
    if (!bw_acl_is_one(xattr, &is_default) ||
        !bw_acl_append_text(xattr->value, xattr->value_length, "", &archive->text))
        return false;
    bw_buffer_append_byte(&archive->text, '\0');
    int type = is_default ? ARCHIVE_ENTRY_ACL_TYPE_DEFAULT : ARCHIVE_ENTRY_ACL_TYPE_ACCESS;
    return !archive->text.failed && archive->library.archive_entry_acl_from_text(
                                        archive->entry, archive->text.data, type) == ARCHIVE_OK;
}

static void set_xattrs(struct bw_archive *archive, const struct bw_archive_entry *entry)
{
    for (size_t i = 0; i < entry->xattr_count; i++) {
        const struct bw_xattr *xattr = &entry->xattrs[i];
        if (!set_acl(archive, xattr))
            archive->library.archive_entry_xattr_add_entry(
                archive->entry, (const char *)xattr->name, xattr->value, xattr->value_length);
    }
}

/* Whether libarchive writes the name of a sparse file as it is: one that is no UTF-8 and does not
 * fit the first header comes out cut off (3.6). */
static bool can_be_sparse(const char *path)
{
    size_t length = strlen(path);
    return length <= 100 || bw_utf8_is_valid(path, length);
}

static void set_ranges(struct bw_archive *archive, const struct bw_archive_entry *entry)
{
    const struct bw_libarchive *library = &archive->library;
    for (size_t i = 0; i < entry->range_count; i++)
        library->archive_entry_sparse_add_entry(archive->entry, (int64_t)entry->ranges[i].offset,
                                                (int64_t)entry->ranges[i].length);
    if (!entry->range_count) /* nothing but a hole */
        library->archive_entry_sparse_add_entry(archive->entry,
                                                (int64_t)(entry->inode->size & INT64_MAX), 0);
}

static struct bw_error *write_header(struct bw_archive *archive)
{
    int result = archive->library.archive_write_header(archive->archive, archive->entry);
    /* A warning is about names that are no UTF-8: they are written as they are, and say so. */
    return result >= ARCHIVE_WARN && !archive->error ? NULL : refusal(archive, result);
}

/* The map of the holes comes with the first data, even if these are none. */
static struct bw_error *begin_sparse(struct bw_archive *archive,
                                     const struct bw_archive_entry *entry)
{
    archive->range = entry->ranges;
    archive->range_count = entry->range_count;
    archive->position = 0;
    return archive->library.archive_write_data(archive->archive, zeros, 0) < 0
               ? refusal(archive, ARCHIVE_FATAL)
               : NULL;
}

static struct bw_error *begin_inner(struct bw_archive *archive,
                                    const struct bw_archive_entry *entry)
{
    const struct bw_libarchive *library = &archive->library;
    struct archive_entry *inner = library->archive_entry_clear(archive->entry);
    bool has_more = archive->format == BW_ARCHIVE_PAX && !entry->hardlink;
    archive->is_sparse = has_more && entry->is_sparse && can_be_sparse(entry->path);
    library->archive_entry_copy_pathname(inner, entry->path);
    set_inode(archive, entry);
    set_times(archive, entry);
    if (entry->symlink)
        library->archive_entry_copy_symlink(inner, entry->symlink);
    if (entry->hardlink)
        library->archive_entry_copy_hardlink(inner, entry->hardlink);
    if (has_more)
        set_xattrs(archive, entry);
    if (archive->is_sparse)
        set_ranges(archive, entry);
    BW_TRY(write_header(archive));
    return archive->is_sparse ? begin_sparse(archive, entry) : NULL;
}

static struct bw_error *write_line(struct bw_archive *archive, const struct bw_archive_entry *entry)
{
    archive->text.length = 0;
    if (!archive->began)
        bw_mtree_append_head(&archive->text);
    archive->began = true;
    bw_mtree_append(&archive->text, entry);
    return archive->text.failed ? bw_error_no_memory()
                                : put(archive, archive->text.data, archive->text.length);
}

struct bw_error *bw_archive_begin(struct bw_archive *archive, const struct bw_archive_entry *entry,
                                  uint64_t *wanted)
{
    *wanted = 0;
    if (archive->format == BW_ARCHIVE_MTREE)
        return write_line(archive, entry);
    /* Names are converted as the locale of the thread says; which thread it is may change. */
    locale_t before = archive->locale ? uselocale(archive->locale) : (locale_t)0;
    struct bw_error *error = begin_inner(archive, entry);
    if (archive->locale)
        uselocale(before);
    if (!error)
        *wanted = (uint64_t)archive->library.archive_entry_size(archive->entry);
    return error;
}

static struct bw_error *put_zeros(struct bw_archive *archive, uint64_t length)
{
    for (uint64_t step; length; length -= step) {
        step = length < sizeof zeros ? length : sizeof zeros;
        BW_TRY(put(archive, zeros, (size_t)step));
    }
    return NULL;
}

/* Of what comes next in a sparse file, writes what is in no hole; `bytes` NULL: zeros. */
static struct bw_error *add_around(struct bw_archive *archive, const char *bytes, uint64_t length)
{
    while (length && archive->range_count) {
        const struct bw_archive_range *range = archive->range;
        bool in_hole = archive->position < range->offset;
        uint64_t end = in_hole ? range->offset : range->offset + range->length;
        uint64_t step = end - archive->position < length ? end - archive->position : length;
        if (!in_hole) {
            archive->around += step;
            BW_TRY(bytes ? put(archive, bytes, (size_t)step) : put_zeros(archive, step));
        }
        archive->position += step;
        bytes = bytes ? bytes + step : NULL;
        length -= step;
        if (archive->position == range->offset + range->length) {
            archive->range++;
            archive->range_count--;
        }
    }
    return NULL;
}

struct bw_error *bw_archive_add(struct bw_archive *archive, const void *bytes, size_t length)
{
    const char *next = bytes;
    if (archive->is_sparse)
        return add_around(archive, bytes, length);
    while (length) {
        ssize_t written = archive->library.archive_write_data(archive->archive, next, length);
        if (written <= 0)
            return refusal(archive, ARCHIVE_FATAL);
        next += written;
        length -= (size_t)written;
    }
    return NULL;
}

struct bw_error *bw_archive_add_zeros(struct bw_archive *archive, uint64_t length)
{
    if (archive->is_sparse)
        return add_around(archive, NULL, length);
    for (uint64_t step; length; length -= step) {
        step = length < sizeof zeros ? length : sizeof zeros;
        BW_TRY(bw_archive_add(archive, zeros, (size_t)step));
    }
    return NULL;
}

struct bw_error *bw_archive_end(struct bw_archive *archive)
{
    if (archive->format == BW_ARCHIVE_MTREE) {
        archive->text.length = 0;
        if (!archive->began)
            bw_mtree_append_head(&archive->text);
        return put(archive, archive->text.data, archive->text.length);
    }
    int result = archive->library.archive_write_close(archive->archive);
    if (result != ARCHIVE_OK || archive->error)
        return refusal(archive, result);
    uint64_t unit = archive->format == BW_ARCHIVE_PAX ? END_UNIT : 512;
    return put_zeros(archive, (unit - archive->written % unit) % unit);
}
