/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of the tar command: an archive under way, and the functions of its stream. */
#ifndef BW_CMD_TAR_H
#define BW_CMD_TAR_H

#include "cmd/common/bad_ranges.h"
#include "cmd/export/export.h"
#include "export/archive.h"
#include "export/links.h"

/** An archive under way. */
struct tar {
    struct cmd_export export;
    enum bw_archive_format format;
    int descriptor; /**< of what is written; -1: not open */
    const char *name;
    struct cmd_output output;  /**< if it is stdout */
    struct bw_buffer gathered; /**< if it is not */
    struct bw_archive *archive;

    struct bw_links links;
    struct bw_made_directories directories; /**< to be written at the end, if it is pax */
    struct bw_xattr_reader *xattrs;
    struct bw_ranges ranges;
    struct bw_buffer target; /**< of a link, symbolic or hard */
    struct cmd_bad_ranges bad;
    struct cmd_hashing hashing; /**< for mtree */

    struct bw_feed_item *again; /**< given to be checked, and to be given once more; NULL: none */
    bool began;                 /**< the entry of the file whose parts are coming */
    uint64_t wanted;            /**< bytes of data that its entry still takes */
};

/** Starts with all but the session, the format and the output. */
struct bw_error *tar_init(struct tar *tar, enum cmd_on_error on_error);
/** Frees what it holds but the session and the output. */
void tar_free(struct tar *tar);

/** The functions of the stream; `context` is the struct tar. */
struct bw_error *tar_next(void *context, struct bw_stream_file *file, bool *got);
struct bw_error *tar_work(void *context, struct bw_data_reader *reader,
                          const struct bw_stream_file *file);
struct bw_error *tar_take(void *context, const struct bw_stream_file *file,
                          const struct bw_data_part *part);
struct bw_error *tar_finish(void *context, const struct bw_stream_file *file, bool complete);

/** Writes the entries of directories that wait for the end. */
struct bw_error *tar_write_directories(struct tar *tar);

#endif
