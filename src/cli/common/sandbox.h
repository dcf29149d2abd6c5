/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sandbox. What an image holds could make a mistake in this program do anything; so a process
 * gives up what it has no use for, before it opens an image. Landlock says which files it may open
 * from then on, and seccomp which system calls it may make: anything else fails with EACCES or
 * EPERM. What is open already is not affected, nor are tracers of the process.
 */
#ifndef BW_CLI_COMMON_SANDBOX_H
#define BW_CLI_COMMON_SANDBOX_H

#include "cli/common/settings.h"

/**
 * Confines the process, unless --sandbox=off, as far as the kernel can: to reading the files of a
 * planned file system (NULL: to none) and, if there is a common->writing.folder, to making files
 * below it. Call it when the outputs are open and before threads are started; only the first call
 * counts. Fails only if an output of a layer cannot be made.
 */
struct bw_error *cmd_sandbox_enter(const struct cmd_common *common, const struct bw_fs *fs);

/** Whether cmd_sandbox_enter() confines the process. */
bool cmd_sandbox_is_on(const struct cmd_common *common);

/** Confines a child that makes files in common->writing.folder for the process, and reads no image.
 */
void cmd_sandbox_enter_maker(const struct cmd_common *common);

#endif
