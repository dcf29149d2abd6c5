/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files that leave an image, one after the other: walks, on a thread of their own, turned into
 * a queue that a stream (btrfs-walk/stream.h) can ask for the next one.
 */
#ifndef BW_EXPORT_ENTRY_QUEUE_H
#define BW_EXPORT_ENTRY_QUEUE_H

#include <sys/stat.h>

#include "base/buffer.h"
#include "btrfs-walk/stream.h"
#include "btrfs-walk/walk.h"
#include "export/hash.h"

struct bw_fs;

/** An entry of the image on its way; belongs to the queue. */
struct bw_export_entry {
    struct bw_buffer path; /**< absolute; a NUL follows that `length` does not count */
    size_t name; /**< where in `path` the name begins that it leaves with: a relative path, as
                    bw_entry_queue_options.naming makes it; empty: it is what others are relative to
                  */
    struct bw_place place;
    uint32_t type; /**< S_IFMT part of its mode; 0: unknown */
    bool has_inode;
    struct bw_inode inode;  /**< all zeros if there is none: it is lost */
    struct bw_error *error; /**< why it could not be read; set by the reader, freed with the item */
    uint64_t bad;           /**< bytes that could not be read */
    uint64_t zeros;         /**< bytes of holes that were hashed */
    bool skipped;           /**< its content is not wanted */
    bool salvaged;          /**< its inode is made up */
    bool unchecked;         /**< its data are read without looking at their checksums */
    bool checked;           /**< it was read before, to see whether it can be */
    char hash[BW_HASH_TEXT];
    struct bw_export_entry *next; /**< for the queue's own use */
};

/** The name that it leaves with; a NUL follows. */
static inline const char *bw_export_entry_name(const struct bw_export_entry *item)
{
    return item->path.data + item->name;
}

/** Bytes of that. */
static inline size_t bw_export_entry_name_length(const struct bw_export_entry *item)
{
    return item->path.length - item->name;
}

/** Whether it is one of several names of a file. */
static inline bool bw_export_entry_has_names(const struct bw_export_entry *item)
{
    return item->has_inode && item->inode.link_count > 1 && item->type != S_IFDIR;
}

/** How entries are named. All zeros: by their whole paths. */
struct bw_export_naming {
    bool relative;       /**< to the PATH or the subvolume that they are found in; a file that is a
                            PATH itself has its last name */
    unsigned components; /**< so many are taken away from the front of that; entries that have no
                            more are left out */
};

/** What to walk. */
struct bw_entry_queue_options {
    struct bw_walk_options walk; /**< `types`, `selection` and where; `start`, `consume` and `types`
                                    are set here */
    /** Hands out the entries of these types in place of a walk. NULL: walk. */
    struct bw_error *(*bring)(void *context, unsigned types, bw_entry_visitor *visit,
                              void *visitor);
    void *bring_context;
    const struct bw_starting_points *starts; /**< one walk each; none: one walk from the top */
    const unsigned *passes; /**< types to walk for, one walk each for all starts; ends with 0 */
    struct bw_export_naming naming;
    bool unchecked; /**< checksums of data are not looked at */
    bool salvage; /**< files whose inodes are lost get one that is made up (bw_inode_salvage()), and
                     are reported */
    /** Takes why a start was not walked, or what of a file is lost; takes the error. Called on the
     * queue's thread. Must not be NULL. */
    void (*missed)(void *context, struct bw_error *error);
    void *context; /**< passed to missed */
};

struct bw_entry_queue;

/** Starts walking. What the options point to has to outlive the queue. */
struct bw_error *bw_entry_queue_create(struct bw_fs *fs,
                                       const struct bw_entry_queue_options *options,
                                       struct bw_entry_queue **result);

/** Waits for the next entry; NULL after the last. Returns what ended the walk. One thread at a
 * time. */
struct bw_error *bw_entry_queue_next(struct bw_entry_queue *queue, struct bw_export_entry **item);

/** Gives an entry back; from any thread. */
void bw_entry_queue_release(struct bw_entry_queue *queue, struct bw_export_entry *item);

/** Ends the walk if it is not at its end, and frees all; NULL is allowed. */
void bw_entry_queue_destroy(struct bw_entry_queue *queue);

/** The message that the inode of a file was made up by bw_inode_salvage(). */
struct bw_error *bw_salvaged_error(const char *path);

/** What a stream reads of an entry: its data, or nothing of one that is no regular file or is
 * skipped. */
struct bw_stream_file bw_export_entry_stream_file(struct bw_export_entry *item);

/** Starts, in the order in which they were named. */
struct bw_starting_points {
    const char **paths; /**< views */
    /** For each: entries of which the absolute path has fewer names come with another start. Not 0
     * only if the depth of walks is limited. */
    size_t *least_names;
    size_t count;
};

/** Finds them among `paths`, which the walks will take with these options. A path that leads
 * nowhere stays, so that the walk can tell. Fails only if memory runs out. */
struct bw_error *bw_starting_points_find(struct bw_fs *fs, const struct bw_walk_options *options,
                                         const char *const *paths, size_t count,
                                         struct bw_starting_points *starts);

/** Frees what it holds. */
void bw_starting_points_free(struct bw_starting_points *starts);

#endif
