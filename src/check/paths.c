/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The paths of what findings touch, in all subvolumes. Data and tree blocks have owners, which are
 * searched for all findings of a pass together (owners/search.h). Of what no block tells, as of an
 * inode without an item, the names are looked up in the subvolume of the finding.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "check/paths.h"
#include "ondisk/items.h"

static const struct bw_finding *finding_of(const struct bw_naming *naming)
{
    return &naming->held->subject.finding;
}

static bool knows(const struct bw_naming *naming, unsigned bits)
{
    return (finding_of(naming)->known & bits) == bits;
}

static const struct bw_subvolume *subvolume_of(const struct bw_namings *namings,
                                               const struct bw_naming *naming)
{
    const struct bw_subvolume *subvolume =
        knows(naming, BW_KNOWN_TREE)
            ? bw_subvolume_by_id(namings->check->fs, finding_of(naming)->tree)
            : NULL;
    return subvolume && !subvolume->deleted ? subvolume : NULL;
}

/* Paths. */

static bool has_room(const struct bw_namings *namings, const struct bw_naming *naming)
{
    const bool each = naming->held->subject.touches == BW_TOUCHES_EACH;
    const size_t most = each ? BW_PATHS_LISTED * BW_PATHS_LISTED : BW_PATHS_LISTED;
    return namings->check->options->all ? namings->listed < BW_PATHS_ALL_LISTED
                                        : finding_of(naming)->path_count < most;
}

struct bw_error *bw_naming_list(struct bw_namings *namings, struct bw_naming *naming,
                                const char *path, size_t length)
{
    struct bw_finding *finding = &naming->held->subject.finding;
    if (!has_room(namings, naming)) {
        finding->more_paths++;
        return NULL;
    }
    char *copy = malloc(length + 1);
    if (!copy || !BW_ARRAY_RESERVE(naming->held->paths, finding->path_count, naming->capacity)) {
        free(copy);
        return bw_error_no_memory();
    }
    memcpy(copy, path, length);
    copy[length] = '\0';
    naming->held->paths[finding->path_count++] = (struct bw_bytes){copy, length};
    finding->paths = naming->held->paths;
    namings->listed++;
    return NULL;
}

/* Owners. */

/* Takes an owner of what a finding concerns; without a path, its names do not matter any more. */
static struct bw_error *take_one(struct bw_namings *namings, struct bw_naming *naming,
                                 const struct bw_owner *owner)
{
    struct bw_finding *finding = &naming->held->subject.finding;
    if (owner->path.data && has_room(namings, naming))
        naming->listed = owner->tree;
    if (naming->listed != owner->tree && naming->unlisted != owner->tree) {
        naming->unlisted = owner->tree;
        finding->more_subvolumes++;
    }
    if (owner->path.data)
        return bw_naming_list(namings, naming, owner->path.data, owner->path.length);
    finding->more_paths += owner->inode && !has_room(namings, naming);
    return NULL;
}

/* Whether an owner of a tree block is touched by a finding of that block. */
static bool concerns(const struct bw_naming *naming, const struct bw_owner *owner)
{
    return finding_of(naming)->logical == owner->extent &&
           (naming->held->subject.touches == BW_TOUCHES_KEYS || !owner->inode ||
            owner->inode == finding_of(naming)->inode);
}

/* The first finding of a tree block. */
static size_t first_of_block(const struct bw_namings *namings, uint64_t bytenr)
{
    return BW_FIRST_INDEX(i, namings->asking_count,
                          finding_of(namings->asking[i])->logical >= bytenr);
}

static bool is_at(const struct bw_namings *namings, size_t i, uint64_t bytenr)
{
    return i < namings->asking_count && finding_of(namings->asking[i])->logical == bytenr;
}

static bool is_of_data(const struct bw_naming *naming)
{
    const enum bw_touch touches = naming->held->subject.touches;
    return touches == BW_TOUCHES_DATA || touches == BW_TOUCHES_EACH;
}

static struct bw_error *take_data(struct bw_namings *namings, struct bw_naming *naming,
                                  const struct bw_owner *owner)
{
    if (naming->held->subject.touches == BW_TOUCHES_EACH)
        return bw_naming_take_part(namings, naming, owner);
    return is_of_data(naming) ? take_one(namings, naming, owner) : NULL;
}

static struct bw_error *take_owner(void *context, const struct bw_owner *owner)
{
    struct bw_namings *namings = context;
    if (!owner->subvolume || owner->subvolume->deleted)
        return NULL;
    if (owner->kind == BW_OWNER_DATA)
        return take_data(namings, namings->asking[owner->range], owner);
    for (size_t i = first_of_block(namings, owner->extent); is_at(namings, i, owner->extent); i++)
        if (concerns(namings->asking[i], owner))
            BW_TRY(take_one(namings, namings->asking[i], owner));
    return NULL;
}

