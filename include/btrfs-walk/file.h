/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The contents of one file: reading at an offset, and listing its extents. Data are verified
 * against their checksums; another copy or parity replaces a bad copy; compressed extents are
 * decompressed. To read many files, see struct bw_stream.
 */
#ifndef BTRFS_WALK_FILE_H
#define BTRFS_WALK_FILE_H

#include "btrfs-walk/inode.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How to open a file. Set struct_size; all other zeros is the normal way. */
struct bw_file_options {
    size_t struct_size; /**< sizeof(struct bw_file_options) */
    bool unchecked;     /**< do not look at checksums: for images whose checksum tree is lost */
};

/** The contents of a regular file, or of a symbolic link. One thread at a time may use a handle. */
struct bw_file;

/**
 * Opens the contents of a file; `options` may be NULL. The caller owns `*file`, which the file
 * system must outlive. BW_ERROR_USAGE if it is neither a regular file nor a symbolic link;
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
 * in front of a part that cannot be read; only if that part begins at `offset` itself it is an
 * error, and `*got` is 0.
 */
struct bw_error *bw_file_read(struct bw_file *file, uint64_t offset, void *buffer, size_t length,
                              size_t *got);

/** Kinds of parts of a file that was read. */
enum bw_data_kind {
    BW_DATA_BYTES,
    BW_DATA_HOLE, /**< zeros: a hole, or space that is allocated and was never written */
    BW_DATA_BAD,  /**< cannot be read; see `error` */
};

/** A part of a file that was read. */
struct bw_data_part {
    enum bw_data_kind kind;
    uint64_t offset;        /**< in the file, in bytes */
    uint64_t length;        /**< bytes, never 0; a hole or a bad part can be very long */
    const uint8_t *bytes;   /**< `length` of them; NULL unless kind is BW_DATA_BYTES */
    struct bw_error *error; /**< for BW_DATA_BAD: why, with inode, offset and the copies tried */
    bool in_tree; /**< of BW_DATA_BYTES: they lie in a tree block, whose checksum covers them */
};

/** Receives a part, which ends with the call. An error ends the reading and is returned. */
typedef struct bw_error *bw_data_taker(void *context, const struct bw_data_part *part);

/**
 * Reads a range of a file, cut at the file's size, and hands it out in file order, without gaps.
 * Parts that cannot be read are parts of kind BW_DATA_BAD; apart from the errors of `take` it fails
 * only if memory runs out.
 */
struct bw_error *bw_file_read_parts(struct bw_file *file, uint64_t offset, uint64_t length,
                                    bw_data_taker *take, void *context);

/** Kinds of extents. */
enum bw_extent_kind {
    BW_EXTENT_HOLE,      /**< nothing is allocated: zeros */
    BW_EXTENT_REGULAR,   /**< data on disk */
    BW_EXTENT_INLINE,    /**< data inside the tree of the subvolume */
    BW_EXTENT_UNWRITTEN, /**< allocated and never written: zeros */
    BW_EXTENT_BAD,       /**< unreadable; see `error` */
};

/** Compressions of extents. Source: BTRFS_COMPRESS_* in the kernel's fs/btrfs/compression.h. */
enum bw_compression {
    BW_COMPRESS_NONE = 0,
    BW_COMPRESS_ZLIB = 1,
    BW_COMPRESS_LZO = 2,
    BW_COMPRESS_ZSTD = 3,
    BW_COMPRESS_TYPES,
};

/** Name of a compression ("zstd"; "none"); NULL for a number that is unknown. */
const char *bw_compression_name(unsigned compression);

/** An extent of a file, or the part of one that the file uses. All numbers are bytes. */
struct bw_extent {
    enum bw_extent_kind kind;
    uint8_t compression;     /**< enum bw_compression */
    uint64_t offset, length; /**< range of the file; the last one may end after the file's size */
    uint64_t generation;     /**< transaction that wrote it; 0 for holes */
    uint64_t logical;        /**< address of the whole extent on disk; 0: not on disk */
    uint64_t stored;         /**< bytes of the whole extent on disk; 0: not on disk */
    uint64_t ram_bytes;      /**< bytes of the whole extent, decompressed */
    uint64_t extent_offset;  /**< where in those the range of the file begins */
    uint64_t used_logical, used_stored; /**< the bytes on disk needed for the range: the whole
                                           extent if it is compressed, otherwise the part in use */
    struct bw_error *error; /**< for BW_EXTENT_BAD: why; belongs to the handle until the next call
                             */
    uint64_t reserved[2];   /**< zeros: room for more members */
};

/** Sets the offset at which bw_file_next_extent() continues. An open file starts at offset 0. */
void bw_file_seek_extent(struct bw_file *file, uint64_t offset);

/**
 * Returns the next extent, in file order and without gaps; holes are returned whether the file
 * system records them or not, and so are extents beyond the end of the file. `*extent` is NULL
 * after the last one; it belongs to the file and is valid until the next call. Fails only if memory
 * runs out.
 */
struct bw_error *bw_file_next_extent(struct bw_file *file, const struct bw_extent **extent);

/** How many extents of each kind a file has. An extent on disk that is used twice counts twice. */
struct bw_extent_count {
    uint64_t total;
    uint64_t inlined, regular, unwritten;
    uint64_t holes;                           /**< those that the file system records */
    uint64_t compressions[BW_COMPRESS_TYPES]; /**< by enum bw_compression, without holes */
    uint64_t reserved[4];                     /**< zeros: room for more members */
};

