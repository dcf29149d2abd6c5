/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An incremental stream: the differences between the parent, which the receiver has, and the sent
 * subvolume. A file is the same in both if its inode number and the generation of its inode are
 * equal, and if it can be changed into the other one: no command changes the type, the target of a
 * symbolic link, or a device number. Two snapshots can each have made another file with the same
 * number in the same transaction. The differences are collected first. The stream then has stages;
 * each one ends in a state in which the paths used by the next are known:
 *
 * - Park: inodes without any of their old names move to temporary names in the top directory; other
 *   lost names are removed. After this, no moved directory contains another one, and all new names
 *   are free.
 * - Remove deleted directories, the deepest first. They are empty after the first stage.
 * - Place: parked inodes get their new names. New inodes are created under temporary names and get
 *   theirs, too. Directories come first, from the top down.
 * - Contents: attributes and contents, under the final paths.
 * - Times of directories, whose entries no longer change.
 *
 * If parts of the trees are lost, some inodes stay as they are at the receiver. A directory is not
 * removed then if one of its entries may have stayed, and a name is not used if it may not be free,
 * because receivers stop at the first command that fails.
 *
 * The kernel does all this in one pass. It needs less memory, but has to compute the path of every
 * inode at every point of the stream. The results are the same.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/search.h"
#include "base/vector.h"
#include "data/file_extents.h"
#include "diff/diff.h"
#include "stream/sender.h"

enum kind {
    SURVIVES,
    DELETED,
    NEW,
    FAILED, /* it could not be moved or removed, or may not be there: it gets no more commands */
};

/* An inode that differs. A number that has gone to another file has two. */
struct change {
    uint64_t number, generation;
    size_t touched;                   /* its number among the differing inodes */
    size_t names, lost, gained, kept; /* its names begin here, in this order; of the kept ones, the
                                       * first alone unless it may have to be removed again */
    unsigned depth;
    uint8_t kind;
    bool is_directory, is_parked;
};

BW_VECTOR(changes, struct change);

struct incremental {
    struct bw_sender *sender;
    struct bw_diff diff;
    struct changes changes;          /* by number; DELETED before NEW */
    struct bw_key_map before, after; /* number of an inode to its change in that tree */
    struct bw_diff_names names;      /* parent 0: gained, but not given */
    size_t *removed, removed_count;  /* deleted directories, the deepest first */
    size_t *placed, placed_count; /* what gains names: directories from the top down, then files */
    bool has_parked, has_failed;
    struct bw_buffer path, other;
    struct bw_xattr_reader *xattrs[2];
    struct bw_extent_cursor cursor;
    struct bw_diff_ranges ranges;
};

/* Collecting. */

/* Adds the entries of directories whose inode numbers were reused. Even if the items of an entry
 * are equal in both trees, it is in another directory. */
static struct bw_error *add_moved(struct bw_diff *diff)
{
    struct bw_diff_tree *tree = &diff->trees[1];
    struct bw_touched_list *list = &diff->touched;
    const struct bw_touched_inodes *own = &list->inodes;
    BW_SCOPED(bw_numbers) struct bw_numbers numbers = {0};
    for (size_t i = 0; i < own->count; i++) {
        const struct bw_touched *touched = &own->items[i];
        struct bw_diff_items items;
        struct bw_error *error = NULL;
        if (!(touched->flags & BW_TOUCHED_REPLACED))
            continue;
        bw_diff_items_begin(&items, tree, &tree->directories,
                            (struct bw_key){touched->number, BW_DIR_INDEX, 0},
                            (struct bw_key){touched->number, BW_DIR_INDEX, UINT64_MAX});
        for (const struct bw_item *item; !error && (item = bw_diff_items_next(&items));) {
            struct bw_cursor cursor = bw_cursor_of(item);
            struct bw_dir_entry entry;
            if (bw_dir_entry_next(&cursor, &entry) && entry.location.type == BW_INODE_ITEM)
                error = bw_numbers_push(&numbers, entry.location.objectid);
        }
        BW_TRY(bw_error_first(error, bw_diff_items_end(&items, &tree->lost)));
    }
    if (!numbers.count)
        return NULL;
    bw_numbers_sort(&numbers, bw_compare_first);

    /* Both lists are sorted: they are merged. */
    struct bw_touched_inodes merged = {0};
    BW_TRY(bw_touched_inodes_reserve(&merged, own->count + numbers.count));
    for (size_t i = 0, j = 0; i < own->count || j < numbers.count;) {
        const bool is_ours =
            i < own->count && (j == numbers.count || own->items[i].number <= numbers.items[j]);
        const size_t range = i < own->count ? own->items[i].range : list->ranges.count;
        const uint64_t number = is_ours ? own->items[i].number : numbers.items[j];
        if (!merged.count || merged.items[merged.count - 1].number != number)
            merged.items[merged.count++] =
                is_ours ? own->items[i] : (struct bw_touched){number, range, 0};
        i += is_ours;
        j += !is_ours;
    }
    bw_touched_inodes_free(&list->inodes);
    list->inodes = merged;
    return NULL;
}

