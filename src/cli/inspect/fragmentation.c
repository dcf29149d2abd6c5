/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fragmentation command: histograms of the extents of files, and of free ranges. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "btrfs-walk/record.h"
#include "btrfs-walk/row_records.h"
#include "btrfs-walk/space.h"
#include "cli/common/answer.h"
#include "cli/common/monitor.h"
#include "cli/common/output.h"
#include "draw/histogram.h"

enum { POWERS = 64, MOST_TYPES = 8 };

struct fragmentation_state {
    const char *picture; /* NULL: none */
};

static const struct cmd_option options[] = {
    {0, "svg", "FILE", "also draw the histograms, and write the picture to FILE",
     CMD_TEXT(struct fragmentation_state, picture)},
    {0},
};

/* A histogram: numbers of objects by powers of two. */
struct histogram {
    const char *chunk_type; /* NULL: not used yet */
    uint64_t counts[POWERS], bytes[POWERS];
};

/* A chunk, whose type its free ranges have. */
struct chunk {
    uint64_t end;
    const char *type;
};

struct fragmentation {
    const struct fragmentation_state *state;
    struct cmd_output_file picture;
    uint64_t whole; /* files without extents */
    struct histogram files, free[MOST_TYPES];
    struct chunk *chunks; /* ascending */
    size_t chunk_count, chunk_capacity;
    size_t chunk; /* the chunk of the last free range */
};

static void add_value(struct histogram *histogram, uint64_t value, uint64_t bytes)
{
    const int power = POWERS - 1 - __builtin_clzll(value);
    histogram->counts[power]++;
    histogram->bytes[power] += bytes;
}

static struct bw_error *on_file(void *context, const struct bw_du_entry *entry)
{
    struct fragmentation *fragmentation = context;
    if (entry->place.type == BW_FILE_DIRECTORY)
        return NULL;
    if (entry->extent_count)
        add_value(&fragmentation->files, entry->extent_count, entry->total);
    else
        fragmentation->whole++;
    return NULL;
}

static struct bw_error *on_chunk(void *context, const struct bw_chunk_info *chunk)
{
    struct fragmentation *fragmentation = context;
    if (!BW_ARRAY_RESERVE(fragmentation->chunks, fragmentation->chunk_count,
                          fragmentation->chunk_capacity))
        return bw_error_no_memory();
    fragmentation->chunks[fragmentation->chunk_count++] =
        (struct chunk){chunk->logical + chunk->length, bw_chunk_type_name(chunk->type)};
    return NULL;
}

/* The ranges come chunk by chunk. */
static struct bw_error *on_free_range(void *context, const struct bw_free_range *range)
{
    struct fragmentation *fragmentation = context;
    while (fragmentation->chunk + 1 < fragmentation->chunk_count &&
           fragmentation->chunks[fragmentation->chunk].end <= range->logical)
        fragmentation->chunk++;
    const char *type = fragmentation->chunks[fragmentation->chunk].type;
    size_t i = 0;
    while (i + 1 < MOST_TYPES && fragmentation->free[i].chunk_type &&
           strcmp(fragmentation->free[i].chunk_type, type) != 0)
        i++;
    fragmentation->free[i].chunk_type = type;
    add_value(&fragmentation->free[i], range->length, range->length);
    return NULL;
}

static struct bw_error *write_files(struct cmd_answer *answer, uint64_t extents, uint64_t files,
                                    uint64_t bytes)
{
    const struct bw_fragmentinfo row = {
        .kind = "files", .extent_count = extents, .files = files, .bytes = bytes};
    return cmd_answer_write(answer, &row, sizeof row,
                            BW_MEMBER(fragmentinfo, length) | BW_MEMBER(fragmentinfo, holes));
}

static struct bw_error *write_free(struct cmd_answer *answer, const struct histogram *histogram,
                                   unsigned power)
{
    const struct bw_fragmentinfo row = {.kind = "free",
                                        .chunk_type = histogram->chunk_type,
                                        .length = UINT64_C(1) << power,
                                        .holes = histogram->counts[power],
                                        .bytes = histogram->bytes[power]};
    return cmd_answer_write(answer, &row, sizeof row,
                            BW_MEMBER(fragmentinfo, extent_count) | BW_MEMBER(fragmentinfo, files));
}

static struct bw_error *write_histograms(struct cmd_answer *answer,
                                         const struct fragmentation *fragmentation)
{
    const struct histogram *files = &fragmentation->files;
    if (fragmentation->whole)
        BW_TRY(write_files(answer, 0, fragmentation->whole, 0));
    for (unsigned i = 0; i < POWERS; i++)
        if (files->counts[i])
            BW_TRY(write_files(answer, UINT64_C(1) << i, files->counts[i], files->bytes[i]));
    for (unsigned k = 0; k < MOST_TYPES; k++)
        for (unsigned i = 0; i < POWERS; i++)
            if (fragmentation->free[k].counts[i])
                BW_TRY(write_free(answer, &fragmentation->free[k], i));
    return NULL;
}

/* The picture. */

/* The bars of all histograms. */
struct drawing {
    struct bw_bar bars[(1 + MOST_TYPES) * POWERS + 1];
    struct bw_histogram histograms[1 + MOST_TYPES];
    char titles[MOST_TYPES][BW_HISTOGRAM_LABEL];
    size_t bar_count, count;
};

static struct bw_bar *next_bar(struct drawing *drawing)
{
    struct bw_histogram *histogram = &drawing->histograms[drawing->count];
    histogram->bars = histogram->bars ? histogram->bars : &drawing->bars[drawing->bar_count];
    histogram->count++;
    return &drawing->bars[drawing->bar_count++];
}

