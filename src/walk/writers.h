/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a walk writes of each entry when the path of a regular file is not all that is wanted: rows,
 * lines as of `ls -l`, or records of bytes for those who take the output apart again. The tasks
 * write (walk/collect.h), each with one of these in hand.
 */
#ifndef BW_WALK_WRITERS_H
#define BW_WALK_WRITERS_H

#include "base/buffer.h"
#include "btrfs-walk/walk.h"
#include "record/file.h"

/** A way to write. It does not change: any number of threads may use it, each with a buffer of its
 * own. */
struct bw_file_writer {
    /** Appends what is to be said of a file. Memory that runs out is remembered by the buffer. */
    void (*append)(const struct bw_file_writer *writer, const struct bw_walked_file *file,
                   struct bw_buffer *text);
    unsigned needs;                        /**< BW_FILE_NEEDS_*: what must be known of a file */
    const struct bw_walk_options *options; /**< how, if text is written */
    enum bw_walk_order order;              /**< of one that sorts */
    const struct bw_file_writer *inner;    /**< of one that sorts: writes what is to be sorted */
};

/** Rows, long lines or paths, as the options say. They must outlive the writer. */
struct bw_file_writer bw_text_file_writer(const struct bw_walk_options *options);

/** Records that bw_entry_read() reads; with `needs` inodes or without. */
struct bw_file_writer bw_entry_file_writer(unsigned needs);

/** Reads the entry at `*bytes`, where there is one, and moves on behind it. `inode` is room for it;
 * the path is a view on the bytes. */
void bw_entry_read(const char **bytes, struct bw_walked_file *file, struct bw_inode *inode);

/**
 * A walk that writes with `writer`, as bw_walk() otherwise: of the options `rows`, `long_lines`,
 * `consume` and `context` are those that the writer has to do with. NULL writes paths, if all
 * regular files are listed, in the order of the walk.
 */
struct bw_error *bw_walk_with(struct bw_fs *fs, const struct bw_walk_options *options,
                              const struct bw_file_writer *writer, struct bw_walk_summary *summary);

#endif
