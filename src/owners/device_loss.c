/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loss of devices. The chunk tree shows which chunks survive: mirrors need one remaining
 * stripe, and parity replaces as many stripes as it has. A chunk with striping loses only the
 * pieces on the lost stripes, so that small files in it may survive. lost_bytes() computes how many
 * bytes of a range are lost; the pieces of a chunk repeat with a period, so it need not look at all
 * of them.
 *
 * If anything is lost, the extent tree gives the bytes of partly lost chunks, and the leaves of
 * all subvolumes the files: the items of an inode follow each other, so that one file at a time is
 * added up.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/range_set.h"
#include "base/search.h"
#include "base/struct_size.h"
#include "base/vector.h"
#include "btree/scan.h"
#include "btrfs-walk/space.h"
#include "data/references.h"
#include "fs/fs.h"
#include "fs/image.h"
#include "fs/inode_paths.h"
#include "ondisk/chunk.h"
#include "owners/tree_list.h"

/* A chunk and its lost stripes. */
struct loss_chunk {
    uint64_t logical, length, used, lost;
    const struct bw_raid_profile *profile;
    bool *gone; /* for each stripe; owned */
    uint16_t stripes;
    bool is_exposed, is_lost; /* is_lost: at least a part of it */
    bool is_in_use;
    uint64_t period, lost_of_period; /* bytes after which lost pieces repeat; striping only */
    size_t group;
};

/* Keys below a lost node. */
struct lost_keys {
    struct bw_key first, end;
};

BW_VECTOR(loss_chunks, struct loss_chunk);
BW_VECTOR(loss_groups, struct bw_device_loss_group);
BW_VECTOR(lost_key_ranges, struct lost_keys);

/* The file whose items are being read. */
struct loss_file {
    struct bw_inode inode;
    bool is_known; /* its inode item has been read */
    struct bw_lost_file sums;
    bool inode_lost;
};

/* A running search. */
struct loss_search {
    struct bw_fs *fs;
    struct bw_device_loss_options options;
    struct bw_device_loss *loss;
    struct bw_block_groups *block_groups;
    struct bw_tree_list trees;
    struct loss_chunks chunks; /* by logical address */
    struct loss_groups groups;
    struct bw_range_set unverified;    /* addresses whose checksums are lost */
    struct lost_key_ranges lost_nodes; /* of the present tree, ascending by `first` */
    struct loss_file file;
    struct bw_inode_paths paths;
};

/* Chunks. */

static bool is_selected(const struct loss_search *search, uint64_t devid)
{
    for (size_t i = 0; i < search->options.count; i++)
        if (search->options.devids[i] == devid)
            return true;
    return false;
}

/* Stripes with the same bytes, which are adjacent. */
static unsigned copies_of(const struct loss_chunk *chunk)
{
    return chunk->profile->copies ? chunk->profile->copies : chunk->stripes;
}

static unsigned columns_of(const struct loss_chunk *chunk)
{
    if (chunk->profile->parity_stripes)
        return (unsigned)chunk->stripes - chunk->profile->parity_stripes;
    return chunk->stripes / copies_of(chunk);
}

/* Whether all copies of one column are lost; with parity, one data stripe of a row. */
static bool is_column_lost(const struct loss_chunk *chunk, uint64_t row, unsigned column)
{
    if (chunk->profile->parity_stripes)
        return chunk->gone[(row + column) % chunk->stripes];
    const unsigned copies = copies_of(chunk);
    for (unsigned i = 0; i < copies; i++)
        if (!chunk->gone[column * copies + i])
            return false;
    return true;
}

