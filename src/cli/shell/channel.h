/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages between the shell, which reads the keyboard, and its confined worker, which has opened
 * the file system. */
#ifndef BW_CLI_SHELL_CHANNEL_H
#define BW_CLI_SHELL_CHANNEL_H

#include <stdint.h>

#include "base/buffer.h"

/** The kind of a request. */
enum shell_task {
    SHELL_RUN,       /**< run a command */
    SHELL_COMPLETE,  /**< complete the last word; the reply's text is that of cmd_complete_in() */
    SHELL_ENTER,     /**< check that the directory exists */
    SHELL_SUBVOLUME, /**< find a subvolume; the reply's text is its path */
};

/** A request. Its strings belong to the caller, or after shell_receive(), to `text`. */
struct shell_request {
    enum shell_task task;
    const char *directory; /**< the current directory */
    const char *subvolume; /**< where paths begin; empty: the top-level subvolume */
    char **words;          /**< ends with NULL */
    size_t count;
    struct bw_buffer text;
};

/** A reply. */
struct shell_reply {
    int32_t status;
    bool ends;             /**< the worker ends, because the file system has reported damage */
    uint64_t generation;   /**< of the open file system */
    struct bw_buffer text; /**< from the image: any bytes, followed by a NUL */
};

/** Each returns false if the other process has ended, or memory runs out. */
bool shell_send_request(int channel, const struct shell_request *request);
bool shell_receive_request(int channel, struct shell_request *request);
bool shell_send_reply(int channel, const struct shell_reply *reply);
bool shell_receive_reply(int channel, struct shell_reply *reply);

/** Frees what shell_receive_request() has allocated. */
void shell_request_free(struct shell_request *request);

#endif
