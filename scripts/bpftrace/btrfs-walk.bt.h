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
    /** number of the layer call it happened in, as fopinfo.call; 0: in none */
    unsigned long long call;
    /** 0, or a negative error number (-EIO, ...) */
    long long error;
    /** how long it took, in nanoseconds */
    unsigned long long ns;
    /** the file */
    const char *device;
    /** size of the file */
    unsigned long long size;
    /** position among the images given, counted from 0 */
    unsigned long long index;
};

/** a copy of a superblock. */
struct bw_superinfo {
    /** number of the layer call it happened in, as fopinfo.call; 0: in none */
    unsigned long long call;
    /** 0, or a negative error number (-EIO, ...) */
    long long error;
    /** how long it took, in nanoseconds */
    unsigned long long ns;
    /** offset on the device */
    unsigned long long offset;
    /** number of the copy: 0, 1 or 2 */
    unsigned long long copy;
    /** index of the image, as imageinfo.index */
    unsigned long long index;
    /** file of the image */
    const char *device;
    /** transaction that wrote it */
    unsigned long long generation;
    /** number of the device */
    unsigned long long devid;
    /** id of the file system */
    struct bw_bytes fsid;
    /** label of the file system */
    const char *label;
    /** logical address of the root tree */
    unsigned long long tree_root;
    /** logical address of the chunk tree */
    unsigned long long chunk_root;
    /** logical address of the log tree; 0: none */
    unsigned long long log_root;
    /** size of the file system */
    unsigned long long size;
    /** bytes in use */
    unsigned long long used;
    /** number of devices */
    unsigned long long device_count;
    /** size of a tree block in bytes */
    unsigned long long nodesize;
    /** size of a sector in bytes */
    unsigned long long sectorsize;
    /** checksum algorithm */
    const char *checksum;
    /** feature flags that a reader must support */
    unsigned long long incompat_flags;
    /** feature flags that a writer must support */
    unsigned long long compat_ro_flags;
};

/** a chunk: a range of logical addresses and its place on the devices. */
struct bw_chunkinfo {
    /** number of the layer call it happened in, as fopinfo.call; 0: in none */
    unsigned long long call;
    /** 0, or a negative error number (-EIO, ...) */
    long long error;
    /** how long it took, in nanoseconds */
    unsigned long long ns;
    /** first logical address */
    unsigned long long logical;
    /** length in bytes */
    unsigned long long length;
    /** BTRFS_BLOCK_GROUP_* flags */
    unsigned long long flags;
    /** RAID profile */
    const char *profile;
    /** number of stripes */
    unsigned long long stripe_count;
};

/** the mapping of a logical address to a device. */
struct bw_mapinfo {
    /** number of the layer call it happened in, as fopinfo.call; 0: in none */
    unsigned long long call;
    /** 0, or a negative error number (-EIO, ...) */
    long long error;
    /** how long it took, in nanoseconds */
    unsigned long long ns;
    /** logical address */
    unsigned long long logical;
    /** offset on the device */
    unsigned long long offset;
    /** number of the device */
    unsigned long long devid;
    /** bytes that are contiguous there */
    unsigned long long length;
    /** mirror that was requested; 0: any */
    unsigned long long mirror;
    /** number of mirrors, including those computed from parity */
    unsigned long long mirrors;
    /** 1 if the bytes are computed from other stripes */
    unsigned long long rebuilt;
    /** 1 if the device was not given */
    unsigned long long missing;
};

/** a read from a file or device. */
struct bw_ioinfo {
    /** number of the layer call it happened in, as fopinfo.call; 0: in none */
    unsigned long long call;
    /** 0, or a negative error number (-EIO, ...) */
    long long error;
    /** how long it took, in nanoseconds */
    unsigned long long ns;
    /** offset on the device */
    unsigned long long offset;
    /** bytes requested */
    unsigned long long bytes;
    /** number of requests it answers */
    unsigned long long requests;
    /** the file */
    const char *device;
};

/** a call of a layer. */
struct bw_fopinfo {
    /** number of the layer call it happened in, as fopinfo.call; 0: in none */
    unsigned long long call;
    /** 0, or a negative error number (-EIO, ...) */
    long long error;
    /** how long it took, in nanoseconds */
    unsigned long long ns;
    /** name of the layer */
    const char *layer;
    /** type of the layer */
    const char *layer_type;
    /** read, map or advise */
    const char *operation;
    /** kind of the first request */
    const char *request_kind;
    /** address of the first request, in the address space above the layer */
    unsigned long long address;
    /** number of requests */
    unsigned long long requests;
    /** bytes requested by all of them */
    unsigned long long bytes;
    /** number of requests that failed */
    unsigned long long errors;
    /** layers above it on this path; 0: at the top */
    unsigned long long depth;
    /** number of the call that made this call; 0: none */
    unsigned long long parent_call;
    /** time excluding the layers below */
    unsigned long long own_ns;
};

