/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two trees without a common origin: directories are read in parallel, and entries with the same
 * name are compared. Pending directories are on a stack; each is entered once, so directories that
 * contain themselves do no harm.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/compare.h"
#include "diff/diff.h"

/* An entry of a directory. */
struct entry {
    uint64_t inode; /* BW_EMPTY_DIRECTORY: a nested subvolume */
    size_t name;    /* in the names */
    uint16_t length;
    uint8_t type;
};

struct entries {
    struct entry *items;
    size_t count, capacity;
    struct bw_buffer names;
    bool lost; /* there may be more */
};

/* Entries of the same name; NULL: one side has none. */
struct match {
    const struct entry *entries[2];
};

/* A directory that both sides have, or one (0: the other one has none). */
struct directory {
    uint64_t inodes[2];
    struct bw_diff_text path;
    bool unknown; /* a missing entry may exist */
};

struct walk {
    struct bw_diff *diff;
    struct directory *stack;
    size_t depth, capacity;
    struct bw_map entered[2]; /* directories */
    struct directory at;      /* the present one */
    struct entries entries[2];
    struct match *matches;
    size_t match_count, match_capacity;
};

/* Reading. */

static struct bw_error *add_entries(void *context, const struct bw_item *item)
{
    struct entries *entries = context;
    struct bw_cursor cursor = bw_cursor_of(item);
    struct bw_dir_entry entry;
    while (bw_dir_entry_next(&cursor, &entry)) {
        bool nested = entry.location.type == BW_ROOT_ITEM;
        if (!bw_name_is_valid(entry.name, entry.name_length))
            continue;
        if (!BW_ARRAY_RESERVE(entries->items, entries->count, entries->capacity))
            return bw_error_no_memory();
        entries->items[entries->count++] = (struct entry){
            nested ? BW_EMPTY_DIRECTORY : entry.location.objectid, entries->names.length,
            entry.name_length, nested ? BW_FILE_DIRECTORY : entry.type};
        bw_buffer_append(&entries->names, entry.name, entry.name_length);
    }
    entries->lost |= bw_cursor_bad(&cursor);
    return entries->names.failed ? bw_error_no_memory() : NULL;
}

static int compare_names(const struct entry *a, const char *a_names, const struct entry *b,
                         const char *b_names)
{
    return bw_compare_bytes(a_names + a->name, a->length, b_names + b->name, b->length);
}

static int by_name(const void *a, const void *b, void *names)
{
    return compare_names(a, names, b, names);
}

/* Reads the present directory of one side. */
static struct bw_error *read_entries(struct walk *walk, unsigned side)
{
    struct entries *entries = &walk->entries[side];
    struct bw_diff_tree *tree = &walk->diff->trees[side];
    const uint64_t inode = walk->at.inodes[side];
    entries->count = entries->names.length = 0;
    entries->lost = !inode && walk->at.unknown;
    if (!inode)
        return NULL;
    if (bw_map_get(&walk->entered[side], inode) != UINT32_MAX) {
        bw_fs_report(tree->fs, BW_DAMAGE,
                     bw_error_create(BW_ERROR_CORRUPT,
                                     "subvolume %" PRIu64 ": directory %" PRIu64
                                     " has several names; it is compared once",
                                     tree->subvolume->tree.id, inode));
        entries->lost = true;
        return NULL;
    }
    if (!bw_map_put(&walk->entered[side], inode, 1))
        return bw_error_no_memory();
    BW_TRY(bw_diff_items(tree, &tree->directories, (struct bw_key){inode, BW_DIR_INDEX, 0},
                         (struct bw_key){inode, BW_DIR_INDEX, UINT64_MAX}, add_entries, entries,
                         &entries->lost));
    return NULL;
}

static struct bw_error *add_match(struct walk *walk, const struct entry *before,
                                  const struct entry *after)
{
    if (!BW_ARRAY_RESERVE(walk->matches, walk->match_count, walk->match_capacity))
        return bw_error_no_memory();
    walk->matches[walk->match_count++] = (struct match){{before, after}};
    return NULL;
}

static int by_inode(const void *a, const void *b)
{
    uint64_t numbers[2];
    const struct match *matches[2] = {a, b};
    for (unsigned i = 0; i < 2; i++)
        numbers[i] =
            (matches[i]->entries[1] ? matches[i]->entries[1] : matches[i]->entries[0])->inode;
    return (numbers[0] > numbers[1]) - (numbers[0] < numbers[1]);
}

