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
    unsigned long long call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    long long error; /**< 0, or the negative number of an error (-EIO, ...) */
    unsigned long long ns; /**< how long it took */
    const char *path; /**< the file */
    unsigned long long size; /**< its size */
    unsigned long long index; /**< its place among those given, from 0 on */
};

/** a copy of a superblock. */
struct bw_superinfo {
    unsigned long long call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    long long error; /**< 0, or the negative number of an error (-EIO, ...) */
    unsigned long long ns; /**< how long it took */
    unsigned long long offset; /**< where it lies on its device */
    unsigned long long copy; /**< its number: 0, 1 or 2 */
    unsigned long long index; /**< the image, as imageinfo.index */
    const char *path; /**< the image's file */
    unsigned long long generation; /**< the transaction that wrote it */
    unsigned long long devid; /**< number of the device */
    struct bw_bytes fsid; /**< id of the file system */
    const char *label; /**< label of the file system */
    unsigned long long root; /**< logical address of the root tree */
    unsigned long long chunk_root; /**< logical address of the chunk tree */
    unsigned long long log_root; /**< logical address of the log tree, 0 if there is none */
    unsigned long long total_bytes; /**< size of the file system */
    unsigned long long bytes_used; /**< how much of it is used */
    unsigned long long devices; /**< number of devices */
    unsigned long long nodesize; /**< bytes of a tree block */
    unsigned long long sectorsize; /**< bytes of a sector */
    const char *checksum; /**< algorithm of the checksums */
    unsigned long long incompat; /**< features that one must know to read it */
    unsigned long long compat_ro; /**< features that one must know to write it */
};

/** a chunk: a run of logical addresses and where it lies. */
struct bw_chunkinfo {
    unsigned long long call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    long long error; /**< 0, or the negative number of an error (-EIO, ...) */
    unsigned long long ns; /**< how long it took */
    unsigned long long logical; /**< first logical address */
    unsigned long long length; /**< its length */
    unsigned long long type; /**< BTRFS_BLOCK_GROUP_* flags */
    const char *profile; /**< RAID profile */
    unsigned long long stripes; /**< number of stripes */
};

/** a logical address on its way to a device. */
struct bw_mapinfo {
    unsigned long long call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    long long error; /**< 0, or the negative number of an error (-EIO, ...) */
    unsigned long long ns; /**< how long it took */
    unsigned long long logical; /**< logical address */
    unsigned long long offset; /**< where that is on the device */
    unsigned long long devid; /**< number of the device */
    unsigned long long length; /**< how many bytes lie there in one piece */
    unsigned long long copy; /**< copy that was asked for; 0: any */
    unsigned long long copies; /**< how many copies there are, those computed from parity included */
    unsigned long long rebuilt; /**< 1 if the bytes are computed from other stripes */
    unsigned long long missing; /**< 1 if the device was not given */
};

/** a read from a file or device. */
struct bw_ioinfo {
    unsigned long long call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    long long error; /**< 0, or the negative number of an error (-EIO, ...) */
    unsigned long long ns; /**< how long it took */
    unsigned long long offset; /**< where it begins on the device */
    unsigned long long bytes; /**< how many bytes were asked for */
    unsigned long long requests; /**< how many requests it answers */
    const char *path; /**< the file */
};

/** a call of a layer. */
struct bw_fopinfo {
    unsigned long long call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    long long error; /**< 0, or the negative number of an error (-EIO, ...) */
    unsigned long long ns; /**< how long it took */
    const char *xlator; /**< name of the layer */
    const char *type; /**< its type */
    const char *operation; /**< read, map or advise */
    const char *kind; /**< kind of the first request */
    unsigned long long address; /**< address of the first request, as the layer has it above */
    unsigned long long requests; /**< number of requests */
    unsigned long long bytes; /**< bytes asked for by all of them */
    unsigned long long errors; /**< how many of them failed */
    unsigned long long depth; /**< layers above it on this way; 0 at the top */
    unsigned long long parent; /**< number of the call that made this one; 0: none */
    unsigned long long own_ns; /**< time without that of the layers below */
};

