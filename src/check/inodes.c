/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pass `inodes`: what contradicts each other in the inodes of a subvolume, and in their names.
 *
 * Only subvolumes whose inodes do not add up to zero (inode_sums.h) are read again. If several have
 * the same sum, such as snapshots, only the first one is read: the others share its errors. The
 * pass ends with the circles of directories (directories.h).
 *
 * A subvolume is read twice, independent of its size. The first reading checks each item of an
 * inode at once, and adds up the facts that directories and inodes state about each other in
 * buckets by inode, 1.5 MiB of them. The second one collects the facts about the inodes in buckets
 * that do not add up to zero, and checks them name by name. If these take more than 16 MiB, there
 * are several readings. Items whose keys are lost are assumed to exist.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/compare.h"
#include "base/generated.h"
#include "base/human.h"
#include "base/search.h"
#include "base/vector.h"
#include "btree/scan.h"
#include "check/directories.h"
#include "check/flipped.h"
#include "check/inode_sums.h"
#include "fs/inode.h"
#include "ondisk/bit_flip.h"
#include "ondisk/checksum.h"
#include "recovery/recovery.h"

/* The inode whose items are being read. */
struct present_inode {
    uint64_t number; /**< 0: none yet */
    struct bw_inode inode;
    bool has_item;   /**< `inode` is known */
    bool incomplete; /**< some of its items are lost */
    bool has_top_reference;
    bool overlaps;                    /**< that was reported */
    uint64_t extents, entries;        /**< how many items it has of these */
    uint64_t item_names, index_names; /**< bytes of the names in it, as a directory */
    uint64_t bytes, end, gap;         /**< of its extents; no gap: UINT64_MAX */
    uint64_t stored;                  /**< in them; see struct bw_extent_fact */
    uint64_t nul;                     /**< position of the first NUL in its inline extents */
};

/* A fact that an item states about an inode, kept until all facts about the inode are known. */
struct name_record {
    uint64_t inode;
    uint64_t directory; /**< of a name */
    uint64_t name;      /**< its hash; 0: this is about the inode itself */
    uint64_t value;     /**< index of the name; links of the inode */
    uint32_t name_hash; /**< as in the key of a DIR_ITEM */
    uint8_t kind;       /**< enum record_kind */
    uint8_t type;       /**< of the file */
    bool is_subvolume;  /**< the entry leads to one: `inode` is its id */
    bool is_extended;   /**< the reference is an INODE_EXTREF */
    uint16_t name_length;
    uint16_t offset; /**< of the name in its item */
};

enum record_kind {
    RECORD_INODE,     /**< INODE_ITEM */
    RECORD_HEADLESS,  /**< it has items, but no INODE_ITEM */
    RECORD_ORPHAN,    /**< ORPHAN_ITEM */
    RECORD_ITEM,      /**< DIR_ITEM */
    RECORD_INDEX,     /**< DIR_INDEX */
    RECORD_REFERENCE, /**< INODE_REF or INODE_EXTREF */
};

BW_VECTOR(name_records, struct name_record);

/* A subvolume that is being looked at. */
struct examination {
    struct bw_check *check;
    const struct bw_listed_tree *tree;
    uint64_t more_subvolumes;      /**< with the same rest */
    struct bw_lost_ranges lost;    /**< keys that could not be read */
    struct bw_lost_list lost_list; /**< the same, once all are known */
    struct bw_key lost_end;        /**< the greatest of them so far, exclusive */
    struct present_inode present;
    bool collecting;                   /**< this is not the first reading */
    uint64_t *sums;                    /**< of the buckets */
    uint32_t *counts;                  /**< records in each bucket */
    uint32_t first_bucket, end_bucket; /**< that are being collected */
    struct name_records records;
    struct bw_numbers orphans; /**< inodes with an ORPHAN_ITEM, ascending; from the first reading */
};

enum {
    BUCKETS = 1 << 17,
    MOST_NAMES = 1000,      /* of an inode that are compared with a name that is not complete */
    MOST_RECORDS = 1 << 18, /* of 48 bytes, unless a single bucket has more */
};

/* The location of a finding about an inode of the tree, and an item of it. */
static struct bw_finding inode_location(const struct examination *examination, uint64_t inode,
                                        struct bw_key key)
{
    return BW_FINDING(BW_TOUCHES_INODE, .tree = examination->tree->tree.id, .key = key,
                      .inode = inode, .more_subvolumes = examination->more_subvolumes);
}

/* The flipped bit that explains the wrong member of an INODE_ITEM, compared with the other items of
 * the inode. Some of these may be missing if the leaf ends with them. */
static void find_flip_in_inode(const struct examination *examination, uint64_t inode,
                               uint32_t offset, unsigned width, uint64_t have, uint64_t want,
                               struct bw_flip *flip)
{
    const uint64_t tree = examination->tree->tree.id;
    const struct bw_key key = {inode, BW_INODE_ITEM, 0};
    if (!bw_may_lack_items(examination->check, tree, &key))
        bw_flip_in_item(examination->check, tree, &key, offset, width, have, want, flip);
}

/* Whether any key in a range, both ends included, is lost. */
static bool is_lost(const struct examination *examination, struct bw_key first, struct bw_key last)
{
    return bw_lost_list_overlaps(&examination->lost_list, &first, &last, 0);
}

/* Counts a fact about an inode, or collects it if its bucket is being examined. `fact` is the
 * fact's contribution to the bucket. */
