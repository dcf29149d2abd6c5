/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The deleted command: files that older generations contain and the current one lacks.
 *
 * bw_deleted_next() opens one historic root after the other, from the newest to the oldest. The
 * entries that only exist there go to a stream: either of this file, which measures how much of
 * each file is readable and writes a row; or of an extraction (extraction.h), to which the entries
 * are brought with names that no newer file has.
 */
#include "btrfs-walk/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash_table.h"
#include "btrfs-walk/records.h"
#include "cli/common/generations.h"
#include "cli/common/monitor.h"
#include "cli/common/output_format.h"
#include "cli/export/extraction.h"

struct deleting {
    /* The options. */
    struct extract_settings extract; /* first, for the options of its groups */
    struct cmd_index index;
    uint64_t since;
    bool no_data, unverified, lost;

    /* While it runs. */
    const struct cmd_common *common;
    struct cmd_generations states;
    struct bw_deleted *deleted;
    const struct bw_deleted_state *state; /* the current historic root */
    struct cmd_format *answer;
    struct bw_entry_queue *queue;
    struct bw_recoverable recoverable; /* the file whose parts are being delivered */
    uint64_t unverified_count;         /* files without checksums, listed or omitted */

    /* For an extraction. */
    struct extract *extraction;
    bw_entry_visitor *visit;
    void *visitor;
    struct bw_key_map taken; /* hashes of paths, and whether an extracted file has the path */
    struct bw_buffer freed;  /* hashes of paths whose files turned out incomplete */
    struct bw_buffer path;

    /* The snapshots of the subvolume of the last row. */
    struct bw_snapshots *snapshots;
    uint64_t snapshots_of;
};

static const struct cmd_option options[] = {
    {0, "since", "N", "list only files that exist in generation N or newer",
     CMD_NUMBER(struct deleting, since, 1, UINT64_MAX, "a generation, from 1 on")},
    {0, "no-data", NULL, "do not read data; how much is recoverable remains unknown",
     CMD_FLAG(struct deleting, no_data)},
    {0, "extract", "DEST", "extract the listed files into this directory",
     CMD_TEXT(struct deleting, extract.folder)},
    {0, "lost", NULL, "instead, files that the current generation has lost by damage",
     CMD_FLAG(struct deleting, lost)},
    {0, "unverified", NULL, "also extract files without checksums, which may contain anything",
     CMD_FLAG(struct deleting, unverified)},
    CMD_GROUP(cmd_index_options, struct deleting, index),
    CMD_GROUP(extract_options, struct deleting, extract),
    CMD_THREADS_OPTION(struct deleting, extract.export.walk.threads),
    CMD_SELECTION(struct deleting, extract.export.selection),
    {0},
};

/* The search for historic roots. */

static struct bw_error *open_deleted(struct deleting *deleting, struct bw_fs *present)
{
    const struct cmd_selection *selection = &deleting->extract.export.selection;
    BW_TRY(cmd_selection_prepare(selection, present));
    BW_TRY(cmd_generations_find(deleting->common, present, &deleting->states));
    const struct bw_deleted_options how = {
        .struct_size = sizeof how,
        .images = &deleting->states.images,
        .states = deleting->states.choices,
        .state_count = deleting->states.count,
        .since = deleting->since,
        .path = deleting->common->path_count ? deleting->common->paths[0] : NULL,
        .selection = selection->selection,
        .has_maxdepth = selection->has_maxdepth,
        .maxdepth = selection->maxdepth,
        .mindepth = selection->mindepth,
        .progress = cmd_progress_state,
        .lost = deleting->lost,
        .reads_data =
            !deleting->no_data && (!selection->types || selection->types >> BW_FILE_REGULAR & 1),
    };
    return bw_deleted_open(present, &how, &deleting->deleted);
}

/* Opens one historic root after the other, and visits each. */
static struct bw_error *visit_roots(struct deleting *deleting, struct bw_fs *present,
                                    struct bw_error *(*visit)(struct deleting *deleting))
{
    struct bw_error *error = open_deleted(deleting, present);
    while (!error && !(error = bw_deleted_next(deleting->deleted, &deleting->state)) &&
           deleting->state) {
        const struct bw_deleted_state *state = deleting->state;
        if (state->lost && !state->is_present && deleting->common->messages.verbose)
            fprintf(stderr,
                    "btrfs-walk: generation %" PRIu64
                    " is incomplete: files in its lost blocks are not listed\n",
                    state->generation);
        error = visit(deleting);
    }
    bw_deleted_close(deleting->deleted);
    cmd_generations_free(&deleting->states);
    bw_snapshots_close(BW_TAKE(deleting->snapshots));
    bw_key_map_free(&deleting->taken);
    bw_buffer_free(&deleting->freed);
    bw_buffer_free(&deleting->path);
    return error;
}

