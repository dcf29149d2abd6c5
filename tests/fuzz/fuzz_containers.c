/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The target for containers: the input is the metadata of a container, which get the checksums and
 * the magic numbers that they need to be read. Every container that is found in the devices is
 * opened, and ranges of its volumes are read. Each volume has a size, and reads the same again.
 *
 * The input: one byte (what the other bytes are), one byte (where to read), then the metadata.
 */
#include <gcrypt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/crc32c.h"
#include "base/endian.h"
#include "base/gcrypt.h"
#include "fuzz/targets.h"
#include "graph/graph.h"
#include "xlators/layout/containers.h"

enum { DEVICES = 2, SIZE = 1 << 20, VOLUMES_AT_MOST = 8 };

static uint8_t devices[DEVICES][SIZE];
static int files[DEVICES];

/* Making devices. */

static void put_32(uint8_t *at, uint32_t value)
{
    const bw_le32 raw = bw_put32(value);
    memcpy(at, &raw, sizeof raw);
}

static void put_64(uint8_t *at, uint64_t value)
{
    const bw_le64 raw = bw_put64(value);
    memcpy(at, &raw, sizeof raw);
}

static size_t copy(uint8_t *to, size_t room, const uint8_t *data, size_t size)
{
    const size_t length = size < room ? size : room;
    if (length)
        memcpy(to, data, length);
    return length;
}

static uint32_t sum_lvm(const void *bytes, size_t length)
{
    return ~(uint32_t)crc32(~UINT32_C(0xf597a6cf) & UINT32_MAX, bytes, (uInt)length);
}

enum { AREA = 4096, RING = 256 << 10 };

static void put_lvm(uint8_t *device, char letter, const uint8_t *text, size_t size)
{
    uint8_t *label = device + 512, *area = device + AREA;
    const size_t length = copy(area + 512, RING - 512, text, size);
    memcpy(label, "LABELONE", 8);
    put_64(label + 8, 1);
    put_32(label + 20, 32);
    memcpy(label + 24, "LVM2 001", 8);
    memset(label + 32, letter, 32);
    put_64(label + 64, SIZE);
    put_64(label + 72, AREA + RING);
    put_64(label + 104, AREA);
    put_64(label + 112, RING);
    put_32(label + 16, sum_lvm(label + 20, 492));
    memcpy(area + 4, " LVM2 x[5A%r0N*>", 16);
    put_32(area + 20, 1);
    put_64(area + 24, AREA);
    put_64(area + 32, RING);
    put_64(area + 40, 512);
    put_64(area + 48, length);
    put_32(area + 56, sum_lvm(text, length));
    put_32(area, sum_lvm(area + 4, 508));
}

static void make_lvm(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < DEVICES; i++)
        put_lvm(devices[i], (char)('a' + i), data, size);
}

static const char thin_group[] =
    "vg{id=\"g\" seqno=1 extent_size=16 physical_volumes{p{id=\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""
    " pe_start=520}}logical_volumes{m{segment1{start_extent=0 extent_count=4 type=\"linear\""
    "stripes=[\"p\",0]}}d{segment1{start_extent=0 extent_count=50 type=\"linear\""
    "stripes=[\"p\",4]}}pool{segment1{start_extent=0 extent_count=50 type=\"thin-pool\""
    "metadata=\"m\" pool=\"d\" chunk_size=8}}t{status=[\"VISIBLE\"] segment1{start_extent=0 "
    "extent_count=90 type=\"thin\" thin_pool=\"pool\" device_id=1}}}}";

/* The metadata of a thin pool; the first block is its superblock. */
static void make_thin(const uint8_t *data, size_t size)
{
    enum { BLOCK = 4096, SUPERBLOCK = 160774, NODE = 121107, MAGIC = 27022010 };
    uint8_t *begin = devices[0] + AREA + RING;
    put_lvm(devices[0], 'a', (const uint8_t *)thin_group, sizeof thin_group);
    const size_t length = copy(begin, 8 * BLOCK, data, size);
    put_64(begin + 32, MAGIC);
    put_32(begin + 40, 2);
    put_32(begin + 336, 8);
    put_32(begin + 340, 8);
    put_32(begin + 360, 0);
    for (size_t i = 0; i * BLOCK <= length && i < 8; i++) {
        uint8_t *block = begin + i * BLOCK;
        if (i)
            put_64(block + 8, i);
        put_32(block, bw_crc32c(UINT32_MAX, block + 4, BLOCK - 4) ^ (i ? NODE : SUPERBLOCK));
    }
}

/* The text of a header of LUKS2. */
static void make_luks2(const uint8_t *data, size_t size)
{
    enum { HEADER = 16 << 10 };
    uint8_t *bytes = devices[0];
    copy(bytes + 4096, HEADER - 4096, data, size);
    memcpy(bytes, "LUKS\xba\xbe\0\2", 8);
    bytes[14] = HEADER >> 8;
    strcpy((char *)bytes + 72, "sha256");
    gcry_md_hash_buffer(GCRY_MD_SHA256, devices[1], bytes, HEADER);
    memcpy(bytes + 448, devices[1], 32);
    memset(devices[1], 0, 32);
}

