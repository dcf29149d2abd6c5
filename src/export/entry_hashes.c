/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hashes of the files of a stream: a worker hashes a small file whole; the parts of a large one are
 * delivered in order. A worker leaves its hash object for the next file, since making one takes a
 * tenth of the time for a file of a kilobyte. */
#include "export/entry_hashes.h"

#include "base/cleanup.h"

static void add_part(const struct bw_entry_hashes *hashes, struct bw_hash *hash,
                     struct bw_export_entry *item, const struct bw_data_part *part)
{
    const struct bw_inode *inode = &item->inode;
    if (part->kind == BW_DATA_BYTES)
        hashes->progress(part->length);
    if (item->error)
        return; /* a file with an error gets no hash */

    /* Hashing the zeros may take too long, judging by the size and the allocated bytes in the
     * inode, or by the holes so far. */
    if (part->kind == BW_DATA_HOLE)
        item->zeros += part->length;
    if (item->zeros > BW_HASH_MOST_ZEROS ||
        (inode->size > inode->bytes && inode->size - inode->bytes > BW_HASH_MOST_ZEROS))
        item->error = bw_error_create(BW_ERROR_USAGE, "not hashed: more than 16 TiB of holes");
    else if (part->kind == BW_DATA_BYTES)
        bw_hash_add(hash, part->bytes, (size_t)part->length);
    else if (part->kind == BW_DATA_HOLE)
        bw_hash_add_zeros(hash, part->length);
    else
        bw_export_entry_note_bad(item, part);
}

struct bw_error *bw_entry_hashes_work(struct bw_entry_hashes *hashes, struct bw_data_reader *reader,
                                      const struct bw_stream_file *file)
{
    struct bw_export_entry *item = file->user;
    struct bw_hash *hash;
    if (!file->length)
        return NULL; /* its inode is lost, so nothing is known about its data */
    hash = atomic_exchange(&hashes->spare, NULL);
    if (hash)
        bw_hash_begin(hash);
    else
        BW_TRY(bw_hash_create(hashes->algorithm, &hash));
    const struct bw_data_part *part;
    struct bw_error *error;
    bw_data_begin(reader, &file->data, 0, UINT64_MAX);
    while (!(error = bw_data_next(reader, &part)) && part)
        add_part(hashes, hash, item, part);
    if (!error && !item->error)
        bw_hash_end(hash, item->hash);
    bw_hash_destroy(atomic_exchange(&hashes->spare, hash));
    return error;
}

struct bw_error *bw_entry_hashes_visit(struct bw_entry_hashes *hashes,
                                       const struct bw_stream_file *file,
                                       const struct bw_data_part *part)
{
    if (!hashes->large)
        BW_TRY(bw_hash_create(hashes->algorithm, &hashes->large));
    add_part(hashes, hashes->large, file->user, part);
    return NULL;
}

void bw_entry_hashes_finish(struct bw_entry_hashes *hashes, const struct bw_stream_file *file,
                            bool complete)
{
    struct bw_export_entry *item = file->user;
    if (hashes->large && complete && !item->error)
        bw_hash_end(hashes->large, item->hash);
    bw_hash_destroy(BW_TAKE(hashes->large));
}

void bw_entry_hashes_free(struct bw_entry_hashes *hashes)
{
    bw_hash_destroy(hashes->spare);
}