static struct bw_error *enter_record(struct examination *examination,
                                     const struct name_record *record, uint64_t fact)
{
    const uint64_t hash =
        bw_fact_of_inode(&examination->check->secrets, record->inode, BW_FACT_LINK);
    const uint32_t bucket = (uint32_t)(hash >> 32) % BUCKETS;
    if (!examination->collecting) {
        examination->sums[bucket] += fact;
        examination->counts[bucket]++;
        return NULL;
    }
    if (bucket < examination->first_bucket || bucket >= examination->end_bucket ||
        !examination->sums[bucket])
        return NULL;
    return name_records_push(&examination->records, *record);
}

static struct bw_error *add_lost_keys(struct examination *examination,
                                      const struct bw_lost_range *range)
{
    struct present_inode *present = &examination->present;
    present->incomplete |= range->low.objectid <= present->number;
    if (bw_key_compare(&range->high, &examination->lost_end) > 0)
        examination->lost_end = range->high;
    return examination->collecting ? NULL : bw_lost_ranges_push(&examination->lost, *range);
}

/* Notes that an item cannot be read: nothing may be concluded from its absence. */
static struct bw_error *add_lost_item(struct examination *examination, const struct bw_key *key)
{
    struct bw_lost_range range = {.bytenr = BW_NO_BLOCK, .low = *key, .high = *key};
    range.high.offset++;
    range.high.type = (uint8_t)(key->type + !range.high.offset);
    return add_lost_keys(examination, &range);
}

/*
 * The items of one inode, which follow each other: that there is an INODE_ITEM, what sizes they add
 * up to, and whether its extents follow each other. If some of them are lost, nothing is reported.
 */

#define NONE UINT64_MAX

/* No extent of a file is longer. Preallocated ones are, with up to 256 MiB. */
#define LONGEST_EXTENT (UINT64_C(1) << 30)

static struct bw_error *add_file_extent(struct examination *examination, const struct bw_item *item)
{
    struct present_inode *present = &examination->present;
    struct bw_extent_fact fact;
    if (!bw_extent_fact_of(item, examination->check->fs->superblock.sectorsize, &fact))
        return add_lost_item(examination, &item->key);
    present->extents++;
    if (item->key.offset < present->end && !present->overlaps && !examination->collecting) {
        const struct bw_finding location = inode_location(examination, present->number, item->key);
        bw_check_find(examination->check, BW_CODE_file_overlap, &location,
                      "begins before %" PRIu64 ", where the previous extent ends", present->end);
    }
    present->overlaps |= item->key.offset < present->end;
    if (item->key.offset > present->end && present->gap == NONE)
        present->gap = present->end;
    present->end = fact.end > present->end ? fact.end : present->end;
    present->bytes += fact.bytes;
    if (present->nul == NONE)
        present->nul = bw_stored_nul(examination->check->fs, item, fact.stored);
    present->stored += fact.stored;
    return NULL;
}

/* Reads an item of an inode, or an ORPHAN_ITEM: adds it to the facts about its inode, and enters a
 * record for each inode and name that it mentions. */
static struct bw_error *read_item(struct examination *examination, const struct bw_item *item)
{
    const struct bw_fact_secrets *secrets = &examination->check->secrets;
    struct present_inode *present = &examination->present;
    const uint64_t number = item->key.objectid;
    const bool is_index = item->key.type == BW_DIR_INDEX;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct name_record record = {.inode = number};
    struct bw_dir_entry entry;
    struct bw_inode_ref ref;
    uint64_t fact;
    switch (item->key.type) {
    case BW_INODE_ITEM:
        present->has_item = bw_inode_decode(item, &present->inode);
        if (!present->has_item)
            return add_lost_item(examination, &item->key);
        present->inode.size = bw_inode_stored_size(item);
        record.kind = RECORD_INODE;
        record.value = present->inode.link_count;
        record.type = bw_file_type_of_mode(present->inode.mode);
        fact = bw_names_of(number, &present->inode) *
               bw_fact_of_inode(secrets, number, BW_FACT_LINK + record.type);
        if (!present->inode.link_count)
            fact += bw_fact_of_inode(secrets, number, BW_FACT_ORPHAN);
        return enter_record(examination, &record, -fact);

    case BW_INODE_REF:
    case BW_INODE_EXTREF:
        while (bw_inode_ref_next(&cursor, &item->key, &ref)) {
            if (bw_is_top_reference(number, &ref)) {
                present->has_top_reference |= item->key.type == BW_INODE_REF;
                continue;
            }
            record = (struct name_record){
                .inode = number,
                .directory = ref.parent,
                .name = bw_fact_name(secrets, ref.parent, ref.name, ref.name_length) | 1,
                .value = ref.index,
                .name_hash = bw_name_hash(ref.name, ref.name_length),
                .kind = RECORD_REFERENCE,
                .is_extended = item->key.type == BW_INODE_EXTREF,
                .name_length = (uint16_t)ref.name_length,
                .offset = (uint16_t)(ref.name - item->data)};
            fact = bw_fact_reference(secrets, record.name, ref.index, number);
            BW_TRY(enter_record(examination, &record, -fact));
        }
        return bw_cursor_bad(&cursor) ? add_lost_item(examination, &item->key) : NULL;

    case BW_DIR_ITEM:
    case BW_DIR_INDEX:
        present->entries++;
        while (bw_dir_entry_next(&cursor, &entry)) {
            *(is_index ? &present->index_names : &present->item_names) += entry.name_length;
            record = (struct name_record){
                .inode = entry.location.objectid,
                .directory = number,
                .name = bw_fact_name(secrets, number, entry.name, entry.name_length) | 1,
                .value = item->key.offset,
                .name_hash = bw_name_hash(entry.name, entry.name_length),
                .kind = is_index ? RECORD_INDEX : RECORD_ITEM,
                .type = entry.type,
                .is_subvolume = !bw_is_inode_entry(&entry),
                .name_length = (uint16_t)entry.name_length,
                .offset = (uint16_t)(entry.name - item->data)};
            fact = bw_fact_entry(secrets, record.name, &entry);
            if (is_index)
                fact = -fact;
            if (is_index && !record.is_subvolume)
                fact += bw_fact_reference(secrets, record.name, record.value, record.inode) +
                        bw_fact_of_inode(secrets, record.inode, BW_FACT_LINK + entry.type);
            BW_TRY(enter_record(examination, &record, fact));
        }
        return bw_cursor_bad(&cursor) ? add_lost_item(examination, &item->key) : NULL;

    case BW_EXTENT_DATA:
        return add_file_extent(examination, item);

    case BW_ORPHAN_ITEM:
        if (number == BW_ORPHAN && !examination->collecting)
            BW_TRY(bw_numbers_push(&examination->orphans, item->key.offset));
        record = (struct name_record){.inode = item->key.offset, .kind = RECORD_ORPHAN};
        fact = bw_fact_of_inode(secrets, record.inode, BW_FACT_ORPHAN);
        return enter_record(examination, &record, fact);
    }
    return NULL;
}

