/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writing qcow2. Clusters are appended to the file; the tables that map a part of the disk follow
 * its clusters. The first cluster of each part of the file that one refcount block describes is
 * that block, so it can be written when the part is full. The header comes last: an interrupted
 * image has none. Source: docs/interop/qcow2.txt of QEMU.
 */
#include "export/qcow2.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "base/disk_images.h"

enum {
    CLUSTER = BW_QCOW2_CLUSTER,
    CLUSTER_BITS = 16,
    ENTRIES = CLUSTER / 8,  /* of a cluster with a table of addresses */
    COUNTERS = CLUSTER / 2, /* of a refcount block */
    SECTOR = 512,
    MOST_NAME = 1023, /* bytes of the name of a backing file */
    ZSTD = 1,
    LENGTH_SHIFT = 62 - (CLUSTER_BITS - 8), /* of the length of a compressed cluster */
};

#define BACKING_FORMAT UINT32_C(0xe2792aca)

struct bw_qcow2 {
    bw_qcow2_writer *write;
    void *context;
    uint64_t size;
    ZSTD_CCtx *compressor; /* NULL: not compressed */
    uint8_t *packed;       /* room for a compressed cluster */
    size_t packed_room;
    uint64_t end;      /* of the file so far */
    bw_be16 *counters; /* the refcount block of this part of the file */
    uint64_t part;     /* number of this part */
    bw_be64 *refcount_table;
    size_t refcount_count, refcount_capacity; /* entries of it */
    bw_be64 *l1;                              /* one entry for each table */
    uint64_t l1_count;
    bw_be64 *table;        /* of the current part of the disk */
    uint64_t table_number; /* of it */
    bool table_used;
    uint8_t *cluster; /* the current cluster of the disk */
    uint64_t number;  /* of it */
    bool cluster_used;
    const char *backing_format;
    const char *backing; /* name of the backing file; NULL: none */
};

/* Clusters of the file. */

static struct bw_error *write_counters(struct bw_qcow2 *image)
{
    const uint64_t at = image->part * COUNTERS * CLUSTER;
    while (image->refcount_capacity <= image->part) {
        const size_t room = image->refcount_capacity ? image->refcount_capacity * 2 : ENTRIES;
        bw_be64 *grown = realloc(image->refcount_table, room * sizeof *grown);
        if (!grown)
            return bw_error_no_memory();
        memset(grown + image->refcount_capacity, 0,
               (room - image->refcount_capacity) * sizeof *grown);
        image->refcount_table = grown;
        image->refcount_capacity = room;
    }
    /* the header is in the first cluster, so the first refcount block is in the second one */
    const uint64_t block = at ? at : CLUSTER;
    image->refcount_table[image->part] = bw_put_be64(block);
    image->refcount_count = (size_t)image->part + 1;
    return image->write(image->context, block, image->counters, CLUSTER);
}

/* Counts a use of a cluster of the file, which is in this part or the next one. */
static struct bw_error *count_use(struct bw_qcow2 *image, uint64_t number)
{
    if (number / COUNTERS != image->part) {
        BW_TRY(write_counters(image));
        memset(image->counters, 0, CLUSTER);
        image->part = number / COUNTERS;
        image->counters[0] = bw_put_be16(1); /* the refcount block itself */
    }
    bw_be16 *counter = &image->counters[number % COUNTERS];
    *counter = bw_put_be16((uint16_t)(bw_get_be16(*counter) + 1));
    return NULL;
}

/* Skips the place of a refcount block. */
static void skip_counters(struct bw_qcow2 *image)
{
    if (image->end / CLUSTER % COUNTERS == 0)
        image->end += CLUSTER;
}

/* Appends a whole cluster. */
static struct bw_error *append_cluster(struct bw_qcow2 *image, const void *bytes, uint64_t *offset)
{
    image->end = (image->end + CLUSTER - 1) / CLUSTER * CLUSTER;
    skip_counters(image);
    *offset = image->end;
    image->end += CLUSTER;
    BW_TRY(count_use(image, *offset / CLUSTER));
    return image->write(image->context, *offset, bytes, CLUSTER);
}

/* Appends compressed bytes, which may lie in two clusters. They never lie around a refcount block.
 */
