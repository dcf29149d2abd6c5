/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing a stream, as its parts share it:
 *
 *     full.c, incremental.c: the order --> inode.c: commands of an inode --> jobs.c --> caller
 *                  |                           |                                ^
 *                  +--> names.c: paths         +--> clones.c: clone sources     |
 *                                                       data/stream.c: contents-+
 *
 * full.c or incremental.c runs from beginning to end in its own thread. It pushes jobs into a
 * queue, and waits while that is full. Each job has commands that are complete, and possibly a
 * range of a file, whose bytes a stream of data reads ahead with many threads.
 */
#ifndef BW_STREAM_SENDER_H
#define BW_STREAM_SENDER_H

#include "base/vector.h"
#include "btree/find_leaf.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/stream.h"
#include "fs/fs.h"
#include "ondisk/items.h"
#include "stream/encoder.h"

/** Inodes above are not files: orphans and the like. */
#define BW_SEND_LAST_INODE ((uint64_t)-257)

struct bw_sender;

/* Names (names.c). */

/** A directory, as a part of paths. */
struct bw_send_directory_name {
    uint64_t number, generation;
    uint64_t parent; /**< inode of the directory with its first name; itself: the top directory */
    uint32_t name;   /**< in the names of the root */
    uint16_t name_length;
    struct timespec atime, ctime, mtime, otime;
};

BW_VECTOR(bw_send_parts, struct bw_send_directory_name);

/** A subvolume: the sent one, the parent, or a clone source. */
struct bw_send_root {
    struct bw_fs *fs;
    const struct bw_subvolume *subvolume;
    uint8_t uuid[BW_UUID_SIZE];
    uint64_t ctransid;
    struct bw_key_map part_of; /**< inode to number of its part */
    struct bw_send_parts parts;
    struct bw_buffer names;
    struct bw_item_range parts_range, extents_range; /**< positions in the tree */
    uint64_t source; /**< the inode that data were cloned from last; 0: none */
    struct bw_inode source_inode;
};

void bw_send_root_init(struct bw_send_root *root, const struct bw_send_side *side);
void bw_send_root_free(struct bw_send_root *root);

/** Finds the part of an inode, valid until the next call. BW_ERROR_CORRUPT if it has no inode or no
 * name. */
struct bw_error *bw_send_part_of(struct bw_send_root *root, uint64_t inode,
                                 const struct bw_send_directory_name **part);

/** Finds out whether any entry of the top directory may be like a temporary name, so that each of
 * these has to be looked up. */
struct bw_error *bw_send_find_clashes(struct bw_sender *sender);

/** Appends the temporary name of an inode, by which it is in the top directory until it gets its
 * place. */
struct bw_error *bw_send_temporary_name(struct bw_sender *sender, uint64_t inode,
                                        uint64_t generation, struct bw_buffer *name);

/** The longest path that receivers accept, in bytes. */
enum { BW_SEND_PATH_MAX = 4095 };

/** Sets `path` to the path of an inode by its first name. Directories from inode `progress` on have
 * their temporary names. BW_ERROR_CORRUPT if it has no path. */
struct bw_error *bw_send_path(struct bw_sender *sender, struct bw_send_root *root, uint64_t inode,
                              uint64_t progress, struct bw_buffer *path);

/** Appends a '/', unless the path is empty, and a name. BW_ERROR_CORRUPT if the path gets too long.
 */
struct bw_error *bw_send_path_add(struct bw_buffer *path, const void *name, size_t length);

/* Clones (clones.c). */

/** A range of a file that the receiver has. */
struct bw_send_clone {
    struct bw_send_root *root; /**< or NULL */
    uint64_t inode, offset, length;
    uint64_t size;    /**< of the file */
    uint64_t base;    /**< where the extent would begin in the file, modulo 2^64 */
    uint64_t lookups; /**< items that were examined for the extent */
};

/** Finds a source for the bytes of an extent from `skip` on, at most `length` bytes, to clone them
 * to `offset` of the current file. `clone` is the result for the bytes of the same extent before;
 * all zeros for the first. Without a source, clone->length is the number of bytes that have none.
 */
struct bw_error *bw_send_find_clone(struct bw_sender *sender, const struct bw_file_extent *extent,
                                    uint64_t skip, uint64_t offset, uint64_t length,
                                    struct bw_send_clone *clone);

struct bw_send_clones;
struct bw_error *bw_send_clones_create(struct bw_send_clones **clones);
void bw_send_clones_destroy(struct bw_send_clones *clones);

/* Jobs (jobs.c). */

struct bw_send_jobs;

struct bw_error *bw_send_jobs_create(struct bw_sender *sender);
void bw_send_jobs_destroy(struct bw_send_jobs *jobs);

/** Adds a range of the current file: WRITE commands with its bytes follow the commands so far. */
struct bw_error *bw_send_add_data(struct bw_sender *sender, uint64_t offset, uint64_t length);

/** A range of a file that is sent compressed. */
struct bw_encoded_range {
    uint64_t skip; /**< where they begin in the decompressed extent */
    uint64_t offset, length;
};

/** Adds an ENCODED_WRITE of a compressed extent on disk. */
struct bw_error *bw_send_add_encoded(struct bw_sender *sender, const struct bw_file_extent *extent,
                                     const struct bw_encoded_range *range);

/** Begins an ENCODED_WRITE; its bytes follow, then bw_data_attribute_end() at `*data`, and
 * bw_command_end() at the result. */
size_t bw_send_encoded_begin(struct bw_sender *sender, const struct bw_file_extent *extent,
                             const struct bw_encoded_range *range, const struct bw_buffer *path,
                             struct bw_buffer *to, size_t *data);

