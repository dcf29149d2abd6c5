/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plan of changes, as the files of this folder make it.
 *
 * plan.c checks the file system, and asks superblock_changes.c, copies.c, caches.c, inodes.c,
 * additions.c (with missing_chunks.c and missing_roots.c), extent_items.c, extent_tree.c, nodes.c,
 * reseal.c, sizes.c (with empty_chunks.c), conversions.c (with checksum_tree.c), group_trees.c and
 * roll_back.c for changes; block_edits.c collects those of bytes in tree blocks, removals.c of
 * items, for which room.c makes room; matching.c finds the changes that are about a finding;
 * trial.c turns the chosen ones into changed ranges of the devices, and tries them; files.c reads
 * files for that; leave_out.c finds the changes that fail; rounds.c plans again on the result;
 * places.c finds these ranges in the files.
 */
#ifndef BW_REPAIR_REPAIR_H
#define BW_REPAIR_REPAIR_H

#include <string.h>

#include "base/buffer.h"
#include "base/number_set.h"
#include "base/patch.h"
#include "base/vector.h"
#include "btrfs-walk/repair.h"
#include "fs/fs.h"
#include "fs/image.h"
#include "ondisk/disk_items.h"
#include "record/record_types.h"
#include "rescue/newest_items.h"

struct bw_repair;

BW_VECTOR(bw_repair_device_items, struct bw_disk_device_item);

/** A generation, as the superblocks describe it. */
struct bw_repair_generation {
    struct bw_root_pointer root, chunk_root;
    uint64_t bytes_used, total_bytes;         /**< of all block groups, and of all devices */
    struct bw_repair_device_items devices;    /**< owned */
    uint64_t incompat_flags, compat_ro_flags; /**< that its trees and chunks prove */
    uint32_t system_chunks_size;
    uint8_t system_chunks[BW_SYSTEM_CHUNK_ARRAY_SIZE];
};

/** Changes fields of a superblock. */
typedef void bw_superblock_edit(const struct bw_repair *repair, struct bw_disk_superblock *super);

/** A finding of the check. */
struct bw_repair_finding {
    const struct bw_finding_code *code;
    uint64_t logical, length, devid, offset, mirror;   /**< BW_ABSENT: unknown */
    uint64_t hash;                                     /**< of its code and location */
    uint64_t tree, inode;                              /**< BW_ABSENT: unknown */
    struct bw_key key;                                 /**< of the item */
    uint64_t flipped_block, flipped_byte, flipped_bit; /**< BW_ABSENT: unknown */
    bool repairable;                                   /**< another mirror is good */
    bool planned;                                      /**< a change is about it */
    bw_superblock_edit *edit; /**< the change of fields that is about it; or NULL */
    size_t block_edit;        /**< 1 + the number of the change in a tree block; or 0 */
};

BW_VECTOR(bw_repair_findings, struct bw_repair_finding);

/** Whether it is of a kind: the word of its code. */
static inline bool bw_repair_is(const struct bw_repair_finding *finding, const char *word)
{
    return strcmp(finding->code->word, word) == 0;
}

/** Whether it is of one of these kinds; NULL ends them. */
static inline bool bw_repair_is_any(const struct bw_repair_finding *finding,
                                    const char *const *words)
{
    while (*words && !bw_repair_is(finding, *words))
        words++;
    return *words;
}

/** Whether it is about a tree block without a good copy. */
static inline bool bw_repair_is_about_lost(const struct bw_repair_finding *finding)
{
    return strncmp(finding->code->word, "block-", 6) == 0 && !finding->repairable &&
           finding->logical != BW_ABSENT;
}

/** The tree with the block groups; its id is 0 if that is lost. */
static inline const struct bw_tree *bw_repair_group_tree(const struct bw_fs *fs)
{
    return fs->block_group_tree.id ? &fs->block_group_tree : &fs->extent_tree;
}

