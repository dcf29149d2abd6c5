/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opening an unmounted btrfs file system from its image files or block devices, and what it
 * consists of: superblocks, devices and chunks. Nothing is ever written to an image.
 *
 * The functions that take an open file system may be called by several threads at once, except for
 * bw_fs_close() and where a header says otherwise.
 */
#ifndef BTRFS_WALK_FS_H
#define BTRFS_WALK_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"
#include "btrfs-walk/graph.h"
#include "btrfs-walk/image.h"
#include "btrfs-walk/probe.h"
#include "btrfs-walk/subvolume.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The choice of a generation. Blocks are never overwritten in place, so tree blocks of older
 * transactions remain on the disk until their space is reused. Each of these generations has its
 * own root tree and chunk tree, and can be opened like a separate file system. Missing parts of an
 * older generation are damage; they are never replaced by parts of another generation.
 */

/** The choice of a generation. All zeros: the current one. At most one of `generation` and
 * `tree_root` may be set. */
struct bw_generation_choice {
    uint64_t generation;           /**< the transaction that committed it */
    uint64_t tree_root;            /**< logical address of the root of its root tree */
    uint64_t tree_root_generation; /**< required generation of that root; 0: any */
    uint64_t chunk_root; /**< logical address of the root of its chunk tree; 0: the chunk tree that
                            the superblock records for this generation, otherwise the current one */
    bool knows_chunk_root; /**< with `tree_root`: if `chunk_root` is 0, the current chunk tree is
                              the right one */
    uint64_t reserved[4];  /**< zeros: room for more members */
};

/** An open file system. */
struct bw_fs;

/** The superblock copy to use. Zero selects the best one, so copy 0 has another number. (-1, the
 * value of 0.2.0 for the best one, is still accepted.) */
enum {
    BW_ANY_SUPERBLOCK_COPY = 0, /**< the newest good one */
    BW_SUPERBLOCK_COPY_1 = 1,
    BW_SUPERBLOCK_COPY_2 = 2,
    BW_SUPERBLOCK_COPY_0 = 3,
    BW_SUPERBLOCK_NUMBERS = 3, /**< the greatest number of copies */
};

/** Handling of a log tree, which contains changes that fsync(2) wrote after the last committed
 * transaction. */
enum bw_log_mode {
    BW_LOG_REPLAY, /**< show them, as a mount would: in memory, nothing is written */
    BW_LOG_IGNORE, /**< show the last transaction, as the mount option rescue=nologreplay */
};

/** A key or passphrase of encrypted volumes. */
struct bw_passkey {
    const void *bytes;
    size_t length; /**< in bytes */
};

/**
 * Asks the user for the passphrase of an encrypted volume, which `volume` names. `attempt` counts
 * from 0. Writes at most `*length` bytes to `passphrase` and sets `*length`; 0: the user has none.
 * An error ends the opening.
 */
typedef struct bw_error *bw_passphrase_source(void *context, const char *volume, unsigned attempt,
                                              char *passphrase, size_t *length);

/** As the members of bw_fs_options with these names, but for a file of bw_fs_options.inside. */
struct bw_inside_choice {
    const char *partition;
    const char *volume;
    uint64_t offset;
    uint64_t reserved[2]; /**< zeros: room for more members */
};

/** Kinds of checksums, for bw_fs_options.ignore_checksums: a set. */
enum bw_checksum_kinds {
    BW_CHECKSUMS_NONE = 0,
    BW_CHECKSUMS_METADATA = 1,
    BW_CHECKSUMS_DATA = 2,
    BW_CHECKSUMS_ALL = 3,
};

/** Changed ranges of an image (repair.h). */
struct bw_patch;

/** How long flipped bits may still be searched for. File systems that are open at the same time or
 * one after the other can share a limit, also those of other processes in shared memory. */
struct bw_search_limit {
    uint64_t nanoseconds;  /**< the time that is left */
    uint64_t not_searched; /**< is increased for each mirror of a tree block or sector that was not
                              searched, because no time was left */
    uint64_t reserved[2];  /**< zeros: room for more members */
};

/** How to open a file system. In all structures with options, zero is the best value of every
 * member except the size and the input. */
