/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Findings on their way to the caller. They wait until their pass has ended, so that their order
 * does not depend on threads, and all paths are looked up together. A pass passes on the first
 * twenty of each code in that order, unless all are wanted.
 *
 * Paths name the affected files in all subvolumes. Data and tree blocks have owners, which are
 * searched for all findings of a pass together (owners/owner_search.h). If no block leads to names,
 * as for an inode without an item, they are looked up in the subvolume of the finding.
 */
#include "check/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/escape.h"
#include "base/range_set.h"
#include "base/search.h"
#include "check/unchanged.h"
#include "ondisk/items.h"
#include "owners/owner_search.h"

/* If all are wanted: findings of a code, and paths of all findings of a pass. This bounds the
 * memory. */
enum { ALL_SHOWN = 1 << 20 };

/* Collecting. */

void bw_findings_init(struct bw_check *check)
{
    size_t count;
    const struct bw_finding_code *codes = bw_finding_codes(&count);
    for (size_t i = 0; i < count; i++)
        check->findings.counts[i].code = &codes[i];
}

static void free_paths(struct bw_finding *location)
{
    for (size_t i = 0; i < location->paths.count; i++)
        free((char *)(uintptr_t)location->paths.items[i].data);
    bw_finding_paths_free(&location->paths);
}

static void free_location(struct bw_finding *location)
{
    free(location->message);
    for (size_t i = 0; i < location->files.count; i++)
        free_paths(&location->files.items[i]);
    bw_waiting_findings_free(&location->files);
    free_paths(location);
}

static void clear_findings(struct bw_findings *findings)
{
    for (size_t i = 0; i < findings->waiting.count; i++)
        free_location(&findings->waiting.items[i]);
    findings->waiting.count = 0;
    memset(findings->in_pass, 0, sizeof findings->in_pass);
}

void bw_findings_free(struct bw_check *check)
{
    clear_findings(&check->findings);
    bw_waiting_findings_free(&check->findings.waiting);
}

/* A number of a finding; 0 if it is not known. */
static uint64_t or_zero(uint64_t number)
{
    return number == BW_ABSENT ? 0 : number;
}

/* By code, then by location. Several names of an inode differ only in the item of the name. */
static int by_location(const void *first, const void *second)
{
    const struct bw_finding *one = first, *other = second;
    const struct bw_findinginfo *a = &one->row, *b = &other->row;
    const uint64_t left[] = {one->code,           or_zero(a->tree),  or_zero(a->key.objectid),
                             a->key.type,         a->key.offset,     or_zero(a->inode),
                             or_zero(a->logical), or_zero(a->devid), or_zero(a->offset),
                             or_zero(a->mirror)};
    const uint64_t right[] = {other->code,         or_zero(b->tree),  or_zero(b->key.objectid),
                              b->key.type,         b->key.offset,     or_zero(b->inode),
                              or_zero(b->logical), or_zero(b->devid), or_zero(b->offset),
                              or_zero(b->mirror)};
    const int order = BW_COMPARE_ALL(left, right);
    const int by_message = order ? order : strcmp(one->message, other->message);
    return by_message ? by_message : bw_key_compare(&one->end_key, &other->end_key);
}

/* Appends the flipped bit to the message. The block is named unless the finding is about it. */
static void append_flip(struct bw_check *check, struct bw_finding *finding)
{
    const struct bw_flip *flip = &finding->flip;
    char *longer, of_block[48] = "";
    if (flip->block != finding->row.logical)
        snprintf(of_block, sizeof of_block, " of the tree block at %" PRIu64, flip->block);
    if (asprintf(&longer,
                 "%s; bit %u of byte 0x%" PRIx32 "%s is probably flipped: %" PRIu64
                 " would be in order",
                 finding->message, flip->bit, flip->byte, of_block, flip->value) < 0)
        return;
    free(finding->message);
    finding->message = longer;
    finding->row.flipped_block = flip->block;
    finding->row.flipped_byte = flip->byte;
    finding->row.flipped_bit = flip->bit;
    check->flips++;
}