/** A planned change: of a copy of a superblock, of fields in all of them, or of other bytes. */
struct bw_repair_change {
    enum bw_repair_class class_number;
    uint64_t logical, devid, offset, length; /**< BW_ABSENT: does not apply */
    const char *what, *plural; /**< `plural`: of blocks or sectors that are one row of the plan */
    uint32_t unit; /**< bytes of such a block or sector; 0: the change has only one part */
    char *why, *proof, *loss; /**< owned; `loss` may be NULL */
    char *failure;            /**< why the trial refuses it; owned; NULL: it does not */
    unsigned group;           /**< of changes that are right only together; 0: by itself */
    bool chosen;

    struct bw_image *image;                  /**< of the device; NULL: all */
    unsigned copy;                           /**< of the superblock */
    bw_superblock_edit *edit;                /**< of fields in all copies; or NULL */
    struct bw_repair_generation *generation; /**< for all copies; owned; or NULL */
    uint8_t *bytes; /**< new bytes at `offset` of the device; NULL: a superblock, or the
                         parity of the row at `logical` */
    bool is_parity;
    bool is_deletion; /**< with is_in_block: of the item with the key `key` */
    bool is_addition; /**< with is_in_block: of that item, whose data are `bytes` */
    struct bw_key key;
    bool is_in_block; /**< `bytes` are for the tree block at `logical`, in all its copies */
    bool reveals;     /**< others could not be read without this one */
    uint32_t byte;    /**< with is_in_block: their offset in the block */
};

BW_VECTOR(bw_repair_changes, struct bw_repair_change);

/** Whether a change is of several blocks or sectors. */
static inline bool bw_repair_is_joined(const struct bw_repair_change *change)
{
    return change->unit && change->length > change->unit;
}

/** The contents of a tree block before any changes, verified by its checksum. */
struct bw_repair_block {
    uint64_t logical;
    uint8_t *bytes;          /**< owned */
    struct bw_sizes changes; /**< numbers of the changes in it */
    bool is_changed;         /**< by the chosen changes, in the last trial */
};

BW_VECTOR(bw_repair_blocks, struct bw_repair_block);

/** A copy that the check found to be worse than another one of the same block. */
struct bw_repair_bad_copy {
    uint64_t logical, mirror;
};

BW_VECTOR(bw_repair_bad_copies, struct bw_repair_bad_copy);

/** The best superblock of each device, before any fields are changed. */
struct bw_repair_device {
    struct bw_image *image;
    struct bw_disk_superblock best;
    bool is_made;      /**< it had no good superblock, or a late one */
    bool is_late;      /**< its superblock lacks steps of a change of everything */
    bool is_corrected; /**< its only one has a flipped bit */
};

BW_VECTOR(bw_repair_devices, struct bw_repair_device);

/** How an interrupted change of all tree blocks is brought to its end. */
struct bw_repair_conversion {
    uint64_t flags; /**< of the superblock, to be cleared */
    enum bw_checksum_type checksum_type;
    uint8_t fsid[BW_UUID_SIZE], chunk_tree_uuid[BW_UUID_SIZE];
    bool rewrites;          /**< tree blocks change, too */
    bool rewrites_ids;      /**< they get `fsid` and `chunk_tree_uuid` */
    bool renames_checksums; /**< new checksums of data get their final object id */
    bool refills_checksums; /**< one of two sets of them is taken out */
    uint64_t written;       /**< bytes, by the last trial */
};

/** An entry of the index of changes. */
struct bw_repair_place_of_change {
    uint64_t logical;
    size_t number;
};

BW_VECTOR(bw_repair_index, struct bw_repair_place_of_change);

/** Changed ranges of all devices. */
struct bw_repair_patches {
    struct bw_patch *items;       /**< one for each device; owned, as is the list of them */
    const struct bw_patch **list; /**< for bw_fs_options.patches */
};

