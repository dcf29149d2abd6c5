/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Identifies images that are not btrfs file systems: by the table of ondisk/foreign.c, and by
 * libblkid for file systems, encryption, RAID and partition tables. libblkid reads from a file
 * descriptor, but the bytes come from a layer. Therefore, a sparse file in memory, as long as the
 * image, is filled with the beginning and the end of the image.
 */
#include "graph/identify.h"

#include <blkid/blkid.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ondisk/foreign.h"

enum { HEAD = 4 << 20, TAIL = 1 << 20 }; /* bytes of the beginning, and of the end */

/* The bytes to identify. */
struct sample {
    uint64_t length;
    size_t head, tail; /* bytes at the beginning and at the end, which do not overlap */
    uint8_t *bytes;    /* the head, then the tail */
};

static bool read_area(const struct bw_frame *frame, struct bw_xlator *layer, uint64_t offset,
                      size_t length, uint8_t *bytes)
{
    struct bw_request request = {
        .kind = BW_REQUEST_RAW, .length = (uint32_t)length, .address = offset, .buffer = bytes};
    if (length == 0)
        return true;
    bw_wind(frame, layer, &request, 1);
    BW_AUTO_ERROR struct bw_error *error = request.error;
    return !error;
}

/* Reads the sample. If the end cannot be read, it counts as zeros. */
static bool read_sample(const struct bw_frame *frame, struct bw_xlator *layer, uint64_t offset,
                        struct sample *sample)
{
    sample->head = sample->length < HEAD ? (size_t)sample->length : HEAD;
    uint64_t rest = sample->length - sample->head;
    sample->tail = rest < TAIL ? (size_t)rest : TAIL;
    sample->bytes = calloc(1, sample->head + sample->tail + 1);
    if (!sample->bytes || !read_area(frame, layer, offset, sample->head, sample->bytes))
        return false;
    if (!read_area(frame, layer, offset + sample->length - sample->tail, sample->tail,
                   sample->bytes + sample->head))
        memset(sample->bytes + sample->head, 0, sample->tail);
    return true;
}

static bool is_zero(const struct sample *sample)
{
    size_t count = sample->head + sample->tail;
    return sample->bytes[0] == 0 &&
           (count == 1 || memcmp(sample->bytes, sample->bytes + 1, count - 1) == 0);
}

/* Makes a file of the image's length with the sample; -1 if that is not possible. */
static int make_file(const struct sample *sample)
{
    int file = memfd_create("btrfs-walk", MFD_CLOEXEC);
    if (file < 0)
        return -1;
    off_t tail = (off_t)(sample->length - sample->tail);
    if (ftruncate(file, (off_t)sample->length) == 0 &&
        pwrite(file, sample->bytes, sample->head, 0) == (ssize_t)sample->head &&
        pwrite(file, sample->bytes + sample->head, sample->tail, tail) == (ssize_t)sample->tail)
        return file;
    close(file);
    return -1;
}

static void append_foreign(const struct bw_foreign *foreign, struct bw_buffer *text)
{
    bw_buffer_format(text, "%s", foreign->name);
    if (foreign->advice)
        bw_buffer_format(text, ": %s", foreign->advice);
}

/* A value that libblkid has found, or NULL. */
static const char *value_of(blkid_probe probe, const char *name)
{
    const char *value;
    return blkid_probe_lookup_value(probe, name, &value, NULL) == 0 ? value : NULL;
}

static bool append_result(blkid_probe probe, struct bw_buffer *text)
{
    const char *type = value_of(probe, "TYPE"), *label = value_of(probe, "LABEL");
    const char *table = value_of(probe, "PTTYPE");
    if (!type && !table)
        return false;
    const struct bw_foreign *foreign = bw_foreign_by_type(type ? type : table);
    if (foreign)
        append_foreign(foreign, text);
    else if (type && label)
        bw_buffer_format(text, "%s, label %s", type, label);
    else if (type)
        bw_buffer_format(text, "%s", type);
    else
        bw_buffer_format(text, "a disk with a partition table of type %s", table);
    return true;
}

/* Returns the first result if there are several. */
static bool probe_file(blkid_probe probe, int file, struct bw_buffer *text)
{
    char btrfs[] = "btrfs";
    char *excluded[] = {btrfs, NULL};
    return blkid_probe_set_device(probe, file, 0, 0) == 0 &&
           blkid_probe_enable_superblocks(probe, 1) == 0 &&
           blkid_probe_enable_partitions(probe, 1) == 0 &&
           blkid_probe_filter_superblocks_type(probe, BLKID_FLTR_NOTIN, excluded) == 0 &&
           blkid_do_probe(probe) == 0 && append_result(probe, text);
}

static bool identify_by_libblkid(const struct sample *sample, struct bw_buffer *text)
{
    int file = make_file(sample);
    blkid_probe probe = file < 0 ? NULL : blkid_new_probe();
    bool found = probe && probe_file(probe, file, text);
    blkid_free_probe(probe);
    if (file >= 0)
        close(file);
    return found;
}

static bool append_by_magic(const struct sample *sample, struct bw_buffer *text)
{
    const struct bw_foreign *foreign = bw_foreign_by_magic(sample->bytes, sample->head);
    if (foreign)
        append_foreign(foreign, text);
    return foreign;
}

static enum bw_identity append_zeros(const struct sample *sample, struct bw_buffer *text)
{
    if (!is_zero(sample))
        return BW_UNIDENTIFIED;
    bool all = sample->head + sample->tail == sample->length;
    bw_buffer_format(text, all ? "all zeros" : "empty: it begins and ends with zeros");
    return all ? BW_FOREIGN : BW_EMPTY;
}

enum bw_identity bw_identify(const struct bw_frame *frame, struct bw_xlator *layer, uint64_t offset,
                             uint64_t length, struct bw_buffer *text)
{
    struct sample sample = {.length = length};
    if (length == 0) {
        bw_buffer_format(text, "an empty file");
        return BW_FOREIGN;
    }
    enum bw_identity identity = BW_UNIDENTIFIED;
    if (read_sample(frame, layer, offset, &sample)) {
        identity = append_zeros(&sample, text);
        if (!identity && (append_by_magic(&sample, text) || identify_by_libblkid(&sample, text)))
            identity = BW_FOREIGN;
    }
    free(sample.bytes);
    return identity;
}
