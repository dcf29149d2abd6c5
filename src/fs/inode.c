/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inodes: their items, names, targets of symbolic links and flags.
 *
 * For rows, the walk and `ls` read many inodes at once, with the attributes that a row shows: those
 * of ACLs and of compression. The wanted inodes are sorted by number, and one scan of the tree
 * skips the blocks between them. The keys of all wanted items are known in advance, because those
 * of attributes contain the hash of a name, so a block is read only if one of them may be in it.
 */
#include <inttypes.h>
#include <linux/fs.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "fs/fs.h"
#include "fs/inode.h"
#include "ondisk/acl.h"
#include "ondisk/checksum.h"
#include "ondisk/compression.h"
#include "record/file.h"

struct bw_error *bw_inode_read(const struct bw_fs *fs, const struct bw_tree *tree, uint64_t number,
                               struct bw_inode *inode)
{
    const struct bw_tree_reader reader = bw_fs_name_reader(fs);
    const struct bw_key key = {number, BW_INODE_ITEM, 0};
    struct bw_item_range range;
    struct bw_error *error = NULL;
    bw_item_range_begin(&range, &reader, tree, key, key);
    if (!bw_item_range_next(&range))
        error =
            bw_error_create(BW_ERROR_NOT_FOUND, "subvolume %" PRIu64 ": there is no inode %" PRIu64,
                            tree->id, number);
    else if (range.error)
        error = BW_TAKE(range.error);
    else if (range.item.size < sizeof(struct bw_disk_inode_item))
        error =
            bw_error_create(BW_ERROR_CORRUPT,
                            "subvolume %" PRIu64 ": inode %" PRIu64 ": invalid item size %" PRIu32,
                            tree->id, number, range.item.size);
    else if (!bw_inode_decode(&range.item, inode))
        error = bw_error_create(BW_ERROR_CORRUPT,
                                "subvolume %" PRIu64 ": inode %" PRIu64 ": invalid size %" PRIu64,
                                tree->id, number, inode->size);
    return bw_item_range_end(&range, error);
}

struct bw_error *bw_lookup_number(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                                  uint64_t number, struct bw_place *place)
{
    struct bw_inode inode = {0};
    BW_TRY(bw_inode_read(fs, &subvolume->tree, number, &inode));
    *place = (struct bw_place){subvolume, number, bw_file_type_of_mode(inode.mode), 0};
    return NULL;
}

/* Names of an inode. An item contains those in one directory, or those with the same hash. */

struct bw_hard_links {
    struct bw_fs_items items;
    const struct bw_item *item; /* the current one; NULL: none */
    struct bw_cursor rest;      /* its names that are still to be read */
    struct bw_inode_name name;
};

struct bw_error *bw_hard_links_open(struct bw_fs *fs, const struct bw_place *place,
                                    struct bw_hard_links **result)
{
    struct bw_hard_links *links = *result = calloc(1, sizeof *links);
    if (!links)
        return bw_error_no_memory();
    bw_fs_items_begin(&links->items, fs, &place->subvolume->tree,
                      (struct bw_key){place->inode, BW_INODE_REF, 0},
                      (struct bw_key){place->inode, BW_INODE_EXTREF, UINT64_MAX});
    return NULL;
}

const struct bw_inode_name *bw_hard_links_next(struct bw_hard_links *links)
{
    struct bw_inode_ref ref;
    while (!links->item || !bw_inode_ref_next(&links->rest, &links->item->key, &ref)) {
        if (bw_cursor_bad(&links->rest))
            bw_fs_report_text(links->items.fs, BW_DAMAGE, BW_ERROR_CORRUPT,
                              "inode %" PRIu64 ": a name is cut off", links->item->key.objectid);
        links->rest = (struct bw_cursor){.bad = false};
        links->item = bw_fs_items_next(&links->items);
        if (!links->item)
            return NULL;
        if (links->item->key.type == BW_INODE_REF || links->item->key.type == BW_INODE_EXTREF)
            links->rest = bw_cursor_of(links->item);
    }
    links->name =
        (struct bw_inode_name){ref.parent, ref.index, (const char *)ref.name, ref.name_length};
    return &links->name;
}

struct bw_error *bw_hard_links_close(struct bw_hard_links *links)
{
    if (!links)
        return NULL;
    struct bw_error *error = bw_fs_items_error(&links->items);
    bw_fs_items_free(&links->items);
    free(links);
    return error;
}

struct bw_error *bw_inode_names(struct bw_fs *fs, const struct bw_place *place,
                                bw_inode_name_visitor *visit, void *context)
{
    struct bw_hard_links *links;
    struct bw_error *error = bw_hard_links_open(fs, place, &links);
    for (const struct bw_inode_name *name; !error && (name = bw_hard_links_next(links));)
        error = visit(context, name);
    return bw_error_first(error, bw_hard_links_close(links));
}

