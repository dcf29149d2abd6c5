/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packed images to devices in memory, and back. */
#include "fuzz/packed.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/edits.h"
#include "fuzz/targets.h"
#include "ondisk/checksum.h"

enum { WORD = sizeof(uint64_t), GAP = 24 /* zeros that are worth a record of their own */ };

#define OFFSET_MASK ((UINT64_C(1) << 40) - 1)

static const uint8_t zeros[PACKED_PAGE];

struct packed_image *packed_image(void)
{
    static struct packed_image image;
    const size_t reserved = (size_t)PACKED_PAGES * PACKED_PAGE;
    if (image.pages)
        return &image;
    image.pages = malloc(PACKED_IN_USE * sizeof *image.pages);
    for (unsigned i = 0; i < PACKED_DEVICES; i++) {
        struct packed_device *device = &image.devices[i];
        device->file = memfd_create("image", MFD_CLOEXEC);
        device->bytes = mmap(NULL, reserved, PROT_READ | PROT_WRITE, MAP_SHARED, device->file, 0);
        if (device->file < 0 || device->bytes == MAP_FAILED || !image.pages)
            fuzz_fail("no memory for the devices");
    }
    return &image;
}

void packed_add_page(struct packed_image *image, unsigned device, uint64_t offset)
{
    struct packed_place place = {device, offset - offset % PACKED_PAGE};
    const struct packed_place *last =
        image->page_count ? &image->pages[image->page_count - 1] : NULL;
    if (last && last->device == device && last->offset == place.offset)
        return;
    if (image->page_count < PACKED_IN_USE)
        image->pages[image->page_count++] = place;
}

static int compare_places(const void *a, const void *b)
{
    const struct packed_place *one = a, *other = b;
    if (one->device != other->device)
        return one->device < other->device ? -1 : 1;
    return one->offset < other->offset ? -1 : one->offset > other->offset;
}

void packed_sort(struct packed_image *image)
{
    size_t kept = 0;
    qsort(image->pages, image->page_count, sizeof *image->pages, compare_places);
    for (size_t i = 0; i < image->page_count; i++)
        if (!kept || compare_places(&image->pages[kept - 1], &image->pages[i]) != 0)
            image->pages[kept++] = image->pages[i];
    image->page_count = kept;
}

/* Unpacking. */

/* Where the next record goes. False if that is not in a device. */
static bool find_place(const struct packed_image *image, uint64_t word, struct packed_place *place)
{
    place->device = (unsigned)(word >> 40 & 15) % PACKED_DEVICES;
    place->offset = word & OFFSET_MASK;
    return place->device < image->device_count &&
           place->offset < image->devices[place->device].size;
}

static uint8_t *bytes_at(const struct packed_image *image, const struct packed_place *place)
{
    return image->devices[place->device].bytes + place->offset;
}

static void take_bytes(struct packed_image *image, uint64_t word, const uint8_t *bytes,
                       size_t length)
{
    struct packed_place place;
    if (!find_place(image, word, &place))
        return;
    uint64_t left = image->devices[place.device].size - place.offset;
    length = length < left ? length : (size_t)left;
    if (image->page_count + 2 > PACKED_IN_USE || !length)
        return;
    memcpy(bytes_at(image, &place), bytes, length);
    packed_add_page(image, place.device, place.offset);
    packed_add_page(image, place.device, place.offset + length - 1);
}

static void take_copy(struct packed_image *image, uint64_t word, uint64_t from)
{
    struct packed_place to, source;
    if (!find_place(image, word, &to) || !find_place(image, from, &source) ||
        to.offset % PACKED_PAGE || source.offset % PACKED_PAGE ||
        image->page_count == PACKED_IN_USE)
        return;
    memmove(bytes_at(image, &to), bytes_at(image, &source), PACKED_PAGE);
    packed_add_page(image, to.device, to.offset);
}

static void take_operand(struct packed_image *image, const uint8_t *bytes, size_t length)
{
    if (image->operand_count == PACKED_OPERANDS || !length)
        return;
    char *operand = image->operands[image->operand_count++];
    length = length < sizeof image->operands[0] ? length : sizeof image->operands[0] - 1;
    memcpy(operand, bytes, length);
    operand[length] = '\0';
}

/* Takes one record and returns how many bytes it has. */
static size_t take_record(struct packed_image *image, const uint8_t *data, size_t size)
{
    uint64_t word = get_number(data, WORD);
    size_t length = (word >> 44 & 4095) + 1, left = size - WORD;
    length = length < left ? length : left;
    switch (word >> 56 & 3) {
    case PACKED_COPY:
        if (left >= WORD)
            take_copy(image, word, get_number(data + WORD, WORD));
        return WORD + (left < WORD ? left : WORD);
    case PACKED_OPERAND:
        take_operand(image, data + WORD, length);
        return WORD + length;
    default:
        take_bytes(image, word, data + WORD, length);
        return WORD + length;
    }
}

