/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What an image may be instead of a btrfs file system, what people call it, and what they can do
 * about it. graph/identify.h finds out which of these it is.
 */
#ifndef BW_ONDISK_FOREIGN_H
#define BW_ONDISK_FOREIGN_H

#include <stddef.h>
#include <stdint.h>

/** The programs that can serve an image of a foreign format as what is in it. */
enum bw_helper_program { BW_HELPER_NONE, BW_HELPER_QEMU, BW_HELPER_NBDKIT };

/** A format. */
struct bw_foreign {
    const char *name;   /**< "a qcow2 image" */
    const char *advice; /**< "convert it with ..."; NULL: there is nothing to be done */
    enum bw_helper_program helper;
    const char *driver; /**< how the helper calls it: a format of QEMU, or a filter of nbdkit */
};

/** The format of an image that begins with these bytes, of those that libblkid cannot tell; NULL:
 * none of them. */
const struct bw_foreign *bw_foreign_by_magic(const uint8_t *bytes, size_t length);

/** What to say of a type of libblkid ("crypto_LUKS"); NULL if the type says it all. */
const struct bw_foreign *bw_foreign_by_type(const char *type);

#endif
