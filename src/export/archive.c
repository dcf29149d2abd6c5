/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The side of libarchive: entries as it wants them, its errors as ours. */
#include "export/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "export/device.h"
#include "export/mtree.h"
#include "format/acl.h"

enum {
    PIECE = 1 << 20,  /* of what is written at a time */
    END_UNIT = 10240, /* tar archives are a multiple of that long */
    ZEROS = 1 << 30,  /* bytes of zeros at a time: holes are only counted */
};

struct bw_archive {
    enum bw_archive_format format;
    bw_archive_writer *write;
    void *context;
    struct bw_error *error; /* of `write` */
    struct archive *archive;
    struct archive_entry *entry;
    locale_t locale;       /* where names are UTF-8; 0 if there is none */
    void *zeros;           /* ZEROS of them that take no memory; NULL: not needed yet */
    struct bw_buffer text; /* of access lists, and of lines */
    bool began;            /* mtree: its first line is written */
};

static ssize_t write_piece(struct archive *inner, void *context, const void *bytes, size_t length)
{
    struct bw_archive *archive = context;
    if (!archive->error)
        archive->error = archive->write(archive->context, bytes, length);
    if (!archive->error)
        return (ssize_t)length;
    archive_set_error(inner, EIO, "cannot write");
    return -1;
}

/* The error of what libarchive has just refused. */
static struct bw_error *refusal(struct bw_archive *archive, int result)
{
    if (archive->error)
        return BW_TAKE(archive->error);
    const char *reason = archive_error_string(archive->archive);
    if (archive_errno(archive->archive) == ENOMEM)
        return bw_error_no_memory();
    return bw_error_create(result == ARCHIVE_FATAL ? BW_ERROR_SYSTEM : BW_ERROR_USAGE, "%s",
                           reason ? reason : "the archive cannot hold it");
}

static struct bw_error *open_inner(struct bw_archive *archive)
{
    archive->archive = archive_write_new();
    archive->entry = archive_entry_new();
    if (!archive->archive || !archive->entry)
        return bw_error_no_memory();
    archive->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    int result = archive->format == BW_ARCHIVE_PAX ? archive_write_set_format_pax(archive->archive)
                                                   : archive_write_set_format_cpio_newc(archive->archive);
    /* One form of each attribute is enough: GNU tar knows this one, and so does libarchive. */
    if (result == ARCHIVE_OK && archive->format == BW_ARCHIVE_PAX)
        archive_write_set_format_option(archive->archive, "pax", "xattrheader", "SCHILY");
    if (result == ARCHIVE_OK)
        result = archive_write_set_bytes_per_block(archive->archive, PIECE);
    if (result == ARCHIVE_OK)
        result = archive_write_set_bytes_in_last_block(archive->archive,
                                                       archive->format == BW_ARCHIVE_PAX ? END_UNIT : 512);
    if (result == ARCHIVE_OK)
        result = archive_write_open(archive->archive, archive, NULL, write_piece, NULL);
    return result == ARCHIVE_OK ? NULL : refusal(archive, result);
}

struct bw_error *bw_archive_create(enum bw_archive_format format, bw_archive_writer *write, void *context,
                                   struct bw_archive **result)
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
    if (archive->archive) {
        archive_write_fail(archive->archive); /* nothing more is written: what was not ended shall show it */
        archive_write_free(archive->archive);
    }
    archive_entry_free(archive->entry);
    if (archive->locale)
        freelocale(archive->locale);
    if (archive->zeros)
        munmap(archive->zeros, ZEROS);
    bw_error_free(archive->error);
    bw_buffer_free(&archive->text);
    free(archive);
}

static void set_times(struct archive_entry *inner, const struct bw_inode *inode)
{
    const int64_t second = 1000000000;
    const int64_t times[] = {inode->mtime, inode->atime, inode->ctime};
    int64_t rest[3], seconds[3];
    for (unsigned i = 0; i < 3; i++) {
        rest[i] = times[i] % second + (times[i] % second < 0 ? second : 0);
        seconds[i] = (times[i] - rest[i]) / second;
        /* Of a time before 1970 libarchive writes second and fraction as if both had the sign. */
        rest[i] = seconds[i] < 0 ? 0 : rest[i];
    }
    archive_entry_set_mtime(inner, seconds[0], (long)rest[0]);
    archive_entry_set_atime(inner, seconds[1], (long)rest[1]);
    archive_entry_set_ctime(inner, seconds[2], (long)rest[2]);
}