static void make_luks1(const uint8_t *data, size_t size)
{
    copy(devices[0] + 8, 584, data, size);
    memcpy(devices[0], "LUKS\xba\xbe\0\1", 8);
}

static uint32_t sum_words(const uint8_t *bytes, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        bw_le32 word;
        memcpy(&word, bytes + 4 * i, sizeof word);
        sum += bw_get32(word);
    }
    return (uint32_t)((sum & UINT32_MAX) + (sum >> 32));
}

/* A superblock of version 1, then a list of bad blocks or a block of a journal. The
 * devices have the roles 0 and 1, or the second one is the journal. */
static void make_md1(const uint8_t *data, size_t size)
{
    enum { JOURNAL = 2 /* in the second byte of the features */, LIST = 4096 };
    const bool has_journal = size > 9 && data[9] & JOURNAL;
    for (uint32_t i = 0; i < DEVICES; i++) {
        uint8_t *at = devices[i] + 4096, *list = at + LIST;
        const size_t head = copy(at, 256, data, size);
        copy(list, LIST, data + head, size - head);
        if (has_journal) {
            put_32(list, 0x6433c509);
            put_32(list + 4, 0);
            list[8] = 1;
            const uint32_t seed = bw_crc32c(UINT32_MAX, at + 16, 16);
            put_32(list + 48, bw_crc32c(seed, list + LIST, LIST)); /* the first payload is valid */
            put_32(list + 4, bw_crc32c(seed, list, LIST));
        }
        put_32(at, 0xa92b4efc);
        put_32(at + 4, 1);
        put_64(at + 144, 8);
        put_32(at + 160, i);
        put_32(at + 216, 0);
        put_32(at + 220, 4);
        put_64(at + 256, has_journal ? UINT64_C(0x00030002fffd0000) : UINT64_C(0x0003000200010000));
        put_32(at + 216, sum_words(at, 66));
    }
}

static void make_md0(const uint8_t *data, size_t size)
{
    for (uint32_t i = 0; i < DEVICES; i++) {
        uint8_t *at = devices[i] + SIZE - (64 << 10);
        copy(at, 4096, data, size);
        put_32(at, 0xa92b4efc);
        put_32(at + 4, 0);
        put_32(at + 4 * 995, i);
        put_32(at + 4 * 38, 0);
        put_32(at + 4 * 38, sum_words(at, 1024));
    }
}

static void make_partclone2(const uint8_t *data, size_t size)
{
    uint8_t *head = devices[0];
    copy(head, 8192, data, size);
    memcpy(head, "partclone-image", 16);
    memcpy(head + 30, "0002\xde\xc0", 6);
    put_32(head + 106, ~(uint32_t)crc32(0, head, 106));
}

static void make_partclone1(const uint8_t *data, size_t size)
{
    copy(devices[0] + 36, 8192, data, size);
    memcpy(devices[0], "partclone-image", 15);
    memcpy(devices[0] + 30, "0001", 4);
}

static void make_bcache(const uint8_t *data, size_t size)
{
    static const uint8_t magic[16] = {0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca,
                                      0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d, 0x81};
    uint8_t *at = devices[0] + 4096;
    uint64_t crc = UINT64_MAX;
    copy(at + 16, 192, data, size);
    put_64(at + 8, 8);
    memcpy(at + 24, magic, sizeof magic);
    at[206] = at[207] = 0;
    for (size_t i = 8; i < 208; i++) {
        crc ^= (uint64_t)at[i] << 56;
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc << 1 ^ (crc >> 63 ? UINT64_C(0x42f0e1eba9ea3693) : 0);
    }
    put_64(at, ~crc);
}

/* Any other container, such as a compressed file. In some formats, a device of zeros after it would
 * be decompressed to a gigabyte. */
static void make_raw(const uint8_t *data, size_t size)
{
    memset(devices[0], 0xff, SIZE);
    copy(devices[0], SIZE, data, size);
}

static void (*const makers[])(const uint8_t *data, size_t size) = {
    make_lvm, make_thin,       make_luks2,      make_luks1,  make_md1,
    make_md0, make_partclone2, make_partclone1, make_bcache, make_raw,
};

static void write_devices(void)
{
    for (size_t i = 0; i < DEVICES; i++) {
        if (!files[i])
            files[i] = memfd_create("device", MFD_CLOEXEC);
        if (files[i] < 0 || pwrite(files[i], devices[i], SIZE, 0) != SIZE)
            fuzz_fail("a device cannot be written");
    }
}

/* Opening. */

static const struct bw_text_place nowhere;

struct opening {
    struct bw_graph *graph;
    struct bw_xlator *devices[DEVICES];
    const struct bw_container_type *type;
    uint8_t place; /* where to read */
    size_t volumes;
};

