/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The open file system as seen by this folder and higher ones, and messages about it. */
#ifndef BW_FS_FS_H
#define BW_FS_FS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/file_set.h"
#include "base/hash_table.h"
#include "base/vector.h"
#include "btree/find_leaf.h"
#include "btree/scan.h"
#include "btrfs-walk/history.h"
#include "btrfs-walk/image.h"
#include "fs/reused_extents.h"
#include "fs/subvolume.h"
#include "graph/graph.h"
#include "ondisk/disk_items.h"

struct bw_block_group_info;
struct bw_block_groups;
struct bw_image;
struct bw_stripe_tree;

struct bw_dir_entry;

/** Receives a name as a directory entry, valid until the call returns. Returns an error to stop. */
typedef struct bw_error *bw_name_visitor(void *context, const struct bw_dir_entry *entry);

/** Replacements for lost blocks, provided by recovery/. All zeros: no recovery. */
struct bw_recovery {
    struct bw_adopter adopter; /**< finds leaves below lost nodes */
    /** Passes the names in a directory that other items contain to `visit`: names of inodes in the
     * order of the inodes, then names of subvolumes. The type is BW_FILE_UNKNOWN if it is lost,
     * too. Skips unreadable items. Callable from any thread, but not from `visit`. Returns the
     * error of `visit`, or BW_ERROR_NO_MEMORY. */
    struct bw_error *(*names)(void *context, const struct bw_subvolume *subvolume,
                              uint64_t directory, bw_name_visitor *visit, void *visit_context);
    void (*destroy)(struct bw_recovery *recovery);
    void *context; /**< `names` receives it. */
};

/** The trees with checksums of data, by number: one, or with the extent-tree-v2 feature several,
 * each for a part of the block groups. Empty if the root tree does not contain them. */
BW_VECTOR(bw_checksum_trees, struct bw_tree);

/** Set by callers that need the partition tables instead of a file system. */
struct bw_table_visit {
    bw_table_visitor *visit;
    void *context;
};

BW_VECTOR(bw_log_inodes, struct bw_log_inode);

struct bw_fs {
    struct bw_graph *graph;
    struct bw_servers *own_servers; /**< created if the user provided none */
    /** Opens this file system again, for another generation; NULL if only its images or its graph
     * are open. */
    struct bw_error *(*reopen)(const struct bw_fs_options *options, struct bw_fs **fs);
    const struct bw_table_visit *tables; /**< NULL unless only partition tables are read */
    bool lists_devices;                  /**< partitions and volumes are all images, and none is
                                            chosen, except by bw_fs_options.devices */
    struct bw_tree_reader reader;        /**< reader.top is NULL until the graph is complete */
    struct bw_block_memory memory;       /**< tree blocks changed by replaying the log */
    struct bw_log_inodes logged;         /**< inodes changed by replaying the log, in order */
    struct bw_superblock superblock;
    struct bw_image *images; /**< the images on the command line, in the order of the graph
                                (image.h) */
    size_t image_count;
    struct bw_tree chunk_tree;
    struct bw_tree root_tree;
    struct bw_tree extent_tree;      /**< id 0 if its root is unknown */
    struct bw_tree block_group_tree; /**< id 0 if its root is unknown, or if block groups are in the
                                      * extent tree */
    struct bw_checksum_trees checksum_trees;
    uint32_t data_checksum;           /**< as in bw_data_expectation.type (checksum_change.c) */
    uint64_t changed_checksums_below; /**< data below this address have their checksums under the
                                       * object id BW_CSUM_CHANGE */
    struct bw_tree stripe_tree;       /**< locations of data; id 0 if its root is unknown */
    struct bw_subvolume_table subvolumes;
    void (*close_below)(void *below); /**< closes the file system that contains the image; may be
                                         NULL */
    void *below;
    struct bw_keys *keys;        /**< They open encrypted volumes. */
    struct bw_file_set inputs;   /**< files that are read, or were opened without being used; never
                                  * written to */
    struct bw_reporter reporter; /**< the user's */
    struct bw_fs_status status;  /**< without `damages` */
    bool ignores_log;            /**< bw_fs_options.log */
    bool scan;                   /**< bw_fs_options.scan */
    bool alternatives;           /**< bw_fs_options.alternatives */
    bool has_wanted_fsid;        /**< bw_fs_options.fsid is set, to `wanted_fsid` */
    uint8_t wanted_fsid[BW_UUID_SIZE];
    uint8_t chunk_tree_uuid[BW_UUID_SIZE];    /**< in all tree blocks, if rescue/ has determined it;
                                               * zeros: unknown */
    enum bw_checksum_kinds ignored_checksums; /**< bw_fs_options.ignore_checksums */
    atomic_uint_fast64_t unverified;          /**< bw_fs_status.unverified */
    struct bw_found_file_system *found;       /**< for bw_fs_found() */
    size_t found_count;
    uint64_t side;                                                  /**< bw_fs_options.side */
    void (*searched)(void *context, uint64_t done, uint64_t total); /**< copied from bw_fs_options
                                                                     */
    void *searched_context;
    struct bw_generation_choice choice; /**< the historic root to open */
    bool is_past;                       /**< it is not the current generation */
    /** The root tree on the disk if parts of it are lost and `root_tree` is a complete one in
     * memory. Without a root: there is none. */
    struct bw_tree damaged_root_tree;
    bool is_remade; /**< the root tree was rebuilt, and leads to the trees of the last commit */
    struct bw_seen_extents reused; /**< data that cannot be read, if the roots of trees in a rebuilt
                                    * root tree are not proven */
    bool is_stream;                /**< made of send streams; their extents need not be aligned */
    bool streams_as_is;            /**< bw_fs_options.streams_as_is */
    struct bw_error *stream_errors; /**< its causes are the errors in the streams; NULL: none */
    bool is_dump; /**< read from a metadump of btrfs-image: see bw_image.is_dump */
    bool no_data; /**< read or restored from a metadump, which overwrites inline data */
    atomic_uint_fast64_t damages;
    pthread_mutex_t lost_lock;
    struct bw_recovery recovery;
    uint64_t seed; /**< Hashes of names depend on it. It is random, so that a crafted image cannot
                    * contain colliding names */
    struct bw_stripe_tree *stripes; /**< NULL without the feature */
    struct bw_key_map lost; /**< addresses of blocks whose loss was reported; protected by lost_lock
                             */
    struct bw_key_map reported; /**< hashes of other messages reported once, and of arguments of
                                 * bw_fs_is_first_warning(); protected by lost_lock */
};