/* Whether a wrong byte count is the fault of the inode, and not of an extent whose length is wrong:
 * the extents cover the file exactly, or no length of an extent makes such a difference. */
static bool are_extents_right(const struct examination *examination)
{
    const struct present_inode *present = &examination->present;
    const uint64_t mask = examination->check->fs->superblock.sectorsize - 1;
    const uint64_t have = present->inode.bytes, want = present->bytes;
    const uint64_t covered = (present->inode.size + mask) & ~mask;
    if (!present->overlaps && present->gap == NONE && present->end == covered &&
        (!(want & mask) || want == present->inode.size))
        return true;
    if (want && !(want & mask) && (have ^ want) <= mask)
        return true;
    return have > want && have - want > LONGEST_EXTENT;
}

/* The flipped bit in the size of a file that ends before it. Without it, the file ends with its
 * last extent. */
static void find_flip_in_size(struct examination *examination, struct bw_flip *flip)
{
    const struct present_inode *present = &examination->present;
    const uint64_t mask = examination->check->fs->superblock.sectorsize - 1;
    uint64_t want = 0;
    unsigned found = 0;
    for (unsigned bit = 0; bit < 63; bit++) {
        const uint64_t size = present->inode.size ^ UINT64_C(1) << bit;
        if (present->gap != NONE || ((size + mask) & ~mask) != present->end)
            continue;
        want = size;
        found++;
    }
    if (found == 1)
        find_flip_in_inode(examination, present->number, offsetof(struct bw_disk_inode_item, size),
                           8, present->inode.size, want, flip);
}

/* Checks what the extents of a file or a symbolic link add up to. */
static void check_file(struct examination *examination, const struct bw_finding *location)
{
    struct bw_check *check = examination->check;
    const struct present_inode *present = &examination->present;
    const struct bw_inode *inode = &present->inode;
    const uint8_t type = bw_file_type_of_mode(inode->mode);
    const uint64_t size = bw_covered_size(check->fs, inode, type);
    const uint64_t gap = present->gap < present->end ? present->gap : present->end;
    const uint32_t size_offset = offsetof(struct bw_disk_inode_item, size);
    const uint32_t bytes_offset = offsetof(struct bw_disk_inode_item, bytes);

    /* While an inode without links is being deleted, over several transactions, its extents
     * disappear and the number remains. */
    if (inode->link_count ? present->bytes != inode->bytes : present->bytes > inode->bytes) {
        struct bw_finding finding = *location;
        if (are_extents_right(examination))
            find_flip_in_inode(examination, present->number, bytes_offset, 8, inode->bytes,
                               present->bytes, &finding.flip);
        bw_check_find(check, BW_CODE_file_bytes, &finding,
                      "bytes wrong, want %" PRIu64 " have %" PRIu64, present->bytes, inode->bytes);
    }
    if (bw_has_wrong_target(inode, type)) {
        struct bw_finding finding = *location;
        if (present->bytes == inode->bytes)
            find_flip_in_inode(examination, present->number, size_offset, 8, inode->size,
                               present->bytes, &finding.flip);
        bw_check_find(check, BW_CODE_link_size, &finding,
                      "size of a symbolic link wrong, want %" PRIu64 " have %" PRIu64,
                      present->bytes, inode->size);
    }
    if (present->stored > bw_most_stored(inode, type)) {
        struct bw_finding finding = *location;
        if (present->stored == inode->bytes)
            find_flip_in_inode(examination, present->number, size_offset, 8, inode->size,
                               present->stored, &finding.flip);
        bw_check_find(check, BW_CODE_file_size, &finding,
                      "size %" PRIu64 ", but %" PRIu64 " byte%s stored", inode->size,
                      present->stored, present->stored == 1 ? " is" : "s are");
    }
    if (type == BW_FILE_SYMLINK && present->end < size)
        bw_check_find(check, BW_CODE_link_target, location, "a symbolic link without a target");
    else if (type == BW_FILE_SYMLINK && present->nul < size && !check->fs->no_data) /* btrfs-image
                                                                                       overwrites
                                                                                       targets with
                                                                                       zeros */
        bw_check_find(check, BW_CODE_link_target, location,
                      "the target of a symbolic link has a NUL at %" PRIu64 " of %" PRIu64 " bytes",
                      present->nul, inode->size);
    if (type == BW_FILE_REGULAR && gap < size) {
        struct bw_finding finding = *location;
        if (present->bytes == inode->bytes)
            find_flip_in_size(examination, &finding.flip);
        bw_check_find(check, BW_CODE_file_gap, &finding,
                      "no extent at %" PRIu64 " of %" PRIu64 " bytes", gap, size);
    }
}

