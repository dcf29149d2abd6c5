/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which helper an image needs, and how that is called. */
#ifndef BW_SERVERS_FORMATS_H
#define BW_SERVERS_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "ondisk/foreign.h"

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
