/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of probes as structures. Consumers get them in struct bw_probe_event, and arg0 of a
 * USDT site points to one. A member is zero if the probe does not fill it, or if it is lazy and no
 * consumer has selected it. docs/library.md describes how records may change.
 *
 * Made by scripts/make-docs. Change src/record/records.def.
 */
#ifndef BTRFS_WALK_PROBE_RECORDS_H
#define BTRFS_WALK_PROBE_RECORDS_H

#include "btrfs-walk/record.h"

/* clang-format off */

#ifdef __cplusplus
extern "C" {
#endif

/** Version 2, Evolving/Evolving/Common: an image file or block device. */
struct bw_imageinfo {
    uint64_t call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    int64_t error; /**< 0, or a negative error number (-EIO, ...) */
    uint64_t ns; /**< how long it took, in nanoseconds */
    const char *device; /**< the file */
    uint64_t size; /**< size of the file */
    uint64_t index; /**< position among the images given, counted from 0 */
};

/** Version 2, Evolving/Evolving/Common: a copy of a superblock. */
struct bw_superinfo {
    uint64_t call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    int64_t error; /**< 0, or a negative error number (-EIO, ...) */
    uint64_t ns; /**< how long it took, in nanoseconds */
    uint64_t offset; /**< offset on the device */
    uint64_t copy; /**< number of the copy: 0, 1 or 2 */
    uint64_t index; /**< index of the image, as imageinfo.index */
    const char *device; /**< file of the image */
    uint64_t generation; /**< transaction that wrote it */
    uint64_t devid; /**< number of the device */
    struct bw_bytes fsid; /**< id of the file system */
    const char *label; /**< label of the file system */
    uint64_t tree_root; /**< logical address of the root tree */
    uint64_t chunk_root; /**< logical address of the chunk tree */
    uint64_t log_root; /**< logical address of the log tree; 0: none */
    uint64_t size; /**< size of the file system */
    uint64_t used; /**< bytes in use */
    uint64_t device_count; /**< number of devices */
    uint64_t nodesize; /**< size of a tree block in bytes */
    uint64_t sectorsize; /**< size of a sector in bytes */
    const char *checksum; /**< checksum algorithm */
    uint64_t incompat_flags; /**< feature flags that a reader must support */
    uint64_t compat_ro_flags; /**< feature flags that a writer must support */
};

/** Version 2, Evolving/Evolving/Common: a chunk: a range of logical addresses and its place on
 *  the devices. */
struct bw_chunkinfo {
    uint64_t call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    int64_t error; /**< 0, or a negative error number (-EIO, ...) */
    uint64_t ns; /**< how long it took, in nanoseconds */
    uint64_t logical; /**< first logical address */
    uint64_t length; /**< length in bytes */
    uint64_t flags; /**< BTRFS_BLOCK_GROUP_* flags */
    const char *profile; /**< RAID profile */
    uint64_t stripe_count; /**< number of stripes */
};

/** Version 2, Evolving/Evolving/Common: the mapping of a logical address to a device. */
struct bw_mapinfo {
    uint64_t call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    int64_t error; /**< 0, or a negative error number (-EIO, ...) */
    uint64_t ns; /**< how long it took, in nanoseconds */
    uint64_t logical; /**< logical address */
    uint64_t offset; /**< offset on the device */
    uint64_t devid; /**< number of the device */
    uint64_t length; /**< bytes that are contiguous there */
    uint64_t mirror; /**< copy that was requested; 0: any */
    uint64_t mirrors; /**< number of copies, including those computed from parity */
    uint64_t rebuilt; /**< 1 if the bytes are computed from other stripes */
    uint64_t missing; /**< 1 if the device was not given */
};

/** Version 2, Evolving/Evolving/Common: a read from a file or device. */
struct bw_ioinfo {
    uint64_t call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    int64_t error; /**< 0, or a negative error number (-EIO, ...) */
    uint64_t ns; /**< how long it took, in nanoseconds */
    uint64_t offset; /**< offset on the device */
    uint64_t bytes; /**< bytes requested */
    uint64_t requests; /**< number of requests it answers */
    const char *device; /**< the file */
};

/** Version 2, Evolving/Unstable/Common: a call of a layer. */
struct bw_fopinfo {
    uint64_t call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    int64_t error; /**< 0, or a negative error number (-EIO, ...) */
    uint64_t ns; /**< how long it took, in nanoseconds */
    const char *layer; /**< name of the layer */
    const char *layer_type; /**< type of the layer */
    const char *operation; /**< read, map or advise */
    const char *request_kind; /**< kind of the first request */
    uint64_t address; /**< address of the first request, in the address space above the layer */
    uint64_t requests; /**< number of requests */
    uint64_t bytes; /**< bytes requested by all of them */
    uint64_t errors; /**< number of requests that failed */
    uint64_t depth; /**< layers above it on this path; 0: at the top */
    uint64_t parent_call; /**< number of the call that made this call; 0: none */
    uint64_t own_ns; /**< time excluding the layers below */
};

/** Version 2, Evolving/Evolving/Common: a tree block that is read. */
struct bw_blockinfo {
    uint64_t call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    int64_t error; /**< 0, or a negative error number (-EIO, ...) */
    uint64_t ns; /**< how long it took, in nanoseconds */
    uint64_t logical; /**< logical address */
    uint64_t mirror; /**< copy, counted from 1; 0: any */
    uint64_t tree; /**< id of the tree it is read for */
    uint64_t level; /**< level according to its parent; 0: a leaf */
    uint64_t generation; /**< transaction according to its parent */
    uint64_t bytes; /**< size of the block */
    uint64_t items; /**< number of items or pointers in it */
};

/** Version 1, Evolving/Evolving/Common: a lookup of a tree block in a cache. */
struct bw_cacheinfo {
    uint64_t call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    int64_t error; /**< 0, or a negative error number (-EIO, ...) */
    uint64_t ns; /**< how long it took, in nanoseconds */
    uint64_t logical; /**< logical address */
    uint64_t level; /**< level of the block; 0: a leaf */
    uint64_t bytes; /**< size of the block */
    uint64_t tree; /**< id of the tree it is needed for */
};

/** Version 2, Evolving/Evolving/Common: a search for a range of keys in a tree. */
struct bw_keyinfo {
    uint64_t call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    int64_t error; /**< 0, or a negative error number (-EIO, ...) */
    uint64_t ns; /**< how long it took, in nanoseconds */
    uint64_t tree; /**< id of the tree */
    uint64_t key_objectid; /**< objectid of the first key */
    uint64_t key_type; /**< type of the first key */
    uint64_t key_offset; /**< offset of the first key */
    uint64_t last_key_objectid; /**< objectid of the last key */
    uint64_t last_key_type; /**< type of the last key */
    uint64_t last_key_offset; /**< offset of the last key */
    const char *key_type_name; /**< name of the type of the first key */
};

/** Version 2, Evolving/Evolving/Common: an entry of a directory. */
struct bw_direntinfo {
    uint64_t call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    int64_t error; /**< 0, or a negative error number (-EIO, ...) */
    uint64_t ns; /**< how long it took, in nanoseconds */
    uint64_t parent_inode; /**< inode of the directory */
    uint64_t inode; /**< inode of the entry; 0: it is a subvolume, or not known */
    uint64_t subvolume; /**< id of the subvolume the directory is in */
    const char *type; /**< file, directory, subvolume, ... */
    struct bw_bytes name; /**< name of the entry */
    uint64_t child_subvolume; /**< id of the subvolume that the entry is; 0: it is none */
};

/** Version 2, Evolving/Evolving/Common: a path that is listed. */
struct bw_pathinfo {
    uint64_t call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    int64_t error; /**< 0, or a negative error number (-EIO, ...) */
    uint64_t ns; /**< how long it took, in nanoseconds */
    uint64_t inode; /**< inode of the file; 0: not known */
    uint64_t subvolume; /**< id of the subvolume */
    struct bw_bytes path; /**< absolute path */
};

/** Version 2, Evolving/Evolving/Common: an extent that is decompressed. */
struct bw_codecinfo {
    uint64_t call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    int64_t error; /**< 0, or a negative error number (-EIO, ...) */
    uint64_t ns; /**< how long it took, in nanoseconds */
    uint64_t bytes_in; /**< bytes as stored */
    uint64_t bytes_out; /**< bytes after decompression */
    const char *compression; /**< zlib, lzo or zstd */
    uint64_t inode; /**< inode of the file they belong to */
    uint64_t subvolume; /**< id of the subvolume it is in */
};

/** Version 2, Evolving/Evolving/Common: a message: damage, a warning, a note, or a fatal error. */
struct bw_errinfo {
    uint64_t call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    int64_t error; /**< 0, or a negative error number (-EIO, ...) */
    uint64_t ns; /**< how long it took, in nanoseconds */
    uint64_t address; /**< address at which the error occurred; 0: none */
    uint64_t error_code; /**< enum bw_error_code */
    const char *severity; /**< note, warning, damage or fatal */
    const char *layer_type; /**< type of the layer in which the error occurred */
    const char *layer; /**< name of that layer */
    const char *message; /**< the message */
};

#ifdef __cplusplus
}
#endif
#endif
