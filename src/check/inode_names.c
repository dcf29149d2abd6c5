/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names, as a directory has them twice (DIR_ITEM, DIR_INDEX) and the inode once (INODE_REF or
 * INODE_EXTREF); and how many of them an inode says that it has. What would be in keys that are
 * lost is taken to be there.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "check/inodes.h"
#include "ondisk/checksum.h"

/* What is known of one name of an inode. */
struct name {
    const struct bw_name_record *item, *index, *reference; /* NULL: there is none */
    const struct bw_name_record *any;
    unsigned items, indexes, references;
};

/* What is known of one inode. */
struct inode {
    uint64_t number;
    const struct bw_name_record *item; /* NULL: there is none */
    bool has_items, is_orphan, is_subvolume;
    uint64_t names;    /* that anything tells of */
    uint64_t complete; /* that all agree on */
};

/* Taking items. */

static struct bw_error *take_inode(struct bw_examination *examination, const struct bw_item *item)
{
    const struct bw_fact_secrets *secrets = &examination->secrets;
    const uint64_t number = item->key.objectid;
    struct bw_inode inode;
    if (!bw_inode_decode(item, &inode))
        return NULL;
    const struct bw_name_record record = {.inode = number,
                                          .kind = BW_RECORD_INODE,
                                          .value = inode.link_count,
                                          .type = bw_file_type_of_mode(inode.mode)};
    uint64_t fact =
        bw_names_of(number, &inode) * bw_fact_of_inode(secrets, number, BW_FACT_LINK + record.type);
    if (!inode.link_count)
        fact += bw_fact_of_inode(secrets, number, BW_FACT_ORPHAN);
    return bw_examination_enter(examination, &record, -fact);
}

static struct bw_error *take_references(struct bw_examination *examination,
                                        const struct bw_item *item)
{
    const struct bw_fact_secrets *secrets = &examination->secrets;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_inode_ref ref;
    while (bw_inode_ref_next(&cursor, &item->key, &ref)) {
        const struct bw_name_record record = {
            .inode = item->key.objectid,
            .directory = ref.parent,
            .name = bw_fact_name(secrets, ref.parent, ref.name, ref.name_length) | 1,
            .value = ref.index,
            .name_hash = bw_name_hash(ref.name, ref.name_length),
            .kind = BW_RECORD_REFERENCE};
        if (!bw_is_top_reference(record.inode, &ref))
            BW_TRY(bw_examination_enter(
                examination, &record,
                -bw_fact_reference(secrets, record.name, ref.index, record.inode)));
    }
    return bw_cursor_bad(&cursor) ? bw_examination_lose_item(examination, &item->key) : NULL;
}

static struct bw_error *take_entries(struct bw_examination *examination, const struct bw_item *item)
{
    const struct bw_fact_secrets *secrets = &examination->secrets;
    const bool is_index = item->key.type == BW_DIR_INDEX;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry)) {
        const struct bw_name_record record = {
            .inode = entry.location.objectid,
            .directory = item->key.objectid,
            .name = bw_fact_name(secrets, item->key.objectid, entry.name, entry.name_length) | 1,
            .value = item->key.offset,
            .name_hash = bw_name_hash(entry.name, entry.name_length),
            .kind = is_index ? BW_RECORD_INDEX : BW_RECORD_ITEM,
            .type = entry.type,
            .is_subvolume = !bw_is_inode_entry(&entry)};
        uint64_t fact = bw_fact_entry(secrets, record.name, &entry);
        fact = is_index ? -fact : fact;
        if (is_index && !record.is_subvolume)
            fact += bw_fact_reference(secrets, record.name, record.value, record.inode) +
                    bw_fact_of_inode(secrets, record.inode, BW_FACT_LINK + entry.type);
        BW_TRY(bw_examination_enter(examination, &record, fact));
    }
    return bw_cursor_bad(&cursor) ? bw_examination_lose_item(examination, &item->key) : NULL;
}

struct bw_error *bw_names_take(struct bw_examination *examination, const struct bw_item *item)
{
    switch (item->key.type) {
    case BW_INODE_ITEM:
        return take_inode(examination, item);
    case BW_INODE_REF:
    case BW_INODE_EXTREF:
        return take_references(examination, item);
    case BW_DIR_ITEM:
    case BW_DIR_INDEX:
        return take_entries(examination, item);
    case BW_ORPHAN_ITEM: {
        const struct bw_name_record record = {.inode = item->key.offset, .kind = BW_RECORD_ORPHAN};
        return bw_examination_enter(
            examination, &record,
            bw_fact_of_inode(&examination->secrets, record.inode, BW_FACT_ORPHAN));
    }
    }
    return NULL;
}

