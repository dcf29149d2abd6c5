/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fragmentation command: histograms of the extents of files, and of free ranges. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "btrfs-walk/record.h"
#include "btrfs-walk/row_records.h"
#include "btrfs-walk/space.h"
#include "cli/common/answer.h"
#include "cli/common/monitor.h"

enum { POWERS = 64, MOST_TYPES = 8 };

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
    uint64_t whole; /* files without extents */
    struct histogram files, free[MOST_TYPES];
    struct chunk *chunks; /* ascending */
    size_t chunk_count, chunk_capacity;
    size_t chunk; /* the chunk of the last free range */
};

static void add(struct histogram *histogram, uint64_t value, uint64_t bytes)
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
        add(&fragmentation->files, entry->extent_count, entry->total);
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
    add(&fragmentation->free[i], range->length, range->length);
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

static struct bw_error *count(struct bw_fs *fs, struct fragmentation *fragmentation)
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
    struct fragmentation fragmentation = {.whole = 0};
    (void)context;
    cmd_progress_expect_trees(answer->session.fs, true);
    struct bw_error *error = count(answer->session.fs, &fragmentation);
    free(fragmentation.chunks);
    return bw_error_first(error, write_histograms(answer, &fragmentation));
}

static int run(const struct cmd_common *common, void *state)
{
    (void)state;
    const struct cmd_answer_plan plan = {
        .record = cmd_fragmentation.record,
        .columns = "kind,chunk_type,extent_count,length,files,holes,bytes",
        .list = list};
    return cmd_answer_run(common, &plan);
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
        "counts once; a file in a snapshot counts again.\n",
    .examples =
        "  btrfs-walk fragmentation disk.img\n"
        "  btrfs-walk du --sort -extent_count --top 20 --type f -o extent_count,path disk.img\n"
        "  btrfs-walk picture --by fill disk.img  where the free space is\n",
    .options = cmd_no_options,
    .record = "fragmentinfo",
    .run = run,
};