struct bw_fs_options {
    size_t struct_size;       /**< sizeof(struct bw_fs_options) */
    const char *const *paths; /**< image files, block devices or addresses of servers (image.h),
                                 in any order; of a folder, the send streams in it are read */
    size_t path_count;        /**< at least 1; may be 0 if a volfile names the images */
    int superblock_copy;      /**< 0: the best one; or another of the numbers above */
    const struct bw_graph_options *graph; /**< NULL: the default graph */
    struct bw_probes *probes; /**< probes and their consumers (probe.h), which must outlive the file
                                 system; NULL: none */
    /** Called before the first image is opened, but after connecting to servers, when the files to
     * read are known. It can open outputs, check them with bw_fs_is_input(), and add consumers to
     * `probes`. An error ends the opening. May be NULL. */
    struct bw_error *(*planned)(void *context, const struct bw_fs *fs);
    void *planned_context;       /**< passed to planned */
    struct bw_reporter reporter; /**< receives warnings and reports of damage; its context must
                                    outlive the file system, its function may be NULL */
    /** The partition of a disk with the file system: its number, name or UUID, or the label or UUID
     * of the file system in it. The first disk with such a partition counts. Other devices of the
     * file system may be partitions of any disk; if two partitions are the same device, the one
     * with the generation of the chosen partition is read. NULL: the only file system in any
     * partition, if the image itself is not a file system. */
    const char *partition;
    /** The logical volume with the file system, as "GROUP/VOLUME" or "VOLUME". NULL: the only one
     * that contains a btrfs. */
    const char *volume;
    uint64_t offset;                   /**< offset of each image, or of its disk, in its file */
    enum bw_log_mode log;              /**< handling of a log tree */
    struct bw_generation_choice state; /**< the generation to open; older ones have no log tree */
    /** If the superblocks, the tree roots or the log tree are lost: search the whole devices for
     * replacements. */
    bool scan;
    struct bw_servers *servers; /**< connections and helpers for images that are not plain files;
                                   must outlive the file system. NULL: only connections to servers,
                                   no helpers */
    /** Called repeatedly, from any thread, if opening the file system has to search whole devices
     * or all metadata. `done` and `total` are bytes. May be NULL. */
    void (*searched)(void *context, uint64_t done, uint64_t total);
    void *searched_context; /**< passed to searched */
    /** Several images of the same device are copies of it, of which each may have bytes that the
     * others lack (cluster/alternatives). Otherwise only the newest one is read. */
    bool alternatives;
    /** For each of the first images, the map file of ddrescue, which lists the ranges that were
     * read from the disk (layout/unread); NULL: none. */
    const char *const *maps;
    size_t map_count;              /**< at most `path_count` */
    bool streams_as_is;            /**< if the images are send streams: open the files only, for
                                      bw_stream_commands() and bw_stream_check() */
    const struct bw_passkey *keys; /**< of encrypted volumes, in the order to try; copied */
    size_t key_count;
    bw_passphrase_source *ask; /**< asks for a passphrase if no key fits; may be NULL */
    void *ask_context;         /**< passed to ask */
    /** Paths of files: the last one is opened as the image. Each is a file of the file system in
     * the previous one, the first one of the file system on the images. `partition`, `volume`,
     * `offset`, `header`, `alternatives`, `maps` and `side` then apply to the images,
     * `inside_choices` to the files, and the other options to the file system in the last one. */
    const char *const *inside;
    size_t inside_count;
    const char *header; /**< file with the header of an encrypted volume, for images that have none
                           and are not recognized; NULL: none */
    /** Bytes of memory that deriving the key of an encrypted volume may use (Argon2); keyslots that
     * need more are not tried. 0: 4 GiB. The limit never exceeds the memory of the machine, and is
     * below 4 GiB. */
    uint64_t key_memory;
    /** The same as searched, with its context, while a compressed image is decompressed; `done` and
     * `total` are bytes of the compressed file. May be NULL. */
    void (*decompressed)(void *context, uint64_t done, uint64_t total);
    /** Work for the keys of an encrypted volume: bytes of memory that all passes of Argon2 may add
     * up to, for all keyslots and keys; a round of PBKDF2 counts as 1 KiB. Keyslots that exceed it
     * are not tried. 0: 1 TiB, about ten minutes. */
    uint64_t key_work;
    /** Also correct a flipped bit of a sector of file data if no mirror of the sector is good. In
     * tree blocks, it is always corrected. Such requests have `corrected` set in their reply
     * (graph.h). */
    bool correct_bits;
    /** Checksums other than CRC-32C do not name a flipped bit. For this time, in seconds, try all
     * bits of copies that are bad. 0: never. */
    unsigned search_seconds;
    /** The fsid of the file system to open (BW_UUID_SIZE bytes); superblocks of other file systems
     * are ignored. If it has no superblock left, as after a mkfs on the same device, it is rebuilt
     * from its tree blocks, which are searched for on the whole devices. If several file systems
     * have the same fsid, those without a superblock are selected by the chunk_tree_uuid of their
     * blocks. NULL: the file system of the superblocks. */
    const uint8_t *fsid;
    /** The blocks to accept with a wrong checksum if no mirror is good: tree blocks that pass all
     * other checks, and data, even if their checksums are missing. Each accepted tree block is
     * reported. */
    enum bw_checksum_kinds ignore_checksums;
    /** If devices have diverged because each was mounted and written to without the other: the
     * devid of one of them. Devices that do not agree with it count as missing and are not read.
     * 0: none; opening such devices together is BW_ERROR_DIVERGED. */
    uint64_t side;
    /** Overlays, as `btrfs-walk repair` writes them: qcow2 files with the changed clusters of the
     * images that they name as their backing files (layout/patch). BW_ERROR_USAGE if a backing file
     * is not among the images. */
    const char *const *overlays;
    size_t overlay_count;
    /** Changed ranges that replace the bytes of devices, as bw_repair_patches() returns them. */
    const struct bw_patch *const *patches;
    size_t patch_count; /**< number of devices with changes */
    /** A limit that the searches of `search_seconds` share with the searches in other file systems.
     * NULL: none. It must exist until bw_fs_close(). */
    struct bw_search_limit *search_limit;
    /** The only devices to use, by the names that bw_fs_list_devices() gives them for the same
     * paths. Then `partition` and `volume` are ignored. BW_ERROR_NOT_FOUND if one does not exist.
     * NULL: all. */
    const char *const *devices;
    size_t device_count;
    /** The partition, the volume and the offset in each file of `inside`; at most `inside_count` of
     * them. */
    const struct bw_inside_choice *inside_choices;
    size_t inside_choice_count;
};

