/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The extents command: where the bytes of files are, from offsets in the file to offsets on
 * devices. In the table, stripes of an extent that are adjacent on a device are joined to one
 * range. With RAID 5 and 6, each device holds parity instead of data in some rows; counting the
 * parity, the ranges of a device have no gaps.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "btrfs-walk/file.h"
#include "btrfs-walk/records.h"
#include "cli/common/paths.h"

enum { WORTH_WRITING = 64 << 10 };

struct extents_state {
    const char *subvolume;
};

/* The output for one file. */
struct listing {
    struct cmd_paths *paths;
    const char *path;
    struct bw_file *file;
};

static const struct cmd_option options[] = {
    CMD_SUBVOLUME_OPTION(struct extents_state, subvolume),
    {0},
};

static const char *const kinds[] = {
    [BW_EXTENT_HOLE] = "hole",     [BW_EXTENT_REGULAR] = "data",
    [BW_EXTENT_INLINE] = "inline", [BW_EXTENT_UNWRITTEN] = "unwritten",
    [BW_EXTENT_BAD] = "bad",
};

/* The bytes on disk of an extent, or a part of them that is contiguous on every device. */
struct part {
    struct bw_fs *fs;
    uint64_t logical, length;
    unsigned copies; /* of a contiguous part; 0: no chunk contains it */
};

/* Splits the first contiguous part off a range of logical addresses. False if the range is empty.
 */
static bool next_part(struct part *rest, struct part *part)
{
    struct bw_mapping first;
    if (!rest->length)
        return false;
    bw_error_free(bw_fs_map(rest->fs, rest->logical, rest->length, 1, &first));
    *part = (struct part){rest->fs, rest->logical, first.length, first.copies};
    rest->logical += first.length;
    rest->length -= first.length;
    return true;
}

/* Finds the location of a copy, numbered from 1. After the copies follow the locations of the row's
 * parity, with `rebuilt` set: P, then Q. False if there are no more. */
static bool find_place(const struct part *part, unsigned number, struct bw_mapping *place)
{
    const struct bw_mapping before = *place;
    if (number > part->copies)
        return false;
    BW_AUTO_ERROR struct bw_error *error =
        bw_fs_map(part->fs, part->logical, part->length, number, place);
    /* Several combinations with Q can rebuild a copy; Q is listed once. */
    return !error &&
           !(number > 1 && place->rebuilt && before.rebuilt && place->devid == before.devid);
}

/* Records. */

