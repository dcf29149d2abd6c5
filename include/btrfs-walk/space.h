/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Space: how full the chunks are, how the devices are used, and the sums of both; the owners of
 * addresses; sharing between subvolumes; sizes and compression of files. All sizes and offsets are
 * in bytes. Block groups are read from the block group tree or from the extent tree; struct
 * bw_device_map inverts the chunk tree.
 */
#ifndef BTRFS_WALK_SPACE_H
#define BTRFS_WALK_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/format.h"
#include "btrfs-walk/fs.h"
#include "btrfs-walk/inode.h"
#include "btrfs-walk/record.h"
#include "btrfs-walk/subvolume.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The kinds of data that a chunk is for, as btrfs-progs call them: "Data", "Metadata", "System",
 * "Data+Metadata"; "Remap" for the blocks of the remap tree; "unknown". `type` is that of struct
 * bw_chunk_info. */
const char *bw_chunk_type_name(uint64_t type);

/** Bytes of a device that a stripe of a chunk occupies. */
uint64_t bw_chunk_stripe_length(const struct bw_chunk_info *chunk);

/** The number of stripes of a chunk with different data; the others are copies or parity. */
unsigned bw_chunk_different_stripes(const struct bw_chunk_info *chunk);

/** Block groups, which record how much of each chunk is used. One thread at a time may use it. */
struct bw_block_groups;

/** The block group of a chunk. Source: struct btrfs_block_group_item in the kernel's
 * uapi/linux/btrfs_tree.h. */
struct bw_block_group_info {
    uint64_t logical, length; /**< of its chunk */
    uint64_t used;            /**< bytes of data or tree blocks in it, each counted once */
    uint64_t flags;           /**< BW_GROUP_* */
    uint64_t reserved[4];     /**< zeros: room for more members */
};

/** Makes block groups ready to be looked up; reads nothing. The caller owns `*groups`, which the
 * file system must outlive. */
struct bw_error *bw_block_groups_open(struct bw_fs *fs, struct bw_block_groups **groups);

/** Finds the block group at a logical address. This reads one leaf, or none if the previous block
 * group was in the same leaf: so ascending addresses are fast. BW_ERROR_NOT_FOUND if the block
 * group does not exist; BW_ERROR_CORRUPT if it may be lost; the damage is reported. */
struct bw_error *bw_block_groups_find(struct bw_block_groups *groups, uint64_t logical,
                                      struct bw_block_group_info *group);

/** Frees it; NULL is allowed. */
void bw_block_groups_close(struct bw_block_groups *groups);

/** The use of a range of a device. */
enum bw_device_use {
    BW_USE_CHUNK,       /**< a stripe of a chunk lies there */
    BW_USE_UNALLOCATED, /**< nothing */
    BW_USE_RESERVED,    /**< the first MiB, in which nothing is allocated */
    BW_USE_SUPERBLOCK,  /**< a copy of the superblock; only bw_device_map_find() distinguishes it */
    BW_USE_OUTSIDE,     /**< after the end of the device; only from bw_device_map_find() */
};