/** a tree block that is read. */
struct bw_blockinfo {
    /** number of the layer call it happened in, as fopinfo.call; 0: in none */
    unsigned long long call;
    /** 0, or a negative error number (-EIO, ...) */
    long long error;
    /** how long it took, in nanoseconds */
    unsigned long long ns;
    /** logical address */
    unsigned long long logical;
    /** mirror, counted from 1; 0: any */
    unsigned long long mirror;
    /** id of the tree it is read for */
    unsigned long long tree;
    /** level according to its parent; 0: a leaf */
    unsigned long long level;
    /** transaction according to its parent */
    unsigned long long generation;
    /** size of the block */
    unsigned long long bytes;
    /** number of items or pointers in it */
    unsigned long long items;
};

/** a lookup of a tree block in a cache. */
struct bw_cacheinfo {
    /** number of the layer call it happened in, as fopinfo.call; 0: in none */
    unsigned long long call;
    /** 0, or a negative error number (-EIO, ...) */
    long long error;
    /** how long it took, in nanoseconds */
    unsigned long long ns;
    /** logical address */
    unsigned long long logical;
    /** level of the block; 0: a leaf */
    unsigned long long level;
    /** size of the block */
    unsigned long long bytes;
    /** id of the tree it is needed for */
    unsigned long long tree;
};

/** a search for a range of keys in a tree. */
struct bw_keyinfo {
    /** number of the layer call it happened in, as fopinfo.call; 0: in none */
    unsigned long long call;
    /** 0, or a negative error number (-EIO, ...) */
    long long error;
    /** how long it took, in nanoseconds */
    unsigned long long ns;
    /** id of the tree */
    unsigned long long tree;
    /** objectid of the first key */
    unsigned long long key_objectid;
    /** type of the first key */
    unsigned long long key_type;
    /** offset of the first key */
    unsigned long long key_offset;
    /** objectid of the last key */
    unsigned long long last_key_objectid;
    /** type of the last key */
    unsigned long long last_key_type;
    /** offset of the last key */
    unsigned long long last_key_offset;
    /** name of the type of the first key */
    const char *key_type_name;
};

/** an entry of a directory. */
struct bw_direntinfo {
    /** number of the layer call it happened in, as fopinfo.call; 0: in none */
    unsigned long long call;
    /** 0, or a negative error number (-EIO, ...) */
    long long error;
    /** how long it took, in nanoseconds */
    unsigned long long ns;
    /** inode of the directory */
    unsigned long long parent_inode;
    /** inode of the entry; 0: it is a subvolume, or not known */
    unsigned long long inode;
    /** id of the subvolume the directory is in */
    unsigned long long subvolume;
    /** file, directory, subvolume, ... */
    const char *type;
    /** name of the entry */
    struct bw_bytes name;
    /** id of the subvolume that the entry is; 0: it is none */
    unsigned long long child_subvolume;
};

/** a path that is listed. */
struct bw_pathinfo {
    /** number of the layer call it happened in, as fopinfo.call; 0: in none */
    unsigned long long call;
    /** 0, or a negative error number (-EIO, ...) */
    long long error;
    /** how long it took, in nanoseconds */
    unsigned long long ns;
    /** inode of the file; 0: not known */
    unsigned long long inode;
    /** id of the subvolume */
    unsigned long long subvolume;
    /** absolute path */
    struct bw_bytes path;
};

/** an extent that is decompressed. */
struct bw_codecinfo {
    /** number of the layer call it happened in, as fopinfo.call; 0: in none */
    unsigned long long call;
    /** 0, or a negative error number (-EIO, ...) */
    long long error;
    /** how long it took, in nanoseconds */
    unsigned long long ns;
    /** bytes as stored */
    unsigned long long bytes_in;
    /** bytes after decompression */
    unsigned long long bytes_out;
    /** zlib, lzo or zstd */
    const char *compression;
    /** inode of the file they belong to */
    unsigned long long inode;
    /** id of the subvolume it is in */
    unsigned long long subvolume;
};

/** a message: damage, a warning, a note, or a fatal error. */
struct bw_errinfo {
    /** number of the layer call it happened in, as fopinfo.call; 0: in none */
    unsigned long long call;
    /** 0, or a negative error number (-EIO, ...) */
    long long error;
    /** how long it took, in nanoseconds */
    unsigned long long ns;
    /** address at which the error occurred; 0: none */
    unsigned long long address;
    /** enum bw_error_code */
    unsigned long long error_code;
    /** note, warning, damage or fatal */
    const char *severity;
    /** type of the layer in which the error occurred */
    const char *layer_type;
    /** name of that layer */
    const char *layer;
    /** the message */
    const char *message;
};
