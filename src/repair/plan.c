/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plan: the damaged file system is checked, and each kind of change looks among the findings
 * for those that it corrects. The others are counted.
 *
 * A tree block that cannot be read hides those below it, and the check leaves out comparisons with
 * its tree. Therefore such blocks are brought back first, and nothing else is planned with them:
 * what the check then finds was there before, and the next round plans it (rounds.c).
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/struct_size.h"
#include "ondisk/disk_items.h"
#include "owners/tree_list.h"
#include "repair/repair.h"

/* Limits of memory, unless the options have others: of findings, and of new bytes. */
enum { MOST_FINDINGS = 1 << 20, MOST_BYTES = 1 << 30 };

static const char *const classes[BW_REPAIR_CLASSES] = {"identical",   "checksum", "derived",
                                                       "rolled-back", "loss",     "resealed"};

const char *bw_repair_class_name(enum bw_repair_class class_number)
{
    return classes[class_number];
}

char *bw_repair_text(const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return length < 0 ? NULL : text;
}

struct bw_repair_device *bw_repair_device_of(struct bw_repair *repair, uint64_t devid)
{
    for (size_t i = 0; i < repair->devices.count; i++)
        if (repair->devices.items[i].image->superblock.device.devid == devid)
            return &repair->devices.items[i];
    return NULL;
}

struct bw_error *bw_repair_find_tree(struct bw_fs *fs, uint64_t id, struct bw_tree *tree)
{
    BW_SCOPED(bw_tree_list) struct bw_tree_list trees = {0};
    BW_TRY(bw_tree_list_load(fs, &trees));
    const struct bw_listed_tree *listed = bw_tree_list_find(&trees, id);
    *tree = listed ? listed->tree : (struct bw_tree){.id = 0};
    return NULL;
}

void bw_repair_all_items(struct bw_fs_items *items, struct bw_fs *fs, const struct bw_tree *tree)
{
    bw_fs_items_begin(items, fs, tree, (struct bw_key){0}, BW_KEY_MAX);
}

static void change_free(struct bw_repair_change *change)
{
    free(change->why);
    free(change->proof);
    free(change->loss);
    free(change->failure);
    free(change->bytes);
    if (change->generation)
        bw_repair_generation_free(change->generation);
    free(change->generation);
}

/* Whether a change is the same as another one, or is a part of it. */
static bool is_part(const struct bw_repair_change *part, const struct bw_repair_change *whole)
{
    const uint64_t before = part->offset - whole->offset;
    return part->what == whole->what && part->edit == whole->edit && part->devid == whole->devid &&
           part->logical - whole->logical == before && part->length <= whole->length &&
           before <= whole->length - part->length && part->byte == whole->byte &&
           bw_key_compare(&part->key, &whole->key) == 0;
}

/* The change of the block or sector before this one, on the device and in the address space, for
 * the same reasons; NULL: none. A bad range of a disk is one change. */
static struct bw_repair_change *find_neighbour(struct bw_repair *repair,
                                               const struct bw_repair_change *change)
{
    enum { MOST_COPIES = 64 }; /* of other devices, between the two */
    const struct bw_repair_changes *changes = &repair->changes;
    for (size_t i = changes->count; i-- > repair->first && i + MOST_COPIES >= changes->count;) {
        struct bw_repair_change *before = &changes->items[i];
        if (change->unit && before->what == change->what && before->devid == change->devid &&
            before->offset + before->length == change->offset &&
            before->logical + before->length == change->logical &&
            strcmp(before->why, change->why) == 0 && strcmp(before->proof, change->proof) == 0)
            return before;
    }
    return NULL;
}

static struct bw_error *join(struct bw_repair_change *change, struct bw_repair_change *next)
{
    uint8_t *bytes = realloc(change->bytes, change->length + next->length);
    if (!bytes)
        return bw_error_no_memory();
    memcpy(bytes + change->length, next->bytes, next->length);
    change->bytes = bytes;
    change->length += next->length;
    change_free(next);
    return NULL;
}