/* Decides whether the chunk survives, and with redundancy. */
static void assess_chunk(struct loss_chunk *chunk)
{
    const unsigned parity = chunk->profile->parity_stripes, columns = columns_of(chunk);
    const unsigned copies = copies_of(chunk);
    unsigned gone = 0;
    for (unsigned i = 0; i < chunk->stripes; i++)
        gone += chunk->gone[i];
    if (parity) {
        chunk->is_lost = gone > parity;
        chunk->is_exposed = gone == parity;
    }
    for (unsigned column = 0; !parity && column < columns; column++) {
        unsigned left = 0;
        for (unsigned i = 0; i < copies; i++)
            left += !chunk->gone[column * copies + i];
        chunk->is_lost |= left == 0;
        chunk->is_exposed |= left == 1 && copies > 1;
    }
    chunk->is_exposed &= gone && !chunk->is_lost;
    if (!chunk->is_lost || !chunk->profile->striped)
        return;
    const uint64_t rows = parity ? chunk->stripes : 1;
    chunk->period = rows * columns * BW_STRIPE_LENGTH;
    for (uint64_t row = 0; row < rows; row++)
        for (unsigned column = 0; column < columns; column++)
            chunk->lost_of_period += is_column_lost(chunk, row, column) ? BW_STRIPE_LENGTH : 0;
}

/* Whether a part of a lost chunk survives. */
static bool is_partly_lost(const struct loss_chunk *chunk)
{
    return chunk->is_lost && chunk->profile->striped && chunk->lost_of_period < chunk->period;
}

/* How many bytes of a chunk are lost before an offset. */
static uint64_t lost_before(const struct loss_chunk *chunk, uint64_t offset)
{
    if (!is_partly_lost(chunk))
        return chunk->is_lost ? offset : 0;
    const unsigned columns = columns_of(chunk);
    uint64_t lost = offset / chunk->period * chunk->lost_of_period, rest = offset % chunk->period;
    for (uint64_t piece = 0; rest; piece++) {
        const uint64_t length = rest < BW_STRIPE_LENGTH ? rest : BW_STRIPE_LENGTH;
        if (is_column_lost(chunk, piece / columns, (unsigned)(piece % columns)))
            lost += length;
        rest -= length;
    }
    return lost;
}

static size_t chunk_after(const struct loss_search *search, uint64_t logical)
{
    const struct loss_chunk *chunks = search->chunks.items;
    return BW_FIRST_INDEX(i, search->chunks.count, chunks[i].logical > logical);
}

/* The chunk at an address, or NULL. */
static struct loss_chunk *find_chunk(const struct loss_search *search, uint64_t logical)
{
    const size_t next = chunk_after(search, logical);
    struct loss_chunk *chunk = next ? &search->chunks.items[next - 1] : NULL;
    return chunk && logical - chunk->logical < chunk->length ? chunk : NULL;
}

/* Whether no remaining device has the data at an address, which the remap tree may have moved to
 * another chunk. `*length` is cut to where that is true. Parity does not count. */
static bool is_moved_lost(const struct loss_search *search, uint64_t logical, uint64_t *length)
{
    bool is_mapped = false;
    for (unsigned copy = 1;; copy++) {
        struct bw_mapping mapping;
        BW_AUTO_ERROR struct bw_error *none =
            bw_fs_map(search->fs, logical, *length, copy, &mapping);
        if (none)
            return is_mapped;
        is_mapped = true;
        if (mapping.length && mapping.length < *length)
            *length = mapping.length;
        if (!mapping.rebuilt && mapping.present && !is_selected(search, mapping.devid))
            return false;
    }
}

/* How many bytes of a range of logical addresses are lost. */
static uint64_t lost_bytes(const struct loss_search *search, uint64_t logical, uint64_t length)
{
    const struct loss_chunk *chunk = find_chunk(search, logical);
    const bool may_be_moved = search->fs->superblock.remap_root.bytenr;
    if (chunk && !may_be_moved) {
        const uint64_t start = logical - chunk->logical, room = chunk->length - start;
        return lost_before(chunk, start + (length < room ? length : room)) -
               lost_before(chunk, start);
    }
    uint64_t lost = 0;
    for (uint64_t part; length && may_be_moved; length -= part, logical += part) {
        part = length;
        if (is_moved_lost(search, logical, &part))
            lost += part;
    }
    return lost;
}

