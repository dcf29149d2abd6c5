/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Send streams: the format in which `btrfs send` saves a subvolume, and from which `btrfs receive`
 * restores it.
 *
 * A full stream contains a whole subvolume. An incremental stream contains the differences from its
 * parent, a subvolume that the receiver already has. Other subvolumes at the receiver can be
 * sources of clones. Nested subvolumes are not part of a stream.
 *
 * Source of the format: the kernel's fs/btrfs/send.h and the dev-send-stream page of the btrfs
 * documentation.
 */
#ifndef BTRFS_WALK_STREAM_H
#define BTRFS_WALK_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/subvolume.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A subvolume: the sent one, the parent, or a clone source. */
struct bw_send_side {
    struct bw_fs *fs;
    const struct bw_subvolume *subvolume;
    const uint8_t *uuid; /**< BW_UUID_SIZE bytes: its identity in streams, if an earlier stream gave
                            it another one than bw_send_identity(); NULL: that one */
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** Why a subvolume cannot be sent under its own UUID. */
enum bw_send_reason {
    BW_SEND_OWN,      /**< it can */
    BW_SEND_WRITABLE, /**< it is not read-only: under the same UUID, it may be something else later
                       */
    BW_SEND_PAST,     /**< it is read from an older generation, or from a root tree that was rebuilt
                         and may be older */
    BW_SEND_NO_UUID,  /**< it has none, as those made by old kernels */
    BW_SEND_CHANGED,  /**< it was changed after it was received, and the UUID identifies its earlier
                         contents; see bw_subvolume_is_changed() */
};

/** The identity of a subvolume in streams. */
struct bw_send_identity {
    uint8_t uuid[BW_UUID_SIZE]; /**< the received UUID if it has one; otherwise its own UUID */
    uint64_t ctransid;          /**< transaction of its last change */
    enum bw_send_reason reason; /**< BW_SEND_OWN: streams use this UUID. Otherwise, bw_send() uses a
                                   random one */
    uint64_t reserved[2];       /**< zeros: room for more members */
};

/** Determines the identity of a subvolume. Errors as of bw_subvolume_get(). */
struct bw_error *bw_send_identity(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                  struct bw_send_identity *identity);

/** How to handle unreadable contents. */
enum bw_send_damage {
    BW_SEND_STOP, /**< fail */
    BW_SEND_ZERO, /**< write zeros, and report it */
    BW_SEND_SKIP, /**< leave the file out, and report it. Then nothing is cloned from other files of
                     the stream, since they may be left out */
};

/** How to send. All zeros but the size and `write`: a full stream of protocol 1. */
struct bw_send_options {
    size_t struct_size;                /**< sizeof(struct bw_send_options) */
    const struct bw_send_side *parent; /**< a subvolume that the receiver has; NULL: send everything
                                        */
    const struct bw_send_side *sources; /**< subvolumes that the receiver also has, to clone from.
                                           The parent need not be among them */
    size_t source_count;
    unsigned version; /**< of the protocol: 1 or 2; 0: 1 */
    bool compressed; /**< send compressed extents without decompressing them; requires protocol 2 */
    bool no_data;    /**< name the ranges with data instead of sending them; such a stream cannot be
                        received */
    bool no_header, no_end; /**< omit the header or the last command: for several subvolumes in one
                               stream */
    const char *name;       /**< under which the receiver makes the subvolume: one component of
                               a path; NULL: its own */
    enum bw_send_damage damage; /**< if it is not BW_SEND_STOP, bw_send() uses a random UUID */
    unsigned threads;           /**< as in struct bw_stream */
    /** Receives the next bytes of the stream, a view that ends with the call. Never called by two
     * threads at once, but not always by the same one. An error ends the sending. */
    struct bw_error *(*write)(void *context, const void *bytes, size_t length);
    void *context;
};

/** The results of sending. */
struct bw_send_summary {
    uint8_t uuid[BW_UUID_SIZE]; /**< the identity that the stream gives the subvolume */
    uint64_t ctransid;
    uint64_t bytes;       /**< of the stream */
    uint64_t data;        /**< bytes of contents, decompressed */
    uint64_t cloned;      /**< bytes of contents that are cloned by the receiver */
    uint64_t lost;        /**< number of unreadable ranges that were replaced by zeros, or of files
                             that were left out */
    int64_t growth;       /**< sum of the sizes of the regular files, minus the parent's sum */
    uint64_t reserved[7]; /**< zeros: room for more members */
};

/**
 * Sends a subvolume as a stream. `summary` may be NULL. It is valid even after an error.
 *
 * Full streams have the commands of the kernel in the order of the kernel. Incremental ones lead to
 * the same result in a different order. Memory does not depend on the number of files in a full
 * stream; an incremental one needs some hundred bytes for each inode that differs.
 *
 * Errors: that of options->write; BW_ERROR_USAGE if the options contradict each other;
 * BW_ERROR_CORRUPT and others if a tree or, with BW_SEND_STOP, contents cannot be read. After an
 * error, the stream has no end, and a receiver will reject it. With the other values of
 * options->damage, files whose inodes or names are lost are left out, and reported.
 */
struct bw_error *bw_send(const struct bw_send_side *side, const struct bw_send_options *options,
                         struct bw_send_summary *summary);

/*
 * Receiving into a folder, without a stream of bytes in a file: bw_receiver_add() fits
 * bw_send_options.write. On btrfs, subvolumes become subvolumes, snapshots become snapshots, and
 * clones share extents; elsewhere, they become directories, hard links and copies.
 *
 * Nothing outside of the folder is made, changed or read, regardless of the stream's contents:
 * paths are resolved below descriptors, and links are not followed. This needs Linux 5.6.
 */

/** Receives streams. One thread at a time may use it. */
struct bw_receiver;

/** How to receive. */
struct bw_receiver_options {
    size_t struct_size;  /**< sizeof(struct bw_receiver_options) */
    int folder;          /**< descriptor of the folder in which subvolumes are made; the caller's */
    int top;             /**< descriptor of the folder for a subvolume with the name "." */
    bool link_snapshots; /**< where there are no snapshots, make hard links to unchanged files */
    /** Receives the error if an attribute or a device node could not be restored, and consumes it.
     * NULL: such an error ends the receiving. */
    void (*missed)(void *context, struct bw_error *error);
    void *context;
};

/** The results of receiving. */
struct bw_receiver_summary {
    uint64_t subvolumes;  /**< number of subvolumes, with snapshots */
    uint64_t written;     /**< bytes of contents that were written */
    uint64_t cloned;      /**< bytes that share extents with other files */
    uint64_t linked;      /**< number of hard links to unchanged files of the parent */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Creates a receiver, which the caller owns. */
struct bw_error *bw_receiver_create(const struct bw_receiver_options *options,
                                    struct bw_receiver **receiver);

/** Whether the folder is on btrfs, so that snapshots can be made. */
bool bw_receiver_makes_snapshots(const struct bw_receiver *receiver);

/** Receives the next bytes of a stream, in pieces of any length; `receiver` is a struct
 * bw_receiver. Several streams may follow each other. BW_ERROR_CORRUPT if the stream is invalid,
 * BW_ERROR_SYSTEM if a system call fails, BW_ERROR_UNSUPPORTED for compressed data and for a
 * snapshot that cannot be made. */
struct bw_error *bw_receiver_add(void *receiver, const void *bytes, size_t length);

/** Moves the subvolume received as `name` to a path below the folder `top`, and creates missing
 * directories. The times of existing directories do not change. */
struct bw_error *bw_receiver_place(struct bw_receiver *receiver, const char *name,
                                   const char *path);

/** Makes a subvolume that was moved to `path` read-only, and records which one it was received
 * from. On other file systems than btrfs nothing happens. */
struct bw_error *bw_receiver_protect(struct bw_receiver *receiver, const char *path);

/** Gets the results so far. */
void bw_receiver_summary(const struct bw_receiver *receiver, struct bw_receiver_summary *summary);

/** Frees it; NULL is allowed. */
void bw_receiver_destroy(struct bw_receiver *receiver);

/*
 * Reading. bw_fs_open() opens streams like images. The functions here show the streams themselves.
 */

struct bw_commandinfo;

/** Receives a command of a stream, a view that ends with the call. Numbers of attributes that it
 * lacks are BW_ABSENT. An error ends the iteration. */
typedef struct bw_error *bw_command_visitor(void *context, const struct bw_commandinfo *command);

/** Passes all commands of the streams to `visit`, in the order of the files. A command with a wrong
 * checksum or attribute is reported as damage, and skipped. Fails if a stream is cut off, or with
 * the error of `visit`; BW_ERROR_USAGE if the images are not send streams. */
struct bw_error *bw_stream_commands(struct bw_fs *fs, bw_command_visitor *visit, void *context);

#ifdef __cplusplus
}
#endif
#endif
