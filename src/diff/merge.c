/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The comparison path by path: a merge of the entries of two sides, which both come in the order of
 * their paths. Equal paths are a pair; a path of one side alone was added or deleted, unless the
 * other side could not contain it, or has lost names of that directory.
 *
 * Pairs are gathered, a thousand at a time, because inodes are read fastest in their own order and
 * files by several threads. Then the differences are passed on in the order of the paths.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/hash.h"
#include "base/hash_table.h"
#include "base/vector.h"
#include "diff/diff.h"
#include "diff/entries.h"

enum { MOST_PAIRS = 1024, MOST_TEXT = 4 << 20 };

/* A directory of the current path, or the entry itself. */
struct level {
    bool may_have_more[2];  /* names of the directory may be lost */
    uint64_t subvolumes[2]; /* that contain the directory; 0: none */
};

BW_VECTOR(levels, struct level);

/* An entry of both sides, or of one. */
struct pair {
    struct bw_side_entry sides[2];
    bool has[2];
    bool is_unknown; /* only one side has it, but the other one may have lost it */
    uint64_t subvolumes[2];
    size_t path, path_length; /* in the texts */
    size_t targets[2];        /* in the texts, if facts.target_length is set */
    struct bw_diff_result result;
    uint8_t status; /* enum bw_difference_status; 0: no difference */
    size_t job;     /* number of its job; SIZE_MAX: none */
};

BW_VECTOR(pairs, struct pair);
BW_VECTOR(jobs, struct bw_content_job);

struct merge {
    struct bw_diff *diff;
    struct bw_entries *const *sides;
    struct levels levels;      /* the top, then one for each name of the last path */
    struct bw_buffer last;     /* the last path */
    struct bw_buffer excluded; /* path of a nested subvolume that is not compared */
    struct pairs pairs;
    struct bw_buffer texts;
    struct jobs jobs;
    struct bw_xattr_list xattrs[2];
    struct bw_buffer link;
    struct bw_key_map linked[2]; /* files with hard links: the same number for the same file */
    uint32_t linked_count;
};

/* Gathering. */

/* Whether a path is below another one. */
static bool is_below(const char *path, size_t length, const char *above, size_t above_length)
{
    return length > above_length && path[above_length] == '/' &&
           memcmp(path, above, above_length) == 0;
}

/* Finds the level of an entry. The levels of its directories remain, or inherit from the one above.
 */
static struct bw_error *find_level(struct merge *merge, const char *path, size_t length,
                                   struct level **level)
{
    const struct bw_buffer *last = &merge->last;
    size_t depth = 0, kept = 0, same = 0;
    while (same < length && same < last->length && last->data[same] == path[same])
        same++;
    for (size_t at = 0; at < length; at++) {
        if (path[at] != '/')
            continue;
        depth++;
        if (at <= same && (at == last->length || last->data[at] == '/'))
            kept = depth;
    }
    struct levels *levels = &merge->levels;
    if (levels->count > kept)
        levels->count = kept;
    while (levels->count <= depth) {
        const struct level top = {{false}, {0}};
        BW_TRY(levels_push(levels, levels->count ? levels->items[levels->count - 1] : top));
    }
    *level = &levels->items[depth];
    return bw_buffer_set(&merge->last, path, length);
}

