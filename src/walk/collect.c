/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Collecting files until their inodes are looked up.
 *
 * A lookup for each file would search the tree once a file, since the order of names is not the
 * order of inodes. Instead, some thousand files wait here: a row for each, and one buffer with
 * their names and the paths of their directories. A flush sorts the inode numbers with a radix
 * sort, so that one scan finds all inodes and reads each leaf once. Then it writes the files in the
 * order in which they came. Where hard links scatter the inodes over many leaves, batches grow.
 */
#include "walk/walk.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "data/extent_scan.h"
#include "fs/fs.h"
#include "fs/lookup.h"
#include "walk/leaves.h"
#include "walk/path_text.h"

enum {
    FIRST_ROWS = 4096,
    MOST_ROWS = 32768, /* if there are less than SCATTERED of them to a leaf with inodes */
    SCATTERED = 4,
    ROW_BYTES = 128, /* of names, for those that are very long */
    COMPLAINTS = 8,  /* of a subvolume, about single inodes */
};

/* A directory that was entered: the place of its path in `bytes`. */
struct entered {
    size_t offset, length;
};

BW_VECTOR(entered_list, struct entered);

struct row {
    uint64_t number;
    size_t name_offset;
    uint32_t directory;  /* index in `entered` */
    uint32_t attributes; /* index of its attributes */
    uint16_t name_length;
    uint8_t type;
    bool made_up;
};

BW_VECTOR(rows, struct row);

struct order {
    uint64_t number;
    uint32_t row;
};

BW_VECTOR(orders, struct order);
BW_VECTOR(attributes_list, struct bw_inode_attributes);
BW_VECTOR(wanted_list, struct bw_wanted_file);
BW_VECTOR(extents_list, struct bw_extent_counts);
BW_VECTOR(space_list, struct bw_file_space);

/* The extended attributes of an inode. */
struct xattr_facts {
    bool is_selected;         /* the selection takes them */
    char *acl, *capabilities; /* as text; NULL: none, or not needed */
};

struct bw_collector {
    const struct bw_file_writer *writer;
    const struct bw_selection *selection; /* tested on inodes; NULL: all files are written */
    struct bw_inode_query query;
    struct bw_xattr_reader *xattrs;  /* NULL: nothing needs extended attributes */
    struct xattr_facts *xattr_facts; /* of the attributes */
    size_t xattr_fact_count;
    struct bw_leaves *leaves;          /* may contain inodes; or NULL */
    const struct bw_task_scope *scope; /* of the flush under way */
    bool looks_up;                     /* inodes are needed */
    struct bw_buffer bytes;            /* paths of directories, names */
    struct entered_list entered;
    struct rows rows;
    size_t full; /* the count at which it is flushed */
    /* Room that the rows of a flush use. */
    struct orders order; /* two arrays for sorting the rows by their numbers */
    struct attributes_list attributes;
    struct wanted_list wanted; /* of the attributes, if extents or shared bytes are needed */
    struct extents_list extents;
    struct space_list space;
    struct bw_buffer path;
    struct bw_repeated repeated; /* of the rows before */
};

static const uint8_t *known_leaf(void *context, const struct bw_block_pointer *pointer)
{
    const struct bw_collector *collector = context;
    const struct bw_task_scope *scope = collector->scope;
    if (scope->root_leaf && pointer->bytenr == scope->tree->root.bytenr)
        return scope->root_leaf;
    return collector->leaves ? bw_leaves_block(collector->leaves, pointer) : NULL;
}

struct bw_error *bw_collector_create(struct bw_fs *fs, const struct bw_file_writer *writer,
                                     const struct bw_choice *choice, struct bw_collector **result)
{
    const struct bw_selection *selection = choice->selection;
    bool looks_up =
        writer->needs || (selection && (selection->has_inodes || selection->has_xattrs));
    struct bw_collector *collector = *result = calloc(1, sizeof *collector);
    if (!collector)
        return bw_error_no_memory();
    collector->writer = writer;
    collector->full = FIRST_ROWS;
    collector->selection = selection;
    collector->looks_up = looks_up;
    collector->query.fs = fs;
    collector->query.known = known_leaf;
    collector->query.context = collector;
    collector->query.compression = writer->needs & BW_FILE_NEEDS_COMPRESSION;
    if ((selection && selection->has_xattrs) || writer->needs & BW_FILE_NEEDS_XATTRS)
        return bw_xattr_reader_create(fs, &collector->xattrs);
    return NULL;
}

