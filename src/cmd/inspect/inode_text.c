/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Modes and sizes in the letters of ls(1). */
#include "cmd/inspect/inode_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "record/long_line.h"

void cmd_mode_text(uint32_t mode, char text[static CMD_MODE_LENGTH + 1])
{
    *bw_mode_letters(text, mode) = '\0';
}

bool cmd_mode_is_device(uint32_t mode)
{
    return S_ISCHR(mode) || S_ISBLK(mode);
}

void cmd_size_text(uint64_t size, bool people, char text[static CMD_SIZE_LENGTH])
{
    if (!people || size < 1024) {
        snprintf(text, CMD_SIZE_LENGTH, "%" PRIu64, size);
        return;
    }
    unsigned unit = 0;
    uint64_t whole = size, rest = 0; /* rest: in 1024ths of the unit, whatever is below counts as
                                        one more */
    for (; whole >= 1024; unit++) {
        rest = whole % 1024 + (rest != 0);
        whole /= 1024;
    }
    uint64_t tenths = whole * 10 + (rest * 10 + 1023) / 1024;
    if (tenths < 100) {
        snprintf(text, CMD_SIZE_LENGTH, "%" PRIu64 ".%" PRIu64 "%c", tenths / 10, tenths % 10,
                 " KMGTPE"[unit]);
        return;
    }
    whole += rest != 0;
    if (whole == 1024)
        snprintf(text, CMD_SIZE_LENGTH, "1.0%c", " KMGTPE"[unit + 1]);
    else
        snprintf(text, CMD_SIZE_LENGTH, "%" PRIu64 "%c", whole, " KMGTPE"[unit]);
}
