/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The extents command: where the bytes of files lie, from offsets in the file to offsets on
 * devices. In the table, all stripes of an extent that touch on one device are one range of it.
 * Where a row of stripes has parity, its device has no data, and the parity fills that gap: parity
 * included, there is one range a device.
 */
#include <inttypes.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/json.h"
#include "btrfs-walk/file.h"
#include "cli/common/paths.h"

struct extents_state {
    const char *subvolume;
    bool json;
};

/* The answer for one file under way. */
struct answer {
    struct cmd_paths *paths;
    const char *path;
    const struct bw_inode *inode;
    struct bw_buffer *text;
    struct bw_json *json; /* NULL: as a table */
    unsigned count;       /* extents so far */
};

static const struct cmd_option options[] = {
    {0, "json", NULL, "an object a line for each path", CMD_FLAG(struct extents_state, json)},
    CMD_SUBVOLUME_OPTION(struct extents_state, subvolume),
    {0},
};

static const char *const kinds[] = {
    [BW_EXTENT_HOLE] = "hole",     [BW_EXTENT_REGULAR] = "data",
    [BW_EXTENT_INLINE] = "inline", [BW_EXTENT_UNWRITTEN] = "unwritten",
    [BW_EXTENT_BAD] = "bad",
};

/* A part of an extent that is in one piece on each device that has some of it. */
struct part {
    uint64_t logical, length;
    unsigned copies; /* 0: no chunk holds it */
};

/* Takes the first part off a range of logical addresses. False if nothing is left of it. */
static bool next_part(const struct answer *answer, struct part *rest, struct part *part)
{
    struct bw_mapping first;
    if (!rest->length)
        return false;
    bw_error_free(bw_fs_map(answer->paths->session.fs, rest->logical, rest->length, 1, &first));
    *part = (struct part){rest->logical, first.length, first.copies};
    rest->logical += first.length;
    rest->length -= first.length;
    return true;
}

/* A place of a part, by its number from 1 on: first those of its copies, then, with `rebuilt` set,
 * those of the parity of its row: P, then Q. False if there are no more. */
static bool find_place(const struct answer *answer, const struct part *part, unsigned number,
                       struct bw_mapping *place)
{
    const struct bw_mapping before = *place;
    if (number > part->copies)
        return false;
    BW_AUTO_ERROR struct bw_error *error =
        bw_fs_map(answer->paths->session.fs, part->logical, part->length, number, place);
    /* There are many ways to compute a copy from Q, but only one Q. */
    return !error &&
           !(number > 1 && place->rebuilt && before.rebuilt && place->devid == before.devid);
}

/* The table: a line an extent. */

/* A range of a device. */
struct span {
    struct bw_mapping start;
    uint64_t length;
    bool nowhere, parity;
};

/* Ranges that may still grow. */
struct spans {
    struct span items[256]; /* if there are more, they are written before they are complete */
    unsigned count, next;   /* next: the one after the last that has grown */
    bool several;           /* the extent is not in one piece */
    const char *separator;
    struct bw_buffer *text;
};

static void write_spans(struct spans *spans)
{
    for (unsigned i = 0; i < spans->count; i++) {
        const struct span *span = &spans->items[i];
        if (span->nowhere)
            bw_buffer_format(spans->text, "%snowhere", spans->separator);
        else
            bw_buffer_format(spans->text, "%s%" PRIu64 ":%" PRIu64, spans->separator,
                             span->start.devid, span->start.offset);
        if (spans->several)
            bw_buffer_format(spans->text, "+%" PRIu64, span->length);
        bw_buffer_format(spans->text, "%s%s", span->parity ? " (parity)" : "",
                         span->nowhere || span->start.present ? "" : " (missing)");
        spans->separator = ",";
    }
    spans->count = spans->next = 0;
}

/* Extends a span by one that touches it; false if that one does not. */
static bool grow(struct span *span, const struct span *by)
{
    const uint64_t start = span->start.offset, end = start + span->length;
    const uint64_t by_start = by->start.offset, by_end = by_start + by->length;
    if (span->nowhere != by->nowhere || span->start.devid != by->start.devid || by_start > end ||
        by_end < start)
        return false;
    span->parity &= by->parity;
    span->start.offset = by_start < start ? by_start : start;
    span->length = (by_end > end ? by_end : end) - span->start.offset;
    return true;
}

