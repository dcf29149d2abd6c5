/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A subvolume that is made from a stream: a tree in memory, changed by operations that correspond
 * to a receiver's system calls. Contents are not copied; extents refer to the bytes in the streams.
 * They need not be aligned.
 *
 * Every path may be hostile. The functions refuse paths that are not relative to the subvolume, and
 * never follow symbolic links. After an error, the tree is still valid, but the operation may be
 * incomplete.
 */
#ifndef BW_STREAM_STREAM_TREE_H
#define BW_STREAM_STREAM_TREE_H

#include "base/buffer.h"
#include "base/vector.h"
#include "btree/edit_names.h"
#include "btrfs-walk/record.h"
#include "fs/fs.h"
#include "stream/stream_reader.h"

/** A subvolume that is being made. */
struct bw_stream_tree {
    struct bw_tree_editor editor;
    uint64_t transid; /**< transaction of new inodes and extents */
    /** Number of items that commands may still copy or remove, which decreases. A short command can
     * concern any number of them, so all streams together have a limit. NULL: no limit. */
    uint64_t *budget;
    /* Private: the directory that was looked up last; 0: none. */
    struct bw_buffer directory;
    uint64_t directory_inode;
};

/** The result of looking up a path. */
struct bw_stream_place {
    uint64_t directory;   /**< 0: the path is the top directory */
    struct bw_bytes name; /**< a view on the path */
    uint64_t inode;       /**< 0: the directory has no such name */
};

/** Adds the top directory to an empty tree. */
struct bw_error *bw_stream_tree_begin(struct bw_stream_tree *tree);

void bw_stream_tree_free(struct bw_stream_tree *tree);

/** Spends the budget for one item. */
struct bw_error *bw_stream_spend(struct bw_stream_tree *tree);

/* Names (tree_names.c). */

/** Looks up a path. BW_ERROR_CORRUPT if its directory does not exist, or if it is not allowed. */
struct bw_error *bw_stream_lookup(struct bw_stream_tree *tree, struct bw_bytes path,
                                  struct bw_stream_place *place);

/** Looks up a path that must exist, and reads its inode. */
struct bw_error *bw_stream_find(struct bw_stream_tree *tree, struct bw_bytes path, uint64_t *inode,
                                struct bw_disk_inode_item *item);

/** Makes a file. `wanted` is its inode number, if that is free. */
struct bw_error *bw_stream_make(struct bw_stream_tree *tree, struct bw_bytes path, uint64_t wanted,
                                uint32_t mode, uint64_t device);

struct bw_error *bw_stream_symlink(struct bw_stream_tree *tree, struct bw_bytes path,
                                   uint64_t wanted, struct bw_bytes target);

/** Replaces a file at the new path, or an empty directory. */
struct bw_error *bw_stream_rename(struct bw_stream_tree *tree, struct bw_bytes from,
                                  struct bw_bytes to);

/** Adds a name to an existing file. */
struct bw_error *bw_stream_link(struct bw_stream_tree *tree, struct bw_bytes path,
                                struct bw_bytes existing);

struct bw_error *bw_stream_unlink(struct bw_stream_tree *tree, struct bw_bytes path);

/** The directory must be empty. */
struct bw_error *bw_stream_rmdir(struct bw_stream_tree *tree, struct bw_bytes path);

/* Contents of regular files (tree_data.c). */

/** A range of a file. */
struct bw_stream_range {
    uint64_t offset, length;
};

/** Replaces a range by an extent; `extent` has its location, its offset and its compression. */
struct bw_error *bw_stream_write(struct bw_stream_tree *tree, struct bw_bytes path,
                                 const struct bw_stream_range *range,
                                 const struct bw_disk_file_extent *extent);

/** Replaces a range by a hole; with `grows`, the file gets at least the end of the range as its
 * size. */
struct bw_error *bw_stream_punch(struct bw_stream_tree *tree, struct bw_bytes path,
                                 const struct bw_stream_range *range, bool grows);

struct bw_error *bw_stream_truncate(struct bw_stream_tree *tree, struct bw_bytes path,
                                    uint64_t size);

/** The source of a clone. */
struct bw_stream_clone {
    struct bw_stream_tree *tree; /**< may be the same tree */
    struct bw_bytes path;
    uint64_t offset;
};

/** Replaces a range by the same extents as a range of another file. */
struct bw_error *bw_stream_clone(struct bw_stream_tree *tree, struct bw_bytes path,
                                 const struct bw_stream_range *range,
                                 const struct bw_stream_clone *source);

/* Attributes (tree_names.c). */

struct bw_error *bw_stream_set_xattr(struct bw_stream_tree *tree, struct bw_bytes path,
                                     struct bw_bytes name, struct bw_bytes value);

struct bw_error *bw_stream_remove_xattr(struct bw_stream_tree *tree, struct bw_bytes path,
                                        struct bw_bytes name);

/* Applies the commands of streams to trees in memory. */

/** A subvolume that was read from a stream. */
struct bw_received {
    struct bw_tree tree;
    uint8_t uuid[BW_UUID_SIZE];
    uint8_t parent_uuid[BW_UUID_SIZE]; /**< zeros: it was sent without a parent */
    uint64_t transid;
    char *name; /**< valid in a directory, but other subvolumes may have the same */
    size_t image;
    bool is_incomplete; /**< the stream ended early, or a command could not be applied */
};

BW_VECTOR(bw_received_list, struct bw_received);

/** All subvolumes. */
struct bw_received_set {
    struct bw_fs *fs;
    struct bw_received_list received;
    struct bw_key_map by_uuid; /**< hash of the UUID to the index */
    uint64_t budget;           /**< as in struct bw_stream_tree, for all of them */
    uint32_t lzo_sectorsize;   /**< of compressed data; 0 until the first such data */
};

/** The subvolume with a UUID; NULL if it was not read yet. */
const struct bw_received *bw_received_find(const struct bw_received_set *set,
                                           const uint8_t uuid[BW_UUID_SIZE]);

/** The result of applying a stream. */
struct bw_apply_result {
    /** The stream needs a subvolume that was not read yet, with the UUID `missing`. The set is
     * unchanged. */
    bool is_waiting;
    uint8_t missing[BW_UUID_SIZE];
};

/** Applies all streams in an image, whose data have the logical address `base`. If a command is
 * wrong, the rest of its subvolume is not read; that is reported as damage. Fails if memory runs
 * out, or if there is no subvolume. */
struct bw_error *bw_apply_stream(struct bw_received_set *set, size_t image, uint64_t base,
                                 struct bw_apply_result *result);

void bw_received_free(struct bw_received_set *set);

#endif
