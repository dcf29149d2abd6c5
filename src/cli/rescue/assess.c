/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads all files, and counts by subvolume how much of them can be read.
 *
 * A stream delivers the parts of the files. Snapshots share most data, so the extents that were
 * read completely are remembered (verified.c), and a file whose extents all were is not read again.
 * If only checksums are missing, or data do not match them, a file is read a second time without
 * them. With --no-data, nothing is read: an extent counts as lost if all its copies are on missing
 * devices.
 */
#include "cli/rescue/rescue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "cli/common/monitor.h"

/* Paths of files that cannot be read are remembered up to this number of bytes. */
enum { MOST_PATHS = 16 << 20 };

/* Subvolumes. */

/* Subvolumes are sorted by their ids. */
static struct rescue_subvolume *find_subvolume(const struct rescue *rescue, uint64_t id)
{
    struct rescue_subvolume *all = rescue->subvolumes.items;
    const size_t count = rescue->subvolumes.count;
    const size_t index = BW_FIRST_INDEX(i, count, all[i].id >= id);
    return index < count && all[index].id == id ? &all[index] : NULL;
}

struct bw_error *rescue_add_subvolumes(struct rescue *rescue, struct bw_fs *fs)
{
    struct bw_subvolume_infos *infos;
    struct rescue_subvolumes *all = &rescue->subvolumes;
    struct bw_error *error = bw_subvolume_infos_open(fs, true, &infos);
    const size_t before = all->count;
    for (const struct bw_subvolume_info *info; !error && (info = bw_subvolume_infos_next(infos));) {
        const struct rescue_subvolume wanted = {.id = info->id};
        const bool is_known =
            before && bsearch(&wanted, all->items, before, sizeof wanted, bw_compare_first);
        if (info->is_deleted || is_known)
            continue;
        struct bw_place place;
        BW_AUTO_ERROR struct bw_error *unreadable =
            bw_lookup_number(fs, bw_subvolume_by_id(fs, info->id), BW_TOP_DIRECTORY, &place);
        struct rescue_subvolume subvolume = {.id = info->id, .is_readable = !unreadable};
        if (info->path)
            subvolume.path = strndup(info->path, info->path_length);
        if ((info->path && !subvolume.path) ||
            (unreadable && unreadable->code == BW_ERROR_NO_MEMORY))
            error = bw_error_no_memory();
        else
            error = rescue_subvolumes_push(all, subvolume);
        if (error)
            free(subvolume.path);
        if (info->is_snapshot)
            rescue->verified.sectorsize = rescue->unverified.sectorsize = rescue->super.sectorsize;
    }
    rescue_subvolumes_sort(all, bw_compare_first);
    return bw_error_first(error, bw_subvolume_infos_close(infos));
}

bool rescue_has_damage(const struct rescue *rescue)
{
    return rescue->missed_total || bw_fs_status(rescue->fs).damages;
}

bool rescue_is_older(const struct rescue *rescue)
{
    const struct bw_generation_choice *chosen = &rescue->common.input.fs.state;
    return !chosen->generation && !chosen->tree_root &&
           bw_fs_status(rescue->fs).generation < rescue->super.generation;
}

struct rescue_subvolume rescue_total(const struct rescue *rescue)
{
    struct rescue_subvolume total = {.is_readable = true};
    for (size_t i = 0; i < rescue->subvolumes.count; i++) {
        const struct rescue_subvolume *subvolume = &rescue->subvolumes.items[i];
        for (size_t kind = 0; kind < RESCUE_KINDS; kind++) {
            total.files[kind] += subvolume->files[kind];
            total.bytes[kind] += subvolume->bytes[kind];
        }
        total.bad += subvolume->bad;
        total.is_readable &= subvolume->is_readable;
    }
    return total;
}

/* Extents. Without --no-data, they are listed only if there are snapshots, to find out which data
 * were read before. */

static bool skips_shared(const struct rescue *rescue)
{
    return rescue->verified.sectorsize && !rescue->settings->no_data;
}