void bw_check_find(struct bw_check *check, enum bw_code_number code,
                   const struct bw_finding *finding, const char *format, ...)
{
    struct bw_findings *findings = &check->findings;
    struct bw_finding new = BW_FINDING(BW_TOUCHES_NOTHING, .repairable = false);
    if (finding)
        new = *finding;
    va_list arguments;
    va_start(arguments, format);
    const int length = vasprintf(&new.message, format, arguments);
    va_end(arguments);
    if (length >= 0 && new.flip.found)
        append_flip(check, &new);
    if (code == BW_CODE_unfinished)
        atomic_store(&check->unfinished, true);
    if (length < 0) {
        check->no_memory = true;
        return;
    }
    new.code = code;
    pthread_mutex_lock(&check->lock);
    check->found++;
    findings->counts[code].count++;
    findings->counts[code].repairable += new.row.repairable;

    /* If enough of its code wait, it takes the place of the last one of them in the order, which is
     * forgotten, or is forgotten itself if it comes after those. */
    const uint64_t limit = check->options->all ? ALL_SHOWN : BW_FINDINGS_SHOWN;
    struct bw_finding *last = NULL;
    if (++findings->in_pass[code] <= limit) {
        if (bw_waiting_findings_push(&findings->waiting, new))
            check->no_memory = true;
        else
            new = (struct bw_finding){.message = NULL};
    } else if (!check->options->all) {
        for (size_t i = 0; i < findings->waiting.count; i++)
            if (findings->waiting.items[i].code == code &&
                (!last || by_location(&findings->waiting.items[i], last) > 0))
                last = &findings->waiting.items[i];
    }
    if (last && by_location(&new, last) < 0) {
        const struct bw_finding forgotten = *last;
        *last = new;
        new = forgotten;
    }
    pthread_mutex_unlock(&check->lock);
    free_location(&new);
}

void bw_check_unable(struct bw_check *check, struct bw_error *error)
{
    bw_check_find(check, BW_CODE_unfinished, NULL, "%s", error->message);
    bw_error_free(error);
}

bool bw_check_lacks_memory(struct bw_check *check, const struct bw_error *error)
{
    if (!error || error->code != BW_ERROR_NO_MEMORY)
        return false;
    bw_check_unable(check, bw_error_no_memory());
    return true;
}

/* Paths. */

/* The search for the paths of the findings of a pass. */
struct naming {
    struct bw_check *check;
    struct bw_finding *findings;
    size_t count;
    struct bw_address_range *ranges; /* one for each of `searched` */
    struct bw_finding **searched;    /* findings whose owners are searched, by address */
    size_t searched_count;
    struct bw_inode_paths paths;
    size_t listed; /* paths of all findings */
};

/* The subvolume of a finding; NULL if it is in none, or was deleted. */
static const struct bw_subvolume *subvolume_of(const struct naming *naming,
                                               const struct bw_finding *location)
{
    if (location->row.tree == BW_ABSENT)
        return NULL;
    const struct bw_subvolume *subvolume =
        bw_subvolume_by_id(naming->check->fs, location->row.tree);
    return subvolume && !subvolume->deleted ? subvolume : NULL;
}

static bool has_room(const struct naming *naming, const struct bw_finding *location)
{
    if (naming->check->options->all)
        return naming->listed < ALL_SHOWN;
    if (location->touches != BW_TOUCHES_EACH)
        return location->paths.count < BW_FINDINGS_SHOWN;
    size_t full = 0;
    while (full < location->files.count &&
           location->files.items[full].paths.count >= BW_FINDINGS_SHOWN)
        full++;
    return full < BW_FINDINGS_SHOWN;
}

static struct bw_error *add_path(struct naming *naming, struct bw_finding *location,
                                 const struct bw_bytes *path)
{
    if (!has_room(naming, location)) {
        location->row.more_paths++;
        return NULL;
    }
    BW_TRY(bw_finding_paths_reserve(&location->paths, 1));
    char *copy = malloc(path->length + 1);
    if (!copy)
        return bw_error_no_memory();
    memcpy(copy, path->data, path->length);
    copy[path->length] = '\0';
    naming->listed++;
    return bw_finding_paths_push(&location->paths, (struct bw_bytes){copy, path->length});
}

/*
 * Findings reported once for each file: damaged data. Adjacent damaged ranges of a file are one
 * finding. Other subvolumes with the same file add paths to it.
 */