static void clear(struct packed_image *image)
{
    for (unsigned i = 0; i < PACKED_DEVICES; i++) {
        struct packed_device *device = &image->devices[i];
        if (ftruncate(device->file, 0) || ftruncate(device->file, (off_t)device->size))
            fuzz_fail("no memory for a device");
    }
    image->page_count = image->operand_count = 0;
}

bool packed_unpack(struct packed_image *image, const uint8_t *data, size_t size)
{
    const struct packed_head *head = (const void *)data;
    if (size < sizeof *head)
        return false;
    image->command = head->command;
    image->device_count = head->device_count % PACKED_DEVICES + 1u;
    for (unsigned i = 0; i < PACKED_DEVICES; i++)
        image->devices[i].size =
            i < image->device_count
                ? (uint64_t)(bw_get32(head->pages[i]) % (PACKED_PAGES + 1)) * PACKED_PAGE
                : 0;
    clear(image);
    for (size_t at = sizeof *head; size - at > WORD;)
        at += take_record(image, data + at, size - at);
    packed_sort(image);
    return true;
}

/* Packing. */

struct output {
    uint8_t *next, *end;
    bool full;
};

static void put_record(struct output *output, enum packed_kind kind,
                       const struct packed_place *place, const void *bytes, size_t length)
{
    if ((size_t)(output->end - output->next) < WORD + length) {
        output->full = true;
        return;
    }
    put_number(output->next, WORD,
               place->offset | (uint64_t)place->device << 40 | (uint64_t)(length - 1) << 44 |
                   (uint64_t)kind << 56);
    memcpy(output->next + WORD, bytes, length);
    output->next += WORD + length;
}

/* Writes records for the data between long runs of zeros. */
static void put_page(struct output *output, const struct packed_place *page, const uint8_t *bytes)
{
    for (size_t start = 0, at = 0, end = 0; at <= PACKED_PAGE; at++) {
        bool ends = at == PACKED_PAGE || at - end >= GAP;
        if (ends && end > start) {
            struct packed_place place = {page->device, page->offset + start};
            put_record(output, PACKED_BYTES, &place, bytes + start, end - start);
        }
        if (ends)
            start = end = at;
        if (at < PACKED_PAGE && bytes[at]) {
            start = end == start ? at : start;
            end = at + 1;
        }
    }
}

/* Finds pages with equal contents. */
struct page_table {
    uint32_t slots[1 << 14]; /* number of a page, plus one */
};

static uint32_t *slot_of(struct page_table *table, const struct packed_image *image,
                         const uint8_t *bytes)
{
    uint8_t hash[32];
    bw_checksum_compute(BW_CHECKSUM_XXHASH64, bytes, PACKED_PAGE, hash);
    const size_t mask = sizeof table->slots / sizeof *table->slots - 1;
    size_t at = get_number(hash, 4) & mask;
    for (size_t tries = 0; tries < 64 && table->slots[at]; tries++, at = (at + 1) & mask)
        if (memcmp(bytes_at(image, &image->pages[table->slots[at] - 1]), bytes, PACKED_PAGE) == 0)
            break;
    return &table->slots[at];
}

size_t packed_pack(const struct packed_image *image, uint8_t *data, size_t room)
{
    static struct page_table table;
    struct packed_head *head = (void *)data;
    struct output output = {data + sizeof *head, data + room, room < sizeof *head};
    if (output.full)
        return 0;
    memset(&table, 0, sizeof table);
    *head = (struct packed_head){.command = image->command,
                                 .device_count = (uint8_t)(image->device_count - 1)};
    for (unsigned i = 0; i < image->device_count; i++)
        head->pages[i] = bw_put32((uint32_t)(image->devices[i].size / PACKED_PAGE));
    for (unsigned i = 0; i < image->operand_count; i++)
        put_record(&output, PACKED_OPERAND, &(struct packed_place){0, 0}, image->operands[i],
                   strlen(image->operands[i]));
    for (size_t i = 0; i < image->page_count && !output.full; i++) {
        const struct packed_place *page = &image->pages[i];
        const uint8_t *bytes = bytes_at(image, page);
        if (memcmp(bytes, zeros, PACKED_PAGE) == 0)
            continue;
        uint32_t *slot = slot_of(&table, image, bytes);
        const struct packed_place *same = *slot ? &image->pages[*slot - 1] : NULL;
        *slot = *slot ? *slot : (uint32_t)i + 1;
        if (same && memcmp(bytes_at(image, same), bytes, PACKED_PAGE) == 0) {
            bw_le64 from = bw_put64(same->offset | (uint64_t)same->device << 40);
            put_record(&output, PACKED_COPY, page, &from, sizeof from);
        } else {
            put_page(&output, page, bytes);
        }
    }
    return output.full ? 0 : (size_t)(output.next - data);
}