/* Judging. */

static bool references_lost(const struct bw_examination *examination, uint64_t inode)
{
    return bw_examination_lost(examination, (struct bw_key){inode, BW_INODE_REF, 0},
                               (struct bw_key){inode, BW_INODE_EXTREF, UINT64_MAX});
}

static struct bw_key item_key(const struct name *name)
{
    return (struct bw_key){name->any->directory, BW_DIR_ITEM, name->any->name_hash};
}

static struct bw_key index_key(const struct name *name)
{
    const struct bw_name_record *known = name->index ? name->index : name->reference;
    return (struct bw_key){name->any->directory, BW_DIR_INDEX, known ? known->value : 0};
}

static bool item_lost(const struct bw_examination *examination, const struct name *name)
{
    return bw_examination_lost(examination, item_key(name), item_key(name));
}

static bool index_lost(const struct bw_examination *examination, const struct name *name)
{
    struct bw_key first = index_key(name), last = first;
    if (!name->reference)
        last.offset = UINT64_MAX;
    return bw_examination_lost(examination, first, last);
}

/* The subject of a finding about a name: its path is read from an item that has it. */
static struct bw_subject name_subject(const struct bw_examination *examination,
                                      const struct name *name, struct bw_key key)
{
    struct bw_subject subject = bw_examination_subject(examination, name->any->inode, key);
    subject.touches = BW_TOUCHES_NAME;
    subject.end_key = name->index ? index_key(name)
                      : name->item
                          ? item_key(name)
                          : (struct bw_key){name->any->inode, BW_INODE_REF, name->any->directory};
    return subject;
}

static void judge_entries(struct bw_examination *examination, const struct name *name)
{
    const bool no_item = !name->item && !item_lost(examination, name);
    const bool no_index = !name->index && !index_lost(examination, name);
    const struct bw_subject subject =
        name_subject(examination, name, no_item ? item_key(name) : index_key(name));
    if (no_item || no_index)
        bw_check_find(examination->check, BW_CODE_entry_missing, &subject,
                      "a name in directory %" PRIu64 " has no %s", name->any->directory,
                      no_item && no_index ? "DIR_ITEM and no DIR_INDEX"
                      : no_item           ? "DIR_ITEM"
                                          : "DIR_INDEX");
    if (name->indexes > 1 && name->items < 2) /* the pass `trees` finds two in a DIR_ITEM */
        bw_check_find(examination->check, BW_CODE_entry_duplicate, &subject,
                      "a name is in directory %" PRIu64 " more than once", name->any->directory);
}

static void judge_type(struct bw_examination *examination, const struct inode *inode,
                       const struct name *name)
{
    const struct bw_name_record *wrong = name->index ? name->index : name->item;
    const uint8_t want = inode->item ? inode->item->type : name->item ? name->item->type : 0;
    if (name->item && name->item->type != want)
        wrong = name->item;
    if (!wrong || (wrong->type == want && (!name->item || name->item->type == want)) ||
        (!inode->item && (!name->item || !name->index)))
        return;
    const struct bw_subject subject =
        name_subject(examination, name, wrong == name->item ? item_key(name) : index_key(name));
    bw_check_find(examination->check, BW_CODE_entry_type, &subject,
                  "type of a directory entry wrong, want %s have %s", bw_file_type_name(want),
                  bw_file_type_name(wrong->type));
}

static void judge_reference(struct bw_examination *examination, const struct inode *inode,
                            const struct name *name)
{
    const struct bw_subject subject = name_subject(
        examination, name, (struct bw_key){inode->number, BW_INODE_REF, name->any->directory});
    if (name->references > 1)
        bw_check_find(examination->check, BW_CODE_inode_ref_duplicate, &subject,
                      "a name in directory %" PRIu64 " has more than one INODE_REF",
                      name->any->directory);
    if (!name->reference && inode->item && !references_lost(examination, inode->number))
        bw_check_find(examination->check, BW_CODE_inode_ref_missing, &subject,
                      "a name in directory %" PRIu64 " has no INODE_REF", name->any->directory);
    else if (name->references == 1 && name->indexes == 1 &&
             name->reference->value != name->index->value)
        bw_check_find(examination->check, BW_CODE_entry_index, &subject,
                      "index of a name in directory %" PRIu64 " wrong, want %" PRIu64
                      " have %" PRIu64,
                      name->any->directory, name->index->value, name->reference->value);
}

