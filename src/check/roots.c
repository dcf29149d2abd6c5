/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `roots`: whether the items of the root tree agree about the subvolumes.
 *
 * One scan of the root tree lists the root items, the links between subvolumes and the orphan
 * items. Then each link is compared with the other link of the pair and with the directory that it
 * names, each subvolume with its links, and the uuids with the uuid tree. Lost items of the root
 * tree cannot be distinguished from items that never existed: then the pass finds nothing.
 */
#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "base/generated.h"
#include "base/human.h"
#include "base/search.h"
#include "base/vector.h"
#include "check/check.h"
#include "check/flipped.h"
#include "ondisk/checksum.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"

/* A subvolume. */
struct root_facts {
    uint64_t id;
    struct bw_key key; /**< of its ROOT_ITEM */
    uint32_t references;
    bool is_dropping; /**< part of it is deleted */
    bool has_orphan;  /**< an ORPHAN_ITEM has its id */
    unsigned links;   /**< ROOT_REF items that lead to it */
    uint64_t parent;  /**< the subvolume that contains it; 0: none */
    size_t path;      /**< the first one up that it is on; see check_links() */
    uint8_t uuid[BW_UUID_SIZE], received_uuid[BW_UUID_SIZE]; /**< zeros: it has none */
};

/* One of the two items that link a subvolume to the one it hangs in. */
struct root_side {
    uint64_t parent, child;
    uint64_t directory, index;
    size_t name; /**< in the list's names */
    uint16_t name_length;
    bool is_backref;
};

BW_VECTOR(root_sides, struct root_side);

BW_VECTOR(root_facts_list, struct root_facts);

/* All of it. */
struct root_list {
    struct bw_check *check;
    struct root_facts_list roots; /**< ascending */
    struct root_sides sides;
    struct bw_buffer names;
    struct bw_numbers orphans;
    uint64_t default_id;  /**< 0: there is no entry for it */
    bool has_balance;     /**< one is under way */
    uint64_t relocations; /**< trees that relocation has left */
};

/*
 * The hierarchy of subvolumes: each ROOT_REF is compared with its ROOT_BACKREF, and both with the
 * entries of the directory they name. Not the reverse: in a snapshot, the entries of nested
 * subvolumes have no ROOT_REF.
 */

static int by_link(const void *first, const void *second)
{
    const struct root_side *a = first, *b = second;
    const uint64_t left[] = {a->parent, a->child, a->is_backref};
    const uint64_t right[] = {b->parent, b->child, b->is_backref};
    return BW_COMPARE_ALL(left, right);
}

/* The location of an item of the root tree. */
static struct bw_finding root_location(uint64_t objectid, uint8_t type, uint64_t offset)
{
    return BW_FINDING(BW_TOUCHES_NOTHING, .tree = BW_ROOT_TREE, .key = {objectid, type, offset});
}

/* Whether the parent has the entry in the item with a key. */
static struct bw_error *find_entry(const struct root_list *list, const struct root_side *side,
                                   const struct bw_listed_tree *parent, struct bw_key key,
                                   bool *found)
{
    *found = false;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, list->check->fs, &parent->tree, key, key);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_cursor cursor = bw_cursor_of(item);
        struct bw_dir_entry entry;
        while (bw_dir_entry_next(&cursor, &entry))
            *found |= entry.location.objectid == side->child &&
                      entry.location.type == BW_ROOT_ITEM &&
                      entry.name_length == side->name_length &&
                      memcmp(entry.name, list->names.data + side->name, side->name_length) == 0;
    }
    return bw_fs_items_error(&items);
}

