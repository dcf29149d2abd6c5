/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A spool is an unlinked file. Pieces that are all zeros become holes, which need no space; the
 * limit applies to the others.
 */
#include "servers/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/whole_io.h"
#include "base/zeros.h"

enum { PIECE = 64 << 10 /* as many zeros become a hole */ };
static const uint64_t largest_size = UINT64_C(16) << 40; /* the limit of ext4 */

struct bw_spool {
    int file;
    char *folder; /* NULL: in memory */
    uint64_t size;
    uint64_t stored, limit; /* bytes that are not zeros */
    bool is_finished;
    struct bw_error *damage;
};

static bool open_in(struct bw_spool *spool, const char *folder)
{
    struct statvfs status;
    spool->file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (spool->file < 0)
        return false;
    spool->folder = strdup(folder);
    if (fstatvfs(spool->file, &status) == 0)
        spool->limit = (uint64_t)status.f_bavail * status.f_frsize / 10 * 9;
    return true;
}

struct bw_error *bw_spool_create(struct bw_spool **made)
{
    const char *given = getenv("TMPDIR");
    struct bw_error *error = NULL;
    struct bw_spool *spool = calloc(1, sizeof *spool);
    if (!spool)
        return bw_error_no_memory();
    if ((given && *given && open_in(spool, given)) || open_in(spool, "/var/tmp")) {
        if (!spool->folder)
            error = bw_error_no_memory();
    } else {
        const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
        if (pages > 0 && page > 0)
            spool->limit = (uint64_t)pages * (uint64_t)page / 4;
        spool->file = memfd_create("btrfs-walk", MFD_CLOEXEC);
        if (spool->file < 0)
            error = bw_error_from_errno(errno, "cannot make a temporary file");
    }
    if (error)
        bw_spool_destroy(spool);
    else
        *made = spool;
    return error;
}

void bw_spool_destroy(struct bw_spool *spool)
{
    if (!spool)
        return;
    if (spool->file >= 0)
        close(spool->file);
    bw_error_free(spool->damage);
    free(spool->folder);
    free(spool);
}

static struct bw_error *too_large(const struct bw_spool *spool)
{
    if (!spool->folder)
        return bw_error_create(BW_ERROR_SYSTEM,
                               "the decompressed image does not fit into memory: unpack it first");
    return bw_error_create(BW_ERROR_SYSTEM,
                           "the decompressed image does not fit into %s: set TMPDIR to a "
                           "folder with more space",
                           spool->folder);
}

struct bw_error *bw_spool_begin(struct bw_spool *spool)
{
    spool->size = spool->stored = 0;
    if (ftruncate(spool->file, 0))
        return bw_error_from_errno(errno, "cannot empty a temporary file");
    return NULL;
}

struct bw_error *bw_spool_append(struct bw_spool *spool, const uint8_t *bytes, size_t length)
{
    if (length > largest_size - spool->size)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "the decompressed image has more than 16 TiB");
    while (length) {
        const size_t room = PIECE - spool->size % PIECE, piece = length < room ? length : room;
        const size_t stored = bw_is_zeros(bytes, piece) ? 0 : piece; /* zeros become a hole */
        if (stored > spool->limit - spool->stored)
            return too_large(spool);
        if (stored && (!bw_file_may_have(spool->size + stored) ||
                       !bw_write_at(spool->file, bytes, stored, spool->size))) {
            if (errno == ENOSPC)
                return too_large(spool);
            return bw_error_from_errno(errno, "cannot write to a temporary file");
        }
        spool->stored += stored;
        spool->size += piece;
        bytes += piece;
        length -= piece;
    }
    return NULL;
}

void bw_spool_finish(struct bw_spool *spool, struct bw_error *damage)
{
    spool->damage = damage;
    spool->is_finished = true;
}

const struct bw_error *bw_spool_damage(const struct bw_spool *spool)
{
    return spool->damage;
}

bool bw_spool_is_finished(const struct bw_spool *spool)
{
    return spool->is_finished;
}

uint64_t bw_spool_size(const struct bw_spool *spool)
{
    return spool->size;
}

struct bw_error *bw_spool_read(const struct bw_spool *spool, uint64_t offset, void *buffer,
                               size_t length)
{
    const ssize_t count = bw_read_at(spool->file, buffer, length, offset);
    if (count < 0)
        return bw_error_from_errno(errno, "cannot read from a temporary file");
    /* Zeros at the end are not stored. */
    memset((uint8_t *)buffer + count, 0, length - (size_t)count);
    return NULL;
}

uint64_t bw_spool_next_stored(const struct bw_spool *spool, uint64_t offset)
{
    if (offset >= spool->size)
        return UINT64_MAX;
    const off_t next = lseek(spool->file, (off_t)offset, SEEK_DATA);
    if (next >= 0)
        return (uint64_t)next;
    return errno == ENXIO ? UINT64_MAX : offset;
}