/* Which names of an inode. */
enum { LOST = -1, KEPT = 0, GAINED = 1 };

/* Which the next name is: at `i` in the parent, at `j` in the sent subvolume, or at both. */
static int next_name(const struct incremental *order, const struct bw_diff_names *before, size_t i,
                     const struct bw_diff_names *after, size_t j)
{
    if (i == before->list.count)
        return GAINED;
    if (j == after->list.count)
        return LOST;
    const int which = bw_diff_names_compare(&order->diff.touched, before, i, after, j);
    return (which > 0) - (which < 0);
}

/* Adds the names that only the parent has, both have, or only the sent subvolume has; at most
 * `limit`. */
static struct bw_error *add_names(struct incremental *order, const struct bw_diff_names *before,
                                  const struct bw_diff_names *after, int wanted, size_t limit,
                                  size_t *count)
{
    const struct bw_diff_names *from = wanted == GAINED ? after : before;
    *count = 0;
    for (size_t i = 0, j = 0;
         *count < limit && (i < before->list.count || j < after->list.count);) {
        const int which = next_name(order, before, i, after, j);
        if (which == wanted) {
            const struct bw_diff_name *name = &from->list.items[wanted == GAINED ? j : i];
            BW_TRY(bw_diff_names_add(&order->names, name->parent, from->bytes.data + name->bytes,
                                     name->length));
            ++*count;
        }
        i += which <= 0;
        j += which >= 0;
    }
    return NULL;
}

/* Whether the commands for a file may end with its removal, under all its names. */
static bool may_be_undone(const struct incremental *order, const struct bw_inode *inode)
{
    return order->sender->options.damage == BW_SEND_SKIP && S_ISREG(inode->mode);
}

static struct bw_error *add_change(struct incremental *order, enum kind kind,
                                   const struct bw_diff_file *file,
                                   const struct bw_diff_names *before,
                                   const struct bw_diff_names *after, size_t touched)
{
    struct change change = {
        .number = file->number,
        .generation = file->inode.generation,
        .touched = touched,
        .names = order->names.list.count,
        .kind = (uint8_t)kind,
        .is_directory = S_ISDIR(file->inode.mode),
    };
    BW_TRY(add_names(order, before, after, LOST, SIZE_MAX, &change.lost));
    BW_TRY(add_names(order, before, after, GAINED, SIZE_MAX, &change.gained));
    BW_TRY(add_names(order, before, after, KEPT, may_be_undone(order, &file->inode) ? SIZE_MAX : 1,
                     &change.kept));
    if (changes_reserve(&order->changes, 1) ||
        (kind != NEW && kind != FAILED &&
         bw_key_map_put(&order->before, change.number, (uint32_t)order->changes.count)) ||
        (kind != DELETED &&
         bw_key_map_put(&order->after, change.number, (uint32_t)order->changes.count)))
        return bw_error_no_memory();
    order->changes.items[order->changes.count++] = change;
    return NULL;
}

/* Whether the parent's file can become the file of the sent subvolume. `contents`: the targets of
 * symbolic links may differ. */
static struct bw_error *can_survive(const struct bw_diff_file files[2], bool contents,
                                    bool *survives)
{
    const struct bw_inode *old = &files[0].inode, *inode = &files[1].inode;
    *survives = files[0].exists && files[1].exists;
    if (!*survives || files[0].number == BW_SUBVOLUME_ROOT_INODE)
        return NULL;
    *survives = old->generation == inode->generation && !((old->mode ^ inode->mode) & S_IFMT);
    if (S_ISCHR(inode->mode) || S_ISBLK(inode->mode))
        *survives &= old->device == inode->device;
    if (!*survives || !S_ISLNK(inode->mode) || !contents)
        return NULL;
    BW_AUTO_BUFFER struct bw_buffer before = {0};
    BW_AUTO_BUFFER struct bw_buffer after = {0};
    struct bw_buffer *const targets[2] = {&before, &after};
    for (unsigned side = 0; side < 2; side++) {
        const struct bw_diff_tree *tree = files[side].tree;
        struct bw_error *error =
            bw_symlink_read(tree->fs, &tree->subvolume->tree, files[side].number, targets[side]);
        *survives &= !error;
        /* A new link is made, and if its target is lost, that is reported. */
        BW_TRY(bw_error_tolerate(error));
    }
    *survives &= before.length == after.length &&
                 (!after.length || memcmp(before.data, after.data, after.length) == 0);
    return NULL;
}

