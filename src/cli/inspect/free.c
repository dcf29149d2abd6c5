/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The free command: ranges whose contents no file shows, and their contents for programs that
 * search for files without a file system. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/zeros.h"
#include "btrfs-walk/records.h"
#include "btrfs-walk/space.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "cli/export/export.h"

/* A running free command. */
struct freeing {
    /* The options. */
    const char *file_name; /* NULL: only list */
    unsigned kinds;        /* bits of enum bw_free_kind; 0: all */
    bool sizes;            /* only a table of lengths */

    /* While it runs. */
    struct cmd_format *format;
    struct cmd_output_file file;
    uint64_t length; /* bytes of the stream so far */
    struct cmd_bad_ranges bad;
};

static struct bw_error *store_kinds(void *target, const struct cmd_option *option,
                                    const char *argument)
{
    unsigned *kinds = target;
    for (const char *word = argument;; word++) {
        const size_t length = strcspn(word, ",");
        unsigned kind = 0;
        while (bw_free_kind_names[kind] && (strlen(bw_free_kind_names[kind]) != length ||
                                            memcmp(bw_free_kind_names[kind], word, length) != 0))
            kind++;
        if (!bw_free_kind_names[kind])
            return cmd_bad_argument(option, argument,
                                    "free, unused, hidden, preallocated, unallocated");
        *kinds |= 1U << kind;
        word += length;
        if (!*word)
            return NULL;
    }
}

static const struct cmd_option options[] = {
    {0, "extract", "FILE", "write the contents of all ranges to FILE; -: to stdout, without a list",
     CMD_TEXT(struct freeing, file_name)},
    {0, "kind", "KIND,...",
     "only ranges that are free, unused, hidden, preallocated or unallocated", .store = store_kinds,
     .offset = CMD_AT(struct freeing, kinds, unsigned), .words = bw_free_kind_names},
    {0, "sizes", NULL, "only count the ranges by kind, type of chunk and length",
     CMD_FLAG(struct freeing, sizes)},
    {0},
};

/* An unreadable part becomes zeros, so that the offsets of the rest remain right. */
static struct bw_error *write_part(void *context, const struct bw_data_part *part)
{
    struct freeing *freeing = context;
    struct bw_data_part placed = *part;
    placed.offset += freeing->length;
    if (part->kind == BW_DATA_BYTES && bw_is_zeros(part->bytes, (size_t)part->length))
        placed.kind = BW_DATA_HOLE;
    if (part->kind == BW_DATA_BAD)
        freeing->format->status = STATUS_PARTIAL;
    return cmd_bad_write(&freeing->bad, &freeing->file.output, "the stream of free ranges",
                         &placed);
}

/* Ranges. */

static bool writes_stdout(const struct freeing *freeing)
{
    return freeing->file_name && strcmp(freeing->file_name, "-") == 0;
}

static struct bw_error *write_range(void *context, const struct bw_free_range *range)
{
    struct freeing *freeing = context;
    if (!writes_stdout(freeing)) {
        struct bw_freerangeinfo row = {.stream_offset = freeing->length,
                                       .length = range->length,
                                       .kind = bw_free_kind_names[range->kind],
                                       .logical = range->logical,
                                       .devid = range->devid,
                                       .offset = range->offset};
        if (range->kind == BW_FREE_UNALLOCATED)
            row.logical = BW_ABSENT;
        else
            row.devid = row.offset = BW_ABSENT;
        BW_TRY(cmd_format_write(freeing->format, &row, sizeof row));
    }
    if (freeing->file_name)
        BW_TRY(bw_free_read(freeing->format->session.fs, range, write_part, freeing));
    freeing->length += range->length;
    return NULL;
}

/* Sizes: ranges are counted by powers of two. */

enum { POWERS = 64, MOST_TYPES = 8 };

struct sizes {
    struct bw_chunk_list chunks;   /* ascending; a free range has the type of its chunk */
    size_t chunk;                  /* the chunk of the last range */
    const char *types[MOST_TYPES]; /* [0]: of ranges without a chunk; NULL: not used yet */
    struct {
        uint64_t ranges, bytes;
    } counts[BW_FREE_KINDS][MOST_TYPES][POWERS];
};

/* Ranges are listed chunk by chunk. */
static struct bw_error *count_range(void *context, const struct bw_free_range *range)
{
    struct sizes *sizes = context;
    size_t type = 0;
    if (range->kind != BW_FREE_UNALLOCATED && sizes->chunks.count) {
        const struct bw_chunk_info *chunks = sizes->chunks.items;
        while (sizes->chunk + 1 < sizes->chunks.count &&
               chunks[sizes->chunk].logical + chunks[sizes->chunk].length <= range->logical)
            sizes->chunk++;
        const char *name = bw_chunk_type_name(chunks[sizes->chunk].type);
        for (type = 1; type + 1 < MOST_TYPES && sizes->types[type]; type++)
            if (strcmp(sizes->types[type], name) == 0)
                break;
        sizes->types[type] = name;
    }
    const int power = POWERS - 1 - __builtin_clzll(range->length);
    sizes->counts[range->kind][type][power].ranges++;
    sizes->counts[range->kind][type][power].bytes += range->length;
    return NULL;
}

