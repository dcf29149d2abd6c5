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
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "check/check.h"
#include "ondisk/items.h"
#include "owners/owner_search.h"

enum {
    SHOWN = 20,                /* findings of a code in a pass */
    ALL_SHOWN = 1 << 20,       /* if all are wanted: what memory has to hold is bounded */
    PATHS_LISTED = 20,         /* paths of a finding, or of one of its files; and files */
    ALL_PATHS_LISTED = 1 << 20 /* of all findings of a pass, if all are wanted */
};

/* Collecting. */

void bw_findings_init(struct bw_check *check)
{
    size_t count;
    const struct bw_finding_code *codes = bw_finding_codes(&count);
    pthread_mutex_init(&check->findings.lock, NULL);
    for (size_t i = 0; i < count; i++)
        check->findings.counts[i].code = &codes[i];
}

static void free_paths(struct bw_finding_location *location)
{
    for (size_t i = 0; i < location->paths.count; i++)
        free((char *)(uintptr_t)location->paths.items[i].data);
    bw_finding_paths_free(&location->paths);
}

static void free_location(struct bw_finding_location *location)
{
    free((char *)(uintptr_t)location->finding.message);
    for (size_t i = 0; i < location->files.count; i++)
        free_paths(&location->files.items[i]);
    bw_finding_locations_free(&location->files);
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
    bw_finding_locations_free(&check->findings.waiting);
    pthread_mutex_destroy(&check->findings.lock);
}

/* By code, then by where it is. */
static int by_location(const void *first, const void *second)
{
    const struct bw_finding *a = &((const struct bw_finding_location *)first)->finding;
    const struct bw_finding *b = &((const struct bw_finding_location *)second)->finding;
    const uint64_t left[] = {a->inode, a->logical, a->devid, a->offset, a->copy};
    const uint64_t right[] = {b->inode, b->logical, b->devid, b->offset, b->copy};
    int order = a->code == b->code ? 0 : a->code < b->code ? -1 : 1;
    order = order ? order : bw_compare(a->tree, b->tree);
    order = order ? order : bw_key_compare(&a->key, &b->key);
    order = order ? order : BW_COMPARE_ALL(left, right);
    return order ? order : strcmp(a->message, b->message);
}

/* The place for a new finding. If enough of its code wait, that is the place of the last one of
 * them in the order, which is forgotten; NULL if the new one comes after those. */
static struct bw_finding_location *
make_room(struct bw_check *check, const struct bw_finding_location *new, enum bw_code_number code)
{
    struct bw_findings *findings = &check->findings;
    struct bw_finding_location *last = NULL;
    const uint64_t limit = check->options->all ? ALL_SHOWN : SHOWN;
    if (findings->in_pass[code] > ALL_SHOWN && check->options->all)
        return NULL;
    if (findings->in_pass[code] <= limit) {
        if (bw_finding_locations_reserve(&findings->waiting, 1)) {
            atomic_store(&check->unfinished, true);
            return NULL;
        }
        return &findings->waiting.items[findings->waiting.count++];
    }
    for (size_t i = 0; i < findings->waiting.count; i++)
        if (findings->waiting.items[i].finding.code == new->finding.code &&
            (!last || by_location(&findings->waiting.items[i], last) > 0))
            last = &findings->waiting.items[i];
    if (!last || by_location(new, last) >= 0)
        return NULL;
    free_location(last);
    return last;
}

void bw_check_find(struct bw_check *check, enum bw_code_number code,
                   const struct bw_finding_location *location, const char *format, ...)
{
    struct bw_findings *findings = &check->findings;
    struct bw_finding_location new = *location;
    char *message = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&message, format, arguments);
    va_end(arguments);
    if (length < 0 || code == BW_CODE_unfinished)
        atomic_store(&check->unfinished, true);
    if (length < 0)
        return;
    new.finding.code = findings->counts[code].code;
    new.finding.message = message;
    pthread_mutex_lock(&findings->lock);
    findings->in_pass[code]++;
    findings->counts[code].count++;
    findings->counts[code].repairable += new.finding.repairable;
    struct bw_finding_location *room = make_room(check, &new, code);
    if (room)
        *room = new;
    pthread_mutex_unlock(&findings->lock);
    if (!room)
        free_location(&new);
}