/** A range of a device. */
struct bw_device_range {
    uint64_t devid, offset;
    uint64_t length; /**< offset + length does not overflow */
    enum bw_device_use use;
    /*
     * With BW_USE_CHUNK: the chunk.
     */
    unsigned stripe; /**< which of its stripes it is, counted from 0 */
    unsigned stripe_count;
    uint64_t logical, chunk_length;
    uint64_t type; /**< BW_GROUP_* */
    const char *profile;
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** The use of all devices, from the chunk tree. It does not change: any number of threads may use
 * it. */
struct bw_device_map;

/** Reads the chunk tree and sorts it by devices. The caller owns `*map`, which the file system must
 * outlive. Unreadable parts of the chunk tree, and overlapping stripes, are reported. */
struct bw_error *bw_device_map_open(struct bw_fs *fs, struct bw_device_map **map);

/** Frees it; NULL is allowed. */
void bw_device_map_close(struct bw_device_map *map);

/** How many ranges there are. */
size_t bw_device_map_count(const struct bw_device_map *map);

/** A range by its number, ascending by devid and offset. They cover each device without gaps from
 * its beginning to its end. */
const struct bw_device_range *bw_device_map_range(const struct bw_device_map *map, size_t number);

/** The use of a device at one offset. */
struct bw_device_place {
    enum bw_device_use use;
    const struct bw_device_range *range; /**< the range with the offset; NULL: outside of the device
                                          */
    uint64_t length;  /**< bytes from the offset on to which the other members apply */
    uint64_t logical; /**< logical address that lies there; of parity, the lowest one of the bytes
                         that it protects */
    unsigned copy;    /**< number of the copy, as for bw_fs_map(); 0: it is none, so `logical` means
                         nothing unless it is parity */
    unsigned parity;  /**< 1: P, 2: Q; 0: it is no parity */
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** Finds the use of a device at an offset; `length` (at least 1) limits place->length. Reads
 * nothing, except the raid stripe tree for data that it maps. If stripes overlap, the last one
 * counts. BW_ERROR_NOT_FOUND if the device does not exist. */
struct bw_error *bw_device_map_find(const struct bw_device_map *map, uint64_t devid,
                                    uint64_t offset, uint64_t length,
                                    struct bw_device_place *place);

/*
 * The space in use: which ranges of a device a copy of it needs, with all copies and parity.
 *
 * A range is in use if the extent tree has it, or the free space tree does not list it as free, or
 * a tree of the file system or of its log refers to it. If neither of the first two can be read,
 * the whole chunk is in use. So damage adds to the ranges in use, and never removes any.
 */

/** The contents of a range of a device. */
enum bw_used_kind {
    BW_USED_SUPERBLOCK, /**< a copy of the superblock, or the zones of its log */
    BW_USED_RESERVED,   /**< the first MiB; boot loaders may be there */
    BW_USED_SYSTEM, /**< chunks of the chunk tree and of the remap tree, which are in use as a whole
                     */
    BW_USED_LOG,    /**< tree blocks and data of the log, which no other tree refers to */
    BW_USED_METADATA,
    BW_USED_DATA,
    BW_USED_HISTORY, /**< added by the caller, and otherwise free or unallocated */
    BW_USED_PARITY,
    BW_USED_FREE,        /**< nothing, in a chunk */
    BW_USED_UNALLOCATED, /**< nothing, in no chunk; also after the end of the device */
    BW_USED_KINDS,
};

/** "superblock", "reserved", ... */
const char *bw_used_kind_name(enum bw_used_kind kind);

/** A range of a device. */
struct bw_used_range {
    uint64_t devid, offset, length;
    enum bw_used_kind kind;
    bool in_use; /**< a copy needs it: also free space that parity covers together with space in
                    use, or of a seed device, and unallocated space if chunks may be unknown because
                    the chunk tree is damaged */
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** How to find the ranges in use. */
struct bw_used_options {
    size_t struct_size; /**< sizeof(struct bw_used_options) */
    /** Also reads all files, in case that the extent tree lacks their data. */
    bool files;
    unsigned threads; /**< 0: one for each processor */
    /** Called repeatedly; false ends the search with BW_ERROR_STOPPED. May be NULL. */
    bool (*progress)(void *context);
    void *context; /**< of `progress` */
    bool is_quiet; /**< do not report that the extent tree is incomplete */
};

/** The space in use. Once ranges of a device have been passed on and until a range is added, any
 * number of threads may use it. */
struct bw_used_map;

/** Reads the extent tree, the free space tree, and the nodes of all trees. Takes 16 bytes of memory
 * for each run of space in use without a gap. Lost blocks are reported. `options` may be NULL. The
 * caller owns `*map`, which the file system must outlive. */
struct bw_error *bw_used_map_open(struct bw_fs *fs, const struct bw_used_options *options,
                                  struct bw_used_map **map);

/** Frees it; NULL is allowed. */
void bw_used_map_close(struct bw_used_map *map);

/** Marks a range of logical addresses as in use, like blocks of older generations. */
struct bw_error *bw_used_map_add(struct bw_used_map *map, uint64_t logical, uint64_t length);

/** The same for a range of a device, like data in a chunk that only an older generation has. */
struct bw_error *bw_used_map_add_device(struct bw_used_map *map, uint64_t devid, uint64_t offset,
                                        uint64_t length);

/** Receives a range; the view ends with the call. An error ends the iteration and is returned. */
typedef struct bw_error *bw_used_visitor(void *context, const struct bw_used_range *range);

/** Passes on all ranges of a device, ascending and without gaps, from its beginning to the end of
 * its image, or of the device if that is missing. Reads nothing, except the raid stripe tree.
 * BW_ERROR_NOT_FOUND if the device does not exist. */
struct bw_error *bw_used_map_device(struct bw_used_map *map, uint64_t devid, bw_used_visitor *visit,
                                    void *context);

/** All chunks of one type and profile. Raw sizes count each copy and parity. */
struct bw_usage_group {
    uint64_t type; /**< BW_GROUP_*: what they are for, and the profile */
    const char *profile;
    uint64_t size, used, raw_size, raw_used;
    uint64_t chunks;
    bool complete; /**< the block groups of all of them could be read; otherwise `used` is
                      a lower bound */
    uint64_t incomplete_chunks; /**< chunks in use that the missing devices make incomplete */
    uint64_t unwritable;  /**< unused bytes of chunks that a mount does not write to: they lie on
                             seed devices, or miss too many devices */
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** A device and its allocated space. */
struct bw_usage_device {
    struct bw_device_info info; /**< its path lives as long as the file system */
    uint64_t allocated;         /**< the sum of `by_group` */
    int64_t unallocated;        /**< negative only if the file system is damaged */
    uint64_t slack;             /**< bytes of its image that the file system does not use */
    const uint64_t *by_group;   /**< for each group, its bytes on this device */
    uint64_t incomplete_chunks; /**< of a missing device: chunks in use that are incomplete and have
                                     a stripe on it */
    uint64_t reserved[3];       /**< zeros: room for more members */
};

/** The sums of `btrfs filesystem usage`. Space that is unusable until a zone is reset is not known.
 */
struct bw_usage {
    uint64_t device_size;    /**< of all devices but seeds */
    uint64_t allocated;      /**< raw size of all groups */
    int64_t unallocated;     /**< negative if seed devices, whose groups count, outweigh it */
    uint64_t missing, slack; /**< size of the missing devices; slack of all */
    uint64_t used;           /**< raw */
    uint64_t free_estimated; /**< room for data: unused in its chunks, and what chunks of the
                                profile that the kernel chooses can still take of the devices */
    uint64_t free_minimum;   /**< the same, unallocated space by the worst ratio of all groups, if
                                that is less */
    double data_ratio;       /**< raw size to size; 0 without such chunks */
    double metadata_ratio;   /**< likewise */
    bool several_profiles;   /**< one kind of data has chunks of more than one profile */
    bool complete;           /**< whether all groups are complete */
    const struct bw_usage_group *groups; /**< data, metadata, system; then by profile */
    size_t group_count;
    const struct bw_usage_device *devices; /**< by ascending id */
    size_t device_count;
    uint64_t chunks, incomplete_chunks; /**< of all groups */
    uint64_t global_reserve; /**< metadata space that a mount sets aside, by the sizes of trees */
    uint64_t reserved[1];    /**< zeros: room for more members */
};

/** Adds up the usage of a file system. Unreadable parts are reported. The caller owns `*usage` and
 * frees it with bw_usage_free(). */
struct bw_error *bw_fs_usage(struct bw_fs *fs, struct bw_usage **usage);

/** Frees it; NULL is allowed. */
void bw_usage_free(struct bw_usage *usage);

/*
 * The loss of devices: its consequences for chunks and files. The devices are lost in addition to
 * the missing ones. A stale device counts as present.
 */

/** The chunks in use of one type and profile. Bytes are those in use, without copies and parity. */
struct bw_device_loss_group {
    uint64_t type; /**< BW_GROUP_*: what they are for, and the profile */
    const char *profile;
    uint64_t chunks, used;
    uint64_t exposed_chunks, exposed; /**< in chunks that had redundancy, and now lack it for some
                                         bytes: one more fault there loses data */
    uint64_t lost_chunks, lost;       /**< chunks with lost bytes; bytes that cannot be read */
    bool complete; /**< their block groups could be read; otherwise, bytes are lower bounds */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** A regular file of which something cannot be read. */
struct bw_lost_file {
    const struct bw_subvolume *subvolume;
    uint64_t inode;
    struct bw_bytes path; /**< absolute path, raw bytes; data is NULL if it is not known */
    uint64_t size;        /**< of the file, in bytes */
    uint64_t bytes, lost; /**< bytes of its contents without holes; lost bytes among them */
    bool metadata_lost;   /**< tree blocks with its inode or its extents are lost */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Receives a file, once for each of its names; the view ends with the call. An error ends the
 * search and is returned. */
typedef struct bw_error *bw_lost_file_visitor(void *context, const struct bw_lost_file *file);

/** The lost devices. */
struct bw_device_loss_options {
    size_t struct_size;     /**< sizeof(struct bw_device_loss_options) */
    const uint64_t *devids; /**< of present or missing devices */
    size_t count;
    bw_lost_file_visitor *visit; /**< receives files; NULL: they are only counted */
    void *context;
};

/** The sums. */
struct bw_device_loss {
    const struct bw_device_loss_group *groups; /**< data, metadata, system; then by profile */
    size_t group_count;
    /** Whether tree blocks are lost. Files that only they make unreachable, because the names in a
     * directory are lost, do not count below. */
    bool metadata_lost;
    /** Whether blocks of the chunk tree or the root tree are lost: then all files count as lost. */
    bool nothing_readable;
    /** Regular files with a name; a file counts again in each snapshot. All files, files with a
     * loss, and files of which nothing is left. All are 0 if nothing is lost: then the trees of the
     * subvolumes are not read. */
    uint64_t files, affected_files, lost_files;
    uint64_t reserved[8]; /**< zeros: room for more members */
};

/** Finds out what the loss of devices would destroy. Reads the block groups; if anything is lost,
 * also the trees of all subvolumes. Unreadable parts are reported. The caller owns `*loss` and
 * frees it with bw_device_loss_free(). BW_ERROR_NOT_FOUND if a device does not exist. */
struct bw_error *bw_fs_device_loss(struct bw_fs *fs, const struct bw_device_loss_options *options,
                                   struct bw_device_loss **loss);

/** Frees it; NULL is allowed. */
void bw_device_loss_free(struct bw_device_loss *loss);

/** Space in bytes, as statfs(2) returns it on a mount. */
struct bw_space {
    uint64_t size, free;  /**< of all devices, without further copies; parity counts as space */
    uint64_t available;   /**< for data; 0 if no metadata can be written any more */
    uint64_t reserved[5]; /**< zeros: room for more members */
};

/** Computes space as the kernel does, from the usage of the file system. Fails only if memory runs
 * out. */
struct bw_error *bw_fs_space(const struct bw_fs *fs, const struct bw_usage *usage,
                             struct bw_space *space);

/*
 * Maps of space: devices divided into cells of equal size, and the use of each cell, for pictures.
 * The cells are counted while the trees are read, so the memory depends on the number of cells and
 * chunks, not of extents. Copies and parity count.
 */

struct bw_fs;

/** The contents of a chunk. */
enum bw_space_kind {
    BW_SPACE_DATA,
    BW_SPACE_METADATA,
    BW_SPACE_SYSTEM, /**< also unknown types */
    BW_SPACE_MIXED,  /**< data and metadata in the same chunks */
    BW_SPACE_KINDS,
};

/** In which order space lies in a map. */
enum bw_space_order {
    BW_SPACE_PHYSICAL, /**< as on the devices, one after the other */
    /** Chunks by ascending logical address, each as long as all its stripes together; then the
       unallocated space. */
    BW_SPACE_LOGICAL,
};

/** How much of a cell is in use. */
enum bw_space_detail {
    /** As much as of its chunk: reads the block groups only. Cells have no generation and no owner.
     */
    BW_SPACE_CHUNKS,
    /** Reads the extent tree. In chunks with several stripes, each extent is spread evenly over all
       of them, which is exact except for the length of a stripe in each row. */
    BW_SPACE_EXTENTS,
};

enum {
    BW_SPACE_MOST_CELLS = 1 << 22, /**< of a map */
};

/** What to map. */
struct bw_space_map_options {
    size_t struct_size; /**< sizeof(struct bw_space_map_options) */
    enum bw_space_order order;
    enum bw_space_detail detail;
    size_t cells;   /**< of an area; a quarter of it, or a quarter of that, if all areas would have
                       more than BW_SPACE_MOST_CELLS; 0: 4096, a square of 64 by 64 */
    bool by_device; /**< each device is a separate area; only with BW_SPACE_PHYSICAL */
    uint64_t devid; /**< only this device, likewise; 0: all */
};

/** A map. It does not change: any number of threads may use it. */
struct bw_space_map;

/** The use of a cell. */
struct bw_space_cell {
    uint64_t offset, bytes;             /**< where it lies in its area */
    uint64_t allocated[BW_SPACE_KINDS]; /**< to chunks; the sum is at most `bytes` */
    uint64_t used;                      /**< not more than allocated */
    double fill;                        /**< used / bytes, not rounded; 0 if there are no bytes */
    uint64_t generation;                /**< mean generation of the used bytes; 0: unknown */
    uint64_t owner; /**< a tree that owns more than half of the used bytes, otherwise any of the
                       owners; 0: unknown */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Cells that follow each other. */
struct bw_space_area {
    uint64_t devid;       /**< 0: all devices */
    uint64_t bytes;       /**< size of the device, or of all */
    size_t cell_count;    /**< may be more than there are bytes */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** A tree, and how much it owns by the references in the extent tree. If several trees refer to an
 * extent, one of them owns it: a subvolume that can be written, rather than a read-only snapshot,
 * and of these the oldest one. */
struct bw_space_owner {
    uint64_t id;    /**< of the tree; 0: unknown */
    uint64_t bytes; /**< that count for cells */
};

/** Sums of a map. */
struct bw_space_map_info {
    uint64_t bytes; /**< of all areas */
    uint64_t allocated[BW_SPACE_KINDS], used[BW_SPACE_KINDS];
    uint64_t oldest, newest; /**< generations of used space; 0: unknown */
    const struct bw_space_area *areas;
    size_t area_count;
    const struct bw_space_owner *owners; /**< the largest first */
    size_t owner_count;
    uint64_t reserved[8]; /**< zeros: room for more members */
};

/** Makes a map. Unreadable parts are reported, and count as unused. If chunks overlap on a device,
 * the first one counts. The caller owns `*map`, which does not need the file system any more.
 * BW_ERROR_NOT_FOUND if the device does not exist; BW_ERROR_USAGE if the options are wrong, or for
 * send streams. */
struct bw_error *bw_space_map_open(struct bw_fs *fs, const struct bw_space_map_options *options,
                                   struct bw_space_map **map);

/** Frees it; NULL is allowed. */
void bw_space_map_close(struct bw_space_map *map);

/** Sums, as long as the map. */
const struct bw_space_map_info *bw_space_map_info(const struct bw_space_map *map);

/** A cell of an area, by its number, which is below the `cell_count` of the area. */
struct bw_space_cell bw_space_map_cell(const struct bw_space_map *map, size_t area, size_t number);

/*
 * Free ranges: space whose contents no file shows. It may contain older versions of files, and
 * deleted ones.
 */

/** Why no file shows a range. */
enum bw_free_kind {
    BW_FREE_SPACE,        /**< no extent, in a chunk that is in use */
    BW_FREE_UNUSED,       /**< a chunk without any extent */
    BW_FREE_HIDDEN,       /**< part of an extent that no file shows */
    BW_FREE_PREALLOCATED, /**< part of an extent that files show as zeros */
    BW_FREE_UNALLOCATED,  /**< of a device: no chunk */
    BW_FREE_KINDS,
    BW_FREE_ALL = (1 << BW_FREE_KINDS) - 1, /**< the bits of all kinds */
};

/** "free", "unused", "hidden", "preallocated", "unallocated"; ends with NULL. */
extern const char *const bw_free_kind_names[];

/** A free range. */
struct bw_free_range {
    enum bw_free_kind kind;
    uint64_t length;        /**< in bytes */
    uint64_t logical;       /**< address; not with BW_FREE_UNALLOCATED */
    uint64_t devid, offset; /**< only with BW_FREE_UNALLOCATED: where it is */
    uint64_t reserved[2];   /**< zeros: room for more members */
};

/** Receives a range, which ends with the call. An error ends the listing and is returned. */
typedef struct bw_error *bw_free_visitor(void *context, const struct bw_free_range *range);

/** Which ranges to list. */
struct bw_free_options {
    size_t struct_size; /**< sizeof(struct bw_free_options) */
    unsigned kinds;     /**< bits of enum bw_free_kind; 0: all */
    bw_free_visitor *visit;
    void *context;
};

/** Lists free ranges: those of chunks by logical address, then those of devices. A range is free if
 * bw_used_map_open() does not find it in use. Lost blocks are reported: data that only they show
 * count as hidden, and so does everything in a chunk whose free space is unknown. BW_ERROR_USAGE
 * for send streams. */
struct bw_error *bw_free_ranges(struct bw_fs *fs, const struct bw_free_options *options);

/** Reads a free range. The offsets of the parts begin with 0; holes of an image file are holes.
 * Nothing verifies the contents. */
struct bw_error *bw_free_read(struct bw_fs *fs, const struct bw_free_range *range,
                              bw_data_visitor *visit, void *context);

/*
 * Owners: which files have data at a logical address, in which subvolumes and under which paths;
 * and which files depend on a tree block.
 *
 * The search follows the back references of the extent tree, so it reads only blocks that lead to
 * an owner. If the extent tree is damaged, or if that is cheaper, it reads all trees instead, each
 * block once, with the same result.
 */

/** The use of an address. */
enum bw_owner_kind {
    BW_OWNER_DATA,     /**< data of a file */
    BW_OWNER_METADATA, /**< a tree block that a file depends on: it has, or leads to, its items */
    BW_OWNER_BLOCK,    /**< a tree block: reported once, however many files depend on it */
    BW_OWNER_HIDDEN,   /**< part of an extent that is in use, but no file shows this part */
    BW_OWNER_FREE,     /**< nothing, in a block group that is in use */
    BW_OWNER_UNUSED,   /**< nothing, and so is the whole block group */
    BW_OWNER_OUTSIDE,  /**< no chunk holds the address */
};

/** "data", "metadata", "block", "hidden", "free", "unused", "outside". */
const char *bw_owner_kind_name(enum bw_owner_kind kind);

/** A range of logical addresses, in bytes. */
struct bw_address_range {
    uint64_t logical, length;
};

/** An owner of a range, under one of its paths. */
struct bw_owner {
    enum bw_owner_kind kind;
    size_t range;     /**< number of the requested range */
    uint64_t logical; /**< beginning of the part of that range that it owns, or of the tree block */
    uint64_t length;  /**< bytes from there on */
    uint64_t extent;  /**< address at which the extent or the tree block begins; not for the
                           kinds after BW_OWNER_BLOCK */
    uint64_t tree; /**< id of the tree: a subvolume, or another tree with data; of a BW_OWNER_BLOCK,
                      the tree that the block was written for */
    uint64_t inode;  /**< in that tree; for data and metadata only */
    uint64_t offset; /**< data: offset in the file, in bytes; for a compressed extent, of the range
                        that the extent stores */
    uint64_t file_length;                 /**< data: bytes of the file from there on */
    const struct bw_subvolume *subvolume; /**< NULL: the tree is not a subvolume */
    struct bw_bytes path; /**< absolute path, raw bytes; data is NULL if it is not known, as in
                               a subvolume that is being deleted */
    uint8_t level;        /**< metadata and blocks: level of the block; 0 is a leaf */
    bool has_key;         /**< `key` is known */
    struct bw_key key;    /**< metadata and blocks: first key of the block */
    uint64_t reserved[6]; /**< zeros: room for more members */
};

/** Receives an owner, a view that ends with the call. An error ends the search and is returned. */
typedef struct bw_error *bw_owner_visitor(void *context, const struct bw_owner *owner);

/** The ranges, and how to search. */
struct bw_owner_options {
    size_t struct_size;                    /**< sizeof(struct bw_owner_options) */
    const struct bw_address_range *ranges; /**< in any order; may overlap; no length is 0 */
    size_t count;
    bool whole_extents;  /**< also files that use another part of an extent in a range; offset and
                            file_length then describe that part */
    bool no_paths;       /**< do not look for paths: each owner comes once, without one */
    bool no_extent_tree; /**< read all trees in any case */
    const struct bw_subvolume *subvolume; /**< only owners in this one; NULL: in all */
    bw_owner_visitor *visit;              /**< receives owners */
    void *context;
};

/**
 * Finds the owners of ranges. Data and metadata come first, by tree and in the order of keys, once
 * for each name of a file; then tree blocks, then unowned ranges, both by address. With `subvolume`
 * set, only data and metadata.
 *
 * Unreadable parts are reported. Files that depend on a lost leaf are found by their names in
 * directories. BW_ERROR_USAGE if a range is empty or wraps; the error of `visit`.
 */
struct bw_error *bw_owners_find(struct bw_fs *fs, const struct bw_owner_options *options);

/*
 * Sharing between subvolumes: the bytes that each of them references, the bytes that nothing else
 * references, and the bytes that deleting several of them together would free. Whole data extents,
 * as stored, and tree blocks count, each once, as in quota groups; but the numbers come from the
 * trees, so quotas are not needed.
 */

/** The subvolumes of a file system with their shared space. It does not change: any number of
 * threads may use it. */
struct bw_shares;

/** Options of bw_shares_open(). Begins with its size, so that it can grow. */
struct bw_shares_options {
    size_t struct_size; /**< sizeof(struct bw_shares_options), set by the caller */
    unsigned threads;   /**< that read; 0: one for each processor, at most 8 */
    /** Called now and then in the thread of the caller; false ends the work with
     * BW_ERROR_STOPPED. NULL: nothing. */
    bool (*progress)(void *context);
    void *context; /**< of `progress` */
};

/** How the numbers came about. */
struct bw_shares_info {
    uint64_t blocks;      /**< tree blocks of subvolumes that were read, each once */
    uint64_t lost_blocks; /**< tree blocks that could not be read: everything below them is missing,
                             and all numbers are lower bounds */
    uint64_t sets;        /**< different sets of subvolumes that share something */
    bool by_extent_tree;  /**< sharing was read from the extent tree; false: that is incomplete */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** A subvolume. */
struct bw_subvolume_space {
    uint64_t id;
    bool is_deleted;      /**< it is being deleted; others do not share with it any more */
    uint64_t referenced;  /**< bytes that it reaches; if it is being deleted, only bytes that no
                             remaining subvolume reaches */
    uint64_t exclusive;   /**< bytes that only it reaches */
    uint64_t lost_blocks; /**< tree blocks that it reaches and that cannot be read */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Several subvolumes together. */
struct bw_shares_sum {
    uint64_t referenced;  /**< bytes that at least one of them reaches */
    uint64_t exclusive;   /**< bytes that only they reach: deleting all of them frees these */
    uint64_t lost_blocks; /**< tree blocks that at least one of them reaches and that cannot be
                               read */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** All subvolumes with ids from `first` to `last`; those that are being deleted are included only
 * if `are_deleted`. */
struct bw_subvolume_range {
    uint64_t first, last;
};

/** The space that exactly these subvolumes share: each of them references it, and no other one. */
struct bw_shared_set {
    uint64_t bytes;
    uint64_t subvolume_count;
    const struct bw_subvolume_range *ranges; /**< the subvolumes, ascending */
    size_t range_count;
    bool are_deleted;     /**< all of them are being deleted */
    uint64_t reserved[4]; /**< zeros: room for more members */
};

/** Reads the extent tree and the trees of all subvolumes, each block once however many snapshots
 * share it. Each extent or tree block with several references takes some 36 bytes of memory, or 76
 * if the extent tree is incomplete; all others take little. Unreadable parts are reported, and at
 * the end also how much of which subvolumes is affected. The caller owns `*shares`, which does not
 * need the file system any more. Fails if memory runs out, or with BW_ERROR_STOPPED. */
struct bw_error *bw_shares_open(struct bw_fs *fs, const struct bw_shares_options *options,
                                struct bw_shares **shares);

/** Frees it; NULL is allowed. */
void bw_shares_close(struct bw_shares *shares);

/** How the numbers came about. */
void bw_shares_get(const struct bw_shares *shares, struct bw_shares_info *info);

/** The subvolume with an id; NULL if it does not exist. It belongs to `shares`. */
const struct bw_subvolume_space *bw_shares_subvolume(const struct bw_shares *shares, uint64_t id);

/** Adds up subvolumes; an id may be given twice. BW_ERROR_NOT_FOUND if there is no subvolume with
 * one of the ids. */
struct bw_error *bw_shares_of(const struct bw_shares *shares, const uint64_t *ids, size_t count,
                              struct bw_shares_sum *sum);

/** Receives a set; the view ends with the call. An error ends the iteration and is returned. */
typedef struct bw_error *bw_shared_set_visitor(void *context, const struct bw_shared_set *set);

/** Passes all sets to `visit`: the largest first, and of equal ones the one with the lowest id.
 * Subvolumes that share nothing with others are sets as well. */
struct bw_error *bw_shares_sets(const struct bw_shares *shares, bw_shared_set_visitor *visit,
                                void *context);

/*
 * The space used by the data of files, and how much of it is shared: the numbers of `btrfs
 * filesystem du`.
 *
 * They count the used parts of extents, in bytes of the files: not the stored size of compressed
 * extents, not the unused rest of extents, and no metadata, so files with inline data have 0. Data
 * are shared if their extent has several references in the extent tree, also from the same file, or
 * if a tree block on the path to them is shared with a snapshot. Source:
 * btrfs_is_data_extent_shared() in the kernel's fs/btrfs/backref.c.
 */

struct bw_selection;

/** A file or a directory. The path is valid during the call only. */
struct bw_du_entry {
    const char *path; /**< as in struct bw_entry (walk.h): raw bytes, not terminated */
    size_t path_length;
    struct bw_place place;
    uint64_t depth;     /**< below the start; 0: the start itself */
    uint64_t files;     /**< files that are counted in it; 1 for a file */
    uint64_t total;     /**< bytes; of a directory, the sum of all files in it */
    uint64_t exclusive; /**< of those, the bytes that are not shared */
    uint64_t shared; /**< shared bytes; the sum of both is less than `total` if the sharing of some
                        data is unknown */
    uint64_t set_shared; /**< of the start: its shared bytes; bytes that files in it share with each
                            other count once. 0 for other entries */
    bool sharing_known;  /**< `exclusive`, `shared` and `set_shared` are known: there is an extent
                            tree */
    uint64_t shared_id;  /**< of a file: a hash of the addresses of its shared bytes, 0 if it has
                            none. Files with the same id share all of them with each other */
    uint64_t extent_count; /**< pieces of files on the disk: parts of extents that follow each other
                              in a file and by logical address are one, as in filefrag(8) */
    uint64_t disk; /**< stored bytes of the extents, whole and compressed, each once for a file */
    const struct bw_inode *inode; /**< of a file, if bw_du_options.inodes is set; NULL if the inode
                                     is lost, and of directories */
};

/** Receives an entry. An error ends the work and is returned. */
typedef struct bw_error *bw_du_visitor(void *context, const struct bw_du_entry *entry);

/** The files to count, and the function that receives the result. */
struct bw_du_options {
    size_t struct_size; /**< sizeof(struct bw_du_options) */
    /** Where paths begin, and where to start, as in struct bw_walk_options. */
    const char *subvolume, *start;
    /** Conditions that files must meet to be counted, unchanged during the call; NULL: none. With
     * conditions, directories without counted files are omitted. */
    const struct bw_selection *selection;
    bool has_maxdepth; /**< whether `maxdepth` is used */
    unsigned maxdepth; /**< deeper entries are counted, but not passed to `visit` */
    bw_du_visitor *visit;
    void *context;     /**< passed to `visit` */
    unsigned mindepth; /**< entries less deep are counted, but not passed to `visit` */
    unsigned nested;   /**< enum bw_nested (walk.h): whether subvolumes below `start` are entered */
    bool sizes_only;   /**< do not read which extents are shared: `sharing_known` is false */
    bool no_snapshots; /**< exclude snapshots below `start`, with everything in them */
    bool inodes;       /**< pass the inodes of files on */
};

/**
 * Counts a file, or everything below a directory. Regular files and directories are passed on in
 * the order of readdir(3), a directory after its contents, and a file with several names once,
 * under the first of them. All entries are kept in memory until the trees have been read.
 *
 * Losses are reported, and make the sizes lower bounds. BW_ERROR_NOT_FOUND if the start does not
 * exist, BW_ERROR_USAGE if the options are wrong, BW_ERROR_NO_MEMORY, or the error of `visit`.
 */
struct bw_error *bw_du(struct bw_fs *fs, const struct bw_du_options *options);

/*
 * How well the contents of files are compressed, and what partly overwritten extents waste: the
 * numbers of compsize(8).
 *
 * An extent is counted once, as a whole, even if several files use parts of it. References and
 * data that lie inside the tree are counted for each name of a file. Metadata, copies and parity
 * are not counted.
 */

/** Bytes of extents. */
struct bw_compression_sizes {
    uint64_t disk;         /**< stored bytes */
    uint64_t uncompressed; /**< bytes of the same extents, decompressed */
    uint64_t referenced;   /**< bytes of these that files use; a part counts for each name and file
                              that uses it */
    uint64_t reserved[2];  /**< zeros: room for more members */
};

/** Kinds of extents: the types of enum bw_compression, and preallocated space that was never
 * written. */
enum {
    BW_COMPRESSION_PREALLOC = BW_COMPRESS_TYPES,
    BW_COMPRESSION_KINDS,
};

/** Name of a kind ("zstd", "prealloc"); NULL if the number is invalid. */
const char *bw_compression_kind_name(unsigned type);

/** The sums over all files. */
struct bw_compression_info {
    uint64_t files;      /**< names of regular files */
    uint64_t extents;    /**< different extents */
    uint64_t references; /**< to those */
    uint64_t inlined;    /**< extents that lie inside the tree */
    struct bw_compression_sizes total;
    struct bw_compression_sizes types[BW_COMPRESSION_KINDS]; /**< by number of the kind */
    uint64_t reserved[16];                                   /**< zeros: room for more members */
};

/** The files to count. One thread at a time may use it. */
struct bw_compression_count;

/** Which files count. With struct_size alone: all. */
struct bw_compression_options {
    size_t struct_size; /**< sizeof(struct bw_compression_options) */
    /** Conditions that files must meet, unchanged until the end; NULL: none. */
    const struct bw_selection *selection;
    bool has_maxdepth; /**< whether `maxdepth` is used */
    unsigned maxdepth; /**< how many directories to descend; 0: only starts that are files */
    unsigned mindepth; /**< least depth of files below a start */
    unsigned nested;   /**< enum bw_nested (walk.h): whether subvolumes below a start are entered */
    bool no_snapshots; /**< exclude snapshots below a start, with everything in them */
};

/** Begins with no files; `options` may be NULL. The caller owns `*count`, which the file system
 * must outlive. BW_ERROR_USAGE for wrong options, BW_ERROR_NO_MEMORY. */
struct bw_error *bw_compression_open(struct bw_fs *fs, const struct bw_compression_options *options,
                                     struct bw_compression_count **count);

/** Adds a file, or everything below a directory, specified as in struct bw_du_options. Lost blocks
 * are reported. BW_ERROR_NOT_FOUND, BW_ERROR_NO_MEMORY. */
struct bw_error *bw_compression_add(struct bw_compression_count *count, const char *subvolume,
                                    const char *start);

/** The sums of everything that was added; call it once. The number of lost blocks is reported; the
 * sizes are then lower bounds. */
struct bw_error *bw_compression_sum(struct bw_compression_count *count,
                                    struct bw_compression_info *info);

/** Frees it; NULL is allowed. */
void bw_compression_close(struct bw_compression_count *count);

#ifdef __cplusplus
}
#endif
#endif