/* The counts are printed even if damage ends the list. */
static struct bw_error *list_sizes(struct cmd_format *format, void *context)
{
    const struct freeing *freeing = context;
    BW_AUTO_FREE struct sizes *sizes = calloc(1, sizeof *sizes);
    if (!sizes)
        return bw_error_no_memory();
    const struct bw_free_options how = {
        .struct_size = sizeof how, .kinds = freeing->kinds, .visit = count_range, .context = sizes};
    cmd_progress_expect_trees(format->session.fs, false);
    struct bw_error *error = bw_fs_chunks(format->session.fs, &sizes->chunks);
    if (!error)
        error = bw_free_ranges(format->session.fs, &how);
    bw_chunk_list_free(&sizes->chunks);
    for (unsigned kind = 0; kind < BW_FREE_KINDS; kind++)
        for (unsigned type = 0; type < MOST_TYPES; type++)
            for (unsigned power = 0; power < POWERS; power++) {
                const struct bw_freesizeinfo row = {
                    .kind = bw_free_kind_names[kind],
                    .chunk_type = type ? sizes->types[type] : NULL,
                    .length = UINT64_C(1) << power,
                    .ranges = sizes->counts[kind][type][power].ranges,
                    .bytes = sizes->counts[kind][type][power].bytes,
                };
                if (row.ranges)
                    error = bw_error_first(error, cmd_format_write(format, &row, sizeof row));
            }
    return error;
}

static struct bw_error *list(struct cmd_format *format, void *context)
{
    struct freeing *freeing = context;
    struct cmd_output_file *file = format->common->writing.file;
    const struct bw_free_options how = {.struct_size = sizeof how,
                                        .kinds = freeing->kinds,
                                        .visit = write_range,
                                        .context = freeing};
    struct bw_error *error = NULL;
    freeing->format = format;
    freeing->bad = (struct cmd_bad_ranges){.fs = format->session.fs, .on_error = CMD_ON_ERROR_ZERO};
    cmd_progress_expect_trees(format->session.fs, false);
    if (file)
        error = cmd_output_file_start(file);
    if (!error)
        error = bw_free_ranges(format->session.fs, &how);
    cmd_bad_flush(&freeing->bad);
    return cmd_output_file_close(file, error);
}

static struct cmd_format_plan plan_of(const void *state)
{
    const struct freeing *freeing = state;
    if (freeing->sizes)
        return (struct cmd_format_plan){.record = "freesizeinfo",
                                        .columns = "kind,chunk_type,length,ranges,bytes",
                                        .list = list_sizes};
    const char *columns = "stream_offset,length,kind,logical,devid,offset";
    return (struct cmd_format_plan){.columns = writes_stdout(freeing) ? NULL : columns,
                                    .list = list};
}

static const char *find_mistake(const struct cmd_common *common, const void *state)
{
    const struct freeing *freeing = state;
    if (freeing->sizes && freeing->file_name)
        return "--sizes and --extract exclude each other";
    if (writes_stdout(freeing) && !cmd_format_is_for_people(common))
        return "--extract=- writes no list; without --extract, 'free' prints it";
    return NULL;
}

static int run(const struct cmd_common *common, void *state)
{
    struct freeing *freeing = state;
    if (!freeing->file_name)
        return cmd_run_plan(common, &cmd_free, state);
    const struct cmd_common writing =
        cmd_output_file_begin(&freeing->file, common, freeing->file_name);
    freeing->file.binary = "binary data";
    return cmd_run_plan(&writing, &cmd_free, state);
}

const struct command cmd_free = {
    .name = "free",
    .topic = cmd_topic_space,
    .operands = "IMAGE...",
    .summary = "Lists or extracts the space whose contents no file shows.",
    .details =
        "\n"
        "Such space may contain deleted files and older versions, which programs like photorec\n"
        "search for. The kinds of ranges:\n\n"
        "  free          no extent, in a chunk that is in use\n"
        "  unused        a chunk without any extent\n"
        "  hidden        part of an extent that no file shows any more\n"
        "  preallocated  part of an extent that files show as zeros\n"
        "  unallocated   no chunk; a range of a device\n\n"
        "--extract writes the contents of all listed ranges as one stream, in which\n"
        "stream_offset is the offset of a range. Ranges with a logical address are read through\n"
        "the RAID profile, so files that were striped over devices are contiguous again.\n"
        "Compressed data are not decompressed. Nothing verifies the contents; unreadable parts\n"
        "become zeros. Zeros become holes in FILE.\n\n"
        "--sizes shows how fragmented the space is: each line counts the ranges of a kind, in\n"
        "chunks of a type, from the shown length to below twice that length.\n",
    .examples = "  btrfs-walk free disk.img                           a table\n"
                "  btrfs-walk free --extract free.raw disk.img > map  for carving, with its map\n"
                "  btrfs-walk free --kind hidden --extract - disk.img | strings -n 20\n"
                "  btrfs-walk free --sizes --kind free disk.img       how fragmented it is\n",
    .options = options,
    .record = "freerangeinfo",
    .sorts_rows = true,
    .plan_of = plan_of,
    .find_mistake = find_mistake,
    .run = run,
    .state_size = sizeof(struct freeing),
};