struct bw_error *bw_repair_push(struct bw_repair *repair, struct bw_repair_change change)
{
    const struct bw_repair_changes *changes = &repair->changes;
    const struct bw_repair_change *last = NULL;
    if (changes->count > repair->first)
        last = &changes->items[changes->count - 1];
    const bool is_part = last && change.group && change.plural && last->group == change.group &&
                         last->what == change.what && strcmp(last->why, change.why) == 0 &&
                         strcmp(last->proof, change.proof) == 0;
    if (!is_part)
        BW_TRY(bw_sizes_push(&repair->rows, changes->count));
    return bw_repair_changes_push(&repair->changes, change);
}

struct bw_error *bw_repair_split(struct bw_repair *repair, size_t number, uint64_t at)
{
    struct bw_repair_change *change = &repair->changes.items[number], rest = *change;
    rest.logical += at;
    rest.offset += at;
    rest.length -= at;
    rest.why = strdup(change->why);
    rest.proof = strdup(change->proof);
    rest.bytes = malloc(rest.length);
    struct bw_error *error = NULL;
    if (!rest.why || !rest.proof || !rest.bytes)
        error = bw_error_no_memory();
    if (!error) {
        memcpy(rest.bytes, change->bytes + at, rest.length);
        change->length = at;
        error = bw_repair_push(repair, rest);
    }
    if (error)
        change_free(&rest);
    return error;
}

/* Leaves out a change for which there is no more memory, and its group; the first one is reported.
 */
static struct bw_error *leave_out(struct bw_repair *repair, const struct bw_repair_change *change)
{
    if (!repair->is_limited)
        bw_fs_report(repair->given, BW_WARNING,
                     bw_error_create(BW_ERROR_UNSUPPORTED,
                                     "the plan omits changes, the first at %" PRIu64
                                     ": more than %" PRIu64 " MiB are too much for one repair in "
                                     "memory; repair the result again",
                                     change->logical, repair->options.most_bytes >> 20));
    repair->is_limited = true;
    bool is_new;
    return change->group ? bw_number_set_insert(&repair->incomplete, change->group, &is_new) : NULL;
}

struct bw_error *bw_repair_add(struct bw_repair *repair, struct bw_repair_change change)
{
    change.chosen = change.class_number < BW_REPAIR_ROLLED_BACK;
    struct bw_error *error = NULL;
    if (!change.image && !change.bytes && !change.is_parity) /* of all superblocks */
        change.logical = change.devid = change.offset = change.length = BW_ABSENT;

    /* An earlier round may have had the same change, which was not made. */
    bool was_left_out = false;
    for (size_t i = 0; i < repair->first && !was_left_out; i++)
        was_left_out =
            !repair->changes.items[i].chosen && is_part(&change, &repair->changes.items[i]);
    if (was_left_out) {
        change_free(&change);
        return NULL;
    }
    struct bw_repair_change *neighbour = NULL;
    if (change.why && change.proof)
        neighbour = find_neighbour(repair, &change);
    const uint64_t bytes = change.bytes ? change.length : 0;
    if (!change.why || !change.proof)
        error = bw_error_no_memory();
    if (!error && bytes > repair->options.most_bytes - repair->bytes) {
        error = leave_out(repair, &change);
        change_free(&change);
        return error;
    }
    if (!error && neighbour)
        error = join(neighbour, &change);
    else if (!error)
        error = bw_repair_push(repair, change);
    if (error)
        change_free(&change);
    else
        repair->bytes += bytes;
    return error;
}

/* Findings. */

