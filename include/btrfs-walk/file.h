/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The contents of one file: reading at an offset, and listing its extents. Data are verified
 * against their checksums; another mirror or parity replaces a bad mirror; compressed extents are
 * decompressed. To read many files, see struct bw_stream.
 */
#ifndef BTRFS_WALK_FILE_H
#define BTRFS_WALK_FILE_H

#include "btrfs-walk/format.h"
#include "btrfs-walk/inode.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How to open a file. Only struct_size is required. */
struct bw_file_options {
    size_t struct_size; /**< sizeof(struct bw_file_options) */
    bool unchecked;     /**< do not verify checksums: for images whose checksum tree is lost */
};

/** The contents of a regular file, or of a symbolic link. One thread at a time may use a handle. */
struct bw_file;

/**
 * Opens the contents of a file; `options` may be NULL. The caller owns `*file`, and closes it
 * before the file system. BW_ERROR_USAGE if it is neither a regular file nor a symbolic link;
 * otherwise errors as of bw_inode_get().
 */
struct bw_error *bw_file_open(struct bw_fs *fs, const struct bw_place *place,
                              const struct bw_file_options *options, struct bw_file **file);

/** Closes it; NULL is allowed. */
void bw_file_close(struct bw_file *file);

/** Its inode, valid until it is closed. */
const struct bw_inode *bw_file_inode(const struct bw_file *file);

/**
 * Reads up to `length` bytes at `offset`. `*got` is less than `length` at the end of the file, and
 * before an unreadable part. If the unreadable part begins at `offset`, the function returns an
 * error, and `*got` is 0.
 */
struct bw_error *bw_file_read(struct bw_file *file, uint64_t offset, void *buffer, size_t length,
                              size_t *got);

/** Kinds of parts of a file that was read. */
enum bw_data_kind {
    BW_DATA_BYTES,
    BW_DATA_HOLE, /**< zeros: a hole, or allocated space that was never written */
    BW_DATA_BAD,  /**< cannot be read; see `error` */
};

/** A part of a file that was read. */
struct bw_data_part {
    enum bw_data_kind kind;
    uint64_t offset;        /**< in the file, in bytes */
    uint64_t length;        /**< bytes, never 0; a hole or a bad part can be very long */
    const uint8_t *bytes;   /**< `length` of them; NULL unless kind is BW_DATA_BYTES */
    struct bw_error *error; /**< for BW_DATA_BAD: the reason, with inode, offset and the tried
                               copies */
    bool in_tree;    /**< for BW_DATA_BYTES: they are stored in a tree block, whose checksum covers
                        them */
    bool unverified; /**< for BW_DATA_BYTES: some do not match their checksums, or these are
                        missing, which bw_fs_options.ignore_checksums accepts */
    bool corrected;  /**< for BW_DATA_BYTES: a flipped bit of them was corrected, or of the extent
                        that they were decompressed from (bw_fs_options.correct_bits) */
};

/** Receives a part, which ends with the call. An error ends the reading and is returned. */
typedef struct bw_error *bw_data_visitor(void *context, const struct bw_data_part *part);

/**
 * Begins to read a range of a file in parts: `length` bytes at `offset`, cut at the file's size.
 * Ends the previous range. Fails only if memory runs out.
 *
 *     const struct bw_data_part *part = NULL;
 *     struct bw_error *error = bw_file_begin_parts(file, 0, UINT64_MAX);
 *     while (!error && !(error = bw_file_next_part(file, &part)) && part)
 *         ...
 */
struct bw_error *bw_file_begin_parts(struct bw_file *file, uint64_t offset, uint64_t length);

/**
 * Gets the next part of the range, in file order and without gaps. `*part` is NULL after the last
 * one; it belongs to the file and is valid until the next call, bw_file_begin_parts() or
 * bw_file_read(), which ends the range. Unreadable parts have the kind BW_DATA_BAD. Fails only if
 * memory runs out.
 */
struct bw_error *bw_file_next_part(struct bw_file *file, const struct bw_data_part **part);

/** Kinds of extents. */
enum bw_extent_kind {
    BW_EXTENT_HOLE,      /**< nothing is allocated: zeros */
    BW_EXTENT_REGULAR,   /**< data on disk */
    BW_EXTENT_INLINE,    /**< data inside the tree of the subvolume */
    BW_EXTENT_UNWRITTEN, /**< allocated and never written: zeros */
    BW_EXTENT_BAD,       /**< unreadable; see `error` */
};