void bw_check_unable(struct bw_check *check, struct bw_error *error)
{
    bw_check_find(check, BW_CODE_unfinished, &(struct bw_finding_location){0}, "%s",
                  error->message);
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
    struct bw_finding_location *findings;
    size_t count;
    struct bw_address_range *ranges;       /* one for each of `searched` */
    struct bw_finding_location **searched; /* findings whose owners are searched, by address */
    size_t searched_count;
    struct bw_inode_paths paths;
    size_t listed; /* paths of all findings */
};

static bool has_known_fields(const struct bw_finding_location *location, unsigned bits)
{
    return (location->finding.known & bits) == bits;
}

static const struct bw_subvolume *subvolume_of(const struct naming *naming,
                                               const struct bw_finding_location *location)
{
    const struct bw_subvolume *subvolume =
        has_known_fields(location, BW_KNOWN_TREE)
            ? bw_subvolume_by_id(naming->check->fs, location->finding.tree)
            : NULL;
    return subvolume && !subvolume->deleted ? subvolume : NULL;
}

static bool has_room(const struct naming *naming, const struct bw_finding_location *location)
{
    if (naming->check->options->all)
        return naming->listed < ALL_PATHS_LISTED;
    if (location->touches != BW_TOUCHES_EACH)
        return location->paths.count < PATHS_LISTED;
    size_t full = 0;
    while (full < location->files.count && location->files.items[full].paths.count >= PATHS_LISTED)
        full++;
    return full < PATHS_LISTED;
}

static struct bw_error *add_path(struct naming *naming, struct bw_finding_location *location,
                                 const char *path, size_t length)
{
    if (!has_room(naming, location)) {
        location->finding.more_paths++;
        return NULL;
    }
    BW_TRY(bw_finding_paths_reserve(&location->paths, 1));
    char *copy = malloc(length + 1);
    if (!copy)
        return bw_error_no_memory();
    memcpy(copy, path, length);
    copy[length] = '\0';
    naming->listed++;
    return bw_finding_paths_push(&location->paths, (struct bw_bytes){copy, length});
}

/*
 * Findings reported once for each file: damaged data. Adjacent damaged ranges of a file are one
 * finding. Other subvolumes with the same file add paths to it.
 */

/* The number of the finding that another subvolume has of the same file; or else of a new one. */
static size_t find_elsewhere(const struct bw_finding_location *location,
                             const struct bw_owner *owner)
{
    size_t i = 0;
    for (; i < location->files.count; i++) {
        const struct bw_finding *file = &location->files.items[i].finding;
        if (file->inode == owner->inode && file->tree != owner->tree &&
            owner->offset - file->file_offset < file->file_length)
            break;
    }
    return i;
}

/* Whether an owner continues the piece of a file: it is stored after it, or in the same compressed
 * extent. */
static bool is_continued(const struct bw_finding *file, const struct bw_owner *owner)
{
    return file->inode == owner->inode && file->tree == owner->tree &&
           file->file_offset + file->file_length == owner->offset &&
           (file->logical + file->length == owner->logical ||
            (file->logical == owner->logical && file->length == owner->length));
}

/* Whether it is the last owner again, under another path. */
static bool is_last_owner(const struct bw_finding_location *location, const struct bw_owner *owner)
{
    const uint64_t *last = location->last_owner;
    return last[0] == owner->tree && last[1] == owner->inode && last[2] == owner->offset &&
           last[3] == owner->logical;
}

static void set_last_owner(struct bw_finding_location *location, const struct bw_owner *owner)
{
    const uint64_t last[] = {owner->tree, owner->inode, owner->offset, owner->logical};
    memcpy(location->last_owner, last, sizeof last);
}

