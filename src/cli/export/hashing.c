/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hashes of the files of a stream. */
#include "cli/export/hashing.h"

#include "base/cleanup.h"
#include "cli/common/monitor.h"

/* The hash objects are reused, by any thread. */

enum { MOST_SPARE = sizeof((struct cmd_hashing *)0)->spare / sizeof(struct bw_hash *) };

void cmd_hashing_init(struct cmd_hashing *hashing, enum bw_hash_algorithm algorithm)
{
    *hashing = (struct cmd_hashing){.algorithm = algorithm};
    pthread_mutex_init(&hashing->lock, NULL);
    bw_hash_prepare();
}

void cmd_hashing_free(struct cmd_hashing *hashing)
{
    bw_hash_destroy(hashing->large);
    while (hashing->spare_count)
        bw_hash_destroy(hashing->spare[--hashing->spare_count]);
    pthread_mutex_destroy(&hashing->lock);
}

static struct bw_error *acquire_hash(struct cmd_hashing *hashing, struct bw_hash **hash)
{
    pthread_mutex_lock(&hashing->lock);
    *hash = hashing->spare_count ? hashing->spare[--hashing->spare_count] : NULL;
    pthread_mutex_unlock(&hashing->lock);
    if (!*hash)
        return bw_hash_create(hashing->algorithm, hash);
    bw_hash_begin(*hash);
    return NULL;
}

static void release_hash(struct cmd_hashing *hashing, struct bw_hash *hash)
{
    pthread_mutex_lock(&hashing->lock);
    if (hashing->spare_count < MOST_SPARE)
        hashing->spare[hashing->spare_count++] = BW_TAKE(hash);
    pthread_mutex_unlock(&hashing->lock);
    bw_hash_destroy(hash);
}

static void add_part(struct bw_hash *hash, struct bw_export_entry *item,
                     const struct bw_data_part *part)
{
    const struct bw_inode *inode = &item->inode;
    if (part->kind == BW_DATA_BYTES)
        cmd_progress_add(part->length);
    if (item->error)
        return; /* a file with an error gets no hash */

    /* Hashing the zeros may take too long, judging by the size and the allocated bytes in the
     * inode, or by the holes so far. */
    if (part->kind == BW_DATA_HOLE)
        item->zeros += part->length;
    if (item->zeros > CMD_HASHING_MOST_ZEROS ||
        (inode->size > inode->bytes && inode->size - inode->bytes > CMD_HASHING_MOST_ZEROS))
        item->error = bw_error_create(BW_ERROR_USAGE, "not hashed: more than 16 TiB of holes");
    else if (part->kind == BW_DATA_BYTES)
        bw_hash_add(hash, part->bytes, (size_t)part->length);
    else if (part->kind == BW_DATA_HOLE)
        bw_hash_add_zeros(hash, part->length);
    else
        cmd_export_note_bad(item, part);
}

struct bw_error *cmd_hashing_work(struct cmd_hashing *hashing, struct bw_data_reader *reader,
                                  const struct bw_stream_file *file)
{
    struct bw_export_entry *item = file->user;
    struct bw_hash *hash;
    if (!file->length)
        return NULL; /* its inode is lost, so nothing is known about its data */
    BW_TRY(acquire_hash(hashing, &hash));
    const struct bw_data_part *part;
    struct bw_error *error;
    bw_data_begin(reader, &file->data, 0, UINT64_MAX);
    while (!(error = bw_data_next(reader, &part)) && part)
        add_part(hash, item, part);
    if (!error && !item->error)
        bw_hash_end(hash, item->hash);
    release_hash(hashing, hash);
    return error;
}

struct bw_error *cmd_hashing_visit(struct cmd_hashing *hashing, const struct bw_stream_file *file,
                                   const struct bw_data_part *part)
{
    if (!hashing->large)
        BW_TRY(acquire_hash(hashing, &hashing->large));
    add_part(hashing->large, file->user, part);
    return NULL;
}

void cmd_hashing_finish(struct cmd_hashing *hashing, const struct bw_stream_file *file)
{
    struct bw_export_entry *item = file->user;
    if (!hashing->large)
        return;
    if (!item->error)
        bw_hash_end(hashing->large, item->hash);
    release_hash(hashing, BW_TAKE(hashing->large));
}