/* Reads the chunks, and decides about each what the loss of the devices does to it. */
static struct bw_error *read_chunks(struct loss_search *search)
{
    const uint64_t kinds =
        BW_GROUP_DATA | BW_GROUP_METADATA | BW_GROUP_SYSTEM | BW_GROUP_METADATA_REMAP;
    BW_SCOPED(bw_chunk_list) struct bw_chunk_list chunks = {0};
    BW_TRY(bw_fs_chunks(search->fs, &chunks));
    BW_TRY(bw_block_groups_open(search->fs, &search->block_groups));
    for (size_t i = 0; i < chunks.count; i++) {
        const struct bw_chunk_info *info = &chunks.items[i];
        struct loss_chunk chunk = {.logical = info->logical,
                                   .length = info->length,
                                   .profile = bw_raid_profile_of(info->type),
                                   .stripes = (uint16_t)info->stripe_count};

        /* Its group: the chunks of the same kinds and profile. */
        const uint64_t type = info->type & (kinds | BW_GROUP_PROFILE_MASK);
        while (chunk.group < search->groups.count && search->groups.items[chunk.group].type != type)
            chunk.group++;
        if (chunk.group == search->groups.count)
            BW_TRY(loss_groups_push(&search->groups,
                                    (struct bw_device_loss_group){
                                        .type = type, .profile = info->profile, .complete = true}));

        /* How much of it is used; all, if its block group is lost. */
        struct bw_block_group_info found;
        BW_TRY(bw_block_groups_read(search->block_groups, info->logical, &found));
        search->groups.items[chunk.group].complete &= found.length != 0;
        chunk.is_in_use = found.used || !found.length;
        chunk.used = found.used < chunk.length ? found.used : chunk.length;

        BW_TRY(loss_chunks_reserve(&search->chunks, 1));
        chunk.gone = calloc(chunk.stripes, sizeof *chunk.gone);
        if (!chunk.gone)
            return bw_error_no_memory();
        for (unsigned k = 0; k < chunk.stripes; k++) {
            const struct bw_stripe_info *stripe = &info->stripes[k];
            chunk.gone[k] = is_selected(search, stripe->devid) ||
                            !bw_image_of_device(search->fs, stripe->devid, stripe->device_uuid);
        }
        assess_chunk(&chunk);
        BW_TRY(loss_chunks_insert(&search->chunks, chunk_after(search, chunk.logical), chunk));
    }
    return NULL;
}

/* Bytes. */

static int compare_groups(const void *left, const void *right)
{
    const struct bw_device_loss_group *a = left, *b = right;
    return bw_group_type_compare(a->type, b->type);
}

/* Trees. */

static bool is_below_lost_node(const struct loss_search *search, const struct bw_key *key)
{
    for (size_t i = search->lost_nodes.count; i-- > 0;) {
        const struct lost_keys *keys = &search->lost_nodes.items[i];
        if (bw_key_compare(&keys->first, key) <= 0 && bw_key_compare(key, &keys->end) < 0)
            return true;
        /* A range may lie within an earlier one, but only in the ranges of its parents. */
        if (bw_key_compare(&keys->end, key) <= 0 && i + BW_MAX_LEVEL < search->lost_nodes.count)
            break;
    }
    return false;
}

/* Lost metadata: nothing can be read without the chunk tree and the root tree, and data without
 * their checksums cannot be verified. */
