/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records as structures: what a consumer of a probe gets (struct bw_probe_event), and what arg0 of a
 * USDT site points to. Members without a translation for a probe, and lazy ones that nobody selects, are
 * zero. Records only grow at their end; any other change raises their version.
 *
 * Made by scripts/make-probe-files. Change src/record/records.def.
 */
#ifndef BTRFS_WALK_RECORDS_H
#define BTRFS_WALK_RECORDS_H

#include "btrfs-walk/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Version 1, Evolving/Evolving/Common: an image file or block device. */
struct bw_imageinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    uint64_t call;
    /** 0, or the negative number of an error (-EIO, ...) */
    int64_t error;
    /** how long it took */
    uint64_t ns;
    /** the file */
    const char *path;
    /** its size */
    uint64_t size;
    /** its place among those given, from 0 on */
    uint64_t index;
};

/** Version 1, Evolving/Evolving/Common: a copy of a superblock. */
struct bw_superinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    uint64_t call;
    /** 0, or the negative number of an error (-EIO, ...) */
    int64_t error;
    /** how long it took */
    uint64_t ns;
    /** where it lies on its device */
    uint64_t offset;
    /** its number: 0, 1 or 2 */
    uint64_t copy;
    /** the image, as imageinfo.index */
    uint64_t index;
    /** the image's file */
    const char *path;
    /** the transaction that wrote it */
    uint64_t generation;
    /** number of the device */
    uint64_t devid;
    /** id of the file system */
    struct bw_bytes fsid;
    /** label of the file system */
    const char *label;
    /** logical address of the root tree */
    uint64_t root;
    /** logical address of the chunk tree */
    uint64_t chunk_root;
    /** logical address of the log tree, 0 if there is none */
    uint64_t log_root;
    /** size of the file system */
    uint64_t total_bytes;
    /** how much of it is used */
    uint64_t bytes_used;
    /** number of devices */
    uint64_t devices;
    /** bytes of a tree block */
    uint64_t nodesize;
    /** bytes of a sector */
    uint64_t sectorsize;
    /** algorithm of the checksums */
    const char *checksum;
    /** features that one must know to read it */
    uint64_t incompat;
    /** features that one must know to write it */
    uint64_t compat_ro;
};

/** Version 1, Evolving/Evolving/Common: a chunk: a run of logical addresses and where it lies. */
struct bw_chunkinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    uint64_t call;
    /** 0, or the negative number of an error (-EIO, ...) */
    int64_t error;
    /** how long it took */
    uint64_t ns;
    /** first logical address */
    uint64_t logical;
    /** its length */
    uint64_t length;
    /** BTRFS_BLOCK_GROUP_* flags */
    uint64_t type;
    /** RAID profile */
    const char *profile;
    /** number of stripes */
    uint64_t stripes;
};

/** Version 1, Evolving/Evolving/Common: a logical address on its way to a device. */
struct bw_mapinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    uint64_t call;
    /** 0, or the negative number of an error (-EIO, ...) */
    int64_t error;
    /** how long it took */
    uint64_t ns;
    /** logical address */
    uint64_t logical;
    /** where that is on the device */
    uint64_t offset;
    /** number of the device */
    uint64_t devid;
    /** how many bytes lie there in one piece */
    uint64_t length;
    /** copy that was asked for; 0: any */
    uint64_t copy;
    /** how many copies there are, those computed from parity included */
    uint64_t copies;
    /** 1 if the bytes are computed from other stripes */
    uint64_t rebuilt;
    /** 1 if the device was not given */
    uint64_t missing;
};

/** Version 1, Evolving/Evolving/Common: a read from a file or device. */
struct bw_ioinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    uint64_t call;
    /** 0, or the negative number of an error (-EIO, ...) */
    int64_t error;
    /** how long it took */
    uint64_t ns;
    /** where it begins on the device */
    uint64_t offset;
    /** how many bytes were asked for */
    uint64_t bytes;
    /** how many requests it answers */
    uint64_t requests;
    /** the file */
    const char *path;
};

/** Version 1, Evolving/Unstable/Common: a call of a layer. */
struct bw_fopinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    uint64_t call;
    /** 0, or the negative number of an error (-EIO, ...) */
    int64_t error;
    /** how long it took */
    uint64_t ns;
    /** name of the layer */
    const char *xlator;
    /** its type */
    const char *type;
    /** read, map or advise */
    const char *operation;
    /** kind of the first request */
    const char *kind;
    /** address of the first request, as the layer has it above */
    uint64_t address;
    /** number of requests */
    uint64_t requests;
    /** bytes asked for by all of them */
    uint64_t bytes;
    /** how many of them failed */
    uint64_t errors;
    /** layers above it on this way; 0 at the top */
    uint64_t depth;
    /** number of the call that made this one; 0: none */
    uint64_t parent;
    /** time without that of the layers below */
    uint64_t own_ns;
};

/** Version 1, Evolving/Evolving/Common: a tree block that is read. */
struct bw_blockinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    uint64_t call;
    /** 0, or the negative number of an error (-EIO, ...) */
    int64_t error;
    /** how long it took */
    uint64_t ns;
    /** logical address */
    uint64_t logical;
    /** copy, from 1 on; 0: any */
    uint64_t copy;
    /** id of the tree it is read for */
    uint64_t tree;
    /** level that its parent promises; 0 is a leaf */
    uint64_t level;
    /** transaction that its parent promises */
    uint64_t generation;
    /** its size */
    uint64_t bytes;
    /** items or pointers in it */
    uint64_t items;
};