/* Whether an inode has one of `names` in a tree; `unknown`: the answer if that cannot be read. A
 * directory whose number has gone to another one is not the same. */
static struct bw_error *has_name(const struct incremental *order, const struct bw_send_root *root,
                                 uint64_t number, const struct bw_diff_names *names, size_t at,
                                 bool unknown, bool *has)
{
    const struct bw_diff_name *name = &names->list.items[at];
    const struct bw_touched *above = bw_touched_get(&order->diff.touched, name->parent);
    struct bw_place place;
    *has = false;
    if (above && above->flags & BW_TOUCHED_REPLACED)
        return NULL;
    const struct bw_place directory = {.subvolume = root->subvolume, .inode = name->parent};
    BW_AUTO_ERROR struct bw_error *error =
        bw_lookup_name(root->fs, &directory, names->bytes.data + name->bytes, name->length, &place);
    if (error && error->code == BW_ERROR_NO_MEMORY)
        return BW_TAKE(error);
    if (error)
        *has = unknown && error->code != BW_ERROR_NOT_FOUND;
    else
        *has = place.subvolume == root->subvolume && place.inode == number;
    return NULL;
}

/* Whether a directory has an entry for an inode that knows this name only in the other tree. */
static struct bw_error *has_hidden_name(const struct incremental *order, uint64_t number,
                                        const struct bw_diff_names *before,
                                        const struct bw_diff_names *after, bool *hidden)
{
    const struct bw_sender *sender = order->sender;
    *hidden = false;
    for (size_t i = 0, j = 0; !*hidden && (i < before->list.count || j < after->list.count);) {
        const int which = next_name(order, before, i, after, j);
        if (which == LOST)
            BW_TRY(has_name(order, sender->sent, number, before, i, true, hidden));
        else if (which == GAINED)
            BW_TRY(has_name(order, sender->parent, number, after, j, true, hidden));
        i += which <= 0;
        j += which >= 0;
    }
    return NULL;
}

/* Paths. */

static struct bw_error *append_name(const struct incremental *order, size_t number,
                                    struct bw_buffer *path)
{
    const struct bw_diff_name *name = &order->names.list.items[number];
    return bw_send_path_add(path, order->names.bytes.data + name->bytes, name->length);
}

/* The path of a directory of the parent while its inodes are being parked. */
static struct bw_error *present_path(struct incremental *order, uint64_t directory, unsigned depth,
                                     struct bw_buffer *path)
{
    struct bw_sender *sender = order->sender;
    struct bw_send_root *root = sender->parent;
    if (!depth)
        path->length = 0;
    if (directory == BW_SUBVOLUME_ROOT_INODE)
        return NULL;
    if (depth > BW_SEND_PATH_MAX / 2)
        return bw_error_create(BW_ERROR_CORRUPT, "directory %" PRIu64 " is in itself", directory);
    const uint32_t change = bw_key_map_get(&order->before, directory, UINT32_MAX);
    if (change != UINT32_MAX && order->changes.items[change].is_parked)
        return bw_send_temporary_name(sender, directory, order->changes.items[change].generation,
                                      path);
    const struct bw_send_directory_name *part;
    BW_TRY(bw_send_part_of(root, directory, &part));
    BW_TRY(present_path(order, part->parent, depth + 1, path));
    BW_TRY(bw_send_part_of(root, directory, &part));
    return bw_send_path_add(path, root->names.data + part->name, part->name_length);
}

/* Compares a name with an entry of a directory, as names of an inode are sorted. */
static int compare_with_entry(const struct incremental *order, size_t at, uint64_t directory,
                              const struct bw_dir_entry *entry)
{
    const struct bw_diff_name *name = &order->names.list.items[at];
    if (name->parent != directory)
        return name->parent < directory ? -1 : 1;
    return bw_compare_bytes(order->names.bytes.data + name->bytes, name->length, entry->name,
                            entry->name_length);
}

/* Whether parking takes a name from an inode. */
static bool loses_name(const struct incremental *order, const struct change *change,
                       uint64_t directory, const struct bw_dir_entry *entry)
{
    const size_t first = change->names;
    const size_t at = BW_FIRST_INDEX(i, change->lost,
                                     compare_with_entry(order, first + i, directory, entry) >= 0);
    return at < change->lost && !compare_with_entry(order, first + at, directory, entry);
}

/* Whether a directory of the parent still has an entry after parking: with this name, or with any
 * if it is NULL. That is so only if parts of the subvolumes are lost. */
