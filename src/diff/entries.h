/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One side of a comparison path by path: a cursor over its entries.
 *
 *     entries.c: descent into directories, facts of inodes
 *     image_side.c: a directory of an image, or of send streams -+
 *     folder_side.c: a directory of this machine ----------------+--> merge.c --> differences
 *     list_side.c: a list of files, sorted in memory ------------+
 *
 * next() returns the entries in the order of bw_compare_paths(): the top first, and each
 * directory before everything in it, names ordered by their bytes. A path is "" for the top, "/a",
 * "/a/b", without "." or ".." or empty names, and occurs once. A directory need not be an entry for
 * the entries below it to be compared, so a list may consist of files alone; but every side returns
 * the top, with no known facts if it has none.
 *
 * A side states which facts it knows (`known` of each entry, and `knows` of the side for the
 * summary) and which types of files it can contain (`types`). merge.c compares a fact only if both
 * sides know it, and reports a file as missing only if the other side could contain it.
 *
 * A new kind of side allocates a structure that begins with struct bw_entries, and fills `class`,
 * `knows` and `types`. If next() sets all known facts, as a list does, `load` is NULL, and so is
 * each of `target`, `xattrs` and `open_file` whose fact no entry has, or whose result next() sets.
 * A list sets facts.hash and `algorithms`: merge.c computes these hashes of the other side, and any
 * of them decides, so a hash that may be SHA-512 or BLAKE2b has both bits. facts.hash and
 * facts.target must stay valid until close(). bw_diff() in diff.c opens the side.
 */
#ifndef BW_DIFF_ENTRIES_H
#define BW_DIFF_ENTRIES_H

#include "base/buffer.h"
#include "base/vector.h"
#include "btrfs-walk/diff.h"
#include "btrfs-walk/file.h"

struct bw_diff_file;

/** All types of files, as bits of bw_entries.types. */
enum { BW_ENTRIES_ALL_TYPES = 0xff << 1 };

/** An entry. */
struct bw_side_entry {
    struct bw_diff_entry facts;
    const char *path; /**< valid until the next call of next() */
    size_t path_length;
    unsigned algorithms; /**< with BW_KNOWS_HASH: bits 1 << enum bw_hash_algorithm */
    bool is_nested;      /**< a nested subvolume, or the empty directory in its place */
    bool is_empty;      /**< the empty directory in place of a subvolume: only its path and type are
                             known */
    bool is_excluded;   /**< a nested subvolume that was not requested, so it was not entered */
    bool is_optional;   /**< it is no difference if the other side lacks it */
    bool is_lost;       /**< it is not known whether it exists, and which facts it has; reported */
    bool may_have_more; /**< a directory whose list of names is not complete; reported */
    struct bw_place place; /**< of an image */
    struct bw_inode inode; /**< of an image, after load() */
};

/** An extended attribute. */
struct bw_xattr_item {
    size_t name; /**< in the bytes of the list; the value follows */
    size_t name_length, value_length;
};

BW_VECTOR(bw_xattr_items, struct bw_xattr_item);

/** A list of extended attributes. All zeros is none. */
struct bw_xattr_list {
    struct bw_buffer bytes;
    struct bw_xattr_items xattrs;
};

/** Adds an attribute. */
struct bw_error *bw_xattr_list_add(struct bw_xattr_list *list, const void *name, size_t name_length,
                                   const void *value, size_t value_length);
/** Whether both lists have the same attributes, in any order. With `ordinary`, only those count
 * that bw_folder_compares_xattr() accepts. */
bool bw_xattr_list_equals(struct bw_xattr_list *a, struct bw_xattr_list *b, bool ordinary);
void bw_xattr_list_free(struct bw_xattr_list *list);

/** A side. */
struct bw_entries {
    const struct bw_entries_class *class;
    struct bw_fs *fs;  /**< of an image; NULL: none */
    unsigned knows;    /**< bits of enum bw_diff_facts that some entry may have */
    unsigned types;    /**< bits 1 << enum bw_file_type that it can contain */
    bool tells_nested; /**< which directories are nested subvolumes */
    bool lacks_nested; /**< it never contains nested subvolumes, like a send stream */
    bool ordinary;     /**< attributes: only those that bw_folder_compares_xattr() accepts */
    bool ended;
    struct bw_side_entry entry; /**< the current one, unless `ended` */
};

/** The functions of a kind of side. Except for open_file(), they report problems with single files,
 * and fail only if memory runs out. */