/* Prints the number of files without checksums, and the option to extract them. */
static void report_unverifiable(const struct deleting *deleting)
{
    if (!deleting->unverified_count || deleting->common->messages.quiet)
        return;
    if (deleting->unverified_count == 1)
        fprintf(stderr, "btrfs-walk: note: 1 file has no checksums, and may contain anything: "
                        "--extract includes it only with --unverified\n");
    else
        fprintf(stderr,
                "btrfs-walk: note: %" PRIu64
                " files have no checksums, and may contain anything: --extract includes them only "
                "with --unverified\n",
                deleting->unverified_count);
}

/* Output as rows. */

static struct bw_error *visit_deleted(void *context, unsigned types, bw_entry_visitor *visit,
                                      void *visitor)
{
    struct deleting *deleting = context;
    return bw_deleted_visit(deleting->deleted, types, visit, visitor);
}

static struct bw_error *next(void *context, struct bw_stream_file *file, bool *got)
{
    struct deleting *deleting = context;
    struct bw_export_entry *item;
    BW_TRY(bw_entry_queue_next(deleting->queue, &item));
    *got = item;
    if (!item)
        return NULL;
    item->skipped = deleting->no_data;
    *file = bw_export_entry_stream_file(item);
    return NULL;
}

static struct bw_error *add_part_to_recoverable(void *context, const struct bw_stream_file *file,
                                                const struct bw_data_part *part)
{
    struct deleting *deleting = context;
    (void)file;
    bw_recoverable_add(&deleting->recoverable, part);
    cmd_progress_add(part->length);
    return NULL;
}

static struct bw_error *write_row(struct deleting *deleting, const struct bw_export_entry *item)
{
    BW_AUTO_FREE char *copy = NULL;
    const struct bw_snapshot *snapshot = NULL;
    struct cmd_range_texts texts;
    const struct bw_recoverable *recoverable = &deleting->recoverable;
    const enum bw_recoverable_kind kind =
        bw_recoverable_kind(recoverable, item->inode.flags & BW_INODE_NODATASUM);
    const bool is_top = item->place.inode == BW_TOP_DIRECTORY, has_size = item->type != S_IFDIR;
    const bool unread = item->skipped && item->type == S_IFREG && item->inode.size;
    const struct bw_bytes path = {item->path.data, item->path.length};

    /* The newest snapshot that still has the file. */
    struct bw_fs *present = deleting->answer->session.fs;
    const uint64_t id = bw_subvolume_id(item->place.subvolume);
    const struct bw_snapshot_file file = {.inode = item->place.inode,
                                          .generation = item->inode.generation};
    if (!is_top && (!deleting->snapshots || deleting->snapshots_of != id)) {
        bw_snapshots_close(BW_TAKE(deleting->snapshots));
        BW_TRY(bw_snapshots_open(present, id, &deleting->snapshots));
        deleting->snapshots_of = id;
    }
    for (size_t i = 0; !is_top && !snapshot && i < bw_snapshots_count(deleting->snapshots); i++) {
        struct bw_place place;
        struct bw_inode inode;
        if (!bw_snapshots_find(deleting->snapshots, i, &file, &place, &inode))
            continue;
        snapshot = bw_snapshots_entry(deleting->snapshots, i);
        bw_error_free(bw_inode_path(present, &place, &copy, NULL));
    }

    struct bw_deletedinfo row = {
        .recoverable = bw_recoverable_name(kind),
        .generation = deleting->state->generation,
        .tree_root = deleting->state->tree_root,
        .changed = bw_time_nanoseconds(&deleting->state->time),
        .type = is_top ? "subvolume" : bw_file_type_name(bw_file_type_of_mode(item->inode.mode)),
        .path = path,
        .path_bytes = path,
        .size = cmd_if_known(has_size, item->inode.size),
        .mtime = bw_time_nanoseconds(&item->inode.mtime),
        .subvolume = id,
        .inode = item->place.inode,
        .bad_bytes = recoverable->bad,
        .bad = cmd_lost_ranges(recoverable, &texts),
        .snapshot_path = {copy, copy ? strlen(copy) : 0},
        .snapshot_time = snapshot ? bw_time_nanoseconds(&snapshot->time) : BW_ABSENT_SIGNED,
        .mode = item->inode.mode,
        .uid = item->inode.uid,
        .gid = item->inode.gid,
        .atime = bw_time_nanoseconds(&item->inode.atime),
        .ctime = bw_time_nanoseconds(&item->inode.ctime),
        .otime = bw_time_nanoseconds(&item->inode.otime),
    };
    if (unread)
        row.recoverable = NULL;
    else if (kind == BW_RECOVERABLE_UNVERIFIED)
        deleting->unverified_count++;
    return cmd_format_write(deleting->answer, &row, sizeof row);
}

