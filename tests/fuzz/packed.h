/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whole images as inputs of a fuzzer: the bytes of the devices that are not zero, without the
 * zeros between them. The devices are files in memory while an input is used.
 *
 * A packed image: struct packed_head, then records. A record begins with a number of 8 bytes: bits
 * 0 to 39 are an offset on a device, 40 to 43 the device, 44 to 55 a length less one, and the
 * uppermost 8 the kind. Any bytes are a packed image; what makes no sense is skipped.
 */
#ifndef BW_TESTS_FUZZ_PACKED_H
#define BW_TESTS_FUZZ_PACKED_H

#include <stdbool.h>
#include <stddef.h>

#include "ondisk/disk.h"

enum {
    PACKED_DEVICES = 4,
    PACKED_PAGE = 4096,
    PACKED_OPERANDS = 4,
    PACKED_ROOM = 256 << 10,  /**< bytes of the longest input */
    PACKED_PAGES = 1u << 19,  /**< of the largest device: 2 GiB */
    PACKED_IN_USE = 64 << 10, /**< pages with bytes in them, in all */
};

enum packed_kind {
    PACKED_BYTES,   /**< the bytes follow */
    PACKED_COPY,    /**< a page that is the same as another; its record word follows */
    PACKED_OPERAND, /**< a path for the command line follows */
    PACKED_KINDS,
};

struct packed_head {
    uint8_t command; /**< which command line */
    uint8_t device_count;
    uint8_t reserved[2];
    bw_le32 pages[PACKED_DEVICES]; /**< sizes of the devices */
};

struct packed_device {
    int file; /**< in memory */
    uint64_t size;
    uint8_t *bytes; /**< mapped; only bytes below `size` may be used */
};

struct packed_place {
    unsigned device;
    uint64_t offset;
};

struct packed_image {
    uint8_t command;
    unsigned device_count;
    struct packed_device devices[PACKED_DEVICES];
    struct packed_place *pages; /**< those with bytes in them, ascending */
    size_t page_count;
    char operands[PACKED_OPERANDS][256];
    unsigned operand_count;
};

/** The one image that there is room for; made when first needed. */
struct packed_image *packed_image(void);

/** Makes the devices what the input says. False if it is too short to say anything. */
bool packed_unpack(struct packed_image *image, const uint8_t *data, size_t size);

/** The opposite; returns the size, or 0 if there is no room. */
size_t packed_pack(const struct packed_image *image, uint8_t *data, size_t room);

/** Reads images from files and leaves out data behind the first `data_pages`, so that what
 * describes the data stays small. False, with a message, if they cannot be read. */
bool packed_read(struct packed_image *image, const char *const *paths, unsigned count,
                 size_t data_pages);

/** Notes that a page has bytes in it; packed_sort() has to follow. */
void packed_add_page(struct packed_image *image, unsigned device, uint64_t offset);
void packed_sort(struct packed_image *image);

/** The superblock at this address; NULL if there is none. */
struct bw_disk_superblock *packed_superblock(const struct packed_image *image,
                                             const struct packed_place *place);

/** The size of tree blocks, by the first superblock that has a possible one; else 0. */
uint32_t packed_nodesize(const struct packed_image *image);

/** The tree block at this address, with the UUID of a file system of these devices; NULL if there
 * is none. */
uint8_t *packed_block(const struct packed_image *image, const struct packed_place *place);

/** Writes right checksums to all superblocks and tree blocks. With `bound`, makes the size of
 * large files small: to read a hole of exabytes is what the image asks for, and no bug. */
void packed_mend(const struct packed_image *image, bool bound);

/** Fails if a sanitized metadump of the image, in a file that need not exist, has a name of a file
 * of more than a few bytes. */
void fuzz_check_dump(const struct packed_image *image, const char *path);

/** Changes an input, mostly single members of structures on disk. Returns its new size. */
size_t packed_mutate(uint8_t *data, size_t size, size_t room, unsigned seed);

#endif