struct bw_entries_class {
    /** Moves to the first or next entry, or sets `ended`. Enters a directory unless skip() was
     * called. */
    struct bw_error *(*next)(struct bw_entries *entries);
    /** Skips everything in the current directory. */
    void (*skip)(struct bw_entries *entries);
    /** Sets the facts of an entry that next() has returned earlier, or `is_lost`. */
    struct bw_error *(*load)(struct bw_entries *entries, struct bw_side_entry *entry);
    /** Reads the target of a symbolic link; `*lost`: it cannot be read. */
    struct bw_error *(*target)(struct bw_entries *entries, const struct bw_side_entry *entry,
                               struct bw_buffer *target, bool *lost);
    /** Adds the attributes of a file to an empty list. */
    struct bw_error *(*xattrs)(struct bw_entries *entries, const struct bw_side_entry *entry,
                               struct bw_xattr_list *list, bool *lost);
    /** Opens a regular file of this machine for reading; other threads may call it. Fails if it
     * cannot be opened. */
    struct bw_error *(*open_file)(struct bw_entries *entries, const struct bw_side_entry *entry,
                                  int *descriptor);
    void (*close)(struct bw_entries *entries);
};

/** Sets the facts that an inode of an image and a file of this machine have. */
void bw_entry_set_facts(struct bw_diff_entry *facts, const struct bw_inode *inode);

/** Opens a directory of an image. */
struct bw_error *bw_entries_open_image(const struct bw_diff_side *side,
                                       const struct bw_diff_options *options,
                                       struct bw_entries **result);
/** The file of a loaded entry of an image, valid until another entry is loaded. */
struct bw_diff_file bw_entries_image_file(struct bw_entries *entries,
                                          const struct bw_side_entry *entry);

/** Opens a directory of this machine. Errors go to the reporter of `reporter`. */
struct bw_error *bw_entries_open_folder(const char *path, struct bw_fs *reporter,
                                        struct bw_entries **result);

/** Opens a list of files. */
struct bw_error *bw_entries_open_list(const struct bw_list *list, struct bw_entries **result);

/* Contents of files of an image, compared with a file of this machine or with hashes
 * (contents.c). */

/** A file of an image to be read, and the result. */
struct bw_content_job {
    struct bw_data_file data;
    struct bw_entries *other;               /**< the other side */
    const struct bw_side_entry *other_file; /**< with facts.size, unless `algorithms` are set */
    unsigned algorithms; /**< compute these hashes, bits 1 << enum bw_hash_algorithm, until one is
                              that of `other_file`; 0: compare the bytes */
    bool is_unknown;     /**< result: something could not be read, and was reported */
    bool differs;        /**< result */
    uint64_t bytes;      /**< result: of sectors that differ, up to the end of the shorter file */
    char *hash;          /**< result: the hash that is `algorithm`, allocated; or NULL */
    unsigned algorithm;  /**< enum bw_hash_algorithm of the equal hash, or of the first */
    struct bw_content *running; /* private */
};

/** Reads the files with several threads, in their order. */
struct bw_error *bw_content_jobs_run(struct bw_fs *fs, const struct bw_diff_options *options,
                                     struct bw_content_job *jobs, size_t count);

/* The descent into directories whose names are listed at once (entries.c). */

/** A name in a directory. */
struct bw_level_item {
    size_t name; /**< in the names of the level */
    size_t length;
    struct bw_place place;
};

BW_VECTOR(bw_level_items, struct bw_level_item);

/** A directory on the current path. */
struct bw_level {
    struct bw_buffer names;
    struct bw_level_items entries;
    size_t next;        /**< the entry to be returned next */
    size_t path_length; /**< of the directory */
};

BW_VECTOR(bw_levels, struct bw_level);

/** The directories on the current path. All zeros is none. */
struct bw_descent {
    struct bw_levels levels; /**< also those below `depth`, whose memory is used again */
    size_t depth;
    struct bw_buffer path; /**< of the current entry */
};

/** Enters the current entry: `*level` is a level to add names to, which bw_level_sort() completes.
 */
struct bw_error *bw_descent_enter(struct bw_descent *descent, struct bw_level **level);
/** The longest path whose directory can be entered, sixteen times as long as the kernel's limit. A
 * crafted chain of directories could otherwise fill the memory. */
enum { BW_DESCENT_LONGEST = 64 << 10 };
/** Adds a name. */
struct bw_error *bw_level_add(struct bw_level *level, const char *name, size_t length,
                              const struct bw_place *place);
void bw_level_sort(struct bw_level *level);
/** Moves to the next name, of the deepest directory that has more; NULL at the end, or if memory
 * runs out (`path.failed`). */
const struct bw_level_item *bw_descent_next(struct bw_descent *descent);
/** Leaves the current entry, if it was entered. */
void bw_descent_skip(struct bw_descent *descent);
void bw_descent_free(struct bw_descent *descent);

#endif
