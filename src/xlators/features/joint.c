/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Joins the copies of a tree block, none of which is good: disks lose sectors, and rarely the same
 * ones of all copies.
 *
 * Each copy is read again. If a copy cannot be read as a whole, its pages are read one by one. A
 * page that a disk fails to read is not divided: the page cache reads whole pages, and a disk may
 * need seconds for each attempt. Other pages are divided, for a map of ddrescue lacks some sectors.
 * A copy with the right checksum has lost nothing. If it could not be read before, it is the
 * block. Otherwise, it is another version of the block, and not used.
 *
 * Then the versions of each sector are compared. Sectors that were not copied from a disk are
 * zeros, so zeros count only if no copy has other bytes. If several versions remain, one is chosen,
 * and all combinations are tried until the checksum matches. The first choice is by page: one copy
 * for all sectors of which the same copies have different versions. The second is by sector. If
 * other bytes were preferred to zeros, a third and a fourth choice include the zeros.
 */
#include "xlators/features/joint.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/zeros.h"
#include "ondisk/disk.h"

enum { SECTOR = 512, PAGE = 4096, MOST_SECTORS = BW_MAX_NODESIZE / SECTOR };

/* The most versions of a sector, the most combinations that are tried, and the most choices that
 * they consist of: each has two versions at least. */
enum { MOST_VERSIONS = 8, MOST_COMBINATIONS = 64, MOST_CHOICES = 6 };

/* The damaged copies. */
struct pieces {
    const struct bw_joint *joint;
    unsigned copies;
    uint32_t sectors; /* of one copy */
    uint8_t *bytes;   /* one copy after the other */
    bool *is_unread;  /* sectors of these copies */
};

/* The copies with different versions of some sectors. */
struct choice {
    uint32_t group; /* a page, or one sector */
    unsigned count, chosen;
    uint8_t copies[MOST_VERSIONS];
};

struct choices {
    unsigned count;
    struct choice items[MOST_CHOICES];
    uint8_t of_sector[MOST_SECTORS]; /* 1 + the number of its choice; 0: it has one version */
    uint32_t group_size;             /* sectors */
    bool skips_zeros;                /* if other bytes exist */
    bool has_skipped;
};

static void free_pieces(struct pieces *pieces)
{
    free(pieces->bytes);
    free(pieces->is_unread);
}

static uint8_t *sector_of(const struct pieces *pieces, unsigned copy, uint32_t sector)
{
    return pieces->bytes + ((size_t)copy * pieces->sectors + sector) * SECTOR;
}

/* Reads a part of a mirror as a part of the next copy; if that fails, in smaller parts. */
static struct bw_error *read_part(struct pieces *pieces, unsigned mirror, uint32_t at,
                                  uint32_t length)
{
    const struct bw_joint *joint = pieces->joint;
    const uint32_t first = at / SECTOR, size = length > PAGE ? PAGE : SECTOR;
    struct bw_request part = *joint->request;
    part.mirror = (uint8_t)mirror;
    part.address += at;
    part.length = length;
    part.buffer = sector_of(pieces, pieces->copies, first);
    part.rebuilt = false;
    bw_wind(joint->frame, joint->layer, &part, 1);
    BW_AUTO_ERROR struct bw_error *error = part.error;
    memset(pieces->is_unread + (size_t)pieces->copies * pieces->sectors + first, error != NULL,
           length / SECTOR);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(error);
    if (!error || length == SECTOR || error->code == BW_ERROR_MISSING_DEVICE ||
        (length == PAGE && error->code == BW_ERROR_SYSTEM))
        return NULL;
    for (const uint32_t end = at + length; at < end; at += size)
        BW_TRY(read_part(pieces, mirror, at, size));
    return NULL;
}

/* Reads a mirror; if it is damaged, and a part of it can be read, it becomes the next copy.
 * `is_good`: it is not damaged, and a system call had failed before. */
static struct bw_error *read_copy(struct pieces *pieces, unsigned mirror, bool *is_good)
{
    const struct bw_joint *joint = pieces->joint;
    const uint32_t length = joint->request->length;
    const bool has_failed = joint->failed >> (mirror - 1) & 1;
    const uint32_t size = has_failed ? PAGE : length;
    const bool *is_unread = pieces->is_unread + (size_t)pieces->copies * pieces->sectors;
    for (uint32_t at = 0; at < length; at += size)
        BW_TRY(read_part(pieces, mirror, at, size));
    const bool is_whole = !memchr(is_unread, true, pieces->sectors) &&
                          bw_checksum_accepts_block(joint->checksum, joint->other_checksums,
                                                    sector_of(pieces, pieces->copies, 0), length);
    pieces->copies += !is_whole && memchr(is_unread, false, pieces->sectors);
    *is_good = is_whole && has_failed;
    return NULL;
}

