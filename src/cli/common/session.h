/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file system of a command: opening what the command line names, and closing it. */
#ifndef BW_CLI_COMMON_SESSION_H
#define BW_CLI_COMMON_SESSION_H

#include "cli/common/settings.h"

/** The file system of a command and its outputs for debugging. While it is open, the session that
 * was opened stays where it is, even if there are copies. */
struct cmd_session {
    const struct cmd_common *common; /**< lives as long as the session */
    struct bw_fs *fs;
    struct cmd_probes *probes;
    int statedump;     /**< descriptor for statedumps */
    bool is_made_good; /**< the damage of the images is not in the output: it does not count */
};

/** The options to open a file system that the common options set, without probes and a reporter.
 * Opening enters the sandbox. */
struct bw_fs_options cmd_fs_options(const struct cmd_common *common);

/** How far to open a file system. */
enum cmd_depth {
    CMD_OPEN_TREES,   /**< completely: bw_fs_open() */
    CMD_OPEN_IMAGES,  /**< only superblocks: bw_fs_open_images() */
    CMD_OPEN_DEVICES, /**< all partitions and volumes as images: bw_fs_list_devices() */
    CMD_OPEN_GRAPH,   /**< only the layers, without reading anything: bw_fs_wire() */
};

/** Opens the file system and returns STATUS_OK; on failure prints the error to stderr and returns
 * the exit status. */
int cmd_open(const struct cmd_common *common, struct cmd_session *session);

/** Like cmd_open(), but only as far as `depth`. */
int cmd_open_to(const struct cmd_common *common, enum cmd_depth depth, struct cmd_session *session);

/** Like cmd_open_to(), but returns the error instead of printing it. */
struct bw_error *cmd_try_open(const struct cmd_common *common, enum cmd_depth depth,
                              struct cmd_session *session);

/** Prints an error of opening and frees it; if there are several file systems to choose from, lists
 * them. Returns the exit status. */
int cmd_fail_to_open(const struct cmd_common *common, struct bw_error *error);

/** The line after a list of partitions of which several contain file systems. */
void cmd_ask_for_partition(const struct cmd_common *common);

/** Whether an error is that the user must choose a partition. The messages of other choices, such
 * as a logical volume, name their option. */
bool cmd_needs_partition(const struct bw_error *error);

/** Opens the file system of common->input.others, which is not part of the session; close it with
 * bw_fs_close(). `own` gets its settings, for its messages, and has to outlive it. The options of
 * images and graphs apply only to the first file system. */
struct bw_error *cmd_open_other(const struct cmd_common *common, struct cmd_common *own,
                                struct bw_fs **fs);

/** Ends a command: prints and frees the error that ended its output, if there is one, closes the
 * file system, after a last statedump if there is a file for it, and decides the exit status. This
 * is the worst of: `so_far`, which the command itself has found; the status of the error;
 * STATUS_PARTIAL if there was damage, an image was not used or has changed, or the outputs of the
 * session could not be written. */
int cmd_end(const struct cmd_common *common, struct cmd_session *session, struct bw_error *error,
            int so_far);

/** Only closes the file system and the outputs. STATUS_PARTIAL if these could not be written. */
int cmd_close_outputs(const struct cmd_common *common, struct cmd_session *session);

/** Reads the first good superblock of an image. Returns the number of the copy;
 * BW_SUPERBLOCK_NUMBERS: there is none. */
unsigned cmd_read_superblock(struct bw_fs *fs, size_t image, struct bw_superblock_info *super);

struct bw_list;

/** Reads a list of files (btrfs-walk/diff.h), before the sandbox is entered. Prints a note if it
 * contains keywords that are not compared. */
struct bw_error *cmd_read_list(const struct cmd_common *common, const char *name,
                               struct bw_list **list);

#endif