static struct bw_error *assess_metadata(struct loss_search *search,
                                        const struct bw_tree_list *trees)
{
    for (size_t i = 0; i < search->groups.count; i++)
        if (search->groups.items[i].type & BW_GROUP_SYSTEM && search->groups.items[i].lost_chunks)
            search->loss->nothing_readable = true;
    BW_SCOPED(bw_block_scan) struct bw_block_scan scan = {BW_SCAN_ALL, .pointers = true};
    for (size_t i = 0; i < trees->entries.count; i++) {
        const struct bw_tree *tree = &trees->entries.items[i].tree;
        if (tree->id != BW_ROOT_TREE && tree->id != BW_CSUM_TREE)
            continue;
        bw_block_scan_begin(&scan, &search->fs->reader, tree);
        while (bw_block_scan_next(&scan)) {
            const struct bw_key *first = &scan.pointer.expectation.first_key,
                                *end = &scan.pointer.expectation.end_key;
            if (scan.error)
                bw_fs_report_lost(search->fs, scan.pointer.bytenr, BW_TAKE(scan.error));
            if (scan.step != BW_SCAN_POINTER)
                continue;
            const bool is_lost =
                lost_bytes(search, scan.pointer.bytenr, search->fs->reader.nodesize);
            scan.selected = !is_lost;
            if (tree->id == BW_ROOT_TREE) {
                search->loss->nothing_readable |= is_lost;
                scan.selected = !search->loss->nothing_readable;
            } else if (is_lost) {
                const uint64_t start = first->objectid == BW_EXTENT_CSUM_OBJECT ? first->offset : 0;
                const uint64_t after =
                    end->objectid == BW_EXTENT_CSUM_OBJECT ? end->offset : UINT64_MAX;
                if (start < after)
                    BW_TRY(bw_range_set_insert(&search->unverified, start, after));
            }
        }
        BW_TRY(bw_block_scan_end(&scan));
    }
    bw_range_set_join(&search->unverified);
    return NULL;
}

/* Files. */

/* All items of the present inode have been read. */
static struct bw_error *end_file(struct loss_search *search)
{
    struct loss_file *file = &search->file;
    struct bw_lost_file *sums = &file->sums;
    if (!file->is_known || !S_ISREG(file->inode.mode) || !file->inode.link_count)
        return NULL;
    sums->size = file->inode.size;
    sums->metadata_lost |= search->loss->nothing_readable;
    if (file->inode_lost || search->loss->nothing_readable)
        sums->lost = sums->bytes;
    search->loss->files++;
    if (!sums->lost && !sums->metadata_lost)
        return NULL;
    search->loss->affected_files++;
    search->loss->lost_files += sums->lost >= sums->bytes;
    if (!search->options.visit)
        return NULL;
    bool has_path = false;
    bw_inode_paths_begin(&search->paths, sums->subvolume, sums->inode);
    for (; bw_inode_paths_next(&search->paths, &sums->path); has_path = true)
        BW_TRY(search->options.visit(search->options.context, sums));
    BW_TRY(bw_inode_paths_error(&search->paths));
    return has_path ? NULL : search->options.visit(search->options.context, sums);
}

/* Adds an extent of the present file, up to the end of the file. */
static void add_file_extent(struct loss_search *search, const struct bw_item *item, bool item_lost)
{
    const struct bw_disk_file_extent *disk = (const void *)item->data;
    struct loss_file *file = &search->file;
    if (item->size < offsetof(struct bw_disk_file_extent, disk_bytenr))
        return;
    const uint64_t from = item->key.offset;
    const uint64_t room = file->inode.size > from ? file->inode.size - from : 0;
    if (disk->type == BW_FILE_EXTENT_INLINE) {
        const uint64_t length = bw_get64(disk->ram_bytes);
        file->sums.bytes += length < room ? length : room;
        if (item_lost)
            file->sums.lost += length < room ? length : room;
        return;
    }
    if (item->size < sizeof *disk || disk->type == BW_FILE_EXTENT_PREALLOC)
        return;
    const uint64_t extent = bw_get64(disk->disk_bytenr), stored = bw_get64(disk->disk_num_bytes);
    const uint64_t into = bw_get64(disk->offset), all = bw_get64(disk->num_bytes);
    const uint64_t shown = all < room ? all : room;
    if (!extent || !shown)
        return;
    file->sums.bytes += shown;
    uint64_t lost = 0;
    if (item_lost)
        lost = shown;
    else if (disk->compression)
        lost = lost_bytes(search, extent, stored) ? shown : 0;
    else if (into < UINT64_MAX - extent)
        lost = lost_bytes(search, extent + into, shown);
    /* The checksums of compressed data cover the stored bytes. */
    const uint64_t first = disk->compression ? extent : extent + into;
    const uint64_t length = disk->compression ? stored : shown;
    if (!(file->inode.flags & BW_INODE_NODATASUM) && first <= UINT64_MAX - length &&
        bw_range_set_overlap(&search->unverified, first, first + length))
        lost = shown;
    file->sums.lost += lost;
}

