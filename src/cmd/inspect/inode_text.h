/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of inodes as ls and stat show them. */
#ifndef BW_CMD_INODE_TEXT_H
#define BW_CMD_INODE_TEXT_H

#include "format/items.h"

enum {
    CMD_MODE_LENGTH = 10, /**< of "-rw-r--r--" */
    CMD_SIZE_LENGTH = 24, /**< at most, with a NUL: of "1.5K" or all digits */
};

/** Writes type and permissions as `ls -l` does, and a NUL. */
void cmd_mode_text(uint32_t mode, char text[static CMD_MODE_LENGTH + 1]);

/** Whether it is the mode of a device, which has a number instead of a size. */
bool cmd_mode_is_device(uint32_t mode);

/** Writes a size as a number or, for people, as `ls -h` does: rounded up, in powers of 1024. */
void cmd_size_text(uint64_t size, bool people, char text[static CMD_SIZE_LENGTH]);

#endif