/* Looks for an entry of the parent in the item with a key. */
static struct bw_error *check_entry(const struct root_list *list, const struct root_side *side,
                                    const struct bw_listed_tree *parent, uint8_t type,
                                    uint64_t offset)
{
    const struct bw_key key = {side->directory, type, offset};
    bool found;
    BW_TRY(find_entry(list, side, parent, key, &found));
    if (found)
        return NULL;
    const struct bw_finding location =
        BW_FINDING(BW_TOUCHES_INODE, .tree = side->parent, .key = key, .inode = side->directory);
    bw_check_find(list->check, BW_CODE_root_entry, &location,
                  "no entry for subvolume %" PRIu64 ", although its ROOT_REF points here",
                  side->child);
    return NULL;
}

/* The subvolume with an id; NULL if it does not exist. */
static struct root_facts *root_facts_of(const struct root_list *list, uint64_t id)
{
    const size_t i = BW_FIRST_INDEX(k, list->roots.count, list->roots.items[k].id >= id);
    return i < list->roots.count && list->roots.items[i].id == id ? &list->roots.items[i] : NULL;
}

static struct bw_key key_of_side(const struct root_side *side)
{
    if (side->is_backref)
        return (struct bw_key){side->child, BW_ROOT_BACKREF, side->parent};
    return (struct bw_key){side->parent, BW_ROOT_REF, side->child};
}

/* Whether the parent has an entry in a directory as one side of a link describes it. */
static bool has_entry(const struct root_list *list, const struct root_side *side)
{
    const struct bw_listed_tree *parent = bw_tree_list_find(&list->check->trees, side->parent);
    bool found = false;
    if (!parent)
        return false;
    BW_AUTO_ERROR struct bw_error *error = find_entry(
        list, side, parent, (struct bw_key){side->directory, BW_DIR_INDEX, side->index}, &found);
    return found && !bw_check_lacks_memory(list->check, error) && !error;
}

/* The flipped bit in one side of a link, if the directory proves that the other side is right. */
static void find_flip_between(const struct root_list *list, const struct root_side *a,
                              const struct root_side *b, struct bw_flip *flip)
{
    const struct root_side *right = a, *wrong = b;
    if (!has_entry(list, a)) {
        right = b;
        wrong = a;
    }
    const struct bw_key key = key_of_side(wrong);
    struct root_side other = *right;
    other.is_backref = wrong->is_backref;
    const struct bw_key want = key_of_side(&other);
    const char *name = list->names.data + wrong->name, *right_name = list->names.data + right->name;
    const bool has_key = bw_key_compare(&key, &want) == 0;
    const bool has_directory = wrong->directory == right->directory;
    const bool has_index = wrong->index == right->index;
    const bool has_name = wrong->name_length == right->name_length &&
                          memcmp(name, right_name, wrong->name_length) == 0;
    if (has_entry(list, wrong) || !has_entry(list, right) ||
        has_key + has_directory + has_index + has_name != 3)
        return;
    if (!has_key)
        bw_flip_in_key(list->check, BW_ROOT_TREE, &key, &want, flip);
    else if (!has_directory)
        bw_flip_in_item(list->check, BW_ROOT_TREE, &key,
                        offsetof(struct bw_disk_root_ref, directory), 8, wrong->directory,
                        right->directory, flip);
    else if (!has_index)
        bw_flip_in_item(list->check, BW_ROOT_TREE, &key,
                        offsetof(struct bw_disk_root_ref, sequence), 8, wrong->index, right->index,
                        flip);
    else if (wrong->name_length == right->name_length)
        bw_flip_in_bytes(list->check, BW_ROOT_TREE, &key, sizeof(struct bw_disk_root_ref), name,
                         right_name, wrong->name_length, flip);
}

/* The flipped bit that explains why a link has one side only: this side or the other one has a
 * wrong key. It may be any of the sides, so the number of these searches is limited. */
static void find_flip_alone(const struct root_list *list, const struct root_side *side,
                            struct bw_flip *flip)
{
    if (!bw_flip_may_search(list->check))
        return;
    for (size_t i = 0; i < list->sides.count && !flip->found; i++) {
        const struct root_side *other = &list->sides.items[i];
        if (other->is_backref != side->is_backref && other->index == side->index &&
            (other->parent == side->parent) != (other->child == side->child) &&
            bw_flip_may_search(list->check))
            find_flip_between(list, side, other, flip);
    }
}