/* Adds the current entries of both sides, which have the same path, or of one of them. */
static struct bw_error *add_entries(struct merge *merge, const struct bw_side_entry *entries[2])
{
    struct bw_diff *diff = merge->diff;
    const struct bw_side_entry *any = entries[1] ? entries[1] : entries[0];
    const char *path = any->path;
    const size_t length = any->path_length;
    struct level *level;
    BW_TRY(find_level(merge, path, length, &level));
    const bool is_both = entries[0] && entries[1];
    const bool is_selected = bw_diff_selects(diff, path, length);
    bool is_compared = is_selected, is_excluded = false, is_unknown = false;
    if (merge->excluded.length &&
        is_below(path, length, merge->excluded.data, merge->excluded.length))
        is_excluded = true;
    for (unsigned side = 0; side < 2; side++) {
        const struct bw_entries *other = merge->sides[!side];
        if (!entries[side])
            continue;
        level->may_have_more[side] = entries[side]->may_have_more;
        level->subvolumes[side] = entries[side]->facts.subvolume;
        if (is_both)
            continue;
        /* one side alone has it; the other one inherits from its directory */
        is_unknown = level->may_have_more[!side];
        if (other && (!(other->types >> entries[side]->facts.type & 1) ||
                      (entries[side]->is_nested && other->lacks_nested)))
            is_compared = false;
        if (entries[side]->is_optional)
            is_compared = false;
        if (entries[side]->is_nested && !entries[side]->is_empty)
            level->subvolumes[!side] = 0;
    }
    /* A damaged entry may call a directory a file, so that it was not entered. */
    const bool types_differ = is_both && entries[0]->facts.type != entries[1]->facts.type;
    for (unsigned side = 0; types_differ && side < 2; side++) {
        const struct bw_entries_class *class = merge->sides[side]->class;
        struct bw_side_entry entry = *entries[side];
        if (!class->load || entry.facts.type == BW_FILE_DIRECTORY)
            continue;
        BW_TRY(class->load(merge->sides[side], &entry));
        level->may_have_more[side] |= entry.is_lost || entry.facts.type == BW_FILE_DIRECTORY;
    }
    if (!length && !is_both && (*diff->prefix || !any->facts.known))
        is_compared = false; /* the directory that contains a nested subvolume has its entry */
    if (is_compared && !is_excluded) {
        for (unsigned side = 0; side < 2; side++)
            diff->summary.entries[side] += entries[side] && (length || !*diff->prefix);
        struct pair pair = {.path = merge->texts.length,
                            .path_length = length,
                            .is_unknown = is_unknown,
                            .job = SIZE_MAX};
        for (unsigned side = 0; side < 2; side++) {
            pair.subvolumes[side] = level->subvolumes[side];
            pair.has[side] = entries[side];
            if (entries[side])
                pair.sides[side] = *entries[side];
        }
        BW_TRY(pairs_push(&merge->pairs, pair));
        bw_buffer_append(&merge->texts, path, length);
        bw_buffer_append_byte(&merge->texts, '\0');
        BW_TRY(bw_buffer_error(&merge->texts));
    }

    /* Entries that are excluded are not listed either. If a side cannot tell nested subvolumes from
     * directories, their contents must not be compared with nothing. */
    for (unsigned side = 0; side < 2; side++) {
        const struct bw_entries *other = merge->sides[!side];
        if (!entries[side] || !entries[side]->is_excluded || !other || other->tells_nested)
            continue;
        BW_TRY(bw_buffer_set(&merge->excluded, path, length));
        is_excluded = true;
    }
    const bool may_contain =
        is_selected || is_below(diff->filter.data, diff->filter.length, path, length);
    for (unsigned side = 0; side < 2; side++)
        if (entries[side] && (is_excluded || !may_contain) && merge->sides[side]->class->skip)
            merge->sides[side]->class->skip(merge->sides[side]);
    return NULL;
}

/* Comparing. */