/* The inode has no more items: checks them against its INODE_ITEM, in the first reading. */
static struct bw_error *end_inode(struct examination *examination)
{
    struct bw_check *check = examination->check;
    const struct present_inode *present = &examination->present;
    const struct bw_inode *inode = &present->inode;
    const struct bw_finding location = inode_location(
        examination, present->number, (struct bw_key){present->number, BW_INODE_ITEM, 0});
    if (!present->number || present->incomplete)
        return NULL;
    if (!present->has_item) {
        const struct name_record headless = {.inode = present->number, .kind = RECORD_HEADLESS};
        if (!examination->collecting)
            bw_check_find(check, BW_CODE_inode_missing, &location,
                          "it has items, but no INODE_ITEM");
        return enter_record(examination, &headless, 0);
    }
    if (examination->collecting)
        return NULL;

    /* The sum of a directory also differs if one side lacks an entry: that is found by its name. */
    const uint8_t type = bw_file_type_of_mode(inode->mode);
    if (type == BW_FILE_DIRECTORY && inode->size != present->item_names * 2 &&
        inode->size != present->index_names * 2) {
        const uint64_t want = present->item_names + present->index_names;
        struct bw_finding finding = location;
        if (present->item_names == present->index_names)
            find_flip_in_inode(examination, present->number,
                               offsetof(struct bw_disk_inode_item, size), 8, inode->size, want,
                               &finding.flip);
        bw_check_find(check, BW_CODE_directory_size, &finding,
                      "directory size wrong, want %" PRIu64 " have %" PRIu64, want, inode->size);
    }
    if (type == BW_FILE_DIRECTORY && present->number == BW_SUBVOLUME_ROOT_INODE &&
        !present->has_top_reference)
        bw_check_find(check, BW_CODE_inode_ref_missing, &location,
                      "the top directory has no reference to itself");

    /* Extents and entries belong only to some types. */
    if (bw_has_extents(type))
        check_file(examination, &location);
    else if (bw_bytes_to_count(present->number, inode) && !present->extents) {
        struct bw_finding finding = location;
        find_flip_in_inode(examination, present->number, offsetof(struct bw_disk_inode_item, bytes),
                           8, inode->bytes, 0, &finding.flip);
        bw_check_find(check, BW_CODE_file_bytes, &finding, "%s of %" PRIu64 " bytes",
                      bw_file_type_name(type), inode->bytes);
    }
    if (present->extents && !bw_has_extents(type))
        bw_check_find(check, BW_CODE_inode_items, &location, "%s has file extents",
                      bw_file_type_name(type));
    else if (present->entries && type != BW_FILE_DIRECTORY)
        bw_check_find(check, BW_CODE_inode_items, &location, "%s has directory entries",
                      bw_file_type_name(type));
    return NULL;
}

/*
 * Names: a directory has each of them twice (DIR_ITEM, DIR_INDEX) and the inode once (INODE_REF or
 * INODE_EXTREF); and the link count of the inode. Items whose keys are lost are assumed to exist.
 */

/* The facts about one name of an inode. */
struct name {
    const struct name_record *item, *index, *reference; /* NULL: no such item */
    const struct name_record *any;
    unsigned items, indexes, references;
};

/* The facts about one inode. */
struct inode {
    uint64_t number;
    const struct name_record *item; /* NULL: no such item */
    bool has_items, is_orphan, is_subvolume;
    uint64_t names;      /* names found in any item */
    uint64_t complete;   /* that all agree on */
    struct bw_flip flip; /* that explains why the last name lacks items */
};

static bool references_lost(const struct examination *examination, uint64_t inode)
{
    return is_lost(examination, (struct bw_key){inode, BW_INODE_REF, 0},
                   (struct bw_key){inode, BW_INODE_EXTREF, UINT64_MAX});
}

static struct bw_key item_key(const struct name *name)
{
    return (struct bw_key){name->any->directory, BW_DIR_ITEM, name->any->name_hash};
}

static struct bw_key index_key(const struct name *name)
{
    const struct name_record *known = name->index ? name->index : name->reference;
    return (struct bw_key){name->any->directory, BW_DIR_INDEX, known ? known->value : 0};
}

/* The location of a finding about a name: its path is read from an item that has it. */
static struct bw_finding name_location(const struct examination *examination,
                                       const struct name *name, struct bw_key key)
{
    struct bw_finding location = inode_location(examination, name->any->inode, key);
    location.touches = BW_TOUCHES_NAME;
    location.end_key = (struct bw_key){name->any->inode, BW_INODE_REF, name->any->directory};
    if (name->index)
        location.end_key = index_key(name);
    else if (name->item)
        location.end_key = item_key(name);
    return location;
}

