/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that are known by their number, and the rows that a walk writes of them. */
#include "row_helpers.h"

#include "image_writer_internal.h"

/* Content. */

uint64_t numbered_size(uint64_t number)
{
    return number * 13 + 5;
}

static int64_t mtime_of(uint64_t number)
{
    return (int64_t)number * 1000000000 + (int64_t)number % 977;
}

static const char *compression_of(uint64_t number)
{
    static const char *const values[] = {"zstd", "lzo", "none"};
    return number % 5 == 0 ? values[number / 5 % COUNT(values)] : NULL;
}

uint64_t make_numbered(struct iw_image *image, uint64_t subvolume, uint64_t directory,
                       uint64_t number)
{
    char name[32];
    snprintf(name, sizeof name, "f%llu", (unsigned long long)number);
    iw_next_inode(image, subvolume, number);
    assert_int_equal(iw_file(image, subvolume, directory, name), number);
    struct bw_disk_inode_item *item =
        iw_item_bytes(image, subvolume, (struct bw_key){number, BW_INODE_ITEM, 0}, NULL);
    item->size = bw_put64(numbered_size(number));
    item->mtime.seconds = bw_put64((uint64_t)mtime_of(number) / 1000000000);
    item->mtime.nanoseconds = bw_put32((uint32_t)(mtime_of(number) % 1000000000));
    if (compression_of(number))
        iw_property(image, subvolume, number, PROPERTY, compression_of(number));
    return number;
}

void make_numbered_link(struct iw_image *image, uint64_t subvolume, uint64_t directory,
                        uint64_t number, unsigned which)
{
    char name[32];
    snprintf(name, sizeof name, "h%llu-%u", (unsigned long long)number, which);
    iw_link(image, subvolume, number, directory, name);
}

/* Directories with files whose inodes are far from them and in no order, and links. */
void fill_numbered(struct iw_image *image, unsigned files)
{
    uint64_t directories[7] = {TOP};
    for (unsigned i = 1; i < COUNT(directories); i++) {
        char name[32];
        snprintf(name, sizeof name, "directory %u", i);
        iw_next_inode(image, FS, i % 2 ? 257 + i : 4000 + i);
        directories[i] = iw_directory(image, FS, directories[i / 3], name);
    }
    for (unsigned i = 0; i < files; i++) {
        uint64_t number = 1000 + (i * 7919u) % files * 3;
        make_numbered(image, FS, directories[i % 7],
                      number + (number >= 4000 && number < 4010 ? 10000 : 0));
    }
    for (unsigned i = 0; i < files; i += 5) {
        uint64_t number = 1000 + (i * 7919u) % files * 3;
        if (number >= 4000 && number < 4010)
            continue;
        make_numbered_link(image, FS, directories[(i + 1) % 7], number, 1);
        make_numbered_link(image, FS, directories[(i + 4) % 7], number, 2);
    }
}

struct iw_image *numbered_image(const struct iw_options *options, unsigned files)
{
    struct iw_image *image = iw_create(options);
    fill_numbered(image, files);
    iw_write_memory(image);
    return image;
}

/* Walks. */

struct bw_rows *make_rows(const char *members)
{
    const struct bw_rows_options options = {.struct_size = sizeof(struct bw_rows_options),
                                            .members = members};
    struct bw_rows *rows;
    expect_success(bw_rows_create("fileinfo", &options, &rows));
    return rows;
}

/* Rows of all columns that the tests look at. */
struct walk_result walk_rows(const struct iw_image *image, const struct bw_walk_options *options,
                             struct report_log *log)
{
    struct bw_rows *rows = make_rows("path,subvolume,inode,size,mtime,nlink,mode,compression");
    struct bw_walk_options with_rows = *options;
    struct bw_fs *fs;
    with_rows.rows = rows;
    expect_success(open_image(image, log, &fs));
    struct walk_result result = walk_fs(fs, &with_rows);
    expect_success(result.error);
    bw_fs_close(fs);
    bw_rows_destroy(rows);
    return result;
}

struct walk_result walk_paths(const struct iw_image *image, const struct bw_walk_options *options)
{
    struct bw_fs *fs;
    expect_success(open_image(image, NULL, &fs));
    struct walk_result result = walk_fs(fs, options);
    expect_success(result.error);
    bw_fs_close(fs);
    return result;
}

void parse_row(const char *row, struct parsed_row *parsed)
{
    unsigned count = 0;
    assert_true(strlen(row) < sizeof parsed->text);
    strcpy(parsed->text, row);
    for (char *rest = parsed->text, *column; (column = strsep(&rest, "\t"));) {
        assert_true(count < ROW_COLUMNS);
        parsed->columns[count++] = column;
    }
    assert_int_equal(count, ROW_COLUMNS);
    parsed->subvolume = strtoull(parsed->columns[1], NULL, 10);
    parsed->inode = strtoull(parsed->columns[2], NULL, 10);
    parsed->known = strcmp(parsed->columns[3], "-") != 0;
}

static const char *name_of(const struct parsed_row *parsed)
{
    return strrchr(parsed->columns[0], '/') + 1;
}

/* Holds a row against its path; the property may be lost. */
void check_inode(const struct parsed_row *parsed)
{
    assert_int_equal(strtoull(name_of(parsed) + 1, NULL, 10), parsed->inode);
    if (!parsed->known) {
        assert_string_equal(parsed->columns[4], "-");
        return;
    }
    assert_int_equal(strtoull(parsed->columns[3], NULL, 10), numbered_size(parsed->inode));
    assert_int_equal(strtoll(parsed->columns[4], NULL, 10), mtime_of(parsed->inode));
    assert_int_equal(strtoull(parsed->columns[6], NULL, 8), 0100644);
}

void check_attributes(const struct parsed_row *parsed)
{
    check_inode(parsed);
    if (parsed->known && compression_of(parsed->inode))
        assert_string_equal(parsed->columns[7], compression_of(parsed->inode));
    else
        assert_string_equal(parsed->columns[7], "-");
}

/* The same paths in the same order, and the rows as `check` says. Returns how many have no
 * attributes. */
size_t compare_rows(const struct walk_result *rows, const struct walk_result *paths,
                    void (*check)(const struct parsed_row *))
{
    const char *row = rows->bytes.data, *path = paths->bytes.data;
    size_t unknown = 0;
    if (rows->count != paths->count)
        fail_msg("%zu rows of %zu files", rows->count, paths->count);
    for (size_t i = 0; i < rows->count; i++) {
        struct parsed_row parsed;
        parse_row(row, &parsed);
        assert_string_equal(parsed.columns[0], path);
        check(&parsed);
        unknown += !parsed.known;
        row += strlen(row) + 1;
        path += strlen(path) + 1;
    }
    assert_memory_equal(&rows->summary, &paths->summary, sizeof paths->summary);
    return unknown;
}

/* Walks with one thread and with four. */
size_t check_row_walks(const struct iw_image *image, const struct bw_walk_options *options,
                       void (*check)(const struct parsed_row *))
{
    struct bw_walk_options one = *options, four = *options;
    one.threads = 1;
    four.threads = 4;
    struct walk_result paths = walk_paths(image, options), first = walk_rows(image, &one, NULL),
                       second = walk_rows(image, &four, NULL);
    size_t unknown = compare_rows(&first, &paths, check);
    assert_int_equal(first.bytes.length, second.bytes.length);
    if (first.bytes.length)
        assert_memory_equal(first.bytes.data, second.bytes.data, first.bytes.length);
    walk_result_free(&paths);
    walk_result_free(&first);
    walk_result_free(&second);
    return unknown;
}
