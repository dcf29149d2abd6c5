/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupted runs: --resume continues the output of a command after the last byte that was
 * written.
 *
 * A signal, or the end of the reader of stdout, ends a command at any byte. The command then prints
 * a token: how many units of its work have been written completely, and how many bytes of the
 * output after these. A later run leaves out these units and drops these bytes. This is exact
 * because the same image and the same options make the same output, whatever the number of threads;
 * the token contains the file system, its generation and a hash of the options.
 */
#ifndef BW_CLI_COMMON_RESUME_H
#define BW_CLI_COMMON_RESUME_H

#include "cli/common/settings.h"

struct bw_fs;

/** The entry for --resume in the option table of a command whose state is a `type`. */
#define CMD_RESUME_OPTION(type, member)                                            \
    {                                                                              \
        0, "resume", "TOKEN",                                                      \
            "continue the output of an interrupted run; new: a broken pipe, too, " \
            "prints a token",                                                      \
            CMD_TEXT(type, member)                                                 \
    }

/** Prepares before the image is opened. `token` is the argument of --resume; NULL: not given.
 * BW_ERROR_USAGE if it is no token of a run with these options. */
struct bw_error *cmd_resume_prepare(const struct cmd_common *common, const char *token);

/** Compares the token with an image that was opened. `*units` gets the number of units to leave
 * out; NULL: the command has none. BW_ERROR_USAGE if it belongs to another image or state. */
struct bw_error *cmd_resume_start(const struct bw_fs *fs, uint64_t *units);

/** For a command that stops by itself: where an earlier run stopped, 0 without a token. After it,
 * cmd_resume_print() prints tokens of this image. Errors as of the two functions above. */
struct bw_error *cmd_resume_position(const struct cmd_common *common, const char *token,
                                     const struct bw_fs *fs, uint64_t *units);

/** A unit is complete: all bytes passed to cmd_resume_count() so far belong to it or to those
 * before it. */
void cmd_resume_add_unit(void);

/** Counts bytes that a command writes to stdout, before they are buffered. */
void cmd_resume_count(size_t length);

/** Whether output is written by cmd_resume_write(). */
bool cmd_resume_is_active(void);

/** Writes to stdout, without the bytes that the earlier run has written. */
struct bw_error *cmd_resume_write(const char *bytes, size_t length);

/** Prints the token of a run that a signal has stopped: after `units`, and as many bytes. */
void cmd_resume_print(uint64_t units, uint64_t bytes);

#endif