/** Counts the extents of a file. Unreadable extents are reported, and not counted. */
struct bw_error *bw_file_count_extents(struct bw_fs *fs, const struct bw_place *place,
                                       struct bw_extent_count *count);

/*
 * Reading the contents of many files, or of large ones, with several threads.
 *
 * Files come from a function of the caller, one after another. They are cut into tasks of about
 * 2 MiB, with several small files to a task; worker threads read and decompress; the results are
 * delivered in the order of the files and of the offsets in them:
 *
 *     next() --> tasks --> workers: read, or work() --> in order: take(), finish()
 *
 * What is delivered, and in which order, does not depend on the number of threads. Memory is
 * bounded by the number of threads, whatever the files are; holes cost nothing.
 */

/** The contents of a file: a plain value. */
struct bw_data_file {
    const struct bw_subvolume *subvolume;
    uint64_t inode;
    uint64_t size;           /**< bytes, as its inode says */
    bool unchecked;          /**< read without looking at checksums: it has none, or they are not
                                  wanted */
    bool may_lack_checksums; /**< data without checksums are accepted: for a file whose inode is
                                lost, because only the inode says whether its data have checksums */
    uint64_t reserved[2];    /**< zeros: room for more members */
};

/** The contents of a place with this inode. */
struct bw_data_file bw_data_file_of(const struct bw_place *place, const struct bw_inode *inode);

/** A range of a file to be read. */
struct bw_stream_file {
    struct bw_data_file data;
    uint64_t offset, length; /**< the range, cut at the file's size; UINT64_MAX: to its end */
    void *user;              /**< the caller's; handed to all functions */
    uint64_t reserved[2];    /**< zeros: room for more members */
};

/** Reads files one after another; a stream hands one to `work`. One thread at a time may use it. */
struct bw_data_reader;

/** Creates one, which the caller owns. The file system must outlive it. */
struct bw_error *bw_data_reader_create(struct bw_fs *fs, struct bw_data_reader **reader);

/** Frees it; NULL is allowed. */
void bw_data_reader_destroy(struct bw_data_reader *reader);

/** A stream: its files, and the functions that receive their contents. Members that may be NULL or
 * 0 say so. */
struct bw_stream {
    size_t struct_size; /**< sizeof(struct bw_stream) */
    unsigned threads;   /**< workers, the calling thread among them; 0: one for each processor, at
                             most 8 */

    /** Returns the next file; `*got` false: there are no more. Never called by two threads at once.
     * It runs some tasks ahead of the delivery. */
    struct bw_error *(*next)(void *context, struct bw_stream_file *file, bool *got);

    /**
     * Processes a whole file on a worker, reading it with bw_data_read() if it likes; for files
     * whose range is at most `work_limit` bytes. Nothing of those is delivered to `take`. Called by
     * several threads at once. NULL: all files are delivered to `take`.
     */
    struct bw_error *(*work)(void *context, struct bw_data_reader *reader,
                             const struct bw_stream_file *file);
    uint64_t work_limit; /**< bytes; 0: 32 MiB, or any number if `take` is NULL */

    /** Receives a part of a file, in order: never called by two threads at once, but not always by
     * the same one. The part ends with the call. */
    struct bw_error *(*take)(void *context, const struct bw_stream_file *file,
                             const struct bw_data_part *part);

    /**
     * Ends a file: called once for each that `next` gave, in order, after its last part or its
     * work, under the same terms as `take`. `complete` is false if an error came in between, so
     * that some of it was not delivered. May be NULL.
     */
    struct bw_error *(*finish)(void *context, const struct bw_stream_file *file, bool complete);

    void *context; /**< passed to all of them */

    /** How many bytes the caller keeps for a file from `next` to `finish`, if these can be many: up
     * to 256 files are taken ahead for each task, but fewer if they have more than 256 KiB. NULL:
     * no such bytes. */
    size_t (*held)(void *context, const struct bw_stream_file *file);
};

/** Reads. Returns the first error that one of the functions returned, or BW_ERROR_NO_MEMORY; damage
 * is delivered as bad parts. */
struct bw_error *bw_stream_run(struct bw_fs *fs, const struct bw_stream *stream);

/** Reads a range of a file, as bw_file_read_parts(). */
struct bw_error *bw_data_read(struct bw_data_reader *reader, const struct bw_data_file *file,
                              uint64_t offset, uint64_t length, bw_data_taker *take, void *context);

/** Where a file has data, without reading them. One thread at a time may use one. */
struct bw_extent_reader;

/** Creates one, which the caller owns. The file system must outlive it. */
struct bw_error *bw_extent_reader_create(struct bw_fs *fs, struct bw_extent_reader **reader);

/** Frees it; NULL is allowed. */
void bw_extent_reader_destroy(struct bw_extent_reader *reader);

/** Goes to an offset of a file, to hand out its extents up to `end`. */
void bw_extent_reader_seek(struct bw_extent_reader *reader, const struct bw_data_file *file,
                           uint64_t offset, uint64_t end);

/** The next extent, as bw_file_next_extent(). */
struct bw_error *bw_extent_reader_next(struct bw_extent_reader *reader,
                                       const struct bw_extent **extent);

#ifdef __cplusplus
}
#endif
#endif