static struct bw_error *add_leaf(struct loss_search *search, const struct bw_node *leaf,
                                 bool leaf_lost)
{
    struct loss_file *file = &search->file;
    struct bw_item item;
    for (uint32_t slot = 0; bw_leaf_next(leaf, &slot, &item);) {
        if (item.key.type != BW_INODE_ITEM && item.key.type != BW_EXTENT_DATA)
            continue;
        if (item.key.objectid != file->sums.inode) {
            BW_TRY(end_file(search));
            *file = (struct loss_file){
                .sums = {.subvolume = file->sums.subvolume, .inode = item.key.objectid}};
        }
        const bool item_lost = leaf_lost || is_below_lost_node(search, &item.key);
        file->sums.metadata_lost |= item_lost;
        if (item.key.type == BW_EXTENT_DATA) {
            add_file_extent(search, &item, item_lost);
        } else {
            file->is_known = bw_inode_decode(&item, &file->inode);
            file->inode_lost = item_lost;
        }
    }
    return NULL;
}

/* Reads the leaves of all subvolumes that exist, and notes the keys below lost nodes. */
static struct bw_error *count_files(struct loss_search *search, const struct bw_tree_list *trees)
{
    struct bw_fs *fs = search->fs;
    BW_SCOPED(bw_block_scan)
    struct bw_block_scan scan = {BW_SCAN_ALL, .adopt = true, .announce = true, .pointers = true};
    for (size_t i = 0; i < trees->entries.count; i++) {
        const struct bw_listed_tree *tree = &trees->entries.items[i];
        if (!tree->is_subvolume || tree->is_log || !tree->references)
            continue;
        search->lost_nodes.count = 0;
        search->file =
            (struct loss_file){.sums = {.subvolume = bw_subvolume_by_id(fs, tree->tree.id)}};
        if (!search->file.sums.subvolume)
            continue;
        bw_block_scan_begin(&scan, &fs->reader, &tree->tree);
        while (bw_block_scan_next(&scan)) {
            const struct bw_tree_block_expectation *expectation = &scan.pointer.expectation;
            const uint64_t bytenr = scan.pointer.bytenr;
            if (scan.step == BW_SCAN_LOST) {
                bw_fs_report_lost(fs, bytenr, BW_TAKE(scan.error));
                continue;
            }
            const bool counts = scan.step == BW_SCAN_LEAF || expectation->level;
            const bool is_lost = counts && lost_bytes(search, bytenr, fs->reader.nodesize);
            scan.selected = true;
            if (scan.step == BW_SCAN_LEAF)
                BW_TRY(add_leaf(search, &scan.node, is_lost));
            else if (is_lost)
                BW_TRY(lost_key_ranges_push(
                    &search->lost_nodes,
                    (struct lost_keys){expectation->first_key, expectation->end_key}));
        }
        BW_TRY(bw_block_scan_end(&scan));
        BW_TRY(end_file(search));
    }
    return NULL;
}

static void loss_search_free(struct loss_search *search)
{
    for (size_t i = 0; i < search->chunks.count; i++)
        free(search->chunks.items[i].gone);
    loss_chunks_free(&search->chunks);
    loss_groups_free(&search->groups);
    lost_key_ranges_free(&search->lost_nodes);
    bw_range_set_free(&search->unverified);
    bw_inode_paths_free(&search->paths);
    bw_tree_list_free(&search->trees);
    bw_block_groups_close(search->block_groups);
    bw_device_loss_free(search->loss);
}

