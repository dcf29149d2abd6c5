/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that are exported with several names: the first name gets the contents, the others become
 * hard links to it. Thread-safe.
 */
#ifndef BW_EXPORT_LINKS_H
#define BW_EXPORT_LINKS_H

#include <pthread.h>

#include "base/hash_table.h"
#include "base/vector.h"
#include "btrfs-walk/inode.h"
#include "export/path_store.h"

/** A file; see enum bw_link_state. */
struct bw_linked_file {
    uint32_t path; /**< in the store */
    uint8_t state;
};

BW_VECTOR(bw_linked_files, struct bw_linked_file);

BW_VECTOR(bw_key_maps, struct bw_key_map);

/** The files found so far. */
struct bw_links {
    pthread_mutex_t lock;
    struct bw_key_map subvolumes; /**< indices in `numbers`, by subvolume */
    struct bw_key_maps numbers;   /**< for each subvolume, a map from inodes to files */
    struct bw_linked_files files;
    struct bw_path_store paths;
};

/** The state of a file's contents. */
enum bw_link_state {
    BW_LINK_COMING,  /**< not complete yet */
    BW_LINK_MADE,    /**< exported with the stored name */
    BW_LINK_NOWHERE, /**< could not be exported with the stored name */
    BW_LINK_ZEROED,  /**< exported, with zeros in place of lost parts */
    BW_LINK_LOST,    /**< unreadable, or not writable with any name */
};

/** The state of a file. */
struct bw_link {
    bool is_first; /**< this is the first name */
    enum bw_link_state state;
    size_t number; /**< index of the file */
};

void bw_links_init(struct bw_links *links);
void bw_links_free(struct bw_links *links);

/** Registers a name of an inode; `path` is NUL-terminated. False if memory runs out. */
bool bw_links_meet(struct bw_links *links, const struct bw_place *place, const char *path,
                   struct bw_link *link);

/** Finds a file; false if none of its names was registered. */
bool bw_links_find(struct bw_links *links, const struct bw_place *place, struct bw_link *link);

/** Sets the state of a file. */
void bw_links_set(struct bw_links *links, size_t number, enum bw_link_state state);

/** Replaces the name that will get the contents. False if memory runs out. */
bool bw_links_rename(struct bw_links *links, size_t number, const char *path);

/** Appends the name that has or will get the contents: the first one, unless it was replaced. */
void bw_links_append_path(struct bw_links *links, size_t number, struct bw_buffer *path);

#endif
