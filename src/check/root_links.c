/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How subvolumes hang together: each ROOT_REF with its ROOT_BACKREF, and both with the entries of
 * the directory they name. The other way round nothing can be said of an entry: in a snapshot,
 * those of nested subvolumes have no ROOT_REF.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "check/roots.h"
#include "ondisk/checksum.h"
#include "ondisk/items.h"

static int compare_sides(const void *first, const void *second)
{
    const struct bw_root_side *a = first, *b = second;
    const uint64_t left[] = {a->parent, a->child, a->is_backref};
    const uint64_t right[] = {b->parent, b->child, b->is_backref};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

static struct bw_subject subject_of(const struct bw_root_side *side)
{
    return side->is_backref ? bw_root_subject(side->child, BW_ROOT_BACKREF, side->parent)
                            : bw_root_subject(side->parent, BW_ROOT_REF, side->child);
}

static bool are_pair(const struct bw_root_side *a, const struct bw_root_side *b)
{
    return a->parent == b->parent && a->child == b->child && a->is_backref != b->is_backref;
}

static bool say_the_same(const struct bw_root_book *book, const struct bw_root_side *a,
                         const struct bw_root_side *b)
{
    return a->directory == b->directory && a->index == b->index &&
           a->name_length == b->name_length &&
           memcmp(book->names.data + a->name, book->names.data + b->name, a->name_length) == 0;
}

/* A directory entry that is looked for. */
struct search {
    const struct bw_root_book *book;
    const struct bw_root_side *side;
    bool found;
};

static struct bw_error *take_entries(void *context, const struct bw_item *item)
{
    struct search *search = context;
    const struct bw_root_side *side = search->side;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry))
        search->found |=
            entry.location.objectid == side->child && entry.location.type == BW_ROOT_ITEM &&
            entry.name_length == side->name_length &&
            memcmp(entry.name, search->book->names.data + side->name, side->name_length) == 0;
    return NULL;
}

/* Looks for an entry of the parent in the item with a key. */
static struct bw_error *check_entry(const struct bw_root_book *book,
                                    const struct bw_root_side *side,
                                    const struct bw_listed_tree *parent, uint8_t type,
                                    uint64_t offset)
{
    const struct bw_key key = {side->directory, type, offset};
    struct search search = {book, side, false};
    BW_TRY(bw_fs_items(book->check->fs, &parent->tree, key, key, take_entries, &search));
    if (search.found)
        return NULL;
    const struct bw_subject subject = {
        .finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY | BW_KNOWN_INODE,
                    .tree = side->parent,
                    .key = key,
                    .inode = side->directory},
        .touches = BW_TOUCHES_INODE};
    bw_check_find(book->check, BW_CODE_root_entry, &subject,
                  "no entry for subvolume %" PRIu64 ", which its ROOT_REF says is here",
                  side->child);
    return NULL;
}

static struct bw_error *check_entries(const struct bw_root_book *book,
                                      const struct bw_root_side *side)
{
    const struct bw_listed_tree *parent = bw_tree_list_find(&book->check->trees, side->parent);
    const char *name = book->names.data + side->name;
    if (!parent || parent->incomplete)
        return NULL;
    BW_TRY(check_entry(book, side, parent, BW_DIR_INDEX, side->index));
    return check_entry(book, side, parent, BW_DIR_ITEM, bw_name_hash(name, side->name_length));
}

/* A ROOT_REF with its ROOT_BACKREF; if one is missing, the other one, and `other` is NULL. */
static struct bw_error *check_link(const struct bw_root_book *book, const struct bw_root_side *side,
                                   const struct bw_root_side *other)
{
    const struct bw_subject subject = subject_of(side);
    struct bw_root_facts *child = bw_root_facts_of(book, side->child);
    if (!child || !bw_root_facts_of(book, side->parent)) {
        bw_check_find(book->check, BW_CODE_root_link, &subject,
                      "subvolume %" PRIu64 " does not exist", child ? side->parent : side->child);
        return NULL;
    }
    child->links++;
    child->parent = side->parent;
    if (!other || !say_the_same(book, side, other)) {
        bw_check_find(book->check, BW_CODE_root_link, &subject, "%s",
                      other              ? "the ROOT_BACKREF says otherwise"
                      : side->is_backref ? "there is no ROOT_REF"
                                         : "there is no ROOT_BACKREF");
        return NULL;
    }
    return check_entries(book, side);
}

/* A subvolume lies in itself: reports all that lie in each other once, as the one with the lowest
 * id. */
static void report_cycle(const struct bw_root_book *book, const struct bw_root_facts *root)
{
    const struct bw_root_facts *lowest = root;
    size_t count = 1;
    for (const struct bw_root_facts *next = bw_root_facts_of(book, root->parent); next != root;
         next = bw_root_facts_of(book, next->parent), count++)
        lowest = next->id < lowest->id ? next : lowest;
    const struct bw_subject subject = bw_root_subject(lowest->id, BW_ROOT_BACKREF, lowest->parent);
    if (count == 1)
        bw_check_find(book->check, BW_CODE_root_cycle, &subject,
                      "subvolume %" PRIu64 " lies in itself", lowest->id);
    else
        bw_check_find(book->check, BW_CODE_root_cycle, &subject,
                      "subvolume %" PRIu64 " is one of %zu that lie in each other", lowest->id,
                      count);
}

/* Follows the way from each subvolume up to the top, or to where another climb came by. */
static void check_ways(const struct bw_root_book *book)
{
    for (size_t climb = 1; climb <= book->root_count; climb++) {
        struct bw_root_facts *root = &book->roots[climb - 1];
        for (; root && !root->climb; root = bw_root_facts_of(book, root->parent))
            root->climb = climb;
        if (root && root->climb == climb)
            report_cycle(book, root);
    }
}

struct bw_error *bw_check_root_links(struct bw_root_book *book)
{
    if (book->side_count)
        qsort(book->sides, book->side_count, sizeof *book->sides, compare_sides);
    for (size_t i = 0; i < book->side_count && bw_check_goes_on(book->check, 0); i++) {
        const struct bw_root_side *side = &book->sides[i];
        const bool paired = i + 1 < book->side_count && are_pair(side, side + 1);
        BW_TRY(check_link(book, side, paired ? side + 1 : NULL));
        i += paired;
    }
    check_ways(book);
    return NULL;
}