/* Begins listing the extents of a file, with next_extent(). */
static void seek_extents(struct bw_extent_reader *reader, const struct bw_export_entry *item)
{
    const struct bw_data_file file = bw_data_file_of(&item->place, &item->inode);
    bw_extent_reader_seek(reader, &file, 0, item->inode.size);
}

/* The next extent; NULL after the last. False if it cannot be read. */
static bool next_extent(struct rescue *rescue, struct bw_extent_reader *reader,
                        const struct bw_extent **extent)
{
    BW_AUTO_ERROR struct bw_error *error = bw_extent_reader_next(reader, extent);
    rescue_note_memory(rescue, error);
    return !error;
}

/* Whether all data of a file were read before, and are in the set. */
static bool is_in_set(struct rescue *rescue, struct bw_extent_reader *reader,
                      struct rescue_verified *set, const struct bw_export_entry *item)
{
    const struct bw_extent *extent;
    seek_extents(reader, item);
    while (next_extent(rescue, reader, &extent)) {
        if (!extent)
            return true;
        if (!rescue_verified_has(set, extent))
            return false;
    }
    return false;
}

/* Adds the extents of a file to a set if reading the file's range has decoded the whole extent. If
 * another file needs more of a compressed extent, the rest may not decompress. */
static void add_to_set(struct rescue *rescue, struct rescue_verified *set,
                       const struct bw_export_entry *item)
{
    struct bw_extent_reader *reader = rescue->finished_extents;
    const struct bw_extent *extent;
    seek_extents(reader, item);
    while (next_extent(rescue, reader, &extent) && extent) {
        const bool is_part =
            extent->compression != BW_COMPRESS_NONE && extent->length < extent->ram_bytes;
        if (!is_part && !rescue_verified_add(set, extent))
            return;
    }
}

/* Whether a mirror of the data at an address is present; sets how many bytes that is true for. */
static bool is_present(struct rescue *rescue, uint64_t logical, uint64_t length, uint64_t *known)
{
    struct bw_mapping mapping = {.copies = 1};
    bool present = false;
    uint64_t end = UINT64_MAX;
    const bool incomplete = bw_range_set_has(&rescue->incomplete, logical, &end);
    *known = length;
    for (unsigned copy = 1; copy <= mapping.copies && !present; copy++) {
        BW_AUTO_ERROR struct bw_error *error =
            bw_fs_map(rescue->fs, logical, length, copy, &mapping);
        rescue_note_memory(rescue, error);
        present = !error && mapping.present && !(mapping.rebuilt && incomplete);
        if (mapping.length && mapping.length < *known)
            *known = mapping.length;
    }
    return present;
}

/* Adds an extent to rescue->now.read without reading it: it counts as lost if all copies of a part
 * are on missing devices. */
static void map_extent(struct rescue *rescue, const struct bw_extent *extent)
{
    struct bw_data_part part = {.kind = BW_DATA_BYTES,
                                .offset = extent->offset,
                                .length = extent->length,
                                .in_tree = extent->kind == BW_EXTENT_INLINE};
    if (extent->kind == BW_EXTENT_BAD)
        part.kind = BW_DATA_BAD;
    else if (extent->kind == BW_EXTENT_HOLE || extent->kind == BW_EXTENT_UNWRITTEN)
        part.kind = BW_DATA_HOLE;
    const bool compressed = extent->compression != BW_COMPRESS_NONE;
    const uint64_t stored = extent->kind == BW_EXTENT_REGULAR ? extent->used_stored : 0;
    for (uint64_t done = 0, known; done < stored; done += known) {
        const bool present = is_present(rescue, extent->used_logical + done, stored - done, &known);
        if (compressed && !present)
            part.kind = BW_DATA_BAD;
        if (compressed)
            continue;
        const struct bw_data_part piece = {.kind = present ? BW_DATA_BYTES : BW_DATA_BAD,
                                           .offset = extent->offset + done,
                                           .length = known};
        bw_recoverable_add(&rescue->now.read, &piece);
    }
    if (compressed || !stored)
        bw_recoverable_add(&rescue->now.read, &part);
}

/* The stream. */