/** Whether the images are send streams, which are shown as a file system. */
bool bw_fs_is_stream(const struct bw_fs *fs);

/** The state of an open file system. */
struct bw_fs_status {
    size_t missing_devices; /**< devices of the file system that were not given */
    size_t unused_images;   /**< images that do not belong to the file system, or have no good
                               superblock; a second image of the same device does not count */
    bool log_tree;          /**< there is a log tree: changes that were fsynced, not committed */
    bool log_replayed;      /**< functions show these changes, as far as the log can be read */
    bool log_is_unknown;    /**< only superblock copy 0 names a log tree, and it is lost: there may
                               be changes that no function shows */
    bool unverified_blocks; /**< tree blocks were accepted although their checksums do not match, so
                               names, attributes and extents may be wrong: see ignore_checksums */
    bool no_contents;       /**< a send stream without file contents (btrfs send --no-data), or a
                               metadump of btrfs-image, also a restored one */
    uint64_t damages;       /**< messages of severity BW_DAMAGE so far */
    uint64_t generation;    /**< of the root tree in use; less than in the superblock if an older
                               generation was chosen, or replaces a lost root tree */
    uint64_t not_searched;  /**< mirrors of tree blocks and sectors that were not searched for a
                               flipped bit, because `search_seconds` had passed */
    uint64_t unverified;    /**< bytes of data that were returned although they do not match their
                               checksums, or these are missing: see ignore_checksums */
    uint64_t corrected_blocks; /**< tree blocks of which a flipped bit was corrected */
    uint64_t reserved[1];      /**< zeros: room for more members */
};

