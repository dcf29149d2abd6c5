/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Digests: what a walk needs of a leaf, and no more. A leaf that several snapshots share is read
 * and checked once; its digest, about a tenth of its size, answers for it from then on. Only
 * regular files, directories and subvolumes are in it, grouped by the directory they are entries
 * of. A walk that lists their names alone has no use for the inodes of files, nor for other types:
 * they are in it only if it is numbered.
 */
#ifndef BW_WALK_DIGEST_H
#define BW_WALK_DIGEST_H

#include "base/buffer.h"
#include "btree/block.h"
#include "format/items.h"

/** Appends the digest of a leaf; false if the leaf has flaws that deserve a closer look (or memory
 * runs out).
 */
bool bw_digest_make(const struct bw_node *leaf, bool numbered, struct bw_buffer *digest);

/** A position in a digest. */
struct bw_digest_cursor {
    const char *next, *end;
};

/** The beginning of a digest, which may be empty. */
static inline struct bw_digest_cursor bw_digest_cursor_of(const struct bw_buffer *digest)
{
    return (struct bw_digest_cursor){digest->data,
                                     digest->length ? digest->data + digest->length : digest->data};
}

/** Next directory: its inode, and a cursor over its entries. False at the end. */
bool bw_digest_next_directory(struct bw_digest_cursor *cursor, uint64_t *inode,
                              struct bw_digest_cursor *entries);

/** Next entry of a directory, as it was in the leaf, but that a file's inode is 0 if the digest is
 * not numbered. False at the end. */
bool bw_digest_next_entry(struct bw_digest_cursor *cursor, struct bw_dir_entry *entry);

/** Digests of leaves, by address; bounded in size, safe from any thread. */
struct bw_digest_cache;

/** Makes a cache of at most `size` bytes; NULL if memory runs out. */
struct bw_digest_cache *bw_digest_cache_create(size_t size);
/** Frees a cache; NULL is allowed. */
void bw_digest_cache_destroy(struct bw_digest_cache *cache);

/** Whether the digest of a leaf is there. It must have been read with the same expectation: only
 * then was it checked. */
bool bw_digest_cache_has(struct bw_digest_cache *cache, const struct bw_block_pointer *leaf);

/** Copies it to `digest`, replacing what that holds; false if it is not there. */
bool bw_digest_cache_get(struct bw_digest_cache *cache, const struct bw_block_pointer *leaf,
                         struct bw_buffer *digest);

/** Remembers a digest, if there is room or something less used gives way. */
void bw_digest_cache_put(struct bw_digest_cache *cache, const struct bw_block_pointer *leaf,
                         const struct bw_buffer *digest);

#endif