/** An extent of a file, or the used part of one. All numbers are bytes. */
struct bw_extent {
    enum bw_extent_kind kind;
    uint8_t compression;     /**< enum bw_compression */
    uint64_t offset, length; /**< range of the file; the last one may end after the file's size */
    uint64_t generation;     /**< transaction that wrote it; 0 for holes */
    uint64_t logical;        /**< address of the whole extent on disk; 0: not on disk */
    uint64_t stored;         /**< bytes of the whole extent on disk; 0: not on disk */
    uint64_t ram_bytes;      /**< bytes of the whole extent, decompressed */
    uint64_t extent_offset;  /**< offset of the file's range in the decompressed extent */
    uint64_t used_logical, used_stored; /**< the bytes on disk needed for the range: the whole
                                           extent if it is compressed, otherwise the part in use */
    struct bw_error *error;             /**< for BW_EXTENT_BAD, until the next call: the reason */
    uint64_t reserved[2];               /**< zeros: room for more members */
};

/** Sets the offset at which bw_file_next_extent() continues. An open file starts at offset 0. */
void bw_file_seek_extent(struct bw_file *file, uint64_t offset);

/**
 * Returns the next extent, in file order and without gaps, including holes that the file system
 * does not record, and extents beyond the end of the file. `*extent` is NULL after the last one; it
 * belongs to the file and is valid until the next call. Fails only if memory runs out.
 */
struct bw_error *bw_file_next_extent(struct bw_file *file, const struct bw_extent **extent);

/** The number of extents of each kind in a file. An extent that is used twice counts twice. */
struct bw_extent_count {
    uint64_t total;
    uint64_t inlined, regular, unwritten;
    uint64_t holes;                           /**< only recorded ones */
    uint64_t compressions[BW_COMPRESS_TYPES]; /**< by enum bw_compression, without holes */
    uint64_t reserved[4];                     /**< zeros: room for more members */
};

/** Counts the extents of a file. Unreadable extents are reported, and not counted. */
struct bw_error *bw_file_count_extents(struct bw_fs *fs, const struct bw_place *place,
                                       struct bw_extent_count *count);

/*
 * Reading the contents of many files, or of large ones, with several threads.
 *
 * A function of the caller returns files, one after another. The stream divides them into tasks of
 * about 2 MiB, with several small files in a task. Worker threads read and decompress. The results
 * are delivered in the order of the files and of the offsets in them:
 *
 *     next() --> tasks --> workers: read, or work() --> in order: visit(), finish()
 *
 * The results and their order do not depend on the number of threads. Memory depends only on the
 * number of threads. Holes take no time.
 */

/** The contents of a file: a plain value. */
struct bw_data_file {
    const struct bw_subvolume *subvolume;
    uint64_t inode;
    uint64_t size;           /**< bytes, according to its inode */
    bool unchecked;          /**< do not verify checksums: it has none, or they are not requested */
    bool may_lack_checksums; /**< accept data without checksums: for a file whose inode is lost,
                                because only the inode records whether its data have checksums */
    uint64_t mirror;      /**< mirror of the data to read, counted from 1 as for bw_fs_map(); 0: any
                             good one */
    uint64_t reserved[1]; /**< zeros: room for more members */
};

/** The contents of a place with this inode. */
struct bw_data_file bw_data_file_of(const struct bw_place *place, const struct bw_inode *inode);

/** A range of a file to be read. */
struct bw_stream_file {
    struct bw_data_file data;
    uint64_t offset, length; /**< the range, cut at the file's size; UINT64_MAX: to its end */
    void *user;              /**< the caller's; available to all functions */
    uint64_t reserved[2];    /**< zeros: room for more members */
};

/** Reads files one after another; a stream passes one to `work`. One thread at a time may use it.
 */
struct bw_data_reader;

/** Creates one, which the caller owns. The file system must outlive it. */
struct bw_error *bw_data_reader_create(struct bw_fs *fs, struct bw_data_reader **reader);

/** Frees it; NULL is allowed. */
void bw_data_reader_destroy(struct bw_data_reader *reader);

/** A stream: its files, and the functions that receive their contents. Members may be NULL or 0
 * only if their comment allows it. */