/* Symbolic links, whose targets are inline extents. */

/* The target fits into one sector; this is the maximum sector size. */
enum { TARGET_MAX = 65536 };

static struct bw_error *append_target(const struct bw_item *item, uint32_t sectorsize,
                                      struct bw_buffer *target)
{
    struct bw_file_extent extent;
    BW_TRY(bw_file_extent_decode(item, sectorsize, &extent));
    if (extent.type != BW_FILE_EXTENT_INLINE || extent.num_bytes > TARGET_MAX)
        return bw_error_create(BW_ERROR_CORRUPT, "the target of inode %" PRIu64 " is not inline",
                               item->key.objectid);
    if (!bw_buffer_reserve(target, (size_t)extent.num_bytes))
        return bw_error_no_memory();
    bw_buffer_has_data(target); /* inline extents are never empty */
    char *text = target->data + target->length;
    if (extent.compression != BW_COMPRESS_NONE) {
        struct bw_decompressor *decompressor;
        BW_TRY(bw_decompressor_create(sectorsize, &decompressor));
        struct bw_error *error =
            bw_decompress(decompressor, extent.compression, true, extent.inline_data,
                          extent.inline_length, (uint8_t *)text, (size_t)extent.num_bytes);
        bw_decompressor_destroy(decompressor);
        BW_TRY(error);
    } else {
        memcpy(text, extent.inline_data, (size_t)extent.num_bytes);
    }
    target->length += strnlen(text, (size_t)extent.num_bytes);
    return NULL;
}

struct bw_error *bw_symlink_read(const struct bw_fs *fs, const struct bw_tree *tree, uint64_t inode,
                                 struct bw_buffer *target)
{
    const struct bw_key key = {inode, BW_EXTENT_DATA, 0};
    struct bw_item_range range;
    if (fs->no_data)
        return bw_error_create(BW_ERROR_NOT_FOUND,
                               "a metadump of btrfs-image has no targets of symbolic links");
    bw_item_range_begin(&range, &fs->reader, tree, key, key);
    bool found = bw_item_range_next(&range);
    struct bw_error *error = found && range.error ? BW_TAKE(range.error) : NULL;
    if (found && !error)
        error = append_target(&range.item, fs->superblock.sectorsize, target);
    error = bw_item_range_end(&range, error);
    if (error)
        return bw_error_prefix(error, "symbolic link of subvolume %" PRIu64, tree->id);
    if (found)
        return NULL;
    return bw_error_create(BW_ERROR_NOT_FOUND,
                           "subvolume %" PRIu64 ": inode %" PRIu64 " has no target", tree->id,
                           inode);
}

struct bw_error *bw_inode_readlink(struct bw_fs *fs, const struct bw_place *place, char **target,
                                   size_t *length)
{
    struct bw_buffer text = {0};
    struct bw_error *error = bw_symlink_read(fs, &place->subvolume->tree, place->inode, &text);
    return bw_give_text(&text, error, target, length);
}

/*
 * Reading many inodes, with the extended attributes for listings, in one scan that skips the blocks
 * between them. Used by the walk for rows, and by `ls`.
 */

static const char property[] = BW_COMPRESSION_PROPERTY;

/* The first inode from a number on. Most numbers are a little higher than the number of the search
 * before, so the search begins at its result, with steps that double. */
static size_t first_from(struct bw_inode_query *query, uint64_t number)
{
    const struct bw_inode_attributes *all = query->attributes;
    size_t low = query->near, step = 1;
    if (low && all[low - 1].number >= number)
        low = 0;
    for (; low + step <= query->count && all[low + step - 1].number < number; step *= 2)
        low += step;
    const size_t high = low + step < query->count ? low + step : query->count;
    return query->near = low + BW_FIRST_INDEX(i, high - low, all[low + i].number >= number);
}

/* The first key of an inode that is not before the beginning of a block, or NULL. */
static const struct bw_key *first_key_from(const struct bw_inode_query *query, uint64_t number,
                                           const struct bw_key *begin)
{
    for (unsigned i = 0; i < query->key_count; i++) {
        struct bw_key key = query->keys[i];
        key.objectid = number;
        if (bw_key_compare(&key, begin) >= 0)
            return &query->keys[i];
    }
    return NULL;
}

static bool is_in(const struct bw_block_pointer *pointer, const struct bw_key *key)
{
    return bw_key_compare(key, &pointer->expectation.first_key) >= 0 &&
           bw_key_compare(key, &pointer->expectation.end_key) < 0;
}