/* Links, both ways, and the directory entries they name; counts root->links. */
static struct bw_error *check_links(struct root_list *list)
{
    struct bw_check *check = list->check;
    root_sides_sort(&list->sides, by_link);
    for (size_t i = 0; i < list->sides.count && bw_check_should_continue(check, 0); i++) {
        const struct root_side *side = &list->sides.items[i];
        const bool paired = i + 1 < list->sides.count && side->parent == side[1].parent &&
                            side->child == side[1].child && side->is_backref != side[1].is_backref;
        const struct root_side *other = paired ? side + 1 : NULL;
        const struct bw_key key = key_of_side(side);
        struct bw_finding location = root_location(key.objectid, key.type, key.offset);
        struct root_facts *child = root_facts_of(list, side->child);
        i += paired;
        if (!other)
            find_flip_alone(list, side, &location.flip);
        if (!child || !root_facts_of(list, side->parent)) {
            bw_check_find(check, BW_CODE_root_link, &location,
                          "subvolume %" PRIu64 " does not exist",
                          child ? side->parent : side->child);
            continue;
        }
        child->links++;
        child->parent = side->parent;
        const char *name = list->names.data + side->name;
        const bool is_equal = other && side->directory == other->directory &&
                              side->index == other->index &&
                              side->name_length == other->name_length &&
                              memcmp(name, list->names.data + other->name, side->name_length) == 0;
        if (!is_equal) {
            const char *problem = "the ROOT_BACKREF differs";
            if (other)
                find_flip_between(list, side, other, &location.flip);
            else
                problem = side->is_backref ? "there is no ROOT_REF" : "there is no ROOT_BACKREF";
            bw_check_find(check, BW_CODE_root_link, &location, "%s", problem);
            continue;
        }
        const struct bw_listed_tree *parent = bw_tree_list_find(&check->trees, side->parent);
        const uint64_t hash = bw_name_hash(name, side->name_length);
        if (!parent || parent->incomplete)
            continue;
        BW_TRY(check_entry(list, side, parent, BW_DIR_INDEX, side->index));
        BW_TRY(check_entry(list, side, parent, BW_DIR_ITEM, hash));
    }

    /* Follows the path from each subvolume up to the top, or to where an earlier path came by. If
     * it meets itself, all subvolumes of this cycle are one finding, under the lowest id. */
    for (size_t path = 1; path <= list->roots.count; path++) {
        struct root_facts *root = &list->roots.items[path - 1];
        for (; root && !root->path; root = root_facts_of(list, root->parent))
            root->path = path;
        if (!root || root->path != path)
            continue;
        const struct root_facts *lowest = root;
        size_t count = 1;
        for (const struct root_facts *next = root_facts_of(list, root->parent); next != root;
             next = root_facts_of(list, next->parent), count++)
            lowest = next->id < lowest->id ? next : lowest;
        const struct bw_finding location =
            root_location(lowest->id, BW_ROOT_BACKREF, lowest->parent);
        if (count == 1)
            bw_check_find(check, BW_CODE_root_cycle, &location,
                          "subvolume %" PRIu64 " contains itself", lowest->id);
        else
            bw_check_find(check, BW_CODE_root_cycle, &location,
                          "subvolume %" PRIu64 " is one of %zu that contain each other", lowest->id,
                          count);
    }
    return NULL;
}

/*
 * The uuid tree, which finds subvolumes by their uuids: both sides are listed, sorted and compared.
 * It is current only if the superblock says so; otherwise the next mount rebuilds it.
 */

/* The source of a uuid of a subvolume. */
enum side {
    REQUIRED, /* the root item */
    ALLOWED,  /* a subvolume that is being deleted */
    ENTERED,  /* the uuid tree */
};

struct fact {
    uint8_t type;
    enum side side;
    uint8_t uuid[BW_UUID_SIZE];
    uint64_t id;
};