/* Keeps both targets in the texts, for the receiver of the difference. */
static struct bw_error *compare_targets(struct merge *merge, struct pair *pair)
{
    bool lost = false;
    for (unsigned side = 0; side < 2; side++) {
        struct bw_diff_entry *facts = &pair->sides[side].facts;
        const struct bw_entries_class *class = merge->sides[side]->class;
        bool is_lost = false;
        merge->link.length = 0;
        pair->sides[side].path = merge->texts.data + pair->path; /* the other target moves them */
        if (facts->target)
            bw_buffer_append(&merge->link, facts->target, facts->target_length);
        else
            BW_TRY(class->target(merge->sides[side], &pair->sides[side], &merge->link, &is_lost));
        lost |= is_lost;
        facts->target_length = merge->link.length;
        pair->targets[side] = merge->texts.length;
        bw_buffer_append(&merge->texts, merge->link.data, merge->link.length);
        bw_buffer_append_byte(&merge->texts, '\0');
    }
    if (merge->texts.failed || merge->link.failed)
        return bw_error_no_memory();
    const size_t lengths[2] = {pair->sides[0].facts.target_length,
                               pair->sides[1].facts.target_length};
    const char *text = merge->texts.data;
    if (lost)
        pair->result.unknown |= BW_CHANGE_CONTENT;
    else if (bw_compare_bytes(text + pair->targets[0], lengths[0], text + pair->targets[1],
                              lengths[1]) != 0)
        pair->result.changes |= BW_CHANGE_CONTENT;
    if (!lost && lengths[0] != lengths[1])
        pair->result.changes |= BW_CHANGE_SIZE;
    return NULL;
}

/* Chooses the cheapest proof that both sides have. */
static struct bw_error *compare_contents(struct merge *merge, struct pair *pair, unsigned known)
{
    struct bw_diff *diff = merge->diff;
    const struct bw_diff_entry *a = &pair->sides[0].facts, *b = &pair->sides[1].facts;
    struct bw_diff_result *result = &pair->result;
    if (merge->sides[0]->fs && merge->sides[1]->fs) {
        const struct bw_diff_file files[2] = {
            bw_entries_image_file(merge->sides[0], &pair->sides[0]),
            bw_entries_image_file(merge->sides[1], &pair->sides[1])};
        return bw_diff_compare_contents(diff, files, NULL, result);
    }
    if (b->type == BW_FILE_SYMLINK)
        return known & BW_KNOWS_TARGET ? compare_targets(merge, pair) : NULL;
    if (b->type != BW_FILE_REGULAR)
        return NULL;
    const unsigned image = merge->sides[0]->fs ? 0 : 1;
    const struct bw_side_entry *other = &pair->sides[!image];
    const bool has_size = known & BW_KNOWS_SIZE, has_hash = other->facts.known & BW_KNOWS_HASH;
    if (has_size)
        result->bytes = a->size > b->size ? a->size - b->size : b->size - a->size;
    if (has_hash && has_size && a->size != b->size)
        return NULL;
    if (!has_hash && !(other->facts.known & BW_KNOWS_BYTES))
        return NULL;
    if (!has_hash && (!a->size || !b->size))
        return NULL;
    if (diff->options.reading == BW_DIFF_READ_NEVER) {
        if (pair->sides[image].facts.size)
            result->unknown |= BW_CHANGE_CONTENT;
        return NULL;
    }
    const struct bw_content_job job = {
        .data = bw_data_file_of(&pair->sides[image].place, &pair->sides[image].inode),
        .other = merge->sides[!image],
        .other_file = other,
        .algorithms = has_hash ? other->algorithms : 0};
    pair->job = merge->jobs.count;
    return jobs_push(&merge->jobs, job);
}