static struct bw_error *may_remain(struct incremental *order, uint64_t directory,
                                   const struct bw_diff_name *name, bool *remains)
{
    struct bw_diff_tree *tree = &order->diff.trees[0];
    struct bw_diff_items items;
    bool lost = false;
    *remains = false;
    if (!order->has_failed && !tree->lost && !order->diff.trees[1].lost)
        return NULL;
    const char *bytes = name ? order->names.bytes.data + name->bytes : NULL;
    struct bw_key first = {directory, BW_DIR_INDEX, 0},
                  last = {directory, BW_DIR_INDEX, UINT64_MAX};
    if (name)
        first = last = (struct bw_key){directory, BW_DIR_ITEM, bw_name_hash(bytes, name->length)};
    bw_diff_items_begin(&items, tree, &tree->directories, first, last);
    for (const struct bw_item *item; (item = bw_diff_items_next(&items));) {
        struct bw_cursor cursor = bw_cursor_of(item);
        struct bw_dir_entry entry;
        while (bw_dir_entry_next(&cursor, &entry)) {
            const uint32_t at = bw_key_map_get(&order->before, entry.location.objectid, UINT32_MAX);
            const struct change *change = at < UINT32_MAX ? &order->changes.items[at] : NULL;
            const bool is_same = !name || (entry.name_length == name->length &&
                                           memcmp(entry.name, bytes, name->length) == 0);
            if (is_same && entry.location.type == BW_INODE_ITEM)
                *remains |= !change || change->kind == FAILED ||
                            !loses_name(order, change, directory, &entry);
        }
    }
    BW_TRY(bw_diff_items_end(&items, &lost));
    *remains |= lost;
    return NULL;
}

/* The final path of an inode. It cannot be used if one on the way could not be placed. */
static struct bw_error *final_path(struct incremental *order, uint64_t number,
                                   struct bw_buffer *path)
{
    struct bw_sender *sender = order->sender;
    BW_TRY(bw_send_path(sender, sender->sent, number, UINT64_MAX, path));
    while (order->has_failed && number != BW_SUBVOLUME_ROOT_INODE) {
        const struct bw_send_directory_name *part;
        const uint32_t change = bw_key_map_get(&order->after, number, UINT32_MAX);
        if (change != UINT32_MAX && order->changes.items[change].kind == FAILED)
            return bw_error_create(BW_ERROR_CORRUPT, "inode %" PRIu64 " may not be there", number);
        BW_TRY(bw_send_part_of(sender->sent, number, &part));
        number = part->parent;
    }
    return NULL;
}

/* The final path of a name that an inode has kept or gained. */
static struct bw_error *final_path_of_name(struct incremental *order, const struct change *change,
                                           size_t number, struct bw_buffer *path)
{
    const struct bw_diff_name *name = &order->names.list.items[number];
    const uint32_t above = bw_key_map_get(&order->after, name->parent, UINT32_MAX);
    const bool is_gained = number < change->names + change->lost + change->gained;
    bool remains = false;
    if (is_gained && (above == UINT32_MAX || order->changes.items[above].kind != NEW))
        BW_TRY(may_remain(order, name->parent, name, &remains));
    if (remains)
        return bw_error_create(BW_ERROR_CORRUPT,
                               "a name in directory %" PRIu64 " is omitted: it may not be free",
                               name->parent);
    BW_TRY(final_path(order, name->parent, path));
    return append_name(order, number, path);
}

static unsigned depth_of(const struct bw_buffer *path)
{
    unsigned depth = 0;
    for (size_t i = 0; i < path->length; i++)
        depth += path->data[i] == '/';
    return depth;
}

/* A step of a stage may fail alone. */
static struct bw_error *end_step(struct incremental *order, struct bw_error *error)
{
    if (error)
        BW_TRY(bw_send_report_lost(order->sender, error));
    return bw_send_cut(order->sender);
}

/* Like end_step(). If the step failed, the inode gets no further commands. */
static struct bw_error *end_change(struct incremental *order, struct change *change,
                                   struct bw_error *error)
{
    if (error) {
        change->kind = FAILED;
        order->has_failed = true;
    }
    return end_step(order, error);
}

/* Parking. */

/* Takes the lost names from an inode. If it keeps none, the first one becomes a temporary name. */
static struct bw_error *park_names(struct incremental *order, size_t at)
{
    struct bw_sender *sender = order->sender;
    struct change *change = &order->changes.items[at];
    if (change->kind == DELETED && change->is_directory)
        return NULL;
    for (size_t i = change->names; i < change->names + change->lost; i++) {
        BW_TRY(present_path(order, order->names.list.items[i].parent, 0, &order->path));
        BW_TRY(append_name(order, i, &order->path));
        if (change->kind == DELETED || change->kept || i != change->names) {
            bw_send_command_at(sender, BW_COMMAND_UNLINK, &order->path);
            continue;
        }
        order->other.length = 0;
        BW_TRY(bw_send_temporary_name(sender, change->number, change->generation, &order->other));
        bw_send_command_to(sender, BW_COMMAND_RENAME, &order->path, BW_ATTRIBUTE_PATH_TO,
                           &order->other);
        change->is_parked = order->has_parked = true;
    }
    return NULL;
}