/**
 * Opens a file system: reads the superblocks, the chunk tree and the root tree. On success the
 * caller owns `*fs` and closes it with bw_fs_close().
 *
 * Errors: BW_ERROR_SYSTEM if an image cannot be opened; BW_ERROR_NOT_BTRFS if none has a good
 * superblock; BW_ERROR_NOT_FOUND if a chosen partition, volume, device, generation or file of
 * `inside` does not exist; BW_ERROR_AMBIGUOUS if there are several file systems in partitions and
 * none is chosen, or several partitions are the same device; BW_ERROR_DIVERGED as described at
 * bw_fs_options.side; BW_ERROR_UNSUPPORTED for features that this library cannot read;
 * BW_ERROR_CORRUPT if neither the current chunk or root tree nor an older one can be read, or the
 * chosen generation cannot be read; BW_ERROR_USAGE if the options are wrong or the graph cannot be
 * built.
 */
struct bw_error *bw_fs_open(const struct bw_fs_options *options, struct bw_fs **fs);

/** Opens only the images and finds their superblocks, good or bad; chooses no file system and reads
 * no tree. Use the result with bw_fs_image_count(), bw_fs_image_path(), bw_fs_read_superblock(),
 * bw_fs_copy_superblock(), bw_fs_status() and bw_fs_close(). Errors as bw_fs_open(), except those
 * about the contents of the images. */
struct bw_error *bw_fs_open_images(const struct bw_fs_options *options, struct bw_fs **fs);

/** Opens the images like bw_fs_open_images(), and everything in them that may be a device: each
 * partition of a disk and each volume of a container becomes a separate image, also without a
 * btrfs. No file system is chosen; `partition` and `volume` are ignored. Containers that cannot be
 * opened remain images, with an error in their bw_image_info. */
struct bw_error *bw_fs_list_devices(const struct bw_fs_options *options, struct bw_fs **fs);

/** Closes a file system, after everything that was opened from it; NULL is allowed. */
void bw_fs_close(struct bw_fs *fs);

/** The current status. Later reads may find more damage. */
struct bw_fs_status bw_fs_status(const struct bw_fs *fs);

/** Reads the superblocks again and compares them with those found by bw_fs_open(). If a mount or a
 * program writes to an image at the same time, results may be inconsistent. The error
 * (BW_ERROR_CORRUPT) names the first image with a newer superblock; NULL if no superblock has
 * changed. Call it after the last read. */
struct bw_error *bw_fs_find_change(const struct bw_fs *fs);

/** Sends a message to the reporter of the file system, as the library does, and counts it in its
 * status: for callers whose output is incomplete. Consumes the error. Safe from any thread. */
void bw_fs_report(struct bw_fs *fs, enum bw_severity severity, struct bw_error *error);

/** Number of bytes read from the images so far. */
uint64_t bw_fs_bytes_read(const struct bw_fs *fs);

/** Number of batches of reads that reached the images so far: the round trips to a server. Threads
 * wait for their round trips at the same time. */
uint64_t bw_fs_round_trips(const struct bw_fs *fs);

/** The approximate number of bytes of all tree blocks, from the items of the root tree; with
 * `subvolumes`, of subvolumes only. Shared blocks count for each subvolume, but the sum never
 * exceeds the used bytes of the file system. For estimates of the reading time: damage is skipped
 * and not reported. */
uint64_t bw_fs_tree_bytes(struct bw_fs *fs, bool subvolumes);

/** The same for some trees, by their ids (not NULL); the root tree itself is not counted. */
uint64_t bw_fs_tree_bytes_of(struct bw_fs *fs, const uint64_t *trees, size_t count);