/* Stripes come in the same order, row after row: most often the next span is the one to grow. */
static void add_span(struct spans *spans, const struct span *span)
{
    for (unsigned i = 0; i < spans->count; i++) {
        unsigned at = (spans->next + i) % spans->count;
        if (grow(&spans->items[at], span)) {
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

static void print_places(const struct answer *answer, struct part rest)
{
    struct spans spans = {.count = 0, .separator = " ", .text = answer->text};
    struct part part;
    while (next_part(answer, &rest, &part)) {
        struct bw_mapping place = {.offset = part.logical};
        spans.several |= rest.length != 0;
        if (!part.copies)
            add_span(&spans, &(struct span){place, part.length, true, false});
        for (unsigned number = 1; find_place(answer, &part, number, &place); number++)
            add_span(&spans, &(struct span){place, part.length, false, place.rebuilt});
    }
    write_spans(&spans);
}

static void print_extent(const struct answer *answer, const struct bw_extent *extent)
{
    struct bw_buffer *text = answer->text;
    bw_buffer_format(text, "%5u: %14" PRIu64 "..%14" PRIu64 ": %12" PRIu64 ": ", answer->count,
                     extent->offset, extent->offset + extent->length - 1, extent->length);
    if (extent->used_stored)
        bw_buffer_format(text, "%14" PRIu64 ": %12" PRIu64 ": ", extent->used_logical,
                         extent->used_stored);
    else
        bw_buffer_format(text, "%14s: %12s: ", "-", "-");
    bw_buffer_format(text, "%s", kinds[extent->kind]);
    if (extent->compression != BW_COMPRESS_NONE)
        bw_buffer_format(text, ",encoded,%s", bw_compression_name(extent->compression));
    if (extent->used_stored)
        print_places(answer, (struct part){extent->used_logical, extent->used_stored, 0});
    bw_buffer_append_byte(text, '\n');
}

/* JSON. */

/* Its copies and then, if there is any, the parity of its row. */
static void add_places_of(const struct answer *answer, const struct part *part)
{
    struct bw_mapping place = {.copies = 0};
    bool parity = false;
    bw_json_begin_array(answer->json, "copies");
    for (unsigned number = 1; find_place(answer, part, number, &place); number++) {
        if (place.rebuilt && !parity) {
            bw_json_end(answer->json);
            bw_json_begin_array(answer->json, "parity");
        }
        parity = place.rebuilt;
        bw_json_begin_object(answer->json, NULL);
        bw_json_number(answer->json, "device", place.devid);
        bw_json_number(answer->json, "offset", place.offset);
        bw_json_bool(answer->json, "present", place.present);
        bw_json_end(answer->json);
    }
    bw_json_end(answer->json);
}

static void add_places(const struct answer *answer, struct part rest)
{
    struct part part;
    bw_json_begin_array(answer->json, "places");
    /* Ten gigabytes may lie in as many stripes of 64 KiB. */
    while (cmd_paths_give(answer->paths, answer->text) && next_part(answer, &rest, &part)) {
        bw_json_begin_object(answer->json, NULL);
        bw_json_number(answer->json, "logical", part.logical);
        bw_json_number(answer->json, "length", part.length);
        if (part.copies)
            add_places_of(answer, &part);
        bw_json_end(answer->json);
    }
    bw_json_end(answer->json);
}

static void add_extent(const struct answer *answer, const struct bw_extent *extent)
{
    bw_json_begin_object(answer->json, NULL);
    bw_json_number(answer->json, "offset", extent->offset);
    bw_json_number(answer->json, "length", extent->length);
    bw_json_text(answer->json, "kind", kinds[extent->kind]);
    if (extent->kind != BW_EXTENT_HOLE && extent->kind != BW_EXTENT_BAD) {
        bw_json_text(answer->json, "compression", bw_compression_name(extent->compression));
        bw_json_number(answer->json, "generation", extent->generation);
    }
    if (extent->used_stored) {
        bw_json_number(answer->json, "extent_logical", extent->logical);
        bw_json_number(answer->json, "extent_stored", extent->stored);
        bw_json_number(answer->json, "extent_length", extent->ram_bytes);
        bw_json_number(answer->json, "extent_offset", extent->extent_offset);
        add_places(answer, (struct part){extent->used_logical, extent->used_stored, 0});
    }
    bw_json_end(answer->json);
}

/* Both. */

static struct bw_error *write_extents(struct answer *answer, struct bw_file *file)
{
    struct bw_extent extent;
    bool got = true;
    for (; cmd_paths_give(answer->paths, answer->text); answer->count++) {
        BW_TRY(bw_file_next_extent(file, &extent, &got));
        if (!got)
            break;
        if (extent.kind == BW_EXTENT_BAD)
            cmd_paths_miss(answer->paths,
                           bw_error_prefix(bw_error_copy(extent.error), "%s", answer->path));
        (answer->json ? add_extent : print_extent)(answer, &extent);
    }
    return NULL;
}

static bool is_checked(const struct answer *answer)
{
    return !(answer->inode->flags & BW_INODE_NODATASUM);
}

static struct bw_error *write_json(struct answer *answer, const struct bw_place *place,
                                   struct bw_file *file)
{
    struct bw_json json = bw_json_start(answer->text, false);
    answer->json = &json;
    bw_json_begin_object(&json, NULL);
    bw_json_bytes(&json, "path", answer->path, strlen(answer->path));
    bw_json_number(&json, "inode", place->inode);
    bw_json_number(&json, "tree", bw_subvolume_id(place->subvolume));
    bw_json_number(&json, "size", answer->inode->size);
    bw_json_bool(&json, "checksums", is_checked(answer));
    bw_json_begin_array(&json, "extents");
    struct bw_error *error = write_extents(answer, file);
    bw_json_end(&json);
    bw_json_end(&json);
    answer->json = NULL;
    bw_buffer_append_byte(answer->text, '\n');
    return error;
}

static struct bw_error *write_table(struct answer *answer, struct bw_file *file)
{
    cmd_paths_append_name(answer->paths, answer->path, strlen(answer->path), answer->text);
    bw_buffer_format(answer->text, ": %" PRIu64 " byte%s%s\n", answer->inode->size,
                     bw_plural(answer->inode->size), is_checked(answer) ? "" : ", no checksums");
    bw_buffer_format(answer->text, "%5s: %14s..%14s: %12s: %14s: %12s: %s\n", "ext", "offset",
                     "end", "length", "logical", "stored", "flags device:offset[+length],...");
    struct bw_error *error = write_extents(answer, file);
    bw_buffer_format(answer->text, "%u extent%s\n", answer->count, bw_plural(answer->count));
    return error;
}

static struct bw_error *answer_path(void *context, struct cmd_paths *paths, const char *path,
                                    const struct bw_place *place, struct bw_buffer *text)
{
    const struct extents_state *state = context;
    struct bw_file *file;
    BW_TRY(bw_file_open(paths->session.fs, place, NULL, &file));
    struct answer answer = {paths, path, bw_file_inode(file), text, NULL, 0};
    struct bw_error *error =
        state->json ? write_json(&answer, place, file) : write_table(&answer, file);
    bw_file_close(file);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    const struct extents_state *extents = state;
    return cmd_paths_run(common, extents->subvolume, true, answer_path, state);
}

const struct command cmd_extents = {
    .name = "extents",
    .topic = cmd_topic_files,
    .operands = "IMAGE PATH...",
    .summary = "Prints where the contents of files lie on the devices.",
    .details = CMD_PATHS_DETAILS
    "For each extent, prints its range in the file, the logical address and number of the\n"
    "bytes that are stored for it, and DEVICE:OFFSET for each copy. For an extent that lies on\n"
    "several stripes, DEVICE:OFFSET+LENGTH has all that belongs to it on a device, copies and\n"
    "parity; --json prints each stripe. All numbers are bytes.\n",
    .examples = "  btrfs-walk extents disk.img /var/lib/db                  a table\n"
                "  btrfs-walk extents --json disk.img /a | jq .extents      for programs\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct extents_state),
    .takes_paths = true,
    .takes_list = true,
    .missing = "no path given",
};