static void free_xattr_facts(struct bw_collector *collector)
{
    for (size_t i = 0; i < collector->xattr_fact_count; i++) {
        free(collector->xattr_facts[i].acl);
        free(collector->xattr_facts[i].capabilities);
    }
    free(BW_TAKE(collector->xattr_facts));
    collector->xattr_fact_count = 0;
}

void bw_collector_destroy(struct bw_collector *collector)
{
    if (!collector)
        return;
    bw_inode_query_free(&collector->query);
    bw_xattr_reader_destroy(collector->xattrs);
    free_xattr_facts(collector);
    bw_buffer_free(&collector->bytes);
    bw_buffer_free(&collector->path);
    entered_list_free(&collector->entered);
    rows_free(&collector->rows);
    orders_free(&collector->order);
    attributes_list_free(&collector->attributes);
    extents_list_free(&collector->extents);
    wanted_list_free(&collector->wanted);
    space_list_free(&collector->space);
    free(collector);
}

void bw_collector_use_leaves(struct bw_collector *collector, struct bw_leaves *leaves)
{
    collector->leaves = leaves;
}

struct bw_error *bw_collector_enter(struct bw_collector *collector, const char *path, size_t length)
{
    BW_TRY(
        entered_list_push(&collector->entered, (struct entered){collector->bytes.length, length}));
    bw_buffer_append(&collector->bytes, path, length);
    return NULL;
}

struct bw_error *bw_collector_add(struct bw_collector *collector, const struct bw_collected *what,
                                  const void *name, size_t name_length)
{
    if (!collector->entered.count)
        return bw_error_no_memory();
    const struct row row = {.number = what->number,
                            .name_offset = collector->bytes.length,
                            .directory = (uint32_t)collector->entered.count - 1,
                            .name_length = (uint16_t)name_length,
                            .type = what->type,
                            .made_up = what->made_up};
    BW_TRY(rows_push(&collector->rows, row));
    bw_buffer_append(&collector->bytes, name, name_length);
    return NULL;
}

bool bw_collector_add_file(struct bw_collector *collector, const struct bw_disk_dir_item *entry)
{
    struct bw_buffer *bytes = &collector->bytes;
    const size_t length = bw_get16(entry->name_length);
    if (!collector->entered.count || !bw_buffer_reserve(bytes, length + BW_COPY_SLACK) ||
        rows_reserve(&collector->rows, 1) ||
        !bw_copy_name(bytes->data + bytes->length, (const uint8_t *)(entry + 1), length))
        return false;
    collector->rows.items[collector->rows.count++] =
        (struct row){.number = bw_get64(entry->location.objectid),
                     .name_offset = bytes->length,
                     .directory = (uint32_t)collector->entered.count - 1,
                     .name_length = (uint16_t)length,
                     .type = BW_FILE_REGULAR};
    bytes->length += length;
    return true;
}

bool bw_collector_is_empty(const struct bw_collector *collector)
{
    return !collector->rows.count && !collector->bytes.failed;
}

static bool is_large(const struct bw_collector *collector)
{
    return collector->rows.count >= FIRST_ROWS / 4;
}

bool bw_collector_is_worth_flushing(const struct bw_collector *collector)
{
    return collector->looks_up && is_large(collector) && collector->full == FIRST_ROWS;
}

bool bw_collector_is_full(const struct bw_collector *collector)
{
    return collector->rows.count >= collector->full ||
           collector->bytes.length >= collector->full * ROW_BYTES;
}

/* Looking up. */

/* Sorts by the numbers, byte by byte from the lowest one on, unless they are sorted already.
 * `other` is for as many; returns the array that has the result. */
static struct order *sort_order(struct order *order, struct order *other, size_t count)
{
    uint64_t differing = 0;
    bool sorted = true;
    for (size_t i = 1; i < count; i++) {
        differing |= order[i].number ^ order[0].number;
        sorted = sorted && order[i - 1].number <= order[i].number;
    }
    for (unsigned shift = 0; shift < 64 && !sorted; shift += 8) {
        uint32_t places[256] = {0}, place = 0;
        if (!(differing >> shift & 255))
            continue;
        for (size_t i = 0; i < count; i++)
            places[order[i].number >> shift & 255]++;
        for (unsigned byte = 0; byte < 256; byte++) {
            const uint32_t size = places[byte];
            places[byte] = place;
            place += size;
        }
        for (size_t i = 0; i < count; i++)
            other[places[order[i].number >> shift & 255]++] = order[i];
        struct order *swap = order;
        order = other;
        other = swap;
    }
    return order;
}