static bool wants(void *context, const struct bw_owner *owner)
{
    const struct bw_namings *namings = context;
    if (owner->kind == BW_OWNER_DATA)
        return has_room(namings, namings->asking[owner->range]);
    for (size_t i = first_of_block(namings, owner->extent); is_at(namings, i, owner->extent); i++)
        if (concerns(namings->asking[i], owner) && has_room(namings, namings->asking[i]))
            return true;
    return false;
}

static bool goes_on(void *context)
{
    const struct bw_namings *namings = context;
    return bw_check_goes_on(namings->check, 0);
}

static int by_address(const void *first, const void *second)
{
    const struct bw_naming *a = *(struct bw_naming *const *)first,
                           *b = *(struct bw_naming *const *)second;
    if (finding_of(a)->logical != finding_of(b)->logical)
        return finding_of(a)->logical < finding_of(b)->logical ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Chooses the findings whose owners are to be searched: of data, and of tree blocks. */
static bool asks(const struct bw_namings *namings, const struct bw_naming *naming)
{
    const enum bw_touch touches = naming->held->subject.touches;
    const struct bw_finding *finding = finding_of(naming);
    if (!knows(naming, BW_KNOWN_LOGICAL))
        return false;
    if (is_of_data(naming))
        return finding->length <= UINT64_MAX - finding->logical;
    return (touches == BW_TOUCHES_KEYS ||
            (touches == BW_TOUCHES_INODE && knows(naming, BW_KNOWN_KEY))) &&
           subvolume_of(namings, naming);
}

static struct bw_error *search_owners(struct bw_namings *namings)
{
    static const struct bw_owner_hooks hooks = {wants, goes_on};
    for (size_t i = 0; i < namings->count; i++)
        if (asks(namings, &namings->items[i]))
            namings->asking[namings->asking_count++] = &namings->items[i];
    if (!namings->asking_count)
        return NULL;
    qsort(namings->asking, namings->asking_count, sizeof *namings->asking, by_address);
    for (size_t i = 0; i < namings->asking_count; i++) {
        const struct bw_finding *finding = finding_of(namings->asking[i]);
        const bool of_data = is_of_data(namings->asking[i]);
        namings->ranges[i] = (struct bw_address_range){
            finding->logical, of_data && finding->length ? finding->length : 1};
    }
    const struct bw_owner_options options = {.struct_size = sizeof options,
                                             .ranges = namings->ranges,
                                             .count = namings->asking_count,
                                             .take = take_owner,
                                             .context = namings};
    return bw_owners_search(namings->check->fs, &options, &hooks);
}

/* What no block tells. */

struct listing {
    struct bw_namings *namings;
    struct bw_naming *naming;
    const struct bw_subvolume *subvolume;
};

static struct bw_error *take_path(void *context, const char *path, size_t length)
{
    const struct listing *listing = context;
    return bw_naming_list(listing->namings, listing->naming, path, length);
}

static struct bw_error *take_named_item(void *context, const struct bw_item *item)
{
    const struct listing *listing = context;
    struct bw_namings *namings = listing->namings;
    const struct bw_subvolume *subvolume = listing->subvolume;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    struct bw_inode_ref ref;
    if (item->key.type == BW_INODE_REF)
        while (bw_inode_ref_next(&cursor, &item->key, &ref))
            BW_TRY(bw_inode_paths_join(&namings->paths, subvolume, ref.parent, ref.name,
                                       ref.name_length, take_path, context));
    else
        while (bw_dir_entry_next(&cursor, &entry))
            if (entry.location.objectid == finding_of(listing->naming)->inode)
                BW_TRY(bw_inode_paths_join(&namings->paths, subvolume, item->key.objectid,
                                           entry.name, entry.name_length, take_path, context));
    return NULL;
}

/* Lists the name that an item has in a subvolume; or else all names of the inode there. */
static struct bw_error *list_names(struct bw_namings *namings, struct bw_naming *naming,
                                   const struct bw_subvolume *subvolume)
{
    const struct bw_finding *finding = finding_of(naming);
    const struct bw_key key = naming->held->subject.end_key;
    const size_t before = finding->path_count;
    struct listing listing = {namings, naming, subvolume};
    if (naming->held->subject.touches == BW_TOUCHES_NAME)
        BW_TRY(
            bw_fs_items(namings->check->fs, &subvolume->tree, key, key, take_named_item, &listing));
    return finding->path_count > before ? NULL
                                        : bw_inode_paths_list(&namings->paths, subvolume,
                                                              finding->inode, take_path, &listing);
}

/* Lists names in other subvolumes whose inodes add up to the same: they share what is wrong. */
static struct bw_error *list_alike(struct bw_namings *namings, struct bw_naming *naming)
{
    struct bw_finding *finding = &naming->held->subject.finding;
    const struct bw_tree_list *trees = &namings->check->trees;
    const struct bw_listed_tree *own = bw_tree_list_find(trees, finding->tree);
    for (size_t i = 0; own && i < trees->count && finding->more_subvolumes; i++) {
        const struct bw_listed_tree *tree = &trees->entries[i];
        const struct bw_subvolume *subvolume =
            bw_subvolume_by_id(namings->check->fs, tree->tree.id);
        const size_t before = finding->path_count;
        if (tree == own || !subvolume || !tree->is_subvolume || !tree->references ||
            (tree->total ^ tree->incomplete) != (own->total ^ own->incomplete) ||
            !has_room(namings, naming))
            continue;
        BW_TRY(list_names(namings, naming, bw_subvolume_by_id(namings->check->fs, tree->tree.id)));
        finding->more_subvolumes -= finding->path_count > before;
    }
    return NULL;
}

/* The inodes whose names directories are to be searched for; none if the last is less than the
 * first. */
static struct bw_lost_inodes lost_inodes(const struct bw_namings *namings,
                                         const struct bw_naming *naming)
{
    const struct bw_finding *finding = finding_of(naming);
    const struct bw_key *end = &naming->held->subject.end_key;
    const bool of_keys = naming->held->subject.touches == BW_TOUCHES_KEYS;
    struct bw_lost_inodes lost = {.subvolume = subvolume_of(namings, naming),
                                  .first = of_keys ? finding->key.objectid : finding->inode,
                                  .last = finding->inode,
                                  .number = (size_t)(naming - namings->items)};
    if (of_keys)
        lost.last = end->objectid - (end->type <= BW_INODE_ITEM && !end->offset);
    if (of_keys && lost.first < BW_SUBVOLUME_ROOT_INODE)
        lost.first = BW_SUBVOLUME_ROOT_INODE;
    if (lost.last > BW_LAST_SUBVOLUME)
        lost.last = BW_LAST_SUBVOLUME;
    return lost;
}

static struct bw_error *take_lost_name(void *context, const struct bw_lost_inodes *lost,
                                       uint64_t inode, const char *path, size_t length)
{
    struct bw_namings *namings = context;
    (void)inode;
    return path ? bw_naming_list(namings, &namings->items[lost->number], path, length) : NULL;
}

/* Lists what findings touch that have no path yet. */
static struct bw_error *list_rest(struct bw_namings *namings)
{
    BW_AUTO_FREE struct bw_lost_inodes *lost = calloc(namings->count + 1, sizeof *lost);
    size_t lost_count = 0;
    if (!lost)
        return bw_error_no_memory();
    for (size_t i = 0; i < namings->count; i++) {
        struct bw_naming *naming = &namings->items[i];
        const enum bw_touch touches = naming->held->subject.touches;
        if (touches == BW_TOUCHES_NOTHING || is_of_data(naming) || finding_of(naming)->path_count ||
            !subvolume_of(namings, naming))
            continue;
        if (touches != BW_TOUCHES_KEYS) {
            BW_TRY(list_names(namings, naming, subvolume_of(namings, naming)));
            BW_TRY(list_alike(namings, naming));
        }
        lost[lost_count] = lost_inodes(namings, naming);
        lost_count +=
            !finding_of(naming)->path_count && lost[lost_count].first <= lost[lost_count].last;
    }
    return bw_lost_inodes_name(namings->check->fs, &namings->paths, lost, lost_count,
                               take_lost_name, namings);
}

/* The frame. */

static struct bw_error *name_all(struct bw_namings *namings, struct bw_held_finding *findings)
{
    BW_AUTO_FREE struct bw_naming *items = calloc(namings->count, sizeof *items);
    BW_AUTO_FREE struct bw_naming **asking = calloc(namings->count, sizeof *asking);
    BW_AUTO_FREE struct bw_address_range *ranges = calloc(namings->count, sizeof *ranges);
    if (!items || !asking || !ranges)
        return bw_error_no_memory();
    for (size_t i = 0; i < namings->count; i++)
        items[i].held = &findings[i];
    namings->items = items;
    namings->asking = asking;
    namings->ranges = ranges;
    struct bw_error *error = search_owners(namings);
    for (size_t i = 0; i < namings->count; i++) {
        error = bw_error_first(error, bw_naming_order_parts(&items[i]));
        free(items[i].part_numbers);
    }
    return error ? error : list_rest(namings);
}

struct bw_error *bw_check_name(struct bw_check *check, struct bw_held_finding *findings,
                               size_t count)
{
    struct bw_namings namings = {.check = check, .count = count, .paths.fs = check->fs};
    struct bw_error *error = name_all(&namings, findings);
    bw_inode_paths_free(&namings.paths);
    return error;
}
