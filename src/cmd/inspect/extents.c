/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The extents command: where the bytes of files lie, from offsets in the file to offsets on
 * devices. */
#include <inttypes.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cmd/inspect/extents_places.h"
#include "cmd/common/paths.h"
#include "data/extents.h"
#include "format/compression.h"
#include "fs/fs.h"

struct extents_state {
    const char *subvolume;
    bool json;
};

/* The answer for one file under way. */
struct answer {
    const struct bw_fs *fs;
    struct cmd_paths *paths;
    const char *path;
    struct bw_buffer *text;
    struct bw_json *json; /* NULL: as text */
    unsigned count;       /* extents so far */
};

static const struct cmd_option options[] = {
    {0, "json", NULL, "an object a line for each path", CMD_FLAG(struct extents_state, json)},
    CMD_SUBVOLUME_OPTION(struct extents_state),
    {0},
};

static const char *kind_of(const struct bw_extent_piece *piece)
{
    if (piece->kind != BW_PIECE_STORED)
        return piece->kind == BW_PIECE_HOLE ? "hole" : "bad";
    return piece->extent.type == BW_FILE_EXTENT_INLINE     ? "inline"
           : piece->extent.type == BW_FILE_EXTENT_PREALLOC ? "unwritten"
                                                           : "data";
}

/* Text: a line an extent. */

static void print_flags(const struct answer *answer, const struct bw_extent_piece *piece)
{
    const struct bw_file_extent *extent = &piece->extent;
    bw_buffer_format(answer->text, "%s", kind_of(piece));
    if (piece->kind == BW_PIECE_STORED && extent->compression != BW_COMPRESS_NONE)
        bw_buffer_format(answer->text, ",encoded,%s", bw_compression_name(extent->compression));
}

static void print_extent(const struct answer *answer, const struct bw_extent_piece *piece)
{
    const struct bw_range at = bw_extent_stored(piece);
    bw_buffer_format(answer->text, "%5u: %14" PRIu64 "..%14" PRIu64 ": %12" PRIu64 ": ",
                     answer->count, piece->offset, piece->offset + piece->length - 1,
                     piece->length);
    if (at.length)
        bw_buffer_format(answer->text, "%14" PRIu64 ": %12" PRIu64 ": ", at.address, at.length);
    else
        bw_buffer_format(answer->text, "%14s: %12s: ", "-", "-");
    print_flags(answer, piece);
    if (at.length) {
        bw_buffer_append_byte(answer->text, ' ');
        extents_append_places(answer->fs, at, answer->text);
    }
    bw_buffer_append_byte(answer->text, '\n');
}

/* JSON. */