static struct bw_error *add_path_of_file(struct naming *naming, struct bw_finding *file,
                                         const struct bw_owner *owner)
{
    if (owner->path.data && has_room(naming, file)) {
        file->listed_tree = owner->tree;
        return add_path(naming, file, &owner->path);
    }
    file->row.more_paths += owner->path.data != NULL;
    if (file->row.tree != owner->tree && file->listed_tree != owner->tree &&
        file->counted_tree != owner->tree)
        file->row.more_subvolumes++;
    file->counted_tree = owner->tree;
    return NULL;
}

/* A finding for one file, or for none, about a part of the damaged data. */
static struct bw_error *add_file(struct bw_finding *location, uint64_t logical, uint64_t length)
{
    struct bw_finding file = {.row = location->row};
    if (file.row.offset != BW_ABSENT)
        file.row.offset += logical - file.row.logical;
    file.row.logical = logical;
    file.row.length = length;
    return bw_waiting_findings_push(&location->files, file);
}

/* Adds an owner of data: as a new file, to the piece of the last one, or its path to a file. */
static struct bw_error *add_owner_of_each(struct naming *naming, struct bw_finding *location,
                                          const struct bw_owner *owner)
{
    struct bw_waiting_findings *files = &location->files;
    const uint64_t this[] = {owner->tree, owner->inode, owner->offset, owner->logical};
    const uint64_t last_tree = location->last_owner[0];
    struct bw_finding *present = files->count ? &files->items[location->present_file] : NULL;

    /* The last owner again, under another path. */
    if (present && memcmp(location->last_owner, this, sizeof this) == 0)
        return add_path_of_file(naming, present, owner);

    /* It continues the piece of the last one: it is stored after it, or in the same compressed
     * extent. */
    struct bw_findinginfo *last = present ? &present->row : NULL;
    if (last && last->inode == owner->inode && last->tree == owner->tree &&
        last->file_offset + last->file_length == owner->offset &&
        (last->logical + last->length == owner->logical ||
         (last->logical == owner->logical && last->length == owner->length))) {
        last->file_length += owner->file_length;
        last->length = owner->logical + owner->length - last->logical;
        return NULL;
    }

    /* The same file in another subvolume, or a new one. */
    size_t number = 0;
    for (; number < files->count; number++) {
        const struct bw_findinginfo *file = &files->items[number].row;
        if (file->inode == owner->inode && file->tree != owner->tree &&
            owner->offset - file->file_offset < file->file_length &&
            owner->logical - file->logical < file->length)
            break;
    }
    if (present && number == location->present_file && last_tree == owner->tree)
        return NULL; /* the piece is continued */
    if (number == files->count && number >= BW_FINDINGS_SHOWN && !naming->check->options->all) {
        location->more_files++;
        return NULL;
    }
    if (number == files->count) {
        BW_TRY(add_file(location, owner->logical, owner->length));
        struct bw_findinginfo *row = &files->items[number].row;
        row->tree = owner->tree;
        row->inode = owner->inode;
        row->file_offset = owner->offset;
        row->file_length = owner->file_length;
    }
    location->present_file = number;
    memcpy(location->last_owner, this, sizeof this);
    return add_path_of_file(naming, &files->items[number], owner);
}

/* Adds findings for the parts of damaged data that no file shows: their extents are in use. */
static struct bw_error *add_unowned(struct bw_finding *location)
{
    const uint64_t start = location->row.logical, end = start + location->row.length;
    BW_SCOPED(bw_range_set) struct bw_range_set owned = {0};
    for (size_t i = 0; i < location->files.count; i++) {
        const struct bw_findinginfo *file = &location->files.items[i].row;
        BW_TRY(bw_range_set_insert(&owned, file->logical, file->logical + file->length));
    }
    bw_range_set_join(&owned);
    for (uint64_t at = start, next; owned.ranges.count && at < end; at = next) {
        next = end;
        if (!bw_range_set_has(&owned, at, &next))
            BW_TRY(add_file(location, at, next - at));
    }
    return NULL;
}

/* Owners. */

