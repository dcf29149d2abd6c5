/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records of the probes, for scripts of bpftrace: arg0 of each probe points to one.
 *
 *     #include "btrfs-walk.bt.h"
 *     usdt:/usr/local/bin/btrfs-walk:btrfswalk:path__emit
 *     {
 *         $record = (struct bw_pathinfo *)arg0;
 *         printf("%r\n", buf($record->path.data, $record->path.length));
 *     }
 *
 * This is the output of btrfs-walk --probe-list=bpftrace. Change src/record/records.def.
 */

/** Bytes that do not end with NUL. */
struct bw_bytes {
    const char *data;
    unsigned long long length;
};

/** an image file or block device. */
struct bw_imageinfo {
    unsigned long long call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    long long error; /**< 0, or a negative error number (-EIO, ...) */
    unsigned long long ns; /**< how long it took, in nanoseconds */
    const char *path; /**< the file */
    unsigned long long size; /**< size of the file */
    unsigned long long index; /**< position among the images given, counted from 0 */
};

/** a copy of a superblock. */
struct bw_superinfo {
    unsigned long long call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    long long error; /**< 0, or a negative error number (-EIO, ...) */
    unsigned long long ns; /**< how long it took, in nanoseconds */
    unsigned long long offset; /**< offset on the device */
    unsigned long long copy; /**< number of the copy: 0, 1 or 2 */
    unsigned long long index; /**< index of the image, as imageinfo.index */
    const char *path; /**< file of the image */
    unsigned long long generation; /**< transaction that wrote it */
    unsigned long long devid; /**< number of the device */
    struct bw_bytes fsid; /**< id of the file system */
    const char *label; /**< label of the file system */
    unsigned long long root; /**< logical address of the root tree */
    unsigned long long chunk_root; /**< logical address of the chunk tree */
    unsigned long long log_root; /**< logical address of the log tree; 0: there is none */
    unsigned long long total_bytes; /**< size of the file system */
    unsigned long long bytes_used; /**< bytes in use */
    unsigned long long devices; /**< number of devices */
    unsigned long long nodesize; /**< size of a tree block in bytes */
    unsigned long long sectorsize; /**< size of a sector in bytes */
    const char *checksum; /**< checksum algorithm */
    unsigned long long incompat; /**< feature flags that a reader must support */
    unsigned long long compat_ro; /**< feature flags that a writer must support */
};

/** a chunk: a range of logical addresses and its place on the devices. */
struct bw_chunkinfo {
    unsigned long long call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    long long error; /**< 0, or a negative error number (-EIO, ...) */
    unsigned long long ns; /**< how long it took, in nanoseconds */
    unsigned long long logical; /**< first logical address */
    unsigned long long length; /**< length in bytes */
    unsigned long long type; /**< BTRFS_BLOCK_GROUP_* flags */
    const char *profile; /**< RAID profile */
    unsigned long long stripes; /**< number of stripes */
};

/** the mapping of a logical address to a device. */
struct bw_mapinfo {
    unsigned long long call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    long long error; /**< 0, or a negative error number (-EIO, ...) */
    unsigned long long ns; /**< how long it took, in nanoseconds */
    unsigned long long logical; /**< logical address */
    unsigned long long offset; /**< offset on the device */
    unsigned long long devid; /**< number of the device */
    unsigned long long length; /**< bytes that are contiguous there */
    unsigned long long copy; /**< copy that was requested; 0: any */
    unsigned long long copies; /**< number of copies, including those computed from parity */
    unsigned long long rebuilt; /**< 1 if the bytes are computed from other stripes */
    unsigned long long missing; /**< 1 if the device was not given */
};

/** a read from a file or device. */
struct bw_ioinfo {
    unsigned long long call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    long long error; /**< 0, or a negative error number (-EIO, ...) */
    unsigned long long ns; /**< how long it took, in nanoseconds */
    unsigned long long offset; /**< offset on the device */
    unsigned long long bytes; /**< bytes requested */
    unsigned long long requests; /**< number of requests it answers */
    const char *path; /**< the file */
};

