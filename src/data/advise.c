/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hints about data: the stored ranges of the pieces that come next, as few calls as possible. */
#include "data/advise.h"

#include "base/cleanup.h"
#include "fs/fs.h"
#include "graph/wind.h"

enum {
    RANGES = 32,
    PIECES = 4096, /* of one call: no file makes a hint expensive */
};

void bw_data_advisor_init(struct bw_data_advisor *advisor, struct bw_fs *fs)
{
    *advisor = (struct bw_data_advisor){.done = 0};
    bw_extents_init(&advisor->cursor, fs);
}

void bw_data_advisor_free(struct bw_data_advisor *advisor)
{
    bw_extents_free(&advisor->cursor);
}

/* What of the disk a piece needs; length 0: nothing. */
static struct bw_range needed_range(const struct bw_extent_piece *piece)
{
    return piece->extent.type == BW_FILE_EXTENT_REGULAR ? bw_extent_stored(piece)
                                                        : (struct bw_range){0};
}

static void add_range(struct bw_range *ranges, size_t *count, struct bw_range range)
{
    struct bw_range *last = *count ? &ranges[*count - 1] : NULL;
    if (last && last->address + last->length == range.address)
        last->length += range.length;
    else if (range.length)
        ranges[(*count)++] = range;
}

struct bw_error *bw_data_advise(struct bw_data_advisor *advisor, const struct bw_data_file *file,
                                uint64_t offset, uint64_t end)
{
    struct bw_extent_cursor *cursor = &advisor->cursor;
    struct bw_range ranges[RANGES];
    size_t count = 0;
    if (offset >= end) /* nothing is wanted, perhaps not even of a file */
        return NULL;
    bool same = cursor->file.inode == file->inode &&
                cursor->file.subvolume->tree.id == file->subvolume->tree.id;
    bool got = true;
    if (same && advisor->done > offset && advisor->done - offset <= UINT64_C(64) << 20)
        offset = advisor->done;
    bw_extents_seek(cursor, file, offset, end < file->size ? end : file->size);
    for (unsigned i = 0; got && count < RANGES && i < PIECES; i++) {
        struct bw_extent_piece piece;
        BW_TRY(bw_extents_next(cursor, &piece, &got));
        if (!got)
            break;
        bw_error_free(piece.error);
        add_range(ranges, &count, needed_range(&piece));
    }
    advisor->done = cursor->offset;
    if (count)
        bw_wind_advise(NULL, cursor->fs->reader.top, ranges, count);
    return NULL;
}
