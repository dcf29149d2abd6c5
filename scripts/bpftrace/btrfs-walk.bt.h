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
 * Made by scripts/make-probe-files. Change src/record/records.def.
 */

/** Bytes that do not end with NUL. */
struct bw_bytes {
    const char *data;
    unsigned long long length;
};

/** Version 1, Evolving/Evolving/Common: an image file or block device. */
struct bw_imageinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    unsigned long long call;
    /** 0, or the negative number of an error (-EIO, ...) */
    long long error;
    /** how long it took */
    unsigned long long ns;
    /** the file */
    const char *path;
    /** its size */
    unsigned long long size;
    /** its place among those given, from 0 on */
    unsigned long long index;
};

/** Version 1, Evolving/Evolving/Common: a copy of a superblock. */
struct bw_superinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    unsigned long long call;
    /** 0, or the negative number of an error (-EIO, ...) */
    long long error;
    /** how long it took */
    unsigned long long ns;
    /** where it lies on its device */
    unsigned long long offset;
    /** its number: 0, 1 or 2 */
    unsigned long long copy;
    /** the image, as imageinfo.index */
    unsigned long long index;
    /** the image's file */
    const char *path;
    /** the transaction that wrote it */
    unsigned long long generation;
    /** number of the device */
    unsigned long long devid;
    /** id of the file system */
    struct bw_bytes fsid;
    /** label of the file system */
    const char *label;
    /** logical address of the root tree */
    unsigned long long root;
    /** logical address of the chunk tree */
    unsigned long long chunk_root;
    /** logical address of the log tree, 0 if there is none */
    unsigned long long log_root;
    /** size of the file system */
    unsigned long long total_bytes;
    /** how much of it is used */
    unsigned long long bytes_used;
    /** number of devices */
    unsigned long long devices;
    /** bytes of a tree block */
    unsigned long long nodesize;
    /** bytes of a sector */
    unsigned long long sectorsize;
    /** algorithm of the checksums */
    const char *checksum;
    /** features that one must know to read it */
    unsigned long long incompat;
    /** features that one must know to write it */
    unsigned long long compat_ro;
};

/** Version 1, Evolving/Evolving/Common: a chunk: a run of logical addresses and where it lies. */
struct bw_chunkinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    unsigned long long call;
    /** 0, or the negative number of an error (-EIO, ...) */
    long long error;
    /** how long it took */
    unsigned long long ns;
    /** first logical address */
    unsigned long long logical;
    /** its length */
    unsigned long long length;
    /** BTRFS_BLOCK_GROUP_* flags */
    unsigned long long type;
    /** RAID profile */
    const char *profile;
    /** number of stripes */
    unsigned long long stripes;
};

/** Version 1, Evolving/Evolving/Common: a logical address on its way to a device. */
struct bw_mapinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    unsigned long long call;
    /** 0, or the negative number of an error (-EIO, ...) */
    long long error;
    /** how long it took */
    unsigned long long ns;
    /** logical address */
    unsigned long long logical;
    /** where that is on the device */
    unsigned long long offset;
    /** number of the device */
    unsigned long long devid;
    /** how many bytes lie there in one piece */
    unsigned long long length;
    /** copy that was asked for; 0: any */
    unsigned long long copy;
    /** how many copies there are, those computed from parity included */
    unsigned long long copies;
    /** 1 if the bytes are computed from other stripes */
    unsigned long long rebuilt;
    /** 1 if the device was not given */
    unsigned long long missing;
};

/** Version 1, Evolving/Evolving/Common: a read from a file or device. */
struct bw_ioinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    unsigned long long call;
    /** 0, or the negative number of an error (-EIO, ...) */
    long long error;
    /** how long it took */
    unsigned long long ns;
    /** where it begins on the device */
    unsigned long long offset;
    /** how many bytes were asked for */
    unsigned long long bytes;
    /** how many requests it answers */
    unsigned long long requests;
    /** the file */
    const char *path;
};

/** Version 1, Evolving/Unstable/Common: a call of a layer. */
struct bw_fopinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    unsigned long long call;
    /** 0, or the negative number of an error (-EIO, ...) */
    long long error;
    /** how long it took */
    unsigned long long ns;
    /** name of the layer */
    const char *xlator;
    /** its type */
    const char *type;
    /** read, map or advise */
    const char *operation;
    /** kind of the first request */
    const char *kind;
    /** address of the first request, as the layer has it above */
    unsigned long long address;
    /** number of requests */
    unsigned long long requests;
    /** bytes asked for by all of them */
    unsigned long long bytes;
    /** how many of them failed */
    unsigned long long errors;
    /** layers above it on this way; 0 at the top */
    unsigned long long depth;
    /** number of the call that made this one; 0: none */
    unsigned long long parent;
    /** time without that of the layers below */
    unsigned long long own_ns;
};

