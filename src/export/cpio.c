/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entries of cpio archives in the format "newc" (cpio(5)): thirteen numbers of eight hexadecimal
 * digits, the name, the data. Each name of a file with several comes with the data.
 */
#include <inttypes.h>
#include <sys/stat.h>

#include "export/archive.h"

enum { UNIT = 4 /* names and data are padded to it */ };

static uint32_t clamped(int64_t seconds)
{
    return seconds < 0 ? 0 : seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds;
}

static void append_number(struct bw_buffer *text, uint64_t number)
{
    bw_buffer_format(text, "%08" PRIX32, (uint32_t)number);
}

struct bw_error *bw_cpio_append(struct bw_buffer *text, const struct bw_archive_entry *entry,
                                uint64_t *data)
{
    const struct bw_inode *inode = entry->inode;
    bool is_device = S_ISBLK(inode->mode) || S_ISCHR(inode->mode);
    uint64_t size = entry->symlink         ? strlen(entry->symlink)
                    : S_ISREG(inode->mode) ? inode->size
                                           : 0;
    if (size > UINT32_MAX)
        return bw_error_create(BW_ERROR_USAGE, "too large for cpio: %" PRIu64 " bytes", size);
    const uint64_t numbers[] = {
        entry->number,
        inode->mode,
        inode->uid,
        inode->gid,
        inode->link_count,
        clamped(entry->inode->mtime.tv_sec),
        size,
        0, /* major and minor number of the device that it is on */
        0,
        is_device ? bw_inode_major(inode) : 0,
        is_device ? bw_inode_minor(inode) : 0,
        strlen(entry->path) + 1,
        0, /* checksum: not in this format */
    };
    bw_buffer_format(text, "070701");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        append_number(text, numbers[i]);
    bw_buffer_append(text, entry->path, strlen(entry->path) + 1);
    bw_archive_pad(text, UNIT);
    *data = S_ISREG(inode->mode) ? size : 0;
    if (entry->symlink)
        bw_buffer_append(text, entry->symlink, (size_t)size);
    bw_archive_pad(text, UNIT);
    return NULL;
}
