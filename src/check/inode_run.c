/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The items of one inode, which follow each other: that there is an INODE_ITEM, what sizes they add
 * up to, and whether its extents follow each other. If some of them are lost, nothing is said.
 */
#include <inttypes.h>

#include "base/cleanup.h"
#include "check/inodes.h"

#define NONE UINT64_MAX

static void begin(struct bw_examination *examination, uint64_t number)
{
    const struct bw_key first = {.objectid = number};
    examination->run = (struct bw_inode_run){
        .number = number,
        .gap = NONE,
        .nul = NONE,
        .incomplete = bw_key_compare(&examination->lost_end, &first) > 0,
    };
}

static struct bw_error *take_file_extent(struct bw_examination *examination,
                                         const struct bw_item *item)
{
    struct bw_inode_run *run = &examination->run;
    struct bw_extent_fact fact;
    if (!bw_extent_fact_of(item, examination->check->fs->superblock.sectorsize, &fact))
        return bw_examination_lose_item(examination, &item->key);
    run->extents++;
    if (item->key.offset < run->end && !run->overlaps && !examination->collecting) {
        const struct bw_subject subject =
            bw_examination_subject(examination, run->number, item->key);
        bw_check_find(examination->check, BW_CODE_file_overlap, &subject,
                      "begins before %" PRIu64 ", where the extent before it ends", run->end);
    }
    run->overlaps |= item->key.offset < run->end;
    if (item->key.offset > run->end && run->gap == NONE)
        run->gap = run->end;
    run->end = fact.end > run->end ? fact.end : run->end;
    run->bytes += fact.bytes;
    if (run->nul == NONE)
        run->nul = bw_stored_nul(examination->check->fs, item, fact.stored);
    run->stored += fact.stored;
    return NULL;
}

static void take_entries(struct bw_inode_run *run, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry))
        *(item->key.type == BW_DIR_ITEM ? &run->item_names : &run->index_names) +=
            entry.name_length;
    run->entries++;
}

static void take_references(struct bw_inode_run *run, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    while (bw_inode_ref_next(&cursor, &item->key, &ref))
        run->has_top_reference |= bw_is_top_reference(run->number, &ref);
}

struct bw_error *bw_inode_run_enter(struct bw_examination *examination, const struct bw_key *key)
{
    if (examination->run.number == key->objectid)
        return NULL;
    BW_TRY(bw_inode_run_end(examination));
    begin(examination, key->objectid);
    return NULL;
}

struct bw_error *bw_inode_run_take(struct bw_examination *examination, const struct bw_item *item)
{
    struct bw_inode_run *run = &examination->run;
    switch (item->key.type) {
    case BW_INODE_ITEM:
        run->has_item = bw_inode_decode(item, &run->inode);
        return run->has_item ? NULL : bw_examination_lose_item(examination, &item->key);
    case BW_INODE_REF:
        take_references(run, item);
        break;
    case BW_DIR_ITEM:
    case BW_DIR_INDEX:
        take_entries(run, item);
        break;
    case BW_EXTENT_DATA:
        return take_file_extent(examination, item);
    }
    return NULL;
}

/* An entry that is missing on one side makes the sums differ: that is found by its name. */
static void judge_directory(struct bw_examination *examination, const struct bw_subject *subject)
{
    const struct bw_inode_run *run = &examination->run;
    if (run->inode.size != run->item_names * 2 && run->inode.size != run->index_names * 2)
        bw_check_find(examination->check, BW_CODE_directory_size, subject,
                      "directory size wrong, want %" PRIu64 " have %" PRIu64,
                      run->item_names + run->index_names, run->inode.size);
    if (run->number == BW_SUBVOLUME_ROOT_INODE && !run->has_top_reference)
        bw_check_find(examination->check, BW_CODE_inode_ref_missing, subject,
                      "the top directory has no reference to itself");
}

