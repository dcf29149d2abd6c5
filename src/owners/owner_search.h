/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The search for owners of addresses. back_references.c marks the blocks that lead to them, from
 * the extent tree. owners.c descends through the marked blocks of all trees, or through all blocks
 * if there are no marks, and reports what it finds. lost_inodes.c names inodes whose own items are
 * lost.
 */
#ifndef BW_OWNERS_OWNER_SEARCH_H
#define BW_OWNERS_OWNER_SEARCH_H

#include "base/range_set.h"
#include "base/vector.h"
#include "btrfs-walk/space.h"
#include "fs/inode_paths.h"
#include "owners/ranges.h"
#include "owners/tree_list.h"

/** A tree block in a range. */
struct bw_owned_block {
    uint64_t bytenr, generation;
    uint64_t tree; /**< one of those that it is part of; 0: none is known */
    size_t range;
    uint8_t level;
    bool has_key;
    struct bw_key key;
};

/** The pointer to a block that was not found through its parent, with any keys. */
static inline struct bw_block_pointer bw_owned_block_pointer(const struct bw_owned_block *block)
{
    return (struct bw_block_pointer){block->bytenr,
                                     {.owner = block->tree ? block->tree : BW_TOP_SUBVOLUME,
                                      .generation = block->generation,
                                      .end_key = BW_KEY_MAX,
                                      .level = block->level,
                                      .lenient = true}};
}

/** Inodes of a subvolume whose own items may be lost: `first` to `last`. */
struct bw_lost_inodes {
    const struct bw_subvolume *subvolume;
    uint64_t first, last;
    size_t number; /**< the caller's */
};

/** Decisions of the caller of bw_owners_search() during the search, with the context of the
 * options. */
struct bw_owner_hooks {
    /** Whether the paths of an owner are wanted; or, if its inode is 0, the inodes that depend on
     * its tree block. If not, it is passed on unchanged. */
    bool (*accepts)(void *context, const struct bw_owner *owner);
    /** Whether to continue with the next tree. */
    bool (*should_continue)(void *context);
};

BW_VECTOR(bw_owner_list, struct bw_owner);

BW_VECTOR(bw_lost_inode_lists, struct bw_lost_inodes);

BW_VECTOR(bw_owned_blocks, struct bw_owned_block);

/** A search under way. */
struct bw_owner_search {
    struct bw_fs *fs;
    const struct bw_owner_options *options;
    const struct bw_owner_hooks *hooks; /**< NULL: no hooks */
    struct bw_tree_list trees;
    struct bw_key_map tree_numbers; /**< ids to indexes of `trees` */
    struct bw_query_ranges ranges;
    bool reads_all;          /**< all blocks of all trees are read: there are no marks */
    struct bw_key_map marks; /**< addresses of blocks that contain, or lead to, the targets of the
                            search */
    struct bw_range_set allocated; /**< bytes of the ranges that extents and tree blocks take */
    struct bw_range_set shown;     /**< those bytes of `allocated` that have an owner */
    struct bw_owned_blocks blocks;
    struct bw_key_map block_numbers; /**< their addresses to their indexes */
    struct bw_inode_paths paths;
    struct bw_lost_inode_lists lost; /**< to be named at the end; their numbers are indexes of */
    struct bw_owner_list nameless;   /**< the owner to report for each of them */
};

/** As bw_owners_find(), but visits only data and metadata. */
struct bw_error *bw_owners_search(struct bw_fs *fs, const struct bw_owner_options *options,
                                  const struct bw_owner_hooks *hooks);

/** Whether files have their inodes in a tree. */
bool bw_owner_has_files(const struct bw_listed_tree *tree);

/** The tree with an id, if it is searched for data: a subvolume, or one that the file system itself
 * keeps files in; otherwise NULL. */
const struct bw_listed_tree *bw_owner_tree(const struct bw_owner_search *search, uint64_t id);

/** Marks a block; `*new` is set to whether it had no mark. False if memory runs out. */
bool bw_owner_mark(struct bw_owner_search *search, uint64_t bytenr, bool *new);

/** Notes bytes of a range, and a tree block in it; the latter gives its index. */
struct bw_error *bw_owner_allocate(struct bw_owner_search *search, uint64_t start, uint64_t length);
struct bw_error *bw_owner_add_block(struct bw_owner_search *search,
                                    const struct bw_owned_block *block, size_t *index);

/** Marks all blocks that lead to the ranges. `*trusted` is false if the extent tree cannot be
 * relied on, or is so much to read that all blocks should be read. Fails only if memory runs out.
 */
struct bw_error *bw_owner_follow_references(struct bw_owner_search *search, bool *trusted);

/** Visits an owner under all its paths, which it sets. */
struct bw_error *bw_owner_visit(struct bw_owner_search *search, struct bw_owner *owner);

/** Visits an owner at the end, for each of these inodes that directories have names of; for its
 * own inode, if it has one, even without a name. */
struct bw_error *bw_owner_postpone(struct bw_owner_search *search, const struct bw_owner *owner,
                                   uint64_t first, uint64_t last);

/** Receives a path of an inode; without data: the only one of a range has none. */
typedef struct bw_error *bw_lost_name_visitor(void *context, const struct bw_lost_inodes *lost,
                                              uint64_t inode, const struct bw_bytes *path);

/**
 * Finds the names of inodes whose own items may be lost, in the directories of their subvolumes.
 * `lost` is sorted by this function. The first and the last inode of each range may also have names
 * of their own. Unreadable blocks are skipped. Returns the error of `visit`, or one of memory.
 */
struct bw_error *bw_lost_inodes_name(struct bw_fs *fs, struct bw_inode_paths *paths,
                                     struct bw_lost_inodes *lost, size_t count,
                                     bw_lost_name_visitor *visit, void *context);

#endif
