/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sandbox. A crafted image could exploit an error in this program. Therefore the process gives
 * up all rights that it does not need before it opens an image. Landlock limits the files that it
 * may open from then on, and seccomp the system calls that it may make; everything else fails with
 * EACCES or EPERM. Files that are already open are not affected, nor are tracers of the process.
 */
#ifndef BW_CLI_COMMON_SANDBOX_H
#define BW_CLI_COMMON_SANDBOX_H

#include "cli/common/settings.h"

/**
 * Confines the process as far as the kernel can, unless --sandbox=off. From then on it can only
 * read the files of a planned file system (NULL: none) and make files below common->writing.folder
 * if that is set. Call it after the outputs are opened and before threads are started; only the
 * first call has an effect. Fails only if an output of a layer cannot be created.
 */
struct bw_error *cmd_sandbox_enter(const struct cmd_common *common, const struct bw_fs *fs);

/** Whether cmd_sandbox_enter() confines the process. */
bool cmd_sandbox_is_on(const struct cmd_common *common);

/** Confines a child that makes files in common->writing.folder for the process and reads no
 * image. */
void cmd_sandbox_enter_maker(const struct cmd_common *common);

/** Confines a child that makes everything below a folder (its descriptor), and reads no image. The
 * parent sets common->writing.has_receiver, and no folder. */
void cmd_sandbox_enter_receiver(int folder);

#endif