/** The commands from here on are not about the current inode. */
void bw_send_end_inode(struct bw_sender *sender);

/** Ends the current job if it has grown large. Waits for room in the queue; BW_ERROR_STOPPED if
 * the stream of data has ended. */
struct bw_error *bw_send_cut(struct bw_sender *sender);

/** Runs the order, reads and writes everything. */
struct bw_error *bw_send_run(struct bw_sender *sender);

/* Commands of an inode (inode.c). */

/** The inode that is being sent. */
struct bw_send_inode {
    uint64_t number;
    struct bw_inode inode;
    struct bw_buffer path;       /**< at this point of the stream */
    uint64_t written;            /**< end of the last range that was written */
    uint64_t size_there;         /**< its size at the receiver */
    bool is_changed;             /**< there are commands for it */
    struct bw_buffer capability; /**< value of security.capability, which comes last */
    bool has_capability;
    struct bw_buffer undo; /**< with BW_SEND_SKIP: commands that remove it again */
};

/** Everything about a stream that is being written. */
struct bw_sender {
    struct bw_send_options options;
    struct bw_send_root *roots; /**< the sent one; the parent, if any; the sources */
    size_t root_count;
    struct bw_send_root *sent, *parent; /**< of them; parent: NULL in a full stream */
    struct bw_send_summary summary;
    struct bw_send_inode current;
    struct bw_buffer *commands; /**< of the current job: commands are appended here */
    struct bw_send_clones *clones;
    struct bw_send_jobs *jobs;
    bool may_clash;            /**< names like temporary ones may be in a top directory */
    struct bw_buffer withheld; /**< SET_XATTR commands of the top directory: see
                                  bw_send_is_inherited() */
};

/** Begins a command with a path. */
size_t bw_send_command(struct bw_sender *sender, enum bw_send_command command,
                       const struct bw_buffer *path);

/** Ends it. */
void bw_send_command_end(struct bw_sender *sender, size_t at);

/** A command with two paths. */
void bw_send_command_to(struct bw_sender *sender, enum bw_send_command command,
                        const struct bw_buffer *path, enum bw_send_attribute type,
                        const struct bw_buffer *other);

/** A command with a path alone. */
void bw_send_command_at(struct bw_sender *sender, enum bw_send_command command,
                        const struct bw_buffer *path);

/** Makes an inode at a path: MKFILE, MKDIR and so on. */
struct bw_error *bw_send_make(struct bw_sender *sender, const struct bw_buffer *path,
                              uint64_t number, const struct bw_inode *inode);

/** Makes an inode the current one. */
void bw_send_set_inode(struct bw_sender *sender, uint64_t number, const struct bw_inode *inode);

/** Notes a name of the current inode, for removing it again with BW_SEND_SKIP. */
void bw_send_note_undo(struct bw_sender *sender, const struct bw_buffer *path);

/** SET_XATTR, or remembers it if it has to wait for CHOWN. */
void bw_send_xattr(struct bw_sender *sender, const struct bw_xattr *xattr);

/** Whether new inodes in a directory with this attribute get it, too: default ACLs, the compression
 * property. All inodes are made in the top directory, which therefore must not have it meanwhile.
 */
bool bw_send_is_inherited(const struct bw_xattr *xattr);

/** Keeps the SET_XATTR of such an attribute of the top directory, until bw_send_withheld() sends
 * it. */
void bw_send_withhold(struct bw_sender *sender, const struct bw_xattr *xattr);
void bw_send_withheld(struct bw_sender *sender);

/** Sends all attributes of an item, as bw_send_xattr(). */
struct bw_error *bw_send_xattr_item(struct bw_sender *sender, const struct bw_item *item);

/** Sends the range of the current file from `start` to `end`, whose bytes begin at `skip` in the
 * extent, as clones or as data. */
struct bw_error *bw_send_extent(struct bw_sender *sender, const struct bw_file_extent *extent,
                                uint64_t skip, uint64_t start, uint64_t end);

/** Sends a range of the current file as data, even if it is a hole. */
struct bw_error *bw_send_plain(struct bw_sender *sender, uint64_t offset, uint64_t length);

/** FALLOCATE: makes a range of the current file a hole. */
void bw_send_punch(struct bw_sender *sender, uint64_t offset, uint64_t length);

/** The same for an item of the current file. Holes and space never written are not sent. */
struct bw_error *bw_send_extent_item(struct bw_sender *sender, const struct bw_item *item);

/** UTIMES. */
void bw_send_times(struct bw_sender *sender, const struct bw_buffer *path,
                   const struct bw_send_directory_name *times);
void bw_send_inode_times(struct bw_sender *sender, const struct bw_buffer *path,
                         const struct bw_inode *inode);

/** CHOWN, CHMOD. */
void bw_send_owner(struct bw_sender *sender);
void bw_send_mode(struct bw_sender *sender);
/** FILEATTR: the flags of the inode. */
void bw_send_flags(struct bw_sender *sender);
void bw_send_truncate(struct bw_sender *sender, uint64_t size);
void bw_send_capability(struct bw_sender *sender);

/** Reports a loss, and consumes `error`. With BW_SEND_STOP, returns it instead. */
struct bw_error *bw_send_report_lost(struct bw_sender *sender, struct bw_error *error);

/** Reports that an inode has fewer names than links, and is sent with those that it has. */
void bw_send_report_links(struct bw_sender *sender, uint64_t number);

/* The orders: all commands between the first one and the last. */

struct bw_error *bw_send_full(struct bw_sender *sender);
struct bw_error *bw_send_incremental(struct bw_sender *sender);

#endif