static void mark_lost(struct bw_inode_query *query, const struct bw_block_pointer *pointer)
{
    const uint64_t first = pointer->expectation.first_key.objectid,
                   last = pointer->expectation.end_key.objectid;
    for (size_t i = first_from(query, first);
         i < query->count && query->attributes[i].number <= last; i++) {
        struct bw_inode_attributes *wanted = &query->attributes[i];
        for (unsigned k = 0; k < query->key_count; k++) {
            const struct bw_key key = {wanted->number, query->keys[k].type, query->keys[k].offset};
            uint8_t *state =
                key.type == BW_INODE_ITEM ? &wanted->inode_state : &wanted->compression_state;
            if (*state == BW_ITEM_MISSING && is_in(pointer, &key))
                *state = BW_ITEM_LOST;
        }
    }
}

/* Whether the block of a pointer may contain any requested key, and can be read. */
static bool is_selected(struct bw_inode_query *query, const struct bw_block_pointer *pointer)
{
    const struct bw_key *begin = &pointer->expectation.first_key, *found = NULL;
    size_t next = first_from(query, begin->objectid);
    /* at most two steps, because only the first inode can have all its keys before the block */
    while (next < query->count &&
           !(found = first_key_from(query, query->attributes[next].number, begin)))
        next++;
    if (!found)
        return false;
    struct bw_key key = *found;
    key.objectid = query->attributes[next].number;
    if (!is_in(pointer, &key))
        return false;
    const bool is_readable = pointer->expectation.level || !query->lost_blocks ||
                             !bw_key_map_has(query->lost_blocks, pointer->bytenr);
    if (!is_readable)
        mark_lost(query, pointer);
    return is_readable;
}

/* Handles an item with attributes whose names have the same hash. */
static void note_acl_and_compression(struct bw_inode_query *query,
                                     struct bw_inode_attributes *wanted, const struct bw_item *item)
{
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_xattr xattr;
    bool is_default;
    while (bw_xattr_next(&cursor, &xattr)) {
        wanted->has_acl |= query->acls && bw_xattr_is_acl(&xattr, &is_default);
        if (!query->compression || wanted->compression_state == BW_ITEM_FOUND ||
            xattr.name_length != sizeof property - 1 ||
            memcmp(xattr.name, property, xattr.name_length) != 0)
            continue;
        wanted->compression = (uint32_t)query->values.length;
        wanted->compression_length = xattr.value_length;
        wanted->compression_state = BW_ITEM_FOUND;
        bw_buffer_append(&query->values, xattr.value, xattr.value_length);
    }
    if (bw_cursor_bad(&cursor) && wanted->compression_state == BW_ITEM_MISSING)
        wanted->compression_state = BW_ITEM_CUT_OFF;
}

/* Finds a requested inode by its number; usually it is the current or the next one. */
static struct bw_inode_attributes *find_requested(struct bw_inode_query *query, uint64_t number)
{
    const struct bw_inode_attributes *all = query->attributes;
    size_t at = query->at;
    if (at + 1 < query->count && all[at].number < number)
        at++;
    if (at >= query->count || all[at].number < number || (at && all[at - 1].number >= number))
        at = first_from(query, number);
    query->at = at;
    return at < query->count && all[at].number == number ? &query->attributes[at] : NULL;
}

static bool is_wanted_key(const struct bw_inode_query *query, const struct bw_item *item)
{
    for (unsigned i = 0; i < query->key_count; i++)
        if (query->keys[i].type == item->key.type && query->keys[i].offset == item->key.offset)
            return true;
    return false;
}

static void read_requested_items(struct bw_inode_query *query, const struct bw_node *leaf)
{
    query->leaves++;
    for (uint32_t slot = 0; slot < leaf->item_count; slot++) {
        const uint8_t type = bw_node_disk_item(leaf, slot)->key.type;
        struct bw_item item;
        if (type != BW_INODE_ITEM && (type != BW_XATTR_ITEM || query->key_count == 1))
            continue;
        bool inside = bw_leaf_item(leaf, slot, &item);
        struct bw_inode_attributes *wanted = find_requested(query, item.key.objectid);
        if (!wanted || !is_wanted_key(query, &item))
            continue;
        if (type == BW_XATTR_ITEM && inside)
            note_acl_and_compression(query, wanted, &item);
        else if (type == BW_XATTR_ITEM)
            wanted->compression_state = BW_ITEM_CUT_OFF;
        else if (!inside || item.size < sizeof(struct bw_disk_inode_item))
            wanted->inode_state = BW_ITEM_CUT_OFF;
        else if (bw_inode_decode(&item, &wanted->inode))
            wanted->inode_state = BW_ITEM_FOUND;
        else
            wanted->inode_state = BW_ITEM_INVALID;
    }
}

static int by_offset(const void *a, const void *b)
{
    return bw_key_compare(a, b);
}

