/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is wrong with the references to an extent, once both sides of them are known. */
#include <inttypes.h>
#include <stdio.h>

#include "check/entries.h"

/* The entries of one extent. */
struct extent {
    struct bw_check *check;
    const struct bw_reference_entry *item; /* NULL: it has none */
    const struct bw_reference_entry *entries;
    size_t count;
    bool complete;
};

static bool is_block(const struct bw_reference_entry *entry)
{
    return !entry->reference.length;
}

/* A finding about an extent touches the file that refers to it, if one is known, or those that
 * have data there. */
static struct bw_subject subject_of(const struct bw_reference_entry *entry)
{
    const struct bw_reference *reference = &entry->reference;
    struct bw_subject subject = {.finding = {.known = BW_KNOWN_TREE | BW_KNOWN_LOGICAL,
                                             .tree = entry->tree ? entry->tree : BW_EXTENT_TREE,
                                             .logical = reference->bytenr,
                                             .length = reference->length}};
    if (!is_block(entry)) {
        subject.finding.known |= BW_KNOWN_LENGTH;
        subject.touches = BW_TOUCHES_DATA;
    }
    if (reference->kind == BW_EXTENT_DATA_REF && entry->made) {
        subject.finding.known |= BW_KNOWN_INODE;
        subject.finding.inode = reference->inode;
        subject.touches = BW_TOUCHES_INODE;
    }
    return subject;
}

static void describe(const struct bw_reference *reference, char text[128])
{
    switch (reference->kind) {
    case BW_EXTENT_DATA_REF:
        snprintf(text, 128, "tree %" PRIu64 " inode %" PRIu64 " offset %" PRId64, reference->source,
                 reference->inode, (int64_t)reference->offset);
        break;
    case BW_TREE_BLOCK_REF:
        snprintf(text, 128, "tree %" PRIu64, reference->source);
        break;
    default:
        snprintf(text, 128, "tree block %" PRIu64, reference->source);
        break;
    }
}

/* Whether two entries are of one reference that gives the extent another length. */
static bool differ_in_length(const struct bw_reference_entry *a, const struct bw_reference_entry *b)
{
    return a->reference.kind == b->reference.kind && a->reference.source == b->reference.source &&
           a->reference.inode == b->reference.inode && a->reference.offset == b->reference.offset &&
           a->reference.kind;
}

static void report_reference(const struct extent *extent, const struct bw_reference_entry *entry)
{
    const struct bw_subject subject = subject_of(entry);
    char source[128];
    describe(&entry->reference, source);
    if (entry->made <= entry->promised && !extent->complete)
        return;
    if (!entry->made)
        bw_check_find(extent->check, BW_CODE_reference_extra, &subject,
                      "the extent tree has a reference from %s, which is not there", source);
    else if (!entry->promised)
        bw_check_find(extent->check, BW_CODE_reference_missing, &subject,
                      "the extent tree does not have the reference from %s", source);
    else
        bw_check_find(extent->check, BW_CODE_reference_count, &subject,
                      "references from %s: %" PRIu64 ", the extent tree has %" PRIu64, source,
                      entry->made, entry->promised);
}

static void report_length(const struct extent *extent, const struct bw_reference_entry *entry)
{
    const struct bw_subject subject = subject_of(entry);
    bw_check_find(extent->check, BW_CODE_extent_differs, &subject,
                  "a file extent of %" PRIu64 " bytes, the extent item has %" PRIu64,
                  entry->reference.length, extent->item->reference.length);
}

/* What the extent item says of a tree block, and what its header says. */
static void report_block(const struct extent *extent, const struct bw_reference_entry *promised,
                         const struct bw_reference_entry *made)
{
    const struct bw_subject subject = subject_of(made);
    bw_check_find(extent->check, BW_CODE_extent_differs, &subject,
                  "generation %" PRIu64 " level %" PRIu64
                  ", the extent item has generation %" PRIu64 " level %" PRIu64,
                  made->reference.source, made->reference.inode, promised->reference.source,
                  promised->reference.inode);
}

static void report_references(const struct extent *extent)
{
    const struct bw_reference_entry *blocks[2] = {NULL, NULL}; /* promised, made */
    for (size_t i = 0; i < extent->count; i++) {
        const struct bw_reference_entry *entry = &extent->entries[i];
        const bool has_next = i + 1 < extent->count && differ_in_length(entry, entry + 1);
        if (!entry->reference.kind)
            blocks[entry->made > entry->promised] = entry;
        else if (has_next)
            report_length(extent, entry->made ? entry : entry + 1);
        else
            report_reference(extent, entry);
        i += has_next && entry->reference.kind;
    }
    if (blocks[0] && blocks[1])
        report_block(extent, blocks[0], blocks[1]);
}

static void report_missing(const struct extent *extent)
{
    const struct bw_reference_entry *first = NULL;
    uint64_t references = 0;
    for (size_t i = 0; i < extent->count; i++) {
        const struct bw_reference_entry *entry = &extent->entries[i];
        references += entry->reference.kind ? entry->made : 0;
        if (entry->made && (!first || !first->reference.kind))
            first = entry;
    }
    const struct bw_fs *fs = extent->check->fs;
    if (!references || bw_memory_block(fs->reader.memory, subject_of(first).finding.logical))
        return;
    const struct bw_subject subject = subject_of(first);
    bw_check_find(extent->check, BW_CODE_extent_missing, &subject,
                  "the extent tree does not have the %s, to which there are references: %" PRIu64,
                  is_block(first) ? "tree block" : "data", references);
}

/* Whether nothing refers to an extent: all references that its item promises are left over. */
static bool is_unreferenced(const struct extent *extent)
{
    uint64_t left = 0;
    for (size_t i = 0; i < extent->count; i++) {
        if (extent->entries[i].made)
            return false;
        left += extent->entries[i].reference.kind ? extent->entries[i].promised : 0;
    }
    return left == extent->item->promised;
}

static void report_unreferenced(const struct extent *extent)
{
    struct bw_subject subject = subject_of(extent->item);
    subject.touches = BW_TOUCHES_NOTHING;
    if (extent->complete)
        bw_check_find(extent->check, BW_CODE_extent_unreferenced, &subject,
                      "nothing refers to the %s, which has references: %" PRIu64,
                      is_block(extent->item) ? "tree block" : "data", extent->item->promised);
}

static void report_extent(const struct extent *extent)
{
    if (!extent->count)
        return;
    if (!extent->item)
        report_missing(extent);
    else if (is_unreferenced(extent))
        report_unreferenced(extent);
    else
        report_references(extent);
}

void bw_entries_report(const struct bw_entries *list, bool complete)
{
    for (size_t i = 0; i < list->count;) {
        const struct bw_reference_entry *first = &list->entries[i];
        const bool has_item = first->reference.kind == BW_EXTENT_ITEM;
        size_t end = i;
        while (end < list->count && list->entries[end].reference.bytenr == first->reference.bytenr)
            end++;
        report_extent(&(struct extent){list->check, has_item ? first : NULL, first + has_item,
                                       end - i - has_item, complete});
        i = end;
    }
}