/* Adds an owner of the affected range; an owner without a path makes its names irrelevant. */
static struct bw_error *add_owner(struct naming *naming, struct bw_finding *location,
                                  const struct bw_owner *owner)
{
    struct bw_findinginfo *finding = &location->row;
    if (owner->path.data && has_room(naming, location))
        location->listed_tree = owner->tree;
    if (location->listed_tree != owner->tree && location->counted_tree != owner->tree) {
        location->counted_tree = owner->tree;
        finding->more_subvolumes++;
    }
    if (owner->path.data)
        return add_path(naming, location, &owner->path);
    finding->more_paths += owner->inode && !has_room(naming, location);
    return NULL;
}

/* The next finding that touches an owner of a tree block, from number `*next` on; begin with 0.
 * NULL: no more. */
static struct bw_finding *next_touched(const struct naming *naming, const struct bw_owner *owner,
                                       size_t *next)
{
    struct bw_finding *const *searched = naming->searched;
    const size_t count = naming->searched_count;
    if (!*next)
        *next = BW_FIRST_INDEX(i, count, searched[i]->row.logical >= owner->extent);
    while (*next < count && searched[*next]->row.logical == owner->extent) {
        struct bw_finding *location = searched[(*next)++];
        if (location->touches == BW_TOUCHES_KEYS || !owner->inode ||
            owner->inode == location->row.inode)
            return location;
    }
    return NULL;
}

static bool is_of_data(const struct bw_finding *location)
{
    const enum bw_touch touches = location->touches;
    return touches == BW_TOUCHES_DATA || touches == BW_TOUCHES_EACH;
}

static struct bw_error *on_owner(void *context, const struct bw_owner *owner)
{
    struct naming *naming = context;
    if (!owner->subvolume || owner->subvolume->deleted)
        return NULL;
    if (owner->kind == BW_OWNER_DATA) {
        struct bw_finding *location = naming->searched[owner->range];
        if (location->touches == BW_TOUCHES_EACH)
            return add_owner_of_each(naming, location, owner);
        return is_of_data(location) ? add_owner(naming, location, owner) : NULL;
    }
    size_t next = 0;
    for (struct bw_finding *location; (location = next_touched(naming, owner, &next));)
        BW_TRY(add_owner(naming, location, owner));
    return NULL;
}

static bool needs_path(void *context, const struct bw_owner *owner)
{
    const struct naming *naming = context;
    if (owner->kind == BW_OWNER_DATA)
        return has_room(naming, naming->searched[owner->range]);
    size_t next = 0;
    for (const struct bw_finding *location; (location = next_touched(naming, owner, &next));)
        if (has_room(naming, location))
            return true;
    return false;
}

static bool should_continue(void *context)
{
    const struct naming *naming = context;
    return bw_check_should_continue(naming->check, 0);
}

static int by_address(const void *first, const void *second)
{
    const struct bw_finding *a = *(struct bw_finding *const *)first,
                            *b = *(struct bw_finding *const *)second;
    const int order = bw_compare(a->row.logical, b->row.logical);
    return order ? order : bw_compare((uintptr_t)a, (uintptr_t)b);
}

/* Searches the owners of data, and of tree blocks with items that a finding touches. */
static struct bw_error *search_owners(struct naming *naming)
{
    static const struct bw_owner_hooks hooks = {needs_path, should_continue};
    for (size_t i = 0; i < naming->count; i++) {
        struct bw_finding *location = &naming->findings[i];
        const struct bw_findinginfo *row = &location->row;
        bool is_searched = row->logical != BW_ABSENT;
        if (is_of_data(location))
            is_searched &= or_zero(row->length) <= UINT64_MAX - row->logical;
        else if (location->touches == BW_TOUCHES_KEYS ||
                 (location->touches == BW_TOUCHES_INODE && row->key.objectid != BW_ABSENT))
            is_searched &= subvolume_of(naming, location) != NULL;
        else
            is_searched = false;
        if (is_searched)
            naming->searched[naming->searched_count++] = location;
    }
    if (!naming->searched_count)
        return NULL;
    qsort(naming->searched, naming->searched_count, sizeof *naming->searched, by_address);
    for (size_t i = 0; i < naming->searched_count; i++) {
        const struct bw_findinginfo *finding = &naming->searched[i]->row;
        const uint64_t length = is_of_data(naming->searched[i]) ? or_zero(finding->length) : 0;
        naming->ranges[i] = (struct bw_address_range){finding->logical, length + !length};
    }
    const struct bw_owner_options options = {.struct_size = sizeof options,
                                             .ranges = naming->ranges,
                                             .count = naming->searched_count,
                                             .visit = on_owner,
                                             .context = naming};
    return bw_owners_search(naming->check->fs, &options, &hooks);
}

