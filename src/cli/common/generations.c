/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Older generations: the options that select one of them, and the list of committed ones. */
#include "cli/common/generations.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cli/common/monitor.h"

static struct bw_error *store_tree_root(void *target, const struct cmd_option *option,
                                        const char *argument)
{
    struct bw_generation_choice *choice = target;
    const char *rest = argument;
    uint64_t generation = 0;
    bool good = cmd_parse_bytes(&rest, &choice->tree_root) && choice->tree_root;
    if (good && *rest == '@')
        good = cmd_parse_number(rest + 1, 1, UINT64_MAX, &generation);
    else
        good = good && !*rest;
    if (!good)
        return cmd_bad_argument(option, argument, "a logical address, or one with @GENERATION");
    choice->tree_root_generation = generation;
    return NULL;
}

const struct cmd_option cmd_generation_options[] = {
    {0, "generation", "N", "read the generation of transaction N, if it exists",
     CMD_NUMBER(struct bw_generation_choice, generation, 1, UINT64_MAX, "a generation, from 1 on"),
     .heading = "Generations"},
    {0, "tree-root", "LOGICAL[@GENERATION]", "read the generation with this root tree",
     .store = store_tree_root},
    {0, "chunk-root", "LOGICAL", "use the chunk tree at this address",
     CMD_BYTES(struct bw_generation_choice, chunk_root)},
    {0},
};

const struct cmd_option cmd_index_options[] = {
    {0, "no-scan", NULL, "use only the historic roots that the superblock lists",
     CMD_FLAG(struct cmd_index, no_scan)},
    {0, "index", "FILE",
     "save the results of the scan in FILE; use them if the file system has not changed since",
     CMD_TEXT(struct cmd_index, name)},
    {0},
};

/* The index. */

struct bw_error *cmd_index_open(struct cmd_index *index, const struct cmd_common *common,
                                const struct bw_fs *planned)
{
    struct stat status;
    index->file = cmd_output_file(common, index->name);
    const char *name = index->file.output.name;
    if (!name)
        return NULL;
    const bool exists = stat(name, &status) == 0;
    BW_TRY(cmd_output_file_open(&index->file, planned));
    if (!exists || status.st_size == 0)
        return NULL;
    BW_TRY(bw_buffer_read_file(&index->bytes, name));
    if (!bw_history_is_index(index->bytes.data, index->bytes.length))
        return bw_error_create(BW_ERROR_USAGE, "%s is not an index and will not be overwritten",
                               name);
    return NULL;
}

void cmd_index_close(struct cmd_index *index)
{
    bw_buffer_free(&index->bytes);
    bw_error_free(cmd_output_file_close(&index->file, NULL));
}

struct bw_error *cmd_history_open(const struct cmd_common *common, struct bw_fs *fs,
                                  struct bw_history_options *how, struct bw_history **history)
{
    struct cmd_index *index = common->input.index;
    how->scanning = BW_HISTORY_SCAN_SMALL;
    if (index->no_scan)
        how->scanning = BW_HISTORY_SCAN_NEVER;
    else if (common->input.fs.scan)
        how->scanning = BW_HISTORY_SCAN_ALWAYS;
    how->index = index->bytes.data;
    how->index_size = index->bytes.length;
    how->progress = cmd_progress_scan;
    struct bw_error *error = bw_history_open(fs, how, history);
    cmd_progress_expect(0);
    bw_buffer_free(&index->bytes);
    if (error)
        return error;

    /* The results of a new scan are saved. */
    struct bw_history_facts facts;
    bw_history_facts(*history, &facts);
    if (!index->file.is_open || !facts.scanned || facts.index_used)
        return NULL;
    error = cmd_output_file_start(&index->file);
    if (!error)
        error = bw_history_write_index(*history, cmd_write, &index->file.output);
    error = cmd_output_file_close(&index->file, error);
    if (error) {
        bw_history_close(*history);
        *history = NULL;
    }
    return error;
}

/* The list of historic roots. */

struct bw_error *cmd_generations_find(const struct cmd_common *common, struct bw_fs *fs,
                                      struct cmd_generations *generations)
{
    struct bw_history_options how = {.struct_size = sizeof how, .only_list = true};
    struct bw_history *history = NULL;
    *generations = (struct cmd_generations){.images = cmd_fs_options(common)};
    BW_TRY(cmd_history_open(common, fs, &how, &history));
    const size_t count = bw_history_count(history);
    uint64_t before = 0, reported = 0;
    generations->choices = calloc(count + 1, sizeof *generations->choices);
    for (size_t i = 0; generations->choices && i < count; i++) {
        const struct bw_generation_info *info = bw_history_entry(history, i);
        if (info->status == BW_GENERATION_ABANDONED || info->superseded)
            continue;
        if (info->generation == before && before != reported) {
            /* If it is unknown which of several roots of a generation was committed, the generation
             * does not identify one of them. The warning lists the addresses that other commands
             * accept instead. */
            size_t found;
            struct bw_error *ambiguous = bw_history_find(history, before, &found);
            if (ambiguous)
                bw_fs_report(fs, BW_WARNING, ambiguous);
            reported = before;
        }
        before = info->generation;
        generations->choices[generations->count++] =
            (struct bw_generation_choice){.tree_root = info->tree_root,
                                          .tree_root_generation = info->generation,
                                          .chunk_root = info->chunk_root,
                                          .knows_chunk_root = true};
    }
    bw_history_close(history);
    return generations->choices ? NULL : bw_error_no_memory();
}

struct bw_error *cmd_find_subvolume(const struct cmd_common *common, struct bw_fs *fs,
                                    const char *text, struct bw_fs **past,
                                    const struct bw_subvolume **subvolume)
{
    const char *at = strrchr(text, '@');
    struct bw_generation_choice choice = {0};
    *past = NULL;
    struct bw_error *error = bw_subvolume_by_name(fs, text, subvolume);
    if (!error || !at || !cmd_parse_number(at + 1, 1, UINT64_MAX, &choice.generation))
        return error;
    BW_AUTO_FREE char *name = strndup(text, (size_t)(at - text));
    bw_error_free(error);
    if (!name)
        return bw_error_no_memory();
    struct bw_fs_options options = cmd_fs_options(common);
    options.planned = NULL;
    options.reporter = cmd_reporter(common);
    options.state = choice;
    BW_TRY(bw_fs_open(&options, past));
    error = bw_subvolume_by_name(*past, name, subvolume);
    return error ? bw_error_prefix(error, "generation %" PRIu64, choice.generation) : NULL;
}

struct bw_error *cmd_last_change(struct bw_fs *fs, int64_t *time)
{
    struct bw_subvolume_infos *infos;
    *time = 0;
    BW_TRY(bw_subvolume_infos_open(fs, false, &infos));
    for (const struct bw_subvolume_info *info; (info = bw_subvolume_infos_next(infos));) {
        const int64_t changed = bw_time_nanoseconds(&info->ctime);
        *time = changed > *time ? changed : *time;
    }
    return bw_subvolume_infos_close(infos);
}

void cmd_generations_free(struct cmd_generations *generations)
{
    free(generations->choices);
}