/* Compares a pair, except for contents that are read by a job. */
static struct bw_error *compare_pair(struct merge *merge, struct pair *pair)
{
    uint64_t sizes[2] = {0, 0};
    bool is_lost = false, is_empty = false;
    for (unsigned side = 0; side < 2; side++) {
        struct bw_side_entry *entry = &pair->sides[side];
        if (!pair->has[side])
            continue;
        entry->path = merge->texts.data + pair->path;
        if (merge->sides[side]->class->load)
            BW_TRY(merge->sides[side]->class->load(merge->sides[side], entry));
        is_lost |= entry->is_lost;
        is_empty |= entry->is_empty;
        if (entry->facts.type == BW_FILE_REGULAR)
            sizes[side] = entry->facts.size;
    }
    const struct bw_diff_entry *a = &pair->sides[0].facts, *b = &pair->sides[1].facts;
    const unsigned known = a->known & b->known;
    pair->status = BW_DIFFERENCE_UNKNOWN;
    if (is_lost || pair->is_unknown)
        return NULL;
    if (!pair->has[0] || !pair->has[1]) {
        pair->status = pair->has[1] ? BW_DIFFERENCE_ADDED : BW_DIFFERENCE_DELETED;
        pair->result.bytes = sizes[0] + sizes[1];
        return NULL;
    }
    if (known & BW_KNOWS_TYPE && a->type != b->type) {
        pair->status = BW_DIFFERENCE_TYPE;
        pair->result.bytes = sizes[0] > sizes[1] ? sizes[0] : sizes[1];
        return NULL;
    }
    pair->status = 0;
    if (is_empty)
        return NULL;

    /* The facts that both sides know; sizes are of files whose contents are compared later. */
    unsigned changes = 0;
    if (known & BW_KNOWS_MODE && a->mode != b->mode)
        changes |= BW_CHANGE_MODE;
    if ((known & BW_KNOWS_UID && a->uid != b->uid) || (known & BW_KNOWS_GID && a->gid != b->gid))
        changes |= BW_CHANGE_OWNER;
    if (known & BW_KNOWS_TIME && !bw_same_time(&a->mtime, &b->mtime))
        changes |= BW_CHANGE_TIMES;
    if (known & BW_KNOWS_LINKS && a->links != b->links)
        changes |= BW_CHANGE_LINKS;
    if (known & BW_KNOWS_DEVICE && (a->major != b->major || a->minor != b->minor))
        changes |= BW_CHANGE_CONTENT;
    if (known & BW_KNOWS_SIZE && a->size != b->size &&
        (b->type == BW_FILE_REGULAR || b->type == BW_FILE_SYMLINK))
        changes |= BW_CHANGE_SIZE | BW_CHANGE_CONTENT;
    pair->result.changes = changes;
    if (known & BW_KNOWS_XATTRS) {
        bool lost = false;
        for (unsigned side = 0; side < 2; side++) {
            struct bw_xattr_list *list = &merge->xattrs[side];
            struct bw_entries *entries = merge->sides[side];
            list->xattrs.count = list->bytes.length = 0;
            BW_TRY(entries->class->xattrs(entries, &pair->sides[side], list, &lost));
        }
        if (lost)
            pair->result.unknown |= BW_CHANGE_XATTRS;
        else if (!bw_xattr_list_equals(&merge->xattrs[0], &merge->xattrs[1],
                                       merge->sides[0]->ordinary || merge->sides[1]->ordinary))
            pair->result.changes |= BW_CHANGE_XATTRS;
    }
    return compare_contents(merge, pair, known);
}