/* The order of directories, of those that are removed and those that gain names. */

static int by_depth(const void *a, const void *b, void *context)
{
    const struct change *changes = context;
    const struct change *left = &changes[*(const size_t *)a], *right = &changes[*(const size_t *)b];
    return BW_COMPARE_ALL(((uint64_t[]){!left->is_directory, left->depth, left->number}),
                          ((uint64_t[]){!right->is_directory, right->depth, right->number}));
}

/* Placing. */

/* Gives an inode its gained names. The first one, unless it has kept a name, replaces the temporary
 * name. A new inode is made under a temporary name, because it might inherit attributes in its
 * directory; one that cannot be made gets no further commands. */
static struct bw_error *place_inode(struct incremental *order, size_t number)
{
    struct bw_sender *sender = order->sender;
    struct change *change = &order->changes.items[number];
    const size_t first = change->names + change->lost, end = first + change->gained;
    const bool is_kept = change->kept;
    struct bw_error *error = final_path_of_name(order, change, is_kept ? end : first, &order->path);
    if (!error && !is_kept) {
        order->other.length = 0;
        error = bw_send_temporary_name(sender, change->number, change->generation, &order->other);
    }
    if (!error && !is_kept && change->kind == NEW) {
        struct bw_diff_file file;
        error = bw_diff_file_read(&order->diff.trees[1], change->number, &file);
        order->has_parked |= !error;
        if (!error)
            error = bw_send_make(sender, &order->other, change->number, &file.inode);
    }
    if (error)
        return end_change(order, change, error);
    if (!is_kept) {
        bw_send_command_to(sender, BW_COMMAND_RENAME, &order->other, BW_ATTRIBUTE_PATH_TO,
                           &order->path);
        change->is_parked = false;
    }
    for (size_t i = is_kept ? first : first + 1; i < end; i++) {
        error = final_path_of_name(order, change, i, &order->other);
        if (!error) {
            bw_send_command_to(sender, BW_COMMAND_LINK, &order->other, BW_ATTRIBUTE_PATH_LINK,
                               &order->path);
            continue;
        }
        order->names.list.items[i].parent = 0;
        BW_TRY(bw_send_report_lost(sender, error));
    }
    return NULL;
}

/* Attributes. */

static const struct bw_xattr *find_xattr(const struct bw_xattr *list, size_t count,
                                         const struct bw_xattr *wanted)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].name_length == wanted->name_length &&
            memcmp(list[i].name, wanted->name, wanted->name_length) == 0)
            return &list[i];
    return NULL;
}

static void remove_xattr(struct bw_sender *sender, const struct bw_xattr *xattr)
{
    size_t at = bw_send_command(sender, BW_COMMAND_REMOVE_XATTR, &sender->current.path);
    bw_attribute_add(sender->commands, BW_ATTRIBUTE_XATTR_NAME, xattr->name, xattr->name_length);
    bw_send_command_end(sender, at);
}

/* Sends the attributes that differ. A capability is sent again in any case, because other commands
 * may remove it. */
static struct bw_error *send_xattrs(struct incremental *order, const struct change *change)
{
    struct bw_sender *sender = order->sender;
    const struct bw_xattr *lists[2] = {NULL};
    size_t counts[2] = {0};
    for (unsigned side = change->kind == NEW; side < 2; side++) {
        const struct bw_place place = {.subvolume = order->diff.trees[side].subvolume,
                                       .inode = change->number};
        BW_TRY(bw_xattr_reader_read(order->xattrs[side], &place, &lists[side], &counts[side]));
    }
    for (size_t i = 0; i < counts[0]; i++)
        if (!find_xattr(lists[1], counts[1], &lists[0][i]))
            remove_xattr(sender, &lists[0][i]);
    for (size_t i = 0; i < counts[1]; i++) {
        const struct bw_xattr *xattr = &lists[1][i], *old = find_xattr(lists[0], counts[0], xattr);
        const bool is_same =
            old && old->value_length == xattr->value_length &&
            (!old->value_length || memcmp(old->value, xattr->value, old->value_length) == 0);
        if (!is_same || bw_xattr_is_named(xattr, "security.capability"))
            bw_send_xattr(sender, xattr);
    }
    return NULL;
}

/* Contents. */