BW_VECTOR(facts, struct fact);

static int compare_uuids(const struct fact *a, const struct fact *b)
{
    const int order =
        a->type == b->type ? memcmp(a->uuid, b->uuid, BW_UUID_SIZE) : bw_compare(a->type, b->type);
    return order ? order : bw_compare(a->id, b->id);
}

static int by_uuid_and_side(const void *first, const void *second)
{
    const struct fact *a = first, *b = second;
    const int order = compare_uuids(a, b);
    return order ? order : bw_compare(a->side, b->side);
}

/* The only other fact about the uuid of a fact; NULL if it has none, or several. */
static const struct fact *other_of_uuid(const struct facts *facts, size_t i)
{
    const struct fact *other = NULL, *fact = &facts->items[i];
    for (size_t k = i < 2 ? 0 : i - 2; k < facts->count && k <= i + 2; k++) {
        const struct fact *near = &facts->items[k];
        if (k == i || near->type != fact->type || memcmp(near->uuid, fact->uuid, BW_UUID_SIZE) != 0)
            continue;
        if (other)
            return NULL;
        other = near;
    }
    return other;
}

static struct bw_error *add_root_uuid(struct facts *facts, const struct root_facts *root,
                                      uint8_t type, const uint8_t uuid[BW_UUID_SIZE])
{
    static const uint8_t none[BW_UUID_SIZE];
    struct fact fact = {
        .type = type, .side = root->references ? REQUIRED : ALLOWED, .id = root->id};
    memcpy(fact.uuid, uuid, BW_UUID_SIZE);
    return memcmp(uuid, none, BW_UUID_SIZE) ? facts_push(facts, fact) : NULL;
}

/* The uuid tree, both ways. */
static struct bw_error *check_uuids(struct root_list *list)
{
    struct bw_check *check = list->check;
    const struct bw_superblock *superblock = &check->fs->superblock;
    const struct bw_listed_tree *tree = bw_tree_list_find(&check->trees, BW_UUID_TREE);
    if (!tree || tree->incomplete || check->fs->is_past ||
        superblock->uuid_tree_generation != superblock->generation)
        return NULL;
    BW_SCOPED(facts) struct facts facts = {0};
    for (size_t i = 0; i < list->roots.count; i++) {
        const struct root_facts *root = &list->roots.items[i];
        BW_TRY(add_root_uuid(&facts, root, BW_UUID_SUBVOLUME, root->uuid));
        BW_TRY(add_root_uuid(&facts, root, BW_UUID_RECEIVED, root->received_uuid));
    }
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, check->fs, &tree->tree, (struct bw_key){0}, BW_KEY_MAX);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        /* The key holds the uuid. */
        const bw_le64 halves[2] = {bw_put64(item->key.objectid), bw_put64(item->key.offset)};
        struct fact fact = {.type = item->key.type, .side = ENTERED};
        if (item->key.type != BW_UUID_SUBVOLUME && item->key.type != BW_UUID_RECEIVED)
            continue; /* items.c reports it */
        memcpy(fact.uuid, halves, BW_UUID_SIZE);
        for (uint32_t at = 0; item->size - at >= sizeof(bw_le64); at += sizeof(bw_le64)) {
            bw_le64 id;
            memcpy(&id, item->data + at, sizeof id);
            fact.id = bw_get64(id);
            BW_TRY(facts_push(&facts, fact));
        }
    }
    BW_TRY(bw_fs_items_error(&items));

    /* Sorted, both sides of a uuid of a subvolume follow each other. */
    facts_sort(&facts, by_uuid_and_side);
    unsigned sides = 0; /* that have the present uuid of the present subvolume */
    for (size_t i = 0; i < facts.count; i++) {
        const struct fact *fact = &facts.items[i];
        sides |= 1u << fact->side;
        if (i + 1 < facts.count && compare_uuids(fact, fact + 1) == 0)
            continue;
        bw_le64 halves[2];
        memcpy(halves, fact->uuid, sizeof halves);
        struct bw_finding location =
            BW_FINDING(BW_TOUCHES_NOTHING, .tree = BW_UUID_TREE,
                       .key = {bw_get64(halves[0]), fact->type, bw_get64(halves[1])});
        /* The links of the subvolume prove its number. */
        const struct fact *other = other_of_uuid(&facts, i);
        const struct fact *want = fact->side == REQUIRED ? fact : other;
        const struct fact *have = fact->side == REQUIRED ? other : fact;
        const struct root_facts *root = other ? root_facts_of(list, want->id) : NULL;
        if (root && (root->links || root->id == BW_TOP_SUBVOLUME) && want->side == REQUIRED &&
            have->side == ENTERED)
            bw_flip_in_item(check, BW_UUID_TREE, &location.row.key, 0, 8, have->id, want->id,
                            &location.flip);
        if ((sides & 1u << REQUIRED) && !(sides & 1u << ENTERED))
            bw_check_find(check, BW_CODE_uuid_missing, &location,
                          "subvolume %" PRIu64 " is not entered", fact->id);
        if (sides == 1u << ENTERED)
            bw_check_find(check, BW_CODE_uuid_extra, &location,
                          "subvolume %" PRIu64 " does not have this uuid", fact->id);
        sides = 0;
    }
    return NULL;
}

