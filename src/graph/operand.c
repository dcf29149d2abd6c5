/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether an operand is an image or a path in one. Only contents count, because this machine may
 * have a file with the same path. The contents of a compressed file count, too, as far as its first
 * bytes show them, so a package or a manual page is no image.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/endian.h"
#include "base/unpack.h"
#include "btrfs-walk/fs.h"
#include "ondisk/disk.h"
#include "ondisk/foreign.h"
#include "ondisk/metadump.h"
#include "ondisk/superblock.h"
#include "servers/folders.h"
#include "servers/helper.h"

/* Whether a disk begins with a partition table: the signature of a boot record with at least one
 * partition, and none whose status is invalid. The record in front of a GPT has one, too. */
static bool has_partition_table(const uint8_t *head, size_t length)
{
    enum { FIRST = 446, ENTRY = 16, ENTRIES = 4, TYPE = 4, SIGNATURE = 510 };
    bool has_partition = false;
    if (length < SIGNATURE + 2 || head[SIGNATURE] != 0x55 || head[SIGNATURE + 1] != 0xaa)
        return false;
    for (size_t at = FIRST; at < FIRST + ENTRIES * ENTRY; at += ENTRY) {
        if (head[at] & 0x7f)
            return false;
        has_partition |= head[at + TYPE];
    }
    return has_partition;
}

/* Whether an image begins with these bytes. */
static bool begins_as_image(const uint8_t *head, size_t length)
{
    const size_t at = (size_t)bw_superblock_offset(0);
    struct bw_disk_superblock superblock;
    if (length >= at + sizeof superblock) {
        memcpy(&superblock, head + at, sizeof superblock);
        if (bw_get64(superblock.magic) == BW_SUPERBLOCK_MAGIC)
            return true;
    }
    const struct bw_foreign *format = bw_foreign_by_magic(head, length);
    const bool is_stream = length > sizeof BW_STREAM_MAGIC &&
                           memcmp(head, BW_STREAM_MAGIC, sizeof BW_STREAM_MAGIC) == 0;
    return is_stream || (format && format->helper == BW_HELPER_QEMU) ||
           has_partition_table(head, length);
}

bool bw_is_image(const char *name, uint64_t offset)
{
    enum { INPUT = 256 << 10, HEAD = (64 << 10) + sizeof(struct bw_disk_superblock) };
    uint8_t fsid[BW_UUID_SIZE];
    struct stat status;
    if (bw_is_address(name) || bw_file_holds_superblock(name, offset, fsid) ||
        bw_file_holds_container(name, offset))
        return true;

    BW_AUTO_FREE uint8_t *input = malloc(INPUT + HEAD);
    if (!input || stat(name, &status) || !(S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)))
        return false;
    const int descriptor = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor < 0)
        return false;
    ssize_t got = 0;
    if (lseek(descriptor, (off_t)offset, SEEK_SET) >= 0)
        got = read(descriptor, input, INPUT);
    close(descriptor);
    if (got <= 0)
        return false;
    const struct bw_packing *packing = bw_packing_find(input, (size_t)got);
    if (!packing)
        return begins_as_image(input, (size_t)got);
    uint8_t *head = input + INPUT;
    return begins_as_image(head, bw_unpack_beginning(packing, input, (size_t)got, head, HEAD));
}