/** The types of checksums that tree blocks may have other than the one that the superblock names: a
 * set of BW_CHECKSUM_BIT(). */
static inline unsigned bw_fs_other_checksums(const struct bw_fs *fs)
{
    if (fs->superblock.flags & BW_SUPER_FLAG_CHANGING_META_CSUM)
        return BW_ALL_CHECKSUMS;
    return fs->no_data ? BW_CHECKSUM_BIT(BW_CHECKSUM_CRC32C) : 0;
}

/** Whether a tool was interrupted while it changed the type of checksums. */
static inline bool bw_fs_changes_checksums(const struct bw_fs *fs)
{
    return fs->superblock.flags &
           (BW_SUPER_FLAG_CHANGING_DATA_CSUM | BW_SUPER_FLAG_CHANGING_META_CSUM);
}

/** The root tree on the disk, as long as it has a root. */
static inline const struct bw_tree *bw_fs_root_tree(const struct bw_fs *fs)
{
    return fs->damaged_root_tree.root.bytenr ? &fs->damaged_root_tree : &fs->root_tree;
}

/** The type of the checksums of data. */
static inline enum bw_checksum_type bw_fs_data_checksum(const struct bw_fs *fs)
{
    return fs->data_checksum ? (enum bw_checksum_type)(fs->data_checksum - 1)
                             : fs->superblock.checksum_type;
}

/** The key of the checksums of data at an address. */
static inline struct bw_key bw_fs_checksum_key(const struct bw_fs *fs, uint64_t logical)
{
    const bool is_changed = logical < fs->changed_checksums_below;
    return (struct bw_key){is_changed ? BW_CSUM_CHANGE : BW_EXTENT_CSUM_OBJECT, BW_EXTENT_CSUM,
                           logical};
}

/** Whether an item of a checksum tree has checksums of data, and is not one of those that an
 * interrupted tool has not yet finished or deleted. */
static inline bool bw_fs_is_data_checksum(const struct bw_fs *fs, const struct bw_key *key)
{
    return key->type == BW_EXTENT_CSUM &&
           key->objectid == bw_fs_checksum_key(fs, key->offset).objectid;
}

/** The size of a checksum in the items with the object id BW_EXTENT_CSUM_OBJECT. */
uint32_t bw_fs_checksum_size(const struct bw_fs *fs);

/** Finds the checksums of data, if a tool was interrupted while it changed their type
 * (checksum_change.c). Call it when data can be read. Fails only if memory runs out. */