static void judge_name(struct bw_examination *examination, struct inode *inode,
                       const struct name *name)
{
    inode->names++;
    inode->complete += name->item && name->index && (name->reference || inode->is_subvolume);
    judge_entries(examination, name);
    if (inode->is_subvolume && (!name->item || !name->index))
        return;
    judge_type(examination, inode, name);
    if (!inode->is_subvolume)
        judge_reference(examination, inode, name);
}

static void judge_inode(struct bw_examination *examination, const struct inode *inode)
{
    const struct bw_key key = {inode->number, BW_INODE_ITEM, 0};
    const struct bw_key orphan = {BW_ORPHAN, BW_ORPHAN_ITEM, inode->number};
    const struct bw_subject subject = bw_examination_subject(examination, inode->number, key);
    if (!inode->item) {
        if (inode->names && !inode->has_items && !bw_examination_lost(examination, key, key))
            bw_check_find(examination->check, BW_CODE_inode_missing, &subject,
                          "it has names, but no INODE_ITEM");
        return;
    }
    const uint64_t links = inode->item->value,
                   want = inode->names + (inode->number == BW_SUBVOLUME_ROOT_INODE),
                   least = want - inode->names + inode->complete;
    if ((links < least || links > want) && !references_lost(examination, inode->number))
        bw_check_find(examination->check, BW_CODE_link_count, &subject,
                      "link count wrong, want %" PRIu64 " have %" PRIu64, want, links);
    else if (!links && !inode->is_orphan && !bw_examination_lost(examination, orphan, orphan))
        bw_check_find(examination->check, BW_CODE_orphan_missing, &subject,
                      "it has no links and no ORPHAN_ITEM");
}

/* The records of one name, which follow each other. */
static struct name name_of(const struct bw_name_record *records, size_t count)
{
    struct name name = {.any = &records[0]};
    for (size_t i = 0; i < count; i++) {
        const struct bw_name_record *record = &records[i];
        if (record->kind == BW_RECORD_ITEM) {
            name.item = record;
            name.items++;
        } else if (record->kind == BW_RECORD_INDEX) {
            name.index = record;
            name.indexes++;
        } else {
            name.reference = record;
            name.references++;
        }
    }
    return name;
}

static bool is_same_name(const struct bw_name_record *a, const struct bw_name_record *b)
{
    return a->directory == b->directory && a->name == b->name;
}

/* The records of one inode: first those about itself. */
static void judge_records(struct bw_examination *examination, const struct bw_name_record *records,
                          size_t count)
{
    struct inode inode = {.number = records[0].inode, .is_subvolume = records[0].is_subvolume};
    size_t i = 0;
    for (; i < count && !records[i].name; i++) {
        if (records[i].kind == BW_RECORD_INODE)
            inode.item = &records[i];
        inode.has_items |= records[i].kind == BW_RECORD_HEADLESS;
        inode.is_orphan |= records[i].kind == BW_RECORD_ORPHAN;
    }
    while (i < count) {
        size_t end = i + 1;
        while (end < count && is_same_name(&records[i], &records[end]))
            end++;
        const struct name name = name_of(&records[i], end - i);
        judge_name(examination, &inode, &name);
        i = end;
    }
    if (!inode.is_subvolume)
        judge_inode(examination, &inode);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare(const void *first, const void *second)
{
    const struct bw_name_record *a = first, *b = second;
    int order = a->is_subvolume - b->is_subvolume;
    order = order ? order : compare_numbers(a->inode, b->inode);
    order = order ? order : compare_numbers(a->name != 0, b->name != 0);
    order = order ? order : compare_numbers(a->directory, b->directory);
    order = order ? order : compare_numbers(a->name, b->name);
    return order ? order : compare_numbers(a->value, b->value);
}

void bw_names_judge(struct bw_examination *examination)
{
    const struct bw_name_record *records = examination->records;
    if (examination->count)
        qsort(examination->records, examination->count, sizeof *records, compare);
    for (size_t i = 0, end; i < examination->count; i = end) {
        for (end = i + 1; end < examination->count && records[end].inode == records[i].inode &&
                          records[end].is_subvolume == records[i].is_subvolume;)
            end++;
        judge_records(examination, &records[i], end - i);
    }
}
