/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file system of a command: opening what the command line names, and closing it. */
#ifndef BW_CLI_COMMON_SESSION_H
#define BW_CLI_COMMON_SESSION_H

#include "cli/common/settings.h"

struct cmd_statedump;

/** A file system that a command works on. */
struct cmd_session {
    struct bw_fs *fs;
    struct cmd_probes *probes;
    struct cmd_statedump *statedump;
};

/** How the common options say that a file system is to be opened, without probes and a reporter;
 * the sandbox is entered then. */
struct bw_fs_options cmd_fs_options(const struct cmd_common *common);

/** How much of it a command needs. */
enum cmd_depth {
    CMD_OPEN_TREES,  /**< all: bw_fs_open() */
    CMD_OPEN_IMAGES, /**< what superblocks tell: bw_fs_open_images() */
    CMD_OPEN_GRAPH,  /**< the layers, without reading anything: bw_fs_wire() */
};

/** Opens the file system and returns STATUS_OK; on failure prints why to stderr and returns the
 * exit status. */
int cmd_open(const struct cmd_common *common, struct cmd_session *session);

/** The same for any depth. */
int cmd_open_to(const struct cmd_common *common, enum cmd_depth depth, struct cmd_session *session);

/** Opens it, and returns the error instead of printing it. */
struct bw_error *cmd_try_open(const struct cmd_common *common, struct cmd_session *session);

/** Prints an error of opening and frees it; where there are several file systems, lists them.
 * Returns the exit status. */
int cmd_fail_to_open(const struct cmd_common *common, struct bw_error *error);

/** Opens the file system of common->input.others, which is not part of the session: to be closed
 * with bw_fs_close(). The options of images and of graphs are for the first one alone. */
struct bw_error *cmd_open_other(const struct cmd_common *common, struct bw_fs **fs);

/** Closes it, after a last statedump if that was asked for. Returns the exit status: STATUS_PARTIAL
 * if there was damage, an image was not used, or the statedump could not be written. */
int cmd_close(const struct cmd_common *common, struct cmd_session *session);

/** The same, whatever was found: STATUS_PARTIAL only if an output could not be written. */
int cmd_close_outputs(const struct cmd_common *common, struct cmd_session *session);

#endif