/* Lists what the root tree has of subvolumes. */
static struct bw_error *read_root_tree(struct root_list *list)
{
    struct bw_fs *fs = list->check->fs;
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, &fs->root_tree, (struct bw_key){0}, BW_KEY_MAX);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        const struct bw_key *key = &item->key;
        struct bw_cursor cursor = bw_cursor_of(item);
        struct bw_dir_entry entry;
        struct bw_root_ref ref;
        switch (key->type) {
        case BW_ROOT_ITEM: {
            const struct bw_disk_root_item *disk = (const void *)item->data;
            struct bw_root_item root;
            BW_AUTO_ERROR struct bw_error *bad = bw_root_item_decode(item, &root);
            list->relocations += key->objectid == BW_TREE_RELOC;
            if (bad || !bw_is_subvolume_id(key->objectid))
                break;
            const struct bw_key progress = bw_key_decode(&disk->drop_progress);
            struct root_facts facts = {.id = key->objectid,
                                       .key = *key,
                                       .references = root.references,
                                       .is_dropping =
                                           bw_key_compare(&progress, &(struct bw_key){0}) != 0};
            /* Kernels that do not know the newer members leave them unchanged, which the second
             * generation shows. */
            if (item->size >= sizeof *disk &&
                bw_get64(disk->generation) == bw_get64(disk->generation_v2)) {
                memcpy(facts.uuid, disk->uuid, BW_UUID_SIZE);
                memcpy(facts.received_uuid, disk->received_uuid, BW_UUID_SIZE);
            }
            BW_TRY(root_facts_list_push(&list->roots, facts));
            break;
        }

        case BW_ROOT_REF:
        case BW_ROOT_BACKREF: {
            if (!bw_root_ref_decode(item, &ref))
                break;
            struct root_side side = {.parent = key->objectid,
                                     .child = key->offset,
                                     .directory = ref.directory,
                                     .index = ref.index,
                                     .name = list->names.length,
                                     .name_length = ref.name_length};
            if (key->type == BW_ROOT_BACKREF) {
                side.parent = key->offset;
                side.child = key->objectid;
                side.is_backref = true;
            }
            BW_TRY(root_sides_push(&list->sides, side));
            bw_buffer_append(&list->names, ref.name, ref.name_length);
            BW_TRY(bw_buffer_error(&list->names));
            break;
        }

        case BW_ORPHAN_ITEM:
            if (key->objectid == BW_ORPHAN)
                BW_TRY(bw_numbers_push(&list->orphans, key->offset));
            break;
        case BW_TEMPORARY_ITEM:
            list->has_balance |= key->objectid == BW_BALANCE;
            break;
        case BW_DIR_ITEM:
            while (key->objectid == BW_ROOT_TREE_DIR && bw_dir_entry_next(&cursor, &entry))
                if (entry.name_length == 7 && memcmp(entry.name, "default", 7) == 0)
                    list->default_id = entry.location.objectid;
            break;
        }
    }
    return bw_fs_items_error(&items);
}