/*
 * A name that some of its items lack. If one item has a flipped bit, its record stands elsewhere:
 * with another name of the same inode, whose hash then names the bit, or with the same name of an
 * inode or in a directory whose number differs in one bit. A subvolume has only
 * two entries here: an entry that leads to an existing subvolume is right.
 */

/* The records of one name, which follow each other. */
static struct name name_of(const struct name_record *records, size_t count)
{
    struct name name = {.any = &records[0]};
    for (size_t i = 0; i < count; i++) {
        const struct name_record *record = &records[i];
        if (record->kind == RECORD_ITEM) {
            name.item = record;
            name.items++;
        } else if (record->kind == RECORD_INDEX) {
            name.index = record;
            name.indexes++;
        } else {
            name.reference = record;
            name.references++;
        }
    }
    return name;
}

static bool is_same_name(const struct name_record *a, const struct name_record *b)
{
    return a->directory == b->directory && a->name == b->name;
}

static int by_name(const void *first, const void *second)
{
    const struct name_record *a = first, *b = second;
    const uint64_t left[] = {a->is_subvolume, a->inode, a->name != 0,
                             a->directory,    a->name,  a->value};
    const uint64_t right[] = {b->is_subvolume, b->inode, b->name != 0,
                              b->directory,    b->name,  b->value};
    return BW_COMPARE_ALL(left, right);
}

static unsigned count_records(const struct name *name)
{
    return name->items + name->indexes + name->references;
}

/* Whether the only record of one name is what the other name lacks. */
static bool completes(const struct name *name, const struct name_record *record)
{
    const unsigned references = !record->is_subvolume;
    switch (record->kind) {
    case RECORD_ITEM:
        return !name->items && name->indexes == 1 && name->references == references;
    case RECORD_INDEX:
        return name->items == 1 && !name->indexes && name->references == references &&
               (!references || record->value == name->reference->value);
    case RECORD_REFERENCE:
        return name->items == 1 && name->indexes == 1 && !name->references &&
               record->value == name->index->value;
    default:
        return false;
    }
}

/* Two names of which one has a single record that the other one lacks. With names of the same
 * inode, the difference of their hashes leads to the bit in the name, or the key of a reference has
 * another directory; otherwise an entry should lead to the other inode. */
static void find_flip_between(const struct examination *examination, const struct name *name,
                              const struct name *other, struct bw_flip *flip)
{
    struct bw_check *check = examination->check;
    const uint64_t tree = examination->tree->tree.id;
    const struct name_record *wrong = other->any, *right = name->any;
    const bool is_kept = wrong->is_subvolume && bw_tree_list_find(&check->trees, wrong->inode);
    if (count_records(other) != 1 || !completes(name, wrong) || is_kept) {
        wrong = name->any;
        right = other->any;
        if (count_records(name) != 1 || !completes(other, wrong))
            return;
    }
    if (wrong->is_subvolume && (bw_tree_list_find(&check->trees, wrong->inode) ||
                                !bw_tree_list_find(&check->trees, right->inode)))
        return;
    /* An INODE_EXTREF has the hash of its name: `name-hash` names the bit. */
    if (wrong->is_extended)
        return;
    struct bw_key key = {wrong->directory, BW_DIR_INDEX, wrong->value};
    if (wrong->directory != right->directory) {
        key = (struct bw_key){wrong->inode, BW_INODE_REF, wrong->directory};
        const struct bw_key want = {wrong->inode, BW_INODE_REF, right->directory};
        if (wrong->kind == RECORD_REFERENCE && wrong->name_hash == right->name_hash &&
            wrong->name_length == right->name_length)
            bw_flip_in_key(check, tree, &key, &want, flip);
    } else if (wrong->inode == right->inode) {
        const uint32_t difference = wrong->name_hash ^ right->name_hash;
        struct bw_bit_flip place;
        if (wrong->kind == RECORD_REFERENCE)
            key = (struct bw_key){wrong->inode, BW_INODE_REF, wrong->directory};
        if (wrong->kind != RECORD_ITEM && wrong->name_length == right->name_length && difference &&
            bw_crc32c_find_flip(difference, wrong->name_length, &place) && !place.in_checksum)
            bw_flip_bit_of_item(check, tree, &key, wrong->offset + place.byte, place.bit, flip);
    } else if (wrong->kind != RECORD_REFERENCE) {
        if (wrong->kind == RECORD_ITEM)
            key = (struct bw_key){wrong->directory, BW_DIR_ITEM, wrong->name_hash};
        bw_flip_in_item(check, tree, &key,
                        wrong->offset - (uint32_t)sizeof(struct bw_disk_dir_item), 8, wrong->inode,
                        right->inode, flip);
    }
}

/* The end of the records of the name that begin at a record. */
static size_t end_of_name(const struct name_records *records, size_t begin)
{
    const struct name_record *first = &records->items[begin];
    size_t end = begin + 1;
    while (end < records->count && records->items[end].inode == first->inode &&
           records->items[end].is_subvolume == first->is_subvolume &&
           is_same_name(first, &records->items[end]))
        end++;
    return end;
}