static struct bw_error *append_packed(struct bw_qcow2 *image, size_t length, uint64_t *entry)
{
    const uint64_t sectors = (length + SECTOR - 1) / SECTOR;
    uint64_t last = (image->end + sectors * SECTOR - 1) / CLUSTER;
    if (last % COUNTERS == 0)
        image->end = last * CLUSTER;
    if (image->end % CLUSTER == 0)
        skip_counters(image);
    const uint64_t offset = image->end, first = offset / CLUSTER;
    last = (offset + sectors * SECTOR - 1) / CLUSTER;
    image->end += sectors * SECTOR;
    *entry = BW_QCOW2_COMPRESSED | (sectors - 1) << LENGTH_SHIFT | offset;
    BW_TRY(count_use(image, first));
    if (last != first)
        BW_TRY(count_use(image, last));
    memset(image->packed + length, 0, sectors * SECTOR - length);
    return image->write(image->context, offset, image->packed, sectors * SECTOR);
}

/* Clusters of the disk. */

static struct bw_error *end_table(struct bw_qcow2 *image)
{
    uint64_t offset;
    if (!image->table_used)
        return NULL;
    BW_TRY(append_cluster(image, image->table, &offset));
    image->l1[image->table_number] = bw_put_be64(offset | BW_QCOW2_COPIED);
    memset(image->table, 0, CLUSTER);
    image->table_used = false;
    return NULL;
}

/* Adds a whole cluster, compressed if that makes it smaller. */
static struct bw_error *add_cluster(struct bw_qcow2 *image, uint64_t number, const uint8_t *bytes)
{
    uint64_t offset, entry;
    size_t length = CLUSTER;
    if (number / ENTRIES != image->table_number)
        BW_TRY(end_table(image));
    image->table_number = number / ENTRIES;
    if (image->compressor)
        length =
            ZSTD_compress2(image->compressor, image->packed, image->packed_room, bytes, CLUSTER);
    if (!ZSTD_isError(length) && length <= CLUSTER - SECTOR) {
        BW_TRY(append_packed(image, length, &entry));
    } else {
        BW_TRY(append_cluster(image, bytes, &offset));
        entry = offset | BW_QCOW2_COPIED;
    }
    image->table[number % ENTRIES] = bw_put_be64(entry);
    image->table_used = true;
    return NULL;
}

static struct bw_error *end_cluster(struct bw_qcow2 *image)
{
    if (!image->cluster_used)
        return NULL;
    image->cluster_used = false;
    return add_cluster(image, image->number, image->cluster);
}

struct bw_error *bw_qcow2_add(struct bw_qcow2 *image, uint64_t offset, const void *bytes,
                              size_t length)
{
    const uint8_t *next = bytes;
    for (size_t part; length; offset += part, next += part, length -= part) {
        const uint64_t number = offset / CLUSTER;
        const size_t room = CLUSTER - offset % CLUSTER;
        part = length < room ? length : room;
        if (image->number != number)
            BW_TRY(end_cluster(image));
        if (part == CLUSTER) {
            BW_TRY(add_cluster(image, number, next));
            continue;
        }
        if (!image->cluster_used)
            memset(image->cluster, 0, CLUSTER);
        memcpy(image->cluster + offset % CLUSTER, next, part);
        image->number = number;
        image->cluster_used = true;
    }
    return NULL;
}

/* Beginning and end. */

/* Appends a table that may have several clusters. They are adjacent: a refcount block would divide
 * them, so they begin after it if it is close. */
static struct bw_error *append_table(struct bw_qcow2 *image, const bw_be64 *table, uint64_t size,
                                     uint64_t *offset)
{
    const uint64_t clusters = (size + CLUSTER - 1) / CLUSTER;
    uint8_t *rest = image->cluster;
    image->end = (image->end + CLUSTER - 1) / CLUSTER * CLUSTER;
    if (image->end / CLUSTER / COUNTERS != (image->end / CLUSTER + clusters - 1) / COUNTERS)
        image->end = (image->end / CLUSTER / COUNTERS + 1) * COUNTERS * CLUSTER;
    skip_counters(image);
    *offset = image->end;
    for (uint64_t i = 0; i < clusters; i++) {
        uint64_t at;
        const uint64_t left = size - i * CLUSTER;
        memset(rest, 0, CLUSTER);
        memcpy(rest, table + i * ENTRIES, left < CLUSTER ? left : CLUSTER);
        BW_TRY(append_cluster(image, rest, &at));
    }
    return NULL;
}