/* Findings that no block leads to. */

/* Lists the name that an item has in a subvolume; or else all names of the inode there. */
static struct bw_error *list_names(struct naming *naming, struct bw_finding *location,
                                   const struct bw_subvolume *subvolume)
{
    const uint64_t inode = location->row.inode;
    const struct bw_key key = location->end_key;
    const size_t before = location->paths.count;
    struct bw_inode_paths *paths = &naming->paths;
    struct bw_bytes path;
    if (location->touches == BW_TOUCHES_NAME) {
        BW_SCOPED(bw_fs_items) struct bw_fs_items items;
        bw_fs_items_begin(&items, naming->check->fs, &subvolume->tree, key, key);
        for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
            struct bw_cursor cursor = bw_cursor_of(item);
            struct bw_dir_entry entry;
            struct bw_inode_ref ref;
            while (key.type == BW_INODE_REF && bw_inode_ref_next(&cursor, &key, &ref)) {
                BW_TRY(bw_inode_paths_join(paths, subvolume, ref.parent, ref.name, ref.name_length,
                                           &path));
                if (path.data)
                    BW_TRY(add_path(naming, location, &path));
            }
            while (key.type != BW_INODE_REF && bw_dir_entry_next(&cursor, &entry)) {
                if (entry.location.objectid != inode)
                    continue;
                BW_TRY(bw_inode_paths_join(paths, subvolume, key.objectid, entry.name,
                                           entry.name_length, &path));
                if (path.data)
                    BW_TRY(add_path(naming, location, &path));
            }
        }
        BW_TRY(bw_fs_items_error(&items));
    }
    if (location->paths.count > before)
        return NULL;
    bw_inode_paths_begin(paths, subvolume, or_zero(inode));
    while (bw_inode_paths_next(paths, &path))
        BW_TRY(add_path(naming, location, &path));
    return bw_inode_paths_error(paths);
}

static struct bw_error *on_lost_name(void *context, const struct bw_lost_inodes *lost,
                                     uint64_t inode, const struct bw_bytes *path)
{
    struct naming *naming = context;
    (void)inode;
    return path->data ? add_path(naming, &naming->findings[lost->number], path) : NULL;
}

/* Lists what findings touch that have no path yet: the names of inodes, also in other subvolumes
 * whose inodes have the same sum, because they share the fault; then directories are searched for
 * the names of inodes that have none. */
static struct bw_error *list_rest(struct naming *naming)
{
    const struct bw_tree_list *trees = &naming->check->trees;
    BW_AUTO_FREE struct bw_lost_inodes *lost = calloc(naming->count + 1, sizeof *lost);
    size_t lost_count = 0;
    if (!lost)
        return bw_error_no_memory();
    for (size_t i = 0; i < naming->count; i++) {
        struct bw_finding *location = &naming->findings[i];
        struct bw_findinginfo *row = &location->row;
        const struct bw_subvolume *subvolume = subvolume_of(naming, location);
        const bool of_keys = location->touches == BW_TOUCHES_KEYS;
        if (location->touches == BW_TOUCHES_NOTHING || is_of_data(location) ||
            location->paths.count || !subvolume)
            continue;
        if (!of_keys)
            BW_TRY(list_names(naming, location, subvolume));
        const struct bw_listed_tree *own = bw_tree_list_find(trees, row->tree);
        for (size_t k = 0; !of_keys && own && k < trees->entries.count && row->more_subvolumes;
             k++) {
            const struct bw_listed_tree *tree = &trees->entries.items[k];
            const struct bw_subvolume *other = bw_subvolume_by_id(naming->check->fs, tree->tree.id);
            const size_t before = location->paths.count;
            if (tree == own || !other || !tree->is_subvolume || !tree->references ||
                (tree->total ^ tree->incomplete) != (own->total ^ own->incomplete) ||
                !has_room(naming, location))
                continue;
            BW_TRY(list_names(naming, location, other));
            row->more_subvolumes -= location->paths.count > before;
        }
        if (location->paths.count)
            continue;

        /* The inodes whose names are searched for. */
        uint64_t first = or_zero(row->inode), last = first;
        if (of_keys) {
            const struct bw_key *end = &location->end_key;
            first = bw_max(or_zero(row->key.objectid), BW_SUBVOLUME_ROOT_INODE);
            last = end->objectid - (end->type <= BW_INODE_ITEM && !end->offset);
        }
        last = bw_min(last, BW_LAST_SUBVOLUME);
        if (first <= last)
            lost[lost_count++] = (struct bw_lost_inodes){subvolume, first, last, i};
    }
    return bw_lost_inodes_name(naming->check->fs, &naming->paths, lost, lost_count, on_lost_name,
                               naming);
}