static struct bw_error *add_file(struct bw_finding_location *location, const struct bw_owner *owner)
{
    struct bw_finding_locations *files = &location->files;
    BW_TRY(bw_finding_locations_push(files,
                                     (struct bw_finding_location){.finding = location->finding}));
    struct bw_finding_location *file = &files->items[files->count - 1];
    file->finding.known |=
        BW_KNOWN_TREE | BW_KNOWN_INODE | BW_KNOWN_FILE_OFFSET | BW_KNOWN_FILE_LENGTH;
    file->finding.offset += owner->logical - location->finding.logical;
    file->finding.logical = owner->logical;
    file->finding.length = owner->length;
    file->finding.tree = owner->tree;
    file->finding.inode = owner->inode;
    file->finding.file_offset = owner->offset;
    file->finding.file_length = owner->file_length;
    return NULL;
}

static struct bw_error *add_path_of_file(struct naming *naming, struct bw_finding_location *file,
                                         const struct bw_owner *owner)
{
    if (owner->path.data && has_room(naming, file)) {
        file->listed_tree = owner->tree;
        return add_path(naming, file, owner->path.data, owner->path.length);
    }
    file->finding.more_paths += owner->path.data != NULL;
    if (file->finding.tree != owner->tree && file->listed_tree != owner->tree &&
        file->counted_tree != owner->tree)
        file->finding.more_subvolumes++;
    file->counted_tree = owner->tree;
    return NULL;
}

/* Adds an owner of data: as a new file, to the piece of the last one, or its path to a file. */
static struct bw_error *add_owner_of_each(struct naming *naming,
                                          struct bw_finding_location *location,
                                          const struct bw_owner *owner)
{
    const size_t count = location->files.count;
    struct bw_finding_location *present =
        count ? &location->files.items[location->present_file] : NULL;
    if (present && is_last_owner(location, owner))
        return add_path_of_file(naming, present, owner);
    if (present && is_continued(&present->finding, owner)) {
        present->finding.file_length += owner->file_length;
        present->finding.length = owner->logical + owner->length - present->finding.logical;
        return NULL;
    }
    const size_t number = find_elsewhere(location, owner);
    if (present && number == location->present_file && location->last_owner[0] == owner->tree)
        return NULL; /* the piece is continued */
    if (number == count && count >= PATHS_LISTED && !naming->check->options->all) {
        location->more_files++;
        return NULL;
    }
    if (number == count)
        BW_TRY(add_file(location, owner));
    location->present_file = number;
    set_last_owner(location, owner);
    return add_path_of_file(naming, &location->files.items[number], owner);
}

/* Owners. */

/* Adds an owner of the affected range; an owner without a path makes its names irrelevant. */
static struct bw_error *add_owner(struct naming *naming, struct bw_finding_location *location,
                                  const struct bw_owner *owner)
{
    struct bw_finding *finding = &location->finding;
    if (owner->path.data && has_room(naming, location))
        location->listed_tree = owner->tree;
    if (location->listed_tree != owner->tree && location->counted_tree != owner->tree) {
        location->counted_tree = owner->tree;
        finding->more_subvolumes++;
    }
    if (owner->path.data)
        return add_path(naming, location, owner->path.data, owner->path.length);
    finding->more_paths += owner->inode && !has_room(naming, location);
    return NULL;
}

/* Whether an owner of a tree block is touched by a finding of that block. */
static bool touches_owner(const struct bw_finding_location *location, const struct bw_owner *owner)
{
    return location->finding.logical == owner->extent &&
           (location->touches == BW_TOUCHES_KEYS || !owner->inode ||
            owner->inode == location->finding.inode);
}

/* The first finding of a tree block. */
static size_t first_of_block(const struct naming *naming, uint64_t bytenr)
{
    return BW_FIRST_INDEX(i, naming->searched_count,
                          naming->searched[i]->finding.logical >= bytenr);
}

static bool is_at(const struct naming *naming, size_t i, uint64_t bytenr)
{
    return i < naming->searched_count && naming->searched[i]->finding.logical == bytenr;
}

static bool is_of_data(const struct bw_finding_location *location)
{
    const enum bw_touch touches = location->touches;
    return touches == BW_TOUCHES_DATA || touches == BW_TOUCHES_EACH;
}