/* Whether a tree has an item in a range of keys. */
static struct bw_error *has_item(struct bw_fs *fs, const struct bw_tree *tree, struct bw_key first,
                                 struct bw_key last, bool *has)
{
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, fs, tree, first, last);
    *has = bw_fs_items_next(&items) != NULL;
    return bw_fs_items_error(&items);
}

/* mkfs.btrfs makes the data relocation tree with the offset 0, btrfs-convert with the transaction
 * in which it also made the tree's top directory. */
static struct bw_error *check_relocation_key(struct bw_check *check)
{
    const struct bw_listed_tree *tree = bw_tree_list_find(&check->trees, BW_DATA_RELOC_TREE);
    const struct bw_key top = {BW_SUBVOLUME_ROOT_INODE, BW_INODE_ITEM, 0};
    if (!tree || tree->incomplete || !tree->root_key.offset)
        return NULL;
    const uint64_t offset = tree->root_key.offset;
    const struct bw_finding location = root_location(BW_DATA_RELOC_TREE, BW_ROOT_ITEM, offset);
    BW_SCOPED(bw_fs_items) struct bw_fs_items items;
    bw_fs_items_begin(&items, check->fs, &tree->tree, top, top);
    for (const struct bw_item *item; (item = bw_fs_items_next(&items));) {
        struct bw_inode inode;
        if (bw_inode_decode(item, &inode) && inode.generation != offset)
            bw_check_find(check, BW_CODE_relocation_key, &location,
                          "the key has the offset %" PRIu64 ", but transaction %" PRIu64
                          " made the tree",
                          offset, inode.generation);
    }
    return bw_fs_items_error(&items);
}

/* Checks a subvolume: its links and references, items that the inode cache of kernels before 5.11
 * left in it, and whether it was changed after it was received. */
static struct bw_error *check_root(const struct root_list *list, const struct root_facts *root)
{
    struct bw_check *check = list->check;
    const struct bw_finding location = root_location(root->id, BW_ROOT_ITEM, root->key.offset);
    const bool is_top = root->id == BW_TOP_SUBVOLUME;
    if (root->references && !is_top && !root->links)
        bw_check_find(check, BW_CODE_root_unlinked, &location,
                      "no ROOT_REF leads to subvolume %" PRIu64, root->id);
    if (root->links && !root->references)
        bw_check_find(check, BW_CODE_root_references, &location, "deleted, but still linked");
    else if (root->links + is_top > 1 || root->references > 1)
        bw_check_find(check, BW_CODE_root_references, &location,
                      "%u link%s, and %" PRIu32 " reference%s in the root item", root->links,
                      bw_plural(root->links), root->references, bw_plural(root->references));
    if (!root->references && is_top)
        bw_check_find(check, BW_CODE_root_references, &location,
                      "the top-level subvolume is deleted");
    if (!root->references && !is_top && !root->links && !root->has_orphan)
        bw_check_find(check, BW_CODE_root_leaked, &location,
                      "deleted, but without an orphan item: its space is never freed");
    if (root->references && root->is_dropping)
        bw_check_find(check, BW_CODE_root_dropping, &location,
                      "not deleted, but has a drop progress");

