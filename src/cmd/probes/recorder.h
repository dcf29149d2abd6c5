/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The flight recorder of a command: opening the file of --blackbox, and saying the last events when
 * the program dies. Handlers of signals belong to the process, so they are here and not in the
 * library.
 */
#ifndef BW_CMD_RECORDER_H
#define BW_CMD_RECORDER_H

#include "btrfs-walk/fs.h"
#include "btrfs-walk/recorder.h"

/**
 * Makes a recorder of the coarse probes and those selected (NULL: no others): in memory, or in the
 * file of that name, if there is one. BW_ERROR_USAGE: the file is one that is read (asked of `fs`,
 * which may be NULL), holds an image or anything else but a black box, is no regular file, or
 * another process records in it. bw_recorder_destroy() ends it.
 */
struct bw_error *cmd_recorder_open(const struct bw_fs *fs, const char *file,
                                   const bool selected[BW_PROBES_MAX],
                                   struct bw_recorder **recorder);

/**
 * From now on the last events are printed to stderr when a fatal signal ends the program, which it
 * then does as ever. One recorder at a time. To be called before a file system is opened: handlers
 * put above these, such as the guard of mapped files, pass on what is not theirs.
 */
void cmd_recorder_start(struct bw_recorder *recorder);

/** Ends that, before the recorder is destroyed; without a start it does nothing. */
void cmd_recorder_stop(void);

/** Prints the last events to stderr, for an error that ends the work; without a start it does
 * nothing. */
void cmd_recorder_print_last(void);

#endif