/** Version 1, Evolving/Evolving/Common: a look for a tree block in a cache. */
struct bw_cacheinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    uint64_t call;
    /** 0, or the negative number of an error (-EIO, ...) */
    int64_t error;
    /** how long it took */
    uint64_t ns;
    /** logical address */
    uint64_t logical;
    /** level of the block; 0 is a leaf */
    uint64_t level;
    /** its size */
    uint64_t bytes;
    /** id of the tree it is looked for */
    uint64_t tree;
};

/** Version 1, Evolving/Evolving/Common: a search for a range of keys in a tree. */
struct bw_keyinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    uint64_t call;
    /** 0, or the negative number of an error (-EIO, ...) */
    int64_t error;
    /** how long it took */
    uint64_t ns;
    /** id of the tree */
    uint64_t tree;
    /** first key that is looked for: objectid */
    uint64_t objectid;
    /** type */
    uint64_t type;
    /** offset */
    uint64_t offset;
    /** last key: objectid */
    uint64_t last_objectid;
    /** type */
    uint64_t last_type;
    /** offset */
    uint64_t last_offset;
    /** name of the first key's type */
    const char *type_name;
};

/** Version 1, Evolving/Evolving/Common: an entry of a directory. */
struct bw_direntinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    uint64_t call;
    /** 0, or the negative number of an error (-EIO, ...) */
    int64_t error;
    /** how long it took */
    uint64_t ns;
    /** inode of the directory */
    uint64_t parent;
    /** inode of the entry, or id of the subvolume; 0 if it was remembered without one */
    uint64_t child;
    /** id of the subvolume the directory is in */
    uint64_t tree;
    /** file, directory, subvolume, ... */
    const char *type;
    /** name of the entry */
    struct bw_bytes name;
};

/** Version 1, Evolving/Evolving/Common: a path that is listed. */
struct bw_pathinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    uint64_t call;
    /** 0, or the negative number of an error (-EIO, ...) */
    int64_t error;
    /** how long it took */
    uint64_t ns;
    /** inode of the file; 0 if its entry was remembered without one */
    uint64_t inode;
    /** id of the subvolume */
    uint64_t tree;
    /** the path, absolute */
    struct bw_bytes path;
};

/** Version 1, Evolving/Evolving/Common: an extent that is decompressed. */
struct bw_codecinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    uint64_t call;
    /** 0, or the negative number of an error (-EIO, ...) */
    int64_t error;
    /** how long it took */
    uint64_t ns;
    /** bytes as stored */
    uint64_t bytes_in;
    /** bytes they stand for */
    uint64_t bytes_out;
    /** zlib, lzo or zstd */
    const char *algorithm;
    /** inode of the file they are read for */
    uint64_t inode;
    /** id of the subvolume it is in */
    uint64_t tree;
};

/** Version 1, Evolving/Evolving/Common: a message: damage, a warning, a note, or what ended the
    work. */
struct bw_errinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    uint64_t call;
    /** 0, or the negative number of an error (-EIO, ...) */
    int64_t error;
    /** how long it took */
    uint64_t ns;
    /** address the error was born with, 0 if with none */
    uint64_t address;
    /** enum bw_error_code */
    uint64_t code;
    /** note, warning, damage or fatal */
    const char *severity;
    /** type of the layer it was born in */
    const char *layer;
    /** name of that layer */
    const char *volume;
    /** the message */
    const char *message;
};

/** Version 1, Evolving/Evolving/Common: a file of the listing. */
struct bw_fileinfo {
    /** absolute path from the top-level subvolume on */
    struct bw_bytes path;
    /** the path in base64; in JSON only if it is not UTF-8 */
    struct bw_bytes path_bytes;
    /** id of the subvolume it is in */
    uint64_t subvolume;
    /** inode number, unique in its subvolume */
    uint64_t inode;
    /** file, directory, symlink, ... */
    const char *type;
    /** type and permissions, as in struct stat */
    uint64_t mode;
    /** owner */
    uint64_t uid;
    /** group */
    uint64_t gid;
    /** bytes of the file */
    uint64_t size;
    /** bytes that are allocated for it, before compression */
    uint64_t bytes;
    /** hard links */
    uint64_t nlink;
    /** last access */
    int64_t atime;
    /** last change of the contents */
    int64_t mtime;
    /** last change of the inode */
    int64_t ctime;
    /** creation */
    int64_t otime;
    /** transaction that made it */
    uint64_t generation;
    /** transaction that changed it last */
    uint64_t transid;
    /** counts changes, for NFS */
    uint64_t sequence;
    /** BTRFS_INODE_* flags: 1 NODATASUM, 2 NODATACOW, 8 NOCOMPRESS, 800 COMPRESS, ... */
    uint64_t flags;
    /** property btrfs.compression; not there if it is not set, or lost */
    struct bw_bytes compression;
};

/** Version 1, Evolving/Evolving/Common: the record that --json-header puts in front. */
struct bw_headerinfo {
    /** always "header" */
    const char *record;
    /** the program */
    const char *tool;
    /** its version */
    const char *version;
    /** version of all records together */
    uint64_t schema;
    /** the record that follows */
    const char *of;
    /** version of that record */
    uint64_t of_version;
};

#ifdef __cplusplus
}
#endif
#endif
