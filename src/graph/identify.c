/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Identifies images that are not btrfs file systems: by the table of ondisk/foreign.c, and by
 * libblkid for file systems, encryption, RAID and partition tables. libblkid reads from a file
 * descriptor, but the bytes come from a layer. Therefore, a sparse file in memory, as long as the
 * image, is filled with the beginning and the end of the image.
 */
#include "graph/identify.h"

#include <blkid/blkid.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/whole_io.h"
#include "base/zeros.h"
#include "ondisk/foreign.h"

enum { HEAD = 4 << 20, TAIL = 1 << 20 }; /* bytes of the beginning, and of the end */

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

/* Asks libblkid about a file of the image's length, with its first bytes and its last ones. */
static bool append_by_libblkid(uint64_t length, const uint8_t *bytes, size_t head, size_t tail,
                               struct bw_buffer *text)
{
    char btrfs[] = "btrfs";
    char *excluded[] = {btrfs, NULL};
    const int file = bw_memory_file(length);
    if (file < 0)
        return false;
    blkid_probe probe = blkid_new_probe();
    bool found = probe && pwrite(file, bytes, head, 0) == (ssize_t)head &&
                 pwrite(file, bytes + head, tail, (off_t)(length - tail)) == (ssize_t)tail &&
                 blkid_probe_set_device(probe, file, 0, 0) == 0 &&
                 blkid_probe_enable_superblocks(probe, 1) == 0 &&
                 blkid_probe_enable_partitions(probe, 1) == 0 &&
                 blkid_probe_filter_superblocks_type(probe, BLKID_FLTR_NOTIN, excluded) == 0 &&
                 blkid_do_probe(probe) == 0; /* the first result, if there are several */
    if (found) {
        const char *type = value_of(probe, "TYPE"), *label = value_of(probe, "LABEL");
        const char *table = value_of(probe, "PTTYPE"), *name = type ? type : table;
        const struct bw_foreign *foreign = name ? bw_foreign_by_type(name) : NULL;
        if (foreign)
            append_foreign(foreign, text);
        else if (type && label)
            bw_buffer_format(text, "%s, label %s", type, label);
        else if (type)
            bw_buffer_format(text, "%s", type);
        else if (table)
            bw_buffer_format(text, "a disk with a partition table of type %s", table);
        found = name;
    }
    blkid_free_probe(probe);
    close(file);
    return found;
}

enum bw_identity bw_identify(struct bw_xlator *layer, uint64_t offset, uint64_t length,
                             struct bw_buffer *text)
{
    if (length == 0) {
        bw_buffer_format(text, "an empty file");
        return BW_FOREIGN;
    }

    /* The beginning, and the rest up to a limit. If the end cannot be read, it counts as zeros. */
    const size_t head = length < HEAD ? (size_t)length : HEAD;
    const size_t tail = length - head < TAIL ? (size_t)(length - head) : TAIL;
    const size_t count = head + tail;
    BW_AUTO_FREE uint8_t *bytes = calloc(1, count);
    if (!bytes || !bw_try_read_raw(NULL, layer, offset, bytes, head))
        return BW_UNIDENTIFIED;
    if (tail && !bw_try_read_raw(NULL, layer, offset + length - tail, bytes + head, tail))
        memset(bytes + head, 0, tail);

    if (bw_is_zeros(bytes, count)) {
        const bool all = count == length;
        bw_buffer_format(text, all ? "all zeros" : "perhaps empty: it begins and ends with zeros");
        return all ? BW_ZEROS : BW_EMPTY;
    }
    const struct bw_foreign *foreign = bw_foreign_by_magic(bytes, head);
    if (foreign)
        append_foreign(foreign, text);
    else if (!append_by_libblkid(length, bytes, head, tail, text))
        return BW_UNIDENTIFIED;
    return BW_FOREIGN;
}
