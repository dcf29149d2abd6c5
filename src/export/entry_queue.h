/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files to export, one after the other: walks on a separate thread fill a queue, from which a
 * stream (btrfs-walk/file.h) takes the next one.
 */
#ifndef BW_EXPORT_ENTRY_QUEUE_H
#define BW_EXPORT_ENTRY_QUEUE_H

#include <sys/stat.h>

#include "base/buffer.h"
#include "base/hash.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/walk.h"

struct bw_fs;

/** An entry of the image in the queue, which owns it. */
struct bw_export_entry {
    struct bw_buffer path; /**< absolute; followed by a NUL that `length` does not include */
    size_t name; /**< offset in `path` of the exported name: a relative path that depends on
                  * bw_entry_queue_options.naming; empty for the directory that names are relative
                  * to */
    struct bw_buffer written; /**< the name in the target, if it is another one; set by the reader
                               */
    struct bw_place place;
    uint32_t type; /**< S_IFMT part of its mode; 0: unknown */
    bool has_inode;
    struct bw_inode inode;  /**< all zeros if the inode is lost */
    struct bw_error *error; /**< why it could not be read; set by the reader, freed with the item */
    uint64_t bad;           /**< number of unreadable bytes */
    uint64_t zeros;         /**< number of hashed bytes in holes */
    bool skipped;           /**< its contents are not needed */
    bool salvaged;          /**< its inode was reconstructed */
    bool checked;           /**< set by the reader: its contents were verified, or need not be */
    char hash[BW_HASH_TEXT];
    struct bw_export_entry *next; /**< used by the queue */
};

/** The exported name, NUL-terminated. */
static inline const char *bw_export_entry_name(const struct bw_export_entry *item)
{
    return item->written.length ? item->written.data : item->path.data + item->name;
}

/** The length of the exported name. */
static inline size_t bw_export_entry_name_length(const struct bw_export_entry *item)
{
    return item->written.length ? item->written.length : item->path.length - item->name;
}

/** Whether the entry is one of several hard links. */
static inline bool bw_export_entry_has_names(const struct bw_export_entry *item)
{
    return item->has_inode && item->inode.link_count > 1 && item->type != S_IFDIR;
}

/** How entries are named. All zeros: by their complete paths. */
struct bw_export_naming {
    bool relative;       /**< relative to the PATH or subvolume that contains them; a file given as
                          * PATH is named by its last component */
    unsigned components; /**< number of leading components to strip; entries with no components left
                          * are omitted */
};

/** The walks of a queue. */
struct bw_entry_queue_options {
    struct bw_walk_options walk; /**< the starting subvolume, `selection` and so on; the queue sets
                                  * `start`, `consume` and `types` */
    /** Provides the entries of these types instead of a walk. NULL: walk. */
    struct bw_error *(*bring)(void *context, unsigned types, bw_entry_visitor *visit,
                              void *visitor);
    void *bring_context;
    const struct bw_starting_points *starts; /**< one walk for each; none: one walk from the top */
    const unsigned *passes; /**< the types of each pass; every pass walks from all starting points;
                             * ends with 0 */
    struct bw_export_naming naming;
    /** Deliver the entries of each walk in the order of their paths, name by name: a directory,
     * then everything in it. All of them are in memory first, in 300 bytes each, and their paths.
     */
    bool sorted;
    bool salvage; /**< reconstruct lost inodes of files (bw_inode_salvage()), and report these files
                   */
    /** Receives the errors of starting points that were not walked, or not completely; and of lost
     * files, with `start` NULL. Consumes the error. Called on the queue's thread. Must not be
     * NULL. */
    void (*missed)(void *context, const char *start, struct bw_error *error);
    void *context; /**< passed to missed */
};

struct bw_entry_queue;

/** Starts walking. Everything that the options point to must outlive the queue. */
struct bw_error *bw_entry_queue_create(struct bw_fs *fs,
                                       const struct bw_entry_queue_options *options,
                                       struct bw_entry_queue **result);

/** Waits for the next entry; NULL after the last. Returns the error that ended the walk. Only one
 * thread at a time may call it. */
struct bw_error *bw_entry_queue_next(struct bw_entry_queue *queue, struct bw_export_entry **item);

/** Returns an entry to the queue; callable from any thread. */
void bw_entry_queue_release(struct bw_entry_queue *queue, struct bw_export_entry *item);

/** Ends the walk early if necessary, and frees everything; `queue` may be NULL. */
void bw_entry_queue_destroy(struct bw_entry_queue *queue);

/** The message that bw_inode_salvage() reconstructed the inode of a file. */
struct bw_error *bw_salvaged_error(const char *path);

/** Changes an error of reading the image so that its errno is not mistaken for an error of writing.
 * `error` may be NULL. */
struct bw_error *bw_image_error(struct bw_error *error);

/** Records an unreadable part of an entry. */
void bw_export_entry_note_bad(struct bw_export_entry *item, const struct bw_data_part *part);

/** The number of bytes that an entry holds, for bw_stream.held. */
size_t bw_export_entry_held(void *context, const struct bw_stream_file *file);

/** Why an entry is missing, or incomplete: its error, which is taken, or what is wrong with its
 * inode. */
struct bw_error *bw_export_entry_loss(struct bw_export_entry *item);

/** Appends the target of a symbolic link. A NUL follows, which the length does not include. */
struct bw_error *bw_export_entry_read_link(const struct bw_export_entry *item, struct bw_fs *fs,
                                           struct bw_buffer *target);

/** The data of an entry for a stream; empty if it is not a regular file, or is skipped. */
struct bw_stream_file bw_export_entry_stream_file(struct bw_export_entry *item);

/** A starting point. */
struct bw_starting_point {
    const char *path; /**< as given; not copied */
    char *older; /**< the absolute path that the file had in the generation that is read; NULL: the
                  * same */
    char *name;  /**< with `older`: the path under which it is exported, from the subvolume of the
                  * options */
    bool is_another; /**< the generation that is read has a different file at this path, which the
                      * newer one has under another name: it is not exported */
    size_t least_names; /**< entries with fewer names in their absolute path belong to another
                         * starting point; not 0 only if the depth of walks is limited */
};

/** Starting points, in the order of the command line. */
struct bw_starting_points {
    struct bw_starting_point *points;
    size_t count;
};

/** Selects from `paths` those that no other path includes. `options` are the options of the walks.
 * A path that does not exist is kept, so that the walk reports it. Fails only if memory runs out.
 *
 * If `newer` is not NULL, it is a newer generation, and the paths are those of its files: `fs` is
 * searched for the inodes, and the files there are exported under the paths in `newer`. If `fs`
 * does not have the inode, or `newer` does not have the path, the path is one of `fs`, unless
 * `newer` has that file under another name. */
struct bw_error *bw_starting_points_find(struct bw_fs *fs, struct bw_fs *newer,
                                         const struct bw_walk_options *options,
                                         const char *const *paths, size_t count,
                                         struct bw_starting_points *starts);

/** Sets where a walk starts. `options` have those that were used to find the starting points. */
void bw_starting_point_apply(const struct bw_starting_point *point,
                             struct bw_walk_options *options);

void bw_starting_points_free(struct bw_starting_points *starts);

#endif
