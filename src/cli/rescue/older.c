/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Older generations: whether they have whole versions of the files that cannot be read, and how
 * many files are only there, because they were deleted or their tree blocks are lost.
 */
#include "cli/rescue/rescue.h"

#include <sys/stat.h>

#include "base/cleanup.h"
#include "cli/common/monitor.h"

/* Generations in which files are searched for, the newest first. */
enum { MOST_GENERATIONS = 16 };

/* A generation in which files are searched for. */
struct search {
    struct rescue_reading now; /* the current file; the first member */
    struct rescue *rescue;
    struct bw_fs *fs;
    size_t next; /* in rescue->missed */
    struct rescue_generation found;
};

/* Whether the file in this generation is the version that could not be read. */
static bool is_same_version(const struct rescue_missed *missed, const struct bw_inode *inode)
{
    return missed->has_inode && missed->transid == inode->transid && missed->size == inode->size;
}

/* Finds a file as `extract --follow-renames` does: by its inode, under any name; otherwise by its
 * path, unless that was the path of another file that was renamed since. False if it does not
 * exist, or is the unreadable version. */
static bool find_file(struct search *search, struct rescue_missed *missed, struct bw_place *place,
                      struct bw_inode *inode)
{
    struct rescue *rescue = search->rescue;
    const bool follows = rescue->plan.follows_renames;
    if (follows && missed->has_inode) {
        const struct bw_inode current = {.generation = missed->generation};
        BW_AUTO_ERROR struct bw_error *unknown =
            bw_lookup_older(search->fs, &missed->place, &current, place, inode, NULL);
        rescue_note_memory(rescue, unknown);
        if (!unknown && inode->link_count)
            return S_ISREG(inode->mode) && !is_same_version(missed, inode);
    }
    BW_AUTO_ERROR struct bw_error *error =
        bw_lookup(search->fs, NULL, rescue->paths.data + missed->path, false, place);
    if (!error)
        error = bw_inode_get(search->fs, place, inode);
    rescue_note_memory(rescue, error);
    if (error || !S_ISREG(inode->mode) || is_same_version(missed, inode))
        return false;
    if (!follows)
        return true;
    struct bw_place renamed;
    struct bw_inode now;
    BW_AUTO_ERROR struct bw_error *gone =
        bw_lookup_older(rescue->fs, place, inode, &renamed, &now, NULL);
    rescue_note_memory(rescue, gone);
    return gone || !now.link_count;
}

static struct bw_error *next(void *context, struct bw_stream_file *file, bool *got)
{
    struct search *search = context;
    struct rescue *rescue = search->rescue;
    *got = false;
    while (search->next < rescue->missed.count && !*got) {
        struct rescue_missed *missed = &rescue->missed.items[search->next++];
        struct bw_place place;
        struct bw_inode inode;
        *got = !missed->found && find_file(search, missed, &place, &inode);
        if (*got)
            *file = (struct bw_stream_file){
                .data = bw_data_file_of(&place, &inode), .length = UINT64_MAX, .user = missed};
    }
    return NULL;
}

static struct bw_error *finish(void *context, const struct bw_stream_file *file, bool complete)
{
    struct search *search = context;
    struct rescue_missed *missed = file->user;
    if (complete &&
        bw_recoverable_kind(&search->now.read, file->data.unchecked) == BW_RECOVERABLE_VERIFIED) {
        missed->found = true;
        search->found.files++;
        search->found.bytes += file->data.size;
    }
    search->now = (struct rescue_reading){0};
    return NULL;
}

static struct bw_error *search_generation(struct rescue *rescue,
                                          const struct bw_fs_options *options, bool is_unique)
{
    struct search search = {.rescue = rescue};
    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = rescue->settings->export.walk.threads,
                                     .next = next,
                                     .visit = rescue_visit_part,
                                     .finish = finish,
                                     .context = &search};
    BW_AUTO_ERROR struct bw_error *unreadable = bw_fs_open(options, &search.fs);
    if (unreadable)
        return bw_error_tolerate(BW_TAKE(unreadable));
    search.found.choice.generation = bw_fs_status(search.fs).generation;
    if (!is_unique)
        search.found.choice.tree_root = options->state.tree_root;
    struct bw_error *error = bw_stream_run(search.fs, &stream);
    if (!error && search.found.files)
        error = cmd_last_change(search.fs, &search.found.changed);
    bw_fs_close(search.fs);
    if (!error && search.found.files)
        error = rescue_generations_push(&rescue->generations, search.found);
    return error;
}

