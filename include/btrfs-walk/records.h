/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records as structures: what a consumer of a probe gets (struct bw_probe_event), and what arg0
 * of a USDT site points to. A member is zero if the probe has no translation for it, or if it is
 * lazy and nobody has selected it. Records only grow at their end; any other change raises their
 * version.
 *
 * Made by scripts/make-docs. Change src/record/records.def.
 */
#ifndef BTRFS_WALK_RECORDS_H
#define BTRFS_WALK_RECORDS_H

#include "btrfs-walk/record.h"

/* clang-format off */

#ifdef __cplusplus
extern "C" {
#endif

/** Version 1, Evolving/Evolving/Common: an image file or block device. */
struct bw_imageinfo {
    uint64_t call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    int64_t error; /**< 0, or the negative number of an error (-EIO, ...) */
    uint64_t ns; /**< how long it took */
    const char *path; /**< the file */
    uint64_t size; /**< its size */
    uint64_t index; /**< its place among those given, from 0 on */
};

/** Version 1, Evolving/Evolving/Common: a copy of a superblock. */
struct bw_superinfo {
    uint64_t call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    int64_t error; /**< 0, or the negative number of an error (-EIO, ...) */
    uint64_t ns; /**< how long it took */
    uint64_t offset; /**< where it lies on its device */
    uint64_t copy; /**< its number: 0, 1 or 2 */
    uint64_t index; /**< the image, as imageinfo.index */
    const char *path; /**< the image's file */
    uint64_t generation; /**< the transaction that wrote it */
    uint64_t devid; /**< number of the device */
    struct bw_bytes fsid; /**< id of the file system */
    const char *label; /**< label of the file system */
    uint64_t root; /**< logical address of the root tree */
    uint64_t chunk_root; /**< logical address of the chunk tree */
    uint64_t log_root; /**< logical address of the log tree, 0 if there is none */
    uint64_t total_bytes; /**< size of the file system */
    uint64_t bytes_used; /**< how much of it is used */
    uint64_t devices; /**< number of devices */
    uint64_t nodesize; /**< bytes of a tree block */
    uint64_t sectorsize; /**< bytes of a sector */
    const char *checksum; /**< algorithm of the checksums */
    uint64_t incompat; /**< features that one must know to read it */
    uint64_t compat_ro; /**< features that one must know to write it */
};

/** Version 1, Evolving/Evolving/Common: a chunk: a run of logical addresses and where it lies. */
struct bw_chunkinfo {
    uint64_t call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    int64_t error; /**< 0, or the negative number of an error (-EIO, ...) */
    uint64_t ns; /**< how long it took */
    uint64_t logical; /**< first logical address */
    uint64_t length; /**< its length */
    uint64_t type; /**< BTRFS_BLOCK_GROUP_* flags */
    const char *profile; /**< RAID profile */
    uint64_t stripes; /**< number of stripes */
};

/** Version 1, Evolving/Evolving/Common: a logical address on its way to a device. */
struct bw_mapinfo {
    uint64_t call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    int64_t error; /**< 0, or the negative number of an error (-EIO, ...) */
    uint64_t ns; /**< how long it took */
    uint64_t logical; /**< logical address */
    uint64_t offset; /**< where that is on the device */
    uint64_t devid; /**< number of the device */
    uint64_t length; /**< how many bytes lie there in one piece */
    uint64_t copy; /**< copy that was asked for; 0: any */
    uint64_t copies; /**< how many copies there are, those computed from parity included */
    uint64_t rebuilt; /**< 1 if the bytes are computed from other stripes */
    uint64_t missing; /**< 1 if the device was not given */
};

/** Version 1, Evolving/Evolving/Common: a read from a file or device. */
struct bw_ioinfo {
    uint64_t call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    int64_t error; /**< 0, or the negative number of an error (-EIO, ...) */
    uint64_t ns; /**< how long it took */
    uint64_t offset; /**< where it begins on the device */
    uint64_t bytes; /**< how many bytes were asked for */
    uint64_t requests; /**< how many requests it answers */
    const char *path; /**< the file */
};

/** Version 1, Evolving/Unstable/Common: a call of a layer. */
struct bw_fopinfo {
    uint64_t call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    int64_t error; /**< 0, or the negative number of an error (-EIO, ...) */
    uint64_t ns; /**< how long it took */
    const char *xlator; /**< name of the layer */
    const char *type; /**< its type */
    const char *operation; /**< read, map or advise */
    const char *kind; /**< kind of the first request */
    uint64_t address; /**< address of the first request, as the layer has it above */
    uint64_t requests; /**< number of requests */
    uint64_t bytes; /**< bytes asked for by all of them */
    uint64_t errors; /**< how many of them failed */
    uint64_t depth; /**< layers above it on this way; 0 at the top */
    uint64_t parent; /**< number of the call that made this one; 0: none */
    uint64_t own_ns; /**< time without that of the layers below */
};

/** Version 1, Evolving/Evolving/Common: a tree block that is read. */
struct bw_blockinfo {
    uint64_t call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    int64_t error; /**< 0, or the negative number of an error (-EIO, ...) */
    uint64_t ns; /**< how long it took */
    uint64_t logical; /**< logical address */
    uint64_t copy; /**< copy, from 1 on; 0: any */
    uint64_t tree; /**< id of the tree it is read for */
    uint64_t level; /**< level that its parent promises; 0 is a leaf */
    uint64_t generation; /**< transaction that its parent promises */
    uint64_t bytes; /**< its size */
    uint64_t items; /**< items or pointers in it */
};

/** Version 1, Evolving/Evolving/Common: a look for a tree block in a cache. */
struct bw_cacheinfo {
    uint64_t call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    int64_t error; /**< 0, or the negative number of an error (-EIO, ...) */
    uint64_t ns; /**< how long it took */
    uint64_t logical; /**< logical address */
    uint64_t level; /**< level of the block; 0 is a leaf */
    uint64_t bytes; /**< its size */
    uint64_t tree; /**< id of the tree it is looked for */
};

/** Version 1, Evolving/Evolving/Common: a search for a range of keys in a tree. */
struct bw_keyinfo {
    uint64_t call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    int64_t error; /**< 0, or the negative number of an error (-EIO, ...) */
    uint64_t ns; /**< how long it took */
    uint64_t tree; /**< id of the tree */
    uint64_t objectid; /**< first key that is looked for: objectid */
    uint64_t type; /**< type */
    uint64_t offset; /**< offset */
    uint64_t last_objectid; /**< last key: objectid */
    uint64_t last_type; /**< type */
    uint64_t last_offset; /**< offset */
    const char *type_name; /**< name of the first key's type */
};

/** Version 1, Evolving/Evolving/Common: an entry of a directory. */
struct bw_direntinfo {
    uint64_t call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    int64_t error; /**< 0, or the negative number of an error (-EIO, ...) */
    uint64_t ns; /**< how long it took */
    uint64_t parent; /**< inode of the directory */
    /** inode of the entry, or id of the subvolume; 0 if it was remembered without one */
    uint64_t child;
    uint64_t tree; /**< id of the subvolume the directory is in */
    const char *type; /**< file, directory, subvolume, ... */
    struct bw_bytes name; /**< name of the entry */
};

/** Version 1, Evolving/Evolving/Common: a path that is listed. */
struct bw_pathinfo {
    uint64_t call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    int64_t error; /**< 0, or the negative number of an error (-EIO, ...) */
    uint64_t ns; /**< how long it took */
    uint64_t inode; /**< inode of the file; 0 if its entry was remembered without one */
    uint64_t tree; /**< id of the subvolume */
    struct bw_bytes path; /**< the path, absolute */
};

/** Version 1, Evolving/Evolving/Common: an extent that is decompressed. */
struct bw_codecinfo {
    uint64_t call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    int64_t error; /**< 0, or the negative number of an error (-EIO, ...) */
    uint64_t ns; /**< how long it took */
    uint64_t bytes_in; /**< bytes as stored */
    uint64_t bytes_out; /**< bytes they stand for */
    const char *algorithm; /**< zlib, lzo or zstd */
    uint64_t inode; /**< inode of the file they are read for */
    uint64_t tree; /**< id of the subvolume it is in */
};

/** Version 1, Evolving/Evolving/Common: a message: damage, a warning, a note, or what ended the
 *  work. */
struct bw_errinfo {
    uint64_t call; /**< number of the call it happened in, as fopinfo.call; 0 outside of any */
    int64_t error; /**< 0, or the negative number of an error (-EIO, ...) */
    uint64_t ns; /**< how long it took */
    uint64_t address; /**< address the error was born with, 0 if with none */
    uint64_t code; /**< enum bw_error_code */
    const char *severity; /**< note, warning, damage or fatal */
    const char *layer; /**< type of the layer it was born in */
    const char *volume; /**< name of that layer */
    const char *message; /**< the message */
};

/** Version 1, Evolving/Evolving/Common: a file of the listing. */
struct bw_fileinfo {
    struct bw_bytes path; /**< absolute path from the top-level subvolume on */
    struct bw_bytes path_bytes; /**< the path in base64; in JSON only if it is not UTF-8 */
    uint64_t subvolume; /**< id of the subvolume it is in */
    uint64_t inode; /**< inode number, unique in its subvolume */
    const char *type; /**< file, directory, symlink, ... */
    uint64_t mode; /**< type and permissions, as in struct stat */
    uint64_t uid; /**< owner */
    uint64_t gid; /**< group */
    uint64_t size; /**< bytes of the file */
    uint64_t bytes; /**< bytes that are allocated for it, before compression */
    uint64_t nlink; /**< hard links */
    int64_t atime; /**< last access */
    int64_t mtime; /**< last change of the contents */
    int64_t ctime; /**< last change of the inode */
    int64_t otime; /**< creation */
    uint64_t generation; /**< transaction that made it */
    uint64_t transid; /**< transaction that changed it last */
    uint64_t sequence; /**< counts changes, for NFS */
    /** BTRFS_INODE_* flags: 1 NODATASUM, 2 NODATACOW, 8 NOCOMPRESS, 800 COMPRESS, ... */
    uint64_t flags;
    /** property btrfs.compression; not there if it is not set, or lost */
    struct bw_bytes compression;
};

/** Version 1, Evolving/Evolving/Common: the record that --json-header puts in front. */
struct bw_headerinfo {
    const char *record; /**< always "header" */
    const char *tool; /**< the program */
    const char *version; /**< its version */
    uint64_t schema; /**< version of all records together */
    const char *of; /**< the record that follows */
    uint64_t of_version; /**< version of that record */
};

#ifdef __cplusplus
}
#endif
#endif