static struct bw_error *next(void *context, struct bw_stream_file *file, bool *got)
{
    struct rescue *rescue = context;
    struct bw_export_entry *item;
    BW_TRY(cmd_export_next_item(&rescue->export, &item));
    *got = item;
    if (!item)
        return NULL;
    const bool has_data = item->type == S_IFREG && item->has_inode && item->inode.size;
    item->checked = has_data && skips_shared(rescue) &&
                    is_in_set(rescue, rescue->extents, &rescue->verified, item);
    item->skipped = item->checked || rescue->settings->no_data;
    *file = bw_export_entry_stream_file(item);
    return NULL;
}

struct bw_error *rescue_visit_part(void *context, const struct bw_stream_file *file,
                                   const struct bw_data_part *part)
{
    struct rescue_reading *reading = context;
    (void)file;
    bw_recoverable_add(&reading->read, part);
    if (part->kind == BW_DATA_BAD && part->error && part->error->code != BW_ERROR_CORRUPT &&
        part->error->code != BW_ERROR_NO_CHECKSUM)
        reading->other_bad += part->length;
    cmd_progress_add(part->length);
    return NULL;
}

struct bw_error *rescue_read_as_is(struct bw_fs *fs, struct bw_data_reader **reader,
                                   const struct bw_export_entry *item, struct bw_recoverable *read)
{
    struct bw_data_file file = bw_data_file_of(&item->place, &item->inode);
    const struct bw_data_part *part;
    file.unchecked = true;
    if (!*reader)
        BW_TRY(bw_data_reader_create(fs, reader));
    bw_data_begin(*reader, &file, 0, UINT64_MAX);
    for (;;) {
        BW_TRY(bw_data_next(*reader, &part));
        if (!part)
            return NULL;
        bw_recoverable_add(read, part);
    }
}

/*
 * If only checksums are missing for the current file, its data were not read. Reads them now into
 * rescue->now.read: they may be unreadable, or not decompress.
 */
static struct bw_error *read_unchecked(struct rescue *rescue, const struct bw_export_entry *item,
                                       bool *unchecked)
{
    *unchecked = rescue->now.read.bad && rescue->now.read.bad == rescue->now.read.unchecked;
    if (!*unchecked)
        return NULL;
    rescue->now.read = (struct bw_recoverable){0};
    if (rescue->settings->no_data ||
        (skips_shared(rescue) &&
         is_in_set(rescue, rescue->finished_extents, &rescue->unverified, item)))
        return NULL;
    BW_TRY(rescue_read_as_is(rescue->fs, &rescue->reader, item, &rescue->now.read));
    if (!rescue->now.read.bad && skips_shared(rescue))
        add_to_set(rescue, &rescue->unverified, item);
    return NULL;
}

/* How much of an item can be read. Data that were read for other files are not in rescue->now.read.
 */
static struct bw_error *find_kind(struct rescue *rescue, const struct bw_export_entry *item,
                                  enum bw_recoverable_kind *kind)
{
    const bool unverified = item->inode.flags & BW_INODE_NODATASUM;
    *kind = BW_RECOVERABLE_VERIFIED;
    if (!item->has_inode || !item->type) {
        *kind = BW_RECOVERABLE_LOST;
    } else if (item->type == S_IFLNK) {
        BW_AUTO_FREE char *target = NULL;
        BW_AUTO_ERROR struct bw_error *error =
            bw_inode_readlink(rescue->fs, &item->place, &target, NULL);
        if (error && error->code == BW_ERROR_NO_MEMORY)
            return BW_TAKE(error);
        if (error)
            *kind = BW_RECOVERABLE_LOST;
    } else if (item->type == S_IFREG && !item->checked) {
        *kind = bw_recoverable_kind(&rescue->now.read, unverified);
    } else if (item->type == S_IFREG && unverified) {
        *kind = BW_RECOVERABLE_UNVERIFIED;
    }
    return NULL;
}