struct bw_repair {
    struct bw_fs_options how;
    struct bw_repair_options options;
    struct bw_fs *fs;     /**< with the changes of earlier rounds */
    struct bw_fs *given;  /**< without any changes; not owned */
    struct bw_fs *tried;  /**< of the last trial without an error; NULL: none in this round */
    unsigned rounds;      /**< that are over */
    size_t first;         /**< change of this round; those before it are settled */
    bool is_about_blocks; /**< this round only brings back tree blocks or items */
    bool has_generations; /**< older ones were looked for */
    struct bw_repair_findings findings; /**< in `fs`; by hash, once the plan is made */
    struct bw_repair_findings after;    /**< of the last check, in `tried` */
    struct bw_repair_changes changes;
    struct bw_sizes rows;            /**< the first change of each row of the plan */
    struct bw_number_set incomplete; /**< groups with a change for which there was no memory */
    bool is_limited;                 /**< changes were left out, because memory is limited */
    struct bw_repair_index index;    /**< of the changes, by address, once the plan is made */
    struct bw_repair_conversion conversion;
    struct bw_numbers converted; /**< addresses of the blocks that it has changed */
    unsigned groups;             /**< numbers given to bw_repair_change.group */
    struct bw_repair_devices devices;
    struct bw_repair_blocks blocks;         /**< those with changes, by address */
    struct bw_repair_bad_copies bad_copies; /**< by address */
    struct bw_repair_patches base;          /**< the changes of earlier rounds; NULL: none */
    struct bw_repair_patches patches;       /**< with those that are being tried */
    struct bw_patch *file_patches;       /**< one for each image of `how`, if overlays are wanted */
    uint64_t bytes;                      /**< new bytes of all changes */
    struct bw_repair_generation current; /**< what its superblocks should contain */
    const struct bw_repair_generation *trying; /**< only this is tried; NULL: the chosen changes */
    bool is_made;                              /**< no device had a good superblock */
    bool is_complete;                          /**< the superblocks that were made have roots */
    uint8_t *buffer;                           /**< of bw_repair_next() */
};

/** The device of an image, or with a number; NULL if it has no image. */
struct bw_repair_device *bw_repair_device_of(struct bw_repair *repair, uint64_t devid);

/** Finds a tree by its id; if it does not exist, `tree->id` is 0. (plan.c) */
struct bw_error *bw_repair_find_tree(struct bw_fs *fs, uint64_t id, struct bw_tree *tree);

/** Begins with the first of all items of a tree. (plan.c) */
void bw_repair_all_items(struct bw_fs_items *items, struct bw_fs *fs, const struct bw_tree *tree);

/** Adds a change, unless an earlier round has left it out, or joins it to one. Takes `change.why`,
 * `change.proof` and `change.loss`, of which the first two are NULL only if memory ran out. */
struct bw_error *bw_repair_add(struct bw_repair *repair, struct bw_repair_change change);

/** Adds a change to the list: to the row of the last one, if both are parts of one group with the
 * same texts. (plan.c) */
struct bw_error *bw_repair_push(struct bw_repair *repair, struct bw_repair_change change);

/** Divides a change of several blocks or sectors at byte `at`: the rest becomes the last change of
 * the round, which is not in the index yet. (plan.c) */
struct bw_error *bw_repair_split(struct bw_repair *repair, size_t number, uint64_t at);

/** Plans a change of all superblocks, which the trees prove: all findings of the kind `code` are
 * about it. (sizes.c) */
struct bw_error *bw_repair_plan_supers(struct bw_repair *repair, const char *code,
                                       bw_superblock_edit *edit, const char *what, const char *why,
                                       const char *proof);

/** A text, to be freed; NULL if memory runs out. */
char *bw_repair_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Reads what the superblocks of a file system should contain from its trees. (roll_back.c) */
struct bw_error *bw_repair_read_generation(struct bw_fs *fs,
                                           struct bw_repair_generation *generation);

/** Frees what it owns. (roll_back.c) */
void bw_repair_generation_free(struct bw_repair_generation *generation);

/** Lets a superblock refer to an older generation. (superblock_changes.c) */
void bw_repair_roll_back(const struct bw_repair *repair,
                         const struct bw_repair_generation *generation,
                         struct bw_disk_superblock *super);

/** Older generations, and the newest one if all superblocks are lost. (roll_back.c) */
struct bw_error *bw_repair_plan_generations(struct bw_repair *repair);

/** Finds the best superblock of each device. (superblock_changes.c) */
struct bw_error *bw_repair_find_superblocks(struct bw_repair *repair);