static struct bw_error *add_data_owner(struct naming *naming, struct bw_finding_location *location,
                                       const struct bw_owner *owner)
{
    if (location->touches == BW_TOUCHES_EACH)
        return add_owner_of_each(naming, location, owner);
    return is_of_data(location) ? add_owner(naming, location, owner) : NULL;
}

static struct bw_error *on_owner(void *context, const struct bw_owner *owner)
{
    struct naming *naming = context;
    if (!owner->subvolume || owner->subvolume->deleted)
        return NULL;
    if (owner->kind == BW_OWNER_DATA)
        return add_data_owner(naming, naming->searched[owner->range], owner);
    for (size_t i = first_of_block(naming, owner->extent); is_at(naming, i, owner->extent); i++)
        if (touches_owner(naming->searched[i], owner))
            BW_TRY(add_owner(naming, naming->searched[i], owner));
    return NULL;
}

static bool needs_path(void *context, const struct bw_owner *owner)
{
    const struct naming *naming = context;
    if (owner->kind == BW_OWNER_DATA)
        return has_room(naming, naming->searched[owner->range]);
    for (size_t i = first_of_block(naming, owner->extent); is_at(naming, i, owner->extent); i++)
        if (touches_owner(naming->searched[i], owner) && has_room(naming, naming->searched[i]))
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
    const struct bw_finding_location *a = *(struct bw_finding_location *const *)first,
                                     *b = *(struct bw_finding_location *const *)second;
    const int order = bw_compare(a->finding.logical, b->finding.logical);
    return order ? order : bw_compare((uintptr_t)a, (uintptr_t)b);
}

/* Chooses the findings whose owners are to be searched: of data, and of tree blocks. */
static bool is_searched(const struct naming *naming, const struct bw_finding_location *location)
{
    const enum bw_touch touches = location->touches;
    const struct bw_finding *finding = &location->finding;
    if (!has_known_fields(location, BW_KNOWN_LOGICAL))
        return false;
    if (is_of_data(location))
        return finding->length <= UINT64_MAX - finding->logical;
    return (touches == BW_TOUCHES_KEYS ||
            (touches == BW_TOUCHES_INODE && has_known_fields(location, BW_KNOWN_KEY))) &&
           subvolume_of(naming, location);
}

static struct bw_error *search_owners(struct naming *naming)
{
    static const struct bw_owner_hooks hooks = {needs_path, should_continue};
    for (size_t i = 0; i < naming->count; i++)
        if (is_searched(naming, &naming->findings[i]))
            naming->searched[naming->searched_count++] = &naming->findings[i];
    if (!naming->searched_count)
        return NULL;
    qsort(naming->searched, naming->searched_count, sizeof *naming->searched, by_address);
    for (size_t i = 0; i < naming->searched_count; i++) {
        const struct bw_finding *finding = &naming->searched[i]->finding;
        const bool of_data = is_of_data(naming->searched[i]);
        naming->ranges[i] = (struct bw_address_range){
            finding->logical, of_data && finding->length ? finding->length : 1};
    }
    const struct bw_owner_options options = {.struct_size = sizeof options,
                                             .ranges = naming->ranges,
                                             .count = naming->searched_count,
                                             .visit = on_owner,
                                             .context = naming};
    return bw_owners_search(naming->check->fs, &options, &hooks);
}

/* Findings that no block leads to. */

struct listing {
    struct naming *naming;
    struct bw_finding_location *location;
    const struct bw_subvolume *subvolume;
};

static struct bw_error *on_path(void *context, const char *path, size_t length)
{
    const struct listing *listing = context;
    return add_path(listing->naming, listing->location, path, length);
}

