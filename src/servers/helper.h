/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Helper programs: NBD servers for one image each, which run as children. A helper gets its socket
 * as services of systemd do (LISTEN_FDS), in a directory that only its user can enter. It ends when
 * it is stopped, or when this process has ended for any reason.
 */
#ifndef BW_SERVERS_HELPER_H
#define BW_SERVERS_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "btrfs-walk/error.h"
#include "ondisk/foreign.h"

struct bw_helper;

/** Starts a program, given by its path, with arguments that end with NULL; the first is its name.
 * Whether it can serve the image turns out when it is connected to. BW_ERROR_SYSTEM. */
struct bw_error *bw_helper_start(const char *path, const char *const *arguments,
                                 struct bw_helper **helper);

/** Ends it; NULL is allowed. */
void bw_helper_stop(struct bw_helper *helper);

/** The path of its socket. */
const char *bw_helper_socket(const struct bw_helper *helper);

/** An error for an image that it cannot serve: with the helper's own message, or else `why`. */
struct bw_error *bw_helper_add_error(const struct bw_helper *helper, const char *image,
                                     const char *why);

/*
 * Which helper an image needs, and its command: formats.c.
 */

/** Where the bytes of an image come from. */
enum bw_source_kind {
    BW_SOURCE_FILE,   /**< a file or block device; `text` is an absolute path */
    BW_SOURCE_DEVICE, /**< likewise a block device */
    BW_SOURCE_SOCKET, /**< the socket of another helper */
    BW_SOURCE_URI,    /**< an NBD server */
};

struct bw_source {
    enum bw_source_kind kind;
    const char *text;
};

/** The words of a command: its program, its arguments, then NULL. */
struct bw_helper_command {
    char *words[10];
    size_t count;
    bool failed; /**< memory has run out */
};

/** Whether an image is the URI of an NBD server. */
bool bw_is_nbd_uri(const char *image);

/** Whether an image is the address of a server: such a URI, or one that a helper can read. */
bool bw_is_address(const char *image);

/** Makes the command for an address that a helper can read: http://, https://, s3://, rbd:. False
 * if the image is none. */
bool bw_helper_for_address(const char *image, struct bw_helper_command *command);

/** Makes the command for a container that a helper can read. BW_ERROR_USAGE: the name of its file
 * cannot be passed on. */
struct bw_error *bw_helper_for_container(const struct bw_foreign *foreign,
                                         const struct bw_source *source, bool backing,
                                         struct bw_helper_command *command);

/** Makes the command that gives an NBD server a socket on this machine. */
void bw_helper_for_uri(const char *uri, struct bw_helper_command *command);

/** Frees the words. */
void bw_helper_command_free(struct bw_helper_command *command);

/** How many bytes of the beginning of an image are looked at. */
enum { BW_CONTAINER_HEAD = 32 << 10 };

/** The other files that a container, which begins with these bytes, takes data from, as the end of
 * a sentence; false if it needs none. */
bool bw_container_needs(const struct bw_foreign *foreign, const uint8_t *head, size_t length,
                        struct bw_buffer *reason);

#endif
