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

/** The greatest number of partitions that are read, as in Linux. */
enum { BW_PARTITIONS = 256 };

/** A partition. Texts end with NUL and may contain control characters; "" is none. Ids are in lower
 * case. */
struct bw_partition_info {
    unsigned number; /**< as in Linux; logical partitions begin with 5 */
    bool extended;   /**< contains only the logical partitions */
    uint64_t offset; /**< on the disk, in bytes */
    uint64_t length; /**< according to the table, in bytes */
    uint64_t room;   /**< bytes of it in the image: less than `length` if the image is truncated */
    char type[40];   /**< GUID, or "0x83" in a table of kind "dos" */
    const char *type_name; /**< name of the type: "Linux filesystem"; "" if unknown */
    char uuid[40];         /**< of the partition; "SERIAL-NN" in a table of kind "dos" */
    char name[128];        /**< of the partition; only in a table of kind "gpt" */
    bool btrfs;            /**< it contains a btrfs file system, or a device of one */
    char content[128];     /**< its contents: "btrfs", "ext4, label root"; "" if unknown */
    char label[257];       /**< of a btrfs */
    char content_uuid[37]; /**< of a btrfs file system: its fsid */
    uint64_t reserved[4];  /**< zeros: room for more members */
};

/** The table of a disk. */
struct bw_partition_table {
    const char *path;                           /**< of the image, or its first part */
    char kind[8];                               /**< "gpt" or "dos", which is an MBR */
    uint32_t sector_size;                       /**< unit of the table, in bytes */
    uint64_t size;                              /**< of the disk, in bytes */
    size_t count;                               /**< of partitions, at most BW_PARTITIONS */
    const struct bw_partition_info *partitions; /**< by ascending number */
    uint64_t reserved[4];                       /**< zeros: room for more members */
};

/** Receives a table; the view ends with the call. An error ends the search and is returned. */
typedef struct bw_error *bw_table_visitor(void *context, const struct bw_partition_table *table);

/**
 * Calls `visit` for the partition table of each image that has one, in the order of the images. The
 * options are those of bw_fs_open(); `partition` is ignored, and the images need not contain a file
 * system. An image with a primary superblock of btrfs counts as a file system, so it has no table.
 * If a file of `inside` cannot be opened because several partitions around it contain file systems,
 * `visit` receives the table with these. Errors as bw_fs_open().
 */
struct bw_error *bw_partition_tables(const struct bw_fs_options *options, bw_table_visitor *visit,
                                     void *context);

/*
 * Images that are not plain files: on NBD servers, or served by a helper program.
 *
 * An image may be the URI of an NBD server (nbd://, nbds://, nbd+unix:///, nbds+unix:///; see the
 * specification of NBD URIs). Containers such as qcow2, compressed images and addresses of web
 * servers are read through helpers: qemu-nbd and nbdkit, if they are in PATH. A helper serves one
 * image, read-only, on a socket that only its user can open. It ends with the set, or when the
 * process ends for any reason.
 *
 * The connections of a set outlive the file systems that use them, so an image can be opened again
 * in a process that may no longer start programs.
 */

/** A set of connections and helpers. One thread at a time may call its functions; several threads
 * may read. */
struct bw_servers;

/** Whether helpers are started. */
enum bw_helper_mode {
    BW_HELPERS_OFF,     /**< none */
    BW_HELPERS_ON,      /**< for images that need one and consist of a single file */
    BW_HELPERS_BACKING, /**< also for images that refer to other files: an untrusted image could
                           refer to any file of the user */
};

/** Makes an empty set. BW_ERROR_NO_MEMORY. */
struct bw_error *bw_servers_create(enum bw_helper_mode mode, struct bw_servers **servers);

/**
 * Sets the time, in milliseconds, after which a silent server counts as lost; 0: 30 seconds, the
 * default. Applies to later connections. A server that has replied before gets one more connection.
 * Looking up its name is not included.
 */
void bw_servers_set_timeout(struct bw_servers *servers, unsigned milliseconds);

/** Ends all connections and helpers, after the file systems that use them; NULL is allowed. */
void bw_servers_destroy(struct bw_servers *servers);

/**
 * Connects to the server of an image, unless that was done before; bw_fs_open() does this for its
 * images before it calls bw_fs_options.planned. `*served`: the image has a server; otherwise it is
 * read as a file. The first bytes of an image, not its name, decide whether a helper is started; a
 * plain image never needs one. A server that failed is not tried again: the set returns the same
 * error.
 *
 * Errors: BW_ERROR_SYSTEM if the server does not exist, or the helper cannot serve the image;
 * BW_ERROR_USAGE if the image refers to other files and the mode does not allow that, if an address
 * needs a helper that is not installed, or if the library was built without libnbd, which is loaded
 * at its first use.
 */
struct bw_error *bw_servers_open(struct bw_servers *servers, const char *image, bool *served);

/** Whether a server of the set has the image. */
bool bw_servers_hold(const struct bw_servers *servers, const char *image);

/** The privileges that a process needs after it has confined itself. */
enum bw_servers_need {
    BW_SERVERS_NOTHING,
    BW_SERVERS_TALK,    /**< send and receive on open sockets */
    BW_SERVERS_CONNECT, /**< look up servers and connect to them, to reopen lost connections (except
                           to helpers) */
    BW_SERVERS_CONNECT_UNIX, /**< the same, and some servers are at Unix sockets */
};

/** The privileges that the connections of the set need. */
enum bw_servers_need bw_servers_need(const struct bw_servers *servers);

/** Whether a path is a directory that counts as an image: it contains only files, and each of them
 * begins as a send stream or is compressed. Files whose names begin with '.' do not count. */
bool bw_folder_holds_streams(const char *path);

#ifdef __cplusplus
}
#endif
#endif