/** A copy of a superblock. Sizes are in bytes, addresses are logical. */
struct bw_superblock_info {
    uint64_t offset;     /**< offset on its device */
    uint64_t generation; /**< transaction that wrote it */
    uint64_t flags;
    uint64_t root, chunk_root, log_root; /**< root blocks; log_root is 0 if there is no log tree */
    uint8_t root_level, chunk_root_level;
    uint64_t chunk_root_generation;
    uint64_t total_bytes, bytes_used; /**< of the whole file system */
    uint64_t device_count;
    uint32_t sectorsize, nodesize;
    uint64_t compat_ro_flags, incompat_flags;
    enum bw_checksum_type checksum_type;
    uint8_t fsid[BW_UUID_SIZE];
    uint8_t metadata_uuid[BW_UUID_SIZE]; /**< the UUID in tree blocks; usually the fsid */
    char label[257];                     /**< raw bytes, ends with NUL */
    uint64_t devid;                      /**< of its device */
    uint64_t device_bytes;               /**< size of that device */
    uint8_t device_uuid[BW_UUID_SIZE];
    uint64_t reserved[8]; /**< zeros: room for more members */
};

/** Name of a bit of bw_superblock_info.incompat_flags ("skinny-metadata"); NULL if it has none. */
const char *bw_incompat_name(unsigned bit);
/** Name of a bit of bw_superblock_info.compat_ro_flags ("free-space-tree"); NULL if it has none. */
const char *bw_compat_ro_name(unsigned bit);
/** Name of a bit of bw_superblock_info.flags ("seeding"); NULL if it has none. */
const char *bw_super_flag_name(unsigned bit);

/** The number of images. */
size_t bw_fs_image_count(const struct bw_fs *fs);

/** The file of an image, which belongs to the file system. */
const char *bw_fs_image_path(const struct bw_fs *fs, size_t image);

/** An image, and what it contains. Texts and the error belong to the file system. */
struct bw_image_info {
    const char *name;      /**< path and container, as from bw_fs_image_path() */
    const char *path;      /**< of the file, or of its first part */
    const char *container; /**< the formats it lies in, from outside in; NULL: none */
    uint64_t size;         /**< in bytes; 0 if it cannot be opened */
    const char *content;   /**< contents other than a btrfs, if they are recognized: "ext4, label
                              root"; may contain control characters; NULL: unknown, or a btrfs */
    bool is_empty;         /**< it is empty, or begins and ends with zeros */
    bool has_superblock;   /**< `superblock` is the best good copy */
    unsigned copy;         /**< number of that copy */
    struct bw_superblock_info superblock;
    const struct bw_error *error; /**< reason for the lack of a superblock; or NULL */
    bool has_failed;              /**< the contents cannot be read, for the reason in `error` */
    bool is_joined;               /**< it is in a container that consists of several images */
    bool is_stream;               /**< it is a send stream, which is read like a file system */
    uint64_t reserved[4];         /**< zeros: room for more members */
};

/** Describes image number `image` (from 0 on). False if it does not exist. */
bool bw_fs_image_info(const struct bw_fs *fs, size_t image, struct bw_image_info *info);

/** The superblock in use: the newest good one of all images. */
void bw_fs_superblock(const struct bw_fs *fs, struct bw_superblock_info *superblock);

/** Reads superblock copy 0, 1 or 2 of image number `image` (from 0 on) and decodes it.
 * BW_ERROR_NOT_FOUND if there is no such image, or it is too small for that copy;
 * BW_ERROR_NOT_BTRFS or BW_ERROR_CORRUPT if the copy is invalid. */
struct bw_error *bw_fs_read_superblock(struct bw_fs *fs, size_t image, unsigned copy,
                                       struct bw_superblock_info *superblock);

/** Bytes of a superblock. */
enum { BW_SUPERBLOCK_BYTES = 4096 };

/** Reads the bytes of the same copy, valid or not; sets `offset` to its position.
 * BW_ERROR_NOT_FOUND as above, or the error of the read. */
struct bw_error *bw_fs_copy_superblock(struct bw_fs *fs, size_t image, unsigned copy,
                                       uint8_t bytes[BW_SUPERBLOCK_BYTES], uint64_t *offset);

/** Checks a superblock like bw_fs_open(); errors as bw_fs_read_superblock(). `copy` is its number.
 */
struct bw_error *bw_superblock_check(const uint8_t bytes[BW_SUPERBLOCK_BYTES], unsigned copy);

/** Whether a file or block device contains a superblock of btrfs, by its magic only: the rest may
 * be invalid. `offset` is the offset of the image in the file. Sets `fsid`. For callers that have
 * to recognize images of the same file system before they open it. */