/* Its copies, and behind them, if there is some, the parity of its row. */
static void add_places_of(const struct answer *answer, const struct extents_part *part)
{
    struct bw_location place;
    bool parity = false;
    bw_json_begin_array(answer->json, "copies");
    for (unsigned number = 1; extents_place(answer->fs, part, number, &place); number++) {
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

static void add_places(const struct answer *answer, struct bw_range rest)
{
    struct extents_part part;
    bw_json_begin_array(answer->json, "places");
    /* Ten gigabytes may lie in as many stripes of 64 KiB. */
    while (cmd_paths_give(answer->paths, answer->text) &&
           extents_next_part(answer->fs, &rest, &part)) {
        bw_json_begin_object(answer->json, NULL);
        bw_json_number(answer->json, "logical", part.range.address);
        bw_json_number(answer->json, "length", part.range.length);
        if (part.copies)
            add_places_of(answer, &part);
        bw_json_end(answer->json);
    }
    bw_json_end(answer->json);
}

static void add_extent(const struct answer *answer, const struct bw_extent_piece *piece)
{
    const struct bw_file_extent *extent = &piece->extent;
    const struct bw_range at = bw_extent_stored(piece);
    bw_json_begin_object(answer->json, NULL);
    bw_json_number(answer->json, "offset", piece->offset);
    bw_json_number(answer->json, "length", piece->length);
    bw_json_text(answer->json, "kind", kind_of(piece));
    if (piece->kind == BW_PIECE_STORED) {
        bw_json_text(answer->json, "compression",
                     extent->compression ? bw_compression_name(extent->compression) : "none");
        bw_json_number(answer->json, "generation", extent->generation);
    }
    if (at.length) {
        bw_json_number(answer->json, "extent_logical", extent->disk_bytenr);
        bw_json_number(answer->json, "extent_stored", extent->disk_num_bytes);
        bw_json_number(answer->json, "extent_length", extent->ram_bytes);
        bw_json_number(answer->json, "extent_offset",
                       extent->offset + (piece->offset - piece->extent_start));
        add_places(answer, at);
    }
    bw_json_end(answer->json);
}

/* Both. */

static void tell(struct answer *answer, struct bw_extent_piece *piece)
{
    if (piece->kind == BW_PIECE_BAD)
        cmd_paths_miss(answer->paths, bw_error_prefix(piece->error, "%s", answer->path));
    if (answer->json)
        add_extent(answer, piece);
    else
        print_extent(answer, piece);
    answer->count++;
}

/* A hole that is known only bit by bit is one. Behind the end of the file there are none. */
static bool join_hole(struct bw_extent_piece *hole, const struct bw_extent_piece *piece,
                      uint64_t size)
{
    if (piece->kind != BW_PIECE_HOLE)
        return false;
    if (!hole->length)
        *hole = *piece;
    else
        hole->length = piece->offset + piece->length - hole->offset;
    if (hole->offset + hole->length > size)
        hole->length = hole->offset < size ? size - hole->offset : 0;
    return true;
}

static struct bw_error *tell_all(struct answer *answer, const struct bw_data_file *file)
{
    struct bw_extent_cursor cursor;
    struct bw_extent_piece piece, hole = {.length = 0};
    bool got = true;
    struct bw_error *error = NULL;
    bw_extents_init(&cursor, (struct bw_fs *)(uintptr_t)answer->fs);
    bw_extents_seek(&cursor, file, 0, INT64_MAX);
    while (cmd_paths_give(answer->paths, answer->text) &&
           !(error = bw_extents_next(&cursor, &piece, &got)) && got) {
        if (join_hole(&hole, &piece, file->size))
            continue;
        if (hole.length)
            tell(answer, &hole);
        hole.length = 0;
        tell(answer, &piece);
    }
    if (!error && hole.length)
        tell(answer, &hole);
    bw_extents_free(&cursor);
    return error;
}

static struct bw_error *tell_as_json(struct answer *answer, const struct bw_data_file *file)
{
    struct bw_json json = bw_json_start(answer->text, false);
    answer->json = &json;
    bw_json_begin_object(&json, NULL);
    bw_json_bytes(&json, "path", answer->path, strlen(answer->path));
    bw_json_number(&json, "inode", file->inode);
    bw_json_number(&json, "tree", bw_subvolume_id(file->subvolume));
    bw_json_number(&json, "size", file->size);
    bw_json_bool(&json, "checksums", !file->unchecked);
    bw_json_begin_array(&json, "extents");
    struct bw_error *error = tell_all(answer, file);
    bw_json_end(&json);
    bw_json_end(&json);
    bw_buffer_append_byte(answer->text, '\n');
    return error;
}

static struct bw_error *tell_as_text(struct answer *answer, const struct bw_data_file *file)
{
    cmd_paths_append_name(answer->paths, answer->path, strlen(answer->path), answer->text);
    bw_buffer_format(answer->text, ": %" PRIu64 " bytes%s\n", file->size,
                     file->unchecked ? ", no checksums" : "");
    bw_buffer_format(answer->text, "%5s: %14s..%14s: %12s: %14s: %12s: %s\n", "ext", "offset",
                     "end", "length", "logical", "stored", "flags device:offset[+length],...");
    struct bw_error *error = tell_all(answer, file);
    bw_buffer_format(answer->text, "%u extent%s\n", answer->count, answer->count == 1 ? "" : "s");
    return error;
}

static struct bw_error *answer_path(void *context, struct cmd_paths *paths, const char *path,
                                    const struct bw_place *place, struct bw_buffer *text)
{
    const struct extents_state *state = context;
    struct answer answer = {paths->session.fs, paths, path, text, NULL, 0};
    struct bw_inode inode;
    BW_TRY(bw_inode_get(answer.fs, place, &inode));
    if (!S_ISREG(inode.mode) && !S_ISLNK(inode.mode))
        return bw_error_create(BW_ERROR_NOT_FOUND, "not a regular file");
    const struct bw_data_file file = bw_data_file_of(place, &inode);
    return state->json ? tell_as_json(&answer, &file) : tell_as_text(&answer, &file);
}

static int run(const struct cmd_common *common, void *state)
{
    struct extents_state *extents = state;
    struct cmd_paths paths;
    int status = cmd_paths_open(common, extents->subvolume, &paths);
    return status ? status
                  : cmd_paths_close(&paths, cmd_paths_answer(&paths, true, answer_path, extents));
}

const struct command cmd_extents = {
    .name = "extents",
    .operands = "IMAGE PATH...",
    .summary = "Prints where the contents of files lie on the devices.",
    .details = "\nA PATH begins at the top-level subvolume (id 5), or at that of --subvol. An "
               "extent has a range "
               "of\n"
               "the file, the logical address and number of the bytes that are stored for it, and "
               "for every copy\n"
               "DEVICE:OFFSET. Of one that lies on several stripes it is DEVICE:OFFSET+LENGTH for "
               "every device: "
               "all\n"
               "that belongs to the extent there, copies and parity; --json tells each stripe. All "
               "numbers are\n"
               "bytes. Exit status: 0 all answered; 1 part of the answer is missing; 2 wrong usage "
               "or not a btrfs\n"
               "file system; 3 a feature of the image is not supported.\n",
    .examples = "  btrfs-walk extents disk.img /var/lib/db                  a table\n"
                "  btrfs-walk extents --json disk.img /a | jq .extents      for programs\n",
    .options = options,
    .run = run,
    .state_size = sizeof(struct extents_state),
    .takes_paths = true,
    .needs_path = true,
};