/* Whether no other root tree has the generation of this one. They are sorted by generation. */
static bool is_unique(const struct cmd_generations *states, size_t i)
{
    const struct bw_generation_choice *choice = &states->choices[i];
    return (!i || choice[-1].tree_root_generation != choice->tree_root_generation) &&
           (i + 1 == states->count ||
            choice[1].tree_root_generation != choice->tree_root_generation);
}

static struct bw_error *find_missed_files(struct rescue *rescue,
                                          const struct cmd_generations *states)
{
    size_t tried = 0;
    for (size_t i = 0; i < states->count && tried < MOST_GENERATIONS; i++) {
        bool all_found = true;
        for (size_t k = 0; k < rescue->missed.count && all_found; k++)
            all_found = rescue->missed.items[k].found;
        if (all_found)
            break;
        struct bw_fs_options options = states->images;
        options.planned = NULL;
        options.state = states->choices[i];
        if (options.state.tree_root_generation >= bw_fs_status(rescue->fs).generation)
            continue;
        cmd_progress_step("generation", ++tried, MOST_GENERATIONS);
        BW_TRY(search_generation(rescue, &options, is_unique(states, i)));
    }
    return NULL;
}

/* Deleted files, and files in lost tree blocks. */

static struct bw_error *count_deleted(void *context, const struct bw_entry *entry)
{
    struct rescue *rescue = context;
    (void)entry;
    rescue->deleted_files++;
    return NULL;
}

/* Files whose names are known were already counted as lost. */
static struct bw_error *count_hidden(void *context, const struct bw_entry *entry)
{
    struct rescue *rescue = context;
    rescue->hidden_files += !rescue_find_missed(rescue, entry->path, entry->path_length);
    return NULL;
}

static struct bw_error *count_entries(struct rescue *rescue, const struct cmd_generations *states,
                                      bool lost)
{
    const struct bw_deleted_options how = {.struct_size = sizeof how,
                                           .images = &states->images,
                                           .states = states->choices,
                                           .state_count = states->count,
                                           .progress = cmd_progress_state,
                                           .lost = lost};
    struct bw_deleted *deleted;
    const struct bw_deleted_state *state = NULL;
    BW_TRY(bw_deleted_open(rescue->fs, &how, &deleted));
    struct bw_error *error = bw_deleted_next(deleted, &state);
    while (!error && state) {
        error = bw_deleted_visit(deleted, BW_WALK_ALL & ~BW_WALK_DIRECTORIES,
                                 lost ? count_hidden : count_deleted, rescue);
        if (!error)
            error = bw_deleted_next(deleted, &state);
    }
    bw_deleted_close(deleted);
    return error;
}

/* A search that fails costs only what it would have found. */
struct bw_error *rescue_look_back(struct rescue *rescue)
{
    const struct bw_generation_choice *chosen = &rescue->common.input.fs.state;
    /* `extract --follow-renames` opens the current generation, whose paths these have to be */
    rescue->plan.follows_renames = !chosen->generation && !chosen->tree_root && !chosen->chunk_root;
    struct cmd_generations states;
    struct bw_error *error = cmd_generations_find(&rescue->common, rescue->fs, &states);
    if (!error)
        error = find_missed_files(rescue, &states);
    if (!error)
        error = count_entries(rescue, &states, false);
    if (!error && rescue_has_damage(rescue))
        error = count_entries(rescue, &states, true);
    cmd_generations_free(&states);
    cmd_progress_expect(0);
    if (error && error->code != BW_ERROR_NO_MEMORY) {
        bw_fs_report(rescue->fs, BW_WARNING, error);
        return NULL;
    }
    return error;
}