/* Finds which entries belong together, in the order of inodes, as they lie in the trees. */
static struct bw_error *match_entries(struct walk *walk)
{
    struct entries *a = &walk->entries[0], *b = &walk->entries[1];
    walk->match_count = 0;
    for (size_t i = 0, j = 0; i < a->count || j < b->count;) {
        int order = i == a->count ? 1
                    : j == b->count
                        ? -1
                        : compare_names(&a->items[i], a->names.data, &b->items[j], b->names.data);
        BW_TRY(add_match(walk, order <= 0 ? &a->items[i] : NULL, order >= 0 ? &b->items[j] : NULL));
        i += order <= 0;
        j += order >= 0;
    }
    if (walk->match_count)
        qsort(walk->matches, walk->match_count, sizeof *walk->matches, by_inode);
    return NULL;
}

/* Comparing. */

/* The path of an entry of the present directory. */
static struct bw_error *path_of(struct walk *walk, const struct match *match,
                                struct bw_diff_text *path)
{
    struct bw_buffer *texts = &walk->diff->rows.texts;
    const unsigned side = match->entries[1] != NULL;
    const struct entry *entry = match->entries[side];
    const size_t above = walk->at.path.length > 1 ? walk->at.path.length : 0;
    *path = (struct bw_diff_text){texts->length, (uint32_t)(above + 1 + entry->length)};
    if (!bw_buffer_reserve(texts, path->length))
        return bw_error_no_memory();
    bw_buffer_append(texts, texts->data + walk->at.path.at, above);
    bw_buffer_append_byte(texts, '/');
    bw_buffer_append(texts, walk->entries[side].names.data + entry->name, entry->length);
    return NULL;
}

/* Whether a requested path may be in a directory. */
static bool may_contain_selected(const struct bw_diff *diff, struct bw_diff_text path)
{
    const struct bw_buffer *filter = &diff->filter;
    const size_t length = path.length > 1 ? path.length : 0;
    return bw_diff_is_selected(diff, path) ||
           (filter->length > length && filter->data[length] == '/' &&
            memcmp(diff->rows.texts.data + path.at, filter->data, length) == 0);
}

static struct bw_error *push_directory(struct walk *walk, const uint64_t inodes[2],
                                       struct bw_diff_text path, bool unknown)
{
    if ((!inodes[0] && !inodes[1]) || !may_contain_selected(walk->diff, path))
        return NULL;
    if (!BW_ARRAY_RESERVE(walk->stack, walk->depth, walk->capacity))
        return bw_error_no_memory();
    walk->stack[walk->depth++] = (struct directory){{inodes[0], inodes[1]}, path, unknown};
    return NULL;
}

/* The file of an entry. That of a nested subvolume is made up. */
static struct bw_error *read_file(struct walk *walk, unsigned side, const struct entry *entry,
                                  struct bw_diff_file *file)
{
    if (entry->inode != BW_EMPTY_DIRECTORY)
        return bw_diff_file_read(&walk->diff->trees[side], entry->inode, file);
    *file = (struct bw_diff_file){.tree = &walk->diff->trees[side],
                                  .number = entry->inode,
                                  .exists = true,
                                  .inode.mode = S_IFDIR};
    return NULL;
}

/* The differences to report between two files of the same name. */
static struct bw_error *compare_files(struct bw_diff *diff, const struct bw_diff_file files[2],
                                      struct bw_diff_row *row)
{
    struct bw_diff_result result = {0};
    *row = bw_diff_row_of(BW_DIFFERENCE_UNKNOWN, &files[0], &files[1]);
    if (!files[0].exists || !files[1].exists)
        return NULL;
    row->status = BW_DIFFERENCE_TYPE;
    row->bytes = row->old_size > row->size ? row->old_size : row->size;
    if ((files[0].inode.mode ^ files[1].inode.mode) & S_IFMT)
        return NULL;
    if (files[0].number != BW_EMPTY_DIRECTORY && files[1].number != BW_EMPTY_DIRECTORY)
        BW_TRY(bw_diff_compare(diff, files, NULL, &result));
    row->status = result.changes   ? BW_DIFFERENCE_MODIFIED
                  : result.unknown ? BW_DIFFERENCE_UNKNOWN
                                   : 0;
    row->changes = (uint16_t)result.changes;
    row->unknown = (uint16_t)result.unknown;
    row->bytes = result.bytes;
    return NULL;
}