/* Writes the row of a file. */
static struct bw_error *list_file(struct rescue *rescue, const struct bw_export_entry *item,
                                  enum bw_recoverable_kind kind, const struct bw_recoverable *read)
{
    struct cmd_range_texts texts;
    const struct bw_bytes path = {item->path.data, item->path.length};
    struct bw_rescuefileinfo row = {
        .recoverable = bw_recoverable_name(kind),
        .path = path,
        .path_bytes = path,
        .size = cmd_if_known(item->has_inode, item->inode.size),
        .bad_bytes = read->bad,
        .bad = cmd_lost_ranges(read, &texts),
        .subvolume = bw_subvolume_id(item->place.subvolume),
        .inode = item->place.inode,
    };
    if (item->type)
        row.type = bw_file_type_name(bw_file_type_of_mode(item->type));
    return cmd_format_write(&rescue->answer, &row, sizeof row);
}

/* Counts a file of a subvolume; `sign` -1: no longer. */
static void count_in(struct rescue_subvolume *subvolume, enum bw_recoverable_kind kind,
                     uint64_t size, uint64_t bad, int sign)
{
    const uint64_t one = (uint64_t)sign;
    if (!subvolume)
        return;
    subvolume->files[kind] += one;
    subvolume->bytes[kind] += one * size;
    if (kind == BW_RECOVERABLE_PARTLY)
        subvolume->bad += one * bad;
}

struct rescue_missed *rescue_find_missed(const struct rescue *rescue, const char *path,
                                         size_t length)
{
    const uint32_t number =
        bw_key_map_get(&rescue->missed_paths, bw_hash_path(path, length), UINT32_MAX);
    return number == UINT32_MAX ? NULL : &rescue->missed.items[number];
}

/* Counts a file whose parts were delivered, and with --list writes its row. */
static struct bw_error *count_file(struct rescue *rescue, const struct bw_export_entry *item)
{
    bool unchecked;
    BW_TRY(read_unchecked(rescue, item, &unchecked));
    if (rescue->settings->no_data && item->type == S_IFREG && item->has_inode) {
        const struct bw_extent *extent;
        seek_extents(rescue->finished_extents, item);
        while (next_extent(rescue, rescue->finished_extents, &extent) && extent)
            map_extent(rescue, extent);
    }
    const bool is_unverified = unchecked && !rescue->now.read.bad;
    enum bw_recoverable_kind kind = BW_RECOVERABLE_UNVERIFIED;
    if (!is_unverified)
        BW_TRY(find_kind(rescue, item, &kind));
    /* Damaged data stay damaged, but may be better than zeros. */
    if ((kind == BW_RECOVERABLE_PARTLY || kind == BW_RECOVERABLE_LOST) && rescue->now.read.bad &&
        !rescue->now.other_bad && !rescue->settings->no_data) {
        struct bw_recoverable as_is = {0};
        BW_TRY(rescue_read_as_is(rescue->fs, &rescue->reader, item, &as_is));
        rescue->mismatched_files += !as_is.bad;
    }
    count_in(find_subvolume(rescue, bw_subvolume_id(item->place.subvolume)), kind, item->inode.size,
             rescue->now.read.bad, 1);
    const bool is_corrected = kind == BW_RECOVERABLE_CORRECTED;
    rescue->unchecked_files += is_unverified;
    rescue->corrected_files += is_corrected;
    rescue->plan.corrects_partly |= rescue->now.read.bad && rescue->now.read.corrected;
    const bool is_missed = kind >= BW_RECOVERABLE_PARTLY || is_unverified; /* or corrected */
    rescue->missed_total += is_missed;
    if (is_missed && rescue->paths.length <= MOST_PATHS) {
        const uint64_t hash = bw_hash_path(item->path.data, item->path.length);
        BW_TRY(bw_key_map_put(&rescue->missed_paths, hash, (uint32_t)rescue->missed.count));
        BW_TRY(rescue_missed_list_push(&rescue->missed,
                                       (struct rescue_missed){.path = rescue->paths.length,
                                                              .place = item->place,
                                                              .generation = item->inode.generation,
                                                              .size = item->inode.size,
                                                              .transid = item->inode.transid,
                                                              .bad = rescue->now.read.bad,
                                                              .kind = kind,
                                                              .has_inode = item->has_inode,
                                                              .found = is_corrected}));
        bw_buffer_append(&rescue->paths, item->path.data, item->path.length + 1);
        BW_TRY(bw_buffer_error(&rescue->paths));
    }
    return rescue->settings->list ? list_file(rescue, item, kind, &rescue->now.read) : NULL;
}