/* Reports a problem of an inode; NULL: it has none. */
static void report_inode(const struct bw_task_scope *scope, uint64_t inode, const char *problem)
{
    if (problem && atomic_fetch_add_explicit(scope->wanting, 1, memory_order_relaxed) < COMPLAINTS)
        bw_scope_report(scope, "inode", inode, problem);
}

void bw_collector_report_rest(const struct bw_task_scope *scope)
{
    uint64_t count = atomic_load_explicit(scope->wanting, memory_order_relaxed);
    if (count > COMPLAINTS)
        bw_fs_report_once(scope->fs, BW_DAMAGE,
                          bw_error_create(BW_ERROR_CORRUPT,
                                          "subvolume %" PRIu64 ": %" PRIu64
                                          " more inode%s without readable attributes",
                                          scope->tree->id, count - COMPLAINTS,
                                          bw_plural(count - COMPLAINTS)));
}

/* Finds the extents of the inodes, and how much of them is shared, as far as the writer needs it.
 */
static struct bw_error *find_extents(struct bw_collector *collector,
                                     const struct bw_task_scope *scope, size_t count)
{
    const unsigned needs = collector->writer->needs;
    if (!count || !(needs & (BW_FILE_NEEDS_SHARED | BW_FILE_NEEDS_EXTENTS)))
        return NULL;
    BW_TRY(wanted_list_reserve(&collector->wanted, count));
    BW_TRY(space_list_reserve(&collector->space, count));
    BW_TRY(extents_list_reserve(&collector->extents, count));
    struct bw_wanted_file *wanted = collector->wanted.items;
    for (uint32_t i = 0; i < count; i++)
        wanted[i] =
            (struct bw_wanted_file){scope->tree, collector->attributes.items[i].number, i, 1};
    if (needs & BW_FILE_NEEDS_SHARED)
        return bw_sharing_compute(collector->writer->sharing, wanted, count, collector->space.items,
                                  count);
    return bw_extent_counts_find(scope->fs, scope->lost_blocks, wanted, count,
                                 collector->extents.items);
}

/* Reads the extended attributes of the inodes, for the selection and for the rows. */
static struct bw_error *read_xattrs(struct bw_collector *collector,
                                    const struct bw_task_scope *scope, size_t count)
{
    struct bw_place place = {.subvolume = bw_subvolume_by_id(scope->fs, scope->tree->id)};
    free_xattr_facts(collector);
    collector->xattr_facts = calloc(count + 1, sizeof *collector->xattr_facts);
    if (!collector->xattr_facts)
        return bw_error_no_memory();
    collector->xattr_fact_count = count;
    for (size_t i = 0; i < count && place.subvolume; i++) {
        const struct bw_xattr *xattrs;
        size_t xattr_count;
        place.inode = collector->attributes.items[i].number;
        BW_TRY(bw_xattr_reader_read(collector->xattrs, &place, &xattrs, &xattr_count));
        struct xattr_facts *facts = &collector->xattr_facts[i];
        facts->is_selected = !collector->selection || !collector->selection->has_xattrs ||
                             bw_selection_takes_xattrs(collector->selection, xattrs, xattr_count);
        if (collector->writer->needs & BW_FILE_NEEDS_XATTRS && facts->is_selected)
            BW_TRY(bw_xattr_texts(xattrs, xattr_count, &facts->acl, &facts->capabilities));
    }
    return NULL;
}

/* Looks up the inodes of the rows, and what else the writer needs of them. */
static struct bw_error *look_up(struct bw_collector *collector, const struct bw_task_scope *scope)
{
    static const char *const problems[BW_ITEM_LOST + 1] = {
        [BW_ITEM_MISSING] = "it has no inode item",
        [BW_ITEM_CUT_OFF] = "its inode item is cut off",
        [BW_ITEM_INVALID] = "its inode has an invalid size",
    };
    struct bw_inode_query *query = &collector->query;

    /* One entry of attributes for each inode, even if it has several names, by ascending number. */
    const size_t rows = collector->rows.count;
    BW_TRY(orders_reserve(&collector->order, 2 * rows));
    BW_TRY(attributes_list_reserve(&collector->attributes, rows));
    struct order *order = collector->order.items;
    for (size_t i = 0; i < rows; i++)
        order[i] = (struct order){collector->rows.items[i].number, (uint32_t)i};
    order = sort_order(order, order + rows, rows);
    size_t count = 0;
    for (size_t i = 0; i < rows; i++) {
        if (i == 0 || order[i].number != order[i - 1].number)
            collector->attributes.items[count++].number = order[i].number;
        collector->rows.items[order[i].row].attributes = (uint32_t)count - 1;
    }

