/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables are read once, and kept as runs: changed clusters that follow each other on the disk
 * and in the file. The disk is divided into clusters; an entry of the first table has the address
 * of a second table, and an entry of that the address of a cluster. Numbers are big-endian.
 *
 * Nothing in the file is trusted: every address is compared with the size of the file before it is
 * used, and the first table has at most 32 MiB, as in QEMU. Each second table takes up as much of
 * the file as its entries, so all of them together are not larger than the file, unless they
 * overlap; then the file is refused. Reading them takes no longer than reading the file.
 */
#include "xlators/storage/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compare.h"
#include "base/disk_images.h"
#include "base/search.h"
#include "base/vector.h"
#include "base/whole_io.h"

struct run {
    uint64_t start, end; /* on the disk, in bytes */
    uint64_t offset;     /* of its first byte in the file; 0: zeros */
};

BW_VECTOR(runs, struct run);

struct bw_overlay {
    char *path, *backing;
    int descriptor;
    uint64_t size, file_size, cluster;
    struct runs runs; /* ascending */
};

enum { MOST_TABLES = 32 << 20 /* bytes of the first table */ };

static struct bw_error *read_at(const struct bw_overlay *overlay, uint64_t offset, void *bytes,
                                size_t length)
{
    if (offset > overlay->file_size || length > overlay->file_size - offset)
        return bw_error_create(BW_ERROR_CORRUPT, "%s is cut off: it ends before byte %" PRIu64,
                               overlay->path, offset + length);
    const ssize_t count = bw_read_at(overlay->descriptor, bytes, length, offset);
    if (count == (ssize_t)length)
        return NULL;
    return bw_error_from_errno(count < 0 ? errno : EIO, "cannot read %s", overlay->path);
}

/* Adds the clusters of all tables to the runs; adjacent ones become one run. */
static struct bw_error *read_tables(struct bw_overlay *overlay, uint64_t first, uint32_t count)
{
    const uint64_t entries = overlay->cluster / sizeof(bw_be64);
    uint64_t left = overlay->file_size / overlay->cluster;
    struct runs *runs = &overlay->runs;
    if (count > MOST_TABLES / sizeof(bw_be64))
        return bw_error_create(BW_ERROR_CORRUPT, "%s has %" PRIu32 " tables", overlay->path, count);
    BW_AUTO_FREE bw_be64 *addresses = malloc(count * sizeof *addresses + 1);
    BW_AUTO_FREE bw_be64 *table = malloc(overlay->cluster);
    if (!addresses || !table)
        return bw_error_no_memory();
    BW_TRY(read_at(overlay, first, addresses, count * sizeof *addresses));
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t address = bw_get_be64(addresses[i]) & BW_QCOW2_ADDRESS;
        if (!address)
            continue;
        if (!left--)
            return bw_error_create(BW_ERROR_CORRUPT, "%s has tables that overlap", overlay->path);
        BW_TRY(read_at(overlay, address, table, overlay->cluster));
        for (uint64_t j = 0; j < entries; j++) {
            const uint64_t entry = bw_get_be64(table[j]);
            const uint64_t offset = entry & BW_QCOW2_ZEROS ? 0 : entry & BW_QCOW2_ADDRESS;
            const uint64_t start = (i * entries + j) * overlay->cluster;
            if (entry & BW_QCOW2_COMPRESSED)
                return bw_error_create(BW_ERROR_UNSUPPORTED, "%s has compressed clusters",
                                       overlay->path);
            if (!(entry & (BW_QCOW2_ADDRESS | BW_QCOW2_ZEROS)) || start >= overlay->size)
                continue;
            if (offset % overlay->cluster || offset > overlay->file_size)
                return bw_error_create(BW_ERROR_CORRUPT, "%s: a cluster is at %" PRIu64,
                                       overlay->path, offset);
            struct run *last = runs->count ? &runs->items[runs->count - 1] : NULL;
            if (last && last->end == start &&
                (last->offset ? last->offset + (start - last->start) == offset : !offset))
                last->end += overlay->cluster;
            else
                BW_TRY(runs_push(runs, (struct run){start, start + overlay->cluster, offset}));
        }
    }
    return NULL;
}

void bw_overlay_close(struct bw_overlay *overlay)
{
    if (!overlay)
        return;
    if (overlay->descriptor >= 0)
        close(overlay->descriptor);
    runs_free(&overlay->runs);
    free(overlay->path);
    free(overlay->backing);
    free(overlay);
}

static void close_overlay(struct bw_overlay **overlay)
{
    bw_overlay_close(*overlay);
}

