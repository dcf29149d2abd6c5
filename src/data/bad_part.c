/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bad parts. A request is for up to 64 KiB; only the sectors of it that are bad are given up. */
#include "data/fetch.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "ondisk/checksum.h"
#include "fs/fs.h"
#include "graph/wind.h"

enum { SECTORS = BW_DATA_REQUEST / 4096 };

struct bw_error *bw_data_name_error(struct bw_error *error, const struct bw_data_file *file,
                                    uint64_t offset)
{
    return bw_error_prefix(error, "inode %" PRIu64 " of tree %" PRIu64 " at %" PRIu64, file->inode,
                           file->subvolume->tree.id, offset);
}

void bw_data_spoil_part(struct bw_data_block *block, size_t at, const struct bw_data_file *file,
                        struct bw_error *error)
{
    struct bw_data_part *part = &block->parts[at];
    part->error = bw_data_name_error(error, file, part->offset);
    part->kind = BW_DATA_BAD;
    part->bytes = NULL;
}

void bw_data_check_rebuilt(struct bw_fs *fs, const struct bw_data_file *file,
                           const struct bw_request *request)
{
    if (!request->rebuilt || request->error || request->data ||
        !bw_fs_first_doubt(fs, file->subvolume->tree.id, file->inode))
        return;
    struct bw_error *warning =
        bw_error_create(BW_ERROR_CORRUPT,
                        "inode %" PRIu64 " of tree %" PRIu64
                        ": data are computed from parity, and there is no checksum to verify them",
                        file->inode, file->subvolume->tree.id);
    const struct bw_place place = {file->subvolume, file->inode, BW_FILE_REGULAR, 0};
    BW_AUTO_FREE char *path = NULL;
    BW_AUTO_ERROR struct bw_error *nameless = bw_inode_path(fs, &place, &path, NULL);
    if (!nameless)
        warning = bw_error_prefix(warning, "%s", path);
    bw_fs_report(fs, BW_WARNING, warning);
}

/* Repeats a failed request sector by sector: the rest may be good. */
static unsigned read_sectors(const struct bw_fs *fs, const struct bw_request *whole,
                             struct bw_request *sectors)
{
    uint32_t sectorsize = fs->superblock.sectorsize;
    struct bw_data_expectation expectations[SECTORS];
    unsigned count = 0;
    for (uint32_t at = 0; at < whole->length; at += sectorsize, count++) {
        sectors[count] = *whole;
        sectors[count].address += at;
        sectors[count].length = sectorsize;
        sectors[count].buffer = (uint8_t *)whole->buffer + at;
        sectors[count].error = NULL;
        sectors[count].rebuilt = false;
        if (!whole->data)
            continue;
        expectations[count] = *whole->data;
        expectations[count].checksums +=
            (size_t)count * bw_checksum_size(fs->superblock.checksum_type);
        sectors[count].data = &expectations[count];
    }
    bw_wind(NULL, fs->reader.top, sectors, count);
    return count;
}

/* Whether memory ran out for one of the sectors: then it is unknown which of them are bad, and the
 * errors of all are freed. */
static bool lacked_memory(struct bw_request *sectors, unsigned count)
{
    bool lacked = false;
    for (unsigned i = 0; i < count; i++)
        lacked |= sectors[i].error && sectors[i].error->code == BW_ERROR_NO_MEMORY;
    for (unsigned i = 0; lacked && i < count; i++)
        bw_error_free(sectors[i].error);
    return lacked;
}

/* Replaces the part that failed as a whole by parts for single sectors. */
static struct bw_error *divide(struct bw_fs *fs, const struct bw_request *failed,
                               struct bw_data_block *block, size_t at,
                               const struct bw_data_file *file)
{
    struct bw_request sectors[SECTORS];
    struct bw_data_part parts[SECTORS];
    unsigned count = read_sectors(fs, failed, sectors);
    if (lacked_memory(sectors, count))
        return bw_error_no_memory();
    const struct bw_data_part whole = block->parts[at];
    for (unsigned i = 0; i < count; i++) {
        uint32_t skip = i * fs->superblock.sectorsize;
        parts[i] = whole;
        parts[i].offset += skip;
        parts[i].length = sectors[i].length;
        parts[i].bytes += skip;
        bw_data_check_rebuilt(fs, file, &sectors[i]);
        if (!sectors[i].error)
            continue;
        parts[i].kind = BW_DATA_BAD;
        parts[i].bytes = NULL;
        parts[i].error = bw_data_name_error(sectors[i].error, file, parts[i].offset);
    }
    block->parts[at] = parts[0];
    return count > 1 ? bw_data_block_insert(block, at + 1, parts + 1, count - 1) : NULL;
}

struct bw_error *bw_data_divide_part(struct bw_fs *fs, struct bw_request *failed,
                                     struct bw_data_block *block, size_t at,
                                     const struct bw_data_file *file)
{
    struct bw_error *error = BW_TAKE(failed->error);
    if (error->code == BW_ERROR_NO_MEMORY)
        return error;
    /* No sector of it is there. */
    if (error->code == BW_ERROR_MISSING_DEVICE || failed->length <= fs->superblock.sectorsize) {
        bw_data_spoil_part(block, at, file, error);
        return NULL;
    }
    bw_error_free(error);
    return divide(fs, failed, block, at, file);
}
