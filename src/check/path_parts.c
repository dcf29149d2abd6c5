/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Findings that are handed out once for each file: damaged data. A part is what one file shows of
 * them in one piece. What other subvolumes show of the same file is no part of its own, but gives
 * it further paths.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "check/paths.h"

/* The part that another subvolume has of the same file; or else the number of parts. */
static size_t find_elsewhere(const struct bw_held_finding *held, const struct bw_owner *owner)
{
    size_t i = 0;
    while (i < held->part_count &&
           /* Parts that are counted are there.
            * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
           (held->parts[i].inode != owner->inode || held->parts[i].tree == owner->tree ||
            owner->offset - held->parts[i].file_offset >= held->parts[i].file_length))
        i++;
    return i;
}

/* Whether an owner goes on from the part, and is stored behind it or in the same compressed
 * extent. */
static bool goes_on(const struct bw_file_part *part, const struct bw_owner *owner)
{
    return part->inode == owner->inode && part->tree == owner->tree &&
           part->file_offset + part->file_length == owner->offset &&
           (part->logical + part->length == owner->logical ||
            (part->logical == owner->logical && part->length == owner->length));
}

/* Whether it is the last owner again, under another path. */
static bool is_same(const struct bw_owner *last, const struct bw_owner *owner)
{
    return last->tree == owner->tree && last->inode == owner->inode &&
           last->offset == owner->offset && last->logical == owner->logical;
}

static struct bw_error *begin_part(struct bw_naming *naming, const struct bw_owner *owner)
{
    struct bw_held_finding *held = naming->held;
    if (!BW_ARRAY_RESERVE(held->parts, held->part_count, naming->part_capacity))
        return bw_error_no_memory();
    naming->present = held->part_count++;
    held->parts[naming->present] = (struct bw_file_part){.tree = owner->tree,
                                                         .inode = owner->inode,
                                                         .file_offset = owner->offset,
                                                         .file_length = owner->file_length,
                                                         .logical = owner->logical,
                                                         .length = owner->length};
    return NULL;
}

static struct bw_error *list_in_part(struct bw_namings *namings, struct bw_naming *naming,
                                     const struct bw_owner *owner)
{
    struct bw_file_part *part = &naming->held->parts[naming->present];
    const size_t count = naming->held->subject.finding.path_count;
    const bool listed =
        owner->path.data && (namings->check->options->all || part->path_count < BW_PATHS_LISTED);
    if (!listed) {
        part->more_paths += owner->path.data != NULL;
        if (part->tree != owner->tree && part->listed_tree != owner->tree &&
            part->counted_tree != owner->tree)
            part->more_subvolumes++;
        part->counted_tree = owner->tree;
        return NULL;
    }
    if (!BW_ARRAY_RESERVE(naming->part_numbers, count, naming->number_capacity))
        return bw_error_no_memory();
    naming->part_numbers[count] = (uint32_t)naming->present;
    BW_TRY(bw_naming_list(namings, naming, owner->path.data, owner->path.length));
    const bool added = naming->held->subject.finding.path_count > count;
    part->path_count += added;
    part->more_paths += !added;
    part->listed_tree = owner->tree;
    return NULL;
}

struct bw_error *bw_naming_take_part(struct bw_namings *namings, struct bw_naming *naming,
                                     const struct bw_owner *owner)
{
    struct bw_held_finding *held = naming->held;
    const bool any = held->part_count;
    if (any && is_same(&naming->last, owner))
        return list_in_part(namings, naming, owner);
    struct bw_file_part *last = any ? &held->parts[naming->present] : NULL;
    if (last && goes_on(last, owner)) {
        last->file_length += owner->file_length;
        last->length = owner->logical + owner->length - last->logical;
        return NULL;
    }
    const size_t known = find_elsewhere(held, owner);
    if (known < held->part_count && any && known == naming->present &&
        naming->last.tree == owner->tree)
        return NULL; /* the part goes on */
    if (known == held->part_count && known >= BW_PATHS_LISTED && !namings->check->options->all) {
        naming->more++;
        return NULL;
    }
    naming->present = known;
    if (known == held->part_count)
        BW_TRY(begin_part(naming, owner));
    naming->last = *owner;
    return list_in_part(namings, naming, owner);
}

struct bw_error *bw_naming_order_parts(struct bw_naming *naming)
{
    struct bw_held_finding *held = naming->held;
    const size_t count = held->subject.finding.path_count;
    size_t next = 0;
    if (!held->part_count)
        return NULL;
    struct bw_bytes *paths = calloc(count + 1, sizeof *paths);
    if (!paths)
        return bw_error_no_memory();
    for (size_t part = 0; part < held->part_count; part++) {
        held->parts[part].first_path = next;
        next += held->parts[part].path_count;
        held->parts[part].path_count = 0;
    }
    for (size_t i = 0; i < count; i++) {
        struct bw_file_part *part = &held->parts[naming->part_numbers[i]];
        paths[part->first_path + part->path_count++] = held->paths[i];
    }
    held->parts[held->part_count - 1].more_paths += naming->more;
    free(held->paths);
    held->paths = paths;
    held->subject.finding.paths = paths;
    return NULL;
}