/* Files by number of extents: a bar is as long as there are files. */
static void draw_files(struct drawing *drawing, const struct fragmentation *fragmentation)
{
    const struct histogram *files = &fragmentation->files;
    drawing->histograms[0].title = "Files by number of extents";
    for (int power = -1; power < POWERS; power++) {
        const uint64_t first = power < 0 ? 0 : UINT64_C(1) << power,
                       count = power < 0 ? fragmentation->whole : files->counts[power];
        if (!count)
            continue;
        struct bw_bar *bar = next_bar(drawing);
        bar->value = count;
        snprintf(bar->name, sizeof bar->name, power < 1 ? "%" PRIu64 : "%" PRIu64 " to %" PRIu64,
                 first, 2 * first - 1);
        snprintf(bar->text, sizeof bar->text, "%" PRIu64 " file%s", count, bw_plural(count));
    }
    drawing->count++;
}

/* Free ranges by length: a bar is as long as the ranges are together. */
static void draw_free(struct drawing *drawing, const struct histogram *free)
{
    char size[BW_SIZE_ROOM];
    char *title = drawing->titles[drawing->count - 1];
    snprintf(title, BW_HISTOGRAM_LABEL, "Free space in chunks of type %s, by length of ranges",
             free->chunk_type);
    drawing->histograms[drawing->count].title = title;
    for (unsigned power = 0; power < POWERS; power++) {
        if (!free->counts[power])
            continue;
        struct bw_bar *bar = next_bar(drawing);
        bar->value = free->bytes[power];
        *bw_write_short_size(size, UINT64_C(1) << power) = '\0';
        snprintf(bar->name, sizeof bar->name, "from %s", size);
        *bw_write_size(size, free->bytes[power], false) = '\0';
        snprintf(bar->text, sizeof bar->text, "%s in %" PRIu64 " range%s", size,
                 free->counts[power], bw_plural(free->counts[power]));
    }
    drawing->count++;
}

static struct bw_error *write_picture(struct fragmentation *fragmentation)
{
    BW_AUTO_FREE struct drawing *drawing = calloc(1, sizeof *drawing);
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    if (!drawing)
        return bw_error_no_memory();
    draw_files(drawing, fragmentation);
    for (unsigned i = 0; i < MOST_TYPES && fragmentation->free[i].chunk_type; i++)
        draw_free(drawing, &fragmentation->free[i]);
    bw_histograms_svg(&text, "Fragmentation", drawing->histograms, drawing->count);
    return text.failed ? bw_error_no_memory()
                       : cmd_output_file_write(&fragmentation->picture, &text);
}

static struct bw_error *count_fragments(struct bw_fs *fs, struct fragmentation *fragmentation)
{
    const struct bw_du_options files = {.struct_size = sizeof files,
                                        .visit = on_file,
                                        .context = fragmentation,
                                        .sizes_only = true};
    const struct bw_free_options holes = {.struct_size = sizeof holes,
                                          .kinds = 1 << BW_FREE_SPACE | 1 << BW_FREE_UNUSED,
                                          .visit = on_free_range,
                                          .context = fragmentation};
    BW_TRY(bw_du(fs, &files));
    BW_TRY(bw_fs_chunks(fs, on_chunk, fragmentation));
    return bw_free_ranges(fs, &holes);
}

static struct bw_error *list(struct cmd_answer *answer, void *context)
{
    struct fragmentation *fragmentation = context;
    cmd_progress_expect_trees(answer->session.fs, true);
    struct bw_error *error = count_fragments(answer->session.fs, fragmentation);
    error = bw_error_first(error, write_histograms(answer, fragmentation));
    if (!error && fragmentation->state->picture)
        error = write_picture(fragmentation);
    return cmd_output_file_close(&fragmentation->picture, error);
}

static int run(const struct cmd_common *common, void *state)
{
    struct fragmentation fragmentation = {.state = state, .picture = {.descriptor = -1}};
    struct cmd_common own = *common;
    const struct cmd_answer_plan plan = {
        .record = cmd_fragmentation.record,
        .columns = "kind,chunk_type,extent_count,length,files,holes,bytes",
        .list = list,
        .context = &fragmentation};
    fragmentation.picture.common = common;
    fragmentation.picture.name = fragmentation.state->picture;
    if (fragmentation.state->picture) {
        own.writing.open_outputs = cmd_output_file_open;
        own.writing.outputs = &fragmentation.picture;
    }
    const int status = cmd_answer_run(&own, &plan);
    bw_error_free(cmd_output_file_close(&fragmentation.picture, NULL));
    free(fragmentation.chunks);
    return status;
}

const struct command cmd_fragmentation = {
    .name = "fragmentation",
    .topic = cmd_topic_space,
    .operands = "IMAGE...",
    .summary = "Prints how many extents files have, and how large the free ranges are.",
    .details =
        "\n"
        "Prints a histogram of the files by number of extents, as 'du -o extent_count' counts\n"
        "them, and one of the free ranges in chunks of each type by length. Each row covers\n"
        "the values from the one shown to below twice that value. A file with several names\n"
        "counts once; a file in a snapshot counts again.\n\n"
        "--svg draws both. The length of a bar is the number of files, or the total size of the\n"
        "free ranges.\n",
    .examples =
        "  btrfs-walk fragmentation disk.img\n"
        "  btrfs-walk fragmentation --svg picture.svg disk.img\n"
        "  btrfs-walk du --sort -extent_count --top 20 --type f -o extent_count,path disk.img\n"
        "  btrfs-walk picture --by fill disk.img  where the free space is\n",
    .options = options,
    .record = "fragmentinfo",
    .run = run,
    .state_size = sizeof(struct fragmentation_state),
};
