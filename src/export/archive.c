/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The data of an archive: which of them are stored, how they are padded, and how it ends. */
#include "export/archive.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"

static const char zeros[64 << 10];

/* The entry that ends a cpio archive. */
static const struct bw_inode no_inode = {.link_count = 1};
static const struct bw_archive_entry trailer = {.path = "TRAILER!!!", .inode = &no_inode};

static const struct format {
    struct bw_error *(*append)(struct bw_buffer *, const struct bw_archive_entry *, uint64_t *);
    const char *head;
    const struct bw_archive_entry *last;
    size_t last_zeros; /* after all entries */
    size_t data_unit;  /* data are padded to a multiple of it */
    size_t end_unit;   /* and so is the archive */
} formats[] = {
    [BW_ARCHIVE_PAX] = {.append = bw_pax_append, "", NULL, 1024, 512, 10240},
    [BW_ARCHIVE_CPIO] = {.append = bw_cpio_append, "", &trailer, 0, 4, 512},
    [BW_ARCHIVE_MTREE] = {.append = bw_mtree_append, "#mtree\n", NULL, 0, 1, 1},
};

struct bw_archive {
    const struct format *format;
    bw_archive_writer *write;
    void *context;
    struct bw_buffer text; /* what comes before the data of an entry */
    uint64_t written;      /* bytes of the archive */

    /* Of the current entry. */
    uint64_t left, padding;               /* bytes that are still to be stored, and after these */
    uint64_t position;                    /* in the file */
    const struct bw_archive_range *range; /* that the position is in or before */
    size_t range_count;                   /* from that one on */
    bool is_sparse;
};

static struct bw_error *put(struct bw_archive *archive, const char *bytes, size_t length)
{
    archive->written += length;
    return length ? archive->write(archive->context, bytes, length) : NULL;
}

static struct bw_error *put_zeros(struct bw_archive *archive, uint64_t length)
{
    for (uint64_t step; length; length -= step) {
        step = length < sizeof zeros ? length : sizeof zeros;
        BW_TRY(put(archive, zeros, (size_t)step));
    }
    return NULL;
}

static struct bw_error *put_text(struct bw_archive *archive)
{
    struct bw_error *error = archive->text.failed
                                 ? bw_error_no_memory()
                                 : put(archive, archive->text.data, archive->text.length);
    archive->text.length = 0;
    return error;
}

void bw_archive_pad(struct bw_buffer *text, size_t unit)
{
    bw_buffer_append(text, zeros, (unit - text->length % unit) % unit);
}

struct bw_error *bw_archive_create(enum bw_archive_format format, bw_archive_writer *write,
                                   void *context, struct bw_archive **result)
{
    struct bw_archive *archive = calloc(1, sizeof *archive);
    if (!archive)
        return bw_error_no_memory();
    *archive = (struct bw_archive){.format = &formats[format], .write = write, .context = context};
    bw_buffer_format(&archive->text, "%s", archive->format->head);
    *result = archive;
    return NULL;
}

void bw_archive_destroy(struct bw_archive *archive)
{
    if (archive)
        bw_buffer_free(&archive->text);
    free(archive);
}

/* Completes the entry before. */
static struct bw_error *end_entry(struct bw_archive *archive)
{
    uint64_t missing = archive->left + archive->padding;
    archive->left = archive->padding = 0;
    return put_zeros(archive, missing);
}

struct bw_error *bw_archive_begin(struct bw_archive *archive, const struct bw_archive_entry *entry,
                                  uint64_t *wanted)
{
    size_t before = archive->text.length;
    uint64_t data = 0, unit = archive->format->data_unit;
    *wanted = 0;
    BW_TRY(end_entry(archive));
    struct bw_error *error = archive->format->append(&archive->text, entry, &data);
    if (error) {
        archive->text.length = before;
        return error;
    }
    BW_TRY(put_text(archive));
    archive->left = data;
    archive->padding = (unit - data % unit) % unit;
    archive->is_sparse = entry->is_sparse;
    archive->range = entry->ranges;
    archive->range_count = entry->range_count;
    archive->position = 0;
    *wanted = entry->is_sparse ? entry->inode->size : data;
    return NULL;
}

/* Stores bytes; `bytes` is NULL for zeros. */
static struct bw_error *store(struct bw_archive *archive, const char *bytes, uint64_t length)
{
    length = length < archive->left ? length : archive->left;
    archive->left -= length;
    return bytes ? put(archive, bytes, (size_t)length) : put_zeros(archive, length);
}

/* Stores those of the next bytes of a sparse file that are in no hole. */
static struct bw_error *store_ranges(struct bw_archive *archive, const char *bytes, uint64_t length)
{
    while (length && archive->range_count) {
        const struct bw_archive_range *range = archive->range;
        bool in_hole = archive->position < range->offset;
        uint64_t end = in_hole ? range->offset : range->offset + range->length;
        uint64_t step = end - archive->position < length ? end - archive->position : length;
        if (!in_hole)
            BW_TRY(store(archive, bytes, step));
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
    return archive->is_sparse ? store_ranges(archive, bytes, length)
                              : store(archive, bytes, length);
}

struct bw_error *bw_archive_add_zeros(struct bw_archive *archive, uint64_t length)
{
    return archive->is_sparse ? store_ranges(archive, NULL, length) : store(archive, NULL, length);
}

struct bw_error *bw_archive_end(struct bw_archive *archive)
{
    const struct format *format = archive->format;
    uint64_t wanted;
    if (format->last)
        BW_TRY(bw_archive_begin(archive, format->last, &wanted));
    BW_TRY(end_entry(archive));
    BW_TRY(put_text(archive)); /* the head, if there was no entry */
    BW_TRY(put_zeros(archive, format->last_zeros));
    return put_zeros(archive,
                     (format->end_unit - archive->written % format->end_unit) % format->end_unit);
}
