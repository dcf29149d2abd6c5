/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Modes and sizes in the letters of ls(1). */
#include "cmd/inode_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

static char type_letter(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return '-';
    case S_IFDIR:
        return 'd';
    case S_IFLNK:
        return 'l';
    case S_IFCHR:
        return 'c';
    case S_IFBLK:
        return 'b';
    case S_IFIFO:
        return 'p';
    case S_IFSOCK:
        return 's';
    default:
        return '?';
    }
}

/* Execution, and the bit that changes what it means: small if both are set. */
static char execution_letter(bool execute, bool special, char letter)
{
    if (special)
        return execute ? letter : (char)(letter - 'a' + 'A');
    return execute ? 'x' : '-';
}

void cmd_mode_text(uint32_t mode, char text[static CMD_MODE_LENGTH + 1])
{
    *text++ = type_letter(mode);
    for (unsigned shift = 9; shift; shift -= 3) {
        uint32_t bits = mode >> (shift - 3);
        *text++ = bits & 4 ? 'r' : '-';
        *text++ = bits & 2 ? 'w' : '-';
        *text++ = execution_letter(bits & 1, mode >> (8 + shift / 3) & 1, shift == 3 ? 't' : 's');
    }
    *text = '\0';
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
    uint64_t whole = size, rest = 0; /* rest: in 1024ths of the unit, whatever is below counts as one more */
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