static struct bw_error *finish(void *context, const struct bw_stream_file *file, bool complete)
{
    struct deleting *deleting = context;
    struct bw_export_entry *item = file->user;
    struct bw_error *error = complete ? write_row(deleting, item) : NULL;
    deleting->recoverable = (struct bw_recoverable){0};
    bw_entry_queue_release(deleting->queue, item);
    return error;
}

static struct bw_error *list_root(struct deleting *deleting)
{
    const unsigned types = deleting->extract.export.selection.types;
    const unsigned passes[] = {types ? types : BW_WALK_ALL, 0};
    const struct bw_entry_queue_options queue = {
        .bring = visit_deleted, .bring_context = deleting, .passes = passes};
    const struct bw_stream stream = {
        .struct_size = sizeof stream,
        .threads = deleting->extract.export.walk.threads,
        .next = next,
        .visit = add_part_to_recoverable,
        .finish = finish,
        .context = deleting,
        .held = bw_export_entry_held,
    };
    BW_TRY(bw_entry_queue_create(deleting->state->fs, &queue, &deleting->queue));
    struct bw_error *error = bw_stream_run(deleting->state->fs, &stream);
    bw_entry_queue_destroy(deleting->queue);
    return error;
}

static struct bw_error *list(struct cmd_format *answer, void *context)
{
    struct deleting *deleting = context;
    deleting->answer = answer;
    return visit_roots(deleting, answer->session.fs, list_root);
}

/* Extracting. */

enum { FREE, TAKEN };

/* The thread that visits the entries of this generation uses the map, so the path becomes free only
 * for older generations. */
static struct bw_error *add_free_name(void *context, const char *path, size_t length)
{
    struct deleting *deleting = context;
    const uint64_t hash = bw_hash_path(path, length);
    bw_buffer_append(&deleting->freed, (const char *)&hash, sizeof hash);
    return bw_buffer_error(&deleting->freed);
}

/* Whether the contents of a file cannot be verified: it has no checksums, and its data is not
 * inline in the tree, or unreadable. */
static struct bw_error *find_unverifiable(const struct deleting *deleting,
                                          const struct bw_entry *entry, bool *unverifiable)
{
    const struct bw_inode *inode = entry->inode;
    const struct bw_extent *extent = NULL;
    struct bw_file *file;
    *unverifiable = false;
    if (!S_ISREG(inode->mode) || !inode->size || !(inode->flags & BW_INODE_NODATASUM))
        return NULL;
    *unverifiable = true;
    struct bw_error *error = bw_file_open(deleting->state->fs, &entry->place, NULL, &file);
    if (!error) {
        error = bw_file_next_extent(file, &extent);
        if (!error)
            *unverifiable =
                !extent || extent->kind != BW_EXTENT_INLINE || extent->length < inode->size;
        bw_file_close(file);
    }
    return bw_error_tolerate(error);
}

/* Passes an entry on to the extraction, unless it cannot be verified. */
static struct bw_error *visit_unless_unverifiable(void *context, const struct bw_entry *entry)
{
    struct deleting *deleting = context;
    struct bw_entry named = *entry;
    bool unverifiable = false;
    if (!deleting->unverified)
        BW_TRY(find_unverifiable(deleting, entry, &unverifiable));
    if (unverifiable) {
        deleting->unverified_count++;
        return NULL;
    }
    if (S_ISDIR(entry->inode->mode))
        return deleting->visit(deleting->visitor, &named);

    /* If a newer file with this path was extracted, the path becomes NAME.~GENERATION~, as numbered
     * backups are called. */
    const uint64_t hash = bw_hash_path(entry->path, entry->path_length);
    struct bw_buffer *path = &deleting->path;
    if (bw_key_map_get(&deleting->taken, hash, UINT32_MAX) == TAKEN) {
        path->length = 0;
        bw_buffer_append(path, entry->path, entry->path_length);
        bw_buffer_format(path, ".~%" PRIu64 "~", deleting->state->generation);
        BW_TRY(bw_buffer_terminate(path));
        named.path = path->data;
        named.path_length = path->length - 1;
    } else {
        BW_TRY(bw_key_map_put(&deleting->taken, hash, TAKEN));
    }
    return deleting->visit(deleting->visitor, &named);
}