static struct bw_error *on_finding(void *context, const struct bw_findinginfo *row)
{
    struct bw_repair *repair = context;
    const struct bw_finding_code *code = bw_finding_code_find(row->code);
    if (!code || code->severity == BW_FINDING_NOTE)
        return NULL;
    if (repair->after.count >= repair->options.most_findings)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "the check has more than %" PRIu64 " findings, which is too much "
                               "for a repair: 'rescue' saves the files",
                               repair->options.most_findings);

    /* Two checks find the same fault if it is of one kind and in one place. */
    const uint64_t place[] = {row->tree,    row->key.objectid, row->key.type, row->key.offset,
                              row->logical, row->devid,        row->offset,   row->mirror,
                              row->inode,   row->file_offset};
    return bw_repair_findings_push(
        &repair->after,
        (struct bw_repair_finding){.code = code,
                                   .logical = row->logical,
                                   .length = row->length,
                                   .devid = row->devid,
                                   .offset = row->offset,
                                   .mirror = row->mirror,
                                   .hash = XXH64(place, sizeof place, (uintptr_t)code),
                                   .tree = row->tree,
                                   .inode = row->inode,
                                   .key = row->key,
                                   .flipped_block = row->flipped_block,
                                   .flipped_byte = row->flipped_byte,
                                   .flipped_bit = row->flipped_bit,
                                   .repairable = row->repairable == 1});
}

static bool continue_check(void *context, const struct bw_check_progress *progress)
{
    const struct bw_repair_options *options = &((const struct bw_repair *)context)->options;
    return !options->progress || options->progress(options->context, progress);
}

struct bw_error *bw_repair_check(struct bw_repair *repair, struct bw_fs *fs)
{
    struct bw_check_summary *summary;
    const struct bw_check_options options = {.struct_size = sizeof options,
                                             .data = repair->options.data,
                                             .all = true,
                                             .threads = repair->options.threads,
                                             .visit = on_finding,
                                             .progress = continue_check,
                                             .context = repair};
    bw_repair_findings_free(&repair->after);
    struct bw_error *error = bw_check(fs, &options, &summary);
    if (!error && !summary->finished)
        error = bw_error_create(BW_ERROR_CORRUPT, "the check could not be finished");
    bw_check_summary_free(summary);
    return error;
}

/* Opening. */

static int compare_hashes(const void *first, const void *second)
{
    const struct bw_repair_finding *a = first, *b = second;
    return bw_compare(a->hash, b->hash);
}

/* Leaves out groups with a change that is not chosen by default, or for which there was no memory.
 */
static struct bw_error *complete_groups(struct bw_repair *repair)
{
    const struct bw_repair_changes *changes = &repair->changes;
    struct bw_number_set excluded = {0};
    struct bw_error *error = NULL;
    bool is_new;
    for (size_t i = repair->first; i < changes->count && !error; i++)
        if (changes->items[i].group && !changes->items[i].chosen)
            error = bw_number_set_insert(&excluded, changes->items[i].group, &is_new);
    for (size_t i = repair->first; i < changes->count; i++)
        changes->items[i].chosen &=
            !bw_number_set_has(&excluded, changes->items[i].group) &&
            !bw_number_set_has(&repair->incomplete, changes->items[i].group);
    bw_number_set_free(&excluded);
    return error;
}