struct bw_error *bw_inode_query_run(struct bw_inode_query *query, const struct bw_tree *tree,
                                    struct bw_inode_attributes *attributes, size_t count)
{
    if (!count)
        return NULL;
    if (!query->key_count) {
        static const char *const names[] = {property, BW_ACL_ACCESS, BW_ACL_DEFAULT};
        query->keys[query->key_count++] = (struct bw_key){0, BW_INODE_ITEM, 0};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (names[i] == property ? query->compression : query->acls)
                query->keys[query->key_count++] =
                    (struct bw_key){0, BW_XATTR_ITEM, bw_name_hash(names[i], strlen(names[i]))};
        qsort(query->keys, query->key_count, sizeof *query->keys, by_offset);
    }
    query->attributes = attributes;
    query->count = count;
    query->at = query->near = query->values.length = query->leaves = 0;
    for (size_t i = 0; i < count; i++) {
        attributes[i].inode_state = attributes[i].compression_state = BW_ITEM_MISSING;
        attributes[i].has_acl = false;
    }
    const struct bw_tree_reader *reader = &query->fs->reader;
    struct bw_block_scan *scan = &query->scan;
    const struct bw_block_pointer *pointer = &scan->pointer;
    scan->first = query->keys[0];
    scan->last = query->keys[query->key_count - 1];
    scan->first.objectid = attributes[0].number;
    scan->last.objectid = attributes[count - 1].number;
    scan->adopt = scan->cut = scan->announce = scan->pointers = true;
    bw_block_scan_begin(scan, reader, tree);
    while (bw_block_scan_next(scan)) {
        if (scan->step == BW_SCAN_LOST) {
            bw_fs_report_lost(query->fs, pointer->bytenr, BW_TAKE(scan->error));
            mark_lost(query, pointer);
        } else if (scan->step == BW_SCAN_LEAF) {
            read_requested_items(query, &scan->node);
        } else if (is_selected(query, pointer)) {
            const uint8_t *known = NULL;
            if (query->known && !pointer->expectation.level)
                known = query->known(query->context, pointer);
            scan->selected = !known;
            if (!known)
                continue;
            struct bw_node leaf = bw_node_view(known, reader->nodesize);
            leaf.item_count = bw_leaf_count_below(&leaf, &pointer->expectation.end_key);
            read_requested_items(query, &leaf);
        }
    }
    BW_TRY(bw_block_scan_end(scan));
    return bw_buffer_error(&query->values);
}

void bw_inode_query_free(struct bw_inode_query *query)
{
    bw_block_scan_free(&query->scan);
    bw_buffer_free(&query->values);
}

struct bw_error *bw_inodes_get(struct bw_fs *fs, const struct bw_subvolume *subvolume,
                               struct bw_wanted_inode *wanted, size_t count, bool acls)
{
    struct bw_inode_query query = {.fs = fs, .acls = acls, .compression = acls};
    BW_AUTO_FREE struct bw_inode_attributes *attributes = calloc(count + 1, sizeof *attributes);
    if (!attributes)
        return bw_error_no_memory();
    for (size_t i = 0; i < count; i++)
        attributes[i].number = wanted[i].number;
    struct bw_error *error = bw_inode_query_run(&query, &subvolume->tree, attributes, count);
    for (size_t i = 0; i < count; i++) {
        wanted[i].found = attributes[i].inode_state == BW_ITEM_FOUND;
        wanted[i].inode = attributes[i].inode;
        wanted[i].has_acl = attributes[i].has_acl;
        wanted[i].no_compression = acls && attributes[i].compression_state == BW_ITEM_MISSING;
    }
    bw_inode_query_free(&query);
    return error;
}

/* As the kernel's btrfs_inode_flags_to_fsflags(). */
unsigned bw_inode_file_flags(const struct bw_inode *inode)
{
    static const struct {
        uint64_t mask;
        unsigned flag;
    } flags[] = {
        {BW_INODE_SYNC, FS_SYNC_FL},         {BW_INODE_IMMUTABLE, FS_IMMUTABLE_FL},
        {BW_INODE_APPEND, FS_APPEND_FL},     {BW_INODE_NODUMP, FS_NODUMP_FL},
        {BW_INODE_NOATIME, FS_NOATIME_FL},   {BW_INODE_DIRSYNC, FS_DIRSYNC_FL},
        {BW_INODE_NODATACOW, FS_NOCOW_FL},   {BW_INODE_COMPRESS, FS_COMPR_FL},
        {BW_INODE_NOCOMPRESS, FS_NOCOMP_FL}, {UINT64_C(1) << 32, FS_VERITY_FL},
    };
    unsigned all = 0;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (inode->flags & flags[i].mask)
            all |= flags[i].flag;
    return all & FS_NOCOMP_FL ? all & ~(unsigned)FS_COMPR_FL : all;
}
