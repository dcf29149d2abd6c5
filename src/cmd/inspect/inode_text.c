/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Modes and sizes in the letters of ls(1). */
#include "cmd/inspect/inode_text.h"

#include <sys/stat.h>

#include "base/decimal.h"
#include "base/human.h"

void cmd_mode_text(uint32_t mode, char text[static CMD_MODE_LENGTH + 1])
{
    *bw_write_mode(text, mode) = '\0';
}

bool cmd_mode_is_device(uint32_t mode)
{
    return S_ISCHR(mode) || S_ISBLK(mode);
}

void cmd_size_text(uint64_t size, bool people, char text[static CMD_SIZE_LENGTH])
{
    *(people ? bw_write_short_size : bw_decimal)(text, size) = '\0';
}