/* Lists either the copies or the parity of a part. */
static struct bw_error *list_some(const struct part *part, bool parity, struct bw_record_sink *sink)
{
    struct bw_mapping place = {.copies = 0};
    for (unsigned number = 1; find_place(part, number, &place); number++) {
        const struct bw_copyinfo row = {
            .devid = place.devid, .offset = place.offset, .missing = !place.present};
        if (place.rebuilt == parity)
            BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

static struct bw_error *list_copies(void *context, struct bw_record_sink *sink)
{
    return list_some(context, false, sink);
}

static struct bw_error *list_parity(void *context, struct bw_record_sink *sink)
{
    return list_some(context, true, sink);
}

/* Lists the parts one by one: an extent may consist of many stripes of 64 KiB. */
static struct bw_error *list_places(void *context, struct bw_record_sink *sink)
{
    struct part rest = *(const struct part *)context, part;
    while (next_part(&rest, &part)) {
        struct bw_stripeinfo row = {.logical = part.logical, .length = part.length};
        struct bw_mapping place = {.copies = 0};
        bool has_parity = false;
        for (unsigned number = 1; !has_parity && find_place(&part, number, &place); number++)
            has_parity = place.rebuilt;
        if (part.copies)
            row.copies = (struct bw_records){list_copies, &part};
        if (has_parity)
            row.parity = (struct bw_records){list_parity, &part};
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
    return NULL;
}

/* The next extent of a file: its row, and where it is stored, to which the row may point. False
 * after the last. */
static struct bw_error *next_extent(const struct listing *listing, struct bw_extentinfo *row,
                                    struct part *stored, bool *got)
{
    const struct bw_extent *extent;
    BW_TRY(bw_file_next_extent(listing->file, &extent));
    *got = extent;
    if (!extent)
        return NULL;
    if (extent->kind == BW_EXTENT_BAD)
        cmd_format_miss(&listing->paths->format,
                        bw_error_prefix(bw_error_copy(extent->error), "%s", listing->path));
    *stored = (struct part){listing->paths->format.session.fs, extent->used_logical,
                            extent->used_stored, 0};
    const bool has_item = extent->kind != BW_EXTENT_HOLE && extent->kind != BW_EXTENT_BAD;
    const bool is_stored = extent->used_stored;
    *row = (struct bw_extentinfo){
        .file_offset = extent->offset,
        .length = extent->length,
        .extent_kind = kinds[extent->kind],
        .compression = has_item ? bw_compression_name(extent->compression) : NULL,
        .generation = cmd_if_known(has_item, extent->generation),
        .extent_logical = cmd_if_known(is_stored, extent->logical),
        .extent_stored = cmd_if_known(is_stored, extent->stored),
        .extent_length = cmd_if_known(is_stored, extent->ram_bytes),
        .extent_offset = cmd_if_known(is_stored, extent->extent_offset),
    };
    if (is_stored)
        row->places = (struct bw_records){list_places, stored};
    return NULL;
}

static struct bw_error *list_extents(void *context, struct bw_record_sink *sink)
{
    struct bw_extentinfo row;
    struct part stored;
    bool got = true;
    for (;;) {
        BW_TRY(next_extent(context, &row, &stored, &got));
        if (!got)
            return NULL;
        BW_TRY(sink->visit(sink, &row, sizeof row));
    }
}

/* The table: one line per extent. */

/* A range on a device. */
struct span {
    struct bw_mapping start;
    uint64_t length;
    bool no_location, parity;
};

/* Ranges that may still be extended. */
struct spans {
    struct span items[256]; /* if there are more, they are written before they are complete */
    unsigned count, next;   /* next: the index after the range extended last */
    bool several;           /* there is more than one range */
    const char *separator;
    struct bw_buffer *text;
};

static void write_spans(struct spans *spans)
{
    for (unsigned i = 0; i < spans->count; i++) {
        const struct span *span = &spans->items[i];
        if (span->no_location)
            bw_buffer_format(spans->text, "%snowhere", spans->separator);
        else
            bw_buffer_format(spans->text, "%s%" PRIu64 ":%" PRIu64, spans->separator,
                             span->start.devid, span->start.offset);
        if (spans->several)
            bw_buffer_format(spans->text, "+%" PRIu64, span->length);
        if (span->parity)
            bw_buffer_format(spans->text, " (parity)");
        if (!span->no_location && !span->start.present)
            bw_buffer_format(spans->text, " (missing)");
        spans->separator = ",";
    }
    spans->count = spans->next = 0;
}

/* Extends a range by an adjacent one; false if it is not adjacent. */
static bool extend_span(struct span *span, const struct span *by)
{
    const uint64_t start = span->start.offset, end = start + span->length;
    const uint64_t by_start = by->start.offset, by_end = by_start + by->length;
    if (span->no_location != by->no_location || span->start.devid != by->start.devid ||
        by_start > end || by_end < start)
        return false;
    span->parity &= by->parity;
    span->start.offset = by_start < start ? by_start : start;
    span->length = (by_end > end ? by_end : end) - span->start.offset;
    return true;
}

/* Stripes come in the same order, row after row, so the next range is usually the one to extend. */
static void add_span(struct spans *spans, const struct span *span)
{
    for (unsigned i = 0; i < spans->count; i++) {
        unsigned at = (spans->next + i) % spans->count;
        if (extend_span(&spans->items[at], span)) {
            spans->next = at + 1;
            return;
        }
    }
    if (spans->count == sizeof spans->items / sizeof *spans->items) {
        spans->several = true;
        write_spans(spans);
    }
    spans->items[spans->count++] = *span;
}

static struct bw_error *print_table(struct cmd_format *format, const void *record)
{
    const struct bw_contentinfo *row = record;
    struct bw_buffer *text = &format->text;
    struct bw_extentinfo extent;
    struct part stored, part;
    unsigned count = 0;
    cmd_format_append_name(format, row->path.data, row->path.length, text);
    bw_buffer_format(text, ": %" PRIu64 " byte%s%s\n", row->size, bw_plural(row->size),
                     row->checksums ? "" : ", no checksums");
    bw_buffer_format(text, "%5s: %14s..%14s: %12s: %14s: %12s: %s\n", "ext", "offset", "end",
                     "length", "logical", "stored", "flags device:offset[+length],...");
    for (bool got;; count++) {
        BW_TRY(next_extent(row->extents.context, &extent, &stored, &got));
        if (!got)
            break;
        bw_buffer_format(text, "%5u: %14" PRIu64 "..%14" PRIu64 ": %12" PRIu64 ": ", count,
                         extent.file_offset, extent.file_offset + extent.length - 1, extent.length);
        if (stored.length)
            bw_buffer_format(text, "%14" PRIu64 ": %12" PRIu64 ": ", stored.logical, stored.length);
        else
            bw_buffer_format(text, "%14s: %12s: ", "-", "-");
        bw_buffer_format(text, "%s", extent.extent_kind);
        if (extent.compression &&
            strcmp(extent.compression, bw_compression_name(BW_COMPRESS_NONE)) != 0)
            bw_buffer_format(text, ",encoded,%s", extent.compression);
        struct spans spans = {.count = 0, .separator = " ", .text = text};
        while (next_part(&stored, &part)) {
            struct bw_mapping place = {.offset = part.logical};
            spans.several |= stored.length != 0;
            if (!part.copies)
                add_span(&spans, &(struct span){place, part.length, true, false});
            for (unsigned number = 1; find_place(&part, number, &place); number++)
                add_span(&spans, &(struct span){place, part.length, false, place.rebuilt});
        }
        write_spans(&spans);
        bw_buffer_append_byte(text, '\n');
        BW_TRY(cmd_format_pass_on(format, WORTH_WRITING));
    }
    bw_buffer_format(text, "%u extent%s\n", count, bw_plural(count));
    return NULL;
}

static struct bw_error *handle_path(void *context, struct cmd_paths *paths, const char *path,
                                    const struct bw_place *place, struct bw_buffer *text)
{
    struct listing listing = {.paths = paths, .path = path};
    (void)context, (void)text;
    BW_TRY(bw_file_open(paths->format.session.fs, place, NULL, &listing.file));
    const struct bw_inode *inode = bw_file_inode(listing.file);
    const struct bw_contentinfo row = {
        .path = {path, strlen(path)},
        .inode = place->inode,
        .subvolume = bw_subvolume_id(place->subvolume),
        .size = inode->size,
        .checksums = !(inode->flags & BW_INODE_NODATASUM),
        .extents = {list_extents, &listing},
    };
    struct bw_error *error = cmd_format_write(&paths->format, &row, sizeof row);
    bw_file_close(listing.file);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    const struct extents_state *extents = state;
    const struct cmd_format_plan plan = {.record = cmd_extents.record, .print = print_table};
    return cmd_paths_run(common, extents->subvolume, true, &plan, handle_path, state);
}

const struct command cmd_extents = {
    .name = "extents",
    .topic = cmd_topic_files,
    .operands = "IMAGE PATH...",
    .summary = "Prints where the extents of files are stored on the devices.",
    .details = CMD_PATHS_DETAILS
    "For each extent, prints its range in the file, the logical address and length of its\n"
    "bytes on disk, and DEVID:OFFSET for each mirror. If an extent spans several stripes,\n"
    "DEVID:OFFSET+LENGTH covers all its mirrors and parity on that device; --json prints\n"
    "each stripe. All numbers are bytes.\n",
    .examples = "  btrfs-walk extents disk.img /var/lib/db              a table\n"
                "  btrfs-walk extents --json disk.img /a | jq .extents  for programs\n",
    .options = options,
    .record = "contentinfo",
    .run = run,
    .state_size = sizeof(struct extents_state),
    .takes_paths = true,
    .takes_list = true,
    .missing = "no path given",
};
