/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies of superblocks as rows of the record superblockinfo. */
#include "btrfs-walk/fs.h"
#include "ondisk/tables.h"
#include "record/fields.h"

struct bw_error *bw_rows_write_superblock(struct bw_rows_stream *stream, const char *path,
                                          unsigned copy, uint64_t offset, const uint8_t *bytes,
                                          const struct bw_error *bad)
{
    struct bw_superblock_copy record = {
        .device = path, .copy = copy, .offset = offset, .message = bad ? bad->message : NULL};
    struct bw_printer printer = {.json = true};
    if (bw_rows_record(stream->rows) != &bw_structure_superblockinfo.record)
        return bw_error_create(BW_ERROR_USAGE, "these rows are not of the record superblockinfo");
    memcpy(&record.superblock, bytes, BW_SUPERBLOCK_BYTES);
    printer.part.start = (const uint8_t *)&record;
    bw_rows_append_record(stream->rows, &record, UINT64_MAX, &printer.text);
    struct bw_error *error = bw_error_no_memory();
    if (!printer.text.failed)
        error = bw_rows_take(stream, printer.text.data, printer.text.length);
    bw_buffer_free(&printer.text);
    return error;
}
