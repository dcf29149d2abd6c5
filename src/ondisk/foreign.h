/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Formats of images that are not btrfs file systems: their names, and advice for users.
 * graph/identify.h recognizes them.
 */
#ifndef BW_ONDISK_FOREIGN_H
#define BW_ONDISK_FOREIGN_H

#include <stddef.h>
#include <stdint.h>

/** The first bytes of a send stream, with the NUL. */
#define BW_STREAM_MAGIC "btrfs-stream"

/** The programs that can serve the contents of an image of a foreign format. */
enum bw_helper_program { BW_HELPER_NONE, BW_HELPER_QEMU, BW_HELPER_NBDKIT };

/** A format. */
struct bw_foreign {
    const char *name;   /**< "a qcow2 image" */
    const char *advice; /**< "convert it with ..."; NULL: no advice */
    enum bw_helper_program helper;
    const char *driver; /**< how the helper calls it: a format of QEMU, or a filter of nbdkit */
};

/** The format of an image that begins with these bytes, of those that libblkid cannot tell; NULL:
 * none of them. */
const struct bw_foreign *bw_foreign_by_magic(const uint8_t *bytes, size_t length);

/** The advice for a type of libblkid ("crypto_LUKS"); NULL if there is no more to say than the
 * type. */
const struct bw_foreign *bw_foreign_by_type(const char *type);

#endif
