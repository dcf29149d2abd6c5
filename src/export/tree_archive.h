/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Archives of the entries of an export (entry_queue.h): their links, attributes, ranges and
 * owners, and the order of directories. Only one thread at a time may use an archive.
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
    bw_archive_writer *write;
    void *write_context;
    /** Receives the errors that cost only a file, or a part of one. Consumes them. */
    void (*missed)(void *context, struct bw_error *error);
    void (*lost)(void *context, struct bw_error *error); /**< the same for files without inodes */
    void *context;                                       /**< passed to both */
};

struct bw_tree_archive;

/** Begins an archive. `options` are copied, but not the names in them. */
struct bw_error *bw_tree_archive_create(struct bw_fs *fs,
                                        const struct bw_tree_archive_options *options,
                                        struct bw_tree_archive **result);

/** Registers an entry, whose contents will be read later. If they are in the archive under another
 * name, the item is skipped. */
struct bw_error *bw_tree_archive_meet(struct bw_tree_archive *archive,
                                      struct bw_export_entry *item);

/** Begins the entry of an item, after those of its directories. Fails only if nothing more can be
 * written; other errors are missed, and the item has no entry then. */
struct bw_error *bw_tree_archive_begin(struct bw_tree_archive *archive,
                                       struct bw_export_entry *item);

/** The bytes of data that the entry still needs; 0: what follows is omitted. */
uint64_t bw_tree_archive_wanted(const struct bw_tree_archive *archive);

/** Adds data of the entry, or zeros if `bytes` is NULL. */
struct bw_error *bw_tree_archive_add(struct bw_tree_archive *archive, const void *bytes,
                                     uint64_t length);

/** Writes the remaining directories, and completes the archive. */
struct bw_error *bw_tree_archive_end(struct bw_tree_archive *archive);

/** Frees it; NULL is allowed. */
void bw_tree_archive_destroy(struct bw_tree_archive *archive);

#endif