struct bw_error *bw_fs_device_loss(struct bw_fs *fs, const struct bw_device_loss_options *options,
                                   struct bw_device_loss **loss)
{
    BW_SCOPED(loss_search)
    struct loss_search search = {.fs = fs, .paths = {.fs = fs}, .trees.report = true};
    *loss = NULL;
    BW_TRY(BW_TAKE_OPTIONS(&search.options, options));
    search.loss = calloc(1, sizeof *search.loss);
    if (!search.loss)
        return bw_error_no_memory();
    BW_SCOPED(bw_device_list) struct bw_device_list devices = {0};
    BW_TRY(bw_fs_devices(fs, &devices));
    for (size_t i = 0; i < search.options.count; i++) {
        const uint64_t devid = search.options.devids[i];
        size_t found = 0;
        while (found < devices.count && devices.items[found].devid != devid)
            found++;
        if (found == devices.count)
            return bw_error_create(BW_ERROR_NOT_FOUND,
                                   "the file system has no device %" PRIu64
                                   "; 'btrfs-walk devices' lists them",
                                   devid);
    }
    BW_TRY(read_chunks(&search));
    BW_TRY(bw_tree_list_load(fs, &search.trees));

    /* The lost bytes of each chunk. A completely lost chunk loses its used bytes; the extent tree
     * is read for it only to see whether they include tree blocks. */
    struct loss_chunk *chunks = search.chunks.items;
    bool needs_extents = false;
    for (size_t i = 0; i < search.chunks.count; i++) {
        const uint64_t type = search.groups.items[chunks[i].group].type;
        const bool is_mixed = type & BW_GROUP_DATA && type & BW_GROUP_METADATA;
        const bool is_partial = is_partly_lost(&chunks[i]);
        if (!chunks[i].is_lost || !chunks[i].is_in_use)
            continue;
        needs_extents |= is_partial || is_mixed || !chunks[i].used;
        search.loss->metadata_lost |= !is_partial && !(type & BW_GROUP_DATA);
    }
    struct bw_item_stream stream = {.ended = true};
    struct bw_error *error = NULL;
    if (needs_extents)
        error = bw_item_stream_begin(&stream, fs, &search.trees, BW_EXTENT_TREE);
    for (; !error && !stream.ended; bw_item_stream_next(&stream)) {
        struct bw_extent_entry extent;
        if (!bw_extent_entry_decode(fs, &stream.item, &extent))
            continue;
        struct loss_chunk *chunk = find_chunk(&search, extent.bytenr);
        const uint64_t lost = lost_bytes(&search, extent.bytenr, extent.length);
        search.loss->metadata_lost |= lost && extent.is_block;
        if (chunk && chunk->lost <= UINT64_MAX - lost)
            chunk->lost += lost;
    }
    BW_TRY(bw_item_stream_end(&stream, error));

    /* The groups are the sums of their chunks in use. */
    bool is_lost = false;
    for (size_t i = 0; i < search.chunks.count; i++) {
        struct loss_chunk *chunk = &chunks[i];
        struct bw_device_loss_group *group = &search.groups.items[chunk->group];
        if (chunk->is_lost && !is_partly_lost(chunk) && chunk->lost < chunk->used)
            chunk->lost = chunk->used;
        if (chunk->used < chunk->lost) /* the block group is lost, or wrong */
            chunk->used = chunk->lost;
        if (!chunk->is_in_use)
            continue;
        const bool loses = chunk->is_lost && (chunk->lost || !chunk->used);
        group->chunks++;
        group->used += chunk->used;
        group->lost_chunks += loses;
        group->lost += chunk->lost;
        group->exposed_chunks += chunk->is_exposed;
        group->exposed += chunk->is_exposed ? chunk->used : 0;
        is_lost |= loses;
    }
    loss_groups_sort(&search.groups, compare_groups);

    /* Trees and files. */
    if (is_lost && search.loss->metadata_lost)
        BW_TRY(assess_metadata(&search, &search.trees));
    if (is_lost)
        BW_TRY(count_files(&search, &search.trees));
    *loss = BW_TAKE(search.loss);
    (*loss)->groups = search.groups.items;
    (*loss)->group_count = search.groups.count;
    search.groups = (struct loss_groups){0};
    return NULL;
}

void bw_device_loss_free(struct bw_device_loss *loss)
{
    if (!loss)
        return;
    free((void *)(uintptr_t)loss->groups);
    free(loss);
}