static struct bw_error *on_named_item(void *context, const struct bw_item *item)
{
    const struct listing *listing = context;
    struct naming *naming = listing->naming;
    const struct bw_subvolume *subvolume = listing->subvolume;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    struct bw_inode_ref ref;
    if (item->key.type == BW_INODE_REF)
        while (bw_inode_ref_next(&cursor, &item->key, &ref))
            BW_TRY(bw_inode_paths_join(&naming->paths, subvolume, ref.parent, ref.name,
                                       ref.name_length, on_path, context));
    else
        while (bw_dir_entry_next(&cursor, &entry))
            if (entry.location.objectid == listing->location->finding.inode)
                BW_TRY(bw_inode_paths_join(&naming->paths, subvolume, item->key.objectid,
                                           entry.name, entry.name_length, on_path, context));
    return NULL;
}

/* Lists the name that an item has in a subvolume; or else all names of the inode there. */
static struct bw_error *list_names(struct naming *naming, struct bw_finding_location *location,
                                   const struct bw_subvolume *subvolume)
{
    const struct bw_finding *finding = &location->finding;
    const struct bw_key key = location->end_key;
    const size_t before = location->paths.count;
    struct listing listing = {naming, location, subvolume};
    if (location->touches == BW_TOUCHES_NAME)
        BW_TRY(bw_fs_items(naming->check->fs, &subvolume->tree, key, key, on_named_item, &listing));
    return location->paths.count > before
               ? NULL
               : bw_inode_paths_list(&naming->paths, subvolume, finding->inode, on_path, &listing);
}

/* Lists names in other subvolumes whose inodes have the same sum: they share the fault. */
static struct bw_error *list_alike(struct naming *naming, struct bw_finding_location *location)
{
    struct bw_finding *finding = &location->finding;
    const struct bw_tree_list *trees = &naming->check->trees;
    const struct bw_listed_tree *own = bw_tree_list_find(trees, finding->tree);
    for (size_t i = 0; own && i < trees->entries.count && finding->more_subvolumes; i++) {
        const struct bw_listed_tree *tree = &trees->entries.items[i];
        const struct bw_subvolume *subvolume = bw_subvolume_by_id(naming->check->fs, tree->tree.id);
        const size_t before = location->paths.count;
        if (tree == own || !subvolume || !tree->is_subvolume || !tree->references ||
            (tree->total ^ tree->incomplete) != (own->total ^ own->incomplete) ||
            !has_room(naming, location))
            continue;
        BW_TRY(list_names(naming, location, bw_subvolume_by_id(naming->check->fs, tree->tree.id)));
        finding->more_subvolumes -= location->paths.count > before;
    }
    return NULL;
}

/* The inodes whose names directories are to be searched for; none if the last is less than the
 * first. */
static struct bw_lost_inodes lost_inodes(const struct naming *naming,
                                         const struct bw_finding_location *location)
{
    const struct bw_finding *finding = &location->finding;
    const struct bw_key *end = &location->end_key;
    const bool of_keys = location->touches == BW_TOUCHES_KEYS;
    struct bw_lost_inodes lost = {.subvolume = subvolume_of(naming, location),
                                  .first = of_keys ? finding->key.objectid : finding->inode,
                                  .last = finding->inode,
                                  .number = (size_t)(location - naming->findings)};
    if (of_keys)
        lost.last = end->objectid - (end->type <= BW_INODE_ITEM && !end->offset);
    if (of_keys && lost.first < BW_SUBVOLUME_ROOT_INODE)
        lost.first = BW_SUBVOLUME_ROOT_INODE;
    if (lost.last > BW_LAST_SUBVOLUME)
        lost.last = BW_LAST_SUBVOLUME;
    return lost;
}

static struct bw_error *on_lost_name(void *context, const struct bw_lost_inodes *lost,
                                     uint64_t inode, const char *path, size_t length)
{
    struct naming *naming = context;
    (void)inode;
    return path ? add_path(naming, &naming->findings[lost->number], path, length) : NULL;
}