struct bw_error *bw_fs_find_data_checksums(struct bw_fs *fs);

/** Reads a block group like bw_block_groups_find(). If it is lost, which is reported, or missing,
 * its length is 0. */
struct bw_error *bw_block_groups_read(struct bw_block_groups *groups, uint64_t logical,
                                      struct bw_block_group_info *group);

/** Reports a message of printf's format, like bw_fs_report() its error. */
void bw_fs_report_text(struct bw_fs *fs, enum bw_severity severity, enum bw_error_code code,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

/** Reports the loss of the block at `bytenr` once, even if several trees or searches encounter it.
 * Consumes the error. Callable from any thread. */
void bw_fs_report_lost(struct bw_fs *fs, uint64_t bytenr, struct bw_error *error);

/** Reports damage. NULL is none, and `error` is returned if memory has run out. */
struct bw_error *bw_fs_report_damage(struct bw_fs *fs, struct bw_error *error);

/** Whether this is the first call for a file, or with inode 0 for a subvolume. For messages that
 * are reported only once. Callable from any thread. */
bool bw_fs_is_first_warning(struct bw_fs *fs, uint64_t tree, uint64_t inode);

/** Reports a message once, even if several walks of a tree encounter it, as in an extraction;
 * messages are compared. Consumes the error. Callable from any thread. */
void bw_fs_report_once(struct bw_fs *fs, enum bw_severity severity, struct bw_error *error);

/** Reports the current loss of an item range, and consumes its error. */
void bw_fs_report_range(struct bw_fs *fs, struct bw_item_range *range);

/** A hash of a name in a directory; different names practically never collide. */
uint64_t bw_fs_name_hash(const struct bw_fs *fs, uint64_t directory, const void *name,
                         size_t length);

/** A reader for single lookups, such as those of names, which read the same leaves repeatedly. */
static inline struct bw_tree_reader bw_fs_name_reader(const struct bw_fs *fs)
{
    struct bw_tree_reader reader = fs->reader;
    reader.keeps_leaves = true;
    return reader;
}

/** Reports an error in a send stream, keeps it for the check, and consumes it. */
void bw_fs_report_stream_error(struct bw_fs *fs, struct bw_error *error);

/** The alignment of extents, for bw_file_extent_decode(): data in send streams begin anywhere. */
static inline uint32_t bw_fs_alignment(const struct bw_fs *fs)
{
    return fs->is_stream ? 1 : fs->superblock.sectorsize;
}

/** The items in a range of keys, or of a whole tree, in the order of the tree. Losses are reported
 * and skipped. */
struct bw_fs_items {
    struct bw_fs *fs;
    struct bw_item_range range;
    const char *scanned; /**< name of the tree that is scanned; NULL: a range is read */
    struct bw_block_scan scan;
    uint32_t slot; /**< of the next item of the scan */
};

/** Starts with the range from `first` to `last`, inclusive. Ended by bw_fs_items_free(). The
 * structure must not be moved. */
void bw_fs_items_begin(struct bw_fs_items *items, struct bw_fs *fs, const struct bw_tree *tree,
                       struct bw_key first, struct bw_key last);

/** Starts with all items of a tree, even if their keys are out of order. Many leaves are read at
 * once. `name` is the name of the tree in messages, valid until the end. The rest is as of
 * bw_fs_items_begin(). */
void bw_fs_items_scan(struct bw_fs_items *items, struct bw_fs *fs, const struct bw_tree *tree,
                      const char *name);

/** The next item, which is valid until the next call; NULL at the end. */
const struct bw_item *bw_fs_items_next(struct bw_fs_items *items);

/** Why the iteration ended before the end of the range: BW_ERROR_NO_MEMORY, or NULL. */
struct bw_error *bw_fs_items_error(struct bw_fs_items *items);

void bw_fs_items_free(struct bw_fs_items *items);

struct bw_usage;

/** The profile that the kernel chooses for new data chunks: of those that data chunks have, the one
 * with the most redundancy that so many devices allow. BW_GROUP_*, 0 for single. */
uint64_t bw_usage_data_profile(const struct bw_usage *usage, size_t device_count);

/** Calls bw_find_leaf(), and reports lost blocks. */
struct bw_error *bw_fs_find_leaf(struct bw_fs *fs, struct bw_leaf_finder *finder,
                                 const struct bw_key *key);

/** Records this folder as the origin of an error, unless a layer created it. Returns the error. */
struct bw_error *bw_fs_set_origin(struct bw_error *error);

#endif