struct bw_error *rescue_count_accepted(struct rescue *rescue, const struct bw_export_entry *item,
                                       enum bw_recoverable_kind kind,
                                       const struct bw_recoverable *read)
{
    struct rescue_missed *missed = rescue_find_missed(rescue, item->path.data, item->path.length);
    if (missed && missed->kind != BW_RECOVERABLE_PARTLY && missed->kind != BW_RECOVERABLE_LOST)
        return NULL;
    struct rescue_subvolume *subvolume =
        find_subvolume(rescue, bw_subvolume_id(item->place.subvolume));
    if (missed) {
        count_in(subvolume, missed->kind, missed->size, missed->bad, -1);
        missed->kind = kind;
        missed->bad = read->bad;
    }
    if (item->type == S_IFDIR) { /* it was missed as an entry of an unknown type */
        rescue->missed_total -= missed != NULL;
        rescue->accepted_directories++;
        return NULL;
    }
    count_in(subvolume, kind, item->inode.size, read->bad, 1);
    rescue->missed_total += !missed;
    if (kind == BW_RECOVERABLE_UNVERIFIED)
        rescue->accepted_files++;
    else
        rescue->accepted_remains += !missed;
    return rescue->settings->list ? list_file(rescue, item, kind, read) : NULL;
}

static struct bw_error *finish(void *context, const struct bw_stream_file *file, bool complete)
{
    struct rescue *rescue = context;
    struct bw_export_entry *item = file->user;
    const bool is_whole = complete && item->has_inode && !rescue->now.read.bad &&
                          !rescue->now.read.corrected && !item->checked;
    struct bw_error *error = complete ? count_file(rescue, item) : NULL;
    if (is_whole && item->type == S_IFREG && skips_shared(rescue))
        add_to_set(rescue, &rescue->verified, item);
    rescue->now = (struct rescue_reading){0};
    bw_entry_queue_release(rescue->export.queue, item);
    return error;
}

struct bw_error *rescue_assess(struct rescue *rescue)
{
    rescue->export = (struct cmd_export){
        .common = &rescue->common, .settings = &rescue->settings->export, .session.fs = rescue->fs};
    BW_TRY(rescue_add_subvolumes(rescue, rescue->fs));
    /* Without reading data, parity is no help in chunks of which too many devices are missing. */
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    if (bw_fs_status(rescue->fs).missing_devices)
        BW_TRY(bw_fs_chunks(rescue->fs, &chunks));
    for (size_t i = 0; i < chunks.count; i++) {
        const struct bw_chunk_info *chunk = &chunks.items[i];
        if (bw_chunk_condition(rescue->fs, chunk, NULL) == BW_CHUNK_INCOMPLETE)
            BW_TRY(bw_range_set_insert(&rescue->incomplete, chunk->logical,
                                       chunk->logical + chunk->length));
    }
    bw_range_set_join(&rescue->incomplete);
    BW_TRY(bw_extent_reader_create(rescue->fs, &rescue->extents));
    BW_TRY(bw_extent_reader_create(rescue->fs, &rescue->finished_extents));

    const struct bw_stream stream = {.struct_size = sizeof stream,
                                     .threads = rescue->settings->export.walk.threads,
                                     .next = next,
                                     .visit = rescue_visit_part,
                                     .finish = finish,
                                     .context = rescue,
                                     .held = bw_export_entry_held};
    if (!rescue->settings->no_data)
        cmd_export_expect(&rescue->export);
    BW_TRY(cmd_export_start(&rescue->export, BW_WALK_ALL & ~BW_WALK_DIRECTORIES, 0));
    struct bw_error *error = bw_stream_run(rescue->fs, &stream);
    cmd_export_stop(&rescue->export);
    cmd_progress_expect(0);
    return error;
}
