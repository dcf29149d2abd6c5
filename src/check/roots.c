/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `roots`: the root tree is read into a book, whose parts are then held against each
 * other, against the directories of subvolumes and against the uuid tree. What the root tree has
 * lost cannot be told from what it never had: then the pass finds nothing.
 */
#include "check/roots.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/human.h"
#include "base/search.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"

struct bw_subject bw_root_subject(uint64_t objectid, uint8_t type, uint64_t offset)
{
    return (struct bw_subject){.finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY,
                                           .tree = BW_ROOT_TREE,
                                           .key = {objectid, type, offset}}};
}

struct bw_root_facts *bw_root_facts_of(const struct bw_root_book *book, uint64_t id)
{
    const size_t i = BW_FIRST_INDEX(k, book->root_count, book->roots[k].id >= id);
    return i < book->root_count && book->roots[i].id == id ? &book->roots[i] : NULL;
}

static bool is_subvolume(uint64_t id)
{
    return id == BW_TOP_SUBVOLUME || (id >= BW_FIRST_SUBVOLUME && id <= BW_LAST_SUBVOLUME);
}

/* Gathering. */

/* Kernels that do not know the newer members leave them as they are; the second generation tells.
 */
static bool has_uuids(const struct bw_item *item)
{
    const struct bw_disk_root_item *disk = (const void *)item->data;
    return item->size >= sizeof *disk &&
           bw_get64(disk->generation) == bw_get64(disk->generation_v2);
}

static struct bw_error *add_root(struct bw_root_book *book, const struct bw_item *item)
{
    static const struct bw_key nothing;
    struct bw_root_item root;
    BW_AUTO_ERROR struct bw_error *bad = bw_root_item_decode(item, &root);
    book->relocations += item->key.objectid == BW_TREE_RELOC;
    if (bad || !is_subvolume(item->key.objectid))
        return NULL;
    if (!BW_ARRAY_RESERVE(book->roots, book->root_count, book->root_capacity))
        return bw_error_no_memory();
    struct bw_root_facts *facts = &book->roots[book->root_count++];
    const struct bw_disk_root_item *disk = (const void *)item->data;
    const struct bw_key progress = bw_key_decode(&disk->drop_progress);
    *facts = (struct bw_root_facts){.id = item->key.objectid,
                                    .key = item->key,
                                    .references = root.references,
                                    .is_dropping = bw_key_compare(&progress, &nothing) != 0};
    if (has_uuids(item)) {
        memcpy(facts->uuid, disk->uuid, BW_UUID_SIZE);
        memcpy(facts->received_uuid, disk->received_uuid, BW_UUID_SIZE);
    }
    return NULL;
}

static struct bw_error *add_side(struct bw_root_book *book, const struct bw_item *item)
{
    const bool back = item->key.type == BW_ROOT_BACKREF;
    struct bw_root_ref ref;
    if (!bw_root_ref_decode(item, &ref))
        return NULL;
    if (!BW_ARRAY_RESERVE(book->sides, book->side_count, book->side_capacity))
        return bw_error_no_memory();
    book->sides[book->side_count++] =
        (struct bw_root_side){.parent = back ? item->key.offset : item->key.objectid,
                              .child = back ? item->key.objectid : item->key.offset,
                              .directory = ref.directory,
                              .index = ref.index,
                              .name = book->names.length,
                              .name_length = ref.name_length,
                              .is_backref = back};
    bw_buffer_append(&book->names, ref.name, ref.name_length);
    return book->names.failed ? bw_error_no_memory() : NULL;
}

static struct bw_error *add_orphan(struct bw_root_book *book, uint64_t id)
{
    if (!BW_ARRAY_RESERVE(book->orphans, book->orphan_count, book->orphan_capacity))
        return bw_error_no_memory();
    book->orphans[book->orphan_count++] = id;
    return NULL;
}

static void take_default(struct bw_root_book *book, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry))
        if (entry.name_length == 7 && memcmp(entry.name, "default", 7) == 0)
            book->default_id = entry.location.objectid;
}

static struct bw_error *gather(void *context, const struct bw_item *item)
{
    struct bw_root_book *book = context;
    const struct bw_key *key = &item->key;
    if (key->type == BW_ROOT_ITEM)
        return add_root(book, item);
    if (key->type == BW_ROOT_REF || key->type == BW_ROOT_BACKREF)
        return add_side(book, item);
    if (key->type == BW_ORPHAN_ITEM && key->objectid == BW_ORPHAN)
        return add_orphan(book, key->offset);
    if (key->type == BW_DIR_ITEM && key->objectid == BW_ROOT_TREE_DIR)
        take_default(book, item);
    book->has_balance |= key->type == BW_TEMPORARY_ITEM && key->objectid == BW_BALANCE;
    return NULL;
}

/* Checking. */

static struct bw_error *note_item(void *context, const struct bw_item *item)
{
    (void)item;
    *(bool *)context = true;
    return NULL;
}

/* An orphan of the root tree is a subvolume that is to be deleted, or an inode of the root tree: a
 * free space cache of old kernels. */