static struct bw_error *bring_to_extract(void *context, unsigned types, bw_entry_visitor *visit,
                                         void *visitor)
{
    struct deleting *deleting = context;
    deleting->visit = visit;
    deleting->visitor = visitor;
    return bw_deleted_visit(deleting->deleted, types, visit_unless_unverifiable, deleting);
}

static struct bw_error *extract_root(struct deleting *deleting)
{
    struct bw_buffer *freed = &deleting->freed;
    deleting->extraction->generation = deleting->state->generation;
    struct bw_error *error = extract_from(deleting->extraction, deleting->state->fs);
    for (uint64_t hash; !error && freed->length; freed->length -= sizeof hash) {
        memcpy(&hash, freed->data + freed->length - sizeof hash, sizeof hash);
        error = bw_key_map_put(&deleting->taken, hash, FREE);
    }
    return error;
}

static struct bw_error *extract_all(struct extract *extract, void *context)
{
    struct deleting *deleting = context;
    deleting->extraction = extract;
    extract->export.bring = bring_to_extract;
    extract->export.bring_context = deleting;
    extract->name_is_free = add_free_name;
    extract->context = deleting;
    struct bw_error *error = visit_roots(deleting, extract->export.session.fs, extract_root);
    report_unverifiable(deleting);
    return error;
}

static int run(const struct cmd_common *common, void *state)
{
    struct deleting *deleting = state;
    struct cmd_common own = *common;
    own.input.index = &deleting->index;
    deleting->common = &own;
    if (common->path_count > 1)
        return cmd_refuse(common, "at most one PATH can be given");
    if (deleting->extract.folder) {
        /* Without PATHs, because the extraction would look them up in the current generation. */
        struct cmd_common without_path = own;
        without_path.path_count = 0;
        deleting->extract.export.walk.types = deleting->extract.export.selection.types;
        return extract_run(&without_path, &deleting->extract, extract_all, deleting);
    }
    const struct cmd_format_plan plan = {
        .record = cmd_deleted.record,
        .columns = "recoverable,generation,changed,type,size,path,snapshot_path",
        .list = list,
        .context = deleting,
    };
    if (own.format.null && cmd_format_is_for_people(&own))
        own.format.columns = "path";
    const int status = cmd_format_run(&own, &plan);
    if (cmd_format_is_for_people(&own))
        report_unverifiable(deleting);
    return status;
}

const struct command cmd_deleted = {
    .name = "deleted",
    .topic = cmd_topic_history,
    .operands = "IMAGE [PATH]",
    .summary = "Lists or extracts deleted files that are still recoverable.",
    .details =
        "\n"
        "The blocks of each transaction stay on the disk until other data overwrite them.\n"
        "Each row is a file, directory or subvolume that exists in an older generation, but\n"
        "not in the current one. It is identified by subvolume, inode number and inode\n"
        "generation, not by its path: a file is listed even if another file now has its path,\n"
        "and is not listed if it was renamed. \"generation\" is the last generation that\n"
        "contains it. With PATH, only deleted files at or below that path are listed. "
        "\"recoverable\"\n"
        "is the result of reading it:\n\n"
        "  verified    all data match the checksums of that generation\n"
        "  unverified  there are no checksums; the data may be anything\n"
        "  partly      some ranges are lost: see the column \"bad\"\n"
        "  lost        all its data are lost\n\n"
        "\"snapshot_path\" is the path of the file in the newest snapshot that still has it,\n"
        "which is the best place to restore it from.\n\n"
        "A file that was deleted but still open at the last commit is called #INODE. With\n"
        "--extract, nothing is written outside of DEST, and no existing file is replaced.\n"
        "Partly lost files are skipped unless --on-error=zero is given, and unverified files\n"
        "unless --unverified is given. If several files were deleted at the same path, the\n"
        "newest complete one keeps the name; the suffix .~GENERATION~ is added to the "
        "others.\n",
    .examples = "  btrfs-walk deleted disk.img /users/joe                      list them\n"
                "  btrfs-walk deleted --extract DEST disk.img /users/joe       restore them\n"
                "  btrfs-walk deleted --since 1234 --name '*.odt' --json disk.img\n"
                "  btrfs-walk cat --generation 1233 disk.img /users/joe/notes  one of them\n",
    .options = options,
    .record = "deletedinfo",
    .sorts_rows = true,
    .run = run,
    .state_size = sizeof(struct deleting),
    .defaults = &(const struct deleting){.extract.on_error = CMD_ON_ERROR_SKIP},
    .takes_paths = true,
};