struct bw_stream {
    size_t struct_size; /**< sizeof(struct bw_stream) */
    unsigned threads;   /**< workers, the calling thread among them; 0: one for each processor, at
                             most 8 */

    /** Returns the next file; sets `*got` to false at the end. Never called by two threads at once,
     * and called some tasks before the delivery. */
    struct bw_error *(*next)(void *context, struct bw_stream_file *file, bool *got);

    /**
     * Processes a whole file in a worker thread, which can read it with bw_data_begin(). Only for
     * files whose range has at most `work_limit` bytes; these are not delivered to `visit`. Called
     * by several threads at once. NULL: all files are delivered to `visit`.
     */
    struct bw_error *(*work)(void *context, struct bw_data_reader *reader,
                             const struct bw_stream_file *file);
    uint64_t work_limit; /**< bytes; 0: 32 MiB, or any number if `visit` is NULL */

    /** Receives a part of a file, in order: never called by two threads at once, but not always by
     * the same one. The part ends with the call. */
    struct bw_error *(*visit)(void *context, const struct bw_stream_file *file,
                              const struct bw_data_part *part);

    /**
     * Ends a file: called once for each file from `next`, in order, after its last part or its
     * work, by one thread at a time. `complete` is false if the file was not delivered completely
     * because of an error. May be NULL.
     */
    struct bw_error *(*finish)(void *context, const struct bw_stream_file *file, bool complete);

    void *context; /**< passed to all of them */

    /** Returns the number of bytes that the caller keeps for a file from `next` to `finish`, if
     * there may be many: a task gets up to 256 files, but fewer if these bytes exceed 256 KiB.
     * NULL: none. */
    size_t (*held)(void *context, const struct bw_stream_file *file);
};

/** Reads the files. Returns the first error of one of the functions, or BW_ERROR_NO_MEMORY; damage
 * is delivered as bad parts. */
struct bw_error *bw_stream_run(struct bw_fs *fs, const struct bw_stream *stream);

/** Begins to read a range of a file, in parts like those of bw_file_next_part(). Ends the previous
 * range. */
void bw_data_begin(struct bw_data_reader *reader, const struct bw_data_file *file, uint64_t offset,
                   uint64_t length);

/** Gets the next part of the range, valid until the reader is used again; NULL at the end. Fails
 * only if memory runs out. */
struct bw_error *bw_data_next(struct bw_data_reader *reader, const struct bw_data_part **part);

/** How to read logical addresses. With struct_size alone: verified, from any mirror. */
struct bw_logical_options {
    size_t struct_size; /**< sizeof(struct bw_logical_options) */
    unsigned mirror;    /**< mirror to read, counted from 1, as for bw_fs_map(); 0: any good one */
    bool unchecked;     /**< do not verify */
};

/**
 * Reads the stored bytes at a range of logical addresses: data, which may be compressed, or tree
 * blocks. Address and length are multiples of the sector size; length 0 is the tree block at the
 * address in chunks of metadata, and a sector in others. In chunks of metadata, the range begins at
 * a tree block. `visit` gets the parts in their order; their offset is the logical address.
 * Unreadable parts, and those that fail verification, have the kind BW_DATA_BAD. A note reports
 * data without checksums. BW_ERROR_NOT_FOUND if no chunk contains a part of the range;
 * BW_ERROR_USAGE for wrong options.
 */
struct bw_error *bw_logical_read(struct bw_fs *fs, uint64_t logical, uint64_t length,
                                 const struct bw_logical_options *options, bw_data_visitor *visit,
                                 void *context);

/** Lists the extents of files without reading them. One thread at a time may use it. */
struct bw_extent_reader;

/** Creates one, which the caller owns. The file system must outlive it. */
struct bw_error *bw_extent_reader_create(struct bw_fs *fs, struct bw_extent_reader **reader);

/** Frees it; NULL is allowed. */
void bw_extent_reader_destroy(struct bw_extent_reader *reader);

/** Starts at an offset of a file; the extents end at `end`. */
void bw_extent_reader_seek(struct bw_extent_reader *reader, const struct bw_data_file *file,
                           uint64_t offset, uint64_t end);

/** The next extent, as bw_file_next_extent(). */
struct bw_error *bw_extent_reader_next(struct bw_extent_reader *reader,
                                       const struct bw_extent **extent);

#ifdef __cplusplus
}
#endif
#endif