/** Sizes of devices, and bytes in use of devices and block groups. (sizes.c) */
struct bw_error *bw_repair_plan_sizes(struct bw_repair *repair);

/** Sets bytes_used to the sum of all block groups. (superblock_changes.c) */
bw_superblock_edit bw_repair_set_used;

/** Copies the device item of the chunk tree, and the sums of all. (superblock_changes.c) */
void bw_repair_set_sizes(const struct bw_repair *repair, struct bw_disk_superblock *super);

/** Lost roots of which a backup root says where they are. (superblock_changes.c) */
struct bw_error *bw_repair_plan_roots(struct bw_repair *repair);

/** Copies and fields of superblocks. (superblock_changes.c) */
struct bw_error *bw_repair_plan_superblocks(struct bw_repair *repair);

/** Writes the superblocks of the chosen changes to the patches. (superblock_changes.c) */
struct bw_error *bw_repair_write_superblocks(struct bw_repair *repair);

/** Copies of tree blocks and data, flipped bits, and parity. (copies.c) */
struct bw_error *bw_repair_plan_copies(struct bw_repair *repair);

/** Writes parity that has changed, or is chosen, to the patches. (copies.c) */
struct bw_error *bw_repair_write_parity(struct bw_repair *repair);

/** A range of a file that was given. */
struct bw_repair_place {
    size_t image; /**< its number in bw_fs_options.paths */
    uint64_t offset, length;
};

/** Finds the place of the range of a device that `place` contains, or of the first part of it.
 * BW_ERROR_UNSUPPORTED: the device has none. (places.c) */
struct bw_error *bw_repair_locate(const struct bw_repair *repair, const struct bw_image *image,
                                  struct bw_repair_place *place);

/** The storage layer of an image on the command line; NULL if no device is in it. (places.c) */
struct bw_xlator *bw_repair_storage(const struct bw_repair *repair, size_t image);

/** Reads one mirror of a tree block or of data, without verification. (copies.c) */
struct bw_error *bw_repair_read_copy(struct bw_repair *repair, uint64_t logical, uint32_t length,
                                     unsigned copy, void *bytes);

/** Whether a tree block is the one that its parent expects, and no item has a fault that a check
 * would call an error. (reseal.c) */
bool bw_repair_is_sound(const struct bw_fs *fs, const struct bw_block_pointer *pointer,
                        const uint8_t *block);

/** The contents of a tree block before any changes, valid as long as the plan; NULL if no copy has
 * a correct checksum. (block_edits.c) */
struct bw_error *bw_repair_block_contents(struct bw_repair *repair, uint64_t logical,
                                          const uint8_t **contents);

/** A leaf that is being made. (block_edits.c) */
struct bw_repair_leaf {
    uint8_t *bytes;
    uint32_t count, data; /**< items, and the beginning of the data of the last one */
};

/** Begins a leaf without items, with a copy of a header, which may be in `bytes`. */
struct bw_repair_leaf bw_repair_leaf_begin(uint8_t *bytes, uint32_t nodesize, const void *header);

/** Adds an item behind the others; false: it does not fit. */
bool bw_repair_leaf_add(struct bw_repair_leaf *leaf, const struct bw_key *key, const void *data,
                        uint32_t size);

/** Bytes in a tree block that are to be changed, and why. */
struct bw_repair_edit {
    uint64_t block; /**< its address */
    uint32_t byte, length;
    const void *bytes;
    bool is_deletion; /**< of the item with the key `key`; length 0 */
    bool is_addition; /**< of that item: its data are `bytes` */
    struct bw_key key;
    const char *what, *plural;      /**< as in bw_repair_change; `plural` may be NULL */
    const char *why, *proof, *loss; /**< copied; `loss` may be NULL */
    unsigned group;                 /**< as bw_repair_change.group */
    bool is_unproved;               /**< class BW_REPAIR_RESEALED */
    bool is_to_be_chosen;           /**< class BW_REPAIR_LOSS */
    bool is_made;                   /**< the block is lost: the bytes are all but its checksum */
    bool reveals;                   /**< as bw_repair_change.reveals */
    bw_superblock_edit *edit;       /**< fields of superblocks that change with it; or NULL */
};