/** a call of a layer. */
struct bw_fopinfo {
    unsigned long long call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    long long error; /**< 0, or a negative error number (-EIO, ...) */
    unsigned long long ns; /**< how long it took, in nanoseconds */
    const char *xlator; /**< name of the layer */
    const char *type; /**< type of the layer */
    const char *operation; /**< read, map or advise */
    const char *kind; /**< kind of the first request */
    unsigned long long address; /**< address of the first request, in the address space above the layer */
    unsigned long long requests; /**< number of requests */
    unsigned long long bytes; /**< bytes requested by all of them */
    unsigned long long errors; /**< number of requests that failed */
    unsigned long long depth; /**< layers above it on this path; 0: at the top */
    unsigned long long parent; /**< number of the call that made this call; 0: none */
    unsigned long long own_ns; /**< time excluding the layers below */
};

/** a tree block that is read. */
struct bw_blockinfo {
    unsigned long long call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    long long error; /**< 0, or a negative error number (-EIO, ...) */
    unsigned long long ns; /**< how long it took, in nanoseconds */
    unsigned long long logical; /**< logical address */
    unsigned long long copy; /**< copy, counted from 1; 0: any */
    unsigned long long tree; /**< id of the tree it is read for */
    unsigned long long level; /**< level according to its parent; 0: a leaf */
    unsigned long long generation; /**< transaction according to its parent */
    unsigned long long bytes; /**< size of the block */
    unsigned long long items; /**< number of items or pointers in it */
};

/** a lookup of a tree block in a cache. */
struct bw_cacheinfo {
    unsigned long long call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    long long error; /**< 0, or a negative error number (-EIO, ...) */
    unsigned long long ns; /**< how long it took, in nanoseconds */
    unsigned long long logical; /**< logical address */
    unsigned long long level; /**< level of the block; 0: a leaf */
    unsigned long long bytes; /**< size of the block */
    unsigned long long tree; /**< id of the tree it is needed for */
};

/** a search for a range of keys in a tree. */
struct bw_keyinfo {
    unsigned long long call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    long long error; /**< 0, or a negative error number (-EIO, ...) */
    unsigned long long ns; /**< how long it took, in nanoseconds */
    unsigned long long tree; /**< id of the tree */
    unsigned long long objectid; /**< objectid of the first key */
    unsigned long long type; /**< type of the first key */
    unsigned long long offset; /**< offset of the first key */
    unsigned long long last_objectid; /**< objectid of the last key */
    unsigned long long last_type; /**< type of the last key */
    unsigned long long last_offset; /**< offset of the last key */
    const char *type_name; /**< name of the type of the first key */
};

/** an entry of a directory. */
struct bw_direntinfo {
    unsigned long long call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    long long error; /**< 0, or a negative error number (-EIO, ...) */
    unsigned long long ns; /**< how long it took, in nanoseconds */
    unsigned long long parent; /**< inode of the directory */
    unsigned long long child; /**< inode of the entry, or id of the subvolume; 0: not known */
    unsigned long long tree; /**< id of the subvolume the directory is in */
    const char *type; /**< file, directory, subvolume, ... */
    struct bw_bytes name; /**< name of the entry */
};

/** a path that is listed. */
struct bw_pathinfo {
    unsigned long long call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    long long error; /**< 0, or a negative error number (-EIO, ...) */
    unsigned long long ns; /**< how long it took, in nanoseconds */
    unsigned long long inode; /**< inode of the file; 0: not known */
    unsigned long long tree; /**< id of the subvolume */
    struct bw_bytes path; /**< absolute path */
};

/** an extent that is decompressed. */
struct bw_codecinfo {
    unsigned long long call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    long long error; /**< 0, or a negative error number (-EIO, ...) */
    unsigned long long ns; /**< how long it took, in nanoseconds */
    unsigned long long bytes_in; /**< bytes as stored */
    unsigned long long bytes_out; /**< bytes after decompression */
    const char *algorithm; /**< zlib, lzo or zstd */
    unsigned long long inode; /**< inode of the file they belong to */
    unsigned long long tree; /**< id of the subvolume it is in */
};

/** a message: damage, a warning, a note, or a fatal error. */
struct bw_errinfo {
    unsigned long long call; /**< number of the layer call it happened in, as fopinfo.call; 0: in none */
    long long error; /**< 0, or a negative error number (-EIO, ...) */
    unsigned long long ns; /**< how long it took, in nanoseconds */
    unsigned long long address; /**< address at which the error occurred; 0: none */
    unsigned long long code; /**< enum bw_error_code */
    const char *severity; /**< note, warning, damage or fatal */
    const char *layer; /**< type of the layer in which the error occurred */
    const char *volume; /**< name of that layer */
    const char *message; /**< the message */
};
