/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Superblocks as bytes: printed and checked. */
#include "base/cleanup.h"
#include "btrfs-walk/fs.h"
#include "ondisk/superblock.h"
#include "ondisk/tables.h"

struct bw_error *bw_superblock_print(const uint8_t bytes[BW_SUPERBLOCK_BYTES], struct bw_json *json,
                                     bw_consumer *consume, void *context)
{
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    struct bw_printer printer = {.text = json ? json->buffer : &text, .json = json};
    struct bw_cursor cursor = {.next = bytes, .end = bytes + BW_SUPERBLOCK_BYTES};
    bw_structure_print(&printer, &bw_structure_superblock, NULL, &cursor);
    if (json)
        return NULL;
    return text.failed ? bw_error_no_memory() : consume(context, text.data, text.length);
}

struct bw_error *bw_superblock_check(const uint8_t bytes[BW_SUPERBLOCK_BYTES], unsigned copy)
{
    struct bw_superblock superblock;
    return bw_superblock_decode(bytes, bw_superblock_offset(copy), &superblock);
}
