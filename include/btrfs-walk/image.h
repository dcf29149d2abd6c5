/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Images: the partitions of whole disks, and images on servers and in containers. The choice of
 * partitions is made when a file system is opened; see bw_fs_options.partition.
 */
#ifndef BTRFS_WALK_IMAGE_H
#define BTRFS_WALK_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "btrfs-walk/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct bw_fs_options;

/** How many partitions of a table are read, as Linux does. */
enum { BW_PARTITIONS = 256 };

/** A partition. Texts are UTF-8 as far as the disk holds valid text, end with NUL, and may hold
 * control characters; "" is none. Ids are in lower case. */
struct bw_partition_info {
    unsigned number;       /**< as Linux counts them; logical ones begin with 5 */
    bool extended;         /**< holds the logical partitions, and nothing else */
    uint64_t offset;       /**< on the disk, in bytes */
    uint64_t length;       /**< as the table says, in bytes */
    uint64_t room;         /**< how much of that the image has: less if it was cut off */
    char type[40];         /**< GUID, or "0x83" in a table of kind "dos" */
    const char *type_name; /**< what that means: "Linux filesystem"; "" if it is not known */
    char uuid[40];         /**< of the partition; "SERIAL-NN" in a table of kind "dos" */
    char name[128];        /**< of the partition; only in a table of kind "gpt" */
    bool btrfs;            /**< a btrfs file system is in it, or one of its devices */
    char content[128];     /**< its contents: "btrfs", "ext4, label root"; "" if unknown */
    char label[257];       /**< of a btrfs */
    char content_uuid[37]; /**< of a btrfs: its fsid */
    uint64_t reserved[4];  /**< zeros: room for more members */
};

/** The table of a disk. */
struct bw_partition_table {
    const char *path;                           /**< of the image, or its first part */
    char kind[8];                               /**< "gpt" or "dos", which is an MBR */
    uint32_t sector_size;                       /**< that the table counts in, in bytes */
    uint64_t size;                              /**< of the disk, in bytes */
    size_t count;                               /**< of partitions, at most BW_PARTITIONS */
    const struct bw_partition_info *partitions; /**< by ascending number */
    uint64_t reserved[4];                       /**< zeros: room for more members */
};

/** Receives a table; the view ends with the call. An error ends the search and is returned. */
typedef struct bw_error *bw_table_taker(void *context, const struct bw_partition_table *table);

/**
 * Hands out the partition table of each image that has one, in the order of the images. Images are
 * read as bw_fs_open() would read them with the same options, but none of them needs to hold a
 * file system, and which partition is wanted does not matter. An image with the primary
 * superblock of a btrfs has no table, since it is that file system. Errors as for bw_fs_open().
 */
struct bw_error *bw_partition_tables(const struct bw_fs_options *options, bw_table_taker *take,
                                     void *context);

/*
 * Images that are not plain files: on NBD servers, or served by a helper program.
 *
 * An image may be the URI of an NBD server (nbd://, nbds://, nbd+unix:///, nbds+unix:///; see the
 * specification of NBD URIs). Containers such as qcow2, compressed images and addresses of web
 * servers are read through helpers: qemu-nbd and nbdkit, if they are in PATH. A helper serves one
 * image, read-only, on a socket that only its user can reach. It ends with the set, or when the
 * process ends for any reason.
 *
 * The connections of a set outlive the file systems that use them, so an image can be opened again
 * in a process that may no longer start programs.
 */

/** A set of connections and helpers. Its functions are for one thread at a time; reading is not. */
struct bw_servers;

/** Whether helpers are started. */
enum bw_helper_mode {
    BW_HELPERS_OFF,     /**< none */
    BW_HELPERS_ON,      /**< for images that need one, and are complete in one file */
    BW_HELPERS_BACKING, /**< also for images that take data from other files, which they name: an
                           image that is not trusted could name any file of the user */
};

/** Makes an empty set. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_servers_create(enum bw_helper_mode mode, struct bw_servers **servers);

/**
 * Sets how long the servers that the set connects to from now on may be silent, in milliseconds: 30
 * seconds by default (0). After that, a server counts as gone. One that has answered before gets
 * one more connection. Looking up its name is not part of this.
 */
void bw_servers_set_timeout(struct bw_servers *servers, unsigned milliseconds);

/** Ends all connections and helpers, after the file systems that use them; NULL is allowed. */
void bw_servers_destroy(struct bw_servers *servers);

/**
 * Connects to the server of an image, unless that was done before; bw_fs_open() does this for its
 * images before it calls bw_fs_options.planned. `*served`: the image has a server; otherwise it is
 * read as a file, if only to identify it. The first bytes of an image decide whether a helper is
 * started, not its name, and a plain image never needs one. A set does not retry a server that
 * failed: the error is the same.
 *
 * Errors: BW_ERROR_SYSTEM if the server does not exist, or the helper cannot serve the image;
 * BW_ERROR_USAGE if the image refers to other files and the mode does not allow that, if an address
 * needs a helper that is not installed, or if the program was built without libnbd, which is loaded
 * when it is first needed.
 */
struct bw_error *bw_servers_open(struct bw_servers *servers, const char *image, bool *served);

/** Whether a server of the set has the image. */
bool bw_servers_hold(const struct bw_servers *servers, const char *image);

/** The abilities that a process must keep when it gives up all others. */
enum bw_servers_need {
    BW_SERVERS_NOTHING,
    BW_SERVERS_TALK,    /**< send and receive, on sockets that are open */
    BW_SERVERS_CONNECT, /**< find servers and connect to them: connections that are lost are made
                           again, but for those to helpers */
    BW_SERVERS_CONNECT_UNIX, /**< the same, and some servers are at Unix sockets */
};

/** The abilities that the connections of the set need. */
enum bw_servers_need bw_servers_need(const struct bw_servers *servers);

#ifdef __cplusplus
}
#endif
#endif