/** Version 1, Evolving/Evolving/Common: a tree block that is read. */
struct bw_blockinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    unsigned long long call;
    /** 0, or the negative number of an error (-EIO, ...) */
    long long error;
    /** how long it took */
    unsigned long long ns;
    /** logical address */
    unsigned long long logical;
    /** copy, from 1 on; 0: any */
    unsigned long long copy;
    /** id of the tree it is read for */
    unsigned long long tree;
    /** level that its parent promises; 0 is a leaf */
    unsigned long long level;
    /** transaction that its parent promises */
    unsigned long long generation;
    /** its size */
    unsigned long long bytes;
    /** items or pointers in it */
    unsigned long long items;
};

/** Version 1, Evolving/Evolving/Common: a look for a tree block in a cache. */
struct bw_cacheinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    unsigned long long call;
    /** 0, or the negative number of an error (-EIO, ...) */
    long long error;
    /** how long it took */
    unsigned long long ns;
    /** logical address */
    unsigned long long logical;
    /** level of the block; 0 is a leaf */
    unsigned long long level;
    /** its size */
    unsigned long long bytes;
    /** id of the tree it is looked for */
    unsigned long long tree;
};

/** Version 1, Evolving/Evolving/Common: a search for a range of keys in a tree. */
struct bw_keyinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    unsigned long long call;
    /** 0, or the negative number of an error (-EIO, ...) */
    long long error;
    /** how long it took */
    unsigned long long ns;
    /** id of the tree */
    unsigned long long tree;
    /** first key that is looked for: objectid */
    unsigned long long objectid;
    /** type */
    unsigned long long type;
    /** offset */
    unsigned long long offset;
    /** last key: objectid */
    unsigned long long last_objectid;
    /** type */
    unsigned long long last_type;
    /** offset */
    unsigned long long last_offset;
    /** name of the first key's type */
    const char *type_name;
};

/** Version 1, Evolving/Evolving/Common: an entry of a directory. */
struct bw_direntinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    unsigned long long call;
    /** 0, or the negative number of an error (-EIO, ...) */
    long long error;
    /** how long it took */
    unsigned long long ns;
    /** inode of the directory */
    unsigned long long parent;
    /** inode of the entry, or id of the subvolume; 0 if it was remembered without one */
    unsigned long long child;
    /** id of the subvolume the directory is in */
    unsigned long long tree;
    /** file, directory, subvolume, ... */
    const char *type;
    /** name of the entry */
    struct bw_bytes name;
};

/** Version 1, Evolving/Evolving/Common: a path that is listed. */
struct bw_pathinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    unsigned long long call;
    /** 0, or the negative number of an error (-EIO, ...) */
    long long error;
    /** how long it took */
    unsigned long long ns;
    /** inode of the file; 0 if its entry was remembered without one */
    unsigned long long inode;
    /** id of the subvolume */
    unsigned long long tree;
    /** the path, absolute */
    struct bw_bytes path;
};

/** Version 1, Evolving/Evolving/Common: an extent that is decompressed. */
struct bw_codecinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    unsigned long long call;
    /** 0, or the negative number of an error (-EIO, ...) */
    long long error;
    /** how long it took */
    unsigned long long ns;
    /** bytes as stored */
    unsigned long long bytes_in;
    /** bytes they stand for */
    unsigned long long bytes_out;
    /** zlib, lzo or zstd */
    const char *algorithm;
    /** inode of the file they are read for */
    unsigned long long inode;
    /** id of the subvolume it is in */
    unsigned long long tree;
};

/** Version 1, Evolving/Evolving/Common: a message: damage, a warning, a note, or what ended the
    work. */
struct bw_errinfo {
    /** number of the call it happened in, as fopinfo.call; 0 outside of any */
    unsigned long long call;
    /** 0, or the negative number of an error (-EIO, ...) */
    long long error;
    /** how long it took */
    unsigned long long ns;
    /** address the error was born with, 0 if with none */
    unsigned long long address;
    /** enum bw_error_code */
    unsigned long long code;
    /** note, warning, damage or fatal */
    const char *severity;
    /** type of the layer it was born in */
    const char *layer;
    /** name of that layer */
    const char *volume;
    /** the message */
    const char *message;
};