/* The flipped bit between a name and another one of the same inode in a directory. Adds to `*tries`
 * how many were compared. */
static void find_flip_in_directory(const struct examination *examination, const struct name *name,
                                   uint64_t directory, unsigned *tries, struct bw_flip *flip)
{
    const struct name_records *records = &examination->records;
    const struct name_record *any = name->any;
    size_t i =
        BW_FIRST_INDEX(k, records->count,
                       records->items[k].is_subvolume > any->is_subvolume ||
                           (records->items[k].is_subvolume == any->is_subvolume &&
                            (records->items[k].inode > any->inode ||
                             (records->items[k].inode == any->inode && records->items[k].name &&
                              records->items[k].directory >= directory))));
    for (size_t end; !flip->found && i < records->count && *tries < MOST_NAMES; i = end, ++*tries) {
        const struct name_record *first = &records->items[i];
        if (first->inode != any->inode || first->is_subvolume != any->is_subvolume ||
            first->directory != directory)
            break;
        end = end_of_name(records, i);
        const struct name other = name_of(first, end - i);
        if (!is_same_name(first, any))
            find_flip_between(examination, name, &other, flip);
    }
}

/* The flipped bit that explains why a name lacks items. */
static void find_flip_of_name(const struct examination *examination, const struct name *name,
                              struct bw_flip *flip)
{
    const struct name_records *records = &examination->records;
    struct name_record wanted = *name->any;
    unsigned tries = 0;
    wanted.value = 0;
    find_flip_in_directory(examination, name, wanted.directory, &tries, flip);

    /* The same name of an inode, or in a directory, whose number differs in one bit. */
    for (unsigned bit = 0; !flip->found && bit < 64; bit++) {
        wanted.inode = name->any->inode ^ UINT64_C(1) << bit;
        const size_t i =
            BW_FIRST_INDEX(k, records->count, by_name(&records->items[k], &wanted) >= 0);
        const struct name_record *first = &records->items[i];
        if (i < records->count && first->inode == wanted.inode &&
            first->is_subvolume == wanted.is_subvolume && is_same_name(first, &wanted)) {
            const struct name other = name_of(first, end_of_name(records, i) - i);
            find_flip_between(examination, name, &other, flip);
        }
        if (!flip->found)
            find_flip_in_directory(examination, name, name->any->directory ^ UINT64_C(1) << bit,
                                   &tries, flip);
    }
}

/* The flipped bit in the index of a reference: the DIR_INDEX would be out of order with it. */
static void find_flip_in_index(const struct examination *examination, const struct name *name,
                               struct bw_flip *flip)
{
    const uint64_t tree = examination->tree->tree.id;
    const struct name_record *reference = name->reference, *index = name->index;
    const struct bw_key have = {index->directory, BW_DIR_INDEX, index->value};
    const struct bw_key other = {index->directory, BW_DIR_INDEX, reference->value};
    const struct bw_key key = {reference->inode, BW_INODE_REF, reference->directory};
    if (!bw_key_may_be(examination->check, tree, &have, &other))
        bw_flip_in_item(examination->check, tree, &key,
                        reference->offset - (uint32_t)sizeof(struct bw_disk_inode_ref), 8,
                        reference->value, index->value, flip);
}

/* The flipped bit in the type of a file: in an entry if the other one and the inode agree, or in
 * the mode if both entries agree. */
static void find_flip_in_type(const struct examination *examination, const struct inode *inode,
                              const struct name *name, const struct name_record *wrong,
                              struct bw_flip *flip)
{
    struct bw_check *check = examination->check;
    const struct bw_tree *tree = &examination->tree->tree;
    const struct name_record *right = wrong == name->item ? name->index : name->item;
    if (!inode->item || !right)
        return;
    if (right->type == inode->item->type) {
        const struct bw_key key = wrong == name->item ? item_key(name) : index_key(name);
        bw_flip_in_item(check, tree->id, &key, wrong->offset - 1, 1, wrong->type, right->type,
                        flip);
        return;
    }
    if (right->type != wrong->type || !bw_flip_may_search(check))
        return;
    /* No permissions at all: more than a bit is lost. */
    struct bw_inode have;
    BW_AUTO_ERROR struct bw_error *error = bw_inode_read(check->fs, tree, inode->number, &have);
    if (bw_check_lacks_memory(check, error) || error || !(have.mode & ~(uint32_t)S_IFMT))
        return;
    const struct bw_key key = {inode->number, BW_INODE_ITEM, 0};
    for (uint32_t bit = 1 << 12; bit & S_IFMT; bit <<= 1) {
        const uint32_t want = have.mode ^ bit;
        if (bw_file_type_of_mode(want) == right->type)
            bw_flip_in_item(check, tree->id, &key, offsetof(struct bw_disk_inode_item, mode), 4,
                            have.mode, want, flip);
    }
}

