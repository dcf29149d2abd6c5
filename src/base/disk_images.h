/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Headers of disk images, as they lie on disk: qcow2, which overlays and copies are written as, and
 * the formats whose header names another file. Sources: docs/interop/qcow2.rst and qed_spec.rst of
 * QEMU, and "Virtual Disk Format 5.0" of VMware.
 */
#ifndef BW_BASE_DISK_IMAGES_H
#define BW_BASE_DISK_IMAGES_H

#include <assert.h>
#include <stddef.h>

#include "base/endian.h"

/** Offsets are in the file, and in bytes. */
struct bw_qcow2_header {
    uint8_t magic[4]; /**< "QFI\xfb" */
    bw_be32 version;  /**< 2 or 3 */
    bw_be64 backing;  /**< offset of the name of the backing file; 0: none */
    bw_be32 backing_length;
    bw_be32 cluster_bits;
    bw_be64 size;       /**< of the disk, in bytes */
    bw_be32 encryption; /**< 0: none */
    bw_be32 l1_count;   /**< entries of the first table */
    bw_be64 l1;         /**< offset of that table */
    bw_be64 refcounts;  /**< offset of the refcount table */
    bw_be32 refcount_clusters;
    bw_be32 snapshot_count;
    bw_be64 snapshots;

    /* Since version 3. */
    bw_be64 incompatible, compatible, autoclear; /**< features, as bits */
    bw_be32 refcount_order;                      /**< a counter has 2^refcount_order bits */
    bw_be32 length;                              /**< of the header, without extensions */
    uint8_t compression, padding[7];             /**< 0: zlib, 1: zstd */
};

static_assert(sizeof(struct bw_qcow2_header) == 112, "as on disk");

/** Incompatible features of qcow2. */
enum {
    BW_QCOW2_DIRTY = 1 << 0,         /**< the counters may be wrong */
    BW_QCOW2_EXTERNAL_DATA = 1 << 2, /**< the data are in another file */
    BW_QCOW2_COMPRESSION = 1 << 3,   /**< the header has the type of compression */
};

/** An entry of a table of qcow2: an address and flags. */
#define BW_QCOW2_ADDRESS    UINT64_C(0x00fffffffffffe00)
#define BW_QCOW2_ZEROS      UINT64_C(1)
#define BW_QCOW2_COMPRESSED (UINT64_C(1) << 62)
#define BW_QCOW2_COPIED     (UINT64_C(1) << 63) /**< the cluster has one reference */

struct bw_qed_header {
    uint8_t magic[4];
    bw_le32 cluster_size, table_size, header_size;
    bw_le64 features;
};

enum { BW_QED_BACKING_FILE = 1 << 0 };

/** A sparse extent. The descriptor is a text; its offset is in sectors of 512 bytes, or 0. */
struct bw_vmdk_header {
    uint8_t magic[4];
    bw_le32 version, flags;
    bw_le64 capacity, grain_size, descriptor;
};

static_assert(offsetof(struct bw_qed_header, features) == 16, "as on disk");
static_assert(offsetof(struct bw_vmdk_header, descriptor) == 28, "as on disk");

#endif
