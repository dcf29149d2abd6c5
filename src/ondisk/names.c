/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of numbers, one table a kind. */
#include "ondisk/tables.h"

#include <sys/stat.h>

#include "ondisk/disk_items.h"
#include "ondisk/items.h"

const char *bw_file_type_name(uint8_t type)
{
    static const char *const names[] = {
        [BW_FILE_UNKNOWN] = "unknown",
        [BW_FILE_REGULAR] = "file",
        [BW_FILE_DIRECTORY] = "directory",
        [BW_FILE_CHARACTER_DEVICE] = "character-device",
        [BW_FILE_BLOCK_DEVICE] = "block-device",
        [BW_FILE_FIFO] = "fifo",
        [BW_FILE_SOCKET] = "socket",
        [BW_FILE_SYMLINK] = "symlink",
    };
    return type < sizeof names / sizeof *names ? names[type] : names[BW_FILE_UNKNOWN];
}

uint8_t bw_file_type_of_mode(uint32_t mode)
{
    /* By S_IFMT, of which four bits are used. */
    static const uint8_t types[16] = {
        [S_IFIFO >> 12] = BW_FILE_FIFO,      [S_IFCHR >> 12] = BW_FILE_CHARACTER_DEVICE,
        [S_IFDIR >> 12] = BW_FILE_DIRECTORY, [S_IFBLK >> 12] = BW_FILE_BLOCK_DEVICE,
        [S_IFREG >> 12] = BW_FILE_REGULAR,   [S_IFLNK >> 12] = BW_FILE_SYMLINK,
        [S_IFSOCK >> 12] = BW_FILE_SOCKET,
    };
    return types[mode >> 12 & 15];
}

const char *bw_entry_type_name(const struct bw_dir_entry *entry)
{
    return entry->location.type == BW_ROOT_ITEM ? "subvolume" : bw_file_type_name(entry->type);
}

const char *bw_inode_flag_name(unsigned bit)
{
    for (const struct bw_value_name *word = bw_inode_flags.words; bit < 64 && word->name; word++)
        if (word->value >> bit & 1)
            return word->name;
    return NULL;
}