static struct bw_error *write_header(const struct bw_qcow2 *image, uint64_t l1, uint64_t refcounts,
                                     uint64_t refcount_clusters)
{
    struct {
        struct bw_qcow2_header fixed;
        bw_be32 extension, extension_length;
        char format[8];  /* of the backing file */
        uint8_t last[8]; /* zeros end the list of extensions */
        char name[MOST_NAME];
    } header = {
        .fixed =
            {
                .magic = {'Q', 'F', 'I', 0xfb},
                .version = bw_put_be32(3),
                .cluster_bits = bw_put_be32(CLUSTER_BITS),
                .size = bw_put_be64(image->size),
                .l1_count = bw_put_be32((uint32_t)image->l1_count),
                .l1 = bw_put_be64(l1),
                .refcounts = bw_put_be64(refcounts),
                .refcount_clusters = bw_put_be32((uint32_t)refcount_clusters),
                .refcount_order = bw_put_be32(4),
                .length = bw_put_be32(sizeof header.fixed),
            },
    };
    size_t length = sizeof header.fixed;
    if (image->compressor) {
        header.fixed.incompatible = bw_put_be64(BW_QCOW2_COMPRESSION);
        header.fixed.compression = ZSTD;
    }
    if (image->backing) {
        const size_t format = strlen(image->backing_format), name = strlen(image->backing);
        header.extension = bw_put_be32(BACKING_FORMAT);
        header.extension_length = bw_put_be32((uint32_t)format);
        memcpy(header.format, image->backing_format, format);
        length = sizeof header - sizeof header.name;
        header.fixed.backing = bw_put_be64(length);
        header.fixed.backing_length = bw_put_be32((uint32_t)name);
        memcpy(header.name, image->backing, name);
        length += name;
    }
    return image->write(image->context, 0, &header, length);
}

/* The refcount table describes itself, too. It has room for a few more blocks than there are now:
 * for those that its own clusters take. */
struct bw_error *bw_qcow2_end(struct bw_qcow2 *image)
{
    uint64_t l1, refcounts;
    BW_TRY(end_cluster(image));
    BW_TRY(end_table(image));
    BW_TRY(append_table(image, image->l1, image->l1_count * sizeof *image->l1, &l1));
    const uint64_t blocks = image->part + 4, clusters = (blocks * 8 + CLUSTER - 1) / CLUSTER;
    bw_be64 *table = calloc(clusters, CLUSTER);
    if (!table)
        return bw_error_no_memory();
    struct bw_error *error = append_table(image, table, clusters * CLUSTER, &refcounts);
    if (!error)
        error = write_counters(image);
    if (!error) {
        memcpy(table, image->refcount_table, image->refcount_count * sizeof *table);
        error = image->write(image->context, refcounts, table, clusters * CLUSTER);
    }
    free(table);
    return error ? error : write_header(image, l1, refcounts, clusters);
}

struct bw_error *bw_qcow2_create(uint64_t size, bool compressed, bw_qcow2_writer *write,
                                 void *context, struct bw_qcow2 **result)
{
    const uint64_t most = UINT64_C(1) << 51; /* QEMU reads an L1 table of at most 32 MiB */
    if (size > most)
        return bw_error_create(BW_ERROR_UNSUPPORTED, "qcow2 images have at most 2 PiB");
    struct bw_qcow2 *image = *result = calloc(1, sizeof *image);
    if (!image)
        return bw_error_no_memory();
    *image = (struct bw_qcow2){.write = write, .context = context, .size = size};
    image->l1_count = (size + (uint64_t)ENTRIES * CLUSTER - 1) / ((uint64_t)ENTRIES * CLUSTER);
    image->counters = calloc(1, CLUSTER);
    image->table = calloc(1, CLUSTER);
    image->cluster = calloc(1, CLUSTER);
    image->l1 = calloc(image->l1_count, sizeof *image->l1);
    if (compressed) {
        image->compressor = ZSTD_createCCtx();
        image->packed_room = ZSTD_compressBound(CLUSTER);
        image->packed = calloc(1, image->packed_room + SECTOR);
    }
    if (!image->counters || !image->table || !image->cluster || !image->l1 ||
        (compressed && (!image->compressor || !image->packed))) {
        bw_qcow2_destroy(BW_TAKE(*result));
        return bw_error_no_memory();
    }
    image->counters[0] = bw_put_be16(1); /* the header */
    image->counters[1] = bw_put_be16(1); /* the first refcount block */
    image->end = 2 * CLUSTER;
    return NULL;
}

struct bw_error *bw_qcow2_set_backing(struct bw_qcow2 *image, const char *name, const char *format)
{
    if (strlen(name) > MOST_NAME)
        return bw_error_create(BW_ERROR_USAGE, "the path of the image is too long for an overlay");
    image->backing = name;
    image->backing_format = format;
    return NULL;
}

void bw_qcow2_destroy(struct bw_qcow2 *image)
{
    if (!image)
        return;
    ZSTD_freeCCtx(image->compressor);
    free(image->packed);
    free(image->counters);
    free(image->refcount_table);
    free(image->l1);
    free(image->table);
    free(image->cluster);
    free(image);
}