/* Adds the result of the job, decides whether there is a difference, and passes it on. */
static struct bw_error *visit_pair(struct merge *merge, struct pair *pair)
{
    struct bw_diff *diff = merge->diff;
    struct bw_diff_result *result = &pair->result;
    if (!pair->status) {
        /* Hard links: whether the names so far of the one file were names of the other one. The key
         * is unique for the numbers of real file systems. */
        uint32_t numbers[2] = {0};
        uint64_t keys[2] = {0};
        bool is_linked = true;
        for (unsigned side = 0; side < 2; side++) {
            const struct bw_diff_entry *facts = &pair->sides[side].facts;
            is_linked &= facts->links >= 2 && merge->sides[side]->fs;
            keys[side] = facts->inode ^ facts->subvolume << 40;
            numbers[side] = bw_key_map_get(&merge->linked[side], keys[side], UINT32_MAX);
        }
        if (is_linked && numbers[0] != numbers[1])
            result->changes |= BW_CHANGE_LINKS;
        if (is_linked && numbers[0] == UINT32_MAX && numbers[1] == UINT32_MAX)
            for (unsigned side = 0; side < 2; side++)
                BW_TRY(bw_key_map_put(&merge->linked[side], keys[side], merge->linked_count));
        merge->linked_count += is_linked;

        if (pair->job != SIZE_MAX) {
            const struct bw_content_job *job = &merge->jobs.items[pair->job];
            struct bw_diff_entry *facts = &pair->sides[merge->sides[0]->fs ? 0 : 1].facts;
            struct bw_diff_entry *other = &pair->sides[merge->sides[0]->fs ? 1 : 0].facts;
            result->bytes += job->bytes;
            result->changes |= job->differs ? BW_CHANGE_CONTENT : 0;
            result->unknown |= job->is_unknown ? BW_CHANGE_CONTENT : 0;
            facts->hash = job->hash;
            if (job->hash)
                facts->hash_name = other->hash_name = bw_hash_names[job->algorithm];
        }
        if (result->changes & BW_CHANGE_CONTENT)
            result->unknown &= ~(unsigned)BW_CHANGE_CONTENT;
        if (pair->sides[1].facts.type != BW_FILE_REGULAR)
            result->bytes = 0;
        if (result->changes)
            pair->status = BW_DIFFERENCE_MODIFIED;
        else if (result->unknown)
            pair->status = BW_DIFFERENCE_UNKNOWN;
        else
            return NULL;
    }

    struct bw_buffer *path = &diff->paths[0];
    const size_t prefix = strlen(diff->prefix);
    path->length = 0;
    bw_buffer_append(path, diff->prefix, prefix);
    bw_buffer_append(path, merge->texts.data + pair->path, pair->path_length);
    if (!path->length)
        bw_buffer_append_byte(path, '/');
    BW_TRY(bw_buffer_error(path));
    struct bw_diff_entry *facts[2];
    for (unsigned side = 0; side < 2; side++) {
        facts[side] = pair->has[side] ? &pair->sides[side].facts : NULL;
        if (facts[side] && facts[side]->target_length)
            facts[side]->target = merge->texts.data + pair->targets[side];
    }
    struct bw_difference difference = {.status = pair->status,
                                       .changes = pair->result.changes,
                                       .unknown = pair->result.unknown,
                                       .bytes = pair->result.bytes,
                                       .path = path->data,
                                       .path_length = path->length,
                                       .old_subvolume = pair->subvolumes[0],
                                       .subvolume = pair->subvolumes[1],
                                       .old_entry = facts[0],
                                       .entry = facts[1]};
    if (facts[0]) {
        difference.old_type = facts[0]->type;
        difference.old_inode = facts[0]->inode;
        difference.old_size = facts[0]->size;
    }
    if (facts[1]) {
        difference.type = facts[1]->type;
        difference.inode = facts[1]->inode;
        difference.size = facts[1]->size;
    }
    bw_diff_count(&diff->summary, &difference);
    return diff->options.visit(diff->options.context, &difference);
}

static int by_inode(const void *left, const void *right, void *image)
{
    const struct pair *a = *(struct pair *const *)left, *b = *(struct pair *const *)right;
    const unsigned side = *(const unsigned *)image;
    const struct bw_diff_entry *x = &a->sides[a->has[side] ? side : !side].facts;
    const struct bw_diff_entry *y = &b->sides[b->has[side] ? side : !side].facts;
    return BW_COMPARE_ALL(((uint64_t[]){x->subvolume, x->inode}),
                          ((uint64_t[]){y->subvolume, y->inode}));
}