/* Checks that all items with a name agree, and counts it. */
static void check_name(struct examination *examination, struct inode *inode,
                       const struct name *name)
{
    struct bw_check *check = examination->check;
    const uint64_t directory = name->any->directory;
    const bool has_all = name->item && name->index && (name->reference || inode->is_subvolume);
    struct bw_flip flip = {0};
    if (!has_all)
        find_flip_of_name(examination, name, &flip);
    inode->flip = flip;
    inode->names++;
    inode->complete += has_all;

    /* The two entries of the directory. */
    const struct bw_key item = item_key(name), index = index_key(name);
    const struct bw_key last_index = {index.objectid, index.type,
                                      name->reference ? index.offset : UINT64_MAX};
    const bool no_item = !name->item && !is_lost(examination, item, item);
    const bool no_index = !name->index && !is_lost(examination, index, last_index);
    struct bw_finding location = name_location(examination, name, no_item ? item : index);
    if (no_item || no_index) {
        const char *missing = "DIR_INDEX";
        if (no_item)
            missing = no_index ? "DIR_ITEM and no DIR_INDEX" : "DIR_ITEM";
        location.flip = flip;
        bw_check_find(check, BW_CODE_entry_missing, &location,
                      "a name in directory %" PRIu64 " has no %s", directory, missing);
        location.flip.found = false;
    }
    if (name->indexes > 1 && name->items < 2) /* the pass `trees` finds two in a DIR_ITEM */
        bw_check_find(check, BW_CODE_entry_duplicate, &location,
                      "a name is in directory %" PRIu64 " more than once", directory);

    /* Their type must be the type of the inode or, if that is unknown, the same in both. */
    const struct name_record *right = inode->item ? inode->item : name->item;
    const struct name_record *wrong = name->index ? name->index : name->item;
    const uint8_t want = right ? right->type : 0;
    if (name->item && name->item->type != want)
        wrong = name->item;
    if (wrong && wrong->type != want && (inode->item || (name->item && name->index)) &&
        (!inode->is_subvolume || has_all)) {
        location = name_location(examination, name, wrong == name->item ? item : index);
        find_flip_in_type(examination, inode, name, wrong, &location.flip);
        bw_check_find(check, BW_CODE_entry_type, &location,
                      "type of a directory entry wrong, want %s have %s", bw_file_type_name(want),
                      bw_file_type_name(wrong->type));
    }
    if (inode->is_subvolume)
        return;

    /* The reference of the inode. */
    location =
        name_location(examination, name, (struct bw_key){inode->number, BW_INODE_REF, directory});
    if (name->references > 1)
        bw_check_find(check, BW_CODE_inode_ref_duplicate, &location,
                      "a name in directory %" PRIu64 " has more than one INODE_REF", directory);
    if (!name->reference && inode->item && !references_lost(examination, inode->number)) {
        location.flip = flip;
        bw_check_find(check, BW_CODE_inode_ref_missing, &location,
                      "a name in directory %" PRIu64 " has no INODE_REF", directory);
    } else if (name->references == 1 && name->indexes == 1 &&
               name->reference->value != name->index->value) {
        find_flip_in_index(examination, name, &location.flip);
        bw_check_find(check, BW_CODE_entry_index, &location,
                      "index of a name in directory %" PRIu64 " wrong, want %" PRIu64
                      " have %" PRIu64,
                      directory, name->index->value, name->reference->value);
    }
}

/* Whether a name is a DIR_INDEX that was left when a directory and the inode were both unlinked.
 * The next mount deletes both, with all their items. */
static bool is_being_deleted(const struct examination *examination, const struct inode *inode,
                             const struct name *name)
{
    if (name->item || name->reference || !inode->is_orphan || !inode->item || inode->item->value)
        return false;
    const uint64_t *orphans = examination->orphans.items, directory = name->any->directory;
    const size_t i = BW_FIRST_INDEX(k, examination->orphans.count, orphans[k] >= directory);
    return i < examination->orphans.count && orphans[i] == directory;
}

/* Reports the faults in the collected facts: sorted, the facts about an inode follow each other,
 * first those about itself, then name by name. */
static void check_names(struct examination *examination)
{
    struct name_records *records = &examination->records;
    name_records_sort(records, by_name);
    for (size_t i = 0; i < records->count;) {
        struct inode inode = {.number = records->items[i].inode,
                              .is_subvolume = records->items[i].is_subvolume};
        for (; i < records->count && records->items[i].inode == inode.number &&
               records->items[i].is_subvolume == inode.is_subvolume && !records->items[i].name;
             i++) {
            const struct name_record *record = &records->items[i];
            if (record->kind == RECORD_INODE)
                inode.item = record;
            inode.has_items |= record->kind == RECORD_HEADLESS;
            inode.is_orphan |= record->kind == RECORD_ORPHAN;
        }
        while (i < records->count && records->items[i].inode == inode.number &&
               records->items[i].is_subvolume == inode.is_subvolume) {
            const size_t end = end_of_name(records, i);
            const struct name name = name_of(&records->items[i], end - i);
            if (!is_being_deleted(examination, &inode, &name))
                check_name(examination, &inode, &name);
            i = end;
        }
        if (inode.is_subvolume)
            continue;

        /* Its INODE_ITEM and links. */
        const struct bw_key key = {inode.number, BW_INODE_ITEM, 0};
        const struct bw_key orphan = {BW_ORPHAN, BW_ORPHAN_ITEM, inode.number};
        struct bw_finding location = inode_location(examination, inode.number, key);
        if (!inode.item) {
            if (inode.names == 1)
                location.flip = inode.flip;
            if (inode.names && !inode.has_items && !is_lost(examination, key, key))
                bw_check_find(examination->check, BW_CODE_inode_missing, &location,
                              "it has names, but no INODE_ITEM");
            continue;
        }
        const uint64_t links = inode.item->value;
        const uint64_t top = inode.number == BW_SUBVOLUME_ROOT_INODE;
        const uint64_t want = inode.names + top, least = inode.complete + top;
        if ((links < least || links > want) && !references_lost(examination, inode.number)) {
            if (least == want)
                find_flip_in_inode(examination, inode.number,
                                   offsetof(struct bw_disk_inode_item, link_count), 4, links, want,
                                   &location.flip);
            bw_check_find(examination->check, BW_CODE_link_count, &location,
                          "link count wrong, want %" PRIu64 " have %" PRIu64, want, links);
        } else if (!links && !inode.is_orphan && !is_lost(examination, orphan, orphan)) {
            bw_check_find(examination->check, BW_CODE_orphan_missing, &location,
                          "it has no links and no ORPHAN_ITEM");
        }
    }
}