/* Lists what findings touch that have no path yet. */
static struct bw_error *list_rest(struct naming *naming)
{
    BW_AUTO_FREE struct bw_lost_inodes *lost = calloc(naming->count + 1, sizeof *lost);
    size_t lost_count = 0;
    if (!lost)
        return bw_error_no_memory();
    for (size_t i = 0; i < naming->count; i++) {
        struct bw_finding_location *location = &naming->findings[i];
        const enum bw_touch touches = location->touches;
        if (touches == BW_TOUCHES_NOTHING || is_of_data(location) || location->paths.count ||
            !subvolume_of(naming, location))
            continue;
        if (touches != BW_TOUCHES_KEYS) {
            BW_TRY(list_names(naming, location, subvolume_of(naming, location)));
            BW_TRY(list_alike(naming, location));
        }
        lost[lost_count] = lost_inodes(naming, location);
        lost_count += !location->paths.count && lost[lost_count].first <= lost[lost_count].last;
    }
    return bw_lost_inodes_name(naming->check->fs, &naming->paths, lost, lost_count, on_lost_name,
                               naming);
}

/* Passing findings to the caller. */

static struct bw_error *find_paths(struct bw_check *check, struct bw_finding_location *findings,
                                   size_t count)
{
    struct naming naming = {
        .check = check, .findings = findings, .count = count, .paths.fs = check->fs};
    BW_AUTO_FREE struct bw_finding_location **searched = calloc(count, sizeof *searched);
    BW_AUTO_FREE struct bw_address_range *ranges = calloc(count, sizeof *ranges);
    if (!searched || !ranges)
        return bw_error_no_memory();
    naming.searched = searched;
    naming.ranges = ranges;
    struct bw_error *error = search_owners(&naming);
    if (!error)
        error = list_rest(&naming);
    bw_inode_paths_free(&naming.paths);
    return error;
}

/* The image of a copy, if the device has several images. */
static const char *image_of(const struct bw_check *check, const struct bw_finding *finding)
{
    const unsigned needed = BW_KNOWN_LOGICAL | BW_KNOWN_COPY | BW_KNOWN_DEVICE;
    struct bw_mapping mapping;
    if (!check->fs->alternatives || (finding->known & needed) != needed)
        return NULL;
    BW_AUTO_ERROR struct bw_error *error =
        bw_fs_map(check->fs, finding->logical, 1, finding->copy, &mapping);
    return error ? NULL : bw_fs_alternative(check->fs, mapping.devid, mapping.alternative);
}

static struct bw_error *visit_one_finding(const struct bw_check *check,
                                          struct bw_finding_location *location)
{
    location->finding.image = image_of(check, &location->finding);
    location->finding.paths = location->paths.items;
    location->finding.path_count = location->paths.count;
    return check->options->visit(check->options->context, &location->finding);
}

/* Visits a finding or, if it is about several files, one for each of them. */
static struct bw_error *visit_finding(struct bw_check *check, struct bw_finding_location *location)
{
    const struct bw_finding *finding = &location->finding;
    const size_t more = location->files.count ? location->files.count - 1 : 0;
    struct bw_finding_count *count =
        &check->findings.counts[finding->code - check->findings.counts[0].code];
    if (!location->files.count)
        return visit_one_finding(check, location);
    count->count += more;
    count->repairable += finding->repairable ? more : 0;
    location->files.items[more].finding.more_paths += location->more_files;
    for (size_t i = 0; i <= more; i++)
        BW_TRY(visit_one_finding(check, &location->files.items[i]));
    return NULL;
}

struct bw_error *bw_findings_flush(struct bw_check *check)
{
    struct bw_findings *findings = &check->findings;
    struct bw_error *error = NULL;
    if (findings->waiting.count)
        qsort(findings->waiting.items, findings->waiting.count, sizeof *findings->waiting.items,
              by_location);
    if (check->options->visit && findings->waiting.count)
        error = find_paths(check, findings->waiting.items, findings->waiting.count);
    for (size_t i = 0; !error && check->options->visit && i < findings->waiting.count; i++)
        error = visit_finding(check, &findings->waiting.items[i]);
    for (unsigned code = 0; code < BW_CODES; code++)
        findings->counts[code].hidden += findings->in_pass[code];
    for (size_t i = 0; i < findings->waiting.count; i++)
        findings->counts[findings->waiting.items[i].finding.code - findings->counts[0].code]
            .hidden--;
    clear_findings(findings);
    return error;
}
