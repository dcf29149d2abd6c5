/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files are added as runs of consecutive inodes; the bits of a run are set when it ends. */
#include "walk/known_files.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_INODES = 4096 }; /* of a leaf, for which it is examined whether they are files */

void bw_known_files_free(struct bw_known_files *known)
{
    free(known->bits);
}

struct bw_error *bw_known_files_reset(struct bw_known_files *known,
                                      const struct bw_block_pointer *pointer, uint64_t last)
{
    const uint64_t most = UINT64_C(1) << 22;
    const uint64_t first = pointer->expectation.first_key.objectid;
    const uint64_t end = pointer->expectation.end_key.objectid; /* maybe that of the tree */
    const uint64_t inodes = (end - last < MOST_INODES ? end : last + MOST_INODES) - first;
    known->first = known->run_first = known->run_end = first;
    known->count = (inodes < most ? inodes : most) / 64 * 64 + 64;
    const size_t words = known->count / 64;
    if (words > known->capacity) {
        free(known->bits);
        known->bits = malloc(words * sizeof *known->bits);
        known->capacity = known->bits ? words : 0;
    }
    if (!known->bits) {
        known->count = 0;
        return bw_error_no_memory();
    }
    memset(known->bits, 0, words * sizeof *known->bits);
    return NULL;
}

/* The bits from inode number `number` up to `end` that are in the same word as the first. */
static uint64_t bits_between(uint64_t number, uint64_t end)
{
    const uint64_t count = end - number;
    const uint64_t bits = count < 64 ? (UINT64_C(1) << count) - 1 : ~UINT64_C(0);
    return bits << number % 64;
}

/* Ends the run. */
static void set_bits_of_run(struct bw_known_files *known)
{
    uint64_t number = known->run_first > known->first ? known->run_first - known->first : 0;
    uint64_t end = known->run_end > known->first ? known->run_end - known->first : 0;
    end = end < known->count ? end : known->count;
    for (; number < end; number = (number / 64 + 1) * 64)
        known->bits[number / 64] |= bits_between(number, end);
    known->run_first = known->run_end;
}

void bw_known_files_begin_run(struct bw_known_files *known, uint64_t inode)
{
    set_bits_of_run(known);
    known->run_first = inode;
    known->run_end = inode + 1;
}

/* Files whose inodes are in other parts of the tree need no bits. */
static bool is_near(const struct bw_known_files *known, uint64_t inode)
{
    return inode - known->first < known->count;
}

/* Adds a file after a run that ends at `run_end`, which the caller keeps in a register. */
static inline uint64_t add_after(struct bw_known_files *known, uint64_t run_end, uint64_t inode)
{
    if (inode != run_end) {
        known->run_end = run_end;
        bw_known_files_begin_run(known, inode);
    }
    return inode + 1;
}

static uint64_t inode_in(const struct bw_node *leaf, uint32_t slot)
{
    const uint8_t *data = leaf->block + sizeof(struct bw_disk_header);
    const struct bw_disk_dir_item *entry =
        (const void *)(data + bw_get32(bw_node_disk_item(leaf, slot)->offset));
    return bw_get64(entry->location.objectid);
}

void bw_known_files_add_items(struct bw_known_files *known, const struct bw_node *given,
                              uint32_t slot, uint32_t end)
{
    const struct bw_node leaf = *given; /* stays in registers, too */
    uint64_t run_end = known->run_end;
    if (slot == end || !is_near(known, inode_in(&leaf, slot)))
        return;
    for (; slot < end; slot++)
        run_end = add_after(known, run_end, inode_in(&leaf, slot));
    known->run_end = run_end;
}

void bw_known_files_add_listed(struct bw_known_files *known, struct bw_entry_list_cursor files)
{
    struct bw_entry_list_cursor first = files;
    uint64_t run_end = known->run_end;
    size_t length;
    const uint8_t *name = files.next == files.end ? NULL : bw_entry_list_take_file(&first, &length);
    if (!name || !is_near(known, bw_listed_number(name + length)))
        return;
    while (files.next != files.end) {
        name = bw_entry_list_take_file(&files, &length);
        run_end = add_after(known, run_end, bw_listed_number(name + length));
    }
    known->run_end = run_end;
}

void bw_known_files_add_leaf(struct bw_known_files *known, const struct bw_node *leaf)
{
    const uint8_t *data = leaf->block + sizeof(struct bw_disk_header);
    const uint32_t space = leaf->nodesize - (uint32_t)sizeof(struct bw_disk_header) -
                           (uint32_t)sizeof(struct bw_disk_dir_item);
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        const struct bw_disk_item *item = bw_node_disk_item(leaf, slot);
        if (item->key.type != BW_DIR_INDEX || bw_get32(item->offset) > space)
            continue;
        const struct bw_disk_dir_item *entry = (const void *)(data + bw_get32(item->offset));
        if (bw_dir_entry_type(entry) != BW_FILE_DIRECTORY && entry->location.type == BW_INODE_ITEM)
            bw_known_files_add(known, bw_get64(entry->location.objectid));
    }
}

bool bw_known_files_fill(struct bw_known_files *known, const struct bw_key *first,
                         const struct bw_key *end)
{
    const struct bw_key entries = {end->objectid, BW_DIR_INDEX, 0};
    const uint64_t from = first->objectid + (first->type > BW_DIR_INDEX);
    const uint64_t until = end->objectid + (bw_key_compare(end, &entries) > 0);
    const uint64_t last = until - known->first;
    if (from < known->first || until - from > MOST_INODES || last > known->count)
        return false;
    set_bits_of_run(known);
    for (uint64_t number = from - known->first; number < last; number = (number / 64 + 1) * 64)
        if (~known->bits[number / 64] & bits_between(number, last))
            return false;
    return true;
}