    const struct bw_listed_tree *tree = bw_tree_list_find(&check->trees, root->id);
    const struct bw_key first = {BW_FREE_INODE, 0, 0},
                        last = {BW_FREE_INODE, UINT8_MAX, UINT64_MAX};
    const struct bw_finding in_tree = BW_FINDING(BW_TOUCHES_NOTHING, .tree = root->id);
    bool found = false;
    if (tree && !tree->incomplete && !root->is_dropping)
        BW_TRY(has_item(check->fs, &tree->tree, first, last, &found));
    if (found)
        bw_check_find(check, BW_CODE_inode_cache, &in_tree, "left by a kernel before 5.11");

    /* Received subvolumes are read-only. Tools that make one writable remove its received UUID, but
     * the kernel's call does not. */
    const struct bw_subvolume *subvolume = bw_subvolume_by_id(check->fs, root->id);
    struct bw_subvolume_info info;
    bool is_changed = false;
    if (!subvolume || !root->references)
        return NULL;
    BW_AUTO_ERROR struct bw_error *bad = bw_subvolume_get(check->fs, subvolume, &info);
    if (bad)
        return bw_error_tolerate(BW_TAKE(bad));
    BW_TRY(bw_subvolume_is_changed(check->fs, subvolume, &info, &is_changed));
    if (is_changed)
        bw_check_find(check, BW_CODE_received_changed, &location,
                      "subvolume %" PRIu64 " was received in transaction %" PRIu64
                      " and changed up to transaction %" PRIu64,
                      root->id, info.rtransid, info.ctransid);
    return NULL;
}

static void root_list_free(struct root_list *list)
{
    root_facts_list_free(&list->roots);
    root_sides_free(&list->sides);
    bw_numbers_free(&list->orphans);
    bw_buffer_free(&list->names);
}

struct bw_error *bw_pass_roots(struct bw_check *check)
{
    struct bw_fs *fs = check->fs;
    const struct bw_listed_tree *root_tree = bw_tree_list_find(&check->trees, BW_ROOT_TREE);
    BW_SCOPED(root_list) struct root_list list = {.check = check};
    if (!root_tree || root_tree->incomplete)
        return NULL;
    BW_TRY(read_root_tree(&list));
    BW_TRY(check_links(&list));

    /* An orphan of the root tree is a subvolume that is to be deleted, or an inode of the root
     * tree: a free space cache of old kernels. */
    for (size_t i = 0; i < list.orphans.count; i++) {
        const uint64_t id = list.orphans.items[i];
        struct root_facts *root = root_facts_of(&list, id);
        const struct bw_finding location = root_location(BW_ORPHAN, BW_ORPHAN_ITEM, id);
        const struct bw_key key = {id, BW_INODE_ITEM, 0};
        bool is_inode = false;
        if (root && !root->references) {
            root->has_orphan = true;
            continue;
        }
        BW_TRY(has_item(fs, &fs->root_tree, key, key, &is_inode));
        if (!is_inode)
            bw_check_find(check, BW_CODE_root_orphan, &location, "%s",
                          root ? "the subvolume is not deleted" : "the subvolume does not exist");
    }

    for (size_t i = 0; i < list.roots.count && bw_check_should_continue(check, 0); i++)
        BW_TRY(check_root(&list, &list.roots.items[i]));

    const struct root_facts *initial = root_facts_of(&list, list.default_id);
    const struct bw_finding location = BW_FINDING(BW_TOUCHES_NOTHING, .tree = BW_ROOT_TREE);
    if (list.default_id && (!initial || !initial->references))
        bw_check_find(check, BW_CODE_default_lost, &location, "subvolume %" PRIu64 " %s",
                      list.default_id, initial ? "is deleted" : "does not exist");
    if (list.relocations)
        bw_check_find(check, BW_CODE_relocation, NULL, "%" PRIu64 " relocation tree%s, %s",
                      list.relocations, bw_plural(list.relocations),
                      list.has_balance ? "of a balance that was interrupted"
                                       : "and no balance is under way");
    else if (list.has_balance)
        bw_check_find(check, BW_CODE_relocation, NULL, "a balance is paused or was interrupted");
    BW_TRY(check_relocation_key(check));
    return check_uuids(&list);
}