/** Finds the pointer to a block of a tree whose keys include `key`. Not found if a node above it
 * cannot be read. (block_edits.c) */
struct bw_error *bw_repair_find_pointer(const struct bw_tree_reader *reader,
                                        const struct bw_tree *tree, uint64_t logical,
                                        const struct bw_key *key, struct bw_block_pointer *pointer,
                                        bool *found);

/** Plans a change of bytes in a tree block, unless it is planned already; the finding is what it
 * is about. The class is BW_REPAIR_DERIVED, if no other is set. Does nothing if no mirror of the
 * block has a correct checksum, or another change is about the same bytes. (block_edits.c) */
struct bw_error *bw_repair_edit_block(struct bw_repair *repair, struct bw_repair_finding *finding,
                                      struct bw_repair_edit edit);

/** The same for all bytes of a block but its checksum. (block_edits.c) */
struct bw_error *bw_repair_edit_contents(struct bw_repair *repair,
                                         struct bw_repair_finding *finding, uint64_t logical,
                                         const uint8_t *bytes, struct bw_repair_edit edit);

/** The same for a number in an item: `width` bytes at `offset` of it become `value`.
 * (block_edits.c) */
struct bw_error *bw_repair_edit_item(struct bw_repair *repair, struct bw_repair_finding *finding,
                                     const struct bw_tree *tree, const struct bw_key *key,
                                     uint32_t offset, unsigned width, uint64_t value,
                                     struct bw_repair_edit edit);

/** Collects the bad mirrors of blocks. (block_edits.c) */
struct bw_error *bw_repair_list_bad_copies(struct bw_repair *repair);

/** The nodes above a leaf, from the root. */
struct bw_repair_path {
    struct bw_block_pointer nodes[BW_MAX_LEVEL];
    uint32_t slots[BW_MAX_LEVEL];
    unsigned depth; /**< the number of them */
};

/** Finds the nodes above the leaf of a key; none if one of them cannot be read. (block_edits.c) */
struct bw_error *bw_repair_find_path(struct bw_repair *repair, const struct bw_tree *tree,
                                     const struct bw_key *key, struct bw_repair_path *path);

/** Plans another first key of a leaf in the nodes above it: in place of `old`, which its items
 * begin with before the changes. (block_edits.c) */
struct bw_error *bw_repair_move_first_key(struct bw_repair *repair,
                                          struct bw_repair_finding *finding,
                                          const struct bw_tree *tree, const struct bw_key *old,
                                          const struct bw_key *new, struct bw_repair_edit edit);

/** Plans the deletion of an item, after the other changes in its block. (block_edits.c) */
struct bw_error *bw_repair_delete_item(struct bw_repair *repair, struct bw_repair_finding *finding,
                                       const struct bw_tree *tree, const struct bw_key *key,
                                       struct bw_repair_edit edit);

/** Plans the addition of an item, or another size of one, after the deletions in its block; unless
 * it is planned already. (block_edits.c) */
struct bw_error *bw_repair_add_item(struct bw_repair *repair, struct bw_repair_finding *finding,
                                    struct bw_repair_edit edit);

/** Whether changes of a tree block are planned in this round. (block_edits.c) */
bool bw_repair_is_changed(struct bw_repair *repair, uint64_t logical);

/** Whether no planned change of a tree block is about these bytes, or moves items. (block_edits.c)
 */
bool bw_repair_is_unchanged(struct bw_repair *repair, uint64_t logical, uint32_t byte,
                            uint32_t length);

/** Whether a leaf with the changes that are planned has room for an item. (block_edits.c) */
struct bw_error *bw_repair_has_room(struct bw_repair *repair, uint64_t logical,
                                    const struct bw_key *key, const struct bw_buffer *data,
                                    bool *has_room);

/** Plans to move items of the leaf of a key to its neighbours, so that the next round can add an
 * item of `size` bytes with this key; unless its blocks are changed in this round. (room.c) */