struct bw_error *bw_repair_plan_round(struct bw_repair *repair)
{
    const bool was_about_blocks = repair->is_about_blocks;
    repair->first = repair->changes.count;
    repair->is_about_blocks = false;
    if (!was_about_blocks) {
        BW_TRY(bw_repair_list_bad_copies(repair));
        BW_TRY(bw_repair_find_superblocks(repair));
        BW_TRY(bw_repair_plan_roots(repair));
        BW_TRY(bw_repair_plan_chunk_root(repair));
        BW_TRY(bw_repair_plan_copies(repair));
        BW_TRY(bw_repair_plan_hiding_bits(repair));
        BW_TRY(bw_repair_plan_nodes(repair));
        BW_TRY(bw_repair_plan_extent_tree(repair));
        BW_TRY(bw_repair_plan_seals(repair, true));
        for (size_t i = repair->first; i < repair->changes.count && !repair->is_made; i++)
            repair->is_about_blocks |= repair->changes.items[i].reveals;
        if (!repair->is_about_blocks) {
            const size_t count = repair->changes.count;
            BW_TRY(bw_repair_plan_groups(repair));
            repair->is_about_blocks = repair->changes.count > count;
        }
    }
    if (!repair->is_about_blocks) {
        const size_t count = repair->changes.count;
        BW_TRY(bw_repair_plan_additions(repair));
        BW_TRY(bw_repair_plan_extents(repair));
        BW_TRY(bw_repair_plan_caches(repair, true));
        repair->is_about_blocks = repair->changes.count > count;
    }
    if (!repair->is_about_blocks) {
        BW_TRY(bw_repair_plan_sizes(repair));
        if (repair->is_made)
            BW_TRY(bw_repair_plan_generations(repair));
        BW_TRY(bw_repair_plan_caches(repair, false));
        BW_TRY(bw_repair_plan_superblocks(repair));
        BW_TRY(bw_repair_plan_inodes(repair));
        BW_TRY(bw_repair_plan_seals(repair, false));
        BW_TRY(bw_repair_plan_conversion(repair));
    }
    bw_repair_findings_sort(&repair->findings, compare_hashes);
    BW_TRY(bw_repair_index_changes(repair));
    BW_TRY(complete_groups(repair));

    /* A finding with which the plan began may have no change in the end: no copy was good enough.
     */
    for (size_t i = 0; i < repair->findings.count; i++) {
        struct bw_repair_finding *finding = &repair->findings.items[i];
        struct bw_repair_matches matches = bw_repair_find_changes(repair, finding);
        finding->planned = finding->planned && bw_repair_next_match(&matches);
    }
    if (repair->is_about_blocks || repair->is_made || repair->has_generations)
        return NULL;
    repair->has_generations = true;
    return bw_repair_plan_generations(repair);
}

/* Checks the file system, unless changes in place are not enough for it, and makes the first plan.
 */
static struct bw_error *begin(struct bw_repair *repair)
{
    static const struct {
        uint64_t bit;
        const char *name;
    } features[] = {{BW_INCOMPAT_ZONED, "zoned devices"},
                    {BW_INCOMPAT_RAID_STRIPE_TREE, "a raid stripe tree"},
                    {BW_INCOMPAT_REMAP_TREE, "a remap tree"},
                    {BW_INCOMPAT_EXTENT_TREE_V2, "extent tree v2"}};
    const struct bw_fs *fs = repair->given;
    const struct bw_fs_options *how = &repair->how;
    struct bw_repair_options *options = &repair->options;
    if (!how->path_count || how->inside_count || (how->graph && how->graph->file) ||
        how->overlay_count || how->log != BW_LOG_IGNORE || !fs->reopen)
        return bw_error_create(BW_ERROR_USAGE,
                               "a repair needs the images themselves, without a volfile, another "
                               "file system, an overlay or the changes of a log tree");
    options->data |= options->verify;
    if (!options->most_findings)
        options->most_findings = MOST_FINDINGS;
    if (!options->most_bytes)
        options->most_bytes = MOST_BYTES;
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
        if (fs->superblock.incompat_flags & features[i].bit)
            return bw_error_create(BW_ERROR_UNSUPPORTED,
                                   "file systems with %s cannot be repaired yet", features[i].name);
    if (fs->no_data || fs->is_stream)
        return bw_error_create(BW_ERROR_UNSUPPORTED,
                               "metadumps and send streams have no devices to repair");
    if (fs->is_past)
        return bw_error_create(BW_ERROR_USAGE,
                               "a repair is about the current generation, not an older one");

