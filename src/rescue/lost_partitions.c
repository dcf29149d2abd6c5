/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Partitions of a disk whose partition table is lost. They begin at multiples of 1 MiB, or of old
 * disks at sector 63, and the only volume of an image may begin after a header of some sectors. So
 * a superblock of btrfs or a header of LUKS is searched for only there. bw_fs_options.offset then
 * opens each of them. A superblock counts only if its checksum and its own position within the file
 * system are correct.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/human.h"
#include "graph/wind.h"
#include "ondisk/superblock.h"
#include "rescue/rescue.h"

enum { STEP = 1 << 20, SECTOR = 512, LISTED = 8 };

/* An image may claim any size. After so many places in a row that cannot be read, 64 GiB, it is
 * left. */
enum { UNREADABLE = 64 << 10 };

/* The part of an image that is searched sector by sector, up to the end of the last superblock. It
 * is read at once, because it may be on a server. */
enum { HEAD = STEP + (64 << 10) + BW_SUPERBLOCK_SIZE };

/* Reads from an image. `head`: its first bytes; NULL: not read. */
static bool read_place(const struct bw_image *image, const uint8_t *head, uint64_t offset,
                       void *buffer, uint32_t length)
{
    if (!head || offset + length > HEAD)
        return bw_try_read_raw(NULL, image->storage, offset, buffer, length);
    memcpy(buffer, head + offset, length);
    return true;
}

struct bw_error *bw_rescue_partitions(struct bw_fs *fs, const struct bw_image_set *set)
{
    static const char luks[] = "LUKS\xba\xbe";
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct bw_image *image = &set->images[i];
        const uint64_t size = bw_xlator_size(image->storage);
        if (image->partition || image->disk || image->is_stream || image->has_failed)
            continue;
        BW_AUTO_FREE uint8_t *bytes = malloc(HEAD);
        const uint8_t *head = NULL;
        if (bytes && size >= HEAD && bw_try_read_raw(NULL, image->storage, 0, bytes, HEAD))
            head = bytes;
        unsigned unreadable = 0;
        for (uint64_t offset = SECTOR; offset < size && count < LISTED && unreadable < UNREADABLE;
             offset += offset < STEP ? SECTOR : STEP) {
            uint8_t block[BW_SUPERBLOCK_SIZE];
            const uint64_t place = bw_superblock_offset(0);
            struct bw_superblock super;
            bool is_encrypted = false, is_btrfs = false;

            /* Places with nothing but a hole are passed over. */
            if (offset >= STEP) {
                const uint64_t end = place + sizeof block;
                const uint64_t stored = bw_xlator_next_stored(image->storage, offset);
                if (stored >= size)
                    break;
                if (stored - offset >= end)
                    offset += (stored - offset - end) / STEP * STEP + STEP;
            }
            if (fs->searched && offset / STEP % 1024 == 0)
                fs->searched(fs->searched_context, offset, size);
            unreadable++;
            if (read_place(image, head, offset, block, sizeof luks - 1)) {
                is_encrypted = memcmp(block, luks, sizeof luks - 1) == 0;
                unreadable = 0;
            }
            if (!is_encrypted && read_place(image, head, offset + place, block, sizeof block)) {
                BW_AUTO_ERROR struct bw_error *bad = bw_superblock_decode(block, place, &super);
                is_btrfs = !bad;
            }
            if (!is_encrypted && !is_btrfs)
                continue;

            /* What it is, and the option that opens it. */
            bw_buffer_format(&text, "%s", count++ ? ", " : "");
            if (is_encrypted) {
                bw_buffer_format(&text, "a volume encrypted with LUKS");
            } else {
                char fsid[UUID_STR_LEN];
                bw_uuid_text(super.fsid, fsid);
                for (char *at = super.label; *at; at++)
                    *at = *at == '`' ? '\'' : *at; /* backquotes enclose options */
                bw_buffer_format(&text, "a btrfs (");
                bw_escape_words(&text, super.label);
                bw_buffer_format(&text, "%s%s)", *super.label ? ", " : "", fsid);
            }
            if (offset % STEP)
                bw_buffer_format(&text, " with `offset %" PRIu64 "`", offset);
            else
                bw_buffer_format(&text, " with `offset %" PRIu64 "M`", offset / STEP);
        }
    }
    BW_TRY(bw_buffer_error(&text));
    if (!count)
        return NULL;
    struct bw_error *error = bw_error_create(
        BW_ERROR_AMBIGUOUS,
        "%s has neither a superblock nor a partition table, but contains %zu volume%s",
        set->images[0].name, count, bw_plural(count));
    return bw_error_advise(bw_error_about(error, set->images[0].path), "open %s%.*s",
                           count > 1 ? "one of them: " : "", (int)text.length, text.data);
}