    query->lost_blocks = scope->lost_blocks;
    collector->scope = scope;
    BW_TRY(bw_inode_query_run(query, scope->tree, collector->attributes.items, count));
    for (size_t i = 0; i < count; i++) {
        const struct bw_inode_attributes *attributes = &collector->attributes.items[i];
        report_inode(scope, attributes->number, problems[attributes->inode_state]);
        if (attributes->compression_state == BW_ITEM_CUT_OFF)
            report_inode(scope, attributes->number, "its compression property is cut off");
    }
    /* If the inodes are scattered, as those of hard links may be, larger batches read fewer leaves.
     */
    if (query->leaves > rows / SCATTERED && collector->full < MOST_ROWS && is_large(collector))
        collector->full *= 2;
    if (collector->xattrs)
        BW_TRY(read_xattrs(collector, scope, count));
    return find_extents(collector, scope, count);
}

/* Writing. */

/* Makes the path of a row, with a NUL after it for regular expressions. The row before usually has
 * the same directory. */
static struct bw_error *set_path(struct bw_collector *collector, size_t index,
                                 struct bw_walked_file *file)
{
    const struct row *row = &collector->rows.items[index];
    const struct entered *directory = &collector->entered.items[row->directory];
    const char *bytes = collector->bytes.data;
    struct bw_buffer *path = &collector->path;
    if (index && row[-1].directory == row->directory) {
        path->length = directory->length;
    } else {
        path->length = 0;
        bw_buffer_append(path, bytes + directory->offset, directory->length);
    }
    if (path->failed || !bw_buffer_reserve(path, row->name_length + BW_COPY_SLACK))
        return bw_error_no_memory();
    char *end =
        bw_copy_bytes(path->data + path->length, bytes + row->name_offset, row->name_length);
    *end = '\0';
    file->path = path->data;
    file->path_length = directory->length + row->name_length;
    return NULL;
}

/* Sets what the writer needs of a file in addition to its inode. */
static void set_values(const struct bw_collector *collector, const struct row *row,
                       struct bw_walked_file *file)
{
    const struct bw_inode_attributes *attributes = &collector->attributes.items[row->attributes];
    const struct bw_file_writer *writer = collector->writer;
    file->user = file->group = NULL;
    if (writer->user_names && file->inode) {
        file->user = bw_user_names_user(writer->user_names, file->inode->uid);
        file->group = bw_user_names_group(writer->user_names, file->inode->gid);
    }
    if (writer->needs & BW_FILE_NEEDS_SHARED) {
        const struct bw_file_space *space = &collector->space.items[row->attributes];
        file->extent_count = space->extent_count;
        file->disk = space->disk;
        file->shared = space->shared;
        file->shared_known = bw_sharing_is_known(writer->sharing);
    } else if (writer->needs & BW_FILE_NEEDS_EXTENTS) {
        file->extent_count = collector->extents.items[row->attributes].extent_count;
        file->disk = collector->extents.items[row->attributes].disk;
    }
    if (writer->needs & BW_FILE_NEEDS_XATTRS) {
        file->acl = row->made_up ? NULL : collector->xattr_facts[row->attributes].acl;
        file->capabilities =
            row->made_up ? NULL : collector->xattr_facts[row->attributes].capabilities;
    }
    file->compression = NULL;
    file->compression_length = 0;
    if (attributes->compression_state == BW_ITEM_FOUND) {
        const struct bw_buffer *values = &collector->query.values;
        file->compression = values->length ? values->data + attributes->compression : "";
        file->compression_length = attributes->compression_length;
    }
}

/* Like the kernel, gives a file the type of its inode, if that in its entry differs. */
static void trust_inode(const struct bw_task_scope *scope, struct bw_walked_file *file)
{
    const uint8_t type = bw_file_type_of_mode(file->inode->mode);
    if (type == file->type || type == BW_FILE_UNKNOWN)
        return;
    bw_scope_report(scope, "inode", file->number, "its entry has the type of another kind of file");
    file->type = type;
}

struct bw_error *bw_collector_flush(struct bw_collector *collector,
                                    const struct bw_task_scope *scope, size_t number,
                                    struct bw_buffer *text, uint64_t *written)
{
    struct bw_walked_file file = {.subvolume = scope->tree->id};
    struct bw_inode made_up;
    struct bw_error *error = NULL;
    size_t count = collector->rows.count;
    if (!bw_buffer_reserve(&collector->bytes, BW_COPY_SLACK) || collector->bytes.failed)
        error = bw_error_no_memory();
    if (error || bw_output_stopped(scope->output))
        count = 0;
    if (count && collector->looks_up)
        error = look_up(collector, scope);