/* Passing findings to the caller. */

struct bw_error *bw_findings_flush(struct bw_check *check)
{
    struct bw_findings *findings = &check->findings;
    struct bw_finding *waiting = findings->waiting.items;
    const size_t count = findings->waiting.count;
    struct bw_error *error = NULL;
    bw_waiting_findings_sort(&findings->waiting, by_location);

    /* Their paths. */
    if (check->options->visit && count) {
        BW_AUTO_FREE struct bw_finding **searched = calloc(count, sizeof *searched);
        BW_AUTO_FREE struct bw_address_range *ranges = calloc(count, sizeof *ranges);
        struct naming naming = {.check = check,
                                .findings = waiting,
                                .count = count,
                                .paths.fs = check->fs,
                                .searched = searched,
                                .ranges = ranges};
        error = searched && ranges ? search_owners(&naming) : bw_error_no_memory();
        if (!error)
            error = list_rest(&naming);
        for (size_t i = 0; !error && i < count; i++)
            if (!waiting[i].more_files)
                error = add_unowned(&waiting[i]);
        bw_inode_paths_free(&naming.paths);
    }

    /* Each is passed to the caller; one about several files once for each of them. */
    for (size_t i = 0; !error && check->options->visit && i < count; i++) {
        struct bw_finding *finding = &waiting[i];
        struct bw_finding *each = finding->files.count ? finding->files.items : finding;
        const size_t more = finding->files.count ? finding->files.count - 1 : 0;
        struct bw_finding_count *counter = &findings->counts[finding->code];
        BW_AUTO_BUFFER struct bw_buffer message = {0};
        bw_escape_words(&message, finding->message);
        error = bw_buffer_terminate(&message);
        counter->count += more;
        counter->repairable += finding->row.repairable ? more : 0;
        each[more].row.more_paths += finding->more_files;
        for (size_t k = 0; !error && k <= more; k++) {
            struct bw_findinginfo *row = &each[k].row;
            char tree[BW_KEY_TEXT];
            row->severity = bw_finding_severity_name(counter->code->severity);
            row->code = counter->code->word;
            row->pass = counter->code->pass;
            row->message = message.data;
            row->paths = (struct bw_names){each[k].paths.items, each[k].paths.count};
            if (row->tree != BW_ABSENT)
                row->tree_name = bw_tree_id_text(row->tree, tree);
            if (!row->more_paths)
                row->more_paths = BW_ABSENT;
            if (!row->more_subvolumes)
                row->more_subvolumes = BW_ABSENT;

            /* The image of a copy, if its device has several images. */
            if (check->fs->alternatives && row->logical != BW_ABSENT && row->mirror != BW_ABSENT &&
                row->devid != BW_ABSENT) {
                struct bw_mapping mapping;
                BW_AUTO_ERROR struct bw_error *unmapped =
                    bw_fs_map(check->fs, row->logical, 1, (unsigned)row->mirror, &mapping);
                const char *image = NULL;
                if (!unmapped)
                    image = bw_fs_alternative(check->fs, mapping.devid, mapping.alternative);
                if (image)
                    row->device = (struct bw_bytes){image, strlen(image)};
            }
            error = bw_unchanged_finding(check, finding->code, row);
            if (!error)
                error = check->options->visit(check->options->context, row);
        }
    }
    for (unsigned code = 0; code < BW_CODES; code++)
        findings->counts[code].hidden += findings->in_pass[code];
    for (size_t i = 0; i < count; i++)
        findings->counts[waiting[i].code].hidden--;
    check->skips &= check->pass > BW_PASS_space || !check->new_errors;
    clear_findings(findings);
    return error;
}