/** a tree block that is read. */
struct bw_blockinfo {
    unsigned long long call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    long long error; /**< 0, or the negative number of an error (-EIO, ...) */
    unsigned long long ns; /**< how long it took */
    unsigned long long logical; /**< logical address */
    unsigned long long copy; /**< copy, from 1 on; 0: any */
    unsigned long long tree; /**< id of the tree it is read for */
    unsigned long long level; /**< level that its parent promises; 0 is a leaf */
    unsigned long long generation; /**< transaction that its parent promises */
    unsigned long long bytes; /**< its size */
    unsigned long long items; /**< items or pointers in it */
};

/** a look for a tree block in a cache. */
struct bw_cacheinfo {
    unsigned long long call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    long long error; /**< 0, or the negative number of an error (-EIO, ...) */
    unsigned long long ns; /**< how long it took */
    unsigned long long logical; /**< logical address */
    unsigned long long level; /**< level of the block; 0 is a leaf */
    unsigned long long bytes; /**< its size */
    unsigned long long tree; /**< id of the tree it is looked for */
};

/** a search for a range of keys in a tree. */
struct bw_keyinfo {
    unsigned long long call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    long long error; /**< 0, or the negative number of an error (-EIO, ...) */
    unsigned long long ns; /**< how long it took */
    unsigned long long tree; /**< id of the tree */
    unsigned long long objectid; /**< first key that is looked for: objectid */
    unsigned long long type; /**< type */
    unsigned long long offset; /**< offset */
    unsigned long long last_objectid; /**< last key: objectid */
    unsigned long long last_type; /**< type */
    unsigned long long last_offset; /**< offset */
    const char *type_name; /**< name of the first key's type */
};

/** an entry of a directory. */
struct bw_direntinfo {
    unsigned long long call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    long long error; /**< 0, or the negative number of an error (-EIO, ...) */
    unsigned long long ns; /**< how long it took */
    unsigned long long parent; /**< inode of the directory */
    unsigned long long child; /**< inode of the entry, or id of the subvolume; 0 if it was remembered without one */
    unsigned long long tree; /**< id of the subvolume the directory is in */
    const char *type; /**< file, directory, subvolume, ... */
    struct bw_bytes name; /**< name of the entry */
};

/** a path that is listed. */
struct bw_pathinfo {
    unsigned long long call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    long long error; /**< 0, or the negative number of an error (-EIO, ...) */
    unsigned long long ns; /**< how long it took */
    unsigned long long inode; /**< inode of the file; 0 if its entry was remembered without one */
    unsigned long long tree; /**< id of the subvolume */
    struct bw_bytes path; /**< the path, absolute */
};

/** an extent that is decompressed. */
struct bw_codecinfo {
    unsigned long long call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    long long error; /**< 0, or the negative number of an error (-EIO, ...) */
    unsigned long long ns; /**< how long it took */
    unsigned long long bytes_in; /**< bytes as stored */
    unsigned long long bytes_out; /**< bytes they stand for */
    const char *algorithm; /**< zlib, lzo or zstd */
    unsigned long long inode; /**< inode of the file they are read for */
    unsigned long long tree; /**< id of the subvolume it is in */
};

/** a message: damage, a warning, a note, or what ended the work. */
struct bw_errinfo {
    unsigned long long call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    long long error; /**< 0, or the negative number of an error (-EIO, ...) */
    unsigned long long ns; /**< how long it took */
    unsigned long long address; /**< address the error was born with, 0 if with none */
    unsigned long long code; /**< enum bw_error_code */
    const char *severity; /**< note, warning, damage or fatal */
    const char *layer; /**< type of the layer it was born in */
    const char *volume; /**< name of that layer */
    const char *message; /**< the message */
};