/* Lists the copies with different versions of a sector. */
static struct choice list_versions(const struct pieces *pieces, uint32_t sector,
                                   struct choices *choices)
{
    struct choice found = {.group = sector / choices->group_size};
    unsigned with_zeros = pieces->copies;
    for (unsigned copy = 0; copy < pieces->copies; copy++) {
        const uint8_t *bytes = sector_of(pieces, copy, sector);
        bool is_new = !pieces->is_unread[(size_t)copy * pieces->sectors + sector];
        if (is_new && choices->skips_zeros && bw_is_zeros(bytes, SECTOR)) {
            with_zeros = copy;
            is_new = false;
        }
        for (unsigned i = 0; i < found.count && is_new; i++)
            is_new = memcmp(bytes, sector_of(pieces, found.copies[i], sector), SECTOR) != 0;
        if (is_new && found.count < MOST_VERSIONS)
            found.copies[found.count++] = (uint8_t)copy;
    }
    choices->has_skipped |= found.count && with_zeros < pieces->copies;
    if (!found.count && with_zeros < pieces->copies)
        found.copies[found.count++] = (uint8_t)with_zeros;
    return found;
}

/* Puts the first version of each sector into `block`, and lists the choices. False if a sector has
 * no version, or there are too many combinations. */
static bool list_choices(const struct pieces *pieces, uint8_t *block, struct choices *choices)
{
    unsigned combinations = 1;
    for (uint32_t sector = 0; sector < pieces->sectors; sector++) {
        const struct choice found = list_versions(pieces, sector, choices);
        unsigned i = 0;
        if (!found.count)
            return false;
        memcpy(block + (size_t)sector * SECTOR, sector_of(pieces, found.copies[0], sector), SECTOR);
        if (found.count == 1)
            continue;
        while (i < choices->count && memcmp(&choices->items[i], &found, sizeof found) != 0)
            i++;
        choices->of_sector[sector] = (uint8_t)(i + 1);
        if (i < choices->count)
            continue;
        combinations *= found.count;
        if (combinations > MOST_COMBINATIONS)
            return false;
        choices->items[choices->count++] = found;
    }
    return true;
}

/* Tries all combinations of versions until one has the right checksum. */
static bool try_choices(const struct pieces *pieces, uint8_t *block, struct choices *choices)
{
    const struct bw_joint *joint = pieces->joint;
    for (;;) {
        if (bw_checksum_accepts_block(joint->checksum, joint->other_checksums, block,
                                      joint->request->length))
            return true;
        unsigned i = 0;
        for (; i < choices->count && ++choices->items[i].chosen == choices->items[i].count; i++)
            choices->items[i].chosen = 0;
        if (i == choices->count)
            return false;
        for (uint32_t sector = 0; sector < pieces->sectors; sector++) {
            if (!choices->of_sector[sector])
                continue;
            const struct choice *choice = &choices->items[choices->of_sector[sector] - 1];
            memcpy(block + (size_t)sector * SECTOR,
                   sector_of(pieces, choice->copies[choice->chosen], sector), SECTOR);
        }
    }
}

struct bw_error *bw_joint_read(const struct bw_joint *joint, bool *is_joined)
{
    const uint32_t length = joint->request->length;
    struct pieces pieces
        __attribute__((cleanup(free_pieces))) = {.joint = joint, .sectors = length / SECTOR};
    const unsigned copies = (unsigned)bw_min(joint->copies, BW_JOINT_COPIES);
    *is_joined = false;
    if (copies < 2 || length % PAGE || length > BW_MAX_NODESIZE)
        return NULL;
    pieces.bytes = calloc(copies, length);
    pieces.is_unread = calloc(copies, pieces.sectors);
    if (!pieces.bytes || !pieces.is_unread)
        return bw_error_no_memory();
    for (unsigned mirror = 1; mirror <= copies && !*is_joined; mirror++)
        BW_TRY(read_copy(&pieces, mirror, is_joined));
    if (*is_joined)
        memcpy(joint->request->buffer, sector_of(&pieces, pieces.copies, 0), length);

    bool has_skipped = false;
    for (unsigned i = 0; i < 4 && pieces.copies > 1 && !*is_joined; i++) {
        struct choices choices = {.group_size = i % 2 ? 1 : PAGE / SECTOR, .skips_zeros = i < 2};
        if (i > 1 && !has_skipped)
            break;
        *is_joined = list_choices(&pieces, joint->request->buffer, &choices) &&
                     try_choices(&pieces, joint->request->buffer, &choices);
        has_skipped |= choices.has_skipped;
    }
    return NULL;
}
