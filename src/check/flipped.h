/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Single flipped bits in fields whose block has a correct checksum, as bad memory leaves them: the
 * bit was flipped before the checksum was computed.
 */
#ifndef BW_CHECK_FLIPPED_H
#define BW_CHECK_FLIPPED_H

#include <stdbool.h>
#include <stdint.h>

#include "check/block_contents.h"
#include "check/check.h"
#include "ondisk/item_rules.h"

/** Counts a search for a flipped bit; false if there were too many. */
bool bw_flip_may_search(struct bw_check *check);

/** Whether one bit turns a field into the value that it should have, and which. The field has
 * `width` bytes, at most 8, at `byte` of the tree block `block`. */
bool bw_flip_to(struct bw_flip *flip, uint64_t block, uint32_t byte, unsigned width, uint64_t have,
                uint64_t want);

/** The same for a field of an item: `width` bytes at `offset` of the item with this key of the tree
 * with this id, which need not exist. Does nothing if it has another value than `have`. */
void bw_flip_in_item(struct bw_check *check, uint64_t tree, const struct bw_key *key,
                     uint32_t offset, unsigned width, uint64_t have, uint64_t want,
                     struct bw_flip *flip);

/** The same for `length` bytes at `offset`, such as a uuid or a name, that differ in one bit. */
void bw_flip_in_bytes(struct bw_check *check, uint64_t tree, const struct bw_key *key,
                      uint32_t offset, const void *have, const void *want, size_t length,
                      struct bw_flip *flip);

/** The same if the bit itself is known: bit `bit` of the byte at `offset` of the item. */
void bw_flip_bit_of_item(struct bw_check *check, uint64_t tree, const struct bw_key *key,
                         uint32_t offset, unsigned bit, struct bw_flip *flip);

/** The bit that makes the key of an item another key. */
void bw_flip_in_key(struct bw_check *check, uint64_t tree, const struct bw_key *have,
                    const struct bw_key *want, struct bw_flip *flip);

/** Whether an item of a tree would be in order with another key: between its neighbours. Also true
 * if that is not known. */
bool bw_key_may_be(struct bw_check *check, uint64_t tree, const struct bw_key *have,
                   const struct bw_key *other);

/** Whether the root of a tree was written for it: its root item may be under a wrong number. */
bool bw_is_owned(struct bw_check *check, const struct bw_tree *tree);

/** Whether a leaf ends with items of the same object as an item in it: the number of items in the
 * leaf may be wrong, and others be missing. Also true if that is not known. */
bool bw_may_lack_items(struct bw_check *check, uint64_t tree, const struct bw_key *key);

/** The facts that the items of a block of a file system are compared with. */
struct bw_item_rules bw_item_rules_of(const struct bw_fs *fs, uint64_t owner, uint64_t generation,
                                      bool in_log);

/** Searches the flipped bit for a fault in slot `slot` of a leaf: of its key, its place or its
 * contents. Sets `flip`, which is not found if no bit or more than one explains the fault. */
void bw_flip_find_in_leaf(const struct bw_reached_block *leaf, const struct bw_item_rules *rules,
                          uint32_t slot, struct bw_flip *flip);

/** Searches the flipped bit in a block that does not meet the expectation of its parent. */
void bw_flip_find_in_block(struct bw_check *check, const struct bw_tree *tree,
                           const struct bw_block_pointer *pointer, const uint8_t *block,
                           struct bw_flip *flip);

/** Searches the flipped bit in the address of a block that is not there, in the parent's node or in
 * the root item: at the correct address is a block that meets the expectation. */
void bw_flip_find_in_address(struct bw_check *check, const struct bw_tree *tree,
                             const struct bw_block_pointer *pointer, struct bw_flip *flip);

#endif