    /* The devices. */
    for (size_t i = 0; i < fs->image_count; i++) {
        struct bw_repair_device device = {.image = &fs->images[i]};
        if (fs->images[i].role == BW_IMAGE_SEED)
            return bw_error_create(BW_ERROR_UNSUPPORTED,
                                   "file systems with a seed device cannot be repaired yet");
        if (fs->images[i].role != BW_IMAGE_DEVICE || !fs->images[i].storage)
            continue;
        if (fs->images[i].alternative)
            return bw_error_create(BW_ERROR_USAGE,
                                   "a repair needs one image of each device, without "
                                   "alternatives");
        BW_TRY(bw_repair_devices_push(&repair->devices, device));
    }
    BW_TRY(bw_repair_make_patches(repair, &repair->patches));
    BW_TRY(bw_repair_check(repair, repair->fs));
    repair->findings = repair->after;
    repair->after = (struct bw_repair_findings){0};
    return bw_repair_plan_round(repair);
}

struct bw_error *bw_repair_open(struct bw_fs *fs, const struct bw_fs_options *how,
                                const struct bw_repair_options *options, struct bw_repair **result)
{
    struct bw_repair *repair = *result = calloc(1, sizeof *repair);
    if (!repair)
        return bw_error_no_memory();
    repair->fs = repair->given = fs;
    struct bw_error *error = BW_TAKE_OPTIONS(&repair->how, how);
    if (!error)
        error = BW_TAKE_OPTIONS(&repair->options, options);
    if (!error)
        error = begin(repair);
    if (error)
        bw_repair_close(BW_TAKE(*result));
    return error;
}

void bw_repair_forget(struct bw_repair *repair)
{
    for (size_t i = 0; i < repair->blocks.count; i++) {
        free(repair->blocks.items[i].bytes);
        bw_sizes_free(&repair->blocks.items[i].changes);
    }
    bw_repair_blocks_free(&repair->blocks);
    bw_repair_bad_copies_free(&repair->bad_copies);
    bw_numbers_free(&repair->converted);
    bw_repair_generation_free(&repair->current);
    repair->current = (struct bw_repair_generation){.devices = {0}};
}

void bw_repair_close(struct bw_repair *repair)
{
    if (!repair)
        return;
    for (size_t i = 0; i < repair->changes.count; i++)
        change_free(&repair->changes.items[i]);
    bw_fs_close(repair->tried);
    if (repair->fs != repair->given)
        bw_fs_close(repair->fs);
    bw_repair_patches_free(&repair->patches, repair->devices.count);
    bw_repair_patches_free(&repair->base, repair->devices.count);
    for (size_t i = 0; repair->file_patches && i < repair->how.path_count; i++)
        bw_patch_free(&repair->file_patches[i]);
    bw_repair_changes_free(&repair->changes);
    bw_sizes_free(&repair->rows);
    bw_number_set_free(&repair->incomplete);
    bw_repair_index_free(&repair->index);
    bw_repair_findings_free(&repair->findings);
    bw_repair_findings_free(&repair->after);
    bw_repair_forget(repair);
    bw_repair_devices_free(&repair->devices);
    free(repair->file_patches);
    free(repair->buffer);
    free(repair);
}

/* The plan for its reader. */

size_t bw_repair_count(const struct bw_repair *repair)
{
    return repair->rows.count;
}

/* The first change after a row. */
static size_t row_end(const struct bw_repair *repair, size_t index)
{
    return index + 1 < repair->rows.count ? repair->rows.items[index + 1] : repair->changes.count;
}

void bw_repair_change(const struct bw_repair *repair, size_t index, struct bw_repairinfo *row)
{
    const size_t first = repair->rows.items[index];
    const struct bw_repair_change *change = &repair->changes.items[first];
    uint64_t parts = row_end(repair, index) - first, length = change->length;
    if (parts > 1)
        length *= parts;
    else if (bw_repair_is_joined(change))
        parts = length / change->unit;
    *row = (struct bw_repairinfo){.id = index + 1,
                                  .class_name = bw_repair_class_name(change->class_number),
                                  .chosen = change->chosen,
                                  .devid = change->devid,
                                  .offset = change->offset,
                                  .logical = change->logical,
                                  .length = length,
                                  .what = parts > 1 ? change->plural : change->what,
                                  .part_count = parts,
                                  .why = change->why,
                                  .proof = change->proof,
                                  .loss = change->loss,
                                  .failure = change->failure};
}

