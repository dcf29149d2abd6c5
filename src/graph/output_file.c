/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens the output files of layers, probes and statedumps. No image may be overwritten by mistake:
 * a file that is read, or that begins like an image, is refused. */
#include "btrfs-walk/graph.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "btrfs-walk/fs.h"
#include "ondisk/disk.h"
#include "ondisk/foreign.h"
#include "ondisk/superblock.h"
#include "servers/folders.h"

/* Reads the first copy with a magic. */
static bool read_superblock(const char *path, uint64_t offset,
                            struct bw_disk_superblock *superblock)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool found = false;
    if (descriptor < 0)
        return false;
    for (unsigned copy = 0; !found && copy < BW_SUPERBLOCK_COPIES; copy++)
        found = lseek(descriptor, (off_t)(offset + bw_superblock_offset(copy)), SEEK_SET) >= 0 &&
                read(descriptor, superblock, sizeof *superblock) == sizeof *superblock &&
                bw_get64(superblock->magic) == BW_SUPERBLOCK_MAGIC;
    close(descriptor);
    return found;
}

bool bw_file_holds_superblock(const char *path, uint64_t offset, uint8_t fsid[static BW_UUID_SIZE])
{
    struct bw_disk_superblock superblock;
    const bool found = read_superblock(path, offset, &superblock);
    if (found)
        memcpy(fsid, superblock.fsid, BW_UUID_SIZE);
    return found;
}

bool bw_file_holds_seed(const char *path, uint64_t offset)
{
    struct bw_disk_superblock superblock;
    return read_superblock(path, offset, &superblock) &&
           bw_get64(superblock.flags) & BW_SUPER_FLAG_SEEDING;
}

/* Signatures of containers, counted from the beginning. */
static const struct {
    off_t offset;
    const char *bytes;
    size_t length;
} signatures[] = {
    {0, "LUKS\xba\xbe", 6},
    {0, "partclone-image", 15},
    {0, "LABELONE", 8},
    {512, "LABELONE", 8},
    {1024, "LABELONE", 8},
    {1536, "LABELONE", 8},
    {0, "\xfc\x4e\x2b\xa9", 4},
    {4096, "\xfc\x4e\x2b\xa9", 4},
    {4120, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca", 8},
    {0, "verity\0", 8},
};

static bool has_bytes(int descriptor, off_t offset, const char *wanted, size_t length)
{
    char bytes[16];
    return offset >= 0 && lseek(descriptor, offset, SEEK_SET) == offset &&
           read(descriptor, bytes, length) == (ssize_t)length && memcmp(bytes, wanted, length) == 0;
}

bool bw_file_holds_container(const char *path, uint64_t offset)
{
    enum { BLOCK = 4096, RESERVED = 64 << 10 };
    static const char array[] = "\xfc\x4e\x2b\xa9"; /* the superblock of MD */
    const off_t begin = (off_t)offset;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool found = false;
    if (descriptor < 0)
        return false;
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures && !found; i++)
        found = has_bytes(descriptor, begin + signatures[i].offset, signatures[i].bytes,
                          signatures[i].length);
    /* The superblock of MD may be at the end: in version 1.0 in the last 12 KiB, in version 0.90 in
     * the last 128 KiB. */
    const off_t size = lseek(descriptor, 0, SEEK_END) - begin;
    if (!found && size > 2 * RESERVED)
        found = has_bytes(descriptor, begin + (size - 2 * BLOCK) / BLOCK * BLOCK, array, 4) ||
                has_bytes(descriptor, begin + size / RESERVED * RESERVED - RESERVED, array, 4);
    close(descriptor);
    return found;
}

bool bw_file_holds_stream(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const bool found = descriptor >= 0 && bw_begins_as_stream(descriptor);
    if (descriptor >= 0)
        close(descriptor);
    return found;
}

static struct bw_error *refuse_image(const char *path, const struct stat *status)
{
    uint8_t fsid[BW_UUID_SIZE];
    if (S_ISBLK(status->st_mode))
        return bw_error_create(BW_ERROR_USAGE, "%s is a block device, not a file to write to",
                               path);
    if (S_ISREG(status->st_mode) && status->st_size > 0 && bw_file_holds_superblock(path, 0, fsid))
        return bw_error_create(BW_ERROR_USAGE,
                               "%s contains a btrfs superblock: images are never written to", path);
    if (S_ISREG(status->st_mode) && status->st_size > 0 && bw_file_holds_container(path, 0))
        return bw_error_create(BW_ERROR_USAGE, "%s looks like an image, which is never written to",
                               path);
    return NULL;
}

struct bw_error *bw_output_file_open(const char *path, bool append, int *descriptor)
{
    struct stat status;
    /* Checked before it is opened, because closing a device that was opened for writing triggers
     * udev; and again, because another file may have come in its place. */
    if (stat(path, &status) == 0)
        BW_TRY(refuse_image(path, &status));
    int opened =
        open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (append ? O_APPEND : 0), 0666);
    if (opened < 0)
        return bw_error_from_errno(errno, "cannot open %s for writing", path);
    struct bw_error *error;
    if (fstat(opened, &status))
        error = bw_error_from_errno(errno, "cannot stat %s", path);
    else
        error = refuse_image(path, &status);
    if (error)
        close(opened);
    else
        *descriptor = opened;
    return error;
}