struct bw_error *bw_overlay_open(const char *path, struct bw_overlay **result)
{
    struct bw_overlay *overlay __attribute__((cleanup(close_overlay))) = calloc(1, sizeof *overlay);
    *result = NULL;
    if (!overlay)
        return bw_error_no_memory();
    overlay->descriptor = -1;
    overlay->path = strdup(path);
    if (!overlay->path)
        return bw_error_no_memory();

    /* The header. */
    struct bw_qcow2_header header = {.version = bw_put_be32(0)};
    const size_t length = offsetof(struct bw_qcow2_header, compression);
    struct stat status;
    overlay->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (overlay->descriptor < 0 || fstat(overlay->descriptor, &status))
        return bw_error_from_errno(errno, "cannot open %s", path);
    overlay->file_size = (uint64_t)status.st_size;
    if (overlay->file_size >= length)
        BW_TRY(read_at(overlay, 0, &header, length));
    if (memcmp(header.magic, "QFI\xfb", sizeof header.magic) != 0)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "%s is not a qcow2 image", path);
    const uint32_t version = bw_get_be32(header.version), bits = bw_get_be32(header.cluster_bits);
    const uint64_t features = version >= 3 ? bw_get_be64(header.incompatible) : 0;
    overlay->size = bw_get_be64(header.size);
    if ((version != 2 && version != 3) || features & ~(uint64_t)BW_QCOW2_DIRTY ||
        bw_get_be32(header.encryption) || bw_get_be32(header.snapshot_count))
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "%s has features of qcow2 that an overlay does not need: version "
                               "%" PRIu32 ", incompatible features 0x%" PRIx64,
                               path, version, features);
    if (bits < 9 || bits > 21 || overlay->size > (uint64_t)INT64_MAX)
        return bw_error_create(BW_ERROR_CORRUPT, "%s has an impossible header", path);
    overlay->cluster = UINT64_C(1) << bits;

    /* The name of the backing file. A relative one is relative to the folder of the overlay. */
    const uint64_t name_offset = bw_get_be64(header.backing);
    const uint32_t name_length = bw_get_be32(header.backing_length);
    if (name_offset) {
        char name[1024];
        if (name_length >= sizeof name)
            return bw_error_create(BW_ERROR_CORRUPT,
                                   "%s: the name of its backing file has %" PRIu32 " bytes", path,
                                   name_length);
        BW_TRY(read_at(overlay, name_offset, name, name_length));
        name[name_length] = '\0';
        const char *slash = strrchr(path, '/');
        const int folder = slash && *name != '/' ? (int)(slash - path) + 1 : 0;
        if (asprintf(&overlay->backing, "%.*s%s", folder, path, name) < 0) {
            overlay->backing = NULL;
            return bw_error_no_memory();
        }
    }
    BW_TRY(read_tables(overlay, bw_get_be64(header.l1), bw_get_be32(header.l1_count)));
    *result = BW_TAKE(overlay);
    return NULL;
}

const char *bw_overlay_backing(const struct bw_overlay *overlay)
{
    return overlay->backing;
}

uint64_t bw_overlay_size(const struct bw_overlay *overlay)
{
    return overlay->size;
}

/* The index of the first run that ends after an offset. */
static size_t find_run(const struct bw_overlay *overlay, uint64_t offset)
{
    return BW_FIRST_INDEX(i, overlay->runs.count, overlay->runs.items[i].end > offset);
}

struct bw_error *bw_overlay_apply(const struct bw_overlay *overlay, uint64_t offset, void *bytes,
                                  size_t length)
{
    const uint64_t end = offset + length;
    for (size_t i = find_run(overlay, offset); i < overlay->runs.count; i++) {
        const struct run *run = &overlay->runs.items[i];
        if (run->start >= end)
            break;
        const uint64_t from = bw_max(run->start, offset), to = bw_min(run->end, end);
        uint8_t *part = (uint8_t *)bytes + (from - offset);
        if (run->offset)
            BW_TRY(read_at(overlay, run->offset + (from - run->start), part, (size_t)(to - from)));
        else
            memset(part, 0, (size_t)(to - from));
    }
    return NULL;
}

bool bw_overlay_covers(const struct bw_overlay *overlay, uint64_t offset, size_t length)
{
    const uint64_t end = offset + length;
    for (size_t i = find_run(overlay, offset); offset < end; i++) {
        if (i == overlay->runs.count || overlay->runs.items[i].start > offset)
            return false;
        offset = overlay->runs.items[i].end;
    }
    return true;
}

uint64_t bw_overlay_next(const struct bw_overlay *overlay, uint64_t offset)
{
    const size_t index = find_run(overlay, offset);
    if (index == overlay->runs.count)
        return UINT64_MAX;
    return bw_max(overlay->runs.items[index].start, offset);
}