/* Sends a range of the current file. Where the receiver has other bytes, holes are zeros. */
static struct bw_error *send_range(struct incremental *order, uint64_t start, uint64_t end,
                                   bool is_new)
{
    struct bw_sender *sender = order->sender;
    const struct bw_place place = {.subvolume = sender->sent->subvolume,
                                   .inode = sender->current.number};
    const struct bw_data_file file = bw_data_file_of(&place, &sender->current.inode);
    struct bw_extent_piece piece;
    bool got = true;
    bw_extents_seek(&order->cursor, &file, start, end);
    for (;;) {
        BW_TRY(bw_extents_next(&order->cursor, &piece, &got));
        if (!got)
            return NULL;
        struct bw_extent *extent = &piece.extent;
        bw_error_free(BW_TAKE(extent->error));
        if (bw_extent_is_data(extent)) {
            const struct bw_file_extent file_extent = {
                .generation = extent->generation,
                .ram_bytes = extent->ram_bytes,
                .compression = extent->compression,
                .disk_bytenr = extent->logical,
                .disk_num_bytes = extent->stored,
                .inline_data = piece.inline_data,
                .inline_length = piece.inline_length,
            };
            BW_TRY(bw_send_extent(sender, &file_extent, extent->extent_offset, extent->offset,
                                  extent->offset + extent->length));
        } else if (extent->kind == BW_EXTENT_BAD || (!is_new && sender->options.version < 2)) {
            BW_TRY(bw_send_plain(sender, extent->offset, extent->length));
        } else if (!is_new) {
            bw_send_punch(sender, extent->offset, extent->length);
        }
    }
}

/* Sends the ranges that differ, or a new file as a whole. The part of a file beyond its old size
 * starts at a sector boundary, so that it can be cloned. */
static struct bw_error *send_contents(struct incremental *order, const struct change *change,
                                      const struct bw_diff_file files[2])
{
    struct bw_sender *sender = order->sender;
    struct bw_send_inode *current = &sender->current;
    const uint32_t sectorsize = sender->sent->fs->superblock.sectorsize;
    const uint64_t before = files[0].inode.size, size = current->inode.size;
    if (!S_ISREG(current->inode.mode))
        return NULL;
    if (change->kind == NEW) {
        BW_TRY(send_range(order, 0, size, true));
    } else {
        struct bw_diff_result result = {0};
        uint64_t added = before - before % sectorsize;
        current->size_there = before;
        order->ranges.count = 0;
        BW_TRY(bw_diff_compare_contents(
            &order->diff, files, &order->diff.touched.inodes.items[change->touched], &result));
        for (size_t i = 0; i < order->ranges.count; i++) {
            const struct bw_diff_range *range = &order->ranges.items[i];
            const uint64_t end = range->end + (sectorsize - range->end % sectorsize) % sectorsize;
            BW_TRY(send_range(order, range->start, end < size ? end : size, false));
            added = end > added ? end : added;
        }
        if (size > before && size > added)
            BW_TRY(send_range(order, added, size, true));
    }
    if (current->size_there != size)
        bw_send_truncate(sender, size);
    return NULL;
}

/* Sends an inode of the sent subvolume. */
static struct bw_error *send_inode(struct incremental *order, size_t at)
{
    struct bw_sender *sender = order->sender;
    const struct change *change = &order->changes.items[at];
    struct bw_diff_file files[2] = {{0}};
    if (change->kind == DELETED || change->kind == FAILED)
        return NULL;
    for (unsigned side = change->kind == NEW; side < 2; side++)
        BW_TRY(bw_diff_file_read(&order->diff.trees[side], change->number, &files[side]));
    const struct bw_inode *old = &files[0].inode, *inode = &files[1].inode;
    bw_send_set_inode(sender, change->number, inode);
    BW_TRY(final_path(order, change->number, &sender->current.path));

    /* The names under which the file may have to be removed again. */
    const size_t first = change->names + change->lost;
    const size_t end = may_be_undone(order, inode) ? first + change->gained + change->kept : first;
    for (size_t i = first; i < end; i++) {
        const uint64_t directory = order->names.list.items[i].parent;
        if (!directory)
            continue;
        BW_TRY(final_path(order, directory, &order->path));
        BW_TRY(append_name(order, i, &order->path));
        bw_send_note_undo(sender, &order->path);
    }

    BW_TRY(send_xattrs(order, change));
    BW_TRY(send_contents(order, change, files));
    const bool owner = change->kind == NEW || old->uid != inode->uid || old->gid != inode->gid;
    if (owner)
        bw_send_owner(sender);
    if (owner || old->mode != inode->mode)
        bw_send_mode(sender);
    if (change->kind != NEW && old->flags != inode->flags && sender->options.version >= 2 &&
        !S_ISLNK(inode->mode))
        bw_send_flags(sender);
    bw_send_capability(sender);
    /* Receivers set only the times of access and modification. */
    const bool has_times =
        bw_same_time(&old->mtime, &inode->mtime) && bw_same_time(&old->atime, &inode->atime);
    if (!change->is_directory &&
        (sender->current.is_changed || change->lost || change->gained || !has_times))
        bw_send_inode_times(sender, &sender->current.path, inode);
    bw_send_end_inode(sender);
    return NULL;
}

