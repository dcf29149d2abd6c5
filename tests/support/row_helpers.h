/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common code of the tests of rows. Files are named after their inode numbers ("f300", a hard link
 * "h300-2"), and their attributes follow from the number, so each row can be checked against its
 * path.
 */
#ifndef BW_TESTS_ROW_HELPERS_H
#define BW_TESTS_ROW_HELPERS_H

#include "btrfs-walk/record.h"
#include "walk_helpers.h"

#define PROPERTY "btrfs.compression"

enum { ROW_COLUMNS = 8 };

/** Makes a file with that inode number and its attributes. */
uint64_t make_numbered(struct iw_image *image, uint64_t subvolume, uint64_t directory,
                       uint64_t number);
/** One more link to it. */
void make_numbered_link(struct iw_image *image, uint64_t subvolume, uint64_t directory,
                        uint64_t number, unsigned which);
/** The size such a file has. */
uint64_t numbered_size(uint64_t number);
/** Directories with many of them, whose inodes are far from them and in no order, and links. */
void fill_numbered(struct iw_image *image, unsigned files);
/** An image with that content, written to memory. */
struct iw_image *numbered_image(const struct iw_options *options, unsigned files);

/** Rows of members of `fileinfo`, as text that ends with NUL. */
struct bw_rows *make_rows(const char *members);
/** Opens and walks with rows of all columns that parse_row() wants; `log` may be NULL. */
struct walk_result walk_rows(const struct iw_image *image, const struct bw_walk_options *options,
                             struct report_log *log);
/** The same without rows. */
struct walk_result walk_paths(const struct iw_image *image, const struct bw_walk_options *options);

/** A row in pieces: path, subvolume, inode, size, mtime, nlink, mode, compression. */
struct parsed_row {
    char text[512];
    char *columns[ROW_COLUMNS];
    uint64_t subvolume, inode;
    bool known; /**< it has attributes */
};

void parse_row(const char *row, struct parsed_row *parsed);
/** Holds a row against its path; the attributes may be unknown. */
void check_attributes(const struct parsed_row *parsed);
/** The same without the compression. */
void check_inode(const struct parsed_row *parsed);
/** The same paths in the same order, and rows as `check` says; the answer is how many have no
 * attributes. */
size_t compare_rows(const struct walk_result *rows, const struct walk_result *paths,
                    void (*check)(const struct parsed_row *));
/** Compares walks with rows, of one thread and of four, with one without. */
size_t check_row_walks(const struct iw_image *image, const struct bw_walk_options *options,
                       void (*check)(const struct parsed_row *));

#endif