void bw_repair_choose(struct bw_repair *repair, size_t index, bool chosen)
{
    const size_t first = repair->rows.items[index], end = row_end(repair, index);
    const unsigned group = repair->changes.items[first].group;
    if (first < repair->first)
        return; /* settled */
    if (chosen && bw_number_set_has(&repair->incomplete, group))
        return; /* its other changes are not in memory */
    const size_t from = group ? repair->first : first, to = group ? repair->changes.count : end;
    for (size_t i = from; i < to; i++) {
        struct bw_repair_change *change = &repair->changes.items[i];
        if ((i < first || i >= end) && change->group != group)
            continue;
        change->chosen = chosen;
        free(BW_TAKE(change->failure));
    }
}

uint64_t bw_repair_remaining(const struct bw_repair *repair)
{
    uint64_t remaining = 0;
    for (size_t i = 0; i < repair->findings.count; i++) {
        const struct bw_repair_finding *finding = &repair->findings.items[i];
        remaining += finding->planned || finding->code->severity == BW_FINDING_ERROR;
    }
    return remaining;
}

uint64_t bw_repair_left(const struct bw_repair *repair)
{
    uint64_t left = 0;
    for (size_t i = 0; i < repair->findings.count; i++)
        left += !repair->findings.items[i].planned;
    return left;
}

BW_VECTOR(finding_list, const struct bw_repair_finding *);

/* By kind and place, which is the same for all mirrors. */
static int compare_places(const void *left, const void *right)
{
    const struct bw_repair_finding *a = *(const struct bw_repair_finding *const *)left,
                                   *b = *(const struct bw_repair_finding *const *)right;
    return BW_COMPARE_ALL(((uint64_t[]){(uintptr_t)a->code, a->tree, a->inode, a->logical,
                                        a->logical == BW_ABSENT ? a->offset : 0}),
                          ((uint64_t[]){(uintptr_t)b->code, b->tree, b->inode, b->logical,
                                        b->logical == BW_ABSENT ? b->offset : 0}));
}

char *bw_repair_name_left(const struct bw_repair *repair, bool all)
{
    enum { ENOUGH = 30 }; /* letters, after which no other kind is named */
    const struct bw_repair_findings *findings = &repair->findings;
    BW_SCOPED(finding_list) struct finding_list list = {0};
    BW_AUTO_BUFFER struct bw_buffer text = {0};
    BW_AUTO_ERROR struct bw_error *error = finding_list_reserve(&list, findings->count);
    for (size_t i = 0; !error && i < findings->count; i++)
        if (all || !findings->items[i].planned)
            list.items[list.count++] = &findings->items[i];
    finding_list_sort(&list, compare_places);
    for (size_t i = 0, end; i < list.count && text.length <= ENOUGH; i = end) {
        const struct bw_repair_finding *first = list.items[i];
        size_t others = 0;
        for (end = i + 1; end < list.count && list.items[end]->code == first->code; end++)
            others += compare_places(&list.items[end - 1], &list.items[end]) != 0;
        bw_buffer_format(&text, "%s%s", i ? ", " : "", first->code->word);
        if (first->inode != BW_ABSENT)
            bw_buffer_format(&text, " in inode %" PRIu64 " of tree %" PRIu64, first->inode,
                             first->tree);
        else if (first->logical != BW_ABSENT)
            bw_buffer_format(&text, " at %" PRIu64, first->logical);
        else if (first->offset != BW_ABSENT)
            bw_buffer_format(&text, " at %" PRIu64 " of device %" PRIu64, first->offset,
                             first->devid);
        if (others)
            bw_buffer_format(&text, " and %zu more", others);
        if (end < list.count && text.length > ENOUGH)
            bw_buffer_format(&text, ", ...");
    }
    bw_buffer_append_byte(&text, '\0');
    return error || text.failed ? NULL : BW_TAKE(text.data);
}