/* Compares the gathered pairs, and passes on the differences. */
static struct bw_error *compare_gathered(struct merge *merge)
{
    struct bw_diff *diff = merge->diff;
    unsigned image = merge->sides[1] && merge->sides[1]->fs ? 1 : 0;
    BW_AUTO_FREE struct pair **order = calloc(merge->pairs.count + 1, sizeof(struct pair *));
    if (!order)
        return bw_error_no_memory();
    if (diff->options.proceed && !diff->options.proceed(diff->options.context))
        return bw_error_create(BW_ERROR_STOPPED, "the comparison was stopped");
    for (size_t i = 0; i < merge->pairs.count; i++)
        order[i] = &merge->pairs.items[i];
    qsort_r(order, merge->pairs.count, sizeof *order, by_inode, &image);
    struct bw_error *error = NULL;
    for (size_t i = 0; i < merge->pairs.count && !error; i++)
        error = compare_pair(merge, order[i]);
    for (size_t i = 0; i < merge->pairs.count; i++) /* comparing targets may have moved the texts */
        for (unsigned side = 0; side < 2; side++)
            merge->pairs.items[i].sides[side].path = merge->texts.data + merge->pairs.items[i].path;
    if (!error)
        error = bw_content_jobs_run(merge->sides[image]->fs, &diff->options, merge->jobs.items,
                                    merge->jobs.count);
    for (size_t i = 0; i < merge->pairs.count && !error; i++)
        error = visit_pair(merge, &merge->pairs.items[i]);
    for (size_t i = 0; i < merge->jobs.count; i++)
        free(merge->jobs.items[i].hash);
    merge->pairs.count = merge->jobs.count = merge->texts.length = 0;
    return error;
}

static void merge_free(struct merge *merge)
{
    levels_free(&merge->levels);
    pairs_free(&merge->pairs);
    jobs_free(&merge->jobs);
    bw_buffer_free(&merge->last);
    bw_buffer_free(&merge->excluded);
    bw_buffer_free(&merge->texts);
    bw_buffer_free(&merge->link);
    for (unsigned side = 0; side < 2; side++) {
        bw_key_map_free(&merge->linked[side]);
        bw_xattr_list_free(&merge->xattrs[side]);
    }
}

struct bw_error *bw_diff_merge(struct bw_diff *diff, struct bw_entries *const sides[2])
{
    /* The kinds of changes that cannot be found without a fact of both sides. */
    static const struct {
        unsigned facts, change;
    } needed[] = {
        {BW_KNOWS_BYTES | BW_KNOWS_HASH, BW_CHANGE_CONTENT},
        {BW_KNOWS_SIZE, BW_CHANGE_SIZE},
        {BW_KNOWS_MODE, BW_CHANGE_MODE},
        {BW_KNOWS_UID | BW_KNOWS_GID, BW_CHANGE_OWNER},
        {BW_KNOWS_TIME, BW_CHANGE_TIMES},
        {BW_KNOWS_XATTRS, BW_CHANGE_XATTRS},
        {BW_KNOWS_LINKS, BW_CHANGE_LINKS},
    };
    BW_SCOPED(merge) struct merge merge = {.diff = diff, .sides = sides};
    for (unsigned side = 0; side < 2; side++) {
        if (!sides[side])
            continue;
        for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
            if (!(sides[side]->knows & needed[i].facts))
                diff->summary.not_compared |= needed[i].change;
        BW_TRY(sides[side]->class->next(sides[side]));
    }
    for (;;) {
        const struct bw_side_entry *entries[2] = {NULL, NULL};
        for (unsigned side = 0; side < 2; side++)
            if (sides[side] && !sides[side]->ended)
                entries[side] = &sides[side]->entry;
        if (!entries[0] && !entries[1])
            return compare_gathered(&merge);
        if (entries[0] && entries[1]) {
            const int order = bw_compare_paths(entries[0]->path, entries[0]->path_length,
                                               entries[1]->path, entries[1]->path_length);
            if (order)
                entries[order < 0] = NULL;
        }
        BW_TRY(add_entries(&merge, entries));
        if (merge.pairs.count == MOST_PAIRS || merge.texts.length > MOST_TEXT)
            BW_TRY(compare_gathered(&merge));
        for (unsigned side = 0; side < 2; side++)
            if (entries[side])
                BW_TRY(sides[side]->class->next(sides[side]));
    }
}