static struct bw_error *send_directory_times(struct incremental *order, uint64_t number)
{
    struct bw_sender *sender = order->sender;
    struct bw_diff_file file;
    BW_TRY(bw_diff_file_read(&order->diff.trees[1], number, &file));
    BW_TRY(final_path(order, number, &order->path));
    bw_send_inode_times(sender, &order->path, &file.inode);
    return NULL;
}

/* Stages. */

/* While inodes are being made in the top directory, it has no attributes that they would inherit.
 */
static struct bw_error *withhold_inherited(struct incremental *order)
{
    struct bw_sender *sender = order->sender;
    const struct bw_place top = {.subvolume = sender->parent->subvolume,
                                 .inode = BW_SUBVOLUME_ROOT_INODE};
    const struct bw_xattr *list;
    size_t count;
    struct bw_error *error = bw_xattr_reader_read(order->xattrs[0], &top, &list, &count);
    if (error)
        return bw_send_report_lost(sender, error);
    sender->current.path.length = 0;
    for (size_t i = 0; i < count; i++) {
        if (!bw_send_is_inherited(&list[i]))
            continue;
        bw_send_withhold(sender, &list[i]);
        remove_xattr(sender, &list[i]);
    }
    return NULL;
}

static struct bw_error *send_changes(struct incremental *order)
{
    struct bw_sender *sender = order->sender;
    const struct changes *changes = &order->changes;
    bool has_new = false;

    /* Park. */
    for (size_t i = 0; i < changes->count; i++) {
        has_new |= changes->items[i].kind == NEW && changes->items[i].gained;
        BW_TRY(end_change(order, &changes->items[i], park_names(order, i)));
    }

    /* Remove, the deepest first. */
    for (size_t i = 0; i < changes->count; i++) {
        struct change *change = &changes->items[i];
        if (change->kind != DELETED || !change->is_directory)
            continue;
        struct bw_error *error = present_path(order, change->number, 0, &order->path);
        if (!error)
            order->removed[order->removed_count++] = i;
        change->depth = depth_of(&order->path);
        BW_TRY(end_change(order, change, error));
    }
    qsort_r(order->removed, order->removed_count, sizeof *order->removed, by_depth, changes->items);
    for (size_t i = order->removed_count; i > 0; i--) {
        struct change *change = &changes->items[order->removed[i - 1]];
        bool remains;
        BW_TRY(may_remain(order, change->number, NULL, &remains));
        struct bw_error *error = present_path(order, change->number, 0, &order->path);
        if (!error && remains)
            error = bw_error_create(BW_ERROR_CORRUPT,
                                    "directory %" PRIu64 " is not removed: it may not be empty",
                                    change->number);
        if (!error)
            bw_send_command_at(sender, BW_COMMAND_RMDIR, &order->path);
        BW_TRY(end_change(order, change, error));
    }

    /* Place. */
    for (size_t i = 0; i < changes->count; i++) {
        struct change *change = &changes->items[i];
        struct bw_error *error = NULL;
        if (!change->gained || change->kind == FAILED)
            continue;
        if (change->is_directory) {
            error = bw_send_path(sender, sender->sent, change->number, UINT64_MAX, &order->path);
            change->depth = depth_of(&order->path);
        }
        if (!error)
            order->placed[order->placed_count++] = i;
        BW_TRY(end_change(order, change, error));
    }
    qsort_r(order->placed, order->placed_count, sizeof *order->placed, by_depth, changes->items);
    if (has_new)
        BW_TRY(withhold_inherited(order));
    for (size_t i = 0; i < order->placed_count; i++)
        BW_TRY(end_step(order, place_inode(order, order->placed[i])));
    bw_send_withheld(sender);

    /* Contents. */
    for (size_t i = 0; i < changes->count; i++)
        BW_TRY(end_step(order, send_inode(order, i)));

    /* Times. The top directory had parked inodes in it, even if it is the same in both. */
    for (size_t i = 0; i < changes->count; i++)
        if (changes->items[i].is_directory && changes->items[i].kind != DELETED &&
            changes->items[i].kind != FAILED)
            BW_TRY(end_step(order, send_directory_times(order, changes->items[i].number)));
    if (order->has_parked && !bw_key_map_has(&order->after, BW_SUBVOLUME_ROOT_INODE))
        BW_TRY(end_step(order, send_directory_times(order, BW_SUBVOLUME_ROOT_INODE)));
    return NULL;
}