/* A file that only one side has, as far as that is known. */
static struct bw_diff_row row_of_only(const struct walk *walk, unsigned side,
                                      const struct bw_diff_file *file)
{
    bool unknown = walk->entries[!side].lost || !file->exists;
    struct bw_diff_row row = bw_diff_row_of(unknown ? BW_DIFFERENCE_UNKNOWN
                                            : side  ? BW_DIFFERENCE_ADDED
                                                    : BW_DIFFERENCE_DELETED,
                                            side ? NULL : file, side ? file : NULL);
    row.bytes = unknown ? 0 : row.bytes;
    return row;
}

static struct bw_error *compare_match(struct walk *walk, const struct match *match)
{
    struct bw_diff *diff = walk->diff;
    const size_t kept = diff->rows.count + walk->depth;
    struct bw_diff_file files[2] = {{0}};
    struct bw_diff_text path;
    struct bw_diff_row row;
    uint64_t inodes[2] = {0};
    BW_TRY(path_of(walk, match, &path));
    for (unsigned side = 0; side < 2; side++) {
        if (!match->entries[side])
            continue;
        diff->summary.entries[side] += bw_diff_is_selected(diff, path);
        BW_TRY(read_file(walk, side, match->entries[side], &files[side]));
        bool is_directory = files[side].exists ? S_ISDIR(files[side].inode.mode)
                                               : match->entries[side]->type == BW_FILE_DIRECTORY;
        if (is_directory && match->entries[side]->inode != BW_EMPTY_DIRECTORY)
            inodes[side] = files[side].number;
    }
    if (!match->entries[0] || !match->entries[1])
        row = row_of_only(walk, match->entries[1] != NULL, &files[match->entries[1] != NULL]);
    else if (bw_diff_is_selected(diff, path))
        BW_TRY(compare_files(diff, files, &row));
    else
        row.status = 0;
    row.path = path.at;
    row.path_length = path.length;
    if (row.status)
        BW_TRY(bw_diff_rows_add(diff, &row));
    BW_TRY(push_directory(walk, inodes, path, row.status == BW_DIFFERENCE_UNKNOWN && !row.unknown));
    if (kept == diff->rows.count + walk->depth)
        diff->rows.texts.length = path.at; /* the path is not needed */
    return NULL;
}

static struct bw_error *compare_directory(struct walk *walk)
{
    for (unsigned side = 0; side < 2; side++) {
        struct entries *entries = &walk->entries[side];
        BW_TRY(read_entries(walk, side));
        if (entries->count)
            qsort_r(entries->items, entries->count, sizeof *entries->items, by_name,
                    entries->names.data);
    }
    BW_TRY(match_entries(walk));
    for (size_t i = 0; i < walk->match_count; i++)
        BW_TRY(compare_match(walk, &walk->matches[i]));
    return NULL;
}

static struct bw_error *compare_top(struct walk *walk)
{
    struct bw_diff *diff = walk->diff;
    const uint64_t inodes[2] = {diff->exists[0] ? BW_SUBVOLUME_ROOT_INODE : 0,
                                diff->exists[1] ? BW_SUBVOLUME_ROOT_INODE : 0};
    struct bw_diff_text path = {diff->rows.texts.length, 1};
    struct bw_diff_file files[2];
    struct bw_diff_row row;
    bw_buffer_append_byte(&diff->rows.texts, '/');
    if (diff->rows.texts.failed)
        return bw_error_no_memory();
    /* the directory that contains a nested subvolume has it as an entry, which was compared */
    for (unsigned side = 0; side < 2; side++)
        diff->summary.entries[side] += !*diff->prefix && bw_diff_is_selected(diff, path);
    if (!inodes[0] || !inodes[1])
        return push_directory(walk, inodes, path, false);
    for (unsigned side = 0; side < 2; side++)
        BW_TRY(bw_diff_file_read(&diff->trees[side], inodes[side], &files[side]));
    BW_TRY(compare_files(diff, files, &row));
    row.path = path.at;
    row.path_length = path.length;
    if (row.status)
        BW_TRY(bw_diff_rows_add(diff, &row));
    return push_directory(walk, inodes, path, false);
}

struct bw_error *bw_diff_by_path(struct bw_diff *diff)
{
    struct walk walk = {.diff = diff};
    struct bw_error *error = compare_top(&walk);
    while (!error && walk.depth) {
        walk.at = walk.stack[--walk.depth];
        error = compare_directory(&walk);
    }
    for (unsigned side = 0; side < 2; side++) {
        free(walk.entries[side].items);
        bw_buffer_free(&walk.entries[side].names);
        bw_map_free(&walk.entered[side]);
    }
    free(walk.stack);
    free(walk.matches);
    return error;
}