struct bw_error *bw_repair_make_room(struct bw_repair *repair,
                                     const struct bw_repair_finding *finding,
                                     const struct bw_tree *tree, const struct bw_key *key,
                                     uint32_t size);

/** Whether a block has only one pointer to it, and refers to others by its tree. (room.c) */
struct bw_error *bw_repair_is_exclusive(struct bw_repair *repair, uint64_t logical,
                                        bool *is_exclusive);

/** Puts an item into a leaf, in place of one with the same key. False, with nothing changed, if
 * there is no room. (block_edits.c) */
bool bw_repair_put_item(uint8_t *block, uint32_t size, const struct bw_key *key, const void *data,
                        uint32_t length);

/** Deletes an item of a leaf: the later items move up, and their data move down. (block_edits.c) */
void bw_repair_cut_item(uint8_t *block, uint32_t size, const struct bw_key *key);

/** An item to be deleted. */
struct bw_repair_removal {
    struct bw_tree tree;
    struct bw_key key;
};

BW_VECTOR(bw_repair_removals, struct bw_repair_removal);

/** About the changes that delete items: `what` for an item and for a key above it, and the rest. */
struct bw_repair_removal_texts {
    const char *item, *key, *why, *proof;
    bool reveals; /**< as bw_repair_change.reveals */
};

/** Plans the deletion of items, with the next number of a group. A leaf that would have no item
 * left takes over one of its neighbour, which is added to `removals`; if none has
 * two, it is not possible, and nothing is planned. (removals.c) */
struct bw_error *bw_repair_remove(struct bw_repair *repair, struct bw_repair_finding *finding,
                                  struct bw_repair_removals *removals,
                                  const struct bw_repair_removal_texts *texts, bool *is_possible);

/** Takes out the chunks behind the ends of all images, one of which is of this device, if nothing
 * in them is in use. (empty_chunks.c) */
struct bw_error *bw_repair_cut_chunks(struct bw_repair *repair, struct bw_repair_finding *finding,
                                      uint64_t devid, bool *is_possible);

/** The item of a device with the planned changes; NULL: none. (sizes.c) */
struct bw_disk_device_item *bw_repair_device_item(const struct bw_repair *repair, uint64_t devid);

/** Adds up the extents in a block group, and reads what its item says. (sizes.c) */
struct bw_error *bw_repair_add_extents(struct bw_fs *fs, const struct bw_key *group,
                                       uint64_t *used);
struct bw_error *bw_repair_read_group_used(struct bw_fs *fs, const struct bw_tree *groups,
                                           const struct bw_key *key, uint64_t *used);

/** Writes all mirrors of the tree blocks with chosen changes to the patches. (block_edits.c) */
struct bw_error *bw_repair_write_blocks(struct bw_repair *repair);

/** Flipped bits in blocks with correct checksums, because of which blocks cannot be read.
 * (inodes.c) */
struct bw_error *bw_repair_plan_hiding_bits(struct bw_repair *repair);

/** An item that a chunk determines. */
struct bw_repair_item {
    struct bw_key key;
    uint32_t size;
    union {
        struct bw_disk_device_extent extent;
        struct bw_disk_block_group group;
    } data;
};

BW_VECTOR(bw_repair_items, struct bw_repair_item);

/** Makes the items of the device tree, or the block groups, in a range of keys, in their order.
 * None if a chunk may be wrong. (additions.c) */
struct bw_error *bw_repair_items_of_chunks(struct bw_repair *repair, uint64_t tree,
                                           const struct bw_key *first, const struct bw_key *last,
                                           struct bw_repair_items *made);

/** Makes the item of a chunk that the chunk tree lacks; `item` stays empty if nothing proves it.
 * `known` is filled by the first call. (missing_chunks.c) */
struct bw_error *bw_repair_make_chunk(struct bw_repair *repair, const struct bw_key *group,
                                      struct bw_newest *known, struct bw_buffer *item);

/** Root items of subvolumes that have links. (missing_roots.c) */
struct bw_tree_list;
struct bw_error *bw_repair_plan_root_items(struct bw_repair *repair,
                                           const struct bw_tree_list *trees);