static void set_inode(struct archive_entry *inner, const struct bw_archive_entry *entry)
{
    const struct bw_inode *inode = entry->inode;
    archive_entry_set_mode(inner, (mode_t)inode->mode);
    archive_entry_set_uid(inner, inode->uid);
    archive_entry_set_gid(inner, inode->gid);
    archive_entry_set_nlink(inner, inode->link_count);
    archive_entry_set_ino64(inner, (int64_t)(entry->number & INT64_MAX));
    set_times(inner, inode);
    if (S_ISREG(inode->mode) && !entry->hardlink)
        archive_entry_set_size(inner, (int64_t)(inode->size & INT64_MAX));
    else
        archive_entry_set_size(inner, 0);
    if (S_ISBLK(inode->mode) || S_ISCHR(inode->mode)) {
        archive_entry_set_rdevmajor(inner, bw_inode_device_major(inode));
        archive_entry_set_rdevminor(inner, bw_inode_device_minor(inode));
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
    return !archive->text.failed &&
           archive_entry_acl_from_text(archive->entry, archive->text.data, type) == ARCHIVE_OK;
}

static void set_xattrs(struct bw_archive *archive, const struct bw_archive_entry *entry)
{
    for (size_t i = 0; i < entry->xattr_count; i++) {
        const struct bw_xattr *xattr = &entry->xattrs[i];
        if (!set_acl(archive, xattr))
            archive_entry_xattr_add_entry(archive->entry, (const char *)xattr->name, xattr->value,
                                          xattr->value_length);
    }
}

static void set_ranges(struct archive_entry *inner, const struct bw_archive_entry *entry)
{
    for (size_t i = 0; i < entry->range_count; i++)
        archive_entry_sparse_add_entry(inner, (int64_t)entry->ranges[i].offset,
                                       (int64_t)entry->ranges[i].length);
    if (!entry->range_count) /* nothing but a hole */
        archive_entry_sparse_add_entry(inner, (int64_t)(entry->inode->size & INT64_MAX), 0);
}

static struct bw_error *begin_inner(struct bw_archive *archive, const struct bw_archive_entry *entry)
{
    struct archive_entry *inner = archive_entry_clear(archive->entry);
    archive_entry_copy_pathname(inner, entry->path);
    set_inode(inner, entry);
    if (entry->symlink)
        archive_entry_copy_symlink(inner, entry->symlink);
    if (entry->hardlink)
        archive_entry_copy_hardlink(inner, entry->hardlink);
    if (archive->format == BW_ARCHIVE_PAX && !entry->hardlink)
        set_xattrs(archive, entry);
    if (archive->format == BW_ARCHIVE_PAX && entry->is_sparse && !entry->hardlink)
        set_ranges(inner, entry);
    int result = archive_write_header(archive->archive, inner);
    /* A warning is about names that are no UTF-8: they are written as they are, and say so. */
    return result >= ARCHIVE_WARN && !archive->error ? NULL : refusal(archive, result);
}

static struct bw_error *write_line(struct bw_archive *archive, const struct bw_archive_entry *entry)
{
    archive->text.length = 0;
    if (!archive->began)
        bw_mtree_append_head(&archive->text);
    archive->began = true;
    bw_mtree_append(&archive->text, entry);
    return archive->text.failed ? bw_error_no_memory()
                                : archive->write(archive->context, archive->text.data, archive->text.length);
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
        *wanted = (uint64_t)archive_entry_size(archive->entry);
    return error;
}

struct bw_error *bw_archive_add(struct bw_archive *archive, const void *bytes, size_t length)
{
    const char *next = bytes;
    while (length) {
        ssize_t written = archive_write_data(archive->archive, next, length);
        if (written <= 0)
            return refusal(archive, ARCHIVE_FATAL);
        next += written;
        length -= (size_t)written;
    }
    return NULL;
}

struct bw_error *bw_archive_add_zeros(struct bw_archive *archive, uint64_t length)
{
    if (!archive->zeros) {
        void *zeros = mmap(NULL, ZEROS, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (zeros == MAP_FAILED)
            return bw_error_no_memory();
        archive->zeros = zeros;
    }
    for (uint64_t step; length; length -= step) {
        step = length < ZEROS ? length : ZEROS;
        BW_TRY(bw_archive_add(archive, archive->zeros, (size_t)step));
    }
    return NULL;
}

struct bw_error *bw_archive_end(struct bw_archive *archive)
{
    if (archive->format == BW_ARCHIVE_MTREE) {
        archive->text.length = 0;
        if (!archive->began)
            bw_mtree_append_head(&archive->text);
        return archive->write(archive->context, archive->text.data, archive->text.length);
    }
    int result = archive_write_close(archive->archive);
    return result == ARCHIVE_OK && !archive->error ? NULL : refusal(archive, result);
}
