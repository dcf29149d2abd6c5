/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Archives of the entries of an export (entry_queue.h): their links, attributes, ranges and
 * owners, and the order of directories.
 */
#ifndef BW_EXPORT_TREE_ARCHIVE_H
#define BW_EXPORT_TREE_ARCHIVE_H

#include "export/archive.h"
#include "export/entry_queue.h"

/** An owner for all files. All zeros: files keep their own. */
struct bw_archive_owner {
    bool is_given;
    uint32_t id;
    char *name; /**< NULL: only the number is stored */
};

/** How an archive is written. */
struct bw_tree_archive_options {
    enum bw_archive_format format;
    struct bw_archive_owner owner, group;
    struct timespec mtime; /**< the time of all files, if `has_mtime` */
    bool has_mtime, has_atime;
    bool sorted; /**< the entries come in the order of names, so a directory precedes its contents;
                  * otherwise, it may be written twice */
    bool passes_once; /**< each directory comes only once, and after its parent */
    /** Files with unreadable data have no entry. An entry precedes the data, so files are read
     * twice. */
    bool omits_damaged;
    unsigned threads;
    bw_archive_writer *write;
    void *write_context;
    void (*progress)(uint64_t bytes); /**< called for bytes that were read, by any thread */
    struct bw_error *(*next)(void *context, struct bw_export_entry **item); /**< NULL: the end */
    void (*release)(void *context, struct bw_export_entry *item);           /**< an entry is done */
    /** An unreadable part, in whose place zeros are written unless this returns an error. */
    struct bw_error *(*bad)(void *context, const struct bw_export_entry *item,
                            const struct bw_data_part *part);
    /** Receives the errors that cost only a file, or a part of one. Consumes them. */
    void (*missed)(void *context, struct bw_error *error);
    void (*lost)(void *context, struct bw_error *error); /**< the same for files without inodes */
    void *context;                                       /**< passed to all but `write` */
};

/** Writes the archive of all entries. Fails only if nothing more can be written; errors of single
 * entries are reported. For mtree, call bw_hash_prepare() before. */
struct bw_error *bw_tree_archive_write(struct bw_fs *fs,
                                       const struct bw_tree_archive_options *options);

#endif