    /* Write the files whose inodes the selection does not reject. */
    for (size_t i = 0; i < count && !error; i++, bw_output_offer(scope->output, number, text)) {
        const struct row *row = &collector->rows.items[i];
        error = set_path(collector, i, &file);
        if (error)
            break;
        file.number = row->number;
        file.type = row->type;
        if (collector->looks_up) {
            const struct bw_inode_attributes *attributes =
                &collector->attributes.items[row->attributes];
            file.inode = attributes->inode_state == BW_ITEM_FOUND ? &attributes->inode : NULL;
            if (collector->writer->needs != BW_FILE_NEEDS_INODE)
                set_values(collector, row, &file);
        }
        if (file.inode && !row->made_up)
            trust_inode(scope, &file);
        if (row->made_up) {
            /* In place of a subvolume that is not there, a mount shows an empty directory. */
            file.number = BW_EMPTY_DIRECTORY;
            if (file.inode) {
                made_up = bw_empty_directory_inode(file.inode);
                file.inode = &made_up;
            }
        }
        if (collector->selection && !bw_selection_takes_inode(collector->selection, &file))
            continue;
        if (collector->selection && collector->selection->has_xattrs &&
            (row->made_up || !collector->xattr_facts[row->attributes].is_selected))
            continue;
        BW_PROBE(
            scope->fs->graph->probes, path__emit, path,
            &(struct bw_path_event){scope->tree->id, file.number, file.path, file.path_length});
        collector->writer->append(collector->writer, &file, &collector->repeated, text);
        ++*written;
    }
    collector->rows.count = collector->entered.count = collector->bytes.length = 0;
    return error;
}

/* Rows of single entries. A walk writes those of many at once, and looks up their inodes together.
 */

/* Finds the values in addition to the inode, which the caller has read. */
static struct bw_error *find_values(struct bw_collector *collector,
                                    const struct bw_task_scope *scope, const struct bw_entry *entry,
                                    struct bw_walked_file *file)
{
    const struct bw_inode_attributes attributes = {.number = file->number};
    const struct row row = {.made_up = bw_place_is_empty(&entry->place)};
    collector->scope = scope;
    BW_TRY(attributes_list_push(&collector->attributes, attributes));
    if (collector->xattrs && !row.made_up)
        BW_TRY(read_xattrs(collector, scope, 1));
    if (collector->query.compression && !entry->no_compression && !row.made_up)
        BW_TRY(bw_inode_query_run(&collector->query, scope->tree, collector->attributes.items, 1));
    BW_TRY(find_extents(collector, scope, 1));
    set_values(collector, &row, file);
    return NULL;
}

struct bw_error *bw_rows_write_entry(struct bw_rows_stream *stream, struct bw_fs *fs,
                                     const struct bw_entry *entry,
                                     const struct bw_user_names *user_names)
{
    const struct bw_task_scope scope = {.fs = fs, .tree = &entry->place.subvolume->tree};
    struct bw_file_writer writer = {.needs = bw_rows_needs(stream->rows), .user_names = user_names};
    struct bw_walked_file file = {.path = entry->path,
                                  .path_length = entry->path_length,
                                  .subvolume = bw_subvolume_id(entry->place.subvolume),
                                  .number = entry->place.inode,
                                  .type = entry->place.type,
                                  .inode = entry->inode};
    struct bw_collector *collector = NULL;
    struct bw_error *error = NULL;
    if (bw_rows_record(stream->rows) != &bw_fileinfo_record)
        return bw_error_create(BW_ERROR_USAGE, "rows of entries are of the record fileinfo");
    if (writer.needs > BW_FILE_NEEDS_INODE)
        error = bw_collector_create(fs, &writer, &(const struct bw_choice){0}, &collector);
    if (!error && writer.needs & BW_FILE_NEEDS_SHARED)
        error = bw_sharing_create(fs, false, NULL, &writer.sharing);
    if (!error && collector)
        error = find_values(collector, &scope, entry, &file);
    if (writer.sharing)
        bw_sharing_report(writer.sharing);
    if (!error) {
        struct bw_buffer row = {.data = stream->row, .capacity = stream->row_capacity};
        bw_rows_append_file(stream->rows, &file, NULL, &row);
        stream->row = row.data;
        stream->row_capacity = row.capacity;
        if (row.failed)
            error = bw_error_no_memory();
        else
            error = bw_rows_take(stream, row.data, row.length);
    }
    bw_sharing_destroy(writer.sharing);
    bw_collector_destroy(collector);
    return error;
}