/** Plans an item, or room for it, which the next round uses; unless a flipped bit in the leaf may
 * explain that it is missing. `edit` has the texts but for `why`. (additions.c) */
struct bw_error *bw_repair_plan_item(struct bw_repair *repair, struct bw_repair_finding *finding,
                                     const struct bw_tree *tree, const struct bw_key *key,
                                     const struct bw_buffer *data, struct bw_repair_edit edit);

/** An item of the extent tree. */
struct bw_repair_extent_item {
    struct bw_key key;
    struct bw_buffer data; /**< owned */
};

BW_VECTOR(bw_repair_extent_items, struct bw_repair_extent_item);

/** Frees the data as well, at the end of their scope. */
void bw_repair_drop_extent_items(struct bw_repair_extent_items *items);
#define BW_AUTO_EXTENT_ITEMS __attribute__((cleanup(bw_repair_drop_extent_items)))

/** The references to extents that belong in lost leaves of the extent tree. (extent_items.c) */
struct bw_repair_extents;

/** Reads it; with `is_whole` of all extents but the blocks of the extent tree, which is not read.
 * To be closed, also after an error. */
struct bw_error *bw_repair_extents_open(struct bw_repair *repair, bool is_whole,
                                        struct bw_repair_extents **extents);
void bw_repair_extents_close(struct bw_repair_extents **extents);
#define BW_AUTO_EXTENTS __attribute__((cleanup(bw_repair_extents_close)))

/** Makes the items of the extent tree in a range of keys of a lost leaf, in their order. None if
 * one of them is not known: references may be lost, too. */
struct bw_error *bw_repair_items_of_extents(struct bw_repair_extents *extents,
                                            const struct bw_key *first, const struct bw_key *last,
                                            struct bw_repair_extent_items *items);

/** Adds the item of a block of the extent tree whose first key is `first`. (extent_items.c) */
struct bw_error *bw_repair_push_block_item(struct bw_repair *repair, uint64_t bytenr,
                                           uint64_t generation, uint8_t level,
                                           const struct bw_key *first,
                                           struct bw_repair_extent_items *items);

/** A new extent tree, if a node of it is lost. (extent_tree.c) */
struct bw_error *bw_repair_plan_extent_tree(struct bw_repair *repair);

/** Items of extents that are missing or lack references. (extent_items.c) */
struct bw_error *bw_repair_plan_extents(struct bw_repair *repair);

/** Items that are missing, and that others determine. (additions.c) */
struct bw_error *bw_repair_plan_additions(struct bw_repair *repair);

/** Fields that other verified items determine, and other flipped bits. (inodes.c) */
struct bw_error *bw_repair_plan_inodes(struct bw_repair *repair);

/** Nodes of which no copy is good, from the references of their children. (nodes.c) */
struct bw_error *bw_repair_plan_nodes(struct bw_repair *repair);

/** Blocks that fail nothing but their checksum; or only such blocks with children. (reseal.c) */
struct bw_error *bw_repair_plan_seals(struct bw_repair *repair, bool has_children);

/** Whether a block group may have a wrong address or length: then nothing must be computed for it.
 * (caches.c) */
bool bw_repair_doubts_groups(const struct bw_repair *repair);

/** Whether a tree block is lost that may have extents or refer to them. The free space tree does
 * not; it is computed from them, so they come first. (caches.c) */
bool bw_repair_lacks_blocks(const struct bw_repair *repair);

/** Whether the check has findings about the extent tree or the places of block groups that no
 * change is about: then nothing must be computed from it. (caches.c) */
bool bw_repair_doubts_extents(const struct bw_repair *repair);

/** Leaves of the free space tree and of the uuid tree that a mount does not build again; or of the
 * trees that chunks determine. (caches.c) */
struct bw_error *bw_repair_plan_caches(struct bw_repair *repair, bool of_chunks);

/** The lost root of the chunk tree, as the tree was rebuilt. (caches.c) */
struct bw_error *bw_repair_plan_chunk_root(struct bw_repair *repair);

/** Block groups in two trees, which no mount accepts: a round of their own. (group_trees.c) */
struct bw_error *bw_repair_plan_groups(struct bw_repair *repair);