bool bw_file_holds_superblock(const char *path, uint64_t offset, uint8_t fsid[BW_UUID_SIZE]);

/** Whether such a superblock is that of a seed device. File systems that sprouted from it have
 * another fsid. For the same callers. */
bool bw_file_holds_seed(const char *path, uint64_t offset);

/** Whether a file or block device has the signature of a container of several devices, or of one in
 * another format: LUKS, LVM, MD or partclone. For the same callers. */
bool bw_file_holds_container(const char *path, uint64_t offset);

/** Whether a file begins as a send stream, perhaps after decompression. For the same callers. */
bool bw_file_holds_stream(const char *path);

/** Whether a name denotes an image: the address of a server, or a file or block device with any
 * of the above, a partition table or the signature of a disk image, perhaps after decompression.
 * For callers that distinguish images from paths in them. `offset` as above. */
bool bw_is_image(const char *name, uint64_t offset);

/** A file system whose tree blocks were found by a search (bw_fs_options.scan). */
struct bw_found_file_system {
    uint8_t fsid[BW_UUID_SIZE];
    uint8_t chunk_tree_uuid[BW_UUID_SIZE]; /**< differs between file systems with the same fsid */
    uint8_t option[BW_UUID_SIZE]; /**< bw_fs_options.fsid that opens it: the fsid; if another one
                                   * has the same, the chunk_tree_uuid */
    char label[257];              /**< from a superblock; ends with NUL; empty without one */
    bool is_open;                 /**< it has a valid superblock */
    uint64_t generation;          /**< newest transaction */
    int64_t changed;              /**< last change of a subvolume, in nanoseconds since 1970; 0:
                                   * unknown */
    uint64_t blocks;              /**< tree blocks that were found, copies included */
    uint64_t placed_blocks;       /**< found blocks at the addresses that the chunks give them */
    uint64_t critical_blocks;     /**< blocks of the newest chunk tree and root tree */
    uint64_t critical_missing;    /**< critical blocks that were not found */
    uint64_t reserved[4];         /**< zeros: room for more members */
};

/** A file system that the search found, or NULL after the last. The search runs while a file system
 * is opened with bw_fs_options.scan, without `fsid` and a choice of a generation, or by
 * bw_fs_search(). */
const struct bw_found_file_system *bw_fs_found(const struct bw_fs *fs, size_t index);

/** Reads all images completely, and searches them for tree blocks of any file system. Any function
 * may have opened `fs`, but it must have images. Call it only once, and not after a search while
 * the file system was opened. If the images are larger than `most` bytes (0: no limit), reads
 * nothing and returns BW_ERROR_NOT_FOUND. */
struct bw_error *bw_fs_search(struct bw_fs *fs, uint64_t most);

/** The state of a device. */
enum bw_device_state {
    BW_DEVICE_PRESENT,
    BW_DEVICE_STALE,   /**< present, but it missed transactions that others have */
    BW_DEVICE_MISSING, /**< no image of it was given */
};

/** "present", "stale" or "missing". */
const char *bw_device_state_name(enum bw_device_state state);

/** A device of the file system, as the chunk tree lists it. */
struct bw_device_info {
    uint64_t devid;
    enum bw_device_state state;
    const char *path;     /**< of its image, as long as the file system; NULL if it is missing */
    uint64_t total_bytes; /**< its size; 0 if unknown */
    uint64_t bytes_used;  /**< bytes allocated to chunks; 0 if unknown */
    uint64_t generation;  /**< of its superblock; 0 if it is missing */
    uint8_t uuid[BW_UUID_SIZE]; /**< zeros if unknown */
    uint64_t image_bytes;       /**< size of its image; 0 if it is missing */
    bool seed;                  /**< it is a seed device of this file system */
    uint64_t partition;         /**< number of the partition; 0: the image is not a disk */
    const char *container; /**< the formats it lies in, from outside in: "GPT partition 3 > LUKS2";
                              as long as the file system. NULL: the image is the device */
    uint64_t partition_offset; /**< of the partition on its disk, in bytes; 0 without */
    uint64_t reserved[1];      /**< zeros: room for more members */
};