static struct bw_error *add_device(struct opening *opening, size_t number)
{
    char name[16], path[32];
    struct bw_xlator **device = &opening->devices[number];
    snprintf(name, sizeof name, "device-%zu", number);
    snprintf(path, sizeof path, "/proc/self/fd/%d", files[number]);
    BW_TRY(bw_graph_add(opening->graph, opening->graph->layers.count, name, nowhere, device));
    BW_TRY(bw_layer_set_type(*device, "storage/file", nowhere));
    BW_TRY(bw_layer_set_option(*device, "path", nowhere, path, nowhere));
    BW_TRY(bw_graph_check_layer(*device));
    return bw_layer_start(*device);
}

static struct bw_error *read_once(struct bw_xlator *layer, uint64_t address, uint32_t length,
                                  uint8_t *bytes)
{
    struct bw_request request = {
        .kind = BW_REQUEST_RAW, .length = length, .address = address, .buffer = bytes};
    memset(bytes, 0xee, length);
    bw_wind(NULL, layer, &request, 1);
    return request.error;
}

static void read_volume(const struct opening *opening, struct bw_xlator *layer)
{
    enum { LENGTH = 20000 };
    static uint8_t first[LENGTH], second[LENGTH];
    const uint64_t size = bw_xlator_size(layer);
    const uint64_t addresses[] = {0,    opening->place * UINT64_C(4097), size / 2, size - LENGTH,
                                  size, UINT64_MAX - opening->place};
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        const uint32_t length = 1 + opening->place * UINT32_C(77) % LENGTH;
        BW_AUTO_ERROR struct bw_error *one = read_once(layer, addresses[i], length, first);
        BW_AUTO_ERROR struct bw_error *two = read_once(layer, addresses[i], length, second);
        if (!one != !two || (!one && memcmp(first, second, length) != 0))
            fuzz_fail("a volume does not read the same again");
        if (!one && (addresses[i] > size || length > size - addresses[i]))
            fuzz_fail("a volume is read after its end");
        const uint64_t next = bw_xlator_next_stored(layer, addresses[i]);
        if (next < addresses[i])
            fuzz_fail("the next stored address is before");
        bw_wind_advise(NULL, layer, &(struct bw_range){addresses[i], length}, 1, 0);
    }
}

/* Adds the devices that the layer of a container needs. */
static struct bw_error *add_children(const struct opening *opening, struct bw_xlator *layer)
{
    const size_t count = opening->type->joins ? DEVICES : 1;
    for (size_t i = 0; i < count; i++)
        BW_TRY(bw_layer_add_child(layer, bw_xlator_name(opening->devices[i]), nowhere));
    return NULL;
}

static struct bw_error *open_volume(struct opening *opening, const char *volume)
{
    struct bw_xlator *layer;
    char name[32];
    if (opening->volumes == VOLUMES_AT_MOST)
        return NULL;
    snprintf(name, sizeof name, "volume-%zu", opening->volumes++);
    BW_TRY(bw_graph_add(opening->graph, opening->graph->layers.count, name, nowhere, &layer));
    struct bw_error *error = bw_layer_set_type(layer, opening->type->layer, nowhere);
    if (!error)
        error = add_children(opening, layer);
    if (!error && volume)
        error = bw_layer_set_option(layer, opening->type->option, nowhere, volume, nowhere);
    if (!error)
        error = bw_graph_check_layer(layer);
    if (!error)
        error = bw_layer_start(layer);
    if (!error)
        read_volume(opening, layer);
    bw_error_free(error);
    bw_graph_remove(opening->graph, layer);
    return NULL;
}

static void open_containers(struct opening *opening)
{
    for (size_t i = 0; bw_container_types[i]; i++) {
        struct bw_container_id id = {{0}};
        opening->type = bw_container_types[i];
        if (!opening->type->find(opening->devices[0], &id))
            continue;
        struct bw_error *error = NULL;
        if (opening->type->list) {
            struct bw_strings names = {0};
            error =
                opening->type->list(opening->devices, opening->type->joins ? DEVICES : 1, &names);
            for (size_t k = 0; !error && k < names.count; k++)
                error = open_volume(opening, names.items[k]);
            bw_strings_free_all(&names);
        } else {
            error = open_volume(opening, NULL);
        }
        bw_error_free(error);
    }
}

void fuzz_containers(const uint8_t *data, size_t size)
{
    struct opening opening = {.graph = NULL};
    struct bw_registry *registry;
    bw_error_free(bw_gcrypt_prepare());
    if (size < 2)
        return;
    memset(devices, 0, sizeof devices);
    makers[data[0] % (sizeof makers / sizeof *makers)](data + 2, size - 2);
    write_devices();
    opening.place = data[1];
    struct bw_error *error = bw_registry_open("", &registry);
    if (!error)
        error = bw_graph_create(registry, (struct bw_reporter){NULL, NULL}, &opening.graph);
    for (size_t i = 0; !error && i < DEVICES; i++)
        error = add_device(&opening, i);
    if (error)
        fuzz_fail("the devices cannot be opened: %s", error->message);
    open_containers(&opening);
    bw_graph_destroy(opening.graph);
}
