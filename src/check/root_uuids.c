/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The uuid tree, which finds subvolumes by their uuids: both sides are listed, sorted and compared.
 * It is current only if the superblock says so; otherwise the next mount makes it anew.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "check/roots.h"
#include "ondisk/disk_items.h"
#include "ondisk/items.h"

/* Who says that a uuid is that of a subvolume. */
enum side {
    REQUIRED, /* the root item */
    ALLOWED,  /* that of a subvolume that is being deleted */
    ENTERED,  /* the uuid tree */
};

struct fact {
    uint8_t type;
    enum side side;
    uint8_t uuid[BW_UUID_SIZE];
    uint64_t id;
};

struct facts {
    struct fact *facts;
    size_t count, capacity;
};

static struct bw_error *add(struct facts *facts, const struct fact *fact)
{
    if (!BW_ARRAY_RESERVE(facts->facts, facts->count, facts->capacity))
        return bw_error_no_memory();
    facts->facts[facts->count++] = *fact;
    return NULL;
}

static struct bw_error *add_root(struct facts *facts, const struct bw_root_facts *root,
                                 uint8_t type, const uint8_t uuid[BW_UUID_SIZE])
{
    static const uint8_t none[BW_UUID_SIZE];
    struct fact fact = {
        .type = type, .side = root->references ? REQUIRED : ALLOWED, .id = root->id};
    memcpy(fact.uuid, uuid, BW_UUID_SIZE);
    return memcmp(uuid, none, BW_UUID_SIZE) ? add(facts, &fact) : NULL;
}

/* The key holds the uuid. */
static struct bw_error *take_item(void *context, const struct bw_item *item)
{
    const bw_le64 halves[2] = {bw_put64(item->key.objectid), bw_put64(item->key.offset)};
    struct fact fact = {.type = item->key.type, .side = ENTERED};
    if (item->key.type != BW_UUID_SUBVOLUME && item->key.type != BW_UUID_RECEIVED)
        return NULL; /* items.c reports it */
    memcpy(fact.uuid, halves, BW_UUID_SIZE);
    for (uint32_t at = 0; item->size - at >= sizeof(bw_le64); at += sizeof(bw_le64)) {
        bw_le64 id;
        memcpy(&id, item->data + at, sizeof id);
        fact.id = bw_get64(id);
        struct bw_error *error = add(context, &fact);
        if (error)
            return error;
    }
    return NULL;
}

static int compare_subjects(const struct fact *a, const struct fact *b)
{
    const int order = a->type == b->type ? memcmp(a->uuid, b->uuid, BW_UUID_SIZE)
                                         : (a->type > b->type) - (a->type < b->type);
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

static int compare(const void *first, const void *second)
{
    const struct fact *a = first, *b = second;
    const int order = compare_subjects(a, b);
    return order ? order : (a->side > b->side) - (a->side < b->side);
}

/* Facts about one uuid of one subvolume. */
static void judge(struct bw_check *check, const struct fact *fact, unsigned sides)
{
    bw_le64 halves[2];
    memcpy(halves, fact->uuid, sizeof halves);
    const struct bw_subject subject = {
        .finding = {.known = BW_KNOWN_TREE | BW_KNOWN_KEY,
                    .tree = BW_UUID_TREE,
                    .key = {bw_get64(halves[0]), fact->type, bw_get64(halves[1])}}};
    if ((sides & 1u << REQUIRED) && !(sides & 1u << ENTERED))
        bw_check_find(check, BW_CODE_uuid_missing, &subject, "subvolume %" PRIu64 " is not entered",
                      fact->id);
    if (sides == 1u << ENTERED)
        bw_check_find(check, BW_CODE_uuid_extra, &subject,
                      "subvolume %" PRIu64 " does not have this uuid", fact->id);
}

static void compare_sides(struct bw_check *check, struct facts *facts)
{
    unsigned sides = 0;
    if (facts->count)
        qsort(facts->facts, facts->count, sizeof *facts->facts, compare);
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *fact = &facts->facts[i];
        sides |= 1u << fact->side;
        if (i + 1 < facts->count && compare_subjects(fact, fact + 1) == 0)
            continue;
        judge(check, fact, sides);
        sides = 0;
    }
}

static struct bw_error *list(struct bw_root_book *book, const struct bw_tree *tree,
                             struct facts *facts)
{
    struct bw_error *error = NULL;
    for (size_t i = 0; !error && i < book->root_count; i++) {
        const struct bw_root_facts *root = &book->roots[i];
        error = add_root(facts, root, BW_UUID_SUBVOLUME, root->uuid);
        if (!error)
            error = add_root(facts, root, BW_UUID_RECEIVED, root->received_uuid);
    }
    return error ? error
                 : bw_fs_items(book->check->fs, tree, (struct bw_key){0}, BW_KEY_MAX, take_item,
                               facts);
}

struct bw_error *bw_check_root_uuids(struct bw_root_book *book)
{
    const struct bw_superblock *superblock = &book->check->fs->superblock;
    const struct bw_listed_tree *tree = bw_tree_list_find(&book->check->trees, BW_UUID_TREE);
    struct facts facts = {0};
    if (!tree || tree->incomplete || book->check->fs->is_past ||
        superblock->uuid_tree_generation != superblock->generation)
        return NULL;
    struct bw_error *error = list(book, &tree->tree, &facts);
    if (!error)
        compare_sides(book->check, &facts);
    free(facts.facts);
    return error;
}
