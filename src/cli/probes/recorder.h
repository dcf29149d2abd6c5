/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flight recorder of a command: opening the file of --blackbox, and printing the last events
 * when the program dies. Signal handlers belong to the process, so they are here and not in the
 * library.
 */
#ifndef BW_CMD_RECORDER_H
#define BW_CMD_RECORDER_H

#include "btrfs-walk/fs.h"
#include "btrfs-walk/recorder.h"

/**
 * Creates a recorder of the coarse probes and those selected (NULL: no others), in the file of that
 * name, or in memory if `file` is NULL. BW_ERROR_USAGE: the file is an input of `fs`, holds
 * anything but a black box, is no regular file, or another process records in it.
 * Destroy it with bw_recorder_destroy().
 */
struct bw_error *cmd_recorder_open(const struct bw_fs *fs, const char *file,
                                   const bool selected[BW_PROBES_MAX],
                                   struct bw_recorder **recorder);

/**
 * From now on the last events are printed to stderr when a fatal signal ends the program. One
 * recorder at a time. Call it before a file system is opened.
 */
void cmd_recorder_start(struct bw_recorder *recorder);

/** The name of a signal that ends a program in this way; NULL if it is another one. */
const char *cmd_recorder_signal(uint32_t number);

/** Ends that, before the recorder is destroyed. Does nothing if it was not started. */
void cmd_recorder_stop(void);

/** Prints the last events to stderr, for an error that ends the work. Does nothing if it was not
 * started. */
void cmd_recorder_print_last(void);

#endif