static struct bw_error *check_orphan(const struct bw_root_book *book, uint64_t id)
{
    struct bw_root_facts *root = bw_root_facts_of(book, id);
    const struct bw_subject subject = bw_root_subject(BW_ORPHAN, BW_ORPHAN_ITEM, id);
    bool is_inode = false;
    if (root && !root->references) {
        root->has_orphan = true;
        return NULL;
    }
    const struct bw_key key = {id, BW_INODE_ITEM, 0};
    BW_TRY(
        bw_fs_items(book->check->fs, &book->check->fs->root_tree, key, key, note_item, &is_inode));
    if (!is_inode)
        bw_check_find(book->check, BW_CODE_root_orphan, &subject, "%s",
                      root ? "the subvolume is not deleted" : "there is no such subvolume");
    return NULL;
}

static void check_root(const struct bw_root_book *book, const struct bw_root_facts *root)
{
    const struct bw_subject subject = bw_root_subject(root->id, BW_ROOT_ITEM, root->key.offset);
    const bool is_top = root->id == BW_TOP_SUBVOLUME;
    if (root->references && !is_top && !root->links)
        bw_check_find(book->check, BW_CODE_root_unlinked, &subject,
                      "no ROOT_REF leads to subvolume %" PRIu64, root->id);
    if (root->links && !root->references)
        bw_check_find(book->check, BW_CODE_root_references, &subject, "deleted, but still linked");
    else if (root->links + is_top > 1 || root->references > 1)
        bw_check_find(book->check, BW_CODE_root_references, &subject,
                      "%u link%s, and %" PRIu32 " reference%s in the root item", root->links,
                      bw_plural(root->links), root->references, bw_plural(root->references));
    if (!root->references && is_top)
        bw_check_find(book->check, BW_CODE_root_references, &subject,
                      "the top-level subvolume is deleted");
    if (!root->references && !is_top && !root->links && !root->has_orphan)
        bw_check_find(book->check, BW_CODE_root_leaked, &subject,
                      "deleted, but without an orphan item: its space is never freed");
    if (root->references && root->is_dropping)
        bw_check_find(book->check, BW_CODE_root_dropping, &subject,
                      "not deleted, but has a drop progress");
}

static void check_default(const struct bw_root_book *book)
{
    const struct bw_root_facts *root = bw_root_facts_of(book, book->default_id);
    struct bw_subject subject = bw_root_subject(BW_ROOT_TREE_DIR, BW_DIR_ITEM, 0);
    subject.finding.known &= ~(unsigned)BW_KNOWN_KEY;
    if (book->default_id && (!root || !root->references))
        bw_check_find(book->check, BW_CODE_default_lost, &subject, "subvolume %" PRIu64 " %s",
                      book->default_id, root ? "is deleted" : "does not exist");
}

/* Items that the inode cache of kernels before 5.11 left in a subvolume. */
static struct bw_error *check_inode_cache(const struct bw_root_book *book,
                                          const struct bw_root_facts *root)
{
    const struct bw_listed_tree *tree = bw_tree_list_find(&book->check->trees, root->id);
    const struct bw_key first = {BW_FREE_INODE, 0, 0},
                        last = {BW_FREE_INODE, UINT8_MAX, UINT64_MAX};
    const struct bw_subject subject = {.finding = {.known = BW_KNOWN_TREE, .tree = root->id}};
    bool found = false;
    if (!tree || tree->incomplete || root->is_dropping)
        return NULL;
    BW_TRY(bw_fs_items(book->check->fs, &tree->tree, first, last, note_item, &found));
    if (found)
        bw_check_find(book->check, BW_CODE_inode_cache, &subject, "left by a kernel before 5.11");
    return NULL;
}

static void check_relocation(const struct bw_root_book *book)
{
    if (book->relocations)
        bw_check_find(book->check, BW_CODE_relocation, &(struct bw_subject){0},
                      "%" PRIu64 " relocation tree%s, %s", book->relocations,
                      bw_plural(book->relocations),
                      book->has_balance ? "of a balance that was interrupted"
                                        : "and no balance is under way");
    else if (book->has_balance)
        bw_check_find(book->check, BW_CODE_relocation, &(struct bw_subject){0},
                      "a balance is paused or was interrupted");
}

static struct bw_error *check_book(struct bw_root_book *book)
{
    BW_TRY(bw_fs_items(book->check->fs, &book->check->fs->root_tree, (struct bw_key){0}, BW_KEY_MAX,
                       gather, book));
    BW_TRY(bw_check_root_links(book));
    for (size_t i = 0; i < book->orphan_count; i++)
        BW_TRY(check_orphan(book, book->orphans[i]));
    for (size_t i = 0; i < book->root_count && bw_check_goes_on(book->check, 0); i++) {
        check_root(book, &book->roots[i]);
        BW_TRY(check_inode_cache(book, &book->roots[i]));
    }
    check_default(book);
    check_relocation(book);
    return bw_check_root_uuids(book);
}

struct bw_error *bw_pass_roots(struct bw_check *check)
{
    const struct bw_listed_tree *root_tree = bw_tree_list_find(&check->trees, BW_ROOT_TREE);
    struct bw_root_book book = {.check = check};
    if (!root_tree || root_tree->incomplete)
        return NULL;
    struct bw_error *error = check_book(&book);
    free(book.roots);
    free(book.sides);
    free(book.orphans);
    bw_buffer_free(&book.names);
    return error;
}