static void judge_target(struct bw_examination *examination, const struct bw_subject *subject)
{
    const struct bw_inode_run *run = &examination->run;
    const struct bw_fs *fs = examination->check->fs;
    const uint64_t size = bw_size_to_cover(fs, &run->inode);
    if (bw_file_type_of_mode(run->inode.mode) != BW_FILE_SYMLINK)
        return;
    if (run->end < size)
        bw_check_find(examination->check, BW_CODE_link_target, subject,
                      "a symbolic link without a target");
    else if (run->nul < size && !fs->no_data) /* btrfs-image overwrites targets with zeros */
        bw_check_find(examination->check, BW_CODE_link_target, subject,
                      "the target of a symbolic link has a NUL at %" PRIu64 " of %" PRIu64 " bytes",
                      run->nul, run->inode.size);
}

/* The bytes that an inode counts are those of its extents. While an inode without links is being
 * deleted, over several transactions, its extents go and the number stays. */
static bool has_wrong_bytes(const struct bw_inode_run *run)
{
    return run->inode.link_count ? run->bytes != run->inode.bytes : run->bytes > run->inode.bytes;
}

static void judge_file(struct bw_examination *examination, const struct bw_subject *subject)
{
    const struct bw_inode_run *run = &examination->run;
    const uint64_t size = bw_size_to_cover(examination->check->fs, &run->inode);
    const uint64_t gap = run->gap < run->end ? run->gap : run->end;
    if (has_wrong_bytes(run))
        bw_check_find(examination->check, BW_CODE_file_bytes, subject,
                      "bytes wrong, want %" PRIu64 " have %" PRIu64, run->bytes, run->inode.bytes);
    if (bw_has_wrong_target(&run->inode))
        bw_check_find(examination->check, BW_CODE_link_size, subject,
                      "size of a symbolic link wrong, want %" PRIu64 " have %" PRIu64, run->bytes,
                      run->inode.size);
    if (run->stored > bw_most_stored(&run->inode))
        bw_check_find(examination->check, BW_CODE_file_size, subject,
                      "size %" PRIu64 ", but %" PRIu64 " byte%s stored", run->inode.size,
                      run->stored, run->stored == 1 ? " is" : "s are");
    judge_target(examination, subject);
    if (gap < size && bw_file_type_of_mode(run->inode.mode) == BW_FILE_REGULAR)
        bw_check_find(examination->check, BW_CODE_file_gap, subject,
                      "no extent at %" PRIu64 " of %" PRIu64 " bytes", gap, size);
}

static void judge(struct bw_examination *examination)
{
    const struct bw_inode_run *run = &examination->run;
    const struct bw_subject subject = bw_examination_subject(
        examination, run->number, (struct bw_key){run->number, BW_INODE_ITEM, 0});
    const uint8_t type = bw_file_type_of_mode(run->inode.mode);
    if (!run->has_item) {
        bw_check_find(examination->check, BW_CODE_inode_missing, &subject,
                      "it has items, but no INODE_ITEM");
        return;
    }
    if (type == BW_FILE_DIRECTORY)
        judge_directory(examination, &subject);
    if (bw_has_extents(type))
        judge_file(examination, &subject);
    else if (bw_bytes_to_count(run->number, &run->inode) && !run->extents)
        bw_check_find(examination->check, BW_CODE_file_bytes, &subject, "%s of %" PRIu64 " bytes",
                      bw_file_type_name(type), run->inode.bytes);
    if ((run->entries && type != BW_FILE_DIRECTORY) || (run->extents && !bw_has_extents(type)))
        bw_check_find(examination->check, BW_CODE_inode_items, &subject, "%s has %s",
                      bw_file_type_name(type),
                      run->extents && !bw_has_extents(type) ? "file extents" : "directory entries");
}

struct bw_error *bw_inode_run_end(struct bw_examination *examination)
{
    const struct bw_inode_run *run = &examination->run;
    const struct bw_name_record headless = {.inode = run->number, .kind = BW_RECORD_HEADLESS};
    if (!run->number || run->incomplete)
        return NULL;
    if (!examination->collecting)
        judge(examination);
    return run->has_item ? NULL : bw_examination_enter(examination, &headless, 0);
}