/** The devices of a file system. */
struct bw_device_list {
    struct bw_device_info *items;
    size_t count;
};

/** Lists all devices, missing ones included, by ascending id. Unreadable parts of the chunk tree
 * are reported. The caller frees the list. Fails only if memory runs out; the list is empty then.
 */
struct bw_error *bw_fs_devices(struct bw_fs *fs, struct bw_device_list *devices);

/** Frees the items, and leaves an empty list. */
void bw_device_list_free(struct bw_device_list *devices);

/** The bytes of a device. Any number of threads may use it. */
struct bw_device_reader;

/** Prepares reading a device. The caller owns `*reader`, which the file system must outlive.
 * BW_ERROR_MISSING_DEVICE if its image was not given; BW_ERROR_NOT_FOUND if the device does
 * not exist; BW_ERROR_UNSUPPORTED for metadumps and send streams, which contain no devices. */
struct bw_error *bw_device_reader_open(struct bw_fs *fs, uint64_t devid,
                                       struct bw_device_reader **reader);

/** Reads stored bytes from the device's image, without verification: if there are several images of
 * it, from the first one that can read them. */
struct bw_error *bw_device_reader_read(const struct bw_device_reader *reader, uint64_t offset,
                                       void *buffer, uint32_t length);

/** Announces that a range will be read, so that reading it may begin now. */
void bw_device_reader_advise(const struct bw_device_reader *reader, uint64_t offset,
                             uint64_t length);

/** Frees it; NULL is allowed. */
void bw_device_reader_close(struct bw_device_reader *reader);

/** The chunks of a file system. */
struct bw_chunk_list {
    struct bw_chunk_info *items;
    size_t count;
};

/** Lists all chunks, by ascending address. Unreadable parts of the chunk tree are reported. The
 * caller frees the list. Fails only if memory runs out; the list is empty then. */
struct bw_error *bw_fs_chunks(struct bw_fs *fs, struct bw_chunk_list *chunks);

/** Frees the items and their stripes, and leaves an empty list. */
void bw_chunk_list_free(struct bw_chunk_list *chunks);

/** How much of a chunk the given devices can provide. */
enum bw_chunk_condition {
    BW_CHUNK_COMPLETE,   /**< all its devices were given */
    BW_CHUNK_DEGRADED,   /**< copies or parity replace the missing devices */
    BW_CHUNK_INCOMPLETE, /**< some or all of its data cannot be read */
};

/** The condition of a chunk; `missing` (NULL: not wanted) is set to how many of its stripes lie on
 * missing devices. */
enum bw_chunk_condition bw_chunk_condition(const struct bw_fs *fs,
                                           const struct bw_chunk_info *chunk, unsigned *missing);

/** Where the bytes at a logical address lie. */
struct bw_mapping {
    unsigned copies; /**< mirrors that can be read, those computed from parity included; 0: no
                          chunk holds the address */
    uint64_t length; /**< bytes from the address on to which the other members apply */
    uint64_t devid;  /**< device of the requested mirror */
    uint64_t offset; /**< on that device */
    bool present;    /**< whether that device was given */
    bool rebuilt;    /**< the mirror is computed from the other stripes of its row; devid and offset
                        belong to the parity that is used */
    uint64_t alternative; /**< number of the image of the device, from 1, as bw_fs_alternative();
                             0: the device has only one */
    uint64_t reserved[1]; /**< zeros: room for more members */
};

/** The path of an image of a device with several ones (bw_fs_options.alternatives), by its number
 * from 1 on; NULL if there is no such image. */
const char *bw_fs_alternative(const struct bw_fs *fs, uint64_t devid, uint64_t number);

/** Maps a logical address. `mirror` counts from 1; `length` (at least 1) limits mapping->length.
 * Reads nothing, except the raid stripe tree if the file system has one. BW_ERROR_NOT_FOUND if
 * there is no such mirror, or no chunk contains the address: mapping->copies and ->length are set
 * even then. */
struct bw_error *bw_fs_map(struct bw_fs *fs, uint64_t logical, uint64_t length, unsigned mirror,
                           struct bw_mapping *mapping);

#ifdef __cplusplus
}
#endif
#endif