/* Reading the tree. */

static struct bw_error *on_leaf(struct examination *examination, const struct bw_node *leaf)
{
    /* If keys are out of order, which has been reported, it is not known where the items belong. */
    bool in_order = true;
    for (uint32_t slot = 1; slot < leaf->item_count; slot++) {
        const struct bw_key last = bw_leaf_key(leaf, slot - 1), key = bw_leaf_key(leaf, slot);
        in_order &= bw_key_compare(&last, &key) < 0;
    }
    if (!in_order) {
        struct bw_lost_range range = {.bytenr = BW_NO_BLOCK,
                                      .low = bw_leaf_key(leaf, 0),
                                      .high = bw_leaf_key(leaf, leaf->item_count - 1)};
        range.high.offset += range.high.offset != UINT64_MAX;
        if (bw_key_compare(&range.low, &range.high) >= 0)
            return NULL;
        return add_lost_keys(examination, &range);
    }

    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        struct bw_item item;
        const bool inside = bw_leaf_item(leaf, slot, &item);
        const uint64_t number = item.key.objectid;
        const bool is_orphan = number == BW_ORPHAN && item.key.type == BW_ORPHAN_ITEM;
        if (!bw_is_inode_number(number) && !is_orphan)
            continue;
        if (!is_orphan && examination->present.number != number) {
            const struct bw_key first = {.objectid = number};
            BW_TRY(end_inode(examination));
            examination->present = (struct present_inode){
                .number = number,
                .gap = NONE,
                .nul = NONE,
                .incomplete = bw_key_compare(&examination->lost_end, &first) > 0,
            };
        }
        if (!inside) {
            BW_TRY(add_lost_item(examination, &item.key));
            continue;
        }
        BW_TRY(read_item(examination, &item));
    }
    return NULL;
}

static struct bw_error *read_tree(struct examination *examination)
{
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL};
    examination->present = (struct present_inode){0};
    examination->lost_end = (struct bw_key){0};
    bw_block_scan_begin(&scan, &examination->check->fs->reader, &examination->tree->tree);
    while (bw_block_scan_next(&scan)) {
        if (scan.error) {
            const struct bw_lost_range range = bw_lost_range_of(&scan.pointer, 0);
            BW_TRY(add_lost_keys(examination, &range));
            continue;
        }
        BW_TRY(on_leaf(examination, &scan.node));
    }
    BW_TRY(bw_block_scan_end(&scan));
    return end_inode(examination);
}

static void examination_free(struct examination *examination)
{
    bw_lost_list_free(&examination->lost_list);
    bw_lost_ranges_free(&examination->lost);
    name_records_free(&examination->records);
    bw_numbers_free(&examination->orphans);
    free(examination->sums);
    free(examination->counts);
}

/* Reads a subvolume once, then for as many buckets at a time as memory may hold records of. */
struct bw_error *bw_pass_inodes(struct bw_check *check)
{
    const struct bw_listed_trees *trees = &check->trees.entries;
    BW_AUTO_FREE uint64_t *alike = calloc(trees->count + 1, sizeof *alike);
    if (!alike)
        return bw_error_no_memory();
    for (size_t i = 0; i < trees->count; i++) {
        const struct bw_listed_tree *tree = &trees->items[i];
        alike[i] = BW_ABSENT;
        if (tree->has_inodes && tree->references && (tree->total || tree->incomplete))
            alike[i] = tree->total ^ tree->incomplete;
    }
    BW_TRY(bw_count_alike(alike, trees->count));

    for (size_t i = 0; i < trees->count && bw_check_should_continue(check, 0); i++) {
        if (alike[i] == BW_ABSENT)
            continue;
        BW_SCOPED(examination)
        struct examination examination = {.check = check,
                                          .tree = &trees->items[i],
                                          .more_subvolumes = alike[i],
                                          .sums = calloc(BUCKETS, sizeof *examination.sums),
                                          .counts = calloc(BUCKETS, sizeof *examination.counts)};
        if (!examination.sums || !examination.counts)
            return bw_error_no_memory();
        BW_TRY(read_tree(&examination));
        BW_TRY(bw_lost_list_make(&examination.lost, 0, &examination.lost_list));
        examination.collecting = true;
        while (examination.end_bucket < BUCKETS && bw_check_should_continue(check, 0)) {
            uint64_t records = 0;
            uint32_t end = examination.first_bucket = examination.end_bucket;
            for (; end < BUCKETS && records <= MOST_RECORDS; end++)
                if (examination.sums[end])
                    records += examination.counts[end];
            examination.end_bucket = end;
            examination.records.count = 0;
            BW_TRY(read_tree(&examination));
            check_names(&examination);
        }
    }
    return bw_check_directories(check);
}