/* Finds all inodes that differ, and their names. */
static struct bw_error *collect_changes(struct incremental *order)
{
    struct bw_sender *sender = order->sender;
    struct bw_send_root *const roots[2] = {sender->parent, sender->sent};
    struct bw_diff *diff = &order->diff;
    for (unsigned side = 0; side < 2; side++) {
        bw_diff_tree_init(
            &diff->trees[side],
            &(struct bw_diff_side){.fs = roots[side]->fs, .subvolume = roots[side]->subvolume});
        BW_TRY(bw_xattr_reader_create(roots[side]->fs, &order->xattrs[side]));
    }
    bw_extents_init(&order->cursor, sender->sent->fs);
    diff->shared = true;
    diff->ranges = &order->ranges;
    BW_TRY(bw_touched_find(diff));
    BW_TRY(add_moved(diff));
    if (diff->trees[0].lost || diff->trees[1].lost)
        BW_TRY(bw_send_report_lost(sender, bw_error_create(BW_ERROR_CORRUPT,
                                                           "parts of the subvolumes are lost, "
                                                           "so some differences are unknown")));

    BW_SCOPED(bw_diff_names) struct bw_diff_names before = {0};
    BW_SCOPED(bw_diff_names) struct bw_diff_names after = {0};
    const struct bw_diff_names none = {0};
    for (size_t i = 0; i < diff->touched.inodes.count; i++) {
        const struct bw_touched *touched = &diff->touched.inodes.items[i];
        struct bw_diff_file files[2];
        bool lost = false, is_short = false, survives = false;
        for (unsigned side = 0; side < 2; side++) {
            struct bw_diff_names *names = side ? &after : &before;
            BW_TRY(bw_diff_file_read(&diff->trees[side], touched->number, &files[side]));
            names->list.count = names->bytes.length = 0;
            names->lost = false;
            if (files[side].exists && touched->number != BW_SUBVOLUME_ROOT_INODE) {
                BW_TRY(bw_diff_names_read(&diff->trees[side], touched->number, names));
                const bool has_fewer = names->list.count < files[side].inode.link_count;
                is_short |= has_fewer;
                lost |= has_fewer && !names->list.count;
            }
            lost |= files[side].lost || names->lost;
        }
        if (files[0].exists && S_ISREG(files[0].inode.mode))
            sender->summary.growth -= (int64_t)files[0].inode.size;
        if (files[1].exists && S_ISREG(files[1].inode.mode))
            sender->summary.growth += (int64_t)files[1].inode.size;
        if (is_short && !lost)
            BW_TRY(has_hidden_name(order, touched->number, &before, &after, &lost));
        if (is_short && !lost) {
            /* A link count that is too high does no harm. Names that both have lost may be there:
             * see may_remain(). */
            order->has_failed = true;
            bw_send_report_links(sender, touched->number);
        }
        if (lost) {
            BW_TRY(bw_send_report_lost(
                sender, bw_error_create(BW_ERROR_CORRUPT,
                                        "inode %" PRIu64 " remains unchanged: parts of it are lost",
                                        touched->number)));
            if (after.list.count)
                BW_TRY(
                    has_name(order, sender->parent, touched->number, &after, 0, false, &survives));
            if (files[1].exists && !survives)
                BW_TRY(add_change(order, FAILED, &files[1], &none, &none, i));
            order->has_failed = true;
            continue;
        }
        BW_TRY(can_survive(files, touched->flags & BW_TOUCHED_CONTENT, &survives));
        if (survives)
            BW_TRY(add_change(order, SURVIVES, &files[1], &before, &after, i));
        if (!survives && files[0].exists)
            BW_TRY(add_change(order, DELETED, &files[0], &before, &none, i));
        if (!survives && files[1].exists)
            BW_TRY(add_change(order, NEW, &files[1], &none, &after, i));
    }
    order->removed = calloc(order->changes.count + 1, sizeof *order->removed);
    order->placed = calloc(order->changes.count + 1, sizeof *order->placed);
    return order->removed && order->placed ? NULL : bw_error_no_memory();
}

struct bw_error *bw_send_incremental(struct bw_sender *sender)
{
    struct incremental order = {.sender = sender};
    sender->may_clash = true;
    struct bw_error *error = collect_changes(&order);
    if (!error)
        error = send_changes(&order);
    for (unsigned side = 0; side < 2; side++) {
        bw_diff_tree_free(&order.diff.trees[side]);
        bw_xattr_reader_destroy(order.xattrs[side]);
    }
    bw_touched_free(&order.diff.touched);
    bw_diff_content_free(order.diff.content);
    bw_extents_free(&order.cursor);
    bw_key_map_free(&order.before);
    bw_key_map_free(&order.after);
    bw_buffer_free(&order.path);
    bw_buffer_free(&order.other);
    changes_free(&order.changes);
    bw_diff_names_free(&order.names);
    free(order.removed);
    free(order.placed);
    bw_diff_ranges_free(&order.ranges);
    return error;
}