/** The end of an interrupted change of all tree blocks. (conversions.c) */
struct bw_error *bw_repair_plan_conversion(struct bw_repair *repair);

/** Rewrites the tree blocks, if that is chosen. (conversions.c) */
struct bw_error *bw_repair_convert(struct bw_repair *repair);
bw_superblock_edit bw_repair_end_conversion;

/** Writes a tree block to all copies, as part of a conversion. (conversions.c) */
struct bw_error *bw_repair_write_converted(struct bw_repair *repair, uint64_t logical,
                                           const uint8_t *block);

/** Takes one of two sets of checksums of data out of their tree; before, whether the other one fits
 * in the leaves, evenly. (checksum_tree.c) */
struct bw_error *bw_repair_refill_checksums(struct bw_repair *repair);
struct bw_error *bw_repair_can_refill(struct bw_repair *repair, bool *is_possible);

/** Edits that make the next mount build a tree again. (superblock_changes.c) */
bw_superblock_edit bw_repair_invalidate_free_space, bw_repair_invalidate_space_cache,
    bw_repair_rescan_uuids;

/** Changes bytes of a device. (trial.c) */
struct bw_error *bw_repair_write(struct bw_repair *repair, uint64_t devid, uint64_t offset,
                                 const void *bytes, size_t length);

/** Reads bytes of a device with the changes so far. (trial.c) */
struct bw_error *bw_repair_read(struct bw_repair *repair, uint64_t devid, uint64_t offset,
                                void *bytes, size_t length);

/** The changes that are about a finding: a cursor. (matching.c) */
struct bw_repair_matches {
    struct bw_repair *repair;
    const struct bw_repair_finding *finding;
    size_t at;
};

/** Makes the index that the cursor needs. */
struct bw_error *bw_repair_index_changes(struct bw_repair *repair);
struct bw_repair_matches bw_repair_find_changes(struct bw_repair *repair,
                                                const struct bw_repair_finding *finding);

/** NULL: that was the last one. */
struct bw_repair_change *bw_repair_next_match(struct bw_repair_matches *matches);

/** Tries the chosen changes, as bw_repair_try() does; `*failing` is set to the finding that should
 * be gone, or to NULL. (trial.c) */
struct bw_error *bw_repair_try_once(struct bw_repair *repair, uint64_t *left,
                                    const struct bw_repair_finding **failing);

/** Compares files of the damaged and of the repaired file system: BW_ERROR_CORRUPT if one of them
 * is less readable than before. (files.c) */
struct bw_error *bw_repair_compare_files(struct bw_repair *repair, struct bw_fs *repaired);

/** Options to open the file system again, with the changes of earlier rounds. (rounds.c) */
struct bw_fs_options bw_repair_how(const struct bw_repair *repair);

/** Makes empty patches. (rounds.c) */
struct bw_error *bw_repair_make_patches(struct bw_repair *repair,
                                        struct bw_repair_patches *patches);

/** Replaces the patches that are tried by those of earlier rounds. (rounds.c) */
struct bw_error *bw_repair_begin_patches(struct bw_repair *repair);

/** Frees what it owns. (rounds.c) */
void bw_repair_patches_free(struct bw_repair_patches *patches, size_t count);

/** Whether a chosen change of this round brings back blocks that hide others. (rounds.c) */
bool bw_repair_reveals(const struct bw_repair *repair);

/** Frees what a round knows about blocks and devices. (plan.c) */
void bw_repair_forget(struct bw_repair *repair);

/** Makes the plan of a round from the findings. (plan.c) */
struct bw_error *bw_repair_plan_round(struct bw_repair *repair);

/** The finding of the check before the trial that is the same; NULL if it is new. (matching.c) */
const struct bw_repair_finding *bw_repair_find_same(const struct bw_repair *repair,
                                                    const struct bw_repair_finding *finding);

/** Checks a file system: its findings replace `repair->after`. (plan.c) */
struct bw_error *bw_repair_check(struct bw_repair *repair, struct bw_fs *fs);

#endif
